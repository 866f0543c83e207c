"""The state of a solver on rows of data, and the bounds of the points that its scores give at p = 2."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ..algorithms import Algorithm
from ..data.rows import Patterns
from ..data.task import Task
from ..engine.order import Source
from ..engine.state import BIAS, FACTOR, TIME, Motion, Weight
from ..engine.sweep import excess
from ..numerics.sums import Plain
from ..problem.intercept import best_intercept
from .extrapolation import DEPTH, Extrapolation
from .line_search import intercept
from .row_tracker import RowTracker
from .start import begin_at_dual, begin_at_primal, begin_in_direction
from .state import State
from .tracker import Primal, best_dual_multiple


class Run(State):
    """The state of a solver on rows of data.

    Parameters
    ----------
    task : Task
        The presolved task.
    algorithm : Algorithm
    tol : float
    rng : Generator or Draws
    interrupted : callable

    Attributes
    ----------
    w, b, alpha : the best points so far.
    candidate : (ndarray of shape (d,), float, ndarray of shape (n,)) or None
        A point (w, b, alpha) that its solver expects to be near enough; no bounds of it have been computed.
    """

    patterns: Patterns
    task: Task
    tracker: RowTracker

    def __init__(
        self,
        task: Task,
        algorithm: Algorithm,
        tol: float,
        rng: Source,
        interrupted: Callable[[], bool],
    ) -> None:
        self.task = task
        self.tracker = RowTracker(task, tol)
        # whether w is the sum of the patterns by their dual variables, in its own norm
        self._euclidean = task.problem.euclidean and algorithm.motion is not Motion.FLEXIBLE
        super().__init__(
            task.problem, task.patterns, task.y, task.weights, algorithm, tol, rng, interrupted, task.point
        )
        plan = self._plan
        self._extrapolation = Extrapolation() if plan.real else None
        self.candidate: tuple[np.ndarray, float, np.ndarray] | None = None
        if task.start is not None and algorithm.convergent:
            begin_at_dual(self, task.start)
        elif task.start is not None and plan.clock is not None:
            begin_in_direction(self, task.start, 1.0)
            self.h.number[TIME] = plan.clock(self.h.scale.real(self.h.alpha), np.sqrt(self.h.square))
            if task.point is not None:
                self.evaluate(*task.point, task.start)
        elif task.point is not None and algorithm.motion is Motion.SUBGRADIENT:
            self.begun = begin_at_primal(self, *task.point, task.start)

    @property
    def w(self) -> np.ndarray:
        """w of the best primal point."""
        return self.tracker.primal.w

    @property
    def b(self) -> float:
        """Intercept of the best primal point."""
        return self.tracker.primal.b

    @property
    def alpha(self) -> np.ndarray:
        """Dual variables of the best dual point."""
        return self.tracker.alpha

    def _weight(self, scale: Any, holds: bool) -> Weight:
        return self.patterns.weight(
            self.problem,
            self.y,
            self.weights,
            self.unit,
            self.rho,
            scale,
            holds=holds,
            motion=self.algorithm.motion,
        )

    def look_for_zero_rows(self) -> None:
        """Prove that a hard margin without intercept has no separator where a row is zero."""
        empty = self.patterns.square == 0.0
        if self.problem.hard and self.problem.intercept == "none" and empty.any():
            self.tracker.update_dual(np.where(empty, 1.0, 0.0), 0.0)

    def count_start(self) -> None:
        """Evaluate the point to begin with: it is the result where the fit is stopped before its first round."""
        task = self.task
        if task.point is not None:
            w, b = task.point
        elif task.start is not None and self.problem.euclidean:
            c = task.start * self.y
            w, b = Plain.combine(self.patterns.X, c), self.problem.rho**2 * float(c.sum())
        else:
            return
        self.evaluate(w, b, np.ones(self.n) if task.start is None else task.start)

    # for schedules

    def repeat(self, h: Any, rows: np.ndarray, passes: int) -> None:
        """Present these rows of h until none makes a step; with an extrapolation where it is due."""
        extrapolate = self._extrapolation
        if extrapolate is not None and extrapolate.due(rows.size):
            passes -= DEPTH
        else:
            extrapolate = None
        steps = self._present(h, rows, passes)
        if extrapolate is not None and steps:
            extrapolate(self, h, rows)

    def move_to(self, w: np.ndarray, alpha: np.ndarray) -> None:
        """Set dual variables, and the w that they make, constant coordinate included."""
        self.h.alpha[:] = np.minimum(alpha, self.h.cap)
        self.h.space.vector.w[:] = w
        self.steps += 1

    def offer(self, w: np.ndarray, b: float, upper: float) -> None:
        """Keep a point, constant coordinate included, of known objective `upper` where it is better."""
        if self.problem.rho:
            w, b = w[:-1], self.problem.rho * float(w[-1])
        self.tracker.update_primal(Primal(w, b), upper)

    def evaluate(self, w: np.ndarray, b: float, alpha: np.ndarray) -> None:
        """Evaluate a primal and a dual point, in any norm, and keep each where it is better."""
        self.tracker.evaluate(w, b, alpha, only_direction=not self._fixed_unit)

    # bounds

    def _bounds(self) -> None:
        if not self._euclidean:
            self.evaluate(*self._point(), np.asarray(self.h.scale.real(self.h.alpha)))
        elif self.problem.hard:
            self._hard_bounds()
        else:
            self._soft_bounds()

    def _length2(self) -> float:
        return float(self.h.space.vector.measure())

    def _point(self) -> tuple[np.ndarray, float]:
        """Return w without its constant coordinate, and the intercept, in the engine's units."""
        h, bias = self.h, float(self.h.number[BIAS])
        full = h.space.vector.w if self.problem.p == 2 else h.number[FACTOR] * h.space.vector.w
        if self.rho:
            return full[:-1], bias + self.rho * full[-1]
        return full, bias

    def _best_unit(self, w: np.ndarray, bias: float) -> float:
        """Return the unit whose dual variables, alpha / unit, are at their best multiple."""
        problem, a = self.problem, self.h.alpha
        length2 = float(w @ w) + float(problem.delta2(self.weights) @ (a * a))
        length2 += (bias / self.rho) ** 2 if self.rho else 0.0
        return length2 / float(a.sum()) if a.any() else 1.0

    def _soft_bounds(self) -> None:
        """Evaluate the primal and the dual point of w and its dual variables; soft margins."""
        problem, h, tracker = self.problem, self.h, self.tracker
        w, bias = self._point()
        over = bool((h.alpha > h.cap).any())
        if not self._fixed_unit:
            self.unit = self._best_unit(w, bias)
        w, bias, a = w / self.unit, bias / self.unit, h.alpha / self.unit
        square, z = float(w @ w), np.empty(0)
        if problem.free or not self._fixed_unit:
            z = self._scores_without_bias(a, bias)
        dual = -np.inf if over or problem.free else problem.dual(problem.norm2(square, bias), a, self.weights)
        if self._fixed_unit:
            self._soft_primal(w, bias, z, dual, over)
        else:  # the best multiple of the primal point is not that of the dual one
            tracker.evaluate_direction(w, bias, z)
        if over:
            a, square, z = tracker.capped(a)
            dual = problem.dual(square, a, self.weights)
        tracker.update_dual(a, self._soft_dual(a, square, z, dual))

    def _soft_dual(self, a: np.ndarray, square: float, z: np.ndarray, dual: float) -> float:
        """Return the dual bound of dual variables, balanced where the intercept is free, at their best multiple."""
        if self.problem.free:
            return self.tracker.balanced_bound(a, square, z)
        return best_dual_multiple(dual, float(a.sum()))[1]

    def _scores_without_bias(self, a: np.ndarray, bias: float) -> np.ndarray:
        """Return w.x of every row from the last look, for dual variables and an intercept of unit one."""
        margins = self.scores / self.unit
        if self.problem.loss == "squared_hinge":
            margins = margins - self.h.slack.delta2 * a  # the own coordinate of every row
        return self.y * margins - bias

    def _soft_primal(self, w: np.ndarray, bias: float, z: np.ndarray, dual: float, over: bool) -> None:
        """Evaluate w at the length that it has.

        Parameters
        ----------
        w, bias : point
        z : ndarray of shape (n,)
            w.x of every row, where the intercept is free.
        dual : float
            Dual objective, where the intercept is not free and no cap is exceeded.
        over : bool
            Whether a dual variable exceeds its cap.
        """
        problem, h, square = self.problem, self.h, float(w @ w)
        if problem.free:
            b = intercept(problem, z, self.y, self.weights)
            upper = problem.primal(0.5 * square, self.y * (z + b), self.weights)
            self.tracker.update_primal(Primal(w, b), upper)
        elif over:
            norm2 = problem.norm2(square, bias)
            upper = problem.primal(0.5 * norm2, self.scores / self.unit, self.weights)
            self.tracker.update_primal(Primal(w, bias), upper)
        else:
            # sum alpha_i m_i = |w|^2, so that primal - dual is a sum of one term for every pattern
            upper = dual + excess(h, self.line, self.scores, self.unit) / self.unit / self.unit
            self.tracker.update_primal(Primal(w, bias), upper)

    def _hard_bounds(self) -> None:
        """Evaluate the primal and the dual point of w and its dual variables; hard margins."""
        problem, (w, bias) = self.problem, self._point()
        s, a = self.scores, self.h.alpha
        if problem.free:
            z = self.y * s - bias
            b = best_intercept(problem, z, self.y, self.weights)
            smallest = float((self.y * (z + b)).min())
            length2 = float(w @ w)
            upper, balanced = np.inf, problem.balanced(self.y, a)
            if balanced is not None:
                v = Plain.combine(self.patterns.X, self.y * balanced)
                upper = float(v @ v) ** 0.5 / float(balanced.sum())
        else:
            b, smallest = bias, float(s.min())
            length2, total = problem.norm2(float(w @ w), bias), float(a.sum())
            upper = length2**0.5 / total if total > 0.0 else np.inf
        lower = smallest / length2**0.5 if length2 > 0.0 else -np.inf
        scale = smallest if smallest > 0.0 else 1.0  # canonical scale: the smallest margin is one
        self.tracker.update_primal(Primal(w / scale, b / scale), lower)
        self.tracker.update_dual(a / self.unit, upper)
