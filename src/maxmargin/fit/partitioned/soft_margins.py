"""Soft margins of partitioned rows at p = 2: the choice of the method, and what follows where it stalls."""

from __future__ import annotations

from dataclasses import replace

from ...data.partitions import ArrayPartitions
from ...problem.status import Status
from .cached_loops_driver import LoopsDriver
from .driver import PartitionedFit, PartitionedSolution, delete_needless
from .policy import method_for
from .solve import NewtonDriver

# Gap above which cached loops take over where Newton's method has stalled. At smaller ones rounding has ended it, where
# cached loops take long and gain little.
FALLBACK_GAP = 1e-8


def solve_soft_margins(fit: PartitionedFit) -> list[PartitionedSolution]:
    """Solve all binary problems by the method that the problem, the sizes and the memory choose."""
    stage, why = method_for(fit.problem, fit.partitions, fit.memory, len(fit.positives))
    fit = replace(fit, why=why)
    if stage == LoopsDriver.stage:
        return LoopsDriver(fit).solve()
    found = NewtonDriver(fit).solve()
    return _improved(fit, found) if isinstance(fit.partitions, ArrayPartitions) else found


def _improved(fit: PartitionedFit, found: list[PartitionedSolution]) -> list[PartitionedSolution]:
    """Solve the problems in which Newton's method has stalled by cached loops; return the better solutions.

    Newton's method stalls where more rows lie at the margin than fit in memory, such as all rows at a small C.
    """
    stalled = [
        k
        for k, solution in enumerate(found)
        if solution.status is Status.STALLED and solution.certificate.gap > FALLBACK_GAP
    ]
    if not stalled:
        return found
    why = "Newton's method has stalled: more rows lie at the margin than fit in memory"
    again = LoopsDriver(replace(fit, why=why, checkpoint=None, problems=stalled)).solve()
    for k, solution in zip(stalled, again, strict=True):
        first = found[k]
        passes = len(first.history)
        later = [replace(report, round=report.round + passes) for report in solution.history]
        better = solution if solution.certificate.gap <= first.certificate.gap else first
        history = [*first.history, *later]
        found[k] = replace(better, status=solution.status, history=history, rounds=len(history))
    delete_needless(fit.checkpoint, found)
    return found
