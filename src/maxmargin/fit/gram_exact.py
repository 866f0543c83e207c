"""The exact stage of kernel problems: the active-set method on a factor of the Gram matrix."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..algorithms.batch.active_set import candidates
from ..algorithms.batch.cholesky import low_rank_factor
from ..algorithms.batch.quadratic_program import quadratic
from ..certificates.gram import KernelSample
from .exact import FEW_FLOPS, NEAR_ENOUGH, NEXT_TO_NONE
from .exact import FEW_ROWS as FEW_FACTORED_ROWS
from .tracker import ROUNDING, GramTracker

# Rows up to which the exact stage takes the eigenvalues of the whole Gram matrix, which cost O(n^3); of more rows it
# needs few features, or a factor of low rank.
FEW_ROWS = 500


def finish(tracker: GramTracker, sample: KernelSample) -> None:
    """Run the active-set method on a factor Z of the Gram matrix, K = Z Z'; its points enter the tracker."""
    problem, y, weights = tracker.problem, tracker.y, tracker.weights
    Z = _factor(sample)
    if Z is None or np.unique(y).size < 2:
        return
    qp = quadratic(problem, Z, y, weights)
    start = qp.near(tracker.alpha) if tracker.gap < NEAR_ENOUGH else None
    try:
        for candidate in candidates(qp, start):
            alpha = qp.dual(candidate.a)
            if not np.isfinite(alpha).all():
                continue
            found, scores = GramTracker(problem, y, weights, sample.diagonal), sample.scores(alpha * y)
            found.evaluate(alpha, scores)
            tracker.evaluate(alpha, scores)  # each of its bounds may be the better one by itself
            rounding = ROUNDING if candidate.settled else 0.0
            tracker.adopt(found.primal, found.alpha, found.lower, found.upper, rounding, apart=1.0)
            if candidate.settled and found.gap <= ROUNDING:
                return
    except np.linalg.LinAlgError:  # the points found before stand
        return


def _factor(sample: KernelSample) -> Any:
    """Return Z with K = Z Z', None where it has too many columns.

    The features of the kernel come first, where there are few: a matrix of their products has half of their digits.
    Otherwise the eigenvalues of the matrix of few rows, or a pivoted Cholesky factor of low rank.
    """
    n = sample.X.shape[0]
    few = n <= FEW_ROWS
    most = n if few else int(((FEW_FLOPS if n <= FEW_FACTORED_ROWS else NEXT_TO_NONE) / n) ** 0.5)
    if sample.features is not None and sample.features.shape[1] <= most:
        return sample.features
    if not few:
        return low_rank_factor(sample.kernel, sample.X, most)
    K = sample.kernel.block(sample.X, sample.X)
    values, vectors = np.linalg.eigh(0.5 * (K + K.T))
    kept = values > n * np.finfo(float).eps * max(float(values[-1]), 0.0)
    return vectors[:, kept] * np.sqrt(values[kept]) if kept.any() else None
