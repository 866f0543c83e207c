"""Compilation: signatures of methods, allocation, the cache on disk, and agreement with interpreted code."""

from __future__ import annotations

import importlib
import json
import os
import pkgutil
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

import numba
import numpy as np
import pytest
import replay
from numba.core.errors import NumbaError
from presenting import ONE_BY_ONE
from processes import run_python

import maxmargin
import maxmargin.engine
from maxmargin.algorithms import ALGORITHMS
from maxmargin.engine.jit import compiled, record

SOURCE = Path(maxmargin.__file__).resolve().parent

needs_jit = pytest.mark.skipif(bool(numba.config.DISABLE_JIT), reason="interpreted: nothing is compiled")


# methods of records


def all_compiled() -> list[Callable[..., Any]]:
    """Every compiled function of every module, each once; modules whose optional dependencies are missing have none."""
    found = {}
    for info in pkgutil.walk_packages(maxmargin.__path__, "maxmargin."):
        if info.name != "maxmargin.__main__":  # it runs the command line
            with suppress(ImportError):
                module = importlib.import_module(info.name)
                found |= {id(f): f for f in vars(module).values() if hasattr(f, "targetoptions")}
    return list(found.values())


def test_methods_of_one_name_have_one_signature():
    @record
    class SameSignature(NamedTuple):
        a: float

        def threshold(self, h):
            return self.a

    assert SameSignature(2.0).threshold(None) == 2.0
    with pytest.raises(TypeError, match=r"\.score\(self, i, j\): elsewhere it is score\(self, i\)"):

        @record
        class SecondSignature(NamedTuple):
            a: Any

            def score(self, i, j):
                return self.a


# no allocation


@needs_jit
def test_compiled_code_cannot_allocate():
    """The private option _nrt=False forbids allocation; without it the same function compiles."""

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


@needs_jit
def test_every_compiled_function_runs_without_reference_counts_and_without_the_lock():
    dispatchers = all_compiled()
    assert len(dispatchers) > 20
    for function in dispatchers:
        options = function.targetoptions
        assert (options["_nrt"], options["nogil"], options.get("parallel", False)) == (False, True, False), (
            function
        )


# one source, compiled and interpreted


def replayed(*arguments: str, **environment: str) -> dict:
    """Run replay.py with warnings as errors; return what it prints."""
    return json.loads(run_python("-W", "error", replay.__file__, *arguments, **environment))


@needs_jit
@pytest.mark.parametrize("name", [*replay.FEW, pytest.param("", marks=pytest.mark.slow)])
def test_compiled_and_interpreted_code_take_the_same_steps(name):
    """Bit for bit where arithmetic is exact: integers and short dyadic fractions.

    Compiled dense sums are reassociated, and rules that divide round: 30 passes of rounding errors, 1e-12 in all.
    """
    some = (name,) if name else ()  # all of them
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


def test_concurrent_cache_writes_do_not_mix_code(tmp_path):
    """Two indices are read before either is written; Numba's own cache would name one file for both."""
    from maxmargin.engine.jit import _CacheFile

    one, two = (_CacheFile(str(tmp_path), "f", "stamp") for _ in range(2))
    read, write = two._load_index(), one._save_data

    def save_after_another_process(name, data):
        two.save(("b",), "code of b")
        write(name, data)

    two._load_index = lambda: dict(read)  # the state before the other write
    one._save_data = save_after_another_process
    one.save(("a",), "code of a")
    for key in "ab":
        assert _CacheFile(str(tmp_path), "f", "stamp").load((key,)) in (f"code of {key}", None)
    again = _CacheFile(str(tmp_path), "f", "stamp")
    again.save(("b",), "code of b")
    assert again.load(("b",)) == "code of b"


# bounds checks of compiled code


@pytest.mark.slow
def test_no_index_is_out_of_range(tmp_path):
    """Run every schedule of every rule with Numba's bounds checks."""
    gaps = replayed(
        "fits", "2500", NUMBA_BOUNDSCHECK="1", NUMBA_CACHE_DIR=str(tmp_path), NUMBA_DISABLE_JIT="0"
    )
    convergent = [name for name in ONE_BY_ONE if ALGORITHMS[name].convergent]
    assert max(gap for name, gap in gaps.items() if name.split(",")[0] in convergent) < 0.1


# the cache on disk


HEAD = "from typing import NamedTuple\n\nfrom maxmargin.engine.jit import compiled, record\n"
RULE = HEAD + (
    "{}\n\n@record\nclass Rule(NamedTuple):\n    a: float\n\n    def threshold(self, h):\n        return {}\n"
)
FUNCTION = "\n\n@compiled()\ndef {}(x):\n    return {}\n"


def python(code: str, *folders: Path) -> str:
    """Run code in a new process with its own cache, which finds modules in these folders; return what it prints."""
    path = os.pathsep.join(map(str, (SOURCE.parent, *folders)))
    cache = str(folders[0] / "cache")
    return run_python("-c", code, PYTHONPATH=path, NUMBA_CACHE_DIR=cache, NUMBA_DISABLE_JIT="0")


