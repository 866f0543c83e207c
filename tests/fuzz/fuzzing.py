"""Fuzzing: mutants of files of every format, and random problems.

Usage: python tests/fuzz/fuzzing.py [--seconds 600] [--seed 0] [--first 0] [TARGET ...]

The targets share the time. A trial fails where it raises an error that is no sentence for the user, gives a wrong
answer, or takes longer than a minute; its input stays in a folder, which is named, and the exit code is then 1. Trials
depend on the seed and their number alone. The number of a trial that ends the process is in the file `trial`.
"""

from __future__ import annotations

import argparse
import faulthandler
import shutil
import sys
import tempfile
import time
import traceback
import warnings
from collections import Counter
from itertools import count
from pathlib import Path
from random import Random
from typing import Any

sys.path += [str(Path(__file__).parents[1] / "support")]

import files
import fits
import proofs

TARGETS: dict[str, Any] = files.TARGETS | (proofs.TARGETS if proofs.CHECKER.exists() else {}) | fits.TARGETS
LIMIT, MOST_FAULTS = 60.0, 20


def trial(target: Any, seed: int, number: int, folder: Path) -> str:
    """Run a trial whose random numbers depend on the seed, the target and its number alone."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        return target.trial(Random(f"{seed} {target.name} {number}"), folder)


def main(words: list[str]) -> int:
    """Run the named targets, or all, and print their counts."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("targets", nargs="*", metavar="TARGET", help=", ".join(TARGETS))
    parser.add_argument("--seconds", type=float, default=600.0, help="time of all targets together")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--first", type=int, default=0)
    arguments = parser.parse_args(words)
    names = list(dict.fromkeys(arguments.targets)) or list(TARGETS)
    root, failed = Path(tempfile.mkdtemp(prefix="maxmargin-fuzz-")), False
    for name in names:
        target, end, outcomes = (
            TARGETS[name](),
            time.monotonic() + arguments.seconds / len(names),
            Counter[str](),
        )
        for number in count(arguments.first):
            if time.monotonic() > end or outcomes["FAULT"] >= MOST_FAULTS:
                break
            folder = root / f"{name}-{number}"
            folder.mkdir()
            (root / "trial").write_text(f"{name} {number}")
            faulthandler.dump_traceback_later(LIMIT, exit=True)
            try:
                outcomes[trial(target, arguments.seed, number, folder)] += 1
                shutil.rmtree(folder)
            except Exception:
                outcomes["FAULT"] += 1
                (folder / "fault.txt").write_text(traceback.format_exc())
        faulthandler.cancel_dump_traceback_later()
        failed |= outcomes["FAULT"] > 0
        counts = ", ".join(f"{found} {what}" for what, found in outcomes.most_common())
        print(f"{name:14} {outcomes.total():7} trials: {counts}", flush=True)
    if failed:
        print(f"inputs that fail are in {root}")
    else:
        shutil.rmtree(root)
    return int(failed)


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
