"""The driver of fits of partitioned rows: pass after pass, until every binary problem is certified."""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from ...certificates.certificate import CHECKSUM_TOLERANCE, Certificate, Fingerprint
from ...data.partitions import Partitions
from ...problem.problem import Problem
from ...problem.status import Status, worst
from ..report import Report, Stopping
from .bounds import empty_certificate
from .checkpoint import Checkpoint, CheckpointError, read_checkpoint, restore, state_of
from .coordinates import Coordinates
from .newton import SETTINGS, NewtonRun, Settings
from .sample import DrawnRows, count_classes, draw_rows, start_point
from .sums import PassResult, Sums, pass_sums

STAGE = "partitioned-newton"
REASON = "rows in partitions: Newton's method, with the rows near the margin in memory"
PROGRESS_SECONDS = 0.5  # between reports of progress within a pass
# Copies of a gathered row, as float64 with all columns, that are in memory at the same time: as it was read, in the
# local model, and in two products of the interior points.
COPIES = 4
# Part of the memory for gathered rows and the sample; the rest holds blocks, sums and matrices of d x d.
ROWS_SHARE = 0.6


@dataclass(frozen=True, eq=False)
class PartitionedSolution:
    """The best point of one binary problem, with its certificate; attributes as of `report.Solution`."""

    w: np.ndarray
    b: float
    status: Status
    rounds: int
    history: list[Report]
    certificate: Certificate
    verdict: None = None
    results: dict[str, float] = field(default_factory=dict)


def rows_in_memory(memory: float, columns: int) -> int:
    """Return the number of gathered rows that fit in so many bytes."""
    return max(int(ROWS_SHARE * memory / (COPIES * 8.0 * (columns + 1))), 2)


@dataclass(frozen=True, eq=False)
class Budget:
    """The memory, the random numbers and the checkpoint of a partitioned fit.

    Attributes
    ----------
    rows : int
        Rows that are kept in memory.
    seed : int
        Of the sample.
    checkpoint : str or path-like, default=None
        The file in which the state is stored after every pass, and from which the fit goes on.
    """

    rows: int
    seed: int
    checkpoint: str | os.PathLike[str] | None = None


def solve_partitioned(
    partitions: Partitions,
    problem: Problem,
    labels: Sequence[Any],
    budget: Budget,
    stopping: Stopping,
    settings: Settings = SETTINGS,
) -> list[PartitionedSolution]:
    """Solve a soft margin at p = 2 on partitioned rows: one binary problem for two classes, else one for each.

    Parameters
    ----------
    partitions : Partitions
        Codes of classes from 0.
    problem : Problem
    labels : sequence
        The labels of the classes.
    budget : Budget
    stopping : Stopping
        `max_iter` is the largest number of passes.
    settings : Settings

    Raises
    ------
    CheckpointError
        If the checkpoint is that of another fit.
    ChangedDataError
        If the rows differ from pass to pass.
    """
    fit = PartitionedFit(partitions, problem, labels, budget, stopping, settings)
    # as in fits of rows in memory: interior points divide by numbers that underflow
    with np.errstate(over="ignore", invalid="ignore"):
        status = fit.run() if fit.begin() else fit.stopped()
    solutions = [fit.solution(k, status) for k in range(len(fit.labels))]
    if budget.checkpoint is not None and all(found.status is Status.CERTIFIED for found in solutions):
        Path(budget.checkpoint).unlink(missing_ok=True)
    return solutions


class ChangedDataError(ValueError):
    """Error of rows that changed while they were read in several passes."""


