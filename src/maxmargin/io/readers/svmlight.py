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

from ...numerics.representable import WHOLE, first_rounded_text
from .files import COMPRESSED, data_errors, open_data, require_memory, sample
from .table import DataError, Expected, Table, whole

_LARGEST_INDEX = 2**31 - 1  # scikit-learn's reader has indices of 32 bits
# bytes of text read at a time: more costs memory, less costs calls of the parser, and classes that are not named have
# to occur in the first block
BLOCK = 1 << 22


def read_svmlight(path: Path, expected: Expected) -> Table:
    """Read svmlight text; where it fails, a second, slower pass finds the line of the first fault."""
    start = sample(path)
    # values and indices grow in arrays of 8 bytes an entry each, and are put together in another copy
    entries, lines = start.text.count(b":"), start.text.count(b"\n")
    require_memory(path, start.ratio * (26.0 * entries + 24.0 * lines))
    X, y, first = _parse(path, lambda: open_data(path), 0, expected.n_features, expected.first_index)
    if not y.size:
        raise DataError(f"{path}: the file holds no rows.")
    rounded = _first_rounded(path) if (np.abs(X.data) >= WHOLE).any() else None
    return Table(X, whole(y), first_index=first, rounded=rounded)


def _parse(
    path: Path, open_text: Callable[[], Any], before: int, n_features: int | None, first: int | None
) -> tuple[Any, np.ndarray, int]:
    """Return the rows, their labels, and the index from which the columns of the text count.

    Parameters
    ----------
    path : Path
    open_text : callable
        Returns the text as a file of bytes; it is called again where the line of a fault is looked for.
    before : int
        Lines of the file that come before.
    n_features, first : int or None
        Columns, and the first index, where they are given.

    Raises
    ------
    DataError
        At the first line that cannot be read, or that goes beyond `n_features`.
    """

    def fault(reason: Any, expected: Expected) -> DataError:
        with open_text() as lines:
            return DataError(_fault_in_lines(path, lines, before, expected) or f"{path}: {reason}")

    try:
        with open_text() as file:
            X, y = _finite_rows(file)
    except (ValueError, OverflowError) as error:
        raise fault(error, Expected(None if first is None else n_features, first_index=first)) from None
    first = _first_index(X) if first is None else first
    if not _fits(X, first, n_features):
        raise fault("the columns do not fit their number.", Expected(n_features, first_index=first))
    return _from_zero(X, first, n_features), y, first


def _finite_rows(file: Any) -> tuple[Any, np.ndarray]:
    """Return the rows and labels of svmlight text; raise ValueError where it is none, or a number is not finite."""
    from sklearn.datasets import load_svmlight_file

    X, y = load_svmlight_file(file, zero_based=True)  # pyright: ignore[reportArgumentType]
    if not (np.isfinite(X.data).all() and np.isfinite(y).all()):
        raise ValueError("a value is not finite")
    return X, y


def _first_index(X: Any) -> int:
    """Return the index from which rows count: 1, unless there is an index 0."""
    return 0 if X.nnz and X.indices.min() == 0 else 1


def _fits(X: Any, first: int, n_features: int | None) -> bool:
    """Return whether the indices of rows are those of `n_features` columns, counted from `first`."""
    if not X.nnz:
        return True
    return X.indices.min() >= first and (n_features is None or X.indices.max() - first < n_features)


def _from_zero(X: Any, first: int, n_features: int | None) -> Any:
    """Return rows whose indices count from `first` with indices that count from 0."""
    indices = X.indices
    indices -= first
    width = n_features or (int(indices.max()) + 1 if X.nnz else 1)
    return sp.csr_matrix((X.data, indices, X.indptr), (X.shape[0], width))


def _first_rounded(path: Path) -> str | None:
    """Return the first whole number that float64 does not hold."""
    with open_data(path) as file:
        words = (word for line in file for word in line.split(b"#", 1)[0].split())
        return first_rounded_text(word.partition(b":")[2].decode() for word in words)


