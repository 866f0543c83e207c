"""An algorithm by itself, exactly as its paper has it: `Algorithm.run`.

The sweeps and the schedules are those of the fits. Nothing else takes part: rows are neither merged nor shifted, no
other method takes over, and the result is the last iterate with the algorithm's own scale and intercept.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from sklearn.utils import check_X_y

from ..algorithms import bounds
from ..algorithms.base import Bias
from ..certificates.certificate import Sample
from ..certificates.gram import KernelPoint, KernelProblem, KernelSample, certified
from ..certificates.row_pass import certify
from ..data.rows import Patterns
from ..kernels.functions import Kernel, kernel_named
from ..numerics.sizes import draw_seeds
from ..problem.problem import Problem, Status
from ..solvers.decomposition import KernelRows
from .best import Primal
from .deadline import Deadline
from .report import Task
from .runs import GramRun, LinearRun
from .schedules import CONVERGED_GAP, SCHEDULES


class Epoch(NamedTuple):
    """A row of the table of a run.

    Attributes
    ----------
    epochs : float
        `visits` by the number of rows; of a batch solver its iterates.
    visits : int
        Visits of rows so far, evaluations apart.
    updates : int
    seconds : float
        Processor time so far, evaluations apart.
    margin : float
        Of the iterate: its smallest margin (hard), or 1 / |w| (soft).
    objective : float
        Of the iterate: 1 / (2 margin^2) for a hard margin.
    lower, upper, gap : float
        Bounds by sums in float64: one is that of the iterate, the other one of the best dual variables so far.
    """

    epochs: float
    visits: int
    updates: int
    seconds: float
    margin: float
    objective: float
    lower: float
    upper: float
    gap: float


@dataclass(frozen=True, eq=False)
class AlgorithmRun:
    """The record of an algorithm that was run by itself (`Algorithm.run`).

    Attributes
    ----------
    algorithm : Algorithm
    problem : Problem
    status : Status
        CONVERGED: its own stopping rule; CERTIFIED: the gap `tol`; MAX_ITER: `max_epochs`; STALLED: no further iterate;
        INTERRUPTED: the callback.
    w : ndarray of shape (d,) or None
        The last iterate, in the algorithm's own scale; None with a kernel, where w = sum alpha_i y_i phi(x_i).
    b : float
        Its intercept, in the same scale.
    alpha : ndarray of shape (n,)
        The dual variables in this scale: the numbers of updates, times their steps.
    n_updates : int
    n_epochs : float
    margin, objective : float
        As in the last row of the table.
    lower, upper : float
        Certified bounds, rounded outwards: one by the last iterate, the other by the best dual variables.
    R : float
        The largest norm of a pattern, with the constant and the slack coordinate.
    parameters : dict
        The parameters as resolved: the fields of the rule, `unit`, the score that stands for a margin of one (None
        where no score does), and the numbers of the algorithm itself (t_plus, t_minus, ... of MPU).
    bound : float
        The theorem's bound on updates for the margin that was attained; NaN where there is no theorem.
    table : list of Epoch
    """

    algorithm: Any
    problem: Problem
    status: Status
    w: np.ndarray | None
    b: float
    alpha: np.ndarray
    n_updates: int
    n_epochs: float
    margin: float
    objective: float
    lower: float
    upper: float
    R: float
    parameters: dict[str, Any]
    bound: float
    table: list[Epoch]


def objective_of(margin: float) -> float:
    """Return the objective 1 / (2 margin^2) of a hard margin."""
    return 0.5 / margin / margin if margin > 0.0 else np.inf


@dataclass
class _Reached:
    """The iterate that a run returns, with its margin and its objective."""

    own: tuple[np.ndarray | None, float, np.ndarray]
    primal: Primal
    margin: float
    objective: float


def _reached(state: Any, last: _Reached | None) -> _Reached:
    """Return the iterate that was evaluated last; of IMA the best, not that of a target that it has given up."""
    best, problem, schedule, found = state.best, state.problem, state.algorithm.schedule, state.iterate
    if found is None or schedule == "working-sets":  # decomposition computes bounds only
        objective = objective_of(best.margin()) if problem.hard else best.upper
        return _Reached((None, best.primal.b, best.alpha), best.primal, best.margin(), objective)
    margins, length = state.y * (found.z + found.primal.b), found.length
    objective = problem.primal(length, margins, state.weights)
    margin = 1.0 / length if length > 0.0 else np.inf
    if problem.hard:
        margin = float(margins.min()) / length if length > 0.0 else -np.inf
        objective = objective_of(margin)
    if last is not None and schedule == "increments" and not objective < last.objective:
        return last
    return _Reached(found.own, found.primal, margin, objective)


def _epoch(state: Any, reached: _Reached, seconds: float) -> Epoch:
    """Return the row of the table after so many seconds."""
    margin, objective, best = reached.margin, reached.objective, state.best
    visits = state.presentations - state.n * state.evaluations
    lower, upper = (margin, best.upper) if state.problem.hard else (best.lower, objective)
    gap = state.problem.gap(lower, upper)
    seconds -= state.evaluating
    return Epoch(visits / state.n, visits, state.steps, seconds, margin, objective, lower, upper, gap)


def run(
    algorithm: Any,
    X: Any,
    y: Any,
    C: float,
    *,
    kernel: Any = None,
    max_epochs: float = 1000,
    record: str | None = "epoch",
    tol: float | None = None,
    sample_weight: Any = None,
    random_state: Any = None,
    callback: Callable[[Epoch], Any] = lambda row: False,
    deadline: Deadline | None = None,
    **options: Any,
) -> AlgorithmRun:
    """Run an algorithm, or the decomposition of kernels, by itself; the parameters are those of `Algorithm.run`."""
    X, y = check_X_y(X, y, accept_sparse="csr", dtype=[np.float64, np.float32], order="C")  # pyright: ignore
    classes, n, deadline = np.unique(y), y.size, deadline or Deadline()
    if classes.size != 2:
        raise ValueError(f"run takes labels of two classes; got {classes.size}: take one against the others.")
    options.setdefault("intercept", "free" if algorithm.bias is Bias.OWN else "none")
    refused = algorithm.refuses(Problem(**{"loss": "squared_hinge", "C": C} | options))
    problem = Problem(**{"loss": "hinge" if refused else "squared_hinge", "C": C} | options)
    refused = algorithm.refuses(problem)
    if kernel is not None and not problem.euclidean:
        refused = refused or "p=2 and power=2 with a kernel"
    if refused is not None:
        raise ValueError(f"{algorithm.name} does not solve this problem: use {refused}.")
    weights = np.ones(n) if sample_weight is None else np.asarray(sample_weight, float)
    used, signs = np.flatnonzero(weights > 0.0), np.where(y == classes[1], 1.0, -1.0)
    rng = np.random.default_rng(int(draw_seeds(random_state, 1)[0]))
    own = algorithm.for_rows(n, lambda numbers: numbers[used])
    settings = own, tol or 1e-3, rng, deadline.interrupted  # parameters that are None follow from the tol
    if kernel is None:
        state: Any = LinearRun(Task(problem, Patterns(X[used]), signs[used], weights[used]), *settings)
    else:
        kernel = kernel if isinstance(kernel, Kernel) else kernel_named(kernel, X, "scale", 3, 0.0)
        rows = KernelRows(kernel, kernel.part(X, used), 1000.0)  # of megabytes
        state = GramRun(Task(problem, rows, signs[used], weights[used]), *settings)
    state.every_epoch, began, reached = record == "epoch", time.process_time(), None
    table, status, gap = list[Epoch](), None, np.inf
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        for _ in SCHEDULES[algorithm.schedule](state):
            reached = _reached(state, reached)
            table.append(_epoch(state, reached, time.process_time() - began))
            gap, status = table[-1].gap, Status.INTERRUPTED if callback(table[-1]) else deadline.status()
            if state.converged or gap <= (tol or 0.0):
                status = Status.CONVERGED
            elif not state.finite:
                status = Status.NOT_FINITE
            elif table[-1].epochs >= max_epochs:
                status = status or Status.MAX_ITER
            if status is not None:
                break
        ended = Status.CONVERGED if state.converged or gap <= CONVERGED_GAP else Status.STALLED
        reached = reached or _reached(state, None)
        last = table[-1] if table else _epoch(state, reached, 0.0)
        lower, upper = _certified(state, *reached.primal)
        if problem.gap(lower, upper) <= (tol or 0.0):
            status = Status.CERTIFIED
        w, b, part = reached.own
        alpha = np.zeros(n)
        alpha[used] = part
        parameters = {"unit": state.plan.unit}
        if hasattr(state.rule, "_asdict"):  # of a rule, and not a batch solver
            parameters |= state.rule._asdict() | algorithm.measure(state)
        status = status or deadline.status() or ended
        return AlgorithmRun(
            algorithm, problem, status, w, b, alpha, last.updates, last.epochs, last.margin, last.objective, lower,
            upper, state.facts.R, parameters, _most_updates(state), table,
        )  # fmt: skip


def _certified(state: Any, w: np.ndarray, b: float) -> tuple[float, float]:
    """Return the certified bounds by the iterate (w, b) and by the best dual variables."""
    problem, patterns, alpha = state.problem, state.patterns, state.best.alpha
    if isinstance(state, LinearRun):
        found: Any = certify(problem, Sample(patterns.X, state.y, state.weights), w, b, alpha)
    else:
        sample = KernelSample(patterns.rows.kernel, patterns.rows.X)
        task = KernelProblem(problem, sample, state.y, state.weights)
        found = certified([task], [KernelPoint(alpha, w, b)])[0][1]
    return float(found.lower), float(found.upper)


def _most_updates(state: Any) -> float:
    """Return the theorem's bound on updates for the margin of the iterate in the space of the algorithm."""
    theorem = bounds.UPDATES.get(state.algorithm.name)
    if theorem is None:
        return np.nan
    length2 = state.length2() + float(np.sum(state.h.slack.own_norm2(state.h.ids)))
    margin = float(state.scores.min()) / length2**0.5 if length2 > 0.0 else 0.0
    return theorem(state.algorithm, state.rule, state.facts.R, margin, state.problem.p)
