"""Commands that are killed at random moments, in forks of one process in which all is loaded and compiled.

``python kills.py FOLDER KILLS [NAME ...]`` kills each command so many times, and prints what was found as JSON. Half of
the moments are anywhere in the run, half after the first file was opened for writing. After a kill a file is the old
one, the new one, or was not there before either; the next run leaves nothing but its file.
"""

from __future__ import annotations

import hashlib
import io
import json
import os
import random
import select
import shutil
import signal
import sys
import time
import traceback
from collections import Counter
from collections.abc import Callable
from contextlib import redirect_stdout
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

import numba
import numpy as np

from maxmargin.cli.app import app
from maxmargin.engine.jit import compiled
from maxmargin.io.model_file import load
from maxmargin.readers.row_cache import open_rows

FINISHED = (0, 3)  # exit codes with a result
LIMIT = 300.0  # seconds of a run that hangs
TRIES = 10  # for each kill: runs that end before they are killed do not count
# cases that load no optional package and compile little
QUICK = ("fit", "certificate", "cache of rows", "export json")
FUNCTION = "def scaled(x):\n    return {} * x\n"


class Case(NamedTuple):
    """A command.

    Attributes
    ----------
    run : callable
        Takes the folder to write to, and whether the old or the new result is to be written.
    digest : callable
        What identifies a complete result in that folder; raises an error at an incomplete one; None where there is
        none.
    may_vanish : bool
        Whether there may be no result after a kill although there was one: of caches, which are written again.
    """

    run: Callable[[Path, bool], Any]
    digest: Callable[[Path], Any]
    may_vanish: bool = False


def command(*arguments: Any) -> None:
    """Run a command line; raise SystemExit with its code where it is not 0."""
    code = app([str(one) for one in arguments], standalone_mode=False)
    if code:
        raise SystemExit(code)


def digest_of(path: Path) -> str | None:
    """Return the digest of a file."""
    return hashlib.sha256(path.read_bytes()).hexdigest() if path.exists() else None


def written_by(name: str, old: list[Any], new: list[Any], option: str = "-o") -> Case:
    """Return the case of a command that writes a file of this name, the same bytes each time."""

    def run(out: Path, newer: bool) -> None:
        command(*(new if newer else old), option, out / name)

    return Case(run, lambda out: digest_of(out / name))


def fitted_by(*arguments: Any) -> Case:
    """Return the case of a command that writes a model, whose times differ."""

    def run(out: Path, newer: bool) -> None:
        command(*arguments, "--C", 2.0 if newer else 1.0, "-o", out / "model")

    def digest(out: Path) -> Any:
        return load(out / "model").coef_.tobytes().hex() if (out / "model").exists() else None

    return Case(run, digest)


def picture_by(data: Path) -> Case:
    """Return the case of `select`, which writes a picture of the elimination."""

    def run(out: Path, newer: bool) -> None:
        command("select", data, "--folds", 2, "--seed", int(newer), "--picture", out / "picture.png")

    def digest(out: Path) -> Any:
        from matplotlib.image import imread

        path = out / "picture.png"
        return hashlib.sha256(imread(path).tobytes()).hexdigest() if path.exists() else None

    return Case(run, digest)


def cached(data: Path) -> Case:
    """Return the case of rows that are kept on the disk."""

    def run(out: Path, newer: bool) -> None:
        open_rows(data, cache_dir=out, n_features=50 if newer else 60, block_bytes=1 << 16)

    def digest(out: Path) -> Any:
        for folder in out.glob("*.maxmargin-cache"):
            header = json.loads((folder / "header.json").read_text())
            assert all((folder / name).stat().st_size == size for name, size in header["arrays"].items())
            return [header["n_features"], *(digest_of(folder / name) for name in sorted(header["arrays"]))]
        return None

    return Case(run, digest, may_vanish=True)


def compiled_code(folder: Path) -> Case:
    """Return the case of the compile cache: two versions of the function of one file."""

    def call(out: Path, newer: bool) -> float:
        numba.config.CACHE_DIR = str(out)
        source = folder / "scaled.py"
        source.write_text(FUNCTION.format(3.0 if newer else 2.0))
        names: dict[str, Any] = {"__name__": "scaled"}
        exec(compile(source.read_text(), str(source), "exec"), names)
        return compiled()(names["scaled"])(1.0)

    def digest(out: Path) -> Any:  # whatever is there, both versions can be run
        assert [forked(lambda newer=newer: call(out, newer) - 2.0 - newer) for newer in (False, True)] == [
            0,
            0,
        ]
        return None

    return Case(lambda out, newer: call(out, newer) - 2.0 - newer, digest, may_vanish=True)


