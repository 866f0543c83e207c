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
from contextlib import suppress

import numpy as np
import pytest
from command import RNG, X, Y, refused, run
from scipy.sparse import csr_matrix, vstack
from sklearn.datasets import dump_svmlight_file
from typer.main import get_command

import maxmargin
from maxmargin import KernelMaxMarginClassifier, MaxMarginClassifier, OnlineMarginClassifier, Status, verify
from maxmargin.cli.app import app
from maxmargin.cli.compare import compare
from maxmargin.cli.fit import fit
from maxmargin.cli.options import json_text
from maxmargin.cli.separate import separate
from maxmargin.io.model_file import load, save
from maxmargin.io.readers import DataError, svmlight

COMMAND = [sys.executable, "-c", "from maxmargin.cli import main; main()"]
COMMANDS = get_command(app).commands


def test_every_option_has_help_and_the_default_of_the_python_parameter():
    for command in COMMANDS.values():
        assert [option.name for option in command.params if not option.help] == []
    linear, kernel = MaxMarginClassifier().get_params(), KernelMaxMarginClassifier().get_params()
    linear["seed"] = linear["random_state"]
    separates = {n: p.default for n, p in inspect.signature(maxmargin.separate).parameters.items()}
    for command, known, shared in (
        (fit, kernel | linear, {"C", "p", "tol", "max_iter", "gamma", "degree", "multi_class", "cache_size"}),
        (compare, linear, {"C", "loss", "norm_power", "intercept", "max_iter", "max_time", "class_weight"}),
        (separate, separates, {"gamma", "degree", "coef0", "p", "bias", "tol", "max_time"}),
    ):
        options = inspect.signature(command).parameters
        assert shared <= options.keys() & known.keys()
        for name in options.keys() & known.keys() - {"kernel"} | shared:
            assert options[name].default == known[name], name
    # the defaults that depend on --kernel are both shown
    differ = {name for name in linear.keys() & kernel.keys() if linear[name] != kernel[name]}
    shown = {option.name: option.show_default for option in COMMANDS["fit"].params}
    assert differ == {"loss", "max_iter"}
    assert shown["loss"] == f"{linear['loss']}; with --kernel {kernel['loss']}"
    assert shown["max_iter"] == f"{linear['max_iter']}; with --kernel no limit"


def test_version_and_usage_errors(data):
    assert run("--version").stdout == f"maxmargin {maxmargin.__version__}\n"
    for words in (["fit", data], ["fit", data, "-o", "m", "--C", "much"], ["unheard-of"]):
        assert run(*words).exit_code == 2


