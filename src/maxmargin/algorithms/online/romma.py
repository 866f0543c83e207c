"""The relaxed online maximum margin algorithm, plain and aggressive."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, NamedTuple

from ...engine.jit import record
from ...engine.state import Lazy
from ..base import Facts, PerceptronLike, Plan, require
from .halving import accuracies, is_accuracy, target


@record
class Relax(NamedTuple):
    """Update when m.y < (1 - delta) |m|^2:  m <- the point of the segment [m, y] nearest to 0.

    m = w / |w|^2 is a convex combination of patterns. The printed form of the step, w <- c w + d y, divides by
    |y|^2 |w|^2 - (w.y)^2, which cancels near the optimum; this one divides by |m - y|^2.
    """

    delta: float

    def start(self, h, order):
        h.learn(order[0], 1.0, 0.0)

    def threshold(self, h):
        return (1.0 - self.delta) * h.norm2()

    def wrong(self, h, i, s, limit):
        return s < limit

    def step(self, h, i, s):
        k = h.nearest(i, i, s, s)
        h.shrink(1.0 - k)
        h.learn(i, k, (1.0 - k) * s)


@record
class RelaxOnMistakes(NamedTuple):
    """The same when m.y <= b, which is 0."""

    b: float

    def start(self, h, order):
        h.learn(order[0], 1.0, 0.0)

    def threshold(self, h):
        return self.b

    def wrong(self, h, i, s, limit):
        return s <= limit and h.norm2() > 0.0  # m = 0 is the proof that no separator exists

    def step(self, h, i, s):
        k = h.nearest(i, i, s, s)
        h.shrink(1.0 - k)
        h.learn(i, k, (1.0 - k) * s)


@dataclass(frozen=True)
class ROMMA(PerceptronLike):
    """ROMMA: a separator with few mistakes, whose margin is as it comes.

    Condition: w.y_k <= 0. Update: w becomes the shortest vector with w.y_k >= 1 and w.w_old >= |w_old|^2, which is
    m <- the point of the segment [m, y_k] nearest to the origin, m = w / |w|^2.
    Guarantee: at most R^2 / gamma_d^2 mistakes.

    Parameters
    ----------
    schedule : {"active", "plain"}, default="active"
    shuffle : bool, default=True
        Full passes in random order, else in the order of the data.

    References
    ----------
    Y. Li, P. M. Long, "The relaxed online maximum margin algorithm", Machine Learning 46, 2002.
    """

    name: ClassVar[str] = "romma"
    scale: ClassVar = Lazy

    def plan(self, facts: Facts) -> Plan:
        return Plan(rule=RelaxOnMistakes(0.0), unit=None)


@dataclass(frozen=True)
class AggressiveROMMA(PerceptronLike):
    """Aggressive ROMMA: a fraction 1 - delta of the largest directional margin.

    Condition: w.y_k < 1 - delta. Update: as ROMMA.
    Guarantee: at most R^2 / (delta gamma_d)^2 updates; at the end the margin is at least (1 - delta) / |w|, and
    |m| = 1 / |w| bounds every margin from above.

    Parameters
    ----------
    delta : float, default=None
        Accuracy, in (0, 1]. None takes the one that certifies `tol`.
    halving : bool, default=True
        Begin with delta = 1, and halve it whenever a full pass makes no update (the PUMMA paper's device).
    schedule : {"active", "plain"}, default="active"
    shuffle : bool, default=True
        Full passes in random order, else in the order of the data.

    References
    ----------
    Y. Li, P. M. Long, "The relaxed online maximum margin algorithm", Machine Learning 46, 2002.
    """

    delta: float | None = None
    halving: bool = True

    name: ClassVar[str] = "aggressive-romma"
    scale: ClassVar = Lazy

    def __post_init__(self) -> None:
        super().__post_init__()
        require(is_accuracy(self.delta), "delta must lie above 0 and be at most 1, or be None", self.delta)

    def plan(self, facts: Facts) -> Plan:
        first, *rest = [Relax(delta) for delta in accuracies(target(self.delta, facts), self.halving)]
        return Plan(rule=first, unit=None, then=tuple(rest))
