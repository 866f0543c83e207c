"""Points that batch solvers yield, without and with the solver's own estimate of the relative duality gap."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np


class Point(NamedTuple):
    """A primal-dual point: weights w of shape (d,), intercept b and dual variables alpha of shape (n,)."""

    w: np.ndarray
    b: float
    alpha: np.ndarray


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
