"""Newton's method over passes for all binary problems of a fit, which share the passes."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from ...certificates.bounds import Side
from ...certificates.certificate import Certificate, ImpliedDual
from ...data.partitions import Gathered
from .bounds import Proof, empty_certificate
from .driver import JointDriver, PartitionedFit, PartitionedSolution
from .newton import SETTINGS, NewtonRun, Settings
from .sample import DrawnRows, count_classes, draw_rows, start_point
from .sums import Linearisation, pass_sums

STAGE = "partitioned-newton"
# Copies of a gathered row, as float64 with all columns, that are in memory at the same time: as it was read, in the
# local model, and in two products of the interior points.
COPIES = 4
# Part of the memory for gathered rows and the sample; the rest holds blocks, sums and matrices of d x d.
ROWS_SHARE = 0.6
# Largest part of all rows that is kept in memory for each binary problem, a third of it as the sample, if it is more
# than MIN_ROWS_PER_COLUMN rows a column and MIN_ROWS: a local model of more rows takes longer than the pass that it may
# save. 1,000,000 x 28, hinge, C = 1: 2.3, 1.9, 2.4 and 5.3 seconds with 2, 8, 20 and 50 %.
KEPT_SHARE = 0.1
MIN_ROWS_PER_COLUMN, MIN_ROWS = 100, 20_000
# attributes of `NewtonRun` that a checkpoint stores
STATE = (
    "error", "upper", "last_objective", "last_move", "radius", "z", "best", "metric_matrix", "idle", "idle_gap",
)  # fmt: skip


def rows_in_memory(memory: float, columns: int) -> int:
    """Return the number of gathered rows that fit in so many bytes."""
    return max(int(ROWS_SHARE * memory / (COPIES * 8.0 * (columns + 1))), 2)


class NewtonDriver(JointDriver):
    """Newton's method for all binary problems of a fit: soft margins at p = 2.

    Parameters
    ----------
    fit : PartitionedFit
    settings : Settings
    """

    stage = STAGE
    method = "rows in partitions: Newton's method, with the rows near the margin in memory"
    runs: list[NewtonRun]

    def __init__(self, fit: PartitionedFit, settings: Settings = SETTINGS) -> None:
        super().__init__(fit)
        n, d = fit.partitions.shape
        enough = max(int(KEPT_SHARE * n), MIN_ROWS_PER_COLUMN * (d + 1), MIN_ROWS) * len(self.positives)
        self.settings, self.rows = settings, min(rows_in_memory(fit.memory, d), enough)
        self.kept = max(int(settings.sample_share * self.rows), 2)  # rows of the sample

    def solutions(self) -> list[PartitionedSolution]:
        # as in fits of rows in memory: interior points divide by numbers that underflow
        with np.errstate(over="ignore", invalid="ignore"):
            return super().solutions()

    def begin(self) -> bool:
        seed, interrupted = self.fit.seed, self.stopping.deadline.interrupted
        counts = self.partitions.reduce(partial(count_classes, len(self.fit.classes)), interrupted)
        if counts is None:
            return False
        rng = np.random.default_rng(seed)
        drawn = draw_rows(self.partitions, counts, self.rows, rng, interrupted)
        if drawn is None:
            return False
        self.sample = drawn.some(np.sort(rng.permutation(drawn.factors.size)[: self.kept]))
        for positive in self.positives:
            points = start_point(self.fit.problem, drawn, positive, self.stopping.deadline, seed)
            start, half = (self.coordinates.vector(point.w, point.b) for point in points)
            self._add_run(positive, (start, half))
        return True

    def _add_run(self, positive: int, start: tuple[np.ndarray, np.ndarray]) -> None:
        """Begin the iteration of a binary problem; `start` is that of `NewtonRun`."""
        nearest = max((self.rows - self.kept) // len(self.positives), 1)
        tol, settings = self.stopping.tol, self.settings
        self.runs.append(NewtonRun(self.coordinates, positive, self.sample, nearest, tol, start, settings))

    def open_problems(self) -> list[int]:
        return [k for k, run in enumerate(self.runs) if run.is_open]

    def advance(self, problems: list[int]) -> bool:
        queries = tuple(self.runs[k].query() for k in problems)
        sums = self.partitions.total(partial(pass_sums, self.coordinates, queries), self.interrupted)
        if sums is None:
            return False
        for k, part in zip(problems, sums.parts, strict=True):
            self.check_rows(k, part)
            self.runs[k].advance(part, self.stopping.deadline.interrupted)
            self.report(k)
        return True

    def certificate(self, k: int) -> Certificate:
        run, fingerprint = self.runs[k], self.fingerprints[k]
        nothing = empty_certificate(self.coordinates.problem, self.partitions.shape)
        if fingerprint is None:
            return nothing
        if run.proof is None:
            return replace(nothing, upper=run.upper, fingerprint=fingerprint)
        return run.proof.certificate(self.coordinates, run.upper, fingerprint)

    def held_rows(self) -> Gathered:
        return self.sample.rows

    def state(self) -> dict[str, Any]:
        return {"factors": self.sample.factors}

    def state_of(self, k: int) -> dict[str, Any]:
        run = self.runs[k]
        state = {name: getattr(run, name) for name in STATE} | {"last": None, "proof": None}
        if run.last is not None:
            state["last"] = vars(run.last)
        if run.proof is not None:
            proof = run.proof
            state["proof"] = vars(proof) | {"side": list(proof.side), "dual": vars(proof.dual)}
        return state

    def restore(self, rows: Gathered, state: dict[str, Any], states: list[dict[str, Any] | None]) -> None:
        self.sample = DrawnRows(rows, state["factors"])
        zero = np.zeros(self.coordinates.size)
        for positive, stored in zip(self.positives, states, strict=True):
            self._add_run(positive, (zero, zero))
            assert stored is not None
            run, found = self.runs[-1], dict(stored)
            last, proof = found.pop("last"), found.pop("proof")
            vars(run).update(found)
            run.last = None if last is None else Linearisation(**last)
            if proof is not None:
                run.proof = Proof(
                    **proof | {"side": Side(*proof["side"]), "dual": ImpliedDual(**proof["dual"])}
                )
