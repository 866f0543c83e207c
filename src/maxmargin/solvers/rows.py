"""Rows of a problem in the form that batch solvers use: centred, with a constant column, of mean square length 1.

Sums over all rows are computed in chunks of about a megabyte, so that no array of the size of the data is allocated.
Small dense rows are copied once, centred and scaled.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from ..engine.jit import compiled, writable
from ..numerics.norms import row_norms
from ..numerics.sparse_columns import may_be_dense
from ..numerics.sums import Plain
from ..problem.problem import Problem
from .iterate import Point
from .linear_systems import signed_rows, sparse_gram, unsigned

# Bytes of the rows of one chunk: they stay in the cache, and larger chunks would save few calls of NumPy. Chosen on the
# data sets of benchmarks.before_after.
CHUNK_BYTES = 2**20
# Bytes of dense rows up to which they are copied: beyond, a copy takes longer than centring in each pass. Chosen on the
# data sets of benchmarks.before_after.
COPY_BYTES = 2**22
# Rows for each non-zero coefficient of a linear combination, above which a copy of the rows with these coefficients
# takes less time than a product with all rows. Chosen on the data sets of benchmarks.before_after.
ROWS_PER_COEFFICIENT = 4
# The difference sum |x|^2 - n |mean|^2, as a share of sum |x|^2, below which it has lost more than six digits: it is
# then computed row by row, as sum |x - mean|^2.
MIN_DIFFERENCE = 1e-6


class CentredRows:
    """Rows b_i = (x_i - mean, constant) / units in float64, with a root mean square length of one.

    Numbers of an instance do not change once it is created, as threads share it among the classes of a problem.

    Parameters
    ----------
    problem : Problem
        Columns are centred only with a free intercept, which absorbs the shift; centred columns have smaller rounding
        errors. The constant of a free intercept is one in any unit.
    X : ndarray or CSR matrix of shape (n, d)
    like : CentredRows, default=None
        Rows whose mean and unit are used in place of those of X.
    square : float, default=None
        The sum of |x_i|^2, where it is known.

    Attributes
    ----------
    unit : float
    X : ndarray or CSR matrix of shape (n, d)
        The rows as they are stored.
    mean : ndarray of shape (d,)
        0 where columns are not centred.
    constant : float
        The entry of the constant column before it is divided by its unit; 0 where there is no intercept.
    chunk : int
        Rows of one chunk.
    size : int
        Columns of b, constant included.
    units : ndarray of shape (size,)
        Divisor of each column.
    regular : ndarray of shape (size,)
        1 for every regularised weight, 0 for a free intercept.
    """

    def __init__(
        self, problem: Problem, X: Any, like: CentredRows | None = None, square: float | None = None
    ) -> None:
        self.X, (self.n, self.d), self.problem = X, X.shape, problem
        self._subset: tuple[slice, CentredRows] | None = None
        self.constant = 1.0 if problem.free else problem.rho
        self.size = self.d + (self.constant > 0.0)
        entries = 2 * (1 + X.nnz // self.n) if sp.issparse(X) else self.size  # numbers of a row
        self.chunk = max(1, min(self.n, CHUNK_BYTES // (8 * entries)))
        if like is None:
            self.mean = Plain.combine(X, np.full(self.n, 1.0 / self.n)) if problem.free else np.zeros(self.d)
            self.unit = (self._sum_of_squares(square) / self.n + problem.rho**2) ** 0.5 or 1.0
        else:
            self.mean, self.unit = like.mean, like.unit
        self.units, self.regular = np.full(self.size, self.unit), np.ones(self.size)
        if problem.free:
            self.units[-1], self.regular[-1] = 1.0, 0.0

    def subset(self, rows: slice) -> CentredRows:
        """Return these rows with the same mean and unit; the last subset is kept for the next class."""
        if self._subset is None or self._subset[0] != rows:
            X = self.X[rows] if sp.issparse(self.X) else np.ascontiguousarray(self.X[rows])
            self._subset = rows, centred_rows(self.problem, X, self)
        return self._subset[1]

    def chunks(self) -> Iterator[slice]:
        """Return the slice of the rows of each chunk, in order."""
        return (slice(first, min(first + self.chunk, self.n)) for first in range(0, self.n, self.chunk))

    def _sum_of_squares(self, square: float | None) -> float:
        """Return sum |x_i - mean|^2 = sum |x_i|^2 - n |mean|^2, row by row where this difference cancels.

        `square` is sum |x_i|^2, where it is known.
        """
        X, shift = self.X, self.n * float(self.mean @ self.mean)
        if square is None:
            parts = np.array_split(X.data, 1 + 8 * X.nnz // CHUNK_BYTES) if sp.issparse(X) else None
            square = _squares(parts or (X[some] for some in self.chunks()))
        if sp.issparse(X):
            return max(square - shift, 0.0)
        if MIN_DIFFERENCE * square < square - shift < np.inf:
            return square - shift
        return _squares(X[some] - self.mean for some in self.chunks())

    def scores(self, z: np.ndarray) -> np.ndarray:
        """Return b_i.z of all rows."""
        return Plain.scores(self.X, *self.primal(z))

    def stored(self, z: np.ndarray) -> tuple[np.ndarray, np.ndarray, float]:
        """Return (X, w, b) with dense rows X in the form in which they are stored, and X w + b = (b_i.z)."""
        return self.X, *self.primal(z)

    def combine(self, c: np.ndarray) -> np.ndarray:
        """Return sum c_i b_i over all rows."""
        return self.centred_sum(Plain.combine(self.X, c), float(c.sum()))

    def centred_sum(self, sums: np.ndarray, total: float) -> np.ndarray:
        """Return sum c_i b_i from sums = sum c_i x_i over the rows that `stored` returns, and total = sum c_i."""
        return np.append(sums - total * self.mean, self.constant * total)[: self.size] / self.units

    def products(self, weights: np.ndarray, rows: np.ndarray) -> np.ndarray:
        """Return sum weights_k a_k a_k' over these rows, where a_k = (x_k - mean, constant) = b_k units.

        For the copy of `SmallDenseRows`, a_k is b_k.
        """
        if sp.issparse(self.X):
            return self._sparse_products(weights, rows)
        some = np.empty((weights.size, self.size))
        weigh_rows(writable(self.X), unsigned(rows), weights, self.mean, self.constant, some)
        return some.T @ some

    def all_products(self, weights: np.ndarray, rows: np.ndarray) -> np.ndarray:
        """Return the sum of `products` over the rows with these indices.

        Parameters
        ----------
        weights : ndarray of shape (n,)
            Weights of all rows.
        rows : ndarray of int
        """
        if sp.issparse(self.X):
            return self._sparse_products(weights[rows], rows)
        if rows.size <= self.chunk:
            return self.products(weights[rows], rows)
        matrix = np.zeros((self.size, self.size))
        for first in range(0, rows.size, self.chunk):
            some = rows[first : first + self.chunk]
            matrix += self.products(weights[some], some)
        return matrix

    def regularised(self, matrix: np.ndarray) -> np.ndarray:
        """Return R + M, where M is the sum of products divided by units; the argument is overwritten."""
        matrix /= self.units
        matrix /= self.units[:, None]
        matrix.flat[:: self.size + 1] += self.regular
        return matrix

    def _sparse_products(self, weights: np.ndarray, rows: np.ndarray) -> np.ndarray:
        """Return `products` for CSR rows, from the products of their entries and a correction for the mean.

        With S = sum c x x', s = sum c x and t = sum c,
        sum c (x - mean)(x - mean)' = S - (s - t mean / 2) mean' - mean (s - t mean / 2)'.
        """
        found = sparse_gram(self.X, weights, rows)
        sums, total = found[-1, :-1].copy(), float(found[-1, -1])
        shift = sums - 0.5 * total * self.mean
        found[:-1, :-1] -= np.outer(shift, self.mean)
        found[:-1, :-1] -= np.outer(self.mean, shift)
        found[-1, :-1] = found[:-1, -1] = self.constant * (sums - total * self.mean)
        found[-1, -1] = self.constant**2 * total
        return np.ascontiguousarray(found[: self.size, : self.size])

    def primal(self, z: np.ndarray) -> tuple[np.ndarray, float]:
        """Return the (w, b) of z in the units of the problem."""
        z = z / self.units
        w, last = z[: self.d], z[self.d :]
        b = self.constant * float(last[0]) if last.size else 0.0
        return w, b - float(self.mean @ w)

    def coordinates(self, w: np.ndarray, b: float) -> np.ndarray:
        """Return z for (w, b) in the units of the problem: the inverse of `primal`."""
        return np.append(w, (b + self.mean @ w) / (self.constant or 1.0))[: self.size] * self.units


class SmallDenseRows(CentredRows):
    """Small dense rows with a centred and scaled copy of shape (n, size) in the attribute `rows`."""

    def __init__(
        self, problem: Problem, X: np.ndarray, like: CentredRows | None = None, square: float | None = None
    ) -> None:
        super().__init__(problem, X, like, square)
        self.rows = np.empty((self.n, self.size))
        centre(writable(X), self.mean, self.constant, 1.0 / self.units, self.rows)
        self._product: tuple[np.ndarray, np.ndarray] | None = None

    def product_of_all(self, costs: np.ndarray) -> np.ndarray:
        """Return sum c_i b_i b_i' over all rows, the first Hessian of every class; kept for classes of equal costs."""
        kept = self._product
        if kept is None or not np.array_equal(kept[0], costs):
            self._product = kept = costs, self.all_products(costs, np.arange(self.n))
        return kept[1]

    def stored(self, z: np.ndarray) -> tuple[np.ndarray, np.ndarray, float]:
        return self.rows, z, 0.0

    def centred_sum(self, sums: np.ndarray, total: float) -> np.ndarray:
        return sums

    def scores(self, z: np.ndarray) -> np.ndarray:
        return self.rows @ z

    def combine(self, c: np.ndarray) -> np.ndarray:
        some = (c != 0.0).nonzero()[0]
        if ROWS_PER_COEFFICIENT * some.size < c.size:  # most dual variables are zero
            return c[some] @ self.rows.take(some, axis=0)
        return c @ self.rows

    def products(self, weights: np.ndarray, rows: np.ndarray) -> np.ndarray:
        some = np.empty((weights.size, self.size))
        weigh_rows(self.rows, unsigned(rows), weights, np.zeros(self.size), 0.0, some)
        return some.T @ some

    def regularised(self, matrix: np.ndarray) -> np.ndarray:
        matrix.flat[:: self.size + 1] += self.regular
        return matrix


