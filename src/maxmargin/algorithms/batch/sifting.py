"""Sifting: hinge problems of many rows, by a batch solver on the rows near the margin and on means of the others.

At the optimum a row of margin above 1 has dual variable 0, and a row of margin below 1 has its cap. Solutions on
growing samples of the rows predict the margins. The scores of the last two solutions differ by about as much as those
of the last one and of the solution on all rows: this change is the error of the prediction. Rows whose predicted margin
differs from 1 by more than the error form groups by class and margin; each other row stays single.

The share of a row is alpha / cap, its dual variable as a fraction of its cap. All rows of a group have one share, so
that the weighted mean of the rows replaces them. This restricts the dual problem, and its dual variables are feasible
for all rows. Rows whose share contradicts the optimality conditions leave their groups, until there are none.

References
----------
E. Osuna, R. Freund, F. Girosi, "An improved training algorithm for support vector machines", NNSP 1997 (rows that
violate the optimality conditions join the working set);
L. Bottou, O. Bousquet, "The tradeoffs of large scale learning", NIPS 2007 (the error of a solution on a sample).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import scipy.sparse as sp

from ...numerics.norms import norm
from ...numerics.sums import Plain, row_blocks
from ...problem.problem import Problem
from ...solvers.iterate import Reached
from ...solvers.rows import CentredRows
from .interior_point import interior_points
from .quadratic_program import SpanBasis, is_wide
from .semismooth import Start, proximal_points

# Excess of the groups, relative to the objective, up to which it is rounding: some tens of roundings of float64.
ROUNDING = 1e-14


@dataclass(frozen=True)
class Settings:
    """Numerical settings of sifting.

    Values without another source were chosen on the data sets of benchmarks.before_after.
    """

    # Rows of the first sample: at least `min_sample_rows`, and `sample_rows_per_column` for each column. Smaller
    # samples are solved faster, and predict the scores of the other rows less well. Each sample has `sample_growth`
    # times as many rows as the one before: a small factor solves more samples, a large one starts each of them farther
    # from its optimum.
    min_sample_rows: int = 500
    sample_rows_per_column: int = 20
    sample_growth: int = 4
    # Fraction of the rows above which a sample, or the single rows, cost about as much as all rows.
    max_share: float = 0.3
    # Entries of X up to which all rows are solved at once: samples save no time.
    few_entries: int = 320_000
    # Fraction of a sample that each class has at least, if it has so many rows: a rare class is not left out by chance.
    min_class_share: float = 0.25
    # A row stays single where its margin differs from 1 by at most `single_changes` times the `single_quantile` of the
    # changes of all scores between the last two samples. Larger numbers keep more single rows, and need fewer rounds.
    single_changes: float = 0.6
    single_quantile: float = 0.99
    # Groups of one class on one side of the margin. The distance from the margin doubles from group to group, so that
    # the last one begins at 2^11 times the distance of the first.
    strata: int = 12
    # Gap at which a sample counts as solved: below it the sampling error exceeds the change of each step.
    sample_gap: float = 1e-3
    # A round ends when the gap of the restricted problem is below this share of the excess of the groups
    # (`_solve_grouped`); then the rows leave their groups whose excess is above this share of the mean excess. With a
    # smaller share, a round takes more steps and more rows leave their groups.
    excess_share: float = 0.1
    max_rounds: int = 50  # rounds in which rows leave their groups; fewer than 10 are usual
    # Quantile q of the changes of the scores: the first shares fall from 1 to 0 between the margins 1 - q and 1 + q. A
    # larger one starts with more rows between their bounds.
    start_quantile: float = 0.9
    # Factor of the first sigma for a start from a round before, which is nearer to the optimum.
    restart_sigma: float = 100.0
    # The proximal-point method is tried from `proximal_rows` d^2 rows on: with fewer rows its Newton systems are as
    # large as those of interior points, and more numerous.
    proximal_rows: float = 0.25
    # Gap up to which the proximal-point method counts as converged; above it interior points follow.
    proximal_gap: float = 1e-10
    # Where no point of all rows has a relative gap below this, the start that the samples predict is yielded as well.
    max_useful_gap: float = 1.0


SETTINGS = Settings()

DecisionFunction = tuple[np.ndarray, float]  # (w, b)
Solver = Callable[["Rows", "Start | None", float], Iterator[Reached]]


def sifted_points(
    problem: Problem,
    X: Any,
    y: np.ndarray,
    weights: np.ndarray,
    interrupted: Callable[[], bool] = lambda: False,
    solver: Solver | None = None,
    tol: float = 0.0,
    settings: Settings = SETTINGS,
) -> Iterator[Reached]:
    """Yield points (w, b, alpha) of a soft margin that converge to the optimum, for the norms of the solver.

    Parameters
    ----------
    problem : Problem
        Samples are solved first under the hinge loss; any other loss is solved on all rows at once.
    X : ndarray or CSR matrix of shape (n, d), or CentredRows of it
    y : ndarray of shape (n,), entries -1.0 and 1.0
    weights : ndarray of shape (n,), positive
        Sample weights.
    interrupted : callable
        Returns whether to stop. Called before every step; no point is yielded before the last sample is solved.
    solver : callable, default=None
        Solves each sample and each restricted problem. None: `by_interior_points`.
    tol : float, default=0
        Gap at which the caller stops: the first point within it is yielded at once.
    settings : Settings
    """
    solver = by_interior_points if solver is None else solver
    centred = X if isinstance(X, CentredRows) else None
    X = X if centred is None else centred.X
    rows = Rows(problem, X, y, weights, interrupted, centred, settings)
    size = max(settings.min_sample_rows, settings.sample_rows_per_column * X.shape[1])
    few_samples = settings.sample_growth * size >= settings.max_share * y.size  # fewer than two
    if problem.loss != "hinge" or X.size <= settings.few_entries or few_samples:
        yield from solver(rows, None, tol)
        return
    solutions: list[DecisionFunction] = []
    for sampled in _samples(y, size, settings):
        solutions = [*solutions[-1:], _solve_sample(rows.sample(sampled), solutions, solver)]
    if interrupted() and not solutions[-1][0].any():
        return
    groups, start = rows.grouped(solutions)
    least_gap = np.inf
    if not interrupted():
        for point in _solve_grouped(rows, groups, start, solver, tol):
            least_gap = min(point.gap, least_gap)
            yield point
    # the deadline came before the first step on all rows
    if start is not None and not least_gap < settings.max_useful_gap:
        yield Reached(start.w, start.b, start.shares * rows.caps, np.inf, False)


def by_interior_points(rows: Rows, start: Start | None, tol: float = 0.0) -> Iterator[Reached]:
    """Yield points of the interior-point method; `start` is ignored, as the method starts from its own point.

    Wide rows are replaced by their coordinates in an orthonormal basis of their span, in which w lies, so that a step
    costs n^3 in place of n d^2, and no matrix of d x d is made.
    """
    if not is_wide(*rows.X.shape):
        yield from interior_points(rows.problem, rows.X, rows.y, rows.weights, rows.interrupted, tol)
        return
    basis = SpanBasis(np.asarray(_dense(rows.X), dtype=float))
    for point in interior_points(
        rows.problem, basis.coefficients, rows.y, rows.weights, rows.interrupted, tol
    ):
        yield point._replace(w=basis.expand(point.w))


def by_proximal_points(rows: Rows, start: Start | None, tol: float = 0.0) -> Iterator[Reached]:
    """Yield points of the proximal-point method; then of interior points, if it has not converged.

    It has converged where its least gap is at most `settings.proximal_gap`. With fewer rows than
    `settings.proximal_rows` d^2 there are interior points only.
    """
    least_gap = np.inf
    if rows.y.size >= rows.settings.proximal_rows * rows.X.shape[1] ** 2:
        X = rows.X if rows.centred is None else rows.centred
        for point in proximal_points(rows.problem, X, rows.y, rows.weights, rows.interrupted, tol, start):
            least_gap = min(point.gap, least_gap)
            yield point
    if least_gap > rows.settings.proximal_gap and not rows.interrupted():
        yield from by_interior_points(rows, None, tol)


def _samples(y: np.ndarray, size: int, settings: Settings = SETTINGS) -> Iterator[np.ndarray]:
    """Yield the sorted indices of growing samples, each contained in the next; the seed is the same in every fit.

    The first sample has about `size` rows. Classes have their shares of all rows, or `settings.min_class_share`.
    """
    rng = np.random.default_rng(0)
    classes = [rng.permutation(np.flatnonzero(y == sign)) for sign in (-1.0, 1.0)]
    while size < settings.max_share * y.size:
        counts = (max(size * len(rows) // y.size, int(settings.min_class_share * size)) for rows in classes)
        yield np.sort(np.concatenate([rows[:count] for rows, count in zip(classes, counts, strict=True)]))
        size *= settings.sample_growth


def _solve_sample(rows: Rows, solutions: list[DecisionFunction], solver: Solver) -> DecisionFunction:
    """Return (w, b) of the solution on a sample, started from the solutions on the last two samples.

    Its gap is at most `settings.sample_gap`, unless the solver ends before; (w, b) = 0 without any point.
    """
    solution: DecisionFunction = np.zeros(rows.X.shape[1]), 0.0
    for point in _solve_grouped(rows, *rows.grouped(solutions), solver, rows.settings.sample_gap):
        solution = point.w, point.b
        if point.near:
            break
    return solution


def _solve_grouped(
    rows: Rows, groups: np.ndarray, start: Start | None, solver: Solver, tol: float = 0.0
) -> Iterator[Reached]:
    """Yield points of the whole problem and their gaps; after each round some rows leave their groups.

    The gap of the whole problem is that of the restricted one plus the excess of every grouped row: with the share
    s = alpha / cap and the margin m, cap (max(0, 1 - m) - s (1 - m)), which is 0 where the row's own conditions hold.

    Parameters
    ----------
    rows : Rows
    groups : ndarray of int of shape (n,)
        The group of each row; -1 for single rows.
    start : Start or None
    solver : callable
    tol : float
        Gap of the whole problem at which a point is marked as near.
    """
    settings = rows.settings
    sigma = 0.0 if start is None else settings.restart_sigma * start.sigma
    for _ in range(settings.max_rounds):
        merged, merged_row = rows.merged(groups)
        excess = np.zeros(groups.size)  # relative to the objective
        for point in solver(merged, None if start is None else merged.averaged(start, merged_row), tol):
            shares = (point.alpha / merged.caps)[merged_row]
            slack = 1.0 - rows.margins(point.w, point.b)
            objective = rows.objective(point.w, point.b, 1.0 - slack)
            excess = np.where(groups >= 0, rows.caps * (np.maximum(slack, 0.0) - shares * slack), 0.0)
            excess /= objective
            gap = point.gap + float(excess.sum())
            yield Reached(point.w, point.b, shares * rows.caps, gap, tol > 0.0 and gap <= tol)
            if start is not None:  # the next round starts from this point
                start = Start(point.w, point.b, shares, sigma)
            if point.gap < settings.excess_share * float(excess.sum()):
                break
        if not float(excess.sum()) > ROUNDING or rows.interrupted():
            return
        groups = np.where(excess > settings.excess_share * excess.mean(), -1, groups)


@dataclass(frozen=True)
class Rows:
    """Rows of a hinge problem with their labels, sample weights, stop check and the settings of sifting.

    Attributes
    ----------
    X : ndarray or CSR matrix of shape (n, d)
    y, weights : ndarray of shape (n,)
    interrupted : callable
        Returns whether to stop.
    centred : CentredRows, default=None
        The same rows centred, where the caller has them.
    settings : Settings
    """

    problem: Problem
    X: Any
    y: np.ndarray
    weights: np.ndarray
    interrupted: Callable[[], bool] = lambda: False
    centred: CentredRows | None = None
    settings: Settings = SETTINGS

    @cached_property
    def caps(self) -> np.ndarray:
        """The upper bounds of the dual variables, of shape (n,)."""
        return self.problem.caps(self.weights)

    def margins(self, w: np.ndarray, b: float) -> np.ndarray:
        """Return y_i (w.x_i + b) of every row."""
        return self.y * Plain.scores(self.X, w, b)

    def objective(self, w: np.ndarray, b: float, margins: np.ndarray) -> float:
        """Return the primal objective of (w, b) with these margins, of shape (n,)."""
        penalty = self.problem.penalty(norm(self.problem.weights(w, b), self.problem.q))
        return self.problem.primal(penalty, margins, self.weights)

    def sample(self, sampled: np.ndarray) -> Rows:
        """Return the rows of these indices; weights are divided by the fraction of the class that is in the sample."""
        y, weights = self.y[sampled], self.weights[sampled]
        for sign in (-1.0, 1.0):
            fraction = np.count_nonzero(y == sign) / np.count_nonzero(self.y == sign)
            weights = np.where(y == sign, weights / fraction, weights)
        return replace(self, X=self.X[sampled], y=y, weights=weights, centred=None)

    def grouped(self, solutions: list[DecisionFunction]) -> tuple[np.ndarray, Start | None]:
        """Return the group of each row and a start, both predicted from the solutions on the last two samples.

        The change of a row is the absolute difference of its two margins. With the margin m of the last solution, the
        group is -1 (single) where |m - 1| is at most `single_changes` times the `single_quantile` of the changes. All
        rows are single where more than the fraction `max_share` would be. The share of the start is clip(1/2 + sigma (1
        - m), 0, 1), with sigma = 1 / (2 `start_quantile` of the changes).

        Parameters
        ----------
        solutions : list of (ndarray of shape (d,), float)
            At most two. With fewer, all rows are single, and there is no start.

        Returns
        -------
        groups : ndarray of int of shape (n,)
        start : Start or None
        """
        settings, ungrouped = self.settings, np.full(self.y.size, -1)
        if len(solutions) < 2:
            return ungrouped, None
        before, margins = (self.margins(*solution) for solution in solutions)
        quantiles = settings.start_quantile, settings.single_quantile
        typical, largest = np.quantile(np.abs(margins - before), quantiles)
        if not typical > 0.0:
            return ungrouped, None
        sigma, distance = 0.5 / float(typical), np.abs(margins - 1.0)
        start = Start(*solutions[-1], np.clip(0.5 + sigma * (1.0 - margins), 0.0, 1.0), sigma)
        radius = settings.single_changes * float(largest)  # of the single rows
        if np.count_nonzero(distance <= radius) > settings.max_share * distance.size:
            return ungrouped, start
        # stratum k holds distances from 2^k to 2^(k + 1) times the radius; four sets of strata, by side and class
        stratum = np.minimum(np.log2(np.maximum(distance / radius, 1.0)), settings.strata - 1.0).astype(int)
        groups = stratum + settings.strata * ((margins < 1.0) + 2 * (self.y > 0.0))
        return np.where(distance <= radius, -1, groups), start

    def averaged(self, start: Start, merged_row: np.ndarray) -> Start:
        """Return a start for these merged rows, each with the mean share of its rows.

        Parameters
        ----------
        start : Start
            For the rows before the merger.
        merged_row : ndarray of int
            The index of the merged row to which each of them belongs.
        """
        return start._replace(shares=np.bincount(merged_row, start.shares) / np.bincount(merged_row))

    def merged(self, groups: np.ndarray) -> tuple[Rows, np.ndarray]:
        """Return the single rows followed by the weighted mean of each group.

        Parameters
        ----------
        groups : ndarray of int of shape (n,)
            -1 for single rows.

        Returns
        -------
        merged : Rows
            The weight of a mean is the sum of the weights of its group.
        merged_row : ndarray of int of shape (n,)
            The index of the merged row to which each row belongs.
        """
        is_single, n = groups < 0, groups.size
        if is_single.all():
            return self, np.arange(n)
        single = np.flatnonzero(is_single)
        # the number of the group of each grouped row, without empty groups: counting is faster than sorting the numbers
        filled = np.bincount(groups[~is_single]) > 0
        members = (np.cumsum(filled) - 1)[groups[~is_single]]
        columns, weights = np.zeros(n, int), np.where(is_single, 0.0, self.weights)
        columns[~is_single] = members
        total = np.bincount(columns, weights=weights)
        classes = np.empty(total.size)
        classes[members] = self.y[~is_single]  # all rows of a group are of one class
        # row i of `membership` has its weight in the column of its group; (membership)' X are the sums of the groups
        membership = sp.csr_array((weights, columns, np.arange(n + 1)), shape=(n, total.size))
        means = sum(_dense(membership[rows].T @ block) for rows, block in row_blocks(self.X)) / total[:, None]
        kept = self.X[single]
        X = sp.vstack([kept, sp.csr_array(means)]).tocsr() if sp.issparse(kept) else np.vstack([kept, means])
        y = np.append(self.y[single], classes)
        merged_row = np.empty(n, int)
        merged_row[single], merged_row[~is_single] = np.arange(single.size), single.size + members
        weights = np.append(self.weights[single], total)
        return replace(self, X=X, y=y, weights=weights, centred=None), merged_row


def _dense(matrix: Any) -> np.ndarray:
    """Return a dense or sparse matrix as an ndarray."""
    return matrix.toarray() if sp.issparse(matrix) else matrix
