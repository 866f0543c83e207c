"""Threads: equal models for any number, limits of BLAS and joblib, and one thread for work of milliseconds."""

from __future__ import annotations

import threading

import joblib
import numpy as np
import pytest
from joblib.externals.loky.backend import context as loky
from threadpoolctl import ThreadpoolController, threadpool_limits

from maxmargin import KernelMaxMarginClassifier, MaxMarginClassifier
from maxmargin.numerics import sizes


def rows(n: int = 90, d: int = 5, classes: int = 3) -> tuple[np.ndarray, np.ndarray]:
    """Noisy classes."""
    rng = np.random.default_rng(0)
    y = np.arange(n) % classes
    return rng.normal(size=(n, d)) + rng.normal(size=(classes, d))[y], y


def blas_threads() -> set[int]:
    """Return the current numbers of BLAS threads."""
    return {one["num_threads"] for one in ThreadpoolController().info() if one["user_api"] == "blas"}


needs_two_blas_threads = pytest.mark.skipif(max(blas_threads()) < 2, reason="BLAS has one thread here")


@pytest.mark.parametrize(
    "model",
    [
        MaxMarginClassifier(loss="hinge", random_state=0),
        MaxMarginClassifier(loss="hinge", algorithm="dcd", max_iter=20, random_state=0),
        KernelMaxMarginClassifier(multi_class="ovo"),
        KernelMaxMarginClassifier(multi_class="ovr"),
    ],
    ids=repr,
)
def test_model_does_not_depend_on_the_number_of_threads(model, monkeypatch):
    monkeypatch.setattr(sizes, "cpu_count", lambda: 2)
    monkeypatch.setattr("maxmargin.estimators.linear_tasks.MIN_THREADED_ENTRIES", 0)
    X, y = rows()
    one, two = (model.set_params(n_jobs=count).fit(X, y).decision_function(X) for count in (1, 2))
    assert one.tobytes() == two.tobytes()


# BLAS


@needs_two_blas_threads
@pytest.mark.parametrize("cls", [MaxMarginClassifier, KernelMaxMarginClassifier])
def test_fits_limit_blas_to_one_thread_and_restore_the_limit(cls):
    (X, y), before, observed = rows(classes=2), blas_threads(), []
    cls(n_jobs=-1, callback=lambda report: observed.append(blas_threads())).fit(X, y).predict(X)
    assert observed
    assert all(some == {1} for some in observed)
    assert blas_threads() == before


@needs_two_blas_threads
def test_thread_limit_lasts_until_the_last_fit_ends():
    before = blas_threads()
    first, second = sizes.one_thread(), sizes.one_thread()
    with first:
        second.__enter__()
    assert blas_threads() == {1}
    second.__exit__(None, None, None)
    assert blas_threads() == before
    with pytest.raises(ValueError, match="NaN"):
        MaxMarginClassifier().fit([[np.nan], [1.0]], [0, 1])
    assert blas_threads() == before
    with threadpool_limits(limits=1, user_api="blas"):
        MaxMarginClassifier().fit(*rows())
        assert blas_threads() == {1}
    X, y = rows()
    expected = MaxMarginClassifier(random_state=0).fit(X, y).coef_
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
    assert sizes.jobs(n_jobs, parts) == count


def test_classes_are_fitted_in_threads_unless_the_fit_is_short(monkeypatch):
    """Fits of milliseconds use one thread, since starting others would take longer; so does one processor."""

    def in_this_thread(**options):
        observed = set()
        model = MaxMarginClassifier(
            n_jobs=2, callback=lambda report: observed.add(threading.get_ident()), **options
        )
        model.fit(*rows())
        return threading.get_ident() in observed

    monkeypatch.setattr(sizes, "cpu_count", lambda: 2)
    assert in_this_thread()
    assert not in_this_thread(loss="hinge", algorithm="dcd")  # may take long
    monkeypatch.setattr("maxmargin.estimators.linear_tasks.MIN_THREADED_ENTRIES", 0)
    assert not in_this_thread()
    monkeypatch.setattr(sizes, "cpu_count", lambda: 1)
    assert in_this_thread()
