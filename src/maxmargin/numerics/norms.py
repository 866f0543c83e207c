"""p-norms, their duals, and the link between patterns and weights.

Patterns are measured in the p-norm, weights in the q-norm, 1/p + 1/q = 1. The link f of the exponent r is the gradient
of 1/2 |x|_r^2: that of q leads from weights to sums of patterns, that of p leads back. Everything is homogeneous,
and is computed on numbers divided by the largest of them: no power over- or underflows to any effect.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import scipy.sparse as sp

SUBNORMAL = 1e-290  # sums of squares below may have lost digits: terms 1e-16 as large are subnormal


def norm(x: np.ndarray, r: float = 2.0) -> float:
    """Return |x|_r.

    Parameters
    ----------
    x : ndarray of shape (d,)
    r : float in [1, inf], default=2
    """
    if r == 2.0:
        square = float(x.dot(x))  # which does not warn of an overflow
        if SUBNORMAL < square < np.inf:
            return math.sqrt(square)
    top = float(np.abs(x).max(initial=0.0))
    if np.isinf(r) or not (np.isfinite(top) and top > 0.0):
        return top
    if r == 1.0:
        return float(np.sum(np.abs(x) / top)) * top
    return float(np.sum((np.abs(x) / top) ** r)) ** (1.0 / r) * top


def row_norms(X: Any, r: float) -> np.ndarray:
    """Return |x_i|_r of every row of a dense or CSR matrix.

    Parameters
    ----------
    X : ndarray or CSR matrix of shape (n, d)
    r : float in [1, inf]

    Returns
    -------
    norms : ndarray of shape (n,)
    """
    if not sp.issparse(X):
        size = np.abs(np.asarray(X, dtype=float))
        top = size.max(axis=1, initial=0.0)
        if np.isinf(r):
            return top
        safe = np.where((top > 0.0) & np.isfinite(top), top, 1.0)
        return np.sum((size / safe[:, None]) ** r, axis=1) ** (1.0 / r) * safe
    size = np.abs(X.data.astype(float))
    lines = np.repeat(np.arange(X.shape[0]), np.diff(X.indptr))
    top = np.zeros(X.shape[0])
    np.maximum.at(top, lines, size)
    if np.isinf(r):
        return top
    safe = np.where((top > 0.0) & np.isfinite(top), top, 1.0)
    return np.bincount(lines, weights=(size / safe[lines]) ** r, minlength=X.shape[0]) ** (1.0 / r) * safe


def link(x: np.ndarray, r: float) -> np.ndarray:
    """Return the gradient of 1/2 |x|_r^2: sign(x_j) |x_j|^(r-1) / |x|_r^(r-2).

    At r = 1 and r = inf it is |x|_r times a subgradient. It is homogeneous of degree one, its dual norm is |x|_r, its
    product with x is |x|_r^2; the links of p and q are inverse to each other for 1 < p < inf. 0 has the link 0.

    Parameters
    ----------
    x : ndarray of shape (d,)
    r : float in [1, inf]
    """
    return norm(x, r) * subgradient(x, r)


def subgradient(x: np.ndarray, r: float) -> np.ndarray:
    """Return a g with g.x = |x|_r and dual norm 1; 0 at 0.

    For r = 1 the signs (0 where x_j = 0); for r = inf signs divided by their number, on the largest entries.

    Parameters
    ----------
    x : ndarray of shape (d,)
    r : float in [1, inf]
    """
    top = float(np.abs(x).max(initial=0.0))
    if top == 0.0:
        return np.zeros_like(x, dtype=float)
    if np.isinf(r):
        largest = np.abs(x) == top
        return np.where(largest, np.sign(x), 0.0) / np.count_nonzero(largest)
    u = np.abs(x) / top
    return np.sign(x) * (u / float(np.sum(u**r)) ** (1.0 / r)) ** (r - 1.0)
