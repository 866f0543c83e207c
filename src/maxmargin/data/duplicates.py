"""Identical rows as one row of their total weight, in the order of the data or one that does not depend on it.

The latter so that on problems of few different rows the answer is the same for copies and weights and for any order of
the rows, of algorithms that present rows in random order, too; `shuffle=False` asks for the order of the data.
Of wide rows it is so but for rounding: where none are equal, they are left as they stand.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from ..engine.jit import compiled

ONES = np.uint64(2**63 - 1)  # all bits of a float64 but the sign


@dataclass(frozen=True)
class Merged:
    """Distinct (row, label) pairs, sorted by their signatures or in the order in which they first appear.

    Attributes
    ----------
    y, weights
        Of the distinct rows.
    places : ndarray of int
        Where each of them stands first among the original rows.
    groups : ndarray of int of shape (n,)
        `groups[i]` is the place of the original row i among the distinct ones.
    shares : ndarray of shape (n,)
        Of the weight of its group.
    """

    y: np.ndarray
    weights: np.ndarray
    places: np.ndarray
    groups: np.ndarray
    shares: np.ndarray

    def gather(self, alpha: np.ndarray) -> np.ndarray:
        """Dual weights of the distinct rows."""
        return np.bincount(self.groups, weights=alpha, minlength=len(self.y))

    def scatter(self, alpha: np.ndarray) -> np.ndarray:
        """Dual weights of the original rows, each its share: feasible where the merged ones are."""
        return alpha[self.groups] * self.shares


def apart(y: np.ndarray, weights: np.ndarray) -> Merged:
    """All rows as they are, where none are equal, or equal ones cannot be told by their entries."""
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
        Distinct rows in the order in which they first appear; else in an order that permutations of the rows share.
    """
    signature = _signatures(X)
    signature = np.where(y > 0, ~signature, signature)
    order = np.lexsort((y, signature))  # stable: of equal rows the first to appear comes first
    fresh = np.ones(order.size, bool)
    fresh[1:] = (signature[order[1:]] != signature[order[:-1]]) | (y[order[1:]] != y[order[:-1]])
    twins = np.flatnonzero(~fresh)
    if twins.size:  # a signature is not yet a proof; rows that each equal the one before are all equal
        fresh[twins] = _differ(X, order[twins], order[twins - 1])
    groups = np.empty(order.size, np.intp)
    groups[order] = np.cumsum(fresh) - 1
    first = order[fresh]
    if in_order:
        places = np.sort(first)
        groups = np.searchsorted(places, first)[groups]
        first = places
    total = np.bincount(groups, weights=weights, minlength=first.size)
    return Merged(y[first], total, first, groups, weights / total[groups])


def _signatures(X: Any) -> np.ndarray:
    """One number a row, whatever the storage: the bits of its entries times odd numbers, modulo 2^64."""
    multipliers = np.empty(X.shape[1], np.uint64)
    odd(multipliers)
    values = X.data if sp.issparse(X) else X
    bits = values.astype(np.float64, copy=False).view(np.uint64)
    out = np.empty(X.shape[0], np.uint64)
    if sp.issparse(X):
        sparse(X.indptr, X.indices, bits, multipliers, out)
    else:
        dense(np.ascontiguousarray(bits), multipliers, out)
    return out


def _differ(X: Any, rows: np.ndarray, others: np.ndarray) -> np.ndarray:
    """Compare each of these rows with its counterpart; True where they are not equal."""
    if sp.issparse(X):
        return np.asarray((X[rows] != X[others]).sum(axis=1)).ravel() > 0
    return (X[rows] != X[others]).any(axis=1)


# Signatures of rows: the bits of their entries, mixed and added modulo 2^64.


@compiled()
def dense(bits, multipliers, out):
    """out_i = sum_j mixed(bits_ij) multipliers_j"""
    for i in range(bits.shape[0]):
        row = bits[i]
        total = np.uint64(0)
        for j in range(row.size):
            total += mixed(row[j]) * multipliers[j]
        out[i] = total


@compiled()
def sparse(indptr, indices, bits, multipliers, out):
    """The same of rows without their zeros: zero bits add nothing."""
    for i in range(out.size):
        total = np.uint64(0)
        for k in range(indptr[i], indptr[i + 1]):
            total += mixed(bits[k]) * multipliers[indices[k]]
        out[i] = total


@compiled()
def odd(multipliers):
    """Odd numbers without a pattern, each from its place."""
    for j in range(multipliers.size):
        multipliers[j] = mixed(mixed(np.uint64(j + 1))) | np.uint64(1)


@compiled()
def mixed(bits):
    """Bits spread over the whole word; zero, of either sign, becomes zero."""
    bits = bits & ONES if bits & ONES == np.uint64(0) else bits
    bits = (bits ^ (bits >> np.uint64(31))) * np.uint64(0x9E3779B97F4A7C15)
    return bits ^ (bits >> np.uint64(29))
