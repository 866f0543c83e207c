"""Pictures of a fit, in the manner of scikit-learn's displays; they need matplotlib."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils.validation import check_consistent_length, check_is_fitted, column_or_1d

from .estimators.robustness import exponent
from .estimators.selection import MarginRFE
from .solve import Report

_UPPER, _LOWER, _TOL = "#c2410c", "#1d4ed8", "#16a34a"
_MARKERS = "os^vD<>phXP*"


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
    ) -> None:
        self.seconds = np.asarray(seconds, dtype=float)
        self.lower = np.asarray(lower, dtype=float)
        self.upper = np.asarray(upper, dtype=float)
        self.tol = tol
        self.name = name
        self.quantity = quantity

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
        problem = certificate.problem
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
            ax = _figure()
        self.ax_, self.figure_ = ax, ax.figure
        above, below, self.best_ = self._distances()
        linear = self._linear_threshold(above, below)
        time, unit = _scaled(self.seconds)
        ax.set_yscale("symlog", linthresh=linear, linscale=1.0)
        style: dict[str, Any] = {"drawstyle": "steps-post", "lw": 1.8, "marker": "o", "ms": 4}
        (self.upper_line_,) = ax.plot(time, above, color=_UPPER, label="upper bound", **style)
        (self.lower_line_,) = ax.plot(time, -below, color=_LOWER, label="lower bound", **style)
        self.interval_ = ax.fill_between(time, -below, above, step="post", color="#94a3b8", alpha=0.22, lw=0)
        if self.tol is not None:
            ax.axhspan(
                -self.tol / 2, self.tol / 2, color=_TOL, alpha=0.14, lw=0, label=f"gap of tol = {self.tol:g}"
            )
        ax.axhline(0.0, color="#334155", lw=0.8)
        _style(ax, max(np.nanmax(above), np.nanmax(below)), linear)
        ax.set(xlabel=f"time ({unit})", ylabel=f"relative distance from the best {self.quantity}")
        title = self.name if name is None else name
        if title:
            ax.set_title(f"{title}: {self._verdict(above, below)}", loc="left", pad=30)
        ax.legend(loc="lower left", bbox_to_anchor=(-0.01, 1.0), ncols=3, frameon=False, borderaxespad=0.2)
        ax.set_xlim(0.0, None)
        return self

    def _distances(self) -> tuple[np.ndarray, np.ndarray, float]:
        """Distances of the upper and of the lower bound; NaN where a bound is not finite."""
        finite = np.isfinite(self.lower) & np.isfinite(self.upper)
        if not finite.any():
            raise ValueError("there is nothing to draw: no report has two finite bounds.")
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
            axes = _figure(1, 2)
        left, right = axes
        self.axes_, self.figure_ = (left, right), left.figure
        self.lines_ = {}
        for k, key in enumerate(self.values):
            shown = self._shown(key)
            style: dict[str, Any] = {
                "drawstyle": "steps-post",
                "lw": 1.6,
                "marker": _MARKERS[k % len(_MARKERS)],
                "markevery": max(1, shown.size // 8),
                "ms": 4,
                "color": f"C{k % 10}",
                "label": key,
            }
            self.lines_[key] = tuple(
                ax.plot(np.where(x > 0.0, x, np.nan), shown, **style)[0]
                for ax, x in ((left, self.updates[key]), (right, self.seconds[key]))
            )
        for ax in self.axes_:
            ax.set_xscale("log")
            _plain(ax)
            if self.hard:
                ax.axhline(self.best, color="#334155", lw=0.9, ls="--")
            else:
                ax.set_yscale("log")
                if self.tol is not None:
                    ax.axhline(self.tol, color=_TOL, lw=0.9, ls="--")
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
            left.set_title(f"{title}: {bound}", loc="left")
        right.legend(loc="center left", bbox_to_anchor=(1.0, 0.5), frameon=False)
        return self

    def _shown(self, key: str) -> np.ndarray:
        """Margins as they are, where there is one; objectives as distances."""
        values = self.values[key]
        if self.hard:
            return np.where(values > 0.0, values, np.nan)
        share = (values - self.best) / (abs(self.best) or 1.0)
        return np.where(np.isfinite(share) & (share > 0.0), share, np.nan)


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
        axes = np.atleast_1d(_figure(1, self.panels) if axes is None else axes)
        self.axes_, self.figure_ = tuple(axes[: self.panels]), axes[0].figure
        left = list(self.axes_)
        self.accuracy_line_ = self.lower_line_ = self.upper_line_ = None
        style: dict[str, Any] = {"lw": 1.6, "ms": 5}
        if np.isfinite(self.accuracy).any():
            ax = left.pop(0)
            (self.accuracy_line_,) = ax.plot(self.n_features, self.accuracy, "o-", color=_TOL, **style)
            band = self.accuracy - self.accuracy_std, self.accuracy + self.accuracy_std
            ax.fill_between(self.n_features, *band, color=_TOL, alpha=0.14, lw=0)
            ax.set_ylabel("accuracy in cross-validation")
        if left:
            ax = left.pop(0)
            (self.upper_line_,) = ax.plot(
                self.n_features, self.upper, "v-", color=_UPPER, label="upper bound", **style
            )
            (self.lower_line_,) = ax.plot(
                self.n_features, self.lower, "^-", color=_LOWER, label="lower bound", **style
            )
            ax.fill_between(self.n_features, self.lower, self.upper, color="#94a3b8", alpha=0.22, lw=0)
            ax.set_ylabel("largest margin" if self.hard else "least objective")
            ax.legend(frameon=False)
        for ax in self.axes_:
            ax.set_xscale("log")
            ax.set_xlabel("features")
            _plain(ax)
            if self.kept is not None:
                ax.axvline(self.kept, color="#334155", lw=0.9, ls="--")
        title = self.name if name is None else name
        if title:
            self.axes_[0].set_title(title, loc="left")
        return self


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
        The title.

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
            ax = _figure()
        self.ax_, self.figure_ = ax, ax.figure
        known = np.sort(self.radii[self.correct])  # after the k-th of these, k rows fewer stay right
        finite = known[np.isfinite(known)]
        radius = np.concatenate([[0.0], finite])
        share = (known.size - np.arange(finite.size + 1.0)) / self.radii.size
        if known.size > finite.size:  # some stay right for ever
            radius = np.append(radius, 1.05 * radius[-1] or 1.0)
            share = np.append(share, share[-1])
        (self.line_,) = ax.plot(radius, share, color=_LOWER, lw=1.8, drawstyle="steps-post")
        norm = "∞" if np.isinf(self.p) else f"{self.p:.3g}"
        ax.set(xlabel=f"size of the perturbation, {norm}-norm", ylabel="share of rows that stay correct")
        ax.set_ylim(0.0, 1.02)
        ax.set_xlim(0.0, None)
        _plain(ax)
        title = self.name if name is None else name
        if title:
            ax.set_title(title, loc="left")
        return self


def _figure(rows: int = 1, columns: int = 1) -> Any:
    try:
        import matplotlib.pyplot as plt
    except ImportError:
        raise ImportError("Pictures need matplotlib: pip install 'maxmargin[plot]'.") from None
    return plt.subplots(rows, columns, figsize=(3.6 * (columns + 1), 4.6), layout="constrained")[1]


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
    ax.yaxis.set_minor_locator(_no_ticks())
    ax.grid(axis="y", color="#e2e8f0", lw=0.6)
    ax.set_axisbelow(True)
    for side in ("top", "right"):
        ax.spines[side].set_visible(False)


def _plain(ax: Any) -> None:
    """A light grid behind the lines, and no frame where there is no scale."""
    ax.grid(color="#e2e8f0", lw=0.6)
    ax.set_axisbelow(True)
    for side in ("top", "right"):
        ax.spines[side].set_visible(False)


def _no_ticks() -> Any:
    from matplotlib.ticker import NullLocator

    return NullLocator()
