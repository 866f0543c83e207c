"""Certificates of points of a task on the caller's data, and the best bounds of the problem."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from ..certificates.certificate import Certificate
from ..certificates.one_pass import certify
from ..certificates.rows import NEGLIGIBLE_ERROR
from ..certificates.sample import Sample
from ..certificates.verdicts import Verdict
from ..numerics.norms import norm
from ..problem.problem import CROSSED, Problem, contradict
from ..solvers.iterate import Point
from .tracker import ROUNDING

if TYPE_CHECKING:
    from .deadline import Deadline


@dataclass(frozen=True, eq=False)
class SelectedRows:
    """The selection of the rows of positive weight, which the estimator has made before the task.

    Attributes
    ----------
    places : ndarray of int
        Places of these rows in the caller's data.
    n : int
        Number of rows of the caller's data.
    """

    places: np.ndarray
    n: int

    def restore(self, point: Point) -> Point:
        """Set the dual variables of the other rows to 0."""
        alpha = np.zeros(self.n)
        alpha[self.places] = point.alpha
        return point._replace(alpha=alpha)


# Where the optimality conditions hold, a gap up to ROUNDING_TOL_SHARE * `tol` is rounding.
ROUNDING_TOL_SHARE = 1e-2


class CertifiedPoint(NamedTuple):
    """A point on all rows of the caller's data, with its certificate."""

    w: np.ndarray
    b: float
    alpha: np.ndarray
    certificate: Certificate


class Incumbent:
    """The best bounds of a problem, and the best (w, b).

    Attributes
    ----------
    lower, upper, gap : float
        -inf, inf and inf before the first point.
    point : (ndarray of shape (d,), float) or None
        The best (w, b).
    verdict : Verdict or None
        The verdict on separability of a hard margin, if it was asked for.
    last : bool
        Whether the point is the last one instead of the best.
    """

    def __init__(self, problem: Problem, last: bool = False) -> None:
        self.problem, self.last = problem, last
        self.lower, self.upper, self.gap = -np.inf, np.inf, np.inf
        self.point: tuple[np.ndarray, float] | None = None
        self.verdict: Verdict | None = None

    def update(self, lower: float, upper: float, w: np.ndarray, b: float) -> None:
        """Keep each of two bounds if it is better than the best, and (w, b) if its primal bound is.

        A primal bound within `ROUNDING` of the best counts as better, and with `last` every one does. Bounds that
        contradict each other are ignored. Bounds that contradict the best ones replace them.
        """
        if contradict(lower, upper):
            return  # running bounds of a margin that is rounding
        if self.last:
            self.lower, self.upper = (-np.inf, self.upper) if self.problem.hard else (self.lower, np.inf)
        new, best = (lower, self.lower) if self.problem.hard else (-upper, -self.upper)
        if self.point is None or new >= best - ROUNDING * abs(best):
            self.point = w, b
        if min(upper, self.upper) < max(self.lower, lower) * (1.0 - CROSSED):
            # one of the bounds is wrong by rounding: later bounds have more correct digits
            self.lower, self.upper = lower, upper
        else:
            self.lower = max(self.lower, min(lower, self.upper))
            self.upper = min(self.upper, max(upper, self.lower))
        gap = self.problem.gap(self.lower, self.upper)
        self.gap = np.inf if math.isnan(gap) else gap

    def margin(self, w: np.ndarray) -> float:
        """Return the best lower bound of the margin (hard), or 1 / |w|_q (soft)."""
        if self.problem.hard:
            return self.lower
        length = norm(w, self.problem.q)
        return 1.0 / length if length > 0.0 else np.inf


def rank(certificate: Certificate) -> tuple[float, float]:
    """Return a sort key of certificates of one problem, best first: by gap, then by attained margin.

    The gap 1 - lower / upper of a hard margin rounds to one for all small margins, so that it does not order them.
    """
    lower = certificate.lower if certificate.problem.hard else 0.0
    return certificate.gap, -lower if lower > -np.inf else np.inf


class Certifier:
    """Certification of points of the rows of a task on the caller's data, which may have rows of weight 0 beside them.

    Parameters
    ----------
    problem : Problem
    sample : Sample
        The caller's data.
    selected : SelectedRows or None
        The places of the rows of the task in the sample; None if no row has weight 0.
    deadline : Deadline
    tol : float
        The gap that is asked for.
    """

    def __init__(
        self, problem: Problem, sample: Sample, selected: SelectedRows | None, deadline: Deadline, tol: float
    ) -> None:
        self.problem, self.sample, self.selected = problem, sample, selected
        self.deadline, self.tol = deadline, tol
        self._last: tuple[Point, CertifiedPoint] | None = None

    def certify(self, point: Point) -> CertifiedPoint:
        """Certify a point on the caller's data; that of the last call is kept."""
        if self._last is not None and all(a is b for a, b in zip(self._last[0], point, strict=True)):
            return self._last[1]
        restored = point if self.selected is None else self.selected.restore(point)
        found = CertifiedPoint(*restored, certify(self.problem, self.sample, *restored, self.tol))
        self._last = point, found
        return found

    def rounding(self, tol: float) -> float:
        """Return the relative gap that is rounding where the optimality conditions hold."""
        return max(NEGLIGIBLE_ERROR, ROUNDING_TOL_SHARE * tol)
