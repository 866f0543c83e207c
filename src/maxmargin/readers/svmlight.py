"""Svmlight text: `label index:value index:value ...`, one row a line."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from io import BytesIO
from itertools import pairwise
from math import isfinite
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from ..numerics.fault import Fault
from ..numerics.representable import WHOLE, first_rounded_text
from .files import data_errors, open_data, require_memory, sample
from .table import Expected, Table, whole

_LARGEST_INDEX = 2**31 - 1  # scikit-learn's reader has indices of 32 bits
# bytes of text read at a time: more costs memory, less costs calls of the parser, and classes that are not named have
# to occur in the first block
BLOCK = 1 << 22


def read_svmlight(path: Path, expected: Expected) -> Table:
    """Read svmlight text; where it fails, a second, slower pass finds the line of the first fault."""
    text, ratio = sample(path)
    # values and indices grow in arrays of 8 bytes an entry each, and are put together in another copy
    require_memory(ratio * (26.0 * text.count(b":") + 24.0 * text.count(b"\n")))
    X, y, first = _parse(lambda: open_data(path), 0, expected.n_features, expected.first_index)
    if not y.size:
        raise Fault("the file holds no rows.")
    rounded = None
    if (np.abs(X.data) >= WHOLE).any():
        with open_data(path) as file:
            words = (word for line in file for word in line.split(b"#", 1)[0].split())
            rounded = first_rounded_text(word.partition(b":")[2].decode() for word in words)
    return Table(X, whole(y), first_index=first, rounded=rounded)


def _parse(
    open_text: Callable[[], Any], before: int, n_features: int | None, first: int | None
) -> tuple[Any, np.ndarray, int]:
    """Return the rows, their labels, and the index from which the columns of the text count.

    Parameters
    ----------
    open_text : callable
        Returns the text as a file of bytes; it is called again where the line of a fault is looked for.
    before : int
        Lines of the file that come before.
    n_features, first : int or None
        Columns, and the first index, where they are given; else the first is 1, unless there is an index 0.

    Raises
    ------
    Fault
        At the first line that cannot be read, or that goes beyond `n_features`.
    """
    from sklearn.datasets import load_svmlight_file

    width = None if first is None else n_features
    try:
        with open_text() as file:
            X, y = load_svmlight_file(file, zero_based=True)  # pyright: ignore[reportArgumentType]
        if not (np.isfinite(X.data).all() and np.isfinite(y).all()):
            raise ValueError("a value is not finite")
        if first is None:
            first = 0 if X.nnz and X.indices.min() == 0 else 1
        width = n_features
        last = int(X.indices.max(initial=first)) - first
        if X.indices.min(initial=first) < first or (width is not None and last >= width):
            raise ValueError("the columns do not fit their number.")
    except (ValueError, OverflowError) as error:
        with open_text() as lines:
            raise _first_fault(lines, before, width, first or 0) or Fault(str(error)) from None
    indices = X.indices
    indices -= first
    return sp.csr_matrix((X.data, indices, X.indptr), (X.shape[0], width or last + 1)), y, first


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


def stream_svmlight(path: Path, n_features: int | None = None, size: int = BLOCK) -> Iterator[Block]:
    """Read svmlight text in blocks of whole lines, once, in memory that does not depend on its length.

    With `n_features`, indices count from 1 unless the first block holds an index 0.

    Raises
    ------
    DataError
        At the first line that cannot be read, or goes beyond `n_features`.
    """
    with data_errors(path):
        sample(path)  # raises where the file is no text
        first = 0 if n_features is None else None
        lines = 0  # before the block
        for text in _text_blocks(path, size):
            if text.strip():
                X, y, first = _parse(partial(BytesIO, text), lines, n_features, first)
                if y.size:
                    yield Block(X, whole(y), first_index=first)
            lines += text.count(b"\n")


def _text_blocks(path: Path, size: int) -> Iterator[bytes]:
    """Yield whole lines, about `size` bytes at a time."""
    with open_data(path) as file:
        rest = b""
        while new := file.read(size):
            text = rest + new
            cut = text.rfind(b"\n") + 1
            rest = text[cut:]
            yield text[:cut]
        yield rest


def _first_fault(lines: Iterable[bytes], before: int, width: int | None, first: int) -> Fault | None:
    """Return the fault of the first line that cannot be read; `before` lines of the file come before these."""
    for number, line in enumerate(lines, before + 1):
        words = line.split(b"#", 1)[0].split()
        fault = _line_fault(words, width, first) if words else None
        if fault is not None:
            cut = "" if line.endswith(b"\n") else " (the file seems to be cut short here)"
            return Fault(f"{fault}{cut}.", number)
    return None


def _line_fault(words: list[bytes], width: int | None, first: int) -> str | None:
    """Return the reason why a line cannot be read, None where it can."""
    label, shown = _number(words[0], float), _shown(words[0])
    if b":" in words[0]:
        return f"the row begins with {shown}, not with a label; write a label first (0 if it is not known)"
    if b"," in words[0]:
        return f"the label {shown} is a list, and a row has one label; CSV files have names that end in .csv"
    if label is None:
        return f"the label {shown} is not a number; number the classes, or use CSV"
    if not isfinite(label):
        return f"the label {shown} is not finite; leave the row out"
    entries = words[2:] if len(words) > 1 and words[1].startswith(b"qid") else words[1:]
    indices = []
    for entry in entries:
        text, colon, value = entry.partition(b":")
        index, number = _number(text, int), _number(value, float)
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


def _number(word: bytes, kind: Callable[[bytes], Any]) -> Any:
    """Return the number of a text; None where it is none."""
    try:
        return kind(word)
    except ValueError:
        return None


def _shown(word: bytes) -> str:
    text = word.decode("utf-8", "replace")
    return repr(text if len(text) <= 40 else text[:37] + "...")
