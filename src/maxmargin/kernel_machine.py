"""Sums of kernel functions: what a kernel classifier predicts with."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import numpy as np

from .kernels import Kernel, Precomputed
from .merge import merge

BLOCK = 256  # rows at once


@dataclass(frozen=True, eq=False)
class KernelMachine:
    """f_j(z) = sum_i c_ji k(x_i, z) + b_j.

    Parameters
    ----------
    kernel : Kernel
    X : ndarray or CSR matrix of shape (m, d)
        Rows with coefficients; of a precomputed kernel, their places among its columns, shape (m,).
    coefficients : ndarray of shape (k, m)
    intercepts : ndarray of shape (k,)
    """

    kernel: Kernel
    X: Any
    coefficients: np.ndarray
    intercepts: np.ndarray

    @classmethod
    def of(cls, kernel: Kernel, X: Any, coefficients: np.ndarray, intercepts: np.ndarray) -> KernelMachine:
        """A machine whose equal rows are one."""
        if isinstance(kernel, Precomputed):
            return cls(kernel, X, coefficients, intercepts)
        merged = merge(X, np.zeros(X.shape[0]), np.ones(X.shape[0]))
        sums = np.zeros((coefficients.shape[0], merged.y.size))
        for k, row in enumerate(coefficients):
            sums[k] = merged.gather(row)
        return cls(kernel, kernel.prepared(merged.X), sums, intercepts)

    def scores(self, Z: Any, threads: int = 1) -> np.ndarray:
        """f_j(z) of every row: shape (n, k); each block of rows is the work of one thread.

        The scores do not depend on the number of threads.
        """
        starts = range(0, Z.shape[0], BLOCK)
        out = np.tile(self.intercepts.astype(float), (Z.shape[0], 1))
        X = self.X
        if not isinstance(self.kernel, Precomputed) and X.dtype != np.float64 and Z.dtype == np.float64:
            X = self.kernel.prepared(X.astype(np.float64))  # the finer of both

        def fill(first: int) -> None:
            some = slice(first, first + BLOCK)
            for columns, tile in self._tiles(Z[some], X):
                out[some] += tile @ self.coefficients[:, columns].T

        if threads > 1 and len(starts) > 1:
            with ThreadPoolExecutor(threads) as pool:
                list(pool.map(fill, starts))
        else:
            for first in starts:
                fill(first)
        return out

    def _tiles(self, Z: Any, X: Any) -> Iterator[tuple[slice, np.ndarray]]:
        """Kernel values of these rows, some columns at a time."""
        if isinstance(self.kernel, Precomputed):
            return iter([(slice(None), Z[:, X])])
        if not self.coefficients.shape[1]:
            return iter([])
        return self.kernel.tiles(self.kernel.asked(Z.astype(X.dtype, copy=False), X), X)
