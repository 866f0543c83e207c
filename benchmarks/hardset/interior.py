"""Primal-dual interior points in several hundred bits: the reference solver of hard problems.

All problems have the form

    min F(z) + sum_soft loss(xi_i)   subject to   A z + a b + xi >= h,   xi = 0 on hard rows.

For p = 2, 1.5 and 3, z is w, A has rows y_i x_i and a = y. For p = 1 and inf, F is a function of one linear form of z
(the bound t of |w_j|, or the sum of the positive and negative parts of w), with further hard rows. With the multipliers
alpha of the rows and beta = C - alpha of xi >= 0, each iteration is a Newton step on

    grad F(z) = A'alpha,   a.alpha = 0,   alpha_i s_i = mu,   beta_i xi_i = mu,   s = A z + a b + xi - h,

with Mehrotra's predictor and corrector. At p = 3 the first equation is inverted, z = grad F*(A'alpha), because F has
unbounded second derivatives. With a kernel, z is an expansion in rows, and the unknowns are alpha and b.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from flint import arb, arb_mat

from .exact import Judge, conjugate
from .problems import HardProblem

Vector = list[arb]
TO_BOUNDARY = 0.99  # part of the way to the nearest bound that a step goes: 0.9 to 0.999 make no difference
# Centring: the cube of the ratio by which the predictor lowers mu (Mehrotra 1992). Where rows are duplicated or data
# badly scaled, values near 0 send iterates to the boundary too early.
LEAST_CENTRING = 1e-3


def column(v: Sequence[arb]) -> arb_mat:
    """Return a matrix of one column."""
    return arb_mat([[x] for x in v])


def dot(u: Sequence[arb], v: Sequence[arb]) -> arb:
    """Return the inner product."""
    return sum((x * y for x, y in zip(u, v, strict=True)), arb(0))


def middle(v: Sequence[arb]) -> Vector:
    """Return the midpoints: radii would grow from iteration to iteration."""
    return [x.mid() for x in v]


class Penalty:
    """F with its derivatives; `inverse` says that they are those of its conjugate.

    Parameters
    ----------
    problem : HardProblem
    form : list of arb
        The linear form c of F(z) = (c.z)^2 / 2 or c.z, for p = 1 and inf.
    """

    def __init__(self, problem: HardProblem, form: Vector) -> None:
        self.form = form
        self.q = conjugate(problem.p)
        self.power = problem.power
        self.inverse = problem.p == 3
        self.exponent = 3 if self.q in (1.5, 3) else 2

    def derivatives(self, z: Vector) -> tuple[Vector, arb_mat]:
        """Return gradient and second derivatives."""
        d = len(z)
        if self.form:
            slope = dot(self.form, z) if self.power == 2 else arb(1)
            outer = column(self.form) * arb_mat([self.form]) if self.power == 2 else arb_mat(d, d)
            return [slope * c for c in self.form], outer
        if self.exponent == 2:
            return z, arb_mat([[arb(int(i == j)) for j in range(d)] for i in range(d)])
        return _cubic(z)


def _cubic(z: Vector) -> tuple[Vector, arb_mat]:
    """Return the derivatives of |z|_3^2 / 2: g_i = z_i |z_i| / |z|, and 2 diag(|z_i|) / |z| - g g' / |z|^2."""
    size = sum((abs(x) ** 3 for x in z), arb(0)).root(3)
    slope = [x * abs(x) / size for x in z]
    table = column(slope) * arb_mat([slope]) * (-1 / size**2)
    for i, x in enumerate(z):
        table[i, i] += 2 * abs(x) / size
    return slope, table


@dataclass
class Program:
    """The problem in standard form.

    Attributes
    ----------
    problem : HardProblem
    A : arb_mat of shape (m, k)
        With a kernel, the matrix of y_i y_j k(x_i, x_j).
    a : list of arb
    h : list of arb
    soft : int
        The number of rows with a loss, which are the first ones.
    penalty : Penalty
    """

    problem: HardProblem
    A: arb_mat
    a: Vector
    h: Vector
    soft: int
    penalty: Penalty


def program(judge: Judge) -> Program:
    """Return the standard form of a problem."""
    problem, signs, rows = judge.problem, judge.signs, judge.rows
    n, d = rows.nrows(), rows.ncols()
    soft = 0 if problem.hard else n
    a, h = [arb(sign) for sign in signs], [arb(1)] * n
    if problem.kernel:
        table = [[signs[i] * signs[j] * rows[i, j].mid() for j in range(n)] for i in range(n)]
        return Program(problem, arb_mat(table), a, h, soft, Penalty(problem, []))
    table = [[sign * rows[i, j] for j in range(d)] for i, sign in enumerate(signs)]
    form: Vector = []
    if problem.p == np.inf:
        table = [[*row, *(-x for x in row)] for row in table]
        form = [arb(1)] * (2 * d)
        bounds = [[int(i == j) for j in range(2 * d)] for i in range(2 * d)]
    elif problem.p == 1:
        table = [[*row, arb(0)] for row in table]
        form = [arb(0)] * d + [arb(1)]
        bounds = [[*(sign * (i == j) for j in range(d)), 1] for i in range(d) for sign in (1, -1)]
    if form:
        table += [[arb(x) for x in row] for row in bounds]
        a, h = a + [arb(0)] * (2 * d), h + [arb(0)] * (2 * d)
    return Program(problem, arb_mat(table), a, h, soft, Penalty(problem, form))


