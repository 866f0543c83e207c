"""The exact stage of small problems: optimality conditions, tolerance, interruption, warm starts, shared classes."""

from __future__ import annotations

import signal
from itertools import pairwise
from unittest.mock import Mock

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from problems import INTERCEPTS, conditioned
from sklearn.datasets import load_breast_cancer
from sklearn.preprocessing import PolynomialFeatures

import maxmargin.fit.driver
import maxmargin.fit.exact
import maxmargin.fit.small_dense
from maxmargin import MaxMarginClassifier, Problem, Status, verify
from maxmargin.algorithms.batch.active_set import candidates
from maxmargin.algorithms.batch.iterate import Reached
from maxmargin.algorithms.batch.newton import newton_points
from maxmargin.algorithms.batch.quadratic_program import SharedRows, quadratic
from maxmargin.algorithms.batch.semismooth import proximal_points
from maxmargin.algorithms.linear_algebra.centred_rows import SmallDenseRows
from maxmargin.certificates.rows import certify
from maxmargin.certificates.sample import Sample

LOSSES = ("hinge", "squared_hinge")
ROUNDING = 1e-11  # sums of at most 240 rows: 240 eps = 5e-14, times a condition of the support of 200
each_loss = pytest.mark.parametrize("loss", LOSSES)


def noisy(n: int, d: int, seed: int = 0):
    """Rows, noisy labels of a linear rule, and weights."""
    return conditioned("plain", n, d, seed)


def wide(n: int, d: int, alike: float = 1.0):
    """Rows with more columns than rows; the last is the first plus `alike` times another."""
    A = np.random.default_rng(0).normal(size=(n, d))
    A[-1] = A[0] + alike * A[-1]
    return A


def points(problem: Problem, rows, y, weights, tol: float = 0.0, **options):
    """The iterates of the method of small dense rows for this loss."""
    solver = proximal_points if problem.loss == "hinge" else newton_points
    return solver(problem, rows, y, weights, tol=tol, **options)


def replace_points(monkeypatch, iterates) -> None:
    """Replace the iterates that the stage of small dense rows receives; `iterates` has the true ones as argument."""

    def replaced(problem, *task, **options):
        return iterates(points(problem, *task[:3], task[4], interrupted=task[3], **options))

    for name in ("proximal_points", "newton_points"):
        monkeypatch.setattr(maxmargin.fit.small_dense, name, replaced)


# wide rows


@pytest.mark.parametrize(
    ("C", "loss", "options", "alike", "mean"),
    [
        (0.01, "hinge", {}, 1.0, 0.0),
        (1.0, "hinge", {"intercept": "augmented"}, 1e-6, 0.0),
        (np.inf, "hinge", {"fit_intercept": False}, 1.0, 0.0),
        (0.01, "squared_hinge", {"fit_intercept": False}, 1e-6, 0.0),
        (np.inf, "hinge", {}, 1e-6, 0.0),
        (1.0, "squared_hinge", {}, 1.0, 0.5),
        (1.0, "hinge", {}, 1.0, 1e3),
        (np.inf, "hinge", {}, 1.0, 1e5),
    ],
)
def test_wide_rows_are_certified(C, loss, options, alike, mean):
    """Columns are centred only if products lose digits otherwise."""
    X, y = wide(24, 800, alike), np.where(np.arange(24) % 3 == 0, 1, -1)
    X[:, : 400 if np.isinf(C) else 800] += mean
    y[-1] = y[0]
    tol = 1e-5 if mean else 1e-9
    model = MaxMarginClassifier(C, loss=loss, tol=tol, **options).fit(X, y)
    assert model.status_ is Status.CERTIFIED
    assert [report.stage for report in model.history_] == ["exact"]
    assert verify(model, X, y).gap <= tol
    problem = Problem("hinge", C)
    shared = SharedRows(problem, X)
    quadratic(problem, shared, y, np.ones(24))
    assert (shared.shift != 0.0).any() == (np.sum((X - X.mean(axis=0)) ** 2) < 0.1 * np.sum(X**2))
    centred = X - shared.shift
    np.testing.assert_array_equal(shared.X, centred)
    assert np.abs(shared.products() - centred @ centred.T).max() <= 1e-14 * np.sum(centred**2)


# columns of unequal scale


@pytest.mark.parametrize(("columns", "degree", "C"), [(3, 4, 1.0), (4, 3, 1e3)])
def test_polynomials_of_raw_columns_are_certified(columns, degree, C):
    """Columns of magnitudes 28 to 1e11 that are nearly linearly dependent."""
    X, y = load_breast_cancer(return_X_y=True)
    Z = PolynomialFeatures(degree, include_bias=False).fit_transform(X[:, :columns])
    model = MaxMarginClassifier(C, loss="hinge", random_state=0).fit(Z, y)
    assert model.status_ is Status.CERTIFIED
    assert verify(model, Z, y).gap <= 1e-3


