"""Feature elimination on the micro-array sets: accuracy by number of features."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.model_selection import StratifiedKFold
from sklearn.preprocessing import StandardScaler

from maxmargin import ALMA, IMA, MarginRFE

from . import record
from .ima_margins import SETS
from .record import Cell

TITLE = "Feature elimination on the micro-array sets"
NAME = "elimination"
NAMES = ("colon", "prostate", "dlbcl", "breast-west", "cns")
SIZES = (10**6, 256, 64, 16, 4)  # largest numbers of features of the table; the first stands for all
FOLDS, STEP = 5, 0.5
EXACT: dict[str, dict[str, Any]] = {
    "exact, p = ∞": {"estimator": "auto", "p": np.inf},
    "exact, p = ln f": {"estimator": "auto", "p": "log"},
    "exact, p = 2": {"estimator": "auto", "p": 2},
}
INCREMENTAL: dict[str, dict[str, Any]] = {
    "IMA, p = ∞": {"estimator": IMA(increment=0.02, budget=6000), "p": np.inf},
    "IMA, p = ln f": {"estimator": IMA(increment=0.02, budget=6000), "p": "log"},
    "ALMA, p = ln f": {"estimator": ALMA(alpha=0.5), "p": "log", "max_iter": 100},
}
TEXT = f"""\
The curves of the papers are not available, so that the table has only computed numbers. The loss is the squared
hinge with C = 1. Features are standardised, and each step removes half of them. The numbers are mean accuracies
over {FOLDS} folds with at most this many features; each fold has its own elimination. IMA runs as in the papers: it
raises the margin by 2 % per call, with at most 6,000 updates, and starts from the weights of the larger set on the
remaining features. ALMA runs with α = 0.5, and starts from its dual variables. IMA and ALMA have dotted lines in
the figure. f is the number of features.

![accuracy against the number of features](elimination.png)
"""


def curve(name: str, options: dict[str, Any], folder: Path) -> tuple[np.ndarray, np.ndarray]:
    """Return the numbers of features, and the mean accuracy with each."""
    X, y = SETS[name](folder)
    folds = StratifiedKFold(FOLDS, shuffle=True, random_state=0)
    selector = MarginRFE(n_features_to_select="cv", cv=folds, step=STEP, tol=0.05, random_state=0, **options)
    results = selector.fit(StandardScaler().fit_transform(X), y).cv_results_
    return results["n_features"], results["mean_test_score"]


def cells(folder: Path, everything: bool = False) -> Iterator[Cell]:
    """Yield all cells; the incremental algorithms run with `everything` only."""
    kept = record.recall(NAME)
    for name in NAMES:
        for engine, options in {**EXACT, **INCREMENTAL}.items():
            row, long = f"{name}, {engine}", engine in INCREMENTAL
            if everything or not long:
                sizes, scores = curve(name, options, folder)
                kept[row] = [float(v) for pair in zip(sizes, scores, strict=True) for v in pair]
                if long:
                    record.remember(NAME, {row: kept[row]})
            if row not in kept:
                continue
            found = dict(zip(kept[row][::2], kept[row][1::2], strict=True))
            for size in SIZES:
                at = max((n for n in found if n <= size), default=None)
                label = "all features" if size == SIZES[0] else f"{size} features"
                ours = "" if at is None else f"{found[at]:.3f}"
                yield Cell(name, engine, label, "", ours, stored=long and not everything)


def table(found: list[Cell]) -> str:
    """Return the cells as Markdown."""
    return record.table(found, ("data", "algorithm"))


def picture(found: list[Cell], path: Path) -> None:
    """Plot the accuracy by number of features, one panel per set."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(1, len(NAMES), figsize=(12, 2.8), layout="constrained", sharey=True)
    for ax, name in zip(axes, NAMES, strict=True):
        for engine in {**EXACT, **INCREMENTAL}:
            points = [
                (float(cell.quantity.split()[0]) if cell.quantity[0].isdigit() else 1024.0, float(cell.ours))
                for cell in found
                if cell.what == name and cell.parameter == engine and cell.ours
            ]
            ax.semilogx(*zip(*points, strict=True), "o-" if engine in EXACT else ".:", label=engine)
        ax.set_title(name)
        ax.set_xlabel("features, at most")
        ax.set_xticks([4, 16, 64, 256, 1024], ["4", "16", "64", "256", "all"])
        ax.minorticks_off()
        ax.grid(alpha=0.3)
    axes[0].set_ylabel("accuracy")
    axes[0].legend(fontsize=7)
    figure.savefig(path, dpi=90, metadata={"Software": None})
    plt.close(figure)
