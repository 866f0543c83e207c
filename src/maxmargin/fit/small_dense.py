"""Small dense problems at p = 2, solved before any other stage: Newton's method or proximal points, to the optimum."""

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

# Columns of a small dense problem, whose iterations are compiled (`semismooth.MAX_COMPILED`), and rows where squared
# losses are not small: copying more rows takes longer than the calls between steps, which compiled iterations save.
MAX_COLUMNS, MAX_ROWS = 100, 30_000
# Share of `tol` at which points of many rows (`ends_at_tol`) are certified first: enough for most, at fewer steps.
FIRST_GOAL = 0.5
# Settings with which only iterates within the goal, and the last one, are yielded.
PROXIMAL = proximal_point.Settings(first_gap=0.0)
NEWTON = newton.Settings(report_share=1e-99, report_steps=1000)


def small_dense_rows(problem: Problem, patterns: Patterns, weights: np.ndarray) -> SmallDenseRows | None:
    """Return the centred rows of a small dense problem, or None for any other.

    Parameters
    ----------
    problem : Problem
    patterns : Patterns
    weights : ndarray of shape (n,), positive
    """
    if problem.hard or not problem.euclidean or patterns.d + 1 > MAX_COLUMNS:
        return None
    many = problem.loss == "squared_hinge" and patterns.n <= MAX_ROWS and not patterns.sparse
    if not (many or is_small(problem, patterns)):
        return None
    if not in_users_units(problem, patterns, weights):
        return None
    with np.errstate(over="ignore", invalid="ignore"):
        X = patterns.X.toarray() if patterns.sparse else patterns.X
        return SmallDenseRows(problem, X, square=float(patterns.square.sum()))


def solve_small_dense(
    task: Task, rows: SmallDenseRows, stopping: Stopping, sample: Sample, selected: PresolveStep | None
) -> tuple[CertifiedPoint | None, bool, bool]:
    """Solve a small dense problem: to `tol` where it has many rows, else, or where that fails, to the optimum.

    Parameters
    ----------
    task : Task
        In the caller's units.
    rows : SmallDenseRows
        `small_dense_rows`.
    stopping : Stopping
    sample : Sample
        The caller's data.
    selected : PresolveStep or None
        The rows of the task among those of the sample; None for all.

    Returns
    -------
    point : CertifiedPoint or None
    done : bool
        Whether it is as good as asked for.
    optimal : bool
        Whether the optimum was asked for, not only `tol`.
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
    """Certify a point and, for the hinge, its multiples with tight margins above one.

    Parameters
    ----------
    near : bool
        Whether `tol` is enough; else the gap is to be rounding.

    Returns
    -------
    best : CertifiedPoint
    done : bool
        Whether it is as good as asked for.
    """
    problem, (w, b, alpha) = task.problem, found
    exact = rounding_gap(sample.entries, task.patterns.d, stopping.tol)
    affords: Callable[[float], bool] = stopping.deadline.can_afford
    asked = stopping.tol if near or lacks_time_for_digits(affords, sample.entries) else exact
    points: Iterable[tuple[np.ndarray, float]] = [(w, b)]
    if problem.loss == "hinge" and not near:
        points = chain(points, tight_points(problem, task.patterns, task.y, task.weights, (w, b), exact))
        affords = _never  # of the first point: a multiple may need no more digits
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
    return False
