"""Sifting: hinge problems of many rows, by a batch solver on the rows near the margin and on means of the others.

A row well above its margin has dual variable 0, a row well below has its cap. Solutions on growing samples of the rows
tell which these are: the last two differ by about as much as the last one differs from the solution on all rows. Rows
that are in no doubt form groups by class and margin. The dual variables of a group are one number, a share of their
caps, so that the mean of its rows stands for it: the problem is a restriction of the dual, and its dual variables are
feasible for all rows. Rows for which the common share is wrong leave their groups, until it is wrong for none.

References
----------
E. Osuna, R. Freund, F. Girosi, "An improved training algorithm for support vector machines", NNSP 1997 (rows that
join); L. Bottou, O. Bousquet, "The tradeoffs of large scale learning", NIPS 2007 (what a sample is worth).
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

# Rows of the first sample, at least and for each column: fewer leave the scores of other rows too uncertain. And the
# growth from sample to sample, of which the last one costs most.
ROWS, ROWS_A_COLUMN, GROWTH = 500, 20, 4
# Share of the rows whose solution costs about as much as that of all; and entries of X up to which all rows are solved
# at once, as samples save nothing.
MAX_SHARE, FEW_ENTRIES = 0.3, 320_000
MIN_CLASS = (
    0.25  # share of each class in a sample, if there are so many rows of it: a rare class must not get lost
)
# A row is in doubt within this many changes of the scores from the margin; the change is a quantile of all changes.
DOUBT, DOUBT_QUANTILE = 0.6, 0.99
STRATA = 12  # groups on each side of the margin, each twice as far from it as the one before: 2^12 changes of scores
SAMPLE_GAP = (
    1e-3  # gap of the solution on a sample: sampling errors are larger than what further steps change
)
# Share of the lost gap, or of its mean, below which a row's part is left for a later round; and the part of the
# objective that is rounding.
SMALL, ROUNDING = 0.1, 1e-14
MAX_ROUNDS = 50  # in which rows leave their groups; fewer than 10 are usual
TYPICAL = 0.9  # quantile of the changes of the scores that the first shares go by
SURER = 100.0  # factor of the first sigma once rows have left their groups: the start is nearer to the optimum then
# Rows, in squares of the columns, from which the proximal-point method is tried: of fewer rows its Newton systems are
# as large as those of interior points, and more numerous (docs/choice.md).
PROXIMAL = 0.25
CONVERGED = 1e-10  # a gap at which proximal points have not ended too early
WORTHLESS = 1.0  # a relative gap at which the point that the samples suggest may be better

Plane = tuple[np.ndarray, float]  # w and b
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
    """Yield points (w, b, alpha) of a soft margin at p = 2, nearer and nearer to the optimum.

    Parameters
    ----------
    problem : Problem
    X : ndarray or CSR matrix of shape (n, d), or CentredRows of it
    y : ndarray of shape (n,), entries -1.0 and 1.0
    weights : ndarray of shape (n,), positive
        Sample weights.
    interrupted : callable
        Returns whether to stop. Asked before every step; before a sample is solved there is no point.
    solver : callable, default=None
        Solves for the rows that are left. None: `by_interior_points`.
    tol : float, default=0
        A gap that is asked for: the first point within it is yielded at once.
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
    for places in _samples(y, size):
        planes = [*planes[-1:], _solve_sample(rows.sample(places), planes, solver)]
    if interrupted() and not planes[-1][0].any():
        return
    groups, start = rows.grouped(planes)
    least = np.inf
    if not interrupted():
        for point in _solve_grouped(rows, groups, start, solver, tol):
            least = min(point.gap, least)
            yield point
    if start is not None and not least < WORTHLESS:  # time ended before the first step with all rows
        yield Reached(start.w, start.b, start.shares * rows.caps, np.inf, False)


