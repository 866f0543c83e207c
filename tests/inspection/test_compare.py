"""Comparison of algorithms on one problem: records, reasons of refusal, table, CSV and plot."""

from __future__ import annotations

import csv
import inspect
import json
import math
import sys
from itertools import pairwise

import numpy as np
import pytest
import scipy.sparse as sp
from oracle import optimum
from sklearn.datasets import dump_svmlight_file
from typer.testing import CliRunner

from maxmargin import PUMMA, MaxMarginClassifier, Perceptron, Problem, Status, compare
from maxmargin.algorithms import ALGORITHMS
from maxmargin.cli.app import app
from maxmargin.cli.compare import compare as command
from maxmargin.inspection.compare import COLUMNS

RNG = np.random.default_rng(0)
X = np.round(RNG.normal(size=(60, 3)), 3)
NOISY = np.where(X[:, 0] + 0.5 * RNG.normal(size=60) > 0.0, 1, -1)
SEPARABLE = np.where(X[:, 0] > 0.0, 1, -1)


@pytest.mark.parametrize(
    ("loss", "C"),
    [("hinge", 0.7), pytest.param("squared_hinge", 0.7, marks=pytest.mark.slow), ("hinge", np.inf)],
)
def test_bounds_of_every_record_enclose_the_optimum(loss, C):
    """All algorithms on one problem: bounds of each report and values of the returned solutions."""
    y = NOISY if np.isfinite(C) else SEPARABLE
    exact = optimum(Problem(loss, C), X, y.astype(float), np.ones(60))
    best, error = float(exact.lower), 1e-9 + float(exact.e)
    found = compare(X, y, C=C, loss=loss, max_iter=30, random_state=0)
    assert set(found.refused) | {entry.algorithm for entry in found.entries} == set(ALGORITHMS)
    assert not set(found.refused) & {entry.algorithm for entry in found.entries}
    for record in found.records():
        assert record["lower"] <= best * (1.0 + error)
        assert record["upper"] >= best * (1.0 - error)
        if np.isfinite(C):
            assert record["objective"] == record["upper"]
        else:
            assert record["margin"] == record["lower"]
            if record["margin"] > 0.0:
                assert record["objective"] == pytest.approx(0.5 / record["margin"] ** 2)
    for entry in found.entries:
        assert entry.rounds == len(entry.history) <= 30
        assert entry.updates == entry.history[-1].steps
        counters = [(r.steps, r.presentations, r.seconds) for r in entry.history]
        assert all(a[k] <= b[k] for a, b in pairwise(counters) for k in range(3))
        assert entry.lower <= best * (1.0 + error)
        assert entry.upper >= best * (1.0 - error)
    dcd = found.entries[0]
    assert dcd.algorithm == "dcd"
    assert dcd.status is Status.CERTIFIED


def test_compared_algorithms_run_without_the_exact_step():
    found = compare(X, NOISY, ["dcd", "mpu", "perceptron"], random_state=0)
    for entry in found.entries:
        assert {report.stage for report in entry.history} == {entry.algorithm}


def test_soft_margin_is_the_reciprocal_norm_of_w():
    found = compare(X, NOISY, ["dcd"], tol=1e-9, max_iter=10**4, loss="hinge", random_state=0).entries[0]
    w = MaxMarginClassifier(loss="hinge", tol=1e-9, random_state=0).fit(X, NOISY).coef_
    assert found.margin == pytest.approx(1.0 / np.linalg.norm(w), rel=1e-4)


def test_results_do_not_depend_on_storage_order_or_label_type():
    first = compare(X, NOISY, ["dcd", "mpu"], random_state=3)
    again = compare(sp.csr_matrix(X), NOISY.astype(str), ["mpu", "dcd"], random_state=3)

    def facts(found, name):
        return [
            (r.round, r.presentations, r.steps, pytest.approx(r.lower), pytest.approx(r.upper))
            for entry in found.entries
            if entry.algorithm == name
            for r in entry.history
        ]

    assert facts(first, "dcd") == facts(again, "dcd")
    assert facts(first, "mpu") == facts(again, "mpu")


