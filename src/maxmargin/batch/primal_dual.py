"""Mehrotra's predictor-corrector for many patterns of few features, some rows at a time, without a copy of them.

The dual of a soft margin, min 1/2 |B'a|^2 + 1/2 sum own a^2 - sum a with 0 <= a <= c, where the rows of B are y_i times
(x_i, constant), and the coordinate of a free intercept is an equation in place of a square: it belongs to the dual
weights' balance. Every step solves (R + B' T^-1 B) dz = ..., a matrix of the size of the features, three times passing
over the rows; R has a 1 for every weight, and a 0 for a free intercept. There are 10 to 30 steps, whatever C, the
weights and the scales of the features are.

References
----------
S. Mehrotra, "On the implementation of a primal-dual interior point method", SIAM J. Optim. 2, 1992;
M. C. Ferris, T. S. Munson, "Interior-point methods for massive support vector machines", SIAM J. Optim. 13, 2002.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import scipy.linalg
import scipy.sparse as sp

from ..compiled.interior import correct, move, predict, weigh
from ..problems import Problem

BYTES = 2**20  # of rows that are looked at together
MOST = 100  # steps
BACK = 0.995  # share of the way to the boundary
SHORT = 1e-8  # a step that is none
LEAST = 1e-300  # a squared own coordinate to divide by
RIDGE = 1e-14  # share of the diagonal that is added where rounding makes the matrix indefinite
FEWER = 0.2  # a gap that is worth another look
SELDOM = 8  # steps from one look to the next, at most

_linalg: Any = scipy.linalg  # its annotations speak of every case at once


class Blocks:
    """Rows (x - mean, constant) in float64, some at a time; in units in which they are of length one on average.

    Parameters
    ----------
    X : ndarray or CSR matrix of shape (n, d)
    problem : Problem
        A free intercept does not see a shift of the columns; numbers do. Its constant is one in any units.

    Attributes
    ----------
    unit : float
    units : ndarray of shape (size,)
        Of each column.
    """

    def __init__(self, problem: Problem, X: Any) -> None:
        self.X, (self.n, self.d) = X, X.shape
        self.problem, self.constant = problem, 1.0 if problem.free else problem.rho
        self.size = self.d + (self.constant > 0.0)
        self.mean = np.zeros(self.d)
        if problem.free:
            self.mean = np.asarray(X.mean(axis=0, dtype=np.float64)).ravel()
        self.step = max(1, min(self.n, BYTES // (8 * self.size)))
        square = sum(float(np.vdot(rows[:, : self.d], rows[:, : self.d])) for _, rows in self)
        self.unit = (square / self.n + problem.rho**2) ** 0.5 or 1.0
        self.units = np.full(self.size, self.unit)
        if problem.free:
            self.units[-1] = 1.0

    def __iter__(self) -> Iterator[tuple[slice, np.ndarray]]:
        """(places, rows), not yet in these units; the rows are overwritten by the next ones."""
        room = np.empty((self.step, self.size))
        for places in self.parts():
            some = self.X[places]
            rows = room[: some.shape[0]]
            np.subtract(some.toarray() if sp.issparse(some) else some, self.mean, out=rows[:, : self.d])
            rows[:, self.d :] = self.constant
            yield places, rows

    def parts(self) -> Iterator[slice]:
        """The places of the rows that are looked at together."""
        return (slice(first, min(first + self.step, self.n)) for first in range(0, self.n, self.step))

    def scores(self, z: np.ndarray, places: slice) -> np.ndarray:
        """z times these rows."""
        z = z / self.units
        w, rest = z[: self.d], z[self.d :]
        return np.asarray(self.X[places] @ w, dtype=float) + (self.constant * rest.sum() - self.mean @ w)

    def combine(self, c: np.ndarray, places: slice) -> np.ndarray:
        """c, of shape (m, rows), times these rows."""
        some, total = self.X[places], c.sum(axis=1)
        out = np.empty((c.shape[0], self.size))
        out[:, : self.d] = ((some.T @ c.T).T if sp.issparse(some) else c @ some) - np.outer(total, self.mean)
        out[:, self.d :] = self.constant * total[:, None]
        return out / self.units

    def primal(self, z: np.ndarray) -> tuple[np.ndarray, float]:
        """(w, b) of the problem's own units."""
        z = z / self.units
        w, rest = z[: self.d], z[self.d :]
        return w, float(self.constant * rest.sum() - self.mean @ w)


