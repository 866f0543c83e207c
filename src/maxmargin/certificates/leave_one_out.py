"""How the classifier learnt without a row labels that row: certain answers, without learning it.

Let P_i be the problem without row i, and (w, b) any point, so that min P_i <= P_i(w, b) = P(w, b) - C s_i loss_i. If

    min { P_i(w', b') : y_i (w'.x_i + b') <= 0 }  >  P_i(w, b),

every optimum of P_i labels row i rightly. By weak duality the left side is at least the dual value with a multiplier
lambda >= 0 for the new constraint, that is of dual weights with alpha_i = -lambda, which have no gain. These must
balance if the intercept is free. Take theta = alpha_i + lambda away from row i and put it on a pool of rows, in
proportions rho with mean x' = sum rho_j x_j: on rows of its class (their weights rise), or off rows of the other
(theirs fall). Then v becomes v - theta y_i (x_i - x'), and the dual value changes by

    - gain(alpha_i) +- theta - (2 sigma theta A + theta^2 B) + theta y_i v.(x_i - x') - theta^2 |x_i - x'|^2 / 2,

A = sum rho_j alpha_j / (4 C s_j), B = sum rho_j^2 / (4 C s_j) with the squared hinge, else 0; sigma = +1 where weights
rise. With C s_i loss_i added this must exceed the gap G = P - D for some theta >= alpha_i that the caps of the pool
allow: then row i is *right* for certain. With the constraint turned round (theta <= alpha_i) it is *wrong* for certain.
Nothing is assumed of (w, b) and alpha but their bounds: the smaller the gap, the more rows are decided.

Here p = 2: lengths are those of inner products, so that kernels are served too.

References: T. Jaakkola, D. Haussler, "Probabilistic kernel regression models", 1999, and T. Joachims, "Estimating the
generalization performance of an SVM efficiently", 2000, bound the same error of an exact solution without, or with a
fixed, intercept; V. Vapnik, O. Chapelle, "Bounds on error expectation for support vector machines", 2000, rebalance.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import fsum

import numpy as np

from ..problem.problem import Problem
from .bounds import EPS

# Share of a cap up to which a dual variable counts as being at it, or at 0, so that it is in no pool: rounding of a
# solver's dual variables is smaller, and room of that size adds nothing.
FULL = 1e-9


@dataclass(frozen=True, eq=False)
class InnerProducts:
    """Inner products of the rows, the constant coordinate of an augmented intercept included.

    Attributes
    ----------
    scores : callable
        sum_j c_kj <x_j, x_i> of every row i, for all k at once: of shape (m, n), as c is.
    squares : ndarray of shape (n,)
        |x_i|^2.
    error : float
        By how much one inner product may be off.
    terms : int
        How many terms a sum may have, for its rounding.
    """

    scores: Callable[[np.ndarray], np.ndarray]
    squares: np.ndarray
    error: float
    terms: int


@dataclass(frozen=True, eq=False)
class LeftOut:
    """Rows whose label is certain under the classifier learnt without them: both False where it is not.

    Attributes
    ----------
    right, wrong : ndarray of bool of shape (n,)
    """

    right: np.ndarray
    wrong: np.ndarray


@dataclass(frozen=True, eq=False)
class _Pool:
    """Rows that take the dual variable of row i, in proportions rho, for all rows i of one class at once.

    Attributes
    ----------
    sign : float
        sigma: +1 where dual variables of the pool rise, -1 where they fall, 0 for no pool.
    rho : ndarray of shape (n,)
        Proportions, of sum one; a row itself cannot be in its own pool, and takes its share back (`without`).
    sums : ndarray of shape (n,)
        <x', x_i> of every row.
    least, most : float
        Between what theta lies.
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
    """Find rows that the classifier that is learnt without them labels rightly, or wrongly, for certain.

    Parameters
    ----------
    problem : Problem
        With p = 2; of a hard margin, dual weights and margins are those of the w whose least margin is one.
    y : ndarray of shape (n,), entries -1.0 and 1.0
    weights : ndarray of shape (n,)
        Sample weights.
    alpha : ndarray of shape (n,)
        Feasible dual weights. Their own dual value counts, not that of others nearby.
    margins : ndarray of shape (n,)
        Of the primal point, rounded upwards: y_i (w.x_i + b).
    upper : float
        The objective of the primal point, at most; of a hard margin half of the squared norm of w.
    rows : InnerProducts
    """
    used, signed = weights > 0.0, alpha * y
    v, pools = _pools(problem, y, weights, alpha, rows)
    cost = 0.5 * problem.delta2(weights)  # 1 / (4 C s_i)
    # what the row itself takes from the dual value, and from the primal one
    gains = problem.gains(alpha, np.where(used, weights, 1.0))
    losses = np.zeros(y.size) if problem.hard else problem.losses(margins, weights)
    right, wrong = np.zeros(y.size, bool), np.zeros(y.size, bool)
    sizes, total = np.sqrt(np.maximum(rows.squares, 0.0)), float(alpha.sum())
    # v is off by its terms, however small it is itself; what is left between the classes moves it too
    unsure, off, length = 8.0 * (rows.terms + 16.0) * EPS, rows.error * total, float(alpha @ sizes)
    uneven = abs(fsum(signed.tolist())) if problem.free else 0.0
    moved = uneven * float(sizes[used].max(initial=0.0))
    dual = float(gains.sum() - 0.5 * (signed @ v)) - unsure * (length * length + total) - off * total
    gap = upper - dual + uneven + moved * (length + moved)
    for here, pool in pools:
        some = here & used
        a, own = alpha[some], pool.rho[some] if pool.sign > 0.0 else np.zeros(np.count_nonzero(some))
        rest = 1.0 - own  # of the pool, without the row itself
        mean, pool_square = float(signed @ pool.sums), float(pool.rho @ pool.sums)  # v.x' and |x'|^2
        slope = y[some] * (v[some] - mean) / rest
        square = (rows.squares[some] - 2.0 * pool.sums[some] + pool_square) / rest**2
        A = (float(pool.rho @ (alpha * cost)) - own * a * cost[some]) / rest
        B = (float(pool.rho * pool.rho @ cost) - own**2 * cost[some]) / rest**2
        slope = slope + pool.sign * (1.0 - 2.0 * A)
        curvature = np.maximum(square, 0.0) + 2.0 * B
        best = np.where(curvature > 0.0, slope / curvature, np.sign(slope) * np.inf)
        least, most = (limit * rest * (1.0 - 8.0 * EPS) for limit in (pool.least, pool.most))
        longest = sizes[some] + np.sqrt(max(pool_square, 0.0))
        for decided, low, high in ((right, a, most), (wrong, least, np.minimum(a, most))):
            theta = np.clip(best, low, high)
            change = losses[some] - gains[some] + theta * slope - 0.5 * theta * theta * curvature
            far = np.abs(theta) / rest
            size = losses[some] + a + np.abs(theta) * (1.0 + 2.0 * np.abs(A) / rest)
            size += far * length * longest + (far * longest) ** 2 + theta * theta * np.abs(B)
            doubt = unsure * size + 2.0 * far * (off + far * rows.error) + moved * far * longest
            decided[some] |= (low <= high) & np.isfinite(change) & (change - doubt > gap)
    return LeftOut(right, wrong)


def _pools(
    problem: Problem, y: np.ndarray, weights: np.ndarray, alpha: np.ndarray, rows: InnerProducts
) -> tuple[np.ndarray, list[tuple[np.ndarray, _Pool]]]:
    """Return v.x_i of every row, and pools with the rows that each serves.

    Pools are the rows with room of the same class, those of the other class, and all of the other class.
    """
    if not problem.free:
        zeros = np.zeros(y.size)
        pool = _Pool(0.0, zeros, zeros, -np.inf, np.inf)
        return rows.scores((alpha * y)[None])[0], [(np.ones(y.size, bool), pool)]
    caps = problem.caps(weights)
    room = np.minimum(alpha, caps - alpha)
    room = np.where((weights > 0.0) & (room > FULL * np.where(np.isfinite(caps), caps, 0.0)), room, 0.0)
    choices = [(side, whole) for side in (1.0, -1.0) for whole in (False, True)]
    amounts = [np.where(y == side, alpha if whole else room, 0.0) for side, whole in choices]
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
