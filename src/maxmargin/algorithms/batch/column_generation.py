"""Column generation around the path of smooth problems: soft margins at p = inf, where few columns carry the answer.

|w|_1 makes most weights zero. A master is the problem of some columns; its dual weights are dual weights of the whole
problem once |v_j|, v = sum alpha_i y_i x_i, is bounded in the columns outside, too. So a master is left as soon as
what these columns spoil is most of the gap, and the worst of them enter.

References
----------
K. P. Bennett, A. Demiriz, J. Shawe-Taylor, "A column generation algorithm for boosting", ICML 2000.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import scipy.sparse as sp

from ...numerics.norms import norm
from ...problem.problem import Problem
from .barrier import Point, path_points
from .generation import largest

FEW = 200  # columns that are all in the first master
START, ENTER = 60, 60  # columns of the first master, and that enter at once, at least
GROWTH = 1.0  # the same as a share of those that are in
SHARE = 0.6  # of the gap, which is the master's own: less, and it is time for other columns
SLACK = 1e-9  # a violation, relative, that is none


def column_points(
    problem: Problem,
    X: Any,
    y: np.ndarray,
    weights: np.ndarray,
    interrupted: Callable[[], bool] = lambda: False,
) -> Iterator[Point]:
    """Solve a soft problem at p = inf; points of the paths of the masters, each better than the one before.

    Parameters
    ----------
    problem : Problem
        A soft one at p = inf: w is sparse.
    X : ndarray or CSR matrix of shape (n, d)
        A step of Newton's method costs n k min(n, k) for k columns in the master.
    y : ndarray of shape (n,), entries -1.0 and 1.0
        Both classes, where the intercept is free.
    weights : ndarray of shape (n,)
        Sample weights, all positive.
    interrupted : callable
        Is it time to stop? Asked before every step of a path.

    Yields
    ------
    Point
        In the caller's units; dual weights within their caps and, up to rounding, balanced.
    """
    d = X.shape[1]
    by_column = sp.csc_matrix(X) if sp.issparse(X) else X
    rows = sp.csr_matrix(by_column.T) if sp.issparse(X) else X.T
    columns = np.arange(d)
    if d > FEW:
        start = np.minimum(problem.caps(weights), weights)
        start = problem.balanced(y, start) if problem.free else start
        columns = np.sort(largest(np.abs(rows @ (start * y)), START))
    while True:
        lack = np.zeros(d)
        part = by_column[:, columns]
        for point in path_points(problem, part, y, weights, interrupted):
            w = np.zeros(d)
            w[columns] = point.w
            yield Point(w, point.b, point.alpha)
            v = np.abs(rows @ (point.alpha * y))
            constant = problem.rho * abs(float(point.alpha @ y))
            inside = max(float(v[columns].max(initial=0.0)), constant)
            lack = np.maximum(v - inside * (1.0 + SLACK), 0.0)
            primal = problem.primal(
                problem.penalty(norm(problem.weights(point.w, point.b), problem.q)),
                y * (part @ point.w + point.b),
                weights,
            )
            own, whole = (
                primal - dual_value(problem, point.alpha, size, weights)
                for size in (inside, max(inside, float(v.max())))
            )
            if own <= SHARE * whole:
                break
        more = largest(lack, max(ENTER, int(GROWTH * columns.size)), 0.0)
        if not more.size or interrupted():
            return
        columns = np.sort(np.concatenate([columns, more]))


def dual_value(problem: Problem, alpha: np.ndarray, size: float, weights: np.ndarray) -> float:
    """The dual value of the best multiple of dual weights whose sum of patterns is as long as this."""
    t = problem.multiple(alpha, size * size, weights)
    return problem.dual((t * size) ** 2, t * alpha, weights)
