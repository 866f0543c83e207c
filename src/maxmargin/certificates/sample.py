"""Rows, labels and sample weights of a binary problem, and their fingerprint."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp

from ..kernels.functions import Kernel, Linear
from ..numerics.sparse_columns import Columns, without_empty_columns
from ..numerics.sums import Plain, row_norms
from ..problem.problem import Problem
from .certificate import Certificate, Fingerprint

if TYPE_CHECKING:
    from .row_pass import Bounds


@dataclass(frozen=True, eq=False)
class Sample:
    """Rows, labels and sample weights.

    Parameters
    ----------
    X : ndarray or CSR matrix of shape (n, d)
    y : ndarray of shape (n,), entries -1.0 and 1.0
    weights : ndarray of shape (n,)
        Sample weights; rows of weight 0 take no part.
    norms : ndarray of shape (n,), default=None
        2-norms |x_i|; None to compute them.
    columns : Columns, default=None
        The columns of the data set that X consists of; None where X has all of them.
    shift : ndarray of shape (d,), default=None
        What the door has subtracted from every row of the data set (`data.door`); None for nothing.
    same_rows : Sample, default=None
        A sample with the same rows, whose projections this one shares (`with_labels`).
    """

    X: Any
    y: np.ndarray
    weights: np.ndarray
    norms: Any = None
    columns: Columns | None = None
    shift: np.ndarray | None = None
    same_rows: Sample | None = None

    def __post_init__(self) -> None:
        if self.norms is None:
            object.__setattr__(self, "norms", row_norms(self.X))

    def with_labels(self, y: np.ndarray, weights: np.ndarray | None = None) -> Sample:
        """Return a sample of the same rows with other labels y and, unless None, other weights, of shape (n,) each."""
        weights = self.weights if weights is None else weights
        return Sample(self.X, y, weights, self.norms, self.columns, self.shift, self.same_rows or self)

    def certificate(
        self, problem: Problem, alpha: np.ndarray, found: Bounds, kernel: Kernel | None = None
    ) -> Certificate:
        """Return the certificate of the bounds `found`, one of which the dual variables alpha, of shape (n,), prove.

        `kernel` is that of the model; None for the linear kernel.
        """
        support = (alpha > 0.0).nonzero()[0]
        # Python floats, which raise no warning where the quotient of the gap overflows
        lower, upper = float(found.lower), float(found.upper)
        kernel = Linear() if kernel is None else kernel
        return Certificate(problem, lower, upper, support, alpha[support], self.fingerprint, kernel)

    @property
    def width(self) -> int:
        """The largest number of terms of a score w.x_i: stored entries of a sparse row, else columns."""
        return int(np.diff(self.X.indptr).max(initial=0)) if sp.issparse(self.X) else self.X.shape[1]

    @cached_property
    def projections(self) -> np.ndarray:
        """A number for each row that depends on its entries, its position and its weight, shape (n,)."""
        if self.same_rows is not None and self.same_rows.weights is self.weights:
            return self.same_rows.projections
        X, columns = without_empty_columns(self.X) if self.columns is None else (self.X, self.columns)
        # places are the numbers of the columns of X in the whole data set; None where X has all of them
        numbers = np.arange(1.0, X.shape[1] + 1.0) if columns.places is None else columns.places + 1.0
        return row_projections(X, self.weights, numbers, np.arange(self.y.size), self.shift)

    @cached_property
    def fingerprint(self) -> Fingerprint:
        """The sum of projection_i (3 + y_i), the sum of its absolute values, and the sizes of the data."""
        signs, features = 3.0 + self.y, self.X.shape[1] if self.columns is None else self.columns.count
        sums = float(self.projections @ signs), float(np.abs(self.projections) @ signs)
        return Fingerprint(self.y.size, features, int(np.count_nonzero(self.y > 0)), *sums)


def row_projections(
    X: Any, weights: np.ndarray, numbers: np.ndarray, positions: np.ndarray, shift: np.ndarray | None = None
) -> np.ndarray:
    """Return (1 + sum_j x_ij (1 + sin(j) / 2)) (1 + s_i) times a factor for the position of each row, shape (n,).

    `numbers` are the j of the columns in the whole data set, counted from 1; `shift` is what the door has subtracted.
    The factor is a multiplicative hash of the position, between 1/2 and 1: 2654435769 is 2^32 / golden ratio (Knuth),
    and the upper 20 bits are used.
    """
    factors = 1.0 + 0.5 * np.sin(numbers)
    hashes = (positions.astype(np.uint32) * np.uint32(2654435769)) >> np.uint32(12)
    found = Plain.scores(X, factors, 1.0 if shift is None else 1.0 + float(shift @ factors))
    found *= 0.5 + hashes * 2.0**-21
    found *= 1.0 + weights
    return found
