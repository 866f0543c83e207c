"""An accelerated gradient method for the hard margin at any p from 2 on, with entropic steps on the dual.

With the patterns a_i = y_i x_i (the constant coordinate included), D the set of dual variables and 1/p + 1/q = 1, the
largest margin is the square root of twice the least value of F over D::

    F(alpha) = |A'alpha|_p^2 / 2

D is the simplex, or with a free intercept its part in which the entries of each class add up to 1/2. The smallest
margin of w with its best intercept is m(w) = min over alpha in D of (A w).alpha. The gradient of F is A w with
w = f^-1(A'alpha), f^-1 being the gradient of |.|_p^2 / 2. Let h(alpha) be sum alpha_i log alpha_i less its minimum.
With zeta the minimiser of h, alpha = zeta and S = 0 at the start, a step of the length s is::

    beta <- (S alpha + s zeta) / (S + s)                          w_t = f^-1(A'beta)
    zeta' <- argmin over z in D of (sum of all s_j A w_j).z + h(z)
    alpha' <- (S alpha + s zeta') / (S + s)                       S <- S + s

zeta' is a softmax in each class. All points of D are combinations of the zeta, so that a step costs one product with A
and one with A': one pass. Its primal point is w, the average of the w_j weighted with the s_j.

Theorem. Let (S + s) D_F(alpha', beta) <= KL(zeta', zeta) in every step, with D_F(x, z) = F(x) - F(z) - F'(z).(x - z)
and KL(x, z) = sum x_i log(x_i / z_i). Then lo^2 >= hi^2 - 2 H / S, where lo = max(m(w), 0) / |w|_q,
hi = |A'alpha|_p, and H = max of h over D, which is at most log n.

Proof. Let psi(z) = sum of s_j (F(beta_j) + F'(beta_j).(z - beta_j)) + h(z), so that zeta minimises psi. By induction
S F(alpha) <= min psi. Since psi - h is linear, psi(z) >= S F(alpha) + KL(z, zeta) on D. A step adds
s (F(beta) + F'(beta).(z - beta)) to psi. At its minimiser zeta', with F(alpha) >= F(beta) + F'(beta).(alpha - beta) and
S alpha + s zeta' = (S + s) alpha', psi is therefore at least
(S + s) (F(beta) + F'(beta).(alpha' - beta)) + KL(zeta', zeta), by the condition at least (S + s) F(alpha').
Now F(beta_j) - F'(beta_j).beta_j = -|w_j|_q^2 / 2, and the square is convex, so that
min psi <= S (m(w) - |w|_q^2 / 2) + H <= S lo^2 / 2 + H. Together hi^2 / 2 <= lo^2 / 2 + H / S.

Lengths of the steps. Let L = (p - 1) R^2, R the largest p-norm of a pattern. Since |.|_p^2 / 2 is smooth with the
constant p - 1, and alpha' - beta is s / (S + s) times zeta' - zeta,
D_F(alpha', beta) <= (p - 1) |A'(alpha' - beta)|_p^2 / 2 <= L (s / (S + s))^2 |zeta' - zeta|_1^2 / 2, where by Pinsker's
inequality |zeta' - zeta|_1^2 / 2 <= KL(zeta', zeta). The condition therefore holds if s^2 L <= S + s. The largest such
s gives S_1 = 1 / L and sqrt(S_(t+1)) >= sqrt(S_t) + 1 / (2 sqrt(L)), so that S_t >= (t + 1)^2 / (4 L). After every
number t of steps, therefore::

    lo_t^2 >= hi_t^2 - 8 (p - 1) R^2 log n / (t + 1)^2

Longer steps are tried, with s^2 M = S + s and an M below L, and the condition itself is checked. A step for which it
does not hold is repeated with 2 M, at most L; a repetition costs one more pass.

There are no restarts: after one, the theorem holds with the number of steps since then, and with log(n / delta) in
place of log n where the entropy is centred at (1 - delta) alpha + delta / n. On Gaussian rows of 1500 x 50 at p = 2,
restarts at a tenth of the gap of the last one, delta = 0.1, took 167, 451 and 1,036 passes to 1 %, 0.1 % and 0.01 %,
and the method without them 202, 613 and 1,831, both without the fast start of the step lengths.

At p = inf, F is not smooth. The method is then run at the exponents r = 2 log d, 4 log d, 8 log d, ... in place of p;
|v|_inf <= |v|_r <= d^(1/r) |v|_inf. The exponent is doubled when the gap of its own bounds is at most 1 - d^(-1/r). A
finite p above 2 log d is not replaced, as the method converges at p itself: on the Gaussian rows of
the benchmark, p = 16, 32 and 100 took 599, 873 and 1,465 passes to 1 %, and 651, 1,041 and 2,654 with the
exponents below them first.

References
----------
P. Tseng, "On accelerated proximal gradient methods for convex-concave optimization", 2008;
Yu. Nesterov, "Smooth minimization of non-smooth functions", Math. Program. 103, 2005;
G. Wang, R. Hanashiro, E. Guha, J. Abernethy, "On accelerated Perceptrons and beyond", ICLR 2023.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import count
from typing import Any, NamedTuple

import numpy as np

from ...numerics.norms import norm, row_norms
from ...numerics.sums import Plain
from ...problem.problem import Problem, dual_exponent

# M falls by START_DECREASE after every step until the condition fails for the first time, then by DECREASE; a failure
# doubles it. A larger decrease repeats more steps, a smaller one takes more of them. Passes to 1 % on Gaussian rows of
# 1500 x 50 at p = 2 and 8, with 2 at the start: 174 and 459 with 1.05, 183 and 483 with 1.1, 191 and 498 with 1.15;
# with 1.1 at the start as well, 202 and 513.
START_DECREASE, DECREASE, INCREASE = 2.0, 1.05, 2.0
# Rounding of (S + s) D_F, relative to (S + s) F: some units in the last place of F.
ROUNDING = 1e-15
# An iterate is yielded when its gap is below YIELD_SHARE of that of the iterate before, or after MAX_STEPS steps. The
# driver evaluates it, at the cost of a pass: with 0.8 there are some ten evaluations for each digit of the gap.
YIELD_SHARE, MAX_STEPS = 0.8, 100
# The last iterate is that of a gap of END_SHARE * `tol`: certificates are rounded outwards. A larger share may end
# above `tol`, a smaller one costs steps.
END_SHARE = 0.99


class Step(NamedTuple):
    """An iterate of the accelerated method.

    Attributes
    ----------
    w : ndarray of shape (d,)
        Of the averages and of the w_t so far, the one with the largest margin.
    b : float
    alpha : ndarray of shape (n,)
    lower, upper : float
        Margin of w, and |A'alpha|_p, in the norm of the run.
    steps, passes : int
        Number of steps, and of passes over the rows, since the iterate before.
    length : float
        S, the sum of the lengths of all steps: lower^2 >= upper^2 - 2 log n / S.
    """

    w: np.ndarray
    b: float
    alpha: np.ndarray
    lower: float
    upper: float
    steps: int
    passes: int
    length: float

    @property
    def gap(self) -> float:
        """1 - lower / upper; inf without a positive upper bound."""
        return 1.0 - self.lower / self.upper if self.upper > 0.0 else np.inf


@dataclass(frozen=True)
class _Patterns:
    """The patterns a_i with the norm of the run, and the set D.

    Attributes
    ----------
    p : float
        Exponent of the norm, finite.
    parts : tuple of ndarray of bool of shape (n,)
        The rows of each class with a free intercept, else all rows: dual variables have the same sum in each part.
    """

    problem: Problem
    X: Any
    y: np.ndarray
    p: float
    parts: tuple[np.ndarray, ...]

    @classmethod
    def of(cls, problem: Problem, X: Any, y: np.ndarray, p: float) -> _Patterns:
        classes = tuple(side for side in (y > 0.0, y < 0.0) if side.any())
        return cls(problem, X, y, p, classes if problem.free else (np.ones(y.size, bool),))

    @property
    def smoothness(self) -> float:
        """L = (p - 1) R^2; 1 where all patterns are zero."""
        lengths = row_norms(self.X, self.p)
        if self.problem.rho:
            top = np.maximum(lengths, self.problem.rho)
            lengths = top * ((lengths / top) ** self.p + (self.problem.rho / top) ** self.p) ** (1.0 / self.p)
        return (self.p - 1.0) * float(lengths.max()) ** 2 or 1.0

    def margins(self, w: np.ndarray) -> np.ndarray:
        """Return A w, without a free intercept."""
        if self.problem.rho:
            return self.y * Plain.scores(self.X, w[:-1], self.problem.rho * float(w[-1]))
        return self.y * Plain.scores(self.X, w)

    def combine(self, alpha: np.ndarray) -> np.ndarray:
        """Return A'alpha."""
        c = alpha * self.y
        v = Plain.combine(self.X, c)
        return np.append(v, self.problem.rho * c.sum()) if self.problem.rho else v

    def weights(self, v: np.ndarray) -> np.ndarray:
        """Return f^-1(v): v_j (|v_j| / |v|_p)^(p - 2)."""
        length = norm(v, self.p)
        return v if self.p == 2.0 or length == 0.0 else v * (np.abs(v) / length) ** (self.p - 2.0)

    def half_square(self, v: np.ndarray) -> float:
        """Return |v|_p^2 / 2."""
        return 0.5 * norm(v, self.p) ** 2

    def log_softmax(self, sums: np.ndarray) -> np.ndarray:
        """Return the logarithms of the minimiser of sums.z + h(z) over D."""
        out = np.empty(sums.size)
        for part in self.parts:
            low = sums[part].min() - sums[part]  # exponents of at most 0 cannot overflow
            out[part] = low - np.log(len(self.parts) * np.exp(low).sum())
        return out

    def margin(self, w: np.ndarray, margins: np.ndarray) -> float:
        """Return the margin of w with its best intercept, from its A w; -inf for w = 0."""
        length = norm(w, dual_exponent(self.p))
        least = sum(float(margins[part].min()) for part in self.parts) / len(self.parts)
        return least / length if length > 0.0 else -np.inf

    def point(self, w: np.ndarray, margins: np.ndarray) -> tuple[np.ndarray, float]:
        """Return the weights of the features and the best intercept, from A w."""
        if self.problem.rho:
            return w[:-1], self.problem.rho * float(w[-1])
        least = [float(margins[part].min()) for part in self.parts]
        return w, 0.5 * (least[-1] - least[0])


