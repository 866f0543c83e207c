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

# Multiplications between two looks at the clock while products of rows are made: about a tenth of a second's work.
MULTIPLICATIONS = 2e8
# Columns up to which rows are never wide: eliminating columns has more digits, and takes no longer then.
MAX_NARROW = 100
# Share of the longest row that each row must have apart from the span of those before it, for a basis by products:
# these have half of the digits.
INDEPENDENT = 1e-4
FAR = 0.1  # a column whose spread is less than this share of its size is centred: a digit is gained
SPREAD = 0.1  # share of the squares of wide rows left about their mean, above which centring gains no digit
BEYOND = 1e20  # a cap, R = 1, that counts as none: no dual variable that float64 can find comes near it
# Share of the largest eigenvalue of the products of rows below which an eigenvalue is their rounding, per row: products
# of n rows are off by about n eps of the largest
RANK = 1e-15
SMALLEST = 1e-290  # no cap, R = 1, is smaller, nor the inverse of a curvature: steps divide by them

_linalg: Any = scipy.linalg  # whose annotations are unions of all cases


class OutOfTime(Exception):
    """It is time to stop, and there is no program yet."""


@dataclass(frozen=True)
class Quadratic:
    """The program of one binary problem; arrays as in the module's docstring.

    Attributes
    ----------
    D, q, c : ndarray of shape (n,)
        D is 1 / (2 C s) under the squared hinge, else 0; c holds the caps, infinite where there is none.
    E, e : ndarray of shape (m, n) and (m,)
        m equations, no two of which have an unknown in common.
    scale : float
        The unit of the rows.
    problem : Problem
    y : ndarray of shape (n,), entries -1.0 and 1.0
    caps : ndarray of shape (n,)
        In the problem's own units.
    shared : SharedRows
        The rows without their labels.
    basis : SpanBasis, default=None
        Of wide rows: A holds their coefficients in an orthonormal basis of their span.
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
    shared: SharedRows
    basis: SpanBasis | None = None

    @cached_property
    def A(self) -> np.ndarray:
        """The signed rows, of shape (n, d)."""
        if self.basis is not None:
            return self.basis.coefficients
        return self.shared.scaled(self.scale) * self.y[:, None]

    @property
    def rows(self) -> np.ndarray | CentredRows:
        """The rows of A without their labels."""
        return self.A * self.y[:, None] if self.basis is not None else self.shared.centred(self.scale)

    @cached_property
    def lengths(self) -> np.ndarray:
        """The lengths of rows that are far longer than most, where these are few; 1 for the others."""
        return outlier_lengths(np.sqrt(np.einsum("ij,ij->i", self.A, self.A)))

    @property
    def shape(self) -> tuple[int, int]:
        """The shape of A."""
        return self.y.size, self.basis.coefficients.shape[1] if self.basis is not None else self.shared.d

    def slacks(self, a: np.ndarray, beta: np.ndarray, w: np.ndarray | None = None) -> np.ndarray:
        """Return the gradient of the Lagrangian: non-negative at a = 0, zero inside, non-positive at the cap."""
        scores = self.A @ (self.A.T @ a if w is None else w)
        return scores + self.D * a - self.q + beta @ self.E

    @cached_property
    def squared(self) -> bool:
        """Whether rows have slack coordinates of their own (D > 0)."""
        return bool(self.D.any())

    @property
    def sizes(self) -> np.ndarray:
        """Sample weights of a soft margin in units of R = 1."""
        if self.problem.loss == "hinge":
            return self.c / self.problem.C
        return 0.5 / (self.problem.C * self.D)

    def primal(self, w: np.ndarray, beta: np.ndarray | None = None) -> tuple[np.ndarray, float]:
        """Return (w, b) in the problem's own units; the free intercept of a soft margin is `beta`, else 0."""
        w = (w if self.basis is None else self.basis.expand(w)) / self.scale
        if self.problem.rho:
            return w[:-1], float(w[-1]) * self.problem.rho
        if beta is None or self.problem.hard or not self.problem.free:
            return w, 0.0
        return w, float(beta[0] - self.shared.shift @ w)

    def near(self, alpha: np.ndarray) -> np.ndarray:
        """Return dual variables of the problem's own units as a start of this program."""
        a = alpha * self.scale**2
        return a / a.sum() if self.problem.hard else a

    def dual(self, a: np.ndarray) -> np.ndarray:
        """Return dual variables in the problem's own units."""
        return np.minimum(a / self.scale**2, self.caps)


