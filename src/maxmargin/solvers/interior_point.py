"""A primal-dual interior-point method for every p, both losses, both powers of the norm and the hard margin.

With the rows a_i = y_i x_i, slacks xi and surpluses s = A w + b y + xi - g >= 0, whose multipliers are the dual
variables alpha, the optimality conditions are ::

    v = A'alpha is a subgradient of the penalty at w                  y'alpha = 0, if the intercept is free
    s alpha = 0        hinge: xi (c - alpha) = 0                       squared hinge: xi = alpha / (2 c)

and xi = 0 for the hard margin. The margin g is 1 for soft margins. For the hard margin the dual variables have the sum
one, and g is the multiplier of this equation: g and v tend to 0 where there is no separator. Each step is Newton's step
for these equations with s alpha = mu and xi (c - alpha) = mu, and the linear model of the penalty (`penalties`).
Mehrotra's predictor-corrector method chooses mu, and Gondzio's corrections lengthen the step. A gap of 1e-3 takes 5 to
20 steps as a rule.

References
----------
S. Mehrotra, "On the implementation of a primal-dual interior point method", SIAM J. Optim. 2, 1992;
J. Gondzio, "Multiple centrality corrections in a primal-dual method for linear programming", Comput. Optim. Appl. 6,
1996;
M. C. Ferris, T. S. Munson, "Interior-point methods for massive support vector machines", SIAM J. Optim. 13, 2002.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np

from ..numerics.sums import norm
from ..problem.problem import Problem
from .iterate import Point
from .linear_systems import TINY, Solve, factor, gram, times_columns, times_rows
from .penalties import Linear, Penalty
from .rows import UnitRows

# A step shorter than this is replaced by a centred one, to half of the present products, without the second-order
# correction, which is large where the predictor step is far from possible.
SHORT_STEP = 0.1


def interior_points(
    problem: Problem,
    X: Any,
    y: np.ndarray,
    weights: np.ndarray,
    interrupted: Callable[[], bool] = lambda: False,
    tol: float = 0.0,
) -> Iterator[Point]:
    """Yield points whenever the estimated gap is within `tol` or a quarter of the last one, and the last point.

    Parameters
    ----------
    problem : Problem
    X : ndarray or CSR matrix of shape (n, d)
        A step costs n d min(n, d). Sparse rows whose dense copy would be far larger than their entries stay sparse, and
        their columns are not centred. At p = 2 wide rows are replaced by their coordinates in a basis of their span.
    y : ndarray of shape (n,), entries -1.0 and 1.0
        Both classes, where the intercept is free.
    weights : ndarray of shape (n,)
        Sample weights, all positive.
    interrupted : callable
        Returns whether to stop; called before every step.
    tol : float

    Yields
    ------
    Point
        In the caller's units; dual variables are within their caps and, up to rounding, balanced.
    """
    rows = UnitRows.of(problem, X, y, weights)
    A, basis = rows.A, None
    if problem.euclidean and A.shape[1] > A.shape[0] and isinstance(A, np.ndarray):
        basis, coordinates = np.linalg.qr(A.T)
        A = np.ascontiguousarray(coordinates.T)
    least, pending = 4.0, None  # the first point is yielded at a gap of 1
    with np.errstate(all="ignore"):
        iteration = _Iteration(problem, A, y, rows.costs)
    # 5 to 20 steps are usual; 60, short ones, occur with a hard margin where the columns differ by four orders of
    # magnitude and the margin is 1e-8 of the rows
    for _ in range(150):
        if interrupted():
            break
        with np.errstate(all="ignore"):
            if not iteration.advance():
                break
            point, gap = iteration.point(), iteration.gap()
        if not all(np.isfinite(numbers).all() for numbers in point):
            break
        pending = point if basis is None else point._replace(w=basis @ point.w)
        if gap <= max(0.25 * least, tol):
            least = gap
            yield rows.restored(pending)
            pending = None
            if gap <= 1e-15:
                return
    if pending is not None:
        yield rows.restored(pending)


class _Iteration:
    """The iterate of one problem, and its steps; rows are y_i x_i, divided by the largest p-norm of a row.

    Attributes
    ----------
    first, second : ndarray
        The complementarity pairs of the rows: s and alpha, followed, for the hinge, by xi and c - alpha.
    F, f : ndarray of shape (n, k) and (k,)
        Columns of margins that are not regularised, and their factors: b and g, where there are these.
    goal : ndarray of shape (k,)
        The values of F'alpha.
    v : ndarray of shape (d,)
        A'alpha.
    penalty : Penalty
        The pairs of the norm, with w.
    """

    def __init__(self, problem: Problem, A: Any, y: np.ndarray, costs: np.ndarray) -> None:
        self.problem, self.A, self.n, self.short_steps = problem, A, y.size, 0
        hard, free = problem.hard, problem.free
        self.capped = problem.loss == "hinge" and not hard
        self.delta2 = np.zeros(self.n) if self.capped or hard else 0.5 / costs  # xi / alpha
        columns = [y] * free + [-np.ones(self.n)] * hard
        self.F = np.column_stack(columns) if columns else np.zeros((self.n, 0))
        self.goal = np.array([0.0] * free + [-1.0] * hard)
        self.f, self.fixed_margin = np.zeros(self.goal.size), 1.0 - hard  # a hard margin is one of the f
        # w = 0, and the products of all pairs are about equal, though the equations do not hold
        alpha = (0.5 if self.capped else 1.0) * costs
        balanced = problem.balanced(y, alpha) if free else None
        alpha = alpha if balanced is None else balanced
        if hard:
            alpha = alpha / float(alpha.sum())
        self.v = A.T @ alpha
        s = np.full(self.n, max(norm(self.v, problem.p) ** 2, 1e-6) if hard else 1.0)
        self.first, self.second = s, alpha
        if self.capped:
            self.first = np.concatenate([s, alpha / (costs - alpha)])
            self.second = np.concatenate([alpha, costs - alpha])
        self.penalty = Penalty(problem, A.shape[1], float((s * alpha).mean()))

    @property
    def alpha(self) -> np.ndarray:
        return self.second[: self.n]

    def point(self) -> Point:
        """Return (w, b, alpha) of the iterate; those of a hard margin have no scale."""
        return Point(self.penalty.w, float(self.f[0]) if self.problem.free else 0.0, self.alpha)

    def gap(self) -> float:
        """Return the sum of the complementarity products, relative to an estimate of the objective."""
        products = float(self.first @ self.second) + float(self.penalty.first @ self.penalty.second)
        # v = 0 proves that there is no separator: the gap is then inf, or not a number
        return products / np.float64(
            norm(self.v, self.problem.p) ** 2 if self.problem.hard else self.alpha.sum()
        )

    def advance(self) -> bool:
        """Take one step; return whether it was possible."""
        try:
            newton = _Newton(self)
            direction = newton.direction(np.zeros(newton.products.size))
            predicted = float(newton.products_after(newton.longest(direction), direction).mean())
            mu = float(newton.products.mean())
            target = min(1.0, (predicted / mu) ** 3) * mu  # Mehrotra's choice
            products = target - direction.first * direction.second
            direction = newton.direction(products)
            t = newton.longest(direction)
            # each correction costs a solution with the same factor; on nine data sets two take three quarters of the
            # steps of none, and a third gains little
            for _ in range(2):
                # the products after a longer step, moved into a neighbourhood of the target
                reached = newton.products_after(min(1.0, t + 0.3), direction)
                correction = np.clip(reached, 0.1 * target, 10.0 * target) - reached
                products = products + np.maximum(correction, -10.0 * target)
                corrected = newton.direction(products)
                longer = newton.longest(corrected)
                if not longer > 1.01 * t:
                    break
                direction, t = corrected, longer
            if t < SHORT_STEP:
                direction = newton.direction(np.full(newton.products.size, max(target, 0.5 * mu)))
                t = newton.longest(direction)
            t = min(1.0, 0.99 * t)
        except (np.linalg.LinAlgError, ZeroDivisionError):  # a matrix that is not definite, or a pivot of 0
            return False
        size = self.first.size
        first, second = newton.first + t * direction.first, newton.second + t * direction.second
        self.first, self.second = first[:size], second[:size]
        self.penalty.first, self.penalty.second = first[size:], second[size:]
        self.f, self.v = self.f + t * direction.f, self.A.T @ self.alpha
        self.short_steps = self.short_steps + 1 if t < SHORT_STEP else 0
        return self.short_steps < 60


class _Direction(NamedTuple):
    """A Newton direction: changes of all pairs, those of the penalty last, and of f."""

    first: np.ndarray
    second: np.ndarray
    f: np.ndarray


class _Newton:
    """Newton's equations at an iterate, factored once for all targets of the complementarity products.

    With `scaling`, `right` and `base` of the penalty, w' = dw - right u - base, G = [A F] and theta, they are ::

        A dw + F df + theta dalpha = r          A'dalpha = w' / scaling
        F'dalpha = h                            left'A'dalpha + corner u = side
    """

    def __init__(self, at: _Iteration) -> None:
        self.at, n = at, at.n
        self.first = np.concatenate([at.first, at.penalty.first])
        self.second = np.concatenate([at.second, at.penalty.second])
        self.products = self.first * self.second
        self.ratios = at.first / at.second
        theta = at.delta2 + self.ratios[:n]
        if at.capped:
            theta += self.ratios[n:]
        xi = at.first[n:] if at.capped else at.delta2 * at.alpha
        self.residual = at.fixed_margin + at.first[:n] - xi - at.A @ at.penalty.w - at.F @ at.f
        self.balance = at.goal - at.F.T @ at.alpha
        system = _ByColumns if n > at.A.shape[1] else _ByRows
        self.system = system(at.A, at.F, at.penalty.linearise(at.v), theta)

    def direction(self, target: np.ndarray) -> _Direction:
        """Return Newton's direction to the products `target`, without their terms of second order."""
        at, n, size = self.at, self.at.n, self.at.first.size
        base, side = at.penalty.sides(target[size:])
        shift = target[:size] / at.second - at.first  # changes of s and xi without those of alpha
        r = self.residual + shift[:n]
        if at.capped:
            r -= shift[n:]
        d_alpha, dv, df, u = self.system.solve(r, base, side, self.balance)
        d_second = np.concatenate([d_alpha, -d_alpha]) if at.capped else d_alpha
        first, second = at.penalty.step(dv, u, target[size:])
        d_first = shift - self.ratios * d_second
        return _Direction(np.concatenate([d_first, first]), np.concatenate([d_second, second]), df)

    def longest(self, direction: _Direction) -> float:
        """Return the longest length up to 1 at which all pairs are non-negative."""
        rates = float((direction.first / self.first).min()), float((direction.second / self.second).min())
        return 1.0 / max(1.0, -min(rates))

    def products_after(self, t: float, direction: _Direction) -> np.ndarray:
        """Return the complementarity products after t times a direction."""
        return (self.first + t * direction.first) * (self.second + t * direction.second)


