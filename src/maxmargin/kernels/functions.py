"""Positive definite kernels by scikit-learn's names, computed in blocks of rows by BLAS.

Rows and diagonal come in one precision, that of X: a diagonal that does not belong to the rows makes a matrix that is
not positive definite.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp

EPS = float(np.finfo(float).eps)
WIDE = 4096  # columns up to which sparse rows are multiplied as dense ones
BYTES = 2**28  # of a dense copy of sparse rows, at most
TILE = 2**20  # bytes of a tile: products stay in the processor's cache until they are kernel values
SPARSE = 0.03, 0.15  # shares of entries: below by sparse rows, between by stripes, above as dense ones
STRIPE = 512  # rows of a stripe
SOME = 64  # rows looked at together
NARROW = 64  # columns up to which rows are stored column by column: few of them are multiplied sooner so
THIN = 100  # rows of more columns, below which a product is computed sooner turned
EXACT = 2.0**24  # whole numbers up to here have no rounding in float32
WIDER = 2.0**53  # and in float64
TWO_ROWS = (
    "The kernel gets two matrices of rows and returns the matrix of their kernel values, and this function takes two "
    "rows: kernel=lambda Z, X: pairwise_kernels(Z, X, metric=function), with sklearn.metrics.pairwise, makes one of it."
)


class Kernel(ABC):
    """k(x, z)."""

    name: ClassVar[str]

    @abstractmethod
    def block(self, Z: Any, X: Any) -> np.ndarray:
        """k(z, x) for all rows z of Z and x of X: shape (len(Z), len(X)), of X's precision."""

    def tiles(self, Z: Any, X: Any) -> Iterator[tuple[slice, np.ndarray]]:
        """The block some columns at a time: (columns, k(z, x) of these columns)."""
        yield slice(0, X.shape[0]), self.block(Z, X)

    def fill(self, Z: Any, X: Any, out: np.ndarray) -> None:
        """Write the block into `out`, whose rows are contiguous."""
        for columns, tile in self.tiles(Z, X):
            out[:, columns] = tile

    @abstractmethod
    def diagonal(self, X: Any) -> np.ndarray:
        """k(x, x) of every row."""

    def prepared(self, X: Any) -> Any:
        """X as it is fastest to compute with."""
        return X

    def asked(self, Z: Any, X: Any) -> Any:
        """Other rows, as it is fastest to compute their `block` with X, which is prepared."""
        return Z

    def part(self, X: Any, places: np.ndarray) -> Any:
        """The rows at these places, for a problem of their own."""
        return X[places]

    def error(self, X: Any) -> float:
        """By how much an entry computed in float64 may be off; 0 where the numbers as computed are the kernel."""
        return 0.0


@dataclass(frozen=True, eq=False)
class Stripes:
    """Sparse rows, and the same once more as dense columns, some rows at a time: what sparse rows are multiplied by."""

    rows: Any
    columns: tuple[np.ndarray, ...]

    @staticmethod
    def of(X: Any) -> Stripes:
        X = sp.csr_matrix(X)
        parts = (X[first : first + STRIPE].toarray().T for first in range(0, X.shape[0], STRIPE))
        return Stripes(X, tuple(map(np.ascontiguousarray, parts)))

    @property
    def shape(self) -> tuple[int, ...]:
        return self.rows.shape

    @property
    def dtype(self) -> np.dtype[Any]:
        return self.rows.dtype

    def __getitem__(self, places: Any) -> Any:
        return self.rows[places]


