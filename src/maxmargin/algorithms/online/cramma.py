"""CRAMMA, MICRA and the fixed directional margin, which share the step with |w| = 1."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, NamedTuple

from ...engine.jit import record
from ...engine.state import Scaled
from ...numerics.sizes import is_finite
from ..base import Facts, PerceptronLike, Plan, require

# Default rate as a fraction of the largest one that the theorem allows. The bound on the number of updates is infinite
# at fraction 1; small fractions make slow progress. Chosen on the data sets of benchmarks.before_after.
RATE_SHARE = 0.1


@record
class UnitNormStep(NamedTuple):
    """The step of CRAMMA (zeta = 0), MICRA, and the fixed directional margin (epsilon = 0); u is w, with |u| = 1."""

    beta: float  # threshold at t = 1, in units of R
    epsilon: float  # exponent of the threshold
    eta: float  # effective rate at t = 1
    zeta: float  # exponent of the rate
    R: float  # largest norm of a pattern

    def start(self, h, order):
        # u_1 = y_1 / |y_1|, t = 1, y_1 being the first pattern of positive length
        i = order[0]
        for k in order:
            if h.length2(i) == 0.0:
                i = k
        if h.length2(i) > 0.0:
            h.learn(i, h.length2(i) ** -0.5, 0.0)
        h.advance(1)

    def threshold(self, h):
        # (beta / R) / t^epsilon of the paper, times R: scores are of the patterns as they are
        return self.R * self.beta * h.time() ** -self.epsilon

    def violates(self, h, i, s, limit):
        return s <= limit

    def step(self, h, i, s):
        # u <- u + eta_eff y / R, eta_eff = eta / t^zeta
        h.learn(i, self.eta * h.time() ** -self.zeta / self.R, s)
        # u <- u / |u|
        if h.norm2() > 0.0:
            h.shrink(h.norm2() ** -0.5)
        h.advance(1)  # t <- t + 1


@dataclass(frozen=True)
class CRAMMA(PerceptronLike):
    """CRAMMA^epsilon: a constant effective rate, and a threshold that decreases with the number of updates.

    Condition: u.y_k / R <= beta / t^epsilon (not strict), |u| = 1. Update: u <- u + eta y_k / R, divided by its norm;
    t <- t + 1. The first pattern is in u from the start, and t = 1 counts it.
    Guarantee (Theorem 1): it ends if eta < (sqrt(1 + 8 gamma_d / R) - 1) / 2, after at most t_0 (1 + tau_b) updates
    with t_0 = (beta R / gamma_d)^(1 / epsilon), with a margin of at least gamma_d (1 + tau_b)^-epsilon, tau_b being
    the root of equation (19) of the paper. With eta = eta_0 beta^-delta, 0 < epsilon delta < 1, the margin tends to
    gamma_d as beta grows.

    Parameters
    ----------
    beta : float, default=2
        Threshold at t = 1, in units of R (the paper's beta / R).
    eta : float, default=None
        Effective rate. None takes a tenth of the largest rate that the theorem allows for a lower bound of the margin:
        the larger of the margin of a short Perceptron run and, in the extended space, 1 / sqrt(sum 1 / delta_k^2).
        If there is neither, R / 1000 is used: the theorem then covers margins from about R / 10,000. A stream, which
        has no such run, needs a rate.
    epsilon : float, default=0.5
        Exponent of the threshold.
    schedule : {"plain", "active"}, default="plain"
    shuffle : bool, default=True
        Full passes in random order, else in the order of the data.

    References
    ----------
    P. Tsampouka, J. Shawe-Taylor, "Constant rate approximate maximum margin algorithms", ECML 2006.
    """

    beta: float = 2.0
    eta: float | None = None
    epsilon: float = 0.5
    schedule: str = "plain"

    name: ClassVar[str] = "cramma"
    scale: ClassVar = Scaled

    def __post_init__(self) -> None:
        super().__post_init__()
        check_parameters(self.beta, self.eta, self.epsilon)

    def plan(self, facts: Facts) -> Plan:
        return unit_norm_plan(facts, self.beta, self.eta, self.epsilon)


@dataclass(frozen=True)
class MICRA(CRAMMA):
    """MICRA^{epsilon, zeta}: CRAMMA with an effective rate eta / t^zeta.

    Condition: u.y_k / R <= beta / t^epsilon (not strict), |u| = 1. Update: u <- u + (eta / t^zeta) y_k / R, divided by
    its norm; t <- t + 1.
    Guarantee: it always ends if 0 < zeta <= 1. The upper bound from its dual variables is poor for large zeta, since
    the dual variables of early patterns remain large.

    Parameters
    ----------
    beta : float, default=2
        Threshold at t = 1, in units of R.
    eta : float, default=None
        Effective rate at t = 1. None takes the largest that CRAMMA's theorem allows (see `CRAMMA`).
    epsilon : float, default=0.5
        Exponent of the threshold.
    zeta : float, default=0.5
        Exponent of the rate, from 0, which is CRAMMA, to 1.
    schedule : {"plain", "active"}, default="plain"
    shuffle : bool, default=True
        Full passes in random order, else in the order of the data.

    References
    ----------
    P. Tsampouka, J. Shawe-Taylor, "Approximate maximum margin algorithms with rules controlled by the number of
    mistakes", ICML 2007.
    """

    zeta: float = 0.5

    name: ClassVar[str] = "micra"

    def __post_init__(self) -> None:
        super().__post_init__()
        require(is_finite(self.zeta) and 0.0 <= self.zeta <= 1.0, "zeta must lie between 0 and 1", self.zeta)

    def plan(self, facts: Facts) -> Plan:
        share = RATE_SHARE if self.zeta == 0.0 else 1.0
        return unit_norm_plan(facts, self.beta, self.eta, self.epsilon, self.zeta, share)


@dataclass(frozen=True)
class FixedDirectionalMargin(PerceptronLike):
    """The fixed directional margin of the CRAMMA paper's taxonomy: a constant threshold beta.

    Condition: u.y_k / R <= beta (not strict), |u| = 1. Update: u <- u + eta y_k / R, divided by its norm.
    Guarantee: it ends, with a margin above beta R, if beta R < gamma_d and eta is small enough; if beta R >= gamma_d
    it never ends.

    Parameters
    ----------
    beta : float, default=None
        The margin to reach, in units of R. None takes nine tenths of the margin of a short Perceptron run.
    eta : float, default=None
        Effective rate. None: as for `CRAMMA`.
    schedule : {"plain", "active"}, default="plain"
    shuffle : bool, default=True
        Full passes in random order, else in the order of the data.

    References
    ----------
    P. Tsampouka, J. Shawe-Taylor, "Constant rate approximate maximum margin algorithms", ECML 2006.
    """

    beta: float | None = None
    eta: float | None = None
    schedule: str = "plain"

    name: ClassVar[str] = "fixed-margin"
    scale: ClassVar = Scaled

    def __post_init__(self) -> None:
        super().__post_init__()
        check_parameters(1.0 if self.beta is None else self.beta, self.eta)

    def plan(self, facts: Facts) -> Plan:
        beta = 0.9 * facts.floor() / facts.R if self.beta is None else self.beta
        return unit_norm_plan(facts, beta, self.eta, epsilon=0.0)


def check_parameters(beta: float, eta: float | None, epsilon: float = 1.0) -> None:
    """Raise ValueError for parameters outside their ranges."""
    require(is_finite(beta, 0.0), "beta must be a positive number (in units of R)", beta)
    require(eta is None or is_finite(eta, 0.0), "eta must be a positive number or None", eta)
    require(is_finite(epsilon, 0.0), "epsilon must be a positive number", epsilon)


def unit_norm_plan(
    facts: Facts, beta: float, eta: float | None, epsilon: float, zeta: float = 0.0, share: float = RATE_SHARE
) -> Plan:
    """Return the plan of a rule; its rate is eta or, if None, `share` times the largest that the theorem allows."""
    rate = share * largest_rate(facts) if eta is None else eta
    return Plan(rule=UnitNormStep(beta, epsilon, rate, zeta, facts.R), unit=None)


def largest_rate(facts: Facts) -> float:
    """Return the rate (sqrt(1 + 8 gamma / R) - 1) / 2 of CRAMMA's theorem 1, with a lower bound gamma of the margin."""
    # R / 1000 if the Perceptron run finds no separator: below most margins, with a rate at which a fit ends
    gamma = facts.floor() or 1e-3 * facts.R
    return 0.5 * ((1.0 + 8.0 * gamma / facts.R) ** 0.5 - 1.0)
