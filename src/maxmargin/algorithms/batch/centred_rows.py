"""Rows of a problem as batch solvers use them: about their mean, with the constant, and scaled to length one.

Sums over all rows go through chunks of about a megabyte, so that nothing of the size of the data is copied. Small dense
rows are copied once, centred and scaled.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np
import scipy.sparse as sp

from ...engine.jit import compiled, writable
from ...numerics.sums import Plain
from ...problem.problem import Problem

CHUNK_BYTES = 2**20  # rows taken together: they stay in cache
# Bytes of dense rows that are copied: beyond, a copy takes longer than centring in each pass saves.
COPY_BYTES = 2**22
# Rows for each coefficient that is not zero, from which on a copy of these rows takes less than a pass.
SPARSE = 4
# A few rows are outliers if they are longer than most by this factor. The median of a sample decides first, up to this
# factor, whether the mean length may be theirs.
OUTLIER_FACTOR, SAMPLE_FACTOR = 1e3, 2.0
# Positions of the sampled rows as shares of all rows: random, and the same in every run.
SAMPLE = np.sort(np.random.default_rng(0).random(500))
CANCELLED = 1e-6  # share of sum |x|^2 below which n |mean|^2 has cancelled too many digits: the difference is not used
# Outliers are at most this share of the rows, or this number: where more are as long, lengths have no gap.
OUTLIER_SHARE, OUTLIERS = 0.03, 3
_ONE = np.ones(1)
_ONE.flags.writeable = False


class CentredRows:
    """Rows b_i = (x_i - mean, constant) / units in float64, of mean square length one.

    Where the mean length would be that of a few outliers, mean and unit are those of the other rows. Instances are
    not changed after they are made: classes in threads share them.

    Parameters
    ----------
    problem : Problem
        A free intercept absorbs a shift of the columns, which keeps digits. Its constant is one in any unit.
    X : ndarray or CSR matrix of shape (n, d)
    like : CentredRows, default=None
        Rows whose mean and unit are taken.
    square : float, default=None
        The sum of |x_i|^2, where it is known.

    Attributes
    ----------
    unit : float
    lengths : ndarray of shape (n,)
        |x_i| in this unit for outliers, 1 for all other rows.
    units : ndarray of shape (size,)
        Divisor of each column.
    regular : ndarray of shape (size,)
        1 for every regularised weight, 0 for a free intercept.
    """

    def __init__(
        self, problem: Problem, X: Any, like: CentredRows | None = None, square: float | None = None
    ) -> None:
        self.X, (self.n, self.d), self.problem = X, X.shape, problem
        self._some: tuple[slice, CentredRows] | None = None
        self.constant = 1.0 if problem.free else problem.rho
        self.size = self.d + (self.constant > 0.0)
        entries = 2 * (1 + X.nnz // self.n) if sp.issparse(X) else self.size  # numbers a row
        self.step = max(1, min(self.n, CHUNK_BYTES // (8 * entries)))
        if like is None:
            self.mean = np.zeros(self.d)
            if problem.free:
                self.mean = Plain.combine(X, np.full(self.n, 1.0 / self.n))
            self.unit = (self._sum_of_squares(square) / self.n + problem.rho**2) ** 0.5 or 1.0
            self.lengths = self._find_outliers(problem)
        else:
            self.mean, self.unit, self.lengths = like.mean, like.unit, _ones(self.n)
        self.units, self.regular = np.full(self.size, self.unit), np.ones(self.size)
        if problem.free:
            self.units[-1], self.regular[-1] = 1.0, 0.0

    def some(self, places: slice) -> CentredRows:
        """Return some of these rows, about the same mean and in the same unit; kept for the next class."""
        if self._some is None or self._some[0] != places:
            X = self.X[places] if sp.issparse(self.X) else np.ascontiguousarray(self.X[places])
            self._some = places, centred_rows(self.problem, X, self)
        return self._some[1]

    def parts(self) -> Iterator[slice]:
        """Yield the places of the rows of each chunk."""
        return (slice(first, min(first + self.step, self.n)) for first in range(0, self.n, self.step))

    def _sum_of_squares(self, square: float | None) -> float:
        """Return sum |x_i - mean|^2; `square` is sum |x_i|^2, where it is known."""
        X, shift = self.X, self.n * float(self.mean @ self.mean)
        if square is None:
            parts = np.array_split(X.data, 1 + 8 * X.nnz // CHUNK_BYTES) if sp.issparse(X) else None
            square = _squares(parts or (X[some] for some in self.parts()))
        if sp.issparse(X):
            return max(square - shift, 0.0)
        if CANCELLED * square < square - shift < np.inf:
            return square - shift
        return _squares(X[some] - self.mean for some in self.parts())

    def _find_outliers(self, problem: Problem) -> np.ndarray:
        """Return the lengths of outliers; where there are any, mean and unit become those of the other rows."""
        some, middle = self.X, np.zeros(self.d)
        if self.n > SAMPLE.size:
            some = self.X[(SAMPLE * self.n).astype(np.intp)]
        if self.unit <= SAMPLE_FACTOR * upper_median(np.hypot(_lengths(some, self.mean), problem.rho)):
            return _ones(self.n)
        if problem.free and not sp.issparse(some):
            middle = upper_median(some).astype(float)
        found = np.hypot(_lengths(some, middle), problem.rho)
        most = float(upper_median(found[found > 0.0])) if found.any() else 0.0
        if not 0.0 < OUTLIER_FACTOR * most < self.unit:
            return _ones(self.n)
        lengths = np.concatenate([_lengths(self.X[part], middle) for part in self.parts()]) / most
        lengths = outlier_lengths(lengths)
        if (lengths > 1.0).any():
            self.mean, self.unit = middle, most
        return lengths

    def scores(self, z: np.ndarray, places: slice | None = None) -> np.ndarray:
        """Return b_i.z of all rows, or of those of a slice."""
        X = self.X if places is None else self.X[places]
        return Plain.scores(X, *self.primal(z))

    def stored(self, z: np.ndarray) -> tuple[np.ndarray, np.ndarray, float]:
        """Return dense rows as they are stored, and (w, b) whose scores of them are b_i.z."""
        return self.X, *self.primal(z)

    def combine(self, c: np.ndarray, places: slice | np.ndarray | None = None) -> np.ndarray:
        """Return sum c_i b_i over all rows, or those at some places; `c` of shape (n,) or (m, n)."""
        X = self.X if places is None else self.X[places]
        made = Plain.combine(X, c) if c.ndim == 1 else np.array([Plain.combine(X, each) for each in c])
        return self.centred(made, np.asarray(c.sum(axis=-1)))

    def centred(self, made: np.ndarray, total: np.ndarray) -> np.ndarray:
        """Return sum c_i b_i from sum c_i x_i and sum c_i."""
        out = np.empty((*made.shape[:-1], self.size))
        out[..., : self.d] = made - np.multiply.outer(total, self.mean)
        out[..., self.d :] = self.constant * total[..., None]
        return out / self.units

    def combine_some(self, c: np.ndarray, places: np.ndarray) -> np.ndarray:
        """Return sum c_k b_k over the rows at these places."""
        total = np.zeros(self.size)
        for first in range(0, c.size, self.step):
            some = slice(first, first + self.step)
            total += self.combine(c[some], places[some])
        return total

    def products(self, weights: np.ndarray, rows: slice | np.ndarray) -> np.ndarray:
        """Return sum weights_k b_k b_k' over the rows of one chunk, before the division by units."""
        if sp.issparse(self.X):
            return self._sparse_products(weights, rows)
        some = np.empty((weights.size, self.size))
        weigh_rows(writable(self.X), _places(rows, self.n), weights, self.mean, self.constant, some)
        return some.T @ some

    def all_products(
        self, weights: np.ndarray, rows: np.ndarray, interrupted: Callable[[], bool] = lambda: False
    ) -> np.ndarray:
        """Return sum weights_i b_i b_i' over the rows with these indices, before the division by units.

        Parameters
        ----------
        weights : ndarray of shape (n,)
            Of all rows.
        rows : ndarray of int
        interrupted : callable
            Whether to stop; asked between chunks. The sum is not complete then.
        """
        if rows.size <= self.step:
            return self.products(weights[rows], rows)
        matrix = np.zeros((self.size, self.size))
        for first in range(0, rows.size, self.step):
            some = rows[first : first + self.step]
            matrix += self.products(weights[some], some)
            if interrupted():
                break
        return matrix

    def regularised(self, matrix: np.ndarray) -> np.ndarray:
        """Return R + M, where M are these sums of products, divided by units; they may be overwritten."""
        return matrix / self.units / self.units[:, None] + np.diag(self.regular)

    def gap(self, z: np.ndarray, made: np.ndarray, loss: float, linear: float) -> float:
        """Return the relative gap of z and of dual variables; inf where these prove nothing.

        Parameters
        ----------
        z : ndarray of shape (size,)
        made : ndarray of shape (size,)
            sum alpha_i y_i b_i.
        loss : float
            The losses at z.
        linear : float
            The dual objective but for |made|^2 / 2.
        """
        primal = 0.5 * float((self.regular * z) @ z) + loss
        dual = linear - 0.5 * float((self.regular * made) @ made)
        # dual variables that do not balance lose about as much when they are balanced
        uneven = abs(float(made[-1])) if self.problem.free else 0.0
        return (abs(primal - dual) + uneven) / dual if dual > 0.0 else np.inf

    def _sparse_products(self, weights: np.ndarray, rows: slice | np.ndarray) -> np.ndarray:
        """Return the products of CSR rows, of which zeros are left out, and then the mean is subtracted."""
        X, some = self.X, _places(rows, self.n)
        found = np.zeros((self.d + 1, self.d + 1))
        add_sparse_products(unsigned(X.indptr), unsigned(X.indices), X.data, some, weights, found)
        found += np.tril(found, -1).T
        sums, total = found[-1, :-1].copy(), float(found[-1, -1])
        apart = np.outer(sums - 0.5 * total * self.mean, self.mean)
        found[:-1, :-1] -= apart + apart.T
        found[-1, :-1] = found[:-1, -1] = self.constant * (sums - total * self.mean)
        found[-1, -1] = self.constant**2 * total
        return found[: self.size, : self.size]

    def primal(self, z: np.ndarray) -> tuple[np.ndarray, float]:
        """Return (w, b) in the problem's own units."""
        z = z / self.units
        w, rest = z[: self.d], z[self.d :]
        own = self.constant * float(rest[0]) if rest.size else 0.0
        return w, own - float(self.mean @ w)

    def coordinates(self, w: np.ndarray, b: float) -> np.ndarray:
        """Return the z of (w, b), the inverse of `primal`."""
        return np.append(w, (b + self.mean @ w) / (self.constant or 1.0))[: self.size] * self.units


