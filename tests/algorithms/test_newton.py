"""Newton's method for the squared hinge: directions against NumPy, final points against Clarabel."""

from __future__ import annotations

import tracemalloc
from functools import partial
from itertools import islice
from unittest.mock import Mock

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from oracle import optimum

import maxmargin.algorithms.programs
import maxmargin.fit.certifier
import maxmargin.fit.driver
import maxmargin.fit.exact
import maxmargin.fit.run
import maxmargin.fit.small_dense
from maxmargin import MaxMarginClassifier, Newton, Problem, Status, verify
from maxmargin.algorithms.batch import centred_rows, semismooth, semismooth_steps
from maxmargin.algorithms.batch.newton import Settings, _State, newton_points
from maxmargin.algorithms.batch.semismooth import ActiveHessian
from maxmargin.algorithms.batch.semismooth_steps import DIRECTION, FAILED, GOES_ON, line_minimum
from maxmargin.data.rows import Patterns
from maxmargin.data.task import Task
from maxmargin.fit.tracker import dual_point, primal_point

INTERCEPTS = ("free", "augmented", "none")
STORES = {
    "dense": np.asarray,
    "csr": sp.csr_matrix,
    "float32": lambda X: X.astype(np.float32),
    "csr32": lambda X: sp.csr_matrix(X.astype(np.float32)),
}


def toy(n: int, d: int, seed: int = 0, far: float = 1.0):
    """Rows in single precision, noisy labels of a linear rule, and weights."""
    rng = np.random.default_rng(seed)
    X = (rng.normal(size=(n, d)) + far * rng.normal(size=d)).astype(np.float32).astype(float)
    y = np.where((X - X.mean(axis=0)) @ rng.normal(size=d) + rng.normal(size=n) > 0.0, 1.0, -1.0)
    return X, y, rng.integers(1, 4, size=n) / 2.0


def bounds_of(problem: Problem, X, y, weights, **settings) -> tuple[float, float]:
    """The best bounds of all iterates."""
    task = Task(problem, Patterns(X), y, weights)
    lower, upper = -np.inf, np.inf
    for w, b, alpha, *_ in newton_points(problem, X, y, weights, settings=Settings(**settings)):
        assert (alpha >= 0.0).all()
        lower, upper = max(lower, dual_point(task, alpha)[1]), min(upper, primal_point(task, w, b)[2])
    return lower, upper


def never() -> bool:
    return False


def newton_state(problem: Problem, X, y, weights, **settings) -> _State:
    """The state of Newton's method at z = 0."""
    rows = centred_rows.centred_rows(problem, X)
    state = _State(rows, y, rows.unit**2 / problem.delta2(weights), np.inf, never, Settings(**settings))
    state.start_at(np.zeros(rows.size))
    return state


def take_step(state: _State) -> bool:
    """Take a step, unless the iteration has ended; return whether the iteration has not failed."""
    state.advance(1)
    return state.status != FAILED


@pytest.mark.parametrize("storage", STORES)
@pytest.mark.parametrize("intercept", INTERCEPTS)
def test_the_direction_equals_the_newton_direction(intercept, storage, monkeypatch):
    """From an arbitrary point: -H^-1 g of the objective by its definition, in the units of the problem."""
    monkeypatch.setattr(centred_rows, "CHUNK_BYTES", 1000)  # several chunks
    X, y, weights = toy(70, 5)
    problem = Problem("squared_hinge", 3.0, intercept=intercept, intercept_scaling=2.0)
    rng = np.random.default_rng(1)
    w, b = 0.3 * rng.normal(size=5), 0.0 if intercept == "none" else 0.2
    rho = {"free": 1.0, "augmented": 2.0, "none": 0.0}[intercept]
    full = np.column_stack([X, np.full(70, rho)])[:, : 5 + (rho > 0.0)]
    R = np.diag([1.0] * 5 + [0.0 if intercept == "free" else 1.0])[: full.shape[1], : full.shape[1]]
    v = np.append(w, b / (rho or 1.0))[: full.shape[1]]
    slack = 1.0 - y * (full @ v)
    costs = 2.0 * problem.C * weights * (slack > 0.0)
    assert 0 < np.count_nonzero(costs) < 70
    expected = -np.linalg.solve(R + (full.T * costs) @ full, R @ v - full.T @ (costs * y * slack))

    for columns in (1000, 0):  # by Cholesky factorisation, by conjugate gradients
        state = newton_state(
            problem,
            STORES[storage](X),
            y,
            weights,
            max_columns=columns,
            min_residual=1e-12,
            max_residual=1e-12,
        )
        state.start_at(state.rows.coordinates(w, b))
        directions = [state.direction()]
        state.advance(1)  # by compiled code if rows are dense
        directions.append(state.vectors[DIRECTION])
        for dw, db in map(state.rows.primal, directions):
            assert dw == pytest.approx(expected[:5], rel=1e-7, abs=1e-9)
            assert db == pytest.approx(rho * expected[5:].sum(), rel=1e-7, abs=1e-9)


