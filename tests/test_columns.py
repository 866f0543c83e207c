"""Tables of named columns: which are features, which is the label, and what the commands make of their names."""

from __future__ import annotations

import json

import numpy as np
import pytest
from test_cli import X, Y, refused, run

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


def written(path, columns=None):
    """A table in the file that the end of the name asks for; .ipc is written as a stream."""
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


def message(path, **options):
    with pytest.raises(DataError) as caught:
        read(path, **options)
    assert str(caught.value).startswith(str(path))
    assert "\n" not in str(caught.value)
    return str(caught.value)


@pytest.mark.parametrize("end", ENDS)
class TestSelection:
    def test_named_columns_in_their_order(self, tmp_path, end):
        table = read(written(tmp_path / f"t{end}"), use=["d,a", "c"])
        assert table.feature_names == ["d", "a", "c"]
        assert np.array_equal(table.X, X[:, [3, 0, 2]])
        assert table.label_name == "answer"
        assert np.array_equal(table.y, ANSWERS)

    def test_dropped_columns(self, tmp_path, end):
        table = read(written(tmp_path / f"t{end}"), drop=["id, town"])
        assert table.feature_names == ["a", "b", "c", "d"]
        assert np.array_equal(table.X, X)
        # the last of those that are left is the label, unless one is named
        table = read(tmp_path / f"t{end}", drop=["answer", "id"], label="town")
        assert (table.label_name, table.feature_names) == ("town", ["a", "b", "c", "d"])

    def test_label_among_others(self, tmp_path, end):
        table = read(written(tmp_path / f"t{end}"), use=["a"], label="town")
        assert (table.feature_names, table.label_name) == (["a"], "town")

    def test_what_cannot_be(self, tmp_path, end):
        path = written(tmp_path / f"t{end}")
        assert "--columns names 'e', which is not a column; the columns are 'id', 'a'" in message(
            path, use=["a,e"]
        )
        assert "--drop names 'e'" in message(path, drop=["e"])
        assert "--columns names the column 'a' twice" in message(path, use=["a", "b,a"])
        assert "both --columns and --drop name the column 'a'" in message(path, use=["a"], drop=["a"])
        assert "both --label and --drop name the column 'town'" in message(path, drop=["town"], label="town")
        assert "cannot be both the label and a feature" in message(path, use=["a", "town"], label="town")
        assert "name the label column with --label" in message(path, use=["id,a,b,c,d,town,answer"])
        text = message(path)
        assert "'town'" in text
        assert "--drop" in text

    def test_a_model_knows_its_columns(self, tmp_path, end):
        path = written(tmp_path / f"t{end}")
        table = read(path, features=["c", "a"], n_features=2, label="answer", drop=["id"])
        assert np.array_equal(table.X, X[:, [2, 0]])
        assert "needs the column 'c', which --drop leaves out" in message(
            path, features=["a", "c"], drop=["c"]
        )
        assert "needs the column 'c', which --columns leaves out" in message(
            path, features=["a", "c"], use=["a"]
        )
        table = read(path, n_features=4, drop=["id,town,answer"])
        assert (table.feature_names, table.y) == (["a", "b", "c", "d"], None)
        table = read(path, n_features=4, use=["d,c,b,a"], label="answer")
        assert np.array_equal(table.X, X[:, ::-1])


