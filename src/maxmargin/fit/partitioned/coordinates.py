"""The weights and the intercept of a linear problem as one vector z, and the scores of rows at z."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ...certificates.bounds import Length, norm_interval
from ...numerics.sums import Plain
from ...problem.problem import Problem


@dataclass(frozen=True)
class Coordinates:
    """The vector z = (w, weight of the constant coordinate), the last entry only where there is an intercept.

    Every row has the constant coordinate `constant`: 1 for a free intercept, its scaling for an augmented one, 0 for
    none. R, the matrix of the penalty 1/2 z'Rz, is diagonal: 1 for each weight, 0 for a free intercept.

    Attributes
    ----------
    problem : Problem
    d : int
        Columns of the rows.
    """

    problem: Problem
    d: int

    @property
    def constant(self) -> float:
        """The constant coordinate of every row; 0 where there is no intercept."""
        return 1.0 if self.problem.free else self.problem.rho

    @property
    def size(self) -> int:
        """The number of entries of z."""
        return self.d + (self.constant > 0.0)

    @property
    def regular(self) -> np.ndarray:
        """The diagonal of R, of shape (size,)."""
        found = np.ones(self.size)
        found[self.d :] = 0.0 if self.problem.free else 1.0
        return found

    def vector(self, w: np.ndarray, b: float) -> np.ndarray:
        """Return z of a weight vector and an intercept."""
        return np.append(w, b / self.constant) if self.constant else np.array(w, dtype=float)

    def point(self, z: np.ndarray) -> tuple[np.ndarray, float]:
        """Return the weight vector and the intercept of z."""
        return z[: self.d].copy(), self.constant * float(z[-1]) if self.constant else 0.0

    def length(self, z: np.ndarray) -> Length:
        """Return |w| in the dual norm, with the weight of an augmented intercept, and an interval that holds it."""
        return norm_interval(self.problem.weights(*self.point(z)), self.problem.q)

    def scores(self, X: Any, z: np.ndarray) -> np.ndarray:
        """Return w.x_i + b of rows: shape (n,)."""
        return Plain.scores(X, *self.point(z))

    def combine(self, X: Any, c: np.ndarray) -> np.ndarray:
        """Return sum c_i x_i of rows with their constant coordinate: shape (size,)."""
        found = Plain.combine(X, c)
        return np.append(found, self.constant * Plain.total(c)) if self.constant else found

    def extended(self, X: Any) -> np.ndarray:
        """Return rows as a dense matrix with the constant coordinate: shape (n, size)."""
        dense = X if isinstance(X, np.ndarray) else X.toarray()
        dense = np.asarray(dense, dtype=float)
        if not self.constant:
            return dense
        return np.column_stack([dense, np.full(dense.shape[0], self.constant)])

    def products(self, X: Any, c: np.ndarray) -> np.ndarray:
        """Return sum c_i x_i x_i' of rows with their constant coordinate, c being non-negative: (size, size)."""
        used = np.flatnonzero(c > 0.0)
        rows = self.extended(X[used]) * np.sqrt(c[used])[:, None]
        return rows.T @ rows
