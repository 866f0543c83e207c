"""Small problems at p = 2: the optimality conditions hold to rounding, whatever rows, costs and scales are."""

from __future__ import annotations

import signal
from itertools import pairwise

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from problems import INTERCEPTS, conditioned
from sklearn.datasets import load_breast_cancer
from sklearn.preprocessing import PolynomialFeatures

from maxmargin import MaxMarginClassifier, Status, verify

LOSSES = ("hinge", "squared_hinge")
ROUNDING = 1e-11  # sums of at most 240 rows: 240 eps = 5e-14, times a condition of the support of 200
each_loss = pytest.mark.parametrize("loss", LOSSES)


def wide(n: int, d: int, alike: float = 1.0):
    """Rows with more columns than rows; the last is the first plus `alike` times another."""
    A = np.random.default_rng(0).normal(size=(n, d))
    A[-1] = A[0] + alike * A[-1]
    return A


@pytest.mark.parametrize(
    ("C", "loss", "options", "alike", "mean"),
    [
        (0.01, "hinge", {}, 1.0, 0.0),
        (1.0, "hinge", {"intercept_scaling": 1.0}, 1e-6, 0.0),
        (np.inf, "hinge", {"fit_intercept": False}, 1.0, 0.0),
        (0.01, "squared_hinge", {"fit_intercept": False}, 1e-6, 0.0),
        (np.inf, "hinge", {}, 1e-6, 0.0),
        (1.0, "squared_hinge", {}, 1.0, 0.5),
        (1.0, "hinge", {}, 1.0, 1e3),
        (np.inf, "hinge", {}, 1.0, 1e5),
    ],
)
def test_wide_rows_are_certified(C, loss, options, alike, mean):
    X, y = wide(24, 800, alike), np.where(np.arange(24) % 3 == 0, 1, -1)
    X[:, : 400 if np.isinf(C) else 800] += mean
    y[-1] = y[0]
    tol = 1e-5 if mean else 1e-8
    model = MaxMarginClassifier(C, loss=loss, tol=tol, **options).fit(X, y)
    assert model.status_ is Status.CERTIFIED
    assert [report.stage for report in model.history_] == ["exact"]
    assert verify(model, X, y).gap <= tol


@pytest.mark.parametrize(("columns", "degree", "C"), [(3, 4, 1.0), (4, 3, 1e3)])
def test_polynomials_of_raw_columns_are_certified(columns, degree, C):
    """Columns of magnitudes 28 to 1e11 that are nearly linearly dependent."""
    X, y = load_breast_cancer(return_X_y=True)
    Z = PolynomialFeatures(degree, include_bias=False).fit_transform(X[:, :columns])
    model = MaxMarginClassifier(C, loss="hinge", random_state=0).fit(Z, y)
    assert model.status_ is Status.CERTIFIED
    assert verify(model, Z, y).gap <= 1e-3


