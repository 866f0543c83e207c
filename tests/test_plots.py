"""Pictures: bounds against time, elimination of features, rows that stay correct."""

from __future__ import annotations

import sys

import numpy as np
import pytest
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression

from maxmargin import MarginRFE, MaxMarginClassifier, OnlineMarginClassifier
from maxmargin.plots import BoundsDisplay, EliminationDisplay, RobustnessDisplay

matplotlib = pytest.importorskip("matplotlib")
matplotlib.use("Agg")
plt = pytest.importorskip("matplotlib.pyplot")

RNG = np.random.default_rng(0)
X = RNG.normal(size=(80, 3))
Y = np.where(X[:, 0] + 0.5 * RNG.normal(size=80) > 0.0, 1, -1)


@pytest.fixture(autouse=True)
def close_figures():
    yield
    plt.close("all")


@pytest.fixture(scope="module")
def model():
    return MaxMarginClassifier(random_state=0).fit(X, Y)


def test_draws_both_bounds_of_every_report(model):
    display = BoundsDisplay.from_estimator(model)
    time = display.upper_line_.get_xdata()
    unit, name = (
        (1e3, "ms") if model.history_[-1].seconds < 1.0 else (1.0, "s")
    )  # a first fit may have to compile
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


def test_draws_into_given_axes_and_writes_a_picture(model, tmp_path):
    figure, (left, right) = plt.subplots(1, 2)
    display = BoundsDisplay.from_estimator(model, ax=right, name="mine")
    assert display.ax_ is right
    assert not left.lines
    assert display.plot(ax=left, name="again").ax_ is left
    figure.savefig(tmp_path / "a.png")
    assert (tmp_path / "a.png").stat().st_size > 1000


def test_hard_margin_bounds_the_margin():
    y = np.where(X[:, 0] > 0.0, 1, -1)
    display = BoundsDisplay.from_estimator(MaxMarginClassifier(C=np.inf, random_state=0).fit(X, y))
    assert display.ax_.get_title(loc="left").startswith("hard margin: ")
    assert display.ax_.get_ylabel().endswith("the best margin")


def test_one_class_of_several():
    y = np.digitize(X[:, 0], [-0.5, 0.5])
    model = MaxMarginClassifier(random_state=0).fit(X, y)
    display = BoundsDisplay.from_estimator(model, label=1)
    assert len(display.seconds) == sum(report.label == 1 for report in model.history_)
    assert "class 1 against the rest" in display.ax_.get_title(loc="left")
    BoundsDisplay.from_estimator(model)  # the one with the largest gap
    with pytest.raises(ValueError, match=r"label must be one of the classes .*got 7"):
        BoundsDisplay.from_estimator(model, label=7)


def test_unfinished_fit_shows_its_interval():
    display = BoundsDisplay([1, 20, 60], [-np.inf, 1.0, 2.0], [9.0, 8.0, 3.0], name="a").plot()
    assert display.ax_.get_title(loc="left") == "a: 2 ≤ best objective ≤ 3"
    assert display.ax_.get_xlabel() == "time (s)"
    assert np.isnan(display.lower_line_.get_ydata()[0])
    display.figure_.canvas.draw()


def test_what_cannot_be_drawn(model):
    with pytest.raises(NotFittedError):
        BoundsDisplay.from_estimator(MaxMarginClassifier())
    with pytest.raises(ValueError, match="label must be None for two classes"):
        BoundsDisplay.from_estimator(model, label=1)
    with pytest.raises(ValueError, match="there is nothing to draw"):
        BoundsDisplay([1.0], [-np.inf], [1.0]).plot()


def test_without_matplotlib(model, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)
    with pytest.raises(ImportError, match=r"Pictures need matplotlib: pip install 'maxmargin\[plot\]'"):
        BoundsDisplay.from_estimator(model)


class TestElimination:
    def test_draws_accuracy_and_bounds_of_every_set(self, tmp_path):
        selector = MarginRFE("auto", p=2, cv=3, step=1, random_state=0).fit(X, Y)
        display = EliminationDisplay.from_estimator(selector)
        accuracy, bounds = display.axes_
        assert display.accuracy_line_.get_xdata().tolist() == [3, 2, 1]
        assert display.accuracy_line_.get_ydata().tolist() == selector.cv_results_["mean_test_score"].tolist()
        assert display.lower_line_.get_ydata().tolist() == [stage.lower for stage in selector.path_]
        assert display.upper_line_.get_ydata().tolist() == [stage.upper for stage in selector.path_]
        assert accuracy.get_title(loc="left") == f"{selector.n_features_} of 3 features are kept"
        assert bounds.get_ylabel() == "least objective"
        display.figure_.savefig(tmp_path / "a.png")

    def test_draws_what_is_known_into_given_axes(self):
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

    def test_what_cannot_be_drawn(self):
        with pytest.raises(NotFittedError):
            EliminationDisplay.from_estimator(MarginRFE())
        with pytest.raises(ValueError, match="there is nothing to draw"):
            EliminationDisplay([2, 1], [np.nan] * 2, [np.nan] * 2).plot()


class TestRobustness:
    def test_share_of_rows_that_stay_correct(self, model):
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

    def test_streams_and_rows_that_nothing_changes(self):
        stream = OnlineMarginClassifier(random_state=0).fit(X, Y)
        _, ax = plt.subplots()
        assert RobustnessDisplay.from_estimator(stream, X, Y, ax=ax).ax_ is ax
        with pytest.raises(ValueError, match="inconsistent numbers of samples"):
            RobustnessDisplay.from_estimator(stream, X, Y[:5])
        with pytest.raises(ValueError, match="knows no class 7"):
            RobustnessDisplay.from_estimator(stream, X, np.full(len(Y), 7))
        with pytest.raises(ValueError, match="LogisticRegression has no certified_radius"):
            RobustnessDisplay.from_estimator(LogisticRegression(), X, Y)
        with pytest.raises(ValueError, match="A MarginRFE is drawn here; got LogisticRegression"):
            EliminationDisplay.from_estimator(LogisticRegression())
        display = RobustnessDisplay([np.inf, 1.0, 2.0], [True, True, False], p=np.inf).plot()
        assert display.line_.get_ydata() == pytest.approx([2 / 3, 1 / 3, 1 / 3])
        assert display.ax_.get_xlabel() == "size of the perturbation, ∞-norm"
        assert RobustnessDisplay([np.inf], [True]).plot(name="all").line_.get_ydata().tolist() == [1.0, 1.0]

    def test_what_cannot_be_drawn(self):
        with pytest.raises(NotFittedError):
            RobustnessDisplay.from_estimator(MaxMarginClassifier(), X, Y)
        with pytest.raises(ValueError, match="one radius for every row"):
            RobustnessDisplay([1.0], [True, False]).plot()
