"""The exact optimum of every problem, by Clarabel, as an interval that is proved independently of the library.

Only the points of Clarabel are used: for a soft problem its primal point gives an upper bound of the optimum, and
its dual point, made feasible, a lower bound. Both are computed in rational arithmetic from the definitions, so the
only error is the width of the interval.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from hashlib import sha256
from math import isqrt

import clarabel
import numpy as np
import scipy.sparse as sp
from naive import p_norm

from maxmargin import Problem

# tried in turn, since Clarabel stops early for tolerances that are too small
TOLERANCES = (1e-9, 1e-11, 1e-13)
CLOSE = Fraction(1, 10**12)


@dataclass(frozen=True)
class Optimum:
    """The optimum lies in [lower, upper]: exact numbers, in other norms than p = 2 up to the rounding of a few sums."""

    lower: Fraction | float
    upper: Fraction | float

    @property
    def e(self) -> Fraction | float:
        """Width of the interval."""
        return max(self.upper - self.lower, 0)


def _solve(P, q, A, b, cones, tol):
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    settings.max_iter = 200
    settings.tol_gap_abs = settings.tol_gap_rel = settings.tol_feas = tol
    P, A = sp.csc_matrix(sp.triu(P)), sp.csc_matrix(A)
    solution = clarabel.DefaultSolver(P, q, A, b, cones, settings).solve()
    return np.asarray(solution.x), np.asarray(solution.z)


_KNOWN: dict[tuple, Optimum] = {}  # cache by problem and digest of the data


def optimum(problem: Problem, X: np.ndarray, y: np.ndarray, weights: np.ndarray) -> Optimum:
    """Return an interval that holds the best objective (soft) or the largest margin (hard)."""
    arrays = [np.ascontiguousarray(a, float) for a in (X, y, weights)]
    key = problem, arrays[0].shape, sha256(b"".join(a.tobytes() for a in arrays)).digest()
    if key not in _KNOWN:
        _KNOWN[key] = _optimum(problem, *arrays)
    return _KNOWN[key]


def _optimum(problem: Problem, X: np.ndarray, y: np.ndarray, weights: np.ndarray) -> Optimum:
    """Compute the interval without the cache."""
    kept = weights > 0
    X, y, s = X[kept], y[kept], weights[kept]
    if problem.intercept == "augmented":
        X = np.column_stack([X, np.full(len(y), problem.intercept_scaling)])
    free, hard = problem.intercept == "free", bool(np.isinf(problem.C))
    data, signs = [[Fraction(v) for v in row] for row in X.tolist()], [int(v) for v in y]
    best, size = None, Fraction(float(np.abs(X).max()))
    for tol in TOLERANCES:
        points = _hard_points(X, y, free, tol) if hard else _soft_points(problem, X, y, s, free, tol)
        for w, b, alpha in points:
            if not np.isfinite([*w, b, *alpha]).all():
                continue
            if hard:
                lower, upper = _hard_bounds(data, signs, w, b, alpha, free)
            else:
                lower, upper = _soft_bounds(problem, data, signs, s, w, b, alpha, free)
            best = (
                Optimum(lower, upper)
                if best is None
                else Optimum(max(lower, best.lower), min(upper, best.upper))
            )
            no_margin = hard and best.upper <= CLOSE * size and tol == TOLERANCES[-1]
            if best.e <= CLOSE * best.upper or no_margin:
                return best
    return best


# points, in floating point


def _soft_points(problem, X, y, s, free, tol):
    """Yield points of the primal and of the dual form in three scales: patterns of unit length, as they are, C = 1."""
    (n, d), hinge, k = X.shape, problem.loss == "hinge", int(free)
    one = sp.eye(n)
    for unit in (float(np.sqrt(np.mean(np.sum(X * X, axis=1)))) or 1.0, 1.0, problem.C**-0.5):
        A, cost = y[:, None] * X / unit, problem.C * s * unit**2
        # (w, b, xi): 1/2 |w|^2 + cost . xi (or xi^2);  A w + y b + xi >= 1,  xi >= 0
        P = sp.diags(np.concatenate([np.ones(d), np.zeros(k), np.zeros(n) if hinge else 2.0 * cost]))
        q = np.concatenate([np.zeros(d + k), cost if hinge else np.zeros(n)])
        G = sp.bmat([[np.column_stack([-A, -y] if free else [-A]), -one], [None, -one]])
        h = np.concatenate([-np.ones(n), np.zeros(n)])
        x, z = _solve(P, q, G, h, [clarabel.NonnegativeConeT(2 * n)], tol)
        yield x[:d] / unit, (x[d] if free else 0.0), z[:n] / unit**2
        # (v, alpha / cost): v = A' alpha; 1/2 |v|^2 + 1/2 sum D alpha^2 - sum alpha, 0 <= alpha <= cost
        size = cost if hinge else np.full(n, max(float(np.abs(z[:n]).max()), 1e-12))
        P = sp.diags(np.concatenate([np.ones(d), np.zeros(n) if hinge else 0.5 / cost * size * size]))
        rows = [[sp.eye(d), -A.T * size], *([[None, (y * size)[None, :]]] if free else []), [None, -one]]
        h = np.zeros(d + k + n)
        if hinge:
            rows, h = [*rows, [None, one]], np.append(h, np.ones(n))
        cones = [clarabel.ZeroConeT(d + k), clarabel.NonnegativeConeT(h.size - d - k)]
        x, z = _solve(P, np.append(np.zeros(d), -size), sp.bmat(rows), h, cones, tol)
        alpha = np.maximum(x[d:], 0.0) * size
        yield A.T @ alpha / unit, (-z[d] if free else 0.0), alpha / unit**2


def _hard_points(X, y, free, tol):
    """Return the point of the hull (of the difference of the hulls) nearest to the origin."""
    n, d = X.shape
    A = y[:, None] * X
    unit = max(float(np.abs(A).max()), 1e-300)
    sums = np.array([y > 0, y < 0] if free else [np.ones(n)], dtype=float)
    G = sp.bmat([[sp.eye(d), -A.T / unit], [None, sums], [None, -sp.eye(n)]])
    h = np.concatenate([np.zeros(d), np.full(len(sums), 1.0 / len(sums)), np.zeros(n)])
    cones = [clarabel.ZeroConeT(d + len(sums)), clarabel.NonnegativeConeT(n)]
    x, _ = _solve(sp.diags(np.append(np.ones(d), np.zeros(n))), np.zeros(d + n), G, h, cones, tol)
    alpha = np.maximum(x[d:], 0.0)
    for w in (A.T @ alpha, x[:d] * unit):
        z = X @ w
        yield w, (-0.5 * (z[y > 0].min() + z[y < 0].max()) if free else 0.0), alpha
    # 1/2 |w|^2, A w + y b >= 1: only for separable data; columns and the norm are scaled
    size = np.maximum(np.abs(A).max(axis=0), 1e-3 * unit)
    P = sp.diags(np.append((size.min() / size) ** 2, np.zeros(int(free))))
    G = -np.column_stack([A / size, y] if free else [A / size])
    x, z = _solve(P, np.zeros(d + int(free)), G, -np.ones(n), [clarabel.NonnegativeConeT(n)], tol)
    yield x[:d] / size, (x[d] if free else 0.0), np.maximum(z, 0.0)


# bounds, in rational arithmetic


def _dot(a, b):
    return sum((p * q for p, q in zip(a, b, strict=True) if p and q), Fraction(0))


def _margins(data, signs, w, b):
    w = [Fraction(v) for v in w.tolist()]
    b = b if isinstance(b, Fraction) else Fraction(float(b))
    return [l * (_dot(row, w) + b) for row, l in zip(data, signs, strict=True)], _dot(w, w)


def _feasible(signs, alpha, caps, free):
    """Return dual weights exactly within the caps and, with a free intercept, exactly balanced."""
    a = [max(Fraction(v), Fraction(0)) for v in alpha.tolist()]
    if caps is not None:
        a = [min(v, cap) for v, cap in zip(a, caps, strict=True)]
    if free:
        plus, minus = (
            sum((v for v, l in zip(a, signs, strict=True) if l == sign), Fraction(0)) for sign in (1, -1)
        )
        if not (plus and minus):
            return [Fraction(0)] * len(a)
        down = {1: min(Fraction(1), minus / plus), -1: min(Fraction(1), plus / minus)}
        a = [v * down[l] for v, l in zip(a, signs, strict=True)]
    return a


def _combined(data, signs, a):
    c = [v * l for v, l in zip(a, signs, strict=True)]
    return sum((_dot(column, c) ** 2 for column in zip(*data, strict=True)), Fraction(0))


def _soft_bounds(problem, data, signs, s, w, b, alpha, free):
    cost = [Fraction(problem.C) * Fraction(v) for v in s.tolist()]
    margins, square = _margins(data, signs, w, b)
    slack, hinge = [max(1 - m, Fraction(0)) for m in margins], problem.loss == "hinge"
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
    if not any(a):
        a = _feasible(signs, np.ones(len(signs)), None, free)
    return lower, _root(_combined(data, signs, a), up=True) / sum(a, Fraction(0))


def exact_bounds(problem: Problem, X, y, weights, w, b, alpha) -> Optimum:
    """Return what one point proves in rational arithmetic; dual weights are capped and balanced exactly first."""
    kept = weights > 0
    data = [[Fraction(v) for v in row] for row in np.asarray(X, float)[kept].tolist()]
    signs, w, b = [int(v) for v in y[kept]], np.asarray(w, float).astype(object), Fraction(float(b))
    free = problem.intercept == "free"
    if problem.intercept == "augmented":
        rho = Fraction(problem.intercept_scaling)
        data, w, b = [[*row, rho] for row in data], np.append(w, b / rho), Fraction(0)
    if np.isinf(problem.C):
        return Optimum(*_hard_bounds(data, signs, w, b, alpha[kept], free))
    return Optimum(*_soft_bounds(problem, data, signs, weights[kept], w, b, alpha[kept], free))


def _root(v: Fraction, up: bool) -> Fraction:
    """Return a square root to about 60 digits, rounded in the given direction."""
    if not v:
        return v
    shift = 1 << 400
    root = isqrt(v.numerator * v.denominator * shift * shift)
    return Fraction(root + (1 if up else 0), v.denominator * shift)


# norms other than p = 2: intervals in floating point


def optimum_in_norm(problem: Problem, X: np.ndarray, y: np.ndarray, weights: np.ndarray) -> Optimum:
    """Interval of the optimum for any p, with power cones if needed."""
    kept = weights > 0
    X, y, s = np.asarray(X, float)[kept], y[kept], weights[kept]
    A = y[:, None] * X
    if problem.intercept == "augmented":
        A = np.column_stack([A, problem.intercept_scaling * y])
    best = Optimum(0.0 if problem.hard else -np.inf, np.inf)
    for tol in TOLERANCES:
        for w, b, alpha in _by_clarabel(problem, A, y, s, tol):
            if np.isfinite([*w, b, *alpha]).all():
                lower, upper = _norm_bounds(problem, A, y, s, w, b, alpha)
                best = Optimum(max(lower, best.lower), min(upper, best.upper))
        if best.e <= 1e-10 * abs(best.upper):
            break
    return best


def _dual_exponent(p: float) -> float:
    return np.inf if p == 1.0 else 1.0 if np.isinf(p) else p / (p - 1.0)


def _norm_bounds(problem, A, y, s, w, b, alpha):
    """Return the bounds of a primal and a dual point, from the definitions; rows of A are y_k x_k."""
    cost, margins, size = problem.C * s, A @ w + y * b, p_norm(w, _dual_exponent(problem.p))
    hinge, a = problem.loss == "hinge", np.maximum(alpha, 0.0)
    if not problem.hard and hinge:
        a = np.minimum(a, cost)
    if problem.intercept == "free":
        plus, minus = float(a[y > 0].sum()), float(a[y < 0].sum())
        both = plus > 0.0 and minus > 0.0
        a = a * np.where(y > 0, min(1.0, minus / plus), min(1.0, plus / minus)) if both else np.zeros_like(a)
    total, v = float(a.sum()), p_norm(A.T @ a, problem.p)
    if problem.hard:
        lower = float(margins.min()) / size if size > 0.0 else 0.0
        return lower, (v / total if total > 0.0 else np.inf)
    slack = np.maximum(1.0 - margins, 0.0)
    upper = (0.5 * size**2 if problem.power == 2 else size) + float(cost @ (slack if hinge else slack**2))
    curve = 0.0 if hinge else float(np.sum(a**2 / (4.0 * cost)))
    if problem.power == 2:
        return total - curve - 0.5 * v * v, upper
    t = 1.0 / max(1.0, v)
    return t * total - t * t * curve, upper


def _by_clarabel(problem, A, y, s, tol):
    """min 1/2 t^2 or t, + losses, or max g at t = 1, with (w, t) in the cone of the norm; in two scales."""
    for unit in (max(p_norm(row, problem.p) for row in A) or 1.0, 1.0):
        yield from _in_cones(problem, A / unit, y, s, tol, unit, _dual_exponent(problem.p))


def _in_cones(problem, A, y, s, tol, unit, q):
    (n, d), one = A.shape, np.eye(A.shape[1])
    free, hard, hinge = problem.intercept == "free", problem.hard, problem.loss == "hinge"
    scale = unit**problem.power
    cost = np.zeros(n) if hard else problem.C * s * scale
    # x = (w, t, b, g or xi, r)
    parts = {"w": d, "t": 1, "b": int(free), "z": 1 if hard else n, "r": 0 if q in (2.0, np.inf) else d}
    ends = np.cumsum(list(parts.values()))
    at = {name: np.arange(end - count, end) for (name, count), end in zip(parts.items(), ends, strict=True)}
    G, h, cones = [], [], []

    def add(cone, right, **blocks):
        """Add rows: their cone, right-hand side and blocks by part."""
        out = np.zeros((len(right), ends[-1]))
        for name, block in blocks.items():
            if len(at[name]):
                out[:, at[name]] = block
        G.append(out)
        h.append(right)
        cones.append(cone(len(right)) if cone is not clarabel.PowerConeT else cone(1.0 / q))

    positive, zero = clarabel.NonnegativeConeT, clarabel.ZeroConeT
    add(
        positive,
        np.full(n, 0.0 if hard else -1.0),
        w=-A,
        b=-y[:, None],
        z=np.ones((n, 1)) if hard else -np.eye(n),
    )
    if hard:
        add(zero, np.ones(1), t=1.0)
    else:
        add(positive, np.zeros(n), z=-np.eye(n))
    if q == 2.0:
        add(clarabel.SecondOrderConeT, np.zeros(d + 1), t=-np.eye(d + 1)[:, :1], w=-np.eye(d + 1)[:, 1:])
    elif q in (1.0, np.inf):
        for sign in (1.0, -1.0):
            add(positive, np.zeros(d), w=sign * one, **({"t": -1.0} if q == np.inf else {"r": -one}))
    if len(at["r"]):
        add(zero, np.zeros(1), r=np.ones((1, d)), t=-1.0)
        for j in range(d if q != 1.0 else 0):
            first, last = np.eye(3)[:, :1], np.eye(3)[:, 2:]
            add(clarabel.PowerConeT, np.zeros(3), r=-first * one[j], t=-np.eye(3)[:, 1:2], w=-last * one[j])
    P, c = np.zeros(ends[-1]), np.zeros(ends[-1])
    if hard:
        c[at["z"]] = -1.0
    else:
        (P if problem.power == 2 else c)[at["t"]] = 1.0
        (c if hinge else P)[at["z"]] = cost if hinge else 2.0 * cost
    x, z = _solve(sp.diags(P), c, np.vstack(G), np.concatenate(h), cones, tol)
    w, b = x[at["w"]], float(x[at["b"]].sum())
    yield (w, unit * b, z[:n]) if hard else (w / unit, b, z[:n] / scale)
