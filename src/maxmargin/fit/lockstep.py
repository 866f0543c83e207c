"""Kernel problems on the same rows: solved in lockstep, first on float32 rows of the kernel, certified in float64.

The problems share the rows of the kernel that each of them needs, and one computation of it certifies all.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from ..algorithms import Algorithm, Decomposition
from ..algorithms.batch.kernel_rows import MEGABYTE, KernelRows
from ..certificates.bounds import Bounds
from ..certificates.expansions import KernelBounds, KernelPoint, all_bounds, better
from ..certificates.gram import KernelSample
from ..data.task import GramTask
from ..kernels.functions import Precomputed
from ..problem.problem import Problem
from ..problem.status import Status
from .attempt import UNFINISHED, GramAttempt, proved_status
from .deadline import Deadline
from .driver import run_stages
from .gram_exact import has_few_rows
from .policy import gram_stages
from .report import Report, Stopping

# Smallest tol for which float32 rows are tried, and the share of the largest entry by which their entries may be off:
# their bounds then miss a smaller tol, and both precisions would be paid for.
COARSE, FINE = 1e-5, 1e-3
SINGLE = 2.0**29  # ratio of the rounding errors of float32 and float64
# Problems that are under way at once: of more, the rows of one would leave the cache before its next turn.
TOGETHER = 16


@dataclass(frozen=True, eq=False)
class Part:
    """One of several problems on the same rows.

    Parameters
    ----------
    problem : Problem
    y : ndarray of shape (n,), entries -1.0 and 1.0
    weights : ndarray of shape (n,), positive
    algorithm : Algorithm or Decomposition
    reason : str
        Why this algorithm was chosen.
    seed : int
        Of the order of presentation.
    label : object, default=None
        Goes into the reports; None where there is only one problem.
    start : ndarray of shape (n,), default=None
        Dual variables to begin with.
    exact : bool, default=True
        Whether small problems end with the exact stage.
    inseparable : callable
        Returns whether there is a proof that no separator exists; called once at most, of a hard margin.
    """

    problem: Problem
    y: np.ndarray
    weights: np.ndarray
    algorithm: Algorithm | Decomposition
    reason: str
    seed: int
    label: Any = None
    start: np.ndarray | None = None
    exact: bool = True
    inseparable: Callable[[], bool] = lambda: False


class _Found(NamedTuple):
    """The best point of an attempt, with bounds as good as its rows of the kernel."""

    point: KernelPoint
    status: Status
    rounds: int
    history: list[Report]


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


def solve_kernel(
    sample: KernelSample, parts: Sequence[Part], stopping: Stopping, megabytes: float
) -> list[KernelSolution]:
    """Solve problems on the same rows, each until its certified gap is at most `tol` or another criterion ends it.

    Rows of the kernel are float32 numbers where that is enough for `tol`; a problem that is then not certified goes on
    with float64 rows. Float64 rows that are kept serve both the solver and the certificate.

    Parameters
    ----------
    sample : KernelSample
    parts : sequence of Part
    stopping : Stopping
    megabytes : float
        Budget of the rows of the kernel.
    """
    solutions: dict[int, KernelSolution] = {}
    best: dict[int, KernelBounds] = {}
    left, goals = list(range(len(parts))), [stopping.tol] * len(parts)
    for dtype in _precisions(sample, stopping.tol, megabytes):
        X = sample.X.astype(dtype, copy=False)
        rows = KernelRows(sample.kernel, X, megabytes)
        some = [parts[k] for k in left]
        found = _all_attempts(
            some, rows, sample, stopping, [goals[k] for k in left], [solutions.get(k) for k in left]
        )
        if dtype == np.float64:
            sample = replace(sample, product=rows.product)
        del rows
        proofs = _certified(some, sample, found, stopping.tol)
        for k, one, proof in zip(left, found, proofs, strict=True):
            problem = parts[k].problem
            best[k] = better(problem, [best[k], proof]) if k in best else proof
            solutions[k] = _proved(problem, one, best[k], stopping.tol)
            goals[k] = _goal(problem, one, proof.bounds, stopping.tol)
        left = [k for k in left if _to_go_on(parts[k], solutions[k], stopping.tol)]
        if not left or stopping.deadline.interrupted():
            break
    return [solutions[k] for k in range(len(parts))]


def _all_attempts(
    parts: Sequence[Part],
    rows: KernelRows,
    sample: KernelSample,
    stopping: Stopping,
    goals: Sequence[float],
    last: Sequence[KernelSolution | None],
) -> list[_Found]:
    """Make one attempt of every problem on rows of one precision, to its own gap, from its last solution."""
    deadlines = [stopping.deadline.split(1) for _ in parts]
    attempts = [
        _attempt(part, rows, sample, replace(stopping, tol=goal, deadline=deadline), before)
        for part, goal, deadline, before in zip(parts, goals, deadlines, last, strict=True)
    ]
    # only decomposition waits for rows; other algorithms run to their end
    waits = all(isinstance(part.algorithm, Decomposition) for part in parts)
    with np.errstate(over="ignore", invalid="ignore"):
        return _in_lockstep(attempts, stopping.deadline, deadlines, rows, TOGETHER if waits else 1)


def _certified(
    parts: Sequence[Part], sample: KernelSample, found: Sequence[_Found], tol: float
) -> Sequence[KernelBounds]:
    """Certify the points of several problems in float64, all with one computation of the kernel."""
    with np.errstate(over="ignore", invalid="ignore"):
        return all_bounds(
            [part.problem for part in parts],
            sample,
            [part.y for part in parts],
            [part.weights for part in parts],
            [one.point for one in found],
            [_enough(one, part, tol) for one, part in zip(found, parts, strict=True)],
        )


def _precisions(sample: KernelSample, tol: float, megabytes: float) -> list[Any]:
    """Return the precisions of the rows: float32 first where it can reach `tol`, and float64 rows exceed the memory."""
    n = sample.X.shape[0]
    if isinstance(sample.kernel, Precomputed):
        return [sample.X.dtype]
    if tol < COARSE or has_few_rows(n) or 8 * n * n <= megabytes * MEGABYTE:
        return [np.float64]
    error = sample.kernel.error(sample.X.astype(np.float32))  # whole numbers may be exact in float64 alone
    return [np.float32, np.float64] if error * SINGLE <= FINE * sample.most else [np.float64]


def _to_go_on(part: Part, found: KernelSolution, tol: float) -> bool:
    """Return whether float64 rows would lead further: not where an algorithm ends by an accuracy of its own."""
    if found.status is Status.CONVERGED and not part.algorithm.convergent:
        return part.problem.gap(found.bounds.lower, found.bounds.upper) <= 2.0 * tol
    return found.status in UNFINISHED and found.status is not Status.MAX_ITER


def _goal(problem: Problem, found: _Found, proved: Bounds, tol: float) -> float:
    """Return the gap that the next attempt aims at: less than `tol` by what the certificate lost to rounding."""
    if found.status is not Status.CERTIFIED or not found.history:
        return tol
    lost = problem.gap(proved.lower, proved.upper) - found.history[-1].gap
    return min(max(tol - 2.0 * lost, 0.1 * tol), tol)


def _in_lockstep(
    attempts: Sequence[Generator[None, None, _Found]],
    whole: Deadline,
    deadlines: Sequence[Deadline],
    rows: KernelRows,
    together: int,
) -> list[_Found]:
    """Run the attempts to their ends, `together` at once: the rows that they wait for are computed at once.

    One after another where rows for several exceed the memory. Time that an attempt leaves is shared by the rest.
    """
    found: dict[int, _Found] = {}
    left, before = list(range(len(attempts))), []
    while left:
        now = left[: together if rows.roomy else 1]
        if now != before:
            for k in now:
                deadlines[k].end = whole.split(len(left) / len(now)).end
            before = now
        for k in now:
            try:
                next(attempts[k])
            except StopIteration as end:
                found[k] = end.value
        left = [k for k in left if k not in found]
    return [found[k] for k in range(len(attempts))]


def _attempt(
    part: Part, rows: KernelRows, sample: KernelSample, stopping: Stopping, last: KernelSolution | None
) -> Generator[None, None, _Found]:
    """Run the stages of one problem on rows of one precision; yield wherever it expects rows.

    Its state is made when it begins, as that may ask for rows already.
    """
    start = part.start if last is None else last.point.alpha
    task = GramTask(part.problem, rows, part.y, part.weights, start, part.label)
    rounds, history = (0, []) if last is None else (last.rounds, last.history)
    attempt = GramAttempt(
        task,
        part.algorithm,
        stopping,
        np.random.default_rng(part.seed),
        sample,
        part.inseparable,
        rounds,
        history,
    )
    status = yield from run_stages(attempt, gram_stages(rows.n, part.algorithm, part.reason, part.exact))
    best = attempt.run.tracker
    point = KernelPoint(best.alpha, best.primal.w, best.primal.b)
    return _Found(point, status, attempt.rounds, history)


def _enough(found: _Found, part: Part, tol: float) -> float:
    """Return the gap that the certificate need not go below; 0 for few rows, which end exactly."""
    if has_few_rows(part.y.size) or not found.history:
        return 0.0
    return min(found.history[-1].gap, tol)


def _proved(problem: Problem, found: _Found, proof: KernelBounds, tol: float) -> KernelSolution:
    """Return the solution with its bounds in float64, and the status that these allow."""
    bounds, point = proof.bounds, proof.point
    finite = np.isfinite(point.coefficients).all() and np.isfinite(point.intercept)
    status = proved_status(found.status, problem, bounds, tol, finite)
    return KernelSolution(point, bounds, status, found.rounds, found.history)
