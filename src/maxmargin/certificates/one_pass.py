"""Certificates of soft margins of dense rows at p = 2, from sums over rows in one compiled pass over the data.

A faster form of `rows.certify`, which computes the certificates of every problem and storage with NumPy alone. The
sums are equal but for rounding, and the formulas are those of `bounds`. `verification.verify` uses no compiled code.
"""

from __future__ import annotations

import math

import numpy as np
import scipy.sparse as sp

from ..engine.jit import compiled, writable
from ..engine.row_products import add_combined, scores
from ..numerics.sums import EPS, SMALLEST_FLOAT, TERMS, Plain, successive_additions
from ..problem.problem import Problem, best_multiple
from . import bounds as formulas
from .bounds import Bounds, DualSums, PrimalSums
from .certificate import Certificate
from .dual_variables import NEGLIGIBLE_IMBALANCE
from .rows import NEGLIGIBLE_ERROR, dual_length, is_hidden_by_rounding, longest_used
from .rows import certify as certify_any
from .sample import Sample

# Largest accepted |sum alpha_i y_i| as a fraction of sum alpha_i: a tenth of what `verify` accepts. A larger value
# might fail verification, a smaller one would send more problems to the slower sums of `rows.certify`.
MAX_IMBALANCE = 1e-13
# Least sum of the dual variables, and largest multiple of them, for which these sums are used: 1e-200 squared
# underflows, so that products of smaller dual variables lose digits, and 1e40 is far above any multiple of a solver's
# dual variables. Beyond them `rows.certify` is slower, and as accurate.
MIN_DUAL_SUM, MAX_MULTIPLE = 1e-200, 1e40


def certify(
    problem: Problem,
    sample: Sample,
    w: np.ndarray,
    b: float,
    alpha: np.ndarray,
    tol: float = 0.0,
) -> Certificate:
    """Return the certificate of a primal point (w, b) and dual variables alpha, as `rows.certify` does, in one pass.

    The parameters are those of `rows.certify`, and the bounds are equal but for rounding. Where the intercept is free,
    |sum alpha_i y_i| is at most MAX_IMBALANCE * sum alpha_i, which `verify` accepts. Problems and data that the
    compiled sums do not support are passed on to `rows.certify`.
    """
    X, found = sample.X, None
    dense = not sp.issparse(X) and X.size > 0 and X.flags.c_contiguous
    if dense and problem.euclidean and not problem.hard:
        with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
            found = _bounds_in_one_pass(problem, sample, w, b, alpha)
    if found is None or is_hidden_by_rounding(problem, found[1], tol):
        return certify_any(problem, sample, w, b, alpha, tol)
    return sample.certificate(problem, *found)


