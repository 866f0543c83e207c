"""Verdicts about all solvers, kept in a cache folder outside the repository until all are measured anew."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable
from dataclasses import asdict
from pathlib import Path

from .answers import Verdict


def store() -> Path:
    """Return the file of the verdicts."""
    folder = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(folder) / "maxmargin-benchmarks" / "hardset.json"


def load() -> list[Verdict]:
    """Return the stored verdicts."""
    return [Verdict(**one) for one in json.loads(store().read_text())] if store().exists() else []


def replace(found: Iterable[Verdict]) -> list[Verdict]:
    """Store verdicts in the place of older ones of the same solver and problem; return all."""
    found = list(found)
    new = {(one.solver, one.problem) for one in found}
    whole = [one for one in load() if (one.solver, one.problem) not in new] + found
    store().parent.mkdir(parents=True, exist_ok=True)
    store().write_text(json.dumps([asdict(one) for one in whole]))
    return whole