@pytest.mark.parametrize("storage", ["dense", "csr"])
def test_hessian_updates_equal_a_recomputed_hessian(storage, monkeypatch):
    """Including changes that remove rows of nearly the whole weight."""
    X, y, _ = toy(60, 4)
    weights = np.where(np.arange(60) < 5, 1e9, 1.0)
    monkeypatch.setattr(semismooth_steps, "SMALL_PRODUCT", 0)  # else the matrix is recomputed each time
    state = newton_state(Problem("squared_hinge", 1.0), STORES[storage](X), y, weights)
    rng = np.random.default_rng(0)
    system = ActiveHessian(state.rows, state.costs, never)
    active = np.ones(60, bool)
    for k in range(8):
        followed = system.regularised(active)
        fresh = ActiveHessian(state.rows, state.costs, never).regularised(active)
        assert (np.abs(followed - fresh) <= 1e-12 * np.sqrt(np.outer(np.diag(fresh), np.diag(fresh)))).all()
        active = active.copy()
        active[:5] = k % 2 == 1
        some = rng.integers(5, 60, size=4)
        active[some] = ~active[some]


def test_line_minimum_is_where_the_slope_changes_sign():
    """Of a piecewise quadratic function, kinks included."""
    rng = np.random.default_rng(3)
    for _ in range(50):
        slack, step, share = rng.normal(size=40), rng.normal(size=40), rng.random(40)

        def slope(t, slack=slack, step=step, share=share):
            return -0.3 + 0.7 * t - share @ (step * np.maximum(slack - t * step, 0.0))

        if slope(0.0) >= 0.0:
            continue
        zero = np.zeros(40)
        t = line_minimum(1.0, np.inf, np.array([zero, share, zero, slack, zero, step]), -0.3, 0.7, 0.0)
        assert slope(t - 1e-9) < 0.0 < slope(t + 1e-9)


@pytest.mark.parametrize("wide", [0, 1000])
@pytest.mark.parametrize("C", [1e-3, 1.0, 1e3])
@pytest.mark.parametrize("intercept", INTERCEPTS)
@pytest.mark.parametrize("condition", ["none", "scales", "collinear", "far", "sparse", "separable"])
def test_bounds_meet_at_the_optimum(condition, intercept, C, wide):
    """By Cholesky and by conjugate gradients: the bounds contain the optimum, with a gap of 1e-9 at most."""
    X, y, weights = toy(60, 4, seed=1)
    if condition == "scales":
        X = X * 10.0 ** np.array([-6.0, -1.0, 1.0, 3.0])
    elif condition == "collinear":
        X[:, 3] = X[:, 2] + 1e-7 * X[:, 3]
    elif condition == "far":
        X[:, 1] += 1e3
    elif condition == "sparse":
        X = np.where(np.random.default_rng(2).random(X.shape) < 0.4, X, 0.0)
    elif condition == "separable":
        y = np.where(X[:, 0] > X[:, 0].mean(), 1.0, -1.0)
    problem = Problem("squared_hinge", C, intercept=intercept)
    lower, upper = bounds_of(
        problem, sp.csr_matrix(X) if condition == "sparse" else X, y, weights, max_columns=wide
    )
    truth = optimum(problem, X, y, weights)
    assert lower <= truth.upper * (1 + 1e-12)
    assert upper >= truth.lower * (1 - 1e-12)
    assert problem.gap(lower, upper) <= 1e-9


