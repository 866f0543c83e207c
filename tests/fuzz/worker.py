"""A process that runs trials of one target within limits of memory: python worker.py TARGET SEED FIRST COUNT FOLDER

The number of the trial is in the file `trial` of the folder before it begins, so that the process that watches can see
where this one has ended, or hangs. The last line of output has the outcomes.
"""

from __future__ import annotations

import json
import os
import resource
import shutil
import sys
import traceback
import warnings
from collections import Counter
from pathlib import Path
from random import Random
from unittest.mock import patch

# before NumPy: threads take addresses, which are limited
os.environ |= {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1", "MALLOC_ARENA_MAX": "1"}
sys.path += [str(Path(__file__).parents[1] / "support"), str(Path(__file__).parents[2] / "src")]

from every_target import target_of
from targets import Target

# Bytes that readers are told are free, and that a trial may allocate: estimates have to keep readers below.
FREE, ROOM = 256e6, 512e6
# LLVM takes addresses where the cache of compiled code is empty, also after the first trials.
ROOMS = {"fits": 2e9}
WARM_UP = 200  # trials before the limit, which load compiled code
FAULTS = 20  # kinds of faults after which the process ends


def limit_memory(room: float) -> None:
    """Limit the addresses of this process to those in use and `room` bytes."""
    used = int(Path("/proc/self/statm").read_text().split()[0]) * os.sysconf("SC_PAGE_SIZE")
    resource.setrlimit(resource.RLIMIT_AS, (used + int(room), resource.RLIM_INFINITY))


def trial(target: Target, seed: str, number: int, folder: Path) -> str:
    """Run a trial whose random numbers depend on the seed, the target and its number alone."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        return target.trial(Random(f"{seed} {target.name} {number}"), folder)


def kind_of(error: BaseException) -> str:
    """Return the kind of a fault: the type of an error, and the last place in the package where it passed."""
    places = [f"{Path(f.filename).name}:{f.lineno}" for f in traceback.extract_tb(error.__traceback__)]
    return f"{type(error).__name__} {places[-1]}"


def keep(folder: Path, name: str, text: str) -> None:
    """Copy the input of a trial to the folder of faults, with a text."""
    place = folder / "faults" / name
    place.mkdir(parents=True, exist_ok=True)
    for path in folder.glob("input*"):
        shutil.copy(path, place)
    (place / "fault.txt").write_text(text)


def main(name: str, seed: str, first: int, count: int, folder: Path) -> None:
    """Run the trials, and print the outcomes as JSON."""
    target, outcomes, faults = target_of(name), Counter[str](), dict[str, str]()
    with (folder / "trial").open("wb", buffering=0) as place, patch_free_memory():
        for number in range(first, first + count):
            if number == first + WARM_UP and sys.platform == "linux":
                limit_memory(ROOMS.get(name, ROOM))
            os.pwrite(place.fileno(), b"%20d" % number, 0)
            try:
                outcomes[trial(target, seed, number, folder)] += 1
            except Exception as error:
                outcomes["FAULT"] += 1
                kind = kind_of(error)
                if kind not in faults:
                    faults[kind] = f"{name}-{seed}-{number}"
                    keep(folder, faults[kind], traceback.format_exc())
            if number % 100 == 0 or len(faults) >= FAULTS:
                print(json.dumps([number + 1, outcomes, faults]), flush=True)
            if len(faults) >= FAULTS:
                break
    print(json.dumps([number + 1, outcomes, faults]), flush=True)


def patch_free_memory():
    """Let checks of the needed memory find FREE bytes of memory free."""
    return patch("maxmargin.numerics.sizes.available_memory", lambda: FREE)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4]), Path(sys.argv[5]))