class SharedRows:
    """Rows without labels, for the programs of several classes: what does not depend on labels is made once.

    Columns far from 0 are centred, of wide rows only once their products are made. Sparse rows whose dense copy would
    be far larger than their entries stay sparse; these are wide, and only their products and combinations are made.

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
        self.problem, self.X, self.n, self.d = problem, X, X.shape[0], X.shape[1] + bool(problem.rho)
        self.shift, self.wide = np.zeros(X.shape[1]), is_wide(X.shape[0], self.d)
        self._given, self._square = X, square
        self._scaled: tuple[float, np.ndarray] | None = None
        self._centred: tuple[float, CentredRows] | None = None
        self._products: np.ndarray | None = None
        if problem.free and not self.wide:
            self._centre()

    def _centre(self) -> None:
        """Subtract the mean of columns far from 0: balanced dual variables do not see a shift, but rounding does.

        A sparse column that is far from 0 has an entry in every row, and keeps these when shifted.
        """
        X, sparse = self._given, sp.issparse(self._given)  # two threads may be here: both find the same
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

    @cached_property
    def lengths(self) -> np.ndarray:
        """The length of every row, the constant included."""
        square = _squares(self.X, "i") if self._square is None else self._square
        return np.hypot(np.sqrt(square), self.problem.rho)

    def scaled(self, scale: float) -> np.ndarray:
        """Return (x, constant) / scale, the constant where there is one."""
        found = self._scaled  # another thread may have other units
        if found is None or found[0] != scale:
            self._scaled = found = scale, _rows(self.X, np.full(self.n, 1.0 / scale), self.problem.rho)
        return found[1]

    def centred(self, scale: float) -> np.ndarray | CentredRows:
        """Return the same as centred rows, where no two threads may write to these: where they are small."""
        rows = self.scaled(scale)
        if not is_small_dense(rows):
            return rows
        found = self._centred
        if found is None or found[0] != scale:
            problem = replace(self.problem, intercept="free" if self.problem.free else "none")
            self._centred = found = scale, centred_rows(problem, rows)
        return found[1]

    def products(self, interrupted: Callable[[], bool]) -> np.ndarray:
        """Return X X' of wide rows, columns centred where the products lose digits to what all rows have in common.

        Raises
        ------
        OutOfTime
            Where it is time to stop.
        """
        if self._products is None:
            found = _products(self.X, interrupted)
            total = np.trace(found)
            lost = not total - self.n * found.mean() >= SPREAD * total  # or not a number: squares overflow
            if self.problem.free and lost:
                self._centre()
                found = _products(self.X, interrupted) if self.shift.any() else found
            self._products = found
        return self._products


def is_wide(n: int, d: int) -> bool:
    """Return whether to replace n rows of d columns by their n coordinates in a basis of their span."""
    return d > max(n, MAX_NARROW)


class SpanBasis:
    """An orthonormal basis of the span of wide rows A: A' L^-T, where L L' = A A'. It is not stored.

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

    Attributes
    ----------
    coefficients : ndarray of shape (n, rank)
        The coordinates of the rows of A.
    orthogonal : ndarray of shape (d, rank) or None
        The basis, where it is an orthogonal factor.
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
        self.orthogonal: np.ndarray | None = None
        self._factors = factors = np.ones(X.shape[0]) if factors is None else factors
        products = _products(X, interrupted) if products is None else products
        products = (products + constant * constant) * factors * factors[:, None]
        L, failed = _linalg.lapack.dpotrf(products, lower=True, clean=True)
        self._combine = lambda w: _linalg.lapack.dtrtrs(L, w, lower=1, trans=1)[0]
        self.coefficients, sizes = L, np.diag(L)
        if not failed and sizes.min() > INDEPENDENT * sizes.max():
            return
        if sp.issparse(X):
            squares, V = _linalg.eigh(products, check_finite=False)
            kept = squares > RANK * squares.size * squares[-1]
            sizes, V = np.sqrt(squares[kept]), V[:, kept]
            self.coefficients, self._combine = V * sizes, lambda w: (V / sizes) @ w
        else:
            A = _rows(X, factors, constant)
            self.orthogonal, R = _linalg.qr(A.T, mode="economic", check_finite=False)
            self.coefficients = np.ascontiguousarray(R.T)

    def expand(self, w: np.ndarray) -> np.ndarray:
        """Return the vector of shape (d,) with these coordinates."""
        if self.orthogonal is not None:
            return self.orthogonal @ w
        a = self._combine(w) * self._factors
        return np.append(a @ self._X, self._constant * a.sum()) if self._constant else a @ self._X


