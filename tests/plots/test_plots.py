"""Displays: lines, labels and titles of each picture, and refusal of invalid input."""

from __future__ import annotations

import io
import sys
from types import SimpleNamespace

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression

from maxmargin import (
    KernelMaxMarginClassifier,
    MarginRFE,
    MaxMarginClassifier,
    OnlineMarginClassifier,
    margin_path,
)
from maxmargin.plots import (
    AlgorithmComparisonDisplay,
    BoundsDisplay,
    DecisionSurfaceDisplay,
    EliminationDisplay,
    MarginDisplay,
    PathDisplay,
    RobustnessDisplay,
    SparsityDisplay,
)

matplotlib = pytest.importorskip("matplotlib")
matplotlib.use("Agg")
plt = pytest.importorskip("matplotlib.pyplot")

RNG = np.random.default_rng(0)
X = RNG.normal(size=(80, 3))
Y = np.where(X[:, 0] + 0.5 * RNG.normal(size=80) > 0.0, 1, -1)
THREE_CLASSES = np.digitize(X[:, 0], [-0.5, 0.5])


@pytest.fixture(autouse=True)
def close_figures():
    yield
    plt.close("all")


@pytest.fixture(scope="module")
def model():
    return MaxMarginClassifier(random_state=0).fit(X, Y)


def test_both_bounds_of_every_report_are_drawn(model):
    display = BoundsDisplay.from_estimator(model)
    time = display.upper_line_.get_xdata()
    unit, name = (
        (1e3, "ms") if model.history_[-1].seconds < 1.0 else (1.0, "s")
    )  # a first fit may include compilation
    assert np.array_equal(time, [unit * report.seconds for report in model.history_])
    assert (display.upper_line_.get_ydata() >= 0.0).all()
    assert (display.lower_line_.get_ydata() <= 0.0).all()
    assert display.best_ == pytest.approx(model.certificate_.upper, rel=1e-3)
    first = model.history_[0]
    distance = (first.upper - display.best_) / display.best_
    assert display.upper_line_.get_ydata()[0] == pytest.approx(distance)
    assert display.figure_ is display.ax_.figure
    assert display.ax_.get_xlabel() == f"time ({name})"
    assert display.ax_.get_ylabel() == "relative distance from the best objective"
    assert display.ax_.get_title(loc="left").startswith("squared hinge, C = 1: best objective ")
    legend = [text.get_text() for text in display.ax_.get_legend().get_texts()]
    assert legend == ["upper bound", "lower bound", "gap of tol = 0.001"]


def test_bounds_are_drawn_into_given_axes(model, tmp_path):
    figure, (left, right) = plt.subplots(1, 2)
    display = BoundsDisplay.from_estimator(model, ax=right, name="mine")
    assert display.ax_ is right
    assert not left.lines
    assert display.plot(ax=left, name="again").ax_ is left
    figure.savefig(tmp_path / "a.png")
    assert (tmp_path / "a.png").stat().st_size > 1000


def test_hard_margin_labels_name_the_margin():
    y = np.where(X[:, 0] > 0.0, 1, -1)
    display = BoundsDisplay.from_estimator(MaxMarginClassifier(C=np.inf, random_state=0).fit(X, y))
    assert display.ax_.get_title(loc="left").startswith("hard margin: ")
    assert display.ax_.get_ylabel().endswith("the best margin")


def test_bounds_of_one_class_are_drawn():
    y = np.digitize(X[:, 0], [-0.5, 0.5])
    model = MaxMarginClassifier(random_state=0).fit(X, y)
    display = BoundsDisplay.from_estimator(model, label=1)
    assert len(display.seconds) == sum(report.label == 1 for report in model.history_)
    assert "class 1 against the rest" in display.ax_.get_title(loc="left").replace("\n", " ")
    BoundsDisplay.from_estimator(model)  # default: the class with the largest gap
    with pytest.raises(ValueError, match=r"label must be one of the classes .*got 7"):
        BoundsDisplay.from_estimator(model, label=7)
    with pytest.raises(ValueError, match=r"label must be one of the classes .*got \(0, 1\)"):
        BoundsDisplay.from_estimator(model, label=(0, 1))


def test_bounds_of_a_single_report_have_wide_axes():
    display = BoundsDisplay([0.02], [1.0], [1.0 + 1e-9], tol=1e-3, name="one").plot()
    display.figure_.canvas.draw()
    ax = display.ax_
    assert ax.get_xlim() == (0.0, 40.0)
    assert [text.get_text() for text in ax.texts] == ["both bounds at the only look, after 20 ms"]
    low, high = ax.get_ylim()
    assert sum(low < tick < high for tick in ax.get_yticks()) >= 5


