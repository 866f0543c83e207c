"""Data of extreme scale, brought near 1 by a power of two: no rounding, and the same problem in other units.

With x = sigma x', the problem with C is the one with C' = sigma^2 C: w = w' / sigma, alpha = alpha' / sigma^2, the
objective is that of the other divided by sigma^2, the margin multiplied by sigma.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from .data import Patterns
from .problems import Problem

ORDINARY = (1e-80, 1e80)  # squared norms between these need nothing
LARGEST_C = 1e300


@dataclass(frozen=True)
class Units:
    """The units in which a problem is solved; `sigma` is a power of two."""

    sigma: float = 1.0

    def patterns(self, patterns: Patterns) -> Patterns:
        """The patterns in these units."""
        return patterns if self.sigma == 1.0 else Patterns(patterns.X * (1.0 / self.sigma))

    def problem(self, problem: Problem) -> Problem:
        """The problem in these units."""
        if self.sigma == 1.0:
            return problem
        C = problem.C if problem.hard else min(problem.C * self.sigma * self.sigma, LARGEST_C)
        return replace(problem, C=C, intercept_scaling=problem.intercept_scaling / self.sigma)

    def primal(self, w: np.ndarray) -> np.ndarray:
        """w in the user's units."""
        return w / self.sigma

    def dual(self, alpha: np.ndarray) -> np.ndarray:
        """Dual weights in the user's units."""
        return alpha / self.sigma / self.sigma

    def bound(self, problem: Problem, value: float) -> float:
        """A bound in the user's units."""
        return value * self.sigma if problem.hard else value / self.sigma / self.sigma


def units(patterns: Patterns) -> Units:
    """Ordinary units, but for data whose squares would leave the range of float64."""
    square = float(patterns.square.max(initial=0.0))
    if ORDINARY[0] <= square <= ORDINARY[1]:
        return Units()
    values = patterns.X.data if patterns.sparse else patterns.X
    largest = float(np.abs(values).max(initial=0.0))
    return Units(2.0 ** np.round(np.log2(largest))) if largest > 0.0 else Units()
