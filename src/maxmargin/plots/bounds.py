"""Lower and upper bound against time."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from ..certificates.verdicts import Inseparable
from ..certificates.verification import verdicts_of
from ..fit.report import Report
from .style import GOAL, GRID, INK, LOWER, SHADE, UPPER, entitle, figure, no_ticks


class BoundsDisplay:
    """Lower and upper bound against time, as relative distances from the best value known.

    The distances are drawn on a logarithmic scale, the upper bound's above zero and the lower bound's below;
    what is not ruled out yet lies between the two, and the fit ends when they are as close as `tol` asks.

    It is recommended to use :func:`BoundsDisplay.from_estimator`.

    Parameters
    ----------
    seconds : array-like of shape (n_reports,)
        When the bounds were known.
    lower, upper : array-like of shape (n_reports,)
        Bounds on the best objective, or on the largest margin.
    tol : float, default=None
        The certified gap that was asked for.
    name : str, default=None
        What was fitted; goes into the title.
    quantity : str, default="objective"
        What is bounded.
    conclusion : str, default=None
        What the title says of it; None says the last bounds.

    Attributes
    ----------
    ax_ : matplotlib Axes
    figure_ : matplotlib Figure
    lower_line_, upper_line_ : matplotlib Line2D
    interval_ : matplotlib PolyCollection
        The shade between the bounds.
    best_ : float
        The value that distances are measured from: the middle of the last bounds.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from maxmargin import MaxMarginClassifier
    >>> from maxmargin.plots import BoundsDisplay
    >>> clf = MaxMarginClassifier(random_state=0).fit(*load_iris(return_X_y=True))
    >>> display = BoundsDisplay.from_estimator(clf, label=1)
    >>> display.upper_line_.get_label()
    'upper bound'
    """

    def __init__(
        self,
        seconds: Any,
        lower: Any,
        upper: Any,
        *,
        tol: float | None = None,
        name: str | None = None,
        quantity: str = "objective",
        conclusion: str | None = None,
    ) -> None:
        self.seconds = np.asarray(seconds, dtype=float)
        self.lower = np.asarray(lower, dtype=float)
        self.upper = np.asarray(upper, dtype=float)
        self.tol = tol
        self.name = name
        self.quantity = quantity
        self.conclusion = conclusion

    @classmethod
    def from_estimator(
        cls, estimator: Any, *, label: Any = None, name: str | None = None, ax: Any = None
    ) -> BoundsDisplay:
        """Draw the history of a fitted classifier.

        Parameters
        ----------
        estimator : MaxMarginClassifier
            Fitted.
        label : object, default=None
            The class whose problem is drawn, where there are several. None takes the one with the
            largest gap.
        name : str, default=None
            The title. None makes one from the problem.
        ax : matplotlib Axes, default=None
            Where to draw; None makes a figure.

        Returns
        -------
        display : BoundsDisplay
        """
        check_is_fitted(estimator)
        history: list[Report] = estimator.history_
        certificate = estimator.certificate_
        if hasattr(certificate, "parts"):
            classes = list(certificate.classes)
            if label is None:
                label = classes[int(np.argmax([part.gap for part in certificate]))]
            elif label not in classes:
                raise ValueError(f"label must be one of the classes {classes}; got {label!r}.")
            certificate = certificate[classes.index(label)]
            history = [report for report in history if report.label == label]
        elif label is not None:
            raise ValueError(f"label must be None for two classes, which are one problem; got {label!r}.")
        problem, proof = certificate.problem, verdicts_of(estimator).get(label)
        if name is None:
            name = "hard margin" if problem.hard else f"{problem.loss.replace('_', ' ')}, C = {problem.C:g}"
            name += "" if label is None else f", class {label} against the rest"
        display = cls(
            [report.seconds for report in history],
            [report.lower for report in history],
            [report.upper for report in history],
            tol=estimator.tol,
            name=name,
            quantity="margin" if problem.hard else "objective",
            conclusion="proved to have no separator" if isinstance(proof, Inseparable) else None,
        )
        return display.plot(ax=ax)

    def plot(self, ax: Any = None, *, name: str | None = None) -> BoundsDisplay:
        """Draw.

        Parameters
        ----------
        ax : matplotlib Axes, default=None
            Where to draw; None makes a figure.
        name : str, default=None
            The title, if it is to be another one.

        Returns
        -------
        display : BoundsDisplay
        """
        if ax is None:
            ax = figure()
        self.ax_, self.figure_ = ax, ax.figure
        above, below, self.best_ = self._distances()
        linear = self._linear_threshold(above, below)
        time, unit = _scaled(self.seconds)
        ax.set_yscale("symlog", linthresh=linear, linscale=1.0)
        largest = max(np.nanmax(above), np.nanmax(below))
        if largest > 1e200:
            # a share of so many decades is room that ends beyond float64
            ax.margins(y=0.0)
        style: dict[str, Any] = {"drawstyle": "steps-post", "lw": 1.8, "marker": "o", "ms": 4}
        (self.upper_line_,) = ax.plot(time, above, color=UPPER, label="upper bound", **style)
        (self.lower_line_,) = ax.plot(time, -below, color=LOWER, label="lower bound", **style)
        self.interval_ = ax.fill_between(time, -below, above, step="post", color=SHADE, alpha=0.22, lw=0)
        if self.tol is not None:
            ax.axhspan(
                -self.tol / 2, self.tol / 2, color=GOAL, alpha=0.14, lw=0, label=f"gap of tol = {self.tol:g}"
            )
        ax.axhline(0.0, color=INK, lw=0.8)
        _style(ax, max(largest, (self.tol or 0.0) / 2.0), linear)
        ax.set(xlabel=f"time ({unit})", ylabel=f"relative distance from the best {self.quantity}")
        title = self.name if name is None else name
        if title:
            entitle(ax, f"{title}: {self.conclusion or self._verdict(above, below)}", pad=30)
        ax.legend(loc="lower left", bbox_to_anchor=(-0.01, 1.0), ncols=3, frameon=False, borderaxespad=0.2)
        ax.set_xlim(0.0, None)
        if time.size == 1:
            self._only_look(float(time[0]), unit, float(above[0]), float(below[0]))
        return self

    def _only_look(self, time: float, unit: str, above: float, below: float) -> None:
        """One look at the bounds, with the time around it: what is known stays known."""
        ax, end = self.ax_, 2.0 * time if time > 0.0 else 1.0
        for distance, colour in ((above, UPPER), (-below, LOWER)):
            ax.plot([time, end], [distance, distance], color=colour, lw=1.8)
        ax.axvline(time, color=INK, lw=0.8, ls=":")
        ax.annotate(
            f"both bounds at the only look, after {time:.3g} {unit}", (time, 0.95),
            xycoords=("data", "axes fraction"), xytext=(6, 0), textcoords="offset points", va="top",
        )  # fmt: skip
        ax.set_xlim(0.0, end)

    def _distances(self) -> tuple[np.ndarray, np.ndarray, float]:
        """Distances of the upper and of the lower bound; NaN where a bound is not finite."""
        finite = np.isfinite(self.lower) & np.isfinite(self.upper)
        if not finite.any():
            known = np.isfinite(self.lower).any() or np.isfinite(self.upper).any()
            nothing = "" if known else "nothing is proved, and "
            raise ValueError(f"{nothing}there is nothing to draw: no report has two finite bounds.")
        last = int(np.flatnonzero(finite)[-1])
        best = float(self.lower[last] + self.upper[last]) / 2.0
        unit = abs(best) or 1.0
        # the last bounds may cross by rounding
        above = np.where(np.isfinite(self.upper), np.maximum(self.upper - best, 0.0), np.nan) / unit
        below = np.where(np.isfinite(self.lower), np.maximum(best - self.lower, 0.0), np.nan) / unit
        return above, below, best

    def _verdict(self, above: np.ndarray, below: np.ndarray) -> str:
        last = np.flatnonzero(np.isfinite(above + below))[-1]
        if above[last] + below[last] < 1e-7:
            return f"best {self.quantity} {self.best_:.8g}"
        return f"{self.lower[last]:.6g} ≤ best {self.quantity} ≤ {self.upper[last]:.6g}"

    def _linear_threshold(self, above: np.ndarray, below: np.ndarray) -> float:
        """Below this distance, well inside `tol`, the scale is linear, so that zero has a place."""
        if self.tol is not None:
            return 10.0 ** np.floor(np.log10(self.tol / 20.0))
        seen = np.concatenate([above, below])
        return 10.0 ** np.floor(np.log10(max(seen[seen > 0.0].min(initial=1e-3), 1e-9)))


def _scaled(seconds: np.ndarray) -> tuple[np.ndarray, str]:
    return (1e3 * seconds, "ms") if seconds.max() < 1.0 else (seconds, "s")


def _style(ax: Any, largest: float, linear: float) -> None:
    """Ticks at powers of ten, few enough to read; no frame where there is no scale."""
    low, high = round(np.log10(linear)), int(np.ceil(np.log10(max(largest, linear))))
    powers = range(low, high + 1, max(1, round((high - low) / 4)))
    ticks = {0.0: "0"}
    for power in powers:
        ticks |= {10.0**power: f"$+10^{{{power}}}$", -(10.0**power): f"$-10^{{{power}}}$"}
    ax.set_yticks(list(ticks), labels=list(ticks.values()))
    ax.yaxis.set_minor_locator(no_ticks())
    ax.grid(axis="y", color=GRID, lw=0.6)
    ax.set_axisbelow(True)
    for side in ("top", "right"):
        ax.spines[side].set_visible(False)
