"""The exact optimum of every problem, by Clarabel, as an interval that is proved without the library.

Clarabel's points are only trusted as points: its primal point gives an upper bound of a soft problem's
optimum and its dual point, made feasible, a lower one. Both are computed here, in rational arithmetic, from
the definitions, so that the only error left is the width of the interval.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from math import isqrt

import clarabel
import numpy as np
import scipy.sparse as sp

from maxmargin import Problem

TOLERANCES = (1e-9, 1e-11, 1e-13)  # Clarabel gives up early where it is asked for too much, so ask in turn
CLOSE = Fraction(1, 10**12)


@dataclass(frozen=True)
class Optimum:
    """The optimum lies in [lower, upper]; exact numbers."""

    lower: Fraction
    upper: Fraction

    @property
    def e(self) -> Fraction:
        """The oracle's own gap."""
        return self.upper - self.lower

    def meet(self, lower: Fraction, upper: Fraction) -> Optimum:
        """What two intervals say together."""
        return Optimum(max(lower, self.lower), min(upper, self.upper))


def _solve(P, q, A, b, cones, tol):
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    settings.max_iter = 200
    settings.tol_gap_abs = settings.tol_gap_rel = settings.tol_feas = tol
    solution = clarabel.DefaultSolver(
        sp.csc_matrix(sp.triu(P)), q, sp.csc_matrix(A), b, cones, settings
    ).solve()
    return np.asarray(solution.x), np.asarray(solution.z)


def optimum(problem: Problem, X: np.ndarray, y: np.ndarray, weights: np.ndarray) -> Optimum:
    """The interval in which the best objective (soft) or the largest margin (hard) lies."""
    kept = weights > 0
    X, y, s = np.asarray(X, float)[kept], y[kept], weights[kept]
    if problem.intercept == "augmented":
        X = np.column_stack([X, np.full(len(y), problem.intercept_scaling)])
    free = problem.intercept == "free"
    data = [[Fraction(v) for v in row] for row in X.tolist()]
    signs = [int(v) for v in y]
    best, hard, size = None, bool(np.isinf(problem.C)), Fraction(float(np.abs(X).max()))
    for tol in TOLERANCES:
        points = _hard_points(X, y, free, tol) if hard else _soft_points(problem, X, y, s, free, tol)
        for w, b, alpha in points:
            if not (np.isfinite(w).all() and np.isfinite(b) and np.isfinite(alpha).all()):
                continue
            if hard:
                lower, upper = _hard_bounds(data, signs, w, b, alpha, free)
            else:
                lower, upper = _soft_bounds(problem, data, signs, s, w, b, alpha, free)
            best = Optimum(lower, upper) if best is None else best.meet(lower, upper)
            if best.e <= CLOSE * best.upper or (
                hard and best.upper <= CLOSE * size and tol == TOLERANCES[-1]
            ):
                return best
    return best


# points, in floating point


def _soft_points(problem, X, y, s, free, tol):
    """In three scales: patterns of unit length, as they are, and C = 1."""
    length = float(np.sqrt(np.mean(np.sum(X * X, axis=1)))) or 1.0
    for unit in (length, 1.0, problem.C**-0.5):
        yield from _scaled_points(problem, X, y, s, free, tol, unit)


def _scaled_points(problem, X, y, s, free, tol, unit):
    """Clarabel on the primal form, and on the dual form."""
    n, d = X.shape
    hinge = problem.loss == "hinge"
    A = y[:, None] * X / unit
    bias = y[:, None] if free else np.zeros((n, 0))
    k = bias.shape[1]
    cost = problem.C * s * unit**2
    # (w, b, xi): 1/2 |w|^2 + cost . xi (or xi^2);  A w + y b + xi >= 1,  xi >= 0
    P = sp.block_diag([sp.eye(d), sp.csc_matrix((k, k)), sp.diags(np.zeros(n) if hinge else 2.0 * cost)])
    q = np.concatenate([np.zeros(d + k), cost if hinge else np.zeros(n)])
    G = sp.vstack(
        [
            sp.hstack([-A, -bias, -sp.eye(n)]),
            sp.hstack([sp.csc_matrix((n, d + k)), -sp.eye(n)]),
        ]
    )
    h = np.concatenate([-np.ones(n), np.zeros(n)])
    x, z = _solve(P, q, G, h, [clarabel.NonnegativeConeT(2 * n)], tol)
    yield x[:d] / unit, (x[d] if free else 0.0), z[:n] / unit**2
    # (v, alpha / cost): v = A' alpha; 1/2 |v|^2 + 1/2 sum D alpha^2 - sum alpha, 0 <= alpha <= cost
    size = cost if hinge else np.full(n, max(float(np.abs(z[:n]).max()), 1e-12))
    D = np.zeros(n) if hinge else 0.5 / cost
    P = sp.block_diag([sp.eye(d), sp.diags(D * size * size)])
    q = np.concatenate([np.zeros(d), -size])
    equal = [sp.hstack([sp.eye(d), -A.T * size])]
    if free:
        equal.append(sp.hstack([sp.csc_matrix((1, d)), sp.csc_matrix(y * size)]))
    inner = [sp.hstack([sp.csc_matrix((n, d)), -sp.eye(n)])]
    h = [np.zeros(d + k), np.zeros(n)]
    if hinge:
        inner.append(sp.hstack([sp.csc_matrix((n, d)), sp.eye(n)]))
        h.append(np.ones(n))
    cones = [clarabel.ZeroConeT(d + k), clarabel.NonnegativeConeT(n * len(inner))]
    x, z = _solve(P, q, sp.vstack([*equal, *inner]), np.concatenate(h), cones, tol)
    alpha = np.maximum(x[d:], 0.0) * size
    yield A.T @ alpha / unit, (-z[d] if free else 0.0), alpha / unit**2


