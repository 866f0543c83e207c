"""Where a sum of hinges is least, without sorting all their kinks."""

from __future__ import annotations

import numpy as np

from .jit import compiled

TINY = 1e-14  # a share that is rounding


@compiled()
def quantile(t, c, target, rounding):
    """(low, high): the interval of all v at which the weights c of t <= v and those of t < v have `target` in between.

    All c are positive. Their sums are compared up to `rounding`. By quickselect: t and c are put into another order.
    """
    first, last = 0, t.size
    before = 0.0  # the weight of all that lie below
    high = np.inf  # the least of all that lie above
    while True:
        pivot = median(t[first], t[(first + last) // 2], t[last - 1])
        less, k, more = first, first, last
        below = equal = 0.0
        while k < more:
            value, weight = t[k], c[k]
            if value < pivot:
                t[k], c[k] = t[less], c[less]
                t[less], c[less] = value, weight
                below += weight
                less += 1
                k += 1
            elif value > pivot:
                more -= 1
                t[k], c[k] = t[more], c[more]
                t[more], c[more] = value, weight
            else:
                equal += weight
                k += 1
        if less > first and before + below >= target - rounding:
            high = pivot
            last = less
        elif more == last or before + below + equal >= target - rounding:
            if before + below + equal > target + rounding:
                return pivot, pivot
            for k in range(more, last):
                high = min(high, t[k])
            return pivot, high
        else:
            before += below + equal
            first = more


@compiled()
def median(a, b, c):
    """The one in the middle."""
    return max(min(a, b), min(max(a, b), c))


@compiled()
def least_squares(y, z, c, curvature, t, b, free, moves, most):
    """(t, b) that minimise t^2 curvature / 2 + sum c max(0, 1 - y (t z + b))^2, from these; b = t b_0 unless `free`.

    Newton's method on those that cost something, halving steps that do not lead down. `moves` is what b gains with t,
    0 where it is free.
    """
    value = squares(y, z, c, curvature, t, b)
    for _ in range(most):
        weight = first = second = pull = push = 0.0
        for k in range(y.size):
            x = z[k] + moves
            if y[k] * (t * z[k] + b) < 1.0:
                weight += c[k]
                first += c[k] * x
                second += c[k] * x * x
                pull += c[k] * y[k]
                push += c[k] * y[k] * x
        a, d = curvature + 2.0 * second, 2.0 * weight
        cross = 2.0 * first
        if free:
            determinant = a * d - cross * cross
            if not determinant > TINY * a * d:
                return t, b
            new = 2.0 * (push * d - pull * cross) / determinant
            other = 2.0 * (pull * a - push * cross) / determinant
        else:
            if not a > 0.0:
                return t, b
            new = 2.0 * push / a
            other = moves * new
        dt, db = new - t, other - b
        if not 0.5 * (a * dt * dt + free * (2.0 * cross * dt + d * db) * db) > TINY * value:
            return t, b  # nothing to be gained
        share = 1.0
        lower = squares(y, z, c, curvature, t + dt, b + db)
        while not lower <= value and share > TINY:
            share *= 0.5
            lower = squares(y, z, c, curvature, t + share * dt, b + share * db)
        if not lower < value:
            return t, b
        t, b, value = t + share * dt, b + share * db, lower
    return t, b


@compiled()
def least_shift(y, z, c, most):
    """The b that minimises sum c max(0, 1 - y (z + b))^2; not a number where some b costs nothing at all.

    Newton's method on the slope, which is piecewise linear, within a bracket.
    """
    low, high, b = -np.inf, np.inf, 0.0
    for k in range(y.size):
        if c[k] > 0.0 and y[k] > 0.0:
            low = max(low, y[k] - z[k])
        elif c[k] > 0.0 and y[k] < 0.0:
            high = min(high, y[k] - z[k])
    if not high < low:
        return np.nan
    low, high = high, low
    for _ in range(most):
        weight = pull = 0.0
        for k in range(y.size):
            rest = y[k] - z[k] - b
            if y[k] * rest > 0.0:
                weight += c[k]
                pull += c[k] * rest
        if pull > 0.0:
            low = max(low, b)
        else:
            high = min(high, b)
        new = b + pull / weight if weight > 0.0 else b
        if abs(new - b) <= TINY * max(1.0, abs(b)):
            return new
        b = new if low < new and new < high else 0.5 * (low + high)
    return b


@compiled()
def squares(y, z, c, curvature, t, b):
    """t^2 curvature / 2 + sum c max(0, 1 - y (t z + b))^2"""
    loss = 0.5 * t * t * curvature
    for k in range(y.size):
        slack = max(1.0 - y[k] * (t * z[k] + b), 0.0)
        loss += c[k] * slack * slack
    return loss
