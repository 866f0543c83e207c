"""Which matrices are Gram matrices: eigenvalues that are known by construction."""

from __future__ import annotations

import numpy as np
import pytest

from maxmargin.certificates import definiteness
from maxmargin.certificates.definiteness import check_gram, check_kernel, inner_product, least_eigenvalue
from maxmargin.kernels.functions import Gaussian, Linear, Pairwise, Polynomial, Precomputed, Sigmoid


def with_eigenvalues(values, seed=0):
    """Q diag(values) Q'."""
    rng = np.random.default_rng(seed)
    Q, _ = np.linalg.qr(rng.standard_normal((len(values), len(values))))
    K = (Q * values) @ Q.T
    return 0.5 * (K + K.T)


@pytest.fixture(params=[2000, 10])
def whole(request, monkeypatch):
    """The eigenvalue of all rows, and Lanczos' iteration."""
    monkeypatch.setattr(definiteness, "WHOLE", request.param)
    return request.param


@pytest.mark.parametrize("least", [-1e-9, -1e-3, -2.0])
def test_an_eigenvalue_below_zero_is_told(least, whole):
    K = with_eigenvalues(np.append(np.linspace(0.5, 1.0, 49), least))
    with pytest.raises(ValueError, match="not positive semidefinite") as caught:
        check_gram(K)
    told = float(str(caught.value).split("eigenvalue is ")[1].removeprefix("at most ").split(":")[0])
    assert least * (1 + 1e-6) <= told <= (least * (1 - 1e-6) if whole > 50 else 0.2 * least)
    assert "\n" not in str(caught.value)
    # the remedy that it names
    check_gram(K - 1.02 * least * np.eye(50))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("rank", [1, 5, 80])
@pytest.mark.usefixtures("whole")
def test_gram_matrices_pass_with_their_rounding(dtype, rank):
    X = np.random.default_rng(rank).standard_normal((80, rank)).astype(dtype)
    check_gram(X @ X.T)
    check_gram(((X @ X.T) ** 3).astype(dtype))
    check_gram(np.zeros((80, 80), dtype))
    check_gram(np.ones((1, 1), dtype))


def test_float32_noise_is_an_eigenvalue_of_float64_numbers_that_were_never_float32():
    X = np.random.default_rng(0).standard_normal((100, 3)).astype(np.float32)
    K = X @ X.T
    check_gram(K)
    check_gram(K.astype(float))
    with pytest.raises(ValueError, match="not positive semidefinite"):
        check_gram(K.astype(float) / 3.0)


def test_asymmetry_is_told_with_its_place():
    K = np.eye(300)
    K[270, 3] = 0.25
    with pytest.raises(
        ValueError, match=r"not symmetric: the value of rows (270 and 3 is 0.25|3 and 270 is 0,)"
    ):
        check_gram(K)
    K[3, 270] = 0.25
    check_gram(K)
    with pytest.raises(ValueError, match="square"):
        check_gram(K[:5])


def test_eigenvalues_are_those_of_the_construction():
    K = with_eigenvalues(np.linspace(0.25, 2.0, 40))
    assert least_eigenvalue(K) == pytest.approx(0.25, rel=1e-12)


def test_kernels():
    X = np.random.default_rng(1).standard_normal((30, 4))
    for kernel in (Linear(), Gaussian(0.5), Polynomial(0.1, 3, 1.0), Polynomial(2.0, 2)):
        assert inner_product(kernel)
        check_gram(kernel.block(X, X))
        check_kernel(kernel, X)
    for kernel in (Gaussian(-1.0), Polynomial(1.0, 2, -1.0), Polynomial(-1.0, 3), Sigmoid(0.1)):
        assert not inner_product(kernel)
    check_kernel(Pairwise("laplacian"), X)
    check_kernel(Pairwise(lambda Z, X: Z @ X.T), X)
    with pytest.raises(ValueError, match="The sigmoid kernel is not positive semidefinite"):
        check_kernel(Sigmoid(1.0, -1.0), X)
    with pytest.raises(ValueError, match="The pairwise kernel is not positive"):
        check_kernel(Pairwise(lambda Z, X: -(Z @ X.T)), X)
    check_kernel(Precomputed(), X @ X.T)
    with pytest.raises(ValueError, match="The kernel matrix is not positive"):
        check_kernel(Precomputed(), -(X @ X.T))


def test_of_many_rows_some_are_looked_at(monkeypatch):
    monkeypatch.setattr(definiteness, "WHOLE", 20)
    X = np.random.default_rng(1).standard_normal((300, 4))
    seen = []

    def product(Z, X):
        seen.append(Z.shape[0])
        return Z @ X.T

    check_kernel(Pairwise(product), X)
    assert seen == [20]


@pytest.mark.parametrize("seed", range(5))
def test_a_rare_direction_is_found_in_a_large_matrix(seed):
    """Two rows of 2,600 that contradict each other: the rest looks like the identity."""
    K = np.eye(2600)
    i, j = np.random.default_rng(seed).choice(2600, 2, replace=False)
    K[i, j] = K[j, i] = 3.0
    with pytest.raises(ValueError, match="least eigenvalue is at most -"):
        check_gram(K)


def test_what_is_computed_has_room_in_the_budget(monkeypatch):
    """Of a kernel that is none by its formula: no more rows than fit, and an indefinite one is still told."""
    asked = []

    def function(Z, X):
        asked.append(Z.shape[0])
        return -(Z @ X.T)

    rows = np.random.default_rng(0).normal(size=(3000, 3))
    monkeypatch.setattr("maxmargin.certificates.definiteness.WHOLE", 900)
    for room, most in ((1e6, 250), (6e6, 500), (np.inf, 900)):
        asked.clear()
        with pytest.raises(ValueError, match="not positive semidefinite"):
            check_kernel(Pairwise(function), rows, room)
        assert asked == [most]
