"""Normalised and smoothed Perceptrons and Von Neumann: steps as in the papers, and their theorems."""

from __future__ import annotations

from functools import cache
from itertools import count, islice
from math import ceil, fsum, log, sqrt

import array_api_compat
import array_api_strict
import clarabel
import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from oracle import optimum
from scipy.spatial import ConvexHull

from maxmargin import Problem
from maxmargin.separability.normalised_patterns import NormalisedGram, NormalisedRows, until_decided
from maxmargin.separability.normalised_perceptron import normalised_perceptron, von_neumann
from maxmargin.separability.smoothed import (
    Distance,
    Entropy,
    excessive_gap,
    iterated_perceptron_von_neumann,
    perceptron_von_neumann,
    project_on_simplex,
    smoothed_perceptron,
)

ALGORITHMS = {
    "NP": normalised_perceptron,
    "NVN": von_neumann,
    "SNKP": smoothed_perceptron,
    "SNKPVN": perceptron_von_neumann,
    "ISNKPVN": iterated_perceptron_von_neumann,
}
each_algorithm = pytest.mark.parametrize("name", ALGORITHMS)
SEEDS = range(6)
ROUNDING = 1e-13  # error of sums of a few dozen numbers of at most one
ORACLE = 1e-9  # accuracy of the solution of a quadratic program


# data and their properties


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
    return y[:, None] * phi / np.linalg.norm(phi, axis=1)[:, None] @ np.eye(phi.shape[1])


def radius(Y):
    """Radius of the largest ball around 0 in the hull of the rows (of full rank); negative if 0 is outside."""
    points = Y[:, np.any(Y != 0.0, axis=0)]
    return float((-ConvexHull(points).equations[:, -1]).min())


@cache
def margin(seed):
    """An interval around rho of the separable patterns of this seed, proved in rational arithmetic."""
    Y = reflected(*separable(seed))
    best = optimum(Problem("hinge", np.inf, intercept="none"), Y, np.ones(len(Y)), np.ones(len(Y)))
    return float(best.lower), float(best.upper)


def nearest_witness(Y, q):
    """The p of the simplex with Y' p = 0 that is nearest to q."""
    n, d = Y.shape
    options = clarabel.DefaultSettings()
    options.verbose = False
    options.tol_gap_abs = options.tol_gap_rel = options.tol_feas = 1e-11
    A = sp.csc_matrix(np.vstack([Y.T, np.ones((1, n)), -np.eye(n)]))
    b = np.concatenate([np.zeros(d), [1.0], np.zeros(n)])
    cones = [clarabel.ZeroConeT(d + 1), clarabel.NonnegativeConeT(n)]
    found = clarabel.DefaultSolver(sp.csc_matrix(np.eye(n)), -q, A, b, cones, options).solve()
    p = np.asarray(found.x)
    assert np.abs(Y.T @ p).max() <= ORACLE
    assert p.min() >= -ORACLE
    assert p.sum() == pytest.approx(1.0, abs=ORACLE)
    return p


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
    """Onto the simplex: tau by bisection."""
    v = q - margins / mu
    low, high = v.min() - 1, v.max()
    for _ in range(200):
        tau = 0.5 * (low + high)
        low, high = (tau, high) if np.maximum(v - tau, 0).sum() > 1 else (low, tau)
    return np.maximum(v - tau, 0)


def naive_smoothed(G, p_mu, mu, q):
    alpha, p = q, p_mu(G @ q, mu, q)
    for k in count():
        yield alpha, p
        theta = 2 / (k + 3)
        alpha = (1 - theta) * (alpha + theta * p) + theta**2 * p_mu(G @ alpha, mu, q)
        mu = (1 - theta) * mu
        p = (1 - theta) * p + theta * p_mu(G @ alpha, mu, q)


def naive_snkp(G):
    return naive_smoothed(G, softmax, 2, np.full(len(G), 1 / len(G)))


def naive_snkpvn(G):
    return naive_smoothed(G, projection, 2 * len(G), np.full(len(G), 1 / len(G)))


def naive_isnkpvn(G):
    q = np.full(len(G), 1 / len(G))
    while True:
        for alpha, p in naive_smoothed(G, projection, 2 * len(G), q):
            yield alpha, p
            if p @ G @ p < q @ G @ q / 4:
                q = p
                break


