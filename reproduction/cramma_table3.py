"""Table 3 of the CRAMMA paper: WBC without 11 patterns, hard margin."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from . import cramma, record
from .cramma import directional, optimum, radius2
from .data import wbc_separable
from .record import Cell

TITLE = "CRAMMA, Table 3: WBC without 11 patterns"
RHO = 30.0


def _cramma(beta: float, count: int, margin: str) -> cramma.Row:
    return cramma.cramma(beta, 0.0001 / beta, count, margin)


TABLE = cramma.Table(
    name="cramma_table3",
    rho=RHO,
    rows=(
        cramma.perceptron(0.52, 1_718_705, "1.784"),
        cramma.perceptron(0.9, 2_720_447, "2.008"),
        cramma.perceptron(1.4, 3_976_477, "2.141"),
        cramma.perceptron(2.1, 5_734_457, "2.228"),
        cramma.perceptron(4, 10_508_566, "2.317"),
        cramma.alma(0.8, 2_704_553, "1.783"),
        cramma.alma(0.7, 6_254_523, "2.008"),
        cramma.alma(0.6, 13_320_425, "2.141"),
        cramma.alma(0.5, 27_666_246, "2.228"),
        cramma.alma(0.35, 88_363_792, "2.315"),
        _cramma(0.22, 259_036, "1.794"),
        _cramma(0.32, 431_543, "2.019"),
        _cramma(0.42, 660_486, "2.143"),
        _cramma(0.49, 824_120, "2.238"),
        _cramma(0.8, 2_044_555, "2.318"),
    ),
    measures={"10² γ'": directional(1e2)},
)
TEXT = """\
The data are WBC without the rows with a missing value and without 11 of the remaining 683 rows: 2, 4, 191, 217,
227, 245, 252, 286, 307, 420 and 475 (from 1). Values are not scaled, in the order of the file, with ρ = 30 and a
hard margin. CRAMMA has ε = 1/2 and η = 0.0001 / (β / R). The paper prints this list of rows.
"""


def quantities(folder: Path) -> Iterator[Cell]:
    """Yield R^2 and the largest margin."""
    X, y = wbc_separable(folder)
    yield Cell("R²", "", "", "1716", f"{radius2(X, RHO):.0f}")
    yield Cell("largest margin γ", "", "", "0.0243", f"{optimum(X, y, TABLE.C, 'augmented', RHO):.4f}")


def cells(folder: Path, everything: bool = False) -> Iterator[Cell]:
    """Yield all cells."""
    yield from quantities(folder)
    yield from TABLE.cells(*wbc_separable(folder), everything)


def table(found: list[Cell]) -> str:
    """Return the cells as Markdown."""
    return record.both(found)
