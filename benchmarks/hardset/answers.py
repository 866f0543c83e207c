"""Answers of solvers: each in a process with a time limit, judged in exact arithmetic beside the known optimum."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import lru_cache

import numpy as np
from flint import arb

from maxmargin import KernelMaxMarginClassifier, MaxMarginClassifier, Status

from ..measure import in_child, timed
from ..results import Row
from .exact import Judge, exact
from .optima import load
from .problems import PROBLEMS, HardProblem

LIMIT = 10.0  # seconds of the processor, one thread, for a solver; imports and compilation are not counted
OVER = 0.5  # seconds over the limit in which a solver has to return
GRACE = 50.0  # further seconds of the processor after which a process is ended, for compilation
TRIES = (
    4  # of our fits at most, as `max_time` counts seconds of the wall clock, and others may use the processor
)

Point = tuple[np.ndarray, float]


@dataclass
class Answer:
    """What a solver returned.

    Attributes
    ----------
    points : list of (ndarray, float)
        w (or the coefficients of an expansion in rows, with a kernel) and b of every binary problem.
    seconds : float
    status : str
    claims : list of (float, float)
        Claimed intervals of the optima; empty where the solver claims none.
    gap : float
        The largest claimed relative gap; inf without claims.
    """

    points: list[Point]
    seconds: float
    status: str = ""
    claims: list[tuple[float, float]] = field(default_factory=list)
    gap: float = np.inf


def ours(problem: HardProblem, tol: float) -> Answer:
    """Fit with default settings but for tolerance, time limit and seed."""
    X, y = problem.make()
    common = {
        "C": problem.C, "loss": "squared_hinge" if problem.hard else problem.loss, "tol": tol,
        "fit_intercept": problem.intercept, "random_state": 0,
    }  # fmt: skip
    kernel, wall = problem.kernel, LIMIT
    if kernel:
        model = KernelMaxMarginClassifier(
            kernel=kernel.name, gamma=kernel.gamma, degree=kernel.degree, coef0=kernel.coef0, **common
        )
    else:
        model = MaxMarginClassifier(p=problem.p, norm_power=problem.power, **common)
    for _ in range(TRIES):
        seconds, _ = timed(lambda wall=wall: model.set_params(max_time=wall).fit(X, y))
        if model.status_ is not Status.MAX_TIME or seconds > 0.8 * LIMIT:
            break
        wall *= LIMIT / max(seconds, 0.1 * LIMIT)
    coefficients = np.atleast_2d(model.dual_coef_ if kernel else model.coef_)
    if kernel:
        coefficients = np.zeros((len(model.dual_coef_), len(X)))
        coefficients[:, model.support_] = model.dual_coef_
    points = list(zip(coefficients, np.ravel(model.intercept_), strict=True))
    claims = [(float(one.lower), float(one.upper)) for one in model.certificate_.certificates]
    return Answer(points, seconds, model.status_.value, claims, float(model.certificate_.gap))


def limited(
    solve: Callable[[HardProblem, float], Answer], problem: HardProblem, tols: Sequence[float]
) -> list[Answer]:
    """Run a solver at some tolerances in a child process; the answers that are missing where it ends are empty."""

    def answers() -> Iterator[Answer]:
        for tol in tols:
            try:
                yield solve(problem, tol)
            except Exception as error:
                yield Answer([], np.inf, f"{type(error).__name__}: {error}"[:200])

    found = in_child(answers, len(tols) * (LIMIT + 1.0) + (GRACE if solve is ours else 0.0))
    return found + [Answer([], np.inf, "ended") for _ in tols[len(found) :]]


@lru_cache(maxsize=1)
def _known() -> dict[str, list[tuple[Fraction, Fraction]]]:
    return load()


@lru_cache(maxsize=2)
def _judges(name: str) -> list[Judge]:
    problem = PROBLEMS[name]
    return [Judge(problem, X, signs) for X, signs in problem.parts()]


def judged(solver: str, problem: HardProblem, level: str, answer: Answer) -> Row:
    """Return the row about an answer: its excess over the optimum, and how far a claimed interval is from it."""
    optima = _known()[problem.name]
    excess = _worst_excess(problem, optima, answer.points) if answer.seconds <= LIMIT + OVER else np.inf
    claims = zip(answer.claims, optima, strict=True) if answer.claims else ()
    return {
        "solver": solver, "problem": problem.name, "level": level, "seconds": answer.seconds, "status": answer.status,
        "excess": excess, "gap": answer.gap, "wrong": max((_distance(*pair) for pair in claims), default=0.0),
    }  # fmt: skip


def _worst_excess(problem: HardProblem, optima: Sequence, points: Sequence[Point]) -> float:
    if len(points) != len(optima):
        return np.inf
    found = []
    for judge, (low, high), (w, b) in zip(_judges(problem.name), optima, points, strict=True):
        given = np.size(w) == judge.rows.ncols() and np.isfinite(w).all() and np.isfinite(b)
        if not given or (problem.hard and not np.any(w)):
            return np.inf
        value = judge.value(exact(w), arb(float(b)))
        end = high if problem.hard else low
        bound = arb(end.numerator) / arb(end.denominator)
        found.append(float((1 - value / bound if problem.hard else (value - bound) / bound).upper()))
    return max(found)


def _distance(claim: tuple[float, float], optimum: tuple[Fraction, Fraction]) -> float:
    """Return by how much the optimum lies outside a claimed interval, relative to it; 0 within."""
    below = Fraction(claim[0]) - optimum[1] if np.isfinite(claim[0]) else Fraction(0)
    above = optimum[0] - Fraction(claim[1]) if np.isfinite(claim[1]) else Fraction(0)
    return float(max(below, above, Fraction(0)) / optimum[0])
