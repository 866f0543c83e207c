"""What batch solvers of a soft margin hand over: a point, and how near to the optimum they say it is."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

Point = tuple[np.ndarray, float, np.ndarray]  # w, b and dual weights


class Reached(NamedTuple):
    """A point (w, b, alpha), its relative gap as the solver has it, and whether its bounds are near enough."""

    w: np.ndarray
    b: float
    alpha: np.ndarray
    gap: float
    near: bool
