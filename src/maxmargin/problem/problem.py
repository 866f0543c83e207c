"""The problem record: both objectives, the relative gap between them, the best free intercept, the status of a fit.

Soft problems (C finite), in scikit-learn's scaling, s_i being the sample weights::

    hinge          1/2 |w|^2 + C sum s_i max(0, 1 - m_i)
    squared hinge  1/2 |w|^2 + C sum s_i max(0, 1 - m_i)^2,      m_i = y_i (w.x_i + b)

The hard margin (C = inf) maximises min m_i / |w|. An augmented intercept is one more feature of constant
value ``intercept_scaling``; its weight belongs to the norm. A free intercept does not.

Distance is measured in the p-norm, |w| therefore in the dual q-norm, and v = sum alpha_i y_i x_i of the dual problem
in the p-norm. With ``power=1`` the penalty is |w| instead of its half square; the dual problem then has the constraint
|v| <= 1 instead of the term -1/2 |v|^2.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING

import numpy as np

LOSSES = ("hinge", "squared_hinge")
INTERCEPTS = ("none", "free", "augmented")


@dataclass(frozen=True)
class Problem:
    """One binary problem, without its data.

    Parameters
    ----------
    loss : {"hinge", "squared_hinge"}
        Ignored where ``C`` is infinite.
    C : float
        Weight of the loss; ``inf`` is the hard margin.
    p : float in [1, inf], default=2
        Norm in which distance is measured; weights are measured in the dual norm.
    intercept : {"none", "free", "augmented"}, default="free"
        ``free`` is the unregularised intercept, ``augmented`` a feature of constant value.
    intercept_scaling : float, default=1
        That constant value.
    power : {2, 1}, default=2
        Power of the norm in the penalty: 1/2 |w|^2, or |w|. The hard margin does not depend on it.

    Attributes
    ----------
    hard : bool
        Whether this is the hard margin.
    free : bool
        Whether the intercept is unregularised; the dual variables then balance: sum alpha_i y_i = 0.
    q : float
        The exponent of the norm of w: 1/p + 1/q = 1.
    rho : float
        The constant coordinate of every pattern; 0 where there is none.
    cap : float
        The largest dual variable of a pattern of weight 1; inf where it is unbounded.
    first_power : bool
        Whether the penalty is |w| and not its half square. The hard margin counts as the half square.
    euclidean : bool
        Whether the problem has half a squared 2-norm, or is a hard margin at p = 2, which is the same.
    """

    loss: str
    C: float
    p: float = 2.0
    intercept: str = "free"
    intercept_scaling: float = 1.0
    power: int = 2
    if TYPE_CHECKING:  # `__post_init__` sets what follows from the parameters
        hard: bool = field(init=False)
        free: bool = field(init=False)
        q: float = field(init=False)
        rho: float = field(init=False)
        cap: float = field(init=False)
        first_power: bool = field(init=False)
        euclidean: bool = field(init=False)

    def __post_init__(self) -> None:
        for name, choices in (("loss", LOSSES), ("intercept", INTERCEPTS)):
            if getattr(self, name) not in choices:
                names = ", ".join(map(repr, choices))
                raise ValueError(f"{name} must be one of {names}; got {getattr(self, name)!r}.")
        if not (isinstance(self.C, int | float | np.number) and self.C > 0):
            raise ValueError(f"C must be a positive number, or inf for the hard margin; got {self.C!r}.")
        scaling = self.intercept_scaling
        if not (math.isfinite(scaling) and scaling > 0):
            raise ValueError(f"intercept_scaling must be a positive, finite number; got {scaling!r}.")
        if not self.p >= 1.0:
            raise ValueError(f"p must be a number from 1 to inf; got p={self.p!r}.")
        if self.power not in (1, 2):
            raise ValueError(f"power must be 2 (half the squared norm) or 1; got {self.power!r}.")
        hard = math.isinf(self.C)
        vars(self).update(
            hard=hard,
            free=self.intercept == "free",
            q=dual_exponent(self.p),
            rho=self.intercept_scaling if self.intercept == "augmented" else 0.0,
            cap=self.C if self.loss == "hinge" else np.inf,
            first_power=self.power == 1 and not hard,
            euclidean=self.p == 2 and (hard or self.power == 2),
        )

    def caps(self, weights: np.ndarray) -> np.ndarray:
        """Return the largest dual variable of each pattern: C s_i for the hinge, else inf; 0 for weight 0."""
        return np.where(weights > 0.0, np.inf, 0.0) if math.isinf(self.cap) else self.cap * weights

    def capped(self, alpha: np.ndarray, weights: np.ndarray) -> np.ndarray:
        """Return dual variables clipped to [0, cap]; 0 for patterns of weight 0."""
        return np.minimum(np.maximum(alpha, 0.0), self.caps(weights))  # half the time of np.clip on few rows

    def curvatures(self, weights: np.ndarray) -> np.ndarray:
        """Return the second derivative of each pattern's loss in its margin, 2 C s_i; of the squared hinge only."""
        return np.multiply(2.0 * self.C, weights, dtype=float)

    def delta2(self, weights: np.ndarray) -> np.ndarray:
        """Return the square of each pattern's slack coordinate: 1 / (2 C s_i) for squared hinge, else 0."""
        if self.hard or self.loss == "hinge":
            return np.zeros(len(weights))
        with np.errstate(divide="ignore"):
            return np.where(weights > 0.0, 1.0 / self.curvatures(weights), 0.0)

    def norm2(self, square: float, intercept: float) -> float:
        """Return |w|^2 at p = 2, the weight of an augmented intercept included; `square` is |w|^2 without it."""
        weight = intercept / self.rho if self.rho else 0.0  # of the constant coordinate
        return square + weight * weight

    def weights(self, w: np.ndarray, intercept: float) -> np.ndarray:
        """Return w with the weight of an augmented intercept, which belongs to the norm."""
        return np.append(w, intercept / self.rho) if self.rho else w

    @staticmethod
    def balanced(y: np.ndarray, alpha: np.ndarray) -> np.ndarray | None:
        """Return dual variables with the heavier class scaled down to the other's total; None if one class has none."""
        positive = y > 0
        plus, minus = float(alpha @ positive), float(alpha @ ~positive)
        if not (plus > 0.0 and minus > 0.0):
            return None
        return alpha * np.where(positive, min(1.0, minus / plus), min(1.0, plus / minus))

    def losses(self, margins: np.ndarray, weights: np.ndarray) -> np.ndarray:
        """Return each pattern's term of the primal objective."""
        xi = np.maximum(np.subtract(1.0, margins, dtype=float), 0.0)
        with np.errstate(over="ignore"):  # far from the optimum the squares may overflow
            return self.C * weights * (xi * xi if self.loss == "squared_hinge" else xi)

    def gains(self, alpha: np.ndarray, weights: np.ndarray) -> np.ndarray:
        """Return each pattern's term of the dual objective, without the term of the norm."""
        return alpha if self.hard or self.loss == "hinge" else alpha - self.gains_lost(alpha, weights)

    def gains_lost(self, alpha: np.ndarray, weights: np.ndarray) -> np.ndarray:
        """Return alpha_i^2 / (4 C s_i) of the squared hinge, inf where it overflows, 0 where alpha_i is 0; else 0."""
        if self.hard or self.loss == "hinge":
            return np.zeros(len(weights))
        # the division comes first, so that nothing overflows where alpha is small
        with np.errstate(divide="ignore", over="ignore", invalid="ignore"):
            squares = alpha / np.multiply(4.0 * self.C, weights, dtype=float) * alpha
        return np.where(alpha > 0.0, squares, 0.0)

    def penalty(self, length: float) -> float:
        """Return the norm's term of the primal objective; `length` is |w|_q."""
        return 0.5 * length * length if self.power == 2 else length

    def primal(self, length: float, margins: np.ndarray, weights: np.ndarray) -> float:
        """Return the objective of a soft problem at a point; `length` is |w|_q."""
        return float(self.penalty(length) + np.sum(self.losses(margins, weights)))

    def multiple(self, total: float, cost: float, length: float, room: float) -> float:
        """Return the t <= room with the largest dual objective of t alpha; 1 where t has no upper bound.

        Parameters
        ----------
        total, cost : float
            sum alpha_i and sum alpha_i^2 / (4 C s_i).
        length : float
            |v|_p. At ``power=1`` t |v| is at most 1.
        room : float
        """
        quadratic = 2.0 * cost
        if self.power == 2:
            quadratic += length * length
        elif length > 0.0:
            room = min(room, 1.0 / length)
        best = min(total / quadratic if quadratic > 0.0 else np.inf, room)
        return best if math.isfinite(best) else 1.0

    def best_dual(self, alpha: np.ndarray, length: float, weights: np.ndarray) -> tuple[float, float]:
        """Return the t, within the caps, with the best bound of t alpha, and this bound.

        alpha is not 0, and `length` is |v|_p, v = sum alpha_i y_i x_i. The bound is the dual objective, at ``power=1``
        that of t alpha / max(1, |t v|), or a little less: the gains are concave, and 0 at 0. For a hard margin it is
        the upper bound |v| / sum alpha of every margin.
        """
        total, cost, room = float(alpha.sum()), 0.0, np.inf
        if self.hard:
            return 1.0 / total, length / total
        if self.loss == "squared_hinge":
            cost = float(np.sum(self.gains_lost(alpha, weights)))
        else:
            # 0 / 0, of weight 0 and alpha 0, is NaN, which fmin ignores
            with np.errstate(divide="ignore", over="ignore", invalid="ignore"):
                room = float(np.fmin.reduce(self.caps(weights) / np.abs(alpha)))
        t = self.multiple(total, cost, length, room)
        gains, length = t * total - t * t * cost, t * length
        return t, gains - 0.5 * length * length if self.power == 2 else gains / max(1.0, length)

    def gap(self, lower: float, upper: float) -> float:
        """Return the relative gap between a lower and an upper bound.

        Soft: (primal - dual) / dual, infinite while dual <= 0. Hard: 1 - lower / upper of the margin. Infinite if the
        bounds contradict each other, prove nothing, or are NaN; never NaN.
        """
        # no rounding explains an excess of 1e-6: one of the bounds is wrong
        if not (lower > 0.0 or upper < np.inf) or upper < lower - 1e-6 * abs(lower):
            return np.inf
        if self.hard:
            gap = 1.0 - lower / upper if upper > 0.0 else np.inf
        elif upper == 0.0:
            gap = 0.0
        else:
            gap = max(upper - lower, 0.0) / lower if lower > 0.0 else np.inf
        return np.inf if math.isnan(gap) else gap


