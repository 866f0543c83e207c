"""Dual coordinate descent for the hinge, the squared hinge and the hard margin."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np

from ...engine.jit import record
from ...numerics.sizes import is_finite
from ...problem.problem import Problem
from ..base import Algorithm, Facts, Plan, require


@record
class Descend(NamedTuple):
    """The step of Hsieh et al.: the dual objective is maximised exactly over one variable, for margins of `unit`.

    The slack coordinate of the squared hinge is part of the score and of |y_i x_i|^2, the paper's Q_ii + D_ii.
    """

    unit: float

    def threshold(self, h):
        return self.unit

    def violates(self, h, i, s, limit):
        # the projected gradient is not 0; the gradient is s - unit
        return (s < limit and h.dual(i) < h.cap_of(i)) or (s > limit and h.dual(i) > 0.0)

    def step(self, h, i, s):
        cap = h.cap_of(i)
        if h.length2(i) > 0.0:
            h.set_dual(i, h.best_dual(i, s, self.unit))
        else:  # the score does not depend on alpha_i: the optimum is its cap or, without a cap, unbounded: any value
            h.set_dual(i, cap if cap < np.inf else self.unit)


@dataclass(frozen=True)
class DualCoordinateDescent(Algorithm):
    """Dual coordinate descent: hinge, squared hinge and hard margin, for 1 < p < inf.

    Condition: the projected gradient of the dual along alpha_i is not zero.
    Update: alpha_i <- clip(alpha_i + (1 - y_i w.x_i) / |x_i|^2, 0, C s_i), w <- w + (change of alpha_i) y_i x_i. Under
    the squared hinge there is no cap; alpha_i / (2 C s_i) is added to the score and 1 / (2 C s_i) to |x_i|^2. For other
    p, w is the image of sum alpha_i y_i x_i under the link, and the optimal change of alpha_i is found by Newton's
    method within a bracket. For `norm_power=1` the weight of the losses is |w| C, renewed in every evaluation.
    Guarantee: converges to the optimum of a soft problem, at p = 2 linearly.

    Parameters
    ----------
    schedule : {"gap", "shrinking", "plain", "active"}, default="gap"
        Gap-driven working sets; the shrinking of the paper; full passes; full passes, each followed by passes over
        the patterns that made a step.
    eps : float, default=None
        Only with ``schedule="shrinking"``: the stopping criterion of the paper and of LIBLINEAR (its option ``-e``).
        The fit ends as CONVERGED when the projected gradients of a pass over all rows differ by at most eps, or at
        `tol` if that is certified before; a small problem goes on with the exact stage. None: at `tol` only.

    References
    ----------
    C.-J. Hsieh, K.-W. Chang, C.-J. Lin, S. S. Keerthi, S. Sundararajan, "A dual coordinate descent method for
    large-scale linear SVM", ICML 2008 (Algorithm 3).
    """

    schedule: str = "gap"
    eps: float | None = None

    name: ClassVar[str] = "dcd"
    centres: ClassVar[bool] = True
    schedules: ClassVar[tuple[str, ...]] = ("gap", "shrinking", "plain", "active")

    def __post_init__(self) -> None:
        require(
            self.eps is None or is_finite(self.eps, 0.0),
            "eps must be a positive number or None",
            self.eps,
        )
        shrinks = self.eps is None or self.schedule == "shrinking"
        require(shrinks, 'eps is the stopping criterion of schedule="shrinking"', self.schedule)

    def refuses(self, problem: Problem) -> str | None:
        return None if 1.0 < problem.p < np.inf else '1 < p < inf; for p = 1 or p = inf algorithm="auto"'

    def plan(self, facts: Facts) -> Plan:
        return Plan(rule=Descend(1.0), unit=1.0, settings=self.eps)
