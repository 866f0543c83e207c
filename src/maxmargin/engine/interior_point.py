"""What an interior-point method does to each pattern by itself: weights a, their room c - a, multipliers u and v.

At a point of the central path a u = (c - a) v = mu for every pattern; u belongs to a >= 0, v to a <= c. Where there is
no cap v is 0, and the room 1. `own` is the square of the pattern's own coordinate; T = own + u / a + v / room.
"""

from __future__ import annotations

import numpy as np

from .jit import compiled


@compiled()
def weigh(y, own, cap, a, room, u, v, scores, lack, share):
    """lack = 1 - margin - own a, share = 1 / T. (a u + room v, sum a, sum own a^2, the loss, over all patterns.)"""
    products = total = square = loss = 0.0
    for k in range(y.size):
        slack = 1.0 - y[k] * scores[k]
        lack[k] = slack - own[k] * a[k]
        share[k] = 1.0 / (own[k] + u[k] / a[k] + v[k] / room[k])
        products += a[k] * u[k] + room[k] * v[k]
        total += a[k]
        square += own[k] * a[k] * a[k]
        if slack > 0.0:
            loss += 0.5 * slack * slack / own[k] if own[k] > 0.0 else cap[k] * slack
    return products, total, square, loss


@compiled()
def predict(y, cap, a, room, u, v, scores, lack, share, da, centring, second):
    """The step to the end of the path, where all products are 0, from what it adds to the scores.

    Of the right-hand side of the next step the part that a unit of mu adds, and the part of second order. (What a step
    adds to the products, once and squared; how long it may be.)
    """
    first = again = 0.0
    most = np.inf
    for k in range(y.size):
        step = (lack[k] - y[k] * scores[k]) * share[k]
        da[k] = step
        du = -u[k] - u[k] * step / a[k]
        first += a[k] * du + step * u[k]
        again += step * du
        most = min(most, reach(a[k], step), reach(u[k], du))
        pull, bend = 1.0 / a[k], step * du / a[k]
        if cap[k] < np.inf:
            dv = -v[k] + v[k] * step / room[k]
            first += room[k] * dv - step * v[k]
            again -= step * dv
            most = min(most, reach(room[k], -step), reach(v[k], dv))
            pull -= 1.0 / room[k]
            bend += step * dv / room[k]
        centring[k] = y[k] * share[k] * pull
        second[k] = y[k] * share[k] * bend
    return first, again, most


@compiled()
def correct(y, cap, a, room, u, v, scores, lack, share, mu, before, da):
    """The step to products mu, the second order of the step `before` reckoned with. (How long it may be.)"""
    most = np.inf
    for k in range(y.size):
        target, other = products(k, cap, a, room, u, v, mu, before)
        r = lack[k] + u[k] + target / a[k]
        if cap[k] < np.inf:
            r -= v[k] + other / room[k]
        step = (r - y[k] * scores[k]) * share[k]
        da[k] = step
        most = min(most, reach(a[k], step), reach(u[k], (target - u[k] * step) / a[k]))
        if cap[k] < np.inf:
            most = min(most, reach(room[k], -step), reach(v[k], (other + v[k] * step) / room[k]))
    return most


@compiled()
def move(cap, a, room, u, v, mu, before, da, t):
    """Take t of this step."""
    for k in range(a.size):
        target, other = products(k, cap, a, room, u, v, mu, before)
        du = (target - u[k] * da[k]) / a[k]
        if cap[k] < np.inf:
            v[k] += t * (other + v[k] * da[k]) / room[k]
            room[k] -= t * da[k]
        a[k] += t * da[k]
        u[k] += t * du


@compiled()
def products(k, cap, a, room, u, v, mu, before):
    """What a u and (c - a) v lack to mu, the second order of the step `before` reckoned with."""
    du = -u[k] - u[k] * before[k] / a[k]
    target = mu - a[k] * u[k] - before[k] * du
    if not cap[k] < np.inf:
        return target, 0.0
    dv = -v[k] + v[k] * before[k] / room[k]
    return target, mu - room[k] * v[k] + before[k] * dv


@compiled()
def farthest(a, u, room, v, da, du, dv, capped):
    """How many such steps keep everything positive."""
    most = np.inf
    for k in range(a.size):
        most = min(most, reach(a[k], da[k]), reach(u[k], du[k]))
        if capped[k]:
            most = min(most, reach(room[k], -da[k]), reach(v[k], dv[k]))
    return most


@compiled()
def products_after(a, u, room, v, da, du, dv, capped, t):
    """The sum of a u + room v, t such steps on."""
    total = 0.0
    for k in range(a.size):
        total += (a[k] + t * da[k]) * (u[k] + t * du[k])
        if capped[k]:
            total += (room[k] - t * da[k]) * (v[k] + t * dv[k])
    return total


@compiled()
def aim(a, u, room, v, da, du, dv, capped, mu, need, lack):
    """What a u and room v lack to mu, the second order of a step (da, du, dv) reckoned with."""
    for k in range(a.size):
        need[k] = mu - a[k] * u[k] - da[k] * du[k]
        lack[k] = mu - room[k] * v[k] + da[k] * dv[k] if capped[k] else 0.0


@compiled()
def reach(x, dx):
    """How many steps dx bring x to 0."""
    return -x / dx if dx < 0.0 else np.inf
