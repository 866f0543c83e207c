"""MaxMarginClassifierCV: C and p chosen by cross-validation along certified paths."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import KW_ONLY, dataclass, field
from functools import partial
from threading import Event
from typing import Any

import numpy as np
from joblib import Parallel, delayed
from sklearn.metrics import check_scoring
from sklearn.model_selection import check_cv

from ..fit.deadline import Deadline, FitInterruptedError, Interruption
from ..numerics.progress import announce
from ..numerics.representable import refuse_rounded
from ..numerics.threads import jobs
from ..problem.status import Status
from .linear import MaxMarginClassifier
from .path import MarginPath, grid, margin_path
from .validation import (
    COMMON,
    check_parameters,
    checked_weights,
    distinct_labels,
    restored_after,
    validate_rows,
)


class _Chosen:
    """A parameter of `MaxMarginClassifier` that cross-validation chooses: the estimator has no such attribute."""

    def __get__(self, estimator: Any, owner: type) -> Any:
        raise AttributeError("cross-validation chooses C and p (see C_ and p_); there is no warm start.")


@dataclass(eq=False, repr=False)
class MaxMarginClassifierCV(MaxMarginClassifier):
    """`MaxMarginClassifier` with C, and the norm, chosen by cross-validation.

    Every fold is one path (`margin_path`) with warm starts. Each fit is certified, so that differences between scores
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
    loss, norm_power, tol, fit_intercept, intercept, intercept_scaling, class_weight, algorithm, point, max_iter, \
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
    best_estimator_ : MaxMarginClassifier
        The classifier that is fitted to all rows.
    coef_, intercept_, classes_, certificate_, status_, history_, n_iter_
        Attributes of `best_estimator_`.

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

    C: Any = field(default=_Chosen(), init=False)
    p: Any = field(default=_Chosen(), init=False)
    warm_start: Any = field(default=_Chosen(), init=False)
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
        whole = MaxMarginClassifier(float(costs[0]), p=norms[0], **shared)
        given = X
        if np.isinf(costs).any():
            refuse_rounded(X)
        X, y = validate_rows(self, X, y, order="C")
        distinct_labels(y)  # splitters have other messages
        weights = None if sample_weight is None else checked_weights(sample_weight, X)
        splitter: Any = check_cv(self.cv, y, classifier=True)
        folds = list(splitter.split(X, y, groups))
        if not folds:
            raise ValueError("cv has no splits: give at least one, or a number of folds.")
        scorer: Any = check_scoring(whole, scoring=self.scoring)
        shared["n_jobs"] = None
        fit_path = partial(margin_path, Cs=costs.tolist(), ps=norms, **shared)
        total = len(folds) + 1  # with the fit of all rows
        begin = partial(announce, "fold", of=total, verbose=self.verbose)
        paths = _FoldPaths(X, y, weights, fit_path, scorer, begin)
        parallel: Any = Parallel(n_jobs=jobs(self.n_jobs, len(folds)), require="sharedmem")
        found = parallel(delayed(paths.scores)(fold, *rows) for fold, rows in enumerate(folds))
        if paths.interrupted.is_set():
            raise RuntimeError("callback ended a fit of a fold before C was chosen: set max_time.")
        scores, gaps = np.moveaxis(np.array(found), 1, 0).reshape(2, len(folds), len(norms), costs.size)
        mean = scores.mean(axis=0)
        best = np.argwhere(mean == mean.max())  # by rising i
        i, k = min(best, key=lambda point: (point[0], costs[point[1]]))
        whole.set_params(C=float(costs[k]), p=norms[i])
        announce("all rows", total, total, verbose=self.verbose)
        interruption = Interruption()
        with interruption:
            whole.fit(given, y, sample_weight)
        with Deadline() as storing:
            self.Cs_, self.ps_ = costs, np.array(norms, dtype=object if "log" in norms else float)
            self.C_, self.p_ = float(costs[k]), norms[i]
            self.scores_, self.gaps_, self.best_score_ = scores, gaps, float(mean[i, k])
            self.best_estimator_, parameters = whole, whole.get_params()
            vars(self).update((name, value) for name, value in vars(whole).items() if name not in parameters)
        storing.raise_interrupt(self)
        interruption.raise_with(self)
        return self


@dataclass(frozen=True, eq=False)
class _FoldPaths:
    """Paths and scores of the folds.

    Attributes
    ----------
    X, y, weights
        The data of all rows; weights may be None.
    fit_path : callable
        `margin_path` with all parameters.
    scorer : callable
    begin : callable
        Called with the number of a fold that begins.
    interrupted : Event
        Set when the callback ends a path: no further path is fitted then.
    """

    X: Any
    y: np.ndarray
    weights: np.ndarray | None
    fit_path: Callable[..., MarginPath]
    scorer: Any
    begin: Callable[[int], None]
    interrupted: Event = field(default_factory=Event)

    def scores(self, fold: int, train: np.ndarray, test: np.ndarray) -> tuple[list[float], list[float]]:
        """Fit the path of one fold; return the score and the certified gap of every point."""
        if self.interrupted.is_set():
            return [], []
        self.begin(fold + 1)
        weights = None if self.weights is None else self.weights[train]
        try:
            path = self.fit_path(self.X[train], self.y[train], sample_weight=weights)
        except FitInterruptedError:  # its result, a part of the path of one fold, chooses nothing
            raise KeyboardInterrupt("the choice of C was interrupted: the estimator is as it was.") from None
        if Status.INTERRUPTED in path.statuses_:
            self.interrupted.set()
            return [], []
        scores = self._test_scores(fold, test, path)
        for model, score in zip(path, scores, strict=True):
            if np.isnan(score):
                point = f"C = {model.C:g}, p = {model.p}"
                raise ValueError(f"fold {fold} (counted from 0) scores nan at {point}: change scoring.")
        return scores, list(path.gaps_)

    def _test_scores(self, fold: int, test: np.ndarray, path: MarginPath) -> list[float]:
        """Score every point of a path on the test rows of its fold."""
        X, y, weights = self.X[test], self.y[test], None if self.weights is None else self.weights[test]
        if len(y) == 0 or (weights is not None and not weights.any()):
            raise ValueError(f"fold {fold} (counted from 0) has no row with a weight to score: change cv.")
        weighted = {} if weights is None else {"sample_weight": weights}
        try:
            return [float(self.scorer(model, X, y, **weighted)) for model in path]
        except TypeError as error:
            if "sample_weight" in str(error):
                raise TypeError("scoring must take sample_weight: change it, or leave weights out") from error
            raise
