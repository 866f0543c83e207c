"""Small dense soft margins at p = 2, solved before any stage by Newton's method or the proximal-point method."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import partial
from itertools import chain

import numpy as np

from ..algorithms.batch import newton, proximal_point
from ..algorithms.batch.centred_rows import SmallDenseRows
from ..algorithms.batch.iterate import Reached
from ..algorithms.batch.newton import newton_points
from ..algorithms.batch.proximal_point import proximal_points
from ..certificates.one_pass import certify
from ..certificates.sample import Sample
from ..data.rows import Patterns
from ..data.task import Task
from ..data.units import in_users_units
from ..problem.problem import Problem
from .certifier import CertifiedPoint, lacks_time_for_digits, rounding_gap
from .exact import NEARLY, ends_at_tol, is_small, tight_points
from .presolve import Point, PresolveStep
from .report import Stopping

# Columns of a small dense problem, constant included: as many as compiled iterations have (`semismooth.MAX_COMPILED`).
MAX_COLUMNS = 100
# Rows of the squared hinge beyond the limits of `is_small`: a copy of more rows takes longer than compiled iterations
# save in calls from step to step. Chosen on the data sets of docs/regimes.md.
MAX_ROWS = 30_000
# Where the solution ends at `tol` (`ends_at_tol`), the share of `tol` at which the first iterate is certified: for most
# problems this iterate is enough, after fewer steps than to the optimum. A larger share leaves more of these iterates
# uncertified within `tol`, a smaller one takes more steps. Chosen on the data sets of docs/regimes.md.
FIRST_GOAL = 0.5
# Settings with which each solver yields only two iterates: the first one within the goal, and the last one. More would
# cost certificates that are not used.
PROXIMAL = proximal_point.Settings(first_gap=0.0)
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
    task: Task, rows: SmallDenseRows, stopping: Stopping, sample: Sample, selected: PresolveStep | None
) -> tuple[CertifiedPoint | None, bool, bool]:
    """Solve a small dense problem to `tol` where it has many rows, otherwise to the optimum.

    Where the first iterate within `tol` is not certified, the iteration continues to the optimum.

    Parameters
    ----------
    task : Task
        In the caller's units.
    rows : SmallDenseRows
        The rows that `small_dense_rows` returns.
    stopping : Stopping
    sample : Sample
        The caller's data.
    selected : PresolveStep or None
        Restores dual variables of the task to all rows of the sample; None where the task has all rows.

    Returns
    -------
    point : CertifiedPoint or None
        The point with the smallest certified gap; None where no finite iterate was found.
    done : bool
        Whether its gap is as small as required: `tol`, or rounding of the optimum.
    optimal : bool
        Whether the iteration went on to the optimum.
    """
    problem, interrupted = task.problem, stopping.deadline.interrupted
    if problem.loss == "hinge":
        solver: Callable[..., Iterator[Reached]] = partial(proximal_points, settings=PROXIMAL)
    else:
        solver = partial(newton_points, settings=NEWTON)
    goal = FIRST_GOAL * stopping.tol if ends_at_tol(task.patterns) else 0.0
    best, found = None, None
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        for found in solver(problem, rows, task.y, task.weights, interrupted, goal):
            if found.near and best is None:
                best, done = _certify(task, Point(*found[:3]), stopping, sample, selected, True)
                if done:
                    return best, True, False
        if found is None or not np.isfinite(found.w.sum() + found.b + found.alpha.sum()):
            return best, False, False
        last, done = _certify(task, Point(*found[:3]), stopping, sample, selected, False)
    if best is None or last.certificate.gap <= best.certificate.gap:
        best = last
    return best, done, True


def _certify(
    task: Task, found: Point, stopping: Stopping, sample: Sample, selected: PresolveStep | None, near: bool
) -> tuple[CertifiedPoint, bool]:
    """Certify an iterate, and return the certified point with the smallest gap.

    At the optimum of the hinge loss, multiples of it whose tight margins exceed one are certified too (`tight_points`).

    Parameters
    ----------
    task : Task
    found : Point
        An iterate of the task.
    stopping : Stopping
    sample : Sample
    selected : PresolveStep or None
        Restores dual variables of the task to all rows of the sample.
    near : bool
        Whether a gap of `tol` is required; otherwise a gap that is rounding.

    Returns
    -------
    best : CertifiedPoint
    done : bool
        Whether its gap is as small as required.
    """
    problem, (w, b, alpha) = task.problem, found
    exact = rounding_gap(sample.entries, task.patterns.d, stopping.tol)  # a gap that is rounding
    affords: Callable[[float], bool] = stopping.deadline.can_afford
    asked = stopping.tol if near or lacks_time_for_digits(affords, sample.entries) else exact
    points: Iterable[tuple[np.ndarray, float]] = [(w, b)]
    if problem.loss == "hinge" and not near:
        points = chain(points, tight_points(problem, task.patterns, task.y, task.weights, (w, b), exact))
        affords = _never  # no compensated sums for the first point: plain sums may prove a multiple
    alpha = alpha if selected is None else selected.restore(found).alpha
    best, done = None, False
    for w, b in points:
        certificate = certify(problem, sample, w, b, alpha, max(asked, 10.0 * exact), affords)
        affords = stopping.deadline.can_afford
        if best is None or certificate.gap <= best.certificate.gap:
            best = CertifiedPoint(w, b, alpha, certificate)
        done = certificate.gap <= min(asked, NEARLY * stopping.tol)
        if done:
            break
    assert best is not None
    return best, done


def _never(seconds: float) -> bool:
    """Return False: no computation is affordable, whatever its duration."""
    return False
