"""The layout of text tables: their delimiter, whether they have a header, and the names of their columns."""

from __future__ import annotations

import csv
import io
import re
import warnings
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any

from ..numerics.fault import Fault, number_of
from .files import DELIMITED, OTHER_THAN_TEXT, ending, kind_of, open_data, sample, without_mark
from .table import LABEL_NAMES, Expected, columns, listed, repeated

# Added to the text as its last line: the last row is this alone, unless a quote is still open.
END = "\0"
SPACES = " "  # stands for runs of spaces and tabs
DELIMITERS = {"comma": ",", "semicolon": ";", "tab": "\t", "\\t": "\t", "space": SPACES, "whitespace": SPACES}
SVMLIGHT, TABLE = "", ".csv"  # kinds of text, as ends of names
UNSURE = (".data",)  # ends of the names of text of either kind: those of the UCI repository
_ENTRY = re.compile(r"(qid|[+-]?\d+):[^:,;]*")  # of svmlight text


class DataNotice(UserWarning):
    """What was guessed about a file, and the option that overrules it."""


@dataclass(frozen=True)
class Layout:
    """The layout of a text table.

    Attributes
    ----------
    delimiter : str
    names : list of str
        Of all columns, all different: x1, x2, ... where there is no header.
    header : bool
        Whether the first line holds the names.
    needed : float
        Bytes of memory that the rows need.
    notices : tuple of str
        What was guessed or changed, for the user.
    repeated : set of str
        Names that the header has more than once; the first column of each keeps it, the others have numbers.
    """

    delimiter: str
    names: list[str]
    header: bool
    needed: float
    notices: tuple[str, ...]
    repeated: frozenset[str]

    def remembered(self, expected: Expected) -> dict[str, Any]:
        """Return what a model has to know to read other files of this layout, as keywords of `Expected`."""
        header = {} if self.header and expected.header is None else {"header": self.header}
        return header if expected.delimiter is None else header | {"delimiter": expected.delimiter}

    def announce(self, path: Path) -> None:
        """Warn of what was guessed."""
        for words in self.notices:
            warnings.warn(f"{path}: {words}", DataNotice, stacklevel=2)

    def columns(self, expected: Expected) -> tuple[list[str], str | None]:
        """Return `table.columns` of the names; raise Fault where several columns have the name of the label, too."""
        features, label = columns(self.names, expected)
        if label is not None and re.sub(r"\.\d+$", "", label) in self.repeated:
            name = re.sub(r"\.\d+$", "", label)
            raise Fault(
                f"the label column {label!r} is one of several that are named {name!r}; give the label a name of its "
                "own, or name another column with --label.",
                line=1,
            )
        return features, label


def delimiter_of(word: str) -> str:
    """Return the delimiter that ``--delimiter`` names; raise ValueError where there is no such delimiter."""
    sign = DELIMITERS.get(word, word)
    if len(sign) != 1 or sign.isalnum() or not sign.isascii() or sign in '"+-._\r\n\0':
        raise ValueError(
            f"--delimiter must be comma, semicolon, tab, space (runs of spaces and tabs) or one sign such as '|'; got "
            f"{word!r}."
        )
    return sign


def kind_of_file(path: Path, expected: Expected) -> str:
    """Return the end of the name that says the format of a file; TABLE or SVMLIGHT for text.

    The kind of a text is that of its name, or of its content where this or an option leaves it open.

    Raises
    ------
    Fault
        If the file cannot be read.
    """
    kind = kind_of(path)
    if kind in OTHER_THAN_TEXT:
        return kind
    if kind in DELIMITED:
        return TABLE
    if ending(path) not in UNSURE and expected.header is None and expected.delimiter is None:
        return SVMLIGHT
    return kind_of_text(sample(path)[0])


def kind_of_text(text: bytes) -> str:
    """Return the kind of a text by its first row: svmlight text has an entry such as 3:0.5 first, or after a label."""
    for line in without_mark(text).split(b"\n"):
        words = line.split(b"#", 1)[0].decode("utf-8", "replace").split()
        if any(_ENTRY.fullmatch(word) for word in words[:2]):
            return SVMLIGHT
        if len(words) > 1 or (words and not is_number(words[0])):
            return TABLE
    return SVMLIGHT  # labels without entries


def layout_of(path: Path, expected: Expected) -> Layout:
    """Return the layout of a text table: what `expected` says about it, and guesses from its first megabyte.

    Raises
    ------
    Fault
        If the header is missing where one is needed, or if a header and a row look alike.
    """
    text, ratio = sample(path)
    if b"\r" in text.strip() and b"\n" not in text:
        raise Fault("lines end with a carriage return alone; save the file with line feeds.")
    whole = without_mark(text[: text.rfind(b"\n") + 1] or text)
    whole.split(b"\n", 1)[0].decode()  # raises where the header is not in UTF-8
    lines = whole.decode("utf-8", "replace").split("\n")
    delimiter = expected.delimiter or _delimiter(lines)
    rows = fields_of(lines, delimiter)
    names = next(rows, [])
    header, notices = _has_header(names, rows, expected), list[str]()
    twice: frozenset[str] = frozenset()
    if header:
        _check_header(names, expected)
        if repeated(names) is not None:
            unique = distinct(names)
            twice = frozenset(name for name in names if names.count(name) > 1)
            changed = [new for old, new in zip(names, unique, strict=True) if old != new]
            notices.append(
                f"several columns have the same name ({listed(sorted(twice))}); the first keeps it, and the others are "
                f"named {listed(changed)}."
            )
            names = unique
    else:
        names = _numbered(len(names), expected)
        if expected.header is None:
            label = (
                "" if expected.for_model or expected.label else "; the label is the last, or that of --label"
            )
            notices.append(
                f"the first line seems to be a row and is read as one (--header if it is a header); the columns are "
                f"named {names[0]} to {names[-1]}{label}."
            )
    # numbers of 8 bytes each, an array that grows, and a copy of it
    needed = ratio * text.count(b"\n") * (30.0 * len(names) + 16.0)
    return Layout(delimiter, names, header, needed, tuple(notices), twice)


