"""Sums against rational arithmetic, to n eps."""

import math
from fractions import Fraction

import numpy as np
import pytest
import scipy.sparse as sp

from maxmargin.numerics import sums
from maxmargin.numerics.sums import Plain, exact_products, exact_total

EPS = Fraction(np.finfo(float).eps)


def assert_error_is_bounded(computed, a, b):
    """The error of sum a_k b_k is within n eps sum |a_k b_k|, and within the stated bound."""
    products = [Fraction(p) * Fraction(q) for p, q in zip(a, b, strict=True)]
    exact, size, n = sum(products, Fraction(0)), sum(map(abs, products), Fraction(0)), len(a) + 2
    error = abs(Fraction(float(computed)) - exact)
    assert error <= n * EPS * size
    stated = Plain.error(float(size), len(a))
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
def test_matrix_vector_products_are_within_their_error(block, monkeypatch):
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
                (Plain.scores(stored, w), values, w.tolist()),
                (Plain.combine(stored, c), values.T, c.tolist()),
            ):
                for one, row in zip(found, exact.tolist(), strict=True):
                    assert_error_is_bounded(one, row, factors)


def test_products_that_underflow_are_within_the_stated_error():
    lost = 3 * Fraction(1e-200) ** 2 - Fraction(
        float(Plain.scores(np.full((1, 3), 1e-200), np.full(3, 1e-200))[0])
    )
    assert 0 < lost <= Fraction(float(Plain.error(0.0, 3)))


def test_exact_totals_are_rounded_once_or_propagate():
    rng = np.random.default_rng(0)
    values = rng.normal(size=3000) * 10.0 ** rng.uniform(-320.0, 250.0, 3000)
    for v in (values, rng.permutation(np.concatenate([values, -values[3:]])), np.zeros(5)):
        assert exact_total(v) == math.fsum(v.tolist())


@pytest.mark.parametrize("store", [np.asarray, sp.csr_matrix, np.float32])
def test_exact_products_are_the_exact_sums_rounded_once(store):
    """Terms cancel to the last digit; rational numbers give the sums."""
    rng = np.random.default_rng(0)
    M = store((rng.normal(size=(9, 7)) * 10.0 ** rng.integers(-8, 9, 7)).astype(np.float32).astype(float))
    c, b = rng.normal(size=7) * 10.0 ** rng.integers(-8, 9, 7), 1e8
    rows = M.toarray() if sp.issparse(M) else np.asarray(M, float)
    exact = [
        float(sum((Fraction(x) * Fraction(z) for x, z in zip(row.tolist(), c, strict=True)), Fraction(b)))
        for row in rows
    ]
    assert exact_products(M, c, b).tolist() == exact
