"""Leave-one-out predictions of the analysis equal those of refitted classifiers."""

import numpy as np
import pytest
from effort import examples, thorough
from problems import shifted_classes
from test_screening import exact, near

from maxmargin import MaxMarginClassifier, support_report
from maxmargin.certificates.leave_one_out import InnerProducts, left_out
from maxmargin.certificates.sample import Sample
from maxmargin.problem.problem import Problem


def inner_products(X, rho=0.0):
    """The exact inner products of rows, with a constant coordinate rho."""
    K = X @ X.T + rho**2
    return InnerProducts(lambda c: c @ K, np.diag(K).copy(), 0.0, sum(X.shape))


def left_out_of_point(problem, X, y, weights, w, b, certificate):
    """The leave-one-out analysis from a point and its certificate."""
    alpha, margins = certificate.alpha, y * (X @ w + b)
    if problem.hard:
        v = X.T @ (alpha * y)
        alpha, margins = alpha / (v @ v + (problem.rho * (alpha @ y)) ** 2), margins / margins.min()
    upper = 0.5 / certificate.lower**2 if problem.hard else certificate.upper
    return left_out(problem, y, weights, alpha, margins, upper, inner_products(X, problem.rho))


def without_each(y, score):
    """score(rest, i) for every row i and the mask of the other rows."""
    return np.array([score(np.arange(y.size) != i, i) for i in range(y.size)])


@pytest.mark.parametrize(
    ("loss", "C", "intercept"),
    [("hinge", 0.02, "free"), ("hinge", 1.0, "none"), ("squared_hinge", 0.01, "augmented"),
     ("squared_hinge", 1e-3, "free"),  # few rows, so that the squared losses of a pool matter
     ("hinge", np.inf, "free"), ("hinge", np.inf, "augmented")],
)  # fmt: skip
def test_certain_predictions_equal_those_of_refitted_classifiers(loss, C, intercept):
    """From the optimum, where many are certain, and from points and dual weights further and further from it."""
    problem = Problem(loss, C, intercept=intercept)
    rng, X, y = shifted_classes(0, n=12 if C == 1e-3 else 36, d=3, shift=4.0 if problem.hard else 1.0)
    X[:3, 0] *= -1.0 if not problem.hard else 1.0  # a few outliers
    weights = np.ones(y.size) if problem.hard else rng.integers(1, 3, y.size).astype(float)
    w, b, alpha = exact(problem, X, y, weights)

    def refitted(rest, i):
        v, c, _ = exact(problem, X[rest], y[rest], weights[rest])
        return y[i] * (X[i] @ v + c)

    truth, sample, margins = without_each(y, refitted), Sample(X, y, weights), y * (X @ w + b)
    for size in (0.3, 0.1, 0.03, 0.01, 1e-3, 0.0):
        v, c, certificate = near(rng, size, problem, sample, w, b, alpha)
        found = left_out_of_point(problem, X, y, weights, v, c, certificate)
        assert (truth[found.right] > 0.0).all()
        assert (truth[found.wrong] < 0.0).all()
    assert (found.right | found.wrong).sum() > 0.4 * y.size
    # rows without a dual weight are certain by their own margin, and rows that the soft fit itself misclassifies
    assert found.right[(alpha < 1e-12) & (margins > 1.0 + 1e-3)].all()
    assert found.wrong[margins < -1e-2].all()


@pytest.mark.parametrize("seed", range(4))
def test_certain_predictions_do_not_depend_on_the_unit_of_the_data(seed):
    """Rows of length 2^505 at C = 2^-1020, where 1 / (4 C) is near the largest number and alpha^2 underflows."""
    problem, unit = Problem("squared_hinge", 2.0**-10), 2.0**505
    rng, X, y = shifted_classes(seed, n=12, d=3, shift=1.0)
    weights = np.ones(y.size)
    w, b, alpha = exact(problem, X, y, weights)
    for size in (0.3, 0.03, 0.0):
        v, c, certificate = near(rng, size, problem, Sample(X, y, weights), w, b, alpha)
        expected = left_out_of_point(problem, X, y, weights, v, c, certificate)
        found = left_out(
            Problem("squared_hinge", problem.C / unit**2), y, weights, certificate.alpha / unit**2,
            y * (X @ v + c), certificate.upper / unit**2, inner_products(X * unit),
        )  # fmt: skip
        np.testing.assert_array_equal(found.right, expected.right)
        np.testing.assert_array_equal(found.wrong, expected.wrong)
    assert (found.right | found.wrong).any()


@thorough
@pytest.mark.parametrize(
    ("loss", "intercept"), [("hinge", "free"), ("hinge", "none"), ("squared_hinge", "augmented")]
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
            10.0 ** rng.uniform(-3, 8), loss=loss, random_state=0, fit_intercept=intercept != "none",
            intercept="augmented" if intercept == "augmented" else "free", intercept_scaling=10.0 ** rng.uniform(-2, 6),
        )  # fmt: skip
        report = support_report(clf.fit(X, y), X, y)
        if report.right is None:
            continue
        assert not (report.right & report.wrong).any()
        for i in np.flatnonzero(report.right | report.wrong):
            rest = np.arange(n) != i
            if (
                np.unique(y[rest]).size == 2
                and clf.set_params(tol=1e-9).fit(X[rest], y[rest]).certificate_.gap <= 1e-6
            ):
                f = y[i] * clf.decision_function(X[i : i + 1])[0]
                assert f > -1e-3 if report.right[i] else f < 1e-3  # the root of the refitted gap
