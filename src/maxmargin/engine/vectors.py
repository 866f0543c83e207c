"""The vector w at p = 2, or w with its q-norm; and the inner products of rows.

Distance is measured in the p-norm, w in the dual q-norm, 1/p + 1/q = 1. `p_norm.PNormVector` is the third vector.
Methods take h, the `state.Weight` of the vector. A method that a vector has for all norms is documented in
`EuclideanVector`. Fast-math is chosen for each function: it makes dense sums two to four times faster and sparse ones
slower. Indices of sparse rows are unsigned everywhere: one signed index makes the compiler add checks for negative
indices.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from .jit import compiled, record

ONE, TWO = np.uint64(1), np.uint64(2)
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
        """Multiply w by k, in the stored numbers."""
        for j in range(self.w.size):
            self.w[j] *= k

    def best_dual_of_row(self, h, i, s, unit):
        """Return the dual variable of row i, of score s, at which the dual objective is largest, within its cap.

        At p = 2 this is min(max(alpha_i + (unit - s) / |x_i|^2, 0), cap).
        """
        return min(max(h.dual(i) + (unit - s) / h.length2(i), 0.0), h.cap_of(i))

    def after_step(self, h, i, c):
        """Update running numbers after c y_i x_i has been added to the sum of patterns; here there are none."""

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
