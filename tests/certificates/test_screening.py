"""Screening by a gap: intervals of intercepts and margins hold the optimum, and screened features have no weight."""

from fractions import Fraction

import numpy as np
import pytest
import scipy.sparse as sp
from effort import examples, thorough
from problems import shifted_classes

from maxmargin import MaxMarginClassifier, support_report
from maxmargin.certificates.intercept_interval import intercept_interval
from maxmargin.certificates.rows import certify
from maxmargin.certificates.sample import Sample
from maxmargin.certificates.screening import certain_margins, columns_without_weight, objective_gap
from maxmargin.problem.problem import Problem


def slopes(loss, t, y, s, b):
    """The left and right derivatives of the loss in b, in rational arithmetic; t are the breakpoints."""
    left = right = Fraction(0)
    for ti, label, weight in zip(t, y, s, strict=True):
        slack = max(label * (ti - b), Fraction(0))
        if loss == "squared_hinge":
            left, right = left - label * weight * slack, right - label * weight * slack
        else:
            left -= label * weight * (slack > 0 or (ti == b and label > 0))
            right -= label * weight * (slack > 0 or (ti == b and label < 0))
    return left, right


@thorough
@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
def test_intercept_interval_holds_the_best_intercepts(loss):
    """Of all scores within bounds, weights of many orders: beyond its ends the loss rises, and exact ones are close."""
    for seed in range(examples(40, 1000)):
        rng = np.random.default_rng(seed)
        y = np.where(rng.random(12) < 0.5, 1.0, -1.0)
        y[:2] = 1.0, -1.0
        z, s = rng.integers(-12, 13, 12) / 4.0, rng.integers(1, 4, 12).astype(float)
        deviation = rng.integers(0, 5, 12) / 4.0 * (seed % 2)
        s = 10.0 ** rng.uniform(-18, 0, 12) if seed % 4 == 0 else s
        least, largest = intercept_interval(Problem(loss, 1.0), z - deviation, z + deviation, y, s)
        for _ in range(5):
            inside = z + deviation * rng.integers(-4, 5, 12) / 4.0
            task = [[Fraction(v) for v in column.tolist()] for column in (y - inside, y, s)]
            if np.isfinite(least):
                assert slopes(loss, *task, Fraction(least) - Fraction(1, 10**12))[0] < 0
            if np.isfinite(largest):
                assert slopes(loss, *task, Fraction(largest) + Fraction(1, 10**12))[1] > 0
        if seed % 4 == 2:  # exact scores: just inside of the ends the loss falls to them
            ends = [(Fraction(least) + Fraction(1, 10**9), 1), (Fraction(largest) - Fraction(1, 10**9), 0)]
            assert slopes(loss, *task, ends[0][0])[0] >= 0 >= slopes(loss, *task, ends[1][0])[1]


def exact(problem, X, y, weights):
    """Return the optimum to rounding and its dual weights; check the gap of its certificate."""
    intercept = "augmented" if problem.intercept == "augmented" else "free"
    clf = MaxMarginClassifier(
        problem.C, loss=problem.loss, p=problem.p, tol=1e-9, max_iter=10000, intercept=intercept,
        fit_intercept=problem.intercept != "none",
    ).fit(X, y, weights)  # fmt: skip
    assert clf.certificate_.gap <= 1e-9
    return clf.coef_[0], float(clf.intercept_[0]), clf.certificate_.alpha


def near(rng, size, problem, sample, w, b, alpha):
    """Return a point at a relative distance of about `size` from the optimum, with its certificate."""
    v = w + size * rng.normal(size=w.size) * np.abs(w).max()
    c = b + size * rng.normal() if problem.intercept != "none" else b
    a = np.maximum(alpha * (1.0 + size * rng.normal(size=alpha.size)), 0.0)
    if (problem.loss, problem.p) == ("squared_hinge", 2):  # those of this point, with the least gap
        a = problem.curvatures(sample.weights) * np.maximum(1.0 - sample.y * (sample.X @ v + c), 0.0)
    if problem.hard:  # keep a separator
        least = (sample.y * (sample.X @ v + c)).min()
        v, c = (v / least, c / least) if least > 0 else (w, b)
    return v, c, certify(problem, sample, v, c, a)


