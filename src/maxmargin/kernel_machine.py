"""Sums of kernel functions: what a kernel classifier predicts with."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import numpy as np

from .kernels import Kernel, Precomputed
from .merge import merge

BLOCK = 2**22  # kernel values at once


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
        n, step = Z.shape[0], max(1, BLOCK // max(self.coefficients.shape[1], 1))
        starts = range(0, n, step)
        out = np.empty((n, self.coefficients.shape[0]))

        def fill(first: int) -> None:
            some = slice(first, first + step)
            out[some] = self._values(Z[some]) @ self.coefficients.T + self.intercepts

        if threads > 1 and len(starts) > 1:
            with ThreadPoolExecutor(threads) as pool:
                list(pool.map(fill, starts))
        else:
            for first in starts:
                fill(first)
        return out

    def _values(self, Z: Any) -> np.ndarray:
        if isinstance(self.kernel, Precomputed):
            return Z[:, self.X]
        if not self.coefficients.shape[1]:
            return np.zeros((Z.shape[0], 0))
        dtype = np.result_type(Z.dtype, self.X.dtype)
        return self.kernel.block(
            self.kernel.prepared(Z.astype(dtype, copy=False)), self.X.astype(dtype, copy=False)
        )
