"""Accuracy and bounds against the number of features."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from ..estimators.selection import MarginRFE
from .base import LINE, PanelDisplay, draw_interval
from .style import GOAL, HIGHEST_ACCURACY, INK, LEGEND_HALF

# Ratio of numbers of features up to which ticks stand at 1, 2, 5 and not at powers of ten only: more would overlap.
_FEW_DECADES = 500
# Share of the axis below which the labels of the largest number and of the next tick would overlap.
_APART = 0.13


@dataclass(eq=False, repr=False)
class EliminationDisplay(PanelDisplay):
    """Feature elimination: accuracy and certified bounds against the number of features.

    It is recommended to use :func:`EliminationDisplay.from_estimator`.

    Parameters
    ----------
    n_features : array-like of shape (n_stages,)
    lower, upper : array-like of shape (n_stages,)
        Certified bounds on the largest margin, or on the least objective; nan where there are none.
    accuracy, accuracy_std : array-like of shape (n_stages,), default=None
        Mean score in cross-validation, and its standard deviation over the folds.
    kept : int, default=None
        The number of features that are kept.
    hard : bool, default=False
        True for bounds on the margin, False for bounds on the objective.
    name : str, default=None
        The title.

    Attributes
    ----------
    axes_ : tuple of matplotlib Axes
        Of the accuracy and of the bounds, as far as they are known.
    figure_ : matplotlib Figure
    accuracy_line_, lower_line_, upper_line_ : matplotlib Line2D or None

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from maxmargin import MarginRFE
    >>> from maxmargin.plots import EliminationDisplay
    >>> selector = MarginRFE("auto", p=2, cv=3).fit(*load_iris(return_X_y=True))
    >>> display = EliminationDisplay.from_estimator(selector)
    >>> display.accuracy_line_.get_xdata().tolist()
    [4, 3, 2, 1]
    """

    n_features: Any
    lower: Any
    upper: Any
    _: KW_ONLY
    accuracy: Any = None
    accuracy_std: Any = None
    kept: int | None = None
    hard: bool = False

    _all_panels = False  # the first of too few axes are used

    def __post_init__(self) -> None:
        self._convert("n_features", dtype=None)
        self._convert("lower", "upper", "accuracy", "accuracy_std")
        unknown = np.full(self.n_features.size, np.nan)
        if self.accuracy is None:
            self.accuracy = unknown
        if self.accuracy_std is None:
            self.accuracy_std = unknown
        self._title_pad = 30.0  # one line of a legend

    @classmethod
    def from_estimator(
        cls, selector: Any, *, name: str | None = None, axes: Any = None
    ) -> EliminationDisplay:
        """Draw the path of a fitted `MarginRFE`.

        Parameters
        ----------
        selector : MarginRFE
            Fitted.
        name : str, default=None
            The title. None gives the number of features that are kept.
        axes : sequence of matplotlib Axes, default=None
            Where to draw: one each for the accuracy and the bounds, as far as they are known. None makes a figure.

        Returns
        -------
        display : EliminationDisplay

        Raises
        ------
        NotFittedError
        ValueError
            If this is no `MarginRFE`, or it has neither certificates nor a cross-validation.
        """
        if not isinstance(selector, MarginRFE):
            raise ValueError(f"A MarginRFE is drawn here; got {type(selector).__name__}.")
        check_is_fitted(selector)
        path, kept = selector.path_, selector.n_features_
        if name is None:
            name = f"{kept} of {selector.support_.size} features are kept"
        fields = ("n_features", "lower", "upper", "accuracy", "accuracy_std")
        columns = {field: [getattr(stage, field) for stage in path] for field in fields}
        return cls(**columns, kept=kept, hard=path[0].hard, name=name).plot(axes=axes)

    @property
    def panels(self) -> int:
        """The number of axes of the picture: one each for accuracy and bounds, where they are known."""
        return int(self._has_accuracy) + int(np.isfinite(self.lower + self.upper).any())

    @property
    def _has_accuracy(self) -> bool:
        return bool(np.isfinite(self.accuracy).any())

    def _check(self) -> None:
        if not self.panels:
            raise ValueError("there is nothing to draw, no bound or accuracy: fit the selector with cv=5.")

    def _draw(self, *axes: Any) -> None:
        """Draw the accuracy and the bounds, as far as they are known, against the number of features."""
        self.accuracy_line_ = self.lower_line_ = self.upper_line_ = None
        x, with_bounds = self.n_features, axes
        if self._has_accuracy:
            ax, *with_bounds = axes
            (self.accuracy_line_,) = ax.plot(x, self.accuracy, "o-", color=GOAL, label="mean", **LINE)
            low = np.maximum(self.accuracy - self.accuracy_std, 0.0)
            high = np.minimum(self.accuracy + self.accuracy_std, 1.0)
            ax.fill_between(x, low, high, color=GOAL, alpha=0.14, lw=0, label="± deviation of folds")
            ax.set_ylabel("accuracy in cross-validation")
            ax.set_ylim(top=min(ax.get_ylim()[1], HIGHEST_ACCURACY))
        for ax in with_bounds:
            quantity = "largest margin" if self.hard else "least objective"
            lines = draw_interval(ax, x, self.lower, self.upper, quantity)
            self.upper_line_, self.lower_line_ = lines
        ticks = _ticks(x)
        for ax in axes:
            ax.set_xscale("log")
            ax.set_xticks(ticks, labels=[str(tick) for tick in ticks])
            ax.minorticks_off()
            ax.set_xlabel("number of features")
            if self.kept is not None:
                ax.axvline(self.kept, color=INK, lw=1.2, ls="--", label="kept")
            ax.legend(ncols=3, **LEGEND_HALF)


def _ticks(n_features: np.ndarray) -> list[int]:
    """Return 1, 2, 5, 10, ... within the numbers of features, or powers of ten, and the largest number."""
    low, high = int(n_features.min()), int(n_features.max())
    steps = (1, 2, 5) if high <= _FEW_DECADES * low else (1,)
    marks = [step * 10**power for power in range(len(str(high))) for step in steps]
    return [mark for mark in marks if low <= mark < high * (low / high) ** _APART] + [high]
