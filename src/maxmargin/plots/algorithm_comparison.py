"""Algorithms against each other."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import Any

import numpy as np

from .base import CYCLE, GOAL, INK, LEGEND_BESIDE, MARKERS, PanelDisplay, label_decades, legend, problem_name


@dataclass(eq=False, repr=False)
class AlgorithmComparisonDisplay(PanelDisplay):
    """Algorithms against each other: margin or objective against updates and against time.

    Hard margin: the margin, with the least upper bound as a dashed line. Soft problems: the distance of the
    objective from the best lower bound of all algorithms, as a share of it.

    It is recommended to use :func:`AlgorithmComparisonDisplay.from_comparison`.

    Parameters
    ----------
    updates, seconds, values : dict of str to array-like
        For each algorithm: the number of updates, the time, and the margin or the objective then.
    best : float
        The least upper bound of a margin, or the largest lower bound of an objective.
    hard : bool
        True for margins, False for objectives.
    tol : float, default=None
        The certified gap that was asked for.
    name : str, default=None
        The title.

    Attributes
    ----------
    axes_ : pair of matplotlib Axes
        Against updates, and against time.
    figure_ : matplotlib Figure
    lines_ : dict of str to pair of matplotlib Line2D

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from maxmargin import compare
    >>> from maxmargin.plots import AlgorithmComparisonDisplay
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> result = compare(X / X.max(axis=0), y, ["dcd", "mpu"], random_state=0)
    >>> display = AlgorithmComparisonDisplay.from_comparison(result)
    >>> list(display.lines_)
    ['dcd', 'mpu']
    """

    updates: Any
    seconds: Any
    values: Any
    _: KW_ONLY
    best: float
    hard: bool = False
    tol: float | None = None

    def __post_init__(self) -> None:
        for part in ("updates", "seconds", "values"):
            arrays = {key: np.asarray(value, dtype=float) for key, value in getattr(self, part).items()}
            setattr(self, part, arrays)

    @classmethod
    def from_comparison(
        cls, comparison: Any, *, label: Any = None, name: str | None = None, axes: Any = None
    ) -> AlgorithmComparisonDisplay:
        """Draw the result of `compare`.

        Parameters
        ----------
        comparison : Comparison
        label : object, default=None
            The class whose problem is drawn, where there are several; None takes the first.
        name : str, default=None
            The title. None makes one from the problem.
        axes : pair of matplotlib Axes, default=None
            Where to draw; None makes a figure.

        Returns
        -------
        display : AlgorithmComparisonDisplay

        Raises
        ------
        ValueError
            If there is no such class, or no algorithm ran.
        """
        problem = comparison.problem
        classes = list(dict.fromkeys(entry.label for entry in comparison.entries))
        if not classes:
            raise ValueError("there is nothing to draw: the comparison was interrupted; run it again.")
        if label is None:
            label = classes[0]
        elif label not in classes:
            allowed = f"one of the classes {classes}" if None not in classes else "None for two classes"
            raise ValueError(f"label must be {allowed}; got {label!r}.")
        entries = [entry for entry in comparison.entries if entry.label == label]
        if not any(entry.run.table for entry in entries):
            raise ValueError(
                "there is nothing to draw: no algorithm completed a round; give max_time more time."
            )
        # margins grow from below, objectives fall from above; the other bound holds for every algorithm
        reached, proved = ("lower", "upper") if problem.hard else ("upper", "lower")
        best = (min if problem.hard else max)(getattr(entry.run, proved) for entry in entries)
        updates, seconds, values = (
            {entry.algorithm: [getattr(row, field) for row in entry.run.table] for entry in entries}
            for field in ("updates", "seconds", reached)
        )
        name = problem_name(problem, label) if name is None else name
        display = cls(updates, seconds, values, best=best, hard=problem.hard, tol=comparison.tol, name=name)
        return display.plot(axes=axes)

    def _draw(self, *axes: Any) -> None:
        """Draw a line for each algorithm against updates and against time, and the best bound or the tolerance."""
        left, right = axes
        self.lines_ = {}
        for k, key in enumerate(self.values):
            shown = self._shown(key)
            style: dict[str, Any] = {
                "drawstyle": "steps-post", "lw": 1.6, "marker": MARKERS[k % len(MARKERS)], "ms": 4,
                "markevery": max(1, shown.size // 8), "color": CYCLE[k % len(CYCLE)],
                "ls": ("-", "--", ":")[k // len(CYCLE) % 3], "label": self._label(key, shown),
            }  # fmt: skip
            self.lines_[key] = tuple(
                ax.plot(np.where(x > 0.0, x, np.nan), shown, **style)[0]
                for ax, x in ((left, self.updates[key]), (right, self.seconds[key]))
            )
        for ax in axes:
            ax.set_xscale("log")
            label_decades(ax.xaxis)
            if self.hard:
                ax.axhline(self.best, color=INK, lw=1.2, ls="--", label="upper bound")
            else:
                ax.set_yscale("log")
                if self.tol is not None:
                    ax.axhline(self.tol, color=GOAL, lw=1.2, ls="--", label=f"tol = {self.tol:g}")
        ylabel = "margin" if self.hard else "(objective - lower bound) / lower bound"
        left.set(xlabel="updates of the weights", ylabel=ylabel)
        low, high = zip(left.get_ylim(), right.get_ylim(), strict=True)
        for ax in axes:
            ax.set_ylim(min(low), max(high))
        right.set(xlabel="time (s)")
        legend(right, **LEGEND_BESIDE)

    def _label(self, key: str, shown: np.ndarray) -> str:
        """Return the name of an algorithm, with the reason if a line is missing."""
        if not np.isfinite(shown).any():
            return f"{key} (nothing found)"
        return key if (self.updates[key] > 0.0).any() else f"{key} (time only)"

    def _shown(self, key: str) -> np.ndarray:
        """Return positive margins, or positive relative distances of objectives from the best bound; else NaN."""
        values = self.values[key]
        if not self.hard:
            values = (values - self.best) / (abs(self.best) or 1.0)
            values = np.where(np.isfinite(values), values, np.nan)
        return np.where(values > 0.0, values, np.nan)

    def _title(self, name: str | None) -> str | None:
        if not name:
            return None
        side = "no margin is above" if self.hard else "no objective is below"
        return f"{name}: {side} {self.best:.6g}"
