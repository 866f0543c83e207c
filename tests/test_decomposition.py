"""The decomposition solver: its points bracket the exact optimum, rows of the kernel come once, within the budget."""

from __future__ import annotations

from itertools import islice, product

import numpy as np
import pytest
import scipy.sparse as sp
from effort import examples, thorough
from oracle import optimum
from sklearn.metrics.pairwise import pairwise_kernels, rbf_kernel

from maxmargin import Problem
from maxmargin.algorithms.batch import decomposition, kernel_rows
from maxmargin.algorithms.batch.decomposition import (
    argmax,
    decomposed_points,
    largest,
    solve_by_pairs,
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


def rings(n, seed, noise=0.3):
    """Two classes that no line separates."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3))
    y = np.where((X * X).sum(axis=1) + noise * rng.normal(size=n) > 2.4, 1.0, -1.0)
    assert np.unique(y).size == 2
    return X, y, rng.choice([0.5, 1.0, 2.0], n)


def values(problem, rows, y, weights, point):
    """(lower, upper) as the point's dual weights and scores give them, of the Gram matrix that `rows` has."""
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


def ends(problem, rows, y, weights, tol=1e-7):
    """The best bounds when they are within tol."""
    lower, upper = -np.inf, np.inf
    for k, point in enumerate(decomposed_points(problem, rows, y, weights)):
        low, high = values(problem, rows, y, weights, point)
        lower, upper = max(lower, low), min(upper, high)
        if problem.gap(lower, upper) <= tol:
            return lower, upper
        assert k < 3000
    return lower, upper


@pytest.mark.parametrize("kernel", KERNELS, ids=lambda k: k.name)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("store", [np.asarray, sp.csr_matrix], ids=["dense", "sparse"])
def test_kernels_are_those_of_scikit_learn(kernel, dtype, store):
    X = np.random.default_rng(0).random((30, 4)).astype(dtype)
    name, parameters = KERNELS[kernel]
    K = pairwise_kernels(X.astype(float), metric=name, **parameters)
    if isinstance(kernel, Pairwise) and store is sp.csr_matrix:
        if callable(kernel.function):
            pytest.skip("a function is given what the caller has")
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
def test_the_optimum_lies_between_the_bounds(monkeypatch, loss, C, intercept, size, tol):
    monkeypatch.setattr(decomposition, "SET_SIZE", size)
    problem = Problem(loss, C, intercept=intercept, intercept_scaling=0.7)
    for seed in range(examples(1, 2)):
        X, y, weights = rings(60, seed, noise=0.0 if problem.hard else 0.3)
        for kernel in (Gaussian(0.4), Polynomial(0.5, 2, 1.0)):
            K = kernel.block(X, X)
            values_, vectors = np.linalg.eigh(K)
            factor = vectors * np.sqrt(np.maximum(values_, 0.0))  # rows with these inner products
            exact = optimum(problem, factor, y, weights)
            lower, upper = ends(problem, KernelRows(kernel, X, 100.0), y, weights, tol)
            assert problem.gap(lower, upper) <= tol
            e = exact.upper - exact.lower + 1e-9 * exact.upper
            assert lower - e <= exact.upper
            assert exact.lower <= upper + e


def test_rows_of_no_weight_cost_nothing():
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
def test_a_small_budget_leads_to_the_same_optimum(megabytes):
    X, y, weights = rings(1500, 10)
    problem, rows = Problem("hinge", 10.0), KernelRows(Gaussian(2.0), X, megabytes)
    assert rows.most == (1500 if megabytes else 2 * BLOCK)
    lower, upper = ends(problem, rows, y, weights, 1e-6)
    exact = ends(problem, KernelRows(Gaussian(2.0), X, 100.0), y, weights, 1e-9)
    assert lower <= exact[1]
    assert exact[0] <= upper


@pytest.mark.parametrize("intercept", ["free", "none"])
def test_without_curvature_and_caps_steps_are_finite(intercept):
    """Zero rows of both classes have no margin: their dual weights grow, and stay numbers."""
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
def test_whole_numbers_have_exact_products(unit):
    """Against the arithmetic of integers; multiples of a unit have products within their error."""
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
@pytest.mark.parametrize("values", ["whole", "any"])
@pytest.mark.parametrize("share", [0.05, 0.01, 0.5])
def test_sparse_rows_are_multiplied_as_such(kernel, values, share):
    """And with rows that are stored in another way."""
    rng = np.random.default_rng(14)
    dense = np.where(rng.random((50, 40)) < share, rng.integers(1, 9, (50, 40)).astype(float), 0.0)
    dense[0, 0] = 1.0
    if values == "any":
        dense *= rng.random((50, 40))
    K = dense @ dense.T if kernel.name == "linear" else rbf_kernel(dense, gamma=0.3)
    for X in (dense, sp.csr_matrix(dense)):
        rows = kernel.prepared(X)
        assert sp.issparse(rows) == (share < 0.1)
        for Z in (rows, rows[5:20], dense[5:20], sp.csr_matrix(dense)[5:20]):
            wanted = K if Z is rows else K[5:20]
            np.testing.assert_allclose(kernel.block(Z, rows), wanted, rtol=1e-12)
            np.testing.assert_allclose(kernel.block(Z, dense), wanted, rtol=1e-12)
        np.testing.assert_allclose(kernel.diagonal(rows), np.diagonal(K), rtol=1e-12)
        assert kernel.error(rows) <= kernel.error(dense)
        assert kernel.block(rows[5:20], rows).dtype == rows.dtype == float


def test_products_with_and_without_kept_rows():
    X, y, weights = rings(700, 12)
    rows, K = KernelRows(Gaussian(0.4), X, 10.0), Gaussian(0.4).block(X, X)
    c = np.stack([y * weights, np.where(weights > 1.0, y, 0.0)])
    rows.slots(np.arange(0, 700, 5))
    np.testing.assert_allclose(rows.product(c), c @ K, atol=1e-10)
    np.testing.assert_allclose(rows.product(c[1]), c[1] @ K, atol=1e-10)
    np.testing.assert_allclose(gram_product(Gaussian(0.4), X, c), c @ K, atol=1e-10)
    assert rows.computed == 140


def test_a_part_of_a_precomputed_matrix_has_its_rows_and_columns():
    X, places = np.random.default_rng(13).normal(size=(90, 3)), np.arange(0, 90, 4)
    K = Gaussian(0.4).block(X, X)
    assert np.array_equal(KernelRows(Precomputed(), K, 1.0).part(places).X, K[np.ix_(places, places)])


def test_one_precision_throughout():
    X, y, weights = rings(200, 1)
    rows = KernelRows(Gaussian(0.4), X.astype(np.float32), 1.0)
    assert rows.rows.dtype == rows.diagonal.dtype == np.float32
    lower, upper = ends(Problem("hinge", 1.0), rows, y, weights, 1e-5)
    assert upper - lower <= 1e-5 * lower


def test_rows_are_computed_once_where_the_budget_allows(monkeypatch):
    monkeypatch.setattr(decomposition, "SET_SIZE", 16)
    X, y, weights = rings(300, 2)
    rows = KernelRows(Gaussian(0.4), X, 100.0)
    ends(Problem("hinge", 1.0), rows, y, weights, 1e-4)
    assert rows.computed <= 300
    again = rows.computed
    ends(Problem("hinge", 1.0), rows, -y, weights, 1e-4)  # another class of the same rows
    assert rows.computed <= 300
    assert again > 0


def test_the_budget_is_kept():
    """The least recently used rows go; what is asked for together is there together."""
    rng = np.random.default_rng(3)
    X = rng.normal(size=(3000, 3))
    rows = KernelRows(Gaussian(0.4), X, 0.0)
    assert rows.most == 2 * BLOCK
    K = Gaussian(0.4).block(X, X)
    wanted = np.zeros(0, dtype=np.intp)
    for _ in range(12):
        wanted = rng.permutation(3000)[: rng.integers(1, rows.most + 1)]
        np.testing.assert_allclose(rows.rows[rows.slots(wanted)], K[wanted], rtol=0.0, atol=1e-13)
        assert rows.rows.shape[0] <= rows.most
    before = rows.computed
    rows.slots(wanted)
    assert rows.computed == before


def test_rows_of_one_call_do_not_leave_for_each_other():
    """Less memory is untouched than a block takes: what is kept by then must not make place for the last block."""
    X = np.random.default_rng(0).normal(size=(4000, 3))
    rows = KernelRows(Gaussian(0.5), X, 1.0)
    rows.slots(np.arange(700))
    assert 700 + BLOCK > rows.most == 2 * BLOCK
    wanted = np.arange(1000, 1000 + rows.most)
    slots = rows.slots(wanted)
    assert np.array_equal(np.unique(slots), np.arange(rows.most))
    np.testing.assert_allclose(rows.rows[slots], Gaussian(0.5).block(X[wanted], X), rtol=0.0, atol=1e-13)
    assert rows.computed == 700 + rows.most


@pytest.mark.parametrize("n", [900, 1300, 2500])
def test_whatever_is_asked_for_is_there(n, monkeypatch):
    """Requests of few rows and of many, against products by themselves."""
    monkeypatch.setattr(kernel_rows, "STALE_AFTER", 3)
    rng = np.random.default_rng(n)
    X = rng.integers(-9, 10, size=(n, 2)).astype(float)
    K = X @ X.T
    for _ in range(15):
        rows = KernelRows(Linear(), X, 0.0)
        for _ in range(8):
            wanted = rng.permutation(n)[: rng.integers(1, rng.choice([5, 200, rows.most]) + 1)]
            slots = rows.slots(wanted)
            assert slots.min() >= 0
            assert np.array_equal(rows.rows[slots], K[wanted])
            some = rng.permutation(n)[:20]
            assert np.array_equal(rows.submatrix(some), K[np.ix_(some, some)])


def test_a_working_set_begins_with_the_worst():
    problem, y = Problem("hinge", 1.0), np.array([1.0, 1.0, 1.0, -1.0, -1.0, -1.0])
    gradient = np.array([-3.0, -1.0, -2.0, -1.0, -5.0, -1.0])
    nothing = np.zeros(0, dtype=np.intp)
    chosen, violation = decomposition.working_set(problem, y, np.ones(6), np.zeros(6), gradient, nothing, 2)
    assert chosen.tolist() == [0, 4]
    assert violation == 8.0  # 3 - (-5)


def test_a_precomputed_matrix():
    X, y, weights = rings(50, 4)
    K = Gaussian(0.4).block(X, X)
    one = ends(Problem("hinge", 1.0), KernelRows(Precomputed(), K, 1.0), y, weights, tol=1e-12)
    other = ends(Problem("hinge", 1.0), KernelRows(Gaussian(0.4), X, 1.0), y, weights, tol=1e-12)
    assert one == pytest.approx(other, rel=1e-12)


def test_a_start_is_gone_on_from():
    X, y, weights = rings(100, 5)
    problem, rows = Problem("hinge", 1.0), KernelRows(Gaussian(0.4), X, 10.0)
    last = list(decomposed_points(problem, rows, y, weights))[-1]
    points = list(decomposed_points(problem, rows, y, weights, start=last.alpha))
    assert len(points) <= 2


def test_time_is_heard(monkeypatch):
    monkeypatch.setattr(decomposition, "SET_SIZE", 4)
    X, y, weights = rings(100, 6)
    asked = iter(range(100))
    points = decomposed_points(
        Problem("hinge", 1.0), KernelRows(Gaussian(0.4), X, 10.0), y, weights, lambda: next(asked) >= 5
    )
    assert len(list(points)) == 5


@pytest.mark.parametrize("unit", [None, 1.0, 1.0 / 15.0])
def test_gaussian_values_are_within_their_error(unit):
    """Of whole numbers distances are exact, whatever rows are asked about; of others, within the error."""
    rng, kernel = np.random.default_rng(15), Gaussian(0.7)
    X = rng.normal(size=(60, 8)) if unit is None else rng.integers(0, 16, size=(60, 8)) * unit
    rows = kernel.prepared(X)
    exact = np.exp(-0.7 * ((X[:, None] - X) ** 2).sum(axis=2))
    for Z, places in ((rows[3:20], slice(3, 20)), (X[20:50], slice(20, 50))):
        np.testing.assert_allclose(
            kernel.block(Z, rows), exact[places], rtol=0.0, atol=kernel.error(rows) + 1e-15
        )
    if unit == 1.0:
        assert np.array_equal(np.diagonal(kernel.block(rows, rows)), np.ones(60))
    np.testing.assert_allclose(kernel.block(7.0 * X, rows), rbf_kernel(7.0 * X, X, gamma=0.7), atol=1e-12)


def test_a_square_of_rows_that_are_kept_in_part():
    X = rings(200, 16)[0]
    K = Gaussian(0.4).block(X, X)
    for kernel, given in ((Gaussian(0.4), X), (Precomputed(), K)):
        rows = KernelRows(kernel, given, 10.0)
        rows.slots(np.arange(0, 200, 3))
        wanted = np.arange(5, 190, 2)
        np.testing.assert_allclose(rows.submatrix(wanted), K[np.ix_(wanted, wanted)], atol=1e-14)
        assert rows.computed == 67


def test_the_bounds_of_every_iterate_enclose_the_optimum():
    X, y, weights = rings(300, 17)
    problem, rows = Problem("hinge", 1.0), KernelRows(Gaussian(0.4), X, 10.0)
    exact = ends(problem, rows, y, weights, 1e-7)
    points = GramTracker(problem, y, weights, rows.diagonal)
    for point in decomposed_points(problem, rows, y, weights):
        points.evaluate(*point)
        assert points.lower <= exact[1]
        assert exact[0] <= points.upper
    assert points.gap <= 1e-6


@pytest.mark.parametrize("seed", range(20))
def test_the_largest_values_are_chosen_of_equal_ones_the_first(seed):
    rng = np.random.default_rng(seed)
    value = rng.integers(-4, 5, 60) / 4.0  # many equal ones
    value[rng.random(60) < 0.2] = -np.inf
    for least in (-np.inf, -0.3, 0.25, 2.0):
        for most in (1, 7, 30, 60):
            allowed = np.flatnonzero(value >= least)
            wanted = allowed[np.argsort(-value[allowed], kind="stable")[:most]]
            assert np.array_equal(np.sort(largest(value, least, most)), np.sort(wanted))


def test_the_first_of_equal_values_is_found():
    assert argmax(np.array([-1.0, 3.0, 3.0, 2.0])) == 1
    assert argmax(np.full(3, -np.inf)) == -1
    assert argmax(np.zeros(0)) == -1


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("columns", [3, 65], ids=["narrow", "wide"])
@pytest.mark.parametrize("whole", [False, True])
def test_values_are_the_same_wherever_they_are_written(columns, whole, dtype):
    """Of few rows and of many, as tiles, as a block, and into a part of a larger matrix."""
    rng = np.random.default_rng(1)
    X = rng.integers(0, 9, (300, columns)) / 8.0 if whole else rng.random((300, columns))
    kernel = Gaussian(0.7 / columns)
    K, rows = rbf_kernel(X, gamma=0.7 / columns), kernel.prepared(X.astype(dtype))
    for some in (np.array([7]), np.arange(0, 300, 11), np.arange(299, 0, -1)):
        out = np.full((some.size + 2, 400), np.nan, dtype)
        kernel.fill(rows[some], rows, out[1:-1, 50:350])
        np.testing.assert_allclose(out[1:-1, 50:350], K[some], rtol=3e-6 if dtype is np.float32 else 1e-13)
        assert np.isnan(out).sum() == out.size - some.size * 300
        assert np.array_equal(out[1:-1, 50:350], kernel.block(rows[some], rows))
        for place, tile in kernel.tiles(rows[some], rows):
            assert np.array_equal(tile, out[1:-1, 50:350][:, place])
