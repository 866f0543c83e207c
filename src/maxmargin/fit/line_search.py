"""Exact line searches of solvers over the scale of w and the intercept, in linear time: breakpoints are not sorted.

Certificates use the plain NumPy functions of `problem/intercept.py` alone: any point serves a proof.
"""

from __future__ import annotations

import numpy as np

from ..engine.breakpoints import least_shift, least_squares, quantile
from ..problem.intercept import best_intercept
from ..problem.problem import Problem

# Share of all costs within which a slope is rounding: sums of some 1e4 costs are off by about so much.
ROUNDING = 1e-12
MAX_STEPS = 50  # of Newton's method on a piecewise linear slope: 3 to 6 are usual


def intercept(problem: Problem, z: np.ndarray, y: np.ndarray, weights: np.ndarray) -> float:
    """Return the b of least loss at these scores; the middle of the interval where there is more than one.

    Parameters
    ----------
    problem : Problem
    z : ndarray of shape (n,)
        Scores w.x.
    y : ndarray of shape (n,), entries -1.0 and 1.0
    weights : ndarray of shape (n,)
        Sample weights; rows of weight 0 take no part.
    """
    if problem.hard:
        return best_intercept(problem, z, y, weights)
    if problem.loss == "squared_hinge":
        b = least_shift(y, z, problem.C * weights, MAX_STEPS)
        return b if np.isfinite(b) else best_intercept(problem, z, y, weights)
    costs, positive = problem.caps(weights), y > 0
    total, pull = float(costs.sum()), float(costs @ positive)
    rounding = ROUNDING * total
    # both classes, and no cost that is lost in the sum of all
    if not (0.0 < pull < total and rounding <= 1e-3 * float(costs.min())):
        return best_intercept(problem, z, y, weights)
    low, high = quantile(y - z, costs, pull, rounding)
    return 0.5 * (low + high)


def multiple_and_intercept(
    problem: Problem, length: float, z: np.ndarray, b: float, y: np.ndarray, weights: np.ndarray
) -> tuple[float, float]:
    """Return (t, b): the multiple t of w of least objective under squared losses, with the best free intercept.

    Parameters
    ----------
    problem : Problem
        The norm squared.
    length : float
        |w|_q, the weight of an augmented intercept included.
    z : ndarray of shape (n,)
        Scores w.x.
    b : float
        The intercept of w; for a free one, where to begin.
    y : ndarray of shape (n,), entries -1.0 and 1.0
    weights : ndarray of shape (n,)
        Sample weights.
    """
    b, costs = float(b), problem.C * weights
    moves = 0.0 if problem.free else b
    t, other = least_squares(y, z, costs, length * length, 1.0, b, problem.free, moves, MAX_STEPS)
    return (t, other) if t > 0.0 and np.isfinite([t, other]).all() else (1.0, b)
