"""The linear programs of p = inf (weights in the 1-norm) and p = 1 (weights in the largest-entry norm), by HiGHS.

With rows a_i = y_i x_i, the constant coordinate included, costs c_i = C s_i of the slacks xi_i, s_i the sample weights,
and q the dual exponent of p (1/p + 1/q = 1)::

    hard margin      max g                      s.t.  a_i.w + y_i b >= g,          |w|_q <= 1
    hinge, power 1   min |w|_q + sum c_i xi_i   s.t.  a_i.w + y_i b >= 1 - xi_i,   xi >= 0

At p = 1 the hinge is solved for u = w / |w|, g = 1 / |w| and eta = xi / |w|. Its objective is
theta = (1 + sum c_i eta_i) / g, a ratio of linear functions. Dinkelbach's method minimises it by linear programs, whose
constraints are those of the hard margin with slacks::

    max theta g - sum c_i eta_i   s.t.  a_i.u + y_i b >= g - eta_i,   |u_j| <= 1,   eta >= 0

with theta the best objective so far. The multipliers of the rows are the dual variables alpha: for the hard margin a
point of the simplex with g = |sum alpha_i a_i|_p, so that g = 0 proves that the classes cannot be separated; for the
hinge 0 <= alpha <= c with |sum alpha_i a_i|_p <= 1. With a free intercept sum alpha_i y_i = 0.

`scipy.optimize.linprog` runs HiGHS in one call, without a callback and without a warm start. The call runs in a second
thread, while the caller's thread waits in short intervals and calls the stop check: Python handles a signal only in the
main thread, between two instructions. After the caller stops waiting, the second thread ends at its current time limit.
That limit is the remaining time or a slice, whichever is shorter; the slices grow, as each one solves the program from
its beginning. The solution of a program that is solved in time does not depend on the slices. SciPy holds the
interpreter's lock while it copies the matrix, 0.1 to 0.2 s for a million entries, so that a stop takes effect later;
before SciPy 1.15 it holds the lock inside HiGHS, too: the time limit works there, but Ctrl-C takes effect at the end of
a slice.
"""

from __future__ import annotations

import contextvars
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor, wait
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.optimize import OptimizeResult, linprog

from ...numerics.norms import norm, row_norms
from ...numerics.stop_check import seconds_left
from ...problem.problem import Problem
from ..any_norm.unit_rows import ordinary_rows
from ..linear_algebra.diagonal_plus_gram import signed_rows
from .iterate import Point

TIME_OR_ITERATIONS = 1  # `OptimizeResult.status` where the time or iteration limit ended the call


@dataclass(frozen=True)
class Settings:
    """Settings of the calls of HiGHS. Values without another source are round ones, and not tuned."""

    # Methods of HiGHS and feasibility tolerances, tried in turn until one finds the optimum: 1e-10 is the least that
    # HiGHS accepts; looser tolerances and interior points solve programs on which the first attempt fails.
    attempts: tuple[tuple[str, float], ...] = ("highs-ds", 1e-10), ("highs-ds", 1e-7), ("highs-ipm", 1e-7)
    # Seconds between two calls of the stop check, well below the half second within which an interrupt takes effect. A
    # solved program is returned at once, whatever this value is.
    poll_seconds: float = 0.05
    # Seconds that the caller waits for the thread after the stop check is true: HiGHS ends some hundredths of a second
    # after its time limit, and a thread that has ended uses no more processor time.
    grace_seconds: float = 0.2
    # Seconds of the first slice, and the factor from slice to slice. With long slices an abandoned thread runs longer,
    # at most to the end of its slice; with short ones a long program is started more often. With factor 4 a program
    # takes at most 1 + 4/3 times as long as in one call, and no longer if it is solved within the first slice, as
    # nearly all are.
    first_slice: float = 4.0
    slice_growth: float = 4.0
    # Seconds below which a remaining time is too short for a call: no call is made.
    shortest_slice: float = 1e-3
    # Iteration limit for each row and column. The dual simplex method takes about one to three; for margins near its
    # tolerances it can cycle without an end (1,000 x 20 rows at 1e-9), so that a fit without `max_time` would never
    # return. With this limit a program of that size ends after some seconds.
    iterations_per_size: int = 20


SETTINGS = Settings()


