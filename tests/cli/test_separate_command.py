"""`maxmargin separate`: printed verdicts, rows of proofs, and exit codes."""

from __future__ import annotations

import inspect
import json
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from sklearn.datasets import dump_svmlight_file, load_iris
from typer.testing import CliRunner

from maxmargin import separate
from maxmargin.cli.app import app
from maxmargin.cli.separate import separate as separate_command
from maxmargin.io.model_file import load, save


def run(*arguments):
    """Run the command; return its output on both streams and its exit code."""
    result = CliRunner().invoke(app, ["separate", *map(str, arguments)])
    assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
    return result


def test_defaults_equal_those_of_separate():
    parameters = inspect.signature(separate).parameters
    options = inspect.signature(separate_command).parameters
    shared = set(options) & set(parameters)
    assert shared >= {"kernel", "gamma", "degree", "coef0", "p", "bias", "tol", "max_time"}
    for name in shared:
        assert options[name].default == parameters[name].default, name


@pytest.fixture
def square(tmp_path):
    """Exclusive or, with string labels."""
    path = tmp_path / "square.csv"
    path.write_text("a,b,same\n0,0,yes\n1,1,yes\n0,1,no\n1,0,no\n")
    return path


@pytest.fixture
def half_line(tmp_path):
    path = tmp_path / "rows.svm"
    dump_svmlight_file(np.array([[1.0, 0.0], [3.0, 0.0], [2.0, 5.0]]), [0, 1, 1], str(path), zero_based=False)
    return path


def test_proof_of_inseparability_is_printed(square):
    result = run(square)
    assert result.exit_code == 0
    assert result.stdout.startswith("NOT SEPARABLE: no hyperplane has no on one side and yes on the other (")
    assert "rows 1, 2, 3, 4 (4 in all)" in result.stdout
    assert "       1         yes  0.25 = 1/4\n" in result.stdout
    assert "adds up to exactly 0" in result.stdout
    assert "the margin of at least one row is at most -0.353553" in result.stdout


def test_separator_is_printed(half_line):
    result = run(half_line)
    assert result.exit_code == 0
    assert result.stdout.startswith("SEPARABLE: a hyperplane has 0 on one side and 1 on the other (")
    assert "<= largest margin <=" in result.stdout
    assert "(p = 1)" in run(half_line, "--p", 1, "--tol", "inf").stdout


def test_json_output_holds_proof_or_separator(square, half_line):
    facts = json.loads(run(square, "--json").stdout)
    assert facts["separable"] is False
    assert sum(Fraction(row["exact"]) for row in facts["proof"]) == 1
    assert [row["row"] for row in facts["proof"]] == [1, 2, 3, 4]
    facts = json.loads(run(half_line, "--json", "--p", "inf").stdout)
    assert facts["separable"] is True
    assert 0.0 < facts["lower"] <= facts["upper"]
    assert len(facts["coef"]) == facts["features"] == 2


def test_kernel_verdicts_are_printed(square, half_line):
    result = run(square, "--kernel", "rbf", "--gamma", 1)
    assert result.exit_code == 0
    assert result.stdout.startswith(
        "SEPARABLE: a function of the rbf kernel has no on one side and yes on the other ("
    )
    assert run(square, "--kernel", "poly", "--degree", 2, "--coef0", 1).stdout.startswith("SEPARABLE")
    result = run(square, "--kernel", "poly", "--degree", 1, "--gamma", "auto", "--coef0", 1)
    assert result.stdout.startswith("NOT SEPARABLE: no function of the poly kernel has no on one side")
    assert (
        "rows 1, 2, 3, 4 (4 in all) have weights with which sum alpha y k(x, .) is exactly 0" in result.stdout
    )
    assert "weight x sign x feature of a row adds up to exactly 0" in result.stdout
    facts = json.loads(run(half_line, "--kernel", "rbf", "--json").stdout)
    assert facts["separable"] is True
    assert len(facts["dual_coef"]) == facts["rows"] == 3
    facts = json.loads(run(square, "--kernel", "linear", "--json").stdout)
    assert [row["exact"] for row in facts["proof"]] == ["1/4"] * 4


