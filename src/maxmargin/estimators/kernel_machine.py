"""Rows of a kernel classifier: distinct ones for the fit, and sums of kernel functions for the prediction."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ..certificates.expansions import KernelPoint
from ..data.duplicates import merge, unmerged
from ..kernels.functions import Kernel, Precomputed

if TYPE_CHECKING:
    from ..fit.gram_driver import KernelSolution

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

    def spread(self, solution: KernelSolution, places: np.ndarray) -> KernelSolution:
        """Return a solution on these distinct rows as one on all rows."""
        alpha, coefficients, b = solution.point
        point = KernelPoint(self.on_all_rows(alpha, places), self.on_all_rows(coefficients, places), b)
        return replace(solution, point=point)

    def on_all_rows(self, values: np.ndarray, places: np.ndarray) -> np.ndarray:
        """Divide values of these distinct rows among the rows that they were merged from, by their weights."""
        distinct, out = np.zeros(self.codes.size), np.zeros(self._n)
        distinct[places] = values
        out[self._positive] = distinct[self._merged.groups] * self._merged.shares
        return out


class SupportVectors(NamedTuple):
    """Support vectors that belong to the same functions.

    Attributes
    ----------
    X : ndarray or CSR matrix of shape (m, d)
        Of a precomputed kernel, their places among its columns, shape (m,).
    coefficients : ndarray of shape (l, m)
    functions : ndarray of int of shape (l,)
    """

    X: Any
    coefficients: np.ndarray
    functions: np.ndarray


@dataclass(frozen=True, eq=False)
class KernelMachine:
    """f_j(z) = sum_i c_ji k(x_i, z) + b_j.

    Attributes
    ----------
    kernel : Kernel
    intercepts : ndarray of shape (k,)
    groups : list of SupportVectors
    """

    kernel: Kernel
    intercepts: np.ndarray
    groups: list[SupportVectors]

    def scores(self, Z: Any, threads: int = 1) -> np.ndarray:
        """Return f_j(z) of every row: shape (n, k); each block of rows is the work of one thread.

        The scores do not depend on the number of threads.
        """
        blocks = [slice(first, first + BLOCK) for first in range(0, Z.shape[0], BLOCK)]
        if threads > 1 and len(blocks) > 1:
            with ThreadPoolExecutor(threads) as pool:
                found = list(pool.map(lambda rows: self._block_scores(Z[rows]), blocks))
        else:
            found = [self._block_scores(Z[rows]) for rows in blocks]
        return np.concatenate(found)

    def _block_scores(self, Z: Any) -> np.ndarray:
        """Return the scores of some rows; of float32 and float64 rows or support vectors, the finer type counts."""
        scores = np.tile(self.intercepts.astype(float), (Z.shape[0], 1))
        for X, coefficients, functions in self.groups:
            if isinstance(self.kernel, Precomputed):
                # Given values may be tied: sums of a row must not depend on the rows beside it.
                products = [np.multiply(Z[:, X], c, order="C").sum(axis=1) for c in coefficients]
                scores[:, functions] += np.column_stack(products)
            elif X.shape[0]:
                dtype = np.result_type(X.dtype, Z.dtype)
                for columns, values in self.kernel.tiles(
                    Z.astype(dtype, copy=False), X.astype(dtype, copy=False)
                ):
                    scores[:, functions] += values @ coefficients[:, columns].T
        return scores
