"""The driver of fits of partitioned rows: what all methods share about passes, reports, statuses and checkpoints."""

from __future__ import annotations

import os
import time
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from functools import partial
from pathlib import Path
from threading import Lock
from typing import Any, ClassVar, Protocol

import numpy as np

from ...certificates.certificate import Certificate, Fingerprint
from ...data.partitions import Gathered, Partitions
from ...data.units import check_square
from ...numerics.files import check_place
from ...numerics.norms import norm
from ...problem.problem import Problem
from ...problem.status import Status
from ..report import Report, Stopping
from .bounds import empty_certificate
from .checkpoint import Checkpoint, CheckpointError, checksum, read_checkpoint
from .coordinates import Coordinates
from .scores import Evaluation, evaluate
from .sums import RowSums

# Seconds between reports within a pass: a callback ends a fit within a second, and is called rarely beside the blocks.
PROGRESS_SECONDS = 0.5


class ChangedDataError(ValueError):
    """Error of rows that changed while they were read in several passes."""


@dataclass(frozen=True, eq=False)
class PartitionedSolution:
    """The best point of one binary problem, with its certificate; attributes as of `report.Solution`."""

    w: np.ndarray
    b: float
    status: Status
    rounds: int
    history: list[Report]
    certificate: Certificate
    verdict: Any = None
    results: dict[str, float] = field(default_factory=dict)


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
        `max_iter` is the largest number of passes for each problem, those before a checkpoint included.
    memory : float
        Bytes.
    seed : int, default=0
        That of samples, and of the order of blocks and rows.
    folder : str or path-like, default=None
        The folder of temporary files; None for that of the system.
    why : str, default=""
        The reason for which the method was chosen.
    checkpoint : str or path-like, default=None
        The file in which the state is stored after every pass, and from which the fit goes on.
    problems : sequence of int, default=None
        The numbers of the binary problems to solve; None for all.
    """

    partitions: Partitions
    problem: Problem
    classes: Sequence[Any]
    stopping: Stopping
    memory: float
    seed: int = 0
    folder: str | os.PathLike[str] | None = None
    why: str = ""
    checkpoint: str | os.PathLike[str] | None = None
    problems: Sequence[int] | None = None

    @property
    def positives(self) -> list[int]:
        """The class against the rest of each binary problem."""
        found = [1] if len(self.classes) == 2 else list(range(len(self.classes)))
        return found if self.problems is None else [found[k] for k in self.problems]


class Bounded(Protocol):
    """The iteration of a binary problem, as reports show it.

    Attributes
    ----------
    lower, upper, gap : float
        The best bounds so far.
    best : ndarray of shape (size,)
        The best point, in `Coordinates`.
    steps : int
        Visits of rows that changed the point.
    """

    @property
    def lower(self) -> float: ...
    @property
    def upper(self) -> float: ...
    @property
    def gap(self) -> float: ...
    @property
    def best(self) -> np.ndarray: ...
    @property
    def steps(self) -> int: ...


def delete_needless(checkpoint: str | os.PathLike[str] | None, found: Sequence[PartitionedSolution]) -> None:
    """Delete a checkpoint if every problem is certified, or proved to be inseparable."""
    final = (Status.CERTIFIED, Status.INSEPARABLE)
    if checkpoint is not None and all(solution.status in final for solution in found):
        Path(checkpoint).unlink(missing_ok=True)


class PassDriver(ABC):
    """A method for partitioned rows: the binary problems of a fit, and the passes that improve their bounds.

    A method implements `solutions`, `open_problems`, `advance` and `certificate`, and for checkpoints `held_rows`,
    `state`, `state_of` and `restore`.

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
    runs : list of Bounded
        The iteration of each binary problem, as soon as it has begun.
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
        self._reported, self._reporting = 0.0, Lock()  # seconds of the last report
        self._current = 0  # the problem of the reports within a pass

    # what a method does

    @abstractmethod
    def solutions(self) -> list[PartitionedSolution]:
        """Return the solutions of all problems, after `resume` and `make_passes`."""

    @abstractmethod
    def open_problems(self) -> list[int]:
        """Return the problems of the next pass; none if no further pass would improve a bound."""

    @abstractmethod
    def advance(self, problems: list[int]) -> bool:
        """Make a pass for these problems, and `report` each; return False if it was stopped."""

    @abstractmethod
    def certificate(self, k: int) -> Certificate:
        """Return the certificate of a problem that has begun."""

    @abstractmethod
    def held_rows(self) -> Gathered:
        """Return the rows in memory, by which other data are noticed."""

    def state(self) -> dict[str, Any]:
        """Return the state that is not that of a single problem."""
        return {}

    @abstractmethod
    def state_of(self, k: int) -> dict[str, Any] | None:
        """Return the state of a problem; None if it has not begun."""

    @abstractmethod
    def restore(self, rows: Gathered, state: dict[str, Any], states: list[dict[str, Any] | None]) -> None:
        """Set the state, given `held_rows` in ascending order, `state`, and `state_of` each problem."""

    # passes

    def solve(self) -> list[PartitionedSolution]:
        """Solve all problems; the checkpoint is deleted if each is certified, or proved to be inseparable.

        Raises
        ------
        CheckpointError
            If the checkpoint is that of another fit.
        ChangedDataError
            If the rows differ from pass to pass.
        OSError
            If the checkpoint cannot be written.
        """
        found = self.solutions()
        delete_needless(self.fit.checkpoint, found)
        return found

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
            self.store()
        return Status.STALLED

    def stopped(self) -> Status:
        """Return the status of a fit that the deadline ended."""
        return self.stopping.deadline.status() or Status.STALLED

    def status(self, k: int, otherwise: Status) -> Status:
        """Return the status of a problem, `otherwise` if its gap exceeds `tol`."""
        return Status.CERTIFIED if self.runs[k].gap <= self.stopping.tol else otherwise

    def solution(self, k: int, status: Status) -> PartitionedSolution:
        """Return the best point of a problem; `status` is that of the fit, if the gap exceeds `tol`."""
        if k >= len(self.runs):
            certificate = empty_certificate(self.coordinates.problem, self.partitions.shape)
            return PartitionedSolution(np.zeros(self.coordinates.d), 0.0, status, 0, [], certificate)
        point, history = self.coordinates.point(self.runs[k].best), self.histories[k]
        return PartitionedSolution(*point, self.status(k, status), len(history), history, self.certificate(k))

    # reports

    def interrupted(self) -> bool:
        """Return whether to stop; twice a second, pass a report of the pass so far to the callback."""
        now = self._seconds()
        if now - self._reported > PROGRESS_SECONDS and self.runs and self._reporting.acquire(blocking=False):
            try:  # called by several threads
                self._call_back(self._current, self._report_of(self._current, self.partitions.rows_done))
            finally:
                self._reporting.release()
        return self.stopping.deadline.interrupted()

    def report(self, k: int) -> None:
        """Append the report of a problem after a pass to its history, and pass it to the callback."""
        self.histories[k].append(self._report_of(k, 0))
        self._call_back(k, self.histories[k][-1])

    def _call_back(self, k: int, report: Report) -> None:
        """Pass a report of a problem to the callback, with the best point."""
        self._reported = report.seconds
        point = self.coordinates.point(self.runs[k].best)
        self.stopping.on_report(report, lambda: point, self.stopping.deadline)

    def _seconds(self) -> float:
        """Return the seconds since the fit began."""
        return time.perf_counter() - self.stopping.deadline.began

    def _report_of(self, k: int, rows_done: int) -> Report:
        """Return the report of a problem after a pass, or within one, of which some rows are done."""
        run: Bounded = self.runs[k]
        problem, visits = self.coordinates.problem, self.partitions.passes * self.partitions.shape[0]
        length = norm(self.coordinates.point(run.best)[0], problem.q)
        margin = run.lower if problem.hard else 1.0 / length if length > 0.0 else np.inf
        reason = f"{self.method} ({self.fit.why})" if self.fit.why else self.method
        return Report(
            len(self.histories[k]) + 1, self._seconds(), run.lower, run.upper, run.gap, visits + rows_done, run.steps,
            self.stage, self.labels[k], margin, reason,
        )  # fmt: skip

    # checkpoints

    def check_rows(self, k: int, sums: RowSums) -> None:
        """Store the fingerprint of the rows of a pass; raise an error if it differs from that of the last pass.

        Rows too long for a fit in memory are refused, whether or not the sample has one of them.
        """
        check_square(sums.longest, "The longest row of X has the length")
        now, before = sums.fingerprint(self.coordinates.d), self.fingerprints[k]
        difference = None if before is None else before.difference(now)
        if difference is not None:
            raise ChangedDataError(
                f"the rows changed while they were read: {difference}. Fit again when the data are complete."
            )
        self.fingerprints[k] = now

    def _key(self) -> dict[str, Any]:
        """Return what a checkpoint has to agree in with the fit."""
        return asdict(self.coordinates.problem) | {
            "rows": self.partitions.shape[0],
            "columns": self.partitions.shape[1],
            "classes": [str(label) for label in self.fit.classes],
            "method": self.stage,
        }

    def resume(self) -> bool | None:
        """Restore the checkpoint; return whether its rows could be read, None if there is no checkpoint."""
        path = self.fit.checkpoint
        if path is None:
            return None
        check_place(path)
        stored = read_checkpoint(path, self._key())
        if stored is None:
            return None
        rows = self.partitions.gather(stored.numbers, self.stopping.deadline.interrupted)
        if rows is None:
            return False
        stored.check_rows(path, rows)
        for k, one in enumerate(stored.problems):
            self.histories[k] = [Report(**record | {"label": self.labels[k]}) for record in one["history"]]
            self.fingerprints[k] = None if one["fingerprint"] is None else Fingerprint(**one["fingerprint"])
        if not self._check_all_rows(path):
            return False
        self.partitions.passes = stored.passes
        self.restore(rows, stored.fit, [one["run"] for one in stored.problems])
        return True

    def _check_all_rows(self, path: str | os.PathLike[str]) -> bool:
        """Raise CheckpointError if rows, labels or weights are others than in the checkpoint; return False if stopped.

        One read of all rows: a problem whose stored bounds are good enough has no further pass that would notice it.
        """
        zero = np.zeros(self.coordinates.size)
        queries = tuple(Evaluation(positive, zero, 1, -np.inf) for positive in self.positives)
        found = self.partitions.reduce(
            partial(evaluate, self.coordinates, queries), self.stopping.deadline.interrupted
        )
        if found is None:
            return False
        for before, part in zip(self.fingerprints, found.parts, strict=True):
            difference = None if before is None else before.difference(part.fingerprint(self.coordinates.d))
            if difference is not None:
                raise CheckpointError(
                    f"{path} is the checkpoint of other data: {difference}; name another file, or delete it."
                )
        return True

    def store(self) -> None:
        """Write the checkpoint, if one is asked for."""
        if self.fit.checkpoint is None:
            return
        problems = [
            {
                "run": self.state_of(k),
                "fingerprint": None if fingerprint is None else asdict(fingerprint),
                "history": [asdict(report) | {"label": None} for report in history],
            }
            for k, (fingerprint, history) in enumerate(zip(self.fingerprints, self.histories, strict=True))
        ]
        rows = self.held_rows()
        Checkpoint(
            self._key(), self.partitions.passes, rows.numbers, checksum(rows), self.state(), problems
        ).write(self.fit.checkpoint)


class JointDriver(PassDriver):
    """A method whose passes serve all binary problems of a fit."""

    @abstractmethod
    def begin(self) -> bool:
        """Begin the iterations; return whether this was completed."""

    def solutions(self) -> list[PartitionedSolution]:
        begun = self.resume()
        begun = self.begin() if begun is None else begun
        status = self.make_passes() if begun else self.stopped()
        return [self.solution(k, status) for k in range(len(self.labels))]
