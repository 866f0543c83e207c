"""Newton's method for the squared hinge at p = 2, whose gradient is piecewise linear.

In the units of `Blocks`, with rows b_i = (x_i, constant), labels y_i and slacks s_i = 1 - y_i b_i.z, the problem is ::

    minimise f(z) = 1/2 z'Rz + 1/2 sum c_i max(0, s_i)^2

where R has a 1 for every weight and a 0 for a free intercept, and c_i = 2 C (sample weight i), in these units. Rows
with s_i > 0 are active. With the active set A fixed, the gradient is g = Rz - B_A'(y c s) and the Hessian
H = R + B_A' diag(c) B_A; a step solves H dz = -g and goes to the exact minimum of f along dz. Once a full step leaves
the active set as it is, z is the optimum. alpha_i = c_i max(0, s_i) are dual weights at every z, and half the squared
gradient is their duality gap (at the optimum, those of a free intercept balance: sum y_i alpha_i = 0).

Two devices shorten the way. Many rows begin at the solution for every 16th row. Where C is large and the classes are
far apart, costs rise from stage to stage, each started where the one before ended (continuation).

References
----------
O. L. Mangasarian, "A finite Newton method for classification problems", OMS 17, 2002;
S. S. Keerthi, D. DeCoste, "A modified finite Newton method for fast solution of large scale linear SVMs", JMLR 6, 2005.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from ...engine.line_search import subtract
from ...engine.newton import Squared, descend, diagonal, follow, products, weigh
from ...engine.storage import Dense, Sparse
from ...engine.vectors import EuclideanVector as Vector
from ...problem.problem import Problem
from .active_hessian import ActiveHessian
from .cholesky import factor
from .chunks import Blocks, blocks_of, unsigned
from .iterate import Reached

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
    # the end: a squared gradient that is rounding, with the same active set as before; one that is nearly so and no
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
    X : ndarray or CSR matrix of shape (n, d), or Blocks of it
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
    state = _State(problem, X, y, weights, interrupted, settings)
    if start is not None:
        state.start_at(state.blocks.coordinates(*start))
    if start is None or state.evaluate() > settings.stage_gap:
        _find_start(state, weights)
    yielded, since = np.inf, 0
    for _ in range(settings.max_steps):
        gap, since = state.evaluate(), since + 1
        stop = state.is_stationary() or interrupted()
        if stop or since == settings.report_steps or gap <= min(tol, settings.report_share * yielded):
            yielded, since = min(gap, yielded), 0
            yield state.iterate(tol)
        if stop:
            return
        if not state.step():
            break
    state.evaluate()
    yield state.iterate(tol)


def _find_start(state: _State, weights: np.ndarray) -> None:
    """Go to the solution of a sample of many rows; with few rows, a few steps from 0, or stages of rising costs."""
    settings = state.settings
    if state.y.size >= settings.sample_from:
        state.start_at(_solve_sample(state, weights))
        return
    state.start_at_zero()
    if _run(state, settings.start_gap, settings.direct_steps) == settings.direct_steps:
        _raise_costs(state)


def _solve_sample(state: _State, weights: np.ndarray) -> np.ndarray:
    """Return the z that solves every k-th row, with k times the costs."""
    settings = state.settings
    every = slice(None, None, settings.sample_every)
    labels, costs = np.ascontiguousarray(state.y[every]), settings.sample_every * weights[every]
    blocks = state.blocks.some(every)
    sample = _State(state.problem, blocks, labels, costs, state.interrupted, settings)
    _find_start(sample, costs)
    _run(sample, settings.start_gap, settings.stage_steps)
    return sample.z


def _raise_costs(state: _State) -> None:
    """Solve from 0 with a small share of the costs, then with larger and larger ones (continuation in C)."""
    settings = state.settings
    state.start_at_zero()
    total, growth = float(state.costs.sum()), settings.growth
    share = min(total**settings.first_costs, settings.max_first_costs) / total
    while 0.0 < share < 1.0 and not state.interrupted():
        with state.costs_times(share):
            steps = _run(state, settings.stage_gap, settings.stage_steps)
        if steps == settings.stage_steps:  # costs beyond what digits can tell
            return
        growth = growth * growth if steps <= settings.easy_steps else settings.growth
        share *= growth


def _run(state: _State, gap: float, max_steps: int) -> int:
    """Step until the gap is at most `gap` or does not fall any more; return the number of steps."""
    for steps in range(max_steps):
        if state.evaluate() <= gap or state.is_stationary() or state.interrupted() or not state.step():
            return steps
    return max_steps


class _State:
    """The current z with its slacks, in the units of the blocks.

    Attributes
    ----------
    z : ndarray of shape (size,)
        w, and the weight of the constant.
    slack : ndarray of shape (n,)
        1 - margin. Slacks follow z by what steps add to them, so that dual weights get exact even where a slack is less
        than the rounding of a margin.
    costs : ndarray of shape (n,)
        c_i: a slack costs c_i max(0, s_i)^2 / 2.
    """

    def __init__(
        self,
        problem: Problem,
        X: Any,
        y: np.ndarray,
        weights: np.ndarray,
        interrupted: Callable[[], bool],
        settings: Settings = SETTINGS,
    ) -> None:
        self.problem, self.blocks, self.y, self.interrupted = problem, blocks_of(problem, X), y, interrupted
        self.settings = settings
        self.costs = problem.delta2(weights)
        np.maximum(self.costs, TINY, out=self.costs)
        np.divide(self.blocks.unit**2, self.costs, out=self.costs)
        self.regular = self.blocks.regular
        self._signed, self.gradient = np.empty(y.size), np.empty(self.blocks.size)
        self._directions = self._new_directions()

    def _new_directions(self) -> _Factorised | _ConjugateGradients:
        """Return what computes Newton directions at the present costs."""
        direct = self.blocks.size <= self.settings.max_columns
        return (_Factorised if direct else _ConjugateGradients)(
            self.blocks, self.costs, self.interrupted, self.settings
        )

    def start_at_zero(self) -> None:
        """Begin at z = 0, where all slacks are 1."""
        self._forget()
        self.z, self.slack = np.zeros(self.blocks.size), np.ones(self.y.size)

    def start_at(self, z: np.ndarray) -> None:
        """Begin at z."""
        self._forget()
        self.z, self.slack = z, np.empty(self.y.size)
        self._refresh()

    def _forget(self) -> None:
        self.gap = self._last_gap = np.inf
        self._evaluated = False
        self._bounds_gap = np.inf  # primal - dual of the bounds of this iterate, as a share of the dual one
        self._unchanged = 0  # steps since the active set changed

    @contextmanager
    def costs_times(self, share: float) -> Iterator[None]:
        """Multiply all costs by `share` within this context."""
        whole, self.costs = self.costs, share * self.costs
        self._directions, self._unchanged, self._evaluated = self._new_directions(), 0, False
        yield
        self.costs = whole
        self._directions, self._evaluated = self._new_directions(), False

    def iterate(self, tol: float) -> Reached:
        """Return the point in the problem's own units, as it was last evaluated."""
        alpha = self._signed * self.y
        alpha /= self.blocks.unit**2
        return Reached(*self.blocks.primal(self.z), alpha, self.gap, tol > 0.0 and self._bounds_gap <= tol)

    def evaluate(self) -> float:
        """Compute the gradient and the relative gap, unless this was done for this z; return the gap."""
        if not self._evaluated:
            total, square = weigh(self.slack, self.costs, self.y, self._signed)
            self._set_gap(total, square, self.blocks.all_combined(self._signed))
        return self.gap

    def _refresh(self) -> None:
        """Compute slacks, gradient and gap from z alone, without accumulated rounding: one pass over the rows."""
        self._set_gap(*self.blocks.weigh_at(self.z, self.y, self.costs, self.slack, self._signed))

    def _set_gap(self, total: float, square: float, combined: np.ndarray) -> None:
        """Set gradient and gaps.

        Parameters
        ----------
        total : float
            sum alpha_i.
        square : float
            sum c_i max(0, s_i)^2 = sum alpha_i^2 / c_i.
        combined : ndarray of shape (size,)
            v = sum alpha_i y_i b_i.
        """
        self._evaluated = True
        _, gradient2, v2 = subtract(self.regular, self.z, combined, self.gradient)
        # the best multiple of alpha: max_t t total - t^2 (v'Rv + square) / 2
        curvature = v2 + square
        dual = 0.5 * total * total / curvature if curvature > 0.0 else 0.0
        uneven = float(combined[-1]) / total if self.problem.free and total > 0.0 else 0.0
        gap = 0.5 * gradient2 / dual + uneven * uneven if dual > 0.0 else np.inf
        self._last_gap, self.gap = self.gap, gap
        primal = 0.5 * (float(self.regular @ (self.z * self.z)) + square)
        # dual weights that are made to balance lose about so much for each unit of the intercept
        lost = abs(uneven) * total * (1.0 + abs(float(self.z[-1]))) if self.problem.free else 0.0
        lower = dual - lost
        self._bounds_gap = (primal - lower) / lower if lower > 0.0 else np.inf

    def is_stationary(self) -> bool:
        """Return whether z is the optimum to rounding."""
        settings = self.settings
        if self._unchanged and self.gap <= settings.rounding:
            return True
        no_progress = 0.5 * self._last_gap <= self.gap < np.inf
        return no_progress and (
            self.gap <= settings.nearly_rounding or self._unchanged > settings.same_active_set
        )

    def step(self) -> bool:
        """Take a Newton step to the minimum along its direction; return False where it leads nowhere."""
        settings = self.settings
        active = self.slack > 0.0
        residual = min(max(self.gap**0.5, settings.min_residual), settings.max_residual)
        dz = self._directions.solve(active, self.gradient, residual * settings.sharpen**self._unchanged)
        change = self.blocks.all_scores(dz)
        t = descend(
            self.slack, change, self.y, self.costs, self.z, dz, self.regular, self.gradient, settings.line_search
        )  # fmt: skip
        if not t > 0.0:
            return False
        self._evaluated = False
        self._unchanged = 0 if follow(self.slack, change, t, active) else self._unchanged + 1
        if self._unchanged == 1:  # next to the end: the last digits count
            self._refresh()
        return True