def test_title_states_proved_inseparability():
    y = np.where(X[:, 0] + 0.5 * X[:, 1] ** 3 > 0.0, 1, -1)
    y[:4] *= -1
    model = MaxMarginClassifier(C=np.inf, random_state=0).fit(X, y)
    title = BoundsDisplay.from_estimator(model).ax_.get_title(loc="left")
    assert title == "hard margin: proved to have no separator"


def test_title_of_an_unfinished_fit_states_its_interval():
    display = BoundsDisplay([1, 20, 60], [-np.inf, 1.0, 2.0], [9.0, 8.0, 3.0], name="a").plot()
    assert display.ax_.get_title(loc="left") == "a: 2 ≤ best objective ≤ 3"
    assert display.ax_.get_xlabel() == "time (s)"
    assert np.isnan(display.lower_line_.get_ydata()[0])
    display.figure_.canvas.draw()


def test_bounds_hundreds_of_decades_apart_are_drawn():
    display = BoundsDisplay([1, 2], [5e-10, 7.4e-301], [6e-10, 7.5e-301], tol=1e-3, name="tiny").plot()
    display.figure_.canvas.draw()
    low, high = display.ax_.get_ylim()
    assert np.isfinite([low, high]).all()
    assert high >= display.upper_line_.get_ydata()[0] > 1e290


def test_invalid_numbers_and_models_are_refused(model):
    with pytest.raises(NotFittedError):
        BoundsDisplay.from_estimator(MaxMarginClassifier())
    with pytest.raises(ValueError, match="label must be None for two classes"):
        BoundsDisplay.from_estimator(model, label=1)
    with pytest.raises(ValueError, match="there is nothing to draw"):
        BoundsDisplay([1.0], [-np.inf], [1.0]).plot()


def test_long_titles_are_wrapped_within_the_figure():
    display = BoundsDisplay([1, 2], [1.0, 2.0], [3.0, 2.5], name="a title of very many words " * 4).plot()
    display.figure_.canvas.draw()
    title = display.ax_.get_title(loc="left")
    assert title.count("\n") == 2
    lengths = [len(line) for line in title.split("\n")]
    assert max(lengths) - min(lengths) < 20
    right = display.ax_._left_title.get_window_extent().x1
    assert right < display.figure_.bbox.x1


class TestNames:
    """Names given by the user are drawn literally: dollar signs start no formula."""

    ODD = (r"price in \$ $\foo$", "half \ud800 $_$", "over $50K", "under $5^{")

    @staticmethod
    def texts_of(figure):
        figure.savefig(io.BytesIO(), format="svg")  # fails on invalid formulas and on lone surrogates
        return {text.get_text() for text in figure.findobj(matplotlib.text.Text)}

    def test_class_and_feature_names_are_drawn_literally(self):
        labels = np.array(self.ODD)[np.where(Y > 0, 2, 3)]
        model = MaxMarginClassifier(random_state=0).fit(X, labels)
        texts = self.texts_of(MarginDisplay.from_estimator(model, X, labels).figure_)
        # title and legend
        assert sum("over $50K" in text for text in texts) >= 2
        assert sum("under $5^{" in text for text in texts) >= 2
        display = DecisionSurfaceDisplay.from_estimator(
            model, X, labels, plane=(0, 1), feature_names=self.ODD[:3], grid_resolution=5
        )
        assert {"half ? $_$", "class over $50K", "class under $5^{"} <= self.texts_of(display.figure_)
        assert display.ax_.get_xlabel().startswith(self.ODD[0])
        path = PathDisplay([1, 2], X[:2], [1, 2], [1, 2], feature_names=self.ODD[:3], name=self.ODD[0]).plot()
        assert {self.ODD[0], "half ? $_$", "over $50K"} <= self.texts_of(path.figure_)

    def test_titles_are_drawn_literally(self):
        name = " ".join(self.ODD)
        expected = name.replace("\ud800", "?")
        figures = [
            BoundsDisplay([1, 2], [1.0, 2.0], [3.0, 2.5], name=name).plot().figure_,
            RobustnessDisplay([1.0], [True], name=name).plot().figure_,
            EliminationDisplay([2, 1], [1, 2], [1, 2], name=name).plot().figure_,
        ]
        for figure in figures:
            assert any(text.replace("\n", " ").startswith(expected) for text in self.texts_of(figure))
        odd = {key: [1.0, 2.0] for key in self.ODD[:2]}
        figure = AlgorithmComparisonDisplay(odd, odd, odd, best=0.5).plot().figure_
        assert {self.ODD[0], "half ? $_$"} <= self.texts_of(figure)


def test_missing_matplotlib_raises_import_error_with_the_remedy(model, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)
    with pytest.raises(ImportError, match=r"Pictures need matplotlib: pip install 'maxmargin\[plot\]'"):
        BoundsDisplay.from_estimator(model)


