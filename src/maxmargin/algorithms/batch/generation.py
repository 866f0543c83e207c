"""Column and row generation: small masters, bounds over all rows and columns.

A master holds some rows and, at p = inf, where few columns carry the answer, some columns. What it gets wrong enters
next, worst first: rows of too small a margin, columns of too large a |v_j|, v = sum alpha_i y_i x_i. When nothing is
wrong the program is solved. At p = 1, where all but few weights are +-|w|, every column is in every master.

A master is a linear program (`linear_points`), or, of soft margins at p = inf that are none, a path of smooth problems
(`column_points`). There a master's dual weights are dual weights of the whole problem once |v_j| is bounded in the
columns outside, too: so it is left as soon as what these columns spoil is most of the gap.

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
import scipy.sparse as sp

from ...numerics.norms import norm
from ...problem.intercept import best_intercept
from ...problem.problem import Problem
from .barrier import Point, path_points
from .linear_program import Program, program, solve_program

WHOLE = 60_000  # entries of a program that is solved as it is
ALL_ROWS = 400  # up to so many rows, all are in every master
ROWS, COLUMNS = 200, 60  # that enter at once, at least
FEW = 20  # columns of the first direction
START = 60  # columns of the first master
SLACK = 1e-9  # a violation, relative, that is none
SMALL = 1e-2  # a margin, in units of the largest entry, that becomes the unit
ALL_COLUMNS = 200  # up to so many columns, all are in the first master of a path
PATH_START = 60  # columns of it where there are more
# A master of a path is left when less than this share of the gap is its own: later, steps are spent on a gap that other
# columns decide; sooner, more masters begin anew.
SHARE = 0.6


def linear_points(
    problem: Problem,
    X: Any,
    y: np.ndarray,
    weights: np.ndarray,
    interrupted: Callable[[], bool] = lambda: False,
    start: np.ndarray | None = None,
) -> Iterator[Point]:
    """Solve a linear problem of p = 1 or p = inf; a point after each master, the last one optimal.

    Parameters
    ----------
    problem : Problem
        Hard margin, or hinge with the norm to the first power.
    X : ndarray or CSR matrix of shape (n, d)
    y : ndarray of shape (n,), entries -1.0 and 1.0
        Both classes, where the intercept is free.
    weights : ndarray of shape (n,)
        Sample weights, all positive.
    interrupted : callable
        True where it is time to stop. Asked between masters, and while HiGHS is at work.
    start : ndarray of shape (n,), default=None
        Dual weights that say which columns come first.

    Yields
    ------
    Point
        In the caller's units. Classes that the hard margin cannot separate: w is 0 at the end, or of no use, and the
        dual weights show it by |sum alpha_i y_i x_i| = 0.
    """
    whole = program(problem, X, y, weights)
    for w, b, alpha in _Search(problem, whole, weights, interrupted).points(start):
        yield Point(*whole.primal(w, b), whole.dual(alpha))
        if interrupted():
            return


class _Search:
    """The masters of one program, and the best of their points."""

    def __init__(
        self, problem: Problem, whole: Program, weights: np.ndarray, interrupted: Callable[[], bool]
    ) -> None:
        self.problem, self.whole, self.weights, self.interrupted = problem, whole, weights, interrupted
        self.n, self.d = whole.A.shape
        self.transposed = whole.A.T.tocsr() if sp.issparse(whole.A) else whole.A.T
        self.w, self.b, self.alpha = np.zeros(self.d), 0.0, self.uniform()
        # how good these are: margin or objective, the more the better
        self.primal, self.dual = -np.inf, -np.inf
        if not whole.hard:  # w = 0, which is the optimum where C is small
            self.keep(self.w, np.zeros(self.n), self.alpha, self.transposed @ self.alpha)
        self.compared = self.primal

    def points(self, start: np.ndarray | None) -> Iterator[tuple[np.ndarray, float, np.ndarray]]:
        """The best point after each master."""
        whole = self.whole
        v = self.transposed @ (self.alpha if start is None else start)
        rows, columns = self.first(v)
        size = 1.0
        while True:
            found = solve_program(whole.part(rows, columns), size, -self.primal, self.interrupted)
            if found is None:
                if not self.w.any() and self.interrupted():
                    yield self.without_time(v)
                return
            w = np.zeros(self.d)
            w[columns] = found.w
            alpha = np.zeros(self.n)
            alpha[rows] = found.alpha
            scores, v = whole.A @ w, self.transposed @ alpha
            margin = self.keep(w, scores, alpha, v)
            yield self.w, self.b, self.alpha
            more_rows = self.wrong_rows(scores + whole.y * found.b, rows)
            more_columns = self.wrong_columns(v, columns)
            if not (more_rows.size or more_columns.size or self.improving()):
                if not (whole.hard and size == 1.0 and 0.0 < margin < SMALL):
                    return
                size = 2.0 ** np.round(np.log2(margin))  # HiGHS has absolute tolerances
            rows = np.sort(np.concatenate([rows, more_rows]))
            columns = np.sort(np.concatenate([columns, more_columns]))

    def without_time(self, v: np.ndarray) -> tuple[np.ndarray, float, np.ndarray]:
        """A point where time ended within the first master: the direction of the class means, or w = 0 if better."""
        w = self.direction(v)
        self.keep(w, self.whole.A @ w, self.alpha, self.transposed @ self.alpha)
        return self.w, self.b, self.alpha

    def uniform(self) -> np.ndarray:
        """The same dual weight for every row, or each its cap, balanced."""
        costs = self.whole.costs
        alpha = np.full(self.n, 1.0 / self.n) if costs is None else costs
        balanced = self.problem.balanced(self.whole.y, alpha) if self.whole.free else alpha
        return alpha if balanced is None else balanced

    def first(self, v: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Rows and columns of the first master, by a direction that separates the class means."""
        rows, columns = np.arange(self.n), np.arange(self.d)
        if self.n * self.d <= WHOLE:
            return rows, columns
        if self.n > ALL_ROWS:
            scores = self.whole.A @ self.direction(v)
            y = self.whole.y
            parts = (y > 0, y < 0) if self.whole.free else (np.full(self.n, True),)
            nearest = [largest(np.where(part, -scores, -np.inf), ROWS // len(parts)) for part in parts]
            rows = np.sort(np.concatenate(nearest))
        return rows, np.sort(largest(np.abs(v), START)) if self.whole.sparse_weights else columns

    def direction(self, v: np.ndarray) -> np.ndarray:
        """Weights that separate the means."""
        if not self.whole.sparse_weights:
            return np.sign(v)
        w = np.zeros(self.d)
        few = largest(np.abs(v), FEW)
        w[few] = v[few]
        return w

    def wrong_rows(self, margins: np.ndarray, rows: np.ndarray) -> np.ndarray:
        """The rows outside whose margins are too small, worst first."""
        least = float(margins[rows].min()) if self.whole.hard else 1.0
        outside = np.full(self.n, True)
        outside[rows] = False
        lack = np.where(outside, least - margins, 0.0)
        return largest(lack, max(ROWS, rows.size // 4), SLACK * abs(least))

    def wrong_columns(self, v: np.ndarray, columns: np.ndarray) -> np.ndarray:
        """The columns outside that the dual weights ask for, worst first."""
        outside = np.full(self.d, True)
        outside[columns] = False
        bound = float(np.abs(v[columns]).max(initial=0.0)) if self.whole.hard else 1.0
        lack = np.where(outside, np.abs(v) - bound, 0.0)
        return largest(lack, max(COLUMNS, columns.size // 4), SLACK * bound)

    def improving(self) -> bool:
        """Is the objective that the ratio was compared with (hinge, p = 1) not yet the best?"""
        if self.whole.hard or self.whole.sparse_weights:
            return False
        before, self.compared = self.compared, self.primal
        return self.primal + self.dual < -SLACK * abs(self.primal) and self.primal > before

    def keep(self, w: np.ndarray, scores: np.ndarray, alpha: np.ndarray, v: np.ndarray) -> float:
        """Keep what is better than before; the margin of w, if it is the hard margin."""
        whole = self.whole
        b = best_intercept(self.problem, whole.y * scores, whole.y, self.weights) if whole.free else 0.0
        margins, length = scores + whole.y * b, whole.norm(w)
        total, size = float(alpha.sum()), whole.dual_norm(v)
        least = float(margins.min())
        if whole.costs is None:
            primal = least / length if length > 0.0 else -np.inf
            dual = -size / total if total > 0.0 else -np.inf
        else:
            primal = -length - float(whole.costs @ np.maximum(1.0 - margins, 0.0))
            dual = total / max(1.0, size)
        if primal > self.primal:
            self.primal, self.w, self.b = primal, w, b
        if dual > self.dual:
            self.dual, self.alpha = dual, alpha
        return least


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
    if d > ALL_COLUMNS:
        start = np.minimum(problem.caps(weights), weights)
        start = problem.balanced(y, start) if problem.free else start
        columns = np.sort(largest(np.abs(rows @ (start * y)), PATH_START))
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
        more = largest(lack, max(COLUMNS, columns.size), 0.0)
        if not more.size or interrupted():
            return
        columns = np.sort(np.concatenate([columns, more]))


def dual_value(problem: Problem, alpha: np.ndarray, size: float, weights: np.ndarray) -> float:
    """The dual value of the best multiple of dual weights whose sum of patterns is as long as this."""
    t = problem.multiple(alpha, size * size, weights)
    return problem.dual((t * size) ** 2, t * alpha, weights)


def largest(values: np.ndarray, most: int, above: float = -np.inf) -> np.ndarray:
    """The places of at most `most` of the largest values, those above a bound; most of them: any order."""
    places = np.flatnonzero(values > above)
    if places.size > most:
        places = places[np.argpartition(-values[places], most)[:most]]
    return places
