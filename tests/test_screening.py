"""What is certain about the optimum from a gap: intervals of intercepts, margins and features hold the optimum."""

from fractions import Fraction

import numpy as np
import pytest
import scipy.sparse as sp

from maxmargin import MaxMarginClassifier
from maxmargin.certificates.intercept_interval import intercept_interval
from maxmargin.certificates.rows import certify
from maxmargin.certificates.sample import Sample
from maxmargin.certificates.screening import certain_margins, columns_without_weight, modulus
from maxmargin.problem.problem import Problem
from tests import oracle

LOSSES = ("hinge", "squared_hinge")


def slope(loss, z, y, s, b):
    """The subdifferential of the loss in b: from the left, and from the right."""
    m = y * (z + b)
    if loss == "squared_hinge":
        value = -float(np.sum(s * y * np.maximum(1.0 - m, 0.0)))
        return value, value
    inside = -float(np.sum(s[m < 1.0] * y[m < 1.0]))
    at = m == 1.0
    return inside - float(s[at & (y > 0)].sum()), inside + float(s[at & (y < 0)].sum())


def best_intercepts(loss, z, y, s):
    """The least and the largest minimiser, by looking at every kink, and between them."""
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


def few(rng, n=12):
    """Scores and weights that are whole numbers of small fractions: slopes are exact, and ties are many."""
    y = np.where(rng.random(n) < 0.5, 1.0, -1.0)
    y[:2] = 1.0, -1.0
    return rng.integers(-12, 13, n) / 4.0, y, rng.integers(1, 4, n).astype(float)


class TestIntercepts:
    @pytest.mark.parametrize("loss", LOSSES)
    @pytest.mark.parametrize("seed", range(40))
    def test_known_scores_give_the_interval_of_the_best(self, loss, seed):
        z, y, s = few(np.random.default_rng(seed))
        least, largest = intercept_interval(Problem(loss, 1.0), z, z, y, s)
        expected = best_intercepts(loss, z, y, s)
        np.testing.assert_allclose((least, largest), expected, atol=1e-9)
        assert least <= expected[0] + 1e-12
        assert largest >= expected[1] - 1e-12

    @pytest.mark.parametrize("loss", LOSSES)
    @pytest.mark.parametrize("seed", range(40))
    def test_no_scores_within_have_a_best_intercept_outside(self, loss, seed):
        rng = np.random.default_rng(seed)
        z, y, s = few(rng)
        away = rng.integers(0, 5, z.size) / 4.0
        least, largest = intercept_interval(Problem(loss, 1.0), z - away, z + away, y, s)
        for _ in range(10):
            inside = z + away * rng.integers(-4, 5, z.size) / 4.0
            low, high = best_intercepts(loss, inside, y, s)
            assert least <= low + 1e-9
            assert high <= largest + 1e-9

    def test_weights_of_many_orders(self):
        """Sums of weights lose what the small ones weigh: the end is beyond the best b of exact arithmetic."""
        for seed in range(300):
            rng = np.random.default_rng(seed)
            z, y, _ = few(rng, 8)
            s = 10.0 ** rng.uniform(-18, 0, 8)
            _, largest = intercept_interval(Problem("squared_hinge", 1.0), z, z, y, s)
            t, c = [Fraction(v) for v in y - z], [Fraction(v) for v in s]

            def slope(b, t=t, c=c, y=y):
                return sum(ci * (b - ti) for ti, ci, sign in zip(t, c, y, strict=True)
                           if (b > ti) == (sign < 0) and b != ti)  # fmt: skip

            if np.isfinite(largest):
                assert slope(Fraction(largest) + Fraction(1, 10**12)) > 0

    def test_the_hard_margin_asks_every_margin_to_be_one(self):
        z, y = np.array([3.0, 2.0, -4.0]), np.array([1.0, 1.0, -1.0])
        least, largest = intercept_interval(Problem("hinge", np.inf), z - 0.5, z + 0.5, y, np.ones(3))
        assert (least, largest) == (-1.5, 3.5)  # 2.5 + b >= 1, and -4.5 + b <= -1

    def test_one_class_alone_has_no_end(self):
        z, y = np.array([1.0, 2.0]), np.array([1.0, 1.0])
        assert intercept_interval(Problem("hinge", 1.0), z, z, y, np.ones(2))[1] == np.inf


