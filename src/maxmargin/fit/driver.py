"""The driver: solve one binary task, stage after stage, until its certified gap is at most `tol`.

A task is presolved and solved in the stages that the policy lists: algorithms with a budget of row visits, and the
exact stage of small problems. Every round of a stage gives an iterate. The driver decides when the next stage begins
and when the fit ends. The solution is certified on the caller's data.
"""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from dataclasses import dataclass, replace

import numpy as np

from ..algorithms.batch.decomposition import KernelRows
from ..certificates.bounds import Bounds
from ..certificates.dual_variables import feasible
from ..certificates.expansions import KernelPoint, KernelProblem, all_bounds
from ..certificates.gram import KernelSample
from ..certificates.one_pass import certify
from ..certificates.rows import bounds_to
from ..certificates.separators import LinearSeparator
from ..certificates.verdicts import Inseparable, Verdict
from ..numerics.norms import norm
from ..numerics.sums import Plain
from ..problem.status import Status
from ..solvers.iterate import Point
from .attempt import STOPPED, Attempt, GramAttempt, RowAttempt, proved_status
from .certifier import CertifiedPoint, Incumbent, rank
from .exact import factors_whole_gram
from .policy import Stage, fallback, gram_stages, handover, stages
from .report import Job, KernelJob, Report, Solution, Stopping
from .tracker import ROUNDING, canonical_multiple


def solve(job: Job) -> Solution:
    """Solve one binary task until its certified gap is at most `tol`, or another criterion ends it.

    For a hard margin the verdict on separability may replace the status, or contribute its separator.

    Parameters
    ----------
    job : Job

    Returns
    -------
    solution : Solution
        CERTIFIED, CONVERGED or STALLED (the last stage ended with a larger gap), MAX_ITER, MAX_TIME, INTERRUPTED,
        UNDECIDED or INSEPARABLE (hard margins), NOT_FINITE.
    """
    task, choice, stopping = job.task, job.choice, job.stopping
    incumbent, history = Incumbent(task.problem, job.last), []
    last = (
        fallback(task.problem, task.patterns, choice.algorithm)
        if choice.automatic
        else handover(task, choice)
    )
    attempt = RowAttempt(job, incumbent, history)
    planned = stages(attempt.task, choice, last, attempt.small)
    # iterates that are not finite are refused
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        best = attempt.solution(run_stages(attempt, planned))
    if best.status is Status.UNDECIDED and not job.last:
        decides = choice.algorithm.decides and attempt.run.converged
        incumbent.verdict = job.separability(best.alpha if decides else None)
    # The point of an algorithm that ended by its own criterion is not replaced by the separator of the verdict: its
    # dual variables are the numbers of its updates.
    ended = best.status in (Status.CERTIFIED, Status.CONVERGED)
    proposed = isinstance(incumbent.verdict, LinearSeparator) and not ended
    verdict = job.separability(None) if proposed or best.status is Status.UNDECIDED else None
    if verdict is not None:
        return _with_verdict(job, best, verdict)
    if best.status is Status.UNDECIDED:
        return replace(best, status=stopping.deadline.status() or Status.UNDECIDED)
    return best


def run_stages(attempt: Attempt, planned: list[Stage]) -> Status:
    """Run the stages of one attempt in order; return the status with which the last of them ended.

    A stage ends when its solver has no further iterate, when its budget is spent, or with a status (`Attempt.status`).
    After a status other than that of the deadline the next stage is run in two cases: it is an exact stage, except a
    skippable one whose predecessor ended within its budget; or the status is CONVERGED and the next stage has another
    algorithm, which may reach a smaller gap. Without a status the next stage is always run.

    Parameters
    ----------
    attempt : Attempt
    planned : list of Stage
    """
    for stage, following in zip(planned, [*planned[1:], None], strict=True):
        rounds = attempt.begin(stage)
        status = attempt.status() if attempt.rounds and stage.algorithm is not None else None
        for _ in rounds if status is None else ():
            attempt.report()
            status = attempt.status()
            if status is None and attempt.rules_out_separator():
                return Status.UNDECIDED
            if status is not None or attempt.is_spent():
                break
        status = status or attempt.stopping.deadline.status()
        if status is None:
            continue
        if status in STOPPED or following is None:
            return status
        if following.algorithm is None:
            leads_on = not following.skippable or attempt.is_spent()
        else:
            other = stage.algorithm is not None and stage.algorithm is not following.algorithm
            leads_on = status is Status.CONVERGED and other
        if not leads_on:
            return status
    return Status.STALLED


