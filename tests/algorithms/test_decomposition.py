"""Decomposition: kernel values, the cache of kernel rows, working sets, and bounds of its points."""

from __future__ import annotations

import gc
from itertools import islice

import numpy as np
import pytest
import scipy.sparse as sp
from problems import rings
from sklearn.metrics.pairwise import pairwise_kernels, rbf_kernel

from maxmargin import KernelMaxMarginClassifier, Problem
from maxmargin.algorithms.batch.decomposition import decomposed_points, solve_by_pairs
from maxmargin.algorithms.batch.kernel_rows import BLOCK, KernelRows
from maxmargin.fit.tracker import GramTracker
from maxmargin.kernels.functions import Gaussian, Linear, Pairwise, Polynomial, Precomputed, Sigmoid

RBF, HINGE = Gaussian(0.4), Problem("hinge", 1.0)
KERNELS = {
    Linear(): ("linear", {}),
    Polynomial(0.5, 3, 1.0): ("poly", {"gamma": 0.5, "degree": 3, "coef0": 1.0}),
    Polynomial(0.5, 0): ("poly", {"gamma": 0.5, "degree": 0}),
    Gaussian(0.3): ("rbf", {"gamma": 0.3}),
    Sigmoid(0.1, -0.5): ("sigmoid", {"gamma": 0.1, "coef0": -0.5}),
    Pairwise("laplacian", (("gamma", 0.2),)): ("laplacian", {"gamma": 0.2}),
    Pairwise(lambda Z, X: Z @ X.T): ("linear", {}),
}


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("d", [4, 65], ids=["narrow", "wide"])
@pytest.mark.parametrize("kernel", KERNELS, ids=lambda k: k.name)
def test_kernel_values_equal_those_of_scikit_learn(kernel, d, dtype):
    """As a block, as tiles written into a part of a larger matrix, and from sparse rows."""
    X = np.random.default_rng(0).random((300, d)).astype(dtype)
    name, parameters = KERNELS[kernel]
    K = pairwise_kernels(X.astype(float), metric=name, **parameters)
    # a product of d numbers: (d + 2) eps of its positive terms, times the third power or a distance of d / 6
    close = {"rtol": 4.0 * (d + 2) * np.finfo(dtype).eps, "atol": 4.0 * (d + 2) * np.finfo(dtype).eps}
    for rows in [X] if isinstance(kernel, Pairwise) else [X, sp.csr_matrix(X)]:
        rows = kernel.prepared(rows)
        for some in (np.array([7]), np.arange(0, 300, 11)):
            block, out = kernel.block(rows[some], rows), np.full((some.size + 2, 400), np.nan, dtype)
            assert block.dtype == dtype
            assert block.flags.c_contiguous
            np.testing.assert_allclose(block, K[some], **close)
            for place, tile in kernel.tiles(rows[some], rows):
                out[1:-1, 50:350][:, place] = tile
            assert np.array_equal(out[1:-1, 50:350], block)
            assert np.isnan(out).sum() == out.size - some.size * 300
        np.testing.assert_allclose(kernel.diagonal(rows), np.diagonal(K), **close)


@pytest.mark.parametrize("kernel", [Linear(), Gaussian(0.3)], ids=lambda k: k.name)
@pytest.mark.parametrize("share", [0.05, 0.5])
def test_sparse_rows_are_stored_and_multiplied_as_sparse(kernel, share):
    """Including products with rows of the other storage."""
    rng = np.random.default_rng(14)
    dense = np.where(rng.random((50, 40)) < share, rng.random((50, 40)), 0.0)
    K = dense @ dense.T if kernel.name == "linear" else rbf_kernel(dense, gamma=0.3)
    for X in (dense, sp.csr_matrix(dense)):
        rows = kernel.prepared(X)
        assert sp.issparse(rows) == (share < 0.1)
        for Z in (rows[5:20], dense[5:20], sp.csr_matrix(dense)[5:20]):
            np.testing.assert_allclose(kernel.block(Z, rows), K[5:20], rtol=1e-13)  # 42 eps
            np.testing.assert_allclose(kernel.block(Z, dense), K[5:20], rtol=1e-13)
        assert kernel.error(rows) <= kernel.error(dense)
        assert kernel.block(rows[5:20], rows).dtype == rows.dtype == float


@pytest.mark.parametrize("n", [900, 1300, 2500])
def test_requested_rows_are_present(n):
    """Requests of few and many rows; the memory is limited, and rows of one request do not evict each other."""
    rng = np.random.default_rng(n)
    X = rng.integers(-9, 10, size=(n, 2)).astype(float)
    K = X @ X.T
    for megabytes in (0.0, 1.0):
        rows, requested = KernelRows(Linear(), X, megabytes), np.arange(0)
        assert rows.capacity >= min(2 * BLOCK, n)
        for _ in range(12):
            requested = rng.permutation(n)[: rng.integers(1, rng.choice([5, 200, rows.capacity]) + 1)]
            assert np.array_equal(rows.rows[rows.slots(requested)], K[requested])
            assert rows.rows.shape[0] <= rows.capacity
            some = rng.permutation(n)[:20]
            assert np.array_equal(rows.submatrix(some), K[np.ix_(some, some)])
        requested, before = np.arange(rows.capacity), rows.computed
        assert np.unique(rows.slots(requested)).size == rows.capacity
        assert rows.computed > before or before == n  # no row is computed again while all rows find space
        before = rows.computed
        rows.slots(requested)
        assert rows.computed == before