class TestFit:
    def test_fit_writes_a_model_with_its_certificate(self, data, tmp_path):
        result = run("fit", data, "-o", tmp_path / "m", "--seed", "0")
        fitted = load(tmp_path / "m")
        assert (result.exit_code, result.stderr, fitted.status_) == (0, "", Status.CERTIFIED)
        assert result.stdout.startswith(f"CERTIFIED in {fitted.n_iter_} round")
        assert result.stdout.splitlines()[1].startswith("solved by exact: p = 2")
        assert str(fitted.certificate_) in result.stdout
        assert np.array_equal(fitted.predict(X), MaxMarginClassifier(random_state=0).fit(X, Y).predict(X))
        assert verify(fitted, X, Y).gap <= 1e-3
        result = run("fit", data, "-o", tmp_path / "m", "--quiet")
        assert (result.exit_code, result.output) == (0, "")

    @pytest.mark.parametrize(
        "options",
        [
            {"C": 0.5, "loss": "hinge", "tol": 0.01, "algorithm": "mpu", "intercept": "augmented", "max_iter": 77,
             "intercept_scaling": 2.0, "class_weight": "balanced", "max_time": 60.0, "n_jobs": 1, "seed": 5},
            {"p": 1.5, "norm_power": 1},
            {"p": "log"},
            {"kernel": "poly", "degree": 2, "coef0": 1.5, "gamma": 0.3, "cache_size": 10, "tol": 1e-5},
        ],
    )  # fmt: skip
    def test_options_set_parameters_of_the_estimator(self, data, tmp_path, options):
        words = [word for name, value in options.items() for word in (f"--{name.replace('_', '-')}", value)]
        result = run("fit", data, "-o", tmp_path / "m", *words)
        assert result.exit_code in (0, 3)
        kind = KernelMaxMarginClassifier if "kernel" in options else MaxMarginClassifier
        options["random_state"] = options.pop("seed", None)
        fitted = load(tmp_path / "m")
        assert fitted.get_params() == kind().get_params() | options
        assert str(fitted.certificate_) in result.stdout
        assert run("check", tmp_path / "m", data).exit_code == result.exit_code

    def test_fit_without_intercept_and_with_more_features_than_the_file(self, data, tmp_path):
        run("fit", data, "-o", tmp_path / "m", "--no-intercept", "--n-features", 9)
        assert (load(tmp_path / "m").intercept_[0], load(tmp_path / "m").n_features_in_) == (0.0, 9)

    def test_json_output_describes_the_fit(self, data, three, tmp_path):
        facts = json.loads(run("fit", data, "-o", tmp_path / "m", "--json").stdout)
        assert (facts["status"], facts["tol"], facts["model"]) == ("CERTIFIED", 1e-3, str(tmp_path / "m"))
        assert (facts["rows"], facts["features"], facts["classes"]) == (60, 4, [-1, 1])
        assert facts["gap"] <= 1e-3
        assert facts["bounds"][0]["lower"] <= facts["bounds"][0]["upper"]
        problem = {"loss": "squared_hinge", "C": 1.0, "p": 2.0, "power": 2, "intercept": "free"}
        assert facts["problem"] == problem | {"kernel": "linear"}
        # the stages of several classes are listed once; infinity is a string
        facts = json.loads(run("fit", three, "-o", tmp_path / "m", "--algorithm", "dcd", "--json").stdout)
        assert [part["class"] for part in facts["bounds"]] == [0, 1, 2]
        assert [stage["algorithm"] for stage in facts["stages"]] == ["dcd", "exact"]
        result = run("fit", data, "-o", tmp_path / "m", "--json", "--C", "inf")
        facts = json.loads(result.stdout, parse_constant=pytest.fail)
        assert (result.exit_code, facts["problem"]["C"], facts["status"]) == (3, "inf", "INSEPARABLE")
        numbers = {"bounds": [{"lower": -np.inf, "upper": np.float64("nan"), "rows": np.int64(3)}]}
        assert json.loads(json_text(numbers)) == {"bounds": [{"lower": "-inf", "upper": "nan", "rows": 3}]}

    def test_fit_and_check_above_the_tolerance_exit_with_3(self, data, tmp_path):
        path = tmp_path / "m"
        result = run("fit", data, "-o", path, "--algorithm", "perceptron", "--max-iter", "1", "--tol", "1e-9")
        assert (result.exit_code, load(path).certificate_.gap > 1e-9) == (3, True)
        assert " in 1 round, " in result.stdout
        result = run("check", path, data)
        assert result.exit_code == 3
        assert "above the tolerance" in result.stdout

    @pytest.mark.parametrize(
        ("options", "message"),
        [
            (["--C", "-1"], "C must be a positive number"),
            (["--p", "0.5"], "from 1 to inf"),
            (["--loss", "log"], "loss must be one of"),
            (["--algorithm", "perceptron", "--loss", "hinge"], "does not solve loss='hinge'"),
            (["--n-features", "2"], "is beyond the 2 features"),
            (["--n-features", "0"], "--n-features must be at least 1, got 0"),
            (["--label", "y"], "--label names a column"),
            (["--gamma", "0.1"], "--gamma applies only with --kernel"),
            (["--kernel", "rbf", "--p", "1"], "--p cannot be combined with --kernel"),
            (["--kernel", "precomputed"], "--kernel precomputed needs a kernel matrix"),
            (["--trail", "last"], "need --online"),
        ],
    )
    def test_invalid_options_are_refused(self, data, tmp_path, options, message):
        assert message in refused("fit", data, "-o", tmp_path / "m", *options)
        assert not (tmp_path / "m").exists()

    def test_invalid_tables_are_refused(self, table, tmp_path):
        words = ("fit", table, "-o", tmp_path / "m")
        assert "--n-features" in refused(*words, "--n-features", "9")
        assert "column 'b2'" in refused(*words, "--label", "b2")
        table.write_text("a,b\n1,0.5\n2,0.25\n")
        assert "are fractions, not classes; name another column than 'b'" in refused(*words)

    def test_unwritable_outputs_and_inputs_as_outputs_are_refused(self, data, model, tmp_path):
        assert "there is no such folder" in refused("fit", data, "-o", tmp_path / "nowhere" / "m")
        assert "this is a folder" in refused("fit", tmp_path / "no data either", "-o", tmp_path)
        before = data.read_bytes(), model.read_bytes()
        assert "is read from" in refused("fit", data, "-o", data)
        for output in (data, model):
            assert "is read from" in refused("predict", model, data, "-o", output)
        assert (data.read_bytes(), model.read_bytes()) == before
        if os.path.exists("/dev/full"):
            assert "No space left on device" in refused("fit", data, "-o", "/dev/full")


