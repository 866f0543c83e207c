"""Wide rows by their coordinates in an orthonormal basis of their span, in which w lies at p = 2."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import scipy.linalg
import scipy.sparse as sp

from ..numerics.columns import with_constant_column
from ..problem.problem import Problem

_linalg: Any = scipy.linalg  # typed as Any: its annotations are unions of all cases


class WideRows:
    """The coordinates L of the rows A in the basis A' L^-T, where L L' = A A'; the basis is not stored.

    The Cholesky factor has half of the digits. Where a pivot is small, the basis is an orthogonal factor of A', with
    all digits. For sparse rows that factor would be dense; with the eigenvectors of the products,
    A A' = V diag(s^2) V', their basis is A' V diag(1 / s), over the singular values s that are not rounding.

    Parameters
    ----------
    problem : Problem
    X : ndarray or CSR matrix of shape (n, d)

    Attributes
    ----------
    problem : Problem
        The problem on the coordinates: an augmented intercept is one of them.
    coordinates : ndarray of shape (n, rank)
    mean : ndarray of shape (d,)
        What was subtracted from the rows.
    """

    def __init__(self, problem: Problem, X: Any) -> None:
        self.problem = replace(problem, intercept="free" if problem.free else "none")
        self._rho, self._X, self.mean = problem.rho, X.astype(float), np.zeros(X.shape[1])
        products = self._products()
        total = float(np.trace(products))
        # sum |x_i - mean|^2 = trace - n mean(X X'); above a tenth of sum |x_i|^2 centring gains less than a digit
        spread = total - len(products) * products.mean()
        if problem.free and not sp.issparse(X) and not spread >= 0.1 * total:
            self.mean = self._X.mean(axis=0)
            self._X = self._X - self.mean
            products = self._products()
        L, failed = _linalg.lapack.dpotrf(products, lower=True, clean=True)
        self._combine = lambda w: _linalg.lapack.dtrtrs(L, w, lower=1, trans=1)[0]
        self._basis, self.coordinates, pivots = None, L, np.diag(L)
        if not failed and pivots.min() > 1e-4 * pivots.max():  # with a smaller pivot too few digits are left
            return
        if sp.issparse(X):
            squares, V = _linalg.eigh(products, check_finite=False)
            kept = squares > 1e-15 * squares.size * squares[-1]
            s, V = np.sqrt(squares[kept]), V[:, kept]
            self.coordinates, self._combine = V * s, lambda w: (V / s) @ w
        else:
            A = with_constant_column(self._X, self._rho)
            self._basis, R = _linalg.qr(A.T, mode="economic", check_finite=False)
            self.coordinates = np.ascontiguousarray(R.T)

    def _products(self) -> np.ndarray:
        """Return A A'."""
        found = self._X @ self._X.T
        return (found.toarray() if sp.issparse(found) else found) + self._rho**2

    def primal(self, w: np.ndarray, b: float) -> tuple[np.ndarray, float]:
        """Return the (w, b) of the problem on X, from the weights of the coordinates and the free intercept."""
        if self._basis is None:
            a = self._combine(w)
            w, last = a @ self._X, self._rho * float(a.sum())
        else:
            w = self._basis @ w
            w, last = (w[:-1], float(w[-1])) if self._rho else (w, 0.0)
        return w, b + self._rho * last - float(self.mean @ w)

    def reduced(self, w: np.ndarray, b: float) -> tuple[np.ndarray, float]:
        """Return the weights of the coordinates with the scores of a w in their span, and the free intercept."""
        shift = float(self.mean @ w)
        scores = self._X @ w + (0.0 if self.problem.free else b)
        w = np.linalg.lstsq(self.coordinates, scores, rcond=None)[0]
        return w, b + shift if self.problem.free else 0.0
