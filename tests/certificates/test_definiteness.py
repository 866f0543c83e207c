"""Kernel matrices that are no inner products are refused."""

from __future__ import annotations

import numpy as np
import pytest

from maxmargin import KernelMaxMarginClassifier, Status


def fitted(K, kernel="precomputed", **options):
    """A fit of labels in turn; hard margins need few steps for separable rows and end early for others."""
    y = np.arange(len(K)) % 2
    return KernelMaxMarginClassifier(kernel=kernel, random_state=0, **options).fit(K, y)


def with_eigenvalues(values):
    """Q diag(values) Q'."""
    Q, _ = np.linalg.qr(np.random.default_rng(0).standard_normal((len(values), len(values))))
    K = (Q * values) @ Q.T
    return 0.5 * (K + K.T)


@pytest.mark.parametrize("least", [-1e-9, -2.0])
def test_negative_eigenvalues_are_refused_and_stated(least):
    K = with_eigenvalues(np.append(np.linspace(0.5, 1.0, 49), least))
    with pytest.raises(ValueError, match="not positive semidefinite") as error:
        fitted(K)
    stated = float(str(error.value).split("eigenvalue is ")[1].split(":")[0])
    assert stated == pytest.approx(least, rel=1e-6, abs=0.0)
    assert fitted(K - 1.02 * least * np.eye(50)).status_ is Status.CERTIFIED  # the stated remedy


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_gram_matrices_with_rounding_errors_are_accepted(dtype):
    for rank in (1, 5, 80):
        X = np.random.default_rng(rank).standard_normal((80, rank)).astype(dtype)
        for K in (X @ X.T, ((X @ X.T) ** 3).astype(dtype)):
            assert fitted(K).status_ is Status.CERTIFIED


def test_values_beyond_the_lengths_of_the_rows_are_refused_whatever_the_other_rows_are():
    """|K_ij| <= sqrt(K_ii K_jj), also where eigenvalues are computed on some of the rows only."""
    for n in (300, 2100):
        K = 100.0 * np.eye(n)
        K[1:3, 1:3] = [[1.0, 1.5], [1.5, 1.0]]
        for matrix in (K, K.astype(np.float32), K / 3.0):
            with pytest.raises(ValueError, match="not positive semidefinite"):
                fitted(matrix)


def test_kernels_by_formula_are_tested_on_the_rows():
    X = np.random.default_rng(1).standard_normal((30, 4))
    with pytest.raises(ValueError, match="The sigmoid kernel is not positive"):
        fitted(X, "sigmoid", gamma=1.0, coef0=-1.0)
    with pytest.raises(ValueError, match="kernel is not positive"):
        fitted(X, lambda Z, X: -(Z @ X.T))
    for kernel in ("linear", "poly", "rbf", lambda Z, X: Z @ X.T):
        fitted(X, kernel)
