"""Stages of a fit that keep their points themselves: the exact stage certifies them, Newton's method on a kernel's
factor goes by running bounds.

The exact stage solves small problems at p = 2: Newton's method, the proximal-point method or, for hard margins,
interior points find the rows whose margin is one. With up to MAX_ROWS_TO_OPTIMUM rows its last point is the optimum to
rounding; with more a soft margin ends at `tol`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from ..certificates.row_pass import NEGLIGIBLE_ERROR
from ..numerics.sums import Plain, norm
from ..problem.problem import Problem, best_intercept
from ..solvers.decomposition import DualPoint
from ..solvers.interior_point import interior_points
from ..solvers.iterate import Point, Reached
from ..solvers.polish import polished
from ..solvers.rows import CentredRows
from ..solvers.semismooth import semismooth_points
from .best import primal_point

if TYPE_CHECKING:
    from ..data.rows import Patterns
    from .report import Task
    from .solve import KernelFit, LinearFit

# The constants were chosen on the data sets of benchmarks.before_after.

# Rows up to which the exact stage runs to the optimum, and up to which it ends at `tol`. With larger ones it takes
# longer than the algorithm that it replaces.
MAX_ROWS_TO_OPTIMUM, MAX_ROWS_TO_TOL = 2000, 50_000

# A gap by running bounds is accepted as `tol` if it is at most RUNNING_GAP_SHARE * `tol`: certificates are rounded
# outwards, and the certified gap is then still at most `tol`. A smaller share costs further rounds; with a larger one
# some fits end above `tol`.
RUNNING_GAP_SHARE = 0.996


def is_small(problem: Problem, patterns: Patterns) -> bool:
    """Return whether rows and operations of a factorisation, rows x (smaller side)^2, are few enough for the stage."""
    n = patterns.n
    work = n * min(n, patterns.d + 1) ** 2
    return (n <= MAX_ROWS_TO_OPTIMUM and work <= 2e8) or (n <= MAX_ROWS_TO_TOL and work <= 2e7)


def solve_exactly(fit: LinearFit, goal: float) -> Iterator[None]:
    """Solve a small problem, keep the points whose certified bounds are better, and yield once.

    Parameters
    ----------
    fit : LinearFit
    goal : float
        Relative gap at which the method ends before it meets the optimality conditions; 0 if it does not.
    """
    task, stop = fit.task, fit.stopping.deadline.interrupted
    problem, patterns, y, weights = task.problem, task.rows, task.y, task.weights
    rows = patterns.centred(problem)
    # the gap that is rounding: a point that meets the optimality conditions is the optimum at this gap
    rounding = max(NEGLIGIBLE_ERROR, 0.01 * fit.stopping.tol)
    solve = _hard_points if problem.hard else partial(semismooth_points, tol=goal)
    for w, b, alpha, gap, _ in solve(problem, rows, y, weights, stop):
        if not (np.isfinite(w).all() and np.isfinite(alpha).all()):
            continue
        if problem.hard:
            w, b, margin = primal_point(task, w, b)
            primal = [(w, b) if margin > 0.0 else fit.best.primal]  # where w does not separate the classes
        elif (goal and gap <= goal) or problem.loss == "squared_hinge":
            primal = [(w, b)]
        else:
            primal = tight_points(task, w, b, rounding)
        gaps = (fit.keep(Point(v, bias, alpha)).gap for v, bias in primal)
        if any(gap <= max(goal, rounding) for gap in gaps) or stop():
            break
    yield


def solve_factored(fit: KernelFit) -> Iterator[None]:
    """Take the points of Newton's method on a factor of the kernel matrix, if its rank is small."""
    task, Z, stop = fit.task, fit.task.rows.factor, fit.stopping.deadline.interrupted
    if Z is not None and fit.best.gap > 0.0:
        rows = CentredRows(task.problem, Z)
        for point in semismooth_points(
            task.problem, rows, task.y, task.weights, stop, 0.5 * fit.stopping.tol
        ):
            fit.best.evaluate(DualPoint(point.alpha, Z @ (Z.T @ (point.alpha * task.y))))
            yield


def _hard_points(
    problem: Problem, rows: CentredRows, y: np.ndarray, weights: np.ndarray, stop: Callable[[], bool]
) -> Iterator[Reached]:
    """Yield a polished point of a hard margin, and the last one of interior points."""
    alpha = np.ones(y.size)
    for point in interior_points(rows.problem, rows.X, y, weights, stop):
        alpha = point[2]
    z = rows.combine(y * alpha) * rows.regular
    better = None if stop() or rows.copy is None else polished(rows, y, alpha, stop)
    if better is not None:
        yield Reached(*rows.primal(better[0]), better[1], 0.0, True)
    yield Reached(*rows.primal(z), alpha, np.inf, False)


def tight_points(task: Task, w: np.ndarray, b: float, rounding: float) -> list[tuple[np.ndarray, float]]:
    """Return (w, b) of the hinge with the best intercept; before it, a multiple whose tight margins are over one.

    A row whose margin is one at the optimum has a computed margin of 1 - e, with e a rounding error. Its loss C e may
    exceed the whole gap if C is large. A multiple of (w, b) by 1 + `growth` proves a margin of one, where `growth` is
    the largest e plus a bound of the rounding errors of scores. It is left out where it changes the objective by more
    than the relative gap `rounding`.
    """
    problem, patterns = task.problem, task.rows
    z = Plain.scores(patterns.X, w)
    b = best_intercept(problem, z, task.y, task.weights) if problem.free else b
    margins = task.y * (z + b)
    tight = np.abs(margins - 1.0) < 1e-9  # at the optimum one: the difference is rounding
    if tight.any():
        size = patterns.longest2**0.5 * norm(w) + abs(b)
        # error bounds of a score: of `margins`, of the scores in the certificate, of the product with the multiple
        growth = max(1.0 - float(margins[tight].min()), 0.0) + 3.0 * Plain.error(size, patterns.d + 1)
        if 4.0 * growth <= rounding:
            return [(w * (1.0 + growth), b * (1.0 + growth)), (w, b)]
    return [(w, b)]
