"""The outer loop: round -> report -> stop? -> solution. One binary problem."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from functools import cache
from itertools import chain
from typing import Any, NamedTuple

import numpy as np

from ..algorithms import Algorithm, DualCoordinateDescent
from ..algorithms.batch.active_set import Point, candidates
from ..algorithms.batch.chunks import Few
from ..algorithms.batch.quadratic_program import OutOfTime, Quadratic, Whole, is_wide, quadratics
from ..algorithms.batch.small_dense import optimum
from ..algorithms.programs import Program
from ..certificates.bounds import FEW as FEW_ENTRIES
from ..certificates.bounds import NEGLIGIBLE, Certificate, Sample, bounds, feasible
from ..certificates.bounds import proved as certificate_of
from ..certificates.one_pass import certify, certify_implied
from ..certificates.verdicts import Inseparable, LinearSeparator, Undecided, Verdict
from ..data.duplicates import Merged, apart, merge
from ..data.rows import Patterns
from ..data.task import Task
from ..data.units import Units, attempts, in_users_units
from ..engine.order import Source
from ..numerics.norms import norm
from ..numerics.stop_check import StopCheck
from ..numerics.sums import MORE_DIGITS, Compensated, Plain
from ..problem.problem import CROSSED, Problem, contradict
from ..problem.status import Status
from .deadline import Watch
from .line_search import intercept
from .run import Run
from .schedules import SCHEDULES

# problems that end with the exact step: rows, and rows x smaller side^2
FEW_ROWS, FEW_FLOPS = 2000, 2e8
MANY_ROWS, NEXT_TO_NONE = 50_000, 2e7
NEAR_ENOUGH = 3e-3  # gap below which the rule's own dual weights show the way
EXACT = 1e-12  # a gap that is rounding, of compensated sums
NEARLY = 0.996  # the certificate is rounded outwards, and still within `tol`
HALF = 0.5  # bounds of other units are proved in the user's whenever the gap is halved
TIGHT = 1e-9  # a margin as near to one is one
UNFINISHED = (Status.MAX_ITER, Status.STALLED, Status.CONVERGED, Status.UNDECIDED, Status.NOT_FINITE)
ENDED = (Status.CERTIFIED, Status.STALLED, Status.CONVERGED)
STOPPED = (Status.MAX_TIME, Status.INTERRUPTED)
SHARE = 0.4  # a quarter of the time of the exact step, in entries presented for each n side^2 of it
PATIENCE = 3  # rounds that the rule has at least, before a small problem is handed to the exact step,
# share of `tol`, for every so many columns: so small a gap is rounding too, where the optimality conditions hold
FAR_BELOW, COLUMNS = 1e-6, 1000
# the certificate of w, b and dual weights; the gap that is asked for comes last
Certified = Callable[[np.ndarray, float, np.ndarray, float], Certificate]
# what ends the exact step
CONDITIONS, PROVES = "the optimality conditions on the support", "the first point that proves tol"
CLAIM = 0.5  # share of `tol`: a gap by which bounds are near enough, most often
DONE = object()  # what the rounds of a solver end with
# columns of a problem that is solved in one compiled call, and rows where squared losses are not small: their copy
# takes longer to write than steps without it lose
NARROW, ONE_CALL = 100, 30_000
LOOKS = 100  # and looks at every row, at most, before it is asked whether there is a separator at all


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
    margin : float
        Of the best w so far: its smallest margin (hard), or 1 / |w|, from the line to where a margin is one (soft).
    reason : str
        Why this stage is at work.
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
    margin: float = np.nan
    reason: str = ""


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
    verdict: Verdict | None = None  # of a hard margin, where there was reason to ask


@dataclass(frozen=True)
class Relay:
    """Another algorithm, which takes over from the first.

    Attributes
    ----------
    algorithm : Algorithm
    reason : str
    presentations : float
        Rows that the first algorithm presents before.
    """

    algorithm: Algorithm
    reason: str
    presentations: float


@dataclass(frozen=True)
class Terms:
    """What is asked of the answer, and what may be spent on it.

    Attributes
    ----------
    tol : float
        Certified relative gap.
    max_iter : int
        Rounds.
    watch : Watch
        Time, Ctrl-C and callbacks.
    on_report : callable
        Sees every report, with a function that makes the best point so far: (w, b), or a `KernelPoint`.
    exact : bool, default=True
        Do small problems end with the exact step?
    reason : str
        Why this algorithm was chosen.
    question : callable
        Hard margins: can the classes be separated at all? Asked where the first rounds bring no separator; answers with
        one verdict however often. Without an answer nothing is called inseparable.
    relay : callable
        Who takes over where the first algorithm is not done in time: a `Relay`, or None.
    at_once : bool, default=False
        Do small problems begin with the exact step? The algorithm then has its turn only where that fails.
    distinct : callable
        The distinct rows of a small problem, where they are known from one that has the same.
    few : callable, default=None
        `few_rows` of a problem that has the same rows; None where there is no other.
    """

    tol: float
    max_iter: int
    watch: Watch
    on_report: Callable[[Report, Callable[[], Any]], None] = lambda report, point: None
    exact: bool = True
    reason: str = ""
    question: Callable[[], Verdict | None] = lambda: None
    relay: Callable[[], Relay | None] = lambda: None
    at_once: bool = False
    distinct: Callable[[], Distinct | None] = lambda: None
    few: Callable[[], Few | None] | None = None


@dataclass
class Distinct:
    """Rows that are told apart, and what the exact step makes of them without their labels."""

    merged: Merged
    patterns: Patterns
    _whole: Whole | None = None

    def whole(self, problem: Problem) -> Whole:
        """These rows as all programs of this problem have them, whatever the labels."""
        if self._whole is None:
            self._whole = Whole(problem, self.patterns.X, self.patterns.square)
        return self._whole


class _Told(NamedTuple):
    """A point in the user's units, of all rows, and what it proves."""

    w: np.ndarray
    b: float
    alpha: np.ndarray
    certificate: Certificate


