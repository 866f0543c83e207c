"""The best points of a task whose rows are known: w is a vector, and every dual point costs a product with the rows.

Plain float64: certificates are computed anew, with rounding.
"""

from __future__ import annotations

from functools import cached_property

import numpy as np

from ..data.task import Task
from ..numerics.norms import norm
from ..numerics.sums import Plain
from .line_search import intercept, multiple_and_intercept
from .tracker import Primal, Tracker, balance, best_dual_multiple, best_primal_multiple, soft_objective

# Share of the tolerated gap that the triangle inequality may cost a dual bound before |v|^2 is computed anew.
LOST = 0.1


class RowTracker(Tracker):
    """The best points of a task on rows of data.

    Parameters
    ----------
    task : Task
    tol : float
        Relative gap that is asked for.
    """

    def __init__(self, task: Task, tol: float) -> None:
        super().__init__(
            task.problem, Primal(np.zeros(task.patterns.d), 0.0), np.broadcast_to(0.0, task.patterns.n)
        )
        self.task, self.tol = task, tol

    def evaluate(self, w: np.ndarray, b: float, alpha: np.ndarray, only_direction: bool) -> None:
        """Evaluate a primal and a dual point in any norm, and keep each where it is better.

        Parameters
        ----------
        w : ndarray of shape (d,)
        b : float
        alpha : ndarray of shape (n,)
        only_direction : bool
            Whether the length of w means nothing: it is then that of the w of the dual point.
        """
        alpha, proved, size = dual_point(self.task, alpha)
        length = norm(self.problem.weights(w, b), self.problem.q)
        if only_direction and size > 0.0 and length > 0.0:
            w, b = w * (size / length), b * (size / length)
        w, b, attained = primal_point(self.task, w, b)
        self.update_primal(Primal(w, b), attained)
        self.update_dual(alpha, proved)

    # p = 2: bounds by the scores z = w.x of all rows, which the engine has

    def evaluate_direction(self, w: np.ndarray, b: float, z: np.ndarray) -> None:
        """Evaluate the best multiple of (w, b), with the best intercept where it is free; soft margins."""
        problem, y, weights, square = self.problem, self.task.y, self.task.weights, float(w @ w)
        if problem.free:
            b = intercept(problem, z, y, weights)
        t, b = best_primal_multiple(problem, square, z, b, y, weights)
        self.update_primal(Primal(t * w, b), soft_objective(problem, t, square, z, b, y, weights))

    def capped(self, a: np.ndarray) -> tuple[np.ndarray, float, np.ndarray]:
        """Return dual variables cut at their caps, with |w|^2 and the scores w.x of the w that they make."""
        a = np.minimum(a, self.problem.caps(self.task.weights))
        w = Plain.combine(self.task.patterns.X, a * self.task.y)
        constant = self.problem.rho * float(a @ self.task.y)
        return a, float(w @ w) + constant * constant, Plain.scores(self.task.patterns.X, w)

    def balanced_bound(self, a: np.ndarray, square: float, z: np.ndarray) -> float:
        """Return the dual bound of dual variables once the heavier class is scaled down; soft margins."""
        problem, task = self.problem, self.task
        found = balance(problem, task.y, a, z, square, self._lengths)
        if found is None:
            return -np.inf
        value = problem.dual(found.square + found.size * found.size, found.alpha, task.weights)
        if 0.5 * found.size * found.size > LOST * self.tol * abs(value):
            exact = Plain.combine(task.patterns.X, found.cut * task.y)
            value = problem.dual(found.square + float(exact @ exact), found.alpha, task.weights)
        return best_dual_multiple(value, float(found.alpha.sum()))[1]

    @cached_property
    def _lengths(self) -> np.ndarray:
        return np.sqrt(self.task.patterns.square)


def primal_point(task: Task, w: np.ndarray, b: float) -> tuple[np.ndarray, float, float]:
    """Return (w, b) with the best intercept and length, and its margin (hard) or objective (soft), in any norm.

    Parameters
    ----------
    task : Task
    w : ndarray of shape (d,)
        Its length counts for hinge losses and for the norm to the first power; otherwise the best one is found.
    b : float
        Used where the intercept is not free.
    """
    problem, y = task.problem, task.y
    z = Plain.scores(task.patterns.X, w)
    smooth = problem.loss == "squared_hinge" and problem.power == 2 and not problem.hard
    if problem.free and not smooth:
        b = intercept(problem, z, y, task.weights)
    if problem.hard:
        smallest, length = float((y * (z + b)).min()), norm(problem.weights(w, b), problem.q)
        if not smallest > 0.0:
            return w, b, smallest / length if length > 0.0 else -np.inf
        return w / smallest, b / smallest, smallest / length  # canonical scale: the smallest margin is one
    if smooth:
        t, b = multiple_and_intercept(problem, norm(problem.weights(w, b), problem.q), z, b, y, task.weights)
        w, z = t * w, t * z
    penalty = problem.penalty(norm(problem.weights(w, b), problem.q))
    return w, b, problem.primal(penalty, y * (z + b), task.weights)


def dual_point(task: Task, alpha: np.ndarray) -> tuple[np.ndarray, float, float]:
    """Return dual variables, balanced, capped and at their best multiple, their bound, and |sum alpha_i y_i x_i|.

    The last is the length of the w that belongs to them.

    Parameters
    ----------
    task : Task
    alpha : ndarray of shape (n,), non-negative
    """
    problem, y = task.problem, task.y
    nothing = np.inf if problem.hard else -np.inf
    caps = problem.caps(task.weights)
    if problem.hard or np.isinf(caps).all():
        alpha = alpha / (float(alpha.max(initial=0.0)) or 1.0)  # only proportions count
    balanced = np.minimum(alpha, caps)
    if problem.free:
        balanced = problem.balanced(y, balanced)
    if balanced is None or not balanced.any():
        return alpha, nothing, 0.0
    v = Plain.combine(task.patterns.X, balanced * y)
    if problem.rho:
        v = np.append(v, problem.rho * float(balanced @ y))
    size, total = norm(v, problem.p), float(balanced.sum())
    if problem.hard:
        return balanced / total, size / total, size / total
    t = problem.multiple(balanced, size * size, task.weights)
    balanced *= t
    np.minimum(balanced, caps, out=balanced)
    return balanced, problem.dual(t * size * (t * size), balanced, task.weights), t * size
