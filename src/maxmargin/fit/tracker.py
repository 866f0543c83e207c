"""The best primal and dual points of a task, with their bounds, in the units of its solver.

Plain float64: certificates are computed anew, with rounding. On rows of data w is a vector, and every dual point costs
a product with the rows; on rows of a kernel w is known by the scores of all rows alone.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ..data.task import Task
from ..numerics.norms import norm
from ..numerics.sums import Plain
from ..problem.intercept import best_intercept, best_multiple_and_intercept
from ..problem.problem import Problem, best_multiple

# A pair of points is kept together unless the best halves of two pairs leave less than this share of its gap: a
# smaller improvement is no reason to take its two points from different iterates.
APART = 0.9
# Share of the tolerated gap that the triangle inequality may cost a dual bound before |v|^2 is computed anew.
LOST = 0.1


class Primal(NamedTuple):
    """A primal point: w itself, or its coefficients where w = sum_i w_i phi(x_i), and the intercept."""

    w: np.ndarray
    b: float


class Balanced(NamedTuple):
    """Dual variables whose classes have the same total, and |v|^2 of v = sum_i alpha_i y_i x_i by an upper bound.

    Attributes
    ----------
    alpha : ndarray of shape (n,)
    cut : ndarray of shape (n,)
        What was taken from the heavier class, non-negative.
    square : float
        |v|^2 before, less twice the inner product of v with what was cut.
    size : float
        An upper bound of the length of what was cut: `square` + `size`^2 bounds |v|^2.
    """

    alpha: np.ndarray
    cut: np.ndarray
    square: float
    size: float


class Tracker:
    """The best primal and the best dual point so far, each kept where its bound is better than all before.

    Parameters
    ----------
    problem : Problem
    y : ndarray of shape (n,), entries -1.0 and 1.0
    weights : ndarray of shape (n,)
        Rows of weight 0 take no part.
    square : ndarray of shape (n,)
        |x_i|^2.
    size : int
        Entries of a primal point: features or, with kernels, rows.

    Attributes
    ----------
    lower, upper : float
        Soft: dual and primal objective. Hard: attained margin, and a bound on every margin.
    primal : Primal
    alpha : ndarray of shape (n,)
        Dual variables. The points to begin with prove nothing.
    """

    def __init__(
        self, problem: Problem, y: np.ndarray, weights: np.ndarray, square: np.ndarray, size: int
    ) -> None:
        self.problem, self.y, self.weights, self.square = problem, y, weights, square
        self.lower, self.upper = -np.inf, np.inf
        self.primal, self.alpha = Primal(np.zeros(size), 0.0), np.zeros(y.size)

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

    # points at p = 2, by the scores z = w.x of all rows

    def evaluate_soft(self, w: np.ndarray, b: float, square: float, z: np.ndarray, rescale: bool) -> None:
        """Evaluate w with the best intercept, where it is free, and at its best multiple where `rescale` asks for it.

        Parameters
        ----------
        w : ndarray
            As primal points are stored.
        b : float
        square : float
            |w|^2.
        z : ndarray of shape (n,)
            w.x_i.
        rescale : bool
        """
        problem, y, weights, t = self.problem, self.y, self.weights, 1.0
        if problem.free:
            b = best_intercept(problem, z, y, weights)
        if rescale:
            t, b = best_multiple_and_intercept(problem, problem.norm2(square, b), z, b, y, weights)
        norm2 = problem.norm2(t * t * square, b)
        self.update_primal(Primal(t * w, b), problem.primal(0.5 * norm2, y * (t * z + b), weights))

    def evaluate_hard(self, w: np.ndarray, b: float, length: float, smallest: float) -> None:
        """Keep the separator w, b of this length and smallest margin at its canonical scale, a smallest margin of 1."""
        scale = smallest if smallest > 0.0 else 1.0
        self.update_primal(Primal(w / scale, b / scale), smallest / length if length > 0.0 else -np.inf)

    def balanced(self, alpha: np.ndarray, z: np.ndarray, square: float) -> Balanced | None:
        """Scale the heavier class down to the total of the other, for a free intercept; None where a class has none.

        |sum cut_i y_i x_i| <= sum cut_i |x_i| by the triangle inequality.

        Parameters
        ----------
        alpha : ndarray of shape (n,)
        z : ndarray of shape (n,)
            v.x_i of v = sum alpha_i y_i x_i.
        square : float
            |v|^2.
        """
        balanced = self.problem.balanced(self.y, alpha)
        if balanced is None:
            return None
        cut = alpha - balanced
        size = float(np.abs(cut) @ np.sqrt(self.square))
        return Balanced(balanced, cut, square - 2.0 * float((cut * self.y) @ z), size)


class RowTracker(Tracker):
    """The best points of a task on rows of data.

    Parameters
    ----------
    task : Task
    tol : float
        Relative gap that is asked for.
    """

    def __init__(self, task: Task, tol: float) -> None:
        patterns = task.patterns
        super().__init__(task.problem, task.y, task.weights, patterns.square, patterns.d)
        self.task, self.tol = task, tol

    def evaluate(self, w: np.ndarray, b: float, alpha: np.ndarray, only_direction: bool) -> None:
        """Evaluate a primal and a dual point in any norm, and keep each where it is better.

        Parameters
        ----------
        w : ndarray of shape (d,)
        b : float
        alpha : ndarray of shape (n,)
        only_direction : bool
            Whether the length of w means nothing: it is then that of the w of the dual point.
        """
        alpha, proved, size = dual_point(self.task, alpha)
        length = norm(self.problem.weights(w, b), self.problem.q)
        if only_direction and size > 0.0 and length > 0.0:
            w, b = w * (size / length), b * (size / length)
        w, b, attained = primal_point(self.task, w, b)
        self.update_primal(Primal(w, b), attained)
        self.update_dual(alpha, proved)

    def capped(self, a: np.ndarray) -> tuple[np.ndarray, float, np.ndarray]:
        """Return dual variables cut at their caps, with |w|^2 and the scores w.x of the w that they make."""
        a = np.minimum(a, self.problem.caps(self.weights))
        w = Plain.combine(self.task.patterns.X, a * self.y)
        constant = self.problem.rho * float(a @ self.y)
        return a, float(w @ w) + constant * constant, Plain.scores(self.task.patterns.X, w)

    def balanced_bound(self, a: np.ndarray, square: float, z: np.ndarray) -> float:
        """Return the dual bound of dual variables once the heavier class is scaled down; soft margins."""
        problem, found = self.problem, self.balanced(a, z, square)
        if found is None:
            return -np.inf
        value = problem.dual(found.square + found.size * found.size, found.alpha, self.weights)
        if 0.5 * found.size * found.size > LOST * self.tol * abs(value):
            exact = Plain.combine(self.task.patterns.X, found.cut * self.y)
            value = problem.dual(found.square + float(exact @ exact), found.alpha, self.weights)
        return best_dual_multiple(value, float(found.alpha.sum()))[1]


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
        super().__init__(problem, y, weights, np.maximum(diagonal, 0.0, dtype=float), y.size)
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
        problem, y, weights = self.problem, self.y, self.weights
        with np.errstate(over="ignore", invalid="ignore"):
            c = alpha * y
            square, constant = max(float(c @ scores), 0.0), problem.rho * float(alpha @ y)
            b = problem.rho * constant
            if not problem.hard:
                self.evaluate_soft(
                    c, b, square, scores, problem.loss == "squared_hinge" and bool(alpha.any())
                )
                return
            b = best_intercept(problem, scores, y, weights) if problem.free else b
            smallest = float((y * (scores + b))[weights > 0.0].min())
            self.evaluate_hard(c, b, (square + constant * constant) ** 0.5, smallest)

    def evaluate_dual(self, alpha: np.ndarray, scores: np.ndarray) -> None:
        """Evaluate the dual part of a point alone."""
        problem = self.problem
        with np.errstate(over="ignore", invalid="ignore"):
            square = max(float((alpha * self.y) @ scores), 0.0)
            constant = problem.rho * float(alpha @ self.y)
            if problem.free:
                found = self.balanced(alpha, scores, square)
                alpha, square = np.zeros_like(alpha), 0.0
                if found is not None:
                    alpha, square = found.alpha, max(found.square + found.size * found.size, 0.0)
            total, norm2 = float(alpha.sum()), square + constant * constant
            if problem.hard:
                self.update_dual(alpha, norm2**0.5 / total if total > 0.0 else np.inf)
                return
            t, lower = best_dual_multiple(problem.dual(norm2, alpha, self.weights), total)
            self.update_dual(t * alpha, lower)


def best_dual_multiple(value: float, total: float) -> tuple[float, float]:
    """Return the best t <= 1, and the dual objective of t times dual variables of objective `value` and sum `total`.

    The objective of t alpha is t total - t^2 quadratic / 2.
    """
    quadratic = 2.0 * (total - value)
    t = best_multiple(total, quadratic, 1.0)
    return t, t * total - 0.5 * t * t * quadratic


def primal_point(task: Task, w: np.ndarray, b: float) -> tuple[np.ndarray, float, float]:
    """Return (w, b) with the best intercept and length, and its margin (hard) or objective (soft), in any norm.

    Parameters
    ----------
    task : Task
    w : ndarray of shape (d,)
        Its length counts for hinge losses and for the norm to the first power; otherwise the best one is found.
    b : float
        Used where the intercept is not free.
    """
    problem, y = task.problem, task.y
    z = Plain.scores(task.patterns.X, w)
    smooth = problem.loss == "squared_hinge" and problem.power == 2 and not problem.hard
    if problem.free and not smooth:
        b = best_intercept(problem, z, y, task.weights)
    if problem.hard:
        smallest, length = float((y * (z + b)).min()), norm(problem.weights(w, b), problem.q)
        if not smallest > 0.0:
            return w, b, smallest / length if length > 0.0 else -np.inf
        return w / smallest, b / smallest, smallest / length  # canonical scale: the smallest margin is one
    if smooth:
        norm2 = norm(problem.weights(w, b), problem.q) ** 2
        t, b = best_multiple_and_intercept(problem, norm2, z, b, y, task.weights)
        w, z = t * w, t * z
    penalty = problem.penalty(norm(problem.weights(w, b), problem.q))
    return w, b, problem.primal(penalty, y * (z + b), task.weights)


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
