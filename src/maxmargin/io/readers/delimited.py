"""CSV and TSV with a header."""

from __future__ import annotations

import csv
import io
import re
import warnings
from collections.abc import Callable, Generator, Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from itertools import chain
from math import isfinite, isinf, isnan
from pathlib import Path
from typing import TextIO

import numpy as np

from ...numerics.representable import WHOLE, first_rounded_text
from .files import open_data, require_memory, sample
from .table import DataError, Expected, Table, columns, labels_of, listed

_END = "end"  # stands after the last line
# as pandas, polars, R and spreadsheets write them
_BOOLEANS = {"True": 1.0, "False": 0.0, "true": 1.0, "false": 0.0, "TRUE": 1.0, "FALSE": 0.0}
_DECIMAL_COMMA = re.compile(r"[+-]?[0-9.]*,[0-9]+([eE][+-]?[0-9]+)?")


@dataclass(frozen=True)
class _Layout:
    """The columns of a file.

    Attributes
    ----------
    path : Path
    delimiter : str
    names : list of str
        Of all columns.
    features : list of int
        Places of the features.
    label : int or None
        Place of the labels.
    booleans : set of int
        Places of features that are True or False in the first row: they have to be so in all, and are 1 and 0.
    """

    path: Path
    delimiter: str
    names: list[str]
    features: list[int]
    label: int | None
    booleans: set[int]

    @property
    def feature_names(self) -> list[str]:
        return [self.names[k] for k in self.features]

    def rows(self) -> Generator[tuple[int, list[str]], None, None]:
        """Yield the fields of the rows below the header, each with the number of its last line."""
        with _opened(self.path) as file:
            reader = csv.reader(file, delimiter=self.delimiter)
            next(reader)
            for row in reader:
                if row:
                    yield reader.line_num, row


class _LabelCodes(dict[str, int]):
    """Numbers of the labels, in the order of their first occurrence."""

    def code(self, text: str) -> int:
        if not text.strip() or "\n" in text:
            raise ValueError("no label, or one of several lines")
        return self.setdefault(text.strip(), len(self))


def read_delimited(path: Path, expected: Expected) -> Table:
    """Read a text table.

    NumPy reads the numbers; where it fails, a second, slower pass finds the line and the column of the first fault.
    """
    layout = _layout(path, expected)
    codes = _LabelCodes()
    try:
        X, label_codes = _numbers(layout, codes)
        y = None
        if label_codes is not None:
            _refuse_row_as_header(layout, codes, expected)
            y = labels_of(list(codes))[label_codes]
        if not (np.isfinite(X).all() and (y is None or y.dtype.kind != "f" or np.isfinite(y).all())):
            raise ValueError("a value is not finite")
        _check_quotes(layout)
    except (DataError, UnicodeDecodeError):
        raise
    except ValueError as error:
        if isinstance(error.__cause__, KeyboardInterrupt):  # pressed in the middle of a number
            raise KeyboardInterrupt from None
        raise DataError(_first_fault(layout) or f"{path}: {str(error).rstrip('.')}.") from None
    label_name = None if layout.label is None else layout.names[layout.label]
    rounded = _first_rounded(layout) if (np.abs(X) >= WHOLE).any() else None
    return Table(X, y, layout.feature_names, label_name, rounded=rounded)


def _layout(path: Path, expected: Expected) -> _Layout:
    """Read the header and the first row.

    Raises
    ------
    DataError
        If the header is missing or does not fit what is expected, or the data do not fit the memory.
    """
    start = sample(path)
    if b"\r" in start.text.strip() and b"\n" not in start.text:
        raise DataError(
            f"{path}: lines end with a carriage return alone, as on Macs of old; save it with line feeds."
        )
    line = start.text.split(b"\n", 1)[0].decode("utf-8-sig")
    headers = {sign: next(csv.reader([line], delimiter=sign), []) for sign in ",;\t"}
    delimiter, names = max(headers.items(), key=lambda item: len(item[1]))
    _check_header(path, names, expected)
    # numbers of 8 bytes each, an array that grows, and a copy of its features
    rows = start.ratio * start.text.count(b"\n")
    require_memory(path, rows * (30.0 * len(names) + 16.0))
    features, label = columns(path, names, expected)
    first: list[str] = []
    rows_below = _Layout(path, delimiter, names, features, label, set()).rows()
    with closing(rows_below), suppress(csv.Error):
        _, first = next(rows_below, (0, first))
    booleans = {k for k in features if k < len(first) and first[k].strip() in _BOOLEANS}
    return _Layout(path, delimiter, names, features, label, booleans)


def _check_header(path: Path, names: list[str], expected: Expected) -> None:
    """Raise DataError where the first line is no header, or its names are not distinct."""
    if names and all(_number(name) is not None for name in names):
        raise DataError(
            f"{path}, line 1: the file needs a header with the names of the columns, and begins with numbers."
        )
    if len(names) < (1 if expected.for_model else 2):
        raise DataError(
            f"{path}, line 1: the header {names!r} is one column; columns are separated by commas, "
            "semicolons or tabs, and there have to be a label and a feature."
        )
    for k, name in enumerate(names):
        if not name.strip() and expected.features is None and not expected.use:
            raise DataError(
                f"{path}, line 1: column {k + 1} has no name; give it one, or leave the column out "
                "(pandas numbers the rows there unless told index=False)."
            )
        if name in names[:k]:
            raise DataError(
                f"{path}, line 1: two columns are named {name!r}; a header gives each its own name."
            )


