"""The fixed directional margin: the step of CRAMMA with a constant threshold."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from ...engine.state import Scaled
from ..base import Facts, PerceptronLike, Plan
from .cramma import check_parameters, normalised_plan


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
        return normalised_plan(facts, beta, self.eta, epsilon=0.0)
