"""Linear programs that state verdicts on hyperplanes, and their proofs, in rational numbers.

With y_i = 1 or -1 for the class of row i:

* no separator: y_i (w.x_i + b) >= 1 for the rows of the proof has no solution. With the weights of the proof as
  multipliers these add up to 0 >= sum of the weights.
* a separator: a solution of y_i (w.x_i + b) >= 1 for all rows.
* bounds of the largest margin, p = 1 or inf: max t with y_i (w.x_i + b) - t >= 0 for all rows and |w|_q <= 1, where
  1/p + 1/q = 1. A point proves the lower bound. For dual variables alpha >= 0 of sum one, balanced between the classes
  where there is an intercept, the rows add up to t <= v.w with v = sum alpha_i y_i x_i, and |w|_q <= 1 then gives
  t <= |v|_p.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from ...numerics.rational import row_entries
from ..certificate import Certificate
from .bounds import exactly_feasible
from .vipr_file import Constraint, Number, Program, Terms, number_text


@dataclass(frozen=True, eq=False)
class SignedRows:
    """The rows y_i (x_i, 1) of hyperplanes, with the 1 only where there is an intercept.

    Parameters
    ----------
    X : ndarray or CSR matrix of shape (n, d)
    signs : ndarray of shape (n,), entries -1.0 and 1.0
    bias : bool
    first : int
        The number that the first row and the first column have in names.
    """

    X: Any
    signs: np.ndarray
    bias: bool
    first: int

    @property
    def d(self) -> int:
        """The number of columns."""
        return self.X.shape[1]

    @property
    def intercept(self) -> list[str]:
        """The name of the intercept, if there is one."""
        return ["b"] if self.bias else []

    def entries(self, i: int) -> list[tuple[int, float]]:
        """Return the columns and the values of y_i x_i; the product with a sign is exact."""
        return [(j, float(self.signs[i]) * value) for j, value in zip(*row_entries(self.X, i), strict=True)]

    def constraint(self, i: int) -> Constraint:
        """Return y_i (w.x_i + b) >= 1; the intercept is the last variable."""
        terms = self.entries(i)
        if self.bias:
            terms.append((self.d, float(self.signs[i])))
        return Constraint(self.name(i), "G", 1, terms)

    def name(self, i: int) -> str:
        """Return the name of the constraint of a row."""
        return f"row{i + self.first}"

    def weights(self, letter: str) -> list[str]:
        """Return the names of one variable for each column."""
        return [f"{letter}{j + self.first}" for j in range(self.d)]


class UnitBall(ABC):
    """The condition |w|_q <= 1 in linear constraints on `copies` variables for each column.

    Parameters
    ----------
    rows : SignedRows
    """

    copies: int

    def __init__(self, rows: SignedRows) -> None:
        self.rows, self.d = rows, rows.d

    @abstractmethod
    def variables(self) -> list[str]:
        """Return the names of the variables."""

    @abstractmethod
    def constraints(self) -> list[Constraint]:
        """Return the constraints, those on single variables first."""

    @abstractmethod
    def score(self, entries: Terms) -> Terms:
        """Return the terms of w.x for the entries of x."""

    @abstractmethod
    def point(self, w: Sequence[Fraction]) -> Terms:
        """Return the non-zero variables at w / |w|_q."""

    @abstractmethod
    def length(self, w: Sequence[Fraction]) -> Fraction:
        """Return |w|_q."""

    @abstractmethod
    def bound(self, v: dict[int, Fraction]) -> tuple[Terms, Fraction]:
        """Return multipliers with which the constraints add up to v.w <= |v|_p, and |v|_p."""


class Crosspolytope(UnitBall):
    """sum |w_j| <= 1 for p = inf: w = u - v with u, v >= 0, and sum_j (u_j + v_j) <= 1."""

    copies = 2

    def variables(self) -> list[str]:
        return [*self.rows.weights("u"), *self.rows.weights("v")]

    def constraints(self) -> list[Constraint]:
        signs = [Constraint(f"{name}_sign", "G", 0, [(k, 1)]) for k, name in enumerate(self.variables())]
        return [*signs, Constraint("norm", "L", 1, [(k, 1) for k in range(2 * self.d)])]

    def score(self, entries: Terms) -> Terms:
        return [*entries, *((self.d + j, -value) for j, value in entries)]

    def point(self, w: Sequence[Fraction]) -> Terms:
        length = self.length(w)
        return [(j if value > 0 else self.d + j, abs(value) / length) for j, value in enumerate(w) if value]

    def length(self, w: Sequence[Fraction]) -> Fraction:
        return sum(map(abs, w), Fraction(0))

    def bound(self, v: dict[int, Fraction]) -> tuple[Terms, Fraction]:
        # h (sum u + sum v) <= h, with h = |v|_inf, less (h - v_j) u_j >= 0 and (h + v_j) v_j >= 0
        h = max(map(abs, v.values()), default=Fraction(0))
        over = [(j, v.get(j, Fraction(0)) - h) for j in range(self.d)]
        under = [(self.d + j, -v.get(j, Fraction(0)) - h) for j in range(self.d)]
        return [*over, *under, (2 * self.d, h)], h


class Cube(UnitBall):
    """max |w_j| <= 1 for p = 1: -1 <= w_j <= 1."""

    copies = 1

    def variables(self) -> list[str]:
        return self.rows.weights("w")

    def constraints(self) -> list[Constraint]:
        names = self.variables()
        lower = [Constraint(f"{name}_lower", "G", -1, [(j, 1)]) for j, name in enumerate(names)]
        return [*lower, *(Constraint(f"{name}_upper", "L", 1, [(j, 1)]) for j, name in enumerate(names))]

    def score(self, entries: Terms) -> Terms:
        return entries

    def point(self, w: Sequence[Fraction]) -> Terms:
        length = self.length(w)
        return [(j, value / length) for j, value in enumerate(w) if value]

    def length(self, w: Sequence[Fraction]) -> Fraction:
        return max(map(abs, w))

    def bound(self, v: dict[int, Fraction]) -> tuple[Terms, Fraction]:
        # v_j w_j <= |v_j|: v_j times w_j <= 1, or times w_j >= -1 where v_j is negative
        used = [(j if value < 0 else self.d + j, value) for j, value in sorted(v.items())]
        return used, sum(map(abs, v.values()), Fraction(0))


BALLS: dict[float, type[UnitBall]] = {np.inf: Crosspolytope, 1.0: Cube}  # by the exponent p of the margin


def no_separator(rows: SignedRows, support: Sequence[int], weights: Sequence[Fraction]) -> Program:
    """Return the program of the rows of a proof, which has no solution.

    Parameters
    ----------
    rows : SignedRows
    support : sequence of int
        The rows of the proof, whose constraints contradict each other; the others are not needed.
    weights : sequence of Fraction
        Positive, with sum weights_k y_k (x_k, 1) = 0.
    """
    return Program(
        "The constraints are those of the rows of the proof: they have no solution, so that all rows have none.",
        [*rows.weights("w"), *rows.intercept], 0, len(support), map(rows.constraint, support), "infeas",
        multipliers=list(enumerate(weights)), derived=f"none G {number_text(sum(weights))} 0",
    )  # fmt: skip


def separator(rows: SignedRows, point: Sequence[Fraction], least: Fraction) -> Program:
    """Return the program of all rows, with a solution.

    Parameters
    ----------
    rows : SignedRows
    point : sequence of Fraction, of length d + 1
        The entries of w, and b.
    least : Fraction
        The smallest y_i (w.x_i + b), which is positive.
    """
    # the smallest power of two that makes all scores at least 1: the numbers stay as short as they are
    factor = Fraction(2) ** (least.denominator.bit_length() - least.numerator.bit_length() + 1)
    if least * factor / 2 >= 1:
        factor /= 2
    values = point if rows.bias else point[:-1]
    n = rows.signs.size
    return Program(
        "The point is a hyperplane with all rows on the sides of their classes.",
        [*rows.weights("w"), *rows.intercept], 0, n, map(rows.constraint, range(n)), "range -inf 0",
        solution=[(j, value * factor) for j, value in enumerate(values) if value],
    )  # fmt: skip


def largest_margin(
    rows: SignedRows,
    p: float,
    dual: dict[int, Fraction] | None,
    point: Sequence[Fraction] | None = None,
    least: Fraction = Fraction(0),
) -> Program:
    """Return the program of the largest margin, with bounds of its value.

    Parameters
    ----------
    rows : SignedRows
    p : {1.0, inf}
        The exponent of the norm of margins.
    dual : dict of Fraction, or None
        The non-zero dual variables by row, as of `exact_dual`; None for no upper bound.
    point : sequence of Fraction, of length d + 1, default=None
        The entries of a w other than 0, and b; None for the point 0, which has t = 0.
    least : Fraction, default=0
        The smallest y_i (w.x_i + b) of this point.
    """
    ball, n = BALLS[p](rows), rows.signs.size
    variables = [*ball.variables(), *rows.intercept, "t"]
    norm, t, lo = ball.constraints(), len(variables) - 1, Fraction(0)
    solution: list[tuple[int, Number]] = []
    if point is not None:
        *w, b = point
        length = ball.length(w)
        lo = least / length
        intercept = [(t - 1, b / length)] if rows.bias and b else []
        solution = [*ball.point(w), *intercept, (t, lo)]

    def constraints() -> Iterator[Constraint]:
        """Yield |w|_q <= 1, and y_i (w.x_i + b) - t >= 0 for all rows."""
        yield from norm
        for i in range(n):
            intercept = [(t - 1, float(rows.signs[i]))] if rows.bias else []
            yield Constraint(rows.name(i), "G", 0, [*ball.score(rows.entries(i)), *intercept, (t, -1)])

    hi, multipliers = "inf", None
    if dual is not None:
        used, bound = ball.bound(_combination(rows, dual))
        hi, multipliers = number_text(bound), [*used, *((len(norm) + i, -alpha) for i, alpha in dual.items())]
    return Program(
        f"The variable t is the margin in the norm of p = {p:g}, and the largest one is proved to be in the range.",
        variables, ball.copies * rows.d, len(norm) + n, constraints(), f"range {number_text(lo)} {hi}", t, solution,
        multipliers, derived=f"best L {hi} OBJ",
    )  # fmt: skip


def exact_dual(rows: SignedRows, cert: Certificate) -> dict[int, Fraction] | None:
    """Return dual variables of a hard margin by row, exactly balanced between the classes, and of sum one.

    None is returned where they prove nothing: all are zero, or those of one class are.

    Parameters
    ----------
    rows : SignedRows
    cert : Certificate
    """
    alpha = exactly_feasible(cert.problem, rows.signs, np.ones(rows.signs.size), cert.alpha)
    total = sum(alpha.values())
    return {i: value / total for i, value in alpha.items()} if total else None


def _combination(rows: SignedRows, dual: dict[int, Fraction]) -> dict[int, Fraction]:
    """Return the entries other than 0 of v = sum alpha_i y_i x_i, exactly."""
    v: dict[int, Fraction] = {}
    for i, alpha in dual.items():
        for j, value in rows.entries(i):
            v[j] = v.get(j, Fraction(0)) + alpha * Fraction(value)
    return {j: value for j, value in v.items() if value}
