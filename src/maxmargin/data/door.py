"""The door: the domain of numbers within which sums in float64 neither overflow nor lose digits to underflow.

Rows and costs beyond it are refused here; no other module knows of extreme numbers. Solvers have units of their own, so
that rows of all scales within the domain are solved alike, as they are.

A column whose level is far above its spread, such as a time stamp, is shifted by its entry in the first row. With a
free intercept the problem is the same: w.x + b = w.(x - s) + (b + w.s). By Sterbenz's lemma the differences are exact,
as all entries are within a factor of two of each other.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import numpy as np
import scipy.sparse as sp

from ..numerics.columns import column_extremes, first_beyond, vector
from ..problem.problem import Problem

# Largest size of an entry, and its inverse the least length of the longest row: all of float32 is within. C s_i is
# within the squares. Products of C s_i and two entries, and sums of 1e12 of them, are then normal float64 numbers.
LARGEST, LARGEST_COST = 1e50, 1e100


def check_rows(longest: float, X: Any = None, names: Sequence[str] | None = None) -> None:
    """Raise ValueError if rows, the longest of this length, are all below the domain, or an entry of X is beyond it."""
    if 0.0 < longest < 1.0 / LARGEST:
        raise ValueError(
            f"the longest row of X has the length {longest:.3g}, and fits take lengths from {1 / LARGEST:g}: multiply "
            "all columns by a large number, or scale them with StandardScaler."
        )
    if X is not None and not longest <= LARGEST:
        check_entries(X, names)


def check_entries(X: Any, names: Sequence[str] | None = None) -> None:
    """Raise ValueError if an entry of X is beyond the domain."""
    found = first_beyond(X, LARGEST)
    if found is not None:
        row, column, value = found
        place = f"column {column if names is None else names[column]!r}, row {row}"
        raise ValueError(f"{place} (counted from 0) of X {beyond(value)}.")


def beyond(value: float) -> str:
    """Return what is wrong with an entry beyond the domain, and the remedy."""
    return (
        f"holds {value:.3g}, and fits take entries up to {LARGEST:g} in size: fill it in if it stands for a missing "
        "entry, or divide the column"
    )


def check_costs(problem: Problem, weights: np.ndarray) -> None:
    """Raise ValueError unless C s_i of all weights above 0, and the constant feature, are within the domain."""
    if problem.rho and not 1.0 / LARGEST <= problem.rho <= LARGEST:
        raise ValueError(
            f"intercept_scaling={problem.rho:.3g} must be from {1 / LARGEST:g} to {LARGEST:g}: take one of the size of "
            "the features."
        )
    costs = weights if problem.hard else problem.C * weights
    for value in (costs.min(), costs.max()):
        if not 1.0 / LARGEST_COST <= value <= LARGEST_COST:
            raise ValueError(
                f"C times the weights of rows reaches {value:.3g}, and fits take {1 / LARGEST_COST:g} to "
                f"{LARGEST_COST:g}: change C, or the weights; C=inf is the hard margin, rows of weight 0 do not count."
            )


@np.errstate(over="ignore")  # of entries beyond the domain, which are refused later
def shifted(problem: Problem, X: Any) -> tuple[Any, np.ndarray | None]:
    """Return X without the levels of its columns, in its type, and the shift of every column, of shape (d,).

    For a column whose level (its least absolute entry, if all have one sign) is more than 100 times its spread, so that
    two digits of products would be lost, the shift is its entry in the first row, else 0. Where all are 0, X itself and
    None are returned.
    """
    if not problem.free or problem.hard:
        return X, None
    some = X[:: max(1, X.shape[0] // 64)]  # columns that vary on these rows need no pass over all
    places = np.arange(X.shape[1])
    if sp.issparse(X):  # columns with an entry in every row
        places, counts = np.unique(some.indices, return_counts=True)
        places = places[counts == some.shape[0]]
        some = some[:, places]
    for rows in (some, X):
        if not places.size:
            return X, None
        top, bottom = column_extremes(rows if rows is some else X[:, places])
        level = np.where(top > 0.0, bottom, -top)  # the least size, where all entries have one sign
        near = (100.0 * (top - bottom) < level) & ((top > bottom) | (rows is some))
        places = places[near]
    if not places.size:
        return X, None
    shift = np.zeros(X.shape[1], X.dtype)
    shift[places] = vector(X[[0]][:, places])
    if not sp.issparse(X):
        return X - shift, shift.astype(float)
    return type(X)((X.data - shift[X.indices], X.indices, X.indptr), shape=X.shape), shift.astype(float)


def shifted_intercept(w: np.ndarray, b: float, shift: np.ndarray | None, sign: int) -> float:
    """Return b + sign w.s, rounded once: the intercept for shifted rows (1), or for the caller's rows (-1)."""
    if shift is None or not (np.isfinite(b) and np.isfinite(w).all()):
        return b
    used = np.flatnonzero((shift != 0.0) & (w != 0.0))
    terms = (Fraction(w[j]) * Fraction(shift[j]) for j in used.tolist())
    return float(Fraction(b) + sign * sum(terms, Fraction(0)))
