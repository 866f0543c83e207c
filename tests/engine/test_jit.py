"""Compilation: allocation, agreement with interpreted code, and the code that is stored on disk."""

from __future__ import annotations

import json
import os
import shutil
from itertools import product
from pathlib import Path
from typing import NamedTuple

import numba
import numpy as np
import pytest
import replay
from numba.core.errors import NumbaError
from presenting import ONE_BY_ONE
from processes import run_python

import maxmargin
from maxmargin.algorithms import ALGORITHMS
from maxmargin.engine.jit import compiled, record

SOURCE = Path(maxmargin.__file__).resolve().parent

needs_jit = pytest.mark.skipif(bool(numba.config.DISABLE_JIT), reason="interpreted: nothing is compiled")
needs_fork = pytest.mark.skipif(not hasattr(os, "fork"), reason="processes are not forked on this system")


# no allocation


@needs_jit
def test_compiled_code_cannot_allocate():
    """The option _nrt=False forbids allocation; without it the same function compiles."""

    def allocate(n):
        return np.zeros(n).sum()

    @record
    class AllocatingRecord(NamedTuple):
        a: float

        def allocate(self, size):
            return np.zeros(size).sum()

    @compiled()
    def call_allocate(allocating, n):
        return allocating.allocate(n)

    assert numba.njit(allocate)(3) == 0.0
    message = "NRT required|Only accept returning of array passed into the function"
    with pytest.raises(NumbaError, match=message):
        compiled()(allocate)(3)
    with pytest.raises(NumbaError, match=message):
        call_allocate(AllocatingRecord(1.0), 3)


# one source, compiled and interpreted


def replayed(*arguments: str, **environment: str) -> dict:
    """Run replay.py with warnings as errors; return what it prints."""
    return json.loads(run_python("-W", "error", replay.__file__, *arguments, **environment))


@needs_jit
@pytest.mark.parametrize("some", [replay.FEW, pytest.param((), marks=pytest.mark.slow)], ids=["few", "all"])
def test_compiled_and_interpreted_code_take_the_same_steps(some):
    """Bit for bit where arithmetic is exact: integers and short dyadic fractions.

    Compiled dense sums are reassociated, and rules that divide round: 30 passes of rounding errors, 1e-12 in all.
    """
    interpreted_runs = replayed("runs", *some, NUMBA_DISABLE_JIT="1")
    compiled_runs = json.loads(json.dumps(replay.everything(some)))
    assert compiled_runs.keys() == interpreted_runs.keys()
    for name, run in compiled_runs.items():
        expected = interpreted_runs[name]
        assert len(run["steps"]) >= 10, name
        if "real" in name or "dividing" in name:
            assert run["steps"] == expected["steps"], name
            size = max(map(abs, expected["values"]))
            assert run["values"] == pytest.approx(expected["values"], rel=0.0, abs=1e-12 * size), name
        else:
            assert run == expected, name


# bounds checks of compiled code


@pytest.mark.slow
def test_no_index_is_out_of_range(tmp_path):
    """Run every schedule of every rule with Numba's bounds checks."""
    gaps = replayed(
        "fits", "2500", NUMBA_BOUNDSCHECK="1", NUMBA_CACHE_DIR=str(tmp_path), NUMBA_DISABLE_JIT="0"
    )
    convergent = [name for name in ONE_BY_ONE if ALGORITHMS[name].convergent]
    assert max(gap for name, gap in gaps.items() if name.split(",")[0] in convergent) < 0.1


# stored code

# Prints the numbers that a permutation and a fit begin with, and how many functions were compiled for them.
RUN = """
import json, warnings
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    import maxmargin.engine.jit as jit
    from maxmargin.engine.sweep import shuffled
    import numpy as np
    at_import = len(caught)
    order = shuffled(5, np.random.default_rng(0)).tolist()
    assert sorted(order) == [0, 1, 2, 3, 4]
    first, again = jit.seconds_compiled(), shuffled(np.int64(5), np.random.default_rng(0)).tolist()
    texts = [[w.category.__name__, str(w.message)] for w in caught]
print(json.dumps({"compiled": first > 0, "same": order == again, "at_import": at_import, "warnings": texts}))
"""


def run(cache: Path, code: str = RUN, source: Path = SOURCE, **environment: str) -> dict:
    """Run code in a new process without a home, with this cache folder."""
    variables = {"HOME": os.devnull, "PYTHONPATH": str(source.parent), "PYTHONDONTWRITEBYTECODE": "1"}
    variables |= {"NUMBA_CACHE_DIR": str(cache), "NUMBA_DISABLE_JIT": "0"}
    return json.loads(run_python("-c", code, clean=("NUMBA_", "XDG_"), **variables | environment))


