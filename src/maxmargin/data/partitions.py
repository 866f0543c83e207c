"""Rows in partitions: in memory, in memory-mapped files, or on other machines.

A back end has one primitive, `Partitions.reduce`: apply a function to every partition, and merge what it returns. Sums,
gathered rows and scores are made of it (`total`, `gather`). What a function returns is small beside its partition, so
that a back end may run the function where the rows are.
"""

from __future__ import annotations

import mmap
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Generic, Protocol, Self, TypeVar

import numpy as np
import scipy.sparse as sp

from ..numerics.columns import bad_label, first_beyond
from ..numerics.progress import READING_STOPPED, ReadingStoppedError
from ..problem.multiclass import class_numbers
from ..problem.problem import Problem
from .door import LARGEST, LARGEST_COST, beyond

# Bytes of a block of rows that is read and processed at a time: it fits into the caches of a processor with its
# temporaries. Smaller blocks take more calls of NumPy, larger ones more memory.
BLOCK_BYTES = 1 << 22


class BadRowError(ValueError):
    """Error of a row that cannot be used.

    Attributes
    ----------
    row : int
        Its number in the data set, from 0.
    fault : str
        What is wrong with it, and the remedy.
    """

    def __init__(self, row: int, fault: str) -> None:
        super().__init__(row, fault)
        self.row, self.fault = row, fault

    def __str__(self) -> str:
        return f"row {self.row} (counted from 0): {self.fault}"


class Merged(Protocol):
    """The result of a function of a partition."""

    def merge(self, other: Self) -> Self:
        """Return the result for the rows of both, `other` being that of later partitions."""
        ...


M = TypeVar("M", bound=Merged)


@dataclass(frozen=True, eq=False)
class Rows:
    """Rows of a data set.

    Attributes
    ----------
    X : ndarray or CSR matrix of shape (n, d)
    codes : ndarray of int of shape (n,)
        The number of the class of each row; negative for rows of no class, which take no part.
    weights : ndarray of shape (n,)
        Sample weights times class weights.
    numbers : ndarray of int64 of shape (n,)
        The numbers of the rows in the data set; ascending, except in `ArrayPartitions.mixed_blocks`.
    """

    X: Any
    codes: np.ndarray
    weights: np.ndarray
    numbers: np.ndarray

    @classmethod
    def consecutive(
        cls, X: Any, codes: np.ndarray, weights: np.ndarray | None = None, first: int = 0
    ) -> Rows:
        """Return consecutive rows, of which the first has this number; None stands for weights of one."""
        weights = np.ones(codes.size) if weights is None else weights
        return cls(X, codes, weights, np.arange(first, first + codes.size))

    @classmethod
    def joined(cls, parts: Sequence[Rows]) -> Rows:
        """Return the rows of all parts in their order."""
        return cls(
            stack([part.X for part in parts]),
            np.concatenate([part.codes for part in parts]),
            np.concatenate([part.weights for part in parts]),
            np.concatenate([part.numbers for part in parts]),
        )

    @property
    def size(self) -> int:
        """The number of rows."""
        return self.codes.size

    def some(self, places: Any) -> Rows:
        """Return the rows at these places; those of a slice are not copied."""
        return Rows(self.X[places], self.codes[places], self.weights[places], self.numbers[places])

    def blocks(self, rows: int) -> list[Rows]:
        """Return the rows in blocks of at most so many; no rows are one block."""
        return [self.some(slice(begin, begin + rows)) for begin in range(0, max(self.size, 1), rows)]

    def merge(self, other: Rows) -> Rows:
        """Return the rows of both."""
        return Rows.joined([self, other])


def signs_of(rows: Rows, positive: int = 1) -> np.ndarray:
    """Return 1.0 for rows of the positive class, and -1.0 for others: shape (n,)."""
    return np.where(rows.codes == positive, 1.0, -1.0)


