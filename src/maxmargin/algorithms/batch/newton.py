"""Newton's method for the squared hinge, whose gradient is piecewise linear: all costly patterns at once, exactly.

In the units of `Blocks`, with rows b_i = y_i (x_i, constant) and slacks 1 - b_i.z, the problem is to minimise
1/2 z'Rz + 1/2 sum share_i max(0, slack_i)^2; R has a 1 for every weight, and a 0 for a free intercept. Where the costly
patterns are those of A, its least point solves (R + B_A' D B_A) z = B_A' D 1. A step goes there from where the last one
led, and along that line to the exact minimum; once A comes again the end is reached. On the way share_i max(0, slack_i)
are dual weights, and the gap that they leave is half the squared gradient; at the end those of a free intercept
balance. Where C is large and the classes are far apart, costs rise from stage to stage.

References
----------
O. L. Mangasarian, "A finite Newton method for classification problems", OMS 17, 2002;
S. S. Keerthi, D. DeCoste, "A modified finite Newton method for fast solution of large scale linear SVMs", JMLR 6, 2005.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import scipy.sparse as sp

from ...engine.line_search import subtract
from ...engine.newton import Squared, changes, descend, diagonal, follow, products, weigh
from ...engine.storage import Dense, Sparse
from ...engine.vectors import Plain as Vector
from ...problem.problem import Problem
from .cholesky import Solve, factor
from .chunks import Blocks, blocks_of, unsigned
from .iterate import Reached

MOST = 200  # steps
LEAST = 1e-300  # a squared own coordinate to divide by
FEWER = 0.2  # share of a gap that is worth another look
SELDOM = 8  # steps from one look to the next, at most
EXACT, STILL = 1e-15, 2  # a gap that is rounding; steps with the same costly patterns that may not lessen it
FLAT = 1e-6  # share of a slope that is none, where it is followed by a step of Newton's
WIDE = 1000  # columns, beyond which no matrix of their products is made
ANEW = 0.5  # share of the costly patterns that may have changed for the matrix to be changed with them
FALL = 1e-3  # share of its greatest diagonal below which a matrix has lost three digits
LARGE, EVERY = 20_000, 16  # rows, of which every 16th are solved first
NEAR, SHORT, LONG = 1e-2, 15, 100  # a gap to begin at; steps from 0 that may lead there, and those of a stage
MIDDLE, LOW = 0.5, 1e6  # of the way, in digits, to their sum: where costs begin to rise, and no later
RISE, CLOSE = 10.0, 0.5  # of the costs from stage to stage; a gap at which the next one begins
# costly patterns of a sample, for each column, that know the curvature well; share of a gap that a step must leave less
# of for it to do once more; and how often it may
RICH, LENT, FAR = 40, 0.1, 8
EASY = 2  # steps of a stage, after which costs may rise by more
TURNS = 2000  # of conjugate gradients
ROUGH, FINE = 0.03, 1e-3  # what they may leave of the gradient, far away and nearby,
FINER = 1e-2  # and less of it with each repeat


def newton_points(
    problem: Problem,
    X: Any,
    y: np.ndarray,
    weights: np.ndarray,
    interrupted: Callable[[], bool] = lambda: False,
    tol: float = 0.0,
    start: tuple[np.ndarray, float] | None = None,
) -> Iterator[Reached]:
    """Points of the squared hinge at p = 2, nearer and nearer to the optimum.

    Parameters
    ----------
    problem : Problem
    X : ndarray or CSR matrix of shape (n, d), or Blocks of it
    y : ndarray of shape (n,), entries -1.0 and 1.0
    weights : ndarray of shape (n,), positive
        Sample weights.
    interrupted : callable
        Is it time to stop? Asked before every step, and while one is made.
    tol : float, default=0
        The gap that is asked for: every few steps are shown, and those that are as near.
    start : (ndarray of shape (d,), float), default=None
        (w, b) to begin with, where that is near enough.
    """
    descent = _Descent(problem, X, y, weights, interrupted)
    if start is not None:
        descent.place(*start)
    if start is None or descent.look() > CLOSE:
        _begin(descent, weights)
    shown, idle = np.inf, 0
    for _ in range(MOST):
        gap, idle = descent.look(), idle + 1
        stop = descent.ended() or interrupted()
        if stop or idle == SELDOM or gap <= min(tol, FEWER * shown):
            shown, idle = min(gap, shown), 0
            yield descent.point(tol)
        if stop:
            return
        if not descent.advance():
            break
    descent.look()
    yield descent.point(tol)


def _begin(descent: _Descent, weights: np.ndarray) -> None:
    """To where a sample of many rows leads; a few rows, from 0, or along costs that rise where that is too far."""
    y = descent.y
    if y.size >= LARGE:
        descent.follow(*_sampled(descent, weights))
        return
    descent.start()
    if _run(descent, NEAR, SHORT) == SHORT:
        descent.start()
        total, rise = float(descent.share.sum()), RISE
        share = min(total**MIDDLE, LOW) / total
        while 0.0 < share < 1.0 and not descent.interrupted():
            with descent.costs_times(share):
                steps = _run(descent, CLOSE, LONG)
            if steps == LONG:  # costs beyond what digits can tell
                break
            rise = rise * rise if steps <= EASY else RISE
            share *= rise


def _sampled(descent: _Descent, weights: np.ndarray) -> tuple[np.ndarray, Solve | None]:
    """Where some of these rows lead, and what solves the system there: what stood for them is gone."""
    some = slice(None, None, EVERY)
    signs, costs = np.ascontiguousarray(descent.y[some]), EVERY * weights[some]
    sample = _Descent(descent.problem, descent.blocks.some(some), signs, costs, descent.interrupted)
    _begin(sample, costs)
    _run(sample, NEAR, LONG)
    return sample.z, sample.solver()


def _run(descent: _Descent, gap: float, most: int) -> int:
    """Steps, so many at most, until the gap is as small as this, or as small as it gets; how many."""
    for steps in range(most):
        if descent.look() <= gap or descent.ended() or descent.interrupted() or not descent.advance():
            return steps
    return most


class _Descent:
    """A point, and the steps from it, in the units of the blocks.

    Attributes
    ----------
    z : ndarray of shape (size,)
        w, and the weight of the constant.
    slack : ndarray of shape (n,)
        How much margins lack, which implies dual weights. Slacks follow z by what steps add to them: so dual weights
        get exact even where a slack is less than the rounding of a margin.
    """

    def __init__(
        self, problem: Problem, X: Any, y: np.ndarray, weights: np.ndarray, interrupted: Callable[[], bool]
    ) -> None:
        self.problem, self.blocks, self.y, self.interrupted = problem, blocks_of(problem, X), y, interrupted
        self.share = problem.delta2(weights)
        np.maximum(self.share, LEAST, out=self.share)
        np.divide(self.blocks.unit**2, self.share, out=self.share)
        self.regular = self.blocks.regular
        self._signed, self._gradient = np.empty(y.size), np.empty(self.blocks.size)
        self._system = self._solver()

    def _solver(self) -> _Products | _Gradients:
        solver = _Products if self.blocks.size <= WIDE else _Gradients
        return solver(self.blocks, self.share, self.interrupted)

    def start(self) -> None:
        """Begin at 0."""
        self._forget()
        self.z, self.slack = np.zeros(self.blocks.size), np.ones(self.y.size)

    def place(self, w: np.ndarray, b: float) -> None:
        """Begin at this point."""
        self._begin_at(self.blocks.coordinates(w, b))

    def follow(self, z: np.ndarray, solve: Solve | None) -> None:
        """Begin where a sample of these rows has led, with what solved its system there."""
        self._begin_at(z)
        self._lent = None if solve is None else _Lent(solve)

    def solver(self) -> Solve | None:
        """What solves the system here, where there are costly patterns enough to know it well."""
        costly = self.slack > 0.0
        if np.count_nonzero(costly) < RICH * self.blocks.size:
            return None
        return self._system.factored(costly)

    def _begin_at(self, z: np.ndarray) -> None:
        self._forget()
        self.slack = np.empty(self.y.size)
        self._move_to(z)

    def _forget(self) -> None:
        self._lent: _Lent | None = None
        self._onward: np.ndarray | None = None
        self._gap = self._last = np.inf
        self._looked = False
        self._apart = np.inf  # the bounds, as a share of the lower one
        self._again = 0  # how often the same patterns were costly

    @contextmanager
    def costs_times(self, share: float) -> Iterator[None]:
        """The problem with costs that are less."""
        whole, self.share = self.share, share * self.share
        self._system, self._again, self._looked = self._solver(), 0, False
        yield
        self.share = whole
        self._system, self._looked = self._solver(), False

    def point(self, tol: float) -> Reached:
        """The point in the problem's own units, as it was when it was looked at."""
        alpha = self._signed * self.y
        alpha /= self.blocks.unit**2
        return Reached(*self.blocks.primal(self.z), alpha, self._gap, tol > 0.0 and self._apart <= tol)

    def look(self) -> float:
        """The gradient, and the relative gap that it leaves; once for every point."""
        if self._looked:
            return self._gap
        total, square = weigh(self.slack, self.share, self.y, self._signed)
        return self._measure(total, square, self.blocks.all_combined(self._signed))

    def _move_to(self, z: np.ndarray) -> None:
        """Be there, and look around: rows pass once."""
        self.z, self._onward = z, None
        self._measure(*self.blocks.weigh_at(z, self.y, self.share, self.slack, self._signed))

    def _measure(self, total: float, square: float, made: np.ndarray) -> float:
        """The gradient, and the gap, of sums of alpha and of losses, and what y alpha combines the rows to."""
        self._looked = True
        _, left, size = subtract(self.regular, self.z, made, self._gradient)
        curvature = size + square
        dual = 0.5 * total * total / curvature if curvature > 0.0 else 0.0
        uneven = float(made[-1]) / total if self.problem.free and total > 0.0 else 0.0
        self._last, self._gap = self._gap, 0.5 * left / dual + uneven * uneven if dual > 0.0 else np.inf
        primal = 0.5 * (float(self.regular @ (self.z * self.z)) + square)
        # weights that balance are worth less by about so much for each unit of the intercept
        lost = abs(uneven) * total * (1.0 + abs(float(self.z[-1]))) if self.problem.free else 0.0
        lower = dual - lost
        self._apart = (primal - lower) / lower if lower > 0.0 else np.inf
        return self._gap

    def ended(self) -> bool:
        """Does nothing change any more?"""
        return self._gap <= EXACT or (self._again > STILL and 0.5 * self._last <= self._gap < np.inf)

    def _leads(self) -> bool:
        """Is there something lent that leads on?"""
        if self._onward is not None:
            return True
        if self._lent is None or not self._gap < np.inf:
            return False
        return self._lent.steps < FAR and self._gap <= LENT * self._last

    def _next(self) -> np.ndarray:
        """Where it leads; found once for every point."""
        if self._onward is None:
            assert self._lent is not None
            self._onward = self.z + self._lent.way(self.z, self._gradient)
        return self._onward

    def advance(self) -> bool:
        """A step, to the least point of its line or with what is lent all the way; False where there is none."""
        if self._leads():
            # nearly always as far as the least point of the line, which would take a pass more
            before = self.z
            self._move_to(self._next())
            if not self._gap < self._last:
                self._move_to(before)
                self._lent = None
            return True
        self._lent = None
        costly = self.slack > 0.0
        rough = min(max(self._gap**0.5, FINE), ROUGH) * FINER**self._again
        dz = self._system.solve(costly, self._gradient, rough)
        step = self.blocks.all_scores(dz)
        t = descend(self.slack, step, self.y, self.share, self.z, dz, self.regular, self._gradient, FLAT)
        if not t > 0.0:
            return False
        self._looked = False
        self._again = 0 if follow(self.slack, step, t, costly) else self._again + 1
        if self._again == 1:
            self._move_to(self.z)  # without what rounding has added up
        return True


