"""The dual of every problem here as one small quadratic program.

    minimise 1/2 a'(A A' + D) a - q'a   subject to   E a = e,  0 <= a <= c

with rows y_i x_i in A, the constant coordinate included. They are divided by the `scale`, the root mean square
of their lengths.
With the sample weights s_i the other arrays are

* hinge            D = 0, c_i = C s_i scale^2; squared hinge  D_i = 1 / (2 C s_i scale^2), c = inf;
* soft margin      q = 1; with a free intercept E = y', e = 0, otherwise there is no equation;
* hard margin      D = q = 0, c = inf, E = 1', e = 1; with a free intercept two equations: a sum of 1/2 in each class.

For the hard margin A'a is the point nearest to 0 of the convex hull of the rows; with a free intercept, half of the
difference of the nearest points of the hulls of the two classes. It exists whether or not the classes are separable.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import scipy.linalg
import scipy.sparse as sp

from ...numerics.sparse_columns import may_be_dense, with_constant_column
from ...numerics.sums import row_squares
from ...problem.problem import Problem
from ...solvers.rows import CentredRows, centred_rows, is_small_dense

# The numbers below without another source are chosen on the data sets of benchmarks.before_after.
#
# Number of columns up to which rows are never wide: systems in the columns are more accurate, and no slower then.
MAX_NARROW_COLUMNS = 100
# Least pivot of a Cholesky factor of the products of rows, relative to the largest pivot, with which the factor gives
# the basis: it has half of the digits. Below it an orthogonal factor is computed, which costs more.
MIN_PIVOT = 1e-4
# A column is centred if no deviation from its mean is above this times its largest entry: a digit is gained.
MAX_DEVIATION = 0.1
# Wide rows are centred if their squared deviations from the mean are less than this fraction of their squares: above it
# centring gains less than a digit.
MAX_SPREAD = 0.1
# A cap above this, in units of the program, is replaced by inf: dual variables that float64 resolves are far smaller.
MAX_CAP = 1e20
# An eigenvalue of the products of n rows up to this times n times the largest counts as rounding: the products have
# errors of about n eps times the largest eigenvalue.
EIGENVALUE_ROUNDING = 1e-15
# The least cap in units of the program, and the inverse of the largest D: steps divide by them.
MIN_CAP = 1e-290

_linalg: Any = scipy.linalg  # typed as Any: its annotations are unions of all cases


@dataclass(frozen=True)
class Quadratic:
    """The program of one binary problem; arrays as in the module's docstring.

    Attributes
    ----------
    D, q, c : ndarray of shape (n,)
        The diagonal of D, the linear term and the caps, infinite where there is none.
    E, e : ndarray of shape (m, n) and (m,)
        m equations, at most 2, no two of which have an unknown in common.
    scale : float
        The unit by which rows are divided.
    problem : Problem
    y : ndarray of shape (n,), entries -1.0 and 1.0
    caps : ndarray of shape (n,)
        The caps in the problem's own units.
    shared : SharedRows
        The rows without their labels.
    basis : SpanBasis, default=None
        For wide rows: A holds their coefficients in an orthonormal basis of their span.
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
        """The rows of A without their labels, x_i / scale, of shape (n, d)."""
        return self.A * self.y[:, None] if self.basis is not None else self.shared.centred(self.scale)

    @property
    def shape(self) -> tuple[int, int]:
        """The shape of A."""
        return self.y.size, self.basis.coefficients.shape[1] if self.basis is not None else self.shared.d

    def slacks(self, a: np.ndarray, beta: np.ndarray, w: np.ndarray | None = None) -> np.ndarray:
        """Return the gradient A w + D a - q + E'beta of the Lagrangian, of shape (n,); w is A'a unless it is given.

        They are also the slacks of the constraints A w + E'beta + D a >= q of the primal problem. At the optimum they
        are non-negative where a = 0, zero between the bounds and non-positive at the cap.
        """
        scores = self.A @ (self.A.T @ a if w is None else w)
        return scores + self.D * a - self.q + beta @ self.E

    @cached_property
    def squared(self) -> bool:
        """Whether D > 0: under the squared hinge each row has a slack coordinate."""
        return bool(self.D.any())

    @property
    def scaled_weights(self) -> np.ndarray:
        """Sample weights times scale^2, with which a problem on the rows of A has c and D; soft margin only."""
        if self.problem.loss == "hinge":
            return self.c / self.problem.C
        return 0.5 / (self.problem.C * self.D)

    def primal(self, w: np.ndarray, beta: np.ndarray | None = None) -> tuple[np.ndarray, float]:
        """Return (w, b) in the problem's own units, from w in units of the program.

        b is given by the weight of the constant coordinate if there is one; by `beta` for the free intercept of a soft
        margin, corrected for the centring of columns; else it is 0.
        """
        w = (w if self.basis is None else self.basis.expand(w)) / self.scale
        if self.problem.rho:
            return w[:-1], float(w[-1]) * self.problem.rho
        if beta is None or self.problem.hard or not self.problem.free:
            return w, 0.0
        return w, float(beta[0] - self.shared.shift @ w)

    def scaled_dual(self, alpha: np.ndarray) -> np.ndarray:
        """Return dual variables in units of the program, from the problem's own; those of a hard margin have sum 1."""
        a = alpha * self.scale**2
        return a / a.sum() if self.problem.hard else a

    def dual(self, a: np.ndarray) -> np.ndarray:
        """Return dual variables `a` of the program in the problem's own units, cut at their caps."""
        return np.minimum(a / self.scale**2, self.caps)