def files(cache: Path) -> dict[str, list[Path]]:
    """Return the files of compiled code by the end of the name, which are all there are."""
    found = [path for path in cache.rglob("*") if path.is_file()]
    ends = {end: [path for path in found if path.suffix == end] for end in (".nbi", ".nbc")}
    assert sum(map(len, ends.values())) == len(found)
    return ends


def warned_once(result: dict) -> bool:
    """Tell whether there is one RuntimeWarning, at the first compilation, that names NUMBA_CACHE_DIR."""
    assert result["at_import"] == 0
    ((category, message),) = result["warnings"]
    return category == "RuntimeWarning" and "NUMBA_CACHE_DIR" in message


def test_code_is_compiled_once(tmp_path):
    for turn in range(2):
        result = run(tmp_path)
        assert result == {"compiled": turn == 0, "same": True, "at_import": 0, "warnings": []}
        assert [len(some) for some in files(tmp_path).values()] == [1, 1]


# The value of a compiled function that calls another one, and whether anything was compiled.
CALLS = """
import json
import maxmargin.engine.jit as jit
from maxmargin.engine.outer import outer
print(json.dumps([outer(1.0), jit.seconds_compiled() > 0]))
"""


def test_an_edit_of_what_a_function_calls_compiles_again(tmp_path):
    source = tmp_path / "maxmargin"
    shutil.copytree(SOURCE, source)
    function = "from .jit import compiled\n{}\n@compiled()\ndef {}(x):\n    return {}\n"
    outer = function.format("from .inner import inner", "outer", "inner(x)")
    (source / "engine/outer.py").write_text(outer)
    for added, compiles in ((1.0, True), (1.0, False), (2.0, True)):
        (source / "engine/inner.py").write_text(function.format("", "inner", f"x + {added}"))
        assert run(tmp_path, CALLS, source) == [1.0 + added, compiles]


def test_code_is_compiled_in_memory_where_no_folder_can_be_created(tmp_path):
    """A file has the name of every cache folder, whatever the permissions, and NUMBA_CACHE_DIR is below a file."""
    source = tmp_path / "maxmargin"
    shutil.copytree(SOURCE, source, ignore=shutil.ignore_patterns("__pycache__"))
    (source / "engine/__pycache__").write_text("a file")
    result = run(source / "engine/__pycache__/cache", source=source)
    assert result["compiled"]
    assert result["same"]
    assert warned_once(result)


FULL = """
import builtins, errno, io, os
original_open = builtins.open
class FullFile(io.FileIO):
    def write(self, data):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
def on_full_disk(file, mode="r", *args, **kwargs):
    return FullFile(file, mode) if mode in ("wb", "xb") else original_open(file, mode, *args, **kwargs)
builtins.open = on_full_disk
"""


@pytest.mark.slow
def test_code_is_compiled_in_memory_on_a_full_disk(tmp_path):
    """The folder exists and a file can be created but not written: no partial file remains."""
    result = run(tmp_path, FULL + RUN)
    assert result["same"]
    assert warned_once(result)
    assert not any(files(tmp_path).values())


DAMAGES = {"first half": lambda content: content[: len(content) // 2], "zeros": lambda content: bytes(len(content)),
           "empty": lambda content: b""}  # fmt: skip


@pytest.mark.slow
def test_damaged_files_are_not_read(tmp_path):
    run(tmp_path)
    stored = {path: path.read_bytes() for some in files(tmp_path).values() for path in some}
    assert len(stored) == 2
    for path, damage in product(stored, DAMAGES):
        for other, content in stored.items():
            other.write_bytes(DAMAGES[damage](content) if other == path else content)
        result = run(tmp_path)
        assert result["same"]
        assert warned_once(result)


THREADS = """
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier
start = Barrier(4)
def begin(k):
    start.wait()
    return shuffled(k + 2, np.random.default_rng(0)).size
with ThreadPoolExecutor(4) as pool:
    assert list(pool.map(begin, range(4))) == list(range(2, 6))
"""
FORKS = """
import os
children = []
for k in range(2):
    child = os.fork()
    if not child:
        code = 1
        try:
            code = int(shuffled(k + 2, np.random.default_rng(0)).size != k + 2)
        finally:
            os._exit(code)
    children.append(child)
assert [os.waitpid(child, 0)[1] for child in children] == [0] * 2
"""


@pytest.mark.slow
@pytest.mark.parametrize("begin", [THREADS, pytest.param(FORKS, marks=needs_fork)], ids=["threads", "forks"])
def test_threads_and_processes_compile_at_the_same_time(begin, tmp_path):
    imports = "import numpy as np\nfrom maxmargin.engine.sweep import shuffled\n"
    run(tmp_path, imports + begin + "print(1)")
    assert not run(tmp_path)["compiled"]
    assert [len(some) for some in files(tmp_path).values()] == [1, 1]
