"""A primal-dual interior-point method for every p, both losses, both powers of the norm and the hard margin.

With the rows a_i = y_i x_i, margins m = A w + b y, slacks xi and surpluses s = m + xi - 1 >= 0, whose multipliers are
the dual variables alpha, the optimality conditions are ::

    v = A'alpha is a subgradient of the penalty at w                  y'alpha = 0, if the intercept is free
    s alpha = 0        hinge: xi (c - alpha) = 0                       squared hinge: xi = alpha / (2 c)

The hard margin has xi = 0 and is solved as: minimise |w|_q^2 / 2 subject to margins of at least 1. Each step is
Newton's step for these equations with s alpha = mu and xi (c - alpha) = mu. Eliminating s, xi and w leaves ::

    (A diag(scaling) A' + diag(theta)) dalpha + (A right) u + y db = r,     theta = s / alpha + xi / (c - alpha)

(for the squared hinge theta = s / alpha + 1 / (2 c), for the hard margin theta = s / alpha),
with `scaling`, `right` and u from the linear model of the penalty (`penalties`), and one equation for each of u and b.
Mehrotra's predictor-corrector method chooses mu. A gap of 1e-6 takes 5 to 40 steps as a rule, more for large C.

References
----------
S. Mehrotra, "On the implementation of a primal-dual interior point method", SIAM J. Optim. 2, 1992;
J. Nocedal, S. J. Wright, "Numerical Optimization", 2nd ed., 2006, section 19.3 (nonlinear terms).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from ...numerics.norms import norm
from ...problem.problem import Problem
from ...solvers.iterate import Point
from ...solvers.linear_systems import TINY, row_solver
from ...solvers.rows import UnitRows
from .penalties import Step, penalty


@dataclass(frozen=True)
class Settings:
    """Numerical settings. Values without another source are round ones, and not tuned."""

    max_steps: int = 100  # 5 to 40 are usual; p near 1 or above 10 takes more
    # Largest share of the distance to the boundary that a step goes: nearer to 1 is faster near the optimum, and less
    # well centred.
    boundary_share: float = 0.99
    # The target of mu is mu (mu_p / mu)^power, mu_p being that after the predictor step; Mehrotra (1992) takes 3.
    centring_power: int = 3
    # A step shorter than `short_step` is replaced by a centred one: its target is at least `centring` mu, and it has no
    # second-order correction, which is large where the predictor step is far from possible.
    short_step: float = 0.1
    centring: float = 0.5
    # For p < 2, w and v are separate variables, and the duality gap of the penalty is positive until they match. The
    # sum of the products stays above this share of it. On five sets with p from 1.05 to 1.5, 1e-4 took 31 steps on
    # average and failed 2 times in 240; 1e-2 took 46 and failed 8 times, and 0 failed 56 times.
    penalty_share: float = 1e-4
    # Short steps in a row after which the iterations end: 30 to 40 occur at p = inf with power 1.
    max_short_steps: int = 60
    gap_rounding: float = 1e-15  # sum of the products, relative to sum alpha, at which the iterations end
    # Start: the share of the caps of the hinge that the first dual variables have at most, which is that of the bound
    # of v for power 1 before the factor; the factor; and the least first surplus and slack, for the hinge relative to
    # max(1, |m_i - 1|). On five data sets with p in {1, 2.5, 3, 10, inf} the factors 10, 30 and 100 took as many steps;
    # on five sets with more columns than rows, and p from 1.1 to 1.8, 300 fits took 6,443 steps with 10, 6,806 with 1
    # and 7,904 with 100.
    start_share: float = 0.5
    start_factor: float = 10.0
    min_slack: float = 0.1
    # Least |v|_p by which the first dual variables are divided, for rows of norm up to one: class means may be equal.
    min_length: float = 1e-3
    # Solutions of a linear system, at most: the first and its refinements, which end where the residual is this share
    # of the right-hand side, or no longer halves. Each costs a solution and two products with the rows.
    max_solutions: int = 5
    residual_share: float = 1e-8


SETTINGS = Settings()


def norm_points(
    problem: Problem,
    X: Any,
    y: np.ndarray,
    weights: np.ndarray,
    interrupted: Callable[[], bool] = lambda: False,
    settings: Settings = SETTINGS,
) -> Iterator[Point]:
    """Yield the iterates of the interior-point method.

    Parameters
    ----------
    problem : Problem
    X : ndarray or CSR matrix of shape (n, d)
        A step costs n d min(n, d). Sparse rows whose dense copy would be far larger than their entries stay sparse, and
        their columns are not centred.
    y : ndarray of shape (n,), entries -1.0 and 1.0
        Both classes, where the intercept is free.
    weights : ndarray of shape (n,)
        Sample weights, all positive.
    interrupted : callable
        Returns whether to stop; called before every step.
    settings : Settings

    Yields
    ------
    Point
        In the caller's units; dual variables are within their caps and, up to rounding, balanced.
    """
    rows = UnitRows.of(problem, X, y, weights)
    with np.errstate(all="ignore"):
        iteration = _Iteration(problem, rows.A, y, rows.costs, settings)
    for _ in range(settings.max_steps):
        if interrupted():
            return
        with np.errstate(all="ignore"):
            if not iteration.advance():
                return
            point = rows.restored(iteration.point())
        if not all(np.isfinite(numbers).all() for numbers in point):
            return
        yield point
        if iteration.converged():
            return


class _Iteration:
    """The iterate of one problem, and its steps; rows are y_i x_i, divided by the largest p-norm of a row.

    Attributes
    ----------
    first, second : ndarray
        The complementarity pairs of the rows: s and alpha, followed, for the hinge, by xi and c - alpha.
    v : ndarray of shape (d,)
        A'alpha.
    penalty : Penalty
        The penalty, with w and its pairs.
    """

    def __init__(
        self,
        problem: Problem,
        A: Any,
        y: np.ndarray,
        costs: np.ndarray,
        settings: Settings,
    ) -> None:
        self.problem, self.A, self.y, self.settings, self.n = problem, A, y, settings, y.size
        self.capped, self.short_steps = problem.loss == "hinge" and not problem.hard, 0
        self.delta2 = np.zeros(self.n) if self.capped or problem.hard else 0.5 / costs  # xi / alpha
        alpha = self.first_dual_variables(costs)
        self.v, total = A.T @ alpha, float(alpha.sum())
        size = total / max(norm(self.v, problem.p), settings.min_length * total, TINY)
        self.penalty, self.b = penalty(problem, self.v, size), 0.0
        scores = A @ self.penalty.w
        if problem.free:  # the mean scores of the classes are at the same distance from 0
            self.b = 0.5 * float(scores[y < 0.0].mean() - scores[y > 0.0].mean())
        self.first, self.second = self.first_pairs(
            scores + self.b * y + self.delta2 * alpha - 1.0, alpha, costs
        )

    def first_dual_variables(self, costs: np.ndarray) -> np.ndarray:
        """Return a multiple of the costs, balanced between the classes and within the caps.

        It is `start_factor` times the best multiple for power 2, or times a feasible one for power 1. At p = inf with
        power 1, v itself has to be feasible.
        """
        problem, settings = self.problem, self.settings
        positive = self.y > 0.0 if problem.free else np.full(self.n, True)
        a = costs / np.where(positive, costs[positive].sum(), costs[~positive].sum())
        length = max(norm(self.A.T @ a, problem.p), settings.min_length)
        multiple = settings.start_share / length if problem.first_power else float(a.sum()) / length / length
        if not (problem.first_power and np.isinf(problem.p)):
            multiple *= settings.start_factor
        if not problem.hard:  # the squared hinge: a slack of one half at most
            multiple = min(
                multiple, (settings.start_share if self.capped else 1.0) * float((costs / a).min())
            )
        return multiple * a

    def first_pairs(
        self, excess: np.ndarray, alpha: np.ndarray, costs: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return `first` and `second` for dual variables and excesses m - 1 + alpha / (2 c), each of shape (n,)."""
        least = self.settings.min_slack
        if self.capped:  # feasible: s - xi is the excess
            slack = least * np.maximum(np.abs(excess), 1.0)
            s, xi = np.maximum(excess, 0.0) + slack, np.maximum(-excess, 0.0) + slack
            return np.concatenate([s, xi]), np.concatenate([alpha, costs - alpha])
        # infeasible, as there may be no slack at the optimum: all surpluses are raised alike
        return excess + max(0.0, -1.5 * float(excess.min())) + least, alpha

    @property
    def alpha(self) -> np.ndarray:
        return self.second[: self.n]

    def point(self) -> Point:
        """Return (w, b, alpha) of the iterate."""
        return Point(self.penalty.w, self.b, self.alpha)

    def advance(self) -> bool:
        """Take one step; return whether it was possible."""
        settings = self.settings
        try:
            newton = _Newton(self)
            mu = newton.products.sum() / newton.products.size
            direction = newton.direction(np.zeros(newton.products.size))
            predicted = float(newton.products_after(newton.longest(direction), direction).mean())
            target = min(1.0, (predicted / mu) ** settings.centring_power) * mu
            target = max(target, min(mu, settings.penalty_share * self.penalty.gap() / newton.products.size))
            direction = newton.direction(target - direction.first * direction.second)
            t = min(1.0, settings.boundary_share * newton.longest(direction))
            if t < settings.short_step:
                target = max(target, settings.centring * mu)
                direction = newton.direction(np.full(newton.products.size, target))
                t = min(1.0, settings.boundary_share * newton.longest(direction))
        except np.linalg.LinAlgError:
            return False
        size = self.first.size
        self.first = self.first + t * direction.first[:size]
        self.second = self.second + t * direction.second[:size]
        self.b += t * direction.b
        self.v = self.A.T @ self.alpha
        self.penalty.move(t, direction.penalty, self.v)
        self.short_steps = self.short_steps + 1 if t < settings.short_step else 0
        return self.short_steps < settings.max_short_steps

    def converged(self) -> bool:
        """Return whether the complementarity products are rounding."""
        products = float(self.first @ self.second) + float(self.penalty.first @ self.penalty.second)
        return products <= self.settings.gap_rounding * float(self.alpha.sum())


