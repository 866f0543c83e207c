"""The loop: one binary task, solver after solver, until its certified gap is at most `tol`.

The policy lists the solvers, each with a budget of row visits. Every round of a solver is reported. On rows of data its
points are certified as they come, on the caller's data; a kernel problem is solved by the bounds of its solver, and its
best point is certified at the end. One function (`Fit.status`) decides when a fit ends.
"""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from copy import copy
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ..algorithms.online.dual_coordinate_descent import DualCoordinateDescent
from ..algorithms.programs import Decomposition, Program
from ..certificates.certificate import Certificate
from ..certificates.gram import KernelPoint, KernelProblem, KernelSample, certified
from ..certificates.row_pass import NEGLIGIBLE_ERROR, Bounds, certify
from ..certificates.sample import Sample
from ..certificates.verdicts import Inseparable, LinearSeparator, Undecided
from ..numerics.progress import StopCheck
from ..numerics.sums import EPS, Plain, norm
from ..problem.problem import Problem, Status
from ..solvers.decomposition import FEW_ROWS, KernelRows
from ..solvers.iterate import Point
from ..solvers.rows import centred_rows
from ..solvers.semismooth import points
from .best import ROUNDING, Best, GramBest, Primal, canonical_multiple, primal_point
from .exact import (
    RUNNING_GAP_SHARE,
    ends_at_tol,
    finish,
    is_small,
    tight_points,
)
from .policy import Stage, stages
from .report import Job, Report, SelectedRows, Solution, Stopping, status_at_end
from .schedules import CONVERGED_GAP, SCHEDULES, full_order, sweep, working_sets
from .state import GramRun, Progress, Run, point_of_class_means, starting_point

# Statuses of a fit that the deadline ended.
STOPPED = (Status.MAX_TIME, Status.INTERRUPTED)
# A point of an online algorithm is certified if its gap has fallen below this share of that of the last certified one.
# A larger share costs more certificates, each a pass over the rows; with a smaller one the reported gap is up to
# 1 / CERTIFIED_SHARE times too large. A round value; not tuned.
CERTIFIED_SHARE = 0.5
# Share of `tol` at which a fit ends by the bounds of its solver though the certificate is above `tol`: rounding has
# the rest. A round value; not tuned.
STALLED_SHARE = 0.1
# Where the optimality conditions hold, a gap up to ROUNDING_TOL_SHARE * `tol` is rounding.
ROUNDING_TOL_SHARE = 1e-2
# Rounds without a separator before separability is decided, on rows of data and on rows of a kernel. The decision costs
# as much as a few rounds on rows of data, and as much as many rounds on rows of a kernel. Chosen on the data sets of
# benchmarks.before_after.
ROUNDS_BEFORE_VERDICT, KERNEL_ROUNDS_BEFORE_VERDICT = 3, 20
# An upper bound of all margins counts as 0 if it is below this factor times eps max k(x, x)^(1/2), the rounding error
# of one product. The factor allows for the accumulation of rounding errors in the scores. A round value; not tuned.
MARGIN_ROUNDING_FACTOR = 100.0


