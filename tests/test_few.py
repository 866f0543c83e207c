"""Small dense problems solved before any other stage: against optimality conditions, Clarabel, and the other stages."""

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
from maxmargin.algorithms.batch import newton
from maxmargin.algorithms.batch.centred_rows import SmallDenseRows
from maxmargin.algorithms.batch.iterate import Reached
from maxmargin.algorithms.batch.newton import newton_points
from maxmargin.algorithms.batch.proximal_point import proximal_points
from maxmargin.algorithms.batch.semismooth import ActiveHessian
from maxmargin.algorithms.batch.semismooth_steps import update_hessian
from maxmargin.engine.row_products import add_combined, scores, scores_in_cache

INTERCEPTS = ("free", "augmented", "none")


def toy(n: int, d: int, seed: int = 0):
    """Rows of noisy labels, and weights."""
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
    """The last iterate of each call."""
    found = []

    def noted(problem, *task, **options):
        found.append(None)
        for point in points(problem, *task[:3], task[4], interrupted=task[3], **options):
            found[-1] = point
            yield point

    for name in SOLVERS.values():
        monkeypatch.setattr(maxmargin.fit.small_dense, name, noted)
    return found


def change_points(monkeypatch, change) -> None:
    """Let the small dense stage see other points than those that were found."""

    def changed(problem, *task, **options):
        for point in points(problem, *task[:3], task[4], interrupted=task[3], **options):
            yield change(point)

    for name in SOLVERS.values():
        monkeypatch.setattr(maxmargin.fit.small_dense, name, changed)


@pytest.fixture
def step_by_step(monkeypatch):
    """As if the small dense stage found nothing."""
    for name in SOLVERS.values():
        monkeypatch.setattr(maxmargin.fit.small_dense, name, Mock(return_value=iter(())))


# the optimum


def wrong(problem: Problem, X, y, weights, w, b, alpha) -> float:
    """The most that any optimality condition lacks, each as a share of what it adds up."""
    pattern = X * y[:, None]
    sizes = np.abs(X) @ np.abs(w) + abs(b) + 1.0
    slack = (1.0 - pattern @ w - y * b) / sizes
    total = float(alpha.sum())
    lacks = [float(np.abs(pattern.T @ alpha - w).max()) / (float(np.abs(pattern.T).max()) * total)]
    if problem.free:
        lacks.append(abs(float(alpha @ y)) / total)
    if problem.rho:
        lacks.append(abs(problem.rho**2 * float(alpha @ y) - b) / (problem.rho**2 * total))
    if problem.loss == "squared_hinge":
        own = 1.0 / (2.0 * problem.C * weights)
        lacks.append(float(np.abs(alpha * own / sizes - np.maximum(slack, 0.0)).max()))
    else:
        share = alpha / (problem.C * weights)
        assert share.min() >= 0.0
        assert share.max() <= 1.0 + 1e-15
        lacks.append(float(np.minimum(share, np.maximum(-slack, 0.0)).max()))
        lacks.append(float(np.minimum(1.0 - share, np.maximum(slack, 0.0)).max()))
    assert np.isfinite(lacks).all()
    return max(lacks)


@given(
    seed=st.integers(0, 10**6),
    n=st.integers(6, 60),
    d=st.integers(1, 8),
    C=st.sampled_from([1e-4, 1e-2, 1.0, 1e2, 1e4]),
    loss=st.sampled_from(["hinge", "squared_hinge"]),
    intercept=st.sampled_from(INTERCEPTS),
)
def test_the_optimality_conditions_hold_to_rounding(seed, n, d, C, loss, intercept):
    X, y, weights = toy(n, d, seed)
    y[:2] = 1.0, -1.0
    problem = Problem(loss, C, intercept=intercept, intercept_scaling=1.5)
    found = optimum(problem, SmallDenseRows(problem, X), y, weights)
    assert wrong(problem, X, y, weights, *found) <= 1e-11


@pytest.mark.parametrize("seed", range(60))
def test_awkward_problems_have_one_optimum(seed, calls, monkeypatch):
    """Whoever finds it; w is unique, and both objectives are that of Clarabel, in rational numbers."""
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
    nothing = 1e-12 * float(bounds.dual.sum()) * float(np.abs(problem.X).max())  # what cancels in w
    monkeypatch.setattr(maxmargin.fit.small_dense, "MAX_COLUMNS", 0)
    model.fit(problem.X, problem.y, sample_weight=problem.weights)
    assert model.status_ is Status.CERTIFIED
    assert model.coef_[0] == pytest.approx(w, rel=1e-6, abs=1e-6 * np.abs(w).max() + nothing)


