"""Hard problems as quadratic programs, for solvers that do not know support vector machines.

    min 1/2 x'Px + q'x   subject to   G x <= h,   A x = b,   x >= low on the variables with a bound

Linear problems are stated in w, b and the losses, with kernels in the dual variables. All entries are float64 numbers,
as a user would pass them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp
from sklearn.metrics.pairwise import polynomial_kernel, rbf_kernel

from .problems import HardProblem

Point = tuple[np.ndarray, float]


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


def stated(problem: HardProblem, X: np.ndarray, signs: np.ndarray) -> Program:
    """Return a binary problem as a quadratic program."""
    return _dual(problem, X, signs) if problem.kernel else _primal(problem, X, signs)


def kernel_matrix(problem: HardProblem, X: np.ndarray) -> np.ndarray:
    """Return the kernel matrix in float64."""
    kernel = problem.kernel
    assert kernel is not None
    if kernel.name == "rbf":
        return rbf_kernel(X, gamma=kernel.gamma)
    return polynomial_kernel(X, degree=kernel.degree, gamma=kernel.gamma, coef0=kernel.coef0)


def _dual(problem: HardProblem, X: np.ndarray, signs: np.ndarray) -> Program:
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


def _primal(problem: HardProblem, X: np.ndarray, signs: np.ndarray) -> Program:
    """State the problem in x = (w, auxiliary variables, t, b, losses); t is |w| unless p = 2."""
    n, d = X.shape
    extra = {2.0: 0, 1.0: 0}.get(problem.p, d)  # |w_j| at p = inf, the parts of |w|^q at p = 1.5 and 3
    t = d + extra
    bias = t + (problem.p != 2)
    free = int(problem.intercept)
    losses = 0 if problem.hard else n
    size = bias + free + losses
    P, q = np.zeros(size), np.zeros(size)
    if problem.p == 2:
        P[:d] = 1.0
    elif problem.power == 2:
        P[t] = 1.0
    else:
        q[t] = 1.0
    if problem.loss == "squared_hinge":
        P[bias + free :] = 2.0 * problem.C
    elif losses:
        q[bias + free :] = problem.C
    rows = [-signs[:, None] * X, np.zeros((n, bias - d))]
    if free:
        rows.append(-signs[:, None].astype(float))
    blocks = [sp.hstack([sp.csc_matrix(np.hstack(rows)), -sp.eye(n, losses)])]
    if problem.p in (1, np.inf):
        bounded = np.arange(d, d + extra) if extra else np.full(d, t)
        for sign in (1.0, -1.0):
            at = np.arange(d)
            ones = np.ones(d)
            blocks.append(sp.csc_matrix((np.append(sign * ones, -ones), (np.append(at, at), np.append(at, bounded))),
                                        shape=(d, size)))  # fmt: skip
    G = sp.vstack(blocks, format="csc")
    h = np.append(-np.ones(n), np.zeros(G.shape[0] - n))
    low = np.full(size, -np.inf)
    low[bias + free :] = 0.0
    A = sp.csc_matrix((0, size))
    if extra:  # the sum of the auxiliary variables is t
        A = sp.csc_matrix(
            np.where(np.arange(size) == t, -1.0, (np.arange(size) >= d) & (np.arange(size) < t))[None]
        )
    cones = [(d + j, t, j) for j in range(d)] if problem.p in (1.5, 3) else []
    return Program(
        sp.csc_matrix(sp.diags(P)), q, G, h, A, np.zeros(A.shape[0]), low, np.full(size, np.inf), cones,
        lambda x, y: (x[:d], float(x[bias]) if free else 0.0),
    )  # fmt: skip
