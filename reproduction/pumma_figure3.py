"""Figure 3 of the PUMMA paper, upper half: r-of-k data with p = 2, and the same data far from the origin."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from maxmargin import ALMA, PUMMA, AggressiveROMMA, MaxMarginClassifier
from maxmargin.algorithms import Algorithm

from . import record
from .data import r_of_k
from .record import Cell

TITLE = "PUMMA, Figure 3, upper half: updates against bias"
DELTA, N, K = 0.1, 100, 16
SEEDS = range(3)
BIASES = {15: 1, 9: 4, 1: 8}  # k - 2 r + 1, and r
SHIFTS = (0.0, 1.0, 2.0, 4.0, 8.0)
UPDATES, MARGIN, SHIFTED = "updates", "margin / R", "updates, shifted"
ALGORITHMS: dict[str, Algorithm] = {
    "PUMMA": PUMMA(delta=DELTA, halving=False, schedule="plain", shuffle=False),
    "aggressive ROMMA, coordinate R": AggressiveROMMA(
        delta=DELTA, halving=False, schedule="plain", shuffle=False
    ),
    "ALMA₂, coordinate R": ALMA(alpha=DELTA, shuffle=False),
}
# in the figure, ROMMA needs about 2.5e4 updates at bias 1; other points cannot be read off
READ_OFF = {("aggressive ROMMA, coordinate R", 1): 2.5e4}
TEXT = """\
The data are random signs with n = 100 columns and m = 1000 rows, half of each class. The label is +1 if at least r
of the first k = 16 signs are +1, so that the bias k - 2 r + 1 of the target is 15, 9 and 1 for r = 1, 4 and 8. δ is
0.1 (α for ALMA₂). The algorithms make full passes without halving of δ. Numbers are means of 3 seeds. The data of
the paper are random too, and its curves cannot be read off exactly; the paper draws the level 0.0225, which is 0.9
times the margin of the target over R. ROMMA and ALMA₂ have a constant coordinate R = max |x|; its sign (the paper
has -R) makes no difference. The lower half of the figure has an own section.

In the last table, all coordinates of the data (r = 8, seed 0) are shifted by a constant, which moves them away from
the origin. Differences of rows do not change, and PUMMA makes exactly the same updates. Algorithms with an
augmented intercept need more updates for larger shifts.

![updates against bias, and updates against the shift of the data](pumma_figure3.png)
"""


def run(rule: Algorithm, X: np.ndarray, y: np.ndarray) -> tuple[int, float]:
    """Return the updates until a pass makes none, and the margin over R in the original space."""
    R = float((X * X).sum(axis=1).max()) ** 0.5
    intercept: dict[str, Any] = (
        {} if isinstance(rule, PUMMA) else {"intercept": "augmented", "intercept_scaling": R}
    )
    model = MaxMarginClassifier(C=np.inf, algorithm=rule, tol=1e-13, max_iter=10**9, **intercept).fit(X, y)
    w = model.coef_.ravel()
    return model.history_[-1].steps, float((y * (X @ w + model.intercept_)).min() / np.linalg.norm(w) / R)


def cells(folder: Path, everything: bool = False) -> Iterator[Cell]:
    """Yield all cells; the data are generated here."""
    level = (1.0 - DELTA) / (K**0.5 * N**0.5)
    yield Cell("level: 0.9 / (√16 · 10)", "", "", "0.0225", f"{level:.4f}")
    data = {bias: [r_of_k(r, seed) for seed in SEEDS] for bias, r in BIASES.items()}
    for name, rule in ALGORITHMS.items():
        for bias, sets in data.items():
            updates, margins = np.mean([run(rule, X, y) for X, y in sets], axis=0)
            near = READ_OFF.get((name, bias))
            published = "" if near is None else f"{near:,.0f}"
            agrees = None if near is None else abs(updates / near - 1.0) < 0.05
            reason = "" if near is None else "within 5 % of the figure"
            yield Cell(name, f"bias {bias}", UPDATES, published, f"{updates:,.0f}", reason, agrees)
            above = margins >= level
            yield Cell(
                name,
                f"bias {bias}",
                MARGIN,
                "≥ 0.0225",
                f"{margins:.4f}",
                "above" if above else "below",
                above,
            )
    for name, rule in list(ALGORITHMS.items())[:2]:
        for shift in SHIFTS:
            updates, _ = run(rule, *r_of_k(8, 0, shift=shift))
            yield Cell(name, f"shift {shift:g}", SHIFTED, "", f"{updates:,}")


def table(found: list[Cell]) -> str:
    """Return the cells as Markdown."""
    single = record.basic([cell for cell in found if not cell.quantity])
    main = record.table([cell for cell in found if cell.quantity in (UPDATES, MARGIN)])
    shifted = record.table([cell for cell in found if cell.quantity == SHIFTED], ("algorithm", "data"))
    return f"{single}\n\n{main}\n\n{shifted}"


def picture(found: list[Cell], path: Path) -> None:
    """Plot the updates by bias, and by shift."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(1, 2, figsize=(8.4, 3.3), layout="constrained", sharey=True)
    for ax, quantity, label in (
        (axes[0], UPDATES, "bias of the target"),
        (axes[1], SHIFTED, "shift of every coordinate"),
    ):
        for name in ALGORITHMS:
            points = [
                (record.number(cell.parameter.split()[1]), record.number(cell.ours))
                for cell in found
                if cell.quantity == quantity and cell.what == name
            ]
            if points:
                ax.semilogy(*zip(*points, strict=True), "o-", label=name)
        ax.set_xlabel(label)
        ax.grid(alpha=0.3)
    axes[0].set_xticks([1, 9, 15])
    axes[0].set_ylabel("updates")
    axes[0].legend(fontsize=8)
    figure.savefig(path, dpi=90, metadata={"Software": None})
    plt.close(figure)
