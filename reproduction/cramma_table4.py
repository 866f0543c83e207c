"""Table 4 of the CRAMMA paper: WBC in the extended space, which is the 2-norm soft margin."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from . import cramma, record
from .cramma import optimum, radius2
from .data import wbc
from .record import Cell

TITLE = "CRAMMA, Table 4: WBC, extended space"
RHO, DELTA, ROWS, R2 = 10.0, 1.0, 683, 917
C = 0.5 / DELTA**2


@dataclass(frozen=True)
class Extended:
    """Margin of the last weight vector in the extended space, and the norms of its slacks.

    Attributes
    ----------
    margin : float
        Gamma', the smallest score divided by the norm.
    slack, own : float
        D, the norm of the slacks of the original coordinates; D', the norm of the extra coordinates.
    """

    margin: float
    slack: float
    own: float


def extended(model: Any, X: np.ndarray, y: np.ndarray) -> Extended:
    """Compute the margin from the dual variables c: w = sum c_k y_k, with Delta c_k in the coordinate of pattern k."""
    found = model.certificate_
    c = np.zeros(y.size)
    c[found.support] = found.dual
    a = np.append(X.T @ (c * y), model.intercept_scaling * (c @ y))
    scores = y * (X @ a[:-1] + model.intercept_scaling * a[-1])
    length, whole = float(np.linalg.norm(a)), float((a @ a + DELTA**2 * (c @ c)) ** 0.5)
    margin = float((scores + DELTA**2 * c).min()) / whole
    slack = np.maximum(margin * whole / length - scores / length, 0.0)
    return Extended(margin, float(np.linalg.norm(slack)), float(np.linalg.norm(DELTA**2 * c)) / length)


def _excess(model: Any, X: np.ndarray, y: np.ndarray) -> float:
    found = extended(model, X, y)
    return 10.0 * (found.own - found.slack) / found.slack


def _margin(model: Any, X: np.ndarray, y: np.ndarray) -> float:
    return 10.0 * extended(model, X, y).margin


def _deviation(model: Any, X: np.ndarray, y: np.ndarray) -> float:
    return 10.0 * (1.0 - extended(model, X, y).margin / largest(X, y))


def largest(X: np.ndarray, y: np.ndarray) -> float:
    """Return the largest margin in the extended space."""
    return optimum(X, y, C, "augmented", RHO)


def _cramma(beta: float, count: int, *printed: str) -> cramma.Row:
    return cramma.cramma(beta, 1.7 * DELTA / (R2 * ROWS) ** 0.5 / beta, count, *printed)


TABLE = cramma.Table(
    name="cramma_table4",
    rho=RHO,
    rows=(
        cramma.perceptron(1, 67_913, "2.22", "2.14", "1.0244", first=1),
        cramma.perceptron(2.4, 144_938, "1.13", "1.11", "1.1585", first=1),
        cramma.perceptron(10, 560_591, "0.39", "0.38", "1.2542", first=1),
        cramma.perceptron(45, 2_474_607, "0.19", "0.19", "1.2789", first=1),
        cramma.perceptron(700, 38_336_601, "0.15", "0.15", "1.2837", first=1),
        cramma.alma(0.75, 79_061, "2.18", "2.19", "1.0185"),
        cramma.alma(0.6, 248_461, "1.13", "1.16", "1.1524"),
        cramma.alma(0.35, 1_625_682, "0.42", "0.42", "1.2481"),
        cramma.alma(0.2, 7_184_572, "0.19", "0.19", "1.2784"),
        cramma.alma(0.1, 35_542_412, "0.08", "0.08", "1.2933"),
        _cramma(0.95, 80_671, "2.36", "2.22", "1.0143"),
        _cramma(1.64, 185_687, "1.10", "1.12", "1.1568"),
        _cramma(3.1, 560_229, "0.36", "0.37", "1.2551"),
        _cramma(5, 1_401_588, "0.18", "0.19", "1.2791"),
        _cramma(11.5, 7_252_904, "0.08", "0.08", "1.2934"),
    ),
    measures={"10 ΔD/D": _excess, "10 ΔΓ/Γ": _deviation, "10 Γ": _margin},
    C=C,
)
TEXT = """\
The data are all 683 rows of WBC without missing values, not scaled, in the order of the file, with ρ = 10 and a
slack coordinate Δ = 1 for every row. The problem is `loss="squared_hinge"` with C = 1 / (2 Δ²). All counters start
at 1, also that of the Perceptron. CRAMMA has ε = 1/2 and η = 1.7 Δ / (R √683) / (β / R). ΔD/D is (D' - D) / D,
which is 0 at the optimum: D is the norm of the slacks and D' the norm of the slack coordinates of the weight vector.
ΔΓ/Γ is the relative difference between Γ, the margin of the result, and the largest margin.
"""


def cells(folder: Path, everything: bool = False) -> Iterator[Cell]:
    """Yield all cells."""
    X, y = wbc(folder)
    yield Cell("R²", "", "", "917", f"{radius2(X, RHO, C):.0f}")
    yield Cell("largest margin Γ", "", "", "0.13033", f"{largest(X, y):.5f}")
    yield from TABLE.cells(X, y, everything)


def table(found: list[Cell]) -> str:
    """Return the cells as Markdown."""
    return record.both(found)
