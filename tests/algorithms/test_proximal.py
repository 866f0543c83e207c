"""Proximal points on the dual of the hinge: subproblems against their definition, ends against Clarabel."""

from __future__ import annotations

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
    ALPHA_SUM,
    ENDED,
    FAILED,
    HINGE,
    N_ACTIVE,
    SIGNED,
    SQUARES,
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
    made, original = [], _State.solve

    def recorded(state, *task):
        taken = original(state, *task)
        made.extend([1] * taken)
        return taken

    monkeypatch.setattr(_State, "solve", recorded)
    return made


def started_state(
    problem: Problem, X, y, weights, start: Start | None = None, solved: float = 1e-12
) -> _State:
    """The state at a start, in the first proximal subproblem, solved to this share of its gradient.

    All gaps are reported: `solve` ends with every subproblem.
    """
    rules = SETTINGS.rules._replace(gradient_share=solved)
    rows, settings = centred_rows(problem, X), SETTINGS._replace(rules=rules, first_report_gap=np.inf)
    state = _State(rows, y, problem.caps(weights) * rows.unit**2, 1.0, lambda: False, settings)
    state.start_from(start)
    return state


def smoothed_hinge(near, sigma, slack, cap):
    """The maximum of s slack - (s - near)^2 / (2 sigma) over a grid of s in [0, 1], summed over patterns."""
    s = np.linspace(0.0, 1.0, 20_001)[:, None]
    return float(cap @ (s * slack - (s - near) ** 2 / (2.0 * sigma)).max(axis=0))


@pytest.mark.parametrize("sigma", [0.1, 1.0, 30.0])
def test_shares_maximise_the_smoothed_hinge(sigma):
    """The shares are the maximisers, and their weighted sum is the slope of the smoothed hinge in the slack."""
    rng = np.random.default_rng(0)
    near, slack, cap = rng.random(40), rng.normal(size=40), 1.0 + rng.random(40)
    active, values, data = np.zeros(40, bool), np.zeros(13), np.zeros((6, 40))
    data[:4] = -np.ones(40), cap, near, slack
    clip_shares(sigma, 1.0, False, data, active, values)
    share = -data[SIGNED] / cap  # every label is -1
    sums = cap @ share, cap @ share**2, cap @ np.maximum(slack, 0.0), np.count_nonzero(active)
    assert values[[ALPHA_SUM, SQUARES, HINGE, N_ACTIVE]] == pytest.approx(sums)
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
    share = -data[SIGNED] / cap
    assert active[::2].all()
    assert share[::2] == pytest.approx((near + sigma * slack)[::2])
    assert share[1::2] == pytest.approx(np.clip(near + sigma * slack, 0.0, 1.0)[1::2])
    values = [smoothed_hinge(near, sigma, slack + t, cap) for t in (-1e-3, 1e-3)]
    slope = float(cap @ np.clip(near + sigma * slack, 0.0, 1.0))
    assert slope == pytest.approx((values[1] - values[0]) / 2e-3, rel=1e-2, abs=1e-2)


@settings(max_examples=50, deadline=None)
@given(
    seed=st.integers(0, 10**6),
    sigma=st.sampled_from([1e-3, 1.0, 1e3]),
    curvature=st.sampled_from([0.1, 10.0]),
)
def test_line_minimum_minimises_the_objective(seed, sigma, curvature):
    """Against a derivative-free search; the function is convex."""
    rng = np.random.default_rng(seed)
    near, slack, step, cap = rng.random(60), rng.normal(size=60), rng.normal(size=60), rng.random(60)

    def value(t):
        s = np.clip(near + sigma * (slack - t * step), 0.0, 1.0)
        hinges = s * (slack - t * step) - (s - near) ** 2 / (2.0 * sigma)
        return slope * t + 0.5 * curvature * t * t + float(cap @ hinges)

    at_zero = float(cap @ (step * np.clip(near + sigma * slack, 0.0, 1.0)))
    slope = at_zero - 1.0 - 5.0 * rng.random()  # negative at zero
    zero = np.zeros(60)
    t = line_minimum(sigma, 1.0, np.array([zero, cap, near, slack, zero, step]), slope, curvature, 1e-9)
    least = minimize_scalar(
        value, bounds=(0.0, max(4.0 * t, 1.0)), method="bounded", options={"xatol": 1e-12}
    )
    assert t > 0.0
    assert value(t) <= least.fun + 1e-9 * (1.0 + abs(least.fun))