def interior_points(
    problem: Problem,
    X: Any,
    y: np.ndarray,
    weights: np.ndarray,
    interrupted: Callable[[], bool] = lambda: False,
) -> Iterator[tuple[np.ndarray, float, np.ndarray]]:
    """Points (w, b, alpha) of a soft margin at p = 2, nearer and nearer to the optimum.

    Parameters
    ----------
    problem : Problem
    X : ndarray or CSR matrix of shape (n, d)
        The work of a step is n d^2.
    y : ndarray of shape (n,), entries -1.0 and 1.0
    weights : ndarray of shape (n,), positive
        Sample weights.
    interrupted : callable
        Is it time to stop? Asked before every step.
    """
    blocks = Blocks(problem, X)
    n, size, unit = blocks.n, blocks.size, blocks.unit**2
    own, cap = problem.delta2(weights) / unit, problem.caps(weights) * unit
    capped = cap < np.inf
    a = np.where(capped, 0.5 * cap, 0.5 / np.maximum(own, LEAST))  # slacks of one half
    balanced = problem.balanced(y, a) if problem.free else a
    a = a if balanced is None else balanced
    room, u, v = np.where(capped, cap - a, 1.0), np.ones(n), np.where(capped, 1.0, 0.0)
    pairs, z = n + int(np.count_nonzero(capped)), np.zeros(size)
    regular = np.ones(size)
    if problem.free:
        regular[-1] = 0.0
    lack, share, before, step = np.empty((4, n))
    last, idle = np.inf, 0
    for _ in range(MOST):
        matrix, right, made = np.zeros((size, size)), np.zeros(size), np.zeros(size)
        sums = np.zeros(4)
        for places, rows in blocks:
            scores = rows @ (z / blocks.units)
            here = y[places], own[places], cap[places], a[places], room[places], u[places], v[places]
            sums += weigh(*here, scores, lack[places], share[places])
            both = np.stack([lack[places] * share[places], a[places]]) * y[places] @ rows
            right, made = right + both[0], made + both[1]
            rows *= np.sqrt(share[places])[:, None]
            matrix += rows.T @ rows
        matrix = matrix / blocks.units / blocks.units[:, None] + np.diag(regular)
        right, made = right / blocks.units, made / blocks.units
        products, total, square, loss = sums
        apart = regular * z - made
        primal = 0.5 * float(regular @ (z * z)) + loss
        dual = total - 0.5 * float(regular @ (made * made)) - 0.5 * square
        gap = (primal - dual) / abs(dual) if dual > 0.0 else np.inf
        idle += 1
        stop = interrupted()
        if gap <= FEWER * last or idle == SELDOM or stop:
            last, idle = min(gap, last), 0
            yield *blocks.primal(z), _rounded(a, room, u, v, capped) / unit
        if stop or not np.isfinite(products):
            return
        mu = products / pairs
        solve = _factor(matrix)
        if solve is None:
            return
        dz = solve(right - apart)
        centring, second = np.empty((2, min(blocks.step, n)))
        bent, centred = np.zeros((2, size))
        first = again = 0.0
        longest = np.inf
        for places in blocks.parts():
            here = y[places], cap[places], a[places], room[places], u[places], v[places]
            m = here[0].size
            seen = predict(
                *here,
                blocks.scores(dz, places),
                lack[places],
                share[places],
                before[places],
                centring[:m],
                second[:m],
            )
            first, again, longest = first + seen[0], again + seen[1], min(longest, seen[2])
            both = blocks.combine(np.stack([centring[:m], second[:m]]), places)
            centred, bent = centred + both[0], bent + both[1]
        t = min(1.0, BACK * longest)
        after = (products + t * first + t * t * again) / pairs
        target = mu * (after / mu) ** 3
        dz = solve(right + target * centred - bent - apart)
        longest = np.inf
        for places in blocks.parts():
            here = y[places], cap[places], a[places], room[places], u[places], v[places]
            longest = min(
                longest,
                correct(
                    *here,
                    blocks.scores(dz, places),
                    lack[places],
                    share[places],
                    target,
                    before[places],
                    step[places],
                ),
            )
        t = min(1.0, BACK * longest)
        if not t > SHORT:
            return
        move(cap, a, room, u, v, target, before, step, t)
        z = z + t * dz


def _rounded(a: np.ndarray, room: np.ndarray, u: np.ndarray, v: np.ndarray, capped: np.ndarray) -> np.ndarray:
    """The weights, those that are on their way to a bound put there: their share of it is less than the multiplier."""
    whole = np.where(capped, a + room, a.max())
    return np.where(u * whole > a, 0.0, np.where(capped & (v * whole > room), whole, a))


def _factor(matrix: np.ndarray) -> Callable[[np.ndarray], np.ndarray] | None:
    """Solves with this matrix; None where it has lost its digits."""
    diagonal = np.diag(matrix).copy()
    if not (np.isfinite(matrix).all() and diagonal.min() > 0.0):
        return None
    root = 1.0 / np.sqrt(diagonal)
    scaled = matrix * root * root[:, None]
    for ridge in (0.0, RIDGE, 1e2 * RIDGE, 1e4 * RIDGE):
        scaled.flat[:: root.size + 1] = 1.0 + ridge
        try:
            factor = _linalg.cho_factor(scaled, lower=True, check_finite=False)
        except np.linalg.LinAlgError:
            continue
        return lambda right, factor=factor: root * _linalg.cho_solve(factor, root * right, check_finite=False)
    return None
