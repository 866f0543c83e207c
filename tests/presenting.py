"""The engine, set in motion by hand: rows in an imposed order."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp

from maxmargin import Problem
from maxmargin.compiled.sweeps import look, repeat
from maxmargin.compiled.weights import Weight
from maxmargin.data import Patterns, Room
from maxmargin.rules import RULES, Facts, Plan


def plan(name: str, problem: Problem, X, weights=None, rho: float = 0.0, **options) -> Plan:
    """A rule's plan for these data, as the library makes it."""
    square = np.asarray(sp.csr_matrix(X).multiply(X).sum(axis=1)).ravel()
    weights = np.ones(square.size) if weights is None else weights
    return RULES[name](**options).plan(Facts(problem, float((square + problem.delta2(weights)).max()) + rho**2, 0.1))


def start(X, y, problem: Problem, unit: float = 1.0, rho: float = 0.0, weights=None) -> Weight:
    """The engine's state at w = 0."""
    weights = np.ones(len(y)) if weights is None else weights
    return Patterns(X).weight(problem, y, weights, unit, rho)


def present(rule, h: Weight, orders) -> tuple[list[int], np.ndarray]:
    """Present rows in each order in turn: (rows that made a step, in the order of the steps; all scores)."""
    moved, seen = [], []
    for order in orders:
        order = np.asarray(order, np.uint32)
        scores, steps = np.empty(order.size), np.empty(order.size, np.uint32)
        made, _, _ = repeat(rule, h, order, scores, steps, 1)
        moved += [int(k) for k in steps[:made]]
        seen.append(scores)
    return moved, np.concatenate(seen)


def scored(h: Weight, size: int | None = None) -> np.ndarray:
    """The score of every row; of the first `size` rows (a packed set has room to spare)."""
    line = np.arange(h.y.size if size is None else size, dtype=np.uint32)
    out = np.empty(line.size)
    look(h, line, out)
    return out


def packed(h: Weight, rows) -> Weight:
    """The same state on packed copies of these rows."""
    return Room().pack(h, np.asarray(rows, np.uint32))


def reflected(X, y, rho: float = 0.0, delta2=None) -> np.ndarray:
    """y_k (x_k, rho), with the pattern's own coordinate where there is one, as explicit columns."""
    X = X.toarray() if sp.issparse(X) else np.asarray(X, float)
    Y = np.asarray(y)[:, None] * np.column_stack([X, np.full(len(y), rho)] if rho else [X])
    return Y if delta2 is None else np.column_stack([Y, np.diag(np.sqrt(delta2))])
