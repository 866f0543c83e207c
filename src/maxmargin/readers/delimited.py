"""CSV and TSV with a header."""

from __future__ import annotations

import csv
import io
import re
from array import array
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain, islice
from math import isfinite, isnan
from pathlib import Path

import numpy as np

from ..numerics.fault import Fault
from ..numerics.plain_text import number_of
from ..numerics.representable import WHOLE, first_rounded_text
from .files import open_data, require_memory, sample
from .table import Expected, Table, columns, labels_of, listed, repeated

# Added to the text as its last line: the last row is this alone, unless a quote is still open.
END = "\0"
# as pandas, polars, R and spreadsheets write them
BOOLEANS = {"True": "1", "False": "0", "true": "1", "false": "0", "TRUE": "1", "FALSE": "0"}
_DECIMAL_COMMA = re.compile(r"[+-]?[0-9.]*,[0-9]+([eE][+-]?[0-9]+)?")


@dataclass(frozen=True)
class TextTable:
    """A text table, and the columns of it that are read.

    Attributes
    ----------
    path : Path
    delimiter : str
    names : list of str
        Of all columns.
    features : list of str
        Names of the features, in the order of the model.
    label : str or None
        Name of the label column; None for a table without labels.
    """

    path: Path
    delimiter: str
    names: list[str]
    features: list[str]
    label: str | None

    @property
    def places(self) -> list[int]:
        """The places of the features among the columns."""
        place = {name: k for k, name in enumerate(self.names)}
        return [place[name] for name in self.features]

    def fields(self) -> Iterator[tuple[int, list[str]]]:
        """Return `text_fields` of the file."""
        return text_fields(self.path, self.delimiter)


def read_delimited(path: Path, expected: Expected) -> Table:
    """Read a text table row by row; an error names the line and the column of the first fault.

    A feature that is True or False in the first row has to be so in all, and is 1 and 0.
    """
    delimiter, names, needed = header(path, expected)
    require_memory(needed)
    features, label = columns(names, expected)
    table = TextTable(path, delimiter, names, features, label)
    numbers = array("d")
    labels: list[str] = []
    for text, row in rows_of(table):
        labels.append(text)
        numbers.extend(row)
    if not numbers:
        raise Fault("the file holds a header, but no rows.")
    X = np.frombuffer(numbers).reshape(-1, len(features))
    rounded = None
    if (np.abs(X) >= WHOLE).any():
        places = table.places
        rounded = first_rounded_text(row[k] for _, row in table.fields() for k in places)
    if label is None:
        return Table(X, None, features, rounded=rounded)
    refuse_row_as_header(features, label, list(dict.fromkeys(labels)), expected)
    y = labels_of(labels)
    if y.dtype.kind == "f" and not np.isfinite(y).all():
        i = int(np.flatnonzero(~np.isfinite(y))[0])
        raise label_fault(path, delimiter, i, label, labels[i])
    return Table(X, y, features, label, rounded=rounded)


def label_fault(path: Path, delimiter: str, row: int, name: str, text: str) -> Fault:
    """Return the fault of a label that is NaN or infinite."""
    line, _ = next(islice(text_fields(path, delimiter), row, None))
    return Fault(f"the label (column {name!r}) is {text!r}; leave the row out.", line)


def rows_of(table: TextTable) -> Iterator[tuple[str, list[float]]]:
    """Yield label (empty where there is none) and features of each row; raise Fault at the first that is wrong."""
    names, features, label = table.names, table.features, table.label
    places, label_place = table.places, -1 if label is None else names.index(label)
    shared = {"": ""}  # one text for all rows of a class
    booleans: list[int] | None = None
    for line, row in table.fields():
        if len(row) != len(names):
            raise Fault(f"the row has {len(row)} columns, the header {len(names)}; make them equal.", line)
        text = ""
        if label is not None:
            text = row[label_place].strip()
            if text not in shared or not text:
                shared[text] = _label(text, label, line)
        texts = [row[k] for k in places]
        if booleans is None:
            booleans = [k for k, text_ in enumerate(texts) if text_.strip() in BOOLEANS]
        yield shared[text], _numbers(features, texts, booleans, line)


def header(path: Path, expected: Expected) -> tuple[str, list[str], float]:
    """Return the delimiter of a file, the names of its columns, and the bytes of memory that its rows need.

    Raises
    ------
    Fault
        If the header is missing.
    """
    text, ratio = sample(path)
    if b"\r" in text.strip() and b"\n" not in text:
        raise Fault("lines end with a carriage return alone; save the file with line feeds.")
    line = text.split(b"\n", 1)[0].decode("utf-8-sig")
    headers = {sign: next(csv.reader([line], delimiter=sign), []) for sign in ",;\t"}
    delimiter, names = max(headers.items(), key=lambda item: len(item[1]))
    _check_header(names, expected)
    # numbers of 8 bytes each, an array that grows, and a copy of it
    return delimiter, names, ratio * text.count(b"\n") * (30.0 * len(names) + 16.0)


