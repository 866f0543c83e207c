"""Norms and links: the statements of algorithms.md 0.1, for every exponent and scale."""

import math
from decimal import Decimal

import numpy as np
import pytest
import scipy.sparse as sp

from maxmargin.numerics.norms import norm, row_norms
from maxmargin.problem.problem import dual_exponent

EXPONENTS = [1.0, 1.01, 1.5, 2.0, 2.5, 3.0, 10.0, 100.0, math.inf]
INNER = [r for r in EXPONENTS if 1.0 < r < math.inf]


def link(x, r):
    """The gradient of 1/2 |x|_r^2: that of q maps weights to sums of patterns, that of p is its inverse."""
    return norm(x, r) * subgradient(x, r)


def subgradient(x, r):
    """A subgradient g with g.x = |x|_r and dual norm 1; 0 at 0."""
    top = float(np.abs(x).max(initial=0.0))
    if top == 0.0:
        return np.zeros_like(x, dtype=float)
    if np.isinf(r):
        largest = np.abs(x) == top
        return np.where(largest, np.sign(x), 0.0) / np.count_nonzero(largest)
    u = np.abs(x) / top
    return np.sign(x) * (u / float(np.sum(u**r)) ** (1.0 / r)) ** (r - 1.0)


def vectors(seed: int = 0):
    rng = np.random.default_rng(seed)
    for scale in (1e-150, 1e-8, 1.0, 1e8, 1e150):
        yield rng.normal(size=12) * scale
        yield rng.normal(size=12) * scale * 10.0 ** rng.uniform(-12, 0, 12)
        yield np.where(rng.random(12) < 0.5, 0.0, rng.normal(size=12) * scale)


@pytest.mark.parametrize("p", EXPONENTS)
def test_dual_exponents_are_conjugate(p):
    q = dual_exponent(p)
    assert dual_exponent(q) == pytest.approx(p, rel=1e-12)
    assert 1.0 / p + 1.0 / q == pytest.approx(1.0)


@pytest.mark.parametrize("p", [0.5, 0.0, -1.0, math.nan])
def test_numbers_below_one_are_refused_as_exponents(p):
    with pytest.raises(ValueError, match="from 1 to inf"):
        dual_exponent(p)


@pytest.mark.parametrize("r", EXPONENTS)
def test_norms_equal_decimal_arithmetic(r):
    for x in vectors():
        big = [abs(Decimal(value)) for value in x.tolist()]  # without overflow
        expected = max(big) if math.isinf(r) else sum(v ** Decimal(r) for v in big) ** (1 / Decimal(r))
        assert norm(x, r) == pytest.approx(float(expected), rel=1e-13)


@pytest.mark.parametrize("r", EXPONENTS)
def test_row_norms_of_dense_and_sparse_rows(r):
    X = np.array([*vectors(1), np.zeros(12)])
    expected = [norm(x, r) for x in X]
    np.testing.assert_allclose(row_norms(X, r), expected, rtol=1e-13)
    np.testing.assert_allclose(row_norms(sp.csr_matrix(X), r), expected, rtol=1e-13)


@pytest.mark.parametrize("r", EXPONENTS)
def test_subgradients_attain_the_norm_and_have_dual_norm_one(r):
    for x in vectors(2):
        g = subgradient(x, r)
        assert float(np.sum(g * x)) == pytest.approx(norm(x, r), rel=1e-12)
        assert norm(g, dual_exponent(r)) == pytest.approx(1.0, rel=1e-12)
    assert not subgradient(np.zeros(3), r).any()


@pytest.mark.parametrize("p", EXPONENTS)
def test_link_preserves_norms_and_is_homogeneous(p):
    q = dual_exponent(p)
    for w in vectors(3):
        f = link(w, q)
        assert norm(f, p) == pytest.approx(norm(w, q), rel=1e-12)
        assert float(np.sum((w / norm(w, q)) * f)) == pytest.approx(norm(w, q), rel=1e-12)
        np.testing.assert_allclose(link(4.0 * w, q), 4.0 * f, rtol=1e-13)


@pytest.mark.parametrize("p", [1.5, 2.0, 3.0, 10.0])
def test_links_of_dual_exponents_are_inverse(p):
    for w in vectors(4):
        size = np.abs(w).max()
        np.testing.assert_allclose(link(link(w, dual_exponent(p)), p), w, rtol=1e-10, atol=1e-12 * size)


@pytest.mark.parametrize("p", ["2", None, 0.5, np.nan])
def test_invalid_exponents_are_refused(p):
    with pytest.raises(ValueError, match="an exponent from 1 to inf"):
        dual_exponent(p)


@pytest.mark.parametrize("p", INNER)
def test_hoelder_inequality(p):
    q, rng = dual_exponent(p), np.random.default_rng(6)
    for _ in range(50):
        w, x = rng.normal(size=8), rng.normal(size=8)
        assert abs(w @ x) <= norm(w, q) * norm(x, p) * (1 + 1e-14)


@pytest.mark.parametrize("p", [2.0, 2.5, 4.0, 30.0])
def test_half_the_squared_norm_satisfies_the_smoothness_lemma(p):
    """G(theta + a) <= G(theta) + f^-1(theta).a + (p - 1) / 2 |a|_p^2."""
    rng = np.random.default_rng(7)
    for _ in range(200):
        theta, a = rng.normal(size=7), rng.normal(size=7) * 10.0 ** rng.uniform(-3, 1)
        left = 0.5 * norm(theta + a, p) ** 2
        right = 0.5 * norm(theta, p) ** 2 + link(theta, p) @ a + 0.5 * (p - 1.0) * norm(a, p) ** 2
        assert left <= right * (1 + 1e-13)