class Fit(ABC):
    """A binary task while it is solved: the present solver, what is proved, and the reports.

    Parameters
    ----------
    job : Job
    stopping : Stopping
    best : Best
        What is proved.
    run : Progress
        Without rounds.

    Attributes
    ----------
    run : Progress
        The state of the present solver.
    rounds : int
        Number of rounds so far.
    history : list of Report
    verdict : Verdict or None
        The verdict on separability of a hard margin, if it was asked for.
    """

    # an upper bound of a hard margin up to this value is rounding: there is no separator
    margin_rounding = 0.0

    def __init__(self, job: Job, stopping: Stopping, best: Best, run: Progress) -> None:
        self.job, self.stopping, self.problem = job, stopping, job.task.problem
        self.best, self.run, self.rounds, self.verdict, self.max_visits = best, run, 0, None, np.inf
        self.algorithm: Any = None
        self.check: Any = stopping.deadline.interrupted
        self.history: list[Report] = []
        self._rounds: Iterator[None] | None = None

    def solve(self, plan: Sequence[Stage]) -> Status:
        """Run the solvers of the plan in their order; return the status with which the last of them ended.

        A solver ends when it has no further point, when its budget is spent, or with a status. It is left out where the
        gap is small enough already (`Stage.goal`). The next one follows unless the deadline has passed, or there is no
        separator.
        """
        status = None
        for stage in plan:
            if self.history and self.best.gap <= stage.goal:
                continue
            status = self.begin(stage)
            rounds = self._rounds if stage.points is None else stage.points(self)
            for _ in (rounds or ()) if status is None else ():
                self.rounds += stage.points is None or not self.rounds
                status = self.status(stage)
                self.report(stage.name, stage.reason)
                if status in (None, Status.MAX_ITER):  # the callback may have ended the fit
                    status = self.stopping.deadline.status() or status
                status = status or self.without_separator(stage)
                if status is not None or self.is_spent(stage):
                    break
            else:
                status = status or self.end_of(stage)
            if self.best.gap <= ROUNDING:
                status = Status.CONVERGED
                break
            if status in (*STOPPED, Status.UNDECIDED):
                break
        return Status.CERTIFIED if self.best.gap <= self.stopping.tol else status or Status.STALLED

    def begin(self, stage: Stage) -> Status | None:
        """Begin the solver of a stage; return the status if the fit has ended for it.

        A stage with the present algorithm continues its rounds; another algorithm gets a new state.
        """
        self.max_visits = stage.max_row_visits
        if stage.points is not None or stage.algorithm is None:
            return self.stopping.deadline.status()
        if stage.algorithm is not self.algorithm:
            self.algorithm, self._rounds = stage.algorithm, self.rounds_of(stage.algorithm)
        return self.ends() if self.rounds else self.stopping.deadline.status()

    def is_spent(self, stage: Stage) -> bool:
        """Return whether the budget of row visits of the stage is spent."""
        return self.rounds >= stage.min_rounds and self.run.presentations >= stage.max_row_visits

    def ends(self) -> Status | None:
        """Return the status with which the fit ends whatever is proved; None if it goes on."""
        if self.problem.hard and self.run.best.upper <= self.margin_rounding:
            return Status.UNDECIDED  # until the verdict on separability
        if not self.run.finite:
            return Status.NOT_FINITE
        if self.run.converged:
            return Status.CONVERGED
        stopped = self.stopping.deadline.status()
        return stopped or (Status.MAX_ITER if self.rounds >= self.stopping.max_iter else None)

    def end_of(self, stage: Stage) -> Status | None:
        """Return the status of a solver that has no further point; None if the next one may reach a smaller gap."""
        stopped = self.stopping.deadline.status()
        if stopped is not None or stage.points is not None:
            return stopped
        batch = stage.algorithm is not None and stage.algorithm.schedule == "points"
        return Status.CONVERGED if self.run.converged or (batch and self.best.gap <= CONVERGED_GAP) else None

    def report(self, name: str, reason: str) -> None:
        """Append the report of a round to the history, and pass it to the callback."""
        best, run, deadline = self.best, self.run, self.stopping.deadline
        report = Report(
            len(self.history) + 1, time.perf_counter() - deadline.began, best.lower, best.upper, best.gap,
            run.presentations, run.steps, name, self.job.task.label, best.margin(), reason,
        )  # fmt: skip
        self.history.append(report)
        self.stopping.on_report(report, deadline)

    @abstractmethod
    def rounds_of(self, algorithm: Any) -> Iterator[None]:
        """Return the rounds of an algorithm, of which `run` becomes the state."""

    @abstractmethod
    def status(self, stage: Stage) -> Status | None:
        """Keep what the round has found; return the status with which the stage ends, None if it goes on."""

    @abstractmethod
    def without_separator(self, stage: Stage) -> Status | None:
        """Return UNDECIDED if no separator of a hard margin exists, or none could be proved; decided once."""


