"""Count the functions and files of the package that a call enters, each once.

Usage: python tools/visited.py

Three calls run on small data: a linear fit of 60 x 4, a kernel fit of 40 x 4, and `separate` on 60 x 4. The process
compiles nothing (NUMBA_DISABLE_JIT=1), so that compiled functions are counted too. Comprehensions and lambdas are not
counted.
"""

from __future__ import annotations

import gc
import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

SOURCE = str(Path(__file__).resolve().parents[1] / "src" / "maxmargin")


def visited(call: Callable[[], Any]) -> tuple[int, int]:
    """Return the number of functions of the package that a call enters, and the number of their files."""
    seen: set[tuple[str, str, int]] = set()

    def note(frame: Any, event: str, argument: Any) -> None:
        code = frame.f_code
        if event == "call" and code.co_filename.startswith(SOURCE) and not code.co_name.startswith("<"):
            seen.add((code.co_filename, code.co_qualname, code.co_firstlineno))

    gc.collect()  # otherwise generators of earlier calls might be closed, and counted, during this call
    sys.setprofile(note)
    try:
        call()
    finally:
        sys.setprofile(None)
    return len(seen), len({file for file, _, _ in seen})


def calls() -> dict[str, Callable[[], Any]]:
    """Return the calls that are counted, after one run of each: initialisation is not counted."""
    import numpy as np

    from maxmargin import KernelMaxMarginClassifier, MaxMarginClassifier, separate

    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 4))
    y = np.where(X[:, 0] + 0.5 * rng.normal(size=60) > 0.0, 1, 0)
    found = {
        "linear fit": lambda: MaxMarginClassifier(loss="hinge").fit(X, y),
        "kernel fit": lambda: KernelMaxMarginClassifier(loss="hinge").fit(X[:40], y[:40]),
        "separate": lambda: separate(X, y),
    }
    for call in found.values():
        call()
    return found


def measure() -> dict[str, tuple[int, int]]:
    """Return the counts of every call, from a process without compilation."""
    environment = {**os.environ, "NUMBA_DISABLE_JIT": "1"}
    done = subprocess.run(
        [sys.executable, __file__, "--json"], env=environment, capture_output=True, text=True, check=True
    )
    return {what: (functions, files) for what, (functions, files) in json.loads(done.stdout).items()}


if __name__ == "__main__":
    if "--json" in sys.argv:
        print(json.dumps({what: visited(call) for what, call in calls().items()}))
    else:
        for what, (functions, files) in measure().items():
            print(f"{what}: {functions} functions in {files} files")
