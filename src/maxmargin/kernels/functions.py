"""Kernel functions as classes, by scikit-learn's names: blocks of the Gram matrix, and bounds of their rounding.

Rows and diagonal of a kernel matrix are computed in the precision of X: a diagonal of another precision than the rows
may make a matrix that is not positive definite.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from numbers import Integral, Real
from sys import float_info
from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp

from ..numerics.sums import EPS

# Columns up to which sparse rows may be stored dense, 512 rows of a block taking 16 MiB then, and bytes of the largest
# dense copy, an eighth of a small machine's memory.
MAX_DENSE_COLUMNS, MAX_DENSE_BYTES = 4096, 2**28
BLOCK = 512  # rows of the Gram matrix at once: BLAS is as fast as with more, and its tiles stay in the cache


class Kernel(ABC):
    """A kernel function k(z, x) of two rows."""

    name: ClassVar[str]

    @abstractmethod
    def block(self, Z: Any, X: Any) -> np.ndarray:
        """Return k(z, x) for all rows z of Z and x of X: shape (len(Z), len(X)), of X's precision, C-ordered."""

    def tiles(self, Z: Any, X: Any) -> Iterator[tuple[slice, np.ndarray]]:
        """Yield the block in parts (columns, values), where `values` are k(z, x) for the rows x of X in `columns`."""
        yield slice(0, X.shape[0]), self.block(Z, X)

    def product(self, X: Any, c: np.ndarray) -> np.ndarray:
        """Return sum_i c_i k(x_i, x_j) for every row j, in the shape of c; rows i with c_i = 0 are not computed.

        Parameters
        ----------
        X : ndarray or CSR matrix of shape (n, d)
            Its precision is that of the product; sums of blocks are float64.
        c : ndarray of shape (n,) or (m, n)
            Several vectors cost one computation of the kernel.
        """
        out = np.zeros(c.shape)
        used = np.flatnonzero(c.reshape(-1, c.shape[-1]).any(axis=0))
        for first in range(0, used.size, BLOCK):
            some = used[first : first + BLOCK]
            part: Any = c[..., some].astype(X.dtype, copy=False)
            # a row may have coefficients in few of the m vectors; a sparse product of fewer takes less time than BLAS
            if np.count_nonzero(part) < 0.2 * part.size:
                part = sp.csr_matrix(part)
            for columns, tile in self.tiles(X[some], X):
                out[..., columns] += part @ tile
        return out

    @abstractmethod
    def diagonal(self, X: Any) -> np.ndarray:
        """Return k(x, x) of every row: shape (len(X),)."""

    def prepared(self, X: Any) -> Any:
        """Return X stored as the kernel computes with it fastest: dense, or CSR."""
        return X

    def part(self, X: Any, places: np.ndarray) -> Any:
        """Return the data of a problem on the rows at these places."""
        return X[places]

    def error(self, X: Any) -> float:
        """Return a bound of the rounding error of a kernel value of rows X in float64; 0 where values are given."""
        return 0.0


