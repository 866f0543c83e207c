"""maxmargin predict on files that do not fit in memory: the output of the command on files that do."""

import json

import numpy as np
import pytest
from command import refused, run
from memory import with_peak_memory
from sklearn.datasets import dump_svmlight_file

from maxmargin import KernelMaxMarginClassifier, MaxMarginClassifier, load, save

RNG = np.random.default_rng(0)
X = np.round(RNG.normal(size=(3_000, 4)), 3)
CLASSES = np.argmax(X[:, :3] + RNG.normal(size=(3_000, 3)), axis=1)


def write(path, labels=CLASSES, names="abcd", rows=X):
    """Write a data set in the format of the end of its name."""
    if path.suffix == ".svm":
        dump_svmlight_file(rows, labels, str(path), zero_based=False)
    elif path.suffix == ".csv":
        lines = [
            ",".join([*map(str, row), str(label)]) for row, label in zip(rows.tolist(), labels, strict=True)
        ]
        path.write_text("\n".join([",".join([*names, "label"]), *lines]) + "\n")
    else:
        pa = pytest.importorskip("pyarrow")
        table = pa.table({**dict(zip(names, rows.T, strict=True)), "label": labels})
        if path.suffix == ".parquet":
            pytest.importorskip("pyarrow.parquet").write_table(table, path)
        else:
            pytest.importorskip("pyarrow.feather").write_feather(table, path, chunksize=700)
    return path


@pytest.fixture
def little_memory(monkeypatch):
    """Return a function after whose call no file fits in memory."""

    def begin():
        monkeypatch.setattr("maxmargin.readers.files.memory_shortage", lambda _: "too much memory")
        monkeypatch.setattr("maxmargin.readers.model_rows.BLOCK_BYTES", 1 << 14)

    return begin


