"""Bounds for kernel machines: those of `certificates`, with w = sum beta_i phi(x_i) known by its kernel values alone.

Everything is read off one product of the Gram matrix with the dual weights, in float64, a block of its rows at a time:
the scores f_j = sum alpha_i y_i k(x_i, x_j), and |v|^2 = sum alpha_j y_j f_j. The primal point is a multiple of the
dual one, with the best intercept where that is free.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from .certificates import Bounds, feasible
from .gram import gram_product
from .intercept import best_intercept
from .kernels import Kernel
from .problems import Problem, best_length

EPS = float(np.finfo(float).eps)
TURNS = 20  # length and intercept in turn


class KernelBounds(NamedTuple):
    """Bounds, the dual weights that prove one of them, and (length, intercept) of the primal point.

    The primal point is `length` times sum alpha_i y_i phi(x_i).
    """

    bounds: Bounds
    alpha: np.ndarray
    length: float
    intercept: float


def kernel_bounds(
    problem: Problem, kernel: Kernel, X: Any, y: np.ndarray, weights: np.ndarray, alpha: np.ndarray
) -> KernelBounds:
    """The bounds that dual weights prove, rounded outwards, with the best primal point along them.

    Parameters
    ----------
    problem : Problem
        p = 2.
    kernel : Kernel
        Whose values, computed in float64, are off by no more than `kernel.error`.
    X : ndarray or CSR matrix of shape (n, d)
    y : ndarray of shape (n,), entries -1.0 and 1.0
    weights : ndarray of shape (n,)
        Sample weights.
    alpha : ndarray of shape (n,)
        Any non-negative numbers; they are made feasible first.
    """
    X = kernel.prepared(X.astype(np.float64, copy=False))
    alpha = feasible(problem, y, weights, alpha)
    scores = gram_product(kernel, X, alpha * y)
    square = float((alpha * y) @ scores)
    balance = float(alpha @ y)
    if not problem.hard and alpha.any():
        own = problem.rho * balance
        t = problem.multiple(alpha, max(square, 0.0) + own * own, weights)
        alpha, scores, square, balance = (
            np.minimum(t * alpha, problem.caps(weights)),
            t * scores,
            t * t * square,
            t * balance,
        )
    # by how much scores, and the square of the length, may be off
    total, most = float(alpha.sum()), float(np.abs(kernel.diagonal(X)).max(initial=0.0))
    terms = int(np.count_nonzero(alpha)) + 4
    off = total * (kernel.error(X) + (terms + 2.0) * EPS * most)
    uncertain = total * off + terms * EPS * float(np.abs(alpha * scores).sum())
    constant = problem.rho * problem.rho * balance
    off += 4.0 * terms * EPS * problem.rho * problem.rho * total
    square2 = max(square, 0.0) + constant * balance
    uncertain += 4.0 * terms * EPS * problem.rho * problem.rho * total * total
    # classes whose totals differ by rounding: scaling the heavier one down moves v by so much
    uneven = 0.0
    if problem.free:
        uneven = abs(math.fsum((alpha * y).tolist()))
        moved = uneven * most**0.5
        uncertain += 2.0 * moved * (square2**0.5 + moved)
    length, b, margins = _primal_point(problem, scores + constant, square2, y, weights)
    intercept = b + length * constant
    if problem.hard:
        found = _hard(alpha, weights, margins, length, b, (square2, uncertain, off, uneven))
        return KernelBounds(found, alpha, length, intercept)
    # primal - dual is what the gap is; both are rounded outwards
    size = float((2.0 * alpha - problem.gains(alpha, weights)).sum())
    lower = problem.dual(square2, alpha, weights)
    below = 0.5 * uncertain + (terms + 4.0) * EPS * (size + square2) + 2.0 * uneven
    penalty = 0.5 * length * length * (square2 + uncertain)
    slack = length * off + 8.0 * EPS * (np.abs(margins) + abs(b))
    upper = problem.primal(penalty, margins - slack, weights)
    above = (margins.size + 8.0) * EPS * upper
    nominal = problem.primal(0.5 * length * length * square2, margins, weights)
    found = Bounds(lower - below, upper + above, below, upper + above - nominal)
    return KernelBounds(found, alpha, length, intercept)


def _primal_point(
    problem: Problem, scores: np.ndarray, square: float, y: np.ndarray, weights: np.ndarray
) -> tuple[float, float, np.ndarray]:
    """(length, intercept, margins) of the best multiple of w of these scores, |w|^2 = square."""
    t, b = 1.0, 0.0
    if problem.free:
        b = best_intercept(problem, scores, y, weights)
    if problem.hard:
        smallest = float((y * (scores + b)).min())
        t = 1.0 / smallest if smallest > 0.0 else 1.0
        return t, t * b, y * (t * scores + t * b)
    if problem.loss == "squared_hinge":
        for _ in range(TURNS if problem.free else 1):
            s = best_length(t * t * square, y * (t * scores + b), problem.C * weights)
            t, b = s * t, s * b
            if problem.free:
                b = best_intercept(problem, t * scores, y, weights)
            if abs(s - 1.0) <= 1e-9:
                break
    return t, b, y * (t * scores + b)


def _hard(
    alpha: np.ndarray,
    weights: np.ndarray,
    margins: np.ndarray,
    length: float,
    b: float,
    known: tuple[float, float, float, float],
) -> Bounds:
    """Margin and bound, in which the primal point's length cancels."""
    square, uncertain, off, uneven = known
    used = weights > 0.0
    total, terms = float(alpha.sum()), alpha.size + 4.0
    slack = length * off + 8.0 * EPS * (np.abs(margins) + abs(b))
    lower = nominal = -np.inf
    if square > 0.0:
        least = float((margins - slack)[used].min())
        nominal = float(margins[used].min()) / (length * square**0.5)
        far = (square + uncertain) if least > 0.0 else max(square - uncertain, 0.0)
        lower = least / (length * far**0.5) if far > 0.0 else -np.inf
        lower -= 8.0 * EPS * abs(lower)
    rest = total * (1.0 - terms * EPS) - uneven
    upper = (square + uncertain) ** 0.5 / rest * (1.0 + 8.0 * EPS) if rest > 0.0 else np.inf
    below = nominal - lower if np.isfinite(lower) else 0.0
    above = upper - square**0.5 / total if total > 0.0 else 0.0
    return Bounds(lower, upper, below, above)
