"""`algorithm="auto"`: which algorithm a problem gets, and why."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from .batch.generation import linear_points
from .data import Patterns
from .problems import Problem
from .rules import IMA, PUMMA, Algorithm, BarrierPath, DualCoordinateDescent, LinearProgram
from .rules.programs import NoSeparator

# rows x columns x smaller side, and columns, up to which Newton's method is the fastest
FEW, WIDE = 4e9, 3000
SHORT = 5e8  # the same where there are more columns than that, and nothing better for the norm


def choose(problem: Problem, patterns: Patterns, y: np.ndarray) -> tuple[Algorithm, str]:
    """The algorithm for a problem on these patterns, and the reason in a few words.

    Parameters
    ----------
    problem : Problem
    patterns : Patterns
    y : ndarray of shape (n,), entries -1.0 and 1.0
    """
    p, n, d = problem.p, patterns.n, patterns.d
    if problem.euclidean:
        return DualCoordinateDescent(), "p = 2: dual coordinate descent certifies any tol"
    if LinearProgram().refuses(problem) is None:
        return LinearProgram(), f"p = {p:g}: a linear program, of the rows and columns that matter"
    if p == np.inf and not problem.hard:
        return BarrierPath(), "p = inf: Newton's method, on the columns that matter"
    size, work = f"p = {p:g}, {n} x {d}", float(n) * d * min(n, d)
    pairs = PUMMA().refuses(problem) is None
    if work <= (FEW if d <= WIDE else 0.0 if pairs else SHORT):
        return BarrierPath(), f"{size}: small enough for Newton's method, which takes any p"
    if problem.hard and not is_separable(problem, patterns, y):
        return NoSeparator(), f"{size}: not separable, as a linear program shows in every norm"
    separable = "separable, " if problem.hard else ""
    if pairs:
        return (
            PUMMA(),
            f"{size}: {separable}too large for Newton's method; PUMMA costs only the non-zeros of a row",
        )
    if IMA().refuses(problem) is None:
        return IMA(), f"{size}: {separable}too large for Newton's method; IMA takes any p"
    return BarrierPath(), f"{size}: nothing else takes this loss and norm"


def is_separable(problem: Problem, patterns: Patterns, y: np.ndarray) -> bool:
    """Has some w a positive margin? That does not depend on the norm, and p = inf is the fastest to tell."""
    X = patterns.X
    for w, b, _ in linear_points(replace(problem, p=np.inf), X, y, np.ones(patterns.n)):
        if float((y * (X @ w + b)).min()) > 0.0:
            return True
    return False
