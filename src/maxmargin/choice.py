"""`algorithm="auto"`: which algorithm a problem gets, and why."""

from __future__ import annotations

import numpy as np

from .data import Patterns
from .problems import Problem
from .rules import PUMMA, Algorithm, DualCoordinateDescent, LinearProgram

FEW = 2e9  # rows x smaller side^2 up to which a step of Newton's method is short


def choose(problem: Problem, patterns: Patterns) -> tuple[Algorithm, str]:
    """The algorithm for a problem on these patterns, and the reason in a few words.

    Parameters
    ----------
    problem : Problem
    patterns : Patterns
    """
    p = problem.p
    if p == 2 and (problem.power == 2 or problem.hard):
        return DualCoordinateDescent(), "p = 2: dual coordinate descent certifies any tol"
    if LinearProgram().refuses(problem) is None:
        return LinearProgram(), f"p = {p:g}: a linear program, of the rows and columns that matter"
    n, d = patterns.n, patterns.d
    return PUMMA(), f"p = {p:g}, {n} x {d}: PUMMA costs only the non-zeros of a row"
