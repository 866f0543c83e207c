"""The margin Perceptron with unlearning."""

from __future__ import annotations

from dataclasses import dataclass
from numbers import Integral, Real
from typing import Any, ClassVar, NamedTuple

import numpy as np

from ...engine.jit import record
from ...engine.state import TIME
from ..base import Algorithm, Facts, Plan, require


@record
class Unlearn(NamedTuple):
    """The step of MPU with multiple updates: all successive single updates of the presented pattern at once.

    I_k, the number of updates by pattern k, is its dual variable, and I its cap.
    """

    b: float  # the threshold
    db: float  # delta_b, the width of the interval above b without a step, in the units of a.y

    def threshold(self, h):
        return self.b

    def violates(self, h, i, s, limit):
        # learn if a.y <= b and I_k < I; unlearn if a.y >= b + delta_b and I_k > 0
        return (s <= limit and h.dual(i) < h.cap_of(i)) or (s >= limit + self.db and h.dual(i) > 0.0)

    def step(self, h, i, s):
        old, cap, square = h.dual(i), h.cap_of(i), h.length2(i)
        if s <= self.b:
            if square > 0.0:
                # I_k <- min(I_k + floor((b - a.y) / |y|^2) + 1, I), in float64: the count may exceed every int64
                new = min(old + np.floor((self.b - s) / square) + 1.0, cap)
            else:  # the score does not depend on I_k: its cap at once or, without a cap, any value
                new = cap if cap < np.inf else 1.0
        else:
            # I_k <- max(I_k - floor((a.y - b - delta_b) / |y|^2) - 1, 0)
            new = max(old - np.floor((s - self.b - self.db) / square) - 1.0, 0.0) if square > 0.0 else 0.0
        h.advance(max(new - old, 0.0))  # t+
        # a <- a + (change of I_k) y
        h.set_dual(i, new)


class Levels(NamedTuple):
    """Settings of the schedule `two-level`."""

    near: float  # c_bar - 1: larger values make larger first-level sets
    max_first_epochs: int  # on the first-level set
    max_second_epochs: int  # on the second-level set


