"""The dual of every problem here as one small quadratic program.

    minimise 1/2 a'(A A' + D) a - q'a   subject to   E a = e,  0 <= a <= c

with rows y_i x_i in A (scaled to unit mean square, the constant coordinate included; where some are far longer than
most, most are scaled to about one), and

* soft, free intercept      q = 1, E = y', e = 0;      otherwise no equation;
* hard margin               q = 0, E = 1', e = 1;      free intercept: half in each class.

For the hard margin this is the point of the convex hull (of the difference of the hulls) nearest to 0, which
exists whether or not the classes are separable.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import scipy.linalg
import scipy.sparse as sp

from ...numerics.sparse_columns import may_be_dense
from ...problem.problem import Problem
from .centred_rows import (
    OUTLIER_FACTOR,
    CentredRows,
    centred_rows,
    is_small_dense,
    outlier_lengths,
    upper_median,
)

AT_ONCE = 2e8  # products of entries between two looks at the clock
# Columns up to which rows are never wide: eliminating columns has more digits, and takes no longer then.
MAX_NARROW = 100
# share of the longest row that a row's own part must have at least, to be told by products
INDEPENDENT = 1e-4
FAR = 0.1  # a column whose spread is less than this share of its size is centred
SPREAD = 0.1  # share of the squares of wide rows that is left about their mean, beyond which no digit is lost
BEYOND = 1e20  # a cap, R = 1, that float64 cannot meet: either no dual weight comes near it, or none is found
# Share of the largest eigenvalue of the products of rows below which an eigenvalue is their rounding, per row: products
# of n rows are off by about n eps of the largest
RANK = 1e-15
NEXT_TO_NONE = 1e-290  # no cap, R = 1, is smaller, nor the inverse of a curvature: steps divide by them

_linalg: Any = scipy.linalg  # its annotations speak of every case at once


class OutOfTime(Exception):
    """It is time to stop, and there is no program yet."""


@dataclass(frozen=True)
class Quadratic:
    """The program of one binary problem; arrays as in the module's docstring.

    Attributes
    ----------
    whole : Whole
        The rows without their labels.
    basis : _Basis, default=None
        Orthonormal coordinates, of which the rows are combinations where these are wide: A holds their coefficients.
    """

    D: np.ndarray
    q: np.ndarray
    E: np.ndarray
    e: np.ndarray
    c: np.ndarray
    scale: float
    problem: Problem
    y: np.ndarray
    caps: np.ndarray
    whole: Whole
    basis: _Basis | None = None

    @cached_property
    def A(self) -> np.ndarray:
        """The signed rows."""
        if self.basis is not None:
            return self.basis.coefficients
        return self.whole.rows(self.scale) * self.y[:, None]

    @property
    def rows(self) -> np.ndarray | CentredRows:
        """The rows of A without their labels, in blocks where these are few enough to be kept."""
        return self.A * self.y[:, None] if self.basis is not None else self.whole.blocks(self.scale)

    @cached_property
    def lengths(self) -> np.ndarray:
        """Of rows that are far longer than most, where these are few; 1 of the others."""
        return outlier_lengths(np.sqrt(np.einsum("ij,ij->i", self.A, self.A)))

    @property
    def shape(self) -> tuple[int, int]:
        """Patterns, coordinates."""
        return self.whole.n, self.basis.coefficients.shape[1] if self.basis is not None else self.whole.d

    def slacks(self, a: np.ndarray, beta: np.ndarray, w: np.ndarray | None = None) -> np.ndarray:
        """The gradient of the Lagrangian: non-negative where a = 0, zero inside, non-positive at the cap."""
        out = self.A @ (self.A.T @ a if w is None else w)
        if self.squared:
            out += self.D * a
        out -= self.q
        for equation, factor in zip(self.E, beta, strict=True):
            out += factor * equation
        return out

    @cached_property
    def squared(self) -> bool:
        """Has any pattern a coordinate of its own?"""
        return bool(self.D.any())

    @property
    def sizes(self) -> np.ndarray:
        """Sample weights of a soft margin, R = 1."""
        if self.problem.loss == "hinge":
            return self.c / self.problem.C
        return 0.5 / (self.problem.C * self.D)

    def primal(self, w: np.ndarray, beta: np.ndarray | None = None) -> tuple[np.ndarray, float]:
        """(w, b) of the problem's own scale; the free intercept of a soft margin is what `beta` says, else 0."""
        w = w if self.basis is None else self.basis.combine(w)
        if self.problem.rho:
            return w[:-1] / self.scale, float(w[-1]) * self.problem.rho / self.scale
        w = w / self.scale
        if beta is None or self.problem.hard or not self.problem.free:
            return w, 0.0
        return w, float(beta[0] - self.whole.shift @ w)

    def near(self, alpha: np.ndarray) -> np.ndarray:
        """Dual weights of the problem's own scale, to begin with here."""
        a = alpha * self.scale**2
        return a / a.sum() if self.problem.hard else a

    def dual(self, a: np.ndarray) -> np.ndarray:
        """Dual weights of the problem's own scale."""
        return np.minimum(a / self.scale**2, self.caps)


