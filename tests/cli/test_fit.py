"""maxmargin fit: the model that is written, options, output, tables with names, files in passes, and streams."""

from __future__ import annotations

import codecs
import json
import re
import subprocess
import sys

import numpy as np
import pytest
from command import X, Y, run
from effort import interpreted
from sklearn.datasets import dump_svmlight_file, load_iris

import maxmargin
from maxmargin import (
    KernelMaxMarginClassifier,
    MaxMarginClassifier,
    OnlineMarginClassifier,
    Status,
    load,
    verify,
)

pytestmark = interpreted
THREE = np.digitize(X[:, 0], [-0.5, 0.5])


def test_a_model_with_its_certificate_is_written(data, tmp_path):
    result = run("fit", data, "-o", tmp_path / "m", "--seed", "0")
    fitted = load(tmp_path / "m")
    assert (result.exit_code, result.stderr, fitted.status_) == (0, "", Status.CERTIFIED)
    assert result.stdout.startswith(f"CERTIFIED in {fitted.n_iter_} round")
    assert str(fitted.certificate_) in result.stdout
    assert verify(fitted, X, Y).gap <= 1e-3
    result = run("fit", data, "-o", tmp_path / "m", "--no-intercept", "--n-features", 9)
    assert (result.exit_code, result.stderr) == (0, "")
    assert (load(tmp_path / "m").intercept_[0], load(tmp_path / "m").n_features_in_) == (0.0, 9)


@pytest.mark.parametrize(
    "options",
    [
        {"C": 0.5, "loss": "hinge", "tol": 0.01, "algorithm": "mpu", "intercept_scaling": 2.0, "max_iter": 77,
         "class_weight": "balanced", "max_time": 60.0},
        {"p": 1.5, "norm_power": 1},
        {"p": "log"},
        {"kernel": "poly", "gamma": 0.3, "multi_class": "ovo", "tol": 1e-5},
    ],
)  # fmt: skip
def test_options_set_parameters_and_others_have_the_defaults(data, tmp_path, options):
    words = [word for name, value in options.items() for word in (f"--{name.replace('_', '-')}", value)]
    result = run("fit", data, "-o", tmp_path / "m", *words, "--seed", 5)
    kind = KernelMaxMarginClassifier if "kernel" in options else MaxMarginClassifier
    fitted = load(tmp_path / "m")
    assert fitted.get_params() == kind().get_params() | options | {"random_state": 5}
    assert run("check", tmp_path / "m", data).exit_code == result.exit_code


def test_help_shows_the_defaults_of_python_and_imports_no_numerical_package(monkeypatch):
    monkeypatch.setenv("COLUMNS", "300")
    code = "import runpy, sys\ntry: runpy.run_module('maxmargin', run_name='__main__')\n"
    code += "finally: print([name for name in ('numba', 'sklearn', 'numpy') if name in sys.modules])"
    shown = subprocess.check_output([sys.executable, "-c", code, "fit", "--help"], text=True)
    assert shown.splitlines()[-1] == "[]"
    known = KernelMaxMarginClassifier().get_params() | MaxMarginClassifier().get_params()
    for name in ("p", "norm_power", "tol", "gamma", "multi_class", "loss", "max_iter", "algorithm"):
        (line,) = re.findall(rf"  --{name.replace('_', '-')} .*", shown)
        assert f"[{known[name]}" in line
    assert len(re.findall("^  -", shown, re.MULTILINE)) - 1 <= 24  # without --help
    assert run("--version").stdout == f"maxmargin {maxmargin.__version__}\n"


def checked(data, model, *options):
    """Fit a model; return the exit code, and what `check --json` says about it."""
    assert run("fit", data, "-o", model, *options).exit_code in (0, 3)
    result = run("check", model, data, "--json")
    return result.exit_code, json.loads(result.stdout, parse_constant=pytest.fail)  # JSON has no infinity


