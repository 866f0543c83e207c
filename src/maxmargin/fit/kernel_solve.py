"""Kernel problems: round -> report -> stop? -> bounds in float64 -> solutions.

Problems on the same rows go together: they share the rows of the kernel, and one computation of it certifies all.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, NamedTuple

import numpy as np

from ..algorithms import ALGORITHMS, Algorithm
from ..algorithms.batch.active_set import candidates
from ..algorithms.batch.cholesky import low_rank_factor
from ..algorithms.batch.decomposition import decomposition
from ..algorithms.batch.kernel_rows import MEGABYTE, KernelRows
from ..algorithms.batch.quadratic_program import quadratic
from ..certificates.bounds import Bounds
from ..certificates.expansions import KernelBounds, KernelPoint, all_bounds, better
from ..certificates.gram import KernelSample
from ..data.task import GramTask
from ..kernels.functions import Precomputed, WholeNumbers, plain
from ..problem.problem import Problem
from ..problem.status import Status
from .attempt import UNFINISHED
from .deadline import Watch
from .exact import FEW_FLOPS, MANY_ROWS, NEAR_ENOUGH, NEARLY, NEXT_TO_NONE
from .exact import FEW_ROWS as LINEAR_FEW
from .gram_run import GramRun
from .gram_tracker import GramTracker
from .incumbent import ROUNDING as EXACT
from .policy import MIN_ROUNDS as PATIENCE
from .report import Report, Stopping
from .schedules import SCHEDULES

FEW_ROWS = 500  # rows up to which the exact step has the eigenvalues of the whole Gram matrix
COARSE, FINE = 1e-5, 1e-3  # a tol that float32 rows reach, where entries are off by no more than this share
SINGLE = 2.0**29  # how much coarser float32 is
LONG = 30  # rounds of more rows, after which their kernel matrix is looked through for a small factor
IDLE, BETTER = 200, 0.999  # rounds without bounds that are so much nearer: as near as numbers come
TOGETHER = 16  # problems that are under way at once: of more, rows would seem to be old
ASKED = 20  # rounds without a separator, after which it is asked whether there is one
HOPELESS = 100.0  # margins of so many roundings of the rows are none


@dataclass(frozen=True)
class Decomposition:
    """Working sets of the rows that violate optimality most, each solved by sequential minimal optimisation.

    Stands where an incremental algorithm's name or object does.

    References
    ----------
    `maxmargin.algorithms.batch.decomposition` has them.
    """

    name: ClassVar[str] = "decomposition"
    convergent: ClassVar[bool] = True
    shuffle: ClassVar[bool] = True  # asks for no order of the rows

    def refuses(self, problem: Problem) -> str | None:
        """None: it solves every kernel problem."""
        return None


KERNEL_ALGORITHMS: dict[str, Any] = {
    Decomposition.name: Decomposition,
    **{name: rule for name, rule in ALGORITHMS.items() if rule.kernelised},
}


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
        What the reports call it; None where there is only one problem.
    start : ndarray of shape (n,), default=None
        Dual weights to begin with.
    exact : bool, default=True
        Whether small problems end with the exact stage.
    inseparable : callable
        Asked once, of a hard margin: is there a proof that no separator exists?
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


class _Walked(NamedTuple):
    """Where the rounds of one problem ended."""

    point: KernelPoint
    status: Status
    rounds: int
    history: list[Report]


@dataclass(frozen=True)
class KernelSolution:
    """The best model so far, and how far it is from the best possible."""

    point: KernelPoint
    bounds: Bounds
    status: Status
    rounds: int
    history: list[Report]

    @staticmethod
    def nothing() -> KernelSolution:
        """Of a problem without rows."""
        none = np.zeros(0)
        return KernelSolution(
            KernelPoint(none, none, 0.0), Bounds(0.0, 0.0, 0.0, 0.0), Status.CERTIFIED, 0, []
        )

    @staticmethod
    def open(n: int) -> KernelSolution:
        """Of a hard margin of n rows that nobody looked for."""
        none = np.zeros(n)
        return KernelSolution(
            KernelPoint(none, none, 0.0), Bounds(-np.inf, np.inf, 0.0, 0.0), Status.UNDECIDED, 0, []
        )


def solve_kernel(
    sample: KernelSample, parts: Sequence[Part], stopping: Stopping, megabytes: float
) -> list[KernelSolution]:
    """Solve problems on the same rows, each until its certified gap is at most `tol` or something else ends it.

    Rows of the kernel are float32 numbers where that is enough for `tol`; what turns out not to be certified goes on
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
        X = sample.X if dtype == np.float64 else plain(sample.X).astype(dtype)
        rows = KernelRows(sample.kernel, X, megabytes)
        watches = [stopping.watch.part(1) for _ in left]
        walks = [
            _walk(parts[k], rows, sample, replace(stopping, tol=goals[k], watch=watch), solutions.get(k))
            for k, watch in zip(left, watches, strict=True)
        ]
        waiting = all(
            isinstance(parts[k].algorithm, Decomposition) for k in left
        )  # others go on to their end
        with np.errstate(over="ignore", invalid="ignore"):
            walked = _in_step(walks, watches, rows, TOGETHER if waiting else 1)
        if dtype == np.float64:
            sample = replace(sample, product=rows.product)
        del rows
        some = [parts[k] for k in left]
        with np.errstate(over="ignore", invalid="ignore"):
            proofs = all_bounds(
                [part.problem for part in some],
                sample,
                [part.y for part in some],
                [part.weights for part in some],
                [solution.point for solution in walked],
                [_enough(solution, part, stopping.tol) for solution, part in zip(walked, some, strict=True)],
            )
        for k, solution, proof in zip(left, walked, proofs, strict=True):
            problem = parts[k].problem
            best[k] = better(problem, [best[k], proof]) if k in best else proof
            solutions[k] = _proved(problem, solution, best[k], stopping.tol)
            goals[k] = _goal(parts[k].problem, solution, proof.bounds, stopping.tol)
        left = [k for k in left if _to_go_on(parts[k], solutions[k], stopping.tol)]
        if not left or stopping.watch.interrupted():
            break
    return [solutions[k] for k in range(len(parts))]


