"""The command line: output, files written and exit codes."""

from __future__ import annotations

import gzip
import inspect
import json
import os
import pickle
import select
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from command import RNG, X, Y, refused, run
from safetensors.numpy import load as load_arrays
from scipy.sparse import csr_matrix, vstack
from sklearn.datasets import dump_svmlight_file
from typer.main import get_command
from typer.testing import CliRunner

import maxmargin
from maxmargin import KernelMaxMarginClassifier, MaxMarginClassifier, OnlineMarginClassifier, Status, verify
from maxmargin.cli.app import app
from maxmargin.cli.fit import fit
from maxmargin.cli.options import json_text
from maxmargin.io.model_file import load, save
from maxmargin.io.readers import DataError, svmlight

ONLINE = ("online", "classes", "hashing", "trail")
COMMAND = [sys.executable, "-c", "from maxmargin.cli import main; main()"]


@pytest.fixture
def data(tmp_path):
    path = tmp_path / "train.svm"
    dump_svmlight_file(X, Y, str(path), zero_based=False)
    return path


@pytest.fixture
def table(tmp_path):
    """The same data as CSV, with string labels."""
    path = tmp_path / "train.csv"
    lines = [",".join([*map(str, row), "yes" if y > 0 else "no"]) for row, y in zip(X, Y, strict=True)]
    path.write_text("\n".join(["a,b,c,d,answer", *lines]) + "\n")
    return path


@pytest.fixture
def model(data, tmp_path):
    path = tmp_path / "model.safetensors"
    assert run("fit", data, "-o", path, "--seed", 0).exit_code == 0
    return path


