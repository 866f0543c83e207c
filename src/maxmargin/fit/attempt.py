"""One binary task under way: a solver in one set of units, or on rows of the kernel of one precision."""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from ..algorithms.batch.kernel_rows import KernelRows
from ..algorithms.online.dual_coordinate_descent import DualCoordinateDescent
from ..algorithms.programs import Program
from ..certificates.expansions import KernelPoint
from ..certificates.gram import KernelSample
from ..certificates.verdicts import Inseparable, Undecided
from ..data.task import GramTask
from ..data.units import Units
from ..numerics.stop_check import StopCheck
from ..problem.problem import Problem
from ..problem.status import Status
from . import gram_exact
from .certifier import Certifier, Incumbent
from .exact import NEARLY, ends_at_tol, finish, is_small
from .gram_run import GramRun
from .presolve import PresolveStep, ScaledUnits, distinct_rows_of
from .report import Job, KernelJob, Point, Report, Solution, Stopping
from .run import Run
from .schedules import SCHEDULES
from .tracker import ROUNDING, Primal

if TYPE_CHECKING:
    from .policy import Stage

STOPPED = (Status.MAX_TIME, Status.INTERRUPTED)
ENDED = (Status.CERTIFIED, Status.STALLED, Status.CONVERGED)
# Statuses of a hard margin that found no separator, and of a fit that had no time for the digits of its certificate.
UNFINISHED = (Status.MAX_ITER, Status.STALLED, Status.CONVERGED, Status.UNDECIDED, Status.NOT_FINITE)
EXACT = "exact"  # the name of the exact stage in reports
PROVES = "p = 2, a small problem: the first point that proves tol"
# With other units bounds are certified on the caller's data whenever the gap has halved: more often costs a pass each
# time, less often delays the end by up to a factor of two in the gap.
RECERTIFY = 0.5
# Rounds without a separator before the verdict on separability is asked for. On rows of data it costs as much as a few
# rounds, on rows of a kernel as much as many.
MIN_ROUNDS, MIN_KERNEL_ROUNDS = 3, 20
# Multiple of the rounding error of kernel rows below which a bound of all margins is no margin at all.
HOPELESS = 100.0


class Attempt(ABC):
    """A task with its solver.

    Parameters
    ----------
    task : Task or KernelJob
        Its problem is the caller's, and its label goes into the reports.
    stopping : Stopping
    history : list of Report
        Reports of the attempts before, to which this one appends.

    Attributes
    ----------
    run : State
    rounds : int
    """

    run: Any
    rounds: int = 0
    # Bounds of all margins up to this are rounding: there is no separator that this solver could find.
    no_margin: float = 0.0

    def __init__(self, task: Any, stopping: Stopping, history: list[Report]) -> None:
        self.problem, self.label, self.stopping, self.history = task.problem, task.label, stopping, history
        self._stage: Stage | None = None
        self._before = (history[-1].presentations, history[-1].steps) if history else (0, 0)
        self._rounds: Iterator[None] | None = None

    def begin(self, stage: Stage) -> Iterator[None]:
        """Enter a stage, and return its rounds; an algorithm that was at work before goes on where it was."""
        self._stage = stage
        if stage.algorithm is None:
            return self._exact()
        if stage.algorithm is not self.run.algorithm:
            self.run, self._rounds = self.run.handed_to(stage.algorithm), None
        if self._rounds is None:
            self._rounds = SCHEDULES[stage.algorithm.schedule](self.run)
        return self._rounds

    def is_spent(self) -> bool:
        """Return whether the stage has used its budget of row visits, or is near enough to the optimum."""
        stage, run = self._stage, self.run
        assert stage is not None
        if run.best.gap <= stage.near_enough:
            return True
        return self.rounds >= stage.min_rounds and run.presentations >= stage.max_row_visits

    def status(self) -> Status | None:
        """Return why to end after this round, None to go on."""
        run = self.run
        if run.best.gap <= NEARLY * run.tol:
            return Status.CERTIFIED
        if self._stage is not None and self._stage.algorithm is None:
            return self._status_of_exact()
        if self.problem.hard and run.best.upper <= self.no_margin:
            return Status.UNDECIDED  # until a verdict proves it
        if not run.finite:
            return Status.NOT_FINITE
        if run.converged:
            return Status.CONVERGED
        stopped = self.stopping.deadline.status()
        return stopped or (Status.MAX_ITER if self.rounds >= self.stopping.max_iter else None)

    def report(self) -> None:
        """Count a round and report it."""
        stage = self._stage
        assert stage is not None
        # an exact stage at the end is part of the round before
        if stage.algorithm is not None or not self.rounds:
            self.rounds += 1
        self._report(EXACT if stage.algorithm is None else stage.algorithm.name, stage.reason)

    @abstractmethod
    def rules_out_separator(self) -> bool:
        """Return whether to give up a hard margin, as there is, or may be, no separator."""

    @abstractmethod
    def _exact(self) -> Iterator[None]:
        """Yield once, after the active-set method."""

    @abstractmethod
    def _status_of_exact(self) -> Status | None:
        """Return why to end after the exact stage, None where the algorithm goes on."""

    @abstractmethod
    def _report(self, name: str, reason: str) -> None:
        """Report the best bounds after a round of a stage."""

    def _append(
        self, bounds: tuple[float, float, float], margin: float, stage: tuple[str, str], point: Any
    ) -> None:
        """Append a report with these bounds (lower, upper, gap) to the history, and pass it to the callback."""
        presentations, steps = self._before
        name, reason = stage
        report = Report(
            len(self.history) + 1, time.perf_counter() - self.stopping.deadline.began, *bounds,
            presentations + self.run.presentations, steps + self.run.steps, name, self.label, margin, reason,
        )  # fmt: skip
        self.history.append(report)
        self.stopping.on_report(report, lambda: point, self.stopping.deadline)