@given(
    st.integers(0, 10**6),
    st.integers(2, 60),
    st.integers(1, 8),
    st.sampled_from(INTERCEPTS),
    st.floats(-6.0, 9.0),
    st.floats(0.0, 3.0),
    st.floats(0.0, 6.0),
    st.booleans(),
)
def test_bounds_close_for_extreme_scales(seed, n, d, intercept, log_C, columns, rows, copies):
    """Columns, weights and C (1e-6 to 1e9) of many sizes, repeated rows and columns: bounds are ordered and close."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d)) * 10.0 ** rng.uniform(-columns, columns, d)
    y = np.where(rng.random(n) < 0.5, 1.0, -1.0)
    y[:2] = 1.0, -1.0
    if copies:
        X[n // 2 :], X[:, -1] = X[: n - n // 2], X[:, 0]
    weights = 10.0 ** rng.uniform(-rows, rows, n)
    problem = Problem("squared_hinge", 10.0**log_C, intercept=intercept)
    lower, upper = bounds_of(problem, X, y, weights)
    # rounding errors of slacks in float64: an ulp of a margin, in dual variables C s times as large
    lost = (2.0 * problem.C * weights.max() * (X * X).sum(axis=1).max() + 1.0) * 1e-16
    assert lower <= upper * (1 + 1e-9)
    if lost <= 1e-4:
        assert problem.gap(lower, upper) <= 1e-7


def test_large_data_start_from_a_sample_and_reach_the_same_bounds(monkeypatch):
    """A start from samples gives a smaller first gap and the same final bounds."""
    X, y, weights = toy(3000, 6, seed=2)
    problem = Problem("squared_hinge", 1e3)
    recorded_steps, advance = [], _State.advance

    def recorded(self, steps, goal=-1.0):
        taken = advance(self, steps, goal)
        recorded_steps.append((self.y.size, self.gap))
        return taken

    monkeypatch.setattr(_State, "advance", recorded)
    found, first_gaps = [], []
    for sample_from in (10**9, 100):
        recorded_steps.clear()
        found.append(bounds_of(problem, X, y, weights, min_sample_rows=sample_from))
        first_gaps.append(next(gap for n, gap in recorded_steps if n == 3000))
    assert found[0] == pytest.approx(found[1], rel=1e-12)
    assert problem.gap(*found[1]) <= 1e-12
    assert {n for n, _ in recorded_steps} == {3000, 188, 12}
    assert first_gaps[1] < 0.1 * first_gaps[0]


@pytest.mark.parametrize("storage", STORES)
@pytest.mark.parametrize("intercept", INTERCEPTS)
def test_bfgs_steps_from_the_hessian_of_a_sample_reach_the_gap(intercept, storage, monkeypatch):
    """Without a step of Newton's method over all rows; without BFGS steps the final bounds are the same."""
    monkeypatch.setattr(centred_rows, "COPY_BYTES", 0)
    directions, direction = [], _State.direction
    monkeypatch.setattr(_State, "direction", lambda self: directions.append(self.y.size) or direction(self))
    X, y, weights = toy(16_000, 4, seed=3)
    X = STORES[storage](X)
    problem = Problem("squared_hinge", 1.0, intercept=intercept)
    first = next(newton_points(problem, X, y, weights, tol=1e-6, settings=Settings(min_sample_rows=8000)))
    assert first.near
    assert set(directions) == {1000}
    found = [
        bounds_of(problem, X, y, weights, min_sample_rows=8000, bfgs_steps=steps)
        for steps in (Settings.bfgs_steps, 0)
    ]
    assert found[0] == pytest.approx(found[1], rel=1e-10)
    assert problem.gap(*found[0]) <= 1e-10


@pytest.mark.parametrize("storage", STORES)
@pytest.mark.parametrize("intercept", INTERCEPTS)
@pytest.mark.parametrize("copied", [True, False])
def test_fused_pass_equals_separate_products(copied, intercept, storage, monkeypatch):
    if not copied:
        monkeypatch.setattr(centred_rows, "COPY_BYTES", 0)
    X, y, weights = toy(3000, 5, seed=4)
    problem = Problem("squared_hinge", 1.0, intercept=intercept)
    rows = centred_rows.centred_rows(problem, STORES[storage](X))
    state = _State(rows, y, 2.0 * weights * rows.unit**2, np.inf, never, Settings())
    z = np.linspace(-1.0, 1.0, rows.size)
    state.go_to(z)
    slack = 1.0 - y * rows.scores(z)
    alpha = state.costs * np.maximum(slack, 0.0)
    assert state.slack == pytest.approx(slack, rel=1e-12, abs=1e-12)
    assert state.alpha() == pytest.approx(alpha / rows.unit**2, rel=1e-12, abs=1e-12)
    assert state.dual_sum == pytest.approx(rows.combine(y * alpha), rel=1e-10, abs=1e-10)
    assert state.gradient == pytest.approx(rows.regular * z - state.dual_sum, rel=1e-10, abs=1e-10)
    assert (state.active == (slack > 0.0)).all()


