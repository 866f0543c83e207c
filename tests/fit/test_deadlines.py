"""Time limits and Ctrl-C are observed within linear programs, products and factorisations of large matrices."""

from __future__ import annotations

import signal
import time
import tracemalloc
from types import SimpleNamespace

import numpy as np
import pytest
import scipy.sparse as sp
from clouds import clouds
from problems import bounds_of
from sklearn.base import clone

from maxmargin import KernelMaxMarginClassifier, MaxMarginClassifier, MaxMarginClassifierCV, Status, verify
from maxmargin.algorithms.batch.sifting import sifted_points
from maxmargin.estimators.diagnosis import explain
from maxmargin.fit import deadline
from maxmargin.problem.problem import Problem


def half_at_the_margin(margin: float, n: int = 1000, d: int = 20) -> tuple[np.ndarray, np.ndarray]:
    """Separable rows, half of them at this margin: HiGHS's simplex method cycles on them for margins near 1e-9."""
    rng = np.random.default_rng(0)
    X, w = rng.standard_normal((n, d)), rng.standard_normal(d)
    w /= np.linalg.norm(w)
    scores = X @ w
    y = np.where(scores > 0.0, 1, -1)
    X[::2] += (y * margin - scores)[::2, None] * w
    return X, y


def test_cycling_programs_end_at_max_time():
    """Such a fit took more than 400 s; the limit is generous for slow machines and compilation."""
    X, y = half_at_the_margin(1e-9)
    begin = time.perf_counter()
    model = MaxMarginClassifier(C=np.inf, p=3, max_time=0.5).fit(X, y)
    assert time.perf_counter() - begin < 10.0
    assert np.isfinite(model.coef_).all()
    assert model.status_ is not Status.INTERRUPTED


def test_unreached_time_limits_do_not_change_the_result():
    X, y = half_at_the_margin(0.5, 200, 10)
    one, two = (
        MaxMarginClassifier(loss="hinge", p=1, norm_power=1, algorithm="lp", max_time=limit).fit(X, y)
        for limit in (None, 1e4)
    )
    assert one.status_ is two.status_
    assert (one.coef_.tobytes(), one.intercept_[0]) == (two.coef_.tobytes(), two.intercept_[0])


@pytest.mark.parametrize(
    ("kind", "loss"),
    [("dense", "squared_hinge"), ("sparse", "hinge"), ("equal rows", "hinge"), ("far", "squared_hinge")],
)
def test_interior_points_of_wide_rows_need_no_matrix_of_the_columns(kind, loss):
    """A step takes n^3 operations, and n d numbers of memory."""
    rng = np.random.default_rng(0)
    y, ones = np.where(np.arange(20) % 2, 1.0, -1.0), np.ones(20)
    X = rng.standard_normal((20, 3000)) + 0.1 * y[:, None] + 50.0 * (kind == "far")
    X[[3, 5]] = X[1] if kind == "equal rows" else X[[3, 5]]
    X = np.maximum(X, 0.0) if kind == "sparse" else X
    problem = Problem(loss, 1.0)
    tracemalloc.start()
    *_, last = sifted_points(problem, sp.csr_matrix(X) if kind == "sparse" else X, y, ones)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 8 * 3000**2 / 4
    assert abs(float(last.alpha @ y)) <= 1e-9 * float(last.alpha.sum())
    lower, upper = bounds_of(problem, X, y, ones, *last[:3])
    assert upper - lower <= 1e-7 * upper


@pytest.mark.parametrize(
    "model",
    [
        MaxMarginClassifier(C=np.inf, algorithm="interior-point", random_state=0),
        MaxMarginClassifier(loss="hinge", p=1, norm_power=1, algorithm="lp", random_state=0),
        KernelMaxMarginClassifier(C=100.0, loss="hinge", random_state=0),
    ],
)
def test_callbacks_are_called_within_rounds(model, monkeypatch):
    """With the last report, or one of round 0 before the first; each call may end the fit."""
    rng = np.random.default_rng(0)
    X, y, reports = rng.standard_normal((300, 20)), np.arange(300) % 2, []
    model = clone(model).set_params(tol=1e-12, callback=reports.append).fit(X, y)
    found = dict.fromkeys(report.round for report in reports if report.round)  # each once, in their order
    assert list(found) == [one.round for one in model.history_]
    monkeypatch.setattr(deadline, "POLL_SECONDS", 0.0)
    reports.clear()
    model.fit(X, y)
    rounds = [report.round for report in reports]
    assert (rounds[0], reports[0].upper) == (0, np.inf)
    assert sorted(set(rounds)) == [0, *(one.round for one in model.history_)]
    assert len(rounds) > len(set(rounds))
    assert np.all(np.diff(rounds) >= 0)
    assert np.all(np.diff([report.seconds for report in reports]) >= 0.0)
    model.set_params(callback=lambda report: report.round == 0).fit(X, y)
    assert model.status_ is Status.INTERRUPTED
    assert verify(model, X, y).upper >= model.certificate_.lower


