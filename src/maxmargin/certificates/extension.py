"""The 2-norm soft margin as a hard margin in a virtually extended space: parametrisations and indicators.

Each pattern k has one more coordinate, of value Delta, that is zero in all other patterns. The same problem is written
with three constants::

    scikit-learn  1/2 |w|^2 + C sum xi^2
    PUMMA         1/2 |w|^2 + C'/2 sum xi^2            C' = 2 C
    CRAMMA        |w|^2 + Delta^-2 sum xi^2            Delta^2 = 1 / (2 C)

and the largest extended margin Gamma has 1 / (2 Gamma^2) = the optimal objective of the first.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ..numerics.sums import Plain
from .certificate import Certificate, Certificates
from .sample import Sample


@dataclass(frozen=True)
class Extension:
    """The parameter Delta of the extended space: the value of the additional coordinate of every pattern.

    Parameters
    ----------
    Delta : float
        Positive; as in the CRAMMA paper.

    Raises
    ------
    ValueError
        If Delta is not a positive, finite number.

    Examples
    --------
    >>> from maxmargin import MaxMarginClassifier
    >>> clf = MaxMarginClassifier(C=Extension(Delta=1.0).C)
    >>> clf.C, Extension.of_pumma(2.0).C, Extension.of_C(0.5).Delta
    (0.5, 1.0, 1.0)
    """

    Delta: float

    def __post_init__(self) -> None:
        if not (np.isfinite(self.Delta) and self.Delta > 0.0):
            raise ValueError(f"Delta must be a positive, finite number; got {self.Delta!r}.")

    @classmethod
    def of_C(cls, C: float) -> Extension:
        """Return the extension for C of scikit-learn and liblinear, the factor of the squared losses."""
        if not (np.isfinite(C) and C > 0.0):
            raise ValueError(f"C must be positive and finite: the hard margin has no extension; got {C!r}.")
        return cls((2.0 * C) ** -0.5)

    @classmethod
    def of_pumma(cls, C: float) -> Extension:
        """Return the extension for C of the PUMMA paper, whose squared losses have the factor C / 2."""
        return cls.of_C(0.5 * C)

    @property
    def C(self) -> float:
        """C of scikit-learn and liblinear: 1 / (2 Delta^2)."""
        return 0.5 / self.Delta**2

    @property
    def pumma_C(self) -> float:
        """C of the PUMMA paper: 1 / Delta^2."""
        return 1.0 / self.Delta**2


@dataclass(frozen=True)
class ExtendedMargin:
    """Indicators of the CRAMMA paper, of an extended weight vector a_ext = (a, Delta c).

    Here c are the dual variables, a = sum c_k y_k x_k, and the margin of pattern k is y_k a.x_k.

    Attributes
    ----------
    Delta : float
        The value of the additional coordinates.
    Gamma : float
        The margin of a_ext in the extended space, min_k (y_k a.x_k + Delta^2 c_k) / |a_ext|.
    gamma : float
        Gamma |a_ext| / |a|, the margin of the direction a up to slacks.
    D : float
        Norm of the slacks max(0, gamma - y_k a.x_k / |a|).
    D_prime : float
        Norm of the slacks Delta^2 c_k / |a| of the dual variables; at least D, and equal to D at the optimum:
        (D' - D) / D is a cheap measure of the distance to the optimum.
    J : float
        1 / gamma^2 + D^2 / (Delta gamma)^2, between Gamma_opt^-2 and Gamma^-2 (Theorem 2, (21)); infinite where Gamma
        is not positive.
    Gamma_bounds : (float, float)
        Certified bounds of Gamma_opt, the largest margin in the extended space.

    References
    ----------
    P. Tsampouka, J. Shawe-Taylor, "Constant rate approximate maximum margin algorithms", ECML 2006.
    """

    Delta: float
    Gamma: float
    gamma: float
    D: float
    D_prime: float
    J: float
    Gamma_bounds: tuple[float, float]

    @property
    def excess(self) -> float:
        """(D' - D) / D."""
        return (self.D_prime - self.D) / self.D if self.D > 0.0 else np.inf

    @property
    def deviation(self) -> float:
        """An upper bound of (Gamma_opt - Gamma) / Gamma_opt, from the upper bound of Gamma_opt."""
        return 1.0 - self.Gamma / self.Gamma_bounds[1]


def extended_margin(certificate: Certificate, X: Any, y: np.ndarray) -> ExtendedMargin:
    """Return the extended margin of the weight vector a = sum c_k y_k x_k of a certificate's dual variables c.

    Parameters
    ----------
    certificate : Certificate
        Of a squared hinge problem with unit sample weights, with an augmented intercept or none.
    X : ndarray or CSR matrix of shape (n, d)
        The data of the fit.
    y : ndarray of shape (n,), entries -1.0 and 1.0

    Returns
    -------
    ExtendedMargin

    Raises
    ------
    ValueError
        If the problem is another one, if sample or class weights were not all one, or if the data are not those of
        the fit.
    """
    if isinstance(certificate, Certificates):
        raise ValueError(
            "a certificate of several classes has one extended margin for each: give certificate[k] with labels "
            "1.0 for class k and -1.0 for the others."
        )
    problem, y = certificate.problem, np.asarray(y)
    if problem.hard or problem.loss != "squared_hinge" or problem.free:
        raise ValueError(
            "only the 2-norm soft margin without a free intercept is a hard margin in the extended space: fit with "
            'loss="squared_hinge", a finite C, and fit_intercept=False or intercept="augmented".'
        )
    if y.ndim != 1 or not np.isin(y, (-1.0, 1.0)).all():
        raise ValueError("labels must be -1.0 and 1.0: give numpy.where(y == clf.classes_[1], 1.0, -1.0).")
    if X.shape[0] != y.size:
        raise ValueError(f"X has {X.shape[0]} rows and y {y.size} labels: give those of the fit.")
    y = y.astype(float)
    difference = certificate.fingerprint.difference(Sample(X, y, np.ones(y.size)).fingerprint)
    if difference is not None:
        raise ValueError(
            f"these are not the data of the certificate, each with weight 1 ({difference}): give X and y of the fit; "
            "with sample or class weights, Delta differs from row to row."
        )
    Delta, c = Extension.of_C(problem.C).Delta, certificate.alpha
    # a and the weight w0 of the constant coordinate rho of an augmented intercept; rho is 0 without one
    a, w0 = Plain.combine(X, c * y), problem.rho * Plain.total(c * y)
    scores = y * (Plain.scores(X, a) + problem.rho * w0)
    length = float(np.hypot(Plain.norm(a), w0))
    extended = float(np.hypot(length, Delta * Plain.norm(c)))  # |a_ext|
    if not length > 0.0:
        raise ValueError("all dual variables of the certificate are 0, which gives no direction: raise C.")
    # the own coordinate of pattern k adds Delta c_k times Delta to its margin
    Gamma = float((scores + Delta**2 * c).min()) / extended
    gamma = Gamma * extended / length
    D = float(np.linalg.norm(np.maximum(gamma - scores / length, 0.0)))
    # the largest extended margin has 1 / (2 Gamma^2) = the optimal objective: the upper bound of one is the lower of
    # the other
    lower, upper = (
        (2.0 * value) ** -0.5 if value > 0.0 else np.inf for value in (certificate.upper, certificate.lower)
    )
    return ExtendedMargin(
        Delta=Delta,
        Gamma=Gamma,
        gamma=gamma,
        D=D,
        D_prime=Delta**2 * Plain.norm(c) / length,
        J=(1.0 + (D / Delta) ** 2) / gamma**2 if gamma > 0.0 else np.inf,
        Gamma_bounds=(lower, upper),
    )
