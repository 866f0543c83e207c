"""Rows near the margin, by interior and by proximal points: groups, who leaves them, ends against Clarabel."""

from __future__ import annotations

import tracemalloc
from itertools import islice

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from oracle import optimum

from maxmargin import Problem
from maxmargin.algorithms.batch import sifting
from maxmargin.algorithms.batch.semismooth import SemismoothNewton
from maxmargin.algorithms.batch.sifting import (
    Rows,
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


@pytest.fixture
def small(monkeypatch):
    """Samples small enough for data that Clarabel can solve, and no way to fall back on all rows."""
    monkeypatch.setattr(sifting, "ROWS", 20)
    monkeypatch.setattr(sifting, "ROWS_A_COLUMN", 1)
    monkeypatch.setattr(sifting, "MAX_SHARE", 0.9)
    monkeypatch.setattr(sifting, "FEW_ENTRIES", 0)


def toy(n: int, d: int, seed: int = 0, noise: float = 1.0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d)) + rng.normal(size=d)
    y = np.where((X - X.mean(axis=0)) @ rng.normal(size=d) + noise * rng.normal(size=n) > 0.0, 1.0, -1.0)
    return X, y, rng.integers(1, 4, size=n) / 2.0


def gap_at_the_end(problem, X, y, weights, points) -> tuple[float, float]:
    """The best bounds of some points, each certified from the data."""
    sample = Sample(X, y, weights)
    found = [certify(problem, sample, *point[:3]) for point in points]
    return max(one.lower for one in found), min(one.upper for one in found)


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("C", [1e-3, 1.0, 1e3])
@pytest.mark.parametrize("intercept", INTERCEPTS)
@pytest.mark.parametrize("trouble", ["none", "scales", "collinear", "sparse", "float32", "rare", "separable"])
def test_it_ends_at_the_optimum(small, trouble, intercept, C, solver):
    """Whatever the samples say: the optimum of all rows, and the truth within the bounds."""
    X, y, weights = toy(300, 4, seed=1, noise=0.0 if trouble == "separable" else 1.0)
    if trouble == "scales":
        X = X * 10.0 ** np.array([-6.0, -2.0, 3.0, 6.0])
    elif trouble == "collinear":
        X[:, 3] = X[:, 2] + 1e-7 * X[:, 3]
    elif trouble == "sparse":
        X = np.where(np.random.default_rng(2).random(X.shape) < 0.4, X, 0.0)
    elif trouble == "rare":
        y = np.where(np.arange(300) < 4, 1.0, -1.0)
    elif trouble == "float32":
        X = X.astype(np.float32).astype(float)
    stored = {"sparse": sp.csr_array, "float32": np.float32}.get(trouble, np.asarray)(X)
    problem = Problem("hinge", C, intercept=intercept, intercept_scaling=2.0)
    points = sifted_points(problem, stored, y, weights, solver=solver)
    lower, upper = gap_at_the_end(problem, stored, y, weights, points)
    truth = optimum(problem, X, y, weights)
    assert upper - lower <= 1e-7 * upper
    assert lower <= truth.upper
    assert upper >= truth.lower


@settings(max_examples=40, deadline=None)
@given(
    seed=st.integers(0, 10**6),
    scales=st.lists(st.integers(-6, 6), min_size=3, max_size=3),
    C=st.sampled_from([1e-4, 1e-2, 1.0, 1e2, 1e5]),
    intercept=st.sampled_from(INTERCEPTS),
    lines=st.integers(0, 10**6),
    solver=st.sampled_from(SOLVERS),
)
def test_wrong_groups_are_left(seed, scales, C, intercept, lines, solver):
    """Groups that come from any two lines: rows leave them until the answer is that of all rows."""
    X, y, weights = toy(150, 3, seed)
    X = X * 10.0 ** np.array(scales, dtype=float)
    problem = Problem("hinge", C, intercept=intercept)
    rng = np.random.default_rng(lines)
    rows = Rows(problem, X, y, weights)
    groups = rng.integers(-1, 6, size=y.size) * 2 + (y > 0.0)
    groups = np.where(groups < 0, -1, groups)
    points = list(_solve_grouped(rows, groups, None, solver))
    lower, upper = gap_at_the_end(problem, X, y, weights, points)
    assert upper - lower <= 1e-6 * upper