def _hard_points(X, y, free, tol):
    """The point of the hull (of the difference of the hulls) that is nearest to the origin."""
    n, d = X.shape
    A = y[:, None] * X
    unit = max(float(np.abs(A).max()), 1e-300)
    sums = np.array([y > 0, y < 0] if free else [np.ones(n)], dtype=float)
    P = sp.block_diag([sp.eye(d), sp.csc_matrix((n, n))])
    G = sp.vstack(
        [
            sp.hstack([sp.eye(d), -A.T / unit]),
            sp.hstack([sp.csc_matrix((len(sums), d)), sums]),
            sp.hstack([sp.csc_matrix((n, d)), -sp.eye(n)]),
        ]
    )
    h = np.concatenate([np.zeros(d), np.full(len(sums), 1.0 / len(sums)), np.zeros(n)])
    cones = [clarabel.ZeroConeT(d + len(sums)), clarabel.NonnegativeConeT(n)]
    x, _ = _solve(P, np.zeros(d + n), G, h, cones, tol)
    alpha = np.maximum(x[d:], 0.0)
    for w in (A.T @ alpha, x[:d] * unit):
        z = X @ w
        yield w, (-0.5 * (z[y > 0].min() + z[y < 0].max()) if free else 0.0), alpha
    # 1/2 |w|^2, A w + y b >= 1: only where there is a separator; columns are scaled, the norm with them
    bias = y[:, None] if free else np.zeros((n, 0))
    size = np.maximum(np.abs(A).max(axis=0), 1e-3 * unit)
    P = sp.block_diag([sp.diags((size.min() / size) ** 2), sp.csc_matrix((bias.shape[1],) * 2)])
    G = -np.hstack([A / size, bias])
    x, z = _solve(P, np.zeros(P.shape[0]), G, -np.ones(n), [clarabel.NonnegativeConeT(n)], tol)
    yield x[:d] / size, (x[d] if free else 0.0), np.maximum(z, 0.0)


# bounds, in rational arithmetic


def _dot(a, b):
    return sum((p * q for p, q in zip(a, b, strict=True) if p and q), Fraction(0))


def _margins(data, signs, w, b):
    w = [Fraction(v) for v in w.tolist()]
    b = Fraction(float(b))
    return [l * (_dot(row, w) + b) for row, l in zip(data, signs, strict=True)], _dot(w, w)


def _feasible(signs, alpha, caps, free):
    """Exactly within the caps and, with a free intercept, exactly balanced, by scaling one class down."""
    a = [max(Fraction(v), Fraction(0)) for v in alpha.tolist()]
    if caps is not None:
        a = [min(v, cap) for v, cap in zip(a, caps, strict=True)]
    if free:
        plus = sum((v for v, l in zip(a, signs, strict=True) if l > 0), Fraction(0))
        minus = sum((v for v, l in zip(a, signs, strict=True) if l < 0), Fraction(0))
        if not (plus and minus):
            return [Fraction(0)] * len(a)
        down = {1: min(Fraction(1), minus / plus), -1: min(Fraction(1), plus / minus)}
        a = [v * down[l] for v, l in zip(a, signs, strict=True)]
    return a


def _combined(data, signs, a):
    columns = zip(*data, strict=True)
    c = [v * l for v, l in zip(a, signs, strict=True)]
    return sum((_dot(column, c) ** 2 for column in columns), Fraction(0))


def _soft_bounds(problem, data, signs, s, w, b, alpha, free):
    cost = [Fraction(problem.C) * Fraction(v) for v in s.tolist()]
    margins, square = _margins(data, signs, w, b)
    slack = [max(1 - m, Fraction(0)) for m in margins]
    hinge = problem.loss == "hinge"
    upper = square / 2 + _dot(cost, slack if hinge else [v * v for v in slack])
    a = _feasible(signs, alpha, cost if hinge else None, free)
    lower = sum(a, Fraction(0)) - _combined(data, signs, a) / 2
    if not hinge:
        lower -= sum((v * v / (4 * c) for v, c in zip(a, cost, strict=True)), Fraction(0))
    return lower, upper


def _hard_bounds(data, signs, w, b, alpha, free):
    margins, square = _margins(data, signs, w, b)
    lower = Fraction(0)  # w = 0 in the unit ball
    if square:
        smallest = min(margins)
        lower = max(lower, smallest / _root(square, up=smallest > 0))
    a = _feasible(signs, alpha, None, free)
    total = sum(a, Fraction(0))
    if not total:
        a = _feasible(signs, np.ones(len(signs)), None, free)
        total = sum(a, Fraction(0))
    return lower, _root(_combined(data, signs, a), up=True) / total


def _root(v: Fraction, up: bool) -> Fraction:
    """A square root, rounded in a known direction, to 60 digits or so."""
    if not v:
        return v
    shift = 1 << 400
    root = isqrt(v.numerator * v.denominator * shift * shift)
    return Fraction(root + (1 if up else 0), v.denominator * shift)
