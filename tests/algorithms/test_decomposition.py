"""The decomposition solver: its points bracket the exact optimum; kernel rows are computed once within the budget."""

from __future__ import annotations

from itertools import islice, product

import numpy as np
import pytest
import scipy.sparse as sp
from effort import examples, thorough
from oracle import optimum
from problems import rings
from sklearn.metrics.pairwise import pairwise_kernels, rbf_kernel

from maxmargin import Problem
from maxmargin.algorithms.batch import kernel_rows
from maxmargin.algorithms.batch.decomposition import (
    SETTINGS,
    Settings,
    argmax,
    decomposed_points,
    largest,
    solve_by_pairs,
    working_set,
)
from maxmargin.algorithms.batch.kernel_rows import BLOCK, KernelRows
from maxmargin.fit.tracker import GramTracker
from maxmargin.kernels.functions import (
    Gaussian,
    Linear,
    Pairwise,
    Polynomial,
    Precomputed,
    Sigmoid,
)
from maxmargin.kernels.gram import gram_product
from maxmargin.problem.intercept import best_intercept

KERNELS = {
    Linear(): ("linear", {}),
    Polynomial(0.5, 3, 1.0): ("poly", {"gamma": 0.5, "degree": 3, "coef0": 1.0}),
    Polynomial(0.5, 0): ("poly", {"gamma": 0.5, "degree": 0}),
    Gaussian(0.3): ("rbf", {"gamma": 0.3}),
    Sigmoid(0.1, -0.5): ("sigmoid", {"gamma": 0.1, "coef0": -0.5}),
    Pairwise("laplacian", (("gamma", 0.2),)): ("laplacian", {"gamma": 0.2}),
    Pairwise(lambda Z, X: Z @ X.T): ("linear", {}),
}


def point_bounds(problem, rows, y, weights, point):
    """(lower, upper) by the point's dual weights and scores, for the Gram matrix of `rows`."""
    alpha, scores = point
    K = rows.kernel.block(rows.X, rows.X).astype(float)
    np.testing.assert_allclose(scores, K @ (alpha * y), rtol=1e-6, atol=1e-6 * np.abs(K).max() * alpha.sum())
    assert (alpha >= 0.0).all()
    assert (alpha <= problem.caps(weights)).all()
    balance = float(alpha @ y)
    if problem.free:
        assert abs(balance) <= 1e-10 * alpha.sum()
    square = float((alpha * y) @ K @ (alpha * y)) + (problem.rho * balance) ** 2
    z, b = K @ (alpha * y), problem.rho**2 * balance
    if problem.free:
        b = best_intercept(problem, z, y, weights)
    margins = y * (z + b)
    if problem.hard:
        return margins.min() / square**0.5, square**0.5 / alpha.sum()
    return problem.dual(square, alpha, weights), problem.primal(0.5 * square, margins, weights)


def best_bounds(problem, rows, y, weights, tol=1e-7, size=SETTINGS.set_size):
    """The best bounds once they are within tol, by working sets of this size."""
    lower, upper = -np.inf, np.inf
    points = decomposed_points(problem, rows, y, weights, settings=Settings(set_size=size))
    for k, point in enumerate(points):
        low, high = point_bounds(problem, rows, y, weights, point)
        lower, upper = max(lower, low), min(upper, high)
        if problem.gap(lower, upper) <= tol:
            return lower, upper
        assert k < 3000
    return lower, upper


@pytest.mark.parametrize("kernel", KERNELS, ids=lambda k: k.name)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("store", [np.asarray, sp.csr_matrix], ids=["dense", "sparse"])
def test_kernels_equal_those_of_scikit_learn(kernel, dtype, store):
    X = np.random.default_rng(0).random((30, 4)).astype(dtype)
    name, parameters = KERNELS[kernel]
    K = pairwise_kernels(X.astype(float), metric=name, **parameters)
    if isinstance(kernel, Pairwise) and store is sp.csr_matrix:
        if callable(kernel.function):
            pytest.skip("kernel functions receive the rows as they are stored")
        X = store(X)
    rows = kernel.prepared(store(X))
    block = kernel.block(rows[3:10], rows)
    assert block.dtype == dtype
    assert block.flags.c_contiguous
    np.testing.assert_allclose(block, K[3:10], rtol=2e-6 if dtype is np.float32 else 1e-13)
    for columns, tile in kernel.tiles(rows[3:10], rows):
        assert np.array_equal(tile, block[:, columns])
    np.testing.assert_allclose(
        kernel.diagonal(rows), np.diagonal(K), rtol=2e-6 if dtype is np.float32 else 1e-13
    )