def test_json_output_describes_the_fit(data, tmp_path):
    facts = checked(data, tmp_path / "m")[1]
    assert (facts["status"], facts["tol"], facts["verified"]) == ("CERTIFIED", 1e-3, True)
    assert (facts["rows"], facts["features"], facts["classes"]) == (60, 4, [-1, 1])
    bounds = facts["bounds"][0]
    assert bounds["lower"] <= bounds["upper"] <= 1.001 * bounds["lower"]
    problem = {"loss": "squared_hinge", "C": 1.0, "p": 2.0, "power": 2, "intercept": "free"}
    assert facts["problem"] == problem | {"kernel": "linear"}
    dump_svmlight_file(X, THREE, str(tmp_path / "three"))
    facts = checked(tmp_path / "three", tmp_path / "m")[1]
    assert [part["class"] for part in facts["bounds"]] == [0, 1, 2]
    code, facts = checked(data, tmp_path / "m", "--C", "inf")
    assert (code, facts["problem"]["C"], facts["status"]) == (3, "inf", "INSEPARABLE")


def test_fits_above_the_tolerance_exit_with_3(data, tmp_path):
    words = ("--algorithm", "perceptron", "--max-iter", "1", "--tol", "1e-9")
    result, checked = run("fit", data, "-o", tmp_path / "m", *words), run("check", tmp_path / "m", data)
    assert (result.exit_code, checked.exit_code, " in 1 round, " in result.stdout) == (3, 3, True)
    assert load(tmp_path / "m").message_ in result.stdout


def test_each_inseparable_class_has_its_verdict(tmp_path):
    dump_svmlight_file(*load_iris(return_X_y=True), str(tmp_path / "iris.svm"))
    result = run("fit", tmp_path / "iris.svm", "--C", "inf", "-o", tmp_path / "model")
    for k in range(3):
        assert (f"\n{k}: not separable" in result.stdout) == (k > 0)
    checked = run("check", tmp_path / "model", tmp_path / "iris.svm").stdout
    assert checked.count(" <= best <= ") == 3  # bounds of all problems


# tables of text and of Arrow

TOWNS = np.where(X[:, 1] > 0, "Rome", "Oslo")
COLUMNS = {"id": np.arange(60) + 0.5, **dict(zip("abcd", X.T, strict=True)), "town": TOWNS, "answer": Y > 0}


@pytest.mark.parametrize("end", ["csv", "parquet", "arrow"])
def test_columns_are_selected_by_name(tmp_path, end):
    pd = pytest.importorskip("pandas")
    path, model = tmp_path / f"t.{end}", tmp_path / "m"
    frame = pd.DataFrame(COLUMNS)
    if end == "csv":
        frame.to_csv(path, index=False)
    else:
        pytest.importorskip("pyarrow.feather")
        (frame.to_parquet if end == "parquet" else frame.to_feather)(path)
    for options, names in (
        (("--drop", "id,town", "--label", "answer"), "abcd"),
        (("--columns", "d,a", "--columns", "c"), "dac"),
        (("--drop", "answer,id", "--label", "town"), "abcd"),
    ):
        assert "weights for " in run("fit", path, "-o", model, *options, "--seed", 0).stdout
        fitted = load(model)
        assert fitted.feature_names_in_.tolist() == list(names)
        rows = X[:, ["abcd".index(name) for name in names]]
        assert verify(fitted, rows, TOWNS if "town" in options else fitted.classes_[(Y > 0).astype(int)])
        for more in ((), options):
            assert run("check", model, path, *more).exit_code == 0
        assert run("predict", model, path, *options).stdout == run("predict", model, path).stdout


def test_files_without_a_header_and_other_delimiters_are_remembered(table, tmp_path):
    rows, model = tmp_path / "rows.data", tmp_path / "m"
    rows.write_text(table.read_text().split("\n", 1)[1].replace(",", "  "))
    done = run("fit", rows, "-o", model, "--no-header", "--delimiter", "space")
    assert "the last column, 'x5', is taken for the labels" in done.stderr
    assert load(model).feature_names_in_.tolist() == ["x1", "x2", "x3", "x4"]
    assert run("check", model, rows).exit_code == 0
    assert run("predict", model, rows).stderr.startswith("accuracy 0.")
    options = ("--no-header", "--delimiter", "space", "--label", "x5", "--drop", "x2")
    assert json.loads(run("separate", rows, *options, "--json").stdout)["feature_names"] == ["x1", "x3", "x4"]


