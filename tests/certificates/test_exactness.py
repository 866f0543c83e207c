"""Inseparable data with columns from 1e-150 to 1e150: exact dual weights near the float64 ones prove the bound."""

from __future__ import annotations

from copy import copy
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
import scipy.sparse as sp
from effort import examples, thorough
from oracle import exact_bounds

from maxmargin import CertificateError, MaxMarginClassifier, Status, verify
from maxmargin.certificates.huge_columns import exact_bound, huge_columns
from maxmargin.certificates.sample import Sample
from maxmargin.numerics.sums import EPS
from maxmargin.problem.problem import Problem

INTERCEPTS = {"none": {"fit_intercept": False}, "free": {}, "augmented": {"intercept": "augmented"}}
SCALES = {
    "huge": lambda rng, d: np.full(d, 150.0),
    "tiny": lambda rng, d: np.full(d, -150.0),
    "mixed": lambda rng, d: np.resize([150.0, -75.0, 0.0, 75.0, -150.0], d),
    "random": lambda rng, d: rng.uniform(-150.0, 150.0, d),
    "just huge": lambda rng, d: rng.uniform(6.0, 16.0, d),
}
ROUNDING = (
    1e-12  # sums of at most 80 terms: 80 eps = 2e-14, times 50 for terms larger than their sum and margins
)
# every pair of a scale, a loss, an intercept and a C of either size
TASKS = [
    ("huge", "hinge", "none", 1e-2),
    ("huge", "squared_hinge", "free", 1e2),
    ("tiny", "squared_hinge", "none", 1.0),
    ("mixed", "hinge", "free", 1.0),
    ("mixed", "squared_hinge", "augmented", 1e-2),
    ("random", "hinge", "augmented", 1e2),
    ("random", "squared_hinge", "free", 1e-2),
    ("just huge", "hinge", "free", 1e2),
]


def overlapping(rng, n, d):
    y = np.arange(n) % 2
    return rng.normal(size=(n, d)) + 0.3 * (2 * y - 1)[:, None], y


@thorough
@pytest.mark.parametrize(("scales", "loss", "intercept", "C"), TASKS)
def test_all_scales_are_certified_with_valid_bounds(scales, loss, intercept, C):
    """Dense and sparse; the primal value, in rational numbers, lies between the bounds."""
    rng = np.random.default_rng([len(scales), len(loss), len(intercept)])
    for trial in range(examples(2, 20)):
        n, d = int(rng.integers(40, 80)), int(rng.integers(2, 6))  # the huge columns alone are inseparable
        X, y = overlapping(rng, n, d)
        X = X * 10.0 ** (exponents := SCALES[scales](rng, d))
        s, signs = (10.0 ** rng.uniform(-1.0, 1.0, n) if trial % 2 else np.ones(n)), 2.0 * y - 1.0
        data = X if trial % 2 else sp.csr_matrix(X)
        model = MaxMarginClassifier(C, loss=loss, tol=1e-3, random_state=0, **INTERCEPTS[intercept])
        claim = model.fit(data, y, s).certificate_
        assert model.status_ is Status.CERTIFIED
        found = verify(model, X, y, s)
        assert found.gap <= 1e-3
        np.testing.assert_allclose(verify(model, sp.csr_matrix(X), y, s).lower, found.lower, ROUNDING)
        own = exact_bounds(claim.problem, X, signs, s, model.coef_[0], model.intercept_[0], np.zeros(n)).upper
        assert claim.lower <= own <= claim.upper
        huge = huge_columns(claim.problem, Sample(X, signs, s), claim.alpha)
        assert (huge is None) == (exponents.max() < 0.0) or 0.0 <= exponents.max() < 6.0


