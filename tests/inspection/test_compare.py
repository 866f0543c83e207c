"""Comparison of algorithms on one problem: records, reasons of refusal, table, CSV and plot."""

from __future__ import annotations

import csv
import json
import sys
from itertools import pairwise

import numpy as np
import pytest
import scipy.sparse as sp
from command import refused, run
from oracle import optimum
from sklearn.datasets import dump_svmlight_file

from maxmargin import PUMMA, MaxMarginClassifier, Perceptron, Problem, Status, compare
from maxmargin.algorithms import ALGORITHMS
from maxmargin.inspection.compare import COLUMNS

RNG = np.random.default_rng(0)
X = np.round(RNG.normal(size=(60, 3)), 3)
NOISY = np.where(X[:, 0] + 0.5 * RNG.normal(size=60) > 0.0, 1, -1)
SEPARABLE = np.where(X[:, 0] > 0.0, 1, -1)
THREE = np.digitize(X[:, 0], [-0.5, 0.5])
SOME = ["dcd", "mpu", "perceptron", "pumma", "newton", "interior-point"]
CASES = [("squared_hinge", 0.7), ("hinge", 0.7), ("hinge", np.inf)]


@pytest.mark.parametrize("names", [SOME, pytest.param(list(ALGORITHMS), marks=pytest.mark.slow)])
@pytest.mark.parametrize(("loss", "C"), CASES)
def test_bounds_of_every_record_enclose_the_optimum(loss, C, names):
    y = NOISY if np.isfinite(C) else SEPARABLE
    weights = 1.0 + np.arange(60) % 2 if np.isfinite(C) else np.ones(60)
    exact = optimum(Problem(loss, C), X, y.astype(float), weights)
    best, error = float(exact.lower), 1e-9 + float(exact.e)
    found = compare(X, y, names, C=C, loss=loss, max_iter=30, sample_weight=weights, random_state=0)
    assert sorted([*found.refused, *(entry.algorithm for entry in found.entries)]) == sorted(names)
    for record in found.records():
        assert record["lower"] * (1.0 - error) <= best <= record["upper"] * (1.0 + error)
        if np.isfinite(C):
            assert record["objective"] == record["upper"]
        elif record["margin"] > 0.0:
            assert record["margin"] == record["lower"]
            assert record["objective"] == pytest.approx(0.5 / record["margin"] ** 2)
    for entry in found.entries:
        assert entry.rounds == len(entry.history) <= 30
        assert entry.updates == entry.history[-1].steps
        counters = [(r.steps, r.presentations, r.seconds) for r in entry.history]
        assert all(a[k] <= b[k] for a, b in pairwise(counters) for k in range(3))
        assert {report.stage for report in entry.history} == {entry.algorithm}  # without the exact step
        assert entry.lower * (1.0 - error) <= best <= entry.upper * (1.0 + error)
    assert found.entries[0].status is Status.CERTIFIED


def test_soft_margin_is_the_reciprocal_norm_of_w():
    found = compare(X, NOISY, ["dcd"], tol=1e-9, max_iter=10**4, loss="hinge", random_state=0).entries[0]
    w = MaxMarginClassifier(loss="hinge", tol=1e-9, random_state=0).fit(X, NOISY).coef_
    assert found.margin == pytest.approx(1.0 / np.linalg.norm(w), rel=1e-4)  # of two gaps of 1e-9


def test_results_do_not_depend_on_storage_order_or_label_type():
    first = compare(X, NOISY, ["dcd", "mpu"], random_state=3)
    again = compare(sp.csr_matrix(X), NOISY.astype(str), ["mpu", "dcd"], random_state=3)
    for name in ("dcd", "mpu"):
        (one,), (two,) = ([e for e in found.entries if e.algorithm == name] for found in (first, again))
        steps = [[(r.round, r.presentations, r.steps) for r in entry.history] for entry in (one, two)]
        assert steps[0] == steps[1]
        assert (one.lower, one.upper) == pytest.approx((two.lower, two.upper))


def test_table_lists_results_and_reasons_of_refusal():
    found = compare(X, NOISY, ["dcd", PUMMA(delta=0.5), "perceptron"], loss="hinge", random_state=0)
    lines = found.table().splitlines()
    assert " ".join(lines[0].split()) == "algorithm status margin objective at least gap updates seconds"
    assert lines[1].split()[:2] == ["dcd", "CERTIFIED"]
    assert [line.split(":")[0] for line in lines[2:]] == ["pumma(delta=0.5)", "perceptron"]
    assert all('with loss="squared_hinge" or C=inf' in line for line in lines[2:])
    hard = compare(X, SEPARABLE, ["dcd", Perceptron(b=0.5)], C=np.inf, random_state=0).table().splitlines()
    assert " ".join(hard[0].split()) == "algorithm status margin at most objective gap updates seconds"
    assert hard[2].startswith("perceptron(b=0.5)  CONVERGED")


def test_each_class_is_compared_as_its_own_problem():
    found = compare(X, THREE, ["dcd", "mpu"], random_state=0)
    pairs = [(entry.algorithm, entry.label) for entry in found.entries]
    assert pairs == [(name, k) for name in ("dcd", "mpu") for k in range(3)]
    for entry in found.entries:
        best = optimum(
            Problem("squared_hinge", 1.0), X, np.where(entry.label == THREE, 1.0, -1.0), np.ones(60)
        )
        assert entry.lower <= float(best.upper)
        assert entry.upper >= float(best.lower)
    assert found.table().splitlines()[0].split()[:3] == ["algorithm", "class", "status"]
    assert {record["class"] for record in found.records()} == {0, 1, 2}


