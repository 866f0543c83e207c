"""Row and column generation: restricted master problems, with bounds over all rows and columns.

A restricted master holds a part of the rows and, at p = inf, where w is sparse, a part of the columns. Of the
violated constraints outside it the worst ones join it: rows whose margin is too small, and columns whose |v_j| is too
large, v = sum alpha_i y_i x_i (dual constraints). When none is violated the problem is solved. At p = 1, where nearly
all weights are +-|w|, every master holds all columns.

A master is a linear program (`linear_points`) or, for a soft margin at p = inf, a problem solved by interior points
(`column_points`). Their dual variables are feasible for the whole problem after scaling to the largest |v_j| of all
columns. A master is left once much of the gap is due to columns outside.

References
----------
K. P. Bennett, A. Demiriz, J. Shawe-Taylor, "A column generation algorithm for boosting", ICML 2000;
A. Demiriz, K. P. Bennett, J. Shawe-Taylor, "Linear programming boosting via column generation", Machine Learning 46,
2002.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from ...numerics.norms import norm
from ...problem.intercept import best_intercept
from ...problem.problem import Problem
from ...solvers.iterate import Point
from ..any_norm.barrier import path_points
from ..any_norm.interior_point import norm_points
from .linear_program import Program, solve_program


@dataclass(frozen=True)
class Settings:
    """Sizes of restricted masters: small ones are solved faster, and with large ones fewer masters are needed.

    The values were chosen on the data sets of benchmarks.before_after.
    """

    # Number of entries up to which a linear program is solved without restriction.
    whole_entries: int = 60_000
    # Number of rows up to which every master holds all rows.
    all_rows: int = 400
    # Largest number of rows and of columns that join a master at once. It is a quarter of the size of a linear program,
    # or the size of a problem of interior points, if that is more.
    added_rows: int = 200
    added_columns: int = 60
    # Number of columns of the difference of the class means by which the first rows are chosen.
    mean_columns: int = 20
    # Number of columns of the first master.
    first_columns: int = 60
    # Number of columns up to which the first master of `column_points` holds all columns: with 60 of the 300 columns of
    # web it takes up to three times as long.
    all_columns: int = 400
    # A master is left when its gap is at most this share of the gap over all columns. A smaller one spends steps on a
    # gap that other columns decide; a larger one starts more masters.
    leave_share: float = 0.6
    # Relative violation that counts as none: the feasibility tolerances of HiGHS are 1e-10 to 1e-7.
    max_violation: float = 1e-9
    # A margin below this, in units of the largest entry, becomes the unit of a new program: HiGHS has absolute
    # tolerances.
    small_margin: float = 1e-2


def linear_points(
    problem: Problem,
    X: Any,
    y: np.ndarray,
    weights: np.ndarray,
    interrupted: Callable[[], bool] = lambda: False,
    settings: Settings = Settings(),
) -> Iterator[Point]:
    """Solve a linear problem of p = 1 or p = inf; yield the best point after each master, the last one optimal.

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
        Returns whether to stop. Called between masters.
    settings : Settings

    Yields
    ------
    Point
        In the caller's units. For a hard margin with inseparable classes the last w does not separate them, and the
        dual variables prove it by |sum alpha_i y_i x_i| = 0.
    """
    program = Program.of(problem, X, y, weights)
    for point in _Masters(program, weights, interrupted, settings).points():
        yield point.restored(problem, program.unit)
        if interrupted():
            return


class _Masters:
    """The restricted masters of one linear program, and the best w and dual variables of their solutions.

    Attributes
    ----------
    sparse_weights : bool
        Whether p = inf, where few weights of an optimum are not 0: masters hold a part of the columns.
    best : Point
    primal, dual : float
        The values of `best`, as `Program.values` returns them.
    """

    def __init__(
        self, program: Program, weights: np.ndarray, interrupted: Callable[[], bool], settings: Settings
    ) -> None:
        self.program, self.weights, self.interrupted, self.settings = program, weights, interrupted, settings
        self.problem, self.y, self.A = program.problem, program.y, program.A
        self.n, self.d = self.A.shape
        self.transposed = self.A.T.tocsr() if sp.issparse(self.A) else self.A.T
        self.sparse_weights = bool(np.isinf(self.problem.p))
        # first dual variables: equal (hard margin) or the caps, balanced between the classes
        alpha = np.full(self.n, 1.0 / self.n) if self.problem.hard else program.costs
        balanced = self.problem.balanced(self.y, alpha) if self.problem.free else alpha
        self.best = Point(np.zeros(self.d), 0.0, alpha if balanced is None else balanced)
        self.primal, self.dual = -np.inf, -np.inf
        if not self.problem.hard:  # w = 0 is the optimum where C is small
            self.update_best(self.best.w, self.best.alpha)

    def points(self) -> Iterator[Point]:
        """Yield the best point after each master, in units of the program."""
        hard, unit, settings = self.problem.hard, 1.0, self.settings  # unit: of margins
        direction = self.mean_direction()
        rows, columns = self.first(direction)
        while True:
            found = solve_program(self.program.part(rows, columns), unit, self.interrupted)
            if found is None:
                # without any w, the one that separates the class means is better than none
                if not self.best.w.any() and self.interrupted():
                    self.update_best(direction, self.best.alpha)
                    yield self.best
                return
            w, alpha = np.zeros(self.d), np.zeros(self.n)
            w[columns], alpha[rows] = found.w, found.alpha
            scores, v, margin = self.update_best(w, alpha)
            yield self.best
            margins = scores + self.y * found.b
            # at the optimum no margin is below the least one of the master (hinge: free of slack, 1), and no |v_j| is
            # above the largest one of the master (hinge: 1)
            least = float(margins[rows].min()) if hard else 1.0
            bound = float(np.abs(v[columns]).max(initial=0.0)) if hard else 1.0
            slack, slack_v = settings.max_violation * abs(least), settings.max_violation * bound
            more_rows = _worst_outside(least - margins, rows, settings.added_rows, slack, 4)
            more_columns = _worst_outside(np.abs(v) - bound, columns, settings.added_columns, slack_v, 4)
            if not (more_rows.size or more_columns.size):
                if not (hard and unit == 1.0 and 0.0 < margin < settings.small_margin):
                    return
                unit = 2.0 ** np.round(np.log2(margin))
            rows, columns = np.union1d(rows, more_rows), np.union1d(columns, more_columns)

    def mean_direction(self) -> np.ndarray:
        """Return a w that separates the class means, of shape (d,).

        With v their difference, sum alpha_i a_i for the first dual variables, it is sign(v) at p = 1; at p = inf the
        `mean_columns` largest entries of v.
        """
        v = self.transposed @ self.best.alpha
        if not self.sparse_weights:
            return np.sign(v)
        w, places = np.zeros(self.d), largest(np.abs(v), self.settings.mean_columns)
        w[places] = v[places]
        return w

    def first(self, direction: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the sorted rows and columns of the first master.

        The rows are those of each class with the smallest margins for w = `direction`; the columns (at p = inf) are
        those of the largest differences of the class means.
        """
        rows, columns = np.arange(self.n), np.arange(self.d)
        if self.n * self.d <= self.settings.whole_entries:
            return rows, columns
        if self.n > self.settings.all_rows:
            scores = self.A @ direction
            classes = (self.y > 0, self.y < 0) if self.problem.free else (np.full(self.n, True),)
            count = self.settings.added_rows // len(classes)
            rows = np.sort(np.concatenate([largest(np.where(of, -scores, -np.inf), count) for of in classes]))
        if self.sparse_weights:
            v = self.transposed @ self.best.alpha
            columns = np.sort(largest(np.abs(v), self.settings.first_columns))
        return rows, columns

    def update_best(self, w: np.ndarray, alpha: np.ndarray) -> tuple[np.ndarray, np.ndarray, float]:
        """Store w, with its best intercept, in `best` if its primal value is better, and alpha if its dual value is.

        Parameters
        ----------
        w : ndarray of shape (d,)
        alpha : ndarray of shape (n,)

        Returns
        -------
        scores : ndarray of shape (n,)
        v : ndarray of shape (d,)
            sum alpha_i a_i.
        margin : float
            The smallest margin with the best intercept.
        """
        # over all rows and columns: outside the master there may be smaller margins and larger |v_j|
        scores, v, b = self.A @ w, self.transposed @ alpha, 0.0
        if self.problem.free:
            b = best_intercept(self.problem, self.y * scores, self.y, self.weights)
        margins = scores + self.y * b
        primal, dual = self.program.values(w, margins, alpha, v)
        if primal > self.primal:
            self.primal, self.best = primal, self.best._replace(w=w, b=b)
        if dual > self.dual:
            self.dual, self.best = dual, self.best._replace(alpha=alpha)
        return scores, v, float(margins.min())


