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

import numpy as np

from .cholesky import factor
from .quadratic_program import Quadratic

CLOSE = 1e-13  # complementarity, relative, at which nothing more is to be had
FLAT = 1e-12  # and the same for the gradient
BACK = 0.995  # share of the way to the boundary
SHORT = 1e-10  # a step that is none
FEW_COLUMNS = 100  # up to so many columns, columns are eliminated even where rows are fewer
MAX_STEPS = (
    200  # 15 to 30 are usual; columns that nearly depend on each other, of very different scales, take more
)
# Corrections of each solution of the linear system, at most: they end where the residual no longer halves. Free rows
# have tiny T, and products of nearly dependent columns lose digits. Each costs n d, beside n d^2 of the factor. With 5
# of them 190 of the 192 fits of docs/harsh.md are certified; with 2, 3 or 10 as many or fewer.
REFINEMENTS = 5
NOTHING = 1e-15  # a margin, R = 1, that is zero
TINY = 1e-30  # a squared margin, R = 1, that is zero

Solver = Callable[[np.ndarray, np.ndarray, np.ndarray], tuple[np.ndarray, np.ndarray, np.ndarray]]


@dataclass(frozen=True)
class Iterate:
    """A point inside: weights a, multipliers beta of the equations, u of a >= 0, v of a <= c.

    w is a variable of its own, equal to A'a at the end: caps of 1e16 can then be begun at. `room` is c - a,
    kept apart since the difference would lose its last digits. Where there is no cap, v is 0
    and room is 1.
    """

    a: np.ndarray
    w: np.ndarray
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
            self.w + t * step.w,
            self.beta + t * step.beta,
            self.u + t * step.u,
            self.v + t * step.v,
            np.where(self.capped, self.room - t * step.a, 1.0),
            self.capped,
        )

    def longest(self, step: Step) -> float:
        """The longest multiple of the step, at most one, that stays `BACK` of the way from the boundary."""
        with np.errstate(over="ignore", invalid="ignore"):
            rates = [(-step.a / self.a).max(), (-step.u / self.u).max()]
            if self.capped.any():
                some = self.capped
                rates += [(step.a[some] / self.room[some]).max(), (-step.v[some] / self.v[some]).max()]
        return min(1.0, BACK / max(float(max(rates)), BACK))

    def complementarity_after(self, t: float, step: Step) -> float:
        """The same sum t steps on."""
        below = (self.a + t * step.a) @ (self.u + t * step.u)
        return float(below + np.where(self.capped, self.room - t * step.a, 0.0) @ (self.v + t * step.v))

    def lacks(self, mu: float, before: Step) -> tuple[np.ndarray, np.ndarray]:
        """What the products lack to mu, the second order of the step `before` reckoned with."""
        above = np.where(self.capped, mu - self.room * self.v + before.a * before.v, 0.0)
        return mu - self.a * self.u - before.a * before.u, above


@dataclass(frozen=True)
class Step:
    """A direction, in the same parts."""

    a: np.ndarray
    w: np.ndarray
    beta: np.ndarray
    u: np.ndarray
    v: np.ndarray


def interior_point(qp: Quadratic, interrupted: Callable[[], bool] = lambda: False) -> Iterate:
    """The best point found: 1e-10 from the optimum where numbers and time allow.

    Parameters
    ----------
    qp : Quadratic
    interrupted : callable
        Is it time to stop? Asked in every step.
    """
    point = _start(qp)
    pairs = point.a.size + np.count_nonzero(point.capped)
    best, least = point, np.inf
    for _ in range(MAX_STEPS):
        gradient = qp.slacks(point.a, point.beta, point.w) - point.u + point.v
        apart = point.w - qp.A.T @ point.a
        broken = qp.E @ point.a - qp.e
        error, done = _error(qp, point, gradient, apart, broken)
        if not np.isfinite(error) or error > 1e6 * max(least, 1e-9):
            break
        if error < least:
            best, least = point, error
        if done or interrupted():
            break
        T = qp.D + point.u / point.a + point.v / point.room
        newton = _newton(qp, T)
        if newton is None:
            break
        mu = point.complementarity() / pairs
        residuals = gradient, apart, broken
        predictor = _direction(point, residuals, newton, -point.a * point.u, -point.room * point.v)
        after = point.complementarity_after(point.longest(predictor), predictor) / pairs
        if not np.isfinite(after):
            break
        centre = mu * (after / mu) ** 3
        step = _direction(point, residuals, newton, *point.lacks(centre, predictor))
        t = point.longest(step)
        if t < SHORT:
            break
        point = point.moved(t, step)
    return best


