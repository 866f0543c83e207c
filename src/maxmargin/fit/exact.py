"""The exact stage: small problems at p = 2 end with the active-set method, whose point is the optimum to rounding."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from ..algorithms.batch.active_set import Point as Candidate
from ..algorithms.batch.active_set import candidates
from ..algorithms.batch.quadratic_program import OutOfTime, Quadratic, quadratics
from ..numerics.sums import Compensated, Plain
from ..problem.intercept import best_intercept
from .report import Point
from .tracker import Primal

if TYPE_CHECKING:
    from ..data.rows import Patterns
    from ..problem.problem import Problem
    from .certifier import Certifier
    from .run import Run

# Problems up to these sizes are small: rows, and floating-point operations, rows x (smaller side)^2, of one
# factorisation. Measured (docs/choice.md): up to here the active-set method certifies any gap within about 0.1 s.
FEW_ROWS, FEW_FLOPS = 2000, 2e8
# So are problems of more rows where a factorisation costs next to nothing.
MANY_ROWS, NEXT_TO_NONE = 50_000, 2e7
# Gap below which the incumbent's dual variables are a better start of the active-set method than an interior point.
NEAR_ENOUGH = 3e-3
# Certificates are rounded outwards: a running gap below this share of `tol` is certified within `tol`.
NEARLY = 0.996
TIGHT = 1e-9  # distance from one of a margin that is one at the optimum


def is_small(problem: Problem, patterns: Patterns) -> bool:
    """Return whether the exact stage is affordable for rows of this size."""
    side = min(patterns.n, patterns.d + 1)
    flops = patterns.n * side**2
    return (patterns.n <= FEW_ROWS and flops <= FEW_FLOPS) or (
        patterns.n <= MANY_ROWS and flops <= NEXT_TO_NONE
    )


def ends_at_tol(patterns: Patterns) -> bool:
    """Return whether the exact stage ends at `tol`, as the optimum of so many rows takes many more steps."""
    return patterns.n > FEW_ROWS


def finish(run: Run, X: Any, certifier: Certifier, exact: float, enough: float) -> None:
    """Run the active-set method until its gap is `exact` (rounding), or `enough` on the way there.

    A point enters `run` where its own bounds are better.

    Parameters
    ----------
    run : Run
    X : ndarray, CSR matrix or SharedRows
        Rows of the presolved task.
    certifier : Certifier
    exact, enough : float
        Relative gaps.
    """
    deadline = certifier.deadline
    if deadline.interrupted():
        return
    try:
        for qp in quadratics(run.problem, X, run.y, run.weights, deadline.interrupted):
            done = _finish_scaled(qp, run, certifier, exact, enough)
            if done or run.best.gap <= run.tol or deadline.interrupted():
                return
    except OutOfTime:
        return


def _finish_scaled(qp: Quadratic, run: Run, certifier: Certifier, exact: float, enough: float) -> bool:
    """Run the active-set method in the scaling of one quadratic program; return whether its point is the optimum."""
    start = qp.near(run.best.alpha) if run.best.gap < NEAR_ENOUGH else None
    rough: list[
        Candidate
    ] = []  # certified only where no point that meets the optimality conditions is good enough
    try:
        for candidate in candidates(qp, start, certifier.deadline.interrupted, enough):
            if not (candidate.settled or candidate.near):
                rough.append(candidate)
            elif _adopt(qp, candidate, run, certifier, exact):
                return True
            if certifier.deadline.interrupted():
                break
    except np.linalg.LinAlgError:  # the points found before stand
        pass
    for candidate in rough:
        _adopt(qp, candidate, run, certifier, exact)
    return False


def _adopt(qp: Quadratic, candidate: Candidate, run: Run, certifier: Certifier, exact: float) -> bool:
    """Certify a candidate and keep its bounds where they are better; return whether it is as good as asked for."""
    w, b = qp.primal(candidate.w, candidate.beta)
    alpha = qp.dual(candidate.a)
    if not (np.isfinite(w).all() and np.isfinite(alpha).all()):
        return False
    rounding = exact if candidate.settled else None
    for v, bias in [(w, b)] if candidate.near else _primal_points(run, w, b, rounding):
        asked = NEARLY * run.tol if candidate.near else exact
        if not certifier.deadline.can_afford(Compensated.SECONDS * run.patterns.entries):
            asked = run.tol  # no time for the digits of a smaller gap
        certificate = certifier.certify_and_keep(Point(v, bias, alpha), max(asked, 10.0 * exact))
        rounding_gap = exact if candidate.settled else 0.0
        run.best.adopt(Primal(v, bias), alpha, certificate.lower, certificate.upper, rounding_gap)
        if (candidate.settled or candidate.near) and certificate.gap <= asked:
            return True
    return False


def _primal_points(
    run: Run, w: np.ndarray, b: float, exact: float | None
) -> Iterator[tuple[np.ndarray, float]]:
    """Yield primal points for a direction w: with the best intercept and scale, and with tight margins above one."""
    problem, X, y = run.problem, run.patterns.X, run.y
    if not problem.hard:
        yield from tight_points(problem, run.patterns, y, run.weights, (w, b), exact)
        return
    z = Plain.scores(X, w)
    b = best_intercept(problem, z, y, run.weights) if problem.free else b
    smallest = float((y * (z + b)).min())
    if smallest > 0.0:
        yield w / smallest, b / smallest  # canonical scale: the smallest margin is one
    else:
        yield run.best.primal  # no separator: the best w so far is of more use


def tight_points(
    problem: Problem,
    patterns: Patterns,
    y: np.ndarray,
    weights: np.ndarray,
    point: tuple[np.ndarray, float],
    exact: float | None,
) -> Iterator[tuple[np.ndarray, float]]:
    """Yield (w, b) of a soft margin with its best intercept, and multiples whose tight margins are not below one.

    A row whose margin is one at the optimum costs C times what rounding leaves it below one, which for a large C
    exceeds the whole gap. A multiple just above one lifts it: by what it lacks (`short`), and by the rounding of the
    scores.

    Parameters
    ----------
    problem : Problem
        Soft.
    patterns : Patterns
    y, weights : ndarray of shape (n,)
    point : (ndarray of shape (d,), float)
    exact : float or None
        A gap that is rounding; None where the optimality conditions do not hold, and no margin is known to be tight.
    """
    X, (w, b) = patterns.X, point
    z = Plain.scores(X, w)
    b = best_intercept(problem, z, y, weights) if problem.free else b
    margins = y * (z + b)
    tight = np.abs(margins - 1.0) < TIGHT
    if exact is None or not tight.any():
        yield w, b
        return
    short = max(1.0 - float(margins[tight].min()), 0.0)
    size = patterns.longest2**0.5 * Plain.norm(w) + abs(b)
    # 3 errors of a score: of this sum, of the certificate's, and of the product with the multiple
    grow = short + 3.0 * Plain.error(1.0, size, patterns.d + 1)
    if problem.loss == "hinge" and 4.0 * grow <= exact:  # lifted so far that plain sums prove the margins
        yield w * (1.0 + grow), b * (1.0 + grow)
    yield w, b
    terms = float((Plain.scores(abs(X[tight]), np.abs(w)) + abs(b)).max())
    grow = short + 4.0 * np.finfo(float).eps * terms
    yield w * (1.0 + grow), b * (1.0 + grow)
