"""The four tables of the CRAMMA paper; `cramma.csv` has the printed numbers.

P. Tsampouka, J. Shawe-Taylor, "Constant rate approximate maximum margin algorithms", ECML 2006.
The algorithms make full passes in the order of the data until a pass makes no update. The number of updates must equal
the published number.
"""

from __future__ import annotations

import csv
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from maxmargin import MaxMarginClassifier
from maxmargin.algorithms import ALMA, CRAMMA, Algorithm, Perceptron

from .data import Data, sonar, wbc, wbc_separable
from .record import LONG, Cell, Row, Section, Tables, like, results_of

DELTA, ROWS, R2 = 1.0, 683, 917  # of Table 4: the slack coordinate, the number of rows, the squared length


class Published(NamedTuple):
    """A row of a table: the algorithm, its parameter, the number of updates and the numbers beside it.

    `double` and `extended` are the counts of plain float64 (|u| = 1 after every update) and of 80-bit numbers where
    rounding decides the count.
    """

    table: int
    algorithm: str
    parameter: float
    updates: int
    numbers: list[str]
    double: str
    extended: str

    @property
    def rule(self) -> Algorithm:
        """The algorithm: ALMA_2 with B = sqrt(8) / alpha, C = sqrt(2), patterns divided by R; η of CRAMMA by table."""
        value = self.parameter
        if self.algorithm == "Perceptron":
            return Perceptron(b=value, shuffle=False)
        if self.algorithm == "ALMA":
            return ALMA(alpha=value, shuffle=False)
        etas = 0.001 / value, 0.4 * value**-0.3, 0.0001 / value, 1.7 * DELTA / (R2 * ROWS) ** 0.5 / value
        epsilon = 2.0 if self.table == 2 else 0.5
        return CRAMMA(beta=value, eta=etas[self.table - 1], epsilon=epsilon, shuffle=False)

    @property
    def labels(self) -> tuple[str, str]:
        """The names of the algorithm and of the parameter in the table."""
        shown = f"{self.parameter:g}".replace("e+", "e")
        if self.algorithm == "CRAMMA":
            return "CRAMMA²" if self.table == 2 else "CRAMMA½", f"β / R = {shown}"
        return ("ALMA₂", f"α = {shown}") if self.algorithm == "ALMA" else ("Perceptron", f"b / R² = {shown}")

    @property
    def reason(self) -> str:
        """Reason why the count may differ; empty if none is known."""
        if not self.double:
            return ""
        other = f", 80-bit numbers {int(self.extended):,}" if self.extended else ""
        return f"decided by rounding: plain float64 gives {int(self.double):,}{other}"


def published(table: int) -> list[Published]:
    """Return the rows of a table."""
    with open(Path(__file__).parent / "cramma.csv", newline="") as file:
        rows = [
            Published(int(t), name, float(value), int(updates), numbers.split(), *counts)
            for t, name, value, updates, numbers, *counts in list(csv.reader(file))[1:]
        ]
    return [row for row in rows if row.table == table]


def directional(unit: float, found: Any, X: np.ndarray, y: np.ndarray) -> list[float]:
    """Return the margin in the augmented space, in this unit."""
    return [unit * found.margin]


def extended(found: Any, X: np.ndarray, y: np.ndarray) -> list[float]:
    """Return ΔD/D, ΔΓ/Γ and Γ, ten times each, from the dual variables c: w = sum c_k y_k, with slacks Δ c_k."""
    c, rho = found.alpha, found.problem.rho
    a = np.append(X.T @ (c * y), rho * (c @ y))
    scores = y * (X @ a[:-1] + rho * a[-1])
    length, whole = float(np.linalg.norm(a)), float((a @ a + DELTA**2 * (c @ c)) ** 0.5)
    margin = float((scores + DELTA**2 * c).min()) / whole
    slack = float(np.linalg.norm(np.maximum(margin * whole / length - scores / length, 0.0)))
    own = float(np.linalg.norm(DELTA**2 * c)) / length
    largest = optimum(X, y, 0.5 / DELTA**2, rho)
    return [10.0 * (own - slack) / slack, 10.0 * (1.0 - margin / largest), 10.0 * margin]


class Setting(NamedTuple):
    """The data of a table, the constant coordinate, the numbers beside the count and their function, and constants.

    `length` and `largest` are the printed lengths of the longest pattern, or its square, and largest margin.
    """

    load: Callable[[Path], Data]
    rho: float
    names: tuple[str, ...]
    measure: Callable[[Any, np.ndarray, np.ndarray], list[float]]
    C: float = np.inf
    length: tuple[str, str] | None = None
    largest: tuple[str, str] | None = None


SETTINGS = {
    1: Setting(sonar, 1.0, ("10³ γ'",), partial(directional, 1e3), np.inf, ("R", "3.8121"), ("γ", "0.00841")),
    2: Setting(sonar, 1.0, ("10³ γ'",), partial(directional, 1e3)),
    3: Setting(
        wbc_separable, 30.0, ("10² γ'",), partial(directional, 1e2), np.inf, ("R²", "1716"), ("γ", "0.0243")
    ),
    4: Setting(
        wbc, 10.0, ("10 ΔD/D", "10 ΔΓ/Γ", "10 Γ"), extended, 0.5 / DELTA**2, ("R²", "917"), ("Γ", "0.13033")
    ),
}


