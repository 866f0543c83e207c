"""MarginRFE: features eliminated by the weights of maximum-margin classifiers, with bounds on the loss of margin."""

from __future__ import annotations

import sys
from copy import deepcopy
from dataclasses import KW_ONLY, dataclass, replace
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, MetaEstimatorMixin
from sklearn.feature_selection import SelectorMixin
from sklearn.utils import check_random_state, get_tags
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted, has_fit_parameter

from ..algorithms import IMA, Algorithm
from ..numerics.representable import refuse_rounded
from ..numerics.sizes import require_weight_memory
from . import validation
from .elimination import Elimination, Stage, best_size, cross_validate, elimination_sizes, scores_at
from .linear import MaxMarginClassifier

IMA_OF_THE_PAPERS = IMA(increment=0.02, budget=6000)
CHECKS: validation.Checks = {
    "n_jobs": validation.COMMON["n_jobs"],
    "step": (
        lambda step: validation.is_whole(step, 1) or (validation.is_real(step) and 0 < step < 1),
        "a whole number of features, at least 1, or a share between 0 and 1; got {!r}",
    ),
    "n_features_to_select": (
        lambda select: (
            select in (None, "cv")
            or validation.is_whole(select, 1)
            or (validation.is_real(select) and 0 < select <= 1)
        ),
        'a whole number of at least 1, a share in (0, 1], "cv" or None; got {!r}',
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
    n_features_to_select : int, float, "cv" or None, default=None
        Number of features to keep; a float in (0, 1] is a share. ``"cv"`` takes the size with the best mean score in
        cross-validation, the smallest of equals. None is ``"cv"`` if `cv` is given, otherwise half of the features.
    step : int or float, default=0.1
        Number of features deleted at a time; a float in (0, 1) is a share of the remaining ones, at least one. If more
        weights are zero (to rounding), as at ``p=inf`` with ``C=inf`` or many features, all of them are deleted.
    cv : int, splitter or iterable, default=None
        Cross-validation, with a separate elimination on the training part of every fold, so that the test part does
        not affect the choice of features. None: no cross-validation, or 5 folds with ``n_features_to_select="cv"``.
    scoring : str or callable, default=None
        Score in cross-validation; None is the estimator's `score`, the accuracy.
    aggregate : {"sum", "max"}, default="sum"
        Several classes: features are ranked by the sum of squares of their weights, or by the largest weight.
    C, loss, tol, fit_intercept, class_weight, max_iter
        As in `MaxMarginClassifier`; tol=1e-2 by default. With ``C=inf`` the elimination ends when the rows are no
        longer separable, or no separator is found: the last set with a separator is kept.
    n_jobs : int, default=None
        Number of folds fitted at the same time (processes).
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
        Every set, the largest first, with its certified bounds and its score in cross-validation.
    cv_results_ : dict of ndarray
        Only with cross-validation: `n_features`, `mean_test_score`, `std_test_score`, and `split0_test_score` and so
        on, for classifiers with at most so many features. nan where the elimination of a fold ended before.
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

    The score of the size chosen by cross-validation is the best of several, and biased upwards;
    `sklearn.model_selection.cross_val_score` of the selector is not.

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
    cv: Any = None
    scoring: Any = None
    aggregate: str = "sum"
    C: float = 1.0
    loss: str = "squared_hinge"
    tol: float = 1e-2
    fit_intercept: bool = True
    class_weight: Any = None
    max_iter: int = 1000
    n_jobs: int | None = None
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
            As in the classifier; also used in the scores of the folds.

        Returns
        -------
        self : MarginRFE
        """
        validation.check_parameters(self, CHECKS)
        estimator = self._estimator_to_train()
        if getattr(estimator, "C", None) == np.inf:
            refuse_rounded(X)
        X, y = validation.validate_rows(self, X, y, order="C")
        require_weight_memory(4, X.shape[1])  # their sizes and the places of the features beside them
        weights = _weights(estimator, X, sample_weight)
        target = self._least(X.shape[1])
        sizes = elimination_sizes(X.shape[1], target, self.step)
        elimination = Elimination(estimator, self._is_own, self.p, self.aggregate, sizes, X, y, weights)
        elimination.verbose = self.verbose
        rng = check_random_state(self.random_state)
        validated = self.cv is not None or self._is_size_chosen
        vars(self).pop("cv_results_", None)
        if validated:
            self.cv_results_ = cross_validate(elimination, self.cv, self.scoring, self.n_jobs, rng)
            target = best_size(self.cv_results_) if self._is_size_chosen else target
        elimination.seed = int(validation.draw_seeds(rng, 1)[0])
        kept, self.estimator_, self.path_ = self._eliminate(elimination, target)
        self.n_features_, self.reason_ = kept.n_features, elimination.reason
        if self._is_size_chosen and kept.n_features <= target:
            self.reason_ = f"at most {target} features had the best score in cross-validation"
        self.order_, self.ranking_ = elimination.order, elimination.ranking(self.path_, kept)
        self.support_ = self.ranking_ == 1
        self.n_iter_ = int(np.max(getattr(self.estimator_, "n_iter_", 1)))
        elimination.interruption.raise_with(self)
        return self

    def _eliminate(self, elimination: Elimination, target: int) -> tuple[Stage, Any, list[Stage]]:
        """Return the first stage of at most `target` features (else the last), its classifier, and all stages."""
        path: list[Stage] = []
        kept: Any = None
        classifier: Any = None
        for stage, trained in elimination:
            if hasattr(self, "cv_results_"):
                stage = replace(stage, **scores_at(self.cv_results_, stage.n_features))
            path.append(stage)
            if self.verbose:
                print(stage, file=sys.stderr)
            if kept is None or kept.n_features > target:
                kept, classifier = stage, trained
        return kept, classifier, path

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

    @property
    def _is_size_chosen(self) -> bool:
        """Whether cross-validation chooses the number of features."""
        select = self.n_features_to_select
        return (isinstance(select, str) and select == "cv") or (select is None and self.cv is not None)

    def _least(self, d: int) -> int:
        """Return the number of features at which the elimination ends."""
        select: Any = self.n_features_to_select
        if self._is_size_chosen:
            return 1
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
