"""What support reports call certain holds at the optimum, and for classifiers that are trained without a row."""

import numpy as np
import pytest
import scipy.sparse as sp
from clouds import altered, clouds, feasible, proved
from effort import examples, thorough
from problems import shifted_classes

from maxmargin import MaxMarginClassifier, Problem, support_report


def fitted(problem, X, y, weights, **options):
    """A fit to rounding."""
    options = {"fit_intercept": problem.intercept != "none", "max_iter": 10000, "tol": 1e-9, **options}
    model = MaxMarginClassifier(problem.C, loss=problem.loss, p=problem.p, random_state=0, **options)
    return model.fit(X, y, weights)


def optimum(problem, X, y, weights):
    model = fitted(problem, X, y, weights)
    return model, model.coef_[0], float(model.intercept_[0]), model.certificate_.alpha


def near(rng, size, problem, X, y, weights, model, w, b, alpha):
    """The model with a point at a relative distance of about `size` from the optimum, and the certificate of it."""
    v = w + size * rng.normal(size=w.size) * np.abs(w).max()
    c = b + size * rng.normal() if problem.intercept != "none" else b
    a = np.maximum(alpha * (1.0 + size * rng.normal(size=alpha.size)), 0.0)
    if (problem.loss, problem.p) == ("squared_hinge", 2):  # those of this point, with the least gap
        a = 2.0 * problem.C * weights * np.maximum(1.0 - y * (X @ v + c), 0.0)
    if np.inf == problem.C:  # keep a separator
        least = (y * (X @ v + c)).min()
        v, c = (v / least, c / least) if least > 0 else (w, b)
    a = feasible(problem, y, weights, a)
    claim = proved(model, X, y, v, c, a, weights)
    return altered(model, coef_=v[None], intercept_=np.array([c]), certificate_=claim)


@pytest.mark.parametrize(
    "problem",
    [
        Problem("hinge", 1.0, intercept="free"),
        Problem("squared_hinge", 0.3, p=3.0, intercept="free"),
        Problem("hinge", 1.0, p=10.0, intercept="none"),
        Problem("hinge", np.inf, intercept="free"),
    ],
    ids=lambda p: f"{p.loss}-{p.C:g}-{p.p:g}-{p.intercept}",
)
def test_margin_intervals_hold_the_optimum_and_narrow_with_the_gap(problem):
    decided = 0
    for seed in range(2):
        rng, X, y = shifted_classes(seed, shift=5.0 if np.inf == problem.C else 1.0)
        weights = np.ones(y.size) if np.inf == problem.C else rng.integers(1, 4, y.size).astype(float)
        best, widths = optimum(problem, X, y, weights), []
        _, w, b, alpha = best
        margins = y * (X @ w + b)
        margins = margins / margins.min() if np.inf == problem.C else margins
        for size in (0.3, 0.03, 1e-3, 1e-5):
            model = near(rng, size, problem, X, y, weights, *best)
            found = support_report(model, X, y, weights).table()
            # the optimum is known to a gap of 1e-9: margins to its root, products of dual weights and slacks to itself
            assert (found["margin_least"] <= margins + 1e-4).all()
            assert (found["margin_most"] >= margins - 1e-4).all()
            assert not (alpha[found["role"] == "weightless"] > 1e-6).any()
            if problem.loss == "hinge" and np.inf > problem.C:
                full = found["role"] == "full"
                np.testing.assert_allclose(alpha[full], found["cap"][full], rtol=1e-6)
            widths.append(float((found["margin_most"] - found["margin_least"]).max()))
        # at least like the square root of the gap, which falls at least linearly in the distance
        assert widths[-1] < 0.3 * widths[-2]
        decided += int((found["role"] != "open").sum())
        sparse = support_report(model, sp.csr_matrix(X), y, weights).table()
        np.testing.assert_allclose(sparse["margin_least"], found["margin_least"], rtol=1e-8, atol=1e-8)
    assert decided > 70