def cases(folder: Path) -> dict[str, Case]:
    """Return the cases by name, with data and models in a folder."""
    data, two = folder / "data.svm", [folder / "old.model", folder / "new.model"]
    rng = np.random.default_rng(0)
    X = np.round(rng.normal(size=(600, 8)), 3)
    y = np.where(X[:, 0] + 0.5 * rng.normal(size=600) > 0.0, 1, -1)
    rows = (" ".join(f"{j}:{value}" for j, value in enumerate(row, 1)) for row in X.tolist())
    data.write_text("".join(f"{label} {row}\n" for label, row in zip(y.tolist(), rows, strict=True)))
    with redirect_stdout(io.StringIO()):
        for C, path in enumerate(two, 1):
            command("fit", data, "--C", C, "-o", path)
    found = {
        "fit": fitted_by("fit", data, "--loss", "hinge"),
        "fit --online": fitted_by("fit", data, "--online", "--n-features", 8, "--seed", 0),
        "certificate": written_by("proof.json", *(["certificate", path, data] for path in two)),
        "cache of rows": cached(data),
        "compile cache": compiled_code(folder),
    }
    for form in ("json", "liblinear", "onnx"):
        if form != "onnx" or has("skl2onnx"):
            arguments = (["export", path, "--to", form] for path in two)
            found[f"export {form}"] = written_by(f"a.{form}", *arguments)
    if has("matplotlib"):
        found["select"] = picture_by(data)
    return found


def has(package: str) -> bool:
    """Return whether an optional package is installed."""
    import importlib.util

    return importlib.util.find_spec(package) is not None


# forks


def started(function: Callable[[], Any], out: Path | None = None) -> tuple[int, int]:
    """Call a function in a fork; return its process, and a pipe that gets a byte when it first writes to a folder."""
    begun, signalled = os.pipe()
    process = os.fork()
    if process:
        os.close(signalled)
        return process, begun
    code = 1
    try:
        log = os.open(os.devnull, os.O_WRONLY)
        os.dup2(log, 1)
        if out is not None:
            sys.addaudithook(lambda event, values: first_write(event, values, str(out), signalled))
        code = int(function() or 0)
    except SystemExit as error:
        code = error.code if isinstance(error.code, int) else 1
    except BaseException:
        traceback.print_exc()
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


def forked(function: Callable[[], Any]) -> int:
    """Call a function in a fork; return its exit code."""
    process, pipe = started(function)
    os.close(pipe)
    return ended(process)


def timed(case: Case, out: Path) -> tuple[float, float]:
    """Return the seconds of a run, and those after its first write."""
    begin = time.perf_counter()
    process, pipe = started(lambda: case.run(out, True), out)
    select.select([pipe], [], [], LIMIT)
    first = time.perf_counter()
    assert ended(process) in FINISHED
    os.close(pipe)
    end = time.perf_counter()
    return end - begin, end - first


def killed(case: Case, out: Path, delay: float, after_write: bool) -> int:
    """Run a case, and kill it after some seconds, or so long after its first write; return its exit code."""
    process, pipe = started(lambda: case.run(out, True), out)
    if after_write:
        select.select([pipe], [], [], LIMIT)
    time.sleep(delay)
    os.kill(process, signal.SIGKILL)
    os.close(pipe)
    return ended(process)


def strays(out: Path) -> list[str]:
    """Return the temporary names in a folder."""
    return [path.name for path in out.rglob(".*")]


def tried(case: Case, folder: Path, kills: int, rng: random.Random) -> dict[str, int]:
    """Kill a case many times; return how often which state was found."""
    old, out, counts = folder / "old", folder / "out", Counter[str]()
    old.mkdir(parents=True)
    out.mkdir()
    with redirect_stdout(io.StringIO()):
        case.run(old, False)  # in this process: what is loaded and compiled now need not be in forks
    times = [median(some) for some in zip(*(timed(case, out) for _ in range(3)), strict=True)]
    before, after = case.digest(old), case.digest(out)
    assert before is None or before != after
    for k in range(TRIES * kills):
        if counts["killed"] == kills:
            break
        there = k % 4 < 2  # whether there is an old result; the parity of k chooses the moment
        shutil.rmtree(out)
        shutil.copytree(old, out) if there else out.mkdir()
        code = killed(case, out, rng.uniform(0.0, times[k % 2]), after_write=bool(k % 2))
        assert code in (-9, *FINISHED), code
        found = case.digest(out)
        allowed = [before if there else None, after] + [None] * case.may_vanish
        assert found in allowed, (found, allowed)
        if code >= 0:
            continue
        counts["killed"] += 1
        counts["none" if found is None else "new" if found == after else "old"] += 1
        if strays(out):
            counts["with temporary files"] += 1
            assert forked(lambda: case.run(out, True)) in FINISHED
            assert case.digest(out) == after
            assert not strays(out), strays(out)
    return dict(counts)


def main(folder: Path, kills: int, *names: str) -> None:
    """Kill the named commands, all by default."""
    rng = random.Random(0)
    found = cases(folder)
    result = {}
    for name in names or found:
        result[name] = tried(found[name], folder / name, kills, rng)
        print(name, result[name], file=sys.stderr)
    print(json.dumps(result))


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]), *sys.argv[3:])