class TestPredict:
    def test_labels_and_scores_equal_those_of_the_model(self, model, data, three, tmp_path):
        fitted = load(model)
        labels, scores = fitted.predict(X), fitted.decision_function(X)
        result = run("predict", model, data)
        assert (result.exit_code, result.stdout.split("\n")) == (0, [*map(str, labels), ""])
        assert result.stderr == f"accuracy {np.mean(labels == Y):.6g} ({np.sum(labels == Y)} of 60 rows)\n"
        assert run("predict", model, data, "-o", tmp_path / "out").stdout == ""
        assert (tmp_path / "out").read_text() == result.stdout
        rows = [line.split("\t") for line in run("predict", model, data, "--scores").stdout.splitlines()]
        assert np.allclose([float(score) for _, score in rows], scores, rtol=1e-12)
        found = json.loads(run("predict", model, data, "--json", "--scores").stdout)
        assert found["labels"] == labels.tolist()
        assert np.allclose(found["scores"], scores, rtol=1e-12)
        assert json.loads(run("predict", model, data, "--json").stdout) == {"labels": found["labels"]}
        run("fit", three, "-o", tmp_path / "m")  # a score for each of several classes
        label, *row = run("predict", tmp_path / "m", three, "--scores").stdout.splitlines()[0].split("\t")
        assert (len(row), int(label)) == (3, np.argmax([float(score) for score in row]))

    def test_table_columns_are_matched_by_name(self, table_model, table, data, tmp_path):
        result, new = run("predict", table_model, table), tmp_path / "new.csv"
        assert load(table_model).classes_.tolist() == ["no", "yes"]
        assert run("predict", table_model, data).stdout == result.stdout  # svmlight text has no names
        rows = "".join(f"p{k},{x[3]},{x[2]},{x[1]},{x[0]}\n" for k, x in enumerate(X))
        new.write_text("id,d,c,b,a\n" + rows)
        again = run("predict", table_model, new)
        assert (again.stdout, again.stderr) == (result.stdout, "")  # there are no labels
        assert "a check needs labels" in refused("check", table_model, new)
        assert "no label column 'question'" in refused("predict", table_model, table, "--label", "question")

    def test_unknown_labels_and_the_first_index(self, model, tmp_path):
        (tmp_path / "new").write_text("0 1:1\n0 1:-3 2:1\n")
        result = run("predict", model, tmp_path / "new")
        assert (result.stdout.split(), result.stderr[:16]) == (["1", "-1"], "accuracy unknown")
        dump_svmlight_file(X, Y, str(tmp_path / "zero"), zero_based=True)  # so do indices of new files
        run("fit", tmp_path / "zero", "-o", tmp_path / "m")
        (tmp_path / "new").write_text("1 1:1 2:1\n")
        score = float(run("predict", tmp_path / "m", tmp_path / "new", "--scores").stdout.split()[1])
        expected = load(tmp_path / "m").decision_function([[0.0, 1.0, 1.0, 0.0]])[0]
        assert score == pytest.approx(expected, rel=1e-12)

    def test_invalid_files_are_refused(self, model, data, tmp_path):
        (tmp_path / "wide").write_text("1 1:1\n1 2:1 5:1\n")
        for message, *words in (
            ("line 2: the index 5 is beyond the 4 features", model, tmp_path / "wide"),
            ("there is no such file", tmp_path / "m", data),
            ("there is no such file", model, tmp_path / "m"),
            ("this is a folder", tmp_path, data),
            ("this is not a model file", data, data),
            ("this is not a text file", model, model),
            ("--label names a column", model, data, "--label", "y"),
        ):
            assert message in refused("predict", *words)


