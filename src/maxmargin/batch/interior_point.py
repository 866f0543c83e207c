"""Mehrotra's predictor-corrector for the small quadratic program.

References
----------
S. Mehrotra, "On the implementation of a primal-dual interior point method", SIAM J. Optim. 2, 1992;
M. C. Ferris, T. S. Munson, "Interior-point methods for massive support vector machines", SIAM J. Optim. 13,
2002.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.linalg

from .quadratic import Quadratic

MOST = 80  # steps; 15 to 30 are usual
CLOSE = 1e-13  # complementarity, relative, at which nothing more is to be had
FLAT = 1e-12  # and the same for the gradient
BACK = 0.995  # share of the way to the boundary
SHORT = 1e-10  # a step that is none
DENSE = 200  # up to so many rows, rows are eliminated: more accurate than columns
REFINE, LATE = 2, 1e-2  # corrections of each solution, once the error is below this
TINY = 1e-30  # a squared margin, R = 1, that is zero

Solver = Callable[[np.ndarray, np.ndarray], tuple[np.ndarray, np.ndarray]]

_linalg: Any = scipy.linalg  # its annotations speak of every case at once


@dataclass(frozen=True)
class Iterate:
    """A point inside: weights a, multipliers beta of the equations, u of a >= 0, v of a <= c.

    `room` is c - a, kept apart since the difference would lose its last digits. Where there is no cap, v is 0
    and room is 1.
    """

    a: np.ndarray
    beta: np.ndarray
    u: np.ndarray
    v: np.ndarray
    room: np.ndarray
    capped: np.ndarray

    def complementarity(self) -> float:
        """The sum of all products that are zero at the optimum."""
        return float(self.a @ self.u + self.room @ self.v)

    def moved(self, t: float, step: Step) -> Iterate:
        """The point t steps on."""
        return Iterate(
            self.a + t * step.a,
            self.beta + t * step.beta,
            self.u + t * step.u,
            self.v + t * step.v,
            np.where(self.capped, self.room - t * step.a, 1.0),
            self.capped,
        )

    def longest(self, step: Step) -> float:
        """How many steps, at most one, keep everything positive."""
        t = 1.0
        capped = self.capped
        for x, dx in (
            (self.a, step.a),
            (self.u, step.u),
            (self.room[capped], -step.a[capped]),
            (self.v[capped], step.v[capped]),
        ):
            falling = dx < 0.0
            if falling.any():
                t = min(t, BACK * float(np.min(-x[falling] / dx[falling])))
        return t


@dataclass(frozen=True)
class Step:
    """A direction, in the same parts."""

    a: np.ndarray
    beta: np.ndarray
    u: np.ndarray
    v: np.ndarray


def interior_point(qp: Quadratic) -> Iterate:
    """The best point found: 1e-10 from the optimum where numbers allow."""
    point = _start(qp)
    pairs = point.a.size + np.count_nonzero(point.capped)
    best, least = point, np.inf
    for _ in range(MOST):
        gradient = qp.slacks(point.a, point.beta) - point.u + point.v
        broken = qp.E @ point.a - qp.e
        error, done = _error(qp, point, gradient, broken)
        if not np.isfinite(error) or error > 1e6 * max(least, 1e-9):
            break
        if error < least:
            best, least = point, error
        if done:
            break
        T = qp.D + point.u / point.a + point.v / point.room
        try:
            newton = _newton(qp, T, REFINE if error < LATE else 0)
        except np.linalg.LinAlgError:
            break
        mu = point.complementarity() / pairs
        predictor = _direction(point, gradient, broken, newton, 0.0, 0.0)
        after = point.moved(point.longest(predictor), predictor).complementarity() / pairs
        if not np.isfinite(after):
            break
        centre = mu * (after / mu) ** 3
        second = predictor.a * predictor.u, -predictor.a * predictor.v
        step = _direction(point, gradient, broken, newton, centre - second[0], centre - second[1])
        t = point.longest(step)
        if t < SHORT:
            break
        point = point.moved(t, step)
    return best


def _start(qp: Quadratic) -> Iterate:
    capped = np.isfinite(qp.c)
    c = np.where(capped, qp.c, 1.0)
    a = np.where(capped, np.minimum(0.5 * c, 1.0), 1.0)
    if qp.e.any():  # begin on the equations of the hard margin
        a = qp.E.T @ (qp.e / qp.E.sum(axis=1))
    beta = np.zeros(len(qp.e))
    u = np.maximum(1.0, np.abs(qp.slacks(a, beta)))
    return Iterate(a, beta, u, np.where(capped, u, 0.0), np.where(capped, c - a, 1.0), capped)


def _error(qp: Quadratic, point: Iterate, gradient: np.ndarray, broken: np.ndarray) -> tuple[float, bool]:
    """How far from optimal, relative, and whether nothing more is to be had."""
    # in units of a margin of one; for the hard margin, with weights of sum one, that is |w|^2
    w = qp.A.T @ point.a
    one = max(float(w @ w), TINY) if qp.problem.hard else 1.0
    products = point.complementarity() / (one + abs(float(qp.q @ point.a)))
    slope = float(np.abs(gradient).max()) / one
    equations = float(np.abs(broken).max(initial=0.0)) / (1.0 + float(point.a.max()))
    return products + slope + equations, products <= CLOSE and slope < FLAT


def _direction(
    point: Iterate,
    gradient: np.ndarray,
    broken: np.ndarray,
    newton: Solver,
    target: float | np.ndarray,
    target_room: float | np.ndarray,
) -> Step:
    """The step after which a u = target and (c - a) v = target_room, linearised."""
    ru = target - point.a * point.u
    rv = np.where(point.capped, target_room - point.room * point.v, 0.0)
    a, beta = newton(-gradient + ru / point.a - rv / point.room, -broken)
    v = np.where(point.capped, (rv + point.v * a) / point.room, 0.0)
    return Step(a, beta, (ru - point.u * a) / point.a, v)


def _newton(qp: Quadratic, T: np.ndarray, refinements: int) -> Solver:
    """Solve (A A' + T) x + E' z = r, E x = s: by rows or by columns, whichever are fewer."""
    n, d = qp.shape
    if n <= max(d, DENSE):
        M = qp.A @ qp.A.T
        M[np.diag_indices(n)] += T
        factor = _linalg.cho_factor(M, lower=True, overwrite_a=True, check_finite=False)

        def rough(r: np.ndarray) -> np.ndarray:
            return _linalg.cho_solve(factor, r, check_finite=False)
    else:
        S = qp.A / np.sqrt(T)[:, None]
        M = S.T @ S
        M[np.diag_indices(d)] += 1.0
        factor = _linalg.cho_factor(M, lower=True, overwrite_a=True, check_finite=False)

        def rough(r: np.ndarray) -> np.ndarray:
            x = (r.T / T).T
            return x - ((qp.A @ _linalg.cho_solve(factor, qp.A.T @ x, check_finite=False)).T / T).T

    def inverse(r: np.ndarray) -> np.ndarray:
        x = rough(r)
        for _ in range(refinements):  # free patterns have tiny T: the first answer has lost digits
            x = x + rough(r - qp.A @ (qp.A.T @ x) - (x.T * T).T)
        return x

    if not len(qp.e):
        return lambda r, s: (inverse(r), np.zeros(0))
    F = inverse(qp.E.T)
    G = qp.E @ F

    def bordered(r: np.ndarray, s: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        x = inverse(r)
        z = np.linalg.solve(G, qp.E @ x - s)
        return x - F @ z, z

    return bordered
