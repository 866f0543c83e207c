"""Sums that the bounds of a soft margin at p = 2 are made of, over dense rows in one pass.

Rows are taken so many at a time that they are still in cache when they are combined; every sum is one of the sums of
such parts, so that long ones keep their digits. `cap` is C for the hinge, infinite for squared losses.

A loop that adds up writes nothing: which of its versions runs, and in what order they add, would depend on where in
memory the arrays lie.
"""

from __future__ import annotations

import numpy as np

from .jit import compiled
from .row_products import add_combined, scores, scores_near


@compiled(fastmath={"reassoc", "contract"})
def capped(alpha, weights, cap, y, out):
    """out = alpha, none of them negative or above cap s_i. (Their sums over both classes.)"""
    plus = minus = 0.0
    for k in range(alpha.size):
        most = cap * weights[k] if weights[k] > 0.0 else 0.0
        out[k] = min(alpha[k], most) if alpha[k] > 0.0 else 0.0
    for k in range(alpha.size):
        plus += out[k] if y[k] > 0.0 else 0.0
        minus += out[k] if y[k] <= 0.0 else 0.0
    return plus, minus


@compiled()
def shrink(alpha, y, weights, cap, plus, minus):
    """alpha times these factors, one of each class, and no more than cap s_i. (The sum of y alpha, in two parts.)"""
    whole = rest = 0.0
    for k in range(alpha.size):
        # no branch: classes come in any order
        value = alpha[k] * (0.5 * ((1.0 + y[k]) * plus + (1.0 - y[k]) * minus))
        most = cap * weights[k]  # not a number, if there is no cap and no weight
        value = most if most < value else value
        alpha[k] = value
        value *= y[k]
        total = whole + value
        back = total - whole
        rest += (whole - (total - back)) + (value - back)
        whole = total
    return whole, rest


@compiled(fastmath={"reassoc", "contract"})
def room(alpha, weights, cap):
    """The largest multiple of alpha that is nowhere above cap s_i."""
    most = np.inf
    for k in range(alpha.size):
        ratio = cap * weights[k] / alpha[k]  # of nothing to nothing it is not a number
        most = ratio if ratio < most else most
    return most


@compiled()
def quotient(a, s, four_C):
    """a / (4 C s), and 0 where there is no weight at all."""
    return a / (four_C * s if s > 0.0 else 1.0)


@compiled()
def quotients(alpha, weights, four_C):
    """The sum of alpha^2 / (4 C s_i), as it is written: squares of tiny numbers would lose their digits."""
    p = q = r = s = 0.0
    whole = alpha.size - alpha.size % 4
    for k in range(0, whole, 4):  # side by side, as no sum of one kind may be taken apart
        p += quotient(alpha[k], weights[k], four_C) * alpha[k]
        q += quotient(alpha[k + 1], weights[k + 1], four_C) * alpha[k + 1]
        r += quotient(alpha[k + 2], weights[k + 2], four_C) * alpha[k + 2]
        s += quotient(alpha[k + 3], weights[k + 3], four_C) * alpha[k + 3]
    for k in range(whole, alpha.size):
        p += quotient(alpha[k], weights[k], four_C) * alpha[k]
    return (p + q) + (r + s)


@compiled()
def mark(projected, first):
    """What `certificates.marked` makes of the projections of rows from this place on, in their place."""
    for k in range(projected.size):
        place = np.uint32(first + k)
        shuffle = np.uint32(place * np.uint32(2654435769)) >> np.uint32(12)
        projected[k] = (projected[k] + 1.0) * (0.5 + shuffle * 2.0**-21)


@compiled(fastmath={"reassoc", "contract"})
def checksums(marks, y, weights):
    """The sums of a fingerprint: of marks times what labels and weights tell, and of their sizes."""
    checksum = scale = 0.0
    for k in range(marks.size):
        told = marks[k] * ((1.0 + weights[k]) * (3.0 + y[k]))
        checksum += told
        scale += abs(told)
    return checksum, scale


@compiled(fastmath={"reassoc", "contract"})
def one_pass(X, y, weights, norms, alpha, w, b, C, squared, each, constant, shares, marks, desk, some, v):
    """v[0] = sum alpha y x, and sums of the losses of (w, b) and of alpha; `v[1]` and `desk` are room for parts.

    A score is off by no more than each |x_i| + constant. (The losses of margins that are as small as they may be; of
    margins as they seem; sum alpha of the positive and of the negative class; of squared losses
    sum alpha^2 / (4 C s_i); sum alpha |x_i|; how many alpha are not 0; `checksums` of the marks: where there are
    `shares` of columns they are made here, and kept if there is room.)
    """
    least = nominal = plus = minus = own = spread = checksum = scale = 0.0
    score, signed, step = desk[0], desk[1], desk.shape[1]
    count = 0
    for first in range(0, alpha.size, step):
        last = min(first + step, alpha.size)
        rows, a, s = X[first:last], alpha[first:last], weights[first:last]
        length, side = norms[first:last], y[first:last]
        scores(rows, w, score[: a.size])
        small, seeming, positive, negative, sizes = 0.0, 0.0, 0.0, 0.0, 0.0
        for k in range(a.size):
            signed[k] = side[k] * a[k]
        for k in range(a.size):
            margin, cost = side[k] * (score[k] + b), C * s[k]
            low = margin - (each * length[k] + constant)
            # what is not a number is no margin
            rest, seen = 0.0 if low >= 1.0 else 1.0 - low, 0.0 if margin >= 1.0 else 1.0 - margin
            small += cost * (rest * (rest if squared else 1.0))
            seeming += cost * (seen * (seen if squared else 1.0))
            positive += max(signed[k], 0.0)
            negative -= min(signed[k], 0.0)
            sizes += a[k] * length[k]
            count += a[k] > 0.0
        told = marks[first:last] if marks.size else score[: a.size]
        if shares.size:
            scores_near(rows, shares, told)
            mark(told, first)
        part, size = checksums(told, side, s)
        checksum += part
        scale += size
        least += small
        nominal += seeming
        plus += positive
        minus += negative
        spread += sizes
        own += quotients(signed[: a.size], s, 4.0 * C) if squared else 0.0
        add_combined(rows, signed[: a.size], some, v[1], v[0])
    return least, nominal, plus, minus, own, spread, count, checksum, scale
