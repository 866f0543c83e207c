"""Common code of the four tables of the CRAMMA paper.

P. Tsampouka, J. Shawe-Taylor, "Constant rate approximate maximum margin algorithms", ECML 2006.
The algorithms make full passes in the order of the data until a pass makes no update. The number of updates must equal
the published number.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from maxmargin import ALMA, CRAMMA, MaxMarginClassifier, Perceptron
from maxmargin.algorithms import Algorithm

from .record import LONG, Cell, like, recall, remember

UPDATES = "updates"


@dataclass(frozen=True)
class Row:
    """Row of a table.

    Attributes
    ----------
    what, parameter : str
    rule : Algorithm
    count : int
        Published number of updates.
    printed : tuple of str
        The other published numbers, as printed, in the order of the measures of the table.
    first : int
        Start of the paper's counter.
    double, extended : int or None
        Counts of plain float64 (|u| = 1 after every update) and of 80-bit numbers, if rounding decides the count.
    """

    what: str
    parameter: str
    rule: Algorithm
    count: int
    printed: tuple[str, ...]
    first: int = 0
    double: int | None = None
    extended: int | None = None

    @property
    def reason(self) -> str:
        """Reason why the count may differ; empty if none is known."""
        if self.double is None:
            return ""
        if self.extended is None:
            return f"probably rounding, not checked; plain float64 gives {self.double:,}"
        return f"decided by rounding; plain float64 gives {self.double:,}, 80-bit numbers {self.extended:,}"

    @property
    def long(self) -> bool:
        """Whether only `--all` runs the row."""
        return self.count > LONG

    @property
    def key(self) -> str:
        """Name of the row in the store."""
        return f"{self.what} {self.parameter}"


def perceptron(c: float, count: int, *printed: str, first: int = 0) -> Row:
    """Return a row of the Perceptron with margin, b = c R^2."""
    return Row("Perceptron", f"b / R² = {c:g}", Perceptron(b=c, shuffle=False), count, printed, first)


def alma(alpha: float, count: int, *printed: str, double: int | None = None) -> Row:
    """Return a row of ALMA_2 with B = sqrt(8) / alpha, C = sqrt(2), patterns divided by R; its counter starts at 1."""
    rule = ALMA(alpha=alpha, shuffle=False)
    return Row("ALMA₂", f"α = {alpha:g}", rule, count, printed, 1, double)


def cramma(
    beta: float,
    eta: float,
    count: int,
    *printed: str,
    epsilon: float = 0.5,
    double: int | None = None,
    extended: int | None = None,
) -> Row:
    """Return a row of CRAMMA. The weight starts as the first pattern, which counts as an update."""
    rule = CRAMMA(beta=beta, eta=eta, epsilon=epsilon, shuffle=False)
    shown = f"{beta:g}".replace("e+", "e")
    power = {0.5: "½", 2.0: "²"}[epsilon]
    return Row(f"CRAMMA{power}", f"β / R = {shown}", rule, count, printed, 1, double, extended)


@dataclass(frozen=True)
class Table:
    """Table: the data, the rows, and the quantities measured at the end of a run.

    Attributes
    ----------
    name : str
    rho : float
        Constant coordinate of every pattern.
    rows : tuple of Row
    measures : dict
        From the name of a column to the function (model, X, y) that computes its number.
    C : float, default=inf
        C of the squared hinge, or inf for the hard margin.
    """

    name: str
    rho: float
    rows: tuple[Row, ...]
    measures: dict[str, Callable[[Any, np.ndarray, np.ndarray], float]]
    C: float = np.inf

    def fit(self, row: Row, X: np.ndarray, y: np.ndarray) -> MaxMarginClassifier:
        """Run one row until a pass makes no update: `tol` is smaller than any gap that the algorithm can certify."""
        return MaxMarginClassifier(
            C=self.C, loss="squared_hinge", algorithm=row.rule, intercept="augmented",
            intercept_scaling=self.rho, tol=1e-13, max_iter=10**9,
        ).fit(X, y)  # fmt: skip

    def run(self, row: Row, X: np.ndarray, y: np.ndarray) -> list[float]:
        """Return the updates as the paper counts them, and the measures."""
        model = self.fit(row, X, y)
        return [model.history_[-1].steps + row.first, *(f(model, X, y) for f in self.measures.values())]

    def cells(self, X: np.ndarray, y: np.ndarray, everything: bool) -> Iterator[Cell]:
        """Yield all rows; long rows come from the store, or run again with `everything`."""
        kept = recall(self.name)
        for row in self.rows:
            stored = row.long and not everything
            results = kept.get(row.key, []) if stored else self.run(row, X, y)
            if row.long and everything:
                remember(self.name, {row.key: results})
            yield from self._compare(row, results, stored)

    def _compare(self, row: Row, results: list[float], stored: bool) -> Iterator[Cell]:
        count = f"{round(results[0]):,}" if results else ""
        published = f"{row.count:,}"
        reason = row.reason if published != count else ""
        yield Cell(row.what, row.parameter, UPDATES, published, count, reason, stored=stored)
        for k, (quantity, published) in enumerate(zip(self.measures, row.printed, strict=True), 1):
            value = like(published, results[k]) if results else ""
            why = reason and "follows from the count"
            yield Cell(row.what, row.parameter, quantity, published, value, why, stored=stored)


def directional(unit: float) -> Callable[[Any, np.ndarray, np.ndarray], float]:
    """Return a function that computes the margin in the augmented space, in this unit."""

    def margin(model: Any, X: np.ndarray, y: np.ndarray) -> float:
        w, b = model.coef_.ravel(), float(model.intercept_[0])
        length = np.hypot(np.linalg.norm(w), b / model.intercept_scaling)
        return unit * float((y * (X @ w + b)).min()) / length

    return margin


def optimum(
    X: np.ndarray, y: np.ndarray, C: float, intercept: str, rho: float = 1.0, tol: float = 1e-8
) -> float:
    """Return the certified largest margin, of the patterns or, for the squared hinge, of the extended patterns."""
    model = MaxMarginClassifier(
        C=C, loss="squared_hinge", intercept=intercept, intercept_scaling=rho, tol=tol, max_iter=10**6
    ).fit(X, y)
    found: Any = model.certificate_
    if np.isinf(C):
        return 0.5 * (found.lower + found.upper)
    return float((found.lower + found.upper) ** -0.5)  # the objective is 1 / (2 Gamma^2)


def radius2(X: np.ndarray, rho: float, C: float = np.inf) -> float:
    """Return R^2, with the constant coordinate and the extra coordinate of each pattern."""
    return float((X * X).sum(axis=1).max()) + rho**2 + 0.5 / C
