"""Mehrotra's predictor-corrector for many patterns of few features, some rows at a time, without a copy of them.

The dual of a soft margin, min 1/2 |B'a|^2 + 1/2 sum own a^2 - sum a with 0 <= a <= c, where the rows of B are y_i times
(x_i, constant), and the coordinate of a free intercept is an equation in place of a square: it belongs to the dual
weights' balance. Every step solves (R + B' T^-1 B) dz = ..., a matrix of the size of the features, three times passing
over the rows; R has a 1 for every weight, and a 0 for a free intercept. There are 10 to 50 steps as a rule, whatever C
and the weights are; about 100 in all where features differ by six orders in scale and hardly any label is noise.

References
----------
S. Mehrotra, "On the implementation of a primal-dual interior point method", SIAM J. Optim. 2, 1992;
M. C. Ferris, T. S. Munson, "Interior-point methods for massive support vector machines", SIAM J. Optim. 13, 2002.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from ...engine.jit import compiled
from ...problem.problem import Problem
from .cholesky import factor
from .chunks import blocks_of
from .iterate import Point

MOST = 400  # steps
BACK = 0.995  # share of the way to the boundary
EAGER = 4  # power of what the predictor leaves of the products, to aim at
SHORT = 1e-8  # a step that is none
LEAST = 1e-300  # a squared own coordinate to divide by
WORTH, FEWER = 1.0, 0.2  # a gap that is nearly worth a look, and the share of it that is worth the next
NOTHING = 1e-13  # a gap that is rounding
SHARP, WORSE = 1e-5, 10.0  # a gap from which on it falls, but for rounding; and how much of that is too much
SELDOM = 8  # steps from one look to the next, at most


def interior_points(
    problem: Problem,
    X: Any,
    y: np.ndarray,
    weights: np.ndarray,
    interrupted: Callable[[], bool] = lambda: False,
) -> Iterator[Point]:
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
        True where it is time to stop. Asked before every step, and within products and factors of large matrices.
    """
    yield from (point for _, point in shown(Path(problem, X, y, weights, interrupted), interrupted))


def shown(path: Path, interrupted: Callable[[], bool], tol: float = 0.0) -> Iterator[tuple[float, Point]]:
    """The points of a path that are worth a look or within `tol`, and the last, each with its gap."""
    seen, least, idle, near, gap = WORTH, np.inf, 0, False, np.inf
    for _ in range(MOST):
        gap, idle, stop = path.look(), idle + 1, interrupted()
        if gap > WORSE * least and least < SHARP:  # digits are lost
            return
        if stop or idle == SELDOM or gap <= max(FEWER * seen, NOTHING) or (gap <= tol and not near):
            seen, idle, near = min(gap, seen), 0, gap <= tol
            yield gap, path.point()
        least = min(gap, least)
        if stop or gap <= NOTHING:
            return
        if not path.advance():
            break
    if interrupted():  # within a factor: what the last look saw stands
        yield gap, path.point()
        return
    yield path.look(), path.point()