class LinearFit(Fit):
    """A task on rows of data. Its points are certified on the caller's data.

    Parameters
    ----------
    job : Job
    stopping : Stopping
    sample : Sample
        The caller's data, on which points are certified.
    selected : SelectedRows or None
        The places of the rows of the task in the sample; None if no row has weight 0.

    Attributes
    ----------
    task : Task
    certificate : Certificate or None
        That of the best dual point.
    """

    def __init__(self, job: Job, stopping: Stopping, sample: Sample, selected: SelectedRows | None) -> None:
        self.sample, self.selected = sample, selected
        self.certificate: Certificate | None = None
        self._separability_open = job.task.problem.hard
        best = Best(job.task.problem, sample.X.shape[1], sample.y.size)
        super().__init__(job, stopping, best, Progress(best))
        self.task = job.task
        self.estimate = np.inf  # the gap of the solver at the last point that was certified
        # the gap that is rounding where the optimality conditions hold, and that at which the exact stage ends before
        self.rounding = max(NEGLIGIBLE_ERROR, ROUNDING_TOL_SHARE * stopping.tol)
        self.exact_goal = RUNNING_GAP_SHARE * stopping.tol if ends_at_tol(self.task.patterns) else 0.0
        self.check = StopCheck(self._must_stop, stopping.deadline.remaining)
        self.rng = np.random.default_rng(job.seed)
        start = starting_point(self.task)
        if start is not None:
            self.keep(start)

    def _must_stop(self) -> bool:
        """Return whether the budget of row visits of the stage is spent, or the deadline has passed."""
        return self.run.presentations >= self.max_visits or self.stopping.deadline.interrupted()

    def rounds_of(self, algorithm: Any) -> Iterator[None]:
        if isinstance(algorithm, Program):
            return self._points(algorithm)
        return SCHEDULES[algorithm.schedule](self.begin_run(algorithm))

    def begin_run(self, algorithm: Any) -> Run:
        """Begin an algorithm of the engine, which continues the counts of the one before."""
        before = self.run
        self.run = run = Run(self.task, algorithm, self.stopping.tol, self.rng, self.check)
        run.presentations, run.steps = before.presentations, before.steps
        return run

    def _points(self, algorithm: Program) -> Iterator[None]:
        """Certify the iterates of a batch solver, one in each round, at the best multiple and intercept of w.

        A point that its solver estimates to be near is left as it is. Each counts as a pass.
        """
        for w, b, alpha, *estimate in algorithm.iterates(self.task, self.stopping.tol, self.check):
            near = bool(estimate and estimate[1])
            w, alpha = w.astype(float, copy=False), alpha.astype(float, copy=False)  # of rows in float32
            w, b = (w, b) if near else primal_point(self.task, w, b)[:2]
            self._keep_near(Point(w, b, alpha), near)
            self.run.presentations += self.task.y.size
            yield

    def keep(self, point: Point) -> Certificate:
        """Certify a point of the task on the caller's data, and keep its parts that are better."""
        w, b, alpha = point
        if self.selected is not None:
            alpha = self.selected.restore(alpha)
        found = certify(self.problem, self.sample, w, b, alpha, self.stopping.tol)
        self.best.keep(Primal(w, b), alpha, found.lower, found.upper)
        if self.best.alpha is alpha or self.certificate is None:
            self.certificate = found
        return found

    def status(self, stage: Stage) -> Status | None:
        run, tol = self.run, self.stopping.tol
        if stage.points is not None:  # these certify their points
            return None
        ends, estimate = self.ends(), run.best.gap
        if isinstance(run, Run):  # the points of batch solvers are certified as they come
            falls = estimate == np.inf or estimate < CERTIFIED_SHARE * self.estimate
            near = estimate <= RUNNING_GAP_SHARE * tol < self.estimate
            if ends or falls or near or self.algorithm.schedule == "points":
                self.estimate = estimate
                self._keep_near(run.point(), near)
        if self.best.gap <= tol:
            return Status.CERTIFIED
        return Status.STALLED if isinstance(run, Run) and estimate <= STALLED_SHARE * tol else ends

    def _keep_near(self, point: Any, near: bool) -> None:
        """Certify a point; where it is near the optimum and above `tol`, a multiple of it too (`tight_points`)."""
        w, b, alpha = point[:3]
        found, problem, tol = self.keep(Point(w, b, alpha)), self.problem, self.stopping.tol
        if near and found.gap > tol and problem.loss == "hinge" and not problem.hard:
            task = self.task
            larger, *_ = tight_points(task.problem, task.patterns, task.y, task.weights, (w, b), tol)
            self.keep(Point(*larger, alpha))

    def without_separator(self, stage: Stage) -> Status | None:
        run, due = self.run, ROUNDS_BEFORE_VERDICT if stage.verdict_after else 1
        if (
            not self._separability_open
            or self.best.lower > 0.0
            or self.rounds < due
            or self.algorithm.decides
        ):
            return None
        # a round of a `Program` costs as much as the verdict
        if not isinstance(self.algorithm, Program) and run.presentations < stage.verdict_after:
            return None
        self._separability_open = False
        self.verdict = self.job.separability(None)
        return Status.UNDECIDED if isinstance(self.verdict, Inseparable | Undecided) else None

    def exact(self) -> Iterator[None]:
        """Run the active-set method; then yield once."""
        problem, patterns = self.task.problem, self.task.patterns
        rows = patterns.shared(("centred rows", problem), lambda: centred_rows(problem, patterns.X))
        stop = self.stopping.deadline.interrupted
        finish(self.task, rows, self.best, self.keep, stop, self.rounding, self.exact_goal)
        yield