@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
def test_dependent_huge_columns_are_certified(loss):
    """Whole numbers times a power of two: the last column is exactly the sum of the first two."""
    X, y = overlapping(np.random.default_rng(2), 50, 3)
    X = np.rint(64.0 * X) * 2.0**500
    model = MaxMarginClassifier(loss=loss, random_state=0).fit(np.column_stack([X, X[:, 0] + X[:, 1]]), y)
    assert model.status_ is Status.CERTIFIED
    claim = verify(model, np.column_stack([X, X[:, 0] + X[:, 1]]), y)
    assert 0.0 < claim.lower <= claim.upper <= 1.001 * claim.lower


@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
def test_false_claims_about_huge_columns_are_refused(loss):
    X, y = overlapping(np.random.default_rng(1), 50, 4)
    X = X * 10.0 ** np.array([150.0, 75.0, 0.0, -150.0])
    model = MaxMarginClassifier(1.0, loss=loss, random_state=0).fit(X, y)
    claim = model.certificate_
    verify(model, X, y)
    # two rows of one label, whose dual weights are off their bounds
    order = np.argsort(np.abs(claim.dual - 0.5))
    k, m = order[y[claim.support[order]] == y[claim.support[order[0]]]][:2]
    changes = [{"lower": claim.lower * (1.0 + 1e-6)}, {"dual": claim.dual * 0.5}]
    for share in (1e-4, 1e-2, 0.3):
        dual = claim.dual.copy()
        dual[k], dual[m] = dual[k] * (1.0 - share), dual[m] + dual[k] * share  # as balanced as before
        changes.append({"dual": dual})
    for change in changes:
        forged = copy(model)
        forged.certificate_ = replace(claim, **change)
        with pytest.raises(CertificateError, match="the lower bound fails"):
            verify(forged, X, y)


def test_changes_that_cancel_a_huge_column_are_subtracted():
    """Four rows can change, and lower their sum by what the fifth, at its cap, does not cancel: 1/1024."""
    X, y, ones = np.array([[1e150], [1e150], [1e150], [1e150], [-1.5e150]]), np.ones(5), np.ones(5)
    alpha = np.array([0.25, 0.25, 0.5 + 2.0**-10, 0.5, 1.0])
    problem = Problem("hinge", 1.0, intercept="none")
    proof = exact_bound(problem, Sample(X, y, ones), alpha, np.ones(1, bool))
    assert Fraction(proof.bound) <= Fraction(5, 2)
    assert proof.bound == pytest.approx(2.5, rel=ROUNDING, abs=0.0)
    far = np.array([1e-3, 1e-3, 1e-3, 1e-3, 1.0])  # their changes would exceed their distance from 0
    assert exact_bound(problem, Sample(X, y, ones), far, np.ones(1, bool)) is None


@pytest.mark.parametrize("power", [1, 2])
@pytest.mark.parametrize("p", [1.0, 1.5, 2.0, 3.0, np.inf])
def test_changes_that_cancel_a_huge_column_lengthen_the_other_columns(p, power):
    """The same changes in a huge column and two ordinary ones, in which v is v* + u / 1024, shorter than v*.

    Let the first four dual variables sum to s, and the fifth be t <= 1. The huge column cancels where s = 1.5 t: the
    gains are 2.5 t, and v = t v*. The largest dual value has t = 1.
    """
    shortest = np.array([0.5, 0.3125]) * (2.0 if power == 1 else 1.0)  # v*
    u = -0.5 * shortest
    X = np.column_stack([[1e150] * 4 + [-1.5e150], np.vstack([[u] * 4, shortest - 1.5 * u])])
    alpha = np.array([0.25, 0.25, 0.5 + 2.0**-10, 0.5, 1.0])
    length = float(np.linalg.norm(shortest, p))
    optimum = 2.5 - 0.5 * length**2 if power == 2 else 2.5 / max(1.0, length)
    problem = Problem("hinge", 1.0, p=p, power=power, intercept="none")
    bound = exact_bound(
        problem, Sample(X, np.ones(5), np.ones(5)), alpha, np.array([True, False, False])
    ).bound
    assert bound <= optimum * (1.0 + 8.0 * EPS)
    assert bound == pytest.approx(optimum, rel=ROUNDING, abs=0.0)
