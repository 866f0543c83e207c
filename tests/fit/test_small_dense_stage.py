"""The exact stage of small dense problems: against optimality conditions, Clarabel, and the other stages."""

from __future__ import annotations

from fractions import Fraction
from unittest.mock import Mock

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from oracle import optimum as truth
from problems import case, cases, drawn

import maxmargin.fit.driver
import maxmargin.fit.exact
import maxmargin.fit.small_dense
from maxmargin import MaxMarginClassifier, Problem, Status, verify
from maxmargin.algorithms.batch.centred_rows import SmallDenseRows
from maxmargin.algorithms.batch.iterate import Reached
from maxmargin.algorithms.batch.newton import newton_points
from maxmargin.algorithms.batch.proximal_point import proximal_points
from maxmargin.algorithms.batch.semismooth import ActiveHessian
from maxmargin.algorithms.batch.semismooth_steps import update_hessian
from maxmargin.engine.row_products import add_combined, scores, scores_in_cache

INTERCEPTS = ("free", "augmented", "none")


def toy(n: int, d: int, seed: int = 0):
    """Rows, noisy labels of a linear rule, and weights."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d)) + rng.normal(size=d)
    y = np.where((X - X.mean(axis=0)) @ rng.normal(size=d) + rng.normal(size=n) > 0.0, 1.0, -1.0)
    return X, y, rng.integers(1, 4, size=n) / 2.0


SOLVERS = {"hinge": "proximal_points", "squared_hinge": "newton_points"}


def points(problem: Problem, rows, y, weights, tol: float = 0.0, **options):
    """The iterates of the method for this loss."""
    solver = proximal_points if problem.loss == "hinge" else newton_points
    return solver(problem, rows, y, weights, tol=tol, **options)


def optimum(problem: Problem, rows, y, weights):
    """The last iterate, (w, b, alpha)."""
    *_, last = points(problem, rows, y, weights)
    return last[:3]


@pytest.fixture
def calls(monkeypatch):
    """A list with one entry per call of the small dense solver: the last iterate of that call."""
    found = []

    def recorded(problem, *task, **options):
        found.append(None)
        for point in points(problem, *task[:3], task[4], interrupted=task[3], **options):
            found[-1] = point
            yield point

    for name in SOLVERS.values():
        monkeypatch.setattr(maxmargin.fit.small_dense, name, recorded)
    return found


def change_points(monkeypatch, change) -> None:
    """Apply a change to every iterate that the small dense stage receives."""

    def changed(problem, *task, **options):
        for point in points(problem, *task[:3], task[4], interrupted=task[3], **options):
            yield change(point)

    for name in SOLVERS.values():
        monkeypatch.setattr(maxmargin.fit.small_dense, name, changed)


# the optimum


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
    loss=st.sampled_from(["hinge", "squared_hinge"]),
    intercept=st.sampled_from(INTERCEPTS),
)
def test_optimality_conditions_hold_to_rounding(seed, n, d, C, loss, intercept):
    X, y, weights = toy(n, d, seed)
    y[:2] = 1.0, -1.0
    problem = Problem(loss, C, intercept=intercept, intercept_scaling=1.5)
    found = optimum(problem, SmallDenseRows(problem, X), y, weights)
    assert largest_violation(problem, X, y, weights, *found) <= 1e-11


@pytest.mark.parametrize(
    "seed", [pytest.param(seed, marks=pytest.mark.slow if seed >= 15 else ()) for seed in range(60)]
)
def test_degenerate_problems_agree_with_clarabel_and_other_stages(seed, calls, monkeypatch):
    """The bounds contain the optimum of Clarabel in rational numbers; w is the same without the small dense stage."""
    rng = np.random.default_rng([seed, 3])
    problem = case(drawn(rng, sparse=False))
    d = problem.X.shape[1]
    if d > 12:
        problem = case(drawn(rng, sparse=False, d=5))
    model = MaxMarginClassifier(**problem.options, tol=1e-8, random_state=0)
    model.fit(problem.X, problem.y, sample_weight=problem.weights)
    assert model.status_ is Status.CERTIFIED
    assert len(calls) <= 1
    w, bounds = model.coef_[0].copy(), model.certificate_
    best = truth(problem.problem, problem.X, problem.y, problem.weights)
    assert Fraction(bounds.lower) <= best.upper
    assert Fraction(bounds.upper) >= best.lower
    rounding = (
        1e-12 * float(bounds.dual.sum()) * float(np.abs(problem.X).max())
    )  # rounding of the cancelling terms of w
    monkeypatch.setattr(maxmargin.fit.small_dense, "MAX_COLUMNS", 0)
    model.fit(problem.X, problem.y, sample_weight=problem.weights)
    assert model.status_ is Status.CERTIFIED
    assert model.coef_[0] == pytest.approx(w, rel=1e-6, abs=1e-6 * np.abs(w).max() + rounding)


# within a fit


@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
@pytest.mark.parametrize("intercept", INTERCEPTS)
def test_one_call_certifies_a_small_dense_problem(loss, intercept, calls, monkeypatch):
    monkeypatch.setattr(
        maxmargin.fit.driver, "run_stages", Mock(side_effect=AssertionError("one call is enough"))
    )
    X, y, weights = toy(80, 4)
    options = {
        "fit_intercept": intercept != "none",
        "intercept": "free" if intercept == "none" else intercept,
    }
    model = MaxMarginClassifier(loss=loss, **options).fit(X, y, sample_weight=weights)
    assert len(calls) == 1
    (report,) = model.history_
    assert (report.stage, report.round, model.n_iter_) == ("exact", 1, 1)
    assert report.gap == model.certificate_.gap
    assert report.margin == pytest.approx(1.0 / np.linalg.norm(model.coef_))
    assert "the optimality conditions on the support" in report.reason
    assert verify(model, X, y, sample_weight=weights).gap <= 1e-9


@pytest.mark.parametrize(
    "options",
    [{"algorithm": "dcd"}, {"C": np.inf}, {"p": 3.0}, {"max_time": 1e-9}, {"norm_power": 1}],
    ids=lambda options: next(iter(options)),
)
def test_other_options_skip_the_small_dense_stage(options, calls):
    X, y, _ = toy(60, 3)
    MaxMarginClassifier(**options).fit(X + 3.0 * y[:, None], y)
    assert not calls


@pytest.mark.parametrize(("loss", "dtype"), [("hinge", np.float64), ("squared_hinge", np.float32)])
def test_small_sparse_data_are_solved_as_dense(loss, dtype, calls, monkeypatch):
    X, y, weights = toy(60, 5)
    X = np.where(np.random.default_rng(0).random(X.shape) < 0.5, X, 0.0).astype(dtype)
    dense, sparse = (
        MaxMarginClassifier(2.0, loss=loss).fit(rows, y, weights) for rows in (X, sp.csr_matrix(X))
    )
    assert len(calls) == 2
    assert sparse.coef_ == pytest.approx(dense.coef_, rel=1e-9)
    assert sparse.intercept_ == pytest.approx(dense.intercept_, rel=1e-9)
    assert verify(sparse, sp.csr_matrix(X), y, weights).gap <= 1e-9
    monkeypatch.setattr(maxmargin.fit.exact, "MAX_ROWS_TO_TOL", 0)
    X, y, _ = toy(maxmargin.fit.exact.MAX_ROWS_TO_OPTIMUM + 1, 3)
    MaxMarginClassifier(loss=loss).fit(sp.csr_matrix(X), y)
    assert len(calls) == 2


@pytest.mark.parametrize("seed", range(6))
def test_iterates_reported_as_near_are_within_tolerance(seed):
    """Including nearly collinear columns, for which a factorisation has few digits."""
    X, y, weights = toy(2500, 8, seed)
    X[:, 4:] = X[:, :4] + 1e-5 * X[:, 4:]
    problem, tol = Problem("squared_hinge", 1e9, intercept="augmented"), 1e-6
    for w, b, alpha, _, near in points(problem, SmallDenseRows(problem, X), y, weights, tol):
        rows = np.hstack([X, np.ones((len(y), 1))]) * y[:, None]
        z, cost = np.append(w, b), 2.0 * problem.C * weights
        primal = 0.5 * z @ z + 0.5 * cost @ np.maximum(1.0 - rows @ z, 0.0) ** 2
        product = alpha @ rows
        dual = 0.5 * alpha.sum() ** 2 / (product @ product + (alpha * alpha / cost).sum())
        assert not near or primal - dual <= 2.0 * tol * dual


@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
@pytest.mark.parametrize(("n", "tol"), [(3000, 1e-6), (12_000, 1e-2)])
def test_many_rows_stop_at_the_first_iterate_that_proves_tol(loss, n, tol, calls):
    X, y, _ = toy(n, 5)
    model = MaxMarginClassifier(10.0, loss=loss, tol=tol).fit(X, y)
    assert len(calls) == 1
    assert model.history_[-1].reason.endswith("the first point that proves tol")
    assert verify(model, X, y).gap <= tol
    few = MaxMarginClassifier(10.0, loss=loss, tol=1e-10).fit(X, y)
    assert few.certificate_.lower >= model.certificate_.lower * (1.0 - 1e-12)
    assert few.certificate_.upper <= model.certificate_.upper * (1.0 + 1e-12)


@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
def test_perturbed_iterates_are_rejected_by_the_certificate(loss, monkeypatch):
    """The fit then equals that of the unperturbed solver."""
    X, y, weights = toy(80, 4)
    right = MaxMarginClassifier(loss=loss).fit(X, y, sample_weight=weights)
    change_points(monkeypatch, lambda point: point._replace(w=point.w * 1.001))
    model = MaxMarginClassifier(loss=loss).fit(X, y, sample_weight=weights)
    assert model.coef_ == pytest.approx(right.coef_, rel=1e-9)


@pytest.mark.parametrize(("n", "loss"), [(80, "hinge"), (3000, "squared_hinge")])
def test_iterates_short_of_tolerance_are_kept_when_time_ends(loss, n, monkeypatch):
    """Their bounds are those of the certificate and of the first report."""

    def last_point(problem, *task, **options):
        w, b, alpha = optimum(problem, *task[:3])
        deadlines[-1].stopped.set()
        yield Reached(w * 1.2, b, alpha, 0.0, False)

    deadlines, original = [], maxmargin.fit.deadline.Deadline.__enter__
    monkeypatch.setattr(
        maxmargin.fit.deadline.Deadline,
        "__enter__",
        lambda deadline: deadlines.append(deadline) or original(deadline),
    )
    for name in SOLVERS.values():
        monkeypatch.setattr(maxmargin.fit.small_dense, name, last_point)
    X, y, weights = toy(n, 4)
    model = MaxMarginClassifier(loss=loss, max_time=100.0).fit(X, y, sample_weight=weights)
    assert model.status_ is Status.INTERRUPTED
    assert 1e-5 < model.certificate_.gap < 0.1
    assert model.history_[0].gap == model.certificate_.gap
    verify(model, X, y, sample_weight=weights)


@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
def test_nan_ends_the_iteration(loss):
    """At most two iterates, none with a finite gap."""
    problem = Problem(loss, 1.0)
    X, y, weights = toy(20, 3)
    rows = SmallDenseRows(problem, X)
    rows.rows[3, 1] = np.nan
    found = list(points(problem, rows, y, weights))
    assert len(found) <= 2
    assert not any(point.gap < np.inf for point in found)


@given(problem=cases(sparse=False, loss="squared_hinge"), pick=st.randoms(use_true_random=False))
def test_hessian_updates_equal_a_recomputed_hessian(problem, pick):
    """For arbitrary sequences of active sets."""
    n, rows = len(problem.y), SmallDenseRows(problem.problem, problem.X)
    costs = np.linspace(1.0, 2.0, n)
    hessian = ActiveHessian(rows, costs, lambda: False)
    size = float(np.abs(rows.rows.T @ (costs[:, None] * rows.rows)).max())
    (active, inside), places = np.zeros((2, n), bool), np.empty((2, n), np.uint32)
    largest, matrix, columns = np.zeros(rows.size), np.zeros((rows.size, rows.size)), np.empty((rows.size, 3))
    for _ in range(5):
        share = pick.random()
        active[:] = [pick.random() < share for _ in range(n)]
        sigma = 10.0 ** pick.uniform(-3.0, 9.0)
        some = rows.rows[active]
        product = some.T @ (costs[active, None] * some)
        error = np.abs(hessian.regularised(active, sigma) - sigma * product - np.diag(rows.regular))
        assert error.max(initial=0.0) <= 1e-12 * (1.0 + sigma * size)
        update_hessian(rows.rows, costs, np.array([active, inside]), places, largest, matrix, columns)
        inside[:] = active
        error = np.abs(np.tril(matrix - product))
        assert error.max(initial=0.0) <= 1e-12 * size
        assert (np.diag(error) <= 1e-11 * np.diag(product)).all()


@pytest.mark.parametrize("n", [1, 2, 3, 4, 5, 9])
def test_products_equal_numpy(n):
    rng = np.random.default_rng(n)
    for d in (1, 8, 9, 101):  # narrow and wide rows
        rows, z, c = rng.normal(size=(n, d)), rng.normal(size=d), rng.normal(size=n)
        out, sums, part = np.empty(n), np.ones(d), np.empty(d)
        scores(rows, z, out)
        assert out == pytest.approx(rows @ z)
        scores_in_cache(rows, z, out)
        assert out == pytest.approx(rows @ z)
        c[n // 2] = 0.0
        add_combined(rows, c, np.empty(n, np.uint32), part, sums)
        assert sums == pytest.approx(1.0 + c @ rows)
