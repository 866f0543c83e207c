"""Feasible dual variables: capped at C s_i, and balanced between the classes where the intercept is free."""

from __future__ import annotations

import numpy as np

from ..numerics.sums import Compensated, Plain
from ..problem.problem import Problem

# Number of dual variables up to which they are balanced to the last digit: an exact sum then takes less than 0.1 ms.
# Of more, |sum alpha_i y_i| of at most NEGLIGIBLE_IMBALANCE * sum alpha_i is accepted, a hundredth of what `verify`
# accepts: a smaller value would cost passes over alpha for no visible gain of the bound.
MAX_EXACTLY_BALANCED, NEGLIGIBLE_IMBALANCE = 2000, 1e-14


def feasible(problem: Problem, y: np.ndarray, weights: np.ndarray, alpha: np.ndarray) -> np.ndarray:
    """Return dual variables near alpha that are feasible: capped, and balanced between the classes.

    With a free intercept the heavier class is scaled down to the total of the other, which respects all caps; zeros are
    returned where one class has no dual variable. The bound of a hard margin depends on the proportions only: their sum
    is scaled to one.

    Parameters
    ----------
    problem : Problem
    y : ndarray of shape (n,), entries -1.0 and 1.0
    weights : ndarray of shape (n,)
        Sample weights s_i; the caps are C s_i.
    alpha : ndarray of shape (n,)
        Any numbers; negative ones become 0.

    Returns
    -------
    ndarray of shape (n,)
        A new array.
    """
    alpha = problem.capped(alpha, weights)
    if problem.hard:
        alpha = proportions(alpha)
    if problem.free:
        balanced = problem.balanced(y, alpha)
        if balanced is None:
            return np.zeros_like(alpha)
        alpha = balanced
        accepted = NEGLIGIBLE_IMBALANCE * float(alpha.sum())
        if alpha.size <= MAX_EXACTLY_BALANCED or abs(Plain.total(alpha * y)) > accepted:
            even_out(alpha, y, problem.caps(weights))
    return alpha


def even_out(alpha: np.ndarray, y: np.ndarray, caps: np.ndarray) -> None:
    """Make the dual variables of both classes sum to the same total, in place, without exceeding the caps.

    The excess is subtracted from the largest dual variable of the heavier class. What remains by rounding is then
    corrected in the smallest dual variable that allows it, in up to three more steps. As all dual variables are
    multiples of the unit in the last place of the smallest one, the remainder is most often zero.
    """
    for attempt in range(4):
        excess = Compensated.total(alpha * y)
        if excess == 0.0:
            return
        heavy, r = y * excess > 0.0, abs(excess)
        if attempt == 0:
            k = int(np.argmax(np.where(heavy, alpha, -1.0)))
        else:
            # dual variables that stay within their bounds when changed by r: the heavier class falls, the other rises
            possible = np.where(heavy, alpha >= r, (alpha > 0.0) & (alpha + r <= caps))
            if not possible.any():
                return
            k = int(np.argmin(np.where(possible, alpha, np.inf)))
        alpha[k] = max(alpha[k] - r, 0.0) if heavy[k] else alpha[k] + r


def proportions(alpha: np.ndarray) -> np.ndarray:
    """Return alpha scaled to a sum of one, as squares of tiny numbers would underflow; zeros if it cannot be scaled."""
    largest = float(alpha.max(initial=0.0))
    if not (np.isfinite(largest) and largest > 0.0):
        return np.zeros_like(alpha)
    alpha = alpha / largest
    return alpha / alpha.sum()
