"""Checks that a kernel matrix is a Gram matrix: symmetric and positive semidefinite.

A vector v with v'Kv < 0 proves that K is no Gram matrix: no inner products have its values, so that there are no
lengths, no margins and no duality. As entries are rounded, a matrix is accepted as long as its negative eigenvalues may
be the effect of rounding.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import Any

import numpy as np
from scipy.linalg import LinAlgError, cholesky, eigvalsh

from ..kernels.functions import Gaussian, Kernel, Linear, Polynomial, Precomputed

# Rows on which eigenvalues are computed, in about a second, whose time grows with the cube; the least number of these
# rows, whatever the memory limit; and the number of their matrices that are in memory at once.
MAX_ROWS, MIN_ROWS, MATRICES_IN_MEMORY = 2000, 250, 3
# Accepted error of an entry, in units in the last place: kernels of many features have errors of tens of units.
ENTRY_ERROR_ULPS = 64.0
# Rows that are compared with their columns at a time: differences of 2 MB for 1000 rows. A round value; not tuned.
BLOCK = 256


def check_kernel(kernel: Kernel, X: Any, memory_bytes: float = np.inf) -> None:
    """Raise ValueError where a kernel is not an inner product on the given rows.

    Kernels that are inner products by their formula are accepted. The matrix of other kernels is computed on at most
    2000 evenly spaced rows: if it is indefinite on these rows, it is indefinite on all.

    Parameters
    ----------
    kernel : Kernel
    X : ndarray or CSR matrix of shape (n, d)
        The matrix itself where the kernel is precomputed.
    memory_bytes : float, default=inf
        Memory limit, which reduces the number of rows of the computed matrix, to no fewer than 250.

    Raises
    ------
    ValueError
        If the matrix overflows, is not symmetric, or has a negative eigenvalue, which the message states.
    """
    if is_inner_product(kernel):
        return
    if isinstance(kernel, Precomputed):
        check_gram(X)
        return
    # the number of rows of MATRICES_IN_MEMORY square matrices of float64
    in_memory = (memory_bytes / (8.0 * MATRICES_IN_MEMORY)) ** 0.5
    n, most = X.shape[0], int(min(max(in_memory, MIN_ROWS), MAX_ROWS))
    places = np.linspace(0, n - 1, min(n, most)).astype(np.intp)
    some = kernel.prepared(X if n <= most else X[places])
    with np.errstate(over="ignore", invalid="ignore"):
        K = kernel.block(some, some)
    if not np.isfinite(K).all():
        raise ValueError(f"The {kernel.name} kernel overflows: scale the features, or lower gamma or degree.")
    check_gram(K, f"The {kernel.name} kernel", places)


def is_inner_product(kernel: Kernel) -> bool:
    """Return whether the kernel's formula is an inner product on any rows: for its class and its parameters.

    False for kernels that may or may not be one, such as the sigmoid or a callable.
    """
    if isinstance(kernel, Polynomial):
        whole = kernel.degree == int(kernel.degree) and kernel.degree >= 0
        return whole and kernel.gamma >= 0.0 and kernel.coef0 >= 0.0
    return isinstance(kernel, Linear) or (isinstance(kernel, Gaussian) and kernel.gamma >= 0.0)


def check_gram(K: Any, name: str = "The kernel matrix", places: Any = None) -> None:
    """Raise ValueError where a matrix is not symmetric and positive semidefinite, up to the rounding of its entries.

    Parameters
    ----------
    K : ndarray of shape (n, n)
        Finite numbers; an array of float32 is accepted with the rounding of float32.
    name : str, default="The kernel matrix"
        The name of the matrix in messages.
    places : ndarray of int, default=None
        The numbers of its rows in messages; None for 0, ..., n - 1.

    Raises
    ------
    ValueError
        If the matrix is not square, symmetric and positive semidefinite; the message states the entries or the
        eigenvalue.
    """
    if K.ndim != 2 or K.shape[0] != K.shape[1]:
        raise ValueError(f"{name} must be square, of shape (n, n) for n training rows; got shape {K.shape}.")
    # The spectral norm of an (n, n) matrix of errors is at most n times the largest of them (Weyl's inequality).
    eps = np.finfo(K.dtype if K.dtype.kind == "f" else float).eps
    error = ENTRY_ERROR_ULPS * float(eps) * max(float(K.max()), -float(K.min()))
    allowed = K.shape[0] * error
    i, j = _largest_place(K, lambda rows: np.abs(K[rows] - K[:, rows].T))
    if abs(float(K[i, j]) - float(K[j, i])) > allowed:
        row, other = (i, j) if places is None else places[[i, j]].tolist()
        raise ValueError(
            f"{name} is not symmetric: its value of rows {row} and {other} (counted from 0) is {K[i, j]:.9g}, and "
            f"{K[j, i]:.9g} in the other order; give (K + K.T) / 2 if the difference does not matter."
        )
    least = least_eigenvalue(K, allowed)
    if least < -allowed:
        raise ValueError(
            f"{name} is not positive semidefinite, its least eigenvalue is {'at most ' * (K.shape[0] > MAX_ROWS)}"
            f"{least:.6g}: no inner product has these values, and no margin is defined. Use another kernel "
            f"or other parameters, or add {-1.01 * least:.3g} to the diagonal, as a soft margin does."
        )
    # |K_ij| <= sqrt(K_ii K_jj) for inner products (Cauchy and Schwarz), up to the rounding of an entry
    lengths = np.sqrt(np.maximum(np.diag(K).astype(float) + error, 0.0))
    i, j = _largest_place(K, lambda rows: np.abs(K[rows]) - lengths[rows, None] * lengths)
    if abs(float(K[i, j])) > lengths[i] * lengths[j] + error:
        row, other = (i, j) if places is None else places[[i, j]].tolist()
        raise ValueError(
            f"{name} is not positive semidefinite: its value of rows {row} and {other} (counted from 0) is "
            f"{K[i, j]:.9g}, and inner products are at most the square root of {K[i, i]:.9g} x {K[j, j]:.9g}, the "
            "product of the values on the diagonal. Use another kernel or other parameters."
        )


def least_eigenvalue(K: np.ndarray, allowed: float) -> float:
    """Return the least eigenvalue on at most MAX_ROWS evenly spaced rows, or -allowed if none is below it."""
    if K.shape[0] > MAX_ROWS:
        some = np.linspace(0, K.shape[0] - 1, MAX_ROWS).astype(np.intp)
        K = K[np.ix_(some, some)]
    K = K.astype(float)
    with suppress(
        LinAlgError
    ):  # a Cholesky factor of K + allowed I exists if all eigenvalues are above -allowed
        cholesky(K + allowed * np.eye(K.shape[0]), lower=True, overwrite_a=True, check_finite=False)
        return -allowed
    return float(eigvalsh(K, subset_by_index=(0, 0), check_finite=False)[0])


def _largest_place(K: np.ndarray, values: Callable[[slice], np.ndarray]) -> tuple[int, int]:
    """Return the place of the largest of the values of a matrix of the shape of K, computed for some rows at a time."""
    most, place = -np.inf, (0, 0)
    for first in range(0, K.shape[0], BLOCK):
        found = values(slice(first, first + BLOCK))
        i, j = np.unravel_index(int(found.argmax()), found.shape)
        if found[i, j] > most:
            most, place = float(found[i, j]), (first + int(i), int(j))
    return place
