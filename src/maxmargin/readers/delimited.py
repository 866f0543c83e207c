"""Rows of text tables: CSV, TSV, and columns between spaces."""

from __future__ import annotations

import re
from array import array
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from math import isfinite, isnan
from pathlib import Path

import numpy as np

from ..numerics.fault import Fault, number_of
from ..numerics.labels import bad_label
from ..numerics.representable import WHOLE, first_rounded_text
from .files import require_memory
from .layout import Layout, is_number, layout_of, text_fields
from .table import Expected, Table, labels_of, listed

# as pandas, polars, R and spreadsheets write them
BOOLEANS = {"True": "1", "False": "0", "true": "1", "false": "0", "TRUE": "1", "FALSE": "0"}
_BLANKS = " \t\n\r\f\v"  # that `float` takes around ASCII text; `str.strip` takes control characters as well
_DECIMAL_COMMA = re.compile(r"[+-]?[0-9.]*,[0-9]+([eE][+-]?[0-9]+)?")


@dataclass(frozen=True)
class TextTable:
    """A text table, and the columns of it that are read.

    Attributes
    ----------
    path : Path
    layout : Layout
    features : list of str
        Names of the features, in the order of the model.
    label : str or None
        Name of the label column; None for a table without labels.
    """

    path: Path
    layout: Layout
    features: list[str]
    label: str | None

    @property
    def names(self) -> list[str]:
        """Names of all columns."""
        return self.layout.names

    @property
    def places(self) -> list[int]:
        """The places of the features among the columns."""
        place = {name: k for k, name in enumerate(self.names)}
        return [place[name] for name in self.features]

    def fields(self) -> Iterator[tuple[int, list[str]]]:
        """Return `text_fields` of the file."""
        return text_fields(self.path, self.layout)


def read_delimited(path: Path, expected: Expected) -> Table:
    """Read a text table row by row; an error names the line and the column of the first fault.

    A feature that is True or False in the first row has to be so in all, and is 1 and 0.
    """
    layout = layout_of(path, expected)
    require_memory(layout.needed)
    features, label = layout.columns(expected)
    layout.announce(path)
    table = TextTable(path, layout, features, label)
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
    refuse_row_as_header(table, list(dict.fromkeys(labels)), expected)
    y = labels_of(labels)
    if (found := bad_label(y)) is not None:
        raise label_fault(table, found[0], labels[found[0]])
    return Table(X, y, features, label, rounded=rounded, layout=layout.remembered(expected))


def label_fault(table: TextTable, row: int, text: str) -> Fault:
    """Return the fault of a label that is NaN or infinite."""
    line, _ = next(islice(table.fields(), row, None))
    return Fault(f"the label (column {table.label!r}) is {text!r}; leave the row out.", line)


def rows_of(table: TextTable) -> Iterator[tuple[str, list[float]]]:
    """Yield label (empty where there is none) and features of each row; raise Fault at the first that is wrong."""
    names, features, label = table.names, table.features, table.label
    places, label_place = table.places, -1 if label is None else names.index(label)
    shared = {"": ""}  # one text for all rows of a class
    booleans: list[int] | None = None
    for line, row in table.fields():
        if len(row) != len(names):
            first = "header" if table.layout.header else "first row"
            raise Fault(f"the row has {len(row)} columns, the {first} {len(names)}; make them equal.", line)
        text = ""
        if label is not None:
            text = row[label_place].strip()
            if text not in shared or not text:
                shared[text] = _label(text, label, line)
        texts = [row[k] for k in places]
        if booleans is None:
            booleans = [k for k, text_ in enumerate(texts) if text_.strip() in BOOLEANS]
        yield shared[text], _numbers(features, texts, booleans, line)


def refuse_row_as_header(table: TextTable, classes: list[str], expected: Expected) -> None:
    """Raise Fault where a guessed header seems to be a row: features named by numbers, and a class as the label's name.

    Where a model knows the columns, all rows may be of one class.
    """
    features = table.features
    if expected.header is not None or not table.layout.header or not all(map(is_number, features)):
        return
    if table.label in classes:
        raise Fault(
            f"the header seems to be a row: its label {table.label!r} occurs again; give --no-header if it is one, or "
            "--header.",
            line=1,
        )
    if len(classes) == 1 and not expected.for_model:
        raise Fault(
            f"all rows are of class {classes[0]!r}, and the names of the features, {listed(features)}, are numbers: "
            "give --no-header if this line is a row, or --header.",
            line=1,
        )


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
    text = text.strip(_BLANKS)
    shown, number = repr(text[:40]), _number(BOOLEANS.get(text, "") if boolean else text)
    if not text.strip():
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
