"""The outer loop: round -> report -> stop? -> solution. One binary problem."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from .arithmetic import Plain
from .batch.active_set import candidates
from .batch.quadratic import quadratic
from .certificates import Certificate, certify
from .data import Patterns
from .intercept import best_intercept
from .merge import Merged, merge
from .problems import Problem
from .rules import Algorithm
from .run import Run
from .scaling import units
from .schedules import SCHEDULES
from .status import Status
from .watch import Watch

# problems that end with the exact step: rows, and rows x smaller side^2
FEW_ROWS, FEW_FLOPS = 2000, 2e8
MANY_ROWS, NEXT_TO_NONE = 50_000, 2e7
NEAR_ENOUGH = 3e-3  # gap below which the rule's own dual weights show the way
EXACT = 1e-12  # a gap that is rounding
TIGHT = 1e-9  # a margin as near to one is one
SHARE = 0.4  # a quarter of the time of the exact step, in entries presented for each n side^2 of it
PATIENCE = 3  # rounds that the rule has at least, before a small problem is handed to the exact step


@dataclass(frozen=True)
class Report:
    """What is known after a round.

    Attributes
    ----------
    round : int
    seconds : float
        Since the fit began.
    lower, upper, gap : float
        The best bounds so far.
    presentations, steps : int
        Rows presented so far, and rows that changed the weight.
    stage : str
        The algorithm at work, or "exact" for the active-set step.
    label : object
        The class of a one-vs-rest problem; None for two classes.
    """

    round: int
    seconds: float
    lower: float
    upper: float
    gap: float
    presentations: int
    steps: int
    stage: str
    label: Any = None


@dataclass(frozen=True)
class Solution:
    """The best model so far, and how far it is from the best possible."""

    w: np.ndarray
    b: float
    alpha: np.ndarray
    status: Status
    rounds: int
    history: list[Report]
    certificate: Certificate


@dataclass(frozen=True)
class Whole:
    """Data as the user gave them: rows of weight 0 are not among the patterns, but count in the certificate.

    Attributes
    ----------
    X, y, weights : the data, y in {-1.0, 1.0}
    projection : ndarray or None
        `certificates.project(X)`, where it is known.
    rows : ndarray of int or None
        Which rows the patterns are; None for all.
    square : ndarray or None
        Squared norms of the rows, where they are known.
    """

    X: Any
    y: np.ndarray
    weights: np.ndarray
    projection: np.ndarray | None = None
    rows: np.ndarray | None = None
    square: np.ndarray | None = None

    def scatter(self, alpha: np.ndarray) -> np.ndarray:
        """Dual weights of all rows."""
        if self.rows is None:
            return alpha
        out = np.zeros(self.X.shape[0])
        out[self.rows] = alpha
        return out


def solve(
    problem: Problem,
    patterns: Patterns,
    y: np.ndarray,
    weights: np.ndarray,
    algorithm: Algorithm,
    *,
    tol: float,
    max_iter: int,
    watch: Watch,
    rng: np.random.Generator,
    on_report: Callable[[Report], None] = lambda report: None,
    label: Any = None,
    start: np.ndarray | None = None,
    whole: Whole | None = None,
) -> Solution:
    """Solve one binary problem until its certified gap is at most `tol`, or something else ends it.

    Parameters
    ----------
    problem : Problem
    patterns : Patterns
    y : ndarray of shape (n,), entries -1.0 and 1.0
    weights : ndarray of shape (n,), positive
    algorithm : Algorithm
    tol : float
        Certified relative gap.
    max_iter : int
        Rounds.
    watch : Watch
    rng : Generator
    on_report : callable
        Sees every report.
    label : object
        Goes into the reports.
    start : ndarray of shape (n,), default=None
        Dual weights to begin with.
    whole : Whole, default=None
        The data that the certificate speaks of, where rows were left out of the patterns.
    """
    small = _is_small(problem, patterns)
    merged: Merged | None = None
    whole = Whole(patterns.X, y, weights) if whole is None else whole
    if small:
        merged = merge(patterns.X, y, weights)
        patterns, y, weights = Patterns(merged.X), merged.y, merged.weights
        start = None if start is None else merged.gather(start)
    scale = units(patterns)
    patterns, inner = scale.patterns(patterns), scale.problem(problem)
    start = None if start is None else start * scale.sigma**2
    history: list[Report] = []
    handed = small and algorithm.convergent
    enough = _fair_share(patterns) if handed else np.inf

    def enough_said() -> bool:
        return run.presentations >= enough or watch.interrupted()

    run = Run(inner, patterns, y, weights, algorithm, tol, rng, enough_said, start)
    run.look_for_zero_rows()

    def report(stage: str) -> None:
        history.append(
            Report(
                len(history) + 1, watch.seconds(), scale.bound(problem, run.lower),
                scale.bound(problem, run.upper), run.gap, run.presentations, run.steps, stage, label,
            )
        )  # fmt: skip
        on_report(history[-1])

    status = Status.MAX_ITER
    rounds = 0
    with np.errstate(over="ignore", invalid="ignore"):
        for _ in SCHEDULES[algorithm.schedule](run):
            rounds += 1
            report(algorithm.name)
            ended = _status(run, watch, tol)
            if ended is not None:
                status = ended
                break
            if rounds >= max_iter or (handed and rounds >= PATIENCE and run.presentations >= enough):
                break
        stopped = status in (Status.MAX_TIME, Status.INTERRUPTED)
        if handed and not stopped:
            _finish(run, X=patterns.X, y=y, weights=weights)
            report("exact")
    w, alpha = scale.primal(run.w), scale.dual(run.alpha)
    alpha = whole.scatter(alpha if merged is None else merged.scatter(alpha))
    with np.errstate(over="ignore", invalid="ignore"):
        certificate = certify(
            problem, whole.X, whole.y, whole.weights, w, run.b, alpha, whole.projection, whole.square
        )
    if certificate.gap <= tol:
        status = Status.CERTIFIED
    elif status is Status.CERTIFIED:  # the running bounds were off by rounding
        status = Status.MAX_ITER
    if problem.hard and status in (Status.MAX_ITER, Status.CONVERGED, Status.NOT_FINITE):
        radius = float(np.sqrt(patterns.square.max(initial=0.0))) * scale.sigma
        status = _verdict(certificate, radius, status)
    if not (np.isfinite(w).all() and np.isfinite(run.b)):
        status = Status.NOT_FINITE
    return Solution(w, run.b, alpha, status, rounds, history, certificate)


def _status(run: Run, watch: Watch, tol: float) -> Status | None:
    """Why to end after this round; None to go on."""
    if run.gap <= tol:
        return Status.CERTIFIED
    if run.problem.hard and run.upper <= 0.0:
        return Status.INSEPARABLE
    if not np.isfinite(run.h.space.vector.w).all():
        return Status.NOT_FINITE
    if run.converged:
        return Status.CONVERGED
    return watch.status()


def _verdict(certificate: Certificate, radius: float, status: Status) -> Status:
    """What an unfinished hard margin says about separability."""
    if certificate.lower > 0.0:
        return status
    rounding = 16.0 * np.finfo(float).eps * radius * np.sqrt(certificate.support.size + 1.0)
    return Status.INSEPARABLE if certificate.upper <= rounding else Status.UNDECIDED


def _is_small(problem: Problem, patterns: Patterns) -> bool:
    side = min(patterns.n, patterns.d + 1)
    flops = patterns.n * side**2
    return (patterns.n <= FEW_ROWS and flops <= FEW_FLOPS) or (
        patterns.n <= MANY_ROWS and flops <= NEXT_TO_NONE
    )


def _fair_share(patterns: Patterns) -> float:
    """Presentations that cost a share of the exact step: the rule has that much to come near by itself."""
    side = min(patterns.n, patterns.d + 1)
    entries = patterns.entries / max(patterns.n, 1)
    return SHARE * patterns.n * side * side / max(entries, 1.0) + 5.0 * patterns.n


def _finish(run: Run, X: Any, y: np.ndarray, weights: np.ndarray) -> None:
    """End with the active-set step; its answer counts where its own bounds are better."""
    problem = run.problem
    qp = quadratic(problem, X, y, weights)
    near = None
    if run.gap < NEAR_ENOUGH:
        near = run.alpha * qp.scale**2
        if problem.hard:
            near = near / near.sum()
    try:
        for point in candidates(qp, near):
            w, b = qp.primal(point.w)
            alpha = qp.dual(point.a)
            if not (np.isfinite(w).all() and np.isfinite(alpha).all()):
                continue
            rounding = EXACT if point.settled else 0.0
            found = np.inf
            for v, bias in _primal_points(run, X, y, weights, w, b, point.settled):
                certificate = certify(problem, X, y, weights, v, bias, alpha)
                run.adopt(v, bias, alpha, certificate.lower, certificate.upper, rounding)
                found = min(found, certificate.gap)
            if point.settled and found <= EXACT:
                return
    except np.linalg.LinAlgError:  # what was found so far stands
        return


def _primal_points(
    run: Run, X: Any, y: np.ndarray, weights: np.ndarray, w: np.ndarray, b: float, settled: bool
) -> Iterator[tuple[np.ndarray, float]]:
    """(w, b) with the best intercept and scale, and also with tight margins just above one."""
    problem = run.problem
    z = Plain.scores(X, w)
    if problem.free:
        b = best_intercept(problem, z, y, weights)
    margins = y * (z + b)
    if problem.hard:
        smallest = float(margins.min())
        if smallest > 0.0:
            yield w / smallest, b / smallest  # canonical scale: the smallest margin is one
        else:
            yield run.w, run.b  # no separator: the rule's own w is of more use
        return
    yield w, b
    tight = np.abs(margins - 1.0) < TIGHT
    if settled and tight.any():
        # a margin that rounding leaves below one can cost more than all the rest
        terms = float((Plain.scores(abs(X[tight]), np.abs(w)) + abs(b)).max())
        grow = 1.0 + max(1.0 - float(margins[tight].min()), 0.0) + 4.0 * np.finfo(float).eps * terms
        yield w * grow, b * grow
