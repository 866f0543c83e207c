"""Orthogonal factors of the linear systems of the active-set method: a pivoted QR factor, and a null-space basis."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.linalg

# A pivot up to RANK max(m, k) times the largest counts as rounding, for a matrix of m rows and k columns. The factor is
# a few hundred times the rounding of float64: a larger one drops columns that are only nearly dependent.
RANK = 1e-13

_linalg: Any = scipy.linalg  # whose annotations are unions of all cases


class PivotedQR:
    """The factors of B P = Q R, without the columns whose pivot is rounding; P orders columns by their pivots.

    Parameters
    ----------
    B : ndarray of shape (m, k)

    Attributes
    ----------
    rank : int
        Number of columns that are kept.
    Q : ndarray of shape (m, rank)
        Orthonormal columns.
    """

    def __init__(self, B: np.ndarray) -> None:
        self.Q, self._R, self._order = _linalg.qr(B, mode="economic", pivoting=True, check_finite=False)
        pivots = np.abs(np.diag(self._R))
        floor = RANK * max(B.shape) * max(float(pivots.max(initial=0.0)), 1e-300)
        self.rank = int(np.count_nonzero(pivots > floor))
        self.Q, self._R = self.Q[:, : self.rank], self._R[: self.rank, : self.rank]

    def solve_transposed(self, right: np.ndarray) -> np.ndarray:
        """Return R'^-1 P' right, of shape (rank,); `right` has shape (k,)."""
        return _linalg.solve_triangular(self._R, right[self._order[: self.rank]], trans=1, check_finite=False)

    def solve(self, z: np.ndarray) -> np.ndarray:
        """Return P R^-1 z, of shape (k,), with 0 for the dropped columns; `z` has shape (rank,)."""
        out = np.zeros(self._order.size)
        out[self._order[: self.rank]] = _linalg.solve_triangular(self._R, z, check_finite=False)
        return out


class DisjointEquations:
    """Equations E x = e, no two of which have an unknown in common, and an orthonormal basis N of the null space of E.

    One Householder reflection for each equation takes its row to a coordinate axis; the reflections commute, as they
    act on different coordinates. N is the product of the reflections without the columns of these axes. Rows of zeros
    have no reflection.

    Parameters
    ----------
    E : ndarray of shape (m, k)
    """

    def __init__(self, E: np.ndarray) -> None:
        self._E, squares = E, (E * E).sum(axis=1)
        self._squares = np.where(squares > 0.0, squares, 1.0)
        self._normals = E[squares > 0.0] / np.sqrt(squares[squares > 0.0, None])
        # without unknowns no row has a reflection, and argmax raises
        self._axes = np.abs(self._normals).argmax(axis=1) if self._normals.size else np.zeros(0, int)
        # unit row r and its largest coordinate j: the reflection I - 2 v v' with v = (r + sign(r_j) e_j) / |.|
        places = np.arange(self._axes.size), self._axes
        self._normals[places] += np.where(self._normals[places] < 0.0, -1.0, 1.0)
        self._normals /= np.linalg.norm(self._normals, axis=1)[:, None]

    def shortest(self, e: np.ndarray) -> np.ndarray:
        """Return the x of least norm with E x = e."""
        return (e / self._squares) @ self._E

    def multipliers(self, x: np.ndarray) -> np.ndarray:
        """Return the beta that minimises |x - E'beta|; 0 for rows of zeros."""
        return (self._E @ x) / self._squares

    def _reflected(self, B: np.ndarray) -> np.ndarray:
        """Return B, of shape (..., k), times the product of all reflections."""
        return B - 2.0 * (B @ self._normals.T) @ self._normals

    def reduce(self, B: np.ndarray) -> np.ndarray:
        """Return B N, for B of shape (..., k)."""
        return np.delete(self._reflected(B), self._axes, axis=-1)

    def expand(self, t: np.ndarray) -> np.ndarray:
        """Return N t, of shape (k,)."""
        x = np.zeros(self._E.shape[1])
        x[np.delete(np.arange(x.size), self._axes)] = t
        return self._reflected(x)
