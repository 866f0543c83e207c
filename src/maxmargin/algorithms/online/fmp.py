"""FMP_p, the fixed p-margin Perceptron, and the common base of FMP and IMA."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, NamedTuple

from ...engine.jit import record
from ...engine.state import Motion, Scaled
from ...problem.problem import Problem
from ..base import Bias, Facts, PerceptronLike, Plan, is_finite, is_positive_finite, require


@record
class FMPStep(NamedTuple):
    """The step of FMP_p at the margin gamma; w and its norm N include slack coordinates, l is the label."""

    gamma: float  # in the units of the patterns
    eta: float  # rate
    constant2: float  # c^2, the squared constant of the bias; 0 if the rule learns no bias

    def threshold(self, h):
        return self.gamma * h.norm2() ** 0.5

    def wrong(self, h, i, s, limit):
        # l (w.x + b) <= gamma N
        return s <= limit

    def step(self, h, i, s):
        # w <- w - eta gamma g, g a subgradient of N; coordinates stop at 0. k: the factor of all scores
        k = h.descend(self.eta * self.gamma)
        # w <- w + eta l x
        h.learn(i, self.eta, k * h.score_without_bias(i, s))
        # b <- b + eta c^2 l
        h.add_to_bias(self.eta * self.constant2 * h.y[i])


@dataclass(frozen=True)
class NormDescent(PerceptronLike):
    """Common base of FMP and IMA: subgradient steps on the norm of w, and a bias that is learnt with w.

    Parameters
    ----------
    constant : float, default=None
        The constant c of the bias, whose step is eta c^2 l: that of the weight of one more feature of value c, outside
        of the norm. None: the largest Euclidean norm of a pattern, with which results do not depend on the unit of the
        patterns. The paper's is 1.
    """

    constant: float | None = None

    scale: ClassVar = Scaled
    bias: ClassVar[Bias] = Bias.OWN
    motion: ClassVar[Motion] = Motion.SUBGRADIENT

    def __post_init__(self) -> None:
        super().__post_init__()
        positive = self.constant is None or is_positive_finite(self.constant)
        require(positive, "constant must be a positive number or None", self.constant)

    def other_norm(self, problem: Problem) -> str | None:
        return "norm_power=2" if problem.first_power else None

    def rule_at(self, gamma: float, facts: Facts) -> FMPStep:
        """Return the rule for the margin gamma, in the units of the patterns, with the rate 1."""
        length2 = facts.radius2 if facts.length2 is None else facts.length2
        constant2 = self.constant**2 if self.constant is not None else (length2 or 1.0)
        return FMPStep(gamma, 1.0, constant2 if facts.problem.free else 0.0)


@dataclass(frozen=True)
class FMP(NormDescent):
    """FMP_p: a weight whose p-margin exceeds a fixed one, for every p from 1 to inf.

    Condition: l_k (w.x_k + b) <= gamma |w|_q (not strict, so that w = 0 makes updates).
    Update: w <- w + l_k x_k - gamma g, b <- b + c^2 l_k, with g.w = |w|_q and |g|_p = 1:
    g_j = sign(w_j) (|w_j| / |w|_q)^(q-1); at q = 1 the signs, 0 at w_j = 0; at q = inf signs divided by their number,
    on the largest entries; 0 at w = 0. A coordinate whose sign -gamma g would change becomes 0; at p = 2 all of them
    do at once.
    2-norm soft margin: with slack coordinates delta_k v_k and N^2 = |w|_q^2 + sum delta_k^2 v_k^2 for |w|_q^2; g takes
    the factor |w|_q / N, and v <- (1 - gamma / N) v, v_k <- v_k + 1.
    Guarantee: with (u, b*), |u|_q = 1, of a margin gamma* > gamma, R_2 the largest Euclidean norm of a pattern, and
    G = max |g|_2 = d^max(0, 1/2 - 1/p), at most
    ((R_2 + gamma G)^2 + c^2) (|u|_2^2 + b*^2 / c^2) / (gamma* - gamma)^2 updates: with each update the inner
    product of (w, b / c) and (u, b* / c) grows by at least gamma* - gamma, and |(w, b / c)|^2 by at most the first
    factor, since the condition and g.w = |w|_q cancel the other terms. (Without a bias c = 0 and b* / c = 0.)
    A run without success is a certificate: after T updates from 0, n_k of them by pattern k,
    |sum n_k l_k x_k|_p <= T gamma + |w|_p, whose second term grows as sqrt(T) only. At p = 2 the dual variables are the
    coefficients of w; else they are the n_k.

    Parameters
    ----------
    gamma : float, default=0
        The margin to exceed, in units of R (the largest p-norm of a pattern). With 0 any separator is a solution.
    constant : float, default=None
        The constant c; None for the largest Euclidean norm of a pattern, the paper's is 1.
    schedule : {"active", "plain"}, default="active"
    shuffle : bool, default=True
        Full passes in random order, else in the order of the data.

    References
    ----------
    S. Villela, S. Leite, R. Fonseca Neto, "Incremental p-margin algorithm for classification with arbitrary norm",
    Pattern Recognition 55, 2016. The bounds are derived in this library.
    """

    gamma: float = 0.0

    name: ClassVar[str] = "fmp"

    def __post_init__(self) -> None:
        super().__post_init__()
        require(
            is_finite(self.gamma) and self.gamma >= 0.0,
            "gamma must be a number of at least 0 (in units of R)",
            self.gamma,
        )

    def plan(self, facts: Facts) -> Plan:
        return Plan(rule=self.rule_at(self.gamma * facts.R, facts), unit=None)
