"""Time limits, callbacks and Ctrl-C are observed within fits, and what is found so far is kept."""

from __future__ import annotations

import signal
import time

import numpy as np
import pytest
import scipy.sparse as sp
from memory import with_peak_memory
from sklearn.base import clone

from maxmargin import KernelMaxMarginClassifier, MaxMarginClassifier, MaxMarginClassifierCV, Status, verify


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


@pytest.mark.parametrize(
    "options",
    [
        {"C": np.inf},
        {"C": np.inf, "p": 1},
        {"C": np.inf, "p": 1.5},
        {"loss": "hinge", "p": 1, "norm_power": 1, "algorithm": "lp"},
        {"loss": "hinge", "p": np.inf, "norm_power": 1},
        {"loss": "hinge", "C": 1e4},
        {"loss": "squared_hinge", "p": np.inf, "C": 1e3},
        {"loss": "hinge", "p": 3, "C": 1e3, "algorithm": "interior-point"},
    ],
    ids=str,
)
def test_deadlines_are_kept_with_a_valid_certificate(options):
    """Of fits that take longer; the bound is generous for slow machines and compilation."""
    X, y = half_at_the_margin(0.01, 4000, 100)
    y[:5] = y[:5] if options.get("C") == np.inf else -y[:5]
    model = MaxMarginClassifier(**options, tol=1e-13, max_time=0.4, random_state=0)
    begin = time.perf_counter()
    model.fit(X, y)
    assert time.perf_counter() - begin < 20.0
    assert model.status_ is not Status.INTERRUPTED
    assert model.certificate_.gap < np.inf
    assert verify(model, X, y).gap == pytest.approx(model.certificate_.gap, rel=1e-6, abs=1e-9)


def test_unreached_time_limits_do_not_change_the_result():
    X, y = half_at_the_margin(0.5, 200, 10)
    one, two = (
        MaxMarginClassifier(loss="hinge", p=1, norm_power=1, algorithm="lp", max_time=limit).fit(X, y)
        for limit in (None, 1e4)
    )
    assert one.status_ is two.status_
    assert (one.coef_.tobytes(), one.intercept_[0]) == (two.coef_.tobytes(), two.intercept_[0])


@pytest.mark.parametrize(
    ("kind", "loss"), [("dense", "squared_hinge"), ("sparse", "hinge"), ("equal rows", "hinge")]
)
def test_interior_points_of_wide_rows_need_no_matrix_of_the_columns(kind, loss):
    """A step takes n^3 operations, and n d numbers of memory."""
    rng = np.random.default_rng(0)
    y = np.where(np.arange(20) % 2, 1.0, -1.0)
    X = rng.standard_normal((20, 3000)) + 0.1 * y[:, None]
    X[[3, 5]] = X[1] if kind == "equal rows" else X[[3, 5]]
    X = sp.csr_matrix(np.maximum(X, 0.0)) if kind == "sparse" else X
    model = MaxMarginClassifier(1.0, loss=loss, algorithm="interior-point", tol=1e-7).fit(X, y)
    _, peak = with_peak_memory(lambda: model.fit(X, y))
    assert peak < 8 * 3000**2 / 4
    assert model.status_ is Status.CERTIFIED


@pytest.mark.parametrize(
    "model",
    [
        MaxMarginClassifier(C=np.inf, algorithm="interior-point", random_state=0),
        MaxMarginClassifier(loss="hinge", p=1, norm_power=1, algorithm="lp", random_state=0),
        MaxMarginClassifier(loss="hinge", algorithm="mpu", random_state=0, max_iter=20),
        KernelMaxMarginClassifier(C=100.0, loss="hinge", random_state=0),
    ],
)
def test_callbacks_get_every_round_in_order_and_may_end_the_fit(model):
    rng = np.random.default_rng(0)
    X, y, reports = rng.standard_normal((300, 20)), np.arange(300) % 2, []
    model = clone(model).set_params(tol=1e-12, callback=reports.append).fit(X, y)
    assert reports == model.history_
    assert np.all(np.diff([report.seconds for report in reports]) >= 0.0)
    model.set_params(callback=lambda report: True).fit(X, y)
    ended = {Status.INTERRUPTED, Status.INSEPARABLE, Status.STALLED}
    # a linear program may have ended within the first round, at a gap of rounding
    assert model.status_ in ended | ({Status.CERTIFIED} if model.history_[0].stage == "lp" else set())
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
