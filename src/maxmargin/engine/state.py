"""The weight w = sum alpha_i y_i x_i with its norm, bias and clock: the one state of every rule.

In other norms than the Euclidean w is the link's image of that sum. In any state the weight is
``number[FACTOR] * vector.w``, and ``scale.to_dual(alpha)`` are the dual variables.

A rule calls methods of the weight and never sees an array. Rows are local (they may be packed), patterns are
global: `ids` leads from one to the other, so that nothing has to be copied back from a packed set.
"""

from __future__ import annotations

from enum import Enum
from typing import Any, NamedTuple

from .jit import compiled, record

# Places in `number`. STOPPED: one more than the place in its order before which the last sweep stopped, 0 after a whole
# sweep; STEPS: the steps that sweep had made.
SCALE, INVERSE, BIAS, NORM2, TIME, FACTOR, STOPPED, STEPS = range(8)
NUMBERS = 8
# A factor below which stored numbers are multiplied through: they are divided by it, and their squares, up to 1e200
# times as large, still leave 1e100 for the data.
TINY = 1e-100


class Motion(Enum):
    """The vector that a rule moves; at p = 2 the first two are one."""

    LINK = "a sum of patterns, whose image is w"
    SUBGRADIENT = "w itself, down its norm; dual variables count steps"
    FLEXIBLE = "w itself, down a norm without the slack coordinates"


@record
class Unscaled(NamedTuple):
    """Scale of rules that only add: w and dual variables are what is stored; the bias is set from outside."""

    number: Any

    def to_score(self, x):
        return x + self.number[BIAS]

    def to_dual(self, a):
        return a

    def to_stored(self, c):
        return c


@record
class Scaled(NamedTuple):
    """Scale of rules that shrink w: a common factor of w and dual variables; the bias is outside of it."""

    number: Any

    def to_score(self, x):
        return self.number[FACTOR] * x + self.number[BIAS]

    def to_dual(self, a):
        return self.number[SCALE] * a

    def to_stored(self, c):
        return c * self.number[INVERSE]


# Slack: in the 2-norm soft margin pattern g has one more coordinate of its own, delta_g with delta_g^2 = 1 / (2 C s_g),
# and the problem is the hard margin of the extended patterns. The numbers below are at scale one.


@record
class NoSlack(NamedTuple):
    """No slack coordinates: the hard margin, and the hinge with its caps."""

    alpha: Any

    def extended_score(self, s, g, scale):
        """Return the score of pattern g with its slack coordinate, s without."""
        return s

    def own_norm2(self, g):
        """Return what the slack coordinate of pattern g adds to |w|^2."""
        return 0.0

    def norm2(self):
        """Return what all slack coordinates add to |w|^2."""
        return 0.0

    def own_score(self, g):
        """Return what the slack coordinate of pattern g adds to its score."""
        return 0.0

    def own_length2(self, g):
        """Return the square of the slack coordinate of pattern g."""
        return 0.0

    def before_add(self, g, c):
        """Take account of dual variable g, which is about to grow by c, in stored units."""

    def rescale(self, k):
        """Take account of dual variables that have been multiplied by k."""

    def set_coordinates(self, v):
        """Begin with slack coordinates v, where they are kept apart from the dual variables."""

    def shrink(self, k):
        """Multiply slack coordinates that are kept apart from the dual variables by k."""

    def gap_term(self, s, a, cap, g, unit):
        """Return the pattern's part of primal minus dual objective: (1 - m) (cap - a) or (m - 1) a, m = s / unit."""
        return max((unit - s) * (cap - a), (s - unit) * a)  # one of them is positive: no branch


@record
class L2Slack(NamedTuple):
    """Slack coordinates of weight delta_g alpha_g: they need no storage.

    Beside a p-norm the norm of all is sqrt(|theta|_p^2 + sum delta_g^2 alpha_g^2).
    """

    alpha: Any
    delta2: Any
    sum: Any  # sum delta_g^2 alpha_g^2, which rules that learn |w|^2 by recurrence at p = 2 do not ask for

    def extended_score(self, s, g, scale):
        return s + scale.to_dual(self.delta2[g] * self.alpha[g])

    def own_norm2(self, g):
        return self.delta2[g] * self.alpha[g] * self.alpha[g]

    def norm2(self):
        return max(self.sum[0], 0.0)

    def own_score(self, g):
        return self.delta2[g] * self.alpha[g]

    def own_length2(self, g):
        return self.delta2[g]

    def before_add(self, g, c):
        self.sum[0] += self.delta2[g] * c * (2.0 * self.alpha[g] + c)

    def rescale(self, k):
        total = 0.0  # anew: the running sum drifts
        for g in range(self.alpha.size):
            total += self.own_norm2(g)
        self.sum[0] = total

    def gap_term(self, s, a, cap, g, unit):
        """Return the same part for losses xi^2 / (2 delta^2), whose best dual variable is xi / delta^2; no caps."""
        delta2 = self.delta2[g]
        margin = s - delta2 * a
        off = max(unit - margin, 0.0) - delta2 * a
        return 0.5 * off * off / delta2 + a * max(margin - unit, 0.0)


