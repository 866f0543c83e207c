"""Feasible dual variables: capped at C s_i, and balanced between the classes where the intercept is free.

A certificate of many rows need not store a dual variable for each of them: two points imply them (`ImpliedDual`).
The loss of a row is replaced by a smooth one, phi(m), and phi by its Taylor polynomial of second order at the margin
m0_i of the row at the first point. The dual variable of the row is minus the derivative of the polynomial at the margin
m1_i of the second point, clipped to the feasible interval, times a factor for each class::

    alpha_i = clip(-phi'(m0_i) - phi''(m0_i) (m1_i - m0_i), 0, cap_i)

The squared hinge is smooth. The hinge is smoothed within `width` / 2 of its breakpoint; at `width` 0 alpha_i is C s_i
for rows with m0_i < 1, and 0 for the others. Rows whose dual variables are stored one by one are excepted.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ..numerics.sums import EPS, Plain, exact_total
from ..problem.problem import Problem

if TYPE_CHECKING:
    from .certificate import ImpliedDual
    from .sample import Sample


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
        even_out(alpha, y, problem.caps(weights))
    return alpha


def even_out(alpha: np.ndarray, y: np.ndarray, caps: np.ndarray) -> None:
    """Make the dual variables of both classes sum to the same total, in place, without exceeding the caps.

    The excess is subtracted from the largest dual variable of the heavier class. What remains by rounding is then
    corrected in the smallest dual variable that allows it, in up to three more steps. As all dual variables are
    multiples of the unit in the last place of the smallest one, the remainder is most often zero.
    """
    for attempt in range(4):
        excess = exact_total(alpha * y)
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


def imbalance(alpha: np.ndarray, y: np.ndarray) -> float:
    """Return |sum alpha_i y_i|, rounded upwards, for alpha and y of shape (n,).

    Scaling the heavier class down changes v by up to this number times the longest row.
    """
    return abs(exact_total(alpha * y)) * (1.0 + EPS)


def proportions(alpha: np.ndarray) -> np.ndarray:
    """Return alpha scaled to a sum of one; zeros if it cannot be scaled."""
    total = float(alpha.sum())
    return alpha / total if 0.0 < total < np.inf else np.zeros_like(alpha)


def slopes(
    problem: Problem, margins: np.ndarray, weights: np.ndarray, width: float
) -> tuple[np.ndarray, np.ndarray]:
    """Return -phi' and phi'' of the smoothed losses of rows, each of shape (n,).

    Parameters
    ----------
    problem : Problem
        A soft margin.
    margins, weights : ndarray of shape (n,)
    width : float
        Width of the interval about the breakpoint in which the hinge is smoothed, 0 for none.
    """
    slack, costs = 1.0 - margins, problem.C * weights
    if problem.loss == "squared_hinge":
        active = slack > 0.0
        return 2.0 * costs * np.where(active, slack, 0.0), np.where(active, 2.0 * costs, 0.0)
    if width <= 0.0:
        return np.where(slack > 0.0, costs, 0.0), np.zeros(slack.size)
    share = np.clip(slack / width + 0.5, 0.0, 1.0)
    return costs * share, np.where((share > 0.0) & (share < 1.0), costs / width, 0.0)


def implied(
    problem: Problem, first: np.ndarray, second: np.ndarray, weights: np.ndarray, width: float
) -> np.ndarray:
    """Return the dual variables that the margins at both points imply: shape (n,).

    Parameters
    ----------
    problem : Problem
    first, second : ndarray of shape (n,)
        Margins at the first and at the second point.
    weights : ndarray of shape (n,)
    width : float
        As of `slopes`.
    """
    slope, curvature = slopes(problem, first, weights, width)
    return problem.capped(slope - curvature * (second - first), weights)


def implied_by_points(
    problem: Problem, sample: Sample, points: ImpliedDual, rows: np.ndarray, given: np.ndarray
) -> np.ndarray:
    """Return the dual variables of all rows of a sample, of which some are given: shape (n,).

    Parameters
    ----------
    problem : Problem
    sample : Sample
    points : ImpliedDual
    rows, given : ndarray of shape (k,)
        The rows whose dual variables are given, and the dual variables before they are multiplied by the factors.
    """
    first = _margins(points.first_w, points.first_b, sample)
    second = _margins(points.second_w, points.second_b, sample)
    found = implied(problem, first, second, sample.weights, points.width)
    found[rows] = given
    return found * np.where(sample.y > 0.0, points.plus, points.minus)


def _margins(w: np.ndarray, b: float, sample: Sample) -> np.ndarray:
    """Return y_i (w.x_i + b) of the rows of a sample: shape (n,)."""
    return sample.y * Plain.scores(sample.X, w if sample.columns is None else sample.columns.restrict(w), b)
