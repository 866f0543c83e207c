"""The state of a solver on rows of data: its starting point, and the evaluation of its iterates in any norm."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from math import exp, log
from typing import Any

import numpy as np
from scipy.optimize import minimize_scalar

from ..algorithms.base import Algorithm
from ..algorithms.batch.iterate import Reached
from ..algorithms.normalised.patterns import NormalisedRows
from ..algorithms.online.dual_coordinate_descent import DualCoordinateDescent
from ..data.rows import Patterns
from ..data.task import Task
from ..engine.state import BIAS, FACTOR, TINY, Motion, refresh
from ..numerics.norms import norm
from ..numerics.stop_check import OutOfTime, require_time
from ..numerics.sums import Plain
from .extrapolation import DEPTH, Extrapolation
from .state import State
from .tracker import Primal, Tracker, dual_point, primal_point

# Passes over the rows, each followed by an evaluation, which shifts a free intercept. The optimum in another norm is
# far from that at p = 2: more passes delay the first iterate of the algorithm more than they save. A round value, not
# tuned.
PASSES = 3
# The least multiple of w that is tried has the largest score MIN_MULTIPLE; the largest one has the penalty of the loss
# at w = 0, which no better w exceeds. With a larger least multiple the best one may be missed where C is large.
MIN_MULTIPLE = 1e-6
# Relative accuracy of the multiple, near which the objective is flat; a round value, not tuned.
MULTIPLE_ACCURACY = 0.02


class Run(State):
    """The state of a solver on rows of data.

    Parameters
    ----------
    task : Task
        The presolved task.
    algorithm : Algorithm
    tol : float
    rng : Generator
    interrupted : callable

    Attributes
    ----------
    candidate : (ndarray of shape (d,), float, ndarray of shape (n,)) or None
        An iterate (w, b, alpha) whose gap the solver estimates to be within `tol`; no bounds of it are computed yet.
    """

    patterns: Patterns
    task: Task
    best: Tracker

    def __init__(
        self,
        task: Task,
        algorithm: Algorithm,
        tol: float,
        rng: np.random.Generator,
        interrupted: Callable[[], bool],
    ) -> None:
        super().__init__(task, task.patterns, slice(None), algorithm, tol, rng, interrupted)
        self.best = Tracker(task.problem, task.patterns.d, task.patterns.n)
        plan = self._plan
        self._extrapolation = Extrapolation() if plan.real else None
        self.candidate: tuple[np.ndarray, float, np.ndarray] | None = None
        if task.start is not None:
            self._begin_at_duals(task.start)
        if task.point is not None and algorithm.motion is Motion.SUBGRADIENT:
            self.starts_at_point = self._begin_at_primal(*task.point, task.start)

    # the starting point

    def evaluate_start(self) -> None:
        """Evaluate the starting point of the task: it is the result of a fit that stops before its first round.

        The starting point is the task's (w, b), or at p = 2 the w and the intercept of its dual variables.
        """
        task = self.task
        if task.point is not None:
            w, b = task.point
        elif task.start is not None and self.problem.euclidean:
            c = task.start * self.y
            w, b = Plain.combine(self.patterns.X, c), self.problem.rho**2 * float(c.sum())
        else:
            return
        self.evaluate(w, b, np.ones(self.n) if task.start is None else task.start)

    def evaluate_euclidean_point(self) -> None:
        """Keep the bounds of an approximate solution at p = 2, for a problem with another norm.

        It restricts the optimum from both sides, so that a fit which ends early has a finite gap. w is taken at its
        best multiple and intercept.
        """
        task, problem = self.task, self.problem
        euclidean = replace(task, problem=replace(problem, p=2.0, power=2))
        other = Run(euclidean, DualCoordinateDescent(), self.tol, self.rng, self.interrupted)
        for _ in range(PASSES):
            other.full_passes(1)
            other.evaluate_iterate()
            if self.interrupted():
                break
        self.presentations += other.presentations
        (w, b), alpha = other.best.primal, other.best.alpha
        self.best.update_dual(*dual_point(task, alpha)[:2])
        length = norm(problem.weights(w, b), problem.q)
        if not length > 0.0:
            return
        z = Plain.scores(task.patterns.X, w)

        def evaluate_multiple(log_k: float) -> float:
            k = exp(log_k)
            w_k, b_k, bound = primal_point(task, k * w, k * b, k * z)
            self.best.update_primal(Primal(w_k, b_k), bound)
            if not problem.hard:
                require_time(self.interrupted)
            return bound

        if problem.hard:
            evaluate_multiple(0.0)
            return
        losses = problem.C * float(self.weights.sum())
        longest = (losses if problem.power == 1 else (2.0 * losses) ** 0.5) / length
        least = MIN_MULTIPLE * min(longest, 1.0 / max(float(np.abs(z).max()), TINY))
        if not 0.0 < least < longest < float("inf"):
            return
        with suppress(OutOfTime):
            minimize_scalar(
                evaluate_multiple,
                bounds=(log(least), log(longest)),
                method="bounded",
                options={"xatol": MULTIPLE_ACCURACY},
            )

    def _set_duals(self, alpha: np.ndarray) -> None:
        vector, c = self.h.space.vector, alpha * self.y
        self.h.alpha[:] = alpha
        total = vector.w if self.problem.p == 2 else vector.theta
        total[: self.patterns.d] = Plain.combine(self.patterns.X, c)
        if self.rho:
            total[-1] = self.rho * c.sum()
        if self.problem.p != 2:
            vector.rescale(1.0)

    def _begin_at_primal(self, w: np.ndarray, b: float, alpha: np.ndarray | None) -> bool:
        """Set the engine to the direction of (w, b), with the length R^2 / margin.

        This length is the bound on the final length of the Perceptron's w. The slack coordinates are set such that
        that of row i adds max(1 - y_i (w.x_i + b), 0) to its score: the smallest score is then one. If the engine keeps
        w as a combination of patterns, its w is computed from `alpha` instead, with the same length.

        Parameters
        ----------
        w : ndarray of shape (d,)
        b : float
        alpha : ndarray of shape (n,) or None
            Dual variables that belong to w.

        Returns
        -------
        starts_at_point : bool
            Whether the engine was set; not if (w, b) has no positive margin, or if `alpha` is needed but not given.
        """
        problem, h = self.problem, self.h
        w, b, _ = primal_point(self.task, w, b)  # of a hard margin: the multiple with smallest margin one
        margins = self.y * (Plain.scores(self.patterns.X, w) + b)
        if problem.hard and not float(margins.min()) > 0.0:
            return False
        shortfall = np.maximum(1.0 - margins, 0.0)
        length = norm(problem.weights(w, b), problem.q)
        delta2 = problem.delta2(self.weights)
        # coordinates v_i with delta_i^2 v_i = shortfall_i; they add sum delta_i^2 v_i^2 to the squared length
        slack = np.divide(shortfall, delta2, out=np.zeros(self.n), where=delta2 > 0.0)
        length = float(np.hypot(length, float(slack @ (delta2 * slack)) ** 0.5))
        if not 0.0 < length < np.inf:
            return False
        # the smallest score is 1, so that the margin is 1 / length, and R^2 / margin = R^2 length
        scale = self.radius2
        if h.space.vector.is_combination():
            if alpha is None or not alpha.any():
                return False
            self._begin_in_direction(alpha, scale * length)
        else:
            h.space.vector.w[: self.patterns.d] = w * scale
            if self.rho:
                h.space.vector.w[-1] = b / self.rho * scale
            h.slack.set_coordinates(slack * scale)
            refresh(h)
        if not self.rho:
            h.number[BIAS] = b * scale
        return True

    # for schedules

    def repeat(self, h: Any, rows: np.ndarray, passes: int) -> None:
        """Sweep these rows of h until none makes a step, at most `passes` times; end with an extrapolation if due.

        The sweeps of the extrapolation (`DEPTH`) count as passes.
        """
        extrapolate = self._extrapolation
        due = extrapolate is not None and extrapolate.due(rows.size)
        steps = self._present(h, rows, passes - DEPTH if due else passes)
        if extrapolate is not None and due and steps:
            extrapolate(self, h, rows)

    def take(self, point: Any) -> None:
        """Evaluate the point (w, b, alpha) of a batch solver; one that it estimates to be near is the candidate.

        The evaluation counts as a pass; to it are added the passes and steps that the point states.
        """
        w, b, alpha = point[:3]
        w, alpha = w.astype(float, copy=False), alpha.astype(float, copy=False)  # of rows in float32
        if isinstance(point, Reached) and point.near:
            self.candidate = w, b, alpha  # to be certified, without running bounds
        else:
            self.evaluate(w, b, alpha)
        self.presentations += self.n * (1 + getattr(point, "passes", 0))
        self.steps += getattr(point, "steps", 0)

    def normalised_patterns(self) -> NormalisedRows:
        """Return the rows divided by their lengths, with the constant coordinate."""
        return NormalisedRows(self.patterns.X, self.y, self.rho)

    def evaluate(
        self,
        w: np.ndarray,
        b: float,
        alpha: np.ndarray,
        z: np.ndarray | None = None,
        v: np.ndarray | None = None,
    ) -> None:
        """Compute the bounds of a primal and a dual point, in any norm, and keep each point whose bound is better.

        The primal point gets its best multiple and intercept. It is also recorded as it is, if it may be the result.

        Parameters
        ----------
        w : ndarray of shape (d,)
        b : float
        alpha : ndarray of shape (n,), non-negative
            In the units of the task.
        z, v : ndarray of shape (n,), ndarray of shape (d,) or (d + 1,), default=None
            w.x_i of every row, and sum alpha_i y_i x_i with the constant coordinate, where they are known.
        """
        problem = self.problem
        alpha, proved, size = dual_point(self.task, alpha, v)
        length = norm(problem.weights(w, b), problem.q)
        if not self._fixed_unit and size > 0.0 and length > 0.0:
            # the rule does not fix the length of w: set it to the length of the dual point's w
            ratio = size / length
            w, b, z = w * ratio, b * ratio, None if z is None else z * ratio
        if self.best.last:
            own, intercept, attained = primal_point(self.task, w, b, z, as_given=True)
            self.best.set_last(Primal(own, intercept), attained)
        w, b, attained = primal_point(self.task, w, b, z)
        self.best.update_primal(Primal(w, b), attained)
        self.best.update_dual(alpha, proved)

    def _bounds(self) -> None:
        """Evaluate the engine's w and dual variables; w.x_i is computed from the scores of the rows."""
        h, unit = self.h, self.unit
        w, b = self._point()
        z = (self.y * (self.scores - h.slack.extended_score(0.0, h.ids, h.scale)) - b) / unit
        v = h.space.vector.w / unit if self.problem.p == 2 and h.space.vector.is_combination() else None
        if v is not None and self._rest2:
            v[-1] *= self.problem.rho / self.rho
        alpha = np.asarray(h.scale.to_dual(h.alpha)) / unit
        if self.problem.first_power:  # |v| <= 1
            alpha, v = alpha / self._multiplier, None
        self.evaluate(w / unit, b / unit, alpha, z, v)

    def _length2(self) -> float:
        return float(self.h.space.vector.norm2())

    def _point(self) -> tuple[np.ndarray, float]:
        """Return w without its constant coordinate, and the intercept, in the engine's units."""
        h, bias = self.h, float(self.h.number[BIAS])
        full = h.space.vector.w if self.problem.p == 2 else h.number[FACTOR] * h.space.vector.w
        return (full[:-1], bias + self.rho * full[-1]) if self.rho else (full, bias)
