"""Threads: equal models for any number, limits of BLAS and joblib, and release of the lock in compiled code."""

from __future__ import annotations

import importlib
import threading
import time

import joblib
import numba
import numpy as np
import pytest
from compiled_functions import all_compiled
from joblib.externals.loky.backend import context as loky
from threadpoolctl import ThreadpoolController, threadpool_limits

import maxmargin.engine
from maxmargin import (
    KernelMaxMarginClassifier,
    MarginRFE,
    MaxMarginClassifier,
    OnlineMarginClassifier,
    separate,
    verify,
)
from maxmargin.numerics import threads

needs_two_blas_threads = pytest.mark.skipif(
    all(one["num_threads"] < 2 for one in ThreadpoolController().info() if one["user_api"] == "blas"),
    reason="BLAS has one thread here",
)
needs_compilation = pytest.mark.skipif(bool(numba.config.DISABLE_JIT), reason="nothing is compiled")


def rows(n: int = 90, d: int = 5, classes: int = 3) -> tuple[np.ndarray, np.ndarray]:
    """Noisy classes."""
    rng = np.random.default_rng(0)
    y = np.arange(n) % classes
    return rng.normal(size=(n, d)) + rng.normal(size=(classes, d))[y], y


def blas_threads() -> set[int]:
    """Return the current numbers of BLAS threads."""
    return {one["num_threads"] for one in ThreadpoolController().info() if one["user_api"] == "blas"}


# the model


@pytest.mark.parametrize(
    "model",
    [
        MaxMarginClassifier(random_state=0),
        MaxMarginClassifier(loss="hinge", random_state=0),
        MaxMarginClassifier(C=np.inf, loss="squared_hinge", algorithm="micra", max_iter=20, random_state=0),
        KernelMaxMarginClassifier(multi_class="ovo"),
        KernelMaxMarginClassifier(multi_class="ovr"),
        MarginRFE("auto", p=2, n_features_to_select=2, random_state=0),
    ],
    ids=repr,
)
@pytest.mark.parametrize("classes", [2, 3])
def test_model_does_not_depend_on_the_number_of_threads(model, classes, monkeypatch):
    monkeypatch.setattr(threads, "cpu_count", lambda: 2)
    monkeypatch.setattr("maxmargin.estimators.linear.MIN_THREADED_ENTRIES", 0)
    X, y = rows(classes=classes)
    one, two = (model.set_params(n_jobs=count).fit(X, y).decision_function(X) for count in (1, 2))
    assert one.tobytes() == two.tobytes()


# BLAS


@needs_two_blas_threads
@pytest.mark.parametrize("n_jobs", [None, 1, 2, -1])
@pytest.mark.parametrize("kind", [MaxMarginClassifier, KernelMaxMarginClassifier])
def test_fit_limits_blas_to_one_thread_and_restores_the_limit(kind, n_jobs):
    observed, before = [], blas_threads()
    kind(n_jobs=n_jobs, callback=lambda report: observed.append(blas_threads())).fit(*rows())
    assert observed
    assert all(some == {1} for some in observed)
    assert blas_threads() == before


@needs_two_blas_threads
@pytest.mark.parametrize(
    ("model", "inside"),
    [
        (MaxMarginClassifier(), "maxmargin.estimators.prediction.safe_sparse_dot"),
        (KernelMaxMarginClassifier(), "maxmargin.estimators.kernel.check_kernel"),
        (OnlineMarginClassifier(), "maxmargin.estimators.online.Patterns"),
        (OnlineMarginClassifier(trail="last"), "maxmargin.estimators.prediction.safe_sparse_dot"),
        (MarginRFE("auto", p=2, random_state=0), "maxmargin.estimators.elimination.rank_features"),
    ],
    ids=lambda value: value if isinstance(value, str) else type(value).__name__,
)
def test_fit_and_predict_limit_blas_to_one_thread(model, inside, monkeypatch):
    module, name = inside.rsplit(".", 1)
    observed, original = [], getattr(importlib.import_module(module), name)

    def recorded(*arguments, **options):
        observed.append(blas_threads())
        return original(*arguments, **options)

    monkeypatch.setattr(inside, recorded)
    model.fit(*rows()).predict(rows()[0])
    assert observed
    assert all(some == {1} for some in observed)


@needs_two_blas_threads
@pytest.mark.parametrize(
    ("call", "inside"),
    [
        (lambda model, X, y: verify(model, X, y), "maxmargin.certificates.verification.verify_linear"),
        (lambda model, X, y: separate(X, y), "maxmargin.separability.separate.LinearSearch"),
    ],
    ids=["verify", "separate"],
)
def test_functions_limit_blas_to_one_thread_and_restore_the_limit(call, inside, monkeypatch):
    X, y = rows(classes=2)
    model = MaxMarginClassifier().fit(X, y)
    module, name = inside.rsplit(".", 1)
    observed, original, before = [], getattr(importlib.import_module(module), name), blas_threads()
    monkeypatch.setattr(
        inside, lambda *some, **others: observed.append(blas_threads()) or original(*some, **others)
    )
    call(model, X, y)
    assert observed == [{1}]
    assert blas_threads() == before


