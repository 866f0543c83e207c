"""Brackets of the optima of the hard problems: `python -m benchmarks.hardset.optima --write`.

The optimum of every binary problem lies between the two decimal numbers of `optima.json`, which differ by at most 1e-12
relative. They are the objective of a feasible point and the bound that feasible dual variables prove, evaluated in ball
arithmetic (`exact.py`) and rounded outward. The points come from interior points in 600 bits (`interior.py`).
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from fractions import Fraction
from pathlib import Path

import numpy as np
from flint import arb

from .exact import Judge, decimals
from .interior import iterates, point
from .problems import PROBLEMS, HardProblem

FILE = Path(__file__).with_name("optima.json")
WIDTH = 1e-12  # the largest relative distance of the bounds
# A bracket is narrowed to this width if that takes no more than MOST iterations: answers of float64 solvers have
# relative errors of 1e-16, which are to be told apart.
NARROW = 1e-22
MOST = 300
EVERY = 3  # iterations between evaluations, which take as long as an iteration

Bracket = tuple[Fraction, Fraction]


def load() -> dict[str, list[Bracket]]:
    """Return the brackets of the file: of each problem one for each binary problem."""
    stored = json.loads(FILE.read_text())
    return {
        name: [(Fraction(low), Fraction(high)) for low, high in entry["optima"]]
        for name, entry in stored.items()
    }


def digests() -> dict[str, str]:
    """Return the hash of the data of every problem in the file."""
    return {name: entry["data"] for name, entry in json.loads(FILE.read_text()).items()}


def bracket(problem: HardProblem, X: np.ndarray, signs: np.ndarray) -> tuple[str, str]:
    """Return the decimal numbers between which the optimum of a binary problem lies.

    Raises
    ------
    ArithmeticError
        If they are further apart than WIDTH.
    """
    judge = Judge(problem, X, signs)
    best: list[arb | None] = [None, None]
    width = np.inf
    for k, (at, form) in enumerate(iterates(judge, MOST)):
        if k % EVERY:
            continue
        try:
            value, bound = judge.value(*point(judge, at, form)), judge.bound(at.alpha[: len(signs)])
        except ArithmeticError:  # not yet near feasibility
            continue
        low, high = (value, bound) if problem.hard else (bound, value)
        best = [_better(best[0], low, 1), _better(best[1], high, -1)]
        width = float(((best[1] - best[0]) / best[0]).upper()) if best[0] > 0 else np.inf
        if width <= NARROW:
            break
    if not width <= WIDTH:
        raise ArithmeticError(f"The bracket of {problem.name} has the relative width {width:.1e}.")
    return decimals(best[0], upward=False), decimals(best[1], upward=True)


def _better(old: arb | None, new: arb, sign: int) -> arb:
    if not new.is_finite():
        return old if old is not None else arb(-sign) * arb(10) ** 300
    return new if old is None or sign * (new - old) > 0 else old


def computed(name: str) -> dict[str, object]:
    """Return the entry of a problem in the file."""
    problem = PROBLEMS[name]
    return {
        "data": problem.digest(),
        "optima": [bracket(problem, X, signs) for X, signs in problem.parts()],
    }


def main(arguments: Sequence[str] | None = None) -> int:
    """Compute brackets and print them; with --write into the file, where other problems keep theirs."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.hardset.optima", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help="problems; all if none is named")
    parser.add_argument("--write", action="store_true", help=f"write {FILE.name}")
    options = parser.parse_args(arguments)
    stored = json.loads(FILE.read_text())
    for name in options.names or PROBLEMS:
        stored[name] = computed(name)
        print(name, stored[name], flush=True)
        if options.write:
            FILE.write_text(json.dumps({name: stored[name] for name in PROBLEMS}, indent=1) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
