"""What a report is about: a model and data, and what rechecking its certificate says."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property
from typing import Any

import numpy as np
from sklearn.utils.validation import check_consistent_length, check_is_fitted, column_or_1d

from ..certificates.bounds import Certificate, CertificateError, Certificates
from ..certificates.verdicts import Inseparable
from ..certificates.verification import verdicts_of, verify, verify_verdicts
from ..estimators.decisions import Decision, decisions, rows_of
from ..estimators.explanation import SupportReport, explained
from ..estimators.kernel import KernelMaxMarginClassifier
from ..estimators.linear import MaxMarginClassifier


class Outcome(StrEnum):
    """What recomputing a certificate from data says."""

    HOLDS = "HOLDS"  #: every bound was recomputed from the data, and holds
    NOTHING_PROVED = "NOTHING_PROVED"  #: the data are those of the fit, which ended before it found a bound
    FAILS = "FAILS"  #: the data are those of the fit, and a bound does not hold
    OTHER_DATA = "OTHER_DATA"  #: the data are not those of the fit, and say nothing about its certificate


@dataclass(frozen=True)
class Recheck:
    """What recomputing a certificate from data says.

    Attributes
    ----------
    outcome : Outcome
    words : str
        Why it does not hold, that nothing is proved, or what tells the data from those of the fit; empty where it
        holds.
    certificate : Certificate or Certificates
        The recomputed one where it holds, else that of the fit.
    """

    outcome: Outcome
    words: str
    certificate: Certificate | Certificates


@dataclass(frozen=True, eq=False)
class Subject:
    """A fitted model and the data of its report.

    Parameters
    ----------
    model : MaxMarginClassifier or KernelMaxMarginClassifier
    X : ndarray or CSR matrix of shape (n, d)
    y : ndarray of shape (n,)
    sample_weight : ndarray of shape (n,) or None
    names : list of str
        Of the features.
    top : int
        Rows and features that tables have.
    """

    model: Any
    X: Any
    y: np.ndarray
    sample_weight: np.ndarray | None
    names: list[str]
    top: int

    @classmethod
    def of(
        cls, model: Any, X: Any, y: Any, sample_weight: Any = None, feature_names: Any = None, top: int = 10
    ) -> Subject:
        """The same, with everything checked."""
        if not isinstance(model, MaxMarginClassifier | KernelMaxMarginClassifier):
            raise ValueError(
                "a report is about a certificate, which MaxMarginClassifier and KernelMaxMarginClassifier have; got "
                f"{type(model).__name__}."
            )
        check_is_fitted(model)
        if not (isinstance(top, int) and not isinstance(top, bool) and top >= 1):
            raise ValueError(f"top must be a whole number of at least 1; got {top!r}.")
        if feature_names is None:
            feature_names = getattr(model, "feature_names_in_", None)
        X, y = rows_of(model, X), column_or_1d(y)
        check_consistent_length(X, y, sample_weight)
        if feature_names is None:
            feature_names = [f"feature {j}" for j in range(X.shape[1])]
        if len(feature_names) != X.shape[1]:
            raise ValueError(
                f"there must be a name for each of {X.shape[1]} features; got {len(feature_names)}."
            )
        weights = None if sample_weight is None else np.asarray(sample_weight, dtype=float)
        return cls(model, X, y, weights, [str(name) for name in feature_names], top)

    @cached_property
    def decisions(self) -> list[Decision]:
        """The binary decisions of the model, which takes arrays without names."""
        return decisions(self.model)

    @cached_property
    def recheck(self) -> Recheck:
        """Does the certificate hold?"""
        claim = self.model.certificate_
        for one in self.decisions:
            difference = one.difference(self.X, self.y, self.sample_weight)
            if difference is not None:
                return Recheck(Outcome.OTHER_DATA, difference, claim)
        try:
            found = verify(self.model, self.X, self.y, self.sample_weight)
            verify_verdicts(self.model, self.X, self.y)
        except CertificateError as error:
            return Recheck(Outcome.FAILS, str(error), claim)
        verdicts = verdicts_of(self.model)
        if found.proves_nothing and not any(isinstance(one, Inseparable) for one in verdicts.values()):
            return Recheck(
                Outcome.NOTHING_PROVED, "nothing is proved: the fit ended before it found a bound", found
            )
        return Recheck(Outcome.HOLDS, "", found)

    @cached_property
    def support(self) -> SupportReport:
        """What is certain of each row, where the certificate holds."""
        return explained(self.model, self.X, self.y, self.sample_weight, self.recheck.certificate)

    @cached_property
    def known(self) -> np.ndarray:
        """Which rows have labels that the model knows, shape (n,)."""
        return np.isin(self.y, self.model.classes_)

    @cached_property
    def predicted(self) -> np.ndarray:
        """The class of each row, as the model has it."""
        return self.decisions[0].model.predict(self.X)

    @property
    def parts(self) -> list[tuple[Decision, Certificate]]:
        """Every decision with its certificate, rechecked if it holds."""
        found = self.recheck.certificate
        return list(zip(self.decisions, found.certificates, strict=True))

    @property
    def gap(self) -> float:
        """The certified relative gap, the largest of all classes."""
        return float(self.recheck.certificate.gap)

    @property
    def is_linear(self) -> bool:
        """Has every feature a weight?"""
        return hasattr(self.model, "coef_")
