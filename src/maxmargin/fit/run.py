"""The state of a solver on rows of data or of a kernel: its starting point, and the evaluation of its iterates.

On rows of a kernel w is kept as its scores, and kernel rows are computed for steps. Repeated sweeps of dual coordinate
descent are a linear iteration as long as no dual variable reaches a bound: Anderson extrapolation then steps to an
affine combination of the last iterates, with an exact line search on the dual objective.

References
----------
Q. Bertrand, M. Massias, "Anderson acceleration of coordinate descent", AISTATS 2021.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from math import exp, isfinite, log
from typing import Any, ClassVar

import numpy as np
from scipy.optimize import minimize_scalar

from ..algorithms.base import Algorithm
from ..algorithms.batch.decomposition import Decomposition, DualPoint, add_rows
from ..algorithms.normalised.patterns import NormalisedProducts, NormalisedRows
from ..algorithms.online.dual_coordinate_descent import DualCoordinateDescent
from ..data.rows import KernelPatterns, Patterns
from ..data.task import GramTask, Task
from ..engine.state import BIAS, FACTOR, STOPPED, TINY, Motion, refresh
from ..engine.sweep import score_rows, set_duals
from ..numerics.norms import norm
from ..numerics.stop_check import OutOfTime, require_time
from ..numerics.sums import Plain
from ..solvers.iterate import Reached
from .state import State
from .tracker import GramTracker, Primal, Tracker, dual_point, primal_point

# Number of iterates in the combination, as in the paper. More come closer to the limit, but cost as many sweeps.
DEPTH = 5
# Smallest number of rows with an extrapolation: it costs a linear system and two more passes over the rows, on fewer
# rows more than it saves. Chosen on the data sets of benchmarks.before_after.
MIN_ROWS = 20
# A step that the line search multiplies by t < MIN_STEP has not paid for its passes: 1 extrapolation is left out, then
# 3, 7 and so on up to MAX_LEFT_OUT while steps remain short. A larger MIN_STEP, and a larger MAX_LEFT_OUT, make fewer
# extrapolations. Chosen on the data sets of benchmarks.before_after.
MIN_STEP, MAX_LEFT_OUT = 0.5, 31
# RIDGE times the trace of the residuals' Gram matrix is added to its diagonal: residuals of converged sweeps are nearly
# linearly dependent. A larger value brings the combination closer to the mean of the iterates; with a smaller one its
# coefficients may be rounding errors. Chosen on the data sets of benchmarks.before_after.
RIDGE = 1e-10


class Extrapolation:
    """Extrapolation after repeated sweeps, with a count of the extrapolations to leave out."""

    def __init__(self) -> None:
        # extrapolations still to leave out, and the number left out after the last short step
        self._remaining = self._left_out = 0

    def due(self, size: int) -> bool:
        """Return whether to extrapolate after the next sweeps over `size` rows; count down the number to leave out."""
        if size < MIN_ROWS:
            return False
        self._remaining -= 1
        return self._remaining < 0

    def __call__(self, run: Run, h: Any, rows: np.ndarray) -> None:
        """Sweep these rows of h `DEPTH` times, then extrapolate with a line search.

        The new point is the one with the largest dual objective between the last iterate and the combination.
        Nothing follows the sweeps if they are interrupted, if the last makes no step, or if there is no combination.

        Parameters
        ----------
        run : Run
        h : Weight
            The engine's state, which may be packed.
        rows : ndarray of int
            Rows of h, in the order of the sweeps.
        """
        size, ids = rows.size, h.ids[rows]
        iterates = np.empty((DEPTH + 1, size))
        iterates[0] = h.alpha[ids]
        for k in range(DEPTH):
            if run.sweep(h, rows) == 0 or run.interrupted():
                return
            iterates[k + 1] = h.alpha[ids]
        target = _combination(iterates)
        if target is None:
            return
        last, w = iterates[-1], h.space.vector.w
        before = w.copy()
        set_duals(h, rows, target)
        run.presentations += size
        step, dw = h.alpha[ids] - last, w - before
        # at last + t * step the dual objective, in units of unit^2, has grown by t slope - t^2 curvature / 2
        slope = run.unit * step.sum() - before @ dw - h.number[BIAS] * (h.y[rows] @ step)
        curvature = dw @ dw
        delta2 = getattr(h.slack, "delta2", None)
        if delta2 is not None:  # slack coordinates: sum delta_i^2 alpha_i^2 is part of |w|^2
            pull = delta2[ids] * step
            slope, curvature = slope - pull @ last, curvature + pull @ step
        t = min(max(slope / curvature, 0.0), 1.0) if curvature > 0.0 else 0.0
        if t < 1.0:
            w[:] = before + t * dw
            h.alpha[ids] = last + t * step
        # 0, 1, 3, 7, ... extrapolations are left out while steps remain short
        self._left_out = 0 if t >= MIN_STEP else min(2 * self._left_out + 1, MAX_LEFT_OUT)
        self._remaining = self._left_out


def _combination(iterates: np.ndarray) -> np.ndarray | None:
    """Return the affine combination of iterates with the smallest residual; None if it is not finite.

    The residuals are r_k = x_k - x_{k-1}, and G = R R' their Gram matrix. The coefficients c with sum c_k = 1 that
    minimise |sum c_k r_k| are the multiple of G^-1 1 with sum one.

    Parameters
    ----------
    iterates : ndarray of shape (DEPTH + 1, size)
        Dual variables before the first sweep and after each.
    """
    residuals = iterates[1:] - iterates[:-1]
    G = residuals @ residuals.T
    size = float(G.trace())
    if not (isfinite(size) and size > 0.0):
        return None
    G /= size
    G.flat[:: DEPTH + 1] += RIDGE
    c = np.linalg.solve(G, np.ones(DEPTH))
    total = float(c.sum())
    return (c / total) @ iterates[1:] if isfinite(total) and total != 0.0 else None


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


# Largest and smallest number of kernel rows that are computed in one block. A block costs less than its rows one by
# one, but w changes before the later ones are used, and some of them will make no step then. Chosen on the data sets of
# benchmarks.before_after.
MAX_BLOCK, MIN_BLOCK = 32, 16
MAX_CAP_EXCESS = 1e-12  # relative excess over its cap that a dual variable may have by rounding
# Largest number of rows that are tested for a violation when a block is chosen: each test is a call in Python. A
# smaller number leaves more blocks to be filled by score alone. Chosen on the data sets of
# benchmarks.before_after.
MAX_TESTED = 2048


class GramRun(State):
    """The state of a solver between two rounds on a kernel problem, where w is represented by its scores.

    The engine's vector has n + 1 entries: the scores of all rows of the task, and the constant coordinate of w.

    Parameters
    ----------
    task : GramTask
        Its `KernelRows` may be used by other solvers between two rounds, but not during one.
    algorithm : Algorithm or Decomposition
        One of `KERNEL_ALGORITHMS`.
    tol : float
    rng : Generator
    interrupted : callable
    """

    patterns: KernelPatterns
    task: GramTask
    best: GramTracker
    # A row visit reads one number; an evaluation visits all rows and may compute kernel rows. A smaller value costs
    # more evaluations, a larger one delays the end. Chosen on the data sets of benchmarks.before_after.
    passes_per_evaluation: ClassVar[int] = 50

    def __init__(
        self,
        task: GramTask,
        algorithm: Algorithm | Decomposition,
        tol: float,
        rng: np.random.Generator,
        interrupted: Callable[[], bool],
    ) -> None:
        used = np.flatnonzero(task.weights > 0.0)
        self._seen = np.empty(used.size)
        super().__init__(task, KernelPatterns(task.rows, used), used, algorithm, tol, rng, interrupted)
        self.best = GramTracker(task.problem, task.y, task.weights, task.rows.diagonal)
        # decomposition reads the starting point of the task itself
        if task.start is not None and not isinstance(algorithm, Decomposition):
            self._begin_at_duals(task.start)

    def batches(self, count: int, size: int) -> None:
        """Present `count` mini-batches of `size` rows each, drawn with replacement."""
        self.patterns.forget()
        super().batches(count, size)

    def take(self, point: tuple[DualPoint, DualPoint]) -> None:
        """Evaluate the primal and the dual point of a batch solver on the rows used, and keep each if it is better."""
        primal, dual = point
        alpha, scores = self._on_all_rows(primal.alpha), self._on_all_rows(primal.scores)
        self.best.evaluate_primal(alpha, scores, own=self.rho**2 * float(primal.alpha @ self.y))
        self.best.evaluate_dual(self._on_all_rows(dual.alpha), self._on_all_rows(dual.scores))
        self.presentations += self.n

    def normalised_patterns(self) -> NormalisedProducts:
        """Return the patterns divided by their lengths, with the constant coordinate."""
        used = self.patterns.used
        return NormalisedProducts(
            lambda c: self._product(c, self.interrupted)[used], self.patterns.square, self.y, self.rho
        )

    def _set_duals(self, alpha: np.ndarray) -> None:
        self.h.alpha[:] = alpha
        w = self.h.space.vector.w
        w[:-1] = self._product(alpha * self.y)
        w[-1] = self.rho * float(alpha @ self.y)

    # bounds

    def _bounds(self) -> None:
        """Compute the bounds at the current scores and dual variables, and keep better ones.

        If the rule does not fix the unit of a soft margin, it is set to |w|^2 / sum alpha, slack coordinates included:
        alpha / unit is then the multiple of alpha with the largest dual objective.
        """
        h = self.h
        if not (self.problem.hard or self._fixed_unit) and h.alpha.any():
            length2 = self._length2() + float(self.problem.delta2(self.weights) @ (h.alpha * h.alpha))
            self.unit = length2 / float(h.alpha.sum())
        alpha, scores = h.alpha / self.unit, h.space.vector.w[:-1] / self.unit
        b = (float(h.number[BIAS]) + self.rho * float(h.space.vector.w[-1])) / self.unit
        self.best.evaluate_primal(self._on_all_rows(alpha), scores, own=b)
        alpha, scores = self._feasible(alpha, scores)
        self.best.evaluate_dual(self._on_all_rows(alpha), scores)

    def _feasible(self, alpha: np.ndarray, scores: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return dual variables within their caps, balanced for a free intercept, and their scores.

        The scores of balanced dual variables cost a product with kernel rows. `GramTracker.evaluate_dual` balances
        without the product, from a bound on the change of |w|. Dual variables are not balanced here where that bound is
        small against `tol`, or where the product would take more kernel rows than are kept.

        Parameters
        ----------
        alpha : ndarray of shape (n_used,)
            Dual variables of the rows used, in the units of the task.
        scores : ndarray of shape (n,)
            Scores of all rows.

        Returns
        -------
        alpha : ndarray of shape (n_used,)
        scores : ndarray of shape (n,)
        """
        problem = self.problem
        caps = problem.caps(self.weights)
        within = bool((alpha <= caps * (1.0 + MAX_CAP_EXCESS)).all())
        capped = alpha if within else np.minimum(alpha, caps)
        balanced = problem.balanced(self.y, capped) if problem.free else capped
        if balanced is None:
            return np.zeros_like(alpha), np.zeros_like(scores)
        cut = alpha - balanced
        u = float(cut @ np.sqrt(self.patterns.square))  # |sum cut_i y_i x_i| is at most this
        # `GramTracker.evaluate_dual` then overestimates |w|^2 by little against `tol` (0.1: a round value; not tuned)
        if within and u * u <= 0.1 * self.tol * self._length2() / self.unit / self.unit:
            return alpha, scores
        if within and self.shifts and np.count_nonzero(cut) > self.patterns.rows.capacity:
            # the product costs too much, and the shifts of the intercept balance the classes in later rounds
            return alpha, scores
        return balanced, scores - self._product(cut * self.y)

    def _length2(self) -> float:
        """Return |w|^2 = sum alpha_i y_i f_i plus the square of the constant coordinate."""
        w = self.h.space.vector.w
        return max(float((self.h.alpha * self.y) @ w[self.patterns.used]), 0.0) + float(w[-1]) ** 2

    # rows of the kernel

    def _product(self, c: np.ndarray, interrupted: Callable[[], bool] = lambda: False) -> np.ndarray:
        """Return sum_i c_i k(x_i, x_j) over the rows i used, for every row j of the task.

        OutOfTime is raised if the stop check, called between blocks of rows, is true.
        """
        patterns, out = self.patterns, np.zeros(self.patterns.rows.n)
        patterns.forget()
        nonzero, size = np.flatnonzero(c), max(1, patterns.rows.capacity // 2)
        for first in range(0, nonzero.size, size):
            if first and interrupted():
                raise OutOfTime
            block = nonzero[first : first + size]
            add_rows(patterns.rows.rows, patterns.fetch(patterns.used[block]), c[block], out)
        return out

    @property
    def rows_per_call(self) -> int:
        """All rows: a sweep that stops at a missing kernel row is resumed, and has to be whole."""
        return self.n

    def _sweeps(self, rule: Any, h: Any, order: np.ndarray, passes: int) -> tuple[int, int, int]:
        self.patterns.forget()
        return super()._sweeps(rule, h, order, passes)

    def _set_first_w(self, order: np.ndarray) -> None:
        """Load the kernel rows that rules are initialised with, and set the first w.

        These are, in this order of rows, the first of each class and the first whose pattern is not zero.
        """
        firsts = [
            order[self.y[order] > 0.0][:1],
            order[self.y[order] < 0.0][:1],
            order[self.h.square[order] > 0.0][:1],
        ]
        self.patterns.forget()
        self.patterns.fetch(self.patterns.used[np.unique(np.concatenate(firsts))])
        super()._set_first_w(order)

    def _load_missing_rows(self, rule: Any, h: Any, order: np.ndarray) -> bool:
        """Load the kernel row for which a sweep has stopped, the rows of a rule that keeps a pair, and violating rows.

        After a step to a nearest point few of the rows that violate the rule now do so at their visit. When the cache
        is full they would replace rows in use, and are not loaded.

        Return whether to resume the sweep: False if it has not stopped, or after an interrupt.
        """
        if not h.number[STOPPED]:
            return False
        if self.interrupted():
            h.number[STOPPED] = 0.0
            return False
        place = int(h.number[STOPPED]) - 1
        needed = [order[place], *(h.row_of[h.pair] if h.row_of.size else ())]
        most = max(min(MAX_BLOCK, self.patterns.rows.capacity // 2), len(needed))
        full = self.patterns.rows.computed >= self.patterns.rows.capacity
        others = (
            [] if full and self.algorithm.to_nearest else self._violating_rows(rule, h, order[place:], most)
        )
        wanted = dict.fromkeys(h.space.rows[np.array([*needed, *others], np.uint32)].tolist())
        self.patterns.fetch(np.array(list(wanted)[:most]))
        return True

    def _violating_rows(self, rule: Any, h: Any, order: np.ndarray, most: int) -> list[int]:
        """Return rows whose kernel row is not loaded and that violate the rule at the current scores.

        The rows with the smallest scores and the rows with positive dual variables are tested. Of the violating rows
        the first `most` in `order` are returned: w changes least before their visit. If they are fewer than
        `MIN_BLOCK`, rows with the smallest scores are added.
        """
        order = order[h.space.places[h.space.rows[order]] < 0]
        score_rows(h, order, self._seen)
        limit, scores = rule.threshold(h), self._seen
        lowest = np.argsort(scores[order], kind="stable")[:MAX_TESTED]
        tested = np.union1d(lowest, np.flatnonzero(h.alpha[h.ids[order]] > 0.0)[:MAX_TESTED])
        found = [i for i in order[tested].tolist() if rule.wrong(h, i, scores[i], limit)]
        return found[:most] + order[lowest[: max(MIN_BLOCK - len(found), 0)]].tolist()