@pytest.mark.parametrize("intercept", INTERCEPTS)
@pytest.mark.parametrize("sigma", [0.3, 20.0])
def test_solved_subproblem_is_the_proximal_point(intercept, sigma):
    """Against Clarabel: every share has its own quadratic term, of weight 1 / (sigma c) about `near`."""
    X, y, weights = toy(60, 3, seed=2)
    problem = Problem("hinge", 0.7, intercept=intercept)
    near = np.random.default_rng(1).random(60)
    state = started_state(problem, X, y, weights, Start(np.zeros(3), 0.0, near, sigma))
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
    assert state.alpha() / c == pytest.approx(found, abs=1e-5)


@pytest.mark.parametrize("C", [1e-3, 1.0, 1e3])
@pytest.mark.parametrize("intercept", INTERCEPTS)
@pytest.mark.parametrize("stored", ["dense", "sparse", "float32"])
def test_final_point_is_the_optimum(stored, intercept, C):
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
    for gap, proof in zip(gaps, proofs, strict=True):  # reported gaps agree with proved gaps
        assert proof.gap <= 3.0 * gap + 1e-12


def test_dual_values_do_not_decrease():
    """As in the proximal-point method: each solution is at least as good as its proximal centre."""
    X, y, weights = toy(300, 4, seed=4)
    problem = Problem("hinge", 1.0, intercept="none")
    state = started_state(problem, X, y, weights, solved=1e-10)
    values = []
    for _ in range(100):
        state.solve(100, -1.0)
        if state.status == ENDED:
            values.append(float(state.y @ state.data[SIGNED]) - 0.5 * float(state.dual_sum @ state.dual_sum))
            state.next_problem()
        elif state.status == FAILED:
            break
    assert len(values) > 5
    assert (np.diff(values) >= -1e-9 * abs(values[-1])).all()


