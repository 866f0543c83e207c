"""What the proximal-point method for the hinge does with each pattern by itself: its share of its cap.

The share of a pattern of margin m = 1 - slack is near + sigma slack, cut to [0, 1]; `near` is what it was before. A
pattern is inside where nothing is cut.
"""

from __future__ import annotations

import numpy as np

from .jit import compiled
from .line_search import along, go, margins
from .newton import MOST


@compiled(fastmath={"reassoc", "contract"})
def follow(near, sigma, slack, step, t, cap, signed, share, pull):
    """slack -= t step, with the shares of these slacks, and pull = signed share.

    (The loss, sum cap max(0, slack), and the sum of the dual weights, cap share.)
    """
    loss = total = 0.0
    for k in range(slack.size):
        rest = slack[k] - t * step[k]
        s = min(max(near[k] + sigma * rest, 0.0), 1.0)
        slack[k], share[k], pull[k] = rest, s, signed[k] * s
        loss += cap[k] * max(rest, 0.0)
        total += cap[k] * s
    return loss, total


@compiled()
def uncut(share, inside):
    """The places of the patterns that are inside. (How many these are.)"""
    count = 0
    for k in range(share.size):
        inside[count] = k
        count += 1 if share[k] > 0.0 and share[k] < 1.0 else 0
    return count


@compiled()
def descend(near, sigma, slack, step, y, cap, z, dz, regular, gradient, flat):
    """Move z along dz to the least point of that line; scores of dz become what margins gain. (How many dz; 0: none.)

    The share of the slope at z that is none is `flat`.
    """
    slope, first, second = along(regular, z, dz, gradient)
    if not slope < 0.0:
        return 0.0
    margins(step, y)
    return go(z, least_along(near, sigma, slack, step, cap, first, second, -flat * slope), dz)


@compiled()
def least_along(near, sigma, slack, step, cap, slope, curvature, small):
    """The t at which the smoothed loss of slack - t step, plus slope t + curvature t^2 / 2, is least; from 1 on.

    Newton's method on the derivative, which is piecewise linear and rises, within a bracket; one so small is none.
    """
    low, high = 0.0, np.inf
    t = 1.0
    for _ in range(MOST):
        first, second = slopes(near, sigma, slack, step, cap, t)
        first += slope + curvature * t
        second += curvature
        if abs(first) <= small:
            return t
        if first < 0.0:
            low = t
        else:
            high = t
        new = t - first / second if second > 0.0 else np.inf
        if not (low < new and new < high):
            new = 0.5 * (low + high) if high < np.inf else 2.0 * t
        if not (abs(new) < np.inf and new != t):
            return t
        t = new
    return t


@compiled(fastmath={"reassoc", "contract"})
def slopes(near, sigma, slack, step, cap, t):
    """The first two derivatives in t of the smoothed loss of slack - t step."""
    first = second = 0.0
    for k in range(slack.size):
        s = near[k] + sigma * (slack[k] - t * step[k])
        pull = cap[k] * step[k]
        first -= pull * min(max(s, 0.0), 1.0)
        second += pull * step[k] if s > 0.0 and s < 1.0 else 0.0
    return first, sigma * second