def test_no_kernel_row_is_replaced_while_memory_is_unused():
    """However long ago it was used; then the least recently used row is replaced."""
    rows = KernelRows(Linear(), np.eye(1300), 0.0)
    for i in range(rows.capacity):
        rows.slots(np.array([i]))
    rows.slots(np.arange(rows.capacity))
    assert rows.computed == rows.capacity
    rows.slots(np.arange(1, rows.capacity))
    rows.slots(np.array([1299]))  # in place of row 0
    rows.slots(np.arange(1, rows.capacity))
    assert rows.computed == rows.capacity + 1


@pytest.mark.parametrize("algorithm", ["decomposition", "mpu"])
def test_kernel_rows_are_freed_when_the_fit_ends(algorithm):
    """Without the garbage collector, which does not see how large they are."""
    X, y, _ = rings(700, 5)

    def number():
        return sum(isinstance(one, KernelRows) for one in gc.get_objects())

    gc.collect()
    gc.disable()
    try:
        before = number()
        model = KernelMaxMarginClassifier(algorithm=algorithm).fit(X, y)
        assert model.status_.name == "CERTIFIED"
        assert number() == before
    finally:
        gc.enable()


def test_kernel_rows_are_computed_once_and_only_for_rows_of_positive_weight():
    X, y, weights = rings(300, 9)
    weights[::3] = 0.0
    used, rows = weights > 0.0, KernelRows(RBF, X, 100.0)
    for labels in (y, -y):  # classes share the rows
        *_, (alpha, scores) = decomposed_points(HINGE, rows, labels, weights)
    *_, alone = decomposed_points(HINGE, KernelRows(RBF, X[used], 10.0), -y[used], weights[used])
    assert np.array_equal(alpha[used], alone.alpha)
    assert np.array_equal(scores[used], alone.scores)
    assert not alpha[~used].any()
    assert rows.computed <= np.count_nonzero(used)


@pytest.mark.parametrize("megabytes", [0.0, 100.0])
@pytest.mark.parametrize("rough_gap", [np.inf, 1e-2])
def test_bounds_of_every_point_contain_the_optimum(rough_gap, megabytes):
    X, y, weights = rings(1200, 17)
    rows, K = KernelRows(RBF, X, megabytes), RBF.block(X, X)
    tracker = GramTracker(HINGE, y, weights, rows.diagonal)
    *_, best = decomposed_points(HINGE, KernelRows(Precomputed(), K, 100.0), y, weights)
    optimum = GramTracker(HINGE, y, weights, rows.diagonal)
    optimum.evaluate(*best)
    assert optimum.gap <= 1e-6
    points = list(decomposed_points(HINGE, rows, y, weights))
    for alpha, scores in points:
        assert scores == pytest.approx(K @ (alpha * y), abs=1e-12 * alpha.sum())  # 1200 eps
        tracker.evaluate(alpha, scores, rough_gap)
        assert tracker.lower <= optimum.upper
        assert optimum.lower <= tracker.upper
    assert tracker.gap <= 1e-6
    # dual weights strictly between their bounds have the gap of their best intercept
    interior = GramTracker(HINGE, y, weights, rows.diagonal)
    alpha = np.clip(points[-1].alpha, 1e-9, weights - 1e-9)
    interior.evaluate(alpha, rows.product(alpha * y))
    assert interior.gap <= 2e-6
    assert len(list(decomposed_points(HINGE, rows, y, weights, start=points[-1].alpha))) <= 2


@pytest.mark.parametrize("intercept", ["free", "none"])
def test_steps_without_curvature_and_caps_are_finite(intercept):
    """Zero rows of both classes have no margin: their dual weights grow but stay finite."""
    y, alpha, gradient = np.array([1.0, -1.0]), np.zeros(2), -np.ones(2)
    solve_by_pairs(np.zeros((2, 2)), y, np.full(2, np.inf), alpha, gradient, 1e-3, 100, np.empty((6, 2)))
    assert np.isfinite([*alpha, *gradient]).all()
    assert alpha.sum() > 1e10
    rows = KernelRows(Linear(), np.vstack([np.zeros((2, 2)), np.eye(2)]), 1.0)
    problem = Problem("hinge", np.inf, intercept=intercept)
    for alpha, scores in islice(decomposed_points(problem, rows, np.tile(y, 2), np.ones(4)), 10):
        assert np.isfinite([*alpha, *scores]).all()
