"""Tables with named columns: selection of features and label, and use of the names by the commands."""

from __future__ import annotations

import json

import numpy as np
import pytest
from command import X, Y, refused, run

from maxmargin import load
from maxmargin.io.readers import DataError, read

pa = pytest.importorskip("pyarrow", reason="pip install 'maxmargin[arrow]'")

ANSWERS = np.where(Y > 0, "yes", "no")
ENDS = (".csv", ".parquet", ".arrow", ".feather", ".ipc")
TABLE = {
    "id": np.arange(60) + 0.5,
    "a": X[:, 0],
    "b": X[:, 1],
    "town": np.where(X[:, 1] > 0, "Rome", "Oslo"),
    "c": X[:, 2],
    "d": X[:, 3],
    "answer": ANSWERS,
}


def write_table(path, columns=None):
    """Write a table in the format of the file's suffix; .ipc is written as a stream."""
    columns = TABLE if columns is None else columns
    if path.suffix == ".csv":
        rows = zip(*columns.values(), strict=True)
        path.write_text("\n".join([",".join(columns), *(",".join(map(str, row)) for row in rows)]) + "\n")
        return path
    table = pa.table(columns)
    if path.suffix == ".parquet":
        pytest.importorskip("pyarrow.parquet").write_table(table, path)
    elif path.suffix == ".feather":
        pytest.importorskip("pyarrow.feather").write_feather(table, path)
    else:
        writer = pa.ipc.new_stream if path.suffix == ".ipc" else pa.ipc.new_file
        with writer(path, table.schema) as file:
            for batch in table.to_batches(max_chunksize=17):
                file.write_batch(batch)
    return path


def error_message(path, **options):
    with pytest.raises(DataError) as error:
        read(path, **options)
    assert str(error.value).startswith(str(path))
    assert "\n" not in str(error.value)
    return str(error.value)


@pytest.mark.parametrize("end", ENDS)
class TestSelection:
    def test_named_columns_keep_the_requested_order(self, tmp_path, end):
        table = read(write_table(tmp_path / f"t{end}"), use=["d,a", "c"])
        assert table.feature_names == ["d", "a", "c"]
        assert np.array_equal(table.X, X[:, [3, 0, 2]])
        assert table.label_name == "answer"
        assert np.array_equal(table.y, ANSWERS)

    def test_dropped_columns_are_left_out(self, tmp_path, end):
        table = read(write_table(tmp_path / f"t{end}"), drop=["id, town"])
        assert table.feature_names == ["a", "b", "c", "d"]
        assert np.array_equal(table.X, X)
        # the last remaining column is the label, unless another is named
        table = read(tmp_path / f"t{end}", drop=["answer", "id"], label="town")
        assert (table.label_name, table.feature_names) == ("town", ["a", "b", "c", "d"])

    def test_label_may_be_any_column(self, tmp_path, end):
        table = read(write_table(tmp_path / f"t{end}"), use=["a"], label="town")
        assert (table.feature_names, table.label_name) == (["a"], "town")

    def test_inconsistent_options_are_refused(self, tmp_path, end):
        path = write_table(tmp_path / f"t{end}")
        assert "--columns names 'e', which is not a column; the columns are 'id', 'a'" in error_message(
            path, use=["a,e"]
        )
        assert "--drop names 'e'" in error_message(path, drop=["e"])
        assert "--columns names the column 'a' twice" in error_message(path, use=["a", "b,a"])
        assert "both --columns and --drop name the column 'a'" in error_message(path, use=["a"], drop=["a"])
        assert "both --label and --drop name the column 'town'" in error_message(
            path, drop=["town"], label="town"
        )
        assert "cannot be both the label and a feature" in error_message(
            path, use=["a", "town"], label="town"
        )
        assert "name the label column with --label" in error_message(path, use=["id,a,b,c,d,town,answer"])
        text = error_message(path)
        assert "'town'" in text
        assert "--drop" in text

    def test_columns_of_a_model_are_selected_by_name(self, tmp_path, end):
        path = write_table(tmp_path / f"t{end}")
        table = read(path, features=["c", "a"], n_features=2, label="answer", drop=["id"])
        assert np.array_equal(table.X, X[:, [2, 0]])
        assert "needs the column 'c', which --drop leaves out" in error_message(
            path, features=["a", "c"], drop=["c"]
        )
        assert "needs the column 'c', which --columns leaves out" in error_message(
            path, features=["a", "c"], use=["a"]
        )
        table = read(path, n_features=4, drop=["id,town,answer"])
        assert (table.feature_names, table.y) == (["a", "b", "c", "d"], None)
        table = read(path, n_features=4, use=["d,c,b,a"], label="answer")
        assert np.array_equal(table.X, X[:, ::-1])


