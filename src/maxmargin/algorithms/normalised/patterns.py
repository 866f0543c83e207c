"""Normalised, reflected patterns, and the iterates of the algorithms that run on them.

Row i of Y is y_i phi(x_i) / |phi(x_i)|. The Gram matrix G = Y Y' has a unit diagonal, (G p)_i is the margin of
pattern i with respect to w = Y' p, and |p|_G = sqrt(p'G p) is the length of that w. An intercept is one more
feature of constant value, which is added before normalising.

The normalised margin is rho = max over |w| = 1, w in the span of the patterns, of min_i (margin of i). Every w
bounds it from below and every p of the simplex from above, separable or not::

    min (G alpha) / |alpha|_G  <=  rho  <=  |p|_G.

A positive rho is the least |p|_G. Where no w separates, the least |p|_G is 0, and |rho| is the radius of the largest
ball around 0 inside the hull of the patterns, within their span (Theorem 3 of the first paper).

References
----------
A. Ramdas, J. Pena, "Margins, kernels and non-linear smoothed Perceptrons", ICML 2014;
P. Gordan, "Ueber die Aufloesung linearer Gleichungen mit reellen Coefficienten", Math. Annalen 6, 1873.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from math import inf, sqrt
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from ...solvers.decomposition import DualPoint
from ...solvers.iterate import Point

Array = np.ndarray


class Combination(NamedTuple):
    """Coefficients p of the patterns and their margins G p, of shape (n,) each, and w = Y' p, of shape (d,).

    w is None where patterns are given by kernel values.
    """

    coefficients: Array
    margins: Array
    w: Any = None  # an array, or None


def interpolate(a: Combination, b: Combination, t: float) -> Combination:
    """Return (1 - t) a + t b. Margins and w are linear in the coefficients: no product with the patterns is needed."""
    s = 1.0 - t
    w = None if a.w is None else s * a.w + t * b.w
    return Combination(s * a.coefficients + t * b.coefficients, s * a.margins + t * b.margins, w)


class NormalisedPatterns(ABC):
    """Interface of the algorithms to the patterns: margins and lengths of combinations.

    Parameters
    ----------
    square : array of shape (n,)
        K_ii of every pattern.
    y : array-like of shape (n,), entries -1 and 1
    constant : float, default=0
        Value of one more feature, whose weight gives the intercept; 0 is no intercept.

    Attributes
    ----------
    scale : array of shape (n,)
        y_i / sqrt(K_ii + constant^2).
    rounding, noise : float
        Bounds of the rounding errors of margins, and of lengths, at points of the simplex: 4 units in the last place
        of one; for `NormalisedProducts.noise` the square root of that.

    Raises
    ------
    ValueError
        A pattern that is zero, which has no direction, or not finite.
    """

    def __init__(self, square: Array, y: Array, constant: float = 0.0) -> None:
        self.constant = float(constant)
        # with a smaller allowance rounding errors count as margins, a larger one hides margins of a few units
        self.rounding = self.noise = 4.0 * float(np.finfo(square.dtype).eps)
        lengths2 = square + self.constant**2
        i = int(np.argmin(lengths2))
        # a squared length below the normal numbers has lost digits, and so would the scale
        if not np.finfo(lengths2.dtype).smallest_normal <= lengths2[i] or not np.isfinite(lengths2).all():
            raise ValueError(
                f"pattern {i} (counted from 0) has no direction: its squared length is {lengths2[i]:.3g}."
            )
        # multiplies pattern i by its label and normalises it
        self.scale = np.asarray(y, square.dtype) / np.sqrt(lengths2)

    @property
    def n(self) -> int:
        """The number of patterns."""
        return self.scale.shape[0]

    def uniform(self) -> Array:
        """Return the centre of the simplex."""
        return np.full(self.n, 1.0 / self.n, self.scale.dtype)

    @abstractmethod
    def combine(self, coefficients: Array) -> Combination:
        """Return the combination with these coefficients: one product with G."""

    @abstractmethod
    def vertex(self, j: int) -> Combination:
        """Return the combination that is pattern j alone: one column of G."""

    @abstractmethod
    def length(self, combination: Combination) -> float:
        """Return max(|p|_G, noise): a length below the noise would be a rounding error."""

    @abstractmethod
    def solution(self, iterate: Iterate) -> Any:
        """Return the separator and the dual variables of an iterate in the units of the patterns as they were given."""

    def dual(self, combination: Combination) -> Array:
        """Return the coefficients of the patterns without their normalisation, of shape (n,)."""
        return np.abs(self.scale) * combination.coefficients

    def _unit(self, j: int) -> Array:
        """Return the unit vector e_j."""
        return (np.arange(self.n) == j).astype(self.scale.dtype)

    def _margins(self, scores: Array, scaled: Array) -> Array:
        """Return the margins G p = scale_i (f_i + the term of the constant feature), of shape (n,).

        `scores` are f = K `scaled`, for `scaled` = scale * p.
        """
        if self.constant:
            scores = scores + self.constant**2 * scaled.sum()
        return self.scale * scores


class NormalisedRows(NormalisedPatterns):
    """Patterns given by their features: a product with G is two products with the data.

    Parameters
    ----------
    X : ndarray or CSR array of shape (n, d), float64 or float32
        Not copied.
    y, constant
        As for `NormalisedPatterns`.
    """

    def __init__(self, X: Any, y: Any, constant: float = 0.0) -> None:
        self.X = X
        square = X.multiply(X).sum(axis=1) if sp.issparse(X) else np.vecdot(X, X)
        super().__init__(np.asarray(square, X.dtype).ravel(), y, constant)

    def combine(self, coefficients: Array) -> Combination:
        """Return the combination with these coefficients: products with X' and X, O(nnz)."""
        scaled = self.scale * coefficients
        w = self.X.T @ scaled
        return Combination(coefficients, self._margins(self.X @ w, scaled), w)

    def vertex(self, j: int) -> Combination:
        """Return the combination that is pattern j alone: X times one row."""
        coefficients = self._unit(j)
        w = self.scale[j] * (self.X[[j]].toarray()[0] if sp.issparse(self.X) else self.X[j])
        return Combination(coefficients, self._margins(self.X @ w, self.scale * coefficients), w)

    def length(self, combination: Combination) -> float:
        """Return |w| in the space of all features: a sum of squares, which loses no digits where it is small."""
        square = float(combination.w @ combination.w)
        if self.constant:
            square += (self.constant * float((self.scale * combination.coefficients).sum())) ** 2
        return max(sqrt(square), self.noise)

    def solution(self, iterate: Iterate) -> Point:
        """Return w and b of alpha, and the dual variables of p."""
        b = self.constant**2 * float(self.scale @ iterate.alpha.coefficients)
        return Point(iterate.alpha.w, b, self.dual(iterate.p))