class _State(NamedTuple):
    """The sequence after some steps, with the products of its points: A'zeta, A'alpha, and A of the sum of s_j w_j."""

    S: float
    log_zeta: np.ndarray
    v_zeta: np.ndarray
    alpha: np.ndarray
    v_alpha: np.ndarray
    w_sum: np.ndarray
    margin_sum: np.ndarray


class _Trial(NamedTuple):
    """A step: the state after it, w_t with A w_t, and whether the condition of the theorem holds."""

    state: _State
    w: np.ndarray
    margins: np.ndarray
    holds: bool


def accelerated_steps(
    problem: Problem, X: Any, y: np.ndarray, p: float, interrupted: Callable[[], bool] = lambda: False
) -> Iterator[Step]:
    """Yield an iterate after every step, without an end; after the first stop check that is true, the last one.

    Parameters
    ----------
    problem : Problem
        A hard margin.
    X : ndarray or CSR matrix of shape (n, d)
    y : ndarray of shape (n,), entries -1.0 and 1.0
    p : float, finite and at least 2
        Exponent of the norm, in place of that of the problem.
    interrupted : callable
        Returns whether to stop. Called after every trial of a step.
    """
    patterns = _Patterns.of(problem, X, y, p)
    L, decrease, M, passes = patterns.smoothness, START_DECREASE, patterns.smoothness, 1
    log_zeta = patterns.log_softmax(np.zeros(y.size))
    zeta = np.exp(log_zeta)
    v = patterns.combine(zeta)
    state = _State(0.0, log_zeta, v, zeta, v, np.zeros(v.size), np.zeros(y.size))
    point, lower = (np.zeros(X.shape[1]), 0.0), -np.inf
    while True:
        s = (1.0 + np.sqrt(1.0 + 4.0 * M * state.S)) / (2.0 * M)  # s^2 M = S + s
        trial, passes = _trial(patterns, state, s), passes + 1
        if not trial.holds and M < L and not interrupted():
            M, decrease = min(INCREASE * M, L), DECREASE
            continue
        state = trial.state
        M, stop = M / decrease, interrupted()
        for w, margins in ((state.w_sum, state.margin_sum), (trial.w, trial.margins)):
            margin = patterns.margin(w, margins)
            if margin > lower:
                point, lower = patterns.point(w, margins), margin
        yield Step(*point, state.alpha, lower, norm(state.v_alpha, p), 1, passes, state.S)
        passes = 0
        if stop:
            return


