"""Labels as arrays, and the rule by which a label names no class; one place for arrays, files and clusters."""

from __future__ import annotations

from math import inf
from typing import Any

import numpy as np

from .sparse_columns import check_storage


def plain_labels(y: Any) -> Any:
    """Convert labels of pandas' own integers and booleans, and of Arrow dictionaries, to what NumPy reads unchanged.

    NumPy would make one type of the integers of a list, and give a row of a chunked dictionary that is missing the last
    label of the dictionary. Labels of other types, and with missing entries, are returned as they are, or as objects.
    """
    if hasattr(y, "isna") and not hasattr(y, "compute"):  # NumPy computes those of Dask
        kind = getattr(y, "dtype", None)
        if isinstance(kind, np.dtype) or getattr(kind, "kind", "O") not in "biu" or y.isna().any():
            return y
        wide = kind.kind == "u" and kind.itemsize == 8  # pyright: ignore[reportOptionalMemberAccess]
        return np.array(y.tolist(), np.uint64 if wide else None)
    if hasattr(getattr(y, "type", None), "index_type"):  # of an Arrow dictionary
        return np.array(y.to_pylist(), dtype=object) if y.null_count else y.cast(y.type.value_type)
    if getattr(getattr(y, "dtype", None), "kind", "O") == "T":  # text of NumPy's StringDType
        return y.astype(object)
    return y


def label_array(y: Any, rows: int | None = None) -> np.ndarray:
    """Return labels as an array of shape (n,), with a DataConversionWarning if they are a column, as in fits.

    Raises
    ------
    ValueError
        Unless y has the shape (n,) or (n, 1), with `rows` labels if that is given, no entry is masked, and each label
        names a class.
    """
    check_storage(y)
    labels = np.asarray(plain_labels(y))
    if labels.ndim == 0:  # None, or a sparse matrix
        raise ValueError(f"y must be an array of one label for each row; got {type(y).__name__}.")
    if labels.ndim != 1:
        from sklearn.utils.validation import column_or_1d  # verification of other labels does without it

        labels = column_or_1d(labels, warn=True)
    if rows is not None and labels.size != rows:
        raise ValueError(f"y must hold one label for each of the {rows} rows; got shape {labels.shape}.")
    check_labels(labels)
    return labels


def check_labels(y: np.ndarray) -> None:
    """Raise ValueError at the first label in memory that names no class."""
    fault = bad_label(y)
    if fault is not None:
        if is_missing(y.ravel()[fault[0]]):
            raise ValueError(missing_labels(sum(map(is_missing, y.ravel().tolist())), y.size))
        raise ValueError(f"Label {fault[0]} (counted from 0) is {fault[1]}.")


def bad_label(y: np.ndarray) -> tuple[int, str] | None:
    """Return the row of the first label that names no class, and what it is with the remedy; None if there is none.

    Such are NaN, infinity, NaT, and what a data frame library has for missing entries.
    """
    kind = y.dtype.kind
    if kind == "f":
        bad = ~np.isfinite(y)
    elif kind == "O":
        bad = np.fromiter((is_missing(v) or v in (inf, -inf) for v in y.ravel().tolist()), bool, y.size)
    else:
        bad = np.isnat(y) if kind in "mM" else np.zeros(0, bool)
    return next(((i, f"{y.ravel()[i]}: leave the row out") for i in np.flatnonzero(bad)[:1].tolist()), None)


def is_missing(value: Any) -> bool:
    """Return whether a value is None, NaN, or the missing value of a data frame library."""
    if value is None:
        return True
    try:
        return bool(value != value)
    except (TypeError, ValueError):  # pandas.NA has no truth value
        return type(value).__name__ == "NAType"


def missing_labels(missing: int, rows: int) -> str:
    """Return the error message for rows without a label."""
    return f"Input y contains NaN: {missing} of {rows} rows have no label; leave these rows out."
