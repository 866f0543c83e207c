"""What Newton's method for squared losses does with the patterns: losses, lines through them, and their curvature.

`share` is 1 / own for every pattern, own being the square of its own coordinate: a slack costs share slack^2 / 2, and
its dual weight is share slack.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from .jit import compiled, record
from .line_search import along, go, margins
from .row_products import add_combined, scores

MOST = 50  # steps along a line
TOGETHER = 64  # patterns of which it is asked first whether any has changed


@record
class Squared(NamedTuple):
    """A vector to which the squares of what is added are added."""

    w: Any

    def move(self, j, step):
        self.w[j] += step * step


@compiled(fastmath={"reassoc", "contract"})
def weigh(slack, share, y, signed):
    """signed = y alpha, where alpha = share max(0, slack). (sum alpha, sum share max(0, slack)^2.)"""
    total = square = 0.0
    for k in range(slack.size):
        rest = max(slack[k], 0.0)
        alpha = share[k] * rest
        signed[k] = y[k] * alpha
        total += alpha
        square += alpha * rest
    return total, square


@compiled(fastmath={"reassoc", "contract"})
def slacks(values, y, b):
    """1 - y (score + b), in the scores' place."""
    for k in range(values.size):
        values[k] = 1.0 - y[k] * (values[k] + b)


@compiled(fastmath={"reassoc", "contract"})
def total_of(v):
    """The sum of the entries of v."""
    total = 0.0
    for k in range(v.size):
        total += v[k]
    return total


@compiled()
def weigh_rows(X, y, share, w, b, slack, signed, some, made):
    """slack = 1 - y (x.w + b), signed = y alpha as `weigh` has it, made[0] += sum signed x; rows pass once.

    `some` is room for the places of rows that are taken together, made[1] for what they make. (sum alpha,
    sum share max(0, slack)^2, sum signed.)
    """
    total = square = uneven = 0.0
    for first in range(0, y.size, some.size):
        last = min(first + some.size, y.size)
        rows, side, rest, c = X[first:last], y[first:last], slack[first:last], signed[first:last]
        scores(rows, w, rest)
        slacks(rest, side, b)
        alone, own = weigh(rest, share[first:last], side, c)
        add_combined(rows, c, some, made[1], made[0])
        total += alone
        square += own
        uneven += total_of(c)
    return total, square, uneven


@compiled()
def descend(slack, step, y, share, z, dz, regular, gradient, flat):
    """Move z along dz to the least point of that line; scores of dz become what margins gain. (How many dz; 0: none.)

    The share of the slope at z that is none is `flat`.
    """
    slope, first, second = along(regular, z, dz, gradient)
    if not slope < 0.0:
        return 0.0
    margins(step, y)
    return go(z, least_along(slack, step, share, first, second, -flat * slope), dz)


@compiled()
def follow(slack, step, t, costly):
    """slack -= t step. (Are other patterns costly now?)"""
    changed = False
    for k in range(slack.size):
        rest = slack[k] - t * step[k]
        slack[k] = rest
        changed |= (rest > 0.0) != costly[k]
    return changed


@compiled()
def changes(costly, inside, came, left):
    """The places of the patterns that are costly and not inside, and the other way round. (How many; how many cost.)"""
    new = old = count = 0
    for first in range(0, costly.size, TOGETHER):
        now, before = costly[first : first + TOGETHER], inside[first : first + TOGETHER]
        changed = cost = np.int32(0)
        for k in range(now.size):
            changed += np.int32(now[k] != before[k])
            cost += np.int32(now[k])
        count += cost
        if changed > 0:
            for k in range(now.size):
                if now[k] != before[k]:
                    if now[k]:
                        came[new] = first + k
                        new += 1
                    else:
                        left[old] = first + k
                        old += 1
    return new, old, count


@compiled()
def least_along(slack, step, share, slope, curvature, small):
    """The t with least slope t + curvature t^2 / 2 + sum share max(0, slack - t step)^2 / 2, beginning at 1.

    Newton's method on the slope, which is piecewise linear and rises, within a bracket; a slope so small is none.
    """
    low, high = -np.inf, np.inf
    t = 1.0
    for _ in range(MOST):
        first, second = slopes(slack, step, share, t)
        first += slope + curvature * t
        second += curvature
        if first < 0.0:
            low = t
        else:
            high = t
        new = t - first / second if second > 0.0 else t
        if abs(first) <= small:
            return new
        if not (low < new and new < high):
            new = 0.5 * (low + high)
        if not (abs(new) < np.inf and new != t):
            return t
        t = new
    return t


@compiled(fastmath={"reassoc", "contract"})
def slopes(slack, step, share, t):
    """The first two derivatives in t of sum share max(0, slack - t step)^2 / 2."""
    first = second = 0.0
    for k in range(slack.size):
        rest = slack[k] - t * step[k]
        pull = share[k] * step[k]
        first -= pull * max(rest, 0.0)
        second += pull * step[k] if rest > 0.0 else 0.0
    return first, second


@compiled()
def about(X, mean, inverse, constant, out):
    """out = (x - mean, constant) times `inverse`, of every row."""
    d = mean.size
    for i in range(out.shape[0]):
        for j in range(d):
            out[i, j] = (X[i, j] - mean[j]) * inverse[j]
        for j in range(d, out.shape[1]):
            out[i, j] = constant * inverse[j]


@compiled()
def weighted(X, rows, share, mean, constant, out):
    """out = share^1/2 (x - mean, constant) for these rows."""
    d = mean.size
    for k in range(rows.size):
        root = share[k] ** 0.5
        for j in range(d):
            out[k, j] = root * (X[rows[k], j] - mean[j])
        for j in range(d, out.shape[1]):
            out[k, j] = root * constant


@compiled()
def squares(indptr, indices, data, rows, c, matrix):
    """matrix += c (x, 1) (x, 1)' for these rows of a CSR matrix, whose entries are in order; below the diagonal."""
    last = matrix.shape[0] - 1
    for k in range(rows.size):
        i, weight = rows[k], c[k]
        begin, end = np.uint64(indptr[i]), np.uint64(indptr[i + 1])
        for j in range(begin, end):
            place, value = indices[j], weight * data[j]
            for other in range(begin, j + np.uint64(1)):
                matrix[place, indices[other]] += value * data[other]
            matrix[last, place] += value
        matrix[last, last] += weight


@compiled()
def products(space, rows, share, b, out):
    """out += sum share (x.w + b) x over these rows, w being the vector of the space. (The sum of share (x.w + b).)"""
    total = 0.0
    for k in range(rows.size):
        i = rows[k]
        c = share[i] * (space.dot(i) + b)
        space.put(i, c, out)
        total += c
    return total


@compiled()
def diagonal(space, rows, share, sums, both):
    """Add share x to `sums` and share x^2 to `both` for each of these rows. (The sum of share.)"""
    total = 0.0
    for k in range(rows.size):
        i = rows[k]
        space.put(i, share[i], sums)
        space.put(i, share[i] ** 0.5, both)
        total += share[i]
    return total
