"""Of an objective 1/2 z'Rz + losses, R being 0 or 1 for each weight: its gradient, and what R adds along a line."""

from __future__ import annotations

from .jit import compiled


@compiled()
def subtract(regular, z, made, gradient):
    """gradient = R z - made. (Its largest entry; the sum of the squares that R leaves of it, and of what is made.)"""
    most = left = size = 0.0
    for j in range(z.size):
        g = regular[j] * z[j] - made[j]
        gradient[j] = g
        if most == most and not abs(g) <= most:  # what is not a number stays
            most = abs(g)
        left += regular[j] * g * g
        size += regular[j] * made[j] * made[j]
    return most, left, size


@compiled()
def margins(step, y):
    """What scores add to the margins, in their place."""
    for k in range(step.size):
        step[k] *= y[k]


@compiled()
def go(z, t, dz):
    """z += t dz, where t is positive. (t.)"""
    if t > 0.0:
        for j in range(z.size):
            z[j] += t * dz[j]
    return t


@compiled()
def along(regular, z, dz, gradient):
    """The slope of the objective at z along dz, and the first two derivatives of 1/2 z'Rz there."""
    slope = first = second = 0.0
    for j in range(z.size):
        slope += gradient[j] * dz[j]
        first += regular[j] * dz[j] * z[j]
        second += regular[j] * dz[j] * dz[j]
    return slope, first, second
