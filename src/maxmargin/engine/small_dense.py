"""A few patterns, solved in one call: their steps take microseconds, and calls between them would take longer.

These are Newton's method for squared losses (`batch.newton`) and the proximal-point method for the hinge
(`batch.proximal`), of the same loops over the patterns, up to the last digit. `weight` of a pattern is its share
1 / own for squared losses, and its cap for the hinge.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from .cholesky import add_products, mirror, products, substitute, triangular
from .jit import compiled, record
from .line_search import subtract
from .newton import changes, descend, follow, slacks, weigh
from .proximal_point import descend as descend_smoothed
from .proximal_point import follow as follow_smoothed
from .row_products import combine, scores_near

MOST = 200  # steps
NONE, STILL = 1e-20, 2  # a gap that is rounding; steps with the same costly patterns that may not lessen it
# share of a slope that is none: of squared losses, where the next step is exact, and of the hinge
FLAT, NOT_STEEP = 1e-6, 0.05
# share of the patterns inside that may have changed for their matrix to be changed with them: here a row is a row, BLAS
# is faster the more there are
ANEW = 1.0
FALL = 1e-3  # share of its greatest diagonal below which a matrix has lost three digits
# columns for each pattern inside, from which on products of rows take less than those of columns; what is left of a
# diagonal of ones where rows depend on each other too much for that
FEWER, LOST = 2, 1e-6
# the first share of a diagonal of ones that is added where there is no factor, and how many are tried
RIDGE, RIDGES = 1e-14, 4
RISE, STEADY = 7.0, 2.0  # how sigma rises while many patterns are inside, and then,
# and where these are known, and by how much more each time they still are; how far beyond the largest
AT_ONCE, MORE, BEYOND = 30.0, 10.0, 1e4
EASY = 2  # steps with one sigma, after which a far larger one may do
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
    """Room to work, in few arrays: a call takes longer the more it is given.

    patterns, of shape (2, n): dual weights with their signs; what slacks lose.
    marks, of shape (2, n): which patterns are wanted inside; which are.
    places, of shape (2, n): of those that came, and of those that have gone.
    matrices, of shape (3, size, size): of the patterns inside; of those that came or have gone, or the rows of few
    inside; the factor.
    turned, of shape (size, any): a few rows, for products of columns.
    vectors, of shape (8, size): the most that the diagonal has been; what `triangular` leaves of two; the sum of the
    patterns, until `among` has room of it; the gradient; the way; what `among` makes of two.
    """

    patterns: Any
    marks: Any
    places: Any
    matrices: Any
    turned: Any
    vectors: Any


@compiled()
def squared(few, enough, most, z, slack, desk):
    """To the least point of squared losses, from z with these slacks; or to the first whose bounds are near enough.

    (Is it found? In how many steps, the most of which are given?) At the optimum the same patterns are costly as before
    the last step, and nothing is left of the gradient; where that is but asked for to a gap, what the matrix says of
    the gradient will do, and of the sums only what is new is made.
    """
    signed, gained = desk.patterns[0], desk.patterns[1]
    wanted = desk.marks[0]
    came = desk.places[0]
    sums, gradient, dz = desk.vectors[3], desk.vectors[4], desk.vectors[5]
    gap, again, known = np.inf, 0, False
    for steps in range(most):
        total, square = weigh(slack, few.weight, few.y, signed)
        if not known:
            combine(few.rows, signed, came, sums)
        _, left, size = subtract(few.regular, z, sums, gradient)
        dual = 0.5 * total * total / (size + square) if size + square > 0.0 else 0.0
        if not dual > 0.0:
            return False, steps
        uneven = sums[z.size - 1] / total if few.free else 0.0
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
            wanted[k] = slack[k] > 0.0
        gather(few, 1.0, desk)
        if not towards(few, 1.0, 0.0, desk):
            return False, steps
        scores_near(few.rows, dz, gained)
        t = descend(slack, gained, few.y, few.weight, z, dz, few.regular, gradient, FLAT)
        if not t > 0.0:
            return gap <= NONE, steps
        again = 0 if follow(slack, gained, t, wanted) else again + 1
        if enough > 0.0:
            left = onward(few, t, desk)
            left += 2.0 * abs(gradient[z.size - 1]) * (1.0 + abs(z[z.size - 1])) if few.free else 0.0
            if again > 0 and 0.5 * left <= enough * dual:
                return True, steps
            known = again == 0 and carry(few, z, slack, desk)
        if again == 1:
            lacking(few, z, slack)  # without what rounding has added up
    return False, most


@compiled()
def onward(few, t, desk):
    """The gradient t steps on, as if no pattern changed. (The sum of the squares that R leaves of it.)"""
    matrix, gradient, dz = desk.matrices[0], desk.vectors[4], desk.vectors[5]
    left = 0.0
    for i in range(dz.size):
        total = few.regular[i] * dz[i]
        for j in range(dz.size):
            total += matrix[i, j] * dz[j]
        gradient[i] += t * total
        left += few.regular[i] * gradient[i] * gradient[i]
    return left


@compiled()
def carry(few, z, slack, desk):
    """The sums, from that gradient and what has changed, where that is less than what is costly. (Is it?)"""
    signed, wanted, came = desk.patterns[0], desk.marks[0], desk.places[0]
    sums, gradient = desk.vectors[3], desk.vectors[4]
    changed = count = 0
    for k in range(slack.size):
        costly = slack[k] > 0.0
        differ = costly != wanted[k]
        signed[k] = few.y[k] * few.weight[k] * abs(slack[k]) if differ else 0.0
        changed += differ
        count += costly
    if changed >= count:
        return False
    combine(few.rows, signed, came, sums)
    for j in range(z.size):
        sums[j] += few.regular[j] * z[j] - gradient[j]
    return True


@compiled()
def hinge(few, signed, enough, near, share, sigma, steep, z, slack, desk):
    """To the least point of the hinge, from z with these slacks and shares; or to the first of a gap that is enough.

    (Is it found?) At the optimum a problem is solved and shares do not move: what is free is tight then, all else on
    its side. As soon as it is known which patterns are free sigma rises fast: only digits of their shares are missing.
    With a larger sigma slacks that are not quite 0 cut the shares of most of them, which then come back one by one: the
    first step goes where those inside would, were they `held` there.
    """
    gained = desk.patterns[1]
    wanted, inside = desk.marks[0], desk.marks[1]
    gradient, dz = desk.vectors[4], desk.vectors[5]
    whole = 0.0
    for k in range(slack.size):
        whole += few.weight[k]
        gained[k] = 0.0
    t, steps, first, off, held, jump = 0.0, 0, np.inf, np.inf, False, AT_ONCE
    for _ in range(MOST):
        steepness, gap, total, count = value(few, signed, near, share, sigma, z, slack, t, held, desk)
        first = steepness if steps == 0 else first
        if enough > 0.0 and gap <= enough and not held:
            return True
        if steepness <= max(LESS * first, ROUNDING * total) and not held:
            last, off = off, moved(near, share) / sigma
            length = 1.0
            for j in range(z.size):
                length += abs(z[j])
            still = off <= LAST * length or (off <= NEXT_TO_LAST * length and off > HALF * last)
            if still and gap <= SHARP and steepness <= ROUNDING * total:
                return True
            if gap <= KNOWN and same(inside, wanted):
                sigma = max(sigma, min(jump * sigma, BEYOND * steep))
                jump *= MORE
            else:
                jump = AT_ONCE
                rise = RISE if count > FULL * z.size or steps <= EASY else STEADY
                rise *= RISE if count == near.size else 1.0  # nothing has been cut yet
                sigma = max(sigma, min(sigma * (rise if steps <= LONG else rise**0.5), steep))
            if gap <= KNOWN:
                lacking(few, z, slack)  # without what rounding has added up
            t, steps, held = 0.0, 0, True
            continue
        if not (count > 0 and FEWER * count <= z.size and among(few, sigma, count, desk)):
            gather(few, sigma, desk)
            if not towards(few, sigma, 0.0 if count or not few.free else LOOSE * sigma * whole, desk):
                return False
        scores_near(few.rows, dz, gained)
        t = descend_smoothed(
            near, sigma, slack, gained, few.y, few.weight, z, dz, few.regular, gradient, NOT_STEEP
        )  # fmt: skip
        if not (t > 0.0 or held):
            return False
        steps += 0 if held else 1
        held = False
    return False


@compiled()
def value(few, signed, near, share, sigma, z, slack, t, held, desk):
    """The shares t steps on, which patterns are inside, and the gradient.

    (Its largest entry; the gap; the sum of the dual weights; how many patterns are inside.) Where the patterns inside
    are held, nothing cuts what their shares add to it.
    """
    pull, gained = desk.patterns[0], desk.patterns[1]
    wanted = desk.marks[0]
    came = desk.places[0]
    sums, gradient = desk.vectors[3], desk.vectors[4]
    loss, total = follow_smoothed(near, sigma, slack, gained, t, few.weight, signed, share, pull)
    count = 0
    for k in range(share.size):
        if held:
            pull[k] = signed[k] * (near[k] + sigma * slack[k]) if wanted[k] else pull[k]
        else:
            wanted[k] = share[k] > 0.0 and share[k] < 1.0
        count += wanted[k]
    combine(few.rows, pull, came, sums)
    steepness, _, size = subtract(few.regular, z, sums, gradient)
    primal, dual = loss, total - 0.5 * size
    for j in range(z.size):
        primal += 0.5 * few.regular[j] * z[j] * z[j]
    uneven = abs(sums[z.size - 1]) if few.free else 0.0
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
def gather(few, sigma, desk):
    """The matrix of the patterns wanted, from that of those inside: with those that come or go, or anew.

    What went has taken digits along: few enough of what sigma times the diagonal is with what is regularised.
    """
    wanted, inside = desk.marks[0], desk.marks[1]
    entering, leaving = desk.places[0], desk.places[1]
    matrix, more = desk.matrices[0], desk.matrices[1]
    top = desk.vectors[0]
    size = matrix.shape[0]
    came, gone, count = changes(wanted, inside, entering, leaving)
    anew = came + gone > ANEW * count or not top[0] < np.inf
    if came and not anew:
        products(few.rows, few.weight, entering[:came], desk.turned, more)
        for i in range(size):
            for j in range(size):
                matrix[i, j] += more[i, j]
            top[i] = max(top[i], matrix[i, i])
    if gone and not anew:
        products(few.rows, few.weight, leaving[:gone], desk.turned, more)
        for i in range(size):
            for j in range(size):
                matrix[i, j] -= more[i, j]
    for i in range(size):
        anew |= sigma * matrix[i, i] + few.regular[i] < FALL * sigma * top[i]
    if anew:
        inside[:] = False
        changes(wanted, inside, entering, leaving)
        products(few.rows, few.weight, entering[:count], desk.turned, matrix)
        for i in range(size):
            top[i] = matrix[i, i]
    for k in range(inside.size):
        inside[k] = wanted[k]


@compiled()
def towards(few, sigma, loose, desk):
    """dz = where Newton's method goes; `loose` is what holds the last weight besides. (Is there a way?)"""
    matrix, factor = desk.matrices[0], desk.matrices[2]
    root, inverse, gradient, dz = desk.vectors[1], desk.vectors[2], desk.vectors[4], desk.vectors[5]
    size = dz.size
    for i in range(size):
        for j in range(i, size):
            factor[i, j] = sigma * matrix[i, j]
        factor[i, i] += few.regular[i]
    factor[size - 1, size - 1] += loose
    ridge = 0.0
    for _ in range(RIDGES):
        if triangular(factor, root, ridge, inverse):
            substitute(factor, root, inverse, gradient, dz)
            for j in range(size):
                dz[j] = -dz[j]
            return True
        ridge = max(RIDGE, 100.0 * ridge)
    return False