class TestElimination:
    def test_accuracy_and_bounds_of_every_feature_set_are_drawn(self, tmp_path):
        selector = MarginRFE("auto", p=2, cv=3, step=1, random_state=0).fit(X, Y)
        display = EliminationDisplay.from_estimator(selector)
        accuracy, bounds = display.axes_
        assert display.accuracy_line_.get_xdata().tolist() == [3, 2, 1]
        assert display.accuracy_line_.get_ydata().tolist() == selector.cv_results_["mean_test_score"].tolist()
        assert display.lower_line_.get_ydata().tolist() == [stage.lower for stage in selector.path_]
        assert display.upper_line_.get_ydata().tolist() == [stage.upper for stage in selector.path_]
        assert accuracy.get_title(loc="left") == f"{selector.n_features_} of 3 features are kept"
        assert bounds.get_ylabel() == "least objective"
        assert [text.get_text() for text in accuracy.get_xticklabels()] == ["1", "2", "3"]
        display.figure_.savefig(tmp_path / "a.png")

    @pytest.mark.parametrize(
        ("numbers", "ticks"),
        [
            ([30, 18, 4, 1], [1, 2, 5, 10, 20, 30]),
            ([7129, 100, 1], [1, 10, 100, 1000, 7129]),
            ([12, 11], [12]),
        ],
    )
    def test_tick_labels_are_plain_numbers(self, numbers, ticks):
        display = EliminationDisplay(numbers, np.ones(len(numbers)), np.ones(len(numbers))).plot()
        display.figure_.canvas.draw()
        (ax,) = display.axes_
        assert [text.get_text() for text in ax.get_xticklabels()] == [str(tick) for tick in ticks]
        assert not any(text.get_text() for text in ax.get_xticklabels(minor=True))

    def test_missing_numbers_are_not_drawn_into_given_axes(self):
        y = np.where(X[:, 0] > 0.0, 1, -1)
        selector = MarginRFE("auto", p=2, C=np.inf, n_features_to_select=1, step=1).fit(X, y)
        figure, axes = plt.subplots(1, 2)
        display = EliminationDisplay.from_estimator(selector, axes=axes, name="mine")
        assert display.axes_ == (axes[0],)
        assert display.figure_ is figure
        assert display.accuracy_line_ is None
        assert axes[0].get_ylabel() == "largest margin"
        assert not axes[1].lines
        assert display.plot(name="again").axes_[0].get_title(loc="left") == "again"
        only = EliminationDisplay([2, 1], [np.nan] * 2, [np.nan] * 2, accuracy=[0.5, 0.6]).plot()
        assert only.upper_line_ is None
        assert only.panels == 1

    def test_invalid_numbers_and_models_are_refused(self):
        with pytest.raises(NotFittedError):
            EliminationDisplay.from_estimator(MarginRFE())
        with pytest.raises(ValueError, match="there is nothing to draw"):
            EliminationDisplay([2, 1], [np.nan] * 2, [np.nan] * 2).plot()


class TestRobustness:
    def test_curve_is_the_share_of_rows_that_stay_correct(self, model):
        display = RobustnessDisplay.from_estimator(model, X, Y, name="mine")
        radii, right = model.certified_radius(X), model.predict(X) == Y
        radius, share = display.line_.get_data()
        assert share[0] == model.score(X, Y) == display.share(0.0)
        assert share[-1] == 0.0
        assert (np.diff(share) < 0.0).all()
        middle = float(np.median(radii))
        assert display.share(middle) == np.mean(right & (radii >= middle))
        assert share[np.searchsorted(radius, middle) - 1] == pytest.approx(display.share(middle))
        assert display.ax_.get_xlabel() == "size of the perturbation, 2-norm"
        assert display.ax_.get_title(loc="left") == "mine"

    def test_online_models_and_infinite_radii_are_drawn_and_others_refused(self):
        stream = OnlineMarginClassifier(random_state=0).fit(X, Y)
        _, ax = plt.subplots()
        assert RobustnessDisplay.from_estimator(stream, X, Y, ax=ax).ax_ is ax
        with pytest.raises(ValueError, match="inconsistent numbers of samples"):
            RobustnessDisplay.from_estimator(stream, X, Y[:5])
        with pytest.raises(ValueError, match="y holds the class 7"):
            RobustnessDisplay.from_estimator(stream, X, np.full(len(Y), 7))
        with pytest.raises(ValueError, match="LogisticRegression has no certified_radius"):
            RobustnessDisplay.from_estimator(LogisticRegression(), X, Y)
        with pytest.raises(ValueError, match="A MarginRFE is drawn here; got LogisticRegression"):
            EliminationDisplay.from_estimator(LogisticRegression())
        display = RobustnessDisplay([np.inf, 1.0, 2.0], [True, True, False], p=np.inf).plot()
        # two of three rows are correct; the second has radius 1
        assert display.radius_of_half == 1.0
        assert display.share(1.0) >= 0.5 > display.share(1.0 + 1e-9)
        title = display.ax_.get_title(loc="left").replace("\n", " ")
        assert title == "66.7 % of the rows are correct; half of all rows stay so up to 1"
        assert display.line_.get_ydata() == pytest.approx([2 / 3, 1 / 3, 1 / 3])
        assert display.ax_.get_xlabel() == "size of the perturbation, ∞-norm"
        assert RobustnessDisplay([np.inf], [True]).plot(name="all").line_.get_ydata().tolist() == [1.0, 1.0]

    def test_invalid_numbers_and_models_are_refused(self):
        with pytest.raises(NotFittedError):
            RobustnessDisplay.from_estimator(MaxMarginClassifier(), X, Y)
        with pytest.raises(ValueError, match="one radius for every row"):
            RobustnessDisplay([1.0], [True, False]).plot()


