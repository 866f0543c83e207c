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
def table_model(table, tmp_path):
    path = tmp_path / "table.safetensors"
    assert run("fit", table, "-o", path, "--class-weight", "balanced").exit_code == 0
    return path