@thorough
@pytest.mark.parametrize(("size", "tol"), [(16, 1e-3), (2048, 1e-7)])
@pytest.mark.parametrize("intercept", ["free", "none", "augmented"])
@pytest.mark.parametrize(
    ("loss", "C"), [*product(("hinge", "squared_hinge"), (0.1, 1.0, 100.0)), ("hinge", np.inf)]
)
def test_bounds_contain_the_optimum(loss, C, intercept, size, tol):
    problem = Problem(loss, C, intercept=intercept, intercept_scaling=0.7)
    for seed in range(examples(1, 2)):
        X, y, weights = rings(60, seed, noise=0.0 if problem.hard else 0.3)
        for kernel in (Gaussian(0.4), Polynomial(0.5, 2, 1.0)):
            K = kernel.block(X, X)
            values_, vectors = np.linalg.eigh(K)
            factor = vectors * np.sqrt(np.maximum(values_, 0.0))  # rows with these inner products
            exact = optimum(problem, factor, y, weights)
            lower, upper = best_bounds(problem, KernelRows(kernel, X, 100.0), y, weights, tol, size)
            assert problem.gap(lower, upper) <= tol
            e = exact.upper - exact.lower + 1e-9 * exact.upper
            assert lower - e <= exact.upper
            assert exact.lower <= upper + e


def test_rows_of_weight_zero_are_not_computed():
    X, y, weights = rings(300, 9)
    problem, kernel = Problem("hinge", 1.0), Gaussian(0.4)
    weights[::3] = 0.0
    used = weights > 0.0
    rows = KernelRows(kernel, X, 10.0)
    *_, (alpha, scores) = decomposed_points(problem, rows, y, weights)
    *_, alone = decomposed_points(problem, KernelRows(kernel, X[used], 10.0), y[used], weights[used])
    assert np.array_equal(alpha[used], alone.alpha)
    assert np.array_equal(scores[used], alone.scores)
    assert not alpha[~used].any()
    assert rows.computed == 0


@pytest.mark.parametrize("megabytes", [0.0, 100.0])
def test_a_small_cache_gives_the_same_optimum(megabytes):
    X, y, weights = rings(1500, 10)
    problem, rows = Problem("hinge", 10.0), KernelRows(Gaussian(2.0), X, megabytes)
    assert rows.capacity == (1500 if megabytes else 2 * BLOCK)
    lower, upper = best_bounds(problem, rows, y, weights, 1e-6)
    exact = best_bounds(problem, KernelRows(Gaussian(2.0), X, 100.0), y, weights, 1e-9)
    assert lower <= exact[1]
    assert exact[0] <= upper


@pytest.mark.parametrize("intercept", ["free", "none"])
def test_steps_without_curvature_and_caps_are_finite(intercept):
    """Zero rows of both classes have no margin: their dual weights grow but stay finite."""
    y, alpha, gradient = np.array([1.0, -1.0]), np.zeros(2), -np.ones(2)
    solve_by_pairs(np.zeros((2, 2)), y, np.full(2, np.inf), alpha, gradient, 1e-3, 100, np.empty((6, 2)))
    assert np.isfinite(alpha).all()
    assert np.isfinite(gradient).all()
    assert alpha.sum() > 1e10
    X = np.vstack([np.zeros((2, 2)), np.eye(2)])
    problem = Problem("hinge", np.inf, intercept=intercept)
    points = decomposed_points(
        problem, KernelRows(Linear(), X, 1.0), np.array([1.0, -1.0, 1.0, -1.0]), np.ones(4)
    )
    for alpha, scores in islice(points, 10):
        assert np.isfinite(alpha).all()
        assert np.isfinite(scores).all()


@pytest.mark.parametrize("unit", [1.0, 1.0 / 255.0, 0.1])
def test_products_of_integers_are_exact(unit):
    """Against integer arithmetic; multiples of a unit have products within their error."""
    rng = np.random.default_rng(11)
    integers = rng.integers(-200, 200, size=(70, 300)) * (rng.random((70, 300)) < 0.7)
    integers[0, 0] = 1
    X = Linear().prepared(integers * unit)
    exact = integers @ integers.T
    block = Linear().block(X[5:20], X)
    assert block.dtype == np.float64
    np.testing.assert_allclose(block, exact[5:20] * unit * unit, rtol=0.0, atol=Linear().error(X))
    assert np.array_equal(np.rint(block / (unit * unit)).astype(int), exact[5:20])
    if unit == 1.0:
        assert Linear().error(X) == 0.0
        assert np.array_equal(block, exact[5:20])
        assert np.array_equal(Gaussian(0.1).diagonal(X), np.ones(70))


