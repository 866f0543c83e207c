"""The linear programs of p = inf (weights in the 1-norm) and p = 1 (weights in the largest-entry norm), by HiGHS.

With rows a_i = y_i x_i, the constant coordinate included, and q the dual exponent of p::

    hard margin      max g                      s.t.  a_i.w + y_i b >= g,          |w|_q <= 1
    hinge, power 1   min |w|_q + sum c_i xi_i   s.t.  a_i.w + y_i b >= 1 - xi_i,   xi >= 0

At p = 1 the hinge is solved for u = w / |w| and g = 1 / |w|: of theta = (1 + sum c_i eta_i) / g the numerator and
the denominator are linear (Dinkelbach's method), and the program is that of the hard margin::

    max theta g - sum c_i eta_i   s.t.  a_i.u + y_i b >= g - eta_i,   |u_j| <= 1,   eta >= 0

with theta the best objective so far. The multipliers of the rows are the dual weights: for the hard margin a point
of the simplex with g = |sum alpha_i a_i|_p, so that classes which cannot be separated are shown by g = 0; for the
hinge 0 <= alpha <= c with |sum alpha_i a_i|_p <= 1. A free intercept balances them.

`scipy.optimize.linprog` runs HiGHS in one call, without a callback and without a warm start. The call is made in a
thread of its own, while the caller's thread waits in short intervals and asks whether to stop: Python handles a signal
in the main thread alone, and between two of its own instructions. When the caller leaves, the thread ends with its
current time limit. That limit is the time that is left, or a slice of it: slices grow, as every one starts the program
anew. None of this changes the solution of a program that is solved in time. SciPy before 1.15 holds the interpreter's
lock inside HiGHS: there the time limit holds, and Ctrl-C is heard at the end of a slice.
"""

from __future__ import annotations

import contextvars
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.optimize import OptimizeResult, linprog

from ...numerics.stop_check import seconds_left
from ...problem.problem import Problem

# Methods of HiGHS and feasibility tolerances, until one finds the optimum: 1e-10 is the least that HiGHS takes.
ATTEMPTS = ("highs-ds", 1e-10), ("highs-ds", 1e-7), ("highs-ipm", 1e-7)
# Seconds between two questions whether to stop: an interrupt is to be heard within half a second, and a solved program
# is returned at once, however long this is.
POLL = 0.05
# Seconds that the caller waits for the thread once it is to stop: HiGHS ends some hundredths of a second after its time
# limit, and a thread that has ended leaves nothing behind.
GRACE = 0.2
# Seconds of the first slice, and the factor of the next. Long slices keep a thread that was left at work, to the end of
# its slice at most; short ones make long programs begin anew more often: with this factor a program takes at most
# 1 + 4/3 times as long as in one piece, and no longer where it is shorter than the first slice, which nearly all are.
FIRST, FACTOR = 4.0, 4.0
# Seconds below which a time limit means that nothing is begun.
SHORTEST = 1e-3
# Iterations for each row and column. The dual simplex method takes about one to three; at margins near its tolerances
# it can cycle without an end (1,000 x 20 rows at 1e-9), so that a fit without `max_time` would never return. A
# program this size stops after some seconds.
ITERATIONS = 20
TIME_OR_ITERATIONS = 1  # status of a result that a limit ended


@dataclass(frozen=True)
class Program:
    """One program: rows a_i, labels, costs c_i (None: the hard margin), whether p is inf (else 1), a free intercept?

    Rows lie in units of their largest entry: HiGHS has absolute tolerances.
    """

    A: Any  # dense or CSR
    y: np.ndarray
    costs: np.ndarray | None
    sparse_weights: bool
    free: bool
    unit: float
    rho: float

    @property
    def hard(self) -> bool:
        """Is this the hard margin?"""
        return self.costs is None

    def part(self, rows: np.ndarray, columns: np.ndarray) -> Program:
        """The same with these rows and columns only."""
        A = self.A[rows][:, columns]
        costs = None if self.costs is None else self.costs[rows]
        return replace(self, A=A, y=self.y[rows], costs=costs)

    def nothing(self) -> float:
        """The objective at w = 0, above which theta leaves the program of these rows unbounded."""
        if self.costs is None:
            return np.inf
        if not self.free:
            return float(self.costs.sum())
        return 2.0 * min(float(self.costs[self.y > 0].sum()), float(self.costs[self.y < 0].sum()))

    def primal(self, w: np.ndarray, b: float) -> tuple[np.ndarray, float]:
        """(w, b) of the caller's own units and features."""
        scale = 1.0 if self.costs is None else 1.0 / self.unit
        if self.rho:
            return scale * w[:-1], scale * self.rho * float(w[-1])
        return scale * w, b if self.costs is not None else self.unit * b

    def dual(self, alpha: np.ndarray) -> np.ndarray:
        """Dual weights in the caller's own units."""
        return alpha if self.costs is None else alpha / self.unit

    def norm(self, w: np.ndarray) -> float:
        """|w|_q."""
        size = np.abs(w)
        return float(size.sum() if self.sparse_weights else size.max(initial=0.0))

    def dual_norm(self, v: np.ndarray) -> float:
        """|v|_p."""
        size = np.abs(v)
        return float(size.max(initial=0.0) if self.sparse_weights else size.sum())


