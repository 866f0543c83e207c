"""Points of batch solvers, and how near to the optimum the solvers say they are."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np


class Point(NamedTuple):
    """A primal-dual point: weights w, intercept b and dual variables."""

    w: np.ndarray
    b: float
    alpha: np.ndarray


class Reached(NamedTuple):
    """A point (w, b, alpha), its relative gap as the solver has it, and whether its bounds are near enough."""

    w: np.ndarray
    b: float
    alpha: np.ndarray
    gap: float
    near: bool
