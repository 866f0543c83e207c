"""Put faults into the code one by one, and check that the fast tests find them.

Usage: python tests/mutations/run.py [number ...]

Each row of `table.toml` replaces a piece of text that occurs once in its file, in a copy of src, and names tests of the
fast suite that must fail then. The exit code is 1 if more than two mutations survive.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
import tomllib
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from queue import SimpleQueue
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[2]
# The marks and environments in which `make test` runs the tests: interpreted ones first, since they start at once.
RUNS = (
    ("interpreted and not slow", {"NUMBA_DISABLE_JIT": "1"}),
    ("not slow and not interpreted", {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}),
)
NO_TESTS = 5  # exit code of pytest
MAX_SURVIVORS = 2


class Mutation(NamedTuple):
    """A fault, in words and as text of a file below src/maxmargin, and the tests that find it (arguments of pytest)."""

    what: str
    file: str
    old: str
    new: str
    tests: str


with (Path(__file__).parent / "table.toml").open("rb") as file:
    MUTATIONS = [Mutation(**row) for row in tomllib.load(file)["mutation"]]


def mutate(mutation: Mutation, folder: Path) -> None:
    """Copy src to a folder, with the fault; raise ValueError unless its text occurs once."""
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(ROOT / "src", folder, ignore=shutil.ignore_patterns("__pycache__"))
    path = folder / "maxmargin" / mutation.file
    source = path.read_text(encoding="utf-8")
    if source.count(mutation.old) != 1:
        raise ValueError(f"{mutation.file}: {mutation.old!r} occurs {source.count(mutation.old)} times")
    path.write_text(source.replace(mutation.old, mutation.new), encoding="utf-8")


def killed_by(mutation: Mutation, folder: Path) -> tuple[str, float]:
    """Return the first test that fails with the fault, or "", and the seconds that this took.

    The folder holds compiled code of earlier mutations, which is valid where the sources are the same.
    """
    began = time.perf_counter()
    mutate(mutation, folder / "src")
    for marks, variables in RUNS:
        paths = {"PYTHONPATH": str(folder / "src"), "NUMBA_CACHE_DIR": str(folder / "cache")}
        words = [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", "-m", marks]
        done = subprocess.run(
            [*words, *mutation.tests.split()],
            cwd=ROOT,
            env=os.environ | variables | paths,
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode not in (0, NO_TESTS):
            found = re.search(r"^(?:FAILED|ERROR) (\S+?)(?:\[.*)?(?: - .*)?$", done.stdout, re.MULTILINE)
            return found[1] if found else done.stdout[-500:], time.perf_counter() - began
    return "", time.perf_counter() - began


def main(arguments: list[str]) -> int:
    """Run the named mutations, or all; print what finds each."""
    chosen = [int(word) - 1 for word in arguments if word.isdigit()] or range(len(MUTATIONS))
    rows = []
    with tempfile.TemporaryDirectory() as work, ThreadPoolExecutor(2) as pool:
        folders: SimpleQueue[Path] = SimpleQueue()
        for name in "ab":
            folders.put(Path(work) / name)

        def run(i: int) -> tuple[str, float]:
            folder = folders.get()
            try:
                return killed_by(MUTATIONS[i], folder)
            finally:
                folders.put(folder)

        for i, (test, seconds) in zip(chosen, pool.map(run, chosen), strict=True):
            rows.append((MUTATIONS[i], test))
            print(f"{i + 1:3} {seconds:5.0f} s  {MUTATIONS[i].what}: {test or 'NOT FOUND'}", flush=True)
    survivors = sum(not test for _, test in rows)
    print(f"{len(rows) - survivors} of {len(rows)} found")
    return int(survivors > MAX_SURVIVORS)


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
