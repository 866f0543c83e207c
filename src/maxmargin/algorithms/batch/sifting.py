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

from ...numerics.sums import Plain, row_blocks
from ...problem.problem import Problem
from .centred_rows import CentredRows
from .interior_point import interior_points
from .iterate import Reached
from .proximal_point import Start, proximal_points
from .quadratic_program import OutOfTime, SpanBasis, is_wide

# The numbers below without another source are chosen on the data sets of docs/regimes.md.
#
# Rows of the first sample: at least ROWS, and ROWS_A_COLUMN for each column. Smaller samples are solved faster, and
# predict the scores of the other rows less well. Each sample has GROWTH times as many rows as the one before: a small
# factor solves more samples, a large one starts each of them farther from its optimum.
ROWS, ROWS_A_COLUMN, GROWTH = 500, 20, 4
# Fraction of the rows above which a sample costs about as much as all rows; and number of entries of X up to which all
# rows are solved at once, since samples save no time.
MAX_SHARE, FEW_ENTRIES = 0.3, 320_000
# Fraction of a sample that each class has at least, if it has so many rows: a rare class is not left out by chance.
MIN_CLASS = 0.25
# A row stays single where its margin is within DOUBT changes of 1; the change is the DOUBT_QUANTILE of the changes of
# all scores between the last two samples. Larger numbers keep more single rows, and need fewer rounds.
DOUBT, DOUBT_QUANTILE = 0.6, 0.99
STRATA = 12  # groups on each side of the margin, each twice as far from it as the one before: 2^12 changes of scores
SAMPLE_GAP = 1e-3  # gap at which a sample counts as solved: below it the sampling error exceeds the change of each step
# A round ends when the gap of the restricted problem is below SMALL times the excess of the groups (`_solve_grouped`);
# then the rows leave their groups whose excess is above SMALL times the mean one. An excess up to ROUNDING times the
# objective is rounding.
SMALL, ROUNDING = 0.1, 1e-14
MAX_ROUNDS = 50  # rounds in which rows leave their groups, at most; fewer than 10 are usual
# Quantile q of the changes of the scores: the first shares fall from 1 to 0 between the margins 1 - q and 1 + q.
TYPICAL = 0.9
SURER = 100.0  # factor of the first sigma for a start from a round before, which is nearer to the optimum
# The proximal-point method is tried from PROXIMAL d^2 rows on: with fewer rows its Newton systems are as large as those
# of interior points, and more numerous (docs/choice.md).
PROXIMAL = 0.25
# Gap up to which the proximal-point method counts as converged; above it interior points follow.
CONVERGED = 1e-10
# Where no point of all rows has a relative gap below this, the start that the samples predict is yielded as well.
WORTHLESS = 1.0

Plane = tuple[np.ndarray, float]  # (w, b) of a decision function
Solver = Callable[["Rows", "Start | None", float], Iterator[Reached]]


def sifted_points(
    problem: Problem,
    X: Any,
    y: np.ndarray,
    weights: np.ndarray,
    interrupted: Callable[[], bool] = lambda: False,
    solver: Solver | None = None,
    tol: float = 0.0,
) -> Iterator[Reached]:
    """Yield points (w, b, alpha) of a soft margin at p = 2 that converge to the optimum.

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
    """
    solver = by_interior_points if solver is None else solver
    blocks = X if isinstance(X, CentredRows) else None
    X = X if blocks is None else blocks.X
    rows = Rows(problem, X, y, weights, interrupted, blocks)
    size = max(ROWS, ROWS_A_COLUMN * X.shape[1])
    if problem.loss != "hinge" or X.size <= FEW_ENTRIES or GROWTH * size >= MAX_SHARE * y.size:
        yield from solver(rows, None, tol)  # two samples would cost more than they save
        return
    planes: list[Plane] = []
    for sampled in _samples(y, size):
        planes = [*planes[-1:], _solve_sample(rows.sample(sampled), planes, solver)]
    if interrupted() and not planes[-1][0].any():
        return
    groups, start = rows.grouped(planes)
    least = np.inf
    if not interrupted():
        for point in _solve_grouped(rows, groups, start, solver, tol):
            least = min(point.gap, least)
            yield point
    if start is not None and not least < WORTHLESS:  # the deadline came before the first step on all rows
        yield Reached(start.w, start.b, start.shares * rows.caps, np.inf, False)