NAIVE = {
    "NP": naive_np,
    "NVN": naive_nvn,
    "SNKP": naive_snkp,
    "SNKPVN": naive_snkpvn,
    "ISNKPVN": naive_isnkpvn,
}
FORMS = {
    "dense": NormalisedRows,
    "sparse": lambda X, y, *extra: NormalisedRows(sp.csr_matrix(X), y, *extra),
    "sparse array": lambda X, y, *extra: NormalisedRows(sp.csc_array(X), y, *extra),
    "kernel": lambda X, y, *extra: NormalisedGram(X @ X.T, y, *extra),
}


@each_algorithm
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("extra", [(0.0, 0.0), (1.5, 0.0), (0.0, 0.4), (0.7, 0.4)])
def test_every_step_equals_that_of_the_paper(name, form, extra):
    for X, y in (separable(0), inseparable(1)):
        Y = reflected(X, y, *extra)
        G = Y @ Y.T
        patterns = FORMS[form](X, y, *extra)
        for step_state, (alpha, p) in islice(
            zip(ALGORITHMS[name](patterns), NAIVE[name](G), strict=False), 40
        ):
            size = (
                ROUNDING * (step_state.step + 1) ** 2
            )  # margins are divided by mu, which decreases as 1 / step^2
            np.testing.assert_allclose(step_state.alpha.weights, alpha, rtol=0, atol=size)
            np.testing.assert_allclose(step_state.p.weights, p, rtol=0, atol=size)
            np.testing.assert_allclose(step_state.alpha.margins, G @ alpha, rtol=0, atol=size)
            assert step_state.upper**2 == pytest.approx(p @ G @ p, abs=size)
            if step_state.primal:
                assert step_state.lower * sqrt(alpha @ G @ alpha) == pytest.approx(
                    (G @ alpha).min(), abs=size
                )
            else:  # reduced by the rounding error
                length = sqrt(alpha @ G @ alpha) - patterns.noise
                assert step_state.lower * length == pytest.approx(
                    (G @ alpha).min() - patterns.rounding, abs=size
                )


def test_final_weights_separate_the_rows():
    X, y = separable(2)
    X = X + 0.5
    patterns = NormalisedRows(X, y, 2.0)
    *_, last = until_decided(smoothed_perceptron(patterns), 0.0)
    scores = y * (X @ last.alpha.w + patterns.intercept(last.alpha))
    assert last.primal
    assert (scores > 0).all()
    np.testing.assert_allclose(
        scores / np.linalg.norm(np.c_[X, np.full(len(y), 2.0)], axis=1), last.alpha.margins
    )


# theorems


@each_algorithm
@pytest.mark.parametrize("form", ["dense", "kernel"])
def test_bounds_enclose_the_margin(name, form):
    for seed in SEEDS:
        low, high = margin(seed)
        for step_state in islice(ALGORITHMS[name](FORMS[form](*separable(seed))), 150):
            assert step_state.lower <= high + ROUNDING
            assert step_state.upper >= low - ROUNDING
        X, y = inseparable(seed)
        rho = -radius(reflected(X, y))
        for step_state in islice(ALGORITHMS[name](FORMS[form](X, y)), 150):
            assert step_state.lower <= rho + ROUNDING
            assert step_state.upper >= 0.0


@pytest.mark.parametrize("form", ["dense", "kernel"])
@pytest.mark.parametrize(
    ("name", "limit"),
    [
        ("NP", lambda n, rho: 1 / rho**2),
        ("NVN", lambda n, rho: 1 / rho**2),
        ("SNKP", lambda n, rho: 2 * sqrt(2 * log(n)) / rho),
        ("SNKPVN", lambda n, rho: 2 * sqrt(2 * n) / rho),
        ("ISNKPVN", lambda n, rho: (1 + log(1 / rho) / log(2)) * ceil(2 * sqrt(2 * n) / rho)),
    ],
)
def test_separators_are_found_within_the_bounds_of_the_theorems(name, form, limit):
    for seed in SEEDS:
        X, y = separable(seed)
        *_, last = until_decided(ALGORITHMS[name](FORMS[form](X, y)), 0.0)
        assert last.primal
        assert (reflected(X, y) @ (reflected(X, y).T @ last.alpha.weights) > 0).all()
        assert last.step <= limit(len(y), margin(seed)[0])


