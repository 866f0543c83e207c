"""The margins of all rows of both sides."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..estimators.decisions import decision
from .rows import checked_rows
from .style import INK, NEGATIVE, POSITIVE, SHADE, TINTS, entitle, figure, legend, plain

_BINS = 40  # at most, roughly
_ROUNDING = 1e-9  # of a margin of one, which many support vectors have: they stand to the right of that line


class MarginDisplay:
    """How many rows have which margin y f(x): the positive side upwards, the negative one downwards.

    Rows on the wrong side of the surface have a margin below zero; a soft problem charges every row whose margin is
    below one. Support vectors, the rows with a dual weight, are drawn dark.

    It is recommended to use :func:`MarginDisplay.from_estimator`.

    Parameters
    ----------
    margins : array-like of shape (n_samples,)
        y f(x) of each row.
    positive : array-like of bool of shape (n_samples,)
        Is it a row of the positive side?
    support : array-like of bool of shape (n_samples,), default=None
        Has it a dual weight? None where that is not known.
    sides : pair of str, default=("positive", "negative")
        What the sides are called.
    name : str, default=None
        The title. None says how many rows are on the wrong side.

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
        Of the bins. 0 is one, and 1 is one unless the bins are wider.

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

    def __init__(
        self,
        margins: Any,
        positive: Any,
        *,
        support: Any = None,
        sides: tuple[str, str] = ("positive", "negative"),
        name: str | None = None,
    ) -> None:
        self.margins, self.positive = np.asarray(margins, dtype=float), np.asarray(positive, dtype=bool)
        self.support = None if support is None else np.asarray(support, dtype=bool)
        self.sides, self.name = sides, name

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
            The title. None says how many rows are on the wrong side.
        ax : matplotlib Axes, default=None
            Where to draw; None makes a figure.

        Returns
        -------
        display : MarginDisplay
        """
        which = decision(estimator, label)
        X, y = checked_rows(estimator, which, X, y, sample_weight)
        signs, among = which.signs(y)
        margins = (signs * which.scores(X))[among]
        support = None
        if which.difference(X, y, sample_weight) is None:
            support = (which.dual() > 0.0)[among]
        sides = (which.positive, which.negative)
        display = cls(margins, signs[among] > 0.0, support=support, sides=sides, name=name)
        return display.plot(ax=ax)

    @property
    def errors(self) -> int:
        """Rows on the wrong side. On the surface itself the negative side is predicted."""
        return int(np.sum(np.where(self.positive, self.margins <= 0.0, self.margins < 0.0)))

    def plot(self, ax: Any = None, *, name: str | None = None) -> MarginDisplay:
        """Draw.

        Parameters
        ----------
        ax : matplotlib Axes, default=None
            Where to draw; None makes a figure.
        name : str, default=None
            The title, if it is to be another one.

        Returns
        -------
        display : MarginDisplay
        """
        shapes = {a.shape for a in (self.margins, self.positive, self.support) if a is not None}
        if len(shapes) > 1 or self.margins.ndim != 1 or not self.margins.size:
            raise ValueError(
                "there must be one margin and one side for every row, and at least one row; got shapes "
                f"{', '.join(map(str, sorted(shapes)))}."
            )
        if not np.isfinite(self.margins).all():
            raise ValueError("margins must be finite numbers: the scores of some rows overflow.")
        if ax is None:
            ax = figure()
        self.ax_, self.figure_ = ax, ax.figure
        self.edges_ = self._edges()
        self.bars_ = {}
        tallest = []
        for key, here, sign, dark, light, side in (
            ("positive", self.positive, 1.0, POSITIVE, TINTS[0], self.sides[0]),
            ("negative", ~self.positive, -1.0, NEGATIVE, TINTS[1], self.sides[1]),
        ):
            tallest.append(self._bars(ax, key, here, sign, light, dark, side))
            if self.support is not None:
                words = f"{side}, support vectors"
                self._bars(ax, f"{key} support", here & self.support, sign, dark, dark, words)
        left = min(self.edges_[0], -0.18 * self.edges_[-1])  # room for words
        ax.axvspan(left, 0.0, color=SHADE, alpha=0.13, lw=0, zorder=0)
        ax.axhline(0.0, color=INK, lw=0.8)
        self.boundary_line_ = ax.axvline(0.0, color=INK, lw=1.0)
        self.margin_line_ = ax.axvline(1.0, color=INK, lw=1.0, ls="--")
        words = 0.1 * sum(tallest)  # room for a line of them
        ax.set_ylim(-1.04 * tallest[1] - 0.5, tallest[0] + words + 0.5)
        ax.set_xlim(left, self.edges_[-1])
        self._words(ax)
        plain(ax)
        ax.yaxis.set_major_formatter(_sizes())
        ax.yaxis.get_major_locator().set_params(integer=True)
        ax.set(xlabel="margin y f(x)", ylabel="rows")
        two_lines = self.support is not None
        legend(
            ax, loc="lower left", bbox_to_anchor=(-0.01, 1.0), ncols=2, frameon=False, borderaxespad=0.2,
            columnspacing=1.4, handlelength=1.4,
        )  # fmt: skip
        title = self.name if name is None else name
        entitle(ax, self._finding() if title is None else title, pad=46 if two_lines else 30)
        return self

    def _bars(
        self, ax: Any, key: str, here: np.ndarray, sign: float, face: str, edge: str, label: str
    ) -> float:
        margins = self.margins[here]
        margins = np.where(np.abs(margins - 1.0) <= _ROUNDING, 1.0, margins)
        counts = np.histogram(margins, self.edges_)[0]
        widths = np.diff(self.edges_)
        self.bars_[key] = ax.bar(
            self.edges_[:-1], sign * counts, widths, align="edge", color=face, edgecolor=edge, lw=0.8, label=label
        )  # fmt: skip
        return float(counts.max(initial=0))

    def _edges(self) -> np.ndarray:
        """Edges of bins whose width is a power of two, so that 0 is among them."""
        low, high = min(self.margins.min(), -0.25), max(self.margins.max(), 1.25)
        width = 2.0 ** np.ceil(np.log2((high - low) / _BINS))
        first, last = np.floor(low / width), np.floor(high / width) + 1.0
        return width * np.arange(first, last + 1.0)

    def _words(self, ax: Any) -> None:
        """What the lines are, beside them."""
        style: dict[str, Any] = {
            "transform": ax.get_xaxis_transform(), "va": "top", "color": INK, "fontsize": 9,
        }  # fmt: skip
        pad = 0.008 * (self.edges_[-1] - self.edges_[0])
        ax.text(-pad, 0.99, "wrong side", ha="right", **style)
        ax.text(1.0 + pad, 0.99, "margin of one", ha="left", **style)

    def _finding(self) -> str:
        wrong = "no row" if self.errors == 0 else f"{self.errors} of {self.margins.size} rows"
        verb = "is" if self.errors in (0, 1) else "are"
        inside = int(np.sum(self.margins < 1.0 - 1e-3))
        sides = " against ".join(self.sides)
        return f"{sides}: {wrong} {verb} on the wrong side, {inside} below a margin of one"


def _sizes() -> Any:
    """Numbers of rows have no sign, whichever way they are drawn."""
    from matplotlib.ticker import FuncFormatter

    return FuncFormatter(lambda value, _: f"{abs(value):g}")
