"""Svmlight text: `label index:value index:value ...`, one row a line."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
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
    try:
        with open_data(path) as file:
            X, y = _finite_rows(file)
    except (ValueError, OverflowError) as error:
        fault = _first_fault(path, Expected(first_index=expected.first_index))
        raise DataError(fault or f"{path}: {error}") from None
    if not y.size:
        raise DataError(f"{path}: the file holds no rows.")
    first = _first_index(X) if expected.first_index is None else expected.first_index
    if not _fits(X, first, expected.n_features):
        fault = _first_fault(path, Expected(expected.n_features, first_index=first))
        raise DataError(fault or f"{path}: the columns do not fit the model.")
    rounded = _first_rounded(path) if (np.abs(X.data) >= WHOLE).any() else None
    return Table(_from_zero(X, first, expected.n_features), whole(y), first_index=first, rounded=rounded)


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
        return first_rounded_text(
            word.partition(b":")[2].decode() for line in file for word in line.split(b"#", 1)[0].split()
        )


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
                expected = Expected(n_features, first_index=first)
                try:
                    X, y = _finite_rows(BytesIO(text))
                except (ValueError, OverflowError) as error:
                    fault = _fault_in_lines(path, text.splitlines(True), lines, expected)
                    raise DataError(fault or f"{path}: {error}") from None
                first = _first_index(X) if first is None else first
                if not _fits(X, first, n_features):
                    expected = Expected(n_features, first_index=first)
                    fault = _fault_in_lines(path, text.splitlines(True), lines, expected)
                    raise DataError(fault or f"{path}: the columns do not fit --n-features.")
                if y.size:
                    yield Block(_from_zero(X, first, n_features), whole(y), first, read)
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


def _first_fault(path: Path, expected: Expected) -> str | None:
    """Return the first line that cannot be read, and the reason."""
    with open_data(path) as file:
        return _fault_in_lines(path, file, 0, expected)


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
