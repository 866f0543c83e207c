"""Both bounds of a linear problem from one pass over blocks of rows, rounded outwards, and their formulas.

With alpha within its caps, v = sum alpha_i y_i x_i and m_i = y_i (w.x_i + b),

* soft:  sum alpha_i - sum alpha_i^2 / (4 C s_i) - 1/2 |v|^2  <=  optimum  <=  1/2 |w|^2 + losses,
* hard:  min m_i / |w|  <=  largest margin  <=  |v| / sum alpha_i,

v being measured in the p-norm and w in the dual q-norm: Hoelder's inequality is all that is used. With the norm to the
first power (`power=1`) the soft bounds are (sum alpha_i - sum alpha_i^2 / (4 C s_i)) / max(1, |v|) and |w| + losses.

`point_sums` and `dual_sums` run on a dense or CSR block of rows, wherever it is (memory, a memory map, a partition),
`merge` adds those of two blocks, and `primal_side` and `bound_of_dual` need the sums alone. Kernel rows (`gram`)
share the formulas, `dual_side` and `primal_side`.

Here s_i is the sample weight of row i, rho (`Problem.rho`) the constant coordinate of an augmented intercept, which
belongs to the rows and to |w|; a free intercept does not.

Rounding. A sum of k products in any order is off by at most `Plain.error(sum of absolute values, k)`. The absolute
values sum to at most |x_i|_2 |w|_2 for a score (Cauchy and Schwarz), and the error of v to at most that of
sum alpha_i |x_i|_2 in the 2-norm (triangle inequality). A second pass bounds the errors of scores by their own terms
where they matter, and a third, `exact_dual_side` and `_exact_side`, rounds each sum once. A free intercept needs
sum alpha_i y_i = 0: the class with the larger total is scaled down to that of the other by a computed factor. By what
remains, at most `uneven`, it is scaled down once more, in the account of rounding alone: this takes at most `uneven`
from the gains, and moves v by at most `balancing_change`.

A certificate of many rows need not store a dual variable for each of them: two points imply them (`ImpliedDual`), the
beginning and the end of a step of Newton's method. The loss of a row, phi(m), is replaced by its Taylor polynomial of
second order at the margin m0_i of the row at the first point. The dual variable of the row is minus the derivative of
the polynomial at the margin m1_i of the second point, clipped to the feasible interval, times a factor for each class::

    alpha_i = clip(-phi'(m0_i) - phi''(m0_i) (m1_i - m0_i), 0, cap_i)

For the hinge alpha_i is C s_i for rows with m0_i < 1, and 0 for the others. Rows whose dual variables are stored one by
one are excepted.
"""

from __future__ import annotations

from functools import reduce
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from ..numerics.sums import EPS, TINY, Plain, exact_products, exact_total, norm, row_blocks
from ..problem.problem import Problem

if TYPE_CHECKING:
    from .certificate import Certificate, ImpliedDual, Sample

# Rounding error of a primal bound, as a fraction of it, above which the error of each score is bounded by its own terms
NEGLIGIBLE_ERROR = 1e-9


class Bounds(NamedTuple):
    """A lower and an upper bound, rounded outwards; `below` and `above` are the rounding margins they contain."""

    lower: float
    upper: float
    below: float
    above: float


class Side(NamedTuple):
    """One bound, and the rounding margin that it contains: its distance from the value as computed in float64."""

    bound: float
    rounding: float


class Length(NamedTuple):
    """A norm as computed, and an interval that holds the exact one."""

    value: float
    low: float
    high: float


class PointSums(NamedTuple):
    """Sums over rows for the bound of a primal point.

    Attributes
    ----------
    losses, worst : float
        Losses of the margins as computed, and of the margins minus their error bounds; 0 for a hard margin.
    smallest, least : float
        The smallest margin as computed, and that of the margins minus their error bounds.
    terms : int
        Successive additions in each sum, at most.
    """

    losses: float
    worst: float
    smallest: float
    least: float
    terms: int

    def merge(self, other: PointSums) -> PointSums:
        """Return the sums over the rows of both."""
        # NaN if one is: where a score overflows, no margin is known
        smallest, least = np.minimum(self[2:4], other[2:4]).tolist()
        losses, worst = self.losses + other.losses, self.worst + other.worst
        return PointSums(losses, worst, smallest, least, max(self.terms, other.terms) + 1)


