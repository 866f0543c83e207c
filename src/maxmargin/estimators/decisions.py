"""Binary decisions of a fitted classifier: sides, scores and dual variables of each."""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from ..certificates.certificate import Certificate, CertificateError, Sample
from ..certificates.training_data import training_data
from ..problem.multiclass import Parts, class_numbers, named_parts, parts_of, python_label
from .validation import validate_rows


@dataclass(frozen=True, eq=False)
class Decision:
    """One binary decision: of two classes, of a class against the rest, or of a pair of classes.

    Attributes
    ----------
    model : object
        The classifier, without the names of its features, so that it takes plain arrays.
    index : int
        Column of the scores.
    label : object
        None for two classes, else the class or the pair of classes.
    positive, negative : str
        Names of the sides.
    certificate : Certificate or None
    """

    model: Any
    index: int
    label: Any
    positive: str
    negative: str
    certificate: Certificate | None

    @property
    def name(self) -> str:
        """Both sides in words."""
        return f"{self.positive} against {self.negative}"

    def scores(self, X: Any) -> np.ndarray:
        """Return f(x) of every row, shape (n,)."""
        model = copy(self.model)
        if hasattr(model, "decision_function_shape"):
            model.decision_function_shape = "ovo"  # one column a binary problem
        return np.asarray(model.decision_function(X)).reshape(X.shape[0], -1)[:, self.index]

    def signs(self, y: Any) -> tuple[np.ndarray, np.ndarray]:
        """Return the side of each row, 1 or -1, and whether it takes part in the decision; both of shape (n,)."""
        codes = class_numbers(np.asarray(y), np.asarray(self.model.classes_))
        return scheme_of(self.model).signs(self.index, codes)

    def difference(self, X: Any, y: Any, sample_weight: Any = None) -> str | None:
        """Return in words how these data differ from the data of the certificate; None if they are the same."""
        if self.certificate is None:
            return "the model has no certificate"
        try:
            X, labels, weights = training_data(self.model, X, y, sample_weight)
        except CertificateError as error:
            return str(error)
        features = self.certificate.fingerprint.features
        if X.shape[1] != features:
            return f"{features} features then, {X.shape[1]} now"
        signs, takes_part = self.signs(labels)
        # data other than the data of the fit may overflow in the sums of the fingerprint
        with np.errstate(over="ignore", invalid="ignore"):
            sample = Sample(X, signs, np.where(takes_part, weights, 0.0))
            return self.certificate.fingerprint.difference(sample.fingerprint)

    def support(self, X: Any, y: Any, sample_weight: Any = None) -> np.ndarray | None:
        """Return which rows have a positive dual variable, shape (n,); None if the data are not the data of the fit."""
        if self.certificate is None or self.difference(X, y, sample_weight) is not None:
            return None
        return self.certificate.alpha > 0.0


def decisions(model: Any) -> list[Decision]:
    """Return all binary decisions of a fitted classifier.

    Parameters
    ----------
    model : MaxMarginClassifier, KernelMaxMarginClassifier or OnlineMarginClassifier
        Or another fitted classifier with `classes_` and one score per class, without a certificate.

    Raises
    ------
    NotFittedError
    """
    unnamed = _without_feature_names(model)
    classes = np.asarray(model.classes_)
    labels = named_parts(scheme_of(model), classes)
    certificate = getattr(model, "certificate_", None)
    parts = [None] * len(labels) if certificate is None else certificate.certificates
    return [
        Decision(unnamed, k, label, *_sides(label, classes), part)
        for k, (label, part) in enumerate(zip(labels, parts, strict=True))
    ]


def decision(model: Any, label: Any = None) -> Decision:
    """Return the decision about this class, or pair of classes; the first one for None.

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
    names = [python_label(one.label) for one in found]
    if python_label(label) not in names:
        raise ValueError(f"label must be one of {names}; got {label!r}.")
    return found[names.index(python_label(label))]


def text_of(label: Any) -> str:
    """Return a class, or a pair of classes, as text: 1 rather than 1.0."""
    if isinstance(label, tuple):
        return " and ".join(text_of(one) for one in label)
    value = python_label(label)
    return str(int(value)) if isinstance(value, float) and value.is_integer() else str(value)


def rows_of(model: Any, X: Any) -> Any:
    """Return the rows as an array or a CSR matrix of the model's features.

    Raises
    ------
    ValueError
        If the number of features differs, if the names of columns or their order differ from the fit, or if
        entries are missing or no numbers; the message names the column.
    """
    is_frame = hasattr(X, "columns")
    if not (is_frame and hasattr(model, "feature_names_in_")):
        model, X = _without_feature_names(model), np.asarray(X) if is_frame else X
    return validate_rows(model, X, accept_sparse="csr", reset=False)


def feature_names_of(model: Any, X: Any, names: Sequence[str] | None = None, first: int = 0) -> list[str]:
    """Return names of the columns of X: `names`, or the names at the fit, or numbers from `first` on.

    Raises
    ------
    ValueError
        If there are not as many names as columns.
    """
    count = int(np.shape(X)[1])
    numbers = [f"feature {j + first}" for j in range(count)]
    found = getattr(model, "feature_names_in_", numbers) if names is None else names
    if len(found) != count:
        raise ValueError(f"there must be a name for each of {count} features; got {len(found)}.")
    return [str(name) for name in found]


def scheme_of(model: Any) -> Parts:
    """Return the binary problems into which a classifier divides its classes."""
    return parts_of(getattr(model, "multi_class_", "ovr"), len(model.classes_))


def _sides(label: Any, classes: np.ndarray) -> tuple[str, str]:
    """Return the names of the positive and of the negative side."""
    if label is None:
        negative, positive = classes
    elif isinstance(label, tuple):
        positive, negative = label
    else:
        return f"class {text_of(label)}", "the rest"
    return f"class {text_of(positive)}", f"class {text_of(negative)}"


def _without_feature_names(model: Any) -> Any:
    """Return a copy of a fitted model that takes arrays without a warning about names."""
    check_is_fitted(model)
    model = copy(model)
    if hasattr(model, "feature_names_in_"):
        del model.feature_names_in_
    return model
