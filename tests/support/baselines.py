"""Reproducible pictures and their baselines; `make baselines` redraws the baselines.

Pictures are made of fixed numbers, or of fits whose optimum is unique and reached to rounding.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import matplotlib
import numpy as np
from matplotlib.figure import Figure
from PIL import Image
from PIL.PngImagePlugin import PngInfo
from sklearn.datasets import load_iris

from maxmargin import KernelMaxMarginClassifier, MaxMarginClassifier
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

FOLDER = Path(__file__).resolve().parents[1] / "plots" / "baseline"
DPI = 50
X, Y = load_iris(return_X_y=True)
PETALS = X[50:, 2:]  # two overlapping classes
SPECIES = np.array(["versicolor", "virginica"])[Y[50:] - 1]
NAMES = ("petal length", "petal width")


PICTURES: dict[str, Callable[[], Figure]] = {}


def picture(function: Callable[[], Figure]) -> Callable[[], Figure]:
    """Enter a function that draws a picture under its name."""
    PICTURES[function.__name__] = function
    return function


@picture
def bounds() -> Figure:
    lower, upper = [-np.inf, 12.0, 28.0, 30.4, 31.0323], [310.0, 61.0, 34.0, 31.3, 31.0329]
    seconds = [0.001, 0.003, 0.005, 0.008, 0.011]
    display = BoundsDisplay(seconds, lower, upper, tol=1e-3, name="squared hinge, C = 1")
    return display.plot().figure_


@picture
def algorithms() -> Figure:
    updates = {"dcd": [100, 6e3, 8e3, 1.4e4], "mpu": [90, 5e3, 1.8e4, 2.6e4]}
    seconds = {"dcd": [0.0012, 0.004, 0.006, 0.012], "mpu": [0.001, 0.003, 0.011, 0.024]}
    values = {"dcd": [50.0, 40.0, 31.9, 31.04], "mpu": [51.0, 44.0, 31.2, 31.05]}
    display = AlgorithmComparisonDisplay(updates, seconds, values, best=31.03, tol=1e-3, name="squared hinge")
    return display.plot().figure_


@picture
def elimination() -> Figure:
    sizes = [30, 20, 12, 7, 4, 2, 1]
    lower, upper = np.array([[31.0, 32, 40, 60, 82, 120, 147], [31.1, 32.3, 41, 61, 84, 125, 149]])
    accuracy, spread = [0.965, 0.97, 0.96, 0.95, 0.93, 0.92, 0.9], [0.01, 0.01, 0.01, 0.02, 0.02, 0.03, 0.04]
    display = EliminationDisplay(
        sizes,
        lower,
        upper,
        accuracy=accuracy,
        accuracy_std=spread,
        kept=20,
        name="20 of 30 features are kept",
    )
    return display.plot().figure_


@picture
def robustness() -> Figure:
    model = MaxMarginClassifier(random_state=0).fit(PETALS, SPECIES)
    return RobustnessDisplay.from_estimator(model, PETALS, SPECIES).figure_


@picture
def margins() -> Figure:
    model = MaxMarginClassifier(random_state=0).fit(X, Y)
    return MarginDisplay.from_estimator(model, X, Y, label=2).figure_


@picture
def surface() -> Figure:
    model = KernelMaxMarginClassifier(gamma=1.0).fit(PETALS, SPECIES)
    display = DecisionSurfaceDisplay.from_estimator(model, PETALS, SPECIES, feature_names=NAMES)
    return display.figure_


@picture
def classes() -> Figure:
    model = KernelMaxMarginClassifier(multi_class="ovo").fit(X, Y)
    display = DecisionSurfaceDisplay.from_estimator(model, X, Y)
    return display.figure_


@picture
def sparsity() -> Figure:
    counts, accuracy = [30, 30, 28, 25, 12], [0.944, 0.958, 0.954, 0.954, 0.951]
    lower, upper = [3.1, 5.4, 10.2, 13.7, 17.6], [3.2, 5.5, 10.4, 13.8, 17.7]
    display = SparsityDisplay([1.5, 2, 4, 8, np.inf], counts, 30, lower=lower, upper=upper, accuracy=accuracy)
    return display.plot().figure_


@picture
def path() -> Figure:
    Cs = 10.0 ** np.arange(-2, 3)
    coefs = np.outer(np.linspace(0.2, 1.0, 5), np.cos(np.arange(9))) + 0.1 * np.sin(np.arange(45)).reshape(
        5, 9
    )
    upper = np.array([0.4, 1.5, 5.5, 11.0, 12.5])
    display = PathDisplay(Cs, coefs, 0.93 * upper, upper, scores=[0.947, 0.954, 0.958, 0.944, 0.941])
    return display.plot().figure_


def draw(name: str, path: Path) -> None:
    """Draw a picture in the default style of matplotlib, with its bundled font."""
    with matplotlib.rc_context():
        matplotlib.rcdefaults()
        PICTURES[name]().savefig(path, dpi=DPI, format="png")


def write_baseline(name: str, path: Path) -> None:
    """Draw a picture with 256 colours for a small file; the version of matplotlib is stored in it."""
    draw(name, path)
    with Image.open(path) as image:
        reduced = image.convert("RGB").quantize(256, kmeans=1, dither=Image.Dither.NONE)
    metadata = PngInfo()
    metadata.add_text("Software", f"matplotlib {matplotlib.__version__}")
    reduced.save(path, optimize=True, pnginfo=metadata)


def version_of(path: Path) -> str:
    """Return the major and minor version of matplotlib that drew a baseline."""
    with Image.open(path) as image:
        return ".".join(image.info["Software"].split()[1].split(".")[:2])


if __name__ == "__main__":
    FOLDER.mkdir(exist_ok=True)
    for name in PICTURES:
        write_baseline(name, FOLDER / f"{name}.png")
        print(FOLDER / f"{name}.png")
