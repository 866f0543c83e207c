"""The policy of `algorithm="auto"`: the choice of the algorithm for a problem, and the stages of a fit.

The rules follow measurements. Work is compared in row visits, so that budgets do not
depend on the machine.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy.sparse as sp

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
from ..data.rows import Patterns
from ..data.task import Task
from ..numerics.sums import Plain
from ..problem.problem import Problem
from ..solvers.semismooth import points
from .exact import is_small
from .report import Job

# Rows x columns x smaller side up to which interior points are run first on dense rows for p other than 2: a step then
# takes half a second at most, all steps about as long as 20 to 50 passes of coordinate descent.
MAX_INTERIOR_FLOPS = 4e9
# The same for hard margins. At 5e9 to 1.2e10 interior points take 5 to 11 s in all, and `IMA()` has gaps of 0.15
# to 2.3 after 10 s; 1e11 is extrapolated.
MAX_HARD_FLOPS = 1e11
# Time of a multiplication in a loop over the entries of sparse rows, relative to that in a product of dense matrices:
# 1.2 ns against 0.1 ns on web, 49,749 x 300.
SPARSE_COST = 10.0
# Errors at p = 2 above which the hinge with norm_power=1 and p = inf is solved by interior points in place of linear
# programs, and the gap up to which p = 2 is solved to count them.
MAX_LP_ERRORS, ROUGH_GAP = 200, 0.1
# Columns up to which Newton's method factorises a matrix of their size, and up to which interior points and proximal
# points do; beyond, the factorisation takes longer than passes over the rows.
MAX_NEWTON_COLUMNS, MAX_PROXIMAL_COLUMNS = 1000, 3000
# Rough costs in nanoseconds, which only decide when the fallback begins. Coordinate descent takes NS_PER_ROW +
# NS_PER_ENTRY * (entries of the row) for a row visit. The whole proximal-point method takes PROXIMAL_NS_PER_ROW for
# each row, and of the pair for the storage the first number for each entry, or, where it starts as interior points, the
# second for each pair of entries of a row. Too large or too small costs begin the fallback too late or too early.
NS_PER_ROW, NS_PER_ENTRY, PROXIMAL_NS_PER_ROW = 20.0, 1.5, 300.0
DENSE_NS, SPARSE_NS = (25.0, 0.9), (400.0, 15.0)
# Passes of coordinate descent on sparse rows before interior points: text takes 30 to 60 (C = 1, p from 1.8 to 10),
# up to this number of multiplications of a step.
PASSES_BEFORE_INTERIOR, MAX_FALLBACK_FLOPS = 100, 2e10
# Rough costs in nanoseconds and steps of interior points, and of an entry in a row visit of coordinate descent for p
# other than 2, which evaluates a power of each entry a few times; they decide when interior points begin.
INTERIOR_STEPS, INTERIOR_NS_PER_ROW, INTERIOR_NS_PER_FLOP, P_NORM_NS_PER_ENTRY = 25, 1500.0, 0.1, 100.0
# Share of the estimated work of proximal or interior points that coordinate descent gets before they follow: both
# methods together then cost at most 1 + SHARE_BEFORE_BATCH times as much as the points alone.
SHARE_BEFORE_BATCH = 0.5
# Full passes of coordinate descent over sparse rows of many columns after which Newton's method was always faster.
# Fewer run Newton's method on problems that coordinate descent soon solves.
PASSES_BEFORE_NEWTON = 50
# The constants below were chosen on the data sets of benchmarks.before_after.
# Smallest number of rounds of a convergent algorithm before the exact stage of a small problem: an algorithm that ends
# within them spares the exact stage.
MIN_ROUNDS_BEFORE_EXACT = 3
# Budget in row visits before the exact stage: WORK_SHARE_BEFORE_EXACT * (floating-point operations of one
# factorisation) / (entries of a row), plus PASSES_BEFORE_EXACT passes. A smaller budget runs the exact stage on
# problems that the algorithm would have solved.
WORK_SHARE_BEFORE_EXACT, PASSES_BEFORE_EXACT = 0.4, 5.0
# Full passes of `IMA()` after which an exact method takes over. After them the gap was 0.1 to 3.3 on the nine sets of
# reproduction/ima_margins.py, for p in {1, 1.5, 2, 3, inf}; after 5 s, mostly some thousands of passes, it was still
# 0.006 or more. More passes delay `tol`, fewer leave IMA fewer of the sets that it does solve. Small sets get as many
# passes as visit ENTRIES_BEFORE_HANDOVER entries, which takes milliseconds; a round value, not tuned.
PASSES_BEFORE_HANDOVER, ENTRIES_BEFORE_HANDOVER = 200, 1e6
# Full passes without a separator after which separability is decided, however large that budget is. More delay the
# verdict on data without a separator, fewer ask for it where the algorithm would find one.
MAX_PASSES_BEFORE_VERDICT = 100
# A sample on which separability is decided first has at least MIN_SAMPLE_ROWS rows, SAMPLE_ROWS_PER_COLUMN for each
# column, and at most the share MAX_SAMPLE_SHARE of the rows: larger samples take longer, smaller ones more often have a
# separator where all rows have none. Round values; not tuned.
MIN_SAMPLE_ROWS, SAMPLE_ROWS_PER_COLUMN, MAX_SAMPLE_SHARE = 500, 20, 0.05
# The reason of an exact stage that runs to the optimum, in reports.
EXACT = "exact"  # the name of the exact stage in reports
OPTIMUM_REASON = "p = 2, a small problem: the optimality conditions on the support"
# The reason in reports of an exact stage that ends at `tol`.
TOL_REASON = "p = 2, a small problem: the first point that proves tol"


@dataclass(frozen=True)
class Fallback:
    """An algorithm that takes over from the chosen one.

    Attributes
    ----------
    algorithm : Algorithm
    reason : str
    row_visits : float
        Budget of the chosen algorithm, in row visits, after which this one takes over.
    following : Fallback, default=None
        The algorithm that follows if this one ends early.
    """

    algorithm: Algorithm
    reason: str
    row_visits: float
    following: Fallback | None = None


@dataclass(frozen=True)
class Stage:
    """A solver with its budget, and the reason for which it is run.

    Attributes
    ----------
    algorithm : Algorithm, Decomposition or None
        None for the exact stage (the active-set method).
    reason : str
    goal : float
        The gap at which it is left out after other solvers.
    max_row_visits : float, default=inf
        Row visits of the fit after which the next stage begins.
    min_rounds : int, default=0
        Rounds of the fit before the budget of row visits can end the stage.
    verdict_after : float, default=inf
        Row visits after which separability is decided for a hard margin without a separator; 0 for one round, where
        samples of the rows may decide it (`sample_rows`).
    points : callable, default=None
        Runs a solver that certifies its points by itself, on the fit; yields once.
    """

    algorithm: Algorithm | Decomposition | None
    reason: str
    goal: float
    max_row_visits: float = np.inf
    min_rounds: int = 0
    verdict_after: float = np.inf
    points: Callable[[Any], Iterator[None]] | None = None

    @property
    def name(self) -> str:
        """The name in reports."""
        return EXACT if self.algorithm is None else self.algorithm.name


def stages(task: Task, job: Job, exact: Stage | None, tol: float) -> list[Stage]:
    """Return the stages of a task, in the order in which they are run.

    A small task begins with the exact stage if the policy chose the algorithm, except for hard margins with fewer
    columns than rows. Otherwise the algorithm is run first, within a budget of row visits, and goes on after the exact
    stage. The fallback comes last; if it takes over from an algorithm that the caller has named, the exact stage comes
    before it.

    Parameters
    ----------
    task : Task
    job : Job
    exact : Stage or None
        The exact stage of a small task.
    tol : float
    """
    algorithm, patterns = job.algorithm, task.patterns
    following = fallback(task.problem, patterns, algorithm) if job.automatic else handover(task, job)
    # the budget before an exact stage (`WORK_SHARE_BEFORE_EXACT`), in row visits
    n, side, entries = patterns.n, min(patterns.n, patterns.d + 1), patterns.entries / max(patterns.n, 1)
    visits = WORK_SHARE_BEFORE_EXACT * n * side * side / max(entries, 1.0) + PASSES_BEFORE_EXACT * n
    verdict_after = 0.0 if sample_rows(n, patterns.d) else min(visits, MAX_PASSES_BEFORE_VERDICT * n)
    budget = np.inf if following is None else following.row_visits
    main = Stage(algorithm, job.reason, tol, budget, verdict_after=verdict_after)
    planned, named = [main], following is not None and not job.automatic
    while following is not None:
        planned.append(Stage(following.algorithm, following.reason, tol, verdict_after=verdict_after))
        following = following.following
    # Without a separator the exact stage gives no w. Linearly independent rows (hence d >= n) always have one.
    wide = patterns.d >= n
    if exact and job.automatic and (wide or not task.problem.hard):
        return [exact, *planned]
    if exact and named:
        return [main, exact, *planned[1:]]
    if exact and algorithm.convergent:
        return [replace(main, max_row_visits=visits, min_rounds=MIN_ROUNDS_BEFORE_EXACT), exact, *planned]
    return planned


def sample_rows(n: int, d: int) -> int:
    """Return the number of rows of the samples on which separability is decided first; 0 where samples save no time."""
    count = max(MIN_SAMPLE_ROWS, SAMPLE_ROWS_PER_COLUMN * (d + 1))
    return count if count <= MAX_SAMPLE_SHARE * n else 0


def choose(
    problem: Problem,
    patterns: Patterns,
    y: np.ndarray | None = None,
    interrupted: Callable[[], bool] = lambda: False,
) -> tuple[Algorithm, str]:
    """Choose the algorithm for a problem on these rows, and return it with the reason that reports state.

    Parameters
    ----------
    problem : Problem
    patterns : Patterns
    y : ndarray of shape (n,), entries -1.0 and 1.0, default=None
        Used with p = inf only, by the errors at p = 2. None to choose without them.
    interrupted : callable
        Returns whether to stop; the errors are then not counted.
    """
    p, n, d = problem.p, patterns.n, patterns.d
    # at p = 2, by loss, size and storage
    if d <= MAX_NEWTON_COLUMNS and Newton().refuses(problem) is None:
        return Newton(), f"{n} x {d}, squared hinge: Newton's method, for every C and all scales"
    # With many dense rows the steps of the proximal-point method depend neither on C nor on the scales of the columns.
    # It also solves small problems, in their exact stage.
    many = is_small(problem, patterns) or (n >= d**2 and not sp.issparse(patterns.X))
    if many and ProximalPoint().refuses(problem) is None:
        return ProximalPoint(), f"{n} x {d}: proximal points, for every C and all scales"
    if problem.euclidean:
        return DualCoordinateDescent(), "p = 2: dual coordinate descent certifies any tol"
    if not problem.hard:
        return _soft_in_other_norm(problem, patterns, y, interrupted)
    # hard margins in other norms: exact programs where they are linear or small enough, else methods of cheap steps
    if LinearProgram().refuses(problem) is None:
        return LinearProgram(), f"p = {p:g}: a linear program, on growing sets of rows and columns"
    size = f"p = {p:g}, {n} x {d}"
    if interior_work(patterns) <= MAX_HARD_FLOPS:
        return InteriorPoint(), f"{size}: interior points, for every p"
    return IMA(), f"{size}: too large for interior points; IMA solves every p"


def _soft_in_other_norm(
    problem: Problem, patterns: Patterns, y: np.ndarray | None, interrupted: Callable[[], bool]
) -> tuple[Algorithm, str]:
    """Choose the algorithm for a soft margin with p other than 2 or `power=1`; the parameters are those of `choose`."""
    p, n, d = problem.p, patterns.n, patterns.d
    size = f"p = {p:g}, {n} x {d}"
    small = interior_work(patterns) <= MAX_INTERIOR_FLOPS
    # At p = 1 interior points take 0.02 to 0.04 s, the linear program of WBC (683 x 9) takes 0.2 to 0.3 s. At p = inf
    # the linear program is preferred for its exact zeros, where it needs few rows.
    interior = small or (not patterns.sparse and interior_work(patterns) <= MAX_HARD_FLOPS)
    program = LinearProgram().refuses(problem) is None and not (p == 1.0 and interior)
    if program and not (interior and y is not None and has_many_errors(problem, patterns, y, interrupted)):
        return LinearProgram(), f"p = {p:g}: a linear program, on growing sets of rows and columns"
    if ProximalNewton().refuses(problem) is None:
        return ProximalNewton(), "p = inf, squared hinge: proximal Newton steps, on growing sets of columns"
    if p == np.inf:
        return (
            InteriorPoint(),
            "p = inf: interior points, on growing sets of columns and rows near the margin",
        )
    if small and (not patterns.sparse or d <= min(n, MAX_NEWTON_COLUMNS)):
        return InteriorPoint(), f"{size}: interior points, for every C and all scales"
    if DualCoordinateDescent().refuses(problem) is None:
        return DualCoordinateDescent(), f"p = {p:g}: coordinate descent; a step costs the non-zeros of a row"
    return InteriorPoint(), f"{size}: interior points, which solve every p"


def fallback(problem: Problem, patterns: Patterns, chosen: Algorithm | None = None) -> Fallback | None:
    """Return the algorithm that takes over from the chosen one, with the budget of the chosen one; None if none does.

    Coordinate descent, which converges slowly on some data, is followed by Newton's method after `PASSES_BEFORE_NEWTON`
    passes where this method solves the problem, and otherwise by proximal points after `SHARE_BEFORE_BATCH` of their
    estimated work. With an exact estimate both together take at most 1.5 times as long as proximal points alone, and at
    most three times as long as coordinate descent alone. Newton's method and the proximal Newton method, where they
    were chosen, are followed by interior points if rounding ends them.

    Parameters
    ----------
    problem : Problem
    patterns : Patterns
    chosen : Algorithm, default=None
        The algorithm that `choose` has returned; None to choose without labels.
    """
    chosen = choose(problem, patterns)[0] if chosen is None else chosen
    n, d = patterns.n, patterns.d + (problem.intercept != "none")
    size = f"{n} x {patterns.d}"
    if not problem.euclidean:
        return _other_norm_fallback(chosen, patterns)
    if isinstance(chosen, Newton | ProximalPoint):
        return Fallback(InteriorPoint(), f"{size}: rounding has ended Newton's method", np.inf)
    if Newton().refuses(problem) is None:
        reason = f"{size}: coordinate descent is slow; Newton's method, for every C and all scales"
        return Fallback(Newton(), reason, PASSES_BEFORE_NEWTON * n) if d <= n else None
    too_wide = d > min(n, MAX_PROXIMAL_COLUMNS)
    if too_wide or ProximalPoint().refuses(problem) is not None:
        return None
    entries, (per_entry, per_pair) = patterns.entries / n, SPARSE_NS if sp.issparse(patterns.X) else DENSE_NS
    products = per_entry * entries if n >= 0.25 * d * d else per_pair * entries * entries
    work, per_visit = n * (PROXIMAL_NS_PER_ROW + products), NS_PER_ROW + NS_PER_ENTRY * entries
    reason = f"{size}: coordinate descent is slow; proximal points, for every C and all scales"
    return Fallback(ProximalPoint(), reason, SHARE_BEFORE_BATCH * work / per_visit)


def _other_norm_fallback(chosen: Algorithm, patterns: Patterns) -> Fallback | None:
    """Return the algorithm that takes over for another problem than p = 2 with the squared norm; None if none does.

    Proximal Newton steps are followed by interior points if rounding ends them. So is coordinate descent: on dense rows
    after `SHARE_BEFORE_BATCH` of their estimated work, on sparse rows after `PASSES_BEFORE_INTERIOR` passes.
    """
    n, d = patterns.n, patterns.d
    size, flops = f"{n} x {d}", dense_work(patterns)
    if isinstance(chosen, ProximalNewton):
        return Fallback(InteriorPoint(), f"{size}: rounding has ended the proximal Newton method", np.inf)
    if flops > MAX_FALLBACK_FLOPS or not isinstance(chosen, DualCoordinateDescent):
        return None
    visits = float(PASSES_BEFORE_INTERIOR * n)
    if not patterns.sparse:
        work = INTERIOR_STEPS * (INTERIOR_NS_PER_ROW * n + INTERIOR_NS_PER_FLOP * flops)
        visits = SHARE_BEFORE_BATCH * work / (P_NORM_NS_PER_ENTRY * patterns.entries / n)
    return Fallback(InteriorPoint(), f"{size}: coordinate descent is slow; interior points", visits)


def handover(task: Task, job: Job) -> Fallback | None:
    """Return the algorithm that takes over from one that the caller has named; None if none does.

    One takes over from `IMA()`, whose last digits take many passes, if the policy would choose it for the task. With
    parameters, which choose its accuracy, IMA goes on.
    """
    if not job.exact or job.algorithm != IMA():
        return None
    chosen, reason = choose(task.problem, task.patterns)
    if isinstance(chosen, IMA):
        return None
    n, entries = task.patterns.n, max(task.patterns.entries, 1)
    visits = n * max(PASSES_BEFORE_HANDOVER, ENTRIES_BEFORE_HANDOVER / entries)
    return Fallback(chosen, f"IMA gains little more; {reason}", visits)


def dense_work(patterns: Patterns) -> float:
    """Return rows x columns x smaller side, the multiplications of a product of dense rows with their transpose."""
    return float(patterns.n) * patterns.d * min(patterns.n, patterns.d)


def interior_work(patterns: Patterns) -> float:
    """Return the multiplications of a step of interior points, one of a compiled loop counted as SPARSE_COST."""
    n, d, dense = patterns.n, patterns.d, dense_work(patterns)
    if not sp.issparse(patterns.X) or d > n:
        return dense
    return min(dense, SPARSE_COST * float(patterns.entries) ** 2 / n + float(d) ** 3)


def has_many_errors(
    problem: Problem, patterns: Patterns, y: np.ndarray, interrupted: Callable[[], bool]
) -> bool:
    """Return whether a linear program of the hinge needs many rows, which it adds in many restricted programs.

    It needs all rows with a loss. Their number is estimated by the errors of the squared hinge at p = 2, solved to the
    gap `ROUGH_GAP`, which takes a few steps of Newton's method. Dense rows with at least as many columns have none at
    p = 2, whatever their labels are, and count as errors. The parameters are those of `choose`.
    """
    X, n = patterns.X, patterns.n
    if problem.hard or n <= MAX_LP_ERRORS or abs(float(y.sum())) == n:
        return False
    if patterns.d >= n and not patterns.sparse:
        return True
    errors, rough = 0, replace(problem, p=2.0, power=2, loss="squared_hinge")
    for w, b, _, gap, _ in points(rough, X, y, np.ones(n), interrupted, ROUGH_GAP):
        if gap <= ROUGH_GAP:
            errors = int(np.count_nonzero(y * Plain.scores(X, w, b) <= 0.0))
            break
    return errors > MAX_LP_ERRORS
