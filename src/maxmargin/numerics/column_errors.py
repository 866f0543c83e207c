"""Error messages about X and y that name the column and the remedy."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from math import isinf
from typing import Any

import numpy as np
import scipy.sparse as sp

from .labels import is_missing, missing_labels
from .representable import COMPLEX, ENCODE, not_numeric, refuse_dates

IMPUTE = "fill such entries in, with SimpleImputer in a pipeline for instance, or leave the rows out"
FIRST = "(first in row {}; rows and columns are counted from 0)"
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
    if isinstance(X, list | tuple | np.ndarray):
        try:
            values = np.asarray(X, dtype=object)
        except ValueError:  # rows of unequal length, which scikit-learn refuses
            return
        refuse_dates(values)


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
    counts = Counter(column_names(X))
    if not counts and hasattr(X, "columns"):
        return "X has no column: give at least one feature."
    twice = next((name for name, count in counts.items() if count > 1), None)
    if twice is not None and not re.search(SAYS_WHICH, error):
        return f"two columns of X have the name {twice!r}: rename one, or leave it out."
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


def _columns(X: Any) -> Iterator[tuple[str, Any, str]]:
    """Yield the place, the entries and the type of every column of a table; nothing of other shapes."""
    if hasattr(X, "columns"):
        for j, name in enumerate(column_names(X)):
            column = X.iloc[:, j] if hasattr(X, "iloc") else X[name] if hasattr(X, "dtypes") else X.column(j)
            yield f"column {name!r}", column, str(getattr(column, "dtype", None) or column.type)
        return
    table: Any = sp.csc_array(X) if sp.issparse(X) else np.asarray(X)
    if sp.issparse(X):  # only the first column with such an entry becomes dense
        bad = np.flatnonzero(~np.isfinite(table.data))[:1]
        j = int(np.searchsorted(table.indptr, bad, side="right").sum()) - 1
        yield f"column {j}", table[:, [j]].toarray(), "numbers"
        return
    table = table if table.dtype.kind == "f" else np.asarray(X, dtype=object)
    for j in range(table.shape[1] if table.ndim == 2 else 0):
        yield f"column {j}", table[:, j], "text"


def _fault(place: str, column: Any, kind: str) -> str | None:
    """Describe the text, or the missing and infinite entries of one column; None where it has neither."""
    values = np.asarray(column).ravel()
    if values.dtype.kind not in "iubfOUST":
        return not_numeric(place, kind)
    missing = np.array([is_missing(value) for value in values.tolist()], dtype=bool)
    infinite = np.zeros(missing.size, dtype=bool)
    for i in np.flatnonzero(~missing).tolist():
        try:
            infinite[i] = isinf(float(values[i]))
        except OverflowError:
            return f"{place} of X holds {str(values[i])[:40]}, beyond float64: divide this column {FIRST.format(i)}."
        except (TypeError, ValueError):
            shown = f"{kind}, {str(values[i])[:40]!r} for instance"
            return f"{place} of X holds {shown}, not numbers: {ENCODE} {FIRST.format(i)}."
    for what, word, bad, remedy in (
        ("NaN", "missing", missing, IMPUTE),
        ("infinity", "infinite", infinite, FINITE),
    ):
        if bad.any():
            count = f"{bad.sum()} of {bad.size} rows"
            return f"Input X contains {what}: {place} is {word} in {count}; {remedy} {FIRST.format(bad.argmax())}."
    return None
