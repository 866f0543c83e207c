"""maxmargin fit --memory: files that are read in passes."""

import json
import signal
import threading

import numpy as np
import pytest
from command import run

from maxmargin import (
    KernelMaxMarginClassifier,
    MaxMarginClassifier,
    OnlineMarginClassifier,
    load,
    save,
    verify,
)
from maxmargin.numerics.progress import LISTENERS

RNG = np.random.default_rng(0)
X = np.round(RNG.normal(size=(6_000, 5)), 4)
LABELS = np.where(X @ RNG.normal(size=5) + RNG.normal(size=6_000) > 0.0, "yes", "no")


@pytest.fixture
def table(tmp_path):
    """A CSV file with names of columns and labels as text."""
    lines = [",".join([*map(str, row), label]) for row, label in zip(X.tolist(), LABELS, strict=True)]
    path = tmp_path / "rows.csv"
    path.write_text("\n".join(["a,b,c,d,e,label", *lines]) + "\n")
    return path


def test_a_file_is_fitted_in_passes_and_checked(table, tmp_path):
    model = tmp_path / "model"
    words = "fit", table, "--memory", "120KB", "--loss", "hinge", "--tol", 1e-4, "--seed", 0, "-o", model
    done = run(*words, "--json")
    assert done.exit_code == 0
    assert json.loads(done.stdout)["status"] == "CERTIFIED"
    found = load(model)
    assert found.history_[0].stage == "partitioned-newton"
    assert list(found.feature_names_in_) == list("abcde")
    assert verify(found, X, LABELS).gap <= 1e-4
    assert verify(found, table).gap <= 1e-4  # from the file, in a pass
    whole = MaxMarginClassifier(loss="hinge").fit(X, LABELS)
    assert found.certificate_.lower <= whole.certificate_.upper
    assert whole.certificate_.lower <= found.certificate_.upper
    assert run("check", model, table).exit_code == 0
    cache = tmp_path / "rows.csv.maxmargin-cache"
    assert cache.is_dir()
    assert run("cache", "clear", table).exit_code == 0
    assert not cache.exists()


def test_several_files_are_one_data_set(table, tmp_path):
    lines = table.read_text().splitlines()
    parts = [tmp_path / "one.csv", tmp_path / "two.csv"]
    parts[0].write_text("\n".join(lines[:2_000]) + "\n")
    parts[1].write_text("\n".join([lines[0], *lines[2_000:]]) + "\n")
    parameters = {"memory": "60KB", "random_state": 0, "cache_dir": tmp_path}
    model = MaxMarginClassifier(**parameters).fit(parts)
    assert list(model.classes_) == ["no", "yes"]
    np.testing.assert_array_equal(model.coef_, MaxMarginClassifier(**parameters).fit(table).coef_)
    verify(model, X, LABELS)
    with pytest.raises(ValueError, match="the labels of files are in files"):
        MaxMarginClassifier(**parameters).fit(parts, LABELS)


def test_a_file_that_does_not_fit_is_read_in_passes(table, tmp_path, monkeypatch):
    text = "".join(
        f"{1 if label == 'yes' else -1} " + " ".join(f"{j}:{v}" for j, v in enumerate(row, 1)) + "\n"
        for row, label in zip(X.tolist(), LABELS, strict=True)
    )
    (tmp_path / "rows.svm").write_text(text)
    monkeypatch.setattr("maxmargin.numerics.sizes.available_memory", lambda: 2e5)
    done = run("fit", tmp_path / "rows.svm", "-o", tmp_path / "model", "--quiet")
    assert done.exit_code == 0
    assert "It is read in passes now (--memory)" in done.stderr
    assert load(tmp_path / "model").history_[0].stage == "partitioned-newton"
    assert run("check", tmp_path / "model", tmp_path / "rows.svm").exit_code == 0
    assert run("fit", table, "-o", tmp_path / "other", "--quiet").exit_code == 0
    assert run("check", tmp_path / "other", table).exit_code == 0
    changed = (tmp_path / "rows.svm").read_text().replace("1 1:", "1 1:9", 1)
    (tmp_path / "rows.svm").write_text(changed)
    done = run("check", tmp_path / "model", tmp_path / "rows.svm")
    assert done.exit_code == 2
    assert "this certificate was made for other data" in done.stderr


