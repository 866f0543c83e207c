"""MarginRFE: features eliminated by the weights of maximum-margin classifiers, with bounds on what it costs."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from copy import copy, deepcopy
from dataclasses import dataclass, replace
from numbers import Integral, Real
from typing import Any

import numpy as np
import scipy.sparse as sp
from joblib import Parallel, delayed
from sklearn.base import BaseEstimator, MetaEstimatorMixin, clone
from sklearn.feature_selection import SelectorMixin
from sklearn.metrics import check_scoring
from sklearn.model_selection import check_cv
from sklearn.utils import check_random_state, get_tags
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import (
    _check_sample_weight,
    check_is_fitted,
    has_fit_parameter,
)

from ..algorithms import IMA, Algorithm
from ..numerics.representable import refuse_rounded
from ..numerics.threads import jobs, one_thread
from ..problem.problem import Problem
from ..problem.status import Status
from .callbacks import CallbackSupportMixin, Tasks, tasks, with_callbacks
from .linear import MaxMarginClassifier
from .rollback import unchanged_by
from .rows import checked_rows

FOLDS = 5
AS_IN_THE_PAPERS = IMA(increment=0.02, budget=6000)
ZERO = 1e-14  # a weight that small beside the largest is zero to rounding
_ROUNDING = 1e-12  # of a power of the number of features


@dataclass(frozen=True, eq=False)
class Stage:
    """One set of features on the way.

    Attributes
    ----------
    n_features : int
    order : ndarray of int
        All features, best first; the first `n_features` are this set.
    p : float
        The norm in which this classifier measures distance; nan where it has no certificate.
    status : Status or None
        How its fit ended; None where the estimator does not say.
    hard : bool
        Is `lower` and `upper` about the margin, rather than the objective?
    lower, upper : float
        Certified bounds on the largest margin that this set of features allows (hard), or on the least objective;
        of several classes on the smallest of their margins, or on the sum of their objectives. What is certain of
        the set before counts here too. nan where there is no certificate.
    accuracy, accuracy_std : float
        Mean and standard deviation of the scores in the folds, of the elimination down to so many features; nan without
        cross-validation.
    """

    n_features: int
    order: np.ndarray
    p: float
    status: Status | None
    hard: bool
    lower: float
    upper: float
    accuracy: float = np.nan
    accuracy_std: float = np.nan

    @property
    def features(self) -> np.ndarray:
        """The features of this set, in the order of the columns."""
        return np.sort(self.order[: self.n_features])


class MarginRFE(SelectorMixin, CallbackSupportMixin, MetaEstimatorMixin, BaseEstimator):
    """Recursive feature elimination by the weights of maximum-margin classifiers.

    Train, rank the features by ``|w_j|``, delete the last of them, train again on what is left, until as many are
    left as were asked for. What a deletion costs is bounded on the way: no set of features has a larger margin, or a
    smaller objective, than a set that contains it, so that every certificate bounds all sets that come after it.

    Weights can be compared only where features can: bring them to one scale before
    (``make_pipeline(StandardScaler(), MarginRFE())``).

    Parameters
    ----------
    estimator : str, Algorithm or estimator, default="auto"
        What is trained: an algorithm of `MaxMarginClassifier`, by its name ("alma", "auto" or another; "ima" is that
        of the papers, ``IMA(increment=0.02, budget=6000)``) or as an object such as ``ALMA(alpha=0.5)``; or any
        classifier with `coef_` after its fit, of which a clone is trained on every set.
    p : float in [1, inf] or "log", default="log"
        The norm in which distance is measured. ``"log"`` is max(2, ln f), f being the number of features
        left, as the papers on elimination have it; that of `MaxMarginClassifier` is max(2, 2 ln f), for which the
        margin in the inf-norm is promised. ``inf`` makes weights sparse. This and the parameters from `C` to
        `max_iter` belong to algorithms; an estimator has its own.
    n_features_to_select : int, float, "cv" or None, default=None
        How many to keep; a float in (0, 1] is a share. ``"cv"`` takes the size of the best mean score in
        cross-validation, the smallest of equals. None is ``"cv"`` where `cv` is given, else half of them.
    step : int or float, default=0.1
        How many features leave at a time; a float in (0, 1) is a share of those left, one at least. Where more weights
        than that are zero (to rounding), as with exact programs at ``p=inf``, all of these features leave at once: the
        classifier does without them.
    cv : int, splitter or iterable, default=None
        Cross-validation, with an elimination of its own on the training part of every fold, so that the test part has
        no say in what is eliminated. None is none, or with ``n_features_to_select="cv"`` 5 folds.
    scoring : str or callable, default=None
        Score in cross-validation; None is the estimator's own, the accuracy.
    aggregate : {"sum", "max"}, default="sum"
        Several classes: features are ranked by the sum of squares of their weights, or by the largest weight.
    C, loss, tol, fit_intercept, class_weight, max_iter
        As in `MaxMarginClassifier`; tol=1e-2 by default. With ``C=inf`` the elimination ends where the
        rows are not separable any more, or no separator is found: the last set that had one is kept.
    n_jobs : int, default=None
        Folds at the same time (processes).
    random_state : int, RandomState instance or None, default=None
    verbose : int, default=0
        1 prints a line for every set to standard error.

    Attributes
    ----------
    support_ : ndarray of bool of shape (n_features,)
    ranking_ : ndarray of int of shape (n_features,)
        1 for features that are kept, 2 for those deleted last, and so on.
    order_ : ndarray of int of shape (n_features,)
        Features, best first: those that stayed longest, and of those deleted together the larger weight.
    n_features_ : int
        How many are kept.
    reason_ : str
        Why the elimination ended where it did.
    estimator_ : estimator
        The classifier on the features kept.
    classes_ : ndarray of shape (n_classes,)
    path_ : list of Stage
        Every set, the largest first, with its certified bounds and its score in cross-validation.
    cv_results_ : dict of ndarray
        Where there is cross-validation: `n_features`, `mean_test_score`, `std_test_score`, and `split0_test_score`
        and so on, for classifiers with at most so many features. nan where a fold came to an end before.
    n_iter_ : int
        Rounds of `estimator_`; 1 where it does not count any.
    n_features_in_ : int
    feature_names_in_ : ndarray of shape (n_features,)
        Only where X had string column names.

    Raises
    ------
    ValueError
        If data or parameters cannot be used, and with ``C=inf`` if not even all features separate the rows. The
        selector is left as it was.

    Notes
    -----
    Why bounds are inherited: a classifier on a subset is a classifier on the whole set with zeros in w, of the same
    norm and the same margins. Where p falls to p' with the number f of features, |w|_q <= f^(1/p' - 1/p) |w|_q', so
    that the bound on the margin is multiplied by this power of f, and the norm in the objective divided by it.

    The accuracy of the size that cross-validation chose is the best of several, and so a little optimistic;
    `sklearn.model_selection.cross_val_score` of the selector itself is not.

    References
    ----------
    I. Guyon, J. Weston, S. Barnhill, V. Vapnik, "Gene selection for cancer classification using support vector
    machines", Machine Learning 46, 2002; C. Gentile, "The robustness of the p-norm algorithms", Machine Learning 53,
    2003.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from sklearn.preprocessing import StandardScaler
    >>> from maxmargin import MarginRFE
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> selector = MarginRFE("auto", p=2, n_features_to_select=5).fit(StandardScaler().fit_transform(X), y)
    >>> selector.n_features_
    5
    >>> selector.transform(X).shape
    (569, 5)
    """

    def __init__(
        self,
        estimator: Any = "auto",
        *,
        p: float | str = "log",
        n_features_to_select: int | float | str | None = None,
        step: int | float = 0.1,
        cv: Any = None,
        scoring: Any = None,
        aggregate: str = "sum",
        C: float = 1.0,
        loss: str = "squared_hinge",
        tol: float = 1e-2,
        fit_intercept: bool = True,
        class_weight: Any = None,
        max_iter: int = 1000,
        n_jobs: int | None = None,
        random_state: Any = None,
        verbose: int = 0,
    ) -> None:
        self.estimator = estimator
        self.p = p
        self.n_features_to_select = n_features_to_select
        self.step = step
        self.cv = cv
        self.scoring = scoring
        self.aggregate = aggregate
        self.C = C
        self.loss = loss
        self.tol = tol
        self.fit_intercept = fit_intercept
        self.class_weight = class_weight
        self.max_iter = max_iter
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        inner = get_tags(
            MaxMarginClassifier() if isinstance(self.estimator, str | Algorithm) else self.estimator
        )
        tags.estimator_type = inner.estimator_type
        tags.classifier_tags = deepcopy(inner.classifier_tags)
        if tags.classifier_tags is not None:
            tags.classifier_tags.poor_score = True  # half of two features may be the wrong one
        tags.target_tags.required = True
        tags.input_tags.sparse = inner.input_tags.sparse
        return tags

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> MarginRFE:
        """Eliminate features.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
        y : array-like of shape (n_samples,)
        sample_weight : array-like of shape (n_samples,), default=None
            As in the classifier that is trained; for the scores of the folds, too.

        Returns
        -------
        self : MarginRFE
        """
        with unchanged_by(BaseException, self), one_thread:
            return self._fit(X, y, sample_weight)

    @with_callbacks
    def _fit(self, X: Any, y: Any, sample_weight: Any) -> MarginRFE:
        self._check()
        engine = self._engine()
        if getattr(engine, "C", None) == np.inf:
            refuse_rounded(X)
        X, y = checked_rows(self, X, y, accept_sparse="csr", order="C")
        if sample_weight is not None:
            if not has_fit_parameter(engine, "sample_weight"):
                raise ValueError(
                    f"{type(engine).__name__} takes no sample weights: leave sample_weight out, or eliminate "
                    "with an estimator that takes them."
                )
            sample_weight = _check_sample_weight(sample_weight, X, dtype=np.float64)
        least = self._least(X.shape[1])
        sizes = _sizes(X.shape[1], least, self.step)
        rng = check_random_state(self.random_state)
        results, target = None, least
        validated = self.cv is not None or self._chooses
        parts = tasks(self, X, y, sample_weight, len(sizes) + int(validated))
        if validated:
            with parts.part(lambda: "cross-validation"):
                results = self._validated(engine, X, y, sample_weight, sizes, rng)
            target = _best(results) if self._chooses else least
        elimination = _Elimination(self, engine, X, y, sample_weight, sizes, _seed(rng), parts)
        path: list[Stage] = []
        kept: Any = None
        classifier: Any = None
        for found, trained in elimination:
            stage = replace(found, **_scores_at(results, found.n_features))
            path.append(stage)
            if self.verbose:
                print(_line(stage), file=sys.stderr)
            if kept is None or kept.n_features > target:
                kept, classifier = stage, trained
        order = elimination.order
        ranking, rank, inner = np.ones(order.size, dtype=int), 1, kept.n_features
        for stage in reversed(path):
            if stage.n_features > inner:
                rank += 1
                ranking[order[inner : stage.n_features]] = rank
                inner = stage.n_features
        self.reason_ = elimination.reason
        if self._chooses and kept.n_features <= target:
            self.reason_ = f"at most {target} features had the best score in cross-validation"
        self.support_, self.ranking_, self.order_ = ranking == 1, ranking, order
        self.n_features_, self.estimator_, self.path_ = kept.n_features, classifier, path
        self.n_iter_ = int(np.max(getattr(classifier, "n_iter_", 1)))
        if results is not None:
            self.cv_results_ = results
        elif hasattr(self, "cv_results_"):
            del self.cv_results_
        parts.done()
        return self

    # the classifier on the features that are kept

    @property
    def classes_(self) -> np.ndarray:
        """The classes of the classifier."""
        if "estimator_" not in vars(self):
            raise AttributeError("This MarginRFE is not fitted yet: call fit first.")
        return self.estimator_.classes_

    def predict(self, X: Any) -> np.ndarray:
        """The class of each row, by the features that are kept.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)

        Returns
        -------
        labels : ndarray of shape (n_samples,)
        """
        X = self._reduced(X)
        return self.estimator_.predict(X)

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """The classifier's score, by the features that are kept: the accuracy.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
        y : array-like of shape (n_samples,)
        sample_weight : array-like of shape (n_samples,), default=None

        Returns
        -------
        score : float
        """
        weights = {} if sample_weight is None else {"sample_weight": sample_weight}
        X = self._reduced(X)
        return self.estimator_.score(X, y, **weights)

    @available_if(lambda self: self._has("decision_function"))
    def decision_function(self, X: Any) -> np.ndarray:
        """The classifier's scores of each row.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)

        Returns
        -------
        scores : ndarray of shape (n_samples,) or (n_samples, n_classes)
        """
        X = self._reduced(X)
        return self.estimator_.decision_function(X)

    @available_if(lambda self: self._has("predict_proba"))
    def predict_proba(self, X: Any) -> np.ndarray:
        """The classifier's probabilities, where it has them.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)

        Returns
        -------
        probabilities : ndarray of shape (n_samples, n_classes)
        """
        X = self._reduced(X)
        return self.estimator_.predict_proba(X)

    @available_if(lambda self: self._has("certified_radius"))
    def certified_radius(self, X: Any) -> np.ndarray:
        """The size of the smallest perturbation that can change the label of each row.

        That of the classifier on the features that are kept: the others may change at will.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)

        Returns
        -------
        radii : ndarray of shape (n_samples,)
            See `MaxMarginClassifier.certified_radius`.
        """
        X = self._reduced(X)
        return self.estimator_.certified_radius(X)

    def _has(self, method: str) -> bool:
        if "estimator_" in vars(self):
            return hasattr(self.estimator_, method)
        ours = isinstance(self.estimator, str | Algorithm)
        return hasattr(MaxMarginClassifier if ours else self.estimator, method)

    def _reduced(self, X: Any) -> Any:
        check_is_fitted(self)
        X = checked_rows(self, X, accept_sparse="csr", reset=False)
        return X[:, np.flatnonzero(self.support_)]

    def _get_support_mask(self) -> np.ndarray:  # pyright: ignore[reportIncompatibleMethodOverride]
        check_is_fitted(self)
        return self.support_

    # parameters

    @property
    def _chooses(self) -> bool:
        """Does cross-validation say how many features are kept?"""
        select = self.n_features_to_select
        return (isinstance(select, str) and select == "cv") or (select is None and self.cv is not None)

    def _check(self) -> None:
        step, select = self.step, self.n_features_to_select
        if not ((_is_whole(step) and step >= 1) or (_is_number(step) and 0 < step < 1)):
            raise ValueError(
                f"step must be a whole number of features, at least 1, or a share between 0 and 1; got {step!r}."
            )
        whole, share = _is_whole(select), _is_number(select) and not _is_whole(select)
        if not (
            select is None
            or (isinstance(select, str) and select == "cv")
            or (whole and select >= 1)  # pyright: ignore[reportOperatorIssue]
            or (share and 0 < select <= 1)  # pyright: ignore[reportOperatorIssue]
        ):
            raise ValueError(
                "n_features_to_select must be a whole number of at least 1, a share in (0, 1], "
                f'"cv" or None; got {select!r}.'
            )
        if self.aggregate not in ("sum", "max"):
            raise ValueError(f'aggregate must be "sum" or "max"; got {self.aggregate!r}.')
        if isinstance(self.p, str):
            if self.p != "log":
                raise ValueError(f'p must be a number from 1 to inf, or "log"; got p={self.p!r}.')
        elif not (_is_number(self.p) and self.p >= 1):
            raise ValueError(f'p must be a number from 1 to inf, or "log"; got p={self.p!r}.')

    def _least(self, d: int) -> int:
        """The number of features at which the elimination ends."""
        select: Any = self.n_features_to_select
        if self._chooses:
            return 1
        if select is None:
            return max(1, d // 2)
        if not _is_whole(select):
            return max(1, int(select * d))
        if select > d:
            raise ValueError(
                f"n_features_to_select={select} features cannot be kept of {d}: ask for {d} at most, or for "
                "a share, n_features_to_select=0.5 for instance."
            )
        return int(select)

    def _engine(self) -> Any:
        """What is trained, as it was given; an algorithm's name makes a classifier of our own."""
        if not isinstance(self.estimator, str | Algorithm):
            if not (hasattr(self.estimator, "fit") and hasattr(self.estimator, "get_params")):
                raise ValueError(
                    "estimator must be an algorithm or its name, or a classifier with coef_ after its fit; "
                    f"got {self.estimator!r}."
                )
            return self.estimator
        return MaxMarginClassifier(
            self.C,
            loss=self.loss,
            p=2.0 if self.p == "log" else self.p,
            tol=self.tol,
            fit_intercept=self.fit_intercept,
            class_weight=self.class_weight,
            algorithm=AS_IN_THE_PAPERS if self.estimator == "ima" else self.estimator,
            max_iter=self.max_iter,
        )

    # cross-validation

    def _validated(
        self, engine: Any, X: Any, y: np.ndarray, weights: Any, sizes: list[int], rng: Any
    ) -> dict[str, np.ndarray]:
        """The scores of every fold at every size, the largest first."""
        splitter: Any = check_cv(FOLDS if self.cv is None else self.cv, y, classifier=True)
        if "Group" in type(splitter).__name__:
            raise ValueError(
                f"fit has no groups to give to {type(splitter).__name__}: give its splits, "
                "cv=list(splitter.split(X, y, groups))."
            )
        scorer = check_scoring(engine, scoring=self.scoring)
        folds = [(train, test, _seed(rng)) for train, test in splitter.split(X, y)]
        parallel: Any = Parallel(n_jobs=jobs(self.n_jobs, len(folds)))
        scores = np.array(
            parallel(
                delayed(_fold)(self, engine, X, y, weights, sizes, scorer, train, test, seed)
                for train, test, seed in folds
            )
        )
        results = {"n_features": np.array(sizes)}
        results |= {"mean_test_score": scores.mean(axis=0), "std_test_score": scores.std(axis=0)}
        return results | {f"split{k}_test_score": fold for k, fold in enumerate(scores)}