class SharedRows:
    """Rows without labels, shared by the programs of several classes: arrays that need no labels are computed once.

    Columns far from 0 are centred if the intercept is free; wide rows are centred when their products lose digits.
    Sparse rows stay sparse where their dense copy would be far larger than their entries. They are wide, and only their
    products and linear combinations are computed.

    Parameters
    ----------
    problem : Problem
    X : ndarray or CSR matrix of shape (n, d)
    square : ndarray of shape (n,), default=None
        |x_i|^2, if it has been computed.

    Attributes
    ----------
    d : int
        Number of columns, the constant coordinate included.
    shift : ndarray
        The means that are subtracted from the columns of X; 0 for columns that are not centred.
    """

    def __init__(self, problem: Problem, X: Any, square: np.ndarray | None = None) -> None:
        if sp.issparse(X) and may_be_dense(X):
            X = X.toarray()
        X = X.astype(float) if sp.issparse(X) else np.asarray(X, dtype=float)
        self.problem, self.X, self.n, self.d = problem, X, X.shape[0], X.shape[1] + bool(problem.rho)
        self.shift, self.wide = np.zeros(X.shape[1]), is_wide(X.shape[0], self.d)
        self._given, self._square = X, square
        # by scale; two threads may compute the same entry
        self._scaled: dict[float, np.ndarray] = {}
        self._centred: dict[float, CentredRows] = {}
        self._products: np.ndarray | None = None
        if problem.free and not self.wide:
            self._centre()

    def _centre(self) -> None:
        """Subtract the mean of columns whose deviations are at most MAX_DEVIATION times their largest entry.

        A shift changes no sum alpha_i y_i x_i of balanced dual variables, and it reduces rounding. Of sparse rows only
        columns with an entry in every row are shifted, so that the sparsity pattern is kept.
        """
        X, sparse = self._given, sp.issparse(self._given)  # two threads may run this: both compute the same
        columns = np.arange(X.shape[1])
        if sparse:
            columns = np.flatnonzero(np.bincount(X.indices, minlength=X.shape[1]) == self.n)
        if not columns.size:
            return
        some = X[:, columns].toarray() if sparse else X
        top, bottom, mean = some.max(axis=0), some.min(axis=0), some.mean(axis=0)
        off = np.maximum(top - mean, mean - bottom) <= MAX_DEVIATION * np.maximum(top, -bottom)
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
    def unit(self) -> float:
        """The root mean square length of the rows, the constant coordinate included; 1 for rows of zeros."""
        square = row_squares(self.X) if self._square is None else self._square
        return float(np.hypot(np.sqrt(square.mean()), self.problem.rho)) or 1.0

    def scaled(self, scale: float) -> np.ndarray:
        """Return the rows (x_i, rho) / scale, of shape (n, d), without rho where it is 0."""
        if scale not in self._scaled:
            self._scaled[scale] = with_constant_column(self.X, self.problem.rho) * (1.0 / scale)
        return self._scaled[scale]

    def centred(self, scale: float) -> np.ndarray | CentredRows:
        """Return the rows of `scaled`, as CentredRows if they are small: no thread writes to small ones."""
        rows = self.scaled(scale)
        if not is_small_dense(rows):
            return rows
        if scale not in self._centred:
            problem = replace(self.problem, intercept="free" if self.problem.free else "none")
            self._centred[scale] = centred_rows(problem, rows)
        return self._centred[scale]

    def products(self) -> np.ndarray:
        """Return X X' of wide rows, of shape (n, n); columns are centred where the mean row dominates the products."""
        if self._products is None:
            found = _products(self.X)
            total = np.trace(found)
            # sum |x_i - mean|^2 = trace - n mean(X X'); "not >=" also holds for nan, when squares overflow
            cancels = not total - self.n * found.mean() >= MAX_SPREAD * total
            if self.problem.free and cancels:
                self._centre()
                found = _products(self.X) if self.shift.any() else found
            self._products = found
        return self._products


