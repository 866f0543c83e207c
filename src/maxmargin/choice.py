"""`algorithm="auto"`: which algorithm a problem gets, and why."""

from __future__ import annotations

import numpy as np

from .data import Patterns
from .problems import Problem
from .rules import PUMMA, Algorithm, DualCoordinateDescent

FEW = 2e9  # rows x smaller side^2 up to which a step of Newton's method is short


def choose(problem: Problem, patterns: Patterns) -> tuple[Algorithm, str]:
    """The algorithm for a problem on these patterns, and the reason in a few words.

    Parameters
    ----------
    problem : Problem
    patterns : Patterns
    """
    p = problem.p
    if p == 2 and problem.power == 2:
        return DualCoordinateDescent(), "p = 2: dual coordinate descent certifies any tol"
    from .rules import IMA
    from .rules.programs import ConvexProgram, LinearProgram

    linear = LinearProgram()
    if linear.refuses(problem) is None:
        return linear, f"p = {p:g}: a linear program, of the rows and columns that matter"
    exact, n, d = ConvexProgram(), patterns.n, patterns.d
    side = min(n, d + 1)
    if exact.refuses(problem) is None and float(n) * side * side <= FEW:
        return exact, f"p = {p:g}, {n} x {d}: small enough for a convex program"
    if p > 2 and not np.isinf(p) and PUMMA().refuses(problem) is None:
        return PUMMA(), f"p = {p:g}, {n} x {d}: PUMMA costs only the non-zeros of a row"
    return IMA(), f"p = {p:g}, {n} x {d}: IMA solves every p"
