"""`shuffle=False` presents rows in the order of the data, merged copies at their first position."""

from __future__ import annotations

import naive
import numpy as np
import pytest
import scipy.sparse as sp
from effort import interpreted

from maxmargin import KernelMaxMarginClassifier, MaxMarginClassifier
from maxmargin.algorithms import LocalPerceptron, Perceptron

# Entries are small integers, so that all sums are exact and no decision depends on rounding. C = 1/2 gives
# pattern i of total weight s_i the own coordinate sqrt(1 / (2 C s_i)) = 1 / sqrt(s_i): a power of two for s_i = 1, 4
PROBLEMS = {"hard": {"C": np.inf}, "soft": {"C": 0.5, "loss": "squared_hinge"}}


def patterns(seed):
    """Return distinct rows of integers, separable through the origin; with seed -1 two differ in the label only."""
    if seed < 0:
        return np.array([[2.0, 1.0], [-1.0, 3.0], [2.0, 1.0], [1.0, 2.0]]), np.array([1.0, -1.0, -1.0, 1.0])
    rng = np.random.default_rng(seed)
    X = np.unique(rng.integers(-20, 21, size=(60, 3)), axis=0).astype(float)
    scores = X @ [3.0, -2.0, 1.0]
    order = rng.permutation(np.flatnonzero(np.abs(scores) > 4.0))
    return X[order], np.sign(scores[order])


def naive_fit(rule, problem, X, y, weights):
    """Full passes in the order of the rows until one makes no update."""
    own = np.diag(weights**-0.5) if problem == "soft" else np.zeros((len(y), 0))
    Y = np.hstack([X * y[:, None], own])
    limit = 1.0 if rule is LocalPerceptron else (Y * Y).sum(axis=1).max()  # b = 1 times R^2 or |y_k|^2
    updates, passes = -1, 1
    while True:  # doubles the number of passes until the updates no longer increase
        run = naive.NAIVE[rule.name](Y, np.tile(np.arange(len(y)), passes), None, limit)
        if len(run.moved) == updates:
            return run
        updates, passes = len(run.moved), 2 * passes


@interpreted
@pytest.mark.parametrize(
    ("kernel", "rule", "problem", "store"),
    [
        ("linear", Perceptron, "hard", np.asarray),
        ("linear", Perceptron, "soft", sp.csr_matrix),
        ("precomputed", LocalPerceptron, "hard", np.asarray),
        ("precomputed", Perceptron, "soft", np.asarray),
        (None, LocalPerceptron, "soft", np.asarray),
        (None, Perceptron, "hard", np.asarray),
    ],
)
def test_updates_equal_those_of_a_naive_loop_in_data_order(kernel, rule, problem, store):
    """Copies stand before, between and after other rows, and kernels of rows merge them; weight 0 is as if absent."""
    for seed in range(-1 if problem == "soft" and kernel == "linear" else 0, 4):
        X, y = patterns(seed)
        n, rng = len(y), np.random.default_rng(seed + 1)
        copied = rng.permutation(n)[: (n + 2) // 3] if kernel == "linear" else np.zeros(0, int)
        rows = rng.permutation(np.concatenate([np.arange(n), np.repeat(copied, 3)]))
        ignored = np.isin(rows, copied[:3] if seed >= 0 else [])
        presented = rows[~ignored]
        distinct = presented[np.sort(np.unique(presented, return_index=True)[1])]
        counts = np.bincount(presented, minlength=n)[distinct].astype(float)
        expected = naive_fit(rule, problem, X[distinct], y[distinct], counts)
        options = {**PROBLEMS[problem], "fit_intercept": False}
        options["algorithm"] = rule(b=1.0, schedule="plain", shuffle=False)
        kernels = KernelMaxMarginClassifier(kernel=kernel, **options)
        model = MaxMarginClassifier(**options) if kernel is None else kernels
        data = X[rows] @ X[rows].T if kernel == "precomputed" else store(X[rows])
        model.fit(data, y[rows], np.where(ignored, 0.0, 1.0))
        assert model.history_[-1].steps == len(expected.moved)
        dual = np.bincount(rows, weights=model.certificate_.alpha, minlength=n)[distinct]
        # certificates choose the scale of the dual weights; n eps for sums of shares
        np.testing.assert_allclose(dual / dual.sum(), expected.dual / expected.dual.sum(), rtol=1e-12)
