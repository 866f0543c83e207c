"""Planes in the space of the features, for pictures of functions of all features."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.sparse.linalg import aslinearoperator, eigsh
from sklearn.decomposition import PCA
from sklearn.utils.extmath import safe_sparse_dot
from sklearn.utils.sparsefuncs import csc_median_axis_0

from .style import percent

# Share of the sum of all squares below which a direction has no variance: rounding leaves about the square of 2^-52 of
# directions that cancel, and the bound is 20 times as large.
_ROUNDING = 1e-24


@dataclass(frozen=True, eq=False)
class Plane:
    """The points origin + s first + t second.

    Parameters
    ----------
    origin, first, second : ndarray of shape (n_features,)
        `first` and `second` are orthonormal.
    words : pair of str
        Labels of the axes s and t.
    """

    origin: np.ndarray
    first: np.ndarray
    second: np.ndarray
    words: tuple[str, str]

    def places(self, X: Any) -> np.ndarray:
        """Return (s, t) of the point of the plane that is nearest to each row, shape (n, 2)."""
        axes = np.column_stack([self.first, self.second])
        return safe_sparse_dot(X, axes, dense_output=True) - self.origin @ axes

    def values(self, f: Callable[[np.ndarray], np.ndarray], s: np.ndarray, t: np.ndarray) -> np.ndarray:
        """Return f, which has one or several values a row, on the grid s x t: shape (t, s, n_values)."""
        across = self.origin + np.outer(s, self.first)
        # one line at a time: all points of the grid at once may need more memory than the data
        return np.stack([f(across + one * self.second).reshape(s.size, -1) for one in t])

    def affine_values(
        self, f: Callable[[np.ndarray], np.ndarray], s: np.ndarray, t: np.ndarray
    ) -> np.ndarray:
        """Return `values` of an affine f, from three points of the plane, whatever the number of features."""
        rows = np.array([self.origin, self.origin + self.first, self.origin + self.second])
        at_origin, at_first, at_second = f(rows).reshape(3, -1)
        along_s, along_t = at_first - at_origin, at_second - at_origin
        return at_origin + s[None, :, None] * along_s + t[:, None, None] * along_t


def choose_plane(asked: Any, center: str, X: Any, names: Sequence[str], weights: np.ndarray | None) -> Plane:
    """Return the plane that a user asks for.

    Parameters
    ----------
    asked : pair of int or str, "components", "weights" or None
        None takes the only two features, else the principal components.
    center : {"mean", "median"}
        The point of the rows through which the plane goes.
    X : array or CSR matrix of shape (n, d)
    names : sequence of str
        Of the features.
    weights : ndarray of shape (d,) or None
        Of the linear function that is drawn, if it is one.

    Raises
    ------
    ValueError
        If there is no such plane.
    """
    if center not in ("mean", "median"):
        raise ValueError(f'center must be "mean" or "median"; got {center!r}.')
    if asked is None:
        asked = (0, 1) if X.shape[1] == 2 else "components"
    if not isinstance(asked, str) and len(asked) == 2:
        return _plane_of_features(asked, center, X, names)
    if asked == "components":
        return _plane_of_components(center, X)
    if asked == "weights":
        return _plane_of_weights(weights, center, X)
    raise ValueError(f'plane must be a pair of features, "components" or "weights"; got {asked!r}.')


def _feature_index(feature: Any, names: Sequence[str]) -> int:
    """Return the place of a feature that is given by its name or its place."""
    if isinstance(feature, str):
        if feature not in names:
            raise ValueError(f"there is no feature {feature!r}; name one of {list(names)[:8]}.")
        return names.index(feature)
    if not (isinstance(feature, int | np.integer) and 0 <= feature < len(names)):
        raise ValueError(f"a feature is a name, or a number from 0 to {len(names) - 1}; got {feature!r}.")
    return int(feature)


def _point(X: Any, center: str) -> np.ndarray:
    """Return the mean or the median of every feature, shape (d,)."""
    if center == "mean":
        return np.asarray(X.mean(axis=0), dtype=float).ravel()
    return csc_median_axis_0(sp.csc_matrix(X)) if sp.issparse(X) else np.median(X, axis=0)


def _plane_of_features(pair: Sequence[Any], center: str, X: Any, names: Sequence[str]) -> Plane:
    """Return the plane of two features, the others fixed at their mean or median."""
    i, j = (_feature_index(feature, names) for feature in pair)
    if i == j:
        raise ValueError(f"plane takes two different features; got {pair!r}.")
    first, second = np.zeros((2, len(names)))
    first[i] = second[j] = 1.0
    origin = np.where(first + second, 0.0, _point(X, center))
    fixed = "" if len(names) == 2 else f"\n(section at the {center} of the others; rows are projected)"
    return Plane(origin, first, second, (f"{names[i]}{fixed}", names[j]))


def _plane_of_components(center: str, X: Any) -> Plane:
    """Return the plane of the first two principal components through the mean or median."""
    # the shares of the variance are 0 / 0 if all rows are equal
    with np.errstate(divide="ignore", invalid="ignore"):
        found = PCA(2, random_state=0).fit(X)
    shares = [percent(float(share)) for share in np.nan_to_num(found.explained_variance_ratio_)]
    words = (
        f"first principal component ({shares[0]} of the variance)\n(section through the {center}; rows are projected)",
        f"second principal component ({shares[1]})",
    )
    first, second = np.asarray(found.components_, dtype=float)
    return Plane(_point(X, center), first, second, words)


def _plane_of_weights(w: np.ndarray | None, center: str, X: Any) -> Plane:
    """Return the plane of the weights of a linear function and of the direction of largest variance orthogonal to them.

    The function has the same value at a row and at its place in the plane.
    """
    if w is None:
        raise ValueError('plane="weights" takes one linear function: give label= for several classes.')
    if not w.any():
        raise ValueError('all weights are zero, and have no direction: choose plane="components".')
    first = w / np.linalg.norm(w)
    words = (
        f"distance along the weights from the {center} (2-norm)",
        "direction of largest variance orthogonal to them",
    )
    return Plane(_point(X, center), first, _widest_across(X, first), words)


def _widest_across(X: Any, first: np.ndarray) -> np.ndarray:
    """Return the unit vector orthogonal to `first` along which the rows vary most.

    It is the leading right singular vector of the centred rows without their components along `first`, which are the
    rows less a matrix of rank two: products with it need no copy of the rows.
    """
    mean = _point(X, "mean")
    along = X @ first - mean @ first
    shared: Any = aslinearoperator(np.column_stack([np.ones(along.size), along]))
    across: Any = aslinearoperator(X) - shared @ aslinearoperator(np.stack([mean, first]))
    scatter: Any = across.H @ across
    direction = np.eye(first.size)[np.argmin(np.abs(first))]
    start, numbers = direction + 1.0, X.data if sp.issparse(X) else X
    negligible = _ROUNDING * float(np.vdot(numbers, numbers))
    # with two features there is one direction; with all rows on a line along `first`, any will do
    if first.size > 2 and np.abs(scatter @ start).max() > negligible:
        direction = eigsh(scatter, 1, v0=start)[1][:, 0]
        direction *= np.sign(direction[np.argmax(np.abs(direction))])
    direction = direction - first * (first @ direction)
    return direction / np.linalg.norm(direction)
