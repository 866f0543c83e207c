"""A factor of the Gram matrix, as many columns as it has rank: features for what works on features.

References
----------
S. Fine, K. Scheinberg, "Efficient SVM training using low-rank kernel representations", JMLR 2, 2001.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ...kernels.functions import Kernel

EPS = float(np.finfo(float).eps)


def factor(kernel: Kernel, X: Any, most: int) -> np.ndarray | None:
    """Z of shape (n, rank) with K = Z Z' to rounding; None where the rank is more than `most`.

    Cholesky's factors with the largest diagonal entry as the pivot: rank + 1 rows of the kernel, n x rank^2 operations.

    Parameters
    ----------
    kernel : Kernel
    X : ndarray or CSR matrix of shape (n, d), prepared
        Float64.
    most : int
    """
    rest = np.array(kernel.diagonal(X), dtype=float)
    nothing = X.shape[0] * EPS * float(rest.max(initial=0.0))
    Z = np.zeros((X.shape[0], min(most, X.shape[0])))
    for k in range(Z.shape[1]):
        i = int(rest.argmax())
        if rest[i] <= nothing:
            return Z[:, :k]
        Z[:, k] = (kernel.block(X[[i]], X)[0] - Z[:, :k] @ Z[i, :k]) / rest[i] ** 0.5
        rest -= Z[:, k] ** 2
    return Z if float(rest.max(initial=0.0)) <= nothing else None
