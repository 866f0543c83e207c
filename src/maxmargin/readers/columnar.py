"""Tables stored by columns, read by pyarrow: Parquet, Arrow files and streams (Feather among them), Arrow data."""

from __future__ import annotations

import json
from collections.abc import Generator, Iterator
from contextlib import nullcontext, suppress
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from ..numerics.files import Fault, place_of
from .table import Block, Expected, Layout, check_finite, columns, repeated

_ARROW_FILE = b"ARROW1"  # the first bytes


def open_columnar(data: Any, expected: Expected) -> Layout:
    """Look at the columns of a Parquet or Arrow file, of a data set of pyarrow, or of a reader of record batches."""
    import pyarrow as pa

    needed, form = 0.0, "Arrow"
    if not isinstance(data, Path):
        schema = data.schema
    elif data.suffix.lower() == ".parquet":
        from pyarrow.parquet import read_metadata

        metadata, form = read_metadata(data), "Parquet"
        schema = metadata.schema.to_arrow_schema()
        needed = 16.0 * metadata.num_columns * metadata.num_rows
    else:
        needed = 2.0 * data.stat().st_size
        with pa.OSFile(str(data)) as file:
            schema = _arrow_reader(file).schema
    if (twice := repeated(list(schema.names))) is not None:
        raise Fault(f"two columns are named {twice!r}; give each column a name of its own.")
    row_names: set[str] = set()  # which pandas keeps in columns: no features, unless they are asked for
    with suppress(KeyError, ValueError, TypeError):
        index = json.loads((schema.metadata or {})[b"pandas"])["index_columns"]
        row_names = {name for name in index if isinstance(name, str)}
    features, label = columns(list(schema.names), expected, row_names)
    types = [schema.field(name).type for name in features]
    for name, type_ in zip(features, types, strict=True):
        if not (pa.types.is_integer(type_) or pa.types.is_floating(type_) or pa.types.is_boolean(type_)):
            raise Fault(
                f"column {name!r} holds {type_}, not numbers; turn it into numbers, leave it out with --drop, or name "
                "the label column with --label."
            )
    float32 = all(pa.types.is_float32(type_) for type_ in types)
    blocks = partial(_blocks, data, form == "Parquet", label, np.float32 if float32 else np.float64)
    return Layout(form, blocks, needed, features, label, len(features), float32, label is not None)


def _blocks(
    data: Any, parquet: bool, label: str | None, kind: Any, features: list[str], nbytes: int
) -> Generator[Block, None, None]:
    """Yield the rows in blocks of about `nbytes` bytes of numbers; raise Fault at the first that cannot be used.

    Memory is needed for a batch of Arrow data or a page of each column of a Parquet file, besides the block.
    """
    before, rows = 0, max(1, nbytes // (8 * len(features) + 8))
    for table in _tables(data, parquet, features if label is None else [*features, label], rows):
        table.validate(full=True)  # damaged offsets could otherwise point outside of the file
        X = np.empty((table.num_rows, len(features)), kind)
        for j, name in enumerate(features):
            X[:, j] = _complete(table.column(name), name, before).to_numpy()
        check_finite(X, features, before)
        yield X, None if label is None else _labels(table.column(label), label, before)
        before += len(X)


def _tables(data: Any, parquet: bool, wanted: list[str], rows: int) -> Iterator[Any]:
    """Yield tables of at most so many rows of the columns that are wanted."""
    import pyarrow as pa

    if parquet:
        from pyarrow.parquet import ParquetFile

        done = 0
        # of each column 256 kB: else the columns of a whole group of rows are read at once
        with ParquetFile(data, buffer_size=1 << 18, pre_buffer=False) as file:
            for batch in file.iter_batches(rows, columns=wanted):
                done += batch.num_rows
                yield pa.Table.from_batches([batch])
            if done != file.metadata.num_rows:
                raise Fault(
                    f"the file declares {file.metadata.num_rows} rows and holds {done}; copy it again."
                )
        return
    # no map of a file: if it were cut meanwhile, the process would end
    with pa.OSFile(str(data)) if isinstance(data, Path) else nullcontext() as file:
        batches: Any = data if file is None else _arrow_reader(file)
        if (
            not isinstance(data, Path) and place_of(data) == "files"
        ):  # a data set would read many batches ahead
            batches = data.to_batches(
                columns=wanted, batch_size=rows, batch_readahead=1, fragment_readahead=1
            )
        elif hasattr(batches, "num_record_batches"):  # of a file, not of a stream
            batches = map(batches.get_batch, range(batches.num_record_batches))
        for batch in batches:
            table = pa.Table.from_batches([batch]).select(wanted)
            for start in range(0, table.num_rows, rows):
                yield table.slice(start, rows)


def _arrow_reader(file: Any) -> Any:
    """Return the reader of an Arrow file or stream."""
    import pyarrow as pa

    first = file.read(len(_ARROW_FILE))
    file.seek(0)
    return (pa.ipc.open_file if first == _ARROW_FILE else pa.ipc.open_stream)(file)


def _labels(column: Any, name: str, before: int) -> np.ndarray | list[str]:
    """Return the label of each row: numbers as an array, or texts."""
    import pyarrow as pa

    kind = column.type.value_type if pa.types.is_dictionary(column.type) else column.type
    if pa.types.is_nested(kind):
        raise Fault(f"column {name!r} holds {kind}, not labels; name another column with --label.")
    # an entry of a dictionary may be missing
    y = _complete(column.cast(kind) if kind != column.type else column, name, before).to_numpy()
    if y.dtype != object:
        return y
    texts = [label.decode() if isinstance(label, bytes) else str(label) for label in y.tolist()]
    empty = next((i for i, text in enumerate(texts) if not text.strip()), None)
    if empty is not None:
        raise _empty(before + empty, name)
    return texts


def _complete(column: Any, name: str, before: int) -> Any:
    """Return a column; raise Fault where a value is missing."""
    if column.null_count:
        raise _empty(before + int(np.flatnonzero(column.is_null().to_numpy())[0]), name)
    return column


def _empty(row: int, name: str) -> Fault:
    """Return the fault of a missing value."""
    place = f"row {row + 1} (counted from 1), column {name!r}"
    return Fault(f"{place} is empty; fill it in or leave the row out.")
