"""Each algorithm in a few lines of NumPy, straight from its statement: slow, obvious, a second opinion.

Every one takes the reflected patterns Y (row k is y_k x_k, with whatever constant coordinate and own
coordinate the problem gives it), the rows in the order in which they are presented, a cap for each dual
weight, and the numbers of the rule.
"""

from __future__ import annotations

from math import floor
from typing import NamedTuple

import numpy as np


class Run(NamedTuple):
    """What a naive run ends with."""

    weights: np.ndarray
    dual: np.ndarray
    moved: list[int]  # rows that made a step, in the order of the steps
    nearest: float  # how near the nearest decision was: rounding could turn one that is within 1e-9


def perceptron(Y, order, caps, b):
    """Update when a.y_k <= b:  a <- a + y_k."""
    a, I, moved, nearest = np.zeros(Y.shape[1]), np.zeros(len(Y)), [], np.inf
    for k in order:
        p = a @ Y[k]
        nearest = min(nearest, abs(p - b))
        if p <= b:
            a, I[k] = a + Y[k], I[k] + 1
            moved.append(k)
    return Run(a, I, moved, nearest)


def mpu(Y, order, caps, b, db):
    """Learn when a.y_k <= b and I_k < cap, unlearn when a.y_k >= b + db and I_k > 0: as often as it takes."""
    a, I, moved, nearest = np.zeros(Y.shape[1]), np.zeros(len(Y)), [], np.inf
    for k in order:
        p, y2, old = a @ Y[k], Y[k] @ Y[k], I[k]
        nearest = min(nearest, abs(p - b), abs(p - b - db))
        if p <= b and I[k] < caps[k]:
            times = (b - p) / y2 if y2 else np.inf
            I[k] = min(I[k] + floor(times) + 1, caps[k]) if y2 else caps[k]
        elif p >= b + db and I[k] > 0:
            times = (p - (b + db)) / y2
            I[k] = max(I[k] - floor(times) - 1, 0)
        if I[k] != old:
            nearest = min(nearest, abs(times - np.rint(times))) if y2 else nearest
            a = a + (I[k] - old) * Y[k]
            moved.append(k)
    return Run(a, I, moved, nearest)


def dual_descent(Y, order, caps, unit, D=0.0):
    """alpha_k <- clip(alpha_k - G / Q_kk, 0, U),  G = a.y_k - unit + D alpha_k,  Q_kk = |y_k|^2 + D."""
    a, alpha, moved, nearest = np.zeros(Y.shape[1]), np.zeros(len(Y)), [], np.inf
    for k in order:
        G, Q, old = a @ Y[k] - unit + D * alpha[k], Y[k] @ Y[k] + D, alpha[k]
        nearest = min(nearest, abs(G))
        if (G < 0 and old < caps[k]) or (G > 0 and old > 0):
            alpha[k] = np.clip(old - G / Q, 0.0, caps[k]) if Q else caps[k]
            a = a + (alpha[k] - old) * Y[k]
            moved.append(k)
    return Run(a, alpha, moved, nearest)


NAIVE = {"perceptron": perceptron, "mpu": mpu, "dcd": dual_descent}
