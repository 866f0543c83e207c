"""Algorithms against each other."""

from __future__ import annotations

from typing import Any

import numpy as np

from .style import CYCLE, GOAL, INK, MARKERS, entitle, figure, label_decades, legend, plain


class AlgorithmComparisonDisplay:
    """Algorithms against each other: what they reached, after so many updates and after so much time.

    Hard margin: the margin, with the least bound on any margin as a dashed line. Soft problems: how far the
    objective is above the best lower bound of all algorithms, as a share of it.

    It is recommended to use :func:`AlgorithmComparisonDisplay.from_comparison`.

    Parameters
    ----------
    updates, seconds, values : dict of str to array-like
        For each algorithm: how many updates, how long, and the margin or the objective then.
    best : float
        The least upper bound of a margin, or the largest lower bound of an objective.
    hard : bool
        Are the values margins?
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

    def __init__(
        self,
        updates: Any,
        seconds: Any,
        values: Any,
        *,
        best: float,
        hard: bool = False,
        tol: float | None = None,
        name: str | None = None,
    ) -> None:
        self.updates, self.seconds, self.values = (
            {key: np.asarray(value, dtype=float) for key, value in parts.items()}
            for parts in (updates, seconds, values)
        )
        self.best, self.hard, self.tol, self.name = best, hard, tol, name

    @classmethod
    def from_comparison(
        cls, comparison: Any, *, label: Any = None, name: str | None = None, axes: Any = None
    ) -> AlgorithmComparisonDisplay:
        """Draw what `compare` found.

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
        """
        problem = comparison.problem
        classes = list(dict.fromkeys(entry.label for entry in comparison.entries))
        if label is None:
            label = classes[0]
        elif label not in classes:
            what = f"one of the classes {classes}" if None not in classes else "None for two classes"
            raise ValueError(f"label must be {what}; got {label!r}.")
        entries = [entry for entry in comparison.entries if entry.label == label]
        if name is None:
            name = "hard margin" if problem.hard else f"{problem.loss.replace('_', ' ')}, C = {problem.C:g}"
            name += "" if label is None else f", class {label} against the rest"
        known = [entry.upper if problem.hard else entry.lower for entry in entries]
        display = cls(
            {entry.algorithm: [report.steps for report in entry.history] for entry in entries},
            {entry.algorithm: [report.seconds for report in entry.history] for entry in entries},
            {
                entry.algorithm: [report.lower if problem.hard else report.upper for report in entry.history]
                for entry in entries
            },
            best=min(known) if problem.hard else max(known),
            hard=problem.hard,
            tol=comparison.tol,
            name=name,
        )
        return display.plot(axes=axes)

    def plot(self, axes: Any = None, *, name: str | None = None) -> AlgorithmComparisonDisplay:
        """Draw.

        Parameters
        ----------
        axes : pair of matplotlib Axes, default=None
            Where to draw; None makes a figure.
        name : str, default=None
            The title, if it is to be another one.

        Returns
        -------
        display : AlgorithmComparisonDisplay
        """
        if axes is None:
            axes = figure(1, 2)
        left, right = axes
        self.axes_, self.figure_ = (left, right), left.figure
        self.lines_ = {}
        for k, key in enumerate(self.values):
            shown = self._shown(key)
            style: dict[str, Any] = {
                "drawstyle": "steps-post",
                "lw": 1.6,
                "marker": MARKERS[k % len(MARKERS)],
                "markevery": max(1, shown.size // 8),
                "ms": 4,
                "color": CYCLE[k % len(CYCLE)],
                "label": key,
            }
            self.lines_[key] = tuple(
                ax.plot(np.where(x > 0.0, x, np.nan), shown, **style)[0]
                for ax, x in ((left, self.updates[key]), (right, self.seconds[key]))
            )
        for ax in self.axes_:
            ax.set_xscale("log")
            plain(ax)
            label_decades(ax.xaxis)
            if self.hard:
                ax.axhline(self.best, color=INK, lw=0.9, ls="--")
            else:
                ax.set_yscale("log")
                if self.tol is not None:
                    ax.axhline(self.tol, color=GOAL, lw=0.9, ls="--")
        left.set(
            xlabel="updates",
            ylabel="margin" if self.hard else "objective above the best lower bound, as a share",
        )
        right.set(xlabel="time (s)")
        title = self.name if name is None else name
        if title:
            bound = (
                f"no margin is above {self.best:.6g}"
                if self.hard
                else f"no objective is below {self.best:.6g}"
            )
            entitle(left, f"{title}: {bound}")
        legend(right, loc="center left", bbox_to_anchor=(1.0, 0.5), frameon=False)
        return self

    def _shown(self, key: str) -> np.ndarray:
        """Margins as they are, where there is one; objectives as distances."""
        values = self.values[key]
        if self.hard:
            return np.where(values > 0.0, values, np.nan)
        share = (values - self.best) / (abs(self.best) or 1.0)
        return np.where(np.isfinite(share) & (share > 0.0), share, np.nan)