@record
class ExplicitSlack(NamedTuple):
    """Slack coordinates delta_g v_g beside a w that goes down its norm; dual variables count steps and are not v.

    v is stored as factor * coordinates.
    """

    coordinates: Any
    delta2: Any
    state: Any  # the factor, and sum delta_g^2 v_g^2
    in_norm: float  # 1 where the norm of w has slack coordinates in it; 0 for the flexible margin

    def extended_score(self, s, g, scale):
        return s + self.state[0] * self.delta2[g] * self.coordinates[g]

    def own_norm2(self, g):
        v = self.state[0] * self.coordinates[g]
        return self.in_norm * (self.delta2[g] * v * v)

    def norm2(self):
        return self.in_norm * max(self.state[1], 0.0)

    def before_add(self, g, c):
        self.state[1] += self.delta2[g] * c * (2.0 * self.state[0] * self.coordinates[g] + c)
        self.coordinates[g] += c / self.state[0]

    def rescale(self, k):
        """Multiply the coordinates by k and by their factor; the sum is taken anew."""
        total = 0.0
        for g in range(self.coordinates.size):
            v = k * self.state[0] * self.coordinates[g]
            self.coordinates[g] = v
            total += self.delta2[g] * v * v
        self.state[0], self.state[1] = 1.0, total

    def set_coordinates(self, v):
        """Begin with slack coordinates v; their sum is taken with the next `rescale`."""
        self.coordinates[:] = v
        self.state[0] = 1.0

    def shrink(self, k):
        self.state[1] *= k * k
        if k * self.state[0] < TINY:
            self.rescale(k)
        else:
            self.state[0] *= k


