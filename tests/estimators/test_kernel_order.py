"""`shuffle=False` presents rows in the order of the data, merged copies at their first position."""

from __future__ import annotations

import naive
import numpy as np
import pytest
import scipy.sparse as sp

from maxmargin import KernelMaxMarginClassifier, MaxMarginClassifier
from maxmargin.algorithms import LocalPerceptron, Perceptron

ALGORITHMS = {"perceptron": Perceptron, "local-perceptron": LocalPerceptron}
# Entries are small integers, so that all sums are exact and no decision depends on rounding. C = 1/2 gives
# pattern i of total weight s_i the own coordinate sqrt(1 / (2 C s_i)) = 1 / sqrt(s_i): a power of two for s_i = 1, 4
PROBLEMS = {"hard": {"C": np.inf}, "soft": {"C": 0.5, "loss": "squared_hinge"}}


def separable(seed, n=60):
    """Distinct rows of integers, separable through the origin, in random order."""
    rng = np.random.default_rng(seed)
    X = np.unique(rng.integers(-20, 21, size=(n, 3)), axis=0).astype(float)
    scores = X @ [3.0, -2.0, 1.0]
    order = rng.permutation(np.flatnonzero(np.abs(scores) > 4.0))
    return X[order], np.sign(scores[order])


def naive_fit(rule, problem, X, y, weights):
    """Full passes in the order of the rows until one makes no update."""
    own = np.diag(weights**-0.5) if problem == "soft" else np.zeros((len(y), 0))
    Y = np.hstack([X * y[:, None], own])
    limit = 1.0 if rule == "local-perceptron" else (Y * Y).sum(axis=1).max()  # b = 1 times R^2 or |y_k|^2
    line = np.arange(len(y))
    updates, passes = -1, 1
    while True:  # doubles the number of passes until the updates no longer increase
        run = naive.NAIVE[rule](Y, np.tile(line, passes), None, limit)
        if len(run.moved) == updates:
            return run
        updates, passes = len(run.moved), 2 * passes


def fitted(kernel, rule, problem, X, y, weights=None):
    """The fitted estimator without intercept, rows in the order of the data."""
    algorithm = ALGORITHMS[rule](b=1.0, schedule="plain", shuffle=False)
    options = {**PROBLEMS[problem], "fit_intercept": False, "algorithm": algorithm}
    if kernel is None:
        return MaxMarginClassifier(**options).fit(X, y, weights)
    rows = X @ X.T if kernel == "precomputed" else X
    return KernelMaxMarginClassifier(kernel=kernel, **options).fit(rows, y, weights)


def normalised(values):
    """Dual variables divided by their sum, since certificates choose their scale."""
    return values / values.sum()


@pytest.mark.parametrize("problem", PROBLEMS)
@pytest.mark.parametrize("rule", ALGORITHMS)
@pytest.mark.parametrize("kernel", ["linear", "precomputed", None])
def test_updates_equal_those_of_a_naive_loop_in_data_order(kernel, rule, problem):
    for seed in range(5):
        X, y = separable(seed)
        expected = naive_fit(rule, problem, X, y, np.ones(len(y)))
        model = fitted(kernel, rule, problem, X, y)
        assert model.history_[-1].steps == len(expected.moved)
        np.testing.assert_allclose(
            normalised(model.certificate_.alpha), normalised(expected.dual), rtol=1e-12
        )


@pytest.mark.parametrize("store", [np.asarray, sp.csr_matrix])
@pytest.mark.parametrize("problem", PROBLEMS)
def test_merged_copies_are_presented_at_their_first_position(problem, store):
    """Copies come before, between and after other rows; rows of weight 0 are ignored."""
    for seed in range(5):
        X, y = separable(seed)
        n, rng = len(y), np.random.default_rng(seed)
        copied = rng.permutation(n)[: n // 3]
        rows = rng.permutation(np.concatenate([np.arange(n), np.repeat(copied, 3)]))
        ignored = np.isin(rows, copied[:3])
        weights = np.where(ignored, 0.0, 1.0)
        presented = rows[~ignored]
        distinct = presented[np.sort(np.unique(presented, return_index=True)[1])]
        counts = np.bincount(presented, minlength=n)[distinct]
        expected = naive_fit("perceptron", problem, X[distinct], y[distinct], counts.astype(float))
        model = fitted("linear", "perceptron", problem, store(X[rows]), y[rows], weights)
        assert model.history_[-1].steps == len(expected.moved)
        summed = np.bincount(rows, weights=model.certificate_.alpha, minlength=n)
        np.testing.assert_allclose(normalised(summed[distinct]), normalised(expected.dual), rtol=1e-12)


def test_equal_rows_of_both_classes_are_two_patterns():
    """Only rows of one class are merged, and patterns keep their order."""
    X = np.array([[2.0, 1.0], [-1.0, 3.0], [2.0, 1.0], [1.0, 2.0], [-1.0, 3.0], [2.0, 1.0]])
    y = np.array([1.0, -1.0, -1.0, 1.0, -1.0, -1.0])
    distinct, counts = [0, 1, 2, 3], np.array([1.0, 4.0, 4.0, 1.0])
    expected = naive_fit("perceptron", "soft", X[distinct], y[distinct], counts)
    model = fitted("linear", "perceptron", "soft", X, y, np.array([1.0, 2.0, 2.0, 1.0, 2.0, 2.0]))
    assert model.history_[-1].steps == len(expected.moved)
    groups = np.array([0, 1, 2, 3, 1, 2])
    summed = np.bincount(groups, weights=model.certificate_.alpha)
    np.testing.assert_allclose(normalised(summed), normalised(expected.dual), rtol=1e-12)