@dataclass(frozen=True)
class Program:
    """The linear program of a problem, in units of the largest ordinary entry: HiGHS has absolute tolerances.

    Attributes
    ----------
    problem : Problem
    A : ndarray or CSR matrix of shape (n, d)
        Rows a_i = y_i x_i / unit, constant coordinate included.
    y : ndarray of shape (n,), entries -1.0 and 1.0
    costs : ndarray of shape (n,)
        Costs c_i of the slacks in these units; infinite for the hard margin.
    unit : float
        The power of two nearest to the largest entry of the ordinary rows (`ordinary_rows`).
    """

    problem: Problem
    A: Any
    y: np.ndarray
    costs: np.ndarray
    unit: float

    @classmethod
    def of(cls, problem: Problem, X: Any, y: np.ndarray, weights: np.ndarray) -> Program:
        """Return the program of a problem; raise ValueError if it is not linear. All weights are positive."""
        if problem.p not in (1.0, np.inf):
            raise ValueError(f"only p = 1 and p = inf are linear programs; got p = {problem.p:g}.")
        if not problem.hard and (problem.loss != "hinge" or problem.power != 1):
            raise ValueError("only the hard margin and the hinge with norm_power=1 are linear.")
        A = signed_rows(problem, X, y)
        largest = row_norms(A, np.inf)
        unit = float(largest[ordinary_rows(largest)].max(initial=0.0))
        unit = 2.0 ** np.round(np.log2(unit)) if unit > 0.0 else 1.0
        # |w|_q + C sum xi in these units: w is `unit` times as large, and so is the coefficient of a slack
        return cls(problem, A / unit, y, problem.C * weights * unit, unit)

    def part(self, rows: np.ndarray, columns: np.ndarray) -> Program:
        """Return the program restricted to these rows and columns."""
        return replace(self, A=self.A[rows][:, columns], y=self.y[rows], costs=self.costs[rows])

    def loss_at_zero(self) -> float:
        """Return the objective at w = 0 and the best intercept; with a larger theta the program is unbounded."""
        if not self.problem.free:
            return float(self.costs.sum())
        return 2.0 * min(float(self.costs[self.y > 0].sum()), float(self.costs[self.y < 0].sum()))

    def values(
        self, w: np.ndarray, margins: np.ndarray, alpha: np.ndarray, v: np.ndarray
    ) -> tuple[float, float]:
        """Return a primal and a dual value, of which a larger one is better.

        Hard margin: the smallest margin of w / |w|_q, and minus the upper bound |v|_p / sum alpha of the margin.
        Hinge: minus the objective, and the dual objective of alpha / max(1, |v|_p).

        Parameters
        ----------
        w : ndarray of shape (d,)
        margins : ndarray of shape (n,)
            a_i.w + y_i b.
        alpha : ndarray of shape (n,)
        v : ndarray of shape (d,)
            sum alpha_i a_i.
        """
        w_norm, v_norm, total = norm(w, self.problem.q), norm(v, self.problem.p), float(alpha.sum())
        if self.problem.hard:
            margin = float(margins.min()) / w_norm if w_norm > 0.0 else -np.inf
            return margin, -v_norm / total if total > 0.0 else -np.inf
        return -w_norm - float(self.costs @ np.maximum(1.0 - margins, 0.0)), total / max(1.0, v_norm)


def solve_program(
    program: Program,
    margin_unit: float = 1.0,
    theta: float = 1.0,
    interrupted: Callable[[], bool] = lambda: False,
    settings: Settings = SETTINGS,
) -> Point | None:
    """Return the optimum by HiGHS, in units of the program; None if no attempt finds it or the stop check is true.

    None also where entries divided by `margin_unit` are beyond float64 numbers.

    Variables are w (at p = inf its positive and negative parts), b, g and the slacks, as far as the program has them.

    Parameters
    ----------
    program : Program
    margin_unit : float, default=1
        Rows are divided by it, so that margins are about one: an estimate of the margin of a hard-margin problem.
    theta : float, default=1
        For the hinge at p = 1: the best objective so far. The dual variables are feasible if it is the optimum.
    interrupted : callable
        Returns whether to stop. Called while HiGHS runs.
    settings : Settings
    """
    problem, (n, d) = program.problem, program.A.shape
    hard, split = problem.hard, bool(np.isinf(problem.p))
    unit_ball = hard or not split  # the constraint |w|_q <= 1 and the variable g, in place of the term |w|_q
    A = compressed_columns(program.A / margin_unit)
    if interrupted():  # copies of large data take a second
        return None
    # blocks of variables: (columns in the constraints of the rows, cost, lower bound, upper bound)
    if split:  # w = w+ - w-
        weights: list[Any] = [(part, 0.0 if unit_ball else 1.0, 0.0, np.inf) for part in (A, -A)]
    else:
        weights = [(A, 0.0, -1.0, 1.0)]
    intercept = [(program.y[:, None], 0.0, -np.inf, np.inf)] if problem.free else []
    # the cost has the term -theta g, or -g for the hard margin, where g may be negative
    price, lower = (1.0, -np.inf) if hard else (min(theta, program.loss_at_zero()), 0.0)
    margin = [(np.full((n, 1), -1.0), -price, lower, np.inf)] if unit_ball else []
    slack = [] if hard else [(sp.eye_array(n), program.costs, 0.0, np.inf)]
    # rows longer than the unit are divided by the root of their length, to a power of two: the tolerances of HiGHS are
    # absolute, and it drops entries below 1e-9, which division by the length itself would make of the other ones
    length = 2.0 ** np.round(0.5 * np.log2(np.maximum(row_norms(program.A, np.inf), 1.0)))
    blocks = [*weights, *intercept, *margin, *slack]
    cost = np.concatenate([np.broadcast_to(block[1], block[0].shape[1]) for block in blocks])
    bounds = np.concatenate([np.tile(block[2:], (block[0].shape[1], 1)) for block in blocks])
    # G x <= h: the rows a_i.w + y_i b - g + eta_i >= 0, or a_i.w + y_i b + xi_i >= 1, with the sign changed
    G = sp.csc_array(sp.hstack([sp.csc_array(block[0]) for block in blocks], format="csc"))
    G.data *= (-1.0 / length)[G.indices]
    if not np.isfinite(G.data).all():  # entries over `margin_unit` overflow: HiGHS refuses them
        return None
    h = (0.0 if unit_ball else -1.0) / length
    if unit_ball and split:  # one more row, |w|_1 <= 1; at p = 1 the bounds of the variables are |w_j| <= 1
        G, h = sp.vstack([G, (np.arange(cost.size) < 2 * d)[None, :].astype(float)]), np.append(h, 1.0)
    for method, tolerance in settings.attempts:
        result = solve_linear(cost, G, h, bounds, method, tolerance, interrupted, settings)
        if result is None:  # stopped
            return None
        if result.status == 0:  # optimal
            break
    else:
        return None
    end = d * len(weights)  # the number of variables of w
    w = result.x[:d] - result.x[d:end] if split else result.x[:d]
    # rows are divided by the unit, and w is not: b in units of the program is a multiple
    b = margin_unit * float(result.x[end]) if problem.free else 0.0
    # HiGHS returns the derivatives of the cost by h, which are not positive
    alpha = np.maximum(-result.ineqlin.marginals[:n], 0.0) / length
    if hard:
        return Point(w, b, alpha)
    if unit_ball:  # w = u / g; g = 0 stands for w = 0
        g = float(result.x[end + len(intercept)])
        w, b = (w / g, b / g) if g > 0.0 else (np.zeros(d), 0.0)
    return Point(w, b, np.minimum(alpha, program.costs))


