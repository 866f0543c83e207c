"""Rows, labels and weights of collections on other machines: what one reading of them finds."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from ...data.partitions import BadRowError, Partition, Partitions
from ...numerics.labels import bad_label
from ...numerics.stop_check import READING_STOPPED, ReadingStoppedError
from ...problem.multiclass import class_numbers
from .sums import check_finite

# Rows as an array or a CSR matrix of float32 or float64, labels, weights, and a number that float64 does not hold, with
# its column; None if there is none, or none was looked for.
Part = tuple[Any, np.ndarray, np.ndarray | None, str | None]


@dataclass(frozen=True)
class Reading:
    """How rows are read.

    Attributes
    ----------
    interrupted : callable, default=bool
        Whether to stop, which raises ReadingStoppedError. By default never.
    exact : bool, default=False
        Whether to look for numbers that float64 does not hold.
    """

    interrupted: Callable[[], bool] = bool
    exact: bool = False


READING = Reading()


@dataclass(frozen=True, eq=False)
class Description:
    """Sizes of consecutive rows, their distinct labels with the weight of all rows of each, and their first fault.

    A fault is the number of a row among them, or None, and a sentence. `rounded` is as in `Part`.
    """

    rows: int
    columns: int
    sparse: bool
    labels: np.ndarray
    totals: np.ndarray
    fault: tuple[int | None, str] | None
    rounded: str | None = None


class DescribedRows(ABC):
    """Rows, labels and sample weights of a collection, read once.

    Parameters
    ----------
    found : sequence of Description or None
        Those of all parts, in the order of the rows; None if the reading was stopped.

    Attributes
    ----------
    example : ndarray or pandas.DataFrame
        One row of zeros, with the names of the columns.
    shape : (int, int)
    sparse : bool
    kept : list of int
        The numbers of the parts that have rows.
    firsts : ndarray of int
        The number of the first row of each part, and the number of rows.
    rounded : str or None
        As in `Part`, of all rows.

    Raises
    ------
    ValueError
        If rows cannot be used; the message names the remedy.
    ReadingStoppedError
        If the reading was stopped.
    """

    example: Any

    def __init__(self, found: Sequence[Description] | None) -> None:
        if found is None:
            raise ReadingStoppedError(READING_STOPPED)
        self.kept = [k for k, one in enumerate(found) if one.rows]
        self.firsts = np.cumsum([0, *(one.rows for one in found)])
        self._check(found)
        self._described = [found[k] for k in self.kept]
        self.shape = (int(self.firsts[-1]), self._described[0].columns)
        self.sparse = any(one.sparse for one in self._described)
        self.rounded = next((one.rounded for one in self._described if one.rounded is not None), None)

    def _check(self, found: Sequence[Description]) -> None:
        """Refuse parts that cannot be used."""
        for k, one in enumerate(found):
            if one.fault is not None:
                place, fault = one.fault
                where = f"partition {k}" if place is None else f"row {self.firsts[k] + place}"
                raise ValueError(f"{where} (counted from 0): {fault}")
        if not self.kept:
            raise ValueError("Found no rows: all partitions are empty.")
        widths = sorted({one.columns for one in found if one.rows})
        if len(widths) > 1:
            raise ValueError(f"the partitions of X have different numbers of columns: {widths}.")

    def labels(self) -> tuple[np.ndarray, np.ndarray]:
        """Return the distinct labels, and the weight of all rows of each."""
        parts = [one.labels for one in self._described]
        text = {part.dtype.kind in "OUS" for part in parts}
        joined = np.concatenate(parts, dtype=object if len(text) > 1 else None)
        return distinct(joined, np.concatenate([one.totals for one in self._described]))

    @abstractmethod
    def partitions(self, classes: np.ndarray, factors: np.ndarray | None) -> Partitions:
        """Return the rows with the numbers of their classes, and with their weights times the factor of each class.

        Called once: the back end may release the labels.
        """

    @abstractmethod
    def close(self) -> None:
        """Release the rows; the partitions are not used after it."""


def describe(part: Part) -> Description:
    """Return the description of rows."""
    X, y, weights, rounded = part
    fault = _fault(X, y, weights)
    names, totals = (y[:0], np.zeros(0)) if fault else distinct(y, weights)
    return Description(X.shape[0], X.shape[1], sp.issparse(X), names, totals, fault, rounded)


def _fault(X: Any, y: np.ndarray, weights: np.ndarray | None) -> tuple[int | None, str] | None:
    """Return the first fault of rows, or None."""
    for name, other in (("labels", y), ("sample weights", weights)):
        if other is not None and other.shape != X.shape[:1]:
            return None, f"there must be as many {name} as rows; got {other.shape[0]} for {X.shape[0]} rows."
    if weights is not None:
        for i in np.flatnonzero(~((weights >= 0.0) & (weights < np.inf)))[:1]:
            return int(i), f"its sample weight is {weights[i]}; give 0 or more."
    found = bad_label(y)
    if found is not None:
        return found[0], f"its label is {found[1]}."
    try:
        check_finite(Partition(X, np.zeros(y.size, np.int8)))
    except BadRowError as error:
        return error.row, error.fault
    return None


def distinct(labels: np.ndarray, weights: np.ndarray | None) -> tuple[np.ndarray, np.ndarray]:
    """Return the distinct labels, and the sum of the weights of each."""
    names, numbers = numbered(labels)
    return names, np.bincount(numbers, weights, names.size).astype(float)


def numbered(labels: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the distinct labels, and the number of each label among them; objects are not compared by size."""
    if labels.dtype != object:
        return np.unique(labels, return_inverse=True)
    places: dict[Any, int] = {}
    numbers = np.array([places.setdefault(label, len(places)) for label in labels.tolist()], dtype=np.intp)
    names = np.empty(len(places), dtype=object)
    names[:] = list(places)
    return names, numbers


def class_codes(labels: np.ndarray, classes: np.ndarray) -> np.ndarray:
    """Return the number of the class of each label as a small integer; -1 for labels of no class."""
    return class_numbers(labels, classes).astype(np.int8 if len(classes) < 128 else np.int32)


def times_factors(
    weights: np.ndarray | None, codes: np.ndarray, factors: np.ndarray | None
) -> np.ndarray | None:
    """Return the weights of rows times the factors of their classes; None stands for ones."""
    if factors is None:
        return weights
    return (1.0 if weights is None else weights) * factors[codes]
