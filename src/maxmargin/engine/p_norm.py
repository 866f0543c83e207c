"""The vector w for 1 < p < inf, the image of a sum of patterns under the link of the p-norm, with its line search.

The link is f^-1(theta)_j = sign(theta_j) |theta_j|^(p-1) / |theta|_p^(p-2), for which |w|_q = |theta|_p.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from .jit import compiled, record
from .state import BIAS, CONSTANT2, FACTOR, SCALE
from .vectors import EuclideanVector, largest

SUM, PEAK, MOVES, TOP = range(4)  # indices in `power_sum`; SUM: sum (|theta_j| / top)^p, TOP: top
# Share of the first slope at which the line search over one dual variable ends: the variable is visited again in the
# next sweep. 1e-6 takes 1.3 times as long on text.
COORDINATE_ACCURACY = 0.02
# |r_j| / |r|_max below which the curvature |r_j|^(p-2) of p < 2, infinite at r_j = 0, is computed at this value
# instead: Newton's step is then short but not zero, and the next ones grow. 1e-16 is the rounding of r_j.
LEAST_RATIO = 1e-16


@record
class PNormVector(NamedTuple):
    """theta, the sum of patterns, and its image under the link, up to a factor.

    It is w_j = sign(theta_j) (|theta_j| / top)^(p-1). The sum of (|theta_j| / top)^p is updated by every move, so that
    a pattern costs its own non-zeros. `top`, the largest entry of theta at the last `rescale`, keeps the powers in the
    range of float64. Entries whose powers underflow have weight 0.
    """

    w: Any
    theta: Any
    power_sum: Any  # the numbers SUM, PEAK (largest SUM), MOVES (since SUM was computed) and TOP
    scratch: Any  # a ScratchVector
    p: float

    def move(self, j, step):
        total, top, old = self.power_sum, self.power_sum[TOP], self.theta[j]
        new = old + step
        ratio = abs(new) / top
        power = ratio ** (self.p - 1.0)
        total[SUM] += power * ratio - self.w[j] * (old / top)
        total[MOVES] += 1.0
        self.theta[j] = new
        self.w[j] = power if new > 0.0 else -power

    def score_factor(self):
        """Return top (sum (|theta_j| / top)^p)^(2/p - 1), the factor of the link."""
        total = self.power_sum[SUM]
        return self.power_sum[TOP] * total ** (2.0 / self.p - 1.0) if total > 0.0 else 0.0

    def norm2(self):
        """Return |theta|_p^2 = |w|_q^2 at scale one."""
        length = self.power_sum[TOP] * max(self.power_sum[SUM], 0.0) ** (1.0 / self.p)
        return length * length

    def norm2_after_step(self, h, expected):
        return h.scale.to_dual(h.scale.to_dual(self.norm2() + h.slack.norm2()))

    is_combination = EuclideanVector.is_combination

    def needs_rescaling(self):
        m = self.power_sum
        m[PEAK] = max(m[PEAK], m[SUM])
        # from inside this range one step reaches neither 2^1024 nor 2^-1024, the limits of float64; below a thousandth
        # of its largest value the running sum has lost three decimal digits
        in_range = m[SUM] >= 2.0**-300 and m[SUM] <= 2.0**300 and m[SUM] >= 2.0**-10 * m[PEAK]
        # 16 moves for each coordinate: rounding errors accumulate, and computing the sum again costs a sixteenth of the
        # moves; 1000 more coordinates are counted, so that the sums of short vectors last for many patterns
        return not in_range or m[MOVES] > 16 * (self.w.size + 1000.0)

    def rescale(self, k):
        """Multiply theta by k, and compute powers and sums again, with the largest entry of theta as `top`."""
        top = k * largest(self.theta)
        top = top if top > 0.0 else 1.0
        total = 0.0
        for j in range(self.theta.size):
            new = k * self.theta[j]
            ratio = abs(new) / top
            power = ratio ** (self.p - 1.0)
            total += power * ratio
            self.theta[j] = new
            self.w[j] = power if new > 0.0 else -power
        self.power_sum[SUM] = self.power_sum[PEAK] = total
        self.power_sum[MOVES] = 0.0
        self.power_sum[TOP] = top

    def best_dual_of_row(self, h, i, s, unit):
        """Return the dual variable of row i at which the dual objective is largest, to `COORDINATE_ACCURACY`.

        As a function of the change c the negative dual objective is |theta + c y_i x_i|_p^2 / 2 + quadratic c^2 / 2
        plus a linear term, with the slope s - unit at c = 0; `quadratic` is the square of the slack coordinate and of
        the constant coordinate. The direction of the search is that in which the objective falls.
        """
        sign = 1.0 if s < unit else -1.0
        g, z = h.ids[i], self.scratch
        quadratic = h.slack.own_length2(g) + h.number[CONSTANT2]
        end = h.cap_of(i) - h.dual(i) if sign > 0.0 else h.dual(i)
        h.space.add_row(i, sign * h.y[i], z)
        k = line_search(self, z, 0.0, -abs(unit - s), quadratic, end, COORDINATE_ACCURACY)
        z.clear()
        # not dual + (cap - dual): a cap is reached exactly
        if k >= end:
            return h.cap_of(i) if sign > 0.0 else 0.0
        return h.dual(i) + sign * k

    def after_step(self, h, i, c):
        """Update the factor of the link and the constant coordinate outside of the norm, after a step c on row i."""
        n = h.number
        n[BIAS] += c * h.y[i] * n[CONSTANT2]
        if self.needs_rescaling():
            self.rescale(1.0)
        n[FACTOR] = n[SCALE] * self.score_factor()

    def nearest_on_segment(self, h, i, j, s, r):
        """Return the k in [0, 1] for which (1 - k) theta + k z has least norm, z the mean of patterns i and j."""
        own2, cross, square = self.set_mean(h, i, j)
        k = nearest_on_segment(self, self.scratch, own2, cross, square)
        self.scratch.clear()
        return k

    def set_mean(self, h, i, j):
        """Set the scratch vector to the mean z of patterns i and j, which are not the same.

        Return the inner products of slack coordinates: of theta with itself, of theta with z, and of z with itself.
        """
        z, half = self.scratch, h.scale.to_stored(0.5)
        h.space.add_row(i, half * h.y[i], z)
        h.space.add_row(j, half * h.y[j], z)
        a, b = h.ids[i], h.ids[j]
        cross = half * (h.slack.own_score(a) + h.slack.own_score(b))
        square = half * half * (h.slack.own_length2(a) + h.slack.own_length2(b))
        return h.slack.norm2(), cross, square


@record
class ScratchVector(NamedTuple):
    """A sparse vector in dense memory, with a list of the coordinates that have been moved."""

    w: Any
    moved: Any  # the moved coordinates, in its first size[0] entries
    is_moved: Any  # 1 for each moved coordinate
    size: Any

    def move(self, j, step):
        if self.is_moved[j] == 0:
            self.is_moved[j] = 1
            self.moved[self.size[0]] = j
            self.size[0] += 1
        self.w[j] += step

    def clear(self):
        """Set all coordinates to 0, at a cost proportional to the number of moved ones."""
        for n in range(self.size[0]):
            j = self.moved[n]
            self.w[j] = 0.0
            self.is_moved[j] = 0
        self.size[0] = 0


def new_vector(size, p):
    """Return the `PNormVector` of `size` entries at w = 0."""
    scratch = ScratchVector(
        np.zeros(size), np.zeros(size, np.uint64), np.zeros(size, np.uint8), np.zeros(1, np.int64)
    )
    power_sum = np.zeros(4)
    power_sum[TOP] = 1.0
    return PNormVector(np.zeros(size), np.zeros(size), power_sum, scratch, float(p))


@compiled()
def nearest_on_segment(vector, z, own2, cross, square):
    """Return the k in [0, 1] for which |(1 - k) theta + k z|_p is least, with slack coordinates.

    These add (1 - k)^2 own2 + 2 k (1 - k) cross + k^2 square to the squared norm.
    """
    slope, _ = line_derivatives(vector, z, norm_elsewhere(vector, z), 1.0, 0.0)
    return line_search(vector, z, 1.0, slope + cross - own2, own2 - 2.0 * cross + square, 1.0, 0.0)


@compiled()
def line_search(vector, z, shrink, slope, quadratic, end, accuracy):
    """Return the k in [0, end] that minimises F(k), by Newton's method within a bracket.

    F(k) = |(1 - shrink k) theta + k z|_p^2 / 2 + linear k + quadratic k^2 / 2, where the linear term is given by the
    slope at k = 0. z is sparse: the coordinates of theta where z is 0 are replaced by one coordinate, their p-norm.

    Parameters
    ----------
    vector : PNormVector
    z : ScratchVector
    shrink : float
        0 or 1.
    slope : float
        F'(0).
    quadratic : float
    end : float
        Positive, possibly inf.
    accuracy : float
        Share of |F'(0)| at which |F'(k)| is small enough. At 0 the search ends at the resolution of float64.
    """
    if not slope < 0.0:
        return 0.0
    rest = norm_elsewhere(vector, z)
    first, second = line_derivatives(vector, z, rest, shrink, 0.0)
    linear = slope - first
    low, high, k, goal = 0.0, end, 0.0, -accuracy * slope
    first = before = slope
    last = np.inf  # length of the last step
    for _ in range(100):  # the tests need 9 at most with p > 2; bisection alone ends after 50
        second += quadratic
        new = k - first / second if second > 0.0 else high
        if new >= high and high == end:  # the end has not been tried
            if end == np.inf:
                return k
            new = end
        elif low < new and new < high and (first * before > 0.0 or abs(new - k) <= 0.5 * last):
            if accuracy == 0.0 and abs(new - k) <= 1e-8 * new:  # the error is about the square of this, 1e-16
                return new
        else:  # bisection: on both sides of the minimum Newton's steps may alternate, or they leave the bracket
            if high - low <= 1e-14 * high:  # near the resolution of float64
                return 0.5 * (low + high)
            new = 0.5 * (low + high)
        last, before, k = abs(new - k), first, new
        first, second = line_derivatives(vector, z, rest, shrink, k)
        first += linear + quadratic * k
        if abs(first) <= goal or (k == end and first < 0.0):
            return k
        if first > 0.0:
            high = k
        else:
            low = k
    return k


@compiled()
def norm_elsewhere(vector, z):
    """Return the p-norm of the coordinates of theta that have not been moved in z."""
    total, top = vector.power_sum[SUM], vector.power_sum[TOP]
    rest = total
    for n in range(z.size[0]):
        j = z.moved[n]
        rest -= vector.w[j] * (vector.theta[j] / top)
    if rest < 1e-8 * total:  # the difference has lost eight of sixteen digits: sum instead
        rest = 0.0
        if z.size[0] < vector.theta.size:
            for j in range(vector.theta.size):
                if z.is_moved[j] == 0:
                    rest += abs(vector.w[j] * (vector.theta[j] / top))
    return top * rest ** (1.0 / vector.p)


@compiled()
def line_derivatives(vector, z, rest, shrink, k):
    """Return the derivatives H', H'' of H(k) = |r|_p^2 / 2, r = (1 - shrink k) theta + k z.

    H' = |r|_p g.D and H'' = (p - 1) sum u_j^(p-2) D_j^2 - (p - 2) (g.D)^2, with D = z - shrink theta, u = |r| / |r|_p
    and g_j = sign(r_j) u_j^(p-1). Sums are over r divided by its largest entry `top`, against overflow. The coordinates
    where z is 0 are one coordinate, of value `rest` in theta. At r = 0, H'' is |D|_p^2.
    """
    p, keep = vector.p, 1.0 - shrink * k
    r0 = keep * rest
    top = r0
    for n in range(z.size[0]):
        j = z.moved[n]
        top = max(top, abs(keep * vector.theta[j] + k * z.w[j]))
    if top == 0.0:
        return 0.0, squared_norm(z, p)
    u = r0 / top
    power = max(u, LEAST_RATIO) ** (p - 2.0) if u > 0.0 else 0.0
    D = -shrink * rest
    total, slope, bend = power * u * u, power * u * D, power * D * D
    for n in range(z.size[0]):
        j = z.moved[n]
        D = z.w[j] - shrink * vector.theta[j]
        r = (keep * vector.theta[j] + k * z.w[j]) / top
        power = max(abs(r), LEAST_RATIO) ** (p - 2.0)
        total += power * r * r
        slope += power * r * D
        bend += power * D * D
    factor = total ** (2.0 / p - 1.0)  # total = (|r|_p / top)^p
    curvature = (p - 1.0) * factor * bend
    curvature -= (p - 2.0) * factor * factor * total ** (-2.0 / p) * slope * slope
    return top * factor * slope, curvature


@compiled()
def squared_norm(z, p):
    """Return |z|_p^2 of a sparse vector."""
    top = 0.0
    for n in range(z.size[0]):
        top = max(top, abs(z.w[z.moved[n]]))
    if top == 0.0:
        return 0.0
    total = 0.0
    for n in range(z.size[0]):
        total += (abs(z.w[z.moved[n]]) / top) ** p
    return top * top * total ** (2.0 / p)
