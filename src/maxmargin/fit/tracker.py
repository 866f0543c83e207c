"""The best primal and dual points of a task, with their bounds, in the units of its solver.

Plain float64: certificates are computed anew, with rounding. On rows of data w is a vector, and every dual point costs
a product with the rows; on rows of a kernel w is known by the scores of all rows alone.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from ..numerics.norms import norm
from ..numerics.sums import Plain
from ..problem.intercept import best_intercept, best_multiple_and_intercept
from ..problem.problem import Problem

if TYPE_CHECKING:
    from ..data.task import Task

# A pair of points is kept together unless the best halves of two pairs leave less than this share of its gap: a
# smaller improvement is no reason to take its two points from different iterates.
APART = 0.9
# Relative difference of two bounds that is rounding of compensated sums: of two points as good as that, the later one
# has more correct digits of w.
ROUNDING = 1e-12


class Primal(NamedTuple):
    """A primal point: w itself, or its coefficients where w = sum_i w_i phi(x_i), and the intercept."""

    w: np.ndarray
    b: float


class Tracker:
    """The best primal and the best dual point so far, each kept where its bound is better than all before.

    Parameters
    ----------
    problem : Problem
    size : int
        Entries of a primal point: features or, with kernels, rows.
    n : int
        Rows.

    Attributes
    ----------
    lower, upper : float
        Soft: dual and primal objective. Hard: attained margin, and a bound on every margin.
    primal : Primal
    alpha : ndarray of shape (n,)
        Dual variables. The points to begin with prove nothing.
    """

    def __init__(self, problem: Problem, size: int, n: int) -> None:
        self.problem = problem
        self.lower, self.upper = -np.inf, np.inf
        self.primal, self.alpha = Primal(np.zeros(size), 0.0), np.zeros(n)

    @property
    def gap(self) -> float:
        """Relative gap of the bounds; inf where they prove nothing."""
        return self.problem.gap(self.lower, self.upper)

    def update_primal(self, primal: Primal, bound: float) -> None:
        """Keep a primal point of this margin (hard) or objective (soft) where it is better; never for NaN."""
        if self.problem.hard:
            if bound > self.lower:
                self.primal, self.lower = primal, bound
        elif bound < self.upper:
            self.primal, self.upper = primal, bound

    def update_dual(self, alpha: np.ndarray, bound: float) -> None:
        """Keep a dual point where it proves more than all before; never for NaN."""
        if self.problem.hard:
            if bound < self.upper:
                self.alpha, self.upper = alpha, bound
        elif bound > self.lower:
            self.alpha, self.lower = alpha, bound

    def adopt(
        self,
        primal: Primal,
        alpha: np.ndarray,
        lower: float,
        upper: float,
        rounding: float,
        apart: float = APART,
    ) -> None:
        """Take over a pair of points with known bounds where it proves more, or as much but for rounding.

        Parameters
        ----------
        primal : Primal
        alpha : ndarray of shape (n,)
        lower, upper : float
            The bounds that the two points prove.
        rounding : float
            A relative gap that is rounding: of two such pairs the later one is kept.
        apart : float, default=APART
            Share of the gap of the pair above which its halves stay together.
        """
        gap = self.problem.gap(lower, upper)
        joined = self.problem.gap(max(lower, self.lower), min(upper, self.upper))
        if gap <= max(self.gap, rounding) and (gap <= rounding or joined > apart * gap):
            self.primal, self.alpha, self.lower, self.upper = primal, alpha, lower, upper
            return
        attained, proved = (lower, upper) if self.problem.hard else (upper, lower)
        self.update_primal(primal, attained)
        self.update_dual(alpha, proved)


class GramTracker(Tracker):
    """The best points of a kernel problem at p = 2.

    Bounds are as good as the scores are, in the precision of the kernel's rows; `certificates.expansions` proves them
    anew.

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
        super().__init__(problem, y.size, y.size)
        self.y, self.weights = y, weights
        self.lengths = np.sqrt(np.maximum(diagonal, 0.0, dtype=float))
        used = y[weights > 0.0]
        # of one class, w = 0 and an intercept have no loss
        if not problem.hard and abs(float(used.sum())) == used.size:
            self.evaluate(self.alpha, np.zeros(y.size))

    def evaluate(self, alpha: np.ndarray, scores: np.ndarray) -> None:
        """Evaluate a point; its primal and its dual part are each kept where they are better.

        Parameters
        ----------
        alpha : ndarray of shape (n,)
            Dual variables within their caps.
        scores : ndarray of shape (n,)
            f_j = sum_i alpha_i y_i k(x_i, x_j), constant and own coordinates left out.
        """
        self.evaluate_dual(alpha, scores)
        self.evaluate_primal(alpha, scores)

    def evaluate_primal(self, alpha: np.ndarray, scores: np.ndarray) -> None:
        """Evaluate the primal part of a point alone; its dual variables may be above their caps."""
        problem, c = self.problem, alpha * self.y
        with np.errstate(over="ignore", invalid="ignore"):
            b = problem.rho * problem.rho * float(c.sum())
            length = problem.norm2(max(float(c @ scores), 0.0), b) ** 0.5
            t, b, attained = best_primal(problem, self.y, self.weights, scores, b, length)
            self.update_primal(Primal(t * c, b), attained)

    def evaluate_dual(self, alpha: np.ndarray, scores: np.ndarray) -> None:
        """Evaluate the dual part of a point alone, at its best multiple.

        For a free intercept the heavier class is scaled down to the total of the other. What is cut from v has at most
        the length sum cut_i |x_i|, by the triangle inequality.
        """
        problem, y = self.problem, self.y
        with np.errstate(over="ignore", invalid="ignore"):
            square = max(float((alpha * y) @ scores), 0.0)
            if problem.free:
                balanced = problem.balanced(y, alpha)
                balanced = np.zeros_like(alpha) if balanced is None else balanced
                cut, alpha = alpha - balanced, balanced
                length = float(np.abs(cut) @ self.lengths)
                square = max(square - 2.0 * float((cut * y) @ scores) + length * length, 0.0)
            total, constant = float(alpha.sum()), problem.rho * float(alpha @ y)
            norm2 = square + constant * constant
            if problem.hard:
                self.update_dual(alpha, norm2**0.5 / total if total > 0.0 else np.inf)
                return
            t = problem.multiple(alpha, norm2, self.weights) if total > 0.0 else 0.0
            self.update_dual(t * alpha, problem.dual(t * t * norm2, t * alpha, self.weights))


