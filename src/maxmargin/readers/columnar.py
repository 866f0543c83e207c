"""Tables stored by columns, read by pyarrow: Parquet, and Arrow files and streams (Feather among them)."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from ..numerics.fault import Fault
from ..numerics.representable import first_rounded
from .blocks import Block
from .files import Digest, require_memory
from .table import Expected, Table, check_finite, checked, columns, labels_of, repeated

_OLD_FEATHER, _ARROW_FILE = b"FEA1", b"ARROW1"  # the first bytes of files
# bytes of a column that are read at a time: more costs memory for each column, less costs reads
_BUFFER = 1 << 18


def read_parquet(path: Path, expected: Expected) -> Table:
    """Read a table of numbers; the label column may hold strings."""
    return _read(path, expected, "Parquet")


def read_arrow(path: Path, expected: Expected) -> Table:
    """Read a table of numbers from an Arrow file or stream; the label column may hold strings."""
    return _read(path, expected, "Arrow")


def _opened(path: Path, kind: str) -> tuple[Any, int, Callable[[list[str]], Any]]:
    """Return the schema of a file, its number of rows, and the function that reads columns by their names."""
    import pyarrow as pa

    if kind == "Parquet":
        from pyarrow.parquet import ParquetFile

        file = ParquetFile(path)
        return file.schema_arrow, file.metadata.num_rows, file.read
    table = _arrow_reader(pa.memory_map(str(path))).read_all()
    return table.schema, table.num_rows, table.select


def _arrow_reader(source: Any) -> Any:
    """Return the reader of an Arrow file or stream."""
    import pyarrow as pa

    first = source.read(len(_ARROW_FILE))
    if first.startswith(_OLD_FEATHER):
        raise Fault("this is a Feather file of version 1; write it in version 2.")
    source.seek(0)
    return (pa.ipc.open_file if first == _ARROW_FILE else pa.ipc.open_stream)(source)


@contextmanager
def arrow_faults(kind: str) -> Iterator[None]:
    """Turn errors of pyarrow, and its absence, into faults."""
    try:
        import pyarrow as pa
    except ImportError:
        raise Fault(f"{kind} needs pyarrow: pip install 'maxmargin[arrow]'.") from None
    try:
        yield
    except pa.ArrowException as error:
        reason = str(error).split(". ")[0].rstrip(".")
        raise Fault(f"this is not a valid {kind} file, or is cut short ({reason}); copy it again.") from None


def _read(path: Path, expected: Expected, kind: str) -> Table:
    """Read the features and the labels of a table."""
    with arrow_faults(kind):
        schema, rows, fetch = _opened(path, kind)
        feature_names, label_name = _columns(schema, expected)
        wanted = feature_names if label_name is None else [*feature_names, label_name]
        # the matrix, and the table where it is not a map of the file
        require_memory((16.0 if kind == "Parquet" else 8.0) * rows * len(wanted))
        table = fetch(wanted)
        table.validate(full=True)  # damaged offsets could otherwise point outside of the file
    _check_count(table.num_rows, rows)
    if not rows:
        raise Fault("the file holds no rows.")
    single = _check_types(schema, feature_names)
    X, rounded = _features(table, feature_names, single)
    if label_name is None:
        return Table(X, None, feature_names, rounded=rounded)
    labels, codes = _coded_labels(table, label_name)
    y = labels_of(labels) if isinstance(labels, list) else labels
    return Table(X, checked(y[codes]), feature_names, label_name, rounded=rounded)


def columns_of_file(path: Path, expected: Expected, kind: str) -> tuple[list[str], str | None, bool]:
    """Return the features of a file, its label column, and whether all features are float32."""
    with arrow_faults(kind):
        if kind == "Parquet":
            from pyarrow.parquet import read_schema

            schema = read_schema(path)
        else:
            from pyarrow import OSFile

            with OSFile(str(path)) as source:
                schema = _arrow_reader(source).schema
        return columns_of_schema(schema, expected)


def columns_of_schema(schema: Any, expected: Expected) -> tuple[list[str], str | None, bool]:
    """Return the features of a schema, its label column, and whether all features are float32."""
    features, label = _columns(schema, expected)
    return features, label, _check_types(schema, features)


def stream_columnar(
    path: Path,
    kind: str,
    features: list[str],
    label: str | None,
    single: bool,
    size: int,
    digest: Digest | None,
) -> Iterator[Block]:
    """Read a table block by block, of about `size` bytes of numbers; the digest is computed at the end.

    Memory is needed for a batch of an Arrow file or a page of each column of a Parquet file, besides the block.
    """
    bytes_of_file, wanted = path.stat().st_size, features if label is None else [*features, label]

    def tables() -> Iterator[Any]:
        """Yield the tables, and note the share that has been read."""
        for table, share in _batches(path, kind, wanted, max(1, size // (8 * len(features) + 8))):
            if digest is not None:
                digest.seen = int(share * bytes_of_file)
            yield table

    with arrow_faults(kind):
        yield from arrow_blocks(tables(), features, label, single)
    if digest is not None:
        digest.read(path)


def arrow_blocks(
    tables: Iterable[Any], features: list[str], label: str | None, single: bool
) -> Iterator[Block]:
    """Yield the rows of tables of Arrow; raise Fault at the first that cannot be used."""
    before = 0
    for table in tables:
        table.validate(full=True)
        X, rounded = _features(table, features, single, before)
        labels, codes = (None, slice(None)) if label is None else _coded_labels(table, label, before)
        before += len(X)
        yield Block(X, labels, codes, rounded)


def _batches(path: Path, kind: str, wanted: list[str], rows: int) -> Iterator[tuple[Any, float]]:
    """Yield tables of at most so many rows, and the share of the file that has been read."""
    import pyarrow as pa

    if kind == "Parquet":
        from pyarrow.parquet import ParquetFile

        done = 0
        # buffers: else the columns of a whole group of rows are read at once
        with ParquetFile(path, buffer_size=_BUFFER, pre_buffer=False) as file:
            for batch in file.iter_batches(rows, columns=wanted):
                done += batch.num_rows
                yield pa.Table.from_batches([batch]), done / max(file.metadata.num_rows, 1)
            _check_count(done, file.metadata.num_rows)
        return
    with pa.OSFile(str(path)) as source:  # a map of a file that is cut meanwhile would end the process
        reader = _arrow_reader(source)
        count = getattr(reader, "num_record_batches", None)  # of a file, not of a stream
        batches = reader if count is None else map(reader.get_batch, range(count))
        for k, batch in enumerate(batches):
            table = pa.Table.from_batches([batch]).select(wanted)
            share = source.tell() / source.size() if count is None else (k + 1) / count
            for start in range(0, table.num_rows, rows):
                yield table.slice(start, rows), share


def _check_count(found: int, declared: int) -> None:
    """Raise Fault where a file has other rows than it declares."""
    if found != declared:
        raise Fault(
            f"the file declares {declared} rows and holds {found}: it is damaged; copy or write it again."
        )


def _columns(schema: Any, expected: Expected) -> tuple[list[str], str | None]:
    """Return the names of the features and of the label."""
    names = list(schema.names)
    if (twice := repeated(names)) is not None:
        raise Fault(f"two columns are named {twice!r}; give each column a name of its own.")
    return columns(names, expected, _row_names(schema))


def _row_names(schema: Any) -> set[str]:
    """Return the columns in which pandas keeps the names of rows: no features, unless they are asked for."""
    try:
        index = json.loads((schema.metadata or {})[b"pandas"])["index_columns"]
        return {name for name in index if isinstance(name, str)}
    except (KeyError, ValueError, TypeError):
        return set()


def _check_types(schema: Any, names: list[str]) -> bool:
    """Return whether all features are float32; raise Fault where one holds no numbers."""
    import pyarrow as pa

    types = [schema.field(name).type for name in names]
    for name, type_ in zip(names, types, strict=True):
        if not (pa.types.is_integer(type_) or pa.types.is_floating(type_) or pa.types.is_boolean(type_)):
            raise Fault(
                f"column {name!r} holds {type_}, not numbers; turn it into numbers, leave it out with --drop, or name "
                "the label column with --label."
            )
    return all(pa.types.is_float32(type_) for type_ in types)


def _features(table: Any, names: list[str], single: bool, before: int = 0) -> tuple[np.ndarray, str | None]:
    """Return the matrix of the features, and the first of their numbers that float64 does not hold.

    `before` rows of the file come before these.
    """
    X = np.empty((table.num_rows, len(names)), np.float32 if single else np.float64)
    rounded = None
    for j, name in enumerate(names):
        values = _complete(table.column(name), name, before).to_numpy()
        rounded = first_rounded(values) if rounded is None else rounded
        X[:, j] = values
    check_finite(X, names, before)
    return X, None if rounded is None else str(rounded)


def _coded_labels(
    table: Any, name: str, before: int = 0
) -> tuple[np.ndarray | list[str], np.ndarray | slice]:
    """Return labels and the place of each row's label among them: all labels, or distinct texts."""
    import pyarrow as pa

    column = table.column(name)
    kind = column.type.value_type if pa.types.is_dictionary(column.type) else column.type
    if pa.types.is_nested(kind):
        raise Fault(f"column {name!r} holds {kind}, not labels; name another column with --label.")
    # an entry of a dictionary may be missing
    y = _complete(column.cast(kind) if kind != column.type else column, name, before).to_numpy()
    if y.dtype != object:
        return y, slice(None)
    texts: dict[str, int] = {}
    codes = np.empty(y.size, np.intp)
    for i, label in enumerate(y.tolist()):
        text = label.decode() if isinstance(label, bytes) else str(label)
        if not text.strip():
            raise _empty(before + i, name)
        codes[i] = texts.setdefault(text, len(texts))
    return list(texts), codes


def _complete(column: Any, name: str, before: int) -> Any:
    """Return a column; raise Fault where a value is missing."""
    if column.null_count:
        raise _empty(before + int(np.flatnonzero(column.is_null().to_numpy())[0]), name)
    return column


def _empty(row: int, name: str) -> Fault:
    place = f"row {row + 1} (counted from 1), column {name!r}"
    return Fault(f"{place} is empty; fill it in or leave the row out.")
