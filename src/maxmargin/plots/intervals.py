"""Certified bounds as two lines with what lies between."""

from __future__ import annotations

from typing import Any

import numpy as np

from .style import LOWER, SHADE, UPPER, label_decades


def interval(ax: Any, x: Any, lower: np.ndarray, upper: np.ndarray) -> tuple[Any, Any]:
    """Draw both bounds, on a logarithmic scale where all are positive and far apart; upper and lower line."""
    style: dict[str, Any] = {"lw": 1.6, "ms": 5}
    (above,) = ax.plot(x, upper, "v-", color=UPPER, label="upper bound", **style)
    (below,) = ax.plot(x, lower, "^-", color=LOWER, label="lower bound", **style)
    ax.fill_between(x, lower, upper, color=SHADE, alpha=0.22, lw=0)
    seen = np.concatenate([lower, upper])
    seen = seen[np.isfinite(seen)]
    if seen.size and seen.min() > 0.0 and seen.max() > 20.0 * seen.min():
        ax.set_yscale("log")
        label_decades(ax.yaxis)
    return above, below