def run(row: Published, X: np.ndarray, y: np.ndarray) -> list[float]:
    """Return the updates as the paper counts them, and the measures, when a pass makes no update.

    The counters of ALMA and CRAMMA start at 1, in Table 4 that of the Perceptron too.
    """
    setting = SETTINGS[row.table]
    options: dict[str, Any] = {
        "intercept": "augmented",
        "intercept_scaling": setting.rho,
        "max_epochs": np.inf,
    }
    found = row.rule.run(X, y, setting.C, record=None, **options)
    first = 0 if row.algorithm == "Perceptron" and row.table < 4 else 1
    return [found.n_updates + first, *setting.measure(found, X, y)]


def tables(table: int, folder: Path, everything: bool) -> Tables:
    """Yield the constants of the data and the rows of the table."""
    setting = SETTINGS[table]
    X, y = setting.load(folder)
    constants: list[Row] = []
    if setting.length and setting.largest:
        (name, printed), (margin, largest) = setting.length, setting.largest
        square = radius2(X, setting.rho, setting.C)
        ours = like(printed, square if "²" in name else square**0.5)
        constants.append({"quantity": name, "": Cell(printed, ours)})
        ours = like(largest, optimum(X, y, setting.C, setting.rho))
        constants.append({"quantity": f"largest margin {margin}", "": Cell(largest, ours)})
    yield constants
    yield [line(row, X, y, everything) for row in published(table)]


def line(row: Published, X: np.ndarray, y: np.ndarray, everything: bool) -> Row:
    """Return a row of the table; long rows come from the store, or run again with `everything`."""
    long, (name, parameter) = row.updates > LONG, row.labels
    found = results_of(
        f"cramma_table{row.table}", f"{name} {parameter}", long, everything, partial(run, row, X, y)
    )
    printed, ours = f"{row.updates:,}", f"{round(found[0]):,}"
    reason = row.reason if printed != ours else ""
    why = "follows from the count" if reason else ""
    numbers = zip(SETTINGS[row.table].names, row.numbers, found[1:], strict=True)
    return {
        "algorithm": name + "†" * long,
        "parameter": parameter,
        "updates": Cell(printed, ours, reason),
        **{quantity: Cell(text, like(text, value), why) for quantity, text, value in numbers},
    }


def optimum(
    X: Any, y: np.ndarray, C: float, rho: float | None = None, tol: float = 1e-8, p: float = 2.0
) -> float:
    """Return the certified largest margin, of the patterns or, for the squared hinge, of the extended patterns."""
    model = MaxMarginClassifier(
        C=C, loss="squared_hinge", intercept_scaling=rho, tol=tol, max_iter=10**6, p=p
    ).fit(X, y)
    found: Any = model.certificate_
    if np.isinf(C):
        return 0.5 * (found.lower + found.upper)
    return float((found.lower + found.upper) ** -0.5)  # the objective is 1 / (2 Gamma^2)


def radius2(X: np.ndarray, rho: float, C: float = np.inf) -> float:
    """Return R^2, with the constant coordinate and the extra coordinate of each pattern."""
    return float((X * X).sum(axis=1).max()) + rho**2 + 0.5 / C


TEXTS = {
    1: """\
P. Tsampouka, J. Shawe-Taylor, "Constant rate approximate maximum margin algorithms", ECML 2006. The data are the
aspect-angle training set of sonar, 49 mines followed by 55 rocks, with the constant coordinate ρ = 1 and a hard margin.
The algorithms make full passes in this order until a pass makes no update. ALMA₂ and CRAMMA count updates from 1.
CRAMMA has ε = 1/2 and η = 0.001 / (β / R). γ is the largest margin and γ' the margin of the result, both in the space
with the constant coordinate; R is the length of the longest pattern there. In the longest runs scores come so near to
the threshold that rounding decides the count.
""",
    2: "The data, their order and ρ = 1 are those of Table 1. CRAMMA has ε = 2 and η = 0.4 (β / R)^-0.3.\n",
    3: """\
The data are WBC without the rows with a missing value and without 11 of the remaining 683 rows, which the paper
lists: 2, 4, 191, 217, 227, 245, 252, 286, 307, 420 and 475 (from 1). Values are not scaled, in the order of the file,
with ρ = 30 and a hard margin. CRAMMA has ε = 1/2 and η = 0.0001 / (β / R).
""",
    4: """\
The data are all 683 rows of WBC without missing values, not scaled, in the order of the file, with ρ = 10 and a slack
coordinate Δ = 1 for every row, which is `loss="squared_hinge"` with C = 1 / (2 Δ²). All counters start at 1. CRAMMA has
ε = 1/2 and η = 1.7 Δ / (R √683) / (β / R). ΔD/D is (D' - D) / D, which is 0 at the optimum: D is the norm of the slacks
and D' the norm of the slack coordinates of the weight vector. ΔΓ/Γ is the relative difference between Γ, the margin of
the result, and the largest margin.
""",
}
TITLES = {1: "sonar", 2: "sonar, ε = 2", 3: "WBC without 11 patterns", 4: "WBC, extended space"}
SECTIONS = {
    f"cramma_table{k}": Section(f"CRAMMA, Table {k}: {title}", TEXTS[k], partial(tables, k))
    for k, title in TITLES.items()
}