def is_small_dense(X: Any) -> bool:
    """Return whether rows are dense and small enough for a centred copy."""
    return not sp.issparse(X) and 8 * X.shape[0] * (X.shape[1] + 1) <= COPY_BYTES


def centred_rows(
    problem: Problem, X: Any, like: CentredRows | None = None, square: float | None = None
) -> CentredRows:
    """Return the centred rows of a problem, with a copy if they are small and dense; X may be centred rows already."""
    if isinstance(X, CentredRows):
        return X
    return (SmallDenseRows if is_small_dense(X) else CentredRows)(problem, X, like, square)


def _squares(parts: Iterable[np.ndarray]) -> float:
    """Return the sum of the squares of all entries of these arrays."""
    return sum(float(np.vdot(part, part)) for part in (np.asarray(part, float) for part in parts))


@compiled()
def centre(X, mean, constant, inverse, rows):
    """Set every row of `rows` to (x - mean, constant) * inverse, several times as fast as NumPy's broadcasting."""
    d = mean.size
    for i in range(rows.shape[0]):
        for j in range(d):
            rows[i, j] = (X[i, j] - mean[j]) * inverse[j]
        for j in range(d, rows.shape[1]):
            rows[i, j] = constant * inverse[j]


@compiled()
def weigh_rows(X, indices, weights, mean, constant, out):
    """Set the rows of `out` to sqrt(weights_k) (x_k - mean, constant) for the rows of these indices."""
    d = mean.size
    for k in range(indices.size):
        row, root = X[indices[k]], np.sqrt(weights[k])
        for j in range(d):
            out[k, j] = root * (row[j] - mean[j])
        for j in range(d, out.shape[1]):
            out[k, j] = root * constant


