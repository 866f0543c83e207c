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

from maxmargin import MaxMarginClassifier, plots

FOLDER = Path(__file__).resolve().parents[1] / "plots" / "baseline"
DPI = 50
X, Y = load_iris(return_X_y=True)

PICTURES: dict[str, Callable[[], Figure]] = {}


def picture(function: Callable[[], Figure]) -> Callable[[], Figure]:
    """Enter a function that draws a picture under its name."""
    PICTURES[function.__name__] = function
    return function


@picture
def bounds() -> Figure:
    lower, upper = [-np.inf, 12.0, 28.0, 30.4, 31.0323], [310.0, 61.0, 34.0, 31.3, 31.0329]
    seconds = [0.001, 0.003, 0.005, 0.008, 0.011]
    display = plots.BoundsDisplay(seconds, lower, upper, tol=1e-3, name="squared hinge, C = 1")
    return display.plot().figure_


@picture
def algorithms() -> Figure:
    updates = {"dcd": [100, 6e3, 8e3, 1.4e4], "mpu": [90, 5e3, 1.8e4, 2.6e4]}
    seconds = {"dcd": [0.0012, 0.004, 0.006, 0.012], "mpu": [0.001, 0.003, 0.011, 0.024]}
    values = {"dcd": [50.0, 40.0, 31.9, 31.04], "mpu": [51.0, 44.0, 31.2, 31.05]}
    display = plots.AlgorithmComparisonDisplay(
        updates, seconds, values, best=31.03, tol=1e-3, name="squared hinge"
    )
    return display.plot().figure_


@picture
def margins() -> Figure:
    model = MaxMarginClassifier(random_state=0).fit(X, Y)
    return plots.MarginDisplay.from_estimator(model, X, Y, label=2).figure_


@picture
def path() -> Figure:
    Cs = 10.0 ** np.arange(-2, 3)
    coefs = np.outer(np.linspace(0.2, 1.0, 5), np.cos(np.arange(9))) + 0.1 * np.sin(np.arange(45)).reshape(
        5, 9
    )
    upper = np.array([0.4, 1.5, 5.5, 11.0, 12.5])
    display = plots.PathDisplay(Cs, coefs, 0.93 * upper, upper, scores=[0.947, 0.954, 0.958, 0.944, 0.941])
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
