"""Full passes, active sets and halving: what they present, when they end, and what they may be told."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from oracle import optimum

import maxmargin.fit.extrapolation
import maxmargin.fit.state
from maxmargin import MaxMarginClassifier, Perceptron, Problem, Status
from maxmargin.algorithms import ALGORITHMS, CRAMMA, PUMMA, AggressiveROMMA, Bias
from maxmargin.algorithms.base import PerceptronLike
from maxmargin.algorithms.online.halving import accuracies
from maxmargin.data.rows import Patterns
from maxmargin.data.task import Task
from maxmargin.fit.run import Run
from maxmargin.fit.schedules import MAX_VISITS, SCHEDULES

EUCLIDEAN = [
    name for name in ALGORITHMS if ALGORITHMS[name]().refuses(Problem("squared_hinge", np.inf)) is None
]
FAMILY = [name for name in EUCLIDEAN if issubclass(ALGORITHMS[name], PerceptronLike)]
SCHEDULED = [(name, schedule) for name in FAMILY for schedule in ALGORITHMS[name].schedules]
SETTINGS = {"cramma": {"eta": 0.05}, "micra": {"eta": 0.5}, "fixed-margin": {"beta": 0.02, "eta": 0.05}}
seeds = st.integers(0, 2**20)


def problem_for(name: str, C: float = np.inf) -> Problem:
    """The problem that the rule is for, with the intercept that it knows."""
    return Problem("squared_hinge", C, intercept="free" if ALGORITHMS[name].bias is Bias.OWN else "augmented")


def separated(seed: int, n: int = 30, d: int = 4, gap: float = 1.5) -> tuple[np.ndarray, np.ndarray]:
    """Rows of two classes that are some way apart."""
    rng = np.random.default_rng(seed)
    y = np.where(rng.random(n) < 0.5, 1.0, -1.0)
    y[:2] = 1.0, -1.0
    X = rng.normal(size=(n, d))
    X[:, 0] = y * (gap + np.abs(X[:, 0]))
    return X, y


def started(name: str, X, y, problem: Problem | None = None, seed: int = 0, **options) -> Run:
    """A run before its first round."""
    n = len(y)
    task = Task(problem or problem_for(name), Patterns(X), y, np.ones(n), None, None)
    algorithm = ALGORITHMS[name](**SETTINGS.get(name, {}), **options)
    return Run(task, algorithm, 1e-3, np.random.default_rng(seed), lambda: False)


def rounds(run: Run, most: int = 400) -> int:
    """Rounds of its schedule until it has converged."""
    for k, _ in enumerate(SCHEDULES[run.algorithm.schedule](run), 1):
        if run.converged or k == most:
            return k
    raise AssertionError("a schedule goes on for ever")


# halving


@given(st.floats(1e-9, 1.0))
def test_halving_goes_from_one_to_the_target(target):
    visited = accuracies(target, True)
    assert visited[-1] == target
    assert visited[:-1] == [0.5**k for k in range(len(visited) - 1)]
    assert len(visited) == 1 or visited[-2] > target >= 0.5 * visited[-2]
    assert accuracies(target, False) == [target]


@pytest.mark.parametrize("schedule", ["active", "plain"])
@pytest.mark.parametrize("name", ["aggressive-romma", "pumma"])
def test_every_accuracy_is_visited_in_turn_and_the_last_ends(name, schedule):
    run = started(name, *separated(1), delta=0.03, schedule=schedule)
    seen, next_rule = [], run.take_next_rule

    def advance():
        # a rule makes way after a full pass without an update: every pattern is right for it
        assert run.scores.min() >= (1.0 - run.rule.delta) * run.h.norm2() * (1.0 - 1e-12)
        seen.append(run.rule.delta)
        next_rule()

    run.take_next_rule = advance
    rounds(run)
    assert run.converged
    assert seen == [1.0, 0.5, 0.25, 0.125, 0.0625, 0.03125, 0.03]
    assert run.rule.delta == 0.03


@pytest.mark.parametrize("C", [np.inf, 1.0])
@pytest.mark.parametrize("rule", [AggressiveROMMA, PUMMA])
def test_no_accuracy_is_the_one_that_certifies_the_tolerance(rule, C):
    X, y = separated(2)
    kind = "free" if rule.bias is Bias.OWN else "augmented"
    for tol in (0.3, 0.03, 0.003):
        model = MaxMarginClassifier(C, algorithm=rule(), intercept=kind, tol=tol, random_state=0).fit(X, y)
        assert model.status_ is Status.CERTIFIED
        assert model.certificate_.gap <= tol


# where it ends


@pytest.mark.parametrize(("name", "schedule"), [pair for pair in SCHEDULED if pair[1] != "increments"])
def test_the_end_is_a_full_pass_without_an_update(name, schedule):
    X, y = separated(3)
    run = started(name, X, y, schedule=schedule)
    full, sweep = [], run.sweep

    def noted(h, order):
        steps = sweep(h, order)
        if h is run.h and order.size == run.n:
            full.append(steps)
        return steps

    run.sweep = noted
    rounds(run)
    assert run.converged
    assert run.steps > 0 or name == "romma"
    assert full[-1] == 0
    assert (
        all(steps > 0 for steps in full[:-1])
        or run.algorithm.schedule == "active"
        or hasattr(run.rule, "delta")
    )
    # nothing is left to do: another full pass makes no update either
    assert sweep(run.h, run.all_rows) == 0


@pytest.mark.parametrize("name", FAMILY)
def test_updates_come_only_from_what_was_presented(name):
    """Every presentation is counted, packed rows included, and steps are no more than presentations."""
    X, y = separated(4)
    run = started(name, X, y, schedule="active")
    taken = []
    narrow, sweep = run.shrinking_sweeps, run.sweep

    def narrowed(h, rows, passes):
        before = run.steps
        narrow(h, rows, passes)
        taken.append(run.steps - before)

    run.shrinking_sweeps = narrowed
    run.sweep = lambda h, order: taken.append(sweep(h, order)) or taken[-1]
    rounds(run)
    assert sum(taken) == run.steps <= run.presentations


@pytest.mark.parametrize(("name", "schedule"), SCHEDULED)
def test_the_order_of_the_data_needs_no_seed(name, schedule):
    X, y = separated(5)
    kind = problem_for(name).intercept

    def fitted(seed, shuffle):
        rule = ALGORITHMS[name](schedule=schedule, shuffle=shuffle, **SETTINGS.get(name, {}))
        model = MaxMarginClassifier(
            np.inf, intercept=kind, algorithm=rule, tol=1e-9, max_iter=6, random_state=seed
        ).fit(X, y)
        return model.history_[-1].steps, model.coef_.tobytes(), model.intercept_.tobytes()

    assert len({fitted(seed, False) for seed in (0, 1, None)}) == 1
    assert fitted(3, True) == fitted(3, True)


@pytest.mark.parametrize(("name", "schedule"), SCHEDULED)
def test_inseparable_data_end(name, schedule):
    """A row with both labels: no separator, no lower bound above 0, and an end after so many rounds at the latest."""
    X, y = separated(6)
    X[1] = X[0]
    rule = ALGORITHMS[name](schedule=schedule, **SETTINGS.get(name, {}))
    model = MaxMarginClassifier(
        np.inf, intercept=problem_for(name).intercept, algorithm=rule, max_iter=8, random_state=0
    ).fit(X, y)
    assert model.certificate_.lower <= 0.0
    assert model.status_ in (Status.INSEPARABLE, Status.UNDECIDED)
    soft = MaxMarginClassifier(
        1.0, intercept=problem_for(name).intercept, algorithm=rule, max_iter=8, random_state=0
    ).fit(X, y)
    assert soft.certificate_.lower > 0.0


def test_passes_between_two_looks_double():
    run = started("perceptron", *separated(7, gap=0.02), schedule="plain", shuffle=False)
    passes, before = [], 0
    for _ in SCHEDULES["plain"](run):
        passes.append((run.presentations - before) // run.n - 1)
        before = run.presentations
        if run.converged or len(passes) == 6:
            break
    assert passes[:-1] == [2**k for k in range(len(passes) - 1)]
    assert len(passes) >= 4


@pytest.mark.parametrize("name", FAMILY)
def test_a_round_is_short_however_long_active_sets_are(name):
    """Inseparable: a set never empties, and passes over it come to an end all the same; looks are that near."""
    X, y = separated(9, n=60)
    y[::7] *= -1.0
    run = started(name, X, y, schedule="active")
    before = 0
    for k, _ in enumerate(SCHEDULES["active"](run)):
        assert run.presentations - before <= 2 * MAX_VISITS + 3 * run.n
        before = run.presentations
        if k == 12 or run.converged:
            break
    assert k == 12 or name in ("fixed-margin", "micra", "romma", "aggressive-romma", "pumma")


# the clock


@pytest.mark.parametrize("name", ["dcd", "mpu", "perceptron", "fmp"])
def test_asking_for_the_time_after_every_pass_changes_nothing(name, monkeypatch):
    X, y = separated(11, n=80, gap=0.05)
    made = []
    for entries in (maxmargin.fit.state.ENTRIES_PER_CALL, 1.0):
        monkeypatch.setattr(maxmargin.fit.state, "ENTRIES_PER_CALL", entries)
        run = started(name, X, y)
        rounds(run, 20)
        made.append((run.presentations, run.steps, *run.h.alpha, *run.h.space.vector.w))
    assert made[0] == made[1]
    assert run.passes_per_call(run.n) == 1


@pytest.mark.parametrize(
    ("name", "schedule"), [("dcd", "gap"), ("mpu", "two-level"), ("perceptron", "active")]
)
def test_one_pass_at_most_is_made_once_it_is_time_to_stop(name, schedule, monkeypatch):
    """Of many rows, however many passes a schedule asks for at once, and while iterates are gathered."""
    monkeypatch.setattr(maxmargin.fit.state, "ENTRIES_PER_CALL", 1.0)
    passes: list[int] = []

    def counted(module, function, asked):
        usual = getattr(module, function)
        monkeypatch.setattr(module, function, lambda *task: passes.append(asked(task[-1])) or usual(*task))

    counted(maxmargin.fit.state, "repeat", int)
    counted(maxmargin.fit.state, "shrinking_sweeps", int)
    counted(maxmargin.fit.extrapolation, "trace", lambda lines: len(lines) - 1)
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


# what is known beforehand


@settings(max_examples=60)
@given(
    seeds,
    st.integers(2, 25),
    st.integers(1, 5),
    st.sampled_from([np.inf, 0.5, 8.0]),
    st.sampled_from(["none", "augmented"]),
)
def test_the_floor_is_a_lower_bound(seed, n, d, C, kind):
    """Of the largest margin, or of 1 / sqrt(2 x optimum) for the 2-norm soft margin, whatever the data."""
    rng = np.random.default_rng(seed)
    y = np.where(np.arange(n) % 2, 1.0, -1.0)
    X = np.rint(2.0 * (rng.normal(size=(n, d)) + y[:, None] * rng.uniform(0.0, 2.0)))
    problem = Problem("squared_hinge", C, intercept=kind)
    floor = started("perceptron", X, y, problem)._margin_lower_bound()
    truth = optimum(problem, X, y, np.ones(n))
    if problem.hard:
        assert floor <= float(truth.upper) * (1.0 + 1e-12)
        assert floor > 0.0 or truth.lower <= 0.05 * np.linalg.norm(X, axis=1).max()
    else:
        assert 0.0 < floor <= (2.0 * float(truth.lower)) ** -0.5 * (1.0 + 1e-12)


@settings(max_examples=40)
@given(seeds, st.integers(3, 20), st.integers(1, 5), st.sampled_from([np.inf, 0.5]))
def test_the_rate_that_is_taken_is_one_that_the_theorem_covers(seed, n, d, C):
    """eta < (sqrt(1 + 8 gamma_d / R) - 1) / 2 for the true margin, which is not known before the run."""
    X, y = separated(seed, n, d, gap=0.3)
    problem = Problem("squared_hinge", C, intercept="augmented")
    run = started("perceptron", X, y, problem)
    rule = Run(
        Task(problem, Patterns(X), y, np.ones(n), None, None),
        CRAMMA(),
        1e-3,
        np.random.default_rng(0),
        lambda: False,
    ).rule
    truth = optimum(problem, X, y, np.ones(n))
    gamma = float(truth.lower) if problem.hard else (2.0 * float(truth.upper)) ** -0.5
    assume(run._margin_lower_bound() > 0.0)
    assert 0.0 < rule.eta < 0.5 * ((1.0 + 8.0 * gamma / rule.R) ** 0.5 - 1.0)
    assert rule.eta >= 0.01 * 0.5 * ((1.0 + 8.0 * gamma / rule.R) ** 0.5 - 1.0)


def test_the_perceptrons_default_is_the_papers_order():
    """Plain full passes, each in an order of its own unless the order of the data is asked for."""
    assert Perceptron().schedule == "plain"
    run = started("perceptron", *separated(8))
    orders = [run.order().tolist() for _ in range(3)]
    assert all(sorted(order) == list(range(run.n)) for order in orders)
    assert orders[0] != orders[1] != orders[2]
    assert started("perceptron", *separated(8), shuffle=False).order().tolist() == list(range(run.n))