class TestArrow:
    def test_names_with_commas(self, tmp_path):
        path = written(tmp_path / "t.arrow", {"a, in m": X[:, 0], "b": X[:, 1], "y": Y})
        assert read(path, use=["a, in m"]).feature_names == ["a, in m"]
        assert read(path, drop=["a, in m"]).feature_names == ["b"]

    def test_types(self, tmp_path):
        columns = {
            "half": pa.array(X[:, 0].astype(np.float16)), "true": pa.array(X[:, 1] > 0), "int": pa.array(range(60)),
            "y": pa.array(ANSWERS.tolist()).dictionary_encode(),
        }  # fmt: skip
        table = read(written(tmp_path / "t.arrow", columns))
        assert table.X.dtype == np.float64
        assert np.array_equal(table.X[:, 0], X[:, 0].astype(np.float16))
        assert np.array_equal(table.y, ANSWERS)
        single = {"a": X[:, 0].astype(np.float32), "b": X[:, 1].astype(np.float32), "y": Y}
        assert read(written(tmp_path / "s.arrow", single)).X.dtype == np.float32
        text = {"a": X[:, 0], "b": pa.array(ANSWERS.tolist()).dictionary_encode(), "y": Y}
        assert "column 'b' holds dictionary" in message(written(tmp_path / "u.arrow", text))

    def test_labels_that_are_empty_bytes_or_dates(self, tmp_path):
        for end in (".arrow", ".parquet"):
            path = written(tmp_path / f"e{end}", {"a": [1.0, 2.0, 3.0], "y": ["u", " ", "v"]})
            assert "row 1 (counted from 0), column 'y' is empty" in message(path)
            path = written(tmp_path / f"b{end}", {"a": [1.0, 2.0], "y": [b"yes", "né".encode()]})
            assert read(path).y.tolist() == ["yes", "né"]
        path = written(tmp_path / "l.arrow", {"a": [1.0, 2.0], "y": [b"yes", b"\xff"]})
        assert "not text in UTF-8" in message(path)
        dates = np.array(["2020-01-01", "2021-01-01"], "datetime64[s]")[(Y > 0).astype(int)]
        path = written(tmp_path / "d.arrow", {"a": X[:, 0], "y": dates})
        said = refused("fit", path, "-o", tmp_path / "m")
        assert "the labels (column 'y') are dates or times" in said
        assert not (tmp_path / "m").exists()

    def test_compressed_buffers(self, tmp_path):
        table = pa.table({"a": X[:, 0], "y": Y})
        options = pa.ipc.IpcWriteOptions(compression="lz4")
        with pa.ipc.new_file(tmp_path / "t.arrow", table.schema, options=options) as file:
            file.write_table(table)
        assert np.array_equal(read(tmp_path / "t.arrow").X[:, 0], X[:, 0])

    def test_missing_entries(self, tmp_path):
        path = written(tmp_path / "t.arrow", {"a": [1.0, None, 2.0], "y": [0, 1, 0]})
        assert "row 1 (counted from 0), column 'a' is empty" in message(path)
        path = written(tmp_path / "n.arrow", {"a": [1.0, np.nan, 2.0], "y": [0, 1, 0]})
        assert "row 1 (counted from 0), column 'a' is nan" in message(path)
        assert "holds no rows" in message(written(tmp_path / "e.arrow", {"a": [], "y": []}))

    @pytest.mark.parametrize("end", [".arrow", ".ipc", ".feather", ".parquet"])
    def test_cut_files(self, tmp_path, end):
        whole = written(tmp_path / f"w{end}").read_bytes()
        path = tmp_path / f"t{end}"
        # a stream that ends between two batches is a whole one
        for cut in [*range(1, 40, 3), *range(40, len(whole) - 300, 211), len(whole) - 20]:
            path.write_bytes(whole[:cut])
            try:
                table = read(path, drop=["id", "town"])
            except DataError:
                continue
            assert end == ".ipc"
            assert np.array_equal(table.X, X[: len(table.X)])

    def test_other_kinds(self, tmp_path):
        (tmp_path / "t.feather").write_bytes(b"FEA1 and more")
        assert "write it in version 2" in message(tmp_path / "t.feather")
        written(tmp_path / "t.arrow").rename(tmp_path / "t.csv")
        assert "this is a .arrow file by its content" in message(tmp_path / "t.csv")
        (tmp_path / "t.arrow.gz").write_bytes(b"x")
        assert "decompress it first" in message(tmp_path / "t.arrow.gz")
        twice = pa.table([X[:, 0], X[:, 1], Y], names=["a", "a", "y"])
        with pa.ipc.new_file(tmp_path / "d.arrow", twice.schema) as file:
            file.write_table(twice)
        assert "two columns are named 'a'" in message(tmp_path / "d.arrow")

    @pytest.mark.parametrize("end", [".parquet", ".feather"])
    def test_names_of_rows_that_pandas_keeps_are_no_features(self, tmp_path, end):
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
    def test_from_the_fit_to_the_check(self, tmp_path, end):
        data, model = written(tmp_path / f"t{end}"), tmp_path / "m.safetensors"
        words = ("--drop", "id,town", "--label", "answer")
        shown = run("fit", data, "-o", model, "--seed", 0, *words)
        assert shown.exit_code == 0, shown.output
        assert "weights for yes: a " in shown.stdout
        assert load(model).feature_names_in_.tolist() == ["a", "b", "c", "d"]
        facts = json.loads(run("fit", data, "-o", model, "--seed", 0, *words, "--json").stdout)
        assert facts["feature_names"] == ["a", "b", "c", "d"]
        for more in ((), words):
            assert (
                run("predict", model, data, *more).stdout.splitlines()
                == load(model).predict(_frame()).tolist()
            )
            checked = json.loads(run("check", model, data, *more, "--json").stdout)
            assert checked["feature_names"] == ["a", "b", "c", "d"]
        assert "needs the column 'a', which --drop leaves out" in refused(
            "predict", model, data, "--drop", "a"
        )
        assert "needs the column 'b', which --columns leaves out" in refused(
            "check", model, data, "--columns", "a"
        )

    def test_a_feature_is_no_label(self, tmp_path):
        data, model = written(tmp_path / "t.csv"), tmp_path / "m.safetensors"
        assert run("fit", data, "-o", model, "--drop", "id,town", "--label", "answer").exit_code == 0
        for command, more in (("check", ()), ("predict", ()), ("report", ("-o", tmp_path / "r.html"))):
            said = refused(command, model, data, "--label", "a", *more)
            assert "the column 'a' is a feature of the model; name the column of the labels" in said
            said = refused(command, model, data, "--label", "age", *more)
            assert "there is no label column 'age'" in said

    @pytest.mark.parametrize(("first", "other"), [(".arrow", ".csv"), (".csv", ".arrow")])
    def test_truth_as_text_and_as_booleans(self, tmp_path, first, other):
        columns = {"a": X[:, 0], "b": X[:, 1], "y": Y > 0}
        model = tmp_path / "m.safetensors"
        assert run("fit", written(tmp_path / f"t{first}", columns), "-o", model).exit_code == 0
        assert load(model).classes_.dtype.kind == ("b" if first == ".arrow" else "U")
        data = written(tmp_path / f"t{other}", columns)
        for end in (first, other):
            assert run("check", model, tmp_path / f"t{end}").exit_code == 0
            assert "accuracy 0." in run("predict", model, tmp_path / f"t{end}").stderr
        assert data.exists()

    def test_weights_of_every_class(self, tmp_path):
        columns = {name: TABLE[name] for name in ("a", "b", "c", "d")} | {
            "y": np.digitize(X[:, 0], [-0.5, 0.5])
        }
        shown = run("fit", written(tmp_path / "t.csv", columns), "-o", tmp_path / "m", "--columns", "a,b")
        lines = [line for line in shown.stdout.splitlines() if line.startswith("weights")]
        assert [line.split(": ")[0] for line in lines] == [f"weights for {k}" for k in range(3)]
        assert all(" a " in line and " b " in line and " c " not in line for line in lines)

    def test_separate_select_compare(self, tmp_path):
        data = written(tmp_path / "t.arrow")
        words = ("--columns", "d,a", "--label", "answer")
        found = json.loads(run("separate", data, *words, "--json").stdout)
        assert found["feature_names"] == ["d", "a"]
        ranked = json.loads(run("select", data, *words, "--folds", 2, "--json").stdout)
        assert sorted(ranked["ranking"]) == ["a", "d"]
        compared = run("compare", data, *words, "--algorithms", "dcd", "--json")
        assert json.loads(compared.stdout)["algorithms"][0]["status"] == "CERTIFIED"

    @pytest.mark.parametrize("command", ["fit", "separate", "select", "compare"])
    def test_columns_without_names(self, tmp_path, command):
        (tmp_path / "t.svm").write_text("1 1:1\n-1 1:2\n")
        output = ("-o", tmp_path / "m") if command == "fit" else ()
        for option in ("--columns", "--drop"):
            said = refused(command, tmp_path / "t.svm", *output, option, "a")
            assert f"{option} names a column of a .csv, .parquet or .arrow file" in said
            assert said.endswith(f"leave {option} out.")
        if command == "fit":
            assert "--drop does not apply with --online" in refused(
                "fit", tmp_path / "t.svm", *output, "--online", "--drop", "a"
            )


def _frame():
    pd = pytest.importorskip("pandas")
    return pd.DataFrame(X, columns=list("abcd"))