def solve(job: Job, stopping: Stopping, sample: Sample, selected: SelectedRows | None = None) -> Solution:
    """Solve one binary task on rows of data until its certified gap is at most `tol`, or another criterion ends it.

    For a hard margin the verdict on separability may replace the status, or contribute its separator.

    Parameters
    ----------
    job : Job
        In the caller's units, with rows of positive weight only.
    stopping : Stopping
    sample : Sample
        The caller's data, on which points are certified.
    selected : SelectedRows, default=None
        The places of the rows of the task in the sample; None if no row has weight 0.

    Returns
    -------
    solution : Solution
        CERTIFIED, CONVERGED or STALLED (the last solver ended with a larger gap), MAX_ITER, MAX_TIME, INTERRUPTED,
        UNDECIDED or INSEPARABLE (hard margins), NOT_FINITE.
    """
    # points that are not finite are refused
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        plan = _linear_plan(job, stopping.tol)
        fit = LinearFit(job, stopping, sample, selected)
        status = fit.solve(plan)
        if isinstance(fit.run, Run) and fit.run.best.gap < fit.estimate:  # a callback has ended the fit
            fit.keep(fit.run.point())
        if fit.certificate is None or (not fit.best.primal.w.any() and fit.best.gap > stopping.tol):
            point = point_of_class_means(fit.task)
            if fit.problem.euclidean:
                run = fit.begin_run(DualCoordinateDescent())
                sweep(run, run.h, full_order(run))
                run.evaluate_iterate()
                point = run.point()
            fit.keep(point)
            fit.rounds += 1
            fit.report("start", "nothing was found before the end: one pass, or the means of the classes")
        found = _solution(fit, status)
        if not fit.problem.hard or found.status is Status.CERTIFIED:
            return found
        return _with_separability(fit, found)


def _linear_plan(job: Job, tol: float) -> list[Stage]:
    """Return the solvers of a task on rows of data, in their order."""
    problem, patterns, exact = job.task.problem, job.task.patterns, None
    keeps_rows = job.algorithm is not None and job.algorithm.keeps_rows
    if job.exact and not keeps_rows and problem.euclidean and is_small(problem, patterns):
        goal, how = 0.0, "the optimality conditions on the support"
        if ends_at_tol(patterns):
            goal, how = RUNNING_GAP_SHARE * tol, how if problem.hard else "the first point that proves tol"
        exact = Stage(None, f"p = 2, a small problem: {how}", goal, points=LinearFit.exact)
    return stages(job, exact, tol)


def _solution(fit: LinearFit, status: Status) -> Solution:
    """Return the result of a fit that has ended with a status."""
    assert fit.certificate is not None
    certificate = replace(fit.certificate, lower=fit.best.lower, upper=fit.best.upper)
    status = proved_status(status, fit.problem, certificate, fit.stopping.tol)
    return Solution(*fit.best.primal, fit.best.alpha, status, fit.rounds, fit.history, certificate)