@dataclass
class Iterate:
    """Primal and dual variables; xi and beta only of soft rows with the hinge."""

    z: Vector
    b: arb
    s: Vector
    alpha: Vector
    xi: Vector
    beta: Vector

    def complementarity(self) -> arb:
        """Return the mean of the products that tend to 0."""
        return (dot(self.alpha, self.s) + dot(self.beta, self.xi)) / (len(self.s) + len(self.xi))

    def moved(self, step: Iterate, length: arb) -> Iterate:
        """Return the iterate after a part of a step."""

        def add(u: Vector, v: Vector) -> Vector:
            return [(x + length * y).mid() for x, y in zip(u, v, strict=True)]

        return Iterate(
            add(self.z, step.z), (self.b + length * step.b).mid(), add(self.s, step.s),
            add(self.alpha, step.alpha), add(self.xi, step.xi), add(self.beta, step.beta),
        )  # fmt: skip

    def longest(self, step: Iterate) -> arb:
        """Return the length of the step, at most 1, at which a variable reaches 0."""
        best = arb(1)
        for values, changes in (
            (self.s, step.s), (self.alpha, step.alpha), (self.xi, step.xi), (self.beta, step.beta),
        ):  # fmt: skip
            for x, change in zip(values, changes, strict=True):
                if change < 0 and -x / change < best:
                    best = (-x / change).mid()
        return best


def start(form: Program) -> Iterate:
    """Return an infeasible point with positive slacks and multipliers."""
    m, n = form.A.nrows(), form.soft
    problem = form.problem
    hinge = problem.loss == "hinge"
    alpha = [arb(problem.C) / 2 if i < n else arb(1) for i in range(m)]
    width = form.A.ncols()
    z = [arb(0)] * (0 if problem.kernel else width)
    if form.penalty.exponent == 3:
        z = middle((form.A.transpose() * column(alpha)).entries())
        size = max((abs(x) for x in z), key=float)
        z = [(x / size + arb(1) / 1024).mid() for x in z]
    soft = n if hinge else 0
    return Iterate(z, arb(0), [arb(1)] * m, alpha, [arb(1)] * soft, [arb(problem.C) / 2] * soft)


