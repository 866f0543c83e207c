"""The Perceptron with margin."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, NamedTuple

from ...engine.jit import record
from ..base import Facts, PerceptronLike, Plan, is_finite, require


@record
class Learn(NamedTuple):
    """The step of the Perceptron with margin: a <- a + y if a.y <= b; b is in the units of a.y here."""

    b: float

    def threshold(self, h):
        return self.b

    def wrong(self, h, i, s, limit):
        return s <= limit  # a.y <= b, not strict, so that a = 0 makes updates

    def step(self, h, i, s):
        h.add(i, 1.0)  # a <- a + y


@dataclass(frozen=True)
class Perceptron(PerceptronLike):
    """The Perceptron with margin: hard margin, and 2-norm soft margin by virtual extension.

    Condition: a.y_k <= b R^2 (not strict). Update: a <- a + y_k.
    Guarantee: at most (R^2 + 2 b R^2) / gamma_d^2 updates, then a margin above gamma_d b / (1 + 2 b). This bound is
    less than half of the largest margin gamma_d; the margin is often much larger. It ends with the status CONVERGED.

    Parameters
    ----------
    b : float, default=1
        Threshold in units of R^2, R being the largest norm of a pattern.
    schedule : {"plain", "active"}, default="plain"
        Full passes, or full passes each followed by passes over the patterns that made a step (the papers' active set).
    shuffle : bool, default=True
        Full passes in random order, else in the order of the data.

    References
    ----------
    P. Tsampouka, J. Shawe-Taylor, "Analysis of generic perceptron-like large margin classifiers", ECML 2005;
    W. Krauth, M. Mezard, "Learning algorithms with optimal stability in neural networks", J. Phys. A 20, 1987.
    """

    b: float = 1.0
    schedule: str = "plain"

    name: ClassVar[str] = "perceptron"

    def __post_init__(self) -> None:
        super().__post_init__()
        require(is_finite(self.b) and self.b >= 0.0, "b, in units of R^2, must be at least 0", self.b)

    def plan(self, facts: Facts) -> Plan:
        return Plan(rule=Learn(self.b * facts.radius2), unit=None)