def test_results_do_not_depend_on_the_number_of_threads():
    X = np.random.default_rng(0).normal(size=(15_000, 60)) + 1.0  # too large for a centred copy
    y = np.random.default_rng(1).integers(3, size=15_000)
    options = {"C": 100.0, "tol": 1e-10, "algorithm": "newton"}
    one, two = (MaxMarginClassifier(**options, n_jobs=jobs).fit(X, y) for jobs in (1, 2))
    assert one.coef_.tobytes() == two.coef_.tobytes()
    assert one.status_ is two.status_ is Status.CERTIFIED


def test_classes_share_centred_rows_and_their_statistics(monkeypatch):
    """Mean, unit and long rows are computed once for all classes."""
    monkeypatch.setattr(maxmargin.fit.exact, "MAX_ROWS_TO_TOL", 0)
    monkeypatch.setattr(maxmargin.fit.small_dense, "MAX_ROWS", 0)
    rng, computed = np.random.default_rng(0), []
    X, y = rng.normal(size=(4000, 5)) + 3.0, rng.integers(4, size=4000)
    blocks, squares = centred_rows.CentredRows.__init__, centred_rows._squares

    def recorded_init(self, problem, X, like=None, square=None):
        computed.append(len(X))
        blocks(self, problem, X, like, square)
        variance = float(((X - self.mean) ** 2).sum()) / len(X)
        assert like is not None or self.unit == pytest.approx(variance**0.5, rel=1e-12)

    monkeypatch.setattr(centred_rows.CentredRows, "__init__", recorded_init)
    monkeypatch.setattr(centred_rows, "_squares", lambda parts: computed.append("squares") or squares(parts))
    model = MaxMarginClassifier(algorithm="newton").fit(X, y)
    assert model.status_ is Status.CERTIFIED
    assert computed == [4000]


@pytest.mark.parametrize("condition", ["one class", "sorted", "every 16th is longer", "outliers"])
def test_unrepresentative_samples_do_not_change_the_optimum(condition, monkeypatch):
    """At most 40 passes over all rows, and the bounds of a start without a sample."""
    X, y, weights = toy(4000, 5, seed=8)
    every = np.arange(4000) % 16 == 0
    if condition == "one class":
        y[every] = 1.0
    elif condition == "sorted":
        order = np.lexsort((X[:, 0], y))
        X, y = X[order], y[order]
    elif condition == "every 16th is longer":
        X[every] *= 1e3
    else:
        X[np.arange(4000) % 1000 == 1] *= 1e6
    problem, row_counts, advance = Problem("squared_hinge", 1.0), [], _State.advance

    def recorded(self, steps, goal=-1.0):
        taken = advance(self, steps, goal)
        row_counts.extend([self.y.size] * max(1, taken))
        return taken

    monkeypatch.setattr(_State, "advance", recorded)
    lower, upper = bounds_of(problem, X, y, weights, min_sample_rows=1000)
    assert problem.gap(lower, upper) <= 1e-10
    assert row_counts.count(4000) <= 40
    assert (lower, upper) == pytest.approx(bounds_of(problem, X, y, weights), rel=1e-10)


def test_row_subsets_keep_unit_and_scores():
    X = np.random.default_rng(1).normal(size=(400, 3)) + 5.0
    for rows in (X, sp.csr_array(X), X.astype(np.float32)):
        blocks = centred_rows.CentredRows(Problem("squared_hinge", 1.0), rows)
        some = blocks.subset(slice(None, None, 16))
        z = np.array([0.3, -0.2, 0.1, 0.7])
        assert some.n == 25
        assert some.unit == blocks.unit
        assert some.scores(z) == pytest.approx(blocks.scores(z)[::16])


def test_continuation_in_the_costs_reaches_the_same_optimum():
    """Separable classes and large C: with or without continuation, the same final bounds."""
    rng = np.random.default_rng(0)
    X = np.where(rng.random((300, 40)) < 0.2, 1.0, 0.0)
    y = np.where(X @ rng.normal(size=40) > 0.0, 1.0, -1.0)
    problem, ends = Problem("squared_hinge", 1e4), []
    for direct_steps in (1, 100):
        ends.append(bounds_of(problem, sp.csr_matrix(X), y, np.ones(300), direct_steps=direct_steps))
        assert problem.gap(*ends[-1]) <= 1e-10
    assert ends[0] == pytest.approx(ends[1], rel=1e-9)