class TestFit:
    def test_fit_writes_a_model_with_its_certificate(self, data, tmp_path):
        path = tmp_path / "m"
        result = run("fit", data, "-o", path, "--seed", "0")
        assert result.exit_code == 0
        fitted = load(path)
        assert fitted.status_ is Status.CERTIFIED
        assert result.stdout.startswith(f"CERTIFIED in {fitted.n_iter_} round")
        reason = "p = 2, a small problem: the optimality conditions on the support"
        assert result.stdout.splitlines()[1] == f"solved by exact: {reason}"
        assert str(fitted.certificate_) in result.stdout
        assert result.stderr == ""
        assert np.array_equal(fitted.predict(X), MaxMarginClassifier(random_state=0).fit(X, Y).predict(X))
        assert verify(fitted, X, Y).gap <= 1e-3

    def test_options_set_parameters_of_the_estimator(self, data, tmp_path):
        options = {
            "C": 0.5, "loss": "hinge", "p": 2.0, "norm_power": 2, "tol": 0.01, "algorithm": "mpu",
            "intercept": "augmented",
            "intercept_scaling": 2.0, "class_weight": "balanced", "max_iter": 77, "max_time": 60.0,
            "n_jobs": 1,
        }  # fmt: skip
        words = [word for name, value in options.items() for word in (f"--{name.replace('_', '-')}", value)]
        assert run("fit", data, "-o", tmp_path / "m", *words, "--seed", 5, "--fit-intercept").exit_code == 0
        parameters = load(tmp_path / "m").get_params()
        assert {name: parameters[name] for name in options} == options
        assert parameters["random_state"] == 5
        run("fit", data, "-o", tmp_path / "m", "--no-intercept")
        assert load(tmp_path / "m").intercept_[0] == 0.0

    @pytest.mark.parametrize(
        ("p", "expected"), [("1", 1.0), ("1.5", 1.5), ("inf", float("inf")), ("log", "log")]
    )
    def test_norm_option_is_stored_in_the_model(self, data, tmp_path, p, expected):
        result = run("fit", data, "-o", tmp_path / "m", "--p", p, "--json")
        assert result.exit_code == 0
        assert load(tmp_path / "m").p == expected
        assert run("check", tmp_path / "m", data).exit_code == 0

    def test_invalid_norms_are_refused(self, data, tmp_path):
        for p, words in (("two", "a number from 1 to inf"), ("0.5", "from 1 to inf")):
            result = run("fit", data, "-o", tmp_path / "m", "--p", p)
            assert result.exit_code == 2
            assert words in " ".join(result.output.split())
        assert not (tmp_path / "m").exists()

    def test_defaults_equal_those_of_the_estimator(self):
        estimator = MaxMarginClassifier().get_params()
        estimator["seed"] = estimator["random_state"]
        with_kernel = KernelMaxMarginClassifier().get_params()
        for name, parameter in inspect.signature(fit).parameters.items():
            if name not in (
                "ctx",
                "data",
                "output",
                "label",
                "columns",
                "drop",
                "n_features",
                "as_json",
                "quiet",
                "kernel",
                *ONLINE,
            ):
                default = estimator[name] if name in estimator else with_kernel[name]
                assert parameter.default == default, name

    def test_kernel_options_set_parameters_of_the_kernel_classifier(self, data, tmp_path):
        """Options that are not given have the defaults of the kernel classifier."""
        words = [
            "--kernel",
            "poly",
            "--degree",
            2,
            "--coef0",
            1.5,
            "--gamma",
            0.3,
            "--cache-size",
            10,
            "--tol",
            1e-5,
        ]
        result = run("fit", data, "-o", tmp_path / "m", *words)
        assert result.exit_code == 0
        fitted = load(tmp_path / "m")
        assert (fitted.kernel, fitted.degree, fitted.coef0, fitted.gamma) == ("poly", 2, 1.5, 0.3)
        assert (fitted.loss, fitted.cache_size, fitted.max_iter) == ("hinge", 10, -1)
        assert str(fitted.certificate_) in result.stdout
        assert "Polynomial" in result.stdout
        assert run("check", tmp_path / "m", data).exit_code == 0
        assert run("predict", tmp_path / "m", data, "--scores").exit_code == 0
        facts = json.loads(run("fit", data, "-o", tmp_path / "m", "--kernel", "rbf", "--json").stdout)
        assert facts["problem"]["loss"] == "hinge"
        assert facts["problem"]["kernel"].startswith("Gaussian(gamma=")

    def test_json_output_describes_the_fit(self, data, tmp_path):
        result = run("fit", data, "-o", tmp_path / "m", "--json")
        facts = json.loads(result.stdout)
        assert facts["status"] == "CERTIFIED"
        assert facts["gap"] <= facts["tol"] == 1e-3
        assert (facts["rows"], facts["features"], facts["classes"]) == (60, 4, [-1, 1])
        assert facts["bounds"][0]["lower"] <= facts["bounds"][0]["upper"]
        assert facts["problem"] == {
            "loss": "squared_hinge",
            "C": 1.0,
            "p": 2.0,
            "power": 2,
            "intercept": "free",
            "kernel": "linear",
        }
        assert facts["seconds"] > 0.0
        assert facts["model"] == str(tmp_path / "m")
        reason = "p = 2, a small problem: the optimality conditions on the support"
        assert facts["stages"] == [{"algorithm": "exact", "reason": reason}]

    def test_stages_of_several_classes_are_listed_once(self, tmp_path):
        path, labels = tmp_path / "three.svm", np.arange(60) % 3
        dump_svmlight_file(X, labels, str(path), zero_based=False)
        facts = json.loads(run("fit", path, "-o", tmp_path / "m", "--algorithm", "dcd", "--json").stdout)
        history = load(tmp_path / "m").history_
        assert {report.label for report in history} == {0, 1, 2}
        assert [stage["algorithm"] for stage in facts["stages"]] == ["dcd", "exact"]
        assert facts["stages"][0]["reason"] == "asked for"

    def test_json_output_writes_infinity_as_a_string(self, data, tmp_path):
        result = run("fit", data, "-o", tmp_path / "m", "--json", "--C", "inf")
        assert result.exit_code == 3
        facts = json.loads(result.stdout, parse_constant=pytest.fail)
        assert facts["problem"]["C"] == "inf"
        assert facts["status"] in ("INSEPARABLE", "UNDECIDED")

    def test_json_text_writes_infinities_and_nan_as_strings(self):
        facts = {
            "gap": np.inf,
            "bounds": [{"lower": -np.inf, "upper": np.float64("nan"), "rows": np.int64(3)}],
        }
        plain = {"gap": "inf", "bounds": [{"lower": "-inf", "upper": "nan", "rows": 3}]}
        assert json.loads(json_text(facts), parse_constant=pytest.fail) == plain

    def test_quiet_prints_nothing(self, data, tmp_path):
        result = run("fit", data, "-o", tmp_path / "m", "--quiet")
        assert (result.exit_code, result.output) == (0, "")

    def test_fit_above_the_tolerance_exits_with_3(self, data, tmp_path):
        path = tmp_path / "m"
        result = run("fit", data, "-o", path, "--algorithm", "perceptron", "--max-iter", "1", "--tol", "1e-9")
        assert result.exit_code == 3
        assert result.stdout.startswith(("MAX_ITER in 1 round,", "CONVERGED in 1 round,"))
        assert load(path).certificate_.gap > 1e-9

    def test_csv_fit_keeps_string_labels_and_column_names(self, table, tmp_path):
        assert run("fit", table, "-o", tmp_path / "m").exit_code == 0
        fitted = load(tmp_path / "m")
        assert fitted.classes_.tolist() == ["no", "yes"]
        assert fitted.feature_names_in_.tolist() == ["a", "b", "c", "d"]

    def test_label_option_refuses_missing_and_nonnumeric_columns(self, table, tmp_path):
        table.write_text(table.read_text().replace("answer", "d2").replace("a,", "kind,", 1))
        assert "there is no column 'b2'" in refused("fit", table, "-o", tmp_path / "m", "--label", "b2")
        assert "line 2: column 'd2'" in refused("fit", table, "-o", tmp_path / "m", "--label", "kind")

    def test_fractional_labels_are_refused(self, table, tmp_path):
        message = refused("fit", table, "-o", tmp_path / "m", "--label", "a")
        assert "line 2: column 'answer': " in message
        table.write_text("a,b\n1,0.5\n2,0.25\n")
        message = refused("fit", table, "-o", tmp_path / "m")
        assert message.endswith("are fractions, not classes; name another column than 'b' with --label.")

    def test_n_features_is_refused_for_tables_with_a_header(self, table, tmp_path):
        message = refused("fit", table, "-o", tmp_path / "m", "--n-features", "9")
        assert message.endswith("the number of features is that of the header; leave --n-features out.")

    def test_n_features_may_exceed_the_largest_index_in_the_file(self, data, tmp_path):
        assert run("fit", data, "-o", tmp_path / "m", "--n-features", "9").exit_code == 0
        assert load(tmp_path / "m").n_features_in_ == 9

    @pytest.mark.parametrize(
        ("options", "message"),
        [
            (["--C", "-1"], "C must be a positive number, or inf for the hard margin; got C=-1.0."),
            (["--C", "nan"], "C must be a positive number"),
            (["--tol", "0"], "tol must be positive"),
            (["--loss", "log"], "loss must be one of 'hinge', 'squared_hinge'; got 'log'."),
            (["--algorithm", "magic"], "algorithm must be 'auto', one of "),
            (
                ["--algorithm", "perceptron", "--loss", "hinge"],
                "algorithm 'perceptron' does not solve loss='hinge'",
            ),
            (["--class-weight", "heavy"], 'class_weight must be a dict, "balanced" or None'),
            (["--max-iter", "0"], "max_iter must be a whole number of rounds"),
            (["--max-time", "-1"], "max_time must be a positive number of seconds"),
            (["--n-features", "2"], "is beyond the 2 features of the model"),
            (["--n-features", "0"], "--n-features must be at least 1, got 0; leave it out to count them"),
            (["--n-features", "-3"], "--n-features must be at least 1, got -3; leave it out"),
            (["--label", "y"], "--label names a column of a .csv, .parquet or .arrow file"),
            (["--gamma", "0.1"], "--gamma applies only with --kernel: name a kernel, or leave it out"),
            (["--kernel", "rbf", "--p", "1"], "--p cannot be combined with --kernel: leave it out"),
            (["--kernel", "magic"], "kernel must be one of 'additive_chi2', "),
            (["--kernel", "precomputed"], "--kernel precomputed needs a kernel matrix"),
            (["--kernel", "rbf", "--multi-class", "all"], 'multi_class must be "ovr" or "ovo"'),
        ],
    )
    def test_invalid_options_are_refused(self, data, tmp_path, options, message):
        assert message in refused("fit", data, "-o", tmp_path / "m", *options)
        assert not (tmp_path / "m").exists()

    @pytest.mark.parametrize(
        ("content", "message"),
        [
            ("", "the file is empty."),
            ("1 1:1\n-1 2:x\n", "line 2: the value 'x' of '2:x' is not a number."),
            ("1 1:1\n1 2:1\n", "(one class)"),
            ("0.1 1:1\n0.2 1:2\n0.3 1:4\n", "the labels are fractions, not classes; number the classes."),
        ],
    )
    def test_invalid_data_are_refused(self, tmp_path, content, message):
        (tmp_path / "bad").write_text(content)
        assert message in refused("fit", tmp_path / "bad", "-o", tmp_path / "m")

    def test_unwritable_outputs_are_refused_before_reading_data(self, data, tmp_path):
        assert "there is no such folder" in refused("fit", data, "-o", tmp_path / "nowhere" / "m")
        assert "this is a folder" in refused("fit", tmp_path / "no data either", "-o", tmp_path)

    @pytest.mark.skipif(not os.path.exists("/dev/full"), reason="no device that is full")
    def test_full_disk_is_reported(self, data):
        assert refused("fit", data, "-o", "/dev/full") == "/dev/full: No space left on device"

    def test_usage_errors_exit_with_2(self, data):
        assert run("fit", data).exit_code == 2  # no --output
        assert run("fit", data, "-o", "m", "--C", "much").exit_code == 2
        assert run("unheard-of").exit_code == 2


