"""Svmlight text, `label index:value index:value ...`, one row a line: files, pipes, and a buffer that shuffles rows."""

from __future__ import annotations

import sys
from collections.abc import Generator, Iterable, Iterator
from contextlib import closing
from math import isfinite
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from ..numerics.files import Fault
from ..numerics.progress import announce
from .files import data_errors, open_data, require_memory, sample, skip_mark
from .table import Expected, Table, check_labels, whole

_LARGEST_INDEX = 2**31 - 1  # of 32 bits, as in the compiled loop
# bytes of text read at a time: more costs memory, less costs calls of the parser, and classes that are not named have
# to occur in the first block
BLOCK = 1 << 22
# bytes of text at a time where they are no blocks of a stream: the allocator reuses memory of this size; in parts of
# 4 MB, 42 MB of text took 21 ms to be read, not 3.5 ms, and in parts of 64 kB all of it took a tenth longer
PART = 1 << 20
STANDARD_INPUT = Path("-")
_ENTRY, _ROW = 12, 16  # bytes of the buffer: a value and an index of 32 bits; a label and the end of the row


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


class ShuffleBuffer:
    """Rows in memory, which leave in random order when they take `size` bytes.

    Parameters
    ----------
    size : int
    generator : Generator

    Attributes
    ----------
    labels : ndarray
        The distinct labels of the rows that filled the buffer last.
    """

    def __init__(self, size: int, generator: np.random.Generator) -> None:
        self.size, self.generator, self.labels = size, generator, np.zeros(0)
        self._blocks: list[RowBlock] = []
        self._bytes = 0
        self._full: Any = None  # the rows that leave
        self._order = np.zeros(0, np.int64)  # of those that have not left yet

    def add(self, block: RowBlock) -> Iterator[RowBlock]:
        """Add rows of the same number of columns; yield those that leave, in blocks."""
        self._blocks.append(block)
        self._bytes += _ENTRY * block.X.nnz + _ROW * block.y.size
        if self._bytes > self.size:
            yield from self.rest()

    def rest(self) -> Iterator[RowBlock]:
        """Yield all rows, in random order; after an interrupt, a second call yields those that remain."""
        if self._full is None and self._blocks:
            y = np.concatenate([block.y for block in self._blocks])
            X: Any = sp.vstack([block.X for block in self._blocks], "csr")
            self.labels, self._order = np.unique(y), self.generator.permutation(y.size)
            self._full = RowBlock(X, y, self._blocks[0].first_index)
            self._blocks = []
        step = max(1, self._order.size * BLOCK // max(self._bytes, 1))  # rows of about BLOCK bytes
        while self._full is not None and self._order.size:
            X, y, first = self._full
            chosen, self._order = self._order[:step], self._order[step:]
            yield RowBlock(X[chosen], y[chosen], first)
        self._full, self._bytes = None, 0


class Reader:
    """Blocks of rows of svmlight text, each row once; memory does not depend on its length.

    Without `n_features`, the columns are the indices as they are written. With it, indices count from 1 unless the
    first block holds an index 0.

    Parameters
    ----------
    path : Path
        A file or a pipe; STANDARD_INPUT is standard input.
    n_features : int or None

    Attributes
    ----------
    name : Path
        The path in messages.
    """

    def __init__(self, path: Path, n_features: int | None) -> None:
        self.path, self.n_features = path, n_features
        self.name = Path("standard input") if path == STANDARD_INPUT else path

    def __iter__(self) -> Iterator[RowBlock]:
        is_pipe, found = self.path == STANDARD_INPUT or not self.path.is_file(), False
        with data_errors(self.name):
            for block in self._pipe() if is_pipe else stream_svmlight(self.path, self.n_features):
                found = True
                yield block
            if not found:
                raise Fault("there are no rows.")

    def _pipe(self) -> Iterator[RowBlock]:
        """Yield the rows of a pipe as they come."""
        standard = self.path == STANDARD_INPUT
        if standard and sys.stdin is None:
            raise Fault("it is closed; pipe rows into the command.")
        with open(0 if standard else self.path, "rb", closefd=not standard) as pipe:
            announce(f"reading {self.name.name}")
            skip_mark(pipe)
            yield from row_blocks(_whole_lines(pipe), self.n_features, None)


def _whole_lines(file: Any) -> Iterator[bytes]:
    """Yield whole lines, about BLOCK bytes at a time; after Ctrl-C those that have come, then raise it."""
    text, interrupt, new = bytearray(), None, b" "
    while new:
        try:
            new = file.read1(BLOCK)
        except KeyboardInterrupt as error:
            new, interrupt = b"", error
        text += new
        if new and len(text) < BLOCK:
            continue
        cut = text.rfind(b"\n") + 1 if new or interrupt else len(text)
        yield bytes(text[:cut])
        del text[:cut]
    if interrupt is not None:
        raise interrupt
