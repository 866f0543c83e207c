"""Proximal points on the dual of the hinge: each problem against its definition, ends against Clarabel."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from unittest.mock import Mock

import clarabel
import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from oracle import _solve, optimum
from scipy.optimize import minimize_scalar

import maxmargin.fit.certifier
from maxmargin import MaxMarginClassifier, Problem, ProximalPoint, Status, verify
from maxmargin.algorithms.batch import sifting
from maxmargin.algorithms.batch.centred_rows import centred_rows
from maxmargin.algorithms.batch.proximal_point import SETTINGS, Start, _State, proximal_points
from maxmargin.algorithms.batch.semismooth_steps import (
    COUNT,
    ENDED,
    FAILED,
    LOSS,
    SQUARE,
    TOTAL,
    UNCHANGED,
    clip_shares,
    line_minimum,
)
from maxmargin.algorithms.batch.sifting import Rows, by_proximal_points
from maxmargin.certificates.rows import certify
from maxmargin.certificates.sample import Sample
from maxmargin.fit.run import Run

INTERCEPTS = ("free", "augmented", "none")


def toy(n: int, d: int, seed: int = 0, noise: float = 1.0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d)) + rng.normal(size=d)
    y = np.where((X - X.mean(axis=0)) @ rng.normal(size=d) + noise * rng.normal(size=n) > 0.0, 1.0, -1.0)
    return X, y, rng.integers(1, 4, size=n) / 2.0


@pytest.fixture
def steps(monkeypatch):
    """A list that grows by one with every step."""
    made, usual = [], _State.advance

    def noted(state, *task):
        taken = usual(state, *task)
        made.extend([1] * taken)
        return taken

    monkeypatch.setattr(_State, "advance", noted)
    return made


def started(problem: Problem, X, y, weights, start: Start | None = None, solved: float = 1e-12) -> _State:
    """The state at a start, in the first proximal problem, which is to be solved at this share of its gradient."""
    rows, settings = centred_rows(problem, X), replace(SETTINGS, rules=SETTINGS.rules._replace(solved=solved))
    state = _State(rows, y, problem.caps(weights) * rows.unit**2, 1.0, lambda: False, settings)
    state.start_at(start)
    return state


def smoothed(near, sigma, slack, cap):
    """The most of s slack - (s - near)^2 / (2 sigma) over s in [0, 1], for every pattern, from many s."""
    s = np.linspace(0.0, 1.0, 20_001)[:, None]
    return float(cap @ (s * slack - (s - near) ** 2 / (2.0 * sigma)).max(axis=0))


@pytest.mark.parametrize("sigma", [0.1, 1.0, 30.0])
def test_shares_are_those_of_the_smoothed_hinge(sigma):
    """Where the most is reached, and the slope of the smoothed hinge in the slack."""
    rng = np.random.default_rng(0)
    near, slack, cap = rng.random(40), rng.normal(size=40), 1.0 + rng.random(40)
    active, values, data = np.zeros(40, bool), np.zeros(13), np.zeros((7, 40))
    data[:4] = -np.ones(40), cap, near, slack
    share, signed = data[4], data[5]
    clip_shares(sigma, 1.0, False, data, active, values)
    assert signed == pytest.approx(-cap * share)
    sums = cap @ share, cap @ share**2, cap @ np.maximum(slack, 0.0), np.count_nonzero(active)
    assert values[[TOTAL, SQUARE, LOSS, COUNT]] == pytest.approx(sums)
    assert values[UNCHANGED] == 0.0
    s = np.linspace(0.0, 1.0, 20_001)[:, None]
    assert share == pytest.approx(
        s[(s * slack - (s - near) ** 2 / (2.0 * sigma)).argmax(axis=0), 0], abs=1e-4
    )
    assert (active == ((share > 0.0) & (share < 1.0))).all()
    clip_shares(sigma, 1.0, False, data, active, values)
    assert values[UNCHANGED] == 1.0
    active[::2], active[1::2] = True, False
    clip_shares(sigma, 1.0, True, data, active, values)  # shares of a frozen active set are not clipped
    assert active[::2].all()
    assert share[::2] == pytest.approx((near + sigma * slack)[::2])
    assert share[1::2] == pytest.approx(np.clip(near + sigma * slack, 0.0, 1.0)[1::2])
    values = [smoothed(near, sigma, slack + t, cap) for t in (-1e-3, 1e-3)]
    slope = float(cap @ np.clip(near + sigma * slack, 0.0, 1.0))
    assert slope == pytest.approx((values[1] - values[0]) / 2e-3, rel=1e-2, abs=1e-2)


@settings(max_examples=50, deadline=None)
@given(
    seed=st.integers(0, 10**6),
    sigma=st.sampled_from([1e-3, 1.0, 1e3]),
    curvature=st.sampled_from([0.1, 10.0]),
)
def test_a_line_ends_at_its_least_point(seed, sigma, curvature):
    """Against a search that knows values alone; the function is convex."""
    rng = np.random.default_rng(seed)
    near, slack, step, cap = rng.random(60), rng.normal(size=60), rng.normal(size=60), rng.random(60)

    def value(t):
        s = np.clip(near + sigma * (slack - t * step), 0.0, 1.0)
        hinges = s * (slack - t * step) - (s - near) ** 2 / (2.0 * sigma)
        return slope * t + 0.5 * curvature * t * t + float(cap @ hinges)

    at_zero = float(cap @ (step * np.clip(near + sigma * slack, 0.0, 1.0)))
    slope = at_zero - 1.0 - 5.0 * rng.random()  # it falls at first
    zero = np.zeros(60)
    t = line_minimum(sigma, 1.0, np.array([zero, cap, near, slack, zero, zero, step]), slope, curvature, 1e-9)
    least = minimize_scalar(
        value, bounds=(0.0, max(4.0 * t, 1.0)), method="bounded", options={"xatol": 1e-12}
    )
    assert t > 0.0
    assert value(t) <= least.fun + 1e-9 * (1.0 + abs(least.fun))


@pytest.mark.parametrize("intercept", INTERCEPTS)
@pytest.mark.parametrize("sigma", [0.3, 20.0])
def test_a_problem_that_is_solved_is_the_proximal_point(intercept, sigma):
    """What Clarabel finds where every share has a square of its own: a weight of 1 / (sigma c) about `near`."""
    X, y, weights = toy(60, 3, seed=2)
    problem = Problem("hinge", 0.7, intercept=intercept)
    near = np.random.default_rng(1).random(60)
    state = started(problem, X, y, weights, Start(np.zeros(3), 0.0, near, sigma))
    state.solve(100, -1.0)
    c = problem.caps(weights)
    rows = np.column_stack([X, np.full(60, problem.rho)]) * (y * c)[:, None]
    one = sp.eye_array(60)
    balance = sp.csr_array((c * y)[None, :]) if problem.free else sp.csr_array((0, 60))
    cones = [clarabel.ZeroConeT(balance.shape[0]), clarabel.NonnegativeConeT(120)]
    right = np.concatenate([np.zeros(balance.shape[0]), np.zeros(60), np.ones(60)])
    found, _ = _solve(
        rows @ rows.T + np.diag(c) / sigma,
        -c - c * near / sigma,
        sp.vstack([balance, -one, one]),
        right,
        cones,
        1e-9,
    )
    assert state.share == pytest.approx(found, abs=1e-5)


@pytest.mark.parametrize("C", [1e-3, 1.0, 1e3])
@pytest.mark.parametrize("intercept", INTERCEPTS)
@pytest.mark.parametrize("stored", ["dense", "sparse", "float32"])
def test_it_ends_at_the_optimum(stored, intercept, C):
    X, y, weights = toy(400, 5, seed=3)
    X = X.astype(np.float32).astype(float)
    rows = {"sparse": sp.csr_array, "float32": lambda X: X.astype(np.float32)}.get(stored, np.asarray)(X)
    problem = Problem("hinge", C, intercept=intercept, intercept_scaling=2.0)
    truth = optimum(problem, X, y, weights)
    found = list(proximal_points(problem, rows, y, weights))
    gaps = [point.gap for point in found]
    proofs = [certify(problem, Sample(rows, y, weights), *point[:3]) for point in found]
    assert gaps[-1] <= 1e-10
    assert proofs[-1].gap <= 1e-9
    assert proofs[-1].lower <= truth.upper
    assert proofs[-1].upper >= truth.lower
    for gap, proof in zip(gaps, proofs, strict=True):  # what it says of itself is about what is proved
        assert proof.gap <= 3.0 * gap + 1e-12


def test_duals_rise_from_problem_to_problem():
    """As the proximal-point method's do: each solution is better than the point that it is near to."""
    X, y, weights = toy(300, 4, seed=4)
    problem = Problem("hinge", 1.0, intercept="none")
    state = started(problem, X, y, weights, solved=1e-10)
    values = []
    for _ in range(100):
        state.solve(100, -1.0)
        if state.status == ENDED:
            values.append(float(state.costs @ state.share) - 0.5 * float(state.dual_sum @ state.dual_sum))
            state.accept_shares()
            state.next_problem()
        elif state.status == FAILED:
            break
    assert len(values) > 5
    assert (np.diff(values) >= -1e-9 * abs(values[-1])).all()


