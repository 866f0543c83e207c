"""Semismooth Newton for soft margins at p = 2: the squared hinge directly, the hinge by proximal points on its dual.

With rows b_i (`CentredRows`), labels y_i and slacks s_i = 1 - y_i b_i.z the problem is ::

    minimise f(z) = 1/2 z'Rz + sum c_i phi_i(s_i),    phi_i'(s) = share_i(s) = min(max(prox_i + sigma s, 0), upper)

where R is the diagonal matrix with a 1 for every weight and a 0 for a free intercept. prox = 0 and upper = inf is the
squared hinge with costs sigma c_i / 2; upper = 1 is the hinge, smoothed by a proximal term of centre prox_i. The dual
variables are alpha_i = c_i share_i. Rows are active where 0 < prox_i + sigma s_i < upper. With v = sum alpha_i y_i b_i
and the active set A, the gradient is g = Rz - v, and a generalised Hessian is H = R + sigma M, M = sum_A c_i b_i b_i'.
A Newton step solves H dz = -g and moves z to the minimum of f along dz; it costs n d + k d^2 with k active rows.

The proximal-point method on the dual of the hinge maximises dual(alpha) - sum c_i (share_i - prox_i)^2 / (2 sigma_i),
where prox_i are the last shares. sigma_i = sigma, but for rows of more than LONG times the usual length it is less in
proportion to the square of the length: as constraints of a large cost, they would make H ill-conditioned. For these
rows the squared hinge has a proximal term, too: share_i(s) = (1 - scale_i) prox_i + scale_i sigma s, with the last
share as prox_i and scale_i < 1. Under both losses the start for many rows is the solution for every 16th of them.

References
----------
O. L. Mangasarian, "A finite Newton method for classification problems", OMS 17, 2002;
S. S. Keerthi, D. DeCoste, "A modified finite Newton method for fast solution of large scale linear SVMs", JMLR 6, 2005;
R. T. Rockafellar, "Augmented Lagrangians and applications of the proximal point algorithm in convex programming",
Math. Oper. Res. 1, 1976; X. Li, D. Sun, K.-C. Toh, "A highly efficient semismooth Newton augmented Lagrangian method
for solving Lasso problems", SIAM J. Optim. 28, 2018.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import scipy.linalg

from ..numerics.sums import row_squares
from ..problem.problem import Problem
from .iterate import Reached
from .linear_systems import TINY, factor
from .rows import LONG, CentredRows

MAX_STEPS = 200  # 5 to 60 are usual; more mean that rounding prevents progress
# Of many rows the problem of every SAMPLE_EVERY-th one is solved first, to the gap SAMPLE_GAP. A larger sample takes
# longer, a smaller one is a worse start.
SAMPLE_EVERY, SAMPLE_GAP = 16, 1e-2
# Points are yielded from the gap `tol` on, whenever the gap has fallen to this share.
REPORT_SHARE = 0.2

_linalg: Any = scipy.linalg  # typed as Any: its annotations allow more types of results than these calls have

Stop = Callable[[], bool]


def semismooth_points(
    problem: Problem,
    rows: CentredRows,
    y: np.ndarray,
    weights: np.ndarray,
    stop: Stop = lambda: False,
    tol: float = 0.0,
    start: tuple[np.ndarray, float] | None = None,
) -> Iterator[Reached]:
    """Yield points (w, b, alpha) of a soft margin at p = 2 that converge to the optimum.

    Parameters
    ----------
    problem : Problem
    rows : CentredRows
    y : ndarray of shape (n,), entries -1.0 and 1.0
    weights : ndarray of shape (n,), positive
        Sample weights.
    stop : callable
        Whether to stop; called between steps.
    tol : float, default=0
        A relative gap: the first point within it is yielded at once, then points of ever smaller gaps. 0, and for small
        problems: only the last point is yielded.
    start : (ndarray of shape (d,), float), default=None
        (w, b) of a warm start.
    """
    hinge, n, size = problem.loss == "hinge", y.size, rows.size
    costs = (problem.caps(weights) if hinge else problem.curvatures(weights)) * rows.unit**2
    costs = np.minimum(np.maximum(costs, TINY), 1.0 / TINY)
    state = _State(rows, y, costs, 1.0 if hinge else np.inf, stop)
    # small problems are solved to the optimum, with a few more steps: a gap of 1e-11 is rounding there
    tol = 1e-11 if rows.copy is not None and n <= 2000 and n * size**2 <= 2e8 else tol
    for gap in (_hinge_gaps if hinge else _squared_gaps)(state, tol, start):
        yield Reached(*rows.primal(state.z), state.alpha / rows.unit**2, gap, tol > 0.0 and gap <= tol)


def _squared_gaps(state: _State, tol: float, start: tuple[np.ndarray, float] | None) -> Iterator[float]:
    """Take steps of Newton's method for the squared hinge; yield the gap where the iterate is a point to report."""
    if start is not None:
        state.go_to(state.rows.coordinates(*start))
    if start is None or not state.gap <= 0.5:
        _find_start(state)
    goal, steps = tol, 0
    while True:
        steps += state.minimise(goal, MAX_STEPS - steps)
        # no step is taken at a gap of exactly 0, below which there is no goal
        end = state.ended or state.gap == 0.0 or steps >= MAX_STEPS or state.stop()
        if end or state.gap <= tol:
            yield state.gap
        if end:
            return
        goal = min(REPORT_SHARE * state.gap, goal)


