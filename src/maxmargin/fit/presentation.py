"""The presentation of rows to a rule: orders, passes and sweeps, with their counts and the checks of the deadline."""

from __future__ import annotations

import sys
from abc import ABC
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from ..engine.order import shuffled, strides
from ..engine.state import Motion
from ..engine.sweep import batches, begin, repeat, shrinking_sweeps

if TYPE_CHECKING:
    from ..data.rows import PackedRows

# Entries visited between two checks of the deadline: fewer cost more calls, more delay an interrupt.
ENTRIES_PER_CALL = 1e7
# Least time of a row visit, relative to an entry at about 1 ns: its numbers come from several places of memory (0.1 to
# 0.2 us on 1,000,000 x 5).
VISIT_COST = 100
# Time of a column in a step that computes powers of all of w, relative to an entry at p = 2: about 50 ns and 1 ns.
POWER_COST = 50
# Largest number of row visits between two evaluations, unless one pass or one evaluation costs more. More visits delay
# the end of a fit; fewer cost more evaluations.
MAX_VISITS = 50_000
# The same for visits of long rows, or with powers: entries that cost as much, at about 1 ns each 0.3 s. A round value,
# not tuned: fits on 7,000 and 20,000 columns take as long as without this limit.
MAX_ENTRIES = 3e8


