"""Streams are the naive ones, row by row; and the command that reads one keeps what it has learnt."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from naive import once

from maxmargin import (
    ALMA,
    CRAMMA,
    MICRA,
    PUMMA,
    ROMMA,
    AggressiveROMMA,
    FixedDirectionalMargin,
    OnlineMarginClassifier,
    Perceptron,
    Problem,
)
from maxmargin.rules import RULES, Facts
from maxmargin.rules.algorithm import PerceptronLike
from maxmargin.rules.local import LocalPerceptron

RUNS = [
    Perceptron(b=0.37),
    LocalPerceptron(b=0.37),
    ALMA(alpha=0.37),
    ALMA(alpha=0.37, normalise=True),
    CRAMMA(beta=1.3, eta=0.211),
    MICRA(beta=1.3, eta=0.87, epsilon=0.4, zeta=0.3),
    FixedDirectionalMargin(beta=0.123, eta=0.211),
    ROMMA(),
    AggressiveROMMA(delta=0.17, halving=False),
    PUMMA(delta=0.17, halving=False),
]
RHO = 0.5


def rows(seed, n=60):
    """Whole numbers, some rows zero, long ones late."""
    rng = np.random.default_rng(seed)
    y = np.where(rng.random(n) < 0.5, 1.0, -1.0)
    y[:4] = y[0]
    y[4] = -y[0]
    X = np.rint(2.0 * (rng.normal(size=(n, 4)) + 0.7 * y[:, None])) * (rng.random((n, 4)) < 0.8)
    X[[0, 1, 17]] = 0.0
    X[30:] *= 2.0
    return X, y


def test_every_rule_that_runs_as_a_stream_is_here():
    streams = {
        name
        for name, cls in RULES.items()
        if issubclass(cls, PerceptronLike) and not cls().refuses(problem())
    }
    assert {rule.name for rule in RUNS} == streams


def problem(C=np.inf):
    return Problem("squared_hinge", C, intercept="free")


@pytest.mark.parametrize("store", [np.asarray, sp.csr_matrix])
@pytest.mark.parametrize("C", [np.inf, 2.0])
@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("rule", RUNS, ids=repr)
def test_updates_are_those_of_the_naive_stream(rule, intercept, C, store):
    """Index for index, in batches of uneven size, mistakes and the last weight as well; R grows on the way."""
    if rule.name == "pumma" and not intercept:
        pytest.skip("PUMMA learns an intercept")
    kind = Problem("squared_hinge", C, intercept="free" if intercept else "none")
    rho = RHO if intercept and rule.name != "pumma" else 0.0
    delta2 = 0.0 if kind.hard else 1.0 / (2.0 * C)

    def numbers(radius2):
        plan = rule.plan(Facts(kind, radius2, 0.1))
        return (plan.rule, *plan.then)[-1]

    busy = 0
    for seed in range(8):
        X, y = rows(seed)
        n, d = X.shape
        Y = y[:, None] * np.column_stack([X, np.full(n, rho)])
        naive = once(
            rule.name, np.column_stack([Y, np.sqrt(delta2) * np.eye(n)]) if delta2 else Y, y, numbers
        )
        if naive.nearest < 1e-9:
            continue
        model = OnlineMarginClassifier(
            rule, C=C, trail="last", fit_intercept=intercept, intercept_scaling=RHO
        )
        moved = []
        for k in range(n):  # one row a batch shows which of them made an update
            before = model.updates_[0] if k else 0
            model.partial_fit(store(X[k : k + 1]), y[k : k + 1], classes=[-1.0, 1.0])
            moved += [k] * int(model.updates_[0] - before)
        assert moved == naive.moved
        assert model.mistakes_[0] == naive.mistakes
        np.testing.assert_allclose(model.coef_[0], naive.weights[:d], rtol=1e-9, atol=1e-12)
        bias = naive.bias if rule.name == "pumma" else rho * naive.weights[d]
        np.testing.assert_allclose(model.intercept_[0], bias, rtol=1e-9, atol=1e-12)
        busy += len(moved)
        whole = OnlineMarginClassifier(
            rule, C=C, trail="last", fit_intercept=intercept, intercept_scaling=RHO
        )
        for k in range(0, n, 11):
            whole.partial_fit(store(X[k : k + 11]), y[k : k + 11], classes=[-1.0, 1.0])
        assert np.array_equal(whole.coef_, model.coef_)
        assert whole.mistakes_[0] == naive.mistakes
    assert busy >= 30