def _find_start(state: _State) -> None:
    """Move to the solution of a sample of many rows; for few rows take steps from 0, or stages of growing costs.

    Stages are taken where 8 steps do not reach a gap of 1/2, since C is large and the classes are far apart. Each
    starts from the solution of the last one (continuation in C), and the factor of C is squared after an easy one.
    """
    if state.many:
        sample = state.sample()
        _find_start(sample)
        sample.minimise(SAMPLE_GAP, MAX_STEPS)
        state.go_to(sample.z)
        return
    state.go_to(np.zeros(state.rows.size))
    state.minimise(SAMPLE_GAP, 8)
    if state.gap <= 0.5:
        return
    total, growth, z = float(state.costs.sum()), 10.0, np.zeros(state.rows.size)
    sigma = min(total**0.5, 1e6) / total
    while 0.0 < sigma < 1.0 and not state.stop():
        state.go_to(z, sigma=sigma)
        steps = state.minimise(0.5, MAX_STEPS)
        z, growth = state.z, growth * growth if steps <= 3 else 10.0
        sigma *= growth
    state.go_to(z)


def _hinge_gaps(state: _State, tol: float, start: tuple[np.ndarray, float] | None) -> Iterator[float]:
    """Take steps of the proximal-point method for the hinge; yield the gap where the iterate is a point to report.

    A problem is solved until the gradient is a tenth of its first one. sigma grows fast while more rows are active than
    at the optimum, and once the active set is that of the optimum. Three problems in a row that do not reduce the gap
    end the iteration.
    """
    _find_hinge_start(state, start)
    size, steps, idle, least, best = state.z.size, 0, 0, np.inf, None
    max_sigma = 1e5 * max(1.0, 1.0 / float(state.costs.sum())) / float(state.scale.min())
    report = tol if tol else -1.0
    frozen = end = False
    while True:
        # The slacks of active rows are small but not zero. Times a larger sigma they would clip most of these shares,
        # and the rows would become active again one by one: a step with unclipped shares comes first.
        state.evaluate(frozen=frozen)
        if frozen and not state.step():
            state.evaluate()
        first, taken = float(state.gradient @ state.gradient), 0
        while True:
            if state.gap <= report:
                yield state.gap
                report = REPORT_SHARE * state.gap
            end = steps + taken >= MAX_STEPS or state.stop()
            square = float(state.gradient @ state.gradient)
            solved = square <= max(0.01 * first, (1e-14 * state.total) ** 2)
            if end or solved or min(taken, state.unchanged) > 4:  # the rest is rounding
                break
            if end := not state.step():
                break
            taken += 1
        steps, idle = steps + max(taken, 1), idle + 1
        if best is None or state.gap < least:
            idle, least, best = 0, state.gap, (state.z, state.alpha)
        if end or state.gap <= 1e-14 or (least <= 1e-9 and idle >= 3):
            state.z, state.alpha = best  # rounding may have prevented progress
            yield least
            return
        growth, limit = 2.0, max_sigma
        if state.gap <= 1e-5 and state.unchanged:  # the active set is likely that of the optimum
            growth, limit = 30.0, 1e4 * max_sigma
        else:
            if state.count > 4 * size or taken <= 2:
                growth = 7.0
            if state.count == state.y.size:  # no share is clipped yet: f is quadratic
                growth *= 7.0
            growth = growth if taken <= 4 else growth**0.5
        state.prox, state.sigma = state.share, max(state.sigma, min(growth * state.sigma, limit))
        frozen = state.count != state.y.size


