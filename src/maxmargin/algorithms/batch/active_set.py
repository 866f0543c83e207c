"""An active-set method for small problems: the optimality conditions are solved to rounding on a guessed active set.

Given which dual variables are free, at zero and at their caps (the set of each row), the conditions are linear. A
semismooth Newton method solves them, moves every row that violates the conditions of its set to another set, and
repeats. The notation is that of `quadratic_program`.

References
----------
M. Hintermueller, K. Ito, K. Kunisch, "The primal-dual active set strategy as a semismooth Newton method",
SIAM J. Optim. 13, 2002.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import scipy.linalg
from scipy.optimize import lsq_linear

from ...solvers.linear_systems import TINY, PivotedQR, factor
from .interior_point import interior_point
from .newton import newton_points
from .quadratic_program import Quadratic
from .sifting import by_proximal_points, sifted_points

# The numbers below without another source are chosen on the data sets of benchmarks.before_after.
#
# Largest number of changes of the active set: from points near the optimum, where 3 to 10 are usual; from the dual
# variables of a start, which may be far from the optimum; and from iterates before the last one, since later iterates
# give better sets. More changes find the optimum from farther away, at the cost of one linear system each.
MAX_CHANGES, MAX_START_CHANGES, MAX_EARLY_CHANGES = 30, 6, 2
# Gap from which on the active sets of two successive iterates are compared; above it they rarely agree.
EARLY_GAP = 1e-3
# Gap of the squared hinge at which the error of w, its square root, is rounding: no active set is solved then.
GAP_ROUNDING = 1e-20
# Above MANY_ROWS rows an iterate whose gap is at most MANY_ROWS_GAP is yielded as the last one: smaller gaps cost many
# more steps.
MANY_ROWS, MANY_ROWS_GAP = 2000, 1e-10
# Largest number of free rows in one linear system, whose factor costs its cube; without slack coordinates at most
# MAX_DEPENDENT more than columns, since more free rows are dependent and no such set is optimal.
MAX_FREE, MAX_DEPENDENT = 1200, 200
# Slack of a free row, as a multiple of its rounding, above which not all free rows can be tight: the set is given up.
MAX_FREE_SLACK = 1e3
ROUNDING = 1e-12  # relative rounding of the score of a row, or of the sums of a linear system
# Relative rounding of dual variables and of the equations E a = e: linear systems may lose some digits more than sums.
# Round values, not tuned.
DUAL_ROUNDING, EQUATION_ROUNDING = 1e-11, 1e-9

_linalg: Any = scipy.linalg  # typed as Any: its annotations are unions of all cases

AT_ZERO, FREE, AT_CAP = np.int8(-1), np.int8(0), np.int8(1)  # the set of a row: a = 0, 0 < a < c, a = c


class Point(NamedTuple):
    """A primal-dual point of a quadratic program.

    Attributes
    ----------
    a : ndarray of shape (n,)
        Dual variables.
    w : ndarray of shape (d,)
        A'a, with more digits than the product with `a` has.
    beta : ndarray of shape (m,)
        Multipliers of the m equations.
    settled : bool
        Whether the optimality conditions hold to rounding. The error of w is then rounding, while a gap, which is
        quadratic in that error, bounds only its square.
    near : bool
        Whether the requested gap `enough` is reached.
    """

    a: np.ndarray
    w: np.ndarray
    beta: np.ndarray
    settled: bool = False
    near: bool = False


def candidates(
    qp: Quadratic,
    start: np.ndarray | None = None,
    interrupted: Callable[[], bool] = lambda: False,
    enough: float = 0.0,
) -> Iterator[Point]:
    """Yield candidates for the optimum, cheapest first; the caller certifies each and stops when one is near.

    The active set is guessed in turn from `start`; with all rows of a wide problem free; from the iterates of Newton's
    method (squared hinge) or of the proximal-point method (hinge); and from an interior point.

    Parameters
    ----------
    qp : Quadratic
    start : ndarray of shape (n,), default=None
        Dual variables near the optimum.
    interrupted : callable
        Returns whether to stop. Called before every step; the last iterate is still yielded.
    enough : float, default=0
        Gap at which iterates of a soft margin are yielded before the last one.
    """
    search = _ActiveSetSearch(qp, interrupted)
    if start is not None:
        a = np.clip(start, 0.0, qp.c)
        sets = np.where(a <= 0.0, AT_ZERO, np.where(a < qp.c, FREE, AT_CAP))
        yield from search.settle(sets, search.multipliers(a, sets), MAX_START_CHANGES)
    if search.products is not None:  # of wide rows, which are usually independent, most are free
        yield from search.settle(np.full(qp.shape[0], FREE), np.zeros(len(qp.e)), MAX_CHANGES)
    if not qp.problem.hard and np.isfinite(qp.scaled_weights).all():
        last, gap = yield from search.follow_solver(enough)
        if interrupted():
            yield last
            return
        squared, many = qp.problem.loss == "squared_hinge", len(last.a) > MANY_ROWS and gap <= MANY_ROWS_GAP
        if squared and (many or gap <= GAP_ROUNDING):
            yield last._replace(settled=gap <= GAP_ROUNDING)
        if squared and many:
            return
        yield from search.settle(search.sets(last), last.beta, MAX_CHANGES)
        if many:
            yield last
            return
    inner = interior_point(qp, interrupted)
    w, beta = np.split(inner.z, [qp.shape[1]])
    last = Point(np.clip(inner.a, 0.0, qp.c), w, beta)
    yield last
    if interrupted():
        return
    yield from search.settle(search.sets(last), beta, MAX_CHANGES)


class _ActiveSetSearch:
    """The active-set iteration of one program; sets whose point has been yielded are not solved again.

    Attributes
    ----------
    solved : set of bytes
        The sets whose points have been yielded.
    products : ndarray of shape (n, n) or None
        A A' of wide rows without slack coordinates.
    """

    def __init__(self, qp: Quadratic, interrupted: Callable[[], bool]) -> None:
        self.qp, self.interrupted, self.solved = qp, interrupted, set[bytes]()
        self.products = qp.A @ qp.A.T if qp.basis is not None and not qp.squared else None

    def follow_solver(self, enough: float) -> Generator[Point, None, tuple[Point, float]]:
        """Run Newton's method or the proximal-point method; yield iterates within `enough` and points of early sets.

        Under the hinge the active set stops changing long before the gap is small: where two successive iterates within
        EARLY_GAP have the same one, the conditions are solved on it.

        Returns
        -------
        last : Point
            The last iterate.
        gap : float
        """
        qp = self.qp
        # an augmented intercept is a column of A
        problem = replace(qp.problem, intercept="free" if qp.problem.free else "none")
        task = problem, qp.rows, qp.y, qp.scaled_weights, self.interrupted
        hinge = problem.loss == "hinge"
        found = sifted_points(*task, by_proximal_points, enough) if hinge else newton_points(*task, enough)
        last, gap = Point(np.zeros(qp.shape[0]), np.zeros(qp.shape[1]), np.zeros(len(qp.e))), np.inf
        before: np.ndarray | None = None
        for reached in found:
            gap, alpha = reached.gap, np.clip(reached.alpha, 0.0, qp.c)
            last = Point(alpha, reached.w, np.full(len(qp.e), reached.b))
            if reached.near:
                yield last._replace(near=True)
            if hinge and gap <= EARLY_GAP:
                sets = self.sets(last)
                if before is not None and np.array_equal(sets, before):
                    yield from self.settle(sets, last.beta, MAX_EARLY_CHANGES)
                before = sets
        return last, gap

    def multipliers(self, a: np.ndarray, sets: np.ndarray) -> np.ndarray:
        """Return the beta for which the slacks of the free rows have least norm; of rows with a > 0 if none is free.

        Parameters
        ----------
        a : ndarray of shape (n,)
            Dual variables.
        sets : ndarray of int8 of shape (n,)
        """
        qp = self.qp
        tight = (sets == FREE) if (sets == FREE).any() else a > 0.0
        slack = qp.slacks(a, np.zeros(len(qp.e)))
        return np.linalg.pinv(qp.E[:, tight]).T @ -slack[tight]

    def sets(self, point: Point) -> np.ndarray:
        """Return the set of each row at an iterate: a bound whose distance is at most its multiplier, else FREE.

        By complementarity the distance of a_i from a bound, or the multiplier of that bound, is small. Distances are
        relative to the cap, or to the largest dual variable if that is smaller; multipliers (slacks) are relative to
        the margin of a support vector, which is 1, or |w|^2 for a hard margin.
        """
        qp, a = self.qp, point.a
        unit = np.minimum(qp.c, max(float(a.max()), TINY))
        margin = max(float(point.w @ point.w), TINY) if qp.problem.hard else 1.0
        slack = qp.slacks(a, point.beta, point.w) / margin
        free = (a / unit > slack) & ((qp.c - a) / unit > -slack)
        if qp.problem.hard and not free.any():
            # the margin is so small that slacks are rounding: some optimum has at most d + 2 dual variables above
            # 0, the number of columns and equations
            free[np.argsort(-a, kind="stable")[: qp.A.shape[1] + 2]] = True
        return np.where(free, FREE, np.where((slack < 0.0) & (qp.c < np.inf), AT_CAP, AT_ZERO))

    def settle(self, sets: np.ndarray, beta: np.ndarray, changes: int) -> Iterator[Point]:
        """Solve on the free rows and move rows between the sets until all conditions hold; yield that point.

        No point is yielded where the sets repeat, have been solved before, have too many free rows, or contradict the
        equations.

        Parameters
        ----------
        sets : ndarray of int8 of shape (n,)
        beta : ndarray of shape (m,)
            Multipliers of the equations, used where no row is free.
        changes : int
            Largest number of linear systems.
        """
        qp, seen, A_abs = self.qp, set[bytes](), np.abs(self.qp.A)
        max_free = MAX_FREE if qp.squared else min(MAX_FREE, qp.shape[1] + MAX_DEPENDENT)
        for _ in range(changes):
            key, free = sets.tobytes(), sets == FREE
            if key in seen | self.solved or np.count_nonzero(free) > max_free or self.interrupted():
                return
            seen.add(key)
            a = np.where(sets == AT_CAP, qp.c, 0.0)
            point, unique = _solve(qp, free, a, beta, self.products)
            a, w, beta = point[:3]
            if not all(np.isfinite(values).all() for values in (a, w, beta)):
                return
            if np.abs(qp.E @ a - qp.e).max(initial=0.0) > EQUATION_ROUNDING * (1.0 + float(np.abs(a).max())):
                return  # the free rows cannot meet the equations
            slack = qp.slacks(a, beta, w)
            # rounding of w, which may be a small difference of large terms: about twice eps times |A|'|a|
            w_error = 4e-16 * (A_abs.T @ np.abs(a))
            # and from it the rounding of slacks
            rounding = A_abs @ (ROUNDING * np.abs(w) + w_error)
            rounding += ROUNDING * (np.abs(qp.E.T @ beta) + np.abs(qp.q))
            a_rounding = DUAL_ROUNDING * max(float(np.abs(a).max()), TINY)
            below, above = free & (a < -a_rounding), free & (a > qp.c + a_rounding)
            joins = ((sets == AT_ZERO) & (slack < -rounding)) | ((sets == AT_CAP) & (slack > rounding))
            leaves = below.any() or above.any()
            if not joins.any() and not (leaves and unique):
                if (np.abs(slack[free]) > MAX_FREE_SLACK * rounding[free]).any():
                    return  # more rows are free than can be tight at once
                # dependent free rows have several vectors a with the same w: one of these may be feasible
                a = _redistributed(qp, a, sets) if leaves else np.clip(a, 0.0, qp.c)
                if a is not None:
                    self.solved.add(key)
                    yield Point(a, w, beta, settled=True)
                    return
            sets = np.where(below, AT_ZERO, np.where(above, AT_CAP, np.where(joins, FREE, sets)))


def _solve(
    qp: Quadratic, free: np.ndarray, a: np.ndarray, beta: np.ndarray, products: np.ndarray | None
) -> tuple[Point, bool]:
    """Solve the linear optimality conditions of one active set: slacks of free rows are 0, and E a = e.

    Parameters
    ----------
    qp : Quadratic
    free : ndarray of bool of shape (n,)
    a : ndarray of shape (n,)
        Dual variables of the other rows, 0 for free ones; the solution is written to it.
    beta : ndarray of shape (m,)
        The multipliers, returned where no row is free.
    products : ndarray of shape (n, n) or None
        A A', where most rows are independent. The solution by its factor has half of the digits, and one step of
        iterative refinement follows.

    Returns
    -------
    point : Point
    unique : bool
        Whether the conditions determine the dual variables.
    """
    fixed = qp.A.T @ a  # the part of w by the rows that are not free
    k, d = np.count_nonzero(free), qp.A.shape[1]
    if k == 0:
        return Point(a, fixed, beta), True
    if k > d and not qp.problem.hard and qp.D[free].all():
        return _solve_least_squares(qp, free), True
    rows, E, size, solve, unique = qp.A[free], qp.E[:, free], np.ones(k), None, True
    if products is not None and E.any(axis=1).all():
        solve = _by_products(rows, E, products[free][:, free])  # `factor` scales the products
    if solve is None:
        # B'B = A A' + D on the free rows; columns of (B, E) are scaled to length one
        B = np.vstack([rows.T, np.diag(np.sqrt(qp.D[free]))]) if qp.squared else rows.T
        size = np.sqrt(np.maximum((B * B).sum(axis=0) + (E * E).sum(axis=0), TINY))
        E = E / size
        solve, unique = _by_orthogonal_factors(B / size, E)
    x, w, beta = solve((qp.q[free] - rows @ fixed) / size, qp.e - qp.E @ a)
    a[free], w = x / size, fixed + w[:d]
    if not qp.squared:  # iterative refinement: the rounding of w is that of the largest terms of its sum
        residual = (qp.q[free] - rows @ w) / size - beta @ E
        _, dw, dbeta = solve(residual, np.zeros(len(qp.e)))
        w, beta = w + dw, beta + dbeta
    return Point(a, w, beta), unique


# from the right-hand sides (r, e) to (x, B x, beta)
Solve = Callable[[np.ndarray, np.ndarray], tuple[np.ndarray, np.ndarray, np.ndarray]]


def _by_products(rows: np.ndarray, E: np.ndarray, products: np.ndarray) -> Solve | None:
    """Return the function from (r, e) to (x, B x, beta) with B'B x + E'beta = r and E x = e, by a factor of B'B.

    With K = B'B: beta = (E K^-1 E')^-1 (E K^-1 r - e) and x = K^-1 (r - E'beta). None where the factor fails.

    Parameters
    ----------
    rows : ndarray of shape (k, d)
        B'.
    E : ndarray of shape (m, k)
    products : ndarray of shape (k, k)
        B'B.
    """
    factored = factor(products)
    if factored is None:
        return None
    columns = factored(E.T)
    inverse = np.linalg.inv(E @ columns)

    def solve(r: np.ndarray, e: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        x = factored(r)
        beta = inverse @ (E @ x - e)
        x = x - columns @ beta
        return x, x @ rows, beta

    return solve


def _by_orthogonal_factors(B: np.ndarray, E: np.ndarray) -> tuple[Solve, bool]:
    """Return the function of `_by_products` by QR factors of B N, which keep all digits, and whether x is unique.

    N is an orthonormal basis of the null space of E. From the shortest x_0 with E x_0 = e, 1/2 |B x|^2 - r'x is
    minimised over x = x_0 + N t: with B N = Q R (columns in the order of their pivots) R t = z and
    z = R'^-1 N'r - Q'B x_0.
    """
    inverse = np.linalg.pinv(E)
    N = _linalg.null_space(E) if len(E) else np.eye(E.shape[1])
    factors = PivotedQR(B @ N)

    def solve(r: np.ndarray, e: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        x = inverse @ e
        w = B @ x
        z = factors.solve_transposed(r @ N) - factors.Q.T @ w
        x, w = x + N @ factors.solve(z), w + factors.Q @ z
        return x, w, inverse.T @ (r - B.T @ w)

    return solve, factors.rank == N.shape[1]


def _solve_least_squares(qp: Quadratic, free: np.ndarray) -> Point:
    """Solve the conditions of `_solve` for z = (w, beta), under the squared hinge with more free rows than columns.

    z minimises |w|^2 / 2 + sum (q_i - b_i.z)^2 / (2 D_i) over the k free rows, b_i being row i of (A, E'), by
    orthogonal factors of a matrix of d + k rows; then a_i = (q_i - b_i.z) / D_i.
    """
    d, rows, root = qp.shape[1], np.hstack([qp.A, qp.E.T])[free], np.sqrt(qp.D[free])
    matrix = np.vstack([np.eye(d, rows.shape[1]), rows / root[:, None]])
    size = np.sqrt(np.maximum((matrix * matrix).sum(axis=0), TINY))
    right = np.append(np.zeros(d), qp.q[free] / root)
    z = _linalg.lstsq(matrix / size, right, lapack_driver="gelsy", check_finite=False)[0] / size
    a = np.zeros(free.size)
    a[free] = (qp.q[free] - rows @ z) / qp.D[free]
    return Point(a, z[:d], z[d:])


def _redistributed(qp: Quadratic, a: np.ndarray, sets: np.ndarray) -> np.ndarray | None:
    """Return dual variables within their bounds with the same w and the same E a; None where there are none.

    Only those of free rows change: they solve a linear least-squares problem with bounds. There are none with slack
    coordinates, where w determines the dual variables.
    """
    if qp.squared:
        return None
    free = sets == FREE
    rows = np.vstack([qp.A[free].T, qp.E[:, free]])
    target = rows @ a[free]
    # where there is no cap, a bound far above all dual variables
    upper = np.where(np.isfinite(qp.c[free]), qp.c[free], 1e3 * max(float(np.abs(a).max()), 1.0))
    found = lsq_linear(rows, target, bounds=(0.0, upper), method="bvls", tol=1e-15)
    if not np.abs(rows @ found.x - target).max() <= ROUNDING * (1.0 + np.abs(target).max()):
        return None
    out = np.where(sets == AT_CAP, qp.c, 0.0)
    out[free] = found.x
    return out
