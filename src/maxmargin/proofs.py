"""Certificates of what solvers find, as fast as can be: of a soft margin of dense rows, all sums in one pass.

`certificates.certify` makes the same of any problem and any rows, with nothing compiled; `certificates.verify` checks
both.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import scipy.sparse as sp

from .arithmetic import TERMS, Plain, in_a_row
from .certificates import (
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
from .certificates import certify as certify_any
from .compiled.bounds import capped, one_pass, room, shrink
from .compiled.jit import writable
from .exactness import is_ordinary
from .problems import Problem, best_multiple

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


def _in_one_pass(
    problem: Problem, sample: Sample, w: np.ndarray, b: float, alpha: np.ndarray
) -> tuple[np.ndarray, Bounds] | None:
    """Feasible dual weights near alpha, and the bounds, of a soft margin of dense rows at p = 2; None of all else.

    The sums are those of `feasible`, `_multiplied` and `bounds`, made together while rows are in cache.
    """
    X, y, weights, norms, n = sample.X, sample.y, sample.weights, sample.norms, sample.y.size
    if problem.hard or not problem.euclidean or sp.issparse(X) or not (X.size and X.flags.c_contiguous):
        return None
    C, cap, free, rho = float(problem.C), float(problem.cap), problem.free, problem.rho
    w, alpha = np.ascontiguousarray(w, dtype=float), np.ascontiguousarray(alpha, dtype=float)
    alone = np.empty(n)
    plus, minus = capped(alpha, weights, cap, y, alone)
    if free:
        if not (plus > 0.0 and minus > 0.0):
            return None
        side = min(plus, minus)
        left = sum(shrink(alone, y, weights, cap, side / plus, side / minus))
        if abs(left) > BALANCED * side:  # long sums of equal numbers are off in one direction
            shrink(alone, y, weights, cap, 1.0 - max(left, 0.0) / side, 1.0 - max(-left, 0.0) / side)
    terms = w.size + 1
    each = Plain.error(0.0, 1.01 * Plain.norm(w), terms)
    constant = Plain.error(0.0, abs(b), terms) + terms * 2.0 * _LEAST
    v, desk = np.zeros((2, w.size)), np.empty((2, min(n, TERMS)))
    told, shares = sample.told_marks, np.empty(0)
    marks = np.empty(n if sample.like is not None else 0) if told is None else told
    if told is None and sample.unmarked:
        shares = column_shares(w.size)
    least, nominal, total, own, spread, count, checksum, scale = one_pass(
        writable(X), y, weights, norms, alone, w, b, C, problem.loss != "hinge", each, constant, shares, marks,
        desk, np.empty(desk.shape[1], np.uint32), v,
    )  # fmt: skip
    if sample.unmarked:
        sample.remember(checksum, scale, marks)
    v = np.append(v[0], rho * (plus - minus)) if rho else v[0]
    v2 = Plain.square(v)
    multiple = best_multiple(total, v2 + 2.0 * own, np.inf) if total > 0.0 else 1.0
    if multiple > 1.0 and math.isfinite(cap):
        multiple = min(multiple, room(alone, weights, cap))
    ordinary = total > SMALL and is_ordinary(problem, total, spread)
    spread, total, own = multiple * spread, multiple * total, multiple * (multiple * own)
    ordinary = ordinary and total > SMALL and is_ordinary(problem, total, spread) and multiple <= GROWN
    if not (ordinary and math.isfinite(least + total + own + spread)):
        return None
    whole, rest = shrink(alone, y, weights, cap, multiple, multiple)
    if free and abs(whole + rest) > UNEVEN * total:  # one class had next to nothing
        return None
    v *= multiple
    if rho:
        v[-1] = rho * (whole + rest)
    # two sums of n terms, the second of what the first has lost
    uneven = (1.0 + _EPS) * abs(whole + rest) + (n * _EPS) ** 2 * total if free else 0.0
    terms = in_a_row(count, n)
    dual = rounded(problem, sample, Plain, v, spread + rho * total, terms, uneven)
    sums = Sums(n, count, total - own, total + own, least, nominal, terms, in_a_row(n, n))
    found = soft_bounds(problem, Plain, (w, b), sums, dual)
    return (alone, found) if found.lower <= found.upper else None