@pytest.mark.parametrize(
    "problem",
    [
        Problem("hinge", 1.0, intercept="free"),
        Problem("squared_hinge", 0.3, intercept="augmented"),
        Problem("squared_hinge", 0.3, p=3.0, intercept="free"),
        Problem("hinge", 1.0, p=10.0, intercept="none"),
        Problem("hinge", np.inf, p=3.0, intercept="augmented"),
        Problem("hinge", np.inf, intercept="free"),
    ],
    ids=lambda p: f"{p.loss}-{p.C:g}-{p.p:g}-{p.intercept}",
)
def test_margin_intervals_hold_the_optimum_and_narrow_with_the_gap(problem):
    decided = 0
    for seed in range(2):
        rng, X, y = shifted_classes(seed, shift=5.0 if problem.hard else 1.0)
        weights = np.ones(y.size) if problem.hard else rng.integers(1, 4, y.size).astype(float)
        w, b, alpha = exact(problem, X, y, weights)
        margins, sample, widths = y * (X @ w + b), Sample(X, y, weights), []
        for size in (0.3, 0.03, 1e-3, 1e-5):
            point = near(rng, size, problem, sample, w, b, alpha)
            found = certain_margins(sample, *point)
            # the optimum is known to a gap of 1e-9: margins to its root, products of dual weights and slacks to itself
            assert (found.least <= margins + 1e-4).all()
            assert (found.most >= margins - 1e-4).all()
            assert not (alpha[found.weightless] > 1e-6).any()
            if problem.loss == "hinge" and not problem.hard:
                caps = problem.caps(weights)
                np.testing.assert_allclose(alpha[found.inside], caps[found.inside], rtol=1e-6)
            widths.append(float((found.most - found.least).max()))
        # at least like the square root of the gap, which falls at least linearly in the distance
        assert widths[-1] < 0.3 * widths[-2]
        decided += int((found.weightless | found.inside).sum())
        sparse = certain_margins(Sample(sp.csr_matrix(X), y, weights), *point)
        np.testing.assert_allclose(sparse.least, found.least, rtol=1e-13, atol=1e-13)  # 60 eps = 1e-14
    assert decided > 70


@pytest.mark.parametrize("intercept", ["none", "free", "augmented"])
def test_screened_features_have_no_weight_at_the_optimum(intercept):
    for seed in range(2):
        rng, X, y = shifted_classes(seed, n=80, d=12, shift=1.5)
        weights = rng.integers(1, 3, y.size).astype(float)
        problem = Problem("squared_hinge", 0.5, p=np.inf, intercept=intercept)
        w, b, alpha = exact(problem, X, y, weights)
        sample, zero = Sample(X, y, weights), np.abs(w) <= 1e-7 * np.abs(w).max()
        for size in (0.1, 1e-2, 1e-3, 0.0):
            *_, certificate = near(rng, size, problem, sample, w, b, alpha)
            found = columns_without_weight(sample, certificate)
            assert zero[found].all()
            sparse = columns_without_weight(Sample(sp.csr_matrix(X), y, weights), certificate)
            assert (sparse == found).all()
        assert found.sum() == zero.sum() > 0


def test_gaps_of_hard_margins_whose_squares_underflow_or_overflow_hold_the_exact_gap():
    problem = Problem("hinge", np.inf)
    rng = np.random.default_rng(0)
    for exponent in (-170, -157, -155.5, -154, 0, 100, 160):
        for lower in (10.0**exponent * rng.uniform(1.0, 2.0, 8)).tolist():
            upper = 1.5 * lower
            exact = (1 / Fraction(lower) ** 2 - 1 / Fraction(upper) ** 2) / 2
            found = objective_gap(problem, lower, upper)
            assert found == np.inf or exact <= Fraction(found)
            assert found == np.inf or Fraction(found) <= exact * (1 + Fraction(1, 10**14)) + Fraction(1e-322)


def test_a_report_on_a_margin_below_the_root_of_the_smallest_number_is_written():
    X, y = np.array([[1.0, 0.0], [1.0, 1e-200]]), np.array([0, 1])
    model = MaxMarginClassifier(np.inf, random_state=0).fit(X, y)
    assert 0.0 < model.certificate_.lower < 1e-162
    assert support_report(model, X, y).parts[0].optimum is None
