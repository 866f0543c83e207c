"""The interior-point method for many patterns: steps against those of the whole system, ends against Clarabel."""

from __future__ import annotations

import tracemalloc
from functools import partial
from itertools import islice

import numpy as np
import pytest
import scipy.sparse as sp
from oracle import optimum

import maxmargin.algorithms.programs
from maxmargin import InteriorPoint, MaxMarginClassifier, Newton, Problem, Status
from maxmargin.algorithms.batch import centred_rows
from maxmargin.algorithms.batch import newton as newtons_method
from maxmargin.algorithms.batch.centred_rows import CentredRows
from maxmargin.algorithms.batch.interior_point import BACK, POWER, RowSystem, interior_points, iterates
from maxmargin.cli.words import stages_line
from maxmargin.data.rows import Patterns
from maxmargin.data.task import Task
from maxmargin.fit.policy import choose, fallback
from maxmargin.fit.tracker import dual_point, primal_point

LOSSES, INTERCEPTS = ("hinge", "squared_hinge"), ("free", "augmented", "none")


def toy(n: int, d: int, seed: int = 0):
    """Rows, labels that a line tells apart but for noise, and weights."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d)) + rng.normal(size=d)
    y = np.where((X - X.mean(axis=0)) @ rng.normal(size=d) + rng.normal(size=n) > 0.0, 1.0, -1.0)
    return X, y, rng.integers(1, 4, size=n) / 2.0


def newton(problem, X, y, weights, steps):
    """Mehrotra's steps by one dense matrix of all the unknowns (a, z, u, v): (z, a) after each of them."""
    blocks = CentredRows(problem, X)
    mean = X.mean(axis=0) if problem.free else np.zeros(X.shape[1])
    B = (X - mean) / blocks.unit
    regular = np.ones(X.shape[1])
    if problem.free:
        B, regular = np.column_stack([B, np.ones(len(y))]), np.append(regular, 0.0)
    elif problem.rho:
        B, regular = np.column_stack([B, np.full(len(y), problem.rho / blocks.unit)]), np.append(regular, 1.0)
    B = B * y[:, None]
    n, size = B.shape
    own, cap = problem.delta2(weights) / blocks.unit**2, problem.caps(weights) * blocks.unit**2
    capped = bool(np.isfinite(cap).all())
    a = 0.5 * cap if capped else 0.5 / own
    z, u, v = np.zeros(size), np.ones(n), np.ones(n) if capped else np.zeros(n)
    eye, zero = np.eye(n), np.zeros((n, n))
    pairs = 2 * n if capped else n
    found = []
    for _ in range(steps):
        room = cap - a if capped else np.ones(n)
        matrix = np.block(
            [
                [np.diag(own), B, -eye, eye],
                [-B.T, np.diag(regular), np.zeros((size, n)), np.zeros((size, n))],
                [np.diag(u), np.zeros((n, size)), np.diag(a), zero],
                [-np.diag(v), np.zeros((n, size)), zero, np.diag(room)],
            ]
        )
        gradient = B @ z + own * a - 1.0 - u + v
        apart = regular * z - B.T @ a
        products = float(a @ u + (room @ v if capped else 0.0))

        def step(mu, da, du, dv, matrix=matrix, gradient=gradient, apart=apart, a=a, u=u, v=v, room=room):
            right = np.concatenate(
                [-gradient, -apart, mu - a * u - da * du, (mu - room * v + da * dv) * capped]
            )
            da, dz, du, dv = np.split(np.linalg.solve(matrix, right), [n, n + size, 2 * n + size])
            longest = np.inf
            for x, dx in ((a, da), (u, du), *(((room, -da), (v, dv)) if capped else ())):
                if (dx < 0.0).any():
                    longest = min(longest, float((-x / dx)[dx < 0.0].min()))
            return da, dz, du, dv, min(1.0, BACK * longest)

        da, dz, du, dv, t = step(0.0, 0.0, 0.0, 0.0)
        after = float((a + t * da) @ (u + t * du) + ((room - t * da) @ (v + t * dv) if capped else 0.0))
        mu = products / pairs * (after / products) ** POWER
        da, dz, du, dv, t = step(mu, da, du, dv)
        a, z, u, v = a + t * da, z + t * dz, u + t * du, v + t * dv
        found.append((z, a))
    return found


@pytest.mark.parametrize("storage", ["dense", "csr", "float32"])
@pytest.mark.parametrize("intercept", INTERCEPTS)
@pytest.mark.parametrize("loss", LOSSES)
def test_steps_are_those_of_the_whole_system(loss, intercept, storage, monkeypatch):
    """Some rows at a time, the weights eliminated: the same points, as long as both have digits."""
    monkeypatch.setattr(centred_rows, "CHUNK_BYTES", 1000)  # several parts
    X, y, weights = toy(60, 5)
    X = X.astype(np.float32).astype(float)
    stored = {"dense": X, "csr": sp.csr_matrix(X), "float32": X.astype(np.float32)}[storage]
    problem = Problem(loss, 3.0, intercept=intercept, intercept_scaling=2.0)
    looks = islice(iterates(RowSystem(problem, stored, y, weights)), 1, 8)  # the first is where it begins
    for look, (z, a) in zip(looks, newton(problem, X, y, weights, 7), strict=True):
        assert look.point.z == pytest.approx(z, rel=0, abs=1e-7 * np.abs(z).max())
        assert look.point.a == pytest.approx(a, rel=0, abs=1e-7 * a.max())


