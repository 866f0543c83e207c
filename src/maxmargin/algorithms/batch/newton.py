"""Newton's method for the squared hinge at p = 2, whose gradient is piecewise linear.

With rows b_i, labels y_i and slacks s_i = 1 - y_i b_i.z (`centred_rows`), the problem is ::

    minimise f(z) = 1/2 z'Rz + 1/2 sum c_i max(0, s_i)^2

where R has a 1 for every weight and a 0 for a free intercept, and c_i = 2 C (sample weight i), in the unit of the rows.
Steps are those of `semismooth`. Once a full step leaves the active set unchanged, z is the optimum. At every z,
alpha_i = c_i max(0, s_i) are dual variables, whose duality gap is half the squared gradient (with a free intercept,
sum y_i alpha_i = 0 holds at the optimum).

Two kinds of start save steps. With many rows, the iteration starts from the solution for every 16th row. Where C is
large and the classes are far apart, costs grow from stage to stage, and each stage starts from the solution of the last
one (continuation).

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
from ...solvers.iterate import Reached
from ...solvers.rows import centred_rows
from .semismooth import Rules, SemismoothNewton
from .semismooth_steps import ALPHA_SUM, DUAL_NORM2, GOES_ON, NORM2, SQUARES, TINY, UNCHANGED

# A step of a line search costs O(n), less than a Newton step, which corrects the remaining error. Chosen on the data
# sets of benchmarks.before_after.
RULES = Rules(line_search_slope=1e-6, rounding_gap=1e-20, stalled_gap=1e-15, max_unchanged=2)


@dataclass(frozen=True)
class Settings:
    """Numerical settings of Newton's method.

    Values without a measurement were chosen on the data sets of benchmarks.before_after, and not tuned further.
    """

    max_steps: int = 200  # 5 to 20 are usual; more mean that rounding prevents progress
    # An iterate is yielded, to be certified in one or two passes over the rows, when its gap is at most this share of
    # that of the last one yielded, or after so many steps. Smaller and larger values save certificates, and end later
    # at `tol`.
    report_share: float = 0.2
    report_steps: int = 8
    rules: Rules = RULES
    # Columns beyond which conjugate gradients replace the factorisation of the Hessian, which costs n d^2 + d^3 a step.
    max_columns: int = 1000
    # From so many rows on, the problem of every `sample_every`-th row is solved first: 1.9 times as fast at
    # 100,000 x 40, slower below some thousand rows. A sample of more rows takes longer, one of fewer is a worse start.
    min_sample_rows: int = 20_000
    sample_every: int = 16
    # BFGS steps from the solution of the sample. They need so many active rows for each column, so that the Hessian of
    # the sample is near that of all rows. There are at most `bfgs_steps`, as long as each reduces the gap to the share
    # `bfgs_gap_share`: a Newton step reduces it more, but takes several passes over the rows.
    min_bfgs_active: int = 40
    bfgs_steps: int = 8
    bfgs_gap_share: float = 0.1
    # Gap at which the solution of the sample is the start for all rows, and at which `direct_steps` steps from 0 end
    # early. Costs grow in stages of at most `stage_steps` steps where these reach not even `stage_gap`. A smaller gap
    # takes steps on the sample that the steps on all rows do not save.
    start_gap: float = 1e-2
    direct_steps: int = 15
    stage_steps: int = 100
    # A start given by the caller, or reached by steps from 0, is used if its gap is at most this. A stage ends at it.
    stage_gap: float = 0.5
    # The sum of the costs of the first stage: the sum of all costs to this power, and at most `max_first_costs`. With
    # larger costs the first stage takes more steps, with smaller ones there are more stages.
    first_costs_power: float = 0.5
    max_first_costs: float = 1e6
    # Growth of the costs from stage to stage. It is squared after each stage of at most `easy_steps` steps.
    growth: float = 10.0
    easy_steps: int = 2
    # Conjugate gradients: the largest number of steps, and bounds of the relative residual at which they end. The
    # residual is the root of the gap, as rough directions suffice far from the optimum, times `unchanged_factor` for
    # each evaluation in which the active set did not change.
    max_cg_steps: int = 2000
    min_residual: float = 1e-3
    max_residual: float = 0.03
    unchanged_factor: float = 1e-2


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
        Whether to stop; called before and during every step.
    tol : float, default=0
        A relative gap. The first iterate within it is yielded at once; others are yielded every few steps.
    start : (ndarray of shape (d,), float), default=None
        (w, b) of a warm start, used if its gap is at most `settings.stage_gap`.
    settings : Settings
    """
    rows = centred_rows(problem, X)
    costs = problem.curvatures(weights)
    costs *= rows.unit**2  # in place: at 200,000 rows a new array takes as long as a pass over the data
    np.minimum(np.maximum(costs, TINY, out=costs), 1.0 / TINY, out=costs)
    state = _State(rows, y, costs, np.inf, interrupted, settings)
    if start is not None:
        state.start_at(rows.coordinates(*start))
    if start is None or not state.gap <= settings.stage_gap:
        _find_start(state, tol)
    # the smallest gap yielded, and the most steps to the next iterate yielded: the start counts as one
    steps, least_gap, report_steps = 0, np.inf, settings.report_steps - 1
    while True:
        goal = min(tol, settings.report_share * least_gap)
        steps += _run(state, goal or -1.0, min(report_steps, settings.max_steps - steps))
        least_gap = min(state.gap, least_gap)
        # Where only the gap of the bounds (`_gap_of_bounds`) exceeds `tol`, one more step is usually enough.
        report_steps = 1 if state.gap <= tol else settings.report_steps
        yield state.iterate(tol)
        if state.status != GOES_ON or steps >= settings.max_steps or interrupted():
            return


