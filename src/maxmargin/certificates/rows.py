"""Sums over linear rows for the formulas of the module `bounds`.

`certify` makes dual variables feasible and returns a certificate; `bounds` evaluates the bounds of feasible ones. The
module imports no solver.
"""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp

from ..numerics.sums import EPS, SMALLEST_FLOAT, Plain, exact_products, exact_total
from ..problem.problem import Problem
from . import bounds as formulas
from .bounds import Bounds, Length, Side
from .certificate import Certificate
from .dual_variables import even_out, feasible, with_exponent_zero
from .sample import Sample

# Rounding error of a primal bound, as a fraction of it, above which the error of each score is bounded by its own terms
NEGLIGIBLE_ERROR = 1e-9


def certify(
    problem: Problem, sample: Sample, w: np.ndarray, b: float, alpha: np.ndarray, tol: float = 0.0
) -> Certificate:
    """Return the certificate of a primal point (w, b) and dual variables alpha, made feasible first.

    Bounds are rounded outwards: they hold for the data and the variables in exact arithmetic. Where rounding is what
    keeps the gap above `tol`, sums are exact.

    Parameters
    ----------
    problem : Problem
    sample : Sample
    w : ndarray of shape (d,)
    b : float
    alpha : ndarray of shape (n,)
        Any non-negative numbers, such as the dual variables of a solver's iterate.
    tol : float, default=0
        The gap that is asked for.
    """
    given = feasible(problem, sample.y, sample.weights, np.asarray(alpha, dtype=float))
    alpha, v = _best_multiple(problem, sample, given)
    found = bounds(problem, sample, w, b, alpha, v)
    if is_hidden_by_rounding(problem, found, tol):
        other, _ = _best_multiple(problem, sample, given, exact=True)
        if problem.free:  # the multiple has rounded the dual variables once more
            even_out(other, sample.y, problem.caps(sample.weights))
        better = bounds(problem, sample, w, b, other, exact=True)
        if problem.gap(better.lower, better.upper) < problem.gap(found.lower, found.upper):
            alpha, found = other, better
    if not (problem.hard or found.lower >= 0.0):  # zeros prove 0, which is more than rounding has left
        alpha, found = np.zeros_like(alpha), found._replace(lower=0.0, below=0.0)
    return sample.certificate(problem, alpha, found)


def is_hidden_by_rounding(problem: Problem, found: Bounds, tol: float) -> bool:
    """Return whether rounding is a tenth or more of a gap above `tol`, or hides that a hard margin is positive."""
    if problem.hard and -found.below <= found.lower <= 0.0:
        return True
    rounding = found.below + found.above
    return problem.gap(found.lower, found.upper) > tol and not rounding <= 0.1 * (found.upper - found.lower)


def _best_multiple(
    problem: Problem, sample: Sample, alpha: np.ndarray, exact: bool = False
) -> tuple[np.ndarray, np.ndarray | None]:
    """Return the multiple of alpha with the largest dual value, and its `combination`.

    The bound of a hard margin depends on the proportions of alpha only: a copy of alpha and None.
    """
    if problem.hard or not alpha.any():
        return alpha.copy(), None
    v = combination(problem, sample, alpha, exact)
    multiple = problem.multiple(alpha, Plain.square(v, problem.p), sample.weights)
    return problem.capped(multiple * alpha, sample.weights), multiple * v


def combination(problem: Problem, sample: Sample, alpha: np.ndarray, exact: bool = False) -> np.ndarray:
    """Return v = sum alpha_i y_i x_i, of shape (d,), or (d + 1,) with the constant coordinate of an intercept."""
    signed = alpha * sample.y
    if exact:
        columns = sample.X.T.tocsr() if sp.issparse(sample.X) else sample.X.T
        v, total = exact_products(columns, signed), exact_total(signed)
    else:
        v, total = Plain.combine(sample.X, signed), Plain.total(signed)
    return np.append(v, problem.rho * total) if problem.rho else v