class SmallDenseRows(CentredRows):
    """Small dense rows, of which a centred and scaled copy of shape (n, size) is kept in `rows`."""

    def __init__(
        self, problem: Problem, X: np.ndarray, like: CentredRows | None = None, square: float | None = None
    ) -> None:
        super().__init__(problem, X, like, square)
        self.rows = np.empty((self.n, self.size))
        centre(writable(X), self.mean, self.constant, 1.0 / self.units, self.rows)
        self._product: tuple[np.ndarray, np.ndarray] | None = None

    def product_of_all(self, costs: np.ndarray) -> np.ndarray:
        """Return sum c_i b_i b_i' over all rows, which every class begins with; kept for the next class."""
        kept = self._product
        if kept is None or not np.array_equal(kept[0], costs):
            self._product = kept = costs, self.all_products(costs, np.arange(self.n))
        return kept[1]

    def stored(self, z: np.ndarray) -> tuple[np.ndarray, np.ndarray, float]:
        return self.rows, z, 0.0

    def centred(self, made: np.ndarray, total: np.ndarray) -> np.ndarray:
        return made

    def scores(self, z: np.ndarray, places: slice | None = None) -> np.ndarray:
        return (self.rows if places is None else self.rows[places]) @ z

    def combine(self, c: np.ndarray, places: slice | np.ndarray | None = None) -> np.ndarray:
        if places is not None:
            return c @ self.rows[places]
        some = (c != 0.0).nonzero()[0]
        if SPARSE * some.size < c.size:  # most dual variables are zero
            return c[some] @ self.rows.take(some, axis=0)
        return c @ self.rows

    def products(self, weights: np.ndarray, rows: slice | np.ndarray) -> np.ndarray:
        some = np.empty((weights.size, self.size))
        weigh_rows(self.rows, _places(rows, self.n), weights, np.zeros(self.size), 0.0, some)
        return some.T @ some

    def regularised(self, matrix: np.ndarray) -> np.ndarray:
        matrix.flat[:: self.size + 1] += self.regular
        return matrix