def fields_of(lines: Iterable[str], delimiter: str) -> Iterator[list[str]]:
    """Return the fields of lines (a reader of `csv`)."""
    if delimiter == SPACES:
        lines = (" ".join(line.split()) + "\n" for line in lines)
    return csv.reader(lines, delimiter=delimiter)


def text_fields(path: Path, layout: Layout) -> Iterator[tuple[int, list[str]]]:
    """Yield the fields of the rows, each with the number of its last line.

    Raises
    ------
    Fault
        If a quote is still open at the end: the last row may be cut short.
    """
    with open_data(path) as raw, io.TextIOWrapper(raw, encoding="utf-8-sig", newline="") as file:
        # an open quote takes the line that follows with it
        reader = fields_of(chain(_without_nul(file), ["\n", END]), layout.delimiter)
        if layout.header:
            next(reader)
        begin = reader.line_num  # pyright: ignore[reportAttributeAccessIssue] # of a reader of `csv`
        for row in reader:
            if row and row[-1].endswith(END):
                if row == [END]:
                    return
                raise Fault("a quote is opened and never closed; copy the file again, or add it.", begin + 1)
            if row:
                yield reader.line_num, row  # pyright: ignore[reportAttributeAccessIssue]
            begin = reader.line_num  # pyright: ignore[reportAttributeAccessIssue]


def _without_nul(lines: Iterable[str]) -> Iterator[str]:
    """Yield lines; raise Fault at the first with a NUL byte."""
    for number, line in enumerate(lines, 1):
        if "\0" in line:
            raise Fault("there is a NUL byte, which text has not; copy the file again, or delete it.", number)
        yield line


def distinct(names: list[str]) -> list[str]:
    """Return names with .1, .2, ... added to those that occur again, as pandas does."""
    taken, found = {*names}, list[str]()
    seen: set[str] = set()
    for name in names:
        new, k = name, 0
        while new in seen or (k and new in taken):
            k += 1
            new = f"{name}.{k}"
        seen.add(new)
        found.append(new)
    return found


def is_number(text: str) -> bool:
    """Return whether a text is a number."""
    try:
        number_of(text, float)
    except ValueError:
        return False
    return True


def _delimiter(lines: list[str]) -> str:
    """Return the delimiter that makes most columns of the first line; spaces where the others make one column.

    Spaces have to make as many columns of the second line, since the name of a single column may hold spaces.
    """
    fields = {sign: next(csv.reader(lines[:1], delimiter=sign), []) for sign in ",;\t"}
    best = max(fields, key=lambda sign: len(fields[sign]))
    words = [len(line.split()) for line in lines[:2] if line.strip()]
    if len(fields[best]) < 2 and words and min(words) == max(words) > 1:
        return SPACES
    return best


def _has_header(first: list[str], rows: Iterable[list[str]], expected: Expected) -> bool:
    """Return whether the first line is a header.

    Raises
    ------
    Fault
        If that cannot be guessed.
    """
    numbers = [text for text in first if is_number(text)]
    known = expected.features is not None and {*expected.features} <= {*first}
    if known and (expected.header is None or not numbers):
        return True
    if expected.header is not None or not first:
        return expected.header is not False
    if len(numbers) == len(first):
        for begin in (0, 1):
            if len(first) > 1 and [text.strip() for text in first] == [
                str(k) for k in range(begin, len(first) + begin)
            ]:
                raise Fault(
                    f"the first line, {listed(first)}, may be a header of numbers or a row; give --header or "
                    "--no-header.",
                    line=1,
                )
        return False
    if not numbers or any(name.strip().lower() in LABEL_NAMES for name in first):
        return True
    if repeated(numbers) is not None:  # no names of columns
        return False
    left = {k: text.strip() for k, text in enumerate(first) if not is_number(text)}
    for row in rows:
        left = {k: text for k, text in left.items() if k >= len(row) or row[k].strip() != text}
        if not left:  # each word occurs again in its column
            return False
    return True


def _numbered(count: int, expected: Expected) -> list[str]:
    """Return names of the columns of a table without a header: x1, x2, ..., or those of the model in its order.

    Raises
    ------
    Fault
        If a model knows its columns by other names, and it was only guessed that there is no header.
    """
    names, features = [f"x{k}" for k in range(1, count + 1)], expected.features
    if features is None:
        return names
    others = [name for name in names if name != expected.label]
    known = {*features} <= {*names}
    if expected.header is None and not known:
        raise Fault(
            f"the first line seems to be a row, and the model needs the columns {listed(features)}; write a header, or "
            "give --no-header if the columns are those of the model in this order.",
            line=1,
        )
    if count == len(features):
        return [*features]
    if not known and len(others) == len(features):
        renamed = dict(zip(others, features, strict=True))
        return [renamed.get(name, name) for name in names]
    return names


def _check_header(names: list[str], expected: Expected) -> None:
    """Raise Fault where the first line is no header."""
    if len(names) < (1 if expected.for_model else 2):
        raise Fault(
            f"the header {names!r} has one column; write a label and at least one feature, separated by commas, "
            "semicolons, tabs or spaces.",
            line=1,
        )
    empty = [k for k, name in enumerate(names, 1) if not name.strip()]
    if empty and expected.features is None and not expected.use:
        raise Fault(
            f"column {empty[0]} (counted from 1) has no name; give it one, or leave the column out (pandas writes row "
            "numbers there unless index=False).",
            line=1,
        )
