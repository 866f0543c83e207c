"""One attempt at a binary task: its solver, its stages and rounds, its reports and its stopping criteria."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from ..algorithms.batch.decomposition import KernelRows
from ..algorithms.online.dual_coordinate_descent import DualCoordinateDescent
from ..algorithms.programs import Program, ProximalNewton
from ..certificates.expansions import KernelPoint
from ..certificates.gram import KernelSample
from ..certificates.verdicts import Inseparable, Undecided
from ..data.task import GramTask
from ..numerics.stop_check import StopCheck
from ..numerics.sums import EPS
from ..problem.problem import Problem
from ..problem.status import Status
from ..solvers.iterate import Point
from ..solvers.rows import centred_rows
from .certifier import Certifier, Incumbent
from .exact import RUNNING_GAP_SHARE, ends_at_tol, finish, finish_gram, is_small, tight_points
from .report import Job, KernelJob, Report, Solution, Stopping
from .run import GramRun, Run
from .schedules import SCHEDULES
from .tracker import ROUNDING, Primal

if TYPE_CHECKING:
    from .policy import Stage

# Statuses of a fit that the deadline ended.
STOPPED = (Status.MAX_TIME, Status.INTERRUPTED)
# Statuses that become UNDECIDED for a hard margin without a certified separator.
UNFINISHED = (Status.MAX_ITER, Status.STALLED, Status.CONVERGED, Status.UNDECIDED, Status.NOT_FINITE)
EXACT = "exact"  # the name of the exact stage in reports
# The reason in reports of an exact stage that ends at `tol`.
TOL_REASON = "p = 2, a small problem: the first point that proves tol"
# Rounds without a separator before separability is decided, on rows of data and on rows of a kernel. The decision costs
# as much as a few rounds on rows of data, and as much as many rounds on rows of a kernel. Chosen on the data sets of
# benchmarks.before_after.
ROUNDS_BEFORE_VERDICT, KERNEL_ROUNDS_BEFORE_VERDICT = 3, 20
# An upper bound of all margins counts as 0 if it is below this factor times eps max k(x, x)^(1/2), the rounding error
# of one product. The factor allows for the accumulation of rounding errors in the scores. A round value; not tuned.
MARGIN_ROUNDING_FACTOR = 100.0


class Attempt(ABC):
    """A task with its solver, which is run in stages.

    Parameters
    ----------
    task : Task or KernelJob
        Its problem is in the caller's units, and its label is copied to the reports.
    stopping : Stopping
    history : list of Report
        Reports of earlier attempts; the reports of this attempt are appended.

    Attributes
    ----------
    run : State
        The state of the current algorithm.
    rounds : int
        Number of rounds so far.
    margin_rounding : float
        An upper bound of a hard margin up to this value is rounding: the solver cannot find a separator.
    """

    run: Any
    rounds: int = 0
    margin_rounding: float = 0.0

    def __init__(self, task: Any, stopping: Stopping, history: list[Report]) -> None:
        self.problem, self.label, self.stopping, self.history = task.problem, task.label, stopping, history
        self._stage: Stage | None = None
        self._before = (history[-1].presentations, history[-1].steps) if history else (0, 0)
        self._rounds: Iterator[None] | None = None

    def begin(self, stage: Stage) -> Iterator[None]:
        """Begin a stage, and return the iterator over its rounds.

        A stage with the current algorithm continues its rounds, also after an exact stage; another algorithm gets a new
        state with the best points so far.
        """
        self._stage = stage
        if stage.algorithm is None:
            return self._exact()
        if stage.algorithm is not self.run.algorithm:
            self.run, self._rounds = self.run.with_algorithm(stage.algorithm), None
        if self._rounds is None:
            self._rounds = SCHEDULES[stage.algorithm.schedule](self.run)
        return self._rounds

    def is_spent(self) -> bool:
        """Return whether the budget of row visits of the stage is spent, or its gap is at most `end_gap`."""
        stage, run = self._stage, self.run
        assert stage is not None
        if run.best.gap <= stage.end_gap:
            return True
        return self.rounds >= stage.min_rounds and run.presentations >= stage.max_row_visits

    def status(self) -> Status | None:
        """Return the status with which the stage ends after this round; None if it continues."""
        run = self.run
        if self.problem.gap(*run.best.result()[:2]) <= RUNNING_GAP_SHARE * run.tol:
            return Status.CERTIFIED
        if self._stage is not None and self._stage.algorithm is None:
            return self._status_of_exact()
        if self.problem.hard and run.best.upper <= self.margin_rounding:
            return Status.UNDECIDED  # until the verdict on separability
        if not run.finite:
            return Status.NOT_FINITE
        if run.converged:
            return Status.CONVERGED
        stopped = self.stopping.deadline.status()
        return stopped or (Status.MAX_ITER if self.rounds >= self.stopping.max_iter else None)

    def report(self) -> None:
        """Count a round, and report it; an exact stage after other stages counts as part of their last round."""
        stage = self._stage
        assert stage is not None
        if stage.algorithm is not None or not self.rounds:
            self.rounds += 1
        self._report(EXACT if stage.algorithm is None else stage.algorithm.name, stage.reason)

    @abstractmethod
    def rules_out_separator(self) -> bool:
        """Return whether to end the attempt at a hard margin because no separator exists, or none could be proved."""

    @abstractmethod
    def _exact(self) -> Iterator[None]:
        """Run the active-set method, then yield once."""

    @abstractmethod
    def _status_of_exact(self) -> Status | None:
        """Return the status with which the exact stage ends; None if the following stage is to be run."""

    @abstractmethod
    def _report(self, name: str, reason: str) -> None:
        """Report the best bounds after a round of the stage with this name and reason."""

    def _append(
        self, bounds: tuple[float, float, float], margin: float, stage: tuple[str, str], point: Any
    ) -> None:
        """Append a report to the history, and pass it to the callback.

        Parameters
        ----------
        bounds : (float, float, float)
            lower, upper, gap.
        margin : float
        stage : (str, str)
            Name and reason of the stage.
        point : object
            The best point, which the callback may read.
        """
        lower, upper, gap = bounds
        presentations, steps = self._before
        self.stopping.report(
            self.history, point, lower=lower, upper=upper, gap=gap, margin=margin, stage=stage[0], reason=stage[1],
            presentations=presentations + self.run.presentations, steps=steps + self.run.steps, label=self.label,
        )  # fmt: skip


class RowAttempt(Attempt):
    """An attempt at a task on rows of data.

    Parameters
    ----------
    job : Job
    incumbent : Incumbent
        The best bounds in the caller's units.
    history : list of Report

    Attributes
    ----------
    task : Task
    small : bool
        Whether the attempt has an exact stage.
    """

    run: Run

    def __init__(self, job: Job, incumbent: Incumbent, history: list[Report]) -> None:
        super().__init__(job.task, job.stopping, history)
        self.job, self.incumbent, self._separability_open = job, incumbent, self.problem.hard
        task, choice = job.task, job.choice
        self.small = choice.exact and not choice.algorithm.keeps_rows and self.problem.euclidean
        self.small = self.small and is_small(self.problem, task.patterns)
        self.task = task
        # the gap at which the exact stage ends; 0 if it ends at the optimum
        self._end_gap = RUNNING_GAP_SHARE * job.stopping.tol if ends_at_tol(task.patterns) else 0.0
        stop = job.stopping
        self.certifier = Certifier(self.problem, job.sample, job.selected, stop.deadline, stop.tol)
        check = StopCheck(self._must_stop, job.stopping.deadline.remaining)
        with np.errstate(over="ignore", invalid="ignore"):  # a warm start on other data may overflow
            rng = np.random.default_rng(job.seed)
            self.run = Run(task, choice.algorithm, job.stopping.tol, rng, check)
            self.run.best.last = job.last
            if self.problem.hard:
                self.run.look_for_zero_rows()
            self.run.evaluate_start()
            first = task.start is None and task.point is None
            # the proximal Newton method has bounds after less time: its first stages are on few columns
            late = not self.problem.euclidean and not isinstance(choice.algorithm, ProximalNewton)
            if choice.automatic and first and late:
                self.run.evaluate_euclidean_point()

    def rules_out_separator(self) -> bool:
        """Return whether to end the attempt because no separator exists, or none could be proved.

        Separability is decided once, after `ROUNDS_BEFORE_VERDICT` rounds and `Stage.verdict_after` row visits without
        a separator, or after one round where that is 0; for an algorithm that decides it by itself, after its end.
        """
        run, stage = self.run, self._stage
        assert stage is not None
        if not self._separability_open or run.best.lower > 0.0 or run.algorithm.decides:
            return False
        if self.rounds < (ROUNDS_BEFORE_VERDICT if stage.verdict_after else 1):
            return False
        # a round of a `Program` costs as much as the verdict
        if not isinstance(run.algorithm, Program) and run.presentations < stage.verdict_after:
            return False
        self._separability_open = False
        self.incumbent.verdict = self.job.separability(None)
        return isinstance(self.incumbent.verdict, Inseparable | Undecided)

    def _must_stop(self) -> bool:
        """Return whether the budget of row visits of the stage is spent, or the deadline has passed."""
        budget = np.inf if self._stage is None else self._stage.max_row_visits
        return self.run.presentations >= budget or self.stopping.deadline.interrupted()

    def _exact(self) -> Iterator[None]:
        """Run the active-set method, unless the best point is certified within the required gap; then yield once."""
        run = self.run
        rounding, end_gap = self.certifier.rounding(self.stopping.tol), self._end_gap
        point = Point(*run.best.primal, run.best.alpha)
        if not (run.best.gap <= end_gap and self.certifier.certify(point).certificate.gap <= end_gap):
            problem, patterns = self.task.problem, self.task.patterns
            rows = patterns.shared(("centred rows", problem), lambda: centred_rows(problem, patterns.X))
            finish(run, rows, self.certifier, rounding, end_gap)
        yield

    def _status_of_exact(self) -> Status | None:
        run = self.run
        if run.best.gap <= ROUNDING:
            return Status.CONVERGED  # the gap is rounding in float64
        stopped = self.stopping.deadline.status()
        if stopped is None and run.problem.hard and not run.best.lower > 0.0:
            return Status.UNDECIDED
        return stopped

    def report(self) -> None:
        """Certify the candidate of the solver, if it has one, and adopt it; then count and report the round."""
        run = self.run
        if run.candidate is not None:
            (w, b, alpha), run.candidate = run.candidate, None
            certificate = self.certifier.certify(Point(w, b, alpha)).certificate
            run.best.adopt(Primal(w, b), alpha, certificate.lower, certificate.upper, 0.0)
        super().report()

    def _report(self, name: str, reason: str) -> None:
        """Report the incumbent, updated with the bounds of the solver."""
        incumbent = self.incumbent
        lower, upper, primal = self.run.best.result()
        incumbent.update(lower, upper, *primal)
        if name == EXACT and self._end_gap and not self.problem.hard:
            reason = TOL_REASON
        point = incumbent.point or (np.zeros(self.certifier.sample.X.shape[1]), 0.0)
        bounds = incumbent.lower, incumbent.upper, incumbent.gap
        self._append(bounds, incumbent.margin(point[0]), (name, reason), point)

    def solution(self, status: Status) -> Solution:
        """Return the best point with its certificate.

        A fit that the deadline or `max_iter` ended without a point gets one of p = 2: from a pass of dual coordinate
        descent, or the approximate solution with which automatic fits in other norms begin.

        Parameters
        ----------
        status : Status
            By the running bounds; the status of the solution follows from the certificate (`proved_status`).
        """
        best, tol = self.run.best, self.stopping.tol
        no_point = not best.primal.w.any() or (not self.problem.hard and best.gap == np.inf)
        if status in (*STOPPED, Status.MAX_ITER) and no_point and best.gap > tol:
            if self.problem.euclidean:
                self.run = self.run.with_algorithm(DualCoordinateDescent())
                self.run.full_passes(1)
                self.run.evaluate_iterate()
            else:
                self.run.evaluate_euclidean_point()
            self.rounds += 1
            reason = "nothing was found before the end: an approximate solution at p = 2"
            self._report(DualCoordinateDescent.name, reason)
        point, task = Point(*best.result()[2], best.alpha), self.task
        found = self.certifier.certify(point)
        ended = status in (Status.CERTIFIED, Status.STALLED, Status.CONVERGED)
        if ended and not (found.certificate.gap <= tol or self.problem.hard or self.job.last):
            larger, *_ = tight_points(task.problem, task.patterns, task.y, task.weights, point[:2], tol)
            found = min(
                found,
                self.certifier.certify(Point(*larger, point.alpha)),
                key=lambda one: one.certificate.gap,
            )
        w, b, alpha, certificate = found
        finite = np.isfinite(w).all() and np.isfinite(b)
        status = proved_status(status, self.problem, certificate, tol, finite)
        results = self.run.algorithm.measure(self.run)
        return Solution(w, b, alpha, status, self.rounds, self.history, certificate, results=results)


class GramAttempt(Attempt):
    """An attempt at a problem on rows of a kernel.

    Parameters
    ----------
    job : KernelJob
    rows : KernelRows
        Kernel rows, computed when needed and kept within a budget of memory.
    sample : KernelSample
        The same rows, for the exact stage.
    stopping : Stopping
    """

    run: GramRun

    def __init__(self, job: KernelJob, rows: KernelRows, sample: KernelSample, stopping: Stopping) -> None:
        super().__init__(job, stopping, [])
        self.job, self.sample = job, sample
        product_rounding = EPS * float(rows.diagonal.max(initial=0.0)) ** 0.5
        self.margin_rounding = MARGIN_ROUNDING_FACTOR * product_rounding
        task = GramTask(job.problem, rows, job.y, job.weights, job.start, job.label)
        rng = np.random.default_rng(job.seed)
        self.run = GramRun(task, job.algorithm, stopping.tol, rng, stopping.deadline.interrupted)
        self.run.best.last = job.last
        if self.problem.hard:
            self.run.look_for_zero_rows()

    @property
    def point(self) -> KernelPoint:
        """The best dual variables, and the best primal point or, if that is the result, the last."""
        return KernelPoint(self.run.best.alpha, *self.run.best.result()[2])

    def rules_out_separator(self) -> bool:
        """Return whether no separator exists; decided once, after `KERNEL_ROUNDS_BEFORE_VERDICT` rounds without one."""
        due = self.rounds == KERNEL_ROUNDS_BEFORE_VERDICT and not self.run.best.lower > 0.0
        due = due and not self.run.algorithm.decides
        return self.problem.hard and due and self.job.inseparable()

    def _exact(self) -> Iterator[None]:
        finish_gram(self.run.best, self.sample, self.stopping.deadline.interrupted)
        yield

    def _status_of_exact(self) -> Status | None:
        return Status.CONVERGED if self.run.best.gap <= ROUNDING else None

    def _report(self, name: str, reason: str) -> None:
        """Report the bounds of the solver; the margin of a soft problem is 1 / sqrt(2 * primal objective)."""
        lower, upper, _ = self.run.best.result()
        margin = lower
        if not self.problem.hard:
            margin = (2.0 * upper) ** -0.5 if upper > 0.0 else np.inf
        self._append((lower, upper, self.problem.gap(lower, upper)), margin, (name, reason), self.point)


def proved_status(status: Status, problem: Problem, bounds: Any, tol: float, finite: Any) -> Status:
    """Return the status that follows from certified bounds.

    Parameters
    ----------
    status : Status
        By the running bounds, which may be off by rounding.
    problem : Problem
    bounds : Certificate or Bounds
    tol : float
    finite : bool
        Whether all entries of the point are finite.
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
