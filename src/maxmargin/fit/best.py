"""What is proved of a problem: the best primal and the best dual point, with their bounds.

On rows of data `fit.solve` keeps certified points; an online algorithm keeps those of its own sums, in float64 without
an account of rounding, as a kernel problem does, whose best point is certified at the end. On rows of data w is a
vector; on rows of a kernel it is given by its coefficients here, and in the engine by the scores of all rows.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ..numerics.sums import EPS, Plain, norm
from ..problem.problem import Bracket, Problem, best_intercept
from ..solvers.decomposition import DualPoint

if TYPE_CHECKING:
    from .report import Task

# Relative gap that is rounding. Of two points with gaps below it, the later one has more correct digits of w. A smaller
# value is never reached on some data, a larger one ends with fewer digits. Also the largest
# |sum alpha_i y_i| of balanced dual variables, relative to sum alpha_i.
ROUNDING = 1e-12
# A gap has improved if it is below DECREASE times the old one: a smaller change is rounding in float64.
DECREASE = 0.999


class Primal(NamedTuple):
    """A primal point: an intercept, and w, or with a kernel the coefficients w_i of sum_i w_i phi(x_i)."""

    w: np.ndarray
    b: float


@dataclass(eq=False)
class Best(Bracket):
    """What is proved so far of a problem: the best primal point and the best dual point, with their bounds.

    Parameters
    ----------
    problem : Problem
    primal : Primal
        Zero before the first point.
    alpha : ndarray of shape (n,)
        Dual variables; zeros before the first point.
    lower, upper : float
        Soft: dual and primal objective. Hard: attained margin, and an upper bound of every margin. -inf and inf before
        the first point.

    Attributes
    ----------
    rounding : float
        An upper bound of a hard margin up to this value is rounding: there is no separator.
    """

    problem: Problem
    primal: Primal
    alpha: Any
    lower: float = -np.inf
    upper: float = np.inf
    rounding = 0.0

    def keep(self, primal: Primal, attained: float, alpha: Any, proved: float) -> None:
        """Keep each of two points whose bound is better, `attained` by the primal and `proved` by the dual point.

        Of two pairs whose gap is rounding, the later one has more correct digits. A bound that is NaN is never better.
        """
        hard = self.problem.hard
        lower, upper = (attained, proved) if hard else (proved, attained)
        exact = self.problem.gap(lower, upper) <= ROUNDING
        raised, lowered = exact or lower > self.lower, exact or upper < self.upper
        if raised:
            self.lower = lower
        if lowered:
            self.upper = upper
        if raised if hard else lowered:
            self.primal = primal
        if lowered if hard else raised:
            self.alpha = alpha

    def margin(self) -> float:
        """Return the margin of the best w: its smallest margin (hard), or 1 / |w|_q (soft)."""
        if self.problem.hard:
            return self.lower
        length = norm(self.primal.w, self.problem.q)
        return 1.0 / length if length > 0.0 else np.inf


class GramBest(Best):
    """The best points of a kernel problem at p = 2.

    Bounds are as accurate as the scores, which have the precision of the kernel rows; `certificates.gram`
    computes the certified bounds.

    Parameters
    ----------
    problem : Problem
    y : ndarray of shape (n,), entries -1.0 and 1.0
    weights : ndarray of shape (n,)
        Rows of weight 0 take no part.
    diagonal : ndarray of shape (n,)
        k(x_i, x_i).
    """

    def __init__(self, problem: Problem, y: np.ndarray, weights: np.ndarray, diagonal: np.ndarray) -> None:
        super().__init__(problem, Primal(np.zeros(y.size), 0.0), np.zeros(y.size))
        self.y, self.weights = y, weights
        self.lengths = np.sqrt(np.maximum(diagonal, 0.0, dtype=float))
        # of one product, and a factor for sums of products
        self.rounding = 100.0 * EPS * float(self.lengths.max(initial=0.0))
        used = y[weights > 0.0]
        # for rows of one class w = 0 with an intercept has no loss: it is the optimum
        if not problem.hard and abs(float(used.sum())) == used.size:
            self.evaluate(DualPoint(self.alpha, self.alpha))

    def margin(self) -> float:
        """Return the margin of the best w; that of a soft problem is 1 / sqrt(2 * primal objective)."""
        if self.problem.hard:
            return self.lower
        return (2.0 * self.upper) ** -0.5 if self.upper > 0.0 else np.inf

    def evaluate(self, primal: DualPoint, dual: DualPoint | None = None) -> None:
        """Compute the bounds of w = sum alpha_i y_i phi(x_i) and of dual variables; keep each part that is better.

        Scores are f_j = sum_i alpha_i y_i k(x_i, x_j), without constant and slack coordinates.

        Parameters
        ----------
        primal : DualPoint
            Of w: its dual variables may exceed their caps.
        dual : DualPoint, default=None
            Dual variables within their caps; None for those of w.
        """
        problem, y, c = self.problem, self.y, primal.alpha * self.y
        with np.errstate(over="ignore", invalid="ignore"):
            b = problem.rho * problem.rho * float(c.sum())
            length = problem.norm2(max(float(c @ primal.scores), 0.0), b) ** 0.5
            t, b, attained = best_primal(problem, y, self.weights, primal.scores, b, length)
            self.keep(Primal(t * c, b), attained, *self._dual_bound(*(dual or primal)))

    def _dual_bound(self, alpha: np.ndarray, scores: np.ndarray) -> tuple[np.ndarray, float]:
        """Return the multiple of dual variables within their caps with the best bound, and this bound.

        For a free intercept the dual variables of the class with the larger sum are scaled down to the sum of the other
        class, unless the sums are equal up to `ROUNDING`. With v = sum alpha_i y_i phi(x_i), the cut r_i (the reduction
        of alpha_i) and q = sum r_i y_i phi(x_i), |v - q|^2 = |v|^2 - 2 q.v + |q|^2, where |q| <= u = sum r_i |phi(x_i)|
        by the triangle inequality: this is a bound without scores of the balanced dual variables.
        """
        problem, c = self.problem, alpha * self.y
        square = max(float(c @ scores), 0.0)
        if problem.free and abs(float(c.sum())) > ROUNDING * float(alpha.sum()):
            balanced = problem.balanced(self.y, alpha)
            balanced = np.zeros_like(alpha) if balanced is None else balanced
            cut, alpha = alpha - balanced, balanced
            u = float(np.abs(cut) @ self.lengths)
            square = max(square - 2.0 * float((cut * self.y) @ scores) + u * u, 0.0)
        if not float(alpha.sum()) > 0.0:
            return alpha, np.inf if problem.hard else 0.0
        length = float(np.hypot(square**0.5, problem.rho * float(alpha @ self.y)))
        t, bound = problem.best_dual(alpha, length, self.weights)
        return problem.capped(t * alpha, self.weights), bound


def best_primal(
    problem: Problem,
    y: np.ndarray,
    weights: np.ndarray,
    z: np.ndarray,
    b: float,
    length: float,
) -> tuple[float, float, float]:
    """Return the intercept b with the best primal bound, the canonical multiple t of w, and this bound.

    Parameters
    ----------
    problem : Problem
    y : ndarray of shape (n,), entries -1.0 and 1.0
    weights : ndarray of shape (n,)
        Sample weights; rows of weight 0 take no part.
    z : ndarray of shape (n,)
        w.x_i.
    b : float
        The intercept of the result if the intercept is not free.
    length : float
        |w|_q, with the weight of an augmented intercept.

    Returns
    -------
    t, b : float
        t is 1 in soft problems.
    bound : float
        The margin (hard), or the objective (soft).
    """
    if problem.free:
        b = best_intercept(problem, z, y, weights)
    margins = y * (z + b)
    if not problem.hard:
        return 1.0, b, problem.primal(length, margins, weights)
    smallest = float(margins[weights > 0.0].min())
    bound = smallest / length if length > 0.0 else -np.inf
    t = canonical_multiple(smallest, length)
    return t, t * b, bound


def canonical_multiple(smallest: float, length: float) -> float:
    """Return the multiple of w whose smallest margin is one, the canonical scale of a hard margin.

    It is 1 where w does not separate the classes, and less than canonical where it, or |w|, would overflow.
    """
    if not smallest > 0.0 < length:
        return 1.0
    return min(1.0 / smallest, 1e300 / max(length, 1.0))


def primal_point(
    task: Task, w: np.ndarray, b: float, z: np.ndarray | None = None
) -> tuple[np.ndarray, float, float]:
    """Return w, in canonical scale (hard), the best intercept, and their margin or objective, in any norm.

    z is w.x_i of every row, of shape (n,), if it is known: without it, it costs a product with the rows.
    """
    problem = task.problem
    if z is None:
        z = Plain.scores(task.rows.X, w)
    length = norm(problem.weights(w, b), problem.q)
    t, b, bound = best_primal(problem, task.y, task.weights, z, b, length)
    return t * w, b, bound


def dual_point(task: Task, alpha: np.ndarray, v: np.ndarray | None = None) -> tuple[np.ndarray, float, float]:
    """Make dual variables feasible; return their multiple with the best bound, this bound, and the length of its v.

    They are clipped at their caps, and balanced for a free intercept.

    Parameters
    ----------
    task : Task
    alpha : ndarray of shape (n,), non-negative
    v : ndarray of shape (d,) or (d + 1,), default=None
        sum alpha_i y_i x_i with the constant coordinate, if it is known. It is computed, by a product with the rows,
        if it is not given, and if clipping or balancing changes the dual variables.

    Returns
    -------
    alpha : ndarray of shape (n,)
        For a hard margin their sum is 1.
    bound : float
        Upper bound of every margin (hard), dual objective (soft).
    length : float
        |v|_p of the multiple, which is the length of the corresponding w.

    If no feasible multiple is positive: `alpha` as given, inf (hard) or -inf (soft), and 0.
    """
    problem, y = task.problem, task.y
    divisor = 1.0
    if np.isinf(problem.cap):
        divisor = float(alpha.max(initial=0.0)) or 1.0  # without caps any multiple is feasible
        alpha = alpha / divisor
    feasible = np.minimum(alpha, problem.caps(task.weights))
    if problem.free:
        feasible = problem.balanced(y, feasible)
    if feasible is None or not feasible.any():
        return alpha, np.inf if problem.hard else -np.inf, 0.0
    if v is not None and np.array_equal(feasible, alpha):
        v = v / divisor
    else:
        v = Plain.combine(task.rows.X, feasible * y)
        if problem.rho:
            v = np.append(v, problem.rho * float(feasible @ y))
    length = norm(v, problem.p)
    t, bound = problem.best_dual(feasible, length, task.weights)
    return problem.capped(t * feasible, task.weights), bound, t * length  # within the caps but for rounding
