"""MarginRFE: features eliminated by the weights of maximum-margin classifiers, with bounds on the loss of margin."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from copy import copy, deepcopy
from dataclasses import KW_ONLY, dataclass, field
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.base import BaseEstimator, MetaEstimatorMixin, clone
from sklearn.feature_selection import SelectorMixin
from sklearn.utils import check_random_state, get_tags
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted, has_fit_parameter

from ..algorithms import IMA, Algorithm
from ..fit.deadline import Interruption
from ..numerics.progress import announce
from ..numerics.sizes import draw_seeds, require_weight_memory
from ..problem.problem import Problem, Status
from . import validation
from .linear import MaxMarginClassifier
from .prediction import explain

IMA_OF_THE_PAPERS = IMA(increment=0.02, budget=6000)
CHECKS: validation.Checks = {
    "step": (
        lambda step: validation.is_whole(step, 1) or (validation.is_real(step) and 0 < step < 1),
        "a whole number of features, at least 1, or a share between 0 and 1; got {!r}",
    ),
    "n_features_to_select": (
        lambda select: (
            select is None
            or validation.is_whole(select, 1)
            or (validation.is_real(select) and 0 < select <= 1)
        ),
        "a whole number of at least 1, a share in (0, 1], or None; got {!r}",
    ),
    "aggregate": (lambda name: name in ("sum", "max"), '"sum" or "max"; got {!r}'),
    "p": (
        lambda p: p == "log" or (validation.is_real(p) and p >= 1),
        'a number from 1 to inf, or "log"; got p={!r}',
    ),
}


def _offers(method: str) -> Any:
    """Return a decorator: the selector has the method only if its classifier, fitted or not, has it."""

    def has_method(selector: MarginRFE) -> bool:
        untrained = MaxMarginClassifier() if selector._is_own else selector.estimator
        return hasattr(getattr(selector, "estimator_", untrained), method)

    return available_if(has_method)


@dataclass(eq=False, repr=False)
class MarginRFE(SelectorMixin, MetaEstimatorMixin, BaseEstimator):
    """Recursive feature elimination by the weights of maximum-margin classifiers.

    Fit a classifier, rank the features by ``|w_j|``, delete the last of them, and fit again on the remaining ones,
    until the number required is left. No set of features has a larger margin, or a smaller objective, than a set that
    contains it, so that every certificate also bounds the margins or objectives of all later sets.

    Weights are comparable only if the features have one scale: scale them before
    (``make_pipeline(StandardScaler(), MarginRFE())``).

    Parameters
    ----------
    estimator : str, Algorithm or estimator, default="auto"
        An algorithm of `MaxMarginClassifier`, by its name ("alma", "auto" or another; "ima" has the parameters of
        the papers, ``IMA(increment=0.02, budget=6000)``) or as an object such as ``ALMA(alpha=0.5)``; or any
        classifier with `coef_` after its fit, a clone of which is fitted to every set.
    p : float in [1, inf] or "log", default="log"
        The norm in which distance is measured. ``"log"`` is max(2, ln f) for the f remaining features, as in the
        papers on elimination; in `MaxMarginClassifier` it is max(2, 2 ln f), for which the papers bound the margin in
        the inf-norm. With ``inf`` few weights are large. This parameter and those from `C` to `max_iter` are used with
        algorithms only; an estimator has its own.
    n_features_to_select : int, float or None, default=None
        Number of features to keep; a float in (0, 1] is a share. None is half of the features. Cross-validation
        chooses it with ``RFECV(MaxMarginClassifier())`` of scikit-learn, or with `GridSearchCV` of this selector.
    step : int or float, default=0.1
        Number of features deleted at a time; a float in (0, 1) is a share of the remaining ones, at least one. If more
        weights are zero (to rounding), as at ``p=inf`` with ``C=inf`` or many features, all of them are deleted.
    aggregate : {"sum", "max"}, default="sum"
        Several classes: features are ranked by the sum of squares of their weights, or by the largest weight.
    C, loss, tol, fit_intercept, class_weight, max_iter
        As in `MaxMarginClassifier`; tol=1e-2 by default. With ``C=inf`` the elimination ends when the rows are no
        longer separable, or no separator is found: the last set with a separator is kept.
    random_state : int, RandomState instance or None, default=None
    verbose : int, default=0
        1 prints a line for every set to standard error.

    Attributes
    ----------
    support_ : ndarray of bool of shape (n_features,)
    ranking_ : ndarray of int of shape (n_features,)
        1 for features that are kept, 2 for the features deleted last, and so on.
    order_ : ndarray of int of shape (n_features,)
        Features by rank, the best first: the later deleted come first, and of those deleted together the larger weight.
    n_features_ : int
        Number of features that are kept.
    reason_ : str
        The reason for the end of the elimination.
    estimator_ : estimator
        The classifier on the features that are kept.
    classes_ : ndarray of shape (n_classes,)
    path_ : list of Stage
        Every set, the largest first, with its certified bounds.
    n_iter_ : int
        Number of rounds of `estimator_`; 1 if it has no `n_iter_`.
    n_features_in_ : int
    feature_names_in_ : ndarray of shape (n_features,)
        Only where X had string column names.

    Raises
    ------
    ValueError
        If data or parameters cannot be used, and with ``C=inf`` if the rows are not separable with all features. The
        selector is then unchanged.

    Notes
    -----
    Bounds of a set are bounds of its subsets: a classifier on a subset is a classifier on the whole set with zeros in
    w, with the same norm and margins. If p decreases to p' with the number f of features,
    |w|_q <= f^(1/p' - 1/p) |w|_q', so that the bound on the margin is multiplied by this power of f, and the norm in
    the objective divided by it.

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

    estimator: Any = "auto"
    _: KW_ONLY
    p: float | str = "log"
    n_features_to_select: int | float | str | None = None
    step: int | float = 0.1
    aggregate: str = "sum"
    C: float = 1.0
    loss: str = "squared_hinge"
    tol: float = 1e-2
    fit_intercept: bool = True
    class_weight: Any = None
    max_iter: int = 1000
    random_state: Any = None
    verbose: int = 0

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        inner = get_tags(MaxMarginClassifier() if self._is_own else self.estimator)
        tags.estimator_type = inner.estimator_type
        tags.classifier_tags = deepcopy(inner.classifier_tags)
        if tags.classifier_tags is not None:
            tags.classifier_tags.poor_score = True  # half of two features may be the wrong one
        tags.target_tags.required = True
        tags.input_tags.sparse = inner.input_tags.sparse
        return tags

    @validation.restored_after(BaseException)
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> MarginRFE:
        """Eliminate features.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
        y : array-like of shape (n_samples,)
        sample_weight : array-like of shape (n_samples,), default=None
            As in the classifier.

        Returns
        -------
        self : MarginRFE
        """
        validation.check_parameters(self, CHECKS)
        estimator = self._estimator_to_train()
        X, y = validation.validate_rows(self, X, y, order="C")
        require_weight_memory(4, X.shape[1])  # their sizes and the places of the features beside them
        weights = _weights(estimator, X, sample_weight)
        sizes = elimination_sizes(X.shape[1], self._least(X.shape[1]), self.step)
        elimination = Elimination(estimator, self._is_own, self.p, self.aggregate, sizes, X, y, weights)
        elimination.seed = int(draw_seeds(check_random_state(self.random_state), 1)[0])
        self.path_ = []
        for stage, self.estimator_ in elimination:
            self.path_.append(stage)
            if self.verbose:
                print(stage, file=sys.stderr)
        self.n_features_, self.reason_ = self.path_[-1].n_features, elimination.reason
        self.order_, self.ranking_ = elimination.order, elimination.ranking(self.path_)
        self.support_ = self.ranking_ == 1
        self.n_iter_ = int(np.max(getattr(self.estimator_, "n_iter_", 1)))
        elimination.interruption.raise_with(self)
        return self

    # the classifier on the features that are kept

    @property
    def classes_(self) -> np.ndarray:
        """The classes of the classifier."""
        check_is_fitted(self)
        return self.estimator_.classes_

    def predict(self, X: Any) -> np.ndarray:
        """Return the class of each row, by the features that are kept.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)

        Returns
        -------
        labels : ndarray of shape (n_samples,)
        """
        X = self._kept_columns(X)
        return self.estimator_.predict(X)

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Return the classifier's score, by the features that are kept: the accuracy.

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
        X = self._kept_columns(X)
        return self.estimator_.score(X, y, **weights)

    @_offers("decision_function")
    def decision_function(self, X: Any) -> np.ndarray:
        """Return the classifier's scores of each row.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)

        Returns
        -------
        scores : ndarray of shape (n_samples,) or (n_samples, n_classes)
        """
        X = self._kept_columns(X)
        return self.estimator_.decision_function(X)

    @_offers("predict_proba")
    def predict_proba(self, X: Any) -> np.ndarray:
        """Return the classifier's probabilities, where it has them.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)

        Returns
        -------
        probabilities : ndarray of shape (n_samples, n_classes)
        """
        X = self._kept_columns(X)
        return self.estimator_.predict_proba(X)

    @_offers("certified_radius")
    def certified_radius(self, X: Any) -> np.ndarray:
        """Return the size of the smallest perturbation that can change the label of each row.

        The radius of the classifier on the features that are kept; changes of other features have no effect.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)

        Returns
        -------
        radii : ndarray of shape (n_samples,)
            See `MaxMarginClassifier.certified_radius`.
        """
        X = self._kept_columns(X)
        return self.estimator_.certified_radius(X)

    def _kept_columns(self, X: Any) -> Any:
        """Validate rows, and return the columns that are kept; refuse a selector that is not fitted."""
        check_is_fitted(self)
        X = validation.validate_rows(self, X, reset=False)
        return X[:, np.flatnonzero(self.support_)]

    def _get_support_mask(self) -> np.ndarray:  # pyright: ignore[reportIncompatibleMethodOverride]
        check_is_fitted(self)
        return self.support_

    # parameters

    @property
    def _is_own(self) -> bool:
        """Whether `estimator` is an algorithm: a `MaxMarginClassifier` is trained."""
        return isinstance(self.estimator, str | Algorithm)

    def _least(self, d: int) -> int:
        """Return the number of features at which the elimination ends."""
        select: Any = self.n_features_to_select
        if select is None:
            return max(1, d // 2)
        if not validation.is_whole(select):
            return max(1, int(select * d))
        if select > d:
            raise ValueError(f"n_features_to_select={select} is above the {d} features: ask for fewer.")
        return int(select)

    def _estimator_to_train(self) -> Any:
        """Return the estimator as it was given; an algorithm becomes a `MaxMarginClassifier`."""
        if not self._is_own:
            if not (hasattr(self.estimator, "fit") and hasattr(self.estimator, "get_params")):
                raise ValueError(f"estimator must be an algorithm or have coef_; got {self.estimator!r}.")
            return self.estimator
        shared = ("C", "loss", "tol", "fit_intercept", "class_weight", "max_iter")
        return MaxMarginClassifier(
            p=2.0 if self.p == "log" else self.p,
            algorithm=IMA_OF_THE_PAPERS if self.estimator == "ima" else self.estimator,
            **{name: getattr(self, name) for name in shared},
        )


def _weights(estimator: Any, X: Any, sample_weight: Any) -> np.ndarray | None:
    """Validate the sample weights, which the estimator must take."""
    if sample_weight is None:
        return None
    if not has_fit_parameter(estimator, "sample_weight"):
        raise ValueError(f"{type(estimator).__name__} takes no sample weights: leave sample_weight out.")
    return validation.checked_weights(sample_weight, X)


# Share of the largest weight up to which a weight is zero to rounding: exact programs leave such weights at p = inf. A
# larger share would delete features with small weights. A round value; not tuned.
ZERO_WEIGHT = 1e-14
# Bound on the relative error of a power of the number of features, some 4,500 times the unit roundoff.
POWER_ERROR = 1e-12


@dataclass(frozen=True, eq=False)
class Stage:
    """One set of features of an elimination.

    Attributes
    ----------
    n_features : int
    order : ndarray of int
        All features, by rank, the best first; the first `n_features` are this set.
    p : float
        The norm in which this classifier measures distance; nan where it has no certificate.
    status : Status or None
        How the fit ended; None where the estimator has no `status_`.
    hard : bool
        Whether `lower` and `upper` bound the margin, rather than the objective.
    lower, upper : float
        Certified bounds on the largest margin of a classifier on this set of features (hard), or on the least
        objective; for several classes on the smallest of their margins, or on the sum of their objectives. Bounds of
        larger sets are taken into account (`inherited_bounds`). nan without a certificate.
    message : str, default=""
        Why the fit ended, and what to try; empty where the estimator has no certificate.
    """

    n_features: int
    order: np.ndarray
    p: float
    status: Status | None
    hard: bool
    lower: float
    upper: float
    message: str = ""

    @property
    def features(self) -> np.ndarray:
        """The features of this set, in the order of the columns."""
        return np.sort(self.order[: self.n_features])

    def __str__(self) -> str:
        line = f"{self.n_features:7d} features"
        if self.status is not None:
            target = "margin" if self.hard else "objective"
            line += f"  {self.lower:.6g} <= {target} <= {self.upper:.6g}  ({self.status})"
        return line


@dataclass(frozen=True, eq=False)
class Bounds:
    """Certified bounds for every class: of its margin (hard) or its objective."""

    problem: Problem
    lower: np.ndarray
    upper: np.ndarray

    def total(self) -> tuple[float, float]:
        """Return the bounds of the smallest margin, or of the sum of objectives."""
        if self.problem.hard:
            return float(self.lower.min()), float(self.upper.min())
        return float(self.lower.sum()), float(self.upper.sum())


@dataclass(eq=False)
class Elimination:
    """One elimination; an iterator over its stages, each with its classifier.

    `own` says whether the estimator is a `MaxMarginClassifier` made from an algorithm: each fit then has a warm start
    from the larger set, and the norm `p`. `sizes` are the numbers of features, the largest first. Afterwards `order`
    has all features by rank, and `reason` the reason for the end.
    """

    estimator: Any
    own: bool
    p: float | str
    aggregate: str
    sizes: list[int]
    X: Any
    y: np.ndarray
    weights: Any
    seed: int = 0
    interruption: Interruption = field(default_factory=Interruption)
    order: np.ndarray = field(init=False)
    reason: str = field(init=False)

    def __iter__(self) -> Iterator[tuple[Stage, Any]]:
        X: Any = sp.csc_matrix(self.X) if sp.issparse(self.X) else self.X  # columns are selected from it
        features = np.arange(X.shape[1])
        self.order, self.reason = features.copy(), f"{self.sizes[-1]} features were asked for"
        parent: Any = None
        before: Bounds | None = None
        last = 0
        while True:
            f = features.size
            classifier = self._train(X, f, parent)
            status = getattr(classifier, "status_", None)
            found = inherited_bounds(classifier, before, f)
            if self._is_useless(classifier, found, f, last):
                return
            ranked = features[rank_features(classifier.coef_, self.aggregate)]
            self.order[:f] = ranked
            proved = (np.nan, status, False, np.nan, np.nan)
            if found is not None:
                proved = (found.problem.p, status, found.problem.hard, *found.total())
            # columns of subsets have other numbers than those of X, and are not named
            words = "" if found is None or status is None else explain(classifier)
            yield Stage(f, self.order, *proved, message=words), classifier
            if status is Status.INTERRUPTED or self.interruption.received:
                self.reason = f"it was interrupted at {f} features"
                return
            smaller = [size for size in self.sizes if size < f]
            if not smaller:
                return
            # all features of weight zero are deleted at once
            left = max(min(smaller[0], _count_used(classifier.coef_)), self.sizes[-1])
            kept = np.sort(ranked[:left])
            columns = np.searchsorted(features, kept)
            if self.own:  # the next classifier starts from the weights of the remaining features
                parent = copy(classifier)
                parent.coef_ = classifier.coef_[:, columns]
            X, before, last, features = X[:, columns], found, f, kept

    def ranking(self, path: list[Stage]) -> np.ndarray:
        """Return 1 for features that are kept, 2 for the features deleted last, and so on."""
        sizes = np.unique([stage.n_features for stage in path])
        ranks = np.empty(self.order.size, dtype=int)
        ranks[self.order] = 1 + np.searchsorted(sizes, np.arange(self.order.size), side="right")
        return ranks

    def _train(self, X: Any, f: int, parent: Any) -> Any:
        """Fit a classifier to these f columns; `own` ones start from the weights of `parent` on these columns."""
        if self.own:
            p = max(2.0, float(np.log(f))) if self.p == "log" else self.estimator.p
            classifier: Any = clone(self.estimator) if parent is None else copy(parent)
            classifier.set_params(p=p, random_state=self.seed, warm_start=True)
        else:
            classifier = clone(self.estimator)
        weights = {} if self.weights is None else {"sample_weight": self.weights}
        place = sum(size >= f for size in self.sizes)  # f may be between two of the sizes
        announce(f"{f} features", place, len(self.sizes), level=1)
        with self.interruption:
            classifier.fit(X.tocsr() if sp.issparse(X) else X, self.y, **weights)
        if getattr(classifier, "coef_", None) is None:
            raise ValueError(f"{type(classifier).__name__} has no coef_ to rank by: use a linear classifier.")
        return classifier

    def _is_useless(self, classifier: Any, found: Bounds | None, f: int, last: int) -> bool:
        """Return whether this classifier cannot rank its f features, which ends the elimination.

        Raises
        ------
        ValueError
            If these are all features: `last`, the size of the set before, is 0.
        """
        status = getattr(classifier, "status_", None)
        if found is not None and found.problem.hard and not found.lower.min() > 0.0:
            fault = f"no separator was found for {f} features ({status})"
            first = f"With C=inf {fault}, which are all. {explain(classifier)}"
        elif not np.any(classifier.coef_):
            fault = f"all weights of {f} features are 0 ({status})"
            first = f"There is nothing to rank features by: {fault}. Bring the features to one scale near 1 "
            first += "(StandardScaler), or raise C."
        else:
            return False
        if status is Status.INTERRUPTED and not last:
            raise KeyboardInterrupt("the elimination was interrupted in its first fit; nothing is ranked.")
        if not last:
            raise ValueError(first)
        self.reason = f"{fault}; the {last} before are kept"
        return True


def inherited_bounds(classifier: Any, before: Bounds | None, f: int) -> Bounds | None:
    """Return the certified bounds of a fit on f features, improved by the bounds of a larger set.

    A classifier on a subset is a classifier on the larger set with zeros in w: its margin is at most, and its objective
    at least, the bound of the larger set. If p decreases to p', |w|_q <= f^(1/p' - 1/p) |w|_q' in f coordinates.
    None without a certificate.
    """
    certificate = getattr(classifier, "certificate_", None)
    if certificate is None:
        return None
    parts = certificate.certificates
    problem: Problem = parts[0].problem
    lower, upper = np.array([(part.lower, part.upper) for part in parts]).T
    if before is not None:
        coordinates = f + (1 if problem.intercept == "augmented" else 0)
        power = max(1.0 / problem.p - 1.0 / before.problem.p, 0.0)
        factor = float(coordinates) ** power * (1.0 + POWER_ERROR) if power > 0.0 else 1.0
        if problem.hard:
            upper = np.minimum(upper, before.upper * factor)
        else:
            lower = np.maximum(lower, before.lower / factor**problem.power)
    return Bounds(problem, lower, upper)


def rank_features(coef: Any, aggregate: str) -> np.ndarray:
    """Return the features by the size of their weights, the largest first; ties in the order of the columns."""
    size = np.abs(np.atleast_2d(np.asarray(coef, dtype=float)))
    # hypot, since squares may underflow
    score = size.max(axis=0) if aggregate == "max" else np.hypot.reduce(size, axis=0)
    return np.argsort(-score, kind="stable")


def elimination_sizes(d: int, least: int, step: int | float) -> list[int]:
    """Return the numbers of features, from d down to `least`."""
    sizes = [d]
    while sizes[-1] > least:
        gone = int(step) if step >= 1 else max(1, int(step * sizes[-1]))
        sizes.append(max(sizes[-1] - gone, least))
    return sizes


def _count_used(coef: Any) -> int:
    """Count the features with a weight that is not zero to rounding."""
    size = np.abs(np.atleast_2d(np.asarray(coef, dtype=float)))
    return int(np.count_nonzero((size > ZERO_WEIGHT * size.max(axis=1, keepdims=True)).any(axis=0)))
