"""The exact stage: the active-set method on small problems at p = 2, whose last point is the optimum to rounding.

Small dense soft margins are solved before it, by Newton's method or the proximal-point method. Of kernel problems the
exact stage is run on the rows of a factor of the Gram matrix.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from ..algorithms.batch import newton, semismooth
from ..algorithms.batch.active_set import Point as Candidate
from ..algorithms.batch.active_set import candidates
from ..algorithms.batch.newton import newton_points
from ..algorithms.batch.quadratic_program import Quadratic, quadratic
from ..algorithms.batch.semismooth import proximal_points
from ..data.rows import Patterns
from ..data.task import Task
from ..numerics.norms import norm
from ..numerics.sums import EPS, Plain
from ..problem.intercept import best_intercept
from ..problem.problem import Problem
from ..solvers.iterate import Point, Reached
from ..solvers.linear_systems import low_rank_factor
from ..solvers.rows import SmallDenseRows
from .certifier import CertifiedPoint, Certifier
from .tracker import ROUNDING, GramTracker, Primal, canonical_multiple

if TYPE_CHECKING:
    from ..certificates.gram import KernelSample
    from .run import Run

# A problem is small if it is within one of these two pairs of limits: rows, and floating-point operations of one
# factorisation, rows x (smaller side)^2. Up to MAX_ROWS_TO_OPTIMUM rows the exact stage runs to the optimum, with more
# rows it ends at `tol`. Larger limits let the exact stage take longer than the algorithm that it replaces. The first
# pair is measured: within it the active-set method certifies any gap in about 0.1 s. The
# second pair was chosen on the data sets of benchmarks.before_after: more rows need more steps, each of which is
# cheap there.
MAX_ROWS_TO_OPTIMUM, MAX_FLOPS_TO_OPTIMUM = 2000, 2e8
MAX_ROWS_TO_TOL, MAX_FLOPS_TO_TOL = 50_000, 2e7
# The other constants were chosen on the data sets of benchmarks.before_after.

# Largest gap of the incumbent at which its dual variables give the first active set; above it the active-set method
# starts from solvers of its own. At a larger gap more rows enter and leave the active set, which costs steps.
MAX_START_GAP = 3e-3
# A gap by running bounds is accepted as `tol` if it is at most RUNNING_GAP_SHARE * `tol`: certificates are rounded
# outwards, and the certified gap is then still at most `tol`. A smaller share costs further rounds; with a larger one
# some fits end above `tol`.
RUNNING_GAP_SHARE = 0.996
# A margin is taken to be one at the optimum if it differs from one by less than this: the difference is then rounding
# only. A smaller distance misses some of these margins, a larger one includes other margins.
TIGHT_MARGIN_DISTANCE = 1e-9
# Rows up to which the exact stage factorises the whole Gram matrix by its eigenvalues, which cost O(n^3). With more
# rows it requires a kernel with few features, or a factor of low rank. A larger limit spends more time on eigenvalues,
# a smaller one leaves more problems to the algorithm.
MAX_EIGEN_ROWS = 500


def is_small(problem: Problem, patterns: Patterns) -> bool:
    """Return whether a problem on these rows is small enough for the exact stage."""
    n, side = patterns.n, min(patterns.n, patterns.d + 1)
    to_optimum = n <= MAX_ROWS_TO_OPTIMUM and n * side**2 <= MAX_FLOPS_TO_OPTIMUM
    return to_optimum or (n <= MAX_ROWS_TO_TOL and n * side**2 <= MAX_FLOPS_TO_TOL)


def factors_whole_gram(n: int) -> bool:
    """Return whether the exact stage of a kernel problem on n rows factorises the whole Gram matrix."""
    return n <= MAX_EIGEN_ROWS


def ends_at_tol(patterns: Patterns) -> bool:
    """Return whether the exact stage ends at `tol` rather than at the optimum (`MAX_ROWS_TO_OPTIMUM`)."""
    return patterns.n > MAX_ROWS_TO_OPTIMUM


def finish(run: Run, X: Any, certifier: Certifier, rounding: float, end_gap: float) -> None:
    """Run the active-set method, and keep its points in `run` where their certified bounds are better.

    Candidates that neither meet the optimality conditions (`settled`) nor have the gap `end_gap` (`near`) are certified
    last, only if none of the others has the gap required.

    Parameters
    ----------
    run : Run
    X : ndarray, CSR matrix or SharedRows
        Rows of the presolved task.
    certifier : Certifier
    rounding : float
        Relative gap that is rounding: a point that meets the optimality conditions is the optimum at this gap.
    end_gap : float
        Relative gap at which the method ends before it meets the optimality conditions; 0 if it does not.
    """
    interrupted = certifier.deadline.interrupted
    if interrupted():
        return
    qp = quadratic(run.problem, X, run.y, run.weights)
    start = qp.scaled_dual(run.best.alpha) if run.best.gap < MAX_START_GAP else None
    rough: list[Candidate] = []
    try:
        for candidate in candidates(qp, start, interrupted, end_gap):
            if not (candidate.settled or candidate.near):
                rough.append(candidate)
            elif _adopt(qp, candidate, run, certifier, rounding):
                return
            if interrupted():
                break
    except np.linalg.LinAlgError:  # the points found before the failure are kept
        pass
    for candidate in rough:
        _adopt(qp, candidate, run, certifier, rounding)


def _adopt(qp: Quadratic, candidate: Candidate, run: Run, certifier: Certifier, rounding: float) -> bool:
    """Certify a candidate, and keep its parts with better bounds; return whether it has the gap required.

    The gap required is `RUNNING_GAP_SHARE` * tol for a candidate that is `near`, otherwise `rounding`.
    """
    w, b = qp.primal(candidate.w, candidate.beta)
    alpha = qp.dual(candidate.a)
    if not (np.isfinite(w).all() and np.isfinite(alpha).all()):
        return False
    points = [(w, b)] if candidate.near else _primal_points(run, w, b, rounding if candidate.settled else 0.0)
    required = RUNNING_GAP_SHARE * run.tol if candidate.near else rounding
    for v, bias in points:
        certificate = certifier.certify(Point(v, bias, alpha)).certificate
        gap_at_optimum = rounding if candidate.settled else 0.0
        run.best.adopt(Primal(v, bias), alpha, certificate.lower, certificate.upper, gap_at_optimum)
        if (candidate.settled or candidate.near) and certificate.gap <= required:
            return True
    return False


def _primal_points(run: Run, w: np.ndarray, b: float, rounding: float) -> list[tuple[np.ndarray, float]]:
    """Return primal points (w, b) with the direction of a given w: those of `tight_points` for a soft margin.

    Hard margin: the multiple with smallest margin one and the best intercept, or the best point of `run` if w separates
    nothing.
    """
    problem, y = run.problem, run.y
    if not problem.hard:
        return tight_points(problem, run.patterns, y, run.weights, (w, b), rounding)
    z = Plain.scores(run.patterns.X, w)
    b = best_intercept(problem, z, y, run.weights) if problem.free else b
    smallest = float((y * (z + b)).min())
    if not smallest > 0.0:
        return [run.best.primal]
    t = canonical_multiple(smallest, norm(w, problem.q))
    return [(t * w, t * b)]


def tight_points(
    problem: Problem,
    patterns: Patterns,
    y: np.ndarray,
    weights: np.ndarray,
    point: tuple[np.ndarray, float],
    rounding: float,
) -> list[tuple[np.ndarray, float]]:
    """Return (w, b) of a soft margin with the best intercept; before it, a multiple whose tight margins are over one.

    A row whose margin is one at the optimum has a computed margin of 1 - e, with e a rounding error. Under the hinge
    its loss C e may exceed the whole gap if C is large. A multiple of (w, b) by 1 + `growth` proves a margin of one,
    where `growth` is the largest e plus a bound of the rounding errors of scores. It is left out where it changes the
    objective by more than the relative gap `rounding`.
    """
    w, b = point
    z = Plain.scores(patterns.X, w)
    b = best_intercept(problem, z, y, weights) if problem.free else b
    margins = y * (z + b)
    tight = np.abs(margins - 1.0) < TIGHT_MARGIN_DISTANCE
    if problem.loss == "hinge" and tight.any():
        size = patterns.longest2**0.5 * Plain.norm(w) + abs(b)
        # error bounds of a score: of `margins`, of the scores in the certificate, of the product with the multiple
        growth = max(1.0 - float(margins[tight].min()), 0.0) + 3.0 * Plain.error(size, patterns.d + 1)
        if 4.0 * growth <= rounding:
            return [(w * (1.0 + growth), b * (1.0 + growth)), (w, b)]
    return [(w, b)]


def finish_gram(tracker: GramTracker, sample: KernelSample, interrupted: Callable[[], bool]) -> None:
    """Run the active-set method on a factor Z of the Gram matrix, K = Z Z', and keep better points in the tracker.

    Nothing is done if there is no factor of the required size, or only one class. It ends between two steps once
    `interrupted()` is true.
    """
    problem, y, weights = tracker.problem, tracker.y, tracker.weights
    Z = _gram_factor(sample)
    if Z is None or np.unique(y).size < 2:
        return
    qp = quadratic(problem, Z, y, weights)
    start = qp.scaled_dual(tracker.alpha) if tracker.gap < MAX_START_GAP else None
    try:
        for candidate in candidates(qp, start, interrupted):
            alpha = qp.dual(candidate.a)
            if not np.isfinite(alpha).all():
                continue
            found, scores = GramTracker(problem, y, weights, sample.diagonal), sample.scores(alpha * y)
            found.evaluate(alpha, scores)
            tracker.evaluate(alpha, scores)  # either bound may be better than the best, without the other
            rounding = ROUNDING if candidate.settled else 0.0
            tracker.adopt(found.primal, found.alpha, found.lower, found.upper, rounding, pair_gap_share=1.0)
            if candidate.settled and found.gap <= ROUNDING:
                return
    except np.linalg.LinAlgError:  # the points found before the failure are kept
        return


def _gram_factor(sample: KernelSample) -> Any:
    """Return Z, of shape (n, r), with K = Z Z'; None if r would exceed a limit.

    The limit is n up to `MAX_EIGEN_ROWS` rows; for more rows, n r^2 operations of one factorisation are within the
    limits of the exact stage (`is_small`). Z is the matrix of the kernel's features if its columns are within the
    limit: K, which holds their products, has lost half of the digits. Otherwise Z comes from the eigenvalues of K (up
    to `MAX_EIGEN_ROWS` rows), or from a pivoted Cholesky factorisation of low rank.
    """
    n = sample.X.shape[0]
    whole = factors_whole_gram(n)
    max_flops = MAX_FLOPS_TO_OPTIMUM if n <= MAX_ROWS_TO_OPTIMUM else MAX_FLOPS_TO_TOL
    max_columns = n if whole else int((max_flops / n) ** 0.5)
    if sample.features is not None and sample.features.shape[1] <= max_columns:
        return sample.features
    if not whole:
        return low_rank_factor(sample.kernel, sample.X, max_columns)
    K = sample.kernel.block(sample.X, sample.X)
    values, vectors = np.linalg.eigh(0.5 * (K + K.T))
    # eigenvalues up to n eps times the largest are rounding
    kept = values > n * EPS * max(float(values[-1]), 0.0)
    return vectors[:, kept] * np.sqrt(values[kept]) if kept.any() else None


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


def small_dense_rows(problem: Problem, patterns: Patterns) -> SmallDenseRows | None:
    """Return the centred rows of a small dense problem; None for a problem that is not one.

    Parameters
    ----------
    problem : Problem
    patterns : Patterns
    """
    if problem.hard or not problem.euclidean or patterns.d + 1 > MAX_COLUMNS:
        return None
    affordable = problem.loss == "squared_hinge" and patterns.n <= MAX_ROWS and not patterns.sparse
    if not (affordable or is_small(problem, patterns)):
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
                best, done = _certify(task, found, RUNNING_GAP_SHARE * tol, certifier)
                if done:
                    return best, True, False
        if found is None or not np.isfinite(found.w.sum() + found.b + found.alpha.sum()):
            return best, False, False
        last, done = _certify(task, found, min(certifier.rounding(tol), RUNNING_GAP_SHARE * tol), certifier)
    if best is None or last.certificate.gap <= best.certificate.gap:
        best = last
    return best, done, True


def _certify(task: Task, found: Reached, goal: float, certifier: Certifier) -> tuple[CertifiedPoint, bool]:
    """Return an iterate, or a multiple of it (`tight_points`), with its certificate, and whether its gap is `goal`."""
    best = certifier.certify(Point(*found[:3]))
    if not (found.near or best.certificate.gap <= goal):
        points = tight_points(task.problem, task.patterns, task.y, task.weights, found[:2], goal)
        others = [certifier.certify(Point(w, b, found.alpha)) for w, b in points]
        best = min([best, *others], key=lambda one: one.certificate.gap)
    return best, best.certificate.gap <= goal
