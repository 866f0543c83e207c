"""Sums over kernel rows for the formulas of `bounds`: scores and lengths of w = sum c_i phi(x_i), with their errors.

Scores are products of the Gram matrix, f_j = sum_i c_i k(x_i, x_j), and |w|^2 = sum c_j f_j. Entries are off by at most
`Kernel.error`, sums by their rounding, and products by the smallest number where they underflow: bounds hold for the
kernel as it is, not as computed. For the linear kernel w itself is summed up by compensated sums, as sums of large
coefficients cancel, and kernel values, whose errors do not cancel, are not used.
"""

from __future__ import annotations

from collections.abc import Callable
from copy import copy
from typing import Any, NamedTuple

import numpy as np

from ..kernels.functions import Kernel, Linear, Precomputed, Products
from ..kernels.gram import BLOCK, gram_product
from ..numerics.sparse_columns import without_empty_columns
from ..numerics.sums import Compensated, Plain
from ..problem.problem import Problem
from .bounds import EPS, LEAST, Length, Margins

NORMAL = float(np.finfo(float).smallest_normal)
# Of the largest kernel value: terms of sums neither overflow nor lose digits that count
RANGE = 1e-250, 1e250
# Entries of rows up to which scores of the linear kernel are compensated sums, which take some milliseconds then.
COMPENSATED_ENTRIES = 2**17
TINY = 1e-155  # no row whose square underflows is longer
LOST = 0.1  # share of the largest kernel value by which one may be off: beyond, no bound would prove anything


