"""Sparse data of far more columns than entries: memory is linear in entries and weights, and results equal those of the
columns with entries."""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable
from functools import lru_cache
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

from maxmargin import (
    CertificateError,
    Inseparable,
    KernelMaxMarginClassifier,
    LinearSeparator,
    MaxMarginClassifier,
    Status,
    separate,
    verify,
)

# rows, columns, entries a row and the type of the indices
SHAPES = [
    (61, 3_000_000, 4, np.int32),
    (300, 1_000_000, 20, np.int32),
    (20, 100_000_000, 20, np.int32),
    (20, 100_000_000, 20, np.int64),
    (500, 2_000_000, 60, np.int64),
]
# bytes beside the weights: a fixed number for a solver (with small dense copies), and a number for each entry.
# A dense copy of the first of these data takes 1.5 GB, of the last one 8 GB, of its columns with entries 0.1 GB.
FIXED, PER_ENTRY = 2**26, 500
PROBLEMS = [
    {"C": 1.0},
    {"C": 1.0, "loss": "hinge"},
    {"C": float("inf")},
    {"C": 1.0, "intercept": "augmented"},
]
NORMS = [
    {"p": 1.0},
    {"p": 1.5, "loss": "hinge"},
    {"p": 3.0, "C": float("inf")},
    {"p": float("inf")},
    {"p": float("inf"), "loss": "hinge", "norm_power": 1},
    {"p": "log"},
]


@lru_cache(maxsize=8)
def rows(n: int, d: int, k: int, index: type = np.int32, seed: int = 0) -> tuple[sp.csr_matrix, np.ndarray]:
    """n rows of k entries in random columns of d, with two separable classes."""
    rng = np.random.default_rng(seed)
    columns = np.concatenate([np.sort(rng.choice(2**40, k, replace=False) % d) for _ in range(n)])
    pointers = np.arange(0, n * k + 1, k)
    X = sp.csr_matrix(
        (rng.standard_normal(n * k), columns.astype(index), pointers.astype(index)), shape=(n, d)
    )
    X.sum_duplicates()
    return X, np.arange(n) % 2


def used_columns(X: Any) -> np.ndarray:
    return np.unique(X.indices)


def on_used_columns(X: Any) -> sp.csr_matrix:
    columns = used_columns(X)
    return sp.csr_matrix((X.data, np.searchsorted(columns, X.indices), X.indptr), (X.shape[0], columns.size))


def result_and_peak_memory(call: Callable[[], Any]) -> tuple[Any, int]:
    """Return the result of a call and its peak memory in bytes."""
    tracemalloc.start()
    try:
        return call(), tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def limit(X: Any, weights: int = 1) -> int:
    """Return the allowed memory of a call that returns `weights` dense vectors."""
    return FIXED + PER_ENTRY * X.nnz + 8 * weights * X.shape[1]


def compile_loops(model: Any) -> None:
    """Compile the loops, since compilation takes memory."""
    X, y = rows(30, 60, 4)
    verify(model.fit(X, y), X, y)


@pytest.mark.parametrize("problem", PROBLEMS, ids=str)
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_fit_memory_is_linear_in_entries_and_weights(shape, problem):
    X, y = rows(*shape)
    model: Any = MaxMarginClassifier(random_state=0, **problem)
    compile_loops(model)
    _, memory = result_and_peak_memory(lambda: model.fit(X, y))
    assert model.status_ is Status.CERTIFIED
    assert memory <= limit(X)


@pytest.mark.parametrize("problem", NORMS, ids=str)
def test_fit_memory_is_linear_in_entries_for_every_norm(problem):
    X, y = rows(*SHAPES[0])
    model: Any = MaxMarginClassifier(random_state=0, **problem)
    compile_loops(model)
    _, memory = result_and_peak_memory(lambda: model.fit(X, y))
    assert model.status_ is Status.CERTIFIED
    assert memory <= limit(X)


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_verification_memory_is_linear_in_entries(shape):
    X, y = rows(*shape)
    model: Any = MaxMarginClassifier(random_state=0).fit(X, y)
    found, memory = result_and_peak_memory(lambda: verify(model, X, y))
    assert found.gap <= 1e-3
    assert memory <= limit(X)


