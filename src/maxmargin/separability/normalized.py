"""Normalised, reflected patterns, on any array library: what normalised Perceptrons and their kin see.

Row i of Y is y_i phi(x_i) / |phi(x_i)|. The Gram matrix G = Y Y' has a unit diagonal, (G p)_i is the margin of
pattern i with respect to w = Y' p, and |p|_G = sqrt(p'G p) is the length of that w. An intercept is one more
feature of constant value, a 2-norm soft margin a feature of value Delta for every pattern alone (K + Delta^2 I),
both before normalising. The arrays are those of the caller: NumPy, or whatever array-api-compat knows, on their
device and in their precision, float64 or float32.

References
----------
A. Ramdas, J. Pena, "Margins, kernels and non-linear smoothed Perceptrons", ICML 2014;
Consortium for Python Data API Standards, "Python array API standard", 2023.12.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from math import isfinite, sqrt
from typing import Any, NamedTuple, TypeVar

import numpy as np
import scipy.sparse as sp
from array_api_compat import array_namespace, device, is_array_api_obj

Array = Any  # of the caller's library
Place = TypeVar("Place", "LinearPlace", "KernelPlace")


class LinearPlace(NamedTuple):
    """Weights of the patterns, their margins G weights, and w in the space of the features."""

    weights: Array
    margins: Array
    w: Array


class KernelPlace(NamedTuple):
    """Weights of the patterns, and their margins G weights."""

    weights: Array
    margins: Array


def between(a: Place, b: Place, t: float) -> Place:
    """(1 - t) a + t b: products with the patterns are linear, so that none has to be made again."""
    return type(a)(*((1.0 - t) * x + t * z for x, z in zip(a, b, strict=True)))


class NormalisedPatterns(ABC):
    """What the algorithms ask of patterns: places, vertices, lengths.

    Parameters
    ----------
    square : array of shape (n,)
        K_ii of every pattern.
    y : array-like of shape (n,), entries -1 and 1
    constant : float, default=0
        Value of one more feature, whose weight gives the intercept; 0 is no intercept.
    Delta : float, default=0
        Value of every pattern's own feature: the 2-norm soft margin with C = 1 / (2 Delta^2).

    Attributes
    ----------
    xp : namespace
        The array library.
    scale : array of shape (n,)
        y_i / sqrt(K_ii + constant^2 + Delta^2).
    rounding, noise : float
        What rounding may hide in margins and in lengths of points of the simplex: some units in the last place of one.

    Raises
    ------
    ValueError
        Labels that are not -1 and 1; a pattern that is zero, which has no direction, or not finite.
    """

    def __init__(self, square: Array, y: Any, constant: float = 0.0, Delta: float = 0.0) -> None:
        for name, value in (("constant", constant), ("Delta", Delta)):
            if not (isfinite(value) and value >= 0.0):
                raise ValueError(f"{name} must be a finite number, zero or positive; got {value!r}.")
        self.xp: Any = array_namespace(square)
        self.device = device(square)
        self.constant, self.Delta = float(constant), float(Delta)
        self.rounding = self.noise = 4.0 * float(self.xp.finfo(square.dtype).eps)
        self.scale = self._labels(y, square) / self.xp.sqrt(self._lengths2(square))

    def _labels(self, y: Any, square: Array) -> Array:
        labels = self.xp.asarray(y, dtype=square.dtype, device=self.device)
        if labels.shape != square.shape:
            raise ValueError(
                f"there are {square.shape[0]} patterns and labels of shape {tuple(labels.shape)}."
            )
        if not bool(self.xp.all(self.xp.abs(labels) == 1.0)):
            raise ValueError("labels must be -1 and 1.")
        return labels

    def _lengths2(self, square: Array) -> Array:
        xp = self.xp
        lengths2 = square + (self.constant**2 + self.Delta**2)
        if not bool(xp.all(xp.isfinite(lengths2))):
            raise ValueError("patterns, and their squared lengths, must be finite: scale the features.")
        i = int(xp.argmin(lengths2))
        # below the normal numbers a squared length has lost its digits
        if not float(lengths2[i]) >= float(xp.finfo(lengths2.dtype).smallest_normal):
            raise ValueError(
                f"pattern {i} cannot be normalised, its squared length is {float(lengths2[i]):.3g}: leave zero "
                "patterns out, or give the patterns a constant feature (constant) or a soft margin (Delta)."
            )
        return lengths2

    @property
    def n(self) -> int:
        """How many patterns."""
        return self.scale.shape[0]

    def intercept(self, place: LinearPlace | KernelPlace) -> float:
        """The b that belongs to a place; 0 where there is no constant feature."""
        return self.constant**2 * float(self.xp.sum(self.scale * place.weights))

    def uniform(self) -> Array:
        """The centre of the simplex."""
        return self.xp.full((self.n,), 1.0 / self.n, dtype=self.scale.dtype, device=self.device)

    def array(self, weights: Any) -> Array:
        """These numbers as an array like all others here."""
        return self.xp.asarray(weights, dtype=self.scale.dtype, device=self.device)

    @abstractmethod
    def at(self, weights: Array) -> Any:
        """The place with these weights: one product with G."""

    @abstractmethod
    def vertex(self, j: int) -> Any:
        """The place of pattern j alone: one column of G."""

    @abstractmethod
    def length(self, place: Any) -> float:
        """|p|_G, or the noise if that is more: no smaller length is known."""

    def _unit(self, j: int) -> Array:
        xp = self.xp
        return xp.astype(xp.arange(self.n, device=self.device) == j, self.scale.dtype)

    def _margins(self, scores: Array, scaled: Array) -> Array:
        """Margins from what the data give: the other features are added."""
        if self.constant:
            scores = scores + self.constant**2 * self.xp.sum(scaled)
        if self.Delta:
            scores = scores + self.Delta**2 * scaled
        return self.scale * scores


class NormalisedRows(NormalisedPatterns):
    """Patterns given by their features: a product with G is two products with the data.

    Parameters
    ----------
    X : array or SciPy sparse matrix of shape (n, d)
        Not copied, where it is float64 or float32; other real numbers become float64.
    y, constant, Delta
        As for `NormalisedPatterns`.
    """

    def __init__(self, X: Any, y: Any, constant: float = 0.0, Delta: float = 0.0) -> None:
        self.X = _matrix(X)
        super().__init__(_squares(self.X), y, constant, Delta)

    def at(self, weights: Array) -> LinearPlace:
        """The place with these weights: X' and then X, O(nnz)."""
        scaled = self.scale * weights
        return self._place(weights, scaled, self.X.T @ scaled)

    def vertex(self, j: int) -> LinearPlace:
        """The place of pattern j alone: X times one row."""
        weights = self._unit(j)
        row = self.X[[j]].toarray()[0] if sp.issparse(self.X) else self.X[j, :]
        return self._place(weights, self.scale * weights, self.scale[j] * row)

    def _place(self, weights: Array, scaled: Array, w: Array) -> LinearPlace:
        return LinearPlace(weights, self._margins(self.X @ w, scaled), w)

    def length(self, place: LinearPlace) -> float:
        """|w| in the space of all features: a sum of squares, which loses no digits where it is small."""
        scaled = self.scale * place.weights
        square = float(place.w @ place.w)
        if self.constant:
            square += (self.constant * float(self.xp.sum(scaled))) ** 2
        if self.Delta:
            square += self.Delta**2 * float(scaled @ scaled)
        return max(sqrt(square), self.noise)


