"""A problem on rows that are centred and divided by the longest row, for solvers with absolute scales."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from ...numerics.norms import row_norms
from ...numerics.sparse_columns import may_be_dense
from ...problem.problem import Problem
from ..batch.iterate import Point
from ..linear_algebra.systems import signed_rows


class UnitRows(NamedTuple):
    """The rows y_i x_i, without the mean of the columns where the intercept is free, divided by `unit`.

    Attributes
    ----------
    problem : Problem
    A : ndarray or CSR matrix of shape (n, d), or (n, d + 1) with a constant coordinate
        Sparse rows whose dense copy would be far larger than their entries stay sparse, and are not centred.
    costs : ndarray of shape (n,)
        C s_i unit^power, the costs of the divided rows; ones for the hard margin.
    unit : float
        The largest p-norm of a row.
    mean : ndarray of shape (d,)
        The mean of the rows, which was subtracted from the rows x_i.
    """

    problem: Problem
    A: Any
    costs: np.ndarray
    unit: float
    mean: np.ndarray

    @classmethod
    def of(cls, problem: Problem, X: Any, y: np.ndarray, weights: np.ndarray) -> UnitRows:
        """Return the rows of a problem on X, of shape (n, d), with labels -1.0 and 1.0 and positive sample weights."""
        mean = np.zeros(X.shape[1])
        if may_be_dense(X):
            X = np.asarray(X.toarray() if sp.issparse(X) else X, dtype=float)
            if problem.free:
                mean = X.mean(axis=0)
            X = X - mean
        A = signed_rows(problem, X, y)
        unit = float(row_norms(A, problem.p).max(initial=0.0)) or 1.0
        with np.errstate(over="ignore"):  # costs of inf end the iterations
            costs = (
                np.ones(y.size) if problem.hard else problem.C * weights * np.float64(unit) ** problem.power
            )
        return cls(problem, A / unit, costs, unit, mean)

    def restored(self, point: Point) -> Point:
        """Return a point of this problem in the units of X."""
        w, b, alpha = point.restored(self.problem, self.unit)
        return Point(w, b - float(self.mean @ w), alpha)