class TestMargins:
    def test_margins_of_one_up_to_rounding_count_right_of_the_line(self):
        margins = np.array([1.0 - 1e-13, 1.0, 1.0 + 1e-13, 0.5, 2.0])
        display = MarginDisplay(margins, np.ones(5, bool)).plot()
        heights = [bar.get_height() for bar in display.bars_["positive"]]
        assert heights[list(display.edges_).index(1.0)] == 3

    def test_bars_count_rows_support_and_errors_of_both_classes(self, model):
        display = MarginDisplay.from_estimator(model, X, Y)
        margins = Y * model.decision_function(X)
        for key, here, sign in (("positive", Y == 1, 1), ("negative", Y == -1, -1)):
            heights = np.array([bar.get_height() for bar in display.bars_[key]])
            assert (sign * heights).sum() == here.sum()
            support = np.isin(np.arange(80), model.certificate_.support)
            dark = np.array([bar.get_height() for bar in display.bars_[f"{key} support"]])
            assert (sign * dark).sum() == (support & here).sum() > 0
            assert (sign * dark <= sign * heights).all()
            # bars left of the line at 0 are the errors of that side
            left = display.edges_[:-1] < 0.0
            assert (sign * heights)[left].sum() == ((margins < 0.0) & here).sum()
        assert {0.0, 1.0} <= set(display.edges_)
        assert display.errors == np.sum(model.predict(X) != Y) > 0
        assert display.margin_line_.get_xdata() == [1.0, 1.0]
        assert display.boundary_line_.get_xdata() == [0.0, 0.0]
        title = display.ax_.get_title(loc="left").replace("\n", " ")
        assert title.startswith(
            f"class 1 against class -1: {display.errors} of 80 rows are on the wrong side"
        )

    def test_margins_of_one_class_or_pair_are_drawn(self):
        for scheme, label, rows in (("ovr", 1, 80), ("ovo", (0, 2), int(np.sum(THREE_CLASSES != 1)))):
            model = KernelMaxMarginClassifier(multi_class=scheme).fit(X, THREE_CLASSES)
            display = MarginDisplay.from_estimator(model, X, THREE_CLASSES, label=label)
            assert display.margins.size == rows
            part = model.certificate_[model.certificate_.classes.index(label)]
            assert display.support.sum() == part.support.size
        with pytest.raises(ValueError, match=r"label must be one of \[\(0, 1\), \(0, 2\), \(1, 2\)\]; got 1"):
            MarginDisplay.from_estimator(model, X, THREE_CLASSES, label=1)

    def test_margins_of_other_data_show_no_support_vectors(self, model):
        display = MarginDisplay.from_estimator(model, X[:50], Y[:50], name="others")
        assert display.support is None
        assert set(display.bars_) == {"positive", "negative"}
        stream = MarginDisplay.from_estimator(OnlineMarginClassifier(random_state=0).fit(X, Y), X, Y)
        assert stream.support is None
        weighted = MaxMarginClassifier(random_state=0).fit(X, Y, sample_weight=np.arange(1.0, 81.0))
        assert MarginDisplay.from_estimator(weighted, X, Y).support is None
        found = MarginDisplay.from_estimator(
            weighted, sp.csr_matrix(X), Y, sample_weight=np.arange(1.0, 81.0)
        )
        assert found.support.sum() == weighted.certificate_.support.size

    def test_invalid_numbers_and_models_are_refused(self, model):
        with pytest.raises(NotFittedError):
            MarginDisplay.from_estimator(MaxMarginClassifier(), X, Y)
        with pytest.raises(ValueError, match="y holds the class 7"):
            MarginDisplay.from_estimator(model, X, np.full(80, 7))
        gaps = np.where(np.arange(80)[:, None] < 20, [np.nan, 1.0, 1.0], X)
        for display in (MarginDisplay, DecisionSurfaceDisplay):
            with pytest.raises(ValueError, match=r"inconsistent numbers of samples: \[80, 80, 3\]"):
                display.from_estimator(model, X, Y, sample_weight=np.ones(3))
            with pytest.raises(ValueError, match="column 0 is missing in 20 of 80 rows"):
                display.from_estimator(model, gaps, Y)
        with pytest.raises(ValueError, match="one margin and one side for every row"):
            MarginDisplay([1.0, 2.0], [True]).plot()
        with pytest.raises(ValueError, match="margins must be finite"):
            MarginDisplay([1.0, np.inf], [True, False]).plot()
        pairs = KernelMaxMarginClassifier(multi_class="ovo").fit(X, THREE_CLASSES)
        with pytest.raises(ValueError, match="no row is of class 0 or of class 1"):
            MarginDisplay.from_estimator(
                pairs, X[THREE_CLASSES == 2], THREE_CLASSES[THREE_CLASSES == 2], label=(0, 1)
            )