def test_version_option_prints_the_version():
    result = run("--version")
    assert (result.exit_code, result.stdout) == (0, f"maxmargin {maxmargin.__version__}\n")


@pytest.mark.parametrize("command", ["fit", "predict", "check", "report", "demo"])
def test_every_option_has_help_text(command):
    """No option lacks a help text."""
    parameters = get_command(app).commands[command].params
    assert [option.name for option in parameters if not option.help] == []


def test_help_shows_both_defaults_of_kernel_dependent_options():
    linear, kernel = MaxMarginClassifier().get_params(), KernelMaxMarginClassifier().get_params()
    differ = {name for name in linear.keys() & kernel.keys() if linear[name] != kernel[name]}
    assert differ == {"loss", "max_iter"}
    shown = {option.name: option.show_default for option in get_command(app).commands["fit"].params}
    assert shown["loss"] == f"{linear['loss']}; with --kernel {kernel['loss']}"
    assert shown["max_iter"] == f"{linear['max_iter']}; with --kernel no limit"
    assert kernel["max_iter"] == -1  # no limit


class TestPackage:
    """Lazy loading of public names."""

    def test_public_names_are_importable_and_unknown_names_raise(self):
        everything = {}
        exec("from maxmargin import *", everything)
        for name in maxmargin.__all__:
            assert everything[name] is getattr(maxmargin, name)
        assert {*maxmargin.__all__, "__version__"} <= {*dir(maxmargin)}
        with pytest.raises(AttributeError, match="module 'maxmargin' has no attribute 'Magic'"):
            maxmargin.Magic  # noqa: B018
        with pytest.raises(ImportError, match="Magic"):
            exec("from maxmargin import Magic")

    def test_pickles_load_in_a_new_process(self, tmp_path):
        fitted = maxmargin.MaxMarginClassifier(random_state=0).fit(X, Y)
        (tmp_path / "pickle").write_bytes(pickle.dumps((fitted, maxmargin.verify)))
        code = (
            "import pickle, sys; import maxmargin; assert 'numba' not in sys.modules\n"
            "model, verify = pickle.load(open(sys.argv[1], 'rb'))\n"
            "assert type(model) is maxmargin.MaxMarginClassifier and verify is maxmargin.verify"
        )
        subprocess.run([sys.executable, "-c", code, tmp_path / "pickle"], check=True)


