"""Presolve: reduce a task before it is solved, and map its points (w, b, alpha) back to the caller's data.

There are three steps, each with its inverse map:

* rows of weight 0 are left out, by the estimator: their dual variables are 0;
* copies of a row with the same label are merged into one row of their total weight: the dual variable of this row is
  divided among them in proportion to their weights;
* columns of extreme scale are divided by powers of two, one for all columns or one for each (`data.units`).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, ClassVar, Protocol

import numpy as np

from ..algorithms.batch.iterate import Point
from ..algorithms.batch.quadratic_program import SharedRows, is_wide
from ..data.duplicates import Merged, merge, unmerged
from ..data.rows import Patterns
from ..data.task import Task
from ..data.units import Units
from ..problem.problem import Problem

if TYPE_CHECKING:
    from .report import Job


class PresolveStep(Protocol):
    """A reduction of a task, with the inverse map of its points.

    Attributes
    ----------
    keeps_problem : bool
        Whether bounds of the reduced task are bounds of the original one.
    """

    keeps_problem: ClassVar[bool]

    def apply(self, task: Task) -> Task:
        """Return the reduced task."""
        ...

    def restore(self, point: Point) -> Point:
        """Return the point of the original task that corresponds to a point of the reduced one."""
        ...


@dataclass(frozen=True, eq=False)
class SelectedRows:
    """The selection of the rows of positive weight, which the estimator has made before the task.

    Attributes
    ----------
    places : ndarray of int
        Places of these rows in the caller's data.
    n : int
        Number of rows of the caller's data.
    """

    keeps_problem: ClassVar[bool] = True
    places: np.ndarray
    n: int

    def apply(self, task: Task) -> Task:
        """Return the task unchanged: it has these rows only."""
        return task

    def restore(self, point: Point) -> Point:
        """Set the dual variables of the other rows to 0."""
        alpha = np.zeros(self.n)
        alpha[self.places] = point.alpha
        return point._replace(alpha=alpha)


@dataclass(eq=False)
class DistinctRows:
    """The merging of copies of rows, with a cache of the parts of the active-set method that do not depend on labels.

    Attributes
    ----------
    merged : Merged
        The places and total weights of the distinct rows, and the division of dual variables among copies.
    patterns : Patterns
        The distinct rows.
    """

    keeps_problem: ClassVar[bool] = True
    merged: Merged
    patterns: Patterns
    _shared_rows: SharedRows | None = None

    def apply(self, task: Task) -> Task:
        """Return the task of the distinct rows, each with the total weight and the total start of its copies."""
        merged = self.merged
        return replace(
            task,
            patterns=self.patterns,
            y=task.y[merged.places],
            weights=merged.weights,
            start=None if task.start is None else merged.gather(task.start),
        )

    def restore(self, point: Point) -> Point:
        """Divide each dual variable among the copies of its row in proportion to their weights, within their caps."""
        return point._replace(alpha=self.merged.scatter(point.alpha))

    def shared_rows(self, problem: Problem) -> SharedRows:
        """Return the distinct rows in the form that the quadratic programs of all classes share."""
        if self._shared_rows is None:
            self._shared_rows = SharedRows(problem, self.patterns.X, self.patterns.square)
        return self._shared_rows


@dataclass(frozen=True, eq=False)
class ScaledUnits:
    """The division of columns by powers of two.

    Attributes
    ----------
    units : Units
        The powers of two, of all columns or of each.
    problem : Problem
        The problem of the original task.
    """

    keeps_problem: ClassVar[bool] = False
    units: Units
    problem: Problem

    def apply(self, task: Task) -> Task:
        """Return the task in these units."""
        return self.units.task(task)

    def restore(self, point: Point) -> Point:
        """Return the point in the caller's units."""
        return point._replace(w=self.units.primal(point.w), alpha=self.units.dual(self.problem, point.alpha))


def distinct_rows_of(job: Job) -> DistinctRows:
    """Return the distinct rows of a task, merged once for all one-vs-rest problems if no equal rows differ in class."""
    task, classes = job.task, job.classes
    if classes is not None:
        merge_all = partial(distinct_rows_of_classes, task.patterns, classes(), task.weights)
        shared = task.patterns.shared("distinct rows", merge_all)
        if shared is not None:
            return shared
    return distinct_rows(task.patterns, task.y, task.weights)


def distinct_rows(patterns: Patterns, labels: np.ndarray, weights: np.ndarray) -> DistinctRows:
    """Merge rows that agree in all entries and in their label.

    Parameters
    ----------
    patterns : Patterns
    labels : ndarray of shape (n,)
        Labels -1.0 and 1.0, or class numbers.
    weights : ndarray of shape (n,), positive
    """
    lengths = patterns.square
    if is_wide(patterns.n, patterns.d) and np.unique(lengths).size == lengths.size:
        # Equal rows have equal lengths. If all lengths differ, wide rows need no comparison, which would copy them.
        return DistinctRows(unmerged(labels, weights), patterns)
    merged = merge(patterns.X, labels, weights)
    return DistinctRows(merged, patterns.some(merged.places))


def distinct_rows_of_classes(
    patterns: Patterns, classes: np.ndarray, weights: np.ndarray
) -> DistinctRows | None:
    """Merge rows once for all one-vs-rest problems; return None if equal rows belong to several classes.

    Equal rows of two classes would have to be merged in the problem of a third class, but not in their own.

    Parameters
    ----------
    patterns : Patterns
    classes : ndarray of int of shape (n,)
    weights : ndarray of shape (n,), positive
    """
    found = distinct_rows(patterns, classes, weights)
    if found.patterns is patterns:  # no two rows are equal
        return found
    rows, ones = found.patterns, np.ones(found.patterns.n)
    return found if merge(rows.X, ones, ones).y.size == rows.n else None
