"""The exact solution of small hard margins at p = 2: the optimality conditions, solved to rounding on the support.

The dual problem on signed rows a_i = y_i b_i without the constant column of a free intercept is ::

    minimise 1/2 a'A A'a   subject to   E a = e,  a >= 0

where the dual variables add up to 1, with a free intercept to 1/2 in each class: A'a is the point nearest to 0 of the
convex hull of the rows, or half of the difference of the nearest points of the hulls of the classes.

Given which dual variables are free, and which are zero, the optimality conditions are linear. They are solved by
orthogonal factors; every row that violates its conditions moves to the other set, and this is repeated. Soft margins
need no polish: the last steps of Newton's method solve the same systems.

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


def polished(
    rows: CentredRows, y: np.ndarray, alpha: np.ndarray, stop: Callable[[], bool]
) -> tuple[np.ndarray, np.ndarray] | None:
    """Return (z, alpha) that solve the optimality conditions, from the support of a point near the optimum.

    Parameters
    ----------
    rows : CentredRows
        Of a problem with a hard margin; with a copy of the rows.
    y : ndarray of shape (n,), entries -1.0 and 1.0
    alpha : ndarray of shape (n,)
        Dual variables, not all 0.
    stop : callable

    Returns
    -------
    (ndarray of shape (size,), ndarray of shape (n,)) or None
        In the units of the rows. None where the sets of rows repeat, have too many free rows, or contradict the
        equations.
    """
    assert rows.copy is not None
    free_intercept, d = rows.problem.free, rows.size - rows.problem.free
    A = rows.copy[:, :d] * y[:, None]
    E = np.array([y > 0, y < 0] if free_intercept else [np.ones(y.size)], dtype=float)
    e, A_abs, seen = np.full(len(E), 1.0 / len(E)), np.abs(A), set[bytes]()
    free = _free_rows(A, E, alpha / float(alpha.sum()))
    for _ in range(30):  # 3 to 10 changes of the sets are usual from points near the optimum
        # more free rows than columns are dependent: with far more of them the point was not near the optimum
        if free.tobytes() in seen or not 0 < np.count_nonzero(free) <= d + 200 or stop():
            return None
        seen.add(free.tobytes())
        a = np.zeros(y.size)
        a[free], w, beta, unique = _solve(A[free], E[:, free], e)
        if not np.isfinite(a.sum() + w.sum() + beta.sum()):
            return None
        largest = float(np.abs(a).max())
        if np.abs(E @ a - e).max() > 1e-9 * (1.0 + largest):
            return None  # the free rows cannot meet the equations
        slack = A @ w + beta @ E
        # rounding of w, which may be a small difference of large terms: about twice eps times |A|'|a|
        rounding = A_abs @ (ROUNDING * np.abs(w) + 4e-16 * (A_abs.T @ np.abs(a)))
        rounding += ROUNDING * np.abs(E.T @ beta)
        leaves, joins = free & (a < -1e-11 * max(largest, TINY)), ~free & (slack < -rounding)
        if not joins.any() and not (leaves.any() and unique):
            if (np.abs(slack[free]) > 1e3 * rounding[free]).any():
                return None  # more rows are free than can be tight at once
            # dependent free rows have several vectors a with the same w: one of these may be feasible
            within = (
                _redistributed(A[free], E[:, free], a[free]) if leaves.any() else np.maximum(a[free], 0.0)
            )
            if within is not None:
                a[free] = within
                return np.append(w, 0.0)[: rows.size], a
        free = (free & ~leaves) | joins
    return None


def _free_rows(A: np.ndarray, E: np.ndarray, a: np.ndarray) -> np.ndarray:
    """Return which dual variables are not 0 at the optimum: those that exceed the slacks of their rows.

    By complementarity one of the two is small. Dual variables are relative to the largest of them, slacks to the margin
    |w|^2 of a support vector.
    """
    w = A.T @ a
    margins = A @ w
    beta = np.array([-float(margins @ (a * of)) / max(float(a @ of), TINY) for of in E])
    free = a / max(float(a.max()), TINY) > (margins + beta @ E) / max(float(w @ w), TINY)
    # else the margin is so small that slacks are rounding
    return free if 0 < np.count_nonzero(free) <= A.shape[1] + 2 else a > 1e-6 * a.max()


def _solve(A: np.ndarray, E: np.ndarray, e: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray, bool]:
    """Solve the optimality conditions of the free rows: slacks A w + E'beta = 0, w = A'a, and E a = e.

    With B the rows of A, divided by their lengths, N an orthonormal basis of the null space of E, and the shortest x_0
    with E x_0 = e, 1/2 |B'x|^2 - right'x is minimised over x = x_0 + N t by factors of B'N, which keep all digits.

    Returns
    -------
    a, w, beta : ndarray
        The w with more digits than the product has; beta are the multipliers of the equations.
    unique : bool
        Whether the conditions determine the dual variables.
    """
    size = np.sqrt(np.maximum((A * A).sum(axis=1) + (E * E).sum(axis=0), TINY))
    B, E = A.T / size, E / size  # with columns (B, E) of length one
    inverse, N = np.linalg.pinv(E), _linalg.null_space(E)
    factors = PivotedQR(B @ N)

    def solve(right: np.ndarray, e: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        x = inverse @ e
        w = B @ x
        t = factors.solve_transposed(right @ N) - factors.Q.T @ w
        x, w = x + N @ factors.solve(t), w + factors.Q @ t
        return x, w, inverse.T @ (right - B.T @ w)

    x, w, beta = solve(np.zeros(size.size), e)
    # iterative refinement: the rounding of w is that of the largest terms of its sum
    _, dw, dbeta = solve(-(A @ w) / size - beta @ E, np.zeros(e.size))
    return x / size, w + dw, beta + dbeta, factors.rank == N.shape[1]


def _redistributed(A: np.ndarray, E: np.ndarray, a: np.ndarray) -> np.ndarray | None:
    """Return dual variables of at least 0 with the same A'a and E a, by least squares; None where there are none."""
    rows = np.vstack([A.T, E])
    target = rows @ a
    found = lsq_linear(rows, target, bounds=(0.0, np.inf), method="bvls", tol=1e-15)
    close = np.abs(rows @ found.x - target).max() <= ROUNDING * (1.0 + np.abs(target).max())
    return found.x if close else None
