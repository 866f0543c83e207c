"""Figure 4 of the PUMMA paper: computation time against the bias of the target, p = 2 and p = 2 ln n."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np

from . import record
from .pumma_figures import BIASES, LARGE_P, LINES, SETS, result
from .record import Cell

TITLE = "PUMMA, Figure 4: computation time against bias"
SECONDS, RATIO = "seconds", "time / time of PUMMA"
# PUMMA is the faster one at p = 2, and at least twice as fast as ALMA_p at p = 2 ln n
LEAST = {2.0: 1.0, LARGE_P: 2.0}
TEXT = f"""\
The runs are those of Figure 3, each until a pass makes no update; the numbers are means of {SETS} data sets. Times are
CPU times of the passes, without compilation and without the computation of margins. In the paper, on a computer of
2008, times are up to about 10 s at p = 2 and up to about 300 s at p = 2 ln n; single points cannot be read off, so
that seconds are *not available*, and ratios of times on the same computer are compared. The paper states that PUMMA
is faster than ROMMA, and at least twice as fast as ALMA_p.

![computation time against bias, for two norms](pumma_figure4.png)
"""


def cells(folder: Path, everything: bool = False) -> Iterator[Cell]:
    """Yield all cells; the data are generated here."""
    pumma = {line.p: line for line in LINES if line.what == "PUMMA"}
    for line in LINES:
        stored = line.long and not everything
        for bias in BIASES:
            row, seconds = (line.what, f"{line.norm}, bias {bias}"), result(line, bias, everything).seconds
            yield Cell(*row, SECONDS, "", f"{seconds:.3g}", stored=stored)
            if line.what != "PUMMA":
                ratio, least = seconds / result(pumma[line.p], bias, everything).seconds, LEAST[line.p]
                yield Cell(
                    *row, RATIO, f"≥ {least:g}", f"{ratio:.3g}", "=" if ratio >= least else "",
                    ratio >= least, stored,
                )  # fmt: skip


def table(found: list[Cell]) -> str:
    """Return the cells as Markdown."""
    return record.table(found)


def picture(found: list[Cell], path: Path) -> None:
    """Plot the time against the bias, a panel for each norm."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(1, 2, figsize=(8.4, 3.6), layout="constrained")
    for ax, p in zip(axes, LEAST, strict=True):
        for line in (line for line in LINES if line.p == p):
            seconds = [result(line, bias, False).seconds for bias in BIASES]
            style = "o-" if line.what == "PUMMA" else "^--"
            ax.semilogy(list(BIASES), seconds, style, label=line.what.split(",")[0])
        low, high = ax.get_ylim()
        ax.set_ylim(10.0 ** np.floor(np.log10(low)), 10.0 ** np.ceil(np.log10(high)))
        ax.set_xticks(list(BIASES))
        ax.set_xlabel("bias of the target")
        ax.set_title("p = 2" if p == 2.0 else "p = 2 ln n", fontsize=10)
        ax.grid(alpha=0.3)
        ax.legend(fontsize=8)
    axes[0].set_ylabel("seconds")
    figure.savefig(path, dpi=90, metadata={"Software": None})
    plt.close(figure)
