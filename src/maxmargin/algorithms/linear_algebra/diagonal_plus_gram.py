"""Linear systems whose matrix is a diagonal plus a Gram matrix of rows, dense or sparse."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.linalg
import scipy.sparse as sp

from ...numerics.sparse_columns import canonical, with_constant_column
from ...problem.problem import Problem
from .factors import TINY, factor, lower_factor, solved_lower
from .gram import gram, sparse_gram

# MIN_KEPT + 2 n columns are not eliminated: those of the smallest diagonal entries relative to the sums of squares of
# their columns, whose elimination would cancel digits. With a larger number the factor of that size costs more than the
# n x n one. Chosen on the data sets of docs/measurements/regimes.md.
MIN_KEPT = 50

_linalg: Any = scipy.linalg  # typed as Any: its annotations are unions of all cases


def signed_rows(problem: Problem, X: Any, y: np.ndarray) -> Any:
    """Return the rows y_i x_i, with the constant coordinate where the problem has one; dense or CSR as X is."""
    X = X.astype(float) if sp.issparse(X) else np.asarray(X, dtype=float)
    return times_rows(with_constant_column(X, problem.rho), y)


def times_rows(A: Any, factors: np.ndarray) -> Any:
    """Return diag(factors) A, dense or CSR as A is."""
    if isinstance(A, np.ndarray):
        return A * factors[:, None]
    A = sp.csr_array(A)
    return sp.csr_array((A.data * np.repeat(factors, np.diff(A.indptr)), A.indices, A.indptr), shape=A.shape)


def times_columns(A: Any, factors: np.ndarray) -> Any:
    """Return A diag(factors), dense or CSR as A is."""
    if isinstance(A, np.ndarray):
        return A * factors
    A = sp.csr_array(A)
    return sp.csr_array((A.data * factors[A.indices], A.indices, A.indptr), shape=A.shape)


def column_squares(B: Any, weight: np.ndarray) -> np.ndarray:
    """Return the diagonal of B' diag(weight) B."""
    if isinstance(B, np.ndarray):
        return np.einsum("ij,i,ij->j", B, weight, B)
    return B.multiply(B).T @ weight


def _dense(A: Any) -> np.ndarray:
    """Return a dense or CSR matrix as an ndarray."""
    return A if isinstance(A, np.ndarray) else A.toarray()


def solver(
    B: Any, weight: np.ndarray, diagonal: np.ndarray, interrupted: Callable[[], bool]
) -> Callable[[np.ndarray], np.ndarray]:
    """Return the function from p to the solution x of (diag(diagonal) + B' diag(weight) B) x = p.

    Of more than MIN_KEPT + 2 n columns, MIN_KEPT + 2 n are kept; the others, those of the largest diagonal relative to
    the diagonal of B' diag(weight) B, are eliminated first, by Woodbury's identity. The right-hand side p has shape
    (d,) or (d, k).

    Parameters
    ----------
    B : ndarray or CSR matrix of shape (n, d)
    weight : ndarray of shape (n,), non-negative
    diagonal : ndarray of shape (d,), positive
    interrupted : callable
        Returns whether to stop; called within the products and the factors of large matrices.

    Raises
    ------
    LinAlgError
        If there is no factor.
    OutOfTime
        If the stop check is true.
    """
    n, d = B.shape
    H = times_rows(B, np.sqrt(weight))  # H'H = B' diag(weight) B
    count = MIN_KEPT + 2 * n
    if d <= count:
        return _by_columns(H, diagonal, interrupted)
    kept = np.full(d, False)
    ratio = diagonal / np.maximum(column_squares(H, np.ones(n)), TINY)
    kept[np.argpartition(ratio, count)[:count]] = True
    root = np.sqrt(diagonal[~kept])
    # With G the eliminated columns of H and D their diagonal, `rest` is G D^-1/2. Woodbury's identity needs the factor
    # L L' = I + G D^-1 G', L in `lower`. The Schur complement of the kept columns K is their diagonal plus J'J, with
    # J = L^-1 K
    rest = times_columns(H[:, ~kept], 1.0 / root)
    M = _gram(rest.T, interrupted)
    M[np.diag_indices(n)] += 1.0
    lower = lower_factor(M, interrupted)

    def inner(x: np.ndarray) -> np.ndarray:  # L^-1 x
        return _linalg.solve_triangular(lower, x, lower=True, check_finite=False)

    J = solved_lower(lower, _dense(H[:, kept]), interrupted)
    solve_kept = _by_columns(J, diagonal[kept], interrupted)

    def solve(p: np.ndarray) -> np.ndarray:
        # with the index 1 for eliminated and 2 for kept columns:
        # x_2 = (diag_2 + J'J)^-1 (p_2 - J'L^-1 G D^-1 p_1),
        # x_1 = D^-1/2 (D^-1/2 p_1 - rest'L'^-1 (L^-1 G D^-1 p_1 + J x_2))
        scaled = (p[~kept].T / root).T
        image = inner(rest @ scaled)
        x = np.empty_like(p)
        x[kept] = solve_kept(p[kept] - J.T @ image)
        image += J @ x[kept]
        outer = _linalg.solve_triangular(lower, image, lower=True, trans=1, check_finite=False)
        x[~kept] = ((scaled - rest.T @ outer).T / root).T
        return x

    return solve


