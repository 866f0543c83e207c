"""Weights, certified bounds and scores along a path of C or of p."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Any

import numpy as np

from . import base as style
from .base import PanelDisplay, label_decades, legend

# Ratio of the largest to the smallest number above which their axis is logarithmic: below, linear ticks are easier to
# read; above, the smaller ones would lie on the axis.
WIDE = 20.0


@dataclass(eq=False, repr=False)
class PathDisplay(PanelDisplay):
    """Weights along a path of C or of p, with certified bounds on the best objective and the score.

    The features whose weights are the largest somewhere on the path have a colour and a name.

    It is recommended to use :func:`PathDisplay.from_path`.

    Parameters
    ----------
    values : array-like of shape (n_points,)
        The C or the p of each point.
    coefs : array-like of shape (n_points, n_features)
    lower, upper : array-like of shape (n_points,)
        Certified bounds on the least objective; nan where there are none.
    scores : array-like of shape (n_points,), default=None
    feature_names : sequence of str, default=None
        None numbers them.
    parameter : {"C", "p"}, default="C"
        The parameter of `values`. C is drawn on a logarithmic scale, with C = inf beyond the largest of the others; the
        values of p side by side in their order.
    bounded : str, default="least objective"
        The bounded quantity, for the label of the axis. Bounds at C = inf are on the widest margin, and are left out
        beside others.
    name : str, default=None
        The title. None gives the largest distance of the bounds.

    Attributes
    ----------
    axes_ : tuple of matplotlib Axes
        Of the weights, of the bounds, and of the scores where they are known.
    figure_ : matplotlib Figure
    weight_lines_ : list of matplotlib Line2D
        One a feature.
    interval_ : pair of matplotlib Line2D
        Upper and lower bound.
    score_line_ : matplotlib Line2D or None

    Examples
    --------
    >>> from maxmargin.plots import PathDisplay
    >>> display = PathDisplay([0.1, 1, 10], [[0, 1], [1, 2], [1, 4]], [1, 5, 9], [1.1, 5.1, 9]).plot()
    >>> display.axes_[0].get_title(loc="left")
    'bounds at most 10 % apart along C'
    """

    values: Any
    coefs: Any
    lower: Any
    upper: Any
    _: KW_ONLY
    scores: Any = None
    feature_names: Sequence[str] | None = None
    parameter: str = "C"
    bounded: str = "least objective"

    _places = PanelDisplay._places | {2: [[0], [1]]}  # the legend of the weights takes the width of an axis

    def __post_init__(self) -> None:
        self._convert("values", "coefs", "lower", "upper", "scores")

    @classmethod
    def from_path(
        cls,
        path: Any,
        *,
        scores: Any = None,
        feature_names: Sequence[str] | None = None,
        name: str | None = None,
        axes: Any = None,
    ) -> PathDisplay:
        """Draw a path of `margin_path`.

        Parameters
        ----------
        path : MarginPath
            Of two classes; or any object with `Cs` and `ps`, one of which changes along the path, `coefs_` of shape
            (n_points, n_features), and `lower_` and `upper_` of shape (n_points,).
        scores : array-like of shape (n_points,), default=None
        feature_names : sequence of str, default=None
        name : str, default=None
        axes : sequence of matplotlib Axes, default=None
            Where to draw; None makes a figure.

        Returns
        -------
        display : PathDisplay

        Raises
        ------
        ValueError
            If `path` is no path, or a path of several classes, or if both C and p change.
        """
        if not all(hasattr(path, part) for part in ("Cs", "ps", "coefs_", "lower_", "upper_")):
            raise ValueError(f"A path that margin_path found is drawn here; got {type(path).__name__}.")
        if np.ndim(path.coefs_) == 3:
            raise ValueError(
                f"a path of two classes is drawn; got one of {np.shape(path.coefs_)[1]}: find the path of one class "
                "against the rest, margin_path(X, y == label, ...)."
            )
        changing = [which for which in ("Cs", "ps") if np.unique(getattr(path, which)).size > 1]
        if len(changing) > 1:
            raise ValueError("both C and p change along this path: draw one path for each p, or each C.")
        which = changing[0] if changing else "Cs"
        values = np.broadcast_to(getattr(path, which), np.shape(path.lower_))
        bounded = "widest margin" if np.isinf(path.Cs).all() else "least objective"
        display = cls(
            values, path.coefs_, path.lower_, path.upper_, scores=scores, feature_names=feature_names,
            parameter=which[0], bounded=bounded, name=name,
        )  # fmt: skip
        return display.plot(axes=axes)

    @property
    def panels(self) -> int:
        """The number of axes of the picture."""
        return 2 + (self.scores is not None)

    def _draw(self, *axes: Any) -> None:
        """Draw the weights, the bounds and the scores against the values of the parameter."""
        order = np.argsort(self.values, kind="stable")
        x = np.arange(self.values.size)
        if self.parameter == "C":  # C = inf stands a decade beyond the others
            finite = self.values[np.isfinite(self.values)]
            beyond = 10.0 ** np.ceil(np.log10(10.0 * finite.max(initial=0.1)))
            x = np.where(np.isinf(self.values), beyond, self.values)[order]
        self._draw_weights(axes[0], x, self.coefs[order])
        lower, upper = self._comparable_bounds()
        self.interval_ = _draw_interval(axes[1], x, lower[order], upper[order], self.bounded)
        self.score_line_ = None
        if self.scores is not None:
            (self.score_line_,) = axes[2].plot(x, self.scores[order], "s-", color=style.GOAL, **style.LINE)
            axes[2].set_ylabel("score")
        for ax in axes:
            if self.parameter == "C":
                ax.set_xscale("log")
                ax.set_xlabel("C")
                if np.isinf(self.values).any():
                    ax.axvline(x[-1], color=style.SHADE, lw=0.8, ls=":")
                    # in place of the label of a power of ten
                    usual = ax.xaxis.get_major_formatter()
                    ax.xaxis.set_major_formatter(lambda v, k, f=usual: f(v, k) if v < x[-1] else "")
                    ax.text(x[-1], -0.02, "∞", transform=ax.get_xaxis_transform(), ha="center", va="top")
            else:
                _label_norms(ax, x, self.values[order])

    def _comparable_bounds(self) -> tuple[np.ndarray, np.ndarray]:
        """Return the bounds, without those on a hard margin beside those on objectives."""
        hard = np.isinf(self.values) if self.parameter == "C" else np.zeros(self.values.size, dtype=bool)
        left_out = hard & (not hard.all())
        return np.where(left_out, np.nan, self.lower), np.where(left_out, np.nan, self.upper)

    def _draw_weights(self, ax: Any, x: np.ndarray, coefs: np.ndarray) -> None:
        """Draw a line for each feature; the largest have a colour and a name."""
        d = coefs.shape[1]
        names = [f"feature {j}" for j in range(d)] if self.feature_names is None else self.feature_names
        # relative to the largest weight of each point, as weights grow with C
        sizes = np.abs(coefs)
        shares = (sizes / np.maximum(sizes.max(axis=1, keepdims=True), np.finfo(float).tiny)).max(axis=0)
        # those with a colour and a name: more would fit neither into the legend nor into the palette
        largest = np.argsort(-shares, kind="stable")[:6].tolist()
        self.weight_lines_ = ax.plot(x, coefs, color=style.SHADE, lw=0.8, alpha=0.6)
        for k, j in enumerate(largest):
            color, marker = style.CYCLE[k], style.MARKERS[k]
            self.weight_lines_[j].set(
                label=str(names[j]), color=color, marker=marker, ms=4, lw=1.6, alpha=1.0, zorder=3 + k
            )
        ax.axhline(0.0, color=style.SHADE, lw=0.8)
        ax.set_ylabel("weight")
        typical = float(np.median(sizes.max(axis=1)))
        # a linear scale would draw the other points on zero
        if typical > 0.0 and sizes.max() > WIDE * typical:
            ax.set_yscale("symlog", linthresh=10.0 ** np.floor(np.log10(typical)))
        rest = f"{d - len(largest)} more in grey" if d > len(largest) else None
        named = [self.weight_lines_[j] for j in largest]
        look = style.LEGEND_BESIDE | {"fontsize": 9, "title_fontsize": 9, "alignment": "left"}
        legend(ax, handles=named, title=rest, **look)

    def _summary(self) -> str:
        with np.errstate(invalid="ignore", divide="ignore"):
            lower, upper = self._comparable_bounds()
            apart = (upper - lower) / np.abs(lower)
        known = apart[np.isfinite(apart)]
        if not known.size:
            return f"weights along {self.parameter}"
        return f"bounds at most {100.0 * max(known.max(), 0.0):.2g} % apart along {self.parameter}"


def _draw_interval(ax: Any, x: Any, lower: np.ndarray, upper: np.ndarray, quantity: str) -> tuple[Any, Any]:
    """Draw certified bounds as two lines and the area between; return the upper and the lower line.

    `quantity` is bounded, and labels the axis. The scale is logarithmic if all bounds are positive and far apart.
    """
    # the upper bound is wider, so that both are seen where they coincide
    (above,) = ax.plot(x, upper, "o-", color=style.UPPER, label="upper bound", lw=3.6, ms=7)
    (below,) = ax.plot(x, lower, "o-", color=style.LOWER, label="lower bound", **style.LINE)
    ax.fill_between(x, lower, upper, color=style.SHADE, alpha=0.22, lw=0)
    bounds = np.concatenate([lower, upper])
    bounds = bounds[np.isfinite(bounds)]
    if bounds.size and bounds.min() > 0.0 and bounds.max() > WIDE * bounds.min():
        ax.set_yscale("log")
        label_decades(ax.yaxis)
    ax.set_ylabel(quantity)
    ax.legend(ncols=2, **style.LEGEND_HALF)
    return above, below


def _label_norms(ax: Any, places: np.ndarray, ps: np.ndarray) -> None:
    """Label an axis with the values of p, at these places."""
    ax.set_xticks(places, labels=["∞" if np.isinf(p) else f"{p:.3g}" for p in ps])
    ax.set_xlabel("p, the norm of distances")