class _Elimination:
    """One elimination: iterate over it for every set with its classifier.

    Attributes
    ----------
    order : ndarray of int
        All features, best first as far as is known; the features left come first.
    reason : str
        Why it ended.
    """

    def __init__(
        self,
        selector: MarginRFE,
        engine: Any,
        X: Any,
        y: np.ndarray,
        weights: Any,
        sizes: list[int],
        seed: int,
        parts: Tasks,
    ) -> None:
        self.selector, self.engine, self.y, self.weights, self.seed = selector, engine, y, weights, seed
        self.sizes, self.parts = sizes, parts
        self.order = np.arange(X.shape[1])
        self.X = sp.csc_matrix(X) if sp.issparse(X) else X  # columns are taken of it
        self.reason = f"{sizes[-1]} features were asked for"

    def __iter__(self) -> Iterator[tuple[Stage, Any]]:
        X, features = self.X, self.order.copy()
        parent, bounds, last = None, None, 0
        while True:
            classifier = self._train(X, features.size, parent, bounds)
            found = _bounds(classifier, bounds, features.size)
            status = getattr(classifier, "status_", None)
            if found is not None and found.problem.hard and not found.lower.min() > 0.0:
                what = f"no separator was found for {features.size} features ({status})"
                if parent is None:
                    raise ValueError(
                        f"With C=inf {what}, which are all: give a finite C, or if the rows are separable, more "
                        "rounds (max_iter)."
                    )
                self.reason = f"{what}; the {last} before are kept"
                return
            if not np.any(classifier.coef_):
                what = f"all weights of {features.size} features are 0 ({status})"
                if parent is None:
                    raise ValueError(
                        f"There is nothing to rank features by: {what}. Bring the features to one scale near 1 "
                        "(StandardScaler), or raise C."
                    )
                self.reason = f"{what}; the {last} before are kept"
                return
            best = features[_ranking(classifier.coef_, self.selector.aggregate)]
            self.order[: best.size] = best
            yield self._stage(best.size, status, found), classifier
            if status is Status.INTERRUPTED or self.parts.stopped:
                self.reason = f"it was interrupted at {best.size} features"
                return
            smaller = [size for size in self.sizes if size < best.size]
            if not smaller:
                return
            used = _used(classifier.coef_)
            left = np.sort(best[: max(min(smaller[0], used), self.sizes[-1])])
            places = np.searchsorted(features, left)
            if hasattr(classifier, "certificate_"):  # with what is left of its weights the next one may begin
                classifier = copy(classifier)
                classifier.coef_ = classifier.coef_[:, places]
            X, parent, bounds, last = X[:, places], classifier, found, features.size
            features = left

    def _train(self, X: Any, f: int, parent: Any, bounds: _Bounds | None) -> Any:
        """The classifier on these columns; one of our own begins where its parent ended."""
        ours = isinstance(self.selector.estimator, str | Algorithm)
        classifier: Any = copy(parent) if ours and parent is not None else clone(self.engine)
        if ours:
            p = max(2.0, float(np.log(f))) if self.selector.p == "log" else self.engine.p
            classifier.set_params(p=p, random_state=self.seed, warm_start=True)
        weights = {} if self.weights is None else {"sample_weight": self.weights}
        with self.parts.part(lambda: _named(f, bounds), classifier):
            classifier.fit(X.tocsr() if sp.issparse(X) else X, self.y, **weights)
        coef = getattr(classifier, "coef_", None)
        if coef is None:
            raise ValueError(
                f"{type(classifier).__name__} has no coef_ after its fit, by which features could be ranked: use a "
                "linear classifier."
            )
        return classifier

    def _stage(self, f: int, status: Any, found: _Bounds | None) -> Stage:
        if found is None:
            return Stage(f, self.order, np.nan, status, False, np.nan, np.nan)
        return Stage(f, self.order, found.problem.p, status, found.problem.hard, *found.ends())


