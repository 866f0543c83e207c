"""The search for a separator of two classes, or for the proof that there is none, in any feature space.

By Gordan's theorem exactly one of two things exists: (w, b) with y_i (w.phi(x_i) + b) > 0 for all i, or weights
alpha >= 0, not all zero, with sum alpha_i y_i (phi(x_i), 1) = 0. Floating point finds candidates for both, and no
verdict is given before one of them is proved: a separator by its margin, rounded downwards, weights by the weighted sum
of the rows in rational numbers. The steps are

1. without a kernel, for many rows: a sample of the rows, which rows on the wrong side of its separator join, until it
   has no separator, which decides, or no row is on the wrong side; then trivial certificates: one or two rows that
   contradict each other (`trivial_certificate`);
2. without a kernel: floating-point candidates (`candidates`), and Wolfe's algorithm in exact arithmetic from their rows
   (`nearest_points`), which decides every problem that it can represent;
3. with a kernel: a separator by working sets of decomposition.

An algorithm on normalised patterns, if one is named, takes the place of working sets and of the first candidates.

`linear.LinearSearch` and `kernel.KernelSearch` take these steps; this module has the code that they share.

Wolfe's algorithm computes the point of the hull of the rows a_i that is nearest to the origin. It goes from one
"corral" to the next: affinely independent rows, with the nearest point x of their affine hull inside their hull. The
row of the least a_i.x enters. While the nearest point of the new affine hull has a weight that is not positive, x moves
towards it up to the boundary of the hull, and the row whose weight became zero leaves. |x| falls with every corral:
exact arithmetic cannot cycle. At the end x = 0, or a_i.x >= |x|^2 > 0 for all rows.

References
----------
P. Gordan, "Ueber die Aufloesung linearer Gleichungen mit reellen Coefficienten", Mathematische Annalen 6, 1873;
C. L. Lawson, R. J. Hanson, "Solving Least Squares Problems", Prentice-Hall 1974, chapter 23;
A. Ramdas, J. Pena, "Margins, kernels and non-linear smoothed Perceptrons", ICML 2014;
P. Wolfe, "Finding the nearest point in a polytope", Mathematical Programming 11, 1976.
"""

from __future__ import annotations

import math
import time
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import KW_ONLY, dataclass, field, replace
from fractions import Fraction
from itertools import islice
from operator import mul
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from scipy.optimize import nnls

from ..algorithms.normalised.base import NormalisedAlgorithm
from ..algorithms.normalised.patterns import NormalisedRows
from ..algorithms.normalised.smoothed import SmoothedPerceptron
from ..certificates.certificate import Certificate
from ..certificates.verdicts import Inseparable, Undecided, Verdict
from ..data.duplicates import Merged, merge
from ..fit.deadline import Deadline
from ..kernels.functions import Kernel
from ..numerics.columns import may_be_dense
from ..numerics.progress import StopCheck, announce, require_time
from ..numerics.rational import IntegerRows, null_vector
from ..numerics.sums import EPS, TINY, Plain, row_squares
from ..problem.problem import Problem, stopped_reason
from ..solvers.generation import linear_points


class Corral(NamedTuple):
    """A corral with its nearest point, x = sum weights_k a_k = direction / total.

    Attributes
    ----------
    weights : dict of row to Fraction
        All positive, of sum one.
    direction : list of int
        x times `total`, of length `IntegerRows.width`; all zeros if the hull holds the origin.
    total : int
        Positive: the common denominator.
    """

    weights: dict[int, Fraction]
    direction: list[int]
    total: int