def test_a_start_near_the_optimum_is_worth_steps(steps):
    """The shares of a line that is nearly right, and its sigma: fewer steps than from w = 0."""
    X, y, weights = toy(5000, 4, seed=5)
    problem = Problem("hinge", 1.0)
    *_, (w, b, *_) = proximal_points(problem, X, y, weights)
    cold = len(steps)
    steps.clear()
    rows = Rows(problem, X, y, weights)
    _, start = rows.grouped([(w * 1.001, b), (w * 0.9999, b)])
    *_, last = proximal_points(problem, X, y, weights, start=start)
    assert last.gap <= 1e-10
    assert len(steps) < 0.7 * cold


@pytest.mark.parametrize("C", [1e-12, 1e-9, 1e-6, 1e-3, 1.0, 1e3])
@pytest.mark.parametrize("d", [1, 4])
def test_few_steps_whatever_the_cost(steps, d, C):
    """Also where a single pattern is inside, or none, and where all slacks are as small as C."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(600, 4))
    y = np.where(X @ rng.normal(size=4) + rng.normal(size=600) > 0.0, 1.0, -1.0)
    gaps = [point.gap for point in proximal_points(Problem("hinge", C), X[:, :d], y, np.ones(600))]
    assert min(gaps) <= 1e-9
    assert len(steps) <= 60


@pytest.mark.parametrize("intercept", INTERCEPTS)
@pytest.mark.parametrize("C", [1e-2, 1.0, 1e4])
def test_patterns_that_cancel(intercept, C):
    """Exclusive or: w = 0 is the optimum, and every gradient is zero; the shares move all the same."""
    X = np.array([[a, b] for a in (-1.0, 1.0) for b in (-1.0, 1.0)] * 50)
    found = list(
        proximal_points(Problem("hinge", C, intercept=intercept), X, X[:, 0] * X[:, 1], np.ones(200))
    )
    w, _, alpha, gap, _ = found[-1]
    assert gap <= 1e-10
    assert np.abs(w).max() <= 1e-9
    assert alpha == pytest.approx(np.full(200, C))


def test_interior_points_go_on_where_it_ends_too_early(monkeypatch):
    X, y, weights = toy(300, 4, seed=6)
    problem = Problem("hinge", 1.0)
    short = partial(proximal_points, settings=replace(SETTINGS, max_steps=3))
    monkeypatch.setattr(sifting, "proximal_points", short)
    started, usual = [], sifting.by_interior_points
    monkeypatch.setattr(sifting, "by_interior_points", lambda *task: started.append(1) or usual(*task))
    *_, last = by_proximal_points(Rows(problem, X, y, weights), None)
    assert started == [1]
    assert last.gap <= 1e-10


def test_wide_data_are_not_for_it(monkeypatch):
    """Fewer rows than a quarter of the columns' square: interior points from the beginning."""
    monkeypatch.setattr(sifting, "proximal_points", None)
    X, y, weights = toy(200, 40, seed=7)
    *_, last = by_proximal_points(Rows(Problem("hinge", 1.0), X, y, weights), None)
    assert last.gap <= 1e-10


