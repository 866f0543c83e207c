"""Where the best free intercept can lie, when scores are known to intervals only.

Row i costs something below t_i = y_i - z_i if it is positive, above if it is negative. The slope of the loss in b,

    hinge          sum_{negative, t_i <= b} s_i - sum_{positive, t_i > b} s_i
    squared hinge  sum_{negative} s_i (b - t_i)_+ - sum_{positive} s_i (t_i - b)_+       (times 2),

rises with b, and rises with every score. So no b that is best for scores of at least `low` is larger than the largest
that is best for `low` itself; and none that is best for scores of at most `high` is smaller than the smallest for
`high`, which is the first statement with every sign turned.
"""

from __future__ import annotations

import numpy as np

from .problems import Problem

_EPS = float(np.finfo(float).eps)
_HALVINGS = 80  # of an interval, when a row is left out: more than float64 has digits


def intercept_interval(
    problem: Problem, low: np.ndarray, high: np.ndarray, y: np.ndarray, weights: np.ndarray
) -> tuple[float, float]:
    """The least and the largest b that can be best for scores between `low` and `high`.

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
    largest = Slope(problem.loss, low, y, weights).last
    return -Slope(problem.loss, -high, -y, weights).last, largest


class Slope:
    """The slope of the loss in b at fixed scores, and how far it stays at most 0.

    Everything is rounded so that the answers are too large, never too small.

    Parameters
    ----------
    loss : {"hinge", "squared_hinge"}
    scores : ndarray of shape (n,)
    y : ndarray of shape (n,), entries -1.0 and 1.0
    weights : ndarray of shape (n,), positive

    Attributes
    ----------
    last : float
        The largest b that is best for these scores.
    """

    def __init__(self, loss: str, scores: np.ndarray, y: np.ndarray, weights: np.ndarray) -> None:
        self._hinge = loss == "hinge"
        self._kinks = y - scores
        self._positive, self._weights = y > 0, weights
        order = np.argsort(self._kinks, kind="stable")
        t, c, positive = self._kinks[order], weights[order], y[order] > 0
        plus, minus = np.where(positive, c, 0.0), np.where(positive, 0.0, c)
        self._middle = float(t[t.size // 2]) if t.size else 0.0  # from which kinks are counted
        self._t = t - self._middle
        # left of all kinks, and right of each: the weights that count, and their sums of kinks
        start, sums = np.zeros(1), np.zeros(1)
        if self._hinge:
            self._size = np.concatenate([start, np.cumsum(c)]) - plus.sum()
            largest = float(c.sum())
        else:
            self._size = np.concatenate([start, np.cumsum(minus - plus)]) + plus.sum()
            sums = np.concatenate([start, np.cumsum((minus - plus) * self._t)]) + (plus * self._t).sum()
            largest = float(c @ np.abs(self._t))
        self._sums = sums
        self._rounding = 4.0 * (t.size + 4.0) * _EPS * largest
        self.last = float(self._until(np.zeros(1))[0])

    def without(self, rows: np.ndarray) -> np.ndarray:
        """The largest b that is best where one of these rows is left out, for each of them.

        A positive row only draws b upwards, so that without it none is larger than `last`.
        """
        out = np.full(rows.size, self.last)
        t, c, positive = self._kinks[rows] - self._middle, self._weights[rows], self._positive[rows]
        if self._hinge:
            matters = positive & (self._kinks[rows] > self.last)
            out[matters] = self._until(-c[matters])
            out[~positive] = np.maximum(self.last, self._until(c[~positive]))
            return out
        t, c = t[~positive], c[~positive]
        if t.size == 0 or not np.isfinite(self.last):
            return out
        low = np.full(t.size, self.last - self._middle)
        high = np.full(t.size, max(float(self._t[-1]), self.last - self._middle))
        rest = self._size[-1] - c  # right of all kinks the slope rises by what the other negative rows weigh
        with np.errstate(divide="ignore", invalid="ignore"):
            beyond = (self._sums[-1] - c * t + self._rounding) / rest
        high = np.where(rest > 0.0, np.maximum(high, beyond), np.inf)
        for _ in range(_HALVINGS):
            b = np.where(np.isfinite(high), 0.5 * (low + high), low)
            fits = self._at(b) - c * np.maximum(b - t, 0.0) <= self._rounding
            low, high = np.where(fits, b, low), np.where(fits, high, np.where(np.isfinite(high), b, high))
        out[~positive] = _up(high + self._middle, abs(self._middle))
        return out

    def _at(self, b: np.ndarray) -> np.ndarray:
        """The slope at b, of squared losses."""
        k = np.searchsorted(self._t, b, side="right")
        return self._size[k] * b - self._sums[k]

    def _until(self, level: np.ndarray) -> np.ndarray:
        """The largest b at which the slope is at most `level`; -inf where there is none."""
        n, level = self._t.size, level + self._rounding
        right = self._size if self._hinge else np.append(-np.inf, self._at(self._t))
        k = np.searchsorted(np.maximum.accumulate(right), level, side="right")  # the first that is larger
        ends = self._t[np.clip(k - 1, 0, max(n - 1, 0))] if n else np.zeros(level.shape)
        if self._hinge:
            found = np.where(k == 0, -np.inf, np.where(k > n, np.inf, ends))
        else:
            size, sums = self._size[k - 1], self._sums[k - 1]
            with np.errstate(divide="ignore", invalid="ignore"):
                root = np.where(size > 0.0, (sums + level) / size, np.inf)
            found = np.where(k > n, root, np.minimum(root, ends))
        return _up(found + self._middle, abs(self._middle))


def _up(b: np.ndarray, middle: float) -> np.ndarray:
    """A little more, so that rounding has not made it less."""
    return b + 8.0 * _EPS * (np.where(np.isfinite(b), np.abs(b), 0.0) + middle)
