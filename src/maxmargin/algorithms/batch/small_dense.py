"""Soft margins of a few rows, made dense, at p = 2: the optimum, up to the last digit, in one compiled call.

Where it says that there is none, for want of digits or of steps, others have more of both.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ...engine.small_dense import Desk, hinge, lacking, squared
from ...engine.small_dense import Few as Rows
from ...problem.problem import Problem
from .chunks import Few, room_for_products
from .iterate import Point
from .newton import CLOSE, EASY, EVERY, LONG, LOW, MIDDLE, RISE
from .proximal_point import first_shares, steepest

MANY, NEAR = 10_000, 1e-2  # rows, of which every 16th are solved first; to so small a gap
OF_ALL = 85_000  # rows x coordinates^2, beyond which a matrix of all takes longer than to look for it
SHORT = 35  # steps from 0 that may lead to the end


def optimum(
    problem: Problem,
    few: Few,
    y: np.ndarray,
    weights: np.ndarray,
    enough: float = 0.0,
    interrupted: Callable[[], bool] = lambda: False,
) -> Point | None:
    """(w, b, alpha) at which the optimality conditions hold to rounding; None where they are not met.

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
        A gap at which a point will do.
    interrupted : callable
        Is it time to stop? Asked between compiled calls, of which there are few.
    """
    if problem.loss == "hinge":
        return _hinge(problem, few, y, weights, enough)
    return _squared(problem, few, y, weights, enough, interrupted)


def _squared(
    problem: Problem,
    few: Few,
    y: np.ndarray,
    weights: np.ndarray,
    enough: float,
    interrupted: Callable[[], bool],
) -> Point | None:
    share = few.weighed(weights)
    rows = Rows(few.rows, y, share, few.regular, problem.free)
    z, slack, desk = np.zeros(few.size), np.ones(few.n), None
    if few.n >= MANY:
        some = slice(None, None, EVERY)
        sample = Rows(few.every(EVERY), y[some].copy(), EVERY * share[some], few.regular, problem.free)
        if squared(sample, NEAR, LONG, z, np.ones(sample.y.size), _empty(sample.y.size, few.size))[0]:
            lacking(rows, z, slack)
            desk = _empty(few.n, few.size)
        else:
            z[:] = 0.0
    found, steps = squared(rows, enough, SHORT, z, slack, _desk(few, share) if desk is None else desk)
    if steps == SHORT:
        found = _in_stages(rows, enough, z, slack, interrupted)
    if not found:
        return None
    alpha = np.maximum(slack, 0.0, out=slack)
    alpha *= share
    alpha /= few.unit**2
    return *few.primal(z), alpha


def _in_stages(
    rows: Rows, enough: float, z: np.ndarray, slack: np.ndarray, interrupted: Callable[[], bool]
) -> bool:
    """From 0 along costs that rise, as `newton.newton_points` does where that is too far. (Is the point found?)"""
    z[:], slack[:] = 0.0, 1.0
    total, rise = float(rows.weight.sum()), RISE
    share = min(total**MIDDLE, LOW) / total
    while 0.0 < share < 1.0:
        stage = rows._replace(weight=share * rows.weight)
        found, steps = squared(stage, CLOSE, LONG, z, slack, _empty(slack.size, z.size))
        if not found or interrupted():
            return False
        rise = rise * rise if steps <= EASY else RISE
        share *= rise
    return squared(rows, enough, LONG, z, slack, _empty(slack.size, z.size))[0]


def _hinge(problem: Problem, few: Few, y: np.ndarray, weights: np.ndarray, enough: float) -> Point | None:
    cap = few.weighed(weights)
    if not cap.min() > 0.0:  # in units as large as these
        return None
    near, sigma = first_shares(problem, y, cap)
    z, slack, share = np.zeros(few.size), np.ones(few.n), np.empty(few.n)
    rows = Rows(few.rows, y, cap, few.regular, problem.free)
    if not hinge(rows, cap * y, enough, near, share, sigma, steepest(cap), z, slack, _desk(few, cap)):
        return None
    alpha = np.multiply(cap, share, out=share)
    alpha /= few.unit**2
    return *few.primal(z), alpha


def _desk(few: Few, weight: np.ndarray) -> Desk:
    """Room to work; where many classes begin with all patterns inside, with these inside."""
    desk = _empty(few.n, few.size)
    if few.n * few.size**2 > OF_ALL:
        matrix = few.all_products(weight, np.arange(few.n, dtype=np.uint32))
        desk.matrices[0], desk.vectors[0], desk.marks[1] = matrix, np.diag(matrix), True
    return desk


def _empty(n: int, size: int) -> Desk:
    """Room to work, with none."""
    patterns, places = np.empty((2, n)), np.empty((2, n), np.uint32)
    matrices, vectors = np.zeros((3, size, size)), np.zeros((8, size))
    return Desk(patterns, np.zeros((2, n), bool), places, matrices, room_for_products(n, size), vectors)