class Path:
    """A point inside, and the steps from it along the central path, in the units of the blocks.

    Parameters
    ----------
    problem : Problem
    X : ndarray or CSR matrix of shape (n, d)
    y, weights : ndarray of shape (n,)
    interrupted : callable

    Attributes
    ----------
    z : ndarray of shape (size,)
        w, and the weight of the constant.
    a, room, u, v : ndarray of shape (n,)
        Dual weights, their distance from the cap, and the multipliers of both bounds.
    """

    def __init__(
        self,
        problem: Problem,
        X: Any,
        y: np.ndarray,
        weights: np.ndarray,
        interrupted: Callable[[], bool] = lambda: False,
    ) -> None:
        self.blocks, self.y, self.interrupted = blocks_of(problem, X), y, interrupted
        n, self.unit2 = y.size, self.blocks.unit**2
        self.own, self.cap = problem.delta2(weights) / self.unit2, problem.caps(weights) * self.unit2
        self.capped = self.cap < np.inf
        a = np.where(self.capped, 0.5 * self.cap, 0.5 / np.maximum(self.own, LEAST))  # slacks of one half
        lengths = self.blocks.lengths
        balanced = problem.balanced(y, a / lengths) if problem.free else a / lengths
        self.a = a if balanced is None else balanced
        self.room = np.where(self.capped, self.cap - self.a, 1.0)
        self.u = lengths.copy()
        self.v = np.where(self.capped, np.where(lengths > 1.0, self.a * lengths / self.room, 1.0), 0.0)
        self.z, self.regular = np.zeros(self.blocks.size), self.blocks.regular
        self._pairs = n + int(np.count_nonzero(self.capped))
        self._lack, self._share, self._before, self._step = np.empty((4, n))
        self._matrix: np.ndarray | None = None
        self._made: np.ndarray | None = (
            None  # what the dual weights combine the rows to, once the rows were passed
        )

    def point(self) -> Point:
        """(w, b, alpha) of the problem's own units; weights on their way to a bound are put there where that helps.

        They are where their share of the whole is less than the bound's multiplier. That adds their products to the
        dual, and costs half the square of what it moves: early on, more than it adds.
        """
        a, room = self.a, self.room
        if self._made is None:
            return *self.blocks.primal(self.z), a / self.unit2
        whole = np.where(self.capped, a + room, a.max())
        ends = np.where(self.u * whole > a, 0.0, np.where(self.capped & (self.v * whole > room), whole, a))
        alpha = ends if self._gains(ends - a, self._made) > 0.0 else a
        return *self.blocks.primal(self.z), alpha / self.unit2

    def _gains(self, da: np.ndarray, made: np.ndarray) -> float:
        """What this change of the dual weights adds to the dual, less what is uneven then where they are to balance."""
        signed = (da * self.y)[None, :]
        move = sum(self.blocks.combine(signed[:, places], places)[0] for places in self.blocks.parts())
        bent = made + 0.5 * move
        added = float(da.sum() - (self.regular * bent) @ move - (self.own * da) @ (self.a + 0.5 * da))
        return added - float((1.0 - self.regular) @ (np.abs(made + move) - np.abs(made)))

    def look(self) -> float:
        """Pass over all rows for what the next step takes; the relative gap, inf where dual weights prove nothing.

        Where it is time to stop within the pass, the gap is not known: inf, and no step can follow.
        """
        self._matrix = self._made = None
        blocks, y, size = self.blocks, self.y, self.blocks.size
        matrix, right, made, sums = np.zeros((size, size)), np.zeros(size), np.zeros(size), np.zeros(4)
        for places in blocks.parts():
            lack, share, a = self._lack[places], self._share[places], self.a[places]
            scores = blocks.scores(self.z, places)
            sums += weigh(
                y[places], self.own[places], self.cap[places], a, self.room[places], self.u[places],
                self.v[places], scores, lack, share,
            )  # fmt: skip
            both = blocks.combine(np.stack([lack * share, a]) * y[places], places)
            right, made = right + both[0], made + both[1]
            matrix += blocks.products(share, places)
            if self.interrupted():
                return np.inf
        self._matrix = blocks.regularised(matrix)
        self._made = made
        self._right = right - (self.regular * self.z - made)
        self._products, total, square, loss = sums.tolist()
        return blocks.gap(self.z, made, loss, total - 0.5 * square)

    def advance(self) -> bool:
        """A predictor, and the step that it corrects; False where numbers lead no further."""
        if self._matrix is None or not 0.0 < self._products < np.inf:
            return False
        solve = factor(self._matrix, self.interrupted)
        if solve is None:
            return False
        first, again, longest, centred, bent = self._predict(solve(self._right))
        t = min(1.0, BACK * longest)
        mu = self._products / self._pairs
        after = (self._products + t * first + t * t * again) / self._pairs
        target = mu * max(after / mu, 0.0) ** EAGER
        dz = solve(self._right + target * centred - bent)
        t = min(1.0, BACK * self._correct(dz, target))
        if not t > SHORT:
            return False
        move(self.cap, self.a, self.room, self.u, self.v, target, self._before, self._step, t)
        self.z = self.z + t * dz
        return True

    def _predict(self, dz: np.ndarray) -> tuple[float, float, float, np.ndarray, np.ndarray]:
        """What the predictor adds to the products, once and squared, how long it may be; and two sums over the rows.

        They are what a unit of mu, and the second order, add to the right-hand side.
        """
        first = again = 0.0
        longest = np.inf
        centred, bent = np.zeros((2, self.blocks.size))
        for places in self.blocks.parts():
            scores = self.blocks.scores(dz, places)
            both = np.empty((2, scores.size))
            seen = predict(*self._rows(places), scores, *self._found(places), self._before[places], *both)
            first, again, longest = first + seen[0], again + seen[1], min(longest, seen[2])
            more = self.blocks.combine(both, places)
            centred, bent = centred + more[0], bent + more[1]
        return first, again, longest, centred, bent

    def _correct(self, dz: np.ndarray, target: float) -> float:
        """Make the step to products of `target`; how long it may be."""
        longest = np.inf
        for places in self.blocks.parts():
            scores, before, step = self.blocks.scores(dz, places), self._before[places], self._step[places]
            seen = correct(*self._rows(places), scores, *self._found(places), target, before, step)
            longest = min(longest, seen)
        return longest

    def _rows(self, places: slice) -> tuple[np.ndarray, ...]:
        some = (self.y, self.cap, self.a, self.room, self.u, self.v)
        return tuple(values[places] for values in some)

    def _found(self, places: slice) -> tuple[np.ndarray, np.ndarray]:
        return self._lack[places], self._share[places]


