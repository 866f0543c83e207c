"""Non-negative least squares: the optimum of SciPy's, and stops between its steps."""

import tracemalloc

import numpy as np
import pytest
from scipy.optimize import nnls

from maxmargin.numerics.stop_check import OutOfTime
from maxmargin.separability.least_squares import nonnegative_least_squares


@pytest.fixture(autouse=True)
def own_steps(monkeypatch):
    """Leave no small problem to SciPy."""
    for limit in ("MAX_ENTRIES", "MAX_UNSTOPPED"):
        monkeypatch.setattr(f"maxmargin.separability.least_squares.{limit}", 0.0)


def problem(seed, n, d, values):
    """Return rows y_i (x_i, 1), each with a last entry of 1, and the target, which is 1 there and 0 elsewhere."""
    rng = np.random.default_rng(seed)
    X = rng.integers(-3, 4, (n, d)).astype(float) if values == "whole" else rng.standard_normal((n, d))
    if values == "rows":
        X *= 10.0 ** rng.integers(-2, 3, (n, 1))
    if values == "columns":
        X *= 10.0 ** rng.integers(-8, 9, d)
    scores = X @ rng.standard_normal(d)
    y = np.where(scores + (seed % 2) * rng.standard_normal(n) > 0.0, 1.0, -1.0)
    target = np.zeros(d + 2)
    target[-1] = 1.0
    return np.column_stack([X * y[:, None], y, np.ones(n)]), target


@pytest.mark.parametrize("values", ["real", "whole", "columns", "rows"])
def test_the_optimum_is_that_of_scipy(values):
    for seed in range(8):
        rows, target = problem(seed, 60 + 20 * seed, 2 + 3 * seed, values)
        z, residual = nonnegative_least_squares(rows, target, lambda: False)
        expected = nnls(rows.T, target)[1]
        assert z.min() >= 0.0
        assert np.linalg.norm(target - z @ rows) == pytest.approx(expected, rel=1e-7, abs=1e-13)
        np.testing.assert_allclose(residual, target - z @ rows, rtol=1e-6, atol=1e-12)


def test_copies_and_rows_of_rank_one_end():
    rows = np.repeat([[1.0, 1.0], [-2.0, 1.0], [0.0, 0.0]], 4, axis=0)
    z, residual = nonnegative_least_squares(rows, np.array([0.0, 1.0]), lambda: False)
    np.testing.assert_allclose(z @ rows, [0.0, 1.0], atol=1e-15)
    np.testing.assert_allclose(residual, 0.0, atol=1e-15)


def test_a_weight_that_becomes_zero_with_another_one_leaves():
    """The weights of two rows become zero in the same step, and the second one is zero in the next solution."""
    rows = np.array(
        [[0, -1, 1, 1, 1], [0, 0, 1, -1, 1], [0, 1, 1, 1, 1], [0, -1, -1, -1, 1], [-1, 1, 0, 1, 1.0]]
    )
    target = np.array([0.0, 0.0, 0.0, 0.0, 1.0])
    with np.errstate(invalid="raise", divide="raise"):
        z, _ = nonnegative_least_squares(rows, target, lambda: False)
    assert np.linalg.norm(target - z @ rows) == pytest.approx(nnls(rows.T, target)[1], rel=1e-12)


def test_many_columns_take_memory_for_few_rows():
    rng = np.random.default_rng(0)
    rows, target = (
        rng.integers(-3, 4, (30, 5)) @ rng.integers(-2, 3, (5, 4_000)).astype(float),
        np.zeros(4_000),
    )
    target[-1] = 1.0
    tracemalloc.start()
    z, _ = nonnegative_least_squares(rows, target, lambda: False)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert np.linalg.norm(target - z @ rows) == pytest.approx(nnls(rows.T, target)[1], rel=1e-7)
    assert peak < 8 * rows.nbytes


def test_the_stop_check_is_called_in_each_step():
    rows, target = problem(1, 300, 20, "real")
    calls = []
    with pytest.raises(OutOfTime):
        nonnegative_least_squares(rows, target, lambda: len(calls) == 5 or calls.append(0))
    assert len(calls) == 5
    nonnegative_least_squares(rows, target, lambda: bool(calls.append(0)))
    z, _ = nonnegative_least_squares(rows, target, lambda: False)
    assert len(calls) - 5 >= np.count_nonzero(z)