class NormalisedGram(NormalisedPatterns):
    """Patterns given by a kernel: its values, and no features.

    |p|_G is the root of a sum of products of either sign here: its noise is the root of that of the rows.

    Parameters
    ----------
    K : array of shape (n, n)
        Symmetric, positive semidefinite, of the patterns without their labels. Not copied, as for `NormalisedRows`.
    y, constant, Delta
        As for `NormalisedPatterns`.
    """

    def __init__(self, K: Any, y: Any, constant: float = 0.0, Delta: float = 0.0) -> None:
        self.K = _matrix(K)
        if sp.issparse(self.K) or self.K.shape[0] != self.K.shape[1]:
            raise ValueError(f"a Gram matrix is square and dense; got shape {tuple(self.K.shape)}.")
        xp: Any = array_namespace(self.K)
        super().__init__(xp.linalg.diagonal(self.K), y, constant, Delta)
        self.noise = sqrt(self.rounding)
        if not bool(xp.all(xp.isfinite(self.K @ xp.ones_like(self.scale)))):
            raise ValueError("kernel values must be finite.")

    def at(self, weights: Array) -> KernelPlace:
        """The place with these weights: one product with K."""
        scaled = self.scale * weights
        return KernelPlace(weights, self._margins(self.K @ scaled, scaled))

    def vertex(self, j: int) -> KernelPlace:
        """The place of pattern j alone: one column of K."""
        weights = self._unit(j)
        return KernelPlace(weights, self._margins(self.scale[j] * self.K[:, j], self.scale * weights))

    def length(self, place: KernelPlace) -> float:
        """|p|_G from its square."""
        return sqrt(max(float(place.weights @ place.margins), self.noise**2))


def _matrix(X: Any) -> Any:
    """A dense array of any library, or CSR, of float64 or float32 numbers."""
    matrix: Any = sp.csr_array(X) if sp.issparse(X) else X if is_array_api_obj(X) else np.asarray(X)
    if matrix.ndim != 2 or matrix.shape[0] == 0:
        raise ValueError(
            f"patterns are the rows of a matrix, and there is at least one; got shape {tuple(matrix.shape)}."
        )
    xp: Any = np if sp.issparse(matrix) else array_namespace(matrix)
    if matrix.dtype in (xp.float64, xp.float32):
        return matrix
    if not xp.isdtype(matrix.dtype, ("bool", "integral", "real floating")):
        raise ValueError(f"patterns are real numbers; got {matrix.dtype}.")
    return matrix.astype(np.float64) if sp.issparse(matrix) else xp.astype(matrix, xp.float64)


def _squares(X: Any) -> Array:
    """|x_i|^2 of every row."""
    if sp.issparse(X):
        return np.asarray(X.multiply(X).sum(axis=1), dtype=X.dtype).ravel()
    return array_namespace(X).vecdot(X, X)
