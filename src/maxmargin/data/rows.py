"""The door: data are made ready for the engine here, and only here (the only `issparse` of the solvers)."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from functools import cached_property
from threading import Lock
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
import scipy.sparse as sp

from ..engine.jit import writable
from ..engine.state import (
    FACTOR,
    INVERSE,
    NUMBERS,
    SCALE,
    Aside,
    Elastic,
    Fixed,
    Loose,
    Mixed,
    Motion,
    Rigid,
    Shifted,
    Weight,
    pack,
)
from ..engine.storage import Biased, Dense, Gram, Sparse
from ..engine.vectors import (
    Absolute,
    Largest,
    Plain,
    Powered,
    Primal,
    Scratch,
    squares_dense,
    squares_p_dense,
    squares_p_sparse,
    squares_sparse,
)
from ..numerics.norms import row_norms
from ..problem.problem import Problem

if TYPE_CHECKING:
    from ..algorithms.batch.kernel_rows import KernelRows

_T = TypeVar("_T")

LARGE_DATA, LARGE_SET = 32e6, 0.5  # of data of so many bytes, no set of more than this share is copied
SIDE_BY_SIDE = 32  # rows of large data: memory is slow where nothing is next to what came before
_SMALL_INDEX = 2**32 - 1  # above, indices take 64 bits
_SHORT, _ALIKE, _BLOCK = 32, 1.0, 512  # entries of short rows; spread of like lengths; rows sorted by length


class Patterns:
    """The rows of one data set, shared by all classes of a problem.

    Dense and CSR, float32 and float64, 32-bit and 64-bit indices are kept as they come; read-only arrays and
    memory maps are not copied. Rows of a CSR matrix with unsorted or repeated entries are put in order (a copy).

    Parameters
    ----------
    X : ndarray or CSR matrix of shape (n, d)
    square : ndarray of shape (n,), default=None
        |x_i|^2, where it is known.

    Attributes
    ----------
    X : ndarray or CSR matrix of shape (n, d)
    square : ndarray of shape (n,)
        |x_i|^2, in float64.
    """

    def __init__(self, X: Any, square: np.ndarray | None = None) -> None:
        self.X = X = canonical(X)
        self.n, self.d = X.shape
        if sp.issparse(X):
            index = np.uint32 if max(X.nnz, self.d) <= _SMALL_INDEX else np.uint64
            self._indptr, self._indices = _unsigned(X.indptr, index), _unsigned(X.indices, index)
            self._data = writable(X.data)
        else:
            self._dense = writable(X)
        self.square = self._square() if square is None else square
        self._squares: dict[float, np.ndarray] = {2.0: self.square}
        self._shared: dict[Hashable, Any] = {}
        self._making = Lock()

    def _square(self) -> np.ndarray:
        out = np.empty(self.n)
        if not self.sparse:
            squares_dense(self._dense, out)
        else:
            squares_sparse(self._indptr, self._data, out)
        return out

    @cached_property
    def order(self) -> np.ndarray:
        """All rows, in an order in which a look at them is fast."""
        return _by_lengths(np.diff(self.X.indptr)) if self.sparse else np.arange(self.n, dtype=np.uint32)

    @cached_property
    def longest2(self) -> float:
        """The largest |x_i|^2."""
        return float(self.square.max(initial=0.0))

    def some(self, places: np.ndarray) -> Patterns:
        """These rows, in this order."""
        return Patterns(self.X[places], self.square[places])

    @property
    def sparse(self) -> bool:
        """Are rows stored as lists of non-zeros?"""
        return sp.issparse(self.X)

    @property
    def entries(self) -> int:
        """Stored entries of all rows."""
        return int(self.X.nnz) if self.sparse else self.n * self.d

    def squares(self, p: float, rho: float = 0.0) -> np.ndarray:
        """|x_i|_p^2 in float64; with a constant coordinate rho, |(x_i, rho)|_p^2.

        Parameters
        ----------
        p : float in [1, inf]
        rho : float, default=0
        """
        p = float(p)
        if p not in self._squares:
            out = np.empty(self.n)
            if not self.sparse:
                squares_p_dense(self._dense, p, out)
            else:
                squares_p_sparse(self._indptr, self._data, p, out)
            self._squares[p] = out
        square = self._squares[p]
        if not rho:
            return square
        if p == 2.0:
            return square + rho * rho
        return row_norms(np.column_stack([np.sqrt(square), np.full(self.n, rho)]), p) ** 2

    def shared(self, key: Hashable, make: Callable[[], _T]) -> _T:
        """Return `make()`, computed once for each `key` and then shared by all classes (and threads)."""
        with self._making:
            if key not in self._shared:
                self._shared[key] = make()
            return self._shared[key]

    @property
    def large(self) -> bool:
        """Are these more than caches hold?"""
        return self.entries * self.X.dtype.itemsize >= LARGE_DATA

    @property
    def side_by_side(self) -> int:
        """How many neighbours go together in a random order of all rows."""
        return SIDE_BY_SIDE if self.large else 1

    def room(self) -> Room:
        """Memory for packed rows: two of them take no more than the data, where these are large."""
        return Room(int(LARGE_SET * self.n)) if self.large else Room()

    def weight(
        self,
        problem: Problem,
        y: np.ndarray,
        weights: np.ndarray,
        unit: float,
        rho: float,
        scale: Any = None,
        holds: bool = False,
        motion: Motion = Motion.LINK,
    ) -> Weight:
        """The engine's one state for a problem, at w = 0.

        Parameters
        ----------
        problem : Problem
        y : ndarray of shape (n,), entries -1.0 and 1.0
        weights : ndarray of shape (n,)
            Sample weights.
        unit : float
            The score that stands for a margin of one.
        rho : float
            The constant coordinate of every pattern (0 for none): the regularised intercept, or a step of the
            free one.
        scale : record, default=None
            What the rule does to w as a whole; None for one that only adds.
        holds : bool, default=False
            Does the rule hold a pattern of each class?
        motion : Motion, default=Motion.LINK
        """
        vector = _vector(self.d + (1 if rho else 0), problem, motion)
        if not self.sparse:
            space: Any = Dense(self._dense, vector)
        else:
            space = Sparse(self._indptr, self._indices, self._data, vector)
        square = self.squares(problem.p, rho)
        if rho:
            space = Biased(space, vector, float(rho))
        return _weight(space, square, problem, y, weights, unit, scale, holds, motion)


class KernelPatterns:
    """The rows of one data set, known by their kernel alone; those of weight 0 take no part.

    Parameters
    ----------
    rows : KernelRows
        What is at hand of them is known here as long as nobody else has rows computed.
    used : ndarray of int
        Which rows take part, in the order in which the engine knows them.

    Attributes
    ----------
    square : ndarray of shape (n,)
        k(x_i, x_i) of those, in float64.
    """

    side_by_side = 1

    def __init__(self, rows: KernelRows, used: np.ndarray) -> None:
        self.rows, self.used = rows, used.astype(np.uint32)
        self.n, self.d = used.size, rows.n
        self.entries = self.n * self.n
        self.square = np.maximum(rows.diagonal[used], 0.0, dtype=float)
        self.order = np.arange(self.n, dtype=np.uint32)
        self.longest2 = float(self.square.max(initial=0.0))
        self._places, self._asked = np.full(rows.n, -1), np.zeros(rows.n, np.uint8)
        self._owners = np.full(rows.most, -1)
        self._computed = rows.computed

    def squares(self, p: float, rho: float = 0.0) -> np.ndarray:
        """|x_i|^2; with a constant coordinate rho, |(x_i, rho)|^2. p is 2."""
        return self.square + rho * rho

    def room(self) -> Room:
        """Memory for packed rows, which are lists of numbers."""
        return Room()

    def weight(
        self,
        problem: Problem,
        y: np.ndarray,
        weights: np.ndarray,
        unit: float,
        rho: float,
        scale: Any = None,
        holds: bool = False,
        motion: Motion = Motion.LINK,
    ) -> Weight:
        """The engine's one state for a problem, at w = 0; as `Patterns.weight`."""
        space = Gram(
            self.rows.rows, self._places, self._asked, self.used, Plain(np.zeros(self.rows.n + 1)), float(rho)
        )
        return _weight(space, self.squares(2.0, rho), problem, y, weights, unit, scale, holds, motion)

    def fetch(self, wanted: np.ndarray) -> np.ndarray:
        """Have the rows of these patterns at hand, at most `rows.most` of them; their places.

        Others may leave, those first that were not asked for since they came.
        """
        if self.rows.most < self.rows.n:
            self._take(np.flatnonzero((self._asked > 0) & (self._places >= 0)))
            self._asked[:] = 0
        return self._take(wanted)

    def forget(self) -> None:
        """Nothing counts as being at hand where somebody else may have put other rows in its place."""
        if self.rows.computed != self._computed:
            self._places[:] = self._owners[:] = -1
            self._computed = self.rows.computed

    def _take(self, wanted: np.ndarray) -> np.ndarray:
        slots = self.rows.slots(wanted)
        gone = self._owners[slots]
        self._places[gone[gone >= 0]] = -1
        self._places[wanted], self._owners[slots] = slots, wanted
        self._computed = self.rows.computed
        return slots


