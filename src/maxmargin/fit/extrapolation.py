"""Anderson extrapolation of dual variables that are swept again and again in one order.

Repeated sweeps are, as long as no dual variable meets its bounds, a linear iteration; a combination of the last few
iterates lies much nearer to its limit than the last one. The step is cut by an exact line search on the dual, so that
it never does harm, and where it is often cut short (many variables at their bounds) it is tried less often.

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

DEPTH = 5  # iterates in the combination, as in the paper
# Rows below which plain sweeps are as good: the extrapolation costs a linear system and two more passes.
SMALLEST = 20
# A step that the line search cuts below this share of itself did not pay for its passes: the next attempts are left
# out, twice as many each time, up to PATIENCE.
HALF, PATIENCE = 0.5, 31
# Share of the trace of the residuals' Gram matrix that is added to its diagonal: residuals of converged sweeps are
# nearly dependent.
RIDGE = 1e-10


class Extrapolation:
    """Sweeps over one list of rows, with an extrapolation at their end."""

    def __init__(self) -> None:
        self._wait = self._back = 0

    def due(self, size: int) -> bool:
        """Return whether to extrapolate after the next sweeps of so many rows."""
        if size < SMALLEST:
            return False
        self._wait -= 1
        return self._wait < 0

    def __call__(self, run: Run, h: Any, rows: np.ndarray) -> None:
        """Sweep these rows of h `DEPTH` times, and take the step that their iterates suggest."""
        size, ids = rows.size, h.ids[rows]
        iterates = np.empty((DEPTH + 1, size))
        once = run.at_once(size)
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
        # along the step the dual changes by t slope - t^2 curvature / 2
        slope = run.unit * step.sum() - before @ dw - h.number[BIAS] * (h.y[rows] @ step)
        curvature = dw @ dw
        delta2 = getattr(h.slack, "delta2", None)
        if delta2 is not None:
            pull = delta2[ids] * step
            slope, curvature = slope - pull @ last, curvature + pull @ step
        t = min(max(slope / curvature, 0.0), 1.0) if curvature > 0.0 else 0.0
        if t < 1.0:
            w[:] = before + t * dw
            h.alpha[ids] = last + t * step
        self._back = 0 if t >= HALF else min(2 * self._back + 1, PATIENCE)
        self._wait = self._back


def _combination(iterates: np.ndarray) -> np.ndarray | None:
    """Return the affine combination of iterates whose residual is smallest; None where there is none."""
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