@dataclass(frozen=True)
class Solved:
    """A point of a program: weights, intercept and dual weights."""

    w: np.ndarray
    b: float
    alpha: np.ndarray


def program(problem: Problem, X: Any, y: np.ndarray, weights: np.ndarray) -> Program:
    """The program of a problem, all rows of positive weight."""
    if problem.p not in (1.0, np.inf):
        raise ValueError(f"only p = 1 and p = inf are linear programs; got p = {problem.p:g}.")
    if not problem.hard and (problem.loss != "hinge" or problem.power != 1):
        raise ValueError("only the hard margin and the hinge with the norm to the first power are linear.")
    if sp.issparse(X):
        A = sp.csr_matrix(X.multiply(y[:, None]), dtype=float)
        if problem.rho:
            A = sp.hstack([A, problem.rho * y[:, None]], format="csr")
    else:
        A = X * y[:, None]
        if problem.rho:
            A = np.column_stack([A, problem.rho * y])
    unit = float(abs(A).max()) if A.size else 1.0
    unit = 2.0 ** np.round(np.log2(unit)) if unit > 0.0 else 1.0
    # |w|_q + C sum xi in these units: the weight is `unit` times as large, and so is what a slack costs
    costs = None if problem.hard else problem.C * weights * unit
    return Program(A / unit, y, costs, bool(np.isinf(problem.p)), problem.free, unit, problem.rho)


def solve_program(
    part: Program,
    size: float = 1.0,
    theta: float = 1.0,
    interrupted: Callable[[], bool] = lambda: False,
) -> Solved | None:
    """The optimum by HiGHS; None where it finds none, or none in time.

    Parameters
    ----------
    part : Program
    size : float, default=1
        Of the hard margin: about its size, which becomes the unit.
    theta : float, default=1
        Of the hinge at p = 1: the best objective so far. The dual weights are feasible once it is the optimum.
    interrupted : callable
        True where it is time to stop. Asked while HiGHS is at work.
    """
    n, d = part.A.shape
    A = part.A if size == 1.0 else part.A / size
    theta = min(theta, part.nothing())
    ratio = part.hard or not part.sparse_weights  # g is a variable, and |w| <= 1
    # columns: those of w, then b, g and xi, where they are
    if part.sparse_weights:  # w = w+ - w-
        blocks, cost = [A, -A], [np.full(2 * d, 0.0 if ratio else 1.0)]
        bounds = [(0.0, None)] * (2 * d)
    else:
        blocks, cost, bounds = [A], [np.zeros(d)], [(-1.0, 1.0)] * d
    used = len(bounds)
    if part.free:
        blocks, cost, bounds = [*blocks, part.y[:, None]], [*cost, np.zeros(1)], [*bounds, (None, None)]
    if ratio:
        blocks, cost = [*blocks, np.full((n, 1), -1.0)], [*cost, np.full(1, -1.0 if part.hard else -theta)]
        bounds = [*bounds, (None, None) if part.hard else (0.0, None)]
    if part.costs is not None:
        blocks, cost = [*blocks, sp.eye(n)], [*cost, part.costs]
        bounds = [*bounds, *[(0.0, None)] * n]
    G = -(sp.hstack(blocks, format="csc") if any(map(sp.issparse, blocks)) else np.hstack(blocks))
    h = np.full(n, 0.0 if ratio else -1.0)
    if ratio and part.sparse_weights:  # |w|_1 <= 1; that |w_j| <= 1 is said by the bounds
        one = np.append(np.ones(2 * d), np.zeros(G.shape[1] - 2 * d))[None]
        G, h = (sp.vstack([G, one]) if sp.issparse(G) else np.vstack([G, one])), np.append(h, 1.0)
    for method, tolerance in ATTEMPTS:
        result = solve_linear(np.concatenate(cost), G, h, bounds, method, tolerance, interrupted)
        if result is None:  # it is time to stop
            return None
        if result.status == 0:
            break
    else:
        return None
    x, alpha = result.x, np.maximum(-result.ineqlin.marginals[:n], 0.0)
    w = x[:d] - x[d:used] if part.sparse_weights else x[:d]
    b = size * float(x[used]) if part.free else 0.0
    if part.costs is not None:
        alpha = np.minimum(alpha, part.costs)
        if ratio:
            g = float(x[used + int(part.free)])
            w, b = (w / g, b / g) if g > 0.0 else (np.zeros(d), 0.0)
    return Solved(w, b, alpha)