@pytest.mark.parametrize("form", ["dense", "kernel"])
def test_small_dual_points_are_found_within_the_bounds_of_the_theorems(form):
    for seed in SEEDS:
        X, y = inseparable(seed)
        n, rho = len(y), radius(reflected(X, y))
        patterns = FORMS[form](X, y)
        q = patterns.length(patterns.point(patterns.uniform()))
        for eps, name, limit in (
            (0.05, "NVN", 1 / 0.05**2),
            (1e-3, "SNKP", 2 * sqrt(2 * log(n)) / 1e-3),
            (1e-3, "SNKPVN", 2 * sqrt(2 * n) * min(1, q / rho) / 1e-3),
        ):
            *_, last = until_decided(ALGORITHMS[name](patterns), eps)
            assert last.dual(eps)
            assert not last.primal
            assert last.step <= limit
            assert np.linalg.norm(reflected(X, y).T @ last.p.weights) <= eps + ROUNDING


def test_von_neumann_meets_its_bound_at_every_step():
    for seed in SEEDS:
        for step_state in islice(von_neumann(NormalisedRows(*inseparable(seed))), 300):
            assert step_state.upper <= 1 / sqrt(step_state.step + 1) + ROUNDING


@pytest.mark.parametrize("gamma", [1.5, 2.0, 8.0])
@pytest.mark.parametrize(("form", "eps"), [("dense", 1e-8), ("dense", 1e-12), ("kernel", 1e-7)])
def test_iterated_algorithm_converges_linearly(gamma, form, eps):
    for seed in SEEDS:
        X, y = inseparable(seed)
        Y = reflected(X, y)
        patterns = FORMS[form](X, y)
        start = patterns.length(patterns.point(patterns.uniform()))
        *_, last = until_decided(iterated_perceptron_von_neumann(patterns, gamma), eps)
        rounds = ceil(log(start / eps) / log(gamma))
        assert last.step < rounds * ceil(2 * gamma * sqrt(2 * len(y)) / radius(Y))
        true = sqrt(
            fsum(fsum(c * p for c, p in zip(column, last.p.weights, strict=True)) ** 2 for column in Y.T)
        )
        assert true <= eps + 1e-15
        assert last.p.weights.min() >= 0.0
        assert last.p.weights.sum() == pytest.approx(1.0, abs=1e-14)


@pytest.mark.parametrize("prox", [Entropy, Distance])
def test_excessive_gap_condition_holds_at_every_step(prox):
    """L_mu(alpha) <= -|p|^2/2 and L_mu <= L <= L_mu + mu max d at every step, and the implied bounds."""
    p_mu = {Entropy: softmax, Distance: projection}[prox]
    for seed in SEEDS:
        for (X, y), rho in ((separable(seed), margin(seed)), (inseparable(seed), None)):
            Y, n, q = reflected(X, y), len(y), np.full(len(y), 1 / len(y))
            patterns = NormalisedRows(X, y)
            mu, limit = (2.0, log(n)) if prox is Entropy else (2.0 * n, 1.0)
            for step_state in islice(excessive_gap(patterns, prox(patterns.uniform())), 120):
                alpha = step_state.alpha.weights
                margins, square = Y @ (Y.T @ alpha), np.sum((Y.T @ alpha) ** 2)
                p = p_mu(margins, mu, q)
                d = (
                    0.5 * np.sum((p - q) ** 2)
                    if prox is Distance
                    else log(n) + np.sum(p[p > 0] * np.log(p[p > 0]))
                )
                L_mu = -p @ margins - mu * d + 0.5 * square
                L = -margins.min() + 0.5 * square
                assert L_mu <= -0.5 * np.sum((Y.T @ step_state.p.weights) ** 2) + ROUNDING
                assert L_mu - ROUNDING <= L <= L_mu + mu * limit + ROUNDING
                if rho:
                    low, high = rho
                    assert step_state.upper**2 <= high**2 + 2 * mu * limit + ROUNDING
                    assert (
                        step_state.lower >= sqrt(max(low**2 - 2 * mu * limit, 0.0)) - ROUNDING
                        or low**2 < 2 * mu * limit
                    )
                else:
                    assert step_state.upper**2 <= 2 * mu * limit + ROUNDING
                mu *= 1 - 2 / (step_state.step + 3)


