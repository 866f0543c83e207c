"""Small dense soft margins at p = 2, solved before any stage by Newton's method or the proximal-point method."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial

import numpy as np

from ..algorithms.batch import newton, semismooth
from ..algorithms.batch.iterate import Point, Reached
from ..algorithms.batch.newton import newton_points
from ..algorithms.batch.semismooth import proximal_points
from ..algorithms.linear_algebra.centred_rows import SmallDenseRows
from ..data.rows import Patterns
from ..data.task import Task
from ..data.units import in_users_units
from ..problem.problem import Problem
from .certifier import CertifiedPoint, Certifier
from .exact import RUNNING_GAP_SHARE, ends_at_tol, is_small

# Largest number of columns of a small dense problem, constant included: the limit of compiled iterations
# (`semismooth.MAX_COMPILED`).
MAX_COLUMNS = 100
# Rows of the squared hinge beyond the limits of `is_small`: a copy of more rows takes longer than compiled iterations
# save in calls from step to step. Chosen on the data sets of benchmarks.before_after.
MAX_ROWS = 30_000
# Where the solution ends at `tol` (`ends_at_tol`), the first iterate with an estimated gap of this share of `tol` is
# certified: for most problems its certificate is within `tol`, after fewer steps than to the optimum. With a larger
# share more of these iterates have certificates above `tol`, a smaller one takes more steps. Chosen on the data sets
# of benchmarks.before_after.
FIRST_GAP_SHARE = 0.5
# Settings with which each solver yields only two iterates: the first one within the goal, and the last one. More would
# cost certificates that are not used.
PROXIMAL = semismooth.Settings(first_report_gap=0.0)
NEWTON = newton.Settings(report_share=1e-99, report_steps=1000)


def small_dense_rows(problem: Problem, patterns: Patterns, weights: np.ndarray) -> SmallDenseRows | None:
    """Return the centred rows of a small dense problem; None for a problem that is not one.

    Parameters
    ----------
    problem : Problem
    patterns : Patterns
    weights : ndarray of shape (n,), positive
    """
    if problem.hard or not problem.euclidean or patterns.d + 1 > MAX_COLUMNS:
        return None
    affordable = problem.loss == "squared_hinge" and patterns.n <= MAX_ROWS and not patterns.sparse
    if not (affordable or is_small(problem, patterns)):
        return None
    if not in_users_units(problem, patterns, weights):
        return None
    with np.errstate(over="ignore", invalid="ignore"):
        X = patterns.X.toarray() if patterns.sparse else patterns.X
        return SmallDenseRows(problem, X, square=float(patterns.square.sum()))


def solve_small_dense(
    task: Task, rows: SmallDenseRows, tol: float, certifier: Certifier
) -> tuple[CertifiedPoint | None, bool, bool]:
    """Solve a small dense problem to `tol` where it has many rows, otherwise to the optimum.

    Where the first iterate within `tol` is not certified, the iteration continues to the optimum.

    Parameters
    ----------
    task : Task
        In the caller's units.
    rows : SmallDenseRows
        The rows that `small_dense_rows` returns.
    tol : float
    certifier : Certifier

    Returns
    -------
    point : CertifiedPoint or None
        The point with the smallest certified gap; None where no finite iterate was found.
    done : bool
        Whether its gap is as small as required: `tol`, or rounding of the optimum.
    optimal : bool
        Whether the iteration went on to the optimum.
    """
    problem, interrupted = task.problem, certifier.deadline.interrupted
    if problem.loss == "hinge":
        solver: Callable[..., Iterator[Reached]] = partial(proximal_points, settings=PROXIMAL)
    else:
        solver = partial(newton_points, settings=NEWTON)
    goal = FIRST_GAP_SHARE * tol if ends_at_tol(task.patterns) else 0.0
    best, found = None, None
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        for found in solver(problem, rows, task.y, task.weights, interrupted, goal):
            if found.near and best is None:
                best, done = _certify(found, RUNNING_GAP_SHARE * tol, certifier)
                if done:
                    return best, True, False
        if found is None or not np.isfinite(found.w.sum() + found.b + found.alpha.sum()):
            return best, False, False
        last, done = _certify(found, min(certifier.rounding(tol), RUNNING_GAP_SHARE * tol), certifier)
    if best is None or last.certificate.gap <= best.certificate.gap:
        best = last
    return best, done, True


def _certify(found: Reached, goal: float, certifier: Certifier) -> tuple[CertifiedPoint, bool]:
    """Return an iterate with its certificate, and whether its gap is at most `goal`."""
    point = certifier.certify(Point(*found[:3]))
    return point, point.certificate.gap <= goal
