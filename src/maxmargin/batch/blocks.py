"""Rows of data some at a time, about their mean, in units in which they are of length one: nothing is copied whole."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import scipy.sparse as sp

from ..arithmetic import Plain
from ..problems import Problem

BYTES = 2**20  # of rows that are looked at together


class Blocks:
    """Rows (x - mean, constant) in float64, some at a time; in units in which they are of length one on average.

    Parameters
    ----------
    X : ndarray or CSR matrix of shape (n, d)
    problem : Problem
        A free intercept does not see a shift of the columns; numbers do. Its constant is one in any units.

    Attributes
    ----------
    unit : float
    units : ndarray of shape (size,)
        Of each column.
    """

    def __init__(self, problem: Problem, X: Any) -> None:
        self.X, (self.n, self.d) = X, X.shape
        self.constant = 1.0 if problem.free else problem.rho
        self.size = self.d + (self.constant > 0.0)
        self.mean = np.zeros(self.d)
        if problem.free:
            self.mean = Plain.combine(X, np.full(self.n, 1.0 / self.n))
        self.step = max(1, min(self.n, BYTES // (8 * self.size)))
        self.unit = (self._square() / self.n + problem.rho**2) ** 0.5 or 1.0
        self.units = np.full(self.size, self.unit)
        if problem.free:
            self.units[-1] = 1.0

    def __iter__(self) -> Iterator[tuple[slice, np.ndarray]]:
        """(places, rows), not yet in these units; the rows are overwritten by the next ones."""
        room = np.empty((self.step, self.size))
        for places in self.parts():
            some = self.X[places]
            rows = room[: some.shape[0]]
            np.subtract(some.toarray() if sp.issparse(some) else some, self.mean, out=rows[:, : self.d])
            rows[:, self.d :] = self.constant
            yield places, rows

    def parts(self) -> Iterator[slice]:
        """The places of the rows that are looked at together."""
        return (slice(first, min(first + self.step, self.n)) for first in range(0, self.n, self.step))

    def _square(self) -> float:
        """The sum of |x - mean|^2."""
        if not sp.issparse(self.X):
            return sum(float(np.vdot(rows[:, : self.d], rows[:, : self.d])) for _, rows in self)
        parts = np.array_split(self.X.data, 1 + 8 * self.X.nnz // BYTES)
        square = sum(float(np.vdot(part, part)) for part in (part.astype(float) for part in parts))
        return max(square - self.n * float(self.mean @ self.mean), 0.0)

    def scores(self, z: np.ndarray, places: slice) -> np.ndarray:
        """z times these rows."""
        w, b = self.primal(z)
        return np.asarray(self.X[places] @ w, dtype=float) + b

    def combine(self, c: np.ndarray, places: slice) -> np.ndarray:
        """c, of shape (m, rows), times these rows."""
        some, total = self.X[places], c.sum(axis=1)
        out = np.empty((c.shape[0], self.size))
        out[:, : self.d] = ((some.T @ c.T).T if sp.issparse(some) else c @ some) - np.outer(total, self.mean)
        out[:, self.d :] = self.constant * total[:, None]
        return out / self.units

    def primal(self, z: np.ndarray) -> tuple[np.ndarray, float]:
        """(w, b) of the problem's own units."""
        z = z / self.units
        w, rest = z[: self.d], z[self.d :]
        return w, float(self.constant * rest.sum() - self.mean @ w)