def row_solver(
    A: Any, weight: np.ndarray, diagonal: np.ndarray, interrupted: Callable[[], bool]
) -> Callable[[np.ndarray], tuple[np.ndarray, np.ndarray]]:
    """Return the function from p to the solution x of (A diag(weight) A' + diag(diagonal)) x = p, and diag(weight) A'x.

    With more rows than columns, Woodbury's identity is used, whose matrix has d columns. Digits of x cancel where the
    diagonal is small; iterative refinement recovers them. The second result is computed without A'x, whose rounding
    large weights would multiply. The right-hand side p has shape (n,) or (n, k).

    Parameters
    ----------
    A : ndarray or CSR matrix of shape (n, d)
    weight : ndarray of shape (d,), non-negative
    diagonal : ndarray of shape (n,), positive
    interrupted : callable
        As of `solver`, whose errors are raised.
    """
    n, d = A.shape
    if n <= d:
        solve_rows = solver(A.T, weight, diagonal, interrupted)

        def solve(p: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
            x = solve_rows(p)
            return x, (weight * (A.T @ x).T).T

        return solve
    solve_columns = solver(A, 1.0 / diagonal, 1.0 / np.maximum(weight, TINY), interrupted)

    def solve_by_columns(p: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        scaled = (p.T / diagonal).T
        image = solve_columns(A.T @ scaled)
        return scaled - ((A @ image).T / diagonal).T, image

    return solve_by_columns


def woodbury_solver(
    B: Any, weight: np.ndarray, diagonal: np.ndarray, interrupted: Callable[[], bool]
) -> Callable[[np.ndarray], np.ndarray]:
    """Return the same function as `solver` by Woodbury's identity, whose matrix has n columns.

    Digits cancel where the diagonal is small relative to the squares of the columns: for steps that a line search
    follows, not for the last digits of a solution.
    """
    if not weight.size:
        return lambda p: (p.T / diagonal).T
    scaled = times_columns(B, 1.0 / diagonal)
    M = _gram(times_columns(B, 1.0 / np.sqrt(diagonal)).T, interrupted)
    M[np.diag_indices(weight.size)] += 1.0 / weight
    solve_rows = factor(M, interrupted)
    if solve_rows is None:
        raise np.linalg.LinAlgError

    def solve(p: np.ndarray) -> np.ndarray:
        q = (p.T / diagonal).T
        return q - scaled.T @ solve_rows(B @ q)

    return solve


def _by_columns(
    H: Any, diagonal: np.ndarray, interrupted: Callable[[], bool]
) -> Callable[[np.ndarray], np.ndarray]:
    """Return the function from p to the solution of (diag(diagonal) + H'H) x = p, by a Cholesky factor of size d.

    Raises
    ------
    LinAlgError
        If there is no factor, also with a ridge, or `factor` was stopped.
    OutOfTime
        If the stop check is true within the product.
    """
    M = _gram(H, interrupted)
    M[np.diag_indices(diagonal.size)] += diagonal
    solve = factor(M, interrupted)
    if solve is None:
        raise np.linalg.LinAlgError
    return solve


def _gram(H: Any, interrupted: Callable[[], bool]) -> np.ndarray:
    """Return H'H of a dense or sparse H, as a dense matrix; raise OutOfTime if the stop check is true."""
    if isinstance(H, np.ndarray):
        return gram(H, interrupted)
    H = canonical(sp.csr_array(H))
    return sparse_gram(H, np.ones(H.shape[0]), np.arange(H.shape[0]), interrupted)[:-1, :-1]
