"""Separators that are functions of a kernel, checked from the data alone."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

import numpy as np

from .certificates import CertificateError
from .gram import gram_product
from .images import image
from .kernels import Kernel
from .verdicts import Separable, certified_above, data_of

EPS = float(np.finfo(float).eps)


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
        """A function's."""
        return f"sum c_i k(x_i, x) + b, of {np.count_nonzero(self.coefficients)} rows x_i,"

    @property
    def digits(self) -> str:
        """Nothing: coefficients are float64 numbers."""
        return ""

    def verify(self, X: Any, y: Any) -> KernelSeparator:
        """With kernel values in float64, and what these may be off."""
        X, signs = data_of(X, y, self.classes, self.certificate.fingerprint.features)
        certified_above(self.certificate, self.kernel, X, signs, self.hi)
        lower = kernel_attained(self.kernel, X, signs, self.coefficients, self.b)
        if not 0.0 < self.lo <= lower:
            raise CertificateError(
                f"the margin fails: {self.lo:.17g} is claimed, the data give {lower:.17g}."
            )
        return self


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
        """A polynomial's."""
        return "the polynomial of `weights`, + b,"

    @property
    def digits(self) -> str:
        """What lo = 0 means."""
        return "it takes more digits than float64 has, and its margin is not known but to be positive"

    def verify(self, X: Any, y: Any) -> PolynomialSeparator:
        """In rational numbers."""
        X, signs = data_of(X, y, self.classes, self.certificate.fingerprint.features)
        certified_above(self.certificate, self.kernel, X, signs, self.hi)
        for i in range(signs.size):
            places, ratios = image(self.kernel, X, i)
            score = self.b + sum(
                (self.weights.get(place, Fraction(0)) * Fraction(*ratio))
                for place, ratio in zip(places, ratios, strict=True)
            )
            if not int(signs[i]) * score > 0:
                raise CertificateError(f"the separator fails: row {i} is not on its side.")
        if self.lo != 0.0:
            raise CertificateError(f"the margin fails: {self.lo:.17g} is claimed, and none is known.")
        return self


def kernel_attained(kernel: Kernel, X: Any, y: np.ndarray, c: np.ndarray, b: float) -> float:
    """What the margin of sum c_i k(x_i, .) + b is at least, rounded downwards; -inf where it is not positive.

    Parameters
    ----------
    kernel : Kernel
        Whose values, computed in float64, are off by no more than `kernel.error`.
    X : ndarray or CSR matrix of shape (n, d)
    y : ndarray of shape (n,), entries -1.0 and 1.0
    c : ndarray of shape (n,)
    b : float
    """
    X = kernel.prepared(X.astype(np.float64, copy=False))
    scores = gram_product(kernel, X, c)
    total, terms = float(np.abs(c).sum()), int(np.count_nonzero(c)) + 4.0
    most = float(np.abs(kernel.diagonal(X)).max(initial=0.0))  # of all values, by Cauchy and Schwarz
    off = total * (kernel.error(X) + terms * EPS * most)
    least = float((y * (scores + b) - off - 4.0 * EPS * (np.abs(scores) + abs(b))).min())
    square = float(c @ scores) + total * off + terms * EPS * float(np.abs(c * scores).sum())
    if not (least > 0.0 and 0.0 < square < np.inf):
        return -np.inf
    return least / square**0.5 * (1.0 - 8.0 * EPS)
