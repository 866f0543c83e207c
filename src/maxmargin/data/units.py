"""Units in which data of extreme scale are near 1: powers of two, so that nothing is rounded.

A common power sigma gives the same problem in other units. With x = sigma x', the problem with C becomes the problem
with C' = sigma^2 C, and w = w' / sigma, alpha = alpha' / sigma^2; objectives are divided by sigma^2, margins multiplied
by sigma.

A power tau_j for each column gives *another* problem, with w_j = w'_j / tau_j and the same alpha. If the columns of a
soft margin that are huge have a negligible share in |w|, they still have one after division by tau_j, and the solutions
of both problems agree. This is false where the huge columns separate the classes: these units are therefore tried
first, and the certificate on the user's data decides.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy.sparse as sp

from ..numerics.scales import column_extremes
from ..problem.problem import Problem
from .rows import Patterns
from .task import Task

# Squared norms between these need no other units: products of three of them are in the range of float64.
ORDINARY_SQUARES = 1e-80, 1e80
# Range of C, and of C times the sum of the weights. A C beyond it is clipped, and the certificate decides.
MIN_C, MAX_C = 1e-290, 1e300
MIN_ENTRY, MAX_ENTRY = 1e-154, 1e154  # the square of a largest entry between these is a normal float64 number

# The size of a column is max |x_ij| sqrt(C s), s being the mean sample weight. In a column above HUGE, dual variables
# with a rounding error of 1e-16 do not cancel to the accuracy of a fit; all columns above NEARLY_HUGE are then divided
# so that their size is LARGE.
HUGE, NEARLY_HUGE, LARGE = 1e9, 1e7, 1e5
# Range of a column as a share of its size below which the column counts as constant, and keeps its size.
MIN_SPREAD = 1e-6


@dataclass(frozen=True, eq=False)
class Units:
    """The units in which a problem is solved: powers of two.

    Parameters
    ----------
    sigma : float, default=1
        Divisor of all columns.
    columns : ndarray of shape (d + 1,), default=None
        Further divisors of the columns of X and of the constant coordinate; None: 1 for each.
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
        # C and the dual variables are multiplied by this
        factor = float(self.sigma if problem.power == 1 else self.sigma * self.sigma)
        if not problem.hard:
            C = max(min(C * factor, MAX_C / max(float(task.weights.sum()), 1.0)), MIN_C)
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
    """Yield the units in which to try to solve a task: units of each column if one is huge, then a common unit."""
    ordinary = units(task.problem, task.patterns)
    columns = _huge_columns(task.problem, task.patterns, task.weights)
    if columns is not None:
        first = Units(columns=columns)
        divided = first.task(task)
        yield replace(first, sigma=units(divided.problem, divided.patterns).sigma)
    yield ordinary


def in_users_units(problem: Problem, patterns: Patterns, weights: np.ndarray) -> bool:
    """Return whether data are solved in the user's units only."""
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
    top, bottom = column_extremes(X)
    size = np.append(np.maximum(np.abs(top), np.abs(bottom)), problem.rho) * root
    if not size.max() > HUGE:
        return None
    huge = size > NEARLY_HUGE
    if problem.free:  # a free intercept makes the problem invariant to shifts: the range of a column counts
        spread = np.append(top - bottom, 0.0) * root
        size = np.where(spread > MIN_SPREAD * size, spread, size)
    return 2.0 ** np.round(np.log2(np.where(huge, np.maximum(size, LARGE), LARGE) / LARGE))


def _point(task: Task, divisors: Any) -> tuple[np.ndarray, float] | None:
    """Return the starting point of a task in these units; None if it overflows."""
    if task.point is None:
        return None
    with np.errstate(over="ignore"):
        w = task.point[0] * divisors
    return (w, task.point[1]) if np.isfinite(w).all() else None


def _divided(X: Any, divisors: Any) -> Any:
    """Return X divided by a number, or each column divided by its entry of an array of shape (d,)."""
    if not sp.issparse(X):
        return X / divisors
    data = X.data / (divisors[X.indices] if np.ndim(divisors) else divisors)
    return type(X)((data, X.indices, X.indptr), shape=X.shape)


def check_constant(problem: Problem) -> None:
    """Raise ValueError if the square of the constant feature over- or underflows."""
    if problem.rho and not MIN_ENTRY <= problem.rho <= MAX_ENTRY:
        raise ValueError(
            f"The square of intercept_scaling={problem.rho:.3g} is beyond float64 numbers: take one of the size of the "
            "features, or scale the features first."
        )


def check_square(largest: float, of: str = "The largest entry of X is") -> None:
    """Raise ValueError if the square of the largest entry, or of the length of the longest row, over- or underflows."""
    if largest != 0.0 and not MIN_ENTRY <= largest <= MAX_ENTRY:
        raise ValueError(
            f"{of} {largest:.3g}, and its square is beyond float64 numbers: scale the features first, with "
            "MaxAbsScaler for instance (StandardScaler takes squares itself)."
        )


def units(problem: Problem, patterns: Patterns) -> Units:
    """Return ordinary units, or a common power of two where squares would leave the range of float64.

    Raises
    ------
    ValueError
        If the square of the largest entry, or of the constant feature, over- or underflows.
    """
    check_constant(problem)
    square = patterns.longest2
    if ORDINARY_SQUARES[0] <= square <= ORDINARY_SQUARES[1]:
        return Units()
    values = patterns.X.data if patterns.sparse else patterns.X
    largest = float(np.abs(values).max(initial=0.0))
    if largest == 0.0:
        return Units()
    check_square(largest)
    return Units(2.0 ** np.round(np.log2(max(largest, problem.rho))))
