"""What a reader returns, what it may expect, and how it says no."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

LABEL_NAMES = ("label", "target", "class", "y")


class DataError(ValueError):
    """A data file that cannot be used; the message names the file, the place, the fault and the remedy."""


@dataclass(frozen=True)
class Expected:
    """What is known of a file before it is read; see `maxmargin.readers.read`."""

    n_features: int | None = None
    label: str | None = None
    features: list[str] | None = None
    first_index: int | None = None

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
    """

    X: Any
    y: np.ndarray | None
    feature_names: list[str] | None = None
    label_name: str | None = None
    first_index: int | None = None


def whole(labels: np.ndarray) -> np.ndarray:
    """Labels such as -1.0 and 3.0 as integers, which print as they were written; others as they are."""
    if labels.dtype.kind == "f" and np.all(labels == np.trunc(labels)) and np.all(np.abs(labels) < 2.0**53):
        return labels.astype(np.int64)
    return labels


def labels_of(texts: list[str]) -> np.ndarray:
    """Labels as numbers where all of them are numbers, else as strings."""
    try:
        return whole(np.array([float(text) for text in texts]))
    except ValueError:
        return np.array(texts)


def columns(path: Any, names: list[str], expected: Expected) -> tuple[list[int], int | None]:
    """Where the features are, and where the label is (None if there is none).

    Raises
    ------
    DataError
        If a column is missing, or their number is not the model's.
    """
    lower = [name.lower() for name in names]
    usual = next((lower.index(name) for name in LABEL_NAMES if name in lower), None)
    if expected.features is not None:
        missing = [name for name in expected.features if name not in names]
        if missing:
            raise DataError(
                f"{path}: the model needs the column {missing[0]!r}"
                + (f" (and {len(missing) - 1} more)" if len(missing) > 1 else "")
                + f", which the file does not hold; its columns are {listed(names)}."
            )
        chosen = [names.index(name) for name in expected.features]
        at = names.index(expected.label) if expected.label in names else usual
        return chosen, None if at in chosen else at
    if expected.label is not None and expected.label in names:
        at = names.index(expected.label)
    elif expected.label is not None and not expected.for_model:
        raise DataError(f"{path}: there is no column {expected.label!r}; the columns are {listed(names)}.")
    elif expected.n_features is not None and len(names) == expected.n_features:
        at = None  # a table without labels
    else:
        at = len(names) - 1 if usual is None else usual
    chosen = [k for k in range(len(names)) if k != at]
    if expected.n_features is not None and len(chosen) != expected.n_features:
        raise DataError(
            f"{path}: the model has {expected.n_features} features, the file holds {len(chosen)}"
            + ("." if at is None else f" (and the label column {names[at]!r}).")
        )
    if not chosen:
        raise DataError(f"{path}: the only column is the label {names[0]!r}; a classifier needs features.")
    return chosen, at


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
            raise DataError(
                f"{path}: row {i} (counted from 0), {where} is {X[i, bad[0]]}; "
                "fill such entries in or leave the row out."
            )


def check_labels(path: Any, y: np.ndarray) -> None:
    """Raise DataError at the first label that is NaN or infinite."""
    if y.dtype.kind == "f" and not np.isfinite(y).all():
        i = int(np.flatnonzero(~np.isfinite(y))[0])
        raise DataError(f"{path}: the label of row {i} (counted from 0) is {y[i]}; leave the row out.")
