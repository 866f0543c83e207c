"""Newton's method for soft margins at every finite p, on hinge losses that are smoothed less and less.

A stage minimises |w|_q^2 / 2 or |w|_q, plus sum C s_i phi(m_i), m_i = y_i (w.x_i + b). With the slack
e = max(1 - m, 0), the smoothed hinge phi is e^2 / (2 width) up to the width, and e - width / 2 above it. The dual
variables -C s_i phi' are then within their caps; they are feasible for the hinge itself, and the gap is at most the
smoothing error, sum alpha_i width / 2. For the squared hinge, phi is e^2 in every stage.

The Hessian is that of the penalty, a diagonal plus a matrix of rank one, plus the sum over the rows of positive
curvature, which are those of margins between 1 - width and 1: they become fewer from stage to stage. At p = 1, q-norms
with growing q replace the maximum norm, since |w|_inf <= |w|_q <= d^(1/q) |w|_inf.

References
----------
O. Chapelle, "Training a support vector machine in the primal", Neural Computation 19, 2007 (Newton's method for the
squared hinge and a smoothed hinge);
Y. Nesterov, "Smooth minimization of non-smooth functions", Math. Program. 103, 2005 (the dual of a smoothed loss).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from ...numerics.norms import norm
from ...problem.problem import Problem
from ...solvers.iterate import Point
from ...solvers.linear_systems import signed_rows, solver, woodbury_solver


@dataclass(frozen=True)
class Settings:
    """Numerical settings, chosen on the data sets of `benchmarks.norm`."""

    # Width of the first smoothed hinge, and its factor from stage to stage: a larger factor makes more stages, each of
    # which starts nearer to its minimum.
    first_width: float = 1.0
    width_factor: float = 0.25
    min_width: float = 1e-9
    # A stage ends when the squared Newton decrement is at most this share of the smoothing error. Dual variables are
    # less accurate than the objective: with 1e-2, their bound was off by 1 % and more on adult (p = 1.2).
    decrement_share: float = 1e-4
    # At p = 1, exponent of the first norm that replaces the maximum norm of w; it is divided by `width_factor` from
    # stage to stage. A larger one starts farther from its minimum.
    first_exponent: float = 8.0
    max_steps: int = 50  # of a stage, where 5 to 30 are usual
    max_failures: int = 6  # stages in a row that reach `max_steps`, after which the method ends
    max_trials: int = 30  # lengths of one line search, where 1 to 4 are usual
    # A length is accepted where the derivative along the step is at most this share of that at its start.
    slope_share: float = 0.5
    # Least |w_j| / |w|_q in the curvature of the penalty, which is infinite at w_j = 0 for q < 2, and least curvature
    # for q > 2, where it is 0 there. They bound the condition of the Hessian, and leave a direction of descent.
    min_ratio: float = 1e-7
    min_curvature: float = 1e-4


SETTINGS = Settings()


def smoothed_newton_points(
    problem: Problem,
    X: Any,
    y: np.ndarray,
    weights: np.ndarray,
    interrupted: Callable[[], bool] = lambda: False,
    start: tuple[np.ndarray, float] | None = None,
    settings: Settings = SETTINGS,
) -> Iterator[Point]:
    """Yield the minimiser of every stage with its dual variables.

    Parameters
    ----------
    problem : Problem
        Soft, with p < inf.
    X : ndarray or CSR matrix of shape (n, d)
        A step costs n min(n, d) d at most.
    y : ndarray of shape (n,), entries -1.0 and 1.0
    weights : ndarray of shape (n,), positive
        Sample weights.
    interrupted : callable
        Returns whether to stop; called before every step.
    start : (ndarray of shape (d,), float), default=None
        (w, b) to begin with, w other than 0; None: the sum of all patterns, divided by its norm.
    settings : Settings
    """
    A = signed_rows(problem, X, y)
    if start is None:
        w, b = A.T @ weights, 0.0
        w = w / (norm(w, problem.q) or 1.0)
    else:
        w, b = problem.weights(*start), start[1] if problem.free else 0.0
    q = min(problem.q, settings.first_exponent)
    stage = _Stage(problem, q, A, y, problem.C * weights, settings.first_width, settings)
    iterate, failures = _Iterate(w, b, A @ w + b * y), 0
    while stage.width > settings.min_width and norm(w, problem.q) > 0.0:
        alpha = stage.losses(iterate.margins)[0]
        for _ in range(settings.max_steps):
            if interrupted():
                return
            try:
                step, decrement, alpha = stage.newton(iterate)
                if problem.power == 1 and decrement > 2.0 * stage.value(iterate):
                    step, decrement, alpha = stage.newton(iterate, damped=True)
            except np.linalg.LinAlgError:
                return
            if not decrement > 0.0:  # rounding
                break
            t = stage.line_search(iterate, step, decrement)
            iterate = iterate.moved(t, step)
            if t == 0.0 or decrement <= settings.decrement_share * 0.5 * stage.width * float(alpha.sum()):
                failures = 0
                break
        else:
            failures += 1
            if failures >= settings.max_failures:
                return
        caps = stage.costs if problem.loss == "hinge" else np.inf
        w, b = iterate.w, iterate.b
        yield Point(w, b, np.clip(alpha, 0.0, caps)).without_constant(problem)
        q = min(problem.q, stage.q / settings.width_factor)
        stage = stage._replace(q=q, width=settings.width_factor * stage.width)


class _Iterate(NamedTuple):
    """An iterate, or a step: w of shape (d,), b, and the margins of all rows or their changes, of shape (n,)."""

    w: np.ndarray
    b: float
    margins: np.ndarray

    def moved(self, t: float, step: _Iterate) -> _Iterate:
        """Return self + t step."""
        return _Iterate(self.w + t * step.w, self.b + t * step.b, self.margins + t * step.margins)


class _Stage(NamedTuple):
    """The smoothed problem of one stage; A has the rows y_i x_i, `costs` are C s_i."""

    problem: Problem
    q: float
    A: Any
    y: np.ndarray
    costs: np.ndarray
    width: float
    settings: Settings

    def losses(self, margins: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return -phi' and phi'' of every row, times its cost, each of shape (n,)."""
        slack = 1.0 - margins
        if self.problem.loss == "squared_hinge":
            return 2.0 * self.costs * np.maximum(slack, 0.0), np.where(slack > 0.0, 2.0 * self.costs, 0.0)
        inside = (slack > 0.0) & (slack < self.width)
        curvature = np.where(inside, self.costs / self.width, 0.0)
        return self.costs * np.clip(slack / self.width, 0.0, 1.0), curvature

    def link(self, w: np.ndarray) -> np.ndarray:
        """Return the gradient of the penalty: g or |w|_q g, with g_j = sign(w_j) (|w_j| / |w|_q)^(q-1)."""
        length = norm(w, self.q)
        if not length > 0.0:
            return np.zeros(w.size)
        g = np.sign(w) * (np.abs(w) / length) ** (self.q - 1.0)
        return g if self.problem.power == 1 else length * g

    def value(self, iterate: _Iterate) -> float:
        """Return the smoothed objective."""
        slack = np.maximum(1.0 - iterate.margins, 0.0)
        if self.problem.loss == "squared_hinge":
            losses = slack * slack
        else:
            losses = np.where(slack < self.width, 0.5 * slack * slack / self.width, slack - 0.5 * self.width)
        return self.problem.penalty(norm(iterate.w, self.q)) + float(self.costs @ losses)

    def newton(self, iterate: _Iterate, damped: bool = False) -> tuple[_Iterate, float, np.ndarray]:
        """Return Newton's step, the squared Newton decrement, and the dual variables of the linear model at its end.

        The Hessian of |w|^2 / 2 is (q - 1) diag(u^(q-2)) - (q - 2) g g', u = |w| / |w|_q, and that of |w| is
        (q - 1) (diag(u^(q-2)) - g g') / |w|_q. The matrix of rank one is a border of the linear system, as is b. In the
        linear model sum alpha_i y_i = 0, and sum alpha_i y_i x_i is the gradient of the penalty.
        """
        problem, w, q = self.problem, iterate.w, self.q
        alpha, curvature = self.losses(iterate.margins)
        slope = self.link(w) - self.A.T @ alpha
        length = norm(w, q)
        ratio = np.maximum(np.abs(w) / length, self.settings.min_ratio)
        diagonal = np.maximum((q - 1.0) * ratio ** (q - 2.0), self.settings.min_curvature)
        rank_one = q - 2.0
        if problem.power == 1:
            diagonal, rank_one = diagonal / length, (rank_one if damped else q - 1.0) / length
        zone = np.flatnonzero(curvature > 0.0)
        rows, weight = self.A[zone], curvature[zone]
        # borders: columns, diagonal of the corner, right-hand sides
        borders, corner, sides = [], [], []
        if rank_one != 0.0:
            borders.append(np.sign(w) * ratio ** (q - 1.0))
            corner.append(1.0 / rank_one)
            sides.append(0.0)
        free = problem.free and zone.size > 0
        if free:
            borders.append(rows.T @ (weight * self.y[zone]))
            corner.append(float(weight.sum()))
            sides.append(float(alpha @ self.y))
        solve = (woodbury_solver if zone.size < w.size else solver)(rows, weight, diagonal)
        dw, db = solve(-slope), 0.0
        if borders:
            C = np.column_stack(borders)
            KC = solve(C)
            z = np.linalg.solve(np.diag(corner) - C.T @ KC, np.array(sides) - C.T @ dw)
            dw, db = dw - KC @ z, float(z[-1]) if free else 0.0
        change = self.A @ dw + db * self.y
        decrement = -float(slope @ dw) + (sides[-1] * db if free else 0.0)
        return _Iterate(dw, db, change), decrement, alpha - curvature * change

    def line_search(self, iterate: _Iterate, step: _Iterate, decrement: float) -> float:
        """Return a length at which the derivative along the step is small (`slope_share`), by false position.

        The derivative increases, and is -decrement at the iterate.
        """
        low, high, t, at_low, at_high, before = 0.0, np.inf, 1.0, -decrement, np.inf, self.value(iterate)
        for _ in range(self.settings.max_trials):
            new = iterate.moved(t, step)
            slope = float(self.link(new.w) @ step.w - self.losses(new.margins)[0] @ step.margins)
            small = abs(slope) <= self.settings.slope_share * decrement
            if small and (slope <= 0.0 or self.value(new) <= before):
                return t
            if slope > 0.0:
                high, at_high = t, slope
            else:
                low, at_low = t, slope
            if high == np.inf:
                t *= 2.0
                continue
            # at least a tenth of the bracket from both ends, since the derivative is far from linear
            t = low - at_low * (high - low) / (at_high - at_low)
            t = min(max(t, 0.9 * low + 0.1 * high), 0.1 * low + 0.9 * high)
        return low
