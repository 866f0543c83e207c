"""Storage of patterns: how a row is scored and added, dense, sparse, by inner products, or with a constant coordinate.

``put`` takes the vector as an argument, so that one row loop serves w and any scratch vector.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from .jit import record
from .vectors import ONE, dot, dot_row, dot_sparse, product_sparse


def _norm2_of(self, h):
    """Return |w|^2 at scale one; h is the weight of this storage."""
    return self.vector.norm2()


def _is_loaded(self, i):
    """Return whether row i is in memory, as rows of data always are."""
    return True


@record
class Dense(NamedTuple):
    """Rows of a C-ordered matrix."""

    X: Any
    vector: Any

    norm2_of, is_loaded = _norm2_of, _is_loaded

    def dot(self, i):
        """Return w.x_i at scale one."""
        return dot_row(self.X, i, self.vector.w)

    def put(self, i, c, vector):
        """Add c x_i to the vector."""
        for j in range(self.X.shape[1]):
            vector.move(j, c * self.X[i, j])

    def product(self, i, j):
        """Return x_i.x_j."""
        return dot(self.X[i], self.X[j], self.X.shape[1])

    def copy(self, k, source, i):
        """Make row k a copy of row i of another storage of the same kind."""
        for j in range(self.X.shape[1]):  # a loop, not a slice: compiled code runs without reference counts
            self.X[k, j] = source.X[i, j]


@record
class Sparse(NamedTuple):
    """Rows of a CSR matrix; unsigned indices."""

    indptr: Any
    indices: Any
    data: Any
    vector: Any

    norm2_of, is_loaded = _norm2_of, _is_loaded

    def dot(self, i):
        return dot_sparse(self.indptr, self.indices, self.data, i, self.vector.w)

    def put(self, i, c, vector):
        for j in range(np.uint64(self.indptr[i]), np.uint64(self.indptr[i + 1])):
            vector.move(self.indices[j], c * self.data[j])

    def product(self, i, j):
        return product_sparse(self.indptr, self.indices, self.data, i, j)

    def copy(self, k, source, i):
        end = np.uint64(self.indptr[k])
        for j in range(np.uint64(source.indptr[i]), np.uint64(source.indptr[i + 1])):
            self.indices[end] = source.indices[j]
            self.data[end] = source.data[j]
            end += ONE
        self.indptr[k + 1] = end


@record
class Gram(NamedTuple):
    """Inner products of all patterns: the vector holds the score w.x of each, which one look-up reads.

    Rows may be packed; columns are patterns. Rows of K stand in any order, and of a kernel only some are in memory. A
    constant coordinate rho is the last entry of the vector.
    """

    K: Any
    places: Any  # where the row of each pattern is in K; negative where it is not in memory
    asked: Any  # which patterns' rows have been added since someone last cleared it
    rows: Any  # which pattern each row is
    vector: Any
    rho: float

    def dot(self, i):
        w = self.vector.w
        return w[self.rows[i]] + self.rho * w[w.size - 1]

    def put(self, i, c, vector):
        g = self.rows[i]
        row = self.K[self.places[g]]
        self.asked[g] = 1
        for j in range(row.size):
            vector.move(j, c * row[j])
        vector.move(row.size, c * self.rho)

    def product(self, i, j):
        return self.K[self.places[self.rows[i]], self.rows[j]] + self.rho * self.rho

    def is_loaded(self, i):
        return self.places[self.rows[i]] >= 0

    def norm2_of(self, h):
        """Return |w|^2 = sum alpha_g y_g w.x_g; h holds all patterns."""
        total = 0.0
        for i in range(self.rows.size):
            total += h.alpha[h.ids[i]] * h.y[i] * self.dot(i)
        return total

    def copy(self, k, source, i):
        self.rows[k] = source.rows[i]


@record
class Biased(NamedTuple):
    """Rows of another storage with one more coordinate, rho: the last one of the vector."""

    base: Any
    vector: Any
    rho: float

    norm2_of, is_loaded = _norm2_of, _is_loaded

    def dot(self, i):
        return self.base.dot(i) + self.rho * self.vector.w[self.vector.w.size - 1]

    def put(self, i, c, vector):
        self.base.put(i, c, vector)
        vector.move(vector.w.size - 1, c * self.rho)

    def product(self, i, j):
        return self.base.product(i, j) + self.rho * self.rho

    def copy(self, k, source, i):
        self.base.copy(k, source.base, i)
