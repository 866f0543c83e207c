"""Bounds of kernel expansions w = sum c_i phi(x_i), and the choice of the primal point with the smallest gap."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from ..numerics.sums import EPS
from ..problem.intercept import best_intercept, best_multiple_and_intercept
from ..problem.problem import Problem
from .bounds import Bounds, Side, combine_sides, dual_side, imbalance, primal_side
from .dual_variables import feasible
from .gram import Combination, KernelSample

# Ratio of the certified gap to the gap asked for, up to which no further point is tried: a smaller value would cost
# time for no visible gain, a larger one would return larger gaps.
ACCEPTED_GAP_RATIO = 1.001


class KernelPoint(NamedTuple):
    """Dual variables, and a primal point w = sum coefficients_i phi(x_i) with its intercept."""

    alpha: np.ndarray
    coefficients: np.ndarray
    intercept: float


class KernelBounds(NamedTuple):
    """Bounds, rounded outwards, and the point that proves them."""

    bounds: Bounds
    point: KernelPoint


@dataclass(frozen=True, eq=False)
class KernelProblem:
    """A problem on kernel rows.

    Parameters
    ----------
    problem : Problem
        p = 2.
    sample : KernelSample
        n rows.
    y : ndarray of shape (n,), entries -1.0 and 1.0
    weights : ndarray of shape (n,)
        Sample weights; rows of weight 0 take no part.
    """

    problem: Problem
    sample: KernelSample
    y: np.ndarray
    weights: np.ndarray

    def bounds(self, point: KernelPoint, gap: float = 0.0) -> KernelBounds:
        """Return the bounds of one point, whose dual variables are made feasible first (`all_bounds`)."""
        return all_bounds([self], [point], [gap])[0]

    def attained_margin(self, c: np.ndarray, b: float) -> float:
        """Return the margin of sum c_i k(x_i, .) + b in a hard margin problem, rounded downwards.

        `c` has shape (n,); the margin is in the length that the kernel defines.
        """
        return self.primal_side(self.sample.combinations(c[None])[0], b).bound

    def dual_side(self, alpha: np.ndarray, dual: Combination) -> Side:
        """Return the bound of feasible dual variables, of shape (n,), of which `dual` is sum alpha_i y_i phi(x_i).

        Scaling the heavier class down to the total of the other moves v by at most |sum alpha_i y_i| times the longest
        phi(x_i).
        """
        uneven = imbalance(alpha, self.y) if self.problem.free else 0.0
        length = dual.dual_length(self.problem, alpha, uneven * self.sample.max_diagonal**0.5)
        return dual_side(self.problem, self.weights, alpha, length, uneven)

    def primal_side(self, w: Combination, b: float) -> Side:
        """Return the bound of the primal point (w, b)."""
        length = w.primal_length(self.problem, b)
        return primal_side(self.problem, self.weights, *w.margins(self.y, b), length)

    def best_bounds(
        self, alpha: np.ndarray, dual: Combination, given: tuple[Combination, float], gap: float
    ) -> KernelBounds:
        """Return the bounds of dual variables and the best of several primal points.

        Parameters
        ----------
        alpha : ndarray of shape (n,)
            Feasible.
        dual : Combination
            sum alpha_i y_i phi(x_i).
        given : (Combination, float)
            The first primal point, (w, b).
        gap : float
            Further points of `_primal_points` are tried until one proves this gap.
        """
        problem = self.problem
        alpha, dual = self._scale_dual(alpha, dual)
        proof = self.dual_side(alpha, dual)
        # in a soft problem alpha = 0 proves the bound 0, which is better than a bound that rounding has made negative
        if not (problem.hard or proof.bound >= 0.0):
            alpha, proof = np.zeros_like(alpha), Side(0.0, 0.0, 0.0)
        found: list[KernelBounds] = []
        for w, b in self._primal_points(given, dual):
            bounds = combine_sides(problem, proof, self.primal_side(w, b))
            found.append(KernelBounds(bounds, KernelPoint(alpha, w.c, b)))
            if problem.gap(bounds.lower, bounds.upper) <= ACCEPTED_GAP_RATIO * gap:
                break
        # the gap 1 - lower / upper of a hard margin rounds to one for all small margins
        return min(found, key=lambda one: (problem.gap(*one.bounds[:2]), one.bounds.upper - one.bounds.lower))

    def _scale_dual(self, alpha: np.ndarray, dual: Combination) -> tuple[np.ndarray, Combination]:
        """Return the multiple of the dual variables with the largest dual value, and its combination.

        The multiple is capped at C s_i. The bound of a hard margin depends on the proportions of alpha only: both are
        returned as they are.
        """
        if self.problem.hard or not alpha.any():
            return alpha, dual
        constant = self.problem.rho * float(dual.c.sum())
        t = self.problem.multiple(alpha, dual.square + constant * constant, self.weights)
        alpha = self.problem.capped(t * alpha, self.weights)
        return alpha, self.sample.multiple(dual, t, alpha * self.y)

    def _primal_points(
        self, given: tuple[Combination, float], dual: Combination
    ) -> Iterator[tuple[Combination, float]]:
        """Yield candidates (w, b) for the primal point.

        They are the given point, the best multiple of `dual` with its best intercept, and, in soft problems, both of
        them scaled up until all margins are 1, so that there are no losses, and w = 0 with its best intercept.
        """
        yield given
        points = [given, self._best_primal(dual)]
        yield points[1]
        if self.problem.hard:
            return
        for w, b in points:
            # three error bounds are subtracted: one for these margins, two for the recomputed margins of the multiple
            margins, errors = w.margins(self.y, b)
            least = float((margins - 3.0 * errors).min(where=self.weights > 0.0, initial=np.inf))
            if 0.0 < least < 1.0:
                t = (1.0 + 16.0 * EPS) / least
                yield self.sample.multiple(w, t, t * w.c), t * b
        zero = np.zeros(self.y.size)
        b = best_intercept(self.problem, zero, self.y, self.weights) if self.problem.free else 0.0
        yield Combination(zero, zero, 0.0, 0.0, 0.0), b

    def _best_primal(self, dual: Combination) -> tuple[Combination, float]:
        """Return the multiple of w = `dual` with the smallest primal objective, and its intercept.

        The multiple is 1 for the hinge. In a hard margin problem it has a smallest margin of one, if it separates.
        """
        problem, y, weights = self.problem, self.y, self.weights
        t, b = 1.0, problem.rho * problem.rho * float(dual.c.sum())
        if problem.free:
            b = best_intercept(problem, dual.scores, y, weights)
        if problem.hard:
            smallest = float((y * (dual.scores + b))[weights > 0.0].min())
            t = 1.0 / smallest if smallest > 0.0 else 1.0  # canonical scale: the smallest margin is one
            b = t * b
        elif problem.loss == "squared_hinge":
            norm2 = problem.norm2(dual.square, b)
            t, b = best_multiple_and_intercept(problem, norm2, dual.scores, b, y, weights)
        return self.sample.multiple(dual, t, t * dual.c), b


def all_bounds(
    tasks: Sequence[KernelProblem], points: Sequence[KernelPoint], gaps: Sequence[float] | None = None
) -> list[KernelBounds]:
    """Return the bounds of several problems on the same rows, with one computation of the kernel.

    The primal point of each problem is the given one if its gap is at most ACCEPTED_GAP_RATIO times that of `gaps`,
    else that with the smallest gap of the candidates of `KernelProblem._primal_points`.

    Parameters
    ----------
    tasks : sequence of KernelProblem
        On one sample.
    points : sequence of KernelPoint
        Dual variables are any non-negative numbers; they are made feasible first.
    gaps : sequence of float, default=None
        The gap that is asked for, of each problem; None for 0.0.
    """
    gaps = [0.0] * len(tasks) if gaps is None else gaps
    duals = [
        feasible(task.problem, task.y, task.weights, point.alpha)
        for task, point in zip(tasks, points, strict=True)
    ]
    signed = [alpha * task.y for alpha, task in zip(duals, tasks, strict=True)]
    given = [point.coefficients for point in points]
    combinations = tasks[0].sample.combinations(np.array([*signed, *given]))
    sides = zip(combinations[: len(tasks)], combinations[len(tasks) :], strict=True)
    return [
        task.best_bounds(alpha, dual, (w, point.intercept), gap)
        for task, alpha, (dual, w), point, gap in zip(tasks, duals, sides, points, gaps, strict=True)
    ]