@dataclass(frozen=True, eq=False)
class Lifted:
    """Dense rows (x, |x|^2, 1): one product of these with rows (2z, -1, -|z|^2) is -|z - x|^2.

    Attributes
    ----------
    largest : float
        No |x|^2 is larger.
    """

    rows: np.ndarray
    largest: float

    @staticmethod
    def of(X: np.ndarray) -> Lifted:
        order: Any = "F" if X.shape[1] <= NARROW else "C"
        rows = np.empty((X.shape[0], X.shape[1] + 2), X.dtype, order)
        rows[:, :-2], rows[:, -2], rows[:, -1] = X, _squares(X), 1.0
        return Lifted(rows, float(rows[:, -2].max(initial=0.0)))

    @property
    def shape(self) -> tuple[int, ...]:
        return self.rows.shape[0], self.rows.shape[1] - 2

    @property
    def dtype(self) -> np.dtype[Any]:
        return self.rows.dtype

    @property
    def entries(self) -> np.ndarray:
        return self.rows[:, :-2]

    @property
    def squares(self) -> np.ndarray:
        return self.rows[:, -2]

    def __getitem__(self, places: Any) -> Lifted:
        if self.shape[1] <= NARROW and not isinstance(places, slice):  # their columns stay contiguous
            return Lifted(self.rows.T.take(places, axis=1).T, self.largest)
        return Lifted(self.rows[places], self.largest)

    def exact(self, other: Lifted) -> bool:
        """Whole numbers: is no partial sum of a distance rounded?"""
        return (self.largest**0.5 + other.largest**0.5) ** 2 < 0.999 * EXACT

    def distances(
        self, other: Lifted, times: float, out: np.ndarray | None = None
    ) -> Iterator[tuple[slice, np.ndarray]]:
        """(columns, `times` the squares of the distances from these other rows), in parts that stay in the cache."""
        left = np.empty_like(self.rows)
        left[:, :-2], left[:, -2], left[:, -1] = -2.0 * times * self.entries, times, times * self.squares
        return _dense_products(left, other.rows, out)


@dataclass(frozen=True, eq=False)
class WholeNumbers:
    """Rows of multiples of one number, so small that float32 has their inner products exactly, and sooner.

    0/1 columns are such, and many a scaled one; `unit` times `entries` is off by `OFF`, relative to itself.
    """

    entries: Any
    unit: float

    OFF: ClassVar[float] = 3.0 * EPS
    dtype: ClassVar[np.dtype[Any]] = np.dtype(np.float64)

    @staticmethod
    def like(X: Any, unit: float | None = None) -> Any:
        """X in this form if it has it; the unit is looked for in the first rows unless it is given."""
        if isinstance(X, WholeNumbers | Stripes | Lifted):
            return X
        values = X.data if sp.issparse(X) else X
        if unit is None:
            head = np.abs(values[:SOME])
            unit = float(head.min(where=head > 0.0, initial=np.inf))
        # by Cauchy and Schwarz no partial sum is beyond the largest square
        if X.dtype != np.float64 or not _squares(X).max(initial=0.0) < 0.999 * EXACT * unit * unit < np.inf:
            return X
        entries = np.empty(values.shape, np.float32)
        step = SOME * (X.shape[1] if sp.issparse(X) else 1)
        for first in range(0, values.shape[0], step):
            some = values[first : first + step]
            whole = np.rint(some / unit)
            if (np.abs(whole * unit - some) > 2.0 * EPS * np.abs(some)).any():
                return X
            entries[first : first + step] = whole
        if sp.issparse(X):
            entries = sp.csr_matrix((entries, X.indices, X.indptr), X.shape)
        return WholeNumbers(entries, unit)

    @property
    def shape(self) -> tuple[int, ...]:
        return self.entries.shape

    def __getitem__(self, places: Any) -> WholeNumbers:
        return WholeNumbers(self.entries[places], self.unit)

    def plain(self) -> Any:
        """The rows as they were."""
        return plain(self.entries).astype(self.dtype) * self.unit


class Products(Kernel):
    """A function of the inner product, and of the lengths."""

    times: ClassVar[float] = 1.0  # a power of two, so many of which `finish` asks for
    lengths: ClassVar[bool] = False  # does `finish` look at the lengths?

    def block(self, Z: Any, X: Any) -> np.ndarray:
        out = np.empty((Z.shape[0], X.shape[0]), X.dtype)
        self.fill(Z, X, out)
        return out

    def tiles(self, Z: Any, X: Any) -> Iterator[tuple[slice, np.ndarray]]:
        left, right = (_squares(A) if self.lengths else np.empty(A.shape[0], A.dtype) for A in (Z, X))
        for columns, products in _products(Z, X, self.times):
            yield columns, self.finish(products, left, right[columns])

    def diagonal(self, X: Any) -> np.ndarray:
        squares = _squares(X)
        return self.finish(self.times * squares[:, None], squares, np.zeros(1, squares.dtype))[:, 0]

    def prepared(self, X: Any) -> Any:
        X = WholeNumbers.like(X)
        return WholeNumbers(_stored(X.entries), X.unit) if isinstance(X, WholeNumbers) else _stored(X)

    def asked(self, Z: Any, X: Any) -> Any:
        if isinstance(X, WholeNumbers):
            whole = WholeNumbers.like(Z, X.unit)
            Z = whole if isinstance(whole, WholeNumbers) else WholeNumbers.like(Z)
            if isinstance(Z, WholeNumbers):
                return WholeNumbers(_beside(Z.entries, X.entries), Z.unit)
        return _beside(Z, X)

    def rounding(self, X: Any) -> float:
        """By how much a product z.x may be off."""
        if isinstance(X, WholeNumbers):  # two factors, and their product
            return (2.0 * X.OFF + 4.0 * EPS) * float(_squares(X).max(initial=0.0)) if X.unit != 1.0 else 0.0
        rows = plain(X)
        if _whole(rows) and not isinstance(X, Lifted):  # whose products have gamma in them
            return 0.0
        terms = int(np.diff(rows.indptr).max(initial=0)) if sp.issparse(rows) else X.shape[1]
        return (terms + 2.0) * EPS * float(_squares(X).max(initial=0.0))

    @abstractmethod
    def finish(self, products: np.ndarray, left: np.ndarray, right: np.ndarray) -> np.ndarray:
        """The kernel of `times` the products z.x, in their place; `left` and `right` are |z|^2 and |x|^2."""


