"""The exact finish for small problems: solve the optimality conditions on the support.

Given which dual weights are free (F), zero (Z) and capped (U), the conditions are linear. Solving them, moving
every pattern that contradicts its set, and repeating is a semismooth Newton method; it ends with the optimum to
rounding.

References
----------
M. Hintermueller, K. Ito, K. Kunisch, "The primal-dual active set strategy as a semismooth Newton method",
SIAM J. Optim. 13, 2002.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import scipy.linalg
from scipy.optimize import lsq_linear

from ...engine.jit import compiled
from .cholesky import factor
from .interior_point import Iterate, interior_point
from .iterate import Reached
from .newton import newton_points
from .orthogonal import Disjoint, Pivoted, shortest
from .quadratic_program import Quadratic
from .sifting import by_proximal_points, narrowed_points

_lapack: Any = scipy.linalg.lapack
_linalg: Any = scipy.linalg  # its annotations speak of every case at once

UNSURE = 1e-12  # share of the margin by which a slack of products may be less than 0
TURNS = 30  # most changes of the sets near the optimum,
FEW_TURNS, FEWEST = 6, 2  # from a rule's dual weights, and on the way
INSEPARABLE = 1e-6  # a margin, R = 1, that may be zero
NEAR = 1e-3  # a gap at which two points may agree about which patterns are free
SOLVED = 1e-20  # a gap, in its square root, that is rounding
PLENTY, NEXT_TO_NONE = 2000, 1e-10  # patterns for which so small a gap is as good as none
# most free dual weights in one linear system; and more than columns, where these bind them
MANY, SPARE = 1200, 200
APART = 1e3  # times its rounding, a slack that is none of a tight pattern

Sets = tuple[bytes, bytes]  # which patterns are free, and which are capped


class Point(NamedTuple):
    """Dual weights, the w they stand for (computed apart, to more digits), multipliers of the equations.

    `settled`: the optimality conditions hold to rounding. That says more of w than a gap, which is quadratic in
    its error. `near`: they hold nearly enough.
    """

    a: np.ndarray
    w: np.ndarray
    beta: np.ndarray
    settled: bool = False
    near: bool = False


def candidates(
    qp: Quadratic,
    start: np.ndarray | None = None,
    interrupted: Callable[[], bool] = lambda: False,
    enough: float = 0.0,
) -> Iterator[Point]:
    """Points that may be the optimum, the cheapest first; the caller measures each and stops when content.

    Parameters
    ----------
    qp : Quadratic
    start : ndarray, default=None
        Dual weights near the optimum. Where they do not lead to it, an interior-point method does.
    interrupted : callable
        Is it time to stop? Asked before every step; the point that was reached is still yielded.
    enough : float, default=0
        A gap at which points of a soft margin are yielded on the way.
    """
    known: set[Sets] = set()
    if start is not None:
        a = np.clip(start, 0.0, qp.c)
        beta = _multipliers(qp, a)
        yield from _settle(qp, (a > 0.0) & (a < qp.c), a >= qp.c, beta, FEW_TURNS, known)
    if qp.basis is not None and not qp.squared:
        found = _by_products(qp, interrupted)
        if found is not None:
            free, capped, point = found
            yield point._replace(settled=True)  # nearly always: then its certificate has the last word
            yield from _settle(qp, free, capped, point.beta, FEWEST, known)
    if not qp.problem.hard and np.isfinite(qp.sizes).all():
        rough, gap = yield from _approach(qp, interrupted, known, enough)
        if interrupted():
            yield rough
            return
        if gap <= SOLVED and qp.problem.loss == "squared_hinge":  # half of a squared gradient
            yield rough._replace(settled=True)
        # nothing to be gained then that costs as much
        plenty = len(rough.a) > PLENTY and gap <= NEXT_TO_NONE
        if plenty and qp.problem.loss == "squared_hinge":
            yield rough
            return
        yield from _settle(qp, *_sides(qp, rough), rough.beta, TURNS, known)
        if plenty:
            yield rough
            return
    inner = interior_point(qp, interrupted)
    a, (w, beta) = inner.a, np.split(inner.z, [qp.shape[1]])
    rough = Point(np.clip(a, 0.0, qp.c), w, beta)
    yield rough
    if interrupted():
        return
    if qp.problem.hard and np.linalg.norm(w) < INSEPARABLE:
        cancelled = _cancel(qp, a)
        yield Point(cancelled, qp.A.T @ cancelled, beta)
    yield from _settle(qp, *_sets(qp, inner, w), beta, TURNS, known)


def _by_products(
    qp: Quadratic, interrupted: Callable[[], bool]
) -> tuple[np.ndarray, np.ndarray, Point] | None:
    """Free and capped patterns of independent rows, and the point; None where they are not found soon.

    From all of them free, as most are where columns are many; the conditions by products of rows, whose digits are
    enough to tell sets apart.
    """
    K, free, capped = qp.A @ qp.A.T, np.ones(qp.shape[0], bool), np.zeros(qp.shape[0], bool)
    tried = set[Sets]()
    for _ in range(TURNS):
        key, some, E = (free.tobytes(), capped.tobytes()), np.flatnonzero(free), qp.E[:, free]
        if key in tried or not (some.size and E.any(axis=1).all()) or interrupted():
            return None
        tried.add(key)
        solved = factor(K[np.ix_(some, some)])
        if solved is None:
            return None
        a = np.where(capped, qp.c, 0.0)
        answers = solved(np.column_stack([(qp.q - K @ a)[some], E.T]))
        alone, each = answers[:, 0], answers[:, 1:]  # without the equations, and of a multiplier of one
        beta = _lapack.dposv(E @ each, E @ alone + qp.E @ a - qp.e)[1] if len(E) else np.zeros(0)
        a[some] = alone - each @ beta
        slack = K @ a - qp.q + qp.E.T @ beta
        unsure = UNSURE * float(np.abs(qp.q).max() + np.abs(beta).max(initial=0.0))
        low, high = free & (a < 0.0), free & (a > qp.c)
        need, much = ~free & ~capped & (slack < -unsure), capped & (slack > unsure)
        if not (low | high | need | much).any():
            return free, capped, Point(a, qp.A.T @ a, beta)
        free = (free & ~low & ~high) | need | much
        capped = (capped & ~much) | high
    return None


def _approach(
    qp: Quadratic, interrupted: Callable[[], bool], known: set[Sets], enough: float
) -> Generator[Point, None, tuple[Point, float]]:
    """To a soft margin by what is fastest for many patterns; the last point, which has fewer digits, and its gap.

    Yielded on the way: points whose gap is said to be enough; and, as it is known under the hinge long before the end
    which patterns are free, what they settle.
    """
    # the constant is a coordinate here
    problem = replace(qp.problem, intercept="free" if qp.problem.free else "none")
    rough, gap, last = Point(np.zeros(qp.shape[0]), np.zeros(qp.shape[1]), np.zeros(len(qp.e))), np.inf, None
    if problem.loss == "squared_hinge":
        for reached in newton_points(problem, qp.rows, qp.y, qp.sizes, interrupted, enough):
            rough, gap = _reached(qp, reached), reached.gap
            if reached.near:
                yield rough._replace(near=True)
        return rough, gap if len(rough.a) > PLENTY else _gap(qp, rough)
    solver = by_proximal_points
    for reached in narrowed_points(problem, qp.rows, qp.y, qp.sizes, interrupted, solver, enough):
        rough = _reached(qp, reached)
        if reached.near:
            yield rough._replace(near=True)
        slack = qp.slacks(rough.a, rough.beta, rough.w)
        gap = _gap(qp, rough, slack)
        if gap <= NEAR:
            sets = _sides(qp, rough, slack)
            if last is not None and all(map(np.array_equal, sets, last)):
                yield from _settle(qp, *sets, rough.beta, FEWEST, known)
                last = None
            else:
                last = sets
    return rough, gap


def _reached(qp: Quadratic, reached: Reached) -> Point:
    """What a solver for many patterns has come to."""
    return Point(np.clip(reached.alpha, 0.0, qp.c), reached.w, np.full(len(qp.e), reached.b))


def _sides(qp: Quadratic, point: Point, slack: np.ndarray | None = None) -> tuple[np.ndarray, np.ndarray]:
    """The patterns that are free and those that are capped: a product of two numbers is small, which of them is it?"""
    a, slack = point.a, qp.slacks(point.a, point.beta, point.w) if slack is None else slack
    free, capped = np.empty((2, a.size), bool)
    sides(a, slack, qp.c, max(float(a.max()), 1e-300), free, capped)
    return free, capped


def _gap(qp: Quadratic, point: Point, slack: np.ndarray | None = None) -> float:
    """The relative gap: what the products of the optimality conditions add up to."""
    a, w, beta = point[:3]
    slack = qp.slacks(a, beta, w) if slack is None else slack
    total, apart = float(qp.q @ a), w - qp.A.T @ a
    left = 0.5 * float(apart @ apart)
    squared = qp.problem.loss == "squared_hinge"
    if not (total > 0.0 and (qp.D > 0.0 if squared else qp.c < np.inf).all()):
        return np.inf
    if squared:  # what is lost on either side of a pattern's own coordinate
        own = np.minimum(slack, qp.D * a)
        return (left + float(own @ ((slack - 0.5 * own) / qp.D))) / total
    return (left + lost(a, slack, qp.c)) / total


def _sets(qp: Quadratic, inner: Iterate, w: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the free patterns and the capped ones, as an interior point has them: the smaller factor of a s is 0."""
    a, natural = inner.a, np.minimum(qp.c, max(float(inner.a.max()), 1e-300))
    one = max(float(w @ w), 1e-300) if qp.problem.hard else 1.0  # a margin of one
    free = np.all(inner.x / natural > inner.s / one, axis=0)
    if qp.problem.hard and not free.any():
        # a margin so small that products of it are rounding: no more patterns than these are needed
        free[np.argsort(-a, kind="stable")[: qp.A.shape[1] + 2]] = True
    return free, ~free & (a > 0.5 * qp.c)


