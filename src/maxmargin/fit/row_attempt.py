"""One presolved task on rows of data under way, in one set of units."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from ..algorithms import Algorithm, DualCoordinateDescent
from ..algorithms.programs import Program
from ..certificates.sample import Sample
from ..certificates.verdicts import Inseparable, Undecided, Verdict
from ..data.task import Task
from ..engine.order import Source
from ..numerics.stop_check import StopCheck
from ..problem.status import Status
from .attempt import STOPPED, UNFINISHED, Attempt
from .certifier import Certifier
from .exact import NEARLY, ends_at_tol, finish
from .incumbent import ROUNDING, Incumbent
from .policy import CONDITIONS, PROVES, Stage, fair_share
from .presolve import DistinctRows, Point, PresolveStep, ScaledUnits
from .report import Report, Solution, Stopping
from .run import Run
from .schedules import Step
from .tracker import Primal

Question = Callable[[], Verdict | None]  # a verdict on separability, one however often it is called
ENDED = (Status.CERTIFIED, Status.STALLED, Status.CONVERGED)
# With other units bounds are certified on the caller's data whenever the gap has halved: more often costs a pass each
# time, less often delays the end by up to a factor of two in the gap.
RECERTIFY = 0.5
# Rounds without a separator before it is asked whether there is one, and full passes after which it is asked anyway.
MIN_ROUNDS, MAX_PASSES = 3, 100


class RowAttempt(Attempt):
    """A presolved task with its solver.

    Parameters
    ----------
    task : Task
        In the caller's units.
    steps : sequence of PresolveStep
    distinct : DistinctRows or None
        The step that merges copies, where the problem is small.
    algorithm : Algorithm
        The first one.
    stopping : Stopping
    rng : Generator or Draws
    sample : Sample
        The caller's data.
    incumbent : Incumbent
    history : list of Report
    question : callable
        Returns a verdict on separability; None where nobody answers.

    Attributes
    ----------
    task : Task
        The presolved task.
    small : bool
        Whether it ends with the exact stage.
    """

    run: Run

    def __init__(
        self,
        task: Task,
        steps: Sequence[PresolveStep],
        distinct: DistinctRows | None,
        algorithm: Algorithm,
        stopping: Stopping,
        rng: Source,
        sample: Sample,
        incumbent: Incumbent,
        history: list[Report],
        question: Question,
    ) -> None:
        super().__init__(task, stopping, history)
        self.incumbent, self.distinct, self.question = incumbent, distinct, question
        self._doubtful = self.problem.hard
        self.small = distinct is not None
        self.steps = steps
        for step in steps:
            task = step.apply(task)
        self.task = task
        self.certifier = Certifier(self.problem, sample, steps, task, stopping.watch, incumbent)
        self._certified_gap: float | None = None  # of the last point that was certified, in these units
        check = StopCheck(self._must_stop, stopping.watch.left)
        with np.errstate(over="ignore", invalid="ignore"):  # a warm start may come from other data
            self.run = Run(task, algorithm, stopping.tol, rng, check)
            self.run.look_for_zero_rows()
            self.run.count_start()
        self._rounds = self._scheduled()

    # stages

    def advance(self) -> Step:
        step = super().advance()
        if step is Step.ITERATE:
            self._prove_candidate()
        return step

    def rules_out_separator(self) -> bool:
        # Where the first rounds found no separator, whether there is one is decided before more are spent.
        if not (self._doubtful and self._needs_verdict()):
            return False
        self._doubtful = False
        self.incumbent.verdict = self.question()
        return isinstance(self.incumbent.verdict, Inseparable | Undecided)

    def _needs_verdict(self) -> bool:
        """Return whether the algorithm has had its chance to find a separator."""
        run = self.run
        if run.lower > 0.0 or self.rounds < MIN_ROUNDS:
            return False
        if isinstance(run.algorithm, Program):  # a round of which costs as much as a verdict
            return True
        return run.presentations >= min(fair_share(run.patterns), MAX_PASSES * run.patterns.n)

    def _must_stop(self) -> bool:
        stage = self._stage
        budget = np.inf if stage is None else stage.max_row_visits
        return self.run.presentations >= budget or self.stopping.watch.interrupted()

    # iterates

    def _exact(self) -> Iterator[None]:
        run, tol, task = self.run, self.stopping.tol, self.task
        exact = self.certifier.rounding(tol)
        enough = self._enough()
        point = Point(run.w, run.b, run.alpha)
        if not (run.gap <= enough and self.certifier.certify_and_keep(point, tol).gap <= enough):
            distinct = self.distinct
            shared = distinct is not None and task.patterns is distinct.patterns
            X: Any = distinct.whole(self.problem) if distinct is not None and shared else task.patterns.X
            finish(run, X, self.certifier, exact, enough)
        yield

    def _enough(self) -> float:
        """Return the gap at which the exact stage ends; 0 where it ends with the optimum.

        With columns in other units the gap of this task may be less than the caller's.
        """
        scaled = any(isinstance(step, ScaledUnits) and step.units.columns is not None for step in self.steps)
        return NEARLY * self.stopping.tol if ends_at_tol(self.task.patterns) and not scaled else 0.0

    def _status_of_exact(self) -> Status | None:
        run = self.run
        if run.gap <= ROUNDING:
            return Status.CONVERGED  # as near as float64 comes
        stopped = self.stopping.watch.status()  # cut off: no other stage has time either
        if stopped is None and run.problem.hard and not run.lower > 0.0:
            return Status.UNDECIDED
        return stopped

    def _prove_candidate(self) -> None:
        """Certify a point that its solver expects to be good enough; else evaluate it like any other."""
        run, tol = self.run, self.stopping.tol
        if run.candidate is None:
            return
        (w, b, alpha), run.candidate = run.candidate, None
        certificate = self.certifier.certify_and_keep(Point(w, b, alpha), tol)
        if certificate.gap <= NEARLY * tol:
            run.tracker.adopt(Primal(w, b), alpha, certificate.lower, certificate.upper, 0.0)
        else:
            run.evaluate(w, b, alpha)

    # reports

    def _reason(self, stage: Stage) -> str:
        if stage.is_exact:
            return PROVES if self._enough() and not self.problem.hard else CONDITIONS
        return stage.reason

    def _report(self, name: str, reason: str) -> None:
        self._update_incumbent()
        incumbent = self.incumbent
        w, b = incumbent.point or (np.zeros(self.certifier.sample.X.shape[1]), 0.0)
        bounds = incumbent.lower, incumbent.upper, incumbent.gap
        report = self._append(bounds, incumbent.margin(w), name, reason)
        self.stopping.on_report(report, lambda: (w, b))

    def _update_incumbent(self) -> None:
        """Enter the bounds of this round: running ones in the caller's units, certified ones in others."""
        run, tol, last = self.run, self.stopping.tol, self._certified_gap
        if self.certifier.same_problem:
            self.incumbent.update(run.lower, run.upper, run.w, run.b)
        elif last is None or run.gap < RECERTIFY * last or run.gap <= NEARLY * tol < last:
            self._certified_gap = run.gap
            self.incumbent.update_from(self.certifier.certify(Point(run.w, run.b, run.alpha), tol))

    # the end

    def solution(self, status: Status) -> Solution:
        """Return the best point with its certificate, and the status that these allow."""
        if status in STOPPED and self._has_no_model():
            self._one_pass()
        run, tol = self.run, self.stopping.tol
        w, b, alpha, certificate = self.certifier.final(Point(run.w, run.b, run.alpha), tol)
        if certificate.gap <= tol:
            status = Status.CERTIFIED
        elif self.certifier.cut_short and status in ENDED:
            status = self.stopping.watch.status() or Status.MAX_TIME
        elif status is Status.CERTIFIED:  # the running bounds were off by rounding
            status = Status.STALLED
        if self.problem.hard and not certificate.lower > 0.0 and status in UNFINISHED:
            status = Status.UNDECIDED
        elif (
            certificate.lower > 0.0 and status is Status.UNDECIDED
        ):  # only the caller's units show the separator
            status = Status.STALLED
        finite = np.isfinite(w).all() and np.isfinite(b)
        if not finite or np.isnan([certificate.lower, certificate.upper]).any():
            status = Status.NOT_FINITE
        return Solution(w, b, alpha, status, self.rounds, self.history, certificate)

    def _has_no_model(self) -> bool:
        """Return whether nothing was found where a pass of dual coordinate descent makes a model."""
        run = self.run
        if not run.problem.euclidean or run.gap <= run.tol:
            return False
        return not run.w.any() or (not run.problem.hard and run.gap == np.inf)

    def _one_pass(self) -> None:
        self.run = self.run.handed_to(DualCoordinateDescent())
        self.run.passes(1)
        self.run.look()
        self.rounds += 1
        self._report(self.run.algorithm.name, "nothing was found in time: one pass over the rows")