class _Known:
    """The best bounds of the user's problem so far, in whatever units it is solved, and the best (w, b).

    Bounds in one attempt's own units may be those of another problem: they come here only once they are proved.
    """

    def __init__(self, problem: Problem) -> None:
        self.problem = problem
        self.lower, self.upper, self.gap = -np.inf, np.inf, np.inf
        self.point: tuple[np.ndarray, float] | None = None
        self.verdict: Verdict | None = None  # of a hard margin, once separability was decided

    def take(self, lower: float, upper: float, w: np.ndarray, b: float) -> None:
        """A pair of bounds, and the (w, b) of the primal one: each is kept where it is better than all before."""
        if contradict(lower, upper):
            return  # running ones, of margins that are rounding
        mine, best = (lower, self.lower) if self.problem.hard else (-upper, -self.upper)
        if self.point is None or mine >= best - EXACT * abs(best):
            self.point = w, b
        if min(upper, self.upper) < max(self.lower, lower) * (1.0 - CROSSED):
            self.lower, self.upper = lower, upper  # one was off by rounding: what comes last has more digits
        else:
            self.lower = max(self.lower, min(lower, self.upper))
            self.upper = min(self.upper, max(upper, self.lower))
        self.gap = self.problem.gap(self.lower, self.upper)


def distinct(patterns: Patterns, labels: np.ndarray, weights: np.ndarray) -> Distinct:
    """Rows that are told apart by their entries or labels, each with the weight of all that are like it.

    Parameters
    ----------
    patterns : Patterns
    labels : ndarray of shape (n,)
        -1.0 and 1.0, or numbers of classes.
    weights : ndarray of shape (n,), positive
    """
    lengths = patterns.square
    if is_wide(patterns.n, patterns.d) and np.unique(lengths).size == lengths.size:
        # equal rows are as long as each other; to sort rows as wide, which independent ones do not need, takes a copy
        return Distinct(apart(labels, weights), patterns)
    merged = merge(patterns.X, labels, weights)
    return Distinct(merged, patterns.some(merged.places))


def shared(patterns: Patterns, classes: np.ndarray, weights: np.ndarray) -> Distinct | None:
    """The distinct rows of several classes, each of which against the rest has these; `classes` are their numbers.

    None where equal rows are of more than one class: against the others these are one row.
    """
    found = distinct(patterns, classes, weights)
    if found.patterns is patterns:  # no two rows are equal
        return found
    few, ones = found.patterns, np.ones(found.patterns.n)
    return found if merge(few.X, ones, ones).y.size == few.n else None


