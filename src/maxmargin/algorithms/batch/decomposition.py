"""Decomposition of large kernel problems: a working set at a time, solved by sequential minimal optimisation.

The dual in the form min 1/2 a'Qa - sum a, 0 <= a <= cap, y'a = const where there is a free intercept; Q = y y' K, the
gradient g = Qa - 1.

The rows that violate optimality most make a small problem, which sequential minimal optimisation solves on a matrix
that fits into the cache of the processor; then the gradient of all is updated with whole kernel rows. Rows between
their bounds stay for the next set.

References
----------
T. Joachims, "Making large-scale SVM learning practical", 1998; Z. Wen et al., "ThunderSVM", JMLR 19, 2018;
R.-E. Fan, P.-H. Chen, C.-J. Lin, "Working set selection using second order information for training support vector
machines", JMLR 6, 2005 (the steps within a working set).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np

from ...engine.jit import compiled
from ...engine.state import Unscaled
from ...problem.problem import Problem
from ..base import Bias, Facts, Plan
from .kernel_rows import KernelRows, add_rows

if TYPE_CHECKING:
    pass

SET = 2048  # rows of a working set
NEW = 0.25  # share of it that is new, at most; and half as many as rows are free, but not
FEW = 128  # less than these
FIRST = 64  # rows of a class that begin, evenly spread, where nothing is known
SHARE = 0.01  # of the violation of all, at which a working set is left
STEPS = 50  # for each row of a working set, at most
LONGER, LONGEST = 2.0, 1e6  # multiples of dual weights without caps that are worth it, and that numbers bear
LITTLE = float(np.finfo(float).smallest_subnormal)
LEAST = 1e-13  # a violation, relative to the largest entry of the gradient, that is rounding

# curvature, relative to the largest on the diagonal, that counts as none: ten roundings of such an entry
TINY = 1e-14


class Point(NamedTuple):
    """Dual weights, and the scores sum_j alpha_j y_j k(x_j, x_i) of every row, own coordinates left out."""

    alpha: np.ndarray
    scores: np.ndarray


@dataclass(frozen=True)
class Decomposition:
    """Working sets of the rows that violate optimality most, each solved by sequential minimal optimisation.

    It solves every kernel problem, and knows patterns by their kernel alone: the attributes are those of `Algorithm`.
    """

    name: ClassVar[str] = "decomposition"
    schedule: ClassVar[str] = "working-sets"
    convergent: ClassVar[bool] = True
    shuffle: ClassVar[bool] = True  # needs no order of the rows
    bias: ClassVar[Bias] = Bias.OWN
    scale: ClassVar[Any] = Unscaled

    def refuses(self, problem: Problem) -> str | None:
        """Return None: no kernel problem is refused."""
        return None

    def plan(self, facts: Facts) -> Plan:
        """Return the solver in the place of a rule, the same for every problem."""
        return Plan(rule=decomposition, unit=1.0)


def decomposed_points(
    problem: Problem,
    rows: KernelRows,
    y: np.ndarray,
    weights: np.ndarray,
    interrupted: Callable[[], bool] = lambda: False,
    start: np.ndarray | None = None,
) -> Iterator[Point]:
    """Solve a kernel problem; a point after every working set.

    Parameters
    ----------
    problem : Problem
        p = 2. Hard margin: the dual weights grow to those of the canonical form, and without bound where there is no
        separator.
    rows : KernelRows
    y : ndarray of shape (n,), entries -1.0 and 1.0
        Both classes, where the intercept is free.
    weights : ndarray of shape (n,)
        Sample weights. Rows of weight 0 cost nothing; their dual weights and scores are 0.
    interrupted : callable
        Is it time to stop? Asked between working sets.
    start : ndarray of shape (n,), default=None
        Dual weights to begin with; feasible. None: 0.

    Yields
    ------
    Point
        The one to begin with, unless it is 0, and one after every set. Ends when no pair violates optimality beyond
        rounding.
    """
    for point in decomposition(problem, rows, y, weights, interrupted, start):
        if point is not None:
            yield point


def decomposition(
    problem: Problem,
    rows: KernelRows,
    y: np.ndarray,
    weights: np.ndarray,
    interrupted: Callable[[], bool] = lambda: False,
    start: np.ndarray | None = None,
) -> Iterator[Point | None]:
    """The points, and None where rows of the kernel are expected: others on the same rows may say theirs before."""
    used = np.flatnonzero(weights > 0.0)
    if used.size < rows.n:
        begin = None if start is None else start[used]
        for point in decomposition(problem, rows.part(used), y[used], weights[used], interrupted, begin):
            yield None if point is None else Point(*(_spread(values, used, rows.n) for values in point))
        return
    caps, own, constant = problem.caps(weights), problem.delta2(weights), problem.rho**2
    alpha = np.zeros(rows.n) if start is None else np.minimum(start, caps)
    scores = rows.product(alpha * y) if alpha.any() else np.zeros(rows.n)
    if alpha.any():
        yield Point(alpha.copy(), scores.copy())
    inner = pairs if problem.free else singles
    chosen = np.flatnonzero((alpha > 0.0) & (alpha < caps))
    while not interrupted():
        gradient = y * scores + own * alpha + constant * y * float(alpha @ y) - 1.0
        chosen, violation = working_set(problem, y, caps, alpha, gradient, chosen, min(SET, rows.most))
        if chosen.size > 2 * FIRST and not alpha.any():
            chosen = _some_of_each(y)
        if chosen.size == 0 or violation <= LEAST * float(np.abs(gradient).max()):
            return
        small = rows.square(chosen) + constant
        small.flat[:: chosen.size + 1] += own[chosen]
        part, goal, most = alpha[chosen], SHARE * violation, STEPS * chosen.size
        room = np.empty((6, chosen.size))
        if inner(small, y[chosen], caps[chosen], part, gradient[chosen], goal, most, room) == 0:
            return
        del small  # which is large, and others have theirs meanwhile
        moved = part != alpha[chosen]  # only of these whole rows are needed
        change = ((part - alpha[chosen]) * y[chosen])[moved]
        alpha[chosen] = part
        rows.expect(chosen[moved])
        yield None
        add_rows(rows.rows, rows.slots(chosen[moved]), change, scores)
        if problem.hard:
            longer = _multiple(y, alpha, scores, constant)
            alpha, scores = longer * alpha, longer * scores
        yield Point(alpha.copy(), scores.copy())


def _multiple(y: np.ndarray, alpha: np.ndarray, scores: np.ndarray, constant: float) -> float:
    """The multiple of dual weights without caps that is best, where it is much: steps would only creep there.

    Where there is no separator patterns cancel, and every multiple is better than the last.
    """
    total, balance = float(alpha.sum()), float(alpha @ y)
    square = float((alpha * y) @ scores) + constant * balance * balance
    best = total / square if square > total / LONGEST else LONGEST
    return best if best > LONGER else 1.0


def _some_of_each(y: np.ndarray) -> np.ndarray:
    """Rows of both classes, evenly spread."""
    sides = (np.flatnonzero(y > 0.0), np.flatnonzero(y < 0.0))
    some = [side[np.arange(0, side.size, max(1, side.size // FIRST))] for side in sides]
    return np.sort(np.concatenate(some))


def _spread(values: np.ndarray, places: np.ndarray, n: int) -> np.ndarray:
    """These values at their places among n, 0 elsewhere."""
    out = np.zeros(n)
    out[places] = values
    return out


def working_set(
    problem: Problem,
    y: np.ndarray,
    caps: np.ndarray,
    alpha: np.ndarray,
    gradient: np.ndarray,
    kept: np.ndarray,
    size: int,
) -> tuple[np.ndarray, float]:
    """The rows to work on next, sorted, and the largest violation of optimality of all.

    The worst of those that may still move come first, then those of the set before that are between their bounds.
    """
    ascent, high, low = -y * gradient, alpha < caps, alpha > 0.0
    rising = np.where(np.where(y > 0.0, high, low), ascent, -np.inf)  # of the rows whose y alpha may go up
    falling = np.where(np.where(y > 0.0, low, high), -ascent, -np.inf)  # and down
    inside = high & low
    free = int(np.count_nonzero(inside))
    new = max(2, min(int(NEW * size), max(FEW, free // 2))) if kept.size else size
    if problem.free:
        top, bottom = float(rising.max(initial=-np.inf)), -float(falling.max(initial=-np.inf))
        violation = top - bottom
        # where the intercept seems to be: a row on its own side of it makes no pair
        middle = float(ascent[inside].mean()) if free else 0.5 * (top + bottom)
        middle = min(max(middle, bottom), top)
        worst = [largest(rising, middle, new // 2), largest(falling, -middle, new // 2)]
    else:
        lack = np.maximum(rising, falling)
        violation = float(lack.max(initial=0.0))
        worst = [largest(lack, LITTLE, new)]
    chosen = np.zeros(y.size, dtype=bool)
    chosen[np.concatenate(worst)] = True
    stay = kept[inside[kept] & ~chosen[kept]]
    chosen[stay[: max(size - np.count_nonzero(chosen), 0)]] = True
    return np.flatnonzero(chosen), violation


def largest(values: np.ndarray, least: float, most: int) -> np.ndarray:
    """Return the places of the largest values that are at least `least`, `most` at most; of equal ones the first."""
    places = np.flatnonzero(values >= least)
    if places.size <= most:
        return places
    some = values[places]
    bound = np.partition(some, -most)[-most]
    above = places[some > bound]
    return np.append(above, places[some == bound][: most - above.size])


@compiled()
def flattest(small):
    """The least curvature to reckon with: steps are finite where there is none at all, and no cap either."""
    largest = 0.0
    for k in range(small.shape[0]):
        largest = max(largest, small[k, k])
    return TINY * largest if largest > 0.0 else TINY


@compiled()
def argmax(value):
    """The place of the largest value, of equal ones the first; -1 where none is more than -inf."""
    best, place = -np.inf, -1
    for k in range(value.size):
        if value[k] > best:
            best, place = value[k], k
    return place


@compiled()
def bar(k, y, cap, alpha, rising, falling):
    """0 where y alpha of this row may go up (down), -inf where it may not."""
    high, low = alpha[k] < cap[k], alpha[k] > 0.0
    up, down = (high, low) if y[k] > 0.0 else (low, high)
    rising[k] = 0.0 if up else -np.inf
    falling[k] = 0.0 if down else -np.inf


@compiled()
def pairs(small, y, cap, alpha, gradient, goal, most, room):
    """Move pairs, which keeps sum y alpha, until no pair violates optimality by more than `goal`. (Steps.)

    `room` is a matrix of 6 rows to work in.
    """
    n = y.size
    flat = flattest(small)
    # not unpacked: so the compiler knows that they are contiguous
    ascent, rising, falling, diagonal = room[0], room[1], room[2], room[3]
    value, gains = room[4], room[5]
    for k in range(n):
        ascent[k] = -y[k] * gradient[k]
        diagonal[k] = small[k, k]
        bar(k, y, cap, alpha, rising, falling)
    for k in range(n):
        value[k] = ascent[k] + rising[k]
    step = 0
    while step < most:
        i = argmax(value)  # the largest -y g among those that may go up
        if i < 0:
            break
        best, one = value[i], small[i]
        curvature = diagonal[i]
        for k in range(n):  # j: the largest gain among those that may go down
            b = falling[k] - ascent[k] + best
            b = b if b > 0.0 else 0.0
            a = curvature + diagonal[k] - 2.0 * one[k]
            a = a if a > flat else flat
            gains[k] = b * b / a
        j = argmax(gains)
        if j < 0 or not gains[j] > 0.0:
            break
        if best - ascent[j] <= goal:  # else the largest violation is beyond the goal as well
            violation = 0.0
            for k in range(n):
                violation = max(violation, falling[k] - ascent[k] + best)
            if violation <= goal:
                break
        a = max(curvature + diagonal[j] - 2.0 * one[j], flat)
        t = (best - ascent[j]) / a
        # y_i alpha_i goes up by t, y_j alpha_j down by t
        space = cap[i] - alpha[i] if y[i] > 0.0 else alpha[i]
        other = alpha[j] if y[j] > 0.0 else cap[j] - alpha[j]
        if t >= min(space, other):
            t = min(space, other)
            if space <= other:
                alpha[i] = cap[i] if y[i] > 0.0 else 0.0
                alpha[j] = min(max(alpha[j] - y[j] * t, 0.0), cap[j])
            else:
                alpha[j] = 0.0 if y[j] > 0.0 else cap[j]
                alpha[i] = min(max(alpha[i] + y[i] * t, 0.0), cap[i])
        else:
            alpha[i] += y[i] * t
            alpha[j] -= y[j] * t
        bar(i, y, cap, alpha, rising, falling)
        bar(j, y, cap, alpha, rising, falling)
        two = small[j]
        for k in range(n):
            ascent[k] -= t * (one[k] - two[k])
            value[k] = ascent[k] + rising[k]
        step += 1
    for k in range(n):
        gradient[k] = -y[k] * ascent[k]
    return step


@compiled()
def singles(small, y, cap, alpha, gradient, goal, most, room):
    """The same without a constraint: one dual weight at a time, that of the largest gain. (Steps.)"""
    n = y.size
    flat = flattest(small)
    for step in range(most):
        j = -1
        gain = 0.0
        worst = 0.0
        move = 0.0
        for k in range(n):
            g = gradient[k]
            if (g < 0.0 and alpha[k] < cap[k]) or (g > 0.0 and alpha[k] > 0.0):
                worst = max(worst, abs(g))
                a = max(small[k, k], flat)
                new = min(max(alpha[k] - g / a, 0.0), cap[k])
                t = new - alpha[k]
                value = -t * (g + 0.5 * a * t)
                if value > gain:
                    gain = value
                    move = new
                    j = k
        if j < 0 or worst <= goal:
            return step
        t = y[j] * (move - alpha[j])
        alpha[j] = move
        for k in range(n):
            gradient[k] += y[k] * t * small[j, k]
    return most
