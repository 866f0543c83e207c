"""Rows, labels and weights of Dask collections, read once, as partitions.

Rows, labels and weights are Dask collections with the same partitions. The rows stay where they are; each pass moves
sums and the rows near the margin.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import scipy.sparse as sp
from dask.delayed import delayed

from ...data.dask_blocks import check_columns, example_row, matrix
from ...data.dask_partitions import DaskPartitions, default_client, persisted, run
from ...data.partitions import BadRowError, Partition, is_dask
from ...numerics.column_errors import plain_labels
from ...problem.multiclass import class_numbers
from .sums import check_finite


class DaskRows:
    """Rows, labels and sample weights of Dask collections, read once.

    With a client the rows are kept on the workers.

    Parameters
    ----------
    X, y, sample_weight
        As of `estimators.partitioned.fit_dask`.

    Attributes
    ----------
    columns : int
    example : ndarray or pandas.DataFrame
        One row of zeros, with the names of the columns.

    Raises
    ------
    ValueError
        If the collections do not fit together, or rows cannot be used; the message names the remedy.
    """

    def __init__(self, X: Any, y: Any, sample_weight: Any) -> None:
        collections = check_collections(X, {"y": y, "sample_weight": sample_weight})
        self._client = default_client()
        blocks = zip(*map(_blocks, collections), strict=True)
        self._rows = [delayed(_read, pure=False)(*block) for block in blocks]
        if self._client is not None:
            self._rows = persisted(self._client, self._rows)
        found = run(self._client, self._all_descriptions, None)
        self._kept = [k for k, one in enumerate(found) if one.rows]
        self._firsts = np.cumsum([0, *(one.rows for one in found)])
        self._check(found)
        self._described = [found[k] for k in self._kept]
        self.columns = self._described[0].columns
        self.example = example_row(X, self.columns)

    def _all_descriptions(self, _: Any) -> Any:
        return delayed(list, pure=False)([delayed(_describe, pure=False)(part) for part in self._rows])

    def _check(self, found: list[_Description]) -> None:
        """Refuse partitions that cannot be used."""
        for k, one in enumerate(found):
            if one.fault is not None:
                place, fault = one.fault
                where = f"partition {k}" if place is None else f"row {self._firsts[k] + place}"
                raise ValueError(f"{where} (counted from 0): {fault}")
        if not self._kept:
            raise ValueError("Found no rows: all partitions are empty.")
        widths = sorted({one.columns for one in found if one.rows})
        if len(widths) > 1:
            raise ValueError(f"the partitions of X have different numbers of columns: {widths}.")

    def labels(self) -> tuple[np.ndarray, np.ndarray]:
        """Return the distinct labels, and the weight of all rows of each."""
        parts = [one.labels for one in self._described]
        text = {part.dtype.kind in "OUS" for part in parts}
        joined = np.concatenate(parts, dtype=object if len(text) > 1 else None)
        return _distinct(joined, np.concatenate([one.totals for one in self._described]))

    def partitions(self, classes: np.ndarray, factors: np.ndarray | None) -> DaskPartitions:
        """Return the rows with the numbers of their classes, and with their weights times the factor of each class."""
        encode = delayed(partial(_encoded, classes, factors), pure=False)
        parts = [encode(self._rows[k], int(self._firsts[k])) for k in self._kept]
        shape = (int(self._firsts[-1]), self.columns)
        return DaskPartitions(parts, shape, any(one.sparse for one in self._described), self._client)


# rows


def check_collections(X: Any, others: dict[str, Any]) -> list[Any]:
    """Refuse collections that do not fit together; return X, y, and the weights unless they are None."""
    check_columns(X)
    blocks = _count(X)
    given: dict[str, Any] = {
        name: other for name, other in others.items() if other is not None or name == "y"
    }
    for name, other in given.items():
        if not is_dask(other):
            raise ValueError(
                f"{name} must be a Dask array or Series, as X is a Dask collection; got {type(other).__name__}: "
                f"dask.array.from_array({name}, chunks=X.chunks[0]) makes one of an array."
            )
        if other.ndim != 1:
            raise ValueError(f"{name} must have one dimension, not {other.ndim}: take its only column.")
        known = hasattr(X, "chunks") and hasattr(other, "chunks")
        known = known and not np.isnan([*X.chunks[0], *other.chunks[0]]).any()
        if _count(other) != blocks or (known and X.chunks[0] != other.chunks[0]):
            raise ValueError(
                f"X and {name} must have the same partitions; X has {blocks}, {name} has {_count(other)}"
                f"{', of other lengths' if _count(other) == blocks else ''}: {name}.rechunk(X.chunks[0]) for arrays, "
                f"{name}.repartition(divisions=X.divisions) for data frames."
            )
    return [X, *given.values()]


def _count(collection: Any) -> int:
    """Return the number of partitions along the rows."""
    return collection.numblocks[0] if hasattr(collection, "numblocks") else collection.npartitions


def _blocks(collection: Any) -> list[Any]:
    """Return the partitions of a collection as Delayed objects."""
    found = collection.to_delayed()
    return found.ravel().tolist() if isinstance(found, np.ndarray) else list(found)


def _read(X: Any, y: Any, weights: Any = None) -> tuple[Any, np.ndarray, np.ndarray | None]:
    """Return rows as an array or a CSR matrix of float32 or float64, labels, and weights."""
    labels = np.asarray(plain_labels(y) if hasattr(y, "isna") else y)
    return matrix(X), labels, None if weights is None else np.asarray(weights, dtype=float)


@dataclass(frozen=True, eq=False)
class _Description:
    """Sizes of a partition, its distinct labels with the weight of all rows of each, and its first fault.

    A fault is the number of a row in the partition, or None, and a sentence.
    """

    rows: int
    columns: int
    sparse: bool
    labels: np.ndarray
    totals: np.ndarray
    fault: tuple[int | None, str] | None


def _describe(part: tuple[Any, np.ndarray, np.ndarray | None]) -> _Description:
    X, y, weights = part
    fault = _fault(X, y, weights)
    names, totals = (y[:0], np.zeros(0)) if fault else _distinct(y, weights)
    return _Description(X.shape[0], X.shape[1], sp.issparse(X), names, totals, fault)


def _fault(X: Any, y: np.ndarray, weights: np.ndarray | None) -> tuple[int | None, str] | None:
    """Return the first fault of a partition, or None."""
    for name, other in (("labels", y), ("sample weights", weights)):
        if other is not None and other.shape != X.shape[:1]:
            return None, f"there must be as many {name} as rows; got {other.shape[0]} for {X.shape[0]} rows."
    if weights is not None:
        for i in np.flatnonzero(~((weights >= 0.0) & (weights < np.inf)))[:1]:
            return int(i), f"its sample weight is {weights[i]}; give 0 or more."
    if y.dtype.kind == "f":
        for i in np.flatnonzero(~np.isfinite(y))[:1]:
            return int(i), f"its label is {y[i]}; give finite numbers, or leave the row out."
    try:
        check_finite(Partition(X, np.zeros(y.size, np.int8)))
    except BadRowError as error:
        return error.row, error.fault
    return None


def _distinct(labels: np.ndarray, weights: np.ndarray | None) -> tuple[np.ndarray, np.ndarray]:
    """Return the distinct labels, and the sum of the weights of each; objects are not compared by size."""
    if labels.dtype != object:
        names, numbers = np.unique(labels, return_inverse=True)
        return names, np.bincount(numbers, weights, names.size).astype(float)
    places: dict[Any, int] = {}
    numbers = np.array([places.setdefault(label, len(places)) for label in labels.tolist()], dtype=np.intp)
    names = np.empty(len(places), dtype=object)
    names[:] = list(places)
    return names, np.bincount(numbers, weights, names.size).astype(float)


def _encoded(
    classes: np.ndarray,
    factors: np.ndarray | None,
    part: tuple[Any, np.ndarray, np.ndarray | None],
    first: int,
) -> tuple[Any, np.ndarray, np.ndarray | None, int]:
    """Return the arguments of a `Partition`."""
    X, y, weights = part
    codes = class_numbers(y, classes).astype(np.int8 if len(classes) < 128 else np.int32)
    if factors is not None:
        weights = (1.0 if weights is None else weights) * factors[codes]
    return X, codes, weights, first
