"""Screening by a gap: intervals of intercepts and margins hold the optimum, and screened features have no weight."""

from fractions import Fraction

import numpy as np
import oracle
import pytest
import scipy.sparse as sp
from problems import shifted_classes

from maxmargin import MaxMarginClassifier
from maxmargin.certificates.intercept_interval import intercept_interval
from maxmargin.certificates.rows import certify
from maxmargin.certificates.sample import Sample
from maxmargin.certificates.screening import certain_margins, columns_without_weight, modulus
from maxmargin.problem.problem import Problem

LOSSES = ("hinge", "squared_hinge")


def slope(loss, z, y, s, b):
    """Return the left and right derivatives of the loss in b."""
    m = y * (z + b)
    if loss == "squared_hinge":
        value = -float(np.sum(s * y * np.maximum(1.0 - m, 0.0)))
        return value, value
    inside = -float(np.sum(s[m < 1.0] * y[m < 1.0]))
    at = m == 1.0
    return inside - float(s[at & (y > 0)].sum()), inside + float(s[at & (y < 0)].sum())


def best_intercepts(loss, z, y, s):
    """Return the least and the largest minimiser, by evaluation at all kinks or bisection."""
    kinks = np.sort(y - z)
    if loss == "hinge":
        fits = [t for t in kinks if slope(loss, z, y, s, t)[0] <= 0.0 <= slope(loss, z, y, s, t)[1]]
        return min(fits), max(fits)
    low, high = kinks[0] - 1.0, kinks[-1] + 1.0
    for side in (0, 1):
        a, c = kinks[0] - 1.0, kinks[-1] + 1.0
        for _ in range(200):
            b = 0.5 * (a + c)
            value = slope(loss, z, y, s, b)[0]
            a, c = (b, c) if (value < 0.0 if side == 0 else value <= 0.0) else (a, b)
        low, high = (c, high) if side == 0 else (low, a)
    return low, high


def quarter_integer_scores(rng, n=12):
    """Return scores in multiples of 1/4, labels and integer weights: slopes are exact, and ties are frequent."""
    y = np.where(rng.random(n) < 0.5, 1.0, -1.0)
    y[:2] = 1.0, -1.0
    return rng.integers(-12, 13, n) / 4.0, y, rng.integers(1, 4, n).astype(float)


class TestIntercepts:
    @pytest.mark.parametrize("loss", LOSSES)
    @pytest.mark.parametrize("seed", range(40))
    def test_exact_scores_give_the_interval_of_the_best_intercepts(self, loss, seed):
        z, y, s = quarter_integer_scores(np.random.default_rng(seed))
        least, largest = intercept_interval(Problem(loss, 1.0), z, z, y, s)
        expected = best_intercepts(loss, z, y, s)
        np.testing.assert_allclose((least, largest), expected, atol=1e-9)
        assert least <= expected[0] + 1e-12
        assert largest >= expected[1] - 1e-12

    @pytest.mark.parametrize("loss", LOSSES)
    @pytest.mark.parametrize("seed", range(40))
    def test_interval_holds_the_best_intercepts_of_all_scores_within_bounds(self, loss, seed):
        rng = np.random.default_rng(seed)
        z, y, s = quarter_integer_scores(rng)
        deviation = rng.integers(0, 5, z.size) / 4.0
        least, largest = intercept_interval(Problem(loss, 1.0), z - deviation, z + deviation, y, s)
        for _ in range(10):
            inside = z + deviation * rng.integers(-4, 5, z.size) / 4.0
            low, high = best_intercepts(loss, inside, y, s)
            assert least <= low + 1e-9
            assert high <= largest + 1e-9

    def test_upper_end_is_valid_for_weights_of_many_orders(self):
        """Rounded sums lose small weights: the upper end is above the best b of exact arithmetic."""
        for seed in range(300):
            rng = np.random.default_rng(seed)
            z, y, _ = quarter_integer_scores(rng, 8)
            s = 10.0 ** rng.uniform(-18, 0, 8)
            _, largest = intercept_interval(Problem("squared_hinge", 1.0), z, z, y, s)
            t, c = [Fraction(v) for v in y - z], [Fraction(v) for v in s]

            def slope(b, t=t, c=c, y=y):
                return sum(ci * (b - ti) for ti, ci, sign in zip(t, c, y, strict=True)
                           if (b > ti) == (sign < 0) and b != ti)  # fmt: skip

            if np.isfinite(largest):
                assert slope(Fraction(largest) + Fraction(1, 10**12)) > 0

    def test_hard_margin_interval_requires_margins_of_one(self):
        z, y = np.array([3.0, 2.0, -4.0]), np.array([1.0, 1.0, -1.0])
        least, largest = intercept_interval(Problem("hinge", np.inf), z - 0.5, z + 0.5, y, np.ones(3))
        assert (least, largest) == (-1.5, 3.5)  # 2.5 + b >= 1, and -4.5 + b <= -1

    def test_interval_of_one_class_is_unbounded(self):
        z, y = np.array([1.0, 2.0]), np.array([1.0, 1.0])
        assert intercept_interval(Problem("hinge", 1.0), z, z, y, np.ones(2))[1] == np.inf


