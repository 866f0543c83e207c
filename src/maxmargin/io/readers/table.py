"""The table that a reader returns, and the choice of its columns."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import numpy as np

from ..fault import Fault

LABEL_NAMES = ("label", "target", "class", "y")


class DataError(ValueError):
    """A data file that cannot be used; the message names the file, the place, the fault and the remedy."""


@dataclass(frozen=True)
class Expected:
    """Requirements on a file; see the parameters of `maxmargin.io.readers.read`."""

    n_features: int | None = None
    label: str | None = None
    features: list[str] | None = None
    first_index: int | None = None
    use: tuple[str, ...] = ()
    drop: tuple[str, ...] = ()

    @property
    def for_model(self) -> bool:
        """Whether the columns have to fit a model; labels are not needed then."""
        return self.n_features is not None or self.features is not None


@dataclass(frozen=True)
class Table:
    """A data set.

    Attributes
    ----------
    X : ndarray or CSR matrix of shape (n_samples, n_features)
        float32 or float64, finite.
    y : ndarray of shape (n_samples,) or None
        int64 where all labels are whole numbers, else float64 or strings.
    feature_names : list of str or None
    label_name : str or None
        The column that the labels were in.
    first_index : {0, 1} or None
        The first index of svmlight text.
    rounded : str or None
        A whole number of the file, or one of a wider type, that float64 does not hold: X is not the data of the file.
    """

    X: Any
    y: np.ndarray | None
    feature_names: list[str] | None = None
    label_name: str | None = None
    first_index: int | None = None
    rounded: str | None = None


def whole(labels: np.ndarray) -> np.ndarray:
    """Return labels such as -1.0 and 3.0 as integers, which print as they were written, and others unchanged."""
    if labels.dtype.kind == "f" and np.all(labels == np.trunc(labels)) and np.all(np.abs(labels) < 2.0**53):
        return labels.astype(np.int64)
    return labels


def labels_of(texts: list[str]) -> np.ndarray:
    """Return labels as numbers where all of them are numbers, else as strings."""
    if any("_" in text for text in texts):  # 1_000 is a number in Python only
        return np.array(texts)
    try:
        return np.array([int(text) for text in texts], dtype=np.int64)
    except (ValueError, OverflowError):
        pass  # no whole numbers, or none of 64 bits
    try:
        numbers = np.array([float(text) for text in texts])
    except ValueError:
        return np.array(texts)
    exact = {Decimal(text.strip()) for text in set(texts)}
    # classes that differ only beyond the digits of a float64 stay apart
    return np.array(texts) if len(exact) > np.unique(numbers).size else whole(numbers)


def columns(
    names: list[str], expected: Expected, row_names: Collection[str] = ()
) -> tuple[list[int], int | None]:
    """Return the places of the features and of the label (None if there is none).

    Parameters
    ----------
    names : list of str
    expected : Expected
    row_names : collection of str, default=()
        Columns that are no features unless `expected` names them.

    Raises
    ------
    Fault
        If a column is missing, asked for in two ways, or their number is not the model's.
    """
    used = _named("--columns", expected.use, names)
    dropped = _named("--drop", expected.drop, names)
    for k in dropped:
        if k in used or names[k] == expected.label:
            other = "--columns" if k in used else "--label"
            raise Fault(f"both {other} and --drop name the column {names[k]!r}; name it in one of them.")
    asked = {names[k] for k in used} | {expected.label}
    unasked = {k for k, name in enumerate(names) if name in row_names and name not in asked}
    left = [k for k in range(len(names)) if k not in dropped and k not in unasked]
    lower = {names[k].lower(): k for k in reversed(left) if k not in used}
    usual = next((lower[name] for name in LABEL_NAMES if name in lower), None)
    if expected.features is not None:
        return _columns_of_model(names, expected, used or left, usual)
    label = _label_place(names, expected, used, left, usual)
    features = used or [k for k in left if k != label]
    if label is None and not expected.for_model:
        raise Fault("every column is a feature by --columns; name the label column with --label.")
    if expected.n_features is not None and len(features) != expected.n_features:
        beside = "" if label is None else f" (and the label column {names[label]!r})"
        raise Fault(f"the model has {expected.n_features} features, the file holds {len(features)}{beside}.")
    if not features:
        raise Fault(f"the only column is the label {names[label or 0]!r}; a classifier needs features.")
    return features, label


def _label_place(
    names: list[str], expected: Expected, used: list[int], left: list[int], usual: int | None
) -> int | None:
    """Return the place of the label: named, else one with a usual name, else the last; None in a table without."""
    if expected.label is not None and expected.label in names:
        label = names.index(expected.label)
        if label in used:
            raise Fault(f"the column {expected.label!r} cannot be both the label and a feature.")
        return label
    if expected.label is not None and not expected.for_model:
        raise Fault(f"there is no column {expected.label!r}; the columns are {listed(names)}.")
    if expected.n_features is not None and len(used or left) == expected.n_features:
        return usual if used else None  # all columns are features of the model
    others = [k for k in left if k not in used]
    return usual if usual is not None or not others else others[-1]


def _columns_of_model(
    names: list[str], expected: Expected, left: list[int], usual: int | None
) -> tuple[list[int], int | None]:
    """Return the places for a model that knows its columns by name; `left` are the columns that options leave."""
    features: Any = expected.features
    places = {name: k for k, name in enumerate(names)}
    missing = [name for name in features if name not in places]
    if missing:
        more = f" (and {len(missing) - 1} more)" if len(missing) > 1 else ""
        raise Fault(
            f"the model needs the column {missing[0]!r}{more}, which the file does not hold; its columns are "
            f"{listed(names)}."
        )
    chosen, allowed = [places[name] for name in features], set(left)
    for k in chosen:
        if k not in allowed:
            option = "--columns" if expected.use else "--drop"
            raise Fault(f"the model needs the column {names[k]!r}, which {option} leaves out.")
    label = names.index(expected.label) if expected.label in names else usual
    return chosen, None if label in chosen else label


def _named(option: str, words: tuple[str, ...], names: list[str]) -> list[int]:
    """Return the places of columns that an option names, with commas between or one at a time, in this order.

    Raises
    ------
    Fault
        If there is no such column, or one is named twice.
    """
    places = {name: k for k, name in enumerate(names)}
    asked: list[str] = []
    for word in words:
        # a name may have a comma in it
        asked += [word] if word in places else [part.strip() for part in word.split(",") if part.strip()]
    for name in asked:
        if name not in places:
            raise Fault(f"{option} names {name!r}, and the columns are {listed(names)}.")
    if (twice := repeated(asked)) is not None:
        raise Fault(f"{option} names the column {twice!r} twice.")
    return [places[name] for name in asked]


def repeated(names: list[str]) -> str | None:
    """Return the first name that occurs more than once."""
    return next((name for name, count in Counter(names).items() if count > 1), None)


def listed(names: list[str]) -> str:
    """Return the first eight names as text."""
    return ", ".join(map(repr, names[:8])) + (", ..." if len(names) > 8 else "")


def check_finite(X: np.ndarray, names: list[str] | None = None) -> None:
    """Raise Fault at the first entry of a dense array that is NaN or infinite."""
    with np.errstate(over="ignore", invalid="ignore"):
        if np.isfinite(X.sum(dtype=np.float64)):  # one pass, no copy; a sum that overflows is examined below
            return
    bad = np.argwhere(~np.isfinite(X))
    if len(bad):
        i, j = bad[0]
        column = repr(names[j]) if names else j
        remedy = "; fill such entries in" if np.isnan(X[i, j]) else ", no finite number; correct such entries"
        raise Fault(f"row {i} (counted from 0), column {column} is {X[i, j]}{remedy} or leave the row out.")


def check_labels(y: np.ndarray) -> None:
    """Raise Fault at the first label that is NaN or infinite."""
    if y.dtype.kind == "f" and not np.isfinite(y).all():
        i = int(np.flatnonzero(~np.isfinite(y))[0])
        raise Fault(f"the label of row {i} (counted from 0) is {y[i]}; leave the row out.")