def _find_start(state: _State, goal: float) -> None:
    """Move to a start: the solution of a sample of many rows; for few rows, steps from 0 or stages of growing costs."""
    settings, rows = state.settings, state.rows
    if state.y.size >= settings.min_sample_rows:
        every = slice(None, None, settings.sample_every)
        labels, costs = np.ascontiguousarray(state.y[every]), settings.sample_every * state.costs[every]
        sample = _State(rows.subset(every), labels, costs, np.inf, state.interrupted, settings)
        _find_start(sample, settings.start_gap)
        _run(sample, settings.start_gap, settings.stage_steps)
        state.start_at(sample.z)
        _follow_sample(state, sample, goal)
        return
    state.start_at(np.zeros(rows.size))
    _run(state, settings.start_gap, settings.direct_steps)
    if not state.gap <= settings.stage_gap:
        _raise_costs(state)


def _follow_sample(state: _State, sample: _State, goal: float) -> None:
    """Take BFGS steps from the solution of a sample, as long as each reduces the gap to a small share.

    The first approximation of the inverse Hessian is that of the sample. A step costs one pass over the rows, where
    Newton's method computes products of their columns. With the step s, the change u of the gradient and the
    approximation B, the next approximation is ::

        B - (s (Bu)' + Bu s') / s'u + (1 + u'Bu / s'u) s s' / s'u
    """
    settings = state.settings
    few = np.count_nonzero(sample.active) < settings.min_bfgs_active * state.z.size
    inverse = None if few else sample.inverse_hessian()
    if inverse is None:
        return
    last = np.inf
    for _ in range(settings.bfgs_steps):
        if state.gap <= goal or not state.gap <= settings.bfgs_gap_share * last or state.interrupted():
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
    """Solve stages with growing shares sigma < 1 of the costs, the first from z = 0 (continuation in C)."""
    settings = state.settings
    total, growth = float(state.costs.sum()), settings.growth
    sigma = min(total**settings.first_costs_power, settings.max_first_costs) / total
    z, steps = np.zeros(state.rows.size), 0
    while 0.0 < sigma < 1.0 and steps < settings.stage_steps and not state.interrupted():
        state.start_at(z, sigma)
        steps = _run(state, settings.stage_gap, settings.stage_steps)
        z = state.z
        growth = growth * growth if steps <= settings.easy_steps else settings.growth
        sigma *= growth
    state.start_at(z)


