"""The binary tasks of a linear fit: rows and weights that they share, and the solution of each."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from math import sqrt
from typing import Any

import numpy as np

from ..algorithms import ALGORITHMS, Algorithm, named_algorithm
from ..certificates.certificate import Sample
from ..certificates.row_pass import certify
from ..certificates.verdicts import LinearSeparator, Verdict
from ..data.door import check_rows, shifted, shifted_intercept
from ..data.rows import Patterns
from ..fit.deadline import Deadline, Reporter, solve_tasks
from ..fit.exact import is_small
from ..fit.report import Solution, Stopping, Task
from ..fit.solve import proved_status, solve
from ..numerics.columns import Columns, without_empty_columns
from ..numerics.sizes import draw_seeds, jobs, require_weight_memory
from ..problem.problem import Problem
from ..separability.linear import LinearSearch
from ..separability.search import about_all_rows
from . import validation

# Entries, summed over the classes, below which the exact stages end sooner than another thread starts. A larger number
# solves more problems in one thread. A round value; not tuned.
MIN_THREADED_ENTRIES = 2e6


def fit_in_memory(
    model: Any,
    problem: Problem,
    X: Any,
    y: Any,
    sample_weight: Any,
    deadline: Deadline,
) -> None:
    """Fit a classifier to rows that are in memory, and set its attributes.

    Parameters
    ----------
    model : MaxMarginClassifier
    problem : Problem
    X, y, sample_weight
        Of `fit`.
    deadline : Deadline
        That of the whole fit.
    """
    given, targets = validation.validated_data(model, problem, X, y, sample_weight)
    X, columns = without_empty_columns(given)
    if model.p == "log":
        problem = replace(problem, p=max(2.0, 2.0 * np.log(columns.count)))
    tasks = LinearTasks(model, problem, X, columns, targets)
    # of the model, and of its file while it is saved
    require_weight_memory(2 * len(tasks.names), columns.count)
    solve_task = partial(tasks.solve, Reporter(model))
    with deadline.interruptible():  # until the model is stored
        solutions = solve_tasks(solve_task, len(tasks.names), tasks.workers, deadline)
        model.classes_, model.class_weight_ = targets.classes, targets.class_weights
        model.coef_ = columns.restore(np.array([solution.w for solution in solutions]))
        model.intercept_ = np.array([solution.b for solution in solutions])
        model._store(tasks.names, solutions, given)


class LinearTasks:
    """The binary tasks of one linear fit, which share rows and the deadline.

    Parameters
    ----------
    model : MaxMarginClassifier
        Its parameters, and with `warm_start` its last fit.
    problem : Problem
    X : ndarray or CSR matrix of shape (n, k)
        The data on the columns with entries.
    columns : Columns
        The places of these columns in the caller's data.
    targets : Targets
        Labels and weights.

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
        X: Any,
        columns: Columns,
        targets: validation.Targets,
    ) -> None:
        self.model, self.problem, self.columns, self.targets = model, problem, columns, targets
        self.names = [None] if targets.classes.size == 2 else list(targets.classes)
        self._kept = slice(None) if targets.selected is None else targets.selected
        self.X, shift = shifted(problem, X)
        used = self.X if targets.selected is None else self.X[targets.selected]
        self.rows = rows = Patterns(used, columns, shift)
        names = getattr(model, "feature_names_in_", None)
        check_rows(sqrt(rows.longest2), self.X, names if columns.places is None else None)
        self.algorithm = None
        if model.algorithm != "auto":
            named = linear_algorithm(model.algorithm, problem)
            self.algorithm = named.for_rows(targets.y.size, lambda numbers: numbers[self._kept])
        quick = self.algorithm is None and problem.euclidean and is_small(problem, rows)
        quick = quick and rows.entries * len(self.names) < MIN_THREADED_ENTRIES
        self.workers = 1 if quick else jobs(model.n_jobs, len(self.names))
        self._start = self._last_solution() if model.warm_start else (None, None)
        self._seeds = draw_seeds(model.random_state, targets.classes.size)

    def _last_solution(self) -> tuple[list[np.ndarray] | None, list[tuple[np.ndarray, float]] | None]:
        """Return the dual variables (None for other rows) and the (w, b) of the last fit; None for other columns."""
        model, targets = self.model, self.targets
        known = np.array_equal(targets.classes, getattr(model, "classes_", ()))
        if not known or model.coef_.shape[1] != self.columns.count:
            return None, None
        parts = model.certificate_.certificates
        duals = [part.alpha[self._kept] for part in parts] if parts[0].rows == targets.y.size else None
        points = zip(self.columns.restrict(model.coef_), model.intercept_.tolist(), strict=True)
        return duals, [(w, shifted_intercept(w, b, self.rows.shift, 1)) for w, b in points]

    def solve(self, reporter: Reporter, k: int, deadline: Deadline) -> Solution:
        """Solve task k, with a warm start from the dual variables and the (w, b) of the last fit, if there are any."""
        duals, points = self._start
        targets, rows, several = self.targets, self.rows, len(self.names) > 1
        signs = np.where(targets.y == targets.classes[k if several else 1], 1.0, -1.0)
        verdicts: list[Verdict] = []

        def separability(start: np.ndarray | None) -> Verdict:
            if not verdicts:
                verdicts.append(self._verdict(task.y, deadline, start))
            return verdicts[0]

        task = Task(
            self.problem, rows, signs[self._kept], targets.weights[self._kept], self.algorithm,
            seed=int(self._seeds[k]), label=self.names[k],
            start=None if duals is None else duals[k], point=None if points is None else points[k],
            separability=separability,
        )  # fmt: skip
        solution = solve(task, Stopping(self.model.tol, self.model.max_iter, deadline, reporter.report))
        if rows.shift is not None:
            sample = Sample(rows.X, task.y, task.weights, self.columns, rows.shift, rows.lengths)
            solution = self._with_intercept_of_caller(solution, sample)
        verdict, certificate, selected = solution.verdict, solution.certificate, targets.selected
        if isinstance(verdict, LinearSeparator):
            verdict = replace(verdict, w=self.columns.restore(verdict.w))
        if selected is not None:  # rows of weight 0 belong to the data, which the fingerprint identifies
            data = Sample(self.X, signs, targets.weights, self.columns, rows.shift)
            support = selected[certificate.support]
            certificate = replace(certificate, support=support, fingerprint=data.fingerprint)
            verdict = None if verdict is None else about_all_rows(verdict, selected, signs.size)
        return replace(solution, certificate=certificate, verdict=verdict)

    def _with_intercept_of_caller(self, found: Solution, sample: Sample) -> Solution:
        """Return a solution on shifted rows with the intercept for the caller's rows, rounded, and its certificate."""
        b, tol = shifted_intercept(found.w, found.b, sample.shift, -1), self.model.tol
        inside = shifted_intercept(found.w, b, sample.shift, 1)
        certificate = certify(self.problem, sample, found.w, inside, found.certificate.alpha, tol)
        status = proved_status(found.status, self.problem, certificate, tol)
        return replace(found, b=b, certificate=certificate, status=status)

    def _verdict(self, y: np.ndarray, deadline: Deadline, start: np.ndarray | None) -> Verdict:
        """Return the verdict on whether the classes of a task are separable.

        The search begins with `start`, the dual variables with which the named algorithm has ended, unless it is None.
        """
        problem, X, classes = self.problem, self.rows.X, self.targets.classes
        sides = tuple(classes.tolist()) if classes.size == 2 else (False, True)
        begun = {} if start is None else {"algorithm": self.algorithm, "start": start}
        return LinearSearch(problem, X, y, sides, np.inf, deadline, self.columns, **begun).verdict()


def linear_algorithm(algorithm: Any, problem: Problem | None = None) -> Algorithm:
    """Return the named algorithm of a linear classifier.

    Raises
    ------
    ValueError
        If there is no such algorithm, or it does not solve the problem; the message names algorithms that do.
    """
    algorithm = named_algorithm(algorithm, ALGORITHMS, "MPU()", Algorithm)
    if algorithm.schedule not in algorithm.schedules:
        got = f"got {algorithm.schedule!r}"
        raise ValueError(f"schedule of {algorithm.name} must be one of {algorithm.schedules}; {got}.")
    if problem is not None:
        validation.check_solves(algorithm, problem, ALGORITHMS)
    return algorithm
