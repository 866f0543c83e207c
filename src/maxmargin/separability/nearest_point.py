"""Wolfe's algorithm in exact arithmetic: a separator of rows from the origin, or the origin as a combination of them.

The point of the hull of the rows a_i that is nearest to the origin is sought among the affine hulls of few rows (a
*corral*: affinely independent, with the nearest point of their affine hull inside their hull). With x that point, the
row of the least a_i.x enters; while a weight is not positive, x stops at the edge of the hull and that row leaves. |x|
falls with every corral, so that none comes twice: exact arithmetic cannot cycle, however degenerate the rows are.
At the end x = 0, or a_i.x >= |x|^2 > 0 for all rows; a corral has at most one row more than there are coordinates.

References
----------
P. Wolfe, "Finding the nearest point in a polytope", Mathematical Programming 11, 1976.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from ..numerics.rational import ExactRows, null_vector
from ..numerics.sums import Compensated

NEAR = 40  # rows of the least float scores that are looked at exactly
LEAST = 1e-280  # what entries, of rows of size one, may lose where they underflow


@dataclass(frozen=True)
class Corral:
    """The nearest point of a corral, x = sum weights_k a_k / sum weights_k.

    Attributes
    ----------
    rows : list of int
    weights : list of int
        All positive.
    direction : list of int
        sum weights_k a_k; zeros only if the hull holds the origin.
    """

    rows: list[int]
    weights: list[int]
    direction: list[int]

    @property
    def zero(self) -> bool:
        """Is the origin this combination of the rows?"""
        return not any(self.direction)

    @property
    def shares(self) -> dict[int, Fraction]:
        """The weights of the rows, of sum one."""
        total = sum(self.weights)
        return {i: Fraction(value, total) for i, value in zip(self.rows, self.weights, strict=True)}


def nearest_points(
    rows: ExactRows, start: dict[int, float], interrupted: Callable[[], bool] = lambda: False
) -> Iterator[Corral]:
    """Corrals, each nearer to the origin than the one before; the last one is the nearest of all.

    Parameters
    ----------
    rows : ExactRows
    start : dict
        Some rows with positive weights; the nearer their mean is to the origin, the fewer steps.
    interrupted : callable
        Is it time to stop?

    Raises
    ------
    TimeoutError
        If it was time to stop.
    """
    top = max(start.values())
    weights = {i: Fraction(max(round(value / top * 2.0**40), 1)) for i, value in start.items()}
    corral = _settle(rows, _independent(rows, weights, interrupted), interrupted)
    scores_of = float_scores(rows)
    while True:
        yield corral
        if corral.zero:
            return
        total, square = sum(corral.weights), sum(value * value for value in corral.direction)
        place, least = least_row(rows, scores_of, corral.direction)
        if least * total >= square:
            return
        corral = _settle(rows, corral.shares | {place: Fraction(0)}, interrupted)


def least_row(
    rows: ExactRows,
    scores_of: Callable[[np.ndarray], tuple[np.ndarray, np.ndarray]],
    direction: list[int],
) -> tuple[int, int]:
    """The row of the least score along a direction, and that score, exactly.

    All rows whose float scores leave it open are computed in integers; the few least, if any of these is not positive,
    for then it is decided that the direction does not separate.
    """
    scores, off = scores_of(floats(direction))
    order = np.argsort(scores, kind="stable")
    best = min((rows.product(i, direction), i) for i in order[:NEAR].tolist())
    if best[0] > 0:
        rest = order[NEAR:]
        near = rest[(scores - off)[rest] <= (scores + off)[order[0]]]
        best = min([best, *((rows.product(i, direction), i) for i in near.tolist())])
    return best[1], best[0]


def floats(direction: list[int]) -> np.ndarray:
    """A direction as float64 numbers, the largest about one."""
    most = max((abs(value).bit_length() for value in direction), default=1)
    shift = max(most - 1000, 0)
    return np.array([math.ldexp(float(value >> shift), -min(most, 1000)) for value in direction])


def float_scores(rows: ExactRows) -> Callable[[np.ndarray], tuple[np.ndarray, np.ndarray]]:
    """Scores of all rows in float64, with compensated sums, and by how much each may be off.

    The direction itself has been rounded, so that each of its terms may be off by half a unit of the last digit, and
    so may the entries be.
    """
    X, size = rows.scaled, abs(rows.scaled)

    def scores(direction: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        w, b = (direction[:-1], float(direction[-1])) if rows.bias else (direction, 0.0)
        off = size @ np.abs(w) + abs(b)
        return rows.y * Compensated.scores(X, w, b), (8.0 + rows.inexact) * np.finfo(float).eps * off + LEAST

    return scores


def _independent(
    rows: ExactRows, weights: dict[int, Fraction], interrupted: Callable[[], bool]
) -> dict[int, Fraction]:
    """The same point as a combination of affinely independent rows (Caratheodory)."""
    weights = dict(weights)
    while len(weights) > 1:
        places = list(weights)
        found = null_vector([*rows.block(places), [1] * len(places)], interrupted)
        if found is None:
            break
        # along the null vector the point stays; the first weight that vanishes leaves
        if not any(value > 0 for value in found):
            found = [-value for value in found]
        step = min(weights[i] / value for i, value in zip(places, found, strict=True) if value > 0)
        moved = {i: weights[i] - step * value for i, value in zip(places, found, strict=True)}
        weights = {i: value for i, value in moved.items() if value > 0}
    total = sum(weights.values())
    return {i: value / total for i, value in weights.items()}


def _settle(rows: ExactRows, weights: dict[int, Fraction], interrupted: Callable[[], bool]) -> Corral:
    """The corral that a combination of affinely independent rows leads to."""
    while True:
        places = list(weights)
        affine = _affine_minimiser(rows, places, interrupted)
        if all(value > 0 for value in affine):
            common = math.gcd(*affine)
            affine = [value // common for value in affine]
            return Corral(places, affine, rows.combine(places, affine))
        total = sum(affine)
        goal = [Fraction(value, total) for value in affine]
        step = min(
            weights[i] / (weights[i] - value) if weights[i] else Fraction(0)
            for i, value in zip(places, goal, strict=True)
            if value <= 0
        )
        moved = {i: weights[i] + step * (value - weights[i]) for i, value in zip(places, goal, strict=True)}
        weights = {i: value for i, value in moved.items() if value > 0}


def _affine_minimiser(rows: ExactRows, places: list[int], interrupted: Callable[[], bool]) -> list[int]:
    """Weights, of a positive sum, of the point of the affine hull of these rows that is nearest to the origin."""
    block = rows.block(places)
    found = null_vector(block, interrupted) if block else [1] * len(places)
    if found is None:  # the origin lies outside: sum lambda = t, and G lambda the same for all rows
        A = np.array(block, dtype=object)
        G = (A.T @ A).tolist()
        k = len(places)
        found = null_vector(
            [[0] + [1] * k + [-1], *([1, *line, 0] for line in G)],
            interrupted,
        )
        assert found is not None
        found = found[1:-1]
    return found if sum(found) > 0 else [-value for value in found]
