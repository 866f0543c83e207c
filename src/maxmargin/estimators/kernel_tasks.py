"""The binary tasks of a kernel fit: classes against the rest, which share rows of the kernel, or pairs of classes."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cached_property, partial
from typing import Any, NamedTuple

import numpy as np

from ..algorithms import Algorithm, Decomposition
from ..certificates.certificate import Certificate, Sample
from ..certificates.gram import KernelPoint, KernelProblem, KernelSample, certified
from ..certificates.row_pass import Bounds
from ..certificates.verdicts import Inseparable, KernelSeparator, Verdict
from ..data.duplicates import merge, unmerged
from ..fit.deadline import Deadline, Reporter, solve_tasks
from ..fit.report import Report, Stopping, Task, status_at_end
from ..fit.solve import KernelSolution, solve_kernel
from ..kernels.functions import Kernel, Precomputed
from ..numerics.sizes import draw_seeds, jobs
from ..numerics.sums import EPS
from ..problem.multiclass import named_parts, parts_of
from ..problem.problem import Problem, Status
from ..separability.kernel import kernel_trivial_certificate
from ..separability.search import about_all_rows
from ..separability.separate import decide
from ..solvers.decomposition import KernelRows
from .validation import Targets


class KernelTaskSolution(NamedTuple):
    """The solution of one task, on all rows of the data.

    Attributes
    ----------
    certificate : Certificate
    support : tuple of ndarray of int, ndarray
        The rows with coefficients other than 0, and these coefficients.
    intercept : float
    status : Status
    rounds : int
    history : list of Report
    verdict : Verdict or None
        The verdict on separability of a hard margin, if the model cannot express it.
    """

    certificate: Certificate
    support: tuple[np.ndarray, np.ndarray]
    intercept: float
    status: Status
    rounds: int
    history: list[Report]
    verdict: Verdict | None


@dataclass(eq=False)
class KernelTasks:
    """The binary tasks of one kernel fit. Tasks on the same rows form a group, which shares the rows of the kernel.

    Parameters
    ----------
    model : KernelMaxMarginClassifier
        Its parameters.
    problem : Problem
    algorithm : Algorithm or Decomposition
    kernel : Kernel
    X : ndarray or CSR matrix of shape (n, d)
    targets : Targets
        Labels and weights.

    Attributes
    ----------
    scheme : Parts
        How the classes are divided into tasks.
    names : list
        The class, or the pair of classes, of each task; None for two classes.
    places : list of ndarray of int
        The distinct rows that take part in each task.
    max_iter : int
        Largest number of rounds of each task.
    """

    model: Any
    problem: Problem
    algorithm: Algorithm | Decomposition
    kernel: Kernel
    X: Any
    targets: Targets

    def __post_init__(self) -> None:
        """Divide the classes into tasks and groups, and merge equal rows."""
        model, targets = self.model, self.targets
        self.scheme = parts_of(model.multi_class, targets.classes.size)
        self.names = named_parts(self.scheme, targets.classes)
        self.max_iter = np.iinfo(np.int64).max if model.max_iter == -1 else model.max_iter
        in_order = not self.algorithm.shuffle
        self.rows = DistinctKernelRows(self.kernel, self.X, targets.codes, targets.weights, in_order)
        self.algorithm = self.algorithm.for_rows(targets.y.size, self.rows.totals)
        tasks = range(len(self.names))
        self.places = [np.flatnonzero(self.scheme.signs(k, self.rows.codes)[1]) for k in tasks]
        self.groups = [list(tasks)] if self.scheme.name == "ovr" else [[k] for k in tasks]
        self.workers = jobs(model.n_jobs, len(self.groups))
        self._seeds = draw_seeds(model.random_state, len(self.names))
        self._separability: list[KernelSeparability] = []

    def solve(self, reporter: Reporter, deadline: Deadline) -> list[KernelTaskSolution]:
        """Solve all tasks, groups in threads of their own, and certify the solutions on all rows of the data."""
        sample = KernelSample(self.kernel, self.rows.X, self.rows.rounding)
        if self.problem.hard:  # verdicts on separability have the time of the whole fit
            stopping = Stopping(self.model.tol, self.max_iter, deadline)
            all_rows = KernelSample(self.kernel, self.X)
            for k in range(len(self.names)):
                task = KernelProblem(self.problem, all_rows, *self._labels(k))
                sides = self.scheme.sides(k, self.targets.classes)
                decides = self.algorithm if self.algorithm.decides else None
                self._separability.append(KernelSeparability(task, sides, stopping, decides))
        solve_group = partial(self._solve_group, sample, reporter)
        groups = solve_tasks(solve_group, len(self.groups), self.workers, deadline)
        # one task after another: dual variables of all pairs of classes at once would take much memory
        found = [one for group in groups for one in group]
        return [self._certified(k, one) for k, one in enumerate(found)]

    def _certified(self, k: int, solution: KernelSolution) -> KernelTaskSolution:
        """Certify the solution of task k, which is about its distinct rows, on all rows of the data.

        A hard margin is combined with the verdict on its separability where there is no separator yet, or the verdict
        was sought during the fit.
        """
        solution, verdict = self.rows.spread(solution, self.places[k]), None
        undecided = solution.status is Status.UNDECIDED and not solution.bounds.lower > 0.0
        if self.problem.hard and (undecided or "verdict" in vars(self._separability[k])):
            solution, verdict = self._separability[k].combine(solution)
        signs, weights = self._labels(k)
        # the division among equal rows rounds
        alpha = np.minimum(solution.point.alpha, self.problem.caps(weights))
        sample = Sample(self.X, signs, weights)
        certificate = sample.certificate(self.problem, alpha, solution.bounds, self.kernel)
        coefficients = solution.point.coefficients
        used = np.flatnonzero(coefficients)
        return KernelTaskSolution(
            certificate, (used, coefficients[used]), solution.point.intercept,
            solution.status, solution.rounds, solution.history, verdict,
        )  # fmt: skip

    def _labels(self, k: int) -> tuple[np.ndarray, np.ndarray]:
        """Return the labels -1.0 and 1.0 of all rows in task k, and their weights, 0 for rows of other classes."""
        signs, takes_part = self.scheme.signs(k, self.targets.codes)
        return signs, np.where(takes_part, self.targets.weights, 0.0)

    def _solve_group(
        self, sample: KernelSample, reporter: Reporter, g: int, deadline: Deadline
    ) -> list[KernelSolution]:
        """Solve the tasks of group g on their distinct rows by `deadline`."""
        group, rows, problem, model = self.groups[g], self.rows, self.problem, self.model
        places = self.places[group[0]]
        if not places.size:  # both classes of a pair have weight 0
            return [KernelSolution.at_zero(0, Bounds(0.0, 0.0, 0.0, 0.0), Status.CERTIFIED)]
        algorithm = None
        if model.algorithm != "auto":
            algorithm = self.algorithm.for_rows(rows.codes.size, lambda numbers: numbers[places])
        sample = sample.part(places)
        kernel_rows = KernelRows(sample.kernel, sample.X, model.cache_size)
        by_task = {
            k: Task(
                problem, kernel_rows, self.scheme.signs(k, rows.codes)[0][places], rows.weights[places],
                algorithm, seed=int(self._seeds[k]), label=self.names[k], separability=partial(self._inseparable, k),
            )
            for k in group
            if not (problem.hard and self._separability[k].contradiction())
        }  # fmt: skip
        nothing = Bounds(-np.inf, np.inf, 0.0, 0.0)  # where a few rows prove that there is no separator
        found = {
            k: KernelSolution.at_zero(places.size, nothing, Status.UNDECIDED)
            for k in group
            if k not in by_task
        }
        if by_task:
            stopping = Stopping(model.tol, self.max_iter, deadline, reporter.report)
            solved = solve_kernel(sample, kernel_rows, list(by_task.values()), stopping)
            found.update(zip(by_task, solved, strict=True))
        return [found[k] for k in group]

    def _inseparable(self, k: int, start: np.ndarray | None) -> Verdict | None:
        """Return the proof that the classes of task k have no separator; None if there is none."""
        verdict = self._separability[k].verdict
        return verdict if isinstance(verdict, Inseparable) else None


class DistinctKernelRows:
    """Rows of positive weight, where equal rows of a class are merged.

    Parameters
    ----------
    kernel : Kernel
    X : ndarray or CSR matrix of shape (n, d)
    codes : ndarray of int of shape (n,)
        Number of the class of each row.
    weights : ndarray of shape (n,)
    in_order : bool
        Whether the distinct rows keep the order in which they first appear.

    Attributes
    ----------
    X, codes, weights
        Distinct rows, the number of their class, and their total weight.
    rounding : float
        Bound on the relative error of dual variables that equal rows share.
    """

    def __init__(
        self, kernel: Kernel, X: Any, codes: np.ndarray, weights: np.ndarray, in_order: bool
    ) -> None:
        self._n = codes.size
        self._positive = np.flatnonzero(weights > 0.0)
        labels, weights = codes[self._positive].astype(float), weights[self._positive]
        if isinstance(kernel, Precomputed):
            self._merged = unmerged(labels, weights)
        else:
            positive = X if self._positive.size == self._n else X[self._positive]
            self._merged = merge(positive, labels, weights, in_order)
        powers_of_two = bool((np.frexp(self._merged.shares)[0] == 0.5).all())  # shares are then exact
        copies = float(np.bincount(self._merged.groups).max(initial=0))
        self.rounding = 0.0 if powers_of_two else (copies + 4.0) * EPS
        places = self._positive[self._merged.places]
        self.X = X if np.array_equal(places, np.arange(self._n)) else kernel.part(X, places)
        self.codes, self.weights = self._merged.y.astype(np.intp), self._merged.weights

    def spread(self, solution: KernelSolution, places: np.ndarray) -> KernelSolution:
        """Return a solution on these distinct rows as one on all rows, among which it is divided by their weights."""
        alpha, coefficients, b = solution.point
        distinct, rows = np.zeros((2, self.codes.size)), np.zeros((2, self._n))
        distinct[:, places] = alpha, coefficients
        rows[:, self._positive] = distinct[:, self._merged.groups] * self._merged.shares
        return replace(solution, point=KernelPoint(rows[0], rows[1], b))

    def totals(self, numbers: np.ndarray) -> np.ndarray:
        """Return the sum of numbers of all rows over each of these distinct rows."""
        return self._merged.gather(numbers[self._positive])


@dataclass(eq=False)
class KernelSeparability:
    """The verdict on whether the classes of one task of a hard margin are separable, sought when it is first needed.

    Parameters
    ----------
    task : KernelProblem
        On all rows of the data; rows that take no part have weight 0.
    sides : tuple of two labels
        Names of the negative and of the positive side.
    stopping : Stopping
        Of the whole fit.
    algorithm : Algorithm, default=None
        Of the fit, if it decides separability itself: the search begins with its dual variables.
    """

    task: KernelProblem
    sides: tuple[Any, Any]
    stopping: Stopping
    algorithm: Any = None
    _start: np.ndarray | None = field(default=None, init=False)

    def __post_init__(self) -> None:
        """Take the rows of the task from the data."""
        sample = self.task.sample
        self.kernel, self.rows = sample.kernel, np.flatnonzero(self.task.weights > 0.0)
        self.X, self.y = sample.kernel.part(sample.X, self.rows), self.task.y[self.rows]

    @cached_property
    def verdict(self) -> Verdict:
        """The verdict of `separate` on the rows of the task."""
        problem, n, deadline = self.task.problem, self.task.y.size, self.stopping.deadline
        start, algorithm = self._start, None if self._start is None else self.algorithm
        verdict = decide(
            problem, self.X, self.y, self.sides, deadline, self.kernel, algorithm=algorithm, start=start
        )
        return about_all_rows(verdict, self.rows, n)

    def contradiction(self) -> dict[int, Fraction] | None:
        """Return weights of a few rows that prove by themselves that there is no separator; None without such rows."""
        return kernel_trivial_certificate(self.kernel, self.task.problem, self.X, self.y)

    def combine(self, found: KernelSolution) -> tuple[KernelSolution, Verdict | None]:
        """Combine a solution with the verdict on separability.

        Of the solution and the verdict's separator the one with the larger certified margin is kept. Without a positive
        certified margin, the verdict is returned too if the model cannot express it: a proof that no separator exists,
        an undecided verdict, or a separator without float64 coefficients of rows (a hyperplane, or a polynomial).
        """
        if self.algorithm is not None:
            self._start = found.point.alpha[self.rows]
        verdict = self.verdict
        if isinstance(verdict, Inseparable):
            alpha = np.zeros(self.task.y.size)
            alpha[verdict.support] = verdict.alpha
            point = found.point._replace(alpha=alpha)
            return self._certified(point, found, Status.INSEPARABLE), verdict
        end = status_at_end(self.stopping, found.rounds)
        if isinstance(verdict, KernelSeparator):
            status = end if found.status in (Status.UNDECIDED, Status.NOT_FINITE) else found.status
            c, alpha = np.zeros((2, self.task.y.size))
            c[self.rows] = verdict.coefficients
            alpha[self.rows[verdict.certificate.support]] = verdict.certificate.dual
            # with the dual variables of the fit or of the separator, whichever give the smaller upper bound
            points = (KernelPoint(dual, c, verdict.b) for dual in (found.point.alpha, alpha))
            proved = [self._certified(point, found, status) for point in points]
            better = min(proved, key=lambda one: one.bounds.upper)
            if better.bounds.lower > max(found.bounds.lower, 0.0):
                gap = self.task.problem.gap(better.bounds.lower, better.bounds.upper)
                return replace(better, status=Status.CERTIFIED if gap <= self.stopping.tol else status), None
        if found.bounds.lower > 0.0:
            return found, None
        return replace(found, status=self.stopping.deadline.status() or Status.UNDECIDED), verdict

    def _certified(self, point: KernelPoint, found: KernelSolution, status: Status) -> KernelSolution:
        """Certify a point on the data of the task."""
        point, bounds = certified([self.task], [point])[0]
        return replace(found, point=point, bounds=bounds, status=status)