def _numbers(layout: _Layout, codes: _LabelCodes) -> tuple[np.ndarray, np.ndarray | None]:
    """Return the features, and the codes of the labels where there are any.

    Raises
    ------
    ValueError
        If a line or a field cannot be read.
    """
    features, label = layout.features, layout.label
    converters: dict[int | str, Callable[[str], float]] = dict.fromkeys(layout.booleans, _boolean)
    if label is not None:
        converters[label] = codes.code
    used = features if label is None else [*features, label]
    all_used = len(used) == len(layout.names)
    with _opened(layout.path) as file, warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # a table without rows is refused below
        next(csv.reader(file, delimiter=layout.delimiter))
        values = np.loadtxt(
            file,
            delimiter=layout.delimiter,
            quotechar='"',
            comments=None,
            ndmin=2,
            encoding="utf-8",
            usecols=None if all_used else used,  # with None, a short or long line is an error
            converters=converters or None,
        )
    if not values.size:
        raise DataError(f"{layout.path}: the file holds a header, but no rows.")
    if all_used and values.shape[1] != len(layout.names):
        raise ValueError("lines and header have different numbers of columns")
    X = np.ascontiguousarray(values[:, features] if all_used else values[:, : len(features)])
    return X, None if label is None else values[:, label if all_used else -1].astype(np.intp)


def _boolean(text: str) -> float:
    try:
        return _BOOLEANS[text.strip()]
    except KeyError:
        raise ValueError("neither True nor False") from None


def _refuse_row_as_header(layout: _Layout, codes: _LabelCodes, expected: Expected) -> None:
    """Raise DataError where the header seems to be a row: features named by numbers, and a class as the label's name.

    Where a model knows the columns, all rows may be of one class.
    """
    assert layout.label is not None
    if not all(_number(name) is not None for name in layout.feature_names):
        return
    if layout.names[layout.label] in codes:
        raise DataError(
            f"{layout.path}, line 1: the file needs a header with the names of the columns, and begins with a "
            f"row, whose label {layout.names[layout.label]!r} occurs again."
        )
    if len(codes) == 1 and not expected.for_model:
        raise DataError(
            f"{layout.path}, line 1: all rows are of class {next(iter(codes))!r}, and the names of the features, "
            f"{listed(layout.feature_names)}, are numbers: if this line is a row, write a header with "
            "the names of the columns above it."
        )


def _check_quotes(layout: _Layout) -> None:
    """Raise DataError where a quote is still open at the end: the last row may be cut short."""
    with open_data(layout.path) as raw:
        if not any(b'"' in block for block in iter(partial(raw.read, 1 << 20), b"")):
            return
    begin, end, last = 0, 0, [_END]
    with _opened(layout.path) as file, suppress(csv.Error):  # a value too long for csv is no row cut short
        # an open quote takes the line that follows with it, however irregular those before are
        reader = csv.reader(chain(file, ["\n", _END]), delimiter=layout.delimiter)
        for row in reader:
            begin, end, last = end, reader.line_num, row
    if last != [_END]:
        raise DataError(
            f"{layout.path}, line {begin + 1}: a quote is opened and never closed; the file may be cut short: "
            "copy or write it again."
        )


@contextmanager
def _opened(path: Path) -> Iterator[TextIO]:
    with open_data(path) as raw, io.TextIOWrapper(raw, encoding="utf-8-sig", newline="") as file:
        yield file


def _first_rounded(layout: _Layout) -> str | None:
    """Return the first whole number among the features that float64 does not hold."""
    return first_rounded_text(row[k] for _, row in layout.rows() for k in layout.features)


def _first_fault(layout: _Layout) -> str | None:
    """Return the first line that cannot be read, and the reason."""
    for line, row in layout.rows():
        fault = _row_fault(row, layout) or next(
            (found for k in layout.features if (found := _feature_fault(row[k].strip(), k, layout))), None
        )
        if fault is not None:
            return f"{layout.path}, line {line}: {fault}."
    return None


def _row_fault(row: list[str], layout: _Layout) -> str | None:
    """Return what is wrong with the number of columns, or with the label."""
    if len(row) != len(layout.names):
        return f"{len(row)} columns, but the header has {len(layout.names)}"
    if layout.label is None:
        return None
    text, name = row[layout.label], layout.names[layout.label]
    if not text.strip():
        return f"the label (column {name!r}) is empty; leave the row out"
    if (number := _number(text)) is not None and not isfinite(number):
        return f"the label (column {name!r}) is {text.strip()!r}; leave the row out"
    if "\n" in text:
        return (
            f"the label (column {name!r}) that ends here has several lines, {text[:20]!r} and so on; close "
            "or remove the quote that it begins with"
        )
    return None


def _feature_fault(text: str, k: int, layout: _Layout) -> str | None:
    """Return what is wrong with a value of column `k`."""
    column, shown = f"column {layout.names[k]!r}", repr(text[:40])
    number = _BOOLEANS.get(text) if k in layout.booleans else _number(text)
    if not text:
        return f"{column} is empty; fill it in or leave the row out"
    if number is None and k in layout.booleans:
        return f"{column} begins with True or False, and {shown} is neither; write 1 and 0"
    if number is None and _DECIMAL_COMMA.fullmatch(text):
        return (
            f"{column}: {shown} has a decimal comma; write numbers with a decimal point (pandas "
            "reads such a file with read_csv(..., decimal=',') and writes points)"
        )
    if number is None:
        return (
            f"{column}: {shown} is not a number; write numbers, leave the "
            "column out with --drop, or name the label column with --label"
        )
    if isnan(number):
        return f"{column} is {text!r}; fill it in or leave the row out"
    if isinf(number):
        return f"{column} is {shown}, no finite number of 64 bits; correct it or leave the row out"
    return None


def _number(text: str) -> float | None:
    try:
        return None if "_" in text else float(text)  # 1_000 is a number in Python only
    except ValueError:
        return None
