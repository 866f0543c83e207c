"""A few rows far longer than all others, as in another unit or with a sentinel: certified, and the optimum is right."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

from maxmargin import MaxMarginClassifier, Status, verify

LOSSES = ("hinge", "squared_hinge")


def noisy(n: int, d: int, offset: float = 0.0) -> tuple[np.ndarray, np.ndarray]:
    """Overlapping classes around a point at this distance from 0, and labels -1.0 and 1.0."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, d))
    y = np.where(X[:, 0] + 0.5 * X[:, 1] + rng.normal(size=n) > 0.0, 1.0, -1.0)
    return X + offset * rng.normal(size=d), y


@pytest.mark.parametrize(
    ("n", "factor", "options", "storage"),
    [
        (300, 1e10, {}, np.asarray),
        (300, 1e6, {"C": 1e-3, "intercept_scaling": 1.0}, np.asarray),
        (3000, 1e6, {"tol": 1e-6}, sp.csr_array),
        *((80, 1e4, {"p": p, "tol": 1e-6}, np.asarray) for p in (1.0, 1.5, 3.0, np.inf)),
    ],
)
@pytest.mark.parametrize("loss", LOSSES)
def test_three_rows_in_another_unit_are_certified(n, factor, options, storage, loss):
    X, y = noisy(n, 6, offset=0.0 if "p" in options else 30.0)
    X[[5, 50, 70]] *= factor
    stored = storage(X)
    model = MaxMarginClassifier(loss=loss, **options).fit(stored, y)
    assert model.status_ is Status.CERTIFIED
    assert verify(model, stored, y).gap <= model.tol


@pytest.mark.parametrize("satisfied", [True, False])
@pytest.mark.parametrize("loss", LOSSES)
def test_a_very_long_row_acts_as_a_constraint(loss, satisfied):
    """No effect if the solution without it satisfies it; otherwise a larger optimum that satisfies it."""
    X, y = noisy(300, 4)
    alone = MaxMarginClassifier(loss=loss, tol=1e-8).fit(X, y)
    places = np.flatnonzero((y * (X @ alone.coef_[0]) > 0.0) == satisfied)
    Z, labels = np.vstack([X, X[places[:1]] * 1e6]), np.append(y, y[places[0]])
    model = MaxMarginClassifier(loss=loss, tol=1e-8).fit(Z, labels)
    assert model.status_ is Status.CERTIFIED
    if satisfied:
        assert model.coef_ == pytest.approx(alone.coef_, rel=1e-4)  # the root of twice tol
    else:
        assert model.certificate_.lower > alone.certificate_.upper
        assert (model.decision_function(Z) * labels)[-1] > 0.0


@pytest.mark.parametrize(("factor", "n"), [(1e4, 3000), (1e6, 300)])
def test_hard_margins_with_two_long_rows_are_certified(factor, n):
    X = np.random.default_rng(0).normal(size=(n, 6))
    y = np.where(X[:, 0] > 0.0, 1.0, -1.0)
    X[:, 0] += 0.3 * y
    X[[1, 5]] *= factor
    for seed in range(3):  # in some orders updated margins lose all digits
        model = MaxMarginClassifier(np.inf, random_state=seed).fit(X, y)
        assert model.status_ is Status.CERTIFIED
        assert verify(model, X, y).gap <= model.tol
        assert (model.predict(X) == y).all()