def _cancel(qp: Quadratic, a: np.ndarray) -> np.ndarray:
    """Dual weights whose patterns cancel to the last digit, each changed in proportion to itself."""
    B = np.hstack([qp.A, qp.E.T])
    target = np.concatenate([np.zeros(qp.shape[1]), qp.e])
    for _ in range(TURNS):
        scaled = np.sqrt(a)[:, None] * B
        step = _linalg.lstsq(scaled.T @ scaled, B.T @ a - target, check_finite=False)[0]
        change = B @ step
        largest = float(change.max())
        if not np.isfinite(largest):
            return a
        whole = largest <= 0.5
        a = a * (1.0 - change * (1.0 if whole else 0.5 / largest))
        if whole and largest < 1e-15:
            return a
    return a


def _multipliers(qp: Quadratic, a: np.ndarray) -> np.ndarray:
    """The multipliers that make free patterns tight, in the mean."""
    if not len(qp.e):
        return np.zeros(0)
    free = (a > 0.0) & (a < qp.c)
    free = free if free.any() else a > 0.0
    slack = qp.slacks(a, np.zeros(len(qp.e)))
    return _linalg.lstsq(qp.E[:, free].T, -slack[free])[0] if free.any() else np.zeros(len(qp.e))


def _settle(
    qp: Quadratic, free: np.ndarray, capped: np.ndarray, beta: np.ndarray, turns: int, known: set[Sets]
) -> Iterator[Point]:
    """Solve on the free set and correct the sets until nothing contradicts; yield what is found then, if it is new."""
    seen = set()
    size = qp.size
    many = MANY if qp.squared else min(MANY, qp.shape[1] + SPARE)
    for _ in range(turns):
        key = (free.tobytes(), capped.tobytes())
        if key in seen or key in known or np.count_nonzero(free) > many:
            return
        seen.add(key)
        a, w, beta = _solve(qp, free, capped, beta)[:3]
        if not (np.isfinite(a).all() and np.isfinite(w).all() and np.isfinite(beta).all()):
            return
        if np.abs(qp.E @ a - qp.e).max(initial=0.0) > 1e-9 * (1.0 + float(np.abs(a).max())):
            return  # the free set cannot meet the equations
        slack = qp.slacks(a, beta, w)
        # rounding of the score, and of w, which may be a small difference of large terms
        noise = 4e-16 * (size.T @ np.abs(a))
        fuzz = size @ (1e-12 * np.abs(w) + noise) + 1e-12 * (np.abs(qp.E.T @ beta) + np.abs(qp.q))
        small = 1e-11 * max(float(np.abs(a).max()), 1e-300)
        low, high = free & (a < -small), free & (a > qp.c + small)
        need, much = ~free & ~capped & (slack < -fuzz), capped & (slack > fuzz)
        if not (need.any() or much.any()):
            if (np.abs(slack[free]) > APART * fuzz[free]).any():
                return  # more are free than can be tight at once
            point = _tighten(qp, free, Point(np.clip(a, 0.0, qp.c), w, beta))
            point = point._replace(settled=True)
            if not (low.any() or high.any()):
                known.add(key)
                yield point
                return
            # the same w, from dual weights within their bounds, where tight patterns are dependent
            repaired = _redistribute(qp, a, free, capped)
            if repaired is not None:
                known.add(key)
                yield point._replace(a=repaired)
                return
        free = (free & ~low & ~high) | need | much
        capped = (capped & ~much) | high


