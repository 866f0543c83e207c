"""Storage of patterns, with inner products and addition of rows: dense, CSR, Gram matrix, constant coordinate.

Methods that all storages have are documented in `Dense`. `add_row` takes the vector as an argument, so that one method
adds a row to w and to any other vector.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from .jit import compiled, record
from .vectors import ONE, copy_entry, dot, dot_sparse, entry, product_sparse


def _norm2_of(self, h):
    """Return |w|^2 at scale one, without slack coordinates; h is the `Weight` of this storage."""
    return self.vector.norm2()


def _is_loaded(self, h, i):
    """Return whether the rows of a step on row i of the `Weight` h are in memory, which holds for all rows of data."""
    return True


@record
class Dense(NamedTuple):
    """Rows of a C-ordered matrix."""

    X: Any
    vector: Any

    norm2_of, is_loaded = _norm2_of, _is_loaded

    def dot(self, i):
        """Return w.x_i at scale one, without the factor of the link."""
        return dot(self.X[i], self.vector.w, self.X.shape[1])

    def add_row(self, i, c, vector):
        """Add c x_i to the vector."""
        for j in range(self.X.shape[1]):
            vector.move(j, c * self.X[i, j])

    def product(self, i, j):
        """Return x_i.x_j."""
        return dot(self.X[i], self.X[j], self.X.shape[1])


@record
class Sparse(NamedTuple):
    """Rows of a CSR matrix with sorted, unsigned indices."""

    indptr: Any
    indices: Any
    data: Any  # None where all stored entries are 1
    vector: Any

    norm2_of, is_loaded = _norm2_of, _is_loaded

    def dot(self, i):
        return dot_sparse(self.indptr, self.indices, self.data, i, self.vector.w)

    def add_row(self, i, c, vector):
        for j in range(np.uint64(self.indptr[i]), np.uint64(self.indptr[i + 1])):
            vector.move(self.indices[j], c * entry(self.data, j))

    def product(self, i, j):
        return product_sparse(self.indptr, self.indices, self.data, i, j)


@record
class Gram(NamedTuple):
    """Inner products of all patterns. The vector holds the score w.x of every pattern, so that `dot` reads one entry.

    The columns of K are patterns; its rows are in any order, and for a kernel only a part of them is in memory. The
    last entry of the vector is the weight of the constant coordinate rho.
    """

    K: Any
    places: Any  # the row of K of each pattern; negative if it is not in memory
    requested: Any  # 1 for each pattern whose row has been added since the array was last set to 0
    rows: Any  # the pattern of each row
    vector: Any
    rho: float  # 0 where there is no constant coordinate

    def dot(self, i):
        w = self.vector.w
        return w[self.rows[i]] + self.rho * w[w.size - 1]

    def add_row(self, i, c, vector):
        g = self.rows[i]
        row = self.K[self.places[g]]
        self.requested[g] = 1
        for j in range(row.size):
            vector.move(j, c * row[j])
        vector.move(row.size, c * self.rho)

    def product(self, i, j):
        return self.K[self.places[self.rows[i]], self.rows[j]] + self.rho * self.rho

    def is_loaded(self, h, i):
        """Return whether the kernel rows of a step on row i are in memory, that of its partner included."""
        j = h.partner(i) if h.row_of.size else i
        return self.places[self.rows[i]] >= 0 and self.places[self.rows[j]] >= 0

    def norm2_of(self, h):
        """Return |w|^2 = sum alpha_g y_g w.x_g at scale one; h has all patterns as rows."""
        total = 0.0
        for i in range(self.rows.size):
            total += h.alpha[h.ids[i]] * h.y[i] * self.dot(i)
        return total


@record
class Biased(NamedTuple):
    """Rows of another storage with one more coordinate, the constant rho; its weight is the vector's last entry."""

    base: Any
    vector: Any
    rho: float

    norm2_of, is_loaded = _norm2_of, _is_loaded

    def dot(self, i):
        return self.base.dot(i) + self.rho * self.vector.w[self.vector.w.size - 1]

    def add_row(self, i, c, vector):
        self.base.add_row(i, c, vector)
        vector.move(vector.w.size - 1, c * self.rho)

    def product(self, i, j):
        return self.base.product(i, j) + self.rho * self.rho


@compiled()
def copy_rows(target, source, rows):
    """Make row k of a `Sparse` storage a copy of row rows[k] of another, for all k in turn."""
    end = np.uint64(0)
    for k in range(rows.size):
        i = rows[k]
        for j in range(np.uint64(source.indptr[i]), np.uint64(source.indptr[i + 1])):
            target.indices[end] = source.indices[j]
            copy_entry(target.data, end, source.data, j)
            end += ONE
        target.indptr[k + 1] = end
