"""CSV and TSV with a header."""

from __future__ import annotations

import csv
import io
import re
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
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
_TRUTH = {word: float(word.lower() == "true") for word in ("True", "False", "true", "false", "TRUE", "FALSE")}
_DECIMAL_COMMA = re.compile(r"[+-]?[0-9.]*,[0-9]+([eE][+-]?[0-9]+)?")


def read_delimited(path: Path, expected: Expected) -> Table:
    """Read a text table; the line number of the first fault is found by a second, slower look.

    Features that are True or False in the first row have to be so in all, and are 1 and 0.
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
    features, at = columns(path, names, expected)
    codes: dict[str, int] = {}

    def code(text: str) -> int:
        if not text.strip() or "\n" in text:
            raise ValueError("no label, or one of several lines")
        return codes.setdefault(text.strip(), len(codes))

    truths = _truths(path, delimiter, features)
    converters: dict[int | str, Callable[[str], float]] = dict.fromkeys(truths, _truth)
    if at is not None:
        converters[at] = code
    used = features if at is None else [*features, at]
    every = len(used) == len(names)
    try:
        with _opened(path) as file, warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # a table without rows is refused below
            next(csv.reader(file, delimiter=delimiter))
            values = np.loadtxt(
                file,
                delimiter=delimiter,
                quotechar='"',
                comments=None,
                ndmin=2,
                encoding="utf-8",
                usecols=None if every else used,  # with None, a short or long line is an error
                converters=converters or None,
            )
        if not values.size:
            raise DataError(f"{path}: the file holds a header, but no rows.")
        if every and values.shape[1] != len(names):
            raise ValueError("lines and header have different numbers of columns")
        X = np.ascontiguousarray(values[:, features] if every else values[:, : len(features)])
        y = None
        if at is not None:
            if names[at] in codes and all(_number(names[k]) is not None for k in features):
                raise DataError(
                    f"{path}, line 1: the file needs a header with the names of the columns, and begins with a "
                    f"row, whose label {names[at]!r} occurs again."
                )
            if (
                len(codes) == 1
                and not expected.for_model
                and all(_number(names[k]) is not None for k in features)
            ):
                raise DataError(
                    f"{path}, line 1: all rows are of class {next(iter(codes))!r}, and the names of the features, "
                    f"{listed([names[k] for k in features])}, are numbers: if this line is a row, write a header with "
                    "the names of the columns above it."
                )
            y = labels_of(list(codes))[values[:, at if every else -1].astype(np.intp)]
        if not (np.isfinite(X).all() and (y is None or y.dtype.kind != "f" or np.isfinite(y).all())):
            raise ValueError("a value is not finite")
        _check_quotes(path, delimiter)
    except DataError:
        raise
    except UnicodeDecodeError:
        raise
    except ValueError as error:
        if isinstance(error.__cause__, KeyboardInterrupt):  # pressed in the middle of a number
            raise KeyboardInterrupt from None
        fault = _first_fault(path, delimiter, names, features, at, truths)
        raise DataError(fault or f"{path}: {str(error).rstrip('.')}.") from None
    rounded = _first_rounded(path, delimiter, features) if (np.abs(X) >= WHOLE).any() else None
    return Table(
        X, y, [names[k] for k in features], None if at is None else names[at], rounded=rounded
    )  # fmt: skip


def _truths(path: Path, delimiter: str, features: list[int]) -> set[int]:
    """Which features are True or False in the first row."""
    with _opened(path) as file, suppress(csv.Error):
        reader = csv.reader(file, delimiter=delimiter)
        next(reader)
        first: list[str] = next((row for row in reader if row), [])
        return {k for k in features if k < len(first) and first[k].strip() in _TRUTH}
    return set()


def _truth(text: str) -> float:
    try:
        return _TRUTH[text.strip()]
    except KeyError:
        raise ValueError("neither True nor False") from None


def _check_quotes(path: Path, delimiter: str) -> None:
    """Raise DataError where a quote is still open at the end: the last row may be cut short."""
    with open_data(path) as raw:
        if not any(b'"' in some for some in iter(partial(raw.read, 1 << 20), b"")):
            return
    begin, end, last = 0, 0, [_END]
    with _opened(path) as file, suppress(csv.Error):  # a value too long for csv is no row that is cut short
        # an open quote takes the line that follows with it, however irregular those before are
        reader = csv.reader(chain(file, ["\n", _END]), delimiter=delimiter)
        for row in reader:
            begin, end, last = end, reader.line_num, row
    if last != [_END]:
        raise DataError(
            f"{path}, line {begin + 1}: a quote is opened and never closed; the file may be cut short: "
            "copy or write it again."
        )


@contextmanager
def _opened(path: Path) -> Iterator[TextIO]:
    with open_data(path) as raw, io.TextIOWrapper(raw, encoding="utf-8-sig", newline="") as file:
        yield file


def _check_header(path: Path, names: list[str], expected: Expected) -> None:
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


def _first_rounded(path: Path, delimiter: str, features: list[int]) -> str | None:
    """The first whole number of these columns that float64 does not hold."""
    with _opened(path) as file:
        reader = csv.reader(file, delimiter=delimiter)
        next(reader)
        return first_rounded_text(row[k] for row in reader if row for k in features)


def _first_fault(
    path: Path, delimiter: str, names: list[str], features: list[int], at: int | None, truths: set[int]
) -> str | None:
    """The first line that cannot be read, and why."""
    with _opened(path) as file:
        reader = csv.reader(file, delimiter=delimiter)
        next(reader)
        for row in reader:
            fault = _fault(row, names, features, at, truths) if row else None
            if fault is not None:
                return f"{path}, line {reader.line_num}: {fault}."
    return None


def _fault(
    row: list[str], names: list[str], features: list[int], at: int | None, truths: set[int]
) -> str | None:
    if len(row) != len(names):
        return f"{len(row)} columns, but the header has {len(names)}"
    if at is not None and not row[at].strip():
        return f"the label (column {names[at]!r}) is empty; leave the row out"
    if at is not None and (label := _number(row[at])) is not None and not isfinite(label):
        return f"the label (column {names[at]!r}) is {row[at].strip()!r}; leave the row out"
    if at is not None and "\n" in row[at]:
        return (
            f"the label (column {names[at]!r}) that ends here has several lines, {row[at][:20]!r} and so on; close "
            "or remove the quote that it begins with"
        )
    for k in features:
        text = row[k].strip()
        number = _TRUTH.get(text) if k in truths else _number(text)
        if not text:
            return f"column {names[k]!r} is empty; fill it in or leave the row out"
        if number is None and k in truths:
            return (
                f"column {names[k]!r} begins with True or False, and {text[:40]!r} is neither; write 1 and 0"
            )
        if number is None and _DECIMAL_COMMA.fullmatch(text):
            return (
                f"column {names[k]!r}: {text[:40]!r} has a decimal comma; write numbers with a decimal point (pandas "
                "reads such a file with read_csv(..., decimal=',') and writes points)"
            )
        if number is None:
            return (
                f"column {names[k]!r}: {text[:40]!r} is not a number; write numbers, leave the "
                "column out with --drop, or name the label column with --label"
            )
        if isnan(number):
            return f"column {names[k]!r} is {text!r}; fill it in or leave the row out"
        if isinf(number):
            return f"column {names[k]!r} is {text[:40]!r}, no finite number of 64 bits; correct it or leave the row out"
    return None


def _number(text: str) -> float | None:
    try:
        return None if "_" in text else float(text)  # 1_000 is a number in Python only
    except ValueError:
        return None