@needs_jit
def test_edit_recompiles_only_a_function_and_its_callers(tmp_path):
    """Callers: direct, through another function, and by a method of a record argument."""
    files = {
        "leaf": HEAD + FUNCTION.format("leaf", "x + 1.0"),
        "direct": HEAD + "from leaf import leaf\n" + FUNCTION.format("direct", "leaf(x) * 2.0"),
        "indirect": HEAD + "from direct import direct\n" + FUNCTION.format("indirect", "direct(x) * 3.0"),
        "rule": RULE.format("from leaf import leaf\n", "leaf(self.a)"),
        "by_record": HEAD + FUNCTION.format("by_record", "x.threshold(x)"),
        "other": HEAD + FUNCTION.format("other", "x + 7.0"),
    }
    for name, text in files.items():
        (tmp_path / f"{name}.py").write_text(text)
    script = """
import importlib, json
from rule import Rule
out = {}
for name in ("leaf", "direct", "indirect", "by_record", "other"):
    function = getattr(importlib.import_module(name), name)
    value = function(Rule(1.0) if name == "by_record" else 1.0)
    out[name] = [value, sum(function.stats.cache_misses.values())]
print(json.dumps(out))
"""
    values = {"leaf": 2.0, "direct": 4.0, "indirect": 12.0, "by_record": 2.0, "other": 8.0}
    assert json.loads(python(script, tmp_path)) == {name: [value, 1] for name, value in values.items()}
    (tmp_path / "leaf.py").write_text(files["leaf"].replace("x + 1.0", "x + 2.0"))
    values = {"leaf": 3.0, "direct": 6.0, "indirect": 18.0, "by_record": 3.0, "other": 8.0}
    again = {name: [value, int(name != "other")] for name, value in values.items()}
    assert json.loads(python(script, tmp_path)) == again


# read-only and full disks: imports and fits work, with one warning

# Permissions do not restrict the superuser, so the calls with which Numba writes are replaced and fail.
READ_ONLY = """
import builtins, errno, os, tempfile
original_open = builtins.open
def refuse(*args, **kwargs):
    raise OSError(errno.EROFS, os.strerror(errno.EROFS))
def open_read_only(file, mode="r", *args, **kwargs):
    return refuse() if set(mode) & set("wax+") else original_open(file, mode, *args, **kwargs)
builtins.open, os.makedirs, tempfile.TemporaryFile = open_read_only, refuse, refuse
"""
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
REPORT = """
import json, warnings
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    import maxmargin
    from functions import thrice, twice
    imported = len(caught)
    results = [twice(4.0), {more}]
hits = [sum(f.stats.cache_hits.values()) for f in (twice, thrice)]
texts = [[w.category.__name__, str(w.message)] for w in caught]
print(json.dumps({"results": results, "hits": hits, "at_import": imported, "warnings": texts}))
"""


def run(folder: Path, conditions: str = "", more: str = "thrice(4.0)", **environment: str) -> dict:
    """Import the package and call two functions in a new process without a home, under these conditions."""
    functions = FUNCTION.format("twice", "2.0 * x") + FUNCTION.format("thrice", "3.0 * x")
    (folder / "functions.py").write_text(HEAD + functions)
    path = os.pathsep.join(map(str, (SOURCE.parent, folder)))
    variables = {"HOME": os.devnull, "PYTHONPATH": path, "PYTHONDONTWRITEBYTECODE": "1", **environment}
    code = conditions + REPORT.replace("{more}", more)
    return json.loads(run_python("-c", code, clean=("NUMBA_", "XDG_"), **variables))


def warned_once(result):
    """Tell whether there is one RuntimeWarning, at the first compilation, that names NUMBA_CACHE_DIR."""
    assert result["at_import"] == 0
    ((category, message),) = result["warnings"]
    return category == "RuntimeWarning" and "NUMBA_CACHE_DIR" in message


FIT = "maxmargin.MaxMarginClassifier(loss='hinge', algorithm='mpu').fit([[0], [1], [3]], [0, 1, 1]).status_.value"


@pytest.mark.parametrize(
    ("more", "value"), [("thrice(4.0)", 12.0), pytest.param(FIT, "CERTIFIED", marks=pytest.mark.slow)]
)
def test_code_is_compiled_in_memory_where_no_folder_can_be_created(more, value, tmp_path):
    """A file has the name of every cache folder, whatever the permissions, and NUMBA_CACHE_DIR is below a file."""
    cache = tmp_path / "__pycache__"
    cache.write_text("a file")
    result = run(tmp_path, more=more, NUMBA_CACHE_DIR=str(cache / "cache"))
    assert (result["results"], result["hits"]) == ([8.0, value], [0, 0])
    assert warned_once(result)


def test_numba_cache_dir_is_used_and_left_unchanged_once_it_is_read_only(tmp_path):
    """Cached functions are loaded; missing ones are compiled in memory."""
    cache = tmp_path / "__pycache__"
    cache.write_text("a file")
    folder = {"NUMBA_CACHE_DIR": str(tmp_path / "compiled")}
    assert run(tmp_path, more="0.0", **folder)["warnings"] == []
    before = sorted(tmp_path.rglob("*"))
    result = run(tmp_path, READ_ONLY, **folder)
    assert (result["results"], result["hits"]) == ([8.0, 12.0], [1, 0])
    assert warned_once(result)
    assert sorted(tmp_path.rglob("*")) == before


def test_code_is_compiled_in_memory_on_a_full_disk(tmp_path):
    """The folder exists and a file can be created but not written: no partial file remains."""
    result = run(tmp_path, FULL)
    assert result["results"] == [8.0, 12.0]
    assert warned_once(result)
    assert not list((tmp_path / "__pycache__").iterdir())
