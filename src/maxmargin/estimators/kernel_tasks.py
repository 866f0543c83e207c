"""The binary tasks of a kernel fit: each class against the rest, or each pair of classes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from ..algorithms import Algorithm, Decomposition
from ..certificates.certificate import Certificate
from ..certificates.expansions import certificate
from ..certificates.gram import KernelSample
from ..certificates.sample import Sample
from ..certificates.verdicts import Verdict
from ..fit.deadline import Watch
from ..fit.lockstep import KernelSolution, Part, solve_kernel
from ..fit.report import Report, Stopping
from ..kernels.functions import Kernel
from ..numerics.threads import jobs
from ..problem.multiclass import Parts, named_parts
from ..problem.problem import Problem
from ..problem.status import Status
from .distinct_kernel_rows import DistinctKernelRows
from .kernel_separability import KernelSeparability
from .progress import Reporter
from .targets import Targets
from .task_threads import solve_tasks
from .validation import draw_seeds

Support = tuple[np.ndarray, np.ndarray]  # rows with coefficients other than 0, and these coefficients


@dataclass(frozen=True, eq=False)
class TaskSolution:
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

    @property
    def names(self) -> list[Any]:
        """The class, or the pair of classes, of each task; None for two classes."""
        return named_parts(self.scheme, self.targets.classes)

    def task_labels(self, task: int) -> tuple[np.ndarray, np.ndarray]:
        """Return the labels -1.0 and 1.0 of all rows in one task, and their weights in it."""
        signs, takes_part = self.scheme.signs(task, self.targets.codes)
        return signs, np.where(takes_part, self.targets.weights, 0.0)

    def certificates(
        self, problem: Problem, found: list[TaskSolution]
    ) -> tuple[list[Certificate], list[Support]]:
        """Return the certificate and the support vectors of each task.

        One task after the other: the dual variables of all pairs of classes would take much memory.
        """
        sample = Sample(self.X, np.zeros(self.X.shape[0]), self.targets.weights)
        certificates, supports = [], []
        for k, one in enumerate(found):
            solution = self.rows.spread(one.solution, one.places)
            signs, weights = self.task_labels(k)
            alpha = np.minimum(
                solution.point.alpha, problem.caps(weights)
            )  # division among equal rows rounds
            part = replace(sample, y=signs, weights=weights, like=sample)
            certificates.append(certificate(problem, self.kernel, part, solution.bounds, alpha))
            supports.append(nonzero(solution.point.coefficients))
        return certificates, supports


class KernelTasks:
    """The binary tasks of one fit. Tasks on the same rows form a group, which shares the rows of the kernel.

    Parameters
    ----------
    model : KernelMaxMarginClassifier
        Its parameters.
    problem : Problem
    algorithm : Algorithm or Decomposition
    data : KernelData
    """

    def __init__(
        self, model: Any, problem: Problem, algorithm: Algorithm | Decomposition, data: KernelData
    ) -> None:
        self.model, self.problem, self.algorithm, self.data = model, problem, algorithm, data
        self.names = data.names
        tasks = range(len(self.names))
        self.groups = [list(tasks)] if data.scheme.name == "ovr" else [[k] for k in tasks]
        self.workers = jobs(model.n_jobs, len(self.groups))
        self.sample = KernelSample(data.kernel, data.rows.X, data.rows.rounding)
        self._seeds = draw_seeds(model.random_state, len(self.names))
        self._separability: dict[int, KernelSeparability] = {}

    @property
    def sequential(self) -> bool:
        """Whether one task ends before the next begins."""
        return self.data.scheme.name == "ovo" and self.workers == 1

    def solve(self, reporter: Reporter) -> list[TaskSolution]:
        """Solve all tasks, groups in threads of their own; hard margins are combined with verdicts on separability."""
        with Watch(self.model.max_time) as watch:
            solve = partial(self._solve_group, reporter, watch)
            groups = solve_tasks(solve, len(self.groups), self.workers, watch)
            found = [one for group in groups for one in group]
            return [self._with_verdict(k, one, watch) for k, one in enumerate(found)]

    def _solve_group(self, reporter: Reporter, whole: Watch, g: int, watch: Watch) -> list[TaskSolution]:
        """Solve the tasks of group g within the time of `watch`, a part of that of the whole fit."""
        data, group = self.data, self.groups[g]
        places = np.flatnonzero(data.scheme.signs(group[0], data.rows.codes)[1])
        if not places.size:  # both classes of a pair have weight 0
            return [TaskSolution(KernelSolution.nothing(), places)]
        contradictory = {
            k for k in group if self.problem.hard and self._separable(k, whole).is_contradictory()
        }
        parts = [self._part(k, places, whole) for k in group if k not in contradictory]

        def on_report(report: Report, best: Callable[[], Any]) -> None:
            reporter.report(report, lambda: (best(), places), watch)

        max_iter = np.iinfo(np.int64).max if self.model.max_iter == -1 else self.model.max_iter
        stopping = Stopping(self.model.tol, max_iter, watch, on_report)
        sample, cache_size = self.sample.part(places), self.model.cache_size
        solved = iter(solve_kernel(sample, parts, stopping, cache_size) if parts else [])
        return [
            TaskSolution(KernelSolution.open(places.size) if k in contradictory else next(solved), places)
            for k in group
        ]

    def _part(self, k: int, places: np.ndarray, whole: Watch) -> Part:
        """Return task k on its distinct rows, for the solver."""
        data = self.data
        named = self.model.algorithm != "auto"
        return Part(
            self.problem,
            data.scheme.signs(k, data.rows.codes[places])[0],
            data.rows.weights[places],
            self.algorithm,
            "asked for" if named else "kernels: working sets of the rows that matter",
            int(self._seeds[k]),
            self.names[k],
            exact=self.model._exact,
            inseparable=lambda: self._separable(k, whole).is_inseparable(),
        )

    def _separable(self, k: int, whole: Watch) -> KernelSeparability:
        """Return the separability of task k, one object however often it is asked for."""
        if k not in self._separability:
            data = self.data
            signs, weights = data.task_labels(k)
            sides = data.scheme.sides(k, data.targets.classes)
            self._separability[k] = KernelSeparability(
                data.kernel, self.problem, data.X, signs, weights, sides, whole
            )
        return self._separability[k]

    def _with_verdict(self, k: int, found: TaskSolution, whole: Watch) -> TaskSolution:
        """Combine a hard margin with the verdict on its separability, where that proves more."""
        if not self.problem.hard:
            return found
        solution = found.solution
        undecided = solution.status is Status.UNDECIDED and not solution.bounds.lower > 0.0
        separability = self._separable(k, whole)
        if not (undecided or separability.is_better(solution)):
            return found
        on_all_rows = self.data.rows.spread(solution, found.places)
        combined, verdict = separability.combine(on_all_rows, self.model.tol)
        return TaskSolution(combined, None, verdict)


def nonzero(coefficients: np.ndarray) -> Support:
    """Return the rows with coefficients other than 0, and these coefficients."""
    rows = np.flatnonzero(coefficients)
    return rows, coefficients[rows]


def coefficient_matrix(supports: list[Support], used: np.ndarray, n: int) -> np.ndarray:
    """Return the coefficients of the rows `used`, of n in all; shape (n_tasks, n_used)."""
    column, out = np.empty(n, np.intp), np.zeros((len(supports), used.size))
    column[used] = np.arange(used.size)
    for line, (rows, values) in zip(out, supports, strict=True):
        line[column[rows]] = values
    return out