class Products(Kernel):
    """Base of the kernels that are functions of inner products; by default the inner product itself."""

    def block(self, Z: Any, X: Any) -> np.ndarray:
        out = np.empty((Z.shape[0], X.shape[0]), X.dtype)
        for columns, tile in self.tiles(Z, X):
            out[:, columns] = tile
        return out

    def tiles(self, Z: Any, X: Any) -> Iterator[tuple[slice, np.ndarray]]:
        for columns, products in _products(Z, X):
            yield columns, self.of_products(products)

    def diagonal(self, X: Any) -> np.ndarray:
        return self.of_products(_squares(X)[:, None])[:, 0]

    def prepared(self, X: Any) -> Any:
        size = X.shape[0] * X.shape[1]
        if X.shape[1] > MAX_DENSE_COLUMNS or size * X.dtype.itemsize > MAX_DENSE_BYTES:
            return X
        # CSR times dense beats BLAS: 3.2 ns instead of 5.6 ns a product of rows of 123 columns with 14 non-zeros
        return sp.csr_matrix(X) if _entries(X) < 0.15 * size else _dense(X)

    def rounding(self, X: Any) -> float:
        """Return a bound of the rounding error of a product z.x of two rows of X."""
        squares = float(_squares(X).max(initial=0.0))
        values = X.data if sp.issparse(X) else X
        # No sum of products of integers exceeds the largest square (Cauchy-Schwarz): below 2^53 none is rounded.
        if X.dtype == np.float64 and squares < 2.0**53 and np.array_equal(values, np.rint(values)):
            return 0.0
        # the bound of a sum of so many products is (terms + O(1)) eps |z| |x|
        terms = int(np.diff(X.indptr).max(initial=0)) if sp.issparse(X) else X.shape[1]
        return (terms + 2.0) * EPS * squares

    def of_products(self, products: np.ndarray) -> np.ndarray:
        """Return the kernel values of inner products, which may be overwritten."""
        return products


@dataclass(frozen=True)
class Linear(Products):
    """The kernel x.z."""

    name: ClassVar[str] = "linear"

    def __str__(self) -> str:
        return self.name

    def error(self, X: Any) -> float:
        return self.rounding(X)


@dataclass(frozen=True)
class Polynomial(Products):
    """The kernel (gamma x.z + coef0)^degree."""

    gamma: float
    degree: int = 3
    coef0: float = 0.0

    name: ClassVar[str] = "poly"

    def of_products(self, products: np.ndarray) -> np.ndarray:
        products *= self.gamma
        products += self.coef0
        result = np.ones_like(products)
        for _ in range(self.degree):  # NumPy's power takes logarithms
            result *= products
        return result

    def error(self, X: Any) -> float:
        base = abs(self.gamma) * float(_squares(X).max(initial=0.0)) + abs(self.coef0)
        # |t^k - s^k| <= k max(|t|, |s|)^(k - 1) |t - s|; each product of the power adds relative errors of EPS
        error = abs(self.gamma) * self.rounding(X) + 4.0 * EPS * base
        return self.degree * (base + error) ** max(self.degree - 1, 0) * (error + 4.0 * EPS * base)


@dataclass(frozen=True)
class Gaussian(Products):
    """The kernel exp(-gamma |x - z|^2), "rbf" in scikit-learn."""

    gamma: float

    name: ClassVar[str] = "rbf"

    def tiles(self, Z: Any, X: Any) -> Iterator[tuple[slice, np.ndarray]]:
        # |x - z|^2 = |z|^2 + |x|^2 - 2 z.x
        left, right = _squares(Z)[:, None], _squares(X)
        for columns, values in _products(-2.0 * Z, X):  # a factor of the few rows of Z, and exact
            values += left
            values += right[columns]
            np.maximum(values, 0.0, out=values)  # distances of equal rows may be rounded below 0
            values *= -self.gamma
            yield columns, np.exp(values, out=values)

    def diagonal(self, X: Any) -> np.ndarray:
        return np.ones(X.shape[0], X.dtype)

    def error(self, X: Any) -> float:
        # error of the exponent: two squares and twice a product; exp(-t) has a slope of at most 1 for t >= 0
        return abs(self.gamma) * (8.0 * self.rounding(X)) + 8.0 * EPS


@dataclass(frozen=True)
class Sigmoid(Products):
    """The kernel tanh(gamma x.z + coef0), which is positive definite for some data only."""

    gamma: float
    coef0: float = 0.0

    name: ClassVar[str] = "sigmoid"

    def of_products(self, products: np.ndarray) -> np.ndarray:
        products *= self.gamma
        products += self.coef0
        return np.tanh(products, out=products)

    def error(self, X: Any) -> float:
        base = abs(self.gamma) * float(_squares(X).max(initial=0.0)) + abs(self.coef0)
        # error of the argument; tanh has a slope of at most 1
        return abs(self.gamma) * self.rounding(X) + 4.0 * EPS * base + 8.0 * EPS


