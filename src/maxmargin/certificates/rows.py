"""Sums over linear rows for the formulas of the module `bounds`, in plain or compensated arithmetic.

`certify` makes dual variables feasible and returns a certificate; `bounds` evaluates the bounds of feasible ones. The
module imports no solver. Where entries are huge, the lower bound may be that of real dual variables near alpha, which
are proved to exist and are not computed (`huge_columns`).
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress

import numpy as np

from ..numerics.stop_check import OutOfTime
from ..numerics.sums import SMALLEST_FLOAT, Arithmetic, Compensated, Plain, cut_short_if
from ..problem.problem import Problem
from . import bounds as formulas
from .bounds import Bounds, Length, Side
from .certificate import Certificate
from .dual_variables import even_out, feasible, with_exponent_zero
from .huge_columns import away_from_bounds, exact_bound, huge_columns
from .sample import Sample

# Compensated sums, which take ten to thirty times as long, replace plain ones where rounding is more than GAP_FRACTION
# times the gap, or, where the gap is at most `tol` already, more than TOL_FRACTION times `tol`. Larger fractions leave
# digits of the gap to rounding, smaller ones take time for digits that do not show in a gap. A rounding error of less
# than NEGLIGIBLE_ERROR times the bound is always accepted where the data have more than SMALL_DATA_ENTRIES entries;
# below that number the compensated sums take less than 3 ms.
GAP_FRACTION, TOL_FRACTION = 3e-3, 3e-2
NEGLIGIBLE_ERROR, SMALL_DATA_ENTRIES = 1e-10, 20_000


def certify(
    problem: Problem,
    sample: Sample,
    w: np.ndarray,
    b: float,
    alpha: np.ndarray,
    tol: float = 0.0,
    affords: Callable[[float], bool] = lambda seconds: True,
) -> Certificate:
    """Return the certificate of a primal point (w, b) and dual variables alpha, made feasible first.

    Parameters
    ----------
    problem : Problem
    sample : Sample
    w : ndarray of shape (d,)
    b : float
    alpha : ndarray of shape (n,)
        Any non-negative numbers, such as the dual variables of a solver's iterate.
    tol : float, default=0
        The gap that is asked for: rounding errors far below it are accepted.
    affords : callable
        Returns whether the deadline leaves time for compensated sums of so many seconds, which do not start otherwise.
        It is called with 0.0 while they run, and stops them by returning False.

    Notes
    -----
    Bounds are rounded outwards: they hold for the data and the variables in exact arithmetic. Sums are plain where
    their rounding is a negligible part of the gap, else compensated.
    """

    def bounded(alpha: np.ndarray, huge: np.ndarray | None) -> tuple[np.ndarray, Bounds]:
        """Return the best multiple of alpha and its bounds; the multiple ignores the columns `huge` of v."""
        alpha, v = _scale_dual(problem, sample, alpha, huge)
        found = bounds(problem, sample, w, b, alpha, Plain, v)
        return with_more_digits(problem, sample, w, b, alpha, found, tol, affords)

    y, weights = sample.y, sample.weights
    alpha = feasible(problem, y, weights, np.asarray(alpha, dtype=float))
    huge = huge_columns(problem, sample, alpha)
    dual, found = bounded(alpha, huge)
    if huge is not None and not found.lower > 0.0:
        # near these dual variables no real ones are proved to exist: try others, which are off their bounds
        near = feasible(problem, y, weights, away_from_bounds(problem, sample, alpha, huge))
        dual, found = bounded(near, huge)
        if not found.lower > 0.0:
            dual, found = bounded(alpha, None)
    return sample.certificate(problem, dual, found)


def _scale_dual(
    problem: Problem, sample: Sample, alpha: np.ndarray, huge: np.ndarray | None
) -> tuple[np.ndarray, np.ndarray | None]:
    """Return the multiple of alpha with the largest dual value, and its v = sum alpha_i y_i x_i.

    |v| is measured without the columns `huge`, which are assumed to cancel. The bound of a hard margin depends on the
    proportions of alpha only: alpha is returned as it is, and None for v.
    """
    if problem.hard:
        return alpha, None
    v = combination(problem, sample, alpha)
    v2 = Plain.square(v if huge is None else v[~huge], problem.p)
    multiple = problem.multiple(alpha, v2, sample.weights) if alpha.any() else 1.0
    return problem.capped(multiple * alpha, sample.weights), multiple * v


def combination(
    problem: Problem, sample: Sample, alpha: np.ndarray, arithmetic: Arithmetic = Plain
) -> np.ndarray:
    """Return v = sum alpha_i y_i x_i, of shape (d,), or (d + 1,) with the constant coordinate of an intercept."""
    signed = alpha * sample.y
    v = arithmetic.combine(sample.X, signed)
    return np.append(v, problem.rho * arithmetic.total(signed)) if problem.rho else v


def with_more_digits(
    problem: Problem,
    sample: Sample,
    w: np.ndarray,
    b: float,
    alpha: np.ndarray,
    found: Bounds,
    tol: float,
    affords: Callable[[float], bool],
) -> tuple[np.ndarray, Bounds]:
    """Recompute bounds by compensated sums where rounding is a large part of the gap; return alpha and the bounds.

    For a hard margin, also recompute them where rounding hides that (w, b) separates: the margin as computed is not
    negative, its lower bound is not positive. Both only if `affords` allows the time. Alpha is balanced again first
    where the intercept is free.

    Parameters
    ----------
    found : Bounds
        Those of plain sums.
    problem, sample, w, b, alpha, tol, affords
        As of `certify`; alpha is feasible.
    """
    # accepted rounding: GAP_FRACTION times the gap, or the larger of the two relative limits times the upper bound
    fraction = TOL_FRACTION if problem.gap(found.lower, found.upper) <= tol else GAP_FRACTION
    negligible = max(0.0 if sample.entries <= SMALL_DATA_ENTRIES else NEGLIGIBLE_ERROR, fraction * tol)
    allowed = max(GAP_FRACTION * (found.upper - found.lower), negligible * abs(found.upper))
    hides_separator = problem.hard and -found.below <= found.lower <= 0.0
    if found.below + found.above <= allowed and not hides_separator:
        return alpha, found
    if affords(Compensated.SECONDS * sample.entries):
        balanced = alpha.copy()
        if problem.free:  # the multiple has rounded the dual variables once more
            even_out(balanced, sample.y, problem.caps(sample.weights))
        with suppress(OutOfTime), cut_short_if(lambda: not affords(0.0)):
            found, alpha = bounds(problem, sample, w, b, balanced, Compensated), balanced
    return alpha, found


def bounds(
    problem: Problem,
    sample: Sample,
    w: np.ndarray,
    b: float,
    alpha: np.ndarray,
    arithmetic: Arithmetic = Plain,
    v: np.ndarray | None = None,
) -> Bounds:
    """Compute the bounds of (w, b) and feasible dual variables from the data.

    Parameters
    ----------
    problem : Problem
    sample : Sample
    w : ndarray of shape (d,)
    b : float
    alpha : ndarray of shape (n,)
        Feasible. For a hard margin they are multiplied by a power of two here, as the square of a tiny |v| would
        underflow. A factor that rounds would change the bound where the terms of v cancel.
    arithmetic : Plain or Compensated, default=Plain
    v : ndarray, default=None
        The `combination` of a soft problem, where the caller has computed it; None to compute it here.
    """
    if problem.hard:
        alpha, v = with_exponent_zero(alpha), None
    with np.errstate(over="ignore", invalid="ignore"):
        huge = huge_columns(problem, sample, alpha)
        primal = _primal_side(problem, sample, w, b, arithmetic, by_terms=huge is not None)
        dual = _dual_side(problem, sample, alpha, arithmetic, v)
        found = formulas.combine_sides(problem, dual, primal)
        if problem.hard and primal.value > 0.0 and not found.below <= NEGLIGIBLE_ERROR * found.lower:
            # |x_i| |w| bounds the rounding of a score too loosely to prove this margin where columns differ in size
            primal = _primal_side(problem, sample, w, b, arithmetic, by_terms=True)
            found = formulas.combine_sides(problem, dual, primal)
        if huge is None:
            return found
        exact = exact_bound(problem, sample, alpha, huge)
        # both bounds are valid: the larger one is returned
        if exact is not None and exact.bound > found.lower:
            return found._replace(lower=exact.bound, below=exact.rounding)
        return found


def attained_margin(problem: Problem, sample: Sample, w: np.ndarray, b: float) -> float:
    """Return a lower bound of min y_i (w.x_i + b) / |w|_q of a hard margin, from compensated sums, rounded downwards.

    NaN or -inf where w is zero or sums overflow. Shapes are those of `certify`.
    """
    with np.errstate(over="ignore", invalid="ignore"):
        return _primal_side(problem, sample, w, b, Compensated, by_terms=True).bound


def _primal_side(
    problem: Problem, sample: Sample, w: np.ndarray, b: float, arithmetic: Arithmetic, by_terms: bool
) -> Side:
    """Return the bound that (w, b) proves, from margins y_i (w.x_i + b) and the rounding error bound of each.

    The absolute values of the terms of a score sum to at most |x_i| |w| + |b| (Cauchy and Schwarz). With `by_terms`
    the sum is computed, sum_j |x_ij w_j| + |b|: this takes another pass over the data, and is much smaller where
    columns differ in size. The factor 1.01 covers the rounding of either. Each product may underflow, and so may the
    four products of split factors (compensated sums): 8 times the smallest number is more than their errors.
    """
    width = sample.width
    margins = arithmetic.scores(sample.X, w, b)
    margins *= sample.y
    if by_terms:
        size = 1.01 * Plain.scores(abs(sample.X), np.abs(w)) + abs(b)
    else:
        size = sample.norms * (1.01 * Plain.norm(w)) + abs(b)
    errors = arithmetic.error(margins, size, arithmetic.terms(sample.X, width, 1) + 1)
    errors += 8.0 * (width + 2.0) * SMALLEST_FLOAT
    length = formulas.norm_interval(problem.weights(w, b), problem.q, arithmetic)
    return formulas.primal_side(problem, sample.weights, margins, errors, length, arithmetic)


def _dual_side(
    problem: Problem, sample: Sample, alpha: np.ndarray, arithmetic: Arithmetic, v: np.ndarray | None
) -> Side:
    """Return the bound that alpha proves; `v` is its `combination`, None to compute it."""
    count = int(np.count_nonzero(alpha))
    v = combination(problem, sample, alpha, arithmetic) if v is None else v
    # sum alpha_i |x_i|, the constant coordinate included: the total length of the terms of v
    spread = float(alpha @ sample.norms) + problem.rho * float(alpha.sum())
    uneven = formulas.imbalance(alpha, sample.y) if problem.free else 0.0
    underflow = 0.0
    if spread > 0.0 or problem.rho or sample.norms[alpha > 0.0].any():
        # in each coordinate every product may underflow, and so may the halves of split factors (compensated sums)
        underflow = 8.0 * (count + 1.0) * v.size * SMALLEST_FLOAT
    terms = arithmetic.terms(sample.X, count, 0)
    moved = uneven * longest_used(sample, alpha) if uneven > 0.0 else 0.0
    length = dual_length(problem, arithmetic, v, spread, terms, moved, underflow)
    return formulas.dual_side(problem, sample.weights, alpha, length, uneven, arithmetic)


def longest_used(sample: Sample, alpha: np.ndarray) -> float:
    """Return the length of the longest row with a dual variable above 0.

    Scaling the heavier class down to the total of the other moves v by at most this times |sum alpha_i y_i|.
    """
    return float(sample.norms.max(where=alpha > 0.0, initial=0.0))


def dual_length(
    problem: Problem,
    arithmetic: Arithmetic,
    v: np.ndarray,
    spread: float,
    terms: int,
    moved: float,
    underflow: float = 0.0,
) -> Length:
    """Return |v|_p of a computed v = sum alpha_i y_i x_i, with the interval that its errors give.

    The error of v is the rounding of its sums, and its change where the heavier class is scaled down. Lengths of rows
    are 2-norms: |x|_p <= d^(1/p - 1/2) |x|_2 for p < 2, and |x|_p <= |x|_2 else.

    Parameters
    ----------
    problem : Problem
    arithmetic : Plain or Compensated
        The arithmetic of the sums that made v.
    v : ndarray of shape (d,), or (d + 1,) with the constant coordinate
    spread : float
        sum alpha_i |x_i|, the total length of the terms of v.
    terms : int
        The largest number of terms of v that are added in sequence.
    moved : float
        The 2-norm of the change of v where the heavier class is scaled down: at most |sum alpha_i y_i| times
        `longest_used` where the intercept is free, else 0.
    underflow : float, default=0
        Error bound of products that underflow.
    """
    factor = max(v.size, 1) ** (1.0 / problem.p - 0.5) if problem.p < 2.0 else 1.0
    size = arithmetic.norm(v, problem.p)
    v_error = arithmetic.error(size, factor * spread, terms) + factor * moved + underflow
    return formulas.norm_interval(v, problem.p, arithmetic, v_error)
