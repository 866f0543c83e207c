"""Steps of the algorithms on normalised patterns, and of FMP_p, compared with the bounds of their theorems."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from maxmargin.algorithms import (
    FMP,
    IMA,
    IteratedSmoothedPrimalDual,
    NormalisedPerceptron,
    SmoothedPerceptron,
    SmoothedPrimalDual,
    VonNeumann,
)
from maxmargin.algorithms.bounds import (
    fmp_updates,
    iterated_smoothed_primal_dual_steps,
    normalised_perceptron_steps,
    smoothed_perceptron_steps,
    smoothed_primal_dual_steps,
)
from maxmargin.algorithms.normalised.base import NormalisedAlgorithm
from maxmargin.algorithms.normalised.patterns import NormalisedProducts, NormalisedRows
from maxmargin.numerics.sums import norm

from .record import Cell, Row, Section, Tables

TITLE = "Theorems of the normalised Perceptrons, von Neumann's algorithm and IMA_p"
MARGINS = (1e-1, 1e-2, 1e-3)  # |rho|
EPS = 1e-3  # length of a convex combination at which a run on inseparable patterns ends
ROWS, FEATURES, SEED = 60, 8, 0
EXPONENTS = (1.5, 2.0, 3.0, np.inf)
SHARES, ALPHA, MARGIN = (0.0, 0.5, 0.9), 0.1, 0.1  # of FMP_p and IMA_p
TEXT = f"""\
The first table has the smoothed Perceptrons' paper (Ramdas and Peña): the normalised Perceptron (NP; NKP with a
kernel), its smoothed version (SNKP), von Neumann's algorithm (NVN), and the smoothed primal-dual algorithm (SNKPVN)
with its restarts (ISNKPVN, γ = 2). The patterns are {ROWS} vectors of length one in {FEATURES} dimensions. They are
constructed such that ρ is known: with a separator, ρ is the largest normalised margin; without one, the radius of the
largest ball around the origin inside their convex hull. A run ends at the first separator, or, without one, at a
convex combination of length ε = {EPS:g}. NP and NVN have the patterns as rows, the others their matrix of inner
products.

The bounds are, with a separator, 1/ρ² for NP, NKP and NVN, 2 √(2 ln n) / ρ for SNKP, 2 √(2 n) / ρ for SNKPVN, and this
number in each of 1 + log₂(1/ρ) rounds for ISNKPVN. Without a separator they are 1/ε² for NP, NKP and NVN,
2 √(2 ln n) / ε for SNKP, 2 √(2 n) min(1, q/ρ) / ε for SNKPVN, where q is the length of the mean of all patterns, and
4 √(2 n) / ρ in each of log₂(q/ε) rounds for ISNKPVN. The bounds of NP, NKP and SNKP without a separator are
derived here, from the same inequalities.

The second table has FMP_p at a target margin γ, a share of the largest p-margin g = {MARGIN:g}, on {ROWS} patterns in
{FEATURES} dimensions, without an intercept. The bound is ((R + γ G) L / (g - γ))², with R the largest 2-norm of a
pattern, G the largest 2-norm of a subgradient of the q-norm, and L the 2-norm of the optimal w of q-norm one (derived
in this library). The last column is the margin of IMA_p with α = {ALPHA:g} as a share of g, by its theorem at
least 1 - α.
"""


# Patterns of a known margin.


def simplex(rng: np.random.Generator, d: int) -> np.ndarray:
    """Return d + 1 vectors of length one in d dimensions with sum 0: a regular simplex, turned at random."""
    centred = np.eye(d + 1) - 1.0 / (d + 1)
    _, _, basis = np.linalg.svd(centred)
    corners = centred @ basis[:d].T
    turned, _ = np.linalg.qr(rng.normal(size=(d, d)))
    return corners @ turned / np.linalg.norm(corners, axis=1)[:, None]


def with_first_coordinates(first: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Return patterns of length one with these first coordinates; in the others the first ones form a simplex.

    All patterns of the simplex get the first coordinate first[0].
    """
    d = FEATURES - 1
    t = rng.normal(size=(first.size, d))
    t /= np.linalg.norm(t, axis=1)[:, None]
    t[: d + 1] = simplex(rng, d)
    first[: d + 1] = first[0]
    return np.column_stack([first, np.sqrt(1.0 - first**2)[:, None] * t])


def separable(rho: float, seed: int) -> np.ndarray:
    """Return patterns of length one with the largest margin rho, at w = e_1.

    Some of them have the mean rho e_1, which no w of length one can give a larger margin; the others are farther along
    e_1.
    """
    rng = np.random.default_rng(seed)
    first = np.where(np.arange(ROWS) == 0, rho, rng.uniform(rho, 0.5, ROWS))
    return rng.permutation(with_first_coordinates(first, rng))


