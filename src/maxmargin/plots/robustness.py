"""Rows that stay correct under perturbations."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import Any

import numpy as np
from sklearn.utils.validation import check_consistent_length, check_is_fitted, column_or_1d

from ..estimators.prediction import exponent
from .base import AxesDisplay, check_labels
from .style import INK, LOWER, norm_text, percent


@dataclass(eq=False, repr=False)
class RobustnessDisplay(AxesDisplay):
    """The share of rows that stay correct under any perturbation of at most some size.

    It is recommended to use :func:`RobustnessDisplay.from_estimator`.

    Parameters
    ----------
    radii : array-like of shape (n_samples,)
        Certified radii: no smaller perturbation changes the label of the row.
    correct : array-like of bool of shape (n_samples,)
        True for rows whose predicted label is right.
    p : float, default=2
        The norm in which perturbations are measured.
    name : str, default=None
        The title. None gives the size up to which half of the rows stay correct.

    Attributes
    ----------
    ax_ : matplotlib Axes
    figure_ : matplotlib Figure
    line_ : matplotlib Line2D

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from maxmargin import MaxMarginClassifier
    >>> from maxmargin.plots import RobustnessDisplay
    >>> X, y = load_iris(return_X_y=True)
    >>> display = RobustnessDisplay.from_estimator(MaxMarginClassifier().fit(X, y), X, y)
    >>> display.share(0.0) >= display.share(0.5)
    True
    """

    radii: Any
    correct: Any
    _: KW_ONLY
    p: float = 2.0

    def __post_init__(self) -> None:
        self._convert("radii")
        self._convert("correct", dtype=bool)

    @classmethod
    def from_estimator(
        cls, estimator: Any, X: Any, y: Any, *, name: str | None = None, ax: Any = None
    ) -> RobustnessDisplay:
        """Draw the robustness of a fitted classifier on these rows.

        Parameters
        ----------
        estimator : MaxMarginClassifier, OnlineMarginClassifier or MarginRFE of one
            Fitted.
        X : array-like or sparse matrix of shape (n_samples, n_features)
        y : array-like of shape (n_samples,)
            The true labels.
        name : str, default=None
            The title. None gives the size up to which half of the rows stay correct.
        ax : matplotlib Axes, default=None
            Where to draw; None makes a figure.

        Returns
        -------
        display : RobustnessDisplay

        Raises
        ------
        NotFittedError
        ValueError
            If the classifier has no `certified_radius`, or `X` and `y` do not fit it.
        """
        if not hasattr(estimator, "certified_radius"):
            raise ValueError(f"{type(estimator).__name__} has no certified_radius: give one that has.")
        check_is_fitted(estimator)
        y = column_or_1d(y)
        check_consistent_length(X, y)
        check_labels(estimator.classes_, y)
        radii = estimator.certified_radius(X)
        p = exponent(getattr(estimator, "estimator_", estimator))
        return cls(radii, estimator.predict(X) == y, p=p, name=name).plot(ax=ax)

    def share(self, radius: float) -> float:
        """Return the share of rows that are right and that no perturbation smaller than `radius` changes."""
        return float(np.mean(self.correct & (self.radii >= radius)))

    @property
    def radius_of_half(self) -> float:
        """The largest perturbation that leaves half of all rows correct; 0 where fewer are."""
        radii = np.sort(self.radii[self.correct])[::-1]
        half = -(-self.radii.size // 2)
        return float(radii[half - 1]) if radii.size >= half else 0.0

    def _check(self) -> None:
        if self.radii.size == 0 or self.radii.shape != self.correct.shape:
            raise ValueError(f"rows need one radius and label; got {self.radii.shape}, {self.correct.shape}.")

    def _draw(self, ax: Any) -> None:
        """Draw the share of rows that stay correct as steps, and where it is one half."""
        radii = np.sort(self.radii[self.correct])  # beyond the k-th of these, k rows fewer stay right
        finite = radii[np.isfinite(radii)]
        radius = np.concatenate([[0.0], finite])
        share = (radii.size - np.arange(finite.size + 1.0)) / self.radii.size
        if radii.size > finite.size:  # some rows stay right under any perturbation
            radius = np.append(radius, 1.05 * radius[-1] or 1.0)
            share = np.append(share, share[-1])
        (self.line_,) = ax.plot(radius, share, color=LOWER, lw=1.8, drawstyle="steps-post")
        ax.set_xlabel(f"size of the perturbation ({norm_text(self.p)}-norm, in units of the features)")
        ax.set_ylabel("share of rows that stay correct")
        ax.set_ylim(0.0, 1.02)
        ax.set_xlim(0.0, None)
        half = self.radius_of_half
        if 0.0 < half < np.inf:
            ax.plot([0.0, half, half], [0.5, 0.5, 0.0], color=INK, lw=1.2, ls=":")
            ax.annotate(f"half of the rows: {half:.3g}", (half, 0.5), (6, 3), textcoords="offset points")

    def _summary(self) -> str:
        right = f"{percent(float(np.mean(self.correct)))} of the rows are correct"
        half = self.radius_of_half
        if half == 0.0:
            return right
        return f"{right}; half of all rows stay so {'for ever' if np.isinf(half) else f'up to {half:.3g}'}"
