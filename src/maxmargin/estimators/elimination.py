"""Recursive elimination of features: fit, rank by the weights, delete the last, bound the loss, cross-validate."""

from __future__ import annotations

from collections.abc import Iterator
from copy import copy
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import scipy.sparse as sp
from joblib import Parallel, delayed
from sklearn.base import clone
from sklearn.metrics import check_scoring
from sklearn.model_selection import check_cv

from ..fit.deadline import Interruption
from ..numerics.progress import announce
from ..numerics.threads import jobs
from ..problem.problem import Problem
from ..problem.status import Status
from .diagnosis import explain
from .validation import distinct_labels, draw_seeds

DEFAULT_FOLDS = 5
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
    accuracy, accuracy_std : float
        Mean and standard deviation over the folds of the score after elimination to this number of features; nan
        without cross-validation.
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
    accuracy: float = np.nan
    accuracy_std: float = np.nan
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
        return line if np.isnan(self.accuracy) else f"{line}  accuracy {self.accuracy:.4f}"


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

    Parameters
    ----------
    estimator : estimator
        A clone of it is trained on every set.
    own : bool
        Whether the estimator is a `MaxMarginClassifier` made from an algorithm: each fit then has a warm start from
        the larger set, and the norm `p`.
    p : float or "log"
    aggregate : {"sum", "max"}
    sizes : list of int
        Numbers of features, the largest first.
    X : ndarray or CSR matrix of shape (n_samples, n_features)
    y : ndarray of shape (n_samples,)
    weights : ndarray of shape (n_samples,) or None
    seed : int
    interruption : Interruption
        Says whether Ctrl-C ended a fit, which ends the elimination.
    verbose : int
        Whether cross-validation prints a line for every fold.

    Attributes
    ----------
    order : ndarray of int
        All features, by rank, the best first; the remaining features come first.
    reason : str
        The reason for its end.
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
    verbose: int = 0
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

    def ranking(self, path: list[Stage], kept: Stage) -> np.ndarray:
        """Return 1 for features that are kept, 2 for the features deleted last, and so on."""
        sizes = np.unique([stage.n_features for stage in path if stage.n_features >= kept.n_features])
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

    Parameters
    ----------
    classifier : estimator
    before : Bounds or None
        Bounds of the larger set.
    f : int
        Number of features.

    Returns
    -------
    bounds : Bounds or None
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


def cross_validate(
    elimination: Elimination, cv: Any, scoring: Any, n_jobs: int | None, rng: Any
) -> dict[str, np.ndarray]:
    """Return the scores of every fold at every size, in the layout of `cv_results_`.

    Parameters
    ----------
    elimination : Elimination
        The elimination on all rows; its parameters are used, it is not run.
    cv, scoring, n_jobs
        As in `MarginRFE`; folds are fitted in processes.
    rng : RandomState
    """
    distinct_labels(elimination.y)  # splitters have other messages
    splitter: Any = check_cv(DEFAULT_FOLDS if cv is None else cv, elimination.y, classifier=True)
    if "Group" in type(splitter).__name__:
        raise ValueError(f"{type(splitter).__name__} needs groups: cv=list(splitter.split(X, y, groups)).")
    scorer = check_scoring(elimination.estimator, scoring=scoring)
    splits = splitter.split(elimination.X, elimination.y)
    folds = [(train, test, int(draw_seeds(rng, 1)[0])) for train, test in splits]
    parallel: Any = Parallel(n_jobs=jobs(n_jobs, len(folds)), return_as="generator")
    scores, steps = np.empty((len(folds), len(elimination.sizes))), len(folds) + 1  # one more with all rows
    found = parallel(delayed(_fold_scores)(elimination, scorer, *fold) for fold in folds)
    for k in range(len(folds)):
        announce("fold", k + 1, steps, verbose=elimination.verbose)
        scores[k] = next(found)
    announce("all rows", steps, steps, verbose=elimination.verbose)
    results = {"n_features": np.array(elimination.sizes)}
    results |= {"mean_test_score": scores.mean(axis=0), "std_test_score": scores.std(axis=0)}
    return results | {f"split{k}_test_score": fold for k, fold in enumerate(scores)}


def best_size(results: dict[str, np.ndarray]) -> int:
    """Return the smallest number of features with the best mean score."""
    mean = results["mean_test_score"]
    if np.isnan(mean).all():
        raise ValueError("No fold has a score at any size: give a finite C, or raise max_iter.")
    return int(results["n_features"][np.flatnonzero(mean == np.nanmax(mean))[-1]])


def scores_at(results: dict[str, np.ndarray], f: int) -> dict[str, float]:
    """Return mean and standard deviation of the score at the smallest size of at least f features."""
    k = int(np.flatnonzero(results["n_features"] >= f)[-1])
    mean, std = results["mean_test_score"][k], results["std_test_score"][k]
    return {"accuracy": float(mean), "accuracy_std": float(std)}


def _fold_scores(
    elimination: Elimination, scorer: Any, train: np.ndarray, test: np.ndarray, seed: int
) -> np.ndarray:
    """Return the test scores of one fold, for each size of the largest classifier with at most so many features.

    Features are eliminated on the rows of `train` only.

    Raises
    ------
    KeyboardInterrupt
        If a fit was interrupted.
    """
    X, y, weights, sizes = elimination.X, elimination.y, elimination.weights, np.array(elimination.sizes)
    own = None if weights is None else weights[train]
    held_out, scored = X[test], {} if weights is None else {"sample_weight": weights[test]}
    scores = np.full(sizes.size, np.nan)
    interruption = Interruption()
    fold = replace(elimination, X=X[train], y=y[train], weights=own, seed=seed, interruption=interruption)
    for stage, classifier in fold:
        value = scorer(classifier, held_out[:, stage.features], y[test], **scored)
        scores[(sizes >= stage.n_features) & np.isnan(scores)] = value
        if interruption.received or stage.status is Status.INTERRUPTED:
            raise KeyboardInterrupt
    return scores
