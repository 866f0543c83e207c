"""Refusal of integers that float64 does not represent: a proof is about the rounded rows, not about the given ones.

Two integers beyond 2^53 may round to the same float64 number, and different rows would then be proved equal.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import scipy.sparse as sp

from .sparse_columns import check_storage

ENCODE = "encode text and dates, with OneHotEncoder in a pipeline for instance, or leave the column out"
COMPLEX = "Complex data not supported: give real and imaginary parts of X columns of their own."
WHOLE = 2**53  # float64 represents every integer up to this
NOT_EXACT = (  # the end of the refusal of a number
    "which no float64 is, and proofs are about float64 numbers: different rows could be taken for equal ones. Subtract "
    "a constant from its column, or divide, so that float64 holds every number; or, if rounding is meant, convert X to "
    "float64 yourself."
)


def refuse_rounded(X: Any) -> None:
    """Raise ValueError if X holds an integer that conversion to float64 changes."""
    found = rounded_number(X)
    if found is not None:
        raise ValueError(f"{found}, {NOT_EXACT}")


def not_numeric(place: str, kind: Any) -> str:
    """Return the error message for a column whose type is no number."""
    return f"{place} of X holds {kind}, not numbers: {ENCODE}."


def rounded_number(X: Any) -> str | None:
    """Return where X holds an integer that conversion to float64 changes, and the number; None if there is none.

    Raises ValueError for complex numbers, dates and times.
    """
    check_storage(X)
    # of Arrow tables, of other frames
    names = getattr(X, "column_names", getattr(X, "columns", None))
    for k, values in enumerate(_parts(X)):
        if values.dtype.kind in "mMc":
            place = f"column {k if names is None else names[k]!r}"
            raise ValueError(COMPLEX if values.dtype.kind == "c" else not_numeric(place, values.dtype))
        changed = first_rounded(values)
        if changed is not None:
            return f"{'X' if names is None else f'column {names[k]!r} of X'} holds {changed}"
    return None


def first_rounded(values: np.ndarray) -> Any | None:
    """Return the first integer of an array of integers that conversion to float64 changes; None if there is none."""
    if values.dtype.kind not in "iu" or values.dtype.itemsize <= 4:
        return None
    large = values[(values > WHOLE) | (values < -WHOLE)]
    return next((v for v in large.ravel().tolist() if int(float(v)) != v), None)


def _parts(X: Any) -> Iterator[np.ndarray]:
    """Yield the numbers of X before their conversion to float64; the columns of a frame one by one."""
    if sp.issparse(X):
        yield X.tocsr().data
    elif hasattr(X, "iloc"):
        yield from (np.asarray(X.iloc[:, place]) for place in range(X.shape[1]))
    elif hasattr(X, "columns") and len(getattr(X, "shape", ())) == 2:  # of Polars, of Arrow
        yield from map(np.asarray, X.get_columns() if hasattr(X, "get_columns") else X.columns)
    else:
        try:
            yield np.asarray(X)
        except (TypeError, ValueError):
            return