class _Lent:
    """What solves the system of a sample, corrected by what the `steps` so far have shown of the curvature (BFGS)."""

    def __init__(self, solve: Solve) -> None:
        self._solve, self.steps = solve, 0
        self._last: tuple[np.ndarray, np.ndarray] | None = None
        self._seen: list[tuple[np.ndarray, np.ndarray, float]] = []

    def way(self, z: np.ndarray, gradient: np.ndarray) -> np.ndarray:
        """To about the least point of the whole."""
        if self._last is not None:
            step, change = z - self._last[0], gradient - self._last[1]
            if float(step @ change) > 0.0:
                self._seen.append((step, change, 1.0 / float(step @ change)))
        self._last, self.steps = (z.copy(), gradient.copy()), self.steps + 1
        rest, shares = gradient.copy(), []
        for step, change, inverse in reversed(self._seen):
            shares.append(inverse * float(step @ rest))
            rest -= shares[-1] * change
        way = self._solve(rest)
        for (step, change, inverse), share in zip(self._seen, reversed(shares), strict=True):
            way += (share - inverse * float(change @ way)) * step
        return -way


class _Products:
    """The matrix of the products of columns, over the costly patterns: changed with them, and factored."""

    def __init__(self, blocks: Blocks, share: np.ndarray, interrupted: Callable[[], bool]) -> None:
        self.blocks, self.share, self.interrupted = blocks, share, interrupted
        self._inside: np.ndarray | None = None  # the patterns whose matrix it is, if any
        self._came, self._left = np.empty((2, share.size), np.uint32)
        self._matrix = np.zeros((blocks.size, blocks.size))
        self._top = np.zeros(blocks.size)

    def factored(self, costly: np.ndarray) -> Solve | None:
        """What solves the system of these patterns."""
        self._follow(costly)
        return factor(self.blocks.regularised(self._matrix))

    def solve(self, costly: np.ndarray, gradient: np.ndarray, rough: float) -> np.ndarray:
        """The way to the least point of these patterns' loss."""
        solve = self.factored(costly)
        if solve is not None:
            return -solve(gradient)
        return -gradient / np.maximum(np.diag(self.blocks.regularised(self._matrix)), LEAST)

    def _follow(self, costly: np.ndarray) -> None:
        """Add the patterns that came to the matrix, subtract those that left; or begin anew."""
        inside = np.zeros_like(costly) if self._inside is None else self._inside
        came, left, count = changes(costly, inside, self._came, self._left)
        anew = came + left > ANEW * count
        if came and not anew:
            self._matrix += self._sum(self._came[:came])
            np.maximum(self._top, np.diag(self._matrix), out=self._top)
        if left and not anew:
            self._matrix -= self._sum(self._left[:left])
            anew = bool((np.diag(self._matrix) < FALL * self._top).any())
        if anew:
            if came < count:
                changes(costly, np.zeros_like(costly), self._came, self._left)
            self._matrix = self._sum(self._came[:count])
            self._top = np.diag(self._matrix).copy()
        self._inside = costly

    def _sum(self, rows: np.ndarray) -> np.ndarray:
        return self.blocks.all_products(self.share, rows, self.interrupted)


