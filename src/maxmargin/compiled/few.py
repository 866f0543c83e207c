"""A few patterns, solved in one call: their steps take microseconds, and calls between them would take longer.

These are Newton's method for squared losses (`batch.newton`) and the proximal-point method for the hinge
(`batch.proximal`), of the same loops over the patterns, up to the last digit. `weight` of a pattern is its share
1 / own for squared losses, and its cap for the hinge.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from .definite import products, substitute, triangular
from .jit import compiled, record
from .lines import subtract
from .newton import changes, descend, follow, weigh
from .proximal import descend as descend_smoothed
from .proximal import follow as follow_smoothed
from .rows import combine, scores

MOST = 200  # steps
NONE, STILL = 1e-20, 2  # a gap that is rounding; steps with the same costly patterns that may not lessen it
# share of a slope that is none: of squared losses, where the next step is exact, and of the hinge
FLAT, NOT_STEEP = 1e-6, 0.05
# share of the patterns inside that may have changed for their matrix to be changed with them: here a row is a row, BLAS
# is faster the more there are
ANEW = 1.0
FALL = 1e-3  # share of its greatest diagonal below which a matrix has lost three digits
# the first share of a diagonal of ones that is added where there is no factor, and how many are tried
RIDGE, RIDGES = 1e-14, 4
RISE, STEADY = 7.0, 2.0  # how sigma rises while many patterns are inside, and then,
AT_ONCE, BEYOND = 30.0, 1e4  # and where these are known; by how much more than before
FULL, LONG = 4.0, 4  # patterns inside, for each column, that are many; steps after which sigma rises by less
KNOWN = 1e-5  # a gap at which the patterns that are inside twice are known to be
# of the gradient, at which a problem is solved; of all dual weights, where it is none
LESS, ROUNDING = 0.1, 1e-14
LOOSE = 1e-2  # share of all caps that holds an intercept no pattern inside holds
SHARP = 1e-9  # the gap of a point that may be exact
# slacks, of 1 + |z|, that are rounding; those that are so where the next ones are not less by half
LAST, NEXT_TO_LAST, HALF = 1e-15, 1e-12, 0.5


@record
class Few(NamedTuple):
    """Rows (x, constant) about their mean, of length one on average, and what each weighs.

    `regular` is 1 for every weight of z that is regularised, 0 for a free intercept.
    """

    rows: Any
    y: Any
    weight: Any
    regular: Any
    free: Any


@record
class Desk(NamedTuple):
    """Room to work: of every pattern, then of every coordinate.

    `matrix` is that of the patterns `inside`, `top` the most that its diagonal has been.
    """

    signed: Any
    gained: Any
    wanted: Any
    inside: Any
    came: Any
    gone: Any
    matrix: Any
    more: Any
    factor: Any
    top: Any
    root: Any
    inverse: Any
    sums: Any
    gradient: Any
    dz: Any


@compiled()
def squared(few, enough, most, z, slack, desk):
    """To the least point of squared losses, from z with these slacks; or to the first whose bounds are near enough.

    (Is it found? In how many steps, the most of which are given?) At the optimum the same patterns are costly as before
    the last step, and nothing is left of the gradient.
    """
    gap, again = np.inf, 0
    for steps in range(most):
        total, square = weigh(slack, few.weight, few.y, desk.signed)
        combine(few.rows, desk.signed, desk.came, desk.sums)
        _, left, size = subtract(few.regular, z, desk.sums, desk.gradient)
        dual = 0.5 * total * total / (size + square) if size + square > 0.0 else 0.0
        if not dual > 0.0:
            return False, steps
        uneven = desk.sums[z.size - 1] / total if few.free else 0.0
        last, gap = gap, 0.5 * left / dual + uneven * uneven
        if again > STILL and (gap <= NONE or 0.5 * last <= gap):
            return gap <= NONE, steps
        if enough > 0.0:
            primal = 0.5 * square
            for j in range(z.size):
                primal += 0.5 * few.regular[j] * z[j] * z[j]
            # weights that balance are worth less by about so much for each unit of the intercept
            lower = dual - abs(uneven) * total * (1.0 + abs(z[z.size - 1]))
            if primal - lower <= enough * lower:
                return True, steps
        for k in range(slack.size):
            desk.wanted[k] = slack[k] > 0.0
        gather(few, desk)
        if not towards(few, 1.0, 0.0, desk):
            return False, steps
        scores(few.rows, desk.dz, desk.gained)
        t = descend(slack, desk.gained, few.y, few.weight, z, desk.dz, few.regular, desk.gradient, FLAT)
        if not t > 0.0:
            return gap <= NONE, steps
        again = 0 if follow(slack, desk.gained, t, desk.wanted) else again + 1
        if again == 1:
            lacking(few, z, slack)  # without what rounding has added up
    return False, most


@compiled()
def hinge(few, signed, enough, near, share, sigma, steep, z, slack, desk):
    """To the least point of the hinge, from z with these slacks and shares; or to the first of a gap that is enough.

    (Is it found?) At the optimum a problem is solved and shares do not move: what is free is tight then, all else on
    its side. As soon as it is known which patterns are free sigma rises fast: only digits of their shares are missing.
    """
    whole = 0.0
    for k in range(slack.size):
        whole += few.weight[k]
        desk.gained[k] = 0.0
    t, steps, first, off = 0.0, 0, np.inf, np.inf
    for _ in range(MOST):
        steepness, gap, total, count = value(few, signed, near, share, sigma, z, slack, t, desk)
        first = steepness if steps == 0 else first
        if 0.0 < enough and gap <= enough:
            return True
        if steepness <= max(LESS * first, ROUNDING * total):
            last, off = off, moved(near, share) / sigma
            length = 1.0
            for j in range(z.size):
                length += abs(z[j])
            still = off <= LAST * length or (off <= NEXT_TO_LAST * length and off > HALF * last)
            if still and gap <= SHARP and steepness <= ROUNDING * total:
                return True
            if gap <= KNOWN and same(desk.inside, desk.wanted):
                sigma = max(sigma, min(AT_ONCE * sigma, BEYOND * steep))
            else:
                rise = RISE if count > FULL * z.size else STEADY
                sigma = max(sigma, min(sigma * (rise if steps <= LONG else rise**0.5), steep))
            lacking(few, z, slack)
            t, steps = 0.0, 0
            continue
        gather(few, desk)
        if not towards(few, sigma, 0.0 if count or not few.free else LOOSE * sigma * whole, desk):
            return False
        scores(few.rows, desk.dz, desk.gained)
        t = descend_smoothed(
            near, sigma, slack, desk.gained, few.y, few.weight, z, desk.dz, few.regular, desk.gradient, NOT_STEEP
        )  # fmt: skip
        if not t > 0.0:
            return False
        steps += 1
    return False


@compiled()
def value(few, signed, near, share, sigma, z, slack, t, desk):
    """The shares t steps on, which patterns are inside, and the gradient.

    (Its largest entry; the gap; the sum of the dual weights; how many patterns are inside.)
    """
    loss, total = follow_smoothed(near, sigma, slack, desk.gained, t, few.weight, signed, share, desk.signed)
    count = 0
    for k in range(share.size):
        desk.wanted[k] = 0.0 < share[k] and share[k] < 1.0
        count += desk.wanted[k]
    combine(few.rows, desk.signed, desk.came, desk.sums)
    steepness, _, size = subtract(few.regular, z, desk.sums, desk.gradient)
    primal, dual = loss, total - 0.5 * size
    for j in range(z.size):
        primal += 0.5 * few.regular[j] * z[j] * z[j]
    uneven = abs(desk.sums[z.size - 1]) if few.free else 0.0
    return steepness, (abs(primal - dual) + uneven) / dual if dual > 0.0 else np.inf, total, count


@compiled()
def moved(near, share):
    """near = share. (By how much one has moved at most.)"""
    most = 0.0
    for k in range(near.size):
        most = max(most, abs(share[k] - near[k]))
        near[k] = share[k]
    return most


@compiled()
def same(some, others):
    """Are these the same patterns?"""
    differ = False
    for k in range(some.size):
        differ |= some[k] != others[k]
    return not differ


@compiled()
def gather(few, desk):
    """The matrix of the patterns wanted, from that of those inside: with those that come or go, or anew."""
    size = desk.matrix.shape[0]
    came, gone, count = changes(desk.wanted, desk.inside, desk.came, desk.gone)
    anew = came + gone > ANEW * count
    if came and not anew:
        products(few.rows, few.weight, desk.came[:came], desk.more)
        for i in range(size):
            for j in range(size):
                desk.matrix[i, j] += desk.more[i, j]
            desk.top[i] = max(desk.top[i], desk.matrix[i, i])
    if gone and not anew:
        products(few.rows, few.weight, desk.gone[:gone], desk.more)
        for i in range(size):
            for j in range(size):
                desk.matrix[i, j] -= desk.more[i, j]
            anew |= desk.matrix[i, i] < FALL * desk.top[i]
    if anew:
        desk.inside[:] = False
        changes(desk.wanted, desk.inside, desk.came, desk.gone)
        products(few.rows, few.weight, desk.came[:count], desk.matrix)
        for i in range(size):
            desk.top[i] = desk.matrix[i, i]
    for k in range(desk.inside.size):
        desk.inside[k] = desk.wanted[k]


@compiled()
def towards(few, sigma, loose, desk):
    """dz = where Newton's method goes; `loose` is what holds the last weight besides. (Is there a way?)"""
    size = desk.dz.size
    for i in range(size):
        for j in range(i, size):
            desk.factor[i, j] = sigma * desk.matrix[i, j]
        desk.factor[i, i] += few.regular[i]
    desk.factor[size - 1, size - 1] += loose
    ridge = 0.0
    for _ in range(RIDGES):
        if triangular(desk.factor, desk.root, ridge, desk.inverse):
            substitute(desk.factor, desk.root, desk.inverse, desk.gradient, desk.dz)
            for j in range(size):
                desk.dz[j] = -desk.dz[j]
            return True
        ridge = max(RIDGE, 100.0 * ridge)
    return False


@compiled()
def lacking(few, z, slack):
    """The slacks of z."""
    scores(few.rows, z, slack)
    for k in range(slack.size):
        slack[k] = 1.0 - few.y[k] * slack[k]
