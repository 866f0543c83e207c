"""The driver of fits of partitioned rows: what all methods share about passes, reports and statuses."""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from ...certificates.certificate import Certificate, Fingerprint
from ...data.door import check_longest
from ...data.partitions import Partitions
from ...numerics.sums import norm
from ...problem.problem import Problem, Status
from ..report import Report, Solution, Stopping
from .sums import Coordinates, Sums, empty_certificate

# Seconds between reports within a pass: a callback ends a fit within a second, and is called rarely beside the blocks.
PROGRESS_SECONDS = 0.5


@dataclass(frozen=True, eq=False)
class PartitionedFit:
    """What a fit of partitioned rows solves, the memory it may use, and what ends it.

    Attributes
    ----------
    partitions : Partitions
        Codes of classes from 0.
    problem : Problem
    classes : sequence
        The labels of the classes: one binary problem for two classes, else one for each.
    stopping : Stopping
        `max_iter` is the largest number of passes for each problem.
    memory : float
        Bytes.
    seed : int, default=0
        That of samples, and of the order of blocks and rows.
    folder : str or path-like, default=None
        The folder of temporary files; None for that of the system.
    why : str, default=""
        The reason for which the method was chosen.
    problems : sequence of int, default=None
        The numbers of the binary problems to solve; None for all.
    """

    partitions: Partitions
    problem: Problem
    classes: Sequence[Any]
    stopping: Stopping
    memory: float
    seed: int = 0
    folder: Any = None
    why: str = ""
    problems: Sequence[int] | None = None

    @property
    def positives(self) -> list[int]:
        """The class against the rest of each binary problem."""
        found = [1] if len(self.classes) == 2 else list(range(len(self.classes)))
        return found if self.problems is None else [found[k] for k in self.problems]


class PassDriver(ABC):
    """A method for partitioned rows: the binary problems of a fit, and the passes that improve their bounds.

    A method implements `solve`, `open_problems`, `advance` and `certificate`.

    Parameters
    ----------
    fit : PartitionedFit

    Attributes
    ----------
    stage, method : str
        The name of the method, and a description of it, in reports.
    stopping : Stopping
        That of the present passes.
    coordinates : Coordinates
    positives : list of int
        The class against the rest of each binary problem.
    labels : list
        The labels in the reports.
    runs : list
        The iteration of each binary problem, as soon as it has begun, with `lower`, `upper`, `gap`, the `best` point in
        `Coordinates`, and `steps`, visits of rows that changed it.
    histories : list of list of Report
    fingerprints : list of (Fingerprint or None)
        That of the rows in the last pass.
    """

    stage: ClassVar[str]
    method: ClassVar[str]

    def __init__(self, fit: PartitionedFit) -> None:
        self.fit, self.partitions, self.stopping = fit, fit.partitions, fit.stopping
        self.coordinates = Coordinates(fit.problem, fit.partitions.shape[1])
        self.positives = fit.positives
        self.labels: list[Any] = [None] if len(fit.classes) == 2 else [fit.classes[k] for k in self.positives]
        self.runs: list[Any] = []
        self.histories: list[list[Report]] = [[] for _ in self.labels]
        self.fingerprints: list[Fingerprint | None] = [None for _ in self.labels]
        self._reported = 0.0  # seconds of the last report
        self._current = 0  # the problem of the reports within a pass

    # what a method does

    @abstractmethod
    def solve(self) -> list[Solution]:
        """Return the solutions of all problems; ValueError if the rows differ from pass to pass."""

    @abstractmethod
    def open_problems(self) -> list[int]:
        """Return the problems of the next pass; none if no further pass would improve a bound."""

    @abstractmethod
    def advance(self, problems: list[int]) -> bool:
        """Make a pass for these problems, and `report` each; return False if it was stopped."""

    @abstractmethod
    def certificate(self, k: int) -> Certificate:
        """Return the certificate of a problem that has begun."""

    # passes

    def make_passes(self) -> Status:
        """Make passes until no bound gets better, or another criterion ends them.

        Returns
        -------
        status : Status
            That of the problems whose gap exceeds `tol`.
        """
        stopping = self.stopping
        while problems := self.open_problems():
            if stopping.deadline.interrupted():
                return self.stopped()
            if max(len(self.histories[k]) for k in problems) >= stopping.max_iter:
                return Status.MAX_ITER
            self._current, self._reported, self.partitions.rows_done = problems[0], self._seconds(), 0
            if not self.advance(problems):
                return self.stopped()
        return Status.STALLED

    def stopped(self) -> Status:
        """Return the status of a fit that the deadline ended."""
        return self.stopping.deadline.status() or Status.STALLED

    def status(self, k: int, otherwise: Status) -> Status:
        """Return the status of a problem, `otherwise` if its gap exceeds `tol`."""
        return Status.CERTIFIED if self.runs[k].gap <= self.stopping.tol else otherwise

    def solution(self, k: int, status: Status) -> Solution:
        """Return the best point of a problem; `status` is that of the fit, if the gap exceeds `tol`."""
        if k >= len(self.runs):
            certificate = empty_certificate(self.coordinates.problem, self.partitions.shape)
            return Solution(np.zeros(self.coordinates.d), 0.0, np.zeros(0), status, 0, [], certificate)
        point, history = self.coordinates.point(self.runs[k].best), self.histories[k]
        return Solution(
            *point, np.zeros(0), self.status(k, status), len(history), history, self.certificate(k)
        )

    # reports

    def interrupted(self) -> bool:
        """Return whether to stop; twice a second, pass a report of the pass so far to the callback."""
        now = self._seconds()
        if now - self._reported > PROGRESS_SECONDS and self.runs:
            self._call_back(self._report_of(self._current, self.partitions.rows_done))
        return self.stopping.deadline.interrupted()

    def report(self, k: int) -> None:
        """Append the report of a problem after a pass to its history, and pass it to the callback."""
        self.histories[k].append(self._report_of(k, 0))
        self._call_back(self.histories[k][-1])

    def _call_back(self, report: Report) -> None:
        """Pass a report of a problem to the callback."""
        self._reported = report.seconds
        self.stopping.on_report(report, self.stopping.deadline)

    def _seconds(self) -> float:
        """Return the seconds since the fit began."""
        return time.perf_counter() - self.stopping.deadline.began

    def _report_of(self, k: int, rows_done: int) -> Report:
        """Return the report of a problem after a pass, or within one, of which some rows are done."""
        run = self.runs[k]
        problem, visits = self.coordinates.problem, self.partitions.passes * self.partitions.shape[0]
        length = norm(self.coordinates.point(run.best)[0], problem.q)
        margin = run.lower if problem.hard else 1.0 / length if length > 0.0 else np.inf
        reason = f"{self.method} ({self.fit.why})" if self.fit.why else self.method
        return Report(
            len(self.histories[k]) + 1, self._seconds(), run.lower, run.upper, run.gap, visits + rows_done, run.steps,
            self.stage, self.labels[k], margin, reason,
        )  # fmt: skip

    def check_rows(self, k: int, sums: Sums) -> None:
        """Store the fingerprint of the rows of a pass; raise an error if it differs from that of the last pass.

        Rows beyond the domain are refused.
        """
        check_longest(sums.longest)
        now, before = sums.data, self.fingerprints[k]
        difference = None if before is None else before.difference(now)
        if difference is not None:
            raise ValueError(
                f"the rows changed while they were read: {difference}. Fit again when the data are complete."
            )
        self.fingerprints[k] = now
