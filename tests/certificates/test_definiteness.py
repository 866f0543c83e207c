"""Tests of positive semidefiniteness against constructed eigenvalues."""

from __future__ import annotations

import numpy as np
import pytest

from maxmargin.certificates import definiteness
from maxmargin.certificates.definiteness import check_gram, check_kernel, is_inner_product
from maxmargin.kernels.functions import Gaussian, Linear, Pairwise, Polynomial, Precomputed, Sigmoid


def with_eigenvalues(values):
    """Q diag(values) Q'."""
    Q, _ = np.linalg.qr(np.random.default_rng(0).standard_normal((len(values), len(values))))
    K = (Q * values) @ Q.T
    return 0.5 * (K + K.T)


@pytest.fixture(params=[2000, 10])
def decomposed_size(request, monkeypatch):
    """Matrices of at most this size are decomposed, larger ones use Lanczos' iteration."""
    monkeypatch.setattr(definiteness, "MAX_ROWS", request.param)
    return request.param


@pytest.mark.parametrize("least", [-1e-9, -2.0])
def test_negative_eigenvalues_are_refused_and_stated(least, decomposed_size):
    K = with_eigenvalues(np.append(np.linspace(0.5, 1.0, 49), least))
    with pytest.raises(ValueError, match="not positive semidefinite") as error:
        check_gram(K)
    stated = float(str(error.value).split("eigenvalue is ")[1].removeprefix("at most ").split(":")[0])
    # an eigenvalue has an error of a few eps |K|: 1e-15, beside 1e-9
    assert least * (1 + 1e-6) <= stated <= (least * (1 - 1e-6) if decomposed_size > 50 else 0.2 * least)
    check_gram(K - 1.02 * least * np.eye(50))  # the stated remedy


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.usefixtures("decomposed_size")
def test_gram_matrices_with_rounding_errors_are_accepted(dtype):
    for rank in (1, 5, 80):
        X = np.random.default_rng(rank).standard_normal((80, rank)).astype(dtype)
        check_gram(X @ X.T)
        check_gram(((X @ X.T) ** 3).astype(dtype))
    check_gram(np.zeros((80, 80), dtype))
    check_gram(np.ones((1, 1), dtype))


def test_float32_rounding_is_accepted_only_for_float32_numbers():
    X = np.random.default_rng(0).standard_normal((100, 3)).astype(np.float32)
    K = X @ X.T
    check_gram(K.astype(float))
    with pytest.raises(ValueError, match="not positive semidefinite"):
        check_gram(K.astype(float) / 3.0)


def test_kernels_are_accepted_or_refused():
    X = np.random.default_rng(1).standard_normal((30, 4))
    for kernel in (Linear(), Gaussian(0.5), Polynomial(0.1, 3, 1.0), Polynomial(2.0, 2)):
        assert is_inner_product(kernel)
        check_gram(kernel.block(X, X))
        check_kernel(kernel, X)
    for kernel in (Gaussian(-1.0), Polynomial(1.0, 2, -1.0), Polynomial(-1.0, 3), Sigmoid(0.1)):
        assert not is_inner_product(kernel)
    check_kernel(Pairwise("laplacian"), X)
    check_kernel(Precomputed(), X @ X.T)
    for kernel, rows, name in (
        (Sigmoid(1.0, -1.0), X, "The sigmoid kernel"),
        (Pairwise(lambda Z, X: -(Z @ X.T)), X, "The pairwise kernel"),
        (Precomputed(), -(X @ X.T), "The kernel matrix"),
    ):
        with pytest.raises(ValueError, match=f"{name} is not positive"):
            check_kernel(kernel, rows)


def test_values_beyond_the_lengths_of_the_rows_are_refused_whatever_the_other_rows_are():
    """|K_ij| <= sqrt(K_ii K_jj): rounding of large entries elsewhere, and coarse numbers, are no excuse."""
    K = 100.0 * np.eye(1000)
    K[:2, :2] = [[1.0, 1.5], [1.5, 1.0]]
    for matrix in (K, K.astype(np.float32), K / 3.0):
        with pytest.raises(ValueError, match="not positive semidefinite"):
            check_gram(matrix)


def test_coarse_numbers_are_not_taken_for_rounded_ones():
    """Halves are exact: an eigenvalue of -1e-3 is not the rounding of float32."""
    n = 400
    K = 1000.0 * np.eye(n)
    K[:3, :3] = [[1.0, 1.0, -0.5], [1.0, 1.0, 0.5], [-0.5, 0.5, 1.0]]
    least = np.linalg.eigvalsh(K[:3, :3])[0]
    assert least < -0.2
    with pytest.raises(ValueError, match="not positive semidefinite"):
        check_gram(K)


@pytest.mark.parametrize("size", [5e-324, 1e-310, 1e300])
def test_matrices_at_the_ends_of_the_float64_numbers_are_accepted(size):
    check_gram(size * np.eye(3))
