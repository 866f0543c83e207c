"""Products of the Gram matrix with vectors, a block of its rows at a time."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp

if TYPE_CHECKING:
    from .functions import Kernel

BLOCK = 512  # rows of the Gram matrix at once: BLAS is as fast as with more, and its tiles stay in the cache
MAX_SPARSE = 0.2  # share of non-zero coefficients below which a sparse product takes less time than BLAS


def gram_product(kernel: Kernel, X: Any, c: np.ndarray) -> np.ndarray:
    """Return sum_i c_i k(x_i, x_j) for every row j, in the shape of c; rows i with c_i = 0 are not computed.

    Parameters
    ----------
    kernel : Kernel
    X : ndarray or CSR matrix of shape (n, d)
        Its precision is that of the product; sums of blocks are float64.
    c : ndarray of shape (n,) or (m, n)
        Several vectors cost one computation of the kernel.
    """
    out = np.zeros(c.shape)
    used = np.flatnonzero(c.reshape(-1, c.shape[-1]).any(axis=0))
    for first in range(0, used.size, BLOCK):
        some = used[first : first + BLOCK]
        part: Any = c[..., some].astype(X.dtype, copy=False)
        # a row may have coefficients in few of the m vectors
        if np.count_nonzero(part) < MAX_SPARSE * part.size:
            part = sp.csr_matrix(part)
        for columns, tile in kernel.tiles(X[some], X):
            out[..., columns] += part @ tile
    return out
