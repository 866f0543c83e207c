"""The proximal-point method on the dual of the hinge, each of its problems by a semismooth Newton method.

With dual weights as shares s_i of their caps c_i, the next shares are the most of::

    dual(c s) - sum c_i (s_i - near_i)^2 / (2 sigma)

near_i being what they were. As a problem in w the hinge of each pattern is smooth then, within 1 / sigma of its kink:
s_i = near_i + sigma (1 - margin_i), cut to [0, 1]. A step of Newton's method passes twice over the rows, and asks for
products of columns over the patterns alone that are not cut, soon about as many as there are columns: n d + k d^2,
where a step of an interior-point method takes n d^2. A larger sigma needs fewer problems, and more steps for each; it
rises while more patterns are inside than there can be in the end.

References
----------
R. T. Rockafellar, "Augmented Lagrangians and applications of the proximal point algorithm in convex programming",
Math. Oper. Res. 1, 1976; X. Li, D. Sun, K.-C. Toh, "A highly efficient semismooth Newton augmented Lagrangian method
for solving Lasso problems", SIAM J. Optim. 28, 2018; Y. Yan, Q. Li, "An efficient augmented Lagrangian method for
support vector machine", Optim. Methods Softw. 35, 2020.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np

from ...engine.line_search import subtract
from ...engine.proximal_point import descend, follow, uncut
from ...problem.problem import Problem
from .cholesky import factor
from .chunks import blocks_of
from .iterate import Point

MOST = 200  # steps of Newton's method
# the first sigma, and the sum of the first dual weights at a slack of one: whichever is less
WIDE, WEIGHT = 0.25, 1e4
RISE, STEADY = 7.0, 2.0  # how sigma rises while many patterns are inside, and then
FULL = 4.0  # patterns inside, for each column, that are many
STEEP = 1e5  # the largest sigma, where all caps are one; where they are less, so are the slacks
LONG = 4  # steps for one problem, after which the next is not so much harder
LESS = 0.1  # of the gradient, at which a problem is solved
ROUNDING = 1e-14  # of the sum of all dual weights, where it is none
FLAT = 0.05  # of the slope along a step, at which its length is good
LOOSE = 1e-2  # share of all caps that holds an intercept no pattern inside holds
WORTH, FEWER = 1e-2, 0.1  # a gap that is worth a look, and the share of it that is worth the next
NOTHING = 1e-11  # a gap that is next to rounding
SHARP, IDLE = 1e-9, 3  # a gap from which on so many problems without a smaller one are the end


class Start(NamedTuple):
    """Where to begin: (w, b), the shares of their caps that dual weights have, and the first sigma."""

    w: np.ndarray
    b: float
    shares: np.ndarray
    sigma: float


def proximal_points(
    problem: Problem,
    X: Any,
    y: np.ndarray,
    weights: np.ndarray,
    interrupted: Callable[[], bool] = lambda: False,
    start: Start | None = None,
    tol: float = 0.0,
) -> Iterator[tuple[float, Point]]:
    """Points (w, b, alpha) of a soft margin with the hinge at p = 2, nearer and nearer to the optimum; and their gaps.

    Parameters
    ----------
    problem : Problem
    X : ndarray or CSR matrix of shape (n, d), or Blocks of it
    y : ndarray of shape (n,), entries -1.0 and 1.0
    weights : ndarray of shape (n,), positive
        Sample weights.
    interrupted : callable
        Is it time to stop? Asked before every step.
    start : Start, default=None
        None: w = 0, and a sigma at which the slacks of all patterns count.
    tol : float, default=0
        A gap at which a point is shown as soon as there is one.
    """
    search = _Search(problem, X, y, weights, interrupted)
    search.place(start if start is not None else search.first())
    seen, least, idle, inside = WORTH / FEWER, np.inf, 0, None
    near = False
    for _ in range(MOST):
        stop, gap = interrupted(), search.gap
        at_once = not near and tol > 0.0 and gap <= tol
        if at_once:
            near, seen = True, min(gap, seen)
            yield gap, search.point()
        if search.solved() or stop:
            same = inside is not None and np.array_equal(inside, search.inside)
            inside = search.inside.copy()
            worth = stop or gap <= NOTHING or gap <= FEWER * seen or (same and gap <= WORTH)
            if worth and not at_once:
                seen = min(gap, seen)
                yield gap, search.point()
            idle = 0 if gap < least else idle + 1
            least = min(gap, least)
            if stop or gap <= NOTHING or (idle >= IDLE and least <= SHARP):
                return
            search.next_problem()
            if search.solved():  # shares that have moved, and still cancel
                continue
        if not search.advance():
            if search.gap < least:
                yield search.gap, search.point()
            return


def first_shares(problem: Problem, y: np.ndarray, cap: np.ndarray) -> tuple[np.ndarray, float]:
    """Shares of their caps at which dual weights balance, to begin with at w = 0; and the first sigma."""
    total, more = float(cap.sum()), float(cap @ y)
    sigma = min(WIDE, WEIGHT / total)
    plus, minus = total + more, total - more
    if not (problem.free and plus > 0.0 and minus > 0.0):
        return np.full(y.size, 2.0 * sigma), sigma
    of_plus, of_minus = min(1.0, minus / plus), min(1.0, plus / minus)  # the heavier class gets less
    return sigma * (of_plus + of_minus) + sigma * (of_plus - of_minus) * y, sigma


def steepest(cap: np.ndarray) -> float:
    """The largest sigma."""
    return STEEP * max(1.0, 1.0 / float(cap.sum()))


class _Search:
    """A point w with its slacks, and the dual weights that it makes, in the units of the blocks."""

    def __init__(
        self,
        problem: Problem,
        X: Any,
        y: np.ndarray,
        weights: np.ndarray,
        interrupted: Callable[[], bool] = lambda: False,
    ) -> None:
        self.blocks, self.y, self.interrupted = blocks_of(problem, X), y, interrupted
        self.cap = problem.caps(weights) * self.blocks.unit**2
        self._signed = self.cap * y
        self.regular, self.problem = self.blocks.regular, problem
        self._steep = steepest(self.cap)
        self.share, self._pull, self._room = np.empty(y.size), np.empty(y.size), np.empty(y.size, np.uint32)
        self._gradient = np.empty(self.blocks.size)

    def first(self) -> Start:
        """w = 0, with dual weights that balance."""
        return Start(np.zeros(self.blocks.d), 0.0, *first_shares(self.problem, self.y, self.cap))

    def place(self, start: Start) -> None:
        """Begin here."""
        self.z = self.blocks.coordinates(start.w, start.b)
        self.near, self.sigma = start.shares.copy(), start.sigma
        self.slack = 1.0 - self.y * self.blocks.all_scores(self.z)
        self._begin()

    def point(self) -> Point:
        """(w, b, alpha) of the problem's own units."""
        return *self.blocks.primal(self.z), self.cap * self.share / self.blocks.unit**2

    def solved(self) -> bool:
        """Has the gradient fallen far enough for the next problem?"""
        return self._steepness <= max(LESS * self._first, ROUNDING * self._total)

    def next_problem(self) -> None:
        """The shares are those that the next ones are near to."""
        self.near[:] = self.share
        many = self.inside.size > FULL * self.blocks.size
        rise = (RISE if many else STEADY) ** (1.0 if self.steps <= LONG else 0.5)
        self.sigma = min(self.sigma * rise, max(self._steep, self.sigma))
        self._begin()

    def _begin(self) -> None:
        """A problem of this sigma."""
        self._measure(self.near, 0.0)
        self._first, self.steps = self._steepness, 0

    def _measure(self, step: np.ndarray, t: float) -> None:
        """The shares, the gradient, and the gap, t steps on."""
        loss, self._total = follow(
            self.near, self.sigma, self.slack, step, t, self.cap, self._signed, self.share, self._pull
        )
        self.inside = self._room[: uncut(self.share, self._room)]
        made = self.blocks.all_combined(self._pull)
        self._steepness, _, _ = subtract(self.regular, self.z, made, self._gradient)
        self.gap = self.blocks.gap(self.z, made, loss, self._total)

    def advance(self) -> bool:
        """A step of Newton's method, to the least point of its line; False where numbers lead no further."""
        solve = factor(self._matrix(), self.interrupted)
        if solve is None:
            return False
        dz = -solve(self._gradient)
        step = self.blocks.all_scores(dz)
        t = descend(
            self.near, self.sigma, self.slack, step, self.y, self.cap, self.z, dz, self.regular, self._gradient, FLAT
        )  # fmt: skip
        if not t > 0.0:
            return False
        self.steps += 1
        self._measure(step, t)
        return True

    def _matrix(self) -> np.ndarray:
        """The second derivative: of the patterns inside, and of the weights that are regularised."""
        matrix = self.blocks.regularised(
            self.sigma * self.blocks.all_products(self.cap, self.inside, self.interrupted)
        )
        if self.problem.free and not self.inside.size:
            matrix[-1, -1] += LOOSE * self.sigma * float(self.cap.sum())
        return matrix
