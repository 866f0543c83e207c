"""A weight whose patterns pass by once: no row is kept, and of the dual weights only the sums of each class.

A pattern's dual weight is 0 when it is presented, so that the score needs no coordinate of its own, extended or not.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from .jit import compiled, record
from .state import BIAS, INVERSE, NORM2, NUMBERS, SCALE, Weight

SEEN, FRESH = NUMBERS, NUMBERS + 1  # places in `number` behind those of a weight
FLOW_NUMBERS = NUMBERS + 2
SUM, SQUARES = 0, 2  # places in `sums`, negative class first: sum alpha, sum alpha^2, as stored
MARK, MASS, BIASES, BASE = range(4)  # places in `tally`
LOSS = (
    2.0**20
)  # by which the scale may fall before `Mean` is brought up to date: so much of its accuracy is lost
NOBODY = np.uint32(2**32 - 1)


@record
class Last(NamedTuple):
    """Nothing is remembered of earlier weights."""

    tally: Any

    def leave(self, h, seen):
        pass

    def note(self, h, i, c):
        pass

    def commit(self, h):
        pass


@record
class Mean(NamedTuple):
    """The sum of the weights after every presentation, in time proportional to the updates.

    It is MASS w - past, in stored numbers: MASS is the sum of the scales of the presentations since the scale was
    BASE, and every step c y x enters `past` with the MASS of the time before it.
    """

    past: Any
    tally: Any

    def leave(self, h, seen):
        t = self.tally
        t[MASS] += h.number[SCALE] * (seen - t[MARK])
        t[BIASES] += h.number[BIAS] * (seen - t[MARK])
        t[MARK] = seen
        if h.number[SCALE] * LOSS < t[BASE]:
            self.commit(h)
            t[BASE] = h.number[SCALE]

    def note(self, h, i, c):
        h.space.put(i, self.tally[MASS] * c * h.y[i], self.past)

    def commit(self, h):
        """What w stands for so far goes to `past`: before w is multiplied, and its scale one again."""
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

    def leave(self, h, seen):
        lasted = seen - self.tally[MARK]
        self.tally[MARK] = seen
        k = 0
        for j in range(self.votes.size):
            if self.votes[j] < self.votes[k]:
                k = j
        if lasted > self.votes[k]:
            self.votes[k] = lasted
            self.biases[k] = h.number[BIAS]
            for j in range(self.weights.shape[1]):
                self.weights[k, j] = h.number[SCALE] * h.space.vector.w[j]

    def note(self, h, i, c):
        pass

    def commit(self, h):
        pass


@record
class Flow(NamedTuple):
    """What a rule may ask and do where every row is presented once; the verbs are those of `Weight`."""

    space: Any
    scale: Any
    y: Any
    square: Any  # |y_i x_i|^2, own coordinate included
    number: Any
    sums: Any
    plus: Any  # what the positive class has put into w
    delta2: float  # square of a pattern's own coordinate
    held: Any  # the row of each class that a rule holds, negative class first; NOBODY where it holds none
    own: Any  # their dual weights, as stored
    trail: Any

    def score(self, i):
        """y_i (w.x_i + bias) of a row that comes for the first time."""
        return self.y[i] * self.scale.reading(self.space.dot(i))

    length2 = Weight.length2
    norm2 = Weight.norm2
    time = Weight.time
    product = Weight.product
    nearest = Weight.nearest
    learn = Weight.learn
    tick = Weight.tick
    shrink = Weight.shrink

    def add(self, i, c):
        """w <- w + c y_i x_i."""
        c = self.scale.stored(c)
        k = 1 if self.y[i] > 0.0 else 0
        self.sums[SUM + k] += c
        if self.held[k] == i:
            self.sums[SQUARES + k] += c * (2.0 * self.own[k] + c)
            self.own[k] += c
        else:
            self.sums[SQUARES + k] += c * c
            self.number[FRESH] = c
        self.space.put(i, c * self.y[i], self.space.vector)
        if k == 1:
            self.space.put(i, c, self.plus)
        self.trail.note(self, i, c)

    def fold(self, k):
        """Multiply k through."""
        self.trail.commit(self)
        self.space.vector.multiply(k)
        self.plus.multiply(k)
        for j in range(2):
            self.sums[SUM + j] *= k
            self.sums[SQUARES + j] *= k * k
            self.own[j] *= k
        self.number[SCALE] = 1.0
        self.number[INVERSE] = 1.0

    def partner(self, i):
        """The row held of the class that i is not of."""
        return self.held[0 if self.y[i] > 0.0 else 1]

    def hold(self, i):
        """Remember row i as that of its class."""
        k = 1 if self.y[i] > 0.0 else 0
        self.held[k] = i
        self.own[k] = self.number[FRESH]
        self.number[FRESH] = 0.0

    def balance(self, i, j):
        """The bias with which rows i and j, those held, have one score: |w|^2 at the end of a segment."""
        n = self.number
        n[BIAS] = 0.0
        s = self.score(i) + self.scale.real(self.delta2 * self.own[1 if self.y[i] > 0.0 else 0])
        r = self.score(j) + self.scale.real(self.delta2 * self.own[1 if self.y[j] > 0.0 else 0])
        n[BIAS] = 0.5 * (r - s) * self.y[i]
        n[NORM2] = 0.5 * (s + r)


@compiled()
def stream(rule, h, first, last):
    """Present rows first .. last - 1 once, in this order: (wrong or undecided ones, updates)."""
    mistakes = updates = 0
    seen = h.number[SEEN]
    limit = rule.threshold(h)
    for k in range(first, last):
        i = np.uint32(k)
        s = h.score(i)
        mistakes += s <= 0.0
        if rule.wrong(h, i, s, limit):
            h.trail.leave(h, seen + (k - first))
            rule.step(h, i, s)
            limit = rule.threshold(h)
            updates += 1
    h.number[SEEN] = seen + (last - first)
    return mistakes, updates


@compiled()
def open_stream(rule, h, order):
    """The first weight of a rule that begins with patterns: the last row of order is presented with it."""
    h.trail.leave(h, h.number[SEEN])
    rule.start(h, order)
    h.number[SEEN] += 1.0


@compiled()
def refresh(h):
    """|w|^2 taken anew: running values drift."""
    k = h.number[SCALE]
    h.number[NORM2] = k * k * (h.space.vector.measure() + h.delta2 * (h.sums[SQUARES] + h.sums[SQUARES + 1]))