def test_interrupted_comparison_keeps_finished_records():
    reports = []
    stop = lambda report: reports.append(report) or len(reports) == 2  # noqa: E731
    found = compare(X, NOISY, ["perceptron", "dcd"], callback=stop)
    assert [entry.status for entry in found.entries] == [Status.INTERRUPTED]
    assert found.refused == {"dcd": "not run: the comparison was interrupted"}
    assert not found.certified


def test_invalid_comparisons_are_refused():
    for algorithms, parameters, words in (
        (["dcd", "dcd"], {}, "got 'dcd' twice"),
        ([], {}, "at least one name or rule object"),
        (["pegasus"], {}, "algorithm must be 'auto', one of 'dcd', "),
        ([3], {}, "algorithm must be a name or a rule object"),
        (["perceptron"], {"loss": "hinge"}, "none of the algorithms solves this problem .perceptron: "),
        (["dcd"], {"n_jobs": 2}, "no use for 'n_jobs'"),
        (["dcd"], {"tolerance": 1e-3}, "unexpected keyword argument 'tolerance'"),
    ):
        with pytest.raises((ValueError, TypeError), match=words):
            compare(X, NOISY, algorithms, **parameters)


def test_plots_show_margins_objectives_and_one_class_of_several(monkeypatch):
    pytest.importorskip("matplotlib")
    from matplotlib.figure import Figure

    def plotted(y, *algorithms, label=None, **problem):
        found = compare(X, y, algorithms, random_state=0, **problem)
        return found, found.plot(Figure().subplots(1, 2), label=label)

    found, display = plotted(SEPARABLE, "dcd", "perceptron", C=np.inf)
    assert list(display.lines_) == ["dcd", "perceptron"]
    for entry in found.entries:
        left, right = display.lines_[entry.algorithm]
        shown, reached = left.get_ydata(), [report.lower for report in entry.history]
        assert np.nanmax(shown) <= display.best * (1.0 + 1e-12)  # no margin is above the bound
        assert [margin for margin in reached if margin > 0.0] == shown[np.isfinite(shown)].tolist()
        assert np.array_equal(right.get_xdata(), [report.seconds for report in entry.history])
    found, display = plotted(NOISY, "dcd", "mpu", loss="hinge")
    assert display.best == max(entry.lower for entry in found.entries)
    shown, last = display.lines_["mpu"][0].get_ydata(), found.entries[1].upper
    assert shown[-1] == pytest.approx((last - display.best) / display.best)
    found, display = plotted(THREE, "dcd", label=1)
    assert "class 1 against the rest" in display.axes_[0].get_title(loc="left").replace("\n", " ")
    with pytest.raises(ValueError, match=r"label must be one of the classes \[0, 1, 2\]; got 7"):
        found.plot(label=7)
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)
    with pytest.raises(ImportError, match="Pictures need matplotlib"):
        found.plot()


class TestCommand:
    @pytest.fixture
    def data(self, tmp_path, monkeypatch):
        monkeypatch.chdir(tmp_path)
        dump_svmlight_file(X, NOISY, "train.svm", zero_based=False)
        return tmp_path / "train.svm"

    def test_command_prints_the_table_and_writes_csv_and_picture(self, data, tmp_path):
        pytest.importorskip("matplotlib")
        (tmp_path / "a.csv").write_text("old")
        words = (
            "--algorithms",
            "dcd, mpu",
            "--csv",
            "a.csv",
            "--picture",
            "a.png",
            "--seed",
            0,
            "--tol",
            1e-4,
        )
        result = run("compare", data, *words)
        assert result.exit_code == 0, result.output
        assert [line.split()[1] for line in result.stdout.splitlines()[1:3]] == ["CERTIFIED", "CERTIFIED"]
        expected = compare(X, NOISY, ["dcd", "mpu"], tol=1e-4, random_state=0).records()
        with open(tmp_path / "a.csv", newline="") as file:
            rows = list(csv.DictReader(file))
        assert tuple(rows[0]) == COLUMNS
        for row, record in zip(rows, expected, strict=True):
            assert (row["algorithm"], row["class"]) == (record["algorithm"], "")
            names = (
                "round",
                "updates",
                "lower",
                "upper",
            )  # the file holds sparse rows, whose sums round otherwise
            assert [float(row[name]) for name in names] == pytest.approx([record[name] for name in names])
        assert (tmp_path / "a.png").read_bytes().startswith(b"\x89PNG")

    def test_json_output_lists_entries_and_exits_with_3_above_the_tolerance(self, data):
        words = ("--algorithms", "dcd,perceptron,pegasos", "--json", "--C", "inf", "--max-iter", 3)
        result = run("compare", data, *words)
        facts = json.loads(result.stdout)
        assert (result.exit_code, facts["problem"]["C"], [*facts["refused"]]) == (3, "inf", ["pegasos"])
        assert [entry["algorithm"] for entry in facts["algorithms"]] == ["dcd", "perceptron"]
        assert all(one["class"] is None and one["margin"] == one["lower"] for one in facts["algorithms"])

    def test_invalid_input_gives_a_one_line_error_and_writes_no_file(self, data, tmp_path, monkeypatch):
        before = data.read_bytes()
        for arguments, words in (
            (("--algorithms", "dcd,nix"), "algorithm must be 'auto', one of 'dcd'"),
            (("--picture", "a.gif"), "a.gif: a picture is a .png, .pdf or .svg"),
            (("--csv", "nowhere/a.csv"), "there is no such folder"),
            (("--csv", "a.png", "--picture", "a.png"), "--csv and --picture name the same file"),
            (("--csv", data), "is read from"),
        ):
            assert words in refused("compare", data, *arguments)
        monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
        assert "pip install 'maxmargin[plot]'" in refused("compare", data, "--picture", "a.png")
        assert list(tmp_path.iterdir()) == [data]
        assert data.read_bytes() == before
