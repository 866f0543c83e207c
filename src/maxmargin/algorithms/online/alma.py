"""ALMA_p, the approximate large margin algorithm."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, NamedTuple

from ...engine.jit import record
from ...engine.state import Scaled
from ...numerics.sizes import is_finite
from ...problem.problem import Problem
from ..base import Facts, PerceptronLike, Plan, from_two_on, require


@record
class ALMAStep(NamedTuple):
    """The step of ALMA_p on the scaled patterns y^: y / R, or y divided by its own p-norm.

    The paper's step w <- f^-1(f(w) + eta_k y^) is linear in theta = f(w), as the link f is homogeneous. `learn` adds to
    theta, `norm2` is |theta|_p^2 = |w|_q^2, and `time` is the number of updates, k - 1.
    """

    gamma: float  # (1 - alpha) B sqrt(p - 1)
    eta: float  # C / sqrt(p - 1)
    R: float  # 1 where patterns are divided by their own norms
    normalise: bool

    def threshold(self, h):
        # (1 - alpha) gamma_k, gamma_k = B sqrt(p - 1) / sqrt(k), times R: scores are of the patterns as they are
        return self.R * self.gamma * (h.time() + 1.0) ** -0.5

    def violates(self, h, i, s, limit):
        # w.y^ <= (1 - alpha) gamma_k
        if self.normalise:
            return s <= limit * h.length2(i) ** 0.5 and h.length2(i) > 0.0
        return s <= limit

    def step(self, h, i, s):
        # theta <- theta + eta_k y^, eta_k = C / sqrt((p - 1) k)
        step = self.eta * (h.time() + 1.0) ** -0.5 / self.R
        if self.normalise:
            step *= h.length2(i) ** -0.5
        h.learn(i, step, s)
        # theta <- theta / max(1, |theta|_p)
        if h.norm2() > 1.0:
            h.shrink(h.norm2() ** -0.5)
        h.advance(1)  # k <- k + 1


@dataclass(frozen=True)
class ALMA(PerceptronLike):
    """ALMA_p: a fraction 1 - alpha of the largest directional p-margin, for 2 <= p < inf.

    Condition: w.y_i / R <= (1 - alpha) B sqrt(p - 1) / sqrt(k) (not strict), w = f^-1(theta), f being the link.
    Update: theta <- theta + C / sqrt((p - 1) k) y_i / R, divided by max(1, |theta|_p); k <- k + 1, from k = 1.
    (The paper's step is w <- f^-1(f(w) + ...): the link is homogeneous, so that all of it is linear in theta.)
    2-norm soft margin: the same with a slack coordinate for every row, and the mixed norm
    sqrt(|theta|_p^2 + sum delta_i^2 alpha_i^2).
    Guarantee (B = sqrt(8) / alpha, C = sqrt(2)): with gamma the largest margin of the scaled patterns, at most
    (2 (p - 1) / gamma^2) (2 / alpha - 1)^2 + 8 / alpha - 4 updates; then the margin is at least (1 - alpha) gamma.
    That holds with a warm start, too: the first k is the largest for which the proof holds with its dual variables.

    Parameters
    ----------
    alpha : float, default=0.1
        Accuracy, in (0, 1].
    B, C : float, default=None, sqrt(2)
        Constants of threshold and step (this C is not that of the classifier); B None is sqrt(8) / alpha.
    normalise : bool, default=False
        Divide each pattern by its own p-norm, as the original paper does. This is another problem with another optimum;
        the bounds are those of w on the original patterns. Else all patterns are divided by R.
    schedule : {"plain", "active"}, default="plain"
    shuffle : bool, default=True
        Full passes in random order, else in the order of the data.

    References
    ----------
    C. Gentile, "A new approximate maximal margin classification algorithm", JMLR 2, 2001.
    """

    alpha: float = 0.1
    B: float | None = None
    C: float = 2.0**0.5
    normalise: bool = False
    schedule: str = "plain"

    name: ClassVar[str] = "alma"
    scale: ClassVar = Scaled

    def __post_init__(self) -> None:
        super().__post_init__()
        in_range = is_finite(self.alpha, 0.0) and self.alpha <= 1.0
        require(in_range, "alpha must lie above 0 and be at most 1", self.alpha)
        require(self.B is None or is_finite(self.B, 0.0), "B must be a positive number or None", self.B)
        require(is_finite(self.C, 0.0), "C must be a positive number", self.C)

    def other_norm(self, problem: Problem) -> str | None:
        return from_two_on(problem)

    def plan(self, facts: Facts) -> Plan:
        root = (facts.problem.p - 1.0) ** 0.5
        gamma = root * (1.0 - self.alpha) * (8.0**0.5 / self.alpha if self.B is None else self.B)
        eta = self.C / root
        R = 1.0 if self.normalise else facts.R
        return Plan(rule=ALMAStep(gamma, eta, R, self.normalise), unit=None)
