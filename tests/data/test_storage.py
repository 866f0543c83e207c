"""Storage of arrays: sparse formats, read-only arrays and memory maps, which are not copied."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from memory import with_peak_memory

from maxmargin import KernelMaxMarginClassifier, MaxMarginClassifier, OnlineMarginClassifier, separate, verify

RNG = np.random.default_rng(0)
X = np.round(RNG.normal(size=(80, 6)) * (RNG.random((80, 6)) < 0.5), 3)
Y = np.where(X[:, 0] - X[:, 1] + 0.3 * RNG.normal(size=80) > 0.0, 1, -1)
MODELS = (MaxMarginClassifier, KernelMaxMarginClassifier, lambda: OnlineMarginClassifier(random_state=0))


def shuffled(matrix):
    """Copy a matrix with 64-bit indices, the entries of each row in reversed order, and one entry split in two."""
    coo = matrix.tocoo()
    rows, columns = (np.append(a[::-1], a[0]).astype(np.int64) for a in coo.coords)
    data = np.append(coo.data[::-1], 0.5 * coo.data[0])
    data[-2] *= 0.5
    order = np.argsort(rows, kind="stable")
    pointers = np.append(0, np.cumsum(np.bincount(rows, minlength=80)))
    return sp.csr_array((data[order], columns[order], pointers), matrix.shape)


KINDS = "csr_array csc_matrix csc_array coo_matrix bsr_array dia_matrix dok_array lil_matrix"
SPARSE = {kind: getattr(sp, kind)(X) for kind in KINDS.split()} | {
    "unsorted and repeated": shuffled(sp.csr_array(X))
}


@pytest.mark.parametrize("kind", SPARSE)
def test_sparse_matrices_and_arrays_give_the_results_of_dense_rows(kind):
    matrix, before = SPARSE[kind], SPARSE[kind].copy()
    for make in MODELS:
        model, plain = make().fit(matrix, Y), make().fit(sp.csr_matrix(X), Y)
        assert np.allclose(
            model.decision_function(matrix), plain.decision_function(X), rtol=0.0, atol=1e-12
        )  # 80 eps
        if hasattr(model, "certificate_"):
            assert verify(model, matrix, Y).gap < 1e-3
            assert verify(model, X, Y).gap < 1e-3
        with pytest.raises(ValueError, match=r"^X has 5 features, but \w+ is expecting 6 features"):
            model.predict(matrix.tocsr()[:, :5])
    assert separate(matrix, Y).separable == separate(X, Y).separable
    assert (matrix != before).nnz == 0  # the input is not modified


@pytest.mark.parametrize(
    ("dtype", "order"), [(np.float32, "F"), (np.float64, "C"), (np.int32, "F"), (bool, "C")]
)
def test_read_only_arrays_give_the_results_of_writable_ones(dtype, order):
    rows, labels = np.array(2 * X, dtype=dtype, order=order), Y.copy()
    plain = np.ascontiguousarray(rows.astype(rows.dtype if dtype == np.float32 else np.float64))
    rows.flags.writeable = labels.flags.writeable = False
    unit = np.finfo(plain.dtype).eps  # BLAS adds in another order for contiguous columns
    for make in MODELS:
        found, expected = (make().fit(A, y).decision_function(A) for A, y in ((rows, labels), (plain, Y)))
        assert np.allclose(found, expected, rtol=16 * unit, atol=64 * unit)


def test_memory_maps_are_not_copied_and_streams_use_memory_of_one_batch(tmp_path):
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(40_000, 100))  # 32 MB
    y = (rows[:, 0] + 0.3 * rng.normal(size=len(rows)) > 0).astype(int)
    np.save(tmp_path / "rows.npy", rows)
    X = np.load(tmp_path / "rows.npy", mmap_mode="r")
    model = MaxMarginClassifier()
    for work, most in ((model.fit, 0.95), (lambda X, y: verify(model, X, y), 0.95), (model.score, 0.15)):
        found, memory = with_peak_memory(lambda work=work: work(X, y))
        assert memory < most * X.nbytes
    assert model.status_ == "CERTIFIED"
    assert found > 0.85

    def learn(n):
        stream = OnlineMarginClassifier()
        for k in range(0, n, 1_000):
            stream.partial_fit(X[k : k + 1_000], y[k : k + 1_000], classes=[0, 1])
        return stream

    learn(1_000)  # compiles, which takes memory
    stream, memory = with_peak_memory(lambda: learn(len(X)))
    assert memory < 0.03 * X.nbytes
    assert stream.n_seen_ == len(X)
