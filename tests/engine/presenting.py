"""Direct calls of the engine: presentation of rows in given orders."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp
from naive import p_norm

from maxmargin import Problem
from maxmargin.algorithms import ALGORITHMS, Bias, Facts, Plan
from maxmargin.data.rows import PackedRows, Patterns
from maxmargin.engine.state import BIAS, SCALE, Weight
from maxmargin.engine.sweep import begin, repeat, score_rows

# schedules of algorithms that do not present rows one by one, or of several rules
OTHERS = ("mini-batches", "points", "increments")
ONE_BY_ONE = [name for name, cls in ALGORITHMS.items() if cls.schedules[0] not in OTHERS]
WHOLE = ("perceptron", "mpu", "dcd")  # arithmetic without rounding on suitable numbers


def plan(name: str, problem: Problem, X, weights=None, rho: float = 0.0, **options) -> Plan:
    """Return the plan of a rule for these data, as the library makes it."""
    square = np.asarray(sp.csr_matrix(X).multiply(X).sum(axis=1)).ravel()
    weights = np.ones(square.size) if weights is None else weights
    return ALGORITHMS[name](**options).plan(
        Facts(problem, float((square + problem.delta2(weights)).max()) + rho**2, 0.1)
    )


def facts(problem: Problem, X, weights=None) -> Facts:
    """Return the statistics of dense rows that a plan is given, computed from their definitions."""
    X, n = np.asarray(X), len(X)
    lengths = np.array([p_norm(row, problem.p) for row in np.column_stack([X, np.full(n, problem.rho)])])
    delta2 = problem.delta2(np.ones(n) if weights is None else weights)
    length2 = float((X * X).sum(axis=1).max())
    return Facts(problem, float((lengths**2 + delta2).max()), 0.1, n=n, length2=length2, d=X.shape[1])


def start(
    X, y, problem: Problem, unit: float = 1.0, rho: float = 0.0, weights=None, name: str | None = None
) -> Weight:
    """Return the engine state at w = 0 for the named algorithm, or for one that only adds patterns."""
    weights = np.ones(len(y)) if weights is None else weights
    algorithm = None if name is None else ALGORITHMS[name]
    if algorithm is None or (problem.free and algorithm.bias is Bias.SHIFT):
        return Patterns(X).engine_state(problem, y, weights, unit, rho)
    return Patterns(X).engine_state(
        problem, y, weights, unit, rho, algorithm.scale, has_pair=algorithm.bias is Bias.OWN
    )


def opened(rule, h: Weight, order) -> Weight:
    """Return the state, initialised with the first patterns if the rule requires it."""
    if hasattr(rule, "start"):
        begin(rule, h, np.asarray(order, np.uint32))
    return h


def present(rule, h: Weight, orders) -> tuple[list[int], np.ndarray]:
    """Present rows in each order in turn; return the rows that made a step, in order, and all scores."""
    moved, seen = [], []
    for order in orders:
        order = np.asarray(order, np.uint32)
        scores, steps = np.empty(order.size), np.empty(order.size, np.uint32)
        made, _, _ = repeat(rule, h, order, scores, steps, 1)
        moved += [int(k) for k in steps[:made]]
        seen.append(scores)
    return moved, np.concatenate(seen)


def scored(h: Weight, size: int | None = None) -> np.ndarray:
    """Return the scores of all rows, or of the first `size` rows (packed sets may be larger)."""
    line = np.arange(h.y.size if size is None else size, dtype=np.uint32)
    out = np.empty(line.size)
    score_rows(h, line, out)
    return out


def weight(h: Weight) -> np.ndarray:
    """Return w with its lazy factor applied; the state is not changed."""
    return h.number[SCALE] * h.space.vector.w


def dual(h: Weight) -> np.ndarray:
    """Return the dual weights with the lazy factor applied."""
    return h.number[SCALE] * h.alpha


def bias(h: Weight) -> float:
    """Return the bias of the rule."""
    return float(h.number[BIAS])


def packed(h: Weight, rows) -> Weight:
    """Return the state on packed copies of these rows and of the rows that the rule refers to."""
    return PackedRows().gather(h, np.asarray(rows, np.uint32))[0]


def reflected(X, y, rho: float = 0.0, delta2=None) -> np.ndarray:
    """Return y_k (x_k, rho) as explicit columns, with own coordinates if `delta2` is given."""
    X = X.toarray() if sp.issparse(X) else np.asarray(X, float)
    Y = np.asarray(y)[:, None] * np.column_stack([X, np.full(len(y), rho)] if rho else [X])
    return Y if delta2 is None else np.column_stack([Y, np.diag(np.sqrt(delta2))])