class Whole:
    """Dense rows about columns that are far off: what the programs of several classes have in common is made once.

    Wide rows are so only once their products are made. Sparse rows whose dense copy would be far larger than their
    entries stay sparse; these are wide, as all rows of an exact step with so many
    columns are, and only products of rows and combinations of rows are asked of them.

    Parameters
    ----------
    problem : Problem
    X : ndarray or CSR matrix of shape (n, d)
    square : ndarray of shape (n,), default=None
        |x_i|^2, where it is known.
    """

    def __init__(self, problem: Problem, X: Any, square: np.ndarray | None = None) -> None:
        if sp.issparse(X) and may_be_dense(X):
            X = X.toarray()
        X = X.astype(float) if sp.issparse(X) else np.asarray(X, dtype=float)
        self.shift = np.zeros(X.shape[1])
        self.problem, self.X, self.n = problem, X, X.shape[0]
        self._given, self._square = X, square
        self.d = X.shape[1] + bool(problem.rho)
        if problem.free and not self.wide:
            self._centre()
        self._rows: tuple[float, np.ndarray] | None = None
        self._blocks: tuple[float, CentredRows] | None = None
        self._products: np.ndarray | None = None

    def _centre(self) -> None:
        """Subtract the mean of columns that are far off: balanced dual weights do not see a shift, but numbers do.

        A sparse column that is far off has an entry in every row, and keeps these when shifted.
        """
        X, sparse = self._given, sp.issparse(self._given)  # two threads may come here: both find the same
        columns = np.arange(X.shape[1])
        if sparse:
            columns = np.flatnonzero(np.bincount(X.indices, minlength=X.shape[1]) == self.n)
        if not columns.size:
            return
        some = X[:, columns].toarray() if sparse else X
        top, bottom, mean = some.max(axis=0), some.min(axis=0), some.mean(axis=0)
        off = np.maximum(top - mean, mean - bottom) <= FAR * np.maximum(top, -bottom)
        if not off.any():
            return
        self.shift[columns[off]] = mean[off]
        self._square = None
        if sparse:
            self.X = X.copy()
            self.X.data -= self.shift[X.indices]
        else:
            self.X = X - self.shift

    @property
    def wide(self) -> bool:
        """Are rows so long that they are told by their own coefficients?"""
        return is_wide(self.n, self.d)

    @cached_property
    def lengths(self) -> np.ndarray:
        """Of every row, the constant included."""
        square = _squares(self.X, "i") if self._square is None else self._square
        return np.hypot(np.sqrt(square), self.problem.rho)

    @cached_property
    def most(self) -> float:
        """The length of most rows that are not 0."""
        return float(upper_median(self.lengths[self.lengths > 0.0]))

    def rows(self, scale: float) -> np.ndarray:
        """(x, constant) / scale, the constant where there is one."""
        found = self._rows  # another thread may have other units
        if found is None or found[0] != scale:
            self._rows = found = scale, _rows(self.X, np.full(self.n, 1.0 / scale), self.problem.rho)
        return found[1]

    def products(self, interrupted: Callable[[], bool]) -> np.ndarray:
        """X X' of wide rows; OutOfTime is raised where it is time to stop.

        Only where they lose digits to what all rows have in common are columns looked at that may be far off.
        """
        if self._products is None:
            found = _products(self.X, interrupted)
            total = np.trace(found)  # or it is more than float64 holds
            lost = not total - self.n * found.mean() >= SPREAD * total
            if self.problem.free and lost:
                self._centre()
                found = _products(self.X, interrupted) if self.shift.any() else found
            self._products = found
        return self._products

    def blocks(self, scale: float) -> np.ndarray | CentredRows:
        """The same in blocks, where they are kept in these: others have room that no two threads may use."""
        rows = self.rows(scale)
        if not is_small_dense(rows):
            return rows
        found = self._blocks
        if found is None or found[0] != scale:
            problem = replace(self.problem, intercept="free" if self.problem.free else "none")
            self._blocks = found = scale, centred_rows(problem, rows)
        return found[1]