@compiled()
def among(few, sigma, count, desk):
    """The same of few patterns inside, from the products of their rows. (Is there a way, and with enough digits?)

    What such a row gains, times sigma and its weight, is its a: with B of these rows, what is regularised, and
    K = BB' + 1 / (sigma weight) on its diagonal, K a = c beta - B g and c'a = -g_c, where c is the column of a free
    intercept and beta its step; dz = -g - B'a of all else. The matrix of the columns is lost, as what its diagonal has
    been says.
    """
    wanted, inside = desk.marks[0], desk.marks[1]
    rows, factor, places = desk.matrices[1], desk.matrices[2], desk.places[0]
    top, gradient, dz, size = desk.vectors[0], desk.vectors[4], desk.vectors[5], desk.vectors.shape[1]
    root, inverse, right = desk.vectors[1][:count], desk.vectors[2][:count], desk.vectors[3][:count]
    alone, own = desk.vectors[6][:count], desk.vectors[7][:count]
    found = 0
    for k in range(wanted.size):
        places[found] = k
        found += wanted[k]
    for i in range(count):
        row, total = few.rows[places[i]], 0.0
        for j in range(size):
            rows[i, j] = few.regular[j] * row[j]
            total -= rows[i, j] * gradient[j]
        right[i] = total
        for j in range(count):
            factor[i, j] = 0.0
    add_products(rows, count, size, factor)
    for i in range(count):
        factor[i, i] += 1.0 / (sigma * few.weight[places[i]])
    mirror(count, factor)
    if not triangular(factor, root, 0.0, inverse):
        return False
    for i in range(count):
        if not LOST * inverse[i] * inverse[i] < 1.0:
            return False
    substitute(factor, root, inverse, right, alone)
    beta = 0.0
    if few.free:
        for i in range(count):
            right[i] = few.rows[places[i], size - 1]
        substitute(factor, root, inverse, right, own)
        rest, pull = -gradient[size - 1], 0.0
        for i in range(count):
            rest -= right[i] * alone[i]
            pull += right[i] * own[i]
        beta = rest / pull
        for i in range(count):
            alone[i] += beta * own[i]
    for j in range(size):
        dz[j] = -few.regular[j] * gradient[j]
    add_rows(rows, -1.0, alone, dz)
    if few.free:
        dz[size - 1] = beta
    for i in range(count):  # digits of what the rows gain are lost where they nearly cancel g: once more
        k = places[i]
        rest = beta * few.rows[k, size - 1]
        for j in range(size):
            rest += rows[i, j] * dz[j]
        right[i] = alone[i] / (sigma * few.weight[k]) - rest
    substitute(factor, root, inverse, right, own)
    add_rows(rows, 1.0, own, dz)
    for k in range(inside.size):
        inside[k] = wanted[k]
    top[:] = np.inf
    return True


@compiled()
def add_rows(rows, sign, c, out):
    """out += sign c times the first rows."""
    for i in range(c.size):
        for j in range(out.size):
            out[j] += sign * c[i] * rows[i, j]


@compiled()
def lacking(few, z, slack):
    """The slacks of z."""
    scores_near(few.rows, z, slack)
    slacks(slack, few.y, 0.0)
