"""The rows in memory of a partitioned fit: a random sample, and rows that are added later."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from .blocks import Partitions, Rows
from .passes import Near

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
    # without the ten no row of a small class might be drawn; with them the probability is below exp(-10)
    shares = fair_shares(totals.counts, size) + 10
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