@pytest.mark.parametrize(
    ("loss", "C", "intercept"),
    [("hinge", 0.02, "free"), ("hinge", 1.0, "none"),
     ("squared_hinge", 1e-3, "free"),  # few rows, so that the squared losses of a pool matter
     ("hinge", np.inf, "free")],
)  # fmt: skip
def test_certain_predictions_equal_those_of_refitted_classifiers(loss, C, intercept):
    """From the optimum, where many are certain, and from points and dual weights further and further from it."""
    problem = Problem(loss, C, intercept=intercept)
    rng, X, y = shifted_classes(0, n=12 if C == 1e-3 else 36, d=3, shift=4.0 if np.inf == C else 1.0)
    X[:3, 0] *= -1.0 if np.inf > C else 1.0  # a few outliers
    weights = np.ones(y.size) if np.inf == C else rng.integers(1, 3, y.size).astype(float)
    best = optimum(problem, X, y, weights)
    truth = np.zeros(y.size)
    for i in range(y.size):
        rest = np.arange(y.size) != i
        truth[i] = y[i] * fitted(problem, X[rest], y[rest], weights[rest]).decision_function(X[[i]])[0]
    for size in (0.3, 0.1, 0.03, 0.01, 1e-3, 0.0):
        found = support_report(near(rng, size, problem, X, y, weights, *best), X, y, weights)
        assert (truth[found.right] > 0.0).all()
        assert (truth[found.wrong] < 0.0).all()
    assert (found.right | found.wrong).sum() > 0.4 * y.size


@thorough
@pytest.mark.parametrize(
    ("loss", "intercept"), [("hinge", "free"), ("hinge", "none"), ("squared_hinge", "free")]
)
def test_rounding_errors_give_no_certain_predictions(loss, intercept):
    """Rows far from zero: cancelling terms of v exceed v."""
    for seed in range(examples(15, 200)):
        rng = np.random.default_rng(seed)
        n, offset = int(rng.integers(4, 10)), 10.0 ** rng.uniform(3, 7)
        X = offset + rng.normal(size=(n, int(rng.integers(1, 3))))
        y = np.where(np.arange(n) < 2, [1.0, -1.0][seed % 2], np.where(rng.random(n) < 0.5, 1.0, -1.0))
        y[0] = -y[1]
        clf = MaxMarginClassifier(
            10.0 ** rng.uniform(-3, 8), loss=loss, random_state=0, fit_intercept=intercept != "none"
        )
        report = support_report(clf.fit(X, y), X, y)
        if report.right is None:
            continue
        assert not (report.right & report.wrong).any()
        for i in np.flatnonzero(report.right | report.wrong):
            rest = np.arange(n) != i
            if np.unique(y[rest]).size < 2:
                continue
            if clf.set_params(tol=1e-9).fit(X[rest], y[rest]).certificate_.gap <= 1e-6:
                f = y[i] * clf.decision_function(X[i : i + 1])[0]
                assert f > -1e-3 if report.right[i] else f < 1e-3  # the root of the refitted gap


def test_intervals_reach_the_optimum_on_the_boundary_of_their_ball():
    """Where no row leaves the margin the objective is quadratic, and the optimum lies on the boundary of the ball."""
    X, y = clouds(20, 3)
    C, sign = 1e-3, 2.0 * y - 1.0
    model = MaxMarginClassifier(C, loss="hinge", fit_intercept=False, tol=1e-9).fit(X, y)
    best = C * sign @ X
    for seed in range(5):
        step = np.random.default_rng(seed).normal(size=3)
        w = best + 0.5 * np.linalg.norm(best) * step / np.linalg.norm(step)
        claim = proved(model, X, y, w, 0.0, np.full(20, C))
        table = support_report(altered(model, coef_=w[None], certificate_=claim), X, y).table()
        margins = sign * (X @ best)
        assert (table["margin_least"] <= margins + 1e-9).all()
        assert (table["margin_most"] >= margins - 1e-9).all()