class RowAttempt(Attempt):
    """A task on rows of data, presolved.

    Parameters
    ----------
    job : Job
    units : Units
        Those in which the task is solved.
    incumbent : Incumbent
    history : list of Report

    Attributes
    ----------
    task : Task
        The presolved task.
    distinct : DistinctRows or None
        The step that merges copies, where the problem is small: it then has an exact stage.
    """

    run: Run

    def __init__(self, job: Job, units: Units, incumbent: Incumbent, history: list[Report]) -> None:
        super().__init__(job.task, job.stopping, history)
        self.job, self.incumbent, self._doubtful = job, incumbent, self.problem.hard
        task, choice = job.task, job.choice
        steps: list[PresolveStep] = [] if job.selected is None else [job.selected]
        self.distinct = None
        # A given order of presentation (shuffle=False) is kept: merging rows would change it.
        mergeable = choice.exact and choice.algorithm.shuffle and self.problem.euclidean
        if mergeable and is_small(self.problem, task.patterns):
            self.distinct = distinct_rows_of(job)
            steps.append(self.distinct)
        if not units.ordinary:
            steps.append(ScaledUnits(units, self.problem))
        for step in steps:
            task = step.apply(task)
        self.task = task
        # The gap at which the exact stage ends; 0 where it ends with the optimum. With columns in other units the gap
        # of this task may be less than the caller's.
        proves = ends_at_tol(task.patterns) and units.columns is None
        self._enough = NEARLY * job.stopping.tol if proves else 0.0
        self.certifier = Certifier(self.problem, job.sample, steps, task, job.stopping.deadline, incumbent)
        self._certified_gap: float | None = None  # of the last point that was certified, in these units
        check = StopCheck(self._must_stop, job.stopping.deadline.remaining)
        with np.errstate(over="ignore", invalid="ignore"):  # a warm start may come from other data
            self.run = Run(task, choice.algorithm, job.stopping.tol, job.rng, check)
            if self.problem.hard:
                self.run.look_for_zero_rows()
            self.run.count_start()

    def rules_out_separator(self) -> bool:
        # Where the algorithm has had its chance to find a separator, whether there is one is decided before more
        # rounds are spent.
        run, stage = self.run, self._stage
        assert stage is not None
        if not self._doubtful or run.best.lower > 0.0 or self.rounds < MIN_ROUNDS:
            return False
        # a round of a program costs as much as a verdict
        if not isinstance(run.algorithm, Program) and run.presentations < stage.verdict_after:
            return False
        self._doubtful = False
        self.incumbent.verdict = self.job.separability()
        return isinstance(self.incumbent.verdict, Inseparable | Undecided)

    def _must_stop(self) -> bool:
        budget = np.inf if self._stage is None else self._stage.max_row_visits
        return self.run.presentations >= budget or self.stopping.deadline.interrupted()

    def _exact(self) -> Iterator[None]:
        run, tol, task, distinct = self.run, self.stopping.tol, self.task, self.distinct
        exact, enough = self.certifier.rounding(tol), self._enough
        point = Point(*run.best.primal, run.best.alpha)
        if not (run.best.gap <= enough and self.certifier.certify_and_keep(point, tol).gap <= enough):
            shared = distinct is not None and task.patterns is distinct.patterns
            X: Any = distinct.whole(self.problem) if distinct is not None and shared else task.patterns.X
            finish(run, X, self.certifier, exact, enough)
        yield

    def _status_of_exact(self) -> Status | None:
        run = self.run
        if run.best.gap <= ROUNDING:
            return Status.CONVERGED  # as near as float64 comes
        stopped = self.stopping.deadline.status()  # cut off: no other stage has time either
        if stopped is None and run.problem.hard and not run.best.lower > 0.0:
            return Status.UNDECIDED
        return stopped

    def report(self) -> None:
        run, tol = self.run, self.stopping.tol
        if run.candidate is not None:
            # a point that its solver expects to be good enough; else it is evaluated like any other
            (w, b, alpha), run.candidate = run.candidate, None
            certificate = self.certifier.certify_and_keep(Point(w, b, alpha), tol)
            if certificate.gap <= NEARLY * tol:
                run.best.adopt(Primal(w, b), alpha, certificate.lower, certificate.upper, 0.0)
            else:
                run.evaluate(w, b, alpha)
        super().report()

    def _report(self, name: str, reason: str) -> None:
        """Report the incumbent: running bounds in the caller's units, certified ones in others."""
        run, tol, last, incumbent = self.run, self.stopping.tol, self._certified_gap, self.incumbent
        if self.certifier.same_problem:
            incumbent.update(run.best.lower, run.best.upper, *run.best.primal)
        elif last is None or run.best.gap < RECERTIFY * last or run.best.gap <= NEARLY * tol < last:
            self._certified_gap = run.best.gap
            found = self.certifier.certify(Point(*run.best.primal, run.best.alpha), tol)
            incumbent.update(found.certificate.lower, found.certificate.upper, found.w, found.b)
        if name == EXACT and self._enough and not self.problem.hard:
            reason = PROVES
        point = incumbent.point or (np.zeros(self.certifier.sample.X.shape[1]), 0.0)
        bounds = incumbent.lower, incumbent.upper, incumbent.gap
        self._append(bounds, incumbent.margin(point[0]), (name, reason), point)

    def solution(self, status: Status) -> Solution:
        """Return the best point with its certificate, and the status that these allow."""
        best, tol = self.run.best, self.stopping.tol
        nothing = not best.primal.w.any() or (not self.problem.hard and best.gap == np.inf)
        if status in STOPPED and self.problem.euclidean and nothing and best.gap > tol:
            # a pass of dual coordinate descent makes a model
            self.run = self.run.handed_to(DualCoordinateDescent())
            self.run.passes(1)
            self.run.score_rows()
            self.rounds += 1
            self._report(self.run.algorithm.name, "nothing was found in time: one pass over the rows")
        w, b, alpha, certificate = self.certifier.final(Point(*best.primal, best.alpha), tol)
        if self.certifier.cut_short and not certificate.gap <= tol and status in ENDED:
            status = self.stopping.deadline.status() or Status.MAX_TIME
        finite = np.isfinite(w).all() and np.isfinite(b)
        status = proved_status(status, self.problem, certificate, tol, finite)
        return Solution(w, b, alpha, status, self.rounds, self.history, certificate)


