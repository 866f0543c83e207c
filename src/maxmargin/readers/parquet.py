"""Parquet tables, by pyarrow."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from .files import require_memory
from .table import DataError, Expected, Table, check_finite, check_labels, columns, labels_of, whole


def read_parquet(path: Path, expected: Expected) -> Table:
    """Read a table of numbers; the label column may hold strings."""
    try:
        import pyarrow as pa
        import pyarrow.parquet as pq
    except ImportError:
        raise DataError(f"{path}: Parquet needs pyarrow: pip install 'maxmargin[arrow]'.") from None
    try:
        file = pq.ParquetFile(path)
        names, rows = file.schema_arrow.names, file.metadata.num_rows
        features, at = columns(path, names, expected)
        if not rows:
            raise DataError(f"{path}: the file holds no rows.")
        require_memory(path, 16.0 * rows * (len(features) + 1))  # the table, and the matrix made of it
        table = file.read([names[k] for k in features] + ([] if at is None else [names[at]]))
    except pa.ArrowInvalid as error:
        reason = str(error).split(". ")[0].rstrip(".")
        raise DataError(
            f"{path}: this is no sound Parquet file, or it is cut short ({reason}); write or copy it again."
        ) from None
    types = [table.schema.field(names[k]).type for k in features]
    for k, kind in zip(features, types, strict=True):
        if not (pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_boolean(kind)):
            raise DataError(
                f"{path}: column {names[k]!r} holds {kind}, not numbers; turn it into numbers, leave it out, "
                "or name the label column with --label."
            )
    single = all(pa.types.is_float32(kind) for kind in types)
    X = np.empty((rows, len(features)), np.float32 if single else np.float64)
    for j, k in enumerate(features):
        X[:, j] = _filled(path, table, names[k]).to_numpy()
    check_finite(path, X, [names[k] for k in features])
    y = None
    if at is not None:
        labels = _filled(path, table, names[at])
        if pa.types.is_dictionary(labels.type):
            labels = labels.cast(labels.type.value_type)
        y = labels.to_numpy()
        y = labels_of([str(label) for label in y]) if y.dtype == object else whole(y)
        check_labels(path, y)
    return Table(X, y, [names[k] for k in features], None if at is None else names[at])


def _filled(path: Path, table: Any, name: str) -> Any:
    column = table.column(name)
    if column.null_count:
        row = int(np.flatnonzero(column.is_null().to_numpy())[0])
        raise DataError(
            f"{path}: row {row} (counted from 0), column {name!r} is empty; fill it in or leave the row out."
        )
    return column
