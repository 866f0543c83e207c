"""An interval that holds the optimal free intercepts for all scores within given intervals.

With score z_i, a positive row has a loss for b below t_i = y_i - z_i, a negative row for b above. The slope of the sum
of losses in b,

    hinge          sum_{negative, t_i <= b} s_i - sum_{positive, t_i > b} s_i
    squared hinge  2 sum_{negative} s_i (b - t_i)_+ - 2 sum_{positive} s_i (t_i - b)_+,

is non-decreasing in b and in every score. Hence an optimal b for scores of at least `low` is at most the largest
optimal b for `low` itself, and an optimal b for scores of at most `high` is at least the smallest for `high`, which is
the first statement with every sign reversed.
"""

from __future__ import annotations

import numpy as np

from ..numerics.sums import EPS
from ..problem.problem import Problem


def intercept_interval(
    problem: Problem, low: np.ndarray, high: np.ndarray, y: np.ndarray, weights: np.ndarray
) -> tuple[float, float]:
    """Return bounds of the optimal intercepts b for all scores between `low` and `high`.

    Parameters
    ----------
    problem : Problem
        With a free intercept.
    low, high : ndarray of shape (n,)
        Bounds on the scores w.x_i.
    y : ndarray of shape (n,), entries -1.0 and 1.0
    weights : ndarray of shape (n,)
        Sample weights; rows of weight 0 take no part.

    Returns
    -------
    least, largest : float
        Infinite where the sum of losses has no smallest or largest minimiser, as with one class only.
    """
    used = weights > 0.0
    low, high, y, weights = low[used], high[used], y[used], weights[used]
    if problem.hard:  # every margin is at least one: z_i + b >= 1 for y_i = 1, z_i + b <= -1 for y_i = -1
        return (
            float(np.max(1.0 - high[y > 0], initial=-np.inf)),
            float(np.min(-1.0 - low[y < 0], initial=np.inf)),
        )
    return -_largest_argmin(problem.loss, -high, -y, weights), _largest_argmin(problem.loss, low, y, weights)


def _largest_argmin(loss: str, scores: np.ndarray, y: np.ndarray, weights: np.ndarray) -> float:
    """Return the largest minimiser b of the sum of losses for these scores, rounded upwards; inf if there is none.

    It is the first breakpoint t_i, in ascending order, right of which the slope is positive whatever the rounding
    (hinge), or the root of the slope on the segment that ends at this breakpoint (squared hinge). `scores`, `y` and
    `weights` have shape (n,), and all weights are positive.
    """
    if scores.size == 0:
        return np.inf
    t = y - scores
    order = np.argsort(t, kind="stable")
    t, c, positive = t[order], weights[order], y[order] > 0
    # weights of the positive and of the negative rows, in the order of the breakpoints
    plus, minus = np.where(positive, c, 0.0), np.where(positive, 0.0, c)
    n, middle = t.size, float(t[t.size // 2])
    t = t - middle  # breakpoints relative to the middle one, so that large ones lose no digits
    if loss == "hinge":
        # at each breakpoint the slope rises by the weight of its row, from -sum_{positive} s_i at the left;
        # 4 (n + 4) eps bounds the relative rounding error of the cumulative sums of n terms
        slope = np.cumsum(c) - plus.sum()
        rounding = 4.0 * (n + 4.0) * EPS * float(c.sum())
        last = float(t[np.argmax(slope > rounding)]) if slope[-1] > rounding else np.inf
    else:
        # On each segment half of the slope is weight b - offset, sums of s_i and s_i t_i over the rows with a loss
        # there: entry 0 is the segment left of all breakpoints, entry i + 1 the one right of breakpoint i.
        weight = np.concatenate([[0.0], np.cumsum(minus - plus)]) + plus.sum()
        offset = np.concatenate([[0.0], np.cumsum((minus - plus) * t)]) + (plus * t).sum()
        offset_error = 4.0 * (n + 4.0) * EPS * float(c @ np.abs(t))
        weight_error = 4.0 * (n + 4.0) * EPS * float(c.sum())
        above = weight[1:] * t - offset[1:] > offset_error + weight_error * np.abs(t)
        # k is the first breakpoint at which the slope is positive: the root is on segment k, which ends there
        k = int(np.argmax(above)) if above[-1] else n
        # the largest root offset / weight within the errors of both
        numerator = float(offset[k] + offset_error)
        divisor = weight[k] - weight_error if numerator > 0.0 else weight[k] + weight_error
        root = numerator / divisor if weight[k] > weight_error else np.inf
        last = float(min(root, t[k])) if k < n else float(root)
    return last + middle + 8.0 * EPS * ((abs(last) if np.isfinite(last) else 0.0) + abs(middle))
