"""What floating point proposes to exact arithmetic: separators, and rows whose combinations may be zero.

In turn, as far as there is no proof yet:

1. of large data, a hundred steps of the smoothed Perceptron: where the margin is not small, as in data that are wider
   than long, these find a separator in a part of the time of what follows, and else cost a part of it;
2. the point of the hull that is nearest to the origin, by non-negative least squares on columns of one size;
3. of data that are too large for it, the linear program of p = inf on the rows and columns that matter.

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

from ..algorithms.batch.generation import largest, linear_points
from ..fit.deadline import Watch
from ..numerics.rational import ExactRows
from ..numerics.sparse_columns import may_be_dense
from ..problem.problem import Problem
from .iterates import decided
from .normalized import NormalisedRows
from .smoothed import smoothed_perceptron

MANY, STEPS = 1e5, 100  # entries from which the smoothed Perceptron comes first, and its steps
DENSE, FLOPS = 2e7, 5e9  # entries, and entries x smaller side, up to which least squares are affordable
PACE = 1e9  # of these a second: least squares that would take longer than there is time are not begun


class Proposal(NamedTuple):
    """Weights on scaled columns, dual weights, and what found them: one of the two may be a proof."""

    w: np.ndarray
    alpha: np.ndarray
    method: str


def proposals(rows: ExactRows, watch: Watch) -> Iterator[Proposal]:
    """What floating point says, the cheapest first; whoever asks ends with the first that is proved.

    Parameters
    ----------
    rows : ExactRows
    watch : Watch
    """
    X, y = rows.scaled, rows.y
    spread = np.ones(rows.d)
    if rows.bias and not sp.issparse(X):  # a column far from zero varies little: what matters is how
        top, bottom = X.max(axis=0), X.min(axis=0)
        middle, spread = 0.5 * (top + bottom), 0.5 * (top - bottom)
        spread = 2.0 ** np.round(np.log2(np.where(spread > 0.0, spread, 1.0)))
        X = (X - middle) / spread
    if rows.n * rows.d >= MANY:
        found = _smoothed(X, y, rows.bias, watch)
        if found is not None:
            yield Proposal(found[0] / spread, found[1], "the smoothed Perceptron")
    flops = float(rows.n) * rows.d * min(rows.n, rows.d)
    if rows.n * rows.d <= DENSE and may_be_dense(X) and flops <= min(FLOPS, PACE * watch.left()):
        found = _nearest(X.toarray() if sp.issparse(X) else X, y, rows.bias)
        if found is not None:
            yield Proposal(found[0] / spread, found[1], "least squares")
            return
    intercept = "free" if rows.bias else "none"
    program = Problem("hinge", np.inf, p=np.inf, intercept=intercept)
    for w, b, alpha in linear_points(program, X, y, np.ones(y.size), watch.check):
        yield Proposal(w / spread, alpha, "a linear program")
        if float((y * (X @ w + b)).min()) > 0.0:
            return  # no proof of it in float64: a program in smaller units would take HiGHS long, at times minutes


def _smoothed(X: Any, y: np.ndarray, bias: bool, watch: Watch) -> tuple[np.ndarray, np.ndarray] | None:
    """A separator of normalised rows, with the dual weights that bound its margin, if few steps find one."""
    square = X.multiply(X) if sp.issparse(X) else X * X
    try:
        patterns = NormalisedRows(X, y, float(square.sum() / y.size) ** 0.5 if bias else 0.0)
    except ValueError:  # a row of next to nothing
        return None
    *_, last = decided(islice(smoothed_perceptron(patterns), STEPS + 1), 0.0, watch.interrupted)
    return (last.alpha.w, last.p.weights * np.abs(patterns.scale)) if last.primal else None


def _nearest(X: np.ndarray, y: np.ndarray, bias: bool) -> tuple[np.ndarray, np.ndarray] | None:
    """The least |(sum z a, sum z - 1)| over z >= 0, by active sets; None if that does not end.

    The residual (u, t) of the optimum has a_i.u + t <= 0 for all i, and t > 0 unless it is zero: -u separates. Else z
    is a combination of the origin, of at most one row more than there are coordinates.
    """
    ones = np.ones((1, y.size))
    A = np.vstack([(X * y[:, None]).T, *([y[None]] if bias else []), ones])
    target = np.zeros(A.shape[0])
    target[-1] = 1.0
    try:
        z, _ = nnls(A, target)
    except RuntimeError:  # no end within its limit of steps
        return None
    u = A @ z - target
    return u[: X.shape[1]], z


def start(alpha: np.ndarray, width: int) -> dict[int, float]:
    """The rows that exact arithmetic begins with: those of the largest dual weights."""
    places = largest(alpha, 2 * (width + 1), 0.0)
    return {int(i): float(alpha[i]) for i in np.sort(places)} or {0: 1.0}