class TestPredict:
    def test_one_label_is_printed_per_line(self, model, data):
        result = run("predict", model, data)
        assert result.exit_code == 0
        labels = load(model).predict(X)
        assert result.stdout.split("\n") == [*map(str, labels), ""]
        assert result.stderr == f"accuracy {np.mean(labels == Y):.6g} ({np.sum(labels == Y)} of 60 rows)\n"

    def test_output_option_writes_labels_to_the_file(self, model, data, tmp_path):
        result = run("predict", model, data, "-o", tmp_path / "out")
        assert result.stdout == ""
        assert (tmp_path / "out").read_text() == "".join(f"{label}\n" for label in load(model).predict(X))

    def test_printed_scores_equal_the_decision_function(self, model, data):
        rows = [line.split("\t") for line in run("predict", model, data, "--scores").stdout.splitlines()]
        assert np.allclose([float(score) for _, score in rows], load(model).decision_function(X), rtol=1e-12)

    def test_json_output_holds_labels_and_scores(self, model, data):
        found = json.loads(run("predict", model, data, "--json", "--scores").stdout)
        assert found["labels"] == load(model).predict(X).tolist()
        assert np.allclose(found["scores"], load(model).decision_function(X), rtol=1e-12)
        assert json.loads(run("predict", model, data, "--json").stdout) == {"labels": found["labels"]}

    def test_multiclass_scores_have_one_column_per_class(self, tmp_path):
        dump_svmlight_file(X, np.digitize(X[:, 0], [-0.5, 0.5]), str(tmp_path / "a"), zero_based=False)
        fitted = run("fit", tmp_path / "a", "-o", tmp_path / "m", "--json")
        assert [part["class"] for part in json.loads(fitted.stdout)["bounds"]] == [0, 1, 2]
        line = run("predict", tmp_path / "m", tmp_path / "a", "--scores").stdout.splitlines()[0].split("\t")
        assert len(line) == 4
        assert int(line[0]) == np.argmax([float(score) for score in line[1:]])

    def test_table_columns_are_matched_by_name(self, table, tmp_path):
        run("fit", table, "-o", tmp_path / "m")
        expected = run("predict", tmp_path / "m", table).stdout.split()[:2]
        (tmp_path / "new.csv").write_text(
            "id,d,c,b,a\n" + "".join(f"p{k},{x[3]},{x[2]},{x[1]},{x[0]}\n" for k, x in enumerate(X[:2]))
        )
        result = run("predict", tmp_path / "m", tmp_path / "new.csv")
        assert result.stdout.split() == expected
        assert result.stderr == ""  # there are no labels
        (tmp_path / "new.csv").write_text("a,b,c\n1,2,3\n")
        assert "needs the column 'd'" in refused("predict", tmp_path / "m", tmp_path / "new.csv")
        message = refused("predict", tmp_path / "m", table, "--label", "question")
        assert message == f"{table}: there is no label column 'question'; name another with --label."

    def test_rows_with_label_zero_have_unknown_accuracy(self, model, tmp_path):
        (tmp_path / "new").write_text("0 1:1\n0 1:-3 2:1\n")
        result = run("predict", model, tmp_path / "new")
        assert result.stdout.split() == ["1", "-1"]
        assert result.stderr == "accuracy unknown: no label of the data is a class of the model\n"

    def test_label_option_is_refused_for_svmlight_files(self, model, data):
        for command in ("predict", "check"):
            message = refused(command, model, data, "--label", "y")
            assert message.startswith(f"{data}: --label names a column of a .csv, .parquet or .arrow file")
            assert message.endswith("leave --label out.")

    def test_model_fitted_on_a_table_predicts_svmlight_files(self, table, data, tmp_path):
        run("fit", table, "-o", tmp_path / "m")
        assert run("predict", tmp_path / "m", data).stdout == run("predict", tmp_path / "m", table).stdout

    def test_zero_based_indexing_is_stored_in_the_model(self, tmp_path):
        dump_svmlight_file(X, Y, str(tmp_path / "zero"), zero_based=True)
        run("fit", tmp_path / "zero", "-o", tmp_path / "m")
        (tmp_path / "new").write_text("1 1:1 2:1\n")
        score = float(run("predict", tmp_path / "m", tmp_path / "new", "--scores").stdout.split()[1])
        expected = load(tmp_path / "m").decision_function([[0.0, 1.0, 1.0, 0.0]])[0]
        assert score == pytest.approx(expected, rel=1e-12)

    def test_invalid_files_are_refused(self, model, data, tmp_path):
        (tmp_path / "wide").write_text("1 1:1\n1 2:1 5:1\n")
        assert "line 2: the index 5 is beyond the 4 features" in refused("predict", model, tmp_path / "wide")
        assert refused("predict", tmp_path / "m", data) == f"{tmp_path / 'm'}: there is no such file."
        assert refused("predict", tmp_path, data) == f"{tmp_path}: this is a folder; name a file in it."
        assert "this is not a text file" in refused("fit", model, "-o", tmp_path / "m")
        assert "this is not a model file of maxmargin" in refused("predict", data, data)
        assert "there is no such file" in refused("predict", model, tmp_path / "m")