def _run(state: _State, gap: float, max_steps: int) -> int:
    """Take steps until the gap is at most `gap` or the iteration ends; return the number of steps."""
    steps = 0
    while steps < max_steps and state.status == GOES_ON and not state.gap <= gap and not state.interrupted():
        steps += state.advance(max_steps - steps, gap)
    return steps


class _State(SemismoothNewton):
    """The current iterate of Newton's method; costs are sigma c_i, with sigma < 1 in the stages of growing costs."""

    def start_at(self, z: np.ndarray, sigma: float = 1.0) -> None:
        """Begin an iteration at z with the costs sigma c_i."""
        self.sigma = sigma
        self.go_to(z)

    def iterate(self, tol: float) -> Reached:
        """Return the point in the problem's own units."""
        near = tol > 0.0 and self._gap_of_bounds() <= tol
        return Reached(*self.rows.primal(self.z), self.alpha(), self.gap, near)

    def _gap_of_bounds(self) -> float:
        """Return the relative gap of the objective at z and a lower bound from balanced dual variables.

        It estimates the gap of a certificate, which balances alpha; in `gap`, only the square of the imbalance counts.
        """
        total, square, norm2, dual_norm2 = self.values[[ALPHA_SUM, SQUARES, NORM2, DUAL_NORM2]].tolist()
        square /= self.sigma
        dual = 0.5 * total * total / max(dual_norm2 + square, TINY)
        # balancing alpha (sum y_i alpha_i = 0) decreases the dual objective by about |sum y_i alpha_i| (1 + |b|)
        if self.free and total > 0.0:
            dual -= abs(float(self.dual_sum[-1])) * (1.0 + abs(float(self.z[-1])))
        primal = 0.5 * (norm2 + square)
        return (primal - dual) / dual if dual > 0.0 else np.inf

    def direction(self) -> np.ndarray:
        """Return the Newton direction; with many columns, compute it by conjugate gradients."""
        if self.rows.size > self.settings.max_columns:
            return self._conjugate_gradients()
        return super().direction()

    def _conjugate_gradients(self) -> np.ndarray:
        """Return dz with |H dz + g| <= residual |g| in the regularised weights, by preconditioned conjugate gradients.

        The preconditioner is the diagonal of H. The residual is larger far from the optimum, where rough directions
        suffice.
        """
        settings, regular = self.settings, self.regular
        costs = np.where(self.active, self.sigma * self.costs, 0.0)
        residual = min(max(self.gap**0.5, settings.min_residual), settings.max_residual)
        residual *= settings.unchanged_factor ** self.values[UNCHANGED]
        inverse = 1.0 / self._diagonal(costs)
        dz, r = np.zeros(self.z.size), -self.gradient  # r = -g - H dz
        scaled = inverse * r
        direction, square = scaled, float(r @ scaled)
        enough = residual * residual * float(regular @ (r * r))
        for _ in range(settings.max_cg_steps):
            if not float(regular @ (r * r)) > enough or self.interrupted():
                break
            product = regular * direction + self.rows.combine(costs * self.rows.scores(direction))
            t = square / float(direction @ product)
            dz, r = dz + t * direction, r - t * product
            scaled = inverse * r
            before, square = square, float(r @ scaled)
            direction = scaled + square / before * direction
        return dz

    def _diagonal(self, costs: np.ndarray) -> np.ndarray:
        """Return the diagonal of H.

        With m the mean, sum c_i (x_ij - m_j)^2 = sum c_i x_ij^2 + m_j (m_j sum c_i - 2 sum c_i x_ij).
        """
        rows, total = self.rows, float(costs.sum())
        squares = np.zeros(rows.d)
        for chunk in rows.chunks():
            X = rows.X[chunk].astype(float)
            squares += costs[chunk] @ (X.power(2) if sp.issparse(X) else X * X)
        squares += rows.mean * (total * rows.mean - 2.0 * Plain.combine(rows.X, costs))
        found = np.append(np.maximum(squares, 0.0), rows.constant**2 * total)[: rows.size]
        return np.maximum(found / rows.units**2 + rows.regular, TINY)