@pytest.mark.parametrize("storage", ["dense", "csr", "float32"])
def test_estimator_is_certified(rules_alone, storage):
    X, y, weights = toy(200, 5, seed=4)
    model = MaxMarginClassifier(2.0, loss="squared_hinge", algorithm="newton", tol=1e-8)
    model.fit(STORES[storage](X), y, weights)
    assert model.status_ is Status.CERTIFIED
    assert {report.stage for report in model.history_} == {"newton"}
    truth = optimum(Problem("squared_hinge", 2.0), X, y, weights)
    assert model.certificate_.lower <= truth.upper
    assert model.certificate_.upper >= truth.lower


@pytest.mark.parametrize(("wide", "storage"), [(1000, "dense"), (1000, "csr"), (0, "dense"), (0, "csr")])
def test_peak_memory_is_below_half_of_the_data(wide, storage):
    """Temporaries: a few vectors of n numbers, a sample, and chunks of rows of a megabyte."""
    X, y, weights = toy(40_000, 60)
    stored = STORES[storage](X)
    problem = Problem("squared_hinge", 1.0)
    next(newton_points(problem, stored[:100], y[:100], weights[:100]))  # compiled
    tracemalloc.start()
    for _ in islice(newton_points(problem, stored, y, weights, settings=Settings(max_columns=wide)), 3):
        pass
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 0.5 * X.nbytes


@pytest.mark.parametrize("wide", [0, 1000])
@pytest.mark.parametrize("patience", [0, 1, 5, 20, 60])
def test_interrupt_stops_the_iteration(patience, wide):
    """After any number of polls: the last iterate is yielded and finite."""
    settings = Settings(max_columns=wide, min_sample_rows=300)
    X, y, weights = toy(500, 8)
    polls = []

    def interrupted() -> bool:
        polls.append(None)
        return len(polls) > patience

    yielded = list(
        newton_points(Problem("squared_hinge", 1e6), X, y, weights, interrupted, settings=settings)
    )
    assert yielded
    assert np.isfinite(yielded[-1][0]).all()
    assert len(polls) <= patience + 10


@pytest.mark.parametrize("condition", ["none", "scales", "rare"])
@pytest.mark.parametrize("C", [1e-3, 1.0, 1e3])
@pytest.mark.parametrize("intercept", INTERCEPTS)
def test_reported_gap_bounds_the_true_gap(intercept, C, condition):
    """An iterate reported as near has a gap within the tolerance by two passes over the rows, up to rounding."""
    X, y, weights = toy(400, 4, seed=3)
    if condition == "scales":
        X = X * 10.0 ** np.array([-6.0, -2.0, 3.0, 6.0])
    elif condition == "rare":  # an intercept of large magnitude
        X, y = 30.0 * X, np.where(X[:, 0] + X[:, 1] > np.quantile(X[:, 0] + X[:, 1], 0.97), 1.0, -1.0)
    problem = Problem("squared_hinge", C, intercept=intercept)
    task, descent = Task(problem, Patterns(X), y, weights), newton_state(problem, X, y, weights)
    near, rounding = [], []
    for _ in range(30):
        w, b, alpha, _, _ = descent.iterate(0.0)
        rounding.append(balance_by_rounding(problem, X, weights, w, b, alpha))
        gap = problem.gap(dual_point(task, alpha)[1], primal_point(task, w, b)[2])
        accepted = [tol for tol in 10.0 ** np.arange(-9.0, 4.0, 0.25) if descent.iterate(tol).near]
        assert gap <= min(accepted, default=np.inf) + 1e-10
        near.append(min(accepted, default=np.inf))
        if descent.status != GOES_ON or not take_step(descent):
            break
    assert min(near) <= 1e-9 + 10.0**0.25 * rounding[np.argmin(near)]  # tolerances are a factor 10^0.25 apart
    assert max(near) > 1e-2