@dataclass(frozen=True, eq=False)
class _Bounds:
    """Certified bounds of the problem of every class."""

    problem: Problem
    lower: np.ndarray
    upper: np.ndarray

    def ends(self) -> tuple[float, float]:
        """Of the smallest margin, or of the sum of objectives."""
        both = (self.lower, self.upper)
        return tuple(float(side.min() if self.problem.hard else side.sum()) for side in both)  # pyright: ignore[reportReturnType]


def _bounds(classifier: Any, before: _Bounds | None, f: int) -> _Bounds | None:
    """What a fit on f features has certified, and what the larger set before had; None without a certificate."""
    certificate = getattr(classifier, "certificate_", None)
    if certificate is None:
        return None
    parts = certificate.certificates
    problem: Problem = parts[0].problem
    lower = np.array([part.lower for part in parts])
    upper = np.array([part.upper for part in parts])
    if before is not None:
        # |w|_q <= f^(1/p' - 1/p) |w|_q' in f coordinates, where the new p' is smaller
        size = f + (1 if problem.intercept == "augmented" else 0)
        power = max(1.0 / problem.p - 1.0 / before.problem.p, 0.0)
        factor = float(size) ** power * (1.0 + _ROUNDING) if power > 0.0 else 1.0
        if problem.hard:
            upper = np.minimum(upper, before.upper * factor)
        else:
            lower = np.maximum(lower, before.lower / factor**problem.power)
    return _Bounds(problem, lower, upper)