def solve(
    task: Task,
    algorithm: Algorithm,
    terms: Terms,
    rng: Source,
    sample: Sample | None = None,
    rows: np.ndarray | None = None,
) -> Solution:
    """Solve one binary problem until its certified gap is at most `tol`, or something else ends it.

    Parameters
    ----------
    task : Task
    algorithm : Algorithm
    terms : Terms
    rng : Generator or Draws
        Orders of presentation.
    sample : Sample, default=None
        The data that the certificate speaks of; None for the patterns of the task.
    rows : ndarray of int, default=None
        Which rows of the sample the patterns are, where those of weight 0 were left out.
    """
    whole = Sample(task.patterns.X, task.y, task.weights) if sample is None else sample
    history: list[Report] = []
    known = _Known(task.problem)
    best, ended = _in_one_call(task, algorithm, terms, whole, rows, history, known)
    rounds = len(history)
    if best is not None and ended:
        return best
    for scale in attempts(task):
        left = replace(terms, max_iter=max(terms.max_iter - rounds, 1))
        found = _solve(task, scale, algorithm, left, rng, whole, rows, history, known)
        rounds += found.rounds
        if best is None or _rank(found.certificate) <= _rank(best.certificate):
            best = found
        stopped = found.status in STOPPED
        if stopped and best.status not in (Status.UNDECIDED, Status.CERTIFIED):  # of which more is to be said
            best = replace(best, status=found.status)
        if stopped or best.status is Status.CERTIFIED or rounds >= terms.max_iter:
            break
        if found.status is Status.UNDECIDED:
            known.verdict = terms.question()
            if isinstance(known.verdict, Inseparable | Undecided):
                break
    assert best is not None
    best = replace(best, rounds=rounds)
    proposed = isinstance(known.verdict, LinearSeparator) and best.status is not Status.CERTIFIED
    return _answered(best, task, terms, whole, rows) if proposed or best.status is Status.UNDECIDED else best


def _in_one_call(
    task: Task,
    algorithm: Algorithm,
    terms: Terms,
    whole: Sample,
    rows: np.ndarray | None,
    history: list[Report],
    known: _Known,
) -> tuple[Solution | None, bool]:
    """The optimum of few rows of few columns, or of more rows a point that proves `tol`; and whether it is that.

    What it proves less of counts like any other point. It is the exact step's where the problem is small, else that of
    the algorithm, which finds the same.
    """
    problem, patterns = task.problem, task.patterns
    asked = terms.exact and terms.at_once and algorithm.shuffle and task.start is None and task.point is None
    if not asked or terms.watch.interrupted():
        return None, False
    few = few_rows(problem, patterns, task.weights) if terms.few is None else terms.few()
    if few is None:
        return None, False
    best, ended, near = None, False, 0.0
    with np.errstate(over="ignore", invalid="ignore"):
        for near in (CLAIM * terms.tol, 0.0) if patterns.n > FEW_ROWS else (0.0,):
            found = None
            if not terms.watch.interrupted():
                found = optimum(problem, few, task.y, task.weights, near, terms.watch.interrupted)
            if found is None or not _is_finite(*found):
                break
            told, ended = _told(task, terms, whole, rows, found, near > 0.0)
            best = told if best is None or told.certificate.gap <= best.certificate.gap else best
            if ended:
                break
    if best is None:
        return None, False
    known.take(best.certificate.lower, best.certificate.upper, best.w, best.b)
    stage, reason = "exact", f"p = 2, a small problem: {PROVES if near else CONDITIONS}"
    if not is_small(problem, patterns):
        stage, reason = algorithm.name, terms.reason
    history.append(
        Report(
            1, terms.watch.seconds(), known.lower, known.upper, known.gap, 0, 0, stage, task.label,
            _margin(known, best.w), reason,
        )
    )  # fmt: skip
    terms.on_report(history[-1], lambda: (best.w, best.b))
    status = Status.CONVERGED if best.certificate.gap <= EXACT else Status.STALLED
    status = Status.CERTIFIED if best.certificate.gap <= terms.tol else status
    return Solution(best.w, best.b, best.alpha, status, 1, history, best.certificate), ended


def _is_finite(w: np.ndarray, b: float, alpha: np.ndarray) -> bool:
    """Are these numbers, whose sums are numbers too?"""
    return math.isfinite(float(w.sum()) + b + float(alpha.sum()))


