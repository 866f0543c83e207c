"""Cholesky's factor of a matrix brought to a diagonal of ones, where rounding may have made it indefinite."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.linalg import lapack

RIDGE = 1e-14  # share of the diagonal that is added where rounding makes the matrix indefinite

_lapack: Any = lapack  # whose wrappers take longer than a small matrix does


def factor(matrix: np.ndarray) -> Callable[[np.ndarray], np.ndarray] | None:
    """Solves with this matrix; None where it has lost its digits."""
    diagonal = np.diag(matrix).copy()
    if not (np.isfinite(matrix).all() and diagonal.min() > 0.0):
        return None
    root = 1.0 / np.sqrt(diagonal)
    scaled = matrix * root * root[:, None]
    for ridge in (0.0, RIDGE, 1e2 * RIDGE, 1e4 * RIDGE):
        scaled.flat[:: root.size + 1] = 1.0 + ridge
        lower, failed = _lapack.dpotrf(scaled, lower=1)
        if not failed:
            return lambda right, lower=lower: root * _lapack.dpotrs(lower, root * right, lower=1)[0]
    return None