def nearest_points(rows: IntegerRows, start: dict[int, float]) -> Iterator[Corral]:
    """Yield corrals, each nearer to the origin than the one before; the last one has the nearest point of the hull.

    Parameters
    ----------
    rows : IntegerRows
    start : dict
        Rows with positive weights, of any sum; the nearer their weighted mean is to the origin, the fewer steps.

    Raises
    ------
    OutOfTime
        If it was time to stop.
    """
    top = max(start.values())
    # 40 bits: the start need not be exact, and shorter integers make the first steps cheaper
    weights = {i: Fraction(max(round(weight / top * 2.0**40), 1)) for i, weight in start.items()}
    total = sum(weights.values())
    corral = _minor_cycle(rows, {i: value / total for i, value in weights.items()})
    while True:
        yield corral
        if not any(corral.direction):
            return
        square = sum(value * value for value in corral.direction)
        row, least = least_row(rows, corral.direction)
        if least * corral.total >= square:  # a_i.x >= |x|^2 for all i
            return
        corral = _minor_cycle(rows, corral.weights | {row: Fraction(0)})


def least_row(rows: IntegerRows, direction: list[int]) -> tuple[int, int]:
    """Return the row of the least score a_i.direction, and that score, exactly.

    Scores are computed in integers for all rows whose float64 scores may be the least within their errors. The error of
    a score is at most (8 + d) eps (|x|.|w| + |b|): the entries of the direction are rounded to half a unit in the last
    place, and the sum adds d + 4 units.
    """
    direct = as_floats(direction)
    w, b = direct[: rows.d], float(direct[rows.d]) if rows.bias else 0.0
    scores = rows.y * Plain.scores(rows.scaled, w, b)
    off = (8.0 + w.size) * EPS * (abs(rows.scaled) @ np.abs(w) + abs(b)) + TINY
    possible = np.flatnonzero(scores - off <= (scores + off).min())
    least, row = min((rows.product(i, direction), i) for i in possible.tolist())
    return row, least


def as_floats(direction: list[int]) -> np.ndarray:
    """Return a direction as float64 numbers, the largest about one.

    Integers of more than 1000 bits, which float64 may not hold, are shifted to 1000 bits first.
    """
    most = max((abs(value).bit_length() for value in direction), default=1)
    shift = max(most - 1000, 0)
    return np.array([math.ldexp(float(value >> shift), -min(most, 1000)) for value in direction])


def _reduced(weights: dict[int, Fraction], change: Sequence[int | Fraction]) -> dict[int, Fraction]:
    """Return weights - t change with the largest t for which no weight is negative, without the zero weights.

    `change` has one number for each row of `weights`, in the same order, at least one of them positive.
    """
    moves = list(zip(weights, change, strict=True))
    t = min(weights[i] / value for i, value in moves if value > 0)
    moved = {i: weights[i] - t * value for i, value in moves}
    return {i: value for i, value in moved.items() if value > 0}


def _minor_cycle(rows: IntegerRows, weights: dict[int, Fraction]) -> Corral:
    """Return the corral in which Wolfe's minor cycle ends from a convex combination of rows.

    While the nearest point of the affine hull has a weight that is not positive, the combination moves towards it up to
    the boundary of the hull, and rows of weight zero leave. Of affinely dependent rows one leaves (Caratheodory).
    """
    while True:
        places = list(weights)
        coordinates, block = rows.block(places)
        affine = _affine_minimiser(block, len(places), rows.interrupted)
        total = sum(affine)
        if not total:  # dependent: weights - t affine is the same point for every t
            weights = _reduced(weights, affine)
            continue
        nearest = {i: Fraction(value, total) for i, value in zip(places, affine, strict=True)}
        if all(value > 0 for value in affine):
            direction = [0] * rows.width
            for j, line in zip(coordinates, block, strict=True):
                direction[j] = sum(map(mul, line, affine))
            return Corral(nearest, direction, total)
        change = [weights[i] - nearest[i] for i in places]
        # the row that has entered has a weight of 0, which rises, since its score is below |x|^2
        weights = _reduced(weights, change)


