"""Base classes of the displays, and their common style: colours that colour-blind readers can tell apart."""

from __future__ import annotations

import textwrap
from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass, field
from importlib import import_module
from typing import Any, ClassVar, Self

import numpy as np

from ..problem.problem import Problem

# the palette of Okabe and Ito, without its yellow, which is hard to see on white paper, and the colour of text
CYCLE = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#1f2933")
LOWER, UPPER, GOAL = CYCLE[:3]
INK = CYCLE[-1]
SHADE = "#94a3b8"
MARKERS = "os^vD<>phXP*"

LEGEND_ABOVE: dict[str, Any] = {
    "loc": "lower left", "bbox_to_anchor": (-0.01, 1.0), "frameon": False, "borderaxespad": 0.2,
}  # fmt: skip
# above axes of half the width of a figure
LEGEND_HALF = LEGEND_ABOVE | {"fontsize": 9, "handlelength": 1.2, "columnspacing": 0.9}
LEGEND_BESIDE: dict[str, Any] = {"loc": "center left", "bbox_to_anchor": (1.0, 0.5), "frameon": False}

LINE: dict[str, Any] = {"lw": 1.6, "ms": 5}  # lines with markers


@dataclass(eq=False, repr=False)
class Display:
    """Numbers that `plot` draws, in the manner of scikit-learn's displays.

    A subclass is a dataclass of the numbers, and says how they are checked, drawn and summarised in the title. Its
    `_draw` draws everything but the title on `panels` axes, and keeps the artists as attributes.
    """

    _: KW_ONLY
    name: str | None = None

    _title_pad: float | None = field(default=None, init=False)  # points above the axes, for a legend there
    _grid_axis: ClassVar[str] = "both"  # the axes with a grid: "x", "y" or "both"
    # places of the axes in a new figure, by their number
    _places: ClassVar[dict[int, list[list[int]]]] = {1: [[0]], 2: [[0, 1]], 3: [[0, 0], [1, 2]]}
    _draw: ClassVar[Callable[..., None]]

    @property
    def panels(self) -> int:
        """The number of axes of the picture."""
        return 1

    def _convert(self, *names: str, dtype: Any = float) -> None:
        """Convert these attributes to arrays, where they are given."""
        for name in names:
            value = getattr(self, name)
            if value is not None:
                setattr(self, name, np.asarray(value, dtype=dtype))

    def _summary(self) -> str | None:
        """Return the title of a picture without a name."""
        return None

    def _title(self, name: str | None) -> str | None:
        """Return the title of a picture of this name."""
        return self._summary() if name is None else name

    def _plot(self, axes: Any, name: str | None) -> tuple[Any, ...]:
        """Draw on the first `panels` of these axes, or on those of a new figure; return the axes drawn on.

        Raises ValueError for fewer axes.
        """
        given = new_axes(self._places[self.panels]) if axes is None else axes
        axes = tuple(np.atleast_1d(given)[: self.panels])
        if len(axes) < self.panels:
            raise ValueError(f"the picture takes {self.panels} axes; got {len(axes)}.")
        self.figure_ = axes[0].figure
        self._draw(*axes)
        for ax in axes:
            draw_frame(ax, self._grid_axis)
        set_title(axes[0], self._title(self.name if name is None else name), pad=self._title_pad)
        return axes


class AxesDisplay(Display):
    """A display on one Axes."""

    def plot(self, ax: Any = None, *, name: str | None = None) -> Self:
        """Draw.

        Parameters
        ----------
        ax : matplotlib Axes, default=None
            Where to draw; None makes a figure.
        name : str, default=None
            Another title than that of the display.

        Returns
        -------
        display : Display
            Itself.

        Raises
        ------
        ValueError
            If the numbers cannot be drawn.
        ImportError
            Without matplotlib.
        """
        (self.ax_,) = self._plot(ax, name)
        return self


