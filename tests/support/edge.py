"""Problems at the edge of separability, decided by construction or by a simplex method in rational numbers.

This module uses no code of the library: a construction has its own separator or weights, which are checked in
rational numbers, and the simplex method is that of textbooks, with Bland's rule on a full table.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations_with_replacement
from math import prod

import numpy as np


@dataclass(frozen=True)
class Edge:
    """A problem, and whether it is separable."""

    kind: str
    X: np.ndarray
    y: np.ndarray
    bias: bool
    separable: bool


def separates(X: np.ndarray, y: np.ndarray, w: list[Fraction], b: Fraction) -> bool:
    """Tell whether y (w.x + b) > 0 for all rows, exactly."""
    return all(
        int(label) * (sum(Fraction(v) * c for v, c in zip(row, w, strict=True)) + b) > 0
        for row, label in zip(X.tolist(), y, strict=True)
    )


def cancels(X: np.ndarray, y: np.ndarray, alpha: dict[int, Fraction], bias: bool) -> bool:
    """Tell whether sum alpha y x, and with a bias sum alpha y, are exactly zero."""
    if not alpha or min(alpha.values()) <= 0:
        return False
    signed = {i: int(y[i]) * value for i, value in alpha.items()}
    columns = X.T.tolist() + ([[1.0] * len(y)] if bias else [])
    return all(sum(Fraction(column[i]) * value for i, value in signed.items()) == 0 for column in columns)


def simplex(X: np.ndarray, y: np.ndarray, bias: bool) -> bool:
    """Decide separability by phase one of the rational simplex method for sum alpha a = 0, sum alpha = 1."""
    rows = [
        [Fraction(v) * int(label) for v in [*row, *([1.0] * bias)]]
        for row, label in zip(X.tolist(), y, strict=True)
    ]
    m, n = len(rows[0]) + 1, len(rows)
    table = [[row[j] for row in rows] + [Fraction(0)] for j in range(m - 1)] + [[Fraction(1)] * (n + 1)]
    basis: list[int] = [-1] * m  # artificial variables, which do not re-enter
    cost = [-sum(line[j] for line in table) for j in range(n + 1)]
    while True:
        enter = next((j for j in range(n) if cost[j] < 0), None)
        if enter is None:
            return cost[n] != 0  # the artificial variables cannot vanish: no combination is zero
        ratios = [(table[i][n] / table[i][enter], basis[i], i) for i in range(m) if table[i][enter] > 0]
        _, _, leave = min(ratios)
        pivot = table[leave][enter]
        table[leave] = [v / pivot for v in table[leave]]
        for line in [*(table[i] for i in range(m) if i != leave), cost]:
            factor = line[enter]
            if factor:
                line[:] = [v - factor * u for v, u in zip(line, table[leave], strict=True)]
        basis[leave] = enter


def monomials(X, degree, lower):
    """All monomials, exact for integers."""
    X = np.hstack([X, np.ones((len(X), 1))]) if lower else X
    exponents = list(combinations_with_replacement(range(X.shape[1]), degree))
    return np.array([[prod(row[j] for j in chosen) for chosen in exponents] for row in X.tolist()])


def narrow(rng: np.random.Generator, bias: bool) -> Edge:
    """Rows on both sides of a hyperplane at 1e-9 to 1e-6 of their size, as many as there are coordinates at least."""
    d = int(rng.integers(2, 21))
    n = int(rng.integers(2 * d + 4, 4 * d + 20))
    size = 2.0 ** int(rng.integers(-20, 21))
    margin = 10.0 ** rng.uniform(-9.0, -6.0)
    w = np.round(rng.standard_normal(d) * 64) / 64
    w[0] = 1.0
    b = float(np.round(rng.standard_normal() * 64) / 64) if bias else 0.0
    y = np.where(np.arange(n) % 2 == 0, 1.0, -1.0)
    X = rng.standard_normal((n, d))
    away = np.where(rng.random(n) < 0.7, margin, rng.uniform(margin, 1.0, n))
    X[:, 0] += y * away * np.linalg.norm(w) - (X @ w + b)
    X = X * size
    w, b = [Fraction(v) for v in w.tolist()], Fraction(b) * Fraction(size)
    keep = [i for i in range(n) if separates(X[i : i + 1], y[i : i + 1], w, b)]
    X, y = X[keep], y[keep]
    assert separates(X, y, w, b)
    return Edge("narrow", X, y, bias, True)


def touching(rng: np.random.Generator, bias: bool) -> Edge:
    """Hulls with exactly one common point: the mean of some rows of one class has the other label."""
    d = int(rng.integers(2, 21))
    n = int(rng.integers(d + 4, 3 * d + 20))
    X = np.round(rng.standard_normal((n, d)) * 2.0**30) / 2.0**30
    w = rng.standard_normal(d)
    y = np.where(X @ w > 0.0, 1.0, -1.0)
    X[:, 0] = np.round((X[:, 0] + y * 0.01) * 2.0**30) / 2.0**30
    some = np.flatnonzero(y == y[0])[: int(2 ** rng.integers(1, 3))]
    some = some[: 1 << (some.size.bit_length() - 1)]
    x = X[some].mean(axis=0)  # a power of two of rows of 30 binary digits: no rounding
    X, y = np.vstack([X, x]), np.append(y, -y[0])
    alpha = {int(i): Fraction(1, some.size) for i in some} | {n: Fraction(1)}
    assert cancels(X, y, alpha, bias)
    order = rng.permutation(n + 1)
    return Edge("touching", X[order], y[order], bias, False)


def zeros(rng: np.random.Generator, bias: bool) -> Edge:
    """A row of zeros among separable rows: a proof without a bias, an ordinary row with one."""
    d, n = int(rng.integers(1, 21)), int(rng.integers(4, 60))
    X = rng.integers(-9, 10, (n, d)).astype(float)
    w = rng.integers(-5, 6, d).astype(float)
    w[0] = 7.0
    score = X @ w
    X, score = X[score != 0.0], score[score != 0.0]
    y = np.sign(score)
    X, y = np.vstack([X, np.zeros(d)]), np.append(y, 1.0)
    if np.unique(y).size < 2:
        X, y = np.vstack([X, [[-1.0] + [0.0] * (d - 1)]]), np.append(y, -1.0)
    if bias:
        # y (2 w.x + 1) > 0: for whole scores of 1 and more, and for zero
        assert separates(X, y, [2 * Fraction(v) for v in w.tolist()], Fraction(1))
    else:
        assert cancels(X, y, {int(np.flatnonzero(~X.any(axis=1))[0]): Fraction(1)}, bias)
    return Edge("zeros", X, y, bias, bias)


def ties(rng: np.random.Generator, bias: bool) -> Edge:
    """Small integers with many rows on the hyperplane, which have random labels."""
    d, n = int(rng.integers(1, 6)), int(rng.integers(4, 24))
    X = rng.integers(-3, 4, (n, d)).astype(float)
    score = X @ rng.integers(-2, 3, d) + (int(rng.integers(-1, 2)) if bias else 0)
    random_labels = rng.choice([-1.0, 1.0], n) if rng.random() < 0.5 else np.ones(n)
    y = np.where(score == 0, random_labels, np.sign(score))
    y[0], y[1] = 1.0, -1.0
    return Edge("ties", X, y, bias, simplex(X, y, bias))


KINDS: tuple[Callable[[np.random.Generator, bool], Edge], ...] = (
    narrow, touching, zeros, ties,
)  # fmt: skip


def edges(count: int, seed: int) -> list[Edge]:
    """Return `count` problems of alternating kinds, half of them without a bias."""
    rng = np.random.default_rng(seed)
    return [KINDS[k % len(KINDS)](rng, bool(k // len(KINDS) % 2)) for k in range(count)]
