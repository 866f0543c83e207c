"""Comparison of algorithms on one problem: records, reasons of refusal, table, CSV and plot."""

from __future__ import annotations

from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest
import scipy.sparse as sp
from effort import interpreted
from oracle import optimum

from maxmargin import MaxMarginClassifier, Problem, Status, compare
from maxmargin.algorithms import ALGORITHMS, MPU, PUMMA, Perceptron, SmoothedPrimalDual

pytestmark = interpreted
RNG = np.random.default_rng(0)
X = np.round(RNG.normal(size=(60, 3)), 3)
NOISY = np.where(X[:, 0] + 0.5 * RNG.normal(size=60) > 0.0, 1, -1)
SEPARABLE = np.where(X[:, 0] > 0.0, 1, -1)
THREE = np.digitize(X[:, 0], [-0.5, 0.5])
SOME = ["dcd", "mpu", "perceptron", "pumma", "newton", "interior-point"]
CASES = [("squared_hinge", 0.7, THREE), ("hinge", 0.7, NOISY), ("hinge", np.inf, SEPARABLE)]


@pytest.mark.parametrize("names", [SOME, pytest.param(list(ALGORITHMS), marks=pytest.mark.slow)])
@pytest.mark.parametrize(("loss", "C", "y"), CASES)
def test_bounds_of_every_record_enclose_the_optimum(loss, C, y, names):
    """Each of several classes is a problem of its own, against the rest; bounds of rounds are sums in float64."""
    classes = [None] if y is not THREE else [0, 1, 2]
    weights = 1.0 + np.arange(60) % 2 if np.isfinite(C) else np.ones(60)
    signs = {label: np.where(y == (1 if label is None else label), 1.0, -1.0) for label in classes}
    exact = {label: optimum(Problem(loss, C), X, signs[label], weights) for label in classes}
    found = compare(X, y, names, C=C, loss=loss, max_iter=300, sample_weight=weights, random_state=0)
    ran = [name for name in names if name not in found.refused]
    assert [(one.algorithm, one.label) for one in found.entries] == [(n, k) for n in ran for k in classes]
    for record in found.records():
        best = exact[record["class"]]
        rounding = Fraction(1e-14) * best.upper
        assert record["lower"] <= best.upper + rounding
        assert record["upper"] >= best.lower - rounding
        if np.isfinite(C):
            assert record["objective"] == record["upper"]
        elif record["margin"] > 0.0:
            assert record["margin"] == record["lower"]
            assert record["objective"] == pytest.approx(0.5 / record["margin"] ** 2, rel=1e-14, abs=0.0)
    for entry in found.entries:
        one, last = entry.run, entry.run.table[-1]
        assert one.lower <= exact[entry.label].upper  # certified: rounded outwards
        assert one.upper >= exact[entry.label].lower
        assert one.n_updates == last.updates
        counters = [(row.updates, row.visits, row.seconds) for row in one.table]
        assert all(a[k] <= b[k] for a, b in pairwise(counters) for k in range(3))
        assert all(row.epochs < 300 for row in one.table[:-1])
        assert (one.lower, one.upper) == pytest.approx((last.lower, last.upper), rel=1e-10)  # running sums
    assert found.entries[0].run.status is Status.CERTIFIED


@pytest.mark.parametrize(("C", "y"), [(np.inf, SEPARABLE), (0.7, NOISY)])
def test_algorithms_are_compared_on_kernels(C, y):
    """The linear kernel, and its matrix, have the optimum of the rows."""
    exact, names = (
        optimum(Problem("squared_hinge", C), X, y, np.ones(60)),
        ["decomposition", "dcd", "von-neumann"],
    )
    options = {"C": C, "loss": "squared_hinge", "max_iter": 9, "random_state": 0}
    for kernel, rows in (("linear", X), ("precomputed", X @ X.T)):
        found = compare(rows, y, names, kernel=kernel, **options)
        assert found.refused.keys() == (set() if np.isinf(C) else {"von-neumann"})
        for record in found.records():
            assert record["lower"] <= exact.upper * (1.0 + 1e-9)
            assert record["upper"] >= exact.lower * (1.0 - 1e-9)
        assert "decomposition" in found.table()


def test_runs_without_an_iterate_are_entries_of_a_comparison():
    """The deadline has passed before the first one."""
    found = compare(X, SEPARABLE, ["decomposition", "dcd"], kernel="linear", max_time=1e-9)
    for entry in found.entries:
        assert (entry.run.status, entry.run.n_updates) == (Status.MAX_TIME, 0)
        assert entry.run.lower <= entry.run.upper
    assert len(found.records()) == sum(len(entry.run.table) for entry in found.entries)
    assert len(found.table().splitlines()) == 3


def test_algorithms_of_one_name_are_told_apart():
    """The weights of the rows are not in the name."""
    q = np.arange(60.0)
    given = [SmoothedPrimalDual(q=q), SmoothedPrimalDual(q=np.where(q < 6.0, q, 1.0))]
    found = compare(X, SEPARABLE, given, C=np.inf, random_state=0)
    name = "smoothed-primal-dual(q=<60 weights>)"
    assert [entry.algorithm for entry in found.entries] == [name, f"{name} #2"]
    assert found.entries[0].run.upper != found.entries[1].run.upper