class TestSurface:
    @pytest.mark.parametrize("center", ["mean", "median"])
    @pytest.mark.parametrize("plane", [(2, 0), "components", "weights"])
    def test_surface_is_an_exact_section_of_the_decision_function(self, model, plane, center):
        display = DecisionSurfaceDisplay.from_estimator(
            model, X, Y, plane=plane, center=center, grid_resolution=7
        )
        middle = getattr(np, center)(X, axis=0)
        w, b = model.coef_[0], model.intercept_[0]
        if plane == (2, 0):
            first, second = display.first, display.second
            rows = np.tile(middle, (7, 7, 1))
            rows[:, :, 2], rows[:, :, 0] = first[None, :], second[:, None]
            assert display.values == pytest.approx(rows @ w + b)
            assert np.array_equal(display.places, X[:, [2, 0]])
            assert center in display.ax_.get_xlabel()
            return
        # f is affine on the plane, with f(center) at 0 and a slope of at most |w|
        s, t = np.meshgrid(display.first, display.second)
        flat, *_ = np.linalg.lstsq(
            np.column_stack([s.ravel(), t.ravel(), np.ones(49)]), display.values.ravel()
        )
        assert flat[2] == pytest.approx(middle @ w + b)
        assert center in display.ax_.get_xlabel()
        if plane == "weights":
            assert flat[:2] == pytest.approx([np.linalg.norm(w), 0.0], abs=1e-9)
            assert flat[0] * display.places[:, 0] + flat[2] == pytest.approx(model.decision_function(X))
            return
        assert np.hypot(*flat[:2]) < np.linalg.norm(w) + 1e-9
        variances = display.places.var(axis=0)
        assert variances == pytest.approx(np.sort(np.linalg.eigvalsh(np.cov(X.T, bias=True)))[:0:-1])

    def test_surface_of_a_kernel_model_shows_margin_support_and_errors(self):
        model = KernelMaxMarginClassifier().fit(X, Y)
        display = DecisionSurfaceDisplay.from_estimator(model, X, Y, plane=(0, 1))
        j, i = 31, 77
        row = X.mean(axis=0)
        row[:2] = display.first[i], display.second[j]
        assert display.values[j, i] == pytest.approx(model.decision_function([row])[0])
        assert display.contours_.levels.tolist() == [-1.0, 0.0, 1.0]
        assert display.surface_.levels[1:-1].tolist() == [-1.0, 0.0, 1.0]
        assert display.points_["class 1"].get_offsets().shape == (np.sum(Y == 1), 2)
        rings = display.support_points_.get_offsets()
        assert np.asarray(rings) == pytest.approx(X[model.certificate_.support][:, :2])
        crosses = np.asarray(display.wrong_points_.get_offsets())
        assert crosses == pytest.approx(X[model.predict(X) != Y][:, :2])
        right = 100.0 * model.score(X, Y)
        assert display.ax_.get_title(loc="left") == f"{right:.3g} % of 80 rows are classified as labelled"

    @pytest.mark.parametrize("scheme", ["ovr", "ovo"])
    def test_areas_of_several_classes_equal_the_predictions(self, scheme):
        model = KernelMaxMarginClassifier(multi_class=scheme).fit(X[:, :2], THREE_CLASSES)
        display = DecisionSurfaceDisplay.from_estimator(model, X[:, :2], THREE_CLASSES, grid_resolution=21)
        grid = np.stack(np.meshgrid(display.first, display.second), axis=-1).reshape(-1, 2)
        assert np.array_equal(display.values.reshape(-1, 3).argmax(axis=1), model.predict(grid))
        assert len(display.surface_) == 3
        assert display.contours_ is None
        assert list(display.points_) == ["class 0", "class 1", "class 2"]
        # with two features the axes are the features
        assert (display.ax_.get_xlabel(), display.ax_.get_ylabel()) == ("feature 0", "feature 1")
        one = DecisionSurfaceDisplay.from_estimator(
            model, X[:, :2], THREE_CLASSES, label=model.certificate_.classes[0]
        )
        assert one.contours_ is not None

    def test_sparse_and_dense_rows_give_equal_surfaces(self):
        several = MaxMarginClassifier(random_state=0).fit(X, THREE_CLASSES)
        for plane in ("components", "weights"):
            for center in ("mean", "median"):
                dense, sparse = (
                    DecisionSurfaceDisplay.from_estimator(
                        several, rows, THREE_CLASSES, label=1, plane=plane, center=center, grid_resolution=5
                    )
                    for rows in (X, sp.csr_matrix(X))
                )
                assert sparse.support.sum() == dense.support.sum()
                # the sign of a component is arbitrary
                assert np.abs(sparse.places) == pytest.approx(np.abs(dense.places), abs=1e-6)

    def test_axes_are_labelled_with_feature_names(self, model):
        names = ["height", "width", "depth"]
        display = DecisionSurfaceDisplay.from_estimator(
            model, X, Y, plane=("depth", "height"), feature_names=names, grid_resolution=5
        )
        assert display.ax_.get_xlabel() == "depth (all but these two at their mean)"
        assert display.ax_.get_ylabel() == "height"
        assert display.ax_.get_legend().get_title().get_text() == ""

    def test_large_classes_are_drawn_in_part(self):
        places = np.column_stack([np.arange(4001), np.arange(4001)]) / 4000.0
        codes = (np.arange(4001) >= 4000).astype(int)  # one row of the second class
        wrong = np.arange(4001) < 30
        many = DecisionSurfaceDisplay(
            [0, 1], [0, 1], [[-2, -2], [-2, -2]], places=places, codes=codes, classes=["a", "b"], wrong=wrong
        ).plot()
        assert np.asarray(many.points_["a"].get_offsets()) == pytest.approx(places[:4000:3])
        assert len(many.points_["b"].get_offsets()) == 1
        assert np.asarray(many.wrong_points_.get_offsets()) == pytest.approx(places[:30:3])
        assert many.ax_.get_legend().get_title().get_text() == "1 of 3 rows is drawn"
        assert many.contours_ is None  # no level is crossed
        many.figure_.canvas.draw()

    def test_equal_rows_are_drawn(self):
        y = np.arange(20) % 2
        model = MaxMarginClassifier(random_state=0).fit(np.ones((20, 3)), y)
        display = DecisionSurfaceDisplay.from_estimator(model, np.ones((20, 3)), y, grid_resolution=5)
        assert display.places == pytest.approx(np.zeros((20, 2)), abs=1e-12)
        assert "(0 % of the variance)" in display.ax_.get_xlabel()

    def test_collinear_rows_are_drawn(self):
        line = np.outer(np.linspace(-1.0, 1.0, 20), [1.0, 2.0, 2.0])
        y = (line[:, 0] > 0.1).astype(int)
        model = MaxMarginClassifier(fit_intercept=False, random_state=0).fit(line, y)
        display = DecisionSurfaceDisplay.from_estimator(model, line, y, plane="weights", grid_resolution=5)
        assert np.isfinite(display.places).all()
        assert display.places[:, 1] == pytest.approx(np.zeros(20), abs=1e-12)

    def test_invalid_numbers_and_models_are_refused(self, model):
        draw = DecisionSurfaceDisplay.from_estimator
        with pytest.raises(NotFittedError):
            draw(MaxMarginClassifier(), X, Y)
        with pytest.raises(ValueError, match="a plane takes two features"):
            draw(MaxMarginClassifier(random_state=0).fit(X[:, :1], Y), X[:, :1], Y)
        with pytest.raises(ValueError, match="plane must be a pair of features"):
            draw(model, X, Y, plane="axes")
        with pytest.raises(ValueError, match="two different features"):
            draw(model, X, Y, plane=(1, 1))
        with pytest.raises(ValueError, match="number from 0 to 2; got 3"):
            draw(model, X, Y, plane=(1, 3))
        with pytest.raises(ValueError, match="no feature called 'weight'"):
            draw(model, X, Y, plane=("weight", 0))
        with pytest.raises(ValueError, match="a name for each of 3 features; got 2"):
            draw(model, X, Y, feature_names=["a", "b"])
        with pytest.raises(ValueError, match='center must be "mean" or "median"'):
            draw(model, X, Y, center="mode")
        with pytest.raises(ValueError, match="grid_resolution must be a whole number above 1; got 1"):
            draw(model, X, Y, grid_resolution=1)
        with pytest.raises(ValueError, match="takes one linear function"):
            draw(KernelMaxMarginClassifier().fit(X, Y), X, Y, plane="weights")
        with pytest.raises(ValueError, match="takes one linear function"):
            draw(MaxMarginClassifier(random_state=0).fit(X, THREE_CLASSES), X, THREE_CLASSES, plane="weights")
        gram = X @ X.T
        with pytest.raises(ValueError, match="a precomputed kernel knows no features"):
            draw(KernelMaxMarginClassifier(kernel="precomputed").fit(gram, Y), gram, Y)
        with pytest.raises(ValueError, match="values for each of 3 x 2 points"):
            DecisionSurfaceDisplay(
                [0, 1], [0, 1, 2], [[1, 2], [3, 4]], places=[[0, 0]], codes=[0], classes=["a", "b"]
            ).plot()