@pytest.mark.parametrize("C", [1e-3, 1.0, 1e3])
@pytest.mark.parametrize("intercept", INTERCEPTS)
@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("trouble", ["scales", "collinear", "far", "sparse"])
def test_it_ends_at_the_optimum(rules_alone, trouble, loss, intercept, C):
    """Columns of scales from 1e-6 to 1e6, nearly collinear ones, far ones, sparse rows: certified, the truth within."""
    X, y, weights = toy(80, 4, seed=1)
    if trouble == "scales":
        X = X * 10.0 ** np.array([-6.0, -2.0, 3.0, 6.0])
    elif trouble == "collinear":
        X[:, 3] = X[:, 2] + 1e-7 * X[:, 3]
    elif trouble == "far":
        X[:, 1] += 1e5
    else:
        X = np.where(np.random.default_rng(2).random(X.shape) < 0.4, X, 0.0)
    problem = Problem(loss, C, intercept=intercept)
    stored = sp.csr_matrix(X) if trouble == "sparse" else X
    model = MaxMarginClassifier(
        C, loss=loss, fit_intercept=intercept != "none",
        intercept="augmented" if intercept == "augmented" else "free", algorithm="interior-point", tol=1e-6,
    ).fit(stored, y, weights)  # fmt: skip
    truth = optimum(problem, X, y, weights)
    assert model.status_ is Status.CERTIFIED
    assert {report.stage for report in model.history_} == {"interior-point"}
    assert model.certificate_.lower <= truth.upper
    assert model.certificate_.upper >= truth.lower


def steps_to(task: Task, gap: float) -> int:
    """The steps after which a point of this relative gap is shown."""
    looks = []

    def asked() -> bool:
        looks.append(None)
        return False

    lower, upper = -np.inf, np.inf
    for w, b, alpha, *_ in interior_points(task.problem, task.patterns.X, task.y, task.weights, asked):
        lower, upper = max(lower, dual_point(task, alpha)[1]), min(upper, primal_point(task, w, b)[2])
        if task.problem.gap(lower, upper) <= gap:
            break
    assert task.problem.gap(lower, upper) <= gap
    return len(looks)


@pytest.mark.parametrize("loss", LOSSES)
def test_the_work_does_not_depend_on_cost_or_scale(loss):
    """Where incremental algorithms take a million times as many for the hardest of these as for the easiest."""
    X, y, weights = toy(2000, 5, seed=3)
    counts = [
        steps_to(
            Task(Problem(loss, C), Patterns(X * np.array([1.0, scale, 1.0, 1.0, 1.0 / scale])), y, weights),
            1e-6,
        )
        for C in (1e-3, 1.0, 1e3, 1e6)
        for scale in (1.0, 1e3)
    ]
    assert max(counts) <= 40


def test_nothing_of_the_size_of_the_data_is_made():
    """Memory: some vectors of n numbers, and rows of a megabyte."""
    X, y, weights = toy(40_000, 60)
    problem = Problem("hinge", 1.0)
    next(interior_points(problem, X[:100], y[:100], weights[:100]))  # compiled
    tracemalloc.start()
    for _ in islice(interior_points(problem, X, y, weights), 3):
        pass
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 0.5 * X.nbytes + 2 * centred_rows.CHUNK_BYTES


def test_it_stops_when_it_is_told_to():
    """After the step under way, with the point it has."""
    X, y, weights = toy(500, 4)
    asked = iter([False, False, False, True])
    made = list(interior_points(Problem("hinge", 1.0), X, y, weights, lambda: next(asked)))
    assert made
    with pytest.raises(StopIteration):
        next(asked)


def test_what_it_does_not_solve_is_refused():
    with pytest.raises(ValueError, match="a finite C"):
        MaxMarginClassifier(np.inf, algorithm="interior-point").fit(*toy(20, 2)[:2])
    assert InteriorPoint().refuses(Problem("hinge", 1.0, 3.0)) == "p=2 with norm_power=2"


def test_dual_descent_hands_over(rules_alone, capsys):
    """Where scales keep it busy: proximal points begin with its bounds, which only get better, and certify."""
    X, y, _ = toy(3000, 60, seed=5)
    X = X * np.tile([1.0, 300.0, 1.0, 1000.0], 15) + 2000.0
    model = MaxMarginClassifier(1e3, loss="hinge", tol=1e-5, verbose=1).fit(X, y)
    stages = [report.stage for report in model.history_]
    assert model.status_ is Status.CERTIFIED
    shown = [line for line in capsys.readouterr().err.splitlines() if not line.startswith("round ")]
    told = list(dict.fromkeys(f"{report.stage}: {report.reason}" for report in model.history_))
    assert shown == told
    assert stages_line(model) == f"solved by {told[0]}, then {told[1]}"
    assert stages[0] == "dcd"
    assert stages[-1] == "proximal-point"
    first = stages.index("proximal-point")
    assert "cost about twice what was spent" in model.history_[first].reason
    lower, upper = ([getattr(report, side) for report in model.history_] for side in ("lower", "upper"))
    assert (np.diff(lower) >= 0.0).all()
    assert (np.diff(upper) <= 1e-12 * upper[-1]).all()  # objectives are rounded
    assert model.history_[first - 1].presentations >= fallback(Problem("hinge", 1e3), Patterns(X)).row_visits


