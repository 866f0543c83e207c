"""Rows of every kind as an array or CSR matrix; what is wrong with them is told with the column and the remedy."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.utils.validation import validate_data

from ..numerics.representable import COMPLEX
from .labels import missing_labels

_ENCODE = (
    "turn text and dates into numbers, with OneHotEncoder or OrdinalEncoder in a pipeline for instance, or leave the "
    "column out"
)
_FLOATS = (np.dtype(np.float64), np.dtype(np.float32))
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
    _refuse_unready(X)
    try:
        return validate_data(estimator, X, *map(plain_labels, y), dtype=[np.float64, np.float32], **how)
    except (ValueError, TypeError) as error:
        said = str(error)
        if said.startswith("The feature names should match"):
            raise ValueError(
                f"{said}Columns in the order of the fit: X[list(model.feature_names_in_)]."
            ) from None
        if "not 'complex'" in said:
            raise ValueError(COMPLEX) from None
        words = next((one for one in _faults(X, said) if one is not None), None)
        if words is None and "NaN" in said and y:
            missing = [_absent(value) for value in np.asarray(y[0], dtype=object).ravel()]
            words = missing_labels(sum(missing), len(missing)) if any(missing) else None
        if words is None:
            raise
        raise ValueError(words) from None


def are_ready(X: Any, y: Any) -> bool:
    """Is there nothing to be done but to look at the entries of X? `checked_rows` takes as long as a small fit."""
    if type(X) is not np.ndarray or type(y) is not np.ndarray or X.ndim != 2 or y.shape != X.shape[:1]:
        return False
    if not (X.dtype in _FLOATS and X.size and X.flags.c_contiguous and y.dtype.kind in "biufU"):
        return False
    return y.dtype.kind != "f" or bool(np.isfinite(y).all())


def count_columns(estimator: Any, X: np.ndarray) -> None:
    """`n_features_in_` of columns without names."""
    estimator.n_features_in_ = X.shape[1]
    if hasattr(estimator, "feature_names_in_"):
        del estimator.feature_names_in_


def plain_labels(y: Any) -> Any:
    """Whole numbers and booleans of pandas' own types as those of NumPy: classes keep their kind.

    Parameters
    ----------
    y : array-like of shape (n_samples,)

    Returns
    -------
    y : array-like of shape (n_samples,)
        The same where it is anything else, or labels are missing.
    """
    kind = getattr(y, "dtype", None)
    if isinstance(kind, np.dtype) or not hasattr(y, "isna") or getattr(kind, "kind", "O") not in "biu":
        return y
    return y if y.isna().any() else np.array(y.tolist())


def _refuse_unready(X: Any) -> None:
    """Raise ValueError for frames that would be read by an order of their own, or as something else than they say."""
    if hasattr(X, "collect") and hasattr(X, "collect_schema"):
        raise ValueError("X is a query that has not been run, and no table yet: call collect() first.")
    for name, kind in getattr(X, "schema", {}).items() if hasattr(X, "get_columns") else ():
        if kind.is_temporal():
            raise ValueError(_unnumbered(f"column {name!r}", kind))


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
        return _unnumbered(place, kind)
    missing = np.isnan(values) if values.dtype.kind == "f" else np.array([_absent(value) for value in values])
    if values.dtype.kind != "f":
        for value in values[~missing]:
            if not _number(value):
                return f"{place} of X holds {kind}, {str(value)[:40]!r} for instance, not numbers: {_ENCODE}."
    return _missing(place, int(missing.sum()), missing.size) if missing.any() else None


def _unnumbered(place: str, kind: Any) -> str:
    return f"{place} of X holds {kind}, not numbers: {_ENCODE}."


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
