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
from typing import Any, NamedTuple, Protocol, Self, TypeVar

import numpy as np
import scipy.sparse as sp

from ..data.door import LARGEST, LARGEST_COST, beyond
from ..numerics.columns import bad_label, canonical, first_beyond
from ..numerics.progress import READING_STOPPED, ReadingStoppedError
from ..problem.multiclass import class_numbers
from ..problem.problem import Problem

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
    def encode(self, classes: np.ndarray, factors: np.ndarray | None) -> None:
        """Set the classes, and the factor on the weights of the rows of each; before the first pass."""

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
        block_bytes: int = BLOCK_BYTES,
    ) -> None:
        self.shape, self.sparse = X.shape, sp.issparse(X)
        self._X, self._codes, self._weights, self._factors = X, codes, weights, None
        n, d = X.shape
        self.row_entries = X.nnz / max(n, 1) if self.sparse else float(d)
        # of sparse rows: a value of 8 bytes and an index of 4 for each entry, and a pointer of 8
        item = X.dtype.itemsize if X.dtype in (np.float32, np.float64) else 8
        row_bytes = self.row_entries * 12.0 + 8.0 if self.sparse else d * item
        self.row_bytes, self._rows = row_bytes, max(int(block_bytes / max(row_bytes, 1.0)), 1)

    def encode(self, classes: np.ndarray, factors: np.ndarray | None) -> None:
        self._factors = factors  # the codes are those of the classes

    def reduce(self, function: Callable[[Rows], M], interrupted: Callable[[], bool]) -> M | None:
        # One thread: blocks that fit into the caches make calls of NumPy so short that two threads wait for the
        # interpreter, and take up to 1.5 times as long (docs/explanation/scaling.md).
        self.rows_done = 0
        found = merged(self._results(function, interrupted))
        return found if self.rows_done == self.shape[0] else None

    def _results(self, function: Callable[[Rows], M], interrupted: Callable[[], bool]) -> Iterator[M]:
        """Yield the results of a function for blocks of rows, until interrupted."""
        n = self.shape[0]
        while self.rows_done < n and not interrupted():
            yield function(self._block(self.rows_done, self._rows))
            self._release()
            self.rows_done = min(self.rows_done + self._rows, n)

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
    found = X[first:last]
    if not sp.issparse(X):
        return np.asarray(found)
    if found.nnz and not (int(found.indices.min()) >= 0 and int(found.indices.max()) < X.shape[1]):
        raise ValueError(
            f"rows {first} to {last - 1}: a column index is outside of the {X.shape[1]} columns."
        )
    return canonical(found)  # repeated entries are added up before norms


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


def merged(results: Iterable[M | None]) -> M | None:
    """Return the merged results in their order; None, which stands for no rows, if there are none.

    Neighbours of equal numbers of results are merged, so that each of n results takes part in about log2(n) merges, in
    which gathered rows are copied.
    """
    parts: list[tuple[int, M]] = []  # the numbers of results in the parts decrease
    for result in results:
        count = 1
        while result is not None and parts and parts[-1][0] == count:
            result = parts.pop()[1].merge(result)
            count *= 2
        parts += [] if result is None else [(count, result)]
    found: M | None = None
    for _, part in reversed(parts):
        found = part if found is None else part.merge(found)
    return found


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


def check_row_costs(problem: Problem, block: Rows, weights: np.ndarray) -> None:
    """Raise BadRowError at the first row of positive weight whose C s_i is beyond the domain."""
    costs = problem.C * weights
    inside = problem.hard | ((costs >= 1.0 / LARGEST_COST) & (costs <= LARGEST_COST))
    for i in np.flatnonzero(~inside & (weights > 0.0))[:1]:
        raise BadRowError(
            int(block.numbers[i]),
            f"C times its weight is {costs[i]:.3g}, and fits take {1 / LARGEST_COST:g} to {LARGEST_COST:g}: change C, "
            "or the weight; rows that are not to count have weight 0.",
        )


# rows of collections on other machines, read once


class Block(NamedTuple):
    """Consecutive rows as they were read.

    Attributes
    ----------
    X : ndarray or CSR matrix of shape (n, d)
        float32 or float64.
    names : ndarray
        The distinct labels.
    numbers : ndarray of int of shape (n,)
        The place of the label of each row among them.
    weights : ndarray of shape (n,) or None
        Sample weights.
    fault : (int or None, str) or None
        The first row that cannot be used, None for all, and why.
    """

    X: Any
    names: np.ndarray
    numbers: np.ndarray
    weights: np.ndarray | None
    fault: tuple[int | None, str] | None = None


def block_of(X: Any, y: np.ndarray, weights: np.ndarray | None) -> Block:
    """Return rows with their labels and weights as a block."""
    fault = _fault(X, y, weights)
    return Block(X, *numbered(y[:0] if fault else y), weights, fault)


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


