"""Soft margins of few dense rows at p = 2: the optimum, to rounding.

The squared hinge is solved by `newton.newton_points` on rows that are kept about their mean (`chunks.Few`), the hinge
by the proximal-point method in one compiled call.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ...engine.small_dense import SmallDense, Workspace, hinge
from ...problem.problem import Problem
from .chunks import Few, room_for_products
from .iterate import Point
from .newton import newton_points
from .proximal_point import first_shares, steepest

# rows x coordinates^2 beyond which the products of all rows, which classes share, are made by BLAS before the call
BLAS_FROM = 85_000


def optimum(
    problem: Problem,
    few: Few,
    y: np.ndarray,
    weights: np.ndarray,
    enough: float = 0.0,
    interrupted: Callable[[], bool] = lambda: False,
) -> Point | None:
    """Return (w, b, alpha) at the end of the solver's way; None where that says nothing of the optimum.

    Parameters
    ----------
    problem : Problem
        A soft margin.
    few : Few
        Its rows.
    y : ndarray of shape (n,), entries -1.0 and 1.0
    weights : ndarray of shape (n,), positive
        Sample weights.
    enough : float, default=0
        A relative gap at which an iterate is returned before the optimum is reached.
    interrupted : callable
        Whether to stop (squared hinge; the hinge is one call).
    """
    if problem.loss == "hinge":
        return _hinge(problem, few, y, weights, enough)
    last = None
    for last in newton_points(problem, few, y, weights, interrupted, enough):
        if last.near:
            break
    return (last.w, last.b, last.alpha) if last is not None and last.gap < np.inf else None


def _hinge(problem: Problem, few: Few, y: np.ndarray, weights: np.ndarray, enough: float) -> Point | None:
    cap = few.weighed(weights)
    if not cap.min() > 0.0:  # in units as large as these
        return None
    near, sigma = first_shares(problem, y, cap)
    z, slack, share = np.zeros(few.size), np.ones(few.n), np.empty(few.n)
    rows = SmallDense(few.rows, y, cap, few.regular, problem.free)
    if not hinge(rows, cap * y, enough, near, share, sigma, steepest(cap), z, slack, _workspace(few, cap)):
        return None
    alpha = np.multiply(cap, share, out=share)
    alpha /= few.unit**2
    return *few.primal(z), alpha


def _workspace(few: Few, weight: np.ndarray) -> Workspace:
    """Return a workspace; where rows are many, with all of them active, as every class begins so."""
    work = _empty(few.n, few.size)
    if few.n * few.size**2 > BLAS_FROM:
        matrix = few.all_products(weight, np.arange(few.n, dtype=np.uint32))
        work.matrices[0], work.vectors[0], work.marks[1] = matrix, np.diag(matrix), True
    return work


def _empty(n: int, size: int) -> Workspace:
    """Return a workspace with no active row."""
    patterns, places = np.empty((2, n)), np.empty((2, n), np.uint32)
    matrices, vectors = np.zeros((3, size, size)), np.zeros((8, size))
    return Workspace(patterns, np.zeros((2, n), bool), places, matrices, room_for_products(n, size), vectors)
