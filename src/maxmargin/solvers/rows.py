"""Rows of a problem in the form that batch solvers use: centred, with a constant column, of mean square length 1.

Sums over all rows are computed in chunks of about a megabyte, so that no array of the size of the data is allocated.
Small dense rows are copied once and centred.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from ..numerics.columns import may_be_dense
from ..numerics.sums import Plain, row_blocks, row_norms, row_squares
from ..problem.problem import Problem
from .iterate import Point
from .linear_systems import signed_rows, sparse_gram
from .wide_rows import WideRows

# Bytes of the rows of one chunk of a product: they stay in the cache, and larger chunks would save few calls of NumPy.
CHUNK_BYTES = 2**20
# Entries of dense rows up to which they are copied: beyond, a copy takes longer than centring in each pass.
MAX_COPY = 2**20
# Rows longer than this many times the usual length, as in another unit or with a sentinel, do not count in the mean
# and the unit. A round value: of the 192 harsh fits 1 less is certified with 100, and 3 less with 10,000.
LONG = 1000.0


class CentredRows:
    """Rows b_i = (x_i - mean, constant) / units in float64, with a root mean square length of one.

    Numbers of an instance do not change once it is created, as threads share it among the classes of a problem.

    Parameters
    ----------
    problem : Problem
        Columns are centred only with a free intercept, which absorbs the shift; centred columns have smaller rounding
        errors. The constant of a free intercept is one in any unit.
    X : ndarray or CSR matrix of shape (n, d)
        Wide rows are replaced by their coordinates.
    like : CentredRows, default=None
        Rows whose mean and unit are used in place of those of X.

    Attributes
    ----------
    unit : float
    X : ndarray or CSR matrix of shape (n, d)
    mean : ndarray of shape (d,)
        0 where columns are not centred.
    constant : float
        The entry of the constant column before it is divided by its unit; 0 where there is no intercept.
    size : int
        Columns of b, constant included.
    units : ndarray of shape (size,)
        Divisor of each column.
    regular : ndarray of shape (size,)
        1 for every regularised weight, 0 for a free intercept.
    copy : ndarray of shape (n, size) or None
        The rows b_i of small dense data.
    """

    def __init__(self, problem: Problem, X: Any, like: CentredRows | None = None) -> None:
        self.n, self.d = X.shape
        if sp.issparse(X) and self.n * self.d <= MAX_COPY and may_be_dense(X):
            X = X.toarray()
        self._wide: WideRows | None = None
        if self.n <= 1000 and self.d > max(
            self.n, 100
        ):  # up to 100 columns, systems in the columns are no slower
            self._wide = WideRows(problem, X)
            problem, X = self._wide.problem, self._wide.coordinates
            self.d = X.shape[1]
        self.X, self.problem = X, problem
        self._subset: tuple[slice, CentredRows] | None = None
        self._all: tuple[np.ndarray, np.ndarray] | None = None
        self.constant = 1.0 if problem.free else problem.rho
        self.size = self.d + (self.constant > 0.0)
        some = X[:: 1 + self.n // 4096]  # the mean and the unit need not be exact
        if like is not None:
            self.mean, self.unit = like.mean, like.unit
        else:
            squares = row_squares(some)
            place = 9 * squares.size // 10
            usual = squares <= LONG**2 * (np.partition(squares, place)[place] or squares.max())
            share = (1.0 if problem.free else 0.0) / np.count_nonzero(usual)
            self.mean = Plain.combine(some, np.where(usual, share, 0.0))
            sparse = sp.issparse(X)  # sparse rows stay as they are: their squares are less those of the mean
            square = float((squares if sparse else row_squares(some - self.mean))[usual].mean())
            square -= float(self.mean @ self.mean) if sparse else 0.0
            self.unit = (max(square, 0.0) + problem.rho**2) ** 0.5 or 1.0
        self.units, self.regular = np.full(self.size, self.unit), np.ones(self.size)
        if problem.free:
            self.units[-1], self.regular[-1] = 1.0, 0.0
        self.copy: np.ndarray | None = None
        if not sp.issparse(X) and X.size <= MAX_COPY:
            self.copy = np.empty((self.n, self.size))
            np.subtract(X, self.mean, out=self.copy[:, : self.d])
            self.copy[:, self.d :] = self.constant
            self.copy /= self.units

    def subset(self, rows: slice) -> CentredRows:
        """Return these rows with the same mean and unit; the last subset is kept for the next class."""
        if self._subset is None or self._subset[0] != rows:
            X = self.X[rows] if sp.issparse(self.X) else np.ascontiguousarray(self.X[rows])
            self._subset = rows, CentredRows(self.problem, X, self)
        return self._subset[1]

    def scores(self, z: np.ndarray) -> np.ndarray:
        """Return b_i.z of all rows."""
        if self.copy is not None:
            return self.copy @ z
        z = z / self.units
        w, last = z[: self.d], z[self.d :]
        return Plain.scores(
            self.X, w, (self.constant * float(last[0]) if last.size else 0.0) - float(self.mean @ w)
        )

    def combine(self, c: np.ndarray) -> np.ndarray:
        """Return sum c_i b_i over all rows."""
        X, some = self.X if self.copy is None else self.copy, None if sp.issparse(self.X) else c.nonzero()[0]
        if some is not None and 4 * some.size < c.size:  # most are zero: faster than a product with all rows
            sums = c[some] @ X.take(some, axis=0)
        else:
            sums = Plain.combine(X, c) if self.copy is None else c @ X
        if self.copy is not None:
            return sums
        total = float(c.sum())
        return np.append(sums - total * self.mean, self.constant * total)[: self.size] / self.units

    def products(self, weights: np.ndarray, rows: np.ndarray) -> np.ndarray:
        """Return sum weights_i b_i b_i' over the rows with these indices; that of all rows is kept for the next class.

        There are weights of all rows.
        """
        kept = self._all if rows.size == self.n else None
        if kept is not None and np.array_equal(kept[0], weights):
            return kept[1]
        if self.copy is not None:
            part = self.copy.take(rows, axis=0)
            part *= np.sqrt(weights.take(rows))[:, None]
            found = part.T @ part
        elif sp.issparse(self.X):
            found = self._sparse_products(weights[rows], rows)
        else:
            found, root = np.zeros((self.size, self.size)), np.sqrt(weights[rows])
            for first in range(0, rows.size, step := max(1, CHUNK_BYTES // (8 * self.size))):
                some = slice(first, first + step)
                part = np.full((rows[some].size, self.size), self.constant)
                np.subtract(self.X[rows[some]], self.mean, out=part[:, : self.d])
                part *= root[some, None]
                found += part.T @ part
        if self.copy is None:
            found /= self.units
            found /= self.units[:, None]
        if rows.size == self.n:
            self._all = weights, found
        return found

    def column_squares(self, weights: np.ndarray) -> np.ndarray:
        """Return sum weights_i b_i^2, the diagonal of the products of all rows.

        With m the mean, sum c_i (x_ij - m_j)^2 = sum c_i x_ij^2 + m_j (m_j sum c_i - 2 sum c_i x_ij).
        """
        total, squares = float(weights.sum()), np.zeros(self.d)
        for some, X in row_blocks(self.X):
            squares += weights[some] @ (X.power(2) if sp.issparse(X) else X * X)
        squares += self.mean * (total * self.mean - 2.0 * Plain.combine(self.X, weights))
        found = np.append(np.maximum(squares, 0.0), self.constant**2 * total)
        return found[: self.size] / self.units**2

    def _sparse_products(self, weights: np.ndarray, rows: np.ndarray) -> np.ndarray:
        """Return sum weights_k a_k a_k' over CSR rows, a_k = (x_k - mean, constant) = b_k units.

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
        b = (self.constant * float(last[0]) if last.size else 0.0) - float(self.mean @ w)
        return (w, b) if self._wide is None else self._wide.primal(w, b)

    def coordinates(self, w: np.ndarray, b: float) -> np.ndarray:
        """Return z for (w, b) in the units of the problem: the inverse of `primal`."""
        if self._wide is not None:
            w, b = self._wide.reduced(w, b)
        return np.append(w, (b + self.mean @ w) / (self.constant or 1.0))[: self.size] * self.units


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
        mean, hard = np.zeros(X.shape[1]), problem.hard
        if may_be_dense(X):
            X = np.asarray(X.toarray() if sp.issparse(X) else X, dtype=float)
            if problem.free:
                mean = X.mean(axis=0)
            X = X - mean
        A = signed_rows(problem, X, y)
        unit = float(row_norms(A, problem.p).max(initial=0.0)) or 1.0
        with np.errstate(over="ignore"):  # costs of inf end the iterations
            costs = np.ones(y.size) if hard else problem.C * weights * np.float64(unit) ** problem.power
        return cls(problem, A / unit, costs, unit, mean)

    def restored(self, point: Point) -> Point:
        """Return a point of this problem in the units of X."""
        w, b, alpha = point.restored(self.problem, self.unit)
        return Point(w, b - float(self.mean @ w), alpha)
