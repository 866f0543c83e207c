"""Orthogonal factors by LAPACK itself: SciPy's wrappers take longer than a small matrix does."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.linalg import lapack

BLOCK = 64  # columns that LAPACK takes together
NONE = 1e-13  # share of the largest pivot, for each row or column, that is rounding

_lapack: Any = lapack


def shortest(A: np.ndarray, right: np.ndarray) -> np.ndarray:
    """The shortest x of those of the least |A x - right|."""
    (rows, columns), eps = A.shape, float(np.finfo(float).eps)
    b, order = np.zeros((max(rows, columns), 1), order="F"), np.zeros(columns, np.int32)
    b[:rows, 0] = right
    room = min(rows, columns) + (columns + 1) * BLOCK
    return _lapack.dgelsy(A, b, order, eps, room, overwrite_b=True)[1][:columns, 0]


class Pivoted:
    """B = Q R P' with the columns of B in the order in which they add most, without those that add rounding alone."""

    def __init__(self, B: np.ndarray) -> None:
        n = B.shape[1]
        found, order, factors, _, _ = _lapack.dgeqp3(
            np.array(B, order="F"), (n + 1) * BLOCK, overwrite_a=True
        )
        diagonal = np.abs(np.diag(found))
        self.rank = int(
            np.sum(diagonal > NONE * max(B.shape) * max(float(diagonal.max(initial=0.0)), 1e-300))
        )
        self._R = found[: self.rank, : self.rank].copy(order="F")
        self._order, self._columns = order[: self.rank] - 1, n
        self.Q = _lapack.dorgqr(found[:, : self.rank], factors[: self.rank], n * BLOCK)[0]

    def under(self, right: np.ndarray) -> np.ndarray:
        """R'^-1 P' right."""
        if not self.rank:
            return np.zeros(0)
        return _lapack.dtrtrs(self._R, right[self._order], trans=1)[0]

    def over(self, z: np.ndarray) -> np.ndarray:
        """P R^-1 z; 0 for what was left out."""
        out = np.zeros(self._columns)
        if self.rank:
            out[self._order] = _lapack.dtrtrs(self._R, z)[0]
        return out


class Disjoint:
    """Equations E x = e, no two of which have an unknown in common: what meets them, and what is left free."""

    def __init__(self, E: np.ndarray) -> None:
        self._E = E
        self._squares = np.einsum("ij,ij->i", E, E)
        some = self._squares > 0.0
        self._squares[~some] = 1.0
        self.count = np.count_nonzero(some)
        if self.count:
            columns = np.array(E[some].T, order="F")
            self._reflections, self._factors, _, _ = _lapack.dgeqrf(
                columns, self.count * BLOCK, overwrite_a=True
            )

    def least(self, e: np.ndarray) -> np.ndarray:
        """The shortest x."""
        return (e / self._squares) @ self._E

    def multipliers(self, x: np.ndarray) -> np.ndarray:
        """Of the combination of the equations that is nearest to x; 0 for those without an unknown."""
        return (self._E @ x) / self._squares

    def within(self, B: np.ndarray) -> np.ndarray:
        """B times an orthonormal basis of the x that change nothing."""
        if not self.count:
            return B
        B = np.array(B, order="F")
        made, _, _ = _lapack.dormqr(
            "R", "N", self._reflections, self._factors, B, len(B) * BLOCK, overwrite_c=True
        )
        return made[:, self.count :]

    def out(self, t: np.ndarray) -> np.ndarray:
        """The x with these coordinates in that basis."""
        if not self.count:
            return t
        x = np.zeros((self._E.shape[1], 1), order="F")
        x[self.count :, 0] = t
        return _lapack.dormqr("L", "N", self._reflections, self._factors, x, BLOCK)[0][:, 0]
