"""The weight w = sum alpha_i y_i x_i, and what is known of it: the one state of every rule.

In other norms than the Euclidean w is the link's image of that sum. In any state the weight is
``number[FACTOR] * vector.w``, and ``scale.real(alpha)`` are the dual weights.

A rule speaks to it in verbs and never sees an array. Rows are local (they may be packed), patterns are
global: `ids` leads from one to the other, so that nothing has to be copied back from a packed set.
"""

from __future__ import annotations

from enum import Enum
from typing import Any, NamedTuple

from .jit import compiled, record

SCALE, INVERSE, BIAS, NORM2, TIME, FACTOR, HALT, MADE = range(8)  # places in `number`
NUMBERS = 8
TINY = 1e-100  # a factor below which it is multiplied through


class Motion(Enum):
    """What a rule moves; at p = 2 the first two are one."""

    LINK = "a sum of patterns, whose image is w"
    SUBGRADIENT = "w itself, down its norm; dual weights count steps"
    FLEXIBLE = "w itself, down a norm that takes no notice of own coordinates"


@record
class Fixed(NamedTuple):
    """For rules that only add: w and dual weights are what is stored."""

    number: Any

    def reading(self, x):
        return x

    def real(self, a):
        return a

    def stored(self, c):
        return c


@record
class Shifted(NamedTuple):
    """The same with a bias that is not learnt by the rule: a free intercept is found from outside."""

    number: Any

    def reading(self, x):
        return x + self.number[BIAS]

    def real(self, a):
        return a

    def stored(self, c):
        return c


@record
class Lazy(NamedTuple):
    """For rules that shrink w: a common factor of w and dual weights is kept apart."""

    number: Any

    def reading(self, x):
        return self.number[FACTOR] * x

    def real(self, a):
        return self.number[SCALE] * a

    def stored(self, c):
        return c * self.number[INVERSE]


@record
class Affine(NamedTuple):
    """For rules that shrink w and learn the bias themselves."""

    number: Any

    def reading(self, x):
        return self.number[FACTOR] * x + self.number[BIAS]

    def real(self, a):
        return self.number[SCALE] * a

    def stored(self, c):
        return c * self.number[INVERSE]


@record
class Rigid(NamedTuple):
    """No slack: the hard margin, and the hinge with its caps."""

    alpha: Any

    def pull(self, s, g, scale):
        return s

    def extra(self, g):
        """What pattern g adds to |w|^2 in its own coordinate, at scale one."""
        return 0.0

    def extras(self):
        """What all of them add, where it is kept, at scale one."""
        return 0.0

    def adds(self, g):
        """What the own coordinate of pattern g adds to its score, at scale one."""
        return 0.0

    def width2(self, g):
        """The square of pattern g's own coordinate."""
        return 0.0

    def grow(self, g, c):
        """Dual weight g is about to grow by c, in stored units."""

    def fold(self, k):
        """Everything stored is multiplied by k."""

    def take(self, v):
        """Own coordinates to begin with, where they are kept apart from the dual weights."""

    def relax(self, k):
        """Own coordinates of w that are kept apart from the dual weights: times k."""

    def excess(self, s, a, cap, g, unit):
        """(1 - m) (cap - a) or (m - 1) a: both vanish where the pattern is right."""
        return max((unit - s) * (cap - a), (s - unit) * a)  # one of them is positive: no branch


@record
class Elastic(NamedTuple):
    """Pattern g has a coordinate delta_g of its own: the 2-norm soft margin is the hard margin of these.

    The coordinate needs no storage: its weight is delta_g alpha_g.
    """

    alpha: Any
    delta2: Any

    def pull(self, s, g, scale):
        return s + scale.real(self.delta2[g] * self.alpha[g])

    def extra(self, g):
        """What pattern g adds to |w|^2 in its own coordinate, at scale one."""
        return self.delta2[g] * self.alpha[g] * self.alpha[g]

    def grow(self, g, c):
        pass

    def fold(self, k):
        pass

    def excess(self, s, a, cap, g, unit):
        """The same with losses xi^2 / (2 delta^2), whose best dual weight is xi / delta^2."""
        delta2 = self.delta2[g]
        margin = s - delta2 * a
        off = max(unit - margin, 0.0) - delta2 * a
        return 0.5 * off * off / delta2 + a * max(margin - unit, 0.0)


