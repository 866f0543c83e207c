"""Separators of two classes, whose margins are recomputed from the data alone."""

from __future__ import annotations

import sys
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

import numpy as np

from ..numerics.norms import norm
from ..numerics.rational import row_entries
from ..numerics.sparse_columns import without_empty_columns
from ..numerics.sums import powers_error
from .certificate import require
from .exact import ExactNorm
from .gram import KernelProblem, KernelSample
from .row_pass import attained_margin
from .sample import Sample
from .verdicts import Separable


@dataclass(frozen=True, eq=False, kw_only=True)
class LinearSeparator(Separable):
    """A hyperplane between the classes.

    Attributes
    ----------
    w : ndarray of shape (d,)
    b : float
    exact : tuple of Fraction, or None
        (w, b) in rational numbers, of length d + 1, where float64 has too few digits for a separator. The attributes w
        and b are then its rounding, and lo is the margin of the rational one, 0.0 where that is below the smallest
        float64 number.
    """

    w: np.ndarray
    b: float
    exact: tuple[Fraction, ...] | None = field(default=None, repr=False)

    @property
    def side(self) -> str:
        """The formula of the score of a hyperplane."""
        return "w.x + b"

    @property
    def digits(self) -> str:
        """A note where the separator is a rational one."""
        return "" if self.exact is None else "it takes more digits than float64 has: see `exact`"

    def attained_margin(self, X: Any, signs: np.ndarray) -> float:
        """Recompute the margin in float64; in rational numbers where that does not prove `lo`."""
        w, problem = self.w, self.certificate.problem
        self.check_intercept(self.b if self.exact is None else self.exact[-1])
        if self.exact is None:  # an exact weight may be so small that it is 0 in w
            fits = w.shape == (X.shape[1],) and np.isfinite(w).all() and np.isfinite(self.b)
            require(fits, "the separator fails: a weight for each feature, and b, must be finite.")
            X, columns = without_empty_columns(X, w)
            w = columns.restrict(w)
            lower = attained_margin(problem, Sample(X, signs, np.ones(signs.size)), w, self.b)
            if 0.0 < self.claimed <= lower:
                return lower
        # floats are rational numbers: the margin of (w, b) is computed exactly
        exact = _rational(w, self.b) if self.exact is None else self.exact
        least = exact_least_score(X, signs, exact)
        # sums in another order, as of sparse and of dense rows, prove other digits: the claim is compared exactly
        if 0.0 < self.claimed < np.inf and any(exact[:-1]):
            length = ExactNorm(exact[:-1], problem.q if np.isinf(problem.q) else Fraction(problem.q))
            if least > 0 and length.square_at_most((least / Fraction(self.claimed)) ** 2):
                return self.claimed
        return quotient_below(least, exact[:-1], problem.q)


def _rational(w: np.ndarray, b: float) -> tuple[Fraction, ...]:
    """Return the rational numbers that the entries of w, and b, are."""
    return (*map(Fraction, w.tolist()), Fraction(b))


@dataclass(frozen=True, eq=False, kw_only=True)
class KernelSeparator(Separable):
    """A function f(x) = sum coefficients_i k(x_i, x) + b that is positive on one class and negative on the other.

    Its margin lo > 0 is measured in the feature space of the kernel.

    Attributes
    ----------
    coefficients : ndarray of shape (n,)
    b : float
    """

    coefficients: np.ndarray = field(repr=False)
    b: float

    @property
    def side(self) -> str:
        """The formula of the score of a kernel expansion."""
        return f"sum c_i k(x_i, x) + b, of {np.count_nonzero(self.coefficients)} rows x_i,"

    def attained_margin(self, X: Any, signs: np.ndarray) -> float:
        """Recompute the margin from kernel values in float64, with bounds of their errors."""
        self.check_intercept(self.b)
        sample = KernelSample(self.kernel, X)
        task = KernelProblem(self.certificate.problem, sample, signs, np.ones(signs.size))
        return task.attained_margin(self.coefficients, self.b)


def quotient_below(least: Fraction, w: tuple[Fraction, ...], q: float) -> float:
    """Return a float64 number below least / |w|_q, at least 0.0; -inf unless least > 0 and w is not 0."""
    unit = max((abs(value) for value in w), default=0)
    if not unit:  # w = 0 separates nothing
        return -np.inf
    length = norm(np.array([float(value / unit) for value in w]), q)
    # the last term is more than the relative rounding error of a sum of d terms and of w / unit
    length *= 1.0 + powers_error(q, len(w)) + 1e-12 * (len(w) + 4.0)
    # |w| = unit * length; one float below the rounded quotient is below the exact one, also where float64 ends
    bound = min(least / unit / Fraction(length), Fraction(sys.float_info.max))
    return max(float(np.nextafter(float(bound), 0.0)), 0.0) if bound > 0 else -np.inf


def exact_least_score(X: Any, y: np.ndarray, point: tuple[Fraction, ...]) -> Fraction:
    """Return min y_i (w.x_i + b) for rational (w, b), exactly; for rows X and labels y of -1.0 and 1.0."""
    *w, b = point
    rows = [zip(*row_entries(X, i), strict=True) for i in range(y.size)]
    scores = [b + sum(Fraction(value) * w[j] for j, value in row) for row in rows]
    return min(int(sign) * score for sign, score in zip(y, scores, strict=True))
