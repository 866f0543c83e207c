"""Profile of a fit by function of maxmargin. Compiled code and NumPy count for the function that calls them."""

from __future__ import annotations

import cProfile
import pstats
import re
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path

import maxmargin

from .datasets import Dataset
from .solvers import ours

_ROOT = str(Path(maxmargin.__file__).parent)
# A function outside maxmargin with at least this share of the time has a row of its own; otherwise its time is counted
# for the caller.
_FOREIGN_SHARE = 0.04


@dataclass(frozen=True)
class Part:
    """Time of one function, without the functions of maxmargin that it calls."""

    name: str
    calls: int
    seconds: float
    share: float


def breakdown(data: Dataset, C: float, algorithm: str = "auto", fits: int = 9) -> tuple[float, list[Part]]:
    """Return the seconds under the profiler and the parts, largest first, of the fastest of several equal fits."""
    ours(data, C, algorithm, 1)
    profiles = []
    for _ in range(fits):
        profile = cProfile.Profile()
        profile.enable()
        answer = ours(data, C, algorithm, 1)
        profile.disable()
        profiles.append((answer.wall, profile))
    total, profile = min(profiles, key=lambda one: one[0])
    seconds: dict[str, float] = defaultdict(float)
    calls: dict[str, int] = defaultdict(int)
    entries = pstats.Stats(profile).stats  # type: ignore[attr-defined]
    for function, (_, count, own, _, callers) in entries.items():
        if _mine(function):
            seconds[_name(function)] += own
            calls[_name(function)] += count
            continue
        for caller, (_, made, _, inside) in callers.items():
            if not _mine(caller):
                continue
            foreign = inside > _FOREIGN_SHARE * total
            name = f"{_name(caller)} > {_plain(function[2])}" if foreign else _name(caller)
            seconds[name] += inside
            if foreign:
                calls[name] += made
    parts = [Part(name, calls[name], spent, spent / total) for name, spent in seconds.items()]
    return total, sorted(parts, key=lambda part: -part.seconds)


def _mine(function: tuple[str, int, str]) -> bool:
    return function[0].startswith(_ROOT)


def _plain(name: str) -> str:
    """Return the plain name of a built-in function: `sort` for `<method 'sort' of ...>`."""
    found = re.search(r"'(\w+)' of|built-in method ([\w.]+)", name)
    return (found[1] or found[2]) if found else name


def _name(function: tuple[str, int, str]) -> str:
    file = Path(function[0]).relative_to(_ROOT)
    return ".".join([*file.with_suffix("").parts, function[2]])
