"""The loop: one binary task, solver after solver, until its certified gap is at most `tol`.

The policy lists the solvers, each with a budget of row visits. Every round of a solver is reported. On rows of data the
points of a `Program` are certified as they come, on all rows of the data as the door has left them; online algorithms
and decomposition go by their running bounds, and their best point is certified where these are near `tol`, or at the
end. `Fit.status` decides after each round whether the fit goes on, `Fit.ends` whether the present algorithm has ended
other than by a small gap; `proved_status` says at the end what the certified bounds show.
"""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from copy import copy
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np

from ..algorithms.programs import Decomposition, Program
from ..certificates.certificate import Certificate, Sample
from ..certificates.gram import KernelPoint, KernelProblem, KernelSample, certified
from ..certificates.row_pass import Bounds, certify
from ..certificates.verdicts import Inseparable, LinearSeparator, Undecided, Verdict
from ..numerics.progress import StopCheck
from ..numerics.sums import Plain, norm
from ..problem.problem import Problem, Status
from ..solvers.decomposition import KernelRows
from ..solvers.iterate import Point
from .best import ROUNDING, Best, GramBest, Primal, canonical_multiple, primal_point
from .exact import RUNNING_GAP_SHARE, tight_points
from .policy import Stage, kernel_stages, stages
from .report import Report, Solution, Stopping, Task, status_at_end
from .runs import GramRun, LinearRun, Progress, point_of_class_means, starting_point
from .schedules import CONVERGED_GAP, SCHEDULES, working_sets

# Statuses of a fit that the deadline ended.
STOPPED = (Status.MAX_TIME, Status.INTERRUPTED)