def _rows(X: np.ndarray, factors: np.ndarray, constant: float) -> np.ndarray:
    """Return these factors times (x, constant), where the constant is not 0."""
    A = X * factors[:, None]
    return np.column_stack([A, constant * factors]) if constant else A


def _squares(X: Any, axis: str) -> np.ndarray:
    """Return the sums of the squares of the entries of each row, axis "i", or of each column, axis "j"."""
    if sp.issparse(X):
        return np.asarray(X.multiply(X).sum(axis=1 if axis == "i" else 0)).ravel()
    return np.einsum(f"ij,ij->{axis}", X, X)


def _products(X: Any, interrupted: Callable[[], bool]) -> np.ndarray:
    """Return X X'; raise OutOfTime where it is time to stop."""
    if sp.issparse(X):
        return np.ascontiguousarray((X @ X.T).toarray())
    products, step = np.zeros((len(X), len(X))), max(int(MULTIPLICATIONS / len(X) ** 2), 1)
    for first in range(0, X.shape[1], step):
        if interrupted():
            raise OutOfTime
        some = X[:, first : first + step]
        products += some @ some.T
    return products


def _units(shared: SharedRows, cap: float) -> Iterator[float]:
    """Yield the length that most rows have, where it is far below the root mean square, and then that.

    Of a hard margin most rows' length is tried only where the long ones are few. The length by the typical column
    is one more, where it brings the largest cap back from beyond float64.
    """
    problem, rows = shared.problem, shared.lengths
    mean = float(np.sqrt(rows @ rows / rows.size))
    if not mean > 0.0:
        yield 1.0
        return
    typical = float(upper_median(rows[rows > 0.0]))
    lengths = [typical] if not problem.hard or (outlier_lengths(rows / typical) > 1.0).any() else []
    if BEYOND < cap * mean**2 < np.inf and np.sort(rows)[rows.size // 4] * OUTLIER_FACTOR > mean:
        columns = _squares(shared.X, "j") / rows.size
        length = float(np.hypot((upper_median(columns) * columns.size) ** 0.5, problem.rho))
        if cap * length**2 <= BEYOND:
            lengths.append(length)
    shorter = [length for length in lengths if 0.0 < OUTLIER_FACTOR * length < mean]
    if shorter:
        yield min(shorter)
    yield mean


def quadratic(problem: Problem, X: Any, y: np.ndarray, weights: np.ndarray) -> Quadratic:
    """Return the program of a problem on a few rows, all of positive weight, in the units to try first."""
    return next(quadratics(problem, X, y, weights))


def quadratics(
    problem: Problem,
    X: Any,
    y: np.ndarray,
    weights: np.ndarray,
    interrupted: Callable[[], bool] = lambda: False,
) -> Iterator[Quadratic]:
    """Yield the program in the units to try first, then in others where lengths of rows leave a choice.

    Parameters
    ----------
    problem : Problem
    X : ndarray or CSR matrix of shape (n, d), or SharedRows
    y : ndarray of shape (n,), entries -1.0 and 1.0
    weights : ndarray of shape (n,), positive
    interrupted : callable

    Raises
    ------
    OutOfTime
        Where it is time to stop while products of wide rows are made.
    """
    shared = X if isinstance(X, SharedRows) else SharedRows(problem, X)
    products = (
        shared.products(interrupted) if shared.wide else None
    )  # before units: columns may be centred here
    caps = problem.caps(weights)
    for unit in _units(shared, float(caps.max())):
        yield _program(shared, products, y, weights, caps, unit)


def _program(
    shared: SharedRows,
    products: np.ndarray | None,
    y: np.ndarray,
    weights: np.ndarray,
    caps: np.ndarray,
    scale: float,
) -> Quadratic:
    """Return the program in these units."""
    problem, n, basis = shared.problem, shared.n, None
    if products is not None:  # w is a combination of the rows
        basis = SpanBasis(shared.X, factors=y / scale, constant=problem.rho, products=products)
    with np.errstate(over="ignore"):
        D = np.minimum(problem.delta2(weights) / scale**2, 1.0 / SMALLEST)
    if problem.hard:
        E = np.array([y > 0, y < 0] if problem.free else [np.ones(n)], dtype=float)
        e, q, c = np.full(len(E), 1.0 / len(E)), np.zeros(n), np.full(n, np.inf)
    else:
        E = y[None, :] if problem.free else np.zeros((0, n))
        e, q, c = np.zeros(len(E)), np.ones(n), np.maximum(caps * scale**2, SMALLEST)
        c = np.where(c > BEYOND, np.inf, c)
    return Quadratic(D, q, E, e, c, scale, problem, y, caps, shared, basis)
