"""Cholesky's factor of a matrix brought to a diagonal of ones, where rounding may have made it indefinite."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.linalg import lapack

from ...engine.cholesky import substitute, triangular

# shares of the diagonal that are added, one after the other, until there is a factor
RIDGES = 0.0, 1e-14, 1e-12, 1e-10
SMALL = 100  # equations, up to which LAPACK's wrappers take longer than the factor

_lapack: Any = lapack

Solve = Callable[[np.ndarray], np.ndarray]


def factor(matrix: np.ndarray) -> Solve | None:
    """Solves with this matrix; None where it has lost its digits."""
    return _small(matrix) if len(matrix) <= SMALL else _large(matrix)


def _small(matrix: np.ndarray) -> Solve | None:
    found, root, inverse = matrix.copy(), np.empty(len(matrix)), np.empty(len(matrix))
    if not any(triangular(found, root, ridge, inverse) for ridge in RIDGES):
        return None

    def solve(right: np.ndarray) -> np.ndarray:
        out = np.empty(root.size)
        substitute(found, root, inverse, right, out)
        return out

    return solve


def _large(matrix: np.ndarray) -> Solve | None:
    diagonal = np.diag(matrix)
    if not 0.0 < diagonal.min() <= diagonal.max() < np.inf:
        return None
    root = 1.0 / np.sqrt(diagonal)
    scaled = matrix * root * root[:, None]
    if not np.isfinite(scaled).all():
        return None
    for ridge in RIDGES:
        scaled.flat[:: root.size + 1] = 1.0 + ridge
        lower, failed = _lapack.dpotrf(scaled, lower=1)
        if not failed:
            return lambda right, lower=lower: root * _lapack.dpotrs(lower, root * right, lower=1)[0]
    return None
