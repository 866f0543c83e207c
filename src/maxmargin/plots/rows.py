"""Rows and labels that a picture is given, as arrays that fit the model."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils.validation import check_consistent_length, column_or_1d

from ..estimators.decisions import Decision, rows_of


def checked_rows(
    model: Any, which: Decision, X: Any, y: Any, sample_weight: Any = None
) -> tuple[Any, np.ndarray]:
    """Rows and their true labels.

    Raises
    ------
    ValueError
        If the features are not those of the model, if there are not as many labels or weights as rows, if the
        model does not know a label, or if no row takes part.
    """
    X, y = rows_of(model, X), column_or_1d(y)
    check_consistent_length(X, y, sample_weight)
    classes = np.asarray(which.model.classes_)
    unknown = np.setdiff1d(y, classes)
    if unknown.size:
        raise ValueError(
            f"The classifier knows no class {unknown.tolist()[0]!r}: y holds true labels, of {classes.tolist()}."
        )
    if not which.signs(y)[1].any():
        raise ValueError(f"there is nothing to draw: no row is of {which.positive} or of {which.negative}.")
    return X, y