class _Factorised:
    """Newton directions by a Cholesky factor of the Hessian."""

    def __init__(
        self,
        blocks: Blocks,
        costs: np.ndarray,
        interrupted: Callable[[], bool],
        settings: Settings = SETTINGS,
    ) -> None:
        self._hessian = ActiveHessian(blocks, costs, interrupted)

    def solve(self, active: np.ndarray, gradient: np.ndarray, residual: float) -> np.ndarray:
        """Return -H^-1 g for this active set; where H has lost its digits, -g divided by its diagonal."""
        hessian = self._hessian.regularised(active)
        solve = factor(hessian)
        return -solve(gradient) if solve is not None else -gradient / np.maximum(np.diag(hessian), TINY)


class _ConjugateGradients:
    """Newton directions by conjugate gradients on products of the Hessian, preconditioned by its diagonal."""

    def __init__(
        self,
        blocks: Blocks,
        costs: np.ndarray,
        interrupted: Callable[[], bool],
        settings: Settings = SETTINGS,
    ) -> None:
        self.blocks, self.costs, self.interrupted, self.settings = blocks, costs, interrupted, settings
        X, self._w = blocks.X, np.zeros(blocks.d)
        if sp.issparse(X):
            self._space: Any = Sparse(unsigned(X.indptr), unsigned(X.indices), X.data, Vector(self._w))
        else:
            self._space = Dense(np.asarray(X), Vector(self._w))

    def solve(self, active: np.ndarray, gradient: np.ndarray, residual: float) -> np.ndarray:
        """Return dz with |H dz + g| <= residual |g| on the regularised weights."""
        rows, regular = np.flatnonzero(active), self.blocks.regular
        inverse = 1.0 / self._diagonal(rows)
        dz, rest = np.zeros(gradient.size), -gradient
        scaled = inverse * rest
        direction, square = scaled, float(rest @ scaled)
        enough = residual * residual * float(regular @ (rest * rest))
        for _ in range(self.settings.max_cg_steps):
            if not float(regular @ (rest * rest)) > enough or self.interrupted():
                break
            product = self._product(rows, direction)
            t = square / float(direction @ product)
            dz, rest = dz + t * direction, rest - t * product
            scaled = inverse * rest
            before, square = square, float(rest @ scaled)
            direction = scaled + square / before * direction
        return dz

    def _product(self, rows: np.ndarray, z: np.ndarray) -> np.ndarray:
        """Return H z for these active rows."""
        w, b = self.blocks.primal(z)
        self._w[:] = w
        made = np.zeros(self.blocks.d)
        total = products(self._space, rows, self.costs, b, Vector(made))
        return self.blocks.regular * z + self.blocks.combined(made, total)

    def _diagonal(self, rows: np.ndarray) -> np.ndarray:
        """Return the diagonal of H: sum c_i (x_ij - mean_j)^2 from the sums of c_i x_ij^2 and of c_i x_ij."""
        blocks, mean = self.blocks, self.blocks.mean
        sums, squares = np.zeros((2, blocks.d))
        total = diagonal(self._space, rows, self.costs, Vector(sums), Squared(squares))
        squares += mean * (total * mean - 2.0 * sums)
        found = np.append(np.maximum(squares, 0.0), blocks.constant**2 * total)[: blocks.size]
        return np.maximum(found / blocks.units**2 + blocks.regular, TINY)
