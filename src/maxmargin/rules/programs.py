"""Exact solvers behind the frame of the incremental algorithms: a round is one point of theirs, and its bounds."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np

from ..batch.generation import linear_points
from ..problems import Problem
from .algorithm import Algorithm, Bias, Facts, Plan


class Points(NamedTuple):
    """Makes better and better points (w, b, alpha) of a problem."""

    of: Callable[..., Iterator[tuple[np.ndarray, float, np.ndarray]]]


@dataclass(frozen=True)
class Program(Algorithm):
    """What both have in common: no rule that sees patterns one by one, and no order of them."""

    schedule: str = "points"

    schedules: ClassVar[tuple[str, ...]] = ("points",)
    bias: ClassVar[Bias] = Bias.OWN
    points: ClassVar[Any] = None

    def plan(self, facts: Facts) -> Plan:
        return Plan(rule=Points(type(self).points), unit=1.0)


@dataclass(frozen=True)
class LinearProgram(Program):
    """The exact linear programs of p = 1 and p = inf, by HiGHS on the rows and columns that matter.

    Hard margin: maximise g with y_i (w.x_i + b) >= g and |w|_q <= 1. Hinge with the norm to the first power: |w|_q +
    sum C s_i xi_i. Rows that are violated, and columns whose share of sum alpha_i y_i x_i exceeds the bound, join until
    none is left; every round is certified on all of them.
    Guarantee: ends with the optimum, up to HiGHS's tolerances.

    References
    ----------
    J. P. Pedroso, N. Murata, "Support vector machines with different norms", Pattern Recognition Letters 22, 2001;
    P. S. Bradley, O. L. Mangasarian, "Massive data discrimination via linear support vector machines", OMS 13, 2000.
    """

    name: ClassVar[str] = "lp"
    points: ClassVar[Any] = staticmethod(linear_points)

    def refuses(self, problem: Problem) -> str | None:
        if problem.p not in (1.0, np.inf):
            return "p=1 or p=inf"
        if not problem.hard and (problem.loss != "hinge" or problem.power != 1):
            return 'C=inf, or loss="hinge" with norm_power=1'
        return None
