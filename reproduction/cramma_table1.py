"""Table 1 of the CRAMMA paper: sonar, hard margin."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from . import cramma, record
from .cramma import directional, optimum, radius2
from .data import sonar
from .record import Cell

TITLE = "CRAMMA, Table 1: sonar"


def _cramma(
    beta: float, count: int, margin: str, double: int | None = None, extended: int | None = None
) -> cramma.Row:
    return cramma.cramma(beta, 0.001 / beta, count, margin, double=double, extended=extended)


TABLE = cramma.Table(
    name="cramma_table1",
    rho=1.0,
    rows=(
        cramma.perceptron(1, 247_140, "5.78"),
        cramma.perceptron(3.1, 660_698, "7.14"),
        cramma.perceptron(5.4, 1_117_124, "7.45"),
        cramma.perceptron(20, 3_977_612, "7.80"),
        cramma.perceptron(90, 17_647_271, "7.91"),
        cramma.perceptron(200, 39_131_402, "7.92"),
        cramma.perceptron(500, 97_717_549, "7.93"),
        cramma.perceptron(1000, 195_358_932, "7.93"),
        cramma.alma(0.75, 415_119, "5.65"),
        cramma.alma(0.55, 1_584_785, "7.08"),
        cramma.alma(0.45, 3_133_968, "7.45"),
        cramma.alma(0.35, 6_657_109, "7.76"),
        cramma.alma(0.3, 10_170_590, "7.91"),
        cramma.alma(0.2, 28_339_340, "8.11"),
        cramma.alma(0.1, 137_693_242, "8.27"),
        cramma.alma(0.03, 1_735_836_937, "8.37", double=1_735_807_602),
        _cramma(0.73, 248_267, "5.73"),
        _cramma(1.52, 669_170, "7.12"),
        _cramma(2, 1_047_757, "7.46"),
        _cramma(3, 2_143_989, "7.82"),
        _cramma(3.45, 2_762_005, "7.92"),
        _cramma(5, 5_531_113, "8.11"),
        _cramma(10, 21_220_354, "8.28", double=21_219_154, extended=21_224_196),
        _cramma(30.1, 188_073_965, "8.37", double=188_073_965, extended=188_073_953),
    ),
    measures={"10³ γ'": directional(1e3)},
)
TEXT = """\
The data are the aspect-angle training set of sonar, 49 mines followed by 55 rocks, with the constant coordinate ρ =
1 and a hard margin. The algorithms make full passes in this order until a pass makes no update. ALMA₂ and CRAMMA
count updates from 1. CRAMMA has ε = 1/2 and η = 0.001 / (β / R).

Rounding decides the counts of the longest runs. After millions of updates the weight vector is accurate to about
3e-13, and a score near the threshold of 1e-3 is accurate to about 1e-10. Among 10^8 presentations, a score comes as
near to the threshold as 1e-10. For β / R = 10 this is the score of pattern 34 (from 0) at the 6,436,537th update.
In float64, with u divided by its norm in every update, the score is 3e-10 above the threshold; in 80-bit numbers it
is 2e-11 below, and the two runs differ from there on. maxmargin stores the weight vector as a scalar times a
vector, which loses fewer digits: four of its counts of CRAMMA differ from the paper, here and in Table 2, and three
of these equal the counts of 80-bit numbers. The rounding of the paper's program is unknown. All margins agree
except one, which differs by one unit of the last digit (Table 2).
"""


def quantities(folder: Path) -> Iterator[Cell]:
    """Yield R and the largest margin."""
    X, y = sonar(folder)
    yield Cell("R", "", "", "3.8121", f"{radius2(X, 1.0) ** 0.5:.4f}")
    yield Cell("largest margin γ", "", "", "0.00841", f"{optimum(X, y, TABLE.C, 'augmented'):.5f}")


def cells(folder: Path, everything: bool = False) -> Iterator[Cell]:
    """Yield all cells."""
    yield from quantities(folder)
    yield from TABLE.cells(*sonar(folder), everything)


def table(found: list[Cell]) -> str:
    """Return the cells as Markdown."""
    return record.both(found)