class TestSparsity:
    def test_weights_above_a_share_of_the_largest_are_counted(self):
        coefs = [[4.0, 0.0, 0.003], [4.0, -1.0, 0.005], [-0.1, 0.0, 0.0]]
        display = SparsityDisplay.from_data([2, 1, np.inf], coefs, accuracy=[0.5, 0.6, 0.7])
        assert display.ps.tolist() == [1.0, 2.0, np.inf]  # sorted
        assert display.counts.tolist() == [3, 1, 1]
        assert display.count_line_.get_ydata().tolist() == [3, 1, 1]
        assert display.accuracy_line_.get_ydata().tolist() == [0.6, 0.5, 0.7]
        assert display.interval_ is None
        assert [label.get_text() for label in display.axes_[0].get_xticklabels()] == ["1", "2", "∞"]
        assert display.axes_[0].get_title(loc="left") == "fewest weights at p = 2: 1 of 3 matter"
        assert SparsityDisplay.from_data([2, 1, np.inf], coefs, threshold=0.0).counts.tolist() == [3, 2, 1]
        # a feature counts if any class uses it
        assert SparsityDisplay.from_data([2], [[[1.0, 0.0, 0.0], [0.0, 1.0, 0.0]]]).counts.tolist() == [2]

    def test_fits_are_drawn_in_the_order_of_p(self):
        fits = [MaxMarginClassifier(p=p, random_state=0).fit(X, Y) for p in (np.inf, 2)]
        display = SparsityDisplay.from_estimators(fits, X, Y)
        assert display.ps.tolist() == [2.0, np.inf]
        assert display.accuracy.tolist() == [fits[1].score(X, Y), fits[0].score(X, Y)]
        above, below = display.interval_
        assert above.get_ydata().tolist() == [fit.certificate_.upper for fit in fits[::-1]]
        assert below.get_ydata().tolist() == [fit.certificate_.lower for fit in fits[::-1]]
        assert display.panels == 3
        several = MaxMarginClassifier(random_state=0).fit(X, THREE_CLASSES)
        _, ax = plt.subplots()
        single = SparsityDisplay.from_estimators([several], axes=ax)
        assert single.axes_ == (ax,)
        assert single.interval_ is None

    def test_invalid_numbers_and_models_are_refused(self):
        with pytest.raises(ValueError, match="no fit is given"):
            SparsityDisplay.from_estimators([])
        with pytest.raises(NotFittedError):
            SparsityDisplay.from_estimators([MaxMarginClassifier()])
        with pytest.raises(ValueError, match=r"in \[0, 1\); got 1"):
            SparsityDisplay.from_data([2], [[1.0]], threshold=1)
        with pytest.raises(ValueError, match="weights of each of 2 fits"):
            SparsityDisplay.from_data([1, 2], [[1.0]])
        with pytest.raises(ValueError, match="takes 2 axes; got 1"):
            SparsityDisplay.from_data([2], [[1.0]], accuracy=[1.0], axes=plt.subplots()[1])


