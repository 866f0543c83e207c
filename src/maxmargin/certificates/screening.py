"""What any primal and dual point and their gap prove of rows, at the optimum and without a row.

**Patterns**, 2 <= p < inf. |w|_q^2 / 2 is (q - 1)-strongly convex in the q-norm, 1/p + 1/q = 1. At an optimum
(w*, b*) the sum of losses has a subgradient (-g, 0), where g is a subgradient of |w|_q^2 / 2 at w*. The losses of any
(w, b) are therefore at least the losses of (w*, b*) minus g.(w - w*), and

    P(w, b) - P(w*, b*) >= |w|_q^2 / 2 - |w*|_q^2 / 2 - g.(w - w*) >= (q - 1) / 2 |w - w*|_q^2.

With G = P(w, b) - D(alpha), which is no less than the left side, w* is no further from w than
sqrt(2 G / (q - 1)). Hoelder's inequality turns the ball into an interval of w*.x_i, and `intercept_interval` these
intervals into one of b*. The hard margin is the problem min |w|_q^2 / 2 where every margin is at least one;
w* is feasible, and the same inequality holds for all feasible points.

A row whose margin at the optimum is above one has the dual variable 0 in any optimum (complementary slackness), and
may be left out; one whose margin is below one has its full weight C s_i (hinge).

**Intercepts.** With score z_i, a positive row has a loss for b below t_i = y_i - z_i, a negative row for b above. The
slope of the sum of losses in b,

    hinge          sum_{negative, t_i <= b} s_i - sum_{positive, t_i > b} s_i
    squared hinge  2 sum_{negative} s_i (b - t_i)_+ - 2 sum_{positive} s_i (t_i - b)_+,

is non-decreasing in b and in every score. Hence an optimal b for scores of at least `low` is at most the largest
optimal b for `low` itself, and an optimal b for scores of at most `high` is at least the smallest for `high`, which is
the first statement with every sign reversed.

For other problems there is no such theorem: with 1 <= p < 2 (q > 2) and at p = inf the norm is not strongly convex, and
with the hinge the dual is not strongly concave.

**Leave one out**: the label of a row by the classifier trained without it, without training it. Let
P_i be the problem without row i, and (w, b) any point, so that min P_i <= P_i(w, b) = P(w, b) - C s_i loss_i. If

    min { P_i(w', b') : y_i (w'.x_i + b') <= 0 }  >  P_i(w, b),

every optimum of P_i labels row i correctly. By weak duality the left side is at least the dual value with a multiplier
lambda >= 0 for the new constraint, that is, of dual variables with alpha_i = -lambda, which has no gain. They must
balance if the intercept is free. Subtract theta = alpha_i + lambda from the dual variable of row i, and distribute
theta over a pool of rows in shares pi_j, sum pi_j = 1, with mean x' = sum pi_j x_j: add it to rows of the same
class, or subtract it from rows of the other class. Then v becomes v - theta y_i (x_i - x'), and the dual value changes
by

    - gain(alpha_i) +- theta - (2 sigma theta A + theta^2 B) + theta y_i v.(x_i - x') - theta^2 |x_i - x'|^2 / 2,

A = sum pi_j alpha_j / (4 C s_j), B = sum pi_j^2 / (4 C s_j) with the squared hinge, else 0; sigma = +1 where the dual
variables of the pool rise, -1 where they fall, and the term +- theta is sigma theta. If this change plus C s_i loss_i
exceeds the gap G = P - D for some theta >= alpha_i that the bounds of the pool allow, row i is certainly *right*. With
the constraint reversed, y_i (w'.x_i + b') >= 0 and theta <= alpha_i, it is certainly *wrong*. Nothing is assumed of
(w, b) and alpha but their bounds: the smaller the gap, the more rows are decided.

Here p = 2: lengths are those of inner products, so that the bounds hold for kernels too.

References: Ndiaye, Fercoq, Gramfort, Salmon, "Gap safe screening rules for sparsity enforcing penalties", 2017;
Shibagaki, Karasuyama, Hatano, Takeuchi, "Simultaneous safe screening of features and samples", 2016; Ball, Carlen,
Lieb, "Sharp uniform convexity and smoothness inequalities for trace norms", 1994 (the modulus q - 1);
T. Jaakkola, D. Haussler, "Probabilistic kernel regression models", 1999, and T. Joachims, "Estimating the
generalization performance of an SVM efficiently", 2000, bound the same error of an exact solution without, or with a
fixed, intercept; V. Vapnik, O. Chapelle, "Bounds on error expectation for support vector machines", 2000, rebalance.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import fsum
from typing import Any

import numpy as np

from ..numerics.sums import EPS, TINY
from ..problem.problem import Problem
from .certificate import Certificate, Sample

ROUND_UP = 1.0 + 16.0 * EPS  # a factor of more than the relative rounding error of up to eight operations


@dataclass(frozen=True)
class Margins:
    """Intervals that hold the margin of every row at every optimum.

    Attributes
    ----------
    least, most : ndarray of shape (n,)
        Lower and upper ends of the intervals; -inf and inf where nothing is proved.
    intercept : (float, float)
        An interval that holds the optimal intercepts; (0, 0) where the intercept is not free.
    """

    least: np.ndarray
    most: np.ndarray
    intercept: tuple[float, float]

    @property
    def weightless(self) -> np.ndarray:
        """Rows that have no dual weight in any optimum, of shape (n,): without them the optimum is the same."""
        return self.least > 1.0

    @property
    def inside(self) -> np.ndarray:
        """Rows whose margin is below one at the optimum, of shape (n,): the hinge has them at their caps."""
        return self.most < 1.0


def modulus(problem: Problem) -> float:
    """Return the modulus of strong convexity of the penalty |w|_q^2 / 2 in the q-norm; 0 where there is none."""
    if not 2.0 <= problem.p < np.inf or problem.first_power:
        return 0.0
    return 1.0 / (problem.p - 1.0) / ROUND_UP  # q - 1, which cancels for large p; rounded down


def objective_gap(problem: Problem, lower: float, upper: float) -> float:
    """Return an upper bound of the gap G of the primal and the dual objective; inf where a bound is missing.

    `lower` and `upper` are the bounds of a certificate.
    """
    if not problem.hard:
        return max(upper - lower, 0.0) * ROUND_UP if lower > -np.inf else np.inf
    highest = hard_objective(lower)
    return max(highest - 0.5 / upper / upper, 0.0) if upper > 0.0 and highest < np.inf else np.inf


def hard_objective(margin: float) -> float:
    """Return an upper bound of 1 / (2 margin^2), |w|_q^2 / 2 at a smallest margin of one; inf unless it is positive."""
    if not margin > 0.0:
        return np.inf
    # two quotients, since the square may underflow or overflow; the last one may underflow to 0
    return (0.5 / margin / margin + TINY) * ROUND_UP


def certain_margins(
    sample: Sample,
    certificate: Certificate,
    point: tuple[np.ndarray, float, float],
    errors: Any,
    lengths: np.ndarray,
) -> Margins | None:
    """Return intervals of the margins at the optimum from a primal point and its certificate.

    Parameters
    ----------
    sample : Sample
        The data of the certificate.
    certificate : Certificate
        Its gap determines the ball that holds the optimal weights.
    point : (ndarray of shape (n,), float, float)
        The scores w.x_i, b and |w|_q of the primal point of the certificate; the length has the weight of an augmented
        intercept.
    errors : float or ndarray of shape (n,)
        Error bounds of the scores.
    lengths : ndarray of shape (n,)
        |x_i|_p, with the constant coordinate.

    Returns
    -------
    Margins or None
        None where the penalty is not strongly convex, or the gap is infinite.
    """
    problem, (z, b, length) = certificate.problem, point
    convexity, gap = modulus(problem), objective_gap(problem, certificate.lower, certificate.upper)
    if convexity == 0.0 or not np.isfinite(gap):
        return None
    z = z + b if problem.rho else z
    if problem.hard:  # scaled to a smallest margin of one: |w|_q = 1 / lower
        unit = length * certificate.lower
        z, errors = z / unit, errors / unit
    # Hoelder: |w*.x_i - z_i| <= radius |x_i|_p, plus the rounding of z_i: of the score, and of a hard margin's length
    radius = float(np.sqrt(2.0 * gap / convexity)) * (1.0 + 1e-12 + sample.width * EPS)
    return margins_within(problem, z, lengths * radius + 2.0 * errors, sample.y, sample.weights)


def margins_within(
    problem: Problem, z: np.ndarray, away: np.ndarray, y: np.ndarray, weights: np.ndarray
) -> Margins:
    """Return intervals of the margins at an optimum whose scores are within `away` of z.

    Parameters
    ----------
    problem : Problem
    z : ndarray of shape (n,)
        Scores w.x_i, an augmented intercept included, a free one excluded.
    away : ndarray of shape (n,)
        Bounds of the differences from the scores at the optimum.
    y : ndarray of shape (n,), entries -1.0 and 1.0
    weights : ndarray of shape (n,)
        Sample weights.
    """
    low, high = z - away, z + away
    first, last = 0.0, 0.0
    if problem.free:
        first, last = intercept_interval(problem, low, high, y, weights)
    positive = y > 0
    with np.errstate(invalid="ignore"):
        least = np.where(positive, low + first, -(high + last))
        most = np.where(positive, high + last, -(low + first))
        unknown = np.isnan(least) | np.isnan(most)
        least[unknown], most[unknown] = -np.inf, np.inf
        # rounding of the two sums of each end
        lower, upper = (
            4.0 * EPS * (np.abs(z) + away + np.abs(np.where(positive, *ends)))
            for ends in ((first, last), (last, first))
        )
        return Margins(least - lower, most + upper, (first, last))


def intercept_interval(
    problem: Problem, low: np.ndarray, high: np.ndarray, y: np.ndarray, weights: np.ndarray
) -> tuple[float, float]:
    """Return bounds of the optimal intercepts b for all scores between `low` and `high`.

    Parameters
    ----------
    problem : Problem
        With a free intercept.
    low, high : ndarray of shape (n,)
        Bounds on the scores w.x_i.
    y : ndarray of shape (n,), entries -1.0 and 1.0
    weights : ndarray of shape (n,)
        Sample weights; rows of weight 0 take no part.

    Returns
    -------
    least, largest : float
        Infinite where the sum of losses has no smallest or largest minimiser, as with one class only.
    """
    used = weights > 0.0
    low, high, y, weights = low[used], high[used], y[used], weights[used]
    if problem.hard:  # every margin is at least one: z_i + b >= 1 for y_i = 1, z_i + b <= -1 for y_i = -1
        return (
            float(np.max(1.0 - high[y > 0], initial=-np.inf)),
            float(np.min(-1.0 - low[y < 0], initial=np.inf)),
        )
    return -_largest_argmin(problem.loss, -high, -y, weights), _largest_argmin(problem.loss, low, y, weights)


def _largest_argmin(loss: str, scores: np.ndarray, y: np.ndarray, weights: np.ndarray) -> float:
    """Return the largest minimiser b of the sum of losses for these scores, rounded upwards; inf if there is none.

    It is the first breakpoint t_i, in ascending order, right of which the slope is positive whatever the rounding
    (hinge), or the root of the slope on the segment that ends at this breakpoint (squared hinge). `scores`, `y` and
    `weights` have shape (n,), and all weights are positive.
    """
    if scores.size == 0:
        return np.inf
    t = y - scores
    order = np.argsort(t, kind="stable")
    t, c, positive = t[order], weights[order], y[order] > 0
    # weights of the positive and of the negative rows, in the order of the breakpoints
    plus, minus = np.where(positive, c, 0.0), np.where(positive, 0.0, c)
    n, middle = t.size, float(t[t.size // 2])
    t = t - middle  # breakpoints relative to the middle one, so that large ones lose no digits
    if loss == "hinge":
        # at each breakpoint the slope rises by the weight of its row, from -sum_{positive} s_i at the left;
        # 4 (n + 4) eps bounds the relative rounding error of the cumulative sums of n terms
        slope = np.cumsum(c) - plus.sum()
        rounding = 4.0 * (n + 4.0) * EPS * float(c.sum())
        last = float(t[np.argmax(slope > rounding)]) if slope[-1] > rounding else np.inf
    else:
        # On each segment half of the slope is weight b - offset, sums of s_i and s_i t_i over the rows with a loss
        # there: entry 0 is the segment left of all breakpoints, entry i + 1 the one right of breakpoint i.
        weight = np.concatenate([[0.0], np.cumsum(minus - plus)]) + plus.sum()
        offset = np.concatenate([[0.0], np.cumsum((minus - plus) * t)]) + (plus * t).sum()
        offset_error = 4.0 * (n + 4.0) * EPS * float(c @ np.abs(t))
        weight_error = 4.0 * (n + 4.0) * EPS * float(c.sum())
        above = weight[1:] * t - offset[1:] > offset_error + weight_error * np.abs(t)
        # k is the first breakpoint at which the slope is positive: the root is on segment k, which ends there
        k = int(np.argmax(above)) if above[-1] else n
        # the largest root offset / weight within the errors of both
        numerator = float(offset[k] + offset_error)
        divisor = weight[k] - weight_error if numerator > 0.0 else weight[k] + weight_error
        root = numerator / divisor if weight[k] > weight_error else np.inf
        last = float(min(root, t[k])) if k < n else float(root)
    return last + middle + 8.0 * EPS * ((abs(last) if np.isfinite(last) else 0.0) + abs(middle))


@dataclass(frozen=True, eq=False)
class InnerProducts:
    """Inner products of the rows, the constant coordinate of an augmented intercept included.

    Attributes
    ----------
    scores : callable
        Returns sum_j c_kj <x_j, x_i> of every row i for all k, of shape (m, n), from coefficients c of shape (m, n).
    squares : ndarray of shape (n,)
        |x_i|^2.
    error : float
        Error bound of one inner product.
    terms : int
        The largest number of terms of a sum, for its rounding.
    """

    scores: Callable[[np.ndarray], np.ndarray]
    squares: np.ndarray
    error: float
    terms: int


@dataclass(frozen=True, eq=False)
class LeftOut:
    """Rows whose label by the classifier trained without them is proved.

    Attributes
    ----------
    right, wrong : ndarray of bool of shape (n,)
        Whether that label is proved to be correct, or proved to be incorrect; both False where neither is proved.
    """

    right: np.ndarray
    wrong: np.ndarray


@dataclass(frozen=True, eq=False)
class _Pool:
    """Rows over which theta is distributed, in these shares, for all rows i of one class.

    Attributes
    ----------
    sign : float
        sigma: +1 where dual variables of the pool rise, -1 where they fall, 0 for no pool.
    shares : ndarray of shape (n,)
        Of sum one. Row i cannot be in its own pool: `left_out` removes share i and divides by 1 minus it.
    sums : ndarray of shape (n,)
        <x', x_i> of every row.
    least, most : float
        Bounds of theta.
    """

    sign: float
    shares: np.ndarray
    sums: np.ndarray
    least: float
    most: float


@np.errstate(divide="ignore", invalid="ignore", over="ignore")
def left_out(
    problem: Problem,
    y: np.ndarray,
    weights: np.ndarray,
    alpha: np.ndarray,
    margins: np.ndarray,
    upper: float,
    rows: InnerProducts,
) -> LeftOut:
    """Find the rows that the classifier trained without them certainly labels correctly, or certainly incorrectly.

    Parameters
    ----------
    problem : Problem
        With p = 2; for a hard margin, dual variables and margins are those of the w whose smallest margin is one.
    y : ndarray of shape (n,), entries -1.0 and 1.0
    weights : ndarray of shape (n,)
        Sample weights.
    alpha : ndarray of shape (n,)
        Feasible dual variables. The dual value D is that of alpha itself, computed here.
    margins : ndarray of shape (n,)
        y_i (w.x_i + b) of the primal point, rounded upwards.
    upper : float
        An upper bound of the objective of the primal point; for a hard margin half of the squared norm of w.
    rows : InnerProducts

    Returns
    -------
    LeftOut
    """
    used, signed = weights > 0.0, alpha * y
    v, pools = _pools(problem, y, weights, alpha, rows)
    cost = problem.gains_lost(used.astype(float), weights)  # 1 / (4 C s_i)
    # the terms of row i in the dual and in the primal objective, which P_i does not have
    gains = problem.gains(alpha, np.where(used, weights, 1.0))
    losses = np.zeros(y.size) if problem.hard else problem.losses(margins, weights)
    right, wrong = np.zeros(y.size, bool), np.zeros(y.size, bool)
    sizes, total = np.sqrt(np.maximum(rows.squares, 0.0)), float(alpha.sum())
    # rounding is `relative` to `length`, the sum of the lengths of the terms of v; errors of inner products add
    # `v_error` to each v.x_i; balancing alpha changes v by at most `v_change` in length
    relative, v_error, length = 8.0 * (rows.terms + 16.0) * EPS, rows.error * total, float(alpha @ sizes)
    uneven = abs(fsum(signed.tolist())) if problem.free else 0.0
    v_change = uneven * float(sizes[used].max(initial=0.0))
    dual = float(gains.sum() - 0.5 * (signed @ v)) - relative * (length * length + total) - v_error * total
    gap = upper - dual + uneven + v_change * (length + v_change)
    # the change of the dual value is theta slope - theta^2 curvature / 2 - gain_i, a parabola in theta
    for members, pool in pools:
        some = members & used
        # own: the share of row i in its own pool; without it x', A and B change, and x_i - x' is divided by 1 - own
        a, own = alpha[some], pool.shares[some] if pool.sign > 0.0 else np.zeros(np.count_nonzero(some))
        rest = 1.0 - own
        mean, pool_square = float(signed @ pool.sums), float(pool.shares @ pool.sums)  # v.x' and |x'|^2
        slope = y[some] * (v[some] - mean) / rest
        square = (rows.squares[some] - 2.0 * pool.sums[some] + pool_square) / rest**2
        A = (float(pool.shares @ (alpha * cost)) - own * a * cost[some]) / rest
        B = (float(pool.shares * pool.shares @ cost) - own**2 * cost[some]) / rest**2
        slope = slope + pool.sign * (1.0 - 2.0 * A)
        curvature = np.maximum(square, 0.0) + 2.0 * B
        # the vertex of the parabola; it is clipped below to the theta that the pool and the sign of lambda allow
        best = np.where(curvature > 0.0, slope / curvature, np.sign(slope) * np.inf)
        least, most = (limit * rest * (1.0 - 8.0 * EPS) for limit in (pool.least, pool.most))
        longest = sizes[some] + np.sqrt(max(pool_square, 0.0))
        for decided, low, high in ((right, a, most), (wrong, least, np.minimum(a, most))):
            theta = np.clip(best, low, high)
            # theta^2 alone may underflow where the curvature is large
            change = losses[some] - gains[some] + theta * slope - 0.5 * theta * (theta * curvature)
            multiple = np.abs(theta) / rest  # of x_i - x', with the x' that has row i in its pool
            # `size` sums the absolute values of all terms, `rounding` bounds the rounding of the change
            size = losses[some] + a + np.abs(theta) * (1.0 + 2.0 * np.abs(A) / rest)
            size += multiple * length * longest + (multiple * longest) ** 2 + theta * (theta * np.abs(B))
            rounding = relative * size + 2.0 * multiple * (v_error + multiple * rows.error)
            rounding += v_change * multiple * longest
            decided[some] |= (low <= high) & np.isfinite(change) & (change - rounding > gap)
    return LeftOut(right, wrong)


def _pools(
    problem: Problem, y: np.ndarray, weights: np.ndarray, alpha: np.ndarray, rows: InnerProducts
) -> tuple[np.ndarray, list[tuple[np.ndarray, _Pool]]]:
    """Return v.x_i of every row, of shape (n,), and pairs of a mask of rows i and the pool of these rows.

    For each class there are three pools. Two have the rows whose dual variables are off their bounds, of the same class
    and of the other class, in proportion to the distance min(alpha_j, C s_j - alpha_j) to the bounds. The third has all
    rows of the other class, in proportion to alpha_j. Without a free intercept no pool is needed, as alpha need not
    balance.
    """
    if not problem.free:
        zeros = np.zeros(y.size)
        pool = _Pool(0.0, zeros, zeros, -np.inf, np.inf)
        return rows.scores((alpha * y)[None])[0], [(np.ones(y.size, bool), pool)]
    caps = problem.caps(weights)
    slack = np.minimum(alpha, caps - alpha)  # distance to the nearest bound
    # up to 1e-9 of the cap is the rounding of a solver's dual variables
    slack = np.where((weights > 0.0) & (slack > 1e-9 * np.nan_to_num(caps, posinf=0.0)), slack, 0.0)
    choices = [(side, whole) for side in (1.0, -1.0) for whole in (False, True)]
    amounts = [np.where(y == side, alpha if whole else slack, 0.0) for side, whole in choices]
    used = [k for k, amount in enumerate(amounts) if 0.0 < float(amount.sum()) < np.inf]
    shares = [amounts[k] / amounts[k].sum() for k in used]
    v, *means = rows.scores(np.array([alpha * y, *shares]))
    pools = []
    for k, share, sums in zip(used, shares, means, strict=True):
        (side, whole), most = choices[k], float(amounts[k].sum())
        pools.append((y == -side, _Pool(-1.0, share, sums, 0.0 if whole else -most, most)))
        if not whole:
            pools.append((y == side, _Pool(1.0, share, sums, -most, most)))
    return v, pools