def test_most_awkward_problems_are_solved_so(calls):
    """One call would be of little use where others had to follow."""
    rng = np.random.default_rng(0)
    specs = [drawn(rng, sparse=False) for _ in range(120)]
    for spec in specs:
        problem = case(spec)
        if problem.X.shape[1] <= 12:
            MaxMarginClassifier(**problem.options).fit(problem.X, problem.y, sample_weight=problem.weights)
    assert len(calls) > 60
    assert sum(found is not None for found in calls) >= 0.95 * len(calls)


# in a fit


@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
@pytest.mark.parametrize("intercept", INTERCEPTS)
def test_one_call_is_all_there_is(loss, intercept, calls, monkeypatch):
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


@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
def test_rows_of_weight_zero_are_no_rows(loss, calls):
    X, y, weights = toy(90, 3)
    weights[::4] = 0.0
    model = MaxMarginClassifier(loss=loss).fit(X, y, sample_weight=weights)
    assert len(calls) == 1
    assert not np.isin(model.certificate_.support, np.arange(0, 90, 4)).any()
    assert verify(model, X, y, sample_weight=weights).gap <= 1e-9
    alone = MaxMarginClassifier(loss=loss).fit(
        X[weights > 0], y[weights > 0], sample_weight=weights[weights > 0]
    )
    assert model.coef_ == pytest.approx(alone.coef_, rel=1e-12)


@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
def test_copies_weights_and_orders_make_no_difference(loss, calls):
    X, y, _ = toy(60, 4)
    times = np.random.default_rng(0).integers(1, 4, 60)
    model = MaxMarginClassifier(3.0, loss=loss).fit(X, y, sample_weight=times)
    order = np.random.default_rng(1).permutation(times.sum())
    copies = MaxMarginClassifier(3.0, loss=loss).fit(
        np.repeat(X, times, 0)[order], np.repeat(y, times)[order]
    )
    assert len(calls) == 2
    assert copies.coef_ == pytest.approx(model.coef_, rel=1e-11)
    assert copies.intercept_ == pytest.approx(model.intercept_, rel=1e-11)


def test_classes_share_their_rows(monkeypatch):
    made = Mock(wraps=SmallDenseRows)
    monkeypatch.setattr(maxmargin.fit.small_dense, "SmallDenseRows", made)
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(90, 4)), np.arange(90) % 3
    X[:, 0] += y
    model = MaxMarginClassifier().fit(X, y)
    assert made.call_count == 1
    assert [report.stage for report in model.history_] == ["exact"] * 3
    assert verify(model, X, y).gap <= 1e-9


@pytest.mark.parametrize(
    "options",
    [{"algorithm": "dcd"}, {"C": np.inf}, {"p": 3.0}, {"max_time": 1e-9}, {"norm_power": 1}],
    ids=lambda options: next(iter(options)),
)
def test_what_is_asked_otherwise_is_done_otherwise(options, calls):
    X, y, _ = toy(60, 3)
    MaxMarginClassifier(**options).fit(X + 3.0 * y[:, None], y)
    assert not calls


@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_few_sparse_rows_are_dense_ones(loss, dtype, calls, monkeypatch):
    X, y, weights = toy(60, 5)
    X = np.where(np.random.default_rng(0).random(X.shape) < 0.5, X, 0.0).astype(dtype)
    dense, sparse = (
        MaxMarginClassifier(2.0, loss=loss).fit(rows, y, weights) for rows in (X, sp.csr_matrix(X))
    )
    assert len(calls) == 2
    assert sparse.coef_ == pytest.approx(dense.coef_, rel=1e-9)
    assert sparse.intercept_ == pytest.approx(dense.intercept_, rel=1e-9)
    assert verify(sparse, sp.csr_matrix(X), y, weights).gap <= 1e-9
    monkeypatch.setattr(maxmargin.fit.exact, "MANY_ROWS", 0)
    X, y, _ = toy(maxmargin.fit.exact.FEW_ROWS + 1, 3)
    MaxMarginClassifier(loss=loss).fit(sp.csr_matrix(X), y)
    assert len(calls) == 2


def test_nor_are_wide_many_or_huge_rows(calls, monkeypatch):
    X, y, _ = toy(60, 3)
    MaxMarginClassifier().fit(np.random.default_rng(0).normal(size=(60, 300)), y)
    MaxMarginClassifier().fit(1e100 * X, y)
    monkeypatch.setattr(maxmargin.fit.exact, "MANY_ROWS", 0)
    X, y, _ = toy(maxmargin.fit.exact.FEW_ROWS + 1, 3)
    MaxMarginClassifier(loss="hinge").fit(X, y)
    monkeypatch.setattr(maxmargin.fit.small_dense, "MAX_ROWS", maxmargin.fit.exact.FEW_ROWS)
    MaxMarginClassifier().fit(X, y)
    assert not calls