def test_warm_start_saves_steps(steps):
    """Shares and sigma of a nearly optimal hyperplane take fewer steps than a start at w = 0."""
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
def test_number_of_steps_is_bounded_for_all_costs(steps, d, C):
    """Including one or no pattern within the margin, and slacks as small as C."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(600, 4))
    y = np.where(X @ rng.normal(size=4) + rng.normal(size=600) > 0.0, 1.0, -1.0)
    gaps = [point.gap for point in proximal_points(Problem("hinge", C), X[:, :d], y, np.ones(600))]
    assert min(gaps) <= 1e-9
    assert len(steps) <= 60


@pytest.mark.parametrize("intercept", INTERCEPTS)
@pytest.mark.parametrize("C", [1e-2, 1.0, 1e4])
def test_cancelling_patterns_end_at_zero(intercept, C):
    """Exclusive or: w = 0 is the optimum, every gradient is zero, and the shares still move."""
    X = np.array([[a, b] for a in (-1.0, 1.0) for b in (-1.0, 1.0)] * 50)
    found = list(
        proximal_points(Problem("hinge", C, intercept=intercept), X, X[:, 0] * X[:, 1], np.ones(200))
    )
    w, _, alpha, gap, _ = found[-1]
    assert gap <= 1e-10
    assert np.abs(w).max() <= 1e-9
    assert alpha == pytest.approx(np.full(200, C))


def test_interior_points_follow_an_early_end(monkeypatch):
    X, y, weights = toy(300, 4, seed=6)
    problem = Problem("hinge", 1.0)
    short = partial(proximal_points, settings=SETTINGS._replace(max_steps=3))
    monkeypatch.setattr(sifting, "proximal_points", short)
    fallbacks, original = [], sifting.by_interior_points
    monkeypatch.setattr(sifting, "by_interior_points", lambda *task: fallbacks.append(1) or original(*task))
    *_, last = by_proximal_points(Rows(problem, X, y, weights), None)
    assert fallbacks == [1]
    assert last.gap <= 1e-10


def test_wide_data_are_solved_by_interior_points(monkeypatch):
    """Fewer rows than a quarter of the squared number of columns: interior points from the start."""
    monkeypatch.setattr(sifting, "proximal_points", None)
    X, y, weights = toy(200, 40, seed=7)
    *_, last = by_proximal_points(Rows(Problem("hinge", 1.0), X, y, weights), None)
    assert last.gap <= 1e-10


@pytest.mark.parametrize("patience", [0, 1, 5])
def test_interrupt_stops_the_iteration(patience):
    """The last iterate is yielded."""
    X, y, weights = toy(300, 4)
    polls = iter([False] * patience)
    found = list(proximal_points(Problem("hinge", 1.0), X, y, weights, lambda: next(polls, True)))
    assert len(found) >= 1
    assert np.isfinite(found[-1].w).all()
    assert next(polls, None) is None


@pytest.mark.parametrize("scale", [1e-8, 1.0, 1e8])
def test_number_of_points_is_independent_of_units(scale):
    """The same problem in other units takes as many points, up to two."""
    X, y, weights = toy(500, 4, seed=8)
    gaps = [point.gap for point in proximal_points(Problem("hinge", 1.0), X, y, weights)]
    others = [point.gap for point in proximal_points(Problem("hinge", scale**-2), X * scale, y, weights)]
    assert gaps[-1] <= 1e-10
    assert others[-1] <= 1e-10
    assert abs(len(gaps) - len(others)) <= 2


class TestAlgorithm:
    def test_problems_with_uneven_scales_are_certified(self, rules_alone, monkeypatch):
        fallbacks, original = [], sifting.by_interior_points
        monkeypatch.setattr(
            sifting, "by_interior_points", lambda *task: fallbacks.append(1) or original(*task)
        )
        X, y, weights = toy(3000, 5, seed=9)
        X = X * np.array([1e-3, 1.0, 30.0, 1e3, 1.0])
        model = MaxMarginClassifier(10.0, loss="hinge", algorithm="proximal-point", tol=1e-8)
        model.fit(X, y, sample_weight=weights)
        assert model.status_ is Status.CERTIFIED
        assert {report.stage for report in model.history_} == {"proximal-point"}
        assert not fallbacks  # without interior points
        assert verify(model, X, y, sample_weight=weights).gap <= 1e-8

    def test_final_point_is_certified_and_not_evaluated(self, rules_alone, monkeypatch):
        X, y, weights = toy(3000, 5, seed=9)
        evaluated, evaluate = [], Run.evaluate
        certified = Mock(wraps=maxmargin.fit.certifier.certify)
        monkeypatch.setattr(maxmargin.fit.certifier, "certify", certified)
        monkeypatch.setattr(
            Run, "evaluate", lambda run, *point: evaluated.append(point[0]) or evaluate(run, *point)
        )
        model = MaxMarginClassifier(1.0, loss="hinge", algorithm="proximal-point", tol=1e-6)
        model.fit(X, y, sample_weight=weights)
        assert model.status_ is Status.CERTIFIED
        assert certified.call_count == 1
        assert evaluated
        assert not any(np.array_equal(w, model.coef_[0]) for w in evaluated)

    def test_unsupported_problems_are_refused(self):
        X, y, _ = toy(20, 2)
        with pytest.raises(ValueError, match="finite C"):
            MaxMarginClassifier(np.inf, algorithm="proximal-point").fit(X, y)
        assert ProximalPoint().refuses(Problem("squared_hinge", 1.0)) == 'loss="hinge"'
        assert ProximalPoint().refuses(Problem("hinge", 1.0, 3.0)) == "p=2 with norm_power=2"
        assert ProximalPoint().refuses(Problem("hinge", 1.0)) is None