def test_hyperplanes_through_the_origin_are_decided(tmp_path, half_line):
    result = run(half_line, "--no-bias")
    assert result.stdout.startswith("NOT SEPARABLE: no hyperplane through the origin has 0 on one side")
    assert "rows 1, 2, each with the sign of its class, point in opposite directions" in result.stdout
    assert "0.75 = 3/4" in result.stdout
    path = tmp_path / "opposite.csv"
    path.write_text("a,answer\n1,1\n2,0\n")
    assert "= 1/3" in run(path, "--no-bias").stdout
    assert run(path).stdout.startswith("SEPARABLE")


def test_timeout_is_reported_as_undecided(tmp_path):
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((300, 8)), rng.integers(0, 2, 300)
    path = tmp_path / "noise.svm"
    dump_svmlight_file(X, y, str(path))
    result = run(path, "--max-time", 1e-9)
    assert result.exit_code == 3
    assert result.stdout.startswith("UNDECIDED: max_time went by")
    facts = json.loads(run(path, "--max-time", 1e-9, "--json").stdout)
    assert facts["separable"] is None
    assert facts["lower"] == 0.0 <= facts["upper"]
    assert run(path).exit_code == 0
    assert separate(X, y).separable is False


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (("--max-time", -1), "max_time must be a positive number"),
        (("--tol", 0), "tol must be positive"),
        (("--p", 0.5), "p must be a number from 1 to inf"),
        (("--p", "log"), "p must be a number"),
        (("--label", "a"), "leave --label out"),
        (("--kernel", "gauss"), "kernel must be one of"),
        (("--kernel", "precomputed"), "use maxmargin.separate in Python"),
        (("--kernel", "sigmoid", "--gamma", 9, "--coef0", -9), "not positive semidefinite"),
    ],
)
def test_invalid_input_gives_a_one_line_error(half_line, arguments, expected):
    result = run(half_line, *arguments)
    assert result.exit_code == 2
    assert expected in result.stderr
    assert result.stderr.count("\n") == 1


def test_three_classes_are_refused_with_the_remedy(tmp_path):
    path = tmp_path / "three.csv"
    path.write_text("a,answer\n1,1\n2,0\n3,2\n")
    result = run(path)
    assert result.exit_code == 2
    assert "one class at a time" in result.stderr


LARGE, NEXT = 2**53, 2**53 + 1


def rounded_files(folder):
    """Write a pair of rows that are equal in float64, in every file format."""
    pa = pytest.importorskip("pyarrow")
    from pyarrow.parquet import write_table

    (folder / "rows.csv").write_text(f"a,b,class\n{LARGE},0.5,0\n{NEXT},0.5,1\n")
    (folder / "rows.svm").write_text(f"0 1:{LARGE}\n1 1:{NEXT}\n")
    np.savez(folder / "rows.npz", X=np.array([[LARGE], [NEXT]]), y=[0, 1])
    table = pa.table({"a": [LARGE, NEXT], "class": [0, 1]})
    write_table(table, folder / "rows.parquet")
    return [folder / f"rows.{kind}" for kind in ("csv", "svm", "npz", "parquet")]


def test_integers_that_float64_rounds_are_refused(tmp_path):
    from maxmargin.io.readers import read

    for path in rounded_files(tmp_path):
        result = run(path)
        assert result.exit_code == 2
        assert f"{NEXT}, which is not a float64 number" in " ".join(result.output.split())
        assert read(path).rounded == str(NEXT)
        output = tmp_path / "model.mm"
        fit = ["fit", str(path), "--output", str(output), "--quiet"]
        for command in (fit, ["compare", str(path)], ["select", str(path)]):
            hard = CliRunner().invoke(app, [*command, "--C", "inf"])
            assert hard.exit_code == 2
            assert "which is not a float64 number" in " ".join(hard.output.split())
        assert not output.exists()
        assert CliRunner().invoke(app, [*fit, "--C", "1"]).exit_code in (0, 3)
        output.unlink()


