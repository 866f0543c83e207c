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

from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from copy import copy
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from scipy.linalg import LinAlgError, cholesky, eigvalsh

from ..data.door import LARGEST_COST
from ..kernels.functions import Gaussian, Kernel, Linear, Polynomial, Precomputed
from ..kernels.gram import BLOCK, gram_product
from ..numerics.sparse_columns import without_empty_columns
from ..numerics.sums import EPS, TINY, Plain, norm
from ..problem.intercept import best_intercept, best_multiple_and_intercept
from ..problem.problem import Problem
from .row_pass import (
    Bounds,
    Length,
    Side,
    combine_sides,
    dual_side,
    imbalance,
    moved,
    point_sums,
    primal_side,
    proportions,
)

# Largest accepted error of a kernel value, as a fraction of the largest value. Bounds computed from kernel values with
# larger errors would prove nothing of use. A round value; not tuned.
MAX_RELATIVE_ERROR = 0.1
# Ratio of the certified gap to the gap asked for, up to which no further point is tried: a smaller value would cost
# time for no visible gain, a larger one would return larger gaps.
ACCEPTED_GAP_RATIO = 1.001


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
        if self.error > MAX_RELATIVE_ERROR * most:
            raise ValueError(
                f"Kernel values are lost in rounding: they are {most:.3g} at most, and may be off by {self.error:.3g}. "
                "Subtract its mean from each feature, and scale the features (StandardScaler does both)."
            )

    def scores(self, c: np.ndarray) -> np.ndarray:
        """Return sum_i c_i k(x_i, x_j) of every row j, shaped as c: (n,), or (m, n) in one pass over the kernel."""
        if self.features is not None:
            return np.reshape([self._from_rows(one).scores for one in np.atleast_2d(c)], c.shape)
        return gram_product(self.kernel, self.X, c) if self.product is None else self.product(c)

    def combinations(self, c: np.ndarray) -> list[Combination]:
        """Return sum_i c_i phi(x_i), with scores and errors, of each of m vectors of coefficients c, shape (m, n)."""
        if self.features is not None:
            return [self._from_rows(one) for one in c]
        return [self._from_scores(one, scores) for one, scores in zip(c, self.scores(c), strict=True)]

    def multiple(self, w: Combination, t: float, c: np.ndarray) -> Combination:
        """Return the combination of the coefficients `c`, which are t times those of `w` but for rounding.

        Error bounds of sums of kernel values are larger than that rounding: scores and square are scaled. Error bounds
        of sums of features are smaller: these sums are recomputed.
        """
        if self.features is not None:
            return w if np.array_equal(c, w.c) else self._from_rows(c)
        square, square_error = t * (t * w.square), t * (t * w.square_error)
        return Combination(c, t * w.scores, square, abs(t) * w.score_error, square_error)

    def part(self, places: np.ndarray) -> KernelSample:
        """Return the sample of the rows `places`; `max_diagonal` and `error` of all rows are bounds for them too."""
        if places.size == self.X.shape[0]:
            return self
        part = copy(self)
        part.X, part.diagonal, part.product = self.kernel.part(self.X, places), self.diagonal[places], None
        part.features = None if self.features is None else self.features[places]
        return part

    def _from_scores(self, c: np.ndarray, scores: np.ndarray) -> Combination:
        """Return the combination of coefficients c, of shape (n,), from its scores, which are sums of kernel values.

        The error of a score is at most |c|_1 (error + rounding of the sum, relative to the largest kernel value). That
        of |w|^2 = c.f is at most |c|_1 times as much, plus the rounding of the inner product.
        """
        total, terms = float(np.abs(c).sum()), int(np.count_nonzero(c)) + 4
        square = float(c @ scores)
        # the number of additions in sequence: within a block, and over all blocks; of products in memory, of all rows
        added = terms if self.product is not None else min(terms, BLOCK + c.size // BLOCK + 5)
        score_error = total * (self.error + (added + 2.0) * EPS * self.max_diagonal) + TINY
        square_error = total * score_error + terms * EPS * float(np.abs(c * scores).sum()) + TINY
        return Combination(c, scores, max(square, 0.0), score_error, square_error)

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

    def margins(self, y: np.ndarray, b: float) -> tuple[np.ndarray, np.ndarray]:
        """Return the margins y_j (f_j + b) and their error bounds; where f_j = 0 the sum f_j + b is not rounded."""
        margins = y * (self.scores + b)
        rounded = np.where(self.scores == 0.0, 0.0, 4.0 * EPS * np.abs(margins))
        return margins, self.score_error + rounded

    def primal_length(self, problem: Problem, b: float) -> Length:
        """Return |w|, with the weight b / rho of an augmented intercept."""
        return length_of_square(problem.norm2(self.square, b), self.square_error)

    def dual_length(self, problem: Problem, alpha: np.ndarray, change: float) -> Length:
        """Return |v| for c = alpha y, with the constant coordinate rho sum c.

        `change` bounds the length by which balancing the classes moves v (`row_pass.moved`). The sum of k terms c_i,
        each at most alpha_i in absolute value, has an error of k u sum alpha, its square one of 2 k u (sum alpha)^2:
        4 k eps is more.
        """
        terms, total = int(np.count_nonzero(alpha)) + 4, float(alpha.sum())
        constant = problem.rho * float(self.c.sum())
        square_error = self.square_error + 4.0 * terms * EPS * problem.rho * problem.rho * total * total
        found = length_of_square(self.square + constant * constant, square_error)
        return found._replace(high=(found.high + change) * (1.0 + EPS))


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


class KernelBounds(NamedTuple):
    """Bounds, rounded outwards, and the point that proves them."""

    bounds: Bounds
    point: KernelPoint


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

    def bounds(self, point: KernelPoint, gap: float = 0.0) -> KernelBounds:
        """Return the bounds of one point, whose dual variables are made feasible first (`all_bounds`)."""
        return all_bounds([self], [point], [gap])[0]

    def attained_margin(self, c: np.ndarray, b: float) -> float:
        """Return the margin of sum c_i k(x_i, .) + b in a hard margin problem, rounded downwards.

        `c` has shape (n,); the margin is in the length that the kernel defines.
        """
        return self.primal_side(self.sample.combinations(c[None])[0], b).bound

    def dual_side(self, alpha: np.ndarray, dual: Combination) -> Side:
        """Return the bound of feasible dual variables, of shape (n,), of which `dual` is sum alpha_i y_i phi(x_i)."""
        uneven, total = imbalance(alpha, self.y) if self.problem.free else 0.0, float(alpha.sum())
        spread = total * (self.sample.max_diagonal + self.sample.error) ** 0.5
        length = dual.dual_length(self.problem, alpha, moved(uneven, total, spread))
        gains, terms = float(np.sum(self.problem.gains(alpha, self.weights))), int(np.count_nonzero(alpha))
        size = 2.0 * total - gains  # sum alpha_i + sum alpha_i^2 / (4 C s_i)
        return dual_side(self.problem, gains, size, Plain.error(size, terms) + uneven, length)

    def primal_side(self, w: Combination, b: float) -> Side:
        """Return the bound of the primal point (w, b)."""
        sums = point_sums(self.problem, *w.margins(self.y, b), self.weights)
        return primal_side(self.problem, sums, w.primal_length(self.problem, b))

    def best_bounds(
        self, alpha: np.ndarray, dual: Combination, given: tuple[Combination, float], gap: float
    ) -> KernelBounds:
        """Return the bounds of dual variables and the best of several primal points.

        Parameters
        ----------
        alpha : ndarray of shape (n,)
            Feasible.
        dual : Combination
            sum alpha_i y_i phi(x_i).
        given : (Combination, float)
            The first primal point, (w, b).
        gap : float
            Further points of `_primal_points` are tried until one proves this gap.
        """
        problem = self.problem
        alpha, dual = self._scale_dual(alpha, dual)
        proof = self.dual_side(alpha, dual)
        # in a soft problem alpha = 0 proves the bound 0, which is better than a bound that rounding has made negative
        if not (problem.hard or proof.bound >= 0.0):
            alpha, proof = np.zeros_like(alpha), Side(0.0, 0.0)
        found: list[KernelBounds] = []
        for w, b in self._primal_points(given, dual):
            bounds = combine_sides(problem, proof, self.primal_side(w, b))
            found.append(KernelBounds(bounds, KernelPoint(alpha, w.c, b)))
            if problem.gap(bounds.lower, bounds.upper) <= ACCEPTED_GAP_RATIO * gap:
                break
        # the gap 1 - lower / upper of a hard margin rounds to one for all small margins
        return min(found, key=lambda one: (problem.gap(*one.bounds[:2]), one.bounds.upper - one.bounds.lower))

    def _scale_dual(self, alpha: np.ndarray, dual: Combination) -> tuple[np.ndarray, Combination]:
        """Return the multiple of the dual variables with the largest dual value, and its combination.

        The multiple is capped at C s_i. The bound of a hard margin depends on the proportions of alpha only: both are
        returned as they are.
        """
        if self.problem.hard or not alpha.any():
            return alpha, dual
        constant = self.problem.rho * float(dual.c.sum())
        t = self.problem.multiple(alpha, dual.square + constant * constant, self.weights)
        alpha = self.problem.capped(t * alpha, self.weights)
        return alpha, self.sample.multiple(dual, t, alpha * self.y)

    def _primal_points(
        self, given: tuple[Combination, float], dual: Combination
    ) -> Iterator[tuple[Combination, float]]:
        """Yield candidates (w, b) for the primal point.

        They are the given point, the best multiple of `dual` with its best intercept, and, in soft problems, both of
        them scaled up until all margins are 1, so that there are no losses, and w = 0 with its best intercept.
        """
        yield given
        points = [given, self._best_primal(dual)]
        yield points[1]
        if self.problem.hard:
            return
        for w, b in points:
            # three error bounds are subtracted: one for these margins, two for the recomputed margins of the multiple
            margins, errors = w.margins(self.y, b)
            least = float((margins - 3.0 * errors).min(where=self.weights > 0.0, initial=np.inf))
            if 0.0 < least < 1.0:
                t = (1.0 + 16.0 * EPS) / least
                yield self.sample.multiple(w, t, t * w.c), t * b
        zero = np.zeros(self.y.size)
        b = best_intercept(self.problem, zero, self.y, self.weights) if self.problem.free else 0.0
        yield Combination(zero, zero, 0.0, 0.0, 0.0), b

    def _best_primal(self, dual: Combination) -> tuple[Combination, float]:
        """Return the multiple of w = `dual` with the smallest primal objective, and its intercept.

        The multiple is 1 for the hinge. In a hard margin problem it has a smallest margin of one, if it separates.
        """
        problem, y, weights = self.problem, self.y, self.weights
        t, b = 1.0, problem.rho * problem.rho * float(dual.c.sum())
        if problem.free:
            b = best_intercept(problem, dual.scores, y, weights)
        if problem.hard:
            smallest = float((y * (dual.scores + b))[weights > 0.0].min())
            t = 1.0 / smallest if smallest > 0.0 else 1.0  # canonical scale: the smallest margin is one
            b = t * b
        elif problem.loss == "squared_hinge":
            norm2 = problem.norm2(dual.square, b)
            t, b = best_multiple_and_intercept(problem, norm2, dual.scores, b, y, weights)
        return self.sample.multiple(dual, t, t * dual.c), b


def all_bounds(
    tasks: Sequence[KernelProblem], points: Sequence[KernelPoint], gaps: Sequence[float] | None = None
) -> list[KernelBounds]:
    """Return the bounds of several problems on the same rows, with one computation of the kernel.

    The primal point of each problem is the given one if its gap is at most ACCEPTED_GAP_RATIO times that of `gaps`,
    else that with the smallest gap of the candidates of `KernelProblem._primal_points`.

    Parameters
    ----------
    tasks : sequence of KernelProblem
        On one sample.
    points : sequence of KernelPoint
        Dual variables are any non-negative numbers; they are made feasible first.
    gaps : sequence of float, default=None
        The gap that is asked for, of each problem; None for 0.0.
    """
    gaps = [0.0] * len(tasks) if gaps is None else gaps
    duals = [task.feasible(point.alpha) for task, point in zip(tasks, points, strict=True)]
    signed = [alpha * task.y for alpha, task in zip(duals, tasks, strict=True)]
    given = [point.coefficients for point in points]
    combinations = tasks[0].sample.combinations(np.array([*signed, *given]))
    sides = zip(combinations[: len(tasks)], combinations[len(tasks) :], strict=True)
    return [
        task.best_bounds(alpha, dual, (w, point.intercept), gap)
        for task, alpha, (dual, w), point, gap in zip(tasks, duals, sides, points, gaps, strict=True)
    ]


# Rows on which eigenvalues are computed, in about a second, whose time grows with the cube; the least number of these
# rows, whatever the memory limit; and the number of their matrices that are in memory at once.
MAX_ROWS, MIN_ROWS, MATRICES_IN_MEMORY = 2000, 250, 3
# Accepted error of an entry, in units in the last place: kernels of many features have errors of tens of units.
ENTRY_ERROR_ULPS = 64.0
# Rows that are compared with their columns at a time: differences of 2 MB for 1000 rows. A round value; not tuned.
COMPARED_ROWS = 256


def check_kernel(kernel: Kernel, X: Any, memory_bytes: float = np.inf) -> None:
    """Raise ValueError where a kernel is not an inner product on the given rows.

    Kernels that are inner products by their formula are accepted. The matrix of other kernels is computed on at most
    2000 evenly spaced rows: if it is indefinite on these rows, it is indefinite on all.

    Parameters
    ----------
    kernel : Kernel
    X : ndarray or CSR matrix of shape (n, d)
        The matrix itself where the kernel is precomputed.
    memory_bytes : float, default=inf
        Memory limit, which reduces the number of rows of the computed matrix, to no fewer than 250.

    Raises
    ------
    ValueError
        If the matrix overflows, is not symmetric, or has a negative eigenvalue, which the message states.
    """
    if is_inner_product(kernel):
        return
    if isinstance(kernel, Precomputed):
        check_gram(X)
        return
    # the number of rows of MATRICES_IN_MEMORY square matrices of float64
    in_memory = (memory_bytes / (8.0 * MATRICES_IN_MEMORY)) ** 0.5
    n, most = X.shape[0], int(min(max(in_memory, MIN_ROWS), MAX_ROWS))
    places = np.linspace(0, n - 1, min(n, most)).astype(np.intp)
    some = kernel.prepared(X if n <= most else X[places])
    with np.errstate(over="ignore", invalid="ignore"):
        K = kernel.block(some, some)
    if not np.isfinite(K).all():
        raise ValueError(f"The {kernel.name} kernel overflows: scale the features, or lower gamma or degree.")
    check_gram(K, f"The {kernel.name} kernel", places)


def is_inner_product(kernel: Kernel) -> bool:
    """Return whether the kernel's formula is an inner product on any rows: for its class and its parameters.

    False for kernels that may or may not be one, such as the sigmoid or a callable.
    """
    if isinstance(kernel, Polynomial):
        whole = kernel.degree == int(kernel.degree) and kernel.degree >= 0
        return whole and kernel.gamma >= 0.0 and kernel.coef0 >= 0.0
    return isinstance(kernel, Linear) or (isinstance(kernel, Gaussian) and kernel.gamma >= 0.0)


def check_gram(K: Any, name: str = "The kernel matrix", places: Any = None) -> None:
    """Raise ValueError where a matrix is not symmetric and positive semidefinite, up to the rounding of its entries.

    Parameters
    ----------
    K : ndarray of shape (n, n)
        Finite numbers; an array of float32 is accepted with the rounding of float32.
    name : str, default="The kernel matrix"
        The name of the matrix in messages.
    places : ndarray of int, default=None
        The numbers of its rows in messages; None for 0, ..., n - 1.

    Raises
    ------
    ValueError
        If the matrix is not square, symmetric and positive semidefinite; the message states the entries or the
        eigenvalue.
    """
    if K.ndim != 2 or K.shape[0] != K.shape[1]:
        raise ValueError(f"{name} must be square, of shape (n, n) for n training rows; got shape {K.shape}.")
    # The spectral norm of an (n, n) matrix of errors is at most n times the largest of them (Weyl's inequality).
    eps = np.finfo(K.dtype if K.dtype.kind == "f" else float).eps
    error = ENTRY_ERROR_ULPS * float(eps) * max(float(K.max()), -float(K.min()))
    allowed = K.shape[0] * error
    i, j = _largest_place(K, lambda rows: np.abs(K[rows] - K[:, rows].T))
    if abs(float(K[i, j]) - float(K[j, i])) > allowed:
        row, other = (i, j) if places is None else places[[i, j]].tolist()
        raise ValueError(
            f"{name} is not symmetric: its value of rows {row} and {other} (counted from 0) is {K[i, j]:.9g}, and "
            f"{K[j, i]:.9g} in the other order; give (K + K.T) / 2 if the difference does not matter."
        )
    least = least_eigenvalue(K, allowed)
    if least < -allowed:
        raise ValueError(
            f"{name} is not positive semidefinite, its least eigenvalue is {'at most ' * (K.shape[0] > MAX_ROWS)}"
            f"{least:.6g}: no inner product has these values, and no margin is defined. Use another kernel "
            f"or other parameters, or add {-1.01 * least:.3g} to the diagonal, as a soft margin does."
        )
    # |K_ij| <= sqrt(K_ii K_jj) for inner products (Cauchy and Schwarz), up to the rounding of an entry
    lengths = np.sqrt(np.maximum(np.diag(K).astype(float) + error, 0.0))
    i, j = _largest_place(K, lambda rows: np.abs(K[rows]) - lengths[rows, None] * lengths)
    if abs(float(K[i, j])) > lengths[i] * lengths[j] + error:
        row, other = (i, j) if places is None else places[[i, j]].tolist()
        raise ValueError(
            f"{name} is not positive semidefinite: its value of rows {row} and {other} (counted from 0) is "
            f"{K[i, j]:.9g}, and inner products are at most the square root of {K[i, i]:.9g} x {K[j, j]:.9g}, the "
            "product of the values on the diagonal. Use another kernel or other parameters."
        )


def least_eigenvalue(K: np.ndarray, allowed: float) -> float:
    """Return the least eigenvalue on at most MAX_ROWS evenly spaced rows, or -allowed if none is below it."""
    if K.shape[0] > MAX_ROWS:
        some = np.linspace(0, K.shape[0] - 1, MAX_ROWS).astype(np.intp)
        K = K[np.ix_(some, some)]
    K = K.astype(float)
    with suppress(
        LinAlgError
    ):  # a Cholesky factor of K + allowed I exists if all eigenvalues are above -allowed
        cholesky(K + allowed * np.eye(K.shape[0]), lower=True, overwrite_a=True, check_finite=False)
        return -allowed
    return float(eigvalsh(K, subset_by_index=(0, 0), check_finite=False)[0])


def _largest_place(K: np.ndarray, values: Callable[[slice], np.ndarray]) -> tuple[int, int]:
    """Return the place of the largest of the values of a matrix of the shape of K, computed for some rows at a time."""
    most, place = -np.inf, (0, 0)
    for first in range(0, K.shape[0], COMPARED_ROWS):
        found = values(slice(first, first + COMPARED_ROWS))
        i, j = np.unravel_index(int(found.argmax()), found.shape)
        if found[i, j] > most:
            most, place = float(found[i, j]), (first + int(i), int(j))
    return place
