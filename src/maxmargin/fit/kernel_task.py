"""One binary kernel problem as a solver gets it, and the best points on its way, known by their scores alone."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from ..algorithms.batch.kernel_rows import KernelRows
from ..engine.jit import compiled
from ..problem.intercept import best_intercept, best_multiple_and_intercept
from ..problem.problem import Problem, best_multiple
from .line_search import intercept

TURNS = 3  # length and intercept in turn
FAR = 1e-2  # a gap with which it does not matter yet that the intercept is the best
EVEN = 1e-12  # share of all dual weights by which the classes' totals differ by rounding alone


@dataclass(frozen=True, eq=False)
class KernelTask:
    """A problem, the rows of its kernel, and labels.

    Parameters
    ----------
    problem : Problem
        p = 2.
    rows : KernelRows
        Shared by all classes.
    y : ndarray of shape (n,), entries -1.0 and 1.0
    weights : ndarray of shape (n,)
        Sample weights; rows of weight 0 take no part, and keep a dual weight of 0.
    start : ndarray of shape (n,), default=None
        Dual weights to begin with.
    """

    problem: Problem
    rows: KernelRows
    y: np.ndarray
    weights: np.ndarray
    start: np.ndarray | None = None


class Primal(NamedTuple):
    """w = sum coefficients_i phi(x_i), and the intercept."""

    coefficients: np.ndarray
    b: float


class KernelPoints:
    """The best primal and the best dual point so far, and the bounds that they give.

    Bounds are as good as the scores are, in the precision of the kernel's rows; `kernel_certificates` proves them
    anew. Rows of weight 0 take no part.

    Attributes
    ----------
    lower, upper, gap : float
        Soft: dual and primal objective. Hard: attained margin, and a bound on every margin.
    primal : Primal
    alpha : ndarray of shape (n,)
        The dual weights that prove the other bound; feasible but for rounding.
    """

    def __init__(self, problem: Problem, y: np.ndarray, weights: np.ndarray, diagonal: np.ndarray) -> None:
        self.problem, self.y, self.weights = problem, y, weights
        self._lengths = np.sqrt(np.maximum(diagonal, 0.0, dtype=float))
        self._used = weights > 0.0
        self._caps = problem.caps(weights)
        self.lower, self.upper, self.gap = -np.inf, np.inf, np.inf
        self.primal, self.alpha = Primal(np.zeros(y.size), 0.0), np.zeros(y.size)
        if not problem.hard and np.unique(y[self._used]).size < 2:  # w = 0 and an intercept have no loss
            self.value(self.alpha, np.zeros(y.size))

    def value(self, alpha: np.ndarray, scores: np.ndarray) -> None:
        """Value a point: dual weights, within their caps, and the scores f_j = sum_i alpha_i y_i k(x_i, x_j).

        Neither constant nor own coordinates belong to the scores. Each bound is kept where it is better than before.
        """
        if not self._glanced(alpha, scores):
            self.prove(alpha, scores)
            self.attain(alpha, scores)

    def _glanced(self, alpha: np.ndarray, scores: np.ndarray) -> bool:
        """Were two passes enough? They are for the hinge, where the classes' totals are even.

        While the gap is large the intercept that the free rows suggest will do.
        """
        problem, caps = self.problem, self._caps
        if problem.hard or not problem.free or problem.loss != "hinge":
            return False
        total, uneven, square, loss, bias = glance(self.y, caps, alpha, scores)
        if not (abs(uneven) <= EVEN * total and 0.0 < square < np.inf):
            return False
        t = min(total / square, 1.0)
        lower, upper = t * total - 0.5 * t * t * square, loss + 0.5 * square
        if min(problem.gap(lower, upper), problem.gap(max(lower, self.lower), self.upper)) <= FAR:
            bias = intercept(problem, scores, self.y, self.weights)
            upper = hinge_loss(self.y, caps, scores, bias) + 0.5 * square
        if lower > self.lower:
            self.lower, self.alpha = lower, t * alpha
        if upper < self.upper:
            self.upper, self.primal = upper, Primal(alpha * self.y, bias)
        self.gap = problem.gap(self.lower, self.upper)
        return True

    def attain(self, alpha: np.ndarray, scores: np.ndarray) -> None:
        """Value a primal point alone; its dual weights may be above their caps."""
        with np.errstate(over="ignore", invalid="ignore"):
            attain = self._attain_hard if self.problem.hard else self._attain_soft
            attain(alpha, scores, *self._lengths_of(alpha, scores))
        self.gap = self.problem.gap(self.lower, self.upper)

    def prove(self, alpha: np.ndarray, scores: np.ndarray) -> None:
        """Value a dual point alone."""
        with np.errstate(over="ignore", invalid="ignore"):
            prove = self._prove_hard if self.problem.hard else self._prove_soft
            prove(alpha, scores, *self._lengths_of(alpha, scores))
        self.gap = self.problem.gap(self.lower, self.upper)

    def adopt(self, other: KernelPoints, rounding: float) -> None:
        """Take over points found elsewhere where they prove as much, but for so much of rounding."""
        if other.gap <= max(self.gap, rounding):
            self.lower, self.upper, self.gap = other.lower, other.upper, other.gap
            self.primal, self.alpha = other.primal, other.alpha

    def _lengths_of(self, alpha: np.ndarray, scores: np.ndarray) -> tuple[float, float]:
        """|sum alpha_i y_i phi(x_i)|^2, and the weight of the constant coordinate."""
        square = float((alpha * self.y) @ scores)
        return max(square, 0.0), self.problem.rho * float(alpha @ self.y)

    def _attain_hard(self, alpha: np.ndarray, scores: np.ndarray, square: float, own: float) -> None:
        problem, y, used = self.problem, self.y, self._used
        bias = problem.rho * own
        if problem.free:
            bias = best_intercept(problem, scores[used], y[used], self.weights[used])
        length = (square + own * own) ** 0.5
        least = float((y * (scores + bias))[used].min())
        lower = least / length if length > 0.0 else -np.inf
        if lower > self.lower:
            size = 1.0 / least if least > 0.0 else 1.0  # canonical scale: the smallest margin is one
            self.lower, self.primal = lower, Primal(size * alpha * y, size * bias)

    def _prove_hard(self, alpha: np.ndarray, scores: np.ndarray, square: float, own: float) -> None:
        balanced, square = self._balanced(alpha, scores, square)
        total = float(balanced.sum())
        upper = (square + own * own) ** 0.5 / total if total > 0.0 else np.inf
        if upper < self.upper:
            self.upper, self.alpha = upper, balanced

    def _attain_soft(self, alpha: np.ndarray, scores: np.ndarray, square: float, own: float) -> None:
        problem, y, weights = self.problem, self.y, self.weights
        t, bias = 1.0, problem.rho * own
        if problem.free:
            bias = best_intercept(problem, scores, y, weights)
        if problem.loss == "squared_hinge" and alpha.any():
            t, bias = best_multiple_and_intercept(problem, square, scores, bias, y, weights, TURNS)
        norm2 = problem.norm2(t * t * square, bias)
        upper = problem.primal(0.5 * norm2, y * (t * scores + bias), weights)
        if upper < self.upper:
            self.upper, self.primal = upper, Primal(t * alpha * y, bias)

    def _prove_soft(self, alpha: np.ndarray, scores: np.ndarray, square: float, own: float) -> None:
        balanced, square = self._balanced(alpha, scores, square)
        value = self.problem.dual(square + own * own, balanced, self.weights)
        total = float(balanced.sum())
        quadratic = 2.0 * (total - value)
        t = best_multiple(total, quadratic, 1.0)
        lower = t * total - 0.5 * t * t * quadratic
        if lower > self.lower:
            self.lower, self.alpha = lower, t * balanced

    def _balanced(self, alpha: np.ndarray, scores: np.ndarray, square: float) -> tuple[np.ndarray, float]:
        """The heavier class scaled down to the other's total where the intercept is free, and |v|^2 at most."""
        if not self.problem.free:
            return alpha, square
        balanced = self.problem.balanced(self.y, alpha)
        if balanced is None:
            return np.zeros_like(alpha), 0.0
        cut = alpha - balanced
        # |sum of what is cut|^2 by the triangle inequality
        size = float(cut @ self._lengths)
        return balanced, max(square - 2.0 * float((cut * self.y) @ scores) + size * size, 0.0)


@compiled()
def glance(y, cap, alpha, scores):
    """Of the hinge: sum alpha, sum y alpha, |w|^2, the loss, and its intercept: the mean that free rows ask for."""
    total = uneven = square = asked = 0.0
    count = 0
    for k in range(y.size):
        if alpha[k] > 0.0:
            total += alpha[k]
            uneven += y[k] * alpha[k]
            square += y[k] * alpha[k] * scores[k]
            if alpha[k] < cap[k]:
                asked += y[k] - scores[k]
                count += 1
    b = asked / count if count else 0.0
    return total, uneven, square, hinge_loss(y, cap, scores, b), b


@compiled()
def hinge_loss(y, cap, scores, b):
    """sum cap_k max(0, 1 - y_k (scores_k + b))"""
    loss = 0.0
    for k in range(y.size):
        loss += cap[k] * max(0.0, 1.0 - y[k] * (scores[k] + b))
    return loss
