"""Weights, certified bounds and scores along a path of C or of p."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from .intervals import interval
from .style import CYCLE, GREEN, MARKERS, SHADE, entitle, figure, legend, plain

_NAMED = 6  # weights with a name and a colour; the others are grey


class PathDisplay:
    """How the weights change with C or with p, between which bounds the best objective lies, and the score.

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
        What `values` are. C stands on a logarithmic scale, with C = inf beyond the largest of the others; the values
        of p side by side in their order.
    bounded : str, default="least objective"
        What the bounds are about, as their axis says it. Those of C = inf are about the widest margin, and are left out
        beside others.
    name : str, default=None
        The title. None says how far apart the bounds are at most.

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

    def __init__(
        self,
        values: Any,
        coefs: Any,
        lower: Any,
        upper: Any,
        *,
        scores: Any = None,
        feature_names: Sequence[str] | None = None,
        parameter: str = "C",
        bounded: str = "least objective",
        name: str | None = None,
    ) -> None:
        self.values, self.coefs = np.asarray(values, dtype=float), np.asarray(coefs, dtype=float)
        self.lower, self.upper = np.asarray(lower, dtype=float), np.asarray(upper, dtype=float)
        self.scores = None if scores is None else np.asarray(scores, dtype=float)
        self.feature_names = feature_names
        self.parameter, self.bounded, self.name = parameter, bounded, name

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
        """Draw what `margin_path` found.

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
            If it is no path, if it is one of several classes, or if both C and p change.
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
            raise ValueError(
                "both C and p change along this path: draw one path of C for each p, or the reverse."
            )
        which = changing[0] if changing else "Cs"
        values = np.broadcast_to(getattr(path, which), np.shape(path.lower_))
        display = cls(
            values,
            path.coefs_,
            path.lower_,
            path.upper_,
            scores=scores,
            feature_names=feature_names,
            parameter=which[0],
            bounded="widest margin" if np.isinf(path.Cs).all() else "least objective",
            name=name,
        )
        return display.plot(axes=axes)

    @property
    def panels(self) -> int:
        """How many axes the picture takes."""
        return 2 + (self.scores is not None)

    def plot(self, axes: Any = None, *, name: str | None = None) -> PathDisplay:
        """Draw.

        Parameters
        ----------
        axes : sequence of matplotlib Axes, default=None
            Where to draw: for the weights, the bounds, and the scores where they are known. None makes a figure.
        name : str, default=None
            The title, if it is to be another one.

        Returns
        -------
        display : PathDisplay
        """
        self._check()
        axes = np.atleast_1d(figure(1, self.panels) if axes is None else axes)
        if axes.size < self.panels:
            raise ValueError(f"the picture takes {self.panels} axes; got {axes.size}.")
        self.axes_, self.figure_ = tuple(axes[: self.panels]), axes[0].figure
        order = np.argsort(self.values, kind="stable")
        x = self._places()[order] if self.parameter == "C" else np.arange(self.values.size)
        self._weights(self.axes_[0], x, self.coefs[order])
        bounds, (lower, upper) = self.axes_[1], (limits[order] for limits in self._comparable())
        self.interval_ = interval(bounds, x, lower, upper)
        bounds.set_ylabel(self.bounded)
        bounds.legend(frameon=False)
        self.score_line_ = None
        if self.scores is not None:
            (self.score_line_,) = self.axes_[2].plot(x, self.scores[order], "s-", color=GREEN, lw=1.6, ms=5)
            self.axes_[2].set_ylabel("score")
        for ax in self.axes_:
            if self.parameter == "C":
                ax.set_xscale("log")
                ax.set_xlabel("C")
                if np.isinf(self.values).any():
                    ax.axvline(x[-1], color=SHADE, lw=0.8, ls=":")
                    ax.annotate(
                        "∞", (x[-1], 1.0), xycoords=("data", "axes fraction"), ha="center", va="bottom"
                    )
            else:
                ax.set_xticks(x, labels=["∞" if np.isinf(p) else f"{p:.3g}" for p in self.values[order]])
                ax.set_xlabel("p, the norm of distances")
            plain(ax)
        title = self.name if name is None else name
        entitle(self.axes_[0], self._finding() if title is None else title)
        return self

    def _places(self) -> np.ndarray:
        """Where each C stands: C = inf a decade beyond the others."""
        finite = self.values[np.isfinite(self.values)]
        return np.where(np.isinf(self.values), 10.0 * finite.max(initial=0.1), self.values)

    def _comparable(self) -> tuple[np.ndarray, np.ndarray]:
        """The bounds that are about one and the same: not those of a margin beside those of objectives."""
        hard = np.isinf(self.values) if self.parameter == "C" else np.zeros(self.values.size, dtype=bool)
        beside = hard & (not hard.all())
        return np.where(beside, np.nan, self.lower), np.where(beside, np.nan, self.upper)

    def _check(self) -> None:
        n = self.values.size
        if self.parameter not in ("C", "p"):
            raise ValueError(f'parameter must be "C" or "p"; got {self.parameter!r}.')
        given = [self.lower, self.upper] + ([] if self.scores is None else [self.scores])
        if not n or self.coefs.ndim != 2 or len(self.coefs) != n or any(a.shape != (n,) for a in given):
            raise ValueError(
                f"there must be weights, bounds and scores for each of {n} points, at least one; got weights of shape "
                f"{self.coefs.shape}, and {', '.join(str(a.shape) for a in given)}."
            )
        if self.feature_names is not None and len(self.feature_names) != self.coefs.shape[1]:
            raise ValueError(
                f"there must be a name for each of {self.coefs.shape[1]} features; got {len(self.feature_names)}."
            )

    def _weights(self, ax: Any, x: np.ndarray, coefs: np.ndarray) -> None:
        """A line a feature; the largest in colour."""
        d = coefs.shape[1]
        names = self.feature_names or [f"feature {j}" for j in range(d)]
        # at each point in units of its largest weight, as weights grow with C
        sizes = np.abs(coefs)
        shares = (sizes / np.maximum(sizes.max(axis=1, keepdims=True), np.finfo(float).tiny)).max(axis=0)
        largest = np.argsort(-shares, kind="stable")[:_NAMED].tolist()
        lines: dict[int, Any] = {}
        for j in [j for j in range(d) if j not in largest]:
            (lines[j],) = ax.plot(x, coefs[:, j], color=SHADE, lw=0.8, alpha=0.6)
        for k, j in enumerate(largest):
            (lines[j],) = ax.plot(
                x, coefs[:, j], color=CYCLE[k], marker=MARKERS[k], ms=4, lw=1.6, label=str(names[j])
            )
        self.weight_lines_ = [lines[j] for j in range(d)]
        ax.axhline(0.0, color=SHADE, lw=0.8)
        ax.set_ylabel("weight")
        rest = f"{d - len(largest)} more in grey" if d > len(largest) else None
        legend(
            ax,
            loc="center left",
            bbox_to_anchor=(1.0, 0.5),
            frameon=False,
            fontsize=9,
            title=rest,
            title_fontsize=9,
            alignment="left",
        )

    def _finding(self) -> str:
        with np.errstate(invalid="ignore", divide="ignore"):
            lower, upper = self._comparable()
            apart = (upper - lower) / np.abs(lower)
        known = apart[np.isfinite(apart)]
        if not known.size:
            return f"weights along {self.parameter}"
        return f"bounds at most {100.0 * max(known.max(), 0.0):.2g} % apart along {self.parameter}"
