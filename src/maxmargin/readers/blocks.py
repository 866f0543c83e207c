"""Rows of a file that is read block by block, and their labels."""

from __future__ import annotations

from collections.abc import Generator, Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple, TypeVar

import numpy as np

from ..numerics.columns import bad_label
from ..numerics.files import Fault
from .table import check_labels, labels_of, whole

_T = TypeVar("_T")
_MOST_CLASSES = 1 << 20  # labels that are kept in memory: about 100 MB


class Block(NamedTuple):
    """Some rows of a file.

    Attributes
    ----------
    X : ndarray, CSR matrix, or svmlight.Rows
    labels : ndarray, list of str or None
        The label of each row; or distinct texts; None where the file has no labels.
    codes : ndarray or slice
        The place of each row's label in `labels`.
    """

    X: Any
    labels: np.ndarray | list[str] | None
    codes: np.ndarray | slice = slice(None)


class Classes:
    """Distinct labels, numbered in the order in which they occur.

    Attributes
    ----------
    labels : ndarray or list of str
        Texts, which are numbers if all of them are; or an array of other labels.
    """

    def __init__(self) -> None:
        self.labels: np.ndarray | list[str] = []
        self._numbers: dict[str, int] = {}  # of texts

    def numbered(self, block: Block, before: int = 0) -> np.ndarray:
        """Return the number of the label of each row; raise Fault at one that is NaN or infinite.

        `before` rows of the file come before these.
        """
        labels = block.labels
        assert labels is not None
        if not isinstance(labels, list):
            check_labels(labels, before)
        if len(self.labels) and _kind(labels) != _kind(self.labels):
            raise Fault(
                f"its labels are {_kind(labels)}, and those before {_kind(self.labels)}; store one kind."
            )
        if isinstance(labels, list):
            numbers = [self._numbers.setdefault(text, len(self._numbers)) for text in labels]
            self.labels = list(self._numbers)
            found = np.array(numbers, np.uint32)[block.codes]
        else:
            found = self._numbered(labels)
        if len(self.labels) > _MOST_CLASSES:
            raise Fault(f"there are more than {_MOST_CLASSES} different labels; a label names a class.")
        return found

    def _numbered(self, y: np.ndarray) -> np.ndarray:
        """Return the number of each label, none of which is NaN; new labels get the next numbers."""
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
        """Return the classes in the order of `np.unique`, and the place of each label by its number.

        Raise Fault where a label is NaN or infinite.
        """
        labels = labels_of(self.labels) if isinstance(self.labels, list) else whole(self.labels)
        if (found := bad_label(labels)) is not None:
            raise Fault(f"the label {self.labels[found[0]]!r} is {found[1]}.")
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
