"""Sequential minimal optimisation within a working set: the inner loop of the decomposition solver.

The dual in the form min 1/2 a'Qa - sum a, 0 <= a <= cap, y'a = const where there is a free intercept; Q = y y' K, the
gradient g = Qa - 1. `small` is K of the working set, own coordinates included on its diagonal.

References
----------
R.-E. Fan, P.-H. Chen, C.-J. Lin, "Working set selection using second order information for training support vector
machines", JMLR 6, 2005.
"""

from __future__ import annotations

import numpy as np

from ...engine.jit import compiled

# curvature, relative to the largest on the diagonal, that counts as none: ten roundings of such an entry
TINY = 1e-14


@compiled()
def flattest(small):
    """The least curvature to reckon with: steps are finite where there is none at all, and no cap either."""
    largest = 0.0
    for k in range(small.shape[0]):
        largest = max(largest, small[k, k])
    return TINY * largest if largest > 0.0 else TINY


@compiled()
def argmax(value):
    """The place of the largest value, of equal ones the first; -1 where none is more than -inf."""
    best, place = -np.inf, -1
    for k in range(value.size):
        if value[k] > best:
            best, place = value[k], k
    return place


@compiled()
def bar(k, y, cap, alpha, rising, falling):
    """0 where y alpha of this row may go up (down), -inf where it may not."""
    high, low = alpha[k] < cap[k], alpha[k] > 0.0
    up, down = (high, low) if y[k] > 0.0 else (low, high)
    rising[k] = 0.0 if up else -np.inf
    falling[k] = 0.0 if down else -np.inf


@compiled()
def pairs(small, y, cap, alpha, gradient, goal, most, room):
    """Move pairs, which keeps sum y alpha, until no pair violates optimality by more than `goal`. (Steps.)

    `room` is a matrix of 6 rows to work in.
    """
    n = y.size
    flat = flattest(small)
    # not unpacked: so the compiler knows that they are contiguous
    ascent, rising, falling, diagonal = room[0], room[1], room[2], room[3]
    value, gains = room[4], room[5]
    for k in range(n):
        ascent[k] = -y[k] * gradient[k]
        diagonal[k] = small[k, k]
        bar(k, y, cap, alpha, rising, falling)
    for k in range(n):
        value[k] = ascent[k] + rising[k]
    step = 0
    while step < most:
        i = argmax(value)  # the largest -y g among those that may go up
        if i < 0:
            break
        best, one = value[i], small[i]
        curvature = diagonal[i]
        for k in range(n):  # j: the largest gain among those that may go down
            b = falling[k] - ascent[k] + best
            b = b if b > 0.0 else 0.0
            a = curvature + diagonal[k] - 2.0 * one[k]
            a = a if a > flat else flat
            gains[k] = b * b / a
        j = argmax(gains)
        if j < 0 or not gains[j] > 0.0:
            break
        if best - ascent[j] <= goal:  # else the largest violation is beyond the goal as well
            violation = 0.0
            for k in range(n):
                violation = max(violation, falling[k] - ascent[k] + best)
            if violation <= goal:
                break
        a = max(curvature + diagonal[j] - 2.0 * one[j], flat)
        t = (best - ascent[j]) / a
        # y_i alpha_i goes up by t, y_j alpha_j down by t
        space = cap[i] - alpha[i] if y[i] > 0.0 else alpha[i]
        other = alpha[j] if y[j] > 0.0 else cap[j] - alpha[j]
        if t >= min(space, other):
            t = min(space, other)
            if space <= other:
                alpha[i] = cap[i] if y[i] > 0.0 else 0.0
                alpha[j] = min(max(alpha[j] - y[j] * t, 0.0), cap[j])
            else:
                alpha[j] = 0.0 if y[j] > 0.0 else cap[j]
                alpha[i] = min(max(alpha[i] + y[i] * t, 0.0), cap[i])
        else:
            alpha[i] += y[i] * t
            alpha[j] -= y[j] * t
        bar(i, y, cap, alpha, rising, falling)
        bar(j, y, cap, alpha, rising, falling)
        two = small[j]
        for k in range(n):
            ascent[k] -= t * (one[k] - two[k])
            value[k] = ascent[k] + rising[k]
        step += 1
    for k in range(n):
        gradient[k] = -y[k] * ascent[k]
    return step


@compiled()
def singles(small, y, cap, alpha, gradient, goal, most, room):
    """The same without a constraint: one dual weight at a time, that of the largest gain. (Steps.)"""
    n = y.size
    flat = flattest(small)
    for step in range(most):
        j = -1
        gain = 0.0
        worst = 0.0
        move = 0.0
        for k in range(n):
            g = gradient[k]
            if (g < 0.0 and alpha[k] < cap[k]) or (g > 0.0 and alpha[k] > 0.0):
                worst = max(worst, abs(g))
                a = max(small[k, k], flat)
                new = min(max(alpha[k] - g / a, 0.0), cap[k])
                t = new - alpha[k]
                value = -t * (g + 0.5 * a * t)
                if value > gain:
                    gain = value
                    move = new
                    j = k
        if j < 0 or worst <= goal:
            return step
        t = y[j] * (move - alpha[j])
        alpha[j] = move
        for k in range(n):
            gradient[k] += y[k] * t * small[j, k]
    return most