def _check_header(names: list[str], expected: Expected) -> None:
    """Raise Fault where the first line is no header, or its names are not distinct."""
    if names and all(_number(name) is not None for name in names):
        raise Fault("the file needs a header with the names of the columns, but begins with numbers.", 1)
    if len(names) < (1 if expected.for_model else 2):
        raise Fault(
            f"the header {names!r} has one column; write a label and at least one feature, separated by commas, "
            "semicolons or tabs.",
            line=1,
        )
    empty = [k for k, name in enumerate(names, 1) if not name.strip()]
    if empty and expected.features is None and not expected.use:
        raise Fault(
            f"column {empty[0]} (counted from 1) has no name; give it one, or leave the column out (pandas writes row "
            "numbers there unless index=False).",
            line=1,
        )
    if (twice := repeated(names)) is not None:
        raise Fault(f"two columns are named {twice!r}; give each column a name of its own.", 1)


def refuse_row_as_header(features: list[str], label: str, classes: list[str], expected: Expected) -> None:
    """Raise Fault where the header seems to be a row: features named by numbers, and a class as the label's name.

    Where a model knows the columns, all rows may be of one class.
    """
    if not all(_number(name) is not None for name in features):
        return
    if label in classes:
        raise Fault(
            "the file needs a header with the names of the columns, but seems to begin with a row: its label "
            f"{label!r} occurs again.",
            line=1,
        )
    if len(classes) == 1 and not expected.for_model:
        raise Fault(
            f"all rows are of class {classes[0]!r}, and the names of the features, {listed(features)}, are numbers: "
            "if this line is a row, write a header with the names of the columns above it.",
            line=1,
        )


def text_fields(path: Path, delimiter: str) -> Iterator[tuple[int, list[str]]]:
    """Yield the fields of the rows below the header, each with the number of its last line.

    Raises
    ------
    Fault
        If a quote is still open at the end: the last row may be cut short.
    """
    with open_data(path) as raw, io.TextIOWrapper(raw, encoding="utf-8-sig", newline="") as file:
        # an open quote takes the line that follows with it
        reader = csv.reader(chain(file, ["\n", END]), delimiter=delimiter)
        next(reader)
        begin = reader.line_num
        for row in reader:
            if row and row[-1].endswith(END):
                if row == [END]:
                    return
                raise Fault("a quote is opened and never closed; copy the file again, or add it.", begin + 1)
            if row:
                yield reader.line_num, row
            begin = reader.line_num


def _label(text: str, name: str, line: int) -> str:
    """Return the text of a label; raise Fault where it is empty or goes over several lines."""
    if not text:
        raise Fault(f"the label (column {name!r}) is empty; leave the row out.", line)
    if "\n" in text:
        raise Fault(f"the label (column {name!r}) has several lines, {text[:20]!r}; close its quote.", line)
    return text


def _numbers(names: list[str], texts: list[str], booleans: list[int], line: int) -> list[float]:
    """Return the features of a row; raise Fault at the first that is no number, or not finite."""
    digits = texts
    if booleans:
        digits = texts.copy()
        for k in booleans:
            digits[k] = BOOLEANS.get(texts[k].strip(), "")
    try:
        numbers = list(map(float, digits))
        # 1_000 is a number in Python only; a sum of finite numbers may overflow
        if "_" not in "".join(digits) and (isfinite(sum(numbers)) or all(map(isfinite, numbers))):
            return numbers
    except ValueError:
        pass
    faults = (_fault(text, k in booleans, f"column {names[k]!r}") for k, text in enumerate(texts))
    raise Fault(f"{next(filter(None, faults))}.", line)


def _fault(text: str, boolean: bool, column: str) -> str | None:
    """Return the fault of the text of a feature in words; None if it is a finite number."""
    text = text.strip()
    shown, number = repr(text[:40]), _number(BOOLEANS.get(text, "") if boolean else text)
    if not text:
        return f"{column} is empty; fill it in or leave the row out"
    if number is None and boolean:
        return f"{column} begins with True or False, and {shown} is neither; write 1 and 0"
    if number is None and _DECIMAL_COMMA.fullmatch(text):
        return (
            f"{column}: {shown} has a decimal comma; write numbers with a decimal point (pandas reads such a file with "
            "read_csv(..., decimal=',') and writes points)"
        )
    if number is None:
        return f"{column}: {shown} is not a number; write numbers, or name the column with --drop or --label"
    if isnan(number):
        return f"{column} is {text!r}; fill it in or leave the row out"
    if not isfinite(number):
        return f"{column} is {shown}, which is not a finite float64 number; correct it or leave the row out"
    return None


def _number(text: str) -> float | None:
    try:
        return number_of(text, float)
    except ValueError:
        return None
