"""Certificates of soft margins of dense rows at p = 2, all sums being taken in one compiled pass over the rows.

An accelerator of `rows.certify`, which serves every problem and storage with NumPy alone: the sums are the same but for
rounding, and the formulas are those of `bounds`. `verification.verify` uses no compiled code.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import scipy.sparse as sp

from ..engine.jit import compiled, writable
from ..engine.row_products import add_combined, scores, scores_near
from ..numerics.sums import TERMS, Plain, in_a_row
from ..problem.problem import Problem, best_multiple
from .bounds import EPS, LEAST, Bounds, DualSums, PrimalSums, both, dual_bound, measured, primal_bound
from .certificate import Certificate
from .dual_variables import BALANCED
from .huge_columns import is_ordinary
from .rows import certify as certify_any
from .rows import dual_length, proved, with_more_digits
from .sample import Sample, column_shares

# share of all dual weights that may be left between the classes: `verify` allows ten times as much
UNEVEN = 1e-13
# a sum of dual weights whose products may have lost digits, and a multiple that would show it
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
    """The certificate of a primal point (w, b) and dual weights alpha: as `rows.certify` in one pass.

    Parameters and bounds are the same, but for rounding; between the classes as much may be left as `verify` allows.
    """
    with np.errstate(over="ignore", invalid="ignore"):
        started = _in_one_pass(problem, sample, w, b, alpha)
    if started is None:
        return certify_any(problem, sample, w, b, alpha, tol, affords)
    return proved(problem, sample, *with_more_digits(problem, sample, w, b, *started, tol, affords))


class _Pass(NamedTuple):
    """The sums that `one_pass` returns, and v = sum alpha y x.

    The sums of alpha over the positive and the negative class are computed separately, never by subtraction: one may
    be next to nothing beside the other.
    """

    least: float
    nominal: float
    plus: float
    minus: float
    own: float
    spread: float
    used: int
    v: np.ndarray


def _is_simple(problem: Problem, sample: Sample) -> bool:
    """Return whether the problem is a soft margin at p = 2 and the rows are dense."""
    X = sample.X
    return not (
        problem.hard or not problem.euclidean or sp.issparse(X) or not (X.size and X.flags.c_contiguous)
    )


def _in_one_pass(
    problem: Problem, sample: Sample, w: np.ndarray, b: float, alpha: np.ndarray
) -> tuple[np.ndarray, Bounds] | None:
    """Feasible dual weights near alpha, and the bounds, of a soft margin of dense rows at p = 2; None of all else.

    The sums are those of `dual_variables.feasible` and of `rows.bounds`, taken together while rows are in cache.
    """
    if not _is_simple(problem, sample):
        return None
    y, weights, cap = sample.y, sample.weights, float(problem.cap)
    alpha, alone = np.ascontiguousarray(alpha, dtype=float), np.empty(sample.y.size)
    plus, minus = capped(alpha, weights, cap, y, alone)
    if problem.free and not _balance(sample, cap, alone, plus, minus):
        return None
    return _bounded(problem, sample, w, b, alone, _pass(problem, sample, w, b, alone))


def _balance(sample: Sample, cap: float, alone: np.ndarray, plus: float, minus: float) -> bool:
    """Scale down the dual weights of the heavier class, in place, until both classes sum to the same.

    False where one class has no dual weight. `plus` and `minus` are the sums of the classes.
    """
    if not (plus > 0.0 and minus > 0.0):
        return False
    y, weights, side = sample.y, sample.weights, min(plus, minus)
    left = sum(shrink(alone, y, weights, cap, side / plus, side / minus))
    if abs(left) > BALANCED * side:  # long sums of equal numbers are off in one direction
        shrink(alone, y, weights, cap, 1.0 - max(left, 0.0) / side, 1.0 - max(-left, 0.0) / side)
    return True


def _pass(problem: Problem, sample: Sample, w: np.ndarray, b: float, alone: np.ndarray) -> _Pass:
    """The pass itself; the sample remembers its fingerprint."""
    X, n = sample.X, sample.y.size
    w = np.ascontiguousarray(w, dtype=float)
    terms = w.size + 1
    each = Plain.error(0.0, 1.01 * Plain.norm(w), terms)
    constant = Plain.error(0.0, abs(b), terms) + terms * 2.0 * LEAST
    v = np.zeros((2, w.size))
    desk = np.empty((2, min(n, TERMS)))
    told, shares = sample.known_marks, np.empty(0)
    marks = np.empty(n if sample.like is not None else 0) if told is None else told
    if told is None and sample.unmarked:
        shares = column_shares(w.size)
    least, nominal, plus, minus, own, spread, used, checksum, scale = one_pass(
        writable(X), sample.y, sample.weights, sample.norms, alone, w, b, float(problem.C), problem.loss != "hinge",
        each, constant, shares, marks, desk, np.empty(desk.shape[1], np.uint32), v,
    )  # fmt: skip
    if sample.unmarked:
        sample.remember(checksum, scale, marks)
    return _Pass(least, nominal, plus, minus, own, spread, used, v[0])


def _bounded(
    problem: Problem, sample: Sample, w: np.ndarray, b: float, alone: np.ndarray, found: _Pass
) -> tuple[np.ndarray, Bounds] | None:
    """The best multiple of these dual weights, and the bounds."""
    y, weights, n = sample.y, sample.weights, sample.y.size
    cap, free, rho = float(problem.cap), problem.free, problem.rho
    total, own, spread = found.plus + found.minus, found.own, found.spread
    v = np.append(found.v, rho * (found.plus - found.minus)) if rho else found.v
    v2 = Plain.square(v)
    multiple = best_multiple(total, v2 + 2.0 * own, np.inf) if total > 0.0 else 1.0
    if multiple > 1.0 and math.isfinite(cap):
        multiple = min(multiple, room(alone, weights, cap))
    ordinary = total > SMALL and is_ordinary(problem, total, spread)
    spread, total, own = multiple * spread, multiple * total, multiple * (multiple * own)
    ordinary = ordinary and total > SMALL and is_ordinary(problem, total, spread) and multiple <= GROWN
    if not (ordinary and math.isfinite(found.least + total + own + spread)):
        return None
    whole, rest = shrink(alone, y, weights, cap, multiple, multiple)
    if free and abs(whole + rest) > UNEVEN * total:  # one class had next to nothing
        return None
    v *= multiple
    if rho:
        v[-1] = rho * (whole + rest)
    # two sums of n terms, the second of what the first has lost
    uneven = (1.0 + EPS) * abs(whole + rest) + (n * EPS) ** 2 * total if free else 0.0
    terms = in_a_row(found.used, n)
    length = dual_length(problem, sample, Plain, v, spread + rho * total, terms, uneven)
    error = Plain.error(total - own, total + own, terms) + (n + 4.0) * LEAST
    dual = dual_bound(problem, DualSums(total - own, total + own, error, uneven, length))
    length = measured(problem.weights(w, b), problem.q, Plain)
    error = Plain.error(found.least, found.least, in_a_row(n, n))
    primal = primal_bound(problem, PrimalSums(found.nominal, found.least, error, length))
    bounds = both(problem, dual, primal)
    return (alone, bounds) if bounds.lower <= bounds.upper else None


# The sums that the bounds of a soft margin at p = 2 are made of, over dense rows in one pass. Rows are taken so many
# at a time that they are still in cache when they are combined; every sum is one of the sums of such parts, so that
# long ones keep their digits. `cap` is C for the hinge, infinite for squared losses.
#
# A loop that adds up writes nothing: which of its versions runs, and in what order they add, would depend on where in
# memory the arrays lie.


@compiled(fastmath={"reassoc", "contract"})
def capped(alpha, weights, cap, y, out):
    """out = alpha, none of them negative or above cap s_i. (Their sums over both classes.)"""
    plus = minus = 0.0
    for k in range(alpha.size):
        most = cap * weights[k] if weights[k] > 0.0 else 0.0
        out[k] = min(alpha[k], most) if alpha[k] > 0.0 else 0.0
    for k in range(alpha.size):
        plus += out[k] if y[k] > 0.0 else 0.0
        minus += out[k] if y[k] <= 0.0 else 0.0
    return plus, minus


@compiled()
def shrink(alpha, y, weights, cap, plus, minus):
    """alpha times these factors, one of each class, and no more than cap s_i. (The sum of y alpha, in two parts.)"""
    whole = rest = 0.0
    for k in range(alpha.size):
        # no branch: classes come in any order
        value = alpha[k] * (0.5 * ((1.0 + y[k]) * plus + (1.0 - y[k]) * minus))
        most = cap * weights[k]  # not a number, if there is no cap and no weight
        value = most if most < value else value
        alpha[k] = value
        value *= y[k]
        total = whole + value
        back = total - whole
        rest += (whole - (total - back)) + (value - back)
        whole = total
    return whole, rest


@compiled(fastmath={"reassoc", "contract"})
def room(alpha, weights, cap):
    """The largest multiple of alpha that is nowhere above cap s_i."""
    most = np.inf
    for k in range(alpha.size):
        ratio = cap * weights[k] / alpha[k]  # of nothing to nothing it is not a number
        most = ratio if ratio < most else most
    return most


@compiled()
def quotient(a, s, four_C):
    """a / (4 C s), and 0 where there is no weight at all."""
    return a / (four_C * s if s > 0.0 else 1.0)


@compiled()
def quotients(alpha, weights, four_C):
    """The sum of alpha^2 / (4 C s_i), as it is written: squares of tiny numbers would lose their digits."""
    p = q = r = s = 0.0
    whole = alpha.size - alpha.size % 4
    for k in range(0, whole, 4):  # side by side, as no sum of one kind may be taken apart
        p += quotient(alpha[k], weights[k], four_C) * alpha[k]
        q += quotient(alpha[k + 1], weights[k + 1], four_C) * alpha[k + 1]
        r += quotient(alpha[k + 2], weights[k + 2], four_C) * alpha[k + 2]
        s += quotient(alpha[k + 3], weights[k + 3], four_C) * alpha[k + 3]
    for k in range(whole, alpha.size):
        p += quotient(alpha[k], weights[k], four_C) * alpha[k]
    return (p + q) + (r + s)


@compiled()
def mark(projected, first):
    """What `certificates.marked` makes of the projections of rows from this place on, in their place."""
    for k in range(projected.size):
        place = np.uint32(first + k)
        shuffle = np.uint32(place * np.uint32(2654435769)) >> np.uint32(12)
        projected[k] = (projected[k] + 1.0) * (0.5 + shuffle * 2.0**-21)


@compiled(fastmath={"reassoc", "contract"})
def checksums(marks, y, weights):
    """The sums of a fingerprint: of marks times what labels and weights tell, and of their sizes."""
    checksum = scale = 0.0
    for k in range(marks.size):
        told = marks[k] * ((1.0 + weights[k]) * (3.0 + y[k]))
        checksum += told
        scale += abs(told)
    return checksum, scale


@compiled(fastmath={"reassoc", "contract"})
def one_pass(X, y, weights, norms, alpha, w, b, C, squared, each, constant, shares, marks, desk, some, v):
    """v[0] = sum alpha y x, and sums of the losses of (w, b) and of alpha; `v[1]` and `desk` are room for parts.

    A score is off by no more than each |x_i| + constant. (The losses of margins that are as small as they may be; of
    margins as they seem; sum alpha of the positive and of the negative class; of squared losses
    sum alpha^2 / (4 C s_i); sum alpha |x_i|; how many alpha are not 0; `checksums` of the marks: where there are
    `shares` of columns they are made here, and kept if there is room.)
    """
    least = nominal = plus = minus = own = spread = checksum = scale = 0.0
    score, signed, step = desk[0], desk[1], desk.shape[1]
    count = 0
    for first in range(0, alpha.size, step):
        last = min(first + step, alpha.size)
        rows, a, s = X[first:last], alpha[first:last], weights[first:last]
        length, side = norms[first:last], y[first:last]
        scores(rows, w, score[: a.size])
        small, seeming, positive, negative, sizes = 0.0, 0.0, 0.0, 0.0, 0.0
        for k in range(a.size):
            signed[k] = side[k] * a[k]
        for k in range(a.size):
            margin, cost = side[k] * (score[k] + b), C * s[k]
            low = margin - (each * length[k] + constant)
            # what is not a number is no margin
            rest, seen = 0.0 if low >= 1.0 else 1.0 - low, 0.0 if margin >= 1.0 else 1.0 - margin
            small += cost * (rest * (rest if squared else 1.0))
            seeming += cost * (seen * (seen if squared else 1.0))
            positive += max(signed[k], 0.0)
            negative -= min(signed[k], 0.0)
            sizes += a[k] * length[k]
            count += a[k] > 0.0
        told = marks[first:last] if marks.size else score[: a.size]
        if shares.size:
            scores_near(rows, shares, told)
            mark(told, first)
        part, size = checksums(told, side, s)
        checksum += part
        scale += size
        least += small
        nominal += seeming
        plus += positive
        minus += negative
        spread += sizes
        own += quotients(signed[: a.size], s, 4.0 * C) if squared else 0.0
        add_combined(rows, signed[: a.size], some, v[1], v[0])
    return least, nominal, plus, minus, own, spread, count, checksum, scale
