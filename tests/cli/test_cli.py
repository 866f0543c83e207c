"""The command line: output, files written and exit codes."""

from __future__ import annotations

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
from pathlib import Path

import numpy as np
import pytest
from command import RNG, X, Y, refused, run
from scipy.sparse import csr_matrix
from sklearn.datasets import dump_svmlight_file
from typer.main import get_command

import maxmargin
from maxmargin import KernelMaxMarginClassifier, MaxMarginClassifier, OnlineMarginClassifier, Status, verify
from maxmargin.cli.app import app
from maxmargin.cli.compare import compare
from maxmargin.cli.fit import fit
from maxmargin.cli.options import errors_in_one_sentence, json_text
from maxmargin.cli.separate import separate
from maxmargin.io.model_file import load, save
from maxmargin.readers import DataError, svmlight

COMMAND = [sys.executable, "-c", "from maxmargin.cli import main; main()"]
COMMANDS = get_command(app).commands
THREE = np.digitize(X[:, 0], [-0.5, 0.5])


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
    assert run("--version").stdout == f"maxmargin {maxmargin.__version__}\n"
    shown = {option.name: option.show_default for option in COMMANDS["fit"].params}
    assert shown["loss"] == f"{linear['loss']}; with --kernel {kernel['loss']}"
    assert (shown["max_iter"], kernel["max_iter"]) == (f"{linear['max_iter']}; with --kernel no limit", -1)


REFUSED = {
    "fit data -o out --C -1": "C must be a positive number",
    "fit data -o out --n-features 2": "is beyond the 2 features",
    "fit data -o out --n-features 0": "--n-features must be at least 1, got 0",
    "fit data -o out --gamma 0.1": "--gamma applies only with --kernel",
    "fit data -o out --kernel precomputed": "--kernel precomputed needs",
    "fit table -o out --n-features 9": "--n-features",
    "fit table -o out --label b2": "column 'b2'",
    "fit data -o nowhere/out": "there is no such folder",
    "fit none -o folder": "this is a folder",
    "fit data -o data": "is read from",
    "fit --online table -o out --n-features 4": "reads svmlight text",
    "fit --online one -o out --n-features 4": "are all of class 1",
    "fit --online data -o out --n-features 4 --algorithm mpu": "'mpu' cannot learn from a stream",
    "fit --online data -o out": "give --n-features",
    "fit --online data -o out --n-features 2": "line 1: the index 3 is beyond the 2 features",
    "fit --online data -o out --n-features 4 --shuffle-buffer 5XB": "must be a size such as 512KB, 100MB or 2GB",
    "fit data -o out --shuffle-buffer 5MB": "need --online",
    "fit --online data -o out --n-features 4 --classes a,b": "--classes takes whole numbers",
    "fit --online data -o out --n-features 4 --classes 1,2": "is -1, none of the classes [1, 2]; name all",
    "predict model wide": "line 2: the index 5 is beyond the 4 features",
    "predict data data": "this is not a model file",
    "predict model model": "this is not a text file",
    "predict model data -o model": "is read from",
    "check model data --label y": "--label names a column",
    "check model other": "made for other data",
    "select one": "all rows are of class 1, and a selection needs 2 classes",
    "separate data --tol 0": "tol must be positive",
    "separate data --kernel precomputed": "use maxmargin.separate in Python",
    "separate data --kernel sigmoid --gamma 9 --coef0 -9": "not positive semidefinite",
    "export model -o out": "--to must be one of onnx, liblinear, libsvm, json",
    "export model -o out --to libsvm": "to_liblinear",
    "export model -o out --to json --labels 1,2": "leave it out",
    "import model -o out": "needs no import",
    "import data -o out": "no model of liblinear",
    "import data -o out --from onnx": "--from must be liblinear, libsvm or json",
    "import data -o out --from json --n-features 3": "--n-features is only for libsvm",
    "demo --picture x.foo": "a picture is a .png, .pdf or .svg file",
}


