"""Ends of a fit: limits of rounds and time, callbacks, Ctrl-C, exceptions, and what is reported on the way."""

from __future__ import annotations

import ctypes
import os
import pickle
import signal
import threading
import time
from contextlib import contextmanager

import numpy as np
import pytest
from clouds import ENDLESS, clouds, signs
from effort import COMPILED, THOROUGH, interpreted, thorough
from problems import rings
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, cross_val_score

from maxmargin import (
    KernelMaxMarginClassifier,
    MarginRFE,
    MaxMarginClassifier,
    Problem,
    Status,
    compare,
    margin_path,
    verify,
)
from maxmargin.algorithms import ALGORITHMS


def overlapping(n=2100):
    """Return rows of 20 columns that say little about the labels."""
    return clouds(n, 100, gap=0.05)  # too many for the exact method of small problems


def endless(**options):
    return MaxMarginClassifier(**{**ENDLESS, **options})


def assert_best_model_is_kept(model, X, y):
    """Assert that a stopped fit has a model with the best upper bound of its history, and valid bounds."""
    assert model.certificate_.gap > model.tol
    least = min(report.upper for report in model.history_)
    # reports are of running sums: eps for each of some 1e5 updates, 2e-11; a gap is a difference of 1e4 times it
    assert model.certificate_.upper <= least * (1.0 + 1e-9)
    assert verify(model, X, y).gap == pytest.approx(model.certificate_.gap, rel=1e-8)


@interpreted
@pytest.mark.parametrize("kernel", [{}, {"kernel": "linear"}], ids=str)
def test_a_separator_that_float64_does_not_hold_leaves_it_undecided(kernel):
    X, y = np.array([[1.0, 1.0 + 2.0**-52], [1.0, 1.0]]), np.array([1, -1])
    cls = KernelMaxMarginClassifier if kernel else MaxMarginClassifier
    model = cls(np.inf, algorithm="mpu", fit_intercept=False, max_iter=3, **kernel).fit(X, y)
    assert model.status_ is Status.UNDECIDED
    assert model.certificate_.lower < 0.0
    assert model.verdict_.verify(X, y).reason in model.message_


INF, QUICK = np.inf, ("dcd", "mpu", "perceptron", "romma", "ima")
MODELS = {"linear": endless(), "kernel": KernelMaxMarginClassifier(100.0, tol=1e-12)}


@pytest.mark.parametrize("kind", MODELS)
@pytest.mark.parametrize(
    ("limit", "status"),
    [({"max_iter": 3}, Status.MAX_ITER), ({"max_time": 0.4}, Status.MAX_TIME), ({}, Status.INTERRUPTED)],
    ids=str,
)
def test_limits_and_callbacks_end_the_fit_with_the_best_model(kind, limit, status):
    X, y = overlapping() if kind == "linear" else rings(4000, 6)[:2]
    reports = []

    def callback(report):
        reports.append(report)
        if "max_time" in limit:
            time.sleep(0.15)  # so that the limit passes within a few rounds on every machine
        return not limit and report.round == 4

    model = clone(MODELS[kind]).set_params(max_iter=10**9, callback=callback)
    clone(model).set_params(max_iter=1, callback=None).fit(X, y)  # compiles
    begin = time.perf_counter()
    model.set_params(**limit).fit(X, y)
    assert status is not Status.MAX_TIME or 0.4 <= time.perf_counter() - begin < 4.0  # for slow machines
    assert model.status_ is status
    assert model.n_iter_ == {Status.MAX_ITER: 3, Status.INTERRUPTED: 4}.get(status, model.n_iter_)
    assert reports == model.history_
    assert_best_model_is_kept(model, X, y)


