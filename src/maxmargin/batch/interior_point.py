"""Mehrotra's predictor-corrector for the small quadratic program.

References
----------
S. Mehrotra, "On the implementation of a primal-dual interior point method", SIAM J. Optim. 2, 1992;
M. C. Ferris, T. S. Munson, "Interior-point methods for massive support vector machines", SIAM J. Optim. 13, 2002.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy.linalg import LinAlgError, cho_factor, cho_solve

from .quadratic import Quadratic

MOST = 80  # steps; 15 to 30 are usual
CLOSE = 1e-13  # average complementarity, relative, at which nothing more is to be had
BACK = 0.995  # share of the way to the boundary
DENSE = 200  # up to so many rows, rows are eliminated: more accurate than columns
REFINE, LATE = 2, 1e-2  # corrections of each solution, once the error is below this
TINY = 1e-30  # a squared margin, R = 1, that is zero


def interior_point(qp: Quadratic) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Solve to about 1e-10: (a, beta, u, v), multipliers u of a >= 0 and v of a <= c."""
    capped = np.isfinite(qp.c)
    c = np.where(capped, qp.c, 1.0)
    a = np.where(capped, np.minimum(0.5 * c, 1.0), 1.0)
    if qp.e.any():  # begin on the equations of the hard margin
        a = qp.E.T @ (qp.e / qp.E.sum(axis=1))
    beta = np.zeros(len(qp.e))
    start = np.maximum(1.0, np.abs(qp.slacks(a, beta)))
    u, v = start.copy(), np.where(capped, start, 0.0)
    pairs = a.size + np.count_nonzero(capped)
    best = (np.inf, (a, beta, u, v))
    room = np.where(capped, c - a, 1.0)  # kept apart: c - a would lose its last digits
    for _ in range(MOST):
        rd = qp.slacks(a, beta) - u + v
        re = qp.E @ a - qp.e
        mu = (a @ u + room @ v) / pairs
        # a margin of one; for the hard margin, with weights of sum one, that of the present w
        w = qp.A.T @ a
        one = 1.0 if not qp.problem.hard else max(float(w @ w), TINY)
        size = one + abs(float(qp.q @ a))
        off = float(np.abs(rd).max()) / one
        error = mu * pairs / size + off + float(np.abs(re).max(initial=0.0)) / (1.0 + float(a.max()))
        if not np.isfinite(error):
            break
        if error < best[0]:
            best = (error, (a.copy(), beta.copy(), u.copy(), v.copy()))
        if (mu * pairs <= CLOSE * size and np.abs(rd).max() < 1e-12) or error > 1e6 * max(best[0], 1e-9):
            break
        try:
            solve = _newton(qp, qp.D + u / a + v / room, REFINE if error < LATE else 0)
        except LinAlgError:
            break

        def direction(
            target: np.ndarray,
            target_room: np.ndarray,
            solve: Callable[..., tuple[np.ndarray, np.ndarray]] = solve,
            a: np.ndarray = a,
            u: np.ndarray = u,
            v: np.ndarray = v,
            room: np.ndarray = room,
            rd: np.ndarray = rd,
            re: np.ndarray = re,
        ) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
            """The step for which a u -> target and (c - a) v -> target_room, linearised."""
            ru, rv = target - a * u, target_room - room * v
            da, db = solve(-rd + ru / a - np.where(capped, rv / room, 0.0), -re)
            return da, db, (ru - u * da) / a, np.where(capped, (rv + v * da) / room, 0.0)

        zero = np.zeros_like(a)
        da, db, du, dv = direction(zero, zero)
        t = _longest(a, u, v, room, capped, da, du, dv)
        after = ((a + t * da) @ (u + t * du) + (room - t * da)[capped] @ (v + t * dv)[capped]) / pairs
        centre = mu * (after / mu) ** 3 if mu > 0.0 else 0.0
        if not np.isfinite(after):
            break
        da, db, du, dv = direction(centre - da * du, np.where(capped, centre + da * dv, 0.0))
        t = _longest(a, u, v, room, capped, da, du, dv)
        if t < 1e-10:
            break
        a, beta, u, v = a + t * da, beta + t * db, u + t * du, v + t * dv
        room = np.where(capped, room - t * da, 1.0)
    return best[1]


def _newton(qp: Quadratic, T: np.ndarray, refinements: int) -> Callable[..., tuple[np.ndarray, np.ndarray]]:
    """Solve (A A' + T) x + E' z = r, E x = s: by rows or by columns, whichever are fewer."""
    n, d = qp.shape
    if n <= max(d, DENSE):
        M = qp.A @ qp.A.T
        M[np.diag_indices(n)] += T
        factor = cho_factor(M, lower=True, overwrite_a=True, check_finite=False)

        def rough(r: np.ndarray) -> np.ndarray:
            return cho_solve(factor, r, check_finite=False)
    else:
        S = qp.A / np.sqrt(T)[:, None]
        M = S.T @ S
        M[np.diag_indices(d)] += 1.0
        factor = cho_factor(M, lower=True, overwrite_a=True, check_finite=False)

        def rough(r: np.ndarray) -> np.ndarray:
            x = (r.T / T).T
            return x - ((qp.A @ cho_solve(factor, qp.A.T @ x, check_finite=False)).T / T).T

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


def _longest(
    a: np.ndarray,
    u: np.ndarray,
    v: np.ndarray,
    room: np.ndarray,
    capped: np.ndarray,
    da: np.ndarray,
    du: np.ndarray,
    dv: np.ndarray,
) -> float:
    """The longest step that keeps everything positive."""
    t = 1.0
    for x, dx in ((a, da), (u, du), (room[capped], -da[capped]), (v[capped], dv[capped])):
        falling = dx < 0.0
        if falling.any():
            t = min(t, BACK * float(np.min(-x[falling] / dx[falling])))
    return t