def canonical(X: Any) -> Any:
    """Rows side by side: a C-ordered matrix, or CSR with sorted entries, each once; float32 or float64."""
    if sp.issparse(X):
        X = X.tocsr()
        if not X.has_canonical_format:
            X = X.copy()
            X.sum_duplicates()
    else:
        X = np.ascontiguousarray(X)
    return X if X.dtype in (np.float32, np.float64) else X.astype(np.float64)


class Room:
    """Memory for packed rows of a weight; vector, dual weights and numbers stay shared.

    As large as the data, but memory that nothing is written to is never taken from the machine.

    Parameters
    ----------
    most : int, default=None
        Rows above which `gather` leaves a set where it is.
    """

    def __init__(self, most: int | None = None) -> None:
        self._most = most
        self._held: Weight | None = None

    def gather(self, h: Weight, rows: np.ndarray) -> tuple[Weight, np.ndarray]:
        """A weight, and where these rows are in it: packed, unless they are more than `most`."""
        if self._most is not None and rows.size > self._most:
            return h, rows
        if h.place.size:  # what the rule holds comes along, at the end
            held = np.unique(h.place[h.held])
            packed = self.pack(h, np.concatenate([rows, held[~np.isin(held, rows)]]))
        else:
            packed = self.pack(h, rows)
        return packed, np.arange(rows.size, dtype=np.uint32)

    def pack(self, h: Weight, rows: np.ndarray) -> Weight:
        """Copy these rows of h, in this order, into contiguous memory."""
        if self._held is None:
            n = h.alpha.size  # of all patterns: h may be packed itself, and smaller
            self._held = h._replace(
                space=_like(h.space, n),
                y=np.empty(n),
                square=np.empty(n),
                cap=np.empty(n),
                ids=np.empty(n, np.uint32),
                place=h.place.copy(),
            )
        held, m = self._held, rows.size
        packed = held._replace(y=held.y[:m], square=held.square[:m], cap=held.cap[:m], ids=held.ids[:m])
        pack(packed, h, rows)
        return packed


