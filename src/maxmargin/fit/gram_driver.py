"""Kernel problems on the same rows, solved one after another with a common cache of kernel rows.

The kernel matrix is computed once to certify the solutions of all problems.
"""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from dataclasses import dataclass, replace

import numpy as np

from ..algorithms.batch.decomposition import KernelRows
from ..certificates.bounds import Bounds
from ..certificates.expansions import KernelPoint, KernelProblem, all_bounds
from ..certificates.gram import KernelSample
from ..problem.status import Status
from .attempt import GramAttempt, proved_status
from .driver import run_stages
from .exact import factors_whole_gram
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
    def without_rows() -> KernelSolution:
        """Return the solution of a problem without rows."""
        return _at_zero(0, Bounds(0.0, 0.0, 0.0, 0.0), Status.CERTIFIED)

    @staticmethod
    def undecided(n: int) -> KernelSolution:
        """Return the solution of a hard margin on n rows that is not solved, since a few rows prove it inseparable."""
        return _at_zero(n, Bounds(-np.inf, np.inf, 0.0, 0.0), Status.UNDECIDED)


def _at_zero(n: int, bounds: Bounds, status: Status) -> KernelSolution:
    """Return the solution w = 0 on n rows with these bounds and this status, without a round."""
    return KernelSolution(KernelPoint(np.zeros(n), np.zeros(n), 0.0), bounds, status, 0, [])


def solve_kernel(
    sample: KernelSample, jobs: Sequence[KernelJob], stopping: Stopping, megabytes: float
) -> list[KernelSolution]:
    """Solve kernel problems on the same rows, and certify the solutions.

    Each problem is solved until its running gap is at most `tol` or another criterion ends it.

    Parameters
    ----------
    sample : KernelSample
    jobs : sequence of KernelJob
    stopping : Stopping
        Each problem gets an equal part of the time that remains when it begins.
    megabytes : float
        Memory for kernel rows, which are used by the solvers and by the certificates.

    Returns
    -------
    solutions : list of KernelSolution
        In the order of `jobs`.
    """
    rows = KernelRows(sample.kernel, sample.X, megabytes)
    # Certificates end at the running gap or at `tol`. With few rows the exact stage gives the optimum, whose
    # certificate is computed as accurately as possible (gap 0).
    small = factors_whole_gram(rows.n)
    statuses, attempts, gaps = [], [], []
    with np.errstate(over="ignore", invalid="ignore"):
        for k, job in enumerate(jobs):
            deadline = stopping.deadline.split(len(jobs) - k)
            attempt = GramAttempt(job, rows, sample, replace(stopping, deadline=deadline))
            statuses.append(run_stages(attempt, gram_stages(job, rows.n)))
            attempts.append(attempt)
            gap = 0.0 if small or not attempt.rounds else min(attempt.run.best.gap, stopping.tol)
            gaps.append(np.inf if job.last else gap)  # with inf no other point is tried
        sample = copy(sample)
        sample.product = rows.product
        problems = [KernelProblem(job.problem, sample, job.y, job.weights) for job in jobs]
        proofs = all_bounds(problems, [attempt.point for attempt in attempts], gaps)
    solutions = []
    for job, attempt, status, (bounds, point) in zip(jobs, attempts, statuses, proofs, strict=True):
        finite = bool(np.isfinite(point.coefficients).all() and np.isfinite(point.intercept))
        status = proved_status(status, job.problem, bounds, stopping.tol, finite)
        solutions.append(KernelSolution(point, bounds, status, attempt.rounds, attempt.history))
    return solutions
