"""Rows that stay correct under perturbations."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils.validation import check_consistent_length, check_is_fitted, column_or_1d

from ..estimators.robustness import exponent
from .style import INK, LOWER, entitle, figure, percent, plain


class RobustnessDisplay:
    """The share of rows that stay correct, whatever perturbation of at most some size they suffer.

    It is recommended to use :func:`RobustnessDisplay.from_estimator`.

    Parameters
    ----------
    radii : array-like of shape (n_samples,)
        Certified radii: no smaller perturbation changes the label of the row.
    correct : array-like of bool of shape (n_samples,)
        Is the label right?
    p : float, default=2
        The norm in which perturbations are measured.
    name : str, default=None
        The title. None says up to where half of the rows stay correct.

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

    def __init__(self, radii: Any, correct: Any, *, p: float = 2.0, name: str | None = None) -> None:
        self.radii, self.correct = np.asarray(radii, dtype=float), np.asarray(correct, dtype=bool)
        self.p, self.name = p, name

    @classmethod
    def from_estimator(
        cls, estimator: Any, X: Any, y: Any, *, name: str | None = None, ax: Any = None
    ) -> RobustnessDisplay:
        """Draw how a fitted classifier stands up to perturbations of these rows.

        Parameters
        ----------
        estimator : MaxMarginClassifier, OnlineMarginClassifier or MarginRFE of one
            Fitted.
        X : array-like or sparse matrix of shape (n_samples, n_features)
        y : array-like of shape (n_samples,)
            The true labels.
        name : str, default=None
            The title.
        ax : matplotlib Axes, default=None
            Where to draw; None makes a figure.

        Returns
        -------
        display : RobustnessDisplay
        """
        if not hasattr(estimator, "certified_radius"):
            raise ValueError(
                f"{type(estimator).__name__} has no certified_radius: give a MaxMarginClassifier, an "
                "OnlineMarginClassifier or a MarginRFE of one."
            )
        check_is_fitted(estimator)
        y = column_or_1d(y)
        check_consistent_length(X, y)
        unknown = np.setdiff1d(y, estimator.classes_)
        if unknown.size:
            raise ValueError(
                f"The classifier knows no class {unknown.tolist()[0]!r}: y holds true labels, of "
                f"{estimator.classes_.tolist()}."
            )
        radii = estimator.certified_radius(X)
        p = exponent(getattr(estimator, "estimator_", estimator))
        return cls(radii, estimator.predict(X) == y, p=p, name=name).plot(ax=ax)

    def share(self, radius: float) -> float:
        """The share of rows that are right, and that no perturbation smaller than `radius` changes."""
        return float(np.mean(self.correct & (self.radii >= radius)))

    def plot(self, ax: Any = None, *, name: str | None = None) -> RobustnessDisplay:
        """Draw.

        Parameters
        ----------
        ax : matplotlib Axes, default=None
            Where to draw; None makes a figure.
        name : str, default=None
            The title, if it is to be another one.

        Returns
        -------
        display : RobustnessDisplay
        """
        if self.radii.size == 0 or self.radii.shape != self.correct.shape:
            raise ValueError(
                f"there must be one radius for every row, and at least one row; got {self.radii.shape} radii and "
                f"{self.correct.shape} labels."
            )
        if ax is None:
            ax = figure()
        self.ax_, self.figure_ = ax, ax.figure
        known = np.sort(self.radii[self.correct])  # after the k-th of these, k rows fewer stay right
        finite = known[np.isfinite(known)]
        radius = np.concatenate([[0.0], finite])
        share = (known.size - np.arange(finite.size + 1.0)) / self.radii.size
        if known.size > finite.size:  # some stay right for ever
            radius = np.append(radius, 1.05 * radius[-1] or 1.0)
            share = np.append(share, share[-1])
        (self.line_,) = ax.plot(radius, share, color=LOWER, lw=1.8, drawstyle="steps-post")
        norm = "∞" if np.isinf(self.p) else f"{self.p:.3g}"
        ax.set(xlabel=f"size of the perturbation, {norm}-norm", ylabel="share of rows that stay correct")
        ax.set_ylim(0.0, 1.02)
        ax.set_xlim(0.0, None)
        plain(ax)
        half = self.radius_of_half
        if 0.0 < half < np.inf:
            ax.plot([0.0, half, half], [0.5, 0.5, 0.0], color=INK, lw=0.9, ls=":")
        title = self.name if name is None else name
        entitle(ax, self._finding() if title is None else title)
        return self

    @property
    def radius_of_half(self) -> float:
        """The largest perturbation that leaves half of all rows correct; 0 where fewer are."""
        known = np.sort(self.radii[self.correct])[::-1]
        needed = -(-self.radii.size // 2)
        return float(known[needed - 1]) if known.size >= needed else 0.0

    def _finding(self) -> str:
        right = f"{percent(float(np.mean(self.correct)))} of the rows are correct"
        half = self.radius_of_half
        if half == 0.0:
            return right
        return f"{right}; half of all rows stay so {'for ever' if np.isinf(half) else f'up to {half:.3g}'}"