def bounds(
    problem: Problem,
    sample: Sample,
    w: np.ndarray,
    b: float,
    alpha: np.ndarray,
    v: np.ndarray | None = None,
    exact: bool = False,
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
    v : ndarray, default=None
        The `combination` of a soft problem, where the caller has computed it; None to compute it here.
    exact : bool, default=False
        Whether scores and v are exact sums, rounded once.
    """
    if problem.hard:
        alpha, v = with_exponent_zero(alpha), None
    with np.errstate(over="ignore", invalid="ignore"):
        primal = _primal_side(problem, sample, w, b, exact=exact)
        separates = not exact and (not problem.hard or primal.value > 0.0)
        if separates and not primal.rounding <= NEGLIGIBLE_ERROR * abs(primal.value):
            # |x_i| |w| bounds the rounding of a score too loosely where columns differ in size
            primal = _primal_side(problem, sample, w, b, by_terms=True)
        return formulas.combine_sides(problem, _dual_side(problem, sample, alpha, v, exact), primal)


def bounds_to(
    problem: Problem, sample: Sample, w: np.ndarray, b: float, alpha: np.ndarray, tol: float
) -> Bounds:
    """Return `bounds` of (w, b) and feasible dual variables, from exact sums where plain ones prove no gap of `tol`."""
    found = bounds(problem, sample, w, b, alpha)
    if problem.gap(found.lower, found.upper) <= tol:
        return found
    better = bounds(problem, sample, w, b, alpha, exact=True)
    return min(found, better, key=lambda one: problem.gap(one.lower, one.upper))


def attained_margin(problem: Problem, sample: Sample, w: np.ndarray, b: float) -> float:
    """Return a lower bound of min y_i (w.x_i + b) / |w|_q of a hard margin, rounded downwards.

    NaN or -inf where w is zero or sums overflow. Shapes are those of `certify`.
    """
    with np.errstate(over="ignore", invalid="ignore"):
        plain = _primal_side(problem, sample, w, b, by_terms=True)
        proved = plain.bound > 0.0 or not plain.value > 0.0
        return plain.bound if proved else _primal_side(problem, sample, w, b, exact=True).bound


def _primal_side(
    problem: Problem, sample: Sample, w: np.ndarray, b: float, by_terms: bool = False, exact: bool = False
) -> Side:
    """Return the bound that (w, b) proves, from margins y_i (w.x_i + b) and the rounding error bound of each.

    The absolute values of the terms of a score sum to at most |x_i| |w| + |b| (Cauchy and Schwarz). With `by_terms`
    the sum is computed, sum_j |x_ij w_j| + |b|: this takes another pass over the data, and is much smaller where
    columns differ in size. The factor 1.01 covers the rounding of either. Exact sums are rounded once. Each product may
    underflow, and so may the four of its halves (exact sums).
    """
    width = sample.width
    margins = exact_products(sample.X, w, b) if exact else Plain.scores(sample.X, w, b)
    margins *= sample.y
    if by_terms:
        size = 1.01 * Plain.scores(abs(sample.X), np.abs(w)) + abs(b)
    else:
        size = sample.norms * (1.01 * Plain.norm(w)) + abs(b)
    rounded = Plain.error(size, Plain.terms(sample.X, width, 1) + 1)
    errors = EPS * np.abs(margins) if exact else rounded
    if exact and sample.shift is not None:
        errors += EPS * abs(b)  # b of the shifted rows is that of the caller's rows and w.s, rounded once
    errors += 8.0 * (width + 2.0) * SMALLEST_FLOAT
    length = formulas.norm_interval(problem.weights(w, b), problem.q)
    return formulas.primal_side(problem, sample.weights, margins, errors, length)


def _dual_side(
    problem: Problem, sample: Sample, alpha: np.ndarray, v: np.ndarray | None, exact: bool = False
) -> Side:
    """Return the bound that alpha proves; `v` is its `combination`, None to compute it."""
    count = int(np.count_nonzero(alpha))
    v = combination(problem, sample, alpha, exact) if v is None else v
    # sum alpha_i |x_i|, the constant coordinate included: the total length of the terms of v
    spread = float(alpha @ sample.norms) + problem.rho * float(alpha.sum())
    uneven = formulas.imbalance(alpha, sample.y) if problem.free else 0.0
    moved = uneven * longest_used(sample, alpha) if uneven > 0.0 else 0.0
    underflow = 0.0
    if spread > 0.0 or problem.rho or sample.norms[alpha > 0.0].any():
        underflow = 8.0 * (count + 1.0) * v.size * SMALLEST_FLOAT  # of every product in each coordinate
    if (
        exact
    ):  # v is rounded once, its constant coordinate twice: at most a unit in the last place of each entry
        length = dual_length(problem, v, 0.0, 0, moved, underflow + EPS * Plain.norm(v, problem.p))
    else:
        length = dual_length(problem, v, spread, Plain.terms(sample.X, count, 0), moved, underflow)
    return formulas.dual_side(problem, sample.weights, alpha, length, uneven)


def longest_used(sample: Sample, alpha: np.ndarray) -> float:
    """Return the length of the longest row with a dual variable above 0.

    Scaling the heavier class down to the total of the other moves v by at most this times |sum alpha_i y_i|.
    """
    return float(sample.norms.max(where=alpha > 0.0, initial=0.0))


def dual_length(
    problem: Problem, v: np.ndarray, spread: float, terms: int, moved: float, underflow: float = 0.0
) -> Length:
    """Return |v|_p of a computed v = sum alpha_i y_i x_i, with the interval that its errors give.

    The error of v is the rounding of its sums, and its change where the heavier class is scaled down. Lengths of rows
    are 2-norms: |x|_p <= d^(1/p - 1/2) |x|_2 for p < 2, and |x|_p <= |x|_2 else.

    Parameters
    ----------
    problem : Problem
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
    return formulas.norm_interval(v, problem.p, factor * (Plain.error(spread, terms) + moved) + underflow)
