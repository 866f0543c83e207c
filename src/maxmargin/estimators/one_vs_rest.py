"""The binary tasks of a linear fit: one for two classes, else each class against the rest."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from threading import Lock
from typing import Any

import numpy as np

from ..algorithms import Algorithm
from ..certificates.sample import Sample
from ..certificates.verdicts import Verdict
from ..data.rows import Patterns
from ..data.task import Task
from ..fit.deadline import Watch
from ..fit.driver import solve
from ..fit.one_call import small_dense_rows
from ..fit.policy import Choice, choose, fallback, gains_by_threads
from ..fit.presolve import DistinctRows, SelectedRows, SharedRows, distinct_rows_of_classes
from ..fit.report import Report, Solution, Stopping
from ..numerics.draws import Draws
from ..numerics.sparse_columns import Columns
from ..numerics.threads import jobs
from ..problem.problem import Problem
from ..separability.linear import linear_verdict
from ..separability.search import fit_task
from .progress import Reporter
from .targets import Targets
from .task_threads import solve_tasks
from .validation import draw_seeds, python_label


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

    @property
    def names(self) -> list[Any]:
        """The positive class of each binary task; None for two classes."""
        classes = self.targets.classes
        return [None] if classes.size == 2 else list(classes)

    def signs(self, task: int) -> np.ndarray:
        """Return the labels -1.0 and 1.0 of one binary task."""
        targets = self.targets
        positive = 1 if targets.classes.size == 2 else task
        signs = 2.0 * (targets.y == targets.classes[positive])
        signs -= 1.0
        return signs

    def model(self, points: Sequence[tuple[np.ndarray, float]]) -> dict[str, Any]:
        """Return the fitted attributes of a classifier with one (w, b) per task."""
        w, b = zip(*points, strict=True)
        coef = self.columns.restore(np.vstack(w))
        return {"classes_": self.targets.classes, "coef_": coef, "intercept_": np.array(b)}


class OneVsRest:
    """The binary tasks of one fit, which share rows, random seeds and the deadline.

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
        self.patterns, self.selected, norms = data.patterns, None, None
        if targets.selected is None:
            norms = np.sqrt(data.patterns.square)
        else:
            self.patterns = data.patterns.some(targets.selected)
            self.selected = SelectedRows(targets.selected, targets.y.size)
        self.weights = targets.weights[targets.kept]
        zeros = np.zeros(targets.y.size)
        self.sample = Sample(data.X, zeros, targets.weights, norms, columns=data.columns)
        self.shared = SharedRows(lambda: self._distinct, lambda: self._small_dense)
        self._seeds_lock = Lock()

    @cached_property
    def workers(self) -> int:
        """Tasks that are solved at the same time."""
        tasks, n_jobs = len(self.data.names), self.model.n_jobs
        gains = self.named is not None or gains_by_threads(self.problem, self.patterns, tasks)
        workers = jobs(n_jobs, tasks) if gains or n_jobs is not None else 1  # also checks n_jobs
        return workers if gains else 1

    def solve(self, reporter: Reporter) -> list[Solution]:
        """Solve all tasks, in threads where that is faster."""
        with Watch(self.model.max_time) as watch:
            return solve_tasks(partial(self._solve, reporter), len(self.data.names), self.workers, watch)

    def _solve(self, reporter: Reporter, k: int, watch: Watch) -> Solution:
        """Solve task k."""
        data, targets, name = self.data, self.data.targets, self.data.names[k]
        signs = data.signs(k)
        y = signs[targets.kept]
        like = self.sample if len(data.names) > 1 else None
        start = None if self.start is None else self.start[k][targets.kept]
        point = None if self.points is None else self.points[k]

        def on_report(report: Report, best: Callable[[], Any]) -> None:
            reporter.report(report, best, watch)

        solution = solve(
            Task(self.problem, self.patterns, y, self.weights, start, point, name),
            self._choice(y, watch),
            Stopping(self.model.tol, self.model.max_iter, watch, on_report),
            Draws(partial(self._seed, k)),
            Sample(data.X, signs, targets.weights, self.sample.norms, like, data.columns),
            self.selected,
            _Separability(self, y, watch),
            self.shared,
        )
        reporter.end_task(name, solution.status)
        return solution

    def _choice(self, y: np.ndarray, watch: Watch) -> Choice:
        """Return the algorithm of one task; only for hard margins does it depend on the labels."""
        exact = self.model._exact
        if self.named is not None:
            return Choice(self.named, "asked for", exact=exact)
        if self.problem.hard:
            algorithm, reason = choose(self.problem, self.patterns, y, watch.check)
        else:
            algorithm, reason = self._common_choice
        return Choice(algorithm, reason, True, exact, fallback(self.problem, self.patterns))

    @cached_property
    def _common_choice(self) -> tuple[Algorithm, str]:
        return choose(self.problem, self.patterns)

    @cached_property
    def _distinct(self) -> DistinctRows | None:
        targets = self.data.targets
        if targets.classes.size == 2:
            return None
        codes = np.searchsorted(targets.classes, targets.y[targets.kept])
        return distinct_rows_of_classes(self.patterns, codes, self.weights)

    @cached_property
    def _small_dense(self) -> Any:
        return small_dense_rows(self.problem, self.patterns, self.weights)

    @cached_property
    def _seeds(self) -> np.ndarray:
        return draw_seeds(self.model.random_state, self.data.targets.classes.size)

    def _seed(self, k: int) -> int:
        """Return the seed of one task; those of all are drawn by the first that asks for one."""
        with self._seeds_lock:
            return int(self._seeds[k])


class _Separability:
    """The verdict on whether the classes of a task are separable, sought at the first call."""

    def __init__(self, tasks: OneVsRest, y: np.ndarray, watch: Watch) -> None:
        self._tasks, self._y, self._watch = tasks, y, watch

    def __call__(self) -> Verdict:
        return self._verdict

    @cached_property
    def _verdict(self) -> Verdict:
        tasks, data, targets = self._tasks, self._tasks.data, self._tasks.data.targets
        n, selected = targets.y.size, targets.selected
        rows = np.arange(n) if selected is None else selected
        names: tuple[Any, Any] = (False, True)
        if targets.classes.size == 2:
            names = python_label(targets.classes[0]), python_label(targets.classes[1])
        task = fit_task(tasks.problem, tasks.patterns.X, self._y, names, self._watch)
        return linear_verdict(task, rows, n, data.columns)