def inseparable(rho: float, seed: int) -> np.ndarray:
    """Return patterns of length one whose hull has a largest ball around 0 of radius rho, which touches it at rho e_1.

    Half of them have the first coordinate rho, the others a negative one, -r with r from 0.3 to 0.7, and both halves
    contain a simplex in the D = d - 1 other coordinates, which holds a ball of radius 1 / D. In the direction
    cos(a) e_1 + sin(a) s, |s| = 1, some pattern thus has a score of at least
    rho cos(a) + sin(a) sqrt(1 - rho^2) / D, and another of at least -r cos(a) + sin(a) sqrt(1 - r^2) / D. The larger of
    these numbers is least at a = 0, where all scores are at most rho, since sqrt(1 - r^2) / D >= 0.1 >= rho.
    """
    rng = np.random.default_rng(seed)
    halves = np.full(ROWS // 2, rho), -rng.uniform(0.3, 0.7, ROWS // 2)
    return rng.permutation(np.vstack([with_first_coordinates(first, rng) for first in halves]))


def with_p_margin(p: float, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Return patterns with the largest p-margin MARGIN, and the w of it, with |w|_q = 1.

    w and theta are a dual pair: |theta|_p = 1 and w.theta = 1. Two patterns have the mean MARGIN theta, which no w with
    |w|_q = 1 can give a larger margin; the others are farther along w.
    """
    rng = np.random.default_rng(seed)
    theta = rng.normal(size=FEATURES)
    if p == np.inf:
        theta = np.sign(theta)
        w = theta * rng.random(FEATURES)
        w /= np.abs(w).sum()
    else:
        theta /= norm(theta, p)
        w = np.sign(theta) * np.abs(theta) ** (p - 1.0)
    t = rng.normal(size=(ROWS, FEATURES))
    t -= np.outer(t @ w, theta)
    t[1] = -t[0]
    along = np.where(np.arange(ROWS) < 2, MARGIN, MARGIN * (1.0 + rng.exponential(size=ROWS)))
    return t + np.outer(along, theta), w


# The runs.

RUNS: dict[str, tuple[type[NormalisedAlgorithm], Callable[..., float]]] = {
    # the bound of (rho, n) with a separator, and of (rho, n, eps, |q|) without one
    "NP": (NormalisedPerceptron, lambda rho, n, eps=None, q=None: normalised_perceptron_steps(eps or rho)),
    "NKP": (NormalisedPerceptron, lambda rho, n, eps=None, q=None: normalised_perceptron_steps(eps or rho)),
    "SNKP": (SmoothedPerceptron, lambda rho, n, eps=None, q=None: smoothed_perceptron_steps(eps or rho, n)),
    "NVN": (VonNeumann, lambda rho, n, eps=None, q=None: normalised_perceptron_steps(eps or rho)),
    "SNKPVN": (SmoothedPrimalDual, smoothed_primal_dual_steps),
    "ISNKPVN": (IteratedSmoothedPrimalDual, iterated_smoothed_primal_dual_steps),
}


def steps_and_bound(name: str, rho: float, separates: bool, eps: float = EPS) -> tuple[int, float]:
    """Return the steps of an algorithm until its end, which must be the right one, and the bound of its theorem."""
    algorithm, bound = RUNS[name]
    Y = (separable if separates else inseparable)(rho, SEED)
    ones, K = np.ones(len(Y)), Y @ Y.T
    rows = name in ("NP", "NVN")
    patterns = NormalisedRows(Y, ones) if rows else NormalisedProducts(lambda c: K @ c, ones, ones)
    *_, last = algorithm(eps=1e-9 if separates else eps).until_end(patterns)
    assert last.primal is separates
    end = () if separates else (eps, float(np.linalg.norm(Y.mean(axis=0))))
    return last.step, bound(rho, len(Y), *end)


def p_margin_run(p: float, algorithm: Any) -> tuple[int, float]:
    """Return the number of updates and the p-margin of a fit to the patterns `with_p_margin`."""
    Y, _ = with_p_margin(p, SEED)
    signs = np.where(np.arange(ROWS) % 2 == 0, 1.0, -1.0)
    options: dict[str, Any] = {
        "p": p,
        "intercept": "none",
        "max_epochs": np.inf,
        "random_state": 0,
        "record": None,
    }
    found = algorithm.run(signs[:, None] * Y, signs, **options)
    return found.n_updates, found.margin


def steps_table(margins: tuple[float, ...] = MARGINS) -> list[Row]:
    """Return the first table, for these rho."""
    return [
        {"algorithm": name, "patterns": f"{'separable' if separates else 'inseparable'}, ρ = {rho:g}"}
        | counts("steps", *steps_and_bound(name, rho, separates))
        for separates in (True, False)
        for name in RUNS
        for rho in margins
    ]


def p_margin_table() -> list[Row]:
    """Return the second table."""
    rows: list[Row] = []
    for p in EXPONENTS:
        Y, w = with_p_margin(p, SEED)
        R, length = float(np.linalg.norm(Y, axis=1).max()), float(np.linalg.norm(w))
        longest = max(norm(row, p) for row in Y)
        for share in SHARES:
            updates, margin = p_margin_run(p, FMP(gamma=share * MARGIN / longest))
            bound = fmp_updates(R, MARGIN, share * MARGIN, p, FEATURES, length=length)
            row: Row = {"norm": f"p = {'∞' if np.isinf(p) else f'{p:g}'}", "γ / g": f"{share:g}"}
            reached = Cell(f"> {share:g}", f"{margin / MARGIN:.4f}", "", margin > share * MARGIN)
            rows.append(row | counts("updates of FMP_p", updates, bound) | {"margin / g": reached})
        _, margin = p_margin_run(p, IMA(alpha=ALPHA))
        reached = Cell(f"≥ {1 - ALPHA:g}", f"{margin / MARGIN:.4f}", "", margin >= (1.0 - ALPHA) * MARGIN)
        rows[-1]["IMA_p, margin / g"] = reached
    return rows


def counts(name: str, count: int, bound: float) -> Row:
    """Return a number beside the bound of its theorem."""
    return {name: Cell(f"≤ {bound:,.0f}", f"{count:,}", "", count <= bound)}


def tables(folder: Path, everything: bool) -> Tables:
    """Yield both tables; the patterns are generated here."""
    yield steps_table()
    yield p_margin_table()


SECTIONS = {"theorems": Section(TITLE, TEXT, tables)}