def _solve(qp: Quadratic, free: np.ndarray, capped: np.ndarray, beta: np.ndarray) -> Point:
    """The linear conditions: patterns in F tight, equations met.

    By orthogonal factors of the patterns themselves (their products would square the condition number), on
    the null space of the equations.
    """
    a = np.where(capped, qp.c, 0.0)
    fixed = qp.A.T @ a
    k, d = np.count_nonzero(free), qp.A.shape[1]
    if k == 0:
        return Point(a, fixed, beta)
    if k > d and not qp.problem.hard and qp.D[free].all():
        return _least_squares(qp, free)
    B = qp.A[free].T
    if qp.squared:
        B = np.vstack([B, np.diag(np.sqrt(qp.D[free]))])
    E = qp.E[:, free]
    size = np.sqrt(np.maximum((B * B).sum(axis=0) + (E * E).sum(axis=0), 1e-300))
    B = B / size
    r = (qp.q[free] - qp.A[free] @ fixed) / size
    equations = Disjoint(E / size)
    x = equations.least(qp.e - qp.E @ a)
    moved, inside = B @ x, equations.within(B)
    if inside.any():
        factors = Pivoted(inside)
        z = factors.under(equations.within(r[None, :])[0]) - factors.Q.T @ moved
        x = x + equations.out(factors.over(z))
        moved = moved + factors.Q @ z
    a[free] = x / size
    beta = equations.multipliers(r - B.T @ moved)
    return Point(a, fixed + moved[:d], beta)