def _precisions(sample: KernelSample, tol: float, megabytes: float) -> list[Any]:
    """Float32 first, where entries are good enough for what is asked and float64 rows are too many to be kept."""
    n = sample.X.shape[0]
    if isinstance(sample.kernel, Precomputed):
        return [sample.X.dtype]
    if tol < COARSE or n <= FEW_ROWS or 8 * n * n <= megabytes * MEGABYTE:
        return [np.float64]
    # whole numbers may be exact in float64 alone
    narrow = isinstance(sample.X, WholeNumbers)
    error = sample.error if narrow else sample.kernel.error(plain(sample.X).astype(np.float32))
    return [np.float32, np.float64] if error * SINGLE <= FINE * sample.most else [np.float64]


def _to_go_on(part: Part, found: KernelSolution, tol: float) -> bool:
    """Would better rows of the kernel lead further? Not where an algorithm ends by an accuracy of its own."""
    if found.status is Status.CONVERGED and not part.algorithm.convergent:
        return part.problem.gap(found.bounds.lower, found.bounds.upper) <= 2.0 * tol
    return found.status in UNFINISHED and found.status is not Status.MAX_ITER


def _goal(problem: Problem, walked: _Walked, proved: Bounds, tol: float) -> float:
    """The gap to go on to where a proof was missed: what rounding takes is asked for beforehand."""
    if walked.status is not Status.CERTIFIED or not walked.history:
        return tol
    lost = problem.gap(proved.lower, proved.upper) - walked.history[-1].gap
    return min(max(tol - 2.0 * lost, 0.1 * tol), tol)


def _in_step(
    walks: Sequence[Generator[None, None, _Walked]],
    watches: Sequence[Watch],
    rows: KernelRows,
    together: int,
) -> list[_Walked]:
    """All walks to their ends, some `together`, in step: the rows that they wait for are computed at once.

    One after another where rows for several are too many. Whoever goes on leaves their share of the time to the rest.
    """
    found: dict[int, _Walked] = {}
    left, before = list(range(len(walks))), []
    while left:
        now = left[: together if rows.roomy else 1]
        if now != before:
            for k in now:
                watches[k].take(len(left) / len(now))
            before = now
        for k in now:
            try:
                next(walks[k])
            except StopIteration as end:
                found[k] = end.value
        left = [k for k in left if k not in found]
    return [found[k] for k in range(len(walks))]


