"""Inseparable data with columns from 1e-150 to 1e150: exact dual weights near the float64 ones prove the bound."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from types import SimpleNamespace

import clarabel
import numpy as np
import pytest
import scipy.sparse as sp
from oracle import _solve

from maxmargin import CertificateError, MaxMarginClassifier, Status, verify
from maxmargin.certificates.huge_columns import exact_bound, huge_columns
from maxmargin.certificates.sample import Sample
from maxmargin.problem.problem import Problem

LOSSES = ("hinge", "squared_hinge")
INTERCEPTS = {
    "none": {"fit_intercept": False},
    "free": {},
    "augmented": {"intercept": "augmented"},
}
SCALES = {
    "huge": lambda rng, d: np.full(d, 150.0),
    "tiny": lambda rng, d: np.full(d, -150.0),
    "mixed": lambda rng, d: np.resize([-150.0, -75.0, 0.0, 75.0, 150.0], d),
    "random": lambda rng, d: rng.uniform(-150.0, 150.0, d),
    "just huge": lambda rng, d: rng.uniform(6.0, 16.0, d),
}


def overlapping(rng, n, d):
    y = np.arange(n) % 2
    return rng.normal(size=(n, d)) + 0.3 * (2 * y - 1)[:, None], y


def assert_lower_bound_is_refused(model, X, y, s=None, **changes):
    names = ("coef_", "intercept_", "classes_", "class_weight_")
    forged = SimpleNamespace(**{name: getattr(model, name) for name in names})
    forged.certificate_ = replace(model.certificate_, **changes)
    with pytest.raises(CertificateError, match="the lower bound fails"):
        verify(forged, X, y, s)


# exact values in rational arithmetic


def rational(values):
    return [Fraction(float(v)) for v in values]


def columns_of(problem, X):
    """The columns, with the constant coordinate if there is one."""
    return np.column_stack([X, np.full(len(X), problem.rho)]) if problem.rho else X


def primal_value(problem, X, y, s, w, b):
    """The exact objective at a point."""
    Z = [rational(row) for row in columns_of(problem, X)]
    w, b = rational(w), Fraction(0) if problem.rho else Fraction(float(b))
    value = sum(v * v for v in w) / 2
    for row, label, weight in zip(Z, y, s, strict=True):
        xi = max(1 - int(label) * (sum(p * q for p, q in zip(row, w, strict=True)) + b), Fraction(0))
        value += Fraction(problem.C) * Fraction(weight) * (xi if problem.loss == "hinge" else xi * xi)
    return value


def nearly_best_point(problem, X, y, s):
    """Clarabel on the same problem with columns scaled to unit size and their regularisation adjusted."""
    Z = columns_of(problem, X)
    size = np.abs(Z).max(axis=0)
    n, d = Z.shape
    free = y[:, None] if problem.free else np.zeros((n, 0))
    k, hinge, cost = free.shape[1], problem.loss == "hinge", problem.C * s
    curvature = np.minimum(1.0 / size, 1e6) ** 2  # tiny columns have no influence
    P = sp.diags(np.concatenate([curvature, np.zeros(k), np.zeros(n) if hinge else 2.0 * cost]))
    q = np.concatenate([np.zeros(d + k), cost if hinge else np.zeros(n)])
    margins = np.hstack([-y[:, None] * Z / size, -free, -np.eye(n)])
    G = np.vstack([margins, np.hstack([np.zeros((n, d + k)), -np.eye(n)])])
    h = np.concatenate([-np.ones(n), np.zeros(n)])
    x, _ = _solve(P, q, G, h, [clarabel.NonnegativeConeT(2 * n)], 1e-10)
    return np.where(size > 1e-6, x[:d], 0.0) / size, float(x[d]) if k else 0.0


def exact_dual_value(problem, X, y, s, alpha, huge):
    """The dual value of rational dual weights near alpha that cancel exactly in the huge columns."""
    Z = columns_of(problem, X)
    caps = problem.caps(s)
    lines = [rational(column) for column in Z.T[huge]]
    lines += [[Fraction(1)] * len(y)] if problem.free else []
    lines = [[v * int(l) for v, l in zip(line, y, strict=True)] for line in lines]
    a = rational(alpha)
    room = np.minimum(alpha, caps - alpha)
    # Gaussian elimination, pivots with the largest product of room and entry
    A, t = [list(line) for line in lines], [sum(p * q for p, q in zip(l, a, strict=True)) for l in lines]
    pivots = []
    for k in range(len(A)):
        i = max(range(len(y)), key=lambda i: abs(float(A[k][i] / max(map(abs, A[k])))) * room[i])
        pivots.append(i)
        for m in range(len(A)):
            if m != k:
                factor = A[m][i] / A[k][i]
                A[m] = [p - factor * q for p, q in zip(A[m], A[k], strict=True)]
                t[m] -= factor * t[k]
    for k, i in enumerate(pivots):
        a[i] -= t[k] / A[k][i]
    assert all(sum(p * q for p, q in zip(line, a, strict=True)) == 0 for line in lines)
    assert all(0 <= v <= Fraction(c) if np.isfinite(c) else v >= 0 for v, c in zip(a, caps, strict=True))
    value = sum(a)
    for column in Z.T:
        signed = (v * p * int(l) for v, p, l in zip(a, rational(column), y, strict=True))
        value -= sum(signed) ** 2 / 2
    if problem.loss == "squared_hinge":
        value -= sum(v * v / (4 * Fraction(problem.C) * Fraction(w)) for v, w in zip(a, s, strict=True))
    return value


# whole fits


@pytest.mark.parametrize("C", [1e-2, 1.0, 1e2])
@pytest.mark.parametrize("intercept", INTERCEPTS)
@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("scales", SCALES)
def test_all_scales_are_certified(scales, loss, intercept, C):
    rng = np.random.default_rng([len(scales), len(loss), len(intercept)])
    for trial in range(4):
        n, d = int(rng.integers(20, 201)), int(rng.integers(2, 6 if trial else 9))
        n = max(n, 8 * d)  # the huge columns alone are inseparable
        X, y = overlapping(rng, n, d)
        X = X * 10.0 ** SCALES[scales](rng, d)
        s = 10.0 ** rng.uniform(-1.0, 1.0, n) if trial % 2 else np.ones(n)
        data = sp.csr_matrix(X) if trial >= 2 else X
        model = MaxMarginClassifier(C, loss=loss, tol=1e-3, random_state=0, **INTERCEPTS[intercept])
        model.fit(data, y, s)
        assert model.status_ is Status.CERTIFIED, (n, d)
        found = verify(model, data, y, s)
        assert found.gap <= 1e-3
        other = X if sp.issparse(data) else sp.csr_matrix(X)
        assert verify(model, other, y, s).lower == pytest.approx(found.lower, rel=1e-9)


@pytest.mark.parametrize("intercept", INTERCEPTS)
@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("scales", ["huge", "mixed", "random"])
def test_bounds_contain_the_optimum_in_rational_arithmetic(scales, loss, intercept):
    """lower <= primal values, upper >= the value of exact dual weights, in rational arithmetic without tolerance."""
    rng = np.random.default_rng([3, len(scales), len(loss), len(intercept)])
    for C in (1e-2, 1.0, 1e2):
        X, y = overlapping(rng, 40, 4)
        X = X * 10.0 ** SCALES[scales](rng, 4)
        s = 10.0 ** rng.uniform(-1.0, 1.0, 40)
        model = MaxMarginClassifier(C, loss=loss, random_state=0, **INTERCEPTS[intercept]).fit(X, y, s)
        claim, signs = model.certificate_, 2.0 * y - 1.0
        assert model.status_ is Status.CERTIFIED
        problem = claim.problem
        own = np.append(model.coef_[0], model.intercept_ / problem.rho) if problem.rho else model.coef_[0]
        values = [
            primal_value(problem, X, signs, s, *point)
            for point in ((own, model.intercept_[0]), nearly_best_point(problem, X, signs, s))
        ]
        assert claim.upper >= values[0]
        assert claim.lower <= min(values)
        alpha = np.zeros(40)
        alpha[claim.support] = claim.dual
        huge = huge_columns(problem, Sample(X, signs, s), alpha)
        if huge is None:
            continue
        value = exact_dual_value(problem, X, signs, s, alpha, huge)
        assert claim.upper >= value
        assert claim.lower == pytest.approx(float(value), rel=1e-6)


@pytest.mark.parametrize("intercept", INTERCEPTS)
@pytest.mark.parametrize("loss", LOSSES)
def test_linearly_dependent_columns_are_certified(loss, intercept):
    """Copies, multiples, constants, indicators and sums of integers cancel exactly."""
    rng = np.random.default_rng(0)
    X, y = overlapping(rng, 60, 3)
    integers = np.round(4.0 * X)
    groups = np.eye(4)[rng.integers(0, 4, 60)]
    for data in (
        np.column_stack([X, X[:, 0], -4.0 * X[:, 1]]) * 1e150,
        np.column_stack([X, np.full(60, 3.0), np.full(60, 7.0)]) * 1e150,
        np.column_stack([integers, integers[:, 0] + integers[:, 1]]) * 2.0**500,
        np.column_stack([groups * 1e150, X]),
        integers * 1e150,
    ):
        model = MaxMarginClassifier(1.0, loss=loss, random_state=0, **INTERCEPTS[intercept]).fit(data, y)
        assert model.status_ is Status.CERTIFIED
        verify(model, data, y)


@pytest.mark.parametrize("loss", LOSSES)
def test_false_claims_about_huge_columns_are_refused(loss):
    rng = np.random.default_rng(1)
    X, y = overlapping(rng, 50, 4)
    X = X * 10.0 ** np.array([150.0, 75.0, 0.0, -150.0])
    model = MaxMarginClassifier(1.0, loss=loss, random_state=0).fit(X, y)
    claim = model.certificate_
    verify(model, X, y)
    k = int(np.argmin(np.abs(claim.dual - 0.5)))
    same_label = np.flatnonzero(y[claim.support] == y[claim.support[k]])
    m = int(same_label[np.argsort(np.abs(claim.dual[same_label] - 0.5))[1]])
    for share in (1e-4, 1e-2, 0.3):
        dual = claim.dual.copy()
        dual[k], dual[m] = dual[k] * (1.0 - share), dual[m] + dual[k] * share  # as balanced as before
        assert_lower_bound_is_refused(model, X, y, dual=dual)
    assert_lower_bound_is_refused(model, X, y, lower=claim.lower * (1.0 + 1e-6))
    assert_lower_bound_is_refused(model, X, y, dual=claim.dual * 0.5)


def test_ordinary_data_have_no_huge_columns():
    rng = np.random.default_rng(2)
    X, y = overlapping(rng, 200, 4)
    problem = Problem("hinge", 1.0)
    for scale in (1e-150, 1.0, 1e6):
        sample = Sample(X * scale, 2.0 * y - 1.0, np.ones(200))
        for alpha in (np.zeros(200), np.ones(200), rng.random(200)):
            assert huge_columns(problem, sample, alpha) is None


def test_without_room_for_changes_there_is_no_proof():
    """All dual weights are at their caps, and no bound is returned."""
    rng = np.random.default_rng(2)
    X, y = overlapping(rng, 50, 4)
    problem, signs, ones = Problem("hinge", 1.0), 2.0 * y - 1.0, np.ones(50)
    sample = Sample(X * 1e100, signs, ones)
    huge = huge_columns(problem, sample, ones)
    assert huge.all()
    assert exact_bound(problem, sample, ones, huge) is None
