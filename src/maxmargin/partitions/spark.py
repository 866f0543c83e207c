"""Rows of Spark frames: columns as matrices, blocks that executors keep during a fit, and functions of blocks."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, wait
from functools import partial
from itertools import chain
from math import isqrt
from typing import Any
from uuid import uuid4

import numpy as np
import pandas as pd
import pyarrow as pa
import scipy.sparse as sp
from pyspark import InheritableThread, TaskContext  # pyright: ignore[reportMissingImports]
from pyspark.sql.functions import floor  # pyright: ignore[reportMissingImports]
from pyspark.sql.types import ArrayType, DoubleType, StructType  # pyright: ignore[reportMissingImports]

from ..numerics.columns import ENCODE, canonical
from .blocks import (
    BadRowError,
    Block,
    ClusterPartitions,
    M,
    block_of,
    merged,
)

# Types of columns that are read as numbers, as Spark names them.
NUMBERS = ["tinyint", "smallint", "int", "bigint", "float", "double", "boolean", "decimal"]
# The column that a method of a classifier adds; the first name is that of pyspark.ml.
ADDED = {"predict": "prediction", "decision_function": "decision"}
# Seconds between two checks whether to stop: well below the second in which a fit ends, and rare beside jobs.
POLL = 0.2
# The merged results of a function for one or more partitions, of which the first has this number.
RESULT = "part long, result binary"
BLOCKS = "part long, first long, rows binary"


def feature_columns(frame: Any, names: Sequence[str] | None, others: Sequence[str] = ()) -> list[str]:
    """Return the names of the features: columns of numbers, or one column of vectors.

    Parameters
    ----------
    frame : pyspark.sql.DataFrame
    names : sequence of str or None
        Those of the fit; None for all columns except `others`.
    others : sequence of str
        Columns that the frame must have too.

    Raises
    ------
    ValueError
        If columns cannot be used; the message names the remedy.
    """
    if not hasattr(frame, "mapInArrow"):
        raise ValueError(f"X must be a Spark DataFrame; got {type(frame)}: of pandas on Spark X.to_spark().")
    kinds = dict(frame.dtypes)
    found = [name for name in frame.columns if name not in others] if names is None else list(names)
    for name in (*found, *others):
        if frame.columns.count(name) != 1:
            raise ValueError(f"X must have one column {name!r}; its columns are {frame.columns}.")
    if not found:
        raise ValueError("X has no column of features.")
    for name in found:
        if kinds[name] == "vector" and len(found) > 1:
            columns = ", ".join(map(repr, (name, *others)))
            raise ValueError(f"vectors must be the only features: X.select({columns}).")
        if kinds[name].partition("(")[0] not in (*NUMBERS, "vector"):
            remedy = "pyspark.ml.functions.array_to_vector" if kinds[name].startswith("array") else ENCODE
            raise ValueError(f"column {name!r} of X holds {kinds[name]}, and no numbers: {remedy}.")
    return found


def with_result(method: Callable[[Any], np.ndarray], frame: Any, names: Any, columns: int) -> Any:
    """Return a frame with the results of a method of a classifier as one more column; it is lazy.

    Parameters
    ----------
    method : callable
        One of ADDED. Returns an array with one row for each row of a matrix; of rows that are arrays, the column holds
        arrays.
    frame : pyspark.sql.DataFrame
    names : sequence of str or None
        The features of the fit; None for the only column of vectors, or without one for all columns.
    columns : int
        The length of vectors.
    """
    vectors = [name for name, kind in getattr(frame, "dtypes", ()) if kind == "vector"]
    features = feature_columns(frame, vectors if names is None and len(vectors) == 1 else names)
    added = ADDED[method.__name__]
    if added in frame.columns:
        raise ValueError(f"X has a column {added!r} already: leave it out by X.drop({added!r}).")
    found = method(np.zeros((1, columns if features == vectors else len(features))))
    kind = {"i": "long", "u": "long", "f": "double", "b": "boolean"}.get(found.dtype.kind, "string")
    schema = StructType([*frame.schema]).add(added, ArrayType(DoubleType()) if found.ndim == 2 else kind)
    places = [frame.columns.index(name) for name in features]
    return positional(frame).mapInArrow(partial(_add_result, method, places, schema.names), schema)


def positional(frame: Any) -> Any:
    """Return a frame with the names c0, c1, ...: `mapInArrow` takes no names with dots."""
    return frame.toDF(*(f"c{k}" for k in range(len(frame.columns))))


def _add_result(method: Any, places: list[int], names: list[str], batches: Iterator[Any]) -> Iterator[Any]:
    """Yield batches with the results of a method for the features at these places as one more column."""
    for batch in batches:
        if batch.num_rows:
            found = method(matrix([batch.column(k) for k in places])).tolist()
            yield pa.RecordBatch.from_arrays([*batch.columns, pa.array(found)], names)


def matrix(columns: Sequence[Any]) -> Any:
    """Return Arrow columns of numbers as an array of float32 or float64, a column of vectors as a CSR matrix."""
    if pa.types.is_struct(columns[0].type):
        return _rows_of(columns[0])
    return np.column_stack([*map(floats, columns)])


def floats(column: Any) -> np.ndarray:
    """Return an Arrow column as float32, if it is, or float64; nulls become NaN."""
    column = column if column.type == pa.float32() else column.cast(pa.float64(), safe=False)
    return column.to_numpy(zero_copy_only=False)


def _rows_of(vectors: Any) -> sp.csr_matrix:
    """Return vectors of pyspark.ml as a canonical matrix.

    Each is a struct of its type (0 sparse, 1 dense), its size and indices, both null if it is dense, and its values.
    """
    for i in np.flatnonzero(vectors.is_null())[:1]:
        raise BadRowError(int(i), "its vector is null; leave the row out.")
    counts, dense = np.diff(vectors.field("values").offsets), np.equal(vectors.field("type"), 1)
    sizes = np.where(dense, counts, vectors.field("size").fill_null(0))
    for i in np.flatnonzero(sizes != sizes[0])[:1]:
        raise BadRowError(int(i), f"its vector has {sizes[i]} entries, others {sizes[0]}.")
    bounds, data = np.append(0, np.cumsum(counts)), floats(vectors.field("values").flatten())
    indices = np.arange(data.size) - np.repeat(bounds[:-1], counts)  # those of dense vectors
    indices[np.repeat(~dense, counts)] = vectors.field("indices").flatten()
    return canonical(sp.csr_matrix((data, indices, bounds), (counts.size, sizes[0])))


class SparkPartitions(ClusterPartitions):
    """Rows, labels and sample weights of a Spark frame, read once, which the executors keep.

    Parameters
    ----------
    X : pyspark.sql.DataFrame
    y, sample_weight : str
        The names of their columns; None for no weights.
    names : sequence of str, default=None
        The names of the features; None for all other columns.
    interrupted : callable, default=bool
        Whether to stop.

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
        interrupted: Callable[[], bool] = bool,
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
        read = partial(_read, len(features))
        self._blocks = positional(X).select(columns).mapInArrow(read, BLOCKS).persist()
        self.describe(interrupted)
        example = np.zeros((1, self.shape[1]))
        self.example = example if kinds[features[0]] == "vector" else pd.DataFrame(example, columns=features)

    def reduce_blocks(
        self, function: Callable[[int, int, Block], M], interrupted: Callable[[], bool]
    ) -> M | None:
        results = self._blocks.mapInArrow(partial(_apply, function), RESULT)
        # executors merge groups first, in a shuffle of some tenths of a second: the driver then holds about the root
        if len(self._firsts) > 16:
            group = floor(results["part"] / isqrt(len(self._firsts)))
            results = results.groupBy(group).applyInPandas(_merge, RESULT)
        rows = run(results, interrupted)
        return None if rows is None else merged(pickle.loads(row.result) for row in sorted(rows))

    def close(self) -> None:
        self._blocks.unpersist()


