"""Displays: lines, labels and titles of each picture, and refusal of invalid input."""

from __future__ import annotations

import io
import sys

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression

from maxmargin import KernelMaxMarginClassifier, MarginRFE, MaxMarginClassifier, compare, margin_path, plots
from maxmargin.plots import (
    BoundsDisplay,
    DecisionSurfaceDisplay,
    EliminationDisplay,
    MarginDisplay,
    PathDisplay,
)

matplotlib = pytest.importorskip("matplotlib")
matplotlib.use("Agg")
plt = pytest.importorskip("matplotlib.pyplot")

ROUNDING = 1e-12  # sums of at most 80 terms of size 10: 800 eps = 2e-13
RNG = np.random.default_rng(0)
X = RNG.normal(size=(80, 3))
Y = np.where(X[:, 0] + 0.5 * RNG.normal(size=80) > 0.0, 1, -1)
SEPARABLE = np.where(X[:, 0] > 0.0, 1, -1)
THREE_CLASSES = np.digitize(X[:, 0], [-0.5, 0.5])
PLACES = {"places": [[0, 0]], "codes": [0], "classes": ["a", "b"]}
NAN = [np.nan, np.nan]
surface, margins_of = DecisionSurfaceDisplay.from_estimator, MarginDisplay.from_estimator
robustness, sparsity = plots.RobustnessDisplay, plots.SparsityDisplay


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
        display = BoundsDisplay.from_estimator(model)
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
            # hundreds of decades apart
            (([1, 2], [5e-10, 7.4e-301], [6e-10, 7.5e-301]), "7.4e-301 ≤ best", "+$10^{-5}$"),
        ],
    )
    def test_titles_and_ticks(self, arguments, title, tick):
        display = BoundsDisplay(*arguments, name="a", tol=1e-3).plot()
        display.figure_.canvas.draw()
        assert title_of(display.ax_).startswith(f"a: {title}")
        assert tick in texts(display.ax_.get_yticklabels())
        low, high = display.ax_.get_ylim()
        assert -np.inf < low < 0.0 < np.nanmax(display.upper_line_.get_ydata()) <= high < np.inf
        if len(arguments[0]) == 1:
            assert texts(display.ax_.texts)[0].startswith("certified once, after ")

    def test_one_of_several_problems_is_drawn_into_given_axes(self, several):
        _, (left, right) = plt.subplots(1, 2)
        display = BoundsDisplay.from_estimator(several, label=1, ax=right)
        assert display.ax_ is right
        assert not left.lines
        assert len(display.seconds) == sum(report.label == 1 for report in several.history_)
        assert "class 1 against the rest" in title_of(right)
        gaps = dict(zip(several.classes_, [part.gap for part in several.certificate_], strict=True))
        widest = sum(report.label == max(gaps, key=gaps.get) for report in several.history_)
        assert len(BoundsDisplay.from_estimator(several).seconds) == widest

    def test_hard_margins_name_the_margin_and_proofs(self):
        hard = MaxMarginClassifier(C=np.inf, random_state=0)
        for labels, title in ((SEPARABLE, "hard margin: "), (Y, "hard margin: proved to have no separator")):
            display = BoundsDisplay.from_estimator(hard.fit(X, labels))
            assert title_of(display.ax_).startswith(title)
            assert display.ax_.get_ylabel().endswith("the best margin")


