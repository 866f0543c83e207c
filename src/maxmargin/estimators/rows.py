"""Rows of every kind as an array or CSR matrix; what is wrong with them is told with the column and the remedy."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.utils.validation import validate_data

_ENCODE = (
    "turn text and dates into numbers, with OneHotEncoder or OrdinalEncoder in a pipeline for instance, or leave the "
    "column out"
)
_FILL = "fill such entries in, with SimpleImputer in a pipeline for instance, or leave the rows out"


def checked_rows(estimator: Any, X: Any, *y: Any, **how: Any) -> Any:
    """`validate_data` of scikit-learn for float32 and float64 numbers; what a pipeline could mend is told in full.

    Parameters
    ----------
    estimator : estimator
        Whose `n_features_in_` and `feature_names_in_` are set, or looked at with ``reset=False``.
    X : array-like, data frame or sparse matrix of shape (n_samples, n_features)
    *y : array-like of shape (n_samples,)
        Labels, at most one set of them.
    **how
        More for `validate_data`.

    Returns
    -------
    X, or X and y

    Raises
    ------
    ValueError
        If X or y cannot be used; of text and missing entries, the message names the column.
    """
    try:
        return validate_data(estimator, X, *y, dtype=[np.float64, np.float32], **how)
    except (ValueError, TypeError) as error:
        words = next((one for one in _faults(X, str(error)) if one is not None), None)
        if words is None:
            raise
        raise ValueError(words) from None


def _faults(X: Any, said: str) -> Iterator[str | None]:
    """What each column has that no classifier here takes; None where there is nothing."""
    if sp.issparse(X):
        entries = X.tocoo()
        missing = (
            np.isnan(entries.data) if entries.data.dtype.kind == "f" else np.zeros(entries.data.size, bool)
        )
        if missing.any():
            column = entries.coords[1][missing].min()
            count = np.unique(entries.coords[0][missing & (entries.coords[1] == column)]).size
            yield _missing(f"column {column}", count, X.shape[0])
        return
    if hasattr(X, "columns") and hasattr(X, "shape") and len(X.shape) == 2:
        for place, name in enumerate(X.columns):
            column = X.iloc[:, place] if hasattr(X, "iloc") else X[name]
            yield _fault(f"column {name!r}", column, str(column.dtype))
        return
    if "convert string" in said or "contains NaN" in said:
        table = np.asarray(X, dtype=object)
        for j in range(table.shape[1] if table.ndim == 2 else 0):
            yield _fault(f"column {j}", table[:, j], "text")


def _fault(place: str, column: Any, kind: str) -> str | None:
    values = np.asarray(column)
    if values.dtype.kind in "iub":
        return None
    if values.dtype.kind not in "fOUST":
        return f"{place} of X holds {kind}, not numbers: {_ENCODE}."
    missing = np.isnan(values) if values.dtype.kind == "f" else np.array([_absent(value) for value in values])
    if values.dtype.kind != "f":
        for value in values[~missing]:
            if not _number(value):
                return f"{place} of X holds {kind}, {str(value)[:40]!r} for instance, not numbers: {_ENCODE}."
    return _missing(place, int(missing.sum()), missing.size) if missing.any() else None


def _missing(place: str, count: int, rows: int) -> str:
    return f"Input X contains NaN: {place} is missing in {count} of {rows} rows; {_FILL}."


def _absent(value: Any) -> bool:
    """None, NaN, and the missing values of data frames, which are not equal to themselves, or neither nor."""
    if value is None:
        return True
    try:
        return bool(value != value)
    except (TypeError, ValueError):  # pandas.NA has no truth
        return type(value).__name__ == "NAType"


def _number(value: Any) -> bool:
    try:
        float(value)
    except (TypeError, ValueError):
        return False
    return True