def _bounds_in_one_pass(
    problem: Problem, sample: Sample, w: np.ndarray, b: float, alpha: np.ndarray
) -> tuple[np.ndarray, Bounds] | None:
    """Return feasible dual variables near alpha, at their best multiple, and the bounds of a soft problem at p = 2.

    None where the dual variables of one class are zero or vanish in rounding beside those of the other, where sums
    overflow or lose digits, or where the bounds cross or are negative: use `rows.certify` for these.
    """
    X, y, weights, n = sample.X, sample.y, sample.weights, sample.y.size
    cap, free, rho = float(problem.cap), problem.free, problem.rho
    dual, alpha = np.empty(n), np.ascontiguousarray(alpha, dtype=float)
    if not feasible_dual(alpha, y, weights, cap, free, dual):
        return None
    w, terms, step = np.ascontiguousarray(w, dtype=float), w.size + 1, min(n, TERMS)
    # the error of a score is at most per_length |x_i| + constant (Cauchy and Schwarz)
    per_length = Plain.error(1.01 * Plain.norm(w), terms)
    constant = Plain.error(abs(b), terms) + terms * 2.0 * SMALLEST_FLOAT
    v, workspace, places = np.zeros((2, w.size)), np.empty((2, step)), np.empty(step, np.uint32)
    upper_losses, losses, total, balance, costs, weighted_length, used = row_sums(
        writable(X), y, weights, sample.norms, dual, w, b, float(problem.C), problem.loss != "hinge", per_length,
        constant, workspace, places, v,
    )  # fmt: skip
    v = np.append(v[0], rho * balance) if rho else v[0]
    # the multiple t maximises t total - t^2 (|v|^2 + 2 costs) / 2, within the caps
    multiple = best_multiple(total, Plain.square(v) + 2.0 * costs, np.inf) if total > 0.0 else 1.0
    if multiple > 1.0 and math.isfinite(cap):
        # fmin ignores 0 / 0, where s_i = 0
        multiple = min(multiple, float(np.fmin.reduce(cap * weights / dual)))
    for factor in (1.0, multiple):
        weighted_length, total, costs = factor * weighted_length, factor * total, factor * (factor * costs)
        if not total > MIN_DUAL_SUM:
            return None
    if not (multiple <= MAX_MULTIPLE and math.isfinite(upper_losses + total + costs + weighted_length)):
        return None
    # multiply in place; difference + rest is sum alpha_i y_i of the product
    difference, rest = scale_classes(dual, y, weights, cap, multiple, multiple)
    # reached where the dual variables of one class are of the size of the rounding errors of the other
    if free and abs(difference + rest) > MAX_IMBALANCE * total:
        return None
    v *= multiple
    if rho:
        v[-1] = rho * (difference + rest)
    # sum alpha_i y_i in two parts; the error of the second, a sum of n rounding errors, is at most (n eps)^2 total
    imbalance = (1.0 + EPS) * abs(difference + rest) + (n * EPS) ** 2 * total if free else 0.0
    terms = successive_additions(used, n)
    moved = imbalance * longest_used(sample, dual) if free else 0.0
    length = dual_length(problem, v, weighted_length + rho * total, terms, moved)
    error = Plain.error(total + costs, terms) + (n + 4.0) * SMALLEST_FLOAT
    lower = formulas.half_square_bound(DualSums(total - costs, total + costs, error, imbalance, length))
    length = formulas.norm_interval(problem.weights(w, b), problem.q)
    error = Plain.error(upper_losses, successive_additions(n, n))
    upper = formulas.objective_bound(problem, PrimalSums(losses, upper_losses, error, length))
    if not upper.rounding <= NEGLIGIBLE_ERROR * upper.bound:
        return None
    bounds = formulas.combine_sides(problem, lower, upper)
    return (dual, bounds) if 0.0 <= bounds.lower <= bounds.upper else None


# The compiled sums. `cap` is C for the hinge, infinite for squared losses.
#
# A loop that accumulates a sum in any order of terms writes to no array: the compiler would make two versions of it,
# and which of them runs, and so the order of the terms, would depend on the addresses of the arrays.


@compiled(fastmath={"reassoc", "contract"})
def clip_dual(alpha, y, weights, cap, out):
    """Write alpha, clipped to [0, cap s_i], to `out`; return its sums over y_i = 1 and over y_i = -1."""
    plus = minus = 0.0
    for k in range(alpha.size):
        most = cap * weights[k] if weights[k] > 0.0 else 0.0
        out[k] = min(alpha[k], most) if alpha[k] > 0.0 else 0.0
    for k in range(alpha.size):
        plus += out[k] if y[k] > 0.0 else 0.0
        minus += out[k] if y[k] <= 0.0 else 0.0
    return plus, minus


@compiled()
def feasible_dual(alpha, y, weights, cap, free, out):
    """Write feasible dual variables near alpha to `out`; return False where one class has none and `free` is true.

    They are clipped to [0, cap s_i], and, where the intercept is `free`, the heavier class is scaled down to the total
    of the other.
    """
    plus, minus = clip_dual(alpha, y, weights, cap, out)
    if not free:
        return True
    if not (plus > 0.0 and minus > 0.0):
        return False
    side = min(plus, minus)
    difference, rest = scale_classes(out, y, weights, cap, side / plus, side / minus)
    left = difference + rest
    # rounding errors of long sums of equal numbers add up: scale once more
    if abs(left) > NEGLIGIBLE_IMBALANCE * side:
        scale_classes(out, y, weights, cap, 1.0 - max(left, 0.0) / side, 1.0 - max(-left, 0.0) / side)
    return True


