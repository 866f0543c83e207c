"""Table 2 of the CRAMMA paper: sonar, hard margin, CRAMMA with epsilon = 2."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from . import cramma, record
from .cramma import directional
from .data import sonar
from .record import Cell

TITLE = "CRAMMA, Table 2: sonar, ε = 2"


def _row(
    exponent: int, count: int, margin: str, double: int | None = None, extended: int | None = None
) -> cramma.Row:
    beta = 10.0**exponent
    return cramma.cramma(beta, 0.4 * beta**-0.3, count, margin, epsilon=2.0, double=double, extended=extended)


TABLE = cramma.Table(
    name="cramma_table2",
    rho=1.0,
    rows=(
        _row(6, 70_798, "1.03"),
        _row(7, 106_507, "3.66"),
        _row(8, 264_396, "5.52"),
        _row(9, 756_035, "6.69"),
        _row(10, 2_275_334, "7.37"),
        _row(11, 6_994_002, "7.80"),
        _row(12, 21_690_267, "8.10", double=21_691_876, extended=21_691_557),
        _row(13, 67_893_557, "8.27", double=67_894_144, extended=67_895_526),
    ),
    measures={"10³ γ'": directional(1e3)},
)
TEXT = """\
The data, their order and ρ = 1 are those of Table 1. CRAMMA has ε = 2 and η = 0.4 (β / R)^-0.3.
"""


def cells(folder: Path, everything: bool = False) -> Iterator[Cell]:
    """Yield all cells."""
    yield from TABLE.cells(*sonar(folder), everything)


def table(found: list[Cell]) -> str:
    """Return the cells as Markdown."""
    return record.table(found)
