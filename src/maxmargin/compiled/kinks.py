"""Where a sum of hinges is least, without sorting all their kinks."""

from __future__ import annotations

import numpy as np

from .jit import compiled


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
