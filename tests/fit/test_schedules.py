"""Schedules: full passes, active sets and halving; presentations, termination and interruption."""

from __future__ import annotations

import numpy as np
import pytest
from effort import examples, interpreted, thorough
from hypothesis import given, settings
from hypothesis import strategies as st
from oracle import optimum

import maxmargin.fit.extrapolation
import maxmargin.fit.state
from maxmargin import MaxMarginClassifier, Problem
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
@pytest.mark.parametrize(("name", "schedule"), SCHEDULED)
def test_results_without_shuffling_do_not_depend_on_the_seed(name, schedule):
    X, y = separated(5)
    options = {"intercept": problem_for(name).intercept, "tol": 1e-9, "max_iter": 6}

    def result(seed, shuffle):
        rule = ALGORITHMS[name](schedule=schedule, shuffle=shuffle, **SETTINGS.get(name, {}))
        model = MaxMarginClassifier(np.inf, algorithm=rule, random_state=seed, **options).fit(X, y)
        return model.history_[-1].steps, model.coef_.tobytes(), model.intercept_.tobytes()

    assert len({result(seed, False) for seed in (0, 1, None)}) == 1
    assert result(3, True) == result(3, True)


# the clock


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
    count_passes(maxmargin.fit.extrapolation, "trace", lambda lines: len(lines) - 1)
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
