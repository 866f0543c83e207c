"""The binary tasks of a kernel fit: classes against the rest, which share rows of the kernel, or pairs of classes."""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from ..algorithms import Algorithm, Decomposition
from ..certificates.certificate import Certificate
from ..certificates.expansions import KernelPoint, KernelProblem
from ..certificates.gram import KernelSample
from ..certificates.sample import Sample
from ..certificates.separators import KernelSeparator, LinearSeparator
from ..certificates.verdicts import Inseparable, Verdict
from ..fit.deadline import Deadline
from ..fit.gram_driver import KernelSolution, solve_kernel
from ..fit.report import KernelJob, Report, Stopping
from ..kernels.functions import Kernel, Linear
from ..numerics.sparse_columns import may_be_dense, without_empty_columns
from ..numerics.threads import jobs
from ..problem.multiclass import named_parts, parts_of
from ..problem.problem import Problem
from ..problem.status import Status
from ..separability.kernel import KernelSearch, kernel_trivial_certificate
from ..separability.linear import LinearSearch, on_all_columns
from ..separability.search import without_zeros
from .kernel_machine import DistinctKernelRows
from .progress import Reporter, solve_tasks
from .validation import Targets, draw_seeds

# Operations of the least-squares problem that writes a hyperplane as a combination of rows: a second or two. Beyond
# them the separator is kept as a verdict, and not as a model.
MAX_LEAST_SQUARES = 4e9

Support = tuple[np.ndarray, np.ndarray]  # rows with coefficients other than 0, and these coefficients


