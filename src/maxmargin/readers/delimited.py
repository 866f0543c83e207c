"""Text tables: CSV, TSV, and columns between spaces."""

from __future__ import annotations

import csv
import io
from collections.abc import Generator, Iterable
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from itertools import chain, groupby, islice
from math import isfinite
from pathlib import Path
from typing import Any

import numpy as np

from ..numerics.files import Fault
from .files import ending, first_megabyte, open_data
from .table import LABEL_NAMES, Block, Expected, Layout, columns, listed, repeated

SPACES = " "  # stands for runs of spaces and tabs
DELIMITERS = {"comma": ",", "semicolon": ";", "tab": "\t", "\\t": "\t", "space": SPACES, "whitespace": SPACES}
# as pandas, polars, R and spreadsheets write them
BOOLEANS = {"True": 1.0, "False": 0.0, "true": 1.0, "false": 0.0, "TRUE": 1.0, "FALSE": 0.0}


@dataclass(frozen=True)
class _Lines:
    """The lines of a text table: their delimiter, the names of all columns, and what is in these.

    Attributes
    ----------
    path : Path
    delimiter : str
    header : bool
        Whether the first line holds the names.
    names : list of str
        Of all columns: x1, x2, ... where there is no header.
    booleans : list of int
        The places of features whose first cell is True or False: in these, and only in these, True is 1 and False 0.
    label : str or None
    """

    path: Path
    delimiter: str
    header: bool
    names: list[str]
    booleans: list[int]
    label: str | None


def delimiter_of(word: str) -> str:
    """Return the delimiter that ``--delimiter`` names; raise ValueError where there is no such delimiter."""
    sign = DELIMITERS.get(word, word)
    if len(sign) != 1 or sign.isalnum() or sign in '"+-.\r\n':
        raise ValueError(
            f"--delimiter must be comma, semicolon, tab, space (runs of spaces and tabs) or one sign such as '|'; got "
            f"{word!r}."
        )
    return sign


def open_table(path: Path, expected: Expected) -> Layout:
    """Look at the beginning of a text table: it is as `expected` says, else as `csv.Sniffer` and the first line do."""
    text, ratio = first_megabyte(path)
    lines = text.decode("utf-8", "replace").splitlines(keepends=True)
    delimiter = expected.delimiter or ("\t" if ending(path) == ".tsv" else _sniffed(lines[:20]))
    rows = filter(None, _fields(lines, delimiter))
    names = next(rows, [])
    header = _has_header(names, expected)
    booleans = [k for k, cell in enumerate(next(rows, []) if header else names) if cell.strip() in BOOLEANS]
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
    booleans = [k for k in booleans if k < len(names) and names[k] in {*features}]
    table = _Lines(path, delimiter, header, names, booleans, label)
    remembered: dict[str, Any] = {} if header and expected.header is None else {"header": header}
    if expected.delimiter is not None:
        remembered["delimiter"] = delimiter
    return Layout(
        "CSV", partial(_blocks, table), needed, features, label, len(features), has_labels=label is not None,
        remembered=remembered,
    )  # fmt: skip


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
    """Return whether Python reads a text as a number."""
    with suppress(ValueError):
        float(text)
        return True
    return False


def _number(text: str) -> float:
    """Return the number of a cell in a column of True and False."""
    return BOOLEANS[text.strip()] if text.strip() in BOOLEANS else float(text)


def _fields(lines: Iterable[str], delimiter: str) -> Any:
    """Return the fields of lines (a reader of `csv`)."""
    if delimiter == SPACES:
        lines = (" ".join(line.split()) + "\n" for line in lines)
    return csv.reader(lines, delimiter=delimiter, strict=True)


def _blocks(table: _Lines, features: list[str], nbytes: int) -> Generator[Block, None, None]:
    """Read a text table of about `nbytes` of numbers at a time; raise Fault at the first row that is wrong."""
    wanted, done = {*features}, 0
    # runs of features are read as numbers, other columns as text
    runs = [[*names] for _, names in groupby(table.names, lambda name: name in wanted or name)]
    types = [(f"{k}", float, len(run)) if run[0] in wanted else (f"{k}", "O") for k, run in enumerate(runs)]
    order = [name for name in table.names if name in wanted]
    places = [order.index(name) for name in features]
    options: Any = {
        "dtype": types, "delimiter": None if table.delimiter == SPACES else table.delimiter, "quotechar": '"',
        "comments": None, "converters": dict.fromkeys(table.booleans, _number), "ndmin": 1,
        "max_rows": max(1, nbytes // (8 * len(table.names))),
    }  # fmt: skip
    with open_data(table.path) as raw, io.TextIOWrapper(raw, encoding="utf-8") as file:
        lines = (line for line in file if line != "\n")
        if table.header:
            next(_fields(lines, table.delimiter))
        for line in lines:
            try:
                found: Any = np.loadtxt(chain([line], lines), **options)
            except ValueError:
                _raise_fault(table, wanted, done)
                raise
            parts = {run[0]: found[f"{k}"] for k, run in enumerate(runs)}
            X = np.hstack([part for name, part in parts.items() if name in wanted])[:, places]
            labels = None if table.label is None else [text.strip() for text in parts[table.label].tolist()]
            if not np.isfinite(X).all() or not all(text and "\n" not in text for text in {*(labels or ())}):
                _raise_fault(table, wanted, done)
            yield X, labels
            done += len(X)


def _raise_fault(table: _Lines, features: set[str], done: int) -> None:
    """Raise Fault at the first row that is wrong, after so many rows."""
    with open_data(table.path) as raw, io.TextIOWrapper(raw, encoding="utf-8") as file:
        reader = _fields(file, table.delimiter)
        for row in islice(filter(None, reader), table.header + done, None):
            if len(row) != len(table.names):
                fault = f"the row has {len(row)} columns, and not {len(table.names)}; make them equal."
                raise Fault(fault, reader.line_num)
            for k, (name, cell) in enumerate(zip(table.names, map(str.strip, row), strict=True)):
                if name == table.label and (not cell or "\n" in cell):
                    fault = f"the label (column {name!r}) is empty, or a quote is open; correct it."
                    raise Fault(fault, reader.line_num)
                known = k in table.booleans and cell in BOOLEANS
                if name in features and not known and not (_is_number(cell) and isfinite(float(cell))):
                    what = f"holds {cell[:40]!r}, which is not a finite number" if cell else "is empty"
                    remedy = "correct it, leave the row out, or name the column with --drop or --label"
                    raise Fault(f"column {name!r} {what}; {remedy}.", reader.line_num)