def by_interior_points(rows: Rows, start: Start | None, tol: float = 0.0) -> Iterator[Reached]:
    """Yield points by the interior-point method, which takes no start.

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
    """Yield points by the proximal-point method where rows are many; where it ends too early, by interior points."""
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
    """Yield the rows of growing samples, each within the next, the same in every fit."""
    rng = np.random.default_rng(0)
    classes = [rng.permutation(np.flatnonzero(y == sign)) for sign in (-1.0, 1.0)]
    while size < MAX_SHARE * y.size:
        counts = (max(size * len(rows) // y.size, int(MIN_CLASS * size)) for rows in classes)
        yield np.sort(np.concatenate([rows[:count] for rows, count in zip(classes, counts, strict=True)]))
        size *= GROWTH


def _solve_sample(rows: Rows, planes: list[Plane], solver: Solver) -> Plane:
    """Return w and b of a rough solution on a sample, which begins with those of the samples before."""
    plane: Plane = np.zeros(rows.X.shape[1]), 0.0
    for point in _solve_grouped(rows, *rows.grouped(planes), solver, SAMPLE_GAP):
        plane = point.w, point.b
        if point.gap <= SAMPLE_GAP:
            break
    return plane


def _solve_grouped(
    rows: Rows, groups: np.ndarray, start: Start | None, solver: Solver, tol: float = 0.0
) -> Iterator[Reached]:
    """Yield points of the whole problem and their gaps, while rows leave groups whose share is wrong for them.

    A row with share s = alpha / cap and slack 1 - m adds cap (max(0, 1 - m) - s (1 - m)) to the gap of the whole
    problem, beside the gap of the restricted one.

    Parameters
    ----------
    rows : Rows
    groups : ndarray of int of shape (n,)
        The group of each row; -1 for rows of their own.
    start : Start or None
    solver : callable
    tol : float
    """
    sigma = 0.0 if start is None else SURER * start.sigma
    for _ in range(MAX_ROUNDS):
        merged, places = rows.merged(groups)
        lost = np.zeros(groups.size)
        for point in solver(merged, None if start is None else merged.averaged(start, places), tol):
            shares = (point.alpha / merged.caps)[places]
            slack = 1.0 - rows.margins(point.w, point.b)
            objective = rows.objective(point.w, point.b, 1.0 - slack)
            lost = (
                np.where(groups >= 0, rows.caps * (np.maximum(slack, 0.0) - shares * slack), 0.0) / objective
            )
            gap = point.gap + float(lost.sum())
            yield Reached(point.w, point.b, shares * rows.caps, gap, tol > 0.0 and gap <= tol)
            if start is not None:
                start = Start(point.w, point.b, shares, sigma)
            if point.gap < SMALL * float(lost.sum()):
                break
        if not float(lost.sum()) > ROUNDING or rows.interrupted():
            return
        groups = np.where(lost > SMALL * lost.mean(), -1, groups)


@dataclass(frozen=True)
class Rows:
    """Rows of a hinge problem, labels and sample weights, and the check whether to stop.

    Attributes
    ----------
    blocks : CentredRows, default=None
        The same rows centred, where they are known.
    """

    problem: Problem
    X: Any
    y: np.ndarray
    weights: np.ndarray
    interrupted: Callable[[], bool] = lambda: False
    blocks: CentredRows | None = None

    @cached_property
    def caps(self) -> np.ndarray:
        """The largest dual variables."""
        return self.problem.caps(self.weights)

    def margins(self, w: np.ndarray, b: float) -> np.ndarray:
        """Return y_i (w.x_i + b) of every row."""
        return self.y * Plain.scores(self.X, w, b)

    def objective(self, w: np.ndarray, b: float, margins: np.ndarray) -> float:
        """Return the primal objective."""
        return self.problem.primal(0.5 * self.problem.norm2(float(w @ w), b), margins, self.weights)

    def sample(self, places: np.ndarray) -> Rows:
        """Return some of the rows, weighted so that those of each class stand for all of it."""
        y, weights = self.y[places], self.weights[places]
        for sign in (-1.0, 1.0):
            share = np.count_nonzero(y == sign) / np.count_nonzero(self.y == sign)
            weights = np.where(y == sign, weights / share, weights)
        return replace(self, X=self.X[places], y=y, weights=weights, blocks=None)

    def grouped(self, planes: list[Plane]) -> tuple[np.ndarray, Start | None]:
        """Return the group of each row and a start, as the solutions on two samples suggest.

        The group is -1 where the last solution does not tell on which side of the margin a row is. By how much the
        margins of the two differ tells how surely a margin determines a share.
        """
        alone = np.full(self.y.size, -1)
        if len(planes) < 2:
            return alone, None
        before, margins = (self.margins(*plane) for plane in planes)
        typical, most = np.quantile(np.abs(margins - before), [TYPICAL, DOUBT_QUANTILE])
        if not typical > 0.0:
            return alone, None
        sigma, doubt, distance = 0.5 / float(typical), DOUBT * float(most), np.abs(margins - 1.0)
        start = Start(*planes[-1], np.clip(0.5 + sigma * (1.0 - margins), 0.0, 1.0), sigma)
        if np.count_nonzero(distance <= doubt) > MAX_SHARE * distance.size:
            return alone, start
        stratum = np.minimum(np.log2(np.maximum(distance / doubt, 1.0)), STRATA - 1.0).astype(int)
        groups = stratum + STRATA * ((margins < 1.0) + 2 * (self.y > 0.0))
        return np.where(distance <= doubt, -1, groups), start

    def averaged(self, start: Start, places: np.ndarray) -> Start:
        """Return the start for these merged rows; `places` are the merged rows of the original ones."""
        count = np.bincount(places, minlength=self.y.size)
        return start._replace(shares=np.bincount(places, weights=start.shares, minlength=self.y.size) / count)

    def merged(self, groups: np.ndarray) -> tuple[Rows, np.ndarray]:
        """Return the rows of no group and the weighted means of the groups, and the place of each row among them."""
        alone, n = groups < 0, groups.size
        if alone.all():
            return self, np.arange(n)
        single = np.flatnonzero(alone)
        first, members = np.unique(groups[~alone], return_index=True, return_inverse=True)[1:]
        columns, weights = np.zeros(n, int), np.where(alone, 0.0, self.weights)
        columns[~alone] = members
        parts = sp.csr_array((weights, columns, np.arange(n + 1)), shape=(n, first.size))
        total = np.bincount(columns, weights=weights)
        means = sum(_dense(parts[block].T @ some) for block, some in row_blocks(self.X)) / total[:, None]
        some = self.X[single]
        X = sp.vstack([some, sp.csr_array(means)]).tocsr() if sp.issparse(some) else np.vstack([some, means])
        y = np.append(self.y[single], self.y[~alone][first])
        places = np.empty(n, int)
        places[single], places[~alone] = np.arange(single.size), single.size + members
        weights = np.append(self.weights[single], total)
        return replace(self, X=X, y=y, weights=weights, blocks=None), places


def _dense(some: Any) -> np.ndarray:
    """Return a matrix as an array."""
    return some.toarray() if sp.issparse(some) else some