@dataclass(frozen=True)
class Pairwise(Kernel):
    """Another kernel of scikit-learn's `pairwise_kernels`, or a function of two matrices, as in SVC.

    Parameters
    ----------
    function : str or callable
        A callable gets (Z, X) and returns the matrix.
    parameters : tuple of (str, number), default=()
    """

    function: str | Callable[[Any, Any], Any]
    parameters: tuple[tuple[str, Any], ...] = ()

    name: ClassVar[str] = "pairwise"

    def block(self, Z: Any, X: Any) -> np.ndarray:
        if callable(self.function):
            K: Any = self.function(Z, X)
            K = K.toarray() if sp.issparse(K) else np.asarray(K)
            if K.shape != (Z.shape[0], X.shape[0]):
                raise ValueError(
                    f"The kernel gets two matrices of rows and must return the matrix of their kernel values, of shape "
                    f"{(Z.shape[0], X.shape[0])}; got {K.shape}. Of a function of two rows, pairwise_kernels of "
                    "sklearn.metrics.pairwise makes one."
                )
            if K.dtype.kind not in "biuf" or not np.isfinite(K).all():
                raise ValueError(
                    "Some values of the kernel are not finite real numbers: scale X, or mend it."
                )
        else:
            from sklearn.metrics.pairwise import pairwise_kernels  # verification does without scikit-learn

            K = pairwise_kernels(Z, X, metric=self.function, **dict(self.parameters))
        return np.ascontiguousarray(K, dtype=X.dtype)

    def diagonal(self, X: Any) -> np.ndarray:
        parts = (X[first : first + 64] for first in range(0, X.shape[0], 64))
        return np.concatenate([np.diagonal(self.block(some, some)) for some in parts])


@dataclass(frozen=True)
class Precomputed(Kernel):
    """A given kernel matrix in place of X: Z is a block of its rows."""

    name: ClassVar[str] = "precomputed"

    def block(self, Z: Any, X: Any) -> np.ndarray:
        return Z

    def diagonal(self, X: Any) -> np.ndarray:
        return np.ascontiguousarray(np.diagonal(X))

    def part(self, X: Any, places: np.ndarray) -> Any:
        return X[np.ix_(places, places)]


