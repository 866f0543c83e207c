"""Problems as quadratic programs, for solvers that do not know support vector machines.

    min 1/2 x'Px + q'x   subject to   G x <= h,   A x = b,   x >= low on the variables with a bound

Linear problems are stated in w, b and the losses, with kernels in the dual variables. All entries are float64 numbers,
as a user would pass them.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.metrics.pairwise import polynomial_kernel, rbf_kernel

Point = tuple[np.ndarray, float]


def optional(name: str) -> Any:
    """Return a module; None if it is not installed."""
    with suppress(ImportError):
        return importlib.import_module(name)
    return None


clarabel = optional("clarabel")


@dataclass
class Program:
    """A quadratic program.

    Attributes
    ----------
    P : csc_matrix of shape (n, n)
    q : ndarray of shape (n,)
    G : csc_matrix of shape (m, n)
    h : ndarray of shape (m,)
    A : csc_matrix of shape (k, n)
    b : ndarray of shape (k,)
    low, high : ndarray of shape (n,)
        Bounds of the variables, some of them infinite.
    cones : list of (int, int, int)
        Variables (r, t, w) in the power cone r^(1/q) t^(1 - 1/q) >= |w|, for p = 1.5 and 3.
    read : callable
        Returns (w, b) from x and the multipliers of A x = b (of the Lagrangian f + y'(A x - b)).
    """

    P: sp.csc_matrix
    q: np.ndarray
    G: sp.csc_matrix
    h: np.ndarray
    A: sp.csc_matrix
    b: np.ndarray
    low: np.ndarray
    high: np.ndarray
    cones: list[tuple[int, int, int]]
    read: Callable[[np.ndarray, np.ndarray], Point]


def stated(problem: Any, X: Any, signs: np.ndarray) -> Program:
    """Return a binary problem as a quadratic program."""
    return _dual(problem, X, signs) if problem.kernel else _primal(problem, X, signs)


def kernel_matrix(problem: Any, X: np.ndarray) -> np.ndarray:
    """Return the kernel matrix in float64."""
    kernel = problem.kernel
    if kernel.name == "rbf":
        return rbf_kernel(X, gamma=kernel.gamma)
    return polynomial_kernel(X, degree=kernel.degree, gamma=kernel.gamma, coef0=kernel.coef0)


def _dual(problem: Any, X: np.ndarray, signs: np.ndarray) -> Program:
    n = len(signs)
    P = np.outer(signs, signs) * kernel_matrix(problem, X)
    if problem.loss == "squared_hinge":
        P += np.eye(n) / (2.0 * problem.C)
    high = np.full(n, problem.C if problem.loss == "hinge" else np.inf)
    return Program(
        sp.csc_matrix(P), -np.ones(n), sp.csc_matrix((0, n)), np.zeros(0),
        sp.csc_matrix(signs[None, :].astype(float)), np.zeros(1), np.zeros(n), high, [],
        lambda x, y: (signs * np.clip(x, 0.0, high), float(y[0])),
    )  # fmt: skip


def _primal(problem: Any, X: Any, signs: np.ndarray) -> Program:
    """State the problem in w, bounds r of its entries (p = inf) or terms of |w|^q (1.5, 3), t = |w|, b, and losses."""
    n, d = X.shape
    sizes = {
        "w": d, "r": 0 if problem.p in (1, 2) else d, "t": int(problem.p != 2), "b": int(problem.intercept),
        "xi": 0 if problem.hard else n,
    }  # fmt: skip
    ends = np.cumsum([0, *sizes.values()])
    at = {name: slice(*pair) for name, pair in zip(sizes, pairwise(ends), strict=True)}
    eye = sp.identity(ends[-1], format="csr")
    only = {name: eye[places] for name, places in at.items()}  # the matrix that selects these variables
    margins = sp.diags(signs.astype(float)) @ sp.csr_matrix(X) @ only["w"]
    if problem.intercept:
        margins = margins + sp.csr_matrix(signs[:, None].astype(float)) @ only["b"]
    rows = [-(margins if problem.hard else margins + only["xi"])]
    if problem.p in (1, np.inf):
        bound = sp.csr_matrix(np.ones((d, 1))) @ only["t"] if problem.p == 1 else only["r"]
        rows += [only["w"] - bound, -only["w"] - bound]
    G = sp.vstack(rows, format="csc")
    total = sp.csr_matrix(np.ones((min(sizes["r"], 1), sizes["r"]))) @ only["r"]  # the sum of r is t
    P, q, low = np.zeros(ends[-1]), np.zeros(ends[-1]), np.full(ends[-1], -np.inf)
    (P if problem.power == 2 else q)[at["w" if problem.p == 2 else "t"]] = 1.0
    (q if problem.loss == "hinge" else P)[at["xi"]] = problem.C * (1.0 if problem.loss == "hinge" else 2.0)
    low[at["xi"]] = 0.0
    t, b = ends[2], ends[3]
    return Program(
        sp.csc_matrix(sp.diags(P)), q, G, np.append(-np.ones(n), np.zeros(G.shape[0] - n)),
        sp.csc_matrix(total - only["t"][: total.shape[0]]), np.zeros(total.shape[0]), low, np.full(ends[-1], np.inf),
        [(d + j, int(t), j) for j in range(d)] if problem.p in (1.5, 3) else [],
        lambda x, y: (x[:d], float(x[b]) if problem.intercept else 0.0),
    )  # fmt: skip


def _bounds(low: np.ndarray, high: np.ndarray) -> tuple[sp.csc_matrix, np.ndarray]:
    """Return finite bounds as rows of G and h."""
    eye = sp.eye(low.size, format="csc")
    lower, upper = np.isfinite(low), np.isfinite(high)
    return sp.vstack([-eye[lower], eye[upper]], format="csc"), np.append(-low[lower], high[upper])


def by_clarabel(program: Program, problem: Any, tol: float) -> tuple[np.ndarray, np.ndarray]:
    """Solve with Clarabel; return x and the multipliers of A x = b."""
    limits, ends = _bounds(program.low, program.high)
    blocks, right = [program.A, program.G, limits], [program.b, program.h, ends]
    cones = [clarabel.ZeroConeT(program.b.size), clarabel.NonnegativeConeT(program.h.size + ends.size)]
    for chosen in program.cones:
        blocks.append(sp.csc_matrix((-np.ones(3), (range(3), chosen)), shape=(3, program.q.size)))
        right.append(np.zeros(3))
        cones.append(clarabel.PowerConeT({1.5: 1.0 / 3.0, 3.0: 2.0 / 3.0}[problem.p]))
    settings = clarabel.DefaultSettings()
    settings.verbose, settings.max_iter = False, 10_000
    # the absolute tolerance would end it at once where the optimum is small
    settings.tol_gap_abs, settings.tol_gap_rel, settings.tol_feas = 0.0, tol, tol
    matrix = sp.vstack(blocks, format="csc")
    found = clarabel.DefaultSolver(
        sp.triu(program.P, format="csc"), program.q, matrix, np.concatenate(right), cones, settings
    ).solve()
    return np.array(found.x), np.array(found.z[: program.b.size])