def is_small_dense(X: Any) -> bool:
    """Return whether rows are dense and so few that a centred copy is kept."""
    return not sp.issparse(X) and 8 * X.shape[0] * (X.shape[1] + 1) <= COPY_BYTES


def centred_rows(
    problem: Problem, X: Any, like: CentredRows | None = None, square: float | None = None
) -> CentredRows:
    """Return the centred rows of a problem; X may be such rows already."""
    if isinstance(X, CentredRows):
        return X
    return (SmallDenseRows if is_small_dense(X) else CentredRows)(problem, X, like, square)


def _places(rows: slice | np.ndarray, n: int) -> np.ndarray:
    """Return the places of some of n rows, as unsigned integers."""
    return unsigned(np.arange(n)[rows] if isinstance(rows, slice) else rows)


def _ones(n: int) -> np.ndarray:
    """Return n ones that share one number in memory."""
    return np.ndarray((n,), buffer=_ONE, strides=(0,))


def _squares(parts: Iterable[np.ndarray]) -> float:
    """Return the sum of the squares of all entries."""
    return sum(float(np.vdot(part, part)) for part in (np.asarray(part, float) for part in parts))


def _lengths(X: Any, mean: np.ndarray) -> np.ndarray:
    """Return |x_i - mean|; for sparse rows |x_i|."""
    if sp.issparse(X):
        squares = X.astype(float)
        np.square(squares.data, out=squares.data)
        return np.sqrt(np.asarray(squares.sum(axis=1)).ravel())
    apart = X - mean
    return np.sqrt(np.einsum("ij,ij->i", apart, apart))


