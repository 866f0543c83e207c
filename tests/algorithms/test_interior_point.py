"""The interior-point method for many patterns: steps against the full Newton system, ends against Clarabel."""

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
from maxmargin.algorithms.batch.interior_point import SETTINGS, RowSystem, interior_points, iterates
from maxmargin.cli.words import stages_line
from maxmargin.data.rows import Patterns
from maxmargin.data.task import Task
from maxmargin.fit.policy import choose, fallback
from maxmargin.fit.tracker import dual_point, primal_point

LOSSES, INTERCEPTS = ("hinge", "squared_hinge"), ("free", "augmented", "none")


def toy(n: int, d: int, seed: int = 0):
    """Rows, noisy labels of a linear rule, and weights."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d)) + rng.normal(size=d)
    y = np.where((X - X.mean(axis=0)) @ rng.normal(size=d) + rng.normal(size=n) > 0.0, 1.0, -1.0)
    return X, y, rng.integers(1, 4, size=n) / 2.0


def full_newton_steps(problem, X, y, weights, steps):
    """Mehrotra's steps by one dense matrix of all the unknowns (a, z, u, v): (z, a) after each step."""
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
        residual = regular * z - B.T @ a
        products = float(a @ u + (room @ v if capped else 0.0))

        def step(
            mu, da, du, dv, matrix=matrix, gradient=gradient, residual=residual, a=a, u=u, v=v, room=room
        ):
            right = np.concatenate(
                [-gradient, -residual, mu - a * u - da * du, (mu - room * v + da * dv) * capped]
            )
            da, dz, du, dv = np.split(np.linalg.solve(matrix, right), [n, n + size, 2 * n + size])
            longest = np.inf
            for x, dx in ((a, da), (u, du), *(((room, -da), (v, dv)) if capped else ())):
                if (dx < 0.0).any():
                    longest = min(longest, float((-x / dx)[dx < 0.0].min()))
            return da, dz, du, dv, min(1.0, SETTINGS.boundary_share * longest)

        da, dz, du, dv, t = step(0.0, 0.0, 0.0, 0.0)
        after = float((a + t * da) @ (u + t * du) + ((room - t * da) @ (v + t * dv) if capped else 0.0))
        mu = products / pairs * (after / products) ** SETTINGS.centring_power
        da, dz, du, dv, t = step(mu, da, du, dv)
        a, z, u, v = a + t * da, z + t * dz, u + t * du, v + t * dv
        found.append((z, a))
    return found


@pytest.mark.parametrize("storage", ["dense", "csr", "float32"])
@pytest.mark.parametrize("intercept", INTERCEPTS)
@pytest.mark.parametrize("loss", LOSSES)
def test_steps_equal_those_of_the_full_newton_system(loss, intercept, storage, monkeypatch):
    """By chunks of rows, with the dual weights eliminated: the same points while both have digits."""
    monkeypatch.setattr(centred_rows, "CHUNK_BYTES", 1000)  # several chunks
    X, y, weights = toy(60, 5)
    X = X.astype(np.float32).astype(float)
    stored = {"dense": X, "csr": sp.csr_matrix(X), "float32": X.astype(np.float32)}[storage]
    problem = Problem(loss, 3.0, intercept=intercept, intercept_scaling=2.0)
    iterations = islice(
        iterates(RowSystem(problem, stored, y, weights, lambda: False)), 1, 8
    )  # the first is the starting point
    for iterate, (z, a) in zip(iterations, full_newton_steps(problem, X, y, weights, 7), strict=True):
        assert iterate.point.z == pytest.approx(z, rel=0, abs=1e-7 * np.abs(z).max())
        assert iterate.point.a == pytest.approx(a, rel=0, abs=1e-7 * a.max())


@pytest.mark.parametrize("C", [1e-3, 1.0, 1e3])
@pytest.mark.parametrize("intercept", INTERCEPTS)
@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("condition", ["scales", "collinear", "far", "sparse"])
def test_certified_bounds_contain_the_optimum(rules_alone, condition, loss, intercept, C):
    """Columns of scales from 1e-6 to 1e6, nearly collinear columns, far columns, sparse rows."""
    X, y, weights = toy(80, 4, seed=1)
    if condition == "scales":
        X = X * 10.0 ** np.array([-6.0, -2.0, 3.0, 6.0])
    elif condition == "collinear":
        X[:, 3] = X[:, 2] + 1e-7 * X[:, 3]
    elif condition == "far":
        X[:, 1] += 1e5
    else:
        X = np.where(np.random.default_rng(2).random(X.shape) < 0.4, X, 0.0)
    problem = Problem(loss, C, intercept=intercept)
    stored = sp.csr_matrix(X) if condition == "sparse" else X
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
    """The number of steps to the first point of this relative gap."""
    iterations = []

    def interrupted() -> bool:
        iterations.append(None)
        return False

    lower, upper = -np.inf, np.inf
    for w, b, alpha, *_ in interior_points(task.problem, task.patterns.X, task.y, task.weights, interrupted):
        lower, upper = max(lower, dual_point(task, alpha)[1]), min(upper, primal_point(task, w, b)[2])
        if task.problem.gap(lower, upper) <= gap:
            break
    assert task.problem.gap(lower, upper) <= gap
    return len(iterations)


@pytest.mark.parametrize("loss", LOSSES)
def test_number_of_steps_is_independent_of_cost_and_scale(loss):
    """The hardest and the easiest of these problems take at most 40 steps."""
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