def test_bounds_hold_for_weighted_samples():
    weights = RNG.integers(0, 3, 60).astype(float)
    exact = optimum(Problem("squared_hinge", 1.0), X, NOISY.astype(float), weights)
    found = compare(X, NOISY, ["dcd", "mpu"], sample_weight=weights, tol=1e-6, random_state=0)
    for entry in found.entries:
        assert entry.lower <= float(exact.upper)
        assert entry.upper >= float(exact.lower)


def test_table_lists_results_and_reasons_of_refusal():
    found = compare(X, NOISY, ["dcd", PUMMA(delta=0.5), "perceptron"], loss="hinge", random_state=0)
    lines = found.table().splitlines()
    assert lines[0].split() == [
        "algorithm",
        "status",
        "margin",
        "objective",
        "at",
        "least",
        "gap",
        "updates",
        "seconds",
    ]
    assert lines[1].split()[:2] == ["dcd", "CERTIFIED"]
    assert lines[2:] == [
        'pumma(delta=0.5): it does not solve this problem; it does with loss="squared_hinge" or C=inf',
        'perceptron: it does not solve this problem; it does with loss="squared_hinge" or C=inf',
    ]
    hard = compare(X, SEPARABLE, ["dcd", Perceptron(b=0.5)], C=np.inf, random_state=0).table().splitlines()
    assert hard[0].split() == [
        "algorithm",
        "status",
        "margin",
        "at",
        "most",
        "objective",
        "gap",
        "updates",
        "seconds",
    ]
    assert hard[2].startswith("perceptron(b=0.5)  CONVERGED")


def test_each_class_is_compared_as_its_own_problem():
    y = np.digitize(X[:, 0], [-0.5, 0.5])
    found = compare(X, y, ["dcd", "mpu"], random_state=0)
    assert [(entry.algorithm, entry.label) for entry in found.entries] == [
        (name, k) for name in ("dcd", "mpu") for k in range(3)
    ]
    for k in range(3):
        signs = np.where(y == k, 1.0, -1.0)
        best = float(optimum(Problem("squared_hinge", 1.0), X, signs, np.ones(60)).lower)
        for entry in found.entries:
            if entry.label == k:
                assert entry.lower <= best * (1.0 + 1e-9)
                assert entry.upper >= best * (1.0 - 1e-9)
    assert found.table().splitlines()[0].split()[:3] == ["algorithm", "class", "status"]
    assert {record["class"] for record in found.records()} == {0, 1, 2}


def test_interrupted_comparison_keeps_finished_records():
    reports = []

    def stop(report):
        reports.append(report)
        return len(reports) == 2

    found = compare(X, NOISY, ["perceptron", "dcd"], callback=stop, random_state=0)
    assert [entry.status for entry in found.entries] == [Status.INTERRUPTED]
    assert found.refused == {"dcd": "not run: the comparison was interrupted"}
    assert not found.certified


def test_csv_holds_every_report_and_is_written_atomically(tmp_path):
    found = compare(X, NOISY, ["dcd", PUMMA(delta=0.1, halving=False)], random_state=0)
    path = tmp_path / "reports.csv"
    path.write_text("old")
    found.to_csv(path)
    with open(path, newline="") as file:
        rows = list(csv.DictReader(file))
    assert tuple(rows[0]) == COLUMNS
    assert len(rows) == sum(len(entry.history) for entry in found.entries)
    for row, record in zip(rows, found.records(), strict=True):
        assert row["algorithm"] == record["algorithm"]
        assert row["class"] == ""
        for name in ("lower", "upper", "gap", "margin", "objective", "seconds"):
            assert float(row[name]) == record[name]
    assert list(tmp_path.iterdir()) == [path]
    with pytest.raises(FileNotFoundError):
        found.to_csv(tmp_path / "nowhere" / "a.csv")


