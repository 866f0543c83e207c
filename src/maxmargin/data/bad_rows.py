"""Checks of the rows of a block, which name the first row that cannot be used."""

from __future__ import annotations

import numpy as np

from ..numerics.column_errors import first_not_finite
from ..problem.problem import MIN_COST, Problem
from .partitions import BadRowError, Gathered, Partition


def check_finite(block: Partition | Gathered) -> None:
    """Raise BadRowError at the first row with an entry or a weight that is NaN or infinite."""
    found = first_not_finite(block.X)
    weights = np.zeros(0) if block.weights is None else block.weights
    bad = np.flatnonzero(~np.isfinite(weights))
    if bad.size and (found is None or bad[0] < found[0]):
        place = int(bad[0])
        raise BadRowError(int(block.numbers[place]), f"its weight is {weights[place]}; give a finite number.")
    if found is not None:
        row, column, value = found
        remedy = "fill it in" if np.isnan(value) else "correct it"
        raise BadRowError(
            int(block.numbers[row]), f"column {column} is {value}; {remedy}, or leave the row out."
        )


def check_least_cost(problem: Problem, block: Partition | Gathered, weights: np.ndarray) -> None:
    """Raise BadRowError at the first row of positive weight whose C s_i has lost digits, which no bound allows for."""
    if problem.hard or problem.C * weights.min(initial=np.inf) >= MIN_COST:
        return
    bad = np.flatnonzero((weights > 0.0) & (problem.C * weights < MIN_COST))
    if bad.size:
        cost = problem.C * weights[bad[0]]
        raise BadRowError(
            int(block.numbers[bad[0]]),
            f"C times its weight is {cost:.3g}, which has lost its digits: raise C, or the weight; rows that are not "
            "to count have weight 0.",
        )