@dataclass(eq=False)
class Fit(ABC):
    """A binary task while it is solved: what is proved, the reports, and the state of the present solver.

    Parameters
    ----------
    problem : Problem
    label : object
        As of `Task`.
    stopping : Stopping
    best : Best
        What is proved.

    Attributes
    ----------
    run : Progress
        The state of the last algorithm.
    stage : Stage
        The present stage.
    rounds : int
        Number of rounds so far.
    history : list of Report
    """

    problem: Problem
    label: Any
    stopping: Stopping
    best: Any
    run: Any = field(init=False)
    stage: Stage = field(init=False)
    rounds: int = field(default=0, init=False)
    history: list[Report] = field(default_factory=list, init=False)

    def solve(self, planned: Iterable[Stage]) -> Status:
        """Run the planned stages in their order; return the status with which the last of them ended.

        The next one follows unless the gap is small enough (`Stage.enough`), the deadline has passed, or there is no
        separator. A stage with the algorithm of the one before continues its rounds; another one gets a new state.
        """
        self.run, status, algorithm, iterates = Progress(self.best), None, None, iter(())
        deadline = self.stopping.deadline
        for stage in planned:
            self.stage = stage
            if deadline.interrupted():
                break
            status = None
            if stage.points is None:
                if stage.algorithm is not algorithm:
                    algorithm = stage.algorithm
                    self.run, iterates = self.begin(algorithm)
                status = self.ends() if self.rounds else None  # a warm start alone is no round: one is made
            if status is None:
                status = self.solve_stage(stage, iterates if stage.points is None else stage.points(self))
            if self.best.gap <= ROUNDING:
                status = Status.CONVERGED
                break
            if (self.history and self.best.gap <= stage.enough) or status is Status.UNDECIDED:
                break
        if self.best.gap <= self.stopping.tol:
            return Status.CERTIFIED
        if status in (None, Status.MAX_ITER):
            status = deadline.status() or status
        return status or Status.STALLED

    def solve_stage(self, stage: Stage, iterates: Iterator[None]) -> Status | None:
        """Run a solver until it has no further point, its budget or the time is spent, or a status ends it.

        Return this status; None if the next one may reach a smaller gap.
        """
        deadline, by_itself = self.stopping.deadline, stage.points is not None
        name = "exact" if stage.algorithm is None else stage.algorithm.name
        for _ in iterates:
            # `max_iter` counts rounds of algorithms: a stage without one is a round only where none came before
            self.rounds += not (by_itself and self.rounds)
            status = Status.CERTIFIED if self.best.gap <= stage.enough else None
            status = status if by_itself else self.status(stage)
            self.report(name, stage.reason)
            # stopped by the callback of `report`, or by the time: no verdict is sought
            if status in (None, Status.MAX_ITER) and deadline.interrupted():
                return status
            status = status or (None if by_itself else self.without_separator(stage))
            spent = self.rounds >= stage.min_rounds and self.run.presentations >= stage.max_row_visits
            if status is not None or spent:
                return status
        if stage.algorithm is None or deadline.interrupted():
            return None
        batch = stage.algorithm.schedule == "points" and self.best.gap <= CONVERGED_GAP
        return Status.CONVERGED if self.run.converged or batch else None

    def ends(self) -> Status | None:
        """Return the status with which the present algorithm ends other than by a small gap; None if it goes on."""
        if self.problem.hard and self.run.best.upper <= self.run.best.rounding:
            return Status.UNDECIDED  # until the verdict on separability
        if not self.run.finite:
            return Status.NOT_FINITE
        if self.run.converged:
            return Status.CONVERGED
        return Status.MAX_ITER if self.rounds >= self.stopping.max_iter else None

    def report(self, name: str, reason: str, ended: bool = True) -> None:
        """Pass the report of a round to the callback; of one that has ended, append it to the history."""
        run, deadline = self.run, self.stopping.deadline
        best = run.best if run.best.gap < self.best.gap else self.best  # running bounds, or certified ones
        report = Report(
            len(self.history) + ended, time.perf_counter() - deadline.began, best.lower, best.upper, best.gap,
            run.presentations, run.steps, name, self.label, best.margin(), reason,
        )  # fmt: skip
        if ended:
            self.history.append(report)
        self.stopping.on_report(report, deadline)

    @abstractmethod
    def begin(self, algorithm: Any) -> tuple[Any, Iterator[None]]:
        """Return the state and the iterates of an algorithm."""

    def status(self, stage: Stage) -> Status | None:
        """Keep what the round has found; return the status with which the stage ends, None if it goes on."""
        return Status.CERTIFIED if self.best.gap <= stage.enough else self.ends()

    def without_separator(self, stage: Stage) -> Status | None:
        """Return UNDECIDED if no separator of a hard margin exists, or none could be proved; decided once."""
        return None