class DualSums(NamedTuple):
    """Sums over rows for the bound of dual variables; the first entries are of the negative class.

    Attributes
    ----------
    total, cost, spread : ndarray of shape (2,)
        sum alpha_i, sum alpha_i^2 / (4 C s_i) of the squared hinge, and sum alpha_i |x_i|.
    v : ndarray of shape (2, d)
        sum alpha_i y_i x_i, without a constant coordinate.
    room : float
        The largest factor by which all dual variables may be multiplied within their caps.
    terms : int
        Successive additions in each sum, at most.
    """

    total: np.ndarray
    cost: np.ndarray
    spread: np.ndarray
    v: np.ndarray
    room: float
    terms: int

    def merge(self, other: DualSums) -> DualSums:
        """Return the sums over the rows of both."""
        total, cost, spread, v = (a + b for a, b in zip(self[:4], other[:4], strict=True))
        return DualSums(total, cost, spread, v, min(self.room, other.room), max(self.terms, other.terms) + 1)


def score_errors(X: Any, w: np.ndarray, b: float, norms: np.ndarray, by_terms: bool = False) -> np.ndarray:
    """Return bounds of the rounding errors of the scores X w + b, shape (n,); `norms` are |x_i|.

    With `by_terms` the absolute values of the terms are summed, which is a product with the rows, and much less than
    |x_i| |w| where columns differ in size. The factor 1.01 covers the rounding of either.
    """
    size = Plain.scores(abs(X), np.abs(w)) if by_terms else norms * norm(w)
    width = int(np.diff(X.indptr).max(initial=0)) if sp.issparse(X) else w.size
    return Plain.error(1.01 * size + abs(b), width + 1)


def point_sums(problem: Problem, margins: np.ndarray, errors: Any, weights: np.ndarray) -> PointSums:
    """Return the sums of rows with these margins y_i (w.x_i + b), whose errors are at most `errors`."""
    both = np.where(weights > 0.0, [margins, margins - errors], np.inf)
    smallest, least = both.min(axis=1, initial=np.inf).tolist()
    losses, worst = (0.0, 0.0) if problem.hard else problem.losses(both, weights).sum(axis=1).tolist()
    return PointSums(losses, worst, smallest, least, margins.size)


def dual_sums(
    problem: Problem, X: Any, y: np.ndarray, weights: np.ndarray, alpha: np.ndarray, norms: np.ndarray
) -> DualSums:
    """Return the sums of dense or CSR rows, of labels -1.0 and 1.0, with dual variables within their caps."""
    sides = np.array([alpha * (y < 0.0), alpha * (y > 0.0)])
    signed = sides * y
    v = np.asarray(X.T @ signed.T).T if sp.issparse(X) else signed @ X
    used, room, cost = alpha > 0.0, np.inf, np.zeros(2)
    if problem.loss == "squared_hinge" and not problem.hard:
        cost = sides @ np.divide(alpha, 4.0 * problem.C * weights, where=used, out=np.zeros(y.size))
    elif problem.cap < np.inf and used.any():
        room = float((problem.cap * weights[used] / alpha[used]).min()) * (1.0 - 4.0 * EPS)
    terms = int(np.count_nonzero(used)) + 1
    return DualSums(sides.sum(axis=1), cost, sides @ norms, np.asarray(v, float), room, terms)


def bound_of_dual(problem: Problem, sums: DualSums, scaled: bool = False) -> tuple[Side, np.ndarray]:
    """Return the bound of the dual variables after those of each class are multiplied by a factor, and the two factors.

    With a free intercept the heavier class is scaled down to the total of the other. With `scaled` all dual variables
    of a soft problem are then multiplied by the t, within the caps, that maximises their dual objective.
    """
    nothing = Side(np.inf if problem.hard else 0.0, 0.0), np.zeros(2)
    total, free = sums.total, problem.free
    if not (total.min() if free else total.sum()) > 0.0:
        return nothing
    factors = total.min() / total if free else np.ones(2)
    v, constant = factors @ sums.v, problem.rho * float(total[1] - total[0])
    v = np.append(v, constant) if problem.rho else v
    gains, cost, underflow = float(factors @ total), float(factors @ (factors * sums.cost)), TINY
    if scaled and not problem.hard:
        t = problem.multiple(gains, cost, norm(v, problem.p), sums.room)
        factors, v, gains, cost = t * factors, t * v, t * gains, t * t * cost
        underflow = TINY * max(t, 1.0) ** 2
    if not (gains > 0.0 and np.isfinite(gains + cost + underflow) and np.isfinite(v).all()):
        return nothing
    spread = float(factors @ sums.spread) + problem.rho * gains
    minus, plus = (factors * total).tolist()
    uneven = abs(plus - minus) + Plain.error(gains, sums.terms) if free else 0.0
    error = Plain.error(gains + cost, sums.terms) + uneven + underflow
    v_error = Plain.error(spread, sums.terms) + balancing_change(uneven, gains, spread) + underflow
    length = norm_interval(v, problem.p, v_error)
    return dual_side(problem, gains - cost, gains + cost, error, length), factors


