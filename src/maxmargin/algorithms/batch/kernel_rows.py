"""Rows of a kernel matrix, computed in blocks and kept within a budget, the least recently used leaving first."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np

from ...engine.jit import compiled
from ...kernels.functions import Kernel
from ...kernels.gram import gram_product

BLOCK = 512  # rows computed at once
OLD = 100  # turns after which a row is replaced sooner than memory is touched for the first time, which takes long
FAIR = 0.25  # of all rows, to be kept for several problems at once
RATIO = 4  # rows for one of the sample
MEGABYTE = 2**20
EDGE = 32  # rows and columns of a square that is turned at a time: it stays in the first cache
STRETCH = 4096  # numbers of a sum at a time: 32 kB, which stay in the first cache while rows are added


class KernelRows:
    """k(x_i, .) for the rows of one matrix.

    One cache serves all classes of a problem, and so does its sample: the kernel does not depend on labels.

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
        among = np.empty((0, 0))
        if missing.size:
            part = self.kernel.part(self.X, wanted[missing])
            among = self.kernel.block(part, part)
        if not kept.size:
            return among.astype(float, copy=False)
        out = np.empty((wanted.size, wanted.size))
        # unsigned: compiled code need not ask whether they are below 0
        columns, places = wanted.astype(np.uintp), kept.astype(np.uintp)
        gather(self.rows, found[kept], columns, out, places, missing, among)
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

    def part(self, places: np.ndarray, megabytes: float | None = None) -> KernelRows:
        """The rows and the columns at these places."""
        X = self.kernel.part(self.X, places)
        return KernelRows(self.kernel, X, self._megabytes if megabytes is None else megabytes)

    @cached_property
    def sample(self) -> tuple[np.ndarray, KernelRows]:
        """A random part of the rows, one of RATIO: their places, and what is kept of them beside the budget."""
        places = np.sort(np.random.default_rng(0).permutation(self.n)[: self.n // RATIO])
        return places, self.part(places, self._megabytes / RATIO)

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
def gather(rows, slots, columns, out, places, others, among):
    """out[places[a], b] = rows[slots[a], columns[b]], and the same turned: a symmetric matrix.

    Its other rows have `among` in their columns.
    """
    for a in range(others.size):
        row = among[a]
        line = out[others[a]]
        for b in range(others.size):
            line[others[b]] = row[b]
    for a in range(slots.size):
        row = rows[slots[a]]
        line = out[places[a]]
        for b in range(columns.size):
            line[b] = row[columns[b]]
    for first in range(0, columns.size, EDGE):  # so much of it at a time that it stays in the cache
        for place in places:
            for b in range(first, min(first + EDGE, columns.size)):
                out[b, place] = out[place, b]


@compiled()
def add_rows(rows, slots, c, out):
    """out += sum of c_k rows[slots[k]], one row after the other."""
    fours = slots.size - slots.size % 4
    for first in range(0, out.size, STRETCH):
        last = first + STRETCH
        part = out[first:last]
        # four at a time: sums are loaded and stored once, and are the same numbers
        for k in range(0, fours, 4):
            one, two = rows[slots[k]][first:last], rows[slots[k + 1]][first:last]
            three, four = rows[slots[k + 2]][first:last], rows[slots[k + 3]][first:last]
            a, b, d, e = c[k], c[k + 1], c[k + 2], c[k + 3]
            for j in range(part.size):
                part[j] = (((part[j] + a * one[j]) + b * two[j]) + d * three[j]) + e * four[j]
        for k in range(fours, slots.size):
            row = rows[slots[k]][first:last]
            for j in range(part.size):
                part[j] += c[k] * row[j]