class TestCheck:
    def test_valid_certificates_are_verified(self, model, data):
        result = run("check", model, data)
        assert result.exit_code == 0
        assert result.stdout.startswith("verified: recomputed from the 60 rows")
        assert "<= best objective <=" in result.stdout
        facts = json.loads(run("check", model, data, "--json").stdout)
        assert facts["verified"] is True
        assert facts["gap"] <= 1e-3

    def test_certificates_of_tables_are_verified(self, table, tmp_path):
        run("fit", table, "-o", tmp_path / "m", "--class-weight", "balanced")
        assert run("check", tmp_path / "m", table).exit_code == 0

    def test_certificates_of_other_data_are_refused(self, model, tmp_path):
        dump_svmlight_file(X, -Y, str(tmp_path / "other"), zero_based=False)
        message = refused("check", model, tmp_path / "other")
        assert message.startswith("this certificate was made for other data")

    @pytest.mark.parametrize("bound", ["lower", "upper"])
    def test_error_names_the_bound_that_fails(self, model, data, bound):
        fitted = load(model)
        lower, upper = fitted.certificate_.lower, fitted.certificate_.upper
        forged = {"lower": (lower * 1.01, upper * 1.02), "upper": (lower * 0.98, upper * 0.99)}[bound]
        object.__setattr__(fitted.certificate_, "lower", forged[0])
        object.__setattr__(fitted.certificate_, "upper", forged[1])
        save(fitted, model)
        assert f"the {bound} bound fails" in refused("check", model, data)
        result = run("check", model, data, "--json")
        assert result.exit_code == 2
        facts = json.loads(result.stdout)
        assert facts["verified"] is False
        assert f"the {bound} bound fails" in facts["reason"]

    def test_check_refuses_data_without_labels(self, table, tmp_path):
        run("fit", table, "-o", tmp_path / "m")
        (tmp_path / "new.csv").write_text("a,b,c,d\n1,2,3,4\n")
        assert "a check needs labels, and the file has none" in refused(
            "check", tmp_path / "m", tmp_path / "new.csv"
        )