def balancing_change(uneven: float, total: float, spread: float) -> float:
    """Return by how much v moves in the 2-norm where the heavier class is scaled down to the total of the other.

    `uneven` is |sum alpha_i y_i|, `total` sum alpha_i, and `spread` sum alpha_i |x_i|. The heavier class has at least
    half of the total: each of its dual variables falls by at most the share 2 uneven / total. The factor
    2.02 covers the rounding of the sums.
    """
    return 2.02 * uneven / total * spread if uneven > 0.0 else 0.0


def dual_side(problem: Problem, gains: float, size: float, error: float, length: Length) -> Side:
    """Return the bound that feasible dual variables prove.

    Parameters
    ----------
    problem : Problem
    gains : float
        sum alpha_i - sum alpha_i^2 / (4 C s_i); sum alpha_i of a hard margin and of the hinge.
    size : float
        The sum of the absolute values of all terms of the gains.
    error : float
        Error bound of the gains.
    length : Length
        |v|.
    """
    least = gains - error
    if problem.hard:
        if not least > 0.0:
            return Side(np.inf, 0.0)
        value, bound = length.value / gains, length.high / least * (1.0 + 4.0 * EPS)
    elif problem.power == 1:  # gains are concave, and 0 at 0: scaling down keeps at least this part of them
        least -= 4.0 * EPS * size
        value = gains / max(length.value, 1.0)
        bound = least / max(length.high, 1.0) * (1.0 - 4.0 * EPS) if least > 0.0 else least
    else:  # gains, squares and differences are at most eight roundings of size + |v|^2
        value = gains - 0.5 * length.value * length.value
        bound = least - 0.5 * length.high * length.high - 4.0 * EPS * (size + length.high * length.high)
    rounding = abs(bound - value)
    # NaN, where sums have overflowed, is no bound
    return Side(bound, rounding) if rounding < np.inf else Side(np.inf if problem.hard else -np.inf, np.inf)


def primal_side(problem: Problem, sums: PointSums, length: Length) -> Side:
    """Return the bound that a primal point proves; `length` is |w| with the weight of an augmented intercept."""
    if problem.hard:
        divisor = length.high if sums.least > 0.0 else length.low
        if not (divisor > 0.0 and length.value > 0.0):
            return Side(-np.inf, 0.0)
        value, bound = sums.smallest / length.value, sums.least / divisor
        bound -= 4.0 * EPS * abs(bound) + TINY
    else:  # each loss is at most five roundings of its value, the penalty two, both additions two
        value, bound = problem.penalty(length.value) + sums.losses, problem.penalty(length.high) + sums.worst
        bound += Plain.error(sums.worst, sums.terms) + 4.0 * EPS * bound
    rounding = abs(bound - value)
    return Side(bound, rounding) if rounding < np.inf else Side(-np.inf if problem.hard else np.inf, np.inf)


def combine_sides(problem: Problem, dual: Side, primal: Side) -> Bounds:
    """Combine the bounds of a dual and a primal point: the dual one is the upper bound of a hard margin, else lower."""
    lower, upper = (primal, dual) if problem.hard else (dual, primal)
    return Bounds(lower.bound, upper.bound, lower.rounding, upper.rounding)


def norm_interval(v: np.ndarray, exponent: float, v_error: float = 0.0) -> Length:
    """Return the norm of a vector as computed, with an interval that holds the norm of the exact vector.

    The exact vector differs from v, of shape (d,), by at most `v_error` in the 2-norm. |v|_p <= d^(1/p - 1/2) |v|_2 for
    exponents p < 2, and |v|_p <= |v|_2 else. Each power of a p-norm is off by a few units of the last digit, and by p
    times the rounding of its base; the root divides relative errors by p, and so it does with the rounding of the sum.
    """
    v = np.asarray(v, float)  # in float32 the norm would round more than is counted
    value = norm(v, exponent)
    of_powers = 0.0 if exponent == 2.0 or np.isinf(exponent) else (v.size / exponent + 16.0) * EPS
    in_norm = max(v.size, 1) ** max(1.0 / exponent - 0.5, 0.0)
    error = Plain.error(value, v.size) + value * of_powers + in_norm * v_error
    error *= 1.0 + 4.0 * EPS
    return Length(value, max(value - error, 0.0), value + error)


