"""Leave-one-out predictions of the analysis equal those of refitted classifiers."""

import numpy as np
import pytest
from problems import shifted_classes
from test_screening import exact, near

from maxmargin import KernelMaxMarginClassifier, MaxMarginClassifier, support_report
from maxmargin.certificates.leave_one_out import InnerProducts, left_out
from maxmargin.certificates.rows import certify
from maxmargin.certificates.sample import Sample
from maxmargin.problem.problem import Problem


def products(X, rho=0.0):
    """Inner products of rows, by their full matrix."""
    K = X @ X.T + rho * rho
    return InnerProducts(lambda c: c @ K, np.diag(K).copy(), 0.0, X.shape[0] + X.shape[1])


def refitted_scores(problem, X, y, weights):
    """y_i f(x_i) of the classifiers fitted without row i."""
    out = []
    for i in range(y.size):
        rest = np.arange(y.size) != i
        w, b, _ = exact(problem, X[rest], y[rest], weights[rest])
        out.append(y[i] * (X[i] @ w + b))
    return np.array(out)


def left_out_of_point(problem, X, y, weights, w, b, certificate):
    """The leave-one-out analysis from a point and its certificate."""
    alpha = np.zeros(y.size)
    alpha[certificate.support] = certificate.dual
    margins = y * (X @ w + b)
    if problem.hard:
        v = X.T @ (alpha * y)
        alpha, margins = alpha / (v @ v + (problem.rho * (alpha @ y)) ** 2), margins / margins.min()
    upper = 0.5 / certificate.lower**2 if problem.hard else certificate.upper
    return left_out(problem, y, weights, alpha, margins, upper, products(X, problem.rho))


@pytest.mark.parametrize("intercept", ["none", "free", "augmented"])
@pytest.mark.parametrize(
    ("loss", "C"), [("hinge", 0.02), ("hinge", 1.0), ("squared_hinge", 0.01), ("hinge", np.inf)]
)
def test_certain_predictions_equal_those_of_refitted_classifiers(loss, C, intercept):
    problem = Problem(loss, C, intercept=intercept)
    certain = correct_count = 0
    for seed in range(2):
        rng, X, y = shifted_classes(seed, n=36, d=3, shift=4.0 if problem.hard else 1.0)
        X[:3, 0] *= -1.0 if not problem.hard else 1.0  # a few outliers
        weights = np.ones(y.size) if problem.hard else rng.integers(1, 3, y.size).astype(float)
        w, b, alpha = exact(problem, X, y, weights)
        truth = refitted_scores(problem, X, y, weights)
        sample = Sample(X, y, weights)
        for size in (0.0, 1e-3, 0.03, 0.3):
            v, c, certificate = near(rng, size, problem, sample, w, b, alpha)
            found = left_out_of_point(problem, X, y, weights, v, c, certificate)
            assert (truth[found.right] > 0.0).all()
            assert (truth[found.wrong] < 0.0).all()
            assert not (found.right & found.wrong).any()
            if size == 0.0:
                certain += int((found.right | found.wrong).sum())
                correct_count += int((truth > 0.0).sum())
                # rows without a dual weight are certain by their own margin
                inactive = (alpha < 1e-12) & (y * (X @ w + b) > 1.0 + 1e-3)
                assert found.right[inactive].all()
                if not problem.hard:  # as are rows that the fit itself misclassifies
                    assert found.wrong[y * (X @ w + b) < -1e-2].all()
    assert certain > 0.4 * 72