@pytest.mark.parametrize("d", [2, 3])
def test_margin_of_inseparable_patterns_is_minus_the_radius(d):
    """max over |w| = 1 of min_i w.y_i, taken at the normal of the nearest facet, is minus the radius."""
    rng = np.random.default_rng(d)
    for seed in SEEDS:
        Y = reflected(*inseparable(seed, d=d))[:, :d]
        hull = ConvexHull(Y).equations
        r = radius(Y)
        nearest = hull[np.argmax(hull[:, -1]), :-1]
        directions = rng.normal(size=(20_000, d))
        directions /= np.linalg.norm(directions, axis=1)[:, None]
        assert (directions @ Y.T).min(axis=1).max() <= -r + ROUNDING
        assert (-Y @ nearest).min() == pytest.approx(-r, abs=ROUNDING)
        for direction in directions[:5]:  # its points are convex combinations
            nearest_witness(Y - r * direction, np.full(len(Y), 1 / len(Y)))
        # embedded in more dimensions: equal on rows and on their Gram matrix
        basis, _ = np.linalg.qr(rng.normal(size=(6, d)))
        for patterns in (
            NormalisedRows(Y @ basis.T, np.ones(len(Y))),
            NormalisedGram(Y @ Y.T, np.ones(len(Y))),
        ):
            alpha = np.linalg.lstsq(Y.T, -nearest, rcond=None)[0]
            image = patterns.point(alpha)
            assert image.margins.min() / patterns.length(image) == pytest.approx(-r, abs=ROUNDING)
            *_, last = until_decided(iterated_perceptron_von_neumann(patterns), 1e-6)
            rounds = ceil(log(1e6) / log(2))
            assert last.dual(1e-6)
            assert last.step < rounds * ceil(4 * sqrt(2 * len(Y)) / r)


def test_distance_to_the_witnesses_meets_lemma_7():
    for seed in SEEDS:
        X, y = inseparable(seed)
        Y, n = reflected(X, y), len(y)
        r = radius(Y)
        rng = np.random.default_rng(seed)
        patterns = NormalisedRows(X, y)
        for q in [np.full(n, 1 / n), np.eye(n)[seed], *rng.dirichlet(np.full(n, 0.3), size=3)]:
            q = q / q.sum()
            far = np.linalg.norm(nearest_witness(Y, q) - q)
            length = np.linalg.norm(Y.T @ q)
            assert far <= min(sqrt(2), sqrt(2) * length / r) + ORACLE
            mu = 2.0 * n
            for step_state in islice(perceptron_von_neumann(patterns, q), 80):
                assert step_state.upper <= sqrt(mu) * (far + ORACLE)
                mu *= 1 - 2 / (step_state.step + 3)


def test_gaussian_kernel_separates_random_labels():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(20, 2)), np.where(rng.random(20) < 0.5, 1.0, -1.0)
    K = np.exp(-4.0 * np.sum((X[:, None] - X) ** 2, axis=2))
    values, vectors = np.linalg.eigh(K)
    features = vectors * np.sqrt(np.maximum(values, 0.0))
    best = optimum(Problem("hinge", np.inf, intercept="none"), features, y, np.ones(20))
    for name, limit in (
        ("NP", 1 / best.lower**2),
        ("SNKP", 2 * sqrt(2 * log(20)) / best.lower),
        ("SNKPVN", 2 * sqrt(40) / best.lower),
    ):
        *_, last = until_decided(ALGORITHMS[name](NormalisedGram(K, y)), 0.0)
        assert last.primal
        assert last.step <= limit
        assert last.lower <= best.upper + ROUNDING
        assert last.upper >= best.lower - ROUNDING


def test_soft_margin_always_has_a_separator():
    """With own features Delta, equal weights are a separator of margin at least Delta / (|z| sqrt n)."""
    X, y = inseparable(3)
    longest = np.sqrt(np.sum(X * X, axis=1).max() + 0.5**2)
    for name, algorithm in ALGORITHMS.items():
        states = list(until_decided(algorithm(NormalisedRows(X, y, Delta=0.5)), 0.0))
        assert states[-1].primal, name
        assert all(step_state.upper >= 0.5 / longest / sqrt(len(y)) for step_state in states)


@given(arrays(float, st.integers(1, 30), elements=st.floats(-1e3, 1e3)), st.floats(1e-3, 1e3), st.booleans())
@settings(max_examples=200, deadline=None)
def test_projection_is_the_nearest_point_of_the_simplex(v, scale, ties):
    v = np.round(v) if ties else v * scale
    p = project_on_simplex(v)
    size = 1e-15 * len(v) * (1.0 + np.abs(v).max())
    assert p.min() >= 0.0
    assert p.sum() == pytest.approx(1.0, abs=1e-15 * len(v))
    assert ((v - p) - (v - p) @ p).max() <= 4 * size  # optimality condition of the projection


# arrays of any library


def strict_arrays(device):
    return array_api_strict, array_api_strict.Device(device), array_api_strict.Device("CPU_DEVICE")


