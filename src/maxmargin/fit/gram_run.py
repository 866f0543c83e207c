"""The state of a solver on rows of a kernel: w is kept as its scores, and kernel rows are computed for steps."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

import numpy as np

from ..algorithms.base import Algorithm
from ..algorithms.batch.decomposition import Decomposition, DualPoint
from ..algorithms.batch.kernel_rows import add_rows
from ..algorithms.normalised.patterns import NormalisedProducts
from ..data.rows import KernelPatterns
from ..data.task import GramTask
from ..engine.state import BIAS, STOPPED
from ..engine.sweep import score_rows
from ..numerics.stop_check import OutOfTime
from .state import State
from .tracker import GramTracker

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
        if not h.stopped():
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
