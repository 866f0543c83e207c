"""`maxmargin separate`: printed verdicts, rows of proofs, and exit codes; the verdicts of hard-margin models."""

from __future__ import annotations

import json
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from command import refused, run
from sklearn.datasets import dump_svmlight_file, load_iris

from maxmargin.io.model_file import load, save

LARGE, NEXT = 2**53, 2**53 + 1  # float64 rounds the second to the first


@pytest.fixture
def square(tmp_path):
    """Exclusive or, with string labels."""
    (tmp_path / "square.csv").write_text("a,b,same\n0,0,yes\n1,1,yes\n0,1,no\n1,0,no\n")
    return tmp_path / "square.csv"


@pytest.fixture
def half_line(tmp_path):
    (tmp_path / "rows.svm").write_text("0 1:1\n1 1:3\n1 1:2 2:5\n")
    return tmp_path / "rows.svm"


POLY = ("--kernel", "poly", "--coef0", 1, "--degree", 1, "--gamma", "auto")


@pytest.mark.parametrize(
    ("file", "options", "words"),
    [
        ("square", (), ["NOT SEPARABLE: no hyperplane has no on one side and yes on the other (",
                        "rows 1, 2, 3, 4 (4 in all, counted from 1)", "       4          no  0.25 = 1/4\n",
                        "the margin of at least one row is at most -0.353553"]),
        ("half_line", ("--p", 1), ["SEPARABLE: a hyperplane has 0 on one side and 1 on the other (",
                                   "<= largest margin <=", "(p = 1)"]),
        ("half_line", ("--no-bias",), ["NOT SEPARABLE: no hyperplane through the origin",
                                       "rows 1, 2 (counted from 1), each with", "0.75 = 3/4"]),
        ("square", ("--kernel", "rbf"), ["SEPARABLE: a function of the rbf kernel has no on one side"]),
        ("square", POLY, ["NOT SEPARABLE: no function of the poly kernel has no",
                         "rows 1, 2, 3, 4 (4 in all, counted from 1)"]),
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


def test_a_search_without_time_is_undecided(tmp_path):
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((300, 40)), rng.integers(0, 2, 300)
    dump_svmlight_file(X, y, str(tmp_path / "open.svm"), zero_based=False)
    result = run("separate", tmp_path / "open.svm", "--max-time", 1e-9)
    assert result.exit_code == 3
    assert result.stdout.startswith("UNDECIDED")


def test_integers_that_float64_rounds_are_refused_for_hard_margins(tmp_path):
    pa = pytest.importorskip("pyarrow")
    files = [tmp_path / f"rows.{end}" for end in ("csv", "svm", "npz", "parquet")]
    files[0].write_text(f"a,b,class\n{LARGE},0.5,0\n{NEXT},0.5,1\n")
    files[1].write_text(f"0 1:{LARGE}\n1 1:{NEXT}\n")
    np.savez(files[2], X=np.array([[LARGE], [NEXT]]), y=[0, 1])
    pytest.importorskip("pyarrow.parquet").write_table(pa.table({"a": [LARGE, NEXT], "y": [0, 1]}), files[3])
    for path in files:
        for words in ("separate", f"fit -o {tmp_path / 'm'} --C inf", "compare --C inf", "select --C inf"):
            command, *options = words.split()
            assert f"{NEXT}, which is not a float64 number" in refused(command, path, *options)
    assert run("fit", files[0], "-o", tmp_path / "m").exit_code in (0, 3)
    files[0].write_text(f"a,class\n{NEXT}.0,0\n1e300,1\n{LARGE + 2},0\n0.1,0\n")  # decimals may be rounded
    assert "SEPARABLE" in run("separate", files[0]).stdout


def test_fit_and_check_of_hard_margins_print_the_proof(square, tmp_path):
    model = tmp_path / "model"
    expected = run("separate", square).stdout.splitlines()
    for words in (("fit", square, "--C", "inf", "-o", model), ("check", model, square)):
        result = run(*words)
        assert result.exit_code == 3
        assert result.stdout.startswith("INSEPARABLE in " if words[0] == "fit" else "verified: ")
        first, *lines = [
            line
            for line in result.stdout.splitlines()[1:]
            if "solved by" not in line and "finite C" not in line
        ]
        assert first.split("(")[0] == expected[0].split("(")[0]  # the times differ
        assert lines == expected[1:]
        (verdict,) = json.loads(run(*words, "--json").stdout)["verdicts"]
        assert [(row["row"], row["exact"]) for row in verdict["proof"]] == [(k, "1/4") for k in range(1, 5)]
    false = load(model)
    false.verdict_ = replace(false.verdict_, weights=(*false.verdict_.weights[:2], *[Fraction(1, 8)] * 2))
    save(false, tmp_path / "false")
    assert "the proof fails" in refused("check", tmp_path / "false", square)


def test_each_inseparable_class_has_its_verdict(tmp_path):
    dump_svmlight_file(*load_iris(return_X_y=True), str(tmp_path / "iris.svm"))
    result = run("fit", tmp_path / "iris.svm", "--C", "inf", "-o", tmp_path / "model")
    for k in range(3):
        line = f"NOT SEPARABLE: no hyperplane has the rest on one side and {k} on the other"
        assert (line in result.stdout) == (k > 0)
    checked = run("check", tmp_path / "model", tmp_path / "iris.svm").stdout
    assert checked.count(" <= best <= ") == 3  # bounds of all problems
