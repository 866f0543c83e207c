"""Bounds of kernel machines hold for arbitrary dual weights and meet at the optimum."""

from __future__ import annotations

from fractions import Fraction
from itertools import product

import numpy as np
import pytest
import scipy.sparse as sp
from oracle import optimum
from problems import rings

from maxmargin import Problem
from maxmargin.algorithms.batch.decomposition import decomposed_points
from maxmargin.algorithms.batch.kernel_rows import KernelRows
from maxmargin.certificates import gram as kernel_certificates
from maxmargin.certificates.bounds import Bounds
from maxmargin.certificates.expansions import (
    KernelBounds,
    KernelPoint,
    KernelProblem,
    with_smallest_gap,
)
from maxmargin.certificates.gram import VALUE_RANGE, KernelSample
from maxmargin.certificates.rows import bounds
from maxmargin.certificates.sample import Sample
from maxmargin.kernels.functions import Gaussian, Linear, Polynomial, Precomputed

PROBLEMS = [
    Problem(loss, C, intercept=intercept, intercept_scaling=0.7)
    for (loss, C), intercept in product(
        [("hinge", 1.0), ("hinge", 50.0), ("squared_hinge", 1.0), ("hinge", np.inf)],
        ("free", "none", "augmented"),
    )
]


def kernel_bounds(problem, kernel, X, y, weights, alpha):
    """The bounds proved by dual variables, with the best primal point along them."""
    point = KernelPoint(alpha, alpha * y, 0.0)
    return KernelProblem(problem, KernelSample(kernel, X), y, weights).bounds(point)


def problem_id(problem):
    return f"{problem.loss}-{problem.C:g}-{problem.intercept}"


@pytest.mark.parametrize("problem", PROBLEMS, ids=problem_id)
def test_arbitrary_dual_weights_prove_valid_bounds(problem):
    """Bounds of arbitrary dual weights contain the optimum; bounds of the optimal ones meet."""
    X, y, weights = rings(40, 0, noise=0.0)
    kernel = Polynomial(0.5, 2, 1.0)
    values, vectors = np.linalg.eigh(kernel.block(X, X))
    exact = optimum(problem, vectors * np.sqrt(np.maximum(values, 0.0)), y, weights)
    rng = np.random.default_rng(1)
    slack = 1e-9 * float(exact.upper)  # rounding of the eigenvectors given to the oracle
    for _ in range(20):
        alpha = rng.exponential(size=40) * (rng.random(40) < 0.5)
        found = kernel_bounds(problem, kernel, X, y, weights, alpha).bounds
        assert found.lower <= exact.upper + slack
        assert exact.lower <= found.upper + slack
    last = list(decomposed_points(problem, KernelRows(kernel, X, 10.0), y, weights))[-1]
    found = kernel_bounds(problem, kernel, X, y, weights, last.alpha).bounds
    assert problem.gap(found.lower, found.upper) < 1e-6
    assert found.below >= 0.0 <= found.above


@pytest.mark.parametrize("problem", PROBLEMS, ids=problem_id)
@pytest.mark.parametrize("store", [np.asarray, sp.csr_matrix], ids=["dense", "sparse"])
def test_linear_kernel_bounds_equal_those_of_the_linear_classifier(problem, store):
    X, y, weights = rings(40, 2)
    X[:, 0] += 4.0 * y
    alpha = np.random.default_rng(3).exponential(size=40)
    found, (alpha, c, b), _ = kernel_bounds(problem, Linear(), store(X), y, weights, alpha)
    w = c @ X
    other = bounds(problem, Sample(X, y, weights), w, b, alpha)
    assert found.lower == pytest.approx(other.lower, rel=1e-10)
    assert found.upper == pytest.approx(other.upper, rel=1e-10)


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


@pytest.mark.parametrize("kernel", [Linear(), Gaussian(0.3), Polynomial(0.1, 5, 1.0)], ids=lambda k: k.name)
@pytest.mark.parametrize("scale", [1.0, 30.0])
def test_kernel_values_are_within_their_error(kernel, scale):
    """Against 80-bit arithmetic."""
    X = np.random.default_rng(4).normal(size=(40, 7)) * scale
    exact = kernel_in_80_bits(kernel, X)
    error = np.abs(kernel.block(X, X) - exact).max()
    assert error <= kernel.error(X)
    assert np.abs(kernel.diagonal(X) - np.diagonal(exact)).max() <= kernel.error(X)