def outlier_lengths(lengths: np.ndarray) -> np.ndarray:
    """Return the lengths of rows far longer than one, if these are few, and 1 for all other rows."""
    longer = lengths > OUTLIER_FACTOR
    few = np.count_nonzero(longer) <= max(OUTLIER_SHARE * lengths.size, OUTLIERS)
    return np.where(longer & few, lengths, 1.0)


def upper_median(values: np.ndarray) -> np.ndarray:
    """Return the upper median of every column."""
    middle = values.shape[0] // 2
    return np.partition(values, middle, axis=0)[middle]


def unsigned(a: np.ndarray) -> np.ndarray:
    """Return a view of indices as unsigned integers, with which compiled loops are fastest."""
    return a.view(f"u{a.dtype.itemsize}")


@compiled()
def centre(X, mean, constant, inverse, rows):
    """Set every row to (x - mean, constant) times `inverse`, several times as fast as broadcasting does."""
    d = mean.size
    for i in range(rows.shape[0]):
        for j in range(d):
            rows[i, j] = (X[i, j] - mean[j]) * inverse[j]
        for j in range(d, rows.shape[1]):
            rows[i, j] = constant * inverse[j]


@compiled()
def weigh_rows(X, places, weights, mean, constant, out):
    """Set out to weights_k^1/2 (x_k - mean, constant) of the rows at these places."""
    d = mean.size
    for k in range(places.size):
        row, root = X[places[k]], np.sqrt(weights[k])
        for j in range(d):
            out[k, j] = root * (row[j] - mean[j])
        for j in range(d, out.shape[1]):
            out[k, j] = root * constant


@compiled()
def add_sparse_products(indptr, indices, data, rows, c, matrix):
    """Add c_k (x_k, 1)(x_k, 1)' of these rows of a CSR matrix to the lower triangle; entries of a row are in order."""
    last = matrix.shape[0] - 1
    for k in range(rows.size):
        i, weight = rows[k], c[k]
        begin, end = np.uint64(indptr[i]), np.uint64(indptr[i + 1])
        for j in range(begin, end):
            place, value = indices[j], weight * data[j]
            for other in range(begin, j + np.uint64(1)):
                matrix[place, indices[other]] += value * data[other]
            matrix[last, place] += value
        matrix[last, last] += weight
