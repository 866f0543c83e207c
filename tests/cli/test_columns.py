"""Tables with named columns: selection of features and label, and use of the names by the commands."""

from __future__ import annotations

import json

import numpy as np
import pytest
from command import X, Y, refused, run

from maxmargin import load
from maxmargin.readers import DataError, read

pa = pytest.importorskip("pyarrow", reason="pip install 'maxmargin[arrow]'")
pd = pytest.importorskip("pandas")

ANSWERS = np.where(Y > 0, "yes", "no")
TOWNS = np.where(X[:, 1] > 0, "Rome", "Oslo")
TABLE = {"id": np.arange(60) + 0.5, **dict(zip("abcd", X.T, strict=True)), "town": TOWNS, "answer": ANSWERS}


def write_table(path, columns=TABLE):
    """Write a table in the format of the file's suffix; .ipc is written as a stream."""
    if path.suffix == ".csv":
        pd.DataFrame(columns).to_csv(path, index=False)
    elif path.suffix == ".parquet":
        pytest.importorskip("pyarrow.parquet").write_table(pa.table(columns), path)
    elif path.suffix == ".ipc":
        with pa.ipc.new_stream(path, pa.table(columns).schema) as file:
            file.write_table(pa.table(columns), 17)
    else:  # with compressed buffers
        pytest.importorskip("pyarrow.feather").write_feather(pa.table(columns), path, chunksize=17)
    return path


@pytest.mark.parametrize("end", [".csv", ".parquet", ".arrow", ".feather", ".ipc"])
def test_columns_are_selected_by_name(tmp_path, end):
    path = write_table(tmp_path / f"t{end}")
    for options, names, label in (
        ({"use": ["d,a", "c"]}, "dac", "answer"),
        ({"drop": ["id, town"]}, "abcd", "answer"),
        ({"drop": ["answer", "id"], "label": "town"}, "abcd", "town"),
        ({"use": ["a"], "label": "town"}, "a", "town"),
        # columns of a model: by name, or by position
        ({"features": ["c", "a"], "n_features": 2, "label": "answer", "drop": ["id"]}, "ca", "answer"),
        ({"n_features": 4, "drop": ["id,town,answer"]}, "abcd", None),
    ):
        table = read(path, **options)
        assert (table.feature_names, table.label_name) == (list(names), label)
        assert np.array_equal(table.X, X[:, ["abcd".index(name) for name in names]])
        assert np.array_equal(table.y, TABLE.get(label))
    for options, message in (
        ({"use": ["a,e"]}, "--columns names 'e', which is not a column; the columns are 'id', 'a'"),
        ({"use": ["a", "b,a"]}, "--columns names the column 'a' twice"),
        ({"use": ["a"], "drop": ["a"]}, "both --columns and --drop name the column 'a'"),
        ({"drop": ["town"], "label": "town"}, "both --label and --drop name the column 'town'"),
        ({"use": ["a", "town"], "label": "town"}, "cannot be both the label and a feature"),
        ({"features": ["a", "c"], "drop": ["c"]}, "needs the column 'c', which --drop leaves out"),
        ({"features": ["a", "e"]}, "the model needs the column 'e'"),
        ({}, "'town'"),
    ):
        with pytest.raises(DataError, match=message):
            read(path, **options)


def test_arrow_types_are_converted_or_refused(tmp_path):
    classes = pa.array(ANSWERS.tolist()).dictionary_encode()
    half = {"a, in m": pa.array(X[:, 0].astype(np.float16)), "true": pa.array(X[:, 1] > 0), "y": classes}
    path = tmp_path / "t.arrow"
    table = read(write_table(path, half), use=["a, in m", "true"])
    assert np.array_equal(table.X, np.column_stack([X[:, 0].astype(np.float16), X[:, 1] > 0]))
    assert np.array_equal(table.y, ANSWERS)
    assert read(write_table(path, {"a": X[:, 0].astype(np.float32), "y": Y})).X.dtype == np.float32
    for columns, message in (
        ({"a": X[:, 0], "b": classes, "y": Y}, "column 'b' holds dictionary"),
        ({"a": [1.0, None, 2.0], "y": [0, 1, 0]}, "column 'a' is empty"),
        ({"a": [1.0, np.nan, 2.0], "y": [0, 1, 0]}, "column 'a' is nan"),
        ({"a": [1.0, 2.0, 3.0], "y": ["u", " ", "v"]}, "column 'y' is empty"),
        ({"a": [1.0, np.inf], "y": [0, 1]}, r"row 2 \(counted from 1\), column 'a' is inf"),
        ({"a": ["u", "v"], "y": [0, 1]}, "column 'a' holds string, not numbers"),
        ({"a": [], "y": []}, "the file holds no rows"),
        ({"a": [1.0, 2.0], "y": [b"yes", b"\xff"]}, "not text in UTF-8"),
    ):
        with pytest.raises(DataError, match=message):
            read(write_table(path, columns))


def test_all_commands_use_column_options(tmp_path):
    data, model = write_table(tmp_path / "t.arrow"), tmp_path / "m.safetensors"
    options = ("--drop", "id,town", "--label", "answer")
    assert "weights for yes: a " in run("fit", data, "-o", model, *options).stdout
    assert run("predict", model, data, *options).stdout == run("predict", model, data).stdout
    for arguments in ((), options):
        checked = json.loads(run("check", model, data, *arguments, "--json").stdout)
        assert checked["feature_names"] == ["a", "b", "c", "d"]
    assert "the column 'a' is a feature" in refused("check", model, data, "--label", "a")
    found = json.loads(run("separate", data, *options, "--json").stdout)
    assert found["feature_names"] == ["a", "b", "c", "d"]
    ranked = json.loads(run("select", data, *options, "--folds", 2, "--json").stdout)
    assert sorted(ranked["ranking"]) == ["a", "b", "c", "d"]
    assert run("compare", data, *options, "--algorithms", "dcd").exit_code == 0
    (tmp_path / "t.svm").write_text("1 1:1 2:1\n-1 1:2 2:5\n" * 2)
    ranked = json.loads(run("select", tmp_path / "t.svm", "--folds", 2, "--json").stdout)
    assert sorted(ranked["ranking"]) == ["1", "2"]  # as in the file
    assert "--drop names a column of a .csv" in refused("separate", tmp_path / "t.svm", "--drop", "a")


def test_boolean_labels_agree_between_csv_and_arrow(tmp_path):
    csv, arrow = (write_table(tmp_path / f"t{end}", {"a": X[:, 0], "y": Y > 0}) for end in (".csv", ".arrow"))
    for fitted, kind in ((csv, "U"), (arrow, "b")):
        assert run("fit", fitted, "-o", tmp_path / "m").exit_code == 0
        assert load(tmp_path / "m").classes_.dtype.kind == kind
        for data in (csv, arrow):
            assert run("check", tmp_path / "m", data).exit_code == 0
            assert "accuracy 0." in run("predict", tmp_path / "m", data).stderr
