"""Svmlight text from files and pipes, read once, and a buffer that shuffles its rows."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from ..numerics.files import Fault
from ..numerics.progress import announce
from .files import data_errors, skip_mark
from .svmlight import BLOCK, RowBlock, row_blocks, stream_svmlight

STANDARD_INPUT = Path("-")
_ENTRY, _ROW = 12, 16  # bytes of the buffer: a value and an index of 32 bits; a label and the end of the row


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
