"""Fuzzing: mutants of files of every format, and random problems, in processes that are watched.

Usage: python tests/fuzz/run.py [--seconds 600] [--count 100000] [--seed 0] [--first 0] [--jobs 2] [TARGET ...]

The targets share the time; each ends after `--count` trials. A trial fails where it raises an error that is no
sentence for the user, gives a wrong answer, takes longer than its limit, needs more memory than a reader may estimate,
or ends the process. The input and the fault are kept in a folder, which is named at the end; the exit code is then 1.
Trials depend on the seed and their number alone: runs with `--first` go on where others have ended.
"""

from __future__ import annotations

import argparse
import json
import shutil
import subprocess
import sys
import tempfile
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

sys.path += [str(Path(__file__).parents[1] / "support")]

from every_target import MODULES

WORKER = Path(__file__).parent / "worker.py"
MEMORY = Path("/dev/shm")  # files of trials are in memory where there is such a folder
FIRST, LOADING = 200, 300.0  # the first trials may load modules and compile: their limit in seconds
LIMITS = {"fits": 300.0, "commands": 300.0}  # seconds of a trial that may compile
LIMIT = 10.0  # seconds of other trials, which take milliseconds


class Run:
    """The trials of one target, in one process after another.

    Parameters
    ----------
    name : str
    arguments : namespace
        Of the command line.
    folder : Path
        For the files of the trials, and the inputs that fail.
    """

    def __init__(self, name: str, arguments: Any, folder: Path) -> None:
        self.name, self.arguments, self.folder = name, arguments, folder / name
        self.folder.mkdir()
        self.outcomes, self.faults = Counter[str](), dict[str, str]()
        self.next, self.last = arguments.first, arguments.first + arguments.count

    def until(self, seconds: float) -> Run:
        """Run trials for so many seconds, or until all are done; a process that ends early is replaced."""
        end = time.monotonic() + seconds
        while self.next < self.last and time.monotonic() < end and len(self.faults) < 100:
            self._process(end)
        return self

    def _process(self, end: float) -> None:
        """Run a process until it ends, hangs, or the time is over."""
        place, log = self.folder / "trial", self.folder / "log"
        place.unlink(missing_ok=True)
        words = [self.name, self.arguments.seed, self.next, self.last - self.next, self.folder]
        with log.open("w") as output, (self.folder / "errors").open("w") as errors:
            process = subprocess.Popen(
                [sys.executable, str(WORKER), *map(str, words)], stdout=output, stderr=errors
            )
            ended = self._watch(process, place, end)
        lines = [line for line in log.read_text().splitlines() if line.startswith("[") and line.endswith("]")]
        done, outcomes, faults = json.loads(lines[-1]) if lines else [self.next, {}, {}]
        self.outcomes.update(outcomes)
        self.faults |= {kind: name for kind, name in faults.items() if kind not in self.faults}
        self.next = done
        if ended is not None:
            self._keep(place, ended)

    def _watch(self, process: subprocess.Popen[bytes], place: Path, end: float) -> str | None:
        """Wait for a process; return why it was ended or has failed, or None."""
        seen, since, limit = b"", time.monotonic(), LOADING
        while process.poll() is None:
            time.sleep(0.2)
            now, found = time.monotonic(), place.read_bytes() if place.exists() else b""
            if found != seen:
                loaded = int(found or 0) >= self.next + FIRST
                seen, since, limit = found, now, LIMITS.get(self.name, LIMIT) if loaded else LOADING
            if now > end or now - since > limit:
                process.kill()
                process.wait()
                return f"no end after {limit} s" if now <= end else None
        return f"exit code {process.returncode}" if process.returncode else None

    def _keep(self, place: Path, why: str) -> None:
        """Keep the input of the trial at which a process has ended, and go on after it."""
        number = int(place.read_bytes() or self.next) if place.exists() else self.next
        name = f"{self.name}-{self.arguments.seed}-{number}"
        target = self.folder / "faults" / name
        target.mkdir(parents=True, exist_ok=True)
        for path in self.folder.glob("input*"):
            shutil.copy(path, target)
        (target / "fault.txt").write_text(f"{why}\n{(self.folder / 'errors').read_text()[-2000:]}")
        self.outcomes["FAULT"] += 1
        self.faults[f"{why} at {number}"] = name
        self.next = number + 1

    def report(self) -> str:
        """Return a line of counts, and one for each fault."""
        counts = ", ".join(f"{count} {what}" for what, count in self.outcomes.most_common())
        faults = "".join(f"\n  FAULT {kind}: {name}" for kind, name in self.faults.items())
        return f"{self.name:14} {self.outcomes.total():7} trials, next {self.next}: {counts}{faults}"


def main(words: list[str]) -> int:
    """Run the named targets, or all, and print their counts."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("targets", nargs="*", metavar="TARGET", help=", ".join(MODULES))
    parser.add_argument("--seconds", type=float, default=600.0, help="time of all targets together")
    for name, default in (("count", 100_000), ("seed", 0), ("first", 0), ("jobs", 2)):
        parser.add_argument(f"--{name}", type=int, default=default)
    arguments = parser.parse_args(words)
    names = list(dict.fromkeys(arguments.targets)) or list(MODULES)
    if unknown := {*names} - {*MODULES}:
        parser.error(f"unknown: {', '.join(sorted(unknown))}; the targets are {', '.join(MODULES)}")
    folder = Path(tempfile.mkdtemp(prefix="maxmargin-fuzz-", dir=MEMORY if MEMORY.is_dir() else None))
    share = arguments.seconds * arguments.jobs / len(names)
    failed = False
    with ThreadPoolExecutor(arguments.jobs) as pool:
        for run in pool.map(lambda name: Run(name, arguments, folder).until(share), names):
            print(run.report(), flush=True)
            failed |= bool(run.faults)
    if failed:
        print(f"inputs that fail are in {folder}/*/faults")
    else:
        shutil.rmtree(folder)
    return int(failed)


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
