"""The state of an online algorithm on a stream, where each pattern is presented once.

No row is stored, and of the dual variables only their sums and sums of squares for each class. A pattern's dual
variable is 0 when it is presented, so that its score needs no slack coordinate. Predictions are made from the mean of
the weights after every presentation, whose sum is kept in time proportional to the number of updates: in stored numbers
it is SCALE_SUM w - past.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from .jit import compiled, record
from .state import BIAS, INVERSE, NORM2, NUMBERS, SCALE, Weight

# indices in `number`: SEEN, presentations so far; LAST_STEP, the last step on a row that was not in the pair, as stored
SEEN, LAST_STEP = NUMBERS, NUMBERS + 1
STREAM_NUMBERS = NUMBERS + 2
# indices in `sums`: sum alpha, sum alpha^2, as stored, of the negative class; the next index is for the positive class
SUM, SQUARES = 0, 2
# Indices in `tally`: SINCE, presentations before the present weight; SCALE_SUM, the sum of the scales over the
# presentations since the scale was FIRST_SCALE; BIAS_SUM, the sum of the biases.
SINCE, SCALE_SUM, BIAS_SUM, FIRST_SCALE = range(4)
NO_ROW = np.uint32(2**32 - 1)  # in place of a row index: no row


@record
class StreamWeight(NamedTuple):
    """The state of an online algorithm where every row is presented once; its methods are those of `Weight`."""

    space: Any
    scale: Any
    y: Any
    square: Any  # |y_i x_i|^2, slack coordinate included
    number: Any
    sums: Any
    plus: Any  # sum alpha_i x_i over the positive class, as stored
    delta2: float  # square of a pattern's slack coordinate
    pair: Any  # the row of each class in a rule's pair, negative class first; NO_ROW where there is none
    pair_duals: Any  # their dual variables, as stored
    past: Any  # an `EuclideanVector`: the mean of the weights is that of SCALE_SUM w - past
    tally: Any

    def score(self, i):
        """Return y_i (w.x_i + bias) of a row that has not been presented before."""
        return self.y[i] * self.scale.to_score(self.space.dot(i))

    length2 = Weight.length2
    norm2 = Weight.norm2
    time = Weight.time
    product = Weight.product
    nearest = Weight.nearest
    learn = Weight.learn
    advance = Weight.advance
    shrink = Weight.shrink

    def add(self, i, c):
        """Add c y_i x_i to w, and update the sums of dual variables."""
        c = self.scale.to_stored(c)
        k = 1 if self.y[i] > 0.0 else 0
        self.sums[SUM + k] += c
        if self.pair[k] == i:
            self.sums[SQUARES + k] += c * (2.0 * self.pair_duals[k] + c)
            self.pair_duals[k] += c
        else:
            self.sums[SQUARES + k] += c * c
            self.number[LAST_STEP] = c
        self.space.add_row(i, c * self.y[i], self.space.vector)
        if k == 1:
            self.space.add_row(i, c, self.plus)
        # a step is no part of the weights before it
        self.space.add_row(i, self.tally[SCALE_SUM] * c * self.y[i], self.past)

    def before_step(self, seen):
        """Add the present weight to the sum of all weights, with the number `seen` of presentations."""
        t = self.tally
        t[SCALE_SUM] += self.number[SCALE] * (seen - t[SINCE])
        t[BIAS_SUM] += self.number[BIAS] * (seen - t[SINCE])
        t[SINCE] = seen
        # the mean loses as many digits: 33 of 53 bits are left, and the pass over w is rare
        if self.number[SCALE] * 2.0**20 < t[FIRST_SCALE]:
            self.subtract_from_past()
            t[FIRST_SCALE] = self.number[SCALE]

    def subtract_from_past(self):
        """Subtract SCALE_SUM w from `past` and set SCALE_SUM to 0, so that the sum of the weights is -past."""
        scale_sum = self.tally[SCALE_SUM]
        for j in range(self.past.w.size):
            self.past.w[j] -= scale_sum * self.space.vector.w[j]
        self.tally[SCALE_SUM] = 0.0
        self.tally[FIRST_SCALE] = 1.0

    def rescale(self, k):
        """Multiply the stored numbers by k and set the scale to 1."""
        self.subtract_from_past()
        self.space.vector.rescale(k)
        self.plus.rescale(k)
        for j in range(2):
            self.sums[SUM + j] *= k
            self.sums[SQUARES + j] *= k * k
            self.pair_duals[j] *= k
        self.number[SCALE] = 1.0
        self.number[INVERSE] = 1.0

    def partner(self, i):
        """Return the row of the pair whose class is not that of row i."""
        return self.pair[0 if self.y[i] > 0.0 else 1]

    def set_pair(self, i):
        """Make row i that of its class in the pair; LAST_STEP is its dual variable."""
        k = 1 if self.y[i] > 0.0 else 0
        self.pair[k] = i
        self.pair_duals[k] = self.number[LAST_STEP]
        self.number[LAST_STEP] = 0.0

    def equalise(self, i, j):
        """Set the bias so that rows i and j of the pair have the same score; set |w|^2 to this score.

        The score is |w|^2 where w is the point of least norm of a segment that ends at the mean of the two patterns.
        """
        n = self.number
        n[BIAS] = 0.0
        s = self.score(i) + self.scale.to_dual(self.delta2 * self.pair_duals[1 if self.y[i] > 0.0 else 0])
        r = self.score(j) + self.scale.to_dual(self.delta2 * self.pair_duals[1 if self.y[j] > 0.0 else 0])
        n[BIAS] = 0.5 * (r - s) * self.y[i]
        n[NORM2] = 0.5 * (s + r)


@compiled()
def stream(rule, h, first, last):
    """Present rows first .. last - 1 of the `StreamWeight` h once, in this order.

    Return (rows of score at most 0 before their update, updates).
    """
    mistakes = updates = 0
    seen = h.number[SEEN]
    limit = rule.threshold(h)
    for k in range(first, last):
        i = np.uint32(k)
        s = h.score(i)
        mistakes += s <= 0.0
        if rule.violates(h, i, s, limit):
            h.before_step(seen + (k - first))
            rule.step(h, i, s)
            limit = rule.threshold(h)
            updates += 1
    h.number[SEEN] = seen + (last - first)
    return mistakes, updates


@compiled()
def open_stream(rule, h, order):
    """Set the first weight of a rule whose start uses the rows in `order`.

    SEEN grows by one, for the last of these rows; the caller counts the others.
    """
    h.before_step(h.number[SEEN])
    rule.start(h, order)
    h.number[SEEN] += 1.0
