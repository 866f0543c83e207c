"""Rows of data some at a time, about their mean, in units in which they are of length one: nothing is copied whole."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import cached_property
from threading import local
from typing import Any

import numpy as np
import scipy.sparse as sp

from ...engine.cholesky import products
from ...engine.jit import writable
from ...engine.newton import about, squares, weigh, weigh_rows, weighted
from ...numerics.sums import Plain
from ...problem.problem import Problem

BYTES = 2**20  # of rows that are looked at together,
KEPT = 2**22  # and of those that are kept about their mean
TOGETHER = 1024  # rows that are scored and combined while they are in cache
TURNED = 64  # rows that are turned at once, for products of columns
# coordinates, and rows x coordinates^2, up to which BLAS takes no less than loops of our own
NARROW, BY_LOOPS = 90, 85_000
# times the length of most rows is what a few may make of the average; and of a sample, where it may be so
LONGER, DOUBT = 1e3, 2.0
# places of rows that tell what most are like, as shares of all: any will do, and always the same
SAMPLE = np.sort(np.random.default_rng(0).random(500))
APART = 1e-6  # share of the sum of all squares that tells lengths about the mean well enough
# share of the rows that may be so long, and rows: where more are, lengths have no gap
FEW, AT_LEAST = 0.03, 3
_ONE = np.ones(1)
_ONE.flags.writeable = False


class Blocks:
    """Rows (x - mean, constant) in float64, some at a time; in units in which they are of length one on average.

    Where that would be the length of a few rows alone, the units are those of most, and so is the mean. Classes in
    threads share the blocks: nothing is written here, but what is the same for all, or a thread's own.

    Parameters
    ----------
    X : ndarray or CSR matrix of shape (n, d)
    problem : Problem
        A free intercept does not see a shift of the columns; numbers do. Its constant is one in any units.
    like : Blocks, default=None
        Of whose rows these are some: mean and units are theirs.
    square : float, default=None
        The sum of |x|^2, where it is known.

    Attributes
    ----------
    unit : float
    lengths : ndarray of shape (n,)
        Of the few rows that are so long; 1 of all others.
    units : ndarray of shape (size,)
        Of each column.
    regular : ndarray of shape (size,)
        1 for every weight that is regularised, 0 for a free intercept.
    """

    def __init__(
        self, problem: Problem, X: Any, like: Blocks | None = None, square: float | None = None
    ) -> None:
        self.X, (self.n, self.d), self.problem = X, X.shape, problem
        self.constant = 1.0 if problem.free else problem.rho
        self._threads = local()
        self.size = self.d + (self.constant > 0.0)
        each = 2 * (1 + X.nnz // self.n) if sp.issparse(X) else self.size  # numbers a row
        self.step = max(1, min(self.n, BYTES // (8 * each)))
        if like is None:
            self.mean = np.zeros(self.d)
            if problem.free:
                self.mean = Plain.combine(X, np.full(self.n, 1.0 / self.n))
            self.unit = (self._square(square) / self.n + problem.rho**2) ** 0.5 or 1.0
            self.lengths = self._find_long_rows(problem)
        else:
            self.mean, self.unit, self.lengths = like.mean, like.unit, _ones(self.n)
        self.units, self.regular = np.full(self.size, self.unit), np.ones(self.size)
        if problem.free:
            self.units[-1], self.regular[-1] = 1.0, 0.0

    @property
    def sparse(self) -> bool:
        """Are rows stored as lists of non-zeros?"""
        return sp.issparse(self.X)

    def some(self, places: slice) -> Blocks:
        """Some of these rows, about the same mean and in the same units; none of them counts as long."""
        X = self.X[places] if sp.issparse(self.X) else np.ascontiguousarray(self.X[places])
        return blocks_of(self.problem, X, self)

    def parts(self) -> Iterator[slice]:
        """The places of the rows that are looked at together."""
        return (slice(first, min(first + self.step, self.n)) for first in range(0, self.n, self.step))

    def _square(self, square: float | None) -> float:
        """The sum of |x - mean|^2; that of |x|^2 may be known."""
        X, shift = self.X, self.n * float(self.mean @ self.mean)
        if square is None:
            square = _square(
                np.array_split(X.data, 1 + 8 * X.nnz // BYTES)
                if sp.issparse(X)
                else (X[some] for some in self.parts())
            )
        if sp.issparse(X):
            return max(square - shift, 0.0)
        if APART * square < square - shift < np.inf:
            return square - shift
        return _square(X[some] - self.mean for some in self.parts())

    def _find_long_rows(self, problem: Problem) -> np.ndarray:
        """Of rows so long that mean and unit are theirs, few as they are: those of most replace them then."""
        some, middle = self.X, np.zeros(self.d)
        if self.n > SAMPLE.size:
            some = self.X[(SAMPLE * self.n).astype(np.intp)]
        if self.unit <= DOUBT * upper_median(np.hypot(_lengths(some, self.mean), problem.rho)):
            return _ones(self.n)
        if problem.free and not sp.issparse(some):
            middle = upper_median(some).astype(float)
        found = np.hypot(_lengths(some, middle), problem.rho)
        most = float(upper_median(found[found > 0.0])) if found.any() else 0.0
        if not 0.0 < LONGER * most < self.unit:
            return _ones(self.n)
        lengths = np.concatenate([_lengths(self.X[part], middle) for part in self.parts()]) / most
        lengths = few_longer(lengths)
        if (lengths > 1.0).any():
            self.mean, self.unit = middle, most
        return lengths

    def all_scores(self, z: np.ndarray) -> np.ndarray:
        """z times all rows."""
        return Plain.scores(self.X, *self.primal(z))

    def all_combined(self, c: np.ndarray) -> np.ndarray:
        """c, of shape (n,), times all rows."""
        return self.combined(Plain.combine(self.X, c), float(c.sum()))

    def weigh_at(
        self, z: np.ndarray, y: np.ndarray, share: np.ndarray, slack: np.ndarray, signed: np.ndarray
    ) -> tuple[float, float, np.ndarray]:
        """slack = 1 - y z.b of all rows b, signed = y alpha with alpha = share max(0, slack), in one pass.

        (sum alpha, sum share max(0, slack)^2, what `signed` combines the rows to.)
        """
        w, b = self.primal(z)
        if sp.issparse(self.X):
            np.multiply(Plain.scores(self.X, w, b), y, out=slack)
            np.subtract(1.0, slack, out=slack)
            return *weigh(slack, share, y, signed), self.all_combined(signed)
        total, square, made, uneven = _weigh_rows(self.X, y, share, w, b, slack, signed, self.step)
        return total, square, self.combined(made, uneven)

    def scores(self, z: np.ndarray, places: slice) -> np.ndarray:
        """z times these rows."""
        w, b = self.primal(z)
        return np.asarray(self._some(places) @ w, dtype=float) + b

    def combine(self, c: np.ndarray, places: slice) -> np.ndarray:
        """c, of shape (m, rows), times these rows."""
        some = self._some(places)
        # one by one is what BLAS is faster at
        return self.combined(np.array([some.T @ factors for factors in c]), c.sum(axis=1))

    def combined(self, made: np.ndarray, total: Any) -> np.ndarray:
        """Combinations of these rows, from those of the rows x and the sums of their factors."""
        out = np.empty((*made.shape[:-1], self.size))
        out[..., : self.d] = made - np.multiply.outer(total, self.mean)
        out[..., self.d :] = self.constant * np.asarray(total)[..., None]
        return out / self.units

    def products(self, share: np.ndarray, rows: slice | np.ndarray) -> np.ndarray:
        """The sum of share b b' over these rows b, in whatever units `regularised` expects."""
        return self._of_sparse(share, rows) if sp.issparse(self.X) else self._of_dense(share, rows)

    def all_products(
        self, share: np.ndarray, rows: np.ndarray, interrupted: Callable[[], bool] = lambda: False
    ) -> np.ndarray:
        """The same over rows anywhere, of whose shares `share` has one for every row; some at a time.

        Shares that have been given stay as they are.
        """
        matrix = np.zeros((self.size, self.size))
        for first in range(0, rows.size, self.step):
            some = rows[first : first + self.step]
            matrix += self.products(share[some], some)
            if interrupted():
                break
        return matrix

    def regularised(self, matrix: np.ndarray) -> np.ndarray:
        """Sums of `products` in the rows' units, and 1 for every weight that is regularised."""
        return matrix / self.units / self.units[:, None] + np.diag(self.regular)

    def gap(self, z: np.ndarray, made: np.ndarray, loss: float, linear: float) -> float:
        """The relative gap of z, at which the loss is this, and of dual weights; inf where these prove nothing.

        They combine the rows to `made`, and `linear` is what they are worth but for its square.
        """
        primal = 0.5 * float((self.regular * z) @ z) + loss
        dual = linear - 0.5 * float((self.regular * made) @ made)
        # what evens dual weights out costs about as much
        uneven = abs(float(made[-1])) if self.problem.free else 0.0
        return (abs(primal - dual) + uneven) / dual if dual > 0.0 else np.inf

    def _of_dense(self, share: np.ndarray, rows: slice | np.ndarray) -> np.ndarray:
        some = self._room[: share.size]
        weighted(np.asarray(self.X), _places(rows), share, self.mean, self.constant, some)
        return some.T @ some

    def _of_sparse(self, share: np.ndarray, rows: slice | np.ndarray) -> np.ndarray:
        X, some = self.X, np.arange(self.n)[rows] if isinstance(rows, slice) else rows
        found = np.zeros((self.d + 1, self.d + 1))
        squares(unsigned(X.indptr), unsigned(X.indices), X.data, some, share, found)
        found += np.tril(found, -1).T
        sums, total = found[-1, :-1].copy(), float(found[-1, -1])
        apart = np.outer(sums - 0.5 * total * self.mean, self.mean)
        found[:-1, :-1] -= apart + apart.T
        found[-1, :-1] = found[:-1, -1] = self.constant * (sums - total * self.mean)
        found[-1, -1] = self.constant**2 * total
        return found[: self.size, : self.size]

    def _some(self, places: slice) -> Any:
        return self._views[places.start // self.step] if sp.issparse(self.X) else self.X[places]

    @cached_property
    def _views(self) -> list[Any]:
        """The parts of a CSR matrix: SciPy would copy their entries each time."""
        X, found = self.X, []
        for places in self.parts():
            first, last = X.indptr[places.start], X.indptr[places.stop]
            pointers = X.indptr[places.start : places.stop + 1] - first
            some = (X.data[first:last], X.indices[first:last], pointers)
            found.append(sp.csr_array(some, shape=(pointers.size - 1, self.d), copy=False))
        return found

    @property
    def _room(self) -> np.ndarray:
        """Where rows are gathered: every thread has its own, as classes share the blocks."""
        mine = self._threads
        if not hasattr(mine, "room"):
            mine.room = np.empty((self.step, self.size))
        return mine.room

    def primal(self, z: np.ndarray) -> tuple[np.ndarray, float]:
        """(w, b) of the problem's own units."""
        z = z / self.units
        w, rest = z[: self.d], z[self.d :]
        own = self.constant * float(rest[0]) if rest.size else 0.0
        return w, own - float(self.mean @ w)

    def coordinates(self, w: np.ndarray, b: float) -> np.ndarray:
        """The z that stands for (w, b): `primal` the other way round."""
        return np.append(w, (b + self.mean @ w) / (self.constant or 1.0))[: self.size] * self.units


class Few(Blocks):
    """A few dense rows: kept as they are about their mean, with the constant, in their units."""

    def __init__(
        self, problem: Problem, X: np.ndarray, like: Blocks | None = None, square: float | None = None
    ) -> None:
        super().__init__(problem, X, like, square)
        self.rows = np.empty((self.n, self.size))
        about(X, self.mean, 1.0 / self.units, self.constant, self.rows)
        # what every class asks for
        self._whole: tuple[np.ndarray, np.ndarray] | None = None
        self._weighed: tuple[np.ndarray, np.ndarray] | None = None
        self._every: tuple[int, np.ndarray] | None = None

    def weighed(self, weights: np.ndarray) -> np.ndarray:
        """What each pattern weighs in these units: its cap, or 1 over the square of its own coordinate."""
        found = self._weighed
        if found is None or not _equal(found[0], weights):
            if self.problem.loss == "hinge":
                share = self.problem.caps(weights) * self.unit**2
            else:
                share = self.unit**2 / self.problem.delta2(weights)
            self._weighed = found = weights, share
        return found[1]

    def every(self, k: int) -> np.ndarray:
        """Every k-th row."""
        every = self._every
        if every is None or every[0] != k:
            self._every = every = k, self.rows[::k].copy()
        return every[1]

    def all_scores(self, z: np.ndarray) -> np.ndarray:
        return self.rows @ z

    def all_combined(self, c: np.ndarray) -> np.ndarray:
        return c @ self.rows

    def weigh_at(
        self, z: np.ndarray, y: np.ndarray, share: np.ndarray, slack: np.ndarray, signed: np.ndarray
    ) -> tuple[float, float, np.ndarray]:
        return _weigh_rows(self.rows, y, share, z, 0.0, slack, signed, self.step)[:3]

    def scores(self, z: np.ndarray, places: slice) -> np.ndarray:
        return self.rows[places] @ z

    def combine(self, c: np.ndarray, places: slice) -> np.ndarray:
        return np.array([factors @ self.rows[places] for factors in c])

    def products(self, share: np.ndarray, rows: slice | np.ndarray) -> np.ndarray:
        some = np.empty((share.size, self.size))  # no room of its own: classes in threads share these blocks
        weighted(self.rows, _places(rows), share, np.zeros(self.size), 0.0, some)
        return some.T @ some

    def all_products(
        self, share: np.ndarray, rows: np.ndarray, interrupted: Callable[[], bool] = lambda: False
    ) -> np.ndarray:
        if rows.size < self.n:
            return self._some_products(share, rows)
        # what every class begins with
        whole = self._whole
        if whole is None or not _equal(whole[0], share):
            self._whole = whole = share, self._some_products(share, rows)
        return whole[1].copy()

    def _some_products(self, share: np.ndarray, rows: np.ndarray) -> np.ndarray:
        if self.size <= NARROW or rows.size * self.size**2 <= BY_LOOPS:
            matrix = np.empty((self.size, self.size))
            products(self.rows, share, rows, room_for_products(rows.size, self.size), matrix)
            return matrix
        return self.products(share[rows], rows)

    def regularised(self, matrix: np.ndarray) -> np.ndarray:
        out = matrix.copy()
        out.flat[:: self.size + 1] += self.regular
        return out


def _equal(one: np.ndarray, other: np.ndarray) -> bool:
    """Are these the same, or equal?"""
    return one is other or np.array_equal(one, other)


def room_for_products(n: int, size: int) -> np.ndarray:
    """Where `compiled.definite.products` may turn some of so many rows."""
    return np.empty((size, max(1, min(n, TURNED))))


def is_few(X: Any) -> bool:
    """Are these rows dense, and so few that they are kept about their mean?"""
    return not sp.issparse(X) and 8 * X.shape[0] * (X.shape[1] + 1) <= KEPT


def blocks_of(problem: Problem, X: Any, like: Blocks | None = None, square: float | None = None) -> Blocks:
    """The rows of a problem in blocks, as Blocks has them; they may be in blocks already."""
    if isinstance(X, Blocks):
        return X
    return Few(problem, X, like, square) if is_few(X) else Blocks(problem, X, like, square)


def _weigh_rows(
    X: Any,
    y: np.ndarray,
    share: np.ndarray,
    w: np.ndarray,
    b: float,
    slack: np.ndarray,
    signed: np.ndarray,
    step: int,
) -> tuple[float, float, np.ndarray, float]:
    """`compiled.newton.weigh_rows`, no more than `step` at once: its sums, the combination in the third place."""
    made, some = np.zeros((2, w.size)), np.empty(min(TOGETHER, step, y.size), np.uint32)
    total, square, uneven = weigh_rows(writable(X), y, share, w, b, slack, signed, some, made)
    return total, square, made[0], uneven


def _places(rows: slice | np.ndarray) -> np.ndarray:
    """The places of these rows."""
    return np.arange(rows.start, rows.stop, dtype=np.uint32) if isinstance(rows, slice) else rows


def _ones(n: int) -> np.ndarray:
    """1 for every row, in no memory of their own."""
    return np.ndarray((n,), buffer=_ONE, strides=(0,))


def _square(parts: Iterable[np.ndarray]) -> float:
    """The sum of the squares of all entries."""
    return sum(float(np.vdot(part, part)) for part in (np.asarray(part, float) for part in parts))


def _lengths(X: Any, mean: np.ndarray) -> np.ndarray:
    """|x - mean| of every row; of sparse ones |x|, whose mean is 0."""
    if sp.issparse(X):
        squares = X.astype(float)
        np.square(squares.data, out=squares.data)
        return np.sqrt(np.asarray(squares.sum(axis=1)).ravel())
    apart = X - mean
    return np.sqrt(np.einsum("ij,ij->i", apart, apart))


def few_longer(lengths: np.ndarray) -> np.ndarray:
    """Of rows far longer than one, if these are few; 1 of the others."""
    longer = lengths > LONGER
    few = np.count_nonzero(longer) <= max(FEW * lengths.size, AT_LEAST)
    return np.where(longer & few, lengths, 1.0)


def upper_median(values: np.ndarray) -> np.ndarray:
    """Of every column: half are no greater."""
    middle = values.shape[0] // 2
    return np.partition(values, middle, axis=0)[middle]


def unsigned(a: np.ndarray) -> np.ndarray:
    """Indices as compiled loops are fastest with them."""
    return a.view(f"u{a.dtype.itemsize}")
