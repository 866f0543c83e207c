"""The best points of a task whose patterns are known by their kernel: w is known by the scores of all rows alone."""

from __future__ import annotations

import numpy as np

from ..engine.jit import compiled
from ..problem.intercept import best_intercept
from ..problem.problem import Problem
from .line_search import intercept
from .tracker import Primal, Tracker, balance, best_dual_multiple, best_primal_multiple, soft_objective

# Gap above which the best intercept is not worth its sort: the one that the free rows suggest is near enough.
FAR = 1e-2
# Share of the sum of all dual variables by which the totals of the classes differ by rounding alone.
EVEN = 1e-12


class GramTracker(Tracker):
    """The best points of a kernel problem.

    Bounds are as good as the scores are, in the precision of the kernel's rows; `certificates.kernel` proves them
    anew. Rows of weight 0 take no part.

    Parameters
    ----------
    problem : Problem
        p = 2.
    y : ndarray of shape (n,), entries -1.0 and 1.0
    weights : ndarray of shape (n,)
    diagonal : ndarray of shape (n,)
        k(x_i, x_i).
    """

    def __init__(self, problem: Problem, y: np.ndarray, weights: np.ndarray, diagonal: np.ndarray) -> None:
        super().__init__(problem, Primal(np.zeros(y.size), 0.0), np.zeros(y.size))
        self.y, self.weights = y, weights
        self._lengths = np.sqrt(np.maximum(diagonal, 0.0, dtype=float))
        self._used = weights > 0.0
        self._caps = problem.caps(weights)
        if not problem.hard and np.unique(y[self._used]).size < 2:  # w = 0 and an intercept have no loss
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
        if not self.evaluate_in_two_passes(alpha, scores):
            self.evaluate_dual(alpha, scores)
            self.evaluate_primal(alpha, scores)

    def evaluate_in_two_passes(self, alpha: np.ndarray, scores: np.ndarray) -> bool:
        """Evaluate a point of a hinge problem whose classes have equal totals; return False for any other.

        While the gap is large, the intercept that the free rows suggest is used in place of the best one.
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
        self.update_dual(t * alpha, lower)
        self.update_primal(Primal(alpha * self.y, bias), upper)
        return True

    def evaluate_primal(self, alpha: np.ndarray, scores: np.ndarray) -> None:
        """Evaluate the primal part of a point alone; its dual variables may be above their caps."""
        with np.errstate(over="ignore", invalid="ignore"):
            square, constant = self._lengths_of(alpha, scores)
            if self.problem.hard:
                self._hard_primal(alpha, scores, square, constant)
            else:
                self._soft_primal(alpha, scores, square, constant)

    def evaluate_dual(self, alpha: np.ndarray, scores: np.ndarray) -> None:
        """Evaluate the dual part of a point alone."""
        with np.errstate(over="ignore", invalid="ignore"):
            square, constant = self._lengths_of(alpha, scores)
            alpha, square = self._balanced(alpha, scores, square)
            total = float(alpha.sum())
            if self.problem.hard:
                length = (square + constant * constant) ** 0.5
                self.update_dual(alpha, length / total if total > 0.0 else np.inf)
                return
            value = self.problem.dual(square + constant * constant, alpha, self.weights)
            t, lower = best_dual_multiple(value, total)
            self.update_dual(t * alpha, lower)

    def _lengths_of(self, alpha: np.ndarray, scores: np.ndarray) -> tuple[float, float]:
        """Return |sum alpha_i y_i phi(x_i)|^2, and the weight of the constant coordinate."""
        square = float((alpha * self.y) @ scores)
        return max(square, 0.0), self.problem.rho * float(alpha @ self.y)

    def _hard_primal(self, alpha: np.ndarray, scores: np.ndarray, square: float, constant: float) -> None:
        problem, y, used = self.problem, self.y, self._used
        bias = problem.rho * constant
        if problem.free:
            bias = best_intercept(problem, scores[used], y[used], self.weights[used])
        length = (square + constant * constant) ** 0.5
        smallest = float((y * (scores + bias))[used].min())
        size = 1.0 / smallest if smallest > 0.0 else 1.0  # canonical scale: the smallest margin is one
        self.update_primal(
            Primal(size * alpha * y, size * bias), smallest / length if length > 0.0 else -np.inf
        )

    def _soft_primal(self, alpha: np.ndarray, scores: np.ndarray, square: float, constant: float) -> None:
        problem, y, weights = self.problem, self.y, self.weights
        t, bias = 1.0, problem.rho * constant
        if problem.free:
            bias = best_intercept(problem, scores, y, weights)
        if problem.loss == "squared_hinge" and alpha.any():
            t, bias = best_primal_multiple(problem, square, scores, bias, y, weights)
        upper = soft_objective(problem, t, square, scores, bias, y, weights)
        self.update_primal(Primal(t * alpha * y, bias), upper)

    def _balanced(self, alpha: np.ndarray, scores: np.ndarray, square: float) -> tuple[np.ndarray, float]:
        """Return dual variables, balanced where the intercept is free, and an upper bound of their |v|^2."""
        if not self.problem.free:
            return alpha, square
        found = balance(self.problem, self.y, alpha, scores, square, self._lengths)
        if found is None:
            return np.zeros_like(alpha), 0.0
        return found.alpha, max(found.square + found.size * found.size, 0.0)


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