def test_invalid_input_is_refused_in_one_line(data, table, model, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    data.rename("data"), table.rename("table.csv"), model.rename("model"), Path("folder").mkdir()
    for name, text in (("wide", "1 1:1\n1 2:1 5:1\n"), ("one", "1 1:1\n")):
        Path(name).write_text(text)
    dump_svmlight_file(X, -Y, "other", zero_based=False)
    monkeypatch.setattr("maxmargin.cli.demo._data", pytest.fail)  # refused before there are data
    before = Path("data").read_bytes(), Path("model").read_bytes()
    for words, message in REFUSED.items():
        assert message in refused(words.replace("table", "table.csv")), words
        assert not Path("out").exists()
    assert before == (Path("data").read_bytes(), Path("model").read_bytes())
    if os.path.exists("/dev/full"):
        assert "No space left on device" in refused("fit data -o /dev/full")
    with pytest.raises(BrokenPipeError), errors_in_one_sentence():
        raise BrokenPipeError
    for words in ("fit data", "fit data -o m --C much", "unheard-of"):  # typer's own messages
        assert run(words).exit_code == 2


class TestFit:
    def test_fit_writes_a_model_with_its_certificate(self, data, tmp_path):
        result = run("fit", data, "-o", tmp_path / "m", "--seed", "0")
        fitted = load(tmp_path / "m")
        assert (result.exit_code, result.stderr, fitted.status_) == (0, "", Status.CERTIFIED)
        assert result.stdout.startswith(f"CERTIFIED in {fitted.n_iter_} round")
        assert result.stdout.splitlines()[1].startswith("solved by exact: p = 2")
        assert str(fitted.certificate_) in result.stdout
        assert verify(fitted, X, Y).gap <= 1e-3
        result = run("fit", data, "-o", tmp_path / "m", "--quiet", "--no-intercept", "--n-features", 9)
        assert (result.exit_code, result.output) == (0, "")
        assert (load(tmp_path / "m").intercept_[0], load(tmp_path / "m").n_features_in_) == (0.0, 9)

    @pytest.mark.parametrize(
        "options",
        [
            {"C": 0.5, "loss": "hinge", "tol": 0.01, "algorithm": "mpu", "intercept": "augmented", "max_iter": 77,
             "intercept_scaling": 2.0, "class_weight": "balanced", "max_time": 60.0, "n_jobs": 1},
            {"p": 1.5, "norm_power": 1},
            {"p": "log"},
            {"kernel": "poly", "degree": 2, "coef0": 1.5, "gamma": 0.3, "cache_size": 10, "tol": 1e-5},
        ],
    )  # fmt: skip
    def test_options_set_parameters_of_the_estimator(self, data, tmp_path, options):
        words = [word for name, value in options.items() for word in (f"--{name.replace('_', '-')}", value)]
        result = run("fit", data, "-o", tmp_path / "m", *words, "--seed", 5)
        kind = KernelMaxMarginClassifier if "kernel" in options else MaxMarginClassifier
        fitted = load(tmp_path / "m")
        expected = kind().get_params() | options
        assert fitted.get_params() == expected | ({"random_state": 5} if "random_state" in expected else {})
        assert run("check", tmp_path / "m", data).exit_code == result.exit_code

    def test_json_output_describes_the_fit(self, data, tmp_path):
        facts = json.loads(run("fit", data, "-o", tmp_path / "m", "--json").stdout)
        assert (facts["status"], facts["tol"], facts["model"]) == ("CERTIFIED", 1e-3, str(tmp_path / "m"))
        assert (facts["rows"], facts["features"], facts["classes"]) == (60, 4, [-1, 1])
        bounds = facts["bounds"][0]
        assert bounds["lower"] <= bounds["upper"] <= 1.001 * bounds["lower"]
        problem = {"loss": "squared_hinge", "C": 1.0, "p": 2.0, "power": 2, "intercept": "free"}
        assert facts["problem"] == problem | {"kernel": "linear"}
        # the stages of several classes are listed once; infinity is a string
        dump_svmlight_file(X, THREE, str(tmp_path / "three"))
        facts = json.loads(run("fit", tmp_path / "three", "-o", tmp_path / "m", "--json").stdout)
        assert [part["class"] for part in facts["bounds"]] == [0, 1, 2]
        assert [stage["algorithm"] for stage in facts["stages"]] == ["exact"]
        result = run("fit", data, "-o", tmp_path / "m", "--json", "--C", "inf")
        facts = json.loads(result.stdout, parse_constant=pytest.fail)
        assert (result.exit_code, facts["problem"]["C"], facts["status"]) == (3, "inf", "INSEPARABLE")
        numbers = {"bounds": [{"lower": -np.inf, "upper": np.float64("nan"), "rows": np.int64(3)}]}
        assert json.loads(json_text(numbers)) == {"bounds": [{"lower": "-inf", "upper": "nan", "rows": 3}]}

    def test_fit_and_check_above_the_tolerance_exit_with_3(self, data, tmp_path):
        words = ("--algorithm", "perceptron", "--max-iter", "1", "--tol", "1e-9")
        result, checked = run("fit", data, "-o", tmp_path / "m", *words), run("check", tmp_path / "m", data)
        assert (result.exit_code, checked.exit_code, " in 1 round, " in result.stdout) == (3, 3, True)


class TestModels:
    def test_labels_and_scores_equal_those_of_the_model(self, model, data, tmp_path):
        fitted = load(model)
        labels, scores = fitted.predict(X), fitted.decision_function(X)
        result = run("predict", model, data)
        assert (result.exit_code, result.stdout.split("\n")) == (0, [*map(str, labels), ""])
        assert result.stderr == f"accuracy {np.mean(labels == Y):.6g} ({np.sum(labels == Y)} of 60 rows)\n"
        assert run("predict", model, data, "-o", tmp_path / "out").stdout == ""
        assert (tmp_path / "out").read_text() == result.stdout
        found = json.loads(run("predict", model, data, "--json", "--scores").stdout)
        assert found["labels"] == labels.tolist()
        assert np.allclose(found["scores"], scores, rtol=0.0, atol=1e-14)  # sums of four
        save(MaxMarginClassifier().fit(X, THREE), tmp_path / "m")  # a score for each of several classes
        label, *row = run("predict", tmp_path / "m", data, "--scores").stdout.splitlines()[0].split("\t")
        assert (len(row), int(label)) == (3, np.argmax([float(score) for score in row]))

    def test_first_index_of_the_fit_and_unknown_labels(self, tmp_path):
        new, model = tmp_path / "new", tmp_path / "m"
        dump_svmlight_file(X, Y, str(new), zero_based=True)
        run("fit", new, "-o", model)
        new.write_text("0 1:1 2:1\n0 1:1 2:1\n")  # indices count from 0 here as well
        result = run("predict", model, new, "--scores")
        expected = load(model).decision_function([[0.0, 1.0, 1.0, 0.0]])[0]
        assert float(result.stdout.split()[1]) == pytest.approx(expected, rel=0.0, abs=1e-14)
        assert result.stderr.startswith("accuracy unknown")

    def test_bounds_are_recomputed_from_the_data(self, model, data, table_model, table):
        result = run("check", model, data)
        assert result.stdout.startswith("verified: recomputed from the 60 rows")
        assert json.loads(run("check", model, data, "--json").stdout)["verified"] is True
        assert run("check", table_model, table).exit_code == 0

    @pytest.mark.parametrize(("bound", "lower", "upper"), [("lower", 1.01, 1.02), ("upper", 0.98, 0.99)])
    def test_error_names_the_bound_that_fails(self, model, data, bound, lower, upper):
        fitted = load(model)
        object.__setattr__(fitted.certificate_, "lower", fitted.certificate_.lower * lower)
        object.__setattr__(fitted.certificate_, "upper", fitted.certificate_.upper * upper)
        save(fitted, model)
        assert f"the {bound} bound fails" in refused("check", model, data)
        assert json.loads(run("check", model, data, "--json").stdout)["verified"] is False


def test_demo_prints_and_draws_bounds(data, tmp_path, monkeypatch):
    pytest.importorskip("matplotlib")
    monkeypatch.chdir(tmp_path)
    result = run("demo")
    assert result.exit_code == 0
    for words in ("lower bound", "CERTIFIED", "<= best objective <=", "verified", "test accuracy: 0.9"):
        assert words in result.stdout
    assert Path("demo.png").read_bytes().startswith(b"\x89PNG")
    assert run("demo", "--json", "--picture", "a.PDF").exit_code == 0
    assert Path("a.PDF").read_bytes().startswith(b"%PDF")
    run("fit", data, "-o", "m", "--picture", "fit.png")
    assert Path("fit.png").read_bytes().startswith(b"\x89PNG")
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    result = run("demo", "--json", "--picture", "b.png")
    assert "pip install 'maxmargin[plot]'" in result.stderr
    assert (json.loads(result.stdout)["picture"], Path("b.png").exists()) == (None, False)


class TestProcess:
    def python(self, code, *words):
        return subprocess.check_output([sys.executable, "-c", code, *words], text=True).splitlines()

    def test_help_imports_no_numerical_package(self):
        code = "import sys; from maxmargin.cli import main\ntry: main()\n"
        code += "finally: print([name for name in ('numba', 'sklearn', 'numpy') if name in sys.modules])"
        assert self.python(code, "fit", "--help")[-1] == "[]"

    def test_names_are_loaded_lazily_by_pickles_and_commands(self, tmp_path, model, data):
        assert {*maxmargin.__all__, "__version__"} <= {*dir(maxmargin)}
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
        printed = self.python(code, tmp_path / "pickle", "predict", model, data)
        assert (len(printed), printed[-1]) == (61, "[]")

    @pytest.mark.skipif(not os.path.exists("/dev/fd"), reason="no /dev/fd")
    def test_standard_input_may_be_a_file_or_a_pipe(self, data, tmp_path):
        with open(data) as file:
            assert run("fit", f"/dev/fd/{file.fileno()}", "-o", tmp_path / "m").exit_code == 0
        with subprocess.Popen(["cat", data], stdout=subprocess.PIPE) as process:
            result = run("fit", f"/dev/fd/{process.stdout.fileno()}", "-o", tmp_path / "p")
        assert result.exit_code == 0
        assert np.array_equal(load(tmp_path / "p").coef_, load(tmp_path / "m").coef_)

    @pytest.mark.skipif(sys.platform == "win32", reason="needs a pseudo-terminal")
    @pytest.mark.parametrize(
        ("name", "ignored"), [("SIGINT", False), ("SIGTERM", False), ("SIGTERM", True), ("SIGHUP", False)]
    )
    def test_first_signal_saves_the_best_model_so_far(self, tmp_path, name, ignored):
        """The progress line is shown on a terminal; a signal after it ends the fit with a model.

        A terminal that is closed sends SIGHUP, and nothing can be written to it any more. Ctrl-C is `ignored` in
        background jobs of scripts.
        """
        if signal.getsignal(getattr(signal, name)) is signal.SIG_IGN:
            pytest.skip(f"the tests ignore {name}, as under nohup")
        np.savez(tmp_path / "hard", X=RNG.normal(size=(2000, 100)), y=RNG.integers(0, 2, 2000))
        options = "--algorithm mpu --loss hinge --C 1e4 --tol 1e-14 --max-time 99 --max-iter 9999"
        words = [*COMMAND, *f"fit {tmp_path / 'hard.npz'} -o {tmp_path / 'm'} {options}".split()]
        if ignored:
            words = ["sh", "-c", "trap '' INT; exec \"$@\"", "sh", *words]
        terminal, end = os.openpty()
        environment = {**os.environ, "TERM": "xterm", "COLUMNS": "200"}
        shown_there = {"stdout": end if name == "SIGHUP" else subprocess.PIPE, "stderr": end}
        process = subprocess.Popen(words, text=True, env=environment, **shown_there)
        os.close(end)
        shown, deadline = "", time.monotonic() + 90.0
        while process.poll() is None and time.monotonic() < deadline:
            if select.select([terminal], [], [], 0.1)[0]:
                with suppress(OSError):  # the other end is closed
                    shown += os.read(terminal, 4096).decode("utf-8", "replace")
            if "≤ objective ≤" in shown and " s left" in shown and "\0" not in shown:
                process.send_signal(getattr(signal, name))
                shown += "\0"
                if name == "SIGHUP":
                    break
        if name == "SIGHUP":
            os.close(terminal)
        printed = process.communicate(timeout=60)[0]
        if name != "SIGHUP":
            os.close(terminal)
            assert printed.startswith("INTERRUPTED in "), shown
        assert process.returncode == 3, shown
        assert load(tmp_path / "m").status_ is Status.INTERRUPTED


class TestOnline:
    def test_online_fit_equals_partial_fit_on_the_rows(self, data, tmp_path):
        path = tmp_path / "m"
        in_order = ("--n-features", 4, "--C", 2.0, "--shuffle-buffer", 0)
        result = run("fit", "--online", data, "-o", path, *in_order)
        assert (result.stderr, result.stdout[:11]) == ("", "60 rows in ")
        model = OnlineMarginClassifier(C=2.0).partial_fit(csr_matrix(X), Y, classes=[-1, 1])
        assert np.array_equal(load(path).coef_, model.coef_)
        assert run("predict", path, data).stdout.split() == [str(label) for label in model.predict(X)]
        assert "a stream has no certificate" in refused("check", path, data)

    def test_ctrl_c_in_a_stream_saves_the_model_so_far(self, data, tmp_path, monkeypatch):
        def blocks(path, n_features):
            yield from original(path, n_features, size=200)  # several blocks
            raise KeyboardInterrupt

        original = svmlight.stream_svmlight
        monkeypatch.setattr(svmlight, "stream_svmlight", blocks)
        words = ("--classes", "-1,1", "--n-features", 4, "--C", 2.0, "--shuffle-buffer", 0)
        result = run("fit", "--online", data, "-o", tmp_path / "m", *words)
        assert (result.exit_code, load(tmp_path / "m").n_seen_) == (3, 60)
        assert "stopped before the end" in result.stdout
        model = OnlineMarginClassifier(C=2.0).partial_fit(csr_matrix(X), Y, classes=[-1, 1])
        np.testing.assert_allclose(load(tmp_path / "m").coef_, model.coef_, rtol=1e-12)

    def test_first_index_and_faults_of_blocks(self, data):
        data.write_text("1 1:1\n-1 0:1\n")  # an index 0 in the first block: indices count from 0
        (block,) = svmlight.stream_svmlight(data, 2)
        assert (block.first_index, block.X.toarray().tolist()) == (0, [[0.0, 1.0], [1.0, 0.0]])
        data.write_text("1 1:1\n" * 50 + "1 3:1\n")
        with pytest.raises(DataError, match="line 51: the index 3"):
            list(svmlight.stream_svmlight(data, 2, 64))
