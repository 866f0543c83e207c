"""Tables stored by columns, read by pyarrow: Parquet, and Arrow files and streams (Feather among them)."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from ...numerics.representable import first_rounded
from .files import require_memory
from .table import DataError, Expected, Table, check_finite, check_labels, columns, labels_of, whole

_OLD_FEATHER = b"FEA1"

# the schema of a file, and the function that reads columns by their names
_Source = tuple[Any, Callable[[list[str]], Any]]


def read_parquet(path: Path, expected: Expected) -> Table:
    """Read a table of numbers; the label column may hold strings."""
    return _read(path, expected, "Parquet", _open_parquet)


def read_arrow(path: Path, expected: Expected) -> Table:
    """Read a table of numbers from an Arrow file or stream; the label column may hold strings."""
    with open(path, "rb") as file:
        if file.read(4) == _OLD_FEATHER:
            raise DataError(f"{path}: this is a Feather file of version 1; write it again, in version 2.")
    return _read(path, expected, "Arrow", _open_arrow)


def _open_parquet(path: Path) -> _Source:
    from pyarrow.parquet import ParquetFile

    file = ParquetFile(path)
    return file.schema_arrow, partial(_parquet_columns, path, file)


def _parquet_columns(path: Path, file: Any, names: list[str]) -> Any:
    require_memory(path, 16.0 * file.metadata.num_rows * len(names))  # the table, and the matrix made of it
    return file.read(names)


def _open_arrow(path: Path) -> _Source:
    import pyarrow as pa

    source = pa.memory_map(str(path))
    is_file = source.read(6) == b"ARROW1"
    source.seek(0)
    if not is_file:
        stream = pa.ipc.open_stream(source)
        return stream.schema, lambda names: stream.read_all().select(names)
    return pa.ipc.open_file(source).schema, partial(_arrow_columns, source)


def _arrow_columns(source: Any, names: list[str]) -> Any:
    import pyarrow as pa

    schema = pa.ipc.open_file(source).schema
    options = pa.ipc.IpcReadOptions(included_fields=[schema.get_field_index(name) for name in names])
    return pa.ipc.open_file(source, options=options).read_all()


def _read(path: Path, expected: Expected, kind: str, open_source: Callable[[Path], _Source]) -> Table:
    """Read the features and the labels of a table."""
    try:
        import pyarrow as pa
    except ImportError:
        raise DataError(f"{path}: {kind} needs pyarrow: pip install 'maxmargin[arrow]'.") from None
    try:
        schema, fetch = open_source(path)
        names = list(schema.names)
        if len(set(names)) < len(names):
            repeated = next(name for name in names if names.count(name) > 1)
            raise DataError(f"{path}: two columns are named {repeated!r}; give each its own name.")
        features, label = columns(path, names, expected, _row_names(schema))
        feature_names, label_name = [names[k] for k in features], None if label is None else names[label]
        table = fetch([*feature_names, *([] if label_name is None else [label_name])])
        table.validate(full=True)  # damaged offsets could otherwise point outside of the file
    except pa.ArrowException as error:
        reason = str(error).split(". ")[0].rstrip(".")
        raise DataError(
            f"{path}: this is no sound {kind} file, or it is cut short ({reason}); write or copy it again."
        ) from None
    if not table.num_rows:
        raise DataError(f"{path}: the file holds no rows.")
    X, rounded = _features(path, table, feature_names)
    y = None if label_name is None else _labels(path, table, label_name)
    return Table(X, y, feature_names, label_name, rounded=rounded)


def _row_names(schema: Any) -> set[str]:
    """Return the columns in which pandas keeps the names of rows: no features, unless they are asked for."""
    try:
        index = json.loads((schema.metadata or {})[b"pandas"])["index_columns"]
        return {name for name in index if isinstance(name, str)}
    except (KeyError, ValueError, TypeError):
        return set()


def _features(path: Path, table: Any, names: list[str]) -> tuple[np.ndarray, str | None]:
    """Return the matrix of the features, and the first of their numbers that float64 does not hold."""
    import pyarrow as pa

    types = [table.schema.field(name).type for name in names]
    for name, type_ in zip(names, types, strict=True):
        if not (pa.types.is_integer(type_) or pa.types.is_floating(type_) or pa.types.is_boolean(type_)):
            raise DataError(
                f"{path}: column {name!r} holds {type_}, not numbers; turn it into numbers, leave it out with "
                "--drop, or name the label column with --label."
            )
    require_memory(path, 8.0 * table.num_rows * (len(names) + 1))
    single = all(pa.types.is_float32(type_) for type_ in types)
    X = np.empty((table.num_rows, len(names)), np.float32 if single else np.float64)
    rounded = None
    for j, name in enumerate(names):
        values = _complete_column(path, table, name).to_numpy()
        rounded = first_rounded(values) if rounded is None else rounded
        X[:, j] = values
    check_finite(path, X, names)
    return X, None if rounded is None else str(rounded)


def _labels(path: Path, table: Any, name: str) -> np.ndarray:
    import pyarrow as pa

    column = _complete_column(path, table, name)
    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    y = column.to_numpy()
    y = labels_of(_texts(path, name, y)) if y.dtype == object else whole(y)
    check_labels(path, y)
    return y


def _texts(path: Path, name: str, labels: np.ndarray) -> list[str]:
    texts = [label.decode() if isinstance(label, bytes) else str(label) for label in labels]
    for row, text in enumerate(texts):
        if not text.strip():
            raise DataError(_empty(path, row, name))
    return texts


def _complete_column(path: Path, table: Any, name: str) -> Any:
    """Return a column; raise DataError where a value is missing."""
    column = table.column(name)
    if column.null_count:
        row = int(np.flatnonzero(column.is_null().to_numpy())[0])
        raise DataError(_empty(path, row, name))
    return column


def _empty(path: Path, row: int, name: str) -> str:
    return f"{path}: row {row} (counted from 0), column {name!r} is empty; fill it in or leave the row out."
