"""p-norms of vectors and of rows. Numbers are divided by the largest of them, so that no power over- or underflows."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import scipy.sparse as sp

# Smaller sums of squares may have lost digits: terms of 1e-16 of the sum are subnormal.
MIN_SQUARES = 1e-290
# Entries of dense rows whose norms are computed together: temporaries of 2 MiB stay in the second cache. A smaller one
# takes more calls of NumPy, a larger one is read from memory several times.
BLOCK = 1 << 18


def norm(x: np.ndarray, r: float = 2.0) -> float:
    """Return |x|_r.

    Parameters
    ----------
    x : ndarray of shape (d,)
    r : float in [1, inf], default=2
    """
    if r == 2.0:
        with np.errstate(over="ignore"):
            square = float(x.dot(x))
        if MIN_SQUARES < square < np.inf:
            return math.sqrt(square)
    top = float(np.abs(x).max(initial=0.0))
    if np.isinf(r) or not (np.isfinite(top) and top > 0.0):
        return top
    if r == 1.0:
        return float(np.sum(np.abs(x) / top)) * top
    return float(np.sum((np.abs(x) / top) ** r)) ** (1.0 / r) * top


@np.errstate(over="ignore")
def row_norms(X: Any, r: float) -> np.ndarray:
    """Return |x_i|_r of every row of a dense or CSR matrix; inf where it is beyond float64 numbers.

    Parameters
    ----------
    X : ndarray or CSR matrix of shape (n, d)
    r : float in [1, inf]

    Returns
    -------
    norms : ndarray of shape (n,)
    """
    if not sp.issparse(X):
        X = np.asarray(X, dtype=float)
        step = max(1, BLOCK // max(X.shape[1], 1))
        if step < len(X):
            parts = (X[first : first + step] for first in range(0, len(X), step))
            return np.concatenate([row_norms(part, r) for part in parts])
        top = np.maximum(X.max(axis=1, initial=0.0), np.abs(X.min(axis=1, initial=0.0)))
        if np.isinf(r):
            return top
        safe = np.where((top > 0.0) & np.isfinite(top), top, 1.0)
        return np.sum((np.abs(X) / safe[:, None]) ** r, axis=1) ** (1.0 / r) * safe
    size = np.abs(X.data.astype(float))
    lines = np.repeat(np.arange(X.shape[0]), np.diff(X.indptr))
    top = np.zeros(X.shape[0])
    np.maximum.at(top, lines, size)
    if np.isinf(r):
        return top
    safe = np.where((top > 0.0) & np.isfinite(top), top, 1.0)
    return np.bincount(lines, weights=(size / safe[lines]) ** r, minlength=X.shape[0]) ** (1.0 / r) * safe
