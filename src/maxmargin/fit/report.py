"""The records of a fit: its tasks and stopping criteria, the report after each round, and the solution."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from ..problem.problem import Status

if TYPE_CHECKING:
    from collections.abc import Callable

    from ..certificates.certificate import Certificate
    from ..certificates.verdicts import Verdict
    from ..problem.problem import Problem
    from .deadline import Deadline


@dataclass(frozen=True)
class Report:
    """The state of a fit after a round.

    Attributes
    ----------
    round : int
        The number of this report, from one; 0 within a pass over rows out of memory before there are bounds. It may
        exceed `n_iter_`, which does not count the exact stage after an algorithm.
    seconds : float
        Time since the fit began.
    lower, upper, gap : float
        The best bounds so far, mostly by sums in float64; the certificate of the fit accounts for rounding.
    presentations, steps : int
        Number of row visits so far, and of visits that changed w.
    stage : str
        Name of the algorithm; "exact" for the exact stage and Newton's method on a kernel's factor, "means" for a fit
        that was stopped before its first point (`docs/explanation/architecture.md`).
    label : object
        The class of a one-vs-rest problem; None for two classes.
    margin : float
        Of the best w so far: its smallest margin (hard), or 1 / |w|, the distance between the hyperplanes of scores
        zero and one (soft).
    reason : str
        The reason for which the policy chose this stage.
    """

    round: int
    seconds: float
    lower: float
    upper: float
    gap: float
    presentations: int
    steps: int
    stage: str
    label: Any = None
    margin: float = np.nan
    reason: str = ""


@dataclass(frozen=True)
class Solution:
    """The best point found for one binary task, with its certificate.

    Attributes
    ----------
    w : ndarray of shape (d,)
    b : float
    status : Status
    rounds : int
    history : list of Report
    certificate : Certificate
    verdict : Verdict, default=None
        The verdict on separability of a hard margin, if it was asked for: a proof, or the best bounds of the margin.
    """

    w: np.ndarray
    b: float
    status: Status
    rounds: int
    history: list[Report]
    certificate: Certificate
    verdict: Verdict | None = None


@dataclass(frozen=True)
class Stopping:
    """Stopping criteria of a fit, and the callback that receives its reports.

    Attributes
    ----------
    tol : float
        Certified relative gap at which the fit ends.
    max_iter : int
        Largest number of rounds.
    deadline : Deadline
        Time limit, keyboard interrupt and callbacks.
    on_report : callable
        Called after each round with the report and the deadline.
    """

    tol: float
    max_iter: int
    deadline: Deadline
    on_report: Callable[[Report, Deadline], None] = lambda report, deadline: None


def status_at_end(stopping: Stopping, rounds: int) -> Status:
    """Return the status of a fit at the margin of separable classes that ended above `tol`."""
    return stopping.deadline.status() or (Status.MAX_ITER if rounds >= stopping.max_iter else Status.STALLED)


@dataclass(frozen=True, eq=False)
class Task:
    """A binary problem on rows, with the algorithm and the settings of its fit.

    Attributes
    ----------
    problem : Problem
        p = 2 on rows of a kernel.
    rows : Patterns or KernelRows
        Shared by all classes.
    y : ndarray of shape (n,), entries -1.0 and 1.0
    weights : ndarray of shape (n,)
        Sample weights, positive on rows of data; rows of a kernel of weight 0 take no part, and keep a dual variable of
        0.
    algorithm : Algorithm or Decomposition, default=None
        None: the policy chooses solvers, small problems begin with the exact stage, and another solver takes over where
        one converges slowly.
    reason : str, default="chosen by the caller"
        The reason for which this algorithm was chosen.
    seed : int, default=0
        Of the orders of presentation.
    label : object, default=None
        The class of a one-vs-rest problem, which goes into the reports; None for two classes.
    start : ndarray of shape (n,), default=None
        Dual variables to begin with, on rows of data.
    point : (ndarray of shape (d,), float), default=None
        (w, b), whose length does not matter: the first point of every fit, and the start of algorithms that move w
        itself.
    separability : callable
        For hard margins: returns the verdict on separability, the same object at every call. If it returns None, the
        status INSEPARABLE is not used. The search begins with the argument, the dual variables of an algorithm that has
        decided separability itself (`Algorithm.decides`), unless it is None. Of a kernel problem only a proof that
        there is no separator is returned.
    """

    problem: Problem
    rows: Any
    y: np.ndarray
    weights: np.ndarray
    algorithm: Any = None
    reason: str = "chosen by the caller"
    seed: int = 0
    label: Any = None
    start: np.ndarray | None = None
    point: tuple[np.ndarray, float] | None = None
    separability: Callable[[np.ndarray | None], Verdict | None] = lambda start: None