class TestArrow:
    def test_names_may_contain_commas(self, tmp_path):
        path = write_table(tmp_path / "t.arrow", {"a, in m": X[:, 0], "b": X[:, 1], "y": Y})
        assert read(path, use=["a, in m"]).feature_names == ["a, in m"]
        assert read(path, drop=["a, in m"]).feature_names == ["b"]

    def test_column_types_are_converted(self, tmp_path):
        columns = {
            "half": pa.array(X[:, 0].astype(np.float16)), "true": pa.array(X[:, 1] > 0), "int": pa.array(range(60)),
            "y": pa.array(ANSWERS.tolist()).dictionary_encode(),
        }  # fmt: skip
        table = read(write_table(tmp_path / "t.arrow", columns))
        assert table.X.dtype == np.float64
        assert np.array_equal(table.X[:, 0], X[:, 0].astype(np.float16))
        assert np.array_equal(table.y, ANSWERS)
        single = {"a": X[:, 0].astype(np.float32), "b": X[:, 1].astype(np.float32), "y": Y}
        assert read(write_table(tmp_path / "s.arrow", single)).X.dtype == np.float32
        text = {"a": X[:, 0], "b": pa.array(ANSWERS.tolist()).dictionary_encode(), "y": Y}
        assert "column 'b' holds dictionary" in error_message(write_table(tmp_path / "u.arrow", text))

    def test_empty_bytes_and_date_labels(self, tmp_path):
        for end in (".arrow", ".parquet"):
            path = write_table(tmp_path / f"e{end}", {"a": [1.0, 2.0, 3.0], "y": ["u", " ", "v"]})
            assert "row 1 (counted from 0), column 'y' is empty" in error_message(path)
            path = write_table(tmp_path / f"b{end}", {"a": [1.0, 2.0], "y": [b"yes", "né".encode()]})
            assert read(path).y.tolist() == ["yes", "né"]
        path = write_table(tmp_path / "l.arrow", {"a": [1.0, 2.0], "y": [b"yes", b"\xff"]})
        assert "not text in UTF-8" in error_message(path)
        dates = np.array(["2020-01-01", "2021-01-01"], "datetime64[s]")[(Y > 0).astype(int)]
        path = write_table(tmp_path / "d.arrow", {"a": X[:, 0], "y": dates})
        refusal = refused("fit", path, "-o", tmp_path / "m")
        assert "the labels (column 'y') are dates or times" in refusal
        assert not (tmp_path / "m").exists()

    def test_compressed_buffers_are_read(self, tmp_path):
        table = pa.table({"a": X[:, 0], "y": Y})
        options = pa.ipc.IpcWriteOptions(compression="lz4")
        with pa.ipc.new_file(tmp_path / "t.arrow", table.schema, options=options) as file:
            file.write_table(table)
        assert np.array_equal(read(tmp_path / "t.arrow").X[:, 0], X[:, 0])

    def test_missing_entries_are_refused(self, tmp_path):
        path = write_table(tmp_path / "t.arrow", {"a": [1.0, None, 2.0], "y": [0, 1, 0]})
        assert "row 1 (counted from 0), column 'a' is empty" in error_message(path)
        path = write_table(tmp_path / "n.arrow", {"a": [1.0, np.nan, 2.0], "y": [0, 1, 0]})
        assert "row 1 (counted from 0), column 'a' is nan" in error_message(path)
        assert "holds no rows" in error_message(write_table(tmp_path / "e.arrow", {"a": [], "y": []}))

    @pytest.mark.parametrize("end", [".arrow", ".ipc", ".feather", ".parquet"])
    def test_truncated_files_are_refused(self, tmp_path, end):
        content = write_table(tmp_path / f"w{end}").read_bytes()
        path = tmp_path / f"t{end}"
        # a stream that ends between two batches is complete
        for cut in [*range(1, 40, 3), *range(40, len(content) - 300, 211), len(content) - 20]:
            path.write_bytes(content[:cut])
            try:
                table = read(path, drop=["id", "town"])
            except DataError:
                continue
            assert end == ".ipc"
            assert np.array_equal(table.X, X[: len(table.X)])

    def test_unsupported_files_are_refused_with_a_remedy(self, tmp_path):
        (tmp_path / "t.feather").write_bytes(b"FEA1 and more")
        assert "write it in version 2" in error_message(tmp_path / "t.feather")
        write_table(tmp_path / "t.arrow").rename(tmp_path / "t.csv")
        assert "this is a .arrow file by its content" in error_message(tmp_path / "t.csv")
        (tmp_path / "t.arrow.gz").write_bytes(b"x")
        assert "decompress it first" in error_message(tmp_path / "t.arrow.gz")
        duplicated = pa.table([X[:, 0], X[:, 1], Y], names=["a", "a", "y"])
        with pa.ipc.new_file(tmp_path / "d.arrow", duplicated.schema) as file:
            file.write_table(duplicated)
        assert "two columns are named 'a'" in error_message(tmp_path / "d.arrow")

    @pytest.mark.parametrize("end", [".parquet", ".feather"])
    def test_pandas_index_columns_are_not_features(self, tmp_path, end):
        pd = pytest.importorskip("pandas")
        frame = pd.DataFrame({"a": X[:, 0], "b": X[:, 1], "y": Y})
        frame = frame[frame.a > 0]
        path = tmp_path / f"t{end}"
        if end == ".parquet":
            frame.to_parquet(path)
        else:
            pytest.importorskip("pyarrow.feather").write_feather(pa.Table.from_pandas(frame), path)
        assert read(path).feature_names == ["a", "b"]
        assert read(path, use=["__index_level_0__", "a"]).feature_names == ["__index_level_0__", "a"]


