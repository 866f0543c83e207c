"""Kernel problems on the same rows, one after another: they share the kernel rows that are kept, and the certificates.

One computation of the kernel certifies all of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from dataclasses import dataclass, replace

import numpy as np

from ..algorithms.batch.kernel_rows import KernelRows
from ..certificates.bounds import Bounds
from ..certificates.expansions import KernelPoint, KernelProblem, all_bounds
from ..certificates.gram import KernelSample
from ..problem.status import Status
from . import gram_exact
from .attempt import GramAttempt, proved_status
from .driver import run_stages
from .policy import gram_stages
from .report import KernelJob, Report, Stopping


@dataclass(frozen=True)
class KernelSolution:
    """The best point found for one problem, with its certified bounds."""

    point: KernelPoint
    bounds: Bounds
    status: Status
    rounds: int
    history: list[Report]

    @staticmethod
    def nothing() -> KernelSolution:
        """Return the solution of a problem without rows."""
        return _at_zero(0, Bounds(0.0, 0.0, 0.0, 0.0), Status.CERTIFIED)

    @staticmethod
    def open(n: int) -> KernelSolution:
        """Return the solution of a hard margin of n rows whose rows contradict each other."""
        return _at_zero(n, Bounds(-np.inf, np.inf, 0.0, 0.0), Status.UNDECIDED)


def _at_zero(n: int, bounds: Bounds, status: Status) -> KernelSolution:
    return KernelSolution(KernelPoint(np.zeros(n), np.zeros(n), 0.0), bounds, status, 0, [])


def solve_kernel(
    sample: KernelSample, jobs: Sequence[KernelJob], stopping: Stopping, megabytes: float
) -> list[KernelSolution]:
    """Solve problems on the same rows, each until its gap is at most `tol` or another criterion ends it; certify all.

    Parameters
    ----------
    sample : KernelSample
    jobs : sequence of KernelJob
    stopping : Stopping
        Time that one problem leaves is shared by the rest.
    megabytes : float
        Budget of the rows of the kernel, which serve the solvers and the certificates.
    """
    rows = KernelRows(sample.kernel, sample.X, megabytes)
    few = rows.n <= gram_exact.FEW_ROWS  # these end exactly: no gap is small enough for their certificates
    statuses, attempts, enough = [], [], []
    with np.errstate(over="ignore", invalid="ignore"):
        for k, job in enumerate(jobs):
            deadline = stopping.deadline.split(len(jobs) - k)
            attempt = GramAttempt(job, rows, sample, replace(stopping, deadline=deadline))
            statuses.append(run_stages(attempt, gram_stages(job, rows.n)))
            attempts.append(attempt)
            enough.append(0.0 if few or not attempt.rounds else min(attempt.run.best.gap, stopping.tol))
        sample = copy(sample)
        sample.product = rows.product
        problems = [KernelProblem(job.problem, sample, job.y, job.weights) for job in jobs]
        proofs = all_bounds(problems, [attempt.point for attempt in attempts], enough)
    solutions = []
    for job, attempt, status, (bounds, point, _) in zip(jobs, attempts, statuses, proofs, strict=True):
        finite = bool(np.isfinite(point.coefficients).all() and np.isfinite(point.intercept))
        status = proved_status(status, job.problem, bounds, stopping.tol, finite)
        solutions.append(KernelSolution(point, bounds, status, attempt.rounds, attempt.history))
    return solutions
