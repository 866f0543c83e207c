"""Rows of a file that is read block by block, and their labels."""

from __future__ import annotations

from collections.abc import Generator, Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple, TypeVar

import numpy as np

from ..numerics.fault import Fault
from .table import check_labels, labels_of, whole

_T = TypeVar("_T")
_MOST_CLASSES = 1 << 20  # labels that are kept in memory: about 100 MB


class Block(NamedTuple):
    """Some rows of a file.

    Attributes
    ----------
    X : ndarray or Rows
        A dense matrix, or the rows of svmlight text.
    labels : ndarray, list of str or None
        The label of each row; or distinct texts; None where the file has no labels.
    codes : ndarray or slice
        The place of each row's label in `labels`.
    rounded : str or None
        The first number that float64 does not hold.
    """

    X: Any
    labels: np.ndarray | list[str] | None
    codes: np.ndarray | slice
    rounded: str | None


class Classes:
    """Distinct labels, numbered in the order in which they occur.

    Attributes
    ----------
    labels : ndarray or list of str
        Texts, which are numbers if all of them are; or an array of other labels.
    first_rows : dict
        The first row of each label, by its number.
    """

    def __init__(self) -> None:
        self.labels: np.ndarray | list[str] = []
        self.first_rows: dict[int, int] = {}
        self._numbers: dict[str, int] = {}  # of texts
        self._rows = 0

    def numbered(self, block: Block, before: int = 0) -> np.ndarray:
        """Return the number of the label of each row; raise Fault at one that is NaN or infinite.

        `before` rows of the file come before these.
        """
        assert block.labels is not None
        if not isinstance(block.labels, list):
            check_labels(block.labels, before)
        known, numbers = len(self.labels), self._found(block)
        if len(self.labels) > known:
            new, places = np.unique(numbers, return_index=True)
            for number, place in zip(new.tolist(), places.tolist(), strict=True):
                self.first_rows.setdefault(number, self._rows + place)
        self._rows += numbers.size
        return numbers

    def _found(self, block: Block) -> np.ndarray:
        """Return the number of the label of each row; new labels get the next numbers."""
        assert block.labels is not None
        if len(self.labels) and _kind(block.labels) != _kind(self.labels):
            raise Fault(
                f"its labels are {_kind(block.labels)} and those of other files {_kind(self.labels)}; store one kind."
            )
        if isinstance(block.labels, list):
            numbers = [self._numbers.setdefault(text, len(self._numbers)) for text in block.labels]
            self.labels = list(self._numbers)
            found = np.array(numbers, np.uint32)[block.codes]
        else:
            found = self._numbered(block.labels)
        if len(self.labels) > _MOST_CLASSES:
            raise Fault(f"there are more than {_MOST_CLASSES} different labels; a label names a class.")
        return found

    def _numbered(self, y: np.ndarray) -> np.ndarray:
        """Return the number of each label, none of which is NaN."""
        known = np.asarray(self.labels, y.dtype) if isinstance(self.labels, list) else self.labels
        order = np.argsort(known)
        places = np.searchsorted(known, y, sorter=order)
        if known.size:
            numbers = order[np.minimum(places, known.size - 1)]
            strange = y[known[numbers] != y]
        else:
            numbers, strange = places, y
        if not strange.size:
            return numbers.astype(np.uint32)
        self.labels = np.concatenate([known, np.unique(strange)])
        return self._numbered(y)

    def sorted(self) -> tuple[np.ndarray, np.ndarray]:
        """Return the classes in the order of `np.unique`, and the place of each label by its number."""
        labels = labels_of(self.labels) if isinstance(self.labels, list) else whole(self.labels)
        return np.unique(labels, return_inverse=True)


def _kind(labels: np.ndarray | list[str]) -> str:
    """Return the kind of labels in words; those of one kind can be compared."""
    if isinstance(labels, list):
        return "text"
    return {"U": "text", "S": "bytes", "M": "dates", "m": "times"}.get(labels.dtype.kind, "numbers")


def read_ahead(blocks: Iterable[_T]) -> Generator[_T, None, None]:
    """Yield the same blocks; each is prepared in a thread while the caller works on the one before.

    Exceptions of the blocks are raised here. The thread ends with this iterator, also where it is closed early.
    """
    source, end = iter(blocks), object()
    thread = ThreadPoolExecutor(1)
    try:
        coming = thread.submit(next, source, end)
        while (block := coming.result()) is not end:
            coming = thread.submit(next, source, end)
            yield block  # pyright: ignore[reportReturnType]
    finally:
        thread.shutdown(cancel_futures=True)
        if hasattr(source, "close"):
            source.close()  # pyright: ignore[reportAttributeAccessIssue]