@record
class Weight(NamedTuple):
    """The state of a rule; arrays a row: y, square, cap, ids; arrays a pattern: alpha, row_of."""

    space: Any
    scale: Any
    slack: Any
    y: Any
    square: Any  # |y_i x_i|^2, slack coordinate included
    cap: Any  # the largest dual variable
    ids: Any
    alpha: Any  # as stored: times the scale, it is the dual variable
    number: Any
    pair: Any  # the pattern of each class in a rule's pair, negative class first
    row_of: Any  # the row of each pattern; empty where a rule has no pair

    def score(self, i):
        """Return y_i (w.x_i + bias), slack coordinate included."""
        return self.slack.extended_score(
            self.y[i] * self.scale.to_score(self.space.dot(i)), self.ids[i], self.scale
        )

    def score_without_bias(self, i, s):
        """Return the score s of row i less the bias."""
        return s - self.y[i] * self.number[BIAS]

    def dual(self, i):
        """Return the dual variable of row i."""
        return self.scale.to_dual(self.alpha[self.ids[i]])

    def cap_of(self, i):
        """Return the largest dual variable that row i may have."""
        return self.cap[i]

    def length2(self, i):
        """Return |y_i x_i|^2."""
        return self.square[i]

    def norm2(self):
        """Return |w|^2, for rules that keep it."""
        return self.number[NORM2]

    def time(self):
        """Return the rule's own clock."""
        return self.number[TIME]

    def product(self, i, j):
        """Return y_i x_i . y_j x_j, slack coordinates included."""
        return self.square[i] if i == j else self.y[i] * self.y[j] * self.space.product(i, j)

    def nearest(self, i, j, s, r):
        """Return the k in [0, 1] for which (1 - k) w + k z has least norm, z the mean of patterns i and j.

        s and r are the scores of i and j.
        """
        return self.space.vector.nearest_on_segment(self, i, j, s, r)

    def partner(self, i):
        """Return the row of the pair that is of the class of which i is not."""
        return self.row_of[self.pair[0 if self.y[i] > 0.0 else 1]]

    def is_loaded(self, i):
        """Return whether the rows of the kernel that a step on row i adds are in memory, its partner's included."""
        return self.space.is_loaded(i) and (self.row_of.size == 0 or self.space.is_loaded(self.partner(i)))

    def stop_before(self, k, steps):
        """Record that a sweep stops before place k of its order, after this many steps, as a row is not loaded."""
        self.number[STOPPED] = k + 1.0
        self.number[STEPS] = steps

    def stopped(self):
        """Return whether the last sweep stopped on its way; the next one goes on there."""
        return self.number[STOPPED] > 0.0

    def add(self, i, c):
        """Add c y_i x_i to theta; w is theta at p = 2, else its image under the link."""
        c = self.scale.to_stored(c)
        g = self.ids[i]
        self.slack.before_add(g, c)
        self.alpha[g] += c
        self.space.put(i, c * self.y[i], self.space.vector)
        if self.space.vector.needs_rescaling():
            self.rescale(self.number[SCALE])

    def set_dual(self, i, a):
        """Set alpha_i to a, and w with it; for rules that only add."""
        c = a - self.alpha[self.ids[i]]
        self.alpha[self.ids[i]] = a  # exactly: a cap that is reached compares equal
        self.space.put(i, c * self.y[i], self.space.vector)

    def learn(self, i, c, s):
        """Add c y_i x_i as `add` does, and update |w|^2; s is the score of row i."""
        self.add(i, c)
        n, vector = self.number, self.space.vector
        n[NORM2] = vector.norm2_after_step(self, n[NORM2] + c * (2.0 * s + c * self.square[i]))
        n[FACTOR] = n[SCALE] * vector.score_factor()

    def shrink(self, k):
        """Multiply w and the dual variables by k."""
        n = self.number
        if abs(k * n[SCALE]) < TINY:
            self.rescale(k * n[SCALE])
        else:
            n[SCALE] *= k
            n[INVERSE] = 1.0 / n[SCALE]
        n[NORM2] *= k * k
        n[FACTOR] = n[SCALE] * self.space.vector.score_factor()

    def rescale(self, k):
        """Multiply stored numbers by k; a vector whose numbers have to be near 1 leaves a part of k as the scale."""
        n, vector = self.number, self.space.vector
        rest = vector.rescale(k)
        k /= rest
        for g in range(self.alpha.size):
            self.alpha[g] *= k
        self.slack.rescale(k)
        n[SCALE] = rest
        n[INVERSE] = 1.0 / rest
        n[FACTOR] = rest * vector.score_factor()

    def descend(self, rate):
        """Move (w, slack) by -rate times a subgradient of its norm; return the common factor of scores without bias."""
        return self.space.vector.descend_norm(self, rate)

    def add_to_bias(self, b):
        """Add b to the bias."""
        self.number[BIAS] += b

    def tick(self):
        """Advance the rule's clock by one."""
        self.number[TIME] += 1.0

    def set_pair(self, i):
        """Let row i be the pattern of its class in the pair."""
        self.pair[1 if self.y[i] > 0.0 else 0] = self.ids[i]

    def equalise(self, i, j):
        """Set the bias with which rows i and j, of opposite classes, have one score: |w|^2 at the end of a segment."""
        n = self.number
        n[FACTOR] = n[SCALE] * self.space.vector.score_factor()
        n[BIAS] = 0.0
        s, r = self.score(i), self.score(j)
        n[BIAS] = 0.5 * (r - s) * self.y[i]
        n[NORM2] = self.space.vector.norm2_after_step(self, 0.5 * (s + r))


@compiled()
def refresh(h):
    """Multiply the scale through and compute |w|^2 anew: running values drift by rounding."""
    h.rescale(h.number[SCALE])
    total = h.space.norm2_of(h)
    for g in range(h.alpha.size):
        total += h.slack.own_norm2(g)
    h.number[NORM2] = h.scale.to_dual(h.scale.to_dual(total))


def reset_step_counts(h):
    """Set dual variables that count steps to 0; those that make up w stay."""
    if not h.space.vector.is_combination():
        h.alpha[:] = 0.0


@compiled()
def copy_rows(target, source, rows):
    """Make row k of target a copy of row rows[k] of source."""
    for k in range(rows.size):
        i = rows[k]
        target.space.copy(k, source.space, i)
        target.y[k] = source.y[i]
        target.square[k] = source.square[i]
        target.cap[k] = source.cap[i]
        target.ids[k] = source.ids[i]
        if target.row_of.size:
            target.row_of[source.ids[i]] = k
