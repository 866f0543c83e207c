"""Normalised and smoothed Perceptrons and Von Neumann: steps as in the papers, and their theorems."""

from __future__ import annotations

from itertools import islice
from math import ceil, log, sqrt
from unittest.mock import patch

import array_api_strict
import numpy as np
import pytest
import scipy.sparse as sp
from effort import examples, thorough
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from naive_normalised import MAX_STEPS, NAIVE, inseparable, margin, radius, reflected, separable

from maxmargin.separability.normalised_patterns import NormalisedGram, NormalisedRows, until_decided
from maxmargin.separability.normalised_perceptron import normalised_perceptron, von_neumann
from maxmargin.separability.smoothed import (
    iterated_perceptron_von_neumann,
    perceptron_von_neumann,
    project_on_simplex,
    smoothed_perceptron,
)

SEEDS = range(3)
ROUNDING = 1e-13  # error of sums of a few dozen numbers of at most one


ALGORITHMS = {
    "NP": normalised_perceptron,
    "NVN": von_neumann,
    "SNKP": smoothed_perceptron,
    "SNKPVN": perceptron_von_neumann,
    "ISNKPVN": iterated_perceptron_von_neumann,
}
each_algorithm = pytest.mark.parametrize("name", ALGORITHMS)
FORMS = {
    "dense": NormalisedRows,
    "sparse": lambda X, y, *extra: NormalisedRows(sp.csc_array(X), y, *extra),
    "kernel": lambda X, y, *extra: NormalisedGram(X @ X.T, y, *extra),
    "strict": lambda X, y, *extra: NormalisedRows(strict(X), strict(y), *extra),
    "strict kernel": lambda X, y, *extra: NormalisedGram(strict(X @ X.T), strict(y), *extra),
}


@each_algorithm
@pytest.mark.parametrize(
    ("form", "extra", "dtype"),
    [
        ("dense", (0.0, 0.0), np.float64),
        ("sparse", (0.7, 0.4), np.float64),
        ("kernel", (1.5, 0.0), np.float64),
        ("kernel", (0.0, 0.4), np.float32),
        ("sparse", (0.0, 0.0), np.float32),
    ],
)
def test_every_step_equals_that_of_the_paper(name, form, extra, dtype):
    run, naive, _ = ALGORITHMS[name]
    # margins are divided by mu, which decreases as 1 / step^2
    unit = ROUNDING if dtype == np.float64 else 40 * float(np.finfo(dtype).eps)
    for X, y in (separable(0), inseparable(1)):
        X = X.astype(dtype)
        Y = reflected(X.astype(float), y, *extra)
        G = Y @ Y.T
        patterns = FORMS[form](X, y, *extra)
        for found, (alpha, p) in islice(
            zip(run(patterns), naive(G), strict=False), 12 if dtype == np.float32 else 40
        ):
            size = unit * (found.step + 1) ** 2
            assert found.p.weights.dtype == dtype
            np.testing.assert_allclose(found.alpha.weights, alpha, rtol=0, atol=size)
            np.testing.assert_allclose(found.p.weights, p, rtol=0, atol=size)
            np.testing.assert_allclose(found.alpha.margins, G @ alpha, rtol=0, atol=size)
            assert found.upper**2 == pytest.approx(p @ G @ p, abs=size)
            # an alpha that does not separate gives a bound that is reduced by the rounding error
            less, length = (0.0, 0.0) if found.primal else (patterns.rounding, patterns.noise)
            least = (G @ alpha).min() - less
            assert found.lower * (sqrt(alpha @ G @ alpha) - length) == pytest.approx(least, abs=size)


# theorems


@each_algorithm
@pytest.mark.parametrize("form", ["dense", "kernel"])
def test_separators_are_found_within_the_bounds_of_the_theorems(name, form):
    run, _, limit = ALGORITHMS[name]
    for seed in SEEDS:
        X, y = separable(seed)
        low, high = margin(seed)
        steps = list(until_decided(run(FORMS[form](X, y)), 0.0))
        assert steps[-1].primal
        assert (reflected(X, y) @ (reflected(X, y).T @ steps[-1].alpha.weights) > 0).all()
        assert steps[-1].step <= limit(len(y), low)
        assert all(one.lower <= high + ROUNDING and one.upper >= low - ROUNDING for one in steps)


@pytest.mark.parametrize(
    ("form", "eps", "gamma"), [("dense", 1e-12, 2.0), ("dense", 1e-8, 8.0), ("kernel", 1e-7, 1.5)]
)
def test_iterated_algorithm_converges_linearly(form, eps, gamma):
    """Also for patterns in a subspace."""
    basis, _ = np.linalg.qr(np.random.default_rng(0).normal(size=(6, 3)))
    for seed in SEEDS:
        X, y = inseparable(seed)
        patterns = FORMS[form](X @ basis.T, y)
        start = patterns.length(patterns.point(patterns.uniform()))
        *_, last = until_decided(iterated_perceptron_von_neumann(patterns, gamma), eps)
        Y = reflected(X, y)
        rounds = ceil(log(start / eps) / log(gamma))
        assert last.step < rounds * ceil(2 * gamma * sqrt(2 * len(y)) / radius(Y))
        assert np.linalg.norm(Y.T @ last.p.weights) <= eps + 1e-15
        assert last.p.weights.min() >= 0.0
        assert last.p.weights.sum() == pytest.approx(1.0, abs=1e-14)


