"""Identical rows of a class merged into one row of their total weight, for kernels and proofs of inseparability.

Distinct rows are in the order of the data, or in an order that does not depend on it: the solution is then the same for
copies of rows and for weights, and for any order of the rows.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp


@dataclass(frozen=True)
class Merged:
    """Distinct (row, label) pairs, sorted by their hashes or in the order in which they first appear.

    Attributes
    ----------
    y, weights : ndarray of shape (m,)
        Labels and total weights of the distinct rows.
    places : ndarray of int of shape (m,)
        The first place of each distinct row among the original rows.
    groups : ndarray of int of shape (n,)
        `groups[i]` is the place of the original row i among the distinct ones.
    shares : ndarray of shape (n,)
        The share of each original row in the weight of its group.
    """

    y: np.ndarray
    weights: np.ndarray
    places: np.ndarray
    groups: np.ndarray
    shares: np.ndarray

    def gather(self, alpha: np.ndarray) -> np.ndarray:
        """Return dual variables of the distinct rows, shape (m,), from dual variables of all rows, shape (n,)."""
        return np.bincount(self.groups, weights=alpha, minlength=len(self.y))


def unmerged(y: np.ndarray, weights: np.ndarray) -> Merged:
    """Return all rows unmerged: none are equal, or equal rows cannot be found by their entries."""
    every = np.arange(y.size)
    return Merged(y, weights, every, every, np.ones(y.size))


def merge(X: Any, y: np.ndarray, weights: np.ndarray, in_order: bool = False) -> Merged:
    """Merge identical rows of the same label.

    Parameters
    ----------
    X : ndarray or CSR matrix of shape (n, d)
    y : ndarray of shape (n,)
        Labels -1.0 and 1.0, or numbers of classes.
    weights : ndarray of shape (n,), positive
    in_order : bool, default=False
        Whether distinct rows are in the order in which they first appear; else their order does not depend on the
        order of the rows.
    """
    hashes = _hashes(X)
    hashes = np.where(y > 0, ~hashes, hashes)
    order = np.lexsort((y, hashes))  # stable: of equal rows the first to appear comes first
    fresh = np.ones(order.size, bool)  # whether a row, in this order, is the first of its group
    fresh[1:] = (hashes[order[1:]] != hashes[order[:-1]]) | (y[order[1:]] != y[order[:-1]])
    twins = np.flatnonzero(~fresh)
    if twins.size:  # rows with equal hashes may differ: each is compared with the row before it
        unequal = X[order[twins]] != X[order[twins - 1]]
        fresh[twins] = np.asarray(unequal.sum(axis=1)).ravel() > 0
    groups = np.empty(order.size, np.intp)
    groups[order] = np.cumsum(fresh) - 1
    first = order[fresh]
    if in_order:
        places = np.sort(first)
        groups = np.searchsorted(places, first)[groups]
        first = places
    total = np.bincount(groups, weights=weights, minlength=first.size)
    return Merged(y[first], total, first, groups, weights / total[groups])


def _hashes(X: Any) -> np.ndarray:
    """Return a hash of each row, the same for dense and sparse rows: sum_j mixed(x_ij) m_j modulo 2^64.

    The multipliers m_j are pseudorandom odd numbers. Zeros add nothing. The result has shape (n,).
    """
    n, d = X.shape
    if sp.issparse(X):  # no array of all columns is made: there may be 2^31
        sums = np.zeros(X.nnz + 1, np.uint64)
        np.cumsum(_mixed(X.data) * (_mixed(X.indices + 1.0) | np.uint64(1)), out=sums[1:])
        return sums[X.indptr[1:]] - sums[X.indptr[:-1]]
    out, multipliers = np.empty(n, np.uint64), _mixed(np.arange(1.0, d + 1.0)) | np.uint64(1)
    step = max(1, 2**15 // max(d, 1))  # temporary arrays of 256 kB stay in the cache
    for first in range(0, n, step):
        rows = slice(first, first + step)
        np.einsum("ij,j->i", _mixed(X[rows]), multipliers, out=out[rows])
    return out


def _mixed(values: np.ndarray) -> np.ndarray:
    """Return the bits of float64 numbers, spread as in splitmix64 by two multiplications; 0 for zeros of both signs."""
    bits = (values.astype(np.float64, copy=False) + 0.0).view(np.uint64)  # -0 + 0 = 0
    bits = (bits ^ (bits >> np.uint64(31))) * np.uint64(0x9E3779B97F4A7C15)
    bits = (bits ^ (bits >> np.uint64(29))) * np.uint64(0xBF58476D1CE4E5B9)
    return bits ^ (bits >> np.uint64(32))
