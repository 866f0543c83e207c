"""Objectives and margins of hyperplanes from their definition, in rational numbers."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from math import inf, isqrt
from typing import Any

import numpy as np

from maxmargin import Problem

BITS = 200  # of a 2-norm
# Relative error of a norm other than the 1-, 2- and inf-norm, which is computed in float64 after division by its
# largest entry: powers and a sum of a few terms.
ROUNDING = Fraction(1, 10**12)


def length(vector: Sequence[Fraction], q: float) -> Fraction:
    """Return the q-norm, rounded up where it is no rational number."""
    sizes = [abs(x) for x in vector]
    largest = max(sizes, default=Fraction(0))
    if q == inf or not largest:
        return largest
    if q == 1.0:
        return sum(sizes, Fraction(0))
    if q == 2.0:
        square = sum((x * x for x in sizes), Fraction(0)) / largest**2  # from 1 to the number of entries
        return largest * Fraction(isqrt(int(square * 4**BITS)) + 1, 2**BITS)
    total = float(np.sum(np.array([float(x / largest) for x in sizes]) ** q))
    return largest * Fraction(total ** (1.0 / q)) * (1 + ROUNDING)


def value(
    problem: Problem,
    X: np.ndarray,
    signs: np.ndarray,
    weights: np.ndarray,
    w: Sequence[Fraction],
    b: Fraction,
) -> Fraction:
    """Return the objective, or of a hard margin the margin, of a hyperplane; norms are rounded up.

    Parameters
    ----------
    problem : Problem
    X : ndarray of shape (n, d)
    signs, weights : ndarray of shape (n,)
    w : sequence of Fraction of length d
    b : Fraction
    """
    margins = [
        sign * (sum((x * Fraction(v) for x, v in zip(w, row, strict=True) if x and v), b))
        for sign, row in zip(signs.tolist(), X.tolist(), strict=True)
    ]
    added: list[Any] = [b / Fraction(problem.intercept_scaling)] if problem.intercept == "augmented" else []
    size = length([*w, *added], problem.q)
    if problem.hard:
        counted = [m for m, s in zip(margins, weights.tolist(), strict=True) if s > 0.0]
        return min(counted) / size if size else Fraction(0)
    slacks = [max(1 - m, Fraction(0)) ** (2 if problem.loss == "squared_hinge" else 1) for m in margins]
    losses = sum((Fraction(s) * x for s, x in zip(weights.tolist(), slacks, strict=True) if s), Fraction(0))
    return (size if problem.power == 1 else size * size / 2) + Fraction(problem.C) * losses