def is_wide(n: int, d: int) -> bool:
    """Return whether to replace n rows of d columns by their n coordinates in a basis of their span."""
    return d > max(n, MAX_NARROW_COLUMNS)


class SpanBasis:
    """An orthonormal basis of the span of wide rows A: A' L^-T, where L L' = A A'. This basis is not stored.

    The Cholesky factor has half of the digits. Where a pivot is smaller than MIN_PIVOT, the basis is an orthogonal
    factor of A', with all digits. For sparse rows that factor would be dense; with the eigenvectors of the products,
    A A' = V diag(s^2) V', their basis is A' V diag(1 / s), over the singular values s that are not rounding.

    Parameters
    ----------
    X : ndarray or CSR matrix of shape (n, d)
        Rows whose squares do not overflow.
    factors : ndarray of shape (n,), default=None
        Row i of A is factors[i] (x_i, constant). None: ones.
    constant : float, default=0
        The constant coordinate; 0: there is none.
    products : ndarray of shape (n, n), default=None
        X X', if it has been computed.

    Attributes
    ----------
    coefficients : ndarray of shape (n, rank)
        The coordinates of the rows of A in the basis.
    orthogonal : ndarray of shape (d, rank) or None
        The basis, where it is an orthogonal factor.
    """

    def __init__(
        self,
        X: np.ndarray,
        factors: np.ndarray | None = None,
        constant: float = 0.0,
        products: np.ndarray | None = None,
    ) -> None:
        self._X, self._constant = X, constant
        self.orthogonal: np.ndarray | None = None
        self._factors = factors = np.ones(X.shape[0]) if factors is None else factors
        products = _products(X) if products is None else products
        products = (products + constant * constant) * factors * factors[:, None]
        L, failed = _linalg.lapack.dpotrf(products, lower=True, clean=True)
        self._combine = lambda w: _linalg.lapack.dtrtrs(L, w, lower=1, trans=1)[0]
        self.coefficients, pivots = L, np.diag(L)
        if not failed and pivots.min() > MIN_PIVOT * pivots.max():
            return
        if sp.issparse(X):
            squares, V = _linalg.eigh(products, check_finite=False)
            kept = squares > EIGENVALUE_ROUNDING * squares.size * squares[-1]
            s, V = np.sqrt(squares[kept]), V[:, kept]
            self.coefficients, self._combine = V * s, lambda w: (V / s) @ w
        else:
            A = with_constant_column(X, constant) * factors[:, None]
            self.orthogonal, R = _linalg.qr(A.T, mode="economic", check_finite=False)
            self.coefficients = np.ascontiguousarray(R.T)

    def expand(self, w: np.ndarray) -> np.ndarray:
        """Return the vector of shape (d,) whose coordinates in the basis are w, of shape (rank,)."""
        if self.orthogonal is not None:
            return self.orthogonal @ w
        a = self._combine(w) * self._factors
        return np.append(a @ self._X, self._constant * a.sum()) if self._constant else a @ self._X


def _products(X: Any) -> np.ndarray:
    """Return X X', of shape (n, n)."""
    if sp.issparse(X):
        return np.ascontiguousarray((X @ X.T).toarray())
    return X @ X.T


def quadratic(problem: Problem, X: Any, y: np.ndarray, weights: np.ndarray) -> Quadratic:
    """Return the program of a problem.

    Parameters
    ----------
    problem : Problem
    X : ndarray or CSR matrix of shape (n, d), or SharedRows
    y : ndarray of shape (n,), entries -1.0 and 1.0
    weights : ndarray of shape (n,), positive
        Sample weights.
    """
    shared, n, basis = X if isinstance(X, SharedRows) else SharedRows(problem, X), y.size, None
    # before the unit, which depends on the lengths of the rows: this may centre columns
    products = shared.products() if shared.wide else None
    caps = problem.caps(weights)
    scale = shared.unit
    if products is not None:  # w is a combination of the rows
        basis = SpanBasis(shared.X, factors=y / scale, constant=problem.rho, products=products)
    with np.errstate(over="ignore"):
        D = np.minimum(problem.delta2(weights) / scale**2, 1.0 / MIN_CAP)
    if problem.hard:
        E = np.array([y > 0, y < 0] if problem.free else [np.ones(n)], dtype=float)
        e, q, c = np.full(len(E), 1.0 / len(E)), np.zeros(n), np.full(n, np.inf)
    else:
        E = y[None, :] if problem.free else np.zeros((0, n))
        e, q, c = np.zeros(len(E)), np.ones(n), np.maximum(caps * scale**2, MIN_CAP)
        c = np.where(c > MAX_CAP, np.inf, c)
    return Quadratic(D, q, E, e, c, scale, problem, y, caps, shared, basis)