# files in passes


def test_files_in_passes_have_the_bounds_of_rows_in_memory(folder, tmp_path):
    path, X, y = folder
    model = tmp_path / "model"
    words = ("--memory", "120KB", "--loss", "hinge", "--tol", 1e-4, "--seed", 0)
    assert run("fit", path, "-o", model, *words, "--label", "label").exit_code == 0
    found, whole = load(model), MaxMarginClassifier(loss="hinge").fit(X, y)
    assert verify(found, X, y).gap <= 1e-4
    assert found.certificate_.lower <= whole.certificate_.upper
    assert whole.certificate_.lower <= found.certificate_.upper
    assert found.feature_names_in_.tolist() == list("abcde")


def test_the_time_limit_ends_the_first_reading_without_a_model(folder, tmp_path):
    before = sorted(tmp_path.iterdir())
    for words in (("fit", folder[0], "-o", tmp_path / "model"), ("separate", folder[0])):
        done = run(*words, "--max-time", 1e-9, "--memory", "120KB")
        assert (done.exit_code, done.stdout) == (3, "")
        assert "while the rows were read for the first time" in done.stderr
        assert sorted(tmp_path.iterdir()) == before


# streams


def sorted_text():
    """Return svmlight text with all rows of the label -1 first, and the rows and labels."""
    rng = np.random.default_rng(0)
    y = np.repeat([-1, 1], 1000)
    X = np.round(rng.normal(size=(2000, 4)) + 0.5 * y[:, None], 3)
    lines = [
        f"{label} " + " ".join(f"{j}:{v}" for j, v in enumerate(row, 1))
        for row, label in zip(X.tolist(), y, strict=True)
    ]
    return "\n".join(lines) + "\n", X, y


STREAM = ("--online", "--n-features", 4)


def test_streams_are_learnt_in_random_order(tmp_path):
    text, X, y = sorted_text()
    path, model = tmp_path / "rows.svm", tmp_path / "m"
    path.write_text(text)
    order = np.random.default_rng(0).permutation(y.size)
    expected = OnlineMarginClassifier().partial_fit(X[order], y[order], classes=[-1, 1]).score(X, y)
    coefs = []
    for seed in (1, 1, 2):
        assert run("fit", path, "-o", model, *STREAM, "--seed", seed).stderr == ""
        coefs.append(load(model).coef_)
        assert load(model).score(X, y) > expected - 0.02
    assert np.array_equal(coefs[0], coefs[1])
    assert not np.array_equal(coefs[0], coefs[2])
    result, found = run("fit", path, "-o", model, *STREAM, "--C", 2.0), load(model)
    assert result.stdout.startswith("2000 rows in ")
    assert f"{found.mistakes_[0]} mistakes during the pass" in result.stdout
    assert (found.n_seen_, found.C, found.classes_.tolist()) == (2000, 2.0, [-1, 1])
    assert run("predict", model, path).stdout.split() == found.predict(X).astype(str).tolist()


def test_standard_input_is_learnt_like_a_file(tmp_path):
    text = sorted_text()[0]
    (tmp_path / "rows.svm").write_text(text)
    words = (*STREAM, "--seed", "1", "-o")
    assert run("fit", tmp_path / "rows.svm", *words, tmp_path / "m").exit_code == 0
    command = [sys.executable, "-m", "maxmargin", "fit", "-", *map(str, words), tmp_path / "p"]
    done = subprocess.run(command, input=text.encode(), capture_output=True, check=False)
    assert done.returncode == 0, done.stderr
    assert np.array_equal(load(tmp_path / "p").coef_, load(tmp_path / "m").coef_)


@pytest.mark.parametrize("options", [(), STREAM])
def test_a_byte_order_mark_of_svmlight_text_is_skipped(options, tmp_path):
    (tmp_path / "t.svm").write_bytes(codecs.BOM_UTF8 + b"1 1:2 2:1\n-1 1:-1\n")
    assert run("fit", tmp_path / "t.svm", "-o", tmp_path / "m", *options).exit_code == 0
