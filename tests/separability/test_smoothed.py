"""Normalised and smoothed Perceptrons and Von Neumann: steps as in the papers, and their theorems."""

from __future__ import annotations

from functools import cache
from itertools import count, islice
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
from naive_normalised import MAX_STEPS, NAIVE
from oracle import optimum
from scipy.spatial import ConvexHull

from maxmargin import Problem
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


def separable(seed, n=24, d=3):
    """Patterns with a separator, of lengths from 0.1 to 10."""
    rng = np.random.default_rng(seed)
    w = rng.normal(size=d)
    X = rng.normal(size=(20 * n, d))
    X = X[np.abs(X @ w) > 0.15 * np.linalg.norm(X, axis=1) * np.linalg.norm(w)][:n]
    return X * 10.0 ** rng.uniform(-1, 1, size=(n, 1)), np.where(X @ w > 0, 1.0, -1.0)


def inseparable(seed, n=12, d=3):
    """Patterns whose hull has 0 inside."""
    rng = np.random.default_rng(seed)
    while True:
        X, y = rng.normal(size=(n, d)), np.where(rng.random(n) < 0.5, 1.0, -1.0)
        if radius(reflected(X, y)) > 0.02:
            return X * 10.0 ** rng.uniform(-1, 1, size=(n, 1)), y


def reflected(X, y, constant=0.0, Delta=0.0):
    """Return Y: rows with all explicit features, reflected and normalised."""
    phi = np.hstack([X, np.full((len(y), 1), constant), Delta * np.eye(len(y))])
    return y[:, None] * phi / np.linalg.norm(phi, axis=1)[:, None]


def radius(Y):
    """Radius of the largest ball around 0 in the hull of the rows (of full rank); negative if 0 is outside."""
    return float((-ConvexHull(Y[:, np.any(Y != 0.0, axis=0)]).equations[:, -1]).min())


@cache
def margin(seed):
    """An interval around rho of the separable patterns of this seed, proved in rational arithmetic."""
    Y = reflected(*separable(seed))
    best = optimum(Problem("hinge", np.inf, intercept="none"), Y, np.ones(len(Y)), np.ones(len(Y)))
    return float(best.lower), float(best.upper)


# the algorithms as in the papers, with the full matrix G


def naive_np(G):
    alpha = np.zeros(len(G))
    for k in count():
        alpha = (1 - 1 / (k + 1)) * alpha + 1 / (k + 1) * np.eye(len(G))[np.argmin(G @ alpha)]
        yield alpha, alpha


def naive_nvn(G):
    p = np.full(len(G), 1 / len(G))
    while True:
        yield p, p
        step = np.eye(len(G))[np.argmin(G @ p)] - p
        p = p + np.clip(-(step @ G @ p) / (step @ G @ step), 0, 1) * step


def softmax(margins, mu, q):
    e = np.exp(-margins / mu)
    return e / e.sum()


def projection(margins, mu, q):
    return project_on_simplex(q - margins / mu)


def naive_smoothed(G, p_mu, mu, q=None):
    q = np.full(len(G), 1 / len(G)) if q is None else q
    alpha, p = q, p_mu(G @ q, mu, q)
    for k in count():
        yield alpha, p
        theta = 2 / (k + 3)
        alpha = (1 - theta) * (alpha + theta * p) + theta**2 * p_mu(G @ alpha, mu, q)
        mu = (1 - theta) * mu
        p = (1 - theta) * p + theta * p_mu(G @ alpha, mu, q)


def naive_iterated(G):
    q = np.full(len(G), 1 / len(G))
    while True:
        for alpha, p in naive_smoothed(G, projection, 2 * len(G), q):
            yield alpha, p
            if p @ G @ p < q @ G @ q / 4:
                q = p
                break


ALGORITHMS = {  # the algorithm, as in the paper, and a bound of its steps to a separator of margin rho
    "NP": (normalised_perceptron, naive_np, lambda n, rho: 1 / rho**2),
    "NVN": (von_neumann, naive_nvn, lambda n, rho: 1 / rho**2),
    "SNKP": (
        smoothed_perceptron,
        lambda G: naive_smoothed(G, softmax, 2),
        lambda n, rho: 2 * sqrt(2 * log(n)) / rho,
    ),
    "SNKPVN": (
        perceptron_von_neumann,
        lambda G: naive_smoothed(G, projection, 2 * len(G)),
        lambda n, rho: 2 * sqrt(2 * n) / rho,
    ),
    "ISNKPVN": (
        iterated_perceptron_von_neumann,
        naive_iterated,
        lambda n, rho: (1 + log(1 / rho) / log(2)) * ceil(2 * sqrt(2 * n) / rho),
    ),
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


def test_final_weights_separate_the_rows():
    X, y = separable(2)
    patterns = NormalisedRows(X + 0.5, y, 2.0)
    *_, last = until_decided(smoothed_perceptron(patterns), 0.0)
    scores = y * ((X + 0.5) @ last.alpha.w + patterns.intercept(last.alpha))
    assert (scores > 0).all()
    lengths = np.linalg.norm(np.c_[X + 0.5, np.full(len(y), 2.0)], axis=1)
    np.testing.assert_allclose(scores / lengths, last.alpha.margins)


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


def test_von_neumann_ends_at_an_optimum():
    steps = list(von_neumann(NormalisedRows([[1, 0], [2, 0]], [1, 1])))
    assert len(steps) == 1
    assert steps[0].lower == steps[0].upper == 1.0


def test_kernel_bounds_are_at_least_the_rounding_error():
    """For a kernel |p|_G^2 is a difference of numbers of magnitude one."""
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
        (lambda: NormalisedGram(X, Y), "square"),
        (lambda: NormalisedRows(X, (Y + 1) / 2), "-1 and 1"),
        (lambda: NormalisedRows(X * 1j, Y), "real numbers"),
        (lambda: NormalisedRows(X, Y, constant=-1.0), "finite number"),
        (lambda: iterated_perceptron_von_neumann(NormalisedRows(X, Y), 1.0), "gamma must be"),
        (lambda: perceptron_von_neumann(NormalisedRows(X, Y), np.full(24, 0.05)), "add up to one"),
    ],
)  # fmt: skip
def test_invalid_patterns_and_parameters_are_refused(call, words):
    with pytest.raises(ValueError, match=words):
        call()
    assert NormalisedRows(ZERO, Y, Delta=0.1).n == 24