@compiled()
def multiply_columns(indptr, indices, data, rows, costs, total, place, found, values, sums, H):
    """Set H to sum c_i (x_i - m)(x_i - m)' over these rows of a CSR matrix and some columns, m their weighted mean.

    Parameters
    ----------
    rows, costs : ndarray
        The rows, and their c_i.
    total : float
        sum c_i; inf for m = 0.
    place : ndarray of shape (d,)
        The place of each column in H; the size k of H for the other columns.
    found, values, sums : ndarray of shape (k,)
        Workspace; `sums` is 0.
    H : ndarray of shape (k, k)
    """
    k = H.shape[0]
    H[:] = 0.0
    for r in range(rows.size):
        i, cost, count = rows[r], costs[r], 0
        for e in range(indptr[i], indptr[i + 1]):
            here = place[indices[e]]
            if here < k:
                found[count], values[count] = here, data[e]
                count += 1
        for e in range(count):
            row, weighted = H[found[e]], cost * values[e]
            sums[found[e]] += weighted
            for other in range(e + 1):
                row[found[other]] += weighted * values[other]
    for j in range(k):
        for other in range(j + 1):
            H[j, other] -= sums[j] * (sums[other] / total)
            H[other, j] = H[j, other]


class UnitRows(NamedTuple):
    """The rows y_i x_i, without the mean of the columns where the intercept is free, divided by `unit`.

    Attributes
    ----------
    problem : Problem
    A : ndarray or CSR matrix of shape (n, d), or (n, d + 1) with a constant coordinate
        Sparse rows whose dense copy would be far larger than their entries stay sparse, and are not centred.
    costs : ndarray of shape (n,)
        C s_i unit^power, the costs of the divided rows; ones for the hard margin.
    unit : float
        The largest p-norm of a row.
    mean : ndarray of shape (d,)
        The mean of the rows, which was subtracted from the rows x_i.
    """

    problem: Problem
    A: Any
    costs: np.ndarray
    unit: float
    mean: np.ndarray

    @classmethod
    def of(cls, problem: Problem, X: Any, y: np.ndarray, weights: np.ndarray) -> UnitRows:
        """Return the rows of a problem on X, of shape (n, d), with labels -1.0 and 1.0 and positive sample weights."""
        mean = np.zeros(X.shape[1])
        if may_be_dense(X):
            X = np.asarray(X.toarray() if sp.issparse(X) else X, dtype=float)
            if problem.free:
                mean = X.mean(axis=0)
            X = X - mean
        A = signed_rows(problem, X, y)
        unit = float(row_norms(A, problem.p).max(initial=0.0)) or 1.0
        with np.errstate(over="ignore"):  # costs of inf end the iterations
            costs = (
                np.ones(y.size) if problem.hard else problem.C * weights * np.float64(unit) ** problem.power
            )
        return cls(problem, A / unit, costs, unit, mean)

    def restored(self, point: Point) -> Point:
        """Return a point of this problem in the units of X."""
        w, b, alpha = point.restored(self.problem, self.unit)
        return Point(w, b - float(self.mean @ w), alpha)
