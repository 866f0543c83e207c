"""Formulas of the lower and upper bounds, from sums over linear rows or kernel rows, rounded outwards.

With alpha feasible, v = sum alpha_i y_i x_i and m_i = y_i (w.x_i + b),

* soft:  sum alpha_i - sum alpha_i^2 / (4 C s_i) - 1/2 |v|^2  <=  optimum  <=  1/2 |w|^2 + losses,
* hard:  min m_i / |w|  <=  largest margin  <=  |v| / sum alpha_i,

v being measured in the p-norm and w in the dual q-norm: Hoelder's inequality is all that is used. With the norm to the
first power (`power=1`) the soft bounds are (sum alpha_i - sum alpha_i^2 / (4 C s_i)) / max(1, |v|) and |w| + losses.

A provider (`rows`: linear rows, `gram`: kernel rows) supplies margins with their errors, lengths as intervals, and the
imbalance of the dual variables. u = eps / 2 is the unit roundoff: each
operation in float64 has a relative error of at most u, or an error of half the smallest number where it underflows.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from ..numerics.sums import EPS, SMALLEST_FLOAT, Plain, exact_total, powers_error
from ..problem.problem import Problem


class Bounds(NamedTuple):
    """A lower and an upper bound, rounded outwards; `below` and `above` are the rounding margins they contain.

    The values as computed in float64, without these margins, are lower + below and upper - above.
    """

    lower: float
    upper: float
    below: float
    above: float


class Side(NamedTuple):
    """One bound, the rounding margin that it contains, and the value as computed, without that margin."""

    bound: float
    rounding: float
    value: float


class Length(NamedTuple):
    """A norm as computed, and an interval that holds the exact one."""

    value: float
    low: float
    high: float


class DualSums(NamedTuple):
    """Sums over the dual variables.

    Attributes
    ----------
    gains : float
        sum alpha_i - sum alpha_i^2 / (4 C s_i); sum alpha_i of a hard margin and of the hinge.
    size : float
        sum alpha_i + sum alpha_i^2 / (4 C s_i): the sum of the absolute values of all terms of the gains.
    error : float
        Rounding error bound of the summation of the gains.
    imbalance : float
        At least |sum alpha_i y_i| where the intercept is free, else 0.
    length : Length
        |v| of the dual variables whose heavier class is scaled down to the total of the other class.
    """

    gains: float
    size: float
    error: float
    imbalance: float
    length: Length


class PrimalSums(NamedTuple):
    """The sum of the losses of a soft problem, or the smallest margin of a hard margin problem, and |w|.

    Attributes
    ----------
    value : float
        Sum of losses, or smallest margin, for the margins as computed.
    worst : float
        The same quantity for the margins minus their error bounds.
    error : float
        Rounding error bound of the summation of the losses.
    length : Length
        |w|, with the weight of an augmented intercept.
    """

    value: float
    worst: float
    error: float
    length: Length


def combine_sides(problem: Problem, dual: Side, primal: Side) -> Bounds:
    """Combine the bounds of a dual and a primal point: the dual one is the upper bound of a hard margin, else lower."""
    lower, upper = (primal, dual) if problem.hard else (dual, primal)
    return Bounds(lower.bound, upper.bound, lower.rounding, upper.rounding)


def dual_side(
    problem: Problem, weights: np.ndarray, alpha: np.ndarray, length: Length, imbalance: float
) -> Side:
    """Return the bound that feasible dual variables prove.

    Quotients of tiny numbers may underflow: the smallest number for each row covers them.

    Parameters
    ----------
    problem : Problem
    weights : ndarray of shape (n,)
        Sample weights s_i.
    alpha : ndarray of shape (n,)
        Feasible but for `imbalance`.
    length : Length
        |v|, the heavier class scaled down.
    imbalance : float
        At least |sum alpha_i y_i| where the intercept is free, else 0.
    """
    gains, count = Plain.total(problem.gains(alpha, weights)), int(np.count_nonzero(alpha))
    size = 2.0 * float(alpha.sum()) - gains  # sum alpha_i + sum alpha_i^2 / (4 C s_i)
    error = Plain.error(size, Plain.terms(alpha, count, 0))
    error += (alpha.size + 4.0) * SMALLEST_FLOAT if count else 0.0
    sums = DualSums(gains, size, error, imbalance, length)
    if problem.hard:
        return largest_margin_bound(sums)
    return half_square_bound(sums) if problem.power == 2 else first_power_bound(sums)


def largest_margin_bound(sums: DualSums) -> Side:
    """Return |v| / sum alpha, an upper bound of the largest margin.

    Scaling the heavier class down lowers sum alpha by at most `imbalance`. Two subtractions and one division have a
    relative error of less than 4 eps. The quotient and the product may underflow.
    """
    total = sums.gains - sums.error - sums.imbalance
    if not total > 0.0:
        return Side(np.inf, 0.0, np.inf)
    value = sums.length.value / sums.gains
    upper = sums.length.high / total * (1.0 + 4.0 * EPS) + (SMALLEST_FLOAT if sums.length.high else 0.0)
    if not upper < np.inf:  # sums have overflowed: NaN is no bound
        return Side(np.inf, 0.0, np.inf)
    return Side(upper, upper - value, value)


def half_square_bound(sums: DualSums) -> Side:
    """Return gains - 1/2 |v|^2, a lower bound of the optimum.

    Scaling the heavier class down by imbalance / total lowers the gains by at most `imbalance`: their derivative is at
    most one. Each gain, alpha - alpha^2 / (4 C s), is four operations, 4 u of its size; the square, both differences
    and the sum of the margins add 4 u of size + |v|^2: together less than the 4 eps = 8 u that are taken.
    """
    value, high = sums.length.value, sums.length.high
    objective = sums.gains - 0.5 * value * value
    rounding = 0.5 * (high - value) * (high + value)  # 1/2 (high^2 - value^2) without cancellation
    rounding += sums.error + sums.imbalance + 4.0 * EPS * (sums.size + high * high)
    rounding += 4.0 * SMALLEST_FLOAT if sums.size > 0.0 else 0.0  # the square may underflow
    return _lower_side(objective, rounding)


def first_power_bound(sums: DualSums) -> Side:
    """Return gains / max(1, |v|), a lower bound of the optimum.

    Gains are concave and 0 at 0, so that scaling by a factor below one keeps at least this part of them.
    A negative sum of gains is not divided, since a larger |v| would raise it. `max` has its arguments in an order that
    keeps NaN.
    """
    value = sums.gains / max(sums.length.value, 1.0)
    gains = sums.gains - sums.error - sums.imbalance - 4.0 * EPS * sums.size
    lower = gains / max(sums.length.high, 1.0)
    lower = min(lower, gains) if gains < 0.0 else lower
    rounding = value - lower + 2.0 * EPS * abs(value)  # the quotient and two differences: 3 u
    rounding += 4.0 * SMALLEST_FLOAT if sums.size > 0.0 else 0.0
    return _lower_side(value, rounding)


def _lower_side(value: float, rounding: float) -> Side:
    """Return the bound value - rounding; -inf where sums have overflowed, since NaN is no bound."""
    bound = value - rounding
    return Side(bound, rounding, value) if math.isfinite(bound) else Side(-np.inf, np.inf, value)


def primal_side(
    problem: Problem,
    weights: np.ndarray,
    margins: np.ndarray,
    errors: np.ndarray,
    length: Length,
) -> Side:
    """Return the bound that a primal point attains: its objective, or its margin in a hard margin problem.

    Parameters
    ----------
    problem : Problem
    weights : ndarray of shape (n,)
        Sample weights s_i; rows of weight 0 take no part.
    margins : ndarray of shape (n,)
        m_i = y_i (w.x_i + b), as computed.
    errors : ndarray of shape (n,)
        Bounds of their absolute errors.
    length : Length
        |w|, with the weight of an augmented intercept.
    """
    least = margins - errors
    if problem.hard:
        used = weights > 0.0
        smallest, worst = float(margins[used].min()), float(least[used].min())
        return attained_margin_bound(PrimalSums(smallest, worst, 0.0, length))
    worst = Plain.total(problem.losses(least, weights))
    error = Plain.error(worst, Plain.terms(margins, weights.size, 0))
    value = Plain.total(problem.losses(margins, weights))
    return objective_bound(problem, PrimalSums(value, worst, error, length))


def attained_margin_bound(sums: PrimalSums) -> Side:
    """Return min m_i / |w|, a lower bound of the largest margin.

    A positive margin is divided by the upper end of the interval of |w|, a negative one by the lower end. The quotient
    has a relative error of u, and so has the difference from the value as computed: 4 eps is more. It may underflow.
    """
    length = sums.length
    if not length.value > 0.0:
        return Side(-np.inf, 0.0, -np.inf)
    value = sums.value / length.value
    divisor = length.high if sums.worst > 0.0 else length.low
    lower = sums.worst / divisor if divisor > 0.0 else -np.inf
    lower -= 4.0 * EPS * abs(lower) + (SMALLEST_FLOAT if sums.worst else 0.0)
    if not math.isfinite(lower):  # sums have overflowed: NaN is no bound
        return Side(-np.inf, 0.0, value)
    return Side(lower, value - lower, value)


def objective_bound(problem: Problem, sums: PrimalSums) -> Side:
    """Return the penalty of |w| plus losses, an upper bound of the optimum.

    Each loss, C s (1 - m)^2, is four operations, the square doubling the error of the first: 5 u of its value. The
    penalty (2 u) and two additions (2 u) make less than the 4 eps = 8 u that are taken.
    """
    penalty = problem.penalty(sums.length.value)
    value = penalty + sums.value
    upper = problem.penalty(sums.length.high) + sums.worst
    rounding = sums.error + 4.0 * EPS * upper
    rounding += 4.0 * SMALLEST_FLOAT if sums.length.high > 0.0 else 0.0  # the square may underflow
    upper += rounding
    if not upper < np.inf:  # sums have overflowed: NaN is no bound
        return Side(np.inf, np.inf, value)
    return Side(upper, upper - value, value)


def norm_interval(v: np.ndarray, exponent: float, v_error: float = 0.0) -> Length:
    """Return the norm of a vector as computed, with an interval that holds the norm of the exact vector.

    The sum of powers has the relative error of `Plain.error`, and the root halves relative errors at p = 2: the
    other half, at least 2 u, covers the root and the sums below. `powers_error` is the error of the powers. The norm is
    a multiple of a norm near one: the last product, and the error bounds, may underflow.

    Parameters
    ----------
    v : ndarray of shape (d,)
        The vector as computed.
    exponent : float
        Of the norm, from 1 to inf.
    v_error : float, default=0
        Bound of the norm of the difference of the exact vector from v.
    """
    value = Plain.norm(v, exponent)
    error = Plain.error(value, v.size) + value * powers_error(exponent, v.size) + v_error
    error *= 1.0 + 4.0 * EPS  # rounding of the sum above
    error += 4.0 * SMALLEST_FLOAT if value > 0.0 else 0.0
    return Length(value, max(value - error, 0.0), value + error)


def imbalance(alpha: np.ndarray, y: np.ndarray) -> float:
    """Return |sum alpha_i y_i|, rounded upwards, for alpha and y of shape (n,).

    Scaling the heavier class down changes v by up to this number times the longest row.
    """
    return abs(exact_total(alpha * y)) * (1.0 + EPS)