def test_infeasible_or_poor_dual_weights_give_no_false_predictions():
    """For random feasible dual weights every certain prediction is correct."""
    rng, X, y = shifted_classes(3, n=30, d=3)
    weights = np.ones(y.size)
    problem = Problem("hinge", 0.1)
    truth = refitted_scores(problem, X, y, weights)
    sample = Sample(X, y, weights)
    best, c, dual = exact(problem, X, y, weights)
    certain_count = 0
    for k in range(60):
        noise = 0.5 * rng.random() if k % 2 else 2.0
        alpha = np.clip(dual + noise * 0.1 * rng.normal(size=y.size), 0.0, 0.1)
        w, b = best + 0.3 * noise * rng.normal(size=3), c + 0.1 * noise * rng.normal()
        found = left_out_of_point(problem, X, y, weights, w, b, certify(problem, sample, w, b, alpha))
        assert (truth[found.right] > 0.0).all()
        assert (truth[found.wrong] < 0.0).all()
        certain_count += int((found.right | found.wrong).sum())
    assert certain_count > 0


def test_kernel_predictions_equal_those_of_refitted_classifiers():
    _, X, y = shifted_classes(4, n=40, d=2)
    K = np.exp(-0.5 * ((X[:, None] - X[None]) ** 2).sum(axis=2))
    settings = {"C": 0.5, "kernel": "rbf", "gamma": 0.5, "tol": 1e-9}
    clf = KernelMaxMarginClassifier(**settings).fit(X, y)
    alpha = np.zeros(y.size)
    alpha[clf.certificate_.support] = clf.certificate_.dual
    problem, upper = clf.certificate_.problem, clf.certificate_.upper
    margins = y * clf.decision_function(X)
    rows = InnerProducts(lambda c: c @ K, np.ones(y.size), 1e-14, y.size)
    found = left_out(problem, y, np.ones(y.size), alpha, margins, upper, rows)
    truth = np.array(
        [
            y[i] * KernelMaxMarginClassifier(**settings).fit(np.delete(X, i, 0), np.delete(y, i))
            .decision_function(X[i : i + 1])[0]
            for i in range(y.size)
        ]
    )  # fmt: skip
    assert (truth[found.right] > 0.0).all()
    assert (truth[found.wrong] < 0.0).all()
    assert (found.right | found.wrong).sum() > 10


def test_most_duplicated_rows_are_certain():
    """Leaving out one of two copies changes little."""
    _, X, y = shifted_classes(6, n=40, d=3)
    X, y = np.vstack([X, X]), np.append(y, y)
    problem, weights = Problem("hinge", 0.02), np.ones(80)
    w, b, alpha = exact(problem, X, y, weights)
    found = left_out_of_point(
        problem, X, y, weights, w, b, certify(problem, Sample(X, y, weights), w, b, alpha)
    )
    assert (found.right | found.wrong).mean() > 0.8


@pytest.mark.parametrize("intercept", ["none", "free", "augmented"])
@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
def test_rounding_errors_give_no_certain_predictions(loss, intercept):
    """Rows far from zero: cancelling terms of v exceed v."""
    for seed in range(60):
        rng = np.random.default_rng(seed)
        n, offset = int(rng.integers(4, 10)), 10.0 ** rng.uniform(3, 7)
        X = offset + rng.normal(size=(n, int(rng.integers(1, 3))))
        y = np.where(np.arange(n) < 2, [1.0, -1.0][seed % 2], np.where(rng.random(n) < 0.5, 1.0, -1.0))
        y[0] = -y[1]
        clf = MaxMarginClassifier(
            10.0 ** rng.uniform(-3, 8), loss=loss, random_state=0, fit_intercept=intercept != "none",
            intercept="augmented" if intercept == "augmented" else "free", intercept_scaling=10.0 ** rng.uniform(-2, 6),
        )  # fmt: skip
        report = support_report(clf.fit(X, y), X, y)
        if report.right is None:
            continue
        assert not (report.right & report.wrong).any()
        for i in np.flatnonzero(report.right | report.wrong):
            rest = np.arange(n) != i
            if np.unique(y[rest]).size < 2:
                continue
            clf.set_params(tol=1e-9).fit(X[rest], y[rest])
            if clf.certificate_.gap > 1e-6:
                continue
            f = y[i] * clf.decision_function(X[i : i + 1])[0]
            assert f > -1e-3 if report.right[i] else f < 1e-3
