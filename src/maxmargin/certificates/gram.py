"""Sums over kernel rows for the formulas of `bounds`: scores and lengths of w = sum c_i phi(x_i), with error bounds.

Scores are products of the Gram matrix, f_j = sum_i c_i k(x_i, x_j), and |w|^2 = sum c_j f_j. The error of an entry is
at most `Kernel.error`, that of a sum its rounding, that of a product the smallest number where it underflows: bounds
hold for the kernel in exact arithmetic. For the linear kernel w itself is computed, as sums with large coefficients
cancel. Kernel values, whose errors do not cancel, are not used then.
"""

from __future__ import annotations

from collections.abc import Callable
from copy import copy
from typing import Any, NamedTuple

import numpy as np

from ..data.door import LARGEST_COST
from ..kernels.functions import Kernel, Linear
from ..kernels.gram import BLOCK, gram_product
from ..numerics.sparse_columns import without_empty_columns
from ..numerics.sums import EPS, SMALLEST_FLOAT, Plain
from ..problem.problem import Problem
from .bounds import Length

# Largest accepted error of a kernel value, as a fraction of the largest value. Bounds computed from kernel values with
# larger errors would prove nothing of use. A round value; not tuned.
MAX_RELATIVE_ERROR = 0.1


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

        Error bounds of kernel values are larger than that rounding: scores and square are scaled. Error bounds of sums
        of features are smaller: these sums are recomputed.
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
        # the number of additions in sequence: within a block, and over all blocks
        added = min(terms, BLOCK + c.size // BLOCK + 5)
        underflow = SMALLEST_FLOAT if self.max_diagonal > 0.0 else 0.0
        score_error = total * (self.error + (added + 2.0) * EPS * self.max_diagonal) + terms * underflow
        square_error = total * score_error + terms * (EPS * float(np.abs(c * scores).sum()) + underflow)
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
        underflow = SMALLEST_FLOAT if self.max_diagonal > 0.0 else 0.0
        # the square of a length below 1e-155 underflows
        lengths = 1.01 * np.sqrt(self.diagonal) + (1e-155 if self.max_diagonal > 0.0 else 0.0)
        # sum |c_i| |x_i| bounds the sum of the absolute values of the terms of w, the coefficients' rounding included
        size, length = float(np.abs(c) @ lengths), 1.01 * Plain.norm(w)
        w_error = Plain.error(size, Plain.terms(X, used.size, 0)) + self.rounded * size
        w_error += 8.0 * (used.size + 1.0) * d * underflow
        # |x_j| |w| bounds the sum of the absolute values of the terms of a score (Cauchy and Schwarz)
        score_error = Plain.error(lengths * length, Plain.terms(X, d, 1)) + 1.01 * lengths * w_error
        score_error += 8.0 * (d + 2.0) * underflow
        square = Plain.square(w)
        square_error = (
            w_error * (2.0 * length + w_error) + Plain.error(square, d) + 8.0 * (d + 2.0) * underflow
        )
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

    def dual_length(self, problem: Problem, alpha: np.ndarray, moved: float) -> Length:
        """Return |v| for c = alpha y, with the constant coordinate rho sum c.

        `moved` bounds the length by which scaling the heavier class down moves v. The sum of k terms c_i, each at most
        alpha_i in absolute value, has an error of k u sum alpha, its square one of 2 k u (sum alpha)^2: 4 k eps is
        more.
        """
        terms, total = int(np.count_nonzero(alpha)) + 4, float(alpha.sum())
        constant = problem.rho * float(self.c.sum())
        square_error = self.square_error + 4.0 * terms * EPS * problem.rho * problem.rho * total * total
        found = length_of_square(self.square + constant * constant, square_error)
        return found._replace(high=(found.high + moved) * (1.0 + EPS))


def length_of_square(square: float, square_error: float) -> Length:
    """Return the length for a computed square whose absolute error is at most `square_error`.

    The constant coordinate, its square and the sum add a relative error of 5 u to the square, hence 2.5 u to the
    length, and the root adds u: 4 eps = 8 u is more.
    """
    high = (square + square_error) ** 0.5 * (1.0 + 4.0 * EPS)
    low = max(square - square_error, 0.0) ** 0.5 * (1.0 - 4.0 * EPS)
    return Length(square**0.5, low, high)