class _Decomposed:
    """The decomposition solver under way, with what the loop asks of a run."""

    def __init__(self, task: GramTask, interrupted: Callable[[], bool]) -> None:
        self.tracker = GramTracker(task.problem, task.y, task.weights, task.rows.diagonal)
        self.presentations = self.steps = 0
        self.converged = False
        self._task, self._interrupted = task, interrupted

    @property
    def lower(self) -> float:
        return self.tracker.lower

    @property
    def upper(self) -> float:
        return self.tracker.upper

    @property
    def gap(self) -> float:
        return self.tracker.gap

    def rounds(self) -> Iterator[bool]:
        """A round is a working set; the end is one without a violation, or many that improve nothing.

        False where rows of the kernel are expected, amid a round.
        """
        task, idle, nearest = self._task, 0, np.inf
        before = np.zeros(task.y.size) if task.start is None else task.start
        for point in decomposition(
            task.problem, task.rows, task.y, task.weights, self._interrupted, task.start
        ):
            if point is None:
                yield False
                continue
            self.tracker.evaluate(point.alpha, point.scores)
            apart = self.upper - (max(self.lower, 0.0) if task.problem.hard else self.lower)
            # bounds that cross are rounding, and nothing is to be had of more of it
            idle = idle + 1 if apart > BETTER * nearest or apart <= 0.0 else 0
            nearest = apart if idle == 0 else nearest
            self.presentations += task.y.size
            self.steps += int(np.count_nonzero(point.alpha != before))
            before = point.alpha
            yield True
            if idle >= IDLE:
                return


def _walk(
    part: Part, rows: KernelRows, sample: KernelSample, stopping: Stopping, last: KernelSolution | None
) -> Generator[None, None, _Walked]:
    """The rounds of one problem; bounds are as good as the rows. It waits where it expects rows."""
    watch, tol, problem = stopping.watch, stopping.tol, part.problem
    start = part.start if last is None else last.point.alpha
    task = GramTask(problem, rows, part.y, part.weights, start)
    if isinstance(part.algorithm, Decomposition):
        run: Any = _Decomposed(task, watch.interrupted)
        steps = run.rounds()
    else:
        run = GramRun(task, part.algorithm, tol, np.random.default_rng(part.seed), watch.interrupted)
        run.look_for_zero_rows()
        steps = SCHEDULES[part.algorithm.schedule](run)
    history = [] if last is None else last.history
    rounds = 0 if last is None else last.rounds
    least = HOPELESS * np.finfo(rows.diagonal.dtype).eps * float(rows.diagonal.max(initial=0.0)) ** 0.5
    small = part.exact and part.algorithm.convergent and rows.n <= MANY_ROWS
    few = rows.n <= FEW_ROWS
    patience = PATIENCE if few else LONG

    def report(stage: str, reason: str) -> None:
        margin = run.lower
        if not problem.hard:
            margin = (2.0 * run.upper) ** -0.5 if run.upper > 0.0 else np.inf
        history.append(
            Report(
                len(history) + 1, watch.seconds(), run.lower, run.upper, run.gap, run.presentations, run.steps,
                stage, part.label, margin, reason,
            )
        )  # fmt: skip
        alpha, primal = run.tracker.alpha, run.tracker.primal
        stopping.on_report(history[-1], lambda: KernelPoint(alpha, primal.w, primal.b))

    status = Status.STALLED
    for whole in steps:
        if whole is False:
            yield
            if rounds and watch.interrupted():  # while others had their turn
                status = watch.status() or status
                break
            continue
        rounds += 1
        report(part.algorithm.name, part.reason)
        ended = _ended(run, problem, watch, tol, least)
        last_round = ended is not None or rounds >= stopping.max_iter
        near = rounds >= patience or (few and run.gap <= NEAR_ENOUGH)
        if small and near and ended not in (Status.MAX_TIME, Status.INTERRUPTED):
            small = False
            finish(run.tracker, problem, part.y, part.weights, sample)
            report("exact", "few rows, or features: the optimality conditions on the support")
            ended = Status.CERTIFIED if run.gap <= NEARLY * tol else ended
            last_round = last_round or run.gap <= EXACT
        if problem.hard and rounds == ASKED and not run.lower > 0.0 and part.inseparable():
            ended = Status.UNDECIDED
        if ended is not None:
            status = ended
            break
        if last_round:
            status = Status.MAX_ITER
            break
    else:
        if watch.interrupted():
            status = watch.status() or status
        elif small:
            finish(run.tracker, problem, part.y, part.weights, sample)
            report("exact", "few rows, or features: the optimality conditions on the support")
    found = run.tracker
    return _Walked(KernelPoint(found.alpha, found.primal.w, found.primal.b), status, rounds, history)