@pytest.mark.parametrize("kernel", [Linear(), Gaussian(0.3), Polynomial(0.1, 5, 1.0)], ids=lambda k: k.name)
@pytest.mark.parametrize("unit", [1.0, 1.0 / 255.0])
def test_kernel_values_of_integers_are_within_their_error(kernel, unit):
    X = np.random.default_rng(5).integers(0, 256, size=(40, 100)) * unit
    X[0, 0] = unit
    rows = kernel.prepared(X)
    exact = kernel_in_80_bits(kernel, X)
    assert np.abs(kernel.block(rows, rows) - exact).max() <= kernel.error(rows) + 1e-300
    assert kernel.error(rows) <= kernel.error(X)


def test_scaled_dual_point_has_its_own_primal_point():
    """The given primal point is the one proved, though its scores are those of the dual point."""
    X, y, weights = rings(60, 6)
    problem, kernel = Problem("hinge", 2.0), Gaussian(0.4)
    last = list(decomposed_points(problem, KernelRows(kernel, X, 10.0), y, weights))[-1]
    sample, alpha = KernelSample(kernel, X), 0.8 * last.alpha
    task = KernelProblem(problem, sample, y, weights)
    b = task.bounds(KernelPoint(last.alpha, last.alpha * y, 0.0)).point.intercept
    point = KernelPoint(alpha, last.alpha * y, b)
    found = task.bounds(point)
    np.testing.assert_allclose(found.point.coefficients, last.alpha * y, atol=1e-9)
    scores = kernel.block(X, X) @ (last.alpha * y)
    primal = problem.primal(0.5 * float((last.alpha * y) @ scores), y * (scores + b), weights)
    assert found.bounds.upper == pytest.approx(primal, rel=1e-9)
    subset = np.arange(0, 60, 2)
    part = sample.part(subset)
    assert part.error == sample.error >= KernelSample(kernel, X[subset]).error
    np.testing.assert_allclose(
        part.scores(alpha[subset]), kernel.block(X[subset], X[subset]) @ alpha[subset], atol=1e-12
    )


def exact_sums(X, c):
    """|w|^2 and the scores of w = sum c_i x_i, in rational arithmetic."""
    rows = [[Fraction(value) for value in row] for row in X.tolist()]
    w = [
        sum(Fraction(a) * row[j] for a, row in zip(c.tolist(), rows, strict=True)) for j in range(X.shape[1])
    ]
    return sum(a * a for a in w), [sum(a * b for a, b in zip(w, row, strict=True)) for row in rows]


@pytest.mark.parametrize("store", [np.asarray, sp.csr_matrix], ids=["dense", "sparse"])
@pytest.mark.parametrize("few", [0, 2**17])
@pytest.mark.parametrize("cancel", [False, True])
def test_sums_of_rows_are_within_their_error(store, few, cancel, monkeypatch):
    """For w of the linear kernel and a multiple of it, including large coefficients that nearly cancel."""
    monkeypatch.setattr(kernel_certificates, "COMPENSATED_ENTRIES", few)
    rng = np.random.default_rng(8)
    X, c = 1e3 * rng.normal(size=(20, 4)) * (rng.random((20, 4)) < 0.8), 1e4 * rng.normal(size=20)
    if cancel:
        c[:10] = -np.linalg.lstsq(X[:10].T, X[10:].T @ c[10:])[0]
    sample = KernelSample(Linear(), store(X))
    one = sample.combinations(c[None])[0]
    for found in (one, sample.multiple(one, 0.7, 0.7 * c)):
        square, scores = exact_sums(X, found.c)
        off = [abs(float(Fraction(a) - b)) for a, b in zip(found.scores.tolist(), scores, strict=True)]
        assert (np.array(off) <= found.score_error).all()
        assert abs(float(Fraction(found.square) - square)) <= found.square_error
    by_values = KernelSample(Polynomial(1.0, 1), X).combinations(c[None])[0]  # the same kernel
    if cancel:
        assert one.score_error.max() < 1e-2 * by_values.score_error
        assert one.square_error < 1e-6 * by_values.square_error