def certify(
    problem: Problem, sample: Sample, w: np.ndarray, b: float, alpha: np.ndarray, tol: float = 0.0
) -> Certificate:
    """Return the certificate of a primal point (w, b) and dual variables alpha, made feasible first.

    Bounds are rounded outwards: they hold for the data and the variables in exact arithmetic.

    Parameters
    ----------
    problem : Problem
    sample : Sample
    w : ndarray of shape (d,)
    b : float
    alpha : ndarray of shape (n,)
        Any numbers, such as the dual variables of a solver's iterate; negative ones become 0.
    tol : float, default=0
        The gap that is asked for: where rounding is what keeps the gap above it, sums are exact.
    """
    alpha = problem.capped(np.asarray(alpha, dtype=float), sample.weights)
    alpha = proportions(alpha) if problem.hard else alpha
    alpha, found = bounds_to(problem, sample, w, b, alpha, tol, scaled=True)
    if not (problem.hard or found.lower >= 0.0):  # zeros prove 0, which is more than rounding has left
        alpha, found = np.zeros_like(alpha), found._replace(lower=0.0, below=0.0)
    return sample.certificate(problem, alpha, found)


def bounds_to(
    problem: Problem,
    sample: Sample,
    w: np.ndarray,
    b: float,
    alpha: np.ndarray,
    tol: float,
    scaled: bool = False,
) -> tuple[np.ndarray, Bounds]:
    """Return feasible dual variables, and the bounds; parameters as of `certify`, `scaled` as of `bound_of_dual`.

    Sums are exact where rounding is a tenth or more of a gap above `tol`, or hides that a hard margin is positive. They
    are of the dual variables as given unless `scaled`: those of a claim prove less where they are rounded once more.
    """
    points, duals = [], []
    with np.errstate(over="ignore", invalid="ignore"):
        length = norm_interval(problem.weights(w, b), problem.q)
        for rows, X in row_blocks(sample.X, in_cache=True):
            y, weights, norms = sample.y[rows], sample.weights[rows], sample.norms[rows]
            margins, errors = y * Plain.scores(X, w, b), score_errors(X, w, b, norms)
            points.append(point_sums(problem, margins, errors, weights))
            duals.append(dual_sums(problem, X, y, weights, alpha[rows], norms))
        point = reduce(PointSums.merge, points)
        primal = primal_side(problem, point, length)
        dual, factors = bound_of_dual(problem, reduce(DualSums.merge, duals), scaled)
        separates = not problem.hard or point.smallest > 0.0
        if separates and not primal.rounding <= NEGLIGIBLE_ERROR * abs(primal.bound):
            primal = _side_by_terms(problem, sample, w, b, length)
    found = combine_sides(problem, dual, primal)
    if scaled:
        alpha = problem.capped(alpha * np.where(sample.y > 0.0, factors[1], factors[0]), sample.weights)
    hidden = problem.hard and -found.below <= found.lower <= 0.0
    small = found.below + found.above <= 0.1 * (found.upper - found.lower)
    if hidden or not (small or problem.gap(found.lower, found.upper) <= tol):
        other = evened(alpha, sample.y) if problem.free else alpha
        dual, primal = exact_dual_side(problem, sample, other), _exact_side(problem, sample, w, b, length)
        better = combine_sides(problem, dual, primal)
        if problem.gap(better.lower, better.upper) < problem.gap(found.lower, found.upper):
            return other, better
    return alpha, found


def attained_margin(
    problem: Problem, sample: Sample, w: np.ndarray, b: float, claimed: float | None = None
) -> float:
    """Return a lower bound of min y_i (w.x_i + b) / |w|_q of a hard margin, rounded downwards; -inf for none.

    Sums are exact where others do not prove that the margin is positive, and as large as `claimed`. Exact sums prove
    what others have proved, in any order of the terms; without a claim their bound is lowered by a part in 1e12, more
    than the rounding of |w| elsewhere, so that the same sums prove it again.
    """
    with np.errstate(over="ignore", invalid="ignore"):
        length = norm_interval(problem.weights(w, b), problem.q)
        plain = _side_by_terms(problem, sample, w, b, length)
        proved = plain.bound > 0.0 and plain.bound >= (claimed or 0.0)
        if proved or not plain.bound + plain.rounding > 0.0:
            return plain.bound
        exact = _exact_side(problem, sample, w, b, length).bound
        return exact if claimed is not None else exact - 1e-12 * abs(exact)