class NormalisedProducts(NormalisedPatterns):
    """Patterns given by products with their kernel matrix, without features.

    |p|_G is the square root of a sum of products of either sign: `noise` is the square root of the rounding error of
    that sum.

    Parameters
    ----------
    product : callable
        Returns K c for c of shape (n,); it should take the time of few columns of K where few entries are not zero.
    square, y, constant
        As for `NormalisedPatterns`.
    """

    def __init__(
        self, product: Callable[[Array], Array], square: Array, y: Any, constant: float = 0.0
    ) -> None:
        self.product = product
        super().__init__(square, y, constant)
        self.noise = sqrt(self.rounding)

    def combine(self, coefficients: Array) -> Combination:
        """Return the combination with these coefficients: one product with K."""
        scaled = self.scale * coefficients
        return Combination(coefficients, self._margins(self.product(scaled), scaled))

    def vertex(self, j: int) -> Combination:
        """Return the combination that is pattern j alone."""
        return self.combine(self._unit(j))

    def length(self, combination: Combination) -> float:
        """Return |p|_G = sqrt(p'(G p)), or the noise if that is more."""
        return sqrt(max(float(combination.coefficients @ combination.margins), self.noise**2))

    def solution(self, iterate: Iterate) -> tuple[DualPoint, DualPoint]:
        """Return the dual variables of alpha and of p, each with the scores K c of their c = alpha_i y_i."""
        primal, dual = (DualPoint(self.dual(x), self._scores(x)) for x in (iterate.alpha, iterate.p))
        return primal, dual

    def _scores(self, combination: Combination) -> Array:
        """Return the scores K c of a combination, from its margins (`_margins`)."""
        scaled = self.scale * combination.coefficients
        return combination.margins / self.scale - self.constant**2 * scaled.sum()


class Iterate(NamedTuple):
    """An iterate of an algorithm on normalised patterns, with its bounds of rho.

    Attributes
    ----------
    step : int
        Steps so far.
    alpha : Combination
        The candidate for a separator, with its margins G alpha; the coefficients add up to one.
    p : Combination
        Coefficients in the simplex, with G p.
    lower, upper : float
        min(G alpha) / |alpha|_G and |p|_G: the bounds of rho of this iterate, not the best so far. They allow for
        rounding, but prove nothing: a proof takes the patterns in exact arithmetic.
    """

    step: int
    alpha: Combination
    p: Combination
    lower: float
    upper: float

    @property
    def primal(self) -> bool:
        """Whether alpha separates."""
        return self.lower > 0.0

    def dual(self, eps: float) -> bool:
        """Return whether p bounds the largest margin rho by eps."""
        return self.upper <= eps


def bounded_iterate(patterns: NormalisedPatterns, step: int, alpha: Combination, p: Combination) -> Iterate:
    """Return the iterate of two combinations with the bounds of rho that they give."""
    length, least = patterns.length(alpha), float(alpha.margins.min())
    if length <= patterns.noise:
        lower = -1.0  # a direction of length 0: no margin of unit vectors is below -1
    elif least > 0.0:
        lower = least / length
    else:  # rounded downwards
        lower = max((least - patterns.rounding) / (length - patterns.noise), -1.0)
    return Iterate(step, alpha, p, lower, length if p is alpha else patterns.length(p))


def until_decided(
    iterates: Iterator[Iterate],
    eps: float,
    interrupted: Callable[[], bool] = lambda: False,
    accuracy: float = 1.0,
) -> Iterator[Iterate]:
    """Yield iterates up to the first that decides: a separator, or |p|_G <= eps.

    Parameters
    ----------
    iterates : iterator of Iterate
        From any of the algorithms, which do not stop by themselves: further steps give better bounds.
    eps : float
        Margins up to eps count as none; 0 to search for a separator only.
    interrupted : callable
        Returns whether to stop; called after every step.
    accuracy : float, default=1
        A separator decides if its margin is at least 1 - accuracy of the smallest upper bound so far.

    Yields
    ------
    Iterate
        The last one is `primal`, or `dual(eps)`, or neither after an interruption.
    """
    upper = inf
    for iterate in iterates:
        yield iterate
        upper = min(upper, iterate.upper)
        found = iterate.primal and iterate.lower >= (1.0 - accuracy) * upper
        if found or iterate.dual(eps) or interrupted():
            return