def test_names_of_users_are_drawn_literally():
    odd = [r"price in \$ $\foo$", "half \ud800 $_$", "over $50K", "under $5^{"]
    shown = " ".join(odd).replace("\ud800", "?")
    lines = {key: [1.0, 2.0] for key in odd}
    for figure, expected in (
        (BoundsDisplay([1, 2], [1.0, 2.0], [3.0, 2.5], name=" ".join(odd)).plot().figure_, [shown]),
        (EliminationDisplay([2, 1], [1, 2], [1, 2], name=" ".join(odd)).plot().figure_, [shown]),
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
        BoundsDisplay.from_estimator(model)


class TestElimination:
    def test_accuracy_and_bounds_of_every_feature_set_are_drawn(self):
        selector = MarginRFE("auto", p=2, cv=3, step=1, random_state=0).fit(X, Y)
        display = EliminationDisplay.from_estimator(selector)
        accuracy, bounds = display.axes_
        assert display.accuracy_line_.get_xdata().tolist() == [3, 2, 1]
        drawn = numbers(display.accuracy_line_, display.lower_line_, display.upper_line_)
        assert drawn[0] == selector.cv_results_["mean_test_score"].tolist()
        assert drawn[1:] == [[getattr(one, side) for one in selector.path_] for side in ("lower", "upper")]
        assert title_of(accuracy) == f"{selector.n_features_} of 3 features are kept"
        assert texts(accuracy.get_legend().get_texts()) == ["mean", "± deviation of folds", "kept"]
        assert bounds.get_ylabel() == "least objective"

    def test_accuracies_end_at_one_and_ticks_are_plain_numbers(self):
        options = {"accuracy": [0.99, 0.5, 0.5], "accuracy_std": [0.2, 0.6, 0.1]}
        display = EliminationDisplay([2000, 100, 1], [1e-6, 1, 9.0], [2e-6, 1, 10.0], **options).plot()
        (band,) = display.axes_[0].collections
        points = band.get_paths()[0].vertices[:, 1]
        assert (points.min(), points.max()) == (0.0, 1.0)
        assert display.axes_[1].get_yscale() == "log"
        display.figure_.canvas.draw()
        assert texts(display.axes_[0].get_xticklabels()) == ["1", "10", "100", "2000"]

    def test_missing_numbers_are_not_drawn_into_given_axes(self):
        selector = MarginRFE("auto", p=2, C=np.inf, n_features_to_select=1, step=1).fit(X, SEPARABLE)
        axes = plt.subplots(1, 2)[1]
        display = EliminationDisplay.from_estimator(selector, axes=axes)
        assert (display.axes_, display.accuracy_line_) == ((axes[0],), None)
        assert axes[0].get_ylabel() == "largest margin"
        only = EliminationDisplay([2, 1], NAN, NAN, accuracy=[0.5, 0.6]).plot()
        assert (only.upper_line_, only.panels) == (None, 1)


class TestRobustness:
    def test_curve_is_the_share_of_rows_that_stay_correct(self, model):
        display = robustness.from_estimator(model, X, Y)
        radii, right = model.certified_radius(X), model.predict(X) == Y
        radius, share = display.line_.get_data()
        assert share[0] == model.score(X, Y) == display.share(0.0)
        assert share[-1] == 0.0
        middle = float(np.median(radii))
        assert display.share(middle) == np.mean(right & (radii >= middle))
        assert share[np.searchsorted(radius, middle) - 1] == pytest.approx(
            display.share(middle), abs=ROUNDING
        )

    def test_infinite_radii_and_the_radius_of_half(self):
        display = robustness([np.inf, 1.0, 2.0], [True, True, False], p=np.inf).plot()
        # two of three rows are correct; the second has radius 1
        assert display.radius_of_half == 1.0
        assert display.share(1.0) >= 0.5 > display.share(1.0 + 1e-9)
        assert title_of(display.ax_) == "66.7 % of the rows are correct; half of all rows stay so up to 1"
        assert display.line_.get_ydata() == pytest.approx([2 / 3, 1 / 3, 1 / 3], abs=ROUNDING)
        assert "(∞-norm" in display.ax_.get_xlabel()


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
        assert MarginDisplay([0.0, 0.0], [True, False]).errors == 1  # f = 0 is of the negative side
        rounded = MarginDisplay([1.0 - 1e-13, 1.0, 1.0 + 1e-13, 0.5, 2.0], np.ones(5, bool)).plot()
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


class TestSurface:
    @pytest.mark.parametrize(
        ("plane", "center"), [(("c", 0), "median"), ("components", "mean"), ("weights", "median")]
    )
    def test_surface_is_an_exact_section_of_the_decision_function(self, plane, center):
        rows, model = X + 5.0, MaxMarginClassifier(random_state=0).fit(X + 5.0, Y)
        options = {"plane": plane, "center": center, "grid_resolution": 7, "feature_names": list("abc")}
        display, sparse = (surface(model, data, Y, **options) for data in (rows, sp.csr_matrix(rows)))
        # the sign of a component is arbitrary
        assert np.abs(sparse.places) == pytest.approx(np.abs(display.places), rel=0.0, abs=1e-10)
        assert center in display.ax_.get_xlabel()
        middle, w, b = getattr(np, center)(rows, axis=0), model.coef_[0], model.intercept_[0]
        if plane == ("c", 0):
            grid = np.tile(middle, (7, 7, 1))
            grid[:, :, 2], grid[:, :, 0] = display.first[None, :], display.second[:, None]
            assert display.values == pytest.approx(grid @ w + b, abs=ROUNDING)
            assert np.array_equal(display.places, rows[:, [2, 0]])
            assert display.ax_.get_xlabel().startswith("c\n(section at the ")
            return
        # f is affine on the plane, with f(center) at 0 and a slope of at most |w|
        s, t = np.meshgrid(display.first, display.second)
        grid = np.column_stack([s.ravel(), t.ravel(), np.ones(49)])
        flat = np.linalg.lstsq(grid, display.values.ravel())[0]
        assert flat[2] == pytest.approx(middle @ w + b, abs=ROUNDING)
        unit = w / np.linalg.norm(w) if plane == "weights" else np.zeros(3)
        # the directions are the widest, for weights the second is the widest across w
        variances = np.linalg.eigvalsh(np.cov((rows - np.outer(rows @ unit, unit)).T, bias=True))[::-1]
        if plane == "weights":
            assert flat[:2] == pytest.approx([np.linalg.norm(w), 0.0], abs=ROUNDING)
            scores = flat[0] * display.places[:, 0] + flat[2]
            assert scores == pytest.approx(model.decision_function(rows), abs=ROUNDING)
            assert display.places[:, 1].var() == pytest.approx(variances[0], abs=ROUNDING)
        else:
            assert display.places.var(axis=0) == pytest.approx(variances[:2], abs=ROUNDING)

    def test_surface_of_a_kernel_model_shows_margin_support_and_errors(self):
        fitted = KernelMaxMarginClassifier().fit(X, Y)
        display = surface(fitted, X, Y, plane=(0, 1))
        row = np.array([display.first[77], display.second[31], X[:, 2].mean()])
        assert display.values[31, 77] == pytest.approx(fitted.decision_function([row])[0], abs=ROUNDING)
        assert display.contours_.levels.tolist() == [-1.0, 0.0, 1.0]
        assert display.points_["class 1"].get_offsets().shape == (np.sum(Y == 1), 2)
        rings, crosses = display.support_points_.get_offsets(), display.wrong_points_.get_offsets()
        assert np.asarray(rings) == pytest.approx(X[fitted.certificate_.support][:, :2], abs=ROUNDING)
        assert np.asarray(crosses) == pytest.approx(X[fitted.predict(X) != Y][:, :2], abs=ROUNDING)
        right = 100.0 * fitted.score(X, Y)
        assert title_of(display.ax_) == f"{right:.3g} % of 80 rows are classified as labelled"

    @pytest.mark.parametrize("scheme", ["ovr", "ovo"])
    def test_areas_of_several_classes_equal_the_predictions_and_have_names(self, scheme):
        fitted = KernelMaxMarginClassifier(multi_class=scheme).fit(X[:, :2], THREE_CLASSES)
        display = surface(fitted, X[:, :2], THREE_CLASSES, grid_resolution=21)
        grid = np.stack(np.meshgrid(display.first, display.second), axis=-1).reshape(-1, 2)
        assert np.array_equal(display.values.reshape(-1, 3).argmax(axis=1), fitted.predict(grid))
        assert fitted.predict([text.get_position() for text in display.ax_.texts]).tolist() == [0, 1, 2]
        assert texts(display.ax_.texts) == ["0", "1", "2"]
        assert (display.ax_.get_xlabel(), display.ax_.get_ylabel()) == ("feature 0", "feature 1")
        label = fitted.certificate_.classes[0]
        one = surface(fitted, X[:, :2], THREE_CLASSES, label=label)
        assert one.contours_ is not None


class TestSparsity:
    def test_weights_above_a_share_of_the_largest_are_counted(self):
        coefs = [[4.0, 0.0, 0.003], [4.0, -1.0, 0.005], [-0.1, 0.0, 0.0]]
        display = sparsity.from_data([2, 1, np.inf], coefs, accuracy=[0.5, 0.6, 0.7])
        assert numbers(display.count_line_, display.accuracy_line_) == [[3, 1, 1], [0.6, 0.5, 0.7]]  # sorted
        assert texts(display.axes_[0].get_xticklabels()) == ["1", "2", "∞"]
        assert title_of(display.axes_[0]) == "fewest weights at p = 2: 1 of 3 matter"
        assert sparsity.from_data([2, 1, np.inf], coefs, threshold=0.0).counts.tolist() == [3, 2, 1]
        # a feature counts if any class uses it
        assert sparsity.from_data([2], [[[1.0, 0.0, 0.0], [0.0, 1.0, 0.0]]]).counts.tolist() == [2]


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
        display = PathDisplay.from_path(path, feature_names=np.array(["a", "b", "c"]))
        order = np.argsort(path.Cs if parameter == "C" else path.ps)
        assert (display.parameter, display.axes_[1].get_ylabel()) == (parameter, ylabel)
        assert numbers(*display.weight_lines_) == [[path[k].coef_[0, j] for k in order] for j in range(3)]
        sides = [[getattr(path[k].certificate_, side) for k in order] for side in ("upper", "lower")]
        assert numbers(*display.interval_) == sides
        if parameter == "p":
            assert texts(display.axes_[0].get_xticklabels())[-1] == "∞"

    def test_hard_margin_point_is_last_and_drawn_without_bounds(self):
        path = margin_path(X, SEPARABLE, Cs=[np.inf, 1.0, 0.01], random_state=0)
        display = PathDisplay.from_path(path)
        display.figure_.canvas.draw()
        assert display.weight_lines_[0].get_xdata().tolist() == [0.01, 1.0, 10.0]
        for line in display.interval_:
            assert np.isfinite(line.get_ydata()).tolist() == [True, True, False]
        assert texts(display.axes_[1].texts) == ["∞"]
        wide = PathDisplay([1, 2, 3], [[1.0], [1.0], [100.0]], [1] * 3, [1] * 3).plot()
        assert wide.axes_[0].get_yscale() == "symlog"


OVO = {"multi_class": "ovo"}
POINT, POINTS = ([1], [[1.0]], [1], [1]), ([1, 2], [[1.0]], [1, 2], [1, 2])
REFUSED = {
    "label must be None for two classes": lambda m, s: BoundsDisplay.from_estimator(m, label=1),
    r"one of the classes .*got \(0, 1\)": lambda m, s: BoundsDisplay.from_estimator(s, label=(0, 1)),
    "nothing to draw: no report": lambda m, s: BoundsDisplay([1.0], [-np.inf], [1.0]).plot(),
    "no algorithm completed a round": lambda m, s: compare(
        X, Y, ["decomposition"], kernel="rbf", C=1.0, max_time=1e-9
    ).plot(),
    "A MarginRFE is drawn": lambda m, s: EliminationDisplay.from_estimator(LogisticRegression()),
    "no certified_radius": lambda m, s: robustness.from_estimator(LogisticRegression(), X, Y),
    "y holds the class 7": lambda m, s: robustness.from_estimator(m, X, np.full(80, 7)),
    "rows need one radius and label": lambda m, s: robustness([1.0], [True, False]).plot(),
    r"samples: \[80, 80, 3\]": lambda m, s: margins_of(m, X, Y, sample_weight=np.ones(3)),
    "column 0 is missing": lambda m, s: margins_of(m, X * [np.nan, 1, 1], Y),
    "margins must be finite": lambda m, s: MarginDisplay([1.0, np.inf], [True, False]).plot(),
    "no row is of class 0 or of class 1": lambda m, s: margins_of(
        KernelMaxMarginClassifier(**OVO).fit(X, THREE_CLASSES), X[:1], [2], label=(0, 1)
    ),
    "a plane takes two features": lambda m, s: surface(clone(m).fit(X[:, :1], Y), X[:, :1], Y),
    "a precomputed kernel": lambda m, s: surface(
        KernelMaxMarginClassifier(kernel="precomputed").fit(X @ X.T, Y), X @ X.T, Y
    ),
    "value at each point": lambda m, s: DecisionSurfaceDisplay([0], [0, 1, 2], [[1]], **PLACES).plot(),
    "plane must be a pair": lambda m, s: surface(m, X, Y, plane="axes"),
    "two different features": lambda m, s: surface(m, X, Y, plane=(1, 1)),
    "takes one linear function": lambda m, s: surface(s, X, THREE_CLASSES, plane="weights"),
    "from 0 to 2; got 3": lambda m, s: surface(m, X, Y, plane=(1, 3)),
    'must be "mean" or': lambda m, s: surface(m, X, Y, center="mode"),
    "above 1; got 1": lambda m, s: surface(m, X, Y, grid_resolution=1),
    "no fit is given": lambda m, s: sparsity.from_estimators([]),
    r"in \[0, 1\); got 1": lambda m, s: sparsity.from_data([2], [[1.0]], threshold=1),
    "takes 2 axes; got 1": lambda m, s: PathDisplay(*POINT).plot(axes=plt.subplots()[1]),
    "A path that margin_path found": lambda m, s: PathDisplay.from_path(m),
    "a path of two classes": lambda m, s: PathDisplay.from_path(margin_path(X, THREE_CLASSES, Cs=[0.1])),
    "both C and p change": lambda m, s: PathDisplay.from_path(margin_path(X, Y, Cs=[0.1, 1], ps=[2, 3])),
    "for each of 2 points": lambda m, s: PathDisplay(*POINTS).plot(),
}


@pytest.mark.parametrize("expected", REFUSED)
def test_invalid_numbers_and_models_are_refused(expected, model, several):
    with pytest.raises(ValueError, match=expected):
        REFUSED[expected](model, several)
