"""Exact solvers for norms other than p = 2: bounds of their points enclose the optimum and meet."""

from __future__ import annotations

from functools import partial
from itertools import product

import numpy as np
import pytest
import scipy.sparse as sp
from effort import THOROUGH, examples, thorough
from oracle import Interval, optimum_in_norm

from maxmargin import Problem
from maxmargin.algorithms.batch import diagonal_plus_gram, generation
from maxmargin.algorithms.batch.barrier import path_points
from maxmargin.algorithms.batch.generation import Settings, column_points, linear_points

ROUNDING = 1e-12
SOFT = tuple(product(("hinge", "squared_hinge"), (0.01, 1.0, 100.0), (2, 1)))
KINDS = ("separable", "mixed", "scaled", "copies", "far")


def sample(n, d, kind, seed):
    """(X, y, weights) of one kind."""
    rng = np.random.default_rng([seed, n, d])
    X, y = rng.normal(size=(n, d)), np.where(rng.random(n) < 0.5, 1.0, -1.0)
    y[:2] = 1.0, -1.0
    if kind == "separable":
        X += np.outer(y, rng.normal(size=d)) * 1.5
    elif kind == "scaled":
        X *= 10.0 ** rng.uniform(-3, 3, d)
    elif kind == "copies":  # also contradictory copies, equal columns and a row of zeros
        X[n // 2 :] = X[: n - n // 2]
        X[3], X[:, 0] = 0.0, X[:, -1]
    elif kind == "far":
        X += 20.0 + 0.5 * y[:, None]
    else:
        X += 0.5 * y[:, None]
    return X, y, rng.choice([0.5, 1.0, 2.0], n)


def some_of(combinations: list, turn: int, k: int) -> list:
    """Return every k-th combination, starting with number `turn`; all in a thorough run."""
    return combinations if THOROUGH else combinations[turn % k :: k]


def size(x, r):
    """|x|_r."""
    return float(np.linalg.norm(x / (np.abs(x).max() or 1.0), r) * (np.abs(x).max() or 1.0))


def bounds_of(problem: Problem, X, y, s, w, b, alpha) -> tuple[float, float]:
    """Return the bounds of a point: margin and |v| / sum alpha, or dual and primal objective."""
    p, q = problem.p, problem.q
    a = np.minimum(alpha, problem.caps(s))
    assert (a >= 0.0).all()
    assert (alpha <= problem.caps(s) * (1.0 + ROUNDING)).all()
    a = problem.balanced(y, a) if problem.free else a
    a = np.zeros_like(y) if a is None else a
    margins, v, u = y * (X @ w + b), X.T @ (a * y), w
    if problem.rho:
        v, u = np.append(v, problem.rho * (a @ y)), np.append(w, b / problem.rho)
    if problem.hard:
        lower = margins.min() / size(u, q) if u.any() else 0.0
        return max(lower, 0.0), size(v, p) / a.sum() if a.any() else np.inf
    upper = (0.5 * size(u, q) ** 2 if problem.power == 2 else size(u, q)) + problem.losses(margins, s).sum()
    best = 0.0
    for t in (1.0, 1.0 - 1e-9, 1.0 / max(size(v, p), 1.0)):
        gains = problem.gains(t * a, s).sum()
        if problem.power == 2:
            best = max(best, gains - 0.5 * (t * size(v, p)) ** 2)
        elif t * size(v, p) <= 1.0 + ROUNDING:
            best = max(best, gains / (1.0 + ROUNDING))
    return best, upper


def best_bounds(points, problem, X, y, s, most=400) -> Interval:
    """Return the best bounds of all points."""
    lower, upper = 0.0, np.inf
    for _, point in zip(range(most), points(problem, X, y, s), strict=False):
        assert all(np.isfinite(part).all() for part in point)
        assert problem.intercept != "none" or point.b == 0.0
        low, high = bounds_of(problem, X, y, s, *point)
        lower, upper = max(lower, low), min(upper, high)
    return Interval(lower, upper)


def check(problem, data, found: Interval, tol: float) -> None:
    """Check that the bounds enclose the optimum and meet."""
    exact = optimum_in_norm(problem, *data)
    allowed = exact.e + 1e-11 * abs(exact.upper)
    assert found.lower <= exact.lower + allowed
    assert found.upper >= exact.upper - allowed
    if problem.hard and found.upper <= 1e-5 * np.abs(data[0]).max():  # no separator
        assert exact.lower <= found.upper
    else:
        assert found.upper - found.lower <= tol * found.lower


# linear programs


def linear(hard: bool, intercept: str, p: float, C: float = 1.0) -> Problem:
    return Problem("hinge", np.inf if hard else C, p=p, intercept=intercept, intercept_scaling=1.5, power=1)


@thorough
@pytest.mark.parametrize("intercept", ["none", "free", "augmented"])
@pytest.mark.parametrize("p", [1.0, np.inf])
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("hard", [True, False])
def test_linear_programs_reach_the_optimum(hard, kind, p, intercept):
    for seed, (n, d), C in product(range(examples(1, 2)), ((30, 5), (20, 60)), (0.1, 10.0)):
        if hard and C > 1.0:
            continue
        data = sample(n, d, kind, seed)
        problem = linear(hard, intercept, p, C)
        check(problem, data, best_bounds(linear_points, problem, *data), 1e-6)


@pytest.mark.parametrize("p", [1.0, np.inf])
@pytest.mark.parametrize("hard", [True, False])
def test_small_masters_reach_the_optimum_of_all_rows_and_columns(hard, p):
    """Missing rows and columns enter the master; the bounds are those of the full problem."""
    small = Settings(
        whole_entries=0, all_rows=10, added_rows=6, added_columns=4, first_columns=8, mean_columns=3
    )
    for kind, intercept, stored in product(KINDS, ("none", "free"), (np.asarray, sp.csr_matrix)):
        X, y, s = sample(40, 30, kind, 3)
        problem = linear(hard, intercept, p)
        found = best_bounds(partial(linear_points, settings=small), problem, stored(X), y, s)
        check(problem, (X, y, s), found, 1e-6)


def test_inseparable_data_give_cancelling_dual_weights():
    """A point between two points of the other class."""
    X, y = np.array([[-1.0, 2.0], [0.0, 2.0], [1.0, 2.0]]), np.array([1.0, -1.0, 1.0])
    for p in (1.0, np.inf):
        *_, point = linear_points(linear(True, "free", p), X, y, np.ones(3))
        np.testing.assert_allclose(point.alpha, [0.25, 0.5, 0.25], atol=1e-9)


def test_problems_that_are_not_linear_are_refused():
    X, y, s = sample(5, 2, "mixed", 0)
    with pytest.raises(ValueError, match="p = 3"):
        next(linear_points(Problem("hinge", np.inf, p=3.0), X, y, s))
    with pytest.raises(ValueError, match="norm_power=1"):
        next(linear_points(Problem("hinge", 1.0, p=1.0), X, y, s))


# every norm


@thorough
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("p", [1.0, 1.5, 2.0, 3.0, 4.0, 10.0, np.inf])
def test_bounds_of_every_norm_enclose_the_optimum(p, kind):
    rng = np.random.default_rng(0)
    problems = [Problem("hinge", np.inf, p=p, intercept=name) for name in ("none", "free", "augmented")]
    for loss, C, power in SOFT:
        name = ("none", "free", "augmented")[rng.integers(3)]
        problems.append(Problem(loss, C, p=p, intercept=name, intercept_scaling=1.5, power=power))
    every = list(product(problems, ((20, 5), (12, 20))))
    for problem, (n, d) in some_of(every, KINDS.index(kind), 5):
        data = sample(n, d, kind, 1)
        check(problem, data, best_bounds(path_points, problem, *data), 1e-6)


NORMS = [1.0, 1.02, 1.2, 1.5, 3.0, 10.0, 30.0, 100.0, np.inf]


@thorough
@pytest.mark.parametrize("p", NORMS)
def test_bounds_meet_to_the_tolerance(p):
    """Problems too large for the oracle: only the gap is checked."""
    every = list(product(KINDS, ((30, 5), (20, 60), (200, 30))))
    for kind, (n, d) in some_of(every, NORMS.index(p), 3):
        X, y, s = sample(n, d, kind, 2)
        for problem in (
            Problem("hinge", np.inf, p=p),
            Problem("squared_hinge", 1.0, p=p),
            Problem("hinge", 1.0, p=p),
        ):
            found = best_bounds(path_points, problem, X, y, s)
            if problem.hard and found.upper <= 1e-5 * np.abs(X).max():
                continue
            assert found.upper - found.lower <= 1e-6 * found.lower


@pytest.mark.parametrize("p", [1.0, 1.2, 30.0, np.inf])
def test_bounds_meet_after_elimination_of_columns(monkeypatch, p):
    monkeypatch.setattr(diagonal_plus_gram, "MIN_KEPT", 5)
    for kind in KINDS[:3]:
        X, y, s = sample(12, 60, kind, 0)
        for problem in (Problem("hinge", np.inf, p=p), Problem("squared_hinge", 1.0, p=p)):
            found = best_bounds(path_points, problem, sp.csr_matrix(X), y, s)
            assert found.upper - found.lower <= 1e-6 * found.lower


# column generation


@pytest.mark.parametrize("kind", KINDS)
def test_small_column_masters_reach_the_optimum(kind):
    points = partial(column_points, settings=Settings(all_columns=3, first_columns=2, added_columns=1))
    for (loss, C, power), name in product(SOFT, ("none", "free", "augmented")):
        problem = Problem(loss, C, p=np.inf, intercept=name, intercept_scaling=1.5, power=power)
        X, y, s = sample(15, 12, kind, 3)
        check(problem, (X, y, s), best_bounds(points, problem, sp.csr_matrix(X), y, s), 1e-6)


def test_few_of_many_columns_are_used(monkeypatch):
    """The bounds agree with those of all columns."""
    taken = []

    def counted(problem, X, *more):
        taken.append(X.shape[1])
        return path_points(problem, X, *more)

    monkeypatch.setattr(generation, "path_points", counted)
    X, y, s = sample(60, 400, "mixed", 5)
    X[:, 7] += y
    problem = Problem("squared_hinge", 0.05, p=np.inf)
    found, whole = (best_bounds(f, problem, X, y, s) for f in (column_points, path_points))
    assert found.upper - found.lower <= 1e-6 * found.lower
    assert found.lower <= whole.upper
    assert whole.lower <= found.upper
    assert taken[0] == 60
    assert 60 < max(taken) < 300


def test_column_generation_stops_at_the_deadline():
    X, y, s = sample(60, 500, "mixed", 5)
    calls = iter(range(10**6))
    points = column_points(Problem("squared_hinge", 1.0, p=np.inf), X, y, s, lambda: next(calls) >= 30)
    assert 0 < len(list(points)) <= 31
    assert next(calls) <= 35