def test_peak_memory_is_below_half_of_the_data():
    """Temporaries: a few vectors of n numbers, and chunks of rows of a megabyte."""
    X, y, weights = toy(40_000, 60)
    problem = Problem("hinge", 1.0)
    next(interior_points(problem, X[:100], y[:100], weights[:100]))  # compiled
    tracemalloc.start()
    for _ in islice(interior_points(problem, X, y, weights), 3):
        pass
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 0.5 * X.nbytes + 2 * centred_rows.CHUNK_BYTES


def test_interrupt_stops_the_iteration():
    """After the current step, with the last iterate."""
    X, y, weights = toy(500, 4)
    polls = iter([False, False, False, True])
    made = list(interior_points(Problem("hinge", 1.0), X, y, weights, lambda: next(polls)))
    assert made
    with pytest.raises(StopIteration):
        next(polls)


def test_unsupported_problems_are_refused():
    with pytest.raises(ValueError, match="a finite C"):
        MaxMarginClassifier(np.inf, algorithm="interior-point").fit(*toy(20, 2)[:2])
    assert InteriorPoint().refuses(Problem("hinge", 1.0, 3.0)) == "p=2 with norm_power=2"


def test_proximal_points_take_over_from_dual_descent(rules_alone, capsys):
    """On badly scaled data: proximal points keep its bounds, improve them monotonically, and certify."""
    X, y, _ = toy(3000, 60, seed=5)
    X = X * np.tile([1.0, 300.0, 1.0, 1000.0], 15) + 2000.0
    model = MaxMarginClassifier(1e3, loss="hinge", tol=1e-5, verbose=1).fit(X, y)
    stages = [report.stage for report in model.history_]
    assert model.status_ is Status.CERTIFIED
    shown = [line for line in capsys.readouterr().err.splitlines() if not line.startswith("round ")]
    reasons = list(dict.fromkeys(f"{report.stage}: {report.reason}" for report in model.history_))
    assert shown == reasons
    assert stages_line(model) == f"solved by {reasons[0]}, then {reasons[1]}"
    assert stages[0] == "dcd"
    assert stages[-1] == "proximal-point"
    first = stages.index("proximal-point")
    assert "cost about twice what was spent" in model.history_[first].reason
    lower, upper = ([getattr(report, side) for report in model.history_] for side in ("lower", "upper"))
    assert (np.diff(lower) >= 0.0).all()
    assert (np.diff(upper) <= 1e-12 * upper[-1]).all()  # up to rounding of the objectives
    assert model.history_[first - 1].presentations >= fallback(Problem("hinge", 1e3), Patterns(X)).row_visits


def test_proximal_points_solve_many_dense_rows_of_few_features(rules_alone):
    """At least as many rows as squared columns; otherwise, or if rows are sparse, dual coordinate descent starts."""
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


def test_small_problems_are_assigned_dual_coordinate_descent():
    """It runs only if the exact step, which comes first, fails."""
    X, y, _ = toy(3000, 4, seed=5)
    assert choose(Problem("hinge", 1.0), Patterns(X), y)[0].name == "dcd"


def test_interior_points_take_over_from_newton(rules_alone, monkeypatch):
    """After Newton's method has lost its digits, interior points start from its bounds."""
    newton_without_steps = partial(
        newtons_method.newton_points, settings=newtons_method.Settings(max_steps=0)
    )
    monkeypatch.setattr(maxmargin.algorithms.programs, "newton_points", newton_without_steps)
    X, y, _ = toy(3000, 4, seed=5)
    model = MaxMarginClassifier(1e3, loss="squared_hinge", tol=1e-13).fit(X, y)
    stages = list(dict.fromkeys(report.stage for report in model.history_))
    assert stages == ["newton", "interior-point"]
    assert model.history_[-1].reason == "3000 x 4: Newton's method has lost its digits"
    assert model.history_[-1].gap <= model.history_[0].gap


def test_newton_takes_over_for_sparse_rows_of_many_columns():
    """Squared losses, if there are at least as many rows as columns, after 50 passes."""
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


def test_badly_centred_paths_are_certified():
    """Separable rows under a large C: steps are short for many iterations."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(20_000, 5))
    model = MaxMarginClassifier(1e3, loss="hinge").fit(X, X @ rng.normal(size=5) > 0.0)
    assert model.status_ is Status.CERTIFIED


def test_warm_start_on_ill_conditioned_data_ends_early():
    """Newton's method, the exact step and the next solver run at most once each."""
    rng = np.random.default_rng(59)
    X = rng.normal(size=(30, 20)) * 10.0 ** rng.uniform(-8, 8, size=20)
    y, weights = (rng.random(30) < 0.5) * 1, 10.0 ** rng.choice([-12, 0, 12], size=30)
    model = MaxMarginClassifier(1e4, intercept="augmented", warm_start=True, max_iter=50, random_state=0)
    for _ in range(2):
        model.fit(X, y, weights)
        assert model.n_iter_ <= 60


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("intercept", ["none", "augmented"])
def test_indistinguishable_rows_end_with_a_finite_model(intercept, seed):
    """Products of dual weights and slacks vanish in float64: the status is certified or stalled."""
    X = 1e12 * (1e3 + 1e-4 * np.random.default_rng(seed).normal(size=(10, 3)))
    model = MaxMarginClassifier(fit_intercept=intercept != "none", intercept="augmented", random_state=0).fit(
        X, np.arange(10) % 2
    )
    assert model.status_ in (Status.CERTIFIED, Status.STALLED)
    assert np.isfinite(model.coef_).all()
