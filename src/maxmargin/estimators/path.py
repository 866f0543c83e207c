"""Paths of certified classifiers along C and p, and cross-validation along them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from copy import copy
from dataclasses import KW_ONLY, dataclass, field
from functools import partial
from itertools import product
from time import perf_counter
from typing import Any

import numpy as np
from joblib import Parallel, delayed
from sklearn.metrics import check_scoring
from sklearn.model_selection import check_cv

from ..certificates.certificate import Certificate, Certificates
from ..fit.deadline import FitInterruptedError, Interruption
from ..numerics.columns import weight_array
from ..numerics.progress import announce
from ..numerics.sizes import is_whole, jobs
from ..problem.problem import Status
from .linear import MaxMarginClassifier
from .validation import (
    COMMON,
    check_parameters,
    distinct_labels,
    restored_after,
    validate_rows,
)


class MarginPath:
    """Classifiers along a grid of C and p, each certified; `path[k]` is the k-th.

    Attributes
    ----------
    models : tuple of MaxMarginClassifier, of length n_points
    seconds : ndarray of shape (n_points,)
        Duration of the fit of each point.
    Cs, ps : ndarray of shape (n_points,)
    coefs_ : ndarray of shape (n_points, n_features) or (n_points, n_classes, n_features)
        Weights; no axis of classes for two classes.
    intercepts_ : ndarray of shape (n_points,) or (n_points, n_classes)
    lower_, upper_ : ndarray of shape (n_points,)
        Bounds on the best objective, summed over the classes; of a hard margin, on the smallest margin of all classes.
    gaps_ : ndarray of shape (n_points,)
        Certified relative gaps.
    statuses_ : tuple of Status
        How each fit ended.
    """

    def __init__(self, points: Sequence[tuple[MaxMarginClassifier, float]]) -> None:
        if not points:
            raise ValueError("a path needs at least one point: margin_path makes one.")
        models, seconds = zip(*points, strict=True)
        self.models: tuple[MaxMarginClassifier, ...] = models
        self.seconds = np.array(seconds)
        self.Cs = np.array([float(model.C) for model in models])
        self.ps = np.array([model.certificate_.certificates[0].problem.p for model in models])
        self.coefs_ = _of_classes([model.coef_ for model in models])
        self.intercepts_ = _of_classes([model.intercept_ for model in models])
        self.lower_, self.upper_ = np.array([total_bounds(model.certificate_) for model in models]).T
        self.gaps_ = np.array([model.certificate_.gap for model in models])
        self.statuses_ = tuple(model.status_ for model in models)

    def __len__(self) -> int:
        return len(self.models)

    def __getitem__(self, k: int) -> MaxMarginClassifier:
        return self.models[k]

    def __iter__(self) -> Iterator[MaxMarginClassifier]:
        return iter(self.models)

    def __str__(self) -> str:
        lines = ["       C        p      lower bound      upper bound      gap  weights  status"]
        for k, model in enumerate(self.models):
            lines.append(
                f"{self.Cs[k]:8.3g} {self.ps[k]:8.3g} {self.lower_[k]:16.9g} {self.upper_[k]:16.9g} "
                f"{self.gaps_[k]:8.2g} {np.count_nonzero(model.coef_):8d}  {model.status_.name}"
            )
        for k, status in enumerate(self.statuses_):  # the first point of each status
            if status is not Status.CERTIFIED and status not in self.statuses_[:k]:
                point = f"C = {self.Cs[k]:.3g}, p = {self.ps[k]:.3g}"
                lines.append(f"{status} ({point}): {self.models[k].message_}")
        return "\n".join(lines)


def total_bounds(certificate: Certificate | Certificates) -> tuple[float, float]:
    """Return the bounds on the smallest margin of all binary problems, or on the sum of their objectives."""
    parts = certificate.certificates
    total = min if parts[0].problem.hard else sum
    return total(part.lower for part in parts), total(part.upper for part in parts)


def _of_classes(values: list[np.ndarray]) -> np.ndarray:
    """Stack the values of all points; of two classes, which are one problem, without the axis of classes."""
    stacked = np.stack(values)
    return stacked[:, 0] if stacked.shape[1] == 1 else stacked


def margin_path(
    X: Any,
    y: Any,
    Cs: int | Sequence[float] = 10,
    ps: Sequence[float | str] = (2,),
    *,
    sample_weight: Any = None,
    **parameters: Any,
) -> MarginPath:
    """Fit a classifier for every C and every p, each from the last solution in its norm.

    The dual variables of the last point are multiplied by the factor that is best for the new C. If the data are not
    separable, the new fit then starts close to its optimum once C is large, since w hardly changes. A hard margin
    (``C=inf``) begins anew.

    Parameters
    ----------
    X : array-like or sparse matrix of shape (n_samples, n_features)
    y : array-like of shape (n_samples,)
    Cs : int or sequence of float, default=10
        The costs, or their number, spaced evenly in the logarithm from 1e-4 to 1e4. ``inf`` is the hard margin.
    ps : sequence of float, default=(2,)
        The norms. Every p is combined with every C.
    sample_weight : array-like of shape (n_samples,), default=None
        Factor on each row's loss.
    **parameters
        Parameters of `MaxMarginClassifier` other than C, p and warm_start: loss, tol, algorithm, and so on.
        ``max_time`` is the limit of one point.

    Returns
    -------
    path : MarginPath
        In the order of `ps`, and within each p in the order of `Cs`. Points are fitted by increasing C. If `callback`
        ends a fit, the path ends with this point.

    Raises
    ------
    KeyboardInterrupt
        After Ctrl-C; the attribute `result` of the error is the path so far, including the interrupted point. Before
        the first point has a model there is no such attribute.
    ValueError
        If `Cs` or `ps` is empty, or `MaxMarginClassifier` cannot use the data or the parameters.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from maxmargin import margin_path
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> path = margin_path(X, y, Cs=[0.01, 1.0, 100.0], loss="hinge", random_state=0)
    >>> bool((path.gaps_ <= 1e-3).all())
    True
    """
    costs, norms = grid(Cs, ps)
    found: dict[tuple[int, int], tuple[MaxMarginClassifier, float]] = {}
    order, interruption = np.argsort(costs, kind="stable").tolist(), Interruption()
    last: Any = None
    try:
        for i, k in product(range(len(norms)), order):
            name, points = f"C = {costs[k]:.3g}, p = {norms[i]}", len(norms) * len(order)
            announce(name, len(found) + 1, points, level=1, verbose=parameters.get("verbose", 0))
            model, begun = MaxMarginClassifier(float(costs[k]), p=norms[i], **parameters), perf_counter()
            if k != order[0] and np.isfinite(costs[k]):
                model = copy(last).set_params(C=model.C, p=model.p, warm_start=True)
            with interruption:
                last = model.fit(X, y, sample_weight)
            found[i, k] = model.set_params(warm_start=False), perf_counter() - begun
            if interruption.received or model.status_ is Status.INTERRUPTED:
                break
    except KeyboardInterrupt:  # between two fits
        if not found:
            raise
        interruption.received = True
    path = MarginPath([found[key] for key in sorted(found)])
    interruption.raise_with(path)
    return path


def grid(Cs: Any, ps: Any) -> tuple[np.ndarray, list[Any]]:
    """Return the costs and the norms, at least one of each."""
    norms = list(ps) if isinstance(ps, Iterable) and not isinstance(ps, str) else [ps]
    if not norms:
        raise ValueError("ps must hold at least one norm: ps=(2,) for instance.")
    if is_whole(Cs):
        if Cs < 1:
            raise ValueError(f"Cs must be a number of costs, at least 1, or the costs; got {Cs!r}.")
        return np.logspace(-4.0, 4.0, int(Cs)) if Cs != 1 else np.ones(1), norms
    try:
        costs = np.zeros(0) if isinstance(Cs, str | bool) else np.asarray(Cs, dtype=float).ravel()
    except (TypeError, ValueError, OverflowError):
        costs = np.zeros(0)
    if costs.size == 0 or not (costs > 0.0).all():
        raise ValueError(f"Cs must be positive numbers, at least one; got {Cs!r}.")
    return costs, norms


@dataclass(eq=False, repr=False)
class MaxMarginClassifierCV(MaxMarginClassifier):
    """`MaxMarginClassifier` with C, and the norm, chosen by cross-validation.

    Every fold is one path (`margin_path`), with warm starts. Each fit is certified, so that differences between scores
    come from C and p, and not from fits that ended early. The parameters with the best mean score are then fitted to
    all rows.

    Parameters
    ----------
    Cs : int or sequence of float, default=10
        The costs, or their number, spaced evenly in the logarithm from 1e-4 to 1e4.
    ps : sequence of float or "log", default=(2,)
        The norms in which distance is measured; ``"log"`` is max(2, 2 ln n_features).
    cv : int, cross-validation generator or iterable, default=None
        None is 5 folds, stratified.
    scoring : str or callable, default=None
        None is accuracy.
    loss, norm_power, tol, fit_intercept, intercept_scaling, class_weight, algorithm, max_iter, \
