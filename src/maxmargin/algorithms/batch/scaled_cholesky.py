"""Cholesky's factor of a matrix brought to a diagonal of ones, where rounding may have made it indefinite."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.linalg
from scipy.linalg import lapack

from ...engine.cholesky import substitute, triangular

# shares of the diagonal that are added, one after the other, until there is a factor
RIDGES = 0.0, 1e-14, 1e-12, 1e-10
SMALL = 100  # equations, up to which LAPACK's wrappers take longer than the factor
# equations up to which LAPACK's factor takes a tenth of a second, and nobody need ask whether to stop meanwhile; and
# columns of a larger one that are eliminated between two such questions: half a second's work at 20,000 equations
LARGE, PANEL = 1500, 128

_lapack: Any = lapack
_linalg: Any = scipy.linalg  # its annotations speak of every case at once

Solve = Callable[[np.ndarray], np.ndarray]


def factor(matrix: np.ndarray, interrupted: Callable[[], bool] = lambda: False) -> Solve | None:
    """Solves with this matrix; None where it has lost its digits, or where it is time to stop.

    Parameters
    ----------
    matrix : ndarray of shape (n, n), symmetric
    interrupted : callable
        True where it is time to stop. Asked within the factors of large matrices.
    """
    return _small(matrix) if len(matrix) <= SMALL else _large(matrix, interrupted)


def _small(matrix: np.ndarray) -> Solve | None:
    found, root, inverse = matrix.copy(), np.empty(len(matrix)), np.empty(len(matrix))
    if not any(triangular(found, root, ridge, inverse) for ridge in RIDGES):
        return None

    def solve(right: np.ndarray) -> np.ndarray:
        out = np.empty(root.size)
        substitute(found, root, inverse, right, out)
        return out

    return solve


def _large(matrix: np.ndarray, interrupted: Callable[[], bool]) -> Solve | None:
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
            lower, failed = _lapack.dpotrf(scaled, lower=1)
        else:
            lower, failed = _in_panels(scaled, interrupted)
            if interrupted():
                return None
        if not failed:
            return lambda right, lower=lower: root * _lapack.dpotrs(lower, root * right, lower=1)[0]
    return None


def _in_panels(matrix: np.ndarray, interrupted: Callable[[], bool]) -> tuple[np.ndarray, bool]:
    """Cholesky's lower factor by panels of columns, and whether it failed: indefinite, or left as it is time to stop.

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
