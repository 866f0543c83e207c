"""The linear programs of p = inf (w in the 1-norm) and p = 1 (w in the inf-norm), by HiGHS.

With rows a_i = y_i x_i, the constant coordinate included, costs c_i = C s_i of the slacks xi_i, s_i the sample weights,
and q the dual exponent of p (1/p + 1/q = 1)::

    hard margin      max g                      s.t.  a_i.w + y_i b >= g,          |w|_q <= 1
    hinge, power 1   min |w|_q + sum c_i xi_i   s.t.  a_i.w + y_i b >= 1 - xi_i,   xi >= 0

At p = 1 |w|_inf is a variable t of the hinge: |w_j| <= t. The multipliers of the rows are the dual variables alpha:
for the hard margin a point of the simplex with g = |sum alpha_i a_i|_p, so that g = 0 proves that the classes cannot be
separated; for the hinge 0 <= alpha <= c with |sum alpha_i a_i|_p <= 1. With a free intercept sum alpha_i y_i = 0.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.optimize import linprog

from ..numerics.progress import seconds_left
from ..numerics.sums import row_norms
from ..problem.problem import Problem
from .iterate import Point
from .linear_systems import signed_rows


def program_points(
    problem: Problem, X: Any, y: np.ndarray, weights: np.ndarray, interrupted: Callable[[], bool]
) -> Iterator[Point]:
    """Yield the optimum of a linear program; nothing where HiGHS does not find it in the seconds left.

    Variables are w (at p = inf its positive and negative parts), b, the slacks, and g (hard margin) or t (hinge at
    p = 1), as far as the program has them. HiGHS has absolute tolerances: rows are divided by the power of two nearest
    to their largest entry. It is run in one call, after which Ctrl-C takes effect.
    """
    A = signed_rows(problem, X, y)
    unit = float(row_norms(A, np.inf).max(initial=0.0))
    unit = 2.0 ** np.round(np.log2(unit)) if unit > 0.0 else 1.0
    (n, d), hard, split = A.shape, problem.hard, bool(np.isinf(problem.p))
    A, costs = _by_columns(A / unit), problem.C * weights * unit
    # blocks of variables: (columns in the constraints of the rows, cost, lower bound, upper bound)
    if split:  # w = w+ - w-
        blocks: list[Any] = [(part, 0.0 if hard else 1.0, 0.0, np.inf) for part in (A, -A)]
    else:
        blocks = [(A, 0.0, *((-1.0, 1.0) if hard else (-np.inf, np.inf)))]
    end = d * len(blocks)  # the number of variables of w
    if problem.free:
        blocks.append((y[:, None], 0.0, -np.inf, np.inf))
    if hard:  # g
        blocks.append((np.full((n, 1), -1.0), -1.0, -np.inf, np.inf))
    else:
        blocks.append((sp.eye_array(n), costs, 0.0, np.inf))
    if not (hard or split):  # t
        blocks.append((sp.csc_array((n, 1)), 1.0, 0.0, np.inf))
    cost = np.concatenate([np.broadcast_to(block[1], block[0].shape[1]) for block in blocks])
    bounds = np.concatenate([np.tile(block[2:], (block[0].shape[1], 1)) for block in blocks])
    # G x <= h: the rows a_i.w + y_i b - g >= 0, or a_i.w + y_i b + xi_i >= 1, with the sign changed
    G: Any = -sp.csc_array(sp.hstack([sp.csc_array(block[0]) for block in blocks], format="csc"))
    h = np.full(n, 0.0 if hard else -1.0)
    if hard and split:  # |w|_1 <= 1; at p = 1 the bounds of the variables are |w_j| <= 1
        G, h = sp.vstack([G, (np.arange(cost.size) < end)[None, :].astype(float)]), np.append(h, 1.0)
    elif not (hard or split):  # w_j - t <= 0 and -w_j - t <= 0
        size, last = sp.eye_array(d, cost.size), sp.csr_array(np.arange(cost.size)[None] == cost.size - 1)
        t = sp.csr_array(np.ones((d, 1))) @ last
        G, h = sp.vstack([G, size - t, -size - t]), np.append(h, np.zeros(2 * d))
    options = {
        "primal_feasibility_tolerance": 1e-10,  # the least that HiGHS accepts
        "dual_feasibility_tolerance": 1e-10,
        "maxiter": 20 * sum(G.shape),  # one to three for each row and column are usual, but HiGHS can cycle
        "time_limit": seconds_left(interrupted),
    }
    if interrupted() or options["time_limit"] <= 0.0:
        return
    result = linprog(cost, G, h, bounds=bounds, method="highs-ds", options=options)
    if result.status != 0:
        return
    w = result.x[:d] - result.x[d:end] if split else result.x[:d]
    # HiGHS returns the derivatives of the cost by h, which are not positive
    alpha = np.maximum(-result.ineqlin.marginals[:n], 0.0)
    b = float(result.x[end]) if problem.free else 0.0
    yield Point(w, b, alpha if hard else np.minimum(alpha, costs)).restored(problem, unit)


def _by_columns(A: Any) -> sp.csc_array:
    """Return a dense or CSR matrix as CSC: SciPy builds coordinates of a dense one first, ten times as slowly."""
    if sp.issparse(A):
        return sp.csc_array(A)
    (n, d), kind = A.shape, sp.get_index_dtype(maxval=A.size)
    rows, starts = np.tile(np.arange(n, dtype=kind), d), np.arange(d + 1, dtype=kind) * n
    columns = sp.csc_array((A.T.flatten(), rows, starts), shape=A.shape)
    columns.eliminate_zeros()
    return columns