def _side_by_terms(problem: Problem, sample: Sample, w: np.ndarray, b: float, length: Length) -> Side:
    """Return the bound of (w, b), the error of each score being bounded by its own terms."""
    points = []
    for rows, X in row_blocks(sample.X, in_cache=True):
        margins = sample.y[rows] * Plain.scores(X, w, b)
        errors = score_errors(X, w, b, sample.norms[rows], by_terms=True)
        points.append(point_sums(problem, margins, errors, sample.weights[rows]))
    return primal_side(problem, reduce(PointSums.merge, points), length)


def exact_dual_side(problem: Problem, sample: Sample, alpha: np.ndarray) -> Side:
    """Return the bound of feasible dual variables from exact sums, each rounded once."""
    with np.errstate(over="ignore", invalid="ignore"):
        signed = alpha * sample.y
        v = exact_products(sample.X.T.tocsr() if sp.issparse(sample.X) else sample.X.T, signed)
        v = np.append(v, problem.rho * exact_total(signed)) if problem.rho else v
        gains, size = exact_total(problem.gains(alpha, sample.weights)), float(alpha.sum())
        uneven = imbalance(alpha, sample.y) if problem.free else 0.0
        v_error = balancing_change(uneven, size, float(alpha @ sample.norms)) + EPS * norm(v) + TINY
        length = norm_interval(v, problem.p, v_error)
        return dual_side(problem, gains, 2.0 * size - gains, uneven + EPS * size, length)


def _exact_side(problem: Problem, sample: Sample, w: np.ndarray, b: float, length: Length) -> Side:
    """Return the bound of (w, b) from exact scores."""
    with np.errstate(over="ignore", invalid="ignore"):
        margins = sample.y * exact_products(sample.X, w, b)
        # b of shifted rows is that of the caller's rows and w.shift, rounded once
        errors = EPS * (np.abs(margins) + (0.0 if sample.shift is None else abs(b))) + TINY
        return primal_side(problem, point_sums(problem, margins, errors, sample.weights), length)


def evened(alpha: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Return dual variables, none larger than in alpha, of the same total in both classes.

    The excess of a class is subtracted from its largest dual variable, and what rounding leaves of it from its smallest
    one that is larger: small dual variables of rows that are long keep their digits.
    """
    even = alpha.copy()
    for place in (np.nanargmax, np.nanargmin, np.nanargmin):
        excess = exact_total(even * y)
        allowed = np.where((y * excess > 0.0) & (even >= abs(excess)), even, np.nan)
        if np.isnan(allowed).all():
            break
        even[place(allowed)] -= abs(excess)
    return even


def imbalance(alpha: np.ndarray, y: np.ndarray) -> float:
    """Return |sum alpha_i y_i|, rounded upwards, for alpha and y of shape (n,)."""
    return abs(exact_total(alpha * y)) * (1.0 + EPS)


def proportions(alpha: np.ndarray) -> np.ndarray:
    """Return alpha scaled to a sum of one; zeros if it cannot be scaled."""
    total = float(alpha.sum())
    return alpha / total if 0.0 < total < np.inf else np.zeros_like(alpha)


def slopes(problem: Problem, margins: np.ndarray, weights: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return -phi' and phi'' of the losses of a soft margin, for rows of these margins: shape (n,) each."""
    slack, costs = np.maximum(1.0 - margins, 0.0), problem.C * weights * (margins < 1.0)
    return (costs, np.zeros(slack.size)) if problem.loss == "hinge" else (2.0 * costs * slack, 2.0 * costs)


def implied(problem: Problem, first: np.ndarray, second: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Return the dual variables that the margins at the first and at the second point imply: shape (n,)."""
    slope, curvature = slopes(problem, first, weights)
    return problem.capped(slope - curvature * (second - first), weights)


def implied_by_points(
    problem: Problem, sample: Sample, points: ImpliedDual, rows: np.ndarray, given: np.ndarray
) -> np.ndarray:
    """Return the dual variables of all rows of a sample, of which some are given: shape (n,).

    Parameters
    ----------
    problem : Problem
    sample : Sample
    points : ImpliedDual
    rows, given : ndarray of shape (k,)
        The rows whose dual variables are given, and the dual variables before they are multiplied by the factors.
    """
    first = _margins(points.first_w, points.first_b, sample)
    second = _margins(points.second_w, points.second_b, sample)
    found = implied(problem, first, second, sample.weights)
    found[rows] = given
    return found * np.where(sample.y > 0.0, points.plus, points.minus)


def _margins(w: np.ndarray, b: float, sample: Sample) -> np.ndarray:
    """Return y_i (w.x_i + b) of the rows of a sample: shape (n,)."""
    return sample.y * Plain.scores(sample.X, w if sample.columns is None else sample.columns.restrict(w), b)