# The norms for which interior points are run, besides p = 1 and p = inf: nearer to p = 1 and for large finite p, the
# slopes of the norm change most from step to step, and the barrier method is more reliable.
MIN_EXPONENT, MAX_EXPONENT = 1.05, 20.0


def norm_solutions(
    problem: Problem,
    X: Any,
    y: np.ndarray,
    weights: np.ndarray,
    interrupted: Callable[[], bool] = lambda: False,
) -> Iterator[Point]:
    """Yield the iterates of interior points, and then those of the barrier method; the parameters are those of both."""
    p = problem.p
    if p == 1.0 or MIN_EXPONENT <= p <= MAX_EXPONENT or np.isinf(p):
        yield from norm_points(problem, X, y, weights, interrupted)
    if not interrupted():
        yield from path_points(problem, X, y, weights, interrupted)


def column_points(
    problem: Problem,
    X: Any,
    y: np.ndarray,
    weights: np.ndarray,
    interrupted: Callable[[], bool] = lambda: False,
    settings: Settings = Settings(),
) -> Iterator[Point]:
    """Solve a soft problem at p = inf by column generation; yield the iterates of each master.

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
        Returns whether to stop. Called before every step.
    settings : Settings

    Yields
    ------
    Point
        In the caller's units; dual variables within their caps and, up to rounding, balanced.
    """
    d = X.shape[1]
    by_column = sp.csc_matrix(X) if sp.issparse(X) else X
    transposed = by_column.T  # CSR where X is sparse
    columns = np.arange(d)
    if d > settings.all_columns:
        # proportional to the sample weights: the columns of the largest weighted differences of the classes
        alpha: Any = np.minimum(problem.caps(weights), weights)
        alpha = problem.balanced(y, alpha) if problem.free else alpha
        columns = np.sort(largest(np.abs(transposed @ (alpha * y)), settings.first_columns))
    while True:
        master, violation = by_column[:, columns], np.zeros(d)
        for point in norm_solutions(problem, master, y, weights, interrupted):
            w = np.zeros(d)
            w[columns] = point.w
            yield point._replace(w=w)
            # |v_j| of all columns, and of the constant coordinate, which every master has
            v = np.abs(transposed @ (point.alpha * y))
            constant = problem.rho * abs(float(point.alpha @ y))
            inside = max(float(v[columns].max(initial=0.0)), constant)
            violation = v - inside * (1.0 + settings.max_violation)
            penalty = problem.penalty(norm(problem.weights(point.w, point.b), problem.q))
            primal = problem.primal(penalty, y * (master @ point.w + point.b), weights)
            master_gap = primal - _dual_value(problem, point.alpha, inside, weights)
            gap = primal - _dual_value(problem, point.alpha, max(inside, float(v.max())), weights)
            if master_gap <= settings.leave_share * gap:
                break
        more = _worst_outside(violation, columns, settings.added_columns, 0.0, 1)
        if not more.size or interrupted():
            return
        columns = np.union1d(columns, more)


