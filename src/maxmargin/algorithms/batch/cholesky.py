"""Cholesky factors: of dense systems by LAPACK, scaled and with ridges; and of a Gram matrix, pivoted, of its rank.

References
----------
S. Fine, K. Scheinberg, "Efficient SVM training using low-rank kernel representations", JMLR 2, 2001.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.linalg
from scipy.linalg import lapack

from ...engine.small_cholesky import RIDGES
from ...kernels.functions import Kernel

EPS = float(np.finfo(float).eps)
# Equations up to which LAPACK factors within a tenth of a second, and the deadline can wait; and columns of a larger
# matrix that are eliminated between two looks at it: half a second's work at 20,000 equations.
LARGE, PANEL = 1500, 128

_lapack: Any = lapack  # its annotations speak of every case at once
_linalg: Any = scipy.linalg

Solve = Callable[[np.ndarray], np.ndarray]


def factor(matrix: np.ndarray, interrupted: Callable[[], bool] = lambda: False) -> Solve | None:
    """Factor a symmetric positive definite matrix; return the function that solves with it, None where digits are lost.

    Rows and columns are scaled to a diagonal of ones. Where rounding has made the matrix indefinite, a share from
    `RIDGES` is added to this diagonal. LAPACK itself is called: SciPy's wrappers take longer than a small factor.

    Parameters
    ----------
    matrix : ndarray of shape (n, n)
        Not changed.
    interrupted : callable
        Returns whether to stop; asked within the factors of large matrices, which then return None.

    Returns
    -------
    callable
        Takes right-hand sides of shape (n,) or (n, m).
    """
    diagonal = np.diag(matrix)
    if not 0.0 < diagonal.min() <= diagonal.max() < np.inf:
        return None
    root = 1.0 / np.sqrt(diagonal)
    scaled = matrix * root * root[:, None]
    if not np.isfinite(scaled).all():
        return None
    for ridge in RIDGES:
        scaled.flat[:: root.size + 1] = 1.0 + ridge
        if len(scaled) <= LARGE:
            lower, failed = _lapack.dpotrf(scaled.T, lower=1)  # the transpose is in LAPACK's order
        else:
            lower, failed = _in_panels(scaled, interrupted)
            if interrupted():
                return None
        if not failed:
            return lambda right, lower=lower: (
                (root * _lapack.dpotrs(lower, (root * right.T).T, lower=1)[0].T).T
            )
    return None


def _in_panels(matrix: np.ndarray, interrupted: Callable[[], bool]) -> tuple[np.ndarray, bool]:
    """Return Cholesky's lower factor, made by panels of columns, and whether it failed: indefinite, or interrupted.

    The left-looking form: a panel is A[k:, k:k+m] less the products of the rows of the columns before it; LAPACK
    factors its upper block, and the rows below are solved for (Golub, Van Loan, "Matrix Computations", section 4.2.5).
    What lies above the diagonal is not made.
    """
    n = len(matrix)
    lower = np.empty((n, n), order="F")
    for first in range(0, n, PANEL):
        last = min(first + PANEL, n)
        if interrupted():
            return lower, True
        panel = matrix[first:, first:last] - lower[first:, :first] @ lower[first:last, :first].T
        corner, failed = _lapack.dpotrf(panel[: last - first], lower=1)
        if failed:
            return lower, True
        lower[first:last, first:last] = corner
        lower[last:, first:last] = _linalg.solve_triangular(
            corner, panel[last - first :].T, lower=True, check_finite=False
        ).T
    return lower, False


def low_rank_factor(kernel: Kernel, X: Any, most: int) -> np.ndarray | None:
    """Return Z of shape (n, rank) with K = Z Z' to rounding; None where the rank is more than `most`.

    Its columns serve as features for solvers that work on features. Cholesky's method with the largest diagonal entry
    as the pivot: rank + 1 rows of the kernel, n x rank^2 operations.

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
