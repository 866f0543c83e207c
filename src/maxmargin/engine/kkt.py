"""The optimality conditions of a dual program with caps, pattern by pattern: what they lack, and on which side it is.

`a` are dual weights, `slack` the gradient of the Lagrangian, `cap` the largest dual weights.
"""

from __future__ import annotations

import numpy as np

from .jit import compiled


@compiled(fastmath={"reassoc", "contract"})
def lost(a, slack, cap):
    """The sum of a slack where slack is positive, of (cap - a) |slack| where it is negative; every cap is finite."""
    total = 0.0
    for k in range(a.size):
        s = slack[k]
        total += a[k] * max(s, 0.0) + (cap[k] - a[k]) * max(-s, 0.0)
    return total


@compiled()
def sides(a, slack, cap, top, free, capped):
    """Which patterns are free, and which are capped; dual weights are measured by their caps, or by `top`.

    A product of two numbers is small: the smaller of them is.
    """
    for k in range(a.size):
        natural, s = min(cap[k], top), slack[k]
        free[k] = a[k] / natural > max(s, 0.0) and (cap[k] - a[k]) / natural > max(-s, 0.0)
        capped[k] = not free[k] and s < 0.0 and cap[k] < np.inf
