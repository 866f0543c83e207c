"""Failures of the Newton iteration that the PUMMA paper prints for p > 2 (section 4.2)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np

from maxmargin.numerics.norms import norm
from maxmargin.problem.problem import dual_exponent

from . import record
from .data import r_of_k
from .record import Cell

TITLE = "PUMMA, sub-problem for p > 2: the printed Newton iteration"
COUNT, CAP, CLOSE = 400, 100, 1e-9
TEXT = """\
For p > 2, an update of PUMMA requires w = f⁻¹(α z + β θ) with w·z = 2 and w·θ = ‖v‖², where f is the link, z the
difference of the two rows, v the old weight vector and θ = f(v). The paper solves for (α, β) by Newton's method
from (0, 1). The printed matrix, with sums over one index, uses only the diagonal of the Jacobian of the link (J_ij
= (p - 1) u_i^(p-2) δ_ij - (p - 2) g_i g_j). The table has about 400 sub-problems of each kind, from runs of the
algorithm: the share of failures and the median number of steps with the printed matrix and with the whole Jacobian.
An iteration fails if it does not satisfy both equations to 1e-9 within 100 steps. The last column is the method of
maxmargin, Newton steps within a bracket on the segment: it solves every sub-problem, and the column is its largest
number of steps. Random signs are the data of Figure 3.
"""


def link(x: np.ndarray, r: float) -> np.ndarray:
    """Return the gradient of 1/2 |x|_r^2 for 1 < r < inf: sign(x_j) |x_j|^(r-1) / |x|_r^(r-2); 0 at 0."""
    size = norm(x, r)
    return size * np.sign(x) * (np.abs(x) / (size or 1.0)) ** (r - 1.0)


def link_jacobian(x: np.ndarray, r: float) -> tuple[np.ndarray, np.ndarray, float]:
    """Return the Jacobian of the link, for r >= 2, as (diagonal, g, c): diag(diagonal) - c g g'."""
    u = np.abs(x) / norm(x, r)
    return (r - 1.0) * u ** (r - 2.0), np.sign(x) * u ** (r - 1.0), r - 2.0


class Subproblem(NamedTuple):
    """Sub-problem: z = x_pos - x_neg, the link theta of the old weight vector, and its squared norm."""

    z: np.ndarray
    theta: np.ndarray
    square: float


def harvest(X: np.ndarray, y: np.ndarray, p: float, rng: np.random.Generator) -> list[Subproblem]:
    """Return the sub-problems of case (ii) that runs over these rows, in random orders, produce."""
    found: list[Subproblem] = []
    while len(found) < COUNT:
        order = rng.permutation(len(y))
        pos, neg = (int(order[y[order] == sign][0]) for sign in (1.0, -1.0))
        m = 0.5 * (X[pos] - X[neg])
        made = 0
        for k in order:
            g = link(m, p)
            bias = -0.5 * float(g @ (X[pos] + X[neg]))
            size2 = norm(m, p) ** 2
            if y[k] * (g @ X[k] + bias) >= 0.9 * size2:
                continue
            pos, neg = (int(k), neg) if y[k] > 0 else (pos, int(k))
            z = X[pos] - X[neg]
            s, _ = segment(m, 0.5 * z, p)
            if s < 1.0:
                found.append(Subproblem(z, m / size2, 1.0 / size2))
            m = (1.0 - s) * m + s * 0.5 * z
            made += 1
            if made == 40 or len(found) == COUNT:
                break
    return found


