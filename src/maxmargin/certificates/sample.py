"""Rows, labels and sample weights as a certificate sees them, and their fingerprint."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any

import numpy as np
import scipy.sparse as sp

from ..numerics.sparse_columns import Columns
from ..numerics.sums import PART, Plain, parts
from .certificate import Fingerprint

KEPT = 50_000  # columns whose shares are kept from fit to fit


@dataclass(frozen=True, eq=False)
class Sample:
    """Patterns, labels and weights, as a certificate sees them.

    Parameters
    ----------
    X : ndarray or CSR matrix of shape (n, d)
    y : ndarray of shape (n,), entries -1.0 and 1.0
    weights : ndarray of shape (n,)
        Sample weights; rows of weight 0 take no part.
    norms : ndarray of shape (n,), default=None
        |x_i|, where they are known.
    like : Sample, default=None
        Another of the same rows, which has their norms and marks for all, and is like none.
    columns : Columns, default=None
        Which columns of the data set those of X are; None: all of them.
    """

    X: Any
    y: np.ndarray
    weights: np.ndarray
    norms: Any = None
    like: Sample | None = None
    columns: Columns | None = None

    def __post_init__(self) -> None:
        if self.norms is None:
            norms = Plain.row_norms(self.X) if self.like is None else self.like.norms
            object.__setattr__(self, "norms", norms)

    @cached_property
    def marks(self) -> np.ndarray:
        """`marked(X)`."""
        return marked(self.X, self.columns) if self.like is None else self.like.marks

    @cached_property
    def fingerprint(self) -> Fingerprint:
        """The fingerprint of these rows, labels and weights."""
        return fingerprint(self)

    @property
    def unmarked(self) -> bool:
        """Whether the fingerprint has not been computed yet."""
        return "fingerprint" not in vars(self)

    @property
    def known_marks(self) -> np.ndarray | None:
        """The marks if they have been computed, else None."""
        return vars(self if self.like is None else self.like).get("marks")

    def remember(self, checksum: float, scale: float, marks: np.ndarray) -> None:
        """Keep sums of the fingerprint computed elsewhere, and the marks, if any, for all samples of these rows."""
        if marks.size and self.like is not None:
            vars(self.like).setdefault("marks", marks)
        if math.isfinite(scale):
            vars(self)["fingerprint"] = _fingerprinted(self, checksum, scale)

    @cached_property
    def longest(self) -> float:
        """The largest |x_i|."""
        return float(self.norms.max(initial=0.0)) if self.like is None else self.like.longest

    @property
    def entries(self) -> int:
        """Stored entries of all rows."""
        return int(self.X.nnz) if sp.issparse(self.X) else self.X.size

    @property
    def width(self) -> int:
        """Most terms that the score of a row can have."""
        if sp.issparse(self.X):
            return int(np.diff(self.X.indptr).max(initial=0))
        return self.X.shape[1]


def fingerprint(sample: Sample) -> Fingerprint:
    """The fingerprint of patterns with their labels and weights."""
    y, weights, marks = sample.y, sample.weights, sample.marks
    with np.errstate(over="ignore", invalid="ignore"):
        checksum, scale = _sums(marks, y, weights)
        if not np.isfinite(scale):  # of large weights and large entries: in units of their own
            checksum, scale = _sums(marks / np.abs(marks).max(), y, weights, float(1.0 + weights.max()))
        return _fingerprinted(sample, checksum, scale)


def _fingerprinted(sample: Sample, checksum: float, scale: float) -> Fingerprint:
    """The fingerprint of these patterns, of whose entries the sums are known."""
    d = sample.X.shape[1] if sample.columns is None else sample.columns.count
    return Fingerprint(sample.y.size, d, int(np.count_nonzero(sample.y > 0)), checksum, scale)


def _sums(marks: np.ndarray, y: np.ndarray, weights: np.ndarray, unit: float = 1.0) -> tuple[float, float]:
    """Return sum mark_i (1 + s_i) (3 + y_i) / unit, and the same sum of absolute values."""
    if y.size > PART:
        sums = [_sums(marks[some], y[some], weights[some], unit) for some in parts(y.size)]
        return sum(checksum for checksum, _ in sums), sum(scale for _, scale in sums)
    factors = 1.0 + weights
    factors /= unit
    factors *= 3.0 + y
    return float(marks @ factors), float(np.abs(marks) @ factors)


def marked(X: Any, columns: Columns | None = None) -> np.ndarray:
    """Return a number for each row that depends on its position and its entries."""
    with np.errstate(over="ignore", invalid="ignore"):
        marks = project(X, columns)
        for some in parts(marks.size):
            places = np.arange(some.start, some.stop, dtype=np.uint32)
            shuffle = (places * np.uint32(2654435769)) >> np.uint32(12)
            marks[some] *= 0.5 + shuffle * 2.0**-21  # less than one
        return marks


def project(X: Any, columns: Columns | None = None) -> np.ndarray:
    """Return 1 + sum_j share_j x_ij of each row, with the share of column j in the whole data set."""
    places = None if columns is None else columns.places
    shares = column_shares(X.shape[1]) if places is None else _shares(places + 1.0)
    marks = Plain.scores(X, shares)
    marks += 1.0
    return marks


def column_shares(d: int) -> np.ndarray:
    """The share of every column's entries; nobody writes to it."""
    return _kept_shares(d) if d <= KEPT else _shares(np.arange(1.0, d + 1.0))


def _shares(numbers: np.ndarray) -> np.ndarray:
    """The shares of the columns with these numbers, of which the first is 1."""
    return 1.0 + 0.5 * np.sin(numbers)


@lru_cache(maxsize=4)
def _kept_shares(d: int) -> np.ndarray:
    return _shares(np.arange(1.0, d + 1.0))
