"""One binary task under way: the solver's state, the budget of its stage, and its reports."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import Any

from ..problem.status import Status
from .exact import NEARLY
from .policy import EXACT, Stage
from .report import Report, Stopping
from .schedules import SCHEDULES, Step

STOPPED = (Status.MAX_TIME, Status.INTERRUPTED)
# Statuses of a hard margin that found no separator, and of a fit that had no time for the digits of its certificate.
UNFINISHED = (Status.MAX_ITER, Status.STALLED, Status.CONVERGED, Status.UNDECIDED, Status.NOT_FINITE)


class Attempt(ABC):
    """A task with its solver, in one set of units or one precision.

    Parameters
    ----------
    task : Task or GramTask
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

    # stages

    def begin(self, stage: Stage) -> None:
        """Enter a stage; an algorithm that was at work before goes on where it was."""
        self._stage = stage
        if stage.algorithm is None:
            self._rounds_of_stage: Iterator[Step | None] = self._exact()
            return
        if stage.algorithm is not self.run.algorithm:
            self.run = self.run.handed_to(stage.algorithm)
            self._rounds = self._scheduled()
        self._rounds_of_stage = self._rounds

    def advance(self) -> Step:
        """Let the solver of the stage go on until it has an iterate, expects rows of the kernel, or has ended."""
        step = next(self._rounds_of_stage, Step.END)
        return Step.ITERATE if step is None else step

    def is_spent(self) -> bool:
        """Return whether the stage has used its budget of row visits, or is near enough to the optimum."""
        stage = self._stage
        assert stage is not None
        if self.run.gap <= stage.near_enough:
            return True
        return self.rounds >= stage.min_rounds and self.run.presentations >= stage.max_row_visits

    def status(self) -> Status | None:
        """Return why to end after this round, None to go on."""
        run, watch = self.run, self.stopping.watch
        if run.gap <= NEARLY * run.tol:
            return Status.CERTIFIED
        if self._stage is not None and self._stage.is_exact:
            return self._status_of_exact()
        if self.problem.hard and run.upper <= self.no_margin:
            return Status.UNDECIDED  # until a verdict proves it
        if not run.finite:
            return Status.NOT_FINITE
        if run.converged:
            return Status.CONVERGED
        return watch.status() or (Status.MAX_ITER if self.rounds >= self.stopping.max_iter else None)

    def status_after_wait(self) -> Status | None:
        """Return why to end after other problems had their turn, None to go on."""
        return self.stopping.watch.status() if self.rounds else None

    @abstractmethod
    def rules_out_separator(self) -> bool:
        """Return whether to give up a hard margin, as there is, or may be, no separator."""

    def _scheduled(self) -> Iterator[Step | None]:
        return SCHEDULES[self.run.algorithm.schedule](self.run)

    @abstractmethod
    def _exact(self) -> Iterator[None]:
        """Yield once, after the active-set method."""

    @abstractmethod
    def _status_of_exact(self) -> Status | None:
        """Return why to end after the exact stage, None where the algorithm goes on."""

    # reports

    def report(self) -> None:
        """Count a round and report it."""
        stage = self._stage
        assert stage is not None
        if not stage.is_exact or not self.rounds:  # an exact stage at the end belongs to the round before
            self.rounds += 1
        name = EXACT if stage.algorithm is None else stage.algorithm.name
        self._report(name, self._reason(stage))

    def _reason(self, stage: Stage) -> str:
        return stage.reason

    @abstractmethod
    def _report(self, name: str, reason: str) -> None:
        """Append a report of the best bounds and pass it to the callback."""

    def _append(self, bounds: tuple[float, float, float], margin: float, name: str, reason: str) -> Report:
        """Append a report with these bounds (lower, upper, gap) to the history."""
        presentations, steps = self._before
        report = Report(
            len(self.history) + 1, self.stopping.watch.seconds(), *bounds, presentations + self.run.presentations,
            steps + self.run.steps, name, self.label, margin, reason,
        )  # fmt: skip
        self.history.append(report)
        return report
