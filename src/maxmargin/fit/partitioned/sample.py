"""The rows in memory of a partitioned fit: a random sample and its solution, and rows that are added later."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from ...certificates.sample import Sample
from ...data.partitions import Partitions, Rows, signs_of
from ...data.rows import Patterns
from ...problem.problem import Problem
from ...solvers.iterate import Point
from ..deadline import Deadline
from ..report import Stopping, Task
from ..solve import solve
from .passes import Near

# Factors of C that are tried on half of the sample, and compared by the objective on the other half. With few rows for
# each column the solution of the sample at C itself fits the noise of the sample, and a smaller C is a better start:
# on web (49,749 x 300) with 5,000 rows at C = 1 it halves the objective of the first pass.
COST_FACTORS = (1.0, 2.0**-3, 2.0**-6, 2.0**-9)
# Rows of the sample for each column from which only C itself is tried: the others take time, and are not better there.
MANY_ROWS_PER_COLUMN = 100
# Gap to which the sample is solved: its solution differs by far more from that of all rows.
SAMPLE_GAP = 1e-3
# Rows of each class that are drawn beyond its share: none of a class would be drawn with the probability exp(-10).
SPARE = 10
# Part of the rows that fit in memory that the first sample has; the others are for the rows of the smallest margins.
SAMPLE_SHARE = 0.25
# Margin below which rows are added for a hard margin, whose smallest margin in memory is 1: rounding makes no row
# violate it.
HARD_REACH = 1.0 - 1e-9
MAX_IDLE = 8  # passes without a better bound after which a fit or a search has stalled


@dataclass(frozen=True, eq=False)
class DrawnRows:
    """Rows that were drawn at random, equally many of each class as far as there are so many.

    Attributes
    ----------
    rows : Rows
    factors : ndarray of shape (k,)
        Sample weights times the number of rows of the class that each row stands for.
    """

    rows: Rows
    factors: np.ndarray

    def some(self, places: Any) -> DrawnRows:
        """Return some of the rows, in place of all of them: the factors keep the total of each class."""
        rows, codes = self.rows.some(places), self.rows.codes
        before, after = np.bincount(codes), np.bincount(rows.codes, minlength=int(codes.max()) + 1)
        return DrawnRows(rows, self.factors[places] * (before / np.maximum(after, 1))[rows.codes])


class ClassCounts(NamedTuple):
    """The number of rows of each class with a positive weight: shape (classes,)."""

    counts: np.ndarray

    def merge(self, other: ClassCounts) -> ClassCounts:
        """Return the numbers for the rows of both."""
        return ClassCounts(self.counts + other.counts)


def draw_rows(
    partitions: Partitions, classes: int, size: int, seed: int, interrupted: Callable[[], bool]
) -> DrawnRows | None:
    """Draw rows at random, about `size` in all; None if stopped.

    The classes get equal shares: a rare class decides as much about the hyperplane as a frequent one. Whether a row is
    drawn depends on its number and the seed alone.
    """
    totals = partitions.reduce(partial(_count_classes, classes), interrupted)
    if totals is None:
        return None
    shares = fair_shares(totals.counts, size) + SPARE
    chances = np.minimum(shares / np.maximum(totals.counts, 1), 1.0)
    rows = partitions.reduce(partial(_drawn, chances, seed), interrupted)
    return None if rows is None else DrawnRows(rows, rows.weights / chances[rows.codes])


def fair_shares(totals: np.ndarray, size: int) -> np.ndarray:
    """Return the number of rows to draw of each class: equal numbers, but no more than there are.

    What a small class leaves is divided among the others.
    """
    shares, left = np.zeros_like(totals), size
    for place, k in enumerate(np.argsort(totals, kind="stable")):
        shares[k] = min(int(totals[k]), left // (totals.size - place))
        left -= int(shares[k])
    return shares


def _count_classes(classes: int, rows: Rows) -> ClassCounts:
    """Return the number of rows of each class in a partition."""
    used = rows.codes[(rows.weights > 0.0) & (rows.codes >= 0)]
    return ClassCounts(np.bincount(used, minlength=classes))


def _drawn(chances: np.ndarray, seed: int, rows: Rows) -> Rows:
    """Return rows of a partition, each class with its chance."""
    draws = np.random.Generator(np.random.PCG64(seed).advance(int(rows.numbers[0]))).random(rows.size)
    chance = np.where((rows.weights > 0.0) & (rows.codes >= 0), chances[rows.codes], 0.0)
    return rows.some(np.flatnonzero(draws < chance))


def with_rows(held: Rows, support: np.ndarray, new: Near, limit: int) -> Rows | None:
    """Return the rows in memory with new ones of small margins; None if there are no new ones, or no room for any.

    Where all do not fit, rows in memory that no proof uses are dropped, but for one of each class, and the new rows of
    the smallest margins are added.

    Parameters
    ----------
    held : Rows
        The rows in memory, of ascending numbers.
    support : ndarray of int
        The places of the rows in memory that a proof uses.
    new : Near
        Rows with their margins.
    limit : int
        Rows that fit in memory.
    """
    fresh = np.argsort(new.distances, kind="stable")
    fresh = fresh[~np.isin(new.rows.numbers[fresh], held.numbers)]
    if held.numbers.size + fresh.size > limit:
        used = np.zeros(held.numbers.size, bool)
        used[support] = True
        # a fit in memory needs rows of each class
        used[np.unique(held.codes, return_index=True)[1]] = True
        held = held.some(np.flatnonzero(used))
    fresh = fresh[: max(limit - held.numbers.size, 0)]
    if not fresh.size:
        return None
    merged = held.merge(new.rows.some(fresh))
    return merged.some(np.argsort(merged.numbers, kind="stable"))


def start_point(
    problem: Problem, drawn: DrawnRows, positive: int, deadline: Deadline, seed: int
) -> tuple[Point, Point]:
    """Return the solution of the sample, and that of half of it: their difference estimates the error of both.

    Of the factors COST_FACTORS of C the best one for the other half of the sample is taken.
    """
    size = drawn.factors.size
    half, rest = drawn.some(np.arange(0, size, 2)), drawn.some(np.arange(1, size, 2))
    many = size >= MANY_ROWS_PER_COLUMN * drawn.rows.X.shape[1]
    tried = []
    for factor in COST_FACTORS[:1] if many else COST_FACTORS:
        point = solve_in_memory(
            replace(problem, C=problem.C * factor), half, positive, SAMPLE_GAP, deadline, seed
        )
        tried.append((_objective(problem, rest, positive, point), factor, point))
        if deadline.interrupted():
            break
    _, factor, point = min(tried, key=lambda one: one[0])
    # for the sample, which has twice as many rows, a larger C is the best one
    whole = replace(problem, C=problem.C * min(1.0, 2.0 * factor))
    return solve_in_memory(whole, drawn, positive, SAMPLE_GAP, deadline, seed), point


def _objective(problem: Problem, drawn: DrawnRows, positive: int, point: Point) -> float:
    """Return the objective at a point, estimated from drawn rows, each of which stands for `factors` rows."""
    margins = signs_of(drawn.rows, positive) * (np.asarray(drawn.rows.X @ point.w) + point.b)
    square = problem.norm2(float(point.w @ point.w), point.b)
    return problem.primal(problem.penalty(square**0.5), margins, drawn.factors)


def solve_in_memory(
    problem: Problem, drawn: DrawnRows, positive: int, tol: float, deadline: Deadline, seed: int
) -> Point:
    """Solve a problem on drawn rows with the in-memory solver; w = 0 where only one class was drawn."""
    X, y = drawn.rows.X, signs_of(drawn.rows, positive)
    if not y.size or abs(y.sum()) == y.size:
        return Point(np.zeros(X.shape[1]), 0.0, np.zeros(y.size))
    patterns = Patterns(X)
    task = Task(problem, patterns, y, drawn.factors, seed=seed)
    sample = Sample(X, y, drawn.factors, patterns.lengths)
    found = solve(task, Stopping(tol, 1000, deadline), sample)
    return Point(found.w, found.b, found.alpha)