def test_groups_restrict_the_dual():
    """A share of the caps of a group is as much in its mean: the same w, the same sums, weights within caps."""
    X, y, weights = toy(200, 3)
    rows = Rows(Problem("hinge", 2.0), X, y, weights)
    z = rows.margins(np.ones(3), 0.1)
    groups = rows.grouped([(np.ones(3), 0.0), (np.ones(3), 0.1)])[0]
    few, stands = rows.merged(groups)
    alone = groups < 0
    assert 0 < np.count_nonzero(alone) < 100
    assert few.y.size < 150
    for group in np.unique(groups[~alone]):  # of one class, and on one side of the margin
        assert len({*y[groups == group]}) == len({*(z[groups == group] < 1.0)}) == 1
    shares = np.random.default_rng(1).random(few.y.size)
    alpha, parts = shares[stands] * rows.caps, shares * few.caps
    assert (alpha * y) @ X == pytest.approx((parts * few.y) @ few.X, rel=1e-12)
    assert (alpha * y).sum() == pytest.approx((parts * few.y).sum(), rel=1e-12)
    assert alpha.sum() == pytest.approx(parts.sum(), rel=1e-12)


def test_samples_are_of_both_classes_and_nested():
    """Of a class of a hundredth of the rows, a quarter of the sample; all of it where there are fewer."""
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
def test_the_gap_that_is_asked_for_is_shown_at_once(sampled, intercept, solver, monkeypatch):
    """The first point that is said to be near is so. Of all rows it comes sooner than where the gap is not told."""
    if sampled:
        monkeypatch.setattr(sifting, "FEW_ENTRIES", 0)
    X, y, weights = toy(20_000, 3, noise=0.5)
    problem = Problem("hinge", 1.0, intercept=intercept)
    sample, asked, advance = Sample(X, y, weights), [], SemismoothNewton.advance

    def counted(state, *task):
        taken = advance(state, *task)
        asked.extend([1] * taken)
        return taken

    monkeypatch.setattr(SemismoothNewton, "advance", counted)

    def steps(tol, told):
        """Until there is a point as near; some are taken between two looks at the deadline."""
        asked.clear()
        for point in sifted_points(problem, X, y, weights, lambda: asked.append(1), solver, told):
            if told:
                assert point.near is (point.gap <= tol)
            else:
                assert not point.near
            if point.gap <= tol:
                assert certify(problem, sample, *point[:3]).gap <= 1.1 * tol
                return len(asked)
        pytest.fail("there is none")

    tols = 10.0 ** -np.arange(1.5, 5.75, 0.25)
    told, deaf = ([steps(tol, tol if told else 0.0) for tol in tols] for told in (True, False))
    assert sampled or sum(told) < sum(deaf)  # groups of rows are left in another order


def test_few_rows_are_solved_for():
    """That is what it is for: 120,000 rows, of which a fifth at most is ever solved for."""
    X, y, weights = toy(120_000, 3, seed=3, noise=0.3)
    sizes = []

    def solver(rows, *others):
        sizes.append(rows.y.size)
        return by_interior_points(rows, *others)

    problem = Problem("hinge", 1.0)
    points = sifted_points(problem, X, y, weights, solver=solver)
    lower, upper = gap_at_the_end(problem, X, y, weights, points)
    assert upper - lower <= 1e-8 * upper
    assert max(sizes) <= 0.2 * y.size


def test_memory_is_a_part_of_the_data():
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
def test_it_stops_when_it_is_told_to(after, monkeypatch):
    """In the samples or after them: one more step each, and a point of the whole problem; none before the first."""
    monkeypatch.setattr(sifting, "FEW_ENTRIES", 0)
    X, y, weights = toy(20_000, 3)
    asked = []

    def interrupted():
        asked.append(None)
        return len(asked) > after

    problem = Problem("hinge", 1.0)
    found = list(sifted_points(problem, X, y, weights, interrupted))
    assert len(asked) <= after + 8
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
@pytest.mark.parametrize("where", ["grouped", "merged"])
def test_what_samples_tell_is_a_point_where_time_ends_there(where, solver, intercept, monkeypatch):
    """Before the first step with all rows: near the optimum, whether or not a solver has begun with them."""
    monkeypatch.setattr(sifting, "FEW_ENTRIES", 0)
    X, y, weights = toy(20_000, 3)
    problem = Problem("hinge", 1.0, intercept=intercept)
    best = gap_at_the_end(problem, X, y, weights, sifted_points(problem, X, y, weights, solver=solver))[1]
    usual, over = getattr(Rows, where), []

    def until_here(rows, *task):
        if rows.y.size == y.size:
            over.append(True)
        return usual(rows, *task)

    monkeypatch.setattr(Rows, where, until_here)
    found = list(sifted_points(problem, X, y, weights, lambda: bool(over), solver))
    assert len(found) <= 2
    lower, upper = gap_at_the_end(problem, X, y, weights, found)
    assert 0.0 < lower <= best <= upper < 1.01 * best
    for point in found:
        assert not point.near
        assert (point.alpha >= 0.0).all()
        assert (point.alpha <= problem.caps(weights) * (1.0 + 1e-12)).all()