class _ByColumns:
    """Newton's equations for more rows than columns: dalpha is eliminated, and dw and df are computed first.

    (diag(1 / scaling, 0) + G' diag(1 / theta) G) (dw, df) = (A'(r / theta) + (right u + base) / scaling,
    F'(r / theta) - h).
    """

    def __init__(self, A: Any, F: np.ndarray, model: Linear, theta: np.ndarray) -> None:
        self.A, self.F, self.model, self.weight = A, F, model, 1.0 / theta
        d, k = A.shape[1], F.shape[1]
        matrix = np.empty((d + k, d + k))
        matrix[:d, :d] = gram(times_rows(A, np.sqrt(self.weight)))
        WF = F * self.weight[:, None]
        matrix[:d, d:] = A.T @ WF
        matrix[d:, :d] = matrix[:d, d:].T
        matrix[d:, d:] = F.T @ WF
        self.inverse = 1.0 / np.maximum(model.scaling, TINY)
        matrix.flat[: d * (d + k) : d + k + 1] += self.inverse
        self.solve_system = factored(matrix)
        # the column and the row of u
        self.column = np.append(self.inverse * model.right, np.zeros(k))
        self.row = np.append(self.inverse * model.left, np.zeros(k))
        self.image = self.solve_system(self.column)
        self.pivot = float(self.row @ self.image) - float(self.row[:d] @ model.right) + model.corner

    def solve(
        self, r: np.ndarray, base: np.ndarray, side: float, h: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray, float]:
        """Return dalpha, A'dalpha, df and u."""
        d, weighted = base.size, self.weight * r
        p = np.append(self.A.T @ weighted + self.inverse * base, self.F.T @ weighted - h)
        x = self.solve_system(p)
        u = (side + float(self.row[:d] @ base) - float(self.row @ x)) / self.pivot
        x = x + u * self.image
        d_alpha = weighted - self.weight * (self.A @ x[:d] + self.F @ x[d:])
        return d_alpha, self.inverse * (x[:d] - u * self.model.right - base), x[d:], u


