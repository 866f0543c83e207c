"""`separate` and its verdicts for rows in files, which are read in passes."""

import signal
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.datasets import dump_svmlight_file

from maxmargin import CertificateError, Undecided, separate, verify
from maxmargin.readers import row_cache

N, D = 6_000, 4


def data(gap, seed=0, flipped=0):
    """Return rows with a gap between two half-spaces, of which so many are on the wrong side."""
    rng = np.random.default_rng(seed)
    X = np.round(1024.0 * rng.normal(size=(N, D))) / 1024.0  # text keeps all digits
    w = rng.normal(size=D)
    scores = X @ w / np.linalg.norm(w) + 0.2
    X, scores = X[np.abs(scores) > gap], scores[np.abs(scores) > gap]
    y = np.where(scores > 0.0, 3, 1)
    wrong = rng.choice(y.size, flipped, replace=False)
    y[wrong] = 4 - y[wrong]
    return X, y


@pytest.fixture
def stored(tmp_path):
    """Return a function that writes rows and labels, and returns the arguments of `separate` for the files."""

    def write(X, y):
        if sp.issparse(X):
            dump_svmlight_file(X, y, str(tmp_path / "rows.svm"), zero_based=False)
            return (tmp_path / "rows.svm",)
        np.save(tmp_path / "X.npy", X)
        np.save(tmp_path / "y.npy", y)
        return tmp_path / "X.npy", tmp_path / "y.npy"

    return write


@pytest.mark.parametrize("p", [1, 2, 3, np.inf])
@pytest.mark.parametrize("tol", [1e-2, np.inf])
def test_a_separator_has_the_margin_of_the_rows_in_memory(stored, p, tol):
    X, y = data(0.05)
    files = stored(X, y)
    found = separate(*files, p=p, tol=tol, memory="60KB")
    assert found.separable
    assert found.classes == (1, 3)
    whole = separate(X, y, p=p)
    assert found.lo <= whole.hi
    assert whole.lo <= found.hi
    assert found.lo >= (1.0 - tol) * found.hi
    assert found.lo > 0.0
    assert found.verify(X, y) is found
    assert verify(found, *files) is found
    assert verify(whole, *files) is whole  # verdicts from memory are verified in passes, too
    for wrong in (
        replace(found, lo=1.001 * found.lo if tol < 1 else 2.0 * found.hi),
        replace(found, hi=0.5 * found.lo),
    ):
        with pytest.raises(CertificateError, match="fails"):
            verify(wrong, *files)


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("storage", [np.asarray, lambda X: X.astype(np.float32), sp.csr_matrix])
def test_a_proof_that_there_is_none_holds_for_all_rows(stored, bias, storage):
    X, y = data(0.05, seed=1, flipped=2)
    X = storage(X)
    files = stored(X, y)
    found = separate(*files, bias=bias, memory="60KB")
    assert found.separable is False
    assert found.rows == y.size
    assert found.verify(X, y) is found
    assert verify(found, *files) is found
    weights = (Fraction(1, 3), *found.weights[1:])
    with pytest.raises(CertificateError, match="the proof fails"):
        verify(replace(found, weights=weights), *files)
    for changes, words in (
        ({"rows": 5}, "about 5 rows"),
        ({"radius": 2.0 * found.radius + 1.0}, "radius fails"),
    ):
        with pytest.raises(CertificateError, match=words):
            verify(replace(found, **changes), *files)


def test_bounds_that_nothing_proves_are_refused_in_passes(stored):
    X, y = data(0.05, seed=1)
    files = stored(X, y)
    found = separate(X, y)
    proof = replace(found.certificate, lower=-np.inf)
    undecided = Undecided(
        hi=found.hi, certificate=proof, reason="", bias=True, classes=found.classes, features=X.shape[1], method="",
        seconds=0.0,
    )  # fmt: skip
    assert verify(undecided, *files) is undecided
    infinite = replace(proof, upper=np.inf)
    for change, words in (
        ({"hi": np.nan}, "upper bound fails"),
        ({"hi": np.inf, "certificate": replace(proof, upper=0.5 * found.lo)}, "upper bound fails"),
        ({"lo": found.lo}, "lower bound fails"),
        ({"lo": found.lo, "hi": np.inf, "certificate": infinite}, "lower bound fails"),
        ({"hi": np.inf, "p": 1.0, "certificate": infinite}, "another problem"),
    ):
        with pytest.raises(CertificateError, match=words):
            verify(replace(undecided, **change), *files)