@dataclass(frozen=True)
class MPU(Algorithm):
    """The margin Perceptron with unlearning: hard margin, 1-norm and (by slack coordinates) 2-norm soft margin.

    Condition: learn if a.y_k <= b and I_k < I; unlearn if a.y_k >= b + delta_b and I_k > 0; I_k counts the updates by
    pattern k, and I is its cap.
    Update: a <- a + m y_k, I_k <- I_k + m with m = floor((b - a.y_k) / |y_k|^2) + 1, at most I - I_k: the number of
    single updates that would follow one another. Unlearning is the same with m < 0, at least -I_k. With sample weights
    the cap is the real number I s_k, and the last step is shortened to reach it.
    Guarantee: 1-norm soft margin, w = a / b and C = I / b, J being the objective: (J - J_opt) / J_opt < delta =
    2 (delta_b / b) / (1 - delta_b / b) before the run; hard margin: fraction of the margin above
    1 / (1 + min(delta_b, b + R^2) / b), with delta_b in the units of b.
    The record of `run` has three more parameters: `t_plus` and `t_minus`, the numbers of learning and unlearning
    updates, each single update of a multiple one counted, and `after_run_accuracy`. The last is the bound (24) of the
    paper on (J - J_opt) / J_opt at the last w, (|a|^2 / 2 + I sum_k max(b - a.y_k, 0)) /
    (b (t_plus - t_minus) - |a|^2 / 2) - 1; for the hard and the 2-norm soft margin it is
    1 - min_k a.y_k (t_plus - t_minus) / |a|^2, the bound on the fraction of the margin that is missing. It is NaN for a
    free intercept, to which the bounds of the paper do not apply.

    Parameters
    ----------
    delta : float, default=None
        Accuracy guaranteed before the run. None takes a tenth of `tol`, as the paper does (1e-5 to stop at 1e-4).
    delta_b : float, default=3
        Width of the interval above b in which a pattern makes no step, in units of R^2; above 1.
    schedule : {"gap", "two-level", "plain", "active"}, default="gap"
        Gap-driven working sets; the paper's two-level active sets; full passes; full passes, each followed by
        passes over the patterns that made a step.
    c_bar : float, default=1.01
        The first-level set holds the patterns with a.y_k <= c_bar b or I_k > 0.
    Nep1, Nep2 : int, default=3, 10
        Largest number of epochs on the first-level set and on the second-level set.
    shuffle : bool, default=True
        Whether to present rows in random order. False: always in the order of the data, and without the exact stage of
        small problems; with ``schedule="plain"`` this is the cyclic order of Algorithm 1 of the paper.

    References
    ----------
    C. Panagiotakopoulos, P. Tsampouka, "The margin perceptron with unlearning", ICML 2010.
    """

    delta: float | None = None
    delta_b: float = 3.0
    schedule: str = "gap"
    c_bar: float = 1.01
    Nep1: int = 3
    Nep2: int = 10
    shuffle: bool = True

    name: ClassVar[str] = "mpu"
    schedules: ClassVar[tuple[str, ...]] = ("gap", "two-level", "plain", "active")

    def __post_init__(self) -> None:
        require(isinstance(self.shuffle, bool), "shuffle must be True or False", self.shuffle)
        for name in ("delta", "delta_b", "c_bar"):
            value = getattr(self, name)
            require(
                isinstance(value, Real) or (name == "delta" and value is None),
                f"{name} must be a number",
                value,
            )
        for name in ("Nep1", "Nep2"):
            value = getattr(self, name)
            require(isinstance(value, Integral), f"{name} must be a whole number", value)
        require(self.delta is None or 0.0 < self.delta < 1.0, "delta must lie between 0 and 1", self.delta)
        require(self.delta_b > 1.0, "delta_b must be above 1 (in units of R^2)", self.delta_b)
        require(self.c_bar >= 1.0, "c_bar must be at least 1", self.c_bar)
        if self.Nep1 < 1 or self.Nep2 < 1:
            raise ValueError(f"Nep1 and Nep2 must be at least 1; got {self.Nep1!r} and {self.Nep2!r}.")

    def plan(self, facts: Facts) -> Plan:
        problem = facts.problem
        delta = 0.1 * facts.tol if self.delta is None else self.delta
        R2 = facts.radius2 if facts.radius2 > 0.0 else 1.0
        db = self.delta_b * R2
        if problem.hard or problem.loss == "squared_hinge":
            # the fraction of the margin is above 1 / (1 + delta_b / b) = 1 - delta
            b = db * (1.0 - delta) / delta
        else:
            # I = floor(C delta_b (2 + delta) / delta) + 1, b = I / C: then 2 (delta_b / b) / (1 - delta_b / b) < delta
            I = np.floor(problem.C * db * (2.0 + delta) / delta) + 1.0
            b = float(I / problem.C)
            # the square of such a b may overflow, and C is so small that I = 1: every pattern is at its cap
            if b > 1e100:
                b = db * (2.0 + delta) / delta  # the cap C b is then below one update
        return Plan(rule=Unlearn(b, db), unit=b, settings=Levels(self.c_bar - 1.0, self.Nep1, self.Nep2))

    def measure(self, run: Any) -> dict[str, float]:
        h, b = run.h, run.rule.b
        learnt, net = float(h.number[TIME]), float(h.alpha.sum())  # t+, and t+ - t- = sum I_k
        square = float(h.space.vector.norm2() + np.sum(h.slack.own_norm2(h.ids)))
        accuracy = np.nan
        if run.problem.cap < np.inf:
            losses, dual = float(h.cap @ np.maximum(b - run.scores, 0.0)), b * net - 0.5 * square
            accuracy = (0.5 * square + losses) / dual - 1.0 if dual > 0.0 else np.inf
        elif square > 0.0:
            accuracy = 1.0 - float(run.scores.min()) * net / square
        accuracy = np.nan if run.problem.free else accuracy
        return {"t_plus": learnt, "t_minus": learnt - net, "after_run_accuracy": accuracy}
