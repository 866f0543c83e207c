"""Norms for every exponent and scale, against decimal arithmetic."""

import math
from decimal import Decimal

import numpy as np
import pytest
import scipy.sparse as sp

from maxmargin.numerics.sums import norm, row_norms
from maxmargin.problem.problem import dual_exponent

EXPONENTS = [1.0, 1.01, 1.5, 2.0, 2.5, 10.0, 100.0, math.inf]


def vectors(seed):
    rng = np.random.default_rng(seed)
    for scale in (1e-158, 1.0, 1e160):  # squares of the first lose digits, those of the last overflow
        yield rng.normal(size=12) * scale
        yield rng.normal(size=12) * scale * 10.0 ** rng.uniform(-12, 0, 12)
        yield np.where(rng.random(12) < 0.5, 0.0, rng.normal(size=12) * scale)


def test_dual_exponents_are_conjugate():
    for p in EXPONENTS:
        # p - 1 of 1.01 loses two digits; the sum has four roundings
        assert dual_exponent(dual_exponent(p)) == pytest.approx(p, rel=1e-13, abs=0.0)
        assert 1.0 / p + 1.0 / dual_exponent(p) == pytest.approx(1.0, abs=1e-15)


@pytest.mark.parametrize("r", EXPONENTS)
def test_norms_equal_decimal_arithmetic(r):
    """Of vectors, and of dense and sparse rows; 12 powers of a few units in the last place: 12 eps = 3e-15."""
    X, expected = np.array([*vectors(0), np.zeros(12)]), []
    for x in X:
        big = [abs(Decimal(value)) for value in x.tolist()]  # without overflow
        exact = max(big) if math.isinf(r) else sum(v ** Decimal(r) for v in big) ** (1 / Decimal(r))
        assert norm(x, r) == pytest.approx(float(exact), rel=5e-15, abs=0.0)
        expected.append(float(exact))
    for rows in (X, sp.csr_matrix(X)):
        np.testing.assert_allclose(row_norms(rows, r), expected, rtol=5e-15)
