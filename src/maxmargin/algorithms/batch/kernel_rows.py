"""Rows of a kernel matrix, computed in blocks and cached within a memory budget (least recently used rows go first)."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...engine.jit import compiled
from ...kernels.functions import Kernel
from ...kernels.gram import gram_product

BLOCK = 512  # rows computed at once: BLAS is as fast as with more. A round value; not tuned.
MEGABYTE = 2**20  # bytes
# Columns of a sum of rows at a time: 32 kB of sums, which stay in the first-level cache.
COLUMNS_AT_ONCE = 4096


class KernelRows:
    """Cache of the rows k(x_i, .) of the kernel matrix of one data matrix.

    The kernel does not depend on the labels, so one cache serves all classes of a problem.

    Parameters
    ----------
    kernel : Kernel
    X : ndarray or CSR matrix of shape (n, d)
        Float32 or float64; kernel rows and the diagonal have the same precision.
    megabytes : float
        Budget of the cached rows. Two blocks are cached even where they exceed it.

    Attributes
    ----------
    n : int
        Rows of the data matrix.
    diagonal : ndarray of shape (n,)
    capacity : int
        Rows that can be cached at the same time.
    rows : ndarray of shape (capacity, n)
        The cached rows, in the slots that `slots` returns.
    computed : int
        Rows computed so far.
    """

    def __init__(self, kernel: Kernel, X: Any, megabytes: float) -> None:
        self.kernel, self.X, self._megabytes = kernel, kernel.prepared(X), megabytes
        self.n = X.shape[0]
        self.diagonal, self._squares = kernel.diagonal(self.X), kernel.squares(self.X)
        row_bytes = self.n * self.diagonal.dtype.itemsize
        self.capacity = int(min(self.n, max(2 * BLOCK, megabytes * MEGABYTE // max(row_bytes, 1))))
        # the system assigns the memory as rows are written, not before
        self.rows = np.empty((self.capacity, self.n), self.diagonal.dtype)
        self.computed = 0
        self._slot_of_row = np.full(self.n, -1, np.intp)  # -1: not cached
        self._row_in_slot = np.full(self.capacity, -1, np.intp)  # -1: empty
        self._last_request = np.zeros(self.capacity, np.intp)  # of the row in each slot
        self._request = 0  # number of the current request

    def slots(self, wanted: np.ndarray) -> np.ndarray:
        """Compute the rows of the kernel that are not cached; return the slots of all wanted rows in `rows`.

        Parameters
        ----------
        wanted : ndarray of int
            Distinct row numbers, at most `capacity`. All of these rows stay cached until the next call.
        """
        self._request += 1
        found = self._slot_of_row[wanted]
        self._last_request[found[found >= 0]] = self._request
        missing = wanted[found < 0]
        for first in range(0, missing.size, BLOCK):
            self._compute(missing[first : first + BLOCK])
        found = self._slot_of_row[wanted]
        # NumPy would take the slot -1 as the last slot, without an error
        assert found.min(initial=0) >= 0, "all wanted rows are cached at the same time"
        return found

    def submatrix(self, wanted: np.ndarray) -> np.ndarray:
        """Return k(x_i, x_j) for all pairs i, j of wanted rows, in float64.

        Entries of cached rows are copied. Of rows that are not cached only these entries are computed.
        """
        found = self._slot_of_row[wanted]
        cached, missing = np.flatnonzero(found >= 0), np.flatnonzero(found < 0)
        self._request += 1
        self._last_request[found[cached]] = self._request
        out = np.empty((wanted.size, wanted.size))
        copy_entries(self.rows, found[cached], wanted.astype(np.uintp), cached, out)
        if missing.size:
            part = self.kernel.part(self.X, wanted[missing])
            # by symmetry, whole rows at a time: a quarter of the time of indexing with `np.ix_`; the columns of missing
            # rows, which `out` does not hold yet, are set next
            rows = out.T[missing]
            rows[:, missing] = self.kernel.block(part, part)
            out[missing] = rows
        return out

    def product(self, c: np.ndarray) -> np.ndarray:
        """Return sum_i c_i k(x_i, x_j) for every row j, c of shape (n,) or (m, n).

        Rows that are not cached are computed where c_i is not 0, and not added to the cache.
        """
        cached = self._slot_of_row >= 0
        out = gram_product(self.kernel, self.X, np.where(cached, 0.0, c))
        for c_i, out_i in zip(np.atleast_2d(c), np.atleast_2d(out), strict=True):
            used = np.flatnonzero(cached & (c_i != 0.0))
            for first in range(0, used.size, BLOCK):  # sums of partial sums have a smaller rounding error
                some, part = used[first : first + BLOCK], np.zeros(self.n)
                add_rows(self.rows, self._slot_of_row[some], c_i[some], part)
                out_i += part
        return out

    def part(self, indices: np.ndarray) -> KernelRows:
        """Return an empty cache for the kernel matrix of the rows with these indices."""
        return KernelRows(self.kernel, self.kernel.part(self.X, indices), self._megabytes)

    def _compute(self, missing: np.ndarray) -> None:
        """Compute these rows and store them in unused slots or, if they do not suffice, over least recently used rows.

        No row is replaced while memory is unused. The first write to a page of memory takes longer than the next ones,
        but only once; a row that is replaced may have to be computed again and again.
        """
        if self.computed + missing.size <= self.capacity:
            slots = np.arange(self.computed, self.computed + missing.size)
        else:
            # unused slots have the oldest request (0), so none of the rows of this request is replaced
            slots = np.argsort(self._last_request, kind="stable")[: missing.size]
            replaced = self._row_in_slot[slots]
            self._slot_of_row[replaced[replaced >= 0]] = self._row_in_slot[slots] = -1
        for columns, tile in self.kernel.tiles(self.X[missing], self.X, self._squares):
            self.rows[slots, columns] = tile
        self._slot_of_row[missing], self._row_in_slot[slots] = slots, missing
        self._last_request[slots] = self._request
        self.computed += missing.size


@compiled()
def copy_entries(rows, slots, columns, targets, out):
    """Set out[targets[k]] to these columns of rows[slots[k]]: a third of the time of indexing with `np.ix_`."""
    for k in range(slots.size):
        row, target = rows[slots[k]], out[targets[k]]
        for j in range(columns.size):
            target[j] = row[columns[j]]


@compiled()
def add_rows(rows, slots, c, out):
    """Add sum_k c_k rows[slots[k]] to `out`, for every column in the order of k."""
    for first in range(0, out.size, COLUMNS_AT_ONCE):
        part = out[first : first + COLUMNS_AT_ONCE]
        for k in range(slots.size):
            row = rows[slots[k]][first : first + COLUMNS_AT_ONCE]
            for j in range(part.size):
                part[j] += c[k] * row[j]
