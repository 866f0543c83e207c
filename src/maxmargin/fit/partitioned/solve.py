"""The driver of fits of partitioned rows: pass after pass, until every binary problem is certified."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np

from ...certificates.certificate import Certificate, Fingerprint
from ...data.partitions import Partitions
from ...problem.problem import Problem
from ...problem.status import Status
from ..report import Report, Stopping
from .bounds import empty_certificate
from .coordinates import Coordinates
from .newton import SETTINGS, NewtonRun, Settings
from .sample import DrawnRows, count_classes, draw_rows, start_point
from .sums import PassResult, Sums, pass_sums

STAGE = "partitioned-newton"
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


def solve_partitioned(
    partitions: Partitions,
    problem: Problem,
    labels: Sequence[Any],
    rows: int,
    stopping: Stopping,
    seed: int,
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
    rows : int
        Rows that are kept in memory.
    stopping : Stopping
        `max_iter` is the largest number of passes.
    seed : int
        Of the sample.
    settings : Settings
    """
    deadline, coordinates = stopping.deadline, Coordinates(problem, partitions.shape[1])
    counts = partitions.reduce(partial(count_classes, len(labels)), deadline.interrupted)
    drawn = None
    if counts is not None:
        drawn = draw_rows(partitions, counts, rows, np.random.default_rng(seed), deadline.interrupted)
    positives = [1] if len(labels) == 2 else list(range(len(labels)))
    if drawn is None:
        status = deadline.status() or Status.STALLED
        return [_without_pass(coordinates, partitions.shape, status) for _ in positives]
    fit = _Fit(partitions, coordinates, stopping, [labels[k] for k in positives])
    fit.begin(positives, drawn, rows, seed, settings)
    status = fit.run()
    return [fit.solution(k, status) for k in range(len(positives))]


def _without_pass(coordinates: Coordinates, shape: tuple[int, int], status: Status) -> PartitionedSolution:
    """Return the solution of a fit that was stopped before the first pass: w = 0, and no bound."""
    certificate = empty_certificate(coordinates.problem, shape)
    return PartitionedSolution(np.zeros(coordinates.d), 0.0, status, 0, [], certificate)


class _Fit:
    """The runs of all binary problems of a fit, which share the passes."""

    def __init__(
        self, partitions: Partitions, coordinates: Coordinates, stopping: Stopping, labels: list[Any]
    ) -> None:
        self.partitions, self.coordinates, self.stopping = partitions, coordinates, stopping
        self.labels: list[Any] = [None] if len(labels) == 1 else labels
        self.runs: list[NewtonRun] = []
        self.histories: list[list[Report]] = [[] for _ in labels]
        self.fingerprints: list[Fingerprint | None] = [None for _ in labels]

    def begin(self, positives: list[int], drawn: DrawnRows, rows: int, seed: int, settings: Settings) -> None:
        """Solve the sample for every binary problem."""
        kept = max(int(settings.sample_share * rows), 2)
        nearest = max((rows - kept) // len(positives), 1)
        for positive in positives:
            points = start_point(self.coordinates.problem, drawn, positive, self.stopping.deadline, seed)
            start, half = (self.coordinates.vector(point.w, point.b) for point in points)
            run = NewtonRun(
                self.coordinates, positive, drawn, nearest, self.stopping.tol, (start, half), settings
            )
            run.reduced_sample(kept)
            self.runs.append(run)

    def run(self) -> Status:
        """Make passes until all problems are certified; return the status of the others."""
        deadline, interrupted = self.stopping.deadline, self.stopping.deadline.interrupted
        for _ in range(self.stopping.max_iter):
            open_runs = [k for k in range(len(self.runs)) if self._is_open(k)]
            if not open_runs:
                return Status.STALLED
            queries = tuple(self.runs[k].query() for k in open_runs)
            sums = self.partitions.total(partial(pass_sums, self.coordinates, queries), interrupted)
            if sums is None:
                return deadline.status() or Status.STALLED
            self._advance(open_runs, sums, interrupted)
            if deadline.interrupted():
                return deadline.status() or Status.STALLED
        return Status.MAX_ITER

    def _is_open(self, k: int) -> bool:
        run = self.runs[k]
        return run.gap > self.stopping.tol and run.idle < run.settings.max_idle

    def _advance(self, open_runs: list[int], sums: PassResult, interrupted: Callable[[], bool]) -> None:
        """Pass the sums on to their runs, and report the bounds."""
        for k, part in zip(open_runs, sums.parts, strict=True):
            run = self.runs[k]
            self.fingerprints[k] = self._fingerprint(part)
            run.advance(part, interrupted)
            w, b = self.coordinates.point(run.best)
            length = float(np.sqrt(run.best @ (self.coordinates.regular * run.best)))
            self.stopping.report(
                self.histories[k], (w, b), lower=run.lower, upper=run.upper, gap=run.gap,
                presentations=self.partitions.passes * self.partitions.shape[0], steps=0, stage=STAGE,
                label=self.labels[k], margin=1.0 / length if length > 0.0 else np.inf,
                reason="rows in partitions: Newton's method, with the rows near the margin in memory",
            )  # fmt: skip

    def _fingerprint(self, sums: Sums) -> Fingerprint:
        return Fingerprint(sums.rows, self.coordinates.d, sums.positives, sums.checksum, sums.scale)

    def solution(self, k: int, status: Status) -> PartitionedSolution:
        """Return the best point of a problem; `status` is that of the fit, if the gap exceeds `tol`."""
        run, history, fingerprint = self.runs[k], self.histories[k], self.fingerprints[k]
        problem = self.coordinates.problem
        certificate = empty_certificate(problem, self.partitions.shape)
        if fingerprint is not None:
            certificate = Certificate(
                problem, run.lower, run.upper, np.zeros(0, np.int64), np.zeros(0), fingerprint
            )
            if run.proof is not None:
                certificate = run.proof.certificate(self.coordinates, run.upper, fingerprint)
        status = Status.CERTIFIED if run.gap <= self.stopping.tol else status
        return PartitionedSolution(
            *self.coordinates.point(run.best), status, len(history), history, certificate
        )
