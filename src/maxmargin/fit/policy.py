"""`algorithm="auto"`: which algorithm a problem gets, and why."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import scipy.sparse as sp

from ..algorithms import (
    IMA,
    PUMMA,
    Algorithm,
    BarrierPath,
    DualCoordinateDescent,
    InteriorPoint,
    LinearProgram,
    Newton,
    ProximalPoint,
)
from ..algorithms.batch.generation import linear_points
from ..algorithms.batch.sifting import PROXIMAL
from ..algorithms.programs import NoSeparator
from ..data.rows import Patterns
from ..problem.problem import Problem
from .driver import Relay, is_small

FEW = 4e9  # rows x columns x smaller side up to which Newton's method is the fastest
NARROW = 1000  # columns up to which Newton's method makes a matrix of their size,
WIDE = 3000  # and interior points and proximal points
# nanoseconds, rough: of a presentation, and of one of its entries; of a row by proximal points, and of its entries, or
# of pairs of them where these begin as interior points, dense and sparse
ROW, ENTRY, OWN = 20.0, 1.5, 300.0
DENSE, SPARSE = (25.0, 0.9), (400.0, 15.0)
SHARE = 0.5  # of the work of proximal points, after which they take over
TOGETHER = 2e6  # entries, of all classes, below which exact steps end sooner than another thread begins
PASSES = 50  # over sparse rows of many columns, after which Newton's method takes over


def gains_by_threads(problem: Problem, patterns: Patterns, classes: int) -> bool:
    """Are several classes of chosen algorithms solved sooner at the same time than one after the other?"""
    exact = problem.euclidean and is_small(problem, patterns)
    return not exact or patterns.entries * classes >= TOGETHER


def choose(
    problem: Problem,
    patterns: Patterns,
    y: np.ndarray | None = None,
    interrupted: Callable[[], bool] = lambda: False,
) -> tuple[Algorithm, str]:
    """The algorithm for a problem on these patterns, and the reason in a few words.

    Parameters
    ----------
    problem : Problem
    patterns : Patterns
    y : ndarray of shape (n,), entries -1.0 and 1.0, default=None
        Looked at for a hard margin only, and only if given: can these be separated?
    interrupted : callable
        Is it time to stop? Whether large classes can be separated is then left open.
    """
    p, n, d = problem.p, patterns.n, patterns.d
    if _by_newton(problem, patterns):
        return Newton(), f"{n} x {d}, squared losses: Newton's method, whatever C and the scales are"
    if _by_proximal_points(problem, patterns):
        return ProximalPoint(), f"{n} x {d}, dense: proximal points, whatever C and the scales are"
    if problem.euclidean:
        return DualCoordinateDescent(), "p = 2: dual coordinate descent certifies any tol"
    if LinearProgram().refuses(problem) is None:
        return LinearProgram(), f"p = {p:g}: a linear program, of the rows and columns that matter"
    if p == np.inf and not problem.hard:
        return BarrierPath(), "p = inf: Newton's method, on the columns that matter"
    size, work = f"p = {p:g}, {n} x {d}", float(n) * d * min(n, d)
    pairs = PUMMA().refuses(problem) is None
    if work <= FEW:
        return BarrierPath(), f"{size}: small enough for Newton's method, which takes any p"
    separable, alpha = None, None
    if problem.hard and y is not None:
        separable, alpha = is_separable(problem, patterns, y, interrupted)
    if separable is False:
        return NoSeparator(alpha=alpha), f"{size}: not separable, as a linear program shows in every norm"
    known = "separable, " if separable else ""
    if pairs:
        return (
            PUMMA(),
            f"{size}: {known}too large for Newton's method; PUMMA costs only the non-zeros of a row",
        )
    if IMA().refuses(problem) is None:
        return IMA(), f"{size}: {known}too large for Newton's method; IMA takes any p"
    return BarrierPath(), f'{size}: nothing else takes this loss and norm (loss="squared_hinge" is faster)'


def relay(problem: Problem, patterns: Patterns) -> Relay | None:
    """Who takes over from the algorithm that is chosen, and after how much work.

    Some data keep dual coordinate descent busy for ever. After half of what proximal points take themselves, both
    together take half as long again as these at most, and three times as long as the first alone where it would
    be the faster, but for the rough estimate. Newton's method ends soon, or loses its digits.

    Parameters
    ----------
    problem : Problem
    patterns : Patterns
    """
    n, d = patterns.n, patterns.d + (problem.intercept != "none")
    size = f"{n} x {patterns.d}"
    if _by_newton(problem, patterns):
        return Relay(InteriorPoint(), f"{size}: Newton's method has lost its digits", np.inf)
    if Newton().refuses(problem) is None:
        then = Relay(Newton(), f"{size}: Newton's method minds neither C nor scales", PASSES * n)
        return then if d <= n else None
    second = ProximalPoint()
    if second.refuses(problem) is not None or d > min(n, WIDE) or _by_proximal_points(problem, patterns):
        return None
    each, (entry, pair) = patterns.entries / n, SPARSE if sp.issparse(patterns.X) else DENSE
    work = n * (OWN + (entry * each if n >= PROXIMAL * d * d else pair * each * each))
    presentations = SHARE * work / (ROW + ENTRY * each)
    return Relay(second, f"{size}: proximal points cost about twice what was spent", presentations)


def _by_newton(problem: Problem, patterns: Patterns) -> bool:
    """Does Newton's method, on a matrix of the columns' products, begin?"""
    return Newton().refuses(problem) is None and patterns.d <= NARROW


def _by_proximal_points(problem: Problem, patterns: Patterns) -> bool:
    """Are there so many dense rows that proximal points are as soon there, whatever C and the scales are?

    Where the exact step was made of them and led nowhere, another algorithm has its turn before they have.
    """
    many = patterns.n >= patterns.d**2 and not sp.issparse(patterns.X)
    return many and ProximalPoint().refuses(problem) is None and not is_small(problem, patterns)


def is_separable(
    problem: Problem, patterns: Patterns, y: np.ndarray, interrupted: Callable[[], bool]
) -> tuple[bool | None, np.ndarray]:
    """Has some w a positive margin? (None where time is up before that is known; dual weights that say no.)

    It does not depend on the norm, and p = inf is the fastest to tell.
    """
    X, alpha = patterns.X, np.ones(patterns.n)
    for w, b, alpha in linear_points(replace(problem, p=np.inf), X, y, np.ones(patterns.n), interrupted):
        if float((y * (X @ w + b)).min()) > 0.0:
            return True, alpha
    return None if interrupted() else False, alpha
