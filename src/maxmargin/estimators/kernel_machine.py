"""Sums of kernel functions: what a kernel classifier predicts with."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..data.duplicates import merge
from ..kernels.functions import Kernel, Precomputed

BLOCK = 256  # rows at once


@dataclass(frozen=True, eq=False)
class KernelMachine:
    """f_j(z) = sum_i c_ji k(x_i, z) + b_j.

    Parameters
    ----------
    kernel : Kernel
    X : ndarray or CSR matrix of shape (m, d)
        Rows with coefficients; of a precomputed kernel, their places among its columns, shape (m,).
    coefficients : ndarray of shape (l, m)
        Other than 0: a row of X belongs to l of the functions at most.
    intercepts : ndarray of shape (k,)
    groups : sequence of (stop, functions)
        Up to `stop`, from where the last group ends, the rows of X belong to these l functions.
    """

    kernel: Kernel
    X: Any
    coefficients: np.ndarray
    intercepts: np.ndarray
    groups: Sequence[tuple[int, np.ndarray]]

    @classmethod
    def of(
        cls,
        kernel: Kernel,
        X: Any,
        coefficients: np.ndarray,
        intercepts: np.ndarray,
        counts: np.ndarray,
        functions: Sequence[np.ndarray],
    ) -> KernelMachine:
        """A machine whose equal rows are one; `counts` rows, one after the other, belong to the same `functions`."""
        if len({tuple(some) for some in functions}) == 1:
            counts, functions = np.array([counts.sum()]), functions[:1]
        if isinstance(kernel, Precomputed):
            stops = np.cumsum(counts).tolist()
            return cls(kernel, X, coefficients, intercepts, list(zip(stops, functions, strict=True)))
        which = np.repeat(np.arange(counts.size), counts)
        merged = merge(X, which.astype(float), np.ones(X.shape[0]))
        order = np.argsort(merged.y, kind="stable")
        sums = np.array([merged.gather(row)[order] for row in coefficients])
        stops = np.searchsorted(merged.y[order], np.arange(counts.size), side="right").tolist()
        groups = list(zip(stops, functions, strict=True))
        return cls(kernel, kernel.prepared(X[merged.places[order]]), sums, intercepts, groups)

    def scores(self, Z: Any, threads: int = 1) -> np.ndarray:
        """f_j(z) of every row: shape (n, k); each block of rows is the work of one thread.

        The scores do not depend on the number of threads.
        """
        starts = range(0, Z.shape[0], BLOCK)
        out = np.tile(self.intercepts.astype(float), (Z.shape[0], 1))
        X = self.X
        if not isinstance(self.kernel, Precomputed) and X.dtype != np.float64 and Z.dtype == np.float64:
            X = X.astype(np.float64)  # the finer of both

        def fill(first: int) -> None:
            some = slice(first, first + BLOCK)
            for columns, tile in self._tiles(Z[some], X):
                begin, end, _ = columns.indices(self.coefficients.shape[1])
                start = 0
                for stop, functions in self.groups:
                    part = slice(max(begin, start), min(end, stop))
                    if part.start < part.stop:
                        here = tile[:, part.start - begin : part.stop - begin]
                        out[some, functions] += self._sums(here, self.coefficients[:, part])
                    start = stop

        if threads > 1 and len(starts) > 1:
            with ThreadPoolExecutor(threads) as pool:
                list(pool.map(fill, starts))
        else:
            for first in starts:
                fill(first)
        return out

    def _sums(self, values: np.ndarray, coefficients: np.ndarray) -> np.ndarray:
        """Kernel values times coefficients.

        Of values that are given, and may be tied, those of a row do not depend on what is beside it.
        """
        if isinstance(self.kernel, Precomputed):
            return np.column_stack([np.multiply(values, c, order="C").sum(axis=1) for c in coefficients])
        return values @ coefficients.T

    def _tiles(self, Z: Any, X: Any) -> Iterator[tuple[slice, np.ndarray]]:
        """Kernel values of these rows, some columns at a time."""
        if isinstance(self.kernel, Precomputed):
            return iter([(slice(None), Z[:, X])])
        if not self.coefficients.shape[1]:
            return iter([])
        return self.kernel.tiles(Z.astype(X.dtype, copy=False), X)
