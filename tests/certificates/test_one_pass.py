"""One-pass certificates: equal to certificates of separate sums, and valid in real arithmetic."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from oracle import exact_bounds

from maxmargin import MaxMarginClassifier, Problem, Status, verify
from maxmargin.certificates import one_pass, rows
from maxmargin.certificates.one_pass import certify
from maxmargin.certificates.sample import Sample
from maxmargin.numerics.sums import Compensated

# error of sums of n terms, relative to the bound: n eps, times 4 for terms larger than their sum and for margins
ROUNDING = 4.0 * float(np.finfo(float).eps)
KINDS = [("hinge", "free"), ("hinge", "none"), ("squared_hinge", "free"), ("squared_hinge", "augmented")]


def task(seed, n=40, d=3, scale=1.0, dtype=float):
    """Rows, a point and dual weights that no solver produced."""
    rng = np.random.default_rng(seed)
    X = (scale * rng.normal(size=(n, d))).astype(dtype)
    y = np.where(rng.random(n) < 0.4, 1.0, -1.0)
    weights = rng.uniform(0.1, 3.0, n) * (rng.random(n) < 0.9)
    alpha = np.maximum(rng.normal(size=n), -0.1) * 10.0 ** rng.uniform(-3, 1)
    return Sample(X, y, weights), rng.normal(size=d) / scale, float(rng.normal()), alpha


def assert_valid(found, problem, sample, w, b):
    """Bounds on the right side of what the point proves in rational arithmetic, and close to it: 100 n eps."""
    exact = exact_bounds(problem, sample.X, sample.y, sample.weights, w, b, found.alpha)
    assert found.lower <= exact.lower <= exact.upper <= found.upper
    assert found.lower == pytest.approx(float(exact.lower), rel=1e-12, abs=1e-12 * float(exact.upper))
    assert found.upper == pytest.approx(float(exact.upper), rel=1e-12, abs=0.0)


@pytest.mark.parametrize(("loss", "intercept"), KINDS)
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_one_pass_bounds_equal_those_of_separate_sums(loss, intercept, dtype, monkeypatch):
    """In one or several parts of the rows, and for all numbers of rows that are left of groups of four."""
    problem = Problem(loss, 2.0, intercept=intercept)
    for n, d in ((2, 5), (21, 9), (22, 4), (303, 4), (1024, 2), (2500, 7)):
        sample, w, b, alpha = task(n + d, n, d, dtype=dtype)
        b = 0.0 if intercept == "none" else b
        separate = rows.certify(problem, sample, w, b, alpha, 1e-3)
        with monkeypatch.context() as patch:
            if n > 2:  # rows of both classes with positive weight: no fall back
                patch.setattr(one_pass, "certify_any", None)
            found = certify(problem, replace(sample), w, b, alpha, 1e-3)
        near = n * ROUNDING * (1.0 if dtype is np.float64 else d)  # sums of float32 are not added in parts
        np.testing.assert_allclose((found.lower, found.upper), (separate.lower, separate.upper), near)
        assert found.support.tolist() == separate.support.tolist()
        np.testing.assert_allclose(found.dual, separate.dual, rtol=n * ROUNDING)
        assert found.fingerprint.difference(separate.fingerprint) is None


def test_millions_of_equal_dual_weights_are_balanced(monkeypatch):
    """Plain sums of them have a one-sided error above the tolerance of `verify`; separate sums take longer."""
    monkeypatch.setattr(one_pass, "certify_any", None)
    n = 1_000_001
    y = np.where(np.arange(n) % 3 == 0, 1.0, -1.0)
    X = y[:, None] + np.linspace(-1.0, 1.0, n)[:, None]
    for C in (0.1, 1.0 / 3.0):
        found = certify(Problem("hinge", C), Sample(X, y, np.ones(n)), np.zeros(1), 0.0, np.full(n, C), 0.1)
        # NEGLIGIBLE_IMBALANCE, a hundredth of what verify accepts
        assert abs(Compensated.total(found.alpha * y)) < 1e-14 * found.dual.sum()


@pytest.mark.parametrize("intercept", ["free", "augmented"])
def test_tiny_and_huge_dual_weights_have_valid_bounds(intercept):
    """alpha^2 / (4 C s) is computed with the quotient first, and multiples of huge alpha do not underflow."""
    X, y = np.random.default_rng(0).normal(size=(50, 4)), np.where(np.arange(50) % 2 == 0, 1.0, -1.0)
    sample, origin = Sample(X, y, np.ones(50)), (np.zeros(4), 0.0)
    for C in (1e-140, 1e-158, 1e-160, 3e-162, 1e-250):
        problem = Problem("squared_hinge", C, intercept=intercept)
        for share in (0.5, 1.0, 2.0):
            found = certify(problem, sample, *origin, np.full(50, 2.0 * share * C), 1e-3)
            assert_valid(found, problem, sample, *origin)
            assert found.gap < 2 * 50 * ROUNDING  # of both bounds
        model = MaxMarginClassifier(C, loss="squared_hinge", tol=1e-6, intercept=intercept).fit(X, y)
        assert model.status_ is Status.CERTIFIED
        assert verify(model, X, y).gap <= 1e-6
    # a hundred orders of magnitude too large; classes whose sums vanish beside each other
    y, ones = np.array([1.0, -1.0, 1.0]), np.ones(3)
    problem, sample = Problem("squared_hinge", 1e-79, intercept=intercept), Sample(np.zeros((3, 1)), y, ones)
    found = certify(problem, sample, np.zeros(1), 0.0, np.array([1e103, 2e103, 3e103]), 1e-3)
    assert_valid(found, problem, sample, np.zeros(1), 0.0)
    uneven, rows = np.array([1.446e136, 8.08e-188, 1.59e136]), np.array([[1.0], [-1.0], [2.0]])
    found = certify(Problem("squared_hinge", 1.0), Sample(rows, y, ones), np.ones(1), 0.0, uneven, 1e-3)
    assert abs(float(found.alpha @ y)) <= 3 * ROUNDING * found.alpha.sum()
