"""Hinge problems of many rows, by a batch method on the rows near the margin.

A row well inside its margin has dual weight 0, a row well beyond has its cap. Which are which, solutions on samples of
the rows tell: these come nearer to that of all rows as the samples grow, and by how much the last two differ says how
near. Rows that are in no doubt are grouped by class and margin. The dual weights of a group are one number, a share of
their caps, so that its mean stands for it: the problem is a restriction of the dual, and its answers are dual weights
of all rows. Those for which a share was wrong leave their groups, until it was wrong for none.

References
----------
E. Osuna, R. Freund, F. Girosi, "An improved training algorithm for support vector machines", NNSP 1997 (rows that
join); L. Bottou, O. Bousquet, "The tradeoffs of large scale learning", NIPS 2007 (what a sample is worth).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import scipy.sparse as sp

from ...numerics.sums import Plain, row_blocks
from ...problem.problem import Problem
from .centred_rows import CentredRows
from .interior_point import interior_points
from .iterate import Point, Reached
from .proximal_point import Start, proximal_points
from .quadratic_program import OutOfTime, _Basis, is_wide

ROWS, EACH = 500, 20  # of the first sample: at least, and for each column
GROWTH = 4  # of the samples
MANY, FEW = 0.3, 320_000  # share of the rows that costs about as much as all, as do so few entries altogether
LEAST = 0.25  # of a sample is of each class, if there are so many
DOUBT, OF = 0.6, 0.99  # the distance from the margin within which a row is in doubt, in changes of the scores
STRATA = 12  # of groups, each twice as far from the margin as the one before
CLOSE = 1e-3  # gap of the solution on a sample
SMALL = 0.1  # a part that does not count yet
NOTHING = 1e-14  # and one that never does
TURNS = 50  # in which rows leave their groups
TYPICAL = 0.9  # quantile of the changes of the scores that the first shares go by
SURER = 100.0  # times the first sigma, once rows have left their groups
PROXIMAL = 0.25  # times the square of the columns: rows from which on the proximal-point method is tried
ENOUGH = 1e-10  # a gap from which nobody else starts anew
FAR = 1.0  # and one that says nothing

Line = tuple[np.ndarray, float]
Solver = Callable[["Rows", "Start | None", Callable[[], bool], float], Iterator[tuple[float, Point]]]


def narrowed_points(
    problem: Problem,
    X: Any,
    y: np.ndarray,
    weights: np.ndarray,
    interrupted: Callable[[], bool] = lambda: False,
    solver: Solver | None = None,
    tol: float = 0.0,
) -> Iterator[Reached]:
    """Points (w, b, alpha) of a soft margin at p = 2, nearer and nearer to the optimum.

    Parameters
    ----------
    problem : Problem
    X : ndarray or CSR matrix of shape (n, d), or CentredRows of it
    y : ndarray of shape (n,), entries -1.0 and 1.0
    weights : ndarray of shape (n,), positive
        Sample weights.
    interrupted : callable
        Is it time to stop? Asked before every step; where it is before a sample is solved, there is no point.
    solver : callable, default=None
        What solves for the rows that are left. None: `by_interior_points`.
    tol : float, default=0
        The gap that is asked for: points are shown whenever the gap has fallen far enough, and as soon as it is that.
    """
    solver = by_interior_points if solver is None else solver
    blocks = X if isinstance(X, CentredRows) else None
    X = X if blocks is None else blocks.X
    rows = Rows(problem, X, y, weights, blocks)
    size = max(ROWS, EACH * X.shape[1])
    # no two samples to tell from, or none that would pay
    if problem.loss != "hinge" or X.size <= FEW or GROWTH * size >= MANY * y.size:
        yield from _told(solver(rows, None, interrupted, tol), tol)
        return
    lines: list[Line] = []
    for places in _samples(y, size):
        lines = [*lines[-1:], _line(rows.sample(places), lines, interrupted, solver)]
    if interrupted() and not lines[-1][0].any():
        return
    groups, start = rows.told(lines)
    least = np.inf
    if not interrupted():
        for point in _told(_leaving(rows, groups, start, interrupted, solver, tol), tol):
            least = min(point.gap, least)
            yield point
    if start is not None and not least < FAR:  # there was no time for more than what samples tell
        yield Reached(start.w, start.b, start.shares * rows.caps, np.inf, False)


def _told(found: Iterator[tuple[float, Point]], tol: float) -> Iterator[Reached]:
    """Points, with what their gaps say."""
    return (Reached(*point, gap, tol > 0.0 and gap <= tol) for gap, point in found)


def by_interior_points(
    rows: Rows, start: Start | None, interrupted: Callable[[], bool], tol: float = 0.0
) -> Iterator[tuple[float, Point]]:
    """Points and gaps of these rows by the interior-point method, which does not mind where it begins.

    Wide rows are told by their coordinates in an orthonormal basis of their span: w is a combination of the rows, so
    that a step costs n^3 in place of n d^2, and no matrix of d x d is made.
    """
    if not is_wide(*rows.X.shape):
        yield from interior_points(rows.problem, rows.X, rows.y, rows.weights, interrupted, tol)
        return
    try:
        basis = _Basis(np.asarray(_dense(rows.X), dtype=float), interrupted)
    except OutOfTime:
        return
    found = interior_points(rows.problem, basis.coefficients, rows.y, rows.weights, interrupted, tol)
    for gap, (w, b, alpha) in found:
        yield gap, (basis.combine(w), b, alpha)


def by_proximal_points(
    rows: Rows, start: Start | None, interrupted: Callable[[], bool], tol: float = 0.0
) -> Iterator[tuple[float, Point]]:
    """By the proximal-point method, where rows are many; where it ends too early, interior points begin."""
    least = np.inf
    if rows.y.size >= PROXIMAL * rows.X.shape[1] ** 2:
        stored = rows.X if rows.blocks is None else rows.blocks
        for found in proximal_points(rows.problem, stored, rows.y, rows.weights, interrupted, tol, start):
            least = min(found.gap, least)
            yield found.gap, (found.w, found.b, found.alpha)
    if least > ENOUGH and not interrupted():
        yield from by_interior_points(rows, None, interrupted, tol)


def _samples(y: np.ndarray, size: int) -> Iterator[np.ndarray]:
    """Rows of larger and larger samples, each within the next."""
    rng = np.random.default_rng(0)  # any order will do, and always the same
    classes = [rng.permutation(np.flatnonzero(y == sign)) for sign in (-1.0, 1.0)]
    while size < MANY * y.size:
        counts = (max(size * len(rows) // y.size, int(LEAST * size)) for rows in classes)
        yield np.sort(np.concatenate([rows[:count] for rows, count in zip(classes, counts, strict=True)]))
        size *= GROWTH


def _line(rows: Rows, lines: list[Line], interrupted: Callable[[], bool], solver: Solver) -> Line:
    """The solution on a sample, roughly."""
    line: Line = np.zeros(rows.X.shape[1]), 0.0
    for gap, (w, b, _) in _leaving(rows, *rows.told(lines), interrupted, solver, CLOSE):
        line = w, b
        if gap <= CLOSE:
            break
    return line


def _leaving(
    rows: Rows,
    groups: np.ndarray,
    start: Start | None,
    interrupted: Callable[[], bool],
    solver: Solver,
    tol: float = 0.0,
) -> Iterator[tuple[float, Point]]:
    """Points of the whole problem and their gaps, while rows leave groups to which they do not belong."""
    sigma = 0.0 if start is None else SURER * start.sigma
    for _ in range(TURNS):
        few, stands = rows.merged(groups)
        lost = np.zeros(groups.size)
        for gap, (w, b, alpha) in solver(
            few, None if start is None else few.part(start, stands), interrupted, tol
        ):
            shares = (alpha / few.caps)[stands]
            slack = 1.0 - rows.margins((w, b))
            value = rows.value((w, b), 1.0 - slack)
            lost = np.where(groups >= 0, rows.caps * (np.maximum(slack, 0.0) - shares * slack), 0.0) / value
            yield gap + float(lost.sum()), (w, b, shares * rows.caps)
            if start is not None:
                start = Start(w, b, shares, sigma)
            if gap < SMALL * float(lost.sum()):
                break
        if not float(lost.sum()) > NOTHING or interrupted():
            return
        groups = np.where(lost > SMALL * lost.mean(), -1, groups)


@dataclass(frozen=True)
class Rows:
    """Rows of a hinge problem, labels and weights; in blocks, where they are known in these."""

    problem: Problem
    X: Any
    y: np.ndarray
    weights: np.ndarray
    blocks: CentredRows | None = None

    @cached_property
    def caps(self) -> np.ndarray:
        """The largest dual weights."""
        return self.problem.caps(self.weights)

    def margins(self, line: Line) -> np.ndarray:
        """y (w.x + b) of every row."""
        return self.y * Plain.scores(self.X, *line)

    def value(self, line: Line, margins: np.ndarray) -> float:
        """The objective."""
        w, b = line
        return self.problem.primal(0.5 * self.problem.norm2(float(w @ w), b), margins, self.weights)

    def sample(self, places: np.ndarray) -> Rows:
        """Some of the rows, those of each class for all of it."""
        y, weights = self.y[places], self.weights[places]
        for sign in (-1.0, 1.0):
            mine = y == sign
            share = np.count_nonzero(mine) / np.count_nonzero(self.y == sign)
            weights = np.where(mine, weights / share, weights)
        return Rows(self.problem, self.X[places], y, weights)

    def told(self, lines: list[Line]) -> tuple[np.ndarray, Start | None]:
        """What two lines tell of each row, and where to begin.

        The group of each row, -1 where the last line does not tell on which side of the margin it is. How much the
        lines differ by tells how surely a margin tells a share.
        """
        alone = np.full(self.y.size, -1)
        if len(lines) < 2:
            return alone, None
        before, margins = (self.margins(line) for line in lines)
        typical, most = np.quantile(np.abs(margins - before), [TYPICAL, OF])
        if not typical > 0.0:
            return alone, None
        sigma, doubt, apart = 0.5 / float(typical), DOUBT * float(most), np.abs(margins - 1.0)
        start = Start(*lines[-1], np.clip(0.5 + sigma * (1.0 - margins), 0.0, 1.0), sigma)
        if np.count_nonzero(apart <= doubt) > MANY * apart.size:
            return alone, start
        stratum = np.minimum(np.log2(np.maximum(apart / doubt, 1.0)), STRATA - 1.0).astype(int)
        groups = stratum + STRATA * ((margins < 1.0) + 2 * (self.y > 0.0))
        return np.where(apart <= doubt, -1, groups), start

    def part(self, start: Start, stands: np.ndarray) -> Start:
        """The same for these rows, of which `stands` says what they stand for."""
        weight = np.bincount(stands, minlength=self.y.size)
        shares = np.bincount(stands, weights=start.shares, minlength=self.y.size) / weight
        return start._replace(shares=shares)

    def merged(self, groups: np.ndarray) -> tuple[Rows, np.ndarray]:
        """The rows of no group and the means of the groups; and which of these each row is, or is part of."""
        alone = groups < 0
        if alone.all():
            return self, np.arange(alone.size)
        single, n = np.flatnonzero(alone), alone.size
        first, members = np.unique(groups[~alone], return_index=True, return_inverse=True)[1:]
        shares, columns = np.where(alone, 0.0, self.weights), np.zeros(n, int)
        columns[~alone] = members
        parts = sp.csr_array((shares, columns, np.arange(n + 1)), shape=(n, first.size))
        total = np.bincount(columns, weights=shares)
        sums = sum(_dense(parts[rows].T @ some) for rows, some in row_blocks(self.X))
        means = sums / total[:, None]
        some = self.X[single]
        X = sp.vstack([some, sp.csr_array(means)]).tocsr() if sp.issparse(some) else np.vstack([some, means])
        y = np.append(self.y[single], self.y[~alone][first])
        stands = np.empty(n, int)
        stands[single], stands[~alone] = np.arange(single.size), single.size + members
        return Rows(self.problem, X, y, np.append(self.weights[single], total)), stands


def _dense(some: Any) -> np.ndarray:
    return some.toarray() if sp.issparse(some) else some
