"""Lower and upper bound against time."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import Any

import numpy as np

from ..certificates.verdicts import Inseparable
from ..certificates.verification import verdicts_of
from ..estimators.decisions import decision, decisions
from .base import GOAL, INK, LEGEND_ABOVE, LOWER, SHADE, UPPER, AxesDisplay, problem_name


@dataclass(eq=False, repr=False)
class BoundsDisplay(AxesDisplay):
    """Lower and upper bound against time, as relative distances from the best value known.

    The distances are drawn on a logarithmic scale, the upper bound's above zero and the lower bound's below. The
    optimum lies between the two, and the fit ends when they are as close as `tol` asks.

    It is recommended to use :func:`BoundsDisplay.from_estimator`.

    Parameters
    ----------
    seconds : array-like of shape (n_reports,)
        Times of the reports.
    lower, upper : array-like of shape (n_reports,)
        Bounds on the best objective, or on the largest margin.
    tol : float, default=None
        The certified gap that was asked for.
    name : str, default=None
        The problem, for the title.
    quantity : str, default="objective"
        The bounded quantity, for the texts.
    conclusion : str, default=None
        The second half of the title; None gives the last bounds.

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

    seconds: Any
    lower: Any
    upper: Any
    _: KW_ONLY
    tol: float | None = None
    quantity: str = "objective"
    conclusion: str | None = None

    _grid_axis = "y"

    def __post_init__(self) -> None:
        self._convert("seconds", "lower", "upper")
        self._title_pad = 30.0  # one line of a legend

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

        Raises
        ------
        NotFittedError
        ValueError
            If there is no such class, or no report has two finite bounds.
        """
        found = decisions(estimator) if label is None else [decision(estimator, label)]
        certificate, label = max(
            ((one.certificate, one.label) for one in found if one.certificate), key=lambda one: one[0].gap
        )
        problem = certificate.problem
        history = [report for report in estimator.history_ if report.label == label]
        columns = ([getattr(report, field) for report in history] for field in ("seconds", "lower", "upper"))
        name = problem_name(problem, label) if name is None else name
        quantity = "margin" if problem.hard else "objective"
        proved = isinstance(verdicts_of(estimator).get(label), Inseparable)
        conclusion = "proved to have no separator" if proved else None
        display = cls(*columns, tol=estimator.tol, name=name, quantity=quantity, conclusion=conclusion)
        return display.plot(ax=ax)

    def _draw(self, ax: Any) -> None:
        """Draw the relative distances of both bounds from the best value against time, and the gap of `tol`."""
        above, below = self._distances()
        # the scale is linear a decade or more inside the gap that was asked for, so that it has a zero
        threshold = 10.0 ** np.floor(np.log10((self.tol or 1e-3) / 20.0))
        time, unit = (1e3 * self.seconds, "ms") if self.seconds.max() < 1.0 else (self.seconds, "s")
        ax.set_yscale("symlog", linthresh=threshold, linscale=1.0)
        largest = max(np.nanmax(above), np.nanmax(below))
        ms = 4 if time.size <= 25 else 0  # markers of more reports would overlap
        style: dict[str, Any] = {"drawstyle": "steps-post", "lw": 1.8, "marker": "o", "ms": ms}
        (self.upper_line_,) = ax.plot(time, above, color=UPPER, label="upper bound", **style)
        (self.lower_line_,) = ax.plot(time, -below, color=LOWER, label="lower bound", **style)
        area: dict[str, Any] = {"color": SHADE, "alpha": 0.22, "lw": 0, "label": "optimum"}
        self.interval_ = ax.fill_between(time, -below, above, step="post", **area)
        if self.tol is not None:
            half = self.tol / 2.0
            ax.axhspan(-half, half, color=GOAL, alpha=0.14, lw=0, label=f"tol = {self.tol:g}")
        ax.axhline(0.0, color=INK, lw=0.8)
        _label_powers(ax, threshold, max(largest, (self.tol or 0.0) / 2.0))
        ax.set(xlabel=f"time ({unit})", ylabel=f"relative distance from the best {self.quantity}")
        ax.legend(ncols=4, handlelength=1.5, columnspacing=1.3, **LEGEND_ABOVE)
        ax.set_xlim(0.0, None)
        if time.size == 1:
            self._extend_only_report(ax, float(time[0]), unit, float(above[0]), float(below[0]))

    def _extend_only_report(self, ax: Any, time: float, unit: str, above: float, below: float) -> None:
        """Extend the bounds of the only report to a stretch of time, since one point would be no line."""
        end = 2.0 * time if time > 0.0 else 1.0
        # the upper bound is wider, so that both are seen where they coincide
        ax.hlines([above, -below], time, end, colors=[UPPER, LOWER], lw=[4.0, 1.8])
        ax.axvline(time, color=INK, lw=0.8, ls=":")
        ax.annotate(
            f"certified once, after {time:.3g} {unit}", (time, 0.95),
            xycoords=("data", "axes fraction"), xytext=(6, 0), textcoords="offset points", va="top",
        )  # fmt: skip
        ax.set_xlim(0.0, end)

    def _distances(self) -> tuple[np.ndarray, np.ndarray]:
        """Return the relative distances of the upper and of the lower bound; NaN where a bound is not finite."""
        finite = np.isfinite(self.lower) & np.isfinite(self.upper)
        if not finite.any():
            known = np.isfinite(self.lower).any() or np.isfinite(self.upper).any()
            nothing = "" if known else "nothing is proved, and "
            raise ValueError(f"{nothing}there is nothing to draw: no report has both bounds; fit longer.")
        last = int(np.flatnonzero(finite)[-1])
        self.best_ = best = float(self.lower[last] + self.upper[last]) / 2.0
        unit = abs(best) or 1.0
        # the last bounds may cross by rounding
        above = np.where(np.isfinite(self.upper), np.maximum(self.upper - best, 0.0), np.nan) / unit
        below = np.where(np.isfinite(self.lower), np.maximum(best - self.lower, 0.0), np.nan) / unit
        return above, below

    def _title(self, name: str | None) -> str | None:
        return f"{name}: {self.conclusion or self._last_bounds()}" if name else None

    def _last_bounds(self) -> str:
        """Return the last two bounds in words, with their gap, or their middle where they are almost equal."""
        above, below = self._distances()
        last = np.flatnonzero(np.isfinite(above + below))[-1]
        if above[last] + below[last] < 1e-7:  # eight digits would hardly differ
            return f"best {self.quantity} {self.best_:.8g}"
        lower, upper = self.lower[last], self.upper[last]
        words = f"{lower:.6g} ≤ best {self.quantity} ≤ {upper:.6g}"
        # as in `Problem.gap`, a share of the bound that the fitted model does not reach
        unit = upper if self.quantity == "margin" else lower
        return f"{words}, gap {100.0 * (upper - lower) / unit:.2g} %" if unit > 0.0 else words


def _label_powers(ax: Any, threshold: float, largest: float) -> None:
    """Label about five powers of ten on both sides of zero."""
    low, high = round(np.log10(threshold)), int(np.ceil(np.log10(max(largest, threshold))))
    ticks = {0.0: "0"}
    in_percent = low >= -6 and high <= 3  # others have too many zeros
    for power in range(low, high + 1, max(1, round((high - low) / 4))):
        text = f"{10.0 ** (power + 2):g} %" if in_percent else f"$10^{{{power}}}$"
        ticks |= {10.0**power: f"+{text}", -(10.0**power): f"−{text}"}
    ax.set_yticks(list(ticks), labels=list(ticks.values()))
    ax.minorticks_off()