@dataclass(frozen=True)
class Linear(Products):
    """x.z"""

    name: ClassVar[str] = "linear"

    def __str__(self) -> str:
        return self.name

    def finish(self, products: np.ndarray, left: np.ndarray, right: np.ndarray) -> np.ndarray:
        return products

    def error(self, X: Any) -> float:
        return self.rounding(X)


@dataclass(frozen=True)
class Polynomial(Products):
    """(gamma x.z + coef0)^degree"""

    gamma: float
    degree: int = 3
    coef0: float = 0.0

    name: ClassVar[str] = "poly"

    def finish(self, products: np.ndarray, left: np.ndarray, right: np.ndarray) -> np.ndarray:
        products *= self.gamma
        products += self.coef0
        base, power = products, self.degree
        result = None
        while power:  # repeated squares: numpy's power takes logarithms
            if power & 1:
                result = base.copy() if result is None else np.multiply(result, base, out=result)
            power >>= 1
            if power:
                base = np.multiply(base, base)
        return np.ones_like(products) if result is None else result

    def error(self, X: Any) -> float:
        base = abs(self.gamma) * float(_squares(X).max(initial=0.0)) + abs(self.coef0)
        off = abs(self.gamma) * self.rounding(X) + 4.0 * EPS * base
        return self.degree * (base + off) ** max(self.degree - 1, 0) * (off + 4.0 * EPS * base)


@dataclass(frozen=True)
class Gaussian(Products):
    """exp(-gamma |x - z|^2)"""

    gamma: float

    name: ClassVar[str] = "rbf"
    times: ClassVar[float] = -2.0
    lengths: ClassVar[bool] = True

    def prepared(self, X: Any) -> Any:
        X = super().prepared(X)
        if isinstance(X, WholeNumbers):
            return WholeNumbers(_lifted(X.entries), X.unit)
        return _lifted(X)

    def asked(self, Z: Any, X: Any) -> Any:
        Z = super().asked(Z, X)
        if isinstance(Z, WholeNumbers) and isinstance(X, WholeNumbers) and isinstance(X.entries, Lifted):
            return WholeNumbers(_lifted(Z.entries), Z.unit)
        return _lifted(Z) if isinstance(X, Lifted) else Z

    def tiles(self, Z: Any, X: Any) -> Iterator[tuple[slice, np.ndarray]]:
        return self._tiles(Z, X) if _lifted_alike(Z, X) else super().tiles(Z, X)

    def fill(self, Z: Any, X: Any, out: np.ndarray) -> None:
        if not _lifted_alike(Z, X):
            super().fill(Z, X, out)
            return
        for _ in self._tiles(Z, X, out):
            pass

    def _tiles(self, Z: Any, X: Any, out: np.ndarray | None = None) -> Iterator[tuple[slice, np.ndarray]]:
        """The tiles of lifted rows, which are parts of `out` where that is given."""
        if isinstance(Z, Lifted):
            for columns, exponents in Z.distances(X, -self.gamma, out):
                np.minimum(exponents, 0.0, out=exponents)
                yield columns, np.exp(exponents, out=exponents)
            return
        for columns, exponents in self._exponents(Z.entries, X.entries, self.gamma * X.unit * X.unit, out):
            yield columns, np.exp(exponents, out=exponents)

    @staticmethod
    def _exponents(
        Z: Lifted, X: Lifted, gamma: float, out: np.ndarray | None
    ) -> Iterator[tuple[slice, np.ndarray]]:
        """(columns, -gamma |z - x|^2 in float64) of whole numbers: rounded once, so that no distance is below 0."""
        if Z.exact(X):
            for columns, distances in Z.distances(X, -1.0):
                place = None if out is None else out[:, columns]
                yield columns, np.multiply(distances, gamma, out=place, dtype=np.float64)
            return
        left, right = (0.5 * A.squares.astype(np.float64) for A in (Z, X))
        for columns, products in _dense_products(Z.entries, X.entries):
            halves = np.subtract(right[columns], products, out=None if out is None else out[:, columns])
            halves += left[:, None]
            halves *= -2.0 * gamma
            yield columns, halves

    def finish(self, products: np.ndarray, left: np.ndarray, right: np.ndarray) -> np.ndarray:
        products += left[:, None]
        products += right
        np.maximum(products, 0.0, out=products)
        products *= -self.gamma
        return np.exp(products, out=products)

    def diagonal(self, X: Any) -> np.ndarray:
        return np.ones(X.shape[0], X.dtype)

    def error(self, X: Any) -> float:
        # of the exponent: two squares and twice a product; the slope of exp is at most one
        return abs(self.gamma) * (8.0 * self.rounding(X)) + 8.0 * EPS