def _find_hinge_start(state: _State, start: tuple[np.ndarray, float] | None) -> None:
    """Begin at a warm start, at the solution of a sample, or at w = 0 with balanced shares."""
    if start is None and state.many:
        sample = state.sample()
        for gap in _hinge_gaps(sample, SAMPLE_GAP, None):
            if gap <= SAMPLE_GAP:
                break
        start = sample.rows.primal(sample.z)
    if start is not None:
        state.z = state.rows.coordinates(*start)
        state.set_slack()
        sizes = np.abs(state.slack)
        # the number of active rows: with fewer a problem takes more steps, with more there are more problems
        most = min(sizes.size // 5, 128 * state.z.size)
        width = float(np.partition(sizes, most)[most]) or 1.0
        state.prox, state.sigma = np.full(sizes.size, 0.5) * state.scale, 0.5 / width
        return
    y, costs = state.y, state.costs
    total, signed = float(costs.sum()), float(costs @ y)
    state.sigma = min(0.25, 1e4 / total)
    state.prox = np.full(y.size, 2.0 * state.sigma) * state.scale
    # the heavier class gets smaller shares, with sum y_i c_i share_i = 0
    if state.free and abs(signed) < total:
        ratio = (total - signed) / (total + signed)
        state.prox *= np.where(y > 0.0, min(1.0, ratio), min(1.0, 1.0 / ratio))
    state.slack = np.ones(y.size)


class _State:
    """The current iterate z with its slacks, dual variables and gradient, and Newton steps from it.

    Attributes
    ----------
    prox : ndarray of shape (n,) or float
        The centres of the proximal terms, which are shares; 0 for the squared hinge.
    sigma : float
        The weight of the slacks: the proximal parameter, or a factor of all costs for the squared hinge.
    scale : ndarray of shape (n,) or float
        sigma_i / sigma, less than 1 for long rows.
    mismatch : float
        The part of the gap by shares of long rows that are not yet sigma s_i, under the squared hinge.
    slack : ndarray of shape (n,)
        Updated by the change of every step, so that dual variables become exact even where a slack is smaller than the
        rounding error of a margin.
    active : ndarray of bool of shape (n,)
    gradient : ndarray of shape (size,)
    unchanged : int
        Evaluations since the active set changed.
    """

    def __init__(self, rows: CentredRows, y: np.ndarray, costs: np.ndarray, upper: float, stop: Stop) -> None:
        self.rows, self.y, self.costs, self.upper, self.stop = rows, y, costs, upper, stop
        self.free, self.regular, self.scale = rows.problem.free, rows.regular, np.float64(1.0)
        if rows.copy is not None and (squares := row_squares(rows.copy)).max() > LONG**2:
            self.scale = LONG**2 / np.maximum(squares, LONG**2)
        self.long, self.mismatch = bool(self.scale.min() < 1.0), 0.0
        self.many = y.size >= max(4000, 160 * rows.size)  # ten rows of the sample for each column
        self.z, self.sigma = np.zeros(rows.size), 1.0
        self.prox: np.ndarray | float = 0.0
        self.active = self._counted = np.zeros(y.size, bool)
        self._matrix = self._largest = np.zeros(0)
        self._scaled_costs = costs * self.scale
        self.unchanged, self.ended = 0, False

    def sample(self) -> _State:
        """Return the problem of a part of many rows, with the mean and the unit of all."""
        every = slice(None, None, SAMPLE_EVERY)
        rows, y = self.rows.subset(every), np.ascontiguousarray(self.y[every])
        return _State(rows, y, SAMPLE_EVERY * self.costs[every], self.upper, self.stop)

    def go_to(self, z: np.ndarray, sigma: float = 1.0) -> None:
        """Begin an iteration for the squared hinge at z."""
        self.z, self.sigma, self.ended, self.prox = z, sigma, False, 0.0
        self.set_slack()
        self.evaluate()
        self.unchanged = 0

    def set_slack(self) -> None:
        """Compute slacks 1 - y_i b_i.z from z, without the rounding errors that accumulate from step to step."""
        slack = self.rows.scores(self.z)
        slack *= self.y
        self.slack = np.subtract(1.0, slack, out=slack)

    def evaluate(self, raw: np.ndarray | None = None, frozen: bool = False) -> None:
        """Compute dual variables, gradient and gap from shares before they are clipped, by default those of the slacks.

        Where `frozen` is true the active set is kept: its shares are not clipped, and the others stay.

        The gap is relative to the dual objective. Squared hinge: primal - dual at alpha is g'Rg / 2, computed as such,
        without cancellation. It is divided by the dual objective of the best multiple of alpha. With a free intercept
        v[-1] = sum y_i alpha_i must be 0; scaling one class down costs about |v[-1]| under the hinge, and its square is
        added under the squared hinge.
        """
        if raw is None:
            self.rate = self.sigma * self.scale  # the proximal parameter of each row
            raw = self.rate * self.slack
            raw += self.prox
        self.raw = raw
        share = np.where(self.active, raw, self.prox) if frozen else raw.clip(0.0, self.upper)
        self.share, self.alpha = share, self.costs * share
        v = self.rows.combine(self.y * self.alpha)
        z = self.regular * self.z
        g = self.gradient = z - v
        if frozen:
            return
        active, self.gap = share == raw, np.inf
        self.unchanged = 0 if np.count_nonzero(active != self.active) else self.unchanged + 1
        self.active, self.count, self.total = active, np.count_nonzero(active), float(self.costs @ share)
        uneven, square = abs(float(v[-1])) if self.free else 0.0, float((self.regular * v) @ v)
        if self.upper < np.inf:
            dual = self.total - 0.5 * square
            if dual > 0.0:
                losses = float(self.costs @ np.maximum(self.slack, 0.0))
                self.gap = (abs(0.5 * float(z @ self.z) + losses - dual) + uneven) / dual
        elif self.total > 0.0 and (curvature := square + float(self.alpha @ share) / self.sigma) > 0.0:
            factor = curvature / self.total**2
            if self.long:
                rest = share - self.sigma * np.maximum(self.slack, 0.0)
                self.mismatch = float(self.costs @ (rest * rest)) / self.sigma * factor
            self.gap = float((self.regular * g) @ g) * factor + (uneven / self.total) ** 2 + self.mismatch

    def minimise(self, goal: float, max_steps: int) -> int:
        """Take steps for the squared hinge to the gap `goal`, or until rounding ends them; return their number."""
        for taken in range(max_steps):
            if self.ended or self.gap <= goal or self.stop():
                return taken
            last = self.gap
            self.ended = not self.step()
            if self.mismatch > 0.0 and (
                self.ended or self.mismatch >= 0.99 * self.gap
            ):  # the next proximal problem
                self.prox = (1.0 - self.scale) * self.share
                self.evaluate()
                self.unchanged, self.ended = 0, self.ended and not self.gap < 0.5 * last
            if self.ended:
                return taken
            self.ended = self.unchanged > 1 and self.gap <= 1e-20
            self.ended |= 0.5 * last <= self.gap < np.inf and (self.gap <= 1e-15 or self.unchanged > 2)
        return max_steps

    def step(self) -> bool:
        """Move z to the minimum of f along the Newton direction, and evaluate; return whether f decreases.

        The line search ends where the absolute slope is a tenth of that at its start: less takes more evaluations, and
        near the optimum steps that are not exactly 1.
        """
        # beyond 1,000 columns a factorisation would cost n d^2 + d^3
        dz = self._conjugate_gradients() if self.rows.size > 1000 else self._newton_direction()
        slope = float(self.gradient @ dz)
        if not slope < 0.0:
            return False
        change = self.rows.scores(dz)
        change *= self.y
        t, raw = self._line_minimum(dz, change, -0.1 * slope)
        if not t > 0.0:
            return False
        self.z = self.z + t * dz
        change *= t
        self.slack = self.slack - change
        self.evaluate(raw)
        return True

    def _newton_direction(self) -> np.ndarray:
        """Return dz with H dz = -g; M is updated as rows enter and leave the active set."""
        changed, count, costs = self.active != self._counted, self.count, self._scaled_costs
        moved = np.count_nonzero(changed)
        few = count * self.rows.size**2 <= 1_000_000  # multiplications, which take no longer than an update
        fresh = not self._matrix.size or moved > 0.5 * count or (moved > 0 and few)
        if moved and not fresh:
            self._matrix = self._matrix + self.rows.products(costs, (changed & self.active).nonzero()[0])
            self._largest = np.maximum(self._largest, self._matrix.diagonal())
            self._matrix = self._matrix - self.rows.products(costs, (changed & self._counted).nonzero()[0])
            fresh = not (self._matrix.diagonal() >= 1e-3 * self._largest).all()
        if fresh:  # many rows changed, or the subtraction has cancelled three digits of the diagonal
            self._matrix = self.rows.products(costs, self.active.nonzero()[0])
            self._largest = self._matrix.diagonal()
        self._counted = self.active
        H = self.sigma * self._matrix
        H.flat[:: H.shape[0] + 1] += self.regular
        if self.free and not count:  # R and M are 0 in the intercept
            H[-1, -1] += 1e-2 * self.sigma * float(self.costs.sum())
        _, dz, failed = _linalg.lapack.dposv(H.T, -self.gradient, lower=1)  # in LAPACK's order
        if not failed:
            return dz
        solve = factor(H)  # with a ridge, where rounding has made H indefinite
        return -self.gradient / np.maximum(np.diag(H), TINY) if solve is None else -solve(self.gradient)

    def _conjugate_gradients(self) -> np.ndarray:
        """Return dz with |H dz + g| <= residual |g| by conjugate gradients, preconditioned with the diagonal of H.

        The residual is larger far from the optimum, where rough directions suffice.
        """
        regular, costs = self.regular, np.where(self.active, self.rate * self.costs, 0.0)
        residual = min(max(self.gap**0.5, 1e-3), 0.03) * 0.01**self.unchanged
        inverse = 1.0 / np.maximum(regular + self.rows.column_squares(costs), TINY)
        dz, r = np.zeros(self.z.size), -self.gradient  # r = -g - H dz
        direction = scaled = inverse * r
        square, enough = float(r @ scaled), residual * residual * float(regular @ (r * r))
        for _ in range(2000):
            if not float(regular @ (r * r)) > enough or self.stop():
                break
            product = regular * direction + self.rows.combine(costs * self.rows.scores(direction))
            t = square / float(direction @ product)
            dz, r = dz + t * direction, r - t * product
            scaled = inverse * r
            before, square = square, float(r @ scaled)
            direction = scaled + square / before * direction
        return dz

    def _line_minimum(self, dz: np.ndarray, change: np.ndarray, tolerance: float) -> tuple[float, np.ndarray]:
        """Return the t > 0 that minimises f(z + t dz), where slacks are s_i - t change_i, and the unclipped shares.

        Newton's method from t = 1 on the derivative, which is piecewise linear and increasing; bisection (a tenth where
        the lower end is 0) replaces a step that leaves the bracket. It ends at an absolute derivative of at most
        `tolerance`.
        """
        scaled = self.regular * dz
        linear, quadratic = float(scaled @ self.z), float(scaled @ dz)
        low, high, t, new, raw = 0.0, np.inf, 0.0, 1.0, self.raw
        rate, weighted = self.rate * change, self.costs * change
        for _ in range(20):
            t = new
            raw = self.raw - t * rate
            share = raw.clip(0.0, self.upper)
            first = linear + quadratic * t - float(weighted @ share)
            if abs(first) <= tolerance:
                break
            active = (share == raw).nonzero()[0]
            second = quadratic + float(weighted[active] @ rate[active])
            low, high = (t, high) if first < 0.0 else (low, t)
            new = t - first / second if second > 0.0 else np.inf
            if not low < new < high:
                new = (0.5 * (low + high) if low else 0.1 * high) if high < np.inf else 2.0 * t
            if not (abs(new) < np.inf and new != t):
                break
        return t, raw
