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
from scipy.optimize import linprog

from maxmargin import Problem

# tried in turn, since Clarabel stops early for tolerances that are too small
TOLERANCES = (1e-9, 1e-11, 1e-13)
CLOSE = Fraction(1, 10**12)


@dataclass(frozen=True)
class Optimum:
    """The optimum lies in [lower, upper]; exact numbers."""

    lower: Fraction
    upper: Fraction

    @property
    def e(self) -> Fraction:
        """Relative gap of the interval."""
        return self.upper - self.lower

    def meet(self, lower: Fraction, upper: Fraction) -> Optimum:
        """Return the intersection of two intervals."""
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


_KNOWN: dict[tuple, Optimum] = {}  # cache by problem and digest of the data


def optimum(problem: Problem, X: np.ndarray, y: np.ndarray, weights: np.ndarray) -> Optimum:
    """Return an interval that holds the best objective (soft) or the largest margin (hard)."""
    arrays = [np.ascontiguousarray(a, float) for a in (X, y, weights)]
    key = problem, arrays[0].shape, sha256(b"".join(a.tobytes() for a in arrays)).digest()
    if key not in _KNOWN:
        _KNOWN[key] = _optimum(problem, X, y, weights)
    return _KNOWN[key]


def _optimum(problem: Problem, X: np.ndarray, y: np.ndarray, weights: np.ndarray) -> Optimum:
    """Compute the interval without the cache."""
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
    """Yield points in three scales: patterns of unit length, original patterns, and C = 1."""
    length = float(np.sqrt(np.mean(np.sum(X * X, axis=1)))) or 1.0
    for unit in (length, 1.0, problem.C**-0.5):
        yield from _scaled_points(problem, X, y, s, free, tol, unit)


def _scaled_points(problem, X, y, s, free, tol, unit):
    """Yield points of Clarabel for the primal form and for the dual form."""
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
    """Return the point of the hull (of the difference of the hulls) nearest to the origin."""
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
    # 1/2 |w|^2, A w + y b >= 1: only for separable data; columns and the norm are scaled
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
    b = b if isinstance(b, Fraction) else Fraction(float(b))
    return [l * (_dot(row, w) + b) for row, l in zip(data, signs, strict=True)], _dot(w, w)


def _feasible(signs, alpha, caps, free):
    """Return dual weights exactly within the caps and, with a free intercept, exactly balanced."""
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


@dataclass(frozen=True)
class Interval:
    """The optimum lies in [lower, upper], up to the rounding of a few sums."""

    lower: float
    upper: float

    @property
    def e(self) -> float:
        """Relative gap of the interval."""
        return max(self.upper - self.lower, 0.0)


def optimum_in_norm(problem: Problem, X: np.ndarray, y: np.ndarray, weights: np.ndarray) -> Interval:
    """Interval of the optimum for any p: HiGHS for linear programs, otherwise Clarabel, with power cones if needed."""
    kept = weights > 0
    X, y, s = np.asarray(X, float)[kept], y[kept], weights[kept]
    A = y[:, None] * X
    if problem.intercept == "augmented":
        A = np.column_stack([A, problem.intercept_scaling * y])
    linear = problem.p in (1.0, np.inf) and (problem.hard or (problem.loss == "hinge" and problem.power == 1))
    best = Interval(0.0 if problem.hard else -np.inf, np.inf)
    for tol in TOLERANCES:
        for w, b, alpha in (_by_highs if linear else _by_clarabel)(problem, A, y, s, tol):
            if not np.isfinite([*w, b, *alpha]).all():
                continue
            lower, upper = _norm_bounds(problem, A, y, s, w, b, alpha)
            best = Interval(max(lower, best.lower), min(upper, best.upper))
        if best.e <= 1e-10 * abs(best.upper):
            break
    return best


def _length(x: np.ndarray, r: float) -> float:
    """|x|_r."""
    top = float(np.abs(x).max(initial=0.0))
    if not top or np.isinf(r):
        return top
    return top * float(np.sum((np.abs(x) / top) ** r) ** (1.0 / r))


def _exponents(p: float) -> tuple[float, float]:
    return p, (np.inf if p == 1.0 else 1.0 if np.isinf(p) else p / (p - 1.0))


def _norm_bounds(problem, A, y, s, w, b, alpha):
    """Return the bounds of a primal and a dual point, from the definitions."""
    p, q = _exponents(problem.p)
    cost = problem.C * s
    margins, size = A @ w + y * b, _length(w, q)
    hinge = problem.loss == "hinge"
    a = np.maximum(alpha, 0.0)
    if not problem.hard and hinge:
        a = np.minimum(a, cost)
    if problem.intercept == "free":
        plus, minus = float(a[y > 0].sum()), float(a[y < 0].sum())
        if not (plus > 0.0 and minus > 0.0):
            a = np.zeros_like(a)
        else:
            a = a * np.where(y > 0, min(1.0, minus / plus), min(1.0, plus / minus))
    total, v = float(a.sum()), _length(A.T @ a, p)
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


