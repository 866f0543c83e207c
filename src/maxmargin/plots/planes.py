"""Planes in the space of the features, on which a function of all features can be drawn."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.sparse.linalg import LinearOperator, eigsh
from sklearn.decomposition import PCA
from sklearn.utils.extmath import safe_sparse_dot
from sklearn.utils.sparsefuncs import csc_median_axis_0

from .style import percent

_ENTRIES = 2**22  # of the rows that are scored at once
_ROUNDING = 1e-24  # share of the sum of all squares: what rounding leaves of directions that cancel


@dataclass(frozen=True, eq=False)
class Plane:
    """The rows origin + s first + t second.

    Parameters
    ----------
    origin, first, second : ndarray of shape (n_features,)
        The latter two orthonormal.
    words : pair of str
        What s and t are, for the titles of axes.
    """

    origin: np.ndarray
    first: np.ndarray
    second: np.ndarray
    words: tuple[str, str]

    def places(self, X: Any) -> np.ndarray:
        """(s, t) of the point of the plane that is nearest to each row, shape (n, 2)."""
        axes = np.column_stack([self.first, self.second])
        return safe_sparse_dot(X, axes, dense_output=True) - self.origin @ axes

    def section(self, f: Callable[[np.ndarray], np.ndarray], s: np.ndarray, t: np.ndarray) -> np.ndarray:
        """f, which has one or several values a row, on the grid of these coordinates: shape (t, s, n_values)."""
        across = self.origin + np.outer(s, self.first)
        lines = max(1, _ENTRIES // max(across.size, 1))
        found = []
        for start in range(0, t.size, lines):
            some = t[start : start + lines]
            rows = (across[None] + (some[:, None] * self.second)[:, None]).reshape(-1, self.origin.size)
            found.append(np.asarray(f(rows)).reshape(some.size, s.size, -1))
        return np.concatenate(found)

    def affine_section(
        self, f: Callable[[np.ndarray], np.ndarray], s: np.ndarray, t: np.ndarray
    ) -> np.ndarray:
        """The same for an affine f, which three of its points determine, however many features there are."""
        rows = np.array([self.origin, self.origin + self.first, self.origin + self.second])
        here, along, across = np.asarray(f(rows)).reshape(3, -1)
        return here + s[None, :, None] * (along - here) + t[:, None, None] * (across - here)


def center_of(X: Any, center: str) -> np.ndarray:
    """The mean or the median of every feature."""
    if center not in ("mean", "median"):
        raise ValueError(f'center must be "mean" or "median"; got {center!r}.')
    if center == "mean":
        return np.asarray(X.mean(axis=0), dtype=float).ravel()
    if sp.issparse(X):
        return np.asarray(csc_median_axis_0(sp.csc_matrix(X)), dtype=float)
    return np.median(X, axis=0).astype(float)


def of_features(center: np.ndarray, pair: Sequence[int], names: Sequence[str], at: str) -> Plane:
    """Two features, the others at their mean or median."""
    i, j = pair
    first, second = np.zeros((2, center.size))
    first[i], second[j] = 1.0, 1.0
    origin = center.copy()
    origin[[i, j]] = 0.0
    fixed = "" if center.size == 2 else f" (all but these two at their {at})"
    return Plane(origin, first, second, (f"{names[i]}{fixed}", names[j]))


def of_components(center: np.ndarray, X: Any, at: str) -> Plane:
    """The two directions in which the rows vary most, through their mean or median."""
    # rows that are all the same have no variance to share
    with np.errstate(divide="ignore", invalid="ignore"):
        found = PCA(2, random_state=0).fit(X)
    shares = [percent(float(share)) for share in np.nan_to_num(found.explained_variance_ratio_)]
    words = (
        f"first principal component ({shares[0]} of the variance), through the {at}",
        f"second principal component ({shares[1]})",
    )
    first, second = np.asarray(found.components_, dtype=float)
    return Plane(center, first, second, words)


def of_weights(center: np.ndarray, X: Any, w: np.ndarray, at: str) -> Plane:
    """Along the weights of a linear function, and in the direction across them in which the rows vary most.

    The function is the same at a row and at its place in the plane.
    """
    length = float(np.linalg.norm(w))
    if not length > 0.0:
        raise ValueError('all weights are zero, and have no direction: choose plane="components".')
    first = w / length
    words = (f"along the weights, from the {at} (2-norm)", "widest direction across them")
    return Plane(center, first, _widest_across(X, first), words)


def _widest_across(X: Any, first: np.ndarray) -> np.ndarray:
    """The unit vector orthogonal to this one along which the rows vary most."""
    mean = np.asarray(X.mean(axis=0), dtype=float).ravel()

    def across(v: np.ndarray) -> np.ndarray:
        return v - first * (first @ v)

    def centred(v: np.ndarray) -> np.ndarray:
        v = across(np.ravel(v))
        return X @ v - mean @ v

    def back(u: np.ndarray) -> np.ndarray:
        u = np.ravel(u)
        return across(X.T @ u - mean * u.sum())

    start = across(np.eye(first.size)[np.argmin(np.abs(first))])
    values = X.data if sp.issparse(X) else X
    nothing = _ROUNDING * float(np.vdot(values, values))  # where all rows are in one direction
    if first.size > 2 and np.abs(back(centred(start + 1.0))).max() > nothing:
        operator: Any = LinearOperator
        square = operator((first.size, first.size), matvec=lambda v: back(centred(v)), dtype=float)
        start = across(eigsh(square, 1, v0=across(start + 1.0))[1][:, 0])
        start *= np.sign(start[np.argmax(np.abs(start))])
    return start / np.linalg.norm(start)
