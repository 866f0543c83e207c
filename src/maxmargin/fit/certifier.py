"""Certify points of a presolved task on the caller's data."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property

import numpy as np

from ..certificates.certificate import Certificate
from ..certificates.one_pass import certify
from ..certificates.rows import FEW, NEGLIGIBLE
from ..certificates.sample import Sample
from ..data.task import Task
from ..numerics.sums import Compensated
from ..problem.problem import Problem
from .deadline import Watch
from .incumbent import ROUNDING, CertifiedPoint, Incumbent, rank
from .presolve import Point, PresolveStep, ScaledUnits

# Share of `tol` that counts as rounding where the optimality conditions hold, for every COLUMNS columns: scores are
# sums of that many terms, and sums with more digits take longer than everything else.
SHARE, COLUMNS = 1e-6, 1000


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
    watch : Watch
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
        watch: Watch,
        incumbent: Incumbent,
    ) -> None:
        self.problem, self.sample, self.steps, self.task = problem, sample, steps, task
        self.watch, self.incumbent = watch, incumbent
        self.same_problem = not any(isinstance(step, ScaledUnits) for step in steps)
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
        self.incumbent.update_from(found)
        return certify(self.task.problem, self._reduced_sample, *point, gap)

    def final(self, point: Point, tol: float) -> CertifiedPoint:
        """Return the last point with its certificate; with other units the best of all that were certified."""
        kept = (found for known, found in self._certified if _is_same(known, point))
        last = next(kept, None) or self.certify(point, tol)
        if self.same_problem:
            return last
        candidates = [last, *(found for _, found in self._certified)]
        best = min(candidates, key=lambda one: rank(one.certificate))
        self.incumbent.update_from(best)
        return best

    def rounding(self, tol: float) -> float:
        """Return the gap that is rounding for the data that certificates of the presolved task speak of."""
        entries = self.sample.entries if self.same_problem else self.task.patterns.entries
        return rounding_gap(entries, self.task.patterns.d, tol)

    def _has_time(self, seconds: float) -> bool:
        enough = self.watch.affords(seconds)
        self.cut_short = self.cut_short or not enough
        return enough


def rounding_gap(entries: int, columns: int, tol: float) -> float:
    """Return the gap of this many entries that is rounding, where the optimality conditions hold."""
    share = SHARE * max(1.0, columns / COLUMNS)
    return max(ROUNDING if entries <= FEW else NEGLIGIBLE, share * tol)


def lacks_time_for_digits(affords: Callable[[float], bool], entries: int) -> bool:
    """Return whether the deadline leaves no time to certify in extended precision."""
    return not affords(Compensated.SECONDS * entries)


def _is_same(one: Point, other: Point) -> bool:
    return one.w is other.w and one.alpha is other.alpha and one.b == other.b
