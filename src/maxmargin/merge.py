"""Identical rows as one row of their total weight, in an order that does not depend on the input's.

So that on small problems the answer is the same for copies and weights and for any order of the rows.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp


@dataclass(frozen=True)
class Merged:
    """Distinct (row, label) pairs, sorted; `groups[i]` is the place of the original row i."""

    X: Any
    y: np.ndarray
    weights: np.ndarray
    groups: np.ndarray
    shares: np.ndarray

    def gather(self, alpha: np.ndarray) -> np.ndarray:
        """Dual weights of the distinct rows."""
        return np.bincount(self.groups, weights=alpha, minlength=len(self.y))

    def scatter(self, alpha: np.ndarray) -> np.ndarray:
        """Dual weights of the original rows, each its share: feasible where the merged ones are."""
        return alpha[self.groups] * self.shares


def merge(X: Any, y: np.ndarray, weights: np.ndarray) -> Merged:
    """Merge identical rows of the same label."""
    keys = _keys(X, y)
    places: dict[bytes, int] = {}
    first: list[int] = []
    for i in sorted(range(len(keys)), key=keys.__getitem__):
        if keys[i] not in places:
            places[keys[i]] = len(first)
            first.append(i)
    groups = np.array([places[key] for key in keys])
    total = np.bincount(groups, weights=weights, minlength=len(first))
    return Merged(X[first], y[first], total, groups, weights / total[groups])


def _keys(X: Any, y: np.ndarray) -> list[bytes]:
    """One string of bytes a row, the same for equal rows."""
    signs = [b"+" if label > 0 else b"-" for label in y]
    if sp.issparse(X):
        if not X.data.all():
            X = X.copy()
            X.eliminate_zeros()
        ends = X.indptr
        return [
            sign + X.indices[ends[i] : ends[i + 1]].tobytes() + X.data[ends[i] : ends[i + 1]].tobytes()
            for i, sign in enumerate(signs)
        ]
    X = X + X.dtype.type(0)  # no negative zeros
    return [sign + row.tobytes() for sign, row in zip(signs, X, strict=True)]
