"""The problem of a step: rows near the margin exactly, all others by a quadratic function.

    minimise  1/2 z'Qz - p'z + sum over gathered rows of C s_i loss(y_i x_i.z)

Q and p hold the penalty, the Taylor polynomial of the smoothed losses of all other rows, and a proximal term that
limits the step. The dual variables of the gathered rows minimise 1/2 (p + B'a)'Q^-1 (p + B'a) + 1/2 a'Da - 1'a within
their caps, the rows of B being y_i x_i: a quadratic program with as many columns as z has entries, which interior
points solve in 10 to 30 steps for every C.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from ...algorithms.batch.interior_point import System, iterates
from .coordinates import Coordinates


@dataclass(frozen=True, eq=False)
class LocalModel:
    """The data of the problem; the arrays are those of the module's docstring.

    Attributes
    ----------
    Q : ndarray of shape (size, size)
        Positive definite.
    p : ndarray of shape (size,)
    rows : ndarray of shape (k, size)
        The rows y_i x_i of B.
    D, caps : ndarray of shape (k,)
        1 / (2 C s_i) of the squared hinge, and C s_i of the hinge; 0 and inf for the other loss.
    """

    Q: np.ndarray
    p: np.ndarray
    rows: np.ndarray
    D: np.ndarray
    caps: np.ndarray

    def with_proximal_term(self, weight: float, metric: np.ndarray, centre: np.ndarray) -> LocalModel:
        """Add weight / 2 (z - centre)' metric (z - centre) to the objective, but for a constant."""
        Q, p = self.Q + weight * metric, self.p + weight * (metric @ centre)
        return LocalModel(Q, p, self.rows, self.D, self.caps)

    def solve(self, accuracy: float, interrupted: Callable[[], bool]) -> tuple[np.ndarray, np.ndarray] | None:
        """Return z, of shape (size,), and the dual variables of the gathered rows, of shape (k,); None if stopped.

        The iterations end once Q z = p + B'a up to 1e-6 of the largest entry of Q z and p, and the duality gap is
        `accuracy`. A tighter equation costs steps: any dual variables within their caps give a valid bound of the whole
        problem.

        Parameters
        ----------
        accuracy : float
            Duality gap, in the unit of the objective, at which the iterations end.
        interrupted : callable
            Whether to stop.
        """
        if not self.D.size:
            return np.linalg.solve(self.Q, self.p), np.zeros(0)
        best = None
        for current in iterates(_ModelSystem(self), interrupted):
            best = current.point
            scale = max(float(np.abs(side).max()) for side in (self.p, self.Q @ best.z))
            stationary = float(np.abs(current.stationarity).max(initial=0.0)) <= 1e-6 * scale
            if stationary and best.complementarity <= accuracy:
                break
        return None if best is None or interrupted() else (best.z, best.a)


class _ModelSystem(System):
    """The quadratic program of a local model for interior points."""

    def __init__(self, model: LocalModel) -> None:
        self.model = model
        self.D, self.c, self.q = model.D, model.caps, np.ones(model.D.size)
        self.lengths, self.e, self.regular = np.ones(model.D.size), -model.p, np.ones(model.p.size)

    def scores(self, z: np.ndarray) -> np.ndarray:
        return self.model.rows @ z

    def combine(self, a: np.ndarray) -> np.ndarray:
        return self.model.rows.T @ a

    def penalised(self, z: np.ndarray) -> np.ndarray:
        return self.model.Q @ z

    def matrix(self, weights: np.ndarray) -> np.ndarray:
        weighted = self.model.rows * np.sqrt(weights)[:, None]
        return weighted.T @ weighted + self.model.Q


def regularised(coordinates: Coordinates, matrix: np.ndarray) -> np.ndarray:
    """Return R plus a matrix of shape (size, size).

    R is 0 for a free intercept. 1e-12 of the diagonal entry, or of 1 where that is less, is added there, so that the
    sum can be factorised where the matrix has no curvature in this direction. It is small beside any other curvature.
    """
    found = matrix + np.diag(coordinates.regular)
    if coordinates.problem.free:
        found[-1, -1] += 1e-12 * max(float(found[-1, -1]), 1.0)
    return found
