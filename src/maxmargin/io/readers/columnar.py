"""Tables that are stored by columns, by pyarrow: Parquet, and Arrow's files and streams (Feather among them)."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from ...numerics.representable import first_rounded
from .files import require_memory
from .table import DataError, Expected, Table, check_finite, check_labels, columns, labels_of, whole

_OLD_FEATHER = b"FEA1"


def read_parquet(path: Path, expected: Expected) -> Table:
    """Read a table of numbers; the label column may hold strings."""

    def opened() -> tuple[Any, Callable[[list[str]], Any]]:
        from pyarrow.parquet import ParquetFile

        file = ParquetFile(path)

        def some(names: list[str]) -> Any:
            # the table, and the matrix made of it
            require_memory(path, 16.0 * file.metadata.num_rows * len(names))
            return file.read(names)

        return file.schema_arrow, some

    return _read(path, expected, "Parquet", opened)


def read_arrow(path: Path, expected: Expected) -> Table:
    """Read a table of numbers from an Arrow file or stream; the label column may hold strings."""
    with open(path, "rb") as file:
        begin = file.read(6)
    if begin.startswith(_OLD_FEATHER):
        raise DataError(f"{path}: this is a Feather file of version 1; write it again, in version 2.")

    def opened() -> tuple[Any, Callable[[list[str]], Any]]:
        import pyarrow as pa

        source = pa.memory_map(str(path))
        if begin != b"ARROW1":
            stream = pa.ipc.open_stream(source)
            return stream.schema, lambda names: stream.read_all().select(names)
        schema = pa.ipc.open_file(source).schema

        def some(names: list[str]) -> Any:
            wanted = pa.ipc.IpcReadOptions(included_fields=[schema.get_field_index(name) for name in names])
            return pa.ipc.open_file(source, options=wanted).read_all()

        return schema, some

    return _read(path, expected, "Arrow", opened)


def _read(
    path: Path, expected: Expected, kind: str, opened: Callable[[], tuple[Any, Callable[[list[str]], Any]]]
) -> Table:
    """Read a table from its schema, and a function that fetches columns by their names."""
    try:
        import pyarrow as pa
    except ImportError:
        raise DataError(f"{path}: {kind} needs pyarrow: pip install 'maxmargin[arrow]'.") from None
    try:
        schema, fetch = opened()
        names = list(schema.names)
        twice = [name for name in names if names.count(name) > 1] if len(set(names)) < len(names) else []
        if twice:
            raise DataError(f"{path}: two columns are named {twice[0]!r}; give each its own name.")
        features, at = columns(path, names, expected, _row_names(schema))
        table = fetch([names[k] for k in features] + ([] if at is None else [names[at]]))
        table.validate(full=True)  # what is damaged could otherwise lead anywhere
    except pa.ArrowException as error:
        reason = str(error).split(". ")[0].rstrip(".")
        raise DataError(
            f"{path}: this is no sound {kind} file, or it is cut short ({reason}); write or copy it again."
        ) from None
    rows = table.num_rows
    if not rows:
        raise DataError(f"{path}: the file holds no rows.")
    types = [table.schema.field(names[k]).type for k in features]
    for k, type_ in zip(features, types, strict=True):
        if not (pa.types.is_integer(type_) or pa.types.is_floating(type_) or pa.types.is_boolean(type_)):
            raise DataError(
                f"{path}: column {names[k]!r} holds {type_}, not numbers; turn it into numbers, leave it out with "
                "--drop, or name the label column with --label."
            )
    require_memory(path, 8.0 * rows * (len(features) + 1))
    single = all(pa.types.is_float32(type_) for type_ in types)
    X = np.empty((rows, len(features)), np.float32 if single else np.float64)
    rounded = None
    for j, k in enumerate(features):
        values = _filled(path, table, names[k]).to_numpy()
        rounded = first_rounded(values) if rounded is None else rounded
        X[:, j] = values
    check_finite(path, X, [names[k] for k in features])
    y = None
    if at is not None:
        labels = _filled(path, table, names[at])
        if pa.types.is_dictionary(labels.type):
            labels = labels.cast(labels.type.value_type)
        y = labels.to_numpy()
        y = labels_of(_texts(path, names[at], y)) if y.dtype == object else whole(y)
        check_labels(path, y)
    return Table(
        X, y, [names[k] for k in features], None if at is None else names[at],
        rounded=None if rounded is None else str(rounded),
    )  # fmt: skip


def _texts(path: Path, name: str, labels: np.ndarray) -> list[str]:
    texts = [label.decode() if isinstance(label, bytes) else str(label) for label in labels]
    for row, text in enumerate(texts):
        if not text.strip():
            raise DataError(_empty(path, row, name))
    return texts


def _empty(path: Path, row: int, name: str) -> str:
    return f"{path}: row {row} (counted from 0), column {name!r} is empty; fill it in or leave the row out."


def _row_names(schema: Any) -> set[str]:
    """Columns in which pandas keeps the names of rows: no features, unless they are asked for."""
    try:
        index = json.loads((schema.metadata or {})[b"pandas"])["index_columns"]
        return {name for name in index if isinstance(name, str)}
    except (KeyError, ValueError, TypeError):
        return set()


def _filled(path: Path, table: Any, name: str) -> Any:
    column = table.column(name)
    if column.null_count:
        row = int(np.flatnonzero(column.is_null().to_numpy())[0])
        raise DataError(_empty(path, row, name))
    return column
