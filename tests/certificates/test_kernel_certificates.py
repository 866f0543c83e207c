"""Bounds of kernel machines hold for arbitrary dual weights and meet at the optimum."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
import scipy.sparse as sp
from oracle import optimum
from problems import rings

from maxmargin import Problem
from maxmargin.algorithms.batch.decomposition import decomposed_points
from maxmargin.algorithms.batch.kernel_rows import KernelRows
from maxmargin.certificates import gram
from maxmargin.certificates.expansions import KernelPoint, KernelProblem
from maxmargin.certificates.gram import VALUE_RANGE, KernelSample
from maxmargin.certificates.rows import bounds
from maxmargin.certificates.sample import Sample
from maxmargin.kernels.functions import Gaussian, Linear, Polynomial, Precomputed

PROBLEMS = [
    Problem("hinge", 1.0, intercept="free"),
    Problem("hinge", 50.0, intercept="augmented", intercept_scaling=0.7),
    Problem("squared_hinge", 1.0, intercept="none"),
    Problem("squared_hinge", 1.0, intercept="free"),
    Problem("hinge", np.inf, intercept="free"),
    Problem("hinge", np.inf, intercept="augmented", intercept_scaling=0.7),
]
SMOOTH = [Linear(), Gaussian(0.3), Polynomial(0.1, 5, 1.0)]


def kernel_bounds(problem, kernel, X, y, weights, alpha):
    """The bounds proved by dual variables, with the best primal point along them."""
    point = KernelPoint(alpha, alpha * y, 0.0)
    return KernelProblem(problem, KernelSample(kernel, X), y, weights).bounds(point)


@pytest.mark.parametrize("problem", PROBLEMS, ids=lambda p: f"{p.loss}-{p.C:g}-{p.intercept}")
def test_arbitrary_dual_weights_prove_valid_bounds(problem):
    """Bounds of arbitrary dual weights contain the optimum; bounds of the optimal ones meet."""
    X, y, weights = rings(30, 0, noise=0.0)
    kernel, rng = Polynomial(0.5, 2, 1.0), np.random.default_rng(1)
    values, vectors = np.linalg.eigh(kernel.block(X, X))
    exact = optimum(problem, vectors * np.sqrt(np.maximum(values, 0.0)), y, weights)
    slack = 1e-9 * float(exact.upper)  # of the eigenvectors: n eps |K|, divided by the square of the margin
    last = list(decomposed_points(problem, KernelRows(kernel, X, 10.0), y, weights))[-1]
    some = [rng.exponential(size=30) * (rng.random(30) < 0.5) for _ in range(20)]
    for alpha in (*some, last.alpha):
        found = kernel_bounds(problem, kernel, X, y, weights, alpha).bounds
        assert found.lower <= exact.upper + slack
        assert exact.lower <= found.upper + slack
    assert problem.gap(found.lower, found.upper) < 1e-6
    # the linear kernel has the bounds of the linear classifier
    X[:, 0] += 4.0 * y
    for store in (np.asarray, sp.csr_matrix):
        found, (alpha, c, b), _ = kernel_bounds(problem, Linear(), store(X), y, weights, some[0])
        other = bounds(problem, Sample(X, y, weights), c @ X, b, alpha)
        np.testing.assert_allclose((found.lower, found.upper), (other.lower, other.upper), 1e-12)  # 30 eps


def kernel_in_80_bits(kernel, X):
    """The kernel matrix of Linear, Gaussian, or Polynomial of degree 5 with coef0 = 1."""
    if np.finfo(np.longdouble).eps >= np.finfo(float).eps:
        pytest.skip("long double is double here")
    extended = X.astype(np.longdouble)
    products, squares = extended @ extended.T, (extended * extended).sum(axis=1)
    if kernel.name == "linear":
        return products
    if kernel.name == "poly":
        return (np.longdouble(kernel.gamma) * products + 1) ** 5
    return np.exp(-np.longdouble(kernel.gamma) * (squares[:, None] + squares - 2 * products))


WHOLE = np.random.default_rng(5).integers(0, 256, size=(40, 100)).astype(float)
REAL = np.random.default_rng(4).normal(size=(40, 7))


@pytest.mark.parametrize("kernel", SMOOTH, ids=lambda k: k.name)
@pytest.mark.parametrize(
    "X", [REAL, 30.0 * REAL, WHOLE, WHOLE / 255.0], ids=["1", "30", "bytes", "bytes / 255"]
)
def test_kernel_values_are_within_their_error(kernel, X):
    """Against 80-bit arithmetic; integers have a smaller error."""
    exact, rows = kernel_in_80_bits(kernel, X), kernel.prepared(X)
    assert np.abs(kernel.block(X, X) - exact).max() <= kernel.error(X)
    assert np.abs(kernel.diagonal(X) - np.diagonal(exact)).max() <= kernel.error(X)
    assert np.abs(kernel.block(rows, rows) - exact).max() <= kernel.error(rows) + 1e-300  # underflow of exp
    assert kernel.error(rows) <= kernel.error(X)


@pytest.mark.parametrize("store", [np.asarray, sp.csr_matrix], ids=["dense", "sparse"])
@pytest.mark.parametrize(("seed", "cancel"), [(8, False), (9, True), (16, True), (18, True)])
def test_sums_of_rows_are_within_their_error(store, seed, cancel, monkeypatch):
    """For w of the linear kernel and a multiple of it, including large coefficients that nearly cancel."""
    rng = np.random.default_rng(seed)
    X, c = 1e3 * rng.normal(size=(20, 4)) * (rng.random((20, 4)) < 0.8), 1e4 * rng.normal(size=20)
    if cancel:
        c[:10] = -np.linalg.lstsq(X[:10].T, X[10:].T @ c[10:])[0]
    rows = [[Fraction(value) for value in row] for row in X.tolist()]
    for few in (0, 2**17):
        monkeypatch.setattr(gram, "COMPENSATED_ENTRIES", few)
        sample = KernelSample(Linear(), store(X))
        one = sample.combinations(c[None])[0]
        values = KernelSample(Polynomial(1.0, 1), X)  # the same kernel
        by_values = values.combinations(c[None])[0]
        some, others = sample.multiple(one, 0.7, 0.7 * c), values.multiple(by_values, 0.7, 0.7 * c)
        for found in (one, some, by_values, others):
            factors = [Fraction(v) for v in found.c.tolist()]
            w = [
                sum(a * v for a, v in zip(factors, column, strict=True)) for column in zip(*rows, strict=True)
            ]
            scores = [sum(a * b for a, b in zip(w, row, strict=True)) for row in rows]
            off = [abs(float(Fraction(a) - b)) for a, b in zip(found.scores.tolist(), scores, strict=True)]
            assert (np.array(off) <= found.score_error).all()
            assert abs(float(Fraction(found.square) - sum(a * a for a in w))) <= found.square_error
        if cancel:
            assert one.score_error.max() < 1e-2 * by_values.score_error
            assert one.square_error < 1e-6 * by_values.square_error


def test_kernel_values_outside_their_range_are_refused():
    """The limits are accepted, the next numbers beyond them are not."""
    least, largest = VALUE_RANGE
    for size in VALUE_RANGE:
        assert KernelSample(Precomputed(), size * np.eye(2)).max_diagonal == size
    for size in (np.nextafter(least, 0.0), np.nextafter(largest, np.inf)):
        with pytest.raises(ValueError, match=r"in sums: .* scale the matrix"):
            KernelSample(Precomputed(), size * np.eye(2))
    assert KernelSample(Linear(), np.zeros((2, 3))).max_diagonal == 0.0  # zero rows do not count as underflow


def test_underflowing_products_do_not_overstate_the_margin():
    """For tiny coefficients |w|^2 = c'Kc underflows, and a quotient by it would exceed the margin."""
    hard, y = Problem("hinge", np.inf, intercept="none"), np.ones(3)
    task = KernelProblem(hard, KernelSample(Precomputed(), np.eye(3)), y, y)
    for size in np.geomspace(1e-163, 1e-155, 200):
        assert task.attained_margin(np.full(3, size), 0.0) <= 3.0**-0.5
    assert task.attained_margin(np.full(3, 1e-120), 0.0) == pytest.approx(3.0**-0.5, rel=1e-13, abs=0.0)