def test_better_selects_the_smallest_gap_among_near_best_objectives():
    """Among points whose own objective or margin is close to the best, the one that proves the smallest gap."""
    point = KernelPoint(np.zeros(1), np.zeros(1), 0.0)
    for problem, ends in (
        (Problem("hinge", 1.0), lambda proved, other: (other, proved)),
        (Problem("hinge", np.inf), lambda proved, other: (1.0 / proved, 1.0 / other)),
    ):
        cases = ((4.0, 4.0), (2.0, 9.0), (2.001, 7.0), (2.1, 3.0), (np.nan, 1.0))
        for other in (1.0, 0.0) if not problem.hard else (1.0,):  # dual weights of 0 prove nothing
            found = [
                KernelBounds(
                    Bounds(*ends(proved, other), 0.0, 0.0), point, 1.0 / value if problem.hard else value
                )
                for value, proved in cases
            ]
            assert with_smallest_gap(problem, found) is found[2]
            # a larger lower bound outweighs a rounding error of the primal bound
            more = KernelBounds(Bounds(*ends(7.001, 1.9), 0.0, 0.0), point, found[2].value)
            assert with_smallest_gap(problem, [*found, more]) is more
            best = found[1]._replace(value=10.0 if problem.hard else 0.1)
            assert with_smallest_gap(problem, [*found, best]) is best


@pytest.mark.parametrize("kernel", [Linear(), Polynomial(1e-6, 5, 1.0)], ids=lambda k: k.name)
def test_integers_beyond_float32_are_exact_in_float64(kernel):
    X = np.random.default_rng(5).integers(0, 256, size=(40, 1000)).astype(float)
    rows = kernel.prepared(X)
    exact = kernel_in_80_bits(kernel, X)
    assert np.abs(kernel.block(rows, rows) - exact).max() <= kernel.error(rows) + 1e-300
    assert kernel.error(rows) < 0.1 * kernel.error(rows + 0.5)


@pytest.mark.parametrize("scale", [1e-153, 1e-120, 1e120])
def test_kernel_values_near_the_limits_of_float64_are_within_their_error(scale):
    """Including the smallest squares that are normal numbers: underflow costs no more than rounding."""
    X = np.random.default_rng(4).normal(size=(40, 7)) * scale
    kernel = Gaussian(0.3 / scale / scale)
    rows = kernel.prepared(X)
    assert np.abs(kernel.block(rows, rows) - kernel_in_80_bits(kernel, X)).max() <= kernel.error(rows)
    KernelSample(kernel, X)


def test_kernel_values_outside_their_range_are_refused():
    """The limits are accepted, the next numbers beyond them are not."""
    least, largest = VALUE_RANGE
    for size in VALUE_RANGE:
        assert KernelSample(Precomputed(), size * np.eye(2)).max_diagonal == size
    for size in (np.nextafter(least, 0.0), np.nextafter(largest, np.inf)):
        with pytest.raises(ValueError, match=r"in sums, if not before: .* scale the matrix"):
            KernelSample(Precomputed(), size * np.eye(2))
    assert KernelSample(Linear(), np.zeros((2, 3))).max_diagonal == 0.0  # zero rows do not count as underflow


def test_underflowing_products_do_not_overstate_the_margin():
    """For tiny coefficients |w|^2 = c'Kc underflows, and a quotient by it would exceed the margin."""
    hard, K, y = Problem("hinge", np.inf, intercept="none"), np.eye(3), np.ones(3)
    sample = KernelSample(Precomputed(), K)
    for size in np.geomspace(1e-163, 1e-155, 200):
        assert (
            KernelProblem(hard, sample, y, np.ones(y.size)).attained_margin(np.full(3, size), 0.0)
            <= 3.0**-0.5
        )
    assert KernelProblem(hard, sample, y, np.ones(y.size)).attained_margin(
        np.full(3, 1e-120), 0.0
    ) == pytest.approx(3.0**-0.5, rel=1e-12)