@pytest.mark.parametrize("kernel", [Linear(), Gaussian(0.3)], ids=lambda k: k.name)
@pytest.mark.parametrize("entries", ["integers_only", "any"])
@pytest.mark.parametrize("share", [0.05, 0.01, 0.5])
def test_sparse_rows_are_stored_and_multiplied_as_sparse(kernel, entries, share):
    """Including products with rows of the other storage."""
    rng = np.random.default_rng(14)
    dense = np.where(rng.random((50, 40)) < share, rng.integers(1, 9, (50, 40)).astype(float), 0.0)
    dense[0, 0] = 1.0
    if entries == "any":
        dense *= rng.random((50, 40))
    K = dense @ dense.T if kernel.name == "linear" else rbf_kernel(dense, gamma=0.3)
    for X in (dense, sp.csr_matrix(dense)):
        rows = kernel.prepared(X)
        assert sp.issparse(rows) == (share < 0.1)
        for Z in (rows, rows[5:20], dense[5:20], sp.csr_matrix(dense)[5:20]):
            requested = K if Z is rows else K[5:20]
            np.testing.assert_allclose(kernel.block(Z, rows), requested, rtol=1e-12)
            np.testing.assert_allclose(kernel.block(Z, dense), requested, rtol=1e-12)
        np.testing.assert_allclose(kernel.diagonal(rows), np.diagonal(K), rtol=1e-12)
        assert kernel.error(rows) <= kernel.error(dense)
        assert kernel.block(rows[5:20], rows).dtype == rows.dtype == float


def test_products_with_and_without_cached_rows_agree():
    X, y, weights = rings(700, 12)
    rows, K = KernelRows(Gaussian(0.4), X, 10.0), Gaussian(0.4).block(X, X)
    c = np.stack([y * weights, np.where(weights > 1.0, y, 0.0)])
    rows.slots(np.arange(0, 700, 5))
    np.testing.assert_allclose(rows.product(c), c @ K, atol=1e-10)
    np.testing.assert_allclose(rows.product(c[1]), c[1] @ K, atol=1e-10)
    np.testing.assert_allclose(gram_product(Gaussian(0.4), X, c), c @ K, atol=1e-10)
    assert rows.computed == 140


def test_subset_of_a_precomputed_matrix_selects_rows_and_columns():
    X, positions = np.random.default_rng(13).normal(size=(90, 3)), np.arange(0, 90, 4)
    K = Gaussian(0.4).block(X, X)
    assert np.array_equal(
        KernelRows(Precomputed(), K, 1.0).part(positions).X, K[np.ix_(positions, positions)]
    )


def test_float32_rows_give_float32_kernel_rows():
    X, y, weights = rings(200, 1)
    rows = KernelRows(Gaussian(0.4), X.astype(np.float32), 1.0)
    assert rows.rows.dtype == rows.diagonal.dtype == np.float32
    lower, upper = best_bounds(Problem("hinge", 1.0), rows, y, weights, 1e-5)
    assert upper - lower <= 1e-5 * lower


def test_rows_are_computed_once_if_the_cache_is_large_enough():
    X, y, weights = rings(300, 2)
    rows = KernelRows(Gaussian(0.4), X, 100.0)
    best_bounds(Problem("hinge", 1.0), rows, y, weights, 1e-4, 16)
    assert rows.computed <= 300
    first_count = rows.computed
    best_bounds(Problem("hinge", 1.0), rows, -y, weights, 1e-4, 16)  # another class of the same rows
    assert rows.computed <= 300
    assert first_count > 0


def test_cache_size_is_not_exceeded():
    """The least recently used rows are dropped; rows requested together are present together."""
    rng = np.random.default_rng(3)
    X = rng.normal(size=(3000, 3))
    rows = KernelRows(Gaussian(0.4), X, 0.0)
    assert rows.capacity == 2 * BLOCK
    K = Gaussian(0.4).block(X, X)
    requested = np.zeros(0, dtype=np.intp)
    for _ in range(12):
        requested = rng.permutation(3000)[: rng.integers(1, rows.capacity + 1)]
        np.testing.assert_allclose(rows.rows[rows.slots(requested)], K[requested], rtol=0.0, atol=1e-13)
        assert rows.rows.shape[0] <= rows.capacity
    before = rows.computed
    rows.slots(requested)
    assert rows.computed == before


