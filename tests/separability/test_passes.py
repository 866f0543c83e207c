"""`maxmargin separate` for files that are read in passes, against the verdict on the rows in memory."""

from __future__ import annotations

import json
from fractions import Fraction

import numpy as np
import pytest
import scipy.sparse as sp
from command import refused, run
from sklearn.datasets import dump_svmlight_file

from maxmargin import separate

N, D = 6_000, 4
NAMES = {2: "a,b,label", 4: "a,b,c,d,label"}


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
def in_passes(tmp_path):
    """Return a function that writes rows and labels, and returns the facts that the command finds in passes."""

    def search(X, y, *options, memory="60KB"):
        path = tmp_path / ("rows.svm" if sp.issparse(X) else "rows.csv")
        if sp.issparse(X):
            dump_svmlight_file(X, y, str(path), zero_based=False)
        else:
            np.savetxt(path, np.column_stack([X, y]), "%.17g", ",", header=NAMES[X.shape[1]], comments="")
        return json.loads(run("separate", path, "--json", "--memory", memory, *options).stdout)

    return search


@pytest.mark.parametrize(("p", "tol"), [(1, 1e-2), (2, 1e-2), (3, 0.1), (np.inf, np.inf)])
def test_a_separator_has_the_margin_of_the_rows_in_memory(in_passes, p, tol):
    X, y = data(0.05)
    found, whole = in_passes(X, y, "--p", p, "--tol", tol), separate(X, y, p=p)
    assert found["separable"]
    assert found["rows"] == y.size
    lower, upper = found["lower"], found["upper"]
    assert 0.0 < lower <= whole.hi
    assert upper is None or whole.lo <= upper
    assert tol == np.inf or lower >= (1.0 - tol) * upper


@pytest.mark.parametrize("options", [[], ["--no-bias"]], ids=str)
def test_a_proof_that_there_is_none_holds_for_all_rows(in_passes, options):
    X, y = data(0.05, seed=1, flipped=2)
    found = in_passes(X, y, *options)
    assert found["separable"] is False
    assert found["rows"] == y.size
    rows = [one["row"] - 1 for one in found["proof"]]
    weights = [Fraction(one["exact"]) for one in found["proof"]]
    assert min(weights) > 0
    extended = np.column_stack([X, np.full(y.size, float(not options))])[rows].tolist()
    signs = np.where(y[rows] == 3, 1, -1).tolist()
    for column in zip(*extended, strict=True):
        assert sum(w * s * Fraction(x) for w, s, x in zip(weights, signs, column, strict=True)) == 0


def test_sparse_rows_with_more_columns_than_rows_in_memory(in_passes):
    rng = np.random.default_rng(3)
    X = sp.random(3_000, 60, 0.1, "csr", rng=rng)
    X.data[:] = np.round(1024.0 * rng.normal(size=X.data.size)) / 1024.0
    scores = X @ rng.normal(size=60)
    X, scores = X[np.abs(scores) > 0.1], scores[np.abs(scores) > 0.1]
    y = (scores > 0.0).astype(int)
    assert in_passes(X, y, memory="100KB")["separable"]


def test_searches_without_room_are_undecided_with_a_remedy(in_passes):
    X, y = data(1e-4)
    found = in_passes(X, y, memory="400")
    assert found["separable"] or "give more memory" in found["reason"]


def test_what_needs_all_rows_in_memory_is_refused(in_passes, tmp_path):
    X, y = data(0.05)
    in_passes(X, y)
    path = tmp_path / "rows.csv"
    assert "leave out --kernel" in refused("separate", path, "--memory", "60KB", "--kernel", "rbf")
    path.write_text("a,label\n1,1\n2,2\n3,3\n")
    run("separate", path, "--memory", "60KB")  # the first time, the command also says where it keeps the rows
    assert "holds 3" in refused("separate", path, "--memory", "60KB")