class KernelTaskSolution(NamedTuple):
    """The solution of one task, on all rows of the data.

    Attributes
    ----------
    certificate : Certificate
    support : (ndarray of int, ndarray)
        The rows with coefficients other than 0, and these coefficients.
    intercept : float
    status : Status
    rounds : int
    history : list of Report
    verdict : Verdict or None
        Of a hard margin, where the model does not show it.
    """

    certificate: Certificate
    support: Support
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
    sequential : bool
        Whether one task ends before the next begins.
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
        in_order = not self.algorithm.shuffle
        self.rows = DistinctKernelRows(self.kernel, self.X, targets.codes, targets.weights, in_order)
        tasks = range(len(self.names))
        self.groups = [list(tasks)] if self.scheme.name == "ovr" else [[k] for k in tasks]
        self.workers = jobs(model.n_jobs, len(self.groups))
        self.sequential = self.scheme.name == "ovo" and self.workers == 1
        self._seeds = draw_seeds(model.random_state, len(self.names))
        self._separability: dict[int, KernelSeparability] = {}

    def solve(self, reporter: Reporter, deadline: Deadline) -> list[KernelTaskSolution]:
        """Solve all tasks, groups in threads of their own, and certify the solutions on all rows of the data."""
        sample = KernelSample(self.kernel, self.rows.X, self.rows.rounding)
        groups = solve_tasks(
            lambda g, part: self._solve_group(self.groups[g], sample, reporter, deadline, part),
            len(self.groups),
            self.workers,
            deadline,
        )
        data = Sample(self.X, np.zeros(self.targets.y.size), self.targets.weights)
        # one task after the other: the dual variables of all pairs of classes would take much memory
        found = [one for group in groups for one in group]
        return [self._certified(k, *one, data, deadline) for k, one in enumerate(found)]

    def _certified(
        self, k: int, solution: KernelSolution, places: np.ndarray, data: Sample, deadline: Deadline
    ) -> KernelTaskSolution:
        """Certify the solution of task k, which is about these distinct rows, on all rows of the data.

        A hard margin is combined with the verdict on its separability where there is no separator yet, or the verdict
        was sought during the fit.
        """
        solution, verdict = self.rows.spread(solution, places), None
        undecided = solution.status is Status.UNDECIDED and not solution.bounds.lower > 0.0
        if self.problem.hard and (undecided or self._separable(k, deadline).is_known):
            solution, verdict = self._separable(k, deadline).combine(solution, self.model.tol)
        signs, weights = self._labels(k)
        # the division among equal rows rounds
        alpha = np.minimum(solution.point.alpha, self.problem.caps(weights))
        part = data.with_labels(signs, weights)
        certificate = part.certificate(self.problem, alpha, solution.bounds, self.kernel)
        return KernelTaskSolution(
            certificate, support_of(solution.point.coefficients), solution.point.intercept,
            solution.status, solution.rounds, solution.history, verdict,
        )  # fmt: skip

    def _labels(self, k: int) -> tuple[np.ndarray, np.ndarray]:
        """Return the labels -1.0 and 1.0 of all rows in task k, and their weights, 0 for rows of other classes."""
        signs, takes_part = self.scheme.signs(k, self.targets.codes)
        return signs, np.where(takes_part, self.targets.weights, 0.0)

    def _solve_group(
        self, group: list[int], sample: KernelSample, reporter: Reporter, whole: Deadline, deadline: Deadline
    ) -> list[tuple[KernelSolution, np.ndarray]]:
        """Solve the tasks of a group by `deadline`; verdicts on separability have the time of the whole fit.

        Returns
        -------
        list of (KernelSolution, ndarray of int)
            Each solution, and the distinct rows that it is about.
        """
        rows, problem, model = self.rows, self.problem, self.model
        labels = [self.scheme.signs(k, rows.codes) for k in group]
        places = np.flatnonzero(labels[0][1])
        if not places.size:  # both classes of a pair have weight 0
            return [(KernelSolution.nothing(), places)]
        reason = "asked for" if model.algorithm != "auto" else "kernels: working sets of the rows that matter"
        by_task = {
            k: KernelJob(
                problem,
                signs[places],
                rows.weights[places],
                self.algorithm,
                reason,
                int(self._seeds[k]),
                self.names[k],
                exact=model._exact,
                inseparable=lambda k=k: isinstance(self._separable(k, whole).verdict, Inseparable),
            )
            for k, (signs, _) in zip(group, labels, strict=True)
            if not (problem.hard and self._separable(k, whole).contradiction())
        }
        found = {k: KernelSolution.open(places.size) for k in group if k not in by_task}
        if by_task:
            stopping = Stopping(
                model.tol,
                np.iinfo(np.int64).max if model.max_iter == -1 else model.max_iter,
                deadline,
                lambda report, best, part: reporter.report(report, lambda: (best(), places), part),
            )
            solved = solve_kernel(sample.part(places), list(by_task.values()), stopping, model.cache_size)
            found.update(zip(by_task, solved, strict=True))
        return [(found[k], places) for k in group]

    @cached_property
    def _all_rows(self) -> KernelSample:
        return KernelSample(self.kernel, self.X)

    def _separable(self, k: int, deadline: Deadline) -> KernelSeparability:
        """Return the separability of task k, one object however often it is asked for."""
        if k not in self._separability:
            signs, weights = self._labels(k)
            sides = self.scheme.sides(k, self.targets.classes)
            task = KernelProblem(self.problem, self._all_rows, signs, weights)
            self._separability[k] = KernelSeparability(task, sides, deadline)
        return self._separability[k]


def support_of(coefficients: np.ndarray) -> Support:
    """Return the rows with coefficients other than 0, and these coefficients."""
    rows = np.flatnonzero(coefficients)
    return rows, coefficients[rows]