def few_rows(problem: Problem, patterns: Patterns, weights: np.ndarray) -> Few | None:
    """Rows so few that steps take less than the calls between them, as one call has them; None of others.

    Parameters
    ----------
    problem : Problem
    patterns : Patterns
    weights : ndarray of shape (n,), positive
    """
    if problem.hard or not problem.euclidean or patterns.d + 1 > NARROW:
        return None
    many = problem.loss == "squared_hinge" and patterns.n <= ONE_CALL and not patterns.sparse
    if not (many or is_small(problem, patterns)):
        return None
    if not in_users_units(problem, patterns, weights):
        return None
    with np.errstate(over="ignore", invalid="ignore"):
        X = patterns.X.toarray() if patterns.sparse else patterns.X
        return Few(problem, X, square=float(patterns.square.sum()))


def _told(
    task: Task, terms: Terms, whole: Sample, rows: np.ndarray | None, found: tuple[np.ndarray, float, np.ndarray],
    near: bool,
) -> tuple[_Told, bool]:  # fmt: skip
    """What one call has found, and whether it proves to be the optimum, or as near as was asked for."""
    problem, (w, b, alpha) = task.problem, found
    exact = _exact(whole.entries, task.patterns.d, terms.tol)
    asked = terms.tol if near or _hurried(terms.watch, whole.entries) else exact
    affords = terms.watch.affords
    points: Iterable[tuple[np.ndarray, float]] = [(w, b)]
    if problem.loss == "hinge" and not near:
        points = chain(points, _tight_points(problem, task.patterns, task.y, task.weights, (w, b), exact))
        affords = _nothing  # tight margins may ask for no more digits
    alpha, best, ended = _of_all(alpha, whole, rows), None, False
    for w, b in points:
        certificate = certify(problem, whole, w, b, alpha, max(asked, 1e1 * exact), affords)
        affords = terms.watch.affords
        if best is None or certificate.gap <= best.certificate.gap:
            best = _Told(w, b, alpha, certificate)
        ended = certificate.gap <= min(asked, NEARLY * terms.tol)
        if ended:
            break
    assert best is not None
    return best, ended


def _nothing(seconds: float) -> bool:
    """Is there time for that? No."""
    return False


def _exact(entries: int, columns: int, tol: float) -> float:
    """A gap of so many entries that is rounding, where the optimality conditions hold."""
    # scores are sums of so many terms, and more digits of them take longer than all else
    share = FAR_BELOW * max(1.0, columns / COLUMNS)
    return max(EXACT if entries <= FEW_ENTRIES else NEGLIGIBLE, share * tol)


def _hurried(watch: Watch, entries: int) -> bool:
    """Is there no time for all the digits of a certificate?"""
    return not watch.affords(sum(one.SECONDS for one in MORE_DIGITS) * entries)


def _of_all(alpha: np.ndarray, whole: Sample, rows: np.ndarray | None) -> np.ndarray:
    """The dual weights of all rows, from those of some."""
    if rows is None:
        return alpha
    every = np.zeros(whole.y.size)
    every[rows] = alpha
    return every


