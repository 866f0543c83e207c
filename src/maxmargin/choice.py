"""`algorithm="auto"`: which algorithm a problem gets, and why."""

from __future__ import annotations

from .data import Patterns
from .problems import Problem
from .rules import IMA, PUMMA, Algorithm, BarrierPath, DualCoordinateDescent, LinearProgram

FEW = 5e8  # rows x columns x smaller side, up to which a step of Newton's method takes some ten milliseconds


def choose(problem: Problem, patterns: Patterns) -> tuple[Algorithm, str]:
    """The algorithm for a problem on these patterns, and the reason in a few words.

    Parameters
    ----------
    problem : Problem
    patterns : Patterns
    """
    p, n, d = problem.p, patterns.n, patterns.d
    if p == 2 and (problem.power == 2 or problem.hard):
        return DualCoordinateDescent(), "p = 2: dual coordinate descent certifies any tol"
    if LinearProgram().refuses(problem) is None:
        return LinearProgram(), f"p = {p:g}: a linear program, of the rows and columns that matter"
    size = f"p = {p:g}, {n} x {d}"
    if float(n) * d * min(n, d) <= FEW:
        return BarrierPath(), f"{size}: small enough for Newton's method, which takes any p"
    if PUMMA().refuses(problem) is None:
        return PUMMA(), f"{size}: too large for Newton's method; PUMMA costs only the non-zeros of a row"
    if IMA().refuses(problem) is None:
        return IMA(), f"{size}: too large for Newton's method; IMA takes any p"
    return BarrierPath(), f"{size}: nothing else takes this loss and norm"
