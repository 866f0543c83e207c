"""The decision surface on a plane through the rows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from ..estimators.decisions import Decision, class_values, decision, decisions, text_of
from ..kernels.functions import Precomputed
from .planes import Plane, center_of, of_components, of_features, of_weights
from .rows import checked_rows
from .style import (
    CYCLE,
    FAINT,
    INK,
    MARKERS,
    NEGATIVE,
    PAPER,
    POSITIVE,
    TINTS,
    entitle,
    figure,
    legend,
    literal,
    percent,
)

MOST_ROWS = 2000  # that are drawn; of more, every so many-th of each class


class DecisionSurfaceDisplay:
    """Where f is positive and negative on a plane, with its margin, or which class is predicted there.

    The plane is an exact section of f, not an approximation: f is evaluated at points of the plane, in all features.
    Rows are drawn where the plane is nearest to them; with more than two features they may lie before or behind it, so
    that rows on the wrong side are marked by their own score, not by the place where they are drawn.

    It is recommended to use :func:`DecisionSurfaceDisplay.from_estimator`.

    Parameters
    ----------
    first, second : array-like of shape (n,) and (m,)
        Coordinates of the grid.
    values : array-like of shape (m, n) or (m, n, n_classes)
        f on the grid, or one value a class, the largest of which is predicted.
    places : array-like of shape (n_samples, 2)
        Coordinates of the rows.
    codes : array-like of int of shape (n_samples,)
        Of each row's class; with one f, 1 is positive and 0 negative.
    classes : sequence of str
        What the codes mean.
    support, wrong : array-like of bool of shape (n_samples,), default=None
        Is the row a support vector? Is it on the wrong side? None where that is not known.
    words : pair of str, default=("", "")
        The titles of the axes.
    name : str, default=None
        The title.

    Attributes
    ----------
    ax_ : matplotlib Axes
    figure_ : matplotlib Figure
    surface_ : matplotlib QuadContourSet or list of these
        The areas; of several classes one each.
    contours_ : matplotlib QuadContourSet or None
        f = -1, 0 and 1, as far as they are in the picture; None of several classes.
    points_ : dict of str to matplotlib PathCollection
        The rows of each class; of more than 2000 rows only a part, every so many-th of each class.
    support_points_, wrong_points_ : matplotlib PathCollection or None

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from maxmargin import KernelMaxMarginClassifier
    >>> from maxmargin.plots import DecisionSurfaceDisplay
    >>> X, y = load_iris(return_X_y=True)
    >>> clf = KernelMaxMarginClassifier().fit(X, y)
    >>> display = DecisionSurfaceDisplay.from_estimator(clf, X, y, label=1, plane=(2, 3))
    >>> display.contours_.levels.tolist()
    [-1.0, 0.0, 1.0]
    """

    def __init__(
        self,
        first: Any,
        second: Any,
        values: Any,
        *,
        places: Any,
        codes: Any,
        classes: Sequence[str],
        support: Any = None,
        wrong: Any = None,
        words: tuple[str, str] = ("", ""),
        name: str | None = None,
    ) -> None:
        self.first, self.second = np.asarray(first, dtype=float), np.asarray(second, dtype=float)
        self.values, self.places = np.asarray(values, dtype=float), np.asarray(places, dtype=float)
        self.codes, self.classes = np.asarray(codes), list(classes)
        self.support = None if support is None else np.asarray(support, dtype=bool)
        self.wrong = None if wrong is None else np.asarray(wrong, dtype=bool)
        self.words, self.name = words, name

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any,
        y: Any,
        *,
        sample_weight: Any = None,
        plane: Any = None,
        center: str = "mean",
        label: Any = None,
        feature_names: Sequence[str] | None = None,
        grid_resolution: int = 100,
        name: str | None = None,
        ax: Any = None,
    ) -> DecisionSurfaceDisplay:
        """Draw the decision surface and these rows.

        Parameters
        ----------
        estimator : MaxMarginClassifier, KernelMaxMarginClassifier or OnlineMarginClassifier
            Fitted, with two features or more.
        X : array-like or sparse matrix of shape (n_samples, n_features)
        y : array-like of shape (n_samples,)
        sample_weight : array-like of shape (n_samples,), default=None
            That of the fit: support vectors are known only of the data of the fit.
        plane : pair of int or str, "components" or "weights", default=None
            Two features by place or name, the others being at their `center`; the first two principal components; or,
            of one linear function, the direction of its weights and the widest one across, where every row is drawn
            at its true score. None takes the only two features, else the principal components.
        center : {"mean", "median"}, default="mean"
            The point of the rows through which the plane goes.
        label : object, default=None
            The class against the rest, or the pair of classes, of which f is drawn with its margin. None draws the f
            of two classes, and which class is predicted of several.
        feature_names : sequence of str, default=None
            None takes those of the fit, or numbers.
        grid_resolution : int, default=100
            Points of the grid in each direction.
        name : str, default=None
            The title. None says how many of the rows are classified as labelled.
        ax : matplotlib Axes, default=None
            Where to draw; None makes a figure.

        Returns
        -------
        display : DecisionSurfaceDisplay
        """
        check_is_fitted(estimator)
        all_of_them = decisions(estimator)
        one = decision(estimator, label) if label is not None or len(all_of_them) == 1 else None
        which = all_of_them[0] if one is None else one
        if which.certificate is not None and isinstance(which.certificate.kernel, Precomputed):
            raise ValueError("a precomputed kernel knows no features, and there is no plane to draw.")
        names = _names(estimator, X, feature_names)
        X, y = checked_rows(estimator, which, X, y, sample_weight)
        if X.shape[1] < 2:
            raise ValueError("a plane takes two features, and there is one: draw a MarginDisplay.")
        if not (isinstance(grid_resolution, int | np.integer) and grid_resolution > 1):
            raise ValueError(f"grid_resolution must be a whole number above 1; got {grid_resolution!r}.")
        supports = [
            _support(part, X, y, sample_weight) for part in ([one] if one is not None else all_of_them)
        ]
        flat = _plane(plane, center, one, X, names)
        if one is not None:
            signs, among = one.signs(y)
            X = X[among]
            codes, classes = (signs[among] > 0.0).astype(int), (one.negative, one.positive)
            wrong = (one.scores(X) > 0.0) != (codes == 1)
        else:
            among = np.ones(y.size, dtype=bool)
            every = np.asarray(estimator.classes_)
            codes, classes = np.searchsorted(every, y), [f"class {text_of(name)}" for name in every]
            wrong = which.model.predict(X) != y
        known = [rows for rows in supports if rows is not None]
        support = np.any(known, axis=0)[among] if len(known) == len(supports) else None
        places = flat.places(X)
        first, second = (_grid(places[:, k], grid_resolution) for k in range(2))

        def f(rows: np.ndarray) -> np.ndarray:
            return one.scores(rows) if one is not None else class_values(which.model, rows)

        values = (flat.affine_section if _is_affine(which) else flat.section)(f, first, second)
        if name is None:
            what = "" if len(all_of_them) == 1 or one is None else f"{one.name}: "
            right = 1.0 - float(np.mean(wrong))
            name = f"{what}{percent(right)} of {y[among].size} rows are classified as labelled"
        display = cls(
            first,
            second,
            values[:, :, 0] if one is not None else values,
            places=places,
            codes=codes,
            classes=classes,
            support=support,
            wrong=wrong,
            words=flat.words,
            name=name,
        )
        return display.plot(ax=ax)

    def plot(self, ax: Any = None, *, name: str | None = None) -> DecisionSurfaceDisplay:
        """Draw.

        Parameters
        ----------
        ax : matplotlib Axes, default=None
            Where to draw; None makes a figure.
        name : str, default=None
            The title, if it is to be another one.

        Returns
        -------
        display : DecisionSurfaceDisplay
        """
        if self.values.shape[:2] != (self.second.size, self.first.size) or self.values.ndim not in (2, 3):
            raise ValueError(
                f"there must be values for each of {self.second.size} x {self.first.size} points of the grid; got "
                f"shape {self.values.shape}."
            )
        if not np.isfinite(self.values).all():
            raise ValueError("the scores of some points of the plane overflow, and cannot be drawn.")
        if ax is None:
            ax = figure()
        self.ax_, self.figure_ = ax, ax.figure
        if self.values.ndim == 2:
            self._side_areas(ax)
            colours = [NEGATIVE, POSITIVE]
        else:
            self._class_areas(ax)
            colours = [CYCLE[k % len(CYCLE)] for k in range(len(self.classes))]
        self._rows(ax, colours)
        literal(ax.set_xlabel(self.words[0]))
        literal(ax.set_ylabel(self.words[1]))
        ax.set_xlim(self.first[0], self.first[-1])
        ax.set_ylim(self.second[0], self.second[-1])
        for side in ("top", "right"):
            ax.spines[side].set_visible(False)
        entitle(ax, self.name if name is None else name)
        return self

    def _side_areas(self, ax: Any) -> None:
        """Four areas between the lines f = -1, 0 and 1."""
        grid = (self.first, self.second, self.values)
        low, high = float(self.values.min()), float(self.values.max())
        tints = [TINTS[1], FAINT[1], FAINT[0], TINTS[0]]
        ends = [min(low, -1.0) - 1.0, -1.0, 0.0, 1.0, max(high, 1.0) + 1.0]
        self.surface_: Any = ax.contourf(*grid, levels=ends, colors=tints, zorder=0)
        lines = [(-1.0, "--", 1.1), (0.0, "-", 1.6), (1.0, "--", 1.1)]
        seen = [line for line in lines if low < line[0] < high]
        self.contours_: Any = None
        if seen:
            levels, styles, widths = map(list, zip(*seen, strict=True))
            self.contours_ = ax.contour(
                *grid, levels=levels, colors=INK, linestyles=styles, linewidths=widths, zorder=1
            )
        for level, style, width in seen:
            words = "f = 0" if level == 0.0 else "f = ±1"
            if level != 1.0 or -1.0 not in [line[0] for line in seen]:
                ax.plot([], [], color=INK, ls=style, lw=width, label=words)

    def _class_areas(self, ax: Any) -> None:
        """Where each class has the largest value, with smooth edges."""
        self.contours_, self.surface_ = None, []
        for k in range(self.values.shape[2]):
            others = np.delete(self.values, k, axis=2).max(axis=2)
            ahead = self.values[:, :, k] - others
            if ahead.max() > 0.0:
                ends = [0.0, 2.0 * float(ahead.max())]
                area = ax.contourf(
                    self.first, self.second, ahead, levels=ends, colors=[TINTS[k % len(TINTS)]], zorder=0
                )
                self.surface_.append(area)
                if ahead.min() < 0.0:
                    ax.contour(
                        self.first, self.second, ahead, levels=[0.0], colors=INK, linewidths=0.8, zorder=1
                    )

    def _rows(self, ax: Any, colours: list[str]) -> None:
        step = -(-len(self.places) // MOST_ROWS)
        drawn = np.zeros(len(self.places), dtype=bool)
        for k in range(len(self.classes)):
            drawn[np.flatnonzero(self.codes == k)[::step]] = True
        few = drawn.sum() <= 300
        size, ring, stroke = (26.0, 78.0, 0.8) if few else (13.0, 32.0, 0.5)
        self.points_ = {}
        # the positive side first, as its name goes
        for k in range(len(self.classes)) if self.values.ndim == 3 else (1, 0):
            self.points_[self.classes[k]] = ax.scatter(
                *self.places[drawn & (self.codes == k)].T, s=size, marker=MARKERS[k % len(MARKERS)],
                color=colours[k], edgecolors=PAPER, linewidths=0.4, label=self.classes[k], zorder=2,
            )  # fmt: skip
        self.support_points_ = self.wrong_points_ = None
        if self.support is not None and self.support.any():
            self.support_points_ = ax.scatter(
                *self.places[drawn & self.support].T, s=ring, facecolors="none", edgecolors=INK, linewidths=stroke,
                label="support vector", zorder=3,
            )  # fmt: skip
        if self.wrong is not None and self.wrong.any():
            self.wrong_points_ = ax.scatter(
                *self.places[drawn & self.wrong].T, s=1.2 * size, marker="x", color=INK, linewidths=1.4 * stroke,
                label="on the wrong side", zorder=4,
            )  # fmt: skip
        title = f"1 of {step} rows is drawn" if step > 1 else None
        legend(
            ax, loc="center left", bbox_to_anchor=(1.0, 0.5), frameon=False, handletextpad=0.3, title=title,
            title_fontsize="medium", alignment="left",
        )  # fmt: skip


def _names(estimator: Any, X: Any, given: Sequence[str] | None) -> list[str]:
    """What the features are called."""
    count = int(np.shape(X)[1])
    if given is None:
        given = getattr(estimator, "feature_names_in_", None)
    if given is None:
        return [f"feature {j}" for j in range(count)]
    if len(given) != count:
        raise ValueError(f"there must be a name for each of {count} features; got {len(given)}.")
    return [str(name) for name in given]


def _plane(asked: Any, center: str, one: Decision | None, X: Any, names: list[str]) -> Plane:
    middle = center_of(X, center)
    if asked is None:
        asked = (0, 1) if X.shape[1] == 2 else "components"
    if isinstance(asked, str) and asked == "components":
        return of_components(middle, X, center)
    if isinstance(asked, str) and asked == "weights":
        coef = None if one is None else getattr(one.model, "coef_", None)
        if one is None or coef is None:
            raise ValueError(
                'plane="weights" takes one linear function: a linear model, and label= where there are several classes.'
            )
        return of_weights(middle, X, np.asarray(coef[one.place], dtype=float), center)
    if isinstance(asked, str) or len(asked) != 2:
        raise ValueError(f'plane must be a pair of features, "components" or "weights"; got {asked!r}.')
    pair = [_place(feature, names) for feature in asked]
    if pair[0] == pair[1]:
        raise ValueError(f"plane takes two different features; got {asked!r}.")
    return of_features(middle, pair, names, center)


def _place(feature: Any, names: list[str]) -> int:
    if isinstance(feature, str):
        if feature not in names:
            raise ValueError(f"there is no feature called {feature!r}.")
        return names.index(feature)
    if not (isinstance(feature, int | np.integer) and 0 <= feature < len(names)):
        raise ValueError(f"a feature is a name, or a number from 0 to {len(names) - 1}; got {feature!r}.")
    return int(feature)


def _support(which: Decision, X: Any, y: Any, sample_weight: Any) -> np.ndarray | None:
    """Which rows have a dual weight; None where these are not the rows of the fit."""
    return which.dual() > 0.0 if which.difference(X, y, sample_weight) is None else None


def _is_affine(which: Decision) -> bool:
    """Is f, or the value of every class, the score of a linear function? Votes are not, nor are those of pairs."""
    linear = which.certificate is not None and hasattr(which.model, "coef_")
    return linear and not isinstance(which.label, tuple)


def _grid(values: np.ndarray, count: int) -> np.ndarray:
    low, high = float(values.min()), float(values.max())
    room = 0.06 * (high - low) or 1.0
    return np.linspace(low - room, high + room, count)
