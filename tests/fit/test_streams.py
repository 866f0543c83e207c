"""Streams equal naive streams row by row."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
import scipy.sparse as sp
from effort import interpreted
from naive import once

import maxmargin as mm
from maxmargin import OnlineMarginClassifier, Problem
from maxmargin.algorithms import ALGORITHMS, Facts

RUNS = [
    mm.algorithms.Perceptron(b=0.37),
    mm.algorithms.LocalPerceptron(b=0.37),
    mm.algorithms.ALMA(alpha=0.37),
    mm.algorithms.ALMA(alpha=0.37, normalise=True),
    mm.algorithms.CRAMMA(beta=1.3, eta=0.211),
    mm.algorithms.MICRA(beta=1.3, eta=0.87, epsilon=0.4, zeta=0.3),
    mm.algorithms.FixedDirectionalMargin(beta=0.123, eta=0.211),
    mm.algorithms.ROMMA(),
    mm.algorithms.AggressiveROMMA(delta=0.17, halving=False),
    mm.algorithms.PUMMA(delta=0.17, halving=False),
]
RHO = 0.5


def rows(seed, n=60):
    """Integer rows: some are zero, and the longest are last."""
    rng = np.random.default_rng(seed)
    y = np.where(rng.random(n) < 0.5, 1.0, -1.0)
    y[:4] = y[0]
    y[4] = -y[0]
    X = np.rint(2.0 * (rng.normal(size=(n, 4)) + 0.7 * y[:, None])) * (rng.random((n, 4)) < 0.8)
    X[[0, 1, 17]] = 0.0
    X[30:] *= 2.0
    return X, y


def test_other_algorithms_are_refused():
    names = {rule.name for rule in RUNS}
    assert names <= set(ALGORITHMS)
    for name in set(ALGORITHMS) - names:
        with pytest.raises(ValueError, match=f"'{name}' cannot learn from a stream"):
            OnlineMarginClassifier(name).partial_fit([[1.0], [2.0]], [0, 1], classes=[0, 1])


@interpreted
@pytest.mark.parametrize("sparse", [False, True], ids=["dense", "sparse"])
@pytest.mark.parametrize("rule", RUNS, ids=repr)
def test_steps_and_means_equal_those_of_the_naive_stream(rule, sparse):
    """Indices of updates, mistakes, and the mean weight (60 n eps = 1e-13); batches of one and of 11 rows; R grows."""
    k = RUNS.index(rule)
    intercept = rule.name == "pumma" or sparse == (k % 2 == 0)
    C = np.inf if sparse == (k % 4 < 2) else 2.0
    store = sp.csr_matrix if sparse else np.asarray
    kind = Problem("squared_hinge", C, intercept="free" if intercept else "none")
    rho = RHO if intercept and rule.name != "pumma" else 0.0
    delta2 = 0.0 if kind.hard else 1.0 / (2.0 * C)

    def numbers(radius2):
        plan = rule.plan(Facts(kind, radius2, 0.1))
        return (plan.rule, *plan.then)[-1]

    n_updates = 0
    for seed in range(3):
        X, y = rows(seed)
        n, d = X.shape
        Y = y[:, None] * np.column_stack([X, np.full(n, rho)])
        Y = np.column_stack([Y, np.sqrt(delta2) * np.eye(n)]) if delta2 else Y
        naive = once(rule.name, Y, y, numbers)
        if naive.nearest < 1e-9:
            continue
        options = {"C": C, "fit_intercept": intercept, "intercept_scaling": RHO}
        model, whole = (OnlineMarginClassifier(rule, **options) for _ in range(2))
        moved = []
        for k in range(n):  # batches of one row show which row made an update
            before = model.updates_[0] if k else 0
            model.partial_fit(store(X[k : k + 1]), y[k : k + 1], classes=[-1.0, 1.0])
            moved += [k] * int(model.updates_[0] - before)
        assert moved == naive.moved
        assert model.mistakes_[0] == naive.mistakes
        mean = np.zeros(d + 1)  # weights are 0 before the first step
        for first, last in pairwise([*moved, n]):
            then = once(rule.name, Y[: first + 1], y[: first + 1], numbers)
            bias = then.bias if rule.name == "pumma" else rho * then.weights[d]
            mean += (last - first) / n * np.append(then.weights[:d], bias)
        np.testing.assert_allclose([*model.coef_[0], *model.intercept_], mean, rtol=1e-11, atol=1e-11)
        n_updates += len(moved)
        for k in range(0, n, 11):
            whole.partial_fit(store(X[k : k + 11]), y[k : k + 11], classes=[-1.0, 1.0])
        assert np.array_equal(whole.coef_, model.coef_)
        assert whole.mistakes_[0] == naive.mistakes
    assert n_updates >= 10
