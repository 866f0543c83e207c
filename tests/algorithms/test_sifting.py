"""Rows near the margin, by interior and by proximal points: groups, their release, ends against Clarabel."""

from __future__ import annotations

import tracemalloc
from itertools import islice

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st
from oracle import optimum

from maxmargin import Problem
from maxmargin.algorithms.batch.proximal_point import _State
from maxmargin.algorithms.batch.sifting import (
    SETTINGS,
    Rows,
    Settings,
    _samples,
    _solve_grouped,
    by_interior_points,
    by_proximal_points,
    sifted_points,
)
from maxmargin.certificates.rows import certify
from maxmargin.certificates.sample import Sample

INTERCEPTS = ("free", "augmented", "none")
SOLVERS = (by_interior_points, by_proximal_points)


# Samples small enough for data that Clarabel can solve, without the solution of all rows at once.
SMALL = Settings(min_sample_rows=20, sample_rows_per_column=1, max_share=0.9, few_entries=0)
SAMPLED = Settings(few_entries=0)


def toy(n: int, d: int, seed: int = 0, noise: float = 1.0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d)) + rng.normal(size=d)
    y = np.where((X - X.mean(axis=0)) @ rng.normal(size=d) + noise * rng.normal(size=n) > 0.0, 1.0, -1.0)
    return X, y, rng.integers(1, 4, size=n) / 2.0


def best_certified_bounds(problem, X, y, weights, points) -> tuple[float, float]:
    """The best bounds of some points, each certified from the data."""
    sample = Sample(X, y, weights)
    found = [certify(problem, sample, *point[:3]) for point in points]
    return max(one.lower for one in found), min(one.upper for one in found)


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("C", [1e-3, 1.0, 1e3])
@pytest.mark.parametrize("intercept", INTERCEPTS)
@pytest.mark.parametrize(
    "condition", ["none", "scales", "collinear", "sparse", "float32", "rare", "separable"]
)
def test_bounds_meet_at_the_optimum(condition, intercept, C, solver):
    """For samples of any quality: bounds of all rows within 1e-7, the optimum between them."""
    X, y, weights = toy(300, 4, seed=1, noise=0.0 if condition == "separable" else 1.0)
    if condition == "scales":
        X = X * 10.0 ** np.array([-6.0, -2.0, 3.0, 6.0])
    elif condition == "collinear":
        X[:, 3] = X[:, 2] + 1e-7 * X[:, 3]
    elif condition == "sparse":
        X = np.where(np.random.default_rng(2).random(X.shape) < 0.4, X, 0.0)
    elif condition == "rare":
        y = np.where(np.arange(300) < 4, 1.0, -1.0)
    elif condition == "float32":
        X = X.astype(np.float32).astype(float)
    stored = {"sparse": sp.csr_array, "float32": np.float32}.get(condition, np.asarray)(X)
    problem = Problem("hinge", C, intercept=intercept, intercept_scaling=2.0)
    points = sifted_points(problem, stored, y, weights, solver=solver, settings=SMALL)
    lower, upper = best_certified_bounds(problem, stored, y, weights, points)
    truth = optimum(problem, X, y, weights)
    assert upper - lower <= 1e-7 * upper
    assert lower <= truth.upper
    assert upper >= truth.lower


@hypothesis_settings(max_examples=40, deadline=None)
@given(
    seed=st.integers(0, 10**6),
    scales=st.lists(st.integers(-6, 6), min_size=3, max_size=3),
    C=st.sampled_from([1e-4, 1e-2, 1.0, 1e2, 1e5]),
    intercept=st.sampled_from(INTERCEPTS),
    lines=st.integers(0, 10**6),
    solver=st.sampled_from(SOLVERS),
)
def test_arbitrary_groups_end_at_the_optimum(seed, scales, C, intercept, lines, solver):
    """Groups by two arbitrary hyperplanes: rows leave them until the bounds of all rows meet."""
    X, y, weights = toy(150, 3, seed)
    X = X * 10.0 ** np.array(scales, dtype=float)
    problem = Problem("hinge", C, intercept=intercept)
    rng = np.random.default_rng(lines)
    rows = Rows(problem, X, y, weights)
    groups = rng.integers(-1, 6, size=y.size) * 2 + (y > 0.0)
    groups = np.where(groups < 0, -1, groups)
    points = list(_solve_grouped(rows, groups, None, solver))
    lower, upper = best_certified_bounds(problem, X, y, weights, points)
    assert upper - lower <= 1e-6 * upper


def test_groups_restrict_the_dual():
    """A share of a group's cap is the same share of each member's cap: the same w, sums and total dual weight."""
    X, y, weights = toy(200, 3)
    rows = Rows(Problem("hinge", 2.0), X, y, weights)
    z = rows.margins(np.ones(3), 0.1)
    groups = rows.grouped([(np.ones(3), 0.0), (np.ones(3), 0.1)])[0]
    few, position = rows.merged(groups)
    alone = groups < 0
    assert 0 < np.count_nonzero(alone) < 100
    assert few.y.size < 150
    for group in np.unique(groups[~alone]):  # one class and one side of the margin each
        assert len({*y[groups == group]}) == len({*(z[groups == group] < 1.0)}) == 1
    shares = np.random.default_rng(1).random(few.y.size)
    alpha, parts = shares[position] * rows.caps, shares * few.caps
    assert (alpha * y) @ X == pytest.approx((parts * few.y) @ few.X, rel=1e-12)
    assert (alpha * y).sum() == pytest.approx((parts * few.y).sum(), rel=1e-12)
    assert alpha.sum() == pytest.approx(parts.sum(), rel=1e-12)


