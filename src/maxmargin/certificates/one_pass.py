"""Certificates of what solvers find, as fast as can be: of a soft margin of dense rows, all sums in one pass.

`certificates.certify` makes the same of any problem and any rows, with nothing compiled; `certificates.verify` checks
both.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import scipy.sparse as sp

from ..engine.bounds import capped, one_pass, room, shrink
from ..engine.jit import writable
from ..numerics.sums import TERMS, Plain, in_a_row
from ..problem.problem import Problem, best_multiple
from .bounds import (
    BALANCED,
    Bounds,
    Certificate,
    Sample,
    Sums,
    column_shares,
    proved,
    rounded,
    soft_bounds,
    with_more_digits,
)
from .bounds import certify as certify_any
from .huge_columns import is_ordinary

_EPS, _LEAST = float(np.finfo(float).eps), float(np.finfo(float).smallest_subnormal)
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
    """The certificate of a primal point (w, b) and dual weights alpha: `certificates.certify`, sooner.

    Parameters and bounds are the same, but for rounding; between the classes as much may be left as `verify` allows.
    """
    with np.errstate(over="ignore", invalid="ignore"):
        started = _in_one_pass(problem, sample, w, b, alpha)
    if started is None:
        return certify_any(problem, sample, w, b, alpha, tol, affords)
    return proved(problem, sample, *with_more_digits(problem, sample, w, b, *started, tol, affords))


class _Pass(NamedTuple):
    """The sums that `engine.bounds.one_pass` returns, and v = sum alpha y x.

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
    """Are these a soft margin at p = 2 and dense rows?"""
    X = sample.X
    return not (
        problem.hard or not problem.euclidean or sp.issparse(X) or not (X.size and X.flags.c_contiguous)
    )


def _in_one_pass(
    problem: Problem, sample: Sample, w: np.ndarray, b: float, alpha: np.ndarray
) -> tuple[np.ndarray, Bounds] | None:
    """Feasible dual weights near alpha, and the bounds, of a soft margin of dense rows at p = 2; None of all else.

    The sums are those of `feasible`, `_multiplied` and `bounds`, made together while rows are in cache.
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
    constant = Plain.error(0.0, abs(b), terms) + terms * 2.0 * _LEAST
    v = np.zeros((2, w.size))
    desk = np.empty((2, min(n, TERMS)))
    told, shares = sample.told_marks, np.empty(0)
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
    uneven = (1.0 + _EPS) * abs(whole + rest) + (n * _EPS) ** 2 * total if free else 0.0
    terms = in_a_row(found.used, n)
    dual = rounded(problem, sample, Plain, v, spread + rho * total, terms, uneven)
    sums = Sums(n, found.used, total - own, total + own, found.least, found.nominal, terms, in_a_row(n, n))
    bounds = soft_bounds(problem, Plain, (w, b), sums, dual)
    return (alone, bounds) if bounds.lower <= bounds.upper else None