class Bracket:
    """A lower and an upper bound of the best value of a problem."""

    problem: Problem
    lower: float
    upper: float

    @property
    def gap(self) -> float:
        """The relative gap of the bounds; inf until both are known (`Problem.gap`)."""
        return self.problem.gap(self.lower, self.upper)


def dual_exponent(p: float) -> float:
    """Return q with 1/p + 1/q = 1, for p in [1, inf]."""
    if p == 1.0:
        return math.inf
    return 1.0 if math.isinf(p) else p / (p - 1.0)


# the free intercept: the exact minimiser of the loss in b
#
# For fixed w the loss is convex and piecewise linear (hinge) or piecewise quadratic (squared hinge) in b. Row i has a
# breakpoint at t_i = y_i - w.x_i: its loss is positive below t_i for the positive class, above for the negative one.


def best_intercept(problem: Problem, z: np.ndarray, y: np.ndarray, weights: np.ndarray) -> float:
    """Return the b with the smallest loss, or largest smallest margin (hard), for scores z = w.x.

    Of an interval of minimisers it is the midpoint; for rows of one class it is any b at which they have no loss.

    Parameters
    ----------
    problem : Problem
    z : ndarray of shape (n,)
    y : ndarray of shape (n,), entries -1.0 and 1.0
    weights : ndarray of shape (n,)
        Sample weights; rows of weight 0 take no part.

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
    for _ in range(100):  # 3 to 6 are usual
        costly = (t > b) == positive  # rows with a positive loss, or with t_i = b, which add 0 to the slope
        weight = c * costly
        root = float((weight @ t) / weight.sum())  # of the slope, if this set of rows stays the same
        if np.array_equal(costly, before):
            return root
        low, high, before = (b, high, costly) if root > b else (low, b, costly)
        b = root if low <= root <= high else 0.5 * (low + high)
    return b


class Status(StrEnum):
    """State in which a fit ended, from the best to the worst; no status is a warning. `message_` explains it."""

    CERTIFIED = "CERTIFIED"  #: the certified gap is at most `tol`
    CONVERGED = "CONVERGED"  #: the algorithm ended by its own criterion, with a larger gap
    #: rounding in float64 prevents progress, or a better bound, and the gap is larger: scale the features, or lower C
    STALLED = "STALLED"
    MAX_ITER = "MAX_ITER"  #: `max_iter` rounds were made
    MAX_TIME = "MAX_TIME"  #: `max_time` seconds went by, or too few are left to compute a certificate
    INTERRUPTED = "INTERRUPTED"  #: by Ctrl-C, or by the callback
    #: hard margin: stopped with no separator in the model's own float64 numbers, and no proof that there is none
    UNDECIDED = "UNDECIDED"
    INSEPARABLE = "INSEPARABLE"  #: hard margin: there is no separator, and `verdict_` proves it exactly
    NOT_FINITE = "NOT_FINITE"  #: numbers overflowed: the scale of the data is beyond float64


def worst(statuses: Iterable[Status]) -> Status:
    """Return the status of a model of several problems: the last of them in the order of `Status`."""
    return max(statuses, key=list(Status).index)


def stopped_reason(status: Status | None) -> str:
    """Return the reason of the verdict of a search that a deadline with this status ended; empty if it has not."""
    if status is None:
        return ""
    return "Ctrl-C interrupted the search" if status is Status.INTERRUPTED else "max_time went by"
