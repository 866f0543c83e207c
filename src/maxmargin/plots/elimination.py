"""Accuracy and bounds against the number of features."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from ..estimators.selection import MarginRFE
from .style import GOAL, INK, LOWER, SHADE, UPPER, entitle, figure, no_ticks, plain


class EliminationDisplay:
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
        How many features are kept.
    hard : bool, default=False
        Are the bounds about the margin?
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

    def __init__(
        self,
        n_features: Any,
        lower: Any,
        upper: Any,
        *,
        accuracy: Any = None,
        accuracy_std: Any = None,
        kept: int | None = None,
        hard: bool = False,
        name: str | None = None,
    ) -> None:
        self.n_features = np.asarray(n_features)
        self.lower, self.upper = np.asarray(lower, dtype=float), np.asarray(upper, dtype=float)
        unknown = np.full(self.n_features.size, np.nan)
        self.accuracy = unknown if accuracy is None else np.asarray(accuracy, dtype=float)
        self.accuracy_std = unknown if accuracy_std is None else np.asarray(accuracy_std, dtype=float)
        self.kept, self.hard, self.name = kept, hard, name

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
            The title. None says how many features are kept.
        axes : sequence of matplotlib Axes, default=None
            Where to draw: one each for the accuracy and the bounds, as far as they are known. None makes a figure.

        Returns
        -------
        display : EliminationDisplay
        """
        if not isinstance(selector, MarginRFE):
            raise ValueError(f"A MarginRFE is drawn here; got {type(selector).__name__}.")
        check_is_fitted(selector)
        path = selector.path_
        if name is None:
            name = f"{selector.n_features_} of {selector.support_.size} features are kept"
        display = cls(
            [stage.n_features for stage in path],
            [stage.lower for stage in path],
            [stage.upper for stage in path],
            accuracy=[stage.accuracy for stage in path],
            accuracy_std=[stage.accuracy_std for stage in path],
            kept=selector.n_features_,
            hard=path[0].hard,
            name=name,
        )
        return display.plot(axes=axes)

    @property
    def panels(self) -> int:
        """How many axes the picture takes: one each for accuracy and bounds, where they are known."""
        return int(np.isfinite(self.accuracy).any()) + int(np.isfinite(self.lower + self.upper).any())

    def plot(self, axes: Any = None, *, name: str | None = None) -> EliminationDisplay:
        """Draw.

        Parameters
        ----------
        axes : sequence of matplotlib Axes, default=None
            Where to draw: one each for the accuracy and the bounds, as far as they are known. None makes a figure.
        name : str, default=None
            The title, if it is to be another one.

        Returns
        -------
        display : EliminationDisplay
        """
        if not self.panels:
            raise ValueError(
                "there is nothing to draw: the classifier gives no certificate, and there is no accuracy without "
                "cross-validation; fit the selector with cv=5."
            )
        axes = np.atleast_1d(figure(1, self.panels) if axes is None else axes)
        self.axes_, self.figure_ = tuple(axes[: self.panels]), axes[0].figure
        left = list(self.axes_)
        self.accuracy_line_ = self.lower_line_ = self.upper_line_ = None
        style: dict[str, Any] = {"lw": 1.6, "ms": 5}
        if np.isfinite(self.accuracy).any():
            ax = left.pop(0)
            (self.accuracy_line_,) = ax.plot(self.n_features, self.accuracy, "o-", color=GOAL, **style)
            band = self.accuracy - self.accuracy_std, self.accuracy + self.accuracy_std
            ax.fill_between(self.n_features, *band, color=GOAL, alpha=0.14, lw=0)
            ax.set_ylabel("accuracy in cross-validation")
        if left:
            ax = left.pop(0)
            (self.upper_line_,) = ax.plot(
                self.n_features, self.upper, "v-", color=UPPER, label="upper bound", **style
            )
            (self.lower_line_,) = ax.plot(
                self.n_features, self.lower, "^-", color=LOWER, label="lower bound", **style
            )
            ax.fill_between(self.n_features, self.lower, self.upper, color=SHADE, alpha=0.22, lw=0)
            ax.set_ylabel("largest margin" if self.hard else "least objective")
            ax.legend(frameon=False)
        for ax in self.axes_:
            ax.set_xscale("log")
            ticks = _counts(self.n_features)
            ax.set_xticks(ticks, labels=[str(tick) for tick in ticks])
            ax.xaxis.set_minor_locator(no_ticks())
            ax.set_xlabel("features")
            plain(ax)
            if self.kept is not None:
                ax.axvline(self.kept, color=INK, lw=0.9, ls="--")
        title = self.name if name is None else name
        entitle(self.axes_[0], title)
        return self


def _counts(n_features: np.ndarray) -> list[int]:
    """1, 2, 5, 10, ... as far as the numbers of features go, or powers of ten over many decades; and the largest."""
    low, high = int(n_features.min()), int(n_features.max())
    steps = (1, 2, 5) if high <= 500 * low else (1,)
    marks = [step * 10**power for power in range(len(str(high))) for step in steps]
    # nothing so near the largest that the two would overlap
    return [mark for mark in marks if low <= mark < high / 1.4] + [high]