class TestCheck:
    def test_bounds_are_recomputed_from_the_data_of_the_fit(self, model, data, table_model, table, tmp_path):
        result = run("check", model, data)
        assert result.stdout.startswith("verified: recomputed from the 60 rows")
        assert "<= best objective <=" in result.stdout
        facts = json.loads(run("check", model, data, "--json").stdout)
        assert (facts["verified"], facts["gap"] <= 1e-3) == (True, True)
        assert run("check", table_model, table).exit_code == 0
        dump_svmlight_file(X, -Y, str(tmp_path / "other"), zero_based=False)
        assert "made for other data" in refused("check", model, tmp_path / "other")

    @pytest.mark.parametrize(("bound", "factors"), [("lower", (1.01, 1.02)), ("upper", (0.98, 0.99))])
    def test_error_names_the_bound_that_fails(self, model, data, bound, factors):
        fitted = load(model)
        for name, factor in zip(("lower", "upper"), factors, strict=True):
            forged = getattr(fitted.certificate_, name) * factor
            object.__setattr__(fitted.certificate_, name, forged)
        save(fitted, model)
        assert f"the {bound} bound fails" in refused("check", model, data)
        result = run("check", model, data, "--json")
        assert (result.exit_code, json.loads(result.stdout)["verified"]) == (2, False)


class TestDemo:
    def test_demo_prints_and_draws_bounds(self, tmp_path, monkeypatch):
        pytest.importorskip("matplotlib")
        monkeypatch.chdir(tmp_path)
        result = run("demo")
        assert result.exit_code == 0
        for words in ("lower bound", "CERTIFIED", "<= best objective <=", "verified", "test accuracy: 0.9"):
            assert words in result.stdout
        assert (tmp_path / "demo.png").read_bytes().startswith(b"\x89PNG")
        assert run("demo", "--json", "--picture", "a.PDF").exit_code == 0
        assert (tmp_path / "a.PDF").read_bytes().startswith(b"%PDF")
        monkeypatch.setattr("maxmargin.cli.demo._data", pytest.fail)  # refused before the data are made
        assert "a picture is a .png, .pdf or .svg file" in refused("demo", "--picture", "x.foo")

    def test_without_matplotlib_no_picture_is_drawn(self, tmp_path, monkeypatch):
        monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
        result = run("demo", "--json", "--picture", tmp_path / "a.png")
        facts = json.loads(result.stdout)
        assert "pip install 'maxmargin[plot]'" in result.stderr
        assert (facts["status"], facts["verified"], facts["picture"]) == ("CERTIFIED", True, None)
        assert not (tmp_path / "a.png").exists()


