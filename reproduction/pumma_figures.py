"""Runs of Figures 3 and 4 of the PUMMA paper: r-of-k data, p = 2 and p = 2 ln n, means of ten data sets."""

from __future__ import annotations

from functools import cache
from typing import NamedTuple

import numpy as np

from maxmargin import ALMA, PUMMA, AggressiveROMMA
from maxmargin.algorithms import Algorithm
from maxmargin.problem.problem import dual_exponent

from .data import r_of_k
from .epochs import Look, epochs
from .record import recall, remember

NAME = "pumma_figures"
DELTA, N, K, SETS = 0.1, 100, 16, 10
BIASES = {15: 1, 9: 4, 1: 8}  # k - 2 r + 1, and r
LARGE_P = 2.0 * float(np.log(N))
POINTS = 60  # points of a curve, at epochs in geometric progression


def radius(p: float) -> float:
    """Return |x|_p of a row of N signs."""
    return N ** (1.0 / p)


def level(p: float) -> float:
    """Return 1 - delta times the margin of the target hyperplane over R: the level that the paper draws."""
    return (1.0 - DELTA) / (K ** (1.0 / dual_exponent(p)) * radius(p))


class Line(NamedTuple):
    """Algorithm of the figures.

    Attributes
    ----------
    what : str
    p : float
    rule : Algorithm
    rho : float
        Constant coordinate.
    long : bool
        Whether the runs take minutes, so that only `--all` repeats them.
    """

    what: str
    p: float
    rule: Algorithm
    rho: float = 0.0
    long: bool = False

    @property
    def norm(self) -> str:
        """Name of the norm."""
        return "p = 2" if self.p == 2.0 else "p = 2 ln n"

    def key(self, bias: int) -> str:
        """Return the name of the runs in the store."""
        return f"{self.what}, {self.norm}, bias {bias}"


LINES = (
    Line("PUMMA", 2.0, PUMMA(delta=DELTA, halving=False, schedule="plain", shuffle=False)),
    Line("aggressive ROMMA, coordinate R", 2.0,
         AggressiveROMMA(delta=DELTA, halving=False, schedule="plain", shuffle=False), radius(2.0)),
    Line("PUMMA", LARGE_P, PUMMA(delta=DELTA, halving=False, schedule="plain", shuffle=False)),
    Line("ALMA_p, coordinate R", LARGE_P, ALMA(alpha=DELTA, shuffle=False), radius(LARGE_P), True),
)  # fmt: skip


class Mean(NamedTuple):
    """Means over the data sets.

    Attributes
    ----------
    updates : float
    seconds : float
        CPU time of all epochs.
    margin : float
        Over R, at the end.
    until : float
        Updates until the end of the first epoch with a margin of at least the level.
    curve : list of (float, float)
        Updates and margin over R after an epoch.
    """

    updates: float
    seconds: float
    margin: float
    until: float
    curve: list[tuple[float, float]]


def mean(runs: list[list[Look]], p: float) -> Mean:
    """Return the means of runs over an increasing number of epochs; a run that has ended keeps its last state."""
    places = np.unique(np.geomspace(1, max(len(run) for run in runs), POINTS).round().astype(int)) - 1
    looks = np.array([[run[min(place, len(run) - 1)] for run in runs] for place in places]).mean(axis=1)
    updates, seconds, margin = (float(number) for number in looks[-1])
    until = [next(look.updates for look in run if look.margin >= level(p) * radius(p)) for run in runs]
    curve = [(float(updates), float(margin) / radius(p)) for updates, _, margin in looks]
    return Mean(updates, seconds, margin / radius(p), float(np.mean(until)), curve)


@cache
def result(line: Line, bias: int, everything: bool) -> Mean:
    """Return the means of one algorithm at one bias; without `everything` those of long runs are the stored ones."""
    if line.long and not everything:
        updates, seconds, margin, until, *rest = recall(NAME)[line.key(bias)]
        return Mean(updates, seconds, margin, until, list(zip(rest[::2], rest[1::2], strict=True)))
    compiled = r_of_k(8, 0, m=20)  # the first run compiles the code, which is not to be timed
    list(epochs(line.rule, *compiled, line.p, line.rho))
    found = mean(
        [list(epochs(line.rule, *r_of_k(BIASES[bias], seed), line.p, line.rho)) for seed in range(SETS)],
        line.p,
    )
    if line.long:
        numbers = [*found[:4], *(number for point in found.curve for number in point)]
        remember(NAME, {line.key(bias): [float(f"{number:.6g}") for number in numbers]})
    return found
