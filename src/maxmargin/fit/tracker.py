"""The best primal and dual points of a task, with their bounds, in the units of its solver."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ..problem.intercept import best_multiple_and_intercept
from ..problem.problem import Problem, best_multiple

# Rounds in which the length of w and the intercept are optimised in turn: the objective is convex in both, and a bound
# that is not quite the best one is still a bound.
TURNS = 3
# A pair of points is kept together unless the best halves of two pairs leave less than this share of its gap: a
# smaller improvement is no reason to take its two points from different iterates.
APART = 0.9


class Primal(NamedTuple):
    """A primal point: w itself, or its coefficients where w = sum_i w_i phi(x_i), and the intercept."""

    w: np.ndarray
    b: float


class Tracker:
    """The best primal and the best dual point so far, each kept where its bound is better than all before.

    How a point is evaluated is for the subclasses: w may be known by itself or by the scores of the rows alone.

    Parameters
    ----------
    problem : Problem
    primal : Primal
    alpha : ndarray of shape (n,)
        The points to begin with, which prove nothing.

    Attributes
    ----------
    lower, upper : float
        Soft: dual and primal objective. Hard: attained margin, and a bound on every margin.
    primal : Primal
    alpha : ndarray of shape (n,)
        Dual variables.
    """

    def __init__(self, problem: Problem, primal: Primal, alpha: np.ndarray) -> None:
        self.problem = problem
        self.lower, self.upper = -np.inf, np.inf
        self.primal, self.alpha = primal, alpha

    @property
    def gap(self) -> float:
        """Relative gap of the bounds; inf where they prove nothing."""
        return self.problem.gap(self.lower, self.upper)

    def is_better_primal(self, bound: float) -> bool:
        """Return whether a primal point of this margin (hard) or objective (soft) is better; never for NaN."""
        return bound > self.lower if self.problem.hard else bound < self.upper

    def is_better_dual(self, bound: float) -> bool:
        """Return whether a dual point proves more; never for NaN."""
        return bound < self.upper if self.problem.hard else bound > self.lower

    def update_primal(self, primal: Primal, bound: float) -> None:
        """Keep a primal point where it is better than all before."""
        if self.is_better_primal(bound):
            self.primal = primal
            if self.problem.hard:
                self.lower = bound
            else:
                self.upper = bound

    def update_dual(self, alpha: np.ndarray, bound: float) -> None:
        """Keep a dual point where it is better than all before."""
        if self.is_better_dual(bound):
            self.alpha = alpha
            if self.problem.hard:
                self.upper = bound
            else:
                self.lower = bound

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


def balance(
    problem: Problem,
    y: np.ndarray,
    alpha: np.ndarray,
    scores: np.ndarray,
    square: float,
    lengths: np.ndarray,
) -> Balanced | None:
    """Scale the heavier class down to the total of the other, as a free intercept asks; None where a class has none.

    Parameters
    ----------
    problem : Problem
    y, alpha : ndarray of shape (n,)
    scores : ndarray of shape (n,)
        v.x_i of every row.
    square : float
        |v|^2.
    lengths : ndarray of shape (n,)
        |x_i|, for the triangle inequality |sum cut_i y_i x_i| <= sum cut_i |x_i|.
    """
    balanced = problem.balanced(y, alpha)
    if balanced is None:
        return None
    cut = alpha - balanced
    return Balanced(balanced, cut, square - 2.0 * float((cut * y) @ scores), float(np.abs(cut) @ lengths))


def best_dual_multiple(value: float, total: float) -> tuple[float, float]:
    """Return the best t <= 1, and the dual objective of t times dual variables of objective `value` and sum `total`.

    The objective of t alpha is t total - t^2 quadratic / 2.
    """
    quadratic = 2.0 * (total - value)
    t = best_multiple(total, quadratic, 1.0)
    return t, t * total - 0.5 * t * t * quadratic


def best_primal_multiple(
    problem: Problem, square: float, scores: np.ndarray, b: float, y: np.ndarray, weights: np.ndarray
) -> tuple[float, float]:
    """Return the best multiple of w and the best intercept for it, found in turn.

    Parameters
    ----------
    problem : Problem
    square : float
        |w|^2.
    scores : ndarray of shape (n,)
        w.x_i.
    b : float
    y, weights : ndarray of shape (n,)
    """
    return best_multiple_and_intercept(problem, square, scores, b, y, weights, TURNS)


def soft_objective(
    problem: Problem,
    multiple: float,
    square: float,
    scores: np.ndarray,
    b: float,
    y: np.ndarray,
    weights: np.ndarray,
) -> float:
    """Return the primal objective of a multiple of w with intercept b."""
    norm2 = problem.norm2(multiple * multiple * square, b)
    return problem.primal(0.5 * norm2, y * (multiple * scores + b), weights)
