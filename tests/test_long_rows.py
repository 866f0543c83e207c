"""A few rows far longer than all the others (another unit, a sentinel): certified, as all of ordinary size is."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

from maxmargin import MaxMarginClassifier, Problem, Status, verify
from maxmargin.algorithms.batch.centred_rows import centred_rows
from maxmargin.algorithms.batch.quadratic_program import quadratic
from maxmargin.fit.exact import MANY_ROWS

LOSSES = ("hinge", "squared_hinge")


def noisy(n: int, d: int, offset: float = 0.0, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Overlapping classes about a point so far from 0, and labels -1.0 and 1.0."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    y = np.where(X[:, 0] + 0.5 * X[:, 1] + rng.normal(size=n) > 0.0, 1.0, -1.0)
    return X + offset * rng.normal(size=d), y


@pytest.mark.parametrize("C", [1e-3, 1.0, 1e3])
@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("intercept", ["free", "augmented"])
@pytest.mark.parametrize("factor", [1e4, 1e9, 1e12])
def test_three_rows_in_another_unit(factor, intercept, loss, C):
    X, y = noisy(300, 6, offset=30.0)
    X[[5, 100, 222]] *= factor
    model = MaxMarginClassifier(C, loss=loss, intercept=intercept).fit(X, y)
    assert model.status_ is Status.CERTIFIED
    assert verify(model, X, y).gap <= model.tol


def test_three_rows_at_the_end_of_float64():
    """Dual weights of the long rows are known to hardly more digits than a gap of 1e-3 takes."""
    certified = 0
    for seed in range(12):
        X, y = noisy(300, 6, offset=30.0, seed=seed)
        X[[5, 100, 222]] *= 1e12
        model = MaxMarginClassifier(1e3, loss="squared_hinge").fit(X, y)
        certified += model.status_ is Status.CERTIFIED
        assert verify(model, X, y).gap <= 3.0 * model.tol
    assert certified >= 9


@pytest.mark.parametrize("storage", [np.asarray, sp.csr_array])
@pytest.mark.parametrize("loss", LOSSES)
def test_among_many_rows(loss, storage):
    X, y = noisy(MANY_ROWS + 1, 5, offset=30.0)
    X[[7, 70, 7000]] *= 1e9
    stored = storage(X)
    model = MaxMarginClassifier(loss=loss).fit(stored, y)
    assert model.status_ is Status.CERTIFIED
    assert verify(model, stored, y).gap <= model.tol
    assert "exact" not in {report.stage for report in model.history_}


@pytest.mark.parametrize("loss", LOSSES)
def test_a_sentinel_in_a_few_entries(loss):
    X, y = noisy(MANY_ROWS + 1, 5)
    X[np.random.default_rng(1).random(X.shape) < 1e-4] = -(2.0**31)
    model = MaxMarginClassifier(1e3, loss=loss).fit(X, y)
    assert model.status_ is Status.CERTIFIED
    assert verify(model, X, y).gap <= model.tol


@pytest.mark.parametrize("right", [True, False])
@pytest.mark.parametrize("loss", LOSSES)
def test_a_row_so_long_is_a_constraint(loss, right):
    """It changes nothing where it is met by itself; where it is not, every solution without it is worse."""
    X, y = noisy(300, 4)
    alone = MaxMarginClassifier(loss=loss, tol=1e-8).fit(X, y)
    places = np.flatnonzero((y * (X @ alone.coef_[0]) > 0.0) == right)
    Z, labels = np.vstack([X, X[places[:1]] * 1e9]), np.append(y, y[places[0]])
    model = MaxMarginClassifier(loss=loss, tol=1e-8).fit(Z, labels)
    assert model.status_ is Status.CERTIFIED
    if right:
        assert model.coef_ == pytest.approx(alone.coef_, rel=1e-4)
    else:
        assert model.certificate_.lower > alone.certificate_.upper
        assert (model.decision_function(Z) * labels)[-1] > 0.0


@pytest.mark.parametrize("storage", [np.asarray, sp.csr_array])
@pytest.mark.parametrize("n", [300, 60_000])
def test_what_most_rows_have_are_the_units(n, storage):
    X, _ = noisy(n, 6, offset=30.0 if storage is np.asarray else 0.0)
    most = centred_rows(Problem("hinge", 1.0), storage(X))
    assert (most.lengths == 1.0).all()
    places = [3, 50, 299]
    X[places] *= 1e9
    blocks = centred_rows(Problem("hinge", 1.0), storage(X))
    assert (np.flatnonzero(blocks.lengths > 1.0) == places).all()
    assert blocks.unit == pytest.approx(most.unit, rel=0.2)
    assert blocks.lengths[places] * blocks.unit == pytest.approx(
        np.sqrt(((X[places] - blocks.mean) ** 2).sum(axis=1))
    )
    assert np.abs(blocks.mean - most.mean).max() <= 0.3


def test_the_length_of_most_columns_where_caps_would_be_lost():
    """Caps beyond 1e20 count as none: columns of 1e9 beside those of 1 would take all of them away."""
    X, y = noisy(100, 6)
    X[:, 0] *= 1e11
    program = quadratic(Problem("hinge", 1.0), X, y, np.ones(100))
    assert np.isfinite(program.c).all()
    assert program.scale == pytest.approx(6**0.5, rel=0.3)
    assert quadratic(Problem("squared_hinge", 1.0), X, y, np.ones(100)).scale > 1e10


@pytest.mark.parametrize("loss", LOSSES)
def test_polynomials_of_the_third_degree(loss):
    rng = np.random.default_rng(0)
    X = np.exp(rng.normal(size=(400, 5)) + np.array([0.0, 0.0, 2.0, 3.0, 6.0]))
    y = np.where(np.log(X) @ np.array([1.0, 1.0, -1.0, 1.0, -1.0]) + rng.normal(size=400) > -2.0, 1, 0)
    cubic = np.column_stack([X, *(X[:, [i]] * X[:, i:] * X[:, [j]] for i in range(5) for j in range(i + 1))])
    model = MaxMarginClassifier(1e3, loss=loss).fit(cubic, y)
    assert model.status_ is Status.CERTIFIED
    assert verify(model, cubic, y).gap <= model.tol


def test_many_equal_rows_are_not_what_most_are():
    X = np.zeros((1000, 5))
    X[:400] = np.random.default_rng(0).normal(size=(400, 5))
    X[:2] *= 1e9
    blocks = centred_rows(Problem("hinge", 1.0, intercept="none"), X)
    assert np.flatnonzero(blocks.lengths > 1.0).tolist() == [0, 1]
    assert blocks.unit == pytest.approx(5**0.5, rel=0.3)


@pytest.mark.parametrize("d", [3, 6])
@pytest.mark.parametrize("seed", range(8))
def test_two_rows_and_one_huge_entry(seed, d):
    X = np.random.default_rng(seed).normal(size=(2, d)) * 20.0
    X[1, 0] = -1e9
    assert MaxMarginClassifier(1e5, loss="hinge").fit(X, [0, 1]).status_ is Status.CERTIFIED


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("factor", [1e9, 1e12])
def test_hard_margins_with_a_fifth_of_the_rows_in_another_unit(factor, seed):
    X = np.random.default_rng(seed).normal(size=(60, 30))
    y = np.where(X[:, 0] > 0.0, 1.0, -1.0)
    X[:12] *= factor
    model = MaxMarginClassifier(np.inf).fit(X, y)
    assert model.status_ is Status.CERTIFIED
    assert (model.predict(X) == y).all()


@pytest.mark.parametrize("n", [300, 3000])
@pytest.mark.parametrize("factor", [1e4, 1e9, 1e12])
@pytest.mark.parametrize("apart", [0.3, 3.0])
def test_hard_margins(apart, factor, n):
    X = np.random.default_rng(0).normal(size=(n, 6))
    y = np.where(X[:, 0] > 0.0, 1.0, -1.0)
    X[:, 0] += apart * y
    X[[1, 5]] *= factor
    for seed in range(3):  # of some orders running margins are rounding, and bounds cross
        model = MaxMarginClassifier(np.inf, random_state=seed).fit(X, y)
        assert model.status_ is Status.CERTIFIED
        assert verify(model, X, y).gap <= model.tol
        assert (model.predict(X) == y).all()
        assert all(report.lower <= report.upper * (1.0 + 1e-9) for report in model.history_)


def test_squares_of_sparse_float32_are_of_float64():
    X = sp.random_array((400, 5), density=0.5, rng=np.random.default_rng(0), dtype=np.float32).tocsr()
    X.data[[3, 30]] = 1e25  # whose square float32 does not have
    blocks = centred_rows(Problem("hinge", 1.0), X)
    assert np.isfinite(blocks.lengths).all()
    assert np.count_nonzero(blocks.lengths > 1.0) == 2
