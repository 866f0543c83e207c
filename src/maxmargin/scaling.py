"""Data of extreme scale, brought near 1 by a power of two: no rounding, and the same problem in other units.

With x = sigma x', the problem with C is the one with C' = sigma^2 C: w = w' / sigma, alpha = alpha' / sigma^2, the
objective is that of the other divided by sigma^2, the margin multiplied by sigma.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from .data import Patterns
from .problems import Problem
from .task import Task

ORDINARY = (1e-80, 1e80)  # squared norms between these need nothing
LARGEST_C = 1e300
LEAST, MOST = 1e-154, 1e154  # largest entries between these have squares in float64


@dataclass(frozen=True)
class Units:
    """The units in which a problem is solved; `sigma` is a power of two."""

    sigma: float = 1.0

    def task(self, task: Task) -> Task:
        """The task in these units."""
        if self.sigma == 1.0:
            return task
        problem, start = task.problem, task.start
        C = problem.C if problem.hard else min(problem.C * self.sigma * self.sigma, LARGEST_C)
        return replace(
            task,
            problem=replace(problem, C=C, intercept_scaling=(problem.rho or 1.0) / self.sigma),
            patterns=Patterns(task.patterns.X * (1.0 / self.sigma)),
            start=None if start is None else start * self.sigma**2,
        )

    def primal(self, w: np.ndarray) -> np.ndarray:
        """w in the user's units."""
        return w / self.sigma

    def dual(self, alpha: np.ndarray) -> np.ndarray:
        """Dual weights in the user's units."""
        return alpha / self.sigma / self.sigma

    def bound(self, problem: Problem, value: float) -> float:
        """A bound in the user's units."""
        return value * self.sigma if problem.hard else value / self.sigma / self.sigma


def units(task: Task) -> Units:
    """Ordinary units, but for data whose squares would leave the range of float64.

    Raises
    ------
    ValueError
        If not even one entry, or the constant feature, has a square that is a float64 number.
    """
    patterns, rho = task.patterns, task.problem.rho
    if rho and not LEAST <= rho <= MOST:
        raise ValueError(
            f"The square of intercept_scaling={rho:.3g} is beyond float64 numbers: take one of the size of the "
            "features, or scale the features first."
        )
    square = float(patterns.square.max(initial=0.0))
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
    return Units(2.0 ** np.round(np.log2(largest)))
