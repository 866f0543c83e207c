"""Figures 3 and 4 of the PUMMA paper, lower halves: r-of-k data, p = 2 ln n."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from maxmargin import ALMA, PUMMA, MaxMarginClassifier
from maxmargin.algorithms import Algorithm
from maxmargin.problem.problem import dual_exponent

from . import record
from .data import r_of_k
from .pumma_figure3 import BIASES, DELTA, SEEDS, K, N
from .record import Cell

TITLE = "PUMMA, Figures 3 and 4, lower halves: p = 2 ln n"
P = 2.0 * float(np.log(N))
R = N ** (1.0 / P)  # max |x|_p, of signs
LEVEL = (1.0 - DELTA) / (K ** (1.0 / dual_exponent(P)) * R)
SPEED_RATIO = 2.0  # smallest ratio of the time of ALMA to that of PUMMA
FASTER = "at least 2 times faster than ALMA_p, in seconds"
MAX_UPDATES = 400_000  # updates after which ALMA is stopped
ALGORITHMS: dict[str, Algorithm] = {
    "PUMMA": PUMMA(delta=DELTA, halving=False, schedule="plain", shuffle=False),
    "ALMA_p, coordinate R": ALMA(alpha=DELTA, shuffle=False),
}
TEXT = f"""\
The data are those of the upper half, with p = 2 ln 100 = 9.21, m = 1000 and δ = 0.1. Numbers are means of 3 seeds.
The paper draws the level 0.0461, which is 0.9 times the margin of the target over R. ALMA_p has a constant
coordinate R, the maximum of |x|_p. It is stopped after {MAX_UPDATES:,} updates, because the rest of its run takes
10 to 100 times as many. The column *updates until level reached* is the number of updates after which the margin,
with the intercept of the algorithm, was first above 0.0461 R. The margin is computed at up to 14 points of the run,
at ends of rounds of 1, 2, 4, ... passes. The last column says whether PUMMA needed at most half of the time of
ALMA_p to reach the level (Figure 4: at least 2 times faster). If ALMA_p was stopped before it reached the level,
its time until then counts. Compilation is not counted.
"""


def fitted(rule: Algorithm, X: np.ndarray, y: np.ndarray, rounds: int) -> tuple[Any, float]:
    """Run at most this many rounds; return the model and its margin over R, with the intercept that it has learnt."""
    own: dict[str, Any] = (
        {} if isinstance(rule, PUMMA) else {"intercept": "augmented", "intercept_scaling": R}
    )

    def enough(report: Any) -> bool:
        return not isinstance(rule, PUMMA) and report.steps > MAX_UPDATES

    model = MaxMarginClassifier(
        C=np.inf, p=P, algorithm=rule, tol=1e-13, max_iter=rounds, callback=enough, **own
    ).fit(X, y)
    w, b, q = model.coef_.ravel(), float(model.intercept_[0]), dual_exponent(P)
    length = float(np.sum(np.abs(w) ** q) ** (1.0 / q))
    return model, float((y * (X @ w + b)).min()) / length / R


def run(rule: Algorithm, X: np.ndarray, y: np.ndarray) -> tuple[int, float, int, float, bool]:
    """Return the updates, the margin over R, the updates and seconds until the level, and whether the run ended."""
    model, margin = fitted(rule, X, y, 10**9)
    last = model.history_[-1]
    ended = isinstance(rule, PUMMA) or last.steps <= MAX_UPDATES
    for rounds in sorted({1, 2, *np.geomspace(3, max(last.round, 3), 12).astype(int).tolist()}):
        early, reached = fitted(rule, X, y, rounds)
        if reached >= LEVEL:
            return last.steps, margin, early.history_[-1].steps, early.history_[-1].seconds, ended
    return last.steps, margin, 0, np.inf, ended


def cells(folder: Path, everything: bool = False) -> Iterator[Cell]:
    """Yield all cells; the data are generated here."""
    yield Cell("level: 0.9 / (16^(1/q) · 100^(1/p))", "", "", "0.0461", f"{LEVEL:.4f}")
    took: dict[tuple[str, int], float] = {}
    for rule in ALGORITHMS.values():
        run(rule, *r_of_k(8, 0, m=100))  # compiles the code
    for name, rule in ALGORITHMS.items():
        for bias, r in BIASES.items():
            runs = [run(rule, *r_of_k(r, seed)) for seed in SEEDS]
            updates, margins, until, seconds, ended = (np.array(column) for column in zip(*runs, strict=True))
            took[name, bias] = float(seconds.mean())
            stopped = "" if ended.all() else "stopped; "
            yield Cell(name, f"bias {bias}", "updates", "", f"{stopped}{updates.mean():,.0f}")
            above = bool((margins >= LEVEL).all())
            known = "≥ 0.0461" if ended.all() else ""
            verdict = "above" if above else "below" if ended.all() else "not reached"
            yield Cell(name, f"bias {bias}", "margin / R", known, f"{margins.mean():.4f}", verdict, above)
            reached = f"{until.mean():,.0f}" if until.all() else "not reached"
            yield Cell(name, f"bias {bias}", "updates until level reached", "", reached)
    for bias in BIASES:
        fast = took["PUMMA", bias] * SPEED_RATIO <= took["ALMA_p, coordinate R", bias]
        yield Cell(
            "PUMMA", f"bias {bias}", FASTER, "yes", "yes" if fast else "no", "=" if fast else "differs", fast
        )


def table(found: list[Cell]) -> str:
    """Return the cells as Markdown."""
    return record.both(found)