def _solve(
    task: Task,
    scale: Units,
    algorithm: Algorithm,
    terms: Terms,
    rng: Source,
    whole: Sample,
    rows: np.ndarray | None,
    history: list[Report],
    known: _Known,
) -> Solution:
    """Solve the problem in these units; bounds in the history are those of the user's problem, the best so far."""
    problem, watch, tol = task.problem, terms.watch, terms.tol
    # an order that is asked for is kept
    small = terms.exact and algorithm.shuffle and problem.euclidean and is_small(problem, task.patterns)
    merged: Merged | None = None
    few: Distinct | None = None
    if small:
        few = terms.distinct() or distinct(task.patterns, task.y, task.weights)
        merged, patterns = few.merged, few.patterns
        task = replace(
            task,
            patterns=patterns,
            y=task.y[merged.places],
            weights=merged.weights,
            start=None if task.start is None else merged.gather(task.start),
        )
    task = scale.task(task)
    doubtful = problem.hard
    handed = small and algorithm.convergent
    relay, reason = terms.relay(), terms.reason
    enough = _fair_share(task.patterns) if handed else _turn(relay)

    def enough_said() -> bool:
        return run.presentations >= enough or watch.interrupted()

    with np.errstate(over="ignore", invalid="ignore"):  # what is begun with may be of other data
        run = Run(task, algorithm, tol, rng, StopCheck(enough_said, watch.left))
        run.look_for_zero_rows()
        run.count_start()

    presentations, steps = (history[-1].presentations, history[-1].steps) if history else (0, 0)
    hurried = False  # was there no time for digits?
    looked: float | None = None  # the gap, in these units, of the last point that was certified in the user's

    def report(stage: str, reason: str) -> None:
        nonlocal looked
        if scale.ordinary:
            known.take(run.lower, run.upper, run.w, run.b)
        elif looked is None or run.gap < HALF * looked or run.gap <= NEARLY * tol < looked:
            looked = run.gap
            take(told(run.w, run.b, run.alpha, tol))
        w, b = known.point or (np.zeros(whole.X.shape[1]), 0.0)
        history.append(
            Report(
                len(history) + 1, watch.seconds(), known.lower, known.upper, known.gap,
                presentations + run.presentations, steps + run.steps, stage, task.label, _margin(known, w), reason,
            )
        )  # fmt: skip
        terms.on_report(history[-1], lambda: (w, b))

    def take(point: _Told) -> None:
        known.take(point.certificate.lower, point.certificate.upper, point.w, point.b)

    def affords(seconds: float) -> bool:
        """Is there time for the digits of a certificate?"""
        nonlocal hurried
        enough = watch.affords(seconds)
        hurried = hurried or not enough
        return enough

    def told(w: np.ndarray, b: float, alpha: np.ndarray, gap: float) -> _Told:
        """What the user is told of this point, with the certificate for a gap."""
        w, alpha = scale.primal(w), scale.dual(problem, alpha)
        alpha = _of_all(alpha if merged is None else merged.scatter(alpha), whole, rows)
        return _Told(w, b, alpha, certify(problem, whole, w, b, alpha, gap, affords))

    # of the exact step's points, and of those that were heard
    proofs: list[tuple[np.ndarray, np.ndarray, _Told]] = []

    @cache
    def sample() -> Sample:
        return Sample(task.patterns.X, task.y, task.weights, np.sqrt(task.patterns.square))

    def certified(w: np.ndarray, b: float, alpha: np.ndarray, gap: float) -> Certificate:
        """What the user is told is kept; the certificate is in these units."""
        proofs.append((w, alpha, told(w, b, alpha, gap)))
        if scale.ordinary:
            return proofs[-1][-1].certificate
        take(proofs[-1][-1])
        return certify(task.problem, sample(), w, b, alpha, gap)

    def implied(w: np.ndarray, b: float) -> tuple[np.ndarray, Certificate]:
        """The dual weights that margins imply, under squared losses, and the certificate."""
        if scale.ordinary and merged is None:
            found = certify_implied(problem, whole, w, b, tol, affords)
            if found is not None:
                every, certificate = found
                alpha = every if rows is None else every[rows]
                proofs.append((w, alpha, _Told(w, b, every, certificate)))
                return alpha, certificate
        slack = 1.0 - task.y * Plain.scores(task.patterns.X, w, b)
        alpha = 2.0 * task.problem.C * task.weights * np.maximum(slack, 0.0)
        return alpha, certified(w, b, alpha, tol)

    def prove() -> None:
        """What a solver says is proved, or is not so: then the point is valued like any other."""
        if run.heard is None:
            return
        (w, b, alpha), run.heard = run.heard, None
        foreseen = alpha is None
        if alpha is None:
            alpha, certificate = implied(w, b)
        else:
            certificate = certified(w, b, alpha, tol)
        if certificate.gap <= NEARLY * tol or (foreseen and certificate.gap < np.inf):
            run.adopt(w, b, alpha, certificate.lower, certificate.upper, 0.0)
        elif not foreseen:
            run.value(w, b, alpha)

    def finish() -> Status | None:
        entries = whole.entries if scale.ordinary else task.patterns.entries
        X = few.whole(problem) if few is not None and task.patterns is few.patterns else task.patterns.X
        exact = _exact(entries, task.patterns.d, tol)
        # with other columns it is another problem, whose gap may be less than the user's
        near = NEARLY * tol if task.patterns.n > FEW_ROWS and scale.columns is None else 0.0
        if not (run.gap <= near and certified(run.w, run.b, run.alpha, tol).gap <= near):
            _finish(run, X, certified, watch, exact, near)
        end = PROVES if near and not problem.hard else CONDITIONS
        report("exact", f"p = 2, a small problem: {end}")
        done = _after_finish(run, tol)
        if done not in (Status.CERTIFIED, Status.CONVERGED):  # cut off: nobody else has time either
            done = watch.status() or done
        return done

    status: Status | None = None
    rounds = 0
    rounds_of = SCHEDULES[algorithm.schedule](run)
    with np.errstate(over="ignore", invalid="ignore"):
        # a hard margin of more rows than columns may have no separator: the rule then has a w to show
        wide = task.patterns.d >= task.patterns.n
        if small and terms.at_once and (wide or not problem.hard):
            status, rounds, handed, enough = finish(), 1, False, _turn(relay)
        while status is None:
            if relay is not None and not handed and run.presentations >= enough:
                run, reason = run.handed_to(relay.algorithm), relay.reason
                rounds_of, relay, enough = SCHEDULES[run.algorithm.schedule](run), None, np.inf
            if next(rounds_of, DONE) is DONE:  # a batch solver at its end
                status = finish() if handed else None
                status = status or watch.status() or (Status.STALLED if relay is None else None)
                handed, enough = False, 0.0
                continue
            rounds += 1
            prove()
            report(run.algorithm.name, reason)
            ended = _status(run, watch, tol)
            last = ended is not None or rounds >= terms.max_iter
            if doubtful and not last and _is_doubtful(run, algorithm, rounds):
                doubtful, known.verdict = False, terms.question()
                if isinstance(known.verdict, Inseparable | Undecided):
                    status = Status.UNDECIDED
                    break
            if handed and (last or (rounds >= PATIENCE and run.presentations >= enough)):
                if ended in STOPPED:
                    status = ended
                    break
                done = finish()
                handed, enough = False, _turn(relay)  # where it fails, the rule goes on
                if done is not None:
                    status = done
                    break
            if ended is Status.CONVERGED and relay is not None:
                ended, enough = None, 0.0  # as near as it comes: the next one may come nearer
            if ended is not None:
                status = ended
                break
            if rounds >= terms.max_iter:
                status = Status.MAX_ITER
        assert status is not None
        if status in STOPPED and _is_empty_handed(run, tol):
            run = run.handed_to(DualCoordinateDescent())
            run.passes(1)
            run.look()
            rounds += 1
            report(run.algorithm.name, "nothing was found in time: one pass over the rows")
        same = (proof for w, alpha, proof in proofs if w is run.w and alpha is run.alpha and proof.b == run.b)
        proved = next(same, None) or told(run.w, run.b, run.alpha, tol)
        if not scale.ordinary:  # what is best in these units need not be so in the user's
            proved = min(
                [proved, *(proof for *_, proof in proofs)], key=lambda proof: _rank(proof.certificate)
            )
            take(proved)
    w, b, alpha, certificate = proved
    if certificate.gap <= tol:
        status = Status.CERTIFIED
    elif hurried and status in ENDED:
        status = watch.status() or Status.MAX_TIME
    elif status is Status.CERTIFIED:  # the running bounds were off by rounding
        status = Status.STALLED
    if problem.hard and not certificate.lower > 0.0 and status in UNFINISHED:
        status = Status.UNDECIDED
    elif certificate.lower > 0.0 and status is Status.UNDECIDED:  # only the caller's units show the separator
        status = Status.STALLED
    finite = np.isfinite(w).all() and np.isfinite(b)
    if not finite or np.isnan([certificate.lower, certificate.upper]).any():
        status = Status.NOT_FINITE
    return Solution(w, b, alpha, status, rounds, history, certificate)