def by_interior_points(rows: Rows, start: Start | None, tol: float = 0.0) -> Iterator[Reached]:
    """Yield points of the interior-point method; `start` is ignored.

    Wide rows are replaced by their coordinates in an orthonormal basis of their span, in which w lies, so that a step
    costs n^3 in place of n d^2, and no matrix of d x d is made.
    """
    if not is_wide(*rows.X.shape):
        yield from interior_points(rows.problem, rows.X, rows.y, rows.weights, rows.interrupted, tol)
        return
    try:
        basis = SpanBasis(np.asarray(_dense(rows.X), dtype=float), rows.interrupted)
    except OutOfTime:
        return
    for point in interior_points(
        rows.problem, basis.coefficients, rows.y, rows.weights, rows.interrupted, tol
    ):
        yield point._replace(w=basis.expand(point.w))


def by_proximal_points(rows: Rows, start: Start | None, tol: float = 0.0) -> Iterator[Reached]:
    """Yield points of the proximal-point method from PROXIMAL d^2 rows on; then of interior points, if not converged.

    Interior points follow where the least gap is above CONVERGED, and where there are fewer rows.
    """
    least = np.inf
    if rows.y.size >= PROXIMAL * rows.X.shape[1] ** 2:
        stored = rows.X if rows.blocks is None else rows.blocks
        for point in proximal_points(
            rows.problem, stored, rows.y, rows.weights, rows.interrupted, tol, start
        ):
            least = min(point.gap, least)
            yield point
    if least > CONVERGED and not rows.interrupted():
        yield from by_interior_points(rows, None, tol)