def is_wide(n: int, d: int) -> bool:
    """Return whether to replace n rows of d columns by their n coordinates in a basis of their span."""
    return d > max(n, MAX_NARROW)


class _Basis:
    """An orthonormal basis of the span of a few wide rows: A' L^-T, where L L' = A A'. Neither it nor A is made.

    The products of the rows have half of their digits; where that is too few, an orthogonal factor has them all. Of
    sparse rows that factor would be dense: eigenvectors of the products, V diag(s^2) V' = A A', make the basis
    A' V / s there, of those s that are not rounding.

    Parameters
    ----------
    X : ndarray or CSR matrix of shape (n, d)
        Of squares that float64 holds.
    interrupted : callable
    factors : ndarray of shape (n,), default=None
        The rows of A are these times (x, constant). None: ones.
    constant : float, default=0
        None where it is 0.
    products : ndarray of shape (n, n), default=None
        X X', where it is known.
    """

    def __init__(
        self,
        X: np.ndarray,
        interrupted: Callable[[], bool] = lambda: False,
        factors: np.ndarray | None = None,
        constant: float = 0.0,
        products: np.ndarray | None = None,
    ) -> None:
        self._X, self._constant = X, constant
        self._orthogonal: np.ndarray | None = None
        self._mixed: np.ndarray | None = None
        self._factors = factors = np.ones(X.shape[0]) if factors is None else factors
        products = _products(X, interrupted) if products is None else products
        products = (products + constant * constant) * factors * factors[:, None]
        self.coefficients, failed = _linalg.lapack.dpotrf(products, lower=True, clean=True)
        sizes = np.diag(self.coefficients)
        if not failed and sizes.min() > INDEPENDENT * sizes.max():
            return
        if sp.issparse(X):
            squares, V = _linalg.eigh(products, check_finite=False)
            kept = squares > RANK * squares.size * squares[-1]
            sizes, V = np.sqrt(squares[kept]), V[:, kept]
            self.coefficients, self._mixed = V * sizes, V / sizes
        else:
            A = _rows(X, factors, constant)
            self._orthogonal, R = _linalg.qr(A.T, mode="economic", check_finite=False)
            self.coefficients = np.ascontiguousarray(R.T)

    def combine(self, w: np.ndarray) -> np.ndarray:
        """What has these coordinates."""
        if self._orthogonal is not None:
            return self._orthogonal @ w
        if self._mixed is not None:
            a = self._mixed @ w
        else:
            a = _linalg.lapack.dtrtrs(self.coefficients, w, lower=1, trans=1)[0]
        a = a * self._factors
        return np.append(a @ self._X, self._constant * a.sum()) if self._constant else a @ self._X


def _rows(X: np.ndarray, factors: np.ndarray, constant: float) -> np.ndarray:
    """These times (x, constant), where the constant is not 0."""
    A = X * factors[:, None]
    return np.column_stack([A, constant * factors]) if constant else A


def _squares(X: Any, axis: str) -> np.ndarray:
    """Sums of the squares of the entries of each row, axis "i", or of each column, axis "j"."""
    if sp.issparse(X):
        return np.asarray(X.multiply(X).sum(axis=1 if axis == "i" else 0)).ravel()
    return np.einsum(f"ij,ij->{axis}", X, X)


