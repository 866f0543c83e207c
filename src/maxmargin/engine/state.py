"""The state of an online algorithm: the weight vector w = sum alpha_i y_i x_i with its norm, bias and step count.

A *rule* is the update of an online algorithm: a record with the methods `threshold`, `violates` and `step`, which
`sweep.sweep` calls for one row after the other. A rule calls methods of the `Weight`, named h in all signatures, and
uses no array. A *pattern* is a labelled row y_i x_i.

For p other than 2, w is the image of theta = sum alpha_i y_i x_i under the link of the p-norm algorithms
(`p_norm.PNormVector`). In any state w is ``number[FACTOR] * vector.w``, and ``scale.to_dual(alpha)`` are the dual
variables.

Row indices i, j are local to the present set of rows, which may be a packed copy of a part of the data; pattern indices
g are global. `ids` maps rows to patterns, so that nothing has to be copied back from a packed set.

The scale is a common factor of w and of the dual variables that is stored as one number. "At scale one" and "as stored"
mean without this factor.
"""

from __future__ import annotations

from enum import Enum
from typing import Any, NamedTuple

import numpy as np

from .jit import compiled, record

# Indices in `number`. SCALE and its inverse; BIAS; NORM2: |w|^2; TIME: the step count t of the rule; FACTOR: scale
# times the factor of the link; STOPPED: one more than the position in the order before which the last sweep stopped, 0
# after a complete sweep; STEPS: the steps that the stopped sweep had made; CONSTANT2: the square of a constant
# coordinate that is no part of the p-norm, with its weight in BIAS.
SCALE, INVERSE, BIAS, NORM2, TIME, FACTOR, STOPPED, STEPS, CONSTANT2 = range(9)
NUMBERS = 9
# Scale below which stored numbers are multiplied by it. Stored numbers are 1 / TINY times as large at most, and their
# squares 1e200 times, which leaves a factor of 1e100 for the data; a smaller value would rescale less often.
TINY = 1e-100


class Motion(Enum):
    """The vector to which the steps of a rule add patterns; at p = 2 the first two are the same.

    A rule that adds patterns to w itself also takes subgradient steps on the norm of w. If w is then no combination of
    patterns (p other than 2, or FLEXIBLE), dual variables count the steps of each pattern.
    """

    LINK = "theta, a sum of patterns; w is its image under the link"
    SUBGRADIENT = "w, with subgradient steps on its norm, slack coordinates included"
    FLEXIBLE = "w, with subgradient steps on its norm without slack coordinates"


@record
class Unscaled(NamedTuple):
    """The scale 1, for rules that only add patterns: w and dual variables equal the stored numbers."""

    number: Any

    def to_score(self, x):
        """Return the score, bias included, from the inner product x of a row and the stored vector."""
        return x + self.number[BIAS]

    def to_dual(self, a):
        """Return the dual variable that is stored as a."""
        return a

    def to_stored(self, c):
        """Return the stored number of the dual variable c."""
        return c


@record
class Scaled(NamedTuple):
    """The scale of rules that shrink w: a common factor of w and the dual variables, but not of the bias."""

    number: Any

    def to_score(self, x):
        return self.number[FACTOR] * x + self.number[BIAS]

    def to_dual(self, a):
        return self.number[SCALE] * a

    def to_stored(self, c):
        return c * self.number[INVERSE]


# Slack: in the 2-norm soft margin pattern g has a slack coordinate of its own, delta_g, with delta_g^2 = 1 / (2 C s_g)
# and sample weight s_g; the problem is the hard margin of the extended patterns. Methods named `own_...` return the
# term of this coordinate. The numbers below are at scale one.


@record
class NoSlack(NamedTuple):
    """No slack coordinates: the hard margin, and the hinge with its caps."""

    alpha: Any

    def extended_score(self, s, g, scale):
        """Return the score of pattern g with its slack coordinate; s is the score without."""
        return s

    def own_norm2(self, g):
        """Return the term of the slack coordinate of pattern g in |w|^2."""
        return 0.0

    def norm2(self):
        """Return the term of all slack coordinates in |w|^2."""
        return 0.0

    def own_score(self, g):
        """Return the term of the slack coordinate of pattern g in its score."""
        return 0.0

    def own_length2(self, g):
        """Return the square of the slack coordinate of pattern g."""
        return 0.0

    def before_add(self, g, c):
        """Update sums and slack coordinates before dual variable g grows by c, both as stored; here nothing."""

    def rescale(self, k):
        """Update sums and slack coordinates after the stored dual variables have been multiplied by k; here nothing."""

    def shrink(self, k):
        """Multiply the slack coordinates by k, where they are stored separately; here nothing."""

    def gap_terms(self, s, a, cap, g, unit):
        """Return unit^2 times the terms of patterns g in the primal minus the dual objective; for arrays.

        With the margin m = s / unit this is (unit - s) (cap - a) for m < 1, else (s - unit) a.
        """
        return np.maximum((unit - s) * (cap - a), (s - unit) * a)


