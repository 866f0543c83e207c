"""Tables stored by columns, read by pyarrow: Parquet, and Arrow files and streams (Feather among them)."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from ..numerics.fault import Fault
from ..numerics.representable import first_rounded
from .files import require_memory
from .table import Expected, Table, check_finite, checked, columns, labels_of, repeated

_OLD_FEATHER, _ARROW_FILE = b"FEA1", b"ARROW1"  # the first bytes of files


def read_parquet(path: Path, expected: Expected) -> Table:
    """Read a table of numbers; the label column may hold strings."""
    return _read(path, expected, "Parquet")


def read_arrow(path: Path, expected: Expected) -> Table:
    """Read a table of numbers from an Arrow file or stream; the label column may hold strings."""
    with open(path, "rb") as file:
        if file.read(4) == _OLD_FEATHER:
            raise Fault("this is a Feather file of version 1; write it in version 2.")
    return _read(path, expected, "Arrow")


def _opened(path: Path, kind: str) -> tuple[Any, int, Callable[[list[str]], Any]]:
    """Return the schema of a file, its number of rows, and the function that reads columns by their names."""
    import pyarrow as pa

    if kind == "Parquet":
        from pyarrow.parquet import ParquetFile

        file = ParquetFile(path)
        return file.schema_arrow, file.metadata.num_rows, file.read
    source = pa.memory_map(str(path))
    opener = pa.ipc.open_file if source.read(len(_ARROW_FILE)) == _ARROW_FILE else pa.ipc.open_stream
    source.seek(0)
    table = opener(source).read_all()
    return table.schema, table.num_rows, table.select


def _read(path: Path, expected: Expected, kind: str) -> Table:
    """Read the features and the labels of a table."""
    try:
        import pyarrow as pa
    except ImportError:
        raise Fault(f"{kind} needs pyarrow: pip install 'maxmargin[arrow]'.") from None
    try:
        schema, rows, fetch = _opened(path, kind)
        names = list(schema.names)
        if (twice := repeated(names)) is not None:
            raise Fault(f"two columns are named {twice!r}; give each column a name of its own.")
        feature_names, label_name = columns(names, expected, _row_names(schema))
        wanted = feature_names if label_name is None else [*feature_names, label_name]
        # the matrix, and the table where it is not a map of the file
        require_memory((16.0 if kind == "Parquet" else 8.0) * rows * len(wanted))
        table = fetch(wanted)
        table.validate(full=True)  # damaged offsets could otherwise point outside of the file
    except pa.ArrowException as error:
        reason = str(error).split(". ")[0].rstrip(".")
        raise Fault(f"this is not a valid {kind} file, or is cut short ({reason}); copy it again.") from None
    if not table.num_rows:
        raise Fault("the file holds no rows.")
    X, rounded = _features(table, feature_names)
    y = None if label_name is None else _labels(table, label_name)
    return Table(X, y, feature_names, label_name, rounded=rounded)


def _row_names(schema: Any) -> set[str]:
    """Return the columns in which pandas keeps the names of rows: no features, unless they are asked for."""
    try:
        index = json.loads((schema.metadata or {})[b"pandas"])["index_columns"]
        return {name for name in index if isinstance(name, str)}
    except (KeyError, ValueError, TypeError):
        return set()


def _features(table: Any, names: list[str]) -> tuple[np.ndarray, str | None]:
    """Return the matrix of the features, and the first of their numbers that float64 does not hold."""
    import pyarrow as pa

    types = [table.schema.field(name).type for name in names]
    for name, type_ in zip(names, types, strict=True):
        if not (pa.types.is_integer(type_) or pa.types.is_floating(type_) or pa.types.is_boolean(type_)):
            raise Fault(
                f"column {name!r} holds {type_}, not numbers; turn it into numbers, leave it out with --drop, or name "
                "the label column with --label."
            )
    single = all(pa.types.is_float32(type_) for type_ in types)
    X = np.empty((table.num_rows, len(names)), np.float32 if single else np.float64)
    rounded = None
    for j, name in enumerate(names):
        values = _complete_column(table, name).to_numpy()
        rounded = first_rounded(values) if rounded is None else rounded
        X[:, j] = values
    check_finite(X, names)
    return X, None if rounded is None else str(rounded)


def _labels(table: Any, name: str) -> np.ndarray:
    """Return the column of the labels, as numbers where all of them are numbers."""
    import pyarrow as pa

    column = _complete_column(table, name)
    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    y = column.to_numpy()
    if y.dtype == object:
        texts = [label.decode() if isinstance(label, bytes) else str(label) for label in y]
        if not all(text.strip() for text in texts):
            raise _empty([bool(text.strip()) for text in texts].index(False), name)
        y = labels_of(texts)
    return checked(y)


def _complete_column(table: Any, name: str) -> Any:
    """Return a column; raise Fault where a value is missing."""
    column = table.column(name)
    if column.null_count:
        raise _empty(int(np.flatnonzero(column.is_null().to_numpy())[0]), name)
    return column


def _empty(row: int, name: str) -> Fault:
    place = f"row {row + 1} (counted from 1), column {name!r}"
    return Fault(f"{place} is empty; fill it in or leave the row out.")
