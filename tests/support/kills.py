"""Commands that are killed at random moments, in forks of one process in which all is loaded and compiled.

``python kills.py FOLDER KILLS [NAME ...]`` kills each command so many times, and prints what was found as JSON. Half of
the moments are anywhere in the run, half after the first file was opened for writing. After a kill a file is the old
one, the new one, or was not there before either; the next run leaves nothing but its file.
"""

from __future__ import annotations

import json
import os
import random
import select
import shutil
import signal
import sys
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import Any
from unittest.mock import patch

from command import X, Y, run
from sklearn.datasets import dump_svmlight_file

from maxmargin import ModelFileError, load

FINISHED = (0, 3)  # exit codes with a result
LIMIT = 300.0  # seconds of a run that hangs
TRIES = 30  # for each kill: runs that end before they are killed do not count
Case = Callable[[Path, bool], Any]  # takes the folder of the result, and whether it is the new or the old one


def cases(folder: Path) -> dict[str, Case]:
    """Return the commands by name, with data and models in a folder."""
    data, models = folder / "data.svm", [folder / "old.model", folder / "new.model"]
    dump_svmlight_file(X, Y, str(data), zero_based=False)
    for C, path in enumerate(models, 1):
        assert run("fit", data, "--C", C, "--seed", 0, "-o", path).exit_code in FINISHED

    def fitted(*options: Any) -> Case:
        return lambda out, new: run("fit", data, "--C", 1 + new, "--seed", 0, "-o", out / "result", *options)

    def fitted_in_passes(out: Path, new: bool) -> Any:
        with patch.dict(os.environ, XDG_CACHE_HOME=str(out)):
            return fitted("--memory", "1KB", "--max-iter", 3)(out, new)

    return {
        "fit": fitted("--loss", "hinge"),
        "fit --online": fitted("--online", "--n-features", 4),
        "fit --memory": fitted_in_passes,
        "check --proof": lambda out, new: run("check", models[new], data, "--proof", out / "result"),
        "export": lambda out, new: run("export", models[new], "--to", "liblinear", "-o", out / "result"),
    }


def content(out: Path) -> bytes | None:
    """Return what identifies a complete result: the weights of a model, whose times differ, or the bytes of a file."""
    path = out / "result"
    try:
        return load(path).coef_.tobytes() if path.exists() else None
    except ModelFileError:
        return path.read_bytes()


def started(case: Case, out: Path) -> tuple[int, int]:
    """Run a case in a fork; return its process, and a pipe that gets a byte when it first writes to the folder."""
    begun, signalled = os.pipe()
    process = os.fork()
    if process:
        os.close(signalled)
        return process, begun
    code = 1
    try:
        sys.addaudithook(lambda event, values: first_write(event, values, str(out), signalled))
        code = case(out, True).exit_code
    finally:
        os._exit(code)


def first_write(event: str, values: tuple[Any, ...], out: str, pipe: int) -> None:
    """Write a byte to a pipe where a temporary file or folder is created below a folder."""
    creates = event == "os.mkdir" or (event == "open" and values[2] & os.O_CREAT)
    if creates and isinstance(values[0], str | bytes | os.PathLike):
        path = os.fsdecode(values[0])
        if path.startswith(out) and ".maxmargin-" in path:
            os.write(pipe, b"w")


def ended(process: int) -> int:
    """Wait for a process; return its exit code, -9 after a kill."""
    return os.waitstatus_to_exitcode(os.waitpid(process, 0)[1])


def timed(case: Case, out: Path) -> tuple[float, float]:
    """Return the seconds of a run, and those after its first write."""
    begin = time.perf_counter()
    process, pipe = started(case, out)
    select.select([pipe], [], [], LIMIT)
    first = time.perf_counter()
    assert ended(process) in FINISHED
    os.close(pipe)
    end = time.perf_counter()
    return end - begin, end - first


def killed(case: Case, out: Path, delay: float, after_write: bool) -> int:
    """Run a case, and kill it after some seconds, or so long after its first write; return its exit code."""
    process, pipe = started(case, out)
    if after_write:
        select.select([pipe], [], [], LIMIT)
    time.sleep(delay)
    os.kill(process, signal.SIGKILL)
    os.close(pipe)
    return ended(process)


def tried(case: Case, folder: Path, kills: int, rng: random.Random) -> dict[str, int]:
    """Kill a case many times; return how often which state was found."""
    old, out, counts = folder / "old", folder / "out", Counter[str]()
    old.mkdir(parents=True)
    out.mkdir()
    case(old, False)  # in this process: what is loaded and compiled now need not be in forks
    times = [median(some) for some in zip(*(timed(case, out) for _ in range(3)), strict=True)]
    before, after = content(old), content(out)
    assert None is not before != after
    for k in range(TRIES * kills):
        if counts["killed"] == kills:
            break
        there = k % 4 < 2  # whether there is an old result; the parity of k chooses the moment
        shutil.rmtree(out)
        shutil.copytree(old, out) if there else out.mkdir()
        code = killed(case, out, rng.uniform(0.0, times[k % 2]), after_write=bool(k % 2))
        assert code in (-9, *FINISHED), code
        found = content(out)
        assert found in (before if there else None, after)
        if code >= 0:
            continue
        counts["killed"] += 1
        counts["none" if found is None else "new" if found == after else "old"] += 1
        if any(out.rglob(".*")):  # temporary files
            counts["with temporary files"] += 1
            assert ended(started(case, out)[0]) in FINISHED
            assert content(out) == after
            assert not [*out.rglob(".*")]
    return dict(counts)


def main(folder: Path, kills: int, *names: str) -> None:
    """Kill the named commands, all by default."""
    rng, found = random.Random(0), cases(folder)
    print(json.dumps({name: tried(found[name], folder / name, kills, rng) for name in names or found}))


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]), *sys.argv[3:])
