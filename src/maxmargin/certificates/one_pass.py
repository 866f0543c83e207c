"""Certificates of soft margins of dense rows at p = 2, the sums over rows being taken in one compiled pass.

An accelerator of `rows.certify`, which serves every problem and storage with NumPy alone: the sums are the same but for
rounding, and the formulas are those of `bounds`. `verification.verify` uses no compiled code.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import scipy.sparse as sp

from ..engine.jit import compiled, writable
from ..engine.row_products import add_combined, scores
from ..numerics.sums import TERMS, Plain, in_a_row
from ..problem.problem import Problem, best_multiple
from . import bounds as formulas
from .bounds import EPS, LEAST, Bounds, DualSums, PrimalSums
from .certificate import Certificate
from .dual_variables import BALANCED
from .rows import certify as certify_any
from .rows import dual_length, with_more_digits
from .sample import Sample

# Share of all dual variables that may be left between the classes: a tenth of what `verify` allows.
UNEVEN = 1e-13
# Sum of the dual variables below which their products may have lost digits, and the multiple that would show it:
# 1e-200 squared underflows, and 1e40 is far above any multiple of a solver's dual variables.
SMALL, GROWN = 1e-200, 1e40


def certify(
    problem: Problem,
    sample: Sample,
    w: np.ndarray,
    b: float,
    alpha: np.ndarray,
    tol: float = 0.0,
    affords: Callable[[float], bool] = lambda seconds: True,
) -> Certificate:
    """Return the certificate of a primal point (w, b) and dual variables alpha: as `rows.certify`, in one pass.

    Parameters and bounds are the same, but for rounding; between the classes as much may be left as `verify` allows.
    """
    X, found = sample.X, None
    dense = not sp.issparse(X) and X.size > 0 and X.flags.c_contiguous
    if dense and problem.euclidean and not problem.hard:
        with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
            found = _bounds_in_one_pass(problem, sample, w, b, alpha)
    if found is None:
        return certify_any(problem, sample, w, b, alpha, tol, affords)
    return sample.certificate(problem, *with_more_digits(problem, sample, w, b, *found, tol, affords))


def _bounds_in_one_pass(
    problem: Problem, sample: Sample, w: np.ndarray, b: float, alpha: np.ndarray
) -> tuple[np.ndarray, Bounds] | None:
    """Return feasible dual variables near alpha, at their best multiple, and the bounds.

    None where one class has no dual variable, or next to nothing, where a column may be huge, and where sums overflow
    or lose digits: the sums of `rows.certify` serve these.
    """
    X, y, weights, n = sample.X, sample.y, sample.weights, sample.y.size
    cap, free, rho = float(problem.cap), problem.free, problem.rho
    dual, alpha = np.empty(n), np.ascontiguousarray(alpha, dtype=float)
    if not feasible_dual(alpha, y, weights, cap, free, dual):
        return None
    w, terms, step = np.ascontiguousarray(w, dtype=float), w.size + 1, min(n, TERMS)
    per_length = Plain.error(0.0, 1.01 * Plain.norm(w), terms)
    constant = Plain.error(0.0, abs(b), terms) + terms * 2.0 * LEAST
    v, workspace, places = np.zeros((2, w.size)), np.empty((2, step)), np.empty(step, np.uint32)
    worst, nominal, total, balance, costs, spread, used = row_sums(
        writable(X), y, weights, sample.norms, dual, w, b, float(problem.C), problem.loss != "hinge", per_length,
        constant, workspace, places, v,
    )  # fmt: skip
    v = np.append(v[0], rho * balance) if rho else v[0]
    multiple = best_multiple(total, Plain.square(v) + 2.0 * costs, np.inf) if total > 0.0 else 1.0
    if multiple > 1.0 and math.isfinite(cap):
        multiple = min(
            multiple, float(np.fmin.reduce(cap * weights / dual))
        )  # fmin ignores 0 / 0, where s_i = 0
    ordinary = total > SMALL and max(spread, rho * total) <= formulas.ordinary_limit(total)
    spread, total, costs = multiple * spread, multiple * total, multiple * (multiple * costs)
    ordinary = ordinary and total > SMALL and max(spread, rho * total) <= formulas.ordinary_limit(total)
    if not (ordinary and multiple <= GROWN and math.isfinite(worst + total + costs + spread)):
        return None
    difference, rest = scale_classes(dual, y, weights, cap, multiple, multiple)
    if free and abs(difference + rest) > UNEVEN * total:  # one class had next to nothing
        return None
    v *= multiple
    if rho:
        v[-1] = rho * (difference + rest)
    # the difference is two sums of n terms, the second of what the first has lost
    uneven = (1.0 + EPS) * abs(difference + rest) + (n * EPS) ** 2 * total if free else 0.0
    terms = in_a_row(used, n)
    length = dual_length(problem, sample, Plain, v, spread + rho * total, terms, uneven)
    error = Plain.error(total - costs, total + costs, terms) + (n + 4.0) * LEAST
    lower = formulas.half_square_bound(DualSums(total - costs, total + costs, error, uneven, length))
    length = formulas.measured(problem.weights(w, b), problem.q, Plain)
    error = Plain.error(worst, worst, in_a_row(n, n))
    upper = formulas.objective_bound(problem, PrimalSums(nominal, worst, error, length))
    bounds = Bounds(lower.bound, upper.bound, lower.rounding, upper.rounding)
    return (dual, bounds) if bounds.lower <= bounds.upper else None


# The compiled sums. `cap` is C for the hinge, infinite for squared losses.
#
# A loop that adds up writes nothing: which of its versions runs, and in what order they add, would depend on where in
# memory the arrays lie.


@compiled()
def feasible_dual(alpha, y, weights, cap, free, out):
    """Write dual variables near alpha that are feasible; return whether both classes have some (where it matters).

    They are clipped to [0, cap s_i], and, where the intercept is `free`, the heavier class is scaled down to the total
    of the other.
    """
    plus = minus = 0.0
    for k in range(alpha.size):
        most = cap * weights[k] if weights[k] > 0.0 else 0.0
        out[k] = min(alpha[k], most) if alpha[k] > 0.0 else 0.0
    for k in range(alpha.size):
        plus += out[k] if y[k] > 0.0 else 0.0
        minus += out[k] if y[k] <= 0.0 else 0.0
    if not free:
        return True
    if not (plus > 0.0 and minus > 0.0):
        return False
    side = min(plus, minus)
    difference, rest = scale_classes(out, y, weights, cap, side / plus, side / minus)
    left = difference + rest
    if abs(left) > BALANCED * side:  # long sums of equal numbers are off in one direction
        scale_classes(out, y, weights, cap, 1.0 - max(left, 0.0) / side, 1.0 - max(-left, 0.0) / side)
    return True


@compiled()
def scale_classes(alpha, y, weights, cap, plus, minus):
    """Multiply alpha by a factor of each class, in place, to at most cap s_i; return sum alpha_i y_i in two parts.

    The first part is the sum in float64, the second the sum of its rounding errors (Knuth's two-sum).
    """
    whole = rest = 0.0
    for k in range(alpha.size):
        # no branch: classes come in any order
        value = alpha[k] * (0.5 * ((1.0 + y[k]) * plus + (1.0 - y[k]) * minus))
        most = cap * weights[k]  # NaN if there is no cap and no weight
        value = most if most < value else value
        alpha[k] = value
        value *= y[k]
        total = whole + value
        back = total - whole
        rest += (whole - (total - back)) + (value - back)
        whole = total
    return whole, rest


@compiled()
def squared_costs(alpha, weights, four_C):
    """Return sum alpha_i^2 / (4 C s_i); the quotient comes first, as squares of tiny numbers would lose digits."""
    total = 0.0
    for k in range(alpha.size):
        total += alpha[k] / (four_C * weights[k] if weights[k] > 0.0 else 1.0) * alpha[k]
    return total


@compiled(fastmath={"reassoc", "contract"})
def row_sums(X, y, weights, norms, alpha, w, b, C, squared, per_length, constant, workspace, places, v):
    """Write v[0] = sum alpha y x, and return sums of the losses of (w, b) and of alpha.

    Rows are taken so many at a time that they are still in cache when they are combined; every sum is one of the sums
    of such parts, so that long ones keep their digits. `v[1]`, `workspace` and `places` hold one part. A score is off
    by at most per_length |x_i| + constant.

    Returns
    -------
    worst, nominal : float
        The losses of margins as small as their errors allow, and of margins as computed.
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
