"""maxmargin separate, compare and export: verdicts, tables and files."""

from __future__ import annotations

import csv
import json

import numpy as np
import pytest
from command import X, Y, refused, run
from effort import interpreted

from maxmargin import compare, load, to_liblinear, to_libsvm

pytestmark = interpreted


@pytest.fixture
def square(tmp_path):
    """Exclusive or, with string labels."""
    (tmp_path / "square.csv").write_text("a,b,same\n0,0,yes\n1,1,yes\n0,1,no\n1,0,no\n")
    return tmp_path / "square.csv"


@pytest.fixture
def half_line(tmp_path):
    (tmp_path / "rows.svm").write_text("0 1:1\n1 1:3\n1 1:2 2:5\n")
    return tmp_path / "rows.svm"


@pytest.mark.parametrize(
    ("file", "options", "words"),
    [
        ("square", (), ["not separable", "rows 1, 2, 3, 4 (4 in all, counted from 1)",
                        "       4          no  0.25 = 1/4\n", "at most -0.353553"]),
        ("half_line", ("--p", 1), ["separable", "<= largest margin <=", "(p = 1)"]),
        ("half_line", ("--no-bias",), ["not separable through the origin", "0.75 = 3/4"]),
        ("square", ("--kernel", "rbf"), ["separable", "<= largest margin <="]),
    ],
)  # fmt: skip
def test_verdicts_are_printed(request, file, options, words):
    result = run("separate", request.getfixturevalue(file), *options)
    assert result.exit_code == 0
    assert result.stdout.startswith(words[0])
    assert all(text in result.stdout for text in words)


def test_json_output_holds_proof_or_separator(square, half_line):
    facts = json.loads(run("separate", square, "--json", "--kernel", "linear").stdout)
    assert facts["separable"] is False
    assert [(row["row"], row["exact"]) for row in facts["proof"]] == [(k, "1/4") for k in range(1, 5)]
    facts = json.loads(run("separate", half_line, "--json", "--p", "inf").stdout)
    assert (facts["separable"], len(facts["coef"])) == (True, 2)
    assert 0.0 < facts["lower"] <= facts["upper"]
    assert len(json.loads(run("separate", half_line, "--kernel", "rbf", "--json").stdout)["dual_coef"]) == 3


def test_undecided_searches_have_a_remedy_and_exit_with_3(data):
    result = run("separate", data, "--max-time", 1e-9)
    assert (result.exit_code, result.stdout.startswith("undecided")) == (3, True)
    assert "to try: " in result.stdout


def test_folders_are_searched_in_passes(folder, tmp_path):
    path, X, y = folder
    found = json.loads(run("separate", path, "--memory", "120KB", "--json").stdout)
    assert (found["separable"], found["rows"], found["feature_names"]) == (False, 6_000, list("abcde"))
    weights = {row["row"] - 1: float(eval(row["exact"])) for row in found["proof"]}
    sums = sum(w * (1 if y[i] == "yes" else -1) * np.append(X[i], 1.0) for i, w in weights.items())
    np.testing.assert_allclose(sums, 0.0, atol=1e-12)
    assert "leave out --kernel" in refused("separate", path, "--memory", "120KB", "--kernel", "rbf")


def test_comparisons_are_printed_and_written(data, tmp_path):
    table = tmp_path / "a.csv"
    words = ("compare", data, "--algorithms", "dcd, mpu", "--seed", 0, "--tol", 1e-4)
    result = run(*words, "--csv", table)
    assert result.exit_code == 0
    assert [line.split()[:2] for line in result.stdout.splitlines()[1:3]] == [
        ["dcd", "CERTIFIED"],
        ["mpu", "CERTIFIED"],
    ]
    with open(table, newline="") as file:
        rows = list(csv.DictReader(file))
    expected = compare(X, Y, ["dcd", "mpu"], tol=1e-4, random_state=0).records()
    for name in ("epochs", "lower", "upper"):  # of sparse rows, whose sums round otherwise
        assert [float(row[name]) for row in rows] == pytest.approx([one[name] for one in expected], rel=1e-10)
    result = run("compare", data, "--algorithms", "dcd,pegasos", "--json", "--C", "inf", "--max-iter", 3)
    facts = json.loads(result.stdout)
    assert (result.exit_code, facts["problem"]["C"], [*facts["refused"]]) == (3, "inf", ["pegasos"])
    assert [one["algorithm"] for one in facts["algorithms"]] == ["dcd"]


@pytest.mark.parametrize(
    ("write", "fit"), [(to_liblinear, ()), (to_libsvm, ("--kernel", "rbf"))], ids=["liblinear", "libsvm"]
)
def test_exports_are_those_of_python(data, tmp_path, write, fit):
    model, out, expected = tmp_path / "m", tmp_path / "out", tmp_path / "expected"
    assert run("fit", data, "-o", model, *fit).exit_code == 0
    assert run("export", model, "--to", write.__name__.removeprefix("to_"), "-o", out).exit_code == 0
    write(load(model), expected)
    assert out.read_bytes() == expected.read_bytes()


def test_labels_of_text_are_numbered_in_exports(table, tmp_path):
    model, out = tmp_path / "m", tmp_path / "t.model"
    assert run("fit", table, "-o", model).exit_code == 0
    words = ("export", model, "--to", "liblinear", "-o", out)
    assert "labels" in refused(*words)
    assert run(*words, "--labels", "7,8").exit_code == 0
    assert "label 8 7\n" in out.read_text()


def test_onnx_exports_agree_with_the_model(model, tmp_path):
    runtime = pytest.importorskip("onnxruntime")
    scores = load(model).decision_function(X)
    assert run("export", model, "-o", tmp_path / "m.onnx").exit_code == 0
    session = runtime.InferenceSession(tmp_path / "m.onnx", providers=["CPUExecutionProvider"])
    assert np.allclose(session.run(None, {"X": X})[1], scores, rtol=0.0, atol=1e-13)