@dataclass(eq=False)
class LinearFit(Fit):
    """A task on rows of data, on which its points are certified.

    Parameters
    ----------
    problem, label, stopping, best
        As of `Fit`.
    task : Task
    sample : Sample
        Its rows, labels and weights, for certificates.

    Attributes
    ----------
    certificate : Certificate or None
        That of the best dual point.
    verdict : Verdict or None
        The verdict on separability of a hard margin, if it was asked for.
    certified_at : float
        The gap by running bounds when the last point was certified.
    """

    task: Task
    sample: Sample
    certificate: Certificate | None = field(default=None, init=False)
    verdict: Verdict | None = field(default=None, init=False)
    certified_at: float = field(default=np.inf, init=False)

    @cached_property
    def check(self) -> StopCheck:
        """Whether the budget of row visits of the stage is spent, or the deadline has passed."""
        deadline = self.stopping.deadline
        return StopCheck(
            lambda: self.run.presentations >= self.stage.max_row_visits or deadline.interrupted(),
            deadline.remaining,
        )

    @cached_property
    def rng(self) -> np.random.Generator:
        """Draws the orders of presentation of all algorithms of the fit."""
        return np.random.default_rng(self.task.seed)

    def begin(self, algorithm: Any) -> tuple[Any, Iterator[None]]:
        if isinstance(algorithm, Program):
            if isinstance(self.run, LinearRun):
                self.keep(self.run.point())
            return Progress(self.best, self.run.presentations, self.run.steps), self._points(algorithm)
        run = LinearRun(self.task, algorithm, self.stopping.tol, self.rng, self.check)
        run.begin_at_duals()
        run.presentations, run.steps = self.run.presentations, self.run.steps
        return run, SCHEDULES[algorithm.schedule](run)

    def _points(self, algorithm: Program) -> Iterator[None]:
        """Certify the iterates of a batch solver, one in each round, with the best intercept of w.

        A point that its solver estimates to be near is left as it is. Each counts as a pass.
        """
        for w, b, alpha, *estimate in algorithm.iterates(self.task, self.stopping.tol, self.check):
            near = bool(estimate and estimate[1])
            w, alpha = w.astype(float, copy=False), alpha.astype(float, copy=False)  # of rows in float32
            w, b = (w, b) if near else primal_point(self.task, w, b)[:2]
            self.keep(Point(w, b, alpha), near)
            self.run.presentations += self.task.y.size
            yield

    def keep(self, point: Point, near: bool = False) -> Certificate:
        """Certify a point, and keep its parts that are better.

        Where it is near the optimum and above `tol`, a multiple of it is certified too (`tight_points`).
        """
        w, b, alpha = point
        problem, tol = self.problem, self.stopping.tol
        found = certify(problem, self.sample, w, b, alpha, tol)
        attained, proved = (found.lower, found.upper) if problem.hard else (found.upper, found.lower)
        self.best.keep(Primal(w, b), attained, alpha, proved)
        if self.best.alpha is alpha or self.certificate is None:
            self.certificate = found
        if near and found.gap > tol and problem.loss == "hinge" and not problem.hard:
            self.keep(Point(*tight_points(self.task, w, b, tol)[0], alpha))
        return found

    def status(self, stage: Stage) -> Status | None:
        run, tol, ends = self.run, self.stopping.tol, self.ends()
        if not isinstance(stage.algorithm, Program):  # whose points are certified as they come
            # a certificate costs a pass: once `tol` is near, whenever the gap is halved, and in search of a separator
            gap, last = run.best.gap, self.certified_at
            near = gap <= RUNNING_GAP_SHARE * tol < last
            # or there is no bound yet, where a hard margin looks for a separator
            halved = not 0.5 * last <= gap < np.inf or run.algorithm.schedule == "points"
            ended = ends or self.stopping.deadline.interrupted()
            if ended or near or (halved and (self.problem.hard or last <= tol)):
                self.certified_at = gap
                self.keep(run.point(), near)
            # the solver is far below tol, and the certificate above it: rounding has the rest
            ends = Status.STALLED if gap <= 0.1 * tol else ends
        return Status.CERTIFIED if self.best.gap <= tol else ends

    def without_separator(self, stage: Stage) -> Status | None:
        # the verdict costs as much as some rounds
        algorithm, due = stage.algorithm, 3 if stage.verdict_after else 1
        decided = not self.problem.hard or self.verdict is not None
        if decided or self.best.lower > 0.0 or self.rounds < due:
            return None
        # a round of a `Program` costs as much as the verdict
        early = not isinstance(algorithm, Program) and self.run.presentations < stage.verdict_after
        if early or algorithm.decides:
            return None
        self.verdict = self.task.separability(None)
        return Status.UNDECIDED if isinstance(self.verdict, Inseparable | Undecided) else None


