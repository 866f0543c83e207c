"""Rows of a kernel matrix, computed in blocks and kept within a budget, the least recently used leaving first."""

from __future__ import annotations

from collections import OrderedDict
from typing import Any

import numpy as np

from ..kernels import Kernel

BLOCK = 512  # rows computed at once
MEGABYTE = 2**20


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
        self.kernel, self.X = kernel, kernel.prepared(X)
        self.n = X.shape[0]
        self.diagonal = kernel.diagonal(self.X)
        row = self.n * self.diagonal.dtype.itemsize
        self.most = int(min(self.n, max(2 * BLOCK, megabytes * MEGABYTE // max(row, 1))))
        # memory is taken by the system as rows are written, not before
        self.rows = np.empty((self.most, self.n), self.diagonal.dtype)
        self._slots: OrderedDict[int, int] = OrderedDict()
        self.computed = 0

    def slots(self, wanted: np.ndarray) -> np.ndarray:
        """The places in `rows` of these rows of the matrix, at most `most` of them; those not kept are computed."""
        missing = [i for i in wanted.tolist() if i not in self._slots]
        for i in wanted.tolist():
            if i in self._slots:
                self._slots.move_to_end(i)
        for first in range(0, len(missing), BLOCK):
            some = missing[first : first + BLOCK]
            block = self.kernel.block(self.X[some], self.X)
            self.rows[[self._room(i) for i in some]] = block
            self.computed += len(some)
        return np.array([self._slots[i] for i in wanted.tolist()], dtype=np.intp)

    def _room(self, i: int) -> int:
        """A place for row i: a new one, or that of the row that was not asked for the longest."""
        used = len(self._slots)
        slot = used if used < self.most else self._slots.popitem(last=False)[1]
        self._slots[i] = slot
        return slot
