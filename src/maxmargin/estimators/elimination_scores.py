"""Cross-validation of an elimination of features: one elimination in every fold."""

from __future__ import annotations

from typing import Any

import numpy as np
from joblib import Parallel, delayed
from sklearn.metrics import check_scoring
from sklearn.model_selection import check_cv

from ..numerics.threads import jobs
from ..problem.status import Status
from .elimination import Elimination, Plan
from .progress import StepCallbacks

DEFAULT_FOLDS = 5


def cross_validate(
    plan: Plan, X: Any, y: np.ndarray, weights: Any, cv: Any, scoring: Any, n_jobs: int | None, rng: Any
) -> dict[str, np.ndarray]:
    """Return the scores of every fold at every size, in the layout of `cv_results_`.

    Parameters
    ----------
    plan : Plan
    X, y, weights
    cv, scoring, n_jobs
        As in `MarginRFE`; folds are fitted in processes.
    rng : RandomState
    """
    splitter: Any = check_cv(DEFAULT_FOLDS if cv is None else cv, y, classifier=True)
    if "Group" in type(splitter).__name__:
        raise ValueError(
            f"fit has no groups to give to {type(splitter).__name__}: give its splits, "
            "cv=list(splitter.split(X, y, groups))."
        )
    scorer = check_scoring(plan.estimator, scoring=scoring)
    folds = [(train, test, draw_seed(rng)) for train, test in splitter.split(X, y)]
    parallel: Any = Parallel(n_jobs=jobs(n_jobs, len(folds)))
    scores = np.array(parallel(delayed(_fold_scores)(plan, X, y, weights, scorer, *fold) for fold in folds))
    results = {"n_features": np.array(plan.sizes)}
    results |= {"mean_test_score": scores.mean(axis=0), "std_test_score": scores.std(axis=0)}
    return results | {f"split{k}_test_score": fold for k, fold in enumerate(scores)}


def best_size(results: dict[str, np.ndarray]) -> int:
    """Return the smallest number of features with the best mean score."""
    mean = results["mean_test_score"]
    if np.isnan(mean).all():
        raise ValueError(
            "No fold has a score at any size, so that none can be chosen: give a finite C, more rounds (max_iter), or "
            "n_features_to_select as a number."
        )
    return int(results["n_features"][np.flatnonzero(mean == np.nanmax(mean))[-1]])


def scores_at(results: dict[str, np.ndarray] | None, f: int) -> dict[str, float]:
    """Return the score of the elimination down to the size that left these f features."""
    if results is None:
        return {}
    k = int(np.flatnonzero(results["n_features"] >= f)[-1])
    return {
        "accuracy": float(results["mean_test_score"][k]),
        "accuracy_std": float(results["std_test_score"][k]),
    }


def draw_seed(rng: Any) -> int:
    """Draw the seed of one elimination."""
    return int(rng.randint(np.iinfo(np.int32).max))


def _fold_scores(
    plan: Plan,
    X: Any,
    y: np.ndarray,
    weights: Any,
    scorer: Any,
    train: np.ndarray,
    test: np.ndarray,
    seed: int,
) -> np.ndarray:
    """Return the test scores of one fold: of classifiers with at most `plan.sizes` features.

    Parameters
    ----------
    plan : Plan
    X, y, weights
        All rows.
    scorer : callable
    train, test : ndarray of int
        Features are eliminated on the rows of `train` alone.
    seed : int

    Raises
    ------
    KeyboardInterrupt
        If a fit was interrupted.
    """
    own = None if weights is None else weights[train]
    held_out, scored = X[test], {} if weights is None else {"sample_weight": weights[test]}
    scores = np.full(len(plan.sizes), np.nan)
    for stage, classifier in Elimination(plan, X[train], y[train], own, seed, StepCallbacks()):
        value = scorer(classifier, held_out[:, stage.features], y[test], **scored)
        scores[(np.array(plan.sizes) >= stage.n_features) & np.isnan(scores)] = value
        if stage.status is Status.INTERRUPTED:
            raise KeyboardInterrupt
    return scores
