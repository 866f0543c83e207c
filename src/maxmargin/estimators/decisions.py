"""The binary decisions of a fitted classifier: which sides, which scores, which dual weights."""

from __future__ import annotations

from copy import copy
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from ..certificates.bounds import Certificate, CertificateError, Sample, fingerprint, training_data
from ..problem.multiclass import AgainstEachOther, Parts, named_parts, parts_of
from .rows import checked_rows


@dataclass(frozen=True, eq=False)
class Decision:
    """One binary decision: the only one of two classes, a class against the rest, or a pair of classes.

    Attributes
    ----------
    model : object
        The classifier, without the names of its features: arrays need not have any.
    place : int
        Which of its scores.
    label : object
        None of two classes, else the class or the pair.
    positive, negative : str
        The sides, as they are called.
    certificate : Certificate or None
    """

    model: Any
    place: int
    label: Any
    positive: str
    negative: str
    certificate: Certificate | None

    @property
    def name(self) -> str:
        """Both sides in words."""
        return f"{self.positive} against {self.negative}"

    def scores(self, X: Any) -> np.ndarray:
        """f(x) of every row, shape (n,)."""
        return scores(self.model, X)[:, self.place]

    def signs(self, y: Any) -> tuple[np.ndarray, np.ndarray]:
        """The side of each row, 1 or -1, and whether it takes part at all; both of shape (n,)."""
        return _scheme(self.model).signs(self.place, _codes(self.model, y))

    def difference(self, X: Any, y: Any, sample_weight: Any = None) -> str | None:
        """What tells these data from those that the certificate is about, in words; None where nothing does."""
        if self.certificate is None:
            return "the model has no certificate"
        try:
            X, labels, weights = training_data(self.model, X, y, sample_weight)
        except CertificateError as error:
            return str(error)
        if X.shape[1] != self.certificate.fingerprint.features:
            return f"{self.certificate.fingerprint.features} features then, {X.shape[1]} now"
        signs, among = self.signs(labels)
        with np.errstate(over="ignore", invalid="ignore"):
            sample = Sample(X, signs, np.where(among, weights, 0.0))
            return self.certificate.fingerprint.difference(fingerprint(sample))

    def dual(self) -> np.ndarray:
        """The certificate's dual weight of every row of the fit, shape (n,)."""
        if self.certificate is None:
            raise ValueError("the model has no certificate, and so no dual weights.")
        return self.certificate.alpha


def decisions(model: Any) -> list[Decision]:
    """All binary decisions of a fitted classifier.

    Parameters
    ----------
    model : MaxMarginClassifier, KernelMaxMarginClassifier or OnlineMarginClassifier
        Or another fitted classifier with `classes_` and one score a class, of which there is no certificate.

    Raises
    ------
    NotFittedError
    """
    check_is_fitted(model)
    alone = copy(model)
    if hasattr(alone, "feature_names_in_"):
        del alone.feature_names_in_
    classes = np.asarray(model.classes_)
    certificate = getattr(model, "certificate_", None)
    found = []
    for k, label in enumerate(named_parts(_scheme(model), classes)):
        if label is None:
            negative, positive = (f"class {text_of(name)}" for name in classes)
        elif isinstance(label, tuple):
            positive, negative = (f"class {text_of(name)}" for name in label)
        else:
            positive, negative = f"class {text_of(label)}", "the rest"
        part = certificate if isinstance(certificate, Certificate) or certificate is None else certificate[k]
        found.append(Decision(alone, k, label, positive, negative, part))
    return found


def decision(model: Any, label: Any = None) -> Decision:
    """The decision about this class, or pair of classes; None takes the first.

    Raises
    ------
    ValueError
        If there is no such decision; the message names all.
    """
    found = decisions(model)
    if label is None:
        return found[0]
    if len(found) == 1:
        raise ValueError(f"label must be None for two classes, which are one problem; got {label!r}.")
    for one in found:
        if one.label == label:
            return one
    known = [one.label.item() if isinstance(one.label, np.generic) else one.label for one in found]
    raise ValueError(f"label must be one of {known}; got {label!r}.")


def scores(model: Any, X: Any) -> np.ndarray:
    """The scores of all decisions, shape (n, n_decisions), whatever values a classifier makes of them."""
    alone = copy(model)
    if hasattr(alone, "decision_function_shape"):
        alone.decision_function_shape = "ovo"  # one value a problem, as it is
    return np.asarray(alone.decision_function(X)).reshape(X.shape[0], -1)


def text_of(label: Any) -> str:
    """A class, or a pair of them, as it was written: 1 rather than 1.0."""
    if isinstance(label, tuple):
        return " and ".join(text_of(one) for one in label)
    value = label.item() if hasattr(label, "item") else label
    return str(int(value)) if isinstance(value, float) and value.is_integer() else str(value)


def rows_of(model: Any, X: Any) -> Any:
    """Rows as an array or a CSR matrix, of the features that the model knows.

    Raises
    ------
    ValueError
        If there are more or fewer features, if columns have names that are not those of the fit, in their order, or
        if entries are missing or no numbers; of these the message names the column.
    """
    named = hasattr(X, "columns") and hasattr(model, "feature_names_in_")
    return checked_rows(
        model if named else decisions(model)[0].model,
        X if named or not hasattr(X, "columns") else np.asarray(X),
        accept_sparse="csr",
        reset=False,
    )


def class_values(model: Any, X: Any) -> np.ndarray:
    """One value a class, shape (n, n_classes), the largest of which belongs to the class that is predicted.

    Of several pairs the value is the lowest score of a class against any other, which is continuous, unlike votes. A
    class that wins all its pairs has the only positive one; where there is none, the class predicted is given one.
    """
    scheme, found = _scheme(model), scores(model, X)
    if not isinstance(scheme, AgainstEachOther):
        return scheme.values(found)
    values = np.full((found.shape[0], scheme.count), np.inf)
    for k, (i, j) in enumerate(scheme.pairs):
        values[:, i] = np.minimum(values[:, i], found[:, k])
        values[:, j] = np.minimum(values[:, j], -found[:, k])
    drawn = np.flatnonzero(values.max(axis=1) <= 0.0)
    if drawn.size:
        predicted = np.searchsorted(model.classes_, model.predict(X[drawn]))
        values[drawn, predicted] = np.maximum(np.abs(values[drawn]).min(axis=1), np.finfo(float).tiny)
    return values


def _scheme(model: Any) -> Parts:
    return parts_of(getattr(model, "multi_class_", "ovr"), len(model.classes_))


def _codes(model: Any, y: Any) -> np.ndarray:
    """The number of each label's class; -1 of one that the model does not know."""
    y, classes = np.asarray(y), np.asarray(model.classes_)
    known = np.isin(y, classes)
    codes = np.full(y.shape, -1)
    codes[known] = np.searchsorted(classes, y[known])
    return codes