@record
class L2Slack(NamedTuple):
    """Slack coordinates of weight delta_g alpha_g, which are computed from the dual variables.

    With the p-norm of theta, the norm of the extended weight is sqrt(|theta|_p^2 + sum delta_g^2 alpha_g^2).
    """

    alpha: Any
    delta2: Any  # delta_g^2 of every pattern
    sum: Any  # sum delta_g^2 alpha_g^2; not used at p = 2, where |w|^2 follows a recurrence

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
        total = 0.0  # computed again, as rounding errors accumulate in the running sum
        for g in range(self.alpha.size):
            total += self.own_norm2(g)
        self.sum[0] = total

    def gap_terms(self, s, a, cap, g, unit):
        """Return the same terms for the loss xi^2 / (2 delta^2), where dual variables have no caps.

        With the margin m = s - delta^2 a and xi = max(unit - m, 0), it is
        (xi - delta^2 a)^2 / (2 delta^2) + a max(m - unit, 0).
        """
        delta2 = self.delta2[g]
        margin = s - delta2 * a
        residual = np.maximum(unit - margin, 0.0) - delta2 * a
        loss = np.divide(0.5 * residual * residual, delta2, out=np.zeros(residual.size), where=delta2 > 0.0)
        return loss + a * np.maximum(margin - unit, 0.0)  # delta = 0: a row of weight 0


@record
class ExplicitSlack(NamedTuple):
    """Slack coordinates of weight delta_g v_g, for rules with subgradient steps on the norm of w (`Motion`).

    v is stored as factor * coordinates, as it is not the vector of dual variables, which count steps.
    """

    coordinates: Any
    delta2: Any  # delta_g^2 of every pattern
    state: Any  # the factor, and sum delta_g^2 v_g^2
    in_norm: float  # 1 where the norm of w includes slack coordinates; 0 for the flexible margin

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
        """Multiply the coordinates by k and by their factor, which becomes 1; compute the sum again."""
        total = 0.0
        for g in range(self.coordinates.size):
            v = k * self.state[0] * self.coordinates[g]
            self.coordinates[g] = v
            total += self.delta2[g] * v * v
        self.state[0], self.state[1] = 1.0, total

    def shrink(self, k):
        self.state[1] *= k * k
        if k * self.state[0] < TINY:
            self.rescale(k)
        else:
            self.state[0] *= k


