"""Tables stored by columns, read by pyarrow: Parquet, Arrow files and streams (Feather among them), Arrow data."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from ..numerics.files import Fault, names_files
from .table import Block, Expected, check_finite, columns, repeated

_ARROW_FILE = b"ARROW1"  # the first bytes
# bytes of a column that are read at a time: more costs memory for each column, less costs reads
_BUFFER = 1 << 18


def columns_of_file(path: Path, expected: Expected, kind: str) -> tuple[list[str], str | None, bool]:
    """Return the features of a file, its label column, and whether all features are float32."""
    import pyarrow as pa

    if kind == "Parquet":
        from pyarrow.parquet import read_schema

        return columns_of_schema(read_schema(path), expected)
    with pa.OSFile(str(path)) as source:
        return columns_of_schema(_arrow_reader(source).schema, expected)


def columns_of_schema(schema: Any, expected: Expected) -> tuple[list[str], str | None, bool]:
    """Return the features of a schema, its label column, and whether all features are float32."""
    import pyarrow as pa

    names = list(schema.names)
    if (twice := repeated(names)) is not None:
        raise Fault(f"two columns are named {twice!r}; give each column a name of its own.")
    features, label = columns(names, expected, _row_names(schema))
    types = [schema.field(name).type for name in features]
    for name, type_ in zip(features, types, strict=True):
        if not (pa.types.is_integer(type_) or pa.types.is_floating(type_) or pa.types.is_boolean(type_)):
            raise Fault(
                f"column {name!r} holds {type_}, not numbers; turn it into numbers, leave it out with --drop, or name "
                "the label column with --label."
            )
    return features, label, all(pa.types.is_float32(type_) for type_ in types)


def stream_columnar(
    path: Path, kind: str, features: list[str], label: str | None, single: bool, size: int
) -> Iterator[Block]:
    """Read a table block by block, of about `size` bytes of numbers.

    Memory is needed for a batch of an Arrow file or a page of each column of a Parquet file, besides the block.
    """
    wanted = features if label is None else [*features, label]
    yield from _blocks(_tables(path, kind, wanted, _rows(size, features)), features, label, single)


def stream_arrow(
    data: Any, features: list[str], label: str | None, single: bool, size: int
) -> Iterator[Block]:
    """Read a data set of pyarrow, or a reader of record batches, block by block."""
    wanted, rows = features if label is None else [*features, label], _rows(size, features)
    if names_files(data):  # a data set would read many batches ahead
        data = data.to_batches(columns=wanted, batch_size=rows, batch_readahead=1, fragment_readahead=1)
    yield from _blocks(_slices(data, wanted, rows), features, label, single)


def bytes_needed(path: Path, kind: str, width: int) -> float:
    """Return an estimate of the bytes that the rows of a file take in memory while they are read."""
    if kind != "Parquet":
        return 2.0 * path.stat().st_size
    from pyarrow.parquet import read_metadata

    return 16.0 * width * read_metadata(path).num_rows


def _rows(size: int, features: list[str]) -> int:
    return max(1, size // (8 * len(features) + 8))


def _tables(path: Path, kind: str, wanted: list[str], rows: int) -> Iterator[Any]:
    """Yield tables of at most so many rows."""
    import pyarrow as pa

    if kind == "Parquet":
        from pyarrow.parquet import ParquetFile

        done = 0
        # buffers: else the columns of a whole group of rows are read at once
        with ParquetFile(path, buffer_size=_BUFFER, pre_buffer=False) as file:
            for batch in file.iter_batches(rows, columns=wanted):
                done += batch.num_rows
                yield pa.Table.from_batches([batch])
            if done != file.metadata.num_rows:
                raise Fault(
                    f"the file declares {file.metadata.num_rows} rows and holds {done}; copy it again."
                )
        return
    with pa.OSFile(str(path)) as source:  # a map of a file that is cut meanwhile would end the process
        reader = _arrow_reader(source)
        count = getattr(reader, "num_record_batches", None)  # of a file, not of a stream
        yield from _slices(reader if count is None else map(reader.get_batch, range(count)), wanted, rows)


def _slices(batches: Iterable[Any], wanted: list[str], rows: int) -> Iterator[Any]:
    """Yield the columns of batches as tables of at most so many rows."""
    import pyarrow as pa

    for batch in batches:
        table = pa.Table.from_batches([batch]).select(wanted)
        for start in range(0, table.num_rows, rows):
            yield table.slice(start, rows)


def _arrow_reader(source: Any) -> Any:
    """Return the reader of an Arrow file or stream."""
    import pyarrow as pa

    first = source.read(len(_ARROW_FILE))
    source.seek(0)
    return (pa.ipc.open_file if first == _ARROW_FILE else pa.ipc.open_stream)(source)


def _row_names(schema: Any) -> set[str]:
    """Return the columns in which pandas keeps the names of rows: no features, unless they are asked for."""
    try:
        index = json.loads((schema.metadata or {})[b"pandas"])["index_columns"]
        return {name for name in index if isinstance(name, str)}
    except (KeyError, ValueError, TypeError):
        return set()


def _blocks(tables: Iterable[Any], features: list[str], label: str | None, single: bool) -> Iterator[Block]:
    """Yield the rows of tables of Arrow; raise Fault at the first that cannot be used."""
    before = 0
    for table in tables:
        table.validate(full=True)  # damaged offsets could otherwise point outside of the file
        X = np.empty((table.num_rows, len(features)), np.float32 if single else np.float64)
        for j, name in enumerate(features):
            X[:, j] = _complete(table.column(name), name, before).to_numpy()
        check_finite(X, features, before)
        yield (
            Block(X, None) if label is None else Block(X, *_coded_labels(table.column(label), label, before))
        )
        before += len(X)


def _coded_labels(column: Any, name: str, before: int) -> tuple[np.ndarray | list[str], np.ndarray | slice]:
    """Return labels and the place of each row's label among them: all labels, or distinct texts."""
    import pyarrow as pa

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
