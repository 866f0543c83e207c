"""What the four tables of the CRAMMA paper share.

P. Tsampouka, J. Shawe-Taylor, "Constant rate approximate maximum margin algorithms", ECML 2006.
Full passes in the order of the data until one makes no update; the number of updates is to be met to the integer.
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
    """A row of a table.

    Attributes
    ----------
    what, parameter : str
    rule : Algorithm
    count : int
        Published number of updates.
    margin : str
        Published margin, in the table's unit, as printed; empty where it is not at hand.
    first : int
        What the paper's counter begins with.
    double, extended : int or None
        Where rounding decides: what plain float64 gives (|u| = 1 after every update), and 80-bit numbers.
    """

    what: str
    parameter: str
    rule: Algorithm
    count: int
    margin: str = ""
    first: int = 0
    double: int | None = None
    extended: int | None = None

    @property
    def reason(self) -> str:
        """Why the count differs, where it does."""
        if self.double is None:
            return ""
        if self.extended is None:
            return f"probably rounding, not checked; plain float64 gives {self.double:,}"
        return f"decided by rounding; plain float64 gives {self.double:,}, 80-bit numbers {self.extended:,}"

    @property
    def long(self) -> bool:
        """Is it one of those that only `--all` runs?"""
        return self.count > LONG

    @property
    def key(self) -> str:
        """Its name in the store."""
        return f"{self.what} {self.parameter}"


def perceptron(c: float, count: int, margin: str = "", first: int = 0) -> Row:
    """The Perceptron with margin, b = c R^2."""
    return Row("Perceptron", f"b / R² = {c:g}", Perceptron(b=c, shuffle=False), count, margin, first)


def alma(alpha: float, count: int, margin: str = "", double: int | None = None) -> Row:
    """ALMA_2 with B = sqrt(8) / alpha, C = sqrt(2), patterns divided by R; its counter begins with 1."""
    rule = ALMA(alpha=alpha, shuffle=False)
    return Row("ALMA₂", f"α = {alpha:g}", rule, count, margin, 1, double)


def cramma(
    beta: float,
    eta: float,
    count: int,
    margin: str = "",
    epsilon: float = 0.5,
    double: int | None = None,
    extended: int | None = None,
) -> Row:
    """CRAMMA; the first pattern is in the weight from the start and is counted."""
    rule = CRAMMA(beta=beta, eta=eta, epsilon=epsilon, shuffle=False)
    shown = f"{beta:g}".replace("e+", "e")
    power = {0.5: "½", 2.0: "²"}[epsilon]
    return Row(f"CRAMMA{power}", f"β / R = {shown}", rule, count, margin, 1, double, extended)


@dataclass(frozen=True)
class Table:
    """A table: its data, its rows, and what is measured at the end of a run.

    Attributes
    ----------
    name : str
    rho : float
        Constant coordinate of every pattern.
    rows : tuple of Row
    measures : dict
        From the name of a column to the function (model, X, y) that gives its number. The first is compared
        with the margin that a row has, the others have no published numbers at hand.
    C : float, default=inf
        The squared hinge's, or inf for the hard margin.
    """

    name: str
    rho: float
    rows: tuple[Row, ...]
    measures: dict[str, Callable[[Any, np.ndarray, np.ndarray], float]]
    C: float = np.inf

    def fit(self, row: Row, X: np.ndarray, y: np.ndarray) -> MaxMarginClassifier:
        """Run one row; a gap that it cannot certify keeps it going until no pattern asks for an update."""
        return MaxMarginClassifier(
            C=self.C, loss="squared_hinge", algorithm=row.rule, intercept="augmented",
            intercept_scaling=self.rho, tol=1e-13, max_iter=10**9,
        ).fit(X, y)  # fmt: skip

    def run(self, row: Row, X: np.ndarray, y: np.ndarray) -> list[float]:
        """Updates as the paper counts them, and the measures."""
        model = self.fit(row, X, y)
        return [model.history_[-1].steps + row.first, *(f(model, X, y) for f in self.measures.values())]

    def cells(self, X: np.ndarray, y: np.ndarray, everything: bool) -> Iterator[Cell]:
        """All rows; the long ones as they were last found, or run again."""
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
        for k, quantity in enumerate(self.measures):
            published = row.margin if k == 0 else ""
            value = like(published or "0.000", results[k + 1]) if results else ""
            yield Cell(
                row.what,
                row.parameter,
                quantity,
                published,
                value,
                reason and "with the count",
                stored=stored,
            )


def directional(unit: float) -> Callable[[Any, np.ndarray, np.ndarray], float]:
    """The margin in the augmented space, in this unit."""

    def margin(model: Any, X: np.ndarray, y: np.ndarray) -> float:
        w, b = model.coef_.ravel(), float(model.intercept_[0])
        length = np.hypot(np.linalg.norm(w), b / model.intercept_scaling)
        return unit * float((y * (X @ w + b)).min()) / length

    return margin


def optimum(
    X: np.ndarray, y: np.ndarray, C: float, intercept: str, rho: float = 1.0, tol: float = 1e-8
) -> float:
    """The largest margin, certified: of the patterns, or of the extended ones for the squared hinge."""
    model = MaxMarginClassifier(
        C=C, loss="squared_hinge", intercept=intercept, intercept_scaling=rho, tol=tol, max_iter=10**6
    ).fit(X, y)
    found: Any = model.certificate_
    if np.isinf(C):
        return 0.5 * (found.lower + found.upper)
    return float((found.lower + found.upper) ** -0.5)  # the objective is 1 / (2 Gamma^2)


def radius2(X: np.ndarray, rho: float, C: float = np.inf) -> float:
    """R^2, with the constant coordinate and each pattern's own one."""
    return float((X * X).sum(axis=1).max()) + rho**2 + 0.5 / C