def test_decimal_numbers_may_be_rounded(tmp_path):
    path = tmp_path / "rows.csv"
    path.write_text(f"a,class\n{NEXT}.0,0\n1e300,1\n{LARGE + 2},0\n0.1,0\n")
    result = run(path)
    assert result.exit_code == 0
    assert "SEPARABLE" in result.output


class TestModels:
    """`fit` and `check` print the verdict of `separate` for a hard margin without a separator."""

    @staticmethod
    def command(*arguments):
        result = CliRunner().invoke(app, [str(argument) for argument in arguments])
        assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
        return result

    def test_fit_and_check_print_the_proof(self, square, tmp_path):
        model = tmp_path / "model"
        fitted = self.command("fit", square, "--C", "inf", "-o", model)
        checked = self.command("check", model, square)
        expected = run(square).stdout.splitlines()
        for result in (fitted, checked):
            assert result.exit_code == 3
            _, *lines = result.stdout.splitlines()
            first_line, *lines = [line for line in lines if not line.startswith("solved by")]
            assert first_line.split("(")[0] == expected[0].split("(")[0]  # the times differ
            assert lines == expected[1:]
        assert fitted.stdout.startswith("INSEPARABLE in ")
        assert checked.stdout.startswith("verified: recomputed from the 4 rows")
        assert "every bound holds, and so does the proof that there is no separator" in checked.stdout

    def test_json_output_of_fit_and_check_holds_the_proof(self, square, tmp_path):
        model = tmp_path / "model"
        for arguments in (("fit", square, "--C", "inf", "-o", model), ("check", model, square)):
            facts = json.loads(self.command(*arguments, "--json").stdout)
            (verdict,) = facts["verdicts"]
            assert verdict["class"] is None
            assert verdict["separable"] is False
            assert [(row["row"], row["exact"]) for row in verdict["proof"]] == [
                (k, "1/4") for k in range(1, 5)
            ]
        facts = json.loads(self.command("fit", square, "-o", model, "--json").stdout)
        assert "verdicts" not in facts

    def test_check_refuses_a_false_proof(self, square, tmp_path):
        model = load_after_fit(self.command, square, tmp_path / "model")
        model.verdict_ = replace(model.verdict_, weights=(*model.verdict_.weights[:2], *[Fraction(1, 8)] * 2))
        save(model, tmp_path / "false")
        result = self.command("check", tmp_path / "false", square)
        assert result.exit_code == 2
        assert "the proof fails" in result.stderr
        assert "verified" not in result.stdout

    @pytest.mark.parametrize("kernel", [(), ("--kernel", "linear", "--multi-class", "ovo")])
    def test_fit_and_check_print_a_verdict_per_class(self, tmp_path, kernel):
        X, y = load_iris(return_X_y=True)
        dump_svmlight_file(X, y, str(tmp_path / "iris.svm"))
        result = self.command("fit", tmp_path / "iris.svm", "--C", "inf", "-o", tmp_path / "model", *kernel)
        assert result.exit_code == 3
        if kernel:
            assert result.stdout.count("NOT SEPARABLE") == 1
            assert "function of the linear kernel has" in result.stdout or "hyperplane has" in result.stdout
        else:
            assert "NOT SEPARABLE: no hyperplane has the rest on one side and 1 on the other" in result.stdout
            assert "NOT SEPARABLE: no hyperplane has the rest on one side and 2 on the other" in result.stdout
            assert "NOT SEPARABLE: no hyperplane has the rest on one side and 0 on" not in result.stdout
        checked = self.command("check", tmp_path / "model", tmp_path / "iris.svm")
        assert checked.exit_code == 3
        assert "so does the proof" in checked.stdout
        assert checked.stdout.count(" <= best <= ") == 3  # bounds of all problems


def load_after_fit(command, data, path):
    assert command("fit", data, "--C", "inf", "-o", path).exit_code == 3
    return load(path)