class TestCommands:
    @pytest.mark.parametrize("end", [".csv", ".parquet", ".arrow"])
    def test_column_options_work_from_fit_to_check(self, tmp_path, end):
        data, model = write_table(tmp_path / f"t{end}"), tmp_path / "m.safetensors"
        options = ("--drop", "id,town", "--label", "answer")
        result = run("fit", data, "-o", model, "--seed", 0, *options)
        assert result.exit_code == 0, result.output
        assert "weights for yes: a " in result.stdout
        assert load(model).feature_names_in_.tolist() == ["a", "b", "c", "d"]
        record = json.loads(run("fit", data, "-o", model, "--seed", 0, *options, "--json").stdout)
        assert record["feature_names"] == ["a", "b", "c", "d"]
        for arguments in ((), options):
            assert (
                run("predict", model, data, *arguments).stdout.splitlines()
                == load(model).predict(_frame()).tolist()
            )
            checked = json.loads(run("check", model, data, *arguments, "--json").stdout)
            assert checked["feature_names"] == ["a", "b", "c", "d"]
        assert "needs the column 'a', which --drop leaves out" in refused(
            "predict", model, data, "--drop", "a"
        )
        assert "needs the column 'b', which --columns leaves out" in refused(
            "check", model, data, "--columns", "a"
        )

    def test_features_are_refused_as_labels(self, tmp_path):
        data, model = write_table(tmp_path / "t.csv"), tmp_path / "m.safetensors"
        assert run("fit", data, "-o", model, "--drop", "id,town", "--label", "answer").exit_code == 0
        for command, arguments in (("check", ()), ("predict", ()), ("report", ("-o", tmp_path / "r.html"))):
            refusal = refused(command, model, data, "--label", "a", *arguments)
            assert "the column 'a' is a feature of the model; name the column of the labels" in refusal
            refusal = refused(command, model, data, "--label", "age", *arguments)
            assert "there is no label column 'age'" in refusal

    @pytest.mark.parametrize(("first", "other"), [(".arrow", ".csv"), (".csv", ".arrow")])
    def test_boolean_labels_agree_between_csv_and_arrow(self, tmp_path, first, other):
        columns = {"a": X[:, 0], "b": X[:, 1], "y": Y > 0}
        model = tmp_path / "m.safetensors"
        assert run("fit", write_table(tmp_path / f"t{first}", columns), "-o", model).exit_code == 0
        assert load(model).classes_.dtype.kind == ("b" if first == ".arrow" else "U")
        data = write_table(tmp_path / f"t{other}", columns)
        for end in (first, other):
            assert run("check", model, tmp_path / f"t{end}").exit_code == 0
            assert "accuracy 0." in run("predict", model, tmp_path / f"t{end}").stderr
        assert data.exists()

    def test_fit_prints_weights_of_every_class(self, tmp_path):
        columns = {name: TABLE[name] for name in ("a", "b", "c", "d")} | {
            "y": np.digitize(X[:, 0], [-0.5, 0.5])
        }
        result = run(
            "fit", write_table(tmp_path / "t.csv", columns), "-o", tmp_path / "m", "--columns", "a,b"
        )
        lines = [line for line in result.stdout.splitlines() if line.startswith("weights")]
        assert [line.split(": ")[0] for line in lines] == [f"weights for {k}" for k in range(3)]
        assert all(" a " in line and " b " in line and " c " not in line for line in lines)

    def test_separate_select_and_compare_use_column_options(self, tmp_path):
        data = write_table(tmp_path / "t.arrow")
        options = ("--columns", "d,a", "--label", "answer")
        found = json.loads(run("separate", data, *options, "--json").stdout)
        assert found["feature_names"] == ["d", "a"]
        ranked = json.loads(run("select", data, *options, "--folds", 2, "--json").stdout)
        assert sorted(ranked["ranking"]) == ["a", "d"]
        compared = run("compare", data, *options, "--algorithms", "dcd", "--json")
        assert json.loads(compared.stdout)["algorithms"][0]["status"] == "CERTIFIED"

    @pytest.mark.parametrize("command", ["fit", "separate", "select", "compare"])
    def test_column_options_are_refused_for_files_without_names(self, tmp_path, command):
        (tmp_path / "t.svm").write_text("1 1:1\n-1 1:2\n")
        output = ("-o", tmp_path / "m") if command == "fit" else ()
        for option in ("--columns", "--drop"):
            refusal = refused(command, tmp_path / "t.svm", *output, option, "a")
            assert f"{option} names a column of a .csv, .parquet or .arrow file" in refusal
            assert refusal.endswith(f"leave {option} out.")
        if command == "fit":
            assert "--drop does not apply with --online" in refused(
                "fit", tmp_path / "t.svm", *output, "--online", "--drop", "a"
            )


def _frame():
    pd = pytest.importorskip("pandas")
    return pd.DataFrame(X, columns=list("abcd"))