def torch_arrays(device):
    torch = pytest.importorskip("torch")
    if device == "cuda" and not torch.cuda.is_available():
        pytest.skip("no CUDA device")
    return torch, device, "cpu"


LIBRARIES = {  # with the device, and the device that NumPy can read
    "array-api-strict": lambda: strict_arrays("CPU_DEVICE"),
    "array-api-strict on another device": lambda: strict_arrays("device1"),
    "torch": lambda: torch_arrays("cpu"),
    "torch on a GPU": lambda: torch_arrays("cuda"),
}


@each_algorithm
@pytest.mark.parametrize("library", LIBRARIES)
@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("kernel", [False, True])
def test_array_libraries_take_equal_steps(name, library, dtype, kernel):
    xp, device, cpu = LIBRARIES[library]()
    for X, y in (separable(0), inseparable(1)):
        form, data = (NormalisedGram, X @ X.T) if kernel else (NormalisedRows, X)
        data = np.asarray(data, dtype=dtype)
        other_form = form(xp.asarray(data, device=device), xp.asarray(y, device=device), 0.5, 0.3)
        numpy_form = form(data, y, 0.5, 0.3)
        steps = islice(zip(ALGORITHMS[name](other_form), ALGORITHMS[name](numpy_form), strict=True), 30)
        for a, b in steps:
            assert type(a.lower) is type(a.upper) is float
            size = 10 * np.finfo(dtype).eps * (a.step + 1) ** 2
            for state, other in ((a.alpha, b.alpha), (a.p, b.p)):
                assert state.weights.dtype == state.margins.dtype == getattr(xp, dtype)
                assert other.weights.dtype == other.margins.dtype == np.dtype(dtype)
                for x, z in ((state.weights, other.weights), (state.margins, other.margins)):
                    x = np.asarray(array_api_compat.to_device(x, cpu))
                    np.testing.assert_allclose(x, z, rtol=0, atol=size)


@each_algorithm
@pytest.mark.parametrize("form", FORMS)
def test_single_precision_bounds_hold_for_the_weights(name, form):
    for X, y in (separable(1), inseparable(2)):
        X = X.astype(np.float32)
        Y = reflected(X.astype(float), y)
        patterns = FORMS[form](X, y)
        for step_state in islice(ALGORITHMS[name](patterns), 60):
            assert step_state.p.weights.dtype == np.float32
            alpha, p = step_state.alpha.weights.astype(float), step_state.p.weights.astype(float)
            eps = 20 * float(np.finfo(np.float32).eps)
            np.testing.assert_allclose(step_state.alpha.margins, Y @ (Y.T @ alpha), rtol=0, atol=eps)
            assert step_state.upper**2 == pytest.approx(np.sum((Y.T @ p) ** 2), abs=eps)
            assert p.sum() == pytest.approx(1.0, abs=eps)


def test_integers_and_lists_become_float64_arrays():
    X, y = [[1, 2], [3, -1], [-2, 1]], [1, 1, -1]
    for patterns in (
        NormalisedRows(X, y),
        NormalisedRows(sp.csr_matrix(X), y),
        NormalisedRows(np.array(X) > 0, y),
    ):
        assert patterns.uniform().dtype == np.float64
        assert next(iter(smoothed_perceptron(patterns))).p.weights.dtype == np.float64


# stopping, cost, refusals


@each_algorithm
def test_interrupt_stops_the_iteration(name):
    calls = []
    patterns = NormalisedRows(*inseparable(0))
    states = list(
        until_decided(ALGORITHMS[name](patterns), 0.0, interrupted=lambda: len(calls) == 6 or calls.append(0))
    )
    assert len(states) == 7
    assert [step_state.step for step_state in states] == list(range(states[0].step, states[0].step + 7))
    assert not states[-1].primal
    assert not states[-1].dual(0.0)


@each_algorithm
def test_continued_iteration_converges_to_the_largest_margin(name):
    """The best bounds meet after a separator is found (Frank-Wolfe, subgradient, excessive gap)."""
    low, high = margin(0)
    states = list(islice(ALGORITHMS[name](NormalisedRows(*separable(0))), 3000))
    assert max(step_state.lower for step_state in states) >= 0.99 * low
    assert min(step_state.upper for step_state in states) <= 1.01 * high


def test_von_neumann_ends_at_an_optimum():
    states = list(von_neumann(NormalisedRows(np.array([[1.0, 0.0], [2.0, 0.0]]), [1, 1])))
    assert len(states) == 1
    assert states[0].primal
    assert states[0].lower == states[0].upper == 1.0