def test_more_rows_are_newtons_where_losses_are_squared(calls, monkeypatch):
    monkeypatch.setattr(maxmargin.fit.exact, "MANY_ROWS", 0)
    X, y, _ = toy(maxmargin.fit.exact.FEW_ROWS + 1, 3)
    model = MaxMarginClassifier().fit(X, y)
    assert len(calls) == 1
    (report,) = model.history_
    assert report.stage == "newton"
    assert report.reason == f"{len(X)} x 3, squared losses: Newton's method, whatever C and the scales are"
    assert verify(model, X, y).gap <= 1e-3


def test_a_model_to_begin_with_is_begun_with(calls):
    X, y, _ = toy(60, 3)
    model = MaxMarginClassifier(warm_start=True).fit(X, y)
    model.set_params(C=2.0).fit(X, y)
    assert len(calls) == 1


@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
@pytest.mark.parametrize("intercept", ["free", "augmented", "none"])
@pytest.mark.parametrize("C", [0.1, 1.0, 100.0])
def test_a_gap_that_is_never_reached_ends_at_the_optimum(loss, intercept, C):
    """Where no row enters or leaves the active set any more."""
    X, y, weights = toy(300, 5)
    problem = Problem(loss, C, intercept=intercept)
    rows = SmallDenseRows(problem, X)
    *_, exact = points(problem, rows, y, weights)
    *_, found = points(problem, rows, y, weights, 1e-300)
    for mine, theirs in zip(found[:3], exact[:3], strict=True):
        np.testing.assert_allclose(mine, theirs, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("seed", range(20))
def test_points_that_are_said_to_be_near_are_near(seed):
    """Also where columns are hardly told apart, and a factor has few digits."""
    X, y, weights = toy(2500, 8, seed)
    X[:, 4:] = X[:, :4] + 1e-5 * X[:, 4:]
    problem, tol = Problem("squared_hinge", 1e9, intercept="augmented"), 1e-6
    for w, b, alpha, _, near in points(problem, SmallDenseRows(problem, X), y, weights, tol):
        rows = np.hstack([X, np.ones((len(y), 1))]) * y[:, None]
        z, cost = np.append(w, b), 2.0 * problem.C * weights
        primal = 0.5 * z @ z + 0.5 * cost @ np.maximum(1.0 - rows @ z, 0.0) ** 2
        made = alpha @ rows
        dual = 0.5 * alpha.sum() ** 2 / (made @ made + (alpha * alpha / cost).sum())
        assert not near or primal - dual <= 2.0 * tol * dual


@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
def test_where_it_finds_nothing_others_do(loss, step_by_step):
    X, y, weights = toy(80, 4)
    problem = Problem(loss, 1.0)
    w, *_ = optimum(problem, SmallDenseRows(problem, X), y, weights)
    model = MaxMarginClassifier(loss=loss).fit(X, y, sample_weight=weights)
    assert model.coef_[0] == pytest.approx(w, rel=1e-10)


@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
@pytest.mark.parametrize("n", [3000, 12_000])
@pytest.mark.parametrize("tol", [1e-2, 1e-6])
def test_many_rows_end_where_tol_is_proved(loss, n, tol, calls):
    X, y, _ = toy(n, 5)
    model = MaxMarginClassifier(10.0, loss=loss, tol=tol).fit(X, y)
    assert len(calls) == 1
    assert model.history_[-1].reason.endswith("the first point that proves tol")
    assert verify(model, X, y).gap <= tol
    few = MaxMarginClassifier(10.0, loss=loss, tol=1e-10).fit(X, y)
    assert few.certificate_.lower >= model.certificate_.lower * (1.0 - 1e-12)
    assert few.certificate_.upper <= model.certificate_.upper * (1.0 + 1e-12)


@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
def test_a_claim_that_is_not_proved_is_followed_by_the_optimum(loss, monkeypatch):
    said = []

    def boast(point):
        said.append(point.near)
        return point._replace(w=0.9 * point.w) if point.near and said.count(True) == 1 else point

    change_points(monkeypatch, boast)
    X, y, _ = toy(3000, 5)
    model = MaxMarginClassifier(10.0, loss=loss).fit(X, y)
    assert True in said
    assert model.history_[-1].reason.endswith("the optimality conditions on the support")
    assert model.certificate_.gap <= 1e-9


@pytest.mark.parametrize("C", [1e3, 1e6])
def test_costs_rise_where_classes_are_far_apart(C, monkeypatch):
    """Newton's method alone would be long on its way."""
    stages, usual = [], newton._raise_costs
    monkeypatch.setattr(newton, "_raise_costs", lambda state: stages.append(1) or usual(state))
    X, y, weights = toy(300, 20)
    y = np.where(X @ np.random.default_rng(3).normal(size=20) > 0.0, 1.0, -1.0)
    problem, settings = Problem("squared_hinge", C), newton.Settings(direct_steps=5)
    *_, found = newton_points(problem, SmallDenseRows(problem, X), y, weights, settings=settings)
    assert stages
    assert wrong(problem, X, y, weights, *found[:3]) <= 1e-11


@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
def test_a_wrong_point_is_not_believed(loss, monkeypatch):
    """The certificate decides."""
    X, y, weights = toy(80, 4)
    right = MaxMarginClassifier(loss=loss).fit(X, y, sample_weight=weights)
    change_points(monkeypatch, lambda point: point._replace(w=point.w * 1.001))
    model = MaxMarginClassifier(loss=loss).fit(X, y, sample_weight=weights)
    assert model.coef_ == pytest.approx(right.coef_, rel=1e-9)


@pytest.mark.parametrize("n", [80, 3000])
@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
def test_what_proves_less_than_was_asked_for_is_kept(loss, n, monkeypatch):
    """As where time runs out, and others have none: its bounds are the fit's, and in the reports."""

    def last_point(problem, *task, **options):
        w, b, alpha = optimum(problem, *task[:3])
        deadlines[-1].stopped.set()
        yield Reached(w * 1.2, b, alpha, 0.0, False)

    deadlines, usual = [], maxmargin.fit.deadline.Deadline.__enter__
    monkeypatch.setattr(
        maxmargin.fit.deadline.Deadline,
        "__enter__",
        lambda deadline: deadlines.append(deadline) or usual(deadline),
    )
    for name in SOLVERS.values():
        monkeypatch.setattr(maxmargin.fit.small_dense, name, last_point)
    X, y, weights = toy(n, 4)
    model = MaxMarginClassifier(loss=loss, max_time=100.0).fit(X, y, sample_weight=weights)
    assert model.status_ is Status.INTERRUPTED
    assert 1e-5 < model.certificate_.gap < 0.1
    assert model.history_[0].gap == model.certificate_.gap
    verify(model, X, y, sample_weight=weights)


def test_costs_that_vanish_are_left_to_others():
    X, y, _ = toy(60, 3)
    model = MaxMarginClassifier(1e-250, loss="hinge").fit(1e-40 * X, y)
    assert model.status_ is Status.CERTIFIED


@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
def test_steps_without_an_end_end(loss):
    """NaN leads nowhere, and soon."""
    problem = Problem(loss, 1.0)
    X, y, weights = toy(20, 3)
    rows = SmallDenseRows(problem, X)
    rows.rows[3, 1] = np.nan
    found = list(points(problem, rows, y, weights))
    assert len(found) <= 2
    assert not any(point.gap < np.inf for point in found)


@given(problem=cases(sparse=False, loss="squared_hinge"), pick=st.randoms(use_true_random=False))
def test_the_matrix_follows_the_active_set(problem, pick):
    """From set to set, as if it were made anew each time."""
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
        made = some.T @ (costs[active, None] * some)
        off = np.abs(hessian.regularised(active, sigma) - sigma * made - np.diag(rows.regular))
        assert off.max(initial=0.0) <= 1e-12 * (1.0 + sigma * size)
        update_hessian(rows.rows, costs, np.array([active, inside]), places, largest, matrix, columns)
        inside[:] = active
        off = np.abs(np.tril(matrix - made))
        assert off.max(initial=0.0) <= 1e-12 * size
        assert (np.diag(off) <= 1e-11 * np.diag(made)).all()


@pytest.mark.parametrize("n", [1, 2, 3, 4, 5, 9])
def test_products_with_vectors(n):
    rng = np.random.default_rng(n)
    for d in (1, 8, 9, 101):  # narrow rows, and others
        rows, z, c = rng.normal(size=(n, d)), rng.normal(size=d), rng.normal(size=n)
        out, sums, part = np.empty(n), np.ones(d), np.empty(d)
        scores(rows, z, out)
        assert out == pytest.approx(rows @ z)
        scores_in_cache(rows, z, out)
        assert out == pytest.approx(rows @ z)
        c[n // 2] = 0.0
        add_combined(rows, c, np.empty(n, np.uint32), part, sums)
        assert sums == pytest.approx(1.0 + c @ rows)