class Presentation(ABC):
    """The presentation of rows to a rule; the base class of `State`, which documents the attributes."""

    passes_per_evaluation: ClassVar[int] = 1
    algorithm: Any
    patterns: Any
    rule: Any
    h: Any
    n: int
    problem: Any
    all_rows: Any
    rng: np.random.Generator
    interrupted: Callable[[], bool]
    scores: np.ndarray
    moved: np.ndarray
    presentations: int
    steps: int

    def begin(self) -> None:
        """Set the first w of a rule that is initialised with patterns; other rules begin at w = 0."""
        if hasattr(self.rule, "start"):
            self._set_first_w(self.order())

    def order(self, block: int = 1) -> np.ndarray:
        """Return the rows in the order of a full pass: random if the algorithm shuffles, else that of the data.

        A random order permutes blocks of `block` successive rows.
        """
        return shuffled(self.n, self.rng, block) if self.algorithm.shuffle else self.all_rows

    def reordered(self, rows: np.ndarray, by_stride: bool = False) -> np.ndarray:
        """Return these rows in random order if the algorithm shuffles, by a random stride with `by_stride`."""
        if not self.algorithm.shuffle:
            return rows
        return rows[(strides if by_stride else shuffled)(rows.size, self.rng)]

    @property
    def max_visits(self) -> int:
        """The largest number of row visits between two evaluations (`passes_per_evaluation`)."""
        visits = min(MAX_VISITS, int(MAX_ENTRIES / self.visit_cost))
        return max(visits, self.passes_per_evaluation * self.n)

    @property
    def visit_cost(self) -> float:
        """Entries that cost as much as a row visit: those of a long row, or in other norms the powers of a step."""
        if self.problem.euclidean and self.algorithm.motion is not Motion.FLEXIBLE:
            return max(self.patterns.entries / self.n, VISIT_COST)
        return POWER_COST * self.patterns.d  # as if every visit made a step

    def passes_per_call(self, size: int) -> int:
        """Return the number of passes over `size` rows that cost as much as `ENTRIES_PER_CALL` entries."""
        return max(1, int(ENTRIES_PER_CALL / max(size * self.visit_cost, 1.0)))

    @property
    def rows_per_call(self) -> int:
        """The number of rows that are presented between two checks of the deadline, of a pass over many."""
        return max(1, int(ENTRIES_PER_CALL / self.visit_cost))

    def sweep(self, h: Any, order: np.ndarray) -> int:
        """Present these rows of h once; return the number of steps.

        The score of row order[k] is written to `scores[k]`, and the rows that made a step to `moved[:steps]`.
        """
        return self._present(h, order, 1)

    def repeat(self, h: Any, rows: np.ndarray, passes: int) -> None:
        """Sweep these rows of h until none makes a step, at most `passes` times."""
        self._present(h, rows, passes)

    def full_passes(self, most: int) -> int:
        """Make full passes until one makes no step, at most `most`; return the number of steps in the last."""
        if not self.algorithm.shuffle:
            return self._present(self.h, self.all_rows, most)
        steps = self.sweep(self.h, self.order())
        while most > 1 and steps and not self.interrupted():
            steps, most = self.sweep(self.h, self.order()), most - 1
        return steps

    def sweep_and_narrow(self, memory: PackedRows, max_visits: int, passes: int = sys.maxsize) -> int:
        """Make a full pass, then sweep the rows that made a step until none does; return the steps of the full pass.

        Each sweep after the full pass visits the rows that made a step in the sweep before.

        Parameters
        ----------
        memory : PackedRows
            Memory for the rows that made a step.
        max_visits : int
            Largest number of row visits after the full pass.
        passes : int
            Largest number of sweeps after the full pass.
        """
        steps = self.sweep(self.h, self.order())
        if steps and not self.interrupted():
            active, rows = memory.gather(self.h, self.moved[:steps].copy())
            self.shrinking_sweeps(active, rows, max(1, min(passes, max_visits // steps)))
        return steps

    def shrinking_sweeps(self, h: Any, rows: np.ndarray, passes: int) -> None:
        """Sweep these rows of h, each time only the rows that made a step in the sweep before, until none does.

        `passes` is the largest number of sweeps. The order of `rows` is overwritten.
        """
        while rows.size > self.rows_per_call:
            steps, passes = self._pass_by_parts(h, rows, self.rows_per_call), passes - 1
            if min(steps, passes) <= 0 or self.interrupted():
                return
            rows = self.moved[:steps].copy()
        size, passes_per_call, goes_on = rows.size, self.passes_per_call(rows.size), True
        while goes_on:
            size, presented, made, sweeps = shrinking_sweeps(
                self.rule, h, rows, size, self.scores, min(passes, passes_per_call)
            )
            self.presentations += presented
            self.steps += made
            passes -= sweeps
            resumes = self._load_missing_rows(self.rule, h, rows[:size])
            goes_on = resumes or (size > 0 and min(passes, sweeps) > 0 and not self.interrupted())

    def batches(self, count: int, size: int) -> None:
        """Present `count` mini-batches of `size` rows each, drawn with replacement."""
        rows = self.rng.integers(self.n, size=count * size, dtype=np.uint32)
        scores = np.empty(size)
        steps = batches(self.rule, self.h, rows, scores)
        while self._load_missing_rows(self.rule, self.h, rows):
            steps = batches(self.rule, self.h, rows, scores)
        self.steps += steps
        self.presentations += rows.size

    # calls of compiled sweeps

    def _present(self, h: Any, order: np.ndarray, passes: int) -> int:
        """Sweep these rows until none makes a step, at most `passes` times; return the steps of the last sweep."""
        passes_per_call, rows_per_call = self.passes_per_call(order.size), self.rows_per_call
        while order.size > rows_per_call:
            steps, passes = self._pass_by_parts(h, order, rows_per_call), passes - 1
            if min(steps, passes) <= 0 or self.interrupted():
                return steps
        while True:
            steps, sweeps, made = self._sweeps(self.rule, h, order, min(passes, passes_per_call))
            self.presentations += order.size * sweeps
            self.steps += made
            passes -= sweeps
            if min(steps, sweeps, passes) <= 0 or self.interrupted():
                return steps

    def _pass_by_parts(self, h: Any, order: np.ndarray, size: int) -> int:
        """Present these rows once, by parts of `size` rows; return the number of steps, at least 1 if interrupted."""
        steps = 0
        for first in range(0, order.size, size):
            if first and self.interrupted():
                return max(steps, 1)  # rows that were not presented may make a step
            part = slice(first, first + size)
            made, _, _ = repeat(self.rule, h, order[part], self.scores[part], self.moved[steps:], 1)
            steps += made
            self.presentations += order[part].size
            self.steps += made
        return steps

    def _sweeps(self, rule: Any, h: Any, order: np.ndarray, passes: int) -> tuple[int, int, int]:
        """Sweep these rows until none makes a step, without a check of the deadline.

        Returns
        -------
        steps, sweeps, made : int
            Steps of the last sweep, number of sweeps, and steps of all sweeps.
        """
        sweeps = made = 0
        while True:
            steps, new_sweeps, new_steps = repeat(rule, h, order, self.scores, self.moved, passes - sweeps)
            sweeps, made = sweeps + new_sweeps, made + new_steps
            if not self._load_missing_rows(rule, h, order):
                return steps, sweeps, made

    def _set_first_w(self, order: np.ndarray) -> None:
        """Initialise w with the first patterns in this order, for a rule that does not begin at w = 0."""
        begin(self.rule, self.h, order)

    def _load_missing_rows(self, rule: Any, h: Any, order: np.ndarray) -> bool:
        """Load the kernel rows for which a sweep has stopped; return whether to resume it.

        On rows of data no sweep stops (`GramRun._load_missing_rows`).
        """
        return False