class PartitionedFit:
    """The runs of all binary problems of a fit, which share the passes; parameters are those of `solve_partitioned`."""

    def __init__(
        self,
        partitions: Partitions,
        problem: Problem,
        labels: Sequence[Any],
        budget: Budget,
        stopping: Stopping,
        settings: Settings,
    ) -> None:
        self.partitions, self.coordinates = partitions, Coordinates(problem, partitions.shape[1])
        self.classes, self.budget, self.stopping, self.settings = labels, budget, stopping, settings
        self.positives = [1] if len(labels) == 2 else list(range(len(labels)))
        self.labels: list[Any] = [None] if len(labels) == 2 else list(labels)
        self.runs: list[NewtonRun] = []
        self.histories: list[list[Report]] = [[] for _ in self.labels]
        self.fingerprints: list[Fingerprint | None] = [None for _ in self.labels]
        self.restored = False  # whether the state is that of a checkpoint
        self._shown = 0.0  # seconds of the last report of progress

    def begin(self) -> bool:
        """Solve a sample for every binary problem, or restore the checkpoint; return whether this was completed."""
        budget, interrupted = self.budget, self.stopping.deadline.interrupted
        kept = max(int(self.settings.sample_share * budget.rows), 2)
        nearest = max((budget.rows - kept) // len(self.positives), 1)
        stored = None if budget.checkpoint is None else read_checkpoint(budget.checkpoint, self._key())
        if stored is not None:
            return self._restore(stored, nearest)
        counts = self.partitions.reduce(partial(count_classes, len(self.classes)), interrupted)
        if counts is None:
            return False
        rng = np.random.default_rng(budget.seed)
        drawn = draw_rows(self.partitions, counts, budget.rows, rng, interrupted)
        if drawn is None:
            return False
        self.sample = drawn.some(np.sort(rng.permutation(drawn.factors.size)[:kept]))
        for positive in self.positives:
            points = start_point(
                self.coordinates.problem, drawn, positive, self.stopping.deadline, budget.seed
            )
            start, half = (self.coordinates.vector(point.w, point.b) for point in points)
            self._add_run(positive, nearest, (start, half))
        return True

    def _add_run(self, positive: int, nearest: int, start: tuple[np.ndarray, np.ndarray]) -> None:
        tol, settings = self.stopping.tol, self.settings
        self.runs.append(NewtonRun(self.coordinates, positive, self.sample, nearest, tol, start, settings))

    def _key(self) -> dict[str, Any]:
        """Return the problem, the sizes and the classes, in which a checkpoint has to agree with the fit."""
        problem, classes = asdict(self.coordinates.problem), [str(label) for label in self.classes]
        return problem | {
            "rows": self.partitions.shape[0],
            "columns": self.partitions.shape[1],
            "classes": classes,
        }

    def _restore(self, stored: Checkpoint, nearest: int) -> bool:
        """Set the state of a checkpoint; return whether the rows of its sample could be read."""
        rows = self.partitions.gather(stored.numbers, self.stopping.deadline.interrupted)
        if rows is None:
            return False
        self.sample = DrawnRows(rows, stored.factors)
        checksum = self.sample.checksum
        if abs(checksum - stored.checksum) > CHECKSUM_TOLERANCE * abs(stored.checksum):
            raise CheckpointError(
                f"{self.budget.checkpoint} is the checkpoint of other data; name another file, or delete it."
            )
        self.partitions.passes, self.restored = stored.passes, True
        zero = np.zeros(self.coordinates.size)
        for k, (positive, state) in enumerate(zip(self.positives, stored.runs, strict=True)):
            self._add_run(positive, nearest, (zero, zero))
            self.fingerprints[k], self.histories[k] = restore(self.runs[k], state, self.labels[k])
        return True

    def _store(self) -> None:
        """Write the checkpoint, if one is asked for."""
        if self.budget.checkpoint is None:
            return
        states = zip(self.runs, self.fingerprints, self.histories, strict=True)
        Checkpoint(
            self._key(), self.partitions.passes, self.sample.rows.numbers, self.sample.factors, self.sample.checksum,
            [state_of(*state) for state in states],
        ).write(self.budget.checkpoint)  # fmt: skip

    def run(self) -> Status:
        """Make passes until all problems are certified, or another criterion ends the fit."""
        for _ in range(self.stopping.max_iter):
            open_runs = [k for k, run in enumerate(self.runs) if run.is_open]
            if not open_runs:
                return worst(self._status(k, Status.STALLED) for k in range(len(self.runs)))
            queries = tuple(self.runs[k].query() for k in open_runs)
            sums = self.partitions.total(partial(pass_sums, self.coordinates, queries), self._interrupted)
            if sums is None:
                return self.stopped()
            self._advance(open_runs, sums)
            if self.stopping.deadline.interrupted():
                return self.stopped()
            self._store()
        return Status.MAX_ITER

    def stopped(self) -> Status:
        """Return the status of a fit that the deadline ended."""
        return self.stopping.deadline.status() or Status.STALLED

    def _status(self, k: int, otherwise: Status) -> Status:
        return Status.CERTIFIED if self.runs and self.runs[k].gap <= self.stopping.tol else otherwise

    def _interrupted(self) -> bool:
        """Return whether to stop; twice a second, pass a report of the rows read so far to the callback."""
        stopping, done = self.stopping, self.partitions.rows_done
        seconds = time.perf_counter() - stopping.deadline.began
        if seconds - self._shown > PROGRESS_SECONDS and done:
            self._shown = seconds
            k = next((k for k, run in enumerate(self.runs) if run.is_open), 0)
            report = self._report_of(k, seconds, done)
            w, b = self.coordinates.point(self.runs[k].best)
            stopping.on_report(report, lambda: (w, b), stopping.deadline)
        return stopping.deadline.interrupted()

    def _advance(self, open_runs: list[int], sums: PassResult[Sums]) -> None:
        """Pass the sums on to their runs, and report the bounds."""
        for k, part in zip(open_runs, sums.parts, strict=True):
            run = self.runs[k]
            self._check_same_rows(k, part)
            run.advance(part, self.stopping.deadline.interrupted)
            self._shown = time.perf_counter() - self.stopping.deadline.began
            self.histories[k].append(self._report_of(k, self._shown, 0))
            w, b = self.coordinates.point(run.best)
            self.stopping.on_report(self.histories[k][-1], lambda w=w, b=b: (w, b), self.stopping.deadline)

    def _report_of(self, k: int, seconds: float, rows_done: int) -> Report:
        """Return the report of a problem after a pass, or within one, of which some rows are done."""
        run, n = self.runs[k], self.partitions.shape[0]
        length = float(np.sqrt(run.best @ (self.coordinates.regular * run.best)))
        return Report(
            len(self.histories[k]) + 1, seconds, run.lower, run.upper, run.gap, self.partitions.passes * n + rows_done,
            0, STAGE, self.labels[k], 1.0 / length if length > 0.0 else np.inf, REASON,
        )  # fmt: skip

    def _check_same_rows(self, k: int, sums: Sums) -> None:
        """Store the fingerprint of the rows; raise ChangedDataError if it differs from that of the last pass."""
        now = sums.fingerprint(self.coordinates.d)
        before = self.fingerprints[k]
        difference = None if before is None else before.difference(now)
        if difference is not None and self.restored:
            raise CheckpointError(
                f"{self.budget.checkpoint} is the checkpoint of other data: {difference}; name another file, or "
                "delete it."
            )
        if difference is not None:
            raise ChangedDataError(
                f"the rows changed while they were read: {difference}. Fit again when the data are complete."
            )
        self.fingerprints[k] = now

    def solution(self, k: int, status: Status) -> PartitionedSolution:
        """Return the best point of a problem; `status` is that of the fit, if the gap exceeds `tol`."""
        problem, fingerprint = self.coordinates.problem, self.fingerprints[k]
        certificate = empty_certificate(problem, self.partitions.shape)
        if k >= len(self.runs):
            w, b = np.zeros(self.coordinates.d), 0.0
            return PartitionedSolution(w, b, status, 0, [], certificate)
        run = self.runs[k]
        if fingerprint is not None:
            certificate = replace(certificate, upper=run.upper, fingerprint=fingerprint)
            if run.proof is not None:
                certificate = run.proof.certificate(self.coordinates, run.upper, fingerprint)
        point, history = self.coordinates.point(run.best), self.histories[k]
        return PartitionedSolution(*point, self._status(k, status), len(history), history, certificate)
