"""What a reader returns, what it may expect, and how it says no."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import numpy as np

LABEL_NAMES = ("label", "target", "class", "y")


class DataError(ValueError):
    """A data file that cannot be used; the message names the file, the place, the fault and the remedy."""


@dataclass(frozen=True)
class Expected:
    """What is known of a file before it is read; see `maxmargin.io.readers.read`."""

    n_features: int | None = None
    label: str | None = None
    features: list[str] | None = None
    first_index: int | None = None
    use: tuple[str, ...] = ()
    drop: tuple[str, ...] = ()

    @property
    def for_model(self) -> bool:
        """Is there a model that the columns have to fit? Then labels are not needed."""
        return self.n_features is not None or self.features is not None


@dataclass(frozen=True)
class Table:
    """A data set as it was read.

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
        From what the indices of svmlight text count.
    rounded : str or None
        A whole number of the file, or one of a wider type, that float64 does not hold: no proof may rest on X then.
    """

    X: Any
    y: np.ndarray | None
    feature_names: list[str] | None = None
    label_name: str | None = None
    first_index: int | None = None
    rounded: str | None = None


def whole(labels: np.ndarray) -> np.ndarray:
    """Labels such as -1.0 and 3.0 as integers, which print as they were written; others as they are."""
    if labels.dtype.kind == "f" and np.all(labels == np.trunc(labels)) and np.all(np.abs(labels) < 2.0**53):
        return labels.astype(np.int64)
    return labels


def labels_of(texts: list[str]) -> np.ndarray:
    """Labels as numbers where all of them are numbers, else as strings."""
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
    path: Any, names: list[str], expected: Expected, row_names: Collection[str] = ()
) -> tuple[list[int], int | None]:
    """Where the features are, and where the label is (None if there is none).

    Parameters
    ----------
    path : path-like
    names : list of str
    expected : Expected
    row_names : collection of str, default=()
        Columns that are no features unless they are asked for.

    Raises
    ------
    DataError
        If a column is missing, asked for in two ways, or their number is not the model's.
    """
    used = named(path, "--columns", expected.use, names)
    dropped = named(path, "--drop", expected.drop, names)
    for k in dropped:
        if k in used or names[k] == expected.label:
            other = "--columns" if k in used else "--label"
            raise DataError(
                f"{path}: both {other} and --drop name the column {names[k]!r}; name it in one of them."
            )
    asked = {names[k] for k in used} | {expected.label}
    left = [
        k for k in range(len(names)) if k not in dropped and (names[k] in asked or names[k] not in row_names)
    ]
    lower = {names[k].lower(): k for k in reversed(left) if k not in used}
    usual = next((lower[name] for name in LABEL_NAMES if name in lower), None)
    if expected.features is not None:
        return _of_model(path, names, expected, used or left, usual)
    if expected.label is not None and expected.label in names:
        at = names.index(expected.label)
        if at in used:
            raise DataError(f"{path}: the column {expected.label!r} cannot be both the label and a feature.")
    elif expected.label is not None and not expected.for_model:
        raise DataError(f"{path}: there is no column {expected.label!r}; the columns are {listed(names)}.")
    elif expected.n_features is not None and len(used or left) == expected.n_features:
        at = usual if used else None  # a table without labels
    else:
        others = [k for k in left if k not in used]
        at = usual if usual is not None or not others else others[-1]
    chosen = used or [k for k in left if k != at]
    if at is None and not expected.for_model:
        raise DataError(
            f"{path}: every column is a feature by --columns; name the label column with --label."
        )
    if expected.n_features is not None and len(chosen) != expected.n_features:
        raise DataError(
            f"{path}: the model has {expected.n_features} features, the file holds {len(chosen)}"
            + ("." if at is None else f" (and the label column {names[at]!r}).")
        )
    if not chosen:
        raise DataError(
            f"{path}: the only column is the label {names[at or 0]!r}; a classifier needs features."
        )
    return chosen, at


def _of_model(
    path: Any, names: list[str], expected: Expected, left: list[int], usual: int | None
) -> tuple[list[int], int | None]:
    """The same for a model that knows its columns by name, of which all must be among those left."""
    features: Any = expected.features
    missing = [name for name in features if name not in names]
    if missing:
        raise DataError(
            f"{path}: the model needs the column {missing[0]!r}"
            + (f" (and {len(missing) - 1} more)" if len(missing) > 1 else "")
            + f", which the file does not hold; its columns are {listed(names)}."
        )
    places = {name: k for k, name in enumerate(names)}
    chosen, left_over = [places[name] for name in features], set(left)
    for k in chosen:
        if k not in left_over:
            option = "--columns" if expected.use else "--drop"
            raise DataError(f"{path}: the model needs the column {names[k]!r}, which {option} leaves out.")
    at = names.index(expected.label) if expected.label in names else usual
    return chosen, None if at in chosen else at


def named(path: Any, option: str, words: tuple[str, ...], names: list[str]) -> list[int]:
    """Places of columns that an option names, with commas between or one at a time, in this order.

    Raises
    ------
    DataError
        If there is no such column, or one is named twice.
    """
    places = {name: k for k, name in enumerate(names)}
    found: list[int] = []
    for word in words:
        # a name may have a comma in it
        for name in [word] if word in places else [part.strip() for part in word.split(",") if part.strip()]:
            if name not in places:
                raise DataError(f"{path}: {option} names {name!r}, and the columns are {listed(names)}.")
            if places[name] in found:
                raise DataError(f"{path}: {option} names the column {name!r} twice.")
            found.append(places[name])
    return found


def listed(names: list[str]) -> str:
    """The first few names."""
    return ", ".join(map(repr, names[:8])) + (", ..." if len(names) > 8 else "")


def check_finite(path: Any, X: np.ndarray, names: list[str] | None = None) -> None:
    """Raise DataError at the first entry of a dense array that is NaN or infinite."""
    with np.errstate(over="ignore", invalid="ignore"):
        if np.isfinite(X.sum(dtype=np.float64)):  # one pass, no copy; a mere overflow is looked into below
            return
    for i in range(X.shape[0]):
        bad = np.flatnonzero(~np.isfinite(X[i]))
        if bad.size:
            where = f"column {names[bad[0]]!r}" if names else f"column {bad[0]}"
            remedy = (
                "; fill such entries in"
                if np.isnan(X[i, bad[0]])
                else ", no finite number; correct such entries"
            )
            raise DataError(
                f"{path}: row {i} (counted from 0), {where} is {X[i, bad[0]]}{remedy} or leave the row out."
            )


def check_labels(path: Any, y: np.ndarray) -> None:
    """Raise DataError at the first label that is NaN or infinite."""
    if y.dtype.kind == "f" and not np.isfinite(y).all():
        i = int(np.flatnonzero(~np.isfinite(y))[0])
        raise DataError(f"{path}: the label of row {i} (counted from 0) is {y[i]}; leave the row out.")
