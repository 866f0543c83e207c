"""Where w lives: a vector knows its norm and how a coordinate moves; and the innermost loops.

Fast-math is decided here, leaf by leaf: it makes dense sums two to four times faster and sparse ones slower.
Unsigned all the way in the sparse leaves: one signed index brings back wrap-around checks.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from .jit import compiled, record

ONE, TWO = np.uint64(1), np.uint64(2)


@record
class Plain(NamedTuple):
    """The Euclidean norm (p = 2): what is added to is what is scored against."""

    w: Any

    def move(self, j, step):
        self.w[j] += step

    def measure(self):
        return dot(self.w, self.w, self.w.size)

    def multiply(self, k):
        for j in range(self.w.size):
            self.w[j] *= k

    def toward(self, h, i, j, s, r):
        """The k in [0, 1] for which (1 - k) w + k z has least norm, z the mean of patterns i and j.

        The denominator |w - z|^2 is the one form of it that does not cancel near the optimum.
        """
        z2 = 0.25 * (h.square[i] + h.square[j] + 2.0 * h.product(i, j))
        n2, wz = h.norm2(), 0.5 * (s + r)
        distance = n2 - 2.0 * wz + z2
        return min(max((n2 - wz) / distance, 0.0), 1.0) if distance > 0.0 else 0.0


@compiled(fastmath={"reassoc", "contract"}, forceinline=True)
def dot(a, b, size):
    """a.b over the first `size` entries."""
    total = 0.0
    for j in range(size):
        total += a[j] * b[j]
    return total


@compiled(forceinline=True)
def dot_row(X, i, w):
    """X[i].w; w may be longer than the row."""
    return dot(X[i], w, X.shape[1])


@compiled(forceinline=True)
def dot_sparse(indptr, indices, data, i, w):
    """Row i of a CSR matrix times w: two sums side by side have half the latency of one."""
    begin, end = np.uint64(indptr[i]), np.uint64(indptr[i + 1])
    even = odd = 0.0
    if (end - begin) & ONE:
        end -= ONE
        even = data[end] * w[indices[end]]
    for j in range(begin, end, TWO):
        even += data[j] * w[indices[j]]
        odd += data[j + ONE] * w[indices[j + ONE]]
    return even + odd


@compiled(forceinline=True)
def dot_binary(indptr, indices, i, w):
    """As dot_sparse, for rows whose values are all 1."""
    begin, end = np.uint64(indptr[i]), np.uint64(indptr[i + 1])
    even = odd = 0.0
    if (end - begin) & ONE:
        end -= ONE
        even = w[indices[end]]
    for j in range(begin, end, TWO):
        even += w[indices[j]]
        odd += w[indices[j + ONE]]
    return even + odd


@compiled()
def squares_sparse(indptr, data, out):
    """out[i] = |row i|^2."""
    for i in range(out.size):
        total = 0.0
        for j in range(indptr[i], indptr[i + 1]):
            value = np.float64(data[j])
            total += value * value
        out[i] = total


@compiled()
def squares_dense(X, out):
    """out[i] = |row i|^2."""
    for i in range(out.size):
        total = 0.0
        for j in range(X.shape[1]):
            value = np.float64(X[i, j])
            total += value * value
        out[i] = total


@compiled(forceinline=True)
def product_sparse(indptr, indices, data, i, j):
    """Row i times row j of a CSR matrix, column by column in order."""
    a, b, end, stop = (
        np.uint64(indptr[i]),
        np.uint64(indptr[j]),
        np.uint64(indptr[i + 1]),
        np.uint64(indptr[j + 1]),
    )
    total = 0.0
    while a < end and b < stop:
        if indices[a] == indices[b]:
            total += np.float64(data[a]) * np.float64(data[b])
            a += ONE
            b += ONE
        elif indices[a] < indices[b]:
            a += ONE
        else:
            b += ONE
    return total


@compiled(forceinline=True)
def product_binary(indptr, indices, i, j):
    """As product_sparse, for rows whose values are all 1."""
    a, b, end, stop = (
        np.uint64(indptr[i]),
        np.uint64(indptr[j]),
        np.uint64(indptr[i + 1]),
        np.uint64(indptr[j + 1]),
    )
    total = 0.0
    while a < end and b < stop:
        if indices[a] == indices[b]:
            total += 1.0
            a += ONE
            b += ONE
        elif indices[a] < indices[b]:
            a += ONE
        else:
            b += ONE
    return total
