"""Separability by kernel functions: against constructed truth or a simplex method in rational numbers."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from itertools import combinations_with_replacement
from math import comb, prod

import numpy as np
import pytest
import scipy.sparse as sp
from edge import cancels, simplex
from sklearn.metrics.pairwise import pairwise_kernels

from maxmargin import CertificateError, Inseparable, KernelMaxMarginClassifier, Separable, Undecided, separate
from maxmargin.certificates import feature_map
from maxmargin.certificates.feature_map import MonomialRows, dimension
from maxmargin.certificates.separators import KernelSeparator, PolynomialSeparator
from maxmargin.kernels.functions import Gaussian, Linear, Polynomial
from maxmargin.separability import kernel as kernel_separation

SQUARE = np.array([[0.0, 0.0], [1.0, 1.0], [0.0, 1.0], [1.0, 0.0]])
XOR = [1, 1, 0, 0]


def monomials(X, degree, lower):
    """All monomials, exact for integers."""
    X = np.hstack([X, np.ones((len(X), 1))]) if lower else X
    exponents = list(combinations_with_replacement(range(X.shape[1]), degree))
    return np.array([[prod(row[j] for j in chosen) for chosen in exponents] for row in X.tolist()])


class TestPolynomials:
    @pytest.mark.parametrize("seed", range(4))
    def test_verdicts_equal_those_of_the_monomials(self, seed):
        rng = np.random.default_rng(seed)
        kinds = set()
        for k in range(30):
            d, degree = int(rng.integers(1, 4)), int(rng.integers(1, 4))
            lower, bias = bool(k % 2), bool(k % 3)
            n = int(rng.integers(4, 2 * comb(d + degree, degree) + 4))
            X = rng.integers(-4, 5, (n, d)).astype(float)
            y = rng.choice([-1.0, 1.0], n)
            y[:2] = 1.0, -1.0
            gamma, coef0 = float(rng.choice([0.1, 1.0, 3.0])), float(lower) * 0.7
            verdict = separate(
                X, y, kernel="poly", gamma=gamma, degree=degree, coef0=coef0, bias=bias, tol=np.inf
            )
            truth = simplex(monomials(X, degree, lower), y, bias)
            assert verdict.separable is truth
            verdict.verify(X, y)
            kinds.add((truth, lower, bias))
            if isinstance(verdict, Inseparable):
                alpha = dict(zip(verdict.support.tolist(), verdict.weights, strict=True))
                # a combination of feature vectors is zero if and only if its squared length is, in rational numbers
                signed = {i: int(y[i]) * weight for i, weight in alpha.items()}
                square = sum(
                    a
                    * c
                    * (
                        Fraction(gamma)
                        * sum(Fraction(u) * Fraction(v) for u, v in zip(X[i], X[j], strict=True))
                        + Fraction(coef0)
                    )
                    ** degree
                    for i, a in signed.items()
                    for j, c in signed.items()
                )
                assert square == 0
                assert not bias or sum(signed.values()) == 0
                assert cancels(monomials(X, degree, lower), y, alpha, bias)
                assert len(alpha) <= dimension(verdict.kernel, d) + 1 + bias
        assert len(kinds) >= 6

    def test_circles_need_degree_two(self):
        rng = np.random.default_rng(0)
        X = rng.standard_normal((200, 2))
        y = (X**2).sum(axis=1) < 1.2
        for matrix in (X, sp.csr_matrix(X)):
            separator = separate(matrix, y, kernel="poly", degree=2)
            assert isinstance(separator, KernelSeparator)
            assert 0.0 < separator.lo <= separator.hi <= 1.02 * separator.lo
            assert separator.verify(X, y) is separator
            assert separate(matrix, y).separable is False
            outlier = separate(matrix, np.arange(200) == 0, kernel="poly", degree=2, bias=False)
            assert outlier.separable == simplex(
                monomials(X, 2, False), 2.0 * (np.arange(200) == 0) - 1.0, False
            )

    def test_margins_below_float64_kernel_values_are_decided_exactly(self):
        """Points on a line: the separating cubic is as flat as the last digits of its values."""
        x = 1.0 + np.array([-4.0, -3.0, -2.0, -1.0, 0.0, 1.0, 2.0, 3.0]) * 2.0**-14
        y = np.array([0, 0, 1, 1, 1, 1, 0, 0])  # a parabola
        verdict = separate(x[:, None], y, kernel="poly", degree=3, gamma=1.0, coef0=1.0, tol=np.inf)
        assert isinstance(verdict, PolynomialSeparator)
        assert verdict.lo == 0.0 < verdict.hi < 1e-6
        verdict.verify(x[:, None], y)
        weights = [float(value) for value in verdict.weights.values()]
        assert len(weights) == 4
        assert "digits" in str(verdict)
        with pytest.raises(CertificateError, match="not on its side"):
            replace(verdict, b=verdict.b - 10**60).verify(x[:, None], y)
        y[4] = 0  # four changes of sign need a quartic
        assert separate(x[:, None], y, kernel="poly", degree=3, gamma=1.0, coef0=1.0).separable is False

    def test_images_equal_the_monomials(self):
        rng = np.random.default_rng(3)
        X, y = rng.integers(-9, 10, (5, 3)) / 4.0, np.array([1.0, -1.0, 1.0, -1.0, -1.0])
        for lower in (False, True):
            rows = MonomialRows(X, y, 3, lower, True)
            kernel = Polynomial(0.5, 3, float(lower))
            assert rows.d == dimension(kernel, 3) == len(feature_map.image(kernel, X + 0.1, 0)[0])
            for i in range(5):
                found = dict(zip(*feature_map.image(kernel, X, i), strict=True))
                indices, values = rows.row(i)
                for k, value in zip(indices, values, strict=True):
                    if k < rows.d:
                        monomial, power = rows.column(k)
                        assert int(y[i]) * value == Fraction(*found.pop(monomial)) * Fraction(2) ** power
                        assert y[i] * value / 2.0**rows.bits == pytest.approx(rows.scaled[i, k], rel=1e-14)
                assert not any(Fraction(*ratio) for ratio in found.values())
            assert np.abs(rows.scaled).max() <= 1.0

    def test_many_monomials_are_handled_symbolically(self):
        assert dimension(Polynomial(1.0, 3), 60) == np.inf
        X = np.random.default_rng(0).standard_normal((30, 60))
        X[7] = X[3]
        y = np.arange(30) % 2 == 0
        equal = separate(X, y, kernel="poly")
        assert equal.separable  # rows 3 and 7 agree
        y[7] = not y[3]
        verdict = separate(X, y, kernel="poly")
        assert verdict.support.tolist() == [3, 7]
        verdict.verify(X, y)


class TestOtherKernels:
    def test_gaussian_kernel_separates_distinct_rows(self):
        rng = np.random.default_rng(1)
        X, y = rng.standard_normal((60, 2)), rng.integers(0, 2, 60)
        verdict = separate(X, y, kernel="rbf", gamma=2.0)
        assert isinstance(verdict, KernelSeparator)
        K = np.exp(-2.0 * ((X[:, None] - X) ** 2).sum(axis=2))
        c, signs = verdict.coefficients, np.where(y == 1, 1.0, -1.0)
        attained = (signs * (K @ c + verdict.b)).min() / np.sqrt(c @ K @ c)
        assert verdict.lo <= attained * (1 + 1e-12)
        assert attained <= verdict.hi
        assert verdict.lo >= 0.99 * verdict.hi
        verdict.verify(X, y)
        for other in (
            replace(verdict, lo=verdict.hi),
            replace(verdict, hi=0.9 * verdict.lo),
            replace(verdict, b=verdict.b + 9.0),
        ):
            with pytest.raises(CertificateError):
                other.verify(X, y)
        with pytest.raises(CertificateError, match="59 now"):
            verdict.verify(X[:-1], y[:-1])

    def test_only_equal_rows_prove_inseparability(self):
        X = np.vstack([SQUARE, SQUARE[2]])
        for kernel in ("rbf", "laplacian", lambda Z, X: np.exp(-((Z[:, None] - X) ** 2).sum(axis=2))):
            verdict = separate(X, [*XOR, 1], kernel=kernel)
            assert isinstance(verdict, Inseparable)
            assert verdict.support.tolist() == [2, 4]
            assert verdict.weights == (Fraction(1, 2), Fraction(1, 2))
            verdict.verify(X, [*XOR, 1])
            assert "are the same to the kernel" in verdict.words()
        # a proof for the linear kernel does not hold for the Gaussian
        linear = separate(SQUARE, XOR)
        with pytest.raises(CertificateError, match="not 0"):
            replace(linear, kernel=Gaussian(1.0)).verify(SQUARE, XOR)

    def test_margins_beyond_float64_are_undecided(self):
        rng = np.random.default_rng(1)
        X, y = rng.standard_normal((60, 2)), rng.integers(0, 2, 60)
        verdict = separate(X, y, kernel="rbf", gamma=1e-9)
        assert isinstance(verdict, Undecided)
        assert verdict.lo == 0.0 < verdict.hi < 1e-6
        assert verdict.verify(X, y) is verdict
        assert "only equal rows" in verdict.reason
        with pytest.raises(CertificateError, match="upper bound fails"):
            replace(verdict, hi=-1.0).verify(X, y)
        expired = separate(X, y, kernel="poly", max_time=1e-9)
        assert isinstance(expired, Undecided)
        assert "max_time" in expired.reason
        expired.verify(X, y)

    def test_precomputed_matrices_agree_with_kernels(self):
        rng = np.random.default_rng(2)
        X, y = rng.integers(-5, 6, (40, 2)).astype(float), rng.integers(0, 2, 40)
        for degree in (1, 2):
            K = (X @ X.T + 1.0) ** degree  # integers: exact
            verdict = separate(K, y, kernel="precomputed")
            assert (
                verdict.separable
                is separate(X, y, kernel="poly", degree=degree, gamma=1.0, coef0=1.0).separable
            )
            assert verdict.separable is simplex(monomials(X, degree, True), 2.0 * y - 1.0, True)
            verdict.verify(K, y)
        K = np.exp(-((X[:, None] - X) ** 2).sum(axis=2))
        equal = separate(K, y, kernel="precomputed")
        assert isinstance(equal, Inseparable)  # integers: some rows are equal
        assert np.array_equal(*X[equal.support])
        X = X + rng.uniform(0.0, 0.1, X.shape)
        K = np.exp(-((X[:, None] - X) ** 2).sum(axis=2))
        separate(K, y, kernel="precomputed").verify(K, y)

    def test_linear_kernel_equals_no_kernel(self):
        for y in (XOR, [0, 1, 1, 1]):
            plain, named = separate(SQUARE, y), separate(SQUARE, y, kernel="linear")
            assert type(plain) is type(named)
            assert named.kernel == Linear()

    def test_labels_and_float32_rows(self):
        X = SQUARE.astype(np.float32)
        verdict = separate(X, ["no", "no", "yes", "yes"], kernel="rbf", gamma=1.0)
        assert isinstance(verdict, Separable)
        assert verdict.classes == ("no", "yes")
        assert "class 'yes' lies where sum c_i k(x_i, x) + b, of 4 rows x_i, > 0" in str(verdict)
        # by symmetry all four weights are the same: |w|^2 / 4 for f(x) = +-1
        e = np.exp(-1.0)
        assert verdict.lo <= (1.0 - 2.0 * e + e * e) ** 0.5 / 2.0 <= verdict.hi

    @pytest.mark.parametrize(
        ("options", "message"),
        [
            ({"kernel": "sigmoid", "gamma": 1.0, "coef0": -1.0}, "not positive semidefinite"),
            ({"kernel": lambda Z, X: -(Z @ X.T)}, "not positive semidefinite"),
            ({"kernel": lambda Z, X: np.ones((2, 2))}, "shape"),
            ({"kernel": "precomputed"}, "must be square"),
            ({"kernel": "rbf", "p": 1}, "p must be 2"),
            ({"kernel": "gauss"}, "kernel must be one of"),
            ({"kernel": 3}, "kernel must be one of"),
            ({"kernel": "rbf", "gamma": -1.0}, "gamma must be a number of at least 0"),
            ({"kernel": "rbf", "gamma": "wide"}, "gamma must be a number of at least 0"),
            ({"kernel": "poly", "degree": 1.5}, "degree must be a whole"),
            ({"kernel": "poly", "coef0": np.inf}, "coef0 must be a finite"),
            ({"kernel": "poly", "degree": 400, "gamma": 1e6}, "beyond float64"),
        ],
    )
    def test_invalid_options_are_refused_in_one_sentence(self, options, message):
        with pytest.raises(ValueError, match=message) as error:
            separate(SQUARE, XOR, **options)
        assert "\n" not in str(error.value)


def test_gamma_scale_equals_that_of_scikit_learn():
    from maxmargin.kernels.names import kernel_named

    X = np.random.default_rng(0).standard_normal((20, 3))
    X[np.abs(X) < 0.5] = 0.0
    expected = 1.0 / (3 * X.var())
    for matrix in (X, sp.csr_matrix(X)):
        assert kernel_named("rbf", matrix, "scale", 3, 0.0).gamma == pytest.approx(expected, rel=1e-12)
    assert kernel_named("rbf", X, "auto", 3, 0.0).gamma == 1.0 / 3.0
    assert kernel_named("rbf", np.ones((4, 2)), "scale", 3, 0.0).gamma == 1.0


class TestTermination:
    """Random labels, whose margins under a wide Gaussian are a few millionths."""

    @pytest.mark.parametrize("seed", range(4))
    def test_few_rows_are_decided_exactly(self, seed):
        rng = np.random.default_rng(seed)
        X, y = rng.normal(size=(20, 2)), rng.integers(0, 2, 20)
        for gamma in (0.1, 0.3):
            verdict = separate(X, y, kernel="rbf", gamma=gamma, tol=np.inf)
            assert verdict.separable, (seed, gamma, str(verdict))
            assert verdict.verify(X, y) is verdict

    def test_margin_agrees_with_the_classifier(self):
        rng = np.random.default_rng(0)
        X, y = rng.normal(size=(30, 2)), rng.integers(0, 2, 30)
        verdict = separate(X, y, kernel="rbf", gamma=0.03)
        model = KernelMaxMarginClassifier(np.inf, gamma=0.03).fit(X, y)
        assert verdict.separable
        assert verdict.lo <= model.certificate_.upper
        assert model.certificate_.lower <= verdict.hi
        assert verdict.hi <= 1.01 * verdict.lo

    def test_exhausted_budget_is_reported_and_max_time_extends_it(self, monkeypatch):
        rng = np.random.default_rng(0)
        X = rng.normal(size=(1200, 5))
        y = (np.sin(3.0 * X[:, 0]) + X[:, 1] > 0.0).astype(int)
        monkeypatch.setattr(kernel_separation, "set_budget", lambda n: 1)
        given_up = separate(X, y, kernel="rbf", gamma=1.0, tol=np.inf)
        assert given_up.separable is None
        assert "given up: set max_time to search for that many seconds" in given_up.reason
        extended = separate(X, y, kernel="rbf", gamma=1.0, tol=np.inf, max_time=60.0)
        assert extended.separable
        assert extended.lo <= given_up.hi

    def test_margins_below_float64_precision_end_early(self):
        X, y = np.linspace(0.0, 1.0, 40)[:, None], np.arange(40) % 2
        verdict = separate(X, y, kernel="rbf", gamma=1.0, max_time=60.0)
        assert verdict.separable is None
        assert verdict.seconds < 30.0
        assert "float64 kernel values" in verdict.reason
        tiny = separate(1e-9 * X, y, kernel="rbf", gamma=1.0)
        assert tiny.separable is None
        assert "cannot tell them from zero" in tiny.reason


TWO_ROWS = [lambda a, b: float(a @ b), lambda a, b: np.exp(-((a - b) ** 2).sum())]


@pytest.mark.parametrize("metric", TWO_ROWS)
@pytest.mark.parametrize("n", [2, 20])
def test_kernels_of_two_rows_are_refused_with_a_remedy(metric, n):
    X = np.random.default_rng(0).normal(size=(n, 2))
    y = np.arange(n) % 2
    for rows in (X, sp.csr_matrix(X)):
        with pytest.raises(ValueError, match=r"gets two matrices.*pairwise_kernels\(Z, X, metric=function\)"):
            separate(rows, y, kernel=metric)
    with pytest.raises(ValueError, match="gets two matrices"):
        KernelMaxMarginClassifier(kernel=metric).fit(X, y)
    wrapped = separate(X, y, kernel=lambda Z, X: pairwise_kernels(Z, X, metric=metric), tol=np.inf)
    assert wrapped.kernel.name == "pairwise"


def test_exceptions_of_a_kernel_function_propagate():
    def broken(Z, X):
        raise TypeError("of its own")

    with pytest.raises(TypeError, match="of its own"):
        separate(SQUARE, XOR, kernel=broken)


def test_sparse_precomputed_matrices_are_refused():
    with pytest.raises(ValueError, match=r"dense matrix.*toarray\(\)"):
        separate(sp.csr_matrix(np.eye(2)), [0, 1], kernel="precomputed")
