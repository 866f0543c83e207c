"""The free intercept: the exact minimiser of the loss in b.

For fixed w the loss is convex and piecewise linear (hinge) or piecewise quadratic (squared hinge) in b, with a
breakpoint at t_i = y_i - w.x_i for every pattern: below it for the positive class, above it for the negative one, the
pattern costs something.
"""

from __future__ import annotations

from itertools import accumulate

import numpy as np

from .problem import Problem, best_length

STILL = 1e-9  # relative change of a length that ends the search: the objective is within its square, 1e-18


def best_intercept(problem: Problem, z: np.ndarray, y: np.ndarray, weights: np.ndarray) -> float:
    """Return the b of least loss for scores z = w.x; the midpoint of an interval of them.

    Parameters
    ----------
    problem : Problem
    z : ndarray of shape (n,)
    y : ndarray of shape (n,), entries -1.0 and 1.0
    weights : ndarray of shape (n,)
        Sample weights; rows of weight 0 take no part. With one class only, every b far enough on its side is best.

    Returns
    -------
    b : float
    """
    counted = weights > 0.0
    for sign in (1.0, -1.0):
        if not (counted & (y == sign)).any():  # one class only: any b far enough on its side
            rest = z[counted]
            return -sign * (1.0 + float(np.abs(rest).max(initial=0.0)))
    if problem.hard:
        used = weights > 0.0
        return -0.5 * float(z[used & (y > 0)].min() + z[used & (y < 0)].max())
    t, c = y - z, problem.C * weights
    order = np.argsort(t)
    t, c, positive = t[order], c[order], y[order] > 0
    if problem.loss == "hinge":
        slope = np.cumsum(c) - c[positive].sum()  # right of t_k
        rounding = 1e-12 * float(c.sum())
        if rounding > 1e-3 * float(c[c > 0.0].min()):  # as large as a weight itself
            slope, rounding = _signs_of_slopes(c, positive), 0.0
        k = int(np.argmax(slope >= -rounding))
        if abs(slope[k]) > rounding:
            return float(t[k])
        # the slope is zero from t_k to the next breakpoint that has a weight
        later = t[k + 1 :][c[k + 1 :] > 0.0]
        return 0.5 * float(t[k] + later[0])
    free_from, free_to = float(t[positive & (c > 0.0)].max()), float(t[~positive & (c > 0.0)].min())
    if free_from <= free_to:  # nothing costs anything in between
        return 0.5 * (free_from + free_to)
    # slope / 2 at t_k: sum of c (t_k - t_i) over negatives below and positives above
    plus, minus = np.where(positive, c, 0.0), np.where(positive, 0.0, c)
    above, below = plus.sum() - np.cumsum(plus), np.cumsum(minus)
    above_t, below_t = (plus * t).sum() - np.cumsum(plus * t), np.cumsum(minus * t)
    k = int(np.argmax((above + below) * t - (above_t + below_t) > 0.0))
    active = np.where(np.arange(t.size) < k, ~positive, positive) & (c > 0.0)
    return float((c[active] @ t[active]) / c[active].sum())


def best_multiple_and_intercept(
    problem: Problem, square: float, z: np.ndarray, b: float, y: np.ndarray, weights: np.ndarray, turns: int
) -> tuple[float, float]:
    """Return (t, b): the best multiple of a w under squared losses, and its intercept.

    The length and a free intercept are optimised in turn; any other intercept grows with w.

    Parameters
    ----------
    problem : Problem
    square : float
        |w|^2, the weight of an augmented intercept left out.
    z : ndarray of shape (n,)
        Scores w.x.
    b : float
        The intercept of w; for a free one, where to begin.
    y : ndarray of shape (n,), entries -1.0 and 1.0
    weights : ndarray of shape (n,)
        Sample weights.
    turns : int
        At most, where the intercept is free.
    """
    t = 1.0
    for _ in range(turns if problem.free else 1):
        s = best_length(problem.norm2(t * t * square, b), y * (t * z + b), problem.C * weights)
        t, b = s * t, s * b
        if problem.free:
            b = best_intercept(problem, t * z, y, weights)
        if abs(s - 1.0) <= STILL:
            break
    return t, b


def _signs_of_slopes(c: np.ndarray, positive: np.ndarray) -> np.ndarray:
    """Return the sign of each partial sum of c less the sum over positive rows, in integers: without rounding."""
    ratios = [value.as_integer_ratio() for value in c.tolist()]
    common = max(below for _, below in ratios)  # powers of two
    whole = [above * (common // below) for above, below in ratios]
    rest = sum(value for value, counts in zip(whole, positive.tolist(), strict=True) if counts)
    return np.array([(total > rest) - (total < rest) for total in accumulate(whole)])
