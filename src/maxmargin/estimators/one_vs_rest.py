"""The binary tasks of a linear fit: one for two classes, else each class against the rest."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from threading import Lock
from typing import Any

import numpy as np
from joblib import Parallel, delayed

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
from .hard_margin import item
from .parameters import seeds
from .progress import Hearing


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
    y : ndarray of shape (n,)
        Labels.
    weights : ndarray of shape (n,)
        Sample weights times class weights.
    selected : ndarray of int, default=None
        Rows of positive weight; None for all.
    classes : ndarray
    class_weights : ndarray of shape (n_classes,)
    """

    given: Any
    X: Any
    columns: Columns
    patterns: Patterns
    y: np.ndarray
    weights: np.ndarray
    selected: np.ndarray | None
    classes: np.ndarray
    class_weights: np.ndarray

    @property
    def labels(self) -> list[Any]:
        """The positive class of each binary task; None for two classes."""
        return [None] if self.classes.size == 2 else list(self.classes)

    @property
    def kept(self) -> Any:
        """An index of the rows of positive weight."""
        return slice(None) if self.selected is None else self.selected

    def signs(self, task: int) -> np.ndarray:
        """Return the labels -1.0 and 1.0 of one binary task."""
        positive = 1 if self.classes.size == 2 else task
        signs = 2.0 * (self.y == self.classes[positive])
        signs -= 1.0
        return signs

    def model(self, points: Sequence[tuple[np.ndarray, float]]) -> dict[str, Any]:
        """Return the fitted attributes of a classifier with one (w, b) per task."""
        w, b = zip(*points, strict=True)
        coef = self.columns.restore(np.vstack(w))
        return {"classes_": self.classes, "coef_": coef, "intercept_": np.array(b)}


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
        self.patterns, self.selected = data.patterns, None
        if data.selected is not None:
            self.patterns = data.patterns.some(data.selected)
            self.selected = SelectedRows(data.selected, data.y.size)
        self.weights = data.weights[data.kept]
        norms = np.sqrt(data.patterns.square) if data.selected is None else None
        self.sample = Sample(data.X, np.zeros(data.y.size), data.weights, norms, columns=data.columns)
        self.shared = SharedRows(lambda: self._distinct, lambda: self._small_dense)
        self._seeds_lock, self._reports_lock = Lock(), Lock()

    @cached_property
    def workers(self) -> int:
        """Tasks that are solved at the same time."""
        tasks, n_jobs = len(self.data.labels), self.model.n_jobs
        gains = self.named is not None or gains_by_threads(self.problem, self.patterns, tasks)
        workers = jobs(n_jobs, tasks) if gains or n_jobs is not None else 1  # also checks n_jobs
        return workers if gains else 1

    def solve(self, tasks: Any, hearing: Hearing) -> list[Solution]:
        """Solve all tasks, in threads where that is faster.

        Parameters
        ----------
        tasks : RoundTasks
            Contexts of scikit-learn callbacks.
        hearing : Hearing
            Receives all reports.
        """
        count = range(len(self.data.labels))
        with Watch(self.model.max_time) as watch:
            if self.workers == 1:
                return [self._solve(k, watch, tasks, hearing) for k in count]
            parallel: Any = Parallel(n_jobs=self.workers, require="sharedmem")
            return list(parallel(delayed(self._solve)(k, watch, tasks, hearing) for k in count))

    def _solve(self, k: int, watch: Watch, tasks: Any, hearing: Hearing) -> Solution:
        data, labels = self.data, self.data.labels
        watch = watch.part(
            -(-(len(labels) - k) // self.workers)
        )  # the tasks that are left share the time that is left
        signs = data.signs(k)
        like = self.sample if len(labels) > 1 else None
        sample = Sample(data.X, signs, data.weights, self.sample.norms, like, data.columns)
        y = signs[data.kept]
        start = None if self.start is None else self.start[k][data.kept]
        point = None if self.points is None else self.points[k]

        def on_report(report: Report, best: Callable[[], Any]) -> None:
            with self._reports_lock:
                hearing(report, best, watch)

        solution = solve(
            Task(self.problem, self.patterns, y, self.weights, start, point, labels[k]),
            self._choice(y, watch),
            Stopping(self.model.tol, self.model.max_iter, watch, on_report),
            Draws(partial(self._seed, k)),
            sample,
            self.selected,
            _Question(self, y, watch),
            self.shared,
        )
        with self._reports_lock:
            tasks.ended(labels[k], solution.status)
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
        data = self.data
        if len(data.labels) == 1:
            return None
        numbers = np.searchsorted(data.classes, data.y[data.kept])
        return distinct_rows_of_classes(self.patterns, numbers, self.weights)

    @cached_property
    def _small_dense(self) -> Any:
        return small_dense_rows(self.problem, self.patterns, self.weights)

    @cached_property
    def _seeds(self) -> np.ndarray:
        return seeds(self.model.random_state, self.data.classes.size)

    def _seed(self, k: int) -> int:
        """Return the seed of one task; those of all are drawn by the first that asks for one."""
        with self._seeds_lock:
            return int(self._seeds[k])


class _Question:
    """The question whether the classes of a task are separable, answered once."""

    def __init__(self, tasks: OneVsRest, y: np.ndarray, watch: Watch) -> None:
        self._tasks, self._y, self._watch = tasks, y, watch

    def __call__(self) -> Verdict:
        return self._verdict

    @cached_property
    def _verdict(self) -> Verdict:
        tasks, data = self._tasks, self._tasks.data
        rows = np.arange(data.y.size) if data.selected is None else data.selected
        names: tuple[Any, Any] = (False, True)
        if data.classes.size == 2:
            names = item(data.classes[0]), item(data.classes[1])
        task = fit_task(tasks.problem, tasks.patterns.X, self._y, names, self._watch)
        return linear_verdict(task, rows, data.y.size, data.columns)