def proved_status(status: Status, problem: Problem, bounds: Any, tol: float) -> Status:
    """Return the status that follows from certified bounds.

    Parameters
    ----------
    status : Status
        With which the loop has ended; for kernels by bounds that may be off by rounding.
    problem : Problem
    bounds : Certificate or Bounds
    tol : float
    """
    if np.isnan([bounds.lower, bounds.upper]).any():
        return Status.NOT_FINITE
    if problem.gap(bounds.lower, bounds.upper) <= tol:
        return Status.CERTIFIED
    if problem.hard and not bounds.lower > 0.0 and status not in STOPPED:
        return Status.UNDECIDED
    return Status.STALLED if status in (Status.CERTIFIED, Status.UNDECIDED) else status


def _with_separability(fit: LinearFit, found: Solution) -> Solution:
    """Combine the solution of a hard margin with the verdict on separability, if one is known or needed.

    A proof that no separator exists gives the status INSEPARABLE, with the weights of the proof as dual variables. A
    separator replaces the solution if it is better. Otherwise the status is UNDECIDED without a positive certified
    margin.
    """
    job, deadline, run = fit.job, fit.stopping.deadline, fit.run
    # The point of an algorithm that ended by its own criterion is not replaced by the separator of the verdict: its
    # dual variables are the numbers of its updates.
    proposed = isinstance(fit.verdict, LinearSeparator) and found.status is not Status.CONVERGED
    if found.status is not Status.UNDECIDED and not proposed:
        return found
    decides = fit.algorithm is not None and fit.algorithm.decides and run.converged
    verdict = fit.verdict or job.separability(found.alpha if decides else None)
    if verdict is None:
        return replace(found, status=deadline.status() or found.status)
    if isinstance(verdict, Inseparable):
        alpha = np.zeros(fit.sample.y.size)
        alpha[verdict.support] = verdict.alpha
        certificate = certify(fit.problem, fit.sample, found.w, found.b, alpha)
        return replace(
            found, alpha=alpha, status=Status.INSEPARABLE, certificate=certificate, verdict=verdict
        )
    if isinstance(verdict, LinearSeparator) and verdict.exact is None:
        end = status_at_end(fit.stopping, found.rounds)
        _keep_separator(fit, verdict)
        found = _solution(fit, end if found.status is Status.UNDECIDED else found.status)
    if found.certificate.lower > 0.0:
        return found
    return replace(found, status=deadline.status() or Status.UNDECIDED, verdict=verdict)


def _keep_separator(fit: LinearFit, verdict: LinearSeparator) -> None:
    """Keep the separator of a verdict, at two multiples: with smallest margin one, and by a power of two.

    Multiplication by a factor that is no power of two rounds every entry of w, which may change the margin. That by a
    power of two is exact and leaves the margin as it was proved, unless weights underflow.
    """
    problem, sample, tol = fit.problem, fit.sample, fit.stopping.tol
    alpha = verdict.certificate.alpha
    if fit.selected is not None:
        alpha = fit.selected.restore(alpha)
    w, b = verdict.w, verdict.b
    with np.errstate(over="ignore", under="ignore", invalid="ignore"):
        least = float((fit.job.task.y * Plain.scores(fit.job.task.patterns.X, w, b)).min())
        multiple = canonical_multiple(least, norm(w, problem.q))
        power = int(np.frexp(multiple)[1])
        points = [(multiple * w, multiple * b), (np.ldexp(w, power), float(np.ldexp(b, power)))]
    for point in points:
        found = certify(problem, sample, point[0], point[1], alpha, tol)
        # the margin of the verdict is that of an exact multiple, and of the length |w| without an intercept's weight
        exact = np.array_equal(np.frexp(point[0])[0], np.frexp(w)[0]) and problem.intercept != "augmented"
        lower = max(found.lower, verdict.lo) if exact else found.lower
        fit.best.update_dual(alpha, found.upper)
        if fit.best.alpha is alpha:
            fit.certificate = found
        if lower * (1.0 - ROUNDING) > fit.best.lower:
            fit.best.update_primal(Primal(*point), lower)


