"""Pegasos: stochastic subgradient descent with falling steps."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np

from ...engine.jit import record
from ...engine.state import Scaled
from ...numerics.sizes import is_whole
from ...problem.problem import Problem
from ..base import Algorithm, Bias, Facts, Plan, require


@record
class SubgradientStep(NamedTuple):
    """One iteration of Pegasos (figures 1 and 2 of the paper), with lambda = 1 / (C n) and eta_t = 1 / (lambda t).

    `begin_batch` is called after the rows of a batch have been scored, `end_batch` after their steps.
    """

    factor: float  # n / k: the sum over a batch, times this, has the sum over all patterns as its mean
    radius2: float  # squared radius of the ball onto which w is projected; inf without projection

    def threshold(self, h):
        return 1.0

    def begin_batch(self, h):
        # t <- t + 1, w <- (1 - eta_t lambda) w = (1 - 1 / t) w: at t = 1 w is set to 0
        h.advance(1)
        h.shrink(1.0 - 1.0 / h.time())

    def violates(self, h, i, s, limit):
        # the pattern is in A_t^+
        return s < limit

    def step(self, h, i, s):
        # w <- w + (eta_t / k) y, which is n C s_i / (t k) y
        c = self.factor * h.cap_of(i) / h.time()
        if self.radius2 < np.inf:
            # the score at the present w: s was computed before the steps of this batch
            h.learn(i, c, h.score(i))
        else:
            h.add(i, c)

    def end_batch(self, h):
        # w <- min(1, (1 / sqrt(lambda)) / |w|) w, in this library's units of w
        if self.radius2 < np.inf and h.norm2() > self.radius2:
            h.shrink((self.radius2 / h.norm2()) ** 0.5)


class MiniBatches(NamedTuple):
    """Settings of the schedule `mini-batches`."""

    size: int  # rows of a mini-batch
    max_batches: float  # inf for no limit


@dataclass(frozen=True)
class Pegasos(Algorithm):
    """Pegasos: stochastic subgradient descent for the hinge loss, with a rate that decreases as 1 / t.

    Condition: w.y_i < 1 for a pattern of the batch A_t, k patterns drawn with replacement, all scored at one w.
    Update: w <- (1 - eta_t lambda) w + (eta_t / k) sum of these y_i with eta_t = 1 / (lambda t) and
    lambda = 1 / (C n); in terms of caps C s_i, w <- (1 - 1/t) w + sum (n C s_i / (t k)) y_i. With `projection`,
    then w <- w min(1, sqrt(sum C s_i) / |w|): the optimum lies in that ball, which is the paper's of radius
    1 / sqrt(lambda).
    Guarantee: with F_t(w) = |w|^2 / 2 + (n / k) sum over A_t of C s_i max(0, 1 - w.y_i), whose mean is the
    objective, sum over t <= T of F_t(w_t) - F_t(u) is at most G^2 (1 + ln T) / 2 for every u (with the
    projection: of the ball); G = 2 n C max(s_i) R, with the projection sqrt(sum C s_i) + n C max(s_i) R. The mean error
    decreases as ln(T) / T: rough solutions are fast, accurate ones slow.

    A dual variable is the fraction of draws in which its pattern satisfied the condition, times its cap: a random
    estimate, cut at the cap, with which the lower bound converges more slowly than the upper one. A free intercept is
    learnt as the weight of a constant coordinate (the paper's first method), which is regularised: w then converges to
    the optimum of that problem, but the bounds are those of the problem with the free intercept.

    Parameters
    ----------
    k : int, default=1
        Number of patterns of a mini-batch.
    T : int, default=None
        Number of mini-batches after which it ends. None continues until `tol` or `max_iter`.
    projection : bool, default=False
        Whether w is projected onto the ball of radius sqrt(sum C s_i).

    References
    ----------
    S. Shalev-Shwartz, Y. Singer, N. Srebro, A. Cotter, "Pegasos: primal estimated sub-gradient solver for SVM",
    Mathematical Programming 127, 2011 (figures 1 and 2, theorem 1).
    """

    k: int = 1
    T: int | None = None
    projection: bool = False
    schedule: str = "mini-batches"

    name: ClassVar[str] = "pegasos"
    schedules: ClassVar[tuple[str, ...]] = ("mini-batches",)
    bias: ClassVar[Bias] = Bias.COORDINATE
    scale: ClassVar[Any] = Scaled

    def __post_init__(self) -> None:
        require(is_whole(self.k, 1), "k must be a whole number of patterns, at least 1", self.k)
        require(
            self.T is None or is_whole(self.T, 1),
            "T must be a whole number of mini-batches, at least 1, or None",
            self.T,
        )
        require(isinstance(self.projection, bool | np.bool_), "projection must be a bool", self.projection)

    def refuses(self, problem: Problem) -> str | None:
        if problem.hard or problem.loss != "hinge":
            return 'loss="hinge" with a finite C'
        return super().refuses(problem)

    def plan(self, facts: Facts) -> Plan:
        rule = SubgradientStep(facts.n / self.k, facts.losses if self.projection else np.inf)
        return Plan(rule=rule, unit=1.0, settings=MiniBatches(self.k, np.inf if self.T is None else self.T))