@thorough
@given(arrays(float, st.integers(1, 30), elements=st.floats(-1e3, 1e3)), st.floats(1e-3, 1e3), st.booleans())
@settings(max_examples=examples(30, 300), deadline=None)
def test_projection_is_the_nearest_point_of_the_simplex(v, scale, ties):
    v = np.round(v) if ties else v * scale
    p = project_on_simplex(v)
    assert p.min() >= 0.0
    assert p.sum() == pytest.approx(1.0, abs=1e-15 * len(v))
    # optimality condition of the projection, to 18 n eps max(1, |v|)
    assert ((v - p) - (v - p) @ p).max() <= 4e-15 * len(v) * (1.0 + np.abs(v).max())


@pytest.mark.parametrize(
    ("library", "kernel", "dtype"),
    [
        ("strict", False, "float32"),
        ("strict", True, "float64"),
        pytest.param("torch", False, "float64", marks=pytest.mark.slow),
    ],
)
@each_algorithm
def test_array_libraries_take_equal_steps(name, library, kernel, dtype):
    xp, device, cpu = (
        array_api_strict,
        array_api_strict.Device("device1"),
        array_api_strict.Device("CPU_DEVICE"),
    )
    if library == "torch":
        xp, cpu = pytest.importorskip("torch"), "cpu"
        device = "cuda" if xp.cuda.is_available() else "cpu"
    for X, y in (separable(0), inseparable(1)):
        form, data = (NormalisedGram, X @ X.T) if kernel else (NormalisedRows, X)
        data = np.asarray(data, dtype=dtype)
        other = form(xp.asarray(data, device=device), xp.asarray(y, device=device), 0.5, 0.3)
        steps = zip(
            *(ALGORITHMS[name][0](patterns) for patterns in (other, form(data, y, 0.5, 0.3))), strict=True
        )
        for a, b in islice(steps, 30):
            assert type(a.lower) is type(a.upper) is float
            size = 10 * np.finfo(dtype).eps * (a.step + 1) ** 2
            for x, z in ((a.alpha.weights, b.alpha.weights), (a.p.margins, b.p.margins)):
                assert x.dtype == getattr(xp, dtype)
                x = np.asarray(array_api_compat.to_device(x, cpu))
                np.testing.assert_allclose(x, z, rtol=0, atol=size)


# stopping, cost, refusals


@each_algorithm
def test_interrupts_and_contradictory_rows_end_the_iteration(name):
    run, calls = ALGORITHMS[name][0], []
    iterates = run(NormalisedRows(*inseparable(0)))
    steps = list(until_decided(iterates, 0.0, interrupted=lambda: len(calls) == 6 or calls.append(0)))
    assert [one.step - steps[0].step for one in steps] == list(range(7))
    for X in ([[1.0], [1.0]], [[1.0], [2.0]], [[0.0, 3.0], [0.0, 3.0]]):
        *_, last = until_decided(run(NormalisedRows(X, [1, -1])), 1e-3)
        assert last.dual(1e-3)
        assert last.lower == -1.0
        np.testing.assert_allclose(last.p.weights, 0.5)


def test_von_neumann_ends_at_an_optimum_and_kernel_bounds_are_at_least_the_rounding_error():
    """For a kernel |p|_G^2 is a difference of numbers of magnitude one."""
    (only,) = von_neumann(NormalisedRows([[1, 0], [2, 0]], [1, 1]))
    assert only.lower == only.upper == 1.0
    *_, last = until_decided(smoothed_perceptron(NormalisedGram([[1.0, 1.0], [1.0, 1.0]], [1, -1])), 1e-7)
    assert last.upper == 2.0 * sqrt(np.finfo(float).eps)
    assert last.lower == -1.0


@pytest.mark.parametrize(
    ("name", "products", "columns"), [("NP", 0, 21), ("NVN", 1, 20), ("SNKP", 22, 0), ("SNKPVN", 22, 0)]
)
def test_each_step_takes_one_product_or_one_column(name, products, columns):
    patterns = NormalisedRows(*inseparable(0))
    with (
        patch.object(patterns, "point", wraps=patterns.point) as point,
        patch.object(patterns, "vertex", wraps=patterns.vertex) as vertex,
    ):
        list(islice(ALGORITHMS[name][0](patterns), 21))
    assert (point.call_count, vertex.call_count) == (products, columns)


X, Y = separable(0)
ZERO = np.vstack([X[:23], np.zeros(3)])


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: NormalisedRows(sp.csr_matrix(ZERO), Y), "pattern 23 cannot be normalised"),
        (lambda: NormalisedGram(ZERO @ ZERO.T, Y), "pattern 23 cannot be normalised"),
        (lambda: NormalisedRows(np.where(X[0, 0] == X, np.inf, X), Y), "must be finite"),
        (lambda: iterated_perceptron_von_neumann(NormalisedRows(X, Y), 1.0), "gamma must be"),
    ],
)  # fmt: skip
def test_invalid_patterns_and_parameters_are_refused(call, words):
    with pytest.raises(ValueError, match=words):
        call()
    assert NormalisedRows(ZERO, Y, Delta=0.1).n == 24
