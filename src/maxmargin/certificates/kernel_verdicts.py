"""Separators that are functions of a kernel, checked from the data alone."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

import numpy as np

from .bounds import CertificateError
from .feature_map import image
from .kernel import KernelSample, attained
from .verdicts import Separable, certified_above, data_of


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
        sample = KernelSample(self.kernel, X)
        lower = attained(self.certificate.problem, sample, signs, self.coefficients, self.b)
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