def _products(Z: Any, X: Any) -> Iterator[tuple[slice, np.ndarray]]:
    """Yield (columns, z.x for all rows z of Z and these rows x of X), in parts that stay in the processor's cache."""
    width = max(64, 2**20 // (X.dtype.itemsize * max(Z.shape[0], 1)))  # tiles of 1 MB stay in the cache
    size = Z.shape[0] * Z.shape[1]
    # CSR times CSR beats both where few entries are not 0 (3,000 rows of 300 to 4,000 columns)
    if not sp.issparse(X) or (_entries(Z) >= 0.03 * size and 8 * size <= MAX_DENSE_BYTES):
        Z = _dense(Z)
    for first in range(0, X.shape[0], width):
        columns = slice(first, min(first + width, X.shape[0]))
        products = (X[columns] @ Z.T).T if sp.issparse(X) else Z @ X[columns].T
        yield columns, _dense(products)


def _entries(X: Any) -> int:
    """Return the number of non-zero entries of a dense matrix, or of stored entries of a sparse one."""
    return int(X.nnz if sp.issparse(X) else np.count_nonzero(X))


def _dense(X: Any) -> np.ndarray:
    """Return X as an array."""
    return X.toarray() if sp.issparse(X) else X


def _squares(X: Any) -> np.ndarray:
    """Return |x|^2 of every row, in the precision of X: shape (len(X),)."""
    if sp.issparse(X):
        return np.asarray(X.multiply(X).sum(axis=1), dtype=X.dtype).ravel()
    return np.einsum("ij,ij->i", X, X)


# kernels by scikit-learn's names and parameters


def kernel_named(kernel: Any, X: Any, gamma: Any, degree: Any, coef0: Any) -> Kernel:
    """Return the kernel that scikit-learn's parameters stand for; None is the linear one.

    Parameters
    ----------
    kernel : str, callable or None
    X : ndarray or CSR matrix of shape (n, d)
        Data whose features and variance ``"auto"`` and ``"scale"`` take.
    gamma : float, "scale" or "auto"
    degree : int
    coef0 : float

    Raises
    ------
    ValueError
        If a parameter cannot be used; the message says what can.
    """
    from sklearn.metrics.pairwise import KERNEL_PARAMS  # verification does without scikit-learn

    if kernel is None or (isinstance(kernel, str) and kernel == "linear"):
        return Linear()
    if callable(kernel):
        return Pairwise(kernel)
    if not isinstance(kernel, str) or kernel not in KERNEL_PARAMS.keys() | {"precomputed"}:
        names = ", ".join(map(repr, sorted({*KERNEL_PARAMS, "precomputed"})))
        raise ValueError(f"kernel must be one of {names}, or a function of two matrices; got {kernel!r}.")
    if kernel == "precomputed":
        return Precomputed()
    if isinstance(degree, bool) or not isinstance(degree, Integral) or degree < 0:
        raise ValueError(f"degree must be a whole number of at least 0; got {degree!r}.")
    known = {"gamma": width(gamma, X), "degree": int(degree), "coef0": _number("coef0", coef0)}
    if kernel in ("poly", "polynomial"):
        return Polynomial(**known)
    if kernel == "rbf":
        return Gaussian(known["gamma"])
    if kernel == "sigmoid":
        return Sigmoid(known["gamma"], known["coef0"])
    # those parameters that its kernel has
    return Pairwise(
        kernel, tuple((name, known[name]) for name in sorted(KERNEL_PARAMS[kernel] & known.keys()))
    )


def width(gamma: Any, X: Any, weights: np.ndarray | None = None) -> float:
    """Return `gamma` as a number; with "scale" it is 1 / (d variance of X), rows being counted by their weights."""
    if isinstance(gamma, str) and gamma == "auto":
        return 1.0 / X.shape[1]
    if isinstance(gamma, str) and gamma == "scale":
        variance = _variance(X, np.ones(X.shape[0]) if weights is None else weights)
        return 1.0 / (X.shape[1] * variance) if variance else 1.0  # as in scikit-learn
    if isinstance(gamma, str) or gamma is None or not _number("gamma", gamma) >= 0.0:
        raise ValueError(f'gamma must be a number of at least 0, "scale" or "auto"; got {gamma!r}.')
    return float(gamma)


def _variance(X: Any, weights: np.ndarray) -> float:
    """Return the variance of all entries of X, in which rows are counted by their weights.

    Entries are taken relative to the first one (dense) or to 0 (sparse), against cancellation.
    """
    fractions = weights / (float(weights.sum()) * X.shape[1])
    if sp.issparse(X):
        mean = float(np.asarray(X.T @ fractions, dtype=float).sum())
        variance = float(np.asarray(X.multiply(X).T @ fractions, dtype=float).sum()) - mean * mean
        return variance if variance > 64.0 * EPS * mean * mean else 0.0  # all entries equal, up to rounding
    shifted = X - X[0, 0]
    mean = float(np.asarray(shifted.T @ fractions, dtype=float).sum())
    return float(np.square(shifted - mean, dtype=float).sum(axis=1) @ fractions)


def _number(name: str, value: Any) -> float:
    # compared exactly: whole numbers beyond float64 would overflow
    if isinstance(value, bool) or not isinstance(value, Real) or not abs(value) <= float_info.max:  # pyright: ignore
        raise ValueError(f"{name} must be a finite number; got {value!r}.")
    return float(value)