def balance_by_rounding(problem: Problem, X, weights, w, b, alpha) -> float:
    """The cost of a free intercept, as a share of the optimum, where the balance sum y alpha is 0 up to rounding.

    With c = 2 C weight, the dual weight of a slack is c times the slack. A slack is known to (d + 3) eps times the sum
    of the magnitudes of its terms, and the solution of a system of d + 1 equations leaves a residual of as much as
    3 (d + 1) + 1 such errors (Higham, Accuracy and Stability of Numerical Algorithms, Theorem 10.4). An error of the
    balance is charged 1 + |b + mean.w| times; the optimum is half the sum of the dual weights.
    """
    if not problem.free:
        return 0.0
    mean, d = X.mean(axis=0), X.shape[1]
    magnitude = 1.0 + (np.abs(X) + np.abs(mean)) @ np.abs(w) + abs(b)
    error = (4 * d + 7) * np.finfo(float).eps * magnitude * 2.0 * problem.C * weights
    return float(error[alpha > 0.0].sum() * (1.0 + abs(b + mean @ w)) / (0.5 * alpha.sum()))


def test_false_claims_are_corrected_by_the_certificate(monkeypatch):
    """The certificate decides before anything is reported, and the best bounds so far are kept."""
    X, y, weights = toy(2500, 100)
    iterate, gaps = _State.iterate, []

    def overclaim(self, tol):
        gaps.append(iterate(self, tol).gap)
        return iterate(self, tol)._replace(near=True)

    truth = verify(MaxMarginClassifier(1.0, loss="squared_hinge", tol=1e-9).fit(X, y, weights), X, y, weights)
    assert truth.gap <= 1e-9
    monkeypatch.setattr(_State, "iterate", overclaim)
    frequent_reports = partial(newton_points, settings=Settings(report_steps=1))
    monkeypatch.setattr(maxmargin.algorithms.programs, "newton_points", frequent_reports)
    model = MaxMarginClassifier(1.0, loss="squared_hinge", tol=1e-6).fit(X, y, weights)
    assert model.status_ is Status.CERTIFIED
    assert model.certificate_.gap <= 1e-6
    assert gaps[0] > 1e-5
    assert len(model.history_) > 1
    for report in model.history_:
        assert report.lower <= truth.upper
        assert report.upper >= truth.lower
    early = MaxMarginClassifier(1.0, loss="squared_hinge", tol=1e-6, max_iter=1).fit(X, y, weights)
    assert early.status_ is Status.MAX_ITER
    assert early.certificate_.gap <= early.history_[-1].gap * (1.0 + 1e-6)


def test_an_iterate_within_tolerance_is_evaluated_once(monkeypatch):
    """By its certificate alone: two passes over the rows and no further evaluation."""
    X, y, weights = toy(2500, 100)
    counted = Mock(wraps=maxmargin.fit.certifier.certify)
    monkeypatch.setattr(maxmargin.fit.certifier, "certify", counted)
    monkeypatch.setattr(maxmargin.fit.run.Run, "evaluate", None)
    model = MaxMarginClassifier(1.0, loss="squared_hinge", tol=1e-6).fit(X, y, weights)
    assert model.status_ is Status.CERTIFIED
    assert {report.stage for report in model.history_} == {"newton"}
    assert counted.call_count == 1


def test_failed_factorisation_falls_back_on_steepest_descent(monkeypatch):
    """Steepest descent in the scale of the columns still closes the gap to 1e-6."""
    monkeypatch.setattr(semismooth, "factor", lambda *task: None)
    X, y, weights = toy(50, 2, far=0.0)
    problem = Problem("squared_hinge", 0.1)
    lower, upper = bounds_of(problem, sp.csr_matrix(X), y, weights)
    assert problem.gap(lower, upper) <= 1e-6


def test_unsupported_problems_are_refused():
    with pytest.raises(ValueError, match="a finite C"):
        MaxMarginClassifier(np.inf, algorithm="newton").fit(*toy(20, 2)[:2])
    assert Newton().refuses(Problem("hinge", 1.0)) == 'loss="squared_hinge"'
    assert Newton().refuses(Problem("squared_hinge", 1.0, 3.0)) == "p=2 with norm_power=2"


def test_scaled_costs_equal_the_problem_of_smaller_C():
    X, y, weights = toy(50, 3)
    state = newton_state(Problem("squared_hinge", 10.0), X, y, weights)
    other = newton_state(Problem("squared_hinge", 0.1), X, y, weights)
    state.start_at(state.z, 0.01)
    for _ in range(3):
        assert state.gap == pytest.approx(other.gap)
        assert state.iterate(0.0).alpha == pytest.approx(other.iterate(0.0).alpha)
        assert take_step(state) is take_step(other)
