"""The incumbent of a task: the best certified primal and dual bounds so far, and the best (w, b)."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from ..certificates.certificate import Certificate
from ..certificates.verdicts import Verdict
from ..numerics.norms import norm
from ..problem.problem import CROSSED, Problem, contradict

# Relative difference of two bounds that is rounding of compensated sums: of two points as good as that, the later one
# has more correct digits of w.
ROUNDING = 1e-12


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
            self.lower, self.upper = (
                lower,
                upper,
            )  # one was off by rounding: later bounds have more correct digits
        else:
            self.lower = max(self.lower, min(lower, self.upper))
            self.upper = min(self.upper, max(upper, self.lower))
        gap = self.problem.gap(self.lower, self.upper)
        self.gap = np.inf if math.isnan(gap) else gap

    def update_from(self, found: CertifiedPoint) -> None:
        """Update with the bounds and the (w, b) of a certified point."""
        self.update(found.certificate.lower, found.certificate.upper, found.w, found.b)

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
