"""Separability by kernel functions: against constructed truth or a simplex method in rational numbers."""

from __future__ import annotations

import re
from dataclasses import replace
from fractions import Fraction
from math import comb

import numpy as np
import pytest
import scipy.sparse as sp
from edge import monomials, simplex
from effort import examples, thorough

from maxmargin import (
    CertificateError,
    Inseparable,
    KernelMaxMarginClassifier,
    KernelSeparator,
    Undecided,
    separate,
)

SQUARE = np.array([[0.0, 0.0], [1.0, 1.0], [0.0, 1.0], [1.0, 0.0]])
XOR = [1, 1, 0, 0]


def random_labels(n, seed=1):
    """Gaussian rows of two columns with random labels, whose margins under a wide Gaussian kernel are tiny."""
    rng = np.random.default_rng(seed)
    return rng.standard_normal((n, 2)), rng.integers(0, 2, n)


class TestPolynomials:
    @thorough
    def test_verdicts_agree_with_those_of_the_monomials(self):
        """Undecided where only a combination of three or more rows proves that there is no separator."""
        rng = np.random.default_rng(0)
        for k in range(examples(24, 500)):
            d, degree = int(rng.integers(1, 4)), int(rng.integers(1, 4))
            lower, bias = bool(k % 2), bool(k % 3)
            n = int(rng.integers(4, 2 * comb(d + degree, degree) + 4))
            X, y = rng.integers(-4, 5, (n, d)).astype(float), rng.choice([-1.0, 1.0], n)
            y[:2] = 1.0, -1.0
            kernel = {"gamma": float(rng.choice([0.1, 1.0, 3.0])), "degree": degree, "coef0": lower * 0.7}
            verdict = separate(X, y, kernel="poly", bias=bias, tol=np.inf, **kernel)
            assert verdict.separable in (simplex(monomials(X, degree, lower), y, bias), None)
            verdict.verify(X, y)

    def test_equal_rows_are_a_proof(self):
        X = np.random.default_rng(0).standard_normal((30, 60))
        X[7] = X[3]
        y = np.arange(30) % 2 == 0
        assert separate(X, y, kernel="poly").separable  # rows 3 and 7 agree
        y[7] = not y[3]
        verdict = separate(X, y, kernel="poly")
        assert verdict.verify(X, y).support.tolist() == [3, 7]


