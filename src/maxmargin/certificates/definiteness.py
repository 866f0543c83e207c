"""Checks that a kernel matrix is a Gram matrix: symmetric and positive semidefinite.

A vector v with v'Kv < 0 proves that K is no Gram matrix: no inner products have its values, so that there are no
lengths, no margins and no duality. As entries are rounded, a matrix is accepted as long as its negative eigenvalues may
be the effect of rounding.

References
----------
C. Lanczos, "An iteration method for the solution of the eigenvalue problem", J. Res. Nat. Bur. Standards 45, 1950.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import Any

import numpy as np
from scipy.linalg import LinAlgError, cholesky, eigh_tridiagonal, eigvalsh

from ..kernels.functions import Gaussian, Kernel, Linear, Polynomial, Precomputed
from ..numerics.sums import EPS

# Rows up to which the least eigenvalue is computed, in about a second; for more rows, an upper bound of it. A larger
# value finds more negative eigenvalues, and its time grows with the cube.
MAX_ROWS = 2000
# Number of matrices of the sampled rows that are in memory at once, and the least number of sampled rows, whatever the
# memory limit: fewer rows would miss negative eigenvalues. The second is a round value; not tuned.
MATRICES_IN_MEMORY, MIN_ROWS = 3, 250
# Steps of Lanczos' iteration: more steps find eigenvalues closer to zero, and each takes a product with the matrix. A
# round value; not tuned.
LANCZOS_STEPS = 60
# Accepted error of an entry, in units in the last place: kernels of many features have errors of tens of units.
ENTRY_ERROR_ULPS = 64.0
# Matrices whose entries are multiples of the power of two of the largest one, over 2 to this number, are not rounded to
# float32, whose numbers have 24 binary digits. With a larger number rounded matrices may be refused; a smaller one
# takes exact matrices for rounded ones.
EXACT_BITS = 16
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
        Finite numbers; values that float32 represents are accepted with the rounding of float32.
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
    allowed = eigenvalue_rounding(K)
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
    # |K_ij| <= sqrt(K_ii K_jj) for inner products (Cauchy and Schwarz), up to the rounding of an entry, which is
    # smaller than that of an eigenvalue
    error = allowed / K.shape[0]
    lengths = np.sqrt(np.maximum(np.diag(K).astype(float) + error, 0.0))
    i, j = _largest_place(K, lambda rows: np.abs(K[rows]) - lengths[rows, None] * lengths)
    if abs(float(K[i, j])) > lengths[i] * lengths[j] + error:
        row, other = (i, j) if places is None else places[[i, j]].tolist()
        raise ValueError(
            f"{name} is not positive semidefinite: its value of rows {row} and {other} (counted from 0) is "
            f"{K[i, j]:.9g}, and inner products are at most the square root of {K[i, i]:.9g} x {K[j, j]:.9g}, the "
            "product of the values on the diagonal. Use another kernel or other parameters."
        )


def eigenvalue_rounding(K: np.ndarray) -> float:
    """Return a bound of the change of an eigenvalue by rounding of the entries: n times the error of the largest entry.

    The spectral norm of an (n, n) matrix of errors is at most n times the largest of them (Weyl's inequality).
    """
    # float64 entries that float32 represents are taken as rounded to float32, unless they have few digits
    largest = max(float(K.max()), -float(K.min()))
    with np.errstate(over="ignore"):
        single = K.dtype.kind == "f" and bool((K.astype(np.float32) == K).all())
    for shift in (0, EXACT_BITS - int(np.frexp(largest)[1])) if single else ():  # whole numbers; few digits
        scaled = np.ldexp(K, shift)
        single = single and not np.array_equal(scaled, np.rint(scaled))
    eps = float(np.finfo(np.float32 if single else float).eps)
    return ENTRY_ERROR_ULPS * K.shape[0] * eps * largest


def least_eigenvalue(K: np.ndarray, allowed: float = 0.0) -> float:
    """Return the least eigenvalue of a symmetric matrix, or an upper or lower bound of it.

    Parameters
    ----------
    K : ndarray of shape (n, n)
    allowed : float, default=0.0
        Eigenvalues of at least -allowed need not be computed: if all are, -allowed may be returned.

    Returns
    -------
    value : float
        Up to 2000 rows the least eigenvalue, or -allowed, a lower bound of it. For more rows the least Ritz value of
        Lanczos' iteration, an upper bound of it, which is close to the eigenvalue where that is well separated.
    """
    if K.shape[0] > MAX_ROWS:
        return _least_ritz_value(K, allowed)
    if allowed > 0.0:
        # a Cholesky factor of K + allowed I exists if and only if all eigenvalues are above -allowed
        with suppress(LinAlgError):
            cholesky(K + allowed * np.eye(K.shape[0]), lower=True, overwrite_a=True, check_finite=False)
            return -allowed
    return float(eigvalsh(K.astype(float), subset_by_index=(0, 0), check_finite=False)[0])


def _least_ritz_value(K: np.ndarray, allowed: float) -> float:
    """Return the least Ritz value of Lanczos' iteration with full reorthogonalisation.

    The iteration stops after LANCZOS_STEPS steps, at a Ritz value below -2 allowed, or where the Krylov space is
    exhausted.
    """
    # orthonormal basis of the Krylov space, a vector in each row
    V = np.zeros((LANCZOS_STEPS + 1, K.shape[0]))
    V[0] = np.random.default_rng(0).standard_normal(K.shape[0])
    V[0] /= np.linalg.norm(V[0])
    diagonal, beside = np.zeros(LANCZOS_STEPS), np.zeros(LANCZOS_STEPS)
    least, size = np.inf, max(float(K.max()), -float(K.min()))
    for k in range(LANCZOS_STEPS):
        u = np.asarray(K @ V[k].astype(K.dtype if K.dtype.kind == "f" else float), dtype=float)
        diagonal[k] = V[k] @ u
        for _ in range(2):  # Gram-Schmidt twice: once leaves components of the size of rounding errors
            u -= V[: k + 1].T @ (V[: k + 1] @ u)
        beside[k] = np.linalg.norm(u)
        least = float(eigh_tridiagonal(diagonal[: k + 1], beside[:k], eigvals_only=True)[0])
        # the Krylov space is exhausted: no further step finds another direction
        if least < -2.0 * allowed or beside[k] <= K.shape[0] * EPS * size:
            break
        V[k + 1] = u / beside[k]
    return least


def _largest_place(K: np.ndarray, values: Callable[[slice], np.ndarray]) -> tuple[int, int]:
    """Return the place of the largest of the values of a matrix of the shape of K, computed for some rows at a time."""
    most, place = -np.inf, (0, 0)
    for first in range(0, K.shape[0], BLOCK):
        found = values(slice(first, first + BLOCK))
        i, j = np.unravel_index(int(found.argmax()), found.shape)
        if found[i, j] > most:
            most, place = float(found[i, j]), (first + int(i), int(j))
    return place