def compressed_columns(A: Any) -> sp.csc_array:
    """Return a dense or CSR matrix as CSC: SciPy builds coordinates of a dense one first, ten times as slowly."""
    if sp.issparse(A):
        return sp.csc_array(A)
    (n, d), kind = A.shape, sp.get_index_dtype(maxval=A.size)
    rows, starts = np.tile(np.arange(n, dtype=kind), d), np.arange(d + 1, dtype=kind) * n
    columns = sp.csc_array((A.T.flatten(), rows, starts), shape=A.shape)
    columns.eliminate_zeros()
    return columns


def solve_linear(
    cost: np.ndarray,
    G: Any,
    h: np.ndarray,
    bounds: Any,
    method: str,
    tolerance: float,
    interrupted: Callable[[], bool],
    settings: Settings = SETTINGS,
) -> OptimizeResult | None:
    """Minimise cost.x subject to G x <= h and bounds on x; return None if the stop check is true before the solution.

    Parameters
    ----------
    cost : ndarray of shape (k,)
    G : ndarray or sparse matrix of shape (m, k)
    h : ndarray of shape (m,)
    bounds : array-like of shape (k, 2)
    method : {"highs-ds", "highs-ipm"}
    tolerance : float
        Of primal and dual feasibility.
    interrupted : callable
        Returns whether to stop; a `StopCheck` has a deadline, too, which becomes the time limit.
    settings : Settings

    Returns
    -------
    OptimizeResult or None
        `status` is not 0 where HiGHS found no solution, for instance within the iteration limit.
    """
    if interrupted():
        return None
    deadline, abandoned = time.perf_counter() + seconds_left(interrupted), threading.Event()
    options = {
        "primal_feasibility_tolerance": tolerance,
        "dual_feasibility_tolerance": tolerance,
        "maxiter": settings.iterations_per_size * sum(G.shape),
    }

    def solve_in_slices() -> OptimizeResult | None:
        """Call HiGHS with growing time limits; return None after the deadline, or once the caller has left."""
        slice_length = settings.first_slice
        while not abandoned.is_set():
            limit = min(slice_length, deadline - time.perf_counter())
            if limit < settings.shortest_slice:
                return None
            begun = time.perf_counter()
            limited = {**options, "time_limit": limit}
            result = linprog(cost, G, h, bounds=bounds, method=method, options=limited)
            # a result before the time limit is final, also where the iteration limit ended the call
            if result.status != TIME_OR_ITERATIONS or time.perf_counter() - begun < limit:
                return result
            slice_length *= settings.slice_growth
        return None

    # The thread of the pool is not a daemon: a daemon that returns from HiGHS during the shutdown of the interpreter
    # aborts the process. The context is copied, as it holds NumPy's error state.
    pool = ThreadPoolExecutor(1, thread_name_prefix="HiGHS")
    try:
        solution = pool.submit(contextvars.copy_context().run, solve_in_slices)
        while not wait([solution], settings.poll_seconds).done:
            if interrupted():
                wait([solution], settings.grace_seconds)
                break
        return solution.result() if solution.done() else None
    finally:
        abandoned.set()
        pool.shutdown(wait=False)
