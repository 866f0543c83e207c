"""Schedules: full passes, active sets and halving; presentations, termination and interruption."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
import scipy.sparse as sp
from effort import examples, interpreted, thorough
from hypothesis import given, settings
from hypothesis import strategies as st
from oracle import optimum

import maxmargin.fit.run
import maxmargin.fit.state
from maxmargin import IMA, MaxMarginClassifier, Problem, Status
from maxmargin.algorithms import ALGORITHMS, Bias
from maxmargin.algorithms.base import PerceptronLike
from maxmargin.data.rows import Patterns
from maxmargin.data.task import Task
from maxmargin.fit.run import Run
from maxmargin.fit.schedules import SCHEDULES

EUCLIDEAN = [
    name for name in ALGORITHMS if ALGORITHMS[name]().refuses(Problem("squared_hinge", np.inf)) is None
]
PERCEPTRON_LIKE = [name for name in EUCLIDEAN if issubclass(ALGORITHMS[name], PerceptronLike)]
IN_ORDER = [("mpu", schedule) for schedule in ALGORITHMS["mpu"].schedules]
SCHEDULED = [(name, schedule) for name in PERCEPTRON_LIKE for schedule in ALGORITHMS[name].schedules]
SETTINGS = {"cramma": {"eta": 0.05}, "micra": {"eta": 0.5}, "fixed-margin": {"beta": 0.02, "eta": 0.05}}
seeds = st.integers(0, 2**20)


def problem_for(name: str, C: float = np.inf) -> Problem:
    """A problem that the rule solves, with its kind of intercept."""
    return Problem("squared_hinge", C, intercept="free" if ALGORITHMS[name].bias is Bias.OWN else "augmented")


def separated(seed: int, n: int = 30, d: int = 4, gap: float = 1.5) -> tuple[np.ndarray, np.ndarray]:
    """Rows of two separable classes."""
    rng = np.random.default_rng(seed)
    y = np.where(rng.random(n) < 0.5, 1.0, -1.0)
    y[:2] = 1.0, -1.0
    X = rng.normal(size=(n, d))
    X[:, 0] = y * (gap + np.abs(X[:, 0]))
    return X, y


def start_run(name: str, X, y, problem: Problem | None = None, seed: int = 0, **options) -> Run:
    """Return a run before its first round."""
    n = len(y)
    task = Task(problem or problem_for(name), Patterns(X), y, np.ones(n), None, None)
    algorithm = ALGORITHMS[name](**SETTINGS.get(name, {}) | options)
    return Run(task, algorithm, 1e-3, np.random.default_rng(seed), lambda: False)


def run_rounds(run: Run, most: int = 400) -> int:
    """Run rounds until convergence; return their number."""
    for k, _ in enumerate(SCHEDULES[run.algorithm.schedule](run), 1):
        if run.converged or k == most:
            return k
    raise AssertionError("the schedule does not end")


# halving


@interpreted
@pytest.mark.parametrize(("name", "schedule"), [("aggressive-romma", "plain"), ("pumma", "active")])
def test_every_accuracy_is_reached_in_order(name, schedule):
    run = start_run(name, *separated(1), delta=0.03, schedule=schedule)
    visited, next_rule = [], run.take_next_rule

    def advance():
        # the accuracy advances after a full pass without an update: every pattern satisfies the rule
        assert run.scores.min() >= (1.0 - run.rule.delta) * run.h.norm2() * (1.0 - 1e-12)  # a recurrence
        visited.append(run.rule.delta)
        next_rule()

    run.take_next_rule = advance
    run_rounds(run)
    assert run.converged
    assert visited == [1.0, 0.5, 0.25, 0.125, 0.0625, 0.03125, 0.03]
    assert run.rule.delta == 0.03


# termination


@interpreted
@pytest.mark.parametrize(("name", "schedule"), [pair for pair in SCHEDULED if pair[1] != "increments"])
def test_run_ends_with_a_full_pass_without_an_update(name, schedule):
    X, y = separated(3)
    run = start_run(name, X, y, schedule=schedule)
    full, sweep = [], run.sweep

    def record_steps(h, order):
        steps = sweep(h, order)
        if h is run.h and order.size == run.n:
            full.append(steps)
        return steps

    run.sweep = record_steps
    run_rounds(run)
    assert run.converged
    assert run.steps > 0 or name == "romma"
    assert full[-1] == 0
    assert (
        all(steps > 0 for steps in full[:-1])
        or run.algorithm.schedule == "active"
        or hasattr(run.rule, "delta")
    )
    # another full pass makes no update either
    assert sweep(run.h, run.all_rows) == 0


@interpreted
@pytest.mark.parametrize(("name", "schedule"), SCHEDULED + IN_ORDER)
def test_results_without_shuffling_do_not_depend_on_the_seed(name, schedule):
    X, y = separated(5)
    options = {"intercept": problem_for(name).intercept, "tol": 1e-9, "max_iter": 6}

    def result(seed, shuffle):
        rule = ALGORITHMS[name](schedule=schedule, shuffle=shuffle, **SETTINGS.get(name, {}))
        model = MaxMarginClassifier(np.inf, algorithm=rule, random_state=seed, **options).fit(X, y)
        return model.history_[-1].steps, model.coef_.tobytes(), model.intercept_.tobytes()

    assert len({result(seed, False) for seed in (0, 1, None)}) == 1
    assert result(3, True) == result(3, True)


# the margins of IMA


@interpreted
@pytest.mark.parametrize("p", [2.0, 3.0])
@pytest.mark.parametrize("rule", ["balanced", "paper"])
def test_ima_tries_the_margins_of_its_rule(rule, p):
    """From the smallest margins of the classes at a success, before the bias moves to their middle."""
    larger = set()
    for seed in (7, 8, 9):
        X, y = separated(seed, n=60, d=8, gap=0.3)
        problem = Problem("squared_hinge", np.inf, p=p)
        run = start_run("ima", X, y, problem, increment=0.002, budget=1500, rule=rule)
        expected, tried = {}, [0.0]
        for k, _ in enumerate(SCHEDULES["increments"](run)):
            gamma = run.rule.gamma
            if gamma != tried[-1]:
                assert gamma == pytest.approx(expected[rule], rel=1e-12)
                larger.add(expected["paper"] == expected["middle"])
                tried.append(gamma)
            if run.converged or k == 400:
                break
            first, second = (
                float(run.scores[y == sign].min()) / run.h.norm2() ** 0.5 for sign in (1.0, -1.0)
            )
            expected["middle"] = 0.5 * (first + second)
            expected["balanced"] = 1.002 * expected["middle"]
            expected["paper"] = max(expected["middle"], 1.002 * min(first, second))
        assert run.converged
        assert len(tried) > 5
        assert tried == sorted(tried)
    assert rule == "balanced" or larger == {True, False}  # both terms of the maximum occur


@pytest.mark.parametrize("p", [1.0, 2.0, 3.0, np.inf])
def test_ima_hands_over_to_an_exact_method_unless_it_has_parameters(p):
    X, y = separated(5, n=120, d=8, gap=0.01)
    parts = {}
    for algorithm, point in ((IMA(), "best"), (IMA(), "last"), (IMA(increment=0.01), "best")):
        model = MaxMarginClassifier(
            np.inf, p=p, algorithm=algorithm, point=point, max_iter=60, random_state=0
        )
        parts[algorithm, point] = model.fit(X, y)
    handed, *kept = parts.values()
    assert handed.status_ is Status.CERTIFIED
    assert handed.history_[0].stage == "ima" != handed.history_[-1].stage
    assert all({report.stage for report in model.history_} == {"ima"} for model in kept)
    assert all(model.certificate_.lower < handed.certificate_.lower for model in kept)


# the stopping criterion of LIBLINEAR


@interpreted
@pytest.mark.parametrize("eps", [0.3, 0.01])
@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
def test_eps_ends_at_the_first_whole_pass_with_small_projected_gradients(loss, eps):
    """Projected gradients at the visits of the last pass; a smaller eps takes more passes."""
    X, y = separated(7, n=60, gap=-0.5)
    problem = Problem(loss, 0.6, intercept="none")
    run = start_run("dcd", X, y, problem, schedule="shrinking", eps=eps)
    ranges, sweep, U = [], run.sweep, problem.cap

    def record_gradients(h, order):
        alpha = h.alpha[order]
        sweep(h, order)
        G = run.scores[: order.size] - 1.0
        at_zero, at_cap = alpha == 0.0, alpha >= U
        projected = np.where(at_zero, np.minimum(G, 0.0), np.where(at_cap, np.maximum(G, 0.0), G))
        ranges.append((order.size, np.ptp(projected)))

    run.sweep = record_gradients
    run_rounds(run)
    assert run.converged
    assert ranges[-1][0] == run.n
    assert ranges[-1][1] <= eps
    # after a set with small ones all rows come back, and none is left out of the next pass
    assert all(a > eps or (b > eps and size == run.n) for (_, a), (size, b) in pairwise(ranges[:-1]))
    model = MaxMarginClassifier(
        0.6, loss=loss, fit_intercept=False, algorithm=run.algorithm, tol=1e-12, point="last", random_state=0
    ).fit(X, y)
    assert model.status_ is Status.CONVERGED


# the clock


@pytest.mark.parametrize(
    ("algorithm", "parameters"),
    [("fmp", {"C": np.inf, "p": 3}), ("ima", {"C": np.inf, "p": 1}), ("flexible-ima", {"C": 1.0})],
)
def test_sweeps_by_parts_give_the_same_model(algorithm, parameters, monkeypatch):
    """The stop check is called between the parts; it changes nothing else."""
    X, y = separated(5, n=200, gap=0.05)

    def coefficients():
        model = MaxMarginClassifier(
            algorithm=algorithm, max_iter=8, point="last", random_state=0, **parameters
        )
        return model.fit(sp.csr_matrix(X), y).coef_

    whole = coefficients()
    monkeypatch.setattr(maxmargin.fit.state, "ENTRIES_PER_CALL", 3000.0)
    np.testing.assert_array_equal(coefficients(), whole)


@interpreted
@pytest.mark.parametrize(
    ("name", "schedule"), [("dcd", "gap"), ("mpu", "two-level"), ("perceptron", "active")]
)
def test_at_most_one_pass_follows_an_interrupt(name, schedule, monkeypatch):
    """The limit holds for schedules of many passes per call and while iterates are recorded."""
    monkeypatch.setattr(maxmargin.fit.state, "ENTRIES_PER_CALL", 1.0)
    passes: list[int] = []

    def count_passes(module, function, number_of_passes):
        original = getattr(module, function)
        monkeypatch.setattr(
            module, function, lambda *task: passes.append(number_of_passes(task[-1])) or original(*task)
        )

    count_passes(maxmargin.fit.state, "repeat", int)
    count_passes(maxmargin.fit.state, "shrinking_sweeps", int)
    count_passes(maxmargin.fit.run, "trace", lambda lines: len(lines) - 1)
    X, y = separated(11, n=80, gap=0.02)
    for when in range(1, 30):
        passes.clear()
        task = Task(problem_for(name), Patterns(X), y, np.ones(len(y)), None, None)
        rule, rng = ALGORITHMS[name](schedule=schedule), np.random.default_rng(0)
        run = Run(task, rule, 1e-9, rng, lambda when=when: len(passes) >= when)
        for _ in SCHEDULES[schedule](run):
            if run.converged or run.interrupted():
                break
        assert set(passes) <= {1}
        assert len(passes) <= when + (schedule == "two-level")


# estimates before the run


@thorough
@settings(max_examples=examples(15, 200))
@given(
    seeds,
    st.integers(3, 25),
    st.integers(1, 5),
    st.sampled_from([np.inf, 0.5, 8.0]),
    st.sampled_from(["none", "augmented"]),
)
def test_estimates_before_the_run_are_bounds(seed, n, d, C, kind):
    """The lower bound of the margin, 1 / sqrt(2 x optimum) for the 2-norm soft margin; the default rate of CRAMMA.

    Its theorem requires eta < (sqrt(1 + 8 gamma_d / R) - 1) / 2 for the true margin.
    """
    rng = np.random.default_rng(seed)
    y = np.where(np.arange(n) % 2, 1.0, -1.0)
    X = np.rint(2.0 * (rng.normal(size=(n, d)) + y[:, None] * rng.uniform(0.0, 2.0)))
    problem = Problem("squared_hinge", C, intercept=kind)
    floor = start_run("perceptron", X, y, problem)._margin_lower_bound()
    exact = optimum(problem, X, y, np.ones(n))
    low, high = float(exact.lower), float(exact.upper)
    if not problem.hard:
        assert floor > 0.0
        low, high = (2.0 * high) ** -0.5, (2.0 * low) ** -0.5
    assert floor <= high * (1.0 + 1e-12)
    assert floor > 0.0 or low <= 0.05 * np.linalg.norm(X, axis=1).max()
    if floor > 0.0:
        rule = start_run("cramma", X, y, problem, eta=None).rule
        assert 0.0 < rule.eta < 0.5 * ((1.0 + 8.0 * high / rule.R) ** 0.5 - 1.0)
        assert rule.eta >= 0.005 * ((1.0 + 8.0 * low / rule.R) ** 0.5 - 1.0)


@pytest.mark.parametrize("intercept", ["free", "augmented"])
@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
def test_data_larger_than_the_cache_have_bounds_in_every_fifth_visit(loss, intercept):
    """Text-like rows of 36 MB, sorted by class."""
    rng = np.random.default_rng(0)
    n, d, k = 300_000, 30_000, 16
    words = np.minimum((d ** rng.random((n, k))).astype(np.int32), d - 1)
    X = sp.csr_array((np.full(n * k, k**-0.5), words.ravel(), np.arange(0, n * k + 1, k)), shape=(n, d))
    score = X @ rng.normal(size=d)
    y = np.sign(score + rng.normal(scale=0.5 * score.std(), size=n))
    order = np.argsort(y)
    model = MaxMarginClassifier(loss=loss, intercept=intercept, random_state=0).fit(X[order], y[order])
    visits = np.array([0, *(report.presentations for report in model.history_)]) / n
    assert model.status_ is Status.CERTIFIED
    assert np.diff(visits).max() <= 5.0
    assert visits[-1] <= 20.0


@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
@pytest.mark.parametrize("C", [0.1, 10.0])
def test_run_at_optimal_dual_variables_with_an_augmented_intercept_is_at_the_optimum(loss, C):
    """The constant coordinate is far larger than the engine's, whose bias starts at the rest of the intercept."""
    X, y = separated(0, n=60)
    X[:, 0] *= y * np.random.default_rng(0).choice(
        [-1.0, 1.0], y.size, p=[0.3, 0.7]
    )  # not separable, mean not 0
    problem, n = Problem(loss, C, intercept="augmented", intercept_scaling=10.0), y.size
    exact = optimum(problem, X, y, np.ones(n))
    found = MaxMarginClassifier(C, loss=loss, intercept="augmented", intercept_scaling=10.0, tol=1e-9).fit(
        X, y
    )
    alpha = np.zeros(n)
    alpha[found.certificate_.support] = found.certificate_.dual
    task = Task(problem, Patterns(X), y, np.ones(n), alpha)
    run = Run(task, ALGORITHMS["dcd"](), 1e-3, np.random.default_rng(0), lambda: False)
    for _ in range(2):
        run.evaluate_iterate()
        assert run.best.gap <= 1e-6
        assert run.best.upper == pytest.approx(float(exact.upper), rel=1e-6)
        np.testing.assert_allclose(run._point()[1], found.intercept_, rtol=1e-4)
        run.full_passes(1)
