"""Warm starts on rows of data: put the engine at a given dual or primal point."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ..engine.state import BIAS, settle
from ..engine.sweep import restore
from ..numerics.norms import norm
from ..numerics.sums import Plain
from .row_tracker import primal_point

if TYPE_CHECKING:
    from .run import Run


def begin_at_dual(run: Run, alpha: np.ndarray) -> None:
    """Begin with these dual variables, cut at their caps, at their best multiple: they may be of another C."""
    h, problem = run.h, run.problem
    h.alpha[:] = np.clip(alpha * run.unit, 0.0, h.cap)
    c = h.alpha * run.y
    w = h.space.vector.w
    w[: run.patterns.d] = Plain.combine(run.patterns.X, c)
    if run.rho:
        w[-1] = run.rho * c.sum()
    if not problem.hard and h.alpha.any():
        times = problem.multiple(h.alpha / run.unit, float(w @ w) / run.unit**2, run.weights)
        h.alpha[:] = np.minimum(h.alpha * times, h.cap)
        w *= times


def begin_in_direction(run: Run, alpha: np.ndarray, length: float) -> None:
    """Begin at the w of this length that is the sum of the patterns by a multiple of these dual variables."""
    top = float(alpha.max())
    if top > 0.0:
        restore(run.h, alpha / top, length)


def begin_at_primal(run: Run, w: np.ndarray, b: float, alpha: np.ndarray | None) -> bool:
    """Begin with this direction, at the length that the Perceptron's w has at its end, R^2 / margin.

    What rows lack of a margin of one is put into their own coordinates. Where w is the sum that dual variables make,
    the engine is put at the w of these dual variables.

    Parameters
    ----------
    run : Run
    w : ndarray of shape (d,)
    b : float
    alpha : ndarray of shape (n,) or None
        None: all the same.

    Returns
    -------
    begun : bool
        False where the direction has no margin.
    """
    problem, h = run.problem, run.h
    w, b, _ = primal_point(run.task, w, b)
    margins = run.y * (Plain.scores(run.patterns.X, w) + b)
    if problem.hard and not float(margins.min()) > 0.0:
        return False
    lack = np.maximum(1.0 - margins, 0.0)
    length = norm(problem.weights(w, b), problem.q)
    delta2 = problem.delta2(run.weights)
    own = np.divide(lack, delta2, out=np.zeros(run.n), where=delta2 > 0.0)
    length = float(np.hypot(length, float(own @ (delta2 * own)) ** 0.5))
    if not 0.0 < length < np.inf:
        return False
    scale = run.radius2  # R^2 times a margin of 1 / length, where the least margin is 1, is |w|^2
    if h.space.vector.combines():
        if alpha is None or not alpha.any():
            return False
        begin_in_direction(run, alpha, scale * length)
    else:
        h.space.vector.w[: run.patterns.d] = w * scale
        if run.rho:
            h.space.vector.w[-1] = b / run.rho * scale
        h.slack.take(own * scale)
        settle(h)
    if not run.rho:
        h.number[BIAS] = b * scale
    run.evaluate(w, b, np.ones(run.n) if alpha is None else alpha)
    return True
