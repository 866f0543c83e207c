"""Rows, labels and weights of Dask collections, read once, as partitions.

Rows, labels and weights are Dask collections with the same partitions. The rows stay where they are; each pass moves
sums and the rows near the margin.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
from dask.delayed import delayed

from ...data.dask_blocks import check_columns, example_row, matrix, unmasked
from ...data.dask_partitions import DaskPartitions, default_client, persisted, run
from ...data.partitions import cluster_of
from ...numerics.labels import plain_labels
from ...numerics.representable import rounded_number
from .described_rows import READING, DescribedRows, Part, Reading, class_codes, describe, times_factors


class DaskRows(DescribedRows):
    """Rows, labels and sample weights of Dask collections, read once.

    With a client the rows are kept on the workers.

    Parameters
    ----------
    X, y, sample_weight
        As of `estimators.partitioned.fit_cluster`.
    reading : Reading

    Raises
    ------
    ValueError
        If the collections do not fit together, or rows cannot be used; the message names the remedy.
    ReadingStoppedError
        If the reading was stopped.
    """

    def __init__(self, X: Any, y: Any, sample_weight: Any, reading: Reading = READING) -> None:
        collections = check_collections(X, {"y": y, "sample_weight": sample_weight})
        self._client = default_client()
        blocks = zip(*map(_blocks, collections), strict=True)
        read = delayed(partial(_read, reading.exact), pure=False)
        self._rows = [read(*block) for block in blocks]
        if self._client is not None:
            self._rows = persisted(self._client, self._rows)
        try:
            super().__init__(run(self._client, self._all_descriptions, None, reading.interrupted))
        except BaseException:
            self.close()  # cancels tasks that are not done
            raise
        self.example = example_row(X, self.shape[1])

    def _all_descriptions(self, _: Any) -> Any:
        return delayed(list, pure=False)([delayed(describe, pure=False)(part) for part in self._rows])

    def partitions(self, classes: np.ndarray, factors: np.ndarray | None) -> DaskPartitions:
        encode = delayed(partial(_encoded, classes, factors), pure=False)
        parts = [encode(self._rows[k], int(self.firsts[k])) for k in self.kept]
        self.close()  # workers need not hold them beside the partitions
        return DaskPartitions(parts, self.shape, self.sparse, self._client)

    def close(self) -> None:
        self._rows = []


# rows


def check_collections(X: Any, others: dict[str, Any]) -> list[Any]:
    """Refuse collections that do not fit together; return X, y, and the weights unless they are None."""
    check_columns(X)
    blocks = _count(X)
    given: dict[str, Any] = {
        name: other for name, other in others.items() if other is not None or name == "y"
    }
    for name, other in given.items():
        if cluster_of(other) != "dask":
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


def _read(exact: bool, X: Any, y: Any, weights: Any = None) -> Part:
    """Return the rows of blocks; `exact` as of `Reading`."""
    labels = np.asarray(plain_labels(np.where(y.mask, None, y.data) if np.ma.is_masked(y) else y))
    rounded = rounded_number(X) if exact and not np.ma.is_masked(X) else None
    return matrix(X), labels, None if weights is None else np.asarray(unmasked(weights), dtype=float), rounded


def _encoded(
    classes: np.ndarray, factors: np.ndarray | None, part: Part, first: int
) -> tuple[Any, np.ndarray, np.ndarray | None, int]:
    """Return the arguments of a `Partition`."""
    X, y, weights, _ = part
    codes = class_codes(y, classes)
    return X, codes, times_factors(weights, codes, factors), first
