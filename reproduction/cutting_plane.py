"""Cutting planes for the hinge loss with C = 1 and no intercept: the one-slack form of SVMperf, and OCAS.

A plane is a lower bound of the loss R(w) = sum max(0, 1 - m_i), m_i = y_i w.x_i, that touches it at one point:
R(v) >= h - g.v with h the number of rows of m_i < 1 there, and g the sum of their y_i x_i. The model of R is the
maximum of the planes and zero, and 1/2 |w|^2 + model is minimal at w = sum a_p g_p, where a maximises
h'a - 1/2 |w|^2 over a >= 0, sum a = 1: a lower bound of the optimum.

T. Joachims, "Training linear SVMs in linear time", KDD 2006;
V. Franc, S. Sonnenburg, "Optimized cutting plane algorithm for support vector machines", ICML 2008.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import scipy.linalg

ROUNDING = 1e-13  # a difference of a plane and the model that is rounding, relative to the largest height
MU = 0.1  # OCAS: a plane touches at this fraction of the way from the best point to the model's minimiser
IDLE = 50  # minimisations after which a plane of a = 0 is dropped
RIDGE = 1e-11  # weight of the proximal term that makes the Gram matrix definite, relative to the largest |g / h|^2


class Point(NamedTuple):
    """Weights, the margins m_i, and the objective."""

    w: np.ndarray
    m: np.ndarray

    @property
    def value(self) -> float:
        """1/2 |w|^2 + R(w)."""
        return 0.5 * float(self.w @ self.w) + float(np.maximum(1.0 - self.m, 0.0).sum())

    def towards(self, other: Point, k: float) -> Point:
        """Return the point self + k (other - self)."""
        return Point(self.w + k * (other.w - self.w), self.m + k * (other.m - self.m))


def rounds(X: Any, y: np.ndarray, ocas: bool = True) -> Iterator[tuple[Point, float, int]]:
    """Yield the point of each round, a lower bound of the optimum, and the number of passes over the rows so far.

    The point is the minimiser of the model; for OCAS the best one, from which a line search along the way to the
    minimiser gives the next.
    """
    heights, slopes, gram = np.zeros(1), np.zeros((1, X.shape[1])), np.zeros((1, 1))
    a, unused, w, lower, passes, best = np.ones(1), np.zeros(1, int), slopes[0], 0.0, 0, None
    while True:
        new = touch = Point(w, y * (X @ w))
        passes += 1
        if ocas and best is not None:
            best = best.towards(new, line_search(best, new))
            touch = best.towards(new, MU)
        else:
            best = new
        yield best, lower, passes
        for place in (touch, new):
            below = place.m < 1.0
            height, slope = float(below.sum()), X.T @ (y * below)
            passes += 1
            rounding = ROUNDING * max(height, heights.max())
            if height - slope @ w > (heights - slopes @ w).max() + rounding:
                break
        else:  # the model equals the loss at its minimiser
            return
        products = slopes @ slope
        gram = np.block([[gram, products[:, None]], [products[None, :], np.array([[slope @ slope]])]])
        heights, slopes = np.append(heights, height), np.vstack([slopes, slope])
        a, unused = np.append(a, 0.0), np.append(unused, 0)
        for _ in range(6):  # proximal steps, one or two of which are usual
            a = proximal_step(gram, heights, a)
            w = a @ slopes
            square = float(w @ w)
            if square + max((heights - slopes @ w).max(), 0.0) - heights @ a <= 1e-10 * square:
                break
        lower = max(lower, float(heights @ a) - 0.5 * square)
        unused = np.where(a > 0.0, 0, unused + 1)
        unused[0] = 0
        kept = unused <= IDLE
        heights, slopes, gram, a, unused = (
            heights[kept],
            slopes[kept],
            gram[np.ix_(kept, kept)],
            a[kept],
            unused[kept],
        )


def line_search(one: Point, two: Point) -> float:
    """Return the k >= 0 for which one + k (two - one) has the least objective, from the sorted places of m_i = 1."""
    gain, v = two.m - one.m, two.w - one.w
    square = float(v @ v)
    if square <= 1e-24 * float(one.w @ one.w):
        return 0.0
    below = (one.m < 1.0) | ((one.m == 1.0) & (gain < 0.0))
    slope = float(one.w @ v) - float(gain[below].sum())
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        places = (1.0 - one.m) / gain
    ahead = np.flatnonzero((places > 0.0) & np.isfinite(places))
    ahead = ahead[np.argsort(places[ahead])]
    places, rise = places[ahead], np.cumsum(np.abs(gain[ahead]))
    increases = slope + rise + square * places >= 0.0
    j = int(np.argmax(increases)) if increases.any() else places.size
    k = -(slope + (rise[j - 1] if j else 0.0)) / square
    return max(min(k, float(places[j])) if j < places.size else k, 0.0)


def proximal_step(gram: np.ndarray, heights: np.ndarray, start: np.ndarray) -> np.ndarray:
    """Return a proximal step from `start` to the minimiser of 1/2 a' gram a - heights'a over the simplex.

    A primal active-set method in the coefficients a_p h_p: solve on the support; if the solution leaves the simplex, go
    to its boundary, else add the plane of the most negative reduced cost. The first plane is zero; its coefficient is
    one minus the sum of the others.
    """
    h = np.append(1.0, heights[1:])
    G = gram / h / h[:, None]
    ridge = max(RIDGE * float(G.diagonal().max()), 1e-8 / h[1:].max())
    G[np.diag_indices_from(G)] += ridge
    a, r = start * h, 1.0 / h
    q = ridge * a + 1.0
    q[0] = 0.0
    support = np.flatnonzero(a > 0.0)
    for _ in range(10 * a.size + 100):
        z, level = on_support(G, q, r, support)
        if (z >= 0.0).all():
            a = np.zeros(a.size)
            a[support] = z
            used = support > 0
            reduced = G[:, support[used]] @ z[used] - q + level * r
            reduced[0] = level * a.sum()
            reduced[support] = 0.0
            best = int(np.argmin(reduced))
            if reduced[best] >= -ROUNDING * (1.0 + float(G.diagonal().max()) * float(a[1:].sum())):
                break
            support = np.append(support, best)
        else:
            current = a[support]
            with np.errstate(divide="ignore", invalid="ignore"):
                steps = np.where(z < 0.0, current / (current - z), np.inf)
            t = float(steps.min())
            if t == 0.0:  # the last plane was added by rounding alone
                break
            moved = np.where(steps <= t, 0.0, np.maximum(current + t * (z - current), 0.0))
            a = np.zeros(a.size)
            a[support] = moved
            support = support[moved > 0.0]
    a = a / h
    return a / a.sum()


def on_support(G: np.ndarray, q: np.ndarray, r: np.ndarray, support: np.ndarray) -> tuple[np.ndarray, float]:
    """Return (z, level) with G z - q + level r = 0 on the support and r'z = 1; level is 0 with the zero plane."""
    planes = support > 0
    p, z, level = support[planes], np.ones(support.size), 0.0
    if p.size:
        part, r = G[np.ix_(p, p)], r[p]
        factor = scipy.linalg.cho_factor(part)
        y, found = scipy.linalg.cho_solve(factor, r), np.zeros(p.size)
        for _ in range(3):  # refined, as x and level y may be huge and cancel
            x = scipy.linalg.cho_solve(factor, q[p] - part @ found - level * r)
            more = (float(r @ (found + x)) - 1.0) / float(r @ y) if planes.all() else 0.0
            found, level = found + x - more * y, level + more
        z[planes], z[~planes] = found, 1.0 - float(r @ found)
    return z, level
