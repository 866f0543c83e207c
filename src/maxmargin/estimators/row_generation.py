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
from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np

from ..certificates.certificate import Certificate
from ..certificates.verdicts import Inseparable
from ..data.partitions import Gathered
from ..fit.partitioned.bounds import empty_certificate
from ..fit.partitioned.driver import JointDriver, PartitionedFit, PartitionedSolution
from ..fit.partitioned.sample import HARD_REACH, MAX_IDLE, SAMPLE_SHARE, sample_of_classes, with_rows
from ..fit.partitioned.scores import Evaluation, Scored, evaluate
from ..fit.partitioned.solve import rows_in_memory
from ..fit.report import Report
from ..problem.multiclass import python_label
from ..problem.status import Status
from ..separability.search import about_all_rows

# Fits the in-memory estimator to gathered rows with the numbers of their classes as labels, given the seconds that are
# left, and its callback.
FitRows = Callable[[Gathered, float | None, Callable[[Report], bool]], Any]


@dataclass(eq=False)
class _Part:
    """The best point z, of shape (size,), with its certificate, and the verdict of one binary problem."""

    best: np.ndarray
    certificate: Certificate
    verdict: Any = None
    steps: int = 0  # rows are not visited one by one

    @property
    def lower(self) -> float:
        """The best lower bound."""
        return self.certificate.lower

    @property
    def upper(self) -> float:
        """The best upper bound."""
        return self.certificate.upper

    @property
    def gap(self) -> float:
        """The relative gap of the bounds."""
        return self.certificate.gap


class RowGeneration(JointDriver):
    """The rows in memory, and the bounds of all binary problems of a fit.

    Parameters
    ----------
    fit : PartitionedFit
    fit_rows : callable
        Returns an in-memory estimator that is fitted to some rows (`FitRows`).
    """

    stage = "row-generation"
    method = "rows in partitions: the rows of the smallest margins are solved in memory"
    runs: list[_Part]

    def __init__(self, fit: PartitionedFit, fit_rows: FitRows) -> None:
        super().__init__(replace(fit, classes=[python_label(label) for label in fit.classes]))
        self.fit_rows, self.rows = fit_rows, rows_in_memory(fit.memory, fit.partitions.shape[1])
        zero, nothing = np.zeros(self.coordinates.size), empty_certificate(fit.problem, fit.partitions.shape)
        self.runs = [_Part(zero, nothing) for _ in self.labels]
        self.idle = 0  # passes since a bound has improved
        self.exhausted = False  # whether no row can be added

    def begin(self) -> bool:
        rows = sample_of_classes(
            self.partitions, len(self.fit.classes), int(SAMPLE_SHARE * self.rows), self.fit.seed,
            self.stopping.deadline.interrupted,
        )  # fmt: skip
        if rows is not None:
            self.held = rows
        return rows is not None

    def open_problems(self) -> list[int]:
        solved = all(part.gap <= self.stopping.tol or part.verdict is not None for part in self.runs)
        if solved or self.exhausted or self.idle >= MAX_IDLE:
            return []
        return list(range(len(self.runs)))

    def advance(self, problems: list[int]) -> bool:
        """Solve the rows in memory, evaluate the solution on all rows, and add rows."""
        held, reach = self.held, HARD_REACH if self.coordinates.problem.hard else 1.0
        max_time = self.stopping.deadline.max_time()
        model = self.fit_rows(held, max_time, lambda report: self.interrupted())
        points = [self.coordinates.vector(w, b) for w, b in zip(model.coef_, model.intercept_, strict=True)]
        room = max(self.rows // (2 * len(points)), 1)
        evaluations = tuple(
            Evaluation(positive, z, room, reach) for positive, z in zip(self.positives, points, strict=True)
        )
        scores = self.partitions.total(partial(evaluate, self.coordinates, evaluations), self.interrupted)
        if scores is None:
            return False
        better = [self._update(k, model, held, points[k], scores.parts[k]) for k in problems]
        self.idle = 0 if any(better) else self.idle + 1
        support = np.concatenate([part.support for part in model.certificate_.certificates])
        near = [part.near.pruned() for part in scores.parts]
        more = with_rows(held, support.astype(np.int64), near, self.rows)
        self.held, self.exhausted = held if more is None else more, more is None
        return True

    def certificate(self, k: int) -> Certificate:
        return self.runs[k].certificate

    def held_rows(self) -> Gathered:
        return self.held

    def state_of(self, k: int) -> dict[str, Any]:
        part, verdict = self.runs[k], self.runs[k].verdict
        if verdict is not None:
            verdict = vars(verdict) | {"weights": [str(weight) for weight in verdict.weights]}
            del verdict["kernel"]  # the linear one
        best = {name: getattr(part.certificate, name) for name in ("lower", "upper", "support", "dual")}
        return {"best": part.best, "certificate": best, "verdict": verdict}

    def restore(self, rows: Gathered, state: dict[str, Any], states: list[dict[str, Any] | None]) -> None:
        self.held = rows
        for part, fingerprint, stored in zip(self.runs, self.fingerprints, states, strict=True):
            assert stored is not None
            assert fingerprint is not None
            part.best, verdict = stored["best"], stored["verdict"]
            part.certificate = replace(part.certificate, fingerprint=fingerprint, **stored["certificate"])
            if verdict is not None:
                numbers = tuple(map(Fraction, verdict["weights"]))
                tuples = {"weights": numbers, "classes": tuple(verdict["classes"])}
                part.verdict = Inseparable(**verdict | tuples)

    def _update(self, k: int, model: Any, held: Gathered, z: np.ndarray, scored: Scored) -> bool:
        """Update the bounds of a problem by a fit of the rows in memory and by the pass that evaluated its point z.

        Return whether one of them is better.
        """
        part, proof = self.runs[k], model.certificate_.certificates[k]
        fingerprint, side = scored.fingerprint(self.coordinates.d), scored.bound(self.coordinates, z)
        self.check_rows(k, scored)
        hard, attained = self.fit.problem.hard, side.bound
        best = replace(part.certificate, fingerprint=fingerprint)
        if proof.upper < best.upper if hard else proof.lower > best.lower:
            numbers = held.numbers[proof.support]
            proved = {"upper": proof.upper} if hard else {"lower": proof.lower}
            best = replace(best, support=numbers, dual=proof.dual, **proved)
        if attained > best.lower if hard else attained < best.upper:
            best = replace(best, **{"lower" if hard else "upper": attained})
            part.best = z
        better = (best.lower, best.upper) != (part.certificate.lower, part.certificate.upper)
        part.certificate = best
        verdicts = getattr(model, "verdict_", None)
        verdict = verdicts.get(self.labels[k]) if isinstance(verdicts, dict) else verdicts
        if isinstance(verdict, Inseparable):
            part.verdict = about_all_rows(verdict, held.numbers, self.partitions.shape[0])
        self.report(k)
        return better

    def solution(self, k: int, status: Status) -> PartitionedSolution:
        part, found = self.runs[k], super().solution(k, status)
        if part.verdict is not None:
            return replace(found, status=Status.INSEPARABLE, verdict=part.verdict)
        if self.coordinates.problem.hard and not part.lower > 0.0 and found.status is Status.STALLED:
            return replace(found, status=Status.UNDECIDED)
        return found
