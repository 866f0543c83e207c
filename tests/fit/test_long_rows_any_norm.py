"""A few rows, or all rows, far longer than usual, in other norms than p = 2: certified, with the optimum bracketed."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import linprog

from maxmargin import MaxMarginClassifier, Status, verify


def overlapping(n: int = 80, d: int = 6, seed: int = 40) -> tuple[np.ndarray, np.ndarray]:
    """Rows, and labels -1.0 and 1.0, some of which no plane separates."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    return X, np.where(X.sum(axis=1) + rng.normal(size=n) > 0.0, 1.0, -1.0)


def least_objective(X: np.ndarray, y: np.ndarray) -> float:
    """Return min |w|_1 + sum xi_i, y_i (w.x_i + b) >= 1 - xi_i, by HiGHS.

    Columns and rows are divided by roots of their largest entries: entries below 1e-9 would count as 0.
    """
    columns = np.sqrt(np.abs(X).max(axis=0))
    rows = np.sqrt(np.abs(X / columns).max(axis=1))
    G = np.hstack([y[:, None] * np.hstack([X / columns, -X / columns, np.ones((len(X), 1))]), np.eye(len(X))])
    cost = np.concatenate([1.0 / columns, 1.0 / columns, [0.0], np.ones(len(X))])
    bounds = [(0, None)] * (2 * X.shape[1]) + [(None, None)] + [(0, None)] * len(X)
    tight = {"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10}
    return linprog(cost, -G / rows[:, None], -1.0 / rows, bounds=bounds, method="highs-ds", options=tight).fun


@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
@pytest.mark.parametrize("p", [1.0, 1.5, 3.0, np.inf])
@pytest.mark.parametrize("kind", ["entry", "row"])
def test_one_long_row_is_certified(p, loss, kind):
    X, y = overlapping()
    if kind == "entry":
        X[3, 1] = 1e10
    else:
        X[0] *= 1e8
    model = MaxMarginClassifier(p=p, loss=loss, tol=1e-6).fit(X, y)
    assert model.status_ is Status.CERTIFIED
    assert verify(model, X, y).gap <= model.tol


@pytest.mark.parametrize("value", [1e7, 1e9])
def test_linear_program_with_one_huge_entry_contains_the_optimum(value):
    X, y = overlapping()
    X[3, 1] = value
    model = MaxMarginClassifier(p=np.inf, norm_power=1, loss="hinge", tol=1e-6).fit(X, y)
    certificate, optimum = model.certificate_, least_objective(X, y)
    assert model.status_ is Status.CERTIFIED
    assert certificate.lower <= optimum * (1.0 + 1e-7)
    assert certificate.upper >= optimum * (1.0 - 1e-7)


@pytest.mark.parametrize("p", [1.0, np.inf])
def test_columns_from_tiny_to_huge_are_certified(p):
    """Rounding of the dual variables in the huge column would take more than 1e-6 from the bound."""
    X, y = overlapping()
    X *= 10.0 ** np.linspace(-12.0, 12.0, X.shape[1])
    model = MaxMarginClassifier(p=p, loss="hinge", tol=1e-6).fit(X, y)
    assert model.status_ is Status.CERTIFIED
    assert verify(model, X, y).gap <= model.tol


@pytest.mark.parametrize("seed", range(4))
def test_losses_that_are_rounding_take_nothing_from_the_bound(seed):
    """The optimum of separable rows is about 1e-31: the square of one rounding of a margin is a large part of it."""
    X, y = overlapping(seed=seed)
    X *= 1e16
    y = np.where(X.sum(axis=1) > 0.0, 1.0, -1.0)
    model = MaxMarginClassifier(p=3.0, loss="squared_hinge").fit(X, y)
    assert model.status_ is Status.CERTIFIED
    assert verify(model, X, y).gap <= model.tol


@pytest.mark.parametrize("scale", [1e8, 1e12, 1e16])
def test_linear_program_of_separable_long_rows_is_certified(scale):
    """A margin of 1 that is rounded down has a loss of 1e-16, which exceeds the whole optimum, about 1 / scale."""
    X, y = overlapping(seed=0)
    y = np.where(X.sum(axis=1) > 0.0, 1.0, -1.0)
    X *= scale
    model = MaxMarginClassifier(p=np.inf, norm_power=1, loss="hinge", tol=1e-9).fit(X, y)
    assert model.status_ is Status.CERTIFIED
    assert verify(model, X, y).gap <= model.tol


@pytest.mark.parametrize(("p", "power"), [(1.0, 1), (1.0, 2), (1.5, 2), (2.0, 1), (3.0, 1), (np.inf, 2)])
@pytest.mark.parametrize("seed", [0, 2])
def test_the_hinge_of_overlapping_long_rows_is_certified(p, power, seed):
    """The optimum is the least hinge loss. Rounding of the dual variables exceeds it in every column."""
    X, y = overlapping(seed=seed)
    least_loss = least_objective(1e12 * X, y)  # but for |w| of 1e-11
    model = MaxMarginClassifier(p=p, norm_power=power, loss="hinge", random_state=0).fit(1e16 * X, y)
    assert model.status_ is Status.CERTIFIED
    certificate = verify(model, 1e16 * X, y)
    assert certificate.gap <= model.tol
    assert certificate.lower <= least_loss * (1.0 + 1e-7)
    assert certificate.upper >= least_loss * (1.0 - 1e-7)
