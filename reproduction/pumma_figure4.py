"""Figure 4 of the PUMMA paper, upper half: the margin by number of updates."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from maxmargin import MaxMarginClassifier, Report

from . import record
from .data import r_of_k
from .pumma_figure3 import ALGORITHMS, BIASES
from .record import Cell

TITLE = "PUMMA, Figure 4, upper half: margin by number of updates"
SHARES = (0.5, 0.8, 0.9)
TEXT = """\
The paper's text about this figure is not available, so that there are no published numbers. The data are those of
Figure 3, seed 0, with p = 2. The table contains the number of updates after which the margin first reached 50, 80
and 90 % of the largest margin (certified, with a free intercept). The margin is computed after 1, 2, 4, ... more
passes, for every algorithm with the best intercept for its weight vector, which favours algorithms with a
regularised intercept.
"""


def trace(name: str, X: np.ndarray, y: np.ndarray) -> tuple[list[Report], float]:
    """Return the reports of a run, and the largest margin."""
    model = MaxMarginClassifier(C=np.inf, algorithm=ALGORITHMS[name], tol=1e-13, max_iter=10**9).fit(X, y)
    exact: Any = MaxMarginClassifier(C=np.inf, tol=1e-6).fit(X, y).certificate_
    return model.history_, exact.upper


def cells(folder: Path, everything: bool = False) -> Iterator[Cell]:
    """Yield all cells; the data are generated here."""
    for name in ALGORITHMS:
        for bias, r in BIASES.items():
            reports, largest = trace(name, *r_of_k(r, 0))
            for share in SHARES:
                seen = [report.steps for report in reports if report.lower >= share * largest]
                ours = f"{seen[0]:,}" if seen else "not reached"
                yield Cell(name, f"bias {bias}", f"updates until {share:.0%}", "", ours)


def table(found: list[Cell]) -> str:
    """Return the cells as Markdown."""
    return record.table(found)
