"""Base classes of the displays, and the parts that several of them share."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass, field
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.utils.validation import check_consistent_length, column_or_1d

from ..estimators.decisions import Decision, rows_of
from ..problem.problem import Problem
from .style import LEGEND_HALF, LOWER, SHADE, UPPER, draw_frame, label_decades, new_axes, norm_text, set_title

LINE: dict[str, Any] = {"lw": 1.6, "ms": 5}  # lines with markers
# Ratio of the largest to the smallest bound above which their axis is logarithmic: below, linear ticks are easier to
# read; above, the smaller bounds would lie on the axis.
WIDE = 20.0


@dataclass(eq=False, repr=False)
class Display:
    """Numbers that `plot` draws, in the manner of scikit-learn's displays.

    A subclass is a dataclass of the numbers, and says how they are checked, drawn and summarised in the title. Its
    `_draw` draws everything but the title on `panels` axes, and keeps the artists as attributes.
    """

    _: KW_ONLY
    name: str | None = None

    _title_pad: float | None = field(default=None, init=False)  # points above the axes, for a legend there
    _grid_axis: ClassVar[str | None] = "both"  # the axes with a grid: "x", "y", "both" or None
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

    def _check(self) -> None:
        """Raise ValueError for numbers that cannot be drawn."""

    def _summary(self) -> str | None:
        """Return the title of a picture without a name."""
        return None

    def _title(self, name: str | None) -> str | None:
        """Return the title of a picture of this name."""
        return self._summary() if name is None else name

    def _plot(self, axes: Any, name: str | None, *, least: int) -> tuple[Any, ...]:
        """Draw on the first `panels` of these axes, or on those of a new figure; return the axes drawn on.

        Raises ValueError for fewer than `least` axes.
        """
        self._check()
        given = new_axes(self._places[self.panels]) if axes is None else axes
        axes = tuple(np.atleast_1d(given)[: self.panels])
        if len(axes) < least:
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
        (self.ax_,) = self._plot(ax, name, least=1)
        return self


class PanelDisplay(Display):
    """A display on several Axes side by side."""

    _all_panels = True  # whether fewer axes than panels are an error

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
        self.axes_ = self._plot(axes, name, least=self.panels if self._all_panels else 1)
        return self


def draw_interval(ax: Any, x: Any, lower: np.ndarray, upper: np.ndarray, quantity: str) -> tuple[Any, Any]:
    """Draw certified bounds as two lines and the area between; return the upper and the lower line.

    `quantity` is bounded, and labels the axis. The scale is logarithmic if all bounds are positive and far apart.
    """
    # the upper bound is wider, so that both are seen where they coincide
    (above,) = ax.plot(x, upper, "o-", color=UPPER, label="upper bound", lw=3.6, ms=7)
    (below,) = ax.plot(x, lower, "o-", color=LOWER, label="lower bound", **LINE)
    ax.fill_between(x, lower, upper, color=SHADE, alpha=0.22, lw=0)
    bounds = np.concatenate([lower, upper])
    bounds = bounds[np.isfinite(bounds)]
    if bounds.size and bounds.min() > 0.0 and bounds.max() > WIDE * bounds.min():
        ax.set_yscale("log")
        label_decades(ax.yaxis)
    ax.set_ylabel(quantity)
    ax.legend(ncols=2, **LEGEND_HALF)
    return above, below


def label_norms(ax: Any, places: np.ndarray, ps: np.ndarray) -> None:
    """Label an axis with the values of p, at these places."""
    ax.set_xticks(places, labels=[norm_text(p) for p in ps])
    ax.set_xlabel("p, the norm of distances")


def problem_name(problem: Problem, label: Any = None) -> str:
    """Return the loss and C of a problem as text, with its class where there are several."""
    name = "hard margin" if problem.hard else f"{problem.loss.replace('_', ' ')}, C = {problem.C:g}"
    return name if label is None else f"{name}, class {label} against the rest"


def check_labels(classes: Any, y: np.ndarray) -> None:
    """Raise ValueError if a label is none of the classes."""
    unknown = np.setdiff1d(y, classes)
    if unknown.size:
        raise ValueError(f"y holds the class {unknown.tolist()[0]!r}, which is none of {classes.tolist()}.")


def checked_rows(
    model: Any, which: Decision, X: Any, y: Any, sample_weight: Any = None
) -> tuple[Any, np.ndarray]:
    """Return the rows as an array or a CSR matrix of the model's features, and their true labels.

    Raises
    ------
    ValueError
        If the features are not those of the model, if there are not as many labels or weights as rows, if the
        model does not know a label, or if no row takes part in the decision.
    """
    X, y = rows_of(model, X), column_or_1d(y)
    check_consistent_length(X, y, sample_weight)
    check_labels(np.asarray(which.model.classes_), y)
    if not which.signs(y)[1].any():
        raise ValueError(f"there is nothing to draw: no row is of {which.positive} or of {which.negative}.")
    return X, y
