"""Proximal points, sifting and interior points for soft margins: subproblems by their definitions, and handovers."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from problems import bounds_of, conditioned

from maxmargin import MaxMarginClassifier, Newton, Problem, Status
from maxmargin.algorithms.batch import sifting
from maxmargin.algorithms.batch.semismooth import SETTINGS, _State, proximal_points
from maxmargin.algorithms.batch.sifting import (
    Rows,
    Settings,
    _solve_grouped,
    by_interior_points,
    by_proximal_points,
    sifted_points,
)
from maxmargin.data.rows import Patterns
from maxmargin.fit.policy import choose, fallback

INTERCEPTS = ("free", "augmented", "none")
SOLVERS = (by_interior_points, by_proximal_points)
HINGE = Problem("hinge", 1.0)


def best_bounds(problem: Problem, X, y, weights, points) -> tuple[float, float]:
    """The best bounds of all points."""
    found = np.array([bounds_of(problem, X, y, weights, *point[:3]) for point in points])
    return found[:, 0].max(), found[:, 1].min()


@pytest.fixture
def steps(monkeypatch):
    """A list that grows by one with every step of proximal points."""
    made, original = [], _State.solve

    def recorded(state, *task):
        taken = original(state, *task)
        made.extend([1] * taken)
        return taken

    monkeypatch.setattr(_State, "solve", recorded)
    return made


@pytest.mark.parametrize("C", [1e-12, 1e-6, 1.0, 1e3])
@pytest.mark.parametrize("d", [1, 4])
def test_number_of_steps_is_bounded_for_all_costs(steps, d, C):
    """Up to a gap of 1e-9, for one or no pattern within the margin, and slacks as small as C."""
    X, y, weights = conditioned("plain", 600, 4, 0)
    points = proximal_points(Problem("hinge", C), X[:, :d], y, weights)
    assert any(point.gap <= 1e-9 for point in points)
    assert len(steps) <= 60


@pytest.mark.parametrize("intercept", INTERCEPTS)
@pytest.mark.parametrize("C", [1e-2, 1e4])
def test_cancelling_patterns_end_at_zero(intercept, C):
    """Exclusive or: w = 0 is the optimum, every gradient is zero, and the shares still move."""
    X = np.array([[a, b] for a in (-1.0, 1.0) for b in (-1.0, 1.0)] * 50)
    problem = Problem("hinge", C, intercept=intercept)
    *_, (w, _, alpha, gap, _) = proximal_points(problem, X, X[:, 0] * X[:, 1], np.ones(200))
    assert gap <= 1e-10
    assert np.abs(w).max() <= 1e-9
    assert alpha == pytest.approx(np.full(200, C), rel=1e-10)  # the gap


@pytest.mark.parametrize("wide", [False, True])
def test_interior_points_replace_proximal_points(wide, monkeypatch):
    """After an early end; and from the start on fewer rows than a quarter of the squared number of columns."""
    short = None if wide else partial(proximal_points, settings=SETTINGS._replace(max_steps=3))
    monkeypatch.setattr(sifting, "proximal_points", short)
    X, y, weights = conditioned("plain", 200, 40 if wide else 4, 6)
    *_, last = by_proximal_points(Rows(HINGE, X, y, weights), None)
    assert last.gap <= 1e-10


@settings(max_examples=15)
@given(
    st.integers(0, 10**6),
    st.lists(st.integers(-6, 6), min_size=3, max_size=3),
    st.sampled_from([1e-4, 1.0, 1e5]),
    st.sampled_from(INTERCEPTS),
    st.sampled_from(SOLVERS),
)
def test_arbitrary_groups_end_at_the_optimum(seed, scales, C, intercept, solver):
    """Rows leave their groups until the bounds of all rows meet."""
    X, y, weights = conditioned("plain", 120, 3, seed)
    X, problem = X * 10.0 ** np.array(scales, float), Problem("hinge", C, intercept=intercept)
    groups = np.random.default_rng(seed).integers(-1, 6, size=y.size) * 2 + (y > 0.0)
    points = _solve_grouped(Rows(problem, X, y, weights), np.maximum(groups, -1), None, solver)
    assert problem.gap(*best_bounds(problem, X, y, weights, points)) <= 1e-6


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("method", ["grouped", "merged"])
def test_interrupt_after_sampling_yields_a_point_near_the_optimum(method, solver, monkeypatch):
    """Before the first step with all rows, with or without a started solver."""
    X, y, weights = conditioned("plain", 20_000, 3, 0)
    options = {"solver": solver, "settings": Settings(few_entries=0)}
    best = best_bounds(HINGE, X, y, weights, sifted_points(HINGE, X, y, weights, **options))[1]
    original, reached = getattr(Rows, method), []

    def interrupt_at_call(rows, *task):
        reached.extend([True] * (rows.y.size == y.size))
        return original(rows, *task)

    monkeypatch.setattr(Rows, method, interrupt_at_call)
    found = list(sifted_points(HINGE, X, y, weights, lambda: bool(reached), **options))
    assert len(found) <= 2
    lower, upper = best_bounds(HINGE, X, y, weights, found)
    assert 0.0 < lower <= best <= upper < 1.01 * best
    assert not any(point.near for point in found)


def test_proximal_points_take_over_from_dual_descent(rules_alone, capsys):
    """On badly scaled data: proximal points keep its bounds, improve them monotonically, and certify."""
    X, y, _ = conditioned("plain", 2000, 60, 5)
    X = X * np.tile([1.0, 300.0, 1.0, 1000.0], 15) + 2000.0
    model = MaxMarginClassifier(1e3, loss="hinge", tol=1e-5, verbose=1).fit(X, y)
    assert model.status_ is Status.CERTIFIED
    shown = capsys.readouterr().err.splitlines()
    shown = [line for line in shown if not line.startswith(("round ", "compiled in "))]
    reasons = list(dict.fromkeys(f"{report.stage}: {report.reason}" for report in model.history_))
    assert shown == reasons
    stages = [report.stage for report in model.history_]
    assert list(dict.fromkeys(stages)) == ["dcd", "proximal-point"]
    first = stages.index("proximal-point")
    assert model.history_[first - 1].presentations >= fallback(Problem("hinge", 1e3), Patterns(X)).row_visits
    lower, upper = ([getattr(report, side) for report in model.history_] for side in ("lower", "upper"))
    assert (np.diff(lower) >= 0.0).all()
    assert (np.diff(upper) <= 1e-12 * upper[-1]).all()  # up to rounding of the objectives


def test_algorithms_are_chosen_by_shape_storage_and_loss(request):
    """Proximal points solve at least as many dense rows as squared columns; small problems start with dual descent."""
    X, y, _ = conditioned("plain", 3000, 40, 5)
    assert choose(HINGE, Patterns(X), y)[0].name == "dcd"
    request.getfixturevalue("rules_alone")
    assert choose(HINGE, Patterns(X), y)[0].name == "proximal-point"
    assert fallback(HINGE, Patterns(X)) is None
    for others in (X[:1500], sp.csr_array(X)):
        assert choose(HINGE, Patterns(others), y[: others.shape[0]])[0].name == "dcd"
        assert fallback(HINGE, Patterns(others)).algorithm.name == "proximal-point"
    squared = Problem("squared_hinge", 1.0)
    many = fallback(squared, Patterns(sp.random(1500, 1200, 0.01, format="csr", rng=0)))
    assert many.algorithm == Newton()
    assert many.row_visits == 50 * 1500
    assert fallback(squared, Patterns(sp.random(100, 1200, 0.01, format="csr", rng=0))) is None
    for problem, rows in (
        (HINGE, (10, 50)),
        (Problem("hinge", np.inf), (50, 3)),
    ):
        assert fallback(problem, Patterns(np.ones(rows))) is None
    assert fallback(Problem("hinge", 1.0, 1.5), Patterns(np.ones((50, 3)))).algorithm.name == "interior-point"