def _least_squares(qp: Quadratic, free: np.ndarray) -> Point:
    """The same where every pattern has a coordinate of its own, and no cap: 1/2 |w|^2 + the squares of the slacks.

    By orthogonal factors as tall as the free set and as wide as the weights.
    """
    d, rows, root = qp.shape[1], np.hstack([qp.A, qp.E.T])[free], np.sqrt(qp.D[free])
    right = qp.q[free]
    matrix = np.vstack([np.eye(d, rows.shape[1]), rows / root[:, None]])
    size = np.sqrt(np.maximum((matrix * matrix).sum(axis=0), 1e-300))
    target = np.concatenate([np.zeros(d), right / root])
    z = shortest(matrix / size, target) / size
    a = np.zeros(free.size)
    a[free] = (right - rows @ z) / qp.D[free]
    return Point(a, z[:d], z[d:])


def _tighten(qp: Quadratic, free: np.ndarray, point: Point) -> Point:
    """Make free patterns tight to the last digit: w came as a sum, whose rounding its largest terms decide."""
    if qp.squared or not free.any():
        return point
    a, w, beta = point[:3]
    slack = qp.slacks(a, beta, w)[free]
    rows = np.hstack([qp.A[free], qp.E[:, free].T])
    move = shortest(rows, -slack)
    return Point(a, w + move[: w.size], beta + move[w.size :])


def _redistribute(qp: Quadratic, a: np.ndarray, free: np.ndarray, capped: np.ndarray) -> np.ndarray | None:
    """Dual weights within their bounds that give the same w."""
    if qp.squared:
        return None
    rows = np.vstack([qp.A[free].T, qp.E[:, free]])
    target = rows @ a[free]
    upper = np.where(np.isfinite(qp.c[free]), qp.c[free], 1e3 * max(float(np.abs(a).max()), 1.0))
    found = lsq_linear(rows, target, bounds=(0.0, upper), method="bvls", tol=1e-15)
    if not np.abs(rows @ found.x - target).max() <= 1e-12 * (1.0 + np.abs(target).max()):
        return None
    out = np.where(capped, qp.c, 0.0)
    out[free] = found.x
    return out


# The optimality conditions of a dual program with caps, row by row: `a` are dual weights, `slack` the gradient of the
# Lagrangian, `cap` the largest dual weights.


@compiled(fastmath={"reassoc", "contract"})
def lost(a, slack, cap):
    """The sum of a slack where slack is positive, of (cap - a) |slack| where it is negative; every cap is finite."""
    total = 0.0
    for k in range(a.size):
        s = slack[k]
        total += a[k] * max(s, 0.0) + (cap[k] - a[k]) * max(-s, 0.0)
    return total


@compiled()
def sides(a, slack, cap, top, free, capped):
    """Which patterns are free, and which are capped; dual weights are measured by their caps, or by `top`.

    A product of two numbers is small: the smaller of them is.
    """
    for k in range(a.size):
        natural, s = min(cap[k], top), slack[k]
        free[k] = a[k] / natural > max(s, 0.0) and (cap[k] - a[k]) / natural > max(-s, 0.0)
        capped[k] = not free[k] and s < 0.0 and cap[k] < np.inf
