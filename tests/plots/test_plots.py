"""Displays: lines, labels and titles of each picture, and refusal of invalid input."""

from __future__ import annotations

import io
import sys

import numpy as np
import pytest
import scipy.sparse as sp

from maxmargin import KernelMaxMarginClassifier, MaxMarginClassifier, compare, margin_path, plots

matplotlib = pytest.importorskip("matplotlib")
matplotlib.use("Agg")
plt = pytest.importorskip("matplotlib.pyplot")

ROUNDING = 1e-12  # sums of at most 80 terms of size 10: 800 eps = 2e-13
RNG = np.random.default_rng(0)
X = RNG.normal(size=(80, 3))
Y = np.where(X[:, 0] + 0.5 * RNG.normal(size=80) > 0.0, 1, -1)
SEPARABLE = np.where(X[:, 0] > 0.0, 1, -1)
THREE_CLASSES = np.digitize(X[:, 0], [-0.5, 0.5])
margins_of = plots.MarginDisplay.from_estimator


@pytest.fixture(autouse=True)
def close_figures():
    yield
    plt.close("all")


@pytest.fixture(scope="module")
def model():
    return MaxMarginClassifier(random_state=0).fit(X, Y)


@pytest.fixture(scope="module")
def several():
    return MaxMarginClassifier(random_state=0).fit(X, THREE_CLASSES)


def title_of(ax):
    return ax.get_title(loc="left").replace("\n", " ")


def texts(artists):
    return [text.get_text() for text in artists]


def numbers(*lines):
    return [line.get_ydata().tolist() for line in lines]


class TestBounds:
    def test_every_report_is_drawn_as_distances_from_the_best_value(self, model):
        display = plots.BoundsDisplay.from_estimator(model)
        # a first fit may include compilation
        unit, name = (1e3, "ms") if model.history_[-1].seconds < 1.0 else (1.0, "s")
        above, below = display.upper_line_, display.lower_line_
        assert above.get_xdata().tolist() == [unit * report.seconds for report in model.history_]
        best = (model.history_[-1].lower + model.history_[-1].upper) / 2.0
        assert display.best_ == best
        near = {"rel": 1e-12, "abs": 0.0}
        assert above.get_ydata() == pytest.approx(
            [(one.upper - best) / best for one in model.history_], **near
        )
        assert below.get_ydata() == pytest.approx(
            [(one.lower - best) / best for one in model.history_], **near
        )
        assert display.ax_.get_xlabel() == f"time ({name})"
        assert display.ax_.get_ylabel() == "relative distance from the best objective"
        assert title_of(display.ax_).startswith("squared hinge, C = 1: best objective ")
        legend = texts(display.ax_.get_legend().get_texts())
        assert legend == ["upper bound", "lower bound", "optimum", "tol = 0.001"]

    @pytest.mark.parametrize(
        ("arguments", "title", "tick"),
        [
            (
                ([1, 20, 60], [-np.inf, 1.0, 2.0], [9.0, 8.0, 3.0]),
                "2 ≤ best objective ≤ 3, gap 50 %",
                "+10 %",
            ),
            (([0.02], [1.0], [1.0 + 1e-9]), "best objective 1", "+0.01 %"),
            (([1, 2], [1e-9, 0.5], [1e9, 1.5]), "0.5 ≤ best objective ≤ 1.5", "+$10^{-5}$"),
        ],
    )
    def test_titles_and_ticks(self, arguments, title, tick):
        display = plots.BoundsDisplay(*arguments, name="a", tol=1e-3).plot()
        display.figure_.canvas.draw()
        assert title_of(display.ax_).startswith(f"a: {title}")
        assert tick in texts(display.ax_.get_yticklabels())
        low, high = display.ax_.get_ylim()
        assert -np.inf < low < 0.0 < np.nanmax(display.upper_line_.get_ydata()) <= high < np.inf
        if len(arguments[0]) == 1:
            assert texts(display.ax_.texts)[0].startswith("certified once, after ")

    def test_one_of_several_problems_is_drawn_into_given_axes(self, several):
        _, (left, right) = plt.subplots(1, 2)
        display = plots.BoundsDisplay.from_estimator(several, label=1, ax=right)
        assert display.ax_ is right
        assert not left.lines
        assert len(display.seconds) == sum(report.label == 1 for report in several.history_)
        assert "class 1 against the rest" in title_of(right)
        gaps = dict(zip(several.classes_, [part.gap for part in several.certificate_], strict=True))
        widest = sum(report.label == max(gaps, key=gaps.get) for report in several.history_)
        assert len(plots.BoundsDisplay.from_estimator(several).seconds) == widest

    def test_hard_margins_name_the_margin_and_proofs(self):
        hard = MaxMarginClassifier(C=np.inf, random_state=0)
        for labels, title in ((SEPARABLE, "hard margin: "), (Y, "hard margin: proved to have no separator")):
            display = plots.BoundsDisplay.from_estimator(hard.fit(X, labels))
            assert title_of(display.ax_).startswith(title)
            assert display.ax_.get_ylabel().endswith("the best margin")


