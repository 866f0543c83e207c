"""The linear programs of p = inf (weights in the 1-norm) and p = 1 (weights in the largest-entry norm), by HiGHS.

With rows a_i = y_i x_i, the constant coordinate included, and q the dual exponent of p::

    hard margin      max g                      s.t.  a_i.w + y_i b >= g,          |w|_q <= 1
    hinge, power 1   min |w|_q + sum c_i xi_i   s.t.  a_i.w + y_i b >= 1 - xi_i,   xi >= 0

At p = 1 the hinge is solved for u = w / |w| and g = 1 / |w|: of theta = (1 + sum c_i eta_i) / g the numerator and
the denominator are linear (Dinkelbach's method), and the program is that of the hard margin::

    max theta g - sum c_i eta_i   s.t.  a_i.u + y_i b >= g - eta_i,   |u_j| <= 1,   eta >= 0

with theta the best objective so far. The multipliers of the rows are the dual weights: for the hard margin a point
of the simplex with g = |sum alpha_i a_i|_p, so that classes which cannot be separated are shown by g = 0; for the
hinge 0 <= alpha <= c with |sum alpha_i a_i|_p <= 1. With a free intercept sum alpha_i y_i = 0.

`scipy.optimize.linprog` runs HiGHS in one call, without a callback and without a warm start. The call runs in a second
thread, while the caller's thread waits in short intervals and calls the stop check: Python handles a signal only in the
main thread, between two instructions. After the caller stops waiting, the second thread ends at its current time limit.
That limit is the remaining time or a slice, whichever is shorter; the slices grow, as each one solves the program from
its beginning. The solution of a program that is solved in time does not depend on the slices. SciPy before 1.15 holds
the interpreter's lock inside HiGHS: the time limit works there, but Ctrl-C takes effect at the end of a slice.
"""

from __future__ import annotations

import contextvars
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.optimize import OptimizeResult, linprog

from ...numerics.norms import norm
from ...numerics.stop_check import seconds_left
from ...problem.problem import Problem
from .diagonal_plus_gram import signed_rows
from .iterate import Point

# Methods of HiGHS and feasibility tolerances, tried in turn until one finds the optimum: 1e-10 is the least that HiGHS
# accepts; looser tolerances and interior points solve programs on which the first attempt fails.
ATTEMPTS = ("highs-ds", 1e-10), ("highs-ds", 1e-7), ("highs-ipm", 1e-7)
# Seconds between two calls of the stop check, well below the half second within which an interrupt takes effect. A
# solved program is returned at once, whatever this value is.
POLL = 0.05
# Seconds that the caller waits for the thread after the stop check is true: HiGHS ends some hundredths of a second
# after its time limit, and a thread that has ended uses no more processor time.
GRACE = 0.2
# Seconds of the first slice, and the factor from slice to slice. With long slices an abandoned thread runs longer, at
# most to the end of its slice; with short ones a long program is started more often. With factor 4 a program takes at
# most 1 + 4/3 times as long as in one call, and no longer if it is solved within the first slice, as nearly all are.
FIRST, FACTOR = 4.0, 4.0
# A time limit below this many seconds is no limit of a call: no call is made.
SHORTEST = 1e-3
# Iteration limit for each row and column. The dual simplex method takes about one to three; for margins near its
# tolerances it can cycle without an end (1,000 x 20 rows at 1e-9), so that a fit without `max_time` would never return.
# With this limit a program of that size ends after some seconds.
ITERATIONS = 20
TIME_OR_ITERATIONS = 1  # `OptimizeResult.status` where the time or iteration limit ended the call


@dataclass(frozen=True)
class Program:
    """The linear program of a problem, in units of the largest entry: HiGHS has absolute tolerances.

    Attributes
    ----------
    problem : Problem
    A : ndarray or CSR matrix of shape (n, d)
        Rows a_i = y_i x_i / unit, constant coordinate included.
    y : ndarray of shape (n,), entries -1.0 and 1.0
    costs : ndarray of shape (n,)
        Objective coefficients of the slack variables; infinite for the hard margin.
    unit : float
        The power of two nearest to the largest entry of a row.
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
            raise ValueError(
                "only the hard margin and the hinge with the norm to the first power are linear."
            )
        A = signed_rows(problem, X, y)
        unit = float(abs(A).max()) if A.size else 1.0
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
        """Return a primal and a dual value, each the better the larger.

        Hard margin: the smallest margin of w / |w|_q, and minus the upper bound |v|_p / sum alpha of the margin.
        Hinge: minus the objective, and the dual objective of alpha / max(1, |v|_p).

        Parameters
        ----------
        w : ndarray of shape (d,)
        margins : ndarray of shape (n,)
        alpha : ndarray of shape (n,)
        v : ndarray of shape (d,)
            sum alpha_i a_i.
        """
        length, size, total = norm(w, self.problem.q), norm(v, self.problem.p), float(alpha.sum())
        if self.problem.hard:
            margin = float(margins.min()) / length if length > 0.0 else -np.inf
            return margin, -size / total if total > 0.0 else -np.inf
        return -length - float(self.costs @ np.maximum(1.0 - margins, 0.0)), total / max(1.0, size)

    def restored(self, point: Point) -> Point:
        """Return a point in the caller's units, with the constant coordinate, if any, as the intercept."""
        w, b, alpha = point
        if self.problem.hard:
            b *= self.unit
        else:
            w, alpha = w / self.unit, alpha / self.unit
        return (
            Point(w[:-1], self.problem.rho * float(w[-1]), alpha) if self.problem.rho else Point(w, b, alpha)
        )


