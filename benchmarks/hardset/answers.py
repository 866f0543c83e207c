"""Answers of solvers: each in a process with a time limit, judged in exact arithmetic beside the known optimum."""

from __future__ import annotations

import multiprocessing
import resource
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import lru_cache
from typing import Any

import numpy as np
from flint import arb

from .exact import Judge, exact
from .optima import load
from .problems import PROBLEMS, HardProblem

LIMIT = 10.0  # seconds of the processor, one thread, for a solver; imports and compilation are not counted
OVER = 0.5  # seconds over the limit in which a solver has to return
GRACE = 50  # further seconds of the processor after which a process is ended, for compilation
WAIT = 300.0  # seconds of the wall clock after which a process is ended: the machine may be shared

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

    @property
    def in_time(self) -> bool:
        """Whether the solver kept the limit."""
        return self.seconds <= LIMIT + OVER


@dataclass
class Verdict:
    """An answer, judged.

    Attributes
    ----------
    solver, problem : str
    tol : float
        Tolerance that the solver was given.
    seconds : float
    status : str
    excess : float
        The largest relative excess over the optimum of all binary problems; inf without an answer in time.
    gap : float
        The largest claimed gap.
    wrong : float
        The largest relative distance of an optimum from the claimed interval; 0 if all claims are true.
    """

    solver: str
    problem: str
    tol: float
    seconds: float
    status: str
    excess: float
    gap: float
    wrong: float


Solve = Callable[[HardProblem, float, float], Answer]


def limited(solve: Solve, problem: HardProblem, tols: Sequence[float], grace: int = 0) -> list[Answer]:
    """Run a solver at some tolerances in a child process; the answers that are missing where it ends are empty.

    The system ends it after the limits and `grace` seconds of the processor.
    """
    context: Any = multiprocessing.get_context("fork")
    receiver, sender = context.Pipe(duplex=False)
    process = context.Process(target=_send, args=(sender, solve, problem, tols, grace))
    process.start()
    sender.close()
    answers = []
    try:
        while len(answers) < len(tols) and receiver.poll(WAIT):
            answers.append(receiver.recv())
    except EOFError:
        pass  # the system ended the process
    process.kill()
    process.join()
    return answers + [Answer([], np.inf, "ended") for _ in tols[len(answers) :]]


def _send(sender: Any, solve: Solve, problem: HardProblem, tols: Sequence[float], grace: int) -> None:
    most = len(tols) * (int(LIMIT) + 1) + grace
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_CPU, (most, most + 1))
    for tol in tols:
        try:
            answer = solve(problem, tol, LIMIT)
        except Exception as error:
            answer = Answer([], np.inf, f"{type(error).__name__}: {error}"[:200])
        sender.send(answer)


@lru_cache(maxsize=1)
def _known() -> dict[str, list[tuple[Fraction, Fraction]]]:
    return load()


@lru_cache(maxsize=2)
def _judges(name: str) -> list[Judge]:
    problem = PROBLEMS[name]
    return [Judge(problem, X, signs) for X, signs in problem.parts()]


def judged(solver: str, problem: HardProblem, tol: float, answer: Answer) -> Verdict:
    """Return the verdict about an answer."""
    optima = _known()[problem.name]
    excess = _worst_excess(problem, optima, answer.points) if answer.in_time else np.inf
    wrong = (
        max((_distance(*pair) for pair in zip(answer.claims, optima, strict=True)), default=0.0)
        if answer.claims
        else 0.0
    )
    return Verdict(solver, problem.name, tol, answer.seconds, answer.status, excess, answer.gap, wrong)


def _worst_excess(problem: HardProblem, optima: Sequence, points: Sequence[Point]) -> float:
    if len(points) != len(optima):
        return np.inf
    found = []
    for judge, (low, high), (w, b) in zip(_judges(problem.name), optima, points, strict=True):
        if np.size(w) != judge.rows.ncols():  # the solver returned no point
            return np.inf
        if not (np.isfinite(w).all() and np.isfinite(b)) or (problem.hard and not np.any(w)):
            return np.inf
        value = judge.value(exact(w), arb(float(b)))
        bound = _ball(high if problem.hard else low)
        found.append(float((1 - value / bound if problem.hard else (value - bound) / bound).upper()))
    return max(found)


def _ball(number: Fraction) -> arb:
    return arb(number.numerator) / arb(number.denominator)


def _distance(claim: tuple[float, float], optimum: tuple[Fraction, Fraction]) -> float:
    """Return by how much the optimum lies outside a claimed interval, relative to it; 0 within."""
    below = Fraction(claim[0]) - optimum[1] if np.isfinite(claim[0]) else Fraction(0)
    above = optimum[0] - Fraction(claim[1]) if np.isfinite(claim[1]) else Fraction(0)
    return float(max(below, above, Fraction(0)) / optimum[0])