@dataclass(frozen=True)
class Sigmoid(Products):
    """tanh(gamma x.z + coef0), which is positive definite for some data only"""

    gamma: float
    coef0: float = 0.0

    name: ClassVar[str] = "sigmoid"

    def finish(self, products: np.ndarray, left: np.ndarray, right: np.ndarray) -> np.ndarray:
        products *= self.gamma
        products += self.coef0
        return np.tanh(products, out=products)

    def error(self, X: Any) -> float:
        base = abs(self.gamma) * float(_squares(X).max(initial=0.0)) + abs(self.coef0)
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
            try:
                K = self.function(Z, X)
            except (TypeError, ValueError, IndexError):
                if _of_two_rows(self.function, Z, X):
                    raise ValueError(TWO_ROWS) from None
                raise
            K = K.toarray() if sp.issparse(K) else np.asarray(K)
            if K.dtype.kind not in "biuf" or not np.isfinite(K).all():
                raise ValueError("The kernel must return finite real numbers; some of its values are not.")
            if K.shape != (Z.shape[0], X.shape[0]):
                if _of_two_rows(self.function, Z, X):
                    raise ValueError(TWO_ROWS)
                raise ValueError(
                    f"The kernel must return a matrix of shape {(Z.shape[0], X.shape[0])} for so many rows of each; "
                    f"it returned shape {K.shape}."
                )
            return np.ascontiguousarray(K, dtype=X.dtype)
        from sklearn.metrics.pairwise import pairwise_kernels  # verification does without scikit-learn

        return np.ascontiguousarray(
            pairwise_kernels(Z, X, metric=self.function, **dict(self.parameters)), dtype=X.dtype
        )

    def diagonal(self, X: Any) -> np.ndarray:
        parts = (X[first : first + SOME] for first in range(0, X.shape[0], SOME))
        return np.concatenate([np.diagonal(self.block(some, some)) for some in parts])


@dataclass(frozen=True)
class Precomputed(Kernel):
    """The matrix itself stands for X."""

    name: ClassVar[str] = "precomputed"

    def block(self, Z: Any, X: Any) -> np.ndarray:
        return Z

    def diagonal(self, X: Any) -> np.ndarray:
        return np.ascontiguousarray(np.diagonal(X))

    def part(self, X: Any, places: np.ndarray) -> Any:
        return X[np.ix_(places, places)]


def _of_two_rows(function: Callable[[Any, Any], Any], Z: Any, X: Any) -> bool:
    """Does it return a number for two rows, as the metrics of scikit-learn's `pairwise_kernels` do?"""
    one, two = (A[0].toarray().ravel() if sp.issparse(A) else A[0] for A in (Z, X))
    try:
        return np.ndim(function(one, two)) == 0
    except (TypeError, ValueError, IndexError):
        return False


def plain(X: Any) -> Any:
    """Prepared rows as they were."""
    if isinstance(X, WholeNumbers):
        return X.plain()
    if isinstance(X, Lifted):
        return X.entries
    return X.rows if isinstance(X, Stripes) else X


