"""Svmlight text: `label index:value index:value ...`, one row a line."""

from __future__ import annotations

from collections.abc import Generator, Iterable, Iterator
from contextlib import closing
from math import isfinite
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from ..numerics.files import Fault
from .files import data_errors, open_data, require_memory, sample
from .table import Expected, Table, check_labels, whole

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
    """

    labels: np.ndarray
    indptr: np.ndarray
    indices: np.ndarray
    values: np.ndarray
    lowest: int
    highest: int

    def matrix(self, first: int, width: int) -> Any:
        """Return the rows as a CSR matrix, whose columns count from `first`; the indices are changed in place."""
        np.subtract(self.indices, first, out=self.indices)
        return sp.csr_matrix((self.values, self.indices, self.indptr), (self.labels.size, width))


class RowBlock(NamedTuple):
    """Some rows of a stream: a CSR matrix, their labels, and the first index of the text."""

    X: Any
    y: np.ndarray
    first_index: int


def read_svmlight(path: Path, expected: Expected) -> Table:
    """Read svmlight text."""
    text, ratio = sample(path)
    # labels, offsets, values and indices of blocks; beside them, one of these arrays of the whole at a time
    require_memory(ratio * (20.0 * text.count(b":") + 32.0 * text.count(b"\n")))
    width, first = expected.n_features, expected.first_index
    parts = [rows for rows in text_rows(texts(path, PART), width, first) if rows.labels.size]
    if not parts:
        raise Fault("the file holds no rows.")
    rows = _joined(parts)
    check_labels(rows.labels)
    first, width = columns_of(rows.lowest, rows.highest, width, first)
    return Table(rows.matrix(first, width), whole(rows.labels), first_index=first)


def _joined(parts: list[Rows]) -> Rows:
    """Return the rows of all parts; the list is emptied, so that no array is in memory twice for long."""
    offsets = np.cumsum([0, *(part.values.size for part in parts)])
    starts = [part.indptr[:-1] + offset for part, offset in zip(parts, offsets[:-1], strict=True)]
    indptr = np.concatenate([*starts, offsets[-1:]])
    lowest, highest = min(part.lowest for part in parts), max(part.highest for part in parts)
    labels = np.concatenate([part.labels for part in parts])
    indices, values = [part.indices for part in parts], [part.values for part in parts]
    parts.clear()
    joined = np.concatenate(values)
    values.clear()
    return Rows(labels, indptr, np.concatenate(indices), joined, lowest, highest)


def texts(path: Path, size: int) -> Generator[bytes, None, None]:
    """Yield whole lines of a file, about `size` bytes at a time; the last line may have no end."""
    with open_data(path) as file:
        while text := file.read(size) + file.readline():
            yield text


def text_rows(texts: Iterable[bytes], width: int | None, first: int | None) -> Iterator[Rows]:
    """Yield the rows of each text of a file, with the indices of the text.

    Parameters
    ----------
    texts : iterable of bytes
    width, first : int or None
        Number of columns and first index, to which the indices are limited.

    Raises
    ------
    Fault
        At the first line that cannot be read.
    """
    lines = 0
    for text in texts:
        rows, length = _parsed(text, lines, width, first)
        yield rows
        lines += length


def columns_of(lowest: int, highest: int, width: int | None, first: int | None) -> tuple[int, int]:
    """Return the first index and the number of columns, as they are given or as the indices have them."""
    if first is None:
        first = 0 if lowest == 0 else 1
    if width is not None and highest - first >= width:
        raise Fault(f"the index {highest} is beyond the {width} features (indices count from {first}).")
    return first, width or max(highest - first, 0) + 1


def _parsed(text: bytes, before: int, width: int | None, first: int | None) -> tuple[Rows, int]:
    """Return the rows of whole lines, and the number of lines; `before` lines of the file come before these."""
    from ..engine.jit import writable
    from . import svmlight_loop as loop

    lines = text if text.endswith(b"\n") else text + b"\n"
    letters = writable(np.frombuffer(lines, np.uint8))
    most, length = loop.count(letters, ord(":")), loop.count(letters, ord("\n"))
    labels, indptr = np.empty(length), np.empty(length + 1, np.int64)
    indices, values = np.empty(most, np.int32), np.empty(most)
    # of these arrays, the system provides what is written to
    others, counts = np.empty((most + length, 3), np.int64), np.empty(loop.COUNTS, np.int64)
    low = first or 0
    high = (
        _LARGEST_INDEX if width is None else min(width - 1 + (1 if first is None else first), _LARGEST_INDEX)
    )
    fault = loop.parse(letters, low, high, labels, indptr, indices, values, others, counts)
    rows, entries, left, lowest, highest = counts.tolist()
    for begin, end, place in others[:left].tolist():
        try:
            number = float(lines[begin:end])
        except ValueError:
            number = np.nan
        if not isfinite(number):
            word = lines[begin:end].decode(errors="replace")[:40]
            what = "label" if place < 0 else "value"
            raise Fault(
                f"the {what} {word!r} is not a finite number.", before + lines.count(b"\n", 0, begin) + 1
            )
        if place < 0:
            labels[-1 - place] = number
        else:
            values[place] = number
    if fault >= 0:
        word = lines[fault : fault + 40].split()[0].decode(errors="replace")
        raise Fault(
            f"{word!r} is no entry index:value whose index is a whole number from {low} to {high} above that of the "
            "entry before; correct the line (CSV files have names that end in .csv).",
            before + lines.count(b"\n", 0, fault) + 1,
        )
    return Rows(
        labels[:rows], indptr[: rows + 1], indices[:entries], values[:entries], lowest, highest
    ), length


def stream_svmlight(
    path: Path, n_features: int | None = None, size: int = BLOCK, first_index: int | None = None
) -> Iterator[RowBlock]:
    """Read svmlight text in blocks of whole lines, once, in memory that does not depend on its length.

    With `n_features`, indices count from `first_index`; without it from 1 unless the first block holds an index 0.

    Raises
    ------
    DataError
        At the first line that cannot be read, or goes beyond `n_features`.
    """
    # the traceback of an error keeps generators, which would keep the file open
    with data_errors(path), closing(texts(path, size)) as whole_lines:
        yield from row_blocks(whole_lines, n_features, first_index)


def row_blocks(texts: Iterable[bytes], n_features: int | None, first: int | None) -> Iterator[RowBlock]:
    """Yield the rows of texts as `stream_svmlight` does; without `n_features`, columns are the indices as written."""
    first, lines = 0 if n_features is None and first is None else first, 0
    for text in texts:
        rows, length = _parsed(text, lines, n_features, first)
        lines += length
        if rows.labels.size:
            first, width = columns_of(rows.lowest, rows.highest, n_features, first)
            yield RowBlock(rows.matrix(first, width), whole(rows.labels), first)
