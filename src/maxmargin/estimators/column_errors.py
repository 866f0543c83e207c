"""Error messages about X and y that name the column and the remedy."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import scipy.sparse as sp

from ..numerics.representable import COMPLEX

ENCODE = (
    "turn text and dates into numbers, with OneHotEncoder or OrdinalEncoder in a pipeline for instance, or leave the "
    "column out"
)
IMPUTE = "fill such entries in, with SimpleImputer in a pipeline for instance, or leave the rows out"


def refuse_queries_and_dates(X: Any) -> None:
    """Refuse queries of polars, and dates and times in its frames, which would be read as numbers."""
    if hasattr(X, "collect"):
        raise ValueError("X is a query that has not been run, and no table yet: call collect() first.")
    for name, kind in X.schema.items():
        if kind.is_temporal():
            raise ValueError(_not_numeric(f"column {name!r}", kind))


def column_message(error: str, X: Any, y: Any) -> str | None:
    """Return a message that names the column and the remedy; None where scikit-learn's message is sufficient.

    Parameters
    ----------
    error : str
        The message of scikit-learn or SciPy.
    X : array-like, data frame or sparse matrix
    y : array-like or None
    """
    if error.startswith("The feature names should match"):
        return f"{error}Columns in the order of the fit: X[list(model.feature_names_in_)]."
    if "not 'complex'" in error:
        return COMPLEX
    if error.startswith(("index", "indices", "indptr", "data, indices", "Last value of index")):
        return f"X is a damaged sparse matrix: {error}. Build it again from its entries, by scipy.sparse.coo_array."
    if sp.issparse(X):
        return _missing_in_sparse(X)
    if hasattr(X, "columns") or "convert string" in error or "contains NaN" in error:
        for place, column, kind in _columns(X):
            fault = _fault(place, column, kind)
            if fault is not None:
                return fault
    if "NaN" in error and y is not None:
        missing = [_is_missing(label) for label in np.asarray(y, dtype=object).ravel()]
        if any(missing):
            return missing_labels(sum(missing), len(missing))
    return None


def missing_labels(missing: int, rows: int) -> str:
    """Return the error message for rows without a label."""
    return f"Input y contains NaN: {missing} of {rows} rows have no label; leave these rows out."


def _columns(X: Any) -> Iterator[tuple[str, Any, str]]:
    """Yield the place, the entries and the type of every column of a table; nothing of other shapes."""
    if hasattr(X, "columns"):
        for j, name in enumerate(X.columns):
            column = X.iloc[:, j] if hasattr(X, "iloc") else X[name]
            yield f"column {name!r}", column, str(column.dtype)
        return
    table = np.asarray(X, dtype=object)
    for j in range(table.shape[1] if table.ndim == 2 else 0):
        yield f"column {j}", table[:, j], "text"


def _fault(place: str, column: Any, kind: str) -> str | None:
    """Describe the text or the missing entries of one column; None where it has neither."""
    values = np.asarray(column)
    if values.dtype.kind not in "iubfOUST":
        return _not_numeric(place, kind)
    missing = np.array([_is_missing(value) for value in values.tolist()], dtype=bool)
    for value in values[~missing] if values.dtype.kind in "OUST" else ():
        try:
            float(value)
        except (TypeError, ValueError):
            return f"{place} of X holds {kind}, {str(value)[:40]!r} for instance, not numbers: {ENCODE}."
    return _missing_entries(place, int(missing.sum()), missing.size) if missing.any() else None


def _missing_in_sparse(X: Any) -> str | None:
    """Describe the first column with missing entries of a sparse matrix; None if no entry is missing."""
    entries = sp.coo_array(sp.csc_array(X))
    columns = entries.coords[1][np.isnan(entries.data)]
    if not columns.size:
        return None
    first = columns.min()
    return _missing_entries(f"column {first}", int((columns == first).sum()), X.shape[0])


def _not_numeric(place: str, kind: Any) -> str:
    return f"{place} of X holds {kind}, not numbers: {ENCODE}."


def _missing_entries(place: str, count: int, rows: int) -> str:
    return f"Input X contains NaN: {place} is missing in {count} of {rows} rows; {IMPUTE}."


def _is_missing(value: Any) -> bool:
    """Return whether a value is None, NaN, or the missing value of a data frame library."""
    if value is None:
        return True
    try:
        return bool(value != value)
    except (TypeError, ValueError):  # pandas.NA has no truth value
        return type(value).__name__ == "NAType"
