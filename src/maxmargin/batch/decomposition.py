"""Decomposition: large kernel problems, a working set at a time.

The rows that violate optimality most make a small problem, which sequential minimal optimisation solves on a matrix
that fits into the cache of the processor; then the gradient of all is updated with whole kernel rows. Half of a set
stays for the next one. Rows of the kernel come in blocks from BLAS and are needed once for each set they are in.

References
----------
T. Joachims, "Making large-scale SVM learning practical", 1998; Z. Wen et al., "ThunderSVM", JMLR 19, 2018.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np

from ..compiled.decomposition import add_rows, gather, pairs, singles
from ..problems import Problem
from .kernel_rows import KernelRows

SET = 2048  # rows of a working set
NEW = 0.5  # share of it that is new
SHARE = 0.01  # of the violation of all, at which a working set is left
STEPS = 50  # for each row of a working set, at most
LEAST = 1e-13  # a violation, relative to the largest entry of the gradient, that is rounding


class Point(NamedTuple):
    """Dual weights, and the scores sum_j alpha_j y_j k(x_j, x_i) of every row, own coordinates left out."""

    alpha: np.ndarray
    scores: np.ndarray


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
        Sample weights, all positive.
    interrupted : callable
        Is it time to stop? Asked between working sets.
    start : ndarray of shape (n,), default=None
        Dual weights to begin with; feasible.

    Yields
    ------
    Point
        Ends when no pair violates optimality beyond rounding.
    """
    n = rows.n
    caps, own = problem.caps(weights), problem.delta2(weights)
    constant = problem.rho * problem.rho
    alpha, scores = np.zeros(n), np.zeros(n)
    if start is not None and start.any():
        alpha = np.minimum(start, caps)
        _update(rows, np.flatnonzero(alpha), alpha * y, scores)
    inner = pairs if problem.free else singles
    kept = np.zeros(0, dtype=np.intp)
    while not interrupted():
        gradient = y * scores + own * alpha - 1.0
        if constant:
            gradient += constant * y * float(alpha @ y)
        chosen, violation = working_set(problem, y, caps, alpha, gradient, kept, min(SET, rows.most))
        if chosen.size == 0 or violation <= LEAST * float(np.abs(gradient).max()):
            return
        slots = rows.slots(chosen)
        small = np.empty((chosen.size, chosen.size))
        gather(rows.rows, slots, chosen, small)
        small += constant
        small[np.diag_indices(chosen.size)] += own[chosen]
        part, before = alpha[chosen], alpha[chosen].copy()
        steps = inner(
            small, y[chosen], caps[chosen], part, gradient[chosen], SHARE * violation, STEPS * chosen.size
        )
        if steps == 0:
            return
        alpha[chosen] = part
        moved = part != before
        add_rows(rows.rows, slots[moved], ((part - before) * y[chosen])[moved], scores)
        kept = chosen
        yield Point(alpha.copy(), scores.copy())


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

    The worst of those that may still move come first, then the last ones of the set before.
    """
    n, new = y.size, max(2, int(NEW * size)) if kept.size else size
    high, low = alpha < caps, alpha > 0.0
    if problem.free:
        value = -y * gradient
        up, down = np.where(y > 0.0, high, low), np.where(y > 0.0, low, high)
        top = np.where(up, value, -np.inf)
        bottom = np.where(down, value, np.inf)
        violation = float(top.max() - bottom.min())
        # a pair is of use where they differ: what is beyond the other side's end
        rising = _worst(np.where(top > bottom.min(), top, -np.inf), new // 2)
        falling = _worst(np.where(bottom < top.max(), -bottom, -np.inf), new // 2)
        worst = np.union1d(rising, falling)
    else:
        lack = np.where((gradient < 0.0) & high, -gradient, np.where((gradient > 0.0) & low, gradient, 0.0))
        violation = float(lack.max(initial=0.0))
        worst = _worst(np.where(lack > 0.0, lack, -np.inf), new)
    rest = kept[~np.isin(kept, worst)][: max(0, size - worst.size)] if n > size else kept[:0]
    if n <= size:
        return np.arange(n), violation
    return np.union1d(worst, rest), violation


def _worst(value: np.ndarray, most: int) -> np.ndarray:
    """The places of the largest values, those that are -inf left out."""
    places = np.flatnonzero(value > -np.inf)
    if places.size > most:
        places = places[np.argpartition(-value[places], most)[:most]]
    return places


def _update(rows: KernelRows, places: np.ndarray, c: np.ndarray, scores: np.ndarray) -> None:
    """scores += sum of c_i k(x_i, .) over these places, a block at a time."""
    block = max(1, rows.most // 2)
    for first in range(0, places.size, block):
        some = places[first : first + block]
        add_rows(rows.rows, rows.slots(some), c[some], scores)
