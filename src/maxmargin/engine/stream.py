"""A weight whose patterns pass by once: no row is kept, and of the dual variables only the sums of each class.

A pattern's dual variable is 0 when it is presented, so that its score needs no slack coordinate, extended or not.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from .jit import compiled, record
from .state import BIAS, INVERSE, NORM2, NUMBERS, SCALE, Weight

# places in `number`: presentations so far; the last step on a row of no pair
SEEN, LAST_STEP = NUMBERS, NUMBERS + 1
STREAM_NUMBERS = NUMBERS + 2
SUM, SQUARES = 0, 2  # places in `sums`, negative class first: sum alpha, sum alpha^2, as stored
SINCE, MASS, BIASES, BASE = range(
    4
)  # places in `tally`: see `Mean`; SINCE: presentations before the present weight
# Factor by which the scale may fall before `Mean` is brought up to date. The mean loses as much of its accuracy: 2^20
# leaves it 33 of 53 bits, and costs a pass over w only where the scale has fallen by a million.
LOSS = 2.0**20
NO_ROW = np.uint32(2**32 - 1)


def _after_add(self, h, i, c):
    """Take account of c y_i x_i, in stored numbers, that has been added to w."""


def _before_rescale(self, h):
    """Take account of w before it is multiplied, and its scale set to one."""


@record
class Last(NamedTuple):
    """No memory of earlier weights."""

    tally: Any

    after_add, before_rescale = _after_add, _before_rescale

    def before_step(self, h, seen):
        """Take account of the present weight, which lasts until now, after `seen` presentations."""


@record
class Mean(NamedTuple):
    """The sum of the weights after every presentation, in time proportional to the updates.

    It is MASS w - past, in stored numbers: MASS is the sum of the scales of the presentations since the scale was
    BASE, and every step c y x enters `past` with the MASS of the time before it. BIASES is the sum of the biases.
    """

    past: Any
    tally: Any

    def before_step(self, h, seen):
        t = self.tally
        t[MASS] += h.number[SCALE] * (seen - t[SINCE])
        t[BIASES] += h.number[BIAS] * (seen - t[SINCE])
        t[SINCE] = seen
        if h.number[SCALE] * LOSS < t[BASE]:
            self.before_rescale(h)
            t[BASE] = h.number[SCALE]

    def after_add(self, h, i, c):
        h.space.put(i, self.tally[MASS] * c * h.y[i], self.past)

    def before_rescale(self, h):
        """Move MASS w to `past`."""
        mass = self.tally[MASS]
        for j in range(self.past.w.size):
            self.past.w[j] -= mass * h.space.vector.w[j]
        self.tally[MASS] = 0.0
        self.tally[BASE] = 1.0


@record
class Voters(NamedTuple):
    """The weights that lasted longest, each with the presentations that it lasted: as many as there are rows."""

    weights: Any
    biases: Any
    votes: Any
    tally: Any

    after_add, before_rescale = _after_add, _before_rescale

    def before_step(self, h, seen):
        lasted = seen - self.tally[SINCE]
        self.tally[SINCE] = seen
        k = 0
        for j in range(self.votes.size):
            if self.votes[j] < self.votes[k]:
                k = j
        if lasted > self.votes[k]:
            self.votes[k] = lasted
            self.biases[k] = h.number[BIAS]
            for j in range(self.weights.shape[1]):
                self.weights[k, j] = h.number[SCALE] * h.space.vector.w[j]


@record
class StreamWeight(NamedTuple):
    """The state of a rule where every row is presented once; its methods are those of `Weight`."""

    space: Any
    scale: Any
    y: Any
    square: Any  # |y_i x_i|^2, slack coordinate included
    number: Any
    sums: Any
    plus: Any  # the positive class's part of w
    delta2: float  # square of a pattern's slack coordinate
    pair: Any  # the row of each class in a rule's pair, negative class first; NO_ROW where there is none
    pair_duals: Any  # their dual variables, as stored
    trail: Any

    def score(self, i):
        """Return y_i (w.x_i + bias) of a row that comes for the first time."""
        return self.y[i] * self.scale.to_score(self.space.dot(i))

    length2 = Weight.length2
    norm2 = Weight.norm2
    time = Weight.time
    product = Weight.product
    nearest = Weight.nearest
    learn = Weight.learn
    tick = Weight.tick
    shrink = Weight.shrink

    def add(self, i, c):
        """Add c y_i x_i to w."""
        c = self.scale.to_stored(c)
        k = 1 if self.y[i] > 0.0 else 0
        self.sums[SUM + k] += c
        if self.pair[k] == i:
            self.sums[SQUARES + k] += c * (2.0 * self.pair_duals[k] + c)
            self.pair_duals[k] += c
        else:
            self.sums[SQUARES + k] += c * c
            self.number[LAST_STEP] = c
        self.space.put(i, c * self.y[i], self.space.vector)
        if k == 1:
            self.space.put(i, c, self.plus)
        self.trail.after_add(self, i, c)

    def rescale(self, k):
        """Multiply stored numbers by k; the scale is one then."""
        self.trail.before_rescale(self)
        self.space.vector.rescale(k)
        self.plus.rescale(k)
        for j in range(2):
            self.sums[SUM + j] *= k
            self.sums[SQUARES + j] *= k * k
            self.pair_duals[j] *= k
        self.number[SCALE] = 1.0
        self.number[INVERSE] = 1.0

    def partner(self, i):
        """Return the row of the pair that is of the class of which i is not."""
        return self.pair[0 if self.y[i] > 0.0 else 1]

    def set_pair(self, i):
        """Let row i be the pattern of its class in the pair."""
        k = 1 if self.y[i] > 0.0 else 0
        self.pair[k] = i
        self.pair_duals[k] = self.number[LAST_STEP]
        self.number[LAST_STEP] = 0.0

    def equalise(self, i, j):
        """Set the bias with which rows i and j of the pair have one score: |w|^2 at the end of a segment."""
        n = self.number
        n[BIAS] = 0.0
        s = self.score(i) + self.scale.to_dual(self.delta2 * self.pair_duals[1 if self.y[i] > 0.0 else 0])
        r = self.score(j) + self.scale.to_dual(self.delta2 * self.pair_duals[1 if self.y[j] > 0.0 else 0])
        n[BIAS] = 0.5 * (r - s) * self.y[i]
        n[NORM2] = 0.5 * (s + r)


@compiled()
def stream(rule, h, first, last):
    """Present rows first .. last - 1 once, in this order; return (wrong or undecided rows, updates)."""
    mistakes = updates = 0
    seen = h.number[SEEN]
    limit = rule.threshold(h)
    for k in range(first, last):
        i = np.uint32(k)
        s = h.score(i)
        mistakes += s <= 0.0
        if rule.wrong(h, i, s, limit):
            h.trail.before_step(h, seen + (k - first))
            rule.step(h, i, s)
            limit = rule.threshold(h)
            updates += 1
    h.number[SEEN] = seen + (last - first)
    return mistakes, updates


@compiled()
def open_stream(rule, h, order):
    """Set the first weight of a rule that begins with patterns; the last row of order counts as presented."""
    h.trail.before_step(h, h.number[SEEN])
    rule.start(h, order)
    h.number[SEEN] += 1.0


@compiled()
def refresh_norm(h):
    """Compute |w|^2 anew: running values drift by rounding."""
    k = h.number[SCALE]
    h.number[NORM2] = k * k * (h.space.vector.norm2() + h.delta2 * (h.sums[SQUARES] + h.sums[SQUARES + 1]))
