"""The vector w for each norm, with the update of a coordinate and the norm of w; and the inner products of rows.

Distance is measured in the p-norm, w in the dual q-norm, 1/p + 1/q = 1. Methods take h, the `state.Weight` of the
vector. A method that a vector has for all norms is documented in `EuclideanVector`. Fast-math is chosen for each
function: it makes dense sums two to four times faster and sparse ones slower. Indices of sparse rows are unsigned
everywhere: one signed index makes the compiler add checks for negative indices.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from .jit import compiled, record

ONE, TWO = np.uint64(1), np.uint64(2)
# Range of sum |theta_j|^p outside of which the vector is rescaled: from inside it one step reaches neither 2^1024 nor
# 2^-1024, the limits of float64. A narrower range rescales more often.
MIN_POWER_SUM, MAX_POWER_SUM = 2.0**-300, 2.0**300
# The running sum is computed again when it falls below this fraction of its largest value: it has lost three decimal
# digits then.
MIN_FRACTION = 2.0**-10
SUM, PEAK, MOVES = range(3)  # indices in `power_sum`
# The running sum is computed again after this many moves for each coordinate, which adds a sixteenth to their cost; a
# larger number lets more rounding errors accumulate. EXTRA_COORDINATES are counted as well, so that short vectors are
# not rescaled every few patterns; a round value, not tuned.
MAX_MOVES, EXTRA_COORDINATES = 16, 1000.0
# Entries within this relative distance of the largest count as largest: the tolerance of the IMA authors' code.
TIE_TOLERANCE = 1e-9


@record
class EuclideanVector(NamedTuple):
    """p = 2: w is the sum of patterns itself."""

    w: Any

    def move(self, j, step):
        """Add `step` to coordinate j of the sum of patterns."""
        self.w[j] += step

    def score_factor(self):
        """Return the factor that turns entries of w into weights, at scale one."""
        return 1.0

    def norm2(self):
        """Return |w|_q^2 at scale one, without slack coordinates."""
        return dot(self.w, self.w, self.w.size)

    def norm2_after_step(self, h, expected):
        """Return |w|^2 after a step, slack coordinates included; `expected` is its value at p = 2, by a recurrence."""
        return expected

    def is_combination(self):
        """Return whether w is (the image under the link of) the sum of alpha_i y_i x_i."""
        return True

    def needs_rescaling(self):
        """Return whether `rescale` is due, because numbers leave their range or running sums have lost digits."""
        return False

    def rescale(self, k):
        """Multiply w by k, in the stored numbers or as a remaining scale; return the remaining scale, here 1."""
        for j in range(self.w.size):
            self.w[j] *= k
        return 1.0

    def descend_norm(self, h, rate):
        """Move (w, slack) by -rate times a subgradient of its norm, at most to 0; return the factor of all scores.

        At p = 2 the subgradient is (w, slack) / |(w, slack)|, so that the result is a multiple of (w, slack).
        """
        size = h.norm2() ** 0.5
        if size == 0.0:
            return 1.0
        k = max(1.0 - rate / size, 0.0)
        h.shrink(k)
        return k

    def nearest_on_segment(self, h, i, j, s, r):
        """Return the k in [0, 1] for which (1 - k) w + k z has least norm, z the mean of patterns i and j.

        k = (|w|^2 - w.z) / |w - z|^2, cut to [0, 1]; s and r are the scores of i and j. The denominator does not cancel
        near the optimum.
        """
        z2 = 0.25 * (h.square[i] + h.square[j] + 2.0 * h.product(i, j))
        n2, wz = h.norm2(), 0.5 * (s + r)
        distance = n2 - 2.0 * wz + z2
        return min(max((n2 - wz) / distance, 0.0), 1.0) if distance > 0.0 else 0.0


@record
class PNormVector(NamedTuple):
    """p > 2: theta, the sum of patterns, and w = sign(theta) |theta|^(p-1), its image under the link up to a factor.

    The link is f^-1(theta)_j = sign(theta_j) |theta_j|^(p-1) / |theta|_p^(p-2), for which |w|_q = |theta|_p. The sum of
    |theta_j|^p is updated by every move, so that a pattern costs its own non-zeros. Powers stay in the range of float64
    because `rescale` divides theta by its largest entry, which becomes part of the scale. Entries whose powers
    underflow have weight 0.
    """

    w: Any
    theta: Any
    power_sum: Any  # SUM: sum |theta_j|^p; PEAK: its largest value; MOVES: moves since it was last computed
    scratch: Any  # a ScratchVector
    p: float

    def move(self, j, step):
        old = self.theta[j]
        new = old + step
        size = abs(new)
        power = size ** (self.p - 1.0)
        self.power_sum[SUM] += power * size - self.w[j] * old
        self.power_sum[MOVES] += 1.0
        self.theta[j] = new
        self.w[j] = power if new > 0.0 else -power

    def score_factor(self):
        """Return |theta|_p^(2 - p): the link is sign(theta_j) |theta_j|^(p-1) / |theta|_p^(p-2)."""
        total = self.power_sum[SUM]
        return total ** (2.0 / self.p - 1.0) if total > 0.0 else 0.0

    def norm2(self):
        """Return |theta|_p^2 = |w|_q^2 at scale one."""
        return max(self.power_sum[SUM], 0.0) ** (2.0 / self.p)

    def norm2_after_step(self, h, expected):
        return h.scale.to_dual(h.scale.to_dual(self.norm2() + h.slack.norm2()))

    is_combination = EuclideanVector.is_combination

    def needs_rescaling(self):
        m = self.power_sum
        m[PEAK] = max(m[PEAK], m[SUM])
        in_range = m[SUM] >= MIN_POWER_SUM and m[SUM] <= MAX_POWER_SUM and m[SUM] >= MIN_FRACTION * m[PEAK]
        return not in_range or m[MOVES] > MAX_MOVES * (self.w.size + EXTRA_COORDINATES)

    def rescale(self, k):
        """Divide theta by its largest entry and compute running sums again; return k times that entry, the new scale.

        k = 0 sets w to 0, with the scale 1.
        """
        top = largest(self.theta)
        divisor = top if top > 0.0 and k != 0.0 else 1.0
        total = 0.0
        for j in range(self.theta.size):
            new = self.theta[j] / divisor if k != 0.0 else 0.0
            size = abs(new)
            power = size ** (self.p - 1.0)
            total += power * size
            self.theta[j] = new
            self.w[j] = power if new > 0.0 else -power
        self.power_sum[SUM] = self.power_sum[PEAK] = total
        self.power_sum[MOVES] = 0.0
        return k * divisor if k != 0.0 else 1.0

    def nearest_on_segment(self, h, i, j, s, r):
        """Return the same k for the p-norm, by `p_norm_segment_search`; patterns i and j are not the same."""
        z, half = self.scratch, h.scale.to_stored(0.5)
        h.space.add_row(i, half * h.y[i], z)
        h.space.add_row(j, half * h.y[j], z)
        a, b = h.ids[i], h.ids[j]
        cross = half * (h.slack.own_score(a) + h.slack.own_score(b))
        square = half * half * (h.slack.own_length2(a) + h.slack.own_length2(b))
        k = p_norm_segment_search(self, z, h.slack.norm2(), cross, square)
        z.clear()
        return k


@record
class ScratchVector(NamedTuple):
    """A sparse vector in dense memory, with a list of the coordinates that have been moved."""

    w: Any
    touched: Any  # the moved coordinates, in its first size[0] entries
    is_touched: Any  # 1 for each moved coordinate
    size: Any

    def move(self, j, step):
        if self.is_touched[j] == 0:
            self.is_touched[j] = 1
            self.touched[self.size[0]] = j
            self.size[0] += 1
        self.w[j] += step

    def clear(self):
        """Set all coordinates to 0, at a cost proportional to the number of moved ones."""
        for n in range(self.size[0]):
            j = self.touched[n]
            self.w[j] = 0.0
            self.is_touched[j] = 0
        self.size[0] = 0


@record
class QNormVector(NamedTuple):
    """p other than 2: w itself, for rules that descend its q-norm, which is computed after every step in O(d).

    Dual variables count the steps of each pattern, and w is no combination of patterns.
    """

    w: Any
    power: Any  # (|w_j| / max |w|)^(q-1) for finite q above 1, else 1; computed with `norm2`
    norms: Any  # |w|_q and max |w|; computed with `norm2`
    q: float

    move, score_factor = EuclideanVector.move, EuclideanVector.score_factor
    needs_rescaling, rescale = EuclideanVector.needs_rescaling, EuclideanVector.rescale

    def norm2(self):
        top = largest(self.w)
        total = top  # q = inf
        if self.q == 1.0:
            total = 0.0
            for j in range(self.w.size):
                total += abs(self.w[j])
        elif self.q < np.inf and top > 0.0:
            total = 0.0
            for j in range(self.w.size):
                u = abs(self.w[j]) / top
                self.power[j] = u ** (self.q - 1.0)
                total += self.power[j] * u
            total = top * total ** (1.0 / self.q)
        self.norms[0], self.norms[1] = total, top
        return total * total

    def norm2_after_step(self, h, expected):
        return self.norm2() + h.slack.norm2()

    def is_combination(self):
        return False

    def descend_norm(self, h, rate):
        """Move (w, slack) by -rate times a subgradient g of its norm; return 1, as scores have no common factor.

        g_j = sign(w_j) (|w_j| / |w|_q)^(q-1), times |w|_q / |(w, slack)|; a coordinate that would change its sign
        becomes 0.
        """
        norm, extended = self.norms[0], h.norm2() ** 0.5  # |w|_q and |(w, slack)|
        if norm > 0.0:
            step = rate * norm / extended
            if self.q == np.inf:
                self.descend_largest(step)
            else:
                step *= (self.norms[1] / norm) ** (self.q - 1.0)
                for j in range(self.w.size):
                    self.w[j] = toward_zero(self.w[j], step * self.power[j])
        if extended > 0.0:
            h.slack.shrink(max(1.0 - rate / extended, 0.0))
        return 1.0

    def descend_largest(self, step):
        """Divide the step equally between the largest coordinates, up to TIE_TOLERANCE: a subgradient at q = inf."""
        least, ties = self.norms[0] * (1.0 - TIE_TOLERANCE), 0
        for j in range(self.w.size):
            ties += abs(self.w[j]) >= least
        step /= ties
        for j in range(self.w.size):
            if abs(self.w[j]) >= least:
                self.w[j] = toward_zero(self.w[j], step)


@compiled(forceinline=True)
def toward_zero(u, step):
    """Return u moved by `step` towards 0, at most to 0."""
    return max(u - step, 0.0) if u > 0.0 else min(u + step, 0.0)


@compiled(forceinline=True)
def largest(w):
    """Return max |w_j|."""
    top = 0.0
    for j in range(w.size):
        top = max(top, abs(w[j]))
    return top


@compiled()
def p_norm_segment_search(vector, z, own2, cross, square):
    """Return the k in [0, 1] that minimises |r|_p^2 + (1 - k)^2 own2 + 2 k (1 - k) cross + k^2 square.

    r = (1 - k) theta + k z. Newton's method within a bracket, on one half of this convex function, from k = 0. z is
    sparse: the coordinates of theta where z is 0 are replaced by one coordinate, their p-norm.

    Parameters
    ----------
    vector : PNormVector
    z : ScratchVector
    own2, square : float
        Squared norms of the slack coordinates of theta and of z.
    cross : float
        Their inner product.
    """
    rest = norm_elsewhere(vector, z)
    # last: the length of the last step; 2 admits a first step of any length in [0, 1]
    low, high, k, last = 0.0, 1.0, 0.0, 2.0
    end_is_open = True  # k = 1 has not been tried
    for _ in range(100):  # the tests need 9 at most; bisection alone ends after 50
        first, second = segment_derivatives(vector, z, rest, k)
        first += -(1.0 - k) * own2 + (1.0 - 2.0 * k) * cross + k * square
        second += own2 - 2.0 * cross + square
        if first > 0.0:
            high = k
        elif first < 0.0:
            low = k
        if first == 0.0 or low == 1.0 or high == 0.0:
            return k
        new = k - first / second if second > 0.0 else 1.0
        if end_is_open and new >= 1.0:
            new = 1.0
            end_is_open = False
        elif low < new and new < high and abs(new - k) <= 0.5 * last:
            if abs(new - k) <= 1e-8 * new:  # the error after such a step is of the order of its square, 1e-16
                return new
        else:  # bisection, as Newton's steps may alternate: each is at most half as long as the last one
            new = 0.5 * (low + high)
            if high - low <= 1e-14 * high:  # near the resolution of float64; a round value, not tuned
                return new
        last = abs(new - k)
        k = new
    return k


@compiled()
def norm_elsewhere(vector, z):
    """Return the p-norm of the coordinates of theta that have not been moved in z."""
    total = vector.power_sum[SUM]
    rest = total
    for n in range(z.size[0]):
        j = z.touched[n]
        rest -= vector.w[j] * vector.theta[j]
    if rest < 1e-8 * total:  # the difference has lost eight of sixteen digits: sum instead
        rest = 0.0
        for j in range(vector.theta.size):
            if z.is_touched[j] == 0:
                rest += abs(vector.w[j] * vector.theta[j])
    return rest ** (1.0 / vector.p)


@compiled()
def segment_derivatives(vector, z, rest, k):
    """Return the derivatives H', H'' of H(k) = |r|_p^2 / 2, r = (1 - k) theta + k z.

    H' = |r|_p g.D and H'' = (p - 1) sum u_j^(p-2) D_j^2 - (p - 2) (g.D)^2, with D = z - theta, u = |r| / |r|_p and
    g_j = sign(r_j) u_j^(p-1). Sums are over r divided by its largest entry `top`, against overflow. The coordinates
    where z is 0 are one coordinate, of value `rest` in theta.
    """
    p = vector.p
    r0 = (1.0 - k) * rest
    top = r0
    for n in range(z.size[0]):
        j = z.touched[n]
        top = max(top, abs((1.0 - k) * vector.theta[j] + k * z.w[j]))
    if top == 0.0:
        return 0.0, 0.0
    u = r0 / top
    power = u ** (p - 2.0)
    total, slope, bend = power * u * u, -power * u * rest, power * rest * rest
    for n in range(z.size[0]):
        j = z.touched[n]
        D = z.w[j] - vector.theta[j]
        r = ((1.0 - k) * vector.theta[j] + k * z.w[j]) / top
        power = abs(r) ** (p - 2.0)
        total += power * r * r
        slope += power * r * D
        bend += power * D * D
    factor = total ** (2.0 / p - 1.0)  # total = (|r|_p / top)^p
    curvature = (p - 1.0) * factor * bend
    curvature -= (p - 2.0) * factor * factor * total ** (-2.0 / p) * slope * slope
    return top * factor * slope, curvature


@compiled(fastmath={"reassoc", "contract"}, forceinline=True)
def dot(a, b, size):
    """Return a.b over the first `size` entries; products are float64 also where both rows are float32."""
    total = 0.0
    for j in range(size):
        total += a[j] * np.float64(b[j])
    return total


@compiled(forceinline=True)
def dot_sparse(indptr, indices, data, i, w):
    """Return the inner product of row i of a CSR matrix and w, by two independent sums, which halve the latency."""
    begin, end = np.uint64(indptr[i]), np.uint64(indptr[i + 1])
    even = odd = 0.0
    if (end - begin) & ONE:
        end -= ONE
        even = entry(data, end) * w[indices[end]]
    for j in range(begin, end, TWO):
        even += entry(data, j) * w[indices[j]]
        odd += entry(data, j + ONE) * w[indices[j + ONE]]
    return even + odd


@compiled(forceinline=True)
def entry(data, j):
    """Return stored entry j of a CSR matrix; `data` is None where all are 1: no load, and no product with it."""
    return 1.0 if data is None else data[j]


@compiled(forceinline=True)
def copy_entry(data, k, source, j):
    """Make stored entry k a copy of stored entry j of another CSR matrix; where both have `data` None, do nothing."""
    if data is not None:
        data[k] = source[j]


@compiled(forceinline=True)
def product_sparse(indptr, indices, data, i, j):
    """Return the inner product of rows i and j of a CSR matrix with sorted indices, by merging the indices."""
    a, end = np.uint64(indptr[i]), np.uint64(indptr[i + 1])
    b, stop = np.uint64(indptr[j]), np.uint64(indptr[j + 1])
    total = 0.0
    while a < end and b < stop:
        if indices[a] == indices[b]:
            total += np.float64(entry(data, a)) * np.float64(entry(data, b))
            a += ONE
            b += ONE
        elif indices[a] < indices[b]:
            a += ONE
        else:
            b += ONE
    return total