@dataclass(eq=False)
class KernelSeparability:
    """The verdict on whether the classes of one task of a hard margin are separable, sought when it is first needed.

    Parameters
    ----------
    task : KernelProblem
        On all rows of the data; rows that take no part have weight 0.
    sides : tuple of two labels
        Names of the negative and of the positive side.
    deadline : Deadline
        Of the whole fit.
    """

    task: KernelProblem
    sides: tuple[Any, Any]
    deadline: Deadline

    def __post_init__(self) -> None:
        """Take the rows of the task from the data."""
        sample = self.task.sample
        self.kernel, self.rows = sample.kernel, np.flatnonzero(self.task.weights > 0.0)
        self.X, self.y = sample.kernel.part(sample.X, self.rows), self.task.y[self.rows]

    @cached_property
    def verdict(self) -> Verdict:
        """The verdict of `separate` on the rows of the task."""
        problem, n = self.task.problem, self.task.y.size
        if not isinstance(self.kernel, Linear):
            search = KernelSearch.for_fit(problem, self.X, self.y, self.sides, self.deadline, self.kernel)
            return search.verdict_of_fit(self.rows, n)
        X, columns = without_empty_columns(without_zeros(self.X))
        search = LinearSearch.for_fit(problem, X, self.y, self.sides, self.deadline, columns)
        return on_all_columns(search.verdict_of_fit(self.rows, n), columns)

    def contradiction(self) -> dict[int, Fraction] | None:
        """Return weights of a few rows that prove by themselves that there is no separator; None without such rows."""
        return kernel_trivial_certificate(self.kernel, self.task.problem, self.X, self.y)

    @property
    def is_known(self) -> bool:
        """Whether the verdict has been sought."""
        return "verdict" in vars(self)

    def combine(self, found: KernelSolution, tol: float) -> tuple[KernelSolution, Verdict | None]:
        """Combine a solution with the verdict, which is returned where the model does not show it.

        The verdict's separator is an incumbent: the better of both is kept, with its certificate. The model does not
        show the proof that there is no separator, an undecided verdict, and a separator for which no float64
        coefficients of rows are known: a polynomial, or a hyperplane in rational numbers.
        """
        verdict = self.verdict
        if isinstance(verdict, Inseparable):
            alpha = np.zeros(self.task.y.size)
            alpha[verdict.support] = verdict.alpha
            return self._certified(found.point._replace(alpha=alpha), found, Status.INSEPARABLE), verdict
        separator = self._separator(verdict)
        if separator is not None:
            undecided = found.status in (Status.UNDECIDED, Status.NOT_FINITE)
            status = Status.STALLED if undecided else found.status
            # with the dual variables, its own or those of the fit, that prove more
            better = min(
                (
                    self._certified(separator._replace(alpha=alpha), found, status)
                    for alpha in (found.point.alpha, separator.alpha)
                ),
                key=lambda one: one.bounds.upper,
            )
            if better.bounds.lower > max(found.bounds.lower, 0.0):
                certified = self.task.problem.gap(better.bounds.lower, better.bounds.upper) <= tol
                return replace(better, status=Status.CERTIFIED if certified else status), None
        if found.bounds.lower > 0.0:
            return found, None
        return replace(found, status=self.deadline.status() or Status.UNDECIDED), verdict

    def _certified(self, point: KernelPoint, found: KernelSolution, status: Status) -> KernelSolution:
        """Certify a point on the data of the task."""
        proved = self.task.bounds(point)
        return replace(found, point=proved.point, bounds=proved.bounds, status=status)

    def _separator(self, verdict: Verdict) -> KernelPoint | None:
        """Return the separator of a verdict as a point; None where no float64 coefficients of rows are known."""
        if isinstance(verdict, KernelSeparator):
            coefficients = verdict.coefficients
        elif isinstance(verdict, LinearSeparator):
            coefficients = _as_combination(self.X, verdict.w)
        else:
            return None
        if coefficients is None:
            return None
        c, alpha = np.zeros((2, self.task.y.size))
        c[self.rows] = coefficients
        alpha[self.rows[verdict.certificate.support]] = verdict.certificate.dual
        return KernelPoint(alpha, c, verdict.b)


def _as_combination(X: Any, w: np.ndarray) -> np.ndarray | None:
    """Return the coefficients c with X'c nearest to w, by least squares; None of data that are too large for them.

    The part of w that is orthogonal to all rows does not change their scores.
    """
    X, columns = without_empty_columns(X)
    w, (n, d) = columns.restrict(w), X.shape
    if n * d * min(n, d) > MAX_LEAST_SQUARES:
        return None
    if not may_be_dense(X):  # normal equations, with n rows and columns
        X, w = (X @ X.T).astype(float), X @ w
    dense = np.asarray(X.toarray() if sp.issparse(X) else X, dtype=float)
    try:
        return np.linalg.lstsq(dense.T, w)[0]
    except np.linalg.LinAlgError:
        return None
