"""Units in which data of extreme scale are near 1: powers of two, so that nothing is rounded.

One power for all, the same problem in other units: with x = sigma x', the problem with C is the one with
C' = sigma^2 C; w = w' / sigma, alpha = alpha' / sigma^2, the objective is that of the other divided by sigma^2, the
margin multiplied by sigma.

One power a column, *another* problem: the weights of a soft margin's huge columns are next to nothing in the norm, and
so are those of the columns divided by tau_j to be merely large; alpha stays and w_j = w'_j / tau_j. That is untrue
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

# squared norms between these need nothing: products of three of them are float64 numbers
ORDINARY = 1e-80, 1e80
# range of C, and of C times all weights, in float64; beyond, the certificate decides
LEAST_C, LARGEST_C = 1e-290, 1e300
LEAST, MOST = 1e-154, 1e154  # largest entries between these have squares in float64

# Sizes of a column, max |x_ij| sqrt(C). Where one is huge, dual variables, rounded by 1e-16, no longer cancel in it to
# the accuracy of a fit, and all columns that are no less than nearly so are divided to be merely large.
HUGE, NEARLY, LARGE = 1e9, 1e7, 1e5
FAR = 1e-6  # a column whose spread is less than this share of its size counts as constant: its size is kept


@dataclass(frozen=True, eq=False)
class Units:
    """The units in which a problem is solved; all are powers of two.

    `columns` divide the columns of X, the last of them the constant coordinate; `sigma` then divides all.
    """

    sigma: float = 1.0
    columns: np.ndarray | None = None

    @property
    def ordinary(self) -> bool:
        """Whether these are the user's units."""
        return self.sigma == 1.0 and self.columns is None

    def task(self, task: Task) -> Task:
        """Return the task in these units."""
        problem, C = task.problem, task.problem.C
        # of C, and of the dual variables
        factor = float(self.sigma if problem.power == 1 else self.sigma * self.sigma)
        if not problem.hard:
            most = LARGEST_C / max(float(task.weights.sum()), 1.0)
            C = max(min(C * factor, most), LEAST_C)
        divisors: Any = self.sigma if self.columns is None else self.sigma * self.columns[:-1]
        constant = self.sigma if self.columns is None else self.sigma * float(self.columns[-1])
        return replace(
            task,
            problem=replace(problem, C=C, intercept_scaling=(problem.rho or 1.0) / constant),
            patterns=Patterns(_divided(task.patterns.X, divisors)),
            start=None if task.start is None else task.start * factor,
            point=_point(task, divisors),
        )

    def primal(self, w: np.ndarray) -> np.ndarray:
        """Return w in the user's units."""
        w = w / self.sigma
        return w if self.columns is None else w / self.columns[:-1]

    def dual(self, problem: Problem, alpha: np.ndarray) -> np.ndarray:
        """Return dual variables in the user's units."""
        if self.sigma == 1.0:
            return alpha
        return alpha / self.sigma if problem.power == 1 else alpha / self.sigma / self.sigma


def attempts(task: Task) -> Iterator[Units]:
    """Yield the units to solve a task in: for ordinary data one, else those to try first, then the others."""
    ordinary = units(task.problem, task.patterns)
    columns = _huge_columns(task.problem, task.patterns, task.weights)
    if columns is not None:
        first = Units(columns=columns)
        there = first.task(task)
        yield replace(first, sigma=units(there.problem, there.patterns).sigma)
    yield ordinary


def in_users_units(problem: Problem, patterns: Patterns, weights: np.ndarray) -> bool:
    """Return whether data are solved in the user's units, and in no others."""
    return units(problem, patterns).ordinary and _huge_columns(problem, patterns, weights) is None


def _huge_columns(problem: Problem, patterns: Patterns, weights: np.ndarray) -> np.ndarray | None:
    """Return the divisors of all columns, the constant coordinate last: shape (d + 1,); None if none is huge."""
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


def _point(task: Task, divisors: Any) -> tuple[np.ndarray, float] | None:
    """Return the point at which a task begins, in these units; None where it is beyond float64 there."""
    if task.point is None:
        return None
    with np.errstate(over="ignore"):
        w = task.point[0] * divisors
    return (w, task.point[1]) if np.isfinite(w).all() else None


def _row(values: Any) -> np.ndarray:
    return np.asarray(values.toarray() if sp.issparse(values) else values, dtype=float).ravel()


def _divided(X: Any, divisors: Any) -> Any:
    """Return X divided by one number, or each column by a number of its own."""
    if not sp.issparse(X):
        return X / divisors
    data = X.data / (divisors[X.indices] if np.ndim(divisors) else divisors)
    return type(X)((data, X.indices, X.indptr), shape=X.shape)


def check_constant(problem: Problem) -> None:
    """Refuse a constant feature whose square is no float64 number."""
    if problem.rho and not LEAST <= problem.rho <= MOST:
        raise ValueError(
            f"The square of intercept_scaling={problem.rho:.3g} is beyond float64 numbers: take one of the size of the "
            "features, or scale the features first."
        )


def units(problem: Problem, patterns: Patterns) -> Units:
    """Return ordinary units, or a common power of two where squares would leave the range of float64.

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
