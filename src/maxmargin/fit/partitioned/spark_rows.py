"""Rows, labels and weights of Spark frames, read once, as partitions.

Executors keep the rows in blocks, each of the rows of one Arrow batch, for the time of a fit.
"""

from __future__ import annotations

import pickle
from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
import scipy.sparse as sp
from pyspark import TaskContext  # pyright: ignore[reportMissingImports]

from ...data.partitions import BadRowError
from ...data.spark_frames import NUMBERS, feature_columns, floats, matrix, positional, rounded_column
from ...data.spark_partitions import SparkPartitions, record, run
from .described_rows import (
    READING,
    DescribedRows,
    Description,
    Reading,
    class_codes,
    describe,
    numbered,
    times_factors,
)

# Vectors of which at least this part of the entries is stored become dense rows, whose products take several times less
# time for an entry. A round value; not tuned.
DENSE = 0.25
BLOCKS = "part long, first long, description binary, rows binary"


class SparkRows(DescribedRows):
    """Rows, labels and sample weights of a Spark frame, read once.

    Parameters
    ----------
    X : pyspark.sql.DataFrame
    y, sample_weight : str
        The names of their columns; None for no weights.
    names : sequence of str, default=None
        The names of the features; None for all other columns.
    reading : Reading

    Raises
    ------
    ValueError
        If columns or rows cannot be used; the message names the remedy.
    ReadingStoppedError
        If the reading was stopped.
    """

    def __init__(
        self,
        X: Any,
        y: Any,
        sample_weight: Any,
        names: Sequence[str] | None = None,
        reading: Reading = READING,
    ) -> None:
        others = [y] if sample_weight is None else [y, sample_weight]
        for name in others:
            if not isinstance(name, str):
                raise ValueError(f"y and sample_weight are names of columns of X; got {name!r}.")
        features = feature_columns(X, names, others)
        kinds = dict(X.dtypes)
        for name in others:
            if kinds[name] not in NUMBERS[:-1] and (name, kinds[name]) != (y, "string"):
                raise ValueError(f"cast column {name!r} ({kinds[name]}) to double, or labels to string.")
        columns = [f"c{X.columns.index(name)}" for name in (*features, *others)]
        blocks = positional(X).select(columns).mapInArrow(partial(_read, features, reading.exact), BLOCKS)
        self._blocks = blocks.persist()
        try:
            read = run(blocks.select("part", "first", "description"), reading.interrupted)
            rows = sorted(read or ())
            found = [pickle.loads(row.description) for row in rows]
            super().__init__(None if read is None else [description for description, _ in found])
        except BaseException:
            self.close()
            raise
        self.sparse = bool(sum(entries for _, entries in found) < DENSE * np.prod(self.shape))
        places = zip(rows, self.firsts.tolist(), strict=False)
        self._firsts = {row.part: place for row, place in places if row.first == 0}
        example = np.zeros((1, self.shape[1]))
        self.example = example if kinds[features[0]] == "vector" else pd.DataFrame(example, columns=features)

    def partitions(self, classes: np.ndarray, factors: np.ndarray | None) -> SparkPartitions:
        decode = partial(_decode, classes, factors, self.sparse)
        return SparkPartitions(self._blocks, decode, self._firsts, self.shape, self.sparse)

    def close(self) -> None:
        self._blocks.unpersist()


def _read(features: Sequence[str], exact: bool, batches: Iterator[Any]) -> Iterator[Any]:
    """Yield the blocks of a partition, of batches of these features, the labels, and the weights if there are any.

    `exact` is as of `Reading`.
    """
    part, first = TaskContext().partitionId(), 0
    for batch in batches:
        if batch.num_rows:
            found, rows = map(pickle.dumps, _block(batch.columns, features, exact))
            yield record(part=part, first=first, description=found, rows=rows)
            first += batch.num_rows


def _block(
    columns: Sequence[Any], features: Sequence[str], exact: bool
) -> tuple[tuple[Description, int], Any]:
    """Return the description of rows with the number of stored entries; and the rows, for `_decode`."""
    values, (y, *others) = columns[: len(features)], columns[len(features) :]
    labels = y.to_numpy(zero_copy_only=False)
    weights = floats(others[0]).astype(float) if others else None
    try:
        X = matrix(values)
    except BadRowError as error:
        none = Description(labels.size, 0, False, labels[:0], np.zeros(0), (error.row, error.fault))
        return (none, 0), None
    rounded = rounded_column(values, features) if exact else None
    return (describe((X, labels, weights, rounded)), X.size), (X, *numbered(labels), weights)


def _decode(classes: np.ndarray, factors: Any, sparse: bool, block: Any) -> tuple[Any, Any, Any]:
    """Return the arguments X, codes and weights of a `Partition`."""
    X, labels, numbers, weights = pickle.loads(block)
    codes = class_codes(labels, classes)[numbers]
    return X if sparse or not sp.issparse(X) else X.toarray(), codes, times_factors(weights, codes, factors)