# What a step does to each row by itself: dual weights a, their room c - a, multipliers u of a >= 0 and v of a <= c.
#
# At a point of the central path a u = (c - a) v = mu for every row. Where there is no cap v is 0, and the room 1. `own`
# is the square of the row's own coordinate; T = own + u / a + v / room.


@compiled()
def weigh(y, own, cap, a, room, u, v, scores, lack, share):
    """lack = 1 - margin - own a, share = 1 / T. (a u + room v, sum a, sum own a^2, the loss, over all patterns.)"""
    products = total = square = loss = 0.0
    for k in range(y.size):
        slack = 1.0 - y[k] * scores[k]
        lack[k] = slack - own[k] * a[k]
        share[k] = 1.0 / (own[k] + u[k] / a[k] + v[k] / room[k])
        products += a[k] * u[k] + room[k] * v[k]
        total += a[k]
        square += own[k] * a[k] * a[k]
        if slack > 0.0:
            loss += 0.5 * slack * slack / own[k] if own[k] > 0.0 else cap[k] * slack
    return products, total, square, loss


@compiled()
def predict(y, cap, a, room, u, v, scores, lack, share, da, centring, second):
    """The step to the end of the path, where all products are 0, from what it adds to the scores.

    Of the right-hand side of the next step the part that a unit of mu adds, and the part of second order. (What a step
    adds to the products, once and squared; how long it may be.)
    """
    first = again = 0.0
    most = np.inf
    for k in range(y.size):
        step = (lack[k] - y[k] * scores[k]) * share[k]
        da[k] = step
        du = -u[k] - u[k] * step / a[k]
        first += a[k] * du + step * u[k]
        again += step * du
        most = min(most, reach(a[k], step), reach(u[k], du))
        pull, bend = 1.0 / a[k], step * du / a[k]
        if cap[k] < np.inf:
            dv = -v[k] + v[k] * step / room[k]
            first += room[k] * dv - step * v[k]
            again -= step * dv
            most = min(most, reach(room[k], -step), reach(v[k], dv))
            pull -= 1.0 / room[k]
            bend += step * dv / room[k]
        centring[k] = y[k] * share[k] * pull
        second[k] = y[k] * share[k] * bend
    return first, again, most


@compiled()
def correct(y, cap, a, room, u, v, scores, lack, share, mu, before, da):
    """The step to products mu, the second order of the step `before` reckoned with. (How long it may be.)"""
    most = np.inf
    for k in range(y.size):
        target, other = products(k, cap, a, room, u, v, mu, before)
        r = lack[k] + u[k] + target / a[k]
        if cap[k] < np.inf:
            r -= v[k] + other / room[k]
        step = (r - y[k] * scores[k]) * share[k]
        da[k] = step
        most = min(most, reach(a[k], step), reach(u[k], (target - u[k] * step) / a[k]))
        if cap[k] < np.inf:
            most = min(most, reach(room[k], -step), reach(v[k], (other + v[k] * step) / room[k]))
    return most


@compiled()
def move(cap, a, room, u, v, mu, before, da, t):
    """Take t of this step."""
    for k in range(a.size):
        target, other = products(k, cap, a, room, u, v, mu, before)
        du = (target - u[k] * da[k]) / a[k]
        if cap[k] < np.inf:
            v[k] += t * (other + v[k] * da[k]) / room[k]
            room[k] -= t * da[k]
        a[k] += t * da[k]
        u[k] += t * du


@compiled()
def products(k, cap, a, room, u, v, mu, before):
    """What a u and (c - a) v lack to mu, the second order of the step `before` reckoned with."""
    du = -u[k] - u[k] * before[k] / a[k]
    target = mu - a[k] * u[k] - before[k] * du
    if not cap[k] < np.inf:
        return target, 0.0
    dv = -v[k] + v[k] * before[k] / room[k]
    return target, mu - room[k] * v[k] + before[k] * dv


@compiled()
def reach(x, dx):
    """How many steps dx bring x to 0."""
    return -x / dx if dx < 0.0 else np.inf
