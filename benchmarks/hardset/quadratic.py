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


class _Layout:
    """Positions in x = (w, auxiliary variables, t, b, losses); t is |w|, and is left out at p = 2.

    There is an auxiliary variable for each |w_j| at p = inf, and for each term of |w|^q at p = 1.5 and 3.
    """

    def __init__(self, problem: HardProblem, n: int, d: int) -> None:
        self.n, self.d = n, d
        self.parts = slice(d, d if problem.p in (1, 2) else 2 * d)
        self.t = self.parts.stop
        self.b = self.t + (problem.p != 2)
        self.free = int(problem.intercept)
        self.losses = slice(self.b + self.free, self.b + self.free + (0 if problem.hard else n))
        self.size = self.losses.stop


def _primal(problem: HardProblem, X: np.ndarray, signs: np.ndarray) -> Program:
    """State the problem in w, b and the losses."""
    n, d = X.shape
    at = _Layout(problem, n, d)
    P, q = _costs(problem, at)
    rows = np.zeros((n, at.size))
    rows[:, :d] = -signs[:, None] * X
    rows[:, at.b : at.b + at.free] = -signs[:, None]
    rows[:, at.losses] = -np.eye(n, at.size - at.losses.start)
    sizes = _sizes(problem, at)
    low = np.full(at.size, -np.inf)
    low[at.losses] = 0.0
    total = np.zeros((int(problem.p not in (1, 2)), at.size))  # the sum of the auxiliary variables is t
    total[:, at.parts], total[:, at.t : at.t + 1] = 1.0, -1.0
    cones = [(d + j, at.t, j) for j in range(d)] if problem.p in (1.5, 3) else []
    return Program(
        sp.csc_matrix(sp.diags(P)), q, sp.csc_matrix(np.vstack([rows, sizes])),
        np.append(-np.ones(n), np.zeros(len(sizes))), sp.csc_matrix(total), np.zeros(len(total)),
        low, np.full(at.size, np.inf), cones, lambda x, y: (x[:d], float(x[at.b]) if at.free else 0.0),
    )  # fmt: skip


def _costs(problem: HardProblem, at: _Layout) -> tuple[np.ndarray, np.ndarray]:
    """Return the diagonal of P, and q."""
    P, q = np.zeros(at.size), np.zeros(at.size)
    if problem.p == 2:
        P[: at.d] = 1.0
    else:
        (P if problem.power == 2 else q)[at.t] = 1.0
    if problem.loss == "squared_hinge":
        P[at.losses] = 2.0 * problem.C
    elif problem.loss == "hinge":
        q[at.losses] = problem.C
    return P, q


def _sizes(problem: HardProblem, at: _Layout) -> np.ndarray:
    """Return the rows of |w_j| <= t at p = 1, or <= its auxiliary variable at p = inf."""
    if problem.p not in (1, np.inf):
        return np.zeros((0, at.size))
    rows = np.zeros((2 * at.d, at.size))
    for j in range(at.d):
        bound = at.t if problem.p == 1 else at.d + j
        rows[2 * j : 2 * j + 2, j] = 1.0, -1.0
        rows[2 * j : 2 * j + 2, bound] = -1.0
    return rows