@pytest.mark.parametrize("X", [[[1.0], [1.0]], [[1.0], [2.0]], [[0.0, 3.0], [0.0, 3.0]]])
def test_contradictory_rows_are_detected_within_two_steps(X):
    for name, algorithm in ALGORITHMS.items():
        *_, last = until_decided(algorithm(NormalisedRows(X, [1, -1])), 1e-15)
        assert last.dual(1e-15), name
        assert last.lower == -1.0
        assert last.step <= 2
        np.testing.assert_array_equal(last.p.weights, [0.5, 0.5])


def test_kernel_bounds_are_at_least_the_rounding_error():
    """For a kernel |p|_G^2 is a difference of numbers of magnitude one."""
    *_, last = until_decided(smoothed_perceptron(NormalisedGram([[1.0, 1.0], [1.0, 1.0]], [1, -1])), 1e-7)
    assert last.upper == 2.0 * sqrt(np.finfo(float).eps)
    assert last.lower == -1.0


class CountingRows(NormalisedRows):
    """Count products with G, and columns of G."""

    products = columns = 0

    def point(self, weights):
        self.products += 1
        return super().point(weights)

    def vertex(self, j):
        self.columns += 1
        return super().vertex(j)


def test_each_step_takes_one_product_or_one_column():
    for name, products, columns in (("NP", 0, 21), ("NVN", 1, 20), ("SNKP", 22, 0), ("SNKPVN", 22, 0)):
        patterns = CountingRows(*inseparable(0))
        list(islice(ALGORITHMS[name](patterns), 21))
        assert (patterns.products, patterns.columns) == (products, columns), name


def test_invalid_patterns_and_parameters_are_refused():
    X, y = separable(0)
    K = X @ X.T
    zero = np.vstack([X, np.zeros(3)])
    with pytest.raises(ValueError, match="pattern 24 cannot be normalised"):
        NormalisedRows(zero, np.append(y, 1.0))
    with pytest.raises(ValueError, match="pattern 24 cannot be normalised"):
        NormalisedRows(sp.csr_matrix(zero), np.append(y, 1.0))
    with pytest.raises(ValueError, match="pattern 24 cannot be normalised"):
        NormalisedGram(zero @ zero.T, np.append(y, 1.0))
    for extra in ({"constant": 1.0}, {"Delta": 0.1}):
        assert NormalisedRows(zero, np.append(y, 1.0), **extra).n == 25
    with pytest.raises(ValueError, match="cannot be normalised, its squared length is -"):
        NormalisedGram(-K, y)
    with pytest.raises(ValueError, match="pattern 0 cannot be normalised"):
        NormalisedRows(np.full((1, 2), 1e-160), [1])
    for bad in (np.nan, np.inf, 1e200):
        with pytest.raises(ValueError, match="must be finite"), np.errstate(over="ignore"):
            NormalisedRows(np.where(X[0, 0] == X, bad, X), y)
    with pytest.raises(ValueError, match="kernel values must be finite"):
        NormalisedGram(np.where(np.isclose(K, K[0, 1]), np.nan, K), y)
    with pytest.raises(ValueError, match="square"):
        NormalisedGram(X, y)
    with pytest.raises(ValueError, match="-1 and 1"):
        NormalisedRows(X, (y + 1) / 2)
    with pytest.raises(ValueError, match="labels of shape"):
        NormalisedRows(X, y[:-1])
    with pytest.raises(ValueError, match="a matrix of at least one row"):
        NormalisedRows(X[:0], y[:0])
    with pytest.raises(ValueError, match="real numbers"):
        NormalisedRows(X * 1j, y)
    for extra in ({"constant": -1.0}, {"Delta": np.nan}):
        with pytest.raises(ValueError, match="finite number"):
            NormalisedRows(X, y, **extra)
    patterns = NormalisedRows(X, y)
    with pytest.raises(ValueError, match="gamma must be larger than 1"):
        iterated_perceptron_von_neumann(patterns, 1.0)
    for q, message in ((np.ones(3) / 3, "24 numbers"), (np.eye(24)[0] * 2 - np.eye(24)[1], "none negative")):
        with pytest.raises(ValueError, match=message):
            perceptron_von_neumann(patterns, q)
    with pytest.raises(ValueError, match="add up to one"):
        perceptron_von_neumann(patterns, np.full(24, 0.05))