@dataclass(frozen=True, eq=False)
class Description:
    """The sizes of rows, their distinct labels with the total weight of each, and their first fault.

    `sizes` has the number of rows of each partition, `entries` the number of stored entries. The fault names a row,
    or is a sentence about a partition.
    """

    sizes: dict[int, int]
    columns: frozenset[int]
    entries: int
    sparse: bool
    names: np.ndarray
    totals: np.ndarray
    fault: tuple[int | None, str] | None

    @classmethod
    def of(cls, part: int, _: int, block: Block) -> Description:
        """Return the description of a block of a partition."""
        X, names, numbers, weights, fault = block
        totals = np.zeros(0) if fault else np.bincount(numbers, weights, names.size).astype(float)
        if fault and fault[0] is None:
            fault = None, f"partition {part} (counted from 0): {fault[1]}"
        return cls({part: X.shape[0]}, frozenset(X.shape[1:]), X.size, sp.issparse(X), names, totals, fault)

    def merge(self, other: Description) -> Description:
        """Return the description of the rows of both."""
        sizes = self.sizes | {part: n + self.sizes.get(part, 0) for part, n in other.sizes.items()}
        fault = self.fault
        if fault is None and other.fault is not None:
            row, words = other.fault
            fault = (None if row is None else sum(self.sizes.values()) + row), words
        # of labels that are text and of others no type of NumPy holds both
        mixed = (self.names.dtype.kind in "OUS") != (other.names.dtype.kind in "OUS")
        names, numbers = numbered(np.concatenate([self.names, other.names], dtype=object if mixed else None))
        totals = np.bincount(numbers, np.append(self.totals, other.totals), names.size)
        columns, entries = self.columns | other.columns, self.entries + other.entries
        return Description(sizes, columns, entries, self.sparse or other.sparse, names, totals, fault)


class ClusterPartitions(Partitions):
    """Rows of a collection on other machines, read once; `encode` names their classes before the first `reduce`.

    A back end sets what `reduce_blocks` needs, and `example`; then it calls `describe`. `close` releases the rows.

    Attributes
    ----------
    example : ndarray or pandas.DataFrame
        One row of zeros, with the names of the columns.
    names, totals : ndarray of shape (k,)
        The distinct labels, and the weight of all rows of each.
    """

    example: Any
    _firsts: dict[int, int] = {}  # noqa: RUF012

    @abstractmethod
    def reduce_blocks(
        self, function: Callable[[int, int, Block], M], interrupted: Callable[[], bool]
    ) -> M | None:
        """Apply a function of blocks, and merge the results; None if the pass was stopped.

        The first arguments of the function are the number of the partition, and of the first row of the block in it.
        """

    @abstractmethod
    def close(self) -> None:
        """Release the rows."""

    def describe(self, interrupted: Callable[[], bool]) -> None:
        """Read all rows; raise ValueError where they cannot be used, ReadingStoppedError if interrupted."""
        try:
            found = self.reduce_blocks(Description.of, interrupted)
            if found is None and interrupted():
                raise ReadingStoppedError(READING_STOPPED)
            if found is None:
                raise ValueError("Found no rows: all partitions are empty.")
            if found.fault is not None:
                row, words = found.fault
                raise ValueError(words if row is None else f"row {row} (counted from 0): {words}")
            if len(found.columns) > 1:
                widths = sorted(found.columns)
                raise ValueError(f"the partitions of X have different numbers of columns: {widths}.")
        except BaseException:
            self.close()
            raise
        counts = np.cumsum([0, *found.sizes.values()]).tolist()
        self.shape = counts[-1], next(iter(found.columns))
        # products of dense rows take several times less time for an entry
        self.sparse = found.sparse and found.entries < 0.25 * self.shape[0] * self.shape[1]
        self.names, self.totals = found.names, found.totals
        self._firsts = dict(zip(found.sizes, counts[:-1], strict=True))

    def encode(self, classes: np.ndarray, factors: np.ndarray | None) -> None:
        self._decode = partial(_decoded, classes, factors, self.sparse, self._firsts)

    def reduce(self, function: Callable[[Rows], M], interrupted: Callable[[], bool]) -> M | None:
        return self.reduce_blocks(partial(_apply, function, self._decode), interrupted)


def _decoded(
    classes: np.ndarray,
    factors: np.ndarray | None,
    sparse: bool,
    firsts: dict[int, int],
    part: int,
    place: int,
    block: Block,
) -> Rows:
    """Return the rows of a block with the numbers of their classes."""
    X, names, numbers, weights, _ = block
    codes = class_codes(names, classes)[numbers]
    X = X.toarray() if sp.issparse(X) and not sparse else X
    return Rows.consecutive(X, codes, times_factors(weights, codes, factors), firsts[part] + place)


def _apply(function: Callable[[Rows], M], decode: Callable[..., Rows], *block: Any) -> M:
    """Return the result of a function for the rows of a block."""
    return function(decode(*block))


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
