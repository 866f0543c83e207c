"""The same rows as files of several kinds, and a model fitted to them."""

import numpy as np
import pytest
from command import X, Y, run
from sklearn.datasets import dump_svmlight_file


@pytest.fixture
def data(tmp_path):
    path = tmp_path / "train.svm"
    dump_svmlight_file(X, Y, str(path), zero_based=False)
    return path


@pytest.fixture
def table(tmp_path):
    path = tmp_path / "train.csv"
    rows = np.column_stack([X.astype(str), np.where(Y > 0, "yes", "no")])
    np.savetxt(path, rows, "%s", ",", header="a,b,c,d,answer", comments="")
    return path


@pytest.fixture
def model(data, tmp_path):
    path = tmp_path / "model.safetensors"
    assert run("fit", data, "-o", path, "--seed", 0).exit_code == 0
    return path


@pytest.fixture
def folder(tmp_path):
    """A folder of two text tables of 6,000 rows in all, which are read in passes; the rows and labels."""
    rng = np.random.default_rng(0)
    X = np.round(rng.normal(size=(6_000, 5)), 4)
    y = np.where(X @ rng.normal(size=5) + rng.normal(size=6_000) > 0.0, "yes", "no")
    path = tmp_path / "parts"
    path.mkdir()
    for k, rows in enumerate((slice(2_000), slice(2_000, None))):
        lines = [
            ",".join([*map(str, row), name]) for row, name in zip(X[rows].tolist(), y[rows], strict=True)
        ]
        (path / f"{k}.csv").write_text("\n".join(["a,b,c,d,e,label", *lines]) + "\n")
    return path, X, y