def test_faults_of_options_and_entries_are_sentences(table, tmp_path):
    for words, message in (
        (("--memory", "much"), "--memory must be a number of bytes"),
        (("--memory", "60KB", "--algorithm", "mpu"), "choose the algorithm themselves"),
        (("--memory", "60KB", "--kernel", "rbf"), "--memory cannot be combined with --kernel"),
    ):
        done = run("fit", table, "-o", tmp_path / "model", *words)
        assert done.exit_code == 2
        assert message in done.stderr
    lines = table.read_text().splitlines()
    lines[4_321] = "1,2,nan,4,5,yes"
    table.write_text("\n".join(lines) + "\n")
    done = run("fit", table, "-o", tmp_path / "model", "--memory", "60KB")
    assert done.exit_code == 2
    assert "rows.csv" in done.stderr
    assert "4322" in done.stderr
    assert not (tmp_path / "model").exists()
    with pytest.raises(ValueError, match="name the memory"):
        MaxMarginClassifier().fit(table)


@pytest.mark.parametrize("end", ["csv", "parquet", "arrow"])
def test_a_folder_of_tables_is_one_data_set(table, tmp_path, end):
    folder, model = tmp_path / "set", tmp_path / "model"
    folder.mkdir()
    (folder / "_notes.csv").write_text("no table")
    for k, rows in enumerate((slice(2_000), slice(2_000, None))):
        if end == "csv":
            header, *lines = table.read_text().splitlines()
            (folder / f"{k}.csv").write_text("\n".join([header, *lines[rows]]) + "\n")
            continue
        pa = pytest.importorskip("pyarrow")
        part = pa.table({**dict(zip("abcde", X[rows].T, strict=True)), "label": LABELS[rows]})
        if end == "parquet":
            pytest.importorskip("pyarrow.parquet").write_table(part, folder / f"{k}.parquet")
        else:
            pytest.importorskip("pyarrow.feather").write_feather(part, folder / f"{k}.arrow")
    assert run("fit", folder, "--label", "label", "-o", model, "--quiet").exit_code == 0
    found = load(model)
    assert verify(found, X, LABELS).gap <= 1e-3
    assert run("check", model, folder).exit_code == 0
    assert run("predict", model, folder).stdout.split() == found.predict(folder).tolist()


def test_separate_and_check_read_files_in_passes(table, tmp_path, monkeypatch):
    gap = np.abs(X[:, 0]) > 0.1
    half = tmp_path / "half.csv"
    lines = [",".join([*map(str, row), "right" if row[0] > 0.0 else "left"]) for row in X[gap].tolist()]
    half.write_text("\n".join(["a,b,c,d,e,label", *lines]) + "\n")
    whole = [json.loads(run("separate", path, "--json").stdout) for path in (half, table)]
    monkeypatch.setattr("maxmargin.numerics.sizes.available_memory", lambda: 2e5)
    monkeypatch.setattr("maxmargin.separability.separate.available_memory", lambda: 2e5)
    found = [json.loads(run("separate", path, "--json").stdout) for path in (half, table)]
    assert [one["separable"] for one in found] == [one["separable"] for one in whole] == [True, False]
    assert found[0]["lower"] <= whole[0]["upper"]
    assert whole[0]["lower"] <= found[0]["upper"]
    assert found[1]["rows"] == X.shape[0]
    printed = run("separate", table, "--memory", "100KB", "--cache-dir", tmp_path / "caches")
    assert printed.stdout.startswith("NOT SEPARABLE: no hyperplane has no on one side and yes on the other")
    assert "the data need about" in run("separate", table, "--kernel", "rbf").stderr
    model = tmp_path / "model"
    assert run("fit", table, "--C", "inf", "-o", model, "--quiet").exit_code == 3
    checked = run("check", model, table)
    assert checked.exit_code == 3
    assert "and so does the proof that there is no separator" in checked.stdout


