"""Kernel problems on the same rows: solved in lockstep, first on float32 rows of the kernel, certified in float64.

The problems share the rows of the kernel that each of them needs, and one computation of it certifies all.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from ..algorithms import Decomposition
from ..algorithms.batch.kernel_rows import MEGABYTE, KernelRows
from ..certificates.bounds import Bounds
from ..certificates.expansions import KernelBounds, KernelPoint, KernelProblem, all_bounds, better
from ..certificates.gram import KernelSample
from ..kernels.functions import Precomputed
from ..problem.status import Status
from . import gram_exact
from .attempt import UNFINISHED, GramAttempt, proved_status
from .driver import run_stages
from .policy import gram_stages
from .report import KernelJob, Report, Stopping

# Smallest tol for which float32 rows are tried, and the share of the largest entry by which their entries may be off:
# their bounds then miss a smaller tol, and both precisions would be paid for.
COARSE, FINE = 1e-5, 1e-3
SINGLE = 2.0**29  # ratio of the rounding errors of float32 and float64
# Problems that are under way at once: of more, the rows of one would leave the cache before its next turn.
TOGETHER = 16


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
        none = np.zeros(0)
        return KernelSolution(
            KernelPoint(none, none, 0.0), Bounds(0.0, 0.0, 0.0, 0.0), Status.CERTIFIED, 0, []
        )

    @staticmethod
    def open(n: int) -> KernelSolution:
        """Return the solution of a hard margin of n rows whose rows contradict each other."""
        none = np.zeros(n)
        return KernelSolution(
            KernelPoint(none, none, 0.0), Bounds(-np.inf, np.inf, 0.0, 0.0), Status.UNDECIDED, 0, []
        )


@dataclass(eq=False)
class _Problem:
    """A problem between two attempts: the last attempt's end, and the best certified bounds of all.

    Attributes
    ----------
    job : KernelJob
    goal : float
        The gap that the next attempt aims at.
    last : KernelPoint or None
        The point of the last attempt.
    status : Status
        Of the last attempt, by its running bounds.
    solution : KernelSolution or None
        The best one, with its certified bounds in `proved`.
    """

    job: KernelJob
    goal: float
    last: KernelPoint | None = None
    status: Status = Status.STALLED
    rounds: int = 0
    history: list[Report] = field(default_factory=list)
    proved: KernelBounds | None = None
    solution: KernelSolution | None = None


def solve_kernel(
    sample: KernelSample, jobs: Sequence[KernelJob], stopping: Stopping, megabytes: float
) -> list[KernelSolution]:
    """Solve problems on the same rows, each until its certified gap is at most `tol` or another criterion ends it.

    Rows of the kernel are float32 numbers where that is enough for `tol`; a problem that is then not certified goes on
    with float64 rows. Float64 rows that are kept serve both the solver and the certificate.

    Parameters
    ----------
    sample : KernelSample
    jobs : sequence of KernelJob
    stopping : Stopping
    megabytes : float
        Budget of the rows of the kernel.
    """
    problems = left = [_Problem(job, stopping.tol) for job in jobs]
    for dtype in _precisions(sample, stopping.tol, megabytes):
        X = sample.X.astype(dtype, copy=False)
        rows = KernelRows(sample.kernel, X, megabytes)
        with np.errstate(over="ignore", invalid="ignore"):
            _run_in_lockstep(left, rows, sample, stopping)
            if dtype == np.float64:
                sample = replace(sample, product=rows.product)
            del rows
            left = _certify(left, sample, stopping.tol)
        if not left or stopping.deadline.interrupted():
            break
    return [one.solution for one in problems if one.solution is not None]


def _precisions(sample: KernelSample, tol: float, megabytes: float) -> list[Any]:
    """Return the precisions of the rows: float32 first where it can reach `tol`, and float64 rows exceed the memory."""
    n = sample.X.shape[0]
    if isinstance(sample.kernel, Precomputed):
        return [sample.X.dtype]
    if tol < COARSE or n <= gram_exact.FEW_ROWS or 8 * n * n <= megabytes * MEGABYTE:
        return [np.float64]
    error = sample.kernel.error(sample.X.astype(np.float32))  # whole numbers may be exact in float64 alone
    return [np.float32, np.float64] if error * SINGLE <= FINE * sample.most else [np.float64]


def _run_in_lockstep(
    problems: Sequence[_Problem], rows: KernelRows, sample: KernelSample, stopping: Stopping
) -> None:
    """Make one attempt of every problem on rows of one precision.

    Several are under way at once, so that the rows that they wait for are computed at once; one after another where
    rows for several exceed the memory, or an algorithm waits for none. Time that an attempt leaves is shared by the
    rest.
    """
    waits = all(isinstance(one.job.algorithm, Decomposition) for one in problems)
    deadlines = [stopping.deadline.split(1) for _ in problems]
    attempts = [
        _attempt(one, rows, sample, replace(stopping, tol=one.goal, deadline=deadline))
        for one, deadline in zip(problems, deadlines, strict=True)
    ]
    left, before = list(range(len(problems))), []
    while left:
        now = left[: TOGETHER if waits and rows.roomy else 1]
        if now != before:
            for k in now:
                deadlines[k].end = stopping.deadline.split(len(left) / len(now)).end
            before = now
        ended = {k for k in now if next(attempts[k], "ended")}
        left = [k for k in left if k not in ended]


def _attempt(
    problem: _Problem, rows: KernelRows, sample: KernelSample, stopping: Stopping
) -> Generator[None, None, None]:
    """Run the stages of one problem on rows of one precision; yield wherever it expects rows.

    Its state is made when it begins, as that may ask for rows already.
    """
    start = problem.job.start if problem.last is None else problem.last.alpha
    attempt = GramAttempt(problem.job, rows, sample, stopping, start, problem.rounds, problem.history)
    problem.status = yield from run_stages(attempt, gram_stages(problem.job, rows.n))
    best = attempt.run.tracker
    problem.last, problem.rounds = KernelPoint(best.alpha, best.primal.w, best.primal.b), attempt.rounds


def _certify(problems: Sequence[_Problem], sample: KernelSample, tol: float) -> list[_Problem]:
    """Certify the last points in float64, all with one computation of the kernel; return problems that should go on."""
    # the gaps that certificates need not go below; 0 for few rows, which end exactly
    few = sample.X.shape[0] <= gram_exact.FEW_ROWS
    enough = [0.0 if few or not one.history else min(one.history[-1].gap, tol) for one in problems]
    proofs = all_bounds(
        [KernelProblem(one.job.problem, sample, one.job.y, one.job.weights) for one in problems],
        [one.last for one in problems if one.last is not None],
        enough,
    )
    left = []
    for one, proof in zip(problems, proofs, strict=True):
        problem = one.job.problem
        one.proved = proof if one.proved is None else better(problem, [one.proved, proof])
        bounds, point = one.proved.bounds, one.proved.point
        finite = np.isfinite(point.coefficients).all() and np.isfinite(point.intercept)
        status = proved_status(one.status, problem, bounds, tol, finite)
        one.solution = KernelSolution(point, bounds, status, one.rounds, one.history)
        if one.status is Status.CERTIFIED and one.history:
            # the next attempt aims at less than `tol` by what the certificate lost to rounding
            lost = problem.gap(proof.bounds.lower, proof.bounds.upper) - one.history[-1].gap
            one.goal = min(max(tol - 2.0 * lost, 0.1 * tol), tol)
        # more precise rows lead no further where an algorithm ends by an accuracy of its own
        if status is Status.CONVERGED and not one.job.algorithm.convergent:
            goes_on = problem.gap(bounds.lower, bounds.upper) <= 2.0 * tol
        else:
            goes_on = status in UNFINISHED and status is not Status.MAX_ITER
        if goes_on:
            left.append(one)
    return left
