"""The state of a solver on rows of data: where it begins, and the evaluation of its points in any norm."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ..algorithms.base import Algorithm
from ..data.rows import Patterns
from ..data.task import Task
from ..engine.order import Source
from ..engine.state import BIAS, FACTOR, TIME, Motion, refresh
from ..engine.sweep import weight_from_duals
from ..numerics.norms import norm
from ..numerics.sums import Plain
from .extrapolation import DEPTH, Extrapolation
from .state import State
from .tracker import Primal, Tracker, dual_point, primal_point


class Run(State):
    """The state of a solver on rows of data.

    Parameters
    ----------
    task : Task
        The presolved task.
    algorithm : Algorithm
    tol : float
    rng : Generator or LazyGenerator
    interrupted : callable

    Attributes
    ----------
    candidate : (ndarray of shape (d,), float, ndarray of shape (n,)) or None
        A point (w, b, alpha) that its solver expects to be near enough; no bounds of it have been computed.
    """

    patterns: Patterns
    task: Task
    best: Tracker

    def __init__(
        self,
        task: Task,
        algorithm: Algorithm,
        tol: float,
        rng: Source,
        interrupted: Callable[[], bool],
    ) -> None:
        super().__init__(task, task.patterns, slice(None), algorithm, tol, rng, interrupted)
        self.best = Tracker(task.problem, task.patterns.d, task.patterns.n)
        plan = self._plan
        self._extrapolation = Extrapolation() if plan.real else None
        self.candidate: tuple[np.ndarray, float, np.ndarray] | None = None
        if task.start is not None and algorithm.convergent:
            self._begin_at_dual(task.start)
        elif task.start is not None and plan.clock is not None:
            self._begin_in_direction(task.start, 1.0)
            self.h.number[TIME] = plan.clock(self.h.scale.to_dual(self.h.alpha), np.sqrt(self.h.square))
            if task.point is not None:
                self.evaluate(*task.point, task.start)
        elif task.point is not None and algorithm.motion is Motion.SUBGRADIENT:
            self.begun = self._begin_at_primal(*task.point, task.start)

    # the point to begin with

    def look_for_zero_rows(self) -> None:
        """Prove that a hard margin without intercept has no separator where a row is zero."""
        empty = self.patterns.square == 0.0
        if self.problem.intercept == "none" and empty.any():
            self.best.update_dual(np.where(empty, 1.0, 0.0), 0.0)

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

    def _begin_at_dual(self, alpha: np.ndarray) -> None:
        """Begin with these dual variables, cut at their caps, at their best multiple: they may be of another C."""
        h, problem = self.h, self.problem
        h.alpha[:] = np.clip(alpha * self.unit, 0.0, h.cap)
        c = h.alpha * self.y
        w = h.space.vector.w
        w[: self.patterns.d] = Plain.combine(self.patterns.X, c)
        if self.rho:
            w[-1] = self.rho * c.sum()
        if not problem.hard and h.alpha.any():
            times = problem.multiple(h.alpha / self.unit, float(w @ w) / self.unit**2, self.weights)
            h.alpha[:] = np.minimum(h.alpha * times, h.cap)
            w *= times

    def _begin_in_direction(self, alpha: np.ndarray, length: float) -> None:
        """Begin at the w of this length that is the sum of the patterns by a multiple of these dual variables."""
        top = float(alpha.max())
        if top > 0.0:
            weight_from_duals(self.h, alpha / top, length)

    def _begin_at_primal(self, w: np.ndarray, b: float, alpha: np.ndarray | None) -> bool:
        """Begin with this direction, at the length that the Perceptron's w has at its end, R^2 / margin.

        What rows lack of a margin of one is put into their own coordinates. Where w is the sum that dual variables
        make, the engine is put at the w of these dual variables.

        Parameters
        ----------
        w : ndarray of shape (d,)
        b : float
        alpha : ndarray of shape (n,) or None
            None: all the same.

        Returns
        -------
        begun : bool
            False where the direction has no margin.
        """
        problem, h = self.problem, self.h
        w, b, _ = primal_point(self.task, w, b)
        margins = self.y * (Plain.scores(self.patterns.X, w) + b)
        if problem.hard and not float(margins.min()) > 0.0:
            return False
        lack = np.maximum(1.0 - margins, 0.0)
        length = norm(problem.weights(w, b), problem.q)
        delta2 = problem.delta2(self.weights)
        own = np.divide(lack, delta2, out=np.zeros(self.n), where=delta2 > 0.0)
        length = float(np.hypot(length, float(own @ (delta2 * own)) ** 0.5))
        if not 0.0 < length < np.inf:
            return False
        scale = self.radius2  # R^2 times a margin of 1 / length, where the least margin is 1, is |w|^2
        if h.space.vector.is_combination():
            if alpha is None or not alpha.any():
                return False
            self._begin_in_direction(alpha, scale * length)
        else:
            h.space.vector.w[: self.patterns.d] = w * scale
            if self.rho:
                h.space.vector.w[-1] = b / self.rho * scale
            h.slack.set_coordinates(own * scale)
            refresh(h)
        if not self.rho:
            h.number[BIAS] = b * scale
        self.evaluate(w, b, np.ones(self.n) if alpha is None else alpha)
        return True

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
        self.best.update_primal(Primal(w, b), upper)

    def evaluate(self, w: np.ndarray, b: float, alpha: np.ndarray) -> None:
        """Evaluate a primal and a dual point, in any norm, and keep each where it is better."""
        problem = self.problem
        alpha, proved, size = dual_point(self.task, alpha)
        length = norm(problem.weights(w, b), problem.q)
        if not self._fixed_unit and size > 0.0 and length > 0.0:
            # the length of w means nothing: it is then that of the w of the dual point
            w, b = w * (size / length), b * (size / length)
        w, b, attained = primal_point(self.task, w, b)
        self.best.update_primal(Primal(w, b), attained)
        self.best.update_dual(alpha, proved)

    def _bounds(self) -> None:
        w, b = self._point()
        alpha = np.asarray(self.h.scale.to_dual(self.h.alpha))
        self.evaluate(w / self.unit, b / self.unit, alpha / self.unit)

    def _length2(self) -> float:
        return float(self.h.space.vector.norm2())

    def _point(self) -> tuple[np.ndarray, float]:
        """Return w without its constant coordinate, and the intercept, in the engine's units."""
        h, bias = self.h, float(self.h.number[BIAS])
        full = h.space.vector.w if self.problem.p == 2 else h.number[FACTOR] * h.space.vector.w
        if self.rho:
            return full[:-1], bias + self.rho * full[-1]
        return full, bias
