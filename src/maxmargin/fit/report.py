"""The records of a fit: what is asked for, a report after each round, and the solution at the end."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable

    from ..algorithms import Algorithm, Decomposition
    from ..certificates.certificate import Certificate
    from ..certificates.sample import Sample
    from ..certificates.verdicts import Verdict
    from ..data.task import Task
    from ..engine.order import Source
    from ..problem.problem import Problem
    from ..problem.status import Status
    from .deadline import Deadline
    from .policy import Choice
    from .presolve import SelectedRows


class Point(NamedTuple):
    """A primal-dual point of a task."""

    w: np.ndarray
    b: float
    alpha: np.ndarray


@dataclass(frozen=True)
class Report:
    """The state of a fit after a round.

    Attributes
    ----------
    round : int
    seconds : float
        Since the fit began.
    lower, upper, gap : float
        The best bounds so far.
    presentations, steps : int
        Row visits so far, and those that changed w.
    stage : str
        The algorithm at work, or "exact" for the active-set method.
    label : object
        The class of a one-vs-rest problem; None for two classes.
    margin : float
        Of the best w so far: its smallest margin (hard), or 1 / |w|, the distance between the lines where the score
        is zero and one (soft).
    reason : str
        Why the policy chose this stage.
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
    alpha : ndarray of shape (n,)
        Dual variables of all rows of the caller's data.
    status : Status
    rounds : int
    history : list of Report
    certificate : Certificate
    verdict : Verdict, default=None
        Of a hard margin whose separability was examined: the proof, or what is known.
    """

    w: np.ndarray
    b: float
    alpha: np.ndarray
    status: Status
    rounds: int
    history: list[Report]
    certificate: Certificate
    verdict: Verdict | None = None


@dataclass(frozen=True)
class Stopping:
    """Stopping criteria of a fit, and the callback that sees its reports.

    Attributes
    ----------
    tol : float
        Certified relative gap at which the fit ends.
    max_iter : int
        Rounds.
    deadline : Deadline
        Time limit, keyboard interrupt and callbacks.
    on_report : callable
        Called with each report, a function that returns the best point so far, (w, b) or a `KernelPoint`, and the
        deadline.
    """

    tol: float
    max_iter: int
    deadline: Deadline
    on_report: Callable[[Report, Callable[[], Any], Deadline], None] = lambda report, point, deadline: None


@dataclass(frozen=True, eq=False)
class Job:
    """One binary task on rows of data, with all that its fit needs.

    Attributes
    ----------
    task : Task
        In the caller's units, rows of positive weight only.
    choice : Choice
        The algorithm, and how the policy came to it.
    stopping : Stopping
    rng : Generator or LazyGenerator
        Orders of presentation.
    sample : Sample
        The caller's data, of which certificates speak.
    selected : SelectedRows, default=None
        The rows of the task among those of the sample, where rows of weight 0 were left out.
    classes : ndarray of int of shape (n,), default=None
        The number of the class of each row, where several classes share the patterns of the task.
    separability : callable
        Hard margins: returns the verdict on separability, one object however often it is called. Without a verdict no
        data are called inseparable.
    """

    task: Task
    choice: Choice
    stopping: Stopping
    rng: Source
    sample: Sample
    selected: SelectedRows | None = None
    classes: np.ndarray | None = None
    separability: Callable[[], Verdict | None] = lambda: None


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
        Why this algorithm was chosen.
    seed : int
        Of the order of presentation.
    label : object, default=None
        Goes into the reports; None where there is only one problem.
    start : ndarray of shape (n,), default=None
        Dual variables to begin with.
    exact : bool, default=True
        Whether small problems end with the exact stage.
    inseparable : callable
        Returns whether there is a proof that no separator exists; called once at most, of a hard margin.
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