max_time, callback, n_jobs, random_state, verbose
        As in `MaxMarginClassifier`. `n_jobs` is the number of threads for the folds, and for the classes of the last
        fit. `max_time` is the limit of each fit.

    Attributes
    ----------
    C_ : float
        The chosen cost: the smallest one with the best mean score, at the first such norm.
    p_ : float
        The chosen norm.
    Cs_, ps_ : ndarray
        The grid.
    scores_ : ndarray of shape (n_folds, n_ps, n_Cs)
        The score of every fold, with sample weights if they are given.
    gaps_ : ndarray of shape (n_folds, n_ps, n_Cs)
        Certified gaps of these fits.
    best_score_ : float
        The best mean score.
    coef_, intercept_, classes_, certificate_, status_, history_, n_iter_
        Of the fit to all rows, as in `MaxMarginClassifier`.

    See Also
    --------
    margin_path : One path, without folds.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from sklearn.preprocessing import scale
    >>> from maxmargin import MaxMarginClassifierCV, verify
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> clf = MaxMarginClassifierCV(Cs=[1e-3, 1e-2, 1e-1, 1.0], random_state=0).fit(scale(X), y)
    >>> clf.scores_.shape
    (5, 1, 4)
    >>> bool(verify(clf, scale(X), y).gap < 1e-8)
    True
    """

    C: Any = field(default=property(lambda model: model.C_), init=False)  # those of the fit to all rows
    p: Any = field(default=property(lambda model: model.p_), init=False)
    warm_start: Any = field(default=False, init=False)
    Cs: int | Sequence[float] = 10
    _: KW_ONLY
    ps: Sequence[float | str] = (2,)
    cv: Any = None
    scoring: Any = None

    @restored_after(BaseException)
    def fit(
        self, X: Any, y: Any = None, sample_weight: Any = None, groups: Any = None
    ) -> MaxMarginClassifierCV:
        """Choose C and p by cross-validation, and fit a classifier with them to all rows.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
        y : array-like of shape (n_samples,)
        sample_weight : array-like of shape (n_samples,), default=None
            Factor on each row's loss, and on its weight in the score.
        groups : array-like of shape (n_samples,), default=None
            Groups of rows, for splitters that use them.

        Returns
        -------
        self : MaxMarginClassifierCV

        Raises
        ------
        KeyboardInterrupt
            After Ctrl-C. While folds are fitted nothing is chosen, and the estimator is as it was before; the fit of
            all rows ends with the best model so far.
        RuntimeError
            If `callback` ends a fit of a fold.
        """
        check_parameters(self, {"n_jobs": COMMON["n_jobs"]})
        parameters = self.get_params(deep=False).items()
        shared = {name: value for name, value in parameters if name not in ("Cs", "ps", "cv", "scoring")}
        costs, norms = grid(self.Cs, self.ps)
        given = X
        X, y = validate_rows(self, X, y, order="C")
        distinct_labels(y)  # splitters have other messages
        weights = None if sample_weight is None else weight_array(sample_weight, y.size)
        splitter: Any = check_cv(self.cv, y, classifier=True)
        folds = list(splitter.split(X, y, groups))
        if not folds:
            raise ValueError("cv has no splits: give at least one, or a number of folds.")
        scorer: Any = check_scoring(self, scoring=self.scoring)
        fit_path = partial(margin_path, Cs=costs.tolist(), ps=norms, **shared | {"n_jobs": None})
        total = len(folds) + 1  # with the fit of all rows
        fold_scores = partial(self._fold_scores, (X, y, weights), fit_path, scorer, total)
        parallel: Any = Parallel(n_jobs=jobs(self.n_jobs, len(folds)), require="sharedmem")
        found = parallel(delayed(fold_scores)(fold, *rows) for fold, rows in enumerate(folds))
        scores, gaps = np.moveaxis(np.array(found), 1, 0).reshape(2, len(folds), len(norms), costs.size)
        mean = scores.mean(axis=0)
        best = np.argwhere(mean == mean.max())  # by rising i
        i, k = min(best, key=lambda point: (point[0], costs[point[1]]))
        self.Cs_, self.ps_ = costs, np.array(norms, dtype=object if "log" in norms else float)
        self.C_, self.p_ = float(costs[k]), norms[i]
        self.scores_, self.gaps_, self.best_score_ = scores, gaps, float(mean[i, k])
        announce("all rows", total, total, verbose=self.verbose)
        super().fit(given, y, sample_weight)
        return self

    def _fold_scores(
        self, data: Any, fit_path: Any, scorer: Any, total: int, fold: int, train: Any, test: Any
    ) -> tuple[list[float], list[float]]:
        """Fit the path of one fold; return the score of every point on its test rows, and the certified gap."""
        X, y, weights = data
        announce("fold", fold + 1, total, verbose=self.verbose)
        try:
            path = fit_path(X[train], y[train], sample_weight=None if weights is None else weights[train])
        except FitInterruptedError:  # its result, a part of the path of one fold, chooses nothing
            raise KeyboardInterrupt("the choice of C was interrupted: the estimator is as it was.") from None
        if Status.INTERRUPTED in path.statuses_:
            raise RuntimeError("callback ended a fit of a fold before C was chosen: set max_time.")
        if len(test) == 0 or (weights is not None and not weights[test].any()):
            raise ValueError(f"fold {fold} (counted from 0) has no row with a weight to score: change cv.")
        weighted = {} if weights is None else {"sample_weight": weights[test]}
        try:
            scores = [float(scorer(model, X[test], y[test], **weighted)) for model in path]
        except TypeError as error:
            if "sample_weight" in str(error):
                raise TypeError("scoring must take sample_weight: change it, or leave weights out") from error
            raise
        for model, score in zip(path, scores, strict=True):
            if np.isnan(score):
                point = f"C = {model.C:g}, p = {model.p}"
                raise ValueError(f"fold {fold} (counted from 0) scores nan at {point}: change scoring.")
        return scores, list(path.gaps_)
