"""Rows of data in the storage of the engine, and contiguous memory for some of them.

Whether rows are dense, sparse or given by a kernel is known here only: solvers use the same methods for all.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from functools import cached_property
from threading import Lock
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp

from ..engine.jit import writable
from ..engine.p_norm import new_vector
from ..engine.state import ExplicitSlack, L2Slack, Motion, NoSlack, Scaled, Unscaled, Weight, new_numbers
from ..engine.storage import Biased, Dense, Gram, Sparse, copy_rows
from ..engine.vectors import EuclideanVector, QNormVector
from ..numerics.columns import Columns, canonical
from ..numerics.sums import row_norms, row_squares
from ..problem.problem import Problem
from ..solvers.rows import CentredRows

if TYPE_CHECKING:
    from ..solvers.decomposition import KernelRows

_SMALL_INDEX = 2**32 - 1  # largest index of 32 bits


class _RowSet(ABC):
    """Rows of one data set, shared by all classes of a problem."""

    n: int

    def engine_state(
        self,
        problem: Problem,
        y: np.ndarray,
        weights: np.ndarray,
        unit: float,
        rho: float,
        scale: Any = None,
        has_pair: bool = False,
        motion: Motion = Motion.LINK,
    ) -> Weight:
        """Return the engine's state for a problem, at w = 0.

        Parameters
        ----------
        problem : Problem
        y : ndarray of shape (n,), entries -1.0 and 1.0
        weights : ndarray of shape (n,)
            Sample weights.
        unit : float
            The score that corresponds to a margin of one.
        rho : float
            The constant coordinate of every pattern, 0 for none: that of an augmented intercept, or the step length
            of a free intercept that is shifted.
        scale : record, default=None
            `Unscaled` or `Scaled`; None: `Unscaled`. The link of a p-norm has a factor, and needs `Scaled`.
        has_pair : bool, default=False
            Whether the rule has a pair, one pattern of each class (PUMMA).
        motion : Motion, default=Motion.LINK
        """
        n = y.size
        alpha, number = np.zeros(n), new_numbers()
        square, slack, delta2 = self.squares(problem.p, rho), NoSlack(alpha), problem.delta2(weights)
        if problem.p != 2 and motion is Motion.LINK:
            scale = Scaled
        if delta2.any():
            square, slack = square + delta2, _slack(alpha, delta2, problem, motion)
        return Weight(
            space=self._storage(problem, rho, motion),
            scale=(scale or Unscaled)(number),
            slack=slack,
            y=np.asarray(y, dtype=float),
            square=square,
            cap=problem.caps(weights) * unit,
            ids=np.arange(n, dtype=np.uint32),
            alpha=alpha,
            number=number,
            pair=np.zeros(2, np.uint32),
            row_of=np.arange(n if has_pair else 0, dtype=np.uint32),
        )

    @abstractmethod
    def squares(self, p: float, rho: float = 0.0) -> np.ndarray:
        """Return |x_i|_p^2 in float64; with a constant coordinate rho, |(x_i, rho)|_p^2: shape (n,)."""

    @abstractmethod
    def _storage(self, problem: Problem, rho: float, motion: Motion) -> Any:
        """Return the storage of all rows, with a vector of zeros."""


class Patterns(_RowSet):
    """Rows given by their entries.

    Dense and CSR, float32 and float64, 32-bit and 64-bit indices are kept as they come; read-only arrays and
    memory maps are not copied. Rows of a CSR matrix with unsorted or repeated entries are put in order (a copy).

    Parameters
    ----------
    X : ndarray or CSR matrix of shape (n, d)
    columns : Columns, default=None
        The columns of the data set that X consists of; None where X has all of them.
    shift : ndarray of shape (d,), default=None
        What the door has subtracted from every row (`data.door`); None for nothing.

    Attributes
    ----------
    X : ndarray or CSR matrix of shape (n, d)
    square : ndarray of shape (n,)
        |x_i|^2, in float64.
    lengths : ndarray of shape (n,)
        |x_i|.
    longest2 : float
        The largest |x_i|^2.
    sparse : bool
        Whether rows are stored as lists of non-zeros.
    entries : int
        Stored entries of all rows.
    large : bool
        Whether the entries take more memory than the last cache of a processor.
    side_by_side : int
        The number of neighbours that stay together in a random order of all rows.
    """

    def __init__(self, X: Any, columns: Columns | None = None, shift: np.ndarray | None = None) -> None:
        self.X = X = engine_rows(X)
        self.columns, self.shift = columns, shift
        self.n, self.d = X.shape
        self.sparse = sp.issparse(X)
        self.entries = int(X.nnz) if self.sparse else self.n * self.d
        self.large = self.entries * X.dtype.itemsize >= 32e6
        self.side_by_side = 32 if self.large else 1  # memory is read in sequence
        self.square = square = row_squares(X)
        self.lengths, self.longest2 = row_norms(X, squares=square), float(square.max(initial=0.0))
        self._squares: dict[float, np.ndarray] = {2.0: square}
        self._centred: dict[Problem, CentredRows] = {}
        self._making = Lock()

    @cached_property
    def _stored(self) -> Any:
        """The engine's storage, without a vector."""
        X = self.X
        if not self.sparse:
            return Dense(writable(X), None)
        index = np.uint32 if max(X.nnz, self.d) <= _SMALL_INDEX else np.uint64
        data = None if (X.data == 1.0).all() else writable(X.data)
        return Sparse(_unsigned(X.indptr, index), _unsigned(X.indices, index), data, None)

    def squares(self, p: float, rho: float = 0.0) -> np.ndarray:
        if p not in self._squares:
            self._squares[p] = row_norms(self.X, p) ** 2
        square = self._squares[p]
        if not rho:
            return square
        if p == 2.0:
            return square + rho * rho
        # |(x_i, rho)|_p is the p-norm of (|x_i|_p, rho)
        return row_norms(np.column_stack([np.sqrt(square), np.full(self.n, rho)]), p) ** 2

    def centred(self, problem: Problem) -> CentredRows:
        """Return the rows of batch solvers, made once for each problem and then shared by all classes (and threads)."""
        with self._making:
            if problem not in self._centred:
                self._centred[problem] = CentredRows(problem, self.X)
            return self._centred[problem]

    def fetch(self, wanted: np.ndarray) -> None:
        """Load nothing: rows of data are there."""

    def packed_memory(self) -> PackedRows:
        """Return memory for packed rows."""
        return PackedRows(self.n // 2 if self.large else None)  # two copies take no more memory than the data

    def _storage(self, problem: Problem, rho: float, motion: Motion) -> Any:
        vector = _vector(self.d + (1 if rho else 0), problem, motion)
        rows = self._stored._replace(vector=vector)
        return Biased(rows, vector, float(rho)) if rho else rows


class KernelPatterns(_RowSet):
    """Rows given by their kernel.

    Parameters
    ----------
    rows : KernelRows
        Cache of the rows of the kernel; other problems may use it before and after this one, but not meanwhile.
    used : ndarray of int
        The rows of non-zero weight, in the order in which the engine numbers them.

    Attributes
    ----------
    square : ndarray of shape (n,)
        k(x_i, x_i) of the rows used, in float64.
    """

    large, side_by_side = False, 1

    def __init__(self, rows: KernelRows, used: np.ndarray) -> None:
        self.rows, self.used = rows, used.astype(np.uint32)
        self.n, self.d = used.size, rows.n
        self.entries = self.n * self.n
        self.square = np.maximum(rows.diagonal[used], 0.0, dtype=float)
        self.longest2 = float(self.square.max(initial=0.0))
        self._places, self._requested = np.full(rows.n, -1), np.zeros(rows.n, np.uint8)
        self._owners = np.full(rows.capacity, -1)  # the pattern in each slot of the cache; -1 for none

    def squares(self, p: float, rho: float = 0.0) -> np.ndarray:
        return self.square + rho * rho

    def packed_memory(self) -> PackedRows:
        """Return memory for packed rows, which are lists of numbers."""
        return PackedRows()

    def _storage(self, problem: Problem, rho: float, motion: Motion) -> Any:
        vector = EuclideanVector(np.zeros(self.rows.n + 1))
        return Gram(self.rows.rows, self._places, self._requested, self.used, vector, float(rho))

    def fetch(self, wanted: np.ndarray) -> np.ndarray:
        """Load the kernel rows of these patterns, at most `rows.capacity` of them; return their places.

        Other rows may be replaced, first those that no step has used since the last call.
        """
        if self.rows.capacity < self.rows.n:
            self._load(np.flatnonzero((self._requested > 0) & (self._places >= 0)))
            self._requested[:] = 0
        return self._load(self.used[wanted])

    def _load(self, wanted: np.ndarray) -> np.ndarray:
        """Load these rows into the cache, and mark the rows that they replace; return their slots."""
        # rows whose slots are assigned to other patterns have left the cache
        slots = self.rows.slots(wanted)
        gone = self._owners[slots]
        self._places[gone[gone >= 0]] = -1
        self._places[wanted], self._owners[slots] = slots, wanted
        return slots


def engine_rows(X: Any) -> Any:
    """Return X as a C-ordered matrix, or as CSR with sorted entries without repetitions; float32 or float64."""
    X = canonical(X.tocsr()) if sp.issparse(X) else np.ascontiguousarray(X)
    return X if X.dtype in (np.float32, np.float64) else X.astype(np.float64)


class PackedRows:
    """Contiguous memory for some rows of a `Weight`; its vector, dual variables and numbers are shared, not copied.

    It is allocated at the first use, as large as the data; the system assigns its pages as they are written.

    Parameters
    ----------
    max_rows : int, default=None
        Rows above which `gather` copies nothing; None for no limit.
    """

    def __init__(self, max_rows: int | None = None) -> None:
        self._max_rows = max_rows
        self._memory: Weight | None = None

    def gather(self, h: Weight, rows: np.ndarray) -> tuple[Weight, np.ndarray]:
        """Return a weight, and where these rows are in it: packed, unless they are more than `max_rows`."""
        if self._max_rows is not None and rows.size > self._max_rows:
            return h, rows
        size = rows.size
        if h.row_of.size:  # the rule's pair comes along, at the end
            pair = np.unique(h.row_of[h.pair])
            rows = np.concatenate([rows, pair[~np.isin(pair, rows)]])
        return self.pack(h, rows), np.arange(size, dtype=np.uint32)

    def pack(self, h: Weight, rows: np.ndarray) -> Weight:
        """Copy these rows of h, in this order, into contiguous memory."""
        if self._memory is None:  # for all patterns: h may be packed itself, and smaller
            self._memory = h._replace(space=_empty_like(h.space, h.alpha.size), row_of=h.row_of.copy())
        space, ids = _copied(self._memory.space, h.space, rows), h.ids[rows]
        if h.row_of.size:
            self._memory.row_of[ids] = np.arange(rows.size, dtype=np.uint32)
        return self._memory._replace(
            space=space, y=h.y[rows], square=h.square[rows], cap=h.cap[rows], ids=ids
        )


def _vector(size: int, problem: Problem, motion: Motion) -> Any:
    """Return the engine's vector for the norm of the problem, at w = 0, of `size` entries."""
    w = np.zeros(size)
    if problem.p == 2 and motion is not Motion.FLEXIBLE:
        return EuclideanVector(w)
    if motion is not Motion.LINK:
        return QNormVector(w, np.ones(size), np.zeros(2), float(problem.q))
    return new_vector(size, problem.p)


def _slack(alpha: np.ndarray, delta2: np.ndarray, problem: Problem, motion: Motion) -> Any:
    """Return the engine's slack coordinates, at 0; they are stored where dual variables count steps (`Motion`)."""
    if motion is Motion.LINK or (problem.p == 2 and motion is not Motion.FLEXIBLE):
        return L2Slack(alpha, delta2, np.zeros(1))
    in_norm = 0.0 if motion is Motion.FLEXIBLE else 1.0
    return ExplicitSlack(np.zeros(alpha.size), delta2, np.array([1.0, 0.0]), in_norm)


def _empty_like(space: Any, rows: int) -> Any:
    """Return a storage of the same kind for as many rows, with the same vector."""
    if isinstance(space, Biased):
        return space._replace(base=_empty_like(space.base, rows))
    if isinstance(space, Gram):
        return space
    if isinstance(space, Dense):
        return space._replace(X=np.empty((rows, space.X.shape[1]), space.X.dtype))
    return space._replace(
        indptr=np.zeros(rows + 1, space.indptr.dtype),
        indices=np.empty_like(space.indices),
        data=None if space.data is None else np.empty_like(space.data),
    )


def _copied(memory: Any, space: Any, rows: np.ndarray) -> Any:
    """Return a storage of these rows of another one, in memory that `_empty_like` has made."""
    if isinstance(space, Biased):
        return memory._replace(base=_copied(memory.base, space.base, rows))
    if isinstance(space, Gram):
        return memory._replace(rows=space.rows[rows])
    if isinstance(space, Dense):
        return memory._replace(X=np.take(space.X, rows, axis=0, out=memory.X[: rows.size], mode="clip"))
    copy_rows(memory, space, rows)
    return memory


def _unsigned(a: np.ndarray, index: type[np.unsignedinteger]) -> np.ndarray:
    """Return non-negative indices as unsigned ones, without a copy where an index already has as many bytes."""
    return writable(a).view(index) if a.dtype.itemsize == np.dtype(index).itemsize else a.astype(index)
