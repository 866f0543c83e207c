"""Bounds of kernel expansions w = sum c_i phi(x_i), and the choice of the primal point that proves most."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from ..kernels.functions import Kernel
from ..problem.intercept import best_intercept, best_multiple_and_intercept
from ..problem.problem import Problem
from .bounds import EPS, Bounds, Side, both, dual_bound, dual_sums, imbalance, primal_bound, primal_sums
from .certificate import Certificate
from .dual_variables import feasible
from .gram import Combination, KernelSample
from .sample import Sample

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


def kernel_attained_margin(
    problem: Problem, sample: KernelSample, y: np.ndarray, c: np.ndarray, b: float
) -> float:
    """Return a lower bound of the margin of sum c_i k(x_i, .) + b, rounded downwards.

    Parameters
    ----------
    problem : Problem
        A hard margin.
    sample : KernelSample
    y : ndarray of shape (n,), entries -1.0 and 1.0
    c : ndarray of shape (n,)
    b : float
    """
    return primal_side(problem, y, np.ones(y.size), sample.combinations(c[None])[0], b).bound


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
        proof = dual_side(problem, sample, y, s, alpha, dual)
        if not (
            problem.hard or proof.bound >= 0.0
        ):  # no dual weights prove more than ones that rounding spoils
            alpha, proof = np.zeros_like(alpha), Side(0.0, 0.0, 0.0)
        given, share = None, shares[k]
        if share is None:
            given = next(rest)
        elif not problem.hard and share != 0.0:  # the multiple that is best for the primal may be another
            given = sample.multiple(combinations[k], share, share * combinations[k].c)
        found: list[KernelBounds] = []
        seen = 0.0 if gaps is None else gaps[k]
        for w, b in _primal_points(problem, sample, y, s, given, point.intercept, dual):
            side = primal_side(problem, y, s, w, b)
            found.append(KernelBounds(both(problem, proof, side), KernelPoint(alpha, w.c, b), side.value))
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
    if problem.hard and (proved < 0.0).any():  # `proved` is minus a margin: a proved separator comes first
        values = np.where(proved < 0.0, values, np.inf)
    near = values <= values.min() + NEXT * abs(values.min())
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
    """Yield candidates: the given point, the best multiple of the dual one, both scaled to no losses, and w = 0."""
    tried = [] if given is None else [(given, intercept)]
    yield from tried
    tried.append(_best_primal(problem, sample, dual, y, weights))
    yield tried[-1]
    if not problem.hard:
        for w, b in tried:
            yield from _without_losses(sample, y, weights, w, b)
        yield _nothing(problem, y, weights)


def _worth(problem: Problem, value: float) -> float:
    """Return an objective to be minimised: minus the margin of a hard problem; inf for NaN."""
    value = -value if problem.hard else value
    return np.inf if np.isnan(value) else value


def _nothing(problem: Problem, y: np.ndarray, weights: np.ndarray) -> tuple[Combination, float]:
    """w = 0 and its best intercept."""
    zero = np.zeros(y.size)
    b = best_intercept(problem, zero, y, weights) if problem.free else 0.0
    return Combination(zero, zero, 0.0, 0.0, 0.0), b


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
    alpha = problem.capped(t * alpha, weights)
    return alpha, sample.multiple(dual, t, alpha * y)


def dual_side(
    problem: Problem,
    sample: KernelSample,
    y: np.ndarray,
    weights: np.ndarray,
    alpha: np.ndarray,
    dual: Combination,
) -> Side:
    """Return the bound of feasible dual variables, of which `dual` is sum alpha_i y_i phi(x_i).

    Scaling the heavier class down by what its total exceeds the other moves v by as many radii of the data.
    """
    uneven = imbalance(alpha, y) if problem.free else 0.0
    length = dual.dual_length(problem, alpha, uneven * sample.most**0.5)
    return dual_bound(problem, dual_sums(problem, weights, alpha, length, uneven))


def primal_side(problem: Problem, y: np.ndarray, weights: np.ndarray, w: Combination, b: float) -> Side:
    """Return the bound of the primal point (w, b)."""
    sums = primal_sums(problem, weights, w.margins(y, b), w.primal_length(problem, b))
    return primal_bound(problem, sums)


def _without_losses(
    sample: KernelSample, y: np.ndarray, weights: np.ndarray, w: Combination, b: float
) -> list[tuple[Combination, float]]:
    """The multiple whose margins reach 1, for all that rounding may do: a large C magnifies what is missing.

    Three times what they may be off: here, and twice where scores are computed anew.
    """
    margins, slack = w.margins(y, b)
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
        problem, float(found.lower), float(found.upper), support, alpha[support], sample.fingerprint, kernel
    )