class _ByRows:
    """Newton's equations for at most as many rows as columns: dalpha is computed first.

    (A diag(scaling) A' + diag(theta)) dalpha = r - A (right u + base) - F df.
    """

    def __init__(self, A: Any, F: np.ndarray, model: Linear, theta: np.ndarray) -> None:
        self.A, self.theta, self.model = A, theta, model
        matrix = gram(times_columns(A, np.sqrt(model.scaling)).T)
        matrix.flat[:: theta.size + 1] += theta
        self.solve_system = factored(matrix)
        # the columns and the rows of u and df
        self.columns = np.column_stack([A @ model.right, F])
        self.rows = np.column_stack([A @ model.left, F])
        self.image = self.solve_system(self.columns)
        self.schur = -self.rows.T @ self.image
        self.schur[0, 0] += model.corner

    def solve(
        self, r: np.ndarray, base: np.ndarray, side: float, h: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray, float]:
        """Return dalpha, A'dalpha, df and u."""
        x = self.solve_system(r - self.A @ base)
        z = np.linalg.solve(self.schur, np.append(side, h) - self.rows.T @ x)
        d_alpha = x - self.image @ z
        return d_alpha, self.A.T @ d_alpha, z[1:], float(z[0])


def factored(matrix: np.ndarray) -> Solve:
    """Return the function that solves systems with a matrix, each solution refined once.

    LinAlgError is raised where the matrix is not definite.
    """
    solve = factor(matrix)
    if solve is None:
        raise np.linalg.LinAlgError

    def refined(p: np.ndarray) -> np.ndarray:
        x = solve(p)
        return x + solve(p - matrix @ x)

    return refined