def test_rows_of_one_request_do_not_evict_each_other():
    """The unused memory is smaller than a block: cached rows must not reduce the space of the last block."""
    X = np.random.default_rng(0).normal(size=(4000, 3))
    rows = KernelRows(Gaussian(0.5), X, 1.0)
    rows.slots(np.arange(700))
    assert 700 + BLOCK > rows.capacity == 2 * BLOCK
    requested = np.arange(1000, 1000 + rows.capacity)
    slots = rows.slots(requested)
    assert np.array_equal(np.unique(slots), np.arange(rows.capacity))
    np.testing.assert_allclose(rows.rows[slots], Gaussian(0.5).block(X[requested], X), rtol=0.0, atol=1e-13)
    assert rows.computed == 700 + rows.capacity


@pytest.mark.parametrize("n", [900, 1300, 2500])
def test_requested_rows_are_present(n, monkeypatch):
    """Requests of few and many rows, against direct products."""
    monkeypatch.setattr(kernel_rows, "STALE_AFTER", 3)
    rng = np.random.default_rng(n)
    X = rng.integers(-9, 10, size=(n, 2)).astype(float)
    K = X @ X.T
    for _ in range(15):
        rows = KernelRows(Linear(), X, 0.0)
        for _ in range(8):
            requested = rng.permutation(n)[: rng.integers(1, rng.choice([5, 200, rows.capacity]) + 1)]
            slots = rows.slots(requested)
            assert slots.min() >= 0
            assert np.array_equal(rows.rows[slots], K[requested])
            subset = rng.permutation(n)[:20]
            assert np.array_equal(rows.submatrix(subset), K[np.ix_(subset, subset)])


def test_working_set_starts_with_the_largest_violations():
    problem, y = Problem("hinge", 1.0), np.array([1.0, 1.0, 1.0, -1.0, -1.0, -1.0])
    gradient = np.array([-3.0, -1.0, -2.0, -1.0, -5.0, -1.0])
    empty = np.zeros(0, dtype=np.intp)
    chosen, violation = working_set(problem, y, np.ones(6), np.zeros(6), gradient, empty, 2)
    assert chosen.tolist() == [0, 4]
    assert violation == 8.0  # 3 - (-5)


def test_precomputed_matrix_gives_the_same_bounds():
    X, y, weights = rings(50, 4)
    K = Gaussian(0.4).block(X, X)
    precomputed = best_bounds(Problem("hinge", 1.0), KernelRows(Precomputed(), K, 1.0), y, weights, tol=1e-12)
    other = best_bounds(Problem("hinge", 1.0), KernelRows(Gaussian(0.4), X, 1.0), y, weights, tol=1e-12)
    assert precomputed == pytest.approx(other, rel=1e-12)


def test_start_at_the_optimum_ends_immediately():
    X, y, weights = rings(100, 5)
    problem, rows = Problem("hinge", 1.0), KernelRows(Gaussian(0.4), X, 10.0)
    last = list(decomposed_points(problem, rows, y, weights))[-1]
    points = list(decomposed_points(problem, rows, y, weights, start=last.alpha))
    assert len(points) <= 2


def test_interrupt_stops_the_iteration():
    X, y, weights = rings(100, 6)
    polls, rows = iter(range(100)), KernelRows(Gaussian(0.4), X, 10.0)
    points = decomposed_points(
        Problem("hinge", 1.0), rows, y, weights, lambda: next(polls) >= 5, settings=Settings(set_size=4)
    )
    assert len(list(points)) == 5


