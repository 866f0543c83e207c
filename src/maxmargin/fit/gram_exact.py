"""The exact stage of kernel problems: the active-set method on a factor of the Gram matrix."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..algorithms.batch.active_set import candidates
from ..algorithms.batch.factors import low_rank_factor
from ..algorithms.batch.quadratic_program import quadratic
from ..certificates.gram import KernelSample
from .exact import FEW_FLOPS, NEAR_ENOUGH, NEXT_TO_NONE
from .exact import FEW_ROWS as FEW_FACTORED_ROWS
from .tracker import ROUNDING, GramTracker

# Rows up to which the exact stage factorises the whole Gram matrix by its eigenvalues, which cost O(n^3). With more
# rows it requires a kernel with few features, or a factor of low rank. A larger value spends more time on eigenvalues,
# a smaller one leaves more problems to the algorithm. Chosen on the data sets of docs/regimes.md.
FEW_ROWS = 500


def finish(tracker: GramTracker, sample: KernelSample) -> None:
    """Run the active-set method on a factor Z of the Gram matrix, K = Z Z', and keep better points in the tracker.

    Nothing is done if there is no factor of the required size, or only one class.
    """
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
            tracker.evaluate(alpha, scores)  # either bound may be better than the best, without the other
            rounding = ROUNDING if candidate.settled else 0.0
            tracker.adopt(found.primal, found.alpha, found.lower, found.upper, rounding, kept_together=1.0)
            if candidate.settled and found.gap <= ROUNDING:
                return
    except np.linalg.LinAlgError:  # the points found before the failure are kept
        return


def _factor(sample: KernelSample) -> Any:
    """Return Z, of shape (n, r), with K = Z Z'; None if r would exceed a limit.

    The limit is n up to `FEW_ROWS` rows; for more rows, n r^2 operations of one factorisation are within the limits of
    the exact stage (`exact.is_small`). Z is the matrix of the kernel's features if its columns are within the limit: K,
    which holds their products, has lost half of the digits. Otherwise Z comes from the eigenvalues of K (up to
    `FEW_ROWS` rows), or from a pivoted Cholesky factorisation of low rank.
    """
    n = sample.X.shape[0]
    whole = n <= FEW_ROWS
    max_columns = n if whole else int(((FEW_FLOPS if n <= FEW_FACTORED_ROWS else NEXT_TO_NONE) / n) ** 0.5)
    if sample.features is not None and sample.features.shape[1] <= max_columns:
        return sample.features
    if not whole:
        return low_rank_factor(sample.kernel, sample.X, max_columns)
    K = sample.kernel.block(sample.X, sample.X)
    values, vectors = np.linalg.eigh(0.5 * (K + K.T))
    # eigenvalues up to n eps times the largest are rounding
    kept = values > n * np.finfo(float).eps * max(float(values[-1]), 0.0)
    return vectors[:, kept] * np.sqrt(values[kept]) if kept.any() else None