def test_many_dense_rows_of_few_features_begin_with_proximal_points(rules_alone):
    """At least as many as columns squared; else, and where rows are sparse or the exact step comes first, dcd does."""
    X, y, _ = toy(3000, 40, seed=5)
    model = MaxMarginClassifier(1e3, loss="hinge", tol=1e-5).fit(
        X * np.tile([1e-2, 300.0, 1.0, 1000.0], 10), y
    )
    assert model.status_ is Status.CERTIFIED
    assert {report.stage for report in model.history_} == {"proximal-point"}
    assert model.history_[0].reason == "3000 x 40, dense: proximal points, whatever C and the scales are"
    problem = Problem("hinge", 1.0)
    assert fallback(problem, Patterns(X)) is None
    for others in (X[:1500], sp.csr_array(X)):
        assert choose(problem, Patterns(others), y[: others.shape[0]])[0].name == "dcd"
        assert fallback(problem, Patterns(others)).algorithm.name == "proximal-point"


def test_small_problems_begin_with_the_exact_step_alone():
    """Where it fails, dual coordinate descent has its turn before proximal points have one more."""
    X, y, _ = toy(3000, 4, seed=5)
    assert choose(Problem("hinge", 1.0), Patterns(X), y)[0].name == "dcd"


def test_newton_hands_over_where_it_ends(rules_alone, monkeypatch):
    """As where it has lost its digits: the interior point goes on, and certifies."""
    short = partial(newtons_method.newton_points, settings=newtons_method.Settings(max_steps=0))
    monkeypatch.setattr(maxmargin.algorithms.programs, "newton_points", short)
    X, y, _ = toy(3000, 4, seed=5)
    model = MaxMarginClassifier(1e3, loss="squared_hinge", tol=1e-13).fit(X, y)
    stages = list(dict.fromkeys(report.stage for report in model.history_))
    assert stages == ["newton", "interior-point"]
    assert model.history_[-1].reason == "3000 x 4: Newton's method has lost its digits"
    assert model.history_[-1].gap <= model.history_[0].gap


def test_sparse_rows_of_many_columns_are_handed_to_conjugate_gradients():
    """Squared losses: where there are as many rows as columns, after some passes."""
    many = fallback(Problem("squared_hinge", 1.0), Patterns(sp.random(1500, 1200, 0.01, format="csr", rng=0)))
    assert many.algorithm == Newton()
    assert many.row_visits == 50 * 1500
    wide = Patterns(sp.random(100, 1200, 0.01, format="csr", rng=0))
    assert fallback(Problem("squared_hinge", 1.0), wide) is None


def test_wide_data_and_other_problems_have_no_fallback():
    wide = Patterns(np.ones((10, 50)))
    assert fallback(Problem("hinge", 1.0), wide) is None
    assert fallback(Problem("hinge", np.inf), Patterns(np.ones((50, 3)))) is None
    assert fallback(Problem("hinge", 1.0, 1.5), Patterns(np.ones((50, 3)))) is None


def test_badly_centred_paths_are_followed_to_their_end():
    """Separable rows under a large C: steps are short for a long while."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(20_000, 5))
    model = MaxMarginClassifier(1e3, loss="hinge").fit(X, X @ rng.normal(size=5) > 0.0)
    assert model.status_ is Status.CERTIFIED


def test_a_warm_start_from_hard_data_ends():
    """Newton's method ends short of tol, the exact step has its turn, then the next solver; none twice."""
    rng = np.random.default_rng(59)
    X = rng.normal(size=(30, 20)) * 10.0 ** rng.uniform(-8, 8, size=20)
    y, weights = (rng.random(30) < 0.5) * 1, 10.0 ** rng.choice([-12, 0, 12], size=30)
    model = MaxMarginClassifier(1e4, intercept="augmented", warm_start=True, max_iter=50, random_state=0)
    for _ in range(2):
        model.fit(X, y, weights)
        assert model.n_iter_ <= 60


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("intercept", ["none", "augmented"])
def test_rows_without_a_digit_between_them_end(intercept, seed):
    """Products of dual weights and slacks come to nothing there: what is proved by then is what there is."""
    X = 1e12 * (1e3 + 1e-4 * np.random.default_rng(seed).normal(size=(10, 3)))
    model = MaxMarginClassifier(fit_intercept=intercept != "none", intercept="augmented", random_state=0).fit(
        X, np.arange(10) % 2
    )
    assert model.status_ in (Status.CERTIFIED, Status.STALLED)
    assert np.isfinite(model.coef_).all()