def stack(parts: Sequence[Any]) -> Any:
    """Return matrices of the same width below each other."""
    if sp.issparse(parts[0]):
        return sp.csr_matrix(sp.vstack(parts, format="csr"))
    return np.concatenate(parts)


class Partitions(ABC):
    """The rows of a data set, with labels and weights.

    Attributes
    ----------
    shape : (int, int)
        Rows and columns.
    sparse : bool
    passes : int
        How often all rows have been read.
    rows_done : int
        Rows that the present pass has read; 0 between passes.
    """

    shape: tuple[int, int]
    sparse: bool
    passes: int = 0
    rows_done: int = 0

    @abstractmethod
    def reduce(self, function: Callable[[Rows], M], interrupted: Callable[[], bool]) -> M | None:
        """Apply a function to every partition, and merge the results in the order of the rows.

        Parameters
        ----------
        function : callable
            A function that can be pickled. It may be called for a part of a partition.
        interrupted : callable
            Whether to stop; called between blocks.

        Returns
        -------
        merged : the merged results; None if the pass was stopped.
        """

    def total(self, function: Callable[[Rows], M], interrupted: Callable[[], bool]) -> M | None:
        """Return `reduce` of a function that reads every row: one pass."""
        found = self.reduce(function, interrupted)
        self.passes += found is not None
        self.rows_done = 0
        return found

    def gather(self, numbers: np.ndarray, interrupted: Callable[[], bool]) -> Rows | None:
        """Return the rows with these numbers, which ascend; None if `interrupted`."""
        return self.reduce(partial(_take_numbers, numbers), interrupted)


def _take_numbers(numbers: np.ndarray, rows: Rows) -> Rows:
    """Return the rows of a partition, whose numbers are consecutive, that have one of these ascending numbers."""
    begin, end = np.searchsorted(numbers, [rows.numbers[0], rows.numbers[0] + rows.size])
    return rows.some(numbers[begin:end] - rows.numbers[0])


