"""The driver: solve one binary task, stage after stage, until its certified gap is at most `tol`.

A task is presolved, and given to the stages that the policy lists: algorithms with a budget of row visits, and the
exact stage of small problems. Every round of a stage is an iterate. The driver decides when to go to the next stage and
when to stop; what it returns is certified on the caller's data.
"""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import replace

import numpy as np

from ..certificates.sample import Sample
from ..certificates.separators import LinearSeparator
from ..certificates.verdicts import Inseparable, Undecided
from ..data.task import Task
from ..data.units import Units, attempts
from ..engine.order import Source
from ..problem.status import Status
from . import separator
from .attempt import STOPPED, Attempt
from .exact import is_small
from .incumbent import ROUNDING, CertifiedPoint, Incumbent, rank
from .one_call import small_dense_rows, solve_in_one_call
from .policy import CONDITIONS, PROVES, Choice, Stage, stages
from .presolve import PresolveStep, ScaledUnits, SelectedRows, SharedRows, distinct_rows
from .report import Report, Solution, Stopping
from .row_attempt import Question, RowAttempt
from .schedules import Step


def solve(
    task: Task,
    choice: Choice,
    stopping: Stopping,
    rng: Source,
    sample: Sample | None = None,
    selected: SelectedRows | None = None,
    question: Question = lambda: None,
    shared: SharedRows | None = None,
) -> Solution:
    """Solve one binary task until its certified gap is at most `tol`, or another criterion ends it.

    Parameters
    ----------
    task : Task
        In the caller's units, rows of positive weight only.
    choice : Choice
        The algorithm, and how the policy came to it.
    stopping : Stopping
    rng : Generator or Draws
        Orders of presentation.
    sample : Sample, default=None
        The data that certificates speak of; None for the rows of the task.
    selected : SelectedRows, default=None
        The rows of the task among those of the sample, where rows of weight 0 were left out.
    question : callable, default=None
        Hard margins: returns a verdict on separability, one however often it is asked. Without an answer no data are
        called inseparable.
    shared : SharedRows, default=None
        Rows that several classes share.

    Returns
    -------
    solution : Solution
        CERTIFIED, CONVERGED or STALLED (the last stage ended with a larger gap), MAX_ITER, MAX_TIME, INTERRUPTED,
        UNDECIDED or INSEPARABLE (hard margins), NOT_FINITE.
    """
    sample = Sample(task.patterns.X, task.y, task.weights) if sample is None else sample
    incumbent, history = Incumbent(task.problem), []
    best, done = _one_call(task, choice, stopping, sample, selected, shared, incumbent, history)
    rounds = len(history)
    if best is not None and done:
        return best
    for units in attempts(task):
        left = replace(stopping, max_iter=max(stopping.max_iter - rounds, 1))
        attempt = _attempt(
            task, units, choice, left, rng, sample, selected, shared, incumbent, history, question
        )
        with np.errstate(over="ignore", invalid="ignore"):
            found = attempt.solution(
                run_to_end(run_stages(attempt, stages(attempt.task, choice, attempt.small)))
            )
        rounds += found.rounds
        if best is None or rank(found.certificate) <= rank(best.certificate):
            best = found
        stopped = found.status in STOPPED
        if stopped and best.status not in (Status.UNDECIDED, Status.CERTIFIED):  # which say more
            best = replace(best, status=found.status)
        if stopped or best.status is Status.CERTIFIED or rounds >= stopping.max_iter:
            break
        if found.status is Status.UNDECIDED:
            incumbent.verdict = question()
            if isinstance(incumbent.verdict, Inseparable | Undecided):
                break
    assert best is not None
    best = replace(best, rounds=rounds)
    # An algorithm that ended by its own criterion keeps its point: its dual variables count its updates.
    ended = best.status in (Status.CERTIFIED, Status.CONVERGED)
    proposed = isinstance(incumbent.verdict, LinearSeparator) and not ended
    verdict = question() if proposed or best.status is Status.UNDECIDED else None
    if verdict is not None:
        return separator.combine(best, verdict, task, stopping, sample, selected)
    if best.status is Status.UNDECIDED:
        return replace(best, status=stopping.watch.status() or Status.UNDECIDED)
    return best


