"""Rows of a kernel matrix, computed in blocks and kept within a budget, the least recently used leaving first."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...engine.jit import compiled
from ...kernels.functions import Kernel
from ...kernels.gram import gram_product

BLOCK = 512  # rows computed at once
OLD = 100  # turns after which a row is replaced sooner than memory is touched for the first time, which takes long
FAIR = 0.25  # of all rows, to be kept for several problems at once
MEGABYTE = 2**20
STRETCH = 4096  # numbers of a sum at a time: 32 kB, which stay in the first cache while rows are added


class KernelRows:
    """k(x_i, .) for the rows of one matrix.

    One cache serves all classes of a problem: the kernel does not depend on labels.

    Parameters
    ----------
    kernel : Kernel
    X : ndarray or CSR matrix of shape (n, d)
        Float32 or float64, which is the precision of all.
    megabytes : float
        Budget of the rows that are kept; two blocks are kept in any case.

    Attributes
    ----------
    diagonal : ndarray of shape (n,)
    computed : int
        Rows computed so far.
    """

    def __init__(self, kernel: Kernel, X: Any, megabytes: float) -> None:
        self.kernel, self.X, self._megabytes = kernel, kernel.prepared(X), megabytes
        self.n = X.shape[0]
        self.diagonal = kernel.diagonal(self.X)
        row = self.n * self.diagonal.dtype.itemsize
        self.most = int(min(self.n, max(2 * BLOCK, megabytes * MEGABYTE // max(row, 1))))
        # memory is taken by the system as rows are written, not before
        self.rows = np.empty((self.most, self.n), self.diagonal.dtype)
        self.computed = 0
        self._slot = np.full(self.n, -1, np.intp)  # of every row of the matrix
        self._row = np.full(self.most, -1, np.intp)  # in every slot
        self._asked = np.zeros(self.most, np.intp)  # when it was asked for last
        self._turn = self._filled = 0
        self._expected: list[np.ndarray] = []

    @property
    def roomy(self) -> bool:
        """Do several problems find place for their rows, and do not take it from each other?"""
        return self.most == self.n or (self.most >= FAIR * self.n and self._filled + BLOCK <= self.most)

    def expect(self, wanted: np.ndarray) -> None:
        """This array is asked for soon: computed with the next that is, as many rows at once cost less than few."""
        self._expected.append(wanted)

    def slots(self, wanted: np.ndarray) -> np.ndarray:
        """The places in `rows` of these rows of the matrix; those not kept are computed.

        Parameters
        ----------
        wanted : ndarray of int
            Each once, and at most `most` of them: all are there together until others are asked for.
        """
        self._turn += 1
        found = self._slot[wanted]
        self._asked[found[found >= 0]] = self._turn
        missing = wanted[found < 0]
        self._expected = [one for one in self._expected if one is not wanted]
        if missing.size and self._expected:
            missing = np.concatenate([missing, self._beside(missing)])
        for first in range(0, missing.size, BLOCK):
            self._compute(missing[first : first + BLOCK])
        found = self._slot[wanted]
        # -1 would be read as the last of all places, in silence
        assert found.min(initial=0) >= 0, "rows that are asked for are there together"
        return found

    def square(self, wanted: np.ndarray) -> np.ndarray:
        """k(x_i, x_j) for these i and j, in float64; rows that are not kept are not computed beyond that."""
        found = self._slot[wanted]
        kept, missing = np.flatnonzero(found >= 0), np.flatnonzero(found < 0)
        self._turn += 1
        self._asked[found[kept]] = self._turn
        out = np.empty((wanted.size, wanted.size))
        if kept.size:
            out[kept] = self.rows[np.ix_(found[kept], wanted)]
        if missing.size:
            part = self.kernel.part(self.X, wanted[missing])
            out[np.ix_(missing, kept)] = out[np.ix_(kept, missing)].T
            out[np.ix_(missing, missing)] = self.kernel.block(part, part)
        return out

    def product(self, c: np.ndarray) -> np.ndarray:
        """sum_i c_i k(x_i, x_j) for every j, c of shape (n,) or (m, n); rows that are not kept do not stay."""
        kept = self._slot >= 0
        out = gram_product(self.kernel, self.X, np.where(kept, 0.0, c))
        for c_i, out_i in zip(np.atleast_2d(c), np.atleast_2d(out), strict=True):
            used = np.flatnonzero(kept & (c_i != 0.0))
            for first in range(0, used.size, BLOCK):  # sums of sums, which are rounded less
                some, part = used[first : first + BLOCK], np.zeros(self.n)
                add_rows(self.rows, self._slot[some], c_i[some], part)
                out_i += part
        return out

    def part(self, places: np.ndarray) -> KernelRows:
        """The rows and the columns at these places."""
        return KernelRows(self.kernel, self.kernel.part(self.X, places), self._megabytes)

    def _beside(self, missing: np.ndarray) -> np.ndarray:
        """Rows that are expected beside these: what a block has place for, as long as no row leaves for them."""
        most = max(min(BLOCK, self.most - self._filled) - missing.size, 0)
        some = np.setdiff1d(np.concatenate(self._expected), missing)
        return some[self._slot[some] < 0][:most]

    def _compute(self, some: np.ndarray) -> None:
        """These rows, in the place of those not asked for the longest, where that is long or no place is left."""
        old = np.count_nonzero(self._asked[: self._filled] < self._turn - OLD)
        if old < some.size and self._filled + some.size <= self.most:
            places = np.arange(self._filled, self._filled + some.size)
            into: Any = slice(self._filled, self._filled + some.size)  # written sooner than scattered places
            self._filled += some.size
        else:
            if old < some.size:
                # what is left of the memory comes first: without it, rows of this very turn might have to leave
                self._filled = self.most
            into = places = np.argsort(self._asked[: self._filled], kind="stable")[: some.size]
            gone = self._row[places]
            self._slot[gone[gone >= 0]] = self._row[places] = -1
        if isinstance(into, slice):
            self.kernel.fill(self.X[some], self.X, self.rows[into])
        else:
            for columns, tile in self.kernel.tiles(self.X[some], self.X):
                self.rows[into, columns] = tile
        self._slot[some], self._row[places], self._asked[places] = places, some, self._turn
        self.computed += some.size


@compiled()
def add_rows(rows, slots, c, out):
    """out += sum of c_k rows[slots[k]], one row after the other."""
    for first in range(0, out.size, STRETCH):
        part = out[first : first + STRETCH]
        for k in range(slots.size):
            row = rows[slots[k]][first : first + STRETCH]
            for j in range(part.size):
                part[j] += c[k] * row[j]
