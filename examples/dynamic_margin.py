"""Example of an algorithm that is defined outside the library: the Perceptron with dynamic margin."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, NamedTuple

from maxmargin.algorithms.base import Facts, PerceptronLike, Plan, require
from maxmargin.engine.jit import record
from maxmargin.numerics.sizes import is_finite


@record
class LearnFaster(NamedTuple):
    """Update rule: if a.y <= (1 - epsilon) |a|^2 / t, then a <- a + y and t <- t + 1."""

    epsilon: float

    def start(self, h, order):
        h.learn(order[0], 1.0, 0.0)
        h.advance(1)

    def threshold(self, h):
        return (1.0 - self.epsilon) * h.norm2() / h.time()

    def violates(self, h, i, s, limit):
        return s <= limit

    def step(self, h, i, s):
        h.learn(i, 1.0, s)
        h.advance(1)


@dataclass(frozen=True)
class DynamicMargin(PerceptronLike):
    """The Perceptron with dynamic margin: a fraction 1 - epsilon of the largest directional margin.

    Condition: a.y_k <= (1 - epsilon) |a|^2 / t (not strict), where t is the number of updates so far. Update:
    a <- a + y_k.
    Guarantee: |a| / t bounds every directional margin. After a pass without an update, the directional margin is
    therefore more than 1 - epsilon of the largest. The algorithm ends, because |a|^2 grows at most as
    t^(2 - 2 epsilon), and at least as gamma_d^2 t^2.

    Parameters
    ----------
    epsilon : float, default=0.1
        Accuracy, in (0, 1).

    References
    ----------
    C. Panagiotakopoulos, P. Tsampouka, "The Perceptron with dynamic margin", ALT 2011.
    """

    epsilon: float = 0.1

    name: ClassVar[str] = "dynamic-margin"

    def __post_init__(self) -> None:
        super().__post_init__()
        require(
            is_finite(self.epsilon) and 0.0 < self.epsilon < 1.0,
            "epsilon must lie between 0 and 1",
            self.epsilon,
        )

    def plan(self, facts: Facts) -> Plan:
        return Plan(rule=LearnFaster(self.epsilon), unit=None)