def run_stages(attempt: Attempt, planned: list[Stage]) -> Generator[None, None, Status]:
    """Run the stages of one attempt in order; return why the last one ended.

    A stage ends when its solver has no further iterate, when its budget is spent, or for a reason of its own. Before
    an exact stage every reason but the deadline leads on (unless the stage is skippable, and the one before it ended
    within its budget); otherwise only CONVERGED of an algorithm does, as another one may come nearer.

    Parameters
    ----------
    attempt : Attempt
    planned : list of Stage

    Yields
    ------
    None
        Wherever the solver expects rows of the kernel, so that other problems on the same rows can expect theirs.
    """
    for stage, following in zip(planned, [*planned[1:], None], strict=True):
        attempt.begin(stage)
        status = attempt.status() if attempt.rounds and not stage.is_exact else None
        while status is None:
            step = attempt.advance()
            if step is Step.END:
                break
            if step is Step.WAIT:
                yield
                status = attempt.status_after_wait()
                continue
            attempt.report()
            status = attempt.status()
            if status is None and attempt.rules_out_separator():
                return Status.UNDECIDED
            if attempt.is_spent():
                break
        stopped = attempt.stopping.watch.status()
        if status in STOPPED or (status is None and stopped is not None):
            return status or stopped or Status.STALLED
        if status is not None and not _leads_on(attempt, stage, following, status):
            return status
    return Status.STALLED


def _leads_on(attempt: Attempt, stage: Stage, following: Stage | None, status: Status) -> bool:
    """Return whether the next stage is run, though this one ended for a reason of its own."""
    if following is None:
        return False
    if following.is_exact:
        return not following.skippable or attempt.is_spent()
    other = following.algorithm is not stage.algorithm
    return status is Status.CONVERGED and not stage.is_exact and other


def run_to_end(rounds: Generator[None, None, Status]) -> Status:
    """Run the stages of a problem by itself, without waiting for others."""
    while True:
        try:
            next(rounds)
        except StopIteration as end:
            return end.value


def _attempt(
    task: Task,
    units: Units,
    choice: Choice,
    stopping: Stopping,
    rng: Source,
    sample: Sample,
    selected: SelectedRows | None,
    shared: SharedRows | None,
    incumbent: Incumbent,
    history: list[Report],
    question: Question,
) -> RowAttempt:
    """Presolve the task in these units."""
    steps: list[PresolveStep] = [] if selected is None else [selected]
    # A given order of presentation (shuffle=False) is kept: merging rows would change it.
    euclidean = choice.exact and choice.algorithm.shuffle and task.problem.euclidean
    distinct = None
    if euclidean and is_small(task.problem, task.patterns):
        distinct = None if shared is None else shared.distinct()
        distinct = distinct or distinct_rows(task.patterns, task.y, task.weights)
        steps.append(distinct)
    if not units.ordinary:
        steps.append(ScaledUnits(units, task.problem))
    return RowAttempt(
        task, steps, distinct, choice.algorithm, stopping, rng, sample, incumbent, history, question
    )


def _one_call(
    task: Task,
    choice: Choice,
    stopping: Stopping,
    sample: Sample,
    selected: SelectedRows | None,
    shared: SharedRows | None,
    incumbent: Incumbent,
    history: list[Report],
) -> tuple[Solution | None, bool]:
    """Solve a small dense problem in one compiled call; return the solution, and whether it is as good as asked for.

    Only where the policy chose the algorithm: a point to begin with, an order that is asked for or a named algorithm
    are respected.
    """
    first = task.start is None and task.point is None
    if not (choice.exact and choice.automatic and choice.algorithm.shuffle and first):
        return None, False
    if stopping.watch.interrupted():
        return None, False
    own = small_dense_rows(task.problem, task.patterns, task.weights) if shared is None else None
    rows = own if shared is None else shared.small_dense()
    if rows is None:
        return None, False
    best, done, optimal = solve_in_one_call(task, rows, stopping, sample, selected)
    if best is None:
        return None, False
    incumbent.update_from(best)
    stage, reason = "exact", CONDITIONS if optimal else PROVES
    if not is_small(task.problem, task.patterns):
        stage, reason = choice.algorithm.name, choice.reason
    history.append(
        Report(
            1, stopping.watch.seconds(), incumbent.lower, incumbent.upper, incumbent.gap, 0, 0, stage, task.label,
            incumbent.margin(best.w), reason,
        )
    )  # fmt: skip
    stopping.on_report(history[-1], lambda: (best.w, best.b))
    return Solution(*best[:3], _status_of(best, stopping.tol), 1, history, best.certificate), done


def _status_of(point: CertifiedPoint, tol: float) -> Status:
    if point.certificate.gap <= tol:
        return Status.CERTIFIED
    return Status.CONVERGED if point.certificate.gap <= ROUNDING else Status.STALLED