def solve(task: Task, stopping: Stopping) -> Solution:
    """Solve one binary task on rows of data until its certified gap is at most `tol`, or another criterion ends it.

    For a hard margin the verdict on separability may replace the status, or contribute its separator.

    Parameters
    ----------
    task : Task
        With rows of positive weight only, shifted as the door has left them.
    stopping : Stopping

    Returns
    -------
    solution : Solution
        CERTIFIED, CONVERGED or STALLED (the last solver ended with a larger gap), MAX_ITER, MAX_TIME, INTERRUPTED,
        UNDECIDED or INSEPARABLE (hard margins), NOT_FINITE.
    """
    # points that are not finite are refused
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        rows = task.rows
        best = Best(task.problem, Primal(np.zeros(rows.d), 0.0), np.zeros(rows.n))
        sample = Sample(rows.X, task.y, task.weights, rows.columns, rows.shift, rows.lengths)
        fit = LinearFit(task.problem, task.label, stopping, best, task, sample)
        if task.point is not None:
            fit.keep(starting_point(task, *task.point))
        status = fit.solve(stages(task, stopping.tol))
        # the last points of an online algorithm
        if isinstance(fit.run, LinearRun) and fit.run.best.gap < fit.certified_at:
            fit.keep(fit.run.point())
        if fit.certificate is None or (not fit.best.primal.w.any() and fit.best.gap > stopping.tol):
            fit.keep(point_of_class_means(fit.task))
            fit.rounds += 1
            fit.report("means", "nothing was found before the end: the means of the classes")
        best, verdict = fit.best, None
        status = proved_status(status, task.problem, best, stopping.tol)
        if task.problem.hard and status is not Status.CERTIFIED:
            status, verdict = _with_separability(fit, status)
        assert fit.certificate is not None
        certificate = replace(fit.certificate, lower=best.lower, upper=best.upper)
        w, b = best.primal
        return Solution(w, b, status, fit.rounds, fit.history, certificate, verdict)


def proved_status(status: Status, problem: Problem, bounds: Any, tol: float) -> Status:
    """Return the status that follows from certified bounds.

    Parameters
    ----------
    status : Status
        With which the loop has ended; for kernels by bounds that may be off by rounding.
    problem : Problem
    bounds : Best, Certificate or Bounds
    tol : float
    """
    if np.isnan([bounds.lower, bounds.upper]).any():
        return Status.NOT_FINITE
    if problem.gap(bounds.lower, bounds.upper) <= tol:
        return Status.CERTIFIED
    if problem.hard and not bounds.lower > 0.0 and status not in STOPPED:
        return Status.UNDECIDED
    return Status.STALLED if status in (Status.CERTIFIED, Status.UNDECIDED) else status


def _with_separability(fit: LinearFit, status: Status) -> tuple[Status, Verdict | None]:
    """Combine what is found for a hard margin with the verdict on separability, if one is known or needed.

    A proof that no separator exists gives the status INSEPARABLE, with the weights of the proof as dual variables. A
    separator replaces the solution if it is better. Otherwise the status is UNDECIDED without a positive certified
    margin. Return the status, and the verdict if it is the result.
    """
    task, deadline, best = fit.task, fit.stopping.deadline, fit.best
    # The point of an algorithm that ended by its own criterion is not replaced by the separator of the verdict: its
    # dual variables are the numbers of its updates.
    proposed = isinstance(fit.verdict, LinearSeparator) and status is not Status.CONVERGED
    if status is not Status.UNDECIDED and not proposed:
        return status, None
    decides = task.algorithm is not None and task.algorithm.decides and fit.run.converged
    verdict = fit.verdict or task.separability(best.alpha if decides else None)
    if verdict is None:
        return deadline.status() or status, None
    if isinstance(verdict, Inseparable):
        best.alpha = np.zeros(task.rows.n)
        best.alpha[verdict.support] = verdict.alpha
        w, b = best.primal
        fit.certificate = proof = certify(task.problem, fit.sample, w, b, best.alpha)
        best.lower, best.upper = proof.lower, proof.upper
        return Status.INSEPARABLE, verdict
    if isinstance(verdict, LinearSeparator):
        _keep_separator(fit, verdict)
        end = status_at_end(fit.stopping, fit.rounds) if status is Status.UNDECIDED else status
        status = proved_status(end, task.problem, best, fit.stopping.tol)
    if best.lower > 0.0:
        return status, None
    return deadline.status() or Status.UNDECIDED, verdict


