"""Presolve, certificates of points of a presolved task on the caller's data, and the best bounds of the problem.

There are two presolve steps, each with its inverse map of points (w, b, alpha):

* rows of weight 0 are left out, by the estimator: their dual variables are 0;
* columns of extreme scale are divided by powers of two, one for all columns or one for each (`data.units`).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, ClassVar, NamedTuple, Protocol

import numpy as np

from ..certificates.certificate import Certificate
from ..certificates.one_pass import certify
from ..certificates.rows import NEGLIGIBLE_ERROR
from ..certificates.sample import Sample
from ..certificates.verdicts import Verdict
from ..data.task import Task
from ..data.units import Units
from ..numerics.norms import norm
from ..problem.problem import CROSSED, Problem, contradict
from ..solvers.iterate import Point
from .tracker import ROUNDING

if TYPE_CHECKING:
    from .deadline import Deadline


class PresolveStep(Protocol):
    """A reduction of a task, with the inverse map of its points.

    Attributes
    ----------
    keeps_problem : bool
        Whether bounds of the reduced task are bounds of the original one.
    """

    keeps_problem: ClassVar[bool]

    def apply(self, task: Task) -> Task:
        """Return the reduced task."""
        ...

    def restore(self, point: Point) -> Point:
        """Return the point of the original task that corresponds to a point of the reduced one."""
        ...


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

    keeps_problem: ClassVar[bool] = True
    places: np.ndarray
    n: int

    def apply(self, task: Task) -> Task:
        """Return the task unchanged: it has these rows only."""
        return task

    def restore(self, point: Point) -> Point:
        """Set the dual variables of the other rows to 0."""
        alpha = np.zeros(self.n)
        alpha[self.places] = point.alpha
        return point._replace(alpha=alpha)


@dataclass(frozen=True, eq=False)
class ScaledUnits:
    """The division of columns by powers of two.

    Attributes
    ----------
    units : Units
        The powers of two, of all columns or of each.
    problem : Problem
        The problem of the original task.
    """

    keeps_problem: ClassVar[bool] = False
    units: Units
    problem: Problem

    def apply(self, task: Task) -> Task:
        """Return the task in these units."""
        return self.units.task(task)

    def restore(self, point: Point) -> Point:
        """Return the point in the caller's units."""
        return point._replace(w=self.units.primal(point.w), alpha=self.units.dual(self.problem, point.alpha))


# Where the optimality conditions hold, a gap up to ROUNDING_TOL_SHARE * `tol` is rounding.
ROUNDING_TOL_SHARE = 1e-2


class CertifiedPoint(NamedTuple):
    """A point on all rows of the caller's data, with its certificate."""

    w: np.ndarray
    b: float
    alpha: np.ndarray
    certificate: Certificate


class Incumbent:
    """The best bounds of the caller's problem over all attempts, and the best (w, b).

    Bounds of a task in scaled units may be bounds of a different problem. They are used only after certification on
    the caller's data.

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
    """Certification of points of one presolved task; certified points can be kept for the end of the fit.

    Parameters
    ----------
    problem : Problem
        The caller's problem.
    sample : Sample
        The caller's data.
    steps : sequence of PresolveStep
        The presolve steps, in the order in which they were applied.
    task : Task
        The presolved task.
    deadline : Deadline
    tol : float
        The gap that is asked for.
    incumbent : Incumbent

    Attributes
    ----------
    same_problem : bool
        Whether bounds of the presolved task are bounds of the caller's problem; False if columns were scaled.
    """

    def __init__(
        self,
        problem: Problem,
        sample: Sample,
        steps: Sequence[PresolveStep],
        task: Task,
        deadline: Deadline,
        tol: float,
        incumbent: Incumbent,
    ) -> None:
        self.problem, self.sample, self.steps, self.task = problem, sample, steps, task
        self.deadline, self.tol, self.incumbent = deadline, tol, incumbent
        self.same_problem = all(step.keeps_problem for step in steps)
        self._certified: list[tuple[Point, CertifiedPoint]] = []

    @cached_property
    def _reduced_sample(self) -> Sample:
        """The data of the presolved task, for certificates."""
        task = self.task
        return Sample(task.patterns.X, task.y, task.weights, task.patterns.lengths)

    def certify(self, point: Point) -> CertifiedPoint:
        """Certify a point of the presolved task on the caller's data."""
        for step in reversed(self.steps):
            point = step.restore(point)
        return CertifiedPoint(*point, certify(self.problem, self.sample, *point, self.tol))

    def certify_and_keep(self, point: Point) -> Certificate:
        """Certify a point on the caller's data and keep it; return its certificate for the presolved task.

        In scaled units the presolved task is another problem: the incumbent is then updated from the certificate on the
        caller's data, and the point is certified a second time for the presolved task.
        """
        found = self.certify(point)
        self._certified.append((point, found))
        if self.same_problem:
            return found.certificate
        self.incumbent.update(found.certificate.lower, found.certificate.upper, found.w, found.b)
        return certify(self.task.problem, self._reduced_sample, *point, self.tol)

    def final(self, point: Point) -> CertifiedPoint:
        """Return the last point with its certificate; in scaled units, the best of this and all points kept.

        If the last iterate is the result, it is returned in any units. A certificate of this point that was kept is
        used again.
        """
        kept = [
            found
            for other, found in self._certified
            if other.w is point.w and other.alpha is point.alpha and other.b == point.b
        ]
        last = kept[0] if kept else self.certify(point)
        if self.same_problem or self.incumbent.last:
            return last
        candidates = [last, *(found for _, found in self._certified)]
        best = min(candidates, key=lambda one: rank(one.certificate))
        self.incumbent.update(best.certificate.lower, best.certificate.upper, best.w, best.b)
        return best

    def rounding(self, tol: float) -> float:
        """Return the relative gap that is rounding, in the presolved task, where the optimality conditions hold."""
        return max(NEGLIGIBLE_ERROR, ROUNDING_TOL_SHARE * tol)
