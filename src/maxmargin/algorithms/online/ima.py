"""FMP_p, the fixed p-margin Perceptron, and IMA_p, the incremental p-margin algorithm, which raises its margin."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar, NamedTuple

from ...engine.jit import record
from ...engine.state import Motion, Scaled
from ...numerics.sizes import is_finite, is_whole
from ...problem.problem import Problem
from ..base import Bias, Facts, PerceptronLike, Plan, require


@record
class FMPStep(NamedTuple):
    """The step of FMP_p at the margin gamma; w and its norm N include slack coordinates, l is the label."""

    gamma: float  # in the units of the patterns
    eta: float  # rate
    constant2: float  # c^2, the squared constant of the bias; 0 if the rule learns no bias

    def threshold(self, h):
        return self.gamma * h.norm2() ** 0.5

    def violates(self, h, i, s, limit):
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
        positive = self.constant is None or is_finite(self.constant, 0.0)
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


class Increments(NamedTuple):
    """Settings of the schedule `increments` of IMA."""

    accuracy: float | None  # alpha
    increment: float | None  # None: gamma is between the margin reached and its upper bound
    from_larger: bool  # whether gamma is the larger of the balanced margin and of the increased smaller one
    budget: int | None  # None: as many updates as the theorem allows
    radius2: float  # R_2^2: an update at gamma = 0 adds at most this to |w|_2^2
    subgradient: float  # G = max |g|_2 of subgradients g of |w|_q
    optimum2: float  # upper bound of |u|_2^2 + b*^2 / c^2 at the optimum (u, b*), |u|_q = 1
    constant2: float  # c^2

    def max_updates(self, gamma: float, eta: float, start2: float) -> float:
        """Return the largest number of updates of a call at gamma if a margin of (1 + accuracy / 2) gamma exists.

        The call starts at |(w, b / c)|^2 = start2 with the rate eta. With e = accuracy gamma / 2, T updates increase
        the inner product with the optimum u by at least T eta e, and the squared length by at most T eta^2 K:
        T eta e <= |u| (|start| + sqrt(|start|^2 + T eta^2 K)), so that T <= |u|^2 K / e^2 + 2 |u| |start| / (eta e).
        A budget replaces this number.
        """
        if self.budget is not None:
            return self.budget
        e = 0.5 * (self.accuracy or 0.0) * gamma
        if e == 0.0:
            return float("inf")
        K = (self.radius2**0.5 + gamma * self.subgradient) ** 2 + self.constant2
        return self.optimum2 * K / e / e + 2.0 * (self.optimum2 * start2) ** 0.5 / eta / e


@dataclass(frozen=True)
class IMA(NormDescent):
    """IMA_p: the largest p-margin, for every p from 1 to inf, by FMP_p at rising margins.

    Iteration: FMP at the margin gamma (see `FMP`), started where the last call ended. It succeeds when no pattern
    satisfies the condition. Then b moves to the middle between the smallest margins of the classes, so that both
    become g, and gamma <- (1 + increment) g / N with N = |w|_q. The first gamma is 0. (``rule="paper"`` takes the
    larger of g / N and of 1 + increment times the smaller margin before the move, which is no more.) Steps are
    multiplied by a rate eta, which is 1, and from the third success on sqrt(t_2 / t), where t is the number of updates
    so far and t_2 that at the third success.
    A call fails when its budget of updates is spent; then IMA ends with the last success. With neither alpha nor
    increment nor budget, gamma lies a quarter of the way from the margin reached to the upper bound from the dual
    variables (at most three times that margin). A gamma that comes to lie beyond half of the way, as the bound
    decreases, is replaced by such a smaller one. IMA then ends when `tol` is certified. The last digits take very many
    updates, (R / gamma)^2 / `tol`^2 in the worst case.
    2-norm soft margin: exactly the hard margin of the patterns with slack coordinates.
    Guarantee: with alpha the margin at the end is at least 1 - alpha of the optimum: either that is certified, or the
    last call made more updates than a margin of (1 + alpha / 2) gamma = (1 + alpha / 2)^2 g / N allows.
    An update costs O(d) for p other than 2; at p = 2 the non-zeros of the pattern.

    Parameters
    ----------
    alpha : float, default=None
        Accuracy, in (0, 1). None: see above.
    increment : float, default=None
        Relative increase of gamma above the margin reached; the papers take 0.001. None: alpha / 2; with a budget but
        without alpha 0.001; with neither see above.
    rule : {"balanced", "paper"}, default="balanced"
        The next gamma, with an increment; see above. With ``"paper"`` the default of `increment` is 0.001.
    budget : int, default=None
        Largest number of updates in a call of FMP. None: the number that the theorem allows with alpha; without alpha,
        but with an increment, the larger of 6000 and 20 for each pattern; else no limit.
    constant : float, default=None
        The constant of the bias; see `FMP`.
    shuffle : bool, default=True
        Full passes in random order, else in the order of the data.

    References
    ----------
    S. Villela, S. Leite, R. Fonseca Neto, "Incremental p-margin algorithm for classification with arbitrary norm",
    Pattern Recognition 55, 2016. Failure as a certificate, the budget and the exact soft margin are this library's.
    """

    alpha: float | None = None
    increment: float | None = None
    budget: int | None = None
    schedule: str = "increments"
    rule: str = "balanced"

    name: ClassVar[str] = "ima"
    schedules: ClassVar[tuple[str, ...]] = ("increments",)

    def __post_init__(self) -> None:
        super().__post_init__()
        require(
            self.alpha is None or (is_finite(self.alpha) and 0.0 < self.alpha < 1.0),
            "alpha must lie between 0 and 1, or be None",
            self.alpha,
        )
        positive = self.increment is None or is_finite(self.increment, 0.0)
        require(positive, "increment must be a positive number or None", self.increment)
        require(self.rule in ("balanced", "paper"), "rule must be 'balanced' or 'paper'", self.rule)
        require(
            self.budget is None or is_whole(self.budget, 1),
            "budget must be a whole number of updates, at least 1, or None",
            self.budget,
        )

    def plan(self, facts: Facts) -> Plan:
        problem, increment, budget = facts.problem, self.increment, self.budget
        if self.alpha is not None and increment is None:
            increment = 0.5 * self.alpha
        if increment is None and (budget is not None or self.rule == "paper"):
            increment = 1e-3
        if increment is not None and self.alpha is None and budget is None:
            # with 6000 updates small sets reach 0.97 to 0.99 of the optimum; large ones have some for every pattern
            budget = max(6000, 20 * facts.n)
        rule = self.rule_at(0.0, facts)
        euclid2 = facts.radius2 if facts.length2 is None else facts.length2
        q = problem.q
        settings = Increments(
            accuracy=self.alpha,
            increment=increment,
            from_larger=self.rule == "paper",
            budget=budget,
            radius2=euclid2 if problem.hard else euclid2 + facts.radius2,
            subgradient=float(facts.d) ** max(0.0, 0.5 - 1.0 / problem.p),
            optimum2=float(facts.d) ** max(0.0, 1.0 - 2.0 / q)
            + (facts.radius2 / rule.constant2 if rule.constant2 else 0.0),
            constant2=rule.constant2,
        )
        return Plan(rule=rule, unit=None, settings=settings)


@dataclass(frozen=True)
class FlexibleIMA(IMA):
    """IMA_p with the flexible margin of its authors' code: the norm does not include slack coordinates.

    Condition: l_k (w.x_k + b) + delta_k^2 v_k <= gamma |w|_q: as in `IMA`, but the norm has no slack coordinates in it.
    Update: as there, with v <- (1 - eta gamma / |w|_q) v, then v_k <- v_k + eta.
    Guarantee: it ends, since a call of FMP has a budget. The optimum of the 2-norm soft margin is not its limit: w
    shrinks by more than in `IMA`, and the margins it reaches are no bounds. The bounds of a fit are those of its (w, b)
    and of its counts n_k in the problem of the fit.

    Parameters
    ----------
    alpha : float, default=None
        With increment=None the increment is alpha / 2; not used otherwise.
    increment : float, default=0.01
    budget : int, default=None
        Largest number of updates in a call of FMP; None: the larger of 6000 and 20 for each pattern.
    constant : float, default=None
    shuffle : bool, default=True
        Full passes in random order, else in the order of the data.

    References
    ----------
    As for `IMA`.
    """

    increment: float | None = 0.01

    name: ClassVar[str] = "flexible-ima"
    motion: ClassVar[Motion] = Motion.FLEXIBLE
    kernelised: ClassVar[bool] = False

    def refuses(self, problem: Problem) -> str | None:
        return "a finite C" if problem.hard else super().refuses(problem)

    def plan(self, facts: Facts) -> Plan:
        increment = self.increment or 0.5 * (self.alpha or 0.02)
        return IMA.plan(replace(self, alpha=None, increment=increment), facts)