def exact(problem, X, y, weights):
    """Return the optimum to rounding and its dual weights; check the gap of its certificate."""
    clf = MaxMarginClassifier(
        problem.C,
        loss=problem.loss,
        p=problem.p,
        tol=1e-9,
        fit_intercept=problem.intercept != "none",
        intercept="augmented" if problem.intercept == "augmented" else "free",
        max_iter=10000,
    ).fit(X, y, weights)
    alpha = np.zeros(y.size)
    certificate = clf.certificate_
    alpha[certificate.support] = certificate.dual
    assert certificate.gap <= 1e-9
    return clf.coef_[0], float(clf.intercept_[0]), alpha


def near(rng, size, problem, sample, w, b, alpha):
    """Return a point at a relative distance of about `size` from the optimum, with its certificate."""
    v = w + size * rng.normal(size=w.size) * np.abs(w).max()
    c = b + size * rng.normal() if problem.intercept != "none" else b
    a = np.maximum(alpha * (1.0 + size * rng.normal(size=alpha.size)), 0.0)
    if problem.hard:  # keep a separator
        least = (sample.y * (sample.X @ v + c)).min()
        v, c = (v / least, c / least) if least > 0 else (w, b)
    return v, c, certify(problem, sample, v, c, a)


@pytest.mark.parametrize("intercept", ["none", "free", "augmented"])
@pytest.mark.parametrize("p", [2.0, 3.0, 10.0])
@pytest.mark.parametrize(("loss", "C"), [("hinge", 1.0), ("squared_hinge", 0.3), ("hinge", np.inf)])
class TestMargins:
    def test_margin_intervals_hold_the_optimum_and_narrow_with_the_gap(self, loss, C, p, intercept):
        problem = Problem(loss, C, p=p, intercept=intercept)
        decided = 0
        for seed in range(3):
            rng, X, y = shifted_classes(seed, shift=5.0 if problem.hard else 1.0)
            weights = np.ones(y.size) if problem.hard else rng.integers(1, 4, y.size).astype(float)
            w, b, alpha = exact(problem, X, y, weights)
            margins = y * (X @ w + b)
            sample = Sample(X, y, weights)
            widths = []
            for size in (0.3, 0.03, 1e-3, 1e-5):
                found = certain_margins(sample, *near(rng, size, problem, sample, w, b, alpha))
                assert found is not None
                assert (found.least <= margins + 1e-4).all()
                assert (found.most >= margins - 1e-4).all()
                assert not (alpha[found.weightless] > 1e-6).any()
                if loss == "hinge" and not problem.hard:
                    caps = problem.caps(weights)
                    np.testing.assert_allclose(alpha[found.inside], caps[found.inside], rtol=1e-6)
                widths.append(float((found.most - found.least).max()))
            decided += int((found.weightless | found.inside).sum())
            # widths fall at least like the square root of the gap, and the gap at least linearly in the distance
            assert widths[-1] < 0.3 * widths[-2]
        assert decided > 100

    def test_sparse_and_dense_rows_give_equal_intervals(self, loss, C, p, intercept):
        problem = Problem(loss, C, p=p, intercept=intercept)
        rng, X, y = shifted_classes(5, shift=5.0)
        weights = np.ones(y.size)
        w, b, alpha = exact(problem, X, y, weights)
        sample = Sample(X, y, weights)
        point = near(rng, 0.01, problem, sample, w, b, alpha)
        dense = certain_margins(sample, *point)
        sparse = certain_margins(Sample(sp.csr_matrix(X), y, weights), *point)
        np.testing.assert_allclose(sparse.least, dense.least, rtol=1e-9, atol=1e-12)


