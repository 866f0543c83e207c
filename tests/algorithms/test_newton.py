"""Newton's method for the squared hinge: directions by the definition, starts from samples, BFGS steps, stages."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from problems import bounds_of, conditioned

from maxmargin import MaxMarginClassifier, Problem, Status
from maxmargin.algorithms.batch import semismooth
from maxmargin.algorithms.batch.newton import Settings, _State, newton_points
from maxmargin.algorithms.batch.semismooth_steps import DIRECTION
from maxmargin.algorithms.linear_algebra import centred_rows

INTERCEPTS = ("free", "augmented", "none")
STORES = {
    "dense": np.asarray,
    "csr": sp.csr_matrix,
    "float32": lambda X: X.astype(np.float32),
    "csr32": lambda X: sp.csr_matrix(X.astype(np.float32)),
}


def best_bounds(problem: Problem, X, y, weights, **settings) -> tuple[float, float]:
    """The best bounds of all iterates."""
    points = newton_points(problem, X, y, weights, settings=Settings(**settings))
    found = np.array([bounds_of(problem, X, y, weights, *point[:3]) for point in points])
    return found[:, 0].max(), found[:, 1].min()


def newton_state(problem: Problem, X, y, weights, **settings) -> _State:
    """The state of Newton's method, without a point."""
    rows = centred_rows.centred_rows(problem, X)
    costs = rows.unit**2 / problem.delta2(weights)
    return _State(rows, y, costs, np.inf, lambda: False, Settings(**settings))


@pytest.fixture
def visits(monkeypatch):
    """The numbers of rows of all steps, and the gap after them."""
    taken, advance = [], _State.advance

    def recorded(self, steps, goal=-1.0):
        made = advance(self, steps, goal)
        taken.extend([(self.y.size, self.gap)] * max(1, made))
        return made

    monkeypatch.setattr(_State, "advance", recorded)
    return taken


@pytest.mark.parametrize("storage", STORES)
@pytest.mark.parametrize("intercept", INTERCEPTS)
def test_the_direction_equals_the_newton_direction(intercept, storage, monkeypatch):
    """From an arbitrary point: -H^-1 g of the objective by its definition, in the units of the problem."""
    monkeypatch.setattr(centred_rows, "CHUNK_BYTES", 1000)  # several chunks
    X, y, weights = conditioned("plain", 70, 5, 0)
    problem = Problem("squared_hinge", 3.0, intercept=intercept, intercept_scaling=2.0)
    w, b = 0.3 * np.random.default_rng(1).normal(size=5), 0.0 if intercept == "none" else 0.2
    rho = {"free": 1.0, "augmented": 2.0, "none": 0.0}[intercept]
    full = np.column_stack([X, np.full(70, rho)])[:, : 5 + (rho > 0.0)]
    R = np.diag([1.0] * 5 + [0.0 if intercept == "free" else 1.0])[: full.shape[1], : full.shape[1]]
    v = np.append(w, b / (rho or 1.0))[: full.shape[1]]
    slack = 1.0 - y * (full @ v)
    costs = 2.0 * problem.C * weights * (slack > 0.0)
    assert 0 < np.count_nonzero(costs) < 70
    expected = -np.linalg.solve(R + (full.T * costs) @ full, R @ v - full.T @ (costs * y * slack))
    for columns in (1000, 0):  # by Cholesky factorisation, by conjugate gradients
        accurate = {"min_residual": 1e-12, "max_residual": 1e-12}  # times a condition of at most 100
        state = newton_state(problem, STORES[storage](X), y, weights, max_columns=columns, **accurate)
        state.start_at(state.rows.coordinates(w, b))
        directions = [state.direction()]
        state.advance(1)  # by compiled code if rows are dense
        directions.append(state.vectors[DIRECTION])
        for dw, db in map(state.rows.primal, directions):
            assert dw == pytest.approx(expected[:5], rel=1e-10, abs=1e-11)
            assert db == pytest.approx(rho * expected[5:].sum(), rel=1e-10, abs=1e-11)


