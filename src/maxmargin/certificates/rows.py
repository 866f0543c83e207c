"""Bounds for a weight vector, whose sums are taken over rows."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace

import numpy as np

from ..numerics.sums import (
    Arithmetic,
    Compensated,
    CutShortError,
    Plain,
    cut_short_unless,
    parts,
    powers_error,
)
from ..problem.problem import Problem
from .bounds import Bounds, DualPoint, Sums, soft_bounds
from .certificate import Certificate
from .dual_variables import even_out, feasible, proportions
from .huge_columns import exact_bound, huge_columns, inside
from .sample import Sample

_EPS, _LEAST = float(np.finfo(float).eps), float(np.finfo(float).smallest_subnormal)
SEEN = 3e-3  # rounding that takes more than this share of the gap is avoided,
REACHED = 3e-2  # or of the gap that is asked for, where it is reached nevertheless;
NEGLIGIBLE, FEW = 1e-10, 20_000  # unless it is this share of a bound of a sample with more entries than that
FEWER = 2  # times as many entries as count, where it is worth to leave the others out


def certify(
    problem: Problem,
    sample: Sample,
    w: np.ndarray,
    b: float,
    alpha: np.ndarray,
    tol: float = 0.0,
    affords: Callable[[float], bool] = lambda seconds: True,
) -> Certificate:
    """The certificate of a primal point (w, b) and dual weights alpha, made feasible first.

    Parameters
    ----------
    problem : Problem
    sample : Sample
    w : ndarray of shape (d,)
    b : float
    alpha : ndarray of shape (n,)
        Any non-negative numbers; best, those of a solver.
    tol : float, default=0
        The gap that is asked for: rounding that is far below it may remain.
    affords : callable
        Is there time for sums that take so many seconds? Where there is not, they are not begun. Asked of no seconds
        while they are made, which ends them.

    Notes
    -----
    Bounds are rounded outwards: they hold for the numbers as they are. Sums are ordinary ones where that costs
    next to nothing of the gap, else compensated ones.
    """
    y, weights = sample.y, sample.weights
    alpha = feasible(problem, y, weights, np.asarray(alpha, dtype=float))
    huge = huge_columns(problem, sample.X, sample.norms, alpha)
    alone, found = _multiplied(problem, sample, w, b, alpha, huge, tol, affords)
    if huge is not None and not found.lower > 0.0:  # no room for real dual weights around these
        near = feasible(problem, y, weights, inside(problem, sample.X, y, weights, alpha, huge))
        alone, found = _multiplied(problem, sample, w, b, near, huge, tol, affords)
        if not found.lower > 0.0:
            alone, found = _multiplied(problem, sample, w, b, alpha, None, tol, affords)
    return proved(problem, sample, alone, found)


def proved(problem: Problem, sample: Sample, alpha: np.ndarray, found: Bounds) -> Certificate:
    """The certificate of these bounds, of which alpha proves one."""
    support = np.flatnonzero(alpha > 0.0)
    lower, upper = float(found.lower), float(found.upper)  # whose quotient may overflow in silence
    return Certificate(problem, lower, upper, support, alpha[support], sample.fingerprint)


def _multiplied(
    problem: Problem,
    sample: Sample,
    w: np.ndarray,
    b: float,
    alpha: np.ndarray,
    huge: np.ndarray | None,
    tol: float,
    affords: Callable[[float], bool],
) -> tuple[np.ndarray, Bounds]:
    """The best multiple of alpha, huge columns left out as if they cancelled, and its bounds."""
    if problem.hard:  # only proportions count
        found = bounds(problem, sample, w, b, alpha)
        return with_more_digits(problem, sample, w, b, alpha, found, tol, affords)
    signed = alpha * sample.y
    v = Plain.combine(sample.X, signed)
    full = np.append(v, problem.rho * Plain.total(signed)) if problem.rho else v
    v2 = Plain.square(full if huge is None else full[~huge[: full.size]], problem.p)
    multiple = 1.0 if not alpha.any() else problem.multiple(alpha, v2, sample.weights)
    alpha = problem.capped(np.multiply(alpha, multiple, out=signed), sample.weights)
    found = bounds(problem, sample, w, b, alpha, Plain, v * multiple)
    return with_more_digits(problem, sample, w, b, alpha, found, tol, affords)


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
    """The same bounds, of sums with as many digits as it takes."""
    share = REACHED if problem.gap(found.lower, found.upper) <= tol else SEEN
    negligible = max(0.0 if sample.entries <= FEW else NEGLIGIBLE, share * tol)
    if (
        _is_seen(problem, found, negligible) and problem.free
    ):  # the multiple has rounded the dual weights once more
        even_out(alpha, sample.y, problem.caps(sample.weights))
    if _is_seen(problem, found, negligible) and affords(Compensated.SECONDS * sample.entries):
        with suppress(CutShortError), cut_short_unless(lambda: affords(0.0)):
            found = bounds(problem, sample, w, b, alpha, Compensated)
    return alpha, found


def _is_seen(problem: Problem, found: Bounds, negligible: float) -> bool:
    """Tell whether rounding takes a part of the gap that is worth more digits, or hides that (w, b) separates."""
    if problem.hard and -found.below <= found.lower <= 0.0:  # the margin as computed is positive
        return True
    return not found.rounding <= max(SEEN * (found.upper - found.lower), negligible * abs(found.upper))


def bounds(
    problem: Problem,
    sample: Sample,
    w: np.ndarray,
    b: float,
    alpha: np.ndarray,
    arithmetic: Arithmetic = Plain,
    v: np.ndarray | None = None,
) -> Bounds:
    """Bounds from the data; alpha must be feasible. `v` is sum alpha_i y_i x_i, if known."""
    if problem.hard:  # whoever made them: tiny ones would make |v|^2 vanish, and a false bound
        alpha, v = proportions(alpha), None
    with np.errstate(over="ignore", invalid="ignore"):
        huge = huge_columns(problem, sample.X, sample.norms, alpha)
        margins = _margins(sample, w, b, arithmetic, huge is not None)
        dual = _dual_point(problem, sample, alpha, arithmetic, v)
        if problem.hard:
            found = _hard_bounds(problem, sample.weights, arithmetic, (w, b), margins, alpha, dual)
            separates = float(margins.values[sample.weights > 0.0].min()) > 0.0
            if separates and not found.below <= NEGLIGIBLE * found.lower:
                # |x_i| |w| bounds the rounding of a score too loosely to prove this margin where columns differ in
                # size: the sum of the absolute terms of each score is much smaller there
                margins = replace(margins, sizes=Plain.scores(abs(sample.X), np.abs(w)), times=1.0)
                found = _hard_bounds(problem, sample.weights, arithmetic, (w, b), margins, alpha, dual)
        else:
            sums = _soft_sums(problem, sample.weights, arithmetic, margins, alpha)
            found = soft_bounds(problem, arithmetic, (w, b), sums, dual)
        if huge is None:
            return found
        exact = exact_bound(problem, sample.X, sample.y, sample.weights, alpha, huge)
        better = exact.lower > found.lower or np.isnan(found.lower)
        return found._replace(lower=exact.lower, below=exact.below) if better else found


def _dual_point(
    problem: Problem,
    sample: Sample,
    alpha: np.ndarray,
    arithmetic: Arithmetic,
    v: np.ndarray | None,
) -> DualPoint:
    count, uneven = int(np.count_nonzero(alpha)), 0.0
    v = arithmetic.combine(sample.X, alpha * sample.y) if v is None else v
    if problem.rho:
        v = np.append(v, problem.rho * arithmetic.summed(np.multiply, alpha, sample.y))
    spread = float(alpha @ sample.norms) + problem.rho * float(alpha.sum())
    if problem.free:
        # an uneven rest moves v by so many radii of the data: more digits, whatever the others have
        finer = Compensated if arithmetic is Plain else arithmetic
        uneven = abs(finer.summed(np.multiply, *_few(alpha > 0.0, alpha, sample.y)))
        uneven += finer.error(uneven, float(alpha.sum()), finer.terms(alpha, count, 0))
    terms = arithmetic.terms(sample.X, count, 0)
    dual = rounded(problem, sample, arithmetic, v, spread, terms, uneven)
    # products of tiny numbers, and of their halves, may underflow
    if spread > 0.0 or problem.rho or sample.norms[alpha > 0.0].any():
        dual = dual._replace(off=dual.off + 8.0 * (count + 1.0) * v.size * _LEAST)
    return dual


def rounded(
    problem: Problem,
    sample: Sample,
    arithmetic: Arithmetic,
    v: np.ndarray,
    spread: float,
    terms: int,
    uneven: float,
) -> DualPoint:
    """The same of v, a sum of so many terms, the sum of whose lengths is `spread`."""
    # of rows, in the p-norm, at most
    times = max(v.size, 1) ** (1.0 / problem.p - 0.5) if problem.p < 2.0 else 1.0
    size = arithmetic.norm(v, problem.p)
    off = arithmetic.error(size, times * spread, terms) + arithmetic.error(size, size, v.size)
    if uneven > 0.0:
        off += uneven * times * sample.longest
    return DualPoint(v, off, uneven)


@dataclass(frozen=True)
class _Margins:
    """The margins, and what tells by how much each may be off: no score is a sum of more than times size + |b|."""

    values: np.ndarray
    sizes: np.ndarray
    times: float
    b: float
    arithmetic: Arithmetic
    terms: int
    width: int

    def off(self, values: np.ndarray, sizes: np.ndarray) -> np.ndarray:
        """Of all of them, or of some."""
        size = sizes * (1.01 * self.times)
        size += abs(self.b)
        off = self.arithmetic.error(values, size, self.terms)
        off += (self.width + 2) * _LEAST
        return off


def _margins(sample: Sample, w: np.ndarray, b: float, arithmetic: Arithmetic, uneven: bool) -> _Margins:
    """The margins; of `uneven` columns the lengths of the rows say too little."""
    margins = arithmetic.scores(sample.X, w, b)
    margins *= sample.y
    sizes, times = (Plain.scores(abs(sample.X), np.abs(w)), 1.0) if uneven else (sample.norms, Plain.norm(w))
    terms = arithmetic.terms(sample.X, sample.width, 1) + 1
    return _Margins(margins, sizes, times, b, arithmetic, terms, sample.width)


def _gains(problem: Problem, weights: np.ndarray, arithmetic: Arithmetic, alpha: np.ndarray) -> float:
    """What the dual weights are worth but for the square of v."""
    total = 0.0
    for part in _at_once(alpha.size, arithmetic):
        values, costs = _few(alpha[part] > 0.0, alpha[part], weights[part])
        total += arithmetic.total(problem.gains(values, costs))
    return total


def _losses(
    problem: Problem, weights: np.ndarray, arithmetic: Arithmetic, margins: _Margins
) -> tuple[float, float]:
    """The losses of margins that are as small as they may be, and of the margins as they seem."""
    total = nominal = 0.0
    for part in _at_once(weights.size, arithmetic):
        values, sizes = margins.values[part], margins.sizes[part]
        least = values - margins.off(values, sizes)
        short = ~(least >= 1.0)  # what is not a number is no margin
        least, values, costs = _few(short, least, values, weights[part])
        total += arithmetic.total(problem.losses(least, costs))
        nominal += Plain.total(problem.losses(values, costs))
    return total, nominal


def _at_once(n: int, arithmetic: Arithmetic) -> Iterable[slice]:
    """The places of entries that are added up together: with more digits all of them."""
    return parts(n) if arithmetic is Plain else (slice(0, n),)


def _few(wanted: np.ndarray, *vectors: np.ndarray) -> Sequence[np.ndarray]:
    """Their entries that are wanted, where these are few: all others add nothing."""
    if FEWER * np.count_nonzero(wanted) >= wanted.size:
        return vectors
    places = np.flatnonzero(wanted)
    return [vector[places] for vector in vectors]


def _soft_sums(
    problem: Problem, weights: np.ndarray, arithmetic: Arithmetic, margins: _Margins, alpha: np.ndarray
) -> Sums:
    gains, count = _gains(problem, weights, arithmetic, alpha), int(np.count_nonzero(alpha))
    losses, nominal = _losses(problem, weights, arithmetic, margins)
    size = 2.0 * float(alpha.sum()) - gains
    n = alpha.size
    of_gains, of_losses = arithmetic.terms(alpha, count, 0), arithmetic.terms(margins.values, n, 0)
    return Sums(n, count, gains, size, losses, nominal, of_gains, of_losses)


def _hard_bounds(
    problem: Problem,
    weights: np.ndarray,
    arithmetic: Arithmetic,
    point: tuple[np.ndarray, float],
    margins: _Margins,
    alpha: np.ndarray,
    dual: DualPoint,
) -> Bounds:
    w, b = point
    length = arithmetic.norm(problem.weights(w, b), problem.q)
    used = weights > 0.0
    lower = nominal = -np.inf
    if length > 0.0:
        values = margins.values
        nominal = float(values[used].min()) / length
        lower = float((values - margins.off(values, margins.sizes))[used].min()) / length
        inexact = arithmetic.error(1.0, 1.0, w.size) + powers_error(problem.q, w.size)
        lower -= abs(lower) * (inexact + 4.0 * _EPS)
    below = nominal - lower if np.isfinite(nominal) else 0.0
    total, size = arithmetic.total(alpha), arithmetic.norm(dual.v, problem.p)
    off_total = arithmetic.error(total, total, arithmetic.terms(alpha, alpha.size, 0)) + dual.uneven
    if not total > off_total:
        return Bounds(lower, np.inf, below, 0.0)
    longest = size * (1.0 + powers_error(problem.p, dual.v.size))
    longest += arithmetic.error(size, size, dual.v.size) + dual.off
    upper = longest / (total - off_total) * (1.0 + 4.0 * _EPS)
    return Bounds(lower, upper, below, upper - size / total)
