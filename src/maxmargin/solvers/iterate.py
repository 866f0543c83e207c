"""Points that batch solvers yield, without and with the solver's own estimate of the relative duality gap."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from ..problem.problem import Problem


class Point(NamedTuple):
    """A primal-dual point: weights w of shape (d,), intercept b and dual variables alpha of shape (n,)."""

    w: np.ndarray
    b: float
    alpha: np.ndarray

    def restored(self, problem: Problem, unit: float) -> Point:
        """Return this point of a problem on the rows a_i / unit in the units of the rows a_i.

        With an augmented intercept the last entry of w is the weight of the constant coordinate: it becomes b. Where
        the margin is hard, w and alpha have no unit, as they are normalised. Otherwise the costs of the divided rows
        are C s_i unit^power, so that the objective is unit^power times as large.
        """
        w, b, alpha = self
        if problem.hard:
            b *= unit
        else:  # margins w.a_i and the quotients of dual variables and costs stay the same
            w, alpha = w / unit, alpha / unit**problem.power
        return Point(w, b, alpha).without_constant(problem)

    def without_constant(self, problem: Problem) -> Point:
        """Return the point with the weight of the constant coordinate, the last entry of w where there is one, as b."""
        return Point(self.w[:-1], problem.rho * float(self.w[-1]), self.alpha) if problem.rho else self


class Reached(NamedTuple):
    """A primal-dual point (w, b, alpha) with the relative duality gap that the solver computes.

    Attributes
    ----------
    w : ndarray of shape (d,)
    b : float
    alpha : ndarray of shape (n,)
    gap : float
        Relative duality gap, in the solver's arithmetic; inf where the solver has no bound.
    near : bool
        Whether the gap is within the tolerance that was asked for.
    """

    w: np.ndarray
    b: float
    alpha: np.ndarray
    gap: float
    near: bool