def test_removing_weightless_rows_keeps_the_optimum_of_another_solver():
    """Clarabel bounds the objective: a w that is optimal to 1e-9 is within sqrt(2e-9 P) of w*."""
    problem = Problem("hinge", 1.0)
    rng, X, y = shifted_classes(11)
    weights = np.ones(y.size)
    best = oracle.optimum(problem, X, y, weights)
    w, b, alpha = exact(problem, X, y, weights)
    assert best.lower - 1e-9 <= 0.5 * w @ w + np.maximum(1 - y * (X @ w + b), 0).sum() <= best.upper + 1e-6
    found = certain_margins(
        Sample(X, y, weights), *near(rng, 0.01, problem, Sample(X, y, weights), w, b, alpha)
    )
    assert found.weightless.sum() > 3
    # the optimum without these rows is the same
    rest = ~found.weightless
    again = oracle.optimum(problem, X[rest], y[rest], weights[rest])
    assert again.lower <= best.upper + 1e-9
    assert again.upper >= best.lower - 1e-9


class TestFeatures:
    @pytest.mark.parametrize("intercept", ["none", "free", "augmented"])
    @pytest.mark.parametrize("seed", range(4))
    def test_screened_features_have_no_weight_at_the_optimum(self, intercept, seed):
        rng, X, y = shifted_classes(seed, n=80, d=12, shift=1.5)
        weights = rng.integers(1, 3, y.size).astype(float)
        problem = Problem("squared_hinge", 0.5, p=np.inf, intercept=intercept)
        w, b, alpha = exact(problem, X, y, weights)
        sample = Sample(X, y, weights)
        decided = []
        for size in (0.1, 1e-2, 1e-3, 0.0):
            *_, certificate = near(rng, size, problem, sample, w, b, alpha)
            found = columns_without_weight(sample, certificate)
            assert not (np.abs(w[found]) > 1e-7 * np.abs(w).max()).any()
            sparse = columns_without_weight(Sample(sp.csr_matrix(X), y, weights), certificate)
            assert (sparse == found).all()
            decided.append(int(found.sum()))
        assert decided[-1] == int((np.abs(w) <= 1e-7 * np.abs(w).max()).sum()) > 0

    def test_unsupported_problems_give_no_screening(self):
        rng, X, y = shifted_classes(1)
        sample = Sample(X, y, np.ones(y.size))
        for problem in (
            Problem("hinge", 1.0, p=np.inf),
            Problem("squared_hinge", 1.0, p=1.5),
            Problem("squared_hinge", 1.0, p=1.0),
            Problem("hinge", 1.0, p=3.0, power=1),
        ):
            w, b = rng.normal(size=X.shape[1]), 0.1
            certificate = certify(problem, sample, w, b, np.ones(y.size))
            assert certain_margins(sample, w, b, certificate) is None
            assert modulus(problem) == 0.0
            assert columns_without_weight(sample, certificate) is None
