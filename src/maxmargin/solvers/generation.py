"""Row and column generation: problems on a part of the rows and columns, with bounds over all of them.

Of the violated constraints outside a restricted problem the worst ones join it: rows whose margin is too small, and at
p = inf, where few weights are not 0, columns whose |v_j| is too large, v = sum alpha_i y_i x_i (dual constraints). When
none is violated the problem is solved. At p = 1, where nearly all weights are +-|w|, there are all columns. Dual
variables are feasible for the whole problem after scaling to the largest |v_j| of all columns.

A restricted problem is a linear program (`linear_points`), or a soft margin at p = inf with all rows, solved by
interior points (`column_points`), which is left once much of the gap is due to columns outside.

References
----------
K. P. Bennett, A. Demiriz, J. Shawe-Taylor, "A column generation algorithm for boosting", ICML 2000;
A. Demiriz, K. P. Bennett, J. Shawe-Taylor, "Linear programming boosting via column generation", Machine Learning 46,
2002.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from ..numerics.sums import Plain, norm
from ..problem.problem import Problem
from .iterate import Point
from .linear_program import program_points

# Small restricted problems are solved faster, of large ones fewer are needed.
ADDED_ROWS, ADDED_COLUMNS = 200, 60  # at the start and in a round; later a quarter of those inside, if more
ROUNDING = 1e-9  # relative violation that counts as none

Solver = Callable[[Problem, Any, np.ndarray, np.ndarray, Callable[[], bool]], Iterator[Point]]


def linear_points(
    problem: Problem,
    X: Any,
    y: np.ndarray,
    weights: np.ndarray,
    interrupted: Callable[[], bool] = lambda: False,
) -> Iterator[Point]:
    """Yield the optimum of each linear program, before it the separator of the class means for a hard margin.

    Parameters
    ----------
    problem : Problem
        Hard margin, or hinge with the norm to the first power; p = 1 or p = inf.
    X : ndarray or CSR matrix of shape (n, d)
    y : ndarray of shape (n,), entries -1.0 and 1.0
        Both classes, where the intercept is free.
    weights : ndarray of shape (n,)
        Sample weights, all positive.
    interrupted : callable
        Returns whether to stop. Called between programs.

    Yields
    ------
    Point
        For a hard margin with inseparable classes the last w does not separate them, and the dual variables prove it by
        |sum alpha_i y_i x_i| = 0.
    """
    n, d = X.shape
    alpha = np.full(n, 1.0 / n) if problem.hard else problem.caps(weights)
    balanced = problem.balanced(y, alpha) if problem.free else alpha
    alpha = alpha if balanced is None else balanced
    v = Plain.combine(X, alpha * y)  # the difference of the class means
    sparse = bool(np.isinf(problem.p))
    w = np.where(np.abs(v) >= np.sort(np.abs(v))[-20:][0], v, 0.0) if sparse else np.sign(v)
    if problem.hard:
        yield Point(w, 0.0, alpha)
    elif norm(problem.weights(v, problem.rho**2 * float(alpha @ y)), problem.p) <= 1.0:
        yield Point(np.zeros(d), 0.0, alpha)  # the optimum where C is small
        return
    rows, columns = np.arange(n), np.arange(d)
    if n * d > 60_000:  # small programs have all rows and columns
        if n > 400:
            scores = Plain.scores(X, w)
            classes = (y > 0, y < 0) if problem.free else (np.full(n, True),)
            count = ADDED_ROWS // len(classes)
            rows = np.concatenate([largest(np.where(of, -y * scores, -np.inf), count) for of in classes])
        columns = largest(np.abs(v), ADDED_COLUMNS) if sparse else columns
    yield from _generated(program_points, problem, X, y, weights, interrupted, rows, columns)


def column_points(
    solver: Solver,
    problem: Problem,
    X: Any,
    y: np.ndarray,
    weights: np.ndarray,
    interrupted: Callable[[], bool] = lambda: False,
) -> Iterator[Point]:
    """Yield the points of a solver of soft problems at p = inf on growing sets of columns.

    The parameters are those of `linear_points`. A step of interior points costs n k min(n, k) for k columns.
    """
    n, d = X.shape
    columns = np.arange(d)
    if d > 400:  # else all columns from the start
        # proportional to the sample weights: the columns of the largest weighted differences of the classes
        alpha: Any = np.minimum(problem.caps(weights), weights)
        alpha = problem.balanced(y, alpha) if problem.free else alpha
        columns = largest(np.abs(Plain.combine(X, alpha * y)), ADDED_COLUMNS)
    yield from _generated(solver, problem, X, y, weights, interrupted, np.arange(n), columns)


def _generated(
    solver: Solver,
    problem: Problem,
    X: Any,
    y: np.ndarray,
    weights: np.ndarray,
    interrupted: Callable[[], bool],
    rows: Any,
    columns: Any,
) -> Iterator[Point]:
    """Yield the points of a solver on these rows and columns, to which violated ones are added, as points of all."""
    n, d = X.shape
    while True:
        rows, columns = np.sort(rows), np.sort(columns)
        part = X if rows.size == n else X[rows]
        part = part if columns.size == d else part[:, columns]
        more: list[np.ndarray] = []
        for found in solver(problem, part, y[rows], weights[rows], interrupted):
            w, b, alpha = np.zeros(d), found.b, np.zeros(n)
            w[columns], alpha[rows] = found.w, found.alpha
            yield Point(w, b, alpha)
            margins, v = y * Plain.scores(X, w, b), np.abs(Plain.combine(X, alpha * y))
            # no margin is below the least one inside (soft: free of slack, 1), and no |v_j|, that of the constant
            # coordinate included, above the largest one inside
            least = float(margins[rows].min()) if problem.hard else 1.0
            inside = max(float(v[columns].max(initial=0.0)), problem.rho * abs(float(alpha @ y)))
            bound = max(inside, 1.0) if problem.first_power else inside
            more = [
                _worst_outside(least - margins, rows, ADDED_ROWS, ROUNDING * abs(least)),
                _worst_outside(v - bound, columns, ADDED_COLUMNS, ROUNDING * bound),
            ]
            if more[1].size and not problem.hard:
                length = norm(problem.weights(w, b), problem.q)
                primal = problem.primal(length, margins, weights)
                gaps = [primal - problem.best_dual(alpha, u, weights)[1] for u in (inside, float(v.max()))]
                if gaps[0] <= 0.6 * gaps[1]:  # much of the gap is due to columns outside
                    break
        if not any(each.size for each in more) or interrupted():
            return
        rows, columns = np.append(rows, more[0]), np.append(columns, more[1])


def _worst_outside(violation: Any, inside: np.ndarray, count: int, above: float) -> np.ndarray:
    """Return the indices outside of the largest violations above a bound, `count` or a quarter of those inside."""
    violation[inside] = -np.inf
    return largest(violation, max(count, inside.size // 4), above)


def largest(values: Any, count: int, above: float = -np.inf) -> np.ndarray:
    """Return the indices of the `count` largest values above a bound; all of them if there are no more."""
    places = np.flatnonzero(values > above)
    if places.size > count:
        places = places[np.argpartition(-values[places], count)[:count]]
    return places
