"""ALMA_p, the approximate large margin algorithm."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, NamedTuple

from ..compiled.jit import record
from ..compiled.weights import Lazy
from ..problems import Problem
from .algorithm import Facts, PerceptronLike, Plan, from_two_on, is_number, require


@record
class Approach(NamedTuple):
    """Update when w.y/R <= gamma_k:  theta <- theta + eta_k y/R, cut to norm 1; gamma_k, eta_k fall with 1/sqrt(k).

    w = f^-1(theta), which is theta at p = 2.
    """

    gamma: float
    eta: float
    R: float

    def threshold(self, h):
        return self.R * self.gamma * (h.time() + 1.0) ** -0.5

    def wrong(self, h, i, s, limit):
        return s <= limit

    def step(self, h, i, s):
        h.learn(i, self.eta * (h.time() + 1.0) ** -0.5 / self.R, s)
        if h.norm2() > 1.0:
            h.shrink(h.norm2() ** -0.5)
        h.tick()


@record
class ApproachNormalised(NamedTuple):
    """The same with every pattern divided by its own norm."""

    gamma: float
    eta: float

    def threshold(self, h):
        return self.gamma * (h.time() + 1.0) ** -0.5

    def wrong(self, h, i, s, limit):
        return s <= limit * h.length2(i) ** 0.5 and h.length2(i) > 0.0

    def step(self, h, i, s):
        h.learn(i, self.eta * (h.time() + 1.0) ** -0.5 * h.length2(i) ** -0.5, s)
        if h.norm2() > 1.0:
            h.shrink(h.norm2() ** -0.5)
        h.tick()


@dataclass(frozen=True)
class ALMA(PerceptronLike):
    """ALMA_p: a fraction 1 - alpha of the largest directional p-margin, for 2 <= p < inf.

    Condition: w.y_k / R <= (1 - alpha) B sqrt(p - 1) / sqrt(k) (not strict), w = f^-1(theta), f being the link.
    Update: theta <- theta + C / sqrt((p - 1) k) y_k / R, divided by max(1, |theta|_p); k <- k + 1, from k = 1.
    (The paper's step is w <- f^-1(f(w) + ...): the link is homogeneous, so that all of it is linear in theta.)
    2-norm soft margin: the same with an own coordinate for every row, and the mixed norm
    sqrt(|theta|_p^2 + sum delta_k^2 alpha_k^2).
    Guarantee (B = sqrt(8) / alpha, C = sqrt(2)): with gamma the largest margin of the scaled patterns, at most
    (2 (p - 1) / gamma^2) (2 / alpha - 1)^2 + 8 / alpha - 4 updates; then the margin is at least (1 - alpha) gamma.

    Parameters
    ----------
    alpha : float, default=0.1
        Accuracy, in (0, 1].
    B, C : float, default=None, sqrt(2)
        Constants of threshold and step; B None is sqrt(8) / alpha.
    normalise : bool, default=False
        Divide each pattern by its own p-norm, as the original paper does, which is another problem with another
        optimum: w is then measured on the patterns as they are. Else all are divided by R.
    schedule : {"plain", "active"}, default="plain"
    shuffle : bool, default=True

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
    scale: ClassVar = Lazy

    def __post_init__(self) -> None:
        super().__post_init__()
        require(
            is_number(self.alpha) and 0.0 < self.alpha <= 1.0,
            "alpha must lie above 0 and be at most 1",
            self.alpha,
        )
        require(
            self.B is None or (is_number(self.B) and self.B > 0.0),
            "B must be a positive number or None",
            self.B,
        )
        require(is_number(self.C) and self.C > 0.0, "C must be a positive number", self.C)

    def other_norm(self, problem: Problem) -> str | None:
        return from_two_on(problem)

    def plan(self, facts: Facts) -> Plan:
        root = (facts.problem.p - 1.0) ** 0.5
        gamma = root * (1.0 - self.alpha) * (8.0**0.5 / self.alpha if self.B is None else self.B)
        eta = self.C / root
        if self.normalise:
            return Plan(rule=ApproachNormalised(gamma, eta), unit=None)
        return Plan(rule=Approach(gamma, eta, facts.R), unit=None)