class ArrayPartitions(Partitions):
    """Rows of arrays in memory, or of memory-mapped files, in blocks.

    The pages of memory maps are released after each block: the rows of a file never fill the memory.

    Parameters
    ----------
    X : ndarray, np.memmap or CSR matrix of shape (n, d)
        The arrays of a CSR matrix may be memory maps. Numbers other than float32 and float64 are converted to
        float64, block by block.
    codes : ndarray of shape (n,)
    weights : ndarray of shape (n,), default=None
    factors : ndarray of shape (classes,), default=None
        The factor on the weight of every row of a class.
    block_bytes : int, default=BLOCK_BYTES
        Bytes of a block.

    Attributes
    ----------
    row_bytes : float
        Mean bytes of a row.
    row_entries : float
        Mean number of stored entries of a row.
    """

    def __init__(
        self,
        X: Any,
        codes: np.ndarray,
        weights: np.ndarray | None = None,
        factors: np.ndarray | None = None,
        block_bytes: int = BLOCK_BYTES,
    ) -> None:
        self.shape, self.sparse = X.shape, sp.issparse(X)
        self._X, self._codes, self._weights, self._factors = X, codes, weights, factors
        n, d = X.shape
        self.row_entries = X.nnz / max(n, 1) if self.sparse else float(d)
        # of sparse rows: a value of 8 bytes and an index of 4 for each entry, and a pointer of 8
        item = X.dtype.itemsize if X.dtype in (np.float32, np.float64) else 8
        row_bytes = self.row_entries * 12.0 + 8.0 if self.sparse else d * item
        rows = max(int(block_bytes / max(row_bytes, 1.0)), 1)
        self._starts = range(0, n, rows)
        self._rows = rows
        self.row_bytes = row_bytes

    def reduce(self, function: Callable[[Rows], M], interrupted: Callable[[], bool]) -> M | None:
        # One thread: blocks that fit into the caches make calls of NumPy so short that two threads wait for the
        # interpreter, and take up to 1.5 times as long (docs/explanation/scaling.md).
        merger: Merger[M] = Merger()
        self.rows_done = 0
        for first in self._starts:
            if interrupted():
                return None
            merger.add(function(self._block(first, self._rows)))
            self._release()
            self.rows_done = min(first + self._rows, self.shape[0])
        return merger.merged()

    def mixed_blocks(
        self, rows: int, rng: np.random.Generator, interrupted: Callable[[], bool]
    ) -> Iterator[Rows]:
        """Yield all rows once, in blocks of at most so many: one pass.

        A block consists of 64 pieces of consecutive rows, each from another part of the data, so that it resembles all
        rows, also where these are sorted; more pieces get too short to be read quickly. Which pieces of the parts make
        a block is random. The last pieces may be left out where `interrupted` stops the pass.
        """
        n, self.rows_done = self.shape[0], 0
        pieces = min(64, max(rows, 1))
        size = max(rows // pieces, 1)
        count = -(-n // size)
        starts = np.full(-(-count // pieces) * pieces, n)
        starts[:count] = np.arange(count) * size
        for block in rng.permuted(starts.reshape(pieces, -1), axis=1).T:
            parts = []
            for first in block[block < n].tolist():
                if interrupted():
                    return
                parts.append(self._block(first, size))
            if parts:
                joined = Rows.joined(parts)
                self._release()
                yield joined
                self.rows_done += joined.size
        self.passes, self.rows_done = self.passes + 1, 0

    def _block(self, first: int, rows: int) -> Rows:
        """Return at most so many rows, from the row `first` on."""
        last = min(first + rows, self.shape[0])
        X, codes = block_of_rows(self._X, first, last), np.asarray(self._codes[first:last])
        X = X if X.dtype in (np.float32, np.float64) else X.astype(np.float64)
        weights = None if self._weights is None else np.asarray(self._weights[first:last], dtype=float)
        return Rows.consecutive(X, codes, times_factors(weights, codes, self._factors), first)

    def _release(self) -> None:
        for each in (self._X, self._codes, self._weights):
            release_pages(each)


def block_of_rows(X: Any, first: int, last: int) -> Any:
    """Return consecutive rows of a matrix, which are not copied."""
    if not sp.issparse(X):
        return np.asarray(X[first:last])
    bounds = np.asarray(X.indptr[first : last + 1])
    part = slice(int(bounds[0]), int(bounds[-1]))
    data, indices = np.asarray(X.data[part]), np.asarray(X.indices[part])
    found = sp.csr_matrix((last - first, X.shape[1]), dtype=X.dtype)
    # assigned one by one: the constructor would read all indices to check them
    found.data, found.indices, found.indptr = data, indices, (bounds - part.start).astype(indices.dtype)
    if indices.size and not (int(indices.min()) >= 0 and int(indices.max()) < X.shape[1]):
        raise ValueError(
            f"rows {first} to {last - 1}: a column index is outside of the {X.shape[1]} columns."
        )
    if not found.has_canonical_format:  # repeated entries are added up before norms
        found = found.copy()
        found.sum_duplicates()
    return found


def release_pages(rows: Any) -> None:
    """Take the pages of file maps out of the memory of the process; they are mapped again when they are used.

    Otherwise a whole file counts as memory after a pass, until the system needs it. Private maps stay: their changes
    would be lost.
    """
    array: Any
    for array in (rows.data, rows.indices, rows.indptr) if sp.issparse(rows) else (rows,):
        modes = []
        while isinstance(array, np.ndarray):
            modes.append(getattr(array, "mode", None))
            array = array.base
        shared = isinstance(array, mmap.mmap) and any(modes) and "c" not in modes
        if shared and hasattr(mmap, "MADV_DONTNEED"):  # not on Windows
            array.madvise(mmap.MADV_DONTNEED)


class Merger(Generic[M]):
    """Merger of results in their order.

    Neighbours of equal numbers of results are merged, so that each of n results takes part in about log2(n) merges, in
    which gathered rows are copied.
    """

    def __init__(self) -> None:
        self._parts: list[tuple[int, M]] = []  # the numbers of results in the parts decrease

    def add(self, result: M) -> None:
        """Add a result; parts of equal numbers of results are merged."""
        count = 1
        while self._parts and self._parts[-1][0] == count:
            result = self._parts.pop()[1].merge(result)
            count *= 2
        self._parts.append((count, result))

    def merged(self) -> M | None:
        """Return the merged results; None if there are none."""
        found: M | None = None
        for _, part in reversed(self._parts):
            found = part if found is None else part.merge(found)
        return found


def merged(results: Iterable[M]) -> M | None:
    """Return the merged results in their order; None if there are none."""
    merger: Merger[M] = Merger()
    for result in results:
        merger.add(result)
    return merger.merged()


# checks of rows


def check_finite(block: Rows) -> None:
    """Raise BadRowError at the first row with an entry beyond the domain, or a weight that is NaN or infinite."""
    found = first_beyond(block.X, LARGEST)
    bad = np.flatnonzero(~np.isfinite(block.weights))
    if bad.size and (found is None or bad[0] < found[0]):
        place = int(bad[0])
        raise BadRowError(
            int(block.numbers[place]), f"its weight is {block.weights[place]}; give a finite number."
        )
    if found is not None:
        row, column, value = found
        fault = f"is {value}; {'fill it in' if np.isnan(value) else 'correct it'}"
        fault = beyond(value) if np.isfinite(value) else fault
        raise BadRowError(int(block.numbers[row]), f"column {column} {fault}, or leave the row out.")


def check_least_cost(problem: Problem, block: Rows, weights: np.ndarray) -> None:
    """Raise BadRowError at the first row of positive weight whose C s_i is below the domain."""
    if problem.hard or problem.C * weights.min(initial=np.inf) >= 1.0 / LARGEST_COST:
        return
    bad = np.flatnonzero((weights > 0.0) & (problem.C * weights < 1.0 / LARGEST_COST))
    if bad.size:
        cost = problem.C * weights[bad[0]]
        raise BadRowError(
            int(block.numbers[bad[0]]),
            f"C times its weight is {cost:.3g}, and fits take {1 / LARGEST_COST:g} and more: raise C, or the weight; "
            "rows that are not to count have weight 0.",
        )


# rows of collections on other machines, read once


# Rows as an array or a CSR matrix of float32 or float64, labels, and weights.
Part = tuple[Any, np.ndarray, np.ndarray | None]


@dataclass(frozen=True, eq=False)
class Description:
    """Sizes of consecutive rows, their distinct labels with the weight of all rows of each, and their first fault.

    A fault is the number of a row among them, or None, and a sentence.
    """

    rows: int
    columns: int
    sparse: bool
    labels: np.ndarray
    totals: np.ndarray
    fault: tuple[int | None, str] | None


class DescribedRows(ABC):
    """Rows, labels and sample weights of a collection, read once.

    Parameters
    ----------
    found : sequence of Description or None
        Those of all parts, in the order of the rows; None if the reading was stopped.

    Attributes
    ----------
    example : ndarray or pandas.DataFrame
        One row of zeros, with the names of the columns.
    shape : (int, int)
    sparse : bool
    kept : list of int
        The numbers of the parts that have rows.
    firsts : ndarray of int
        The number of the first row of each part, and the number of rows.

    Raises
    ------
    ValueError
        If rows cannot be used; the message names the remedy.
    ReadingStoppedError
        If the reading was stopped.
    """

    example: Any

    def __init__(self, found: Sequence[Description] | None) -> None:
        if found is None:
            raise ReadingStoppedError(READING_STOPPED)
        self.kept = [k for k, one in enumerate(found) if one.rows]
        self.firsts = np.cumsum([0, *(one.rows for one in found)])
        self._check(found)
        self._described = [found[k] for k in self.kept]
        self.shape = (int(self.firsts[-1]), self._described[0].columns)
        self.sparse = any(one.sparse for one in self._described)

    def _check(self, found: Sequence[Description]) -> None:
        """Refuse parts that cannot be used."""
        for k, one in enumerate(found):
            if one.fault is not None:
                place, fault = one.fault
                where = f"partition {k}" if place is None else f"row {self.firsts[k] + place}"
                raise ValueError(f"{where} (counted from 0): {fault}")
        if not self.kept:
            raise ValueError("Found no rows: all partitions are empty.")
        widths = sorted({one.columns for one in found if one.rows})
        if len(widths) > 1:
            raise ValueError(f"the partitions of X have different numbers of columns: {widths}.")

    def labels(self) -> tuple[np.ndarray, np.ndarray]:
        """Return the distinct labels, and the weight of all rows of each."""
        parts = [one.labels for one in self._described]
        text = {part.dtype.kind in "OUS" for part in parts}
        joined = np.concatenate(parts, dtype=object if len(text) > 1 else None)
        return distinct(joined, np.concatenate([one.totals for one in self._described]))

    @abstractmethod
    def partitions(self, classes: np.ndarray, factors: np.ndarray | None) -> Partitions:
        """Return the rows with the numbers of their classes, and with their weights times the factor of each class.

        Called once: the back end may release the labels.
        """

    @abstractmethod
    def close(self) -> None:
        """Release the rows; the partitions are not used after it."""


def describe(part: Part) -> Description:
    """Return the description of rows."""
    X, y, weights = part
    fault = _fault(X, y, weights)
    names, totals = (y[:0], np.zeros(0)) if fault else distinct(y, weights)
    return Description(X.shape[0], X.shape[1], sp.issparse(X), names, totals, fault)


def _fault(X: Any, y: np.ndarray, weights: np.ndarray | None) -> tuple[int | None, str] | None:
    """Return the first fault of rows, or None."""
    for name, other in (("labels", y), ("sample weights", weights)):
        if other is not None and other.shape != X.shape[:1]:
            return None, f"there must be as many {name} as rows; got {other.shape[0]} for {X.shape[0]} rows."
    if weights is not None:
        for i in np.flatnonzero(~((weights >= 0.0) & (weights < np.inf)))[:1]:
            return int(i), f"its sample weight is {weights[i]}; give 0 or more."
    found = bad_label(y)
    if found is not None:
        return found[0], f"its label is {found[1]}."
    try:
        check_finite(Rows.consecutive(X, np.zeros(y.size, np.int8)))
    except BadRowError as error:
        return error.row, error.fault
    return None


def distinct(labels: np.ndarray, weights: np.ndarray | None) -> tuple[np.ndarray, np.ndarray]:
    """Return the distinct labels, and the sum of the weights of each."""
    names, numbers = numbered(labels)
    return names, np.bincount(numbers, weights, names.size).astype(float)


def numbered(labels: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the distinct labels, and the number of each label among them; objects are not compared by size."""
    if labels.dtype != object:
        return np.unique(labels, return_inverse=True)
    places: dict[Any, int] = {}
    numbers = np.array([places.setdefault(label, len(places)) for label in labels.tolist()], dtype=np.intp)
    names = np.empty(len(places), dtype=object)
    names[:] = list(places)
    return names, numbers


def class_codes(labels: np.ndarray, classes: np.ndarray) -> np.ndarray:
    """Return the number of the class of each label as a small integer; -1 for labels of no class."""
    return class_numbers(labels, classes).astype(np.int8 if len(classes) < 128 else np.int32)


def times_factors(
    weights: np.ndarray | None, codes: np.ndarray, factors: np.ndarray | None
) -> np.ndarray | None:
    """Return the weights of rows times the factors of their classes; None stands for ones."""
    if factors is None:
        return weights
    return (1.0 if weights is None else weights) * factors[codes]