@pytest.mark.parametrize("patience", [0, 1, 5])
def test_it_stops_when_it_is_told_to(patience):
    """With the point that was reached."""
    X, y, weights = toy(300, 4)
    asked = iter([False] * patience)
    found = list(proximal_points(Problem("hinge", 1.0), X, y, weights, lambda: next(asked, True)))
    assert len(found) >= 1
    assert np.isfinite(found[-1].w).all()
    assert next(asked, None) is None


@pytest.mark.parametrize("scale", [1e-8, 1.0, 1e8])
def test_units_do_not_matter(scale):
    """The same problem in other units: as many points, the same gaps."""
    X, y, weights = toy(500, 4, seed=8)
    gaps = [point.gap for point in proximal_points(Problem("hinge", 1.0), X, y, weights)]
    others = [point.gap for point in proximal_points(Problem("hinge", scale**-2), X * scale, y, weights)]
    assert gaps[-1] <= 1e-10
    assert others[-1] <= 1e-10
    assert abs(len(gaps) - len(others)) <= 2


class TestAlgorithm:
    def test_it_certifies(self, rules_alone, monkeypatch):
        started, usual = [], sifting.by_interior_points
        monkeypatch.setattr(sifting, "by_interior_points", lambda *task: started.append(1) or usual(*task))
        X, y, weights = toy(3000, 5, seed=9)
        X = X * np.array([1e-3, 1.0, 30.0, 1e3, 1.0])
        model = MaxMarginClassifier(10.0, loss="hinge", algorithm="proximal-point", tol=1e-8)
        model.fit(X, y, sample_weight=weights)
        assert model.status_ is Status.CERTIFIED
        assert {report.stage for report in model.history_} == {"proximal-point"}
        assert not started  # all by itself
        assert verify(model, X, y, sample_weight=weights).gap <= 1e-8

    def test_the_point_that_is_near_enough_is_proved_and_not_valued(self, rules_alone, monkeypatch):
        X, y, weights = toy(3000, 5, seed=9)
        valued, evaluate = [], Run.evaluate
        certified = Mock(wraps=maxmargin.fit.certifier.certify)
        monkeypatch.setattr(maxmargin.fit.certifier, "certify", certified)
        monkeypatch.setattr(
            Run, "evaluate", lambda run, *point: valued.append(point[0]) or evaluate(run, *point)
        )
        model = MaxMarginClassifier(1.0, loss="hinge", algorithm="proximal-point", tol=1e-6)
        model.fit(X, y, sample_weight=weights)
        assert model.status_ is Status.CERTIFIED
        assert certified.call_count == 1
        assert valued
        assert not any(np.array_equal(w, model.coef_[0]) for w in valued)

    def test_what_it_does_not_solve_is_refused(self):
        X, y, _ = toy(20, 2)
        with pytest.raises(ValueError, match="finite C"):
            MaxMarginClassifier(np.inf, algorithm="proximal-point").fit(X, y)
        assert ProximalPoint().refuses(Problem("squared_hinge", 1.0)) == 'loss="hinge"'
        assert ProximalPoint().refuses(Problem("hinge", 1.0, 3.0)) == "p=2 with norm_power=2"
        assert ProximalPoint().refuses(Problem("hinge", 1.0)) is None
