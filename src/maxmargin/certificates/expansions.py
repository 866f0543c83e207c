"""Bounds of kernel expansions w = sum c_i phi(x_i)."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from ..kernels.functions import Kernel
from ..problem.intercept import best_intercept, best_multiple_and_intercept
from ..problem.problem import Problem
from .bounds import Bounds
from .certificate import Certificate
from .dual_variables import feasible
from .gram import EPS, Combination, KernelSample
from .sample import Sample, fingerprint

NEXT = 1e-3  # share of the best objective, up to which others are as good
AS_SMALL = 1.001  # a gap that is no larger is the same
TURNS = 20  # length and intercept in turn


class KernelPoint(NamedTuple):
    """Dual weights, and a primal point w = sum coefficients_i phi(x_i) with its intercept."""

    alpha: np.ndarray
    coefficients: np.ndarray
    intercept: float


class KernelBounds(NamedTuple):
    """Bounds, rounded outwards, and the point that proves them.

    `value` is the objective of its primal side in float64, or the margin, where it is hard: nothing is taken from it.
    """

    bounds: Bounds
    point: KernelPoint
    value: float


def kernel_bounds(
    problem: Problem, kernel: Kernel, X: Any, y: np.ndarray, weights: np.ndarray, alpha: np.ndarray
) -> KernelBounds:
    """The bounds that dual weights prove, with the best primal point along them.

    Parameters
    ----------
    problem : Problem
        p = 2.
    kernel : Kernel
    X : ndarray or CSR matrix of shape (n, d)
    y : ndarray of shape (n,), entries -1.0 and 1.0
    weights : ndarray of shape (n,)
        Sample weights; rows of weight 0 take no part.
    alpha : ndarray of shape (n,)
        Any non-negative numbers; they are made feasible first.
    """
    return all_bounds(
        [problem], KernelSample(kernel, X), [y], [weights], [KernelPoint(alpha, alpha * y, 0.0)]
    )[0]


def attained(problem: Problem, sample: KernelSample, y: np.ndarray, c: np.ndarray, b: float) -> float:
    """What the margin of sum c_i k(x_i, .) + b is at least, rounded downwards.

    Parameters
    ----------
    problem : Problem
        A hard margin.
    sample : KernelSample
    y : ndarray of shape (n,), entries -1.0 and 1.0
    c : ndarray of shape (n,)
    b : float
    """
    return _primal_side(problem, y, np.ones(y.size), sample.combinations(c[None])[0], b)[0]


def all_bounds(
    problems: Sequence[Problem],
    sample: KernelSample,
    ys: Sequence[np.ndarray],
    weights: Sequence[np.ndarray],
    points: Sequence[KernelPoint],
    gaps: Sequence[float] | None = None,
) -> list[KernelBounds]:
    """The bounds of several problems on the same rows, which cost one computation of the kernel.

    The primal point is that which was given, or where it does not prove a gap that is next to nothing above that of
    `gaps`, the best multiple of the dual one with its best intercept, if that is better (`better`).
    """
    duals = [
        feasible(problem, y, s, point.alpha)
        for problem, y, s, point in zip(problems, ys, weights, points, strict=True)
    ]
    signed = [alpha * y for alpha, y in zip(duals, ys, strict=True)]
    share_of = _share if sample.features is None else _equal
    shares = [share_of(point.coefficients, c) for point, c in zip(points, signed, strict=True)]
    others = [point.coefficients for point, share in zip(points, shares, strict=True) if share is None]
    combinations = sample.combinations(np.array([*signed, *others]))
    rest = iter(combinations[len(signed) :])
    result = []
    for k, (problem, y, s, point) in enumerate(zip(problems, ys, weights, points, strict=True)):
        alpha, dual = _multiplied(problem, sample, s, y, duals[k], combinations[k])
        proof = _dual_side(problem, sample, y, s, alpha, dual)
        if not (problem.hard or proof[0] >= 0.0):  # no dual weights prove more than ones that rounding spoils
            alpha, proof = np.zeros_like(alpha), (0.0, 0.0)
        given, share = None, shares[k]
        if share is None:
            given = next(rest)
        elif not problem.hard and share != 0.0:  # the multiple that is best for the primal may be another
            given = sample.multiple(combinations[k], share, share * combinations[k].c)
        found: list[KernelBounds] = []
        seen = 0.0 if gaps is None else gaps[k]
        for w, b in _primal_points(problem, sample, y, s, given, point.intercept, dual):
            side = _primal_side(problem, y, s, w, b)
            found.append(KernelBounds(_both(problem, proof, side), KernelPoint(alpha, w.c, b), side.value))
            if problem.gap(found[-1].bounds.lower, found[-1].bounds.upper) <= AS_SMALL * seen:
                break
        result.append(better(problem, found))
    return result


def better(problem: Problem, found: Sequence[KernelBounds]) -> KernelBounds:
    """Of those whose objective, or margin, is next to the best, the one that proves most.

    What rounding takes from a bound is no fault of the point: w = 0, of which it takes nothing, is no better for it.
    """
    values = np.array([_worth(problem, one.value) for one in found])
    proved = np.array(
        [_worth(problem, one.bounds.lower if problem.hard else one.bounds.upper) for one in found]
    )
    gaps = np.array([problem.gap(one.bounds.lower, one.bounds.upper) for one in found])
    near = values <= values.min() + NEXT * abs(values.min())
    if problem.hard and (proved < 0.0).any():  # `proved` is minus a margin: a proved separator comes first
        near = proved < 0.0
    return found[int(np.lexsort((values, proved, gaps, ~near))[0])]


def _primal_points(
    problem: Problem,
    sample: KernelSample,
    y: np.ndarray,
    weights: np.ndarray,
    given: Combination | None,
    intercept: float,
    dual: Combination,
) -> Iterator[tuple[Combination, float]]:
    """What may attain the most: the point that was given, that along the dual one, those without losses, and none."""
    tried = [] if given is None else [(given, intercept)]
    yield from tried
    tried.append(_best_primal(problem, sample, dual, y, weights))
    yield tried[-1]
    if not problem.hard:
        for w, b in tried:
            yield from _without_losses(sample, y, weights, w, b)
        yield _nothing(problem, y, weights)


def _worth(problem: Problem, value: float) -> float:
    """What is least for the best primal point; not a number is the worst."""
    value = -value if problem.hard else value
    return np.inf if np.isnan(value) else value


def _nothing(problem: Problem, y: np.ndarray, weights: np.ndarray) -> tuple[Combination, float]:
    """w = 0 and its best intercept."""
    zero = np.zeros(y.size)
    b = best_intercept(problem, zero, y, weights) if problem.free else 0.0
    return Combination(zero, zero, 0.0, 0.0, 0.0), b


def _both(problem: Problem, dual: tuple[float, float], primal: _Side) -> Bounds:
    """A bound and what rounding took from it, of either side: which of them is the lower one?"""
    (lower, below), (upper, above) = (primal[:2], dual) if problem.hard else (dual, primal[:2])
    return Bounds(lower, upper, below, above)


def _share(c: np.ndarray, other: np.ndarray) -> float | None:
    """The t for which c is t times the other, but for rounding: its scores are known without it; else None."""
    square = float(other @ other)
    if square == 0.0 or not c.any():
        return None if c.any() else 0.0
    t = float(c @ other) / square
    t = 1.0 if abs(t - 1.0) <= c.size * EPS else t  # no rounding beyond a cap
    return t if float(np.abs(c - t * other).max()) <= 1e-9 * float(np.abs(c).max()) else None


def _equal(c: np.ndarray, other: np.ndarray) -> float | None:
    """`_share` where rounding is seen: sums of large coefficients cancel, so that next to equal ones make another w."""
    return 1.0 if np.array_equal(c, other) else None


def _multiplied(
    problem: Problem,
    sample: KernelSample,
    weights: np.ndarray,
    y: np.ndarray,
    alpha: np.ndarray,
    dual: Combination,
) -> tuple[np.ndarray, Combination]:
    """The best multiple of the dual weights; of a hard margin only proportions count."""
    if problem.hard or not alpha.any():
        return alpha, dual
    own = problem.rho * float(dual.c.sum())
    t = problem.multiple(alpha, dual.square + own * own, weights)
    alpha = np.minimum(t * alpha, problem.caps(weights))
    return alpha, sample.multiple(dual, t, alpha * y)


def _dual_side(
    problem: Problem,
    sample: KernelSample,
    y: np.ndarray,
    weights: np.ndarray,
    alpha: np.ndarray,
    dual: Combination,
) -> tuple[float, float]:
    """What the dual weights prove, and what rounding took from it."""
    terms, total = int(np.count_nonzero(alpha)) + 4, float(alpha.sum())
    own = problem.rho * float(dual.c.sum())
    square = dual.square + own * own
    uncertain = dual.uncertain + 4.0 * terms * EPS * problem.rho * problem.rho * total * total
    # classes whose totals differ by rounding: scaling the heavier one down moves v by so much
    uneven = 0.0
    if problem.free:
        uneven = abs(math.fsum(dual.c[dual.c != 0.0].tolist()))
        moved = uneven * sample.most**0.5
        uncertain += 2.0 * moved * ((square + uncertain) ** 0.5 + moved)
    if problem.hard:
        rest = total * (1.0 - (alpha.size + 4.0) * EPS) - uneven
        if not rest > 0.0:
            return np.inf, 0.0
        upper = (square + uncertain) ** 0.5 / rest * (1.0 + 8.0 * EPS)
        return upper, upper - square**0.5 / total
    size = float((2.0 * alpha - problem.gains(alpha, weights)).sum())
    below = 0.5 * uncertain + (terms + 4.0) * EPS * (size + square) + 2.0 * uneven
    return problem.dual(square, alpha, weights) - below, below


class _Side(NamedTuple):
    """What a primal point attains, what rounding took from that, and what it attains as computed."""

    bound: float
    taken: float
    value: float


def _primal_side(problem: Problem, y: np.ndarray, weights: np.ndarray, w: Combination, b: float) -> _Side:
    margins, slack = _margins(y, w, b)
    square = problem.norm2(w.square, b)
    if problem.hard:
        used = weights > 0.0
        least = float((margins - slack)[used].min())
        if not square > 0.0:
            return _Side(-np.inf, 0.0, -np.inf)
        value = float(margins[used].min()) / square**0.5
        far = square + w.uncertain if least > 0.0 else max(square - w.uncertain, 0.0)
        lower = least / far**0.5 if far > 0.0 else -np.inf
        lower -= 8.0 * EPS * abs(lower)
        return _Side(lower, value - lower if np.isfinite(lower) else 0.0, value)
    value = problem.primal(0.5 * square, margins, weights)
    upper = problem.primal(0.5 * (square + w.uncertain), margins - slack, weights)
    upper += (margins.size + 8.0) * EPS * upper
    return _Side(upper, upper - value, value)


def _margins(y: np.ndarray, w: Combination, b: float) -> tuple[np.ndarray, np.ndarray]:
    """The margins, and by how much each may be off."""
    margins = y * (w.scores + b)
    rounded = np.where(w.scores == 0.0, 0.0, 4.0 * EPS * np.abs(margins))  # b alone is not rounded
    return margins, w.off + rounded


def _without_losses(
    sample: KernelSample, y: np.ndarray, weights: np.ndarray, w: Combination, b: float
) -> list[tuple[Combination, float]]:
    """The multiple whose margins reach 1, for all that rounding may do: a large C magnifies what is missing.

    Three times what they may be off: here, and twice where scores are computed anew.
    """
    margins, slack = _margins(y, w, b)
    least = float((margins - 3.0 * slack).min(where=weights > 0.0, initial=np.inf))
    if not 0.0 < least < 1.0:
        return []
    t = (1.0 + 16.0 * EPS) / least
    return [(sample.multiple(w, t, t * w.c), t * b)]


def _best_primal(
    problem: Problem, sample: KernelSample, dual: Combination, y: np.ndarray, weights: np.ndarray
) -> tuple[Combination, float]:
    """The best multiple of the w of these dual weights, and its intercept."""
    constant = problem.rho * problem.rho * float(dual.c.sum())
    t, b = 1.0, constant
    if problem.free:
        b = best_intercept(problem, dual.scores, y, weights)
    if problem.hard:
        smallest = float((y * (dual.scores + b))[weights > 0.0].min())
        t = 1.0 / smallest if smallest > 0.0 else 1.0  # canonical scale: the smallest margin is one
        b = t * b
    elif problem.loss == "squared_hinge":
        t, b = best_multiple_and_intercept(problem, dual.square, dual.scores, b, y, weights, TURNS)
    return sample.multiple(dual, t, t * dual.c), b


def certificate(
    problem: Problem, kernel: Kernel, sample: Sample, found: Bounds, alpha: np.ndarray
) -> Certificate:
    """Bounds and the dual weights that prove one of them, with the fingerprint of the data."""
    support = np.flatnonzero(alpha).astype(np.int64)
    return Certificate(
        problem, float(found.lower), float(found.upper), support, alpha[support], fingerprint(sample), kernel
    )
