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
from .semismooth import SemismoothNewton

TINY = 1e-300  # the smallest divisor: avoids a division by 0 and is below every number that counts


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
    costs = rows.unit**2 / np.maximum(problem.delta2(weights), TINY)
    state = _State(rows, y, costs, interrupted, settings)
    if start is not None:
        state.start_at(rows.coordinates(*start))
    if start is None or state.gap > settings.stage_gap:
        _find_start(state)
    yielded, since = np.inf, 0
    for _ in range(settings.max_steps):
        since += 1
        stop = state.is_stationary() or interrupted()
        if stop or since == settings.report_steps or state.gap <= min(tol, settings.report_share * yielded):
            yielded, since = min(state.gap, yielded), 0
            yield state.iterate(tol)
        if stop:
            return
        if not state.step():
            break
    yield state.iterate(tol)


def _find_start(state: _State) -> None:
    """Go to the solution of a sample of many rows; with few rows, a few steps from 0, or stages of rising costs."""
    settings, rows = state.settings, state.rows
    if state.y.size >= settings.sample_from:
        every = slice(None, None, settings.sample_every)
        labels, costs = np.ascontiguousarray(state.y[every]), settings.sample_every * state.costs[every]
        sample = _State(rows.some(every), labels, costs, state.interrupted, settings)
        _find_start(sample)
        _run(sample, settings.start_gap, settings.stage_steps)
        state.start_at(sample.z)
        return
    state.start_at(np.zeros(rows.size))
    if _run(state, settings.start_gap, settings.direct_steps) == settings.direct_steps:
        _raise_costs(state)


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
    for steps in range(max_steps):
        if state.gap <= gap or state.is_stationary() or state.interrupted() or not state.step():
            return steps
    return max_steps


class _State(SemismoothNewton):
    """The current iterate; costs are sigma c_i, with sigma < 1 in a stage of lower costs.

    Attributes
    ----------
    gap : float
        Relative duality gap, from the squared gradient.
    """

    def __init__(
        self,
        rows: CentredRows,
        y: np.ndarray,
        costs: np.ndarray,
        interrupted: Callable[[], bool],
        settings: Settings = SETTINGS,
    ) -> None:
        super().__init__(rows, y, costs, np.inf, interrupted)
        self.settings = settings

    def start_at(self, z: np.ndarray, sigma: float = 1.0) -> None:
        """Begin at z, with these shares of the costs."""
        self.z, self.sigma, self.gap = z, sigma, np.inf
        self.set_slack()
        self.set_shares()
        self.unchanged = 0
        self.evaluate()

    def iterate(self, tol: float) -> Reached:
        """Return the point in the problem's own units."""
        return Reached(
            *self.rows.primal(self.z), self.alpha(), self.gap, tol > 0.0 and self._bounds_gap <= tol
        )

    def evaluate(self) -> None:
        """Compute the gradient and the gaps from the shares.

        The dual bound is that of the best multiple of alpha: max_t t total - t^2 (v'Rv + square) / 2, with
        v = sum alpha_i y_i b_i and square = sum alpha_i^2 / (sigma c_i) = sum alpha_i s_i.
        """
        self.set_gradient()
        total = float(self.costs @ self.share)
        square = float(self.costs @ (self.share * self.share)) / self.sigma
        curvature = self.made2 + square
        dual = 0.5 * total * total / curvature if curvature > 0.0 else 0.0
        uneven = float(self.made[-1]) / total if self.free and total > 0.0 else 0.0
        self._last_gap = self.gap
        self.gap = 0.5 * self.gradient2 / dual + uneven * uneven if dual > 0.0 else np.inf
        primal = 0.5 * (self.norm2 + square)
        # dual variables that are made to balance lose about so much for each unit of the intercept
        lost = abs(uneven) * total * (1.0 + abs(float(self.z[-1]))) if self.free else 0.0
        lower = dual - lost
        self._bounds_gap = (primal - lower) / lower if lower > 0.0 else np.inf

    def is_stationary(self) -> bool:
        """Return whether z is the optimum to rounding."""
        settings = self.settings
        if self.unchanged > 1 and self.gap <= settings.rounding:  # a step after slacks were computed anew
            return True
        no_progress = 0.5 * self._last_gap <= self.gap < np.inf
        return no_progress and (
            self.gap <= settings.nearly_rounding or self.unchanged > settings.same_active_set
        )

    def step(self) -> bool:
        """Take a Newton step to the minimum along its direction; return False where it leads nowhere."""
        if not self.move(self.settings.line_search) > 0.0:
            return False
        self.set_shares()
        if self.unchanged == 1:  # next to the end: the last digits count
            self.set_slack()
            self.set_shares()
            self.unchanged = min(self.unchanged, 1)
        self.evaluate()
        return True

    def direction(self) -> np.ndarray:
        """Return the Newton direction; where H has lost its digits, -g divided by its diagonal."""
        if self.rows.size > self.settings.max_columns:
            return self._conjugate_gradients()
        dz = super().direction()
        return -self.gradient / np.maximum(np.diag(self.hessian()), TINY) if dz is None else dz

    def _conjugate_gradients(self) -> np.ndarray:
        """Return dz with |H dz + g| <= residual |g| on the regularised weights.

        Preconditioned by the diagonal of H. The residual is larger far from the optimum, where rough directions do.
        """
        settings, regular, costs = (
            self.settings,
            self.regular,
            np.where(self.active, self.sigma * self.costs, 0.0),
        )
        residual = min(max(self.gap**0.5, settings.min_residual), settings.max_residual)
        residual *= settings.sharpen**self.unchanged
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
