"""Wolfe's algorithm in exact arithmetic: a separator of rows from the origin, or the origin as a combination of them.

The algorithm computes the point of the hull of the rows a_i that is nearest to the origin. It goes from one "corral" to
the next: affinely independent rows, with the nearest point x of their affine hull inside their hull. The row of the
least a_i.x enters. While the nearest point of the new affine hull has a weight that is not positive, x moves towards it
up to the boundary of the hull, and the row whose weight became zero leaves. |x| falls with every corral, so that no
corral comes twice: exact arithmetic cannot cycle, however degenerate the rows are. At the end x = 0, or a_i.x >= |x|^2
> 0 for all rows; a corral has at most one row more than there are coordinates.

References
----------
P. Wolfe, "Finding the nearest point in a polytope", Mathematical Programming 11, 1976.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction
from typing import NamedTuple

import numpy as np

from ..numerics.rational import IntegerRows, null_vector
from ..numerics.sums import EPS, Plain

# Bound of the underflow in a score of rows whose entries are at most one: each of d terms is off by up to 2^-1074.
UNDERFLOW = 1e-280


class Corral(NamedTuple):
    """A corral with its nearest point, x = sum weights_k a_k = direction / total.

    Attributes
    ----------
    weights : dict of row to Fraction
        All positive, of sum one.
    direction : list of int
        x times `total`, of length `IntegerRows.width`; all zeros if the hull holds the origin.
    total : int
        Positive: the common denominator.
    """

    weights: dict[int, Fraction]
    direction: list[int]
    total: int


def nearest_points(
    rows: IntegerRows, start: dict[int, float], interrupted: Callable[[], bool] = lambda: False
) -> Iterator[Corral]:
    """Yield corrals, each nearer to the origin than the one before; the last one has the nearest point of the hull.

    Parameters
    ----------
    rows : IntegerRows
    start : dict
        Rows with positive weights, of any sum; the nearer their weighted mean is to the origin, the fewer steps.
    interrupted : callable
        Returns whether to stop.

    Raises
    ------
    OutOfTime
        If it was time to stop.
    """
    top = max(start.values())
    # 40 bits: the start need not be exact, and shorter integers make the first steps cheaper
    weights = {i: Fraction(max(round(weight / top * 2.0**40), 1)) for i, weight in start.items()}
    corral = _minor_cycle(rows, _independent(rows, weights, interrupted), interrupted)
    while True:
        yield corral
        if not any(corral.direction):
            return
        square = sum(value * value for value in corral.direction)
        row, least = least_row(rows, corral.direction)
        if least * corral.total >= square:  # a_i.x >= |x|^2 for all i
            return
        corral = _minor_cycle(rows, corral.weights | {row: Fraction(0)}, interrupted)


def least_row(rows: IntegerRows, direction: list[int]) -> tuple[int, int]:
    """Return the row of the least score a_i.direction, and that score, exactly.

    Scores are computed in integers for all rows whose float64 scores may be the least within their errors. The error of
    a score is at most (8 + d) eps (|x|.|w| + |b|): the entries of the direction are rounded to half a unit in the last
    place, and the sum adds d + 4 units.
    """
    w, b = as_floats(direction), 0.0
    if rows.bias:
        w, b = w[:-1], float(w[-1])
    scores = rows.y * Plain.scores(rows.scaled, w, b)
    off = (8.0 + w.size) * EPS * (abs(rows.scaled) @ np.abs(w) + abs(b)) + UNDERFLOW
    possible = np.flatnonzero(scores - off <= (scores + off).min())
    least, row = min((rows.product(i, direction), i) for i in possible.tolist())
    return row, least


def as_floats(direction: list[int]) -> np.ndarray:
    """Return a direction as float64 numbers, the largest about one.

    Integers of more than 1000 bits, which float64 may not hold, are shifted to 1000 bits first.
    """
    most = max((abs(value).bit_length() for value in direction), default=1)
    shift = max(most - 1000, 0)
    return np.array([math.ldexp(float(value >> shift), -min(most, 1000)) for value in direction])


def _independent(
    rows: IntegerRows, weights: dict[int, Fraction], interrupted: Callable[[], bool]
) -> dict[int, Fraction]:
    """Return the same point as a combination of affinely independent rows (Caratheodory)."""
    weights = dict(weights)
    while len(weights) > 1:
        places = list(weights)
        found = null_vector([*rows.block(places), [1] * len(places)], interrupted)
        if found is None:
            break
        # weights - t found is the same point for every t, as is weights + t found
        sign = 1 if any(value > 0 for value in found) else -1
        weights = _reduced(weights, [sign * value for value in found])
    total = sum(weights.values())
    return {i: value / total for i, value in weights.items()}


def _reduced(weights: dict[int, Fraction], change: Sequence[int | Fraction]) -> dict[int, Fraction]:
    """Return weights - t change with the largest t for which no weight is negative, without the zero weights.

    `change` has one number for each row of `weights`, in the same order, at least one of them positive.
    """
    moves = list(zip(weights, change, strict=True))
    t = min(weights[i] / value for i, value in moves if value > 0)
    moved = {i: weights[i] - t * value for i, value in moves}
    return {i: value for i, value in moved.items() if value > 0}


def _minor_cycle(rows: IntegerRows, weights: dict[int, Fraction], interrupted: Callable[[], bool]) -> Corral:
    """Return the corral in which Wolfe's minor cycle ends from a convex combination of affinely independent rows.

    While the nearest point of the affine hull has a weight that is not positive, the combination moves towards it up to
    the boundary of the hull, and rows of weight zero leave.
    """
    while True:
        places = list(weights)
        affine = _affine_minimiser(rows, places, interrupted)
        common = math.gcd(*affine)
        affine = [value // common for value in affine]
        total = sum(affine)
        nearest = {i: Fraction(value, total) for i, value in zip(places, affine, strict=True)}
        if all(value > 0 for value in affine):
            return Corral(nearest, rows.combine(places, affine), total)
        change = [weights[i] - nearest[i] for i in places]
        # the row that has entered has a weight of 0, which rises, since its score is below |x|^2
        weights = _reduced(weights, change)


def _affine_minimiser(rows: IntegerRows, places: list[int], interrupted: Callable[[], bool]) -> list[int]:
    """Return weights, of a positive sum, of the point of the affine hull of these rows that is nearest to the origin.

    With a null vector of the rows the point is the origin. Else the weights lambda solve G lambda = -mu 1 and
    sum lambda = t, G being the Gram matrix: a null vector (mu, lambda, t) of one larger matrix.
    """
    block = rows.block(places)
    found = null_vector(block, interrupted) if block else [1] * len(places)
    if found is None:
        A = np.array(block, dtype=object)
        G = (A.T @ A).tolist()
        k = len(places)
        found = null_vector([[0] + [1] * k + [-1], *([1, *line, 0] for line in G)], interrupted)
        assert found is not None
        found = found[1:-1]
    return found if sum(found) > 0 else [-value for value in found]