class Newton:
    """The Newton equations at an iterate."""

    def __init__(self, form: Program, at: Iterate) -> None:
        self.form, self.at = form, at
        problem = form.problem
        self.hinge, self.squared = problem.loss == "hinge", problem.loss == "squared_hinge"
        C = arb(problem.C) if not problem.hard else arb(1)
        self.lack = [C - x - y for x, y in zip(at.alpha, at.beta, strict=False)]
        curve = [arb(0)] * len(at.s)
        if self.hinge:
            curve[: form.soft] = [x / y for x, y in zip(at.xi, at.beta, strict=True)]
        elif self.squared:
            curve[: form.soft] = [1 / (2 * C)] * form.soft
        self.D = [1 / (s / x + r) for s, x, r in zip(at.s, at.alpha, curve, strict=True)]
        self.xi = (
            at.xi if self.hinge else [x / (2 * C) if self.squared else arb(0) for x in at.alpha[: form.soft]]
        )
        self.scores = (form.A * column(at.alpha if problem.kernel else at.z)).entries()
        self.gap = [
            x + a * at.b + (self.xi[i] if i < form.soft else 0) - h - s
            for i, (x, a, h, s) in enumerate(zip(self.scores, form.a, form.h, at.s, strict=True))
        ]
        self.curve = curve
        self._assemble()

    def _assemble(self) -> None:
        form, at = self.form, self.at
        a, free = form.a, form.problem.intercept
        if form.problem.kernel:
            table = form.A.tolist()
            for i, d in enumerate(self.D):
                table[i][i] = table[i][i] + 1 / d
            rows = [[*row, a[i]] if free else row for i, row in enumerate(table)]
            self.matrix = arb_mat([*rows, [*a, arb(0)]] if free else rows)
            return
        self.weighted = arb_mat(
            [[d * x for x in row] for d, row in zip(self.D, form.A.tolist(), strict=True)]
        )
        M = form.A.transpose() * self.weighted
        m = self.weighted.transpose() * column(a)
        source = at.z
        if form.penalty.inverse:
            source = middle((form.A.transpose() * column(at.alpha)).entries())
        self.slope, self.H = form.penalty.derivatives(source)
        if form.penalty.inverse:
            eye = arb_mat([[int(i == j) for j in range(len(at.z))] for i in range(len(at.z))])
            top, side = eye + self.H * M, self.H * m
        else:
            top, side = self.H + M, m
        corner = sum((d * x * x for d, x in zip(self.D, a, strict=True)), arb(0))
        rows = [[*row, side[i, 0]] if free else row for i, row in enumerate(top.tolist())]
        self.matrix = arb_mat([*rows, [*m.entries(), corner]] if free else rows)

    def step(self, mu: arb, before: Iterate | None = None) -> Iterate:
        """Return the step to the products mu; with a step `before`, corrected by its products."""
        form, at = self.form, self.at
        e, g = self._targets(mu, before)
        balance = -dot(form.a, at.alpha)
        z, b, alpha, moves = self._expansion(g, balance) if form.problem.kernel else self._weights(g, balance)
        xi = [x + r * y for x, r, y in zip(e, self.curve, alpha, strict=False)]
        beta = [lack - x for lack, x in zip(self.lack, alpha, strict=False)] if self.hinge else []
        losses = xi if self.hinge else [r * x for r, x in zip(self.curve[: form.soft], alpha, strict=False)]
        s = [
            move + a * b + (losses[i] if i < form.soft else 0) + r
            for i, (move, a, r) in enumerate(zip(moves, form.a, self.gap, strict=True))
        ]
        return Iterate(middle(z), b.mid(), middle(s), middle(alpha), middle(xi), middle(beta))

    def _targets(self, mu: arb, before: Iterate | None) -> tuple[Vector, Vector]:
        """Return e and g of delta xi = e + curve delta alpha, delta alpha = D (g - A delta z - a delta b)."""
        at = self.at
        rows, bounds = [mu] * len(at.s), [mu] * len(at.xi)
        if before is not None:
            rows = [mu - x * y for x, y in zip(before.alpha, before.s, strict=True)]
            bounds = [mu - x * y for x, y in zip(before.beta, before.xi, strict=True)]
        e = [
            (t - xi * beta - xi * lack) / beta
            for t, xi, beta, lack in zip(bounds, at.xi, at.beta, self.lack, strict=False)
        ]
        g = [t / x - s - r for t, x, s, r in zip(rows, at.alpha, at.s, self.gap, strict=True)]
        return e, [x - e[i] if i < len(e) else x for i, x in enumerate(g)]

    def _expansion(self, g: Vector, balance: arb) -> tuple[Vector, arb, Vector, Vector]:
        """Return the steps of z (empty), b, alpha and A z with a kernel."""
        free = self.form.problem.intercept
        found = self._solve([*g, balance] if free else g)
        alpha = found[: len(g)]
        return [], found[-1] if free else arb(0), alpha, (self.form.A * column(alpha)).entries()

    def _weights(self, g: Vector, balance: arb) -> tuple[Vector, arb, Vector, Vector]:
        """Return the steps of z, b, alpha and A z."""
        form, at = self.form, self.at
        right = (self.weighted.transpose() * column(g)).entries()
        if form.penalty.inverse:
            right = (self.H * column(right)).entries()
            right = [x + y - z for x, y, z in zip(right, self.slope, at.z, strict=True)]
        else:
            pull = (form.A.transpose() * column(at.alpha)).entries()
            right = [x + y - t for x, y, t in zip(right, pull, self.slope, strict=True)]
        level = sum((d * x * y for d, x, y in zip(self.D, form.a, g, strict=True)), arb(0)) - balance
        free = form.problem.intercept
        found = self._solve([*right, level] if free else right)
        z, b = found[: len(right)], found[-1] if free else arb(0)
        moves = (form.A * column(z)).entries()
        alpha = [d * (x - move - a * b) for d, x, move, a in zip(self.D, g, moves, form.a, strict=True)]
        return z, b, alpha, moves

    def _solve(self, right: Vector) -> Vector:
        return self.matrix.solve(column(right), algorithm="approx").entries()


def iterates(judge: Judge, most: int = 400) -> Iterator[tuple[Iterate, Program]]:
    """Yield the iterates of a problem."""
    form = program(judge)
    at = start(form)
    for _ in range(most):
        newton = Newton(form, at)
        before = newton.step(arb(0))
        mu = at.complementarity()
        after = at.moved(before, at.longest(before)).complementarity()
        centring = max(float((after / mu).mid()) ** 3, LEAST_CENTRING)
        step = newton.step((mu * arb(min(centring, 1.0))).mid(), before)
        at = at.moved(step, (at.longest(step) * arb(TO_BOUNDARY)).mid())
        yield at, form


def point(judge: Judge, at: Iterate, form: Program) -> tuple[arb_mat, arb]:
    """Return w, or the coefficients of the expansion in rows, and b."""
    d = judge.rows.ncols()
    if judge.problem.kernel:
        return column([a * x for a, x in zip(form.a, at.alpha, strict=True)]), at.b
    if judge.problem.p == np.inf:
        return column([(at.z[j] - at.z[d + j]).mid() for j in range(d)]), at.b
    return column(at.z[:d]), at.b
