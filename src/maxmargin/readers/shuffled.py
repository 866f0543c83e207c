"""Svmlight text in random order, read once: a buffer of rows; blocks of a file at random places; pipes."""

from __future__ import annotations

import sys
from codecs import BOM_UTF8
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from functools import partial
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from ..numerics.fault import Fault
from ..numerics.progress import announce
from . import svmlight
from .files import COMPRESSED, MAGIC, data_errors, refuse_utf16, skip_mark
from .svmlight import BLOCK, Block, columns_of, text_rows
from .table import whole

STANDARD_INPUT = Path("-")
_ENTRY, _ROW = 12, 16  # bytes of the buffer: a value and an index of 32 bits; a label and the end of the row
# Bytes of the buffer for a byte of text, at most: the line "1 1:1" has 6 bytes with its end, and takes 28. Rows without
# entries, which take more, are no rows to learn from.
_EXPANSION = 5
# The size of the buffer over that of a block of a file, and the smallest block in bytes: more blocks represent the
# whole file better, and each costs a call of the parser (0.1 ms, the time in which it reads some kilobytes).
_BLOCKS, _SMALLEST = 256, 1 << 10
_MOST_BLOCKS_BITS = 20  # a file has at most 2^20 blocks: their order takes 8 MB


class ShuffleBuffer:
    """Rows in memory of limited size, which leave in random order when it is full.

    Parameters
    ----------
    size : int
        Bytes. 0: rows leave at once, in their order. A block that is larger leaves at once, in random order.
    generator : Generator

    Attributes
    ----------
    labels : ndarray
        The distinct labels of the rows that filled the buffer last.
    n_filled : int
        Number of these rows.
    """

    def __init__(self, size: int, generator: np.random.Generator) -> None:
        self.size, self.generator = size, generator
        self.labels, self.n_filled = np.zeros(0), 0
        self._data, self._indices = np.empty(size // _ENTRY), np.empty(size // _ENTRY, np.int32)
        self._clear()

    def _clear(self) -> None:
        # of each block the ends of its rows in `_data`, its labels, and the number of rows so far: an interrupt leaves
        # a block out as a whole
        self._blocks: list[tuple[np.ndarray, np.ndarray, int]] = []
        self._width = 0
        self._full: tuple[Any, np.ndarray] | None = None  # the rows and labels that leave, in `_order`
        self._order = np.zeros(0, np.int64)

    def add(self, block: Block) -> Iterator[Block]:
        """Add rows; yield those that leave, in blocks."""
        X, y = block.X, block.y
        needed = _ENTRY * X.nnz + _ROW * y.size
        if self._used() + needed > self.size:
            yield from self.rest()
        if needed > self.size:
            self.labels, self.n_filled = np.unique(y), y.size
            order = self.generator.permutation(y.size) if self.size else slice(None)
            yield Block(X[order], y[order], first_index=block.first_index)
            return
        entries, rows = self._counts()
        last = entries + X.nnz
        self._data[entries:last], self._indices[entries:last] = X.data, X.indices
        self._first_index, self._width = block.first_index, max(self._width, X.shape[1])
        self._blocks.append((X.indptr[1:].astype(np.int64) + entries, y, rows + y.size))

    def rest(self) -> Iterator[Block]:
        """Yield all rows, in random order; after an interrupt, a second call yields those that remain."""
        if self._full is None and self._blocks:
            entries, rows = self._counts()
            ends = np.concatenate([[0], *(ends for ends, _, _ in self._blocks)])
            y = np.concatenate([y for _, y, _ in self._blocks])
            self.labels, self.n_filled = np.unique(y), rows
            self._order = self.generator.permutation(rows)
            self._full = (
                sp.csr_matrix((self._data[:entries], self._indices[:entries], ends), (rows, self._width)),
                y,
            )
        step = -(-self.n_filled * BLOCK // max(self._used(), 1))  # rows of about BLOCK bytes
        while self._full is not None and self._order.size:
            (X, y), chosen = self._full, self._order[:step]
            self._order = self._order[step:]
            yield Block(X[chosen], y[chosen], first_index=self._first_index)
        self._clear()

    def _counts(self) -> tuple[int, int]:
        """Return the numbers of entries and of rows."""
        return (int(self._blocks[-1][0][-1]), self._blocks[-1][2]) if self._blocks else (0, 0)

    def _used(self) -> int:
        """Return the bytes that are taken."""
        entries, rows = self._counts()
        return _ENTRY * entries + _ROW * rows


class Reader:
    """Blocks of rows of svmlight text, each row once; memory does not depend on its length.

    A file that is not compressed and may not fit into the buffer is read at random places; any other, and a pipe, in
    its order. Without `n_features`, the columns are the indices as they are written. With `n_features`, indices count
    from 1 unless the first 4 MB hold an index 0.

    Parameters
    ----------
    path : Path
        A file or a pipe, whose content may be compressed; STANDARD_INPUT is standard input.
    n_features : int or None
    buffer : ShuffleBuffer
        Its size, and its generator for the random places.

    Attributes
    ----------
    name : Path
        The path in messages.
    labels : ndarray
        If the file is read at random places, the distinct labels of its first 4 MB.

    Raises
    ------
    DataError
        While blocks are read: at a line that cannot be read, or goes beyond `n_features`.
    """

    def __init__(self, path: Path, n_features: int | None, buffer: ShuffleBuffer) -> None:
        self.path, self.n_features, self.buffer = path, n_features, buffer
        self.name = Path("standard input") if path == STANDARD_INPUT else path
        self._is_pipe = path == STANDARD_INPUT or not path.is_file()
        self._bytes = 0 if self._is_pipe else path.stat().st_size
        random = path.suffix.lower() not in COMPRESSED and 0 < buffer.size < _EXPANSION * self._bytes
        self._random = random and not self._is_pipe
        self.labels = np.zeros(0, np.int64)
        self._rows = self._begin = 0  # before the last block: rows read, and bytes of the file

    def __iter__(self) -> Iterator[Block]:
        with data_errors(self.name):
            if self._is_pipe:
                blocks = self._blocks_of_pipe()
            elif self._random:
                blocks = self._blocks_at_random()
            else:
                blocks = svmlight.stream_svmlight(self.path, self.n_features)
            for block in blocks:
                if block.y.size:  # not only comments
                    yield block
                self._rows += block.y.size
            if not self._rows:
                raise Fault("there are no rows.")

    def row(self, k: int) -> int:
        """Return the number of row `k` of the last block among all rows of the text, counted from 1."""
        before = self._rows
        if self._random:
            before = sum(bool(line.split(b"#", 1)[0].strip()) for line in self._lines_before(self._begin))
        return before + k + 1

    # files

    def _blocks_at_random(self) -> Iterator[Block]:
        """Yield the lines that begin in each part of the file; the parts, of equal length, come in random order."""
        head = next(svmlight.stream_svmlight(self.path, self.n_features), None)
        if head is None:
            return
        self.labels = np.unique(head.y)
        size = max(_SMALLEST, min(BLOCK, self.buffer.size // _BLOCKS), self._bytes >> _MOST_BLOCKS_BITS)
        parts = self.buffer.generator.permutation(-(-self._bytes // size))
        announce(f"reading {self.path.name}")
        with open(self.path, "rb") as file:
            for part in parts.tolist():
                text = self._lines_between(file, part * size, min((part + 1) * size, self._bytes))
                if text.strip():
                    yield self._parsed(text, head.first_index)

    def _lines_between(self, file: Any, begin: int, end: int) -> bytes:
        """Return the lines whose first byte is one from `begin` to `end` - 1."""
        file.seek(max(begin - 1, 0))
        if begin:
            file.readline()
        self._begin = file.tell()
        text = file.read(max(end - self._begin, 0))
        if len(text) < end - self._begin:
            raise Fault("the file became shorter while it was read; fit again when it is complete.")
        if text and not text.endswith(b"\n"):
            text += file.readline()
        return text if begin else text.removeprefix(BOM_UTF8)

    def _parsed(self, text: bytes, first: int | None) -> Block:
        """Return the rows of a text of the file; the lines before it are counted where it has a fault."""
        try:
            return _block(text, 0, self.n_features, first)
        except Fault:
            return _block(text, sum(1 for _ in self._lines_before(self._begin)), self.n_features, first)

    def _lines_before(self, end: int) -> Iterator[bytes]:
        """Yield the lines of the file before a place where a line begins."""
        with open(self.path, "rb") as file:
            while file.tell() < end:
                yield file.readline()

    # pipes

    def _blocks_of_pipe(self) -> Iterator[Block]:
        """Yield the rows of a pipe; after Ctrl-C those that have come, then raise it."""
        lines, first = 0, 0 if self.n_features is None else None
        with _opened_pipe(self.path) as file:
            announce(f"reading {self.name.name}")
            for text in _whole_lines(file, BLOCK):
                if text.strip():
                    block = _block(text, lines, self.n_features, first)
                    first = block.first_index
                    yield block
                lines += text.count(b"\n")


def _block(text: bytes, before: int, n_features: int | None, first: int | None) -> Block:
    """Return the rows of a text; `before` lines of the file come before it."""
    ((rows, _, _),) = text_rows([text], n_features, first, before)
    first, width = columns_of(rows, n_features, first, partial(BytesIO, text), before)
    return Block(rows.matrix(first, width), whole(rows.labels), first_index=first)


@contextmanager
def _opened_pipe(path: Path) -> Iterator[Any]:
    """Open a pipe for reading bytes, decompressed where the first bytes say that they are compressed."""
    standard = path == STANDARD_INPUT
    if standard and sys.stdin is None:
        raise Fault("it is closed; pipe rows into the command.")
    with open(0 if standard else path, "rb", closefd=not standard) as pipe:
        begin = pipe.peek(max(map(len, MAGIC)))
        openers = (COMPRESSED.get(suffix) for magic, suffix in MAGIC.items() if begin.startswith(magic))
        opener = next(openers, None) or nullcontext
        with opener(pipe) as file:
            skip_mark(file)
            refuse_utf16(file.peek(2)[:2])
            yield file


def _whole_lines(file: Any, size: int) -> Iterator[bytes]:
    """Yield whole lines, about `size` bytes at a time; after Ctrl-C those that have come, then raise it."""
    text, wanted, interrupt = bytearray(), size, None
    while True:
        try:
            new = file.read1(wanted)
        except KeyboardInterrupt as error:
            new, interrupt = b"", error
        text += new
        wanted -= len(new)
        if new and wanted:
            continue
        cut = text.rfind(b"\n") + 1 if new or interrupt else len(text)
        yield bytes(text[:cut])
        del text[:cut]
        if interrupt is not None:
            raise interrupt
        if not new:
            return
        wanted = size
