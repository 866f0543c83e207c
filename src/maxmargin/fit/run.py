"""The state of a solver on rows of data or of a kernel: its starting point, and the evaluation of its iterates.

On rows of a kernel w is kept as its scores, and kernel rows are computed for steps.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

import numpy as np

from ..algorithms.base import Algorithm
from ..algorithms.normalised.patterns import NormalisedProducts, NormalisedRows
from ..algorithms.programs import Decomposition
from ..data.rows import KernelPatterns, Patterns
from ..engine.state import BIAS, FACTOR, STOPPED
from ..numerics.progress import OutOfTime
from ..numerics.sums import Plain, norm
from ..solvers.decomposition import DualPoint, add_rows
from ..solvers.iterate import Point, Reached
from .best import Best, GramBest, Primal, dual_point, primal_point
from .report import GramTask, Task
from .state import State


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
    candidate : Reached or None
        The iterate of a batch solver, of which no bounds are computed.
    """

    patterns: Patterns
    task: Task
    best: Best

    def __init__(
        self,
        task: Task,
        algorithm: Algorithm,
        tol: float,
        rng: np.random.Generator,
        interrupted: Callable[[], bool],
    ) -> None:
        super().__init__(task, task.patterns, slice(None), algorithm, tol, rng, interrupted)
        self.best = Best(task.problem, task.patterns.d, task.patterns.n)
        self.candidate: Reached | None = None
        if task.start is not None:
            self._begin_at_duals(task.start)

    # the starting point

    def starting_point(self) -> Point | None:
        """Return the starting point of the task: the result of a fit that stops before its first round.

        It is the task's (w, b), or at p = 2 the w and the intercept of its dual variables.
        """
        task = self.task
        if task.point is not None:
            w, b = task.point
        elif task.start is not None and self.problem.euclidean:
            c = task.start * self.y
            w, b = Plain.combine(self.patterns.X, c), self.problem.rho**2 * float(c.sum())
        else:
            return None
        w, b, _ = primal_point(task, w, b)
        return Point(w, b, np.ones(self.n) if task.start is None else task.start)

    def point(self) -> Point:
        """Return the best points by the bounds of the solver."""
        return Point(*self.best.primal, self.best.alpha)

    def _set_duals(self, alpha: np.ndarray) -> None:
        vector, c = self.h.space.vector, alpha * self.y
        self.h.alpha[:] = alpha
        total = vector.w if self.problem.p == 2 else vector.theta
        total[: self.patterns.d] = Plain.combine(self.patterns.X, c)
        if self.rho:
            total[-1] = self.rho * c.sum()
        if self.problem.p != 2:
            vector.rescale(1.0)

    # for schedules

    def take(self, point: Any) -> None:
        """Make the point (w, b, alpha) of a batch solver the candidate; w gets its best multiple and intercept.

        A point that its solver estimates to be near is left as it is. The evaluation counts as a pass.
        """
        w, b, alpha = point[:3]
        w, alpha = w.astype(float, copy=False), alpha.astype(float, copy=False)  # of rows in float32
        near = isinstance(point, Reached) and point.near
        if not near:
            w, b, _ = primal_point(self.task, w, b)
        self.candidate = Reached(w, b, alpha, np.inf, near)
        self.presentations += self.n

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

        The primal point gets its best multiple and intercept.

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
        self.keep_primal(w, b, z)
        self.best.update_dual(alpha, proved)

    def keep_primal(self, w: np.ndarray, b: float, z: np.ndarray | None) -> None:
        """Keep (w, b) at its best multiple and intercept if it is better; z is w.x_i of every row, if it is known."""
        w, b, attained = primal_point(self.task, w, b, z)
        self.best.update_primal(Primal(w, b), attained)

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


MAX_CAP_EXCESS = 1e-12  # relative excess over its cap that a dual variable may have by rounding


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
    best: GramBest
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
        super().__init__(task, KernelPatterns(task.rows, used), used, algorithm, tol, rng, interrupted)
        self.best = GramBest(task.problem, task.y, task.weights, task.rows.diagonal)

    def batches(self, count: int, size: int) -> None:
        """Present `count` mini-batches of `size` rows each, drawn with replacement."""
        self.patterns.forget()
        super().batches(count, size)

    def take(self, point: tuple[DualPoint, DualPoint]) -> None:
        """Evaluate the primal and the dual point of a batch solver on the rows used, and keep each if it is better."""
        primal, dual = point
        self.keep_primal(
            primal.alpha, self.rho**2 * float(primal.alpha @ self.y), self._on_all_rows(primal.scores)
        )
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
        self.keep_primal(alpha, b, scores)
        alpha, scores = self._feasible(alpha, scores)
        self.best.evaluate_dual(self._on_all_rows(alpha), scores)

    def keep_primal(self, alpha: np.ndarray, b: float, scores: np.ndarray) -> None:
        """Keep w = sum alpha_i y_i phi(x_i) at its best intercept if it is better; scores are of all rows."""
        self.best.evaluate_primal(self._on_all_rows(alpha), scores)

    def _feasible(self, alpha: np.ndarray, scores: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return dual variables within their caps, balanced for a free intercept, and their scores.

        The scores of balanced dual variables cost a product with kernel rows. `GramBest.evaluate_dual` balances
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
        # `GramBest.evaluate_dual` then overestimates |w|^2 by little against `tol` (0.1: a round value; not tuned)
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
        """Load the kernel row for which a sweep has stopped, and those of a rule's pair.

        Return whether to resume the sweep: False if it has not stopped, or after an interrupt.
        """
        if not h.number[STOPPED]:
            return False
        if self.interrupted():
            h.number[STOPPED] = 0.0
            return False
        needed = [order[int(h.number[STOPPED]) - 1], *(h.row_of[h.pair] if h.row_of.size else ())]
        self.patterns.fetch(np.unique(h.space.rows[np.array(needed, np.uint32)]))
        return True


def point_of_class_means(task: Task) -> Point:
    """Return a point for a fit that ends without one: dual variables alike in each class, and their w."""
    problem, weights = task.problem, task.weights
    alpha = np.ones(task.y.size) if problem.hard else weights
    if problem.free:
        balanced = problem.balanced(task.y, alpha)
        alpha = alpha if balanced is None else balanced
    alpha, _, length = dual_point(task, alpha)
    w = Plain.combine(task.patterns.X, alpha * task.y)
    w *= length / (norm(w, problem.q) or 1.0)
    return Point(*primal_point(task, w, problem.rho**2 * float(alpha @ task.y))[:2], alpha)