class TestDemo:
    def test_demo_prints_and_draws_bounds(self, tmp_path, monkeypatch):
        monkeypatch.chdir(tmp_path)
        result = run("demo")
        assert result.exit_code == 0
        for words in ("lower bound", "CERTIFIED", "<= best objective <=", "verified", "test accuracy: 0.9"):
            assert words in result.stdout
        pytest.importorskip("matplotlib")
        assert (tmp_path / "demo.png").read_bytes().startswith(b"\x89PNG")

    def test_unknown_picture_formats_are_refused_before_the_fit(self, tmp_path, monkeypatch):
        monkeypatch.setattr("maxmargin.cli.demo._data", pytest.fail)  # refused before the data are made
        message = refused("demo", "--picture", tmp_path / "x.foo")
        assert (
            message
            == f"{tmp_path / 'x.foo'}: a picture is a .png, .pdf or .svg file; use one of these endings"
        )

    @pytest.mark.parametrize(("name", "begin"), [("a.PDF", b"%PDF"), ("a", b"\x89PNG"), ("a.svg", b"<?xml")])
    def test_picture_format_follows_the_file_suffix(self, tmp_path, name, begin):
        pytest.importorskip("matplotlib")
        assert run("demo", "--json", "--picture", tmp_path / name).exit_code == 0
        assert (tmp_path / name).read_bytes().startswith(begin)

    def test_missing_matplotlib_is_reported_before_the_fit(self, tmp_path, monkeypatch):
        monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
        output = run("demo", "--picture", tmp_path / "a.png").output
        assert output.startswith("No picture is drawn without matplotlib: pip install 'maxmargin[plot]'.")
        assert "picture: " not in output.split("\n", 1)[1]

    def test_json_output_without_matplotlib_has_no_picture(self, tmp_path, monkeypatch):
        monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
        result = run("demo", "--json", "--picture", tmp_path / "a.png")
        facts = json.loads(result.stdout)
        assert facts["status"] == "CERTIFIED"
        assert facts["rounds"] == 1  # the exact step
        assert facts["test_accuracy"] > 0.9
        assert facts["verified"] is True
        assert facts["picture"] is None
        assert not (tmp_path / "a.png").exists()


class TestProcess:
    @pytest.mark.parametrize("words", [["--help"], ["--version"], ["fit", "--help"], ["unheard-of"]])
    def test_help_and_version_import_no_numerical_package(self, words):
        code = (
            "import sys; from maxmargin.cli import main\n"
            "try: main()\n"
            "finally: print([name for name in ('numba', 'sklearn', 'numpy') if name in sys.modules])"
        )
        done = subprocess.run(
            [sys.executable, "-c", code, *words], capture_output=True, text=True, check=False
        )
        assert done.stdout.splitlines()[-1] == "[]"

    def test_standard_input_is_read_from_files_but_not_from_pipes(self, data, tmp_path):
        """Redirection from a file is read; a pipe is refused."""
        if not os.path.exists("/dev/stdin"):
            pytest.skip("no /dev/stdin")
        command = [*COMMAND, "fit", "/dev/stdin", "-o", tmp_path / "m"]
        done = subprocess.run(command, input=data.read_text(), capture_output=True, text=True, check=False)
        assert done.returncode == 2
        assert done.stderr.startswith("maxmargin: /dev/stdin: a pipe or device can be read only once; write")
        assert not (tmp_path / "m").exists()
        with open(data) as file:
            assert subprocess.run(command, stdin=file, capture_output=True, check=False).returncode == 0

    def test_predict_does_not_import_matplotlib_or_parquet(self, model, data):
        code = (
            "import sys; from maxmargin.cli.app import app; app(sys.argv[1:], standalone_mode=False); "
            "print([name for name in ('matplotlib', 'pyarrow.parquet') if name in sys.modules])"
        )
        done = subprocess.run(
            [sys.executable, "-c", code, "predict", model, data], capture_output=True, text=True, check=True
        )
        assert done.stdout.splitlines()[60] == "[]"

    def test_closed_output_pipe_causes_no_traceback(self, model, data):
        pipe, end = os.pipe()
        os.close(pipe)
        with os.fdopen(end, "w") as closed_pipe:
            done = subprocess.run(
                [*COMMAND, "predict", model, data],
                stdout=closed_pipe,
                stderr=subprocess.PIPE,
                text=True,
                check=False,
            )
        assert "Traceback" not in done.stderr
        assert done.returncode != 0

    @pytest.mark.skipif(sys.platform == "win32", reason="needs a pseudo-terminal")
    def test_first_ctrl_c_saves_the_best_model_so_far(self, tmp_path):
        """The progress line is shown on a terminal; Ctrl-C after it ends the fit with a model."""
        path = tmp_path / "hard.npz"
        np.savez(path, X=RNG.normal(size=(4000, 100)), y=RNG.integers(0, 2, 4000))
        words = [
            "--algorithm",
            "dcd",  # does not reach the tolerance here
            "--loss",
            "hinge",
            "--C",
            "1e4",
            "--tol",
            "1e-14",
            "--max-iter",
            "10000000",
            "--max-time",
            "120",
        ]
        parent_end, child_end = os.openpty()
        process = subprocess.Popen(
            [*COMMAND, "fit", path, "-o", tmp_path / "m", *words],
            stdout=subprocess.PIPE,
            stderr=child_end,
            text=True,
            env={**os.environ, "TERM": "xterm", "COLUMNS": "200"},
        )
        os.close(child_end)
        shown = read_until(parent_end, "≤ objective ≤", seconds=60.0)
        assert " s left" in shown
        process.send_signal(signal.SIGINT)
        printed = drain(process, parent_end)
        assert process.returncode == 3
        assert printed.startswith("INTERRUPTED in ")
        assert load(tmp_path / "m").status_ is Status.INTERRUPTED
        assert np.isfinite(load_arrays((tmp_path / "m").read_bytes())["coef"]).all()


