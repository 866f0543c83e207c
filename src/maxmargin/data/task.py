"""One binary problem as a solver gets it: what is asked, of which patterns."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ..problem.problem import Problem
from .rows import Patterns


@dataclass(frozen=True, eq=False)
class Task:
    """A problem and its patterns.

    Parameters
    ----------
    problem : Problem
    patterns : Patterns
    y : ndarray of shape (n,), entries -1.0 and 1.0
    weights : ndarray of shape (n,), positive
        Sample weights.
    start : ndarray of shape (n,), default=None
        Dual weights to begin with.
    point : (ndarray of shape (d,), float), default=None
        (w, b) to begin with, for algorithms that move w itself; its length does not matter.
    label : object, default=None
        The class of a one-vs-rest problem, which goes into the reports; None for two classes.
    """

    problem: Problem
    patterns: Patterns
    y: np.ndarray
    weights: np.ndarray
    start: np.ndarray | None = None
    point: tuple[np.ndarray, float] | None = None
    label: Any = None
