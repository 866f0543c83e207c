"""Soft margins of partitioned rows at p = 2: the choice of the methods, and their passes in the loop of all fits."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from ..certificates.certificate import Certificate, Fingerprint, ImpliedDual
from ..data.door import check_rows
from ..fit.best import Best, Primal
from ..fit.deadline import Deadline, solve_tasks
from ..fit.policy import Stage
from ..fit.report import Solution, Stopping
from ..fit.runs import Progress
from ..fit.solve import Fit
from ..problem.problem import Problem, Status
from .blocks import ArrayPartitions, Partitions
from .cached_loops import loops_passes
from .newton import draw_sample, newton_passes, rows_in_memory
from .passes import Coordinates, Query, Sums, empty_certificate, pass_sums
from .sample import DrawnRows

# Newton's method needs a sample and rows near the margin that determine z: so many rows in memory for each column.
# Passes to 1e-3 and 1e-4 with 10 % of the rows in memory at C = 0.01, 1 and 100: mnist (7.6 rows a column), the hinge
# 4/4, 5/5, 7/7 and the squared hinge 3/3, 5/5, 8/8; by cached loops 2/3, 5/5, 10/- and 3/3, 4/5, -/-. Fewer rows were
# not tried. Problems of several classes, of one class against the rest, need more for the hinge: for ten classes of
# 60,000 x 40 projected digits at C = 0.1 with 26 rows a column it stalls; 68 passes in all, and 39 by loops alone.
MIN_HELD_ROWS_PER_COLUMN = 7
# Largest ratio of columns^2, to which the time of a pass of Newton's method is proportional, to the entries of a row,
# to which that of cached loops is. Seconds of a pass of each: 0.5 and 0.5 at 1,100 (adult), 1.3 and 0.5 at 7,700 (web),
# 5.0 and 0.6 at 30,000 (generated text of 1,000 columns). For the hinge Newton's method also takes more passes on web,
# from 5 to 9 at C = 0.01 and 1, where cached loops take 3 to 6.
MAX_COST_RATIO = {"hinge": 3_000.0, "squared_hinge": 30_000.0}

# Rows, their dual variables, and the points that imply those of the other rows, if any.
Proof = tuple[np.ndarray, np.ndarray, ImpliedDual | None]


class PassMethod(NamedTuple):
    """A method that makes passes over the rows of a `PassFit`, and yields after each."""

    name: str
    text: str
    passes: Callable[[Any], Iterator[None]]
    schedule: str = "passes"


NEWTON = PassMethod(
    "partitioned-newton", "Newton's method, with the rows near the margin in memory", newton_passes
)
LOOPS = PassMethod("cached-loops", "dual coordinate descent, with the open rows in memory", loops_passes)


@dataclass(frozen=True, eq=False)
class PartitionedProblem:
    """What a fit of partitioned rows solves, the memory it may use, and what ends it.

    Attributes
    ----------
    partitions : Partitions
        Codes of classes from 0.
    problem : Problem
    classes : sequence
        The labels of the classes.
    stopping : Stopping
        `max_iter` is the largest number of passes for each problem.
    memory : float
        Bytes.
    seed : int, default=0
        That of samples, and of the order of blocks and rows.
    folder : str or path-like, default=None
        The folder of temporary files; None for that of the system.
    """

    partitions: Partitions
    problem: Problem
    classes: Sequence[Any]
    stopping: Stopping
    memory: float
    seed: int = 0
    folder: Any = None

    @property
    def problems(self) -> int:
        """The number of binary problems: one for two classes, else one for each class."""
        return 1 if len(self.classes) == 2 else len(self.classes)


class PassFit(Fit):
    """A binary problem on partitioned rows; a round is a pass. Best dual points are functions that return a `Proof`.

    Parameters
    ----------
    whole : PartitionedProblem
    k : int
        The number of the problem.
    deadline : Deadline
        That of this problem.
    drawn : DrawnRows or None
        The rows from which Newton's method starts.
    opened : ExitStack
        Closes the files of the methods.

    Attributes
    ----------
    positive : int
        The class against the rest.
    fingerprint : Fingerprint or None
        That of the rows in the last pass.
    """

    def __init__(
        self,
        whole: PartitionedProblem,
        k: int,
        deadline: Deadline,
        drawn: DrawnRows | None,
        opened: ExitStack,
    ) -> None:
        two, problem = whole.problems == 1, whole.problem
        best = Best(problem, Primal(np.zeros(whole.partitions.shape[1]), 0.0), _nothing)
        stopping = replace(whole.stopping, deadline=deadline)
        super().__init__(problem, None if two else whole.classes[k], stopping, best)
        self.whole, self.k, self.positive, self.drawn, self.opened = whole, k, 1 if two else k, drawn, opened
        self.coordinates = Coordinates(problem, whole.partitions.shape[1])
        self.fingerprint: Fingerprint | None = None
        self._begun, self._reported = whole.partitions.passes, deadline.began

    def begin(self, algorithm: Any) -> tuple[Progress, Iterator[None]]:
        return self.run, algorithm.passes(self)

    def status(self, stage: Stage) -> Status | None:
        return Status.CERTIFIED if self.best.gap <= self.stopping.tol else self.ends()

    def make_pass(self, query: Query) -> Sums | None:
        """Return the sums of a pass over all rows; None if stopped."""
        sums = self.whole.partitions.total(partial(pass_sums, self.coordinates, query), self.check)
        if sums is not None:
            self.check_rows(sums)
        return sums

    def check_rows(self, sums: Sums) -> None:
        """Store the fingerprint of the rows of a pass; raise an error if it differs from that of the last pass.

        Rows beyond the domain are refused.
        """
        check_rows(sums.longest)
        difference = None if self.fingerprint is None else self.fingerprint.difference(sums.data)
        if difference is not None:
            raise ValueError(
                f"the rows changed while they were read: {difference}. Fit again when the data are complete."
            )
        self.fingerprint = sums.data

    def check(self) -> bool:
        """Return whether to stop; twice a second, pass a report of the pass so far to the callback."""
        if time.perf_counter() - self._reported > 0.5:
            self.report(self.stage.algorithm.name, self.stage.reason, ended=False)
        return self.stopping.deadline.interrupted()

    def report(self, name: str, reason: str, ended: bool = True) -> None:
        rows, self._reported = self.whole.partitions, time.perf_counter()
        self.run.presentations = (rows.passes - self._begun) * rows.shape[0] + rows.rows_done
        super().report(name, reason, ended)

    def solution(self, status: Status) -> Solution:
        """Return the best point with its certificate, after the fit has ended with a status."""
        if self.fingerprint is None:
            certificate = empty_certificate(self.problem, self.whole.partitions.shape)
        else:
            support, dual, implied = self.best.alpha()
            bounds = self.best.lower, self.best.upper
            certificate = Certificate(self.problem, *bounds, support, dual, self.fingerprint, implied=implied)
        w, b = self.best.primal
        return Solution(w, b, status, self.rounds, self.history, certificate)


def _nothing() -> Proof:
    """Return a proof without rows."""
    return np.zeros(0, np.int64), np.zeros(0), None


def solve_soft_margins(whole: PartitionedProblem) -> list[Solution]:
    """Solve all binary problems, one after another, by the methods that the problem, sizes and memory choose."""
    plan = plan_of(whole)
    drawn = draw_sample(whole) if plan[0].algorithm is NEWTON else None

    def solve_one(k: int, deadline: Deadline) -> Solution:
        """Solve a binary problem."""
        with ExitStack() as opened:
            fit = PassFit(whole, k, deadline, drawn, opened)
            return fit.solution(fit.solve(plan))

    # as in fits of rows in memory: interior points divide by numbers that underflow
    with np.errstate(over="ignore", invalid="ignore"):
        return solve_tasks(solve_one, whole.problems, 1, whole.stopping.deadline)


def plan_of(whole: PartitionedProblem) -> list[Stage]:
    """Return the methods of a fit in their order, with reasons."""
    method, why = method_for(whole.problem, whole.partitions, whole.memory, whole.problems)
    chosen = [(method, why)]
    if method is NEWTON and isinstance(whole.partitions, ArrayPartitions):
        # it stalls where so many rows have the same margin, as all rows at a small C
        chosen.append((LOOPS, "Newton's method has stalled: more rows lie at the margin than fit in memory"))
    # below 1e-8 rounding has ended Newton's method, where cached loops take long and gain little
    enough = max(whole.stopping.tol, 1e-8)
    return [Stage(one, f"rows in partitions: {one.text} ({why})", enough) for one, why in chosen]


def method_for(
    problem: Problem, partitions: Partitions, memory: float, problems: int
) -> tuple[PassMethod, str]:
    """Return the method for a problem, and the reason.

    Parameters
    ----------
    problem : Problem
        A soft margin at p = 2, with the half square of the norm.
    partitions : Partitions
    memory : float
        Bytes.
    problems : int
        Binary problems: those of one class against many rows of others have more rows near the margin.
    """
    if not isinstance(partitions, ArrayPartitions):
        return NEWTON, "rows that stay on other machines are used in sums only"
    n, d = partitions.shape
    entries = partitions.row_entries
    if 8.0 * (d + 1) ** 2 > 0.125 * memory:  # the sums of a pass hold several of them
        return LOOPS, f"a matrix of {d} x {d} takes more than an eighth of the memory"
    if (d + 1) ** 2 > MAX_COST_RATIO[problem.loss] * max(entries, 1.0):
        return LOOPS, f"rows of {entries:.0f} entries are few numbers beside {d} x {d}"
    least = MIN_HELD_ROWS_PER_COLUMN * (problems if problem.loss == "hinge" else 1)
    if min(rows_in_memory(memory, d), n) < least * d:
        return LOOPS, f"less than {least} rows a column fit in memory"
    return NEWTON, f"few columns: a matrix of {d} x {d} is summed over all rows"
