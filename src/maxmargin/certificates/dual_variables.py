"""Feasible dual variables: capped at C s_i, and balanced between the classes where the intercept is free."""

from __future__ import annotations

import math

import numpy as np

from ..numerics.sums import Compensated, Plain
from ..problem.problem import Problem

ONE_BY_ONE = 2000  # dual weights up to which nothing at all may be left between the classes
BALANCED = 1e-14  # share of more of them that may be left, where it is not seen
UNEVEN = 1e-18  # share of more of them that is left, where it is seen


def feasible(problem: Problem, y: np.ndarray, weights: np.ndarray, alpha: np.ndarray) -> np.ndarray:
    """Return dual variables near alpha that are feasible: capped, and balanced between the classes.

    Soft problems: the heavier class is scaled down, which no cap forbids. Of the hard margin only the
    proportions count: their sum is made one.
    """
    alpha = problem.capped(alpha, weights)
    if problem.hard:
        alpha = proportions(alpha)
    if problem.free:
        balanced = problem.balanced(y, alpha)
        if balanced is None:
            return np.zeros_like(alpha)
        alpha = balanced
        if alpha.size <= ONE_BY_ONE or abs(Plain.total(alpha * y)) > BALANCED * float(alpha.sum()):
            even_out(alpha, y, problem.caps(weights))
    return alpha


def even_out(alpha: np.ndarray, y: np.ndarray, caps: np.ndarray) -> None:
    """Make both classes sum to the same, in place, by changing a large dual variable, then small ones for the rest.

    All are multiples of the last digit of the smallest, so that most often nothing at all is left.
    """
    few, nothing = None, UNEVEN * float(alpha.sum())
    if alpha.size <= ONE_BY_ONE:
        signed = alpha * y
        few, nothing = signed[signed != 0.0].tolist(), 0.0
    for attempt in range(4):
        # exactly, or of a large sample to many digits
        excess = math.fsum(few) if few is not None else Compensated.summed(np.multiply, alpha, y)
        if abs(excess) <= nothing:
            return
        heavy, r = y * excess > 0.0, abs(excess)
        if attempt == 0:
            k = int(np.argmax(np.where(heavy, alpha, -1.0)))
        else:
            room = np.where(heavy, alpha >= r, (alpha > 0.0) & (alpha + r <= caps))
            if not room.any():
                return
            k = int(np.argmin(np.where(room, alpha, np.inf)))
        before = float(alpha[k])
        alpha[k] = max(before - r, 0.0) if heavy[k] else before + r
        if few is not None:
            few += [-before * y[k], float(alpha[k]) * y[k]]


def proportions(alpha: np.ndarray) -> np.ndarray:
    """Return alpha scaled to a sum of one: squares of tiny numbers would underflow."""
    largest = float(alpha.max(initial=0.0))
    if not (np.isfinite(largest) and largest > 0.0):
        return np.zeros_like(alpha)
    alpha = alpha / largest
    return alpha / alpha.sum()