def _stored(X: Any) -> Any:
    """X as its inner products are computed soonest."""
    if isinstance(X, Stripes | Lifted):
        return X
    size = X.shape[0] * X.shape[1]
    if X.shape[1] > WIDE or size * X.dtype.itemsize > BYTES:
        return X
    share = (X.nnz if sp.issparse(X) else np.count_nonzero(X)) / max(size, 1)
    if share < SPARSE[0]:
        return sp.csr_matrix(X)
    if share < SPARSE[1]:
        return Stripes.of(X)
    return X.toarray() if sp.issparse(X) else X


def _lifted(X: Any) -> Any:
    return Lifted.of(X) if isinstance(X, np.ndarray) else X


def _lifted_alike(Z: Any, X: Any) -> bool:
    """Are both lifted, of plain numbers or of whole ones of one unit?"""
    if isinstance(Z, WholeNumbers) and isinstance(X, WholeNumbers) and Z.unit == X.unit:
        Z, X = Z.entries, X.entries
    return isinstance(Z, Lifted) and isinstance(X, Lifted)


def _beside(Z: Any, X: Any) -> Any:
    """Rows that are multiplied by those of X: sparse ones by stripes, else dense ones where they have room."""
    if isinstance(X, Stripes):
        return sp.csr_matrix(Z)
    return Z.toarray() if sp.issparse(Z) and isinstance(X, np.ndarray | Lifted) else Z


def _products(Z: Any, X: Any, times: float) -> Iterator[tuple[slice, np.ndarray]]:
    """(columns, times z.x of all rows z and of these x), in parts that stay in the processor's cache."""
    if isinstance(Z, WholeNumbers) and isinstance(X, WholeNumbers):
        for columns, products in _products(Z.entries, X.entries, 1.0):
            yield columns, np.multiply(products, times * Z.unit * X.unit, dtype=X.dtype)
        return
    Z, X = (A.plain() if isinstance(A, WholeNumbers) else A for A in (Z, X))
    Z = plain(Z)
    Z = Z if times == 1.0 else times * Z
    if isinstance(X, Stripes) and sp.issparse(Z):
        first = 0
        for part in X.columns:
            yield slice(first, first + part.shape[1]), Z @ part
            first += part.shape[1]
        return
    X = plain(X)
    if not (sp.issparse(Z) or sp.issparse(X)):
        yield from _dense_products(Z, X)
        return
    width = _width(Z, X) * (8 if sp.issparse(X) else 1)  # to cut sparse rows costs more
    for columns in _slices(X.shape[0], width):
        products = Z @ X[columns].T
        yield columns, products.toarray() if sp.issparse(products) else np.ascontiguousarray(products)


def _dense_products(
    Z: np.ndarray, X: np.ndarray, out: np.ndarray | None = None
) -> Iterator[tuple[slice, np.ndarray]]:
    """(columns, z.x), parts of `out` where that is given."""
    turned = Z.shape[0] < THIN and X.shape[1] > NARROW and X.dtype == np.float32
    for columns in _slices(X.shape[0], _width(Z, X)):
        place = None if out is None else out[:, columns]
        if not turned:
            yield columns, np.matmul(Z, X[columns].T, out=place)
        elif place is None:
            yield columns, (X[columns] @ Z.T).T
        else:
            place[:] = (X[columns] @ Z.T).T
            yield columns, place


def _width(Z: Any, X: Any) -> int:
    """Columns of a tile."""
    return max(64, TILE // (X.dtype.itemsize * max(Z.shape[0], 1)))


def _slices(n: int, width: int) -> Iterator[slice]:
    for first in range(0, n, width):
        yield slice(first, min(first + width, n))


def _whole(X: Any) -> bool:
    """Float64 rows of whole numbers whose sums of products are whole numbers too, none of them rounded: pixels, say."""
    values = X.data if sp.issparse(X) else X
    if X.dtype != np.float64 or not _squares(X).max(initial=0.0) < WIDER:
        return False
    step = SOME * (X.shape[1] if sp.issparse(X) else 1)
    parts = (values[first : first + step] for first in range(0, values.shape[0], step))
    return all(np.array_equal(some, np.rint(some)) for some in parts)


def _squares(X: Any) -> np.ndarray:
    """|x|^2 of every row, in the precision of X."""
    if isinstance(X, WholeNumbers):
        return np.multiply(_squares(X.entries), X.unit * X.unit, dtype=X.dtype)
    if isinstance(X, Lifted):
        return X.squares
    X = plain(X)
    if sp.issparse(X):
        return np.asarray(X.multiply(X).sum(axis=1), dtype=X.dtype).ravel()
    return np.einsum("ij,ij->i", X, X)