def test_names_of_users_are_drawn_literally():
    odd = [r"price in \$ $\foo$", "half \ud800 $_$", "over $50K", "under $5^{"]
    shown = " ".join(odd).replace("\ud800", "?")
    lines = {key: [1.0, 2.0] for key in odd}
    for figure, expected in (
        (plots.BoundsDisplay([1, 2], [1.0, 2.0], [3.0, 2.5], name=" ".join(odd)).plot().figure_, [shown]),
        (
            plots.AlgorithmComparisonDisplay(lines, lines, lines, best=0.5).plot().figure_,
            [odd[0], "half ? $_$"],
        ),
    ):
        figure.savefig(io.BytesIO(), format="svg")  # fails on invalid formulas and on lone surrogates
        found = [text.replace("\n", " ") for text in texts(figure.findobj(matplotlib.text.Text))]
        assert all(any(text.startswith(name) for text in found) for name in expected)


def test_missing_matplotlib_raises_import_error_with_the_remedy(model, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)
    with pytest.raises(ImportError, match=r"Pictures need matplotlib: pip install 'maxmargin\[plot\]'"):
        plots.BoundsDisplay.from_estimator(model)


class TestMargins:
    def test_bars_count_rows_support_and_errors_of_both_classes(self, model):
        display = margins_of(model, X, Y)
        margins, support = Y * model.decision_function(X), np.isin(np.arange(80), model.certificate_.support)
        for key, here, sign in (("positive", Y == 1, 1), ("negative", Y == -1, -1)):
            heights, dark = (
                sign * np.array([bar.get_height() for bar in display.bars_[name]])
                for name in (key, f"{key} support")
            )
            assert (heights.sum(), dark.sum()) == (here.sum(), (support & here).sum())
            assert (dark <= heights).all()
            # bars left of the line at 0 are the errors of that side
            assert heights[display.edges_[:-1] < 0.0].sum() == ((margins < 0.0) & here).sum()
        assert {0.0, 1.0} <= set(display.edges_)
        errors, inside = np.sum(model.predict(X) != Y), np.sum(margins < 1.0 - 1e-3)
        expected = (
            f"class 1 against class -1: {errors} of 80 rows are on the wrong side, {inside} below a margin"
        )
        assert title_of(display.ax_).startswith(expected)
        assert plots.MarginDisplay([0.0, 0.0], [True, False]).errors == 1  # f = 0 is of the negative side
        rounded = plots.MarginDisplay([1.0 - 1e-13, 1.0, 1.0 + 1e-13, 0.5, 2.0], np.ones(5, bool)).plot()
        assert rounded.bars_["positive"][list(rounded.edges_).index(1.0)].get_height() == 3

    def test_margins_of_one_class_or_pair_are_drawn(self):
        for scheme, label in (("ovr", 1), ("ovo", (0, 2))):
            fitted = KernelMaxMarginClassifier(multi_class=scheme).fit(X, THREE_CLASSES)
            display = margins_of(fitted, X, THREE_CLASSES, label=label)
            assert display.margins.size == (80 if scheme == "ovr" else np.sum(THREE_CLASSES != 1))
            part = fitted.certificate_[fitted.certificate_.classes.index(label)]
            assert display.support.sum() == part.support.size

    def test_support_vectors_are_those_of_the_data_of_the_fit(self, model):
        assert set(margins_of(model, X[:50], Y[:50]).bars_) == {"positive", "negative"}
        weights = np.arange(1.0, 81.0)
        weighted = MaxMarginClassifier(random_state=0).fit(X, Y, sample_weight=weights)
        assert margins_of(weighted, X, Y).support is None
        found = margins_of(weighted, sp.csr_matrix(X), Y, sample_weight=weights)
        assert found.support.sum() == weighted.certificate_.support.size