def test_samples_are_of_both_classes_and_nested():
    """A class of one row in a hundred has a quarter of the sample, or all its rows if there are fewer."""
    y = np.where(np.arange(50_000) < 500, 1.0, -1.0)
    samples = list(_samples(y, 1000))
    assert [np.count_nonzero(y[places] > 0.0) for places in samples] == [250, 500]
    assert np.isin(samples[0], samples[1]).all()
    whole = Rows(Problem("hinge", 1.0), np.zeros((y.size, 1)), y, np.ones(y.size))
    some = whole.sample(samples[0])
    assert some.weights[some.y > 0.0].sum() == pytest.approx(500)
    assert some.weights[some.y < 0.0].sum() == pytest.approx(49_500)


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("intercept", INTERCEPTS)
@pytest.mark.parametrize("sampled", [False, True])
def test_tolerance_is_reported_at_the_first_near_point(sampled, intercept, solver, monkeypatch):
    """The first point reported as near is near. Without sampling fewer steps are taken than without a tolerance."""
    settings = SAMPLED if sampled else SETTINGS
    X, y, weights = toy(20_000, 3, noise=0.5)
    problem = Problem("hinge", 1.0, intercept=intercept)
    sample, steps_taken, solve = Sample(X, y, weights), [], _State.solve

    def recorded(state, *task):
        taken = solve(state, *task)
        steps_taken.extend([1] * taken)
        return taken

    monkeypatch.setattr(_State, "solve", recorded)

    def steps(tol, with_tol):
        """Polls and steps up to the first point within tol."""
        steps_taken.clear()
        for point in sifted_points(
            problem, X, y, weights, lambda: steps_taken.append(1), solver, with_tol, settings
        ):
            if with_tol:
                assert point.near is (point.gap <= tol)
            else:
                assert not point.near
            if point.gap <= tol:
                assert certify(problem, sample, *point[:3]).gap <= 1.1 * tol
                return len(steps_taken)
        pytest.fail("no point is within tol")

    tols = 10.0 ** -np.arange(1.5, 5.75, 0.25)
    with_tol, ignored = ([steps(tol, tol if with_tol else 0.0) for tol in tols] for with_tol in (True, False))
    assert sampled or sum(with_tol) < sum(ignored)  # with samples, rows leave groups in another order


def test_at_most_a_fifth_of_the_rows_is_solved_for():
    """Of 120,000 rows, in any subproblem."""
    X, y, weights = toy(120_000, 3, seed=3, noise=0.3)
    sizes = []

    def solver(rows, *others):
        sizes.append(rows.y.size)
        return by_interior_points(rows, *others)

    problem = Problem("hinge", 1.0)
    points = sifted_points(problem, X, y, weights, solver=solver)
    lower, upper = best_certified_bounds(problem, X, y, weights, points)
    assert upper - lower <= 1e-8 * upper
    assert max(sizes) <= 0.2 * y.size


def test_peak_memory_is_below_the_size_of_the_data():
    X, y, weights = toy(30_000, 100)
    problem = Problem("hinge", 1.0)
    next(sifted_points(problem, X[:100], y[:100], weights[:100]))  # compiled
    tracemalloc.start()
    for _ in islice(sifted_points(problem, X, y, weights), 3):
        pass
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 0.7 * X.nbytes


@pytest.mark.parametrize("after", [0, 5, 60])
def test_interrupt_stops_the_iteration(after):
    """During or after sampling: a few more steps, and a point of all rows unless none was reached before."""
    X, y, weights = toy(20_000, 3)
    polls = []

    def interrupted():
        polls.append(None)
        return len(polls) > after

    problem = Problem("hinge", 1.0)
    found = list(sifted_points(problem, X, y, weights, interrupted, settings=SAMPLED))
    assert len(polls) <= after + 8
    assert bool(found) is (after > 5)
    if not found:
        return
    w, b, alpha = found[-1][:3]
    assert np.isfinite([*w, b]).all()
    assert alpha.shape == y.shape
    assert (alpha >= 0.0).all()
    assert (alpha <= problem.caps(weights) * (1.0 + 1e-12)).all()


@pytest.mark.parametrize("intercept", INTERCEPTS)
@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("method", ["grouped", "merged"])
def test_interrupt_after_sampling_yields_a_point_near_the_optimum(method, solver, intercept, monkeypatch):
    """Before the first step with all rows, with or without a started solver."""
    X, y, weights = toy(20_000, 3)
    problem = Problem("hinge", 1.0, intercept=intercept)
    best = best_certified_bounds(
        problem, X, y, weights, sifted_points(problem, X, y, weights, solver=solver, settings=SAMPLED)
    )[1]
    original, reached = getattr(Rows, method), []

    def interrupt_at_call(rows, *task):
        if rows.y.size == y.size:
            reached.append(True)
        return original(rows, *task)

    monkeypatch.setattr(Rows, method, interrupt_at_call)
    found = list(sifted_points(problem, X, y, weights, lambda: bool(reached), solver, settings=SAMPLED))
    assert len(found) <= 2
    lower, upper = best_certified_bounds(problem, X, y, weights, found)
    assert 0.0 < lower <= best <= upper < 1.01 * best
    for point in found:
        assert not point.near
        assert (point.alpha >= 0.0).all()
        assert (point.alpha <= problem.caps(weights) * (1.0 + 1e-12)).all()
