"""PUMMA_p: the largest p-margin with a bias that is learnt with w, without a constant coordinate."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

from ...engine.jit import compiled, record
from ...engine.state import Scaled
from ...numerics.sizes import is_finite
from ...problem.problem import Problem
from ..base import Bias, Facts, PerceptronLike, Plan, from_two_on, require


@record
class PairStep(NamedTuple):
    """The step of PUMMA_p in terms of m = f(w) / |w|_q^2; g = f^-1(m), which is m at p = 2, and |m| is the p-norm.

    The pair x+, x- consists of the last row of each class that made an update; the bias makes both constraints tight,
    so that both have the score |m|^2. `add` adds patterns to m, and `norm2` is |m|_p^2.
    """

    delta: float

    def start(self, h, order):
        # the first pattern and the first one of the other class: m <- (x+ - x-) / 2
        i = j = order[0]
        for k in order:
            if h.y[k] != h.y[i] and j == i:
                j = k
        h.set_pair(i)
        h.set_pair(j)
        h.add(i, 0.5)
        h.add(j, 0.5)
        h.equalise(i, j)

    def threshold(self, h):
        return (1.0 - self.delta) * h.norm2()

    def violates(self, h, i, s, limit):
        # l (w.x + b) < 1 - delta, times |m|^2
        return s < limit

    def step(self, h, i, s):
        # x+ or x- <- x, m <- the point (1 - k) m + k (x+ - x-) / 2 of the segment nearest to 0 in the p-norm
        j = h.partner(i)
        move(h, i, j, h.nearest(i, j, s, h.norm2()))  # the partner is tight: its score is |m|^2


@compiled()
def move(h, i, j, k):
    """Replace m by (1 - k) m + k (x+ - x-) / 2 with rows i and j as the pair, and set b and |m|^2."""
    h.shrink(1.0 - k)
    h.add(i, 0.5 * k)
    h.add(j, 0.5 * k)
    h.set_pair(i)
    # b <- -(g.x+ + g.x-) / 2
    h.equalise(i, j)  # also sets |m|^2, to the common score


@dataclass(frozen=True)
class PUMMA(PerceptronLike):
    """PUMMA: a fraction 1 - delta of the largest p-margin for 2 <= p < inf, with a free intercept.

    Condition: l_k (w.x_k + b) < 1 - delta. Update: x_k takes the place of the last updating pattern of its class;
    w becomes the shortest vector with w.x+ + b >= 1, w.x- + b <= -1 and w.f(w_old) >= |w_old|_q^2, f being the link;
    b makes both of the first two tight. That is m <- the point of the segment [m, (x+ - x-) / 2] nearest to the
    origin in the p-norm, m = f(w) / |w|_q^2; for p > 2 it is found by Newton's steps within a bracket.
    2-norm soft margin: the same with a slack coordinate for every row, and the mixed norm
    sqrt(|m|_p^2 + sum delta_k^2 alpha_k^2).
    Guarantee: at most 4 (p - 1) (R / (delta gamma))^2 updates, gamma being the largest margin (the paper prints 2:
    |x+ - x-| <= 2 R gives 4); at the end the margin is at least (1 - delta) / |w|_q, and |m|_p = 1 / |w|_q bounds
    every margin from above. Soft, with the same C for every row: at most
    (4 (p - 1) R^2 + 2 / C) (|u|_q^2 + C |xi|^2) / delta^2 updates for any (u, xi) that satisfies the constraints, where
    C is twice the `C` of the classifier and R has no slack coordinates.
    With p = c ln d the inf-margin is at least (1 - delta) e^(-1/c) of the largest one.

    Parameters
    ----------
    delta : float, default=None
        Accuracy, in (0, 1]. None: the accuracy with which the result certifies `tol`.
    halving : bool, default=True
        Begin with delta = 1, and halve it whenever a full pass makes no update (section 5.2).
    schedule : {"active", "plain"}, default="active"
        The paper's active set (section 5.1), or full passes only.
    shuffle : bool, default=True
        Full passes in random order, else in the order of the data.

    References
    ----------
    K. Ishibashi, K. Hatano, M. Takeda, "Online learning of approximate maximum p-norm margin classifiers with bias",
    COLT 2008.
    """

    delta: float | None = None
    halving: bool = True

    name: ClassVar[str] = "pumma"
    scale: ClassVar = Scaled
    bias: ClassVar[Bias] = Bias.OWN

    def __post_init__(self) -> None:
        super().__post_init__()
        require(is_accuracy(self.delta), "delta must lie above 0 and be at most 1, or be None", self.delta)

    def refuses(self, problem: Problem) -> str | None:
        if not problem.free:
            return "fit_intercept=True without intercept_scaling"
        return super().refuses(problem)

    def other_norm(self, problem: Problem) -> str | None:
        return from_two_on(problem)

    def plan(self, facts: Facts) -> Plan:
        first, *rest = map(PairStep, accuracies(final_accuracy(self.delta, facts), self.halving))
        return Plan(rule=first, unit=None, then=tuple(rest))


def is_accuracy(delta: Any) -> bool:
    """Return whether delta is a valid accuracy: a number in (0, 1], or None for the default of `final_accuracy`."""
    return delta is None or (is_finite(delta) and 0.0 < delta <= 1.0)


def final_accuracy(delta: float | None, facts: Facts) -> float:
    """Return delta, or by default the accuracy with which a pass without updates certifies a gap of `facts.tol`.

    After such a pass the margin is at least 1 - delta of its upper bound. Hard margin: the gap is delta. Soft margin:
    the objective is proportional to the inverse square of the extended margin, so that 1 + gap = (1 - delta)^-2.
    """
    if delta is not None:
        return delta
    gap = 0.9 * facts.tol  # a tenth is left for the rounding of the scores and of the certificate
    return min(gap if facts.problem.hard else 1.0 - (1.0 + gap) ** -0.5, 1.0)


def accuracies(delta: float, halving: bool) -> list[float]:
    """Return [delta] or, with `halving`, the powers 1, 1/2, 1/4, ... above delta, then delta (PUMMA, section 5.2)."""
    out, current = [], 1.0
    while halving and current > delta:
        out.append(current)
        current *= 0.5
    return [*out, delta]
