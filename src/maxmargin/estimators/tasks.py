"""The binary tasks of a fit: one for two classes, else each class against the rest or, with kernels, each pair."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from math import ceil
from threading import Lock
from typing import Any, TypeVar

import numpy as np
from joblib import Parallel, delayed

from ..algorithms import Algorithm, Decomposition
from ..certificates.certificate import Certificate, Certificates
from ..certificates.gram import KernelSample
from ..certificates.sample import Sample
from ..certificates.verdicts import Verdict
from ..data.rows import Patterns
from ..data.task import Task
from ..fit.deadline import Deadline
from ..fit.driver import solve
from ..fit.exact import is_small
from ..fit.lockstep import KernelSolution, solve_kernel
from ..fit.policy import Choice, choose
from ..fit.presolve import SelectedRows
from ..fit.report import Job, KernelJob, Solution, Stopping
from ..kernels.functions import Kernel
from ..numerics.lazy_generator import LazyGenerator
from ..numerics.sparse_columns import Columns
from ..numerics.stop_check import StopCheck
from ..numerics.threads import jobs
from ..problem.multiclass import Parts, named_parts
from ..problem.problem import Problem
from ..problem.status import Status, worst
from ..separability.linear import LinearSearch
from ..separability.search import fit_task
from .kernel_machine import DistinctKernelRows
from .kernel_separability import KernelSeparability
from .progress import Reporter
from .validation import Targets, draw_seeds, python_label

# Entries of all classes below which exact stages end sooner than another thread begins.
MIN_THREADED_ENTRIES = 2e6

T = TypeVar("T")
Support = tuple[np.ndarray, np.ndarray]  # rows with coefficients other than 0, and these coefficients


def solve_tasks(
    solve_task: Callable[[int, Deadline], T], count: int, workers: int, deadline: Deadline
) -> list[T]:
    """Solve tasks 0, ..., count - 1; the tasks that are left share the time that is left.

    Parameters
    ----------
    solve_task : callable
        Solves the k-th task within its share of the time.
    count : int
    workers : int
        Tasks that are solved at the same time.
    deadline : Deadline
        Of the whole fit.
    """
    if workers == 1:  # the last one may take all of the time
        last = count - 1
        return [solve_task(k, deadline.split(count - k) if k < last else deadline) for k in range(count)]
    parallel: Any = Parallel(n_jobs=workers, require="sharedmem")

    def within_share(k: int) -> T:  # called when the task begins, not when it is put on the list
        return solve_task(k, deadline.split(ceil((count - k) / workers)))

    return list(parallel(delayed(within_share)(k) for k in range(count)))


def store_results(
    model: Any,
    names: list[Any],
    solutions: Sequence[Any],
    certificates: Sequence[Certificate],
    verdicts: Sequence[Verdict | None],
) -> None:
    """Set `n_iter_`, `status_`, `history_`, `certificate_` and, of hard margins without a separator, `verdict_`.

    Parameters
    ----------
    model : estimator
    names : list
        The label of each binary task; None is the only one.
    solutions : sequence of Solution or KernelSolution
    certificates : sequence of Certificate
    verdicts : sequence of Verdict or None
        None for tasks with a separator.
    """
    model.n_iter_ = max(solution.rounds for solution in solutions)
    model.status_ = worst(solution.status for solution in solutions)
    model.history_ = [report for solution in solutions for report in solution.history]
    one = len(certificates) == 1
    model.certificate_ = certificates[0] if one else Certificates(tuple(names), tuple(certificates))
    if hasattr(model, "verdict_"):  # of the last fit
        del model.verdict_
    pairs = zip(names, verdicts, strict=True)
    found = {python_label(name): verdict for name, verdict in pairs if verdict is not None}
    if found:
        model.verdict_ = found if len(names) > 1 else found[None]


@dataclass(frozen=True, eq=False)
class TrainingData:
    """Validated training data of a linear fit.

    Attributes
    ----------
    given : ndarray or CSR matrix of shape (n, d)
        As the caller has it.
    X : ndarray or CSR matrix of shape (n, k)
        On the columns with entries.
    columns : Columns
        Which these are.
    patterns : Patterns
        Its rows.
    targets : Targets
        Labels and weights.
    """

    given: Any
    X: Any
    columns: Columns
    patterns: Patterns
    targets: Targets

    def model(self, points: Sequence[tuple[np.ndarray, float]]) -> dict[str, Any]:
        """Return the fitted attributes of a classifier with one (w, b) per task."""
        w, b = zip(*points, strict=True)
        coef = self.columns.restore(np.vstack(w))
        return {"classes_": self.targets.classes, "coef_": coef, "intercept_": np.array(b)}


class LinearTasks:
    """The binary tasks of one linear fit, which share rows, random seeds and the deadline.

    Parameters
    ----------
    model : MaxMarginClassifier
        Its parameters.
    problem : Problem
    named : Algorithm or None
        The algorithm that was asked for; None leaves it to the policy.
    data : TrainingData
    start : list of ndarray of shape (n,), default=None
        Dual variables of each task to begin with.
    points : list of (ndarray of shape (k,), float), default=None
        (w, b) of each task to begin with.

    Attributes
    ----------
    names : list
        The positive class of each task; None for two classes.
    workers : int
        Tasks that are solved at the same time.
    """

    def __init__(
        self,
        model: Any,
        problem: Problem,
        named: Algorithm | None,
        data: TrainingData,
        start: list[np.ndarray] | None,
        points: list[tuple[np.ndarray, float]] | None,
    ) -> None:
        self.model, self.problem, self.named, self.data = model, problem, named, data
        self.start, self.points = start, points
        targets = data.targets
        self.names = [None] if targets.classes.size == 2 else list(targets.classes)
        self.patterns, self.selected, norms, self._kept = data.patterns, None, None, targets.kept
        if targets.selected is None:
            norms = np.sqrt(data.patterns.square)
        else:
            self.patterns = data.patterns.some(targets.selected)
            self.selected = SelectedRows(targets.selected, targets.y.size)
        self.weights = targets.weights[self._kept]
        zeros = np.zeros(targets.y.size)
        self.sample = Sample(data.X, zeros, targets.weights, norms, columns=data.columns)
        entries = self.patterns.entries * len(self.names)
        quick = named is None and problem.euclidean and entries < MIN_THREADED_ENTRIES
        quick = quick and is_small(problem, self.patterns)
        workers = jobs(model.n_jobs, len(self.names))  # refuses an n_jobs of 0, whatever the size
        self.workers = 1 if quick else workers
        self._seeds: np.ndarray | None = None
        self._seeds_lock = Lock()

    def solve(self, reporter: Reporter) -> list[Solution]:
        """Solve all tasks, in threads where that is faster."""
        with Deadline(self.model.max_time) as deadline:
            return solve_tasks(
                lambda k, part: self._solve(k, reporter, part), len(self.names), self.workers, deadline
            )

    @cached_property
    def _codes(self) -> np.ndarray:
        """The place of the class of each row among all classes."""
        targets = self.data.targets
        return np.searchsorted(targets.classes, targets.y[self._kept])

    def _solve(self, k: int, reporter: Reporter, deadline: Deadline) -> Solution:
        """Solve task k."""
        targets, kept = self.data.targets, self._kept
        several = len(self.names) > 1
        signs = np.where(targets.y == targets.classes[k if several else 1], 1.0, -1.0)
        y = signs[kept]
        task = Task(
            self.problem,
            self.patterns,
            y,
            self.weights,
            None if self.start is None else self.start[k][kept],
            None if self.points is None else self.points[k],
            self.names[k],
        )
        if self.named is not None:
            algorithm, reason = self.named, "asked for"
        else:
            check = StopCheck(deadline.interrupted, deadline.remaining)
            algorithm, reason = choose(self.problem, self.patterns, y, check)
        job = Job(
            task,
            Choice(algorithm, reason, self.named is None, self.model._exact),
            Stopping(self.model.tol, self.model.max_iter, deadline, reporter.report),
            LazyGenerator(lambda: self._seed(k)),
            self.sample.with_labels(signs),
            self.selected,
            self._codes if several else None,
            cache(lambda: self._verdict(y, deadline)),
        )
        solution = solve(job)
        reporter.end_task(task.label, solution.status)
        return solution

    def _verdict(self, y: np.ndarray, deadline: Deadline) -> Verdict:
        """Return the verdict on whether the classes of a task are separable."""
        targets = self.data.targets
        rows = np.arange(targets.y.size)[self._kept]
        names: tuple[Any, Any] = (False, True)
        if targets.classes.size == 2:
            names = python_label(targets.classes[0]), python_label(targets.classes[1])
        task = fit_task(self.problem, self.patterns.X, y, names, deadline)
        return LinearSearch(task, self.data.columns).verdict_of_fit(rows, targets.y.size)

    def _seed(self, k: int) -> int:
        """Return the seed of one task; those of all are drawn by the first that asks for one."""
        with self._seeds_lock:
            if self._seeds is None:
                self._seeds = draw_seeds(self.model.random_state, self.data.targets.classes.size)
            return int(self._seeds[k])


@dataclass(frozen=True, eq=False)
class KernelData:
    """Validated training data of a kernel fit.

    Attributes
    ----------
    X : ndarray or CSR matrix of shape (n, d)
    targets : Targets
        Labels and weights.
    scheme : Parts
        The binary tasks.
    kernel : Kernel
    gamma : float
    rows : DistinctKernelRows
    """

    X: Any
    targets: Targets
    scheme: Parts
    kernel: Kernel
    gamma: float
    rows: DistinctKernelRows


@dataclass(frozen=True, eq=False)
class KernelTaskSolution:
    """The solution of one task.

    Attributes
    ----------
    solution : KernelSolution
    places : ndarray of int or None
        The distinct rows that it is about; None where it is about all rows of the data.
    verdict : Verdict, default=None
        Of a hard margin, where the model does not show it.
    """

    solution: KernelSolution
    places: np.ndarray | None
    verdict: Verdict | None = None


class KernelTasks:
    """The binary tasks of one kernel fit. Tasks on the same rows form a group, which shares the rows of the kernel.

    Parameters
    ----------
    model : KernelMaxMarginClassifier
        Its parameters.
    problem : Problem
    algorithm : Algorithm or Decomposition
    data : KernelData

    Attributes
    ----------
    names : list
        The class, or the pair of classes, of each task; None for two classes.
    sequential : bool
        Whether one task ends before the next begins.
    """

    def __init__(
        self, model: Any, problem: Problem, algorithm: Algorithm | Decomposition, data: KernelData
    ) -> None:
        self.model, self.problem, self.algorithm, self.data = model, problem, algorithm, data
        self.names = named_parts(data.scheme, data.targets.classes)
        tasks = range(len(self.names))
        self.groups = [list(tasks)] if data.scheme.name == "ovr" else [[k] for k in tasks]
        self.workers = jobs(model.n_jobs, len(self.groups))
        self.sequential = data.scheme.name == "ovo" and self.workers == 1
        self.sample = KernelSample(data.kernel, data.rows.X, data.rows.rounding)
        self._seeds = draw_seeds(model.random_state, len(self.names))
        self._separability: dict[int, KernelSeparability] = {}

    def solve(self, reporter: Reporter) -> list[KernelTaskSolution]:
        """Solve all tasks, groups in threads of their own; hard margins are combined with verdicts on separability."""
        with Deadline(self.model.max_time) as deadline:
            groups = solve_tasks(
                lambda g, part: self._solve_group(self.groups[g], reporter, deadline, part),
                len(self.groups),
                self.workers,
                deadline,
            )
            found = [one for group in groups for one in group]
            if self.problem.hard:
                found = [self._with_verdict(k, one, deadline) for k, one in enumerate(found)]
            return found

    def certificates(self, found: list[KernelTaskSolution]) -> tuple[list[Certificate], list[Support]]:
        """Return the certificate and the support vectors of each task.

        One task after the other: the dual variables of all pairs of classes would take much memory.
        """
        data, problem = self.data, self.problem
        sample = Sample(data.X, np.zeros(data.X.shape[0]), data.targets.weights)
        certificates, supports = [], []
        for k, one in enumerate(found):
            solution = data.rows.spread(one.solution, one.places)
            signs, takes_part = data.scheme.signs(k, data.targets.codes)
            weights = np.where(takes_part, data.targets.weights, 0.0)
            # the division among equal rows rounds
            alpha = np.minimum(solution.point.alpha, problem.caps(weights))
            part = sample.with_labels(signs, weights)
            certificates.append(part.certificate(problem, alpha, solution.bounds, data.kernel))
            coefficients = solution.point.coefficients
            rows = np.flatnonzero(coefficients)
            supports.append((rows, coefficients[rows]))
        return certificates, supports

    def _solve_group(
        self, group: list[int], reporter: Reporter, whole: Deadline, deadline: Deadline
    ) -> list[KernelTaskSolution]:
        """Solve the tasks of a group by `deadline`; verdicts on separability have the time of the whole fit."""
        data, problem = self.data, self.problem
        labels = [data.scheme.signs(k, data.rows.codes) for k in group]
        places = np.flatnonzero(labels[0][1])
        if not places.size:  # both classes of a pair have weight 0
            return [KernelTaskSolution(KernelSolution.nothing(), places)]
        reason = (
            "asked for" if self.model.algorithm != "auto" else "kernels: working sets of the rows that matter"
        )
        by_task = {
            k: KernelJob(
                problem,
                signs[places],
                data.rows.weights[places],
                self.algorithm,
                reason,
                int(self._seeds[k]),
                self.names[k],
                exact=self.model._exact,
                inseparable=lambda k=k: self._separable(k, whole).is_inseparable(),
            )
            for k, (signs, _) in zip(group, labels, strict=True)
            if not (problem.hard and self._separable(k, whole).is_contradictory())
        }
        stopping = Stopping(
            self.model.tol,
            np.iinfo(np.int64).max if self.model.max_iter == -1 else self.model.max_iter,
            deadline,
            lambda report, best, part: reporter.report(report, lambda: (best(), places), part),
        )
        found = {k: KernelSolution.open(places.size) for k in group if k not in by_task}
        if by_task:
            sample, kernel_jobs = self.sample.part(places), list(by_task.values())
            solved = solve_kernel(sample, kernel_jobs, stopping, self.model.cache_size)
            found.update(zip(by_task, solved, strict=True))
        return [KernelTaskSolution(found[k], places) for k in group]

    def _separable(self, k: int, deadline: Deadline) -> KernelSeparability:
        """Return the separability of task k, one object however often it is asked for."""
        if k not in self._separability:
            data = self.data
            signs, takes_part = data.scheme.signs(k, data.targets.codes)
            weights = np.where(takes_part, data.targets.weights, 0.0)
            sides = data.scheme.sides(k, data.targets.classes)
            self._separability[k] = KernelSeparability(
                data.kernel, self.problem, data.X, signs, weights, sides, deadline
            )
        return self._separability[k]

    def _with_verdict(self, k: int, found: KernelTaskSolution, deadline: Deadline) -> KernelTaskSolution:
        """Combine a hard margin with the verdict on its separability, where that proves more."""
        solution = found.solution
        undecided = solution.status is Status.UNDECIDED and not solution.bounds.lower > 0.0
        separability = self._separable(k, deadline)
        if not (undecided or separability.is_better(solution)):
            return found
        on_all_rows = self.data.rows.spread(solution, found.places)
        combined, verdict = separability.combine(on_all_rows, self.model.tol)
        return KernelTaskSolution(combined, None, verdict)
