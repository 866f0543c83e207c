"""The only hot loops: rows are presented in turn, the rule decides, the weight is updated."""

from __future__ import annotations

import numpy as np

from .jit import compiled
from .state import STEPS, STOPPED, refresh


# inlined by Numba into each caller: forceinline, by which LLVM inlines, leaves a compiled function of its own for each
# signature as well, half as much again to compile
@compiled(inline="always")
def sweep(rule, h, order, size, scores, moved):
    """Present the first `size` rows of order in turn; write every score, and list the rows that made a step.

    Where a step needs a row of the kernel that is not loaded the sweep stops before it, and the next call goes on
    there. Return the number of steps.
    """
    first = steps = 0
    if h.stopped():
        first, steps = resumed(h)
    limit = rule.threshold(h)
    # unsigned: every signed index would be tested for a negative one
    for k in range(np.uint64(first), np.uint64(size)):
        i = order[k]
        s = h.score(i)
        scores[k] = s
        if rule.wrong(h, i, s, limit):
            if not h.is_loaded(i):
                h.stop_before(k, steps)
                moved[steps] = i  # whatever its step will be, this row is wrong
                return steps + 1
            rule.step(h, i, s)
            limit = rule.threshold(h)
            moved[steps] = i
            steps += 1
    return steps


@compiled(inline="always")
def resumed(h):
    """Return the place where a stopped sweep goes on, and the steps that it has made."""
    first = max(int(h.number[STOPPED]) - 1, 0)
    h.number[STOPPED] = 0.0
    return first, int(h.number[STEPS])


@compiled()
def repeat(rule, h, order, scores, moved, passes):
    """Sweep over the same rows until none makes a step; return (steps of the last sweep, sweeps, steps of all).

    Sweeps and steps do not count one that has stopped.
    """
    steps = sweeps = made = 0
    while sweeps < passes:
        steps = sweep(rule, h, order, order.size, scores, moved)
        if h.stopped():
            break
        made += steps
        sweeps += 1
        if steps == 0:
            break
    return steps, sweeps, made


@compiled()
def trace(rule, h, order, scores, moved, iterates):
    """Sweep the same rows; write their dual variables before and after each sweep, a row of `iterates` each.

    Return (steps of the last sweep, steps of all).
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
def shrinking_sweeps(rule, h, order, size, scores, passes):
    """Sweep, then again over the rows that made a step, until none does; these are moved to the front of order.

    Return (rows left, rows presented, steps, sweeps), all but those of a sweep that has stopped.
    """
    presented = made = sweeps = 0
    while sweeps < passes:
        steps = sweep(rule, h, order, size, scores, order)
        if h.stopped():
            break
        presented += size
        made += steps
        sweeps += 1
        size = steps
        if size == 0:
            break
    return size, presented, made, sweeps


@compiled()
def batches(rule, h, order, scores):
    """Present rows in mini-batches as long as `scores`, the last cut short; all of one are scored at one w.

    Where a step needs a row that is not loaded this stops, as a sweep does, and goes on with the same scores. Return
    the number of steps.
    """
    steps = first = begun = 0
    within = h.stopped()
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
                if not h.is_loaded(i):
                    h.stop_before(first + k, steps)
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
    """Set the first weight of a rule that begins with patterns."""
    rule.start(h, order)


@compiled()
def weight_from_duals(h, alpha, length):
    """Set w to the sum that these dual variables make, scaled to this length."""
    for i in range(alpha.size):
        if alpha[i] > 0.0:
            h.add(i, alpha[i])
    refresh(h)
    if h.norm2() > 0.0:
        h.shrink(length * h.norm2() ** -0.5)
        refresh(h)


@compiled()
def score_rows(h, order, scores):
    """Write the score of every row of order at the present w: row i's to scores[i]."""
    for k in range(order.size):
        i = order[k]
        scores[i] = h.score(i)


@compiled()
def objective_gap(h, order, scores, unit):
    """Return the part of these rows in primal minus dual objective, in units of unit^2, by their scores."""
    total = 0.0
    for k in range(order.size):
        i = order[k]
        g = h.ids[i]
        total += h.slack.gap_term(scores[k], h.alpha[g], h.cap[i], g, unit)
    return total


@compiled()
def movable_rows(h, scores, low, high, out):
    """List the rows whose dual variable may still move: not at a bound that a score beyond low or high holds."""
    count = 0
    for i in range(scores.size):
        a = h.alpha[h.ids[i]]
        s = scores[i]
        out[count] = i  # written in any case and kept or not: a branch here is seldom predicted
        count += ((s < high) | (a > 0.0)) & ((s > low) | (a < h.cap[i]))
    return count


@compiled()
def set_duals(h, rows, target):
    """Set the dual variable of each row to its target, cut at 0 and at its cap."""
    for k in range(rows.size):
        i = rows[k]
        a = min(max(target[k], 0.0), h.cap_of(i))
        if a != h.dual(i):
            h.set_dual(i, a)