def _products(X: Any, interrupted: Callable[[], bool]) -> np.ndarray:
    """X X'; OutOfTime is raised where it is time to stop."""
    if sp.issparse(X):
        return np.ascontiguousarray((X @ X.T).toarray())
    products, step = np.zeros((len(X), len(X))), max(int(AT_ONCE / len(X) ** 2), 1)
    for first in range(0, X.shape[1], step):
        if interrupted():
            raise OutOfTime
        some = X[:, first : first + step]
        products += some @ some.T
    return products


def _units(whole: Whole, cap: float) -> Iterator[float]:
    """The length of a row: of most, where others are so long that the mean is theirs alone; and in the mean.

    Of a hard margin most rows' length is tried only where the long ones are few. What most columns are like is tried
    first, too, where that brings the largest cap back from beyond float64.
    """
    problem, rows = whole.problem, whole.lengths
    mean = float(np.sqrt(rows @ rows / rows.size))
    if not mean > 0.0:
        yield 1.0
        return
    lengths = [whole.most] if not problem.hard or (outlier_lengths(rows / whole.most) > 1.0).any() else []
    if BEYOND < cap * mean**2 < np.inf and np.sort(rows)[rows.size // 4] * OUTLIER_FACTOR > mean:
        columns = _squares(whole.X, "j") / rows.size
        length = float(np.hypot((upper_median(columns) * columns.size) ** 0.5, problem.rho))
        if cap * length**2 <= BEYOND:
            lengths.append(length)
    shorter = [length for length in lengths if 0.0 < OUTLIER_FACTOR * length < mean]
    if shorter:
        yield min(shorter)
    yield mean


def quadratic(problem: Problem, X: Any, y: np.ndarray, weights: np.ndarray) -> Quadratic:
    """The program of a problem on a few rows, all of positive weight."""
    return next(quadratics(problem, X, y, weights))


def quadratics(
    problem: Problem,
    X: Any,
    y: np.ndarray,
    weights: np.ndarray,
    interrupted: Callable[[], bool] = lambda: False,
) -> Iterator[Quadratic]:
    """The same in the units to try first, then in others where lengths of rows leave a choice.

    Parameters
    ----------
    X : ndarray or CSR matrix of shape (n, d), or Whole
        Of this problem; of which the programs of several classes make some things once.

    Raises
    ------
    OutOfTime
        Where it is time to stop, and rows are so wide that their products take more than moments.
    """
    whole = X if isinstance(X, Whole) else Whole(problem, X)
    if whole.wide:  # they tell whether columns are centred, and that is what units are of
        whole.products(interrupted)
    caps = problem.caps(weights)
    for unit in _units(whole, float(caps.max())):
        yield _program(whole, y, weights, caps, unit, interrupted)


def _program(
    whole: Whole,
    y: np.ndarray,
    weights: np.ndarray,
    caps: np.ndarray,
    scale: float,
    interrupted: Callable[[], bool],
) -> Quadratic:
    """The program in these units."""
    problem, n, basis = whole.problem, whole.n, None
    if whole.wide:
        # w is a combination of the rows; equal ones no longer cancel exactly
        products = whole.products(interrupted)
        basis = _Basis(whole.X, interrupted, y / scale, problem.rho, products)
    with np.errstate(over="ignore"):
        D = np.minimum(problem.delta2(weights) / scale**2, 1.0 / NEXT_TO_NONE)
    if problem.hard:
        rows = [y > 0, y < 0] if problem.free else [np.ones(n)]
        E = np.array(rows, dtype=float)
        e, c = np.full(len(rows), 1.0 / len(rows)), np.full(n, np.inf)
        return Quadratic(D, np.zeros(n), E, e, c, scale, problem, y, caps, whole, basis)
    E = y[None, :] if problem.free else np.zeros((0, n))
    c = np.maximum(caps * scale**2, NEXT_TO_NONE)
    c = np.where(c > BEYOND, np.inf, c)
    return Quadratic(D, np.ones(n), E, np.zeros(len(E)), c, scale, problem, y, caps, whole, basis)
