"""Real dual variables near the stored ones whose huge columns cancel exactly.

The lower bound of a soft problem, sum alpha - 1/2 |v|^2 with v = sum alpha_i y_i x_i, needs v_j to be small in
every column. Where entries are huge, float64 dual variables cannot do that: the rounding of alpha alone moves v_j
by far too much. Real dual variables can, and the bound asks only that they exist.

Theorem. Let A have a line y_i x_ij for each huge column j (and a line y_i where the intercept is free), and an
entry in it for each row i whose dual weight has room: it may move by r_i up and down. Let t = A alpha over *all*
rows. For any matrix M with |I - A M|_inf <= eta < 1 there is a real c with A c = t and

    |c| <= |M| (|t| + eta / (1 - eta) |t|_inf).

(c = M (I - E)^-1 t with E = I - A M.) If this is at most r, then alpha - c is feasible and balanced, its v_j are
zero in the huge columns, and its dual value bounds the optimum. It need not be computed.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import scipy.linalg
import scipy.sparse as sp

from ..numerics.sums import Compensated, Plain, _two_product
from ..problem.problem import Problem
from .bounds import EPS, ordinary_limit

if TYPE_CHECKING:
    from .sample import Sample

_linalg: Any = scipy.linalg  # its annotations speak of every case at once
# Share of a huge column's least size from which other columns cancel with the huge ones: to require it costs little,
# and what they leave would be subtracted from the bound.
NEARLY = 1e-2
# Share of the largest movement that is allowed, below which a row is kept at its dual variable: its column of the
# inverse would be rounding.
ROOM = 1e-8
# Work, rows x lines^2, beyond which no proof is tried: some seconds.
MAX_WORK = 4e9
# Share of its cap, or of the largest dual variable, to which each one is moved away from its bounds where some have no
# room: more would change the dual value, less would leave the movements no room.
INSIDE = 1e-7
# Relative size below which what is left of a line, without the combination of others, may be rounding; factors of exact
# combinations are multiples of SIMPLE (small whole numbers, halves and the like).
NEAR, SIMPLE = 1e-10, 2.0**-20
# Share of the cost of the movements by which an inverse that is computed elsewhere, as by `verify`, may change it.
AGAIN = 0.01
UNDERFLOW = 1e-290  # covers products, in units of the largest factors, that have lost their last digits


class ExactBound(NamedTuple):
    """A lower bound, and by how much it may differ when computed again elsewhere."""

    lower: float
    below: float


NO_BOUND = ExactBound(-np.inf, 0.0)


def huge_columns(problem: Problem, sample: Sample, alpha: np.ndarray) -> np.ndarray | None:
    """Return which columns no float64 dual variables near alpha make cancel; None for ordinary data.

    With an augmented intercept the last entry stands for the constant coordinate.
    """
    total = float(alpha.sum())
    limit = ordinary_limit(total)
    if (
        problem.hard
        or not problem.euclidean
        or max(float(alpha @ sample.norms), problem.rho * total) <= limit
    ):
        return None
    size = Plain.combine(abs(sample.X), alpha)
    if problem.rho:
        size = np.append(size, problem.rho * total)
    return size > NEARLY * limit if size.max() > limit else None


def exact_bound(problem: Problem, sample: Sample, alpha: np.ndarray, huge: np.ndarray) -> ExactBound:
    """Return a lower bound: the dual value of dual variables that exist near alpha and cancel in the huge columns."""
    used = np.flatnonzero(alpha)
    if used.size * np.count_nonzero(huge) ** 2 > MAX_WORK:
        return NO_BOUND
    X, y, weights, alpha = sample.X[used], sample.y[used], sample.weights[used], alpha[used]
    caps = problem.caps(weights)
    room = np.minimum(alpha, caps * (1.0 - 4.0 * EPS) - alpha)
    moved = _movement(_independent(_lines(problem, X, y, huge)), alpha, room)
    if moved is None:
        return NO_BOUND
    # v on the other columns, the sizes of its terms, and how far the movements take it
    rest = X[:, np.flatnonzero(~huge[: X.shape[1]])]
    v, size, wander = (
        Compensated.combine(rest, alpha * y),
        Plain.combine(abs(rest), alpha),
        Plain.combine(abs(rest), moved),
    )
    if problem.rho and not huge[-1]:
        v = np.append(v, problem.rho * Compensated.total(alpha * y))
        size, wander = (
            np.append(size, problem.rho * alpha.sum()),
            np.append(wander, problem.rho * moved.sum()),
        )
    terms = alpha.size + v.size + 8
    up = 1.0 + 8.0 * terms * EPS  # more than all roundings of a sum of non-negative terms
    off = Compensated.error(v, float(size.sum()), terms)
    before, after = Plain.square(v), Plain.square(np.abs(v) + off + wander * up) * up
    gains = problem.gains(alpha, weights)
    cost = float(moved.sum()) + 0.5 * max(after - before, 0.0)
    if problem.loss == "squared_hinge":
        cost += float((moved * ((2.0 * alpha + moved) / (4.0 * problem.C * weights))).sum())
    value = Compensated.total(gains) - 0.5 * before
    whole = float(np.abs(gains).sum() + alpha.sum()) + before + after
    # C s_i is rounded, and `verify` allows a little more: all dual variables a little smaller respect it
    over = max(float(np.max(alpha / caps)) - 1.0, 0.0)
    rounding = Compensated.error(value, whole, terms) + (8.0 * EPS + over) * whole
    return ExactBound(float(value - cost * up - rounding), rounding + AGAIN * cost)


def _lines(problem: Problem, X: Any, y: np.ndarray, huge: np.ndarray) -> np.ndarray:
    """Return what must cancel, a line each, divided by powers of two: entries up to about one.

    A line that is a multiple of another by a power of two cancels with it; of a line with one value but zero, only
    where it is not zero counts.
    """
    d = X.shape[1]
    block = X[:, np.flatnonzero(huge[:d])]
    block = np.asarray(block.toarray() if sp.issparse(block) else block, dtype=float)
    constant = problem.free or bool(problem.rho and huge[-1])
    lines = {np.ones(y.size).tobytes(): np.ones(y.size)} if constant else {}
    for column in block.T:
        first = column[np.flatnonzero(column)[0]]
        if np.isin(column, (0.0, first)).all():
            line = (column != 0.0).astype(float)
        else:
            line = np.ldexp(column, -int(np.frexp(np.abs(column).max())[1])) * np.sign(first)
        line = line + 0.0  # no negative zero
        lines.setdefault(line.tobytes(), line)
    return np.array(list(lines.values())) * y


def _independent(lines: np.ndarray) -> np.ndarray:
    """Return the lines without those that are exact combinations of others, and cancel with them."""
    R, order = _linalg.qr(lines.T, mode="r", pivoting=True, check_finite=False)
    size = np.abs(np.diag(R))
    rank = np.count_nonzero(size > NEAR * size[0])
    basis, others = order[:rank], order[rank:]
    if not others.size:
        return lines
    factors = _linalg.lstsq(lines[basis].T, lines[others].T, check_finite=False)[0]
    factors = np.append(np.round(factors / SIMPLE) * SIMPLE, np.full((1, others.size), -1.0), axis=0)
    kept = list(basis)
    for k, factor in zip(others, factors.T, strict=True):
        if any(_exact_sum(part, factor) != 0.0 for part in lines[[*basis, k]].T):
            kept.append(k)
    return lines[kept]


def _movement(lines: np.ndarray, alpha: np.ndarray, room: np.ndarray) -> np.ndarray | None:
    """Bound how far each dual variable has to move for all lines to cancel exactly; None where that is not proved."""
    unit = 2.0 ** np.floor(np.log2(float(alpha.max())))
    alpha, room = alpha / unit, room / unit
    t = np.abs([_exact_sum(line, alpha) for line in lines]) * (1.0 + 4.0 * EPS)
    moved = np.zeros(alpha.size)
    if not t.any():
        return moved
    t = t + alpha.size * UNDERFLOW
    free = np.flatnonzero(room > ROOM * max(float(room.max()), 0.0))
    m = len(lines)
    if free.size < m or free.size * m * m > MAX_WORK:
        return None
    A, r = lines[:, free], room[free]
    try:
        M = _right_inverse(A, r)
    except np.linalg.LinAlgError:
        return None
    up = 1.0 + 8.0 * (free.size + m) * EPS
    rounding = (free.size + 8) * EPS * ((np.abs(A) + UNDERFLOW) @ np.abs(M) + np.eye(m))
    eta = float((np.abs(np.eye(m) - A @ M) + rounding).sum(axis=1).max()) * up
    if not eta < 0.5:
        return None
    c = np.abs(M) @ (t + eta / (1.0 - eta) * t.max()) * up
    if not (c <= r).all():
        return None
    moved[free] = c
    return moved * unit


def _right_inverse(A: np.ndarray, r: np.ndarray) -> np.ndarray:
    """Return the right inverse of A that moves rows in proportion to their room r."""
    Q, R = _linalg.qr((A * r).T, mode="economic", check_finite=False)
    return r[:, None] * _linalg.solve_triangular(R, Q.T, check_finite=False).T


def inside(problem: Problem, sample: Sample, alpha: np.ndarray, huge: np.ndarray) -> np.ndarray:
    """Return dual variables near alpha, away from their bounds, that cancel as well as float64 can."""
    used = np.flatnonzero(sample.weights)
    if used.size * np.count_nonzero(huge) ** 2 > MAX_WORK:
        return alpha
    caps, near = problem.caps(sample.weights)[used], alpha[used]
    least = INSIDE * np.minimum(caps, float(near.max()))
    near = np.clip(near, least, caps - least)
    lines = _independent(_lines(problem, sample.X[used], sample.y[used], huge))
    for _ in range(3):
        try:
            M = _right_inverse(lines, np.minimum(near, caps - near))
        except (np.linalg.LinAlgError, ValueError):
            return alpha
        near = np.clip(near - M @ (lines @ near), 0.01 * least, caps - 0.01 * least)
    near = np.where(np.isfinite(near), near, alpha[used])
    alpha = alpha.copy()
    alpha[used] = near
    return alpha


def _exact_sum(a: np.ndarray, b: np.ndarray) -> float:
    """Return the sum of a_k b_k, rounded once; zero only if it is zero (or all that is left has underflowed)."""
    product, error = _two_product(a, b)
    return math.fsum(np.concatenate([product, error]).tolist())