def _weight(
    space: Any,
    square: np.ndarray,
    problem: Problem,
    y: np.ndarray,
    weights: np.ndarray,
    unit: float,
    scale: Any,
    holds: bool,
    motion: Motion,
) -> Weight:
    """The engine's one state in a space, with what every space has in common."""
    n = y.size
    alpha, number = np.zeros(n), np.zeros(NUMBERS)
    number[SCALE] = number[INVERSE] = number[FACTOR] = 1.0
    if scale is None:
        scale = Shifted if problem.free else Fixed
    delta2 = problem.delta2(weights)
    slack: Any = Rigid(alpha)
    if delta2.any():
        slack, square = _slack(alpha, delta2, problem, motion), square + delta2
    return Weight(
        space=space,
        scale=scale(number),
        slack=slack,
        y=np.asarray(y, dtype=float),
        square=square,
        cap=problem.caps(weights) * unit,
        ids=np.arange(n, dtype=np.uint32),
        alpha=alpha,
        number=number,
        held=np.zeros(2, np.uint32),
        place=np.arange(n if holds else 0, dtype=np.uint32),
    )


def _vector(size: int, problem: Problem, motion: Motion) -> Any:
    """Where w lives."""
    w = np.zeros(size)
    if problem.p == 2 and motion is not Motion.FLEXIBLE:
        return Plain(w)
    if motion is Motion.LINK:
        scratch = Scratch(
            np.zeros(size), np.zeros(size, np.uint64), np.zeros(size, np.uint8), np.zeros(1, np.int64)
        )
        return Powered(w, np.zeros(size), np.zeros(3), scratch, float(problem.p))
    length = np.zeros(2)
    if problem.q == 1.0:
        return Absolute(w, length)
    return Largest(w, length) if np.isinf(problem.q) else Primal(w, np.zeros(size), length, float(problem.q))


def _slack(alpha: np.ndarray, delta2: np.ndarray, problem: Problem, motion: Motion) -> Any:
    """Own coordinates: the dual weights are theirs as well, but where these count steps."""
    if motion is Motion.FLEXIBLE:
        return Loose(np.zeros(alpha.size), delta2, np.ones(1))
    if problem.p == 2:
        return Elastic(alpha, delta2)
    if motion is Motion.LINK:
        return Mixed(alpha, delta2, np.zeros(1))
    return Aside(np.zeros(alpha.size), delta2, np.array([1.0, 0.0]))


def _like(space: Any, rows: int) -> Any:
    if isinstance(space, Biased):
        return space._replace(base=_like(space.base, rows))
    if isinstance(space, Gram):
        return space._replace(rows=np.empty(rows, np.uint32))
    if isinstance(space, Dense):
        return space._replace(X=np.empty((rows, space.X.shape[1]), space.X.dtype))
    return space._replace(
        indptr=np.zeros(rows + 1, space.indptr.dtype),
        indices=np.empty_like(space.indices),
        data=np.empty_like(space.data),
    )


def _by_lengths(lengths: np.ndarray) -> np.ndarray:
    """All rows in order; short ones of many lengths sorted, block by block: the ends of rows are foreseen then."""
    line = np.arange(lengths.size, dtype=np.uint32)
    size = lengths.size // _BLOCK * _BLOCK
    if size and lengths.mean() <= _SHORT and lengths.std() > _ALIKE and lengths.max() < 2**16:
        blocks = lengths[:size].astype(np.uint16).reshape(-1, _BLOCK)  # 16 bits are sorted by counting
        places = np.argsort(blocks, axis=1, kind="stable") + np.arange(0, size, _BLOCK)[:, None]
        line[:size] = places.ravel()
    return line


def _unsigned(a: np.ndarray, index: type[np.unsignedinteger]) -> np.ndarray:
    """Non-negative indices as unsigned ones: without a copy where the size is right already."""
    return writable(a).view(index) if a.dtype.itemsize == np.dtype(index).itemsize else a.astype(index)