def _affine_minimiser(block: list[list[int]], k: int, interrupted: Callable[[], bool]) -> list[int]:
    """Return weights, of a positive sum, of the point of the affine hull of rows that is nearest to the origin.

    The columns of `block` are the k rows, without the coordinates in which all of them are zero. With a null vector of
    the rows the point is the origin, or, if its sum is zero, the rows are affinely dependent. Else the weights lambda
    solve G lambda = -mu 1 and sum lambda = t, G being the Gram matrix: a null vector (mu, lambda, t) of one larger
    matrix.
    """
    found = null_vector(block, interrupted) if block else [1] * k
    if found is None:
        A = np.array(block, dtype=object)
        G = (A.T @ A).tolist()
        found = null_vector([[0] + [1] * k + [-1], *([1, *line, 0] for line in G)], interrupted)
        assert found is not None
        found = found[1:-1]
    common = math.gcd(*found) if sum(found) > 0 else -math.gcd(*found)
    return [value // common for value in found]


TRIVIAL = "looking for rows that contradict each other"  # the method of trivial certificates


class Candidate(NamedTuple):
    """A floating-point candidate of a method: w may separate, or rows with alpha_i > 0 may prove that no w does.

    Attributes
    ----------
    w : ndarray of shape (d,)
        Weights of the scaled columns of the exact rows.
    alpha : ndarray of shape (n,)
        Dual weights of the rows.
    method : str
    """

    w: np.ndarray
    alpha: np.ndarray
    method: str


@dataclass(eq=False)
class SeparatorSearch(ABC):
    """The search on two classes of rows.

    Parameters
    ----------
    problem : Problem
        The hard margin. An augmented intercept is replaced by a free one, which can separate the same classes and is
        simpler to decide.
    X : ndarray or CSR matrix of shape (n, d)
    y : ndarray of shape (n,), entries -1.0 and 1.0
    classes : tuple
        The labels of the negative and of the positive side.
    tol : float
        Relative width of the interval around the largest margin; inf for the verdict alone.
    deadline : Deadline
    algorithm : NormalisedAlgorithm, default=None
        Gives the floating-point candidates; None for the methods of `candidates`.
    start : ndarray of shape (n,), default=None
        Dual variables with which the algorithm has ended already.

    Attributes
    ----------
    kernel : Kernel
    method : str
        The last method in floating point.
    """

    problem: Problem
    X: Any
    y: np.ndarray
    classes: tuple[Any, Any]
    tol: float
    deadline: Deadline
    _: KW_ONLY
    algorithm: NormalisedAlgorithm | None = None
    start: np.ndarray | None = None
    method: str = field(init=False, default="nothing")
    kernel: Kernel = field(init=False)

    def __post_init__(self) -> None:
        self.problem = replace(self.problem, intercept="free" if self.problem.intercept != "none" else "none")
        # what all verdicts state
        self._common = {
            "p": self.problem.p, "bias": self.problem.free, "classes": self.classes, "kernel": self.kernel,
            "features": self.X.shape[1],
        }  # fmt: skip

    @abstractmethod
    def verdict(self) -> Verdict:
        """Search in the order of the module's docstring, and return the verdict."""

    def inseparable(self, weights: dict[int, Fraction], method: str) -> Inseparable:
        """Return the verdict on weights with sum weights_i y_i (phi(x_i), 1) = 0."""
        support = np.array(sorted(weights), dtype=np.int64)
        exact = tuple(weights[i] for i in support.tolist())
        seconds = time.perf_counter() - self.deadline.began
        fields = {"weights": exact, "rows": self.y.size, "method": method, "seconds": seconds}
        return Inseparable(support=support, **fields, **self._common)

    def undecided(self, reason: str, certificate: Certificate) -> Undecided:
        """Return the verdict Undecided, with the certificate of w = 0; the status of `deadline` replaces the reason."""
        reason = stopped_reason(self.deadline.status()) or reason
        return Undecided(reason=reason, **self.bound_fields(0.0, certificate, self.method))

    def bound_fields(self, lower: float, certificate: Certificate, method: str) -> dict[str, Any]:
        """Return all fields of a verdict with bounds of the largest margin: `lower`, and the certificate's upper bound.

        Rounding may put the upper bound below the lower one, and overflow may make it NaN.
        """
        upper = np.inf if np.isnan(certificate.upper) else max(certificate.upper, lower)
        seconds, certificate = time.perf_counter() - self.deadline.began, replace(certificate, lower=lower)
        fields = {"lo": lower, "hi": upper, "certificate": certificate, "method": method, "seconds": seconds}
        return fields | self._common


def about_all_rows(verdict: Verdict, rows: np.ndarray, n: int) -> Verdict:
    """Return a verdict on some rows of a data set as one on all n rows; `rows` are their numbers in it.

    A separator has no row numbers and is returned as it is.
    """
    if isinstance(verdict, Inseparable):
        return replace(verdict, support=rows[verdict.support], rows=n)
    if isinstance(verdict, Undecided):
        certificate = verdict.certificate
        fingerprint = replace(certificate.fingerprint, rows=n)
        certificate = replace(certificate, support=rows[certificate.support], fingerprint=fingerprint)
        return replace(verdict, certificate=certificate)
    return verdict


def candidates(
    rows: IntegerRows,
    deadline: Deadline,
    algorithm: NormalisedAlgorithm | None = None,
    start: np.ndarray | None = None,
) -> Iterator[Candidate]:
    """Yield floating-point candidates for separators and for weights of a proof, until the caller has proved one.

    OutOfTime is raised if the deadline passes. The order:

    1. the last iterate of `algorithm`. The next methods then use the rows with positive weights in it. Without an
       algorithm, on large data, a hundred steps of the smoothed Perceptron. Where the margin is not small, as in data
       with more columns than rows, they find a separator in a fraction of the time of the next methods; elsewhere they
       add a fraction of that time;
    2. the point of the hull that is nearest to the origin, by non-negative least squares on columns scaled to one size;
    3. on data too large for least squares, the linear program of p = inf, by row and column generation.

    With a free intercept, dense columns are shifted to their mid-range, which it absorbs, and divided by their
    half-ranges, rounded to powers of two: the values of a column far from zero differ in their last digits only.

    Parameters
    ----------
    rows : IntegerRows
    deadline : Deadline
    algorithm : NormalisedAlgorithm, default=None
    start : ndarray of shape (n,), default=None
        Dual variables with which the algorithm has ended; None to run it.
    """
    X: Any = rows.scaled
    y, spread = rows.y, np.ones(rows.d)
    require_time(deadline.interrupted)
    if rows.bias and not sp.issparse(X):
        top, bottom = X.max(axis=0), X.min(axis=0)
        spread = 0.5 * (top - bottom)
        spread = 2.0 ** np.round(np.log2(np.where(spread > 0.0, spread, 1.0)))
        X = X - 0.5 * (top + bottom)
        X /= spread
        require_time(deadline.interrupted)
    found, used = None, slice(None)
    if start is not None and algorithm is not None:
        found = Candidate(np.zeros(rows.d), start, algorithm.words)
    elif algorithm is not None:
        found = _last_iterate(algorithm, X, y, rows.bias, deadline)
    elif rows.n * rows.d >= 1e5:  # on smaller data least squares end as soon
        # the start, and a hundred steps
        found = _last_iterate(SmoothedPerceptron(), X, y, rows.bias, deadline, 101)
    if found is not None and (algorithm is not None or found.w.any()):
        yield found._replace(w=found.w / spread)
    require_time(deadline.interrupted)
    if found is not None and algorithm is not None and np.unique(y[found.alpha > 0.0]).size == 2:
        used = np.flatnonzero(found.alpha > 0.0)
    nearest = _by_least_squares(X[used], y[used], rows.bias)
    require_time(deadline.interrupted)
    points = _by_linear_program(X[used], y[used], rows.bias, deadline) if nearest is None else (nearest,)
    method = "a linear program" if nearest is None else "least squares"
    for w, weights in points:
        alpha = np.zeros(rows.n)
        alpha[used] = weights
        yield Candidate(
            w / spread, alpha, f"{algorithm.words}, {method} on its rows" if algorithm else method
        )


def _by_linear_program(
    X: Any, y: np.ndarray, bias: bool, deadline: Deadline
) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Yield w and dual variables of the linear program of p = inf, up to the first w that separates."""
    announce("a linear program")
    program = Problem("hinge", np.inf, p=np.inf, intercept="free" if bias else "none")
    check = StopCheck(deadline.interrupted, deadline.remaining)
    # without the first point, whose dual variables are those of all rows
    for w, b, alpha in islice(linear_points(program, X, y, np.ones(y.size), check), 1, None):
        yield w, alpha
        # a separator without a proof in float64 is left to exact arithmetic
        if float((y * (X @ w + b)).min()) > 0.0:
            return


def _last_iterate(
    algorithm: NormalisedAlgorithm,
    X: Any,
    y: np.ndarray,
    bias: bool,
    deadline: Deadline,
    most: int | None = None,
) -> Candidate | None:
    """Return the last of at most `most` iterates of an algorithm: w, zero if it is no separator, and dual variables.

    The constant feature of the intercept has the root mean square length of the rows as its value: with a smaller one
    the intercept would take a larger weight, and with a larger one the normalised rows of a class would be nearly
    equal. None is returned where the squared length of a row underflows.
    """
    announce(algorithm.words)
    try:
        patterns = NormalisedRows(X, y, float(row_squares(X).mean()) ** 0.5 if bias else 0.0)
    except ValueError:
        return None
    # one iterate is kept in memory
    (last,) = deque(islice(algorithm.until_end(patterns, deadline.interrupted), most), maxlen=1)
    w, _, alpha = patterns.solution(last)
    return Candidate(w if last.primal else np.zeros_like(w), alpha, algorithm.words)


def _by_least_squares(X: Any, y: np.ndarray, bias: bool) -> tuple[np.ndarray, np.ndarray] | None:
    """Minimise |(sum_i z_i a_i, sum_i z_i - 1)| over z >= 0, a_i = y_i (x_i, 1), by active sets.

    The residual (u, t) of the optimum has a_i.u + t >= 0 for all i, and t = -|(u, t)|^2 < 0 unless it is zero: then u
    separates, since a_i.u >= -t > 0. A residual of zero makes z a convex combination that gives the origin, of at
    most one row more than there are coordinates.

    Returns
    -------
    (u, z), or None where the data are too large, or SciPy's active sets do not end within their limit of steps
    """
    n, d = X.shape
    # a dense copy of 2e7 entries takes 160 MB, and 5e9 operations some seconds
    if n * d > 2e7 or float(n) * d * min(n, d) > 5e9 or (sp.issparse(X) and not may_be_dense(X)):
        return None
    announce("least squares")
    X = X.toarray() if sp.issparse(X) else X
    A = np.column_stack([X * y[:, None], *([y] if bias else []), np.ones(n)])
    target = np.zeros(A.shape[1])
    target[-1] = 1.0
    try:
        z, _ = nnls(A.T, target)
    except RuntimeError:
        return None
    return (z @ A - target)[:d], z


def trivial_certificate(X: Any, y: np.ndarray, zero_rows: bool) -> tuple[dict[int, Fraction] | None, Merged]:
    """Return weights of one or two rows that prove that there is no separator, and the distinct rows.

    Parameters
    ----------
    X : ndarray or CSR matrix of shape (n, d)
    y : ndarray of shape (n,), entries -1.0 and 1.0
    zero_rows : bool
        Equal rows of both classes are a proof; with `zero_rows`, so is a row of zeros.

    Returns
    -------
    weights : dict of row to Fraction, or None
        Of sum one, exact.
    distinct : Merged
        The rows without copies, in the order of the data; equal rows of both classes are one of them.
    """
    ones = np.ones(X.shape[0])
    distinct = merge(X, ones, ones, in_order=True)
    for group in np.intersect1d(distinct.groups[y > 0.0], distinct.groups[y < 0.0])[:1]:
        pair = (int(np.argmax((distinct.groups == group) & (y == sign))) for sign in (1.0, -1.0))
        return dict.fromkeys(pair, Fraction(1, 2)), distinct
    for row in np.setdiff1d(np.arange(y.size), X.nonzero()[0])[:1].tolist() if zero_rows else ():
        return {row: Fraction(1)}, distinct
    return None, distinct
