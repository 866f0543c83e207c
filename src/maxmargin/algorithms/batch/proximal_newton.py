"""A proximal Newton method for the squared hinge at p = inf: w is measured in the 1-norm, and few weights are not 0.

With s_i the slacks max(0, 1 - m_i), c_i = 2 C (sample weight i) and P(w) = |w|_1 or 1/2 |w|_1^2 the objective is ::

    P(w) + 1/2 sum c_i s_i^2

A free intercept is eliminated: b is the exact minimiser at every w. The second term is then piecewise quadratic in w,
with gradient -v, v = sum alpha_i y_i x_i, alpha_i = c_i s_i, and Hessian H = sum c_i (x_i - m)(x_i - m)' over the
active rows s_i > 0; m is their weighted mean, or 0 without a free intercept. One step solves ::

    minimise P(u) - v'(u - w) + 1/2 (u - w)'H (u - w)

over a working set of columns, the non-zero ones and those of the largest |v_j|, and searches along u - w. The model is
minimised by coordinate descent with soft thresholds (`descend`), in turn with Newton steps on the non-zero weights
that are set to 0 where they would change their sign. At the optimum v_j = t sign(w_j) for every non-zero weight, and
|v_j| <= t for the others, with t = 1 for |w|_1 and t = |w|_1 for its half square: as this threshold is the same for
all coordinates, a point that no coordinate improves is an optimum for both powers.

For a large C the first steps would make far more weights than needed. The costs therefore grow from stage to stage, and
each stage starts from the solution of the last one (continuation).

Columns are removed for good where the gap proves that their weight is 0 (gap-safe screening). The dual objective has
the term -sum alpha_i^2 / (2 c_i), so that v_j is within r_j = (2 gap sum c_i (x_ij - m_j)^2)^1/2 of its value at the
dual optimum, m here being the weighted mean of all rows, or 0 without a free intercept. The weight is 0 if |v_j| + r_j
is less than 1, or, for the half square, less than the largest |v_k| - r_k.

References
----------
G.-X. Yuan, K.-W. Chang, C.-J. Hsieh, C.-J. Lin, "A comparison of optimization methods and software for large-scale
L1-regularized linear classification", JMLR 11, 2010 (coordinate descent);
G.-X. Yuan, C.-H. Ho, C.-J. Lin, "An improved GLMNET for L1-regularized logistic regression", JMLR 13, 2012;
J. D. Lee, Y. Sun, M. A. Saunders, "Proximal Newton-type methods for minimizing composite functions", SIAM J. Optim. 24,
2014;
E. Ndiaye, O. Fercoq, A. Gramfort, J. Salmon, "Gap safe screening rules for sparsity enforcing penalties", JMLR 18,
2017.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy.sparse as sp

from ...engine.jit import compiled, writable
from ...numerics.sparse_columns import with_constant_column
from ...numerics.sums import Plain
from ...problem.intercept import best_intercept
from ...problem.problem import Problem
from ...solvers.iterate import Point, Reached
from ...solvers.linear_systems import TINY, column_squares, factor, unsigned
from ...solvers.rows import CHUNK_BYTES, multiply_columns

# The least curvature, which avoids a division by 0, and the decrease of a pass, relative to that of the first one, at
# which passes end: a round value, not tuned.
MIN_CURVATURE, LAST_DECREASE = 1e-300, 1e-3


@dataclass(frozen=True)
class Settings:
    """Numerical settings, compared on pcmac, reuters, adult, web and mnist at C in {0.01, 1, 100}.

    Most of them change the times by less than a third there within a factor of two or three.
    """

    # Columns of weight 0 in a working set: at least `added_columns`, and `added_share` of the number of non-zero
    # weights. More columns cost more in every step, with fewer ones more steps are needed.
    added_columns: int = 100
    added_share: float = 0.25
    # Rounds of a step, each of a pass over the working set, at most `passes` over its non-zero weights, and a Newton
    # step. They end when the violation of the optimality conditions is at most this share of that before the step.
    # There are at most `max_rounds`, and `rounds` plus the number of active rows per column: these cost about as much
    # as H. More rounds solve a model more exactly than it holds.
    rounds: int = 3
    max_rounds: int = 50
    passes: int = 20
    violation_share: float = 0.2
    # The costs of the first stage are those with which the largest |v_j| is this multiple of its threshold; from stage
    # to stage they grow by this factor. A stage ends at the gap `stage_gap`. With larger numbers there are fewer
    # stages, of more steps each.
    growth: float = 10.0
    stage_gap: float = 2.0
    # Damping mu: mu times its diagonal is added to H. It is multiplied or divided by `damping_factor`, from
    # `min_damping` on: raised after a step whose length is below `short_step`, and lowered after one of length 1. The
    # iteration ends where a step fails with more than `max_damping`. Round values, not tuned.
    min_damping: float = 1e-6
    damping_factor: float = 10.0
    max_damping: float = 1e3
    short_step: float = 0.3
    newton_damping: float = 1e-3  # the first one of the Newton steps on the model; it changes in the same way
    max_halvings: int = 12  # of the length of a step, at most; the next step then has a larger damping
    max_trials: int = 4  # of a Newton step on the non-zero weights, with rising damping
    # A point of the last stage is yielded when its gap is at most this share of that of the last one, or after so many
    # steps: more points cost more certificates, with fewer a fit ends later at `tol`.
    report_share: float = 0.2
    report_steps: int = 8
    max_steps: int = 500  # 5 to 30 are usual, about 100 for C = 100 on text
    # A relative decrease of the objective, and a gap, that are rounding.
    decrease_rounding: float = 1e-14
    gap_rounding: float = 1e-13
    # Screening needs a bound that is below the threshold by this share: v_j has rounding errors of about 1e-13.
    screening_slack: float = 1e-9
    # Share of non-zero entries in the working set from which BLAS multiplies a dense copy faster than a loop over the
    # entries of sparse rows.
    dense_share: float = 0.25


SETTINGS = Settings()


@compiled()
def descend(H, gradient, x, power, total, passes):
    """Minimise P(x) + gradient.(x' - x) + 1/2 (x' - x)'H (x' - x) by coordinate descent; return |x|_1.

    The first pass is over all coordinates, the others over those that are not 0. They end when the largest decrease is
    at most LAST_DECREASE times that of the first pass.

    Parameters
    ----------
    H : ndarray of shape (k, k)
    gradient, x : ndarray of shape (k,)
        The point, and the gradient of the quadratic function there. Both are updated.
    power : int
        1: P = |x|_1; 2: its half square.
    total : float
        |x|_1.
    passes : int
        Largest number of passes over the non-zero coordinates.
    """
    first = 0.0
    for turn in range(passes + 1):
        largest = 0.0
        for j in range(x.size):
            old = x[j]
            if old == 0.0 and turn > 0:
                continue
            curvature, threshold = max(H[j, j], MIN_CURVATURE), 1.0
            pull = curvature * old - gradient[j]
            if power == 2:  # 1/2 (rest + |x_j|)^2
                threshold = total - abs(old)
                curvature += 1.0
            new = 0.0
            if pull > threshold:
                new = (pull - threshold) / curvature
            elif pull < -threshold:
                new = (pull + threshold) / curvature
            change = new - old
            if change != 0.0:
                x[j] = new
                total += abs(new) - abs(old)
                row = H[j]
                for k in range(x.size):
                    gradient[k] += change * row[k]
                largest = max(largest, curvature * change * change)
        if turn == 0:
            first = largest
        elif largest <= LAST_DECREASE * first:
            break
    return total


def proximal_newton_points(
    problem: Problem,
    X: Any,
    y: np.ndarray,
    weights: np.ndarray,
    interrupted: Callable[[], bool] = lambda: False,
    tol: float = 0.0,
    settings: Settings = SETTINGS,
) -> Iterator[Reached]:
    """Yield the solution of each stage, then iterates of the last one, in the problem's own units.

    Parameters
    ----------
    problem : Problem
        Squared hinge at p = inf, soft margin.
    X : ndarray or CSR matrix of shape (n, d)
    y : ndarray of shape (n,), entries -1.0 and 1.0
        Both classes, where the intercept is free.
    weights : ndarray of shape (n,)
        Sample weights, all positive.
    interrupted : callable
        Returns whether to stop; called before every step.
    tol : float, default=0
        Gap at which the caller stops.
    settings : Settings
    """
    state = _State(problem, with_constant_column(X, problem.rho), y, weights, settings)
    state.begin(state.first_share())
    least = np.inf  # the gap of the last point
    for step in range(settings.max_steps):
        last = state.stage is problem
        near = last and tol > 0.0 and state.gap <= tol
        if last and (near or state.gap <= settings.report_share * least or step % settings.report_steps == 0):
            yield Reached(*state.point(), state.gap, near)
            least = state.gap
        if (last and state.gap <= settings.gap_rounding) or interrupted():
            break
        if not last and state.gap <= settings.stage_gap:
            yield Reached(*state.point(), np.inf, False)
            state.begin(min(settings.growth * state.stage.C / problem.C, 1.0))
        elif not state.step(interrupted):
            if last:
                break
            state.begin(1.0)  # rounding ends the stage
    if state.gap < least:
        yield Reached(*state.point(), state.gap if state.stage is problem else np.inf, False)


class _State:
    """The current iterate, and the working set of one step.

    Attributes
    ----------
    stage : Problem
        The problem with the costs of the stage.
    w, z : ndarray of shape (d,) and (n,)
        Weights, that of an augmented intercept the last of them, and the scores X w.
    b : float
        The best free intercept at w.
    alpha, v : ndarray of shape (n,) and (d,)
        Dual variables, and sum alpha_i y_i x_i.
    gap : float
        Relative gap of the stage.
    """

    def __init__(
        self, problem: Problem, X: Any, y: np.ndarray, weights: np.ndarray, settings: Settings
    ) -> None:
        self.problem = self.stage = problem
        self.X, self.y, self.weights, self.settings = X, y, weights, settings
        self.damping, self.newton_damping = 0.0, settings.newton_damping
        self.proved = np.zeros(X.shape[1], bool)  # columns whose weight is 0 at the optimum
        self.radius: np.ndarray | None = None
        self.memory = np.empty(0)
        self.costs = 2.0 * problem.C * weights
        self.move_to(np.zeros(X.shape[1]), np.zeros(y.size))

    def move_to(self, w: np.ndarray, z: np.ndarray) -> None:
        """Set the iterate to w with the scores z, and its dual variables."""
        self.w, self.z, self.b = w, z, self.intercept(z)
        self.slack = np.maximum(1.0 - self.y * (z + self.b), 0.0)
        self.alpha = self.costs * self.slack
        self.v = Plain.combine(self.X, self.alpha * self.y)

    def intercept(self, z: np.ndarray) -> float:
        """Return the best free intercept for the scores z; 0 where it is not free."""
        return best_intercept(self.problem, z, self.y, self.weights) if self.problem.free else 0.0

    def objective(self, w: np.ndarray, z: np.ndarray, b: float) -> float:
        """Return the objective of the stage."""
        return self.stage.primal(self.stage.penalty(float(np.abs(w).sum())), self.y * (z + b), self.weights)

    def begin(self, share: float) -> None:
        """Begin the stage with this share of the costs."""
        before = self.stage.C
        self.stage = replace(self.problem, C=share * self.problem.C) if share < 1.0 else self.problem
        self.costs = 2.0 * self.stage.C * self.weights
        ratio = self.stage.C / before
        self.alpha, self.v = ratio * self.alpha, ratio * self.v
        self.set_gap()

    def set_gap(self) -> None:
        """Compute the gap at the iterate, and at the last stage remove the columns that it proves to have no weight."""
        stage = self.stage
        self.upper, self.multiple, self.lower = self.objective(self.w, self.z, self.b), 1.0, 0.0
        if self.alpha.any():
            length = float(np.abs(self.v).max(initial=0.0))
            self.multiple = t = stage.multiple(self.alpha, length * length, self.weights)
            self.lower = stage.dual((t * length) ** 2, t * self.alpha, self.weights)
        self.gap = stage.gap(self.lower, self.upper)
        if stage is self.problem and np.isfinite(self.gap):
            self.screen()

    def first_share(self) -> float:
        """Return the share of the costs in the first stage, at most 1: see `Settings.growth`."""
        largest, growth = float(np.abs(self.v).max(initial=0.0)), self.settings.growth
        # v is proportional to the costs. Its threshold is 1, or, for the half square, |w|_1 at the best multiple of v
        threshold = 1.0 if self.problem.power == 1 else float(self.alpha @ self.slack) / max(largest, TINY)
        return min(growth * threshold / largest, 1.0) if largest > 0.0 else 1.0

    def point(self) -> Point:
        """Return the iterate, with the best multiple of its dual variables."""
        w, b, alpha = self.w.copy(), self.b, self.multiple * self.alpha
        return (
            Point(w[:-1], self.problem.rho * float(w[-1]), alpha) if self.problem.rho else Point(w, b, alpha)
        )

    def screen(self) -> None:
        """Remove the columns whose weight is 0 by the gap; the iterate moves where one of them has a weight."""
        if self.radius is None:
            squares = column_squares(self.X, self.costs)
            if self.problem.free:
                sums = Plain.combine(self.X, self.costs)
                squares = np.maximum(squares - sums * (sums / self.costs.sum()), 0.0)
            self.radius = np.sqrt(2.0 * squares)
        size, away = self.multiple * np.abs(self.v), max(self.upper - self.lower, 0.0) ** 0.5 * self.radius
        bound = 1.0 if self.problem.power == 1 else float((size - away).max(initial=0.0))
        self.proved |= size + away < bound * (1.0 - self.settings.screening_slack)
        if self.w[self.proved].any():
            w = np.where(self.proved, 0.0, self.w)
            self.move_to(w, self.z + Plain.scores(self.X, w - self.w))
            self.set_gap()

    def step(self, interrupted: Callable[[], bool]) -> bool:
        """Minimise the model on a working set and search along the step; return False where rounding prevents it."""
        settings = self.settings
        columns = self.working_set()
        H = self.hessian(columns)
        diagonal = np.diag(H).copy()
        while True:
            np.fill_diagonal(H, (1.0 + self.damping) * diagonal)
            w = self.w.copy()
            w[columns] = self.minimise_model(H, columns, interrupted)
            length = self.search(w)
            if length == 1.0:
                self.damping /= settings.damping_factor
                self.damping *= self.damping > settings.min_damping
            elif length < settings.short_step:
                self.damping = max(settings.damping_factor * self.damping, settings.min_damping)
            if length > 0.0 or self.damping > settings.max_damping or interrupted():
                return length > 0.0

    def working_set(self) -> np.ndarray:
        """Return the sorted columns of the non-zero weights and of the largest |v_j|."""
        settings, score = self.settings, np.where(self.proved, -1.0, np.abs(self.v))
        filled = self.w != 0.0
        score[filled] = np.inf
        weighted = np.count_nonzero(filled)
        count = weighted + max(settings.added_columns, int(settings.added_share * weighted))
        columns = np.flatnonzero(score >= 0.0)
        if columns.size > count:
            columns = np.sort(columns[np.argpartition(-score[columns], count)[:count]])
        return columns

    def hessian(self, columns: np.ndarray) -> np.ndarray:
        """Return H on these columns, in memory that the next call overwrites."""
        rows, k, X = np.flatnonzero(self.slack > 0.0), columns.size, self.X
        costs, free = self.costs[rows], self.problem.free and rows.size > 0
        if self.memory.size < k * k:
            self.memory = np.empty(2 * k * k)
        H = self.memory[: k * k].reshape(k, k)
        if sp.issparse(X) and X.nnz < self.settings.dense_share * X.shape[0] * X.shape[1]:
            place = np.full(X.shape[1], k, np.uint32)
            place[columns] = np.arange(k)
            found, total = np.empty(k, np.uint32), float(costs.sum()) if free else np.inf
            sums, values = np.zeros(k), np.empty(k)
            indptr, indices = unsigned(X.indptr), unsigned(X.indices)
            multiply_columns(
                indptr, indices, writable(X.data), rows, costs, total, place, found, values, sums, H
            )
            return H
        H[:], mean = 0.0, np.zeros(k)
        if free:
            every = np.zeros(self.y.size)
            every[rows] = costs / costs.sum()
            mean = Plain.combine(X, every)[columns]
        chunk = max(1, CHUNK_BYTES // (8 * max(k, 1)))
        for first in range(0, rows.size, chunk):
            some = slice(first, first + chunk)
            block = X[rows[some]][:, columns].toarray() if sp.issparse(X) else X[np.ix_(rows[some], columns)]
            block = (block - mean) * np.sqrt(costs[some])[:, None]
            H += block.T @ block
        return H

    def minimise_model(
        self, H: np.ndarray, columns: np.ndarray, interrupted: Callable[[], bool]
    ) -> np.ndarray:
        """Return the weights of these columns that nearly minimise the model."""
        settings, power = self.settings, self.problem.power
        x, gradient = self.w[columns], -self.v[columns]
        total = float(np.abs(x).sum())
        goal = settings.violation_share * _violation(gradient, x, total if power == 2 else 1.0)
        rounds = settings.rounds + int(np.count_nonzero(self.slack)) // max(columns.size, 1)
        for _ in range(min(rounds, settings.max_rounds)):
            total = descend(H, gradient, x, power, total, settings.passes)
            if _violation(gradient, x, total if power == 2 else 1.0) <= goal or interrupted():
                break
            self.newton_step(H, gradient, x)
            total = float(np.abs(x).sum())
        return x

    def newton_step(self, H: np.ndarray, gradient: np.ndarray, x: np.ndarray) -> None:
        """Move x and the gradient by a Newton step of the model on the non-zero weights, with a decrease.

        Weights that would change their sign become 0. The damping rises until the model decreases.
        """
        settings, power, filled = self.settings, self.problem.power, np.flatnonzero(x)
        signs, old, rows = np.sign(x[filled]), x[filled], H[filled]
        total = float(np.abs(old).sum())
        slope = gradient[filled] + (total if power == 2 else 1.0) * signs
        matrix = rows[:, filled] + np.outer(signs, signs) if power == 2 else rows[:, filled]
        diagonal = np.diag(matrix).copy()
        for _ in range(settings.max_trials if filled.size else 0):
            np.fill_diagonal(matrix, (1.0 + self.newton_damping) * diagonal)
            solve = factor(matrix)
            if solve is not None:
                new = old - solve(slope)
                crossed = new * signs < 0.0
                new[crossed] = 0.0
                change = (new - old) @ rows
                size, moved = float(np.abs(new).sum()), new - old
                linear = float((gradient + 0.5 * change)[filled] @ moved)
                # without a change of sign the model decreases, even by less than rounding of this comparison
                if not crossed.any() or linear + self.problem.penalty(size) < self.problem.penalty(total):
                    x[filled] = new
                    gradient += change
                    self.newton_damping /= settings.damping_factor
                    return
            self.newton_damping = max(settings.damping_factor * self.newton_damping, settings.min_damping)

    def search(self, w: np.ndarray) -> float:
        """Move along the line to w to a smaller objective; return the length, 0.0 where there is none.

        The length is halved until the objective decreases by more than rounding. A whole step whose change is rounding
        is taken if it reduces the gap, which is of the order of the root of the decrease.
        """
        rounding = self.upper * self.settings.decrease_rounding
        # the sum has the rounding error of the step only, so that v at w is that of the model where this is solved
        enough, z, length = self.upper - rounding, self.z + Plain.scores(self.X, w - self.w), 1.0
        if abs(self.objective(w, z, self.intercept(z)) - self.upper) <= rounding:
            before, gap = (self.w, self.z), self.gap
            self.move_to(w, z)
            self.set_gap()
            if self.gap < gap:
                return 1.0
            self.move_to(*before)
            self.set_gap()
            return 0.0
        for _ in range(self.settings.max_halvings):
            # at length 1 these are w and z themselves, with their zeros
            trial = w if length == 1.0 else self.w + length * (w - self.w)
            scores = z if length == 1.0 else self.z + length * (z - self.z)
            if self.objective(trial, scores, self.intercept(scores)) < enough:
                self.move_to(trial, scores)
                self.set_gap()
                return length
            length *= 0.5
        return 0.0


def _violation(gradient: np.ndarray, x: np.ndarray, threshold: float) -> float:
    """Return the largest violation of the optimality conditions of the model with this threshold."""
    inside = np.maximum(np.abs(gradient) - threshold, 0.0)
    return float(np.where(x != 0.0, np.abs(gradient + threshold * np.sign(x)), inside).max(initial=0.0))