class TestProcess:
    def python(self, code, *words):
        return subprocess.run(
            [sys.executable, "-c", code, *words], capture_output=True, text=True, check=True
        )

    def test_help_imports_no_numerical_package(self):
        code = "import sys; from maxmargin.cli import main\ntry: main()\n"
        code += "finally: print([name for name in ('numba', 'sklearn', 'numpy') if name in sys.modules])"
        assert self.python(code, "fit", "--help").stdout.splitlines()[-1] == "[]"

    def test_names_are_loaded_lazily_by_pickles_and_commands(self, tmp_path, model, data):
        everything = {}
        exec("from maxmargin import *", everything)
        assert all(everything[name] is getattr(maxmargin, name) for name in maxmargin.__all__)
        assert {*maxmargin.__all__, "__version__"} <= {*dir(maxmargin)}
        with pytest.raises(AttributeError, match="module 'maxmargin' has no attribute 'Magic'"):
            maxmargin.Magic  # noqa: B018
        fitted = maxmargin.MaxMarginClassifier(random_state=0).fit(X, Y)
        (tmp_path / "pickle").write_bytes(pickle.dumps((fitted, maxmargin.verify)))
        code = """
import pickle, sys, maxmargin
assert 'numba' not in sys.modules
model, verify = pickle.load(open(sys.argv[1], 'rb'))
assert type(model) is maxmargin.MaxMarginClassifier and verify is maxmargin.verify
from maxmargin.cli.app import app
app(sys.argv[2:], standalone_mode=False)
print([name for name in ('matplotlib', 'pyarrow.parquet') if name in sys.modules])"""
        printed = self.python(code, tmp_path / "pickle", "predict", model, data).stdout.splitlines()
        assert (len(printed), printed[-1]) == (61, "[]")

    @pytest.mark.skipif(not os.path.exists("/dev/fd"), reason="no /dev/fd")
    def test_standard_input_may_be_a_file_but_not_a_pipe(self, data, tmp_path):
        with open(data) as file:
            assert run("fit", f"/dev/fd/{file.fileno()}", "-o", tmp_path / "m").exit_code == 0
        pipe, end = os.pipe()
        message = "a pipe or device can be read only once"
        assert message in refused("fit", f"/dev/fd/{pipe}", "-o", tmp_path / "m")
        os.close(pipe)
        os.close(end)

    @pytest.mark.skipif(sys.platform == "win32", reason="needs a pseudo-terminal")
    def test_first_ctrl_c_saves_the_best_model_so_far(self, tmp_path):
        """The progress line is shown on a terminal; Ctrl-C after it ends the fit with a model."""
        path = tmp_path / "hard.npz"
        np.savez(path, X=RNG.normal(size=(2000, 100)), y=RNG.integers(0, 2, 2000))
        words = ["--algorithm", "dcd", "--loss", "hinge", "--C", "1e4", "--tol", "1e-14", "--max-time", "120"]
        words = [*COMMAND, "fit", path, "-o", tmp_path / "m", "--max-iter", "10000000", *words]
        terminal, end = os.openpty()
        environment = {**os.environ, "TERM": "xterm", "COLUMNS": "200"}
        process = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=end, text=True, env=environment)
        os.close(end)
        shown, sent, deadline = "", False, time.monotonic() + 90.0
        while process.poll() is None and time.monotonic() < deadline:
            if select.select([terminal], [], [], 0.1)[0]:
                with suppress(OSError):  # the other end is closed
                    shown += os.read(terminal, 4096).decode("utf-8", "replace")
            if not sent and "≤ objective ≤" in shown and " s left" in shown:
                process.send_signal(signal.SIGINT)
                sent = True
        printed = process.communicate(timeout=30)[0]
        os.close(terminal)
        assert (process.returncode, printed[:15]) == (3, "INTERRUPTED in "), shown
        assert load(tmp_path / "m").status_ is Status.INTERRUPTED

    def test_closed_output_pipe_causes_no_traceback(self, model, data):
        pipe, end = os.pipe()
        os.close(pipe)
        with os.fdopen(end, "w") as closed:
            words = [*COMMAND, "predict", model, data]
            done = subprocess.run(words, stdout=closed, stderr=subprocess.PIPE, text=True, check=False)
        assert "Traceback" not in done.stderr
        assert done.returncode != 0


