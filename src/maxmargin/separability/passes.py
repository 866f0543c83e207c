"""`separate` for rows larger than memory, in passes over the rows; verification of proofs that there is no separator.

A verdict on the rows in memory is found as for any rows. A proof that there is no separator, and an upper bound of the
largest margin, hold for all rows, since further rows only lower the margin. A pass over all rows computes the margin
that the separator attains, and gathers the rows of the smallest margins, which are added (row generation).
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np

from ..certificates.certificate import Certificate, require, require_rows, require_weights
from ..certificates.verdicts import Inseparable, LinearSeparator, Undecided, Verdict
from ..fit.deadline import Deadline
from ..numerics.progress import announce
from ..partitions.blocks import Partitions, Rows, signs_of
from ..partitions.passes import Block, Coordinates, Sums, empty_certificate, pass_sums
from ..partitions.sample import MAX_IDLE, draw_rows, with_rows
from ..problem.problem import Problem, stopped_reason
from .search import about_all_rows

# Reasons for which the search ends without a verdict, each with the remedy.
NO_ROOM = "the rows that decide do not fit in memory; give more memory"
NO_PROGRESS = (
    f"{MAX_IDLE} passes over all rows improved no bound of the margin; give more memory, for more rows each"
)
NO_DIGITS = (
    "float64 scores do not prove the separator on the rows outside of the memory; give memory for all rows"
)

# Returns the verdict on rows in memory, whose codes are 0 and 1, at a tolerance.
Decide = Callable[[Rows, float], Verdict]


@dataclass(frozen=True, eq=False)
class NearestRows:
    """A query for the margin that a point attains, and for the rows of the smallest margins below `reach`."""

    z: np.ndarray
    nearest: int
    reach: float

    def sums(self, block: Block) -> Sums:
        """Return the sums over the rows of a block."""
        y = signs_of(block.rows)
        margins = block.margins(y, self.z)
        places = np.flatnonzero((margins < self.reach) & (block.weights > 0.0))
        near = block.near(places, margins[places], margins, self.nearest)
        return block.bound_sums(y, self.z, margins)._replace(near=near)


@dataclass(eq=False)
class PassSearch:
    """The search for a hyperplane between two classes of partitioned rows.

    Parameters
    ----------
    problem : Problem
        The hard margin.
    partitions : Partitions
        Codes 0 and 1, no weights.
    classes : tuple
        The labels of the negative and of the positive side.
    rows : int
        Rows that fit in memory.
    tol : float
        Relative width of the interval around the largest margin; inf for the verdict alone.
    deadline : Deadline
    decide : callable
    """

    problem: Problem
    partitions: Partitions
    classes: tuple[Any, Any]
    rows: int
    tol: float
    deadline: Deadline
    decide: Decide
    best: LinearSeparator | None = field(init=False, default=None)
    certificate: Certificate = field(init=False)

    def __post_init__(self) -> None:
        self.coordinates = Coordinates(self.problem, self.partitions.shape[1])
        self.certificate = empty_certificate(self.problem, self.partitions.shape)

    @np.errstate(over="ignore", under="ignore", invalid="ignore", divide="ignore")
    def verdict(self) -> Verdict:
        """Add rows until the verdict on the rows in memory holds for all rows, within `tol`."""
        deadline, idle = self.deadline, 0
        # a quarter of the rows that fit in memory: the others are those of the smallest margins
        drawn = draw_rows(self.partitions, 2, self.rows // 4, 0, deadline.interrupted)
        held = drawn and drawn.rows
        while held is not None and idle < MAX_IDLE:
            # The rest of `tol` is left to the rows outside, of which separators of small margin in memory miss more.
            found = self.decide(held, min(0.3 * self.tol, 0.1))
            if not isinstance(found, LinearSeparator):
                return self._about_all(found, held)
            announce("a pass over all rows")
            scored, reach = self._pass(found, held)
            if scored is None:
                break
            idle = 0 if self._better(found, held, scored) else idle + 1
            if self._is_narrow() or deadline.interrupted():
                break
            assert scored.near is not None
            near = scored.near.pruned()
            # d + 1 rows prove a margin; of twice as many some dual variables may be rounding
            proof = found.certificate
            largest = np.argsort(-proof.dual, kind="stable")[: 2 * (self.coordinates.d + 1)]
            more = with_rows(held, proof.support[largest], near, self.rows)
            if more is None:
                all_held = not scored.point.smallest < reach or np.isin(near.rows.numbers, held.numbers).all()
                return self._end(NO_DIGITS if all_held else NO_ROOM)
            held = more
        return self._end(NO_PROGRESS if idle >= MAX_IDLE else "")

    def _pass(self, found: LinearSeparator, held: Rows) -> tuple[Sums | None, float]:
        """Return the margins of all rows, with the rows below those in memory; None if stopped."""
        z = self.coordinates.vector(found.w, found.b)
        margins = signs_of(held) * self.coordinates.scores(held.X, z)
        reach = (1.0 - 1e-9) * max(float(margins.min()), 0.0)  # rounding makes no row violate it
        query = NearestRows(z, max(self.rows // 2, 1), reach)
        total = partial(pass_sums, self.coordinates, query.sums)
        return self.partitions.total(total, self.deadline.interrupted), reach

    def _better(self, found: LinearSeparator, held: Rows, scored: Sums) -> bool:
        """Update separator and upper bound by those of a pass; return whether a bound of the margin is better."""
        before = self.certificate
        proved, fingerprint = found.certificate, scored.data
        self.certificate = replace(before, fingerprint=fingerprint)
        if proved.upper < before.upper:
            support = held.numbers[proved.support]
            self.certificate = replace(proved, lower=before.lower, support=support, fingerprint=fingerprint)
        lower = self.coordinates.bound(scored, self.coordinates.vector(found.w, found.b)).bound
        if lower > max(before.lower, 0.0):
            self.certificate = replace(self.certificate, lower=lower)
            self.best = replace(found, lo=lower)
        return self.certificate.upper < before.upper or self.certificate.lower > before.lower

    def _is_narrow(self) -> bool:
        """Return whether there is a separator, and the interval around the largest margin has the width `tol`."""
        return self.best is not None and self.best.lo >= (1.0 - self.tol) * self.certificate.upper

    def _end(self, reason: str) -> Verdict:
        """Return the best separator; Undecided if there is none, the status of the deadline replacing the reason."""
        upper, seconds = self.certificate.upper, time.perf_counter() - self.deadline.began
        if self.best is not None:
            hi = max(upper, self.best.lo)
            return replace(self.best, hi=hi, certificate=self.certificate, seconds=seconds)
        reason = stopped_reason(self.deadline.status()) or reason
        return Undecided(
            hi=upper, certificate=self.certificate, reason=reason, p=self.problem.p, bias=self.problem.free,
            classes=self.classes, features=self.partitions.shape[1], method="row generation", seconds=seconds,
        )  # fmt: skip

    def _about_all(self, found: Verdict, held: Rows) -> Verdict:
        """Return a verdict on the rows in memory that no separator was found, or that none exists, about all rows."""
        if self.best is not None and isinstance(found, Undecided):
            return self._end("")
        seconds = time.perf_counter() - self.deadline.began
        return replace(about_all_rows(found, held.numbers, self.partitions.shape[0]), seconds=seconds)


def verify_in_passes(proof: Inseparable, partitions: Partitions, positive: int) -> None:
    """Recompute a proof that there is no separator from its rows in partitions; CertificateError if it fails.

    Parameters
    ----------
    proof : Inseparable
    partitions : Partitions
    positive : int
        The class on the positive side.
    """
    n, d = partitions.shape
    require(d == proof.features, f"the verdict is about {proof.features} features, not {d}: give its X.")
    require(proof.rows == n, f"the verdict is about {proof.rows} rows, not {n}: give its X and y.")
    support = np.asarray(proof.support)
    require_rows(support, n)
    ascending = support.size > 0 and (np.diff(support) > 0).all()
    require(ascending, "the proof fails: it names no rows, or not in ascending order.")
    rows = partitions.gather(support, bool)
    assert rows is not None
    require(
        (rows.codes >= 0).all(), "the proof fails: not all of its rows are of the classes that it is about."
    )
    require_weights(rows.weights)
    places = np.arange(support.size)
    replace(proof, support=places, rows=places.size).check(rows.X.astype(float), signs_of(rows, positive))