@pytest.mark.parametrize("end", ["svm", "csv", "parquet", "arrow"])
@pytest.mark.parametrize("options", [(), ("--scores",), ("--json",), ("--json", "--scores")])
def test_output_is_that_of_the_command_in_memory(tmp_path, little_memory, end, options):
    data, model = write(tmp_path / f"rows.{end}"), tmp_path / "model"
    assert run("fit", data, "-o", model, "--quiet", "--max-iter", 3).exit_code in (0, 3)
    whole = run("predict", model, data, *options)
    little_memory()
    found = run("predict", model, data, *options, "-o", tmp_path / "out")
    assert (found.exit_code, found.stdout) == (0, "")
    assert found.stderr == whole.stderr
    assert "of 3000 rows" in found.stderr
    text = (tmp_path / "out").read_text()
    assert run("predict", model, data, *options).stdout == text
    if "--scores" not in options:
        assert text == whole.stdout
    elif "--json" in options:
        one, other = json.loads(text), json.loads(whole.stdout)
        assert one["labels"] == other["labels"]
        np.testing.assert_allclose(one["scores"], other["scores"], rtol=1e-12, atol=1e-12)
    else:
        one, other = ([line.split("\t") for line in lines.splitlines()] for lines in (text, whole.stdout))
        assert [row[0] for row in one] == [row[0] for row in other]
        np.testing.assert_allclose(np.array(one, float), np.array(other, float), rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("labels", [["yes", "no", "maybe"], ["1", "1.0", "x"], ["True", "False", "True"]])
def test_labels_of_text_are_those_of_the_whole_column(tmp_path, little_memory, labels):
    """A text that is no number, in the last row, makes texts of all labels."""
    data, model = write(tmp_path / "rows.csv", np.array(labels)[CLASSES]), tmp_path / "model"
    assert run("fit", data, "-o", model, "--quiet", "--max-iter", 3).exit_code in (0, 3)
    text = data.read_text()
    for more in ("", "0,0,0,0,other\n"):
        data.write_text(text + more)
        whole = run("predict", model, data)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("maxmargin.readers.files.memory_shortage", lambda _: "too much memory")
            found = run("predict", model, data)
        assert (found.stdout, found.stderr) == (whole.stdout, whole.stderr)


def test_rows_without_labels_and_columns_in_another_order(tmp_path, little_memory):
    pa = pytest.importorskip("pyarrow")
    pq = pytest.importorskip("pyarrow.parquet")
    model = tmp_path / "model"
    assert run("fit", write(tmp_path / "rows.csv"), "-o", model, "--quiet", "--max-iter", 3).exit_code in (
        0,
        3,
    )
    (tmp_path / "set").mkdir()
    columns = dict(zip("abcd", X.T, strict=True))
    for k, names in enumerate(("dcab", "bacd")):
        pq.write_table(pa.table({name: columns[name] for name in names}), tmp_path / f"set/{k}.parquet")
    lines = [",".join(map(repr, row)) for row in X[:, [1, 0, 3, 2]].tolist()]
    (tmp_path / "bare.csv").write_text("\n".join(["b,a,d,c", *lines]) + "\n")
    expected = run("predict", model, tmp_path / "bare.csv")
    assert expected.stderr == ""
    little_memory()
    found = run("predict", model, tmp_path / "bare.csv")
    assert (found.stdout, found.stderr) == (expected.stdout, "")
    assert run("predict", model, tmp_path / "set").stdout == 2 * expected.stdout  # a folder, as in `fit`
    fitted = load(model)
    assert fitted.predict(tmp_path / "set").astype(str).tolist() == (2 * expected.stdout).split()
    with pytest.raises(ValueError, match="the files have no labels"):
        fitted.score(tmp_path / "bare.csv")


def test_faults_leave_the_output_as_it_was(tmp_path, little_memory):
    data, model, out = write(tmp_path / "rows.svm"), tmp_path / "model", tmp_path / "out"
    assert run("fit", data, "-o", model, "--quiet", "--max-iter", 3).exit_code in (0, 3)
    out.write_text("old")
    table = write(tmp_path / "rows.csv")
    assert run("fit", table, "-o", tmp_path / "named", "--quiet", "--max-iter", 3).exit_code in (0, 3)
    little_memory()
    text = data.read_text()
    for more, words in (
        ("1 5:1\n", "line 3001: the index 5 is beyond the 4"),
        ("1 1:x\n", "line 3001: the value of"),
    ):
        data.write_text(text + more)
        assert words in refused("predict", model, data, "-o", out)
        assert out.read_text() == "old"
        assert sorted(path.name for path in tmp_path.iterdir()) == [
            "model",
            "named",
            "out",
            "rows.csv",
            "rows.svm",
        ]
    table.write_text(table.read_text() + "1,2,3,4,nan\n")
    model = tmp_path / "named"
    assert "line 3002: the label (column 'label') is 'nan'" in refused("predict", model, table)
    assert "there is no label column 'e'" in refused("predict", model, table, "--label", "e")


def test_memory_does_not_grow_with_the_file(tmp_path):
    n = 40_000
    rows = RNG.normal(size=(n, 8)).round(3)
    data, model = (
        write(tmp_path / "rows.svm", np.where(rows[:, 0] > 0.0, 1, -1), rows=rows),
        tmp_path / "model",
    )
    classifier = MaxMarginClassifier(max_iter=3).fit(rows[:500], np.where(rows[:500, 0] > 0.0, 1, -1))
    save(classifier, model)
    classifier.predict(data)  # compiles
    whole, peak = with_peak_memory(lambda: run("predict", model, data, "-o", tmp_path / "whole"))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("maxmargin.readers.files.memory_shortage", lambda _: "too much memory")
        patch.setattr("maxmargin.readers.model_rows.BLOCK_BYTES", 1 << 14)
        patch.setattr("maxmargin.readers.model_rows.PART", 1 << 14)
        found, small = with_peak_memory(lambda: run("predict", model, data, "-o", tmp_path / "found"))
    assert found.stderr == whole.stderr
    assert (tmp_path / "found").read_text() == (tmp_path / "whole").read_text()
    assert small < 0.5 * peak


def test_models_predict_files_and_score_them(tmp_path):
    paths = [write(tmp_path / "a.svm", rows=X), write(tmp_path / "b.svm", CLASSES[:1000], rows=X[:1000])]
    both, classes = np.vstack([X, X[:1000]]), np.concatenate([CLASSES, CLASSES[:1000]])
    np.save(tmp_path / "X.npy", both)
    np.save(tmp_path / "y.npy", classes)
    models = [
        MaxMarginClassifier(max_iter=3),
        KernelMaxMarginClassifier(kernel="rbf"),
        KernelMaxMarginClassifier(kernel="poly", multi_class="ovo", decision_function_shape="ovo"),
    ]
    for model in models:
        model.fit(X[:200], CLASSES[:200])
        predicted, scores = model.predict(both), model.decision_function(both)
        for source in (paths, tmp_path / "X.npy"):
            np.testing.assert_array_equal(model.predict(source), predicted)
            np.testing.assert_allclose(model.decision_function(source), scores, rtol=1e-10, atol=1e-12)
        accuracy = model.score(both, classes)
        assert model.score(paths) == model.score(tmp_path / "X.npy", tmp_path / "y.npy") == accuracy
    with pytest.raises(ValueError, match="the labels of files are in files"):
        model.score(tmp_path / "X.npy", classes)
    np.save(tmp_path / "X.npy", both[:, :3])
    with pytest.raises(ValueError, match=r"X\.npy: there are 3 columns, and not 4"):
        model.predict(tmp_path / "X.npy")


def test_the_first_index_is_that_of_the_whole_text(tmp_path):
    """The only index 0 is in the last row."""
    model = MaxMarginClassifier(max_iter=3).fit(X, CLASSES)
    lines = ["0 1:1 2:-1"] * 5_000
    for last, columns in (("0 0:1", (1, 2)), ("0 4:1", (0, 1))):
        (tmp_path / "rows.svm").write_text("\n".join([*lines, last]) + "\n")
        row = np.zeros(4)
        row[list(columns)] = 1, -1
        found = model.decision_function(tmp_path / "rows.svm")
        np.testing.assert_allclose(found[0], model.decision_function(row[None])[0])
