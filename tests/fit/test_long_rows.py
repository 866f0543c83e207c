"""A few rows far longer than all others (another unit, a sentinel): certified like data of ordinary size."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

from maxmargin import MaxMarginClassifier, Problem, Status, verify
from maxmargin.algorithms.linear_algebra.centred_rows import centred_rows
from maxmargin.fit.exact import MAX_ROWS_TO_TOL

LOSSES = ("hinge", "squared_hinge")


def noisy(n: int, d: int, offset: float = 0.0, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Overlapping classes around a point at this distance from 0, and labels -1.0 and 1.0."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    y = np.where(X[:, 0] + 0.5 * X[:, 1] + rng.normal(size=n) > 0.0, 1.0, -1.0)
    return X + offset * rng.normal(size=d), y


@pytest.mark.parametrize(
    ("n", "factor", "options", "storage"),
    [
        (300, 1e4, {}, np.asarray),
        (300, 1e9, {"C": 1e-3, "intercept": "augmented"}, np.asarray),
        (300, 1e9, {"C": 1e3}, np.asarray),
        (300, 1e12, {"C": 1e-3}, np.asarray),
        (300, 1e12, {"intercept": "augmented"}, np.asarray),
        (MAX_ROWS_TO_TOL + 1, 1e9, {}, sp.csr_array),
    ],
)
@pytest.mark.parametrize("loss", LOSSES)
def test_three_rows_in_another_unit_are_certified(n, factor, options, storage, loss):
    """Also more rows than the exact stage solves."""
    X, y = noisy(n, 6, offset=30.0)
    X[[5, 100, 222]] *= factor
    stored = storage(X)
    model = MaxMarginClassifier(loss=loss, **options).fit(stored, y)
    assert model.status_ is Status.CERTIFIED
    assert verify(model, stored, y).gap <= model.tol
    assert ("exact" in {report.stage for report in model.history_}) == (n <= MAX_ROWS_TO_TOL)


@pytest.mark.parametrize("satisfied", [True, False])
@pytest.mark.parametrize("loss", LOSSES)
def test_a_very_long_row_acts_as_a_constraint(loss, satisfied):
    """No effect if the solution without it satisfies it; otherwise a larger optimum that satisfies it."""
    X, y = noisy(300, 4)
    alone = MaxMarginClassifier(loss=loss, tol=1e-8).fit(X, y)
    places = np.flatnonzero((y * (X @ alone.coef_[0]) > 0.0) == satisfied)
    Z, labels = np.vstack([X, X[places[:1]] * 1e9]), np.append(y, y[places[0]])
    model = MaxMarginClassifier(loss=loss, tol=1e-8).fit(Z, labels)
    assert model.status_ is Status.CERTIFIED
    if satisfied:
        assert model.coef_ == pytest.approx(alone.coef_, rel=1e-4)  # the root of twice tol
    else:
        assert model.certificate_.lower > alone.certificate_.upper
        assert (model.decision_function(Z) * labels)[-1] > 0.0


@pytest.mark.parametrize(("seed", "d"), [(0, 3), (1, 6), (2, 3), (3, 6)])
def test_two_rows_with_one_huge_entry_are_certified(seed, d):
    X = np.random.default_rng(seed).normal(size=(2, d)) * 20.0
    X[1, 0] = -1e9
    assert MaxMarginClassifier(1e5, loss="hinge").fit(X, [0, 1]).status_ is Status.CERTIFIED


@pytest.mark.parametrize(
    ("separation", "factor", "n"), [(0.3, 1e9, 300), (3.0, 1e4, 3000), (0.3, 1e12, 3000), (3.0, 1e12, 300)]
)
def test_hard_margins_with_two_long_rows_are_certified(separation, factor, n):
    X = np.random.default_rng(0).normal(size=(n, 6))
    y = np.where(X[:, 0] > 0.0, 1.0, -1.0)
    X[:, 0] += separation * y
    X[[1, 5]] *= factor
    for seed in range(3):  # in some orders updated margins lose all digits
        model = MaxMarginClassifier(np.inf, random_state=seed).fit(X, y)
        assert model.status_ is Status.CERTIFIED
        assert verify(model, X, y).gap <= model.tol
        assert (model.predict(X) == y).all()
        assert all(report.lower <= report.upper * (1.0 + 1e-9) for report in model.history_)  # running sums


def test_squares_of_sparse_float32_rows_do_not_overflow():
    X = sp.random_array((400, 5), density=0.5, rng=np.random.default_rng(0), dtype=np.float32).tocsr()
    X.data[[3, 30]] = 1e25  # its square overflows float32
    blocks = centred_rows(Problem("hinge", 1.0), X)
    assert np.isfinite(blocks.lengths).all()
    assert np.count_nonzero(blocks.lengths > 1.0) == 2