def _trial(patterns: _Patterns, state: _State, s: float) -> _Trial:
    """Return the step of the length s from a state."""
    S = state.S + s
    share = s / S
    v_beta = state.v_alpha + share * (state.v_zeta - state.v_alpha)
    w = patterns.weights(v_beta)
    margins = patterns.margins(w)
    margin_sum = state.margin_sum + s * margins
    log_zeta = patterns.log_softmax(margin_sum)
    zeta = np.exp(log_zeta)
    v_zeta = patterns.combine(zeta)
    change = share * (v_zeta - state.v_zeta)  # A'(alpha' - beta)
    v_alpha = v_beta + change
    at_beta = patterns.half_square(v_beta)
    if patterns.p == 2.0:
        divergence = patterns.half_square(change)
    else:
        divergence = patterns.half_square(v_alpha) - at_beta - float(w @ change)
    entropy = float(zeta @ (log_zeta - state.log_zeta))  # KL(zeta', zeta)
    after = _State(
        S,
        log_zeta,
        v_zeta,
        state.alpha + share * (zeta - state.alpha),
        v_alpha,
        state.w_sum + s * w,
        margin_sum,
    )
    return _Trial(after, w, margins, S * divergence <= entropy + S * at_beta * ROUNDING)


def accelerated_points(
    problem: Problem,
    X: Any,
    y: np.ndarray,
    weights: np.ndarray,
    interrupted: Callable[[], bool] = lambda: False,
    tol: float = 0.0,
) -> Iterator[Step]:
    """Yield iterates whose gaps decrease by `YIELD_SHARE`, and at p = inf run one exponent after the other.

    Parameters
    ----------
    problem : Problem
        A hard margin, p of at least 2.
    X : ndarray or CSR matrix of shape (n, d)
    y : ndarray of shape (n,), entries -1.0 and 1.0
    weights : ndarray of shape (n,)
        Without effect on a hard margin.
    interrupted : callable
        Returns whether to stop.
    tol : float
        Gap at which the caller stops: the first iterate within it is yielded at once.
    """
    d = X.shape[1] + bool(problem.rho)
    first = max(2.0, 2.0 * np.log(d))
    for k in count():
        exponent = problem.p if problem.p < np.inf else first * 2.0**k
        smoothing = 0.0 if problem.p < np.inf else 1.0 - d ** (-1.0 / exponent)
        last, steps, passes = 1.0, 0, 0  # a gap of 1 or more proves nothing
        for step in accelerated_steps(problem, X, y, exponent, interrupted):
            steps, passes = steps + 1, passes + step.passes
            near = step.gap <= max(YIELD_SHARE * last, END_SHARE * tol)
            if near or steps == MAX_STEPS or interrupted():
                yield step._replace(steps=steps, passes=passes)
                last, steps, passes = min(step.gap, last), 0, 0
            if step.gap <= smoothing:
                break
        if interrupted():
            return
