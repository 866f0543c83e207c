"""Cutting planes: SVMperf and OCAS."""

from __future__ import annotations

from dataclasses import dataclass
from numbers import Integral
from typing import Any, ClassVar, NamedTuple

from ..problem.problem import Problem
from .base import Algorithm, Bias, Facts, Plan, is_number, require


class AtMinimiser(NamedTuple):
    """SVMperf: the next plane touches the loss where the model is least."""

    def better(self, loss: Any, best: Any, new: Any) -> Any:
        return new

    def touch(self, loss: Any, best: Any, new: Any) -> Any:
        return new


class AlongLine(NamedTuple):
    """OCAS: the best point goes along the line to where the model is least; the next plane touches a little farther."""

    mu: float

    def better(self, loss: Any, best: Any, new: Any) -> Any:
        return loss.between(best, new, loss.least(best, new))

    def touch(self, loss: Any, best: Any, new: Any) -> Any:
        return loss.between(best, new, self.mu)


class Turns(NamedTuple):
    """How near the bounds have to be at the end, and how long a plane may stay without weight."""

    near: float
    idle: int


@dataclass(frozen=True)
class CuttingPlane(Algorithm):
    """Cutting planes for the hinge loss: the one-slack form of SVMperf, and OCAS.

    Model: R(w) = sum C s_i max(0, 1 - w.y_i) is at least h_p - g_p.w for every plane p, h_p = sum of the C s_i of
    the rows that were wrong where it was taken, g_p = sum of their C s_i y_i; and at least 0.
    Turn: w is where 1/2 |w|^2 + the largest plane is least (its dual has one variable a plane), and a plane
    is taken there (SVMperf); or the best point w_b moves to where the objective is least on the line from it
    through w, and the plane is taken at (1 - mu) w_b + mu w (OCAS), which makes the objective fall in every turn.
    Guarantee: the objective is known to C n eps after at most log2(1 / (4 R^2 C n)) + 16 R^2 C n / eps planes
    (whole numbers, n counting weights; SVMperf), however many rows there are. With a free intercept R is least over
    b, planes are balanced between the classes, and the same holds.

    Parameters
    ----------
    variant : {"ocas", "svmperf"}, default="ocas"
    eps : float, default=None
        End when the bounds on the objective, divided by C n, are this close: SVMperf's violation of the slack. None
        goes on until `tol`.
    mu : float, default=0.1
        OCAS: where the plane is taken, between the best point and the model's.
    idle : int, default=50
        Turns after which a plane without weight is dropped.

    References
    ----------
    T. Joachims, "Training linear SVMs in linear time", KDD 2006;
    V. Franc, S. Sonnenburg, "Optimized cutting plane algorithm for support vector machines", ICML 2008;
    T. Joachims, T. Finley, C.-N. Yu, "Cutting-plane training of structural SVMs", Machine Learning 77, 2009
    (theorem 5).
    """

    variant: str = "ocas"
    eps: float | None = None
    mu: float = 0.1
    idle: int = 50
    schedule: str = "planes"

    name: ClassVar[str] = "cutting-plane"
    schedules: ClassVar[tuple[str, ...]] = ("planes",)
    bias: ClassVar[Bias] = Bias.OWN
    kernelised: ClassVar[bool] = False

    def __post_init__(self) -> None:
        require(self.variant in ("ocas", "svmperf"), "variant must be 'ocas' or 'svmperf'", self.variant)
        require(
            self.eps is None or (is_number(self.eps) and self.eps > 0.0),
            "eps must be a positive number or None",
            self.eps,
        )
        require(is_number(self.mu) and 0.0 < self.mu <= 1.0, "mu must lie above 0 and be at most 1", self.mu)
        require(
            isinstance(self.idle, Integral) and not isinstance(self.idle, bool) and int(self.idle) >= 1,
            "idle must be a whole number of turns, at least 1",
            self.idle,
        )

    def refuses(self, problem: Problem) -> str | None:
        if problem.hard or problem.loss != "hinge":
            return 'loss="hinge" with a finite C'
        return super().refuses(problem)

    def plan(self, facts: Facts) -> Plan:
        where = AtMinimiser() if self.variant == "svmperf" else AlongLine(self.mu)
        near = 0.0 if self.eps is None else self.eps * facts.losses
        return Plan(rule=where, unit=1.0, pace=Turns(near, self.idle))
