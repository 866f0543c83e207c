"""Decision surface on a plane through the rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass
from functools import partial
from typing import Any

import numpy as np
from scipy.ndimage import distance_transform_edt

from ..algorithms.base import is_whole
from ..estimators.decisions import class_values, decision, decisions, feature_names_of, text_of
from ..kernels.functions import Precomputed
from . import style
from .base import AxesDisplay, checked_rows
from .planes import choose_plane
from .style import CYCLE, FAINT, INK, TINTS

# Rows that are drawn at most: more take longer to draw than a grid of 100 x 100 scores, and hide each other. Of more
# rows, every so many-th of each class is drawn.
_MOST_ROWS = 2000
_FEW_ROWS = 300  # up to which markers are large: more would overlap
_ROOM = 0.06  # around the rows, as a share of their extent: markers at the edge stay whole


@dataclass(eq=False, repr=False)
class DecisionSurfaceDisplay(AxesDisplay):
    """The sign of f on a plane, with its margin, or the class that is predicted there.

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
        Number of each row's class; with one f, 1 is positive and 0 negative.
    classes : sequence of str
        Names of the classes, by code.
    support, wrong : array-like of bool of shape (n_samples,), default=None
        True for support vectors, and for rows on the wrong side; None where this is not known.
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

    first: Any
    second: Any
    values: Any
    _: KW_ONLY
    places: Any
    codes: Any
    classes: Sequence[str]
    support: Any = None
    wrong: Any = None
    words: tuple[str, str] = ("", "")

    _grid_axis = None

    def __post_init__(self) -> None:
        self._convert("first", "second", "values", "places")
        self._convert("codes", dtype=None)
        self._convert("support", "wrong", dtype=bool)
        self.classes = list(self.classes)

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
            The title. None gives the share of rows that are classified as labelled.
        ax : matplotlib Axes, default=None
            Where to draw; None makes a figure.

        Returns
        -------
        display : DecisionSurfaceDisplay

        Raises
        ------
        NotFittedError
        ValueError
            If there is no such plane, center or label, if the model has no features (a precomputed kernel), or only
            one, if `X` and `y` do not fit it, or if scores overflow.
        """
        every = decisions(estimator)
        drawn = every if label is None else [decision(estimator, label)]
        which, model = drawn[0], drawn[0].model
        if which.certificate is not None and isinstance(which.certificate.kernel, Precomputed):
            raise ValueError("a precomputed kernel knows no features, and there is no plane to draw.")
        names = feature_names_of(estimator, X, feature_names)
        X, y = checked_rows(estimator, which, X, y, sample_weight)
        if X.shape[1] < 2:
            raise ValueError("a plane takes two features, and there is one: draw a MarginDisplay.")
        if not is_whole(grid_resolution, 2):
            raise ValueError(f"grid_resolution must be a whole number above 1; got {grid_resolution!r}.")
        supports = [one.support(X, y, sample_weight) for one in drawn]
        coef = getattr(model, "coef_", None)
        if len(drawn) == 1:
            f, classes, (signs, rows) = which.scores, [which.negative, which.positive], which.signs(y)
            codes, predicted = (signs > 0.0).astype(int), (f(X) > 0.0).astype(int)
            weights = None if coef is None else np.asarray(coef[which.index], dtype=float)
        else:
            f, classes = partial(class_values, model), [f"class {text_of(name)}" for name in model.classes_]
            rows, codes = np.ones(y.size, dtype=bool), np.searchsorted(model.classes_, y)
            predicted, weights = f(X).argmax(axis=1), None
        known = [one for one in supports if one is not None]
        support = np.any(known, axis=0)[rows] if len(known) == len(drawn) else None
        section = choose_plane(plane, center, X, names, weights)
        places, codes, wrong = section.places(X[rows]), codes[rows], (predicted != codes)[rows]
        first, second = (_grid(places[:, k], grid_resolution) for k in range(2))
        # a linear function plus a constant for each class, unlike the values of pairs, and of streams that vote
        affine = which.certificate is not None and coef is not None and not isinstance(which.label, tuple)
        values = (section.affine_values if affine else section.values)(f, first, second)
        if name is None:
            sides = f"{which.name}: " if len(drawn) < len(every) else ""
            right = style.percent(1.0 - float(np.mean(wrong)))
            name = f"{sides}{right} of {len(wrong)} rows are classified as labelled"
        display = cls(
            first, second, values if len(drawn) > 1 else values[:, :, 0], places=places, codes=codes, classes=classes,
            support=support, wrong=wrong, words=section.words, name=name,
        )  # fmt: skip
        return display.plot(ax=ax)

    def _check(self) -> None:
        if self.values.shape[:2] != (self.second.size, self.first.size) or self.values.ndim not in (2, 3):
            raise ValueError(f"there must be a value at each point of the grid; got {self.values.shape}.")
        if not np.isfinite(self.values).all():
            raise ValueError("the scores of some points of the plane overflow: scale the features.")

    def _draw(self, ax: Any) -> None:
        """Draw the areas, the rows, and the limits and titles of the axes."""
        if self.values.ndim == 2:
            self._draw_sides(ax)
            self._draw_rows(ax, [style.NEGATIVE, style.POSITIVE])
        else:
            self._draw_classes(ax)
            self._draw_rows(ax, [CYCLE[k % len(CYCLE)] for k in range(len(self.classes))])
        style.literal(ax.set_xlabel(self.words[0]))
        style.literal(ax.set_ylabel(self.words[1]))
        ax.set_xlim(self.first[0], self.first[-1])
        ax.set_ylim(self.second[0], self.second[-1])

    def _draw_sides(self, ax: Any) -> None:
        """Draw the four areas between the lines f = -1, 0 and 1, and those of the lines that are in the picture."""
        grid = (self.first, self.second, self.values)
        low, high = float(self.values.min()), float(self.values.max())
        tints = [TINTS[1], FAINT[1], FAINT[0], TINTS[0]]
        ends = [min(low, -1.0) - 1.0, -1.0, 0.0, 1.0, max(high, 1.0) + 1.0]
        self.surface_: Any = ax.contourf(*grid, levels=ends, colors=tints, zorder=0)
        self.contours_: Any = None
        margin, surface = ("margin, f = ±1", "--", 1.1), ("surface, f = 0", "-", 1.6)
        lines = {-1.0: margin, 0.0: surface, 1.0: margin}
        lines = {level: line for level, line in lines.items() if low < level < high}
        if lines:
            _, dashes, widths = map(list, zip(*lines.values(), strict=True))
            look = {"colors": INK, "linestyles": dashes, "linewidths": widths}
            self.contours_ = ax.contour(*grid, levels=list(lines), zorder=1, **look)
        for text, dashes, width in dict.fromkeys(lines.values()):  # for the legend
            ax.plot([], [], color=INK, ls=dashes, lw=width, label=text)

    def _draw_classes(self, ax: Any) -> None:
        """Draw the area of each class, where it has the largest value."""
        self.contours_, self.surface_ = None, []
        for k in range(self.values.shape[2]):
            others = np.delete(self.values, k, axis=2).max(axis=2)
            # the zero line of a difference is smooth, unlike the edge of a set of grid points
            ahead = self.values[:, :, k] - others
            if ahead.max() <= 0.0:
                continue
            grid, ends = (self.first, self.second, ahead), [0.0, 2.0 * float(ahead.max())]
            self.surface_.append(ax.contourf(*grid, levels=ends, colors=[TINTS[k % len(TINTS)]], zorder=0))
            # the name stands where the edge of the area is farthest
            depth: Any = distance_transform_edt(np.pad(ahead > 0.0, 1))
            i, j = np.unravel_index(depth.argmax(), depth.shape)
            box = {"facecolor": style.PAPER, "alpha": 0.8, "lw": 0, "pad": 1.5}
            look: dict[str, Any] = {"ha": "center", "va": "center", "weight": "bold", "zorder": 5}
            place = (self.first[j - 1], self.second[i - 1])
            style.literal(ax.text(*place, self.classes[k].removeprefix("class "), bbox=box, **look))
            if ahead.min() < 0.0:
                ax.contour(*grid, levels=[0.0], colors=INK, linewidths=0.8, zorder=1)

    def _draw_rows(self, ax: Any, colours: list[str]) -> None:
        """Draw the rows, rings around support vectors, and crosses on rows on the wrong side."""
        step = -(-len(self.places) // _MOST_ROWS)
        drawn = np.zeros(len(self.places), dtype=bool)
        for k in range(len(self.classes)):
            drawn[np.flatnonzero(self.codes == k)[::step]] = True
        size, ring, stroke = (26.0, 78.0, 0.8) if drawn.sum() <= _FEW_ROWS else (13.0, 32.0, 0.5)

        def scatter(rows: np.ndarray, **options: Any) -> Any:
            return ax.scatter(*self.places[drawn & rows].T, **options)

        self.points_ = {}
        # of two sides the positive one first, as in their name
        for k in range(len(self.classes)) if self.values.ndim == 3 else (1, 0):
            self.points_[self.classes[k]] = scatter(
                self.codes == k, s=size, marker=style.MARKERS[k % len(style.MARKERS)], color=colours[k],
                edgecolors=style.PAPER, linewidths=0.4, label=self.classes[k], zorder=2,
            )  # fmt: skip
        self.support_points_ = self.wrong_points_ = None
        if self.support is not None and self.support.any():
            look = {"s": ring, "facecolors": "none", "edgecolors": INK, "linewidths": stroke, "zorder": 3}
            self.support_points_ = scatter(self.support, label="support vector", **look)
        if self.wrong is not None and self.wrong.any():
            look = {"s": 1.2 * size, "marker": "x", "color": INK, "linewidths": 1.4 * stroke, "zorder": 4}
            self.wrong_points_ = scatter(self.wrong, label="misclassified", **look)
        title = f"1 of {step} rows is drawn" if step > 1 else None
        options = {"title": title, "alignment": "left", "handletextpad": 0.3, **style.LEGEND_BESIDE}
        style.legend(ax, title_fontsize="medium", **options)


def _grid(coordinates: np.ndarray, count: int) -> np.ndarray:
    low, high = float(coordinates.min()), float(coordinates.max())
    room = _ROOM * (high - low) or 1.0
    return np.linspace(low - room, high + room, count)