def _read(features: int, batches: Iterator[Any]) -> Iterator[Any]:
    """Yield the blocks of a partition, of batches of so many features, the labels, and the weights if there are any."""
    part, first = TaskContext().partitionId(), 0
    for batch in batches:
        if batch.num_rows:
            yield record(part=part, first=first, rows=pickle.dumps(_block(batch.columns, features)))
            first += batch.num_rows


def _block(columns: Sequence[Any], features: int) -> Block:
    """Return the rows of columns of so many features, the labels, and the weights if there are any."""
    values, (y, *others) = columns[:features], columns[features:]
    labels = y.to_numpy(zero_copy_only=False)
    try:
        X = matrix(values)
    except BadRowError as error:
        return Block(np.zeros((len(labels), 0)), labels[:0], labels[:0], None, (error.row, error.fault))
    return block_of(X, labels, floats(others[0]).astype(float) if others else None)


def run(frame: Any, interrupted: Callable[[], bool] = bool) -> list[Any] | None:
    """Compute the rows of a frame; cancel its jobs and return None if interrupted.

    Jobs may begin late, and are cancelled again; a driver that does not answer, and tasks that do not end within ten
    seconds, ten times what cancelled jobs take, are left to a thread that does not keep the process.
    """
    session, tag, found = frame.sparkSession, f"maxmargin-{uuid4()}", Future[list[Any]]()
    # a session of Spark Connect has no context
    context = None if "connect" in type(session).__module__ else session.sparkContext

    def collect() -> None:
        """Compute the rows, with a tag for the jobs of this thread."""
        try:
            context.addJobTag(tag) if context else session.addTag(tag)
            found.set_result(frame.collect())
        except BaseException as error:
            found.set_exception(error)

    InheritableThread(collect, session=session, daemon=True).start()
    try:
        while not found.done():
            if interrupted():
                return None
            wait([found], POLL)
        return found.result()
    finally:
        for _ in range(50):
            if found.done():
                break
            context.cancelJobsWithTag(tag) if context else session.interruptTag(tag)
            wait([found], POLL)


def record(**values: Any) -> pa.RecordBatch:
    """Return a batch of one row."""
    return pa.RecordBatch.from_pylist([values])


def _apply(function: Callable[[int, int, Block], M], batches: Iterator[Any]) -> Iterator[Any]:
    """Yield the merged results of a function for the blocks of a partition."""
    part = None

    def results() -> Iterator[M]:
        nonlocal part
        for number, first, block in chain.from_iterable(
            zip(*batch.columns, strict=True) for batch in batches
        ):
            part = number.as_py()
            yield function(part, first.as_py(), pickle.loads(block.as_buffer()))

    found = merged(results())
    if found is not None:
        yield record(part=part, result=pickle.dumps(found))


def _merge(results: pd.DataFrame) -> pd.DataFrame:
    """Return the merged results of a group of partitions as one."""
    results = results.sort_values("part")
    result = pickle.dumps(merged(map(pickle.loads, results["result"])))
    return pd.DataFrame({"part": [results["part"].iloc[0]], "result": [result]})
