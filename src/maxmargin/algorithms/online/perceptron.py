"""The Perceptron with margin, and the local Perceptron, whose threshold is in units of each pattern's own length."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, NamedTuple

from ...engine.jit import record
from ...numerics.sizes import is_finite
from ..base import Facts, PerceptronLike, Plan, require


@record
class Learn(NamedTuple):
    """The step of the Perceptron with margin: a <- a + y if a.y <= b; b is in the units of a.y here."""

    b: float

    def threshold(self, h):
        return self.b

    def violates(self, h, i, s, limit):
        return s <= limit  # a.y <= b, not strict, so that a = 0 makes updates

    def step(self, h, i, s):
        h.add(i, 1.0)  # a <- a + y


@dataclass(frozen=True)
class Perceptron(PerceptronLike):
    """The Perceptron with margin: hard margin, and 2-norm soft margin by slack coordinates.

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


@record
class LearnLocally(NamedTuple):
    """The step of the local Perceptron: a <- a + y if a.y <= b |y|^2."""

    b: float

    def threshold(self, h):
        return self.b

    def violates(self, h, i, s, limit):
        # a.y <= b |y|^2, not strict, so that a = 0 makes updates
        return s <= limit * h.length2(i)

    def step(self, h, i, s):
        # a <- a + y
        h.add(i, 1.0)


@dataclass(frozen=True)
class LocalPerceptron(PerceptronLike):
    """The Perceptron with a threshold in units of each pattern's own squared length, which needs no largest length.

    Condition: a.y_k <= b |y_k|^2 (not strict). Update: a <- a + y_k.
    Guarantee: as for the Perceptron with margin, since |a + y_k|^2 <= |a|^2 + (1 + 2 b) |y_k|^2: at most
    (1 + 2 b) R^2 / gamma_d^2 updates, then a.y_k > b |y_k|^2 for every pattern. If all patterns have the same length it
    is the Perceptron with margin. If not, the threshold of short patterns does not depend on long ones, which matters
    on a stream, where every pattern is presented once.

    Parameters
    ----------
    b : float, default=0.7
        Threshold in units of the pattern's squared length. The default is among the best for the mean weight after one
        pass over adult, web, Reuters and MNIST.
    schedule : {"plain", "active"}, default="plain"
    shuffle : bool, default=True
        Full passes in random order, else in the order of the data.

    References
    ----------
    The bound is Novikoff's, as in P. Tsampouka, J. Shawe-Taylor, "Analysis of generic perceptron-like large margin
    classifiers", ECML 2005.
    """

    b: float = 0.7
    schedule: str = "plain"

    name: ClassVar[str] = "local-perceptron"

    def __post_init__(self) -> None:
        super().__post_init__()
        require(
            is_finite(self.b) and self.b >= 0.0,
            "b must be a number of at least 0 (in units of the pattern's squared length)",
            self.b,
        )

    def plan(self, facts: Facts) -> Plan:
        return Plan(rule=LearnLocally(self.b), unit=None)
