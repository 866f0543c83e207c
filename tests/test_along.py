"""The best multiple and intercept without sorting, against the sorted way and against scipy."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import minimize

from maxmargin import Problem
from maxmargin.engine.breakpoints import least_shift
from maxmargin.fit.line_search import intercept, multiple_and_intercept
from maxmargin.problem.intercept import best_intercept


@given(seed=st.integers(0, 2**31), n=st.integers(2, 40), ties=st.booleans(), weighted=st.booleans())
def test_the_intercept_without_sorting_is_that_with_sorting(seed, n, ties, weighted):
    """Where both find the middle of the same interval."""
    rng = np.random.default_rng(seed)
    y = rng.permutation(np.where(np.arange(n) % 2, 1.0, -1.0))
    scores = rng.integers(-2, 3, size=n) / 2.0 if ties else rng.normal(size=n)
    weights = rng.integers(1, 4, size=n) / 2.0 if weighted else np.ones(n)
    problem = Problem("hinge", 2.0)
    assert intercept(problem, scores, y, weights) == best_intercept(problem, scores, y, weights)


@given(
    seed=st.integers(0, 2**31),
    n=st.integers(2, 40),
    ties=st.booleans(),
    size=st.sampled_from((1e-3, 1.0, 1e6)),
    apart=st.sampled_from((0.0, 3.0)),
)
def test_the_intercept_of_squared_losses_without_sorting(seed, n, ties, size, apart):
    """Weights of 0, classes that overlap or not, one class with no weight at all."""
    rng = np.random.default_rng(seed)
    y = rng.permutation(np.where(np.arange(n) % 2, 1.0, -1.0))
    scores = size * (rng.integers(-2, 3, size=n) / 2.0 if ties else rng.normal(size=n)) + apart * y
    weights = rng.integers(0, 4, size=n) / 2.0
    weights[0] = 1.0
    problem = Problem("squared_hinge", 2.0)
    exact = best_intercept(problem, scores, y, weights)
    assert intercept(problem, scores, y, weights) == pytest.approx(exact, rel=1e-12, abs=1e-12 * (1.0 + size))


def test_intercepts_that_cost_nothing():
    """The middle of them, or one class alone, as with sorting; the first costs a few passes where 0 is the best."""
    problem = Problem("squared_hinge", 2.0)
    y, z = np.array([1.0, 1.0, -1.0, -1.0]), np.array([5e-4, 5e-4, -5e-4, -1e-3])
    for weights in (np.array([1.0, 0.5, 0.0, 0.0]), np.array([0.0, 0.0, 1.0, 1.0]), np.ones(4)):
        for size in (1.0, 3e3):
            found = intercept(problem, size * z, y, weights)
            assert found == pytest.approx(best_intercept(problem, size * z, y, weights), rel=1e-12, abs=1e-15)
    z = np.random.default_rng(0).normal(size=200)
    z, y = np.append(z, -z), np.repeat([1.0, -1.0], 200)
    assert least_shift(y, z, np.ones(400), 5) == pytest.approx(0.0, abs=1e-14)


@given(
    seed=st.integers(0, 2**31),
    n=st.integers(2, 30),
    kind=st.sampled_from(("free", "augmented", "none")),
    size=st.sampled_from((1e-3, 1.0, 1e3)),
)
def test_the_multiple_is_the_best_that_there_is(seed, n, kind, size):
    """Newton's method on two numbers, begun far from the best, against a general minimiser begun at its answer."""
    rng = np.random.default_rng(seed)
    y = rng.permutation(np.where(np.arange(n) % 2, 1.0, -1.0))
    z, weights = size * (rng.normal(size=n) + y), rng.integers(1, 4, size=n) / 2.0
    problem = Problem("squared_hinge", 2.0, intercept=kind)
    b = 0.0 if kind == "none" else size * float(rng.normal())
    length = size * float(rng.random())

    def value(t, other):
        return 0.5 * (t * length) ** 2 + float(problem.losses(y * (t * z + other), weights).sum())

    t, other = multiple_and_intercept(problem, length, z, b, y, weights)
    assert value(t, other) <= value(1.0, b) * (1.0 + 1e-12)
    if kind == "free":
        least = minimize(lambda x: value(x[0] / size, x[1]), [t * size, other], method="Nelder-Mead").fun
    else:
        assert other == pytest.approx(t * b)
        least = minimize(lambda x: value(x[0] / size, x[0] / size * b), [t * size], method="Nelder-Mead").fun
    if value(t, other) != value(1.0, b):  # where no positive multiple is better, all stays as it was
        assert value(t, other) <= least + 1e-9 * max(least, 1.0)