class TestOnline:
    def test_online_fit_equals_partial_fit_on_the_rows(self, data, tmp_path):
        path = tmp_path / "m"
        result = run("fit", "--online", data, "-o", path, "--n-features", 4, "--C", 2.0)
        assert (result.exit_code, result.stderr) == (0, "")
        assert result.stdout.startswith("60 rows in ")
        assert "mistakes during the pass" in result.stdout
        model = OnlineMarginClassifier(C=2.0).partial_fit(csr_matrix(X), Y, classes=[-1, 1])
        assert np.array_equal(load(path).coef_, model.coef_)
        assert run("predict", path, data).stdout.split() == [str(label) for label in model.predict(X)]
        assert "a stream has no certificate" in refused("check", path, data)

    def test_features_are_hashed_when_the_width_is_unknown(self, data, tmp_path):
        path = tmp_path / "rows.svm.gz"
        path.write_bytes(gzip.compress(data.read_bytes()))
        words = ("--hashing", 64, "--json", "--classes", "-1,1,7", "--trail", "vote")
        facts = json.loads(run("fit", "--online", path, "-o", tmp_path / "m", *words).stdout)
        assert (facts["rows"], facts["features"], facts["classes"]) == (60, 64, [-1, 1, 7])
        rows = [{str(j + 1): v for j, v in enumerate(row) if v} for row in X.tolist()]
        model = OnlineMarginClassifier(hasher=64, trail="vote").partial_fit(rows, Y, classes=[-1, 1, 7])
        np.testing.assert_allclose(load(tmp_path / "m").coef_, model.coef_, rtol=1e-12)

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

    def test_invalid_streams_are_refused(self, data, table, tmp_path):
        one, words = tmp_path / "one.svm", ("fit", "-o", tmp_path / "m", "--online")
        for options, message in (
            ("--max-iter 3", "--max-iter does not apply with --online"),
            ("--algorithm mpu", "'mpu' cannot learn from a stream"),
            ("--n-features 4 --hashing 8", "leave out --n-features or --hashing"),
            ("--n-features 2", "line 1: the index 3 is beyond the 2 features"),
            ("--classes a,b", "--classes takes whole numbers"),
            ("--classes 1,2", "y holds -1, which is none of the classes announced"),
        ):
            assert message in refused(*words, data, *options.split())
        assert "reads svmlight text" in refused(*words, table)
        for text, message in (
            ("1 1:1\n1 2:1\n", "are all of class 1"),
            ("0.5 1:1\n1 2:1\n", "are fractions"),
        ):
            one.write_text(text)
            assert message in refused(*words, one)
        assert not (tmp_path / "m").exists()

    def test_concatenated_blocks_equal_the_file(self, data):
        for size in (50, 333, 1 << 22):
            blocks = list(svmlight.stream_svmlight(data, 4, size))
            assert np.array_equal(vstack([block.X for block in blocks]).toarray(), X)
            assert np.array_equal(np.concatenate([block.y for block in blocks]), Y)
            assert len(blocks) > 1 or size > 333
        data.write_text("1 1:1\n-1 0:1\n")  # an index 0 in the first block: indices count from 0
        (block,) = svmlight.stream_svmlight(data, 2)
        assert (block.first_index, block.X.toarray().tolist()) == (0, [[0.0, 1.0], [1.0, 0.0]])

    def test_errors_in_blocks_name_their_line(self, data):
        for line, width, message in (
            ("1 1:x\n", None, "line 51: the value 'x'"),
            ("1 0:1\n", 2, "line 51: the index 0 is below 1"),
            ("1 3:1\n", 2, "line 51: the index 3 is beyond the 2 features"),
            ("1 2:nan", 2, "line 51: the value of '2:nan' is not finite"),
        ):
            data.write_text("1 1:1\n" * 50 + line)
            with pytest.raises(DataError, match=message):
                list(svmlight.stream_svmlight(data, width, 64))