@pytest.mark.parametrize(
    ("algorithms", "parameters", "words"),
    [
        (["dcd", "dcd"], {}, "algorithms must not hold the same one twice; got 'dcd' twice."),
        ([], {}, "algorithms must hold at least one name or rule object."),
        (["pegasus"], {}, "algorithm must be 'auto', one of 'dcd', "),
        ([3], {}, "algorithm must be a name or a rule object such as MPU(); got 3."),
        (["dcd"], {"C": -1.0}, "C must be a positive number"),
        (
            ["perceptron"],
            {"loss": "hinge"},
            "none of the algorithms solves this problem (perceptron: it does not solve this problem; it does with "
            'loss="squared_hinge" or C=inf).',
        ),
    ],
)
def test_invalid_comparisons_are_refused(algorithms, parameters, words):
    with pytest.raises(ValueError, match=r"algorithm|C must") as error:
        compare(X, NOISY, algorithms, **parameters)
    assert str(error.value).startswith(words)


def test_unused_parameters_are_refused():
    with pytest.raises(TypeError, match="no use for 'n_jobs'"):
        compare(X, NOISY, ["dcd"], n_jobs=2)
    with pytest.raises(TypeError, match="unexpected keyword argument 'tolerance'"):
        compare(X, NOISY, ["dcd"], tolerance=1e-3)


class TestPicture:
    @pytest.fixture(autouse=True)
    def close_figures(self):
        matplotlib = pytest.importorskip("matplotlib")
        matplotlib.use("Agg")
        yield
        import matplotlib.pyplot as plt

        plt.close("all")

    def test_plotted_margins_stay_below_the_bound(self):
        found = compare(X, SEPARABLE, ["dcd", "perceptron", PUMMA()], C=np.inf, random_state=0)
        display = found.plot()
        assert list(display.lines_) == ["dcd", "perceptron", "pumma"]
        for entry in found.entries:
            left, right = display.lines_[entry.algorithm]
            reached = [(r.steps, r.seconds, r.lower) for r in entry.history]
            shown = left.get_ydata()
            assert np.nanmax(shown) <= display.best * (1.0 + 1e-12)
            assert [m for _, _, m in reached if m > 0.0] == shown[np.isfinite(shown)].tolist()
            assert np.array_equal(right.get_xdata(), [t for _, t, _ in reached])
        left, right = display.axes_
        assert [left.get_xlabel(), left.get_ylabel()] == ["updates of the weights", "margin"]
        assert right.get_xlabel() == "time (s)"
        assert left.get_title(loc="left").startswith("hard margin: no margin is above ")

    def test_plotted_objectives_are_relative_distances_from_the_best_bound(self):
        found = compare(X, NOISY, ["dcd", "mpu"], loss="hinge", random_state=0)
        display = found.plot()
        assert display.best == max(entry.lower for entry in found.entries)
        shown = display.lines_["mpu"][0].get_ydata()
        last = found.entries[1].history[-1].upper
        assert shown[-1] == pytest.approx((last - display.best) / display.best)
        display.figure_.canvas.draw()

    def test_plot_draws_one_class_into_given_axes(self):
        import matplotlib.pyplot as plt

        y = np.digitize(X[:, 0], [-0.5, 0.5])
        found = compare(X, y, ["dcd"], random_state=0)
        axes = plt.subplots(1, 2)[1]
        display = found.plot(axes, label=1)
        assert display.axes_[0] is axes[0]
        assert "class 1 against the rest" in axes[0].get_title(loc="left").replace("\n", " ")
        with pytest.raises(ValueError, match=r"label must be one of the classes \[0, 1, 2\]; got 7"):
            found.plot(label=7)

    def test_plot_without_matplotlib_raises_import_error(self, monkeypatch):
        found = compare(X, NOISY, ["dcd"], random_state=0)
        monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)
        with pytest.raises(ImportError, match="Pictures need matplotlib"):
            found.plot()


