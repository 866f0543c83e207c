"""The exact finish for small problems: solve the optimality conditions on the support.

Given which dual weights are free (F), zero (Z) and capped (U), the conditions are linear. Solving them, moving every
pattern that contradicts its set, and repeating is a semismooth Newton method; it ends with the optimum to rounding.

References
----------
M. Hintermueller, K. Ito, K. Kunisch, "The primal-dual active set strategy as a semismooth Newton method",
SIAM J. Optim. 13, 2002.
"""

from __future__ import annotations

import numpy as np
from scipy.linalg import lstsq
from scipy.optimize import lsq_linear

from .interior_point import interior_point
from .quadratic import Quadratic

TURNS = 25  # most changes of the sets
MANY = 1200  # most free dual weights in one linear system


def exact(qp: Quadratic, start: np.ndarray | None = None) -> tuple[np.ndarray, np.ndarray]:
    """Dual weights and multipliers of the equations, optimal to rounding where all goes well.

    Parameters
    ----------
    qp : Quadratic
    start : ndarray, default=None
        Dual weights near the optimum. Where they do not lead to it, an interior-point method does.
    """
    if start is not None:
        a = np.clip(start, 0.0, qp.c)
        beta = _multipliers(qp, a)
        found = _settle(qp, (a > 0.0) & (a < qp.c), a >= qp.c, beta)
        if found is not None:
            return found
    a, beta, u, v = interior_point(qp)
    natural = np.minimum(qp.c, max(float(a.max()), 1e-300))
    free = (a / natural > u) & ((qp.c - a) / natural > v)
    capped = ~free & np.isfinite(qp.c) & (a > 0.5 * qp.c)
    return _settle(qp, free, capped, beta) or (np.clip(a, 0.0, qp.c), beta)


def _multipliers(qp: Quadratic, a: np.ndarray) -> np.ndarray:
    """The multipliers that make free patterns tight, in the mean."""
    if not len(qp.e):
        return np.zeros(0)
    free = (a > 0.0) & (a < qp.c)
    free = free if free.any() else a > 0.0
    slack = qp.slacks(a, np.zeros(len(qp.e)))
    return lstsq(qp.E[:, free].T, -slack[free])[0] if free.any() else np.zeros(len(qp.e))


def _settle(
    qp: Quadratic, free: np.ndarray, capped: np.ndarray, beta: np.ndarray
) -> tuple[np.ndarray, np.ndarray] | None:
    """Solve on the free set and correct the sets until nothing contradicts; None where that does not end."""
    seen = set()
    for _ in range(TURNS):
        key = (free.tobytes(), capped.tobytes())
        if key in seen or np.count_nonzero(free) > MANY:
            return None
        seen.add(key)
        a, beta = _solve(qp, free, capped, beta)
        if not (np.isfinite(a).all() and np.isfinite(beta).all()):
            return None
        slack = qp.slacks(a, beta)
        fuzz = 1e-11 * (1.0 + np.abs(qp.E.T @ beta) + float(np.abs(slack).max()) * 1e-2)
        small = 1e-11 * max(float(np.abs(a).max()), 1e-300)
        low, high = free & (a < -small), free & (a > qp.c + small)
        need, much = ~free & ~capped & (slack < -fuzz), capped & (slack > fuzz)
        if not (low.any() or high.any() or need.any() or much.any()):
            if np.abs(slack[free]).max(initial=0.0) > 1e-7 * (1.0 + np.abs(beta).max(initial=0.0)):
                return None  # the conditions contradict each other: the sets are wrong
            return np.clip(a, 0.0, qp.c), beta
        if (low.any() or high.any()) and not (need.any() or much.any()):
            repaired = _redistribute(qp, a, free, capped)
            if repaired is not None:
                return repaired, beta
        free = (free & ~low & ~high) | need | much
        capped = (capped & ~much) | high
    return None


def _solve(
    qp: Quadratic, free: np.ndarray, capped: np.ndarray, beta: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """The linear conditions: patterns in F tight, equations met; of many solutions the shortest."""
    a = np.where(capped, qp.c, 0.0)
    k, m = np.count_nonzero(free), len(qp.e)
    if k == 0:
        return a, beta
    A, E = qp.A[free], qp.E[:, free]
    K = np.zeros((k + m, k + m))
    K[:k, :k] = A @ A.T
    K[np.arange(k), np.arange(k)] += qp.D[free]
    K[:k, k:], K[k:, :k] = E.T, E
    fixed = qp.A.T @ a
    r = np.concatenate([qp.q[free] - A @ fixed, qp.e - qp.E @ a])
    x = np.zeros(k + m)
    size = np.sqrt(np.maximum(np.abs(K).max(axis=1), 1e-300))
    scaled = K / size[:, None] / size[None, :]
    for _ in range(2):  # the second turn refines the first
        residual = (r - K @ x) / size
        x = x + lstsq(scaled, residual, cond=1e-14, lapack_driver="gelsd", check_finite=False)[0] / size
    a[free] = x[:k]
    return a, x[k:] if m else beta


def _redistribute(qp: Quadratic, a: np.ndarray, free: np.ndarray, capped: np.ndarray) -> np.ndarray | None:
    """Where tight patterns are linearly dependent: the same w from dual weights within their bounds."""
    if qp.D[free].any():
        return None
    rows = np.vstack([qp.A[free].T, qp.E[:, free]])
    target = rows @ a[free]
    upper = np.where(np.isfinite(qp.c[free]), qp.c[free], 1e3 * max(float(np.abs(a).max()), 1.0))
    found = lsq_linear(rows, target, bounds=(0.0, upper), method="bvls", tol=1e-15)
    if not np.abs(rows @ found.x - target).max() <= 1e-12 * (1.0 + np.abs(target).max()):
        return None
    out = np.where(capped, qp.c, 0.0)
    out[free] = found.x
    return out
