"""The records of a fit: its jobs and stopping criteria, the report after each round, and the solution."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable

    from ..algorithms import Algorithm, Decomposition
    from ..certificates.certificate import Certificate
    from ..certificates.sample import Sample
    from ..certificates.verdicts import Verdict
    from ..data.task import Task
    from ..problem.problem import Problem
    from ..problem.status import Status
    from .certifier import SelectedRows
    from .deadline import Deadline
    from .policy import Choice


@dataclass(frozen=True)
class Report:
    """The state of a fit after a round.

    Attributes
    ----------
    round : int
        Counted from one; 0 before there are bounds, also within the first reading of files or of rows on a cluster.
    seconds : float
        Time since the fit began.
    lower, upper, gap : float
        The best bounds so far, mostly by sums in float64; the certificate of the fit accounts for rounding. With
        ``point="last"`` the bound of w (the margin, or the objective) is that of the last iterate.
    presentations, steps : int
        Number of row visits so far, and of visits that changed w.
    stage : str
        Name of the algorithm, or "exact" for a small problem that is solved to the optimum
        (`docs/explanation/architecture.md`).
    label : object
        The class of a one-vs-rest problem; None for two classes.
    margin : float
        Of the best w so far, or with ``point="last"`` of the last one: its smallest margin (hard), or 1 / |w|, the
        distance between the hyperplanes of scores zero and one (soft).
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


def report_before(deadline: Deadline, stage: str, reason: str, label: Any = None) -> Report:
    """Return a report of round 0, which has no bounds."""
    seconds = time.perf_counter() - deadline.began
    return Report(0, seconds, -np.inf, np.inf, np.inf, 0, 0, stage, label, reason=reason)


@dataclass(frozen=True)
class Solution:
    """The best point found for one binary task, with its certificate.

    Attributes
    ----------
    w : ndarray of shape (d,)
    b : float
    alpha : ndarray of shape (n,)
        Dual variables of all rows of the caller's data.
    status : Status
    rounds : int
    history : list of Report
    certificate : Certificate
    verdict : Verdict, default=None
        The verdict on separability of a hard margin, if it was asked for: a proof, or the best bounds of the margin.
    results : dict of str to float, default={}
        Numbers of the algorithm itself (`Algorithm.measure`).
    """

    w: np.ndarray
    b: float
    alpha: np.ndarray
    status: Status
    rounds: int
    history: list[Report]
    certificate: Certificate
    verdict: Verdict | None = None
    results: dict[str, float] = field(default_factory=dict)


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
        Called after each round with three arguments: the report; a function without arguments that returns the best
        point so far, (w, b) or a `KernelPoint`; and the deadline.
    """

    tol: float
    max_iter: int
    deadline: Deadline
    on_report: Callable[[Report, Callable[[], Any], Deadline], None] = lambda report, point, deadline: None

    def report(self, history: list[Report], point: Any, **fields: Any) -> None:
        """Append the report of a round to the history, and pass it to the callback.

        Parameters
        ----------
        history : list of Report
        point : object
            The best point so far, which the callback may read.
        **fields
            Fields of the report other than `round` and `seconds`.
        """
        seconds = time.perf_counter() - self.deadline.began
        history.append(Report(round=len(history) + 1, seconds=seconds, **fields))
        self.on_report(history[-1], lambda: point, self.deadline)


@dataclass(frozen=True, eq=False)
class Job:
    """One binary task on rows of data, with the data and the settings of its fit.

    Attributes
    ----------
    task : Task
        In the caller's units, with rows of positive weight only.
    choice : Choice
        The algorithm, and the reason for its choice.
    stopping : Stopping
    seed : int
        Of the orders of presentation.
    sample : Sample
        The caller's data, on which points are certified.
    selected : SelectedRows, default=None
        The places of the rows of the task in the sample; None if no row has weight 0.
    separability : callable
        For hard margins: returns the verdict on separability, the same object at every call. If it returns None, the
        status INSEPARABLE is not used. The search begins with the argument, the dual variables of an algorithm that has
        decided separability itself (`Algorithm.decides`), unless it is None.
    last : bool, default=False
        Whether the result is the last iterate of the algorithm instead of its best point.
    """

    task: Task
    choice: Choice
    stopping: Stopping
    seed: int
    sample: Sample
    selected: SelectedRows | None = None
    separability: Callable[[np.ndarray | None], Verdict | None] = lambda start: None
    last: bool = False


@dataclass(frozen=True, eq=False)
class KernelJob:
    """One of several binary kernel problems on the same rows.

    Attributes
    ----------
    problem : Problem
    y : ndarray of shape (n,), entries -1.0 and 1.0
    weights : ndarray of shape (n,), positive
    algorithm : Algorithm or Decomposition
    reason : str
        The reason for which this algorithm was chosen.
    seed : int
        Seed of the orders of presentation.
    label : object, default=None
        The class of a one-vs-rest problem, copied to the reports; None for two classes.
    start : ndarray of shape (n,), default=None
        Dual variables of the starting point.
    exact : bool, default=True
        Whether the exact stage is used.
    inseparable : callable
        Returns whether there is a proof that no separator exists; called at most once, for a hard margin.
    last : bool, default=False
        Whether the result is the last iterate of the algorithm instead of its best point.
    """

    problem: Problem
    y: np.ndarray
    weights: np.ndarray
    algorithm: Algorithm | Decomposition
    reason: str
    seed: int
    label: Any = None
    start: np.ndarray | None = None
    exact: bool = True
    inseparable: Callable[[], bool] = lambda: False
    last: bool = False
