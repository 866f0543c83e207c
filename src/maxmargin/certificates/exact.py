"""Bounds of a linear problem in exact arithmetic, rounded once to float64, for certificates that others check.

Every float64 number is a multiple of 2^-1074, so that sums of products are integers in suitable units. Norms with a
whole exponent are compared by their powers; those with another exponent by logarithms of 60 digits, rounded outwards.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Sequence
from decimal import Context, Decimal, localcontext
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np

from ..numerics.rational import row_entries
from ..problem.problem import Problem

if TYPE_CHECKING:
    from .certificate import Sample

BITS = 1074  # the smallest float64 number is 2^-1074
# Denominator of alpha_i^2 / (4 C s_i), rounded up: its rounding is below that of any float64 bound.
SQUARE_BITS = 1400


def integer_of(value: float) -> int:
    """Return value 2^BITS."""
    numerator, denominator = float(value).as_integer_ratio()
    return numerator << (BITS + 1 - denominator.bit_length())


def exactly_feasible(
    problem: Problem, y: np.ndarray, weights: np.ndarray, alpha: np.ndarray
) -> dict[int, Fraction]:
    """Return dual variables near alpha that are exactly feasible, by row: capped at C s_i, and balanced.

    The caps of float64 are rounded; those of rational numbers are not. The excess of one class is subtracted from its
    largest dual variables.

    Parameters
    ----------
    problem : Problem
    y : ndarray of shape (n,), entries -1.0 and 1.0
    weights, alpha : ndarray of shape (n,)
        Sample weights; dual variables that are feasible up to rounding.
    """
    found = {i: Fraction(alpha[i]) for i in np.flatnonzero((alpha > 0.0) & (weights > 0.0)).tolist()}
    if not math.isinf(problem.cap):
        found = {i: min(a, Fraction(problem.C) * Fraction(weights[i])) for i, a in found.items()}
    if not problem.free:
        return found
    excess = sum((a if y[i] > 0 else -a for i, a in found.items()), Fraction())
    heavy = 1.0 if excess > 0 else -1.0
    for i in sorted((i for i in found if y[i] == heavy), key=found.__getitem__, reverse=True):
        change = min(abs(excess), found[i])
        found[i] -= change
        excess -= change if excess > 0 else -change
        if not excess:
            break
    return {i: a for i, a in found.items() if a}


class ExactNorm:
    """The p-norm of a vector of rational numbers.

    Parameters
    ----------
    values : sequence of Fraction
    p : Fraction or inf
        At least 1.
    """

    def __init__(self, values: Sequence[Fraction], p: Fraction | float) -> None:
        self.p, self._unit = p, math.lcm(*(value.denominator for value in values))
        sizes = [abs(value.numerator) * (self._unit // value.denominator) for value in values if value]
        self._largest = max(sizes, default=0)
        # powers of larger exponents take more time than logarithms do
        self._whole = p != math.inf and Fraction(p).denominator == 1 and p <= 64
        if self._whole:
            self._power: Any = sum(size ** int(p) for size in sizes)
        elif p != math.inf and self._largest:
            with _decimals():
                exponent, largest = _decimal(Fraction(p)), Decimal(self._largest)
                self._power = sum((exponent * (Decimal(size) / largest).ln()).exp() for size in sizes)

    def square_at_most(self, square: Fraction) -> bool:
        """Return whether |v|_p^2 <= square is proved: exactly, but for exponents that are no whole numbers."""
        if square < 0 or not self._largest:
            return square >= 0
        square = square * self._unit**2  # of the integers
        if self.p == math.inf:
            return self._largest**2 <= square
        if self._whole:
            return self._power**2 <= square ** int(self.p)
        if not square:
            return False
        with _decimals():
            # sum (|v_j| / largest)^p <= (square / largest^2)^(p / 2)
            exponent = _decimal(Fraction(self.p))
            limit = _decimal(square / self._largest**2).ln()
            # Errors of logarithms up to L > 1 are below 4e-59 (p L + d) for d entries (docs, "exact checks"): the slack
            # exceeds them, and changes a norm by a part in 1e40.
            return self._power.ln() + Decimal("1e-40") * (1 + exponent) <= exponent / 2 * limit


def _decimals() -> Any:
    """Return the context of logarithms of 60 digits: correctly rounded in Python's decimal arithmetic."""
    return localcontext(Context(prec=60, Emax=10**9, Emin=-(10**9)))


def _decimal(value: Fraction) -> Decimal:
    """Return a fraction, rounded to the digits of the context."""
    return Decimal(value.numerator) / Decimal(value.denominator)