@dataclass(frozen=True)
class Block:
    """Some rows of a file that is read block by block.

    Attributes
    ----------
    X : CSR matrix of shape (n, width)
        Where no width was given, column j is the index j as it is written, and the width that of the block.
    y : ndarray of shape (n,)
    first_index : {0, 1}
        The first index; 0 where no width was given.
    read : int
        Bytes of the file read so far, of the compressed file where it is one.
    """

    X: Any
    y: np.ndarray
    first_index: int
    read: int


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
        for text, read in _text_blocks(path, size):
            if text.strip():
                X, y, first = _parse(path, partial(BytesIO, text), lines, n_features, first)
                if y.size:
                    yield Block(X, whole(y), first, read)
            lines += text.count(b"\n")


def _text_blocks(path: Path, size: int) -> Iterator[tuple[bytes, int]]:
    """Yield whole lines, about `size` bytes at a time, each block with the bytes of the file read so far."""
    with open(path, "rb") as raw:
        opener = COMPRESSED.get(path.suffix.lower())
        file = opener(raw, "rb") if opener else raw
        rest = b""
        while new := file.read(size):
            text = rest + new
            cut = text.rfind(b"\n") + 1
            rest = text[cut:]
            yield text[:cut], raw.tell()
        yield rest, raw.tell()


def _fault_in_lines(path: Path, file: Iterable[bytes], before: int, expected: Expected) -> str | None:
    """Return the first line that cannot be read, and the reason; `before` lines of the file come before these."""
    for number, line in enumerate(file, before + 1):
        fault = _fault(line, expected)
        if fault is not None:
            cut = "" if line.endswith(b"\n") else " (the file seems to be cut short here)"
            return f"{path}, line {number}: {fault}{cut}."
    return None


def _fault(line: bytes, expected: Expected) -> str | None:
    """Return the reason why a line cannot be read, None where it can."""
    words = line.split(b"#", 1)[0].split()
    if not words:
        return None
    fault = _label_fault(words[0])
    if fault is not None:
        return fault
    entries = words[2:] if len(words) > 1 and words[1].startswith(b"qid") else words[1:]
    indices = []
    for entry in entries:
        index, colon, value = entry.partition(b":")
        if not colon:
            return f"{_shown(entry)} has no colon; entries are written index:value"
        try:
            indices.append(int(index))
        except ValueError:
            return f"the index {_shown(index)} of {_shown(entry)} is not a whole number"
        try:
            number = float(value)
        except ValueError:
            return f"the value {_shown(value)} of {_shown(entry)} is not a number"
        if not isfinite(number):
            return f"the value of {_shown(entry)} is not finite; leave the entry or the row out"
    return _index_fault(indices, expected)


def _label_fault(word: bytes) -> str | None:
    if b":" in word:
        return f"the row begins with {_shown(word)}, not with a label; write 0 in front where it is not known"
    if b"," in word:
        return f"the label {_shown(word)} is a list; a row has one label, and CSV a name that ends in .csv"
    try:
        label = float(word)
    except ValueError:
        return f"the label {_shown(word)} is not a number; number the classes, or use CSV"
    return None if isfinite(label) else f"the label {_shown(word)} is not finite; leave the row out"


def _index_fault(indices: list[int], expected: Expected) -> str | None:
    """Return what is wrong with the indices of a row: their range, or their order."""
    base = expected.first_index or 0
    for index in indices:
        if index < base:
            return f"the index {index} is below {base}, from which indices count"
        if index > _LARGEST_INDEX:
            return f"the index {index} is too large; number the features up to {_LARGEST_INDEX}"
        if expected.n_features is not None and index - base >= expected.n_features:
            return (
                f"the index {index} is beyond the {expected.n_features} features of the model "
                f"(indices count from {base}); fit with a larger --n-features"
            )
    for before, after in pairwise(indices):
        if after <= before:
            return f"the index {after} comes after {before}; sort the entries of a row, each index once"
    return None


def _shown(word: bytes) -> str:
    text = word.decode("utf-8", "replace")
    return repr(text if len(text) <= 40 else text[:37] + "...")