def test_interrupt_in_a_fold_restores_the_attributes_of_the_estimator():
    X, y = half_at_the_margin(0.5, 60, 5)
    model = MaxMarginClassifierCV(Cs=[0.1, 1.0], cv=2).fit(X, y)
    model.set_params(callback=lambda report: signal.raise_signal(signal.SIGINT))
    before = dict(vars(model))
    with pytest.raises(KeyboardInterrupt) as raised:
        model.fit(X[:, :3], y)
    assert vars(model) == before
    assert not hasattr(raised.value, "result")  # the path of one fold is no result of the search


@pytest.mark.parametrize("model", [MaxMarginClassifier(), KernelMaxMarginClassifier()], ids=str)
def test_an_interrupt_while_the_model_is_stored_keeps_it(model, monkeypatch):
    """The fit has ended: its status and certificate are those of the fit without Ctrl-C."""
    X, y = clouds(60, 3, gap=0.05)
    expected = clone(model).fit(X, y)

    def pressed(*arguments):
        signal.raise_signal(signal.SIGINT)
        return explain(*arguments)

    monkeypatch.setattr("maxmargin.estimators.prediction.explain", pressed)
    with pytest.raises(KeyboardInterrupt):
        model.fit(X, y)
    assert model.status_ is expected.status_ is Status.CERTIFIED
    assert model.message_ == expected.message_
    assert verify(model, X, y).gap <= model.tol


LAST_STEPS = [
    (MaxMarginClassifier(), "numerics.threads.BlasThreads.__exit__"),
    (KernelMaxMarginClassifier(), "numerics.threads.BlasThreads.__exit__"),
    (MaxMarginClassifierCV(Cs=[1.0], cv=2), "numerics.threads.BlasThreads.__exit__"),
]


@pytest.mark.parametrize(("model", "step"), LAST_STEPS, ids=["linear", "kernel", "cv"])
def test_an_interrupt_in_the_last_step_of_a_method_keeps_the_model(model, step, monkeypatch):
    """The model is stored, so that the attributes before the fit are not restored."""
    X, y = clouds(60, 3, gap=0.05)

    def pressed(*arguments):
        monkeypatch.undo()
        signal.raise_signal(signal.SIGINT)

    monkeypatch.setattr(f"maxmargin.{step}", pressed)
    with pytest.raises(KeyboardInterrupt) as raised:
        model.fit(X, y)
    assert raised.value.result is model
    assert model.status_ is Status.CERTIFIED
    assert verify(model, X, y).gap <= model.tol


def press_ctrl_c():
    signal.raise_signal(signal.SIGINT)


def test_handlers_are_restored_where_a_second_ctrl_c_comes_while_they_are(monkeypatch):
    before, set_handler, pressed = signal.getsignal(signal.SIGINT), signal.signal, []

    def late(number, handler):
        if handler is before and not pressed:
            pressed.append(number)
            press_ctrl_c()
        return set_handler(number, handler)

    def fit():
        with deadline.Deadline():
            press_ctrl_c()
            monkeypatch.setattr(signal, "signal", late)

    with pytest.raises(deadline.SecondInterruptError):
        fit()
    assert pressed
    assert signal.getsignal(signal.SIGINT) is before


def test_a_second_ctrl_c_restores_the_handlers():
    before = signal.getsignal(signal.SIGINT)
    limit = deadline.Deadline()
    limit.__enter__()
    press_ctrl_c()
    with pytest.raises(deadline.SecondInterruptError):
        press_ctrl_c()
    assert signal.getsignal(signal.SIGINT) is before
    with pytest.raises(deadline.SecondInterruptError):
        limit.__exit__(None, None, None)


def test_a_deferred_ctrl_c_is_not_lost_where_the_block_fails():
    @deadline.deferred_interrupt()
    def save():
        press_ctrl_c()
        raise OSError("the disk is full")

    with pytest.raises(KeyboardInterrupt):
        save()


def test_two_threads_make_one_call_of_a_callback_in_an_interval(monkeypatch):
    """A thread that has found a call due makes none where another thread has made one meanwhile."""
    calls, now = [], [0.0]
    monkeypatch.setattr(deadline, "time", SimpleNamespace(perf_counter=lambda: now[0]))

    class Contended:
        """A lock that is acquired after another thread has held it for a call."""

        def acquire(self, blocking):
            now[0] += 0.1
            poll.postpone()
            return True

        def release(self):
            pass

    poll = deadline.Poll(lambda: calls.append(now[0]) or False, Contended())
    now[0] = 1.0
    assert not poll()
    assert calls == []