class TestCommand:
    def test_defaults_equal_those_of_the_estimator(self):
        estimator = MaxMarginClassifier().get_params()
        options = inspect.signature(command).parameters
        shared = set(options) & set(estimator)
        assert shared >= {"C", "loss", "p", "norm_power", "tol", "fit_intercept", "intercept", "max_iter"}
        for name in shared:
            assert options[name].default == estimator[name], name

    @pytest.fixture
    def data(self, tmp_path):
        path = tmp_path / "train.svm"
        dump_svmlight_file(X, NOISY, str(path), zero_based=False)
        return path

    def run(self, *arguments):
        result = CliRunner().invoke(app, ["compare", *map(str, arguments)])
        assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
        return result

    def test_command_prints_the_table_and_writes_csv_and_picture(self, data, tmp_path):
        pytest.importorskip("matplotlib")
        out, picture = tmp_path / "a.csv", tmp_path / "a.png"
        result = self.run(
            data, "--algorithms", "dcd, mpu", "--csv", out, "--picture", picture, "--seed", 0, "--tol", 1e-4
        )
        assert result.exit_code == 0, result.output
        lines = result.stdout.splitlines()
        assert [line.split()[:2] for line in lines[1:]] == [["dcd", "CERTIFIED"], ["mpu", "CERTIFIED"]]
        found = compare(X, NOISY, ["dcd", "mpu"], tol=1e-4, random_state=0)
        with open(out, newline="") as file:
            rows = list(csv.DictReader(file))
        assert [int(row["updates"]) for row in rows] == [record["updates"] for record in found.records()]
        assert picture.read_bytes().startswith(b"\x89PNG")
        assert sorted(tmp_path.iterdir()) == sorted([data, out, picture])

    def test_command_above_the_tolerance_exits_with_3(self, data):
        result = self.run(data, "--algorithms", "dcd,perceptron,pegasos", "--max-iter", 3, "--seed", 0)
        if "pegasos" in ALGORITHMS:
            assert result.exit_code == 3, result.output
            assert result.stdout.splitlines()[-1].startswith(
                "pegasos: it does not solve this problem; it does with"
            )

    def test_json_output_is_one_object(self, data):
        result = self.run(
            data, "--algorithms", "dcd,perceptron", "--json", "--C", "inf", "--seed", 0, "--max-iter", 5
        )
        facts = json.loads(result.stdout)
        assert facts["problem"]["C"] == "inf"
        assert [entry["algorithm"] for entry in facts["algorithms"]] == ["dcd", "perceptron"]
        assert facts["refused"] == {}
        for entry in facts["algorithms"]:
            assert entry["class"] is None
            assert entry["margin"] == entry["lower"]
            assert math.isfinite(entry["seconds"])

    @pytest.mark.parametrize(
        ("arguments", "words"),
        [
            (["--algorithms", "dcd,nix"], "algorithm must be 'auto', one of 'dcd'"),
            (
                ["--algorithms", "pumma", "--loss", "hinge"],
                "none of the algorithms solves this problem (pumma: ",
            ),
            (["--picture", "a.gif"], "a.gif: a picture is a .png, .pdf or .svg"),
            (["--csv", "nowhere/a.csv"], "there is no such folder"),
            (["--csv", "a.png", "--picture", "a.png"], "a.png: --csv and --picture name the same file"),
            (["--label", "y"], "--label names a column"),
        ],
    )
    def test_invalid_input_gives_a_one_line_error_and_writes_no_file(
        self, data, tmp_path, monkeypatch, arguments, words
    ):
        monkeypatch.chdir(tmp_path)
        result = self.run(data, *arguments)
        assert result.exit_code == 2
        assert result.stderr.startswith("maxmargin: ")
        assert result.stderr.count("\n") == 1
        assert words in result.stderr
        assert list(tmp_path.iterdir()) == [data]

    def test_picture_without_matplotlib_is_refused(self, data, tmp_path, monkeypatch):
        monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
        result = self.run(data, "--picture", tmp_path / "a.png")
        assert result.exit_code == 2
        assert "pip install 'maxmargin[plot]'" in result.stderr

    def test_csv_over_the_data_file_is_refused(self, data):
        before = data.read_bytes()
        assert self.run(data, "--csv", data).exit_code == 2
        assert data.read_bytes() == before
