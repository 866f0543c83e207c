"""The choice between the two methods for soft margins of partitioned rows at p = 2."""

from __future__ import annotations

from ...data.partitions import ArrayPartitions, Partitions
from ...problem.problem import Problem
from . import cached_loops, solve

# Newton's method needs a sample and rows near the margin that determine z: so many rows in memory for each column, by
# loss. Passes to 1e-3 and 1e-4 of adult with 26 rows a column at C = 0.01, 1 and 100: the hinge 4/4, 8/8 and 6/7 by
# Newton's method, 3/3, 3/5 and 7/8 by cached loops; the squared hinge 2/3, 3/3 and 3/3 against 3/4, 5/6 and 9/10. Web
# with 16 rows a column: Newton's method takes 9 to more than 12 passes for the hinge.
MIN_HELD_ROWS_PER_COLUMN = {"hinge": 50, "squared_hinge": 20}
# Largest ratio of columns^2, to which the time of a pass of Newton's method is proportional, to the entries of a row,
# to which that of cached loops is. Seconds of a pass of each: 0.5 and 0.5 at 1,100 (adult), 1.3 and 0.5 at 7,700 (web),
# 5.0 and 0.6 at 30,000 (generated text of 1,000 columns).
MAX_COST_RATIO = 30_000.0
# Largest part of the memory for a matrix of columns x columns: the sums of a pass hold several of them.
MATRIX_SHARE = 0.125


def method_for(problem: Problem, partitions: Partitions, memory: float) -> tuple[str, str]:
    """Return the name of the method for a problem, `solve.STAGE` or `cached_loops.STAGE`, and the reason.

    Parameters
    ----------
    problem : Problem
        A soft margin at p = 2, with the half square of the norm.
    partitions : Partitions
    memory : float
        Bytes.
    """
    if problem.hard or not problem.euclidean:
        raise ValueError(f"partitioned rows have a method for soft margins at p = 2 only; got {problem}.")
    if not isinstance(partitions, ArrayPartitions):
        return solve.STAGE, "rows that stay on other machines are used in sums only"
    n, d = partitions.shape
    entries = partitions.row_entries
    if 8.0 * (d + 1) ** 2 > MATRIX_SHARE * memory:
        return cached_loops.STAGE, f"a matrix of {d} x {d} takes more than an eighth of the memory"
    if (d + 1) ** 2 > MAX_COST_RATIO * max(entries, 1.0):
        return cached_loops.STAGE, f"rows of {entries:.0f} entries are few numbers beside {d} x {d}"
    least = MIN_HELD_ROWS_PER_COLUMN[problem.loss]
    if min(solve.rows_in_memory(memory, d), n) < least * d:
        return cached_loops.STAGE, f"less than {least} rows a column fit in memory"
    return solve.STAGE, f"few columns: a matrix of {d} x {d} is summed over all rows"
