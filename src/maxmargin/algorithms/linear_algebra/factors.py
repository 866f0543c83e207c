"""Factors of dense linear systems: Cholesky with scaling and ridges, pivoted QR; and Cholesky of a Gram matrix by rows.

References
----------
S. Fine, K. Scheinberg, "Efficient SVM training using low-rank kernel representations", JMLR 2, 2001.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.linalg

from ...engine.small_cholesky import RIDGES
from ...kernels.functions import Kernel
from ...numerics.stop_check import OutOfTime, require_time
from ...numerics.sums import EPS
from .gram import MULTIPLICATIONS_PER_CHECK, parts_of

# Number of equations up to which LAPACK takes less than a tenth of a second, so that the stop check is not called.
MAX_UNINTERRUPTED = 1500
# Columns of larger matrices that are factored between two stop checks: half a second at 20,000 equations.
PANEL_COLUMNS = 128
# A pivot up to this times max(m, k) times the largest counts as rounding, for a matrix of m rows and k columns. It is a
# few hundred times the rounding of float64: a larger one drops columns that are only nearly dependent.
PIVOT_ROUNDING = 1e-13
TINY = 1e-300  # the smallest divisor, which avoids a division by 0, and the least scale of pivots

_linalg: Any = scipy.linalg  # typed as Any: its annotations allow more types of results than these calls have

Solve = Callable[[np.ndarray], np.ndarray]  # from right-hand sides to solutions


def solved_lower(lower: np.ndarray, right: np.ndarray, interrupted: Callable[[], bool]) -> np.ndarray:
    """Return L^-1 B for a lower triangular L of shape (n, n) and B of shape (n, k), by blocks of columns.

    Raises
    ------
    OutOfTime
        If the stop check is true.
    """
    step = max(int(MULTIPLICATIONS_PER_CHECK / max(len(lower), 1) ** 2), 1)
    solved = np.empty(right.shape)
    for first in range(0, right.shape[1], step):
        if first and interrupted():
            raise OutOfTime
        block = right[:, first : first + step]
        solved[:, first : first + step] = _linalg.solve_triangular(
            lower, block, lower=True, check_finite=False
        )
    return solved


def factor(matrix: np.ndarray, interrupted: Callable[[], bool] = lambda: False) -> Solve | None:
    """Factor a symmetric positive definite matrix; return a function that solves linear systems with it.

    Rows and columns are scaled to a diagonal of ones. Where rounding has made the matrix indefinite, the first of
    `RIDGES` that gives a factor is added to this diagonal. LAPACK is called directly: SciPy's wrappers take longer than
    the factorisation of a small matrix.

    Parameters
    ----------
    matrix : ndarray of shape (n, n)
        Not changed.
    interrupted : callable
        Returns whether to stop; called during the factorisation of large matrices.

    Returns
    -------
    callable or None
        Maps right-hand sides of shape (n,) or (n, m) to solutions. None where the matrix is not positive definite even
        with the largest ridge, is not finite, or where the factorisation was interrupted.
    """
    diagonal = np.diag(matrix)
    if not 0.0 < diagonal.min() <= diagonal.max() < np.inf:
        return None
    root = 1.0 / np.sqrt(diagonal)  # M = diag(1 / root) scaled diag(1 / root)
    scaled = np.empty_like(matrix)
    for part in parts_of(matrix, interrupted):
        scaled[part] = matrix[part] * root * root[part, None]
        if not np.isfinite(scaled[part]).all():
            return None
    if interrupted():
        return None
    for ridge in RIDGES:
        scaled.flat[:: root.size + 1] = 1.0 + ridge
        try:
            lower = lower_factor(scaled, interrupted)
        except np.linalg.LinAlgError:
            continue
        except OutOfTime:
            return None
        return lambda right, lower=lower: (
            (root * _linalg.lapack.dpotrs(lower, (root * right.T).T, lower=1)[0].T).T
        )
    return None


def lower_factor(matrix: np.ndarray, interrupted: Callable[[], bool]) -> np.ndarray:
    """Return the lower Cholesky factor L of a symmetric matrix; entries above the diagonal have no meaning.

    Raises
    ------
    LinAlgError
        If the matrix is not positive definite.
    OutOfTime
        If the stop check is true.
    """
    if len(matrix) > MAX_UNINTERRUPTED:
        return _factor_by_panels(matrix, interrupted)
    # the transpose is the same matrix, in the column order of LAPACK
    lower, failed = _linalg.lapack.dpotrf(matrix.T, lower=1)
    if failed:
        raise np.linalg.LinAlgError
    return lower


def _factor_by_panels(matrix: np.ndarray, interrupted: Callable[[], bool]) -> np.ndarray:
    """Return the lower Cholesky factor L, computed by panels of columns.

    The left-looking form (Golub, Van Loan, "Matrix Computations", section 4.2.5): with the columns L[:, :k] known, a
    panel of m columns is P = A[k:, k:k+m] - L[k:, :k] L[k:k+m, :k]'. LAPACK factors its upper block, P[:m] = L11 L11',
    and the rows below are L21 = P[m:] L11'^-1. Entries above the diagonal are not set.
    """
    n = len(matrix)
    lower = np.empty((n, n), order="F")
    for first in range(0, n, PANEL_COLUMNS):
        last = min(first + PANEL_COLUMNS, n)
        require_time(interrupted)
        panel = matrix[first:, first:last] - lower[first:, :first] @ lower[first:last, :first].T
        corner, failed = _linalg.lapack.dpotrf(panel[: last - first], lower=1)
        if failed:
            raise np.linalg.LinAlgError
        lower[first:last, first:last] = corner
        lower[last:, first:last] = _linalg.solve_triangular(
            corner, panel[last - first :].T, lower=True, check_finite=False
        ).T
    return lower


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
        floor = PIVOT_ROUNDING * max(B.shape) * max(float(pivots.max(initial=0.0)), TINY)
        self.rank = int(np.count_nonzero(pivots > floor))
        self.Q, self._R = self.Q[:, : self.rank], self._R[: self.rank, : self.rank]

    def solve_transposed(self, right: np.ndarray) -> np.ndarray:
        """Return R'^-1 P' right, of shape (rank,); `right` has shape (k,)."""
        return _linalg.solve_triangular(self._R, right[self._order[: self.rank]], trans=1, check_finite=False)

    def solve(self, z: np.ndarray) -> np.ndarray:
        """Return P R^-1 z, of shape (k,), with 0 for the dropped columns; `z` has shape (rank,)."""
        out = np.zeros(self._order.size)
        out[self._order[: self.rank]] = _linalg.solve_triangular(self._R, z, check_finite=False)
        return out


def low_rank_factor(kernel: Kernel, X: Any, max_rank: int) -> np.ndarray | None:
    """Return Z of shape (n, rank) with the Gram matrix K = Z Z' up to rounding; None where the rank is larger.

    The columns of Z are features for solvers of linear problems. Cholesky's method with the largest remaining diagonal
    entry as the pivot computes at most rank rows of the kernel, in n rank^2 operations.

    Parameters
    ----------
    kernel : Kernel
    X : ndarray or CSR matrix of shape (n, d), float64
        As `kernel.prepared` returns it.
    max_rank : int
        Largest number of columns of Z.
    """
    residual = np.array(kernel.diagonal(X), dtype=float)  # diagonal of K - Z Z'
    rounding = X.shape[0] * EPS * float(residual.max(initial=0.0))  # a bound for the error of a pivot
    Z = np.zeros((X.shape[0], min(max_rank, X.shape[0])))
    for k in range(Z.shape[1]):
        i = int(residual.argmax())  # the pivot
        if residual[i] <= rounding:
            return Z[:, :k]
        # column k: (K_ji - sum over l < k of Z_jl Z_il) / sqrt(pivot) for every row j
        Z[:, k] = (kernel.block(X[[i]], X)[0] - Z[:, :k] @ Z[i, :k]) / residual[i] ** 0.5
        residual -= Z[:, k] ** 2
    return Z if float(residual.max(initial=0.0)) <= rounding else None
