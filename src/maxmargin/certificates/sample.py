"""Rows, labels and sample weights of a binary problem, and their fingerprint."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
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

# Rows whose terms of a fingerprint are computed together: temporaries of 64 kB stay in the cache, and the allocator
# does not map them anew. Smaller blocks take more calls of NumPy.
BLOCK_ROWS = 1 << 13


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

    Attributes
    ----------
    entries : int
        Number of stored entries of X.
    """

    X: Any
    y: np.ndarray
    weights: np.ndarray
    norms: Any = None
    columns: Columns | None = None
    shift: np.ndarray | None = None
    same_rows: Sample | None = None
    entries: int = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "entries", int(self.X.nnz) if sp.issparse(self.X) else self.X.size)
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
        """A number for each row that depends on its entries and its position, shape (n,).

        It is the projection 1 + sum_j x_ij (1 + sin(j) / 2), where j is the column in the whole data set, counted from
        1, times a multiplicative hash of the position, between 1/2 and 1.
        """
        if self.same_rows is not None:
            return self.same_rows.projections
        X, columns = without_empty_columns(self.X) if self.columns is None else (self.X, self.columns)
        # places are the numbers of the columns of X in the whole data set; None where X has all of them
        numbers = np.arange(1.0, X.shape[1] + 1.0) if columns.places is None else columns.places + 1.0
        found = row_projections(X, numbers)
        if self.shift is not None:
            found += row_projections(self.shift[None], numbers) - 1.0
        for rows in _blocks(found.size):
            found[rows] *= factors_at(np.arange(rows.start, rows.stop))
        return found

    @cached_property
    def _products(self) -> np.ndarray:
        """projection_i (1 + s_i), shape (n,); computed once for all samples of the same rows and weights."""
        same = self.same_rows
        if same is not None and same.weights is self.weights:
            return same._products
        return self.projections * (1.0 + self.weights)

    @cached_property
    def fingerprint(self) -> Fingerprint:
        """The sum of projection_i (1 + s_i) (3 + y_i), the sum of its absolute values, and the sizes of the data."""
        products, checksum, scale = self._products, 0.0, 0.0
        for rows in _blocks(products.size):
            part, signs = products[rows], 3.0 + self.y[rows]
            checksum += float(part @ signs)
            scale += float(np.abs(part) @ signs)
        features = self.X.shape[1] if self.columns is None else self.columns.count
        return Fingerprint(self.y.size, features, int(np.count_nonzero(self.y > 0)), checksum, scale)


def row_projections(X: Any, numbers: np.ndarray) -> np.ndarray:
    """Return 1 + sum_j x_ij (1 + sin(j) / 2), shape (n,); `numbers` are the j of the columns."""
    return Plain.scores(X, 1.0 + 0.5 * np.sin(numbers), 1.0)


def factors_at(positions: np.ndarray) -> np.ndarray:
    """Return the factors of `projections`, between 1/2 and 1, at these positions, an array of any type of integers.

    2654435769 is 2^32 / golden ratio (Knuth's multiplicative hash); its upper 20 bits are used.
    """
    hashes = (positions.astype(np.uint32) * np.uint32(2654435769)) >> np.uint32(12)
    return 0.5 + hashes * 2.0**-21


def _blocks(n: int) -> Iterator[slice]:
    """Return an iterator over the slices of blocks of `BLOCK_ROWS` rows, n rows in all."""
    return (slice(first, min(first + BLOCK_ROWS, n)) for first in range(0, n, BLOCK_ROWS))
