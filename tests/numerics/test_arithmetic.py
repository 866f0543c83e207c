"""Sums against rational arithmetic: plain sums to n eps, compensated sums to twice the digits."""

import math
from fractions import Fraction

import numpy as np
import pytest
import scipy.sparse as sp
from effort import examples, thorough
from hypothesis import given, settings
from hypothesis import strategies as st

from maxmargin.numerics import sums
from maxmargin.numerics.sums import Compensated, Plain

EPS = Fraction(np.finfo(float).eps)
both = pytest.mark.parametrize("arithmetic", [Plain, Compensated])


def assert_error_is_bounded(arithmetic, computed, a, b, terms=None):
    """The error of sum a_k b_k is within n eps sum |a_k b_k|, or a square of it, and within the stated bound."""
    products = [Fraction(p) * Fraction(q) for p, q in zip(a, b, strict=True)]
    exact, size, n = sum(products, Fraction(0)), sum(map(abs, products), Fraction(0)), len(a) + 2
    error = abs(Fraction(float(computed)) - exact)
    twice_the_digits = EPS * abs(exact) + (n * EPS) ** 2 * size
    assert error <= (twice_the_digits if arithmetic is Compensated else n * EPS * size)
    stated = arithmetic.error(abs(float(computed)), float(size), len(a) if terms is None else terms)
    assert error <= Fraction(float(stated)) or not np.isfinite(stated)


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
    X[3] = X[:, 5] = 0.0
    X *= 10.0 ** rng.uniform(-8, 8, (len(X), 1))
    narrow = X.astype(np.float32)
    yield from ((X, X), (X, sp.csr_matrix(X)), (X, np.asfortranarray(X)), (X, np.repeat(X, 2, 1)[:, ::2]))
    yield from ((narrow.astype(float), narrow), (narrow.astype(float), sp.csr_matrix(narrow)))


@pytest.mark.parametrize("block", [None, 1, 50])
@both
def test_matrix_vector_products_are_within_their_error(arithmetic, block, monkeypatch):
    if block is not None:
        monkeypatch.setattr(sums, "_BLOCK", block)
    rng = np.random.default_rng(0)
    for condition in (1.0, 1e8, 1e16, 1e22):
        for values, stored in matrices(rng):
            w, c = rng.normal(size=values.shape[1]), rng.normal(size=values.shape[0])
            # a row and a column nearly cancel
            w[-1] = -(values[1, :-1] @ w[:-1]) / values[1, -1] * (1.0 + 1.0 / condition)
            c[-1] = -(values[:-1, 1] @ c[:-1]) / values[-1, 1] * (1.0 + 1.0 / condition)
            for found, exact, factors in (
                (arithmetic.scores(stored, w), values, w.tolist()),
                (arithmetic.combine(stored, c), values.T, c.tolist()),
            ):
                for one, row in zip(found, exact.tolist(), strict=True):
                    assert_error_is_bounded(arithmetic, one, row, factors)


@pytest.mark.parametrize("n", [0, 1, 1025, 6145])
@both
def test_long_sums_are_added_in_parts(arithmetic, n):
    """The number of terms in the error bound is that of a part plus the number of parts."""
    rng = np.random.default_rng(3)
    for column in (np.full(n, 0.1), np.sort(rng.exponential(size=n))):
        c = rng.uniform(0.5, 1.0, n)
        down, across = column[:, None], column[None, :]
        for found, factors, terms in (
            (arithmetic.combine(down, c)[0], c, arithmetic.terms(down, n, 0)),
            (arithmetic.scores(across, c)[0], c, arithmetic.terms(across, n, 1)),
            (arithmetic.total(column), np.ones(n), arithmetic.terms(column, n, 0)),
        ):
            assert_error_is_bounded(arithmetic, found, column.tolist(), factors.tolist(), terms)
            assert terms <= (1026 + n // 1000 if arithmetic is Plain else n)
    few, X = 3, np.ones((5000, 3))
    assert arithmetic.terms(X, few, 0) == few
    for stored in (sp.csr_matrix(X), X.astype(np.float32)):  # summed sequentially
        assert arithmetic.terms(stored, 5000, 0) == 5000


@pytest.mark.parametrize("n", [1025, 40_000])
def test_long_compensated_totals_are_rounded_once(n):
    """Of numbers of all sizes, which cancel, and where parts of them would overflow."""
    rng = np.random.default_rng(n)
    values = rng.normal(size=n) * 10.0 ** rng.uniform(-320.0, 250.0, n)
    cancelling = rng.permutation(np.concatenate([values, -values[3:]]))
    tiny, huge = np.full(n, 5e-324), np.full(n, 1e303)
    for v in (values, cancelling, tiny, huge, np.zeros(n)):
        assert Compensated.total(v) == math.fsum(v.tolist())
    with np.errstate(over="ignore", invalid="ignore"):
        assert Compensated.total(np.full(n, 1e308)) == np.inf
        assert np.isnan(Compensated.total(np.r_[values, np.inf, np.nan]))


numbers = st.lists(st.floats(-1e60, 1e60).filter(lambda v: v == 0.0 or abs(v) > 1e-60), max_size=30)


@thorough
@settings(max_examples=examples(20, 500))
@given(numbers, st.randoms(use_true_random=False))
def test_compensated_totals_are_within_their_error(values, random):
    """Of any numbers, and of v and -v in random order and an additional 1."""
    mixed = [*values, *(-v for v in values), 1.0]
    random.shuffle(mixed)
    for some in (values, mixed):
        v = np.array(some)
        assert_error_is_bounded(Compensated, Compensated.total(v), some, [1.0] * len(some))
        assert_error_is_bounded(Compensated, Compensated.square(v), some, some)


def test_plain_sums_fail_the_compensated_bound():
    """The cancelling data are difficult enough to distinguish the arithmetics."""
    a, b = cancelling(np.random.default_rng(2), 40, 1e16)
    with pytest.raises(AssertionError):
        assert_error_is_bounded(Compensated, Plain.scores(a[None, :], b)[0], a.tolist(), b.tolist())


@both
def test_extreme_numbers_keep_their_digits_or_propagate(arithmetic):
    """Columns of 1e-150 beside 1e150; results that overflow are not finite, since a finite bound would be invalid."""
    X = np.array([[1e150, 1e-150], [-1e150, 3e-150], [2e150, 5e-150]])
    for stored in (X, sp.csr_matrix(X)):
        assert arithmetic.combine(stored, np.arange(1.0, 4.0)) == pytest.approx(
            [5e150, 22e-150], rel=1e-15, abs=0.0
        )
    with np.errstate(all="ignore"):
        for invalid in (np.inf, np.nan):
            v = np.array([1.0, invalid])
            found = arithmetic.total(v), arithmetic.square(v), arithmetic.scores(np.array([[1.0, 2.0]]), v)[0]
            assert not np.isfinite(found).any()
        assert not np.isfinite(arithmetic.square(np.array([1e200, 1e200])))
