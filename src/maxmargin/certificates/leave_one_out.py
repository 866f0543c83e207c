"""How the classifier learnt without a row labels that row: certain answers, without learning it.

Let P_i be the problem without row i, and (w, b) any point, so that min P_i <= P_i(w, b) = P(w, b) - C s_i loss_i. If

    min { P_i(w', b') : y_i (w'.x_i + b') <= 0 }  >  P_i(w, b),

every optimum of P_i labels row i rightly. By weak duality the left side is at least the dual value with a multiplier
lambda >= 0 for the new constraint, that is of dual weights with alpha_i = -lambda, which earn nothing. These must
balance if the intercept is free. Take theta = alpha_i + lambda away from row i and put it on a pool of rows, in
proportions rho with mean x' = sum rho_j x_j: on rows of its class (their weights rise), or off rows of the other
(theirs fall). Then v becomes v - theta y_i (x_i - x'), and the dual value changes by

    - gain(alpha_i) +- theta - (2 sigma theta A + theta^2 B) + theta y_i v.(x_i - x') - theta^2 |x_i - x'|^2 / 2,

A = sum rho_j alpha_j / (4 C s_j), B = sum rho_j^2 / (4 C s_j) with the squared hinge, else 0; sigma = +1 where weights
rise. With C s_i loss_i added this must exceed the gap G = P - D for some theta >= alpha_i that the caps of the pool
allow: then row i is *right* for certain. With the constraint turned round (theta <= alpha_i) it is *wrong* for certain.
Nothing is assumed of (w, b) and alpha but their bounds: the smaller the gap, the more rows are told.

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

_EPS = float(np.finfo(float).eps)
_FULL = 1e-9  # share of a cap by which a dual weight may differ from it, or from 0, and be in no pool


@dataclass(frozen=True, eq=False)
class InnerProducts:
    """The rows as inner products know them, the constant coordinate of an augmented intercept included.

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
    """What is certain of each row, were it left out: both False where nothing is.

    Attributes
    ----------
    right, wrong : ndarray of bool of shape (n,)
    """

    right: np.ndarray
    wrong: np.ndarray


@dataclass(frozen=True, eq=False)
class _Pool:
    """Where the dual weight of a row may go: rows in proportions, how much they take, and what that is worth.

    `own` is the share of each row itself, which cannot be in its own pool; theta lies from `least` to `most`.
    """

    sign: float
    sums: np.ndarray
    square: float
    own: np.ndarray
    least: float
    most: float
    A: float
    B: float


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
    """Which rows are right, and which are wrong, under the classifier that is learnt without them.

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
    used = weights > 0.0
    v, pools = _pools(problem, y, weights, alpha, rows)
    # what the row itself takes from the dual value, and from the primal one
    gains = problem.gains(alpha, np.where(used, weights, 1.0))
    losses = np.zeros(y.size) if problem.hard else problem.losses(margins, weights)
    right, wrong = np.zeros(y.size, bool), np.zeros(y.size, bool)
    sizes, total = np.sqrt(np.maximum(rows.squares, 0.0)), float(alpha.sum())
    # v is off by its terms, however small it is itself; what is left between the classes moves it too
    unsure, off, length = 8.0 * (rows.terms + 16.0) * _EPS, rows.error * total, float(alpha @ sizes)
    uneven, largest = (
        abs(fsum((alpha * y).tolist())) if problem.free else 0.0,
        float(sizes[used].max(initial=0.0)),
    )
    moved = uneven * largest
    dual = float(gains.sum() - 0.5 * (alpha * y @ v)) - unsure * (length * length + total) - off * total
    gap = upper - dual + uneven + moved * (length + moved)
    for here, pool in pools:
        some = here & used
        rest = 1.0 - pool.own[some]
        mean = float(alpha * y @ pool.sums)  # v.x'
        slope = y[some] * (v[some] - mean) / rest
        square = (rows.squares[some] - 2.0 * pool.sums[some] + pool.square) / rest**2
        own_cost = _half_cost(problem, weights[some])
        A = (pool.A - pool.own[some] * alpha[some] * own_cost) / rest
        B = (pool.B - pool.own[some] ** 2 * own_cost) / rest**2
        slope = slope + pool.sign * (1.0 if problem.free else 0.0) - 2.0 * pool.sign * A
        curvature = np.maximum(square, 0.0) + 2.0 * B
        best = np.where(curvature > 0.0, slope / curvature, np.sign(slope) * np.inf)
        least, most = (limit * rest * (1.0 - 8.0 * _EPS) for limit in (pool.least, pool.most))
        longest = sizes[some] + np.sqrt(max(pool.square, 0.0))
        for told, low, high in (
            (right, alpha[some], most),
            (wrong, least, np.minimum(alpha[some], most)),
        ):
            theta = np.clip(best, low, high)
            change = losses[some] - gains[some] + theta * slope - 0.5 * theta * theta * curvature
            far = np.abs(theta) / rest
            size = losses[some] + alpha[some] + np.abs(theta) * (1.0 + 2.0 * np.abs(A) / rest)
            size += far * length * longest + (far * longest) ** 2 + theta * theta * np.abs(B)
            doubt = unsure * size + 2.0 * far * (off + far * rows.error) + moved * far * longest
            told[some] |= (low <= high) & np.isfinite(change) & (change - doubt > gap)
    return LeftOut(right, wrong)


def _half_cost(problem: Problem, weights: np.ndarray) -> np.ndarray:
    """1 / (4 C s_i): what the square of a dual weight costs."""
    return 0.5 * problem.delta2(weights)


def _pools(
    problem: Problem, y: np.ndarray, weights: np.ndarray, alpha: np.ndarray, rows: InnerProducts
) -> tuple[np.ndarray, list[tuple[np.ndarray, _Pool]]]:
    """v.x_i of every row; and for rows a pool: those with room of their class, of the other, or all of the other."""
    if not problem.free:
        nothing = np.zeros(y.size)
        pool = _Pool(0.0, nothing, 0.0, nothing, -np.inf, np.inf, 0.0, 0.0)
        return rows.scores((alpha * y)[None])[0], [(np.ones(y.size, bool), pool)]
    caps, cost = problem.caps(weights), _half_cost(problem, weights)
    room = np.minimum(alpha, caps - alpha)
    room = np.where((weights > 0.0) & (room > _FULL * np.where(np.isfinite(caps), caps, 0.0)), room, 0.0)
    amounts = [(side, whole, np.where(y == side, alpha if whole else room, 0.0))
               for side in (1.0, -1.0) for whole in (False, True)]  # fmt: skip
    amounts = [(side, whole, amount) for side, whole, amount in amounts if 0.0 < float(amount.sum()) < np.inf]
    v, *means = rows.scores(np.array([alpha * y, *(amount / amount.sum() for *_, amount in amounts)]))
    pools = []
    for (side, whole, amount), sums in zip(amounts, means, strict=True):
        most = float(amount.sum())
        rho = amount / most
        for same in (False,) if whole else (True, False):
            pool = _Pool(
                1.0 if same else -1.0, sums, float(rho @ sums), rho if same else np.zeros(y.size),
                0.0 if whole else -most, most, float(rho @ (alpha * cost)), float(rho * rho @ cost),
            )  # fmt: skip
            pools.append((y == (side if same else -side), pool))
    return v, pools
