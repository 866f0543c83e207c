"""Text tables: CSV, TSV, and columns between spaces; parsed by pyarrow, or by Python where it refuses a row."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import islice
from math import isfinite
from pathlib import Path
from typing import Any

import numpy as np

from ..numerics.files import Fault
from .files import ending, open_data, sample
from .table import LABEL_NAMES, Block, Expected, columns, listed, repeated

SPACES = " "  # stands for runs of spaces and tabs
DELIMITERS = {"comma": ",", "semicolon": ";", "tab": "\t", "\\t": "\t", "space": SPACES, "whitespace": SPACES}
# as pandas, polars, R and spreadsheets write them
BOOLEANS = {"True": "1", "False": "0", "true": "1", "false": "0", "TRUE": "1", "FALSE": "0"}
_SNIFFED = 20  # lines
# bytes of text that pyarrow reads at a time, of which it keeps dozens: with 4 MB a text of 300 MB took 1.8 times as
# long as with 256 kB, and three times the memory
_BLOCK = 1 << 18


@dataclass(frozen=True)
class TextTable:
    """A text table, and the columns of it that are read.

    Attributes
    ----------
    path : Path
    delimiter : str
    header : bool
        Whether the first line holds the names.
    names : list of str
        Of all columns: x1, x2, ... where there is no header.
    features : list of str
        Names of the features, in the order of the model.
    label : str or None
        Name of the label column; None for a table without labels.
    needed : float
        Bytes of memory that the rows need.
    """

    path: Path
    delimiter: str
    header: bool
    names: list[str]
    features: list[str]
    label: str | None
    needed: float

    def remembered(self, expected: Expected) -> dict[str, Any]:
        """Return what a model has to know to read other files of this layout, as keywords of `Expected`."""
        header = {} if self.header and expected.header is None else {"header": self.header}
        return header if expected.delimiter is None else header | {"delimiter": expected.delimiter}


def delimiter_of(word: str) -> str:
    """Return the delimiter that ``--delimiter`` names; raise ValueError where there is no such delimiter."""
    sign = DELIMITERS.get(word, word)
    if len(sign) != 1 or sign.isalnum() or sign in '"+-.\r\n':
        raise ValueError(
            f"--delimiter must be comma, semicolon, tab, space (runs of spaces and tabs) or one sign such as '|'; got "
            f"{word!r}."
        )
    return sign


def text_table(path: Path, expected: Expected) -> TextTable:
    """Return the layout of a text table: as `expected` says, else as `csv.Sniffer` and the first line do."""
    text, ratio = sample(path)
    lines = text.decode("utf-8", "replace").splitlines(keepends=True)
    delimiter = expected.delimiter or ("\t" if ending(path) == ".tsv" else _sniffed(lines[:_SNIFFED]))
    names = next(filter(None, _fields(lines, delimiter)), [])
    header = _has_header(names, expected)
    if not header:
        names, known = [f"x{k}" for k in range(1, len(names) + 1)], expected.features
        names = [*known] if known is not None and len(known) == len(names) else names
    if (twice := repeated(names)) is not None:
        raise Fault(f"two columns are named {twice!r}; give each column a name of its own.", line=1)
    if "" in names and expected.features is None and not expected.use:
        raise Fault(
            f"column {names.index('') + 1} (counted from 1) has no name; give it one, or leave the column out (pandas "
            "writes row numbers there unless index=False).",
            line=1,
        )
    features, label = columns(names, expected)
    # numbers of 8 bytes each, an array that grows, and a copy of it
    needed = ratio * len(lines) * (30.0 * len(names) + 16.0)
    return TextTable(path, delimiter, header, names, features, label, needed)


def _sniffed(lines: list[str]) -> str:
    """Return the delimiter of lines by `csv.Sniffer`, a comma where it finds none."""
    try:
        return csv.Sniffer().sniff("".join(lines), ",;\t |").delimiter
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
    try:
        float(text)
    except ValueError:
        return False
    return True


def _fields(lines: Iterable[str], delimiter: str) -> Any:
    """Return the fields of lines (a reader of `csv`)."""
    if delimiter == SPACES:
        lines = (" ".join(line.split()) + "\n" for line in lines)
    return csv.reader(lines, delimiter=delimiter, strict=True)


def _rows(table: TextTable) -> Iterator[tuple[int, list[str]]]:
    """Yield the fields of the rows, each with the number of its last line."""
    with open_data(table.path) as raw, io.TextIOWrapper(raw, encoding="utf-8", newline="") as file:
        reader = _fields(file, table.delimiter)
        rows = (row for row in reader if row)
        for row in islice(rows, int(table.header), None):
            yield reader.line_num, row


def stream_delimited(table: TextTable, size: int) -> Iterator[Block]:
    """Read a text table block by block, of about `size` bytes of text, with or without labels.

    Raises
    ------
    Fault
        At the first line that is wrong.
    """
    done = 0
    try:
        for block in _arrow_blocks(table, size):
            yield block
            done += len(block.X)
        return
    except (ImportError, ValueError):  # no pyarrow, or a row that it refuses
        pass
    place = {name: k for k, name in enumerate(table.names)}
    rows = islice(_rows(table), done, None)
    while part := list(islice(rows, max(1, size // (8 * len(place))))):
        for line, row in part:
            if len(row) != len(place):
                raise Fault(f"the row has {len(row)} columns, and not {len(place)}; make them equal.", line)
        X = np.array(
            [_numbers(table, [row[place[one]] for one in table.features], line) for line, row in part]
        )
        if table.label is None:
            yield Block(X, None)
            continue
        texts, k = dict[str, int](), place[table.label]
        codes = [texts.setdefault(row[k].strip(), len(texts)) for _, row in part]
        if bad := [text for text in texts if not text or "\n" in text]:
            line = part[codes.index(texts[bad[0]])][0]
            raise Fault(f"the label (column {table.label!r}) is empty, or a quote is open; correct it.", line)
        yield Block(X, list(texts), np.array(codes))


def _arrow_blocks(table: TextTable, size: int) -> Iterator[Block]:
    """Yield blocks as pyarrow reads them; raise ImportError or ValueError where Python has to read on."""
    from pyarrow import csv as arrow

    if table.delimiter == SPACES:  # pyarrow does not read runs of spaces as one
        raise ValueError
    first = next(_rows(table), None)
    if first is None:
        return
    fields = dict(zip(table.names, first[1], strict=False))
    types = {
        name: "bool" if fields.get(name, "").strip() in BOOLEANS else "float64" for name in table.features
    }
    if table.label is not None:
        types[table.label] = "string"
    # numbers have fewer than 64 digits: a row fits
    read = arrow.ReadOptions(
        use_threads=False,
        block_size=max(min(size, _BLOCK), 64 * len(table.names)),
        skip_rows=int(table.header),
        column_names=table.names,
    )
    parse = arrow.ParseOptions(delimiter=table.delimiter, newlines_in_values=True)
    convert = arrow.ConvertOptions(
        column_types=types,
        include_columns=list(types),
        null_values=[],
        true_values=[text for text, number in BOOLEANS.items() if number == "1"],
        false_values=[text for text, number in BOOLEANS.items() if number == "0"],
    )
    with open_data(table.path) as file, arrow.open_csv(file, read, parse, convert) as batches:
        for batch in batches:
            if batch.num_rows:
                yield _arrow_block(batch, table)


def _arrow_block(batch: Any, table: TextTable) -> Block:
    """Return a batch as a block; raise ValueError where Python has to name a fault."""
    X = np.empty((batch.num_rows, len(table.features)))
    for j, name in enumerate(table.features):
        X[:, j] = batch.column(name).to_numpy(zero_copy_only=False)
    if not np.isfinite(X).all():
        raise ValueError
    if table.label is None:
        return Block(X, None)
    coded = batch.column(table.label).dictionary_encode()
    distinct: dict[str, int] = {}
    places = [distinct.setdefault(text.strip(), len(distinct)) for text in coded.dictionary.to_pylist()]
    if any(not text or "\n" in text for text in distinct):
        raise ValueError
    return Block(X, list(distinct), np.array(places, np.intp)[coded.indices.to_numpy()])


def _numbers(table: TextTable, texts: list[str], line: int) -> list[float]:
    """Return the features of a row; raise Fault at the first that is no number, or not finite."""
    try:
        numbers = [float(BOOLEANS.get(text.strip(), text)) for text in texts]
        if all(map(isfinite, numbers)):
            return numbers
    except ValueError:
        pass
    for name, text in zip(table.features, texts, strict=True):
        text = BOOLEANS.get(text.strip(), text.strip())
        if not (_is_number(text) and isfinite(float(text))):
            what = f"holds {text[:40]!r}, which is not a finite number" if text else "is empty"
            remedy = "correct it, leave the row out, or name the column with --drop or --label"
            raise Fault(f"column {name!r} {what}; {remedy}.", line)
    raise AssertionError
