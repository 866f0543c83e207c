"""Degenerate but valid data certified where float64 allows it, valid bounds in any case."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
import scipy.sparse as sp
from clouds import assert_optimum_is_bracketed, clouds

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
