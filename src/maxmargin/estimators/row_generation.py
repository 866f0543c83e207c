"""Row generation over partitions: problems whose solution few rows determine, in every norm.

The rows in memory are solved by the in-memory estimator. Its lower bound of a soft margin, or its upper bound of a hard
one, holds for all rows, since further rows only raise the objective, or lower the margin. A pass over all rows
evaluates the point, which gives the other bound, and gathers the rows with the smallest margins, which are added. A
proof that no separator exists holds for all rows as well.

The rows with a loss have to fit in memory: this is for hard margins, and for soft ones of which few rows have a loss.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial, reduce
from typing import Any

import numpy as np

from ..certificates.certificate import Certificate
from ..certificates.verdicts import Inseparable
from ..data.partitions import Gathered, Partitions
from ..fit.partitioned.bounds import empty_certificate
from ..fit.partitioned.coordinates import Coordinates
from ..fit.partitioned.sample import count_classes, draw_rows
from ..fit.partitioned.scores import Evaluation, Scored, evaluate
from ..fit.partitioned.solve import PartitionedSolution
from ..fit.partitioned.sums import Near
from ..fit.report import Report, Stopping
from ..numerics.norms import norm
from ..problem.multiclass import python_label
from ..problem.problem import Problem
from ..problem.status import Status
from ..separability.search import about_all_rows

STAGE = "row-generation"
REASON = "rows in partitions: the rows of the smallest margins are solved in memory"
# Part of the rows that fit in memory that the first sample has; the others are for the rows of the smallest margins.
SAMPLE_SHARE = 0.25
# Margin below which rows are added for a hard margin, whose smallest margin in memory is 1: rounding makes no row
# violate it.
HARD_REACH = 1.0 - 1e-9

MAX_IDLE = 8  # passes without a better bound after which the fit has stalled, as in `partitioned.newton`

# Fits the in-memory estimator to gathered rows with the numbers of their classes as labels.
FitRows = Callable[[Gathered], Any]


@dataclass(eq=False)
class _Part:
    """The best bounds and the best point z, of shape (size,), of one binary problem."""

    z: np.ndarray
    certificate: Certificate
    history: list[Report]
    verdict: Any = None


def generate_rows(
    partitions: Partitions,
    problem: Problem,
    classes: np.ndarray,
    rows: int,
    seed: int,
    stopping: Stopping,
    fit_rows: FitRows,
) -> list[PartitionedSolution]:
    """Solve a problem by row generation; parameters and result are those of `solve_partitioned`.

    Parameters
    ----------
    rows : int
        Rows that fit in memory.
    fit_rows : callable
        Returns an in-memory estimator that is fitted to some rows.
    """
    run = _RowGeneration(partitions, problem, classes, rows, stopping)
    status = run.run(seed, fit_rows)
    return [run.solution(k, status) for k in range(len(run.labels))]


class _RowGeneration:
    """The rows in memory, and the bounds of all binary problems."""

    def __init__(
        self, partitions: Partitions, problem: Problem, classes: np.ndarray, rows: int, stopping: Stopping
    ) -> None:
        self.partitions, self.problem, self.rows, self.stopping = partitions, problem, rows, stopping
        self.coordinates, self.classes = Coordinates(problem, partitions.shape[1]), classes
        two = classes.size == 2
        self.positives = [1] if two else list(range(classes.size))
        self.labels = [None] if two else [python_label(label) for label in classes]
        zero, nothing = np.zeros(self.coordinates.size), empty_certificate(problem, partitions.shape)
        self.idle = 0  # passes since a bound has improved
        self.parts = [_Part(zero, nothing, []) for _ in self.labels]

    def run(self, seed: int, fit_rows: FitRows) -> Status:
        """Add rows until all problems are certified, or another criterion ends the fit."""
        deadline, problem, held = self.stopping.deadline, self.problem, self._first_rows(seed)
        if held is None:
            return deadline.status() or Status.STALLED
        for _ in range(self.stopping.max_iter):
            model = fit_rows(held)
            points = [
                self.coordinates.vector(w, b) for w, b in zip(model.coef_, model.intercept_, strict=True)
            ]
            reach = HARD_REACH if problem.hard else 1.0
            room = max(self.rows // (2 * len(points)), 1)
            evaluations = tuple(
                Evaluation(positive, z, room, reach)
                for positive, z in zip(self.positives, points, strict=True)
            )
            scores = self.partitions.total(
                partial(evaluate, self.coordinates, evaluations), deadline.interrupted
            )
            if scores is None:
                return deadline.status() or Status.STALLED
            better = [self._update(k, model, held, points[k], part) for k, part in enumerate(scores.parts)]
            self.idle = 0 if any(better) else self.idle + 1
            if all(
                part.certificate.gap <= self.stopping.tol or part.verdict is not None for part in self.parts
            ):
                return Status.CERTIFIED
            if deadline.interrupted():
                return deadline.status() or Status.STALLED
            more = self._joined(held, model, [part.near.pruned() for part in scores.parts])
            if more is None or self.idle >= MAX_IDLE:
                return Status.STALLED
            held = more
        return Status.MAX_ITER

    def _first_rows(self, seed: int) -> Gathered | None:
        """Draw a random sample; None if stopped."""
        interrupted = self.stopping.deadline.interrupted
        counts = self.partitions.reduce(partial(count_classes, self.classes.size), interrupted)
        if counts is None:
            return None
        size, rng = max(int(SAMPLE_SHARE * self.rows), 2 * self.classes.size), np.random.default_rng(seed)
        drawn = draw_rows(self.partitions, counts, size, rng, interrupted)
        return None if drawn is None else drawn.rows

    def _joined(self, held: Gathered, model: Any, new: list[Near]) -> Gathered | None:
        """Return the rows in memory with the new ones; None if there are no new ones, or no room for any.

        Where all do not fit, rows in memory that no proof uses are dropped, but for one of each class, and the new rows
        of the smallest margins are added.
        """
        rows, margins = (
            reduce(Gathered.merge, (near.rows for near in new)),
            np.concatenate([n.distances for n in new]),
        )
        by_margin = np.argsort(margins, kind="stable")
        _, first = np.unique(rows.numbers[by_margin], return_index=True)
        fresh = by_margin[np.sort(first)]
        fresh = fresh[~np.isin(rows.numbers[fresh], held.numbers)]
        if held.numbers.size + fresh.size > self.rows:
            used = np.zeros(held.numbers.size, bool)
            for part in model.certificate_.certificates:
                used[part.support] = True
            # a fit in memory needs rows of each class
            used[np.unique(held.codes, return_index=True)[1]] = True
            held = held.some(np.flatnonzero(used))
        fresh = fresh[: max(self.rows - held.numbers.size, 0)]
        if not fresh.size:
            return None
        merged = held.merge(rows.some(fresh))
        return merged.some(np.argsort(merged.numbers, kind="stable"))

    def _update(self, k: int, model: Any, held: Gathered, z: np.ndarray, scored: Scored) -> bool:
        """Update the bounds of a problem by those of the rows in memory, and of its point on all rows.

        Return whether one of them is better.
        """
        part, proof, hard = self.parts[k], model.certificate_.certificates[k], self.problem.hard
        fingerprint, side = scored.fingerprint(self.coordinates.d), scored.bound(self.coordinates, z)
        best = replace(part.certificate, fingerprint=fingerprint)
        proved, attained = (proof.upper, side.bound) if hard else (proof.lower, side.bound)
        name, other = ("upper", "lower") if hard else ("lower", "upper")
        if proved < best.upper if hard else proved > best.lower:
            numbers = held.numbers[proof.support]
            best = replace(best, support=numbers, dual=proof.dual, **{name: proved})
        if attained > best.lower if hard else attained < best.upper:
            best, part.z = replace(best, **{other: attained}), z
        better = (best.lower, best.upper) != (part.certificate.lower, part.certificate.upper)
        part.certificate = best
        verdicts = getattr(model, "verdict_", None)
        verdict = verdicts.get(self.labels[k]) if isinstance(verdicts, dict) else verdicts
        if isinstance(verdict, Inseparable):
            part.verdict = about_all_rows(verdict, held.numbers, self.partitions.shape[0])
        self._report(k)
        return better

    def _report(self, k: int) -> None:
        part, stopping = self.parts[k], self.stopping
        best, n = part.certificate, self.partitions.shape[0]
        w, b = self.coordinates.point(part.z)
        length = norm(w, self.problem.q)
        margin = best.lower if self.problem.hard else 1.0 / length if length > 0.0 else np.inf
        stopping.report(
            part.history, (w, b), lower=best.lower, upper=best.upper, gap=best.gap,
            presentations=self.partitions.passes * n, steps=0, stage=STAGE, label=self.labels[k], margin=margin,
            reason=REASON,
        )  # fmt: skip

    def solution(self, k: int, status: Status) -> PartitionedSolution:
        """Return the best point of a problem; `status` is that of the fit, if the gap exceeds `tol`."""
        part = self.parts[k]
        if part.verdict is not None:
            status = Status.INSEPARABLE
        elif part.certificate.gap <= self.stopping.tol:
            status = Status.CERTIFIED
        elif self.problem.hard and not part.certificate.lower > 0.0 and status is Status.STALLED:
            status = Status.UNDECIDED
        point, history = self.coordinates.point(part.z), part.history
        return PartitionedSolution(*point, status, len(history), history, part.certificate, part.verdict)