def _dual_value(problem: Problem, alpha: np.ndarray, v_norm: float, weights: np.ndarray) -> float:
    """Return the dual objective of the best multiple t alpha; `v_norm` is |v|_p with v = sum alpha_i y_i x_i."""
    t = problem.multiple(alpha, v_norm * v_norm, weights)
    return problem.dual((t * v_norm) ** 2, t * alpha, weights)


def _worst_outside(
    violation: np.ndarray, inside: np.ndarray, count: int, above: float, divisor: int
) -> np.ndarray:
    """Return the indices outside a master of the largest violations above a bound.

    Parameters
    ----------
    violation : ndarray
        The violation of every row or column.
    inside : ndarray of int
        The rows or columns of the master.
    count : int
        At most this many indices, or the size of the master divided by `divisor` if that is more.
    above : float
        The bound.
    divisor : int
    """
    outside = violation.copy()
    outside[inside] = -np.inf
    return largest(outside, max(count, inside.size // divisor), above)


def largest(values: np.ndarray, count: int, above: float = -np.inf) -> np.ndarray:
    """Return the indices of the `count` largest values above a bound; all of them, in order, if there are no more."""
    places = np.flatnonzero(values > above)
    if places.size > count:
        places = places[np.argpartition(-values[places], count)[:count]]
    return places