class TestOtherKernels:
    def test_gaussian_kernel_separates_distinct_rows(self):
        X, y = random_labels(60)
        verdict = separate(X, y, kernel="rbf", gamma=2.0)
        assert isinstance(verdict, KernelSeparator)
        K = np.exp(-2.0 * ((X[:, None] - X) ** 2).sum(axis=2))
        c, signs = verdict.coefficients, np.where(y == 1, 1.0, -1.0)
        attained = (signs * (K @ c + verdict.b)).min() / np.sqrt(c @ K @ c)
        assert verdict.lo <= attained * (1 + 1e-12)  # n eps |c|'K|c| / c'Kc
        assert attained <= verdict.hi
        assert verdict.lo >= 0.99 * verdict.hi
        model = KernelMaxMarginClassifier(np.inf, gamma=2.0).fit(X, y)
        assert verdict.lo <= model.certificate_.upper
        assert model.certificate_.lower <= verdict.hi
        verdict.verify(sp.csr_matrix(X), y)
        assert separate(sp.csr_matrix(X), y, kernel="rbf", gamma=2.0).verify(X, y).lo >= 0.99 * verdict.lo
        for change in ({"lo": verdict.hi}, {"hi": 0.9 * verdict.lo}, {"b": verdict.b + 9.0}):
            with pytest.raises(CertificateError):
                replace(verdict, **change).verify(X, y)
        with pytest.raises(CertificateError, match="59"):
            verdict.verify(X[:-1], y[:-1])

    def test_margin_of_a_symmetric_square_lies_within_the_bounds(self):
        """By symmetry all four weights are the same: |w|^2 / 4 for f(x) = +-1."""
        verdict = separate(SQUARE.astype(np.float32), ["no", "no", "yes", "yes"], kernel="rbf", gamma=1.0)
        assert verdict.classes == ("no", "yes")
        assert "class 'yes' lies where sum c_i k(x_i, x) + b, of 4 rows" in str(verdict)
        e = np.exp(-1.0)
        assert verdict.lo <= (1.0 - 2.0 * e + e * e) ** 0.5 / 2.0 <= verdict.hi

    def test_only_equal_rows_prove_inseparability(self):
        X, y = np.vstack([SQUARE, SQUARE[2]]), [*XOR, 1]
        for kernel in ("rbf", "laplacian", lambda Z, X: np.exp(-((Z[:, None] - X) ** 2).sum(axis=2))):
            verdict = separate(X, y, kernel=kernel)
            assert isinstance(verdict, Inseparable)
            assert verdict.verify(X, y).support.tolist() == [2, 4]
            assert verdict.weights == (Fraction(1, 2), Fraction(1, 2))
            assert "the same to the kernel" in verdict.words()
        linear = separate(SQUARE, XOR, kernel="linear")
        assert type(linear) is type(separate(SQUARE, XOR))
        with pytest.raises(CertificateError, match="not 0"):  # a proof for one kernel is none for another
            replace(linear, kernel=separate(SQUARE, XOR, kernel="rbf").kernel).verify(SQUARE, XOR)

    @pytest.mark.parametrize("degree", [1, 2])
    def test_precomputed_matrices_agree_with_kernels(self, degree):
        rng = np.random.default_rng(2)
        X, y = rng.integers(-5, 6, (40, 2)).astype(float), rng.integers(0, 2, 40)
        K = (X @ X.T + 1.0) ** degree  # integers: exact
        verdict = separate(K, y, kernel="precomputed")
        assert verdict.separable is simplex(monomials(X, degree, True), 2.0 * y - 1.0, True)
        verdict.verify(K, y)
        # the rows of the matrix, without a kernel, have an exact verdict
        expected = simplex(monomials(X[:12], degree, True), 2.0 * y[:12] - 1.0, True)
        assert separate(K[:12, :12], y[:12]).separable is expected
        gaussian = np.exp(-((X[:, None] - X) ** 2).sum(axis=2))
        equal = separate(gaussian, y, kernel="precomputed")
        assert np.array_equal(*X[equal.support])  # integers: some rows are equal

    @pytest.mark.parametrize(
        ("options", "words"),
        [
            ({"kernel": "sigmoid", "gamma": 1.0, "coef0": -1.0}, "not positive semidefinite"),
            ({"kernel": "precomputed"}, "square"),
            ({"kernel": "poly", "degree": 400, "gamma": 1e6}, "beyond float64"),
            ({"kernel": lambda Z, X: Z}, "two matrices"),
        ],
    )
    def test_invalid_options_are_refused_in_one_sentence(self, options, words):
        with pytest.raises(ValueError, match=words) as error:
            separate(SQUARE, XOR, **options)
        assert "\n" not in str(error.value)
        with pytest.raises(ValueError, match="toarray"):
            separate(sp.csr_matrix(SQUARE), XOR, kernel="precomputed")


class TestTermination:
    @pytest.mark.parametrize(
        ("scale", "options", "words"),
        [
            (1.0, {"kernel": "poly", "max_time": 1e-9}, "max_time"),
            pytest.param(
                1.0, {"kernel": "rbf", "gamma": 1, "max_time": 300}, "float64", marks=pytest.mark.slow
            ),
            (1e-9, {"kernel": "rbf", "gamma": 1.0}, "the margins from zero; .* only equal rows"),
            (1.0, {"kernel": "precomputed"}, "only equal rows"),
        ],
    )
    def test_margins_beyond_float64_and_deadlines_leave_it_undecided(self, scale, options, words):
        n = 16 if options["kernel"] == "precomputed" else 40
        X, y = scale * np.linspace(0.0, 1.0, n)[:, None], np.arange(n) % 2
        X = np.exp(-((X - X.T) ** 2)) if options["kernel"] == "precomputed" else X
        verdict = separate(X, y, **options)
        assert isinstance(verdict.verify(X, y), Undecided)
        assert verdict.lo == 0.0 <= verdict.hi
        assert re.search(words, verdict.reason)
        assert verdict.seconds < 150.0  # it ends early
        with pytest.raises(CertificateError, match="upper bound"):
            replace(verdict, hi=-1.0).verify(X, y)