class KernelSample:
    """Rows and their kernel, as a certificate sees them.

    Parameters
    ----------
    kernel : Kernel
        Whose values, computed in float64, are off by no more than `kernel.error`.
    X : ndarray or CSR matrix of shape (n, d)
    rounded : float, default=0
        By how much, relative to itself, a coefficient may be off where equal rows share it.

    Attributes
    ----------
    diagonal : ndarray of shape (n,)
    most : float
        The largest size of an entry of the diagonal.
    error : float
        By how much a kernel value may be off.
    features : ndarray or CSR matrix of shape (n, d), or None
        The rows on the columns that have entries, where the kernel is their inner product.
    product : callable or None
        Products with kernel values that are kept in memory.

    Raises
    ------
    ValueError
        If kernel values, or sums of them, over- or underflow or are lost in rounding: the message says what helps.
    """

    product: Callable[[np.ndarray], np.ndarray] | None = None

    def __init__(self, kernel: Kernel, X: Any, rounded: float = 0.0) -> None:
        rows = X.astype(np.float64, copy=False)
        self.kernel, self.X, self.rounded = kernel, kernel.prepared(rows), rounded
        # Columns without entries add nothing to an inner product, and sums over them would take their memory.
        self.features: Any = without_empty_columns(rows)[0] if isinstance(kernel, Linear) else None
        with np.errstate(over="ignore", invalid="ignore"):
            self.diagonal = kernel.diagonal(self.X)
            self.most = most = float(np.abs(self.diagonal).max(initial=0.0))
            products = isinstance(kernel, Products)
            square = float(Linear().diagonal(self.X).max(initial=0.0)) if products else 1.0
        what = "matrix" if isinstance(kernel, Precomputed) else "features"
        if not most <= RANGE[1]:
            other = "" if what == "matrix" else ", or lower gamma or coef0"
            raise ValueError(
                f"The kernel overflows in sums, if not before: its values reach {most:.3g}, and bounds can be computed "
                f"up to {RANGE[1]:g}; scale the {what}{other}."
            )
        if square < NORMAL and abs(rows).max() > 0.0:
            raise ValueError(
                "The squares of rows of this length underflow, and kernel values with them: scale the features."
            )
        if 0.0 < most < RANGE[0]:
            raise ValueError(
                f"The kernel underflows in sums, if not before: its values reach {most:.3g}, and bounds can be "
                f"computed from {RANGE[0]:g} on; scale the {what}."
            )
        self.error = kernel.error(self.X)
        if not np.isfinite(self.error):
            raise ValueError(
                "The squares of rows of this length overflow, and kernel values with them: scale the features."
            )
        if self.error > LOST * most:
            raise ValueError(
                f"Kernel values are lost in rounding: they are {most:.3g} at most, and may be off by {self.error:.3g}. "
                "Take the mean of each feature from it, and scale the features."
            )

    def scores(self, c: np.ndarray) -> np.ndarray:
        """Return sum_i c_i k(x_i, x_j) of every row j; of several c, shape (m, n), by one computation of the kernel."""
        if self.features is not None:
            return np.reshape([self._summed(one).scores for one in np.atleast_2d(c)], c.shape)
        return gram_product(self.kernel, self.X, c) if self.product is None else self.product(c)

    def combinations(self, c: np.ndarray) -> list[Combination]:
        """Return sum_i c_i phi(x_i) of several c, shape (m, n)."""
        if self.features is not None:
            return [self._summed(one) for one in c]
        return [self._valued(one, scores) for one, scores in zip(c, self.scores(c), strict=True)]

    def multiple(self, w: Combination, t: float, c: np.ndarray) -> Combination:
        """Return t times this combination, whose coefficients `c` are t times its own but for rounding.

        The errors of kernel values are larger than that rounding; sums of features show it.
        """
        if self.features is not None:
            return w if np.array_equal(c, w.c) else self._summed(c)
        return Combination(c, t * w.scores, t * (t * w.square), abs(t) * w.off, t * (t * w.uncertain))

    def part(self, places: np.ndarray) -> KernelSample:
        """Return the sample of these rows; bounds of all rows hold for them."""
        if places.size == self.X.shape[0]:
            return self
        part = copy(self)
        part.X, part.diagonal, part.product = self.kernel.part(self.X, places), self.diagonal[places], None
        part.features = None if self.features is None else self.features[places]
        return part

    def _valued(self, c: np.ndarray, scores: np.ndarray) -> Combination:
        """Return the combination by kernel values."""
        total, terms = float(np.abs(c).sum()), int(np.count_nonzero(c)) + 4
        square = float(c @ scores)
        added = min(terms, BLOCK + c.size // BLOCK + 5)  # a block's sum, and the sum of the blocks
        underflow = LEAST if self.most > 0.0 else 0.0
        off = total * (self.error + (added + 2.0) * EPS * self.most) + terms * underflow
        uncertain = total * off + terms * (EPS * float(np.abs(c * scores).sum()) + underflow)
        return Combination(c, scores, max(square, 0.0), off, uncertain)

    def _summed(self, c: np.ndarray) -> Combination:
        """Return the combination by w itself, of the linear kernel."""
        more, X, d, used = Compensated, self.features, self.features.shape[1], np.flatnonzero(c)
        digits = more if X.shape[0] * d <= COMPENSATED_ENTRIES else Plain
        w = more.combine(X[used], c[used])
        scores = digits.scores(X, w)
        underflow = LEAST if self.most > 0.0 else 0.0
        lengths = 1.01 * np.sqrt(self.diagonal) + (TINY if self.most > 0.0 else 0.0)
        size, length = float(np.abs(c) @ lengths), 1.01 * more.norm(w)
        moved = more.error(length, size, more.terms(X, used.size, 0)) + self.rounded * size
        moved += 8.0 * (used.size + 1.0) * d * underflow
        off = digits.error(scores, lengths * length, digits.terms(X, d, 1)) + 1.01 * lengths * moved
        off += (d + 2.0) * underflow
        square = more.square(w)
        uncertain = moved * (2.0 * length + moved) + more.error(square, square, d) + (d + 2.0) * underflow
        return Combination(c, scores, square, off, 1.01 * uncertain)


class Combination(NamedTuple):
    """w = sum c_i phi(x_i): scores and squared length, and by how much each may be off."""

    c: np.ndarray
    scores: np.ndarray
    square: float
    off: Any  # of every score, or one number for all
    uncertain: float  # of the square

    def margins(self, y: np.ndarray, b: float) -> Margins:
        """Return the margins of (w, b); a score of zero, as of w = 0, adds no rounding to b."""
        margins = y * (self.scores + b)
        rounded = np.where(self.scores == 0.0, 0.0, 4.0 * EPS * np.abs(margins))
        return Margins(margins, self.off + rounded)

    def primal_length(self, problem: Problem, b: float) -> Length:
        """Return |w|, with the weight b / rho of an augmented intercept."""
        return length_of_square(problem.norm2(self.square, b), self.uncertain)

    def dual_length(self, problem: Problem, alpha: np.ndarray, moved: float) -> Length:
        """Return |v| for c = alpha y, with the constant coordinate rho sum c, where v may move by so much.

        The sum of k terms c_i, each at most alpha_i, is off by k u sum alpha, and its square by 2 k u (sum alpha)^2:
        4 k eps is more.
        """
        terms, total = int(np.count_nonzero(alpha)) + 4, float(alpha.sum())
        constant = problem.rho * float(self.c.sum())
        uncertain = self.uncertain + 4.0 * terms * EPS * problem.rho * problem.rho * total * total
        found = length_of_square(self.square + constant * constant, uncertain)
        return found._replace(high=(found.high + moved) * (1.0 + EPS))


def length_of_square(square: float, uncertain: float) -> Length:
    """Return the length whose square is known with an error.

    The constant coordinate, its square and the sum are off by 5 u of the square, the root by u: 4 eps = 8 u is more
    than these make of the length.
    """
    high = (square + uncertain) ** 0.5 * (1.0 + 4.0 * EPS)
    low = max(square - uncertain, 0.0) ** 0.5 * (1.0 - 4.0 * EPS)
    return Length(square**0.5, low, high)
