"""Sparse data of far more columns than entries: memory is linear in entries, results are those of the used columns."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from effort import interpreted
from memory import with_peak_memory

import maxmargin as mm

pytestmark = interpreted  # memory of compilation would be counted as well
# Bytes beside the weights, for a solver and for each entry; a dense copy of the wide data takes 1.5 GB.
FIXED, PER_ENTRY = 2**26, 500
WIDE = 61, 3_000_000, 4
TASKS = [
    {"C": 1.0, "loss": "hinge"},
    {"C": float("inf")},
    {"C": 1.0, "intercept_scaling": 1.0, "index": np.int64},
    {"p": 1.0},
    {"p": 1.5, "loss": "hinge"},
    {"p": float("inf"), "loss": "hinge", "norm_power": 1},
    {"algorithm": "dcd", "loss": "hinge", "tol": 1e-2},
]


@cache
def rows(n: int, d: int, k: int, index: type = np.int32) -> tuple[sp.csr_matrix, np.ndarray]:
    """n rows of k entries in random columns of d, with two separable classes."""
    rng = np.random.default_rng(0)
    columns = np.concatenate([np.sort(rng.choice(2**40, k, replace=False) % d) for _ in range(n)]).astype(
        index
    )
    X = sp.csr_matrix((rng.standard_normal(n * k), columns, np.arange(0, n * k + 1, k, index)), shape=(n, d))
    X.sum_duplicates()
    return X, np.arange(n) % 2


def in_linear_memory(X: Any, call: Any) -> Any:
    """Return the result of a call on X; its peak memory is that of entries and of one vector of weights."""
    found, memory = with_peak_memory(call)
    assert memory <= FIXED + PER_ENTRY * X.nnz + 8 * X.shape[1]
    return found


def test_newton_on_many_sparse_rows_needs_no_matrix_of_the_columns():
    """Such a matrix would take 200 MB; steps of wide rows use conjugate gradients."""
    X, y = rows(8_000, 5_000, 4)
    model = mm.MaxMarginClassifier(algorithm="newton", max_iter=20).fit(X, y)
    _, memory = with_peak_memory(lambda: model.fit(X, y))
    assert memory <= FIXED + PER_ENTRY * X.nnz


@pytest.mark.parametrize("task", TASKS, ids=str)
def test_memory_is_linear_and_the_model_is_that_of_the_columns_with_entries(task):
    X, y = rows(*WIDE, task.get("index", np.int32))
    used = np.unique(X.indices)
    compact = sp.csr_matrix((X.data, np.searchsorted(used, X.indices), X.indptr), (X.shape[0], used.size))
    options = {name: value for name, value in task.items() if name != "index"}
    other: Any = mm.MaxMarginClassifier(random_state=0, **options).fit(compact, y)
    model: Any = in_linear_memory(X, lambda: mm.MaxMarginClassifier(random_state=0, **options).fit(X, y))
    assert model.status_ is mm.Status.CERTIFIED
    claim = in_linear_memory(X, lambda: mm.verify(model, X, y))
    bounds = other.certificate_.lower, other.certificate_.upper
    assert (claim.lower, claim.upper) == pytest.approx(bounds, rel=1e-9)  # margins of 3e6 columns: 7e-10
    assert model.coef_.shape == (1, X.shape[1])
    assert np.count_nonzero(model.coef_) == np.count_nonzero(other.coef_)
    # sums of the same terms, in the order of another number of columns
    np.testing.assert_allclose(model.coef_[:, used], other.coef_, rtol=1e-10, atol=1e-12)
    assert model.decision_function(X) == pytest.approx(other.decision_function(compact), rel=1e-10, abs=1e-12)


def test_all_columns_count_in_norms():
    X, y = rows(30, 10_000, 2)
    model: Any = mm.MaxMarginClassifier(random_state=0).fit(X, y)
    claim = model.certificate_
    found: Any = mm.verify(model, X.toarray(), y)
    # dense rows of 1e4 columns have other error bounds
    np.testing.assert_allclose((found.lower, found.upper), (claim.lower, claim.upper), 1e-10)
    model.coef_[0, np.setdiff1d(np.arange(100), X.indices)[0]] = 1.0
    with pytest.raises(mm.CertificateError, match="upper bound fails"):
        mm.verify(model, X, y)


@pytest.mark.parametrize(("p", "bias"), [(2.0, True), (2.0, False), (1.0, True)])
def test_separation_memory_is_linear_and_proofs_cover_all_columns(p, bias):
    X, y = rows(*WIDE)
    verdict = in_linear_memory(X, lambda: mm.separate(X, y, p=p, bias=bias))
    assert verdict.separable
    assert verdict.w.shape == (X.shape[1],)
    in_linear_memory(X, lambda: verdict.verify(X, y))
    both = sp.vstack([X, X[:1] + X[2:3], X[:1] + X[2:3]], format="csr")
    labels = np.append(y, [y[0], 1 - y[0]])
    verdict = in_linear_memory(X, lambda: mm.separate(both, labels, p=p, bias=bias))
    assert isinstance(verdict, mm.Inseparable)
    assert (verdict.features, verdict.radius) == (X.shape[1], 0.0)
    assert not verdict.verify(both, labels).separable


@pytest.mark.parametrize("kernel", ["linear", "rbf"])
def test_kernel_fit_memory_is_linear_in_entries(kernel):
    X, y = rows(60, 1_000_000, 20)
    model: Any = mm.KernelMaxMarginClassifier(kernel=kernel, random_state=0).fit(*rows(30, 60, 4))
    in_linear_memory(X, lambda: model.fit(X, y))
    assert in_linear_memory(X, lambda: mm.verify(model, X, y)).gap <= model.tol


@pytest.mark.parametrize("task", [{"C": 1.0}, {"C": float("inf")}], ids=str)
def test_wide_sparse_and_dense_rows_give_equal_models(task):
    """Of rows that are sums of others as well, and with a column far from the origin."""
    X, y = rows(50, 8_000, 100)
    far = 1e6 + np.random.default_rng(1).random((50, 1))
    for some in (X, sp.vstack([X, X[:10:2] + X[10:20:2]], format="csr"), sp.hstack([X, far], format="csr")):
        labels = np.append(y, np.zeros(some.shape[0] - 50, int))
        model: Any = mm.MaxMarginClassifier(random_state=0, **task).fit(some, labels)
        other: Any = mm.MaxMarginClassifier(random_state=0, **task).fit(some.toarray(), labels)
        assert mm.verify(model, some, labels).gap <= 1e-3
        # both end at the optimum up to rounding, which far columns magnify
        np.testing.assert_allclose(model.coef_, other.coef_, atol=1e-8 * np.abs(other.coef_).max(), rtol=0.0)


@pytest.mark.parametrize(
    "call",
    [
        lambda X, y: mm.MaxMarginClassifier().fit(X, y),
        lambda X, y: mm.MaxMarginClassifier(memory=1, random_state=0).fit(X, y),
        lambda X, y: mm.OnlineMarginClassifier().fit(X, y),
        lambda X, y: mm.MarginRFE(mm.MaxMarginClassifier()).fit(X, y),
        lambda X, y: mm.separate(X, y),
    ],
)
def test_weights_beyond_the_memory_are_refused_before_they_are_allocated(call):
    X, y = rows(8, 2**40, 4, np.int64)
    with pytest.raises(ValueError, match=r"a weight for each of 1099511627776 features takes.* are free"):
        call(X, y)


def test_large_indices_are_no_fault_where_the_weights_fit(tmp_path):
    X, y = rows(8, 1_000_000, 4)
    mm.separate(X, y)
    model = mm.MaxMarginClassifier().fit(X, y)
    _, saving = with_peak_memory(lambda: mm.save(model, tmp_path / "model"))
    _, loading = with_peak_memory(lambda: mm.load(tmp_path / "model"))
    assert max(saving, loading) <= 2.1 * model.coef_.nbytes


def test_a_kernel_fit_of_sparse_rows_has_at_most_one_array_of_the_columns():
    X, y = rows(8, 3_000_000, 4)
    model = mm.KernelMaxMarginClassifier(kernel="rbf").fit(X, y)
    _, memory = with_peak_memory(lambda: model.fit(X, y))
    assert memory < 8 * 1.5 * X.shape[1]  # SciPy's sum of all entries makes one
