"""Pegasos: its steps, its regret bound, and valid bounds from its dual weights."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from effort import interpreted
from oracle import optimum

from maxmargin import MaxMarginClassifier, Problem, Status, verify
from maxmargin.algorithms import Facts
from maxmargin.algorithms.online.pegasos import Pegasos
from maxmargin.data.rows import Patterns
from maxmargin.data.task import Task
from maxmargin.engine.state import Scaled, refresh
from maxmargin.engine.sweep import batches
from maxmargin.fit.run import Run
from maxmargin.fit.schedules import SCHEDULES

STORES = {"dense": np.asarray, "csr": sp.csr_matrix}
PLAIN = Problem("hinge", 0.7, intercept="none")
PROBLEMS = [
    PLAIN,
    Problem("hinge", 2.0, intercept="augmented", intercept_scaling=1.5),
    Problem("hinge", 0.05, intercept="free"),
]


def cloud(seed, n=40, d=4, binary=False):
    rng = np.random.default_rng(seed)
    y = np.where(rng.random(n) < 0.5, 1.0, -1.0)
    y[:2] = 1.0, -1.0
    X = rng.normal(size=(n, d)) + 0.4 * y[:, None]
    return (X > 0.3).astype(float) if binary else X, y, 10.0 ** rng.uniform(-1, 1, n)


def naive(Y, caps, turns, projection):
    """w <- (1 - 1/t) w + sum over violators of (n cap_i / (t k)) y_i; return path of w, dual weights, nearest tie."""
    n, w, alpha, nearest = len(Y), np.zeros(Y.shape[1]), np.zeros(len(Y)), np.inf
    path = [w]
    for t, batch in enumerate(turns, 1):
        scores = [w @ Y[i] for i in batch]
        nearest = min(nearest, *(abs(s - 1.0) for s in scores))
        w, alpha = (1.0 - 1.0 / t) * w, (1.0 - 1.0 / t) * alpha
        for i, s in zip(batch, scores, strict=True):
            if s < 1.0:
                c = n * caps[i] / (t * len(batch))
                w, alpha[i] = w + c * Y[i], alpha[i] + c
        if projection:
            shrink = min(1.0, np.sqrt(caps.sum()) / np.linalg.norm(w)) if w.any() else 1.0
            w, alpha = shrink * w, shrink * alpha
        path.append(w)
    return path, alpha, nearest


def engine(X, y, s, problem, algorithm, turns, rho):
    """Run the turns on the engine; return the scores of each turn and the final state."""
    patterns, caps = Patterns(X), problem.caps(s)
    h = patterns.weight(problem, y, s, 1.0, rho, Scaled)
    rule = algorithm.plan(Facts(problem, 1.0, 0.1, n=patterns.n, losses=float(caps.sum()))).rule
    scores_of_turns = []
    for batch in turns:
        scores = np.empty(len(batch))
        batches(rule, h, np.asarray(batch, np.uint32), scores)
        scores_of_turns.append(scores)
    refresh(h)
    return scores_of_turns, h


@interpreted
@pytest.mark.parametrize("storage", STORES)
@pytest.mark.parametrize("binary", [False, True])
@pytest.mark.parametrize("projection", [False, True])
@pytest.mark.parametrize("k", [1, 7])
@pytest.mark.parametrize("problem", PROBLEMS, ids=str)
def test_trajectory_equals_the_naive_one(problem, k, projection, binary, storage):
    """Every score of every turn, w and the dual weights agree to rounding; seeds with near ties are skipped."""
    compared = 0
    for seed in range(5):
        X, y, s = cloud(seed, binary=binary)
        rho = 1.5 if problem.intercept != "none" else 0.0
        Y = y[:, None] * (np.column_stack([X, np.full(len(y), rho)]) if rho else X)
        turns = np.random.default_rng(seed).integers(len(y), size=(60, k))
        path, alpha, nearest = naive(Y, problem.caps(s), turns, projection)
        if nearest < 1e-9:
            continue
        compared += 1
        scores_of_turns, h = engine(
            STORES[storage](X), y, s, problem, Pegasos(k, projection=projection), turns, rho
        )
        for w, batch, scores in zip(path, turns, scores_of_turns, strict=False):
            assert scores == pytest.approx(Y[batch] @ w, rel=1e-9, abs=1e-9)
        assert h.space.vector.w == pytest.approx(path[-1], rel=1e-9, abs=1e-12)
        assert h.alpha == pytest.approx(alpha, rel=1e-9, abs=1e-12)
        assert h.norm2() == pytest.approx(path[-1] @ path[-1], rel=1e-9)
    assert compared >= 3


def test_batches_in_one_call_equal_separate_batches():
    """The last batch is smaller than k."""
    X, y, s = cloud(3)
    rows = np.random.default_rng(0).integers(len(y), size=23, dtype=np.uint32)
    states = []
    for turns in ([rows], [rows[:10], rows[10:20], rows[20:]]):
        h = Patterns(X).weight(PLAIN, y, s, 1.0, 0.0, Scaled)
        rule = Pegasos(k=10).plan(Facts(PLAIN, 1.0, 0.1, n=len(y))).rule
        for part in turns:
            batches(rule, h, part, np.empty(10))
        refresh(h)
        states.append((h.space.vector.w.tolist(), h.alpha.tolist(), h.time()))
    assert states[0] == states[1]
    assert states[0][2] == 3.0


@pytest.mark.parametrize("projection", [False, True])
@pytest.mark.parametrize("k", [1, 5])
def test_regret_is_below_the_bound_of_the_theorem(k, projection):
    """Sum of F_t(w_t) - F_t(u) is at most G^2 (1 + ln T) / 2, for the best u and others of the ball."""
    for seed in range(4):
        X, y, s = cloud(seed)
        s = s if seed % 2 else np.ones(len(y))
        Y, caps, n = y[:, None] * X, PLAIN.caps(s), len(y)
        turns = np.random.default_rng(seed).integers(n, size=(500, k))
        path, _, _ = naive(Y, caps, turns, projection)
        R = np.linalg.norm(Y, axis=1).max()
        G = n * caps.max() * R
        G = G + np.sqrt(caps.sum()) if projection else 2.0 * G

        def losses(w, batch, Y=Y, caps=caps, n=n):
            return 0.5 * w @ w + n / k * caps[batch] @ np.maximum(1.0 - Y[batch] @ w, 0.0)

        best = MaxMarginClassifier(PLAIN.C, loss="hinge", fit_intercept=False).fit(X, y, s).coef_[0]
        others = np.random.default_rng(1).normal(size=(5, X.shape[1]))
        others *= 0.9 * np.sqrt(caps.sum()) / np.linalg.norm(others, axis=1, keepdims=True)
        for u in (best, 0.0 * best, *others):
            regret = sum(losses(w, b) - losses(u, b) for w, b in zip(path, turns, strict=False))
            assert regret <= 0.5 * G * G * (1.0 + np.log(len(turns)))


def test_optimum_lies_in_the_projection_ball():
    for seed in range(10):
        X, y, s = cloud(seed)
        C = 10.0 ** (seed - 5)
        w = MaxMarginClassifier(C, loss="hinge", fit_intercept=False).fit(X, y, s).coef_[0]
        assert np.linalg.norm(w) <= np.sqrt((C * s).sum())


@pytest.mark.parametrize("problem", PROBLEMS, ids=str)
@pytest.mark.parametrize("options", [{}, {"k": 9}, {"projection": True}], ids=str)
def test_running_bounds_enclose_the_optimum(problem, options):
    """The bounds are valid although dual weights exceed their caps in some rounds."""
    X, y, s = cloud(5)
    exact = optimum(problem, X, y, s)
    run = Run(
        Task(problem, Patterns(X), y, s), Pegasos(**options), 1e-3, np.random.default_rng(0), lambda: False
    )
    capped = 0
    for count, _ in enumerate(SCHEDULES["mini-batches"](run)):
        capped += bool((run.h.alpha > run.h.cap).any())
        assert run.best.lower <= float(exact.upper) * (1.0 + 1e-9)
        assert run.best.upper >= float(exact.lower) * (1.0 - 1e-9)
        if count == 20:
            break
    assert capped
    assert run.best.upper < 1.05 * float(exact.upper)
    if not problem.free:
        assert run.best.lower > 0.8 * float(exact.lower)
        assert run.best.upper < 1.01 * float(exact.upper)


def test_error_decreases_with_the_number_of_steps():
    """Sixteen times as many steps: the distance from the optimum falls to less than a quarter (on average a 16th)."""
    X, y, s = cloud(7, n=200)
    best = float(optimum(PLAIN, X, y, s).upper)
    Y, caps = y[:, None] * X, PLAIN.caps(s)
    short, long = [], []
    for seed in range(8):
        turns = np.random.default_rng(seed).integers(len(y), size=(1600, 10))
        path, _, _ = naive(Y, caps, turns, False)
        for errors, w in ((short, path[100]), (long, path[1600])):
            errors.append(PLAIN.primal(0.5 * (w @ w), Y @ w, s) - best)
    assert np.mean(long) < np.mean(short) / 4.0


@pytest.mark.parametrize("storage", STORES)
def test_fit_reaches_the_tolerance(storage, rules_alone):
    X, y, s = cloud(1)
    model = MaxMarginClassifier(
        0.05, loss="hinge", tol=0.05, fit_intercept=False, algorithm=Pegasos(k=10), random_state=0
    ).fit(STORES[storage](X), y, s)
    assert model.status_ is Status.CERTIFIED
    assert verify(model, STORES[storage](X), y, sample_weight=s).gap <= 0.05


def test_T_is_the_number_of_updates(rules_alone):
    X, y, _ = cloud(2)
    model = MaxMarginClassifier(
        loss="hinge", tol=1e-9, algorithm=Pegasos(k=3, T=7000, projection=True), random_state=0
    ).fit(X, y)
    assert model.status_ is Status.CONVERGED
    evaluations = model.n_iter_ * len(y)
    assert model.history_[-1].presentations - evaluations == 21000
    assert verify(model, X, y).gap > 1e-9


def test_unsupported_problems_are_refused():
    for C, loss in ((np.inf, "hinge"), (1.0, "squared_hinge")):
        model = MaxMarginClassifier(C, loss=loss, algorithm=Pegasos())
        with pytest.raises(
            ValueError, match=r"'pegasos' does not solve .*: use loss=\"hinge\" with a finite C, or"
        ):
            model.fit([[0.0], [1.0]], [0, 1])


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"k": 0}, "k must be a whole number of patterns, at least 1; got 0."),
        ({"k": 2.5}, "k must be a whole number of patterns, at least 1; got 2.5."),
        ({"T": True}, "T must be a whole number of mini-batches, at least 1, or None; got True."),
        ({"projection": "yes"}, "projection must be a bool; got 'yes'."),
    ],
)
def test_invalid_parameters_are_refused(options, message):
    with pytest.raises(ValueError, match="must be") as error:
        Pegasos(**options)
    assert str(error.value) == message
