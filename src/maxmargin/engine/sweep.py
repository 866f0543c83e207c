"""The only hot loops: rows are presented in turn, the rule decides, the weight obeys."""

from __future__ import annotations

import numpy as np

from .jit import compiled
from .state import HALT, MADE, settle


# inlined by Numba into each caller: forceinline, by which LLVM inlines, leaves a compiled function of its own for each
# signature as well, half as much again to compile
@compiled(inline="always")
def sweep(rule, h, order, size, scores, moved):
    """Present the first `size` rows of order in turn; note every score, and list the rows that made a step.

    Where a step needs what is not at hand the sweep halts before it; the next call goes on there. (Steps.)
    """
    first = steps = 0
    if h.halted():
        first, steps = resumed(h)
    limit = rule.threshold(h)
    for k in range(np.uint64(first), np.uint64(size)):  # signed, it would be asked whether it is negative
        i = order[k]
        s = h.score(i)
        scores[k] = s
        if rule.wrong(h, i, s, limit):
            if not h.at_hand(i):
                h.halt(k, steps)
                moved[steps] = i  # whatever its step will be, this row is wrong
                return steps + 1
            rule.step(h, i, s)
            limit = rule.threshold(h)
            moved[steps] = i
            steps += 1
    return steps


@compiled(inline="always")
def resumed(h):
    """Where a halted sweep goes on, and the steps that it has made."""
    first = max(int(h.number[HALT]) - 1, 0)
    h.number[HALT] = 0.0
    return first, int(h.number[MADE])


@compiled()
def repeat(rule, h, order, scores, moved, passes):
    """Sweep again and again over the same rows until all are right; (steps of the last sweep, sweeps, steps).

    Sweeps and steps do not count one that has halted.
    """
    made = 0
    steps = 0
    n = 0
    while n < passes:
        steps = sweep(rule, h, order, order.size, scores, moved)
        if h.halted():
            break
        made += steps
        n += 1
        if steps == 0:
            break
    return steps, n, made


@compiled()
def trace(rule, h, order, scores, moved, iterates):
    """Sweep the same rows; `iterates` gets their dual weights before and after each sweep, a line each.

    (Steps of the last sweep, steps.)
    """
    made = steps = 0
    for n in range(iterates.shape[0]):
        if n > 0:
            steps = sweep(rule, h, order, order.size, scores, moved)
            made += steps
        for k in range(order.size):
            iterates[n, k] = h.alpha[h.ids[order[k]]]
    return steps, made


@compiled()
def narrow(rule, h, order, size, scores, passes):
    """Sweep, then again over those that made a step, until none is left (they are moved to the front of order).

    (Rows left, rows presented, steps, sweeps); all but those of a sweep that has halted.
    """
    seen = made = 0
    n = 0
    while n < passes:
        steps = sweep(rule, h, order, size, scores, order)
        if h.halted():
            break
        seen += size
        made += steps
        n += 1
        size = steps
        if size == 0:
            break
    return size, seen, made, n


@compiled()
def batches(rule, h, order, scores):
    """Present rows in mini-batches as long as `scores`, the last cut short; all of one are scored at one w. (Steps.)

    Where a step needs what is not at hand this halts, as a sweep does, and goes on with the same scores.
    """
    steps = first = begun = 0
    within = h.halted()
    if within:
        begun, steps = resumed(h)
        first = begun // scores.size * scores.size
        begun -= first
    while first < order.size:
        size = min(scores.size, order.size - first)
        limit = rule.threshold(h)
        if not within:
            for k in range(size):
                scores[k] = h.score(order[first + k])
            rule.fade(h)
        for k in range(begun, size):
            i = order[first + k]
            if rule.wrong(h, i, scores[k], limit):
                if not h.at_hand(i):
                    h.halt(first + k, steps)
                    return steps
                rule.step(h, i, scores[k])
                steps += 1
        rule.confine(h)
        first += size
        begun = 0
        within = False
    return steps


@compiled()
def begin(rule, h, order):
    """The first weight of a rule that begins with patterns."""
    rule.start(h, order)


@compiled()
def restore(h, alpha, length):
    """Begin at the w that these dual weights make, made as long as this."""
    for i in range(alpha.size):
        if alpha[i] > 0.0:
            h.add(i, alpha[i])
    settle(h)
    if h.norm2() > 0.0:
        h.shrink(length * h.norm2() ** -0.5)
        settle(h)


@compiled()
def look(h, order, scores):
    """The score of every row at one and the same w, in whatever order; row i's is scores[i]."""
    for k in range(order.size):
        i = order[k]
        scores[i] = h.score(i)


@compiled()
def excess(h, order, scores, unit):
    """Primal minus dual objective, in units of unit^2, as the scores of these rows tell it."""
    total = 0.0
    for k in range(order.size):
        i = order[k]
        g = h.ids[i]
        total += h.slack.excess(scores[k], h.alpha[g], h.cap[i], g, unit)
    return total


@compiled()
def unsettled(h, scores, low, high, out):
    """List the rows whose dual weight may still move: not at a bound that a score beyond low or high holds."""
    count = 0
    for i in range(scores.size):
        a = h.alpha[h.ids[i]]
        s = scores[i]
        out[count] = i  # written in any case and kept or not: a branch here is seldom foreseen
        count += ((s < high) | (a > 0.0)) & ((s > low) | (a < h.cap[i]))
    return count


@compiled()
def reach(h, rows, target):
    """Bring the dual weight of each row to its target, cut at 0 and at its cap."""
    for k in range(rows.size):
        i = rows[k]
        a = min(max(target[k], 0.0), h.room(i))
        if a != h.dual(i):
            h.reach(i, a)
