"""The free intercept: the exact minimiser of the loss in b.

For fixed w the loss is convex and piecewise linear (hinge) or piecewise quadratic (squared hinge) in b. Pattern i has a
breakpoint at t_i = y_i - w.x_i: its loss is positive below t_i for the positive class, above t_i for the negative one.
"""

from __future__ import annotations

import numpy as np

from .problem import Problem

# Newton's method on piecewise quadratic losses: largest number of steps (3 to 6 are usual), and the relative decrease
# of the objective, or relative determinant, that is rounding.
MAX_STEPS = 100
ROUNDING = 1e-14
# A step has to attain this share of the decrease that its quadratic model predicts (Armijo's condition, with his usual
# constant): an equal objective alone may lie on the other side of the minimum.
ARMIJO = 1e-4


def best_intercept(problem: Problem, z: np.ndarray, y: np.ndarray, weights: np.ndarray) -> float:
    """Return the b with the smallest loss for scores z = w.x; of an interval of minimisers, its midpoint.

    Parameters
    ----------
    problem : Problem
    z : ndarray of shape (n,)
    y : ndarray of shape (n,), entries -1.0 and 1.0
    weights : ndarray of shape (n,)
        Sample weights; rows of weight 0 take no part. With one class, every b far enough on its side is a minimiser.

    Returns
    -------
    b : float
    """
    counted = weights > 0.0
    for sign in (1.0, -1.0):
        if not (counted & (y == sign)).any():  # one class: a b at which all its losses are 0
            rest = z[counted]
            return -sign * (1.0 + float(np.abs(rest).max(initial=0.0)))
    if problem.hard:
        return -0.5 * float(z[counted & (y > 0)].min() + z[counted & (y < 0)].max())
    t, c, positive = y - z, problem.C * weights, y > 0
    if problem.loss == "squared_hinge":
        free_from, free_to = float(t[positive & counted].max()), float(t[~positive & counted].min())
        if free_from <= free_to:  # the loss is 0 in between
            return 0.5 * (free_from + free_to)
        return _root_of_slope(t, c, positive, free_to, free_from)
    rounding = 1e-12 * float(c.sum())  # of the sums; a round value, not tuned
    order = np.argsort(t)
    # slope of the loss to the right of t_k: positive rows have the slope -c_i below t_i, negative rows c_i above t_i
    slope = np.cumsum(c[order]) - float(c[positive].sum())
    t, c = t[order], c[order]
    k = int(np.argmax(slope >= -rounding))
    if abs(slope[k]) > rounding:
        return float(t[k])
    # the slope is zero from t_k to the next breakpoint of a row with a weight
    later = t[k + 1 :][c[k + 1 :] > 0.0]
    return 0.5 * float(t[k] + (later[0] if later.size else t[k]))


def _root_of_slope(t: np.ndarray, c: np.ndarray, positive: np.ndarray, low: float, high: float) -> float:
    """Return the b with the smallest squared hinge loss, by Newton's method on the slope within [low, high].

    t, c and `positive` are breakpoints, costs and classes of the rows; the root lies between `low` and `high`. The
    slope, sum c_i (b - t_i) over the rows with a positive loss, is piecewise linear and increasing.
    """
    b, before = 0.5 * (low + high), np.zeros(0, bool)
    for _ in range(MAX_STEPS):
        costly = (t > b) == positive  # rows with a positive loss, or with t_i = b, which add 0 to the slope
        weight = c * costly
        root = float((weight @ t) / weight.sum())  # of the slope, if this set of rows stays the same
        if np.array_equal(costly, before):
            return root
        low, high, before = (b, high, costly) if root > b else (low, b, costly)
        b = root if low <= root <= high else 0.5 * (low + high)
    return b


def best_multiple_and_intercept(
    problem: Problem, norm2: float, z: np.ndarray, b: float, y: np.ndarray, weights: np.ndarray
) -> tuple[float, float]:
    """Return (t, b): the multiple t >= 0 of w with the smallest objective for squared losses, and its intercept.

    A free intercept is optimised together with t, by Newton's method on the piecewise quadratic objective; any other
    intercept is multiplied by t. Where no positive t is better, the result is (0, 0), or (1, b) with a free intercept.

    Parameters
    ----------
    problem : Problem
        With the squared norm (``power=2``) and squared hinge.
    norm2 : float
        |w|_q^2, the weight of an augmented intercept included.
    z : ndarray of shape (n,)
        Scores w.x.
    b : float
        The intercept of w; for a free one, where to begin.
    y : ndarray of shape (n,), entries -1.0 and 1.0
    weights : ndarray of shape (n,)
        Sample weights.
    """
    costs = problem.C * weights
    rows, point = np.stack([y * z, y]), np.array([1.0, b])
    if not problem.free:
        rows, point = point[None] @ rows, point[:1]
    slack, value = _slack_and_objective(rows, point, costs, norm2)
    for _ in range(MAX_STEPS):
        # half of the Hessian of the objective, over the rows with a positive loss
        weighted = rows * (costs * (slack > 0.0))
        curvature = weighted @ rows.T
        curvature[0, 0] += 0.5 * norm2
        if not np.linalg.det(curvature) > ROUNDING * curvature.diagonal().prod():
            break
        step, length = np.linalg.solve(curvature, weighted.sum(axis=1)) - point, 1.0
        decrease = float(step @ curvature @ step)  # of the objective, if the same rows have a positive loss
        if not decrease > ROUNDING * value:
            break
        slack, lower = _slack_and_objective(rows, point + step, costs, norm2)
        # a line search by halving
        while not lower <= value - ARMIJO * length * decrease and length > ROUNDING:
            length *= 0.5
            slack, lower = _slack_and_objective(rows, point + length * step, costs, norm2)
        if not lower < value:
            break
        point, value = point + length * step, lower
    t = max(float(point[0]), 0.0)
    if not problem.free:
        return t, t * b
    return (t, float(point[1])) if t > 0.0 and np.isfinite(point).all() else (1.0, b)


def _slack_and_objective(
    rows: np.ndarray, point: np.ndarray, costs: np.ndarray, norm2: float
) -> tuple[np.ndarray, float]:
    """Return the slack variables 1 - point.rows, and the objective; point is (t, b) or (t,), rows have shape (k, n)."""
    slack = np.maximum(1.0 - point @ rows, 0.0)
    return slack, 0.5 * float(point[0]) ** 2 * norm2 + float((costs * slack) @ slack)
