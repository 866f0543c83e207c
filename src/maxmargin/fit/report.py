"""The records a fit produces: a report after each round, and the solution at its end."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..certificates.certificate import Certificate
from ..certificates.verdicts import Verdict
from ..problem.status import Status
from .deadline import Watch


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
    watch : Watch
        Time limit, keyboard interrupt and callbacks.
    on_report : callable
        Called with each report and a function that returns the best point so far: (w, b), or a `KernelPoint`.
    """

    tol: float
    max_iter: int
    watch: Watch
    on_report: Callable[[Report, Callable[[], Any]], None] = lambda report, point: None