@compiled()
def scale_classes(alpha, y, weights, cap, plus, minus):
    """Multiply alpha by a factor for each class, in place, and clip it to cap s_i; return sum alpha_i y_i in two parts.

    The factors are `plus` for y_i = 1 and `minus` for y_i = -1. The first part is the sum in float64, the second the
    sum of its rounding errors (Knuth's two-sum).
    """
    whole = rest = 0.0
    for k in range(alpha.size):
        # arithmetic instead of a branch, which the processor could not predict: classes come in any order
        value = alpha[k] * (0.5 * ((1.0 + y[k]) * plus + (1.0 - y[k]) * minus))
        most = cap * weights[k]  # NaN if there is no cap and no weight
        alpha[k] = most if most < value else value
    # a loop of its own: the compiler vectorises the one above, and not this sum, whose order is fixed
    for k in range(alpha.size):
        value = alpha[k] * y[k]
        total = whole + value
        back = total - whole
        rest += (whole - (total - back)) + (value - back)
        whole = total
    return whole, rest


@compiled()
def squared_cost(alpha, weight, four_C):
    """Return alpha_i^2 / (4 C s_i); division comes first, as squares of tiny numbers would lose digits.

    Compiled without reassociation, which would let the compiler multiply first.
    """
    return alpha / (four_C * weight if weight > 0.0 else 1.0) * alpha


@compiled(fastmath={"reassoc"})
def squared_costs(alpha, weights, four_C):
    """Return the sum of `squared_cost` over all rows."""
    total = 0.0
    for k in range(alpha.size):
        total += squared_cost(alpha[k], weights[k], four_C)
    return total


@compiled(fastmath={"reassoc", "contract"})
def row_sums(X, y, weights, norms, alpha, w, b, C, squared, per_length, constant, workspace, places, v):
    """Write v[0] = sum alpha_i y_i x_i, and return the sums of the losses of (w, b) and the sums over alpha.

    Rows are processed in parts of workspace.shape[1] rows, which are still in cache when they are combined. Every sum
    is the sum of the sums of its parts, which keeps the rounding of long sums small. `v[1]`, `workspace` and `places`
    are buffers of one part. The error of a score is at most per_length |x_i| + constant.

    Returns
    -------
    worst, nominal : float
        The losses of the margins minus their error bounds, and of the margins as computed.
    total, balance : float
        sum alpha_i and sum alpha_i y_i.
    costs : float
        `squared_costs` of squared losses, else 0.
    spread : float
        sum alpha_i |x_i|.
    used : int
        The number of alpha that are not 0.
    """
    worst = nominal = total = balance = costs = spread = 0.0
    score, signed, step = workspace[0], workspace[1], workspace.shape[1]
    used = 0
    for first in range(0, alpha.size, step):
        last = min(first + step, alpha.size)
        rows, a, s = X[first:last], alpha[first:last], weights[first:last]
        length, side = norms[first:last], y[first:last]
        scores(rows, w, score[: a.size])
        for k in range(a.size):
            signed[k] = side[k] * a[k]
        worst_part = nominal_part = total_part = balance_part = spread_part = 0.0
        for k in range(a.size):
            margin, cost = side[k] * (score[k] + b), C * s[k]
            low = margin - (per_length * length[k] + constant)
            # a margin that is NaN is below 1, so that its loss is not dropped
            most, slack = 0.0 if low >= 1.0 else 1.0 - low, 0.0 if margin >= 1.0 else 1.0 - margin
            worst_part += cost * (most * (most if squared else 1.0))
            nominal_part += cost * (slack * (slack if squared else 1.0))
            total_part += a[k]
            balance_part += signed[k]
            spread_part += a[k] * length[k]
            used += a[k] > 0.0
        worst += worst_part
        nominal += nominal_part
        total += total_part
        balance += balance_part
        spread += spread_part
        costs += squared_costs(a, s, 4.0 * C) if squared else 0.0
        add_combined(rows, signed[: a.size], places, v[1], v[0])
    return worst, nominal, total, balance, costs, spread, used
