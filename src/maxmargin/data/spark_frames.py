"""Columns of Spark frames: which are features, their batches as matrices, and functions of matrices as columns."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
import scipy.sparse as sp
from pyspark.sql.types import ArrayType, DoubleType, StructType  # pyright: ignore[reportMissingImports]

from ..numerics.column_errors import ENCODE
from ..numerics.representable import first_rounded
from ..numerics.sparse_columns import canonical
from .partitions import BadRowError

# Types of columns that are read as numbers, as Spark names them.
NUMBERS = ["tinyint", "smallint", "int", "bigint", "float", "double", "boolean", "decimal"]
# The column that a method of a classifier adds; the first name is that of pyspark.ml.
ADDED = {"predict": "prediction", "decision_function": "decision"}


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


def rounded_column(columns: Sequence[Any], names: Sequence[str]) -> str | None:
    """Return the first Arrow column with a number that float64 does not hold, and the number; None if there is none.

    Vectors hold float64 numbers.
    """
    for name, column in zip(names, columns, strict=True):
        if pa.types.is_struct(column.type):
            continue
        found = first_rounded(column.drop_null().to_numpy(zero_copy_only=False))
        if found is not None:
            return f"column {name!r} of X holds {found!s}"
    return None


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
