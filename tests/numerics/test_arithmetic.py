"""Sums against rational arithmetic: plain sums to n eps, compensated sums to twice the digits."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st

import maxmargin.numerics.sums
from maxmargin.numerics.sums import Compensated, Plain

EPS = Fraction(np.finfo(float).eps)
ARITHMETICS = [Plain, Compensated]


def exact_sum(a, b):
    """(sum a_k b_k, sum |a_k b_k|), exactly."""
    terms = [Fraction(p) * Fraction(q) for p, q in zip(a, b, strict=True)]
    return sum(terms, Fraction(0)), sum((abs(t) for t in terms), Fraction(0))


def assert_error_is_bounded(arithmetic, computed, a, b):
    """Assert that the error of sum a_k b_k is within the bound of the arithmetic."""
    exact, size = exact_sum(a, b)
    n = len(a) + 2
    error = abs(Fraction(float(computed)) - exact)
    if arithmetic is Compensated:
        assert error <= EPS * abs(exact) + (n * EPS) ** 2 * size
    else:
        assert error <= n * EPS * size
    error_bound = arithmetic.error(abs(float(computed)), float(size), len(a))
    assert error <= Fraction(float(error_bound)) or not np.isfinite(error_bound)


def cancelling(rng, n, condition):
    """Two vectors with products near 1 in magnitude and a sum near 1 / condition."""
    a, b = rng.normal(size=n), rng.normal(size=n)
    half = n // 2
    a[half : 2 * half], b[half : 2 * half] = -a[:half], b[:half]
    b[half : 2 * half] *= 1.0 + rng.normal(size=half) / condition
    order = rng.permutation(n)
    return a[order], b[order]


def matrices(rng):
    """Rows with cancellation of every degree, in every storage: (X as exact float64 values, stored)."""
    X = np.vstack([cancelling(rng, 24, 10.0**k)[0] for k in range(0, 18, 2)])
    X[3] = 0.0
    X[:, 5] = 0.0
    X *= 10.0 ** rng.uniform(-8, 8, (len(X), 1))
    narrow = X.astype(np.float32)
    yield X, X
    yield X, sp.csr_matrix(X)
    yield narrow.astype(float), narrow
    yield narrow.astype(float), sp.csr_matrix(narrow)


@pytest.mark.parametrize("block", [None, 1, 50])
@pytest.mark.parametrize("arithmetic", ARITHMETICS)
def test_matrix_vector_products_are_within_their_error(arithmetic, block, monkeypatch):
    if block is not None:
        monkeypatch.setattr(maxmargin.numerics.sums, "_BLOCK", block)
    rng = np.random.default_rng(0)
    for condition in (1.0, 1e8, 1e16, 1e22):
        for values, stored in matrices(rng):
            n, d = values.shape
            # weights for which a row and a column nearly cancel
            w = rng.normal(size=d)
            w[-1] = -(values[1, :-1] @ w[:-1]) / values[1, -1] * (1.0 + 1.0 / condition)
            c = rng.normal(size=n)
            c[-1] = -(values[:-1, 1] @ c[:-1]) / values[-1, 1] * (1.0 + 1.0 / condition)
            scores, combined = arithmetic.scores(stored, w), arithmetic.combine(stored, c)
            assert scores.dtype == combined.dtype == np.float64
            assert (scores.shape, combined.shape) == ((n,), (d,))
            for i in range(n):
                assert_error_is_bounded(arithmetic, scores[i], values[i].tolist(), w.tolist())
            for j in range(d):
                assert_error_is_bounded(arithmetic, combined[j], values[:, j].tolist(), c.tolist())


@pytest.mark.parametrize("arithmetic", ARITHMETICS)
def test_totals_and_squares_are_within_their_error(arithmetic):
    rng = np.random.default_rng(1)
    for k in range(60):
        a, b = cancelling(rng, 40, 10.0 ** (k % 30))
        v = np.concatenate([a * b, -b * a, rng.normal(size=3) * 10.0 ** -(k % 30)])
        assert_error_is_bounded(arithmetic, arithmetic.total(v), v.tolist(), [1.0] * v.size)
        assert_error_is_bounded(arithmetic, arithmetic.square(v), v.tolist(), v.tolist())


@pytest.mark.parametrize("arithmetic", ARITHMETICS)
@pytest.mark.parametrize("n", [0, 1, 1025, 32_768, 32_769, 100_000])
def test_totals_of_any_length_are_within_their_error(arithmetic, n):
    """For sums in one or more parts: the error is within the bound for the number of terms."""
    rng = np.random.default_rng(4)
    a, b = rng.exponential(size=n), rng.normal(size=n)
    products = a * b
    found = arithmetic.total(products)
    exact, size = exact_sum(products.tolist(), [1.0] * n)
    error_bound = arithmetic.error(abs(found), float(size), arithmetic.terms(products, n, 0))
    assert abs(Fraction(found) - exact) <= Fraction(float(error_bound))


@pytest.mark.parametrize("block", [None, 30])
@pytest.mark.parametrize("arithmetic", ARITHMETICS)
def test_long_sums_are_added_in_parts(arithmetic, block, monkeypatch):
    """The number of terms in the error bound is that of a part plus the number of parts."""
    n = 60_000 if block is None else 1000
    if block is not None:
        monkeypatch.setattr(maxmargin.numerics.sums, "TERMS", block)
    rng = np.random.default_rng(3)
    for column in (np.full(n, 0.1), rng.normal(size=n), np.sort(rng.exponential(size=n))):
        c = rng.uniform(0.5, 1.0, n)
        exact, size = exact_sum(column.tolist(), c.tolist())
        column_matrix, row_matrix = column[:, None], column[None, :]
        sums = [
            (arithmetic.combine(column_matrix, c)[0], arithmetic.terms(column_matrix, n, 0)),
            (arithmetic.scores(row_matrix, c)[0], arithmetic.terms(row_matrix, n, 1)),
        ]
        for found, terms in sums:
            error_bound = arithmetic.error(abs(found), float(size), terms)
            assert abs(Fraction(float(found)) - exact) <= Fraction(float(error_bound))
            assert terms <= (n // 50 if arithmetic is Plain and block is None else n)
        total_of_c = exact_sum(c.tolist(), [1.0] * n)[0]
        found, terms = arithmetic.total(c), arithmetic.terms(c, n, 0)
        error_bound = arithmetic.error(found, float(total_of_c), terms)
        assert abs(Fraction(found) - total_of_c) <= Fraction(float(error_bound))


@pytest.mark.parametrize(
    "shape", [(1, 3), (5, 3), (1024, 5), (2048, 1), (1025, 1500), (3000, 2), (1100, 0), (7, 0)]
)
@pytest.mark.parametrize("arithmetic", ARITHMETICS)
def test_products_do_not_depend_on_shape_and_memory_layout(arithmetic, shape):
    """Row-major, column-major, strided, sparse and float32: the same values, in newly allocated arrays."""
    rng = np.random.default_rng(4)
    base = rng.normal(size=(2 * shape[0], 2 * shape[1])).astype(np.float32)
    X = np.ascontiguousarray(base[::2, ::2], dtype=float)
    w, c = rng.normal(size=shape[1]), rng.normal(size=shape[0])
    for variant in (
        X,
        np.asfortranarray(X),
        base.astype(float)[::2, ::2],
        sp.csr_array(X),
        X.astype(np.float32),
    ):
        scores, combined = arithmetic.scores(variant, w, 0.3), arithmetic.combine(variant, c)
        np.testing.assert_allclose(scores, X @ w + 0.3, rtol=0.0, atol=1e-12 * (1.0 + shape[1]))
        np.testing.assert_allclose(combined, c @ X, rtol=0.0, atol=1e-12 * (1.0 + shape[0]))
        assert scores.flags.writeable
        assert not np.shares_memory(combined, c)


def test_term_counts_of_short_and_sparse_sums():
    X = np.ones((5000, 3))
    assert Plain.terms(X, 7, 0) == 7
    assert Plain.terms(X, 3, 1) == 3
    assert Plain.terms(sp.csr_matrix(X), 5000, 0) == 5000  # summed sequentially
    assert Plain.terms(X.astype(np.float32), 5000, 0) == 5000


numbers = st.lists(st.floats(-1e60, 1e60).filter(lambda v: v == 0.0 or abs(v) > 1e-60), max_size=30)


@given(numbers)
def test_compensated_totals_are_within_their_error(values):
    v = np.array(values)
    assert_error_is_bounded(Compensated, Compensated.total(v), values, [1.0] * len(values))
    assert_error_is_bounded(Compensated, Compensated.square(v), values, values)


@given(numbers.filter(bool), st.randoms(use_true_random=False))
def test_compensated_totals_of_cancelling_terms(values, random):
    """v and -v in random order, and an additional 1."""
    mixed = [*values, *(-v for v in values), 1.0]
    random.shuffle(mixed)
    assert_error_is_bounded(Compensated, Compensated.total(np.array(mixed)), mixed, [1.0] * len(mixed))


def test_plain_sums_fail_the_compensated_bound():
    """The cancelling data are difficult enough to distinguish the arithmetics."""
    a, b = cancelling(np.random.default_rng(2), 40, 1e16)
    with pytest.raises(AssertionError):
        assert_error_is_bounded(Compensated, Plain.scores(a[None, :], b)[0], a.tolist(), b.tolist())


@pytest.mark.parametrize("arithmetic", ARITHMETICS)
def test_sums_of_zeros_are_zero(arithmetic):
    for X in (np.zeros((3, 2)), sp.csr_matrix((3, 2)), np.zeros((3, 2), np.float32)):
        assert arithmetic.scores(X, np.ones(2)).tolist() == [0.0] * 3
        assert arithmetic.combine(X, np.ones(3)).tolist() == [0.0] * 2
    assert arithmetic.total(np.zeros(0)) == 0.0
    assert arithmetic.square(np.zeros(0)) == 0.0


@pytest.mark.parametrize("arithmetic", ARITHMETICS)
def test_small_columns_keep_their_digits_beside_large_ones(arithmetic):
    """A column of 1e-150 beside a column of 1e150."""
    X = np.array([[1e150, 1e-150], [-1e150, 3e-150], [2e150, 5e-150]])
    for stored in (X, sp.csr_matrix(X)):
        combined = arithmetic.combine(stored, np.array([1.0, 2.0, 3.0]))
        assert combined == pytest.approx([5e150, 22e-150], rel=1e-15)


@pytest.mark.parametrize("arithmetic", ARITHMETICS)
def test_infinities_and_nan_propagate(arithmetic):
    """Results that overflow are not finite, since a finite bound would be invalid."""
    with np.errstate(all="ignore"):
        for invalid in (np.inf, np.nan):
            assert not np.isfinite(arithmetic.total(np.array([1.0, invalid])))
            assert not np.isfinite(arithmetic.square(np.array([1.0, invalid])))
            assert not np.isfinite(arithmetic.scores(np.array([[1.0, 2.0]]), np.array([1.0, invalid]))[0])
        assert not np.isfinite(arithmetic.square(np.array([1e200, 1e200])))