def read_until(terminal, words, seconds):
    """Read a terminal until the words appear; return the text."""
    text, deadline = "", time.monotonic() + seconds
    while words not in text or "left" not in text:
        assert time.monotonic() < deadline, text
        if select.select([terminal], [], [], 1.0)[0]:
            text += os.read(terminal, 4096).decode("utf-8", "replace")
    return text


def drain(process, terminal):
    """Wait for the end of a process while emptying its terminal buffer; return its standard output."""
    while process.poll() is None:
        if select.select([terminal], [], [], 0.1)[0]:
            try:
                os.read(terminal, 4096)
            except OSError:  # the other end is closed
                break
    printed = process.communicate(timeout=30)[0]
    os.close(terminal)
    return printed


def test_fit_check_and_predict_on_adult(data_folder: Path, tmp_path: Path):
    train, test = data_folder / "adult" / "a1a.gz", data_folder / "adult" / "a1a.t.gz"
    path = tmp_path / "a1a.safetensors"
    result = run("fit", train, "-o", path, "--n-features", "123", "--loss", "hinge", "--seed", "0")
    assert result.exit_code == 0
    assert run("check", path, train).exit_code == 0
    assert "this certificate was made for other data" in refused("check", path, test)
    predicted = run("predict", path, test, "-o", tmp_path / "labels")
    accuracy = float(predicted.stderr.split()[1])
    assert 0.83 < accuracy < 0.85


def test_output_over_an_input_file_is_refused(tmp_path):
    runner = CliRunner()
    data = tmp_path / "data.svm"
    data.write_text("+1 1:2\n-1 1:-2\n+1 1:3\n-1 1:-1\n")
    before = data.read_bytes()
    result = runner.invoke(app, ["fit", str(data), "-o", str(data)])
    assert result.exit_code == 2
    assert "this file is read from" in result.stderr
    model = tmp_path / "model.safetensors"
    assert runner.invoke(app, ["fit", str(data), "-o", str(model)]).exit_code == 0
    for output in (data, model):
        assert runner.invoke(app, ["predict", str(model), str(data), "-o", str(output)]).exit_code == 2
    assert data.read_bytes() == before


def test_check_of_a_model_above_the_tolerance_exits_with_3(tmp_path):
    runner = CliRunner()
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(3000, 100)), rng.integers(2, size=3000)
    data = tmp_path / "noise.npz"
    np.savez(data, X=X, y=y)
    model = tmp_path / "model.safetensors"
    fit = ["fit", str(data), "-o", str(model), "--C", "1e4", "--loss", "hinge", "--max-iter", "1"]
    assert runner.invoke(app, fit).exit_code == 3
    result = runner.invoke(app, ["check", str(model), str(data)])
    assert result.exit_code == 3
    assert "above the tolerance" in result.stdout


