"""Orthogonal factors of the linear systems of the active-set method."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.linalg

RANK = 1e-13  # share of the largest pivot, times rows or columns, below which a pivot is rounding

_linalg: Any = scipy.linalg  # whose annotations are unions of all cases


class PivotedQR:
    """B = Q R P', the columns of B in the order of their pivots, without those whose pivot is rounding."""

    def __init__(self, B: np.ndarray) -> None:
        self.Q, self._R, self._order = _linalg.qr(B, mode="economic", pivoting=True, check_finite=False)
        pivots = np.abs(np.diag(self._R))
        floor = RANK * max(B.shape) * max(float(pivots.max(initial=0.0)), 1e-300)
        self.rank = int(np.count_nonzero(pivots > floor))
        self.Q, self._R = self.Q[:, : self.rank], self._R[: self.rank, : self.rank]

    def solve_transposed(self, right: np.ndarray) -> np.ndarray:
        """Return R'^-1 P' right."""
        return _linalg.solve_triangular(self._R, right[self._order[: self.rank]], trans=1, check_finite=False)

    def solve(self, z: np.ndarray) -> np.ndarray:
        """Return P R^-1 z; 0 for the columns left out."""
        out = np.zeros(self._order.size)
        out[self._order[: self.rank]] = _linalg.solve_triangular(self._R, z, check_finite=False)
        return out


class DisjointEquations:
    """Equations E x = e, no two of which have an unknown in common, and an orthonormal basis of their null space.

    One Householder reflection an equation, all of which commute, takes its row to a coordinate axis; the other
    coordinates are the null space. Rows of zeros are left out.

    Parameters
    ----------
    E : ndarray of shape (m, k)
    """

    def __init__(self, E: np.ndarray) -> None:
        self._E, squares = E, (E * E).sum(axis=1)
        self._squares = np.where(squares > 0.0, squares, 1.0)
        self._normals = E[squares > 0.0] / np.sqrt(squares[squares > 0.0, None])
        self._axes = np.abs(self._normals).argmax(axis=1)
        places = np.arange(self._axes.size), self._axes
        self._normals[places] += np.where(self._normals[places] < 0.0, -1.0, 1.0)
        self._normals /= np.linalg.norm(self._normals, axis=1)[:, None]

    def shortest(self, e: np.ndarray) -> np.ndarray:
        """Return the shortest x with E x = e."""
        return (e / self._squares) @ self._E

    def multipliers(self, x: np.ndarray) -> np.ndarray:
        """Return the coefficients of the combination of equations nearest to x; 0 for rows of zeros."""
        return (self._E @ x) / self._squares

    def _reflected(self, B: np.ndarray) -> np.ndarray:
        """Return B, of shape (..., k), times all reflections."""
        return B - 2.0 * (B @ self._normals.T) @ self._normals

    def reduce(self, B: np.ndarray) -> np.ndarray:
        """Return B, of shape (..., k), times the basis of the null space."""
        return np.delete(self._reflected(B), self._axes, axis=-1)

    def expand(self, t: np.ndarray) -> np.ndarray:
        """Return the x whose coordinates in the basis are t."""
        x = np.zeros(self._E.shape[1])
        x[np.delete(np.arange(x.size), self._axes)] = t
        return self._reflected(x)
