"""One fit of generated rows in a process of its own, whose memory is limited where the system allows it.

`python -m benchmarks.scale_fit FOLDER LOSS C MEMORY SECONDS`.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from functools import partial
from pathlib import Path
from typing import Any

from maxmargin import MaxMarginClassifier
from maxmargin.numerics.sizes import parse_bytes

from .memory_limit import join, memory_group
from .scale_data import read

TOL = 1e-4  # relative gap that the fits certify
# What a fit may take: so many times its memory, and so many bytes for the interpreter and the compiled code.
LARGEST_SHARE, INTERPRETER = 1.2, 200e6


def measured(folder: Path, loss: str, C: float, memory: str, max_time: float) -> dict[str, Any]:
    """Return passes, seconds and gaps, and the peak memory in MB, of a fit in a new process.

    `limited` says whether the process was limited to `LARGEST_SHARE` times its memory and `INTERPRETER`.
    """
    words = [
        sys.executable,
        "-m",
        "benchmarks.scale_fit",
        str(folder),
        loss,
        str(C),
        memory,
        str(max_time),
    ]
    limit = int(LARGEST_SHARE * parse_bytes(memory) + INTERPRETER)
    with memory_group(limit) as group:
        done = subprocess.run(
            words, capture_output=True, text=True, check=True, cwd=Path(__file__).parents[1],
            preexec_fn=None if group is None else partial(join, group),
        )  # fmt: skip
    return json.loads(done.stdout) | {"limited": group is not None}


def main() -> None:
    folder, loss, C, memory, max_time = sys.argv[1:]
    X, y = read(Path(folder))
    begin = time.perf_counter()
    model = MaxMarginClassifier(
        C=float(C),
        loss=loss,
        tol=TOL,
        memory=memory,
        random_state=0,
        max_time=float(max_time),
    ).fit(X, y)
    seconds = time.perf_counter() - begin
    lines = Path("/proc/self/status").read_text().splitlines()
    peak = next(line for line in lines if line.startswith("VmHWM"))
    history = [[report.round, report.seconds, report.gap] for report in model.history_]
    found = {"history": history, "seconds": seconds, "peak": int(peak.split()[1]) / 1024}
    print(json.dumps(found | {"upper": model.certificate_.upper, "gap": model.certificate_.gap}))


if __name__ == "__main__":
    main()
