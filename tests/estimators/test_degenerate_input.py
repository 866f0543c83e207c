"""Degenerate but valid data and extreme magnitudes: certified where float64 allows it, valid bounds in any case."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
import scipy.sparse as sp
from clouds import assert_optimum_is_bracketed, clouds
from problems import rings

from maxmargin import KernelMaxMarginClassifier, MaxMarginClassifier, Status, verify

INF, LOSSES = np.inf, ("hinge", "squared_hinge")


def degenerate_data():
    """Return rows and labels by the name of their defect."""
    X, y = clouds(30, 5)
    zero, constant = X.copy(), X.copy()
    zero[np.random.default_rng(0).random(30) < 0.5] = 0.0
    constant[:, 2] = 7.0
    few = np.array([0, 1, 0, 1, 1, 1])
    return {
        "all-zero rows": (zero, y),
        "identical rows with opposite labels": (np.vstack([X, X[:10]]), np.append(y, 1 - y[:10])),
        "only identical rows": (np.ones((6, 3)), few),
        "duplicate columns": (np.hstack([X, X]), y),
        "a column of 1e9 twice": (np.hstack([X, 1e9 * X[:, :1], 1e9 * X[:, :1]]), y),
        "a constant column": (constant, y),
        "only constant columns": (np.full((6, 2), 0.1), few),
        "two rows": (np.array([[1.0], [2.0]]), np.array([0, 1])),
        "one row against many": (X, (np.arange(30) == 3).astype(int)),
    }


DEGENERATE = degenerate_data()
COMBINATIONS = enumerate(product(DEGENERATE, LOSSES, (1e-3, 1.0, 1e3), (np.asarray, sp.csr_matrix)))


@pytest.mark.parametrize(  # 5 has no factor in common with 2 and 3
    ("name", "loss", "C", "store"),
    [pytest.param(*c, marks=[pytest.mark.slow] * (k % 5 > 0)) for k, c in COMBINATIONS],
)
def test_degenerate_data_are_certified(name, loss, C, store):
    X, y = DEGENERATE[name]
    for free in (True, False):
        model = MaxMarginClassifier(C, loss=loss, fit_intercept=free, random_state=0).fit(store(X), y)
        assert model.status_ is Status.CERTIFIED
        assert_optimum_is_bracketed(model, store(X), y)
    kernel = KernelMaxMarginClassifier(C, loss=loss).fit(store(X), y)
    assert kernel.status_ is Status.CERTIFIED
    verify(kernel, store(X), y)
    if not X.std():
        assert kernel.gamma_ == 1.0


def narrow(seed):
    """Return 12 separable rows, whose margin is down to 1e-9 of their largest entry."""
    rng = np.random.default_rng(seed)
    X, y = rng.normal(size=(12, 2)) * 10.0 ** rng.uniform(-6, 6), np.arange(12) % 2
    X[:, 0] = np.where(y == 1, 1.0, -1.0) * 10.0 ** rng.uniform(-9, 0) * np.abs(X).max()
    return X, y


def test_narrow_margins_are_certified_in_any_row_order():
    for seed in range(8):
        X, y = narrow(seed)
        model = MaxMarginClassifier(INF, random_state=0).fit(X, y)
        assert model.status_ is Status.CERTIFIED
        assert_optimum_is_bracketed(model, X, y)
    X, y = narrow(8)  # products for a margin of 1e-7 are rounding errors
    for seed in range(12):
        order = np.random.default_rng(seed).permutation(12)
        model = MaxMarginClassifier(INF, random_state=0).fit(X[order], y[order])
        assert model.status_ is Status.CERTIFIED
        assert model.certificate_.lower <= X[1, 0] <= model.certificate_.upper


# magnitudes


@pytest.mark.parametrize(("scale", "loss"), [(1e-120, "hinge"), (1e78, "squared_hinge"), (1e120, "hinge")])
def test_kernel_margins_scale_with_the_features(scale, loss):
    X, y, _ = rings(40, 10)
    X, near = X + 3.0 * y[:, None], {"rel": 1e-6, "abs": 0.0}  # tol
    plain = KernelMaxMarginClassifier(INF, kernel="linear", tol=1e-6).fit(X, y)
    hard = KernelMaxMarginClassifier(INF, kernel="linear", tol=1e-6).fit(X * scale, y)
    assert hard.status_ is Status.CERTIFIED
    assert verify(hard, X * scale, y).lower == pytest.approx(plain.certificate_.lower * scale, **near)
    soft = KernelMaxMarginClassifier(kernel="linear", loss=loss, tol=1e-6).fit(X * scale, y)
    # the hard margin, or w = 0 with the smaller class on the wrong side
    best = 2.0 * (y > 0).sum() if scale < 1.0 else 0.5 / hard.certificate_.lower**2
    assert verify(soft, X * scale, y).upper == pytest.approx(best, **near)
    wide = KernelMaxMarginClassifier(tol=1e-6).fit(X * scale, y)
    same = KernelMaxMarginClassifier(tol=1e-6).fit(X, y)  # gamma="scale" removes the unit of the data
    assert wide.certificate_.lower == pytest.approx(same.certificate_.lower, **near)


@pytest.mark.parametrize(
    ("model", "scale", "weight"),
    [
        (MaxMarginClassifier(1e-200, loss="hinge"), 1.0, 1e200),
        (MaxMarginClassifier(1e200, loss="hinge"), 1e110, 1e80),
        (MaxMarginClassifier(INF), 1e140, 1e200),
        (KernelMaxMarginClassifier(1e-100, kernel="linear", loss="squared_hinge"), 1e-120, 1.0),
        (KernelMaxMarginClassifier(1e-200), 1.0, 1e300),
        (KernelMaxMarginClassifier(1e306, loss="squared_hinge"), 1.0, 1.0),
    ],
    ids=str,
)
def test_extreme_magnitudes_give_valid_certificates(model, scale, weight):
    """Products leave the range of float64: no warning (warnings are errors in tests), and valid bounds."""
    X, y = np.array([[1.0, 2.0], [3.0, -1.0], [2.0, 2.5], [-1.0, 0.5]]) * scale, [0, 1, 0, 1]
    weights = [1.0, weight, 1.0, weight]
    model.fit(X, y, weights)
    assert model.status_ is not Status.NOT_FINITE
    now = verify(model, X, y, weights)
    assert 0.0 <= now.lower <= now.upper < INF
    assert now.gap <= 1e-3 or model.status_ is not Status.CERTIFIED


@pytest.mark.parametrize("p", [1.0, 1.5, 2.0, np.inf])
@pytest.mark.parametrize("tiny", [1e-310, 1e-200])
def test_problems_that_one_tiny_column_decides_end_with_a_status(tiny, p):
    for other in ([0.0, 0.0, 1.0], [1.0, 1.0, 2.0]):
        X, y = np.c_[[tiny, -tiny, 0.0], other], np.array([1, 0, 0])
        for options in ({"C": np.inf}, {"loss": "hinge"}, {}):
            model = MaxMarginClassifier(p=p, **options).fit(X, y)
            assert model.message_
            verify(model, X, y)