class _Direction(NamedTuple):
    """A Newton direction: changes of all pairs, those of the penalty last, of the penalty and of b."""

    first: np.ndarray
    second: np.ndarray
    penalty: Step
    b: float


class _Newton:
    """Newton's equations at an iterate, factored once for all targets of the complementarity products."""

    def __init__(self, at: _Iteration) -> None:
        self.at, n = at, at.n
        self.first = np.concatenate([at.first, at.penalty.first])
        self.second = np.concatenate([at.second, at.penalty.second])
        self.products = self.first * self.second
        ratios = at.first / at.second
        self.theta = at.delta2 + ratios.reshape(-1, n).sum(axis=0)
        self.model = at.penalty.linearise(at.v)
        # columns of the borders: those of the penalty, and y for the intercept
        right, left, corner = at.A @ self.model.right, at.A @ self.model.left, self.model.corner
        k = len(corner)
        if at.problem.free:
            right, left = np.column_stack([right, at.y]), np.column_stack([left, at.y])
            corner = np.zeros((k + 1, k + 1))
            corner[:k, :k] = self.model.corner
        self.right, self.left, self.corner, self.k = right, left, corner, k
        self.solve = row_solver(at.A, self.model.scaling, self.theta)
        self.solved_right, self.right_image = (
            self.solve(right) if corner.size else (right, np.zeros((at.A.shape[1], 0)))
        )
        self.schur = corner - left.T @ self.solved_right
        xi = at.first[n:] if at.capped else at.delta2 * at.alpha
        self.residual = 1.0 + at.first[:n] - xi - at.A @ at.penalty.w - at.b * at.y

    def direction(self, target: np.ndarray) -> _Direction:
        """Return Newton's direction to the products `target`, without their terms of second order."""
        at, n = self.at, self.at.n
        size = at.first.size
        base, side = at.penalty.sides(target[size:])
        shift = target[:size] / at.second - at.first  # changes of s and xi without those of alpha
        r = self.residual + shift[:n] - at.A @ base
        if at.capped:
            r = r - shift[n:]
        if at.problem.free:
            side = np.append(side, -float(at.y @ at.alpha))
        d_alpha, image, u = self.solved(r, side)
        d_second = np.concatenate([d_alpha, -d_alpha]) if at.capped else d_alpha
        d_first = shift - at.first / at.second * d_second
        # where the scaling is large, it would multiply the rounding of A'dalpha
        scaling = self.model.scaling
        dv = np.where(scaling > 1.0, image / np.maximum(scaling, 1.0), at.A.T @ d_alpha)
        step = at.penalty.step(dv, u[: self.k], target[size:])
        db = float(u[-1]) if at.problem.free else 0.0
        return _Direction(
            np.concatenate([d_first, step.first]), np.concatenate([d_second, step.second]), step, db
        )

    def solved(self, r: np.ndarray, side: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return dalpha, diag(scaling) A'dalpha and u of the bordered system.

        The solution is refined while its residual is large and at least halves.
        """
        at = self.at
        enough = at.settings.residual_share * float(np.abs(r).max() + np.abs(side).max(initial=0.0))
        d_alpha, image, u = np.zeros(at.n), np.zeros(at.A.shape[1]), np.zeros(side.size)
        p, s, size = r, side, np.inf
        for _ in range(at.settings.max_solutions):
            x, x_image = self.solve(p)
            z = np.linalg.solve(self.schur, s - self.left.T @ x) if s.size else s
            d_alpha, u = d_alpha + x - self.solved_right @ z, u + z
            image = image + x_image - self.right_image @ z
            p = r - at.A @ image - self.theta * d_alpha - self.right @ u
            s = side - self.left.T @ d_alpha - self.corner @ u
            before, size = size, float(np.abs(p).max() + np.abs(s).max(initial=0.0))
            if size <= enough or not size < 0.5 * before:
                break
        return d_alpha, image, u

    def longest(self, direction: _Direction) -> float:
        """Return the longest length up to 1 at which all pairs are non-negative."""
        t = 1.0
        for numbers, changes in ((self.first, direction.first), (self.second, direction.second)):
            falling = changes < 0.0
            if falling.any():
                t = min(t, float((numbers[falling] / -changes[falling]).min()))
        return t

    def products_after(self, t: float, direction: _Direction) -> np.ndarray:
        """Return the complementarity products after t times a direction."""
        return (self.first + t * direction.first) * (self.second + t * direction.second)
