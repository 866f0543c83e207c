"""Error messages about X and y that name the column and the remedy."""

from __future__ import annotations

import re
from collections.abc import Iterator
from math import isinf
from typing import Any

import numpy as np
import scipy.sparse as sp

from .labels import is_missing, missing_labels
from .representable import COMPLEX, ENCODE, not_numeric

IMPUTE = "fill such entries in, with SimpleImputer in a pipeline for instance, or leave the rows out"
FINITE = "give finite numbers, or leave the rows out"
ARROW_TIMES = ("date", "time", "duration")  # how the names of Arrow's types of dates and times begin
SAYS_WHICH = "convert string|contains NaN|X contains inf|too large"  # errors about entries


def refuse_queries_and_dates(X: Any) -> None:
    """Refuse queries of polars, and dates and times in frames and arrays, which would be read as numbers."""
    if hasattr(X, "collect"):
        raise ValueError("X is a query that has not been run, and no table yet: call collect() first.")
    schema: Any = getattr(X, "schema", getattr(X, "dtypes", None))  # of polars, of pandas
    types: Any = schema.items() if hasattr(schema, "items") else [(0, getattr(X, "dtype", None))]
    if hasattr(schema, "types"):  # of Arrow
        types = zip(schema.names, schema.types, strict=True)
    for name, kind in types:
        temporal = kind.is_temporal() if hasattr(kind, "is_temporal") else getattr(kind, "kind", "O") in "mM"
        temporal = temporal or (hasattr(kind, "num_fields") and str(kind).startswith(ARROW_TIMES))
        if temporal:
            raise ValueError(not_numeric(f"column {name!r}", kind))


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
    if "not 'complex'" in error or ("Complex data" in error and np.iscomplexobj(X)):
        return COMPLEX
    if hasattr(X, "columns") or re.search(SAYS_WHICH, error):
        fault = next(filter(None, (_fault(*column) for column in _columns(X))), None)
        if fault is not None:
            return fault
    if re.search("NaN|NA is ambiguous", error) and y is not None:
        missing = [is_missing(label) for label in np.asarray(y, dtype=object).ravel()]
        if any(missing):
            return missing_labels(sum(missing), len(missing))
    return None


def column_names(X: Any) -> Any:
    """Return the names of the columns of a frame, or of an Arrow table, whose attribute `columns` are the columns."""
    return getattr(X, "column_names", getattr(X, "columns", ()))


def check_finite(X: Any, given: Any, error: type[ValueError] = ValueError) -> None:
    """Raise an error if rows (an array or CSR matrix of numbers) hold NaN or infinity; `given` may name columns."""
    with np.errstate(over="ignore", invalid="ignore"):
        if np.isfinite((X.data if sp.issparse(X) else X).sum(dtype=np.float64)):  # one pass, no copy
            return
    if not np.isfinite(X.data if sp.issparse(X) else X).all():
        raise error(column_message("X contains inf", given if hasattr(given, "columns") else X, None))


def first_not_finite(X: Any) -> tuple[int, int, float] | None:
    """Return row, column and value of the first entry that is NaN or infinite; None where there is none.

    Parameters
    ----------
    X : ndarray or CSR matrix of shape (n, d)
        Numbers; of a CSR matrix the first stored entry of the first such row is meant.
    """
    entries = X.data if sp.issparse(X) else X
    with np.errstate(over="ignore", invalid="ignore"):
        # one pass, no copy; a sum that overflows is examined below
        if np.isfinite(entries.sum(dtype=np.float64)):
            return None
    places = np.flatnonzero(~np.isfinite(entries))
    if not places.size:
        return None
    k = int(places[0])
    if not sp.issparse(X):
        row, column = divmod(k, X.shape[1])
        return row, column, float(X[row, column])
    return int(np.searchsorted(X.indptr, k, side="right")) - 1, int(X.indices[k]), float(X.data[k])


def _columns(X: Any) -> Iterator[tuple[str, np.ndarray, str]]:
    """Yield the place, the entries and the type of every column of a table; nothing of other shapes."""
    if hasattr(X, "columns"):
        for j, name in enumerate(column_names(X)):
            column = X.iloc[:, j] if hasattr(X, "iloc") else X[name] if hasattr(X, "dtypes") else X.column(j)
            kind = str(getattr(column, "dtype", None) or column.type)
            yield f"column {name!r}", np.asarray(column).ravel(), kind
        return
    if sp.issparse(X):  # only the first column with such an entry becomes dense
        table = sp.csr_matrix(X)
        for j in table.indices[~np.isfinite(table.data)][:1].tolist():
            yield f"column {j}", table[:, [j]].toarray().ravel(), "numbers"
        return
    table = np.asarray(X)
    table = table if table.dtype.kind == "f" else np.asarray(X, dtype=object)
    for j in range(table.shape[1] if table.ndim == 2 else 0):
        yield f"column {j}", table[:, j], "text"


def _fault(place: str, values: np.ndarray, kind: str) -> str | None:
    """Describe the first text, missing or infinite entry of a column; None where it has none."""
    if values.dtype.kind in "mMcV":
        return not_numeric(place, kind)
    for i, value in enumerate(values.tolist()):
        where = f"(row {i}; rows and columns are counted from 0)"
        if is_missing(value):
            return f"Input X contains NaN: {place} is missing; {IMPUTE} {where}."
        try:
            infinite = isinf(float(value))
        except OverflowError:
            return f"{place} of X holds {str(value)[:40]}, beyond float64: divide this column {where}."
        except (TypeError, ValueError):
            return (
                f"{place} of X holds {kind}, {str(value)[:40]!r} for instance, not numbers: {ENCODE} {where}."
            )
        if infinite:
            return f"Input X contains infinity: {place} is infinite; {FINITE} {where}."
    return None
