"""What a primal or a dual point is worth, in any norm: with the best intercept, length, balance and multiple for it.

For p = 2 a running state knows most of this already (`run.py`); elsewhere each point costs a look at the data.
Plain float64: what is claimed in the end is rounded outwards by `certificates.py`.
"""

from __future__ import annotations

import numpy as np

from ..data.task import Task
from ..numerics.norms import norm
from ..numerics.sums import Plain
from .line_search import intercept, multiple_and_intercept


def primal_point(task: Task, w: np.ndarray, b: float) -> tuple[np.ndarray, float, float]:
    """(w, b) with the best intercept and length, and its margin (hard) or objective (soft).

    Parameters
    ----------
    task : Task
    w : ndarray of shape (d,)
        The length counts only where the objective knows none better: hinge losses, and the norm to the first power.
    b : float
        Of account only where the intercept is not free.
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
    return (
        w,
        b,
        problem.primal(problem.penalty(norm(problem.weights(w, b), problem.q)), y * (z + b), task.weights),
    )


def dual_point(task: Task, alpha: np.ndarray) -> tuple[np.ndarray, float, float]:
    """Dual weights, balanced, capped and at their best multiple, the bound that they prove, and |sum alpha_i y_i x_i|.

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
