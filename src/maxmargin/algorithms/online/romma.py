"""The relaxed online maximum margin algorithm, plain and aggressive."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, NamedTuple

from ...engine.jit import record
from ...engine.state import Scaled
from ..base import Facts, PerceptronLike, Plan, require
from .pumma import accuracies, final_accuracy, is_accuracy


@record
class RelaxedStep(NamedTuple):
    """The step of ROMMA in terms of m = w / |w|^2, a convex combination of patterns.

    The paper's form, w <- c w + d y, divides by |y|^2 |w|^2 - (w.y)^2, which cancels near the optimum; this one divides
    by |m - y|^2. The paper's case w <- y / |y|^2 is k = 1, the end of the segment.
    """

    delta: float
    on_mistakes: bool  # True: update on mistakes only, plain ROMMA; False: aggressive ROMMA

    def start(self, h, order):
        # m <- y_1, which is w <- y_1 / |y_1|^2
        h.learn(order[0], 1.0, 0.0)

    def threshold(self, h):
        return 0.0 if self.on_mistakes else (1.0 - self.delta) * h.norm2()

    def violates(self, h, i, s, limit):
        if self.on_mistakes:
            # w.y <= 0; m = 0 proves that no separator exists, and stops the updates
            return s <= limit and h.norm2() > 0.0
        # w.y < 1 - delta
        return s < limit

    def step(self, h, i, s):
        # m <- the point (1 - k) m + k y of the segment [m, y] nearest to 0: k = clip((|m|^2 - m.y) / |m - y|^2, 0, 1)
        k = h.nearest(i, i, s, s)
        h.shrink(1.0 - k)
        h.learn(i, k, (1.0 - k) * s)


@dataclass(frozen=True)
class ROMMA(PerceptronLike):
    """ROMMA: a separator with a bound on the number of mistakes, and no guarantee for its margin.

    Condition: w.y_k <= 0. Update: w becomes the shortest vector with w.y_k >= 1 and w.w_old >= |w_old|^2, which is
    m <- the point of the segment [m, y_k] nearest to the origin, m = w / |w|^2.
    Guarantee: at most R^2 / gamma_d^2 mistakes, which are the updates.

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
    scale: ClassVar = Scaled

    def plan(self, facts: Facts) -> Plan:
        return Plan(rule=RelaxedStep(0.0, True), unit=None)


@dataclass(frozen=True)
class AggressiveROMMA(PerceptronLike):
    """Aggressive ROMMA: a fraction 1 - delta of the largest directional margin.

    Condition: w.y_k < 1 - delta. Update: as for `ROMMA`.
    Guarantee: at most R^2 / (delta gamma_d)^2 updates; at the end the margin is at least (1 - delta) / |w|, and
    |m| = 1 / |w| bounds every margin from above.

    Parameters
    ----------
    delta : float, default=None
        Accuracy, in (0, 1]. None: the accuracy with which the result certifies `tol`.
    halving : bool, default=True
        Begin with delta = 1, and halve it whenever a full pass makes no update (PUMMA, section 5.2).
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
    scale: ClassVar = Scaled

    def __post_init__(self) -> None:
        super().__post_init__()
        require(is_accuracy(self.delta), "delta must lie above 0 and be at most 1, or be None", self.delta)

    def plan(self, facts: Facts) -> Plan:
        deltas = accuracies(final_accuracy(self.delta, facts), self.halving)
        first, *rest = [RelaxedStep(delta, False) for delta in deltas]
        return Plan(rule=first, unit=None, then=tuple(rest))