def _with_verdict(job: Job, found: Solution, verdict: Verdict) -> Solution:
    """Combine a solution with the verdict on separability.

    A proof that no separator exists gives the status INSEPARABLE, with the weights of the proof as dual variables. A
    separator replaces the solution if it is better, except if the last iterate is the result. Otherwise the status is
    UNDECIDED without a positive certified margin.
    """
    sample, deadline = job.sample, job.stopping.deadline
    if isinstance(verdict, Inseparable):
        alpha = np.zeros(sample.y.size)
        alpha[verdict.support] = verdict.alpha
        certificate = certify(job.task.problem, sample, found.w, found.b, alpha)
        return replace(
            found, alpha=alpha, status=Status.INSEPARABLE, certificate=certificate, verdict=verdict
        )
    if isinstance(verdict, LinearSeparator) and verdict.exact is None:
        if job.last:
            return replace(found, status=status_at_end(job.stopping, found.rounds))
        found = _with_separator(job, found, verdict)
    if found.certificate.lower > 0.0:
        return found
    return replace(found, status=deadline.status() or Status.UNDECIDED, verdict=verdict)


def _with_separator(job: Job, found: Solution, verdict: LinearSeparator) -> Solution:
    """Return the better of the solution and the verdict's separator, with the dual variables of the smaller bound.

    Parameters
    ----------
    job : Job
    found : Solution
    verdict : LinearSeparator
        Its upper bound of all margins is `hi`.
    """
    problem, sample, alpha = job.task.problem, job.sample, found.alpha
    if verdict.hi < found.certificate.upper:
        alpha = verdict.certificate.alpha
        if job.selected is not None:
            alpha = job.selected.restore(Point(verdict.w, verdict.b, alpha)).alpha
    dual = feasible(problem, sample.y, sample.weights, alpha)

    def certified(point: tuple[np.ndarray, float]) -> CertifiedPoint:
        proved = bounds_to(problem, sample, *point, dual, job.stopping.tol)
        certificate = sample.certificate(problem, dual, proved)
        return CertifiedPoint(*point, alpha, certificate)

    first, second = map(certified, _scaled_separators(job, verdict))
    # the margin of the verdict is that of an exact multiple, and of the length |w| without an intercept's weight
    exact = np.array_equal(np.frexp(second.w)[0], np.frexp(verdict.w)[0])
    if exact and problem.intercept != "augmented":
        lower = max(second.certificate.lower, verdict.lo)
        second = second._replace(certificate=replace(second.certificate, lower=lower))
    own = certified((found.w, found.b))
    separator = first if first.certificate.lower >= second.certificate.lower * (1.0 - ROUNDING) else second
    best = min([own, separator], key=lambda one: rank(one.certificate))
    status = found.status
    if best.certificate.lower > 0.0 and status in (Status.UNDECIDED, Status.NOT_FINITE):
        status = status_at_end(job.stopping, found.rounds)
    status = Status.CERTIFIED if best.certificate.gap <= job.stopping.tol else status
    return replace(found, w=best.w, b=best.b, alpha=best.alpha, status=status, certificate=best.certificate)


def status_at_end(stopping: Stopping, rounds: int) -> Status:
    """Return the status of a fit at the margin of separable classes that ended above `tol`."""
    return stopping.deadline.status() or (Status.MAX_ITER if rounds >= stopping.max_iter else Status.STALLED)


def _scaled_separators(job: Job, verdict: LinearSeparator) -> list[tuple[np.ndarray, float]]:
    """Return two multiples of the verdict's separator: with smallest margin one, and by a power of two.

    Multiplication by a factor that is no power of two rounds every entry of w, which may change the margin. That by a
    power of two is exact and leaves the margin as it was proved, unless weights underflow.
    """
    w, b = verdict.w, verdict.b
    with np.errstate(over="ignore", under="ignore", invalid="ignore"):
        least = float((job.task.y * Plain.scores(job.task.patterns.X, w, b)).min())
        multiple = canonical_multiple(least, norm(w, job.task.problem.q))
        power = int(np.frexp(multiple)[1])
        return [(multiple * w, multiple * b), (np.ldexp(w, power), float(np.ldexp(b, power)))]


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
    for job, attempt, status, (found, point) in zip(jobs, attempts, statuses, proofs, strict=True):
        finite = bool(np.isfinite(point.coefficients).all() and np.isfinite(point.intercept))
        status = proved_status(status, job.problem, found, stopping.tol, finite)
        solutions.append(KernelSolution(point, found, status, attempt.rounds, attempt.history))
    return solutions
