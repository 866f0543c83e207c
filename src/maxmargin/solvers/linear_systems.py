"""Linear systems of the solvers: Gram matrices of dense and sparse rows, and factors."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.linalg
import scipy.sparse as sp

from ..engine.jit import compiled
from ..numerics.columns import canonical, with_constant_column
from ..problem.problem import Problem

TINY = 1e-300  # the smallest divisor, which avoids a division by 0, and the least scale of pivots

_linalg: Any = scipy.linalg  # typed as Any: its annotations allow more types of results than these calls have

Solve = Callable[[np.ndarray], np.ndarray]  # from right-hand sides to solutions


def factor(matrix: np.ndarray) -> Solve | None:
    """Factor a symmetric positive definite matrix; return a function that solves linear systems with it.

    Rows and columns are scaled to a diagonal of ones. Where rounding has made the matrix indefinite, the first of a
    few ridges that gives a factor is added to this diagonal. LAPACK is called directly: SciPy's wrappers take longer
    than the factorisation of a small matrix.

    Parameters
    ----------
    matrix : ndarray of shape (n, n)
        Not changed.

    Returns
    -------
    callable or None
        Maps right-hand sides of shape (n,) or (n, m) to solutions. None where the matrix is not positive definite even
        with the largest ridge, or not finite.
    """
    diagonal = np.diag(matrix)
    if not 0.0 < diagonal.min() <= diagonal.max() < np.inf:
        return None
    root = 1.0 / np.sqrt(diagonal)  # M = diag(1 / root) scaled diag(1 / root)
    scaled = matrix * root
    scaled *= root[:, None]
    if not np.isfinite(scaled).all():
        return None
    # a larger ridge changes the solution more; beyond the last one too few digits are left
    for ridge in (0.0, 1e-15, 1e-14, 1e-13, 1e-12, 1e-11, 1e-10):
        scaled.flat[:: root.size + 1] = 1.0 + ridge
        # the transpose is the same matrix, in the column order of LAPACK
        lower, failed = _linalg.lapack.dpotrf(scaled.T, lower=1)
        if not failed:
            return lambda right, lower=lower: (
                (root * _linalg.lapack.dpotrs(lower, (root * right.T).T, lower=1)[0].T).T
            )
    return None


class PivotedQR:
    """The factors of B P = Q R, without the columns whose pivot is rounding; P orders columns by their pivots.

    Parameters
    ----------
    B : ndarray of shape (m, k)

    Attributes
    ----------
    rank : int
        Number of columns that are kept.
    Q : ndarray of shape (m, rank)
        Orthonormal columns.
    """

    def __init__(self, B: np.ndarray) -> None:
        self.Q, self._R, self._order = _linalg.qr(B, mode="economic", pivoting=True, check_finite=False)
        pivots = np.abs(np.diag(self._R))
        # a few hundred times the rounding of float64: with a larger factor nearly dependent columns are dropped, too
        rounding = 1e-13 * max(B.shape) * max(float(pivots.max(initial=0.0)), TINY)
        self.rank = int(np.count_nonzero(pivots > rounding))
        self.Q, self._R = self.Q[:, : self.rank], self._R[: self.rank, : self.rank]

    def solve_transposed(self, right: np.ndarray) -> np.ndarray:
        """Return R'^-1 P' right, of shape (rank,); `right` has shape (k,)."""
        return _linalg.solve_triangular(self._R, right[self._order[: self.rank]], trans=1, check_finite=False)

    def solve(self, z: np.ndarray) -> np.ndarray:
        """Return P R^-1 z, of shape (k,), with 0 for the dropped columns; `z` has shape (rank,)."""
        out = np.zeros(self._order.size)
        out[self._order[: self.rank]] = _linalg.solve_triangular(self._R, z, check_finite=False)
        return out


def sparse_gram(X: Any, weights: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """Return sum c_k (x_k, 1)(x_k, 1)' over these rows of a CSR matrix, of shape (d + 1, d + 1).

    Parameters
    ----------
    X : CSR matrix of shape (n, d)
        In canonical format: sorted entries, each once.
    weights : ndarray of shape (k,)
        The c_k.
    rows : ndarray of int of shape (k,)
    """
    found = np.zeros((X.shape[1] + 1, X.shape[1] + 1))
    add_sparse_products(unsigned(X.indptr), unsigned(X.indices), X.data, unsigned(rows), weights, found)
    found += np.tril(found, -1).T
    return found


@compiled()
def add_sparse_products(indptr, indices, data, rows, c, matrix):
    """Add sum c_k (x_k, 1)(x_k, 1)' over these rows of a CSR matrix, with sorted indices, to the lower triangle."""
    last = matrix.shape[0] - 1
    for k in range(rows.size):
        i, weight = rows[k], c[k]
        begin, end = np.uint64(indptr[i]), np.uint64(indptr[i + 1])
        for j in range(begin, end):
            place, value = indices[j], weight * data[j]
            for other in range(begin, j + np.uint64(1)):
                matrix[place, indices[other]] += value * data[other]
            matrix[last, place] += value
        matrix[last, last] += weight


def unsigned(a: np.ndarray) -> np.ndarray:
    """Return a view of indices as unsigned integers: compiled loops then do not test for negative indices."""
    return a.view(f"u{a.dtype.itemsize}")


def signed_rows(problem: Problem, X: Any, y: np.ndarray) -> Any:
    """Return the rows y_i x_i, with the constant coordinate where the problem has one; dense or CSR as X is."""
    X = X.astype(float) if sp.issparse(X) else np.asarray(X, dtype=float)
    return times_rows(with_constant_column(X, problem.rho), y)


def times_rows(A: Any, factors: np.ndarray) -> Any:
    """Return diag(factors) A, dense or CSR as A is."""
    if isinstance(A, np.ndarray):
        return A * factors[:, None]
    A = sp.csr_array(A)
    return sp.csr_array((A.data * np.repeat(factors, np.diff(A.indptr)), A.indices, A.indptr), shape=A.shape)


def times_columns(A: Any, factors: np.ndarray) -> Any:
    """Return A diag(factors), dense or CSR as A is."""
    if isinstance(A, np.ndarray):
        return A * factors
    A = sp.csr_array(A)
    return sp.csr_array((A.data * factors[A.indices], A.indices, A.indptr), shape=A.shape)


def gram(H: Any) -> np.ndarray:
    """Return H'H of a dense or sparse H, as a dense matrix."""
    if isinstance(H, np.ndarray):
        return H.T @ H
    H = canonical(sp.csr_array(H))
    return sparse_gram(H, np.ones(H.shape[0]), np.arange(H.shape[0]))[:-1, :-1]