@needs_two_blas_threads
def test_thread_limit_lasts_until_the_last_fit_ends():
    before = blas_threads()
    with threads.one_thread:
        with threads.one_thread:
            assert blas_threads() == {1}
        assert blas_threads() == {1}
    assert blas_threads() == before
    first, second = threads.one_thread, threads.one_thread
    first.__enter__()
    second.__enter__()
    first.__exit__()
    assert blas_threads() == {1}
    second.__exit__()
    assert blas_threads() == before


@needs_two_blas_threads
def test_failed_fit_and_outer_limit_restore_the_threads():
    before = blas_threads()
    with pytest.raises(ValueError, match="NaN"):
        MaxMarginClassifier().fit([[np.nan], [1.0]], [0, 1])
    assert blas_threads() == before
    with threadpool_limits(limits=1, user_api="blas"):
        MaxMarginClassifier().fit(*rows())
        assert blas_threads() == {1}
    assert blas_threads() == before


@needs_two_blas_threads
def test_fits_in_user_threads_give_equal_models():
    X, y = rows()
    expected, before = MaxMarginClassifier(random_state=0).fit(X, y).coef_, blas_threads()
    fits = (joblib.delayed(MaxMarginClassifier(random_state=0).fit)(X, y) for _ in range(8))
    models = joblib.Parallel(n_jobs=4, backend="threading")(fits)
    assert all(np.array_equal(model.coef_, expected) for model in models)
    assert blas_threads() == before


# processors


@pytest.mark.parametrize(
    ("n_jobs", "parts", "count"),
    [(None, 9, 1), (1, 9, 1), (2, 9, 2), (8, 9, 3), (-1, 9, 3), (-2, 9, 2), (-9, 9, 1), (3, 2, 2), (3, 0, 1)],
)
def test_threads_are_limited_by_processors_and_parts(n_jobs, parts, count, monkeypatch):
    monkeypatch.setenv("LOKY_MAX_CPU_COUNT", "3")
    monkeypatch.setattr(loky.os, "cpu_count", lambda: 64)
    monkeypatch.setattr(loky, "_cpu_count_user", lambda processors: 3)
    assert threads.jobs(n_jobs, parts) == count


@pytest.mark.skipif(
    not hasattr(loky, "_cpu_count_cgroup"), reason="this version of joblib has no _cpu_count_cgroup"
)
def test_container_of_one_processor_uses_one_thread(monkeypatch):
    monkeypatch.setattr(loky, "_cpu_count_cgroup", lambda processors: 1)
    assert threads.jobs(2, 9) == threads.jobs(-1, 9) == 1
    observed = set()
    MaxMarginClassifier(n_jobs=2, callback=lambda report: observed.add(threading.get_ident())).fit(*rows())
    assert observed == {threading.get_ident()}


def test_classes_are_fitted_in_threads_unless_the_fit_is_short(monkeypatch):
    """Fits of milliseconds use one thread, since starting others would take longer."""
    monkeypatch.setattr(threads, "cpu_count", lambda: 2)
    observed = set()
    model = MaxMarginClassifier(n_jobs=2, callback=lambda report: observed.add(threading.get_ident()))
    model.fit(*rows())
    assert observed == {threading.get_ident()}
    observed.clear()
    monkeypatch.setattr("maxmargin.estimators.linear.MIN_THREADED_ENTRIES", 0)
    model.fit(*rows())
    assert threading.get_ident() not in observed
    observed.clear()
    monkeypatch.undo()
    monkeypatch.setattr(threads, "cpu_count", lambda: 2)
    model.set_params(algorithm="dcd").fit(*rows())  # may take long
    assert threading.get_ident() not in observed


def test_fits_within_a_parallel_loop_use_one_thread():
    def inner(k):
        return threads.jobs(2, 9)

    found = joblib.Parallel(n_jobs=2, backend="threading")(joblib.delayed(inner)(k) for k in range(2))
    assert found == [1, 1]


# compiled code


@needs_compilation
def test_compiled_code_releases_the_lock_and_starts_no_threads():
    found = [function.targetoptions for function in all_compiled()]
    assert len(found) > 20
    assert all(options["nogil"] and not options.get("parallel") for options in found)


@needs_compilation
def test_sweep_does_not_block_other_threads(monkeypatch):
    """A thread that wakes up every millisecond is not delayed by a compiled call."""
    original, calls = maxmargin.fit.state.score_rows, []

    def recorded(h, order, scores):
        calls.append((h, order, scores))
        return original(h, order, scores)

    monkeypatch.setattr("maxmargin.fit.state.score_rows", recorded)
    MaxMarginClassifier(loss="hinge", algorithm="dcd", max_iter=1, random_state=0).fit(
        *rows(60, 2000, classes=2)
    )
    h, order, scores = calls[0]
    seconds = 0.0
    while seconds < 0.3:
        order = np.tile(order, 2)
        begin = time.perf_counter()
        original(h, order, scores)
        seconds = time.perf_counter() - begin
    wakeups, during = [0], []

    def work():
        begun = wakeups[0]
        original(h, order, scores)
        during.append(wakeups[0] - begun)

    worker = threading.Thread(target=work)
    worker.start()
    while worker.is_alive():
        time.sleep(1e-3)
        wakeups[0] += 1
    worker.join()
    assert during[0] >= 10
