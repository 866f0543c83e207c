"""Working sets for the squared hinge at p = inf: w is measured in the 1-norm, and few weights are not 0.

With slacks s_i = max(0, 1 - m_i), c_i = 2 C (sample weight i) and P(w) = |w|_1 or 1/2 |w|_1^2 the objective is ::

    P(w) + 1/2 sum c_i s_i^2

A free intercept is eliminated: b is the exact minimiser at every w. The second term is then piecewise quadratic in w,
with gradient -v, v = sum alpha_i y_i x_i, alpha_i = c_i s_i, and Hessian H = sum c_i (x_i - m)(x_i - m)' over the
active rows s_i > 0; m is their weighted mean, or 0 without a free intercept. One step nearly minimises ::

    P(u) - v'(u - w) + 1/2 (u - w)'H (u - w)

over a working set of columns, the non-zero ones and those of the largest |v_j|, and searches along u - w. The model is
minimised by coordinate descent with soft thresholds (`descend`), in turn with Newton steps on the non-zero weights
that are set to 0 where they would change their sign. At the optimum v_j = t sign(w_j) for every non-zero weight, and
|v_j| <= t for the others, with t = 1 for |w|_1 and t = |w|_1 for its half square.

For a large C the first steps would make far more weights than needed. The costs therefore grow from stage to stage, and
each stage starts from the solution of the last one (continuation).

References
----------
G.-X. Yuan, K.-W. Chang, C.-J. Hsieh, C.-J. Lin, "A comparison of optimization methods and software for large-scale
L1-regularized linear classification", JMLR 11, 2010 (coordinate descent);
G.-X. Yuan, C.-H. Ho, C.-J. Lin, "An improved GLMNET for L1-regularized logistic regression", JMLR 13, 2012.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy.sparse as sp

from ..engine.jit import compiled
from ..numerics.columns import with_constant_column
from ..numerics.sums import Plain
from ..problem.problem import Problem, best_intercept
from .iterate import Point, Reached
from .linear_systems import TINY, factor, sparse_gram

# The numbers were measured on pcmac, adult, web, usps and madelon at C in {0.01, 1, 100}; twice or half of them changes
# most times by less than a third.
# Growth of the costs from stage to stage (one stage takes up to five times as long), and the gap of a stage.
GROWTH, STAGE_GAP = 10.0, 2.0
LEAST_DAMPING, MOST_DAMPING = 1e-6, 1e3  # of H, relative to its diagonal, by factors of 10
ROUNDING = 1e-14  # relative changes of the objective that are rounding, and a tenth of such a gap


@dataclass(frozen=True)
class _Iterate:
    """Weights w with the scores z = X w, and the best free intercept b, dual variables and v of a stage."""

    stage: Problem
    w: np.ndarray
    z: np.ndarray
    b: float
    alpha: np.ndarray
    slack: np.ndarray
    v: np.ndarray
    objective: float
    gap: float
    multiple: float  # the t of the largest dual objective at t alpha

    @property
    def point(self) -> Point:
        return Point(self.w.copy(), self.b, self.multiple * self.alpha).without_constant(self.stage)


class _Rows:
    """Rows with a constant coordinate, their labels and weights: evaluates iterates and Hessians on them."""

    def __init__(self, problem: Problem, X: Any, y: np.ndarray, weights: np.ndarray) -> None:
        self.problem, self.X = problem, with_constant_column(X, problem.rho)
        self.y, self.weights = y, weights

    def objective(self, stage: Problem, w: np.ndarray, z: np.ndarray) -> tuple[float, float]:
        """Return the objective with the best free intercept, and this intercept."""
        b = best_intercept(stage, z, self.y, self.weights) if stage.free else 0.0
        return stage.primal(float(np.abs(w).sum()), self.y * (z + b), self.weights), b

    def at(self, stage: Problem, w: np.ndarray, z: np.ndarray) -> _Iterate:
        """Return the iterate w of a stage."""
        objective, b = self.objective(stage, w, z)
        slack = np.maximum(1.0 - self.y * (z + b), 0.0)
        alpha = stage.curvatures(self.weights) * slack
        v = Plain.combine(self.X, alpha * self.y)
        length, t, lower = float(np.abs(v).max(initial=0.0)), 1.0, 0.0
        if alpha.any():
            t, lower = stage.best_dual(alpha, length, self.weights)
        return _Iterate(stage, w, z, b, alpha, slack, v, objective, stage.gap(lower, objective), t)

    def hessian(self, now: _Iterate, columns: np.ndarray) -> np.ndarray:
        """Return H on these columns."""
        rows = np.flatnonzero(now.slack > 0.0)
        costs = now.stage.curvatures(self.weights)[rows]
        if sp.issparse(self.X):
            A = sp.csr_array(self.X)[rows][:, columns]
            # its last row and column are those of a constant 1
            H = sparse_gram(A, costs, np.arange(rows.size))
            H, sums = H[:-1, :-1], H[-1, :-1]
            return H - np.outer(sums, sums / max(costs.sum(), TINY)) if now.stage.free else H.copy()
        A = self.X[np.ix_(rows, columns)]
        A = (A - costs @ A / max(costs.sum(), TINY) if now.stage.free else A) * np.sqrt(costs)[:, None]
        return A.T @ A

    def search(self, now: _Iterate, w: np.ndarray) -> tuple[_Iterate | None, float]:
        """Return the iterate on the line to w, and the length of the step; None where rounding prevents any.

        The length is halved until the objective decreases. A whole step whose change is rounding is taken if it reduces
        the gap, which is of the order of the root of the decrease.
        """
        # the sum has the rounding error of the step only, so that v at w is that of the model where this is solved
        moved, rounding = Plain.scores(self.X, w - now.w), ROUNDING * now.objective
        objective, length = self.objective(now.stage, w, now.z + moved)[0], 1.0
        if abs(objective - now.objective) <= rounding:
            after = self.at(now.stage, w, now.z + moved)
            return (after, length) if after.gap < now.gap else (None, 0.0)
        while objective >= now.objective - rounding and length > 1e-3:
            length *= 0.5
            objective = self.objective(now.stage, now.w + length * (w - now.w), now.z + length * moved)[0]
        if objective >= now.objective - rounding:
            return None, 0.0
        if length < 1.0:  # at length 1 these are w itself, with its zeros
            w, moved = now.w + length * (w - now.w), length * moved
        return self.at(now.stage, w, now.z + moved), length


def l1_points(
    problem: Problem,
    X: Any,
    y: np.ndarray,
    weights: np.ndarray,
    interrupted: Callable[[], bool] = lambda: False,
    tol: float = 0.0,
) -> Iterator[Reached]:
    """Yield the solution of each stage, then iterates of the last one whose gap has fallen to a third.

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
    """
    rows = _Rows(problem, X, y, weights)
    now = rows.at(problem, np.zeros(rows.X.shape[1]), np.zeros(y.size))
    # v is proportional to the costs: in the first stage its largest entry is GROWTH times the threshold, which is 1,
    # or, for the half square, |w|_1 at the best multiple of v
    largest = max(float(np.abs(now.v).max(initial=0.0)), TINY)
    threshold = 1.0 if problem.power == 1 else float(now.alpha @ now.slack) / largest
    C, least, damping, model_damping = GROWTH * threshold / largest * problem.C, np.inf, 0.0, 1e-3
    for step in range(500):  # 5 to 30 are usual, about 200 for C = 100 on text
        if step == 0 or (now.stage is not problem and now.gap <= STAGE_GAP):
            now = rows.at(replace(problem, C=C) if C < problem.C else problem, now.w, now.z)
            C *= GROWTH
        last = now.stage is problem
        if last and (now.gap <= max(tol, least / 3.0) or least == np.inf):
            yield Reached(*now.point, now.gap, 0.0 < now.gap <= tol)
            least = now.gap
        elif not last and now.gap <= STAGE_GAP:
            yield Reached(*now.point, np.inf, False)
            continue
        if interrupted() or (last and now.gap <= 10.0 * ROUNDING):
            break
        columns, after, w = _working_set(now), None, now.w.copy()
        H = rows.hessian(now, columns)
        diagonal = np.diag(H).copy()
        while after is None and damping <= MOST_DAMPING and not (damping and interrupted()):
            np.fill_diagonal(H, (1.0 + damping) * diagonal)
            w[columns], model_damping = _minimise(problem, H, now.v[columns], now.w[columns], model_damping)
            after, length = rows.search(now, w)
            if length < 0.3:
                damping = max(10.0 * damping, LEAST_DAMPING)
            elif length == 1.0:
                damping *= 0.1 * (damping > LEAST_DAMPING)
        if after is None and last:
            break
        now = after or rows.at(problem, now.w, now.z)  # rounding ends the stage
        damping = min(damping, MOST_DAMPING)
    if now.gap < least:
        yield Reached(*now.point, now.gap if now.stage is problem else np.inf, False)


def _working_set(now: _Iterate) -> np.ndarray:
    """Return the sorted columns of the non-zero weights and of the largest |v_j|, 100 or a quarter of the former."""
    score, weighted = np.where(now.w != 0.0, np.inf, np.abs(now.v)), np.count_nonzero(now.w)
    count = weighted + max(100, weighted // 4)
    return np.arange(score.size) if score.size <= count else np.sort(np.argpartition(-score, count)[:count])


def _minimise(
    problem: Problem, H: np.ndarray, v: np.ndarray, w: np.ndarray, damping: float
) -> tuple[np.ndarray, float]:
    """Return u that nearly minimises the model of w, and the damping of the next Newton step."""
    x, gradient = w.copy(), -v
    t = 1.0 if problem.power == 1 else float(np.abs(x).sum())
    violation = np.where(x, np.abs(gradient + t * np.sign(x)), np.maximum(np.abs(gradient) - t, 0.0))
    goal = 0.1 * float(violation.max(initial=0.0))
    for _ in range(4):  # rounds of coordinate descent, each followed by a Newton step
        if descend(H, gradient, x, problem.power, float(np.abs(x).sum()), goal):
            break
        damping = _newton_step(problem, H, gradient, x, damping)
    return x, damping


def _newton_step(
    problem: Problem, H: np.ndarray, gradient: np.ndarray, x: np.ndarray, damping: float
) -> float:
    """Move x and the gradient by a Newton step of the model on the non-zero weights, with a decrease.

    Weights that would change their sign become 0. The damping rises until the model decreases; that of the next step is
    returned.
    """
    filled = np.flatnonzero(x)
    old, signs, rows = x[filled], np.sign(x[filled]), H[filled]
    total, squared = float(np.abs(old).sum()), problem.power == 2
    slope = gradient[filled] + (total if squared else 1.0) * signs
    matrix = rows[:, filled] + np.outer(signs, signs) if squared else rows[:, filled]
    diagonal = np.diag(matrix).copy()
    for _ in range(4 if filled.size else 0):
        np.fill_diagonal(matrix, (1.0 + damping) * diagonal)
        solve = factor(matrix)
        if solve is not None:
            new = old - solve(slope)
            new[new * signs < 0.0] = 0.0
            change = (new - old) @ rows
            decrease = problem.penalty(total) - problem.penalty(float(np.abs(new).sum()))
            if float((gradient + 0.5 * change)[filled] @ (new - old)) < decrease:
                x[filled] = new
                gradient += change
                return 0.1 * damping
        damping = max(10.0 * damping, LEAST_DAMPING)
    return damping


@compiled()
def descend(H, gradient, x, power, total, goal):
    """Minimise P(x) + gradient.(x' - x) + 1/2 (x' - x)'H (x' - x) by at most 21 passes of coordinate descent.

    Every tenth pass is over all coordinates, the others over those that are not 0. x, and the gradient of the quadratic
    function there, are updated. Returns whether no coordinate violated its optimality condition by more than `goal` in
    a pass over all.

    Parameters
    ----------
    H : ndarray of shape (k, k)
    gradient, x : ndarray of shape (k,)
    power : int
        1: P = |x|_1; 2: half of its square.
    total : float
        |x|_1.
    goal : float
    """
    for turn in range(21):
        worst = 0.0
        for j in range(x.size):
            old = x[j]
            if old == 0.0 and turn % 10 > 0:
                continue
            curvature, threshold = H[j, j], 1.0
            pull = curvature * old - gradient[j]
            if power == 2:  # 1/2 (rest + |x_j|)^2
                threshold = total - abs(old)
                curvature += 1.0
            new = 0.0
            if abs(pull) > threshold and curvature > 0.0:
                new = np.sign(pull) * (abs(pull) - threshold) / curvature
            change = new - old
            if change != 0.0:
                x[j] = new
                total += abs(new) - abs(old)
                row = H[j]
                for k in range(x.size):
                    gradient[k] += change * row[k]
                worst = max(worst, abs(change) * curvature)
        if worst <= goal and turn % 10 == 0:
            return True
    return False