def _ranking(coef: Any, aggregate: str) -> np.ndarray:
    """Features by their weights, the largest first; of equals the first column."""
    size = np.abs(np.atleast_2d(np.asarray(coef, dtype=float)))
    top = float(size.max(initial=0.0))
    if aggregate == "max" or not (np.isfinite(top) and top > 0.0):
        whole = size.max(axis=0)
    else:
        whole = np.hypot.reduce(size / top, axis=0)  # squares would underflow
    return np.argsort(-whole, kind="stable")


def _used(coef: Any) -> int:
    """How many features have a weight that is not zero to rounding."""
    size = np.abs(np.atleast_2d(np.asarray(coef, dtype=float)))
    return int(np.count_nonzero((size > ZERO * size.max(axis=1, keepdims=True)).any(axis=0)))


def _sizes(d: int, least: int, step: int | float) -> list[int]:
    """The numbers of features, from d down to `least`."""
    sizes = [d]
    while sizes[-1] > least:
        gone = int(step) if step >= 1 else max(1, int(step * sizes[-1]))
        sizes.append(max(sizes[-1] - gone, least))
    return sizes


def _fold(
    selector: MarginRFE,
    engine: Any,
    X: Any,
    y: np.ndarray,
    weights: Any,
    sizes: list[int],
    scorer: Any,
    train: np.ndarray,
    test: np.ndarray,
    seed: int,
) -> np.ndarray:
    """The scores on the test part of classifiers with at most so many features, chosen on the training part."""
    own = None if weights is None else weights[train]
    elimination = _Elimination(selector, engine, X[train], y[train], own, sizes, seed, Tasks())
    held, scored = X[test], {} if weights is None else {"sample_weight": weights[test]}
    scores = np.full(len(sizes), np.nan)
    for stage, classifier in elimination:
        value = scorer(classifier, held[:, stage.features], y[test], **scored)
        scores[(np.array(sizes) >= stage.n_features) & np.isnan(scores)] = value
        if stage.status is Status.INTERRUPTED:
            raise KeyboardInterrupt
    return scores