@record
class Mixed(NamedTuple):
    """As `Elastic` beside a p-norm: that of all is sqrt(|theta|_p^2 + sum delta_g^2 alpha_g^2), whose sum is kept."""

    alpha: Any
    delta2: Any
    sum: Any

    def pull(self, s, g, scale):
        return s + scale.real(self.delta2[g] * self.alpha[g])

    def extra(self, g):
        return self.delta2[g] * self.alpha[g] * self.alpha[g]

    def extras(self):
        return max(self.sum[0], 0.0)

    def adds(self, g):
        return self.delta2[g] * self.alpha[g]

    def width2(self, g):
        return self.delta2[g]

    def grow(self, g, c):
        self.sum[0] += self.delta2[g] * c * (2.0 * self.alpha[g] + c)

    def fold(self, k):
        """Dual weights have just been multiplied by k: the sum is taken anew."""
        total = 0.0
        for g in range(self.alpha.size):
            total += self.delta2[g] * self.alpha[g] * self.alpha[g]
        self.sum[0] = total


@record
class Aside(NamedTuple):
    """Own coordinates delta_g v_g beside a w that goes down its norm; the dual weights count steps and are not they.

    v is kept as factor * coordinates.
    """

    coordinates: Any
    delta2: Any
    state: Any  # the factor, and sum delta_g^2 v_g^2

    def pull(self, s, g, scale):
        return s + self.state[0] * self.delta2[g] * self.coordinates[g]

    def extra(self, g):
        v = self.state[0] * self.coordinates[g]
        return self.delta2[g] * v * v

    def extras(self):
        return max(self.state[1], 0.0)

    def grow(self, g, c):
        self.state[1] += self.delta2[g] * c * (2.0 * self.state[0] * self.coordinates[g] + c)
        self.coordinates[g] += c / self.state[0]

    def fold(self, k):
        """Multiply the factor through; the sum is taken anew."""
        total = 0.0
        for g in range(self.coordinates.size):
            v = k * self.state[0] * self.coordinates[g]
            self.coordinates[g] = v
            total += self.delta2[g] * v * v
        self.state[0], self.state[1] = 1.0, total

    def take(self, v):
        """Own coordinates to begin with; their sum is taken with the next fold."""
        self.coordinates[:] = v
        self.state[0] = 1.0

    def relax(self, k):
        self.state[1] *= k * k
        if k * self.state[0] < TINY:
            self.fold(k)
        else:
            self.state[0] *= k


@record
class Loose(NamedTuple):
    """As `Aside`, but the norm takes no notice of own coordinates: the flexible margin."""

    coordinates: Any
    delta2: Any
    state: Any  # the factor

    def pull(self, s, g, scale):
        return s + self.state[0] * self.delta2[g] * self.coordinates[g]

    def extra(self, g):
        return 0.0

    def extras(self):
        return 0.0

    def grow(self, g, c):
        self.coordinates[g] += c / self.state[0]

    def fold(self, k):
        for g in range(self.coordinates.size):
            self.coordinates[g] *= k * self.state[0]
        self.state[0] = 1.0

    def relax(self, k):
        if k * self.state[0] < TINY:
            self.fold(k)
        else:
            self.state[0] *= k


