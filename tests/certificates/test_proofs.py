"""One-pass certificates: equal to certificates of separate sums, and valid in real arithmetic."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from itertools import product

import numpy as np
import pytest
import scipy.sparse as sp

import maxmargin.certificates.one_pass
import maxmargin.certificates.rows
import maxmargin.certificates.sample
from maxmargin import MaxMarginClassifier, Problem, Status, verify
from maxmargin.certificates.certificate import CertificateError
from maxmargin.certificates.one_pass import certify, feasible_dual, row_sums, scale_classes, squared_costs
from maxmargin.certificates.rows import bounds
from maxmargin.certificates.sample import Sample
from maxmargin.numerics.sums import Plain

KINDS = list(product(["hinge", "squared_hinge"], ["free", "none", "augmented"]))


def task(seed, n=40, d=3, scale=1.0, dtype=float):
    """Rows, a point and dual weights that no solver produced."""
    rng = np.random.default_rng(seed)
    X = (scale * rng.normal(size=(n, d))).astype(dtype)
    y = np.where(rng.random(n) < 0.4, 1.0, -1.0)
    weights = rng.uniform(0.1, 3.0, n) * (rng.random(n) < 0.9)
    alpha = np.maximum(rng.normal(size=n), -0.1) * 10.0 ** rng.uniform(-3, 1)
    return Sample(X, y, weights), rng.normal(size=d) / scale, float(rng.normal()), alpha


def exact_values(problem, sample, w, b, alpha):
    """The primal and dual values in rational arithmetic, with the heavier class of dual weights scaled down."""
    X, y = [[Fraction(float(x)) for x in row] for row in sample.X], [int(side) for side in sample.y]
    s, C = [Fraction(float(weight)) for weight in sample.weights], Fraction(problem.C)
    w, b, rho = [Fraction(float(value)) for value in w], Fraction(b), Fraction(problem.rho)
    squared = problem.loss == "squared_hinge"

    def dot(a, c):
        return sum(p * q for p, q in zip(a, c, strict=True))

    slack = [max(1 - side * (dot(row, w) + b), 0) for row, side in zip(X, y, strict=True)]
    primal = dot(w, w) / 2 + C * dot(s, [value**2 if squared else value for value in slack])
    primal += (b / rho) ** 2 / 2 if rho else 0
    alpha = [Fraction(float(a)) for a in alpha]
    if problem.free:
        plus, minus = (sum(a for a, side in zip(alpha, y, strict=True) if side == of) for of in (1, -1))
        least = min(plus, minus)
        alpha = [a * least / (plus if side == 1 else minus) for a, side in zip(alpha, y, strict=True)]
    signed = [a * side for a, side in zip(alpha, y, strict=True)]
    v = [dot(signed, column) for column in zip(*X, strict=True)] + [rho * sum(signed)]
    dual = sum(alpha) - dot(v, v) / 2
    if squared:
        dual -= sum(a * a / (4 * C * weight) for a, weight in zip(alpha, s, strict=True) if a)
    else:
        assert all(a <= C * weight * (1 + Fraction(1, 2**51)) for a, weight in zip(alpha, s, strict=True))
    return primal, dual


@pytest.mark.parametrize(("loss", "intercept"), KINDS)
@pytest.mark.parametrize("scale", [1e-6, 1.0, 1e6])
def test_bounds_hold_in_rational_arithmetic(loss, intercept, scale):
    for seed in range(6):
        problem = Problem(loss, [0.01, 1.0, 100.0][seed % 3], intercept=intercept, intercept_scaling=1.5)
        sample, w, b, alpha = task(seed, scale=scale)
        b = 0.0 if intercept == "none" else b
        found = certify(problem, sample, w, b, alpha, 1e-3)
        primal, dual = exact_values(problem, sample, w, b, found.alpha)
        assert Fraction(found.lower) <= dual <= primal <= Fraction(found.upper)
        assert found.lower == pytest.approx(float(dual), rel=1e-9, abs=1e-12 * float(primal))
        assert found.upper == pytest.approx(float(primal), rel=1e-9)


@pytest.mark.parametrize(("loss", "intercept"), KINDS)
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize(("n", "d"), [(1, 1), (2, 5), (300, 4), (1024, 2), (5000, 7)])
def test_one_pass_bounds_equal_those_of_separate_sums(loss, intercept, dtype, n, d, monkeypatch):
    problem = Problem(loss, 2.0, intercept=intercept)
    sample, w, b, alpha = task(n + d, n, d, dtype=dtype)
    b = 0.0 if intercept == "none" else b
    separate = maxmargin.certificates.rows.certify(problem, sample, w, b, alpha, 1e-3)
    if n > 2:  # rows of both classes with positive weight
        monkeypatch.setattr(maxmargin.certificates.one_pass, "certify_any", None)
    found = certify(problem, replace(sample), w, b, alpha, 1e-3)
    near = 1e-11 if dtype is np.float64 else 1e-10  # separate sums of float32 are not added in parts
    assert found.lower == pytest.approx(separate.lower, rel=near)
    assert found.upper == pytest.approx(separate.upper, rel=near)
    assert found.support.tolist() == separate.support.tolist()
    np.testing.assert_allclose(found.dual, separate.dual, rtol=1e-11)
    assert found.fingerprint.difference(separate.fingerprint) is None
    scale = separate.fingerprint.scale
    assert found.fingerprint.scale == pytest.approx(scale, rel=1e-13)
    assert found.fingerprint.checksum == pytest.approx(
        separate.fingerprint.checksum, rel=0.0, abs=1e-13 * scale
    )


def test_projections_are_computed_once_for_all_classes(monkeypatch):
    """The terms of fingerprints depend on the rows alone; differing labels are still detected."""
    X = np.random.default_rng(0).normal(size=(90, 3))
    y = np.digitize(X[:, 1], [-0.5, 0.5])
    model = MaxMarginClassifier().fit(X, y)
    verify(model, X, y)
    rows = np.flatnonzero(y == 1)
    X[rows[0], 2] += 1e-3
    with pytest.raises(CertificateError, match="other data"):
        verify(model, X, y)
    sample, w, b, alpha = task(0)
    first = certify(Problem("hinge", 1.0), sample, w, b, alpha)
    assert certify(Problem("hinge", 2.0), sample, w, b, alpha).fingerprint is first.fingerprint
    other = sample.with_labels(-sample.y, 2.0 * sample.weights)
    assert other.projections is sample.projections is other.with_labels(sample.y).projections
    assert first.fingerprint.difference(other.fingerprint) is not None


def test_overflowing_fingerprints_are_rescaled():
    """Large weights and entries, whose one-pass sums are infinite."""
    y, X = np.array([1.0, -1.0, 1.0]), np.array([[1e3], [-2e3], [3e3]])
    sample = Sample(X, y, np.full(3, 1e305))
    found = certify(Problem("hinge", 1e-305), sample, np.ones(1), 0.0, np.array([0.5, 1.0, 0.5]))
    assert np.isfinite(found.fingerprint.scale)
    assert found.fingerprint.difference(Sample(X, y, np.full(3, 1e305)).fingerprint) is None


def test_special_cases_use_separate_sums(monkeypatch):
    """Sparse or column-major rows, huge numbers, other norms, hard margins, and invalid points."""
    calls = []
    monkeypatch.setattr(
        maxmargin.certificates.one_pass, "certify_any", lambda *arguments: calls.append(arguments[0])
    )
    sample, w, b, alpha = task(0)

    def with_rows(X):
        return Sample(X, sample.y, sample.weights)

    soft = Problem("hinge", 1.0)
    certify(soft, sample, w, b, alpha)
    assert not calls
    for problem, rows in (
        (soft, with_rows(sp.csr_array(sample.X))),
        (soft, with_rows(np.asfortranarray(sample.X))),
        (soft, with_rows(1e160 * sample.X)),
        (Problem("hinge", 1.0, p=3.0), sample),
        (Problem("hinge", 1.0, power=1), sample),
        (Problem("hinge", np.inf), sample),
    ):
        calls.clear()
        certify(problem, rows, w, b, alpha)
        assert calls == [problem]
    for point, weights in (
        ((w, np.nan), alpha),
        ((np.inf * w, b), alpha),
        ((w, b), 0.0 * alpha),
        ((w, b), np.nan * alpha),
    ):
        calls.clear()
        certify(soft, sample, *point, weights)
        assert calls == [soft]


def test_millions_of_equal_dual_weights_are_balanced():
    """Plain sums of them have a one-sided error above the tolerance of `verify`."""
    n = 3_000_001
    y = np.where(np.arange(n) % 3 == 0, 1.0, -1.0)
    X = y[:, None] + np.linspace(-1.0, 1.0, n)[:, None]
    found = certify(Problem("hinge", 0.1), Sample(X, y, np.ones(n)), np.zeros(1), 0.0, np.full(n, 0.1))
    assert abs(Plain.total(found.alpha * y)) < 1e-13 * found.dual.sum()


@pytest.mark.parametrize("squared", [False, True])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_one_pass_sums_equal_numpy(squared, dtype):
    """All sums, over no, one and several parts."""
    for n in (1, 7, 8, 9, 24, 31):
        sample, w, b, alpha = task(n, n, 3, dtype=dtype)
        X, y, s, norms = sample.X, sample.y, sample.weights, sample.norms
        dual, v, workspace = np.empty(n), np.zeros((2, 3)), np.empty((2, 8))
        assert feasible_dual(alpha, y, s, 0.5, False, dual)
        expected = np.clip(alpha, 0.0, 0.5 * s)
        np.testing.assert_array_equal(dual, expected)
        found = row_sums(
            X, y, s, norms, dual, w, b, 0.5, squared, 0.01, 0.02, workspace, np.empty(8, np.uint32), v
        )
        margins = y * (X.astype(float) @ w + b)
        power = 2 if squared else 1
        sums = (
            0.5 * s @ np.maximum(1.0 - margins + 0.01 * norms + 0.02, 0.0) ** power,
            0.5 * s @ np.maximum(1.0 - margins, 0.0) ** power,
            dual.sum(),
            dual @ y,
            np.sum(dual[dual > 0] ** 2 / (2.0 * s[dual > 0])) if squared else 0.0,
            dual @ norms,
            np.count_nonzero(dual),
        )
        assert found == pytest.approx(sums, rel=1e-13, abs=1e-15)
        np.testing.assert_allclose(v[0], (dual * y) @ X, rtol=1e-12, atol=1e-15)
        before = dual.copy()
        difference = sum(scale_classes(dual, y, s, 0.5, 0.5, 3.0))
        np.testing.assert_array_equal(dual, np.minimum(before * np.where(y > 0, 0.5, 3.0), 0.5 * s))
        assert difference == pytest.approx(float(dual @ y), rel=1e-13, abs=1e-16)
        plus, minus = before[y > 0].sum(), before[y < 0].sum()
        assert feasible_dual(before, y, s, 0.5, True, dual) == bool(plus > 0.0 and minus > 0.0)
        if plus > 0.0 and minus > 0.0:
            balanced = before * np.where(y > 0, min(1.0, minus / plus), min(1.0, plus / minus))
            np.testing.assert_allclose(dual, balanced, rtol=1e-13)


def test_sums_do_not_depend_on_memory_alignment():
    """Compiled loops have several versions, chosen by alignment: results must be equal."""
    rng, found = np.random.default_rng(0), set()
    sample, w, b, alpha = task(0, 2500, 4)
    arrays = [sample.X, sample.y, sample.weights, sample.norms, np.maximum(alpha, 0.0), w]

    def misaligned(a):
        memory, offset = np.empty(a.size + 8), int(rng.integers(8))
        memory[offset : offset + a.size] = a.ravel()
        return memory[offset : offset + a.size].reshape(a.shape)

    spacers = []
    for _ in range(500):
        spacers.append(np.empty(int(rng.integers(1, 3000))))
        v, workspace = misaligned(np.zeros((2, 4))), misaligned(np.empty((2, 1024)))
        X, y, s, norms, a, w = (misaligned(one) for one in arrays)
        places = np.empty(1024, np.uint32)
        sums = row_sums(X, y, s, norms, a, w, b, 1.0, True, 1e-15, 1e-300, workspace, places, v)
        found.add((*sums, *v[0].tolist()))
    assert len(found) == 1


def test_one_pass_bounds_of_many_rows_agree_with_compensated_sums():
    """The compensated bounds are at least as tight, up to the rounding error of the one pass."""
    sample, w, b, alpha = task(5, 30_000, 6)
    problem = Problem("squared_hinge", 0.3)
    found = certify(problem, sample, w, b, alpha, 1e-2)
    exact = bounds(problem, sample, w, b, found.alpha, maxmargin.certificates.rows.Compensated)
    assert found.lower <= exact.lower + exact.below
    assert exact.upper - exact.above <= found.upper
    assert exact.lower - found.lower < 1e-8 * exact.lower


@pytest.mark.parametrize("C", [1e-140, 1e-158, 1e-160, 3e-162, 1e-165, 1e-250])
@pytest.mark.parametrize("intercept", ["free", "augmented"])
def test_costs_whose_squares_underflow_have_valid_bounds(C, intercept):
    """For tiny alpha, alpha^2 / (4 C s) is computed with the quotient first, so that it is not underestimated."""
    problem, X = (
        Problem("squared_hinge", C, intercept=intercept),
        np.random.default_rng(0).normal(size=(50, 4)),
    )
    y = np.where(np.arange(50) % 2 == 0, 1.0, -1.0)
    sample = Sample(X, y, np.ones(50))
    for share in (0.5, 1.0, 2.0):
        found = certify(problem, sample, np.zeros(4), 0.0, np.full(50, 2.0 * share * C), 1e-3)
        primal, dual = exact_values(problem, sample, np.zeros(4), 0.0, found.alpha)
        assert Fraction(found.lower) <= dual <= primal <= Fraction(found.upper)
        assert found.gap < 1e-9
    model = MaxMarginClassifier(C, loss="squared_hinge", tol=1e-6, intercept=intercept).fit(X, y)
    assert model.status_ is Status.CERTIFIED
    assert verify(model, X, y).gap <= 1e-6


def test_compiled_sums_are_not_reordered_by_the_caller():
    """The order of summation is that of the defining module, whichever module compiles it first."""
    alpha, ones, v = np.full(6, 1.8e-161), np.ones(6), np.zeros((2, 1))
    workspace, places = np.empty((2, 6)), np.empty(6, np.uint32)
    costs = row_sums(
        ones[:, None], ones, ones, ones, alpha, np.zeros(1), 0.0, 1e-161, True, 0.0, 0.0, workspace, places, v
    )[4]
    assert costs == squared_costs(alpha, ones, 4e-161) == pytest.approx(6 * 0.81e-161, rel=1e-14)


def test_classes_with_tiny_dual_weights_are_balanced_or_certified_by_separate_sums(monkeypatch):
    """If balancing exceeds the tolerance of `verify`, `certify_any` is called."""
    calls, problem = [], Problem("squared_hinge", 1.0)
    monkeypatch.setattr(maxmargin.certificates.one_pass, "certify_any", lambda *task: calls.append(task))
    y, alpha = np.array([1.0, -1.0, 1.0]), np.array([1.446e136, 8.08e-188, 1.59e136])
    found = certify(
        problem, Sample(np.array([[1.0], [-1.0], [2.0]]), y, np.ones(3)), np.ones(1), 0.0, alpha, 1e-3
    )
    assert calls or abs(float(found.alpha @ y)) <= 1e-12 * found.alpha.sum()


def test_intercepts_whose_square_overflows_give_no_upper_bound():
    sample, w, _, alpha = task(0)
    found = certify(Problem("hinge", 1.0, intercept="augmented"), sample, w, 1e200, alpha, 1e-3)
    assert not found.upper < np.inf
    assert found.lower > 0.0


def test_overlarge_dual_weights_are_scaled_without_underflow():
    """Dual weights a hundred orders of magnitude too large."""
    problem, y = Problem("squared_hinge", 1e-79), np.array([1.0, -1.0, 1.0])
    sample, alpha = Sample(np.zeros((3, 1)), y, np.ones(3)), np.array([1e103, 2e103, 3e103])
    found = certify(problem, sample, np.zeros(1), 0.0, alpha, 1e-3)
    primal, dual = exact_values(problem, sample, np.zeros(1), 0.0, found.alpha)
    assert Fraction(found.lower) <= dual <= primal <= Fraction(found.upper)
    assert found.lower == pytest.approx(float(dual), rel=1e-9)