def _best(results: dict[str, np.ndarray]) -> int:
    """The smallest number of features with the best mean score."""
    mean = results["mean_test_score"]
    if np.isnan(mean).all():
        raise ValueError(
            "No fold has a score at any size, so that none can be chosen: give a finite C, more rounds (max_iter), or "
            "n_features_to_select as a number."
        )
    return int(results["n_features"][np.flatnonzero(mean == np.nanmax(mean))[-1]])


def _scores_at(results: dict[str, np.ndarray] | None, f: int) -> dict[str, float]:
    """The score of the elimination down to the size that left these f features."""
    if results is None:
        return {}
    k = int(np.flatnonzero(results["n_features"] >= f)[-1])
    return {
        "accuracy": float(results["mean_test_score"][k]),
        "accuracy_std": float(results["std_test_score"][k]),
    }


def _named(f: int, before: _Bounds | None) -> str:
    """A set that is about to be trained on, and what the set before had."""
    if before is None:
        return f"{f} features"
    lower, upper = before.ends()
    what = "margin " if before.problem.hard else ""
    return f"{f} features (before: {what}{lower:.4g}..{upper:.4g})"


def _line(stage: Stage) -> str:
    """A set in one line."""
    line = f"{stage.n_features:7d} features"
    if stage.status is not None:
        what = "margin" if stage.hard else "objective"
        line += f"  {stage.lower:.6g} <= {what} <= {stage.upper:.6g}  ({stage.status})"
    return line if np.isnan(stage.accuracy) else f"{line}  accuracy {stage.accuracy:.4f}"


def _seed(rng: Any) -> int:
    return int(rng.randint(np.iinfo(np.int32).max))


def _is_whole(value: Any) -> bool:
    return isinstance(value, Integral) and not isinstance(value, bool)


def _is_number(value: Any) -> bool:
    return isinstance(value, Real) and not isinstance(value, bool)
