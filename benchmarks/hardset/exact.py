"""Objectives and bounds of hard problems in ball arithmetic of several hundred bits, with code that no solver uses.

A value is an interval that contains the true one (`flint.arb`), so that its ends are rigorous.

Soft margins, with K the exponent dual to p, v = sum_i a_i y_i x_i and f(w, b) the objective: for 0 <= a_i <= C
(hinge) or a_i >= 0 (squared hinge) and sum_i a_i y_i = 0 (if there is an intercept),

    min f >= sum_i a_i - |v|_p^2 / 2 [- sum_i a_i^2 / (4 C) for the squared hinge],

and with the penalty |w| the same without |v|_p^2 / 2 if |v|_p <= 1. Hard margins: every (w, b) has a margin
min_i y_i (w.x_i + b) / |w| of at most |v|_p / sum_i a_i.
"""

from __future__ import annotations

from collections.abc import Sequence
from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal

import numpy as np
from flint import arb, arb_mat, ctx

from .problems import HardProblem, KernelFunction

# Sums of squares of entries up to 1e16 beside differences of 1e-9, to 1e-30 relative: 1e32 * 1e18 * 1e30 = 2^266. The
# rest serves iterations with matrices of condition up to 1e70.
BITS = 600
DIGITS = 25  # of the bounds in the file, rounded outward


def exact(values: np.ndarray) -> arb_mat:
    """Return a matrix of float64 numbers; a vector becomes a column."""
    ctx.prec = BITS
    table = np.atleast_2d(np.asarray(values, dtype=float).T).T
    return arb_mat([[arb(float(x)) for x in row] for row in table])


def norm(v: Sequence[arb], p: float) -> arb:
    """Return |v|_p for p in 1, 1.5, 2, 3, inf."""
    sizes = [abs(x) for x in v]
    if p == np.inf:
        return _largest(sizes)
    if p == 1.5:
        return (sum((x * x.sqrt() for x in sizes), arb(0)) ** 2).root(3)
    if p == 1:
        return sum(sizes, arb(0))
    return sum((x ** int(p) for x in sizes), arb(0)).root(int(p))


def _largest(values: Sequence[arb]) -> arb:
    best = values[0]
    for x in values[1:]:
        best = best.max(x)
    return best


def conjugate(p: float) -> float:
    """Return the exponent of the dual norm."""
    return {1: np.inf, 1.5: 3, 2: 2, 3: 1.5, np.inf: 1}[p]


def gram(X: np.ndarray, kernel: KernelFunction) -> arb_mat:
    """Return the matrix of kernel values."""
    rows = exact(X)
    products = rows * rows.transpose()
    n, gamma = len(X), arb(kernel.gamma)

    def value(i: int, j: int) -> arb:
        if kernel.name == "poly":
            return (gamma * products[i, j] + arb(kernel.coef0)) ** kernel.degree
        return (-gamma * (products[i, i] + products[j, j] - 2 * products[i, j])).exp()

    table = [[value(i, j) if j <= i else arb(0) for j in range(n)] for i in range(n)]
    return arb_mat([[table[max(i, j)][min(i, j)] for j in range(n)] for i in range(n)])


class Judge:
    """Exact values of one binary problem.

    Parameters
    ----------
    problem : HardProblem
    X : ndarray of shape (n, d)
    signs : ndarray of shape (n,)
        -1 and 1.

    Attributes
    ----------
    rows : arb_mat of shape (n, d), or (n, n) with a kernel
        The data, or the kernel matrix: scores are `rows` times w, or times the coefficients of an expansion in rows.
    """

    def __init__(self, problem: HardProblem, X: np.ndarray, signs: np.ndarray) -> None:
        ctx.prec = BITS
        self.problem = problem
        self.signs = [int(sign) for sign in signs]
        self.rows = gram(X, problem.kernel) if problem.kernel else exact(X)

    def value(self, w: arb_mat, b: arb) -> arb:
        """Return the objective at a point, or its margin; w has shape (d, 1), or (n, 1) for an expansion in rows."""
        scores = self.rows * w
        margins = [sign * (scores[i, 0] + b) for i, sign in enumerate(self.signs)]
        length = self._length(w, scores)
        if self.problem.hard:
            return -_largest([-margin for margin in margins]) / length
        losses = [(1 - margin).max(arb(0)) for margin in margins]
        if self.problem.loss == "squared_hinge":
            losses = [loss * loss for loss in losses]
        penalty = length if self.problem.power == 1 else length * length / 2
        return penalty + arb(self.problem.C) * sum(losses, arb(0))

    def _length(self, w: arb_mat, scores: arb_mat) -> arb:
        if self.problem.kernel:
            return (w.transpose() * scores)[0, 0].nonnegative_part().sqrt()
        return norm(w.entries(), conjugate(self.problem.p))

    def bound(self, alpha: Sequence[arb]) -> arb:
        """Return the bound that dual variables prove, after they have been made exactly feasible."""
        feasible = self._feasible(alpha)
        total = sum(feasible, arb(0))
        signed = arb_mat([[sign * a] for sign, a in zip(self.signs, feasible, strict=True)])
        if self.problem.kernel:
            size = (signed.transpose() * (self.rows * signed))[0, 0].nonnegative_part().sqrt()
        else:
            size = norm((self.rows.transpose() * signed).entries(), self.problem.p)
        if self.problem.hard:
            return size / total
        factor = arb(1)
        if self.problem.power == 1:
            factor, size = 1 / size.max(arb(1)), arb(0)
        cost = arb(0)
        if self.problem.loss == "squared_hinge":
            cost = factor * factor * sum((a * a for a in feasible), arb(0)) / (4 * arb(self.problem.C))
        return factor * total - size * size / 2 - cost

    def _feasible(self, alpha: Sequence[arb]) -> list[arb]:
        """Return dual variables in their range whose signed sum is exactly 0: multiples of a power of 2.

        The largest variable of the heavier class is reduced by the difference.
        """
        scale = arb(2) ** (BITS // 2 - _exponent(max(float(abs(a.mid())) for a in alpha)))
        whole = [max(0, int((a.mid() * scale).floor().unique_fmpz())) for a in alpha]
        if self.problem.loss == "hinge":
            most = int((arb(self.problem.C) * scale).floor().unique_fmpz())
            whole = [min(a, most) for a in whole]
        surplus = sum(sign * a for sign, a in zip(self.signs, whole, strict=True))
        if self.problem.intercept and surplus:
            heavy = max(
                (i for i, sign in enumerate(self.signs) if sign * surplus > 0), key=lambda i: whole[i]
            )
            whole[heavy] -= abs(surplus)
            if whole[heavy] < 0:
                raise ArithmeticError("The dual variables are too far from balance to be repaired.")
        return [arb(a) / scale for a in whole]


def _exponent(value: float) -> int:
    return int(np.frexp(value)[1])


def decimals(value: arb, upward: bool) -> str:
    """Return the upper or the lower end of a ball as a decimal number, rounded outward."""
    end = (value.upper() if upward else value.lower()).fmpq()
    context = Context(prec=DIGITS, rounding=ROUND_CEILING if upward else ROUND_FLOOR)
    return str(context.divide(Decimal(int(end.p)), Decimal(int(end.q))))