class TestOnline:
    def test_online_fit_equals_partial_fit_on_the_rows(self, data, tmp_path):
        path = tmp_path / "m"
        result = run("fit", "--online", data, "-o", path, "--n-features", 4, "--C", 2.0)
        assert result.exit_code == 0
        assert result.stdout.startswith("60 rows in ")
        assert "mistakes during the pass" in result.stdout
        assert result.stderr == ""
        model = OnlineMarginClassifier(C=2.0).partial_fit(csr_matrix(X), Y, classes=[-1, 1])
        fitted = load(path)
        assert np.array_equal(fitted.coef_, model.coef_)
        assert fitted.mistakes_ == model.mistakes_
        predicted = run("predict", path, data)
        assert predicted.stdout.split() == [str(label) for label in model.predict(X)]
        assert predicted.stderr.startswith("accuracy ")

    @pytest.mark.parametrize("suffix", ["", ".gz"])
    def test_features_are_hashed_when_the_width_is_unknown(self, data, suffix, tmp_path):
        text = data.read_bytes()
        path = tmp_path / f"rows.svm{suffix}"
        path.write_bytes(gzip.compress(text) if suffix else text)
        assert run("fit", "--online", path, "-o", tmp_path / "m", "--hashing", 64).exit_code == 0
        rows = [{str(j + 1): v for j, v in enumerate(row) if v} for row in X.tolist()]
        model = OnlineMarginClassifier(hasher=64).partial_fit(rows, Y, classes=[-1, 1])
        fitted = load(tmp_path / "m")
        np.testing.assert_allclose(fitted.coef_, model.coef_, rtol=1e-12)
        predicted = run("predict", tmp_path / "m", path)
        assert predicted.stdout.split() == [str(label) for label in model.predict(rows)]

    def test_online_json_lists_announced_classes(self, data, tmp_path):
        result = run(
            "fit", "--online", data, "-o", tmp_path / "m", "--json", "--classes", "-1,1,7", "--trail", "vote"
        )
        facts = json.loads(result.stdout)
        assert (facts["rows"], facts["features"], facts["classes"]) == (60, 1 << 18, [-1, 1, 7])
        assert [problem["class"] for problem in facts["problems"]] == [-1, 1, 7]
        assert facts["problems"][2]["upper"] == "inf"
        assert load(tmp_path / "m").trail == "vote"

    def test_ctrl_c_in_a_stream_saves_the_model_so_far(self, data, tmp_path, monkeypatch):
        def blocks(path, n_features):
            yield from original(path, n_features, size=200)
            raise KeyboardInterrupt

        original = svmlight.stream_svmlight
        monkeypatch.setattr(svmlight, "stream_svmlight", blocks)
        result = run("fit", "--online", data, "-o", tmp_path / "m", "--classes", "-1,1")
        assert result.exit_code == 3
        assert "stopped before the end" in result.stdout
        assert load(tmp_path / "m").n_seen_ == 60

    @pytest.mark.parametrize(
        ("words", "message"),
        [
            (["--tol", "0.1"], "--tol does not apply with --online; leave one of them out."),
            (["--max-iter", "3"], "--max-iter does not apply with --online"),
            (["--algorithm", "mpu"], "'mpu' cannot learn from a stream, where each row occurs only once"),
            (["--n-features", "0"], "--n-features must be at least 1, got 0"),
            (
                ["--n-features", "4", "--hashing", "8"],
                "--hashing is for an unknown number of columns",
            ),
            (["--n-features", "2"], "line 1: the index 3 is beyond the 2 features"),
            (["--classes", "a,b"], "--classes takes whole numbers, as in -1,1; got a,b"),
            (["--classes", "1,2"], "y holds -1, which is none of the classes announced: [1, 2]. Name all"),
        ],
    )
    def test_invalid_options_of_a_stream_are_refused(self, data, words, message, tmp_path):
        assert message in refused("fit", "--online", data, "-o", tmp_path / "m", *words)
        assert not (tmp_path / "m").exists()

    def test_unsupported_files_and_commands_of_a_stream_are_refused(self, data, table, tmp_path):
        assert "--online reads svmlight text" in refused("fit", "--online", table, "-o", tmp_path / "m")
        assert "--classes, --hashing and --trail need --online" in refused(
            "fit", data, "-o", tmp_path / "m", "--trail", "last"
        )
        one = tmp_path / "one.svm"
        one.write_text("1 1:1\n1 2:1\n")
        assert "are all of class 1; name all classes" in refused("fit", "--online", one, "-o", tmp_path / "m")
        one.write_text("0.5 1:1\n1 2:1\n")
        assert "the labels are fractions" in refused("fit", "--online", one, "-o", tmp_path / "m")
        one.write_text("# nothing\n")
        assert "holds no rows" in refused("fit", "--online", one, "-o", tmp_path / "m")
        assert run("fit", "--online", data, "-o", tmp_path / "m").exit_code == 0
        assert "a stream has no certificate" in refused("check", tmp_path / "m", data)


class TestBlocks:
    def test_concatenated_blocks_equal_the_file(self, data):
        for size in (50, 333, 1 << 22):
            blocks = list(svmlight.stream_svmlight(data, 4, size))
            assert np.array_equal(vstack([block.X for block in blocks]).toarray(), X)
            assert np.array_equal(np.concatenate([block.y for block in blocks]), Y)
            assert len(blocks) > 1 or size > 333

    def test_errors_in_blocks_name_their_line(self, tmp_path):
        path = tmp_path / "bad.svm"
        for text, width, message in [
            ("1 1:1\n" * 50 + "1 1:x\n", None, "line 51: the value 'x' of '1:x' is not a number"),
            ("1 1:1\n" * 50 + "1 0:1\n", 2, "line 51: the index 0 is below 1"),
            ("1 1:1\n" * 50 + "1 3:1\n", 2, "line 51: the index 3 is beyond the 2 features"),
            ("1 1:1\n" * 50 + "1 2:nan", 2, "line 51: the value of '2:nan' is not finite"),
        ]:
            path.write_text(text)
            with pytest.raises(DataError, match=message):
                list(svmlight.stream_svmlight(path, width, 64))

    def test_index_0_in_the_first_block_means_zero_based_indices(self, tmp_path):
        path = tmp_path / "zero.svm"
        path.write_text("1 1:1\n-1 0:1\n")
        (block,) = svmlight.stream_svmlight(path, 2)
        assert block.first_index == 0
        assert block.X.toarray().tolist() == [[0.0, 1.0], [1.0, 0.0]]
