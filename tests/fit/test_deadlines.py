"""Time limits and Ctrl-C are observed within linear programs, products and factorisations of large matrices."""

from __future__ import annotations

import itertools
import os
import signal
import threading
import time
import tracemalloc

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.optimize import linprog

from maxmargin import MaxMarginClassifier, Status, verify
from maxmargin.algorithms.batch import linear_program as highs
from maxmargin.algorithms.batch.factors import factor
from maxmargin.algorithms.batch.interior_point import interior_points
from maxmargin.algorithms.batch.sifting import sifted_points
from maxmargin.fit.deadline import Deadline
from maxmargin.numerics.stop_check import StopCheck, seconds_left
from maxmargin.problem.problem import Problem

RELEASE_AFTER = 30.0  # seconds after which an abandoned call ends by itself, and its test fails


def half_at_the_margin(margin: float, n: int = 1000, d: int = 20) -> tuple[np.ndarray, np.ndarray]:
    """Separable rows, half of them at this margin: HiGHS's simplex method cycles on them for margins near 1e-9."""
    rng = np.random.default_rng(0)
    X, w = rng.standard_normal((n, d)), rng.standard_normal(d)
    w /= np.linalg.norm(w)
    scores = X @ w
    y = np.where(scores > 0.0, 1, -1)
    X[::2] += (y * margin - scores)[::2, None] * w
    return X, y


def separable(n: int = 60, d: int = 5) -> tuple[np.ndarray, np.ndarray]:
    return half_at_the_margin(0.5, n, d)


class EndlessSolver:
    """A replacement of HiGHS that exceeds its time limit until it is released."""

    def __init__(self, on_call=lambda: None) -> None:
        self.release, self.limits, self.at_work = threading.Event(), [], on_call

    def __call__(self, *program, options, **others):
        self.limits.append(options["time_limit"])
        self.at_work()
        self.release.wait(RELEASE_AFTER)
        return linprog(*program, options=options, **others)


@pytest.fixture
def endless_solver(monkeypatch):
    """Replace HiGHS by a solver that does not end; its threads are joined after the test."""
    solver = EndlessSolver()
    monkeypatch.setattr(highs, "linprog", solver)
    yield solver
    solver.release.set()
    for thread in threading.enumerate():
        if thread.name.startswith("HiGHS"):
            thread.join()


LINEAR_PROGRAMS = [
    {"C": np.inf, "p": 1},
    {"C": np.inf, "p": np.inf},
    {"C": 1.0, "p": 1, "loss": "hinge", "norm_power": 1},
    {"C": 1.0, "p": np.inf, "loss": "hinge", "norm_power": 1},
]


@pytest.mark.parametrize("p", [3])
def test_cycling_programs_end_at_max_time(p):
    """Such a fit took more than 400 s; the limit is generous for slow machines."""
    MaxMarginClassifier(C=np.inf, p=p, max_time=5.0).fit(*half_at_the_margin(0.1))  # compiles
    X, y = half_at_the_margin(1e-9)
    begin = time.perf_counter()
    model = MaxMarginClassifier(C=np.inf, p=p, max_time=0.5).fit(X, y)
    assert time.perf_counter() - begin < 10.0
    assert np.isfinite(model.coef_).all()
    assert model.status_ is not Status.INTERRUPTED


@pytest.mark.parametrize("options", LINEAR_PROGRAMS)
def test_max_time_abandons_highs(endless_solver, options):
    """The fit still has a model with a valid certificate."""
    X, y = separable()
    model = MaxMarginClassifier(**options, max_time=0.2).fit(X, y)
    assert not endless_solver.release.is_set()
    assert model.status_ is Status.MAX_TIME
    assert len(endless_solver.limits) == 1
    assert 0.0 < endless_solver.limits[0] <= 0.2
    assert np.isfinite(model.coef_).all()
    assert verify(model, X, y).gap == pytest.approx(model.certificate_.gap)


@pytest.mark.parametrize("options", LINEAR_PROGRAMS[1:3])
def test_ctrl_c_abandons_highs(endless_solver, options):
    endless_solver.at_work = lambda: os.kill(os.getpid(), signal.SIGINT)
    before = signal.getsignal(signal.SIGINT)
    model = MaxMarginClassifier(**options).fit(*separable())
    assert not endless_solver.release.is_set()
    assert model.status_ is Status.INTERRUPTED
    assert np.isfinite(model.coef_).all()
    assert signal.getsignal(signal.SIGINT) is before


