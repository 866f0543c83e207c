"""The exact solution of small problems at p = 2: the optimality conditions, solved to rounding on the active set.

The dual problem on signed rows a_i = y_i b_i without the constant column of a free intercept is ::

    minimise 1/2 a'A A'a - q'a   subject to   E a = e,  0 <= a <= c

with q = 1 for the hinge; with a free intercept E = y', e = 0. For the hard margin q = 0, c = inf, and the dual
variables add up to 1, with a free intercept to 1/2 in each class: A'a is the point nearest to 0 of the convex hull of
the rows, or half of the difference of the nearest points of the hulls of the classes.

Given which dual variables are free, at zero and at their caps (the set of each row), the optimality conditions are
linear. They are solved by orthogonal factors; every row that violates the conditions of its set moves to another set,
and this is repeated. Under the squared hinge Newton's method solves the same systems, and needs no polish.

References
----------
M. Hintermueller, K. Ito, K. Kunisch, "The primal-dual active set strategy as a semismooth Newton method",
SIAM J. Optim. 13, 2002.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.linalg
from scipy.optimize import lsq_linear

from .linear_systems import TINY, PivotedQR

if TYPE_CHECKING:
    from .rows import CentredRows

ROUNDING = 1e-12  # relative rounding of the score of a row, or of the sums of a linear system

_linalg: Any = scipy.linalg  # typed as Any: its annotations are unions of all cases

AT_ZERO, FREE, AT_CAP = -1, 0, 1  # the set of a row: a = 0, 0 < a < c, a = c


def polished(
    rows: CentredRows,
    y: np.ndarray,
    caps: np.ndarray,
    alpha: np.ndarray,
    z: np.ndarray,
    stop: Callable[[], bool],
) -> tuple[np.ndarray, np.ndarray] | None:
    """Return (z, alpha) that solve the optimality conditions, from the active set of a point near the optimum.

    All arguments are in the units of the rows.

    Parameters
    ----------
    rows : CentredRows
        With a copy of the rows; the loss of its problem is the hinge, or its margin hard.
    y, caps, alpha : ndarray of shape (n,)
        Labels -1.0 and 1.0, C s_i, and dual variables.
    z : ndarray of shape (size,)
        Used for a soft margin.
    stop : callable

    Returns
    -------
    (ndarray of shape (size,), ndarray of shape (n,)) or None
        None where the sets repeat, have too many free rows, or contradict the equations.
    """
    problem, n, d = rows.problem, y.size, rows.size - rows.problem.free
    assert rows.copy is not None
    A = rows.copy[:, :d] * y[:, None]
    if problem.hard:
        E = np.array([y > 0, y < 0] if problem.free else [np.ones(n)], dtype=float)
        e, q, c = np.full(len(E), 1.0 / len(E)), np.zeros(n), np.full(n, np.inf)
        a = alpha / float(alpha.sum())
        w = A.T @ a
        beta = np.array([-float((A @ w) @ (a * row)) / max(float(a @ row), TINY) for row in E])
    else:
        E = y[None, :] if problem.free else np.zeros((0, n))
        e, q, c = np.zeros(len(E)), np.ones(n), caps
        a, w, beta = np.clip(alpha, 0.0, c), z[:d], z[d:]
    found = _active_set_solution(A, E, e, q, c, (a, w, beta), stop)
    if found is None:
        return None
    a, w, beta = found
    return np.append(w, 0.0 if problem.hard else beta)[: rows.size] if problem.free else w, a


def _active_set_solution(
    A: np.ndarray,
    E: np.ndarray,
    e: np.ndarray,
    q: np.ndarray,
    c: np.ndarray,
    start: Any,
    stop: Callable[[], bool],
) -> tuple[np.ndarray, np.ndarray, np.ndarray] | None:
    """Solve on the free rows and move rows between the sets until all conditions hold; return (a, w, beta)."""
    sets, seen, A_abs, beta = _sets(A, E, q, c, *start), set[bytes](), np.abs(A), start[2]
    for _ in range(30):  # 3 to 10 changes of the sets are usual from points near the optimum
        key, free = sets.tobytes(), sets == FREE
        # more free rows than columns are dependent: with far more of them the point was not near the optimum
        if key in seen or np.count_nonzero(free) > A.shape[1] + 200 or stop():
            return None
        seen.add(key)
        a = np.where(sets == AT_CAP, c, 0.0)
        w, beta, unique = _solve(A, E, e, q, free, a, beta)
        if not np.isfinite(a.sum() + w.sum() + beta.sum()):
            return None
        largest = float(np.abs(a).max())
        if np.abs(E @ a - e).max(initial=0.0) > 1e-9 * (1.0 + largest):
            return None  # the free rows cannot meet the equations
        slack = A @ w - q + beta @ E
        # rounding of w, which may be a small difference of large terms: about twice eps times |A|'|a|
        rounding = A_abs @ (ROUNDING * np.abs(w) + 4e-16 * (A_abs.T @ np.abs(a)))
        rounding += ROUNDING * (np.abs(E.T @ beta) + np.abs(q))
        a_rounding = 1e-11 * max(largest, TINY)
        below, above = free & (a < -a_rounding), free & (a > c + a_rounding)
        joins = ((sets == AT_ZERO) & (slack < -rounding)) | ((sets == AT_CAP) & (slack > rounding))
        leaves = below.any() or above.any()
        if not joins.any() and not (leaves and unique):
            if (np.abs(slack[free]) > 1e3 * rounding[free]).any():
                return None  # more rows are free than can be tight at once
            # dependent free rows have several vectors a with the same w: one of these may be feasible
            redistributed = _redistributed(A, E, c, a, sets) if leaves else np.clip(a, 0.0, c)
            if redistributed is not None:
                return redistributed, w, beta
        sets = np.where(below, AT_ZERO, np.where(above, AT_CAP, np.where(joins, FREE, sets)))
    return None


def _sets(A: Any, E: Any, q: Any, c: Any, a: np.ndarray, w: np.ndarray, beta: np.ndarray) -> np.ndarray:
    """Return the set of each row at a point: a bound whose distance is at most its multiplier, else FREE.

    By complementarity the distance of a_i from a bound, or the multiplier of that bound, is small. Distances are
    relative to the cap, or to the largest dual variable if that is smaller; multipliers (slacks) are relative to the
    margin of a support vector, which is 1, or |w|^2 for a hard margin.
    """
    unit, margin = np.minimum(c, max(float(a.max()), TINY)), 1.0 if q.any() else max(float(w @ w), TINY)
    slack = (A @ w - q + beta @ E) / margin
    free = (a / unit > slack) & ((c - a) / unit > -slack)
    if not q.any() and not 0 < np.count_nonzero(free) <= A.shape[1] + 2:
        free = a > 1e-6 * a.max()  # the margin is so small that slacks are rounding
    return np.where(free, FREE, np.where((slack < 0.0) & (c < np.inf), AT_CAP, AT_ZERO))


def _solve(
    A: np.ndarray,
    E: np.ndarray,
    e: np.ndarray,
    q: np.ndarray,
    free: np.ndarray,
    a: np.ndarray,
    beta: np.ndarray,
) -> tuple[np.ndarray, np.ndarray, bool]:
    """Solve the optimality conditions of one active set: slacks of free rows are 0, and E a = e.

    Parameters as in the module's docstring; `a` holds the dual variables of the other rows, the solution is written to
    it. With B the rows of A that are free, N an orthonormal basis of the null space of E, and the shortest x_0 with
    E x_0 = e, 1/2 |B'x|^2 - r'x is minimised over x = x_0 + N t by factors of B'N, which keep all digits.

    Returns
    -------
    w, beta : ndarray
        A'a, with more digits than the product has; the multipliers, those given where no row is free.
    unique : bool
        Whether the conditions determine the dual variables.
    """
    fixed = A.T @ a  # the part of w by the rows that are not free
    if not free.any():
        return fixed, beta, True
    rows, E, r = A[free], E[:, free], e - E @ a
    size = np.sqrt(np.maximum((rows * rows).sum(axis=1) + (E * E).sum(axis=0), TINY))
    B, E = rows.T / size, E / size  # with columns (B, E) of length one
    inverse = np.linalg.pinv(E)
    N = _linalg.null_space(E) if len(E) else np.eye(E.shape[1])
    factors = PivotedQR(B @ N)

    def solve(right: np.ndarray, e: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        x = inverse @ e
        w = B @ x
        t = factors.solve_transposed(right @ N) - factors.Q.T @ w
        x, w = x + N @ factors.solve(t), w + factors.Q @ t
        return x, w, inverse.T @ (right - B.T @ w)

    x, w, beta = solve((q[free] - rows @ fixed) / size, r)
    a[free], w = x / size, fixed + w
    # iterative refinement: the rounding of w is that of the largest terms of its sum
    _, dw, dbeta = solve((q[free] - rows @ w) / size - beta @ E, np.zeros(len(e)))
    return w + dw, beta + dbeta, factors.rank == N.shape[1]


def _redistributed(A: Any, E: Any, c: np.ndarray, a: np.ndarray, sets: np.ndarray) -> np.ndarray | None:
    """Return dual variables within their bounds with the same A'a and E a; None where there are none.

    Only those of free rows change: they solve a linear least-squares problem with bounds.
    """
    free = sets == FREE
    rows = np.vstack([A[free].T, E[:, free]])
    target = rows @ a[free]
    # where there is no cap, a bound far above all dual variables
    upper = np.where(np.isfinite(c[free]), c[free], 1e3 * max(float(np.abs(a).max()), 1.0))
    found = lsq_linear(rows, target, bounds=(0.0, upper), method="bvls", tol=1e-15)
    if not np.abs(rows @ found.x - target).max() <= ROUNDING * (1.0 + np.abs(target).max()):
        return None
    out = np.where(sets == AT_CAP, c, 0.0)
    out[free] = found.x
    return out