def solve_program(
    program: Program,
    size: float = 1.0,
    theta: float = 1.0,
    interrupted: Callable[[], bool] = lambda: False,
) -> Point | None:
    """Return the optimum by HiGHS, in units of the program; None if no attempt finds it or the stop check is true.

    Parameters
    ----------
    program : Program
    size : float, default=1
        The unit of margins, by which the rows are divided: an estimate of the margin of a hard-margin problem.
    theta : float, default=1
        For the hinge at p = 1: the best objective so far. The dual variables are feasible if it is the optimum.
    interrupted : callable
        Returns whether to stop. Called while HiGHS runs.
    """
    problem, (n, d) = program.problem, program.A.shape
    hard, split = problem.hard, bool(np.isinf(problem.p))
    ratio = hard or not split  # g is a variable, and |w| <= 1
    A = sp.csc_array(program.A / size)
    # blocks of variables: (columns in the constraints of the rows, cost, lower bound, upper bound)
    if split:  # w = w+ - w-
        weights: list[Any] = [(part, 0.0 if ratio else 1.0, 0.0, np.inf) for part in (A, -A)]
    else:
        weights = [(A, 0.0, -1.0, 1.0)]
    intercept = [(program.y[:, None], 0.0, -np.inf, np.inf)] if problem.free else []
    margin = [(np.full((n, 1), -1.0), -1.0, -np.inf, np.inf)] if hard else []
    if ratio and not hard:
        margin = [(np.full((n, 1), -1.0), -min(theta, program.loss_at_zero()), 0.0, np.inf)]
    slack = [] if hard else [(sp.eye_array(n), program.costs, 0.0, np.inf)]
    blocks = [*weights, *intercept, *margin, *slack]
    cost = np.concatenate([np.broadcast_to(block[1], block[0].shape[1]) for block in blocks])
    bounds = np.concatenate([np.tile(block[2:], (block[0].shape[1], 1)) for block in blocks])
    G, h = -sp.hstack([block[0] for block in blocks], format="csc"), np.full(n, 0.0 if ratio else -1.0)
    if ratio and split:  # |w|_1 <= 1; the bounds hold |w_j| <= 1
        G, h = sp.vstack([G, (np.arange(cost.size) < 2 * d)[None, :].astype(float)]), np.append(h, 1.0)
    for method, tolerance in ATTEMPTS:
        result = solve_linear(cost, G, h, bounds, method, tolerance, interrupted)
        if result is None:  # stopped
            return None
        if result.status == 0:
            break
    else:
        return None
    after = d * len(weights)
    w = result.x[:d] - result.x[d:after] if split else result.x[:d]
    b = size * float(result.x[after]) if problem.free else 0.0
    alpha = np.maximum(-result.ineqlin.marginals[:n], 0.0)
    if hard:
        return Point(w, b, alpha)
    if ratio:
        g = float(result.x[after + len(intercept)])
        w, b = (w / g, b / g) if g > 0.0 else (np.zeros(d), 0.0)
    return Point(w, b, np.minimum(alpha, program.costs))


def solve_linear(
    cost: np.ndarray,
    G: Any,
    h: np.ndarray,
    bounds: Any,
    method: str,
    tolerance: float,
    interrupted: Callable[[], bool],
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
        "maxiter": ITERATIONS * sum(G.shape),
    }

    def solve_in_slices() -> OptimizeResult | None:
        longest = FIRST
        while not abandoned.is_set():
            limit = min(longest, deadline - time.perf_counter())
            if limit < SHORTEST:
                return None
            begun = time.perf_counter()
            limited = {**options, "time_limit": limit}
            result = linprog(cost, G, h, bounds=bounds, method=method, options=limited)
            # a result before the time limit is final, also where the iteration limit ended the call
            if result.status != TIME_OR_ITERATIONS or time.perf_counter() - begun < limit:
                return result
            longest *= FACTOR
        return None

    # The thread of the pool is not a daemon: a daemon that returns from HiGHS during the shutdown of the interpreter
    # aborts the process. The context is copied, as it holds NumPy's error state.
    pool = ThreadPoolExecutor(1, thread_name_prefix="HiGHS")
    try:
        solution = pool.submit(contextvars.copy_context().run, solve_in_slices)
        _wait_until_stopped(solution, interrupted)
        return solution.result() if solution.done() else None
    finally:
        abandoned.set()
        pool.shutdown(wait=False)


def _wait_until_stopped(solution: Future[Any], interrupted: Callable[[], bool]) -> None:
    """Wait until the future is done or the stop check is true, and in the latter case GRACE seconds more."""
    while not wait([solution], POLL).done:
        if interrupted():
            wait([solution], GRACE)
            return