@contextmanager
def interrupted():
    """Expect a KeyboardInterrupt, with Python's handler of Ctrl-C before, and after it."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with pytest.raises(KeyboardInterrupt) as error:
            yield error
        assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    finally:
        signal.signal(signal.SIGINT, before)


def press():
    os.kill(os.getpid(), signal.SIGINT)


def pressed_later():
    """Return a callback that presses Ctrl-C once, soon after a third round: at any moment, also in compiled code."""
    starts = iter([threading.Timer(0.05, press).start])
    return lambda report: next(starts, int)() if report.round == 3 else None


@pytest.mark.parametrize("kind", MODELS)
def test_first_ctrl_c_raises_once_the_best_model_is_kept(kind):
    X, y = overlapping() if kind == "linear" else rings(4000, 6)[:2]
    model = clone(MODELS[kind]).set_params(max_iter=10**9, max_time=60.0, callback=lambda r: press())
    with interrupted() as error:
        model.fit(X, y)
    assert error.value.result is model
    assert "the best result so far is kept" in str(error.value)
    assert model.status_ is Status.INTERRUPTED
    if kind == "linear":  # running sums of kernel rows drift further than those of reports of linear fits
        assert_best_model_is_kept(model, X, y)
    else:
        assert verify(model, X, y).gap == pytest.approx(model.certificate_.gap, rel=1e-6)


def test_second_ctrl_c_leaves_the_estimator_as_it_was():
    model = endless(callback=lambda report: (press(), press()))
    with interrupted() as error:
        model.set_params(max_time=60.0).fit(*overlapping())
    assert not hasattr(error.value, "result")
    assert not hasattr(model, "status_")


def test_ctrl_c_in_a_worker_is_sent_to_its_parent_without_the_result():
    model = endless(callback=lambda report: press(), max_time=60.0)  # the callback cannot be pickled
    with interrupted() as error:
        model.fit(*overlapping())
    assert error.value.result is model
    sent = pickle.loads(pickle.dumps(error.value))
    assert type(sent) is KeyboardInterrupt
    assert "another process" in str(sent)


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_second_ctrl_c_that_c_code_ignores_is_raised_at_the_end():
    """C code that calls Python, as LLVM does where it loads compiled code, ignores errors."""
    presses = ctypes.CFUNCTYPE(None)(lambda: (press(), press()))
    model = endless(callback=lambda report: presses(), max_time=60.0)
    with interrupted() as error:
        model.fit(*overlapping())
    assert not hasattr(error.value, "result")
    assert not hasattr(model, "status_")


@pytest.mark.parametrize(
    "search",
    [
        lambda X, y: GridSearchCV(endless(callback=pressed_later()), {"tol": [1e-10, 1e-11]}).fit(X, y),
        lambda X, y: cross_val_score(endless(callback=pressed_later()), X, y),
    ],
    ids=["grid", "score"],
)
def test_ctrl_c_ends_a_search_of_scikit_learn(search):
    """A fit that Ctrl-C ended is not scored."""
    with interrupted():
        search(*overlapping(4000))


def test_ctrl_c_keeps_what_paths_comparisons_and_eliminations_have_found():
    X, y = overlapping()
    limits = {"callback": lambda r: r.round == 3 and press(), "max_time": 60.0, "tol": 1e-15}
    with interrupted() as error:
        margin_path(X, y, [1.0, 10.0], algorithm="mpu", loss="hinge", **limits)
    assert [model.status_ for model in error.value.result] == [Status.INTERRUPTED]
    with interrupted() as error:
        compare(X, y, ["mpu", "dcd"], loss="hinge", **limits)
    assert [entry.run.status for entry in error.value.result.entries] == [Status.INTERRUPTED]
    selector = MarginRFE(MaxMarginClassifier(algorithm="mpu", loss="hinge", **limits))
    with interrupted() as error:
        selector.fit(X, y)
    assert error.value.result is selector
    assert (selector.n_features_, "interrupted" in selector.reason_) == (X.shape[1], True)


def test_an_interrupt_of_a_path_keeps_the_points_before():
    X, y = clouds(40, 3, gap=0.4)

    begun = []

    def pressed(report):
        begun.extend([report] if report.round == 1 else [])
        if len(begun) > points:
            raise KeyboardInterrupt

    for points in (0, 1):
        begun.clear()
        with pytest.raises(KeyboardInterrupt) as error:
            margin_path(X, y, [1.0, 10.0, 100.0], callback=pressed)
        found = getattr(error.value, "result", ())
        assert [model.C for model in found] == [1.0, 10.0][:points]


def test_user_signal_handlers_are_kept():
    signals = []
    before = signal.signal(signal.SIGINT, lambda *arguments: signals.append(arguments))
    try:
        model = endless(max_iter=6, callback=lambda report: report.round == 3 and press())
        model.fit(*overlapping())
    finally:
        signal.signal(signal.SIGINT, before)
    assert len(signals) == 1
    assert model.status_ is Status.MAX_ITER


def failing(report):
    raise RuntimeError("the callback's own")


@pytest.mark.parametrize("cls", [MaxMarginClassifier, KernelMaxMarginClassifier])
@pytest.mark.parametrize(
    ("callback", "columns", "weights"), [(failing, 3, None), (None, 3, np.zeros(60)), (None, 0, None)]
)
def test_a_failed_fit_leaves_the_fitted_model_unchanged(cls, callback, columns, weights):
    X, y = clouds()
    model = cls(random_state=0).fit(X, y).set_params(callback=callback)
    fitted = dict(vars(model))
    with pytest.raises((ValueError, RuntimeError)):
        model.fit(X[:, :columns], y, weights)
    assert vars(model) == fitted


@pytest.mark.parametrize("cls", [MaxMarginClassifier, KernelMaxMarginClassifier])
def test_verbose_prints_one_line_per_report_to_standard_error(cls, capsys):
    X, y, _ = rings(700, 8)
    model = cls(verbose=1, random_state=0).fit(X, y)
    out, err = capsys.readouterr()
    lines = [line for line in err.splitlines() if line.startswith("round") and "gap" in line]
    assert not out
    assert len(lines) == len(model.history_) > 0
    stages = {report.stage for report in model.history_}  # each begins with a line of its reason
    assert len(err.splitlines()) == len(lines) + len(stages)
    cls().fit(X, y)
    assert capsys.readouterr() == ("", "")


@thorough
@interpreted
@pytest.mark.parametrize("name", [name for name in ALGORITHMS if name not in ("lp", "proximal-newton")])
def test_every_schedule_ends_with_a_certificate(name):
    """Hard margins of inseparable data, for which the criterion of a schedule is never met, end by `max_iter`."""
    X, y = clouds(2500, 4) if THOROUGH and COMPILED else clouds(20, 2, gap=0.2)
    Z = X + 6.0 * signs(y)[:, None]
    Z[17] = 0.0
    cls = ALGORITHMS[name]
    options = {"loss": "hinge" if cls().refuses(Problem("hinge", 0.05)) is None else "squared_hinge"}
    options |= {"random_state": 0, "max_iter": 300, "tol": 1e-3 if THOROUGH else 0.05}
    options |= {"p": INF} if name == "proximal-newton" else {}
    for schedule in cls.schedules:
        algorithm = name if schedule == cls().schedule else cls(schedule=schedule)
        C = 0.05 if cls().refuses(Problem(options["loss"], 0.05)) is None else INF
        model = MaxMarginClassifier(C, algorithm=algorithm, **options).fit(X, y)
        assert model.history_[0].stage == name
        if cls.convergent and name != "pegasos":  # its steps shrink with time
            assert model.status_ is Status.CERTIFIED
        verify(model, X, y)
        # rules with a rate for the data estimate the margin first, by many presentations
        if cls().refuses(Problem("hinge", INF)) is None and name != "pumma" and (COMPILED or name in QUICK):
            model.set_params(C=INF, fit_intercept=False, max_iter=3).fit(Z, y)
            assert model.n_iter_ <= 3
            assert model.status_ in (Status.INSEPARABLE, Status.UNDECIDED)
            assert model.certificate_.lower <= 0.0 <= model.certificate_.upper
            verify(model, Z, y)


@pytest.mark.parametrize("kind", ["linear", pytest.param("kernel", marks=pytest.mark.slow)])
def test_classes_share_max_time(kind):
    """Every class has rounds, also those whose turn comes last."""
    X, y = np.random.default_rng(0).normal(size=(2100, 100)), np.arange(2100) % 5
    model = endless() if kind == "linear" else KernelMaxMarginClassifier(1e6, tol=1e-9)
    model.set_params(max_iter=3).fit(X, y)  # compiles, also what a first round does not call
    # each of the five classes has 0.6 s, and a round takes at least 0.05 s
    model.set_params(max_iter=10**9, max_time=3.0, callback=lambda report: time.sleep(0.05)).fit(X, y)
    assert model.status_ is Status.MAX_TIME
    labels = [report.label for report in model.history_]
    assert len(set(labels)) == 5
    assert all(labels.count(label) > 1 for label in labels)
    verify(model, X, y)
