"""An interval that holds the best free intercepts, where scores are known to intervals only.

Row i costs something below t_i = y_i - z_i if it is positive, above if it is negative. The slope of the loss in b,

    hinge          sum_{negative, t_i <= b} s_i - sum_{positive, t_i > b} s_i
    squared hinge  sum_{negative} s_i (b - t_i)_+ - sum_{positive} s_i (t_i - b)_+       (times 2),

rises with b, and rises with every score. So no b that is best for scores of at least `low` is larger than the largest
that is best for `low` itself; and none that is best for scores of at most `high` is smaller than the smallest for
`high`, which is the first statement with every sign turned.
"""

from __future__ import annotations

import numpy as np

from ..problem.problem import Problem
from .bounds import EPS


def intercept_interval(
    problem: Problem, low: np.ndarray, high: np.ndarray, y: np.ndarray, weights: np.ndarray
) -> tuple[float, float]:
    """Return the least and the largest b that can be best for scores between `low` and `high`.

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
        Infinite where one class is not there.
    """
    used = weights > 0.0
    low, high, y, weights = low[used], high[used], y[used], weights[used]
    if problem.hard:  # every margin must be one at least
        return (
            float(np.max(1.0 - high[y > 0], initial=-np.inf)),
            float(np.min(-1.0 - low[y < 0], initial=np.inf)),
        )
    return -_largest(problem.loss, -high, -y, weights), _largest(problem.loss, low, y, weights)


def _largest(loss: str, scores: np.ndarray, y: np.ndarray, weights: np.ndarray) -> float:
    """Return the largest b that is best for these scores, or a little more by rounding; never less."""
    if scores.size == 0:
        return np.inf
    t = y - scores
    order = np.argsort(t, kind="stable")
    t, c, positive = t[order], weights[order], y[order] > 0
    plus, minus = np.where(positive, c, 0.0), np.where(positive, 0.0, c)
    n, middle = t.size, float(t[t.size // 2])
    t = t - middle  # breakpoints are measured from the middle one, so that large ones lose no digits
    if loss == "hinge":
        # right of each breakpoint the slope is more by its weight
        slope = np.cumsum(c) - plus.sum()
        rounding = 4.0 * (n + 4.0) * EPS * float(c.sum())
        last = float(t[np.argmax(slope > rounding)]) if slope[-1] > rounding else np.inf
    else:
        # the weights that count left of all breakpoints and right of each, and their sums of breakpoints
        size = np.concatenate([[0.0], np.cumsum(minus - plus)]) + plus.sum()
        sums = np.concatenate([[0.0], np.cumsum((minus - plus) * t)]) + (plus * t).sum()
        rounding = 4.0 * (n + 4.0) * EPS * float(c @ np.abs(t))
        loose = 4.0 * (n + 4.0) * EPS * float(c.sum())  # of the weights that count
        above = size[1:] * t - sums[1:] > rounding + loose * np.abs(t)
        k = int(np.argmax(above)) if above[-1] else n  # the slope passes 0 left of this breakpoint
        most = float(sums[k] + rounding)
        weight = size[k] - loose if most > 0.0 else size[k] + loose
        root = most / weight if size[k] > loose else np.inf
        last = float(min(root, t[k])) if k < n else float(root)
    return last + middle + 8.0 * EPS * ((abs(last) if np.isfinite(last) else 0.0) + abs(middle))
