"""Bounds where products underflow, where sums overflow, and where one row is far away."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

from maxmargin import CertificateError, MaxMarginClassifier, Problem, verify
from maxmargin.certificates import one_pass
from maxmargin.certificates.rows import bounds, certify
from maxmargin.certificates.sample import Sample
from maxmargin.numerics.sums import Compensated, Plain


def noisy_rows():
    """Return rows of two classes that no hyperplane separates."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 3))
    return X, np.where(X[:, 0] + 0.5 * rng.normal(size=60) > 0.0, 1.0, -1.0)


@pytest.mark.parametrize("arithmetic", [Plain, Compensated])
def test_margins_hold_where_weights_or_products_underflow(arithmetic):
    """The margin of d equal entries a and weights b is a sqrt(d), whatever b is."""
    problem, rng, y = Problem("hinge", np.inf, intercept="none"), np.random.default_rng(1), np.ones(1)
    tiny = rng.uniform(1.0, 2.0, (1000, 2)) * 2.0 ** rng.integers(-560, -480, (1000, 2))
    for a, b, d in [(1e300, 5e-324, 2), *((a, b, 64) for a, b in tiny)]:
        sample = Sample(np.full((1, d), a), y, y)
        found = bounds(problem, sample, np.full(d, b), 0.0, np.ones(1), arithmetic)
        square = d * Fraction(a) ** 2  # of the margin
        assert found.lower <= 0.0 or Fraction(float(found.lower)) ** 2 <= square
        assert square <= Fraction(float(found.upper)) ** 2


def test_quotients_that_underflow_are_rounded_downwards():
    problem, rng, y = Problem("hinge", np.inf), np.random.default_rng(0), np.array([1.0, -1.0])
    for _ in range(300):
        sizes = 5e-324 * rng.integers(1000, 5000, 2)
        sample = Sample((sizes * y)[:, None], y, np.ones(2))
        w = 2.0 ** rng.integers(3, 60) * rng.uniform(1.0, 2.0)
        b = 0.5 * (sizes[1] - sizes[0]) * w
        found = bounds(problem, sample, np.array([w]), b, np.full(2, 0.5), Compensated)
        W, B, (x, z) = Fraction(w), Fraction(float(b)), map(Fraction, sizes.tolist())
        assert Fraction(float(found.lower)) <= min(x * W + B, z * W - B) / W


@pytest.mark.parametrize("storage", ["memory", "files"])
def test_no_claim_is_verified_by_sums_that_overflow(storage, tmp_path):
    X, y = noisy_rows()
    given = (X, y) if storage == "memory" else (tmp_path / "X.npy", tmp_path / "y.npy")
    if storage == "files":
        np.save(given[0], X)
        np.save(given[1], y)
    model = MaxMarginClassifier(loss="hinge", random_state=0).fit(X, y)
    assert verify(model, *given).gap <= 1e-3
    model.coef_ = np.full_like(model.coef_, 1e200)
    model.certificate_ = replace(model.certificate_, upper=model.certificate_.lower * (1.0 + 1e-9))
    with pytest.raises(CertificateError, match="the upper bound fails"):
        verify(model, *given)


def test_a_far_row_without_dual_variable_costs_no_bound():
    """Balancing moves the rows with dual variables alone."""
    X, y = noisy_rows()
    model = MaxMarginClassifier(random_state=0).fit(X, y)
    w, b, claim = model.coef_[0], float(model.intercept_[0]), model.certificate_
    unbalanced = claim.alpha * np.where(y > 0.0, 1.0 + 5e-13, 1.0)
    far = np.vstack([X, 1e9 * w])
    found = [
        bounds(claim.problem, Sample(rows, signs, np.ones(signs.size)), w, b, alpha, Compensated)
        for rows, signs, alpha in (
            (X, y, unbalanced),
            (far, np.append(y, 1.0), np.append(unbalanced, 0.0)),
        )
    ]
    assert found[1].lower == pytest.approx(found[0].lower, rel=1e-12)


@pytest.mark.parametrize("p", [1.0, 2.0, np.inf])
@pytest.mark.parametrize("make", [certify, one_pass.certify])
def test_upper_bounds_of_infinite_losses_are_infinite_and_no_nan(make, p):
    """The loss of a row of weight 0 is 0 times infinity here."""
    problem, y = Problem("squared_hinge", 1.0, p), np.array([1.0, -1.0])
    sample = Sample(np.array([[1e308, 1e308], [-1e308, 1.0]]), y, np.array([1.0, 0.0]))
    found = make(problem, sample, np.full(2, 1e308), 0.0, np.full(2, 0.5))
    assert found.upper == np.inf
    assert found.gap == np.inf


@pytest.mark.parametrize("bound", ["lower", "upper"])
def test_nan_is_no_bound(bound):
    X, y = noisy_rows()
    model = MaxMarginClassifier(random_state=0).fit(X, y)
    model.certificate_ = replace(model.certificate_, **{bound: np.nan})
    with pytest.raises(CertificateError, match=f"the {bound} bound fails"):
        verify(model, X, y)
