"""The policy: the solvers of a task in their order, each with a budget, and the reasons that reports state.

The rules follow measurements. Work is compared in row visits, so that budgets do not
depend on the machine.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from ..algorithms.base import Algorithm
from ..algorithms.online.dual_coordinate_descent import DualCoordinateDescent
from ..algorithms.online.ima import IMA
from ..algorithms.programs import (
    Decomposition,
    InteriorPoint,
    LinearProgram,
    Newton,
    ProximalNewton,
    ProximalPoint,
)
from ..solvers.decomposition import FEW_ROWS
from .exact import MAX_ROWS_TO_OPTIMUM, RUNNING_GAP_SHARE, is_small, solve_exactly, solve_factored

if TYPE_CHECKING:
    from ..data.rows import Patterns
    from ..problem.problem import Problem
    from .report import Task


@dataclass(frozen=True)
class Stage:
    """A solver with its budget, and the reason for which it is run.

    Attributes
    ----------
    algorithm : Algorithm, Decomposition, PassMethod or None
        None for a solver that keeps its points by itself (`points`).
    reason : str
    enough : float
        The gap at which no further stage is run; at `tol` the stage ends.
    max_row_visits : float, default=inf
        Row visits of the fit after which the next stage begins.
    min_rounds : int, default=0
        Rounds of the fit before the budget of row visits can end the stage.
    verdict_after : float, default=inf
        Row visits after which separability is decided for a hard margin without a separator; 0 for one round, where
        samples of the rows may decide it (`sample_rows`).
    points : callable, default=None
        Runs a solver that keeps its points by itself, on the fit; yields once in each round.
    """

    algorithm: Any
    reason: str
    enough: float
    max_row_visits: float = np.inf
    min_rounds: int = 0
    verdict_after: float = np.inf
    points: Callable[[Any], Iterator[None]] | None = None


def stages(task: Task, tol: float) -> Iterator[Stage]:
    """Yield the stages of a task on rows of data, in the order in which they are run.

    A small task at p = 2 begins with the exact stage if no algorithm is named, except for hard margins with fewer
    columns than rows: without a separator the exact stage gives no w, and linearly independent rows (hence d >= n)
    always have one. Otherwise the algorithm is run first, within a budget of row visits, and goes on after the exact
    stage. A named algorithm that does not converge to the optimum, or that keeps the order of the rows, has none.
    """
    problem, patterns, named = task.problem, task.rows, task.algorithm
    n, d = patterns.n, patterns.d
    exact, goal = None, 0.0
    if problem.euclidean and is_small(problem, patterns) and not (named is not None and named.keeps_rows):
        how = "the optimality conditions on the support"
        if n > MAX_ROWS_TO_OPTIMUM:
            goal, how = RUNNING_GAP_SHARE * tol, how if problem.hard else "the first point that proves tol"
        reason = f"p = 2, a small problem: {how}"
        exact = Stage(None, reason, tol, points=partial(solve_exactly, goal=goal))
        if named is None and (d >= n or not problem.hard):
            yield exact
            exact = None
    # as many row visits as cost 0.4 factorisations, with five passes: fewer spend the exact stage on what ends soon
    visits = 5.0 * n + 0.4 * (n * min(n, d + 1)) ** 2 / max(patterns.entries, n)
    verdict_after = 0.0 if sample_rows(n, d) else min(visits, 100.0 * n)
    solvers = choose(problem, patterns) if named is None else [(named, np.inf, task.reason)]
    planned = [
        Stage(algorithm, reason, tol, n * passes, verdict_after=verdict_after)
        for algorithm, passes, reason in solvers
    ]
    # The first three rounds have no budget. With many rows an algorithm that reaches `tol` spares the exact stage; with
    # up to MAX_ROWS_TO_OPTIMUM the goal is 0, and the exact stage follows.
    if exact is not None and solvers[0][0].convergent:
        yield replace(planned[0], enough=goal, max_row_visits=visits, min_rounds=3)
        yield exact
    yield from planned


def kernel_stages(task: Task, tol: float) -> Iterator[Stage]:
    """Yield the stages of a task on rows of a kernel; few rows are solved by pairs in one set, before a factor."""
    rows, goal = task.rows, 0.9 * tol  # the rest is for rounding of kernel values
    algorithm = Stage(task.algorithm, task.reason, goal)
    if task.algorithm is None:
        algorithm = Stage(Decomposition(), "kernels: decomposition", goal)
    if task.algorithm is None and not task.problem.hard:
        if rows.n <= FEW_ROWS:
            yield replace(algorithm, max_row_visits=2.0 * rows.n)
        if rows.kernel.name != "rbf":  # of small rank only where gamma is tiny
            yield Stage(None, "Newton's method on a factor of small rank", goal, points=solve_factored)
    yield algorithm


def sample_rows(n: int, d: int) -> int:
    """Return the number of rows of the samples on which separability is decided first; 0 where samples save no time.

    Smaller samples more often have a separator where all rows have none.
    """
    count = max(500, 20 * (d + 1))
    return count if count <= 0.05 * n else 0


def choose(problem: Problem, patterns: Patterns) -> list[tuple[Algorithm, float, str]]:
    """Choose the solvers for a problem on these rows, by the first row of a table that applies.

    Returns
    -------
    solvers : list of (Algorithm, float, str)
        In their order: each with the passes over the rows after which the next one follows, and the reason that
        reports state.
    """
    p, n, d, sparse = problem.p, patterns.n, patterns.d, patterns.sparse
    hard, squared, size = problem.hard, problem.loss == "squared_hinge", f"{n} x {d}"
    smooth, sharp = problem.euclidean and not hard and squared, problem.euclidean and not hard and not squared
    # multiplications of a step of interior points; in a loop over sparse entries one takes ten times as long
    step = float(n) * d * min(n, d)
    if sparse and d <= n:
        step = min(step, 10.0 * float(patterns.entries) ** 2 / n + float(d) ** 3)
    small = step <= 4e9  # 25 steps take 10 s
    feasible = small or (step <= 1e11 and (hard or not sparse))
    inf = np.inf
    narrow = small and (not sparse or d <= min(n, 1000))
    # the larger the product of C and squared lengths, the more conjugate gradients a step of Newton's method takes
    few = d <= 1000 or (d <= n and problem.C * patterns.longest2 <= 4.0)
    dense = is_small(problem, patterns) or (n >= d * d and not sparse)
    linear = p in (1.0, inf) and (hard or (problem.first_power and not squared))
    program = (p == inf and n <= 1000) or (not feasible and (hard or p == 1))
    descent, newton, proximal, interior = DualCoordinateDescent, Newton, ProximalPoint, InteriorPoint
    certain, cheap = "dual coordinate descent certifies any tol", "coordinate descent, with cheap steps"
    every, steps = "for every C and all scales", "interior points, for every p, C and all scales"
    # Passes before another method: most problems of sparse rows end within them, and on dense ones they take less time
    # than that method. Linear programs give exact zeros at p = inf, but take 10 times as long with many rows.
    table: list[tuple[bool, type[Algorithm], float, type[Algorithm] | None, str]] = [
        (smooth and few, newton, inf, interior, f"Newton's method, {every}"),
        (sharp and dense, proximal, inf, interior, f"proximal points, {every}"),
        (smooth and d <= n, descent, 50, newton, certain),
        (sharp and d <= min(n, 3000), descent, 100 if sparse else max(10.0, 0.3 * d), proximal, certain),
        (problem.euclidean, descent, inf, None, certain),
        (linear and program, LinearProgram, inf, None, "a linear program"),
        (not hard and p == inf and squared, ProximalNewton, inf, interior, "working sets of columns"),
        (hard and not feasible, IMA, inf, None, "too large for interior points; IMA solves every p"),
        (hard or p in (1.0, inf) or narrow, interior, inf, None, steps),
        (step <= 2e10, descent, 100 if sparse else 10, interior, cheap),
        (True, descent, inf, None, cheap),
    ]
    _, first, passes, second, reason = next(row for row in table if row[0])
    found: list[tuple[Algorithm, float, str]] = [(first(), passes, f"p = {p:g}, {size}: {reason}")]
    if second is not None:
        found.append((second(), inf, f"{size}: {first.name} converges slowly, or rounding has ended it"))
    if first is descent and second in (newton, proximal) and small:
        found.append((interior(), inf, f"{size}: rounding has ended Newton's method"))
    return found
