"""Separators of both classes, checked from the data alone."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

import numpy as np

from ..numerics.norms import norm
from ..numerics.sparse_columns import without_empty_columns
from ..numerics.sums import Compensated, Plain, powers_error
from .bounds import EPS, LEAST
from .certificate import require
from .expansions import KernelProblem
from .feature_map import entries, image
from .gram import KernelSample
from .verdicts import Separable


@dataclass(frozen=True, eq=False, kw_only=True)
class LinearSeparator(Separable):
    """A hyperplane between the classes.

    Attributes
    ----------
    w : ndarray of shape (d,)
    b : float
    exact : tuple of Fraction, or None
        (w, b) in rational numbers, where it takes more digits than float64 has; (w, b) is then its rounding, and lo,
        which is 0.0 for margins below the smallest float64 number, speaks of the rational one.
    """

    w: np.ndarray
    b: float
    exact: tuple[Fraction, ...] | None = field(default=None, repr=False)

    @property
    def side(self) -> str:
        """The score of a hyperplane."""
        return "w.x + b"

    @property
    def digits(self) -> str:
        """A note where the separator is a rational one."""
        return "" if self.exact is None else "it takes more digits than float64 has: see `exact`"

    def _attained_margin(self, X: Any, signs: np.ndarray) -> float:
        """Recompute the margin by compensated sums, or in rational numbers."""
        w, q = self.w, self.certificate.problem.q
        if self.exact is None:  # an exact weight may be so small that it is 0 in w
            X, columns = without_empty_columns(X, w)
            w = columns.restrict(w)
            lower = attained_margin(X, signs, w, self.b, q)
            if 0.0 < self.lo <= lower:
                return lower
        exact = (*map(Fraction, w.tolist()), Fraction(self.b)) if self.exact is None else self.exact
        return exact_attained_margin(X, signs, exact, q)


@dataclass(frozen=True, eq=False, kw_only=True)
class KernelSeparator(Separable):
    """f(x) = sum coefficients_i k(x_i, x) + b between the classes; lo > 0 is its margin in the kernel's own length.

    Attributes
    ----------
    coefficients : ndarray of shape (n,)
    b : float
    """

    coefficients: np.ndarray = field(repr=False)
    b: float

    @property
    def side(self) -> str:
        """The score of a kernel expansion."""
        return f"sum c_i k(x_i, x) + b, of {np.count_nonzero(self.coefficients)} rows x_i,"

    def _attained_margin(self, X: Any, signs: np.ndarray) -> float:
        """Recompute the margin by kernel values in float64 with their errors."""
        sample = KernelSample(self.kernel, X)
        task = KernelProblem(self.certificate.problem, sample, signs, np.ones(signs.size))
        return task.attained_margin(self.coefficients, self.b)


@dataclass(frozen=True, eq=False, kw_only=True)
class PolynomialSeparator(Separable):
    """A polynomial in rational numbers between the classes, where float64 kernel values lose its margin: lo is 0.0.

    Attributes
    ----------
    weights : dict
        Of the monomials, each named by the tuple of its features, in which n_features stands for the constant.
    b : Fraction
    """

    weights: dict[Hashable, Fraction] = field(repr=False)
    b: Fraction

    @property
    def side(self) -> str:
        """The score of a polynomial."""
        return "the polynomial of `weights`, + b,"

    @property
    def digits(self) -> str:
        """The meaning of lo = 0."""
        return "it takes more digits than float64 has, and its margin is not known but to be positive"

    def _attained_margin(self, X: Any, signs: np.ndarray) -> float:
        """Evaluate the polynomial at every row in rational numbers; return 0.0, below its margin."""
        for i in range(signs.size):
            places, ratios = image(self.kernel, X, i)
            terms = zip(places, ratios, strict=True)
            score = self.b + sum(self.weights.get(place, 0) * Fraction(*ratio) for place, ratio in terms)
            require(int(signs[i]) * score > 0, f"the separator fails: row {i} is not on its side.")
        return 0.0


def attained_margin(X: Any, y: np.ndarray, w: np.ndarray, b: float, q: float) -> float:
    """Return a lower bound of min y_i (w.x_i + b) / |w|_q, rounded downwards.

    Sums are compensated. The error of each score is bounded by the sizes of its own terms, sum_j |x_ij w_j| + |b|, not
    by |x_i| |w|, so that columns of very different sizes do no harm.

    Parameters
    ----------
    X : ndarray or CSR matrix of shape (n, d)
    y : ndarray of shape (n,), entries -1.0 and 1.0
    w : ndarray of shape (d,)
    b : float
    q : float
        The exponent of the norm of w.
    """
    length = norm(w, q)
    if not (0.0 < length < np.inf and np.isfinite(b)):
        return -np.inf
    terms = w.size + 2.0
    with np.errstate(over="ignore", invalid="ignore"):
        margins = y * Compensated.scores(X, w, b)
        size = Plain.scores(abs(X), np.abs(w)) + abs(b)
        off = Compensated.error(margins, 1.01 * size, terms) + terms * LEAST
        least = float((margins - off).min())
        inexact = powers_error(q, w.size) + 2.0 * terms * EPS
        bound = least / (length * (1.0 + inexact if least > 0.0 else 1.0 - inexact))
    return float(np.nextafter(bound, -np.inf)) if np.isfinite(bound) else -np.inf


def exact_attained_margin(X: Any, y: np.ndarray, point: tuple[Fraction, ...], q: float) -> float:
    """Return the same bound for (w, b) in rational numbers, whose margins are exact; -inf unless all are positive."""
    *w, b = point
    rows = [zip(*entries(X, i), strict=True) for i in range(y.size)]
    scores = [b + sum(Fraction(value) * w[j] for j, value in row) for row in rows]
    least = min(int(sign) * score for sign, score in zip(y, scores, strict=True))
    unit = max(abs(value) for value in w)
    length = norm(np.array([float(value / unit) for value in w]), q)
    length *= 1.0 + powers_error(q, len(w)) + 1e-12 * (len(w) + 4.0)  # rounding, of so many terms at most
    bound = least / unit / Fraction(length)
    if bound <= 0:
        return -np.inf
    return max(float(np.nextafter(float(bound), 0.0)), 0.0)
