"""The entry or the column of a table that is far larger than all others, or a table of unusual scale."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import log10
from typing import Any

import numpy as np
import scipy.sparse as sp

# Least ratio of sizes that is reported. Its square, 1e8, is the ratio of the terms in squared lengths and in products
# of columns, and takes up half of the 16 digits of float64; smaller ratios seldom keep a fit from its tolerance.
DOMINATES = 1e4
# Columns to which narrow rows are joined. With fewer a reduction over the rows takes longer, with more its results do.
JOINED_COLUMNS = 256


@dataclass(frozen=True)
class Dominant:
    """An entry that dominates its column, a column that dominates the others, or the scale of all columns.

    Attributes
    ----------
    column : int or None
        None if all columns are of a scale far from 1.
    row : int or None
        The row of the entry; None if the whole column is large.
    value : float
        The entry of largest absolute value.
    others : float
        The largest absolute value of the column's other entries, or the median of this value over the other columns.
    """

    column: int | None
    row: int | None
    value: float
    others: float

    def words(self, first: int = 0, names: Sequence[str] | None = None) -> str:
        """Return a sentence that names the row, the column and the remedy.

        Parameters
        ----------
        first : int, default=0
            The number that the first row, and the first column, has in the sentence.
        names : sequence of str, default=None
            Of the columns; None for their numbers.
        """
        if self.column is None:
            if not self.value:
                return "every entry of X is 0, which tells no classes apart: check how X was made"
            return f"the entries of X reach {self.value:.3g}, far from 1: scale the features (StandardScaler)"
        counted = f"(counted from {first})"
        column = (
            f"column {self.column + first} {counted}" if names is None else f"column {names[self.column]!r}"
        )
        if self.row is None:
            return (
                f"{column} reaches {self.value:.3g}, and the median of the other columns {self.others:.3g}: divide it "
                f"by 1e{round(log10(abs(self.value)) - log10(self.others))}, or scale all columns with StandardScaler"
            )
        return (
            f"row {self.row + first} {counted} holds {self.value:.3g} in {column}, whose other entries are at most "
            f"{self.others:.3g} in size: is it a sentinel for a missing value? Fill it in (SimpleImputer), or leave "
            "the row out"
        )


def dominant(X: Any) -> Dominant | None:
    """Return the entry or the column that is at least `DOMINATES` times as large as the others; None without one.

    Without one, all columns are reported if their largest entry is `DOMINATES` times as large or as small as 1, which
    stands for the constant feature of the intercept.

    Parameters
    ----------
    X : ndarray or CSR matrix of shape (n, d)
    """
    top, bottom = column_extremes(X)
    sizes = np.maximum(top, -bottom)
    j = int(sizes.argmax())
    column = vector(X[:, [j]])
    row = int(np.abs(column).argmax())
    value, large = float(column[row]), float(sizes[j]) / DOMINATES
    rest = float(np.abs(column[column != value]).max(initial=0.0))  # a sentinel may occur in several rows
    others = np.delete(sizes, j)
    median = float(np.median(others[others > 0.0])) if others.any() else 0.0
    above = 0.0 < median <= large  # the column is above the others
    if 0.0 < rest <= large or (above and np.count_nonzero(column) == 1):
        return Dominant(j, row, value, rest)
    if above:
        return Dominant(j, None, value, median)
    return None if 1.0 / DOMINATES < abs(value) < DOMINATES else Dominant(None, None, value, 1.0)


def column_extremes(X: Any) -> tuple[np.ndarray, np.ndarray]:
    """Return the largest and the smallest entry of every column, of shape (d,).

    Narrow dense rows are joined: NumPy reduces over the rows one by one, and 20 times as slowly for 5 columns.
    """
    n, d = X.shape
    joined = max(1, JOINED_COLUMNS // max(d, 1))
    if sp.issparse(X) or not X.flags.c_contiguous or n < joined:
        return vector(X.max(axis=0)), vector(X.min(axis=0))
    whole = n // joined * joined
    long, rest = X[:whole].reshape(-1, joined * d), X[whole:]
    top = np.vstack([long.max(axis=0).reshape(joined, d), rest]).max(axis=0)
    bottom = np.vstack([long.min(axis=0).reshape(joined, d), rest]).min(axis=0)
    return vector(top), vector(bottom)


def vector(values: Any) -> np.ndarray:
    """Return a dense or sparse row or column as a float64 vector."""
    return np.asarray(values.toarray() if sp.issparse(values) else values, dtype=float).ravel()