def _turn(relay: Relay | None) -> float:
    """The presentations after which the next algorithm takes over."""
    return np.inf if relay is None else relay.presentations


def _rank(certificate: Certificate) -> tuple[float, float]:
    """The order of certificates of one problem, best first: by gap, and by margin where hard gaps round to one."""
    lower = certificate.lower if certificate.problem.hard else 0.0
    return certificate.gap, -lower if lower > -np.inf else np.inf


def _answered(found: Solution, task: Task, terms: Terms, whole: Sample, rows: np.ndarray | None) -> Solution:
    """Combine what the algorithm found with the verdict: its separator is an incumbent, its proof of none is final."""
    problem, verdict = task.problem, terms.question()
    if isinstance(verdict, Inseparable):
        alpha = np.zeros(whole.y.size)
        alpha[verdict.support] = verdict.alpha
        certificate = certify(problem, whole, found.w, found.b, alpha)
        return replace(
            found, alpha=alpha, status=Status.INSEPARABLE, certificate=certificate, verdict=verdict
        )
    if isinstance(verdict, LinearSeparator) and verdict.exact is None:
        found = _with_separator(found, verdict, task, terms, whole, rows)
    if found.certificate.lower > 0.0:
        return found
    return replace(found, status=terms.watch.status() or Status.UNDECIDED, verdict=verdict)