class TestPath:
    COEFS = np.outer([1.0, 2.0, 3.0], [0.1, -2.0, 0.5, 0.0, 1.0, 0.2, 0.3, 0.4])

    def test_points_of_a_path_are_drawn_in_the_order_of_C(self):
        display = PathDisplay(
            [10, 0.1, 1], self.COEFS[[2, 0, 1]], [9.0, 1.0, 5.0], [9.0, 1.1, 5.1], scores=[0.3, 0.1, 0.2]
        ).plot()
        assert len(display.weight_lines_) == 8
        for j, line in enumerate(display.weight_lines_):
            assert line.get_xdata().tolist() == [0.1, 1.0, 10.0]
            assert line.get_ydata().tolist() == self.COEFS[:, j].tolist()
        above, below = display.interval_
        assert above.get_ydata().tolist() == [1.1, 5.1, 9.0]
        assert below.get_ydata().tolist() == [1.0, 5.0, 9.0]
        assert display.score_line_.get_ydata().tolist() == [0.1, 0.2, 0.3]
        assert display.axes_[0].get_xscale() == "log"
        legend = display.axes_[0].get_legend()
        # ordered by the largest weight along the path
        assert [text.get_text() for text in legend.get_texts()] == [
            f"feature {j}" for j in (1, 4, 2, 7, 6, 5)
        ]
        assert legend.get_title().get_text() == "2 more in grey"
        assert display.axes_[0].get_title(loc="left") == "bounds at most 10 % apart along C"

    def test_varying_parameter_of_a_path_is_detected(self):
        path = SimpleNamespace(
            Cs=np.array([0.1, 1.0, 10.0]),
            ps=np.array([2.0, 2.0, 2.0]),
            coefs_=self.COEFS,
            lower_=np.array([1.0, 2.0, 3.0]),
            upper_=np.array([1.0, 2.0, 3.0]),
        )
        names = list("abcdefgh")
        display = PathDisplay.from_path(path, feature_names=names)
        assert display.parameter == "C"
        assert display.panels == 2
        assert display.axes_[0].get_legend().get_texts()[0].get_text() == "b"
        path.Cs, path.ps = 1.0, np.array([1.0, 2.0, np.inf])
        display = PathDisplay.from_path(path, scores=[0.5, 0.6, 0.7], name="mine")
        assert display.parameter == "p"
        assert [label.get_text() for label in display.axes_[2].get_xticklabels()] == ["1", "2", "∞"]
        assert display.axes_[0].get_title(loc="left") == "mine"
        path.Cs = [1.0, 2.0, 3.0]
        with pytest.raises(ValueError, match="both C and p change"):
            PathDisplay.from_path(path)

    @pytest.mark.parametrize(
        ("parameter", "grid"),
        [("C", {"Cs": [10.0, 0.1, 1.0]}), ("p", {"Cs": [1.0], "ps": [2.0, np.inf, 1.5]})],
    )
    def test_models_of_margin_path_are_drawn(self, parameter, grid):
        path = margin_path(X, Y, random_state=0, **grid)
        display = PathDisplay.from_path(path, feature_names=["a", "b", "c"])
        assert display.parameter == parameter
        values = path.Cs if parameter == "C" else path.ps
        assert display.values.tolist() == values.tolist()
        order = np.argsort(values)
        assert order.tolist() != [0, 1, 2]
        for j, line in enumerate(display.weight_lines_):
            assert line.get_ydata().tolist() == [path[k].coef_[0, j] for k in order]
        above, below = display.interval_
        assert above.get_ydata().tolist() == [path[k].certificate_.upper for k in order]
        assert below.get_ydata().tolist() == [path[k].certificate_.lower for k in order]
        display.figure_.canvas.draw()

    def test_hard_margin_point_is_last_and_drawn_without_bounds(self):
        display = PathDisplay.from_path(margin_path(X, Y, Cs=[np.inf, 1.0, 0.1], random_state=0))
        place = display.weight_lines_[0].get_xdata()
        assert place.tolist() == [0.1, 1.0, 10.0]
        assert all(np.isfinite(line.get_ydata()).all() for line in display.weight_lines_)
        for line in display.interval_:
            assert np.isfinite(line.get_ydata()).tolist() == [True, True, False]
        assert [text.get_text() for text in display.axes_[1].texts] == ["∞"]
        assert display.axes_[1].get_ylabel() == "least objective"
        display.figure_.canvas.draw()

    def test_paths_of_hard_margins_are_labelled_with_the_margin(self):
        path = margin_path(X, Y, Cs=[np.inf], ps=[2.0, np.inf], random_state=0)
        display = PathDisplay.from_path(path)
        assert display.axes_[1].get_ylabel() == "widest margin"
        assert display.interval_[1].get_ydata().tolist() == [model.certificate_.lower for model in path]
        path = margin_path(X, Y, Cs=[np.inf], random_state=0)
        assert PathDisplay.from_path(path).weight_lines_[0].get_xdata().tolist() == [1.0]

    def test_multiclass_paths_are_refused(self, model):
        with pytest.raises(ValueError, match=r"A path that margin_path found .*; got MaxMarginClassifier"):
            PathDisplay.from_path(model)
        with pytest.raises(ValueError, match="a path of two classes is drawn; got one of 3"):
            PathDisplay.from_path(margin_path(X, THREE_CLASSES, Cs=[0.1, 1.0], random_state=0))

    def test_invalid_numbers_and_models_are_refused(self):
        with pytest.raises(ValueError, match="for each of 2 points"):
            PathDisplay([1, 2], [[1.0]], [1, 2], [1, 2]).plot()
        with pytest.raises(ValueError, match="a name for each of 1 features; got 2"):
            PathDisplay([1], [[1.0]], [1], [1], feature_names=["a", "b"]).plot()
        with pytest.raises(ValueError, match='parameter must be "C" or "p"'):
            PathDisplay([1], [[1.0]], [1], [1], parameter="gamma").plot()
        with pytest.raises(ValueError, match="takes 2 axes; got 1"):
            PathDisplay([1], [[1.0]], [1], [1]).plot(axes=plt.subplots()[1])
        assert (
            PathDisplay([1], [[1.0]], [np.nan], [np.nan], name="").plot().axes_[0].get_title(loc="left") == ""
        )
