"""Floating-point candidates for exact arithmetic: separators, and rows whose combinations may be zero.

In this order, until a candidate is proved:

1. on large data, a hundred steps of the smoothed Perceptron. Where the margin is not small, as in data with more
   columns than rows, they find a separator in a part of the time of the next steps; elsewhere they add a part of it;
2. the point of the hull that is nearest to the origin, by non-negative least squares on columns scaled to one size;
3. on data too large for least squares, the linear program of p = inf, by row and column generation.

References
----------
C. L. Lawson, R. J. Hanson, "Solving Least Squares Problems", Prentice-Hall 1974, chapter 23;
A. Ramdas, J. Pena, "Margins, kernels and non-linear smoothed Perceptrons", ICML 2014.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from scipy.optimize import nnls

from ..algorithms.batch.generation import linear_points
from ..fit.deadline import Deadline
from ..numerics.rational import ExactRows
from ..numerics.sparse_columns import may_be_dense
from ..numerics.stop_check import StopCheck
from ..problem.problem import Problem
from .normalized import NormalisedRows, until_decided
from .smoothed import smoothed_perceptron

# Entries from which the smoothed Perceptron comes first, and its steps: on smaller data least squares end as soon, and
# more steps would only add to their time where the margin is small.
MIN_SMOOTHED_ENTRIES, SMOOTHED_STEPS = 1e5, 100
# Entries, and entries x smaller side, up to which least squares run: `nnls` needs a dense copy (160 MB at 2e7 entries)
# and about as many operations as the second number; larger data leave both to the linear program.
MAX_DENSE_ENTRIES, MAX_FLOPS = 2e7, 5e9
# Operations a second assumed of `nnls`, which cannot be interrupted: it does not start when it would pass the deadline.
# A smaller figure leaves more problems to the linear program, a larger one overruns `max_time`.
FLOPS_PER_SECOND = 1e9


class Candidate(NamedTuple):
    """Weights of the scaled columns, dual weights of the rows, and the method: either may lead to a proof."""

    w: np.ndarray
    alpha: np.ndarray
    method: str


def candidates(rows: ExactRows, deadline: Deadline) -> Iterator[Candidate]:
    """Yield candidates in float64, the cheapest first; the caller stops at the first that is proved.

    Parameters
    ----------
    rows : ExactRows
    deadline : Deadline
    """
    X: Any = rows.scaled
    y, spread = rows.y, np.ones(rows.d)
    if rows.bias and not sp.issparse(X):
        X, spread = _centred(X)
    if rows.n * rows.d >= MIN_SMOOTHED_ENTRIES:
        found = _by_smoothed_perceptron(X, y, rows.bias, deadline)
        if found is not None:
            yield Candidate(found[0] / spread, found[1], "the smoothed Perceptron")
    flops = float(rows.n) * rows.d * min(rows.n, rows.d)
    affordable = flops <= min(MAX_FLOPS, FLOPS_PER_SECOND * deadline.remaining())
    if rows.n * rows.d <= MAX_DENSE_ENTRIES and may_be_dense(X) and affordable:
        found = _by_least_squares(X.toarray() if sp.issparse(X) else X, y, rows.bias)
        if found is not None:
            yield Candidate(found[0] / spread, found[1], "least squares")
            return
    intercept = "free" if rows.bias else "none"
    program = Problem("hinge", np.inf, p=np.inf, intercept=intercept)
    for w, b, alpha in linear_points(
        program, X, y, np.ones(y.size), StopCheck(deadline.interrupted, deadline.remaining)
    ):
        yield Candidate(w / spread, alpha, "a linear program")
        # A separator without a proof in float64 is left to exact arithmetic: further programs, in smaller units,
        # would take HiGHS long, at times minutes.
        if float((y * (X @ w + b)).min()) > 0.0:
            return


def _centred(X: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the columns shifted to their mid-range and divided by their half-ranges, and these half-ranges.

    A free intercept absorbs the shift. Without it a column far from zero would vary in its last digits only. The
    half-ranges are rounded to powers of two, so that the division is exact.
    """
    top, bottom = X.max(axis=0), X.min(axis=0)
    middle, spread = 0.5 * (top + bottom), 0.5 * (top - bottom)
    spread = 2.0 ** np.round(np.log2(np.where(spread > 0.0, spread, 1.0)))
    return (X - middle) / spread, spread


def _by_smoothed_perceptron(
    X: Any, y: np.ndarray, bias: bool, deadline: Deadline
) -> tuple[np.ndarray, np.ndarray] | None:
    """Return a separator and the dual weights that bound its margin, if few steps find one.

    The constant feature of the intercept gets the root mean square length of the rows: a smaller one would need a
    larger weight, and a larger one would hide the rows behind it.
    """
    square = X.multiply(X) if sp.issparse(X) else X * X
    try:
        patterns = NormalisedRows(X, y, float(square.sum() / y.size) ** 0.5 if bias else 0.0)
    except ValueError:  # a row whose squared length underflows
        return None
    iterates = islice(smoothed_perceptron(patterns), SMOOTHED_STEPS + 1)
    *_, last = until_decided(iterates, 0.0, deadline.interrupted)
    return (last.alpha.w, last.p.weights * np.abs(patterns.scale)) if last.primal else None


def _by_least_squares(X: np.ndarray, y: np.ndarray, bias: bool) -> tuple[np.ndarray, np.ndarray] | None:
    """Minimise |(sum_i z_i a_i, sum_i z_i - 1)| over z >= 0, a_i = y_i (x_i, 1), by active sets.

    The residual (u, t) of the optimum has a_i.u + t >= 0 for all i, and t = -|(u, t)|^2 < 0 unless it is zero: then u
    separates, since a_i.u >= -t > 0. A residual of zero makes z a combination of the origin, of at most one row more
    than there are coordinates.

    Returns
    -------
    (u, z), or None where `nnls` does not end within its limit of steps
    """
    ones = np.ones((1, y.size))
    A = np.vstack([(X * y[:, None]).T, *([y[None]] if bias else []), ones])
    target = np.zeros(A.shape[0])
    target[-1] = 1.0
    try:
        z, _ = nnls(A, target)
    except RuntimeError:
        return None
    u = A @ z - target
    return u[: X.shape[1]], z


def starting_rows(alpha: np.ndarray, width: int) -> dict[int, float]:
    """Return the rows of the largest dual weights, with these weights: exact arithmetic starts from them.

    Twice as many rows as a proof needs at most (width + 1) leave room for weights that are rounding errors.
    """
    largest = np.argsort(-alpha, kind="stable")[: 2 * (width + 1)]
    return {int(i): float(alpha[i]) for i in np.sort(largest) if alpha[i] > 0.0} or {0: 1.0}