def _with_separator(
    found: Solution,
    verdict: LinearSeparator,
    task: Task,
    terms: Terms,
    whole: Sample,
    rows: np.ndarray | None,
) -> Solution:
    """The better of the model so far and the verdict's separator, with the better of their dual weights.

    The separator is a candidate twice: with a smallest margin of one and, as that division rounds every entry of w,
    multiplied by a power of two, which leaves its margin as the verdict proves it.
    """
    problem, alpha = task.problem, found.alpha
    if verdict.hi < found.certificate.upper:
        alpha = _of_all(verdict.certificate.alpha, whole, rows)
    w, b = verdict.w, verdict.b
    with np.errstate(over="ignore", under="ignore", divide="ignore", invalid="ignore"):
        least = float((task.y * Compensated.scores(task.patterns.X, w, b)).min())
        power = -int(np.frexp(least)[1])
        points: list[tuple[np.ndarray, float]]
        points = [(w / least, b / least), (np.ldexp(w, power), float(np.ldexp(b, power))), (found.w, found.b)]
    # all digits, as the verdict has: what they add to a margin is no part of a gap that is nearly one, but is proved
    dual = feasible(problem, whole.y, whole.weights, alpha)
    told = []
    for u, c in points:
        bounded = bounds(problem, whole, u, c, dual, Compensated)
        told.append(_Told(u, c, alpha, certificate_of(problem, whole, dual, bounded)))
    first, second, own = told
    separator = first if first.certificate.lower >= second.certificate.lower * (1.0 - EXACT) else second
    best = min([own, separator], key=lambda one: _rank(one.certificate))
    status = found.status
    if best.certificate.lower > 0.0 and status in (Status.UNDECIDED, Status.NOT_FINITE):
        status = Status.MAX_ITER if found.rounds >= terms.max_iter else Status.STALLED
        status = terms.watch.status() or status
    status = Status.CERTIFIED if best.certificate.gap <= terms.tol else status
    return replace(found, w=best.w, b=best.b, alpha=alpha, status=status, certificate=best.certificate)


def _margin(known: _Known, w: np.ndarray) -> float:
    """What the report says of the margin."""
    if known.problem.hard:
        return known.lower
    length = norm(w, known.problem.q)
    return 1.0 / length if length > 0.0 else np.inf


def _status(run: Run, watch: Watch, tol: float) -> Status | None:
    """Why to end after this round; None to go on."""
    if run.gap <= NEARLY * tol:
        return Status.CERTIFIED
    if run.problem.hard and run.upper <= 0.0:
        return Status.UNDECIDED  # until it is proved
    if not run.finite:
        return Status.NOT_FINITE
    if run.converged:
        return Status.CONVERGED
    return watch.status()


def _is_empty_handed(run: Run, tol: float) -> bool:
    """Is there nothing to show, where a pass of dual coordinate descent makes a model?"""
    if not run.problem.euclidean or run.gap <= tol:
        return False
    return not run.w.any() or (not run.problem.hard and run.gap == np.inf)


def _is_doubtful(run: Run, algorithm: Algorithm, rounds: int) -> bool:
    """Has the algorithm had its chance to find a separator?"""
    if run.lower > 0.0 or rounds < PATIENCE:
        return False
    if isinstance(algorithm, Program):  # a round of which costs as much as the answer
        return True
    return run.presentations >= min(_fair_share(run.patterns), LOOKS * run.patterns.n)


def _after_finish(run: Run, tol: float) -> Status | None:
    """Why to end after the exact step; None to go on."""
    if run.gap <= NEARLY * tol:
        return Status.CERTIFIED
    if run.gap <= EXACT:
        return Status.CONVERGED  # as near as float64 comes
    return Status.UNDECIDED if run.problem.hard and not run.lower > 0.0 else None