@pytest.mark.parametrize("condition", ["plain", "one class", "sorted", "every 16th is longer", "outliers"])
def test_starts_from_samples_reach_the_same_bounds(condition, visits):
    """Samples of any quality; if they are representative, the first gap of all rows is small."""
    X, y, weights = conditioned("plain", 3000, 5, 8)
    every, problem = np.arange(3000) % 16 == 0, Problem("squared_hinge", 1e3 if condition == "plain" else 1.0)
    if condition == "one class":
        y[every] = 1.0
    elif condition == "sorted":
        order = np.lexsort((X[:, 0], y))
        X, y = X[order], y[order]
    elif condition == "every 16th is longer":
        X[every] *= 1e3
    elif condition == "outliers":
        X[np.arange(3000) % 1000 == 1] *= 1e6
    whole = best_bounds(problem, X, y, weights)
    first_gap = visits[0][1]
    visits.clear()
    sampled = best_bounds(problem, X, y, weights, min_sample_rows=100)
    sizes = [n for n, _ in visits]
    assert problem.gap(*sampled) <= 1e-10
    assert sampled == pytest.approx(whole, rel=1e-10)
    assert {3000, 188, 12} >= set(sizes) > {3000}
    assert sizes.count(3000) <= 40
    assert condition != "plain" or visits[sizes.index(3000)][1] < 0.1 * first_gap


@pytest.mark.parametrize(("storage", "intercept"), list(zip(STORES, (*INTERCEPTS, "free"), strict=True)))
def test_bfgs_steps_from_the_hessian_of_a_sample_reach_the_gap(intercept, storage, monkeypatch):
    """Without a Newton step over all rows; without BFGS steps the final bounds are the same."""
    monkeypatch.setattr(centred_rows, "COPY_BYTES", 0)
    directions, direction = [], _State.direction
    monkeypatch.setattr(_State, "direction", lambda self: directions.append(self.y.size) or direction(self))
    X, y, weights = conditioned("plain", 16_000, 4, 3)
    X, problem = STORES[storage](X), Problem("squared_hinge", 1.0, intercept=intercept)
    first = next(newton_points(problem, X, y, weights, tol=1e-4, settings=Settings(min_sample_rows=8000)))
    assert first.near
    assert set(directions) == {1000}
    for point in newton_points(problem, X, y, weights, tol=1e-6, settings=Settings(min_sample_rows=8000)):
        gap = problem.gap(*bounds_of(problem, X, y, weights, *point[:3]))  # of balanced dual weights
        assert not point.near or gap <= 1e-6 * (1.0 + 1e-6)
    found = [best_bounds(problem, X, y, weights, min_sample_rows=8000, bfgs_steps=steps) for steps in (8, 0)]
    assert found[0] == pytest.approx(found[1], rel=1e-10)
    assert problem.gap(*found[0]) <= 1e-10


def test_failed_factorisation_falls_back_on_steepest_descent(monkeypatch):
    """In the scale of the columns."""
    monkeypatch.setattr(semismooth, "factor", lambda *task: None)
    X, y, weights = conditioned("plain", 50, 2, 0)
    problem = Problem("squared_hinge", 0.1)
    assert problem.gap(*best_bounds(problem, sp.csr_matrix(X - X.mean(axis=0)), y, weights)) <= 1e-6


def test_results_do_not_depend_on_the_number_of_threads():
    X = np.random.default_rng(0).normal(size=(15_000, 60)) + 1.0  # too large for a centred copy
    y = np.random.default_rng(1).integers(3, size=15_000)
    options = {"C": 100.0, "tol": 1e-10, "algorithm": "newton"}
    one, two = (MaxMarginClassifier(**options, n_jobs=jobs).fit(X, y) for jobs in (1, 2))
    assert one.coef_.tobytes() == two.coef_.tobytes()
    assert one.status_ is two.status_ is Status.CERTIFIED