@pytest.mark.parametrize("seed", range(10))
def test_rows_with_columns_of_unequal_scale_are_certified(seed):
    """Narrow and wide rows, repeated and contradictory rows, columns that differ by eight orders of magnitude."""
    rng = np.random.default_rng([7, seed])
    n, d = int(rng.integers(10, 60)), int(rng.choice([5, 30, 600]))
    X = rng.normal(size=(n, d)) * 10.0 ** rng.uniform(-4.0, 4.0, d)
    X[: n // 4] = X[-(n // 4) :]
    y = np.where(rng.random(n) < 0.5, -1.0, 1.0)
    y[:2] = 1.0, -1.0
    C, intercept = 10.0 ** rng.uniform(-3.0, 3.0), bool(seed // 2 % 2)
    model = MaxMarginClassifier(C, loss=LOSSES[seed % 2], fit_intercept=intercept, tol=1e-6)
    assert model.fit(X, y, rng.integers(1, 4, n) / 2.0).status_ is Status.CERTIFIED


@each_loss
def test_reported_bounds_hold_for_the_unscaled_problem_and_are_monotone(loss):
    """Columns of scale 1 to 1e9: in the first units tried, another problem is solved."""
    rng = np.random.default_rng(2)
    Z = rng.normal(size=(60, 2))
    X = np.column_stack([Z, 1e9 * (Z + 0.1 * rng.normal(size=(60, 2)))])
    y = Z[:, 0] + 0.5 * rng.normal(size=60) > 0.0
    model = MaxMarginClassifier(1e3, loss=loss, random_state=0).fit(X, y)
    proved, history = verify(model, X, y), model.history_
    for report in history:  # columns of 1e9 leave seven digits of a difference
        assert report.lower <= proved.upper * (1.0 + 1e-9)
        assert report.upper >= proved.lower * (1.0 - 1e-9)
    for name, sign in (("lower", 1), ("upper", -1), ("gap", -1), ("presentations", 1), ("steps", 1)):
        values = [getattr(report, name) for report in history]
        assert all(sign * after >= sign * before for before, after in pairwise(values)), name


@each_loss
def test_class_means_are_the_model_if_time_ends_before_a_point(loss):
    X, y, _ = conditioned("plain", 5000, 6, 0)
    model = MaxMarginClassifier(loss=loss, max_time=1e-9, random_state=0).fit(X, y)
    assert model.status_ is Status.MAX_TIME
    assert model.certificate_.upper < 0.5 * y.size  # w = 0 has y.size
    assert model.score(X, y) > 0.75
    assert verify(model, X, y).lower <= MaxMarginClassifier(loss=loss).fit(X, y).certificate_.upper


@pytest.mark.parametrize(
    ("n", "loss", "max_time"),
    [(1500, "squared_hinge", 1e-9), (5000, "hinge", None), (5000, "squared_hinge", None)],
)
def test_sufficient_warm_start_is_kept(n, loss, max_time):
    X, y, _ = conditioned("plain", n, 6, 0)
    model = MaxMarginClassifier(loss=loss, warm_start=True, random_state=0).fit(X, y)
    best = model.certificate_.gap
    model.set_params(max_time=max_time).fit(X, y)
    assert model.status_ is Status.CERTIFIED
    assert model.certificate_.gap <= best * (1.0 + 1e-6) + 1e-10  # margins: 5000 eps = 1e-12 of each bound
    assert verify(model, X, y).gap <= 1e-3


@each_loss
def test_an_interrupt_keeps_the_point_of_the_last_report(loss):
    X, y, weights = conditioned("plain", 3000, 120, 0)
    presses = iter([signal.SIGINT])
    model = MaxMarginClassifier(loss=loss, callback=lambda report: any(map(signal.raise_signal, presses)))
    with pytest.raises(KeyboardInterrupt):
        model.fit(X, y, sample_weight=weights)
    assert model.status_ in (Status.INTERRUPTED, Status.CERTIFIED)
    assert model.certificate_.gap <= model.history_[-1].gap * (1.0 + 1e-9) + 1e-12
    verify(model, X, y, sample_weight=weights)


@pytest.mark.parametrize(("store", "loss"), [(np.asarray, "hinge"), (sp.csr_matrix, "squared_hinge")])
def test_multiclass_fits_equal_one_versus_rest_fits(loss, store):
    """With repeated rows, rows of several classes, weights, and rows of weight zero."""
    rng = np.random.default_rng(5)
    X = np.tile(rng.integers(-2, 3, size=(240, 4)), 30) / 1.0  # more columns than small dense rows may have
    y, weights = rng.integers(0, 4, 240), rng.integers(0, 3, 240) / 2.0
    X[y == 0] += 0.5  # no other class has rows of the first
    model = MaxMarginClassifier(0.7, loss=loss).fit(store(X), y, weights)
    for k in range(4):
        alone = MaxMarginClassifier(0.7, loss=loss).fit(store(X), y == k, weights)
        np.testing.assert_allclose(model.coef_[k], alone.coef_[0], rtol=ROUNDING)
        np.testing.assert_allclose(model.intercept_[k], alone.intercept_[0], rtol=ROUNDING)


def largest_violation(model, X, y, weights) -> float:
    """The largest relative violation of any optimality condition."""
    problem, w, b = model.certificate_.problem, model.coef_[0], float(model.intercept_[0])
    alpha = np.zeros(y.size)
    alpha[model.certificate_.support] = model.certificate_.dual
    pattern = X * y[:, None]
    sizes = np.abs(X) @ np.abs(w) + abs(b) + 1.0
    slack = (1.0 - pattern @ w - y * b) / sizes
    total = float(alpha.sum())
    violations = [float(np.abs(pattern.T @ alpha - w).max()) / (float(np.abs(pattern.T).max()) * total)]
    if problem.free:
        violations.append(abs(float(alpha @ y)) / total)
    if problem.rho:
        violations.append(abs(problem.rho**2 * float(alpha @ y) - b) / (problem.rho**2 * total))
    if problem.loss == "squared_hinge":
        own = 1.0 / (2.0 * problem.C * weights)
        violations.append(float(np.abs(alpha * own / sizes - np.maximum(slack, 0.0)).max()))
    else:
        share = alpha / (problem.C * weights)
        assert share.min() >= 0.0
        assert share.max() <= 1.0 + 1e-15
        violations.append(float(np.minimum(share, np.maximum(-slack, 0.0)).max()))
        violations.append(float(np.minimum(1.0 - share, np.maximum(slack, 0.0)).max()))
    assert np.isfinite(violations).all()
    return max(violations)


@given(
    seed=st.integers(0, 10**6),
    n=st.integers(6, 60),
    d=st.integers(1, 8),
    C=st.sampled_from([1e-4, 1e-2, 1.0, 1e2, 1e4]),
    loss=st.sampled_from(LOSSES),
    intercept=st.sampled_from(INTERCEPTS),
)
def test_optimality_conditions_hold_to_rounding(seed, n, d, C, loss, intercept):
    X, y, weights = conditioned("plain", n, d, seed)
    options = {"fit_intercept": intercept != "none", "loss": loss}
    options["intercept_scaling"] = 1.5 if intercept == "augmented" else None
    model = MaxMarginClassifier(C, tol=1e-8, **options).fit(X, y, weights)
    assert model.status_ is Status.CERTIFIED
    (report,) = model.history_
    assert report.stage == "exact"
    assert report.gap == model.certificate_.gap
    assert largest_violation(model, X, y, weights) <= 1e-9


@each_loss
@pytest.mark.parametrize(("n", "tol"), [(3000, 1e-6), (12_000, 1e-2)])
def test_many_rows_stop_at_the_first_iterate_that_proves_tol(loss, n, tol):
    X, y, _ = conditioned("plain", n, 5, 0)
    model = MaxMarginClassifier(10.0, loss=loss, tol=tol).fit(X, y)
    assert model.history_[-1].reason.endswith("the first point that proves tol")
    assert verify(model, X, y).gap <= tol
    optimal = MaxMarginClassifier(10.0, loss=loss, tol=1e-9).fit(X, y)
    assert optimal.certificate_.lower >= model.certificate_.lower * (1.0 - 1e-9)
    assert optimal.certificate_.upper <= model.certificate_.upper * (1.0 + 1e-9)