@pytest.mark.parametrize("unit", [None, 1.0, 1.0 / 15.0])
def test_gaussian_values_are_within_their_error(unit):
    """Distances of integers are exact for any rows; others are within the error."""
    rng, kernel = np.random.default_rng(15), Gaussian(0.7)
    X = rng.normal(size=(60, 8)) if unit is None else rng.integers(0, 16, size=(60, 8)) * unit
    rows = kernel.prepared(X)
    exact = np.exp(-0.7 * ((X[:, None] - X) ** 2).sum(axis=2))
    for Z, positions in ((rows[3:20], slice(3, 20)), (X[20:50], slice(20, 50))):
        np.testing.assert_allclose(
            kernel.block(Z, rows), exact[positions], rtol=0.0, atol=kernel.error(rows) + 1e-15
        )
    if unit == 1.0:
        assert np.array_equal(np.diagonal(kernel.block(rows, rows)), np.ones(60))
    np.testing.assert_allclose(kernel.block(7.0 * X, rows), rbf_kernel(7.0 * X, X, gamma=0.7), atol=1e-12)


def test_submatrices_use_partly_cached_rows():
    X = rings(200, 16)[0]
    K = Gaussian(0.4).block(X, X)
    for kernel, data in ((Gaussian(0.4), X), (Precomputed(), K)):
        rows = KernelRows(kernel, data, 10.0)
        rows.slots(np.arange(0, 200, 3))
        requested = np.arange(5, 190, 2)
        np.testing.assert_allclose(rows.submatrix(requested), K[np.ix_(requested, requested)], atol=1e-14)
        assert rows.computed == 67


@pytest.mark.parametrize("rough_gap", [np.inf, 1e-2])
def test_bounds_of_every_iterate_contain_the_optimum(rough_gap):
    X, y, weights = rings(300, 17)
    problem, rows = Problem("hinge", 1.0), KernelRows(Gaussian(0.4), X, 10.0)
    exact = best_bounds(problem, rows, y, weights, 1e-7)
    points = GramTracker(problem, y, weights, rows.diagonal)
    for point in decomposed_points(problem, rows, y, weights):
        points.evaluate(*point, rough_gap)
        assert points.lower <= exact[1]
        assert exact[0] <= points.upper
    assert points.gap <= 1e-6


def test_interior_dual_variables_have_the_gap_of_their_best_intercept():
    X, y, weights = rings(300, 17)
    problem, rows = Problem("hinge", 1.0), KernelRows(Gaussian(0.4), X, 10.0)
    *_, last = decomposed_points(problem, rows, y, weights)
    alpha = np.clip(last.alpha, 1e-9, weights - 1e-9)  # no row is exactly at a bound
    points = GramTracker(problem, y, weights, rows.diagonal)
    points.evaluate(alpha, rows.product(alpha * y))
    assert points.gap <= 1e-6


@pytest.mark.parametrize("seed", range(20))
def test_largest_selects_the_first_of_equal_values(seed):
    rng = np.random.default_rng(seed)
    value = rng.integers(-4, 5, 60) / 4.0  # many equal values
    value[rng.random(60) < 0.2] = -np.inf
    for least in (-np.inf, -0.3, 0.25, 2.0):
        for most in (1, 7, 30, 60):
            allowed = np.flatnonzero(value >= least)
            requested = allowed[np.argsort(-value[allowed], kind="stable")[:most]]
            assert np.array_equal(np.sort(largest(value, least, most)), np.sort(requested))


def test_argmax_is_the_first_of_equal_values():
    assert argmax(np.array([-1.0, 3.0, 3.0, 2.0])) == 1
    assert argmax(np.full(3, -np.inf)) == -1
    assert argmax(np.zeros(0)) == -1


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("columns", [3, 65], ids=["narrow", "wide"])
@pytest.mark.parametrize("integers_only", [False, True])
def test_kernel_values_do_not_depend_on_their_destination(columns, integers_only, dtype):
    """For few and many rows, as tiles, as a block, and in a part of a larger matrix."""
    rng = np.random.default_rng(1)
    X = rng.integers(0, 9, (300, columns)) / 8.0 if integers_only else rng.random((300, columns))
    kernel = Gaussian(0.7 / columns)
    K, rows = rbf_kernel(X, gamma=0.7 / columns), kernel.prepared(X.astype(dtype))
    for subset in (np.array([7]), np.arange(0, 300, 11), np.arange(299, 0, -1)):
        out = np.full((subset.size + 2, 400), np.nan, dtype)
        for place, tile in kernel.tiles(rows[subset], rows):
            out[1:-1, 50:350][:, place] = tile
        np.testing.assert_allclose(out[1:-1, 50:350], K[subset], rtol=3e-6 if dtype is np.float32 else 1e-13)
        assert np.isnan(out).sum() == out.size - subset.size * 300
        assert np.array_equal(out[1:-1, 50:350], kernel.block(rows[subset], rows))
