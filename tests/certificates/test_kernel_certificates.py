"""Bounds of kernel machines hold for arbitrary points and meet at the optimum."""

from __future__ import annotations

from copy import copy
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
import scipy.sparse as sp
from oracle import optimum
from problems import rings

from maxmargin import KernelMaxMarginClassifier, Problem, verify

PROBLEMS = [
    Problem("hinge", 1.0, intercept="free"),
    Problem("squared_hinge", 1.0, intercept="none"),
    Problem("squared_hinge", 1.0, intercept="free"),
    Problem("hinge", np.inf, intercept="free"),
]


def fitted(problem, X, y, weights=None, **options):
    free = problem.intercept == "free"
    model = KernelMaxMarginClassifier(
        problem.C, loss=problem.loss, fit_intercept=free, random_state=0, **options
    )
    return model.fit(X, y, weights)


def proved(model, X, y, alpha, c, b, weights=None):
    """The bounds of sum c_i k(x_i, .) + b and of dual variables, set into a model that claims nothing."""
    changed, used = copy(model), np.flatnonzero(c)
    changed.support_ = used[np.argsort(y[used] > 0, kind="stable")]
    changed.n_support_ = np.array([(y[used] < 0).sum(), (y[used] > 0).sum()])
    changed.dual_coef_, changed.intercept_ = c[changed.support_][None], np.array([b])
    changed.support_vectors_ = X[changed.support_]
    support = np.flatnonzero(alpha)
    bounds = {"lower": -np.inf, "upper": np.inf, "support": support, "dual": alpha[support]}
    changed.certificate_ = replace(model.certificate_, **bounds)
    return verify(changed, X, y, weights)


def some_dual(rng, problem, y, weights):
    alpha = rng.exponential(size=y.size) * (rng.random(y.size) < 0.5)
    alpha = np.minimum(alpha, problem.C * weights) if problem.loss == "hinge" else alpha
    if problem.intercept == "free":
        sums = np.array([alpha[y < 0].sum(), alpha[y > 0].sum()])
        alpha = alpha * (sums.min() / sums)[(y > 0).astype(int)]
    return alpha


def test_uneven_dual_variables_prove_no_more_than_even_ones():
    """The dual objective rises by 60 times what one class has too much; the optimum is 1 / 2, at w = 1, b = -60."""
    X, y, even = np.array([[59.0], [61.0]]), np.array([-1.0, 1.0]), np.array([0.5, 0.5])
    model = fitted(PROBLEMS[0], X, y, kernel="linear")
    for excess in ((0.0, 0.0), (7e-13, 0.0), (0.0, 7e-13)):
        assert 0.5 - 1e-9 <= proved(model, X, y, even + excess, even * y, -60.0).lower <= 0.5


@pytest.mark.parametrize("problem", PROBLEMS, ids=lambda p: f"{p.loss}-{p.C:g}-{p.intercept}")
def test_arbitrary_points_prove_valid_bounds(problem):
    X, y, weights = rings(30, 0, noise=0.0)
    values, vectors = np.linalg.eigh((0.5 * X @ X.T + 1.0) ** 2)
    exact = optimum(problem, vectors * np.sqrt(np.maximum(values, 0.0)), y, weights)
    slack = 1e-9 * float(exact.upper)  # of the eigenvectors: n eps |K|, divided by the square of the margin
    model = fitted(problem, X, y, weights, kernel="poly", gamma=0.5, degree=2, coef0=1.0, tol=1e-6)
    rng, found = np.random.default_rng(1), [model.certificate_, verify(model, X, y, weights)]
    assert found[1].gap <= 1e-6
    for _ in range(20):
        alpha = some_dual(rng, problem, y, weights)
        b = rng.normal() if problem.intercept == "free" else 0.0
        found.append(proved(model, X, y, alpha, alpha * y, b, weights))
    for bounds in found:
        assert bounds.lower <= exact.upper + slack
        assert exact.lower <= bounds.upper + slack


def exact_sums(X, y, alpha, c, b):
    """The bounds of the hinge with C = 1 and no intercept's weight, in rational numbers."""
    rows = [[Fraction(value) for value in row] for row in X.tolist()]

    def combined(factors):
        factors = [Fraction(v) for v in factors.tolist()]
        return [
            sum(a * v for a, v in zip(factors, column, strict=True)) for column in zip(*rows, strict=True)
        ]

    w, v = combined(c), combined(alpha * y)
    scores = [sum(a * x for a, x in zip(w, row, strict=True)) + Fraction(b) for row in rows]
    losses = sum(max(1 - int(label) * score, 0) for label, score in zip(y, scores, strict=True))
    gains = sum((Fraction(a) for a in alpha.tolist()), Fraction())
    return gains - sum(x * x for x in v) / 2, sum(x * x for x in w) / 2 + losses


@pytest.mark.parametrize("store", [np.asarray, sp.csr_matrix], ids=["dense", "sparse"])
@pytest.mark.parametrize(
    "kernel", [{"kernel": "linear"}, {"kernel": "poly", "degree": 1, "gamma": 1.0, "coef0": 0.0}]
)
@pytest.mark.parametrize("cancel", [False, True])
def test_sums_of_rows_are_within_their_error(store, kernel, cancel):
    """Including large coefficients that nearly cancel; both kernels are the inner product."""
    problem = Problem("hinge", 1.0, intercept="none")
    for seed in range(8):
        rng = np.random.default_rng(seed)
        X = 1e3 * rng.normal(size=(20, 4)) * (rng.random((20, 4)) < 0.8)
        y, c = np.where(np.arange(20) % 2, 1.0, -1.0), 1e4 * rng.normal(size=20)
        if cancel:
            c[:10] = -np.linalg.lstsq(X[:10].T, X[10:].T @ c[10:])[0]
        c *= 10.0 ** rng.integers(-12, 1)
        alpha = some_dual(rng, problem, y, np.ones(20)) * 1e-6
        found = proved(fitted(problem, store(X), y, max_time=1e-9, **kernel), store(X), y, alpha, c, 0.0)
        lower, upper = exact_sums(X, y, alpha, c, 0.0)
        assert Fraction(found.lower) <= lower
        assert Fraction(found.upper) >= upper
