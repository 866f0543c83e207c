"""Arrow data that are no files: data sets, tables, data frames and streams are read once into a cache."""

import os
import subprocess
import sys
import tempfile

import numpy as np
import pytest

from maxmargin import MaxMarginClassifier, verify
from maxmargin.readers.row_cache import open_rows
from maxmargin.readers.table import DataError

pa = pytest.importorskip("pyarrow", reason="pip install 'maxmargin[arrow]'")
dataset = pytest.importorskip("pyarrow.dataset")

RNG = np.random.default_rng(0)
X = RNG.normal(size=(5_000, 3))
Y = np.where(X @ RNG.normal(size=3) + RNG.normal(size=5_000) > 0.0, "yes", "no")
TABLE = pa.table({"a": X[:, 0], "b": X[:, 1], "label": Y, "c": X[:, 2]})


def sources(tmp_path):
    """Yield functions that return Arrow data."""
    for k, part in enumerate((TABLE.slice(0, 3_000), TABLE.slice(3_000))):
        dataset.write_dataset(part, tmp_path / "set", format="parquet", basename_template=f"{k}-{{i}}.parquet",
                              existing_data_behavior="overwrite_or_ignore")  # fmt: skip
        dataset.write_dataset(part, tmp_path / "text", format="csv", basename_template=f"{k}-{{i}}.csv",
                              existing_data_behavior="overwrite_or_ignore")  # fmt: skip
    yield "Parquet", lambda: dataset.dataset(tmp_path / "set", format="parquet")
    yield "CSV", lambda: dataset.dataset(tmp_path / "text", format="csv")
    yield "table", lambda: TABLE
    yield "reader", lambda: pa.RecordBatchReader.from_batches(TABLE.schema, TABLE.to_batches(700))
    try:
        import polars
    except ImportError:
        return
    yield "polars", lambda: polars.from_arrow(TABLE)


def test_fits_and_checks_are_those_of_the_rows(tmp_path):
    parameters = {"memory": "60KB", "random_state": 0, "cache_dir": tmp_path / "caches"}
    for name, source in sources(tmp_path):
        found = MaxMarginClassifier(**parameters).fit(source())
        assert list(found.feature_names_in_) == list("abc"), name
        assert list((tmp_path / "caches").glob(".rows.*")) == [], name  # nothing is left
        plain = MaxMarginClassifier(**parameters).fit(X, Y)
        np.testing.assert_array_equal(found.coef_, plain.coef_)
        assert verify(found, source()).gap == verify(plain, tmp_path / "set").gap


def test_faults_name_the_data_and_leave_nothing(tmp_path):
    with pytest.raises(ValueError, match="name the memory"):
        MaxMarginClassifier().fit(dataset.dataset(TABLE))
    for columns, message in (
        ({"a": [1.0, None], "y": [0, 1]}, r"Arrow data: row 2 \(counted from 1\), column 'a' is empty"),
        ({"a": ["u", "v"], "y": [0, 1]}, "Arrow data: column 'a' holds string, not numbers"),
        ({"a": pa.array([], pa.float64()), "y": pa.array([], pa.int64())}, "the file holds no rows"),
    ):
        with pytest.raises(DataError, match=message):
            open_rows(pa.table(columns), cache_dir=tmp_path)
        assert list(tmp_path.iterdir()) == []


def test_rows_of_processes_that_were_killed_are_deleted_by_the_next(tmp_path, monkeypatch):
    code = (
        "import os, pyarrow; from maxmargin.readers.row_cache import open_rows;"
        "rows = open_rows(pyarrow.table({'a': [1.0, 2.0], 'y': [0, 1]})); os._exit(3)"
    )
    ended = subprocess.run(
        [sys.executable, "-c", code], env=os.environ | dict.fromkeys(("TMPDIR", "TEMP", "TMP"), str(tmp_path))
    )
    assert ended.returncode == 3
    left = list(tmp_path.iterdir())
    assert len(left) == 1
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    first, second = open_rows(TABLE), open_rows(TABLE)
    assert len({*tmp_path.iterdir()} - {*left}) == len(list(tmp_path.iterdir())) == 2
    assert first.X.shape == second.X.shape


def test_rows_stay_as_long_as_they_are_used(tmp_path):
    rows = open_rows(TABLE, cache_dir=tmp_path, label="label", use=["c", "a"])
    np.testing.assert_array_equal(rows.X, X[:, [2, 0]])
    np.testing.assert_array_equal(rows.classes[rows.codes], Y)
    assert len(list(tmp_path.iterdir())) == 1
    del rows
    assert list(tmp_path.iterdir()) == []
