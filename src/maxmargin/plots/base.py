"""Base classes of the displays, and the parts that several of them share."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from sklearn.utils.validation import check_consistent_length, column_or_1d

from ..estimators.decisions import Decision, rows_of
from ..problem.problem import Problem
from .style import LOWER, SHADE, UPPER, label_decades, new_axes, norm_text, set_title

LINE: dict[str, Any] = {"lw": 1.6, "ms": 5}  # lines with markers
# Ratio of the largest to the smallest bound above which their axis is logarithmic: below, linear ticks are easier to
# read; above, the smaller bounds would lie on the axis.
_WIDE = 20.0


class Display:
    """Numbers that `plot` draws, in the manner of scikit-learn's displays.

    A subclass is a dataclass of the numbers and of `name`, and says how they are checked, drawn and summarised.
    """

    name: str | None
    _title_pad: float | None = None

    def _convert(self, *names: str, dtype: Any = float) -> None:
        """Convert these attributes to arrays, where they are given."""
        for name in names:
            value = getattr(self, name)
            if value is not None:
                setattr(self, name, np.asarray(value, dtype=dtype))

    def _check(self) -> None:
        """Raise ValueError for numbers that cannot be drawn."""

    def _finding(self) -> str | None:
        """Return the title of a picture without a name."""
        return None

    def _title(self, name: str | None) -> str | None:
        """Return the title of a picture of this name."""
        return self._finding() if name is None else name

    def _set_title(self, ax: Any, name: str | None) -> None:
        set_title(ax, self._title(self.name if name is None else name), pad=self._title_pad)


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
        """
        self._check()
        self.ax_ = new_axes() if ax is None else ax
        self.figure_ = self.ax_.figure
        self._draw(self.ax_)
        self._set_title(self.ax_, name)
        return self

    def _draw(self, ax: Any) -> None:
        """Draw everything but the title, and keep the artists as attributes."""
        raise NotImplementedError


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
        """
        self._check()
        axes = np.atleast_1d(new_axes(self.panels) if axes is None else axes)
        if axes.size < self.panels and self._all_panels:
            raise ValueError(f"the picture takes {self.panels} axes; got {axes.size}.")
        self.axes_, self.figure_ = tuple(axes[: self.panels]), axes[0].figure
        self._draw(*self.axes_)
        self._set_title(self.axes_[0], name)
        return self

    def _draw(self, *axes: Any) -> None:
        """Draw everything but the title, and keep the artists as attributes."""
        raise NotImplementedError


def draw_interval(
    ax: Any, x: Any, lower: np.ndarray, upper: np.ndarray, *, log_if_wide: bool = True
) -> tuple[Any, Any]:
    """Draw certified bounds as two lines and the area between; return the upper and the lower line.

    The scale is logarithmic if all bounds are positive and far apart.
    """
    (above,) = ax.plot(x, upper, "v-", color=UPPER, label="upper bound", **LINE)
    (below,) = ax.plot(x, lower, "^-", color=LOWER, label="lower bound", **LINE)
    ax.fill_between(x, lower, upper, color=SHADE, alpha=0.22, lw=0)
    bounds = np.concatenate([lower, upper])
    bounds = bounds[np.isfinite(bounds)]
    if log_if_wide and bounds.size and bounds.min() > 0.0 and bounds.max() > _WIDE * bounds.min():
        ax.set_yscale("log")
        label_decades(ax.yaxis)
    ax.legend(frameon=False)
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
        raise ValueError(
            f"The classifier knows no class {unknown.tolist()[0]!r}: y holds true labels, of {classes.tolist()}."
        )


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
