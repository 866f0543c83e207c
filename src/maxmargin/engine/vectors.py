"""Where w lives: a vector knows its norm and how a coordinate moves; and the innermost loops.

Fast-math is decided here, leaf by leaf: it makes dense sums two to four times faster and sparse ones slower.
Unsigned all the way in the sparse leaves: one signed index brings back wrap-around checks.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from .jit import compiled, record

ONE, TWO = np.uint64(1), np.uint64(2)
LOW, HIGH = 2.0**-300, 2.0**300  # a sum of powers between these neither over- nor underflows in a step
FALL = 2.0**-10  # share of its greatest value below which a running sum has lost three digits
MASS, PEAK, MOVES = range(3)  # places in `mass`
STALE = 16  # moves a coordinate after which a running sum is taken anew: a sixteenth of their cost
TIE = 1e-9  # entries as near to the largest count as largest


@record
class Plain(NamedTuple):
    """The Euclidean norm (p = 2): what is added to is what is scored against."""

    w: Any

    def move(self, j, step):
        self.w[j] += step

    def gain(self):
        """What turns the entries of w into weights, at scale one."""
        return 1.0

    def measure(self):
        """|w|^2 at scale one."""
        return dot(self.w, self.w, self.w.size)

    def measured(self, h, expected):
        """|w|^2 after a step, own coordinates included: as a recurrence expects it, where that is enough."""
        return expected

    def combines(self):
        """Do the dual weights make up w?"""
        return True

    def strays(self):
        """Is it time to multiply the scale through, and to take running sums anew?"""
        return False

    def multiply(self, k):
        """Multiply k through; the scale that is left."""
        for j in range(self.w.size):
            self.w[j] *= k
        return 1.0

    def slide(self, h, rate):
        """Down the norm of (w, own coordinates), at most to 0: a shrink; the factor that is left of all scores."""
        size = h.norm2() ** 0.5
        if size == 0.0:
            return 1.0
        k = max(1.0 - rate / size, 0.0)
        h.shrink(k)
        return k

    def toward(self, h, i, j, s, r):
        """The k in [0, 1] for which (1 - k) w + k z has least norm, z the mean of patterns i and j.

        The denominator |w - z|^2 is the one form of it that does not cancel near the optimum.
        """
        z2 = 0.25 * (h.square[i] + h.square[j] + 2.0 * h.product(i, j))
        n2, wz = h.norm2(), 0.5 * (s + r)
        distance = n2 - 2.0 * wz + z2
        return min(max((n2 - wz) / distance, 0.0), 1.0) if distance > 0.0 else 0.0


@record
class Powered(NamedTuple):
    """p > 2: theta is added to, w = sign(theta) |theta|^(p-1) is scored against, with a gain in common.

    The sum of |theta_j|^p follows every move, so that a pattern costs its own non-zeros. Powers stay in the range of
    float64 because the largest entry of theta stays near 1: what it is in truth, the scale knows. Entries so much
    smaller that their powers vanish weigh nothing.
    """

    w: Any
    theta: Any
    mass: Any
    scratch: Any
    p: float

    def move(self, j, step):
        old = self.theta[j]
        new = old + step
        size = abs(new)
        power = size ** (self.p - 1.0)
        self.mass[MASS] += power * size - self.w[j] * old
        self.mass[MOVES] += 1.0
        self.theta[j] = new
        self.w[j] = power if new > 0.0 else -power

    def gain(self):
        """The link has |theta|^(p-2) below each power."""
        mass = self.mass[MASS]
        return mass ** (2.0 / self.p - 1.0) if mass > 0.0 else 0.0

    def measure(self):
        """|theta|_p^2 = |w|_q^2 at scale one."""
        return max(self.mass[MASS], 0.0) ** (2.0 / self.p)

    def measured(self, h, expected):
        return h.scale.real(h.scale.real(self.measure() + h.slack.extras()))

    def combines(self):
        return True

    def strays(self):
        m = self.mass
        m[PEAK] = max(m[PEAK], m[MASS])
        steady = m[MASS] >= LOW and m[MASS] <= HIGH and m[MASS] >= FALL * m[PEAK]
        return not steady or m[MOVES] > STALE * (self.w.size + 1000.0)

    def multiply(self, k):
        """Bring the largest entry of theta to 1; the scale that is left."""
        top = 0.0
        for j in range(self.theta.size):
            top = max(top, abs(self.theta[j]))
        over = top if top > 0.0 and k != 0.0 else 1.0
        rest = k * over if k != 0.0 else 1.0
        total = 0.0
        for j in range(self.theta.size):
            new = self.theta[j] / over if k != 0.0 else 0.0
            size = abs(new)
            power = size ** (self.p - 1.0)
            total += power * size
            self.theta[j] = new
            self.w[j] = power if new > 0.0 else -power
        self.mass[MASS] = self.mass[PEAK] = total
        self.mass[MOVES] = 0.0
        return rest

    def toward(self, h, i, j, s, r):
        """The same by a search on the coordinates of the two patterns, which are of different rows."""
        z, half = self.scratch, h.scale.stored(0.5)
        h.space.put(i, half * h.y[i], z)
        h.space.put(j, half * h.y[j], z)
        a, b = h.ids[i], h.ids[j]
        cross = half * (h.slack.adds(a) + h.slack.adds(b))
        square = half * half * (h.slack.width2(a) + h.slack.width2(b))
        k = nearest_on_segment(self, z, h.slack.extras(), cross, square)
        z.clear()
        return k


@record
class Scratch(NamedTuple):
    """A vector that remembers which coordinates were touched."""

    w: Any
    touched: Any
    mark: Any
    size: Any

    def move(self, j, step):
        if self.mark[j] == 0:
            self.mark[j] = 1
            self.touched[self.size[0]] = j
            self.size[0] += 1
        self.w[j] += step

    def clear(self):
        """All zero, at the cost of what was touched."""
        for n in range(self.size[0]):
            j = self.touched[n]
            self.w[j] = 0.0
            self.mark[j] = 0
        self.size[0] = 0


# what the three vectors that go down their norm have in common; `down` is theirs


def _move(self, j, step):
    self.w[j] += step


def _gain(self):
    return 1.0


def _measured(self, h, expected):
    return self.measure() + h.slack.extras()


def _combines(self):
    return False


def _strays(self):
    return False


def _multiply(self, k):
    for j in range(self.w.size):
        self.w[j] *= k
    return 1.0


def _slide(self, h, rate):
    """Down the norm of (w, own coordinates), along a subgradient; scores have no factor in common."""
    size, whole = self.size[0], h.norm2() ** 0.5
    if size > 0.0:
        self.down(rate * size / whole)
    if whole > 0.0:
        h.slack.relax(max(1.0 - rate / whole, 0.0))
    return 1.0


@record
class Primal(NamedTuple):
    """1 < q < inf: w itself is kept, and goes down its q-norm, which is measured after every step in O(d).

    Dual weights count the steps of each pattern, and w is no combination of patterns.
    """

    w: Any
    power: Any  # (|w_j| / max |w|)^(q-1), as of the last measure
    size: Any  # |w|_q and max |w|
    q: float

    move, gain, measured, combines = _move, _gain, _measured, _combines
    strays, multiply, slide = _strays, _multiply, _slide

    def measure(self):
        top, total = largest(self.w), 0.0
        if top > 0.0:
            for j in range(self.w.size):
                u = abs(self.w[j]) / top
                self.power[j] = u ** (self.q - 1.0)
                total += self.power[j] * u
            total = top * total ** (1.0 / self.q)
        self.size[0], self.size[1] = total, top
        return total * total

    def down(self, step):
        step *= (self.size[1] / self.size[0]) ** (self.q - 1.0)
        for j in range(self.w.size):
            self.w[j] = toward_zero(self.w[j], step * self.power[j])


@record
class Absolute(NamedTuple):
    """q = 1 (p = inf): as `Primal`; what a step would carry beyond 0 stays there, so that w is sparse."""

    w: Any
    size: Any

    move, gain, measured, combines = _move, _gain, _measured, _combines
    strays, multiply, slide = _strays, _multiply, _slide

    def measure(self):
        total = 0.0
        for j in range(self.w.size):
            total += abs(self.w[j])
        self.size[0] = total
        return total * total

    def down(self, step):
        for j in range(self.w.size):
            self.w[j] = toward_zero(self.w[j], step)


@record
class Largest(NamedTuple):
    """q = inf (p = 1): as `Primal`; the largest coordinates share the step."""

    w: Any
    size: Any

    move, gain, measured, combines = _move, _gain, _measured, _combines
    strays, multiply, slide = _strays, _multiply, _slide

    def measure(self):
        self.size[0] = largest(self.w)
        return self.size[0] ** 2

    def down(self, step):
        bar, ties = self.size[0] * (1.0 - TIE), 0
        for j in range(self.w.size):
            ties += abs(self.w[j]) >= bar
        step /= ties
        for j in range(self.w.size):
            if abs(self.w[j]) >= bar:
                self.w[j] = toward_zero(self.w[j], step)


@compiled(forceinline=True)
def toward_zero(u, step):
    """u moved by this much, at most to 0."""
    return max(u - step, 0.0) if u > 0.0 else min(u + step, 0.0)


@compiled(forceinline=True)
def largest(w):
    """max |w_j|."""
    top = 0.0
    for j in range(w.size):
        top = max(top, abs(w[j]))
    return top


@compiled()
def nearest_on_segment(vector, z, own2, cross, square):
    """The k in [0, 1] of least |(1 - k) theta + k z|_p^2 + (1 - k)^2 own2 + 2 k (1 - k) cross + k^2 square.

    z has few coordinates; what theta has elsewhere goes as one more, of size |rest|_p. Newton's steps within a bracket,
    by H' = f^-1(r).D and H'' = (p - 1) sum u^(p-2) D^2 - (p - 2) (g.D)^2, with r = (1 - k) theta + k z, D = z - theta,
    u = |r| / |r|_p and g = sign(r) u^(p-1): all are of numbers divided by the largest.
    """
    p = vector.p
    mass = vector.mass[MASS]
    rest = mass
    for n in range(z.size[0]):
        j = z.touched[n]
        rest -= vector.w[j] * vector.theta[j]
    if rest < 1e-8 * mass:  # what is left of a difference: taken anew
        rest = 0.0
        for j in range(vector.theta.size):
            if z.mark[j] == 0:
                rest += abs(vector.w[j] * vector.theta[j])
    away = rest ** (1.0 / p)
    low, high, k, last = 0.0, 1.0, 0.0, 2.0
    beyond = True  # may the end itself be the nearest point?
    for _ in range(100):
        r0 = (1.0 - k) * away
        top = r0
        for n in range(z.size[0]):
            j = z.touched[n]
            top = max(top, abs((1.0 - k) * vector.theta[j] + k * z.w[j]))
        first = -(1.0 - k) * own2 + (1.0 - 2.0 * k) * cross + k * square
        second = own2 - 2.0 * cross + square
        if top > 0.0:
            u = r0 / top
            power = u ** (p - 2.0)
            total, slope, bend = power * u * u, -power * u * away, power * away * away
            for n in range(z.size[0]):
                j = z.touched[n]
                D = z.w[j] - vector.theta[j]
                r = ((1.0 - k) * vector.theta[j] + k * z.w[j]) / top
                power = abs(r) ** (p - 2.0)
                total += power * r * r
                slope += power * r * D
                bend += power * D * D
            below = total ** (2.0 / p - 1.0)
            first += top * below * slope
            second += (p - 1.0) * below * bend - (p - 2.0) * below * below * total ** (
                -2.0 / p
            ) * slope * slope
        if first > 0.0:
            high = k
        elif first < 0.0:
            low = k
        if first == 0.0 or low == 1.0 or high == 0.0:
            return k
        new = k - first / second if second > 0.0 else 1.0
        if beyond and new >= 1.0:
            new = 1.0
            beyond = False
        elif low < new and new < high and abs(new - k) <= 0.5 * last:
            if abs(new - k) <= 1e-8 * new:  # a step of Newton's as small as this leaves its square
                return new
        else:  # they may go to and fro between two far points: each is half as long as the last, or bisects
            new = 0.5 * (low + high)
            if high - low <= 1e-14 * high:
                return new
        last = abs(new - k)
        k = new
    return k


@compiled(fastmath={"reassoc", "contract"}, forceinline=True)
def dot(a, b, size):
    """a.b over the first `size` entries."""
    total = 0.0
    for j in range(size):
        total += a[j] * b[j]
    return total


@compiled(forceinline=True)
def dot_row(X, i, w):
    """X[i].w; w may be longer than the row."""
    return dot(X[i], w, X.shape[1])


@compiled(forceinline=True)
def dot_sparse(indptr, indices, data, i, w):
    """Row i of a CSR matrix times w: two sums side by side have half the latency of one."""
    begin, end = np.uint64(indptr[i]), np.uint64(indptr[i + 1])
    even = odd = 0.0
    if (end - begin) & ONE:
        end -= ONE
        even = data[end] * w[indices[end]]
    for j in range(begin, end, TWO):
        even += data[j] * w[indices[j]]
        odd += data[j + ONE] * w[indices[j + ONE]]
    return even + odd


@compiled()
def squares_sparse(indptr, data, out):
    """out[i] = |row i|^2."""
    for i in range(out.size):
        total = 0.0
        for j in range(indptr[i], indptr[i + 1]):
            value = np.float64(data[j])
            total += value * value
        out[i] = total


@compiled(fastmath={"reassoc", "contract"})
def squares_dense(X, out):
    """out[i] = |row i|^2."""
    for i in range(out.size):
        total = 0.0
        for j in range(X.shape[1]):
            value = np.float64(X[i, j])
            total += value * value
        out[i] = total


@compiled()
def squares_p_sparse(indptr, data, p, out):
    """out[i] = |row i|_p^2; entries are divided by the largest of the row."""
    for i in range(out.size):
        top = 0.0
        for j in range(indptr[i], indptr[i + 1]):
            top = max(top, abs(np.float64(data[j])))
        total = 0.0
        if top > 0.0 and p < np.inf:
            for j in range(indptr[i], indptr[i + 1]):
                total += (abs(np.float64(data[j])) / top) ** p
            top *= total ** (1.0 / p)
        out[i] = top * top


@compiled()
def squares_p_dense(X, p, out):
    """out[i] = |row i|_p^2; entries are divided by the largest of the row."""
    for i in range(out.size):
        top = 0.0
        for j in range(X.shape[1]):
            top = max(top, abs(np.float64(X[i, j])))
        total = 0.0
        if top > 0.0 and p < np.inf:
            for j in range(X.shape[1]):
                total += (abs(np.float64(X[i, j])) / top) ** p
            top *= total ** (1.0 / p)
        out[i] = top * top


@compiled(forceinline=True)
def product_sparse(indptr, indices, data, i, j):
    """Row i times row j of a CSR matrix, column by column in order."""
    a, b, end, stop = (
        np.uint64(indptr[i]),
        np.uint64(indptr[j]),
        np.uint64(indptr[i + 1]),
        np.uint64(indptr[j + 1]),
    )
    total = 0.0
    while a < end and b < stop:
        if indices[a] == indices[b]:
            total += np.float64(data[a]) * np.float64(data[b])
            a += ONE
            b += ONE
        elif indices[a] < indices[b]:
            a += ONE
        else:
            b += ONE
    return total