class TestPath:
    @pytest.mark.parametrize(
        ("parameter", "grid", "ylabel"),
        [
            ("C", {"Cs": [10.0, 0.1, 1.0]}, "least objective"),
            ("p", {"Cs": [1.0], "ps": [2.0, np.inf, 1.5]}, "least objective"),
            ("p", {"Cs": [np.inf], "ps": [2.0, np.inf]}, "widest margin"),
        ],
    )
    def test_models_of_margin_path_are_drawn(self, parameter, grid, ylabel):
        path = margin_path(X, SEPARABLE, random_state=0, **grid)
        display = plots.PathDisplay.from_path(path, feature_names=np.array(["a", "b", "c"]))
        order = np.argsort(path.Cs if parameter == "C" else path.ps)
        assert (display.parameter, display.axes_[1].get_ylabel()) == (parameter, ylabel)
        assert numbers(*display.weight_lines_) == [[path[k].coef_[0, j] for k in order] for j in range(3)]
        sides = [[getattr(path[k].certificate_, side) for k in order] for side in ("upper", "lower")]
        assert numbers(*display.interval_) == sides
        if parameter == "p":
            assert texts(display.axes_[0].get_xticklabels())[-1] == "∞"

    def test_hard_margin_point_is_last_and_drawn_without_bounds(self):
        path = margin_path(X, SEPARABLE, Cs=[np.inf, 1.0, 0.01], random_state=0)
        display = plots.PathDisplay.from_path(path)
        display.figure_.canvas.draw()
        assert display.weight_lines_[0].get_xdata().tolist() == [0.01, 1.0, 10.0]
        for line in display.interval_:
            assert np.isfinite(line.get_ydata()).tolist() == [True, True, False]
        assert texts(display.axes_[1].texts) == ["∞"]
        wide = plots.PathDisplay([1, 2, 3], [[1.0], [1.0], [100.0]], [1] * 3, [1] * 3).plot()
        assert wide.axes_[0].get_yscale() == "symlog"


OVO = {"multi_class": "ovo"}
POINT = ([1], [[1.0]], [1], [1])
REFUSED = {
    "label must be None for two classes": lambda m, s: plots.BoundsDisplay.from_estimator(m, label=1),
    r"one of .*got \(0, 1\)": lambda m, s: plots.BoundsDisplay.from_estimator(s, label=(0, 1)),
    "nothing to draw: no report": lambda m, s: plots.BoundsDisplay([1.0], [-np.inf], [1.0]).plot(),
    "no algorithm completed a round": lambda m, s: compare(
        X, Y, ["decomposition"], kernel="rbf", C=1.0, max_time=1e-9
    ).plot(),
    r"samples: \[80, 80, 3\]": lambda m, s: margins_of(m, X, Y, sample_weight=np.ones(3)),
    "column 0 is missing": lambda m, s: margins_of(m, X * [np.nan, 1, 1], Y),
    "y holds the class 7": lambda m, s: margins_of(m, X, np.full(80, 7)),
    "no row is of class 0 or of class 1": lambda m, s: margins_of(
        KernelMaxMarginClassifier(**OVO).fit(X, THREE_CLASSES), X[:1], [2], label=(0, 1)
    ),
    "which are one problem": lambda m, s: margins_of(m, X, Y, label=1),
    r"label must be one of \[": lambda m, s: margins_of(s, X, THREE_CLASSES, label=9),
    "takes 2 axes; got 1": lambda m, s: plots.PathDisplay(*POINT).plot(axes=plt.subplots()[1]),
    "A path that margin_path found": lambda m, s: plots.PathDisplay.from_path(m),
    "a path of two classes": lambda m, s: plots.PathDisplay.from_path(
        margin_path(X, THREE_CLASSES, Cs=[0.1])
    ),
    "both C and p change": lambda m, s: plots.PathDisplay.from_path(
        margin_path(X, Y, Cs=[0.1, 1], ps=[2, 3])
    ),
}


@pytest.mark.parametrize("expected", REFUSED)
def test_invalid_numbers_and_models_are_refused(expected, model, several):
    with pytest.raises(ValueError, match=expected):
        REFUSED[expected](model, several)
