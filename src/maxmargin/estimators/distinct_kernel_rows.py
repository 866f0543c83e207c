"""Distinct rows of a kernel fit."""

from __future__ import annotations

from dataclasses import replace
from functools import cached_property
from typing import Any

import numpy as np

from ..certificates.expansions import KernelPoint
from ..data.duplicates import apart, merge
from ..fit.lockstep import KernelSolution
from ..kernels.functions import Kernel, Precomputed


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
            self._merged = apart(labels, weights)
        else:
            positive = X if self._positive.size == self._n else X[self._positive]
            self._merged = merge(positive, labels, weights, in_order)
        powers_of_two = bool((np.frexp(self._merged.shares)[0] == 0.5).all())  # shares are then exact
        copies = float(np.bincount(self._merged.groups).max(initial=0))
        self.rounding = 0.0 if powers_of_two else (copies + 4.0) * float(np.finfo(float).eps)
        places = self._positive[self._merged.places]
        self.X = X if np.array_equal(places, np.arange(self._n)) else kernel.part(X, places)
        self.codes, self.weights = self._merged.y.astype(np.intp), self._merged.weights

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
        order, starts = self._members
        first, last = starts[places[nonzero]], starts[places[nonzero] + 1]
        counts = last - first
        owner = np.repeat(np.arange(nonzero.size), counts)
        members = order[np.arange(owner.size) - np.cumsum(counts)[owner] + last[owner]]
        out[self._positive[members]] = values[nonzero][owner] * self._merged.shares[members]
        return out

    @cached_property
    def _members(self) -> tuple[np.ndarray, np.ndarray]:
        """The rows of positive weight, equal ones side by side, and where the group of each distinct row begins."""
        groups = self._merged.groups
        counts = np.bincount(groups, minlength=self.codes.size)
        return np.argsort(groups, kind="stable"), np.concatenate([[0], np.cumsum(counts)])
