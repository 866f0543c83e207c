"""The linear programs of p = inf (weights in the 1-norm) and p = 1 (weights in the largest-entry norm), by HiGHS.

With rows a_i = y_i x_i, the constant coordinate included, costs c_i = C s_i of the slacks xi_i, s_i the sample weights,
and q the dual exponent of p (1/p + 1/q = 1)::

    hard margin      max g                      s.t.  a_i.w + y_i b >= g,          |w|_q <= 1
    hinge, power 1   min |w|_q + sum c_i xi_i   s.t.  a_i.w + y_i b >= 1 - xi_i,   xi >= 0

At p = 1 |w|_inf is a variable t of the hinge: |w_j| <= t. The multipliers of the rows are the dual variables alpha:
for the hard margin a point of the simplex with g = |sum alpha_i a_i|_p, so that g = 0 proves that the classes cannot be
separated; for the hinge 0 <= alpha <= c with |sum alpha_i a_i|_p <= 1. With a free intercept sum alpha_i y_i = 0.

`scipy.optimize.linprog` runs HiGHS in one call, without a callback: its time limit is the remaining time, and Ctrl-C
takes effect after it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.optimize import linprog

from ...numerics.norms import norm, row_norms
from ...numerics.stop_check import seconds_left
from ...problem.problem import Problem
from ...solvers.iterate import Point
from ...solvers.linear_systems import signed_rows

# Methods of HiGHS and feasibility tolerances, tried in turn until one finds the optimum: 1e-10 is the least that HiGHS
# accepts; looser tolerances and interior points solve programs on which the first attempt fails.
ATTEMPTS = ("highs-ds", 1e-10), ("highs-ds", 1e-7), ("highs-ipm", 1e-7)
# Iteration limit for each row and column. The dual simplex method takes about one to three; for margins near its
# tolerances it can cycle without an end (1,000 x 20 rows at 1e-9).
ITERATIONS_PER_SIZE = 20
SHORTEST_CALL = 1e-3  # seconds below which no call is made


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
        Costs c_i of the slacks in these units; infinite for the hard margin.
    unit : float
        The power of two nearest to the largest entry of the rows.
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
        unit = float(row_norms(A, np.inf).max(initial=0.0))
        unit = 2.0 ** np.round(np.log2(unit)) if unit > 0.0 else 1.0
        # |w|_q + C sum xi in these units: w is `unit` times as large, and so is the coefficient of a slack
        return cls(problem, A / unit, y, problem.C * weights * unit, unit)

    def part(self, rows: np.ndarray, columns: np.ndarray) -> Program:
        """Return the program restricted to these rows and columns."""
        return replace(self, A=self.A[rows][:, columns], y=self.y[rows], costs=self.costs[rows])

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
    program: Program, margin_unit: float = 1.0, interrupted: Callable[[], bool] = lambda: False
) -> Point | None:
    """Return the optimum by HiGHS, in units of the program; None if no attempt finds it in time.

    None also where entries divided by `margin_unit` are beyond float64 numbers.

    Variables are w (at p = inf its positive and negative parts), b, the slacks, and g (hard margin) or t (hinge at
    p = 1), as far as the program has them.

    Parameters
    ----------
    program : Program
    margin_unit : float, default=1
        Rows are divided by it, so that margins are about one: an estimate of the margin of a hard-margin problem.
    interrupted : callable
        Returns whether to stop; the seconds left of a `StopCheck` are the time limit of HiGHS.
    """
    problem, (n, d) = program.problem, program.A.shape
    hard, split = problem.hard, bool(np.isinf(problem.p))
    A = compressed_columns(program.A / margin_unit)
    # blocks of variables: (columns in the constraints of the rows, cost, lower bound, upper bound)
    if split:  # w = w+ - w-
        weights: list[Any] = [(part, 0.0 if hard else 1.0, 0.0, np.inf) for part in (A, -A)]
    else:
        weights = [(A, 0.0, *((-1.0, 1.0) if hard else (-np.inf, np.inf)))]
    intercept = [(program.y[:, None], 0.0, -np.inf, np.inf)] if problem.free else []
    slack = [] if hard else [(sp.eye_array(n), program.costs, 0.0, np.inf)]
    last = [(np.full((n, 1), -1.0), -1.0, -np.inf, np.inf)] if hard else []  # g
    if not (hard or split):
        last = [(sp.csc_array((n, 1)), 1.0, 0.0, np.inf)]  # t
    blocks = [*weights, *intercept, *slack, *last]
    cost = np.concatenate([np.broadcast_to(block[1], block[0].shape[1]) for block in blocks])
    bounds = np.concatenate([np.tile(block[2:], (block[0].shape[1], 1)) for block in blocks])
    # G x <= h: the rows a_i.w + y_i b - g >= 0, or a_i.w + y_i b + xi_i >= 1, with the sign changed
    G: Any = sp.csc_array(sp.hstack([sp.csc_array(block[0]) for block in blocks], format="csc"))
    G.data *= -1.0
    if not np.isfinite(G.data).all():  # entries over `margin_unit` overflow: HiGHS refuses them
        return None
    h = np.full(n, 0.0 if hard else -1.0)
    if hard and split:  # |w|_1 <= 1; at p = 1 the bounds of the variables are |w_j| <= 1
        G, h = sp.vstack([G, (np.arange(cost.size) < 2 * d)[None, :].astype(float)]), np.append(h, 1.0)
    elif not (hard or split):  # w_j - t <= 0 and -w_j - t <= 0
        size, t = sp.eye_array(d, cost.size), np.zeros((1, cost.size))
        t[0, -1] = 1.0
        t = sp.csc_array(np.ones((d, 1))) @ sp.csr_array(t)
        G, h = sp.vstack([G, size - t, -size - t]), np.append(h, np.zeros(2 * d))
    for method, tolerance in ATTEMPTS:
        limit = seconds_left(interrupted)
        if interrupted() or limit < SHORTEST_CALL:
            return None
        options = {
            "primal_feasibility_tolerance": tolerance,
            "dual_feasibility_tolerance": tolerance,
            "maxiter": ITERATIONS_PER_SIZE * sum(G.shape),
            "time_limit": limit,
        }
        result = linprog(cost, G, h, bounds=bounds, method=method, options=options)
        if result.status == 0:  # optimal
            break
    else:
        return None
    end = d * len(weights)  # the number of variables of w
    w = result.x[:d] - result.x[d:end] if split else result.x[:d]
    # rows are divided by the unit, and w is not: b in units of the program is a multiple
    b = margin_unit * float(result.x[end]) if problem.free else 0.0
    # HiGHS returns the derivatives of the cost by h, which are not positive
    alpha = np.maximum(-result.ineqlin.marginals[:n], 0.0)
    return Point(w, b, alpha if hard else np.minimum(alpha, program.costs))


def compressed_columns(A: Any) -> sp.csc_array:
    """Return a dense or CSR matrix as CSC: SciPy builds coordinates of a dense one first, ten times as slowly."""
    if sp.issparse(A):
        return sp.csc_array(A)
    (n, d), kind = A.shape, sp.get_index_dtype(maxval=A.size)
    rows, starts = np.tile(np.arange(n, dtype=kind), d), np.arange(d + 1, dtype=kind) * n
    columns = sp.csc_array((A.T.flatten(), rows, starts), shape=A.shape)
    columns.eliminate_zeros()
    return columns
