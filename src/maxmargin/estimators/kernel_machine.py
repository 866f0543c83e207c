"""Rows of a kernel classifier: distinct ones for the fit, and sums of kernel functions for the prediction."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from ..certificates.expansions import KernelPoint
from ..data.duplicates import merge, unmerged
from ..kernels.functions import Kernel, Precomputed

if TYPE_CHECKING:
    from ..fit.lockstep import KernelSolution

# Rows that are scored at once: the kernel values of a block with all support vectors stay in the cache of a core, and
# each block is the work of one thread.
BLOCK = 256


class DistinctKernelRows:
    """Rows of positive weight, where equal rows of a class are merged.

    Parameters
    ----------
    kernel : Kernel
    X : ndarray or CSR matrix of shape (n, d)
    codes : ndarray of int of shape (n,)
        Number of the class of each row.
    weights : ndarray of shape (n,)
    in_order : bool
        Whether the distinct rows keep the order in which they first appear.

    Attributes
    ----------
    X, codes, weights
        Distinct rows, the number of their class, and their total weight.
    rounding : float
        Bound on the relative error of dual variables that equal rows share.
    """

    def __init__(
        self, kernel: Kernel, X: Any, codes: np.ndarray, weights: np.ndarray, in_order: bool
    ) -> None:
        self._n = codes.size
        self._positive = np.flatnonzero(weights > 0.0)
        labels, weights = codes[self._positive].astype(float), weights[self._positive]
        if isinstance(kernel, Precomputed):
            self._merged = unmerged(labels, weights)
        else:
            positive = X if self._positive.size == self._n else X[self._positive]
            self._merged = merge(positive, labels, weights, in_order)
        powers_of_two = bool((np.frexp(self._merged.shares)[0] == 0.5).all())  # shares are then exact
        copies = float(np.bincount(self._merged.groups).max(initial=0))
        self.rounding = 0.0 if powers_of_two else (copies + 4.0) * float(np.finfo(float).eps)
        places = self._positive[self._merged.places]
        self.X = X if np.array_equal(places, np.arange(self._n)) else kernel.part(X, places)
        self.codes, self.weights = self._merged.y.astype(np.intp), self._merged.weights

        # the rows of positive weight, equal ones side by side, and where the group of each distinct row begins
        groups = self._merged.groups
        self._members = np.argsort(groups, kind="stable")
        self._starts = np.concatenate([[0], np.cumsum(np.bincount(groups, minlength=self.codes.size))])

    def spread(self, solution: KernelSolution, places: np.ndarray | None) -> KernelSolution:
        """Return a solution on these distinct rows as one on all rows; without places it is one already."""
        if places is None:
            return solution
        alpha, coefficients, b = solution.point
        point = KernelPoint(self.on_all_rows(alpha, places), self.on_all_rows(coefficients, places), b)
        return replace(solution, point=point)

    def on_all_rows(self, values: np.ndarray, places: np.ndarray) -> np.ndarray:
        """Divide values of these distinct rows among the rows that they were merged from, by their weights.

        Only entries other than 0 are visited: most are 0, and pairs of classes are many.
        """
        out, nonzero = np.zeros(self._n), np.flatnonzero(values)
        first, last = self._starts[places[nonzero]], self._starts[places[nonzero] + 1]
        counts = last - first
        owner = np.repeat(np.arange(nonzero.size), counts)
        members = self._members[np.arange(owner.size) - np.cumsum(counts)[owner] + last[owner]]
        out[self._positive[members]] = values[nonzero][owner] * self._merged.shares[members]
        return out


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