class _Gradients:
    """Conjugate gradients, which ask for products of the matrix with vectors alone; its diagonal before them."""

    def __init__(self, blocks: Blocks, share: np.ndarray, interrupted: Callable[[], bool]) -> None:
        self.blocks, self.share, self.interrupted = blocks, share, interrupted
        X, self._w = blocks.X, np.zeros(blocks.d)
        if sp.issparse(X):
            self._space: Any = Sparse(unsigned(X.indptr), unsigned(X.indices), X.data, Vector(self._w))
        else:
            self._space = Dense(np.asarray(X), Vector(self._w))

    def factored(self, costly: np.ndarray) -> None:
        """Nothing that others could use."""

    def solve(self, costly: np.ndarray, gradient: np.ndarray, rough: float) -> np.ndarray:
        """The way to the least point of these patterns' loss, but for this share of the gradient."""
        rows = np.flatnonzero(costly)
        inverse = 1.0 / self._diagonal(rows)
        dz, rest = np.zeros(gradient.size), -gradient
        other = inverse * rest
        direction, square = other, float(rest @ other)
        enough = rough * rough * float(self.blocks.regular @ (rest * rest))
        for _ in range(TURNS):
            if not float(self.blocks.regular @ (rest * rest)) > enough or self.interrupted():
                break
            product = self._product(rows, direction)
            t = square / float(direction @ product)
            dz, rest = dz + t * direction, rest - t * product
            other = inverse * rest
            before, square = square, float(rest @ other)
            direction = other + square / before * direction
        return dz

    def _product(self, rows: np.ndarray, z: np.ndarray) -> np.ndarray:
        w, b = self.blocks.primal(z)
        self._w[:] = w
        made = np.zeros(self.blocks.d)
        total = products(self._space, rows, self.share, b, Vector(made))
        return self.blocks.regular * z + self.blocks.combined(made, total)

    def _diagonal(self, rows: np.ndarray) -> np.ndarray:
        blocks, mean = self.blocks, self.blocks.mean
        sums, both = np.zeros((2, blocks.d))
        total = diagonal(self._space, rows, self.share, Vector(sums), Squared(both))
        both += mean * (total * mean - 2.0 * sums)
        found = np.append(np.maximum(both, 0.0), blocks.constant**2 * total)[: blocks.size]
        return np.maximum(found / blocks.units**2 + self.blocks.regular, LEAST)
