"""A primal active-set method in exact arithmetic, for hinge and hard margins whose linear systems float64 cannot solve.

The dual at p = 2 is solved as a quadratic program in the integers r_i = 2^k y_i (x_i, constant coordinate):

    minimise 1/2 |sum a_i r_i|^2 - q sum a_i   subject to   E a = e,  0 <= a <= c

with q = 4^k for the hinge and 0 for a hard margin; E and e are those of `quadratic_program`. The free rows, those off
their bounds, are kept affinely independent, so that the optimality conditions on them determine the dual variables. A
step moves towards that solution, and a row that reaches a bound leaves. At the solution the row that violates its
condition most becomes free. The objective never rises, and no rounding hides a violation: at the end the point is the
optimum.

References
----------
J. Nocedal, S. Wright, "Numerical Optimization", 2nd edition 2006, section 16.5.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from typing import NamedTuple

import numpy as np

from ...numerics.rational import null_vector
from ...problem.problem import Problem

# Steps after which the method gives up. From a start near the optimum it takes a few for each column; more steps win
# problems with a start that is far off, at 1 to 100 ms each. A round value; not tuned.
MAX_STEPS = 300
# Rows whose margin differs from one by more than this start at a bound (hinge). A smaller distance starts tight rows at
# bounds, a larger one starts with more free rows than can be tight; either costs steps. A round value; not tuned.
START_DISTANCE = 1e-6
# Bits of the dual variables of a start, which need not be exact: shorter numbers make the first steps cheaper.
START_BITS = 40


class ExactPoint(NamedTuple):
    """The optimum, rounded to float64: w of shape (d,), b, and alpha of shape (n,)."""

    w: np.ndarray
    b: float
    alpha: np.ndarray


class ExactSearch:
    """The search for the optimum of a hard margin or of the hinge at p = 2, in exact arithmetic.

    Parameters
    ----------
    problem : Problem
    X : ndarray of shape (n, d)
    y : ndarray of shape (n,), entries -1.0 and 1.0
        Both classes.
    caps : ndarray of shape (n,)
        C s_i for the hinge, inf for a hard margin.
    start, margins : ndarray of shape (n,)
        Dual variables, and margins y_i (w.x_i + b), near the optimum: the nearer, the fewer steps.
    interrupted : callable
        Returns whether to stop.

    Attributes
    ----------
    a : list of Fraction
        Dual variables of all rows.
    free : list of int
        The rows whose dual variables are off their bounds.
    """

    def __init__(
        self,
        problem: Problem,
        X: np.ndarray,
        y: np.ndarray,
        caps: np.ndarray,
        start: np.ndarray,
        margins: np.ndarray,
        interrupted: Callable[[], bool] = lambda: False,
    ) -> None:
        self.problem, self.y, self.interrupted = problem, [int(v) for v in y], interrupted
        rows = [[Fraction(v) for v in row] for row in X.tolist()]
        if problem.rho:
            rows = [[*row, Fraction(problem.rho)] for row in rows]
        self.unit = max(v.denominator for row in rows for v in row)  # 2^k: denominators are powers of two
        self.rows = [[int(v * self.unit) * sign for v in row] for row, sign in zip(rows, self.y, strict=True)]
        self.caps = [Fraction(c) if math.isfinite(c) else None for c in caps.tolist()]
        self.q = 0 if problem.hard else self.unit**2
        self.E, self.e = self._equations()
        self.a = self._hard_start(start) if problem.hard else self._soft_start(start, margins)
        self.free = [i for i, v in enumerate(self.a) if v > 0 and v != self.caps[i]]

    def _equations(self) -> tuple[list[list[int]], list[Fraction]]:
        """Return the m equations, as lists of shapes (m, n) and (m,)."""
        y = self.y
        if not self.problem.hard:
            return ([y], [Fraction(0)]) if self.problem.free else ([], [])
        if not self.problem.free:
            return [[1] * len(y)], [Fraction(1)]
        return [[int(v > 0) for v in y], [int(v < 0) for v in y]], [Fraction(1, 2)] * 2

    def _hard_start(self, start: np.ndarray) -> list[Fraction]:
        """Return the dual variables of a start, scaled to meet each equation."""
        a = [Fraction(0)] * len(self.y)
        for line, total in zip(self.E, self.e, strict=True):
            some = [i for i, v in enumerate(line) if v]
            top = float(start[some].max())
            parts = [round(start[i] / top * 2.0**START_BITS) if top > 0.0 else 1 for i in some]
            for i, part in zip(some, parts, strict=True):
                a[i] = total * Fraction(part, sum(parts))
        return a

    def _soft_start(self, start: np.ndarray, margins: np.ndarray) -> list[Fraction]:
        """Return the dual variables of a start, at their bounds where margins are off one, and balanced."""
        a = []
        for cap, value, margin in zip(self.caps, start.tolist(), margins.tolist(), strict=True):
            assert cap is not None
            share = (
                Fraction(round(value / float(cap) * 2.0**START_BITS), 1 << START_BITS) if cap else Fraction(0)
            )
            off = margin - 1.0
            a.append(cap * (min(max(share, 0), 1) if abs(off) <= START_DISTANCE else int(off < 0.0)))
        if self.problem.free:
            excess = sum(v * sign for v, sign in zip(a, self.y, strict=True))
            # the excess is taken from the rows that may be tight, then from the others
            for i in np.argsort(np.abs(margins - 1.0), kind="stable").tolist():
                if excess * self.y[i] > 0:
                    change = min(a[i], abs(excess))
                    a[i] -= change
                    excess -= change * self.y[i]
        return a

    def optimum(self) -> ExactPoint | None:
        """Return the optimum, each number rounded once.

        Returns
        -------
        ExactPoint or None
            None after MAX_STEPS steps, or where the classes are inseparable (hard margin).

        Raises
        ------
        OutOfTime
            If it was time to stop.
        OverflowError
            If float64 cannot hold a number of the optimum.
        """
        beta = self.minimise()
        return None if beta is None else self.point(beta)

    def minimise(self) -> list[Fraction] | None:
        """Move `a` to the optimum; return the multipliers of the equations there, or None if it was not reached."""
        self._make_independent()
        for _ in range(MAX_STEPS):
            solved, beta = self._solve()
            change = [new - self.a[i] for i, new in zip(self.free, solved, strict=True)]
            if self._move(change, Fraction(1)):
                continue
            w = self.combined(range(len(self.a)))
            if self.problem.hard and not any(w):
                return None
            worst = self._worst_row(w, beta)
            if worst is None:
                return beta
            self.free.append(worst)
            self._make_independent(worst)
        return None

    def combined(self, rows: range | list[int]) -> list[Fraction]:
        """Return sum a_i r_i over some rows."""
        some = [i for i in rows if self.a[i]]
        below = math.lcm(*(self.a[i].denominator for i in some))
        total = [0] * len(self.rows[0])
        for i in some:
            times = self.a[i].numerator * (below // self.a[i].denominator)
            total = [t + times * v for t, v in zip(total, self.rows[i], strict=True)]
        return [Fraction(t, below) for t in total]

    def _make_independent(self, entered: int | None = None) -> None:
        """Move along combinations of the free rows that vanish until the rows are independent.

        They leave w unchanged. The objective falls by q times the sum of the changes: a row that entered from zero
        rises, one that entered from its cap falls.
        """
        while self.free:
            block = [list(line) for line in zip(*(self.rows[i] for i in self.free), strict=True)]
            z = null_vector([*block, *self._equations_of_free()], self.interrupted)
            if z is None:
                return
            rises = sum(z) > 0 if sum(z) else max(z) > 0
            if entered in self.free:
                rises = (z[self.free.index(entered)] > 0) == (self.a[entered] == 0)
            self._move([Fraction(v if rises else -v) for v in z], None)

    def _equations_of_free(self) -> list[list[int]]:
        return [[line[i] for i in self.free] for line in self.E]

    def _move(self, change: list[Fraction], longest: Fraction | None) -> bool:
        """Add the largest multiple, at most `longest`, of a change of the free dual variables that keeps the bounds.

        Returns whether a row has reached a bound before; that row leaves the free ones.
        """
        t, leaving = longest, None
        for i, step in zip(self.free, change, strict=True):
            cap = self.caps[i]
            if step < 0:
                most = -self.a[i] / step
            elif step > 0 and cap is not None:
                most = (cap - self.a[i]) / step
            else:
                continue
            if t is None or most < t:
                t, leaving = most, i
        assert t is not None
        for i, step in zip(self.free, change, strict=True):
            self.a[i] += t * step
        if leaving is None:
            return False
        self.free.remove(leaving)
        return True

    def _solve(self) -> tuple[list[Fraction], list[Fraction]]:
        """Return the solution (a, beta) of the optimality conditions on the free rows.

        r_i.(v + sum a_j r_j) + (E'beta)_i = q and E a = e, where v and part of e are the sums of the other rows: a null
        vector of the matrix with the right-hand side as its last column.
        """
        free, others = self.free, [i for i in range(len(self.a)) if i not in set(self.free)]
        m, E = len(self.E), self._equations_of_free()
        fixed = self.combined(others)
        R = np.array([self.rows[i] for i in free], dtype=object).reshape(len(free), len(self.rows[0]))
        G = (R @ R.T).tolist()
        matrix: list[list[int | Fraction]] = []
        for place, i in enumerate(free):
            right = self.q - sum(v * r for v, r in zip(fixed, self.rows[i], strict=True))
            matrix.append([*G[place], *(line[place] for line in E), -right])
        for line, part, total in zip(self.E, E, self.e, strict=True):
            right = total - sum(line[i] * self.a[i] for i in others if line[i])
            matrix.append([*part, *([0] * m), -right])
        if not free:  # nothing determines the multipliers: those between the conditions of the rows at bounds
            return [], [self._multiplier(fixed)] * m
        z = null_vector([_integers(line) for line in matrix], self.interrupted)
        assert z is not None
        solved = [Fraction(v, z[-1]) for v in z[:-1]]
        return solved[: len(free)], solved[len(free) :]

    def _multiplier(self, w: list[Fraction]) -> Fraction:
        """Return a multiplier of the one equation y.a = 0 where no row is free: the middle of those with least loss."""
        # y_i b >= q - r_i.w for rows at zero and y_i b <= q - r_i.w for rows at caps
        limits: tuple[list[Fraction], list[Fraction]] = [], []
        for row, value, sign in zip(self.rows, self.a, self.y, strict=True):
            score = self.q - sum((v * r for v, r in zip(w, row, strict=True)), Fraction(0))
            limits[(value == 0) == (sign > 0)].append(score * sign)
        upper, lower = limits
        if not (upper and lower):
            return max(lower, default=min(upper, default=Fraction(0)))
        return (min(upper) + max(lower)) / 2

    def _worst_row(self, w: list[Fraction], beta: list[Fraction]) -> int | None:
        """Return the row that violates the condition of its bound most, None if all hold."""
        below = math.lcm(*(v.denominator for v in [*w, *beta]))
        whole, multipliers = [int(v * below) for v in w], [int(v * below) for v in beta]
        worst, most = None, 0
        for i in set(range(len(self.a))) - set(self.free):
            slack = sum(v * r for v, r in zip(whole, self.rows[i], strict=True)) - self.q * below
            slack += sum(v * line[i] for v, line in zip(multipliers, self.E, strict=True))
            violation = -slack if self.a[i] == 0 else slack
            if violation > most:
                worst, most = i, violation
        return worst

    def point(self, beta: list[Fraction]) -> ExactPoint:
        """Return the point in the problem's own units, that of a hard margin at smallest margin one."""
        w = [v / self.unit for v in self.combined(range(len(self.a)))]
        b, problem = Fraction(0), self.problem
        beta = [v / self.unit**2 for v in beta]
        if problem.rho:
            b = w.pop() * Fraction(problem.rho)
        elif problem.free:
            b = (beta[0] - beta[1]) / 2 if problem.hard else beta[0]
        # a score r_i.w of a support vector is -beta_i / unit^2 by its condition
        margin = -sum(beta) / len(beta) if problem.hard else Fraction(1)
        return ExactPoint(
            np.array([float(v / margin) for v in w]), float(b / margin), np.array([float(v) for v in self.a])
        )


def _integers(line: list[int | Fraction]) -> list[int]:
    """Return the least multiple of a line by a positive integer that is whole."""
    below = math.lcm(*(v.denominator for v in line))
    return [int(v * below) for v in line]