def data(seed, n=60, d=5, shift=1.0):
    rng = np.random.default_rng(seed)
    y = np.where(np.arange(n) % 3 == 0, 1.0, -1.0)
    X = rng.normal(size=(n, d))
    X[:, 0] += shift * y
    return rng, X, y


def exact(problem, X, y, weights):
    """The optimum to rounding, and its dual weights; its own certificate says how near it is."""
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
    """A point about so far from the optimum, with its certificate."""
    v = w + size * rng.normal(size=w.size) * np.abs(w).max()
    c = b + size * rng.normal() if problem.intercept != "none" else b
    a = np.maximum(alpha * (1.0 + size * rng.normal(size=alpha.size)), 0.0)
    if problem.hard:  # a separator still
        least = (sample.y * (sample.X @ v + c)).min()
        v, c = (v / least, c / least) if least > 0 else (w, b)
    return v, c, certify(problem, sample, v, c, a)


@pytest.mark.parametrize("intercept", ["none", "free", "augmented"])
@pytest.mark.parametrize("p", [2.0, 3.0, 10.0])
@pytest.mark.parametrize(("loss", "C"), [("hinge", 1.0), ("squared_hinge", 0.3), ("hinge", np.inf)])
class TestMargins:
    def test_hold_the_optimum_and_become_narrow(self, loss, C, p, intercept):
        problem = Problem(loss, C, p=p, intercept=intercept)
        told = 0
        for seed in range(3):
            rng, X, y = data(seed, shift=5.0 if problem.hard else 1.0)
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
            told += int((found.weightless | found.inside).sum())
            # as the square root of a gap that is at least linear in the distance
            assert widths[-1] < 0.3 * widths[-2]
        assert told > 100

    def test_sparse_rows_are_told_the_same(self, loss, C, p, intercept):
        problem = Problem(loss, C, p=p, intercept=intercept)
        rng, X, y = data(5, shift=5.0)
        weights = np.ones(y.size)
        w, b, alpha = exact(problem, X, y, weights)
        sample = Sample(X, y, weights)
        point = near(rng, 0.01, problem, sample, w, b, alpha)
        dense = certain_margins(sample, *point)
        sparse = certain_margins(Sample(sp.csr_matrix(X), y, weights), *point)
        np.testing.assert_allclose(sparse.least, dense.least, rtol=1e-9, atol=1e-12)


def test_the_optimum_of_another_solver_is_inside():
    """Clarabel's bracket is of the objective: a w that is best to 1e-9 is no further than sqrt(2e-9 P) from w*."""
    problem = Problem("hinge", 1.0)
    rng, X, y = data(11)
    weights = np.ones(y.size)
    best = oracle.optimum(problem, X, y, weights)
    w, b, alpha = exact(problem, X, y, weights)
    assert best.lower - 1e-9 <= 0.5 * w @ w + np.maximum(1 - y * (X @ w + b), 0).sum() <= best.upper + 1e-6
    found = certain_margins(
        Sample(X, y, weights), *near(rng, 0.01, problem, Sample(X, y, weights), w, b, alpha)
    )
    assert found.weightless.sum() > 3
    # the optimum without those rows is the same
    rest = ~found.weightless
    again = oracle.optimum(problem, X[rest], y[rest], weights[rest])
    assert again.lower <= best.upper + 1e-9
    assert again.upper >= best.lower - 1e-9


class TestFeatures:
    @pytest.mark.parametrize("intercept", ["none", "free", "augmented"])
    @pytest.mark.parametrize("seed", range(4))
    def test_none_that_has_a_weight_is_called_weightless(self, intercept, seed):
        rng, X, y = data(seed, n=80, d=12, shift=1.5)
        weights = rng.integers(1, 3, y.size).astype(float)
        problem = Problem("squared_hinge", 0.5, p=np.inf, intercept=intercept)
        w, b, alpha = exact(problem, X, y, weights)
        sample = Sample(X, y, weights)
        told = []
        for size in (0.1, 1e-2, 1e-3, 0.0):
            *_, certificate = near(rng, size, problem, sample, w, b, alpha)
            found = columns_without_weight(sample, certificate)
            assert not (np.abs(w[found]) > 1e-7 * np.abs(w).max()).any()
            sparse = columns_without_weight(Sample(sp.csr_matrix(X), y, weights), certificate)
            assert (sparse == found).all()
            told.append(int(found.sum()))
        assert told[-1] == int((np.abs(w) <= 1e-7 * np.abs(w).max()).sum()) > 0

    def test_elsewhere_nothing_is_offered(self):
        rng, X, y = data(1)
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
