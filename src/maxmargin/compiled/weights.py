"""The weight w = sum alpha_i y_i x_i, and what is known of it: the one state of every rule.

A rule speaks to it in verbs and never sees an array. Rows are local (they may be packed), patterns are
global: `ids` leads from one to the other, so that nothing has to be copied back from a packed set.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from .jit import compiled, record

SHIFT = 0  # the place of the bias in `number`


@record
class Unit(NamedTuple):
    """For rules that only add: the score is what the space says."""

    number: Any

    def reading(self, x):
        return x

    def real(self, a):
        return a


@record
class Shifted(NamedTuple):
    """The same with a bias that is not learnt by the rule: a free intercept is found from outside."""

    number: Any

    def reading(self, x):
        return x + self.number[SHIFT]

    def real(self, a):
        return a


@record
class Rigid(NamedTuple):
    """No slack: the hard margin, and the hinge with its caps."""

    alpha: Any

    def pull(self, s, g, scale):
        return s

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

    def excess(self, s, a, cap, g, unit):
        """The same with losses xi^2 / (2 delta^2), whose best dual weight is xi / delta^2."""
        delta2 = self.delta2[g]
        margin = s - delta2 * a
        off = max(unit - margin, 0.0) - delta2 * a
        return 0.5 * off * off / delta2 + a * max(margin - unit, 0.0)


@record
class Weight(NamedTuple):
    """What a rule may ask and do; arrays a row: y, square, cap, ids; arrays a pattern: alpha."""

    space: Any
    scale: Any
    slack: Any
    y: Any
    square: Any  # |y_i x_i|^2, own coordinate included
    cap: Any  # the largest dual weight
    ids: Any
    alpha: Any
    number: Any

    def score(self, i):
        """y_i (w.x_i + shift), own coordinate included."""
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

    def add(self, i, c):
        """w <- w + c y_i x_i."""
        self.alpha[self.ids[i]] += c
        self.space.put(i, c * self.y[i], self.space.vector)

    def reach(self, i, a):
        """Bring the dual weight of row i to a."""
        c = a - self.alpha[self.ids[i]]
        self.alpha[self.ids[i]] = a  # exactly: a cap that is reached compares equal
        self.space.put(i, c * self.y[i], self.space.vector)


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
