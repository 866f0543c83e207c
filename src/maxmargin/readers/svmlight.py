"""Svmlight text, `label index:value index:value ...`, one row a line: files, streams, and rows in random order."""

from __future__ import annotations

import sys
from collections.abc import Generator, Iterable, Iterator
from functools import partial
from math import isfinite
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from ..numerics.files import Fault
from .files import data_errors, first_megabyte, open_data
from .table import Block, DataError, Expected, Layout, whole

TEXT = "svmlight text"
# bytes of a stream read at a time: classes that are not named have to occur in the first block
BLOCK = 1 << 22
STANDARD_INPUT = Path("-")


def open_svmlight(path: Path, expected: Expected) -> Layout:
    """Look at the beginning of svmlight text."""
    text, ratio = first_megabyte(path)
    # values and indices of blocks and of all rows; labels and offsets
    needed = ratio * (24.0 * text.count(b":") + 48.0 * text.count(b"\n"))
    return Layout(TEXT, partial(_blocks, path, expected), needed)


def _blocks(path: Path, expected: Expected, features: None, nbytes: int) -> Generator[Block, None, None]:
    """Yield the rows of about `nbytes` bytes of whole lines at a time; the last line may have no end."""
    with open_data(path) as file:
        texts = iter(lambda: file.read(nbytes) + file.readline(), b"")
        yield from _rows(texts, expected.n_features, expected.first_index)


def in_columns(X: Any, first: int, width: int | None) -> Any:
    """Return rows of svmlight text as a matrix, whose columns count from `first`; their indices change in place."""
    most = X.shape[1] - first
    if width is not None and most > width:
        raise Fault(
            f"the index {X.shape[1] - 1} is beyond the {width} features (indices count from {first})."
        )
    np.subtract(X.indices, first, out=X.indices)
    return sp.csr_matrix((X.data, X.indices, X.indptr), (X.shape[0], width or max(most, 1)))


def _rows(texts: Iterable[bytes], width: int | None, first: int | None) -> Iterator[tuple[Any, np.ndarray]]:
    """Yield the rows of texts of whole lines: a CSR matrix whose columns are the indices of the text, and the labels.

    The indices are limited to those of `width` columns that count from `first`, if these are given. Raise Fault at the
    first line that cannot be read.
    """
    from ..engine.jit import writable
    from .svmlight_loop import parse

    low, before = first or 0, 0
    most = 2**31 - 1  # of 32 bits
    if width is not None:
        most = min(width - 1 + (1 if first is None else first), most)
    for text in texts:
        lines = text if text.endswith(b"\n") else text + b"\n"
        letters = writable(np.frombuffer(lines, np.uint8))
        colons, length = (int(np.count_nonzero(letters == sign)) for sign in b":\n")
        labels, indptr = np.empty(length), np.empty(length + 1, np.int64)
        indices, values = np.empty(colons, np.int32), np.empty(colons)
        # of these arrays, the system provides what is written to
        others = np.empty((colons + length, 3), np.int64)
        rows, entries, left, fault = parse(letters, low, most, labels, indptr, indices, values, others)
        for begin, end, place in others[:left].tolist():
            word = lines[begin:end]
            try:
                number = float(word)
            except ValueError:
                number = np.nan
            if not isfinite(number):
                what = f"{'label' if place < 0 else 'value'} {word.decode(errors='replace')[:40]!r}"
                raise Fault(f"the {what} is not a finite number.", before + lines.count(b"\n", 0, begin) + 1)
            if place < 0:
                labels[-1 - place] = number
            else:
                values[place] = number
        if fault >= 0:
            word = lines[fault : fault + 40].split()[0].decode(errors="replace")
            raise Fault(
                f"{word!r} is no entry index:value whose index is a whole number from {low} to {most} above that of "
                "the entry before; correct the line (CSV files have names that end in .csv).",
                before + lines.count(b"\n", 0, fault) + 1,
            )
        before += length
        if rows:
            parts = values[:entries], indices[:entries], indptr[: rows + 1]
            X = sp.csr_matrix(parts, (rows, int(indices[:entries].max(initial=-1)) + 1))
            X.has_sorted_indices = X.has_canonical_format = True
            yield X, labels[:rows]


class RowBlock(NamedTuple):
    """Some rows of a stream: a CSR matrix, their labels, and the first index of the text."""

    X: Any
    y: np.ndarray
    first_index: int


def read_stream(path: Path, n_features: int) -> Iterator[RowBlock]:
    """Yield the rows of a file or a pipe once, in memory that does not depend on their number.

    STANDARD_INPUT is a pipe. Indices count from 1 unless the first block holds an index 0. Raise DataError at the first
    line that cannot be read.
    """
    standard, first = path == STANDARD_INPUT, None
    name = Path("standard input") if standard else path
    with data_errors(name):
        if standard and sys.stdin is None:
            raise Fault("it is closed; pipe rows into the command.")
        with open_data(0 if standard else path) as file:
            for X, labels in _rows(_whole_lines(file), n_features, None):
                first = first if first is not None else int(X.indices.min(initial=1) > 0)
                if first and X.indices.min(initial=1) == 0:
                    raise Fault("an index is 0, and those before count from 1; correct it.")
                yield RowBlock(in_columns(X, first, n_features), whole(labels), first)
        if first is None:
            raise Fault("there are no rows.")


def shuffled(blocks: Iterable[RowBlock], most: int, generator: np.random.Generator) -> Iterator[RowBlock]:
    """Yield the rows of blocks in random order, those of about `most` entries at a time.

    Where the blocks end with an error or Ctrl-C, the rows that have come are yielded before it is raised.
    """
    ended, blocks = None, iter(blocks)
    while ended is None:
        held, entries = list[RowBlock](), 0
        try:
            while entries < most:
                held.append(next(blocks))
                entries += held[-1].X.nnz
        except (StopIteration, DataError, KeyboardInterrupt) as error:
            ended = error
        if held:
            X: Any = sp.vstack([block.X for block in held], "csr")
            order = generator.permutation(X.shape[0])
            yield RowBlock(X[order], np.concatenate([block.y for block in held])[order], held[0].first_index)
    if not isinstance(ended, StopIteration):
        raise ended


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
