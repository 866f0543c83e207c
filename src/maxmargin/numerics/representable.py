"""Refusal of numbers that float64 does not represent: a proof is about the rounded rows, not about the given ones.

Two integers beyond 2^53 may round to the same float64 number, and different rows would then be proved equal.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import date, timedelta
from math import inf
from numbers import Number
from typing import Any

import numpy as np
import scipy.sparse as sp

from .sparse_columns import check_storage

ENCODE = "encode text and dates, with OneHotEncoder in a pipeline for instance, or leave the column out"
COMPLEX = "Complex data not supported: give real and imaginary parts of X columns of their own."
DATES = np.datetime64, np.timedelta64, date, timedelta  # also datetime, and the times of pandas
WHOLE = 2**53  # float64 represents every integer up to this


NOT_EXACT = (  # the end of the refusal of a number
    "which no float64 is, and proofs are about float64 numbers: different rows could be taken for equal ones. Subtract "
    "a constant from its column, or divide, so that float64 holds every number; or, if rounding is meant, convert X to "
    "float64 yourself."
)


def refuse_rounded(X: Any) -> None:
    """Raise ValueError if X holds dates or times, or a number that is complex, or changed by conversion to float64.

    Arrays of float64, float32 and small integers take no time. Values that are not numbers are ignored.

    Parameters
    ----------
    X : array-like, data frame or sparse matrix
    """
    found = rounded_number(X)
    if found is not None:
        raise ValueError(f"{found}, {NOT_EXACT}")


def not_numeric(place: str, kind: Any) -> str:
    """Return the error message for a column whose type is no number."""
    return f"{place} of X holds {kind}, not numbers: {ENCODE}."


def refuse_dates(values: np.ndarray) -> None:
    """Raise ValueError for dates and times in an array of objects, which NumPy and scikit-learn read as numbers."""
    for k, value in enumerate(values.flat):
        if isinstance(value, DATES):
            raise ValueError(not_numeric(f"column {k % values.shape[-1]}", type(value).__name__))


def rounded_number(X: Any) -> str | None:
    """Return where X holds a number that conversion to float64 changes, and the number; None if there is none.

    Raises ValueError for complex numbers, dates and times.
    """
    check_storage(X)
    # of Arrow tables, of other frames
    names = getattr(X, "column_names", getattr(X, "columns", None))
    for k, values in enumerate(_parts(X)):
        if values.dtype.kind in "mM":
            raise ValueError(not_numeric(f"column {k if names is None else names[k]!r}", values.dtype))
        if values.dtype.kind == "c" or (
            values.dtype.kind == "O" and any(isinstance(v, complex | np.complexfloating) for v in values.flat)
        ):
            raise ValueError(COMPLEX)
        if values.dtype.kind == "O" and names is None:
            refuse_dates(values)
        changed = first_rounded(values)
        if changed is not None:
            place = "X" if names is None else f"column {names[k]!r} of X"
            return f"{place} holds {changed!s}"
    return None


def first_rounded(values: np.ndarray) -> Any | None:
    """Return the first number that conversion to float64 changes; None if there is none.

    Parameters
    ----------
    values : ndarray of any type
        In text, only integers count: decimal fractions are rounded in any case.
    """
    kind, size = values.dtype.kind, values.dtype.itemsize
    if kind in "mM":
        return first_rounded(values.view(np.int64))
    if kind in "iu" and size > 4:
        large = values[(values > WHOLE) | (values < -WHOLE)]
        return next((v for v in large.ravel().tolist() if int(float(v)) != v), None)
    if kind == "f" and size > 8:
        with np.errstate(over="ignore", invalid="ignore"):
            changed = values[np.isfinite(values) & (values.astype(np.float64) != values)]
        return changed[0] if changed.size else None
    if kind in "OUS":
        return next((v for v in values.flat if _rounded(v)), None)
    return None


def first_rounded_text(texts: Iterable[str]) -> str | None:
    """Return the first integer among these texts that float64 does not represent."""
    return next((text.strip() for text in texts if _rounded(text)), None)


def _rounded(value: Any) -> bool:
    """Return whether this is a number, or the text of an integer, that float64 does not represent."""
    if isinstance(value, bytes):
        value = value.decode("ascii", "replace")
    if isinstance(value, str):
        digits = value.strip()
        if len(digits) < 16 or not digits[digits[0] in "+-" :].isdecimal():
            return False
        value = int(digits) if len(digits) < 400 else inf  # it overflows, and is refused where it is read
    elif isinstance(value, np.integer):
        value = int(value)  # NumPy would round it before it compares
    if not isinstance(value, Number) or value != value:
        return False
    try:
        return float(value) != value  # pyright: ignore[reportArgumentType]
    except OverflowError:
        return True
    except (TypeError, ValueError):  # not a real number: refused by later checks
        return False


def _parts(X: Any) -> Iterator[np.ndarray]:
    """Yield the numbers of X before their conversion to float64."""
    if sp.issparse(X):
        if X.dtype not in (np.float32, np.float64):
            X = X.tocsr(copy=True)
            yield X.data.copy()
            X.sum_duplicates()
            yield X.data
        return
    if isinstance(X, np.ndarray):
        yield X
        return
    if hasattr(X, "columns") and len(getattr(X, "shape", ())) == 2:
        # one column at a time: columns of several types would be converted to a common type
        yield from map(np.asarray, _columns(X))
        return
    try:
        values = np.asarray(X)
        if values.dtype == np.float64 and not hasattr(X, "dtype") and (np.abs(values) >= WHOLE).any():
            values = np.asarray(X, dtype=object)  # large integers may have been rounded beside fractions
    except (TypeError, ValueError):
        return
    yield values


def _columns(frame: Any) -> Any:
    """Return the columns of a frame of pandas, Polars or Arrow."""
    if hasattr(frame, "iloc"):
        return [frame.iloc[:, place] for place in range(frame.shape[1])]
    return frame.get_columns() if hasattr(frame, "get_columns") else frame.columns