@record
class Weight(NamedTuple):
    """The state of an online algorithm.

    y, square, cap and ids have an entry for each row; alpha and row_of for each pattern. A rule with a pair (PUMMA)
    keeps one pattern of each class, whose constraints determine the bias.
    """

    space: Any  # the storage of the rows, with the vector
    scale: Any
    slack: Any
    y: Any  # labels, -1.0 and 1.0
    square: Any  # |y_i x_i|^2, slack coordinate included
    cap: Any  # upper bound of the dual variable
    ids: Any  # the pattern of each row
    alpha: Any  # as stored: times the scale, it is the dual variable
    number: Any  # the numbers listed at the top of this module
    pair: Any  # the pattern of each class in the rule's pair, negative class first
    row_of: Any  # the row of each pattern; empty for a rule without a pair

    def score(self, i):
        """Return y_i (w.x_i + bias), slack coordinate included."""
        return self.slack.extended_score(
            self.y[i] * self.scale.to_score(self.space.dot(i)), self.ids[i], self.scale
        )

    def score_without_bias(self, i, s):
        """Return y_i w.x_i, from the score s = y_i (w.x_i + bias) of row i."""
        return s - self.y[i] * self.number[BIAS]

    def dual(self, i):
        """Return the dual variable of row i."""
        return self.scale.to_dual(self.alpha[self.ids[i]])

    def cap_of(self, i):
        """Return the upper bound of the dual variable of row i."""
        return self.cap[i]

    def length2(self, i):
        """Return |y_i x_i|^2, slack coordinate included."""
        return self.square[i]

    def norm2(self):
        """Return |w|^2, for rules that update it with every step."""
        return self.number[NORM2]

    def time(self):
        """Return the step count t of the rule, which `advance` increases."""
        return self.number[TIME]

    def product(self, i, j):
        """Return y_i x_i . y_j x_j, slack coordinates included."""
        return self.square[i] if i == j else self.y[i] * self.y[j] * self.space.product(i, j)

    def nearest(self, i, j, s, r):
        """Return the k in [0, 1] for which (1 - k) w + k z has least norm, z the mean of patterns i and j.

        s and r are the scores of i and j. For p > 2 the norm is that of (1 - k) theta + k z.
        """
        return self.space.vector.nearest_on_segment(self, i, j, s, r)

    def partner(self, i):
        """Return the row of the pair whose class is not that of row i."""
        return self.row_of[self.pair[0 if self.y[i] > 0.0 else 1]]

    def add(self, i, c):
        """Add c y_i x_i to theta; w is theta at p = 2, else its image under the link."""
        c = self.scale.to_stored(c)
        g = self.ids[i]
        self.slack.before_add(g, c)
        self.alpha[g] += c
        self.space.add_row(i, c * self.y[i], self.space.vector)
        if self.space.vector.needs_rescaling():
            self.rescale(self.number[SCALE])

    def set_dual(self, i, a):
        """Set alpha_i to a and update w; for rules of scale 1."""
        c = a - self.alpha[self.ids[i]]
        self.alpha[self.ids[i]] = a  # not alpha + c, so that a cap is reached exactly
        self.space.add_row(i, c * self.y[i], self.space.vector)
        self.space.vector.after_step(self, i, c)

    def best_dual(self, i, s, unit):
        """Return the dual variable of row i, of score s, at which the dual objective is largest, within its cap."""
        return self.space.vector.best_dual_of_row(self, i, s, unit)

    def learn(self, i, c, s):
        """Add c y_i x_i as `add` does, and update |w|^2; s is y_i w.x_i, without the bias.

        At p = 2, |w|^2 grows by c (2 s + c |x_i|^2).
        """
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
        """Multiply the stored numbers by k and set the scale to 1."""
        n, vector = self.number, self.space.vector
        vector.rescale(k)
        for g in range(self.alpha.size):
            self.alpha[g] *= k
        self.slack.rescale(k)
        n[SCALE] = n[INVERSE] = 1.0
        n[FACTOR] = vector.score_factor()

    def descend(self, rate):
        """Move (w, slack) by -rate times a subgradient of its norm.

        Return the factor by which all scores without bias have changed; 1 where they have no common factor.
        """
        return self.space.vector.descend_norm(self, rate)

    def add_to_bias(self, b):
        """Add b to the bias."""
        self.number[BIAS] += b

    def advance(self, steps):
        """Increase the step count of the rule by a number of steps."""
        self.number[TIME] += steps

    def set_pair(self, i):
        """Make the pattern of row i that of its class in the pair."""
        self.pair[1 if self.y[i] > 0.0 else 0] = self.ids[i]

    def equalise(self, i, j):
        """Set the bias so that rows i and j, of opposite classes, have the same score; set |w|^2 to this score.

        The score is |w|^2 where w is the point of least norm of a segment that ends at the mean of the two patterns.
        """
        n = self.number
        n[FACTOR] = n[SCALE] * self.space.vector.score_factor()
        n[BIAS] = 0.0
        s, r = self.score(i), self.score(j)
        n[BIAS] = 0.5 * (r - s) * self.y[i]
        n[NORM2] = self.space.vector.norm2_after_step(self, 0.5 * (s + r))


@compiled()
def refresh(h):
    """Multiply the stored numbers by the scale and compute |w|^2 again: running values accumulate rounding errors.

    h is the `Weight` of all patterns.
    """
    h.rescale(h.number[SCALE])
    total = h.space.norm2_of(h)
    for g in range(h.alpha.size):
        total += h.slack.own_norm2(g)
    h.number[NORM2] = h.scale.to_dual(h.scale.to_dual(total))


def new_numbers(size=NUMBERS):
    """Return the array `number` at w = 0: the scale is 1."""
    number = np.zeros(size)
    number[SCALE] = number[INVERSE] = number[FACTOR] = 1.0
    return number


def reset_step_counts(h):
    """Set dual variables to 0 if they count steps; leave them if w is their combination of patterns."""
    if not h.space.vector.is_combination():
        h.alpha[:] = 0.0
