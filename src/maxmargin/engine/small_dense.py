"""The proximal-point method for the hinge on few dense rows, in one compiled call.

The method is that of `algorithms.batch.proximal_point`, with its loops over the rows. A row is active where its dual
weight lies strictly between 0 and its cap; `weight` is the cap.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from .cholesky import add_products, mirror, products, substitute, triangular
from .jit import compiled, record
from .line_search import subtract
from .newton import changes, slacks
from .proximal_point import descend, follow
from .row_products import combine, scores_near

MOST = 200  # steps
NOT_STEEP = 0.05  # share of a slope at which a line search ends
# share of the patterns inside that may have changed for their matrix to be changed with them: here a row is a row, BLAS
# is faster the more there are
ANEW = 1.0
FALL = 1e-3  # share of its greatest diagonal below which a matrix has lost three digits
# columns for each pattern inside, from which on products of rows take less than those of columns; what is left of a
# diagonal of ones where rows depend on each other too much for that
WOODBURY_FROM, LOST = 2, 1e-6
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
class SmallDense(NamedTuple):
    """Rows (x, constant) about their mean, of length one on average, and what each weighs.

    `regular` is 1 for every weight of z that is regularised, 0 for a free intercept.
    """

    rows: Any
    y: Any
    weight: Any
    regular: Any
    free: Any


@record
class Workspace(NamedTuple):
    """Workspace in few arrays: a call takes longer the more arguments it is given.

    patterns, of shape (2, n): dual weights with their signs; what slacks lose.
    marks, of shape (2, n): which patterns are wanted inside; which are.
    places, of shape (2, n): of those that came, and of those that have gone.
    matrices, of shape (3, size, size): of the patterns inside; of those that came or have gone, or the rows of few
    inside; the factor.
    turned, of shape (size, any): a few rows, for products of columns.
    vectors, of shape (8, size): the most that the diagonal has been; what `triangular` leaves of two; the sum of the
    patterns, until `woodbury_step` has room of it; the gradient; the way; what `woodbury_step` makes of two.
    """

    patterns: Any
    marks: Any
    places: Any
    matrices: Any
    turned: Any
    vectors: Any


@compiled()
def hinge(task, signed, enough, near, share, sigma, steep, z, slack, work):
    """To the least point of the hinge, from z with these slacks and shares; or to the first of a gap that is enough.

    (Is it found?) At the optimum a problem is solved and shares do not move: what is free is tight then, all else on
    its side. As soon as it is known which patterns are free sigma rises fast: only digits of their shares are missing.
    With a larger sigma slacks that are not quite 0 cut the shares of most of them, which then come back one by one: the
    first step goes where those inside would, were they `frozen` there.
    """
    gained = work.patterns[1]
    wanted, inside = work.marks[0], work.marks[1]
    gradient, dz = work.vectors[4], work.vectors[5]
    whole = 0.0
    for k in range(slack.size):
        whole += task.weight[k]
        gained[k] = 0.0
    t, steps, first, off, frozen, jump = 0.0, 0, np.inf, np.inf, False, AT_ONCE
    for _ in range(MOST):
        steepness, gap, total, count = value(task, signed, near, share, sigma, z, slack, t, frozen, work)
        first = steepness if steps == 0 else first
        if enough > 0.0 and gap <= enough and not frozen:
            return True
        if steepness <= max(LESS * first, ROUNDING * total) and not frozen:
            last, off = off, accept_shares(near, share) / sigma
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
                residuals(task, z, slack)  # without what rounding has added up
            t, steps, frozen = 0.0, 0, True
            continue
        if not (count > 0 and WOODBURY_FROM * count <= z.size and woodbury_step(task, sigma, count, work)):
            update_matrix(task, sigma, work)
            if not newton_step(task, sigma, 0.0 if count or not task.free else LOOSE * sigma * whole, work):
                return False
        scores_near(task.rows, dz, gained)
        t = descend(
            near, sigma, slack, gained, task.y, task.weight, z, dz, task.regular, gradient, NOT_STEEP
        )  # fmt: skip
        if not (t > 0.0 or frozen):
            return False
        steps += 0 if frozen else 1
        frozen = False
    return False


@compiled()
def value(task, signed, near, share, sigma, z, slack, t, frozen, work):
    """The shares t steps on, which patterns are inside, and the gradient.

    (Its largest entry; the gap; the sum of the dual weights; how many patterns are inside.) Where the patterns inside
    are frozen, nothing cuts what their shares add to it.
    """
    pull, gained = work.patterns[0], work.patterns[1]
    wanted = work.marks[0]
    came = work.places[0]
    sums, gradient = work.vectors[3], work.vectors[4]
    loss, total = follow(near, sigma, slack, gained, t, task.weight, signed, share, pull)
    count = 0
    for k in range(share.size):
        if frozen:
            pull[k] = signed[k] * (near[k] + sigma * slack[k]) if wanted[k] else pull[k]
        else:
            wanted[k] = share[k] > 0.0 and share[k] < 1.0
        count += wanted[k]
    combine(task.rows, pull, came, sums)
    steepness, _, size = subtract(task.regular, z, sums, gradient)
    primal, dual = loss, total - 0.5 * size
    for j in range(z.size):
        primal += 0.5 * task.regular[j] * z[j] * z[j]
    uneven = abs(sums[z.size - 1]) if task.free else 0.0
    return steepness, (abs(primal - dual) + uneven) / dual if dual > 0.0 else np.inf, total, count


@compiled()
def accept_shares(near, share):
    """Set near = share; return the largest change of one."""
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
def update_matrix(task, sigma, work):
    """The matrix of the patterns wanted, from that of those inside: with those that come or go, or anew.

    What went has taken digits along: few enough of what sigma times the diagonal is with what is regularised.
    """
    wanted, inside = work.marks[0], work.marks[1]
    entering, leaving = work.places[0], work.places[1]
    matrix, more = work.matrices[0], work.matrices[1]
    top = work.vectors[0]
    size = matrix.shape[0]
    came, gone, count = changes(wanted, inside, entering, leaving)
    anew = came + gone > ANEW * count or not top[0] < np.inf
    if came and not anew:
        products(task.rows, task.weight, entering[:came], work.turned, more)
        for i in range(size):
            for j in range(size):
                matrix[i, j] += more[i, j]
            top[i] = max(top[i], matrix[i, i])
    if gone and not anew:
        products(task.rows, task.weight, leaving[:gone], work.turned, more)
        for i in range(size):
            for j in range(size):
                matrix[i, j] -= more[i, j]
    for i in range(size):
        anew |= sigma * matrix[i, i] + task.regular[i] < FALL * sigma * top[i]
    if anew:
        inside[:] = False
        changes(wanted, inside, entering, leaving)
        products(task.rows, task.weight, entering[:count], work.turned, matrix)
        for i in range(size):
            top[i] = matrix[i, i]
    for k in range(inside.size):
        inside[k] = wanted[k]


@compiled()
def newton_step(task, sigma, loose, work):
    """dz = the Newton direction -(sigma M + R)^-1 g; `loose` is added for the last weight. False without a factor."""
    matrix, factor = work.matrices[0], work.matrices[2]
    root, inverse, gradient, dz = work.vectors[1], work.vectors[2], work.vectors[4], work.vectors[5]
    size = dz.size
    for i in range(size):
        for j in range(i, size):
            factor[i, j] = sigma * matrix[i, j]
        factor[i, i] += task.regular[i]
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
def woodbury_step(task, sigma, count, work):
    """dz = the Newton direction by the Woodbury identity, for fewer active rows than half the columns.

    Returns False where the matrix of the products of the rows is numerically singular.

    What such a row gains, times sigma and its weight, is its a: with B of these rows, what is regularised, and
    K = BB' + 1 / (sigma weight) on its diagonal, K a = c beta - B g and c'a = -g_c, where c is the column of a free
    intercept and beta its step; dz = -g - B'a of all else. The matrix of the columns is lost, as what its diagonal has
    been says.
    """
    wanted, inside = work.marks[0], work.marks[1]
    rows, factor, places = work.matrices[1], work.matrices[2], work.places[0]
    top, gradient, dz, size = work.vectors[0], work.vectors[4], work.vectors[5], work.vectors.shape[1]
    root, inverse, right = work.vectors[1][:count], work.vectors[2][:count], work.vectors[3][:count]
    alone, own = work.vectors[6][:count], work.vectors[7][:count]
    found = 0
    for k in range(wanted.size):
        places[found] = k
        found += wanted[k]
    for i in range(count):
        row, total = task.rows[places[i]], 0.0
        for j in range(size):
            rows[i, j] = task.regular[j] * row[j]
            total -= rows[i, j] * gradient[j]
        right[i] = total
        for j in range(count):
            factor[i, j] = 0.0
    add_products(rows, count, size, factor)
    for i in range(count):
        factor[i, i] += 1.0 / (sigma * task.weight[places[i]])
    mirror(count, factor)
    if not triangular(factor, root, 0.0, inverse):
        return False
    for i in range(count):
        if not LOST * inverse[i] * inverse[i] < 1.0:
            return False
    substitute(factor, root, inverse, right, alone)
    beta = 0.0
    if task.free:
        for i in range(count):
            right[i] = task.rows[places[i], size - 1]
        substitute(factor, root, inverse, right, own)
        rest, pull = -gradient[size - 1], 0.0
        for i in range(count):
            rest -= right[i] * alone[i]
            pull += right[i] * own[i]
        beta = rest / pull
        for i in range(count):
            alone[i] += beta * own[i]
    for j in range(size):
        dz[j] = -task.regular[j] * gradient[j]
    add_rows(rows, -1.0, alone, dz)
    if task.free:
        dz[size - 1] = beta
    for i in range(count):  # digits of what the rows gain are lost where they nearly cancel g: once more
        k = places[i]
        rest = beta * task.rows[k, size - 1]
        for j in range(size):
            rest += rows[i, j] * dz[j]
        right[i] = alone[i] / (sigma * task.weight[k]) - rest
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
def residuals(task, z, slack):
    """The slacks of z."""
    scores_near(task.rows, z, slack)
    slacks(slack, task.y, 0.0)
