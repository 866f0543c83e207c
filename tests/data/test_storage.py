"""Storage of arrays: sparse formats, read-only arrays and memory maps, which are not copied."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest
import scipy.sparse as sp

from maxmargin import KernelMaxMarginClassifier, MaxMarginClassifier, OnlineMarginClassifier, separate, verify

RNG = np.random.default_rng(0)
X = np.round(RNG.normal(size=(80, 6)) * (RNG.random((80, 6)) < 0.5), 3)
Y = np.where(X[:, 0] - X[:, 1] + 0.3 * RNG.normal(size=80) > 0.0, 1, -1)
MODELS = (MaxMarginClassifier, KernelMaxMarginClassifier, lambda: OnlineMarginClassifier(random_state=0))
KINDS = ("csr", "csc", "coo", "bsr", "dia", "dok", "lil")


def with_64_bit_indices(matrix):
    """Copy a matrix with 64-bit indices."""
    matrix = matrix.copy()
    matrix.indices, matrix.indptr = matrix.indices.astype(np.int64), matrix.indptr.astype(np.int64)
    assert matrix.indices.dtype == matrix.indptr.dtype == np.int64
    return matrix


def shuffled(matrix):
    """Copy a matrix with the entries of each row in reversed order, and one entry split in two."""
    coo = matrix.tocoo()
    rows, columns = coo.coords
    data = np.append(coo.data[::-1], 0.5 * coo.data[0])
    data[-2] *= 0.5
    rows, columns = np.append(rows[::-1], rows[0]), np.append(columns[::-1], columns[0])
    order = np.argsort(rows, kind="stable")
    return sp.csr_array(
        (data[order], columns[order], np.append(0, np.cumsum(np.bincount(rows, minlength=80)))), matrix.shape
    )


SPARSE = {
    f"{kind} {form}": getattr(sp, f"{kind}_{form}")(X) for kind in KINDS for form in ("matrix", "array")
}
SPARSE |= {
    "csr, 64-bit": with_64_bit_indices(sp.csr_array(X)),
    "csc, 64-bit": with_64_bit_indices(sp.csc_matrix(X)),
    "csr, unsorted and repeated": shuffled(sp.csr_array(X)),
}


@pytest.mark.parametrize("kind", SPARSE)
def test_sparse_matrices_and_arrays_give_the_results_of_dense_rows(kind):
    matrix = SPARSE[kind]
    before = matrix.copy()
    for make in MODELS:
        model, plain = make().fit(matrix, Y), make().fit(sp.csr_matrix(X), Y)
        assert np.allclose(model.decision_function(matrix), plain.decision_function(X), rtol=1e-9, atol=1e-9)
        assert np.array_equal(model.predict(matrix), plain.predict(X))
        if hasattr(model, "certificate_"):
            assert verify(model, matrix, Y).gap < 1e-3
            assert verify(model, X, Y).gap < 1e-3
    assert separate(matrix, Y).separable == separate(X, Y).separable
    assert (matrix != before).nnz == 0  # the input is not modified


def test_missing_sparse_entries_are_reported_with_their_column():
    matrix = sp.csr_array(np.where(np.arange(6) == 4, np.nan, X))
    for make in MODELS:
        with pytest.raises(ValueError, match="column 4 is missing in 80 of 80 rows"):
            make().fit(matrix, Y)


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int32, bool])
@pytest.mark.parametrize("order", ["C", "F"])
def test_read_only_arrays_give_the_results_of_writable_ones(dtype, order):
    rows = np.array(2 * X, dtype=dtype, order=order)
    plain = np.ascontiguousarray(rows.astype(rows.dtype if dtype == np.float32 else np.float64))
    rows.flags.writeable = False
    labels = Y.copy()
    labels.flags.writeable = False
    for make in MODELS:
        found = make().fit(rows, labels).decision_function(rows)
        # BLAS adds in another order for contiguous columns
        unit = np.finfo(plain.dtype).eps
        assert np.allclose(
            found, make().fit(plain, Y).decision_function(plain), rtol=16 * unit, atol=64 * unit
        )


@pytest.fixture(scope="module")
def mapped(tmp_path_factory):
    """Memory-mapped rows of 64 MB, and labels."""
    path = tmp_path_factory.mktemp("mapped") / "rows.npy"
    rng = np.random.default_rng(0)
    rows = np.lib.format.open_memmap(path, "w+", np.float64, (80_000, 100))
    for first in range(0, len(rows), 10_000):
        rows[first : first + 10_000] = rng.normal(size=(10_000, 100))
    rows.flush()
    y = (rows[:, 0] + 0.3 * rng.normal(size=len(rows)) > 0).astype(int)
    del rows
    return np.load(path, mmap_mode="r"), y


def relative_peak_memory(work, rows):
    """Return the peak memory of a call as a fraction of the size of the rows, and its result."""
    tracemalloc.start()
    try:
        found = work()
        return tracemalloc.get_traced_memory()[1] / rows.nbytes, found
    finally:
        tracemalloc.stop()


def test_memory_maps_are_not_copied(mapped):
    X, y = mapped
    assert isinstance(X, np.memmap)
    assert not X.flags.writeable
    fraction, model = relative_peak_memory(lambda: MaxMarginClassifier().fit(X, y), X)
    assert model.status_ == "CERTIFIED"
    assert fraction < 0.9, "fraction of the rows in memory during the fit"
    fraction, labels = relative_peak_memory(lambda: model.predict(X), X)
    assert fraction < 0.1
    assert (labels == y).mean() > 0.85
    fraction, certificate = relative_peak_memory(lambda: verify(model, X, y), X)
    assert fraction < 0.9
    assert certificate.gap < 1e-3


def test_streams_use_memory_of_one_batch(mapped):
    X, y = mapped

    def learn():
        model = OnlineMarginClassifier()
        for first in range(0, len(X), 2_000):
            some = slice(first, first + 2_000)
            model.partial_fit(X[some], y[some], classes=[0, 1])
        return model

    learn()  # compiles; compilation takes memory
    fraction, model = relative_peak_memory(learn, X)
    assert fraction < 0.02
    assert model.n_seen_ == len(X)