@pytest.mark.parametrize("options", LINEAR_PROGRAMS[1:3])
def test_unreached_time_limits_do_not_change_the_result(options):
    X, y = separable(200, 10)
    unlimited, limited = (MaxMarginClassifier(**options, max_time=limit).fit(X, y) for limit in (None, 1e4))
    assert np.array_equal(unlimited.coef_, limited.coef_)
    assert np.array_equal(unlimited.intercept_, limited.intercept_)
    assert unlimited.status_ is limited.status_


def random_program() -> tuple[np.ndarray, np.ndarray, np.ndarray, list[tuple[float, float]]]:
    rng = np.random.default_rng(0)
    G = rng.standard_normal((40, 6))
    return rng.standard_normal(6), G, np.ones(40), [(-1.0, 1.0)] * 6


def test_stop_check_returns_the_remaining_time():
    assert seconds_left(lambda: False) == np.inf
    assert seconds_left(StopCheck(Deadline().interrupted, Deadline().remaining)) == np.inf
    limited = Deadline(100.0)
    assert 0.0 < seconds_left(StopCheck(limited.interrupted, limited.remaining)) <= 100.0
    limited.split(2).stopped.set()
    assert StopCheck(limited.interrupted, limited.remaining)()
    assert not StopCheck(lambda: False, lambda: 1.0)()


def wide_clouds(n: int, d: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    y = np.where(np.arange(n) % 2, 1, -1)
    return rng.standard_normal((n, d)) + 0.1 * y[:, None], y


@pytest.mark.parametrize(
    ("kind", "loss"),
    [("dense", "squared_hinge"), ("sparse", "hinge"), ("equal rows", "hinge"), ("far", "squared_hinge")],
)
def test_interior_points_of_wide_rows_need_no_matrix_of_the_columns(kind, loss):
    """A step takes n^3 operations, and n d numbers of memory."""
    X, y = wide_clouds(20, 3000)
    if kind == "equal rows":
        X[3], X[5] = X[1], X[1]
    X = X + 50.0 if kind == "far" else X
    rows = sp.csr_matrix(np.where(X > 0.0, X, 0.0)) if kind == "sparse" else X
    ones = np.ones(y.size)
    tracemalloc.start()
    problem = Problem(loss, 1.0)
    *_, last = sifted_points(problem, rows, y.astype(float), ones)
    w, b, alpha = last[:3]
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 8 * 3000**2 / 4
    margins = y * (rows @ w + b)
    combined = rows.T @ (alpha * y)
    primal = problem.primal(0.5 * float(w @ w), margins, ones)
    dual = problem.dual(float(combined @ combined), alpha, ones)
    assert abs(float(alpha @ y)) <= 1e-9 * float(alpha.sum())
    assert primal - dual <= 1e-7 * primal


@pytest.mark.parametrize("after", [1, 5, 14])
def test_interrupted_interior_points_are_feasible(after):
    """After any number of polls the last point is finite and its dual weights are within their bounds."""
    X, y = wide_clouds(1200, 300)
    polls = itertools.count()
    problem, signs, ones = Problem("hinge", 1.0), y.astype(float), np.ones(y.size)
    points = list(interior_points(problem, X, signs, ones, lambda: next(polls) >= after))
    w, b, alpha = points[-1][:3]
    assert np.isfinite(w).all()
    assert np.isfinite(b)
    assert ((alpha >= 0.0) & (alpha <= 1.0)).all()


@pytest.fixture(scope="module")
def large_matrix() -> np.ndarray:
    """A positive definite matrix too large for a single factorisation call."""
    A = np.random.default_rng(0).standard_normal((1600, 300))
    return A @ A.T + np.diag(np.linspace(1.0, 1e6, 1600))


def test_interrupt_stops_a_large_factorisation(large_matrix):
    polls = itertools.count()
    assert factor(large_matrix, lambda: next(polls) >= 3) is None
    assert next(polls) <= 6