def solve_linear(
    cost: np.ndarray,
    G: Any,
    h: np.ndarray,
    bounds: Sequence[tuple[float | None, float | None]],
    method: str,
    tolerance: float,
    interrupted: Callable[[], bool],
) -> OptimizeResult | None:
    """Minimise cost.x subject to G x <= h and bounds; None where it is time to stop before the solution is there.

    Parameters
    ----------
    cost : ndarray of shape (k,)
    G : ndarray or sparse matrix of shape (m, k)
    h : ndarray of shape (m,)
    bounds : sequence of k pairs
        None where there is none.
    method : {"highs-ds", "highs-ipm"}
    tolerance : float
        Of primal and dual feasibility.
    interrupted : callable
        True where it is time to stop; a `StopCheck` tells the time that is left, too.

    Returns
    -------
    OptimizeResult or None
        `status` is not 0 where HiGHS found no solution, for instance within the iteration limit.
    """
    options = {
        "primal_feasibility_tolerance": tolerance,
        "dual_feasibility_tolerance": tolerance,
        "maxiter": ITERATIONS * sum(G.shape),
    }

    def run(limit: float) -> OptimizeResult:
        limited = {**options, "time_limit": limit}
        return linprog(cost, G, h, bounds=bounds, method=method, options=limited)

    if interrupted():
        return None
    call = _Call(run, seconds_left(interrupted))
    return call.wait(interrupted)


class _Call:
    """One program in a thread of its own.

    Parameters
    ----------
    run : callable
        From a time limit in seconds to the result.
    left : float
        Seconds for all slices; infinite where there is no limit.
    """

    def __init__(self, run: Callable[[float], OptimizeResult], left: float) -> None:
        self._run, self._deadline = run, time.perf_counter() + left
        self._ended, self._left = threading.Event(), False
        self._result: OptimizeResult | None = None
        self._error: BaseException | None = None

    def wait(self, interrupted: Callable[[], bool]) -> OptimizeResult | None:
        """Start, and return the result, or None as soon as it is time to stop; errors of the thread are raised here."""
        # NumPy's error state is part of the context. The thread is no daemon: one that returns from HiGHS while the
        # interpreter is being shut down aborts the process.
        context = contextvars.copy_context()
        thread = threading.Thread(target=context.run, args=(self._solve,), name="HiGHS")
        thread.start()
        try:
            while not self._ended.wait(POLL):
                if interrupted():
                    self._ended.wait(GRACE)
                    break
        finally:
            self._left = True
        if self._error is not None:
            raise self._error
        return self._result

    def _solve(self) -> None:
        """Slices of growing length until one ends with a result, or nobody waits for it any more."""
        try:
            self._result = self._in_slices()
        except BaseException as error:
            self._error = error
        finally:
            self._ended.set()

    def _in_slices(self) -> OptimizeResult | None:
        longest = FIRST
        while not self._left:
            limit = min(longest, self._deadline - time.perf_counter())
            if limit < SHORTEST:
                return None
            begun = time.perf_counter()
            result = self._run(limit)
            # a result before the time limit is final, one that the iteration limit ended included
            if result.status != TIME_OR_ITERATIONS or time.perf_counter() - begun < limit:
                return result
            longest *= FACTOR
        return None