def _samples(y: np.ndarray, size: int) -> Iterator[np.ndarray]:
    """Yield the sorted indices of growing samples, each contained in the next; the seed is the same in every fit."""
    rng = np.random.default_rng(0)
    classes = [rng.permutation(np.flatnonzero(y == sign)) for sign in (-1.0, 1.0)]
    while size < MAX_SHARE * y.size:
        counts = (max(size * len(rows) // y.size, int(MIN_CLASS * size)) for rows in classes)
        yield np.sort(np.concatenate([rows[:count] for rows, count in zip(classes, counts, strict=True)]))
        size *= GROWTH


def _solve_sample(rows: Rows, planes: list[Plane], solver: Solver) -> Plane:
    """Return (w, b) of the solution on a sample up to SAMPLE_GAP, started from the solutions on the last samples."""
    plane: Plane = np.zeros(rows.X.shape[1]), 0.0
    for point in _solve_grouped(rows, *rows.grouped(planes), solver, SAMPLE_GAP):
        plane = point.w, point.b
        if point.gap <= SAMPLE_GAP:
            break
    return plane


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
    sigma = 0.0 if start is None else SURER * start.sigma
    for _ in range(MAX_ROUNDS):
        merged, places = rows.merged(groups)
        excess = np.zeros(groups.size)  # relative to the objective
        for point in solver(merged, None if start is None else merged.averaged(start, places), tol):
            shares = (point.alpha / merged.caps)[places]
            slack = 1.0 - rows.margins(point.w, point.b)
            objective = rows.objective(point.w, point.b, 1.0 - slack)
            excess = (
                np.where(groups >= 0, rows.caps * (np.maximum(slack, 0.0) - shares * slack), 0.0) / objective
            )
            gap = point.gap + float(excess.sum())
            yield Reached(point.w, point.b, shares * rows.caps, gap, tol > 0.0 and gap <= tol)
            if start is not None:
                start = Start(point.w, point.b, shares, sigma)
            if point.gap < SMALL * float(excess.sum()):
                break
        if not float(excess.sum()) > ROUNDING or rows.interrupted():
            return
        groups = np.where(excess > SMALL * excess.mean(), -1, groups)


@dataclass(frozen=True)
class Rows:
    """Rows of a hinge problem with their labels, sample weights and stop check.

    Attributes
    ----------
    X : ndarray or CSR matrix of shape (n, d)
    y, weights : ndarray of shape (n,)
    blocks : CentredRows, default=None
        The same rows centred, where the caller has made them.
    """

    problem: Problem
    X: Any
    y: np.ndarray
    weights: np.ndarray
    interrupted: Callable[[], bool] = lambda: False
    blocks: CentredRows | None = None

    @cached_property
    def caps(self) -> np.ndarray:
        """The upper bounds of the dual variables, of shape (n,)."""
        return self.problem.caps(self.weights)

    def margins(self, w: np.ndarray, b: float) -> np.ndarray:
        """Return y_i (w.x_i + b) of every row."""
        return self.y * Plain.scores(self.X, w, b)

    def objective(self, w: np.ndarray, b: float, margins: np.ndarray) -> float:
        """Return the primal objective of (w, b) with these margins, of shape (n,)."""
        return self.problem.primal(0.5 * self.problem.norm2(float(w @ w), b), margins, self.weights)

    def sample(self, sampled: np.ndarray) -> Rows:
        """Return the rows of these indices; weights are divided by the fraction of the class that is in the sample."""
        y, weights = self.y[sampled], self.weights[sampled]
        for sign in (-1.0, 1.0):
            fraction = np.count_nonzero(y == sign) / np.count_nonzero(self.y == sign)
            weights = np.where(y == sign, weights / fraction, weights)
        return replace(self, X=self.X[sampled], y=y, weights=weights, blocks=None)

    def grouped(self, planes: list[Plane]) -> tuple[np.ndarray, Start | None]:
        """Return the group of each row and a start, both predicted from the solutions on the last two samples.

        The change is the difference of a row's two margins. The group is -1 (single) where the margin m is within
        DOUBT times the DOUBT_QUANTILE of the changes of 1. The share of the start is clip(1/2 + sigma (1 - m), 0, 1),
        sigma being half of the inverse of the TYPICAL quantile of the changes.
        """
        ungrouped = np.full(self.y.size, -1)
        if len(planes) < 2:
            return ungrouped, None
        before, margins = (self.margins(*plane) for plane in planes)
        typical, most = np.quantile(np.abs(margins - before), [TYPICAL, DOUBT_QUANTILE])
        if not typical > 0.0:
            return ungrouped, None
        sigma, doubt, distance = 0.5 / float(typical), DOUBT * float(most), np.abs(margins - 1.0)
        start = Start(*planes[-1], np.clip(0.5 + sigma * (1.0 - margins), 0.0, 1.0), sigma)
        if np.count_nonzero(distance <= doubt) > MAX_SHARE * distance.size:
            return ungrouped, start
        # stratum k holds distances from 2^k to 2^(k + 1) times the doubt; four sets of strata, by margin and class
        stratum = np.minimum(np.log2(np.maximum(distance / doubt, 1.0)), STRATA - 1.0).astype(int)
        groups = stratum + STRATA * ((margins < 1.0) + 2 * (self.y > 0.0))
        return np.where(distance <= doubt, -1, groups), start

    def averaged(self, start: Start, places: np.ndarray) -> Start:
        """Return the start with the mean share of each merged row; `places` gives the merged row of each row."""
        count = np.bincount(places, minlength=self.y.size)
        return start._replace(shares=np.bincount(places, weights=start.shares, minlength=self.y.size) / count)

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
        places : ndarray of int of shape (n,)
            The index of the merged row to which each row belongs.
        """
        is_single, n = groups < 0, groups.size
        if is_single.all():
            return self, np.arange(n)
        single = np.flatnonzero(is_single)
        first, members = np.unique(groups[~is_single], return_index=True, return_inverse=True)[1:]
        columns, weights = np.zeros(n, int), np.where(is_single, 0.0, self.weights)
        columns[~is_single] = members
        # row i has its weight in the column of its group, so that parts' X are the weighted sums of the groups
        parts = sp.csr_array((weights, columns, np.arange(n + 1)), shape=(n, first.size))
        total = np.bincount(columns, weights=weights)
        means = sum(_dense(parts[rows].T @ block) for rows, block in row_blocks(self.X)) / total[:, None]
        kept = self.X[single]
        X = sp.vstack([kept, sp.csr_array(means)]).tocsr() if sp.issparse(kept) else np.vstack([kept, means])
        y = np.append(self.y[single], self.y[~is_single][first])
        places = np.empty(n, int)
        places[single], places[~is_single] = np.arange(single.size), single.size + members
        weights = np.append(self.weights[single], total)
        return replace(self, X=X, y=y, weights=weights, blocks=None), places


def _dense(matrix: Any) -> np.ndarray:
    """Return a dense or sparse matrix as an ndarray."""
    return matrix.toarray() if sp.issparse(matrix) else matrix