def test_results_do_not_depend_on_storage_order_or_label_type():
    same = {"random_state": 3, "loss": "hinge", "tol": 1e-6}
    first = compare(X, NOISY, ["dcd", "mpu"], **same).entries
    again = compare(X, NOISY.astype(str), ["mpu", "dcd"], **same).entries
    sparse = compare(sp.csr_matrix(X), NOISY, ["dcd", "mpu"], **same).entries
    for one, two, three in zip(first, again[::-1], sparse, strict=True):
        assert one.algorithm == two.algorithm
        one, two, three = one.run, two.run, three.run
        assert (one.n_updates, one.n_epochs) == (two.n_updates, two.n_epochs)
        assert (one.lower, one.upper) == (two.lower, two.upper)
        # sums of another order may end one round earlier or later, at another gap of at most tol
        assert (one.lower, one.upper) == pytest.approx((three.lower, three.upper), rel=1e-6)
    w = MaxMarginClassifier(loss="hinge", tol=1e-9).fit(X, NOISY).coef_
    # |w - w*|^2 <= 2 gap objective: some 1e-2 at a gap of 1e-6
    assert first[0].run.margin == pytest.approx(1.0 / np.linalg.norm(w), rel=1e-2)


def test_table_lists_results_and_reasons_of_refusal():
    found = compare(X, NOISY, ["dcd", PUMMA(delta=0.5), "perceptron"], loss="hinge", random_state=0)
    lines = found.table().splitlines()
    assert " ".join(lines[0].split()) == "algorithm status margin objective at least gap updates seconds"
    assert [line.split(":")[0] for line in lines[2:]] == ["pumma(delta=0.5)", "perceptron"]
    hard = compare(X, SEPARABLE, ["dcd", Perceptron(b=0.5)], C=np.inf, random_state=0).table().splitlines()
    assert " ".join(hard[0].split()) == "algorithm status margin at most objective gap updates seconds"
    assert hard[2].startswith("perceptron(b=0.5)  CONVERGED")
    assert compare(X, THREE, ["dcd"]).table().split()[:3] == ["algorithm", "class", "status"]


def test_interrupted_comparison_keeps_finished_records():
    found = compare(X, NOISY, ["perceptron", "dcd"], callback=lambda report: report.round == 2)
    assert [(entry.run.status, entry.run.n_epochs) for entry in found.entries] == [(Status.INTERRUPTED, 2.0)]
    assert found.refused == {"dcd": "not run: the comparison was interrupted"}
    assert not found.certified


def test_invalid_comparisons_are_refused():
    for algorithms, parameters, words in (
        (["dcd", "dcd"], {}, "got 'dcd' twice"),
        (["dcd", "mpu", MPU()], {}, "got 'mpu' twice"),
        (["pumma", PUMMA(delta=0.5), PUMMA(delta=0.5)], {}, "got 'pumma.delta=0.5.' twice"),
        (["dcd"], {"kernel": "precomputed"}, "square matrix of all samples; got shape .60, 3."),
        ([], {}, "at least one name or algorithm object"),
        ([3], {}, "names and algorithm objects such as"),
        (["perceptron"], {"loss": "hinge"}, "none of the algorithms solves this problem .perceptron: "),
        (["dcd"], {"n_jobs": 2}, "no use for 'n_jobs'"),
        (["auto"], {}, "names and algorithm objects such as"),
        (["dcd"], {"tolerance": 1e-3}, "unexpected keyword argument 'tolerance'"),
        (["dcd"], {"kernel": "rbf", "p": 3.0}, "unexpected keyword argument 'p'"),
    ):
        with pytest.raises((ValueError, TypeError), match=words):
            compare(X, NOISY, algorithms, **parameters)


def test_plots_show_margins_objectives_and_one_class_of_several():
    pytest.importorskip("matplotlib")
    from matplotlib.figure import Figure

    def plotted(y, *algorithms, label=None, **problem):
        found = compare(X, y, algorithms, random_state=0, **problem)
        return found, found.plot(Figure().subplots(1, 2), label=label)

    found, display = plotted(SEPARABLE, "dcd", "perceptron", C=np.inf)
    for entry in found.entries:
        left, right = display.lines_[entry.algorithm]
        shown = left.get_ydata()[np.isfinite(left.get_ydata())]
        assert shown.max() <= display.best * (1.0 + 1e-12)  # no margin is above the bound
        assert [row.lower for row in entry.run.table if row.lower > 0.0] == shown.tolist()
        assert np.array_equal(right.get_xdata(), [row.seconds for row in entry.run.table])
    found, display = plotted(NOISY, "dcd", "mpu", loss="hinge")
    assert display.best == max(entry.run.lower for entry in found.entries)
    last = found.entries[1].run.upper / display.best - 1.0
    assert display.lines_["mpu"][0].get_ydata()[-1] == pytest.approx(last, rel=1e-9)
    found, display = plotted(THREE, "dcd", label=1)
    assert "class 1 against the rest" in display.axes_[0].get_title(loc="left").replace("\n", " ")
    with pytest.raises(ValueError, match="label must be one of the classes"):
        found.plot(label=3)
