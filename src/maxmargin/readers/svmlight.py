"""Svmlight text: `label index:value index:value ...`, one row a line."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import AbstractContextManager, closing
from dataclasses import dataclass
from functools import partial
from io import BytesIO
from itertools import pairwise
from math import isfinite
from pathlib import Path
from typing import IO, Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from ..numerics.fault import Fault, number_of
from ..numerics.representable import WHOLE, first_rounded_text
from .files import Digest, data_errors, open_data, require_memory, sample
from .table import Expected, Table, whole

_LARGEST_INDEX = 2**31 - 1  # of 32 bits, as in the compiled loop
# bytes of text read at a time: more costs memory, less costs calls of the parser, and classes that are not named have
# to occur in the first block
BLOCK = 1 << 22
# bytes of text at a time where they are no blocks of a stream: the allocator reuses memory of this size; in parts of
# 4 MB, 42 MB of text took 21 ms to be read, not 3.5 ms, and in parts of 64 kB all of it took a tenth longer
PART = 1 << 20


class Rows(NamedTuple):
    """Rows of svmlight text.

    Attributes
    ----------
    labels, indptr, indices, values : ndarray
        The arrays of a CSR matrix; the indices are those of the text.
    lowest, highest : int
        The least and the largest index.
    rounded : str or None
        The first whole number among the values that float64 does not hold.
    """

    labels: np.ndarray
    indptr: np.ndarray
    indices: np.ndarray
    values: np.ndarray
    lowest: int
    highest: int
    rounded: str | None

    def matrix(self, first: int, width: int) -> Any:
        """Return the rows as a CSR matrix, whose columns count from `first`; the indices are changed in place."""
        np.subtract(self.indices, first, out=self.indices)
        return sp.csr_matrix((self.values, self.indices, self.indptr), (self.labels.size, width))


def read_svmlight(path: Path, expected: Expected) -> Table:
    """Read svmlight text; where it fails, a second, slower pass finds the line of the first fault."""
    text, ratio = sample(path)
    # labels, offsets, values and indices of blocks; beside them, one of these arrays of the whole at a time
    require_memory(ratio * (20.0 * text.count(b":") + 32.0 * text.count(b"\n")))
    width, first = expected.n_features, expected.first_index
    parts = [rows for rows, _, _ in text_rows(texts(path, PART), width, first) if rows.labels.size]
    if not parts:
        raise Fault("the file holds no rows.")
    rows = _joined(parts)
    first, width = columns_of(rows, width, first, lambda: open_data(path), 0)
    return Table(rows.matrix(first, width), whole(rows.labels), first_index=first, rounded=rows.rounded)


def _joined(parts: list[Rows]) -> Rows:
    """Return the rows of all parts; the list is emptied, so that no array is in memory twice for long."""
    offsets = np.cumsum([0, *(part.values.size for part in parts)])
    starts = [part.indptr[:-1] + offset for part, offset in zip(parts, offsets[:-1], strict=True)]
    indptr = np.concatenate([*starts, offsets[-1:]])
    lowest, highest = min(part.lowest for part in parts), max(part.highest for part in parts)
    rounded = next((part.rounded for part in parts if part.rounded), None)
    labels = np.concatenate([part.labels for part in parts])
    indices, values = [part.indices for part in parts], [part.values for part in parts]
    parts.clear()
    joined = np.concatenate(values)
    values.clear()
    return Rows(labels, indptr, np.concatenate(indices), joined, lowest, highest, rounded)


def texts(path: Path, size: int, digest: Digest | None = None) -> Generator[bytes, None, None]:
    """Yield whole lines of a file, about `size` bytes at a time; the last line may have no end."""
    with open_data(path, digest) as file:
        while text := file.read(size) + file.readline():
            yield text


def text_rows(
    texts: Iterable[bytes], width: int | None, first: int | None, lines: int = 0
) -> Iterator[tuple[Rows, bytes, int]]:
    """Yield the rows of each text of a file, with the text and the number of lines before.

    Parameters
    ----------
    texts : iterable of bytes
    width, first : int or None
        Number of columns and first index. Indices are compared with them where a line is wrong in any case;
        `columns_of` compares all.
    lines : int, default=0
        Lines of the file before the first text.

    Raises
    ------
    Fault
        At the first line that cannot be read.
    """
    for text in texts:
        rows, count = _compiled_rows(text)
        if rows is None:
            rows = _rows_by_words(
                checked_lines(BytesIO(text), lines, None if first is None else width, first)
            )
        yield rows, text, lines
        lines += count


def columns_of(
    rows: Rows,
    width: int | None,
    first: int | None,
    open_text: Callable[[], AbstractContextManager[IO[bytes]]],
    before: int,
) -> tuple[int, int]:
    """Return the first index and the number of columns, as they are given or as the rows have them.

    Raises
    ------
    Fault
        At the first line of the text that does not fit them; `before` lines come before the text.
    """
    if first is None:
        first = 0 if rows.lowest == 0 else 1
    if rows.lowest < first or (width is not None and rows.highest - first >= width):
        with open_text() as lines:
            for _ in checked_lines(lines, before, width, first):
                pass
        raise Fault("the file was changed while it was read; read it again.")
    return first, width or max(rows.highest - first, 0) + 1


def _compiled_rows(text: bytes) -> tuple[Rows | None, int]:
    """Return the rows of whole lines, and the number of lines.

    The rows are None where a line is wrong, or of a form that the compiled loop leaves out.
    """
    from ..engine.jit import writable
    from . import svmlight_loop as loop

    lines = text if text.endswith(b"\n") else text + b"\n"
    letters = writable(np.frombuffer(lines, np.uint8))
    most, length = loop.count(letters, ord(":")), loop.count(letters, ord("\n"))
    labels, indptr = np.empty(length), np.empty(length + 1, np.int64)
    indices, values = np.empty(most, np.int32), np.empty(most)
    # of these arrays, the system provides what is written to
    others, counts = np.empty((most + length, 3), np.int64), np.empty(loop.COUNTS, np.int64)
    if not loop.parse(letters, labels, indptr, indices, values, others, counts):
        return None, length
    rows, entries, left, lowest, highest = counts.tolist()
    rounded = None
    for begin, end, place in others[:left].tolist():
        word = lines[begin:end]
        number = _number(word, float)
        if number is None or not isfinite(number):
            return None, length
        if place < 0:
            labels[-1 - place] = number
            continue
        values[place] = number
        if rounded is None and abs(number) >= WHOLE:
            rounded = first_rounded_text([word.decode()])
    if (np.abs(labels[:rows]) >= WHOLE).any():
        return None, length
    found = Rows(
        labels[:rows], indptr[: rows + 1], indices[:entries], values[:entries], lowest, highest, rounded
    )
    return found, length


def _rows_by_words(lines: Iterable[list[bytes]]) -> Rows:
    """Return the rows of lines that are known to be right, given as their words."""
    labels, indptr, words = array("d"), array("q", [0]), []
    for label, *entries in lines:
        labels.append(float(label))
        words += [entry.split(b":") for entry in entries]
        indptr.append(len(words))
    indices = np.array([int(index) for index, _ in words], np.int32)
    values = np.array([float(value) for _, value in words])
    rounded = first_rounded_text(value.decode() for _, value in words)
    lowest, highest = (int(indices.min()), int(indices.max())) if words else (_LARGEST_INDEX, -1)
    return Rows(
        np.frombuffer(labels), np.frombuffer(indptr, np.int64), indices, values, lowest, highest, rounded
    )


@dataclass(frozen=True)
class Block(Table):
    """Some rows of a file that is read block by block.

    Attributes
    ----------
    X : CSR matrix of shape (n, width)
        Where no width was given, column j is the index j as it is written, and the width that of the block.
    first_index : {0, 1}
        The first index; 0 where no width was given.
    """

    y: np.ndarray


def stream_svmlight(
    path: Path, n_features: int | None = None, size: int = BLOCK, first_index: int | None = None
) -> Iterator[Block]:
    """Read svmlight text in blocks of whole lines, once, in memory that does not depend on its length.

    With `n_features`, indices count from `first_index`; without it from 1 unless the first block holds an index 0.

    Raises
    ------
    DataError
        At the first line that cannot be read, or goes beyond `n_features`.
    """
    # the traceback of an error keeps generators, which would keep the file open
    with data_errors(path), closing(texts(path, size)) as whole_lines:
        sample(path)  # raises where the file is no text
        first = 0 if n_features is None and first_index is None else first_index
        for rows, text, lines in text_rows(whole_lines, n_features, first):
            if rows.labels.size:
                first, width = columns_of(rows, n_features, first, partial(BytesIO, text), lines)
                yield Block(rows.matrix(first, width), whole(rows.labels), first_index=first)


def checked_lines(
    lines: Iterable[bytes], before: int, width: int | None, first: int | None
) -> Iterator[list[bytes]]:
    """Yield the label and the entries of each row; `before` lines of the file come before these.

    Raises
    ------
    Fault
        At the first line that cannot be read.
    """
    for number, line in enumerate(lines, before + 1):
        row, _, comment = line.partition(b"#")
        if b"\r" in comment.rstrip(b"\r\n"):
            raise Fault(
                "a carriage return is within a comment, and a row may follow it; save the file with line feeds.",
                number,
            )
        words = row.split()
        if len(words) > 1 and words[1].startswith(b"qid:") and _number(words[1][4:], int) is not None:
            del words[1]
        fault = _line_fault(words, width, first or 0) if words else None
        if fault is not None:
            cut = "" if line.endswith(b"\n") else " (the line has no end: the file may be cut short here)"
            raise Fault(f"{fault}{cut}.", number)
        if words:
            yield words


def _line_fault(words: list[bytes], width: int | None, first: int) -> str | None:
    """Return the reason why a line cannot be read, None where it can."""
    label, shown = _number(words[0], float), _shown(words[0])
    if b":" in words[0]:
        return f"the row begins with {shown}, not with a label; write a label first (0 if it is not known)"
    if b"," in words[0]:
        return f"the label {shown} is a list, and a row has one label; CSV files have names that end in .csv"
    if label is None:
        return f"the label {shown} is not a number; number the classes, or use CSV"
    if not abs(label) < WHOLE:
        if not isfinite(label):
            return f"the label {shown} is not finite; leave the row out"
        return f"the label {shown} is beyond 2^53, where labels are rounded to others; number the classes, or use CSV"
    indices = []
    for entry in words[1:]:
        text, colon, value = entry.partition(b":")
        index, number = _number(text, int), _number(value, float)
        if text == b"qid":
            return (
                f"{_shown(entry)} is no query, which is qid: and a whole number after the label; correct it"
            )
        if not colon:
            return f"{_shown(entry)} has no colon; write entries as index:value"
        if index is None:
            return f"the index of {_shown(entry)} is not a whole number; write entries as index:value"
        if number is None:
            return f"the value of {_shown(entry)} is not a number; write entries as index:value"
        if not isfinite(number):
            return f"the value of {_shown(entry)} is not finite; leave the entry or the row out"
        indices.append(index)
    return _index_fault(indices, width, first)


def _index_fault(indices: list[int], width: int | None, first: int) -> str | None:
    """Return the fault of the indices of a row in words, of their range or their order; None if there is none."""
    for index in indices:
        if index < first:
            return f"the index {index} is below {first}, the first index"
        if index > _LARGEST_INDEX:
            return f"the index {index} is too large; number the features up to {_LARGEST_INDEX}"
        if width is not None and index - first >= width:
            return (
                f"the index {index} is beyond the {width} features of the model (indices count from {first}); fit "
                "with a larger --n-features"
            )
    for before, after in pairwise(indices):
        if after <= before:
            return f"the index {after} comes after {before}; sort the entries of a row, each index once"
    return None


def _number(word: bytes, kind: type[int] | type[float]) -> Any:
    """Return the number of a text; None where it is none."""
    try:
        return number_of(word, kind)
    except ValueError:
        return None


def _shown(word: bytes) -> str:
    text = word.decode("utf-8", "replace")
    return repr(text if len(text) <= 40 else text[:37] + "...")