@pytest.mark.parametrize(
    ("seed", "tol"),
    [
        *(pytest.param(seed, 1e-6, marks=pytest.mark.slow if seed >= 10 else ()) for seed in range(40)),
        *((seed, 1e-4) for seed in (114, 188, 318)),
    ],
)
def test_rows_with_columns_of_unequal_scale_are_certified(seed, tol):
    """Narrow and wide rows, repeated and contradictory rows, columns that differ by twelve orders of magnitude."""
    rng = np.random.default_rng([7, seed])
    n, d = int(rng.integers(10, 60)), int(rng.choice([5, 30, 600]))
    X = rng.normal(size=(n, d)) * 10.0 ** rng.uniform(-6.0, 6.0, d)
    X[: n // 4] = X[-(n // 4) :]
    y = np.where(rng.random(n) < 0.5, -1.0, 1.0)
    y[:2] = 1.0, -1.0
    C, intercept = 10.0 ** rng.uniform(-3.0, 3.0), bool(seed // 2 % 2)
    model = MaxMarginClassifier(C, loss=LOSSES[seed % 2], fit_intercept=intercept, tol=tol)
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


# iterates of the active set method


@pytest.mark.parametrize(
    ("intercept", "C", "tol", "far"),
    [
        *(("free", 1e-3, 0.0, 0.0), ("augmented", 1.0, 0.0, 0.0), ("none", 1e3, 0.0, 0.0)),
        *(("free", 1e-3, 1e-2, 0.0), ("augmented", 1.0, 1e-5, 1e5), ("free", 100.0, 1e-5, 1e5)),
    ],
)
@each_loss
def test_settled_points_are_optimal_to_rounding_and_near_points_to_tolerance(loss, C, intercept, tol, far):
    """Up to the cost of balancing the classes; with a tolerance no point is settled before the first near one."""
    X, y, _ = noisy(3000 if tol else 300, 6)
    X[:, 2] += far
    problem, ones = Problem(loss, C, intercept=intercept), np.ones(y.size)
    qp = quadratic(problem, X, y, ones)
    point = next(point for point in candidates(qp, enough=tol) if point.near or point.settled)
    assert point.near == (tol > 0.0)
    w, b = qp.primal(point.w, point.beta)
    assert certify(problem, Sample(X, y, ones), w, b, qp.dual(point.a)).gap <= max(ROUNDING, 1.1 * tol)


# a call takes several steps, and several proximal problems, per poll: both methods end soon after these
@pytest.mark.parametrize(("loss", "polls"), [("hinge", 0), ("hinge", 3), ("squared_hinge", 2)])
def test_interrupt_stops_the_search_with_one_unsettled_point(loss, polls):
    X, y, _ = noisy(400, 10)
    answers = iter([False] * polls)
    qp = quadratic(Problem(loss, 1.0), X, y, np.ones(y.size))
    (point,) = candidates(qp, None, lambda: next(answers, True))
    assert not point.settled


# fits that end early


@each_loss
def test_one_pass_over_the_rows_is_made_if_time_ends_before_a_point(loss):
    X, y, _ = noisy(5000, 6)
    model = MaxMarginClassifier(loss=loss, max_time=1e-9, random_state=0).fit(X, y)
    assert model.status_ is Status.MAX_TIME
    assert [report.stage for report in model.history_] == ["exact", "dcd"]
    assert model.certificate_.gap < 100.0
    assert model.score(X, y) > 0.75
    verify(model, X, y)


@pytest.mark.parametrize(
    ("n", "loss", "max_time"),
    [(1500, "squared_hinge", 1e-9), (5000, "hinge", None), (5000, "squared_hinge", None)],
)
def test_sufficient_warm_start_is_kept_without_a_step(n, loss, max_time, monkeypatch):
    X, y, _ = noisy(n, 6)
    model = MaxMarginClassifier(loss=loss, warm_start=True, random_state=0).fit(X, y)
    best = model.certificate_.gap
    monkeypatch.setattr(maxmargin.fit.exact, "candidates", None)
    model.set_params(max_time=max_time).fit(X, y)
    assert model.status_ is Status.CERTIFIED
    assert model.certificate_.gap <= best * (1.0 + 1e-6) + 1e-10  # margins: 5000 eps = 1e-12 of each bound
    assert verify(model, X, y).gap <= 1e-3


@pytest.mark.parametrize(("n", "loss"), [(80, "hinge"), (3000, "squared_hinge")])
def test_iterates_short_of_tolerance_are_kept_on_an_interrupt(n, loss, monkeypatch):
    """Their bounds are those of the certificate and of the first report."""

    def last_point(iterates):
        *_, last = iterates
        signal.raise_signal(signal.SIGINT)
        yield Reached(last.w * 1.2, *last[1:3], 0.0, False)

    replace_points(monkeypatch, last_point)
    X, y, weights = noisy(n, 4)
    model = MaxMarginClassifier(loss=loss)
    with pytest.raises(KeyboardInterrupt):
        model.fit(X, y, sample_weight=weights)
    assert model.status_ is Status.INTERRUPTED
    assert 1e-5 < model.certificate_.gap < 0.1
    assert model.history_[0].gap == model.certificate_.gap
    verify(model, X, y, sample_weight=weights)


@pytest.mark.parametrize(("store", "loss"), [(np.asarray, "hinge"), (sp.csr_matrix, "squared_hinge")])
def test_multiclass_fits_equal_one_versus_rest_fits(loss, store):
    """With repeated rows, rows of several classes, weights, and rows of weight zero."""
    rng = np.random.default_rng(5)
    X = np.tile(rng.integers(-2, 3, size=(240, 4)), 30) / 1.0  # more columns than small dense rows may have
    y, weights = rng.integers(0, 4, 240), rng.integers(0, 3, 240) / 2.0
    X[y == 0] += 0.5  # no other class has rows of the first
    assert np.unique(X, axis=0).shape[0] < 220
    model = MaxMarginClassifier(0.7, loss=loss).fit(store(X), y, weights)
    for k in range(4):
        alone = MaxMarginClassifier(0.7, loss=loss).fit(store(X), y == k, weights)
        np.testing.assert_allclose(model.coef_[k], alone.coef_[0], rtol=ROUNDING)
        np.testing.assert_allclose(model.intercept_[k], alone.intercept_[0], rtol=ROUNDING)


# small dense rows


def largest_violation(problem: Problem, X, y, weights, w, b, alpha) -> float:
    """The largest relative violation of any optimality condition."""
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
    X, y, weights = noisy(n, d, seed)
    problem = Problem(loss, C, intercept=intercept, intercept_scaling=1.5)
    *_, last = points(problem, SmallDenseRows(problem, X), y, weights)
    assert largest_violation(problem, X, y, weights, *last[:3]) <= ROUNDING


@each_loss
@pytest.mark.parametrize("options", [{}, {"intercept": "augmented"}, {"fit_intercept": False}])
def test_a_small_dense_problem_is_certified_by_one_round_to_rounding(loss, options, monkeypatch):
    refused = Mock(side_effect=AssertionError("no other stage is needed"))
    monkeypatch.setattr(maxmargin.fit.driver, "run_stages", refused)
    X, y, weights = noisy(80, 4)
    model = MaxMarginClassifier(loss=loss, **options).fit(X, y, sample_weight=weights)
    (report,) = model.history_
    assert (report.stage, report.round, model.n_iter_) == ("exact", 1, 1)
    assert report.gap == model.certificate_.gap
    assert report.margin == pytest.approx(1.0 / np.linalg.norm(model.coef_), rel=1e-14, abs=0.0)
    assert "the optimality conditions on the support" in report.reason
    assert verify(model, X, y, sample_weight=weights).gap <= ROUNDING


@each_loss
@pytest.mark.parametrize(("n", "tol"), [(3000, 1e-6), (12_000, 1e-2)])
def test_many_rows_stop_at_the_first_iterate_that_proves_tol(loss, n, tol):
    X, y, _ = noisy(n, 5)
    model = MaxMarginClassifier(10.0, loss=loss, tol=tol).fit(X, y)
    assert model.history_[-1].reason.endswith("the first point that proves tol")
    assert verify(model, X, y).gap <= tol
    optimal = MaxMarginClassifier(10.0, loss=loss, tol=1e-10).fit(X, y)
    assert optimal.certificate_.lower >= model.certificate_.lower * (1.0 - 1e-12)
    assert optimal.certificate_.upper <= model.certificate_.upper * (1.0 + 1e-12)


@each_loss
@pytest.mark.parametrize("factor", [1.1, np.nan])
def test_perturbed_iterates_are_rejected_by_the_certificate(loss, factor, monkeypatch):
    """The fit then equals that of the unperturbed solver."""
    X, y, weights = noisy(80, 4)
    right = MaxMarginClassifier(loss=loss).fit(X, y, sample_weight=weights)
    replace_points(monkeypatch, lambda iterates: (point._replace(w=point.w * factor) for point in iterates))
    model = MaxMarginClassifier(loss=loss).fit(X, y, sample_weight=weights)
    assert model.coef_ == pytest.approx(right.coef_, rel=ROUNDING)
