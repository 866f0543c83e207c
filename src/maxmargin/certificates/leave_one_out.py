"""Certified leave-one-out errors: the label of a row by the classifier trained without it, without training it.

Let P_i be the problem without row i, and (w, b) any point, so that min P_i <= P_i(w, b) = P(w, b) - C s_i loss_i. If

    min { P_i(w', b') : y_i (w'.x_i + b') <= 0 }  >  P_i(w, b),

every optimum of P_i labels row i correctly. By weak duality the left side is at least the dual value with a multiplier
lambda >= 0 for the new constraint, that is, of dual variables with alpha_i = -lambda, which has no gain. They must
balance if the intercept is free. Subtract theta = alpha_i + lambda from the dual variable of row i, and distribute
theta over a pool of rows in proportions rho_j, sum rho_j = 1, with mean x' = sum rho_j x_j: add it to rows of the same
class, or subtract it from rows of the other class. Then v becomes v - theta y_i (x_i - x'), and the dual value changes
by

    - gain(alpha_i) +- theta - (2 sigma theta A + theta^2 B) + theta y_i v.(x_i - x') - theta^2 |x_i - x'|^2 / 2,

A = sum rho_j alpha_j / (4 C s_j), B = sum rho_j^2 / (4 C s_j) with the squared hinge, else 0; sigma = +1 where the dual
variables of the pool rise, -1 where they fall, and the term +- theta is sigma theta. If this change plus C s_i loss_i
exceeds the gap G = P - D for some theta >= alpha_i that the bounds of the pool allow, row i is certainly *right*. With
the constraint reversed, y_i (w'.x_i + b') >= 0 and theta <= alpha_i, it is certainly *wrong*. Nothing is assumed of
(w, b) and alpha but their bounds: the smaller the gap, the more rows are decided.

Here p = 2: lengths are those of inner products, so that the bounds hold for kernels too.

References: T. Jaakkola, D. Haussler, "Probabilistic kernel regression models", 1999, and T. Joachims, "Estimating the
generalization performance of an SVM efficiently", 2000, bound the same error of an exact solution without, or with a
fixed, intercept; V. Vapnik, O. Chapelle, "Bounds on error expectation for support vector machines", 2000, rebalance.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import fsum

import numpy as np

from ..numerics.sums import EPS
from ..problem.problem import Problem

# Distance from 0 or from the cap, as a fraction of the cap, up to which a dual variable counts as being at its bound,
# so that it is in no pool of rows off their bounds. It is above the rounding of a solver's dual variables. A larger
# value would exclude rows from the pools, a smaller one would include rows that can take no part of theta.
MIN_SLACK = 1e-9


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
    """Rows over which theta is distributed, in proportions rho, for all rows i of one class.

    Attributes
    ----------
    sign : float
        sigma: +1 where dual variables of the pool rise, -1 where they fall, 0 for no pool.
    rho : ndarray of shape (n,)
        Proportions, of sum one. Row i cannot be in its own pool: `left_out` removes rho_i and divides by 1 - rho_i.
    sums : ndarray of shape (n,)
        <x', x_i> of every row.
    least, most : float
        Bounds of theta.
    """

    sign: float
    rho: np.ndarray
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
        # own = rho_i of row i in its own pool; without it x', A and B change, and x_i - x' is divided by 1 - rho_i
        a, own = alpha[some], pool.rho[some] if pool.sign > 0.0 else np.zeros(np.count_nonzero(some))
        rest = 1.0 - own
        mean, pool_square = float(signed @ pool.sums), float(pool.rho @ pool.sums)  # v.x' and |x'|^2
        slope = y[some] * (v[some] - mean) / rest
        square = (rows.squares[some] - 2.0 * pool.sums[some] + pool_square) / rest**2
        A = (float(pool.rho @ (alpha * cost)) - own * a * cost[some]) / rest
        B = (float(pool.rho * pool.rho @ cost) - own**2 * cost[some]) / rest**2
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
    slack = np.where((weights > 0.0) & (slack > MIN_SLACK * np.nan_to_num(caps, posinf=0.0)), slack, 0.0)
    choices = [(side, whole) for side in (1.0, -1.0) for whole in (False, True)]
    amounts = [np.where(y == side, alpha if whole else slack, 0.0) for side, whole in choices]
    used = [k for k, amount in enumerate(amounts) if 0.0 < float(amount.sum()) < np.inf]
    rhos = [amounts[k] / amounts[k].sum() for k in used]
    v, *means = rows.scores(np.array([alpha * y, *rhos]))
    pools = []
    for k, rho, sums in zip(used, rhos, means, strict=True):
        (side, whole), most = choices[k], float(amounts[k].sum())
        pools.append((y == -side, _Pool(-1.0, rho, sums, 0.0 if whole else -most, most)))
        if not whole:
            pools.append((y == side, _Pool(1.0, rho, sums, -most, most)))
    return v, pools
