"""The policy of `algorithm="auto"`: which algorithm a problem gets, and the stages a fit goes through.

The rules follow measurements (docs/choice.md). Work is compared in row visits, so that budgets do not depend on the
machine.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
import scipy.sparse as sp

from ..algorithms.base import Algorithm
from ..algorithms.batch.decomposition import Decomposition
from ..algorithms.batch.generation import linear_points
from ..algorithms.batch.sifting import PROXIMAL
from ..algorithms.online.dual_coordinate_descent import DualCoordinateDescent
from ..algorithms.online.ima import IMA
from ..algorithms.online.pumma import PUMMA
from ..algorithms.programs import (
    BarrierPath,
    InteriorPoint,
    LinearProgram,
    Newton,
    NoSeparator,
    ProximalPoint,
)
from ..data.rows import Patterns
from ..data.task import Task
from ..problem.problem import Problem
from . import gram_exact
from .exact import MANY_ROWS, NEAR_ENOUGH, is_small
from .report import KernelJob

# Rows x columns x smaller side up to which the barrier path was the fastest for p other than 2.
MAX_BARRIER_FLOPS = 4e9
# Columns up to which Newton's method factorises a matrix of their size, and up to which interior points and proximal
# points do; beyond, the factorisation takes longer than passes over the rows.
MAX_NEWTON_COLUMNS, MAX_PROXIMAL_COLUMNS = 1000, 3000
# Rough costs in nanoseconds: of a row visit, of one of its entries, and of a row in a proximal point step; of a row
# entry there, and of a pair of entries where proximal points begin as interior points (dense and sparse rows).
ROW, ENTRY, PROXIMAL_ROW = 20.0, 1.5, 300.0
DENSE, SPARSE = (25.0, 0.9), (400.0, 15.0)
# Share of the estimated work of proximal points that is spent on coordinate descent before they take over: both
# together then cost at most half as much again as proximal points alone.
FALLBACK_SHARE = 0.5
# Full passes of coordinate descent over sparse rows of many columns, after which Newton's method always won.
PATIENCE_PASSES = 50
# Rounds that a convergent algorithm has at least before the exact stage of a small problem.
MIN_ROUNDS = 3
# Rounds of a kernel problem of many rows, after which a factor of low rank of its Gram matrix is worth a look.
LONG = 30
# Row visits before the exact stage: this share of its floating-point operations, in entries visited, and 5 passes.
EXACT_SHARE, MIN_PASSES = 0.4, 5.0
# Full passes without a separator after which the verdict on separability is asked for in any case.
MAX_PASSES = 100
CONDITIONS = "p = 2, a small problem: the optimality conditions on the support"
SUPPORT = "few rows, or features: the optimality conditions on the support"


@dataclass(frozen=True)
class Fallback:
    """An algorithm that takes over from the first.

    Attributes
    ----------
    algorithm : Algorithm
    reason : str
    row_visits : float
        Those of the first algorithm before.
    """

    algorithm: Algorithm
    reason: str
    row_visits: float


@dataclass(frozen=True)
class Choice:
    """The algorithm for a problem.

    Attributes
    ----------
    algorithm : Algorithm
    reason : str
    automatic : bool, default=False
        Whether the policy chose it: small problems then begin with the exact stage, and a fallback takes over where the
        algorithm converges slowly.
    exact : bool, default=True
        Whether small problems end with the exact stage.
    """

    algorithm: Algorithm
    reason: str = ""
    automatic: bool = False
    exact: bool = True


@dataclass(frozen=True)
class Stage:
    """A solver with its budget.

    Attributes
    ----------
    algorithm : Algorithm, Decomposition or None
        None for the exact stage (the active-set method).
    reason : str
    max_row_visits : float, default=inf
        Row visits of the whole attempt after which the next stage begins.
    min_rounds : int, default=0
        Rounds that the stage has in any case.
    near_enough : float, default=0
        Relative gap at which the next stage begins, whatever the budget.
    skippable : bool, default=False
        Whether an exact stage is left out where the stage before ended within its budget.
    verdict_after : float, default=inf
        Row visits after which a hard margin without a separator asks for the verdict on separability.
    """

    algorithm: Algorithm | Decomposition | None
    reason: str
    max_row_visits: float = np.inf
    min_rounds: int = 0
    near_enough: float = 0.0
    skippable: bool = False
    verdict_after: float = np.inf


def stages(task: Task, choice: Choice, last: Fallback | None, small: bool) -> list[Stage]:
    """Return the stages of a presolved task, in the order in which they are run.

    Parameters
    ----------
    task : Task
    choice : Choice
    last : Fallback or None
        The algorithm that takes over from the chosen one.
    small : bool
        Whether the exact stage is affordable, and no order of rows has to be kept.
    """
    algorithm, patterns = choice.algorithm, task.patterns
    # What a share of the exact stage costs: the algorithm may come near by itself.
    side, entries = min(patterns.n, patterns.d + 1), patterns.entries / max(patterns.n, 1)
    fair_share = EXACT_SHARE * patterns.n * side * side / max(entries, 1.0) + MIN_PASSES * patterns.n
    verdict_after = min(fair_share, MAX_PASSES * patterns.n)
    budget = np.inf if last is None else last.row_visits
    exact, main = (
        Stage(None, CONDITIONS),
        Stage(algorithm, choice.reason, budget, verdict_after=verdict_after),
    )
    planned = [main]
    if last is not None:
        planned.append(Stage(last.algorithm, last.reason, verdict_after=verdict_after))
    # Without a separator the exact stage leaves no w; hard margins of more columns than rows always have one.
    wide = patterns.d >= patterns.n
    if small and choice.automatic and (wide or not task.problem.hard):
        return [exact, *planned]
    if small and algorithm.convergent:
        before = replace(main, max_row_visits=fair_share, min_rounds=MIN_ROUNDS)
        return [before, exact, *planned]
    return planned


def gram_stages(job: KernelJob, n: int) -> list[Stage]:
    """Return the stages of a kernel problem on n rows."""
    main = Stage(job.algorithm, job.reason)
    if not (job.exact and job.algorithm.convergent and n <= MANY_ROWS):
        return [main]
    before = replace(main, max_row_visits=0.0, min_rounds=LONG)
    if n <= gram_exact.FEW_ROWS:
        before = replace(before, min_rounds=MIN_ROUNDS, near_enough=NEAR_ENOUGH)
    return [before, Stage(None, SUPPORT, skippable=True), main]


def choose(
    problem: Problem,
    patterns: Patterns,
    y: np.ndarray | None = None,
    interrupted: Callable[[], bool] = lambda: False,
) -> tuple[Algorithm, str]:
    """Choose the algorithm for a problem on these rows, with the reason in a few words.

    Parameters
    ----------
    problem : Problem
    patterns : Patterns
    y : ndarray of shape (n,), entries -1.0 and 1.0, default=None
        Used for hard margins only: decides which algorithms can end.
    interrupted : callable
        Returns whether to stop; separability of large classes is then left open.
    """
    p, n, d = problem.p, patterns.n, patterns.d
    if d <= MAX_NEWTON_COLUMNS and Newton().refuses(problem) is None:
        return Newton(), f"{n} x {d}, squared losses: Newton's method, whatever C and the scales are"
    # Many dense rows, so that C and the scales do not matter. Not on small problems: where their exact stage failed,
    # another algorithm comes before proximal points.
    many = n >= d**2 and not sp.issparse(patterns.X) and not is_small(problem, patterns)
    if many and ProximalPoint().refuses(problem) is None:
        return ProximalPoint(), f"{n} x {d}, dense: proximal points, whatever C and the scales are"
    if problem.euclidean:
        return DualCoordinateDescent(), "p = 2: dual coordinate descent certifies any tol"
    if LinearProgram().refuses(problem) is None:
        return LinearProgram(), f"p = {p:g}: a linear program, of the rows and columns that matter"
    if p == np.inf and not problem.hard:
        return BarrierPath(), "p = inf: Newton's method, on the columns that matter"
    size, work = f"p = {p:g}, {n} x {d}", float(n) * d * min(n, d)
    if work <= MAX_BARRIER_FLOPS:
        return BarrierPath(), f"{size}: small enough for Newton's method, which takes any p"
    separable, alpha = None, None
    if problem.hard and y is not None:
        separable, alpha = is_separable(problem, patterns, y, interrupted)
    if separable is False:
        return NoSeparator(alpha=alpha), f"{size}: not separable, as a linear program shows in every norm"
    known = "separable, " if separable else ""
    too_large = f"{size}: {known}too large for Newton's method"
    if PUMMA().refuses(problem) is None:
        return PUMMA(), f"{too_large}; PUMMA costs only the non-zeros of a row"
    if IMA().refuses(problem) is None:
        return IMA(), f"{too_large}; IMA takes any p"
    return BarrierPath(), f'{size}: nothing else takes this loss and norm (loss="squared_hinge" is faster)'


def fallback(problem: Problem, patterns: Patterns) -> Fallback | None:
    """Return the algorithm that takes over from the chosen one, and after how much work; None where there is none.

    Coordinate descent converges slowly on some data. After half of the work that proximal points would take, both
    together take half as long again as these at most, and three times as long as the first alone where it would have
    been the faster, but for the rough estimate. Newton's method ends soon, or loses its digits.

    Parameters
    ----------
    problem : Problem
    patterns : Patterns
    """
    chosen, _ = choose(problem, patterns)
    n, d = patterns.n, patterns.d + (problem.intercept != "none")
    size = f"{n} x {patterns.d}"
    if isinstance(chosen, Newton):
        return Fallback(InteriorPoint(), f"{size}: Newton's method has lost its digits", np.inf)
    if Newton().refuses(problem) is None:
        reason = f"{size}: Newton's method minds neither C nor scales"
        return Fallback(Newton(), reason, PATIENCE_PASSES * n) if d <= n else None
    too_wide = d > min(n, MAX_PROXIMAL_COLUMNS)
    if too_wide or isinstance(chosen, ProximalPoint) or ProximalPoint().refuses(problem) is not None:
        return None
    each, (entry, pair) = patterns.entries / n, SPARSE if sp.issparse(patterns.X) else DENSE
    work = n * (PROXIMAL_ROW + (entry * each if n >= PROXIMAL * d * d else pair * each * each))
    reason = f"{size}: proximal points cost about twice what was spent"
    return Fallback(ProximalPoint(), reason, FALLBACK_SHARE * work / (ROW + ENTRY * each))


def is_separable(
    problem: Problem, patterns: Patterns, y: np.ndarray, interrupted: Callable[[], bool]
) -> tuple[bool | None, np.ndarray]:
    """Decide separability by the linear program of p = inf, the fastest; the norm does not matter.

    Returns
    -------
    separable : bool or None
        None where time was up before.
    alpha : ndarray of shape (n,)
        Dual variables; where there is no separator, sum alpha_i y_i x_i = 0.
    """
    X, alpha = patterns.X, np.ones(patterns.n)
    for w, b, alpha in linear_points(replace(problem, p=np.inf), X, y, np.ones(patterns.n), interrupted):
        if float((y * (X @ w + b)).min()) > 0.0:
            return True, alpha
    return None if interrupted() else False, alpha
