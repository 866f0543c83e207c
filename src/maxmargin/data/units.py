"""Data of extreme scale, brought near 1 by powers of two: nothing is rounded.

One power for all, the same problem in other units: with x = sigma x', the problem with C is the one with
C' = sigma^2 C; w = w' / sigma, alpha = alpha' / sigma^2, the objective is that of the other divided by sigma^2, the
margin multiplied by sigma.

One power a column, *another* problem: of a soft margin's huge columns the regulariser sees next to nothing, nor does
it when they are divided by tau_j so that they are merely large; alpha stays and w_j = w'_j / tau_j. That is untrue
where the huge columns separate the classes, so that it is tried first and the certificate decides.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy.sparse as sp

from ..problem.problem import Problem
from .rows import Patterns
from .task import Task

ORDINARY = (1e-80, 1e80)  # squared norms between these need nothing
LEAST_C, LARGEST_C = 1e-290, 1e300  # of what losses weigh in these units; beyond, the certificate decides
LEAST, MOST = 1e-154, 1e154  # largest entries between these have squares in float64


# sizes of a column, max |x_ij| sqrt(C): where one is huge, all that are no less than nearly so become merely large
HUGE, NEARLY, LARGE = 1e9, 1e7, 1e5
FAR = 1e-6  # a column whose spread is less than this share of its size is constant


@dataclass(frozen=True, eq=False)
class Units:
    """The units in which a problem is solved; all are powers of two.

    `columns` divide the columns of X, the last of them the constant coordinate; `sigma` then divides all.
    """

    sigma: float = 1.0
    columns: np.ndarray | None = None

    @property
    def ordinary(self) -> bool:
        """Are these the user's?"""
        return self.sigma == 1.0 and self.columns is None

    def task(self, task: Task) -> Task:
        """The task in these units."""
        if self.columns is not None:
            task = replace(
                task,
                problem=replace(task.problem, intercept_scaling=(task.problem.rho or 1.0) / self.columns[-1]),
                patterns=Patterns(_divided(task.patterns.X, self.columns[:-1])),
                point=_point(task, self.columns[:-1]),
            )
        if self.sigma == 1.0:
            return task
        problem, start = task.problem, task.start
        C = problem.C
        if not problem.hard:
            most = LARGEST_C / max(float(task.weights.sum()), 1.0)
            C = max(min(C * float(self._losses(problem)), most), LEAST_C)
        return replace(
            task,
            problem=replace(problem, C=C, intercept_scaling=(problem.rho or 1.0) / self.sigma),
            patterns=Patterns(task.patterns.X * (1.0 / self.sigma)),
            start=None if start is None else start * self._losses(problem),
            point=_point(task, self.sigma),
        )

    def primal(self, w: np.ndarray) -> np.ndarray:
        """w in the user's units."""
        w = w / self.sigma
        return w if self.columns is None else w / self.columns[:-1]

    def dual(self, problem: Problem, alpha: np.ndarray) -> np.ndarray:
        """Dual weights in the user's units: they themselves where these are no others."""
        if self.sigma == 1.0:
            return alpha
        return alpha / self.sigma if problem.power == 1 else alpha / self.sigma / self.sigma

    def _losses(self, problem: Problem) -> float:
        """What the losses weigh in these units."""
        return self.sigma if problem.power == 1 else self.sigma * self.sigma


def attempts(task: Task) -> Iterator[Units]:
    """The units to solve a task in: of ordinary data one, else those to try first, then the others."""
    ordinary = units(task.problem, task.patterns)
    columns = _huge_columns(task.problem, task.patterns, task.weights)
    if columns is not None:
        first = Units(columns=columns)
        there = first.task(task)
        yield replace(first, sigma=units(there.problem, there.patterns).sigma)
    yield ordinary


def in_users_units(problem: Problem, patterns: Patterns, weights: np.ndarray) -> bool:
    """Are these data to be solved in the user's units, and in no others?"""
    return units(problem, patterns).ordinary and _huge_columns(problem, patterns, weights) is None


def _huge_columns(problem: Problem, patterns: Patterns, weights: np.ndarray) -> np.ndarray | None:
    """What to divide huge columns by, the constant coordinate last; None where there are none."""
    X = patterns.X
    if problem.hard or not problem.euclidean:
        return None
    root = math.sqrt(problem.C) * math.sqrt(float(weights.sum()) / max(weights.size, 1))
    longest = math.sqrt(patterns.longest2)
    if max(longest, problem.rho) * root <= HUGE:
        return None
    top, bottom = (_row(extreme(axis=0)) for extreme in (X.max, X.min))
    size = np.append(np.maximum(np.abs(top), np.abs(bottom)), problem.rho) * root
    if not size.max() > HUGE:
        return None
    huge = size > NEARLY
    if problem.free:  # what a column is after a shift
        spread = np.append(top - bottom, 0.0) * root
        size = np.where(spread > FAR * size, spread, size)
    return 2.0 ** np.round(np.log2(np.where(huge, np.maximum(size, LARGE), LARGE) / LARGE))


def _point(task: Task, units: Any) -> tuple[np.ndarray, float] | None:
    """What a task begins with in these units; None where it is beyond float64 there."""
    if task.point is None:
        return None
    with np.errstate(over="ignore"):
        w = task.point[0] * units
    return (w, task.point[1]) if np.isfinite(w).all() else None


def _row(values: Any) -> np.ndarray:
    return np.asarray(values.toarray() if sp.issparse(values) else values, dtype=float).ravel()


def _divided(X: Any, columns: np.ndarray) -> Any:
    """X with each column divided by a number of its own."""
    if not sp.issparse(X):
        return X / columns
    X = X.copy()
    X.data = X.data / columns[X.indices]
    return X


def check_constant(problem: Problem) -> None:
    """Refuse a constant feature whose square is no float64 number."""
    if problem.rho and not LEAST <= problem.rho <= MOST:
        raise ValueError(
            f"The square of intercept_scaling={problem.rho:.3g} is beyond float64 numbers: take one of the size of the "
            "features, or scale the features first."
        )


def units(problem: Problem, patterns: Patterns) -> Units:
    """Ordinary units, but for data whose squares would leave the range of float64.

    Raises
    ------
    ValueError
        If not even one entry, or the constant feature, has a square that is a float64 number.
    """
    check_constant(problem)
    square = patterns.longest2
    if ORDINARY[0] <= square <= ORDINARY[1]:
        return Units()
    values = patterns.X.data if patterns.sparse else patterns.X
    largest = float(np.abs(values).max(initial=0.0))
    if largest == 0.0:
        return Units()
    if not LEAST <= largest <= MOST:
        raise ValueError(
            f"The largest entry of X is {largest:.3g}, and its square is beyond float64 numbers: scale the features "
            "first, with StandardScaler or MaxAbsScaler for instance."
        )
    return Units(2.0 ** np.round(np.log2(max(largest, problem.rho))))
