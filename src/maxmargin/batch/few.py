"""Soft margins of a few dense rows at p = 2: the optimum, up to the last digit, in one compiled call.

Where it says that there is none, for want of digits or of steps, others have more of both.
"""

from __future__ import annotations

import numpy as np

from ..compiled.few import NONE, Desk, hinge, squared
from ..compiled.few import Few as Rows
from ..problems import Problem
from .blocks import Few
from .points import Point
from .proximal import STEEP, WEIGHT, WIDE

LARGEST = 1e300  # a share by which float64 can still be multiplied


def optimum(problem: Problem, few: Few, y: np.ndarray, weights: np.ndarray) -> Point | None:
    """(w, b, alpha) at which the optimality conditions hold to rounding; None where they are not met.

    Parameters
    ----------
    problem : Problem
        A soft margin.
    few : Few
        Its rows.
    y : ndarray of shape (n,), entries -1.0 and 1.0
    weights : ndarray of shape (n,), positive
        Sample weights.
    """
    z, slack = np.zeros(few.size), np.ones(few.n)
    if problem.loss == "squared_hinge":
        share = few.unit**2 / problem.delta2(weights)
        rows, desk = Rows(few.rows, y, share, few.regular, problem.free), _desk(few, share)
        if not squared(rows, z, slack, desk) <= NONE:
            return None
        return *few.primal(z), np.maximum(slack, 0.0) * (share / few.unit**2)
    cap = problem.caps(weights) * few.unit**2
    total = float(cap.sum())
    sigma, steep = min(WIDE, WEIGHT / total), STEEP * max(1.0, 1.0 / total)
    near, share = np.full(few.n, 2.0 * sigma), np.empty(few.n)
    if problem.free:
        balanced = problem.balanced(y, near * cap)
        near = near if balanced is None else balanced / cap
    rows, desk = Rows(few.rows, y, cap, few.regular, problem.free), _desk(few, cap)
    if not hinge(rows, cap * y, near, share, sigma, steep, z, slack, desk):
        return None
    return *few.primal(z), cap * share / few.unit**2


def _desk(few: Few, weight: np.ndarray) -> Desk:
    """Room to work, with all patterns inside."""
    n, size = few.n, few.size
    matrix = few.all_products(weight, np.arange(n, dtype=np.uint32))
    rows = [*np.empty((2, n)), np.empty(n, bool), np.ones(n, bool), *np.empty((2, n), np.uint32)]
    return Desk._make(
        [*rows, matrix, *np.empty((2, size, size)), np.diag(matrix).copy(), *np.empty((5, size))]
    )
