"""The input of a solver: one binary problem on rows of data, or on rows of a kernel."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from ..problem.problem import Problem
from .rows import Patterns

if TYPE_CHECKING:
    from ..solvers.decomposition import KernelRows


@dataclass(frozen=True, eq=False)
class Task:
    """A problem on rows of data.

    Parameters
    ----------
    problem : Problem
    patterns : Patterns
    y : ndarray of shape (n,), entries -1.0 and 1.0
    weights : ndarray of shape (n,), positive
        Sample weights.
    start : ndarray of shape (n,), default=None
        Dual variables to begin with.
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


@dataclass(frozen=True, eq=False)
class GramTask:
    """A problem on rows of a kernel.

    Parameters
    ----------
    problem : Problem
        p = 2.
    rows : KernelRows
        Shared by all classes.
    y : ndarray of shape (n,), entries -1.0 and 1.0
    weights : ndarray of shape (n,)
        Sample weights; rows of weight 0 take no part, and keep a dual variable of 0.
    start : ndarray of shape (n,), default=None
        Dual variables to begin with.
    label : object, default=None
        The class of a one-vs-rest problem, which goes into the reports; None for two classes.
    """

    problem: Problem
    rows: KernelRows
    y: np.ndarray
    weights: np.ndarray
    start: np.ndarray | None = None
    label: Any = None