def segment(m: np.ndarray, end: np.ndarray, p: float) -> tuple[float, int]:
    """Return the s in [0, 1] that minimises |(1 - s) m + s end|_p, and the number of steps."""
    D, low, high, s, last = end - m, 0.0, 1.0, 1.0, 2.0
    flat = 1e-12 * norm(D, p)  # slopes up to this are zero; the length of D bounds a slope
    for step in range(1, CAP + 1):
        r = m + s * D
        diagonal, g, c = link_jacobian(r, p)
        slope, curvature = float(g @ D), float(diagonal @ (D * D)) - c * float(g @ D) ** 2
        if abs(slope) <= flat or (slope <= 0.0 and s == 1.0):
            return s, step
        low, high = (s, high) if slope < 0.0 else (low, s)
        new = s - slope * norm(r, p) / curvature if curvature > 0.0 else -1.0
        # Newton steps may alternate between two points: a step is at most half of the one before, or a bisection
        if not (low < new < high and abs(new - s) <= 0.5 * last):
            new = 0.5 * (low + high)
        s, last = new, abs(new - s)
    return s, CAP


def printed(r: np.ndarray, p: float) -> np.ndarray:
    """Return the printed matrix: the diagonal of the Jacobian."""
    diagonal, g, c = link_jacobian(r, p)
    return np.diag(diagonal - c * g * g)


def true(r: np.ndarray, p: float) -> np.ndarray:
    """Return the Jacobian."""
    diagonal, g, c = link_jacobian(r, p)
    return np.diag(diagonal) - c * np.outer(g, g)


def newton(problem: Subproblem, p: float, matrix: Callable[[np.ndarray, float], np.ndarray]) -> int | None:
    """Return the steps from (0, 1) until both equations hold; None if they never do."""
    base = np.stack([problem.z, problem.theta])
    wanted = np.array([2.0, problem.square])
    x = np.array([0.0, 1.0])
    with np.errstate(all="ignore"):
        for step in range(CAP):
            r = x @ base
            miss = base @ link(r, p) - wanted
            if not np.isfinite(miss).all():
                return None
            if (np.abs(miss) <= CLOSE * wanted).all():
                return step
            if not r.any():
                return None
            H = base @ matrix(r, p) @ base.T
            try:
                x = x - np.linalg.solve(H, miss)
            except np.linalg.LinAlgError:
                return None
    return None


def sets() -> Iterator[tuple[str, np.ndarray, np.ndarray]]:
    """Yield random signs, dense normal rows, and sparse rows."""
    yield "random signs, 1000 x 100", *r_of_k(8, 0)
    rng = np.random.default_rng(0)
    target = rng.normal(size=30)
    X = rng.normal(size=(300, 30))
    yield "normal, 300 x 30", X, np.sign(X @ target)
    X = np.where(rng.random((300, 100)) < 0.05, rng.random((300, 100)), 0.0)
    X[:, 0] += 0.1  # no row is zero
    yield "sparse, 300 x 100", X, np.sign(X @ rng.normal(size=100) + 1e-9)


def cells(folder: Path, everything: bool = False) -> Iterator[Cell]:
    """Yield all cells; the data are generated here."""
    for name, X, y in sets():
        for p in (2.5, 4.0, 2.0 * float(np.log(X.shape[1])), 30.0):
            assert dual_exponent(p) < 2.0
            problems = harvest(X, y, p, np.random.default_rng(1))
            for label, matrix in (("printed", printed), ("whole Jacobian", true)):
                steps = [newton(problem, p, matrix) for problem in problems]
                done = [step for step in steps if step is not None]
                failed = 1.0 - len(done) / len(steps)
                median = f"{np.median(done):.0f}" if done else "none met"
                yield Cell(name, f"p = {p:.3g}", f"{label}: fails", "", f"{failed:.0%}")
                yield Cell(name, f"p = {p:.3g}", f"{label}: steps, median", "", median)
            most = 0
            for problem in problems:
                m = problem.theta / problem.square  # m = theta / |v|^2
                _, steps = segment(m, 0.5 * problem.z, p)
                most = max(most, steps)
            yield Cell(name, f"p = {p:.3g}", "bracketed: steps, largest", "", f"{most}")


def table(found: list[Cell]) -> str:
    """Return the cells as Markdown."""
    return record.table(found, ("data", "norm"))