@pytest.mark.parametrize("algorithm", ["dcd", "mpu", "newton"])
def test_fit_memory_is_linear_in_entries_for_named_algorithms(algorithm):
    X, y = rows(*SHAPES[0])
    model: Any = MaxMarginClassifier(random_state=0, algorithm=algorithm, tol=1e-2)
    compile_loops(model)
    _, memory = result_and_peak_memory(lambda: model.fit(X, y))
    assert verify(model, X, y).gap <= 1e-2
    assert memory <= limit(X)


@pytest.mark.parametrize("problem", PROBLEMS + NORMS[:-1], ids=str)
def test_model_equals_that_of_the_columns_with_entries(problem):
    X, y = rows(*SHAPES[0])
    compact, columns = on_used_columns(X), used_columns(X)
    model: Any = MaxMarginClassifier(random_state=0, **problem).fit(X, y)
    other: Any = MaxMarginClassifier(random_state=0, **problem).fit(compact, y)
    assert model.coef_.shape == (1, X.shape[1])
    assert np.count_nonzero(model.coef_) == np.count_nonzero(other.coef_)
    np.testing.assert_allclose(model.coef_[:, columns], other.coef_, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(model.intercept_, other.intercept_, rtol=1e-9, atol=1e-12)
    found: Any = verify(model, X, y)
    compact_certificate: Any = verify(other, compact, y)
    assert (found.lower, found.upper) == pytest.approx(
        (compact_certificate.lower, compact_certificate.upper), rel=1e-9
    )
    assert (model.predict(X) == other.predict(compact)).all()


def test_multiclass_weights_equal_those_of_the_columns_with_entries():
    X, _ = rows(60, 200_000, 5)
    labels = np.arange(60) % 3
    model: Any = MaxMarginClassifier(random_state=0).fit(X, labels)
    other: Any = MaxMarginClassifier(random_state=0).fit(on_used_columns(X), labels)
    assert model.coef_.shape == (3, X.shape[1])
    np.testing.assert_allclose(model.coef_[:, used_columns(X)], other.coef_, rtol=1e-9, atol=1e-12)
    assert verify(model, X, labels).gap <= 1e-3


def test_p_log_counts_all_columns():
    X, y = rows(40, 100_000, 4)
    model: Any = MaxMarginClassifier(p="log", random_state=0).fit(X, y)
    assert model.certificate_.problem.p == pytest.approx(2.0 * np.log(X.shape[1]))


def test_warm_start_does_not_increase_the_upper_bound():
    X, y = rows(61, 300_000, 4)
    model: Any = MaxMarginClassifier(algorithm="fmp", warm_start=True, max_iter=3, random_state=0).fit(X, y)
    before = model.certificate_.upper
    model.fit(X, y)
    assert verify(model, X, y).gap == pytest.approx(model.certificate_.gap, rel=1e-9)
    assert model.certificate_.upper <= before * (1.0 + 1e-9)


def test_certificates_do_not_depend_on_the_storage_of_empty_columns():
    X, y = rows(30, 200, 2)
    for fitted, checked in ((X, X.toarray()), (X.toarray(), X)):
        model: Any = MaxMarginClassifier(random_state=0).fit(fitted, y)
        found: Any = verify(model, checked, y)
        other: Any = verify(model, fitted, y)
        assert (found.lower, found.upper) == pytest.approx((other.lower, other.upper), rel=1e-12)


def test_weights_of_empty_columns_count_in_the_norm():
    X, y = rows(30, 10_000, 2)
    model: Any = MaxMarginClassifier(random_state=0).fit(X, y)
    empty = np.setdiff1d(np.arange(100), used_columns(X))[0]
    model.coef_[0, empty] = 1.0
    with pytest.raises(CertificateError, match="upper bound fails"):
        verify(model, X, y)


@pytest.mark.parametrize("p", [1.0, 2.0, float("inf")])
def test_separation_memory_is_linear_in_entries(p):
    X, y = rows(*SHAPES[0])
    separate(*rows(30, 60, 4), p=p)
    verdict, memory = result_and_peak_memory(lambda: separate(X, y, p=p))
    assert isinstance(verdict, LinearSeparator)
    assert verdict.w.shape == (X.shape[1],)
    assert memory <= limit(X)
    _, memory = result_and_peak_memory(lambda: verdict.verify(X, y))
    assert memory <= limit(X)


@pytest.mark.parametrize("bias", [True, False])
def test_proof_of_inseparability_covers_all_columns(bias):
    X, y = rows(*SHAPES[0])
    both = sp.vstack([X, X[:1] + X[2:3], X[:1] + X[2:3]], format="csr")
    labels = np.append(y, [y[0], 1 - y[0]])
    verdict, memory = result_and_peak_memory(lambda: separate(both, labels, bias=bias))
    assert isinstance(verdict, Inseparable)
    assert verdict.features == X.shape[1]
    assert verdict.radius == 0.0
    assert memory <= limit(X)
    assert not verdict.verify(both, labels).separable
    model: Any = MaxMarginClassifier(C=float("inf"), fit_intercept=bias, random_state=0).fit(both, labels)
    assert model.status_ is Status.INSEPARABLE
    assert not model.verdict_.verify(both, labels).separable


@pytest.mark.parametrize("kernel", ["linear", "rbf", "poly"])
def test_kernel_fit_memory_is_linear_in_entries(kernel):
    X, y = rows(*SHAPES[1])
    model: Any = KernelMaxMarginClassifier(kernel=kernel, random_state=0)
    compile_loops(model)
    _, memory = result_and_peak_memory(lambda: model.fit(X, y))
    assert memory <= limit(X)
    found, memory = result_and_peak_memory(lambda: verify(model, X, y))
    assert found.gap <= model.tol
    assert memory <= limit(X)


@pytest.mark.parametrize("problem", PROBLEMS, ids=str)
@pytest.mark.parametrize("dependent", [False, True])
def test_wide_sparse_and_dense_rows_give_equal_models(problem, dependent):
    X, y = rows(150, 20_000, 150)
    if dependent:  # sums of rows, some with the other label
        X = sp.vstack([X, X[:10] + X[10:20]], format="csr")
        y = np.append(y, np.arange(10) % 2)
    if dependent and problem.get("C") == float("inf"):
        y = np.append(y[:150], y[:10])
        y[10:20] = y[:10]
    model: Any = MaxMarginClassifier(random_state=0, **problem).fit(X, y)
    other: Any = MaxMarginClassifier(random_state=0, **problem).fit(X.toarray(), y)
    assert model.history_[-1].stage == other.history_[-1].stage
    assert verify(model, X, y).gap <= 1e-3
    size = np.abs(other.coef_).max()
    np.testing.assert_allclose(model.coef_, other.coef_, atol=1e-8 * size, rtol=0.0)


@pytest.mark.parametrize(
    "problem", [{"p": 1.5}, {"p": 3.0, "C": 0.1}, {"p": 1.3, "C": float("inf")}], ids=str
)
def test_wide_sparse_rows_are_certified_in_every_norm(problem):
    X, y = rows(40, 400_000, 1500)
    model: Any = MaxMarginClassifier(random_state=0, tol=1e-1, intercept="augmented", **problem)
    compile_loops(model)
    _, memory = result_and_peak_memory(lambda: model.fit(X, y))
    assert model.status_ is Status.CERTIFIED
    assert verify(model, X, y).gap <= 1e-1
    assert memory <= limit(X)


def test_column_far_from_the_origin_loses_no_accuracy():
    X, y = rows(150, 20_000, 150)
    far = 1e6 + np.random.default_rng(1).random((150, 1))
    X = sp.hstack([X, far], format="csr")
    model: Any = MaxMarginClassifier(random_state=0).fit(X, y)
    assert model.status_ is Status.CERTIFIED
    assert verify(model, X, y).gap <= 1e-9
