"""The exact stage in rational arithmetic: problems at p = 2 whose linear systems float64 cannot solve."""

from __future__ import annotations

from fractions import Fraction
from math import gcd, inf

import numpy as np
import pytest
from problems import INTERCEPTS

from maxmargin import MaxMarginClassifier, Problem, Status, verify
from maxmargin.algorithms.batch.exact_active_set import ExactSearch
from maxmargin.numerics.stop_check import OutOfTime


def lattice(d: int, seed: int, size: int, reach: int):
    """Integer rows with n.x = y, for an integer vector n of length about `size`; return X, y and |n|^2.

    Each class is symmetric about a point next to +-n / |n|^2 and reaches far in the plane n.x = y, so that its hull
    contains +-n / |n|^2: the largest margin is 1 / |n|, with or without intercept.
    """
    rng = np.random.default_rng(seed)
    n = [int(v) for v in rng.integers(size, 2 * size, d)]
    while gcd(n[0], n[1]) > 1:
        n[0] += 1
    first = pow(n[0], -1, n[1])
    base = [first, (1 - first * n[0]) // n[1], *([0] * (d - 2))]
    rows = []
    for i in range(d):
        for j in range(i):
            v = [0] * d
            v[i], v[j] = reach * n[j], -reach * n[i]
            rows += [[p + t * q for p, q in zip(base, v, strict=True)] for t in (-1, 1)]
    X = np.array(rows + [[-v for v in row] for row in rows], dtype=float)
    return X, np.repeat([1.0, -1.0], len(rows)), sum(v * v for v in n)


@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize(("d", "size"), [(3, 10_000), (6, 3000)])
def test_tiny_hard_margin_is_certified(fit_intercept, d, size):
    """The margin, 1e-8 of the length of the rows, is known; float64 numbers can prove it to 1e-6 or so."""
    X, y, square = lattice(d, 0, size, 3)
    model = MaxMarginClassifier(C=inf, fit_intercept=fit_intercept, tol=1e-5).fit(X, y)
    found = model.certificate_.certificates[0]
    assert model.status_ is Status.CERTIFIED
    assert Fraction(found.lower) ** 2 <= Fraction(1, square) <= Fraction(found.upper) ** 2
    assert verify(model, X, y).gap <= 1e-5


def test_powers_of_columns_are_certified():
    """Columns of sizes 1 to 1e10 and C = 1000: the bounds bracket the value of the rational optimum."""
    rng = np.random.default_rng(0)
    Z = np.round(rng.gamma(2.0, 60.0, (120, 4)))
    X = np.hstack([Z, Z**2, Z[:, :1] * Z[:, 1:], Z**3, Z**4])
    y = np.where(Z[:, 0] + 40.0 * rng.normal(size=120) > 110.0, 1.0, -1.0)
    model = MaxMarginClassifier(C=1000.0, loss="hinge", fit_intercept=False, tol=1e-6).fit(X, y)
    found = model.certificate_.certificates[0]
    problem, caps = Problem(C=1000.0, loss="hinge", intercept="none"), np.full(120, 1000.0)
    optimum = ExactSearch(problem, X, y, caps, np.zeros(120), y * (X @ model.coef_[0])).optimum()
    assert optimum is not None
    lower, upper = exact_bounds(problem, X, y, caps, optimum)
    assert model.status_ is Status.CERTIFIED
    assert found.lower <= upper
    assert lower <= found.upper
    assert found.upper - found.lower <= 1e-6 * found.lower


def exact_bounds(problem: Problem, X, y, caps, point) -> tuple[float, float]:
    """The dual and the primal objective of the hinge at a point, in rational arithmetic."""
    w, a = [Fraction(v) for v in point.w], [Fraction(v) for v in point.alpha]
    b = Fraction(point.b)
    rows = [[Fraction(v) * int(sign) for v in row] for row, sign in zip(X.tolist(), y, strict=True)]
    v = [sum(p * row[k] for p, row in zip(a, rows, strict=True)) for k in range(len(w))]
    sums = sum(p * int(sign) for p, sign in zip(a, y, strict=True))
    v2, w2 = sum(p * p for p in v), sum(p * p for p in w)
    if problem.rho:
        v2, w2 = v2 + (problem.rho * sums) ** 2, w2 + (b / Fraction(problem.rho)) ** 2
    margins = [
        sum(p * q for p, q in zip(w, row, strict=True)) + b * int(s) for row, s in zip(rows, y, strict=True)
    ]
    if problem.hard:  # squares of the bounds of the margin
        return float(min(margins) ** 2 / w2), float(v2 / sum(a) ** 2)
    losses = sum(Fraction(c) * max(1 - m, 0) for c, m in zip(caps.tolist(), margins, strict=True))
    return float(sum(a) - v2 / 2), float(w2 / 2 + losses)


@pytest.mark.parametrize("intercept", INTERCEPTS)
@pytest.mark.parametrize("C", [1e-3, 1.0, 1e4, inf])
@pytest.mark.parametrize("seed", range(5))
def test_optimum_of_lattice_points(intercept, C, seed):
    """Degenerate rows, copies among them, and any start: both bounds meet."""
    rng = np.random.default_rng(seed)
    n, d = 24, 3
    X = rng.integers(-2, 3, (n, d)).astype(float)
    y = np.where(X @ [1.0, 2.0, -1.0] + (0.0 if np.isinf(C) else rng.normal(size=n)) > -0.5, 1.0, -1.0)
    X[:, 0] += y * (5.0 if np.isinf(C) else 0.0)
    y[0], y[1] = (1.0, -1.0) if np.isfinite(C) else y[:2]
    problem = Problem(C=C, loss="hinge", intercept=intercept)
    caps = np.full(n, C) * (rng.integers(1, 4, n) if np.isfinite(C) else 1.0)
    start, margins = rng.random(n) * min(C, 1.0), 1.0 + rng.integers(-1, 2, n)
    point = ExactSearch(problem, X, y, caps, start, margins).optimum()
    assert point is not None
    assert (point.alpha >= 0.0).all()
    assert (point.alpha <= caps).all()
    if problem.free:
        assert abs(point.alpha @ y) <= 1e-14 * point.alpha.sum()
    lower, upper = exact_bounds(problem, X, y, caps, point)
    assert abs(upper - lower) <= 1e-12 * upper


def test_inseparable_classes_have_no_hard_margin():
    X, y = np.array([[0.0], [1.0], [2.0]]), np.array([1.0, -1.0, 1.0])
    problem = Problem(C=inf, loss="hinge", intercept="free")
    assert ExactSearch(problem, X, y, np.full(3, inf), np.ones(3), np.ones(3)).optimum() is None


def test_stop_check_ends_the_method():
    X, y, _ = lattice(3, 0, 100, 3)
    problem, n = Problem(C=inf, loss="hinge", intercept="free"), len(y)
    with pytest.raises(OutOfTime):
        ExactSearch(problem, X, y, np.full(n, inf), np.ones(n), np.ones(n), lambda: True).optimum()
