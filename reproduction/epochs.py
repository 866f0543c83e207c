"""Hard-margin runs whose last iterate is looked at after each epoch, as in the figures of the PUMMA paper."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from maxmargin import Problem
from maxmargin.algorithms import Algorithm
from maxmargin.data.rows import Patterns
from maxmargin.data.task import Task
from maxmargin.fit.run import Run
from maxmargin.numerics.norms import norm


class Look(NamedTuple):
    """State of a run after an epoch, which is a pass over all rows.

    Attributes
    ----------
    updates : int
        Number of updates so far.
    seconds : float
        CPU time of the epochs so far.
    margin : float
        Smallest y (w.x + b) / |w|_q of the last iterate (w, b), where b is the intercept of the algorithm.
    """

    updates: int
    seconds: float
    margin: float


class _LastIterate(Run):
    """A run that computes the margin of its last iterate instead of bounds."""

    margin = -np.inf

    def evaluate(
        self,
        w: np.ndarray,
        b: float,
        alpha: np.ndarray,
        z: np.ndarray | None = None,
        v: np.ndarray | None = None,
    ) -> None:
        """Compute the margin of (w, b); z are the products w.x_i, where they are known."""
        z = self.patterns.X @ w if z is None else z
        self.margin = float((self.y * (z + b)).min()) / norm(w, self.problem.q)


def epochs(rule: Algorithm, X: np.ndarray, y: np.ndarray, p: float = 2.0, rho: float = 0.0) -> Iterator[Look]:
    """Yield the state after each epoch of a hard-margin run, until an epoch makes no update.

    Parameters
    ----------
    rule : Algorithm
        Without halving. Its schedule is ignored.
    X : ndarray of shape (n, d)
    y : ndarray of shape (n,), entries -1.0 and 1.0
    p : float, default=2
        Norm in which the margin is measured.
    rho : float, default=0
        Constant coordinate of every row; 0 for an algorithm that computes the intercept itself.
    """
    problem = Problem("squared_hinge", np.inf, p, "augmented" if rho else "free", rho or 1.0)
    task = Task(problem, Patterns(X), y, np.ones(y.size))
    run = _LastIterate(task, rule, 1e-13, np.random.default_rng(0), lambda: False)
    run.begin()
    steps, seconds = 1, 0.0
    while steps:
        began = time.process_time()
        steps = run.full_passes(1)
        seconds += time.process_time() - began
        run.evaluate_iterate()
        yield Look(run.steps, seconds, run.margin)
