"""MarginRFE: features eliminated by the weights of maximum-margin classifiers, with bounds on the loss of margin."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.feature_selection import RFE

from ..fit.deadline import Interruption
from ..numerics.columns import weight_array
from ..numerics.progress import announce
from ..numerics.sizes import require_weight_memory
from ..problem.problem import Problem, Status
from .path import total_bounds
from .validation import is_whole, restored_after, validate_rows


@dataclass(frozen=True, eq=False)
class Stage:
    """One set of features of an elimination.

    Attributes
    ----------
    features : ndarray of int
        In the order of the columns.
    p : float
        The norm in which this classifier measures distance; nan where it has no certificate.
    status : Status or None
        How the fit ended; None where the classifier has no certificate.
    hard : bool
        Whether `lower` and `upper` bound the margin, rather than the objective.
    lower, upper : float
        Certified bounds on the largest margin of a classifier on this set of features (hard), or on the least
        objective; for several classes on the smallest of their margins, or on the sum of their objectives. Bounds of
        larger sets are taken into account. nan without a certificate.
    """

    features: np.ndarray
    p: float = np.nan
    status: Status | None = None
    hard: bool = False
    lower: float = np.nan
    upper: float = np.nan

    @property
    def n_features(self) -> int:
        """The number of features."""
        return self.features.size

    def __str__(self) -> str:
        line = f"{self.n_features:7d} features"
        if self.status is not None:
            target = "margin" if self.hard else "objective"
            line += f"  {self.lower:.6g} <= {target} <= {self.upper:.6g}  ({self.status})"
        return line


class MarginRFE(RFE):
    """Recursive feature elimination by the weights of maximum-margin classifiers, with certified bounds.

    Fit a classifier, rank the features by ``|w_j|``, delete the last of them, and fit again on the remaining ones,
    until the number required is left. No set of features has a larger margin, or a smaller objective, than a set that
    contains it, so that every certificate also bounds the margins or objectives of all later sets. Methods are those of
    scikit-learn's `RFE`.

    Weights are comparable only if the features have one scale: scale them before
    (``make_pipeline(StandardScaler(), MarginRFE(MaxMarginClassifier()))``).

    Parameters
    ----------
    estimator : MaxMarginClassifier, or another classifier with `coef_` after its fit
        A clone of it is fitted to every set. With ``C=inf`` the elimination ends when the rows are no longer separable,
        or no separator is found: the last set with a separator is kept. With ``p="log"`` the norm depends on the number
        of remaining features.
    n_features_to_select : int, float or None, default=None
        Number of features to keep; a float in (0, 1] is a share. None is half of the features. Cross-validation
        chooses it with ``RFECV(MaxMarginClassifier())`` of scikit-learn, or with `GridSearchCV` of this selector.
    step : int or float, default=0.1
        Number of features deleted at a time; a float in (0, 1) is a share of the remaining ones, at least one. If more
        weights are zero (to rounding), as at ``p=inf`` with ``C=inf`` or many features, all of them are deleted.
    verbose : int, default=0
        1 prints a line for every set to standard error.

    Attributes
    ----------
    support_ : ndarray of bool of shape (n_features,)
    ranking_ : ndarray of int of shape (n_features,)
        1 for features that are kept, 2 for the features deleted last, and so on.
    order_ : ndarray of int of shape (n_features,)
        Features by rank, the best first: the later deleted come first, and of those deleted together the larger weight
        (of several classes, the larger sum of squares).
    n_features_ : int
        Number of features that are kept.
    reason_ : str
        The reason for the end of the elimination.
    estimator_ : estimator
        The classifier on the features that are kept.
    classes_ : ndarray of shape (n_classes,)
    path_ : list of Stage
        Every set, the largest first, with its certified bounds.
    n_features_in_ : int
    feature_names_in_ : ndarray of shape (n_features,)
        Only where X had string column names.

    Raises
    ------
    ValueError
        If data or parameters cannot be used, and if all weights are zero, or with ``C=inf`` there is no separator, with
        all features. The selector is then unchanged.

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
    >>> from maxmargin import MarginRFE, MaxMarginClassifier
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> X = StandardScaler().fit_transform(X)
    >>> selector = MarginRFE(MaxMarginClassifier(), n_features_to_select=5).fit(X, y)
    >>> selector.n_features_
    5
    >>> selector.transform(X).shape
    (569, 5)
    """

    def __init__(
        self,
        estimator: Any,
        *,
        n_features_to_select: int | float | None = None,
        step: Any = 0.1,
        verbose: int = 0,
    ) -> None:
        super().__init__(estimator, n_features_to_select=n_features_to_select, step=step, verbose=verbose)

    @restored_after(BaseException)
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> MarginRFE:  # pyright: ignore[reportIncompatibleMethodOverride]
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
        self._validate_params()
        X, y = validate_rows(self, X, y, order="C")
        require_weight_memory(4, X.shape[1])  # their sizes and the places of the features beside them
        weights = {} if sample_weight is None else {"sample_weight": weight_array(sample_weight, y.size)}
        sizes, interruption = self._sizes(X.shape[1]), Interruption()
        columns = sp.csc_matrix(X) if sp.issparse(X) else X
        self.path_, self.order_ = [], np.arange(sizes[0])
        self.reason_ = f"{sizes[-1]} features were asked for"
        classifier: Any = clone(self.estimator)
        features = self.order_.copy()
        while True:
            f, X = features.size, columns[:, features]
            # f may be between two of the sizes
            announce(f"{f} features", sum(size >= f for size in sizes), len(sizes), level=1)
            with interruption:
                classifier.fit(X.tocsr() if sp.issparse(X) else X, y, **weights)
            stage = _stage(classifier, features, *self.path_[-1:])
            ranked, used = _ranked(classifier)
            stopped = interruption.received or stage.status is Status.INTERRUPTED
            if fault := _fault(stage, used):
                self._keep_last(fault, stopped)
                break
            self.path_.append(stage)
            self.estimator_, self.order_[:f] = classifier, features[ranked]
            if self.verbose:
                print(stage, file=sys.stderr)
            if stopped:
                self.reason_ = f"it was interrupted at {f} features"
            if stopped or f == sizes[-1]:
                break
            # all features of weight zero are deleted at once
            left = max(min(used, next(size for size in sizes if size < f)), sizes[-1])
            classifier, features = clone(self.estimator), features[np.sort(ranked[:left])]
        found = [stage.n_features for stage in reversed(self.path_)]
        self.n_features_, self.ranking_ = found[0], np.empty(sizes[0], dtype=int)
        self.ranking_[self.order_] = 1 + np.searchsorted(found, np.arange(sizes[0]), side="right")
        self.support_ = self.ranking_ == 1
        interruption.raise_with(self)
        return self

    def _sizes(self, d: int) -> list[int]:
        """Return the numbers of features, from d down to the one at which the elimination ends."""
        least: Any = d // 2 if self.n_features_to_select is None else self.n_features_to_select
        if is_whole(least) and least > d:
            raise ValueError(f"n_features_to_select={least} is above the {d} features: ask for fewer.")
        least, sizes = max(1, least if is_whole(least) else int(least * d)), [d]
        while sizes[-1] > least:
            gone = int(self.step) if self.step >= 1 else max(1, int(self.step * sizes[-1]))
            sizes.append(max(sizes[-1] - gone, least))
        return sizes

    def _keep_last(self, fault: str, stopped: bool) -> None:
        """End the elimination with the last set, before the one that cannot be ranked; raise if there is none."""
        if self.path_:
            self.reason_ = f"{fault}; the {self.path_[-1].n_features} before are kept"
        elif stopped:
            raise KeyboardInterrupt("the elimination was interrupted in its first fit; nothing is ranked.")
        else:
            raise ValueError(
                f"There is nothing to rank features by: {fault}. Bring the features to one scale near 1 "
                "(StandardScaler), or give another C, a finite one if it is inf."
            )


def _stage(classifier: Any, features: np.ndarray, before: Stage | None = None) -> Stage:
    """Return the bounds of a fit to these features, improved by those of the larger set `before` (see Notes above)."""
    certificate = getattr(classifier, "certificate_", None)
    if certificate is None:
        return Stage(features)
    problem: Problem = certificate.certificates[0].problem
    lower, upper = total_bounds(certificate)
    if before is not None:
        coordinates = features.size + (problem.intercept == "augmented")
        power = max(1.0 / problem.p - 1.0 / before.p, 0.0)
        # 4,500 times the unit roundoff, for the rounding of the power
        factor = float(coordinates) ** power * (1.0 + 1e-12) if power > 0.0 else 1.0
        if problem.hard:
            upper = min(upper, before.upper * factor)
        else:
            lower = max(lower, before.lower / factor**problem.power)
    return Stage(features, problem.p, classifier.status_, problem.hard, lower, upper)


def _ranked(classifier: Any) -> tuple[np.ndarray, int]:
    """Return the features by the size of their weights, the largest first, and how many are not zero to rounding."""
    if getattr(classifier, "coef_", None) is None:
        raise ValueError(f"{type(classifier).__name__} has no coef_ to rank by: use a linear classifier.")
    size = np.abs(np.atleast_2d(np.asarray(classifier.coef_, dtype=float)))
    # exact programs leave weights of this size at p = inf; more would delete features with small weights
    used = (size > 1e-14 * size.max(axis=1, keepdims=True)).any(axis=0)
    # hypot, since squares may underflow
    return np.argsort(-np.hypot.reduce(size, axis=0), kind="stable"), int(np.count_nonzero(used))


def _fault(stage: Stage, used: int) -> str | None:
    """Say why the features of a set cannot be ranked; None where they can."""
    if stage.hard and not stage.lower > 0.0:
        return f"no separator was found for {stage.n_features} features ({stage.status})"
    return None if used else f"all weights of {stage.n_features} features are 0"
