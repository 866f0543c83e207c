"""Newton's method for the squared hinge at p = 2, whose gradient is piecewise linear.

With rows b_i, labels y_i and slacks s_i = 1 - y_i b_i.z (`centred_rows`), the problem is ::

    minimise f(z) = 1/2 z'Rz + 1/2 sum c_i max(0, s_i)^2

where R has a 1 for every weight and a 0 for a free intercept, and c_i = 2 C (sample weight i), in the unit of the rows.
Steps are those of `semismooth`. Once a full step leaves the active set as it is, z is the optimum.
alpha_i = c_i max(0, s_i) are dual variables at every z, and half the squared gradient is their duality gap (at the
optimum, those of a free intercept balance: sum y_i alpha_i = 0).

Two devices shorten the way. Many rows begin at the solution for every 16th row. Where C is large and the classes are
far apart, costs rise from stage to stage, each started where the one before ended (continuation).

References
----------
O. L. Mangasarian, "A finite Newton method for classification problems", OMS 17, 2002;
S. S. Keerthi, D. DeCoste, "A modified finite Newton method for fast solution of large scale linear SVMs", JMLR 6, 2005.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from ...numerics.sums import Plain
from ...problem.problem import Problem
from .centred_rows import CentredRows, centred_rows
from .iterate import Reached
from .semismooth import Rules, SemismoothNewton
from .semismooth_steps import GOES_ON, MADE2, NORM2, SQUARE, TINY, TOTAL, UNCHANGED


@dataclass(frozen=True)
class Settings:
    """Numerical settings of Newton's method.

    Values without a figure are those that the data sets of docs/regimes.md were solved with; they are no optimum.
    """

    max_steps: int = 200  # typical: 5 to 20; more means that digits are lost
    # an iterate is yielded for a certificate (one or two passes over the rows) when its gap is this share of the last
    # one that was, and after so many steps in any case
    report_share: float = 0.2
    report_steps: int = 8
    # the end: a squared gradient that is rounding, with the same active set for two steps; one that is nearly so and no
    # longer halves; or so many steps with the same active set of which the last did not halve the gap
    rounding: float = 1e-20
    nearly_rounding: float = 1e-15
    same_active_set: int = 2
    # share of the slope at its start at which a line search ends: each of its steps costs O(n), and the next Newton
    # step corrects what it leaves
    line_search: float = 1e-6
    # columns beyond which conjugate gradients replace the matrix of d^2 entries: n d^2 flops a step, d^3 to factor it
    max_columns: int = 1000
    # rows from which on every `sample_every`-th is solved first: x1.9 at 100,000 x 40, a loss below some thousands
    sample_from: int = 20_000
    sample_every: int = 16
    # BFGS steps after the sample, whose Hessian has to have so many active rows a column to be near that of all rows;
    # how many there are at most; and the share of the gap that each has to leave for another: a step of Newton's method
    # leaves less, but takes several passes
    bfgs_active: int = 40
    bfgs_steps: int = 8
    bfgs_share: float = 0.1
    # gap at which the sample's solution is the start of the whole, and which `direct_steps` steps from 0 have to reach;
    # where they do not, costs rise in stages of at most `stage_steps` steps
    start_gap: float = 1e-2
    direct_steps: int = 15
    stage_steps: int = 100
    # a start that the caller gives is used where its gap is no larger, and a stage ends at it
    stage_gap: float = 0.5
    # the first stage's sum of costs: this power of the sum of all costs, and no more than that
    first_costs: float = 0.5
    max_first_costs: float = 1e6
    # growth of the costs from stage to stage, squared each time that a stage took no more than `easy_steps`
    growth: float = 10.0
    easy_steps: int = 2
    # conjugate gradients: steps at most, and the share of the gradient that they may leave, between these bounds. It is
    # the root of the gap (far away, rough directions do), and less by `sharpen` each time the active set stays the same
    max_cg_steps: int = 2000
    min_residual: float = 1e-3
    max_residual: float = 0.03
    sharpen: float = 1e-2


SETTINGS = Settings()


def newton_points(
    problem: Problem,
    X: Any,
    y: np.ndarray,
    weights: np.ndarray,
    interrupted: Callable[[], bool] = lambda: False,
    tol: float = 0.0,
    start: tuple[np.ndarray, float] | None = None,
    settings: Settings = SETTINGS,
) -> Iterator[Reached]:
    """Yield iterates for the squared hinge at p = 2 that converge to the optimum.

    Parameters
    ----------
    problem : Problem
    X : ndarray or CSR matrix of shape (n, d), or CentredRows of it
    y : ndarray of shape (n,), entries -1.0 and 1.0
    weights : ndarray of shape (n,), positive
        Sample weights.
    interrupted : callable
        Whether to stop. Called before every step, and while one is computed.
    tol : float, default=0
        The relative gap that is asked for: iterates are yielded every few steps, and when they are as near.
    start : (ndarray of shape (d,), float), default=None
        (w, b) to begin with, used where its gap is small enough.
    settings : Settings
    """
    rows = centred_rows(problem, X)
    costs = np.multiply(weights, 2.0 * problem.C * rows.unit**2, dtype=float)
    np.clip(costs, TINY, 1.0 / TINY, out=costs)
    state = _State(rows, y, costs, interrupted, settings)
    if start is not None:
        state.start_at(rows.coordinates(*start))
    if start is None or not state.gap <= settings.stage_gap:
        _find_start(state, tol)
    steps, yielded, at_most = 0, np.inf, settings.report_steps - 1  # the start is an iterate, too
    while True:
        goal = min(tol, settings.report_share * yielded)
        steps += _run(state, goal or -1.0, min(at_most, settings.max_steps - steps))
        yielded, at_most = min(state.gap, yielded), settings.report_steps
        yield state.iterate(tol)
        if state.status != GOES_ON or steps >= settings.max_steps or interrupted():
            return


def _find_start(state: _State, goal: float) -> None:
    """Go to the solution of a sample of many rows; with few rows, a few steps from 0, or stages of rising costs."""
    settings, rows = state.settings, state.rows
    if state.y.size >= settings.sample_from:
        every = slice(None, None, settings.sample_every)
        labels, costs = np.ascontiguousarray(state.y[every]), settings.sample_every * state.costs[every]
        sample = _State(rows.some(every), labels, costs, state.interrupted, settings)
        _find_start(sample, settings.start_gap)
        _run(sample, settings.start_gap, settings.stage_steps)
        state.start_at(sample.z)
        _follow_sample(state, sample, goal)
        return
    state.start_at(np.zeros(rows.size))
    if _run(state, settings.start_gap, settings.direct_steps) == settings.direct_steps:
        _raise_costs(state)


def _follow_sample(state: _State, sample: _State, goal: float) -> None:
    """Take BFGS steps from the solution of a sample, as long as each leaves a small share of the gap.

    The first matrix is the inverse Hessian of the sample: a step costs one pass over the rows, where Newton's method
    needs the products of their columns. With step s and change of the gradient g, the next matrix is ::

        H - (s (Hg)' + Hg s') / s'g + (1 + g'Hg / s'g) s s' / s'g
    """
    settings = state.settings
    few = np.count_nonzero(sample.active) < settings.bfgs_active * state.z.size
    inverse = None if few else sample.inverse_hessian()
    if inverse is None:
        return
    last = np.inf
    for _ in range(settings.bfgs_steps):
        if state.gap <= goal or not state.gap <= settings.bfgs_share * last or state.interrupted():
            return
        z, gradient, last = state.z.copy(), state.gradient.copy(), state.gap
        state.start_at(z - inverse @ gradient)
        if not state.gap < last:
            state.start_at(z)
            return
        step, change = state.z - z, state.gradient - gradient
        curvature, moved = float(step @ change), inverse @ change
        if curvature > 0.0:
            factor = (1.0 + float(change @ moved) / curvature) / curvature
            inverse += factor * np.outer(step, step)
            inverse -= (np.outer(step, moved) + np.outer(moved, step)) / curvature


def _raise_costs(state: _State) -> None:
    """Solve from 0 with a small share sigma of the costs, then with larger and larger ones (continuation in C)."""
    settings = state.settings
    total, growth = float(state.costs.sum()), settings.growth
    sigma = min(total**settings.first_costs, settings.max_first_costs) / total
    z, steps = np.zeros(state.rows.size), 0
    while 0.0 < sigma < 1.0 and steps < settings.stage_steps and not state.interrupted():
        state.start_at(z, sigma)
        steps = _run(state, settings.stage_gap, settings.stage_steps)
        z = state.z
        growth = growth * growth if steps <= settings.easy_steps else settings.growth
        sigma *= growth
    state.start_at(z)


def _run(state: _State, gap: float, max_steps: int) -> int:
    """Step until the gap is at most `gap` or does not fall any more; return the number of steps."""
    steps = 0
    while steps < max_steps and state.status == GOES_ON and not state.gap <= gap and not state.interrupted():
        steps += state.advance(max_steps - steps, gap)
    return steps


class _State(SemismoothNewton):
    """The current iterate; costs are sigma c_i, with sigma < 1 in a stage of lower costs."""

    def __init__(
        self,
        rows: CentredRows,
        y: np.ndarray,
        costs: np.ndarray,
        interrupted: Callable[[], bool],
        settings: Settings = SETTINGS,
    ) -> None:
        rules = Rules(
            settings.line_search,
            rounding=settings.rounding,
            nearly_rounding=settings.nearly_rounding,
            same_active_set=settings.same_active_set,
        )
        super().__init__(rows, y, costs, np.inf, interrupted, rules)
        self.settings = settings

    def start_at(self, z: np.ndarray, sigma: float = 1.0) -> None:
        """Begin at z, with these shares of the costs."""
        self.sigma = sigma
        self.go_to(z)

    def iterate(self, tol: float) -> Reached:
        """Return the point in the problem's own units."""
        near = tol > 0.0 and self._gap_of_bounds() <= tol
        return Reached(*self.rows.primal(self.z), self.alpha(), self.gap, near)

    def _gap_of_bounds(self) -> float:
        """Return the relative gap of the objective at z and the dual objective at alpha, made to balance."""
        total, square, norm2, made2 = self.values[[TOTAL, SQUARE, NORM2, MADE2]].tolist()
        square /= self.sigma
        dual = 0.5 * total * total / max(made2 + square, TINY)
        # dual variables that are made to balance lose so much for a unit of the intercept
        if self.free and total > 0.0:
            dual -= abs(float(self.made[-1])) * (1.0 + abs(float(self.z[-1])))
        primal = 0.5 * (norm2 + square)
        return (primal - dual) / dual if dual > 0.0 else np.inf

    def direction(self) -> np.ndarray:
        """Return the Newton direction, of many columns by conjugate gradients."""
        self.solves = False
        if self.rows.size > self.settings.max_columns:
            return self._conjugate_gradients()
        return super().direction()

    def _conjugate_gradients(self) -> np.ndarray:
        """Return dz with |H dz + g| <= residual |g| on the regularised weights.

        Preconditioned by the diagonal of H. The residual is larger far from the optimum, where rough directions do.
        """
        settings, regular = self.settings, self.regular
        costs = np.where(self.active, self.sigma * self.costs, 0.0)
        residual = min(max(self.gap**0.5, settings.min_residual), settings.max_residual)
        residual *= settings.sharpen ** self.values[UNCHANGED]
        inverse = 1.0 / self._diagonal(costs)
        dz, rest = np.zeros(self.z.size), -self.gradient
        scaled = inverse * rest
        direction, square = scaled, float(rest @ scaled)
        enough = residual * residual * float(regular @ (rest * rest))
        for _ in range(settings.max_cg_steps):
            if not float(regular @ (rest * rest)) > enough or self.interrupted():
                break
            product = regular * direction + self.rows.combine(costs * self.rows.scores(direction))
            t = square / float(direction @ product)
            dz, rest = dz + t * direction, rest - t * product
            scaled = inverse * rest
            before, square = square, float(rest @ scaled)
            direction = scaled + square / before * direction
        return dz

    def _diagonal(self, costs: np.ndarray) -> np.ndarray:
        """Return the diagonal of H: sum c_i (x_ij - mean_j)^2 from the sums of c_i x_ij^2 and of c_i x_ij."""
        rows, total = self.rows, float(costs.sum())
        squares = np.zeros(rows.d)
        for some in rows.parts():
            X = rows.X[some].astype(float)
            squares += costs[some] @ (X.power(2) if sp.issparse(X) else X * X)
        squares += rows.mean * (total * rows.mean - 2.0 * Plain.combine(rows.X, costs))
        found = np.append(np.maximum(squares, 0.0), rows.constant**2 * total)[: rows.size]
        return np.maximum(found / rows.units**2 + rows.regular, TINY)
