"""Both bounds of a kernel problem, for w = sum c_i phi(x_i), by the formulas of `row_pass`.

Scores are products of the Gram matrix, f_j = sum_i c_i k(x_i, x_j), and |w|^2 = sum c_j f_j. The error of an entry is
at most `Kernel.error`, that of a sum its rounding, that of a product the smallest number where it underflows: bounds
hold for the kernel in exact arithmetic. For the linear kernel w itself is computed, as sums with large coefficients
cancel. Kernel values, whose errors do not cancel, are not used then.

`check_kernel` checks that a kernel matrix is a Gram matrix: symmetric and positive semidefinite. A vector v with
v'Kv < 0 proves that K is none: no inner products have its values, so that there are no lengths, no margins and no
duality. As entries are rounded, a matrix is accepted as long as its negative eigenvalues may be the effect of rounding.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from copy import copy
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from scipy.linalg import LinAlgError, cholesky, eigvalsh

from ..data.door import LARGEST_COST
from ..kernels.functions import BLOCK, Gaussian, Kernel, Linear, Polynomial, Precomputed
from ..numerics.columns import without_empty_columns
from ..numerics.sums import EPS, TINY, Plain, norm
from ..problem.problem import Problem
from .row_pass import (
    Bounds,
    Length,
    Side,
    balancing_change,
    combine_sides,
    dual_side,
    imbalance,
    point_sums,
    primal_side,
    proportions,
)


class KernelSample:
    """Rows and their kernel in float64, with an error bound of the kernel values.

    Parameters
    ----------
    kernel : Kernel
        Its values, computed in float64, have an error of at most `kernel.error`.
    X : ndarray or CSR matrix of shape (n, d)
    rounded : float, default=0
        Relative error bound of a coefficient, where equal rows are merged: the coefficient of their distinct row is
        divided among them afterwards, and the quotients are rounded.

    Attributes
    ----------
    diagonal : ndarray of shape (n,)
        k(x_i, x_i).
    max_diagonal : float
        The largest absolute value of the diagonal.
    error : float
        Error bound of a kernel value.
    features : ndarray or CSR matrix of shape (n, number of columns with entries), or None
        The rows without empty columns, where the kernel is the inner product; None for other kernels.
    product : callable or None
        Returns, from coefficients c of shape (m, n), the products c K with kernel values that are kept in memory, of
        shape (m, n); None to compute kernel values.

    Raises
    ------
    ValueError
        If kernel values are beyond the domain (`data.door`), or lost in rounding; the message names a remedy.
    """

    product: Callable[[np.ndarray], np.ndarray] | None = None

    def __init__(self, kernel: Kernel, X: Any, rounded: float = 0.0) -> None:
        rows = X.astype(np.float64, copy=False)
        self.kernel, self.X, self.rounded = kernel, kernel.prepared(rows), rounded
        # Columns without entries add nothing to an inner product, and sums over them would take their memory.
        self.features: Any = without_empty_columns(rows)[0] if isinstance(kernel, Linear) else None
        with np.errstate(over="ignore", invalid="ignore"):
            self.diagonal = kernel.diagonal(self.X)
        self.max_diagonal = most = float(np.abs(self.diagonal).max(initial=0.0))
        if not (1.0 / LARGEST_COST <= most <= LARGEST_COST or most == 0.0):
            raise ValueError(
                f"Kernel values reach {most:.3g}, and fits take {1 / LARGEST_COST:g} to {LARGEST_COST:g}: scale the "
                "features, or lower gamma, degree or coef0 (with a precomputed kernel, divide the matrix)."
            )
        self.error = kernel.error(self.X)
        # bounds from kernel values with larger errors would prove nothing of use
        if self.error > 0.1 * most:
            raise ValueError(
                f"Kernel values are lost in rounding: they are {most:.3g} at most, and may be off by {self.error:.3g}. "
                "Subtract its mean from each feature, and scale the features (StandardScaler does both)."
            )

    def combinations(self, c: np.ndarray) -> list[Combination]:
        """Return sum_i c_i phi(x_i), with scores and errors, of each of m vectors of coefficients c, shape (m, n).

        The error of a score is at most |c|_1 (error + rounding of the sum, relative to the largest kernel value). That
        of |w|^2 = c.f is at most |c|_1 times as much, plus the rounding of the inner product.
        """
        if self.features is not None:
            return [self._from_rows(one) for one in c]
        found = []
        products = self.kernel.product(self.X, c) if self.product is None else self.product(c)
        for one, scores in zip(c, products, strict=True):
            total, terms = float(np.abs(one).sum()), int(np.count_nonzero(one)) + 4
            square = float(one @ scores)
            # the additions in sequence: within a block, and over all blocks; of products in memory, of all rows
            added = terms if self.product is not None else min(terms, BLOCK + one.size // BLOCK + 5)
            moved = total * self.rounded * self.max_diagonal  # by the rounding of the coefficients
            score_error = total * (self.error + (added + 2.0) * EPS * self.max_diagonal) + moved + TINY
            square_error = (
                total * (score_error + moved) + terms * EPS * float(np.abs(one * scores).sum()) + TINY
            )
            found.append(Combination(one, scores, max(square, 0.0), score_error, square_error))
        return found

    def part(self, places: np.ndarray) -> KernelSample:
        """Return the sample of the rows `places`; `max_diagonal` and `error` of all rows are bounds for them too."""
        if places.size == self.X.shape[0]:
            return self
        part = copy(self)
        part.X, part.diagonal, part.product = self.kernel.part(self.X, places), self.diagonal[places], None
        part.features = None if self.features is None else self.features[places]
        return part

    def _from_rows(self, c: np.ndarray) -> Combination:
        """Return the combination of the coefficients c, of shape (n,), for the linear kernel, from w = sum c_i x_i.

        `w_error` bounds the error of w in the 2-norm. The error of a score is at most |x_j| w_error plus the rounding
        of the score, and that of |w|^2 at most w_error (2 |w| + w_error) plus the rounding of the sum of squares. The
        factors 1.01 cover the rounding of these bounds.
        """
        X, d, used = self.features, self.features.shape[1], np.flatnonzero(c)
        w = Plain.combine(X[used], c[used])
        scores = Plain.scores(X, w)
        # the square of a length below 1e-150 underflows
        lengths = 1.01 * np.sqrt(self.diagonal) + 1e-150
        # sum |c_i| |x_i| bounds the sum of the absolute values of the terms of w, the coefficients' rounding included
        size, length = float(np.abs(c) @ lengths), 1.01 * norm(w)
        w_error = Plain.error(size, used.size) + self.rounded * size
        # |x_j| |w| bounds the sum of the absolute values of the terms of a score (Cauchy and Schwarz)
        score_error = Plain.error(lengths * length, d) + 1.01 * lengths * w_error
        square = norm(w) ** 2
        square_error = w_error * (2.0 * length + w_error) + Plain.error(square, d)
        return Combination(c, scores, square, score_error, 1.01 * square_error)


class Combination(NamedTuple):
    """w = sum c_i phi(x_i): its scores and squared length, and bounds of their absolute errors.

    Attributes
    ----------
    c : ndarray of shape (n,)
        Coefficients.
    scores : ndarray of shape (n,)
        f_j = sum_i c_i k(x_i, x_j).
    square : float
        |w|^2.
    score_error : float, or ndarray of shape (n,)
        Error bound of all scores, or of each.
    square_error : float
        Error bound of the square.
    """

    c: np.ndarray
    scores: np.ndarray
    square: float
    score_error: Any
    square_error: float


def length_of_square(square: float, square_error: float) -> Length:
    """Return the length for a computed square whose absolute error is at most `square_error`.

    The constant coordinate, its square and the sum add a relative error of 5 u to the square, hence 2.5 u to the
    length, and the root adds u: 4 eps = 8 u is more.
    """
    high = (square + square_error) ** 0.5 * (1.0 + 4.0 * EPS)
    low = max(square - square_error, 0.0) ** 0.5 * (1.0 - 4.0 * EPS)
    return Length(square**0.5, low, high)


class KernelPoint(NamedTuple):
    """Dual variables, and a primal point w = sum coefficients_i phi(x_i) with its intercept."""

    alpha: np.ndarray
    coefficients: np.ndarray
    intercept: float


@dataclass(frozen=True, eq=False)
class KernelProblem:
    """A problem on kernel rows.

    Parameters
    ----------
    problem : Problem
        p = 2.
    sample : KernelSample
        n rows.
    y : ndarray of shape (n,), entries -1.0 and 1.0
    weights : ndarray of shape (n,)
        Sample weights; rows of weight 0 take no part.
    """

    problem: Problem
    sample: KernelSample
    y: np.ndarray
    weights: np.ndarray

    def feasible(self, alpha: np.ndarray) -> np.ndarray:
        """Return dual variables near alpha, any numbers, that are capped, balanced, and of sum one for a hard margin.

        Zeros are returned where one of the classes has no dual variable.
        """
        problem = self.problem
        found = problem.capped(alpha, self.weights)
        found = proportions(found) if problem.hard else found
        balanced = problem.balanced(self.y, found) if problem.free else found
        return np.zeros_like(found) if balanced is None else balanced

    def attained_margin(self, c: np.ndarray, b: float) -> float:
        """Return the margin of sum c_i k(x_i, .) + b in a hard margin problem, rounded downwards.

        `c` has shape (n,); the margin is in the length that the kernel defines.
        """
        return self.primal_side(self.sample.combinations(c[None])[0], b)[0].bound

    def dual_bound(self, alpha: np.ndarray) -> Side:
        """Return the bound of feasible dual variables, of shape (n,)."""
        return self.dual_side(alpha, self.sample.combinations((alpha * self.y)[None])[0])

    def dual_side(self, alpha: np.ndarray, dual: Combination) -> Side:
        """Return the bound of feasible dual variables, of shape (n,), of which `dual` is sum alpha_i y_i phi(x_i).

        The constant coordinate rho sum c is a sum of k terms c_i, each at most alpha_i in absolute value: its error is
        k u sum alpha, and that of its square 2 k u (sum alpha)^2: 4 k eps is more.
        """
        problem, total, terms = self.problem, float(alpha.sum()), int(np.count_nonzero(alpha))
        uneven = imbalance(alpha, self.y) if problem.free else 0.0
        constant = problem.rho * float(dual.c.sum())
        square_error = dual.square_error + 4.0 * (terms + 4) * EPS * (problem.rho * total) ** 2
        length = length_of_square(dual.square + constant * constant, square_error)
        change = balancing_change(
            uneven, total, total * (self.sample.max_diagonal + self.sample.error) ** 0.5
        )
        length = length._replace(high=(length.high + change) * (1.0 + EPS))
        gains = float(np.sum(problem.gains(alpha, self.weights)))
        size = 2.0 * total - gains  # sum alpha_i + sum alpha_i^2 / (4 C s_i)
        return dual_side(problem, gains, size, Plain.error(size, terms) + uneven, length)

    def primal_side(self, w: Combination, b: float, scaled: bool = False) -> tuple[Side, np.ndarray, float]:
        """Return the bound of the primal point (w, b), its coefficients and its intercept.

        With `scaled`, where all margins are between 0 and 1, the point is scaled up until all are 1 if that is better.
        """
        problem, margins = self.problem, self.y * (w.scores + b)
        # where f_j = 0 the sum f_j + b is not rounded
        errors = w.score_error + np.where(w.scores == 0.0, 0.0, 4.0 * EPS * np.abs(margins))
        length = length_of_square(problem.norm2(w.square, b), w.square_error)
        found = primal_side(problem, point_sums(problem, margins, errors, self.weights), length), w.c, b
        # three error bounds are subtracted: one for these margins, two for the recomputed margins of the multiple
        least = float((margins - 3.0 * errors).min(where=self.weights > 0.0, initial=np.inf))
        if not (scaled and 0.0 < least < 1.0):
            return found
        t = (1.0 + 16.0 * EPS) / least
        other = self.primal_side(self.sample.combinations((t * w.c)[None])[0], t * b)
        return other if other[0].bound < found[0].bound else found


def certified(
    tasks: Sequence[KernelProblem], points: Sequence[KernelPoint], as_given: bool = False
) -> list[tuple[KernelPoint, Bounds]]:
    """Return points of problems on the same rows, whose kernel is computed once, and the bounds that these prove.

    Unless the points are to be taken as they are given, dual variables are made feasible, and the primal point of a
    soft problem is scaled up where losses that are rounding disappear (`KernelProblem.primal_side`).
    """
    alphas = [
        one.alpha if as_given else task.feasible(one.alpha) for task, one in zip(tasks, points, strict=True)
    ]
    duals = [alpha * task.y for task, alpha in zip(tasks, alphas, strict=True)]
    rows = tasks[0].sample.combinations(np.array([*duals, *(point.coefficients for point in points)]))
    found = []
    for k, (task, alpha, (_, _, b)) in enumerate(zip(tasks, alphas, points, strict=True)):
        problem, w, proof = task.problem, rows[len(tasks) + k], task.dual_side(alpha, rows[k])
        primal, c, b = task.primal_side(w, b, scaled=not (as_given or problem.hard))
        # in a soft problem alpha = 0 proves the bound 0, which is better than a bound that rounding has made negative
        if not (as_given or problem.hard or proof.bound >= 0.0):
            alpha, proof = np.zeros_like(alpha), Side(0.0, 0.0)
        found.append((KernelPoint(alpha, c, b), combine_sides(problem, proof, primal)))
    return found


MAX_ROWS = 2000  # on which eigenvalues are computed, in about a second, whose time grows with the cube


def check_kernel(kernel: Kernel, X: Any) -> None:
    """Raise ValueError where a kernel is not an inner product on the given rows.

    Kernels that are inner products by their formula are accepted. The matrix of other kernels is computed on at most
    2000 evenly spaced rows: if it is indefinite on these rows, it is indefinite on all.

    Parameters
    ----------
    kernel : Kernel
    X : ndarray or CSR matrix of shape (n, d)
        The matrix itself where the kernel is precomputed; one of float32 is accepted with the rounding of float32.

    Raises
    ------
    ValueError
        If the matrix overflows, is not symmetric, or not positive semidefinite up to rounding, with the entries or the
        eigenvalue that show it.
    """
    proved = isinstance(kernel, Linear) or (isinstance(kernel, Gaussian) and kernel.gamma >= 0.0)
    if isinstance(kernel, Polynomial):
        proved = min(kernel.gamma, kernel.coef0, kernel.degree) >= 0.0 and kernel.degree % 1 == 0
    if proved:
        return
    n, name, K = X.shape[0], "The kernel matrix", X
    places = np.arange(n)
    if not isinstance(kernel, Precomputed):
        name, places = f"The {kernel.name} kernel", _evenly(n)
        some = kernel.prepared(X if n <= MAX_ROWS else X[places])
        with np.errstate(over="ignore", invalid="ignore"):
            K = kernel.block(some, some)
        if not np.isfinite(K).all():
            raise ValueError(f"{name} overflows: scale the features, or lower gamma or degree.")
    elif X.shape != (n, n):
        raise ValueError(f"{name} must be square, of shape (n, n) for n training rows; got shape {X.shape}.")
    # Kernels of many features have errors of tens of units in the last place. The spectral norm of an (n, n) matrix of
    # errors is at most n times the largest of them (Weyl's inequality).
    eps = np.finfo(K.dtype if K.dtype.kind == "f" else float).eps
    error = 64.0 * float(eps) * max(float(K.max()), -float(K.min()))
    allowed = K.shape[0] * error
    least = _least_eigenvalue(K, allowed)
    if least < -allowed:
        raise ValueError(
            f"{name} is not positive semidefinite, its least eigenvalue is {'at most ' * (n > MAX_ROWS)}{least:.6g}: "
            "no inner product has these values, and no margin is defined. Use another kernel or other parameters, or "
            f"add {-1.01 * least:.3g} to the diagonal, as a soft margin does."
        )
    _check_entries(K, error, name, places)


def _evenly(n: int) -> np.ndarray:
    """Return the numbers of at most MAX_ROWS evenly spaced rows."""
    return np.linspace(0, n - 1, min(n, MAX_ROWS)).astype(np.intp)


def _check_entries(K: Any, error: float, name: str, places: np.ndarray) -> None:
    """Raise ValueError where K_ij and K_ji differ, or exceed sqrt(K_ii K_jj) (Cauchy, Schwarz), beyond rounding.

    `error` is that of an entry; messages call row i by the number `places` has for it.
    """
    lengths = np.sqrt(np.maximum(np.diag(K).astype(float) + error, 0.0))
    for first in range(0, len(K), 256):
        rows = slice(first, first + 256)
        for values, most, fault in (
            (
                np.abs(K[rows] - K[:, rows].T),
                len(K) * error,
                "symmetric: give (K + K.T) / 2 if this does not matter",
            ),
            (
                np.abs(K[rows]) - lengths[rows, None] * lengths,
                error,
                "positive semidefinite: use another kernel",
            ),
        ):
            i, j = np.unravel_index(int(values.argmax()), values.shape)
            if values[i, j] > most:
                i += first
                raise ValueError(
                    f"{name} is not {fault}. Its values of rows {places[i]} and {places[j]} (counted from 0) are "
                    f"{K[i, j]:.9g} and {K[j, i]:.9g}, those of each with itself {K[i, i]:.9g} and {K[j, j]:.9g}."
                )


def _least_eigenvalue(K: np.ndarray, allowed: float) -> float:
    """Return the least eigenvalue on at most MAX_ROWS evenly spaced rows, or -allowed if none is below it."""
    some = _evenly(K.shape[0])
    K = (K[np.ix_(some, some)] if some.size < K.shape[0] else K).astype(float)
    # a Cholesky factor of K + allowed I exists if all eigenvalues are above -allowed
    with suppress(LinAlgError):
        cholesky(K + allowed * np.eye(K.shape[0]), lower=True, overwrite_a=True, check_finite=False)
        return -allowed
    return float(eigvalsh(K, subset_by_index=(0, 0), check_finite=False)[0])
