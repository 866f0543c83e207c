"""Svmlight text, `label index:value index:value ...`, one row a line: files, streams, and rows in random order."""

from __future__ import annotations

import re
import sys
from collections.abc import Generator, Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from ..numerics.files import Fault
from .files import data_errors, open_data
from .table import Block, DataError, Expected, whole

TEXT = "svmlight text"
# bytes of a stream read at a time: classes that are not named have to occur in the first block
BLOCK = 1 << 22
STANDARD_INPUT = Path("-")
LARGEST_INDEX = 2**31 - 1  # of 32 bits
NUMBER = r"^[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?$"


def svmlight_blocks(
    path: Path, expected: Expected, features: None, nbytes: int
) -> Generator[Block, None, None]:
    """Yield the rows of about `nbytes` bytes of whole lines at a time; the last line may have no end."""
    with open_data(path) as file:
        texts = iter(lambda: file.read(nbytes) + file.readline(), b"")
        yield from _rows(texts, expected.n_features, expected.first_index)


def in_columns(blocks: Iterable[Any], width: int, first: int | None) -> Iterator[tuple[Any, Any, int]]:
    """Yield blocks of rows in `width` columns, what stands beside each, and the first index.

    If this is not given, it is 0 where the first block holds an index 0. Indices change in place.
    """
    for X, labels in blocks:
        least = int(X.indices.min(initial=1))
        first = first if first is not None else int(least > 0)
        if least < first:
            raise Fault("an index is 0, and those before count from 1; correct it.")
        if X.shape[1] - first > width:
            raise Fault(
                f"the index {X.shape[1] - 1} is beyond the {width} features (indices count from {first})."
            )
        np.subtract(X.indices, first, out=X.indices)
        yield sp.csr_matrix((X.data, X.indices, X.indptr), (X.shape[0], width)), labels, first


def _rows(texts: Iterable[bytes], width: int | None, first: int | None) -> Iterator[tuple[Any, np.ndarray]]:
    """Yield the rows of texts of whole lines: a CSR matrix whose columns are the indices of the text, and the labels.

    The indices are limited to those of `width` columns that count from `first`, if these are given. Raise Fault at the
    first line that cannot be read.
    """
    low, most, before = first or 0, LARGEST_INDEX, 0
    if width is not None:
        most = min(width - 1 + (1 if first is None else first), most)
    for text in texts:
        lines = _plain(text)
        if lines:
            X, labels, place = _parsed(lines, low, most)
            if place is not None:
                raise _fault(text, lines, place, before, f"from {low} to {most}")
            yield X, labels
        before += text.count(b"\n")


def _plain(text: bytes) -> bytes:
    """Return lines without comments, query numbers and empty lines, with one blank between words."""
    for sign in (b"\t", b"\r", b"\v", b"\f"):
        text = text.replace(sign, b" ")
    if b"#" in text:
        text = re.sub(rb"#[^\n]*", b"", text)
    if b"q" in text:
        text = re.sub(rb" qid:\S*", b"", text)
    text = text.strip(b" \n") + b"\n"
    separates = np.frombuffer(text, np.uint8) <= ord(" ")
    if (separates[1:] & separates[:-1]).any():
        text = re.sub(rb" *\n[ \n]*", b"\n", re.sub(rb"  +", b" ", text))
    return text.lstrip(b"\n")


def _parsed(lines: bytes, low: int, most: int) -> tuple[Any, np.ndarray, int | None]:
    """Return a CSR matrix, the labels, and where the first number that is wrong or out of place ends, or None."""
    import pyarrow as pa
    from pyarrow import compute

    letters = np.frombuffer(lines, np.uint8)
    ends = np.flatnonzero((letters == ord(":")) | (letters == ord(" ")) | (letters == ord("\n")))
    signs, offsets = letters[ends], np.zeros(ends.size + 1, np.int32)
    np.subtract(ends, np.arange(ends.size), out=offsets[1:], casting="unsafe")
    buffers = [None, *map(pa.py_buffer, (offsets, lines.translate(None, b": \n")))]
    words = pa.Array.from_buffers(pa.string(), ends.size, buffers)
    try:
        numbers = words.cast(pa.float64()).to_numpy()
    except pa.ArrowInvalid:
        found = compute.call_function("match_substring_regex", [words], compute.MatchSubstringOptions(NUMBER))
        words = compute.call_function("if_else", [found, words, "nan"])
        numbers = words.cast(pa.float64()).to_numpy()
    is_index = signs == ord(":")
    wrong = ~np.isfinite(numbers)
    wrong[0] |= is_index[0]
    # an index follows a blank, and nothing else does; a label is first in its line
    wrong[1:] |= is_index[1:] != (signs[:-1] == ord(" "))
    starts = np.flatnonzero(np.append(True, signs[:-1] == ord("\n")))
    places = np.flatnonzero(is_index)
    indptr = np.append(np.cumsum(is_index)[starts], places.size)
    indices = numbers[places]
    rises = np.diff(indices, prepend=-1.0) > 0.0
    rises[indptr[:-1][indptr[:-1] < places.size]] = True  # the first of a row
    wrong[places] |= ~((indices >= low) & (indices <= most) & (indices == np.trunc(indices)) & rises)
    if wrong.any():
        return None, numbers, int(ends[wrong.argmax()])
    width = int(indices.max(initial=-1.0)) + 1
    X = sp.csr_matrix((numbers[places + 1], indices.astype(np.int32), indptr), (starts.size, width))
    X.has_sorted_indices = X.has_canonical_format = True
    return X, numbers[starts], None


def _fault(text: bytes, lines: bytes, place: int, before: int, range_: str) -> Fault:
    """Return the fault of the word that ends at a place of the plain lines of a text, after `before` other lines."""
    begin = max(lines.rfind(b" ", 0, place), lines.rfind(b"\n", 0, place)) + 1
    word = lines[begin:].split(maxsplit=1)[0].decode(errors="replace")[:40]
    rows = [k for k, line in enumerate(text.split(b"\n"), before + 1) if line.partition(b"#")[0].strip()]
    what = (
        f"is no entry index:value whose value is a finite number and whose index is a whole number {range_} above that "
        "of the entry before; correct the line (CSV files have names that end in .csv)."
    )
    if begin == 0 or lines[begin - 1 : begin] == b"\n":
        what = (
            "is no label, which is a finite number; correct the line (CSV files have names that end in .csv)."
        )
    return Fault(f"{word!r} {what}", rows[lines.count(b"\n", 0, begin)])


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
            blocks = in_columns(_rows(_whole_lines(file), n_features, None), n_features, None)
            for X, labels, first in blocks:
                yield RowBlock(X, whole(labels), first)
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
