"""Decomposition: large kernel problems, a working set at a time.

The rows that violate optimality most make a small problem, which sequential minimal optimisation solves on a matrix
that fits into the cache of the processor; then the gradient of all is updated with whole kernel rows. Rows between
their bounds stay for the next set. It all begins where a sample of the rows ends, and the sample where its own does: so
most rows that end at a bound are never in a set, and their kernel rows are added up as they are computed, not kept.

References
----------
T. Joachims, "Making large-scale SVM learning practical", 1998; Z. Wen et al., "ThunderSVM", JMLR 19, 2018.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np

from ...engine.breakpoints import median
from ...engine.jit import compiled
from ...engine.state import Fixed
from ...problem.problem import Problem
from ..base import Bias, Facts, Plan
from .kernel_rows import KernelRows, add_rows
from .smo import pairs, singles

if TYPE_CHECKING:
    from ...data.task import GramTask

SET = 2048  # rows of a working set
NEW = 0.25  # share of it that is new, at most; and half as many as rows are free, but not
FEW = 128  # less than these
FIRST = 64  # rows of a class that begin, evenly spread, where nothing is known
SHARE = 0.01  # of the violation of all, at which a working set is left
STEPS = 50  # for each row of a working set, at most
SAMPLED = 2560  # rows from which on a sample leads to where to begin
ROUGH = 1.0  # a violation at which a sample is left: that of the margins, beyond which it leads no further
ROUNDS = 30  # working sets of a sample, at most
LONGER, LONGEST = 2.0, 1e6  # multiples of dual weights without caps that are worth it, and that numbers bear
LITTLE = float(np.finfo(float).smallest_subnormal)
LEAST = 1e-13  # a violation, relative to the largest entry of the gradient, that is rounding


class Point(NamedTuple):
    """Dual weights, and the scores sum_j alpha_j y_j k(x_j, x_i) of every row, own coordinates left out."""

    alpha: np.ndarray
    scores: np.ndarray


class WorkingSets(NamedTuple):
    """The rule of `Decomposition`: iterates of a task, a working set each."""

    def iterates(self, task: GramTask, interrupted: Callable[[], bool]) -> Iterator[Point | None]:
        """Return the iterates of a task, and None wherever rows of the kernel are expected."""
        return decomposition(task.problem, task.rows, task.y, task.weights, interrupted, task.start)


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
    scale: ClassVar[Any] = Fixed

    def refuses(self, problem: Problem) -> str | None:
        """Return None: no kernel problem is refused."""
        return None

    def plan(self, facts: Facts) -> Plan:
        """Return the rule, which is the same for every problem."""
        return Plan(rule=WorkingSets(), unit=1.0)


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
        Dual weights to begin with; feasible. None: those that a sample of the rows leads to.

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
    if start is None:
        first = yield from _from_sample(problem, rows, y, weights, interrupted)
    else:
        alpha = np.minimum(start, problem.caps(weights))
        first = Point(alpha, rows.product(alpha * y))
    if first.alpha.any():
        yield Point(first.alpha.copy(), first.scores.copy())
    for found in _sets(problem, rows, y, weights, interrupted, first):
        yield None if found is None else found[0]


def _sets(
    problem: Problem,
    rows: KernelRows,
    y: np.ndarray,
    weights: np.ndarray,
    interrupted: Callable[[], bool],
    first: Point,
) -> Iterator[tuple[Point, float] | None]:
    """A point, and the violation of optimality before it, for every working set; None where rows are expected."""
    caps, own = problem.caps(weights), problem.delta2(weights)
    constant, apart = problem.rho * problem.rho, bool(own.any())
    alpha, scores = first.alpha.copy(), first.scores.copy()
    inner = pairs if problem.free else singles
    kept = np.flatnonzero((alpha > 0.0) & (alpha < caps))
    while not interrupted():
        gradient = y * scores
        gradient -= 1.0
        if apart:
            gradient += own * alpha
        if constant:
            gradient += constant * y * float(alpha @ y)
        chosen, violation = working_set(problem, y, caps, alpha, gradient, kept, min(SET, rows.most))
        if chosen.size > 2 * FIRST and not alpha.any():
            chosen = _some_of_each(y)
        if chosen.size == 0 or violation <= LEAST * float(np.abs(gradient).max()):
            return
        small = rows.square(chosen)
        if constant:
            small += constant
        if apart:
            small.flat[:: chosen.size + 1] += own[chosen]
        part, before = alpha[chosen], alpha[chosen].copy()
        steps = inner(
            small,
            y[chosen],
            caps[chosen],
            part,
            gradient[chosen],
            SHARE * violation,
            STEPS * chosen.size,
            np.empty((7, chosen.size)),
        )
        if steps == 0:
            return
        del small  # which is large, and others have theirs meanwhile
        alpha[chosen] = part
        moved = part != before  # only of these whole rows are needed
        moving = chosen[moved]
        rows.expect(moving)
        yield None
        slots = rows.slots(moving)
        add_rows(rows.rows, slots, ((part - before) * y[chosen])[moved], scores)
        if problem.hard:
            longer = _multiple(y, alpha, scores, constant)
            alpha, scores = longer * alpha, longer * scores
        kept = chosen
        yield Point(alpha.copy(), scores.copy()), violation


def _multiple(y: np.ndarray, alpha: np.ndarray, scores: np.ndarray, constant: float) -> float:
    """The multiple of dual weights without caps that is best, where it is much: steps would only creep there.

    Where there is no separator patterns cancel, and every multiple is better than the last.
    """
    total, balance = float(alpha.sum()), float(alpha @ y)
    square = float((alpha * y) @ scores) + constant * balance * balance
    best = total / square if square > total / LONGEST else LONGEST
    return best if best > LONGER else 1.0


def _from_sample(
    problem: Problem, rows: KernelRows, y: np.ndarray, weights: np.ndarray, interrupted: Callable[[], bool]
) -> Generator[None, None, Point]:
    """The point that a sample of the rows leads to, which is solved roughly, from a sample of its own.

    None before it where rows of the kernel are expected.

    In the sample every class weighs what it weighs in all. What its dual weights have above the caps of all goes to the
    rows beside it, those with the smallest margins first.
    """
    nothing = Point(np.zeros(rows.n), np.zeros(rows.n))
    if rows.n <= SAMPLED:
        return nothing
    places, sample = rows.sample
    signs = y[places]
    if np.unique(signs).size < np.unique(y).size:
        return nothing
    heavy = weights[places]
    for sign in np.unique(y):
        heavy[signs == sign] *= weights[y == sign].sum() / heavy[signs == sign].sum()
    point = yield from _from_sample(problem, sample, signs, heavy, interrupted)
    sets = 0
    for found in _sets(problem, sample, signs, heavy, interrupted, point):
        if found is None:
            yield None
            continue
        point, violation = found
        sets += 1
        if violation <= ROUGH or sets == ROUNDS:
            break
    caps, total = problem.caps(weights), _spread(point.alpha, places, rows.n)
    alpha = np.minimum(total, caps)
    inside = np.flatnonzero((alpha > 0.0) & (alpha < caps))[: rows.most // 2]
    rows.expect(inside)
    yield None
    rows.slots(inside)  # they come in the first set
    if np.array_equal(alpha, total):
        return Point(alpha, rows.product(alpha * y))
    scores, rest = rows.product(np.stack([alpha, total - alpha]) * y)
    full, beside = alpha.copy(), np.ones(rows.n, dtype=bool)
    beside[places] = False
    for sign in np.unique(y):
        excess = float((total - alpha)[y == sign].sum())
        others = np.flatnonzero(beside & (y == sign))
        if excess > 0.0 and others.size:
            margins = sign * (scores + rest)[others]
            most = min(int(excess / caps[others].min()) + 1, others.size)  # of the smallest caps
            near = np.flatnonzero(margins <= np.partition(margins, most - 1)[most - 1])
            others = others[near[np.argsort(margins[near], kind="stable")]]
            before = np.cumsum(caps[others]) - caps[others]
            full[others] = np.clip(excess - before, 0.0, caps[others])
    return Point(full, scores + rows.product((full - alpha) * y))


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
    rising, falling, room = np.empty((3, y.size))
    total, inside = standing(y, caps, alpha, gradient, rising, falling)
    new = max(2, min(int(NEW * size), max(FEW, inside // 2))) if kept.size else size
    among = np.zeros(y.size, dtype=bool)
    if problem.free:
        top, bottom = float(rising.max(initial=-np.inf)), -float(falling.max(initial=-np.inf))
        violation = top - bottom
        # where the intercept seems to be: a row on its own side of it makes no pair
        middle = total / inside if inside else 0.5 * (top + bottom)
        middle = min(max(middle, bottom), top)
        mark(rising, middle, new // 2, room, among)
        mark(falling, -middle, new // 2, room, among)
    else:
        lack = np.maximum(rising, falling)
        violation = float(lack.max(initial=0.0))
        mark(lack, LITTLE, new, room, among)
    mark_inside(kept, caps, alpha, size, among)
    return np.flatnonzero(among), violation


@compiled()
def standing(y, cap, alpha, gradient, rising, falling):
    """rising = -y g of the rows that may go up, falling = y g of those that may go down, -inf of others.

    (The sum of -y g between the bounds, and of how many.)
    """
    for k in range(y.size):  # without a branch or a sum, which vectors could not do
        value = -y[k] * gradient[k]
        high, low, positive = alpha[k] < cap[k], alpha[k] > 0.0, y[k] > 0.0
        up = high if positive else low
        down = low if positive else high
        rising[k] = value if up else -np.inf
        falling[k] = -value if down else -np.inf
    total = 0.0
    count = 0
    for k in range(y.size):
        if 0.0 < alpha[k] < cap[k]:
            total -= y[k] * gradient[k]
            count += 1
    return total, count


@compiled()
def last_of(value, most):
    """The `most`-th largest of more values, by quickselect: they are put into another order."""
    first, last = 0, value.size
    while True:
        pivot = median(value[first], value[(first + last) // 2], value[last - 1])
        more, k, less = first, first, last
        while k < less:
            one = value[k]
            if one > pivot:
                value[k], value[more] = value[more], one
                more += 1
                k += 1
            elif one < pivot:
                less -= 1
                value[k], value[less] = value[less], one
            else:
                k += 1
        if most <= more:
            last = more
        elif most <= less:
            return pivot
        else:
            first = less


@compiled()
def mark(value, least, most, room, marked):
    """Mark the largest values of at least so much, `most` at most; of equal ones the first."""
    count = 0
    for k in range(value.size):
        room[count] = value[k]
        count += value[k] >= least
    spare = count
    if count > most:
        least = last_of(room[:count], most)
        spare = most
        for k in range(count):
            spare -= room[k] > least
    for k in range(value.size):
        if value[k] > least:
            marked[k] = True
        elif value[k] == least and spare > 0:
            marked[k] = True
            spare -= 1


@compiled()
def mark_inside(some, cap, alpha, most, marked):
    """Mark those of these rows that are between their bounds, `most` of all rows at most."""
    count = 0
    for k in range(marked.size):
        count += marked[k]
    for k in some:
        if count >= most:
            return
        if not marked[k] and 0.0 < alpha[k] < cap[k]:
            marked[k] = True
            count += 1