class KernelFit(Fit):
    """A problem on rows of a kernel. Its best points are certified at the end.

    Parameters
    ----------
    job : Job
    stopping : Stopping
    """

    def __init__(self, job: Job, stopping: Stopping) -> None:
        task = job.task
        best = GramBest(task.problem, task.y, task.weights, task.rows.diagonal)
        super().__init__(job, stopping, best, Progress(best))
        self.margin_rounding = (
            MARGIN_ROUNDING_FACTOR * EPS * float(task.rows.diagonal.max(initial=0.0)) ** 0.5
        )

    def rounds_of(self, algorithm: Any) -> Iterator[None]:
        if isinstance(algorithm, Decomposition):
            return working_sets(self.run, self.job.task, self.check)
        rng = np.random.default_rng(self.job.seed)
        self.run = run = GramRun(self.job.task, algorithm, self.stopping.tol, rng, self.check)
        self.best = run.best
        return SCHEDULES[algorithm.schedule](run)

    def status(self, stage: Stage) -> Status | None:
        # the rest of `tol` is left to the rounding of kernel values
        return Status.CERTIFIED if self.best.gap <= 0.9 * self.stopping.tol else self.ends()

    def factored(self) -> Iterator[None]:
        """Take the points of Newton's method on a factor of the kernel matrix, if its rank is small."""
        task, Z = self.job.task, self.job.task.rows.factor
        if Z is not None and self.best.gap > 0.0:
            for point in points(self.problem, Z, task.y, task.weights, self.check, 0.5 * self.stopping.tol):
                self.run.best.evaluate(point.alpha, Z @ (Z.T @ (point.alpha * task.y)))
                yield

    def without_separator(self, stage: Stage) -> Status | None:
        due = self.rounds == KERNEL_ROUNDS_BEFORE_VERDICT and not self.best.lower > 0.0
        due = due and self.problem.hard and not self.algorithm.decides
        return Status.UNDECIDED if due and self.job.separability(None) is not None else None


@dataclass(frozen=True)
class KernelSolution:
    """The best point found for one problem, with its certified bounds."""

    point: KernelPoint
    bounds: Bounds
    status: Status
    rounds: int
    history: list[Report]

    @staticmethod
    def at_zero(n: int, bounds: Bounds, status: Status) -> KernelSolution:
        """Return the solution w = 0 on n rows with these bounds and this status, without a round."""
        return KernelSolution(KernelPoint(np.zeros(n), np.zeros(n), 0.0), bounds, status, 0, [])


def solve_kernel(
    sample: KernelSample, rows: KernelRows, jobs: Sequence[Job], stopping: Stopping
) -> list[KernelSolution]:
    """Solve kernel problems on the same rows, and certify the solutions.

    Each problem is solved until the gap by its solver is at most `tol` or another criterion ends it.

    Parameters
    ----------
    sample : KernelSample
    rows : KernelRows
        The rows of the kernel that the tasks share.
    jobs : sequence of Job
    stopping : Stopping
        Each problem gets an equal part of the time that remains when it begins.

    Returns
    -------
    solutions : list of KernelSolution
        In the order of `jobs`.
    """
    ended: list[tuple[KernelFit, Status]] = []
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        for k, job in enumerate(jobs):
            deadline = stopping.deadline.split(len(jobs) - k)
            fit = KernelFit(job, replace(stopping, deadline=deadline))
            goal, reason = 0.9 * stopping.tol, "a kernel matrix of small rank: Newton's method on its factor"
            plan = [Stage(job.algorithm, job.reason, goal)]
            if job.exact and not job.task.problem.hard:
                # few rows: most are solved by pairs in one set, more exactly than with a factor
                first = [replace(plan[0], max_row_visits=2.0 * rows.n)] * (rows.n <= FEW_ROWS)
                plan = [*first, Stage(None, reason, goal, points=KernelFit.factored), *plan]
            ended.append((fit, fit.solve(plan)))
        sample = copy(sample)
        sample.product = rows.product
        problems = [KernelProblem(job.task.problem, sample, job.task.y, job.task.weights) for job in jobs]
        points = [KernelPoint(fit.best.alpha, *fit.best.primal) for fit, _ in ended]
        proofs = certified(problems, points)
    return [
        KernelSolution(
            point, bounds, proved_status(status, fit.problem, bounds, stopping.tol), fit.rounds, fit.history
        )
        for (fit, status), (point, bounds) in zip(ended, proofs, strict=True)
    ]