@pytest.mark.parametrize("options", [(), ("--columns", "e,a"), ("--drop", "b,d")])
def test_check_in_passes_finds_the_columns_of_the_model_by_their_names(table, tmp_path, monkeypatch, options):
    model, other = tmp_path / "model", tmp_path / "other.csv"
    assert run("fit", table, *options, "-o", model, "--quiet").exit_code == 0
    lines = [
        ",".join([label, *map(str, row)]) for row, label in zip(X[:, ::-1].tolist(), LABELS, strict=True)
    ]
    other.write_text("\n".join(["label,e,d,c,b,a", *lines]) + "\n")
    monkeypatch.setattr("maxmargin.numerics.sizes.available_memory", lambda: 2e5)
    for path in (table, other):
        assert run("check", model, path).exit_code == 0
    other.write_text("label,d,c,b\n" + "yes,1,2,3\nno,2,3,4\n" * 5_000)
    assert run("check", model, other).exit_code == 2


def test_models_fitted_in_python_are_checked_in_passes(table, tmp_path, monkeypatch):
    linear, kernel, online = (tmp_path / name for name in ("linear", "kernel", "online"))
    save(MaxMarginClassifier().fit(X, LABELS), linear)
    save(KernelMaxMarginClassifier().fit(X[:100], LABELS[:100]), kernel)
    save(OnlineMarginClassifier().fit(X, LABELS), online)
    monkeypatch.setattr("maxmargin.numerics.sizes.available_memory", lambda: 2e5)
    assert run("check", linear, table).exit_code == 0
    (tmp_path / "rows.csv.maxmargin-cache").rename(tmp_path / "moved")
    for model, message in (
        (kernel, "a kernel model is verified on rows in memory"),
        (online, "no certificate"),
    ):
        done = run("check", model, table)
        assert (done.exit_code, done.stderr.count("\n")) == (2, 1)
        assert message in done.stderr
    assert not (tmp_path / "rows.csv.maxmargin-cache").exists()


@pytest.mark.parametrize("command", ["fit", "separate"])
def test_the_time_limit_ends_the_first_reading(table, tmp_path, command):
    before = sorted(tmp_path.iterdir())
    output = ("-o", tmp_path / "model") if command == "fit" else ()
    done = run(command, table, "--memory", "60KB", "--max-time", 1e-9, *output)
    assert done.exit_code == 3
    assert done.stdout == ""
    assert done.stderr.startswith("maxmargin: --max-time went by while the data were read")
    assert done.stderr.count("\n") == 1
    assert sorted(tmp_path.iterdir()) == before


@pytest.mark.parametrize("command", ["fit", "check", "predict", "separate"])
def test_ctrl_c_ends_the_first_reading(table, tmp_path, monkeypatch, command):
    model, copy = tmp_path / "model", tmp_path / "copy.csv"
    assert run("fit", table, "-o", model, "--quiet").exit_code == 0
    copy.write_bytes(table.read_bytes())
    monkeypatch.setattr("maxmargin.numerics.sizes.available_memory", lambda: 2e5)
    before = sorted(tmp_path.iterdir())
    words = {"fit": (copy, "-o", tmp_path / "new"), "separate": (copy,)}.get(command, (model, copy))
    step = "reading" if command == "predict" else "writing the cache"

    def interrupt(announced):
        if announced.name.startswith(step) and threading.current_thread() is threading.main_thread():
            signal.raise_signal(signal.SIGINT)

    LISTENERS.append(interrupt)
    try:
        done = run(command, *words)
    finally:
        LISTENERS.remove(interrupt)
    assert done.exit_code == 130
    assert "interrupted; every file is complete or was not written" in done.stderr
    assert sorted(tmp_path.iterdir()) == before


@pytest.mark.parametrize(
    "command",
    [
        "fit data -o out",
        "fit data -o out --online --n-features 1000000",
        "separate data",
        "select data",
        "compare data --algorithms mpu",
    ],
)
def test_one_large_index_is_refused_in_a_sentence_where_its_weights_exceed_the_memory(
    tmp_path, monkeypatch, command
):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "data").write_text("1 1:1 1000000:2\n-1 2:1\n" * 5)
    monkeypatch.setattr("maxmargin.numerics.sizes.available_memory", lambda: 1e7)
    done = run(*command.split())
    assert (done.exit_code, done.stderr.count("\n")) == (2, 1)
    assert "a weight for each of 1000000 features takes about" in done.stderr
    assert not (tmp_path / "out").exists()