class PanelDisplay(Display):
    """A display on several Axes side by side."""

    @property
    def panels(self) -> int:
        """The number of axes of the picture."""
        return 2

    def plot(self, axes: Any = None, *, name: str | None = None) -> Self:
        """Draw.

        Parameters
        ----------
        axes : sequence of matplotlib Axes, default=None
            Where to draw, `panels` of them; None makes a figure.
        name : str, default=None
            Another title than that of the display.

        Returns
        -------
        display : Display
            Itself.

        Raises
        ------
        ValueError
            If the numbers cannot be drawn, or there are too few axes.
        ImportError
            Without matplotlib.
        """
        self.axes_ = self._plot(axes, name)
        return self


def problem_name(problem: Problem, label: Any = None) -> str:
    """Return the loss and C of a problem as text, with its class where there are several."""
    name = "hard margin" if problem.hard else f"{problem.loss.replace('_', ' ')}, C = {problem.C:g}"
    if isinstance(label, tuple):  # a pair of classes
        return f"{name}, class {label[0]} against {label[1]}"
    return name if label is None else f"{name}, class {label} against the rest"


def new_figure(size: tuple[float, float]) -> Any:
    """Return an empty figure, of this width and height in inches, that needs no screen."""
    return _matplotlib("figure").Figure(figsize=size, layout="constrained")


def new_axes(places: list[list[int]]) -> list[Any]:
    """Return the axes of a new figure; `places` has their numbers, a list for each row."""
    # 8 inches: letters of 10 points are 14 pixels high in a picture of 800 pixels
    figure = _matplotlib("pyplot").figure(figsize=(8.0, 1.5 + 3.0 * len(places)), layout="constrained")
    return list(figure.subplot_mosaic(places).values())


def _matplotlib(module: str) -> Any:
    """Return a module of matplotlib; raise ImportError with the remedy where it is not installed."""
    try:
        return import_module(f"matplotlib.{module}")
    except ImportError:
        raise ImportError("Pictures need matplotlib: pip install 'maxmargin[plot]'.") from None


def draw_frame(ax: Any, grid: str) -> None:
    """Draw a light grid behind the lines, and leave out the sides of the frame that have no scale."""
    ax.grid(axis=grid, color="#e2e8f0", lw=0.6)
    ax.set_axisbelow(True)
    ax.spines[["top", "right"]].set_visible(False)


def literal(text: Any) -> Any:
    """Draw a matplotlib text letter by letter: names from the user may hold dollar signs and are no formulas.

    Half a surrogate pair, which no file can hold, becomes a question mark.
    """
    text.set_parse_math(False)
    text.set_text(text.get_text().encode(errors="replace").decode())
    return text


def legend(ax: Any, **options: Any) -> None:
    """Draw a legend whose labels are taken literally."""
    for text in ax.legend(**options).get_texts():
        literal(text)


def set_title(ax: Any, title: str | None, *, pad: float | None = None) -> None:
    """Set a title in lines that fit into the figure: its layout ignores the width of titles."""
    if title:
        points = 72.0 * ax.figure.get_figwidth() * (1.0 - ax.get_position().x0)
        # the mean width of a letter of 12 points is 6.6; narrow figures would have one word a line
        lines = textwrap.wrap(title, max(24, int(points / 6.6)), break_long_words=False)
        literal(ax.set_title("\n".join(lines), loc="left", pad=pad))


def label_decades(axis: Any) -> None:
    """Label 1, 2 and 5 times powers of ten on a logarithmic axis of few decades, where powers alone are too few."""
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

    low, high = sorted(axis.get_view_interval())
    # beyond 50 (1.7 decades) the labels 2 and 5 would overlap
    if low > 0.0 and high <= 50.0 * low:
        axis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
        axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axis.set_minor_formatter(NullFormatter())


def percent(share: float) -> str:
    """Return a share as text; only 0 and 1 become 0 % and 100 %."""
    if 0.0 < share < 0.001:
        return "less than 0.1 %"
    return "more than 99.9 %" if 0.999 < share < 1.0 else f"{100.0 * share:.3g} %"