class ExactBounds:
    """Both bounds of one binary problem: what a point (w, b) and dual variables prove.

    Parameters
    ----------
    problem : Problem
    sample : Sample
        Of all columns.
    w : ndarray of shape (d,)
    b : float
    alpha : dict of Fraction
        Exactly feasible dual variables by row.
    """

    def __init__(
        self, problem: Problem, sample: Sample, w: np.ndarray, b: float, alpha: dict[int, Fraction]
    ) -> None:
        self.problem, self._weights = problem, sample.weights
        p = problem.p if math.isinf(problem.p) else Fraction(problem.p)
        q = math.inf if p == 1 else Fraction(1) if math.isinf(p) else p / (p - 1)
        margins, v = self._sums(sample, w, b, alpha)
        weights = [Fraction(value) for value in w.tolist()]
        if problem.rho:  # the constant coordinate, whose weight is b / rho
            weights.append(Fraction(b) / Fraction(problem.rho))
            signed = sum((a * int(sample.y[i]) for i, a in alpha.items()), Fraction())
            v.append(Fraction(problem.rho) * signed)
        self._w, self._v = ExactNorm(weights, q), ExactNorm(v, p)
        self._gains = sum(alpha.values(), Fraction()) - self._squares(alpha)
        if problem.hard:
            used = (margin for margin, s in zip(margins, sample.weights.tolist(), strict=True) if s > 0.0)
            self._smallest = Fraction(min(used), 1 << 2 * BITS)
        else:
            self._losses = self._total_loss(margins)

    @staticmethod
    def _sums(
        sample: Sample, w: np.ndarray, b: float, alpha: dict[int, Fraction]
    ) -> tuple[list[int], list[Fraction]]:
        """Return y_i (w.x_i + b) of all rows in units of 2^(-2 BITS), and sum alpha_i y_i x_i."""
        common = math.lcm(*(a.denominator for a in alpha.values()))
        point, constant = [integer_of(value) for value in w.tolist()], integer_of(b) << BITS
        margins, v = [], [0] * len(point)
        for i in range(sample.y.size):
            sign, score = int(sample.y[i]), constant
            entries = zip(*row_entries(sample.X, i), strict=True)
            ratios = [(j, *value.as_integer_ratio()) for j, value in entries]
            for j, above, below in ratios:
                score += above * point[j] << BITS + 1 - below.bit_length()
            margins.append(sign * score)
            if i in alpha:
                factor = sign * alpha[i].numerator * (common // alpha[i].denominator)
                for j, above, below in ratios:
                    v[j] += factor * above << BITS + 1 - below.bit_length()
        return margins, [Fraction(value, common << BITS) for value in v]

    def _squares(self, alpha: dict[int, Fraction]) -> Fraction:
        """Return the sum of alpha_i^2 / (4 C s_i) of the squared hinge, each term rounded up; 0 for other losses."""
        if self.problem.hard or self.problem.loss == "hinge":
            return Fraction()
        total, C = 0, Fraction(self.problem.C)
        for i, a in alpha.items():
            term = a * a / (4 * C * Fraction(self._weights[i]))
            total -= (-term.numerator << SQUARE_BITS) // term.denominator
        return Fraction(total, 1 << SQUARE_BITS)

    def _total_loss(self, margins: list[int]) -> Fraction:
        """Return the sum of the losses C s_i max(0, 1 - m_i), or of their squared kind."""
        one, power = 1 << 2 * BITS, 2 if self.problem.loss == "squared_hinge" else 1
        total = 0
        for margin, s in zip(margins, self._weights.tolist(), strict=True):
            if margin < one and s:
                total += integer_of(s) * (one - margin) ** power
        return Fraction(self.problem.C) * Fraction(total, 1 << BITS * (1 + 2 * power))

    def proves_lower(self, bound: float) -> bool:
        """Return whether a lower bound is proved: 0 always is."""
        if bound == 0.0:
            return True
        value = Fraction(bound)
        if self.problem.hard:  # value <= min m_i / |w|_q
            return self._smallest > 0 and self._w.square_at_most((self._smallest / value) ** 2)
        if self.problem.power == 2:  # value <= gains - 1/2 |v|_p^2
            return self._v.square_at_most(2 * (self._gains - value))
        # value <= gains / max(1, |v|_p)
        return value <= self._gains and self._v.square_at_most((self._gains / value) ** 2)

    def proves_upper(self, bound: float) -> bool:
        """Return whether an upper bound is proved."""
        value = Fraction(bound)
        if self.problem.hard:  # |v|_p / sum alpha_i <= value
            return self._gains > 0 and self._v.square_at_most((value * self._gains) ** 2)
        rest = value - self._losses
        if rest < 0:
            return False
        return self._w.square_at_most(2 * rest if self.problem.power == 2 else rest * rest)

    def proved(self, lower: float, upper: float) -> tuple[float, float]:
        """Return float64 bounds near the arguments that are proved, 0 and inf where nothing is."""
        steps = [0.0, *(2.0**k for k in range(-50, 1))]
        below, above = (max(0.0, min(sys.float_info.max, bound)) for bound in (lower, upper))
        lower = next((v for step in steps if self.proves_lower(v := below * (1.0 - step))), 0.0)
        near = (0.0, *(above * (1.0 + step) for step in steps))
        return lower, next((v for v in near if v < math.inf and self.proves_upper(v)), math.inf)
