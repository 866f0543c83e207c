"""Soft margins of partitioned rows at p = 2: the choice of the method, and what follows where it stalls."""

from __future__ import annotations

from dataclasses import replace

from ...data.partitions import ArrayPartitions, Partitions
from ...problem.problem import Problem, Status
from ..report import Solution
from .cached_loops import LoopsDriver
from .newton import NewtonDriver, rows_in_memory
from .passes import PartitionedFit

# Newton's method needs a sample and rows near the margin that determine z: so many rows in memory for each column.
# Passes to 1e-3 and 1e-4 with 10 % of the rows in memory at C = 0.01, 1 and 100: mnist (7.6 rows a column), the hinge
# 4/4, 5/5, 7/7 and the squared hinge 3/3, 5/5, 8/8; by cached loops 2/3, 5/5, 10/- and 3/3, 4/5, -/-. Fewer rows were
# not tried. Problems of several classes divide the rows near the margin, which matter for the hinge: ten classes of
# 20,000 x 40 projected digits with 5 rows a column and class take 6 passes for the squared hinge, and stall for the
# hinge.
MIN_HELD_ROWS_PER_COLUMN = 7
# Largest ratio of columns^2, to which the time of a pass of Newton's method is proportional, to the entries of a row,
# to which that of cached loops is. Seconds of a pass of each: 0.5 and 0.5 at 1,100 (adult), 1.3 and 0.5 at 7,700 (web),
# 5.0 and 0.6 at 30,000 (generated text of 1,000 columns). For the hinge Newton's method also takes more passes on web,
# from 5 to 9 at C = 0.01 and 1, where cached loops take 3 to 6.
MAX_COST_RATIO = {"hinge": 3_000.0, "squared_hinge": 30_000.0}
# Largest part of the memory for a matrix of columns x columns: the sums of a pass hold several of them.
MATRIX_SHARE = 0.125
# Gap above which cached loops take over where Newton's method has stalled. At smaller ones rounding has ended it, where
# cached loops take long and gain little.
FALLBACK_GAP = 1e-8


def solve_soft_margins(fit: PartitionedFit) -> list[Solution]:
    """Solve all binary problems by the method that the problem, the sizes and the memory choose."""
    stage, why = method_for(fit.problem, fit.partitions, fit.memory, len(fit.positives))
    fit = replace(fit, why=why)
    if stage == LoopsDriver.stage:
        return LoopsDriver(fit).solve()
    found = NewtonDriver(fit).solve()
    return _improved(fit, found) if isinstance(fit.partitions, ArrayPartitions) else found


def _improved(fit: PartitionedFit, found: list[Solution]) -> list[Solution]:
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
    again = LoopsDriver(replace(fit, why=why, problems=stalled)).solve()
    for k, solution in zip(stalled, again, strict=True):
        first = found[k]
        passes = len(first.history)
        later = [replace(report, round=report.round + passes) for report in solution.history]
        better = solution if solution.certificate.gap <= first.certificate.gap else first
        history = [*first.history, *later]
        found[k] = replace(better, status=solution.status, history=history, rounds=len(history))
    return found


def method_for(problem: Problem, partitions: Partitions, memory: float, problems: int = 1) -> tuple[str, str]:
    """Return the name of the method for a problem, `NewtonDriver.stage` or `LoopsDriver.stage`, and the reason.

    Parameters
    ----------
    problem : Problem
        A soft margin at p = 2, with the half square of the norm.
    partitions : Partitions
    memory : float
        Bytes.
    problems : int, default=1
        Binary problems that share the memory.
    """
    if not isinstance(partitions, ArrayPartitions):
        return NewtonDriver.stage, "rows that stay on other machines are used in sums only"
    n, d = partitions.shape
    entries = partitions.row_entries
    if 8.0 * (d + 1) ** 2 > MATRIX_SHARE * memory:
        return LoopsDriver.stage, f"a matrix of {d} x {d} takes more than an eighth of the memory"
    if (d + 1) ** 2 > MAX_COST_RATIO[problem.loss] * max(entries, 1.0):
        return LoopsDriver.stage, f"rows of {entries:.0f} entries are few numbers beside {d} x {d}"
    least = MIN_HELD_ROWS_PER_COLUMN * (problems if problem.loss == "hinge" else 1)
    if min(rows_in_memory(memory, d), n) < least * d:
        return LoopsDriver.stage, f"less than {least} rows a column fit in memory"
    return NewtonDriver.stage, f"few columns: a matrix of {d} x {d} is summed over all rows"