def is_small(problem: Problem, patterns: Patterns) -> bool:
    """Does the exact step come first?"""
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


def _finish(run: Run, X: Any, certified: Certified, watch: Watch, exact: float, enough: float) -> None:
    """End with the active-set step, once the gap is `exact`, or `enough` on the way there.

    Its answer counts where its own bounds are better.
    """
    problem = run.problem
    if watch.interrupted():
        return
    try:
        for qp in quadratics(problem, X, run.y, run.weights, watch.interrupted):
            done = _finish_in(qp, run, certified, watch, exact, enough)
            if done or run.gap <= run.tol or watch.interrupted():
                return
    except OutOfTime:
        return


def _finish_in(
    qp: Quadratic, run: Run, certified: Certified, watch: Watch, exact: float, enough: float
) -> bool:
    """The active-set step in the units of this program; is its answer all that there is to be had?"""
    near = qp.near(run.alpha) if run.gap < NEAR_ENOUGH else None

    def content(point: Point) -> bool:
        """Take over what it proves. Is that all?"""
        w, b = qp.primal(point.w, point.beta)
        alpha = qp.dual(point.a)
        if not (np.isfinite(w).all() and np.isfinite(alpha).all()):
            return False
        rounding = exact if point.settled else None
        for v, bias in [(w, b)] if point.near else _primal_points(run, w, b, rounding):
            hurried = _hurried(watch, run.patterns.entries)
            asked = run.tol if hurried else NEARLY * run.tol if point.near else exact
            certificate = certified(v, bias, alpha, max(asked, 1e1 * exact))
            run.adopt(v, bias, alpha, certificate.lower, certificate.upper, exact if point.settled else 0.0)
            if (point.settled or point.near) and certificate.gap <= asked:
                return True
        return False

    rough: list[Point] = []  # looked at where none that is settled is enough
    try:
        for point in candidates(qp, near, watch.interrupted, enough):
            if not (point.settled or point.near):
                rough.append(point)
            elif content(point):
                return True
            if watch.interrupted():
                break
    except np.linalg.LinAlgError:  # what was found so far stands
        pass
    for point in rough:
        content(point)
    return False


def _primal_points(
    run: Run, w: np.ndarray, b: float, exact: float | None
) -> Iterator[tuple[np.ndarray, float]]:
    """(w, b) with the best intercept and scale, and also with tight margins just above one."""
    problem, X, y = run.problem, run.patterns.X, run.y
    if not problem.hard:
        yield from _tight_points(problem, run.patterns, y, run.weights, (w, b), exact)
        return
    z = Plain.scores(X, w)
    b = intercept(problem, z, y, run.weights) if problem.free else b
    smallest = float((y * (z + b)).min())
    if smallest > 0.0:
        yield w / smallest, b / smallest  # canonical scale: the smallest margin is one
    else:
        yield run.w, run.b  # no separator: the rule's own w is of more use


def _tight_points(
    problem: Problem,
    patterns: Patterns,
    y: np.ndarray,
    weights: np.ndarray,
    point: tuple[np.ndarray, float],
    exact: float | None,
) -> Iterator[tuple[np.ndarray, float]]:
    """The same of a soft margin. `exact`: a gap that is rounding; None where the optimality conditions do not hold."""
    X, (w, b) = patterns.X, point
    z = Plain.scores(X, w)
    b = intercept(problem, z, y, weights) if problem.free else b
    margins = y * (z + b)
    tight = np.abs(margins - 1.0) < TIGHT
    if exact is None or not tight.any():
        yield w, b
        return
    # a margin that rounding leaves below one can cost more than all the rest
    short = max(1.0 - float(margins[tight].min()), 0.0)
    size = patterns.longest2**0.5 * Plain.norm(w) + abs(b)
    grow = short + 3.0 * Plain.error(1.0, size, patterns.d + 1)
    if problem.loss == "hinge" and 4.0 * grow <= exact:  # so much that tight margins ask for no more digits
        yield w * (1.0 + grow), b * (1.0 + grow)
    yield w, b
    terms = float((Plain.scores(abs(X[tight]), np.abs(w)) + abs(b)).max())
    grow = short + 4.0 * np.finfo(float).eps * terms
    yield w * (1.0 + grow), b * (1.0 + grow)
