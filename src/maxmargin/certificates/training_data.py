"""Validation of the data that a certificate is checked against: rows, labels and weights."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..numerics.columns import rows_and_labels, weight_array
from ..problem.multiclass import python_label
from .certificate import CertificateError, require


def training_data(model: Any, X: Any, y: Any, sample_weight: Any) -> tuple[Any, np.ndarray, np.ndarray]:
    """Return rows, labels, and the weight of every row times that of its class, validated for a model's certificate.

    Parameters
    ----------
    model : fitted model
    X : array-like or sparse matrix of shape (n, d)
    y : array-like of shape (n,)
    sample_weight : array-like of shape (n,), number or None
        None for weights of one.

    Returns
    -------
    X : ndarray or CSR matrix of shape (n, d)
        Of float32 or float64 numbers, in canonical format where sparse.
    labels : ndarray of shape (n,)
    weights : ndarray of shape (n,)

    Raises
    ------
    CertificateError
        If the model has no certificate, or the data do not fit it; the message names a remedy.
    """
    if not hasattr(model, "certificate_"):
        raise CertificateError(nothing_to_verify(model))
    X, labels = rows_and_labels(X, y, CertificateError)
    try:
        weights = weight_array(sample_weight, labels.size)
    except ValueError as error:
        raise CertificateError(str(error)) from None
    # rows of weight 0 take no part, and may have any label
    for i in np.flatnonzero(~np.isin(labels, model.classes_) & (weights > 0.0)).tolist():
        label = f"label {i} (counted from 0) is {python_label(labels[i])!r}"
        raise CertificateError(f"{label}, no class of the model: give y of the fit.")
    factors = np.ones(labels.shape[0])
    for name, factor in zip(model.classes_, model.class_weight_, strict=True):
        factors[labels == name] = factor
    return X, labels, weights * factors


def nothing_to_verify(model: Any) -> str:
    """Return the reason why the model has no certificate, and the object that has one, as an error message."""
    if hasattr(model, "uncertified_"):
        return str(model.uncertified_)
    fitted = hasattr(model, "steps") or any(name.endswith("_") for name in getattr(model, "__dict__", {}))
    if hasattr(model, "fit") and not fitted:
        return "this model is not fitted, so that there is nothing to verify: call fit first."
    return (
        f"{type(model).__name__} has no certificate: fit a MaxMarginClassifier or a KernelMaxMarginClassifier, which "
        "have; of a pipeline give the last step, and the rows that it was fitted to."
    )


def data_of(X: Any, y: Any, classes: tuple[Any, Any], features: int) -> tuple[Any, np.ndarray]:
    """Return the rows in float64, and a sign for each: 1.0 for the label classes[1], -1.0 for classes[0].

    Raises
    ------
    CertificateError
        If the number of features, the number of labels or the classes differ from those of the verdict, or if float64
        does not represent the numbers of X exactly.
    """
    X, labels = rows_and_labels(X, y, CertificateError)
    require(
        X.shape[1] == features,
        f"the verdict is about {features} features, not the shape {X.shape}: give its X.",
    )
    positive, negative = labels == classes[1], labels == classes[0]
    no_others = (positive | negative).all()
    require(no_others, f"y holds classes other than {classes[0]!r} and {classes[1]!r}: give its X and y.")
    return X.astype(float, copy=False), np.where(positive, 1.0, -1.0)
