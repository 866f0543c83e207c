"""One binary kernel problem under way: the engine on scores, and rows of the kernel as steps ask for them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

import numpy as np

from ..algorithms.base import Algorithm
from ..algorithms.batch.decomposition import Decomposition
from ..algorithms.batch.kernel_rows import add_rows
from ..data.rows import KernelPatterns
from ..data.task import GramTask
from ..engine.order import Source
from ..engine.state import STOPPED, TIME, refresh
from ..engine.sweep import score_rows
from .state import State
from .tracker import GramTracker

# Most and fewest rows of the kernel that are computed at once: one block is cheaper than its rows one by one, but w
# moves meanwhile, so that of many rows that violate the rule now few will make a step.
TOGETHER, LEAST = 32, 16
ROUNDING = 1e-12  # share of its cap by which a dual variable may exceed it
TRIED = 2048  # most rows that are tested for a step, each at the price of a comparison in Python


class GramRun(State):
    """The state of a solver between two rounds, where w is known by its scores.

    Parameters
    ----------
    task : GramTask
        Its rows of the kernel may serve others between two rounds, but not during one.
    algorithm : Algorithm or Decomposition
        One of `KERNEL_ALGORITHMS`.
    tol : float
    rng : Generator or LazyGenerator
    interrupted : callable
    """

    patterns: KernelPatterns
    task: GramTask
    best: GramTracker
    per_look: ClassVar[int] = 50  # to present a row is to look up a number

    def __init__(
        self,
        task: GramTask,
        algorithm: Algorithm | Decomposition,
        tol: float,
        rng: Source,
        interrupted: Callable[[], bool],
    ) -> None:
        used = np.flatnonzero(task.weights > 0.0)
        self._seen = np.empty(used.size)
        super().__init__(task, KernelPatterns(task.rows, used), used, algorithm, tol, rng, interrupted)
        self.best = GramTracker(task.problem, task.y, task.weights, task.rows.diagonal)
        # decomposition begins at the start of its task itself
        if task.start is None or isinstance(algorithm, Decomposition):
            return
        if algorithm.convergent:
            self._begin_at(np.clip(task.start[used] * self.unit, 0.0, self.h.cap))
        elif self._plan.clock is not None and task.start[used].any():
            self._begin_at(task.start[used] / float(task.start[used].max()))
            refresh(self.h)
            if self.h.norm2() > 0.0:
                self.h.shrink(self.h.norm2() ** -0.5)
                refresh(self.h)
            self.h.number[TIME] = self._plan.clock(self.h.alpha, np.sqrt(self.h.square))

    @property
    def finite(self) -> bool:
        """Whether the best dual variables are finite."""
        return bool(np.isfinite(self.best.alpha).all())

    def look_for_zero_rows(self) -> None:
        """Prove that a hard margin without intercept has no separator where a pattern has length 0."""
        empty = self.patterns.square == 0.0
        if self.problem.intercept == "none" and empty.any():
            self.best.evaluate_dual(self._every(np.where(empty, 1.0, 0.0)), np.zeros(self.patterns.rows.n))

    def batches(self, count: int, size: int) -> None:
        """Present this many mini-batches, drawn with replacement."""
        self.patterns.forget()
        super().batches(count, size)

    def _begin_at(self, alpha: np.ndarray) -> None:
        """Begin with these dual variables, and the scores that they make."""
        h = self.h
        h.alpha[:] = alpha
        w = h.space.vector.w
        w[:-1] = self._product(alpha * self.y)
        w[-1] = self.rho * float(alpha @ self.y)

    # bounds

    def _bounds(self) -> None:
        h = self.h
        if not (self.problem.hard or self._fixed_unit) and h.alpha.any():
            # the unit in which the dual variables are at their best multiple
            length2 = self._length2() + float(self.problem.delta2(self.weights) @ (h.alpha * h.alpha))
            self.unit = length2 / float(h.alpha.sum())
        alpha, scores = h.alpha / self.unit, h.space.vector.w[:-1] / self.unit
        self.best.evaluate_primal(self._every(alpha), scores)
        alpha, scores = self._feasible(alpha, scores)
        self.best.evaluate_dual(self._every(alpha), scores)

    def _feasible(self, alpha: np.ndarray, scores: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return dual variables within their caps, balanced where the tracker would lose by doing that, with scores."""
        problem = self.problem
        caps = problem.caps(self.weights)
        within = bool((alpha <= caps * (1.0 + ROUNDING)).all())
        capped = alpha if within else np.minimum(alpha, caps)
        balanced = problem.balanced(self.y, capped) if problem.free else capped
        if balanced is None:
            return np.zeros_like(alpha), np.zeros_like(scores)
        cut = alpha - balanced
        size = float(cut @ np.sqrt(self.patterns.square))
        if within and size * size <= 0.1 * self.tol * self._length2() / self.unit / self.unit:
            return alpha, scores
        if within and self.shifts and np.count_nonzero(cut) > self.patterns.rows.most:
            # the product costs too much, and a free intercept balances the classes by itself
            return alpha, scores
        return balanced, scores - self._product(cut * self.y)

    def _length2(self) -> float:
        w = self.h.space.vector.w
        return max(float((self.h.alpha * self.y) @ w[self.patterns.used]), 0.0) + float(w[-1]) ** 2

    def _every(self, alpha: np.ndarray) -> np.ndarray:
        """Return dual variables of all rows, 0 for those of weight 0."""
        out = np.zeros(self.patterns.rows.n)
        out[self.patterns.used] = alpha
        return out

    # rows of the kernel

    def _product(self, c: np.ndarray) -> np.ndarray:
        """Return sum_i c_i k(x_i, x_j) for every row j."""
        patterns, out = self.patterns, np.zeros(self.patterns.rows.n)
        patterns.forget()
        places, block = np.flatnonzero(c), max(1, patterns.rows.most // 2)
        for first in range(0, places.size, block):
            some = places[first : first + block]
            add_rows(patterns.rows.rows, patterns.fetch(patterns.used[some]), c[some], out)
        return out

    def _sweeps(self, rule: Any, h: Any, order: np.ndarray, passes: int) -> tuple[int, int, int]:
        self.patterns.forget()
        return super()._sweeps(rule, h, order, passes)

    def _open(self, order: np.ndarray) -> None:
        """Fetch the rows that rules begin with: the first of each class, and the first that is not of length 0."""
        firsts = [
            order[self.y[order] > 0.0][:1],
            order[self.y[order] < 0.0][:1],
            order[self.h.square[order] > 0.0][:1],
        ]
        self.patterns.forget()
        self.patterns.fetch(self.patterns.used[np.unique(np.concatenate(firsts))])
        super()._open(order)

    def _served(self, rule: Any, h: Any, order: np.ndarray) -> bool:
        """Fetch the row that a sweep has stopped for, and others that violate the rule; return whether to resume."""
        if not h.stopped():
            return False
        if self.interrupted():
            h.number[STOPPED] = 0.0
            return False
        place = int(h.number[STOPPED]) - 1
        needed = [order[place], *(h.row_of[h.pair] if h.row_of.size else ())]
        most = max(min(TOGETHER, self.patterns.rows.most // 2), len(needed))
        others = self._wrong(rule, h, order[place:], most)
        wanted = dict.fromkeys(h.space.rows[np.array([*needed, *others], np.uint32)].tolist())
        self.patterns.fetch(np.array(list(wanted)[:most]))
        return True

    def _wrong(self, rule: Any, h: Any, order: np.ndarray, most: int) -> list[int]:
        """Return rows without a kernel row at hand on which the rule would step next, by the present scores.

        The first in order come first, as w moves least until then; where there are few, rows of the smallest scores
        fill up.
        """
        order = order[h.space.places[h.space.rows[order]] < 0]
        score_rows(h, order, self._seen)
        limit, seen = rule.threshold(h), self._seen
        low = np.argsort(seen[order], kind="stable")[:TRIED]
        places = np.union1d(low, np.flatnonzero(h.alpha[h.ids[order]] > 0.0)[:TRIED])
        found = [i for i in order[places].tolist() if rule.wrong(h, i, seen[i], limit)]
        return found[:most] + order[low[: max(LEAST - len(found), 0)]].tolist()
