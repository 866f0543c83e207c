"""Presolve: reduce a task before it is solved, and map its points (w, b, alpha) back to the caller's data.

There are two steps, each with its inverse map:

* rows of weight 0 are left out, by the estimator: their dual variables are 0;
* columns of extreme scale are divided by powers of two, one for all columns or one for each (`data.units`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Protocol

import numpy as np

from ..algorithms.batch.iterate import Point
from ..data.task import Task
from ..data.units import Units
from ..problem.problem import Problem


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