def _by_highs(problem, A, y, s, tol):
    """max g, |w|_q <= 1, or min |w|_q + C sum s_i xi_i, with -u_j <= w_j <= u_j (p = inf) or -u <= w_j <= u (p = 1)."""
    n, d = A.shape
    unit = float(np.abs(A).max()) or 1.0
    m = d if np.isinf(problem.p) else 1
    spread = sp.eye(d) if m == d else np.ones((d, 1))
    bias = y[:, None] if problem.intercept == "free" else np.zeros((n, 0))
    k = bias.shape[1]
    last = np.ones((n, 1)) if problem.hard else -sp.eye(n)  # g, or xi
    last = sp.csr_matrix(last)
    l = last.shape[1]
    G = [sp.hstack([-A / unit, -bias, sp.csr_matrix((n, m)), last])]
    for sign in (1.0, -1.0):
        G.append(sp.hstack([sign * sp.eye(d), sp.csr_matrix((d, k)), -spread, sp.csr_matrix((d, l))]))
    h = np.zeros(n + 2 * d)
    free, positive = (None, None), (0.0, None)
    if problem.hard:
        G.append(sp.csr_matrix(np.concatenate([np.zeros(d + k), np.ones(m), [0.0]])))
        h = np.append(h, 1.0)
        cost = np.append(np.zeros(d + k + m), -1.0)
    else:
        h[:n] = -1.0
        cost = np.concatenate([np.zeros(d + k), np.ones(m), problem.C * s * unit])
    bounds = [free] * (d + k) + [positive] * m + ([free] if problem.hard else [positive] * n)
    options = {"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10}
    for method in ("highs-ds", "highs-ipm"):
        found = linprog(cost, sp.vstack(G), h, bounds=bounds, method=method, options=options)
        if found.x is None:
            continue
        w, b, alpha = found.x[:d], (found.x[d] if k else 0.0), -found.ineqlin.marginals[:n]
        yield (w, unit * b, alpha) if problem.hard else (w / unit, b, alpha / unit)


def _by_clarabel(problem, A, y, s, tol):
    """min 1/2 t^2 or t, + losses, or max g at t = 1, with (w, t) in the cone of the norm; in two scales."""
    p, q = _exponents(problem.p)
    for unit in (max(_length(row, p) for row in A) or 1.0, 1.0):
        yield from _in_cones(problem, A / unit, y, s, tol, unit, q)


def _in_cones(problem, A, y, s, tol, unit, q):
    n, d = A.shape
    free, hard, hinge = problem.intercept == "free", problem.hard, problem.loss == "hinge"
    scale = unit**problem.power
    cost = np.zeros(n) if hard else problem.C * s * scale
    # x = (w, t, b, g or xi, r)
    parts = {"w": d, "t": 1, "b": int(free), "z": 1 if hard else n, "r": 0 if q in (2.0, np.inf) else d}
    at, size = {}, 0
    for name, count in parts.items():
        at[name] = np.arange(size, size + count)
        size += count

    def rows(count, **blocks):
        out = sp.lil_matrix((count, size))
        for name, block in blocks.items():
            if len(at[name]):
                out[:, at[name]] = block
        return out

    G = [rows(n, w=-A, b=-y[:, None], z=np.ones((n, 1)) if hard else -np.eye(n))]
    h, cones = [np.zeros(n) if hard else -np.ones(n)], [clarabel.NonnegativeConeT(n)]
    if hard:
        G, h, cones = [*G, rows(1, t=1.0)], [*h, np.ones(1)], [*cones, clarabel.ZeroConeT(1)]
    else:
        G, h, cones = [*G, rows(n, z=-np.eye(n))], [*h, np.zeros(n)], [*cones, clarabel.NonnegativeConeT(n)]
    one = np.ones((d, 1))
    if q == 2.0:
        G, h = [*G, rows(1, t=-1.0), rows(d, w=-np.eye(d))], [*h, np.zeros(d + 1)]
        cones.append(clarabel.SecondOrderConeT(d + 1))
    elif q in (1.0, np.inf):
        bound = {"t": -one} if q == np.inf else {"r": -np.eye(d)}
        G = [*G, rows(d, w=np.eye(d), **bound), rows(d, w=-np.eye(d), **bound)]
        h.append(np.zeros(2 * d))
        cones.append(clarabel.NonnegativeConeT(2 * d))
    if len(at["r"]):
        G, h, cones = (
            [*G, rows(1, r=np.ones((1, d)), t=-1.0)],
            [*h, np.zeros(1)],
            [*cones, clarabel.ZeroConeT(1)],
        )
    if len(at["r"]) and q != 1.0:
        for j in range(d):
            e = np.eye(d)[j : j + 1]
            G = [*G, rows(1, r=-e), rows(1, t=-1.0), rows(1, w=-e)]
            h, cones = [*h, np.zeros(3)], [*cones, clarabel.PowerConeT(1.0 / q)]
    P, c = np.zeros(size), np.zeros(size)
    if hard:
        c[at["z"]] = -1.0
    else:
        (P if problem.power == 2 else c)[at["t"]] = 1.0
        (c if hinge else P)[at["z"]] = cost if hinge else 2.0 * cost
    x, z = _solve(sp.diags(P), c, sp.vstack(G), np.concatenate(h), cones, tol)
    w, b = x[at["w"]], float(x[at["b"]].sum())
    yield (w, unit * b, z[:n]) if hard else (w / unit, b, z[:n] / scale)
