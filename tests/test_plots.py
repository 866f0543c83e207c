"""The picture of bounds against time."""

from __future__ import annotations

import sys

import numpy as np
import pytest
from sklearn.exceptions import NotFittedError

from maxmargin import MaxMarginClassifier
from maxmargin.plots import BoundsDisplay

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
    assert np.array_equal(time, [1e3 * report.seconds for report in model.history_])
    assert (display.upper_line_.get_ydata() >= 0.0).all()
    assert (display.lower_line_.get_ydata() <= 0.0).all()
    assert display.best_ == pytest.approx(model.certificate_.upper, rel=1e-3)
    first = model.history_[0]
    distance = (first.upper - display.best_) / display.best_
    assert display.upper_line_.get_ydata()[0] == pytest.approx(distance)
    assert display.figure_ is display.ax_.figure
    assert display.ax_.get_xlabel() == "time (ms)"
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
