"""Anderson extrapolation of the dual variables of repeated sweeps over the same rows in the same order.

Repeated sweeps are a linear iteration as long as no dual variable reaches a bound. An affine combination of the last
iterates is then much closer to the limit than the last iterate. The step to this combination is followed by an exact
line search on the dual objective, which therefore never decreases. After a step that the line search cuts short, as
happens when many variables reach their bounds, the next extrapolations are left out.

References
----------
Q. Bertrand, M. Massias, "Anderson acceleration of coordinate descent", AISTATS 2021.
"""

from __future__ import annotations

from math import isfinite
from typing import TYPE_CHECKING, Any

import numpy as np

from ..engine.state import BIAS
from ..engine.sweep import set_duals, trace

if TYPE_CHECKING:
    from .run import Run

# Number of iterates in the combination, as in the paper. More come closer to the limit, but cost as many sweeps.
DEPTH = 5
# Smallest number of rows with an extrapolation: it costs a linear system and two more passes over the rows, on fewer
# rows more than it saves. Chosen on the data sets of benchmarks.before_after.
MIN_ROWS = 20
# A step that the line search multiplies by t < MIN_STEP has not paid for its passes: 1 extrapolation is left out, then
# 3, 7 and so on up to MAX_LEFT_OUT while steps remain short. A larger MIN_STEP, and a larger MAX_LEFT_OUT, make fewer
# extrapolations. Chosen on the data sets of benchmarks.before_after.
MIN_STEP, MAX_LEFT_OUT = 0.5, 31
# RIDGE times the trace of the residuals' Gram matrix is added to its diagonal: residuals of converged sweeps are nearly
# linearly dependent. A larger value brings the combination closer to the mean of the iterates; with a smaller one its
# coefficients may be rounding errors. Chosen on the data sets of benchmarks.before_after.
RIDGE = 1e-10


class Extrapolation:
    """Extrapolation after repeated sweeps, with a count of the extrapolations to leave out."""

    def __init__(self) -> None:
        # extrapolations still to leave out, and the number left out after the last short step
        self._remaining = self._left_out = 0

    def due(self, size: int) -> bool:
        """Return whether to extrapolate after the next sweeps over `size` rows; count down the number to leave out."""
        if size < MIN_ROWS:
            return False
        self._remaining -= 1
        return self._remaining < 0

    def __call__(self, run: Run, h: Any, rows: np.ndarray) -> None:
        """Sweep these rows of h `DEPTH` times, then extrapolate with a line search.

        The new point is the one with the largest dual objective between the last iterate and the combination.
        Nothing follows the sweeps if they are interrupted, if the last makes no step, or if there is no combination.

        Parameters
        ----------
        run : Run
        h : Weight
            The engine's state, which may be packed.
        rows : ndarray of int
            Rows of h, in the order of the sweeps.
        """
        size, ids = rows.size, h.ids[rows]
        iterates = np.empty((DEPTH + 1, size))
        once = run.passes_per_call(size)
        for first in range(0, DEPTH, once):
            if once < DEPTH and run.interrupted():
                return
            part = iterates[first : first + once + 1]
            steps, made = trace(run.rule, h, rows, run.scores, run.moved, part)
            run.presentations += (len(part) - 1) * size
            run.steps += made
            if steps == 0:
                return
        target = _combination(iterates)
        if target is None:
            return
        last, w = iterates[-1], h.space.vector.w
        before = w.copy()
        set_duals(h, rows, target)
        run.presentations += size
        step, dw = h.alpha[ids] - last, w - before
        # at last + t * step the dual objective, in units of unit^2, has grown by t slope - t^2 curvature / 2
        slope = run.unit * step.sum() - before @ dw - h.number[BIAS] * (h.y[rows] @ step)
        curvature = dw @ dw
        delta2 = getattr(h.slack, "delta2", None)
        if delta2 is not None:  # slack coordinates: sum delta_i^2 alpha_i^2 is part of |w|^2
            pull = delta2[ids] * step
            slope, curvature = slope - pull @ last, curvature + pull @ step
        t = min(max(slope / curvature, 0.0), 1.0) if curvature > 0.0 else 0.0
        if t < 1.0:
            w[:] = before + t * dw
            h.alpha[ids] = last + t * step
        # 0, 1, 3, 7, ... extrapolations are left out while steps remain short
        self._left_out = 0 if t >= MIN_STEP else min(2 * self._left_out + 1, MAX_LEFT_OUT)
        self._remaining = self._left_out


def _combination(iterates: np.ndarray) -> np.ndarray | None:
    """Return the affine combination of iterates with the smallest residual; None if it is not finite.

    The residuals are r_k = x_k - x_{k-1}, and G = R R' their Gram matrix. The coefficients c with sum c_k = 1 that
    minimise |sum c_k r_k| are the multiple of G^-1 1 with sum one.

    Parameters
    ----------
    iterates : ndarray of shape (DEPTH + 1, size)
        Dual variables before the first sweep and after each.
    """
    residuals = iterates[1:] - iterates[:-1]
    G = residuals @ residuals.T
    size = float(G.trace())
    if not (isfinite(size) and size > 0.0):
        return None
    G /= size
    G.flat[:: DEPTH + 1] += RIDGE
    c = np.linalg.solve(G, np.ones(DEPTH))
    total = float(c.sum())
    return (c / total) @ iterates[1:] if isfinite(total) and total != 0.0 else None
