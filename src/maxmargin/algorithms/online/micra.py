"""MICRA: CRAMMA with a rate that decreases with the number of updates."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from ..base import Facts, Plan, is_finite, require
from .cramma import CRAMMA, RATE_SHARE, normalised_plan


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
        return normalised_plan(facts, self.beta, self.eta, self.epsilon, self.zeta, share)