def _start(qp: Quadratic) -> Iterate:
    capped = np.isfinite(qp.c)
    c = np.where(capped, qp.c, 1.0)
    u = qp.lengths  # slacks are as long as rows
    if qp.problem.hard:  # begin on the equations of the hard margin
        a = qp.E.T @ (qp.e / (qp.E @ (1.0 / u))) / u
    else:
        a = np.where(capped, 0.5 * c, 1.0 / (1.0 + qp.D)) / u
    room = np.where(capped, c - a, 1.0)
    v = np.where(capped, a * u / room, 0.0)
    return Iterate(a, np.zeros(qp.shape[1]), np.zeros(len(qp.e)), u, v, room, capped)


def _error(
    qp: Quadratic, point: Iterate, gradient: np.ndarray, apart: np.ndarray, broken: np.ndarray
) -> tuple[float, bool]:
    """How far from optimal, relative, and whether nothing more is to be had."""
    # in units of a margin of one; for the hard margin, with weights of sum one, that is |w|^2
    w = point.w - apart
    one = max(float(w @ w), TINY) if qp.problem.hard else 1.0
    products = point.complementarity() / (one + abs(float(qp.q @ point.a)))
    slope = float(np.abs(gradient / qp.lengths).max()) / one
    size = one**0.5 + float(np.abs(w).max(initial=0.0))
    equations = float(np.abs(broken).max(initial=0.0)) / (1.0 + float(point.a.max()))
    equations += float(np.abs(apart).max(initial=0.0)) / size
    done = products <= CLOSE and slope < FLAT
    if qp.problem.hard:  # the bound itself: where it tends to zero, so does the unit of everything else
        v = qp.A.T @ point.a
        bound = float(np.sqrt(v @ v))
        off = (
            float(np.abs(broken).max())
            + float(np.abs(gradient).max())
            + float(np.abs(apart).max(initial=0.0))
        )
        return bound + off, done or bound + off < NOTHING
    return products + slope + equations, done


def _direction(
    point: Iterate,
    residuals: tuple[np.ndarray, np.ndarray, np.ndarray],
    newton: Solver,
    ru: np.ndarray,
    rv: np.ndarray,
) -> Step:
    """The step that adds ru to a u and rv to (c - a) v, linearised; rv is 0 where there is no cap."""
    gradient, apart, broken = residuals
    a, w, beta = newton(ru / point.a - rv / point.room - gradient, -apart, -broken)
    v = (rv + point.v * a) / point.room
    return Step(a, w, beta, (ru - point.u * a) / point.a, v)


def _newton(qp: Quadratic, T: np.ndarray) -> Solver | None:
    """Solve A w + T a + E' beta = r, w - A' a = s, E a = t for (a, w, beta)."""
    rough = _by_products(qp, T)
    if rough is None:
        return None

    def solve(r: np.ndarray, s: np.ndarray, t: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        a, w, beta = rough(r, s, t)
        before = np.inf
        for _ in range(REFINEMENTS):
            left = r - qp.A @ w - T * a - qp.E.T @ beta, s - w + qp.A.T @ a, t - qp.E @ a
            size = sum(float(np.abs(part).sum()) for part in left)
            if not size <= 0.5 * before:
                break
            da, dw, db = rough(*left)
            a, w, beta, before = a + da, w + dw, beta + db, size
        return a, w, beta

    return solve


def _by_products(qp: Quadratic, T: np.ndarray) -> Solver | None:
    """By Cholesky's factor of products of columns or rows, whichever are fewer."""
    n, d = qp.shape
    return _by_columns(qp, T) if d <= max(n, FEW_COLUMNS) else _by_rows(qp, T)


def _by_columns(qp: Quadratic, T: np.ndarray) -> Solver | None:
    """Eliminate a: one equation a coordinate of w and one a multiplier."""
    d = qp.shape[1]
    B = np.hstack([qp.A, qp.E.T]) if len(qp.e) else qp.A
    S = B / np.sqrt(T)[:, None]
    M = S.T @ S
    M.flat[: d * (M.shape[0] + 1) : M.shape[0] + 1] += 1.0
    solved = factor(M)
    if solved is None:
        return None

    def rough(r: np.ndarray, s: np.ndarray, t: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        z = solved(B.T @ (r / T) + np.concatenate([s, -t]))
        return (r - B @ z) / T, z[:d], z[d:]

    return rough


def _by_rows(qp: Quadratic, T: np.ndarray) -> Solver | None:
    """Eliminate w: one equation a pattern."""
    M = qp.A @ qp.A.T
    M.flat[:: len(M) + 1] += T
    solved = factor(M)
    if solved is None:
        return None
    F = solved(qp.E.T) if len(qp.e) else qp.E.T
    G = qp.E @ F

    def rough(r: np.ndarray, s: np.ndarray, t: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        a = solved(r - qp.A @ s)
        beta = np.linalg.solve(G, qp.E @ a - t) if len(t) else t
        a = a - F @ beta
        return a, qp.A.T @ a + s, beta

    return rough
