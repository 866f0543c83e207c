"""Number of weights that matter against the norm in which the margin is measured."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from .base import LINE, PanelDisplay, draw_interval, label_norms
from .style import BLUE, GREEN, HIGHEST_ACCURACY, norm_text, percent


@dataclass(eq=False, repr=False)
class SparsityDisplay(PanelDisplay):
    """The number of weights that matter against p, with the accuracy and the certified objective where they are known.

    A weight matters if it is larger than `threshold` times the largest one of its function; of several classes a
    feature matters if it does in one of them. The values of p stand side by side in their order, equally far apart.

    It is recommended to use :func:`SparsityDisplay.from_estimators`, or :func:`SparsityDisplay.from_data`.

    Parameters
    ----------
    ps : array-like of shape (n_fits,)
        The norms in which the margin was measured, 1 to inf.
    counts : array-like of int of shape (n_fits,)
        Number of weights that matter.
    n_features : int
    lower, upper : array-like of shape (n_fits,), default=None
        Certified bounds on the best objective, or on the largest margin, in the norm of each fit.
    accuracy : array-like of shape (n_fits,), default=None
    hard : bool, default=False
        True for bounds on the margin, False for bounds on the objective.
    threshold : float, default=1e-3
        Threshold of the counts, for the label of the axis.
    name : str, default=None
        The title. None gives the p at which the fewest weights matter.

    Attributes
    ----------
    axes_ : tuple of matplotlib Axes
        Of the counts, of the accuracy and of the bounds, as far as they are known.
    figure_ : matplotlib Figure
    count_line_ : matplotlib Line2D
    accuracy_line_ : matplotlib Line2D or None
    interval_ : pair of matplotlib Line2D or None
        Upper and lower bound.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from maxmargin import MaxMarginClassifier
    >>> from maxmargin.plots import SparsityDisplay
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> X = X / X.max(axis=0)
    >>> fits = [MaxMarginClassifier(p=p).fit(X, y) for p in (2, float("inf"))]
    >>> display = SparsityDisplay.from_estimators(fits, X, y)
    >>> bool(display.counts[0] > display.counts[1])
    True
    """

    ps: Any
    counts: Any
    n_features: int
    _: KW_ONLY
    lower: Any = None
    upper: Any = None
    accuracy: Any = None
    hard: bool = False
    threshold: float = 1e-3

    def __post_init__(self) -> None:
        self._convert("ps", "lower", "upper", "accuracy")
        self._convert("counts", dtype=None)
        self.n_features = int(self.n_features)
        order = np.argsort(self.ps, kind="stable")
        for field in ("ps", "counts", "lower", "upper", "accuracy"):
            values = getattr(self, field)
            setattr(self, field, None if values is None else values[order])

    @classmethod
    def from_data(
        cls,
        ps: Any,
        coefs: Any,
        *,
        threshold: float = 1e-3,
        lower: Any = None,
        upper: Any = None,
        accuracy: Any = None,
        hard: bool = False,
        name: str | None = None,
        axes: Any = None,
    ) -> SparsityDisplay:
        """Draw the weights of fits at several p.

        Parameters
        ----------
        ps : array-like of shape (n_fits,)
        coefs : array-like of shape (n_fits, n_features) or (n_fits, n_classes, n_features)
        threshold : float in [0, 1), default=1e-3
            A weight matters if it is larger than this share of the largest one of its function.
        lower, upper : array-like of shape (n_fits,), default=None
            Certified bounds; None draws none.
        accuracy : array-like of shape (n_fits,), default=None
        hard : bool, default=False
            True for bounds on the margin, False for bounds on the objective.
        name : str, default=None
        axes : sequence of matplotlib Axes, default=None
            Where to draw: one for the counts, and one each for accuracy and bounds that are given. None makes a figure.

        Returns
        -------
        display : SparsityDisplay

        Raises
        ------
        ValueError
            If `threshold` is no such share, or there are no weights for each p.
        """
        if not 0.0 <= threshold < 1.0:
            raise ValueError(f"threshold is a share of the largest weight, in [0, 1); got {threshold!r}.")
        coefs = np.asarray(coefs, dtype=float)
        if coefs.ndim not in (2, 3) or coefs.shape[0] != np.size(ps) or not np.size(ps):
            raise ValueError(f"coefs must hold a row for each of {np.size(ps)} fits; got {coefs.shape}.")
        sizes = np.abs(coefs)
        matters = sizes > threshold * sizes.max(axis=-1, keepdims=True)
        if coefs.ndim == 3:
            matters = matters.any(axis=1)
        display = cls(
            ps, matters.sum(axis=-1), coefs.shape[-1], lower=lower, upper=upper, accuracy=accuracy, hard=hard,
            threshold=threshold, name=name,
        )  # fmt: skip
        return display.plot(axes=axes)

    @classmethod
    def from_estimators(
        cls,
        estimators: Sequence[Any],
        X: Any = None,
        y: Any = None,
        *,
        threshold: float = 1e-3,
        name: str | None = None,
        axes: Any = None,
    ) -> SparsityDisplay:
        """Draw fitted classifiers that differ in p.

        Certified bounds are drawn of two classes; several classes have several.

        Parameters
        ----------
        estimators : sequence of MaxMarginClassifier
            Fitted to the same data.
        X, y : array-like, default=None
            Rows and labels for the accuracy, preferably not those of the fit; None draws none.
        threshold : float in [0, 1), default=1e-3
            A weight matters if it is larger than this share of the largest one of its function.
        name : str, default=None
        axes : sequence of matplotlib Axes, default=None
            Where to draw; None makes a figure.

        Returns
        -------
        display : SparsityDisplay

        Raises
        ------
        NotFittedError
        ValueError
            If no fit is given, or `threshold` is no such share.
        """
        if not len(estimators):
            raise ValueError("there is nothing to draw: no fit is given.")
        for estimator in estimators:
            check_is_fitted(estimator)
        parts = [estimator.certificate_.certificates for estimator in estimators]
        known: dict[str, Any] = {}
        if all(len(part) == 1 for part in parts):
            known = {"lower": [part[0].lower for part in parts], "upper": [part[0].upper for part in parts]}
        if X is not None:
            known["accuracy"] = [estimator.score(X, y) for estimator in estimators]
        ps, coefs = [part[0].problem.p for part in parts], [estimator.coef_ for estimator in estimators]
        hard = parts[0][0].problem.hard
        return cls.from_data(ps, coefs, threshold=threshold, hard=hard, name=name, axes=axes, **known)

    @property
    def panels(self) -> int:
        """The number of axes of the picture."""
        return 1 + (self.accuracy is not None) + self._has_bounds

    @property
    def _has_bounds(self) -> bool:
        return self.lower is not None and self.upper is not None

    def _draw(self, *axes: Any) -> None:
        """Draw the counts, the accuracy and the bounds, as far as they are known, against p."""
        place = np.arange(self.ps.size)
        (self.count_line_,) = axes[0].plot(place, self.counts, "o-", color=BLUE, **LINE)
        for x, count in zip(place, self.counts, strict=True):
            look = {"textcoords": "offset points", "fontsize": 9, "color": BLUE}
            axes[0].annotate(f"{count}", (x, count), (4, 4), **look)
        axes[0].set_ylim(0.0, 1.12 * max(1, int(self.counts.max())))
        axes[0].set_ylabel(f"weights above {percent(self.threshold)} of the largest (of {self.n_features})")
        self.accuracy_line_, self.interval_ = None, None
        if self.accuracy is not None:
            (self.accuracy_line_,) = axes[1].plot(place, self.accuracy, "s-", color=GREEN, **LINE)
            axes[1].set_ylabel("accuracy")
            axes[1].set_ylim(top=min(axes[1].get_ylim()[1], HIGHEST_ACCURACY))
        if self._has_bounds:
            quantity = f"{'largest margin' if self.hard else 'least objective'}, in the p-norm"
            self.interval_ = draw_interval(axes[-1], place, self.lower, self.upper, quantity)
        for ax in axes:
            label_norms(ax, place, self.ps)
            ax.margins(x=0.08)

    def _summary(self) -> str:
        least = int(np.argmin(self.counts))
        p = norm_text(self.ps[least])
        return f"fewest weights at p = {p}: {self.counts[least]} of {self.n_features} matter"
