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
from .files import COMPRESSED, open_data, plain_sentences, require_memory, sample
from .table import DataError, Expected, Table, whole

_LARGEST = 2**31 - 1  # the reader's indices are C ints
BLOCK = 1 << 22  # bytes of text that are read at a time


def read_svmlight(path: Path, expected: Expected) -> Table:
    """Read svmlight text; the line number of the first fault is found by a second, slower look."""
    from sklearn.datasets import load_svmlight_file

    start = sample(path)
    # values and indices grow in arrays of 8 bytes an entry each, and are put together in another copy
    entries, lines = start.text.count(b":"), start.text.count(b"\n")
    require_memory(path, start.ratio * (26.0 * entries + 24.0 * lines))
    try:
        with open_data(path) as file:
            X, y = load_svmlight_file(file, zero_based=True)  # pyright: ignore[reportArgumentType]
        if not (np.isfinite(X.data).all() and np.isfinite(y).all()):
            raise ValueError("a value is not finite")
    except (ValueError, OverflowError) as error:
        fault = _first_fault(path, Expected(first_index=expected.first_index))
        raise DataError(fault or f"{path}: {error}") from None
    if not y.size:
        raise DataError(f"{path}: the file holds no rows.")
    first = expected.first_index
    if first is None:
        first = 0 if X.nnz and X.indices.min() == 0 else 1
    width = int(X.indices.max()) + 1 - first if X.nnz else 0
    if (expected.n_features is not None and width > expected.n_features) or (
        X.nnz and X.indices.min() < first
    ):
        asked = Expected(expected.n_features, first_index=first)
        raise DataError(_first_fault(path, asked) or f"{path}: the columns do not fit the model.")
    indices = X.indices
    indices -= first
    shape = (X.shape[0], expected.n_features or max(width, 1))
    rounded = _first_rounded(path) if (np.abs(X.data) >= WHOLE).any() else None
    return Table(
        sp.csr_matrix((X.data, indices, X.indptr), shape), whole(y), first_index=first, rounded=rounded
    )


def _first_rounded(path: Path) -> str | None:
    """The first whole number that float64 does not hold."""
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
        Where no width was asked for, column j is the index j as it is written, and the width that of the block.
    y : ndarray of shape (n,)
    first_index : {0, 1}
        From what the indices count; 0 where no width was asked for.
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
    with plain_sentences(path):
        sample(path)  # is it text at all?
        first = 0 if n_features is None else None
        with open(path, "rb") as raw:
            opener = COMPRESSED.get(path.suffix.lower())
            file = opener(raw, "rb") if opener else raw
            lines, rest = 0, b""
            while True:
                new = file.read(size)
                text = rest + new
                cut = text.rfind(b"\n") + 1 if new else len(text)
                text, rest = text[:cut], text[cut:]
                if text.strip():
                    X, y = _parsed(path, text, lines, n_features, first)
                    if first is None:
                        first = 0 if X.nnz and X.indices.min() == 0 else 1
                    if X.nnz and (
                        X.indices.min() < first
                        or (n_features is not None and X.indices.max() - first >= n_features)
                    ):
                        fault = _fault_among(
                            path, text.splitlines(True), lines, Expected(n_features, first_index=first)
                        )
                        raise DataError(fault or f"{path}: the columns do not fit --n-features.")
                    if y.size:
                        indices = X.indices - first
                        width = n_features or (int(indices.max()) + 1 if X.nnz else 1)
                        X = sp.csr_matrix((X.data, indices, X.indptr), (X.shape[0], width))
                        yield Block(X, whole(y), first, raw.tell())
                lines += text.count(b"\n")
                if not new:
                    return


def _parsed(
    path: Path, text: bytes, lines: int, n_features: int | None, first: int | None
) -> tuple[Any, np.ndarray]:
    """The rows of some lines; `lines` came before them."""
    from sklearn.datasets import load_svmlight_file

    try:
        X, y = load_svmlight_file(BytesIO(text), zero_based=True)  # pyright: ignore[reportArgumentType]
        if not (np.isfinite(X.data).all() and np.isfinite(y).all()):
            raise ValueError("a value is not finite")
    except (ValueError, OverflowError) as error:
        fault = _fault_among(path, text.splitlines(True), lines, Expected(n_features, first_index=first))
        raise DataError(fault or f"{path}: {error}") from None
    return X, y


def _first_fault(path: Path, expected: Expected) -> str | None:
    """The first line that cannot be read, and why."""
    with open_data(path) as file:
        return _fault_among(path, file, 0, expected)


def _fault_among(path: Path, file: Iterable[bytes], before: int, expected: Expected) -> str | None:
    """The first of these lines that cannot be read; `before` others came before them."""
    for number, line in enumerate(file, before + 1):
        fault = _fault(line, expected)
        if fault is not None:
            cut = "" if line.endswith(b"\n") else " (the file seems to be cut short here)"
            return f"{path}, line {number}: {fault}{cut}."
    return None


def _fault(line: bytes, expected: Expected) -> str | None:
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
    base = expected.first_index or 0
    for index in indices:
        if index < base:
            return f"the index {index} is below {base}, from which indices count"
        if index > _LARGEST:
            return f"the index {index} is too large; number the features up to {_LARGEST}"
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
