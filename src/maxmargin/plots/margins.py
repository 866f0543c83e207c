"""Margins of all rows of both sides."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import Any

import numpy as np
from sklearn.utils.validation import check_consistent_length, column_or_1d

from ..estimators.decisions import decision, rows_of
from .base import INK, LEGEND_ABOVE, LOWER, SHADE, UPPER, AxesDisplay, legend

# of each side: its name, its sign, the colour of support vectors and the paler one of all rows
_SIDES = (("positive", 1.0, LOWER, "#d3e5f2"), ("negative", -1.0, UPPER, "#f8ddc9"))


@dataclass(eq=False, repr=False)
class MarginDisplay(AxesDisplay):
    """Histogram of the margins y f(x) of rows: the positive side upwards, the negative side downwards.

    Rows on the wrong side of the surface have a margin below zero; rows below a margin of one have a loss in a soft
    problem. Support vectors, the rows with a positive dual variable, are drawn dark.

    It is recommended to use :func:`MarginDisplay.from_estimator`.

    Parameters
    ----------
    margins : array-like of shape (n_samples,)
        y f(x) of each row.
    positive : array-like of bool of shape (n_samples,)
        True for rows of the positive side.
    support : array-like of bool of shape (n_samples,), default=None
        True for rows with a positive dual variable; None where this is not known.
    sides : pair of str, default=("positive", "negative")
        Names of the sides.
    name : str, default=None
        The title. None gives the number of rows on the wrong side.

    Attributes
    ----------
    ax_ : matplotlib Axes
    figure_ : matplotlib Figure
    bars_ : dict of str to matplotlib BarContainer
        "positive" and "negative": all rows of that side; and "positive support" and "negative support", where support
        vectors are known.
    margin_line_, boundary_line_ : matplotlib Line2D
        At 1 and at 0.
    edges_ : ndarray
        Edges of the bins; 0 is an edge, and so is 1 unless the bins are wider.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from maxmargin import MaxMarginClassifier
    >>> from maxmargin.plots import MarginDisplay
    >>> X, y = load_iris(return_X_y=True)
    >>> clf = MaxMarginClassifier(random_state=0).fit(X, y)
    >>> display = MarginDisplay.from_estimator(clf, X, y, label=2)
    >>> display.errors
    2
    """

    margins: Any
    positive: Any
    _: KW_ONLY
    support: Any = None
    sides: tuple[str, str] = ("positive", "negative")

    def __post_init__(self) -> None:
        self._convert("margins")
        self._convert("positive", "support", dtype=bool)
        # room for a legend of two lines, or of one
        self._title_pad = 30.0 if self.support is None else 46.0

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any,
        y: Any,
        *,
        sample_weight: Any = None,
        label: Any = None,
        name: str | None = None,
        ax: Any = None,
    ) -> MarginDisplay:
        """Draw the margins of these rows.

        Parameters
        ----------
        estimator : MaxMarginClassifier, KernelMaxMarginClassifier or OnlineMarginClassifier
            Fitted.
        X : array-like or sparse matrix of shape (n_samples, n_features)
        y : array-like of shape (n_samples,)
        sample_weight : array-like of shape (n_samples,), default=None
            That of the fit: support vectors are known only of the data of the fit.
        label : object, default=None
            The class against the rest, or the pair of classes, where there are several; None takes the first.
        name : str, default=None
            The title. None gives the number of rows on the wrong side.
        ax : matplotlib Axes, default=None
            Where to draw; None makes a figure.

        Returns
        -------
        display : MarginDisplay

        Raises
        ------
        NotFittedError
        ValueError
            If there is no such label, if `X` and `y` do not fit the model, if no row takes part in the decision, or if
            scores overflow.
        """
        which = decision(estimator, label)
        X, y = rows_of(estimator, X), column_or_1d(y)
        check_consistent_length(X, y, sample_weight)
        classes = np.asarray(which.model.classes_)
        unknown = np.setdiff1d(y, classes)
        if unknown.size:
            raise ValueError(
                f"y holds the class {unknown.tolist()[0]!r}, which is none of {classes.tolist()}."
            )
        signs, takes_part = which.signs(y)
        if not takes_part.any():
            raise ValueError(
                f"there is nothing to draw: no row is of {which.positive} or of {which.negative}."
            )
        margins = (signs * which.scores(X))[takes_part]
        if not np.isfinite(margins).all():
            raise ValueError("margins must be finite: scores of some rows overflow, scale the features.")
        support = which.support(X, y, sample_weight)
        display = cls(
            margins,
            signs[takes_part] > 0.0,
            support=None if support is None else support[takes_part],
            sides=(which.positive, which.negative),
            name=name,
        )
        return display.plot(ax=ax)

    @property
    def errors(self) -> int:
        """The number of rows on the wrong side; the negative side is predicted where f = 0."""
        return int(np.sum(np.where(self.positive, self.margins <= 0.0, self.margins < 0.0)))

    def _draw(self, ax: Any) -> None:
        """Draw the bars of both sides, the lines at margins of 0 and 1, and the legend."""
        # a power of two as the width of a bin makes 0 an edge; more than 40 would hold few rows each
        low, high = min(self.margins.min(), -0.25), max(self.margins.max(), 1.25)
        width = 2.0 ** np.ceil(np.log2((high - low) / 40))
        self.edges_ = width * np.arange(np.floor(low / width), np.floor(high / width) + 2.0)
        up, down = self._draw_sides(ax)
        left = min(self.edges_[0], -0.18 * self.edges_[-1])  # room for the label, as above the bars
        ax.axvspan(left, 0.0, color=SHADE, alpha=0.13, lw=0, zorder=0)
        ax.axhline(0.0, color=INK, lw=0.8)
        self.boundary_line_ = ax.axvline(0.0, color=INK, lw=1.0)
        self.margin_line_ = ax.axvline(1.0, color=INK, lw=1.0, ls="--")
        ax.set_ylim(-1.04 * down - 0.5, up + 0.1 * (up + down) + 0.5)
        ax.set_xlim(left, self.edges_[-1])
        pad = 0.008 * (self.edges_[-1] - self.edges_[0])
        look = {"transform": ax.get_xaxis_transform(), "va": "top", "color": INK, "fontsize": 9}
        ax.text(-pad, 0.99, "wrong side", ha="right", **look)
        ax.text(1.0 + pad, 0.99, "margin of one", ha="left", **look)
        # counts are whole numbers, and those drawn downwards have no sign
        ax.yaxis.set_major_formatter(lambda value, _: f"{abs(value):g}")
        ax.yaxis.get_major_locator().set_params(integer=True)
        ax.set(xlabel="margin y f(x)", ylabel="rows")
        legend(ax, ncols=2, columnspacing=1.4, handlelength=1.4, **LEGEND_ABOVE)

    def _draw_sides(self, ax: Any) -> list[float]:
        """Draw the bars of both sides, with those of support vectors over them; return the heights of the highest."""
        self.bars_, highest = {}, []
        # support vectors, of margin one to rounding, would fall into the bins on both sides of the line
        margins = np.where(np.abs(self.margins - 1.0) <= 1e-9, 1.0, self.margins)
        for rows, side, style in zip((self.positive, ~self.positive), self.sides, _SIDES, strict=True):
            key, sign, dark, light = style
            drawn = {key: (rows, light, side)}
            if self.support is not None:
                drawn[f"{key} support"] = (rows & self.support, dark, f"{side}, support vectors")
            for name, (chosen, color, label) in drawn.items():
                heights = sign * np.histogram(margins[chosen], self.edges_)[0]
                look = {"color": color, "edgecolor": dark, "lw": 0.8, "label": label}
                self.bars_[name] = ax.bar(
                    self.edges_[:-1], heights, np.diff(self.edges_), align="edge", **look
                )
            highest.append(max(abs(bar.get_height()) for bar in self.bars_[key]))
        return highest

    def _summary(self) -> str:
        wrong = "no row" if self.errors == 0 else f"{self.errors} of {self.margins.size} rows"
        verb = "is" if self.errors in (0, 1) else "are"
        inside = int(np.sum(self.margins < 1.0 - 1e-3))  # the default tolerance of a fit
        sides = " against ".join(self.sides)
        return f"{sides}: {wrong} {verb} on the wrong side, {inside} below a margin of one"
