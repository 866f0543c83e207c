"""Certified points: certify points of a presolved task on the caller's data, and keep the best bounds."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from ..certificates.certificate import Certificate
from ..certificates.one_pass import certify
from ..certificates.rows import NEGLIGIBLE, SMALL_DATA
from ..certificates.sample import Sample
from ..certificates.verdicts import Verdict
from ..data.task import Task
from ..numerics.norms import norm
from ..numerics.sums import Compensated
from ..problem.problem import CROSSED, Problem, contradict
from .tracker import ROUNDING

if TYPE_CHECKING:
    from .deadline import Deadline
    from .presolve import PresolveStep
    from .report import Point

# Share of `tol` that counts as rounding where the optimality conditions hold, for every COLUMNS columns: scores are
# sums of that many terms, and sums with more digits take longer than everything else.
SHARE, COLUMNS = 1e-6, 1000


class CertifiedPoint(NamedTuple):
    """A point of the caller's data, of all rows, with its certificate."""

    w: np.ndarray
    b: float
    alpha: np.ndarray
    certificate: Certificate


class Incumbent:
    """The best bounds of the caller's problem, whatever the units it is solved in, and the best (w, b).

    Bounds that hold in the units of a presolved task may be those of another problem: they enter only once they are
    proved on the caller's data.

    Attributes
    ----------
    lower, upper, gap : float
        -inf, inf and inf before the first point.
    point : (ndarray of shape (d,), float) or None
    verdict : Verdict or None
        Of a hard margin whose separability was examined.
    """

    def __init__(self, problem: Problem) -> None:
        self.problem = problem
        self.lower, self.upper, self.gap = -np.inf, np.inf, np.inf
        self.point: tuple[np.ndarray, float] | None = None
        self.verdict: Verdict | None = None

    def update(self, lower: float, upper: float, w: np.ndarray, b: float) -> None:
        """Keep each of two bounds where it is better than all before, and (w, b) where its primal bound is."""
        if contradict(lower, upper):
            return  # running bounds whose margins are rounding
        new, best = (lower, self.lower) if self.problem.hard else (-upper, -self.upper)
        if self.point is None or new >= best - ROUNDING * abs(best):
            self.point = w, b
        if min(upper, self.upper) < max(self.lower, lower) * (1.0 - CROSSED):
            # one was off by rounding: later bounds have more correct digits
            self.lower, self.upper = lower, upper
        else:
            self.lower = max(self.lower, min(lower, self.upper))
            self.upper = min(self.upper, max(upper, self.lower))
        gap = self.problem.gap(self.lower, self.upper)
        self.gap = np.inf if math.isnan(gap) else gap

    def margin(self, w: np.ndarray) -> float:
        """Return the certified margin (hard), or 1 / |w| (soft)."""
        if self.problem.hard:
            return self.lower
        length = norm(w, self.problem.q)
        return 1.0 / length if length > 0.0 else np.inf


def rank(certificate: Certificate) -> tuple[float, float]:
    """Return a sort key of certificates of one problem, best first: by gap, then by margin where gaps round to one."""
    lower = certificate.lower if certificate.problem.hard else 0.0
    return certificate.gap, -lower if lower > -np.inf else np.inf


class Certifier:
    """Certificates of points of one presolved task, each kept for the end of the fit.

    Parameters
    ----------
    problem : Problem
        The caller's.
    sample : Sample
        The caller's data.
    steps : sequence of PresolveStep
        In the order in which they were applied.
    task : Task
        The presolved task.
    deadline : Deadline
    incumbent : Incumbent

    Attributes
    ----------
    same_problem : bool
        Whether bounds of the presolved task are bounds of the caller's problem: no units were changed.
    cut_short : bool
        Whether there was no time for sums with more digits.
    """

    def __init__(
        self,
        problem: Problem,
        sample: Sample,
        steps: Sequence[PresolveStep],
        task: Task,
        deadline: Deadline,
        incumbent: Incumbent,
    ) -> None:
        self.problem, self.sample, self.steps, self.task = problem, sample, steps, task
        self.deadline, self.incumbent = deadline, incumbent
        self.same_problem = all(step.keeps_problem for step in steps)
        self.cut_short = False
        self._certified: list[tuple[Point, CertifiedPoint]] = []

    @cached_property
    def _reduced_sample(self) -> Sample:
        task = self.task
        return Sample(task.patterns.X, task.y, task.weights, np.sqrt(task.patterns.square))

    def certify(self, point: Point, gap: float) -> CertifiedPoint:
        """Certify a point of the presolved task on the caller's data to relative gap `gap`."""
        for step in reversed(self.steps):
            point = step.restore(point)
        return CertifiedPoint(*point, certify(self.problem, self.sample, *point, gap, self._has_time))

    def certify_and_keep(self, point: Point, gap: float) -> Certificate:
        """Certify a point and keep its certificate; returns that of the presolved task.

        With other units the two problems differ: the incumbent is then updated here, since no bound of the presolved
        task says anything of it.
        """
        found = self.certify(point, gap)
        self._certified.append((point, found))
        if self.same_problem:
            return found.certificate
        self.incumbent.update(found.certificate.lower, found.certificate.upper, found.w, found.b)
        return certify(self.task.problem, self._reduced_sample, *point, gap)

    def final(self, point: Point, tol: float) -> CertifiedPoint:
        """Return the last point with its certificate; with other units the best of all that were certified."""
        kept = [
            found
            for known, found in self._certified
            if known.w is point.w and known.alpha is point.alpha and known.b == point.b
        ]
        last = kept[0] if kept else self.certify(point, tol)
        if self.same_problem:
            return last
        candidates = [last, *(found for _, found in self._certified)]
        best = min(candidates, key=lambda one: rank(one.certificate))
        self.incumbent.update(best.certificate.lower, best.certificate.upper, best.w, best.b)
        return best

    def rounding(self, tol: float) -> float:
        """Return the gap that is rounding for the data that certificates of the presolved task speak of."""
        entries = self.sample.entries if self.same_problem else self.task.patterns.entries
        return rounding_gap(entries, self.task.patterns.d, tol)

    def _has_time(self, seconds: float) -> bool:
        enough = self.deadline.can_afford(seconds)
        self.cut_short = self.cut_short or not enough
        return enough


def rounding_gap(entries: int, columns: int, tol: float) -> float:
    """Return the gap of this many entries that is rounding, where the optimality conditions hold."""
    share = SHARE * max(1.0, columns / COLUMNS)
    return max(ROUNDING if entries <= SMALL_DATA else NEGLIGIBLE, share * tol)


def lacks_time_for_digits(affords: Callable[[float], bool], entries: int) -> bool:
    """Return whether the deadline leaves no time to certify in extended precision."""
    return not affords(Compensated.SECONDS * entries)
