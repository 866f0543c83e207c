"""Tables of named columns, read by pyarrow: text, Parquet, Arrow files and streams (Feather among them), Arrow data."""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Callable, Generator, Iterator
from contextlib import nullcontext, suppress
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from ..numerics.files import Fault, place_of
from .files import ending, first_megabyte, open_data
from .table import LABEL_NAMES, Block, Expected, Layout, check_finite, columns, listed, repeated

SPACES = " "  # stands for runs of spaces and tabs
DELIMITERS = {"comma": ",", "semicolon": ";", "tab": "\t", "\\t": "\t", "space": SPACES, "whitespace": SPACES}
BOOLEANS = ("true", "false")  # in any case, as pandas, polars, R and spreadsheets write them


# of a table the type of pyarrow of each column by its name; and a function of the columns that are wanted, that of the
# labels among them or None, and a number of rows, which yields tables of about so many rows
Types = dict[str, Any]
Tables = Callable[[list[str], str | None, int], Iterator[Any]]


def delimiter_of(word: str) -> str:
    """Return the delimiter that ``--delimiter`` names; raise ValueError where there is no such delimiter."""
    sign = DELIMITERS.get(word, word)
    if len(sign) != 1 or sign.isalnum() or sign in '"+-.\r\n':
        raise ValueError(
            f"--delimiter must be comma, semicolon, tab, space (runs of spaces and tabs) or one sign such as '|'; got "
            f"{word!r}."
        )
    return sign


def open_table(data: Any, kind: str, expected: Expected) -> Layout:
    """Look at the columns of a file of a kind, of a data set of pyarrow, or of a reader of record batches (kind "")."""
    import pyarrow as pa

    form, remembered, row_names = "Arrow", dict[str, Any](), set[str]()
    if kind == ".csv":
        form, (types, tables, remembered) = "CSV", _text(data, expected)
    else:
        form = "Parquet" if kind == ".parquet" else "Arrow"
        schema, tables = _parquet(data) if kind == ".parquet" else _arrow(data)
        _require_different(schema.names)
        types, row_names = dict(zip(schema.names, schema.types, strict=True)), _row_names(schema)
    features, label = columns(list(types), expected, row_names)
    for name in features:
        type_ = types[name]
        if not (pa.types.is_integer(type_) or pa.types.is_floating(type_) or pa.types.is_boolean(type_)):
            raise Fault(
                f"column {name!r} holds {type_}, not numbers; turn it into numbers, leave it out with --drop, or name "
                "the label column with --label."
            )
    float32 = all(pa.types.is_float32(types[name]) for name in features)
    blocks = partial(_blocks, tables, label, np.float32 if float32 else np.float64)
    return Layout(form, blocks, features, label, len(features), float32, label is not None, remembered)


