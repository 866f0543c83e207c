"""Columns of dense and sparse rows: the presolve of columns without entries, and the constant column.

The presolve of sparse data drops the columns without entries before a solver sees the data, and restores them after.
Such a column adds nothing to any score, and a weight other than 0 does not reduce any norm of w: for every p some
optimum has weight 0 there (for p > 1 every optimum). The problem on the other columns therefore has the same optimum,
and arrays of a solver have one number for each column with entries, of which there are no more than entries.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

# Share of columns with entries from which all columns are kept: to drop fewer than half of them saves less than half
# of the memory of a solver, and the copy of the column indices takes as much.
MAX_KEPT = 0.5
# Entries whose columns are marked between two counts of the columns marked: the pass ends once these are enough. A
# smaller block ends sooner, a larger one counts less often.
BLOCK = 1 << 16
# Numbers of a dense copy that is made for any share of entries: 2^21 float64 take 16 MiB, of which a solver
# makes up to seven, together less than the libraries themselves take. Every problem of the exact stage that is not wide
# has fewer than 2^20 (`fit.exact.is_small`), so that only wide rows need a sparse path there.
SMALL_COPY = 2**21
# Numbers of a larger dense copy for each entry: an entry takes 12 to 16 bytes in CSR, and 8 numbers take 64, so that a
# dense copy is at most about five times the data.
PER_ENTRY = 8


@dataclass(frozen=True, eq=False)
class Columns:
    """The columns of a data set that are kept.

    Attributes
    ----------
    count : int
        Columns of the data set.
    places : ndarray of int, default=None
        The columns that are kept, ascending; None where all are.
    """

    count: int
    places: np.ndarray | None = None

    def restrict(self, w: np.ndarray) -> np.ndarray:
        """Return the entries of w, of shape (..., count), at the columns that are kept."""
        return w if self.places is None else w[..., self.places]

    def restore(self, w: np.ndarray) -> np.ndarray:
        """Return the vector of shape (..., count) with these entries at the columns that are kept, and 0 elsewhere."""
        if self.places is None:
            return w
        whole = np.zeros((*w.shape[:-1], self.count), w.dtype)
        whole[..., self.places] = w
        return whole


def without_empty_columns(X: Any, coef: np.ndarray | None = None) -> tuple[Any, Columns]:
    """Return the data on the columns that have entries, and which columns these are.

    Parameters
    ----------
    X : ndarray or CSR matrix of shape (n, d)
        Dense data, and sparse data of which at least half of the columns have entries, are returned as they are.
    coef : ndarray of shape (..., d), default=None
        Weights that X will be used with: the columns of those that are not 0 are kept, too.

    Returns
    -------
    X : ndarray or CSR matrix of shape (n, k)
        Time and memory of the step are of the order of the entries.
    columns : Columns
    """
    d = X.shape[1]
    if not sp.issparse(X):
        return X, Columns(d)
    by_sorting = d > X.nnz  # sort the entries: no array of all columns is made
    if by_sorting:
        places = np.unique(X.indices)
    else:
        seen = np.zeros(d, bool)
        for first in range(0, X.nnz, BLOCK):
            seen[X.indices[first : first + BLOCK]] = True
            if np.count_nonzero(seen) >= MAX_KEPT * d:
                return X, Columns(d)
        places = np.flatnonzero(seen)
    if coef is not None:
        places = np.union1d(places, np.flatnonzero(coef) % d)
    if places.size >= MAX_KEPT * d:
        return X, Columns(d)
    if not places.size:
        places = np.zeros(1, np.intp)  # solvers have at least one column
    if by_sorting:
        indices = np.searchsorted(places, X.indices)
    else:
        number = np.zeros(d, np.intp)
        number[places] = np.arange(places.size)
        indices = number[X.indices]
    some = (X.data, indices.astype(X.indices.dtype, copy=False), X.indptr)
    return type(X)(some, shape=(X.shape[0], places.size), copy=False), Columns(d, places)


def canonical(X: Any) -> Any:
    """Return CSR rows with sorted entries, each once, copied if need be; dense rows as given."""
    if sp.issparse(X) and not X.has_canonical_format:
        X = X.copy()
        X.sum_duplicates()
    return X


def with_constant_column(X: Any, constant: float) -> Any:
    """Return the rows with one more column, the last, in which every entry is `constant`; X itself where that is 0.

    Parameters
    ----------
    X : ndarray or CSR matrix of shape (n, d)
    constant : float
        The constant coordinate of an augmented intercept, `Problem.rho`.

    Returns
    -------
    ndarray or CSR matrix of shape (n, d + 1), or (n, d)
    """
    if not constant:
        return X
    column = np.full((X.shape[0], 1), constant)
    return sp.hstack([X, column], format="csr") if sp.issparse(X) else np.hstack([X, column])


def may_be_dense(X: Any) -> bool:
    """Return whether a dense copy of X takes memory of the order of its entries, or little in any case."""
    return not sp.issparse(X) or X.shape[0] * X.shape[1] <= max(SMALL_COPY, PER_ENTRY * X.nnz)
