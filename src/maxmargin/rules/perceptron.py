"""The Perceptron with margin."""

from __future__ import annotations

from dataclasses import dataclass
from numbers import Real
from typing import ClassVar, NamedTuple

from ..compiled.jit import record
from ..problems import Problem
from .algorithm import Algorithm, Plan


@record
class Learn(NamedTuple):
    """Update when a.y <= b:  a <- a + y."""

    b: float

    def threshold(self, h):
        return self.b

    def wrong(self, h, i, s, limit):
        return s <= limit

    def step(self, h, i, s):
        h.add(i, 1.0)


@dataclass(frozen=True)
class Perceptron(Algorithm):
    """The Perceptron with margin: hard margin, and 2-norm soft margin by virtual extension.

    Condition: a.y_k <= b R^2 (not strict). Update: a <- a + y_k.
    Guarantee: t <= (R^2 + 2 b R^2) / gamma_d^2 updates, then a margin above gamma_d b / (1 + 2 b): at most
    half of the largest, though often much more. It ends CONVERGED, with its bounds.

    Parameters
    ----------
    b : float, default=1
        Threshold in units of R^2, R being the largest norm of a pattern.
    schedule : {"plain"}, default="plain"
        Full passes in random order.

    References
    ----------
    P. Tsampouka, J. Shawe-Taylor, "Analysis of generic perceptron-like large margin classifiers", ECML 2005;
    W. Krauth, M. Mezard, "Learning algorithms with optimal stability in neural networks", J. Phys. A 20, 1987.
    """

    b: float = 1.0
    schedule: str = "plain"

    name: ClassVar[str] = "perceptron"
    schedules: ClassVar[tuple[str, ...]] = ("plain",)
    convergent: ClassVar[bool] = False

    def __post_init__(self) -> None:
        if not isinstance(self.b, Real) or not self.b >= 0.0:
            raise ValueError(f"b must be a number of at least 0 (in units of R^2); got {self.b!r}.")

    def refuses(self, problem: Problem) -> str | None:
        if not problem.hard and problem.loss == "hinge":
            return 'loss="squared_hinge" or C=inf'
        return None

    def plan(self, problem: Problem, radius2: float, tol: float) -> Plan:
        return Plan(rule=Learn(self.b * radius2), unit=None)