def best_primal(
    problem: Problem, y: np.ndarray, weights: np.ndarray, z: np.ndarray, b: float, length: float
) -> tuple[float, float, float]:
    """Return (t, b, bound): the multiple t of w and the intercept of the best bound, and the bound.

    Parameters
    ----------
    problem : Problem
    y : ndarray of shape (n,), entries -1.0 and 1.0
    weights : ndarray of shape (n,)
        Sample weights; rows of weight 0 take no part.
    z : ndarray of shape (n,)
        w.x_i.
    b : float
        Used where the intercept is not free.
    length : float
        |w|_q, with the weight of an augmented intercept. It counts for hinge losses and for the norm to the first
        power; otherwise the best one is found.

    Returns
    -------
    t, b : float
    bound : float
        The margin (hard), or the objective (soft).
    """
    if problem.loss == "squared_hinge" and problem.power == 2 and not problem.hard and length > 0.0:
        t, b = best_multiple_and_intercept(problem, length * length, z, b, y, weights)
        return t, b, problem.primal(problem.penalty(t * length), y * (t * z + b), weights)
    if problem.free:
        b = best_intercept(problem, z, y, weights)
    margins = y * (z + b)
    if not problem.hard:
        return 1.0, b, problem.primal(problem.penalty(length), margins, weights)
    smallest = float(margins[weights > 0.0].min())
    bound = smallest / length if length > 0.0 else -np.inf
    # canonical scale: the smallest margin is one
    return (1.0 / smallest, b / smallest, bound) if smallest > 0.0 else (1.0, b, bound)


def primal_point(task: Task, w: np.ndarray, b: float) -> tuple[np.ndarray, float, float]:
    """Return (w, b) with the best intercept and length, and its margin or objective, in any norm (`best_primal`)."""
    problem, z = task.problem, Plain.scores(task.patterns.X, w)
    length = norm(problem.weights(w, b), problem.q)
    t, b, bound = best_primal(problem, task.y, task.weights, z, b, length)
    return t * w, b, bound


def dual_point(task: Task, alpha: np.ndarray) -> tuple[np.ndarray, float, float]:
    """Return dual variables, balanced, capped and at their best multiple, their bound, and |sum alpha_i y_i x_i|.

    The last is the length of the w that belongs to them.

    Parameters
    ----------
    task : Task
    alpha : ndarray of shape (n,), non-negative
    """
    problem, y = task.problem, task.y
    nothing = np.inf if problem.hard else -np.inf
    caps = problem.caps(task.weights)
    if problem.hard or np.isinf(caps).all():
        alpha = alpha / (float(alpha.max(initial=0.0)) or 1.0)  # only proportions count
    balanced = np.minimum(alpha, caps)
    if problem.free:
        balanced = problem.balanced(y, balanced)
    if balanced is None or not balanced.any():
        return alpha, nothing, 0.0
    v = Plain.combine(task.patterns.X, balanced * y)
    if problem.rho:
        v = np.append(v, problem.rho * float(balanced @ y))
    size, total = norm(v, problem.p), float(balanced.sum())
    if problem.hard:
        return balanced / total, size / total, size / total
    t = problem.multiple(balanced, size * size, task.weights)
    balanced *= t
    np.minimum(balanced, caps, out=balanced)
    return balanced, problem.dual(t * size * (t * size), balanced, task.weights), t * size