def _blocks(
    tables: Tables, label: str | None, kind: Any, features: list[str], nbytes: int
) -> Generator[Block, None, None]:
    """Yield the rows in blocks of about `nbytes` bytes of numbers; raise Fault at the first that cannot be used."""
    before, wanted = 0, features if label is None else [*features, label]
    for table in tables(wanted, label, max(1, nbytes // (8 * len(wanted)))):
        table.validate(full=True)  # damaged offsets could otherwise point outside of the file
        X = np.empty((table.num_rows, len(features)), kind)
        for j, name in enumerate(features):
            X[:, j] = table.column(name).to_numpy()  # missing values are NaN
        check_finite(X, features, before)
        yield X, None if label is None else _labels(table.column(label), label, before)
        before += len(X)


# text


def _text(path: Path, expected: Expected) -> tuple[Types, Tables, dict[str, Any]]:
    """Look at the beginning of a text table: it is as `expected` says, else as `csv.Sniffer` and the first line do."""
    import pyarrow as pa

    lines = first_megabyte(path).decode("utf-8", "replace").splitlines(keepends=True)
    delimiter = expected.delimiter or ("\t" if ending(path) == ".tsv" else _sniffed("".join(lines[:20])))
    if delimiter == SPACES:
        lines = [" ".join(line.split()) for line in lines]
    rows = filter(None, csv.reader(lines, delimiter=delimiter))
    names = next(rows, [])
    header = _has_header(names, expected)
    cells = next(rows, []) if header else names
    if not header:
        names, known = [f"x{k}" for k in range(1, len(names) + 1)], expected.features
        names = [*known] if known is not None and len(known) == len(names) else names
    if "" in names and expected.features is None and not expected.use:
        raise Fault(
            f"column {names.index('') + 1} (counted from 1) has no name; give it one, or leave the column out (pandas "
            "writes row numbers there unless index=False).",
            line=1,
        )
    _require_different(names)
    types = dict.fromkeys(names, pa.float64())
    types |= {
        name: pa.bool_() for name, cell in zip(names, cells, strict=False) if cell.strip().lower() in BOOLEANS
    }
    remembered: dict[str, Any] = {} if header and expected.header is None else {"header": header}
    if expected.delimiter is not None:
        remembered["delimiter"] = delimiter
    return types, partial(_text_tables, path, delimiter, header, types, max(map(len, lines))), remembered


def _sniffed(text: str) -> str:
    """Return the delimiter of text by `csv.Sniffer`, a comma where it finds none."""
    try:
        return csv.Sniffer().sniff(text, ",;\t |").delimiter
    except csv.Error:
        return ","


def _has_header(first: list[str], expected: Expected) -> bool:
    """Return whether the first line is a header; raise Fault where it holds numbers and words."""
    known = expected.features is not None and {*expected.features} <= {*first}
    if expected.header is not None or known:
        return expected.header is not False
    words = [text for text in first if not _is_number(text)]
    if 0 < len(words) < len(first) and {text.strip().lower() for text in words}.isdisjoint(LABEL_NAMES):
        raise Fault(
            f"the first line, {listed(first)}, may be a header or a row; give --header or --no-header.",
            line=1,
        )
    return bool(words)


def _is_number(text: str) -> bool:
    """Return whether Python reads a text as a number."""
    with suppress(ValueError):
        float(text)
        return True
    return False


def _text_tables(
    path: Path, delimiter: str, header: bool, types: dict[str, Any], longest: int, wanted: list[str], label: str | None,
    rows: int,
) -> Iterator[Any]:  # fmt: skip
    """Yield tables of about a megabyte of text each; raise Fault at the first cell that cannot be read."""
    import pyarrow as pa
    from pyarrow import compute
    from pyarrow import csv as text_tables

    read = text_tables.ReadOptions(
        use_threads=False, block_size=max(1 << 20, 8 * longest), column_names=None if header else list(types)
    )  # fmt: skip
    convert = text_tables.ConvertOptions(
        column_types=types | {name: pa.string() for name in {label} - {None}}, include_columns=wanted,
        null_values=[""], strings_can_be_null=False,
    )  # fmt: skip
    parse = text_tables.ParseOptions(delimiter=delimiter)
    with open_data(path) as file:
        source: Any = file
        if delimiter == SPACES:  # all at once: tables of this kind are small
            source = pa.BufferReader(b"\n".join(b" ".join(line.split()) for line in file))
        try:
            for batch in text_tables.open_csv(source, read, parse, convert):
                table = pa.Table.from_batches([batch])
                if label is not None:
                    words = compute.call_function("utf8_trim_whitespace", [table[label]])
                    table = table.drop_columns(label).append_column(label, words)
                yield table
        except pa.ArrowInvalid as error:
            found = re.search(
                r"(?:CSV column #(\d+): )?(?:CSV parse error: )?Row #(\d+): (.*)", str(error), re.DOTALL
            )
            column, line, what = (None, None, str(error)) if found is None else found.groups()
            name = "" if column is None else f"column {list(types)[int(column)]!r}: "
            remedy = "correct it, leave the row out, or name the column with --drop or --label"
            raise Fault(f"{name}{what}; {remedy}.", None if line is None else int(line)) from None


# Parquet and Arrow


def _parquet(path: Path) -> tuple[Any, Tables]:
    """Look at the columns of a Parquet file."""
    from pyarrow.parquet import read_schema

    return read_schema(path), partial(_parquet_tables, path)


def _parquet_tables(path: Path, wanted: list[str], label: str | None, rows: int) -> Iterator[Any]:
    """Yield tables of at most so many rows; a page of each column is in memory besides."""
    import pyarrow as pa
    from pyarrow.parquet import ParquetFile

    done = 0
    # of each column 256 kB: else the columns of a whole group of rows are read at once
    with ParquetFile(path, buffer_size=1 << 18, pre_buffer=False) as file:
        for batch in file.iter_batches(rows, columns=wanted):
            done += batch.num_rows
            yield pa.Table.from_batches([batch])
        if done != file.metadata.num_rows:
            raise Fault(f"the file declares {file.metadata.num_rows} rows and holds {done}; copy it again.")


def _arrow(data: Any) -> tuple[Any, Tables]:
    """Look at the columns of an Arrow file or stream, of a data set of pyarrow, or of a reader of record batches."""
    import pyarrow as pa

    if not isinstance(data, Path):
        return data.schema, partial(_arrow_tables, data)
    with pa.OSFile(str(data)) as file:
        return _reader(file).schema, partial(_arrow_tables, data)


def _arrow_tables(data: Any, wanted: list[str], label: str | None, rows: int) -> Iterator[Any]:
    """Yield tables of at most so many rows; a batch is in memory besides."""
    import pyarrow as pa

    # no map of a file: if it were cut meanwhile, the process would end
    with pa.OSFile(str(data)) if isinstance(data, Path) else nullcontext() as file:
        batches: Any = data if file is None else _reader(file)
        if file is None and place_of(data) == "files":  # a data set, which would read many batches ahead
            batches = batches.to_batches(
                columns=wanted, batch_size=rows, batch_readahead=1, fragment_readahead=1
            )
        elif hasattr(batches, "num_record_batches"):  # of a file, not of a stream
            batches = map(batches.get_batch, range(batches.num_record_batches))
        for batch in batches:
            table = pa.Table.from_batches([batch]).select(wanted)
            for start in range(0, table.num_rows, rows):
                yield table.slice(start, rows)


def _reader(file: Any) -> Any:
    """Return the reader of an Arrow file or stream."""
    import pyarrow as pa

    first = file.read(6)
    file.seek(0)
    return (pa.ipc.open_file if first == b"ARROW1" else pa.ipc.open_stream)(file)


def _row_names(schema: Any) -> set[str]:
    """Return the columns in which pandas keeps the names of rows."""
    with suppress(KeyError, ValueError, TypeError):
        index = json.loads((schema.metadata or {})[b"pandas"])["index_columns"]
        return {name for name in index if isinstance(name, str)}
    return set()


def _require_different(names: list[str]) -> None:
    """Raise Fault where two columns have one name."""
    if (twice := repeated(names)) is not None:
        raise Fault(f"two columns are named {twice!r}; give each column a name of its own.")


# cells


def _labels(column: Any, name: str, before: int) -> np.ndarray | list[str]:
    """Return the label of each row: numbers as an array, or texts."""
    import pyarrow as pa

    kind = column.type.value_type if pa.types.is_dictionary(column.type) else column.type
    if pa.types.is_nested(kind):
        raise Fault(f"column {name!r} holds {kind}, not labels; name another column with --label.")
    y = (column.cast(kind) if kind != column.type else column).to_numpy()
    if y.dtype != object:
        return y
    texts = [
        "" if label is None else label.decode() if isinstance(label, bytes) else str(label)
        for label in y.tolist()
    ]
    wrong = next((i for i, text in enumerate(texts) if not text.strip() or "\n" in text), None)
    if wrong is not None:
        place = f"row {before + wrong + 1} (counted from 1), column {name!r}"
        raise Fault(f"{place} is empty, or a quote is open; correct it, fill it in, or leave the row out.")
    return texts