class GramAttempt(Attempt):
    """A task on rows of a kernel.

    Parameters
    ----------
    job : KernelJob
    rows : KernelRows
    sample : KernelSample
        The same rows, for the exact stage.
    stopping : Stopping
    """

    run: GramRun

    def __init__(self, job: KernelJob, rows: KernelRows, sample: KernelSample, stopping: Stopping) -> None:
        super().__init__(job, stopping, [])
        self.job, self.sample = job, sample
        self.no_margin = HOPELESS * np.finfo(float).eps * float(rows.diagonal.max(initial=0.0)) ** 0.5
        task = GramTask(job.problem, rows, job.y, job.weights, job.start, job.label)
        rng = np.random.default_rng(job.seed)
        self.run = GramRun(task, job.algorithm, stopping.tol, rng, stopping.deadline.interrupted)
        if self.problem.hard:
            self.run.look_for_zero_rows()

    @property
    def point(self) -> KernelPoint:
        """The best dual variables, and the best primal point."""
        best = self.run.best
        return KernelPoint(best.alpha, *best.primal)

    def rules_out_separator(self) -> bool:
        if not self.problem.hard or self.rounds != MIN_KERNEL_ROUNDS or self.run.best.lower > 0.0:
            return False
        return self.job.inseparable()

    def _exact(self) -> Iterator[None]:
        gram_exact.finish(self.run.best, self.sample)
        yield

    def _status_of_exact(self) -> Status | None:
        return Status.CONVERGED if self.run.best.gap <= ROUNDING else None

    def _report(self, name: str, reason: str) -> None:
        best = self.run.best
        margin = best.lower
        if not self.problem.hard:
            margin = (2.0 * best.upper) ** -0.5 if best.upper > 0.0 else np.inf
        self._append((best.lower, best.upper, best.gap), margin, (name, reason), self.point)


def proved_status(status: Status, problem: Problem, bounds: Any, tol: float, finite: Any) -> Status:
    """Return the status that certified bounds allow.

    Parameters
    ----------
    status : Status
        By the running bounds.
    problem : Problem
    bounds : Certificate or Bounds
    tol : float
    finite : bool
        Whether the point has finite entries only.
    """
    if not finite or np.isnan([bounds.lower, bounds.upper]).any():
        return Status.NOT_FINITE
    if problem.gap(bounds.lower, bounds.upper) <= tol:
        status = Status.CERTIFIED
    elif status is Status.CERTIFIED:  # the running bounds were off by rounding
        status = Status.STALLED
    if problem.hard and not bounds.lower > 0.0 and status in UNFINISHED:
        return Status.UNDECIDED
    if bounds.lower > 0.0 and status is Status.UNDECIDED:  # the running bounds hid the separator in rounding
        return Status.STALLED
    return status
