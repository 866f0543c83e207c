"""Combine what a hard-margin fit found with the verdict on separability."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from ..certificates.dual_variables import feasible
from ..certificates.one_pass import certify
from ..certificates.rows import bounds, proved
from ..certificates.sample import Sample
from ..certificates.separators import LinearSeparator
from ..certificates.verdicts import Inseparable, Verdict
from ..data.task import Task
from ..numerics.sums import Compensated
from ..problem.status import Status
from .incumbent import ROUNDING, CertifiedPoint, rank
from .presolve import Point, PresolveStep
from .report import Solution, Stopping


def combine(
    found: Solution,
    verdict: Verdict,
    task: Task,
    stopping: Stopping,
    sample: Sample,
    selected: PresolveStep | None,
) -> Solution:
    """Return the solution that a verdict leaves: its separator is an incumbent, its proof of none is final.

    Parameters
    ----------
    found : Solution
    verdict : Verdict
    task : Task
        In the caller's units.
    stopping : Stopping
    sample : Sample
        The caller's data.
    selected : PresolveStep or None
        The rows of the task among those of the sample; None for all.
    """
    if isinstance(verdict, Inseparable):
        alpha = np.zeros(sample.y.size)
        alpha[verdict.support] = verdict.alpha
        certificate = certify(task.problem, sample, found.w, found.b, alpha)
        return replace(
            found, alpha=alpha, status=Status.INSEPARABLE, certificate=certificate, verdict=verdict
        )
    if isinstance(verdict, LinearSeparator) and verdict.exact is None:
        found = _with_separator(found, verdict, task, stopping, sample, selected)
    if found.certificate.lower > 0.0:
        return found
    return replace(found, status=stopping.watch.status() or Status.UNDECIDED, verdict=verdict)


def _with_separator(
    found: Solution,
    verdict: LinearSeparator,
    task: Task,
    stopping: Stopping,
    sample: Sample,
    selected: PresolveStep | None,
) -> Solution:
    """Return the better of the model so far and the verdict's separator, with the better of their dual variables."""
    problem, alpha = task.problem, found.alpha
    if verdict.hi < found.certificate.upper:
        alpha = verdict.certificate.alpha
        alpha = alpha if selected is None else selected.restore(Point(verdict.w, verdict.b, alpha)).alpha
    # Sums with all digits, as the verdict has them: what they add to a margin hardly shows in a gap near one.
    dual = feasible(problem, sample.y, sample.weights, alpha)
    candidates = []
    for w, b in [*_scaled_separators(verdict, task), (found.w, found.b)]:
        bounded = bounds(problem, sample, w, b, dual, Compensated)
        candidates.append(CertifiedPoint(w, b, alpha, proved(problem, sample, dual, bounded)))
    first, second, own = candidates
    separator = first if first.certificate.lower >= second.certificate.lower * (1.0 - ROUNDING) else second
    best = min([own, separator], key=lambda one: rank(one.certificate))
    status = found.status
    if best.certificate.lower > 0.0 and status in (Status.UNDECIDED, Status.NOT_FINITE):
        status = Status.MAX_ITER if found.rounds >= stopping.max_iter else Status.STALLED
        status = stopping.watch.status() or status
    status = Status.CERTIFIED if best.certificate.gap <= stopping.tol else status
    return replace(found, w=best.w, b=best.b, alpha=alpha, status=status, certificate=best.certificate)


def _scaled_separators(verdict: LinearSeparator, task: Task) -> list[tuple[np.ndarray, float]]:
    """Return the separator twice: with a smallest margin of one, and multiplied by a power of two.

    The division by the smallest margin rounds every entry of w; a power of two leaves the margin as it was proved.
    """
    w, b = verdict.w, verdict.b
    with np.errstate(over="ignore", under="ignore", divide="ignore", invalid="ignore"):
        least = float((task.y * Compensated.scores(task.patterns.X, w, b)).min())
        power = -int(np.frexp(least)[1])
        return [(w / least, b / least), (np.ldexp(w, power), float(np.ldexp(b, power)))]
