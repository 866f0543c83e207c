"""The columns of tables: those that float64 does not hold are refused, with a remedy for each."""

from __future__ import annotations

from collections.abc import Iterator
from math import isinf
from typing import Any

import numpy as np
import scipy.sparse as sp

from .labels import is_missing, missing_labels
from .sparse_columns import check_storage

WHOLE = 2**53  # float64 represents every integer up to this
ENCODE = "encode text and dates, with OneHotEncoder in a pipeline for instance, or leave the column out"


def check_columns(X: Any) -> None:
    """Refuse complex numbers, dates and times, and integers that float64 may round.

    Two integers beyond 2^53 may be the same float64 number: different rows would be taken for equal ones.
    """
    check_storage(X)
    if getattr(getattr(X, "dtype", None), "kind", "O") in "fb":
        return
    table = X.tocoo() if sp.issparse(X) else None
    for place, values in _columns(X) if table is None else [("X", table.data)]:
        kind = values.dtype.kind
        if kind in "mM":
            raise ValueError(f"{place} of X holds {values.dtype}, not numbers: {ENCODE}.")
        if kind == "c":
            raise ValueError(
                "Complex data not supported: give real and imaginary parts of X columns of their own."
            )
        large = np.flatnonzero((values > WHOLE) | (values < -WHOLE)) if kind in "iu" else ()
        for k in large[:1]:
            row = int(k if table is None else table.row[k])
            place = place if table is None else f"column {table.col[k]}"
            raise ValueError(
                f"{place} of X holds {values[k]} in row {row} (counted from 0), and float64 rounds integers beyond "
                "2^53, so that different rows may become equal: leave the column out if it identifies rows, subtract "
                "a constant or divide, or, if rounding is meant, convert X to float64."
            )


def column_message(X: Any, y: Any = None) -> str | None:
    """Return a message about the first entry of X that is missing, infinite or no number, or about missing labels."""
    found = next((fault for column in _columns(X) if (fault := _fault(*column))), None)
    if found is None and y is not None:
        missing = [is_missing(label) for label in np.asarray(y, dtype=object).ravel()]
        return missing_labels(sum(missing), len(missing)) if any(missing) else None
    return found


def check_finite(X: Any, given: Any, error: type[ValueError] = ValueError) -> None:
    """Raise an error if rows (an array or CSR matrix of numbers) hold NaN or infinity; `given` may name columns."""
    if first_not_finite(X) is not None:
        raise error(column_message(given if hasattr(given, "columns") else X))


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


def _columns(X: Any) -> Iterator[tuple[str, np.ndarray]]:
    """Yield the place and the entries of the columns of a table; of a sparse one, of the columns with faults only."""
    if hasattr(X, "columns"):  # of Arrow tables, `columns` are the columns and not their names
        for j, name in enumerate(getattr(X, "column_names", X.columns)):
            yield f"column {name!r}", np.asarray(X.iloc[:, j] if hasattr(X, "iloc") else X[name])
        return
    if sp.issparse(X):
        table = sp.csc_array(X)
        bad = ~np.isfinite(table.data) if table.dtype.kind == "f" else np.ones(table.nnz, bool)
        places = np.unique(np.searchsorted(table.indptr, np.flatnonzero(bad), side="right") - 1)
        for j in places.tolist():  # only these become dense, one at a time
            yield f"column {j}", table[:, [j]].toarray().ravel()
        return
    table = np.asarray(X)
    table = table if table.dtype.kind in "biufcmM" else np.asarray(X, dtype=object)
    for j in range(table.shape[1] if table.ndim == 2 else 0):
        yield f"column {j}", table[:, j]


def _fault(place: str, values: np.ndarray) -> str | None:
    """Describe the first text, missing or infinite entry of a column; None where it has none."""
    if values.dtype.kind in "biu" or (values.dtype.kind == "f" and np.isfinite(values).all()):
        return None
    for i, value in enumerate(values.tolist()):
        where = f"(row {i}; rows and columns are counted from 0)"
        if is_missing(value):
            remedy = (
                "fill such entries in, with SimpleImputer in a pipeline for instance, or leave the rows out"
            )
            return f"Input X contains NaN: {place} is missing; {remedy} {where}."
        try:
            infinite = isinf(float(value))
        except TypeError:  # of objects of any kind
            return None
        except (ValueError, OverflowError):
            return f"{place} of X holds {str(value)[:40]!r}, not numbers: {ENCODE} {where}."
        if infinite:
            remedy = "give finite numbers, or leave the rows out"
            return f"Input X contains infinity: {place} is infinite; {remedy} {where}."
    return None