def _keep_separator(fit: LinearFit, verdict: LinearSeparator) -> None:
    """Keep the separator of a verdict, at two multiples: with smallest margin one, and by a power of two.

    Multiplication by a factor that is no power of two rounds every entry of w, which may change the margin. That by a
    power of two is exact and leaves the margin as it was proved, unless weights underflow.
    """
    problem, sample, tol = fit.problem, fit.sample, fit.stopping.tol
    w, b, alpha = verdict.w, verdict.b, verdict.certificate.alpha
    with np.errstate(over="ignore", under="ignore", invalid="ignore"):
        least = float((fit.task.y * Plain.scores(fit.task.rows.X, w, b)).min())
        multiple = canonical_multiple(least, norm(w, problem.q))
        power = int(np.frexp(multiple)[1])
        points = [(multiple * w, multiple * b), (np.ldexp(w, power), float(np.ldexp(b, power)))]
    for point in points:
        found = certify(problem, sample, point[0], point[1], alpha, tol)
        # the margin of the verdict is that of an exact multiple, and of the length |w| without an intercept's weight
        exact = np.array_equal(np.frexp(point[0])[0], np.frexp(w)[0]) and problem.intercept != "augmented"
        lower = max(found.lower, verdict.lo) if exact else found.lower
        attained = lower if lower * (1.0 - ROUNDING) > fit.best.lower else -np.inf
        fit.best.keep(Primal(*point), attained, alpha, found.upper)
        if fit.best.alpha is alpha:
            fit.certificate = found


@dataclass(eq=False)
class KernelFit(Fit):
    """A problem on rows of a kernel. Its best points are certified at the end.

    Parameters
    ----------
    problem, label, stopping, best
        As of `Fit`.
    task : Task
    """

    task: Task

    def begin(self, algorithm: Any) -> tuple[Progress, Iterator[None]]:
        if isinstance(algorithm, Decomposition):
            return self.run, working_sets(self.run, self.task, self.stopping.deadline.interrupted)
        rng = np.random.default_rng(self.task.seed)
        run = GramRun(self.task, algorithm, self.stopping.tol, rng, self.stopping.deadline.interrupted)
        self.best = run.best
        return run, SCHEDULES[algorithm.schedule](run)

    def without_separator(self, stage: Stage) -> Status | None:
        due = self.rounds == 20 and not self.best.lower > 0.0  # it costs as much as many rounds
        decides = self.task.algorithm is not None and self.task.algorithm.decides
        due = due and self.problem.hard and not decides
        return Status.UNDECIDED if due and self.task.separability(None) is not None else None


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
    sample: KernelSample, rows: KernelRows, tasks: Sequence[Task], stopping: Stopping
) -> list[KernelSolution]:
    """Solve kernel problems on the same rows, and certify the solutions.

    Each problem is solved until the gap by its solver is at most `tol` or another criterion ends it.

    Parameters
    ----------
    sample : KernelSample
    rows : KernelRows
        The rows of the kernel that the tasks share.
    tasks : sequence of Task
    stopping : Stopping
        Each problem gets an equal part of the time that remains when it begins.

    Returns
    -------
    solutions : list of KernelSolution
        In the order of `tasks`.
    """
    ended: list[tuple[KernelFit, Status]] = []
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        for k, task in enumerate(tasks):
            left = len(tasks) - k
            part = stopping if left == 1 else replace(stopping, deadline=stopping.deadline.split(left))
            best = GramBest(task.problem, task.y, task.weights, rows.diagonal)
            fit = KernelFit(task.problem, task.label, part, best, task)
            ended.append((fit, fit.solve(kernel_stages(task, stopping.tol))))
        sample = copy(sample)
        sample.product = rows.product
        problems = [KernelProblem(task.problem, sample, task.y, task.weights) for task in tasks]
        points = [KernelPoint(fit.best.alpha, *fit.best.primal) for fit, _ in ended]
        proofs = certified(problems, points)
    return [
        KernelSolution(
            point,
            bounds,
            proved_status(status, fit.problem, bounds, stopping.tol),
            fit.rounds,
            fit.history,
        )
        for (fit, status), (point, bounds) in zip(ended, proofs, strict=True)
    ]
