"""Orders of presentation, and the compiled loops over rows: each is presented to the rule, which may update the weight.

`rule` is the update of an online algorithm and h its `state.Weight`. `scores` and `moved` are workspace with an entry
for each row.
"""

from __future__ import annotations

from math import gcd

import numpy as np

from .jit import compiled
from .state import STEPS, STOPPED

# Shifts of Marsaglia's xorshift64, whose period is 2^64 - 1.
LEFT1, RIGHT, LEFT2 = np.uint64(13), np.uint64(7), np.uint64(17)
# Bits of half a word, and the mask of its lower half.
HALF_WORD, LOW_MASK = np.uint64(32), np.uint64(0xFFFFFFFF)


@compiled()
def _shuffle(seed, out):
    """Write a random permutation to out, by the inside-out Fisher-Yates shuffle with xorshift64 numbers."""
    x = seed
    for j in range(out.size):
        x ^= x << LEFT1
        x ^= x >> RIGHT
        x ^= x << LEFT2
        i = ((x & LOW_MASK) * np.uint64(j + 1)) >> HALF_WORD  # uniform on 0 .. j, up to 2^-32
        out[j] = out[i]
        out[i] = np.uint32(j)


def shuffled(n: int, rng: np.random.Generator, block: int = 1) -> np.ndarray:
    """Return a random permutation of range(n): shape (n,), uint32.

    With `block` above 1, successive numbers stay together in blocks of this size, and the blocks are permuted.
    """
    blocks = np.zeros(-(-n // block), np.uint32)
    with np.errstate(over="ignore"):  # xorshift overflows by design; without compilation NumPy would warn
        _shuffle(np.uint64(rng.integers(1, 2**63)), blocks)
    if block == 1:
        return blocks
    rows = (blocks[:, None] * np.uint32(block) + np.arange(block, dtype=np.uint32)).ravel()
    return rows[rows < n]  # the block of the largest number may be shorter


def strides(n: int, rng: np.random.Generator) -> np.ndarray:
    """Return the numbers 0 .. n - 1 from a random start by a random stride that has no common divisor with n.

    Shape (n,), uint32. It is faster than a permutation, and sufficient for rows that already are in random order.
    """
    step = int(rng.integers(1, max(n, 2)))
    while gcd(step, n) != 1:
        step = step + 1 if step + 1 < n else 1
    start = int(rng.integers(max(n, 1)))
    return ((start + step * np.arange(n)) % max(n, 1)).astype(np.uint32)


@compiled(forceinline=True)
def sweep(rule, h, order, size, scores, moved):
    """Present the first `size` rows of order in turn; return the number of steps.

    The score of each row is written to `scores`, by its position in order, and the rows that made a step to the
    beginning of `moved`. If a step needs a kernel row that is not loaded, the sweep stops before it, adds the row to
    `moved` and counts it; the next call continues there.
    """
    first, steps = resumed(h)
    limit = rule.threshold(h)
    # unsigned, as a signed index would be tested for negative values
    for k in range(np.uint64(first), np.uint64(size)):
        i = order[k]
        s = h.score(i)
        scores[k] = s
        if rule.violates(h, i, s, limit):
            if not h.space.is_loaded(h, i):
                h.number[STOPPED], h.number[STEPS] = k + 1.0, steps
                moved[steps] = i  # this row makes a step when the sweep continues
                return steps + 1
            rule.step(h, i, s)
            limit = rule.threshold(h)
            moved[steps] = i
            steps += 1
    return steps


@compiled(forceinline=True)
def resumed(h):
    """Return the position in the order at which a sweep begins or continues, and its steps so far; clear the stop."""
    first, steps = 0, 0
    if h.number[STOPPED] > 0.0:
        first, steps = int(h.number[STOPPED]) - 1, int(h.number[STEPS])
        h.number[STOPPED] = 0.0
    return first, steps


@compiled()
def repeat(rule, h, order, scores, moved, passes):
    """Sweep over the same rows until none makes a step, at most `passes` times.

    Return (steps of the last sweep, number of sweeps, steps of all sweeps). A sweep that has stopped counts in the
    first number only.
    """
    steps = sweeps = total = 0
    while sweeps < passes:
        steps = sweep(rule, h, order, order.size, scores, moved)
        if h.number[STOPPED] > 0.0:
            break
        total += steps
        sweeps += 1
        if steps == 0:
            break
    return steps, sweeps, total


@compiled()
def shrinking_sweeps(rule, h, order, size, scores, passes):
    """Sweep over the first `size` rows of order, then over those that made a step, and so on, at most `passes` times.

    Rows that make a step are moved to the beginning of order. Return (rows of the next sweep, rows presented, steps,
    sweeps), without those of a sweep that has stopped.
    """
    presented = total = sweeps = 0
    while sweeps < passes:
        # order is also `moved`: a row is written to a position that has been read already
        steps = sweep(rule, h, order, size, scores, order)
        if h.number[STOPPED] > 0.0:
            break
        presented += size
        total += steps
        sweeps += 1
        size = steps
        if size == 0:
            break
    return size, presented, total, sweeps


@compiled()
def batches(rule, h, order, scores):
    """Present rows in mini-batches of `scores.size` rows, the last one shorter; return the number of steps.

    All rows of a mini-batch are scored before its first step, at the same w; `rule.begin_batch` then changes w as a
    whole, and `rule.end_batch` after the steps. If a step needs a row that is not loaded, the function stops, as a
    sweep does, and the next call continues with the same scores.
    """
    # first: where the mini-batch begins in `order`; start: the position in the mini-batch of its next row
    resumes = h.number[STOPPED] > 0.0
    position, steps = resumed(h)
    start = position % scores.size
    first = position - start
    while first < order.size:
        size = min(scores.size, order.size - first)
        limit = rule.threshold(h)
        if not resumes:
            for k in range(size):
                scores[k] = h.score(order[first + k])
            rule.begin_batch(h)
        for k in range(start, size):
            i = order[first + k]
            if rule.violates(h, i, scores[k], limit):
                if not h.space.is_loaded(h, i):
                    h.number[STOPPED], h.number[STEPS] = first + k + 1.0, steps
                    return steps
                rule.step(h, i, scores[k])
                steps += 1
        rule.end_batch(h)
        first += size
        start = 0
        resumes = False
    return steps


@compiled()
def begin(rule, h, order):
    """Set the first weight of a rule whose start uses the rows in `order`."""
    rule.start(h, order)


@compiled()
def score_rows(h, order, scores):
    """Write the score of every row i of order at the present w to scores[i]."""
    for k in range(order.size):
        i = order[k]
        scores[i] = h.score(i)


def objective_gap(h, order, scores, unit):
    """Return unit^2 times the terms of these rows in the primal minus the dual objective.

    `scores` is by position in `order`; `unit` is the score of a margin of one.
    """
    g = h.ids[order]
    return float(h.slack.gap_terms(scores[: order.size], h.alpha[g], h.cap[order], g, unit).sum())