@record
class Weight(NamedTuple):
    """What a rule may ask and do; arrays a row: y, square, cap, ids; arrays a pattern: alpha, place."""

    space: Any
    scale: Any
    slack: Any
    y: Any
    square: Any  # |y_i x_i|^2, own coordinate included
    cap: Any  # the largest dual weight
    ids: Any
    alpha: Any  # as stored: times the scale, it is the dual weight
    number: Any
    held: Any  # the pattern of each class that a rule holds, negative class first
    place: Any  # the row of each pattern; empty where no rule holds any

    def score(self, i):
        """y_i (w.x_i + bias), own coordinate included."""
        return self.slack.pull(self.y[i] * self.scale.reading(self.space.dot(i)), self.ids[i], self.scale)

    def dual(self, i):
        """The dual weight of row i."""
        return self.scale.real(self.alpha[self.ids[i]])

    def room(self, i):
        """The largest dual weight that row i may have."""
        return self.cap[i]

    def length2(self, i):
        """|y_i x_i|^2."""
        return self.square[i]

    def norm2(self):
        """|w|^2, for rules that keep it."""
        return self.number[NORM2]

    def time(self):
        """The rule's own clock."""
        return self.number[TIME]

    def product(self, i, j):
        """y_i x_i . y_j x_j, own coordinates included."""
        return self.square[i] if i == j else self.y[i] * self.y[j] * self.space.product(i, j)

    def nearest(self, i, j, s, r):
        """How far to go from w towards the mean of patterns i and j, of scores s and r, to be nearest to 0."""
        return self.space.vector.toward(self, i, j, s, r)

    def partner(self, i):
        """The row held of the class that i is not of."""
        return self.place[self.held[0 if self.y[i] > 0.0 else 1]]

    def at_hand(self, i):
        """Is what a step on row i adds at hand, the row held of the other class with it?"""
        return self.space.at_hand(i) and (self.place.size == 0 or self.space.at_hand(self.partner(i)))

    def halt(self, k, steps):
        """A sweep stops before place k of its order, after so many steps, because something is not at hand."""
        self.number[HALT] = k + 1.0
        self.number[MADE] = steps

    def halted(self):
        """Did the last sweep stop on its way? The next one goes on there."""
        return self.number[HALT] > 0.0

    def add(self, i, c):
        """theta <- theta + c y_i x_i; w is theta at p = 2, else its image."""
        c = self.scale.stored(c)
        g = self.ids[i]
        self.slack.grow(g, c)
        self.alpha[g] += c
        self.space.put(i, c * self.y[i], self.space.vector)
        if self.space.vector.strays():
            self.fold(self.number[SCALE])

    def reach(self, i, a):
        """Bring the dual weight of row i to a; for rules that only add."""
        c = a - self.alpha[self.ids[i]]
        self.alpha[self.ids[i]] = a  # exactly: a cap that is reached compares equal
        self.space.put(i, c * self.y[i], self.space.vector)

    def learn(self, i, c, s):
        """As `add`, and |w|^2 with it; s is the score of row i."""
        self.add(i, c)
        n, vector = self.number, self.space.vector
        n[NORM2] = vector.measured(self, n[NORM2] + c * (2.0 * s + c * self.square[i]))
        n[FACTOR] = n[SCALE] * vector.gain()

    def shrink(self, k):
        """w <- k w, dual weights with it."""
        n = self.number
        if abs(k * n[SCALE]) < TINY:
            self.fold(k * n[SCALE])
        else:
            n[SCALE] *= k
            n[INVERSE] = 1.0 / n[SCALE]
        n[NORM2] *= k * k
        n[FACTOR] = n[SCALE] * self.space.vector.gain()

    def fold(self, k):
        """Multiply k through; a vector whose numbers have to be near 1 leaves some of it as the scale."""
        n, vector = self.number, self.space.vector
        rest = vector.multiply(k)
        k /= rest
        for g in range(self.alpha.size):
            self.alpha[g] *= k
        self.slack.fold(k)
        n[SCALE] = rest
        n[INVERSE] = 1.0 / rest
        n[FACTOR] = rest * vector.gain()

    def descend(self, rate):
        """(w, own coordinates) <- itself - rate * a subgradient of its norm; the factor left of scores without bias."""
        return self.space.vector.slide(self, rate)

    def unbiased(self, i, s):
        """The score s of row i without the bias."""
        return s - self.y[i] * self.number[BIAS]

    def shift(self, b):
        """The bias goes on by b."""
        self.number[BIAS] += b

    def tick(self):
        """The rule's clock goes on by one."""
        self.number[TIME] += 1.0

    def hold(self, i):
        """Remember row i as that of its class."""
        self.held[1 if self.y[i] > 0.0 else 0] = self.ids[i]

    def balance(self, i, j):
        """The bias with which rows i and j, of opposite classes, have one score: |w|^2 at the end of a segment."""
        n = self.number
        n[FACTOR] = n[SCALE] * self.space.vector.gain()
        n[BIAS] = 0.0
        s, r = self.score(i), self.score(j)
        n[BIAS] = 0.5 * (r - s) * self.y[i]
        n[NORM2] = self.space.vector.measured(self, 0.5 * (s + r))


@compiled()
def settle(h):
    """Multiply the scale through, and take |w|^2 anew: running values drift."""
    h.fold(h.number[SCALE])
    total = h.space.squared(h)
    for g in range(h.alpha.size):
        total += h.slack.extra(g)
    h.number[NORM2] = h.scale.real(h.scale.real(total))


def recount(h):
    """Dual weights that count steps begin at 0 again; those that make up w stay."""
    if not h.space.vector.combines():
        h.alpha[:] = 0.0


@compiled()
def pack(target, source, rows):
    """Row k of target becomes row rows[k] of source."""
    for k in range(rows.size):
        i = rows[k]
        target.space.copy(k, source.space, i)
        target.y[k] = source.y[i]
        target.square[k] = source.square[i]
        target.cap[k] = source.cap[i]
        target.ids[k] = source.ids[i]
        if target.place.size:
            target.place[source.ids[i]] = k