def _ended(run: Any, problem: Problem, watch: Watch, tol: float, least: float) -> Status | None:
    """Why to end after this round; None to go on."""
    if run.gap <= NEARLY * tol:
        return Status.CERTIFIED
    if problem.hard and run.upper <= least:
        return Status.UNDECIDED  # nothing that these rows could tell from zero
    if not np.isfinite(run.tracker.alpha).all():
        return Status.NOT_FINITE
    if run.converged:
        return Status.CONVERGED
    return watch.status()


def _enough(walked: _Walked, part: Part, tol: float) -> float:
    """The gap that is as good as this solution can be: of few rows, which end exactly, none is."""
    if part.y.size <= FEW_ROWS or not walked.history:
        return 0.0
    return min(walked.history[-1].gap, tol)


def finish(
    points: GramTracker, problem: Problem, y: np.ndarray, weights: np.ndarray, sample: KernelSample
) -> None:
    """The exact step on a factor Z of the Gram matrix, K = Z Z'; its points count where their bounds are better."""
    Z = _factor(sample)
    if Z is None or np.unique(y).size < 2:
        return
    qp = quadratic(problem, Z, y, weights)
    near = qp.near(points.alpha) if points.gap < NEAR_ENOUGH else None
    try:
        for point in candidates(qp, near):
            alpha = qp.dual(point.a)
            if not np.isfinite(alpha).all():
                continue
            found, scores = GramTracker(problem, y, weights, sample.diagonal), sample.scores(alpha * y)
            found.evaluate(alpha, scores)
            points.evaluate(alpha, scores)  # each of its bounds may be the better one by itself
            rounding = EXACT if point.settled else 0.0
            points.adopt(found.primal, found.alpha, found.lower, found.upper, rounding, apart=1.0)
            if point.settled and found.gap <= EXACT:
                return
    except np.linalg.LinAlgError:  # what was found so far stands
        return


def _factor(sample: KernelSample) -> Any:
    """Features of few rows by the eigenvalues of their matrix; of many, if few of them say all.

    Those that the rows are told by are the better ones: a matrix of their products has half of their digits.
    """
    n = sample.X.shape[0]
    most = n if n <= FEW_ROWS else int(((FEW_FLOPS if n <= LINEAR_FEW else NEXT_TO_NONE) / n) ** 0.5)
    if sample.features is not None and sample.features.shape[1] <= most:
        return sample.features
    if n > FEW_ROWS:
        return low_rank_factor(sample.kernel, sample.X, most)
    K = sample.kernel.block(sample.X, sample.X)
    values, vectors = np.linalg.eigh(0.5 * (K + K.T))
    kept = values > n * np.finfo(float).eps * max(float(values[-1]), 0.0)
    return vectors[:, kept] * np.sqrt(values[kept]) if kept.any() else None


def _proved(problem: Problem, walked: _Walked, proof: KernelBounds, tol: float) -> KernelSolution:
    """The solution with its bounds in float64."""
    bounds, point, status = proof.bounds, proof.point, walked.status
    if problem.gap(bounds.lower, bounds.upper) <= tol:
        status = Status.CERTIFIED
    elif status is Status.CERTIFIED:  # the running bounds were off by rounding
        status = Status.STALLED
    if problem.hard and status in UNFINISHED and not bounds.lower > 0.0:
        status = Status.UNDECIDED
    elif (
        bounds.lower > 0.0 and status is Status.UNDECIDED
    ):  # the running bounds hid the separator in rounding
        status = Status.STALLED
    finite = np.isfinite(point.coefficients).all() and np.isfinite(point.intercept)
    if not finite or np.isnan([bounds.lower, bounds.upper]).any():
        status = Status.NOT_FINITE
    return KernelSolution(point, bounds, status, walked.rounds, walked.history)
