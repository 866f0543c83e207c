"""Bounds."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ..numerics.sums import Arithmetic, powers_error
from ..problem.problem import Problem

_EPS, _LEAST = float(np.finfo(float).eps), float(np.finfo(float).smallest_subnormal)


class Bounds(NamedTuple):
    """A lower and an upper bound, rounded outwards: `below` and `above` are what that took from each."""

    lower: float
    upper: float
    below: float
    above: float

    @property
    def rounding(self) -> float:
        """What rounding took from both together."""
        return self.below + self.above


class DualPoint(NamedTuple):
    """v = sum alpha_i y_i x_i, the constant coordinate included, and how far it is from what would prove the bound.

    `off` is what rounding may add to |v|; so may `uneven`, the difference of the classes' totals that is left
    where they should be equal: the heavier one scaled down moves v by so much times the longest pattern.
    """

    v: np.ndarray
    off: float
    uneven: float


class Sums(NamedTuple):
    """Over all n patterns, of which `used` have a dual weight: what these are worth but for |v|^2, and all losses.

    `size` is the sum of alpha and alpha^2 / (4 C s_i), of which the gains are the difference; losses are those of
    margins as small as they may be, and of margins as they seem. Of the terms of both sums so many are added one after
    the other.
    """

    n: int
    used: int
    gains: float
    size: float
    losses: float
    nominal: float
    terms_of_gains: int
    terms_of_losses: int


def soft_bounds(
    problem: Problem,
    arithmetic: Arithmetic,
    point: tuple[np.ndarray, float],
    sums: Sums,
    dual: DualPoint,
) -> Bounds:
    w, b = point
    v2, size = arithmetic.square(dual.v, problem.p), sums.size
    lower = problem.worth(sums.gains, v2)
    terms = sums.terms_of_gains + dual.v.size
    if problem.power == 2:
        below = arithmetic.error(lower, size + v2, terms) + 4.0 * _EPS * (size + v2)
        below += (
            dual.uneven + dual.off * (float(np.sqrt(v2)) + dual.off) + v2 * powers_error(problem.p, terms)
        )
    else:  # gains divided by max(1, |v|), of which |v| may be larger than it seems
        below = arithmetic.error(lower, size, terms) + 4.0 * _EPS * size + dual.uneven
        below += size * (dual.off + float(np.sqrt(v2)) * (powers_error(problem.p, terms) + terms * _EPS))
    if sums.used:
        below += (sums.n + dual.v.size + 4.0) * _LEAST
    if problem.euclidean:
        penalty = 0.5 * problem.norm2(arithmetic.square(w), b)
    else:
        penalty = problem.penalty(arithmetic.norm(problem.weights(w, b), problem.q))
    upper = penalty + sums.losses
    above = arithmetic.error(upper, upper, sums.terms_of_losses + w.size) + 4.0 * _EPS * upper
    above += 2.0 * upper * powers_error(problem.q, w.size)
    if penalty > 0.0 or w.any():  # squares may have lost their digits
        above += (w.size + 4.0) * _LEAST
    return Bounds(lower - below, upper + above, below, above + sums.losses - sums.nominal)