def test_sparse_rows_with_more_columns_than_rows_in_memory(stored):
    rng = np.random.default_rng(3)
    X = sp.random(3_000, 60, 0.1, "csr", rng=rng)
    X.data[:] = np.round(1024.0 * rng.normal(size=X.data.size)) / 1024.0
    scores = X @ rng.normal(size=60)
    X, scores = X[np.abs(scores) > 0.1], scores[np.abs(scores) > 0.1]
    y = (scores > 0.0).astype(int)
    files = stored(X, y)
    found, whole = separate(*files, memory="100KB"), separate(X, y)
    assert found.separable
    assert whole.lo <= found.hi
    assert found.lo <= whole.hi
    assert verify(found, *files).verify(X, y) is found


def test_a_separator_that_float64_sums_do_not_prove(stored):
    """The classes differ by the last digit of one of 2^52 units."""
    rng = np.random.default_rng(0)
    first = np.where(np.arange(4_000) % 2 == 1, 2.0**52 + 1.0, 2.0**52)
    X = np.column_stack([first, rng.integers(-3, 4, 4_000)])
    y = np.arange(4_000) % 2
    files = stored(X, y)
    found = separate(*files, memory="20KB")
    assert found.separable
    assert verify(found, *files).verify(X, y) is found


def test_stopped_and_full_searches_are_undecided_with_a_bound(stored):
    X, y = data(1e-4)
    files = stored(X, y)
    found = separate(*files, max_time=1e-9, memory="60KB")
    assert found.separable is None
    assert "max_time went by while the files were read" in found.reason
    assert not list(files[0].parent.glob("*cache*"))  # nothing is left
    separate(*files, tol=np.inf, memory="60KB")  # reads the files
    found = separate(*files, max_time=1e-9, memory="60KB")
    assert found.separable is None
    assert "max_time went by" in found.reason
    assert verify(found, *files).verify(X, y) is found
    found = separate(*files, memory="400")
    if found.separable is None:
        assert "give more memory" in found.reason
    assert verify(found, *files).verify(X, y) is found


def test_ctrl_c_ends_the_first_reading_of_files(stored, monkeypatch):
    X, y = data(1e-4)
    files = stored(X, y)
    monkeypatch.setattr(row_cache, "announce", lambda *_, **__: signal.raise_signal(signal.SIGINT))
    with pytest.raises(KeyboardInterrupt) as error:
        separate(*files, memory="60KB")
    found = error.value.result
    assert found.separable is None
    assert "Ctrl-C interrupted the search while the files were read" in found.reason
    monkeypatch.undo()
    with pytest.raises(CertificateError, match="are not those of the verdict"):
        verify(found, *files)


def test_rows_that_fit_are_decided_in_memory_and_faults_are_sentences(stored):
    X, y = data(0.05)
    files = stored(X, y)
    found, whole = separate(*files), separate(X, y)
    assert (found.lo, found.hi) == (whole.lo, whole.hi)
    with pytest.raises(ValueError, match="a kernel needs all in memory"):
        separate(*files, kernel="rbf")
    with pytest.raises(ValueError, match="the labels of files are in files"):
        separate(files[0], y)
    with pytest.raises(CertificateError, match="are not those of the verdict"):
        verify(replace(found, classes=(1, 2)), *files)
    with pytest.raises(ValueError, match="holds 3: ask for one class"):
        separate(*stored(X, np.arange(y.size) % 3))
    with pytest.raises(ValueError, match="which is not a float64 number"):
        separate(*stored(np.array([[2**53 + 1], [2**53]]), np.array([0, 1])))


def test_a_score_that_overflows_is_not_lost_beside_other_blocks(tmp_path):
    """One row of 1.7e308 and one on the wrong side, in the last block."""
    n = 40_000
    y = np.repeat([0, 1], n // 2)
    X = np.repeat([[-1.0], [1.0]], n // 2, axis=0) * np.ones(8)
    X[-1], X[-2], y[-2] = 1.7e308, 5.0, 0
    np.save(tmp_path / "X.npy", X)
    np.save(tmp_path / "y.npy", y)
    paths = tmp_path / "X.npy", tmp_path / "y.npy"
    assert not separate(*paths, memory="600KB", cache_dir=tmp_path).separable
